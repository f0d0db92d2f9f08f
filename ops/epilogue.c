/* Scale, bias, residual and activation after a product, and their derivative. */
#include "epilogue.h"

#include <string.h>

#include "epilogue_order.h"
#include "factor.h"
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field epilogue_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n]" },
    { "bias", GX_FIELD_IN, false, NULL, NULL, "[n], added to each row" },
    { "residual", GX_FIELD_IN, false, NULL, NULL, "like x, added" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "pre", GX_FIELD_OUT, false, NULL, NULL,
      "like x: what the activation is applied to" },
    { "act", GX_FIELD_ENUM, false, "none", gx_act_names,
      "the activation, applied last, unless order says otherwise" },
    { "scale", GX_FIELD_REAL, false, NULL, NULL,
      "a factor, applied first, unless order says otherwise" },
    { "order", GX_FIELD_WORDS, false, NULL, gx_epilogue_step_names, GX_ORDER_DOC },
    { 0 },
};

static const gx_field epilogue_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "[..., n], gradient of the epilogue's out" },
    { "y", GX_FIELD_IN, false, NULL, NULL,
      "like dy, the epilogue's out; relu, tanh and sigmoid need it" },
    { "pre", GX_FIELD_IN, false, NULL, NULL,
      "like dy, what the activation was applied to; gelu_tanh, gelu_erf and silu need "
      "it" },
    { "dx", GX_FIELD_OUT, false, NULL, NULL, "like dy, gradient of x" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n], gradient of the bias" },
    { "dresidual", GX_FIELD_OUT, false, NULL, NULL, "like dy, gradient of the residual" },
    { "act", GX_FIELD_ENUM, false, "none", gx_act_names, "the activation" },
    { "scale", GX_FIELD_REAL, false, NULL, NULL, "the factor of x" },
    { 0 },
};

/* --- shapes --- */

bool gx_expect_rows(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value)
{
    if (!gx_expect_float(list, node, key, value))
        return false;
    if (value->rank > 0)
        return true;
    gx_misfit(list, node, key, "%s is a scalar, expected one dimension or more", key);
    return false;
}

bool gx_expect_same(gx_diagnostics *list, const gx_node *node, const char *key,
                    const gx_value *value, const gx_value *like)
{
    return gx_expect_like(list, node, key, value, like->rank, like->dim) &&
           gx_expect_dtype(list, node, key, value, like->dtype);
}

static gx_epilogue_steps steps_of(const gx_node *node)
{
    return (gx_epilogue_steps){
        .has = { [GX_EPILOGUE_STEP_SCALE] = node->attr[GX_EPILOGUE_SCALE].present,
                 [GX_EPILOGUE_STEP_BIAS] = node->arg[GX_EPILOGUE_BIAS] >= 0,
                 [GX_EPILOGUE_STEP_RESIDUAL] = node->arg[GX_EPILOGUE_RESIDUAL] >= 0,
                 [GX_EPILOGUE_STEP_ACT] = node->attr[GX_EPILOGUE_ACT].i != GX_ACT_NONE },
        .order = &node->attr[GX_EPILOGUE_ORDER],
    };
}

static void epilogue_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const gx_value *x = value[GX_EPILOGUE_X];
    const gx_value *bias = value[GX_EPILOGUE_BIAS];
    const gx_value *residual = value[GX_EPILOGUE_RESIDUAL];
    const gx_epilogue_steps steps = steps_of(node);

    (void)graph;
    if (!gx_expect_rows(list, node, "x", x))
        return;
    if (bias && !(gx_expect_like(list, node, "bias", bias, 1, &x->dim[x->rank - 1]) &&
                  gx_expect_dtype(list, node, "bias", bias, x->dtype)))
        return;
    if ((residual && !gx_expect_same(list, node, "residual", residual, x)) ||
        !gx_expect_order(list, node, "", &steps))
        return;
    gx_set_shape(value[GX_EPILOGUE_OUT], x->dtype, x->rank, x->dim);
    gx_set_shape(value[GX_EPILOGUE_PRE], x->dtype, x->rank, x->dim);
}

static void epilogue_bwd_infer(const gx_graph *graph, const gx_node *node,
                               gx_value **value, gx_diagnostics *list)
{
    const gx_value *dy = value[GX_EPILOGUE_BWD_DY];
    const gx_value *y = value[GX_EPILOGUE_BWD_Y];
    const gx_value *pre = value[GX_EPILOGUE_BWD_PRE];
    const gx_act act = (gx_act)node->attr[GX_EPILOGUE_BWD_ACT].i;

    (void)graph;
    if (!gx_expect_rows(list, node, "dy", dy) ||
        (y && !gx_expect_same(list, node, "y", y, dy)) ||
        (pre && !gx_expect_same(list, node, "pre", pre, dy)))
        return;
    if (!gx_expect_act_operand(list, node, "act", act, y, pre))
        return;
    if (!value[GX_EPILOGUE_BWD_DX] && !value[GX_EPILOGUE_BWD_DBIAS] &&
        !value[GX_EPILOGUE_BWD_DRESIDUAL]) {
        gx_misfit(list, node, NULL, "it makes nothing: expected dx, dbias or dresidual");
    } else {
        gx_set_shape(value[GX_EPILOGUE_BWD_DX], dy->dtype, dy->rank, dy->dim);
        gx_set_shape(value[GX_EPILOGUE_BWD_DBIAS], dy->dtype, 1, &dy->dim[dy->rank - 1]);
        gx_set_shape(value[GX_EPILOGUE_BWD_DRESIDUAL], dy->dtype, dy->rank, dy->dim);
    }
}

/* --- in another order, by parts --- */

static bool epilogue_expand(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_epilogue_steps steps = steps_of(node);
    const gx_epilogue_chain chain = gx_epilogue_split(&steps);
    const gx_act act = (gx_act)node->attr[GX_EPILOGUE_ACT].i;
    const gx_epilogue_operands operands = {
        .x = gx_builder_operand(builder, id, GX_EPILOGUE_X),
        .bias = gx_builder_operand(builder, id, GX_EPILOGUE_BIAS),
        .residual = gx_builder_operand(builder, id, GX_EPILOGUE_RESIDUAL),
        .out = gx_builder_operand(builder, id, GX_EPILOGUE_OUT),
        .pre = gx_builder_operand(builder, id, GX_EPILOGUE_PRE),
        .act = act != GX_ACT_NONE ? gx_act_names[act] : NULL,
        .scale = gx_factor_text(builder, gx_factor(node, GX_EPILOGUE_SCALE)),
    };

    if (chain.n < 2)
        return false;
    gx_epilogue_build(builder, id, &chain, &operands);
    return true;
}

/* The plain derivative, which the kernels have, and then x's factor. */
static bool epilogue_bwd_expand(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const char *factor = gx_factor_text(builder, gx_factor(node, GX_EPILOGUE_BWD_SCALE));
    const char *dx = gx_builder_operand(builder, id, GX_EPILOGUE_BWD_DX);
    const char *d = gx_builder_operand(builder, id, GX_EPILOGUE_BWD_DRESIDUAL);
    const gx_act act = (gx_act)node->attr[GX_EPILOGUE_BWD_ACT].i;
    const char *name = node->name;

    if (!factor && !d)
        return false;
    if (!d && dx)
        d = gx_builder_name(builder, name, "d");

    const gx_field_text plain[] = {
        { "dy", gx_builder_operand(builder, id, GX_EPILOGUE_BWD_DY) },
        { "y", gx_builder_operand(builder, id, GX_EPILOGUE_BWD_Y) },
        { "pre", gx_builder_operand(builder, id, GX_EPILOGUE_BWD_PRE) },
        { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
        { "dx", d },
        { "dbias", gx_builder_operand(builder, id, GX_EPILOGUE_BWD_DBIAS) },
    };
    const gx_field_text scale[] = { { "x", d },
                                    { "factor", factor ? factor : "1" },
                                    { "out", dx } };

    if (!dx) {
        gx_builder_rewrite(builder, id, "epilogue.bwd", plain, 6);
        return true;
    }
    gx_builder_node(builder, "epilogue.bwd", gx_builder_name(builder, name, "act"), id,
                    plain, 6);
    gx_builder_rewrite(builder, id, "scale", scale, 3);
    return true;
}

/* --- derivative --- */

/* What the activation was applied to: x itself where nothing was done before. */
static const char *applied_to(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];

    if (node->arg[GX_EPILOGUE_BIAS] < 0 && node->arg[GX_EPILOGUE_RESIDUAL] < 0 &&
        gx_factor(node, GX_EPILOGUE_SCALE) == 1.0)
        return gx_builder_operand(builder, id, GX_EPILOGUE_X);
    return gx_builder_add_output(builder, id, "pre",
                                 gx_builder_name(builder, node->name, "pre"));
}

/* Through the activation alone: the gradient of `pre` that comes from `out`. */
static const char *through_act(gx_builder *builder, int32_t id, gx_act act,
                               const char *dx, const char *dbias)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const char *origin = node->origin;
    const char *dy = gx_builder_gradient(builder, node->arg[GX_EPILOGUE_OUT]);
    const gx_act_reads reads = gx_act_reads_of[act];
    const char *pre = reads == GX_ACT_READS_PRE ? applied_to(builder, id) : NULL;
    const char *y =
        reads == GX_ACT_READS_Y ? gx_builder_operand(builder, id, GX_EPILOGUE_OUT) : NULL;
    const gx_field_text fields[] = {
        { "dy", dy },   { "y", y },
        { "pre", pre }, { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
        { "dx", dx },   { "dbias", dbias }
    };

    gx_builder_node(builder, "epilogue.bwd", gx_builder_name(builder, origin, "bwd.act"),
                    id, fields, 6);
    return dx;
}

/* The gradient of the bias from that of `pre`, d, which is a tensor of its own. It is a
 * node of its own: it may go with the way back through the activation, or with the
 * product that makes the gradient of the weight, which stands behind it and loads d
 * anyway. */
static void sum_up_bias(gx_builder *builder, int32_t id, const char *d, const char *dbias)
{
    const char *origin = gx_builder_graph(builder)->nodes[id].origin;
    const gx_field_text fields[] = { { "dy", d }, { "dbias", dbias } };

    gx_builder_node(builder, "epilogue.bwd", gx_builder_name(builder, origin, "bwd.bias"),
                    id, fields, 2);
}

/* Where the model reads `pre` too, its gradient is the sum of both ways, and that goes
 * on. */
static const char *gather_pre(gx_builder *builder, int32_t id, gx_act act,
                              const char *d_pre)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const char *name = graph->nodes[id].name;
    const char *origin = graph->nodes[id].origin;
    const char *dy = gx_builder_gradient(builder, graph->nodes[id].arg[GX_EPILOGUE_OUT]);

    if (!dy)
        return d_pre;
    if (act != GX_ACT_NONE)
        dy = through_act(builder, id, act, gx_builder_name(builder, name, "dact"), NULL);

    const char *sum = gx_builder_name(builder, name, "dpre");
    const gx_field_text fields[] = { { "a", d_pre }, { "b", dy }, { "out", sum } };

    gx_builder_node(builder, "add", gx_builder_name(builder, origin, "bwd.sum"), id,
                    fields, 3);
    return sum;
}

/* Where the gradient of `pre` is to be made: as that of x, or of the residual, or under a
 * name of its own where x has a factor. NULL: nobody wants it. */
static const char *pre_gradient_name(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_EPILOGUE_X];
    const int32_t residual = node->arg[GX_EPILOGUE_RESIDUAL];
    const bool wants_residual = residual >= 0 && gx_builder_wants(builder, residual);

    if (gx_factor(node, GX_EPILOGUE_SCALE) == 1.0 && gx_builder_wants(builder, x))
        return gx_builder_gradient_name(builder, x);
    if (wants_residual)
        return gx_builder_gradient_name(builder, residual);
    return gx_builder_wants(builder, x) ? gx_builder_name(builder, node->name, "dpre")
                                        : NULL;
}

/* dx = scale d. */
static void contribute_x(gx_builder *builder, int32_t id, const char *d)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_EPILOGUE_X];
    const char *factor = gx_factor_text(builder, gx_factor(node, GX_EPILOGUE_SCALE));
    const char *dx = d;

    if (!gx_builder_wants(builder, x))
        return;
    if (factor) {
        dx = gx_builder_gradient_name(builder, x);

        const gx_field_text fields[] = { { "x", d },
                                         { "factor", factor },
                                         { "out", dx } };

        gx_builder_node(builder, "scale",
                        gx_builder_name(builder, node->origin, "bwd.scale"), id, fields,
                        3);
    }
    gx_builder_contribute(builder, x, dx);
}

void gx_epilogue_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t bias = node->arg[GX_EPILOGUE_BIAS];
    const int32_t residual = node->arg[GX_EPILOGUE_RESIDUAL];
    const int32_t out = node->arg[GX_EPILOGUE_OUT];
    const int32_t pre = node->arg[GX_EPILOGUE_PRE];
    const gx_act act = (gx_act)node->attr[GX_EPILOGUE_ACT].i;
    const char *d_pre = pre >= 0 ? gx_builder_gradient(builder, pre) : NULL;
    const char *dbias = bias >= 0 ? gx_builder_wanted_name(builder, bias) : NULL;
    const char *d = NULL;

    if (d_pre) {
        d = gather_pre(builder, id, act, d_pre);
    } else if (act == GX_ACT_NONE) {
        d = gx_builder_gradient(builder, out);
    } else {
        d = pre_gradient_name(builder, id);
        through_act(builder, id, act, d, d ? NULL : dbias);
    }
    if (dbias && d)
        sum_up_bias(builder, id, d, dbias);
    if (dbias)
        gx_builder_contribute(builder, bias, dbias);
    if (residual >= 0 && gx_builder_wants(builder, residual))
        gx_builder_contribute(builder, residual, d);
    contribute_x(builder, id, d);
}

/* --- references --- */

static void split(const gx_tensor *x, int64_t *rows, int64_t *columns)
{
    *columns = x->dim[x->rank - 1];
    *rows = 1;
    for (int i = 0; i + 1 < x->rank; i++)
        *rows *= x->dim[i];
}

static gx_status epilogue_reference(const gx_call *call, gx_error *err)
{
    const gx_act act = (gx_act)call->attr[GX_EPILOGUE_ACT].i;
    const double *x = call->arg[GX_EPILOGUE_X].data;
    const double *bias =
        gx_has(call, GX_EPILOGUE_BIAS) ? call->arg[GX_EPILOGUE_BIAS].data : NULL;
    const double *residual =
        gx_has(call, GX_EPILOGUE_RESIDUAL) ? call->arg[GX_EPILOGUE_RESIDUAL].data : NULL;
    const double scale = gx_call_factor(call, GX_EPILOGUE_SCALE);
    double *out = call->arg[GX_EPILOGUE_OUT].data;
    double *pre = gx_has(call, GX_EPILOGUE_PRE) ? call->arg[GX_EPILOGUE_PRE].data : NULL;
    int64_t rows, columns;

    (void)err;
    split(&call->arg[GX_EPILOGUE_X], &rows, &columns);
    for (int64_t i = 0; i < rows; i++) {
        const double *from = x + i * columns;
        double *to = out + i * columns;

        for (int64_t j = 0; j < columns; j++)
            to[j] = bias ? scale * from[j] + bias[j] : scale * from[j];
        for (int64_t j = 0; residual && j < columns; j++)
            to[j] += residual[i * columns + j];
        if (pre)
            memcpy(pre + i * columns, to, (size_t)columns * sizeof *to);
        gx_act_apply(act, to, columns);
    }
    return GX_OK;
}

static gx_status epilogue_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_act act = (gx_act)call->attr[GX_EPILOGUE_BWD_ACT].i;
    const double *dy = call->arg[GX_EPILOGUE_BWD_DY].data;
    const gx_act_reads reads = gx_act_reads_of[act];
    const double *saved = reads == GX_ACT_READS_Y ? call->arg[GX_EPILOGUE_BWD_Y].data
                          : reads == GX_ACT_READS_PRE
                              ? call->arg[GX_EPILOGUE_BWD_PRE].data
                              : dy;
    double *dx =
        gx_has(call, GX_EPILOGUE_BWD_DX) ? call->arg[GX_EPILOGUE_BWD_DX].data : NULL;
    double *dbias = gx_has(call, GX_EPILOGUE_BWD_DBIAS)
                        ? call->arg[GX_EPILOGUE_BWD_DBIAS].data
                        : NULL;
    int64_t rows, columns;

    (void)err;
    split(&call->arg[GX_EPILOGUE_BWD_DY], &rows, &columns);
    for (int64_t j = 0; dbias && j < columns; j++)
        dbias[j] = 0.0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = i * columns + j;
            const double d = gx_act_back(act, dy[at], saved[at]);

            if (dx)
                dx[at] = d;
            if (dbias)
                dbias[j] += d;
        }
    }
    return GX_OK;
}

/* --- cost: a factor, a bias and a residual count as one operation each, an activation as
 * GX_ACT_LIST says --- */

static double act_flops(gx_act act)
{
    static const double flops_of[GX_N_ACTS] = {
#define ACT_FLOPS(act, name, reads, flops) flops,
        GX_ACT_LIST(ACT_FLOPS)
#undef ACT_FLOPS
    };

    return flops_of[act];
}

static double epilogue_flops(const gx_graph *graph, const gx_node *node)
{
    const double n = gx_elements(graph, node, GX_EPILOGUE_X);

    return n *
           (act_flops((gx_act)node->attr[GX_EPILOGUE_ACT].i) +
            (gx_factor(node, GX_EPILOGUE_SCALE) != 1.0) +
            (node->arg[GX_EPILOGUE_BIAS] >= 0) + (node->arg[GX_EPILOGUE_RESIDUAL] >= 0));
}

static double epilogue_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    const double n = gx_elements(graph, node, GX_EPILOGUE_BWD_DY);

    return n * (2 * act_flops((gx_act)node->attr[GX_EPILOGUE_BWD_ACT].i) +
                (node->arg[GX_EPILOGUE_BWD_DBIAS] >= 0));
}

const gx_op gx_epilogue_ops[] = {
    {
        .name = "epilogue",
        .summary = "scale, bias, residual and activation, as they follow a product",
        .formula = "pre = scale x + bias + residual; out = act(pre); other orders with "
                   "`order`",
        .fields = epilogue_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_EACH,
        .infer = epilogue_infer,
        .expand = epilogue_expand,
        .reference = epilogue_reference,
        .grad = gx_epilogue_grad,
        .flops = epilogue_flops,
        .samples = gx_epilogue_samples,
        .tolerance = GX_EPILOGUE_TOLERANCE,
    },
    {
        .name = "epilogue.bwd",
        .summary = "derivative of epilogue",
        .formula = "d = dy act'(pre or y); dx = scale d; dbias = sum of rows of d; "
                   "dresidual = d",
        .fields = epilogue_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = epilogue_bwd_infer,
        .expand = epilogue_bwd_expand,
        .reference = epilogue_bwd_reference,
        .flops = epilogue_bwd_flops,
        .samples = gx_epilogue_bwd_samples,
        .tolerance = GX_EPILOGUE_BWD_TOLERANCE,
    },
    { 0 },
};
