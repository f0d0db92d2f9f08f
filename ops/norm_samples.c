/* Sample models of the norms and of embedding. */
#include "samples.h"

#include <stddef.h>

#define NORM(op, shape, columns, more)                                              \
    GX_SAMPLE(                                                                      \
        GX_SAMPLE_TENSOR("x", shape, "{normal: {mean: 0.5, std: 2}}")               \
            GX_SAMPLE_TENSOR("w", "[" columns "]", "{normal: {mean: 1, std: 0.3}}") \
                GX_SAMPLE_TENSOR("b", "[" columns "]", "normal"),                   \
        GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x" more "}\noutputs: [y]\n")

#define NORM_BWD(op, shape, columns, more, outputs)                           \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {mean: 0.5, std: 2}}")   \
                  GX_SAMPLE_TENSOR("dy", shape, "normal") GX_SAMPLE_TENSOR(   \
                      "w", "[" columns "]", "{normal: {mean: 1, std: 0.3}}"), \
              GX_SAMPLE_OPS "  - {op: " op ", name: r, x: x, dy: dy" more     \
                            "}\noutputs: " outputs "\n")

#define NORM_TRAINED(op, rows, columns, more, bias)                                   \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" rows ", 5]", "normal")                        \
                  GX_SAMPLE_TENSOR("t", "[" rows ", " columns "]", "normal"),         \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("v", "[5, " columns "]", "he_normal") \
                  GX_SAMPLE_TENSOR("w", "[" columns "]", "ones") bias GX_SAMPLE_OPS   \
              "  - {op: gemm, name: h, a: x, b: v}\n"                                 \
              "  - {op: " op ", name: y, x: h" more "}\n"                             \
              "  - {op: mse, name: loss, x: y, target: t}\n"                          \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")
#define BIAS(columns) GX_SAMPLE_TENSOR("b", "[" columns "]", "zeros")

/* A warp to a row, several warps, a block, more than a block holds; vectors and none. */
#define LAYER_NORM_ALL(more)                                                       \
    NORM("layer_norm", "[1]", "1", more), NORM("layer_norm", "[7, 5]", "5", more), \
        NORM("layer_norm", "[3, 2, 64]", "64", more),                              \
        NORM("layer_norm", "[33, 257]", "257", more),                              \
        NORM("layer_norm", "[300, 768]", "768", more),                             \
        NORM("layer_norm", "[5, 2049]", "2049", more),                             \
        NORM("layer_norm", "[2, 8192]", "8192", more),                             \
        NORM("layer_norm", "[2, 8197]", "8197", more),                             \
        NORM("layer_norm", "[0, 4]", "4", more), NORM("layer_norm", "[3, 0]", "0", more)

const char *const gx_layer_norm_samples[] = {
    LAYER_NORM_ALL(", weight: w, bias: b"),
    NORM("layer_norm", "[9, 31]", "31", ""),
    NORM("layer_norm", "[9, 128]", "128", ", weight: w, eps: 1.0e-3"),
    NORM("layer_norm", "[9, 128]", "128", ", bias: b, eps: 0"),
    NORM_TRAINED("layer_norm", "17", "12", ", weight: w, bias: b", BIAS("12")),
    NORM_TRAINED("layer_norm", "70", "33", ", weight: w, bias: b, eps: 0.01", BIAS("33")),
    NULL
};
const char *const gx_rms_norm_samples[] = {
    NORM("rms_norm", "[1]", "1", ", weight: w"),
    NORM("rms_norm", "[7, 5]", "5", ", weight: w"),
    NORM("rms_norm", "[33, 257]", "257", ", weight: w"),
    NORM("rms_norm", "[300, 768]", "768", ", weight: w, eps: 1.0e-6"),
    NORM("rms_norm", "[2, 8197]", "8197", ", weight: w"),
    NORM("rms_norm", "[9, 128]", "128", ""),
    NORM("rms_norm", "[0, 4]", "4", ", weight: w"),
    NORM("rms_norm", "[3, 0]", "0", ", weight: w"),
    NORM_TRAINED("rms_norm", "17", "12", ", weight: w", ""),
    NORM_TRAINED("rms_norm", "70", "33", ", weight: w, eps: 0.01", ""),
    NULL
};

#define ALL_OUTPUTS ", dx: dx, dweight: dw, dbias: db"
#define LAYER_NORM_BWD(shape, columns) \
    NORM_BWD("layer_norm.bwd", shape, columns, ", weight: w" ALL_OUTPUTS, "[dx, dw, db]")

const char *const gx_layer_norm_bwd_samples[] = {
    LAYER_NORM_BWD("[1]", "1"),
    LAYER_NORM_BWD("[7, 5]", "5"),
    LAYER_NORM_BWD("[3, 2, 64]", "64"),
    LAYER_NORM_BWD("[33, 257]", "257"),
    LAYER_NORM_BWD("[300, 768]", "768"),
    LAYER_NORM_BWD("[2100, 40]", "40"),
    LAYER_NORM_BWD("[5, 2049]", "2049"),
    LAYER_NORM_BWD("[9, 8192]", "8192"),
    LAYER_NORM_BWD("[9, 8197]", "8197"),
    LAYER_NORM_BWD("[0, 4]", "4"),
    LAYER_NORM_BWD("[3, 0]", "0"),
    NORM_BWD("layer_norm.bwd", "[20, 33]", "33", ALL_OUTPUTS, "[dx, dw, db]"),
    NORM_BWD("layer_norm.bwd", "[20, 64]", "64", ", weight: w, eps: 0.1, dx: dx", "[dx]"),
    NORM_BWD("layer_norm.bwd", "[700, 64]", "64", ", dweight: dw", "[dw]"),
    NORM_BWD("layer_norm.bwd", "[700, 8200]", "8200", ", dbias: db", "[db]"),
    NULL
};

#define RMS_NORM_BWD(shape, columns)                                             \
    NORM_BWD("rms_norm.bwd", shape, columns, ", weight: w, dx: dx, dweight: dw", \
             "[dx, dw]")

const char *const gx_rms_norm_bwd_samples[] = {
    /* One element: with a small eps dx is what is left where all of it cancels. */
    NORM_BWD("rms_norm.bwd", "[1]", "1", ", weight: w, eps: 0.5, dx: dx, dweight: dw",
             "[dx, dw]"),
    RMS_NORM_BWD("[7, 5]", "5"),
    RMS_NORM_BWD("[33, 257]", "257"),
    RMS_NORM_BWD("[300, 768]", "768"),
    RMS_NORM_BWD("[9, 8197]", "8197"),
    RMS_NORM_BWD("[0, 4]", "4"),
    NORM_BWD("rms_norm.bwd", "[20, 33]", "33", ", dx: dx, eps: 0.1", "[dx]"),
    NORM_BWD("rms_norm.bwd", "[700, 64]", "64", ", dweight: dw", "[dw]"),
    NULL
};

#define INDEX(shape, first, limit) \
    "  i: {shape: " shape ", dtype: i32, init: {integers: [" first ", " limit "]}}\n"

#define EMBEDDING(rows, width, shape, first, limit)                              \
    GX_SAMPLE(INDEX(shape, first, limit)                                         \
                  GX_SAMPLE_TENSOR("w", "[" rows ", " width "]", "normal"),      \
              GX_SAMPLE_OPS "  - {op: embedding, name: y, table: w, index: i}\n" \
                            "outputs: [y]\n")

#define EMBEDDING_BWD(rows, width, shape, dy_shape, first, limit)                    \
    GX_SAMPLE(INDEX(shape, first, limit) GX_SAMPLE_TENSOR("dy", dy_shape, "normal"), \
              GX_SAMPLE_OPS                                                          \
              "  - {op: embedding.bwd, name: dw, dy: dy, index: i, rows: " rows      \
              "}\noutputs: [dw]\n")

const char *const gx_embedding_samples[] = {
    EMBEDDING("1", "1", "[]", "0", "1"), EMBEDDING("3", "1", "[1]", "0", "3"),
    EMBEDDING("11", "7", "[5, 3]", "0", "11"),
    EMBEDDING("1000", "64", "[2, 3, 50]", "0", "1000"),
    EMBEDDING("40", "2052", "[9]", "0", "40"), EMBEDDING("5", "4", "[0]", "0", "5"),
    EMBEDDING("5", "0", "[3]", "0", "5"),
    GX_SAMPLE(INDEX("[6, 4]", "0", "9") GX_SAMPLE_TENSOR("t", "[6, 4, 3]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[9, 3]", "normal") GX_SAMPLE_OPS
              "  - {op: embedding, name: y, table: w, index: i}\n"
              "  - {op: mse, name: loss, x: y, target: t, reduction: sum}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    /* A table that is read as a weight too. */
    GX_SAMPLE(INDEX("[7]", "0", "5") GX_SAMPLE_LABELS("l", "[7]", "5"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[5, 8]", "normal") GX_SAMPLE_OPS
              "  - {op: embedding, name: h, table: w, index: i}\n"
              "  - {op: gemm, name: y, a: h, b: w, trans_b: true}\n"
              "  - {op: softmax_cross_entropy, name: loss, logits: y, labels: l}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};
/* All indices equal, most equal, few of many rows; a row of the table past a tile. */
const char *const gx_embedding_bwd_samples[] = {
    EMBEDDING_BWD("1", "1", "[]", "[1]", "0", "1"),
    EMBEDDING_BWD("11", "7", "[5, 3]", "[5, 3, 7]", "0", "11"),
    EMBEDDING_BWD("9", "64", "[700]", "[700, 64]", "4", "5"),
    EMBEDDING_BWD("5", "33", "[1100]", "[1100, 33]", "2", "4"),
    EMBEDDING_BWD("3001", "132", "[2, 50]", "[2, 50, 132]", "0", "3001"),
    EMBEDDING_BWD("70", "2052", "[9]", "[9, 2052]", "0", "70"),
    EMBEDDING_BWD("50", "6", "[4100]", "[4100, 6]", "0", "50"),
    EMBEDDING_BWD("5", "4", "[0]", "[0, 4]", "0", "5"),
    EMBEDDING_BWD("5", "0", "[3]", "[3, 0]", "0", "5"),
    NULL
};
