/* Optimizers as torch.optim has them. Step count, rate and the gradient's factor are
 * tensors: a captured graph keeps the values of what is not. */
#include <math.h>

#include "infer.h"
#include "samples.h"

#define PARAM                                                         \
    {                                                                 \
        "param", GX_FIELD_INOUT, true, NULL, NULL, "f32, bf16 or f16" \
    }
#define GRAD                                                        \
    {                                                               \
        "grad", GX_FIELD_IN, true, NULL, NULL, "like param, or f32" \
    }
#define STEP(needed)                                                  \
    {                                                                 \
        "step", GX_FIELD_IN, needed, NULL, NULL,                      \
            "i32 [1], steps done before this one; below 0: no update" \
    }
/* `or_else`: where the optimizer section has none, as default_rate. */
#define RATE(or_else)                                                                 \
    {                                                                                 \
        "lr", GX_FIELD_IN, true, NULL, NULL,                                          \
            "f32 [1] or scalar, the rate; of an optimizer section a number, " or_else \
    }
#define NO_RATE "which it must have"
#define SCALE                                                                            \
    {                                                                                    \
        "scale", GX_FIELD_IN, false, NULL, NULL, "f32 scalar that grad is multiplied by" \
    }
#define MASTER                                                                        \
    {                                                                                 \
        "master", GX_FIELD_INOUT, false, NULL, NULL,                                  \
            "f32 like a 16-bit param: what is updated, and param is its rounded copy" \
    }
#define STATE(name, what)                                                   \
    {                                                                       \
        name, GX_FIELD_INOUT, true, NULL, NULL, "like param, or f32: " what \
    }
#define ACCUMULATE                                                \
    {                                                             \
        "accumulate", GX_FIELD_INT, false, "1", NULL,             \
            "n: updates at each n-th step only; t counts updates" \
    }

static const gx_field sgd_fields[] = {
    PARAM,
    GRAD,
    RATE(NO_RATE),
    STEP(false),
    SCALE,
    MASTER,
    { "weight_decay", GX_FIELD_REAL, false, "0", NULL,
      "added to grad: weight_decay param" },
    ACCUMULATE,
    { 0 },
};

#define MOMENTUM_FIELDS                                                                 \
    PARAM, GRAD, STATE("buf", "the moving gradient"), STEP(true), RATE(NO_RATE), SCALE, \
        MASTER,                                                                         \
        { "momentum", GX_FIELD_REAL, false, "0.9", NULL, "weight of the old buf" },     \
        { "weight_decay", GX_FIELD_REAL,                                                \
          false,          "0",                                                          \
          NULL,           "added to grad: weight_decay param" },                        \
        ACCUMULATE

static const gx_field momentum_fields[] = {
    MOMENTUM_FIELDS,
    { "dampening", GX_FIELD_REAL, false, "0", NULL,
      "grad enters buf with weight 1 - dampening" },
    { 0 },
};

static const gx_field nesterov_fields[] = { MOMENTUM_FIELDS, { 0 } };

#define ADAM_FIELDS(decay, what)                                                 \
    PARAM, GRAD, STATE("m", "running mean of grad"),                             \
        STATE("v", "running mean of grad^2"), STEP(true),                        \
        RATE("1e-3 where it has none"), SCALE, MASTER,                           \
        { "beta1", GX_FIELD_REAL, false, "0.9", NULL, "weight of the old m" },   \
        { "beta2", GX_FIELD_REAL, false, "0.999", NULL, "weight of the old v" }, \
        { "eps", GX_FIELD_REAL, false, "1e-8", NULL, "added to the root of v" }, \
        { "weight_decay", GX_FIELD_REAL, false, decay, NULL, what }, ACCUMULATE

static const gx_field adam_fields[] = {
    ADAM_FIELDS("0", "added to grad: weight_decay param"),
    { 0 },
};

static const gx_field adamw_fields[] = {
    ADAM_FIELDS("0.01", "param shrinks by lr weight_decay, apart from the gradient"),
    { 0 },
};

/* --- what fits --- */

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

static bool expect_state(gx_diagnostics *list, const gx_node *node, const char *key,
                         const gx_value *value, const gx_value *param)
{
    return gx_expect_like(list, node, key, value, param->rank, param->dim) &&
           (value->dtype == GX_F32 ||
            gx_expect_dtype(list, node, key, value, param->dtype));
}

static bool expect_master(gx_diagnostics *list, const gx_node *node,
                          const gx_value *master, const gx_value *param)
{
    if (!master)
        return true;
    if (param->dtype == GX_F32) {
        gx_misfit(list, node, "master", "param is f32 already: it has no rounded copy");
        return false;
    }
    return gx_expect_like(list, node, "master", master, param->rank, param->dim) &&
           gx_expect_dtype(list, node, "master", master, GX_F32);
}

/* An operand that is there is of the type, and one element: [1], or a scalar. */
static bool expect_cell(gx_diagnostics *list, const gx_node *node, const char *key,
                        const gx_value *value, gx_dtype dtype)
{
    if (!value)
        return true;
    if (!gx_expect_dtype(list, node, key, value, dtype))
        return false;
    return (value->rank == 0 && dtype == GX_F32) ||
           gx_expect_like(list, node, key, value, 1, (const int64_t[]){ 1 });
}

static bool expect_scale(gx_diagnostics *list, const gx_node *node, const gx_value *scale)
{
    return !scale || (gx_expect_dtype(list, node, "scale", scale, GX_F32) &&
                      gx_expect_rank(list, node, "scale", scale, 0));
}

static bool expect_accumulate(gx_diagnostics *list, const gx_node *node, int attr,
                              const gx_value *step)
{
    const int64_t n = node->attr[attr].i;

    if (n < 1 || n > INT32_MAX) {
        gx_misfit(list, node, "accumulate", "accumulate is %lld, expected 1 to %d",
                  (long long)n, (int)INT32_MAX);
        return false;
    }
    if (n > 1 && !step)
        gx_misfit(list, node, "accumulate", "with accumulate it needs \"step\"");
    return n == 1 || step;
}

static bool expect_grad(gx_diagnostics *list, const gx_node *node, const gx_value *grad,
                        const gx_value *param)
{
    return gx_expect_float(list, node, "param", param) &&
           gx_expect_like(list, node, "grad", grad, param->rank, param->dim) &&
           (grad->dtype == GX_F32 ||
            gx_expect_dtype(list, node, "grad", grad, param->dtype));
}

static void sgd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (expect_grad(list, node, value[GX_SGD_GRAD], value[GX_SGD_PARAM]) &&
        expect_cell(list, node, "lr", value[GX_SGD_LR], GX_F32) &&
        expect_cell(list, node, "step", value[GX_SGD_STEP], GX_I32) &&
        expect_scale(list, node, value[GX_SGD_SCALE]) &&
        expect_master(list, node, value[GX_SGD_MASTER], value[GX_SGD_PARAM]))
        expect_accumulate(list, node, GX_SGD_ACCUMULATE, value[GX_SGD_STEP]);
    expect_range(list, node, "weight_decay", node->attr[GX_SGD_WEIGHT_DECAY].r, INFINITY);
}

static void nesterov_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const gx_value *param = value[GX_MOMENTUM_PARAM];

    (void)graph;
    if (expect_grad(list, node, value[GX_MOMENTUM_GRAD], param) &&
        expect_state(list, node, "buf", value[GX_MOMENTUM_BUF], param) &&
        expect_cell(list, node, "step", value[GX_MOMENTUM_STEP], GX_I32) &&
        expect_cell(list, node, "lr", value[GX_MOMENTUM_LR], GX_F32) &&
        expect_scale(list, node, value[GX_MOMENTUM_SCALE]) &&
        expect_master(list, node, value[GX_MOMENTUM_MASTER], param))
        expect_accumulate(list, node, GX_MOMENTUM_ACCUMULATE, value[GX_MOMENTUM_STEP]);
    expect_range(list, node, "momentum", node->attr[GX_MOMENTUM_MOMENTUM].r, INFINITY);
    expect_range(list, node, "weight_decay", node->attr[GX_MOMENTUM_WEIGHT_DECAY].r,
                 INFINITY);
}

static void momentum_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const double dampening = node->attr[GX_MOMENTUM_DAMPENING].r;

    nesterov_infer(graph, node, value, list);
    if (!(dampening >= 0 && dampening <= 1))
        gx_misfit(list, node, "dampening", "dampening is %g, expected 0 to 1", dampening);
}

static void adam_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *param = value[GX_ADAMW_PARAM];

    (void)graph;
    if (expect_grad(list, node, value[GX_ADAMW_GRAD], param) &&
        expect_state(list, node, "m", value[GX_ADAMW_M], param) &&
        expect_state(list, node, "v", value[GX_ADAMW_V], param) &&
        gx_expect_dtype(list, node, "v", value[GX_ADAMW_V], value[GX_ADAMW_M]->dtype) &&
        expect_cell(list, node, "step", value[GX_ADAMW_STEP], GX_I32) &&
        expect_cell(list, node, "lr", value[GX_ADAMW_LR], GX_F32) &&
        expect_scale(list, node, value[GX_ADAMW_SCALE]) &&
        expect_master(list, node, value[GX_ADAMW_MASTER], param))
        expect_accumulate(list, node, GX_ADAMW_ACCUMULATE, value[GX_ADAMW_STEP]);
    expect_range(list, node, "beta1", node->attr[GX_ADAMW_BETA1].r, 1.0);
    expect_range(list, node, "beta2", node->attr[GX_ADAMW_BETA2].r, 1.0);
    expect_range(list, node, "eps", node->attr[GX_ADAMW_EPS].r, INFINITY);
    expect_range(list, node, "weight_decay", node->attr[GX_ADAMW_WEIGHT_DECAY].r,
                 INFINITY);
}

/* --- references --- */

static double cell(const gx_call *call, int arg, double absent)
{
    return gx_has(call, arg) ? *(const double *)call->arg[arg].data : absent;
}

/* False where the step only adds to a gradient; *done: updates before this one. */
static bool updates(const gx_call *call, int step_arg, int attr, int64_t *done)
{
    const int64_t step = (int64_t)cell(call, step_arg, 0);
    const int64_t n = call->attr[attr].i;

    *done = step / n;
    return step >= 0 && step % n == n - 1;
}

/* What an update works on: the parameter, or its master. */
static double *weights(const gx_call *call, int param, int master)
{
    return call->arg[gx_has(call, master) ? master : param].data;
}

/* The copy is of what the master holds: f32, or a double where nothing is rounded. */
static void copy_master(const gx_call *call, int param_arg, int master_arg)
{
    double *param = call->arg[param_arg].data;
    const double *master = call->arg[master_arg].data;
    const gx_dtype held = call->arg[master_arg].dtype;

    for (int64_t i = 0; gx_has(call, master_arg) && i < gx_count(&call->arg[param_arg]);
         i++)
        param[i] = gx_round_to(held, master[i]);
}

static gx_status sgd_reference(const gx_call *call, gx_error *err)
{
    double *param = weights(call, GX_SGD_PARAM, GX_SGD_MASTER);
    const double *grad = call->arg[GX_SGD_GRAD].data;
    const double lr = cell(call, GX_SGD_LR, 0);
    const double scale = cell(call, GX_SGD_SCALE, 1);
    const double decay = call->attr[GX_SGD_WEIGHT_DECAY].r;
    const int64_t n = gx_count(&call->arg[GX_SGD_PARAM]);
    int64_t done;

    (void)err;
    if (!updates(call, GX_SGD_STEP, GX_SGD_ACCUMULATE, &done))
        return GX_OK;
    for (int64_t i = 0; i < n; i++)
        param[i] -= lr * (scale * grad[i] + decay * param[i]);
    copy_master(call, GX_SGD_PARAM, GX_SGD_MASTER);
    return GX_OK;
}

static void move(const gx_call *call, double dampening, bool nesterov)
{
    double *param = weights(call, GX_MOMENTUM_PARAM, GX_MOMENTUM_MASTER);
    double *buf = call->arg[GX_MOMENTUM_BUF].data;
    const double *grad = call->arg[GX_MOMENTUM_GRAD].data;
    const double lr = cell(call, GX_MOMENTUM_LR, 0);
    const double scale = cell(call, GX_MOMENTUM_SCALE, 1);
    const double momentum = call->attr[GX_MOMENTUM_MOMENTUM].r;
    const double decay = call->attr[GX_MOMENTUM_WEIGHT_DECAY].r;
    const int64_t n = gx_count(&call->arg[GX_MOMENTUM_PARAM]);
    int64_t done;

    if (!updates(call, GX_MOMENTUM_STEP, GX_MOMENTUM_ACCUMULATE, &done))
        return;
    for (int64_t i = 0; i < n; i++) {
        const double g = scale * grad[i] + decay * param[i];

        buf[i] = done == 0 ? g : momentum * buf[i] + (1 - dampening) * g;
        param[i] -= lr * (nesterov ? g + momentum * buf[i] : buf[i]);
    }
    copy_master(call, GX_MOMENTUM_PARAM, GX_MOMENTUM_MASTER);
}

static gx_status momentum_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    move(call, call->attr[GX_MOMENTUM_DAMPENING].r, false);
    return GX_OK;
}

static gx_status nesterov_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    move(call, 0, true);
    return GX_OK;
}

/* `decay` is added to the gradient, or `shrink` taken from the parameter. */
static void adapt(const gx_call *call, double decay, double shrink)
{
    double *param = weights(call, GX_ADAMW_PARAM, GX_ADAMW_MASTER);
    double *m = call->arg[GX_ADAMW_M].data;
    double *v = call->arg[GX_ADAMW_V].data;
    const double *grad = call->arg[GX_ADAMW_GRAD].data;
    const double lr = cell(call, GX_ADAMW_LR, 0);
    const double scale = cell(call, GX_ADAMW_SCALE, 1);
    const double beta1 = call->attr[GX_ADAMW_BETA1].r;
    const double beta2 = call->attr[GX_ADAMW_BETA2].r;
    const double eps = call->attr[GX_ADAMW_EPS].r;
    const int64_t n = gx_count(&call->arg[GX_ADAMW_PARAM]);
    int64_t done;

    if (!updates(call, GX_ADAMW_STEP, GX_ADAMW_ACCUMULATE, &done))
        return;
    /* rate m / (sqrt(v) / root + eps), with one division less */
    const double t = (double)done + 1.0;
    const double keep = 1.0 - lr * shrink;
    const double root = sqrt(1.0 - pow(beta2, t));
    const double rate = lr / (1.0 - pow(beta1, t)) * root;
    const double least = eps * root;

    for (int64_t i = 0; i < n; i++) {
        const double g = scale * grad[i] + (decay > 0 ? decay * param[i] : 0);

        m[i] += (1.0 - beta1) * (g - m[i]);
        v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
        param[i] = keep * param[i] - rate * m[i] / (sqrt(v[i]) + least);
    }
    copy_master(call, GX_ADAMW_PARAM, GX_ADAMW_MASTER);
}

static gx_status adam_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    adapt(call, call->attr[GX_ADAMW_WEIGHT_DECAY].r, 0);
    return GX_OK;
}

static gx_status adamw_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    adapt(call, 0, call->attr[GX_ADAMW_WEIGHT_DECAY].r);
    return GX_OK;
}

static double sgd_flops(const gx_graph *graph, const gx_node *node)
{
    return 4 * gx_elements(graph, node, GX_SGD_PARAM);
}

static double momentum_flops(const gx_graph *graph, const gx_node *node)
{
    return 7 * gx_elements(graph, node, GX_MOMENTUM_PARAM);
}

static double adam_flops(const gx_graph *graph, const gx_node *node)
{
    return 14 * gx_elements(graph, node, GX_ADAMW_PARAM);
}

#define MOMENTS "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; "
#define QUOTIENT \
    "lr m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + eps), t = step / accumulate + 1"

const gx_op gx_optimizer_ops[] = {
    {
        .name = "sgd",
        .summary = "gradient descent with L2 decay, as torch.optim.SGD",
        .formula = "param -= lr (scale grad + weight_decay param)",
        .fields = sgd_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = sgd_infer,
        .reference = sgd_reference,
        .flops = sgd_flops,
        .samples = gx_sgd_samples,
        /* A few roundings of 2^-24; a parameter of bf16 is rounded to 8 bits, of f16
         * to 11. */
        .tolerance = { 1e-6, 1e-6, 4e-3, 5e-4 },
    },
    {
        .name = "momentum",
        .summary = "gradient descent with momentum, as torch.optim.SGD(momentum=0.9)",
        .formula = "g = scale grad + weight_decay param; "
                   "buf = momentum buf + (1 - dampening) g, at the first update g; "
                   "param -= lr buf",
        .fields = momentum_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = momentum_infer,
        .reference = momentum_reference,
        .flops = momentum_flops,
        .samples = gx_momentum_samples,
        /* As sgd, and buf is rounded too. */
        .tolerance = { 2e-6, 2e-6, 6e-3, 8e-4 },
    },
    {
        .name = "nesterov",
        .summary = "Nesterov's momentum, as torch.optim.SGD(momentum=0.9, nesterov=True)",
        .formula = "g = scale grad + weight_decay param; "
                   "buf = momentum buf + g, at the first update g; "
                   "param -= lr (g + momentum buf)",
        .fields = nesterov_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = nesterov_infer,
        .reference = nesterov_reference,
        .flops = momentum_flops,
        .samples = gx_nesterov_samples,
        .tolerance = { 2e-6, 2e-6, 6e-3, 8e-4 }, /* as momentum */
    },
    {
        .name = "adam",
        .summary = "Adam with L2 decay, as torch.optim.Adam",
        .formula = "g = scale grad + weight_decay param; " MOMENTS "param -= " QUOTIENT,
        .fields = adam_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = adam_infer,
        .reference = adam_reference,
        .default_rate = 1e-3,
        .flops = adam_flops,
        .samples = gx_adam_samples,
        .tolerance = { 1e-4, 1e-4, 5e-3, 7e-4 }, /* as adamw */
    },
    {
        .name = "adamw",
        .summary = "Adam with decoupled decay, as torch.optim.AdamW",
        .formula =
            "g = scale grad; " MOMENTS "param = (1 - lr weight_decay) param - " QUOTIENT,
        .fields = adamw_fields,
        .phase = GX_PHASE_OPTIMIZER,
        .infer = adam_infer,
        .reference = adamw_reference,
        .default_rate = 1e-3,
        .flops = adam_flops,
        .samples = gx_adamw_samples,
        /* f32: the correction 1 - beta2^t starts at 0.001 and loses ten bits if beta2^t
         * is taken in f32: 2^-24 / 0.001. bf16: m, v and param are rounded to 8 bits,
         * f16: to 11. */
        .tolerance = { 1e-4, 1e-4, 5e-3, 7e-4 },
    },
    { 0 },
};
