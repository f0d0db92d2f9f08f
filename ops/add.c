/* Sums of two tensors; gradients of what is read twice are made of these. */
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field add_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "b", GX_FIELD_IN, true, NULL, NULL, "like a" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like a" },
    { 0 },
};

static void add_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    const gx_value *a = value[GX_ADD_A];
    const gx_value *b = value[GX_ADD_B];

    (void)graph;
    if (gx_expect_float(list, node, "a", a) &&
        gx_expect_like(list, node, "b", b, a->rank, a->dim) &&
        gx_expect_dtype(list, node, "b", b, a->dtype))
        gx_set_shape(value[GX_ADD_OUT], a->dtype, a->rank, a->dim);
}

static gx_status add_reference(const gx_call *call, gx_error *err)
{
    const double *a = call->arg[GX_ADD_A].data;
    const double *b = call->arg[GX_ADD_B].data;
    double *out = call->arg[GX_ADD_OUT].data;
    const int64_t n = gx_count(&call->arg[GX_ADD_OUT]);

    (void)err;
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
    return GX_OK;
}

static void add_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand[] = { node->arg[GX_ADD_A], node->arg[GX_ADD_B] };
    const char *dy = gx_builder_gradient(builder, node->arg[GX_ADD_OUT]);

    for (int i = 0; i < 2; i++) {
        if (gx_builder_wants(builder, operand[i]))
            gx_builder_contribute(builder, operand[i], dy);
    }
}

static double add_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_ADD_OUT);
}

const gx_op gx_add_ops[] = {
    {
        .name = "add",
        .summary = "sum of two tensors of one shape",
        .formula = "out = a + b",
        .fields = add_fields,
        .phase = GX_PHASE_FORWARD,
        .sum = true,
        .infer = add_infer,
        .reference = add_reference,
        .grad = add_grad,
        .flops = add_flops,
        .samples = gx_add_samples,
        /* One rounding: 2^-24 in f32, 2^-9 in bf16. */
        .tolerance = { 1e-6, 1e-6, 4e-3 },
    },
    { 0 },
};
