/* Bias and activation after a product, the activations by themselves, and derivatives. */
#include <math.h>
#include <string.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field epilogue_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n]" },
    { "bias", GX_FIELD_IN, false, NULL, NULL, "[n], added to each row" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "pre", GX_FIELD_OUT, false, NULL, NULL,
      "like x: what the activation is applied to" },
    { "act", GX_FIELD_ENUM, false, "none", gx_act_names, "the activation" },
    { 0 },
};

static const gx_field epilogue_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "[..., n], gradient of the epilogue's out" },
    { "y", GX_FIELD_IN, false, NULL, NULL, "like dy, the epilogue's out; relu needs it" },
    { "pre", GX_FIELD_IN, false, NULL, NULL,
      "like dy, what the activation was applied to; gelu_tanh needs it" },
    { "dx", GX_FIELD_OUT, false, NULL, NULL, "like dy, gradient of x" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n], gradient of the bias" },
    { "act", GX_FIELD_ENUM, false, "none", gx_act_names, "the activation" },
    { 0 },
};

static const gx_field act_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "one dimension or more" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { 0 },
};

static const gx_field relu_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of relu's out" },
    { "y", GX_FIELD_IN, true, NULL, NULL, "like dy, relu's out" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like dy" },
    { 0 },
};

static const gx_field gelu_bwd_fields[] = {
    { "dy", GX_FIELD_IN, true, NULL, NULL, "gradient of gelu_tanh's out" },
    { "x", GX_FIELD_IN, true, NULL, NULL, "like dy, gelu_tanh's x" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like dy" },
    { 0 },
};

/* --- shapes --- */

/* A float tensor of one dimension or more. */
static bool expect_rows(gx_diagnostics *list, const gx_node *node, const char *key,
                        const gx_value *value)
{
    if (!gx_expect_float(list, node, key, value))
        return false;
    if (value->rank > 0)
        return true;
    gx_misfit(list, node, key, "%s is a scalar, expected one dimension or more", key);
    return false;
}

static bool expect_same(gx_diagnostics *list, const gx_node *node, const char *key,
                        const gx_value *value, const gx_value *like)
{
    return gx_expect_like(list, node, key, value, like->rank, like->dim) &&
           gx_expect_dtype(list, node, key, value, like->dtype);
}

static void epilogue_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const gx_value *x = value[GX_EPILOGUE_X];
    const gx_value *bias = value[GX_EPILOGUE_BIAS];

    (void)graph;
    if (!expect_rows(list, node, "x", x))
        return;
    if (bias && !(gx_expect_like(list, node, "bias", bias, 1, &x->dim[x->rank - 1]) &&
                  gx_expect_dtype(list, node, "bias", bias, x->dtype)))
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
    if (!expect_rows(list, node, "dy", dy) ||
        (y && !expect_same(list, node, "y", y, dy)) ||
        (pre && !expect_same(list, node, "pre", pre, dy)))
        return;
    if (act == GX_ACT_RELU && !y) {
        gx_misfit(list, node, "act", "the derivative of relu needs the field \"y\"");
    } else if (act == GX_ACT_GELU_TANH && !pre) {
        gx_misfit(list, node, "act",
                  "the derivative of gelu_tanh needs the field \"pre\"");
    } else if (!value[GX_EPILOGUE_BWD_DX] && !value[GX_EPILOGUE_BWD_DBIAS]) {
        gx_misfit(list, node, NULL, "it makes nothing: expected dx or dbias");
    } else {
        gx_set_shape(value[GX_EPILOGUE_BWD_DX], dy->dtype, dy->rank, dy->dim);
        gx_set_shape(value[GX_EPILOGUE_BWD_DBIAS], dy->dtype, 1, &dy->dim[dy->rank - 1]);
    }
}

/* relu and gelu_tanh, and their derivatives: operands like the first, then the output. */
static void act_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (expect_rows(list, node, "x", value[0]))
        gx_set_shape(value[1], value[0]->dtype, value[0]->rank, value[0]->dim);
}

static void act_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    (void)graph;
    if (expect_rows(list, node, "dy", value[0]) &&
        expect_same(list, node, node->op->fields[1].name, value[1], value[0]))
        gx_set_shape(value[2], value[0]->dtype, value[0]->rank, value[0]->dim);
}

/* --- expansion --- */

static bool expand_act(gx_builder *builder, int32_t id, gx_act act)
{
    const gx_field_text fields[] = { { "x", gx_builder_operand(builder, id, 0) },
                                     { "act", gx_act_names[act] },
                                     { "out", gx_builder_operand(builder, id, 1) } };

    gx_builder_rewrite(builder, id, "epilogue", fields, 3);
    return true;
}

static bool relu_expand(gx_builder *builder, int32_t id)
{
    return expand_act(builder, id, GX_ACT_RELU);
}

static bool gelu_expand(gx_builder *builder, int32_t id)
{
    return expand_act(builder, id, GX_ACT_GELU_TANH);
}

static bool expand_act_bwd(gx_builder *builder, int32_t id, gx_act act, const char *kept)
{
    const gx_field_text fields[] = { { "dy", gx_builder_operand(builder, id, 0) },
                                     { kept, gx_builder_operand(builder, id, 1) },
                                     { "act", gx_act_names[act] },
                                     { "dx", gx_builder_operand(builder, id, 2) } };

    gx_builder_rewrite(builder, id, "epilogue.bwd", fields, 4);
    return true;
}

static bool relu_bwd_expand(gx_builder *builder, int32_t id)
{
    return expand_act_bwd(builder, id, GX_ACT_RELU, "y");
}

static bool gelu_bwd_expand(gx_builder *builder, int32_t id)
{
    return expand_act_bwd(builder, id, GX_ACT_GELU_TANH, "pre");
}

/* --- derivative --- */

/* What the activation was applied to: x itself where no bias was added. */
static const char *applied_to(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];

    if (node->arg[GX_EPILOGUE_BIAS] < 0)
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
    const char *pre = act == GX_ACT_GELU_TANH ? applied_to(builder, id) : NULL;
    const char *y =
        act == GX_ACT_RELU ? gx_builder_operand(builder, id, GX_EPILOGUE_OUT) : NULL;
    const gx_field_text fields[] = {
        { "dy", dy },   { "y", y },
        { "pre", pre }, { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
        { "dx", dx },   { "dbias", dbias }
    };

    gx_builder_node(builder, "epilogue.bwd", gx_builder_name(builder, origin, "bwd.act"),
                    id, fields, 6);
    return dx;
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

static void epilogue_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_EPILOGUE_X];
    const int32_t bias = node->arg[GX_EPILOGUE_BIAS];
    const int32_t out = node->arg[GX_EPILOGUE_OUT];
    const int32_t pre = node->arg[GX_EPILOGUE_PRE];
    const gx_act act = (gx_act)node->attr[GX_EPILOGUE_ACT].i;
    const char *origin = node->origin;
    const char *d_pre = pre >= 0 ? gx_builder_gradient(builder, pre) : NULL;
    const char *dbias = bias >= 0 ? gx_builder_wanted_name(builder, bias) : NULL;
    const char *dx = NULL;

    if (d_pre) {
        dx = gather_pre(builder, id, act, d_pre);
        if (dbias) {
            const gx_field_text fields[] = { { "dy", dx }, { "dbias", dbias } };

            gx_builder_node(builder, "epilogue.bwd",
                            gx_builder_name(builder, origin, "bwd.bias"), id, fields, 2);
        }
    } else if (act == GX_ACT_NONE) {
        dx = gx_builder_gradient(builder, out);
        if (dbias)
            through_act(builder, id, act, NULL, dbias);
    } else {
        dx = gx_builder_wanted_name(builder, x);
        through_act(builder, id, act, dx, dbias);
    }
    if (dbias)
        gx_builder_contribute(builder, bias, dbias);
    if (gx_builder_wants(builder, x))
        gx_builder_contribute(builder, x, dx);
}

/* --- references --- */

/* gelu(x) = x/2 (1 + tanh(u)), u = C0 (x + C1 x^3). (1 + tanh u) / 2 is the logistic
 * function of 2 u, which does not cancel where u is far below zero. */
static const double C0 = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double C1 = 0.044715;

static double logistic(double t)
{
    if (t >= 0)
        return 1.0 / (1.0 + exp(-t));
    const double e = exp(t);

    return e / (1.0 + e);
}

/* max(x, 0), and NaN stays. By a mask: a branch would be guessed wrong half the time. */
static double rectify(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= (uint64_t)0 - (uint64_t) !(x <= 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* In place, one loop for each activation. */
static void activate(gx_act act, double *x, int64_t n)
{
    switch (act) {
    case GX_ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            x[i] = rectify(x[i]);
        break;
    case GX_ACT_GELU_TANH:
        for (int64_t i = 0; i < n; i++)
            x[i] *= logistic(2.0 * C0 * (x[i] + C1 * x[i] * x[i] * x[i]));
        break;
    default:
        break;
    }
}

/* gelu' = s + x s (1 - s) 2 u', s the logistic function above; 1 - s is again one of it.
 */
static double gelu_slope(double x)
{
    const double t = 2.0 * C0 * (x + C1 * x * x * x);
    const double slope = 2.0 * C0 * (1.0 + 3.0 * C1 * x * x);
    const double s = logistic(t);

    if (isinf(x))
        return x > 0 ? 1.0 : 0.0;
    return s + x * slope * s * logistic(-t);
}

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
    double *out = call->arg[GX_EPILOGUE_OUT].data;
    double *pre = gx_has(call, GX_EPILOGUE_PRE) ? call->arg[GX_EPILOGUE_PRE].data : NULL;
    int64_t rows, columns;

    (void)err;
    split(&call->arg[GX_EPILOGUE_X], &rows, &columns);
    for (int64_t i = 0; i < rows; i++) {
        const double *from = x + i * columns;
        double *to = out + i * columns;

        for (int64_t j = 0; j < columns; j++)
            to[j] = bias ? from[j] + bias[j] : from[j];
        if (pre)
            memcpy(pre + i * columns, to, (size_t)columns * sizeof *to);
        activate(act, to, columns);
    }
    return GX_OK;
}

/* relu stops a gradient where it is shut, an infinite one too. */
static double back(gx_act act, double dy, double y, double pre)
{
    switch (act) {
    case GX_ACT_RELU:
        return y > 0 ? dy : 0.0;
    case GX_ACT_GELU_TANH:
        return dy * gelu_slope(pre);
    default:
        return dy;
    }
}

static gx_status epilogue_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_act act = (gx_act)call->attr[GX_EPILOGUE_BWD_ACT].i;
    const double *dy = call->arg[GX_EPILOGUE_BWD_DY].data;
    const double *y = act == GX_ACT_RELU ? call->arg[GX_EPILOGUE_BWD_Y].data : dy;
    const double *pre =
        act == GX_ACT_GELU_TANH ? call->arg[GX_EPILOGUE_BWD_PRE].data : dy;
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
            const double d = back(act, dy[at], y[at], pre[at]);

            if (dx)
                dx[at] = d;
            if (dbias)
                dbias[j] += d;
        }
    }
    return GX_OK;
}

/* --- cost: an activation counts as some operations; gelu_tanh's tanh as eight --- */

static double act_flops(gx_act act)
{
    return act == GX_ACT_NONE ? 0 : act == GX_ACT_RELU ? 1 : 16;
}

static double epilogue_flops(const gx_graph *graph, const gx_node *node)
{
    const double n = gx_elements(graph, node, GX_EPILOGUE_X);

    return n * (act_flops((gx_act)node->attr[GX_EPILOGUE_ACT].i) +
                (node->arg[GX_EPILOGUE_BIAS] >= 0));
}

static double epilogue_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    const double n = gx_elements(graph, node, GX_EPILOGUE_BWD_DY);

    return n * (2 * act_flops((gx_act)node->attr[GX_EPILOGUE_BWD_ACT].i) +
                (node->arg[GX_EPILOGUE_BWD_DBIAS] >= 0));
}

/* Elementwise in f32: a few roundings of 2^-24, and tanh's own error of a few units,
 * which counts where gelu is near zero. bf16: the result is rounded to 8 bits, 2^-9. */
#define EPILOGUE_TOLERANCE \
    {                      \
        4e-6, 4e-6, 5e-3   \
    }
/* The bias gradient sums some thousand rows in f32; terms of either sign cancel. */
#define EPILOGUE_BWD_TOLERANCE \
    {                          \
        2e-5, 2e-5, 5e-3       \
    }

const gx_op gx_epilogue_ops[] = {
    {
        .name = "epilogue",
        .summary = "bias and activation, as they follow a product",
        .formula = "pre = x + bias; out = act(pre)",
        .fields = epilogue_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = epilogue_infer,
        .reference = epilogue_reference,
        .grad = epilogue_grad,
        .flops = epilogue_flops,
        .samples = gx_epilogue_samples,
        .tolerance = EPILOGUE_TOLERANCE,
    },
    {
        .name = "epilogue.bwd",
        .summary = "derivative of epilogue",
        .formula = "dx = dy act'(pre or y); dbias = sum of rows of dx",
        .fields = epilogue_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = epilogue_bwd_infer,
        .reference = epilogue_bwd_reference,
        .flops = epilogue_bwd_flops,
        .samples = gx_epilogue_bwd_samples,
        .tolerance = EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "relu",
        .summary = "rectified linear unit",
        .formula = "out = max(x, 0)",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = relu_expand,
        .grad = epilogue_grad,
        .samples = gx_relu_samples,
        .tolerance = EPILOGUE_TOLERANCE,
    },
    {
        .name = "relu.bwd",
        .summary = "derivative of relu",
        .formula = "dx = dy where y > 0, else 0",
        .fields = relu_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = relu_bwd_expand,
        .samples = gx_relu_bwd_samples,
        .tolerance = EPILOGUE_BWD_TOLERANCE,
    },
    {
        .name = "gelu_tanh",
        .summary = "Gaussian error linear unit in its tanh form",
        .formula = "out = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
        .fields = act_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = act_infer,
        .expand = gelu_expand,
        .grad = epilogue_grad,
        .samples = gx_gelu_samples,
        .tolerance = EPILOGUE_TOLERANCE,
    },
    {
        .name = "gelu_tanh.bwd",
        .summary = "derivative of gelu_tanh",
        .formula = "dx = dy gelu_tanh'(x)",
        .fields = gelu_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = act_bwd_infer,
        .expand = gelu_bwd_expand,
        .samples = gx_gelu_bwd_samples,
        .tolerance = EPILOGUE_BWD_TOLERANCE,
    },
    { 0 },
};
