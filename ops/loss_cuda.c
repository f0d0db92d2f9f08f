/* The CUDA alternatives of softmax_cross_entropy: alone, with its derivative, and with
 * what stands before and behind them. */
#include <string.h>

#include "head.h"
#include "loss_kernels.h"
#include "mean.h"

/* Blocks per multiprocessor of a kernel that strides over its work. */
enum { BLOCKS_PER_SM = 8 };

static bool is_bwd(const gx_call *call)
{
    return strstr(gx_op_name(call->op), ".bwd") != NULL;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_SCE_LOGITS].dtype)
               ? NULL
               : "only f32, bf16 and f16";
}

/* Row by row the loss and its derivative must mean the same. */
static bool same_attributes(const gx_call *loss, const gx_call *bwd)
{
    const gx_attr *a = loss->attr, *b = bwd->attr;

    return a[GX_SCE_REDUCTION].i == b[GX_SCE_REDUCTION].i &&
           a[GX_SCE_IGNORE_INDEX].present == b[GX_SCE_IGNORE_INDEX].present &&
           a[GX_SCE_IGNORE_INDEX].i == b[GX_SCE_IGNORE_INDEX].i &&
           a[GX_SCE_LABEL_SMOOTHING].r == b[GX_SCE_LABEL_SMOOTHING].r;
}

const char *gx_sce_refuses_pair(const gx_call *loss, const gx_call *bwd)
{
    if (!gx_feeds(loss, GX_SCE_LOGITS, bwd, GX_SCE_BWD_LOGITS) ||
        !gx_feeds(loss, GX_SCE_LABELS, bwd, GX_SCE_BWD_LABELS) ||
        !same_attributes(loss, bwd))
        return "the derivative is that of another loss";
    if (gx_feeds(loss, GX_SCE_OUT, bwd, GX_SCE_BWD_DY))
        return "the derivative is scaled by the loss";
    return gx_is_float(loss->arg[GX_SCE_LOGITS].dtype) ? NULL : "only f32, bf16 and f16";
}

static const char *refuses_pair(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_sce_refuses_pair(&group->call[0], &group->call[1]);
}

/* The count comes first in the workspace, then the partial sums. */
static gx_sce describe(const gx_group *group, int32_t blocks, double *workspace)
{
    const gx_call *first = &group->call[0], *last = &group->call[group->n_calls - 1];
    const gx_tensor *logits = &first->arg[GX_SCE_LOGITS];
    const bool ignores = first->attr[GX_SCE_IGNORE_INDEX].present;
    const bool is_mean = first->attr[GX_SCE_REDUCTION].i == GX_REDUCTION_MEAN;

    return (gx_sce){
        .rows = logits->dim[0],
        .classes = logits->dim[1],
        .dtype = logits->dtype,
        .logits = logits->data,
        .labels = first->arg[GX_SCE_LABELS].data,
        .out = is_bwd(first) ? NULL : first->arg[GX_SCE_OUT].data,
        .dlogits = is_bwd(last) ? last->arg[GX_SCE_BWD_DLOGITS].data : NULL,
        .dy = is_bwd(last) ? gx_data(last, GX_SCE_BWD_DY) : NULL,
        .ignores = ignores,
        .ignored = (int32_t)first->attr[GX_SCE_IGNORE_INDEX].i,
        .smoothing = (float)first->attr[GX_SCE_LABEL_SMOOTHING].r,
        .divisor = is_mean ? logits->dim[0] : 1,
        .counted = is_mean && ignores ? workspace : NULL,
        .partial = is_mean && ignores ? workspace + 1 : workspace,
        .blocks = blocks,
    };
}

/* Blocks when there are several. */
static int64_t several(const gx_sce *sce, const gx_ctx *ctx)
{
    const int64_t rows = sce->classes > GX_SCE_WARP_CLASSES ? 1 : GX_LOSS_THREADS / 32;
    const int64_t blocks = gx_divide_up(sce->rows, rows);
    const int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

/* Only the derivative of no rows has nothing to write: a sum of none is 0. */
static bool has_work(const gx_group *group)
{
    return !is_bwd(&group->call[0]) || gx_count(&group->call[0].arg[GX_SCE_LOGITS]) > 0;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    double place = 0; /* stands for the workspace, which comes later */
    gx_sce sce = describe(group, 1, &place);

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (!has_work(group)) {
        prepared->n_launches = 0;
        return GX_OK;
    }
    if (is_bwd(&group->call[0])) {
        sce.blocks = (int32_t)several(&sce, ctx);
    } else {
        GX_TRY(gx_mean_prepare(gx_count(&group->call[0].arg[GX_SCE_LOGITS]),
                               several(&sce, ctx), prepared, err));
        sce.blocks = gx_mean_blocks(prepared);
    }
    if (sce.counted) {
        prepared->n_launches++;
        prepared->workspace_bytes += sizeof *sce.counted;
    }
    return gx_sce_load(&sce, err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    gx_sce sce = describe(group, gx_mean_blocks(prepared), ctx->workspace);

    if (!has_work(group))
        return GX_OK;
    if (is_bwd(&group->call[0]))
        sce.blocks = (int32_t)several(&sce, ctx);
    return gx_sce_launch(&sce, ctx, err);
}

static const char *const loss[] = { "softmax_cross_entropy", NULL };
static const char *const bwd[] = { "softmax_cross_entropy.bwd", NULL };
static const char *const pair[] = { "softmax_cross_entropy", "softmax_cross_entropy.bwd",
                                    NULL };
GX_HEAD_PATTERNS(sce, "softmax_cross_entropy");

#define ALTERNATIVE(alternative, ops, applies)                                   \
    .name = alternative, .pattern = ops, .refuses = applies, .prepare = prepare, \
    .launch = launch

const gx_alternative gx_loss_alternatives[] = {
    { ALTERNATIVE("kernel", loss, refuses), .strict = true },
    { ALTERNATIVE("kernel", bwd, refuses), .strict = true },
    { ALTERNATIVE("fused", pair, refuses_pair) },
    GX_HEAD_ALTERNATIVES(sce),
    { 0 },
};
