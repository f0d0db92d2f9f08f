/* Sample models of the ops that move elements, of cast and of dropout. */
#include "samples.h"

#include <stddef.h>

#define ONE(shape, op, more)                          \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal"), \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x" more "}\noutputs: [y]\n")

#define LABELS(shape, op, more)                     \
    GX_SAMPLE(GX_SAMPLE_LABELS("x", shape, "1000"), \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x" more "}\noutputs: [y]\n")

/* x is trained through the op; the target has the result's shape. */
#define TRAINED(shape, result, op, more)                                            \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", result, "normal"),                              \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: y, x: x" more "}\n"                           \
              "  - {op: mse, name: loss, x: y, target: t}\n"                        \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

const char *const gx_transpose_samples[] = {
    ONE("[1, 1]", "transpose", ""),
    ONE("[3, 5]", "transpose", ""),
    ONE("[0, 5]", "transpose", ""),
    ONE("[65, 130]", "transpose", ""),
    ONE("[64, 128]", "transpose", ""),
    ONE("[1026, 1024]", "transpose", ""),
    ONE("[2, 3, 33, 70]", "transpose", ""),
    ONE("[2, 7, 4, 8]", "transpose", ", perm: [0, 2, 1, 3]"),
    ONE("[9, 40, 3, 35]", "transpose", ", perm: [3, 0, -2, 1]"),
    ONE("[2, 3, 1, 2, 3, 2, 1, 5]", "transpose", ", perm: [7, 6, 5, 4, 3, 2, 1, 0]"),
    ONE("[300, 2]", "transpose", ", perm: [1, 0]"),
    ONE("[5, 6]", "transpose", ", perm: [0, 1]"),
    LABELS("[7, 9]", "transpose", ""),
    TRAINED("[3, 4, 5]", "[5, 3, 4]", "transpose", ", perm: [2, 0, 1]"),
    TRAINED("[33, 34]", "[34, 33]", "transpose", ""),
    NULL
};

/* Between two ops the result is a view; of a parameter, and for an output of an input, a
 * copy. */
const char *const gx_reshape_samples[] = {
    ONE("[1]", "reshape", ", shape: []"),
    ONE("[]", "reshape", ", shape: [1, 1]"),
    ONE("[3, 5, 7]", "reshape", ", shape: [-1, 15]"),
    ONE("[1026]", "reshape", ", shape: [2, 3, -1]"),
    ONE("[0, 5]", "reshape", ", shape: [3, 0]"),
    LABELS("[4, 6]", "reshape", ", shape: [24]"),
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[6, 8]", "normal"),
              GX_SAMPLE_OPS "  - {op: relu, name: h, x: x}\n"
                            "  - {op: reshape, name: v, x: h, shape: [12, 4]}\n"
                            "  - {op: reshape, name: w, x: v, shape: [4, 12]}\n"
                            "  - {op: relu, name: a, x: h}\n"
                            "  - {op: transpose, name: b, x: w}\n"
                            "outputs: [a, b, w]\n"),
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[8, 2, 6]", "normal")
                  GX_SAMPLE_LABELS("l", "[2, 4]", "5"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[12, 10]", "he_normal")
                  GX_SAMPLE_TENSOR("v", "[5, 10]", "he_normal") GX_SAMPLE_OPS
              "  - {op: reshape, name: flat, x: x, shape: [8, -1]}\n"
              "  - {op: gemm, name: h, a: flat, b: w}\n"
              "  - {op: reshape, name: r, x: v, shape: [10, 5]}\n"
              "  - {op: reshape, name: g, x: h, shape: [4, 2, 10]}\n"
              "  - {op: relu, name: a, x: g}\n"
              "  - {op: reshape, name: b, x: a, shape: [8, 10]}\n"
              "  - {op: gemm, name: logits, a: b, b: r}\n"
              "  - {op: reshape, name: y, x: l, shape: [8]}\n"
              "  - {op: softmax_cross_entropy, name: loss, logits: logits, labels: y}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    TRAINED("[4, 6]", "[3, 8]", "reshape", ", shape: [3, 8]"),
    NULL
};

#define SLICES(sample)                                                             \
    sample("[1]", "[1]", ""), sample("[7, 5]", "[3, 5]", ", start: 2, stop: 5"),   \
        sample("[6, 40]", "[6, 16]", ", axis: 1, start: 8, stop: 24"),             \
        sample("[6, 37]", "[6, 35]", ", axis: -1, start: 1, stop: -1"),            \
        sample("[5, 9, 4]", "[5, 3, 4]", ", axis: 1, start: 1, stop: 8, step: 3"), \
        sample("[1025]", "[342]", ", start: 1, step: 3")

#define SLICE(shape, result, more) ONE(shape, "slice", more)
#define SLICE_TRAINED(shape, result, more) TRAINED(shape, result, "slice", more)

const char *const gx_slice_samples[] = { SLICES(SLICE),
                                         ONE("[4, 5]", "slice",
                                             ", axis: 1, start: 3, stop: 3"),
                                         ONE("[0, 5]", "slice", ""),
                                         LABELS("[30]", "slice", ", start: 7"),
                                         SLICES(SLICE_TRAINED),
                                         NULL };

#define SLICE_BWD(shape, size, more)                                                     \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal"),                                    \
              GX_SAMPLE_OPS "  - {op: slice.bwd, name: y, dy: x, size: " size more "}\n" \
                            "outputs: [y]\n")

const char *const gx_slice_bwd_samples[] = {
    SLICE_BWD("[1]", "1", ""), SLICE_BWD("[3, 5]", "7", ", start: 2, stop: 5"),
    SLICE_BWD("[6, 16]", "40", ", axis: 1, start: 8, stop: 24"),
    SLICE_BWD("[5, 3, 4]", "9", ", axis: 1, start: 1, stop: 8, step: 3"),
    SLICE_BWD("[342]", "1025", ", start: 1, step: 3"),
    SLICE_BWD("[0, 5]", "6", ", start: 3, stop: 3"), SLICE_BWD("[0]", "0", ""),
    /* Forward it stands behind the epilogue of a gemm whose rows are wide. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[5, 4]", "normal")
                  GX_SAMPLE_TENSOR("t", "[5, 11]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[4, 7]", "normal")
                  GX_SAMPLE_TENSOR("b", "[7]", "normal") GX_SAMPLE_OPS
              "  - {op: gemm, name: y, a: x, b: w, ld: {out: 11}, epilogue: {bias: b, "
              "act: silu}}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};

#define JOIN(a, b, c, more)                                                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a, "normal") GX_SAMPLE_TENSOR("b", b, "normal") \
                  GX_SAMPLE_TENSOR("c", c, "normal"),                               \
              GX_SAMPLE_OPS "  - {op: concat, name: y, x: [a, b, c, a]" more        \
                            "}\noutputs: [y]\n")

const char *const gx_concat_samples[] = {
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", "[1]", "normal"),
              GX_SAMPLE_OPS "  - {op: concat, name: y, x: [a]}\noutputs: [y]\n"),
    JOIN("[1]", "[3]", "[1030]", ""), JOIN("[2, 5]", "[0, 5]", "[7, 5]", ""),
    JOIN("[3, 8]", "[3, 16]", "[3, 40]", ", axis: 1"),
    JOIN("[3, 2, 5]", "[3, 7, 5]", "[3, 0, 5]", ", axis: -2"),
    JOIN("[0, 2]", "[0, 3]", "[0, 4]", ", axis: 1"),
    GX_SAMPLE(GX_SAMPLE_LABELS("a", "[5]", "9") GX_SAMPLE_LABELS("b", "[6]", "9"),
              GX_SAMPLE_OPS "  - {op: concat, name: y, x: [b, a, b, a, b, a, b, a]}\n"
                            "outputs: [y]\n"),
    /* w is a part twice over, and u by way of a slice of its own. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", "[4, 15]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[4, 3]", "normal")
                  GX_SAMPLE_TENSOR("u", "[4, 9]", "normal") GX_SAMPLE_OPS
              "  - {op: slice, name: s, x: u, axis: 1, stop: 5}\n"
              "  - {op: slice, name: r, x: u, axis: 1, start: 5}\n"
              "  - {op: concat, name: y, x: [w, s, w, r], axis: 1}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};

#define CAST(shape, to) ONE(shape, "cast", ", dtype: " to)
#define CAST_LABELS(shape, to) LABELS(shape, "cast", ", dtype: " to)
#define CAST_TRAINED(to)                                                              \
    GX_SAMPLE("  t: {shape: [5, 6], dtype: " to ", init: normal}\n", GX_SAMPLE_PARAMS \
              "  x: {shape: [5, 6], dtype: f32, init: normal}\n" GX_SAMPLE_OPS        \
              "  - {op: cast, name: h, x: x, dtype: " to "}\n"                        \
              "  - {op: relu, name: y, x: h}\n"                                       \
              "  - {op: mse, name: loss, x: y, target: t}\n"                          \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n"                         \
              "outputs: [loss]\n")

const char *const gx_cast_samples[] = {
    CAST("[]", "f32"),
    CAST("[3, 5]", "bf16"),
    CAST("[1025]", "f32"),
    CAST("[1025]", "bf16"),
    CAST("[0, 3]", "bf16"),
    CAST("[3, 5]", "f16"),
    CAST("[1025]", "f16"),
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[1027]", "{normal: {std: 100}}"),
              GX_SAMPLE_OPS "  - {op: cast, name: y, x: x, dtype: i32}\noutputs: [y]\n"),
    CAST_LABELS("[7]", "i32"),
    CAST_LABELS("[259]", "f32"),
    CAST_LABELS("[260]", "bf16"),
    CAST_LABELS("[261]", "f16"),
    CAST_TRAINED("bf16"),
    CAST_TRAINED("f16"),
    NULL
};

#define DROPOUT(shape, more) ONE(shape, "dropout", more)

const char *const gx_dropout_samples[] = {
    DROPOUT("[]", ""), DROPOUT("[3]", ", p: 0.1"), DROPOUT("[7, 9]", ", p: 0.25"),
    DROPOUT("[1025]", ""), DROPOUT("[64, 64]", ", p: 0.9"), DROPOUT("[0, 4]", ""),
    DROPOUT("[33]", ", p: 0"), DROPOUT("[33]", ", p: 1"),
    DROPOUT("[33]", ", p: 0.5, stream: 7"),
    TRAINED("[65, 3]", "[65, 3]", "dropout", ", p: 0.3"),
    /* Two masks, and h is read twice. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[9, 12]", "normal")
                  GX_SAMPLE_TENSOR("t", "[9, 12]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[12, 12]", "he_normal")
                  GX_SAMPLE_OPS
              "  - {op: gemm, name: h, a: x, b: w, epilogue: {act: gelu_tanh}}\n"
              "  - {op: dropout, name: d, x: h, p: 0.2}\n"
              "  - {op: gemm, name: g, a: d, b: w}\n"
              "  - {op: dropout, name: e, x: g, p: 0.4}\n"
              "  - {op: add, name: y, a: h, b: e}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {adamw: {lr: 1e-3}}\noutputs: [loss]\n"),
    NULL
};
