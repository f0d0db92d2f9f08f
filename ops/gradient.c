/* What is done with gradients before a parameter moves: summing over steps, the norm. */
#include <math.h>

#include "infer.h"
#include "samples.h"

/* torch.nn.utils.clip_grad_norm_ adds it to the norm that it divides by. */
static const double CLIP_EPSILON = 1e-6;

static const gx_field accumulate_fields[] = {
    { "grad", GX_FIELD_IN, true, NULL, NULL, "f32, bf16 or f16" },
    { "sum", GX_FIELD_INOUT, true, NULL, NULL, "f32, in grad's shape" },
    { "step", GX_FIELD_IN, true, NULL, NULL, "i32 [1], steps done before this one" },
    { "n", GX_FIELD_INT, true, NULL, NULL, "steps that one update adds up" },
    { 0 },
};

static const gx_field norm_fields[] = {
    { "grad", GX_FIELD_IN, true, NULL, NULL, "f32, bf16 or f16" },
    { "before", GX_FIELD_IN, false, NULL, NULL, "f32 scalar: the norm of other tensors" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { "factor", GX_FIELD_OUT, false, NULL, NULL, "f32 scalar, 1 or less" },
    { "max_norm", GX_FIELD_REAL, false, NULL, NULL, "what factor brings the norm to" },
    { 0 },
};

static void accumulate_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                             gx_diagnostics *list)
{
    const gx_value *grad = value[GX_ACCUMULATE_GRAD];
    const int64_t n = node->attr[GX_ACCUMULATE_N].i;

    (void)graph;
    if (gx_expect_float(list, node, "grad", grad) &&
        gx_expect_like(list, node, "sum", value[GX_ACCUMULATE_SUM], grad->rank,
                       grad->dim) &&
        gx_expect_dtype(list, node, "sum", value[GX_ACCUMULATE_SUM], GX_F32) &&
        gx_expect_dtype(list, node, "step", value[GX_ACCUMULATE_STEP], GX_I32))
        gx_expect_like(list, node, "step", value[GX_ACCUMULATE_STEP], 1,
                       (const int64_t[]){ 1 });
    if (n < 1 || n > INT32_MAX)
        gx_misfit(list, node, "n", "n is %lld, expected 1 to %d", (long long)n,
                  (int)INT32_MAX);
}

static void norm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *before = value[GX_GRAD_NORM_BEFORE];
    const gx_attr *most = &node->attr[GX_GRAD_NORM_MAX];

    (void)graph;
    gx_expect_float(list, node, "grad", value[GX_GRAD_NORM_GRAD]);
    if (before && gx_expect_dtype(list, node, "before", before, GX_F32))
        gx_expect_rank(list, node, "before", before, 0);
    if (most->present && !(most->r > 0))
        gx_misfit(list, node, "max_norm", "max_norm is %g, expected a number above 0",
                  most->r);
    if (value[GX_GRAD_NORM_FACTOR] && !most->present)
        gx_misfit(list, node, "factor", "factor needs \"max_norm\"");
    gx_set_shape(value[GX_GRAD_NORM_OUT], GX_F32, 0, NULL);
    gx_set_shape(value[GX_GRAD_NORM_FACTOR], GX_F32, 0, NULL);
}

static gx_status accumulate_reference(const gx_call *call, gx_error *err)
{
    const double *grad = call->arg[GX_ACCUMULATE_GRAD].data;
    double *sum = call->arg[GX_ACCUMULATE_SUM].data;
    const int64_t step = (int64_t) * (const double *)call->arg[GX_ACCUMULATE_STEP].data;
    const int64_t n = call->attr[GX_ACCUMULATE_N].i;

    (void)err;
    for (int64_t i = 0; i < gx_count(&call->arg[GX_ACCUMULATE_GRAD]); i++)
        sum[i] = (step % n == 0 ? 0 : sum[i]) + grad[i] / (double)n;
    return GX_OK;
}

static gx_status norm_reference(const gx_call *call, gx_error *err)
{
    const double *grad = call->arg[GX_GRAD_NORM_GRAD].data;
    const bool has_before = gx_has(call, GX_GRAD_NORM_BEFORE);
    const double before =
        has_before ? *(const double *)call->arg[GX_GRAD_NORM_BEFORE].data : 0;
    double total = before * before;

    (void)err;
    for (int64_t i = 0; i < gx_count(&call->arg[GX_GRAD_NORM_GRAD]); i++)
        total += grad[i] * grad[i];
    total = sqrt(total);
    *(double *)call->arg[GX_GRAD_NORM_OUT].data = total;
    if (gx_has(call, GX_GRAD_NORM_FACTOR)) {
        const double factor = call->attr[GX_GRAD_NORM_MAX].r / (total + CLIP_EPSILON);

        /* NaN stays, so that it is seen */
        *(double *)call->arg[GX_GRAD_NORM_FACTOR].data = factor > 1 ? 1 : factor;
    }
    return GX_OK;
}

static double two_flops(const gx_graph *graph, const gx_node *node)
{
    return 2 * gx_elements(graph, node, 0);
}

const gx_op gx_gradient_ops[] = {
    {
        .name = "accumulate",
        .summary = "mean of the gradients of n steps, in f32",
        .formula = "sum = (0 where step mod n = 0, else sum) + grad / n",
        .fields = accumulate_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .internal = true,
        .infer = accumulate_infer,
        .reference = accumulate_reference,
        .flops = two_flops,
        .samples = gx_accumulate_samples,
        /* Two roundings of 2^-24 a step; of bf16 only grad is, which is not this row's.
         */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    {
        .name = "grad_norm",
        .summary = "global norm of gradients, as torch.nn.utils.clip_grad_norm_",
        .formula = "out = sqrt(before^2 + sum of grad^2); "
                   "factor = min(1, max_norm / (out + 1e-6))",
        .fields = norm_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .internal = true,
        .infer = norm_infer,
        .reference = norm_reference,
        .flops = two_flops,
        .samples = gx_grad_norm_samples,
        /* Sums are in double; each link of the chain is rounded to f32. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    { 0 },
};
