/* The CUDA alternatives of the losses of each element: each alone, a loss with its
 * derivative, and with what stands before and behind them. */
#include <string.h>

#include "head.h"
#include "mean.h"
#include "pointwise_loss_kernels.h"

/* Blocks per multiprocessor of a kernel that strides over its work. */
enum { BLOCKS_PER_SM = 8 };

static bool is_bwd(const gx_call *call)
{
    return strstr(gx_op_name(call->op), ".bwd") != NULL;
}

gx_pointwise_kind gx_pointwise_kind_of(const gx_call *call)
{
    const char *name = gx_op_name(call->op);

    if (strncmp(name, "mse", 3) == 0)
        return GX_POINT_MSE;
    return strncmp(name, "l1", 2) == 0 ? GX_POINT_L1 : GX_POINT_BCE;
}

static const char *refuses_types(const gx_call *call)
{
    const gx_tensor *x = &call->arg[GX_MSE_X], *target = &call->arg[GX_MSE_TARGET];

    if (!gx_is_float(x->dtype) || (target->dtype != GX_F32 && target->dtype != x->dtype))
        return "only f32, bf16 and f16, the target f32 or like x";
    return NULL;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return refuses_types(&group->call[0]);
}

const char *gx_pointwise_refuses_pair(const gx_call *loss, const gx_call *bwd)
{
    if (!gx_feeds(loss, GX_MSE_X, bwd, GX_MSE_BWD_X) ||
        !gx_feeds(loss, GX_MSE_TARGET, bwd, GX_MSE_BWD_TARGET) ||
        loss->attr[GX_MSE_REDUCTION].i != bwd->attr[GX_MSE_REDUCTION].i)
        return "the derivative is that of another loss";
    if (gx_feeds(loss, GX_MSE_OUT, bwd, GX_MSE_BWD_DY))
        return "the derivative is scaled by the loss";
    return refuses_types(loss);
}

static const char *refuses_pair(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_pointwise_refuses_pair(&group->call[0], &group->call[1]);
}

static gx_pointwise_loss describe(const gx_group *group, int32_t blocks, void *workspace)
{
    const gx_call *first = &group->call[0], *last = &group->call[group->n_calls - 1];
    const gx_tensor *x = &first->arg[GX_MSE_X], *target = &first->arg[GX_MSE_TARGET];
    const bool is_mean = first->attr[GX_MSE_REDUCTION].i == GX_REDUCTION_MEAN;
    gx_pointwise_loss loss = {
        .n = gx_count(x),
        .kind = gx_pointwise_kind_of(first),
        .dtype = x->dtype,
        .target_dtype = target->dtype,
        .x = x->data,
        .target = target->data,
        .out = is_bwd(first) ? NULL : first->arg[GX_MSE_OUT].data,
        .dx = is_bwd(last) ? last->arg[GX_MSE_BWD_DX].data : NULL,
        .dy = is_bwd(last) ? gx_data(last, GX_MSE_BWD_DY) : NULL,
        .divisor = is_mean ? gx_count(x) : 1,
        .partial = workspace,
        .blocks = blocks,
    };
    const uintptr_t all = (uintptr_t)loss.x | (uintptr_t)loss.target | (uintptr_t)loss.dx;

    loss.wide = all % (4 * sizeof(float)) == 0;
    return loss;
}

/* Blocks when there are several. */
static int64_t several(const gx_pointwise_loss *loss, const gx_ctx *ctx)
{
    const int64_t blocks = gx_divide_up(loss->n, 4 * GX_POINTWISE_THREADS);
    const int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

/* Only the derivative of no elements has nothing to write: a sum of none is 0. */
static bool has_work(const gx_group *group)
{
    return !is_bwd(&group->call[0]) || gx_count(&group->call[0].arg[GX_MSE_X]) > 0;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    gx_pointwise_loss loss = describe(group, 1, NULL);

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (!has_work(group)) {
        prepared->n_launches = 0;
        return GX_OK;
    }
    if (is_bwd(&group->call[0])) {
        loss.blocks = (int32_t)several(&loss, ctx);
    } else {
        GX_TRY(gx_mean_prepare(loss.n, several(&loss, ctx), prepared, err));
        loss.blocks = gx_mean_blocks(prepared);
    }
    return gx_pointwise_loss_load(&loss, err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    gx_pointwise_loss loss = describe(group, gx_mean_blocks(prepared), ctx->workspace);

    if (!has_work(group))
        return GX_OK;
    if (is_bwd(&group->call[0]))
        loss.blocks = (int32_t)several(&loss, ctx);
    return gx_pointwise_loss_launch(&loss, ctx, err);
}

#define PATTERNS(name, op)                                            \
    static const char *const name[] = { op, NULL };                   \
    static const char *const name##_bwd[] = { op ".bwd", NULL };      \
    static const char *const name##_pair[] = { op, op ".bwd", NULL }; \
    GX_HEAD_PATTERNS(name, op)

PATTERNS(mse, "mse");
PATTERNS(l1, "l1");
PATTERNS(bce, "bce_with_logits");

#define ALTERNATIVE(alternative, ops, applies)                                   \
    .name = alternative, .pattern = ops, .refuses = applies, .prepare = prepare, \
    .launch = launch
#define ALTERNATIVES(ops)                                              \
    { ALTERNATIVE("kernel", ops, refuses), .strict = true },           \
        { ALTERNATIVE("kernel", ops##_bwd, refuses), .strict = true }, \
        { ALTERNATIVE("fused", ops##_pair, refuses_pair) }, GX_HEAD_ALTERNATIVES(ops)

const gx_alternative gx_pointwise_loss_alternatives[] = {
    ALTERNATIVES(mse),
    ALTERNATIVES(l1),
    ALTERNATIVES(bce),
    { 0 },
};
