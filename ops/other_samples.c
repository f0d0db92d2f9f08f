/* Sample models of sums, optimizers and the step's own ops. */
#include "samples.h"

#include <stddef.h>

#define ADD(shape)                                        \
    GX_SAMPLE(GX_SAMPLE_TENSOR("a", shape, "normal")      \
                  GX_SAMPLE_TENSOR("b", shape, "normal"), \
              GX_SAMPLE_OPS "  - {op: add, name: y, a: a, b: b}\noutputs: [y]\n")

const char *const gx_add_samples[] = {
    ADD("[]"), ADD("[1]"), ADD("[3, 5, 7]"), ADD("[1027]"), ADD("[0, 3]"),
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
