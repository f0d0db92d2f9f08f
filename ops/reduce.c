/* Sums, means and maxima over axes, their derivatives, and the two changes of shape that
 * go with broadcasting. */
#include "reduce.h"

#include "axes.h"
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const char *const out_dtypes[] = { "f32", NULL };
static const char *const dx_dtypes[] = { "f32", "bf16", "f16", NULL };
static const gx_dtype dtypes[] = { GX_F32, GX_BF16, GX_F16 }; /* as dx_dtypes */

#define AXIS_FIELD                                                         \
    {                                                                      \
        "axis", GX_FIELD_INTS, false, NULL, NULL,                          \
            "which dimensions, from the last one if negative; absent: all" \
    }
#define KEEPDIM_FIELD                                                              \
    {                                                                              \
        "keepdim", GX_FIELD_BOOL, false, "false", NULL, "they stay, as sizes of 1" \
    }

static const gx_field total_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "x without those dimensions" },
    AXIS_FIELD,
    KEEPDIM_FIELD,
    { "dtype", GX_FIELD_ENUM, false, NULL, out_dtypes,
      "f32: so is out, whatever x is; absent: like x" },
    { 0 },
};

static const gx_field total_bwd_fields[] = {
    { "dy", GX_FIELD_IN, false, NULL, NULL, "gradient of the forward out; absent: 1" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "of that shape" },
    { "shape", GX_FIELD_INTS, false, NULL, NULL, "the sizes of x; absent: a scalar" },
    AXIS_FIELD,
    KEEPDIM_FIELD,
    { "dtype", GX_FIELD_ENUM, false, NULL, dx_dtypes,
      "the type of x; absent: like dy, and f32 without dy" },
    { 0 },
};

static const gx_field max_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "x without those dimensions" },
    AXIS_FIELD,
    KEEPDIM_FIELD,
    { 0 },
};

static const gx_field max_bwd_fields[] = {
    { "dy", GX_FIELD_IN, false, NULL, NULL, "gradient of max's out; absent: 1" },
    { "x", GX_FIELD_IN, true, NULL, NULL, "as in max" },
    { "y", GX_FIELD_IN, true, NULL, NULL, "max's out" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    AXIS_FIELD,
    KEEPDIM_FIELD,
    { 0 },
};

static const gx_field sum_to_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "of that shape" },
    { "shape", GX_FIELD_INTS, false, NULL, NULL,
      "sizes that broadcast to those of x; absent: a scalar" },
    { 0 },
};

static const gx_field broadcast_to_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "sizes that broadcast to that shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "of that shape" },
    { "shape", GX_FIELD_INTS, false, NULL, NULL, "the sizes of out; absent: a scalar" },
    { 0 },
};

/* --- shapes --- */

static void total_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                        gx_diagnostics *list)
{
    const gx_value *x = value[GX_REDUCE_X];
    const gx_dtype dtype = node->attr[GX_REDUCE_DTYPE].present ? GX_F32 : x->dtype;
    const bool is_mean = node->op->name[0] == 'm';
    int64_t dim[GX_MAX_RANK];
    gx_axes axes;

    (void)graph;
    if (!gx_expect_float(list, node, "x", x) ||
        !gx_expect_axes(list, node, &node->attr[GX_REDUCE_AXIS],
                        node->attr[GX_REDUCE_KEEPDIM].i, x->rank, x->dim, &axes) ||
        (is_mean && !gx_expect_elements(list, node, "mean", x->rank, x->dim, &axes)))
        return;
    const int rank = gx_axes_out(&axes, x->rank, x->dim, dim);

    gx_set_shape(value[GX_REDUCE_OUT], dtype, rank, dim);
}

static void max_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    const gx_value *x = value[GX_REDUCE_X];
    int64_t dim[GX_MAX_RANK];
    gx_axes axes;

    (void)graph;
    if (!gx_expect_float(list, node, "x", x) ||
        !gx_expect_axes(list, node, &node->attr[GX_REDUCE_AXIS],
                        node->attr[GX_REDUCE_KEEPDIM].i, x->rank, x->dim, &axes) ||
        !gx_expect_elements(list, node, "maximum", x->rank, x->dim, &axes))
        return;
    const int rank = gx_axes_out(&axes, x->rank, x->dim, dim);

    gx_set_shape(value[GX_REDUCE_OUT], x->dtype, rank, dim);
}

static void total_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                            gx_diagnostics *list)
{
    const gx_value *dy = value[GX_REDUCE_BWD_DY];
    const gx_attr *shape = &node->attr[GX_REDUCE_BWD_SHAPE];
    const gx_attr *dtype = &node->attr[GX_REDUCE_BWD_DTYPE];
    const int rank = (int)shape->i;
    int64_t dim[GX_MAX_RANK];
    gx_axes axes;

    (void)graph;
    if ((dy && !gx_expect_float(list, node, "dy", dy)) ||
        !gx_expect_sizes(list, node, shape) ||
        !gx_expect_axes(list, node, &node->attr[GX_REDUCE_BWD_AXIS],
                        node->attr[GX_REDUCE_BWD_KEEPDIM].i, rank, shape->list, &axes))
        return;
    const int out_rank = gx_axes_out(&axes, rank, shape->list, dim);

    if (dy && !gx_expect_like(list, node, "dy", dy, out_rank, dim))
        return;
    gx_set_shape(value[GX_REDUCE_BWD_DX],
                 dtype->present ? dtypes[dtype->i]
                 : dy           ? dy->dtype
                                : GX_F32,
                 rank, shape->list);
}

static void max_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *dy = value[GX_MAX_BWD_DY], *x = value[GX_MAX_BWD_X];
    const gx_value *y = value[GX_MAX_BWD_Y];
    int64_t dim[GX_MAX_RANK];
    gx_axes axes;

    (void)graph;
    if (!gx_expect_float(list, node, "x", x) ||
        !gx_expect_axes(list, node, &node->attr[GX_MAX_BWD_AXIS],
                        node->attr[GX_MAX_BWD_KEEPDIM].i, x->rank, x->dim, &axes))
        return;
    const int rank = gx_axes_out(&axes, x->rank, x->dim, dim);

    if (!gx_expect_like(list, node, "y", y, rank, dim) ||
        !gx_expect_dtype(list, node, "y", y, x->dtype) ||
        (dy && (!gx_expect_like(list, node, "dy", dy, rank, dim) ||
                !gx_expect_dtype(list, node, "dy", dy, x->dtype))))
        return;
    gx_set_shape(value[GX_MAX_BWD_DX], x->dtype, x->rank, x->dim);
}

/* `narrow` broadcasts to `wide`: aligned at the last, each size is equal or 1. */
static bool fits(int narrow_rank, const int64_t *narrow, int wide_rank,
                 const int64_t *wide)
{
    if (narrow_rank > wide_rank)
        return false;
    for (int i = 0; i < narrow_rank; i++) {
        if (narrow[i] != 1 && narrow[i] != wide[i + wide_rank - narrow_rank])
            return false;
    }
    return true;
}

static void shaped_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                         gx_diagnostics *list)
{
    const gx_value *x = value[GX_SHAPED_X];
    const gx_attr *shape = &node->attr[GX_SHAPED_SHAPE];
    const int rank = (int)shape->i;
    const bool sums = node->op->name[0] == 's';
    char of_x[128], of_shape[128];

    (void)graph;
    if (!gx_expect_float(list, node, "x", x) || !gx_expect_sizes(list, node, shape))
        return;
    if (sums ? fits(rank, shape->list, x->rank, x->dim)
             : fits(x->rank, x->dim, rank, shape->list)) {
        gx_set_shape(value[GX_SHAPED_OUT], x->dtype, rank, shape->list);
        return;
    }
    gx_shape_text(x->rank, x->dim, of_x, sizeof of_x);
    gx_shape_text(rank, shape->list, of_shape, sizeof of_shape);
    gx_misfit(list, node, "shape",
              "x has shape %s and shape is %s: the %s does not broadcast to the other",
              of_x, of_shape, sums ? "second" : "first");
}

/* --- derivatives --- */

static const char *dtype_text(gx_dtype dtype)
{
    return gx_dtype_name(dtype);
}

/* sum and mean: dy goes to every element. */
static void total_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const gx_value *x = &graph->values[node->arg[GX_REDUCE_X]];
    const int32_t operand = node->arg[GX_REDUCE_X];
    const gx_attr *axis = &node->attr[GX_REDUCE_AXIS];
    const char *dy = gx_builder_gradient(builder, node->arg[GX_REDUCE_OUT]);
    const char *out = gx_builder_wanted_name(builder, operand);
    const char *op = node->op->name[0] == 'm' ? "mean.bwd" : "sum.bwd";
    gx_field_text fields[4 + 2 * GX_MAX_RANK] = {
        { "dy", gx_builder_is_one(dy) ? NULL : dy },
        { "keepdim", node->attr[GX_REDUCE_KEEPDIM].i ? "true" : NULL },
        { "dtype", dtype_text(x->dtype) },
        { "dx", out },
    };
    size_t n = 4;

    if (!out)
        return;
    n += gx_builder_list(builder, "shape", x->rank, x->dim, fields + n);
    n += gx_builder_list(builder, "axis", (int)axis->i, axis->list, fields + n);
    gx_builder_node(builder, op, gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, n);
    gx_builder_contribute(builder, operand, out);
}

static void max_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand = node->arg[GX_REDUCE_X];
    const gx_attr *axis = &node->attr[GX_REDUCE_AXIS];
    const char *dy = gx_builder_gradient(builder, node->arg[GX_REDUCE_OUT]);
    const char *out = gx_builder_wanted_name(builder, operand);
    gx_field_text fields[5 + GX_MAX_RANK] = {
        { "dy", gx_builder_is_one(dy) ? NULL : dy },
        { "x", gx_builder_operand(builder, id, GX_REDUCE_X) },
        { "y", gx_builder_operand(builder, id, GX_REDUCE_OUT) },
        { "keepdim", node->attr[GX_REDUCE_KEEPDIM].i ? "true" : NULL },
        { "dx", out },
    };
    size_t n = 5;

    if (!out)
        return;
    n += gx_builder_list(builder, "axis", (int)axis->i, axis->list, fields + n);
    gx_builder_node(builder, "max.bwd", gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, n);
    gx_builder_contribute(builder, operand, out);
}

/* Each of the two is the derivative of the other. */
static void shaped_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t operand = node->arg[GX_SHAPED_X];
    const gx_value *x = &graph->values[operand];
    const char *op = node->op->name[0] == 's' ? "broadcast_to" : "sum_to";
    const char *out = gx_builder_wanted_name(builder, operand);
    gx_field_text fields[2 + GX_MAX_RANK] = {
        { "x", gx_builder_gradient(builder, node->arg[GX_SHAPED_OUT]) },
        { "out", out },
    };

    if (!out)
        return;
    const size_t n = gx_builder_list(builder, "shape", x->rank, x->dim, fields + 2);

    gx_builder_node(builder, op, gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, 2 + n);
    gx_builder_contribute(builder, operand, out);
}

/* --- cost --- */

static double total_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_REDUCE_X);
}

static double total_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return node->op->name[0] == 'm' ? gx_elements(graph, node, GX_REDUCE_BWD_DX) : 0;
}

static double max_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return 3 * gx_elements(graph, node, GX_MAX_BWD_X);
}

static double sum_to_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_SHAPED_X);
}

static double no_flops(const gx_graph *graph, const gx_node *node)
{
    (void)graph, (void)node;
    return 0;
}

/* f32 partial sums of some thousand terms in a fixed order, terms of either sign; bf16:
 * the result is rounded to 8 bits, f16: to 11. */
#define SUMMED                 \
    {                          \
        1e-5, 1e-5, 5e-3, 7e-4 \
    }
/* One rounding, or two. */
#define ROUNDED                \
    {                          \
        1e-6, 1e-6, 5e-3, 7e-4 \
    }

const gx_op gx_reduce_ops[] = {
    {
        .name = "sum",
        .summary = "sum over all dimensions or some",
        .formula = "out = sum of x over axis",
        .fields = total_fields,
        .phase = GX_PHASE_FORWARD,
        .takes_one = true,
        .rows = GX_ROWS_SUM,
        .infer = total_infer,
        .reference = gx_sum_reference,
        .grad = total_grad,
        .flops = total_flops,
        .samples = gx_sum_samples,
        .tolerance = SUMMED,
    },
    {
        .name = "sum.bwd",
        .summary = "derivative of sum",
        .formula = "dx = dy, repeated along axis",
        .fields = total_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = total_bwd_infer,
        .reference = gx_sum_bwd_reference,
        .flops = total_bwd_flops,
        .samples = gx_sum_bwd_samples,
        .tolerance = ROUNDED,
    },
    {
        .name = "mean",
        .summary = "mean over all dimensions or some",
        .formula = "out = sum of x over axis / n, n elements along axis",
        .fields = total_fields,
        .phase = GX_PHASE_FORWARD,
        .takes_one = true,
        .rows = GX_ROWS_MEAN,
        .infer = total_infer,
        .reference = gx_mean_reference,
        .grad = total_grad,
        .flops = total_flops,
        .samples = gx_mean_samples,
        .tolerance = SUMMED,
    },
    {
        .name = "mean.bwd",
        .summary = "derivative of mean",
        .formula = "dx = dy / n, repeated along axis",
        .fields = total_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = total_bwd_infer,
        .reference = gx_mean_bwd_reference,
        .flops = total_bwd_flops,
        .samples = gx_mean_bwd_samples,
        .tolerance = ROUNDED,
    },
    {
        .name = "max",
        .summary = "largest element over all dimensions or some, as torch.amax",
        .formula = "out = maximum of x over axis; NaN where one is",
        .fields = max_fields,
        .phase = GX_PHASE_FORWARD,
        .takes_one = true,
        .rows = GX_ROWS_MOST,
        .infer = max_infer,
        .reference = gx_max_reference,
        .grad = max_grad,
        .flops = total_flops,
        .samples = gx_max_samples,
        /* Exact; what it is a maximum of is rounded. */
        .tolerance = ROUNDED,
    },
    {
        .name = "max.bwd",
        .summary = "derivative of max",
        .formula = "dx = dy / (elements equal to y along axis) where x = y, else 0",
        .fields = max_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = max_bwd_infer,
        .reference = gx_max_bwd_reference,
        .flops = max_bwd_flops,
        .samples = gx_max_bwd_samples,
        .tolerance = ROUNDED,
    },
    {
        .name = "sum_to",
        .summary = "sum to a smaller shape, as torch.Tensor.sum_to_size",
        .formula =
            "out = sum of x over the dimensions where shape has 1, or nothing in front",
        .fields = sum_to_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_SUM,
        .infer = shaped_infer,
        .reference = gx_sum_to_reference,
        .grad = shaped_grad,
        .flops = sum_to_flops,
        .samples = gx_sum_to_samples,
        .tolerance = SUMMED,
    },
    {
        .name = "broadcast_to",
        .summary = "a tensor repeated to a larger shape",
        .formula = "out = x, repeated where x has size 1, or nothing in front",
        .fields = broadcast_to_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_KEEP,
        .infer = shaped_infer,
        .reference = gx_broadcast_to_reference,
        .grad = shaped_grad,
        .flops = no_flops,
        .samples = gx_broadcast_to_samples,
        /* Exact. */
        .tolerance = ROUNDED,
    },
    { 0 },
};
