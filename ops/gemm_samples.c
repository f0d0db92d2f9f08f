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

/* Four layers, trained: enough for runs of them, forward and back. */
#define DEEP(m, k, h, n, act, w1, w, w4, turned)                                        \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" m ", " k "]", "normal")                         \
                  GX_SAMPLE_TENSOR("t", "[" m ", " n "]", "normal"),                    \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w1", w1, "xavier_normal")              \
                  GX_SAMPLE_TENSOR("w2", w, "xavier_normal")                            \
                      GX_SAMPLE_TENSOR("w3", w, "xavier_normal")                        \
                          GX_SAMPLE_TENSOR("w4", w4, "xavier_normal")                   \
                              GX_SAMPLE_TENSOR("b1", "[" h "]", "{normal: {std: 0.5}}") \
                                  GX_SAMPLE_TENSOR("b2", "[" h "]", "normal")           \
                                      GX_SAMPLE_TENSOR("b3", "[" h "]", "normal")       \
                                          GX_SAMPLE_TENSOR("b4", "[" n "]", "normal")   \
                                              GX_SAMPLE_OPS                             \
              "  - {op: gemm, name: fc1, a: x, b: w1" turned                            \
              ", epilogue: {bias: b1, act: " act "}, out: h1}\n"                        \
              "  - {op: gemm, name: fc2, a: h1, b: w2" turned                           \
              ", epilogue: {bias: b2, act: " act "}, out: h2}\n"                        \
              "  - {op: gemm, name: fc3, a: h2, b: w3" turned                           \
              ", epilogue: {bias: b3, act: " act "}, out: h3}\n"                        \
              "  - {op: gemm, name: fc4, a: h3, b: w4" turned                           \
              ", epilogue: {bias: b4}, out: y}\n"                                       \
              "  - {op: mse, name: loss, x: y, target: t}\n"                            \
              "backward: loss\noptimizer: {" SGD "}\noutputs: [loss, y]\n")

/* A product with what else it can do, of whole numbers; c, r and the bias stand by. */
#define MORE(a, b, out, n, fields)                                                      \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "{integers: [-3, 4]}")                           \
                  GX_SAMPLE_TENSOR("c", out, "{integers: [-3, 4]}")                     \
                      GX_SAMPLE_TENSOR("r", out, "{integers: [-3, 4]}"),                \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("b", b, "{integers: [-3, 4]}")          \
                  GX_SAMPLE_TENSOR("s", "[" n "]", "{integers: [-3, 4]}") GX_SAMPLE_OPS \
              "  - {op: gemm, name: fc, a: a, b: b" fields ", out: y}\noutputs: [y]\n")

/* The same between trained tensors: every operand has a gradient. */
#define MORE_TRAINED(a, b, out, n, fields)                                             \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", out, "normal"),                                    \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("a", a, "{normal: {std: 0.5}}")        \
                  GX_SAMPLE_TENSOR("b", b, "{normal: {std: 0.5}}")                     \
                      GX_SAMPLE_TENSOR("c", out, "normal")                             \
                          GX_SAMPLE_TENSOR("r", out, "normal")                         \
                              GX_SAMPLE_TENSOR("s", "[" n "]", "normal") GX_SAMPLE_OPS \
              "  - {op: gemm, name: fc, a: a, b: b" fields ", out: y}\n"               \
              "  - {op: mse, name: loss, x: y, target: t}\n"                           \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss, y]\n")

/* Rows wider than what is used of them, c's and out's of their own lengths; r is like the
 * product. */
#define WIDE(a, b, c, r, n, fields)                                                     \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "{integers: [-3, 4]}")                           \
                  GX_SAMPLE_TENSOR("c", c, "{integers: [-3, 4]}")                       \
                      GX_SAMPLE_TENSOR("r", r, "{integers: [-3, 4]}"),                  \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("b", b, "{integers: [-3, 4]}")          \
                  GX_SAMPLE_TENSOR("s", "[" n "]", "{integers: [-3, 4]}") GX_SAMPLE_OPS \
              "  - {op: gemm, name: fc, a: a, b: b" fields ", out: y}\noutputs: [y]\n")

#define WIDE_TRAINED(a, b, c, r, out, n, fields)                                       \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", out, "normal"),                                    \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("a", a, "{normal: {std: 0.5}}")        \
                  GX_SAMPLE_TENSOR("b", b, "{normal: {std: 0.5}}")                     \
                      GX_SAMPLE_TENSOR("c", c, "normal")                               \
                          GX_SAMPLE_TENSOR("r", r, "normal")                           \
                              GX_SAMPLE_TENSOR("s", "[" n "]", "normal") GX_SAMPLE_OPS \
              "  - {op: gemm, name: fc, a: a, b: b" fields ", out: y}\n"               \
              "  - {op: mse, name: loss, x: y, target: t}\n"                           \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss, y]\n")

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
    DEEP("20", "12", "40", "10", "relu", "[12, 40]", "[40, 40]", "[40, 10]", ""),
    DEEP("9", "36", "272", "8", "gelu_tanh", "[36, 272]", "[272, 272]", "[272, 8]", ""),
    DEEP("17", "20", "64", "12", "tanh", "[64, 20]", "[64, 64]", "[12, 64]",
         ", trans_b: true"),
    /* Batches: of one, of three, of none; odd sizes; one operand for all. */
    PRODUCT("[1, 3, 7]", "[1, 7, 5]", ""), PRODUCT("[3, 5, 7]", "[3, 7, 2]", ""),
    PRODUCT("[2, 3, 7, 5]", "[2, 3, 7, 9]", ", trans_a: true"),
    PRODUCT("[3, 33, 65]", "[3, 70, 65]", ", trans_b: true"),
    PRODUCT("[3, 65, 33]", "[3, 70, 65]", ", trans_a: true, trans_b: true"),
    PRODUCT("[3, 5, 7]", "[7, 9]", ""),
    PRODUCT("[3, 7, 5]", "[9, 7]", ", trans_a: true, trans_b: true"),
    PRODUCT("[5, 7]", "[3, 7, 9]", ""),
    PRODUCT("[7, 5]", "[3, 9, 7]", ", trans_a: true, trans_b: true"),
    PRODUCT("[0, 5, 7]", "[0, 7, 9]", ""), PRODUCT("[0, 5, 7]", "[7, 9]", ""),
    PRODUCT("[3, 5, 0]", "[3, 0, 9]", ""),
    PRODUCT("[3, 7, 5]", "[3, 7, 9]", ", trans_a: true, sum_batch: true"),
    PRODUCT("[3, 5, 40]", "[3, 40, 9]", ", sum_batch: true"),
    PRODUCT("[2, 2, 5, 7]", "[2, 2, 9, 7]", ", trans_b: true, sum_batch: true"),
    PRODUCT("[0, 5, 7]", "[0, 7, 9]", ", sum_batch: true"),
    PRODUCT("[1, 5, 7]", "[1, 7, 9]", ", sum_batch: true"),
    /* k along the columns of both, large enough to transpose one of them before. */
    PRODUCT("[259, 258]", "[259, 256]", ", trans_a: true"),
    PRODUCT("[2, 131, 262]", "[2, 131, 260]",
            ", trans_a: true, m: 257, n: 251, ld: {a: 262, b: 260, out: 255}"),
    PRODUCT("[131, 258]", "[2, 131, 256]", ", trans_a: true"),
    PRODUCT("[2, 131, 258]", "[131, 256]", ", trans_a: true"),
    /* Factors, a sum, and every step of the epilogue in several orders. */
    MORE("[1, 1]", "[1, 1]", "[1, 1]", "1", ", alpha: 2, c: c, beta: -0.5"),
    MORE("[3, 7]", "[7, 5]", "[3, 5]", "5", ", c: c"),
    MORE("[3, 7]", "[7, 5]", "[3, 5]", "5", ", alpha: -3, c: c, beta: 0"),
    MORE("[0, 7]", "[7, 5]", "[0, 5]", "5", ", c: c, epilogue: {residual: r}"),
    MORE("[3, 0]", "[0, 5]", "[3, 5]", "5",
         ", c: c, beta: 2, epilogue: {bias: s, residual: r}"),
    MORE("[3, 33, 20]", "[3, 20, 17]", "[3, 33, 17]", "17",
         ", alpha: 0.5, c: c, beta: 2, epilogue: {scale: 2, bias: s, residual: r, act: "
         "relu}"),
    MORE("[64, 40]", "[40, 48]", "[64, 48]", "48",
         ", epilogue: {bias: s, act: relu, residual: r, order: [bias, act, residual]}"),
    MORE("[2, 9, 7]", "[7, 24]", "[2, 9, 24]", "24",
         ", epilogue: {scale: 0.5, bias: s, act: relu, residual: r, order: [bias, act, "
         "scale, residual]}"),
    MORE("[5, 7]", "[7, 9]", "[5, 9]", "9",
         ", c: c, epilogue: {scale: 2, bias: s, act: relu, residual: r, order: "
         "[residual, act, scale, bias]}"),
    MORE_TRAINED("[3, 5, 4]", "[3, 4, 7]", "[3, 5, 7]", "7", ", alpha: 0.5, c: c"),
    MORE_TRAINED("[3, 4, 5]", "[4, 7]", "[3, 5, 7]", "7",
                 ", trans_a: true, c: c, beta: 2, epilogue: {bias: s, act: gelu_tanh}"),
    MORE_TRAINED("[3, 5, 4]", "[7, 4]", "[3, 5, 7]", "7",
                 ", trans_b: true, epilogue: {bias: s, act: silu, residual: r, order: "
                 "[bias, act, residual]}"),
    MORE_TRAINED("[5, 4]", "[3, 4, 7]", "[3, 5, 7]", "7",
                 ", c: c, beta: 0.5, epilogue: {scale: 0.5, residual: r, act: tanh}"),
    MORE_TRAINED("[4, 5]", "[3, 7, 4]", "[3, 5, 7]", "7",
                 ", trans_a: true, trans_b: true, epilogue: {bias: s, scale: 0.5, act: "
                 "relu, residual: r, order: [act, scale, residual, bias]}"),
    MORE_TRAINED("[3, 5, 4]", "[3, 4, 7]", "[5, 7]", "7",
                 ", sum_batch: true, alpha: 2, c: c, epilogue: {bias: s, act: sigmoid}"),
    MORE_TRAINED("[65, 40]", "[40, 24]", "[65, 24]", "24",
                 ", epilogue: {bias: s, residual: r, act: gelu_erf}"),
    /* Rows wider than what is used: of each operand, stored either way, odd and even. */
    PRODUCT("[1, 2]", "[1, 1]", ", ld: {a: 2}"),
    PRODUCT("[3, 9]", "[7, 5]", ", ld: {a: 9}"),
    PRODUCT("[3, 7]", "[7, 6]", ", n: 5, ld: {b: 6}"),
    PRODUCT("[3, 7]", "[7, 5]", ", ld: {out: 11}"),
    PRODUCT("[7, 8]", "[7, 9]", ", trans_a: true, m: 3, n: 5, ld: {a: 8, b: 9}"),
    PRODUCT("[3, 9]", "[5, 11]", ", trans_b: true, k: 7, ld: {a: 9, b: 11, out: 6}"),
    PRODUCT("[7, 5]", "[5, 8]",
            ", trans_a: true, trans_b: true, m: 3, ld: {a: 5, b: 8, out: 5}"),
    PRODUCT("[130, 301]", "[300, 259]", ", n: 257, ld: {a: 301, b: 259, out: 301}"),
    PRODUCT("[64, 96]", "[48, 80]", ", n: 64, ld: {a: 96, b: 80, out: 72}"),
    PRODUCT("[64, 46]", "[32, 41]", ", trans_b: true, k: 40, ld: {a: 46, b: 41}"),
    PRODUCT("[40, 72]", "[40, 34]", ", trans_a: true, m: 64, n: 32, ld: {a: 72, b: 34}"),
    PRODUCT("[2, 3, 9]", "[2, 7, 8]", ", n: 5, ld: {a: 9, b: 8, out: 6}"),
    PRODUCT("[3, 5, 9]", "[7, 10]", ", n: 9, ld: {a: 9, b: 10, out: 13}"),
    PRODUCT("[5, 9]", "[3, 9, 8]", ", trans_b: true, k: 7, ld: {a: 9, b: 8, out: 12}"),
    PRODUCT("[3, 7, 8]", "[3, 7, 10]",
            ", trans_a: true, m: 5, n: 9, sum_batch: true, ld: {a: 8, b: 10}"),
    PRODUCT("[3, 5, 9]", "[3, 8, 6]",
            ", n: 5, sum_batch: true, ld: {a: 9, b: 6, out: 7}"),
    PRODUCT("[3, 5]", "[5, 4]", ", n: 0, ld: {b: 4, out: 4}"),
    PRODUCT("[3, 4]", "[0, 5]", ", ld: {a: 4, out: 7}"),
    PRODUCT("[0, 9]", "[7, 5]", ", ld: {a: 9, out: 6}"),
    WIDE("[3, 9]", "[7, 8]", "[3, 6]", "[3, 5]", "5",
         ", n: 5, c: c, beta: -2, ld: {a: 9, b: 8, c: 6}"),
    WIDE("[3, 9]", "[7, 8]", "[3, 6]", "[3, 5]", "5",
         ", n: 5, alpha: 2, c: c, ld: {a: 9, b: 8, c: 6, out: 7}"),
    WIDE(
        "[2, 33, 24]", "[2, 20, 19]", "[2, 33, 18]", "[2, 33, 17]", "17",
        ", n: 17, c: c, ld: {a: 24, b: 19, c: 18, out: 18}, epilogue: {residual: r, act: "
        "relu}"),
    WIDE("[64, 44]", "[40, 56]", "[64, 52]", "[64, 48]", "48",
         ", n: 48, ld: {a: 44, b: 56}, epilogue: {bias: s, act: relu}"),
    WIDE("[64, 44]", "[40, 56]", "[64, 52]", "[64, 48]", "48",
         ", n: 48, c: c, ld: {a: 44, b: 56, c: 52}, epilogue: {bias: s, act: relu}"),
    WIDE("[5, 9]", "[7, 10]", "[5, 9]", "[5, 9]", "9",
         ", n: 9, ld: {a: 9, b: 10, out: 12}, epilogue: {scale: 2, residual: r}"),
    WIDE(
        "[5, 9]", "[7, 10]", "[5, 9]", "[5, 9]", "9",
        ", n: 9, ld: {a: 9, b: 10, out: 12}, epilogue: {bias: s, act: sigmoid, residual: "
        "r, order: [act, bias, residual]}"),
    WIDE_TRAINED("[5, 6]", "[4, 9]", "[5, 8]", "[5, 7]", "[5, 7]", "7",
                 ", n: 7, alpha: 0.5, c: c, beta: 2, ld: {a: 6, b: 9, c: 8}, epilogue: "
                 "{bias: s, act: gelu_tanh}"),
    WIDE_TRAINED(
        "[3, 4, 7]", "[7, 6]", "[3, 5, 8]", "[3, 5, 7]", "[3, 5, 10]", "7",
        ", trans_a: true, trans_b: true, m: 5, c: c, ld: {a: 7, b: 6, c: 8, out: "
        "10}"),
    WIDE_TRAINED("[3, 5, 4]", "[3, 4, 8]", "[3, 5, 7]", "[3, 5, 7]", "[3, 5, 9]", "7",
                 ", n: 7, c: c, beta: 0.5, ld: {b: 8, out: 9}, epilogue: {bias: s, act: "
                 "tanh}"),
    WIDE_TRAINED("[3, 5, 6]", "[3, 4, 8]", "[5, 8]", "[5, 7]", "[5, 9]", "7",
                 ", n: 7, sum_batch: true, c: c, ld: {a: 6, b: 8, c: 8, out: 9}"),
    WIDE_TRAINED("[66, 44]", "[40, 30]", "[66, 24]", "[66, 24]", "[66, 24]", "24",
                 ", n: 24, ld: {a: 44, b: 30}, epilogue: {bias: s, act: relu}"),
    /* No biases: the gradients of a layer stand alone, with an activation behind them and
     * without. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[9, 6]", "normal")
                  GX_SAMPLE_TENSOR("t", "[9, 4]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w1", "[6, 16]", "he_normal")
                  GX_SAMPLE_TENSOR("w2", "[10, 16]", "he_normal")
                      GX_SAMPLE_TENSOR("w3", "[10, 4]", "he_normal") GX_SAMPLE_OPS
              "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {act: relu}, out: h1}\n"
              "  - {op: gemm, name: fc2, a: h1, b: w2, trans_b: true, out: h2}\n"
              "  - {op: gemm, name: fc3, a: h2, b: w3, out: y}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {" SGD "}\noutputs: [loss]\n"),
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

/* The same of a batch, with every gradient that there is. */
#define BWD_MORE(a, b, out, fields)                                                 \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "normal") GX_SAMPLE_TENSOR("b", b, "normal") \
                  GX_SAMPLE_TENSOR("dy", out, "normal")                             \
                      GX_SAMPLE_TENSOR("kept", out, "normal"),                      \
              GX_SAMPLE_OPS "  - {op: gemm.bwd, name: g, a: a, b: b, dy: dy" fields \
                            ", da: da, db: db, dc: dc, dbias: dbias, dresidual: "   \
                            "dresidual}\noutputs: [da, db, dc, dbias, dresidual]\n")

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
    BWD("[5, 4]", "[4, 3]", "5", "3", ", y: kept, epilogue: {act: relu}",
        ", beta: 2, dc: dc", "dc"),
    BWD_MORE("[3, 5, 4]", "[3, 4, 7]", "[3, 5, 7]", ""),
    BWD_MORE("[3, 4, 5]", "[7, 4]", "[3, 5, 7]",
             ", trans_a: true, trans_b: true, alpha: 0.5, beta: 2, y: kept, epilogue: "
             "{act: relu, scale: 3}"),
    BWD_MORE("[3, 33, 20]", "[20, 17]", "[3, 33, 17]",
             ", alpha: 2, pre: kept, epilogue: {act: silu}"),
    BWD_MORE("[5, 4]", "[2, 3, 4, 7]", "[2, 3, 5, 7]",
             ", y: kept, epilogue: {act: tanh}"),
    BWD_MORE("[0, 5, 4]", "[4, 7]", "[0, 5, 7]", ", y: kept, epilogue: {act: relu}"),
    /* Rows wider than what is used. */
    BWD("[3, 9]", "[7, 6]", "3", "5", "", ", n: 5, ld: {a: 9, b: 6}" ALL,
        "da, db, dbias"),
    BWD("[7, 5]", "[5, 9]", "3", "6", "",
        ", trans_a: true, trans_b: true, m: 3, ld: {a: 5, b: 9, out: 6}, da: da, db: db",
        "da, db"),
    BWD_MORE("[3, 5, 6]", "[3, 4, 8]", "[3, 5, 7]",
             ", n: 7, beta: 2, y: kept, ld: {a: 6, b: 8, c: 9, out: 7}, epilogue: {act: "
             "tanh}"),
    BWD_MORE("[3, 5, 6]", "[4, 8]", "[3, 5, 9]",
             ", n: 7, alpha: 2, ld: {a: 6, b: 8, c: 8, out: 9}"),
    /* Large enough to transpose the gradient of the product for that of the weight. */
    BWD("[259, 258]", "[258, 256]", "259", "256",
        ", pre: kept, epilogue: {act: gelu_tanh}", ALL, "da, db, dbias"),
    BWD("[262, 250]", "[260, 250]", "262", "260", ", y: kept, epilogue: {act: relu}",
        ", trans_b: true, db: db", "db"),
    BWD("[2, 130, 258]", "[258, 256]", "2, 130", "256",
        ", alpha: 0.5, pre: kept, epilogue: {act: silu}", ALL, "da, db, dbias"),
    NULL
};
