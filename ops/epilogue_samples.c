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

/* With a residual. */
#define ADDED(shape, bias, fields, outputs)                                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")                    \
                  GX_SAMPLE_TENSOR("r", shape, "normal")                            \
                      GX_SAMPLE_TENSOR("b", bias, "normal"),                        \
              GX_SAMPLE_OPS "  - {op: epilogue, name: e, x: x" fields ", out: y}\n" \
                            "outputs: [" outputs "]\n")

#define ADDED_TRAINED(shape, bias, fields)                                         \
    GX_SAMPLE(GX_SAMPLE_TENSOR("t", shape, "normal"),                              \
              GX_SAMPLE_PARAMS GX_SAMPLE_TENSOR("x", shape, "{normal: {std: 2}}")  \
                  GX_SAMPLE_TENSOR("r", shape, "normal")                           \
                      GX_SAMPLE_TENSOR("b", bias, "normal") GX_SAMPLE_OPS          \
              "  - {op: epilogue, name: e, x: x, residual: r" fields ", out: y}\n" \
              "  - {op: mse, name: loss, x: y, target: t}\n"                       \
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
    FORWARD("[3, 5]", "[5]", ", bias: b, act: gelu_erf, pre: p", "y, p"),
    FORWARD("[33, 1030]", "[1030]", ", bias: b, act: silu, pre: p", "y, p"),
    FORWARD("[7, 129]", "[129]", ", bias: b, act: tanh", "y"),
    FORWARD("[9, 64]", "[64]", ", bias: b, act: sigmoid", "y"),
    TRAINED("[37, 129]", "[129]", ", act: gelu_erf", ""),
    TRAINED("[30, 40]", "[40]", ", act: silu", ""),
    TRAINED("[37, 12]", "[12]", ", act: tanh", ""),
    TRAINED("[5, 129]", "[129]", ", act: sigmoid", ""),
    ADDED("[1, 1]", "[1]", ", residual: r", "y"),
    ADDED("[3, 5]", "[5]", ", scale: -0.5", "y"),
    ADDED("[2, 3, 5]", "[5]", ", scale: 2, bias: b, residual: r, act: relu, pre: p",
          "y, p"),
    ADDED("[33, 1030]", "[1030]", ", bias: b, residual: r, act: gelu_erf", "y"),
    ADDED("[9, 64]", "[64]",
          ", bias: b, residual: r, act: silu, order: [bias, act, residual]", "y"),
    ADDED("[9, 64]", "[64]",
          ", scale: 3, bias: b, residual: r, act: tanh, order: [act, bias, scale, "
          "residual], "
          "pre: p",
          "y, p"),
    ADDED("[0, 3]", "[3]", ", scale: 2, residual: r", "y"),
    ADDED_TRAINED("[7, 13]", "[13]", ""),
    ADDED_TRAINED("[37, 129]", "[129]", ", scale: 0.5, bias: b, act: gelu_tanh"),
    ADDED_TRAINED("[9, 64]", "[64]", ", bias: b, act: relu"),
    ADDED_TRAINED(
        "[5, 6]", "[6]",
        ", scale: 0.5, bias: b, act: sigmoid, order: [bias, act, scale, residual]"),
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
    BWD("[5, 66]", "[66]", ", pre: kept, act: gelu_erf" BOTH, "dx, dbias"),
    BWD("[33, 65]", "[65]", ", pre: kept, act: silu" BOTH, "dx, dbias"),
    BWD("[300, 4]", "[4]", ", y: kept, act: tanh" BOTH, "dx, dbias"),
    BWD("[3, 1030]", "[1030]", ", y: kept, act: sigmoid, dx: dx", "dx"),
    BWD("[0, 3]", "[3]", ", y: kept, act: relu" BOTH, "dx, dbias"),
    BWD("[3, 0]", "[0]", BOTH, "dx, dbias"),
    BWD("[3, 5]", "[5]", ", y: kept, act: relu, scale: 2" BOTH ", dresidual: dr",
        "dx, dbias, dr"),
    BWD("[3, 5]", "[5]", ", pre: kept, act: silu, dresidual: dr" BOTH, "dx, dbias, dr"),
    BWD("[9, 133]", "[133]", ", y: kept, act: tanh, scale: -0.5, dx: dx", "dx"),
    BWD("[9, 133]", "[133]", ", y: kept, act: tanh, dresidual: dr", "dr"),
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

#define ACT_ALL(op)                                                                 \
    {                                                                               \
        ACT(op, "[1]"), ACT(op, "[5, 7]"), ACT(op, "[3, 1031]"), ACT(op, "[0, 4]"), \
            ACT_TRAINED(op, "[13, 77]"), NULL                                       \
    }

#define ACT_BWD_ALL(op, kept)                                         \
    {                                                                 \
        ACT_BWD(op, kept, "[1]"), ACT_BWD(op, kept, "[9, 133]"), NULL \
    }

const char *const gx_relu_samples[] = ACT_ALL("relu");
const char *const gx_gelu_tanh_samples[] = ACT_ALL("gelu_tanh");
const char *const gx_gelu_erf_samples[] = ACT_ALL("gelu_erf");
const char *const gx_silu_samples[] = ACT_ALL("silu");
const char *const gx_tanh_samples[] = ACT_ALL("tanh");
const char *const gx_sigmoid_samples[] = ACT_ALL("sigmoid");
const char *const gx_relu_bwd_samples[] = ACT_BWD_ALL("relu.bwd", "y");
const char *const gx_gelu_tanh_bwd_samples[] = ACT_BWD_ALL("gelu_tanh.bwd", "x");
const char *const gx_gelu_erf_bwd_samples[] = ACT_BWD_ALL("gelu_erf.bwd", "x");
const char *const gx_silu_bwd_samples[] = ACT_BWD_ALL("silu.bwd", "x");
const char *const gx_tanh_bwd_samples[] = ACT_BWD_ALL("tanh.bwd", "y");
const char *const gx_sigmoid_bwd_samples[] = ACT_BWD_ALL("sigmoid.bwd", "y");
