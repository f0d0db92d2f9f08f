/* A tensor in another type. */
#include <math.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const char *const types[] = { "f32", "bf16", "f16", "i32", NULL };
static const gx_dtype dtypes[] = { GX_F32, GX_BF16, GX_F16, GX_I32 };

static const gx_field cast_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any type and shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x, in the type" },
    { "dtype", GX_FIELD_ENUM, true, NULL, types, "the type of out" },
    { 0 },
};

static void cast_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *x = value[GX_CAST_X];

    (void)graph;
    (void)list;
    gx_set_shape(value[GX_CAST_OUT], dtypes[node->attr[GX_CAST_DTYPE].i], x->rank,
                 x->dim);
}

/* Towards zero, as C and torch cast; what is out of range becomes the nearest that is in
 * it, and NaN 0, as the device converts. */
static double to_integer(double x)
{
    if (isnan(x))
        return 0;
    return fmin(fmax(trunc(x), (double)INT32_MIN), (double)INT32_MAX);
}

/* Rounding to a type of floats is that of storing, which the walk does. */
static gx_status cast_reference(const gx_call *call, gx_error *err)
{
    const double *x = call->arg[GX_CAST_X].data;
    double *out = call->arg[GX_CAST_OUT].data;
    const int64_t n = gx_count(&call->arg[GX_CAST_OUT]);
    const bool whole = dtypes[call->attr[GX_CAST_DTYPE].i] == GX_I32;

    (void)err;
    for (int64_t i = 0; i < n; i++)
        out[i] = whole ? to_integer(x[i]) : x[i];
    return GX_OK;
}

static void cast_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t x = node->arg[GX_CAST_X];
    const char *out = gx_builder_wanted_name(builder, x);
    const gx_field_text fields[] = {
        { "x", gx_builder_gradient(builder, node->arg[GX_CAST_OUT]) },
        { "out", out },
        { "dtype", gx_dtype_name(graph->values[x].dtype) },
    };

    if (!out)
        return;
    gx_builder_node(builder, "cast", gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, 3);
    gx_builder_contribute(builder, x, out);
}

const gx_op gx_cast_ops[] = {
    {
        .name = "cast",
        .summary = "the same values in another type",
        .formula = "out = x; to i32 towards zero, kept within its range, NaN to 0",
        .fields = cast_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_KEEP,
        .infer = cast_infer,
        .reference = cast_reference,
        .grad = cast_grad,
        .samples = gx_cast_samples,
        /* One rounding, to the 8 bits of bf16 under any precision. */
        .tolerance = { 4e-3, 4e-3, 4e-3, 4e-3 },
    },
    { 0 },
};
