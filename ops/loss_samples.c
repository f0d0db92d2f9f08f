/* Sample models of losses and metrics. */
#include "samples.h"

#include <stddef.h>

/* `more` are further fields of the op, each with a comma before it. Labels start at
 * `first`: where that is not 0 some of them are ignored. */
#define CLASSES_WITH(op, rows, first, classes, out, more)                                \
    GX_SAMPLE(                                                                           \
        GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",                                 \
                         "{normal: {std: 3}}") "  y: {shape: [" rows                     \
                                               "], dtype: i32, init: {integers: [" first \
                                               ", " classes "]}}\n",                     \
        GX_SAMPLE_OPS "  - {op: " op ", name: r, logits: x, labels: y, " out ": z" more  \
                      "}\n"                                                              \
                      "outputs: [z]\n")
#define CLASSES(op, rows, classes, out) CLASSES_WITH(op, rows, "0", classes, out, "")

#define CLASSES_TRAINED(rows, classes)                                              \
    GX_SAMPLE(GX_SAMPLE_LABELS("y", "[" rows "]", classes),                         \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",     \
                                                "{normal: {std: 3}}") GX_SAMPLE_OPS \
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n" \
              "backward: loss\noptimizer: {adamw: {}}\n"                            \
              "metrics: {accuracy: {logits: x, labels: y}}\noutputs: [loss]\n")

#define CLASSES_TRAINED_WITH(rows, first, classes, more)                              \
    GX_SAMPLE("  y: {shape: [" rows "], dtype: i32, init: {integers: [" first         \
              ", " classes "]}}\n",                                                   \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",       \
                                                "{normal: {std: 3}}") GX_SAMPLE_OPS   \
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y" more \
              "}\n"                                                                   \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

#define ALL_CLASSES(op, out)                                                            \
    CLASSES(op, "1", "1", out), CLASSES(op, "1", "2", out), CLASSES(op, "7", "3", out), \
        CLASSES(op, "64", "10", out), CLASSES(op, "5", "1000", out),                    \
        CLASSES(op, "300", "33", out), CLASSES(op, "1025", "2", out)

/* A block to a row, labels of every kind, no row at all. */
#define ALL_VARIANTS(op, out)                                                       \
    CLASSES_WITH(op, "9", "0", "5", out, ", reduction: sum"),                       \
        CLASSES_WITH(op, "600", "-1", "3", out, ", ignore_index: -1"),              \
        CLASSES_WITH(op, "70", "0", "4", out, ", ignore_index: 0, reduction: sum"), \
        CLASSES_WITH(op, "33", "0", "17", out, ", label_smoothing: 0.1"),           \
        CLASSES_WITH(op, "11", "0", "1100", out,                                    \
                     ", ignore_index: 7, label_smoothing: 0.25"),                   \
        CLASSES_WITH(op, "0", "0", "3", out, ", reduction: sum")

const char *const gx_sce_samples[] = {
    ALL_CLASSES("softmax_cross_entropy", "out"),
    ALL_VARIANTS("softmax_cross_entropy", "out"),
    CLASSES_TRAINED_WITH("40", "-1", "6", ", ignore_index: -1, label_smoothing: 0.1"),
    CLASSES_TRAINED_WITH("5", "0", "3", ", reduction: sum, label_smoothing: 1"),
    CLASSES_TRAINED("1", "2"),
    CLASSES_TRAINED("64", "10"),
    CLASSES_TRAINED("33", "257"),
    NULL
};
const char *const gx_sce_bwd_samples[] = {
    ALL_VARIANTS("softmax_cross_entropy.bwd", "dlogits"),
    ALL_CLASSES("softmax_cross_entropy.bwd", "dlogits"), NULL
};
const char *const gx_accuracy_samples[] = { ALL_CLASSES("accuracy", "out"), NULL };

#define POINTS_WITH(op, shape, out, more)                                                \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")                         \
                  GX_SAMPLE_TENSOR("t", shape, "{uniform: [0, 1]}"),                     \
              GX_SAMPLE_OPS "  - {op: " op ", name: r, x: x, target: t, " out ": z" more \
                            "}\noutputs: [z]\n")

#define POINTS_TRAINED(op, shape, more)                                             \
    GX_SAMPLE("  t: {shape: " shape ", dtype: f32, init: {uniform: [0, 1]}}\n",     \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: loss, x: x, target: t" more "}\n"             \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

#define ALL_POINTS(op, out)                                                         \
    POINTS_WITH(op, "[]", out, ""), POINTS_WITH(op, "[1]", out, ""),                \
        POINTS_WITH(op, "[3, 5]", out, ""), POINTS_WITH(op, "[33, 1025]", out, ""), \
        POINTS_WITH(op, "[7, 11]", out, ", reduction: sum"),                        \
        POINTS_WITH(op, "[0, 4]", out, ", reduction: sum")

const char *const gx_mse_samples[] = { ALL_POINTS("mse", "out"),
                                       POINTS_TRAINED("mse", "[7]", ", reduction: sum"),
                                       POINTS_TRAINED("mse", "[1]", ""),
                                       POINTS_TRAINED("mse", "[9, 130]", ""), NULL };
const char *const gx_mse_bwd_samples[] = { ALL_POINTS("mse.bwd", "dx"), NULL };
const char *const gx_l1_samples[] = { ALL_POINTS("l1", "out"),
                                      POINTS_TRAINED("l1", "[7]", ", reduction: sum"),
                                      POINTS_TRAINED("l1", "[9, 130]", ""), NULL };
const char *const gx_l1_bwd_samples[] = { ALL_POINTS("l1.bwd", "dx"), NULL };
const char *const gx_bce_samples[] = {
    ALL_POINTS("bce_with_logits", "out"),
    POINTS_TRAINED("bce_with_logits", "[7]", ", reduction: sum"),
    POINTS_TRAINED("bce_with_logits", "[9, 130]", ""), NULL
};
const char *const gx_bce_bwd_samples[] = { ALL_POINTS("bce_with_logits.bwd", "dx"),
                                           NULL };
