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

#define CLASSES_TRAINED_WITH(rows, first, classes, more) \
    CLASSES_TRAINED_BY("sgd: {lr: 0.1}", rows, first, classes, more)
#define CLASSES_TRAINED_BY(optimizer, rows, first, classes, more)                     \
    GX_SAMPLE("  y: {shape: [" rows "], dtype: i32, init: {integers: [" first         \
              ", " classes "]}}\n",                                                   \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",       \
                                                "{normal: {std: 3}}") GX_SAMPLE_OPS   \
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y" more \
              "}\n"                                                                   \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: [loss]\n")

/* The gradient of the loss is a scale, a power of two or not. */
#define SCALE(value) "  s: {shape: [], dtype: f32, init: {constant: " value "}}\n"
#define CLASSES_SCALED(rows, first, classes, scale, more)                                \
    GX_SAMPLE(                                                                           \
        GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",                                 \
                         "{normal: {std: 3}}") "  y: {shape: [" rows                     \
                                               "], dtype: i32, init: {integers: [" first \
                                               ", " classes "]}}\n" SCALE(scale),        \
        GX_SAMPLE_OPS "  - {op: softmax_cross_entropy.bwd, name: r, logits: x, "         \
                      "labels: y, dy: s, dlogits: z" more "}\noutputs: [z]\n")

/* The end of a classifier: a product, a bias, the loss and all gradients. `gemm` are
 * further fields of the product, `loss` of the loss and `more` of the optimizer. */
#define CLASSES_HEAD(rows, k, w, classes, first, gemm, loss, more)                    \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" rows ", " k "]",                              \
                               "normal") "  y: {shape: [" rows                        \
                                         "], dtype: i32, init: {integers: [" first    \
                                         ", " classes "]}}\n",                        \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", w, "{normal: {std: 0.3}}")       \
                  GX_SAMPLE_TENSOR("b", "[" classes "]", "normal") GX_SAMPLE_OPS      \
              "  - {op: gemm, name: fc, a: x, b: w" gemm ", out: z}\n"                \
              "  - {op: softmax_cross_entropy, name: loss, logits: z, labels: y" loss \
              "}\n"                                                                   \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}" more "}\noutputs: [loss]\n")
#define BIAS ", epilogue: {bias: b}"
#define SEEN "}\nmetrics: {accuracy: {logits: z, labels: y}"

/* The same behind a bias alone. */
#define CLASSES_BIAS(rows, classes, first, loss)                                      \
    GX_SAMPLE(                                                                        \
        "  y: {shape: [" rows "], dtype: i32, init: {integers: [" first ", " classes  \
        "]}}\n",                                                                      \
        GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]", "normal")   \
            GX_SAMPLE_TENSOR("b", "[" classes "]", "normal") GX_SAMPLE_OPS            \
        "  - {op: epilogue, name: e, x: x, bias: b, out: z}\n"                        \
        "  - {op: softmax_cross_entropy, name: loss, logits: z, labels: y" loss "}\n" \
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
    CLASSES_TRAINED_BY("sgd: {lr: 0.1}, loss_scale: 96", "40", "-1", "6",
                       ", ignore_index: -1, label_smoothing: 0.1"),
    CLASSES_TRAINED("1", "2"), CLASSES_TRAINED("64", "10"), CLASSES_TRAINED("33", "257"),
    /* In one kernel: one row, rows that fill no block, many blocks; classes that are odd,
     * that fill pieces, and too many; operands that lie in every way. */
    CLASSES_HEAD("1", "4", "[4, 2]", "2", "0", BIAS, "", ""),
    CLASSES_HEAD("5", "12", "[12, 3]", "3", "0", BIAS, "", ""),
    CLASSES_HEAD("20", "7", "[7, 10]", "10", "0", BIAS, "", SEEN),
    CLASSES_HEAD("33", "20", "[7, 20]", "7", "0", ", trans_b: true" BIAS, "", SEEN),
    CLASSES_HEAD("12", "12", "[12, 20]", "20", "0", ", trans_a: true" BIAS, "", ""),
    CLASSES_HEAD("300", "16", "[16, 34]", "34", "0", BIAS, ", label_smoothing: 0.1", ""),
    CLASSES_HEAD("40", "24", "[24, 128]", "128", "0", BIAS, ", reduction: sum", ""),
    CLASSES_HEAD("17", "8", "[130, 8]", "130", "0", ", trans_b: true" BIAS, "", ""),
    CLASSES_HEAD("70", "36", "[36, 6]", "6", "-1", BIAS,
                 ", ignore_index: -1, label_smoothing: 0.1", ", loss_scale: 96"),
    CLASSES_HEAD("600", "9", "[9, 5]", "5", "0", ", epilogue: {bias: b, scale: 2}", "",
                 ""),
    CLASSES_HEAD("33", "40", "[40, 24]", "24", "0", "", "", ""),
    /* Rows wider than what is used of them: vectors fit, or they do not. */
    CLASSES_HEAD("33", "24", "[20, 12]", "10", "0", ", n: 10, ld: {a: 24, b: 12}" BIAS,
                 "", ""),
    CLASSES_HEAD("20", "9", "[8, 11]", "10", "0", ", n: 10, ld: {a: 9, b: 11}" BIAS, "",
                 ""),
    CLASSES_HEAD("20", "8", "[10, 14]", "10", "0", ", trans_b: true, ld: {b: 14}" BIAS,
                 "", ""),
    CLASSES_HEAD("9", "13", "[10, 16]", "10", "0",
                 ", trans_b: true, k: 12, ld: {a: 13, b: 16}" BIAS, "", ""),
    CLASSES_BIAS("1", "3", "0", ""),
    CLASSES_BIAS("1025", "2", "-1", ", ignore_index: -1"),
    CLASSES_BIAS("300", "33", "0", ", reduction: sum, label_smoothing: 0.25"),
    CLASSES_BIAS("33", "1024", "0", ""), CLASSES_BIAS("5", "1100", "0", ""),
    CLASSES_HEAD("64", "256", "[256, 10]", "10", "0", BIAS, "", ""), NULL
};
const char *const gx_sce_bwd_samples[] = {
    ALL_VARIANTS("softmax_cross_entropy.bwd", "dlogits"),
    ALL_CLASSES("softmax_cross_entropy.bwd", "dlogits"),
    CLASSES_SCALED("64", "0", "10", "1024", ""),
    CLASSES_SCALED("70", "-1", "33", "0.75", ", ignore_index: -1, label_smoothing: 0.1"),
    CLASSES_SCALED("3", "0", "1100", "24", ", reduction: sum"),
    NULL
};
const char *const gx_accuracy_samples[] = { ALL_CLASSES("accuracy", "out"), NULL };

/* Coarse logits, so that many are equal. */
#define TOPK(rows, classes, k, init)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]", init)              \
                  GX_SAMPLE_LABELS("y", "[" rows "]", classes),                   \
              GX_SAMPLE_OPS "  - {op: topk, name: r, logits: x, labels: y, k: " k \
                            ", out: z}\noutputs: [z]\n")
#define COARSE "{integers: [0, 4]}"

const char *const gx_topk_samples[] = {
    TOPK("1", "1", "1", "normal"),      TOPK("1", "2", "2", "normal"),
    TOPK("7", "3", "2", "normal"),      TOPK("64", "10", "5", "normal"),
    TOPK("64", "10", "1", "normal"),    TOPK("64", "10", "3", COARSE),
    TOPK("5", "1000", "100", "normal"), TOPK("300", "33", "4", COARSE),
    TOPK("1025", "2", "1", "normal"),   NULL
};

#define PERPLEXITY(init)                                               \
    GX_SAMPLE("  l: {shape: [], dtype: f32, init: " init "}\n",        \
              GX_SAMPLE_OPS "  - {op: perplexity, name: r, loss: l}\n" \
                            "outputs: [r]\n")

const char *const gx_perplexity_samples[] = {
    PERPLEXITY("zeros"),
    PERPLEXITY("normal"),
    PERPLEXITY("{constant: 9.5}"),
    PERPLEXITY("{constant: -3}"),
    GX_SAMPLE(GX_SAMPLE_LABELS("y", "[33]", "5"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[33, 5]", "normal") GX_SAMPLE_OPS
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n"
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n"
              "metrics: {perplexity: {loss: loss}, topk: {logits: x, labels: y, k: 2}}\n"
              "outputs: [loss]\n"),
    NULL
};

#define POINTS_WITH(op, shape, out, more)                                                \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")                         \
                  GX_SAMPLE_TENSOR("t", shape, "{uniform: [0, 1]}"),                     \
              GX_SAMPLE_OPS "  - {op: " op ", name: r, x: x, target: t, " out ": z" more \
                            "}\noutputs: [z]\n")

#define POINTS_SCALED(op, shape, scale, more)                                     \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")                  \
                  GX_SAMPLE_TENSOR("t", shape, "{uniform: [0, 1]}") SCALE(scale), \
              GX_SAMPLE_OPS "  - {op: " op                                        \
                            ", name: r, x: x, target: t, dy: s, dx: z" more       \
                            "}\noutputs: [z]\n")
#define ALL_SCALED(op)                                                            \
    POINTS_SCALED(op, "[]", "1024", ""), POINTS_SCALED(op, "[3, 5]", "0.75", ""), \
        POINTS_SCALED(op, "[33, 1025]", "4096", ""),                              \
        POINTS_SCALED(op, "[7, 11]", "24", ", reduction: sum")

#define POINTS_TRAINED(op, shape, more) \
    POINTS_TRAINED_BY("sgd: {lr: 0.1}", op, shape, more)
#define POINTS_TRAINED_BY(optimizer, op, shape, more)                               \
    GX_SAMPLE("  t: {shape: " shape ", dtype: f32, init: {uniform: [0, 1]}}\n",     \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: " op ", name: loss, x: x, target: t" more "}\n"             \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: [loss]\n")
#define POINTS_TRAINED_SCALED(op) \
    POINTS_TRAINED_BY("sgd: {lr: 0.1}, loss_scale: 96", op, "[9, 130]", "")

/* The end of a regression, and the same behind a bias alone. */
#define POINTS_HEAD(op, a, w, out, n, gemm, more)                                      \
    GX_SAMPLE(                                                                         \
        GX_SAMPLE_TENSOR("x", a, "normal") "  t: {shape: " out                         \
                                           ", dtype: f32, init: {uniform: [0, 1]}}\n", \
        GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w", w, "{normal: {std: 0.3}}")              \
            GX_SAMPLE_TENSOR("b", "[" n "]", "normal") GX_SAMPLE_OPS                   \
        "  - {op: gemm, name: fc, a: x, b: w" gemm ", out: z}\n"                       \
        "  - {op: " op ", name: loss, x: z, target: t}\n"                              \
        "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [" more "loss]\n")
#define POINTS_BIAS(op, shape, n, loss)                                                \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "{uniform: [0, 1]}"),                       \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal")                  \
                  GX_SAMPLE_TENSOR("b", "[" n "]", "normal") GX_SAMPLE_OPS             \
              "  - {op: epilogue, name: e, x: x, bias: b, out: z}\n"                   \
              "  - {op: " op ", name: loss, x: z, target: t" loss "}\n"                \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}, loss_scale: 96}\noutputs: " \
              "[loss]\n")

#define ALL_POINTS(op, out)                                                         \
    POINTS_WITH(op, "[]", out, ""), POINTS_WITH(op, "[1]", out, ""),                \
        POINTS_WITH(op, "[3, 5]", out, ""), POINTS_WITH(op, "[33, 1025]", out, ""), \
        POINTS_WITH(op, "[7, 11]", out, ", reduction: sum"),                        \
        POINTS_WITH(op, "[0, 4]", out, ", reduction: sum")

const char *const gx_mse_samples[] = {
    ALL_POINTS("mse", "out"),
    POINTS_WITH("mse", "[70, 1025]", "out", ""),
    POINTS_TRAINED("mse", "[7]", ", reduction: sum"),
    POINTS_TRAINED("mse", "[1]", ""),
    POINTS_TRAINED("mse", "[9, 130]", ""),
    POINTS_TRAINED_SCALED("mse"),
    POINTS_BIAS("mse", "[1, 1]", "1", ""),
    POINTS_BIAS("mse", "[3, 65]", "65", ", reduction: sum"),
    POINTS_BIAS("mse", "[3, 100, 5]", "5", ""),
    POINTS_HEAD("mse", "[1, 1]", "[1, 1]", "[1, 1]", "1", BIAS, ""),
    POINTS_HEAD("mse", "[33, 20]", "[20, 7]", "[33, 7]", "7", BIAS, ""),
    POINTS_HEAD("mse", "[70, 64]", "[64, 40]", "[70, 40]", "40", BIAS, "z, "),
    POINTS_HEAD("mse", "[3, 20, 12]", "[50, 12]", "[3, 20, 50]", "50",
                ", trans_b: true" BIAS, ""),
    POINTS_HEAD("mse", "[20, 12]", "[12, 34]", "[20, 34]", "34", "", ""),
    POINTS_HEAD("mse", "[32, 128]", "[128, 96]", "[32, 96]", "96", BIAS, ""),
    NULL
};
const char *const gx_mse_bwd_samples[] = { ALL_POINTS("mse.bwd", "dx"),
                                           ALL_SCALED("mse.bwd"), NULL };
const char *const gx_l1_samples[] = { ALL_POINTS("l1", "out"),
                                      POINTS_TRAINED("l1", "[7]", ", reduction: sum"),
                                      POINTS_TRAINED("l1", "[9, 130]", ""),
                                      POINTS_TRAINED_SCALED("l1"),
                                      POINTS_BIAS("l1", "[33, 65]", "65", ""),
                                      NULL };
const char *const gx_l1_bwd_samples[] = { ALL_POINTS("l1.bwd", "dx"),
                                          ALL_SCALED("l1.bwd"), NULL };
const char *const gx_bce_samples[] = {
    ALL_POINTS("bce_with_logits", "out"),
    POINTS_TRAINED("bce_with_logits", "[7]", ", reduction: sum"),
    POINTS_TRAINED("bce_with_logits", "[9, 130]", ""),
    POINTS_TRAINED_SCALED("bce_with_logits"),
    POINTS_BIAS("bce_with_logits", "[33, 6]", "6", ""),
    POINTS_HEAD("bce_with_logits", "[40, 24]", "[24, 18]", "[40, 18]", "18", BIAS, ""),
    NULL
};
const char *const gx_bce_bwd_samples[] = { ALL_POINTS("bce_with_logits.bwd", "dx"),
                                           ALL_SCALED("bce_with_logits.bwd"), NULL };
