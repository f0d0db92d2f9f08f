/* The CUDA alternatives of metrics: accuracy and topk, which have the same operands, and
 * perplexity. */
#include "mean.h"
#include "metric_kernels.h"

_Static_assert((int)GX_TOPK_LOGITS == (int)GX_ACCURACY_LOGITS &&
                   (int)GX_TOPK_LABELS == (int)GX_ACCURACY_LABELS &&
                   (int)GX_TOPK_OUT == (int)GX_ACCURACY_OUT,
               "describe() reads both");

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
    const gx_call *call = &group->call[0];
    const gx_tensor *arg = call->arg;
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
        .k = strcmp(call->op->name, "topk") == 0 ? call->attr[GX_TOPK_K].i : 0,
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
    gx_accuracy accuracy = describe(group, gx_mean_blocks(prepared), ctx->workspace);

    GX_TRY(gx_mean_ticket(accuracy.blocks, ctx, &accuracy.ticket, err));
    return gx_accuracy_launch(&accuracy, ctx, err);
}

/* --- perplexity --- */

static const char *refuses_perplexity(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return group->call[0].arg[GX_PERPLEXITY_LOSS].dtype == GX_F32 ? NULL : "only f32";
}

static gx_status prepare_perplexity(const gx_group *group, const gx_ctx *ctx,
                                    gx_prepared *prepared, gx_error *err)
{
    (void)group;
    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    return gx_perplexity_load(err);
}

static gx_status launch_perplexity(const gx_group *group, const gx_prepared *prepared,
                                   gx_ctx *ctx, gx_error *err)
{
    const gx_tensor *arg = group->call[0].arg;

    (void)prepared;
    return gx_perplexity_launch(arg[GX_PERPLEXITY_LOSS].data, arg[GX_PERPLEXITY_OUT].data,
                                ctx, err);
}

/* --- the table --- */

static const char *const accuracy[] = { "accuracy", NULL };
static const char *const topk[] = { "topk", NULL };
static const char *const perplexity[] = { "perplexity", NULL };

#define ROWS(ops)                                                         \
    .name = "kernel", .pattern = ops, .strict = true, .refuses = refuses, \
    .prepare = prepare, .launch = launch

const gx_alternative gx_metric_alternatives[] = {
    { ROWS(accuracy) },
    { ROWS(topk) },
    { .name = "kernel",
      .pattern = perplexity,
      .strict = true,
      .refuses = refuses_perplexity,
      .prepare = prepare_perplexity,
      .launch = launch_perplexity },
    { 0 },
};
