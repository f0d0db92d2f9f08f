/* The CUDA alternatives of softmax_cross_entropy: alone, with its derivative, and with
 * what stands before and behind them. */
#include "head.h"
#include "loss_kernels.h"
#include "mean.h"

enum {
    BLOCKS_PER_SM = 8, /* of a kernel that strides over its work */
    SMALL = 16384
};

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
    if (loss && (!gx_feeds(loss, GX_SCE_LOGITS, bwd, GX_SCE_BWD_LOGITS) ||
                 !gx_feeds(loss, GX_SCE_LABELS, bwd, GX_SCE_BWD_LABELS) ||
                 !same_attributes(loss, bwd)))
        return "the derivative is that of another loss";
    if (loss && gx_feeds(loss, GX_SCE_OUT, bwd, GX_SCE_BWD_DY))
        return "the derivative is scaled by the loss";
    return gx_is_float(bwd->arg[GX_SCE_BWD_LOGITS].dtype) ? NULL
                                                          : "only f32, bf16 and f16";
}

static const char *refuses_pair(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_sce_refuses_pair(gx_find_loss_call(group, false),
                               gx_find_loss_call(group, true));
}

/* The loss and its derivative have their operands and attributes at the same numbers. */
_Static_assert((int)GX_SCE_LOGITS == (int)GX_SCE_BWD_LOGITS &&
                   (int)GX_SCE_LABELS == (int)GX_SCE_BWD_LABELS,
               "either describes both");

/* The count comes first in the workspace, then the partial sums. */
static gx_sce describe(const gx_group *group, int32_t blocks, double *workspace)
{
    const gx_call *any = &group->call[0];
    const gx_call *loss = gx_find_loss_call(group, false);
    const gx_call *bwd = gx_find_loss_call(group, true);
    const gx_tensor *logits = &any->arg[GX_SCE_LOGITS];
    const bool is_mean = any->attr[GX_SCE_REDUCTION].i == GX_REDUCTION_MEAN;
    gx_sce sce = {
        .rows = logits->dim[0],
        .classes = logits->dim[1],
        .dtype = logits->dtype,
        .logits = logits->data,
        .labels = any->arg[GX_SCE_LABELS].data,
        .out = loss ? loss->arg[GX_SCE_OUT].data : NULL,
        .dlogits = bwd ? bwd->arg[GX_SCE_BWD_DLOGITS].data : NULL,
        .dy = bwd ? gx_data(bwd, GX_SCE_BWD_DY) : NULL,
        .ignores = any->attr[GX_SCE_IGNORE_INDEX].present,
        .ignored = (int32_t)any->attr[GX_SCE_IGNORE_INDEX].i,
        .smoothing = (float)any->attr[GX_SCE_LABEL_SMOOTHING].r,
        .divisor = is_mean ? logits->dim[0] : 1,
        .share = 1.0 / (double)(is_mean ? logits->dim[0] : 1),
        .partial = workspace,
        .blocks = blocks,
    };

    sce.counts = is_mean && sce.ignores;
    if (sce.counts && !gx_sce_is_one_pass(&sce))
        sce.counted = sce.partial++;
    return sce;
}

/* Blocks when there are several. */
static int64_t several(const gx_sce *sce, const gx_ctx *ctx)
{
    const int64_t blocks = gx_divide_up(sce->rows, gx_sce_rows_at_once(sce->classes));
    const int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

/* Only the derivative of no rows has nothing to write: a sum of none is 0. */
static bool has_work(const gx_group *group)
{
    return gx_find_loss_call(group, false) ||
           gx_count(&group->call[0].arg[GX_SCE_LOGITS]) > 0;
}

/* The loss alone of so few logits is one block's: it runs beside the backward pass, which
 * has the other multiprocessors, and counts for itself the rows that are left. */
static bool is_small(const gx_group *group)
{
    const gx_tensor *logits = &group->call[0].arg[GX_SCE_LOGITS];

    return !gx_find_loss_call(group, true) && gx_count(logits) <= SMALL &&
           logits->dim[1] <= GX_SCE_WARP_CLASSES;
}

/* Also how many algorithms there are. */
static gx_status choose_blocks(const gx_group *group, const gx_ctx *ctx,
                               gx_prepared *prepared, int32_t *blocks, gx_error *err)
{
    double place = 0; /* stands for the workspace, which comes later */
    const gx_sce sce = describe(group, 1, &place);

    *blocks = (int32_t)several(&sce, ctx);
    if (!gx_find_loss_call(group, false))
        return GX_OK;
    GX_TRY(gx_mean_prepare(gx_count(&group->call[0].arg[GX_SCE_LOGITS]),
                           is_small(group) ? 1 : *blocks, prepared, err));
    *blocks = gx_mean_blocks(prepared);
    return GX_OK;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    double place = 0;
    int32_t blocks;

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (!has_work(group)) {
        prepared->n_launches = 0;
        return GX_OK;
    }
    GX_TRY(choose_blocks(group, ctx, prepared, &blocks, err));
    const gx_sce sce = describe(group, blocks, &place);

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
    if (sce.out)
        GX_TRY(gx_mean_ticket(sce.blocks, ctx, &sce.ticket, err));
    else
        sce.blocks = (int32_t)several(&sce, ctx);
    return gx_sce_launch(&sce, ctx, err);
}

static const char *const loss[] = { "softmax_cross_entropy", NULL };
static const char *const bwd[] = { "softmax_cross_entropy.bwd", NULL };
static const char *const pair[] = { "softmax_cross_entropy", "softmax_cross_entropy.bwd",
                                    NULL };
static const char *const behind[] = { "softmax_cross_entropy.bwd",
                                      "softmax_cross_entropy", NULL };
GX_HEAD_PATTERNS(sce, "softmax_cross_entropy");

#define ALTERNATIVE(alternative, ops, applies)                                   \
    .name = alternative, .pattern = ops, .refuses = applies, .prepare = prepare, \
    .launch = launch

const gx_alternative gx_loss_alternatives[] = {
    { ALTERNATIVE("kernel", loss, refuses), .strict = true },
    { ALTERNATIVE("kernel", bwd, refuses), .strict = true },
    { ALTERNATIVE("fused", pair, refuses_pair) },
    { ALTERNATIVE("fused", behind, refuses_pair) },
    GX_HEAD_ALTERNATIVES(sce),
    { 0 },
};
