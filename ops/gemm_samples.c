/* Sample models of the products. */
#include "samples.h"

#include <stddef.h>

/* A product alone. Integers are exact in every precision: a wrong index shows itself. */
#define PRODUCT(a, b, flags)                                                   \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "{integers: [-3, 4]}"),                 \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("b", b, "{integers: [-3, 4]}") \
                  GX_SAMPLE_OPS "  - {op: gemm, name: fc, a: a, b: b" flags    \
                                ", out: y}\n"                                  \
                                "outputs: [y]\n")

/* A layer without training. */
#define LAYER(m, n, k, act)                                                              \
    GX_SAMPLE(                                                                           \
        GX_SAMPLE_TENSOR("x", "[" m ", " k "]", "normal"),                               \
        GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[" k ", " n "]", "{normal: {std: 0.1}}") \
            GX_SAMPLE_TENSOR("b", "[" n "]", "normal") GX_SAMPLE_OPS                     \
        "  - {op: gemm, name: fc, a: x, b: w, "                                          \
        "epilogue: {bias: b, act: " act "}, out: y}\noutputs: [y]\n")

/* Two layers, trained: the first has no data gradient, the second has. */
#define TRAINED(m, k, h, n, act, w1, w2, t1, t2, optimizer)                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" m ", " k "]", "normal")                     \
                  GX_SAMPLE_TENSOR("t", "[" m ", " n "]", "normal"),                \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w1", w1, "he_normal")              \
                  GX_SAMPLE_TENSOR("b1", "[" h "]", "{normal: {std: 0.5}}")         \
                      GX_SAMPLE_TENSOR("w2", w2, "he_normal")                       \
                          GX_SAMPLE_TENSOR("b2", "[" n "]", "normal") GX_SAMPLE_OPS \
              "  - {op: gemm, name: fc1, a: x, b: w1" t1                            \
              ", epilogue: {bias: b1, act: " act "}, out: h}\n"                     \
              "  - {op: gemm, name: fc2, a: h, b: w2" t2                            \
              ", epilogue: {bias: b2}, out: y}\n"                                   \
              "  - {op: mse, name: loss, x: y, target: t}\n"                        \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: [loss, y]\n")

#define SGD "sgd: {lr: 0.1}"
#define ADAMW "adamw: {lr: 0.01}"

const char *const gx_gemm_samples[] = {
    PRODUCT("[1, 1]", "[1, 1]", ""), PRODUCT("[3, 7]", "[7, 5]", ""),
    PRODUCT("[7, 3]", "[7, 5]", ", trans_a: true"),
    PRODUCT("[3, 7]", "[5, 7]", ", trans_b: true"),
    PRODUCT("[7, 3]", "[5, 7]", ", trans_a: true, trans_b: true"),
    PRODUCT("[130, 300]", "[300, 257]", ""),
    PRODUCT("[300, 130]", "[257, 300]", ", trans_a: true, trans_b: true"),
    PRODUCT("[1, 1024]", "[1024, 1]", ""), PRODUCT("[5, 0]", "[0, 3]", ""),
    PRODUCT("[0, 5]", "[5, 3]", ""), PRODUCT("[3, 5]", "[5, 0]", ""),
    LAYER("1", "1", "1", "none"), LAYER("3", "5", "7", "relu"),
    LAYER("64", "256", "64", "relu"), LAYER("33", "65", "129", "gelu_tanh"),
    LAYER("129", "300", "40", "none"), LAYER("4", "3", "0", "gelu_tanh"),
    LAYER("33", "64", "40", "gelu_erf"), LAYER("5", "65", "12", "silu"),
    LAYER("64", "16", "24", "tanh"), LAYER("16", "32", "8", "sigmoid"),
    LAYER("0", "3", "4", "relu"), LAYER("4", "0", "3", "relu"),
    TRAINED("1", "1", "1", "1", "gelu_tanh", "[1, 1]", "[1, 1]", "", "", SGD),
    TRAINED("3", "7", "5", "2", "relu", "[7, 5]", "[5, 2]", "", "", SGD),
    TRAINED("5", "3", "9", "4", "gelu_tanh", "[9, 3]", "[4, 9]", ", trans_b: true",
            ", trans_b: true", ADAMW),
    TRAINED("64", "64", "256", "10", "relu", "[64, 256]", "[256, 10]", "", "", ADAMW),
    TRAINED("130", "70", "300", "33", "gelu_tanh", "[70, 300]", "[300, 33]", "", "", SGD),
    TRAINED("33", "40", "129", "64", "none", "[129, 40]", "[129, 64]", ", trans_b: true",
            "", SGD),
    TRAINED("33", "40", "64", "7", "gelu_erf", "[40, 64]", "[64, 7]", "", "", SGD),
    TRAINED("16", "24", "48", "8", "silu", "[24, 48]", "[48, 8]", "", "", ADAMW),
    TRAINED("70", "8", "33", "4", "tanh", "[33, 8]", "[33, 4]", ", trans_b: true", "",
            SGD),
    TRAINED("9", "5", "16", "3", "sigmoid", "[5, 16]", "[16, 3]", "", "", SGD),
    TRAINED("4", "0", "3", "2", "relu", "[0, 3]", "[3, 2]", "", "", SGD),
    /* The weight on the left, and used twice: its gradients are added. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[6, 9]", "normal")
                  GX_SAMPLE_TENSOR("t", "[6, 9]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[6, 6]", "{normal: {std: 0.4}}")
                  GX_SAMPLE_OPS
              "  - {op: gemm, name: fc1, a: w, b: x, epilogue: {act: relu}, out: h}\n"
              "  - {op: gemm, name: fc2, a: w, b: h, trans_a: true, out: y}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {" ADAMW "}\noutputs: [loss]\n"),
    NULL
};

#define BWD(a, b, m, n, kept, flags, made)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "normal") GX_SAMPLE_TENSOR("b", b, "normal")     \
                  GX_SAMPLE_TENSOR("dy", "[" m ", " n "]", "normal")                    \
                      GX_SAMPLE_TENSOR("kept", "[" m ", " n "]", "normal"),             \
              GX_SAMPLE_OPS "  - {op: gemm.bwd, name: g, a: a, b: b, dy: dy" kept flags \
                            "}\noutputs: [" made "]\n")

#define ALL ", da: da, db: db, dbias: dbias"

const char *const gx_gemm_bwd_samples[] = {
    BWD("[1, 1]", "[1, 1]", "1", "1", "", ALL, "da, db, dbias"),
    BWD("[3, 7]", "[7, 5]", "3", "5", ", y: kept, epilogue: {act: relu}", ALL,
        "da, db, dbias"),
    BWD("[7, 3]", "[7, 5]", "3", "5", ", pre: kept, epilogue: {act: gelu_tanh}",
        ", trans_a: true" ALL, "da, db, dbias"),
    BWD("[3, 7]", "[5, 7]", "3", "5", "", ", trans_b: true, da: da, db: db", "da, db"),
    BWD("[7, 3]", "[5, 7]", "3", "5", ", y: kept, epilogue: {act: relu}",
        ", trans_a: true, trans_b: true, db: db", "db"),
    BWD("[130, 70]", "[70, 300]", "130", "300", ", pre: kept, epilogue: {act: gelu_tanh}",
        ALL, "da, db, dbias"),
    BWD("[64, 256]", "[256, 10]", "64", "10", "", ALL, "da, db, dbias"),
    BWD("[9, 7]", "[7, 16]", "9", "16", ", pre: kept, epilogue: {act: gelu_erf}", ALL,
        "da, db, dbias"),
    BWD("[9, 7]", "[7, 16]", "9", "16", ", pre: kept, epilogue: {act: silu}", ALL,
        "da, db, dbias"),
    BWD("[9, 7]", "[7, 16]", "9", "16", ", y: kept, epilogue: {act: tanh}", ALL,
        "da, db, dbias"),
    BWD("[9, 7]", "[7, 16]", "9", "16", ", y: kept, epilogue: {act: sigmoid}", ALL,
        "da, db, dbias"),
    BWD("[0, 4]", "[4, 3]", "0", "3", ", y: kept, epilogue: {act: relu}", ALL,
        "da, db, dbias"),
    BWD("[5, 0]", "[0, 3]", "5", "3", "", ALL, "da, db, dbias"),
    BWD("[5, 4]", "[4, 3]", "5", "3", "", ", dbias: dbias", "dbias"),
    NULL
};
