/* Losses of each element against its target, and their derivatives. */
#include <math.h>

#include "infer.h"
#include "loss.h"
#include "resolve.h"
#include "samples.h"

#define INPUTS                                                                          \
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },                                \
    {                                                                                   \
        "target", GX_FIELD_IN, true, NULL, NULL, "the shape of x, f32 or the type of x" \
    }
#define REDUCTION                                                      \
    {                                                                  \
        "reduction", GX_FIELD_ENUM, false, "mean", gx_reduction_names, \
            "mean or sum over all elements"                            \
    }

static const gx_field loss_fields[] = {
    INPUTS,
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    REDUCTION,
    { 0 },
};

static const gx_field bwd_fields[] = {
    INPUTS, { "dx", GX_FIELD_OUT, true, NULL, NULL, "like x" }, GX_LOSS_DY, REDUCTION,
    { 0 },
};

/* --- shapes --- */

static bool operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_value *x = value[GX_MSE_X];
    const gx_value *target = value[GX_MSE_TARGET];

    if (!gx_expect_float(list, node, "x", x) ||
        !gx_expect_like(list, node, "target", target, x->rank, x->dim))
        return false;
    if (target->dtype != GX_F32 && target->dtype != x->dtype) {
        gx_misfit(list, node, "target", "target is %s, expected f32 or, like x, %s",
                  gx_dtype_name(target->dtype), gx_dtype_name(x->dtype));
        return false;
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->dim[i] == 0 && node->attr[GX_MSE_REDUCTION].i == GX_REDUCTION_MEAN) {
            gx_misfit(list, node, "x", "a mean over no elements has no value");
            return false;
        }
    }
    return true;
}

static void loss_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    (void)graph;
    if (operands(node, value, list))
        gx_set_shape(value[GX_MSE_OUT], GX_F32, 0, NULL);
}

static void bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    const gx_value *x = value[GX_MSE_BWD_X];

    (void)graph;
    if (operands(node, value, list) &&
        gx_expect_loss_dy(list, node, value[GX_MSE_BWD_DY]))
        gx_set_shape(value[GX_MSE_BWD_DX], x->dtype, x->rank, x->dim);
}

/* --- derivatives, for a loss that is the one differentiated --- */

static void derive(gx_builder *builder, int32_t id, const char *op, int x, int target,
                   const char *suffix)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand = node->arg[x];
    const char *origin = node->origin;
    const char *out = gx_builder_wanted_name(builder, operand);
    const gx_field_text fields[] = {
        { "x", gx_builder_operand(builder, id, x) },
        { "target", gx_builder_operand(builder, id, target) },
        { "reduction", gx_written(node, "reduction") },
        { "dx", out },
        { "dy", gx_loss_gradient(builder, node->arg[GX_MSE_OUT]) }
    };

    if (!out)
        return;
    gx_builder_node(builder, op, gx_builder_name(builder, origin, suffix), id, fields, 5);
    gx_builder_contribute(builder, operand, out);
}

/* Of a loss that is symmetric: the target's gradient is that of x with the two exchanged.
 */
static void symmetric_grad(gx_builder *builder, int32_t id, const char *op)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t target = node->arg[GX_MSE_TARGET];
    const bool one_type =
        graph->values[node->arg[GX_MSE_X]].dtype == graph->values[target].dtype;

    if (!one_type && gx_builder_wants(builder, target)) {
        gx_builder_report(builder, id,
                          "%s has no gradient for a target of another type than x",
                          node->op_name);
        return;
    }
    derive(builder, id, op, GX_MSE_X, GX_MSE_TARGET, "bwd");
    derive(builder, id, op, GX_MSE_TARGET, GX_MSE_X, "bwd.target");
}

static void mse_grad(gx_builder *builder, int32_t id)
{
    symmetric_grad(builder, id, "mse.bwd");
}

static void l1_grad(gx_builder *builder, int32_t id)
{
    symmetric_grad(builder, id, "l1.bwd");
}

static void bce_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];

    if (gx_builder_wants(builder, node->arg[GX_MSE_TARGET])) {
        gx_builder_report(builder, id,
                          "bce_with_logits has no gradient for its target, and \"%s\" is "
                          "trained or made from what is trained",
                          gx_builder_operand(builder, id, GX_MSE_TARGET));
        return;
    }
    derive(builder, id, "bce_with_logits.bwd", GX_MSE_X, GX_MSE_TARGET, "bwd");
}

/* --- references --- */

typedef double (*point)(double x, double target);

static double mse_point(double x, double target)
{
    return (x - target) * (x - target);
}

static double mse_slope(double x, double target)
{
    return 2.0 * (x - target);
}

static double l1_point(double x, double target)
{
    return fabs(x - target);
}

static double l1_slope(double x, double target)
{
    return (double)((x > target) - (x < target));
}

/* -t log s(x) - (1 - t) log(1 - s(x)), s the logistic function; written so, nothing
 * overflows, and nothing cancels where t is 0 or 1. */
static double bce_point(double x, double target)
{
    return (x > 0 ? x * (1.0 - target) : -x * target) + log1p(exp(-fabs(x)));
}

/* s(x) - t, where 1 - t takes the place of 1 - s for a large x. */
static double bce_slope(double x, double target)
{
    const double e = exp(-fabs(x)), rest = e / (1.0 + e);

    return x > 0 ? (1.0 - target) - rest : rest - target;
}

static double divisor(const gx_call *call)
{
    return call->attr[GX_MSE_REDUCTION].i == GX_REDUCTION_SUM
               ? 1.0
               : (double)gx_count(&call->arg[GX_MSE_X]);
}

static gx_status add_up(const gx_call *call, point of)
{
    const double *x = call->arg[GX_MSE_X].data;
    const double *target = call->arg[GX_MSE_TARGET].data;
    const int64_t n = gx_count(&call->arg[GX_MSE_X]);
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += of(x[i], target[i]);
    *(double *)call->arg[GX_MSE_OUT].data = sum / divisor(call);
    return GX_OK;
}

static gx_status each(const gx_call *call, point of)
{
    const double *x = call->arg[GX_MSE_BWD_X].data;
    const double *target = call->arg[GX_MSE_BWD_TARGET].data;
    double *dx = call->arg[GX_MSE_BWD_DX].data;
    const int64_t n = gx_count(&call->arg[GX_MSE_BWD_X]);
    const double by = divisor(call), dy = gx_loss_dy(call, GX_MSE_BWD_DY);

    for (int64_t i = 0; i < n; i++)
        dx[i] = dy * (of(x[i], target[i]) / by);
    return GX_OK;
}

static gx_status mse_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return add_up(call, mse_point);
}

static gx_status mse_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return each(call, mse_slope);
}

static gx_status l1_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return add_up(call, l1_point);
}

static gx_status l1_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return each(call, l1_slope);
}

static gx_status bce_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return add_up(call, bce_point);
}

static gx_status bce_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return each(call, bce_slope);
}

/* --- cost: an exponential or a logarithm counts as eight operations --- */

static double plain_flops(const gx_graph *graph, const gx_node *node)
{
    return 3 * gx_elements(graph, node, GX_MSE_X);
}

static double bce_flops(const gx_graph *graph, const gx_node *node)
{
    return 20 * gx_elements(graph, node, GX_MSE_X);
}

/* f32 inside and a sum of terms of one sign. */
#define LOSS_TOLERANCE         \
    {                          \
        1e-5, 1e-5, 1e-5, 1e-5 \
    }
/* Some roundings in f32, and exp's own error; bf16 rounds the result to 8 bits, f16 to
 * 11. */
#define BWD_TOLERANCE          \
    {                          \
        1e-6, 1e-6, 5e-3, 7e-4 \
    }

#define LOSS(hook)                                                                     \
    .fields = loss_fields, .phase = GX_PHASE_FORWARD, .loss = true, .takes_one = true, \
    .rows = GX_ROWS_TELL, .infer = loss_infer, .reference = hook##_reference,          \
    .grad = hook##_grad, .samples = gx_##hook##_samples, .tolerance = LOSS_TOLERANCE
#define BWD(hook)                                                          \
    .fields = bwd_fields, .phase = GX_PHASE_BACKWARD, .infer = bwd_infer,  \
    .reference = hook##_bwd_reference, .samples = gx_##hook##_bwd_samples, \
    .tolerance = BWD_TOLERANCE

const gx_op gx_pointwise_loss_ops[] = {
    {
        .name = "mse",
        .summary = "squared error, mean or sum over all elements",
        .formula = "out = mean of (x - target)^2",
        .flops = plain_flops,
        LOSS(mse),
    },
    {
        .name = "mse.bwd",
        .summary = "derivative of mse",
        .formula = "dx = dy 2 (x - target) / elements, without the division for a sum",
        .flops = plain_flops,
        BWD(mse),
    },
    {
        .name = "l1",
        .summary = "absolute error, mean or sum over all elements",
        .formula = "out = mean of |x - target|",
        .flops = plain_flops,
        LOSS(l1),
    },
    {
        .name = "l1.bwd",
        .summary = "derivative of l1",
        .formula =
            "dx = dy sign(x - target) / elements, without the division for a sum; 0 "
            "where x is target",
        .flops = plain_flops,
        BWD(l1),
    },
    {
        .name = "bce_with_logits",
        .summary = "cross-entropy of the logistic function of x against target, mean or "
                   "sum over all elements",
        .formula = "out = mean of max(x, 0) - x target + log(1 + exp(-|x|))",
        .flops = bce_flops,
        LOSS(bce),
    },
    {
        .name = "bce_with_logits.bwd",
        .summary = "derivative of bce_with_logits",
        .formula =
            "dx = dy (1 / (1 + exp(-x)) - target) / elements, without the division "
            "for a sum",
        .flops = bce_flops,
        BWD(bce),
    },
    { 0 },
};
