/* The scale of the loss, as torch.amp.GradScaler keeps it. The gradient of the loss is
 * the scale, so every gradient has it as a factor; this op stands between their norm and
 * the updates. A norm that is not finite tells that a gradient is not, and the update is
 * skipped then: its number is -1. */
#include <math.h>

#include "infer.h"
#include "samples.h"

/* torch.nn.utils.clip_grad_norm_ adds it to the norm that it divides by. */
static const double CLIP_EPSILON = 1e-6;

static const gx_field fields[] = {
    { "norm", GX_FIELD_IN, true, NULL, NULL, "f32 scalar, of the scaled gradients" },
    { "step", GX_FIELD_IN, true, NULL, NULL, "i32 [1], steps done before this one" },
    { "scale", GX_FIELD_INOUT, true, NULL, NULL,
      "f32 scalar, what the loss is scaled by" },
    { "skipped", GX_FIELD_INOUT, true, NULL, NULL, "i32 [1], updates that were skipped" },
    { "tracker", GX_FIELD_INOUT, false, NULL, NULL,
      "i32 [1], updates since the scale changed; without it the scale is constant" },
    { "factor", GX_FIELD_OUT, true, NULL, NULL,
      "f32 scalar: what a scaled gradient is multiplied by" },
    { "update", GX_FIELD_OUT, true, NULL, NULL,
      "i32 [1], updates done before this step's; -1: it has none" },
    { "out", GX_FIELD_OUT, false, NULL, NULL, "f32 scalar: norm / scale" },
    { "used", GX_FIELD_OUT, false, NULL, NULL, "f32 scalar: the scale of this step" },
    { "count", GX_FIELD_OUT, false, NULL, NULL, "f32 scalar: skipped, this step's too" },
    { "max_norm", GX_FIELD_REAL, false, NULL, NULL, "what factor clips norm / scale to" },
    { "growth_interval", GX_FIELD_INT, false, "2000", NULL,
      "updates in a row after which the scale grows" },
    { "growth", GX_FIELD_REAL, false, "2", NULL, "what the scale grows by" },
    { "backoff", GX_FIELD_REAL, false, "0.5", NULL,
      "what the scale is multiplied by after an update that was skipped" },
    { "accumulate", GX_FIELD_INT, false, "1", NULL, "steps that make one update" },
    { 0 },
};

static void expect_scalar(gx_diagnostics *list, const gx_node *node, const char *key,
                          const gx_value *value)
{
    if (gx_expect_dtype(list, node, key, value, GX_F32))
        gx_expect_rank(list, node, key, value, 0);
}

static void expect_counter(gx_diagnostics *list, const gx_node *node, const char *key,
                           const gx_value *value)
{
    if (value && gx_expect_dtype(list, node, key, value, GX_I32))
        gx_expect_like(list, node, key, value, 1, (const int64_t[]){ 1 });
}

static void expect_count(gx_diagnostics *list, const gx_node *node, const char *key,
                         int64_t value)
{
    if (value < 1 || value > INT32_MAX)
        gx_misfit(list, node, key, "%s is %lld, expected 1 to %d", key, (long long)value,
                  (int)INT32_MAX);
}

static void expect_settings(gx_diagnostics *list, const gx_node *node)
{
    const gx_attr *most = &node->attr[GX_LOSS_SCALE_MAX_NORM];
    const double growth = node->attr[GX_LOSS_SCALE_GROWTH].r;
    const double backoff = node->attr[GX_LOSS_SCALE_BACKOFF].r;

    if (most->present && !(most->r > 0))
        gx_misfit(list, node, "max_norm", "max_norm is %g, expected a number above 0",
                  most->r);
    if (!(growth > 1))
        gx_misfit(list, node, "growth", "growth is %g, expected a number above 1",
                  growth);
    if (!(backoff > 0 && backoff < 1))
        gx_misfit(list, node, "backoff",
                  "backoff is %g, expected more than 0 and less "
                  "than 1",
                  backoff);
    expect_count(list, node, "growth_interval", node->attr[GX_LOSS_SCALE_INTERVAL].i);
    expect_count(list, node, "accumulate", node->attr[GX_LOSS_SCALE_ACCUMULATE].i);
}

static void infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                  gx_diagnostics *list)
{
    static const int64_t one[] = { 1 };

    (void)graph;
    expect_scalar(list, node, "norm", value[GX_LOSS_SCALE_NORM]);
    expect_scalar(list, node, "scale", value[GX_LOSS_SCALE_SCALE]);
    expect_counter(list, node, "step", value[GX_LOSS_SCALE_STEP]);
    expect_counter(list, node, "skipped", value[GX_LOSS_SCALE_SKIPPED]);
    expect_counter(list, node, "tracker", value[GX_LOSS_SCALE_TRACKER]);
    expect_settings(list, node);
    gx_set_shape(value[GX_LOSS_SCALE_FACTOR], GX_F32, 0, NULL);
    gx_set_shape(value[GX_LOSS_SCALE_UPDATE], GX_I32, 1, one);
    gx_set_shape(value[GX_LOSS_SCALE_OUT], GX_F32, 0, NULL);
    gx_set_shape(value[GX_LOSS_SCALE_USED], GX_F32, 0, NULL);
    gx_set_shape(value[GX_LOSS_SCALE_COUNT], GX_F32, 0, NULL);
}

static double *cell(const gx_call *call, int arg)
{
    return call->arg[arg].data;
}

static void put(const gx_call *call, int arg, double value)
{
    if (gx_has(call, arg))
        *cell(call, arg) = value;
}

/* The new scale, after an update or after one that was skipped. */
static void follow(const gx_call *call, bool finite)
{
    double *scale = cell(call, GX_LOSS_SCALE_SCALE);
    double *tracker = cell(call, GX_LOSS_SCALE_TRACKER);

    if (!finite) {
        *scale *= call->attr[GX_LOSS_SCALE_BACKOFF].r;
        *tracker = 0;
    } else if (++*tracker >= (double)call->attr[GX_LOSS_SCALE_INTERVAL].i) {
        const double grown = *scale * call->attr[GX_LOSS_SCALE_GROWTH].r;

        if (isfinite((float)grown))
            *scale = grown;
        *tracker = 0;
    }
}

static gx_status reference(const gx_call *call, gx_error *err)
{
    const gx_attr *most = &call->attr[GX_LOSS_SCALE_MAX_NORM];
    const int64_t n = call->attr[GX_LOSS_SCALE_ACCUMULATE].i;
    const int64_t step = (int64_t)*cell(call, GX_LOSS_SCALE_STEP);
    const double scale = *cell(call, GX_LOSS_SCALE_SCALE);
    const double norm = *cell(call, GX_LOSS_SCALE_NORM) / scale;
    const bool finite = isfinite(*cell(call, GX_LOSS_SCALE_NORM));
    const double clip = most->present ? most->r / (norm + CLIP_EPSILON) : 1;
    const bool ends = step % n == n - 1;
    double *skipped = cell(call, GX_LOSS_SCALE_SKIPPED);

    (void)err;
    put(call, GX_LOSS_SCALE_FACTOR, finite ? fmin(clip, 1) / scale : 0);
    put(call, GX_LOSS_SCALE_UPDATE, ends && finite ? (double)(step / n) - *skipped : -1);
    put(call, GX_LOSS_SCALE_OUT, norm);
    put(call, GX_LOSS_SCALE_USED, scale);
    if (ends && !finite)
        *skipped += 1;
    put(call, GX_LOSS_SCALE_COUNT, *skipped);
    if (ends && gx_has(call, GX_LOSS_SCALE_TRACKER))
        follow(call, finite);
    return GX_OK;
}

static double flops(const gx_graph *graph, const gx_node *node)
{
    (void)graph;
    (void)node;
    return 5;
}

const gx_op gx_loss_scale_ops[] = {
    {
        .name = "loss_scale",
        .summary = "the scale of the loss and the skip of a step that overflowed, as "
                   "torch.amp.GradScaler",
        .formula = "factor = min(1, max_norm / (norm/scale + 1e-6)) / scale; "
                   "each accumulate-th step: norm finite: update = floor(step / "
                   "accumulate) - skipped, tracker += 1, and at growth_interval scale "
                   "*= growth, unless that is infinite, and tracker = 0; "
                   "else update = -1, skipped += 1, scale *= backoff, tracker = 0",
        .fields = fields,
        .phase = GX_PHASE_OPTIMIZER,
        .internal = true,
        .infer = infer,
        .reference = reference,
        .flops = flops,
        .samples = gx_loss_scale_samples,
        /* Some roundings of 2^-24; computed in double. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    { 0 },
};
