/* The rate of a step: the base rate, which stands in memory and may be changed, times a
 * factor that follows the count of updates. */
#include "schedule.h"

#include <math.h>

#include "infer.h"
#include "samples.h"

static const char *const kind_names[] = { "constant", "step", "cosine", "linear", NULL };

const gx_schedule_kind gx_schedule_kinds[] = {
    [GX_SCHEDULE_CONSTANT] = { "constant", { NULL }, { "warmup", NULL } },
    [GX_SCHEDULE_DECAY] = { "step", { "every", "factor", NULL }, { "warmup", NULL } },
    [GX_SCHEDULE_COSINE] = { "cosine", { "steps", NULL }, { "warmup", "end", NULL } },
    [GX_SCHEDULE_LINEAR] = { "linear", { "steps", NULL }, { "warmup", "end", NULL } },
    { NULL, { NULL }, { NULL } },
};

static const gx_field fields[] = {
    { "lr", GX_FIELD_IN, true, NULL, NULL, "f32 [1], the base rate" },
    { "step", GX_FIELD_IN, true, NULL, NULL, "i32 [1], steps done before this one" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { "skipped", GX_FIELD_IN, false, NULL, NULL, "i32 [1], updates that were skipped" },
    { "kind", GX_FIELD_ENUM, true, NULL, kind_names, "how the rate goes on" },
    { "warmup", GX_FIELD_INT, false, "0", NULL, "updates in which the rate rises to lr" },
    { "steps", GX_FIELD_INT, false, "0", NULL,
      "updates, with those of warmup, after which the rate stays at end lr" },
    { "end", GX_FIELD_REAL, false, "0", NULL, "the factor at the end" },
    { "every", GX_FIELD_INT, false, "1", NULL, "updates after which factor is applied" },
    { "factor", GX_FIELD_REAL, false, "1", NULL, "what the rate is multiplied by" },
    { "accumulate", GX_FIELD_INT, false, "1", NULL, "steps that make one update" },
    { 0 },
};

static bool expect_whole(gx_diagnostics *list, const gx_node *node, const char *key,
                         int64_t value, int64_t least)
{
    if (value >= least && value <= INT32_MAX)
        return true;
    gx_misfit(list, node, key, "%s is %lld, expected %lld to %d", key, (long long)value,
              (long long)least, (int)INT32_MAX);
    return false;
}

/* The warm-up is a part of the steps, and something is left behind it. */
static void expect_steps(gx_diagnostics *list, const gx_node *node, int64_t steps,
                         int64_t warmup)
{
    if (warmup == 0 || steps > INT32_MAX)
        expect_whole(list, node, "steps", steps, 1);
    else if (steps <= warmup)
        gx_misfit(
            list, node, "steps",
            "steps is %lld, expected more than warmup, which is %lld and is counted "
            "in steps",
            (long long)steps, (long long)warmup);
}

static bool expect_factor(gx_diagnostics *list, const gx_node *node, const char *key,
                          double value)
{
    if (value >= 0)
        return true;
    gx_misfit(list, node, key, "%s is %g, expected 0 or more", key, value);
    return false;
}

static void infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                  gx_diagnostics *list)
{
    static const int64_t one[] = { 1 };
    const gx_attr *attr = node->attr;
    const int64_t kind = attr[GX_SCHEDULE_KIND].i;
    const int64_t warmup = attr[GX_SCHEDULE_WARMUP].i;

    (void)graph;
    if (gx_expect_dtype(list, node, "lr", value[GX_SCHEDULE_LR], GX_F32))
        gx_expect_like(list, node, "lr", value[GX_SCHEDULE_LR], 1, one);
    if (gx_expect_dtype(list, node, "step", value[GX_SCHEDULE_STEP], GX_I32))
        gx_expect_like(list, node, "step", value[GX_SCHEDULE_STEP], 1, one);
    if (value[GX_SCHEDULE_SKIPPED] &&
        gx_expect_dtype(list, node, "skipped", value[GX_SCHEDULE_SKIPPED], GX_I32))
        gx_expect_like(list, node, "skipped", value[GX_SCHEDULE_SKIPPED], 1, one);
    if (expect_whole(list, node, "warmup", warmup, 0) &&
        (kind == GX_SCHEDULE_COSINE || kind == GX_SCHEDULE_LINEAR))
        expect_steps(list, node, attr[GX_SCHEDULE_STEPS].i, warmup);
    expect_factor(list, node, "end", attr[GX_SCHEDULE_END].r);
    expect_whole(list, node, "every", attr[GX_SCHEDULE_EVERY].i, 1);
    expect_factor(list, node, "factor", attr[GX_SCHEDULE_FACTOR].r);
    expect_whole(list, node, "accumulate", attr[GX_SCHEDULE_ACCUMULATE].i, 1);
    gx_set_shape(value[GX_SCHEDULE_OUT], GX_F32, 0, NULL);
}

/* `done` updates stand behind; counting is in integers. */
static double factor_at(const gx_attr *attr, int64_t done)
{
    const int64_t warmup = attr[GX_SCHEDULE_WARMUP].i;
    const double end = attr[GX_SCHEDULE_END].r;

    if (done < warmup)
        return (double)(done + 1) / (double)warmup;
    if (attr[GX_SCHEDULE_KIND].i == GX_SCHEDULE_CONSTANT)
        return 1;
    if (attr[GX_SCHEDULE_KIND].i == GX_SCHEDULE_DECAY)
        return pow(attr[GX_SCHEDULE_FACTOR].r,
                   (double)((done - warmup) / attr[GX_SCHEDULE_EVERY].i));

    const int64_t steps = attr[GX_SCHEDULE_STEPS].i;
    const double left =
        done < steps ? (double)(steps - done) / (double)(steps - warmup) : 0;

    if (attr[GX_SCHEDULE_KIND].i == GX_SCHEDULE_LINEAR)
        return end + (1 - end) * left;
    /* (1 + cos(pi (1 - left))) / 2, which keeps its digits near the end */
    const double s = sin(acos(-1.0) / 2 * left);

    return end + (1 - end) * s * s;
}

static gx_status reference(const gx_call *call, gx_error *err)
{
    const int64_t step = (int64_t) * (const double *)call->arg[GX_SCHEDULE_STEP].data;
    const int64_t skipped =
        gx_has(call, GX_SCHEDULE_SKIPPED)
            ? (int64_t) * (const double *)call->arg[GX_SCHEDULE_SKIPPED].data
            : 0;

    (void)err;
    *(double *)call->arg[GX_SCHEDULE_OUT].data =
        *(const double *)call->arg[GX_SCHEDULE_LR].data *
        factor_at(call->attr, step / call->attr[GX_SCHEDULE_ACCUMULATE].i - skipped);
    return GX_OK;
}

static double flops(const gx_graph *graph, const gx_node *node)
{
    (void)graph;
    (void)node;
    return 10;
}

const gx_op gx_schedule_ops[] = {
    {
        .name = "schedule",
        .summary = "the rate of an update, as torch.optim.lr_scheduler",
        .formula = "out = lr f(u), u = step / accumulate - skipped updates done; "
                   "u < warmup: f = (u + 1) / warmup, "
                   "LinearLR(start_factor=1/warmup, total_iters=warmup-1); "
                   "then, with s = u - warmup and S = steps - warmup, "
                   "constant: f = 1; step: f = factor^floor(s / every), StepLR; "
                   "cosine: f = end + (1 - end) (1 + cos(pi min(s, S) / S)) / 2, "
                   "CosineAnnealingLR(T_max=S, eta_min=end lr) up to T_max; "
                   "linear: f = 1 + (end - 1) min(s, S) / S, "
                   "LinearLR(start_factor=1, end_factor=end, total_iters=S)",
        .fields = fields,
        .phase = GX_PHASE_OPTIMIZER,
        .internal = true,
        .infer = infer,
        .reference = reference,
        .flops = flops,
        .samples = gx_schedule_samples,
        /* One f32 sine or power of at most 4 units in the last place, squared. */
        .tolerance = { 2e-6, 2e-6, 2e-6, 2e-6 },
    },
    { 0 },
};
