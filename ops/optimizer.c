/* Optimizers as torch.optim has them. Step count and rate are tensors: a captured graph
 * keeps the values of what is not. */
#include <math.h>

#include "infer.h"
#include "samples.h"

static const gx_field sgd_fields[] = {
    { "param", GX_FIELD_INOUT, true, NULL, NULL, "f32 or bf16" },
    { "grad", GX_FIELD_IN, true, NULL, NULL, "like param" },
    { "lr", GX_FIELD_IN, true, NULL, NULL, "f32 [1], the rate" },
    { "weight_decay", GX_FIELD_REAL, false, "0", NULL,
      "added to grad: weight_decay param" },
    { 0 },
};

static const gx_field adamw_fields[] = {
    { "param", GX_FIELD_INOUT, true, NULL, NULL, "f32 or bf16" },
    { "grad", GX_FIELD_IN, true, NULL, NULL, "like param" },
    { "m", GX_FIELD_INOUT, true, NULL, NULL, "like param: running mean of grad" },
    { "v", GX_FIELD_INOUT, true, NULL, NULL, "like param: running mean of grad^2" },
    { "step", GX_FIELD_IN, true, NULL, NULL, "i32 [1], steps done before this one" },
    { "lr", GX_FIELD_IN, true, NULL, NULL, "f32 [1], the rate" },
    { "beta1", GX_FIELD_REAL, false, "0.9", NULL, "weight of the old m" },
    { "beta2", GX_FIELD_REAL, false, "0.999", NULL, "weight of the old v" },
    { "eps", GX_FIELD_REAL, false, "1e-8", NULL, "added to the root of v" },
    { "weight_decay", GX_FIELD_REAL, false, "0.01", NULL,
      "param shrinks by lr weight_decay, apart from the gradient" },
    { 0 },
};

static bool expect_like_param(gx_diagnostics *list, const gx_node *node, const char *key,
                              const gx_value *value, const gx_value *param)
{
    return gx_expect_like(list, node, key, value, param->rank, param->dim) &&
           gx_expect_dtype(list, node, key, value, param->dtype);
}

static bool expect_cell(gx_diagnostics *list, const gx_node *node, const char *key,
                        const gx_value *value, gx_dtype dtype)
{
    return gx_expect_dtype(list, node, key, value, dtype) &&
           gx_expect_like(list, node, key, value, 1, (const int64_t[]){ 1 });
}

/* 0 <= attribute < limit */
static bool expect_range(gx_diagnostics *list, const gx_node *node, const char *key,
                         double value, double limit)
{
    if (value >= 0 && value < limit)
        return true;
    if (isinf(limit))
        gx_misfit(list, node, key, "%s is %g, expected 0 or more", key, value);
    else
        gx_misfit(list, node, key, "%s is %g, expected 0 or more and less than %g", key,
                  value, limit);
    return false;
}

static void sgd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    const gx_value *param = value[GX_SGD_PARAM];

    (void)graph;
    if (gx_expect_float(list, node, "param", param) &&
        expect_like_param(list, node, "grad", value[GX_SGD_GRAD], param))
        expect_cell(list, node, "lr", value[GX_SGD_LR], GX_F32);
    expect_range(list, node, "weight_decay", node->attr[GX_SGD_WEIGHT_DECAY].r, INFINITY);
}

static void adamw_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                        gx_diagnostics *list)
{
    const gx_value *param = value[GX_ADAMW_PARAM];

    (void)graph;
    if (gx_expect_float(list, node, "param", param) &&
        expect_like_param(list, node, "grad", value[GX_ADAMW_GRAD], param) &&
        expect_like_param(list, node, "m", value[GX_ADAMW_M], param) &&
        expect_like_param(list, node, "v", value[GX_ADAMW_V], param) &&
        expect_cell(list, node, "step", value[GX_ADAMW_STEP], GX_I32))
        expect_cell(list, node, "lr", value[GX_ADAMW_LR], GX_F32);
    expect_range(list, node, "beta1", node->attr[GX_ADAMW_BETA1].r, 1.0);
    expect_range(list, node, "beta2", node->attr[GX_ADAMW_BETA2].r, 1.0);
    expect_range(list, node, "eps", node->attr[GX_ADAMW_EPS].r, INFINITY);
    expect_range(list, node, "weight_decay", node->attr[GX_ADAMW_WEIGHT_DECAY].r,
                 INFINITY);
}

static gx_status sgd_reference(const gx_call *call, gx_error *err)
{
    double *param = call->arg[GX_SGD_PARAM].data;
    const double *grad = call->arg[GX_SGD_GRAD].data;
    const double lr = *(const double *)call->arg[GX_SGD_LR].data;
    const double decay = call->attr[GX_SGD_WEIGHT_DECAY].r;
    const int64_t n = gx_count(&call->arg[GX_SGD_PARAM]);

    (void)err;
    for (int64_t i = 0; i < n; i++)
        param[i] -= lr * (grad[i] + decay * param[i]);
    return GX_OK;
}

static gx_status adamw_reference(const gx_call *call, gx_error *err)
{
    double *param = call->arg[GX_ADAMW_PARAM].data;
    double *m = call->arg[GX_ADAMW_M].data;
    double *v = call->arg[GX_ADAMW_V].data;
    const double *grad = call->arg[GX_ADAMW_GRAD].data;
    const double t = *(const double *)call->arg[GX_ADAMW_STEP].data + 1.0;
    const double lr = *(const double *)call->arg[GX_ADAMW_LR].data;
    const double beta1 = call->attr[GX_ADAMW_BETA1].r;
    const double beta2 = call->attr[GX_ADAMW_BETA2].r;
    const double eps = call->attr[GX_ADAMW_EPS].r;
    const double keep = 1.0 - lr * call->attr[GX_ADAMW_WEIGHT_DECAY].r;
    /* rate m / (sqrt(v) / root + eps), with one division less */
    const double root = sqrt(1.0 - pow(beta2, t));
    const double rate = lr / (1.0 - pow(beta1, t)) * root;
    const double least = eps * root;
    const int64_t n = gx_count(&call->arg[GX_ADAMW_PARAM]);

    (void)err;
    for (int64_t i = 0; i < n; i++) {
        m[i] += (1.0 - beta1) * (grad[i] - m[i]);
        v[i] = beta2 * v[i] + (1.0 - beta2) * grad[i] * grad[i];
        param[i] = keep * param[i] - rate * m[i] / (sqrt(v[i]) + least);
    }
    return GX_OK;
}

static double sgd_flops(const gx_graph *graph, const gx_node *node)
{
    return 4 * gx_elements(graph, node, GX_SGD_PARAM);
}

static double adamw_flops(const gx_graph *graph, const gx_node *node)
{
    return 14 * gx_elements(graph, node, GX_ADAMW_PARAM);
}

const gx_op gx_optimizer_ops[] = {
    {
        .name = "sgd",
        .summary = "gradient descent with L2 decay, as torch.optim.SGD",
        .formula = "param -= lr (grad + weight_decay param)",
        .fields = sgd_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = sgd_infer,
        .reference = sgd_reference,
        .flops = sgd_flops,
        .samples = gx_sgd_samples,
        /* A few roundings of 2^-24; a bf16 parameter is rounded to 8 bits. */
        .tolerance = { 1e-6, 1e-6, 4e-3 },
    },
    {
        .name = "adamw",
        .summary = "Adam with decoupled decay, as torch.optim.AdamW",
        .formula = "m = beta1 m + (1 - beta1) grad; v = beta2 v + (1 - beta2) grad^2; "
                   "param = (1 - lr weight_decay) param - "
                   "lr m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + eps), t = step + 1",
        .fields = adamw_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = adamw_infer,
        .reference = adamw_reference,
        .default_rate = 1e-3,
        .flops = adamw_flops,
        .samples = gx_adamw_samples,
        /* f32: the correction 1 - beta2^t starts at 0.001 and loses ten bits if beta2^t
         * is taken in f32: 2^-24 / 0.001. bf16: m, v and param are rounded to 8 bits. */
        .tolerance = { 1e-4, 1e-4, 5e-3 },
    },
    { 0 },
};
