/* Softmax over one axis, and its derivative. */
#include <math.h>

#include "axes.h"
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field softmax_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "axis", GX_FIELD_INTS, false, "-1", NULL,
      "which dimension, from the last one if negative" },
    { 0 },
};

static const gx_field softmax_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of softmax's out" },
    { "y", GX_FIELD_IN, true, NULL, NULL, "like dy, softmax's out" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like dy" },
    { "axis", GX_FIELD_INTS, false, "-1", NULL, "as in softmax" },
    { 0 },
};

static bool expect_one_axis(gx_diagnostics *list, const gx_node *node, const gx_value *x)
{
    const gx_attr *axis = &node->attr[GX_SOFTMAX_AXIS];
    gx_axes axes;

    if (axis->i > 1) {
        gx_misfit(list, node, "axis", "%lld axes, expected one", (long long)axis->i);
        return false;
    }
    return gx_expect_axes(list, node, axis, true, x->rank, x->dim, &axes);
}

static void softmax_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *x = value[GX_SOFTMAX_X];

    (void)graph;
    if (gx_expect_float(list, node, "x", x) && expect_one_axis(list, node, x))
        gx_set_shape(value[GX_SOFTMAX_OUT], x->dtype, x->rank, x->dim);
}

static void softmax_bwd_infer(const gx_graph *graph, const gx_node *node,
                              gx_value **value, gx_diagnostics *list)
{
    const gx_value *dy = value[GX_SOFTMAX_BWD_DY], *y = value[GX_SOFTMAX_BWD_Y];

    (void)graph;
    if (gx_expect_float(list, node, "dy", dy) &&
        gx_expect_like(list, node, "y", y, dy->rank, dy->dim) &&
        gx_expect_dtype(list, node, "y", y, dy->dtype) && expect_one_axis(list, node, dy))
        gx_set_shape(value[GX_SOFTMAX_BWD_DX], dy->dtype, dy->rank, dy->dim);
}

static void softmax_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_SOFTMAX_X];
    const gx_attr *axis = &node->attr[GX_SOFTMAX_AXIS];
    const char *out = gx_builder_wanted_name(builder, x);
    gx_field_text fields[4] = {
        { "dy", gx_builder_gradient(builder, node->arg[GX_SOFTMAX_OUT]) },
        { "y", gx_builder_operand(builder, id, GX_SOFTMAX_OUT) },
        { "dx", out },
    };

    if (!out)
        return;
    const size_t n =
        gx_builder_list(builder, "axis", (int)axis->i, axis->list, fields + 3);

    gx_builder_node(builder, "softmax.bwd", gx_builder_name(builder, node->origin, "bwd"),
                    id, fields, 3 + n);
    gx_builder_contribute(builder, x, out);
}

/* --- references: lines of `n` elements that are `step` apart --- */

static void softmax_line(const double *x, double *y, int64_t n, int64_t step)
{
    double most = x[0], sum = 0.0;

    for (int64_t i = 1; i < n; i++) {
        if (x[i * step] > most || isnan(x[i * step]))
            most = x[i * step];
    }
    for (int64_t i = 0; i < n; i++) {
        y[i * step] = exp(x[i * step] - most);
        sum += y[i * step];
    }
    for (int64_t i = 0; i < n; i++)
        y[i * step] /= sum;
}

static gx_status softmax_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_SOFTMAX_X];
    const gx_lines lines = gx_lines_of(x, &call->attr[GX_SOFTMAX_AXIS]);
    const double *from = x->data;
    double *to = call->arg[GX_SOFTMAX_OUT].data;

    (void)err;
    for (int64_t o = 0; lines.n > 0 && o < lines.outer; o++) {
        for (int64_t i = 0; i < lines.inner; i++) {
            const int64_t at = o * lines.n * lines.inner + i;

            softmax_line(from + at, to + at, lines.n, lines.inner);
        }
    }
    return GX_OK;
}

static gx_status softmax_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *y = &call->arg[GX_SOFTMAX_BWD_Y];
    const gx_lines lines = gx_lines_of(y, &call->attr[GX_SOFTMAX_AXIS]);
    const double *p = y->data, *dy = call->arg[GX_SOFTMAX_BWD_DY].data;
    double *dx = call->arg[GX_SOFTMAX_BWD_DX].data;

    (void)err;
    for (int64_t o = 0; o < lines.outer; o++) {
        for (int64_t i = 0; i < lines.inner; i++) {
            const int64_t first = o * lines.n * lines.inner + i;
            double sum = 0.0;

            for (int64_t k = 0; k < lines.n; k++)
                sum += p[first + k * lines.inner] * dy[first + k * lines.inner];
            for (int64_t k = 0; k < lines.n; k++) {
                const int64_t at = first + k * lines.inner;

                dx[at] = p[at] * (dy[at] - sum);
            }
        }
    }
    return GX_OK;
}

/* --- cost: an exponential counts as eight operations --- */

static double softmax_flops(const gx_graph *graph, const gx_node *node)
{
    return 12 * gx_elements(graph, node, GX_SOFTMAX_X);
}

static double softmax_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return 4 * gx_elements(graph, node, GX_SOFTMAX_BWD_Y);
}

const gx_op gx_softmax_ops[] = {
    {
        .name = "softmax",
        .summary = "exponentials along an axis, scaled to the sum 1",
        .formula = "out = exp(x - m) / sum of exp(x - m) along axis, m the maximum there",
        .fields = softmax_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_ALONG,
        .infer = softmax_infer,
        .reference = softmax_reference,
        .grad = softmax_grad,
        .flops = softmax_flops,
        .samples = gx_softmax_samples,
        /* f32 inside: exp of a few units in the last place, a sum of one sign; bf16: the
         * result is rounded to 8 bits, f16: to 11. */
        .tolerance = { 1e-5, 1e-5, 5e-3, 7e-4 },
    },
    {
        .name = "softmax.bwd",
        .summary = "derivative of softmax",
        .formula = "dx = y (dy - sum of y dy along axis)",
        .fields = softmax_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = softmax_bwd_infer,
        .reference = softmax_bwd_reference,
        .flops = softmax_bwd_flops,
        .samples = gx_softmax_bwd_samples,
        /* dy and the sum may nearly cancel, both of f32 roundings. */
        .tolerance = { 1e-5, 1e-5, 5e-3, 7e-4 },
    },
    { 0 },
};
