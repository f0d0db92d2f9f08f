/* The CUDA alternative of accuracy. */
#include "mean.h"
#include "metric_kernels.h"

enum { BLOCKS_PER_SM = 8 };

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *logits = &group->call[0].arg[GX_ACCURACY_LOGITS];

    (void)ctx;
    if (!gx_is_float(logits->dtype))
        return "only f32, bf16 and f16";
    return gx_count(logits) == 0 ? "there are no logits" : NULL;
}

static gx_accuracy describe(const gx_group *group, int32_t blocks, void *workspace)
{
    const gx_tensor *arg = group->call[0].arg;
    const gx_tensor *logits = &arg[GX_ACCURACY_LOGITS];

    return (gx_accuracy){
        .rows = logits->dim[0],
        .classes = logits->dim[1],
        .dtype = logits->dtype,
        .logits = logits->data,
        .labels = arg[GX_ACCURACY_LABELS].data,
        .out = arg[GX_ACCURACY_OUT].data,
        .partial = workspace,
        .blocks = blocks,
    };
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    gx_accuracy accuracy = describe(group, 1, NULL);
    const int64_t needed = gx_divide_up(accuracy.rows, GX_METRIC_THREADS / 32);
    const int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    GX_TRY(gx_mean_prepare(accuracy.rows * accuracy.classes,
                           needed < most ? needed : most, prepared, err));
    accuracy.blocks = gx_mean_blocks(prepared);
    return gx_accuracy_load(&accuracy, err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_accuracy accuracy =
        describe(group, gx_mean_blocks(prepared), ctx->workspace);

    return gx_accuracy_launch(&accuracy, ctx, err);
}

static const char *const pattern[] = { "accuracy", NULL };

const gx_alternative gx_metric_alternatives[] = {
    {
        .name = "kernel",
        .pattern = pattern,
        .strict = true,
        .refuses = refuses,
        .prepare = prepare,
        .launch = launch,
    },
    { 0 },
};
