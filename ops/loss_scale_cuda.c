/* The CUDA alternative of loss_scale. */
#include <math.h>

#include "loss_scale_kernels.h"

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)group;
    (void)ctx;
    return NULL;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    (void)group;
    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    return gx_loss_scale_load(err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_call *call = &group->call[0];
    const gx_attr *most = &call->attr[GX_LOSS_SCALE_MAX_NORM];
    const gx_loss_scale scale = {
        .norm = call->arg[GX_LOSS_SCALE_NORM].data,
        .step = call->arg[GX_LOSS_SCALE_STEP].data,
        .scale = call->arg[GX_LOSS_SCALE_SCALE].data,
        .skipped = call->arg[GX_LOSS_SCALE_SKIPPED].data,
        .tracker = gx_data(call, GX_LOSS_SCALE_TRACKER),
        .factor = call->arg[GX_LOSS_SCALE_FACTOR].data,
        .out = gx_data(call, GX_LOSS_SCALE_OUT),
        .used = gx_data(call, GX_LOSS_SCALE_USED),
        .count = gx_data(call, GX_LOSS_SCALE_COUNT),
        .update = call->arg[GX_LOSS_SCALE_UPDATE].data,
        .max_norm = most->present ? most->r : HUGE_VAL,
        .growth = call->attr[GX_LOSS_SCALE_GROWTH].r,
        .backoff = call->attr[GX_LOSS_SCALE_BACKOFF].r,
        .interval = (int32_t)call->attr[GX_LOSS_SCALE_INTERVAL].i,
        .accumulate = (int32_t)call->attr[GX_LOSS_SCALE_ACCUMULATE].i,
    };

    (void)prepared;
    return gx_loss_scale_launch(&scale, ctx, err);
}

/* --- the table --- */

static const char *const loss_scale[] = { "loss_scale", NULL };

const gx_alternative gx_loss_scale_alternatives[] = {
    { .name = "kernel",
      .pattern = loss_scale,
      .refuses = refuses,
      .prepare = prepare,
      .launch = launch,
      .strict = true },
    { 0 },
};
