/* Sample models of the epilogue and of the activations. */
#include "samples.h"

#include <stddef.h>

#define FORWARD(shape, bias, fields, outputs)                                       \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")                    \
                  GX_SAMPLE_TENSOR("b", bias, "normal"),                            \
              GX_SAMPLE_OPS "  - {op: epilogue, name: e, x: x" fields ", out: y}\n" \
                            "outputs: [" outputs "]\n")

#define TRAINED(shape, bias, fields, extra)                                          \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                                \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")    \
                  GX_SAMPLE_TENSOR("b", bias, "normal") GX_SAMPLE_OPS                \
              "  - {op: epilogue, name: e, x: x, bias: b" fields ", out: y}\n" extra \
              "  - {op: mse, name: loss, x: y, target: t}\n"                         \
              "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n")

const char *const gx_epilogue_samples[] = {
    FORWARD("[1, 1]", "[1]", ", bias: b, act: relu", "y"),
    FORWARD("[3, 5]", "[5]", ", bias: b, act: gelu_tanh, pre: p", "y, p"),
    FORWARD("[7]", "[7]", ", act: gelu_tanh", "y"),
    FORWARD("[2, 3, 5]", "[5]", ", bias: b", "y"),
    FORWARD("[33, 1030]", "[1030]", ", bias: b, act: relu, pre: p", "y, p"),
    FORWARD("[1, 4099]", "[4099]", ", bias: b, act: gelu_tanh", "y"),
    FORWARD("[1025, 3]", "[3]", "", "y"),
    FORWARD("[0, 3]", "[3]", ", bias: b, act: relu", "y"),
    FORWARD("[3, 0]", "[0]", ", bias: b, act: gelu_tanh, pre: p", "y, p"),
    TRAINED("[1, 1]", "[1]", ", act: relu", ""),
    TRAINED("[5, 3]", "[3]", "", ""),
    TRAINED("[37, 129]", "[129]", ", act: gelu_tanh", ""),
    TRAINED("[300, 40]", "[40]", ", act: relu", ""),
    NULL
};

#define BWD(shape, bias, fields, outputs)                                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("dy", shape, "normal")                             \
                  GX_SAMPLE_TENSOR("kept", shape, "{normal: {std: 2}}"),          \
              GX_SAMPLE_OPS "  - {op: epilogue.bwd, name: e, dy: dy" fields "}\n" \
                            "outputs: [" outputs "]\n")

#define BOTH ", dx: dx, dbias: dbias"

const char *const gx_epilogue_bwd_samples[] = {
    BWD("[1, 1]", "[1]", ", y: kept, act: relu" BOTH, "dx, dbias"),
    BWD("[3, 5]", "[5]", ", pre: kept, act: gelu_tanh" BOTH, "dx, dbias"),
    BWD("[7]", "[7]", ", pre: kept, act: gelu_tanh, dx: dx", "dx"),
    BWD("[2, 3, 5]", "[5]", BOTH, "dx, dbias"),
    BWD("[33, 1030]", "[1030]", ", y: kept, act: relu" BOTH, "dx, dbias"),
    BWD("[4100, 3]", "[3]", ", dbias: dbias", "dbias"),
    BWD("[513, 67]", "[67]", ", pre: kept, act: gelu_tanh, dbias: dbias", "dbias"),
    BWD("[0, 3]", "[3]", ", y: kept, act: relu" BOTH, "dx, dbias"),
    BWD("[3, 0]", "[0]", BOTH, "dx, dbias"),
    NULL
};

#define ACT(op, shape)                                            \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}"), \
              GX_SAMPLE_OPS "  - {op: " op ", name: y, x: x}\noutputs: [y]\n")

#define ACT_TRAINED(op, shape)                                                    \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                             \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}") \
                  GX_SAMPLE_OPS                                                   \
              "  - {op: " op ", name: y, x: x}\n"                                 \
              "  - {op: mse, name: loss, x: y, target: t}\n"                      \
              "backward: loss\noptimizer: {adamw: {}}\noutputs: [loss]\n")

#define ACT_BWD(op, kept, shape)                                                   \
    GX_SAMPLE(GX_SAMPLE_TENSOR("dy", shape, "normal")                              \
                  GX_SAMPLE_TENSOR("kept", shape, "{normal: {std: 2}}"),           \
              GX_SAMPLE_OPS "  - {op: " op ", name: dx, dy: dy, " kept ": kept}\n" \
                            "outputs: [dx]\n")

const char *const gx_relu_samples[] = {
    ACT("relu", "[1]"),    ACT("relu", "[5, 7]"),           ACT("relu", "[3, 1031]"),
    ACT("relu", "[0, 4]"), ACT_TRAINED("relu", "[13, 77]"), NULL
};
const char *const gx_gelu_samples[] = { ACT("gelu_tanh", "[1]"),
                                        ACT("gelu_tanh", "[5, 7]"),
                                        ACT("gelu_tanh", "[3, 1031]"),
                                        ACT("gelu_tanh", "[0, 4]"),
                                        ACT_TRAINED("gelu_tanh", "[13, 77]"),
                                        NULL };
const char *const gx_relu_bwd_samples[] = { ACT_BWD("relu.bwd", "y", "[1]"),
                                            ACT_BWD("relu.bwd", "y", "[9, 133]"), NULL };
const char *const gx_gelu_bwd_samples[] = { ACT_BWD("gelu_tanh.bwd", "x", "[1]"),
                                            ACT_BWD("gelu_tanh.bwd", "x", "[9, 133]"),
                                            NULL };
