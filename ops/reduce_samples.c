/* Sample models of sums, means, maxima and softmax. */
#include "samples.h"

#include <stddef.h>

#define REDUCE(op, shape, fields)                                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal"),                     \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x" fields "}\n" \
                            "outputs: [y]\n")

#define REDUCE_TRAINED(op, shape, fields, out)                                      \
    GX_SAMPLE("  t: {shape: " out ", dtype: f32, init: normal}\n",                  \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: y, x: x" fields "}\n"                         \
              "  - {op: mse, name: loss, x: y, target: t}\n"                        \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

/* It is the loss itself. */
#define REDUCE_LOSS(op, shape, fields)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", shape, "normal"),                               \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: sub, name: d, a: x, b: a}\n"                                \
              "  - {op: mul, name: d2, a: d, b: d}\n"                               \
              "  - {op: " op ", name: loss, x: d2" fields "}\n"                     \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

#define TOTAL_BWD(op, dy, shape, fields)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("dy", dy, "normal"),                                   \
              GX_SAMPLE_OPS "  - {op: " op ", name: dx, dy: dy, shape: " shape fields \
                            "}\noutputs: [dx]\n")

const char *const gx_sum_samples[] = {
    REDUCE("sum", "[]", ""),
    REDUCE("sum", "[1]", ""),
    REDUCE("sum", "[1031]", ", axis: 0"),
    REDUCE("sum", "[5, 7]", ", axis: 1"),
    REDUCE("sum", "[5, 7]", ", axis: 0, keepdim: true"),
    REDUCE("sum", "[33, 1032]", ", axis: -1"),
    REDUCE("sum", "[1030, 33]", ", axis: 0"),
    REDUCE("sum", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    REDUCE("sum", "[3, 4, 5, 8]", ", axis: [1, -1]"),
    REDUCE("sum", "[4, 1, 6]", ", axis: [0, 1], keepdim: true"),
    REDUCE("sum", "[3000, 4]", ", axis: 1"),
    REDUCE("sum", "[7, 3000, 12]", ", axis: 1"),
    REDUCE("sum", "[100000]", ""),
    REDUCE("sum", "[50001, 3]", ", axis: 0"),
    REDUCE("sum", "[2, 70000]", ", axis: 1"),
    REDUCE("sum", "[0, 3]", ", axis: 1"),
    REDUCE("sum", "[0, 3]", ", axis: 0"),
    REDUCE("sum", "[0, 3]", ""),
    REDUCE_TRAINED("sum", "[5, 7]", ", axis: 1", "[5]"),
    REDUCE_TRAINED("sum", "[2, 5, 4]", ", axis: [0, 2], keepdim: true", "[1, 5, 1]"),
    REDUCE_TRAINED("sum", "[33, 36]", ", axis: 0", "[36]"),
    REDUCE_TRAINED("sum", "[3, 8]", ", dtype: f32", "[]"),
    REDUCE_LOSS("sum", "[6, 5]", ", dtype: f32"),
    NULL
};

const char *const gx_mean_samples[] = {
    REDUCE("mean", "[]", ""),
    REDUCE("mean", "[1]", ""),
    REDUCE("mean", "[1031]", ", axis: 0"),
    REDUCE("mean", "[5, 7]", ", axis: 1"),
    REDUCE("mean", "[5, 7]", ", axis: 0, keepdim: true"),
    REDUCE("mean", "[33, 1032]", ", axis: -1"),
    REDUCE("mean", "[1030, 33]", ", axis: 0"),
    REDUCE("mean", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    REDUCE("mean", "[3, 4, 5, 8]", ", axis: [1, -1]"),
    REDUCE("mean", "[4, 1, 6]", ", axis: [0, 1], keepdim: true"),
    REDUCE("mean", "[3000, 4]", ", axis: 1"),
    REDUCE("mean", "[7, 3000, 12]", ", axis: 1"),
    REDUCE("mean", "[100000]", ""),
    REDUCE("mean", "[50001, 3]", ", axis: 0"),
    REDUCE("mean", "[2, 70000]", ", axis: 1"),
    REDUCE("mean", "[0, 3]", ", axis: 1"),
    REDUCE_TRAINED("mean", "[5, 7]", ", axis: 1", "[5]"),
    REDUCE_TRAINED("mean", "[4, 5, 6]", ", axis: [0, 2], keepdim: true", "[1, 5, 1]"),
    REDUCE_TRAINED("mean", "[33, 9]", ", axis: 0", "[9]"),
    REDUCE_TRAINED("mean", "[9, 40]", ", dtype: f32", "[]"),
    REDUCE_LOSS("mean", "[6, 5]", ", dtype: f32"),
    NULL
};

const char *const gx_max_samples[] = {
    REDUCE("max", "[]", ""),
    REDUCE("max", "[1]", ""),
    REDUCE("max", "[1031]", ", axis: 0"),
    REDUCE("max", "[5, 7]", ", axis: 1"),
    REDUCE("max", "[5, 7]", ", axis: 0, keepdim: true"),
    REDUCE("max", "[33, 1032]", ", axis: -1"),
    REDUCE("max", "[1030, 33]", ", axis: 0"),
    REDUCE("max", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    REDUCE("max", "[3, 4, 5, 8]", ", axis: [1, -1]"),
    REDUCE("max", "[4, 1, 6]", ", axis: [0, 1], keepdim: true"),
    REDUCE("max", "[3000, 4]", ", axis: 1"),
    REDUCE("max", "[7, 3000, 12]", ", axis: 1"),
    REDUCE("max", "[100000]", ""),
    REDUCE("max", "[50001, 3]", ", axis: 0"),
    REDUCE("max", "[2, 70000]", ", axis: 1"),
    REDUCE("max", "[0, 3]", ", axis: 1"),
    REDUCE_TRAINED("max", "[5, 7]", ", axis: 1", "[5]"),
    REDUCE_TRAINED("max", "[4, 5, 6]", ", axis: [0, 2], keepdim: true", "[1, 5, 1]"),
    REDUCE_TRAINED("max", "[33, 9]", ", axis: 0", "[9]"),
    NULL
};

const char *const gx_sum_bwd_samples[] = {
    TOTAL_BWD("sum.bwd", "[]", "[]", ""),
    TOTAL_BWD("sum.bwd", "[5]", "[5, 7]", ", axis: 1"),
    TOTAL_BWD("sum.bwd", "[1, 1032]", "[33, 1032]", ", axis: 0, keepdim: true"),
    TOTAL_BWD("sum.bwd", "[4, 6]", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    TOTAL_BWD("sum.bwd", "[]", "[1031]", ""),
    TOTAL_BWD("sum.bwd", "[7]", "[7, 0]", ", axis: 1"),
    NULL
};

const char *const gx_mean_bwd_samples[] = {
    TOTAL_BWD("mean.bwd", "[]", "[]", ""),
    TOTAL_BWD("mean.bwd", "[5]", "[5, 7]", ", axis: 1"),
    TOTAL_BWD("mean.bwd", "[1, 1032]", "[33, 1032]", ", axis: 0, keepdim: true"),
    TOTAL_BWD("mean.bwd", "[4, 6]", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    TOTAL_BWD("mean.bwd", "[]", "[1031]", ""),
    TOTAL_BWD("mean.bwd", "[7]", "[7, 0]", ", axis: 1"),
    NULL
};

/* Whole numbers: many are equal to the maximum. */
#define MAX_BWD(dy, shape, fields)                                                  \
    GX_SAMPLE(GX_SAMPLE_TENSOR("dy", dy, "normal")                                  \
                  GX_SAMPLE_TENSOR("x", shape, "{integers: [-2, 3]}"),              \
              GX_SAMPLE_OPS "  - {op: max, name: y, x: x" fields "}\n"              \
                            "  - {op: max.bwd, name: dx, dy: dy, x: x, y: y" fields \
                            "}\n"                                                   \
                            "outputs: [dx]\n")

const char *const gx_max_bwd_samples[] = {
    MAX_BWD("[]", "[]", ""),
    MAX_BWD("[5]", "[5, 7]", ", axis: 1"),
    MAX_BWD("[1, 1032]", "[33, 1032]", ", axis: 0, keepdim: true"),
    MAX_BWD("[4, 6]", "[3, 4, 5, 6]", ", axis: [0, 2]"),
    MAX_BWD("[]", "[100001]", ""),
    NULL
};

#define SHAPED(op, from, to)                                                   \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", from, "normal"),                           \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x, shape: " to "}\n" \
                            "outputs: [y]\n")

#define SHAPED_TRAINED(op, from, to)                                               \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", to, "normal"),                                 \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", from, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: y, x: x, shape: " to "}\n"                   \
              "  - {op: mse, name: loss, x: y, target: t}\n"                       \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

const char *const gx_sum_to_samples[] = { SHAPED("sum_to", "[5, 7]", "[7]"),
                                          SHAPED("sum_to", "[5, 7]", "[5, 1]"),
                                          SHAPED("sum_to", "[3, 4, 8]", "[1, 8]"),
                                          SHAPED("sum_to", "[5, 7]", "[]"),
                                          SHAPED("sum_to", "[5, 7]", "[5, 7]"),
                                          SHAPED("sum_to", "[0, 7]", "[7]"),
                                          SHAPED_TRAINED("sum_to", "[3, 4, 5]", "[1, 5]"),
                                          NULL };
const char *const gx_broadcast_to_samples[] = {
    SHAPED("broadcast_to", "[7]", "[5, 7]"),
    SHAPED("broadcast_to", "[5, 1]", "[5, 1032]"),
    SHAPED("broadcast_to", "[1, 8]", "[3, 4, 8]"),
    SHAPED("broadcast_to", "[]", "[5, 7]"),
    SHAPED("broadcast_to", "[5, 7]", "[5, 7]"),
    SHAPED("broadcast_to", "[7]", "[0, 7]"),
    SHAPED_TRAINED("broadcast_to", "[1, 5]", "[3, 4, 5]"),
    NULL
};

#define SOFTMAX(shape, fields)                                                  \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 3}}"), GX_SAMPLE_OPS \
              "  - {op: softmax, name: y, x: x" fields "}\noutputs: [y]\n")

#define SOFTMAX_TRAINED(shape, fields)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                               \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: softmax, name: y, x: x" fields "}\n"                        \
              "  - {op: mse, name: loss, x: y, target: t}\n"                        \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

#define SOFTMAX_BWD(shape, fields)                                                      \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal")                                    \
                  GX_SAMPLE_TENSOR("dy", shape, "normal"),                              \
              GX_SAMPLE_OPS "  - {op: softmax, name: y, x: x" fields "}\n"              \
                            "  - {op: softmax.bwd, name: dx, dy: dy, y: y" fields "}\n" \
                            "outputs: [dx]\n")

const char *const gx_softmax_samples[] = { SOFTMAX("[]", ""),
                                           SOFTMAX("[1]", ""),
                                           SOFTMAX("[5, 7]", ""),
                                           SOFTMAX("[3, 64, 32]", ""),
                                           SOFTMAX("[5, 1000]", ""),
                                           SOFTMAX("[3, 1031]", ""),
                                           SOFTMAX("[2, 5000]", ""),
                                           SOFTMAX("[0, 3]", ""),
                                           SOFTMAX("[3, 0]", ""),
                                           SOFTMAX("[5, 7, 33]", ", axis: 1"),
                                           SOFTMAX("[300, 4]", ", axis: 0"),
                                           SOFTMAX_TRAINED("[9, 33]", ""),
                                           SOFTMAX_TRAINED("[4, 6, 5]", ", axis: -2"),
                                           NULL };
const char *const gx_softmax_bwd_samples[] = { SOFTMAX_BWD("[1]", ""),
                                               SOFTMAX_BWD("[5, 7]", ""),
                                               SOFTMAX_BWD("[64, 128]", ""),
                                               SOFTMAX_BWD("[3, 1031]", ""),
                                               SOFTMAX_BWD("[2, 5000]", ""),
                                               SOFTMAX_BWD("[5, 7, 33]", ", axis: 1"),
                                               NULL };
