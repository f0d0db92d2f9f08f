/* The CUDA alternatives of the losses of each element: each alone, a loss with its
 * derivative, and with what stands before and behind them. */
#include "gemm_cuda.h"
#include "head.h"
#include "mean.h"
#include "pointwise_loss_kernels.h"

enum {
    BLOCKS_PER_SM = 8, /* of a kernel that strides over its work */
    SMALL = 65536,
    LARGE = 1 << 20 /* from so many elements on the rate of memory decides */
};

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
    if (loss && (!gx_feeds(loss, GX_MSE_X, bwd, GX_MSE_BWD_X) ||
                 !gx_feeds(loss, GX_MSE_TARGET, bwd, GX_MSE_BWD_TARGET) ||
                 loss->attr[GX_MSE_REDUCTION].i != bwd->attr[GX_MSE_REDUCTION].i))
        return "the derivative is that of another loss";
    if (loss && gx_feeds(loss, GX_MSE_OUT, bwd, GX_MSE_BWD_DY))
        return "the derivative is scaled by the loss";
    return refuses_types(bwd);
}

static const char *refuses_pair(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_pointwise_refuses_pair(gx_find_loss_call(group, false),
                                     gx_find_loss_call(group, true));
}

/* A loss and its derivative have their operands and attributes at the same numbers. */
_Static_assert((int)GX_MSE_X == (int)GX_MSE_BWD_X &&
                   (int)GX_MSE_TARGET == (int)GX_MSE_BWD_TARGET,
               "either describes both");

static gx_pointwise_loss describe(const gx_group *group, void *workspace)
{
    const gx_call *any = &group->call[0];
    const gx_call *value = gx_find_loss_call(group, false);
    const gx_call *bwd = gx_find_loss_call(group, true);
    const gx_tensor *x = &any->arg[GX_MSE_X], *target = &any->arg[GX_MSE_TARGET];
    const bool is_mean = any->attr[GX_MSE_REDUCTION].i == GX_REDUCTION_MEAN;
    gx_pointwise_loss loss = {
        .n = gx_count(x),
        .kind = gx_pointwise_kind_of(any),
        .dtype = x->dtype,
        .target_dtype = target->dtype,
        .x = x->data,
        .target = target->data,
        .out = value ? value->arg[GX_MSE_OUT].data : NULL,
        .dx = bwd ? bwd->arg[GX_MSE_BWD_DX].data : NULL,
        .dy = bwd ? gx_data(bwd, GX_MSE_BWD_DY) : NULL,
        .divisor = is_mean ? gx_count(x) : 1,
        .share = is_mean ? 1.0 / (double)gx_count(x) : 1.0,
        .partial = workspace,
    };
    const uintptr_t all = (uintptr_t)loss.x | (uintptr_t)loss.target | (uintptr_t)loss.dx;

    loss.wide = all % (4 * sizeof(float)) == 0;
    return loss;
}

static bool is_large(const gx_pointwise_loss *loss)
{
    return loss->wide && loss->n >= LARGE;
}

/* Blocks when there are several: of a large loss all have room at once, so that none is
 * left for a second turn. */
static int64_t several(const gx_pointwise_loss *loss, const gx_ctx *ctx)
{
    const int64_t blocks = gx_divide_up(loss->n, 4 * GX_POINTWISE_THREADS);
    const int64_t most =
        (int64_t)ctx->n_sm * (is_large(loss) ? GX_POINTWISE_PER_SM : BLOCKS_PER_SM);

    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

static void set_blocks(gx_pointwise_loss *loss, int64_t blocks)
{
    loss->blocks = (int32_t)blocks;
    loss->large = is_large(loss) && blocks > 1;
}

/* Only the derivative of no elements has nothing to write: a sum of none is 0. */
static bool has_work(const gx_group *group)
{
    return gx_find_loss_call(group, false) || gx_count(&group->call[0].arg[GX_MSE_X]) > 0;
}

/* The loss alone of so few elements is one block's: it runs beside the backward pass,
 * which has the other multiprocessors. */
static bool is_small(const gx_pointwise_loss *loss)
{
    return !loss->dx && loss->n <= SMALL;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    gx_pointwise_loss loss = describe(group, NULL);

    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    if (!has_work(group)) {
        prepared->n_launches = 0;
        return GX_OK;
    }
    int64_t blocks = several(&loss, ctx);

    if (loss.out) {
        GX_TRY(gx_mean_prepare(loss.n, is_small(&loss) ? 1 : blocks, prepared, err));
        blocks = gx_mean_blocks(prepared);
    }
    set_blocks(&loss, blocks);
    return gx_pointwise_loss_load(&loss, err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    gx_pointwise_loss loss = describe(group, ctx->workspace);

    if (!has_work(group))
        return GX_OK;
    set_blocks(&loss, loss.out ? gx_mean_blocks(prepared) : several(&loss, ctx));
    if (loss.out)
        GX_TRY(gx_mean_ticket(loss.blocks, ctx, &loss.ticket, err));
    return gx_pointwise_loss_launch(&loss, ctx, err);
}

#define PATTERNS(name, op)                                                   \
    static const char *const name[] = { op, NULL };                          \
    static const char *const name##_bwd[] = { op ".bwd", NULL };             \
    static const char *const name##_pair[] = { op, op ".bwd", NULL };        \
    static const char *const name##_pair_behind[] = { op ".bwd", op, NULL }; \
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
        { ALTERNATIVE("fused", ops##_pair, refuses_pair) },            \
        { ALTERNATIVE("fused", ops##_pair_behind, refuses_pair) },     \
        GX_HEAD_ALTERNATIVES(ops), GX_WGMMA_HEADS(ops)

const gx_alternative gx_pointwise_loss_alternatives[] = {
    ALTERNATIVES(mse),
    ALTERNATIVES(l1),
    ALTERNATIVES(bce),
    { 0 },
};
