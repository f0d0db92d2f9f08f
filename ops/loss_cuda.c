/* The CUDA alternatives of the losses: each alone, and a loss with its derivative. */
#include <string.h>

#include "loss_kernels.h"
#include "mean.h"

/* Blocks per multiprocessor of a kernel that strides over its work. */
enum { BLOCKS_PER_SM = 8 };

static int64_t at_most(int64_t blocks, const gx_ctx *ctx)
{
    const int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

static bool is_bwd(const gx_call *call)
{
    return strstr(gx_op_name(call->op), ".bwd") != NULL;
}

/* --- softmax_cross_entropy --- */

static const char *refuses_sce(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *logits = &group->call[0].arg[GX_SCE_LOGITS];

    (void)ctx;
    if (!gx_is_float(logits->dtype))
        return "only f32, bf16 and f16";
    return gx_count(logits) == 0 ? "there are no logits" : NULL;
}

static const char *refuses_sce_pair(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *loss = &group->call[0], *bwd = &group->call[1];

    if (!gx_feeds(loss, GX_SCE_LOGITS, bwd, GX_SCE_BWD_LOGITS) ||
        !gx_feeds(loss, GX_SCE_LABELS, bwd, GX_SCE_BWD_LABELS))
        return "the derivative is that of another loss";
    return refuses_sce(group, ctx);
}

static gx_sce describe_sce(const gx_group *group, int32_t blocks, void *workspace)
{
    const gx_call *first = &group->call[0], *last = &group->call[group->n_calls - 1];
    const gx_tensor *logits = &first->arg[GX_SCE_LOGITS];

    return (gx_sce){
        .rows = logits->dim[0],
        .classes = logits->dim[1],
        .dtype = logits->dtype,
        .logits = logits->data,
        .labels = first->arg[GX_SCE_LABELS].data,
        .out = is_bwd(first) ? NULL : first->arg[GX_SCE_OUT].data,
        .dlogits = is_bwd(last) ? last->arg[GX_SCE_BWD_DLOGITS].data : NULL,
        .dy = is_bwd(last) ? gx_data(last, GX_SCE_BWD_DY) : NULL,
        .partial = workspace,
        .blocks = blocks,
    };
}

/* Blocks when there are several. */
static int64_t sce_blocks(const gx_sce *sce, const gx_ctx *ctx)
{
    const int64_t rows = sce->classes > GX_SCE_WARP_CLASSES ? 1 : GX_LOSS_THREADS / 32;

    return at_most(gx_divide_up(sce->rows, rows), ctx);
}

static gx_status prepare_sce(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    gx_sce sce = describe_sce(group, 1, NULL);

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (is_bwd(&group->call[0])) {
        sce.blocks = (int32_t)sce_blocks(&sce, ctx);
    } else {
        GX_TRY(gx_mean_prepare(gx_count(&group->call[0].arg[GX_SCE_LOGITS]),
                               sce_blocks(&sce, ctx), prepared, err));
        sce.blocks = gx_mean_blocks(prepared);
    }
    return gx_sce_load(&sce, err);
}

static gx_status launch_sce(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    gx_sce sce = describe_sce(group, gx_mean_blocks(prepared), ctx->workspace);

    if (is_bwd(&group->call[0]))
        sce.blocks = (int32_t)sce_blocks(&sce, ctx);
    return gx_sce_launch(&sce, ctx, err);
}

/* --- mse --- */

static const char *refuses_mse(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *x = &group->call[0].arg[GX_MSE_X];
    const gx_tensor *target = &group->call[0].arg[GX_MSE_TARGET];

    (void)ctx;
    if (!gx_is_float(x->dtype) || (target->dtype != GX_F32 && target->dtype != x->dtype))
        return "only f32, bf16 and f16, the target f32 or like x";
    return gx_count(x) == 0 ? "there are no elements" : NULL;
}

static const char *refuses_mse_pair(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *loss = &group->call[0], *bwd = &group->call[1];

    if (!gx_feeds(loss, GX_MSE_X, bwd, GX_MSE_BWD_X) ||
        !gx_feeds(loss, GX_MSE_TARGET, bwd, GX_MSE_BWD_TARGET))
        return "the derivative is that of another loss";
    return refuses_mse(group, ctx);
}

static gx_mse describe_mse(const gx_group *group, int32_t blocks, void *workspace)
{
    const gx_call *first = &group->call[0], *last = &group->call[group->n_calls - 1];
    const gx_tensor *x = &first->arg[GX_MSE_X], *target = &first->arg[GX_MSE_TARGET];
    gx_mse mse = {
        .n = gx_count(x),
        .dtype = x->dtype,
        .target_dtype = target->dtype,
        .x = x->data,
        .target = target->data,
        .out = is_bwd(first) ? NULL : first->arg[GX_MSE_OUT].data,
        .dx = is_bwd(last) ? last->arg[GX_MSE_BWD_DX].data : NULL,
        .dy = is_bwd(last) ? gx_data(last, GX_MSE_BWD_DY) : NULL,
        .partial = workspace,
        .blocks = blocks,
    };
    const uintptr_t all = (uintptr_t)mse.x | (uintptr_t)mse.target | (uintptr_t)mse.dx;

    mse.wide = all % (4 * sizeof(float)) == 0;
    return mse;
}

static int64_t mse_blocks(const gx_mse *mse, const gx_ctx *ctx)
{
    return at_most(gx_divide_up(mse->n, 4 * GX_LOSS_THREADS), ctx);
}

static gx_status prepare_mse(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    gx_mse mse = describe_mse(group, 1, NULL);

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (is_bwd(&group->call[0])) {
        mse.blocks = (int32_t)mse_blocks(&mse, ctx);
    } else {
        GX_TRY(gx_mean_prepare(mse.n, mse_blocks(&mse, ctx), prepared, err));
        mse.blocks = gx_mean_blocks(prepared);
    }
    return gx_mse_load(&mse, err);
}

static gx_status launch_mse(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    gx_mse mse = describe_mse(group, gx_mean_blocks(prepared), ctx->workspace);

    if (is_bwd(&group->call[0]))
        mse.blocks = (int32_t)mse_blocks(&mse, ctx);
    return gx_mse_launch(&mse, ctx, err);
}

/* --- the table --- */

static const char *const sce[] = { "softmax_cross_entropy", NULL };
static const char *const sce_bwd[] = { "softmax_cross_entropy.bwd", NULL };
static const char *const sce_pair[] = { "softmax_cross_entropy",
                                        "softmax_cross_entropy.bwd", NULL };
static const char *const mse[] = { "mse", NULL };
static const char *const mse_bwd[] = { "mse.bwd", NULL };
static const char *const mse_pair[] = { "mse", "mse.bwd", NULL };

#define ALTERNATIVE(alternative, ops, applies, hook)                                    \
    .name = alternative, .pattern = ops, .refuses = applies, .prepare = prepare_##hook, \
    .launch = launch_##hook

const gx_alternative gx_loss_alternatives[] = {
    { ALTERNATIVE("kernel", sce, refuses_sce, sce), .strict = true },
    { ALTERNATIVE("kernel", sce_bwd, refuses_sce, sce), .strict = true },
    { ALTERNATIVE("fused", sce_pair, refuses_sce_pair, sce) },
    { ALTERNATIVE("kernel", mse, refuses_mse, mse), .strict = true },
    { ALTERNATIVE("kernel", mse_bwd, refuses_mse, mse), .strict = true },
    { ALTERNATIVE("fused", mse_pair, refuses_mse_pair, mse) },
    { 0 },
};
