/* The CUDA alternatives of epilogue and epilogue.bwd: one kernel each, and one for a way
 * back whose column sums are a call of their own, or for such sums and the product behind
 * them, or for all of these. */
#include "epilogue_cuda.h"

#include "epilogue_kernels.h"
#include "gemm_cuda.h"
#include "lt.h"

enum { VECTOR = 16 }; /* bytes that a thread loads at once */

/* --- forward --- */

static const char *refuses_forward(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *x = &group->call[0].arg[GX_EPILOGUE_X];

    (void)ctx;
    return gx_is_float(x->dtype) ? NULL : "only f32, bf16 and f16";
}

bool gx_epilogue_is_wide(const gx_epilogue *e)
{
    const uintptr_t all = (uintptr_t)e->x | (uintptr_t)e->bias | (uintptr_t)e->out |
                          (uintptr_t)e->pre | (uintptr_t)e->residual;

    return all % VECTOR == 0 &&
           e->columns % (int64_t)(VECTOR / gx_dtype_bytes(e->dtype)) == 0;
}

static gx_epilogue describe_forward(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *x = &call->arg[GX_EPILOGUE_X];
    gx_epilogue e = {
        .rows = gx_rows(x),
        .columns = gx_columns(x),
        .dtype = x->dtype,
        .act = (int)gx_act_of(call, GX_EPILOGUE_ACT),
        .to_tf32 = gx_is_to_tf32(call, GX_EPILOGUE_OUT),
        .x = x->data,
        .bias = gx_data(call, GX_EPILOGUE_BIAS),
        .out = gx_data(call, GX_EPILOGUE_OUT),
        .pre = gx_is_elided(group, 0, GX_EPILOGUE_PRE) ? NULL
                                                       : gx_data(call, GX_EPILOGUE_PRE),
        .scale = (float)gx_call_factor(call, GX_EPILOGUE_SCALE),
        .residual = gx_data(call, GX_EPILOGUE_RESIDUAL),
    };

    e.wide = gx_epilogue_is_wide(&e);
    return e;
}

static gx_status prepare_forward(const gx_group *group, const gx_ctx *ctx,
                                 gx_prepared *prepared, gx_error *err)
{
    const gx_epilogue e = describe_forward(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = e.rows > 0 && e.columns > 0 ? 1 : 0;
    return prepared->n_launches > 0 ? gx_epilogue_load(&e, err) : GX_OK;
}

static gx_status launch_forward(const gx_group *group, const gx_prepared *prepared,
                                gx_ctx *ctx, gx_error *err)
{
    const gx_epilogue e = describe_forward(group);

    return prepared->n_launches > 0 ? gx_epilogue_launch(&e, ctx, err) : GX_OK;
}

/* --- backward --- */

const char *gx_epilogue_refuses_sums(const gx_call *call)
{
    if (gx_act_of(call, GX_EPILOGUE_BWD_ACT) != GX_ACT_NONE ||
        gx_has(call, GX_EPILOGUE_BWD_DX) || !gx_has(call, GX_EPILOGUE_BWD_DBIAS))
        return "more than the gradient of a bias";
    return NULL;
}

const char *gx_epilogue_refuses_split(const gx_group *group, int back)
{
    const gx_call *first = &group->call[back], *second = &group->call[back + 1];

    if (!gx_feeds(first, GX_EPILOGUE_BWD_DX, second, GX_EPILOGUE_BWD_DY))
        return "the gradient of a bias that is not of this epilogue";
    if (gx_has(first, GX_EPILOGUE_BWD_DBIAS))
        return "two gradients of a bias";
    return gx_epilogue_refuses_sums(second);
}

static const char *refuses_backward(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *dy = &group->call[0].arg[GX_EPILOGUE_BWD_DY];

    (void)ctx;
    if (!gx_is_float(dy->dtype))
        return "only f32, bf16 and f16";
    return group->n_calls == 2 ? gx_epilogue_refuses_split(group, 0) : NULL;
}

gx_epilogue_bwd gx_epilogue_back_of(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *dy = &call->arg[GX_EPILOGUE_BWD_DY];
    const gx_act act = gx_act_of(call, GX_EPILOGUE_BWD_ACT);
    gx_epilogue_bwd e = {
        .rows = gx_rows(dy),
        .columns = gx_columns(dy),
        .dtype = dy->dtype,
        .act = (int)act,
        .dy = dy->data,
        .dx = gx_is_elided(group, 0, GX_EPILOGUE_BWD_DX)
                  ? NULL
                  : gx_data(call, GX_EPILOGUE_BWD_DX),
        .dbias = gx_bias_sums_of(group),
        .saved = gx_act_saved(call, act, GX_EPILOGUE_BWD_Y, GX_EPILOGUE_BWD_PRE),
    };
    const uintptr_t all = (uintptr_t)e.dy | (uintptr_t)e.saved | (uintptr_t)e.dx;

    e.wide = all % (2 * gx_dtype_bytes(e.dtype)) == 0 && e.columns % 2 == 0;
    return e;
}

static gx_status prepare_backward(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err)
{
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);
    /* Without rows the column sums are still written: zeros. */
    const bool writes = e.columns > 0 && (e.rows > 0 || e.dbias != NULL);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = writes && (e.dx != NULL || e.dbias != NULL) ? 1 : 0;
    return prepared->n_launches > 0 ? gx_epilogue_bwd_load(&e, err) : GX_OK;
}

static gx_status launch_backward(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);

    return prepared->n_launches > 0 ? gx_epilogue_bwd_launch(&e, ctx, err) : GX_OK;
}

/* --- backward, large --- */

const char *gx_epilogue_refuses_wide(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_backward(group, ctx);

    if (reason != NULL)
        return reason;
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);

    if (e.dbias != NULL && ctx->cc < GX_CLUSTER_CC)
        return "column sums over several blocks need clusters";
    if (e.rows == 0 || e.columns == 0)
        return "of size zero";
    if (e.columns % (int64_t)(VECTOR / gx_dtype_bytes(e.dtype)) != 0)
        return "rows are no multiples of 16 bytes";
    if (e.columns > INT32_MAX)
        return "more than 2^31 columns";
    return NULL;
}

static const char *refuses_wide(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_epilogue_refuses_wide(group, ctx);

    if (reason != NULL)
        return reason;
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);

    return e.dx != NULL || e.dbias != NULL ? NULL : "nothing is wanted";
}

gx_status gx_epilogue_check_wide(const gx_epilogue_bwd *back, gx_error *err)
{
    const uintptr_t all =
        (uintptr_t)back->dy | (uintptr_t)back->saved | (uintptr_t)back->dx;

    if (all % VECTOR == 0)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_UNSUPPORTED, "the operands are not aligned to %d bytes",
                   VECTOR);
}

static gx_status prepare_wide(const gx_group *group, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);

    (void)ctx;
    GX_TRY(gx_epilogue_check_wide(&e, err));
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    return gx_epilogue_bwd_wide_load(&e, err);
}

static gx_status launch_wide(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    const gx_epilogue_bwd e = gx_epilogue_back_of(group);

    (void)prepared;
    return gx_epilogue_bwd_wide_launch(&e, ctx, err);
}

static const char *const forward_pattern[] = { "epilogue", NULL };
static const char *const backward_pattern[] = { "epilogue.bwd", NULL };
static const char *const split_pattern[] = { "epilogue.bwd", "epilogue.bwd", NULL };
static const char *const weight_pattern[] = { "epilogue.bwd", "gemm", NULL };
static const char *const split_weight_pattern[] = { "epilogue.bwd", "epilogue.bwd",
                                                    "gemm", NULL };
static const char *const pair_pattern[] = { "epilogue.bwd", "gemm", "gemm", NULL };
static const char *const pair_back_pattern[] = { "epilogue.bwd", "gemm", "gemm",
                                                 "epilogue.bwd", NULL };

static const char *const adam_pattern[] = { "epilogue.bwd", "gemm", "adam", NULL };
static const char *const adamw_pattern[] = { "epilogue.bwd", "gemm", "adamw", NULL };

#define WEIGHTS_UPDATE                                                                   \
    .repeat = GX_REPEAT_BOTH, .elides = true, .refuses = gx_gemm_weights_update_refuses, \
    .prepare = gx_gemm_weights_update_prepare, .launch = gx_gemm_weights_update_launch

#define TURNED_DX                                                                   \
    .library = true, .elides = true, .refuses = gx_gemm_lt_turned_dx_refuses,       \
    .prepare = gx_gemm_lt_turned_dx_prepare, .launch = gx_gemm_lt_turned_dx_launch, \
    .release = gx_lt_release

#define WGMMA_UPDATE                                                                   \
    .repeat = GX_REPEAT_BOTH, .elides = true, .refuses = gx_gemm_wgmma_update_refuses, \
    .prepare = gx_gemm_wgmma_update_prepare, .launch = gx_gemm_wgmma_update_launch,    \
    .release = gx_gemm_wgmma_release

const gx_alternative gx_epilogue_alternatives[] = {
    {
        .name = "kernel",
        .pattern = forward_pattern,
        .strict = true,
        .refuses = refuses_forward,
        .prepare = prepare_forward,
        .launch = launch_forward,
    },
    {
        .name = "kernel",
        .pattern = backward_pattern,
        .strict = true,
        .refuses = refuses_backward,
        .prepare = prepare_backward,
        .launch = launch_backward,
    },
    {
        .name = "wide",
        .pattern = backward_pattern,
        .refuses = refuses_wide,
        .prepare = prepare_wide,
        .launch = launch_wide,
    },
    {
        .name = "fused",
        .pattern = split_pattern,
        .elides = true,
        .refuses = refuses_backward,
        .prepare = prepare_backward,
        .launch = launch_backward,
    },
    {
        .name = "wide_fused",
        .pattern = split_pattern,
        .elides = true,
        .refuses = refuses_wide,
        .prepare = prepare_wide,
        .launch = launch_wide,
    },
    {
        .name = "lt_weight",
        .library = true,
        .pattern = weight_pattern,
        .refuses = gx_gemm_lt_weight_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
        .release = gx_lt_release,
    },
    { .name = "lt_turned_dx", .pattern = weight_pattern, TURNED_DX },
    { .name = "lt_turned_dx", .pattern = split_weight_pattern, TURNED_DX },
    {
        .name = "direct_weight",
        .pattern = weight_pattern,
        .refuses = gx_gemm_direct_weight_refuses,
        .prepare = gx_gemm_direct_prepare,
        .launch = gx_gemm_direct_launch,
    },
    {
        .name = "weights",
        .pattern = weight_pattern,
        .repeat = GX_REPEAT_ALL,
        .takes = gx_gemm_weights_takes,
        .refuses = gx_gemm_weights_refuses,
        .prepare = gx_gemm_weights_prepare,
        .launch = gx_gemm_weights_launch,
    },
    { .name = "weights_update", .pattern = adam_pattern, WEIGHTS_UPDATE },
    { .name = "weights_update", .pattern = adamw_pattern, WEIGHTS_UPDATE },
    { .name = "wgmma_update", .pattern = adam_pattern, WGMMA_UPDATE },
    { .name = "wgmma_update", .pattern = adamw_pattern, WGMMA_UPDATE },
    {
        .name = "direct_pair",
        .pattern = pair_pattern,
        .refuses = gx_gemm_pair_refuses,
        .prepare = gx_gemm_pair_prepare,
        .launch = gx_gemm_pair_launch,
    },
    {
        .name = "direct_pair",
        .pattern = pair_back_pattern,
        .elides = true,
        .refuses = gx_gemm_pair_refuses,
        .prepare = gx_gemm_pair_prepare,
        .launch = gx_gemm_pair_launch,
    },
    { 0 },
};
