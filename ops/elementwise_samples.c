/* Sample models of what works element by element, with and without broadcasting. */
#include "samples.h"

#include <stddef.h>

#define BINARY(op, a_shape, b_shape)                        \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", a_shape, "normal")      \
                  GX_SAMPLE_TENSOR("b", b_shape, "normal"), \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, a: a, b: b}\noutputs: [y]\n")

/* Both operands are trained: what was broadcast gets sums. */
#define BINARY_TRAINED(op, a_shape, b_shape, out)                        \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", out, "normal"),                      \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("a", a_shape, "normal")  \
                  GX_SAMPLE_TENSOR("b", b_shape, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: y, a: a, b: b}\n"                  \
              "  - {op: mse, name: loss, x: y, target: t}\n"             \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

/* One of each way in which shapes meet. */
#define ALL_BINARY(op)                                                            \
    BINARY(op, "[]", "[]"), BINARY(op, "[1]", "[1]"),                             \
        BINARY(op, "[3, 5, 7]", "[3, 5, 7]"), BINARY(op, "[1027]", "[1027]"),     \
        BINARY(op, "[0, 3]", "[0, 3]"), BINARY(op, "[33, 1032]", "[1032]"),       \
        BINARY(op, "[5]", "[7, 5]"), BINARY(op, "[300, 7]", "[]"),                \
        BINARY(op, "[9, 40]", "[9, 1]"), BINARY(op, "[2, 1, 4, 8]", "[3, 1, 8]"), \
        BINARY(op, "[6, 1, 5]", "[1, 4, 1]"), BINARY(op, "[0, 3]", "[3]"),        \
        BINARY(op, "[4, 1]", "[1, 0]"),                                           \
        BINARY_TRAINED(op, "[5, 6]", "[5, 6]", "[5, 6]"),                         \
        BINARY_TRAINED(op, "[70, 33]", "[33]", "[70, 33]"),                       \
        BINARY_TRAINED(op, "[]", "[9, 7]", "[9, 7]"),                             \
        BINARY_TRAINED(op, "[4, 1, 6]", "[3, 1]", "[4, 3, 6]")

const char *const gx_add_samples[] = {
    ALL_BINARY("add"),
    /* h is read twice, w by both terms: sums on the way back. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[5, 6]", "normal")
                  GX_SAMPLE_TENSOR("t", "[5, 6]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[6, 6]", "he_normal") GX_SAMPLE_OPS
              "  - {op: gemm, name: h, a: x, b: w, epilogue: {act: gelu_tanh}}\n"
              "  - {op: gemm, name: g, a: h, b: w}\n"
              "  - {op: add, name: y, a: g, b: h}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};
const char *const gx_sub_samples[] = { ALL_BINARY("sub"), NULL };
const char *const gx_mul_samples[] = {
    ALL_BINARY("mul"),
    /* A square: both factors are one parameter. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", "[5, 6]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", "[5, 6]", "normal") GX_SAMPLE_OPS
              "  - {op: mul, name: y, a: w, b: w}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};

#define SCALE(shape, factor)                                                       \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal"),                              \
              GX_SAMPLE_OPS "  - {op: scale, name: y, x: x, factor: " factor "}\n" \
                            "outputs: [y]\n")

const char *const gx_scale_samples[] = {
    SCALE("[]", "2"),
    SCALE("[1]", "-0.3"),
    SCALE("[5, 7]", "1e-3"),
    SCALE("[3, 1031]", "0.125"),
    SCALE("[0, 4]", "3"),
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", "[13, 77]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[13, 77]", "normal") GX_SAMPLE_OPS
              "  - {op: scale, name: y, x: x, factor: -1.7}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n"),
    NULL
};
