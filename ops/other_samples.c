/* Sample models of losses, metrics, optimizers and the step's own ops. */
#include "samples.h"

#include <stddef.h>

#define CLASSES(op, rows, classes, out)                                              \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]", "{normal: {std: 3}}") \
                  GX_SAMPLE_LABELS("y", "[" rows "]", classes),                      \
              GX_SAMPLE_OPS "  - {op: " op ", name: r, logits: x, labels: y, " out   \
                            ": z}\n"                                                 \
                            "outputs: [z]\n")

#define CLASSES_TRAINED(rows, classes)                                              \
    GX_SAMPLE(GX_SAMPLE_LABELS("y", "[" rows "]", classes),                         \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[" rows ", " classes "]",     \
                                                "{normal: {std: 3}}") GX_SAMPLE_OPS \
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n" \
              "backward: loss\noptimizer: {adamw: {}}\n"                            \
              "metrics: {accuracy: {logits: x, labels: y}}\noutputs: [loss]\n")

#define ALL_CLASSES(op, out)                                                            \
    CLASSES(op, "1", "1", out), CLASSES(op, "1", "2", out), CLASSES(op, "7", "3", out), \
        CLASSES(op, "64", "10", out), CLASSES(op, "5", "1000", out),                    \
        CLASSES(op, "300", "33", out), CLASSES(op, "1025", "2", out)

const char *const gx_sce_samples[] = { ALL_CLASSES("softmax_cross_entropy", "out"),
                                       CLASSES_TRAINED("1", "2"),
                                       CLASSES_TRAINED("64", "10"),
                                       CLASSES_TRAINED("33", "257"), NULL };
const char *const gx_sce_bwd_samples[] = {
    ALL_CLASSES("softmax_cross_entropy.bwd", "dlogits"), NULL
};
const char *const gx_accuracy_samples[] = { ALL_CLASSES("accuracy", "out"), NULL };

#define MSE(op, shape, out)                                                            \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "normal")                                   \
                  GX_SAMPLE_TENSOR("t", shape, "normal"),                              \
              GX_SAMPLE_OPS "  - {op: " op ", name: r, x: x, target: t, " out ": z}\n" \
                            "outputs: [z]\n")

#define MSE_TRAINED(shape)                                                          \
    GX_SAMPLE("  t: {shape: " shape ", dtype: f32, init: normal}\n",                \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: mse, name: loss, x: x, target: t}\n"                        \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

const char *const gx_mse_samples[] = { MSE("mse", "[]", "out"),
                                       MSE("mse", "[1]", "out"),
                                       MSE("mse", "[3, 5]", "out"),
                                       MSE("mse", "[33, 1025]", "out"),
                                       MSE_TRAINED("[1]"),
                                       MSE_TRAINED("[9, 130]"),
                                       NULL };
const char *const gx_mse_bwd_samples[] = { MSE("mse.bwd", "[]", "dx"),
                                           MSE("mse.bwd", "[1]", "dx"),
                                           MSE("mse.bwd", "[3, 5]", "dx"),
                                           MSE("mse.bwd", "[33, 1025]", "dx"), NULL };

/* A parameter of that shape under an optimizer; loss and gradient are plain. */
#define UPDATE(optimizer, shape)                                                    \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                               \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: mse, name: loss, x: x, target: t}\n"                        \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: [loss]\n")

const char *const gx_sgd_samples[] = { UPDATE("sgd: {lr: 0.5}", "[1]"),
                                       UPDATE("sgd: {lr: 0.5, weight_decay: 0.1}",
                                              "[5, 7]"),
                                       UPDATE("sgd: {lr: 0.5}", "[3, 1025]"), NULL };
const char *const gx_adamw_samples[] = {
    UPDATE("adamw: {}", "[1]"), UPDATE("adamw: {lr: 0.01, weight_decay: 0.1}", "[5, 7]"),
    UPDATE("adamw: {beta1: 0, beta2: 0.9, eps: 1.0e-6}", "[3, 1025]"),
    /* Several parameters, odd in size: what updates them at once must find their ends. */
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[4, 3]", "normal")
                  GX_SAMPLE_TENSOR("t", "[4, 1]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w1", "[3, 129]", "he_normal")
                  GX_SAMPLE_TENSOR("b1", "[129]", "zeros")
                      GX_SAMPLE_TENSOR("w2", "[129, 1]", "he_normal")
                          GX_SAMPLE_TENSOR("b2", "[1]", "zeros") GX_SAMPLE_OPS
              "  - {op: gemm, name: h, a: x, b: w1, epilogue: {bias: b1, act: relu}}\n"
              "  - {op: gemm, name: y, a: h, b: w2, epilogue: {bias: b2}}\n"
              "  - {op: mse, name: loss, x: y, target: t}\n"
              "backward: loss\noptimizer: {adamw: {}}\noutputs: [loss]\n"),
    NULL
};

/* gather reads a data set, which is a file: the examples and tests of their own cover it.
 */
const char *const gx_gather_samples[] = { NULL };
/* Every sample above that logs a loss ends with it; this one has no loss at all. */
const char *const gx_step_samples[] = {
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", "[2, 3]", "normal") GX_SAMPLE_LABELS("y", "[2]", "3"),
              GX_SAMPLE_OPS
              "  - {op: relu, name: r, x: a}\n"
              "metrics: {accuracy: {logits: r, labels: y}}\noutputs: [r]\n"),
    NULL
};
