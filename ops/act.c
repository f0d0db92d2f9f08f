/* The activations as ops of their own: each is an epilogue without bias. */
#include <string.h>

#include "epilogue.h"
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field act_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "one dimension or more" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { 0 },
};

/* Derivatives that read the forward output, and those that read the forward input. */
static const gx_field by_y_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of the forward out" },
    { "y", GX_FIELD_IN, true, NULL, NULL, "like dy, the forward out" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like dy" },
    { 0 },
};

static const gx_field by_x_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of the forward out" },
    { "x", GX_FIELD_IN, true, NULL, NULL, "like dy, the forward x" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like dy" },
    { 0 },
};

static void act_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (gx_expect_rows(list, node, "x", value[0]))
        gx_set_shape(value[1], value[0]->dtype, value[0]->rank, value[0]->dim);
}

static void act_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    (void)graph;
    if (gx_expect_rows(list, node, "dy", value[0]) &&
        gx_expect_same(list, node, node->op->fields[1].name, value[1], value[0]))
        gx_set_shape(value[2], value[0]->dtype, value[0]->rank, value[0]->dim);
}

/* The activation that a row is, or is the derivative of. */
static gx_act act_of(const gx_op *op)
{
    const size_t length = strcspn(op->name, ".");
    int act = 0;

    while (strncmp(gx_act_names[act], op->name, length) != 0 ||
           gx_act_names[act][length] != '\0')
        act++;
    return (gx_act)act;
}

static bool act_expand(gx_builder *builder, int32_t id)
{
    const gx_act act = act_of(gx_builder_graph(builder)->nodes[id].op);
    const gx_field_text fields[] = { { "x", gx_builder_operand(builder, id, 0) },
                                     { "act", gx_act_names[act] },
                                     { "out", gx_builder_operand(builder, id, 1) } };

    gx_builder_rewrite(builder, id, "epilogue", fields, 3);
    return true;
}

static bool act_bwd_expand(gx_builder *builder, int32_t id)
{
    const gx_act act = act_of(gx_builder_graph(builder)->nodes[id].op);
    const char *kept = gx_act_reads_of[act] == GX_ACT_READS_Y ? "y" : "pre";
    const gx_field_text fields[] = { { "dy", gx_builder_operand(builder, id, 0) },
                                     { kept, gx_builder_operand(builder, id, 1) },
                                     { "act", gx_act_names[act] },
                                     { "dx", gx_builder_operand(builder, id, 2) } };

    gx_builder_rewrite(builder, id, "epilogue.bwd", fields, 4);
    return true;
}

const gx_op gx_act_ops[] = {
    {
        .name = "relu",
        .summary = "rectified linear unit",
        .formula = "out = max(x, 0)",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_relu_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "relu.bwd",
        .summary = "derivative of relu",
        .formula = "dx = dy where y > 0, else 0",
        .fields = by_y_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_relu_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "gelu_tanh",
        .summary = "Gaussian error linear unit in its tanh form",
        .formula = "out = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_gelu_tanh_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "gelu_tanh.bwd",
        .summary = "derivative of gelu_tanh",
        .formula = "dx = dy gelu_tanh'(x)",
        .fields = by_x_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_gelu_tanh_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "gelu_erf",
        .summary = "Gaussian error linear unit",
        .formula = "out = x/2 (1 + erf(x / sqrt(2)))",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_gelu_erf_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "gelu_erf.bwd",
        .summary = "derivative of gelu_erf",
        .formula =
            "dx = dy (F + x exp(-x^2/2) / sqrt(2 pi)), F = (1 + erf(x / sqrt(2))) / 2",
        .fields = by_x_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_gelu_erf_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "silu",
        .summary = "sigmoid linear unit, also called swish",
        .formula = "out = x s, s = 1 / (1 + exp(-x))",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_silu_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "silu.bwd",
        .summary = "derivative of silu",
        .formula = "dx = dy s (1 + x (1 - s)), s = 1 / (1 + exp(-x))",
        .fields = by_x_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_silu_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "tanh",
        .summary = "hyperbolic tangent",
        .formula = "out = tanh(x)",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_tanh_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "tanh.bwd",
        .summary = "derivative of tanh",
        .formula = "dx = dy (1 - y^2)",
        .fields = by_y_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_tanh_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "sigmoid",
        .summary = "logistic function",
        .formula = "out = 1 / (1 + exp(-x))",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = act_expand,
        .grad = gx_epilogue_grad,
        .samples = gx_sigmoid_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "sigmoid.bwd",
        .summary = "derivative of sigmoid",
        .formula = "dx = dy y (1 - y)",
        .fields = by_y_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = act_bwd_expand,
        .samples = gx_sigmoid_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    { 0 },
};
