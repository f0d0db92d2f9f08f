/* Sample models of optimizers and the step's own ops. */
#include "samples.h"

#include <stddef.h>

/* A parameter of that shape under an optimizer; loss and gradient are plain. */
#define UPDATE_OUT(optimizer, shape, outputs)                                       \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                               \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "normal") GX_SAMPLE_OPS \
              "  - {op: mse, name: loss, x: x, target: t}\n"                        \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: " outputs "\n")
#define UPDATE(optimizer, shape) UPDATE_OUT(optimizer, shape, "[loss]")

/* Several parameters, odd in size: what updates them at once must find their ends. */
#define UPDATE_ALL(optimizer, outputs)                                                  \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", "[4, 3]", "normal")                                 \
                  GX_SAMPLE_TENSOR("t", "[4, 1]", "normal"),                            \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("w1", "[3, 129]", "he_normal")          \
                  GX_SAMPLE_TENSOR("b1", "[129]", "zeros")                              \
                      GX_SAMPLE_TENSOR("w2", "[129, 1]", "he_normal")                   \
                          GX_SAMPLE_TENSOR("b2", "[1]", "zeros") GX_SAMPLE_OPS          \
              "  - {op: gemm, name: h, a: x, b: w1, epilogue: {bias: b1, act: relu}}\n" \
              "  - {op: gemm, name: y, a: h, b: w2, epilogue: {bias: b2}}\n"            \
              "  - {op: mse, name: loss, x: y, target: t}\n"                            \
              "backward: loss\noptimizer: {" optimizer "}\noutputs: " outputs "\n")

/* With the usual eps Adam's first steps go by the sign of the gradient alone, which a
 * rounding turns where it is near zero. */
#define STEADY "eps: 0.01"
#define GROUPS(decay) "groups: [{params: [\"b*\"], weight_decay: " decay ", lr: 0.03}]"

const char *const gx_sgd_samples[] = {
    UPDATE("sgd: {lr: 0.5}", "[1]"),
    UPDATE("sgd: {lr: 0.5, weight_decay: 0.1}", "[5, 7]"),
    UPDATE("sgd: {lr: 0.5}", "[3, 1025]"),
    UPDATE("sgd: {lr: 0.5, weight_decay: 0.1}, master: f32", "[3, 1025]"),
    UPDATE_ALL("sgd: {lr: 0.05, weight_decay: 0.1}, clip_norm: 0.1, " GROUPS("0"),
               "[loss]"),
    NULL
};
const char *const gx_momentum_samples[] = {
    UPDATE("momentum: {lr: 0.1}", "[1]"),
    UPDATE("momentum: {lr: 0.1, momentum: 0.5, dampening: 0.3, weight_decay: 0.1}",
           "[5, 7]"),
    UPDATE("momentum: {lr: 0.1}, accumulate: 2", "[3, 1025]"),
    UPDATE("momentum: {lr: 0.1}, moments: f32", "[3, 1025]"),
    UPDATE_ALL("momentum: {lr: 0.02}, " GROUPS("0.2"), "[loss]"),
    NULL
};
const char *const gx_nesterov_samples[] = {
    UPDATE("nesterov: {lr: 0.1}", "[1]"),
    UPDATE("nesterov: {lr: 0.1, momentum: 0.5, weight_decay: 0.1}", "[5, 7]"),
    UPDATE("nesterov: {lr: 0.1}", "[3, 1025]"),
    UPDATE("nesterov: {lr: 0.1}, master: f32, moments: param", "[3, 1025]"),
    UPDATE_ALL("nesterov: {lr: 0.02}, " GROUPS("0.2"), "[loss]"),
    NULL
};
const char *const gx_adam_samples[] = {
    UPDATE("adam: {}", "[1]"),
    UPDATE("adam: {lr: 0.01, weight_decay: 0.1}", "[5, 7]"),
    UPDATE("adam: {beta1: 0, beta2: 0.9, eps: 1.0e-6}, accumulate: 3", "[3, 1025]"),
    UPDATE("adam: {}, master: f32, accumulate: 2", "[3, 1025]"),
    UPDATE_ALL("adam: {" STEADY "}, " GROUPS("0.2"), "[loss]"),
    NULL
};
const char *const gx_adamw_samples[] = {
    UPDATE("adamw: {}", "[1]"), UPDATE("adamw: {lr: 0.01, weight_decay: 0.1}", "[5, 7]"),
    UPDATE("adamw: {beta1: 0, beta2: 0.9, eps: 1.0e-6}", "[3, 1025]"),
    UPDATE_ALL("adamw: {" STEADY "}", "[loss]"),
    UPDATE_ALL("adamw: {" STEADY
               "}, master: f32, moments: f32, clip_norm: 0.1, " GROUPS("0.2"),
               "[loss]"),
    /* All that there is at once. */
    UPDATE_ALL(
        "adamw: {" STEADY "}, schedule: {cosine: {steps: 4, warmup: 2}}, clip_norm: 0.5, "
        "accumulate: 2, groups: [{params: b1, lr: 0.03}, {params: b2, beta1: 0.8}, "
        "{params: w1, weight_decay: 0.3}]",
        "[loss, gexec.rate, gexec.rate.1, gexec.grad_norm, gexec.clip]"),
    /* More groups than a launch has room for. */
    GX_SAMPLE(
        GX_SAMPLE_TENSOR("t", "[7]", "normal"),
        GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("a", "[7]", "normal")
            GX_SAMPLE_TENSOR("b", "[7]", "normal") GX_SAMPLE_TENSOR("c", "[7]", "normal")
                GX_SAMPLE_TENSOR("d", "[7]", "normal")
                    GX_SAMPLE_TENSOR("e", "[7]", "normal") GX_SAMPLE_OPS
        "  - {op: add, name: ab, a: a, b: b}\n  - {op: add, name: cd, a: c, b: d}\n"
        "  - {op: add, name: abcd, a: ab, b: cd}\n"
        "  - {op: add, name: all, a: abcd, b: e}\n"
        "  - {op: mse, name: loss, x: all, target: t}\nbackward: loss\n"
        "optimizer: {adamw: {}, groups: [{params: b, lr: 0.1}, {params: c, lr: "
        "0.01}, {params: d, beta2: 0.9}, {params: e, eps: 0.1}]}\noutputs: [loss]\n"),
    NULL
};

const char *const gx_accumulate_samples[] = {
    UPDATE("sgd: {lr: 0.5}, accumulate: 2", "[1]"),
    UPDATE("sgd: {lr: 0.5}, accumulate: 3", "[5, 7]"),
    UPDATE("sgd: {lr: 0.5}, accumulate: 5", "[3, 1025]"),
    UPDATE("sgd: {lr: 0.5}, accumulate: 2", "[33, 1025]"),
    UPDATE_ALL("sgd: {lr: 0.05}, accumulate: 2", "[loss]"),
    NULL
};

#define NORM "metrics: {grad_norm: {}}\n"

const char *const gx_grad_norm_samples[] = {
    UPDATE("sgd: {lr: 0.5}", "[1]") NORM,
    UPDATE_OUT("sgd: {lr: 0.5}, clip_norm: 0.01", "[5, 7]", "[loss, gexec.clip]") NORM,
    /* under the norm */
    UPDATE_OUT("sgd: {lr: 0.5}, clip_norm: 100", "[3, 1025]", "[loss, gexec.clip]") NORM,
    UPDATE("sgd: {lr: 0.5}, clip_norm: 0.001", "[33, 1025]") NORM,
    UPDATE_ALL("sgd: {lr: 0.05}, clip_norm: 0.2, accumulate: 2", "[loss, gexec.clip]")
        NORM,
    /* no optimizer: the norm alone */
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", "[6]", "normal"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[6]", "normal") GX_SAMPLE_OPS
              "  - {op: mse, name: loss, x: x, target: t}\nbackward: loss\n" NORM),
    NULL
};

#define RATE(schedule) \
    UPDATE_OUT("sgd: {lr: 0.3}, schedule: " schedule, "[3]", "[loss, gexec.rate]")

#define SCALED(what) UPDATE_ALL("adamw: {" STEADY "}, moments: f32, " what, "[loss]")

const char *const gx_loss_scale_samples[] = {
    UPDATE("sgd: {lr: 0.5}, loss_scale: 8", "[1]"),
    UPDATE("momentum: {lr: 0.1}, loss_scale: 8, clip_norm: 0.1", "[5, 7]"),
    SCALED("loss_scale: {dynamic: {initial: 4, growth_interval: 2, growth: 4}}"),
    SCALED("master: f32, loss_scale: {dynamic: {initial: 8, growth_interval: 1}}, "
           "clip_norm: 0.1, accumulate: 2, schedule: {constant: {warmup: 2}}, " GROUPS(
               "0.2")),
    GX_SAMPLE(GX_SAMPLE_LABELS("y", "[33]", "257"),
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", "[33, 257]", "{normal: {std: 3}}")
                  GX_SAMPLE_OPS
              "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n"
              "backward: loss\noptimizer: {adamw: {}, loss_scale: 16}\n"
              "metrics: {grad_norm: {}, loss_scale: {}, skipped: {}}\noutputs: [loss]\n"),
    NULL
};

const char *const gx_schedule_samples[] = {
    RATE("constant"),
    RATE("{constant: {warmup: 2}}"),
    RATE("{step: {every: 1, factor: 0.5}}"),
    RATE("{step: {every: 2, factor: 0.1, warmup: 1}}"),
    RATE("{cosine: {steps: 7, warmup: 1, end: 0.1}}"),
    RATE("{cosine: {steps: 2}}"),
    RATE("{linear: {steps: 3, end: 0.2}}"),
    UPDATE_ALL("sgd: {lr: 0.03}, schedule: {linear: {steps: 9, warmup: 2}}, " GROUPS("0"),
               "[loss, gexec.rate, gexec.rate.1]"),
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
