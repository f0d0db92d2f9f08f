/* The CUDA alternatives of the norms: a kernel, and two where column sums are wanted. */
#include "cuda_call.h"
#include "norm_kernels.h"

enum {
    WARP_COLUMNS = 32 * GX_NORM_HELD, /* of a row that one warp holds */
    NARROW_COLUMNS = 128,             /* up to here a few registers do */
    MOST_WARPS = GX_NORM_MOST_THREADS / 32,
    /* Blocks of the kernel that takes column sums: enough for a large card, and the same
     * on each, since the order of the sums hangs on it. */
    SUM_BLOCKS = 256,
    SUM_FLOATS = 1 << 24, /* and fewer where rows are so long that more is left behind */
    BLOCKS_PER_SM = 8
};

/* The attribute, or the epsilon of x's type. */
static float eps_of(const gx_call *call)
{
    if (call->attr[GX_NORM_EPS].present)
        return (float)call->attr[GX_NORM_EPS].r;
    switch (call->arg[0].dtype) {
    case GX_BF16:
        return 0x1p-7f;
    case GX_F16:
        return 0x1p-10f;
    default:
        return 0x1p-23f;
    }
}

static gx_norm_layout lay_out(int64_t columns, bool wide)
{
    gx_norm_layout layout = {
        .vector = wide ? 4 : 1, .chunks = 0, .warps = 1, .threads = GX_NORM_MOST_THREADS
    };

    while (layout.warps < MOST_WARPS && (int64_t)layout.warps * WARP_COLUMNS < columns)
        layout.warps *= 2;
    if ((int64_t)layout.warps * WARP_COLUMNS < columns)
        return layout;
    layout.chunks =
        (columns <= NARROW_COLUMNS ? NARROW_COLUMNS / 32 : GX_NORM_HELD) / layout.vector;
    if (layout.warps * 32 <= GX_NORM_THREADS)
        layout.threads = GX_NORM_THREADS;
    return layout;
}

/* Every pointer and row allows four elements at once. */
static bool is_wide(uintptr_t all, gx_dtype dtype, int64_t columns)
{
    return all % (4 * gx_dtype_bytes(dtype)) == 0 && columns % 4 == 0;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[0].dtype) ? NULL : "only f32, bf16 and f16";
}

/* --- forward --- */

static gx_norm describe(const gx_call *call, bool centred)
{
    const gx_tensor *x = &call->arg[0];
    gx_norm norm = {
        .rows = gx_rows(x),
        .columns = gx_columns(x),
        .dtype = x->dtype,
        .centred = centred,
        .eps = eps_of(call),
        .x = x->data,
        .weight = gx_data(call, centred ? GX_LAYER_NORM_WEIGHT : GX_RMS_NORM_WEIGHT),
        .bias = centred ? gx_data(call, GX_LAYER_NORM_BIAS) : NULL,
        .out = gx_data(call, centred ? GX_LAYER_NORM_OUT : GX_RMS_NORM_OUT),
    };
    const uintptr_t all = (uintptr_t)norm.x | (uintptr_t)norm.weight |
                          (uintptr_t)norm.bias | (uintptr_t)norm.out;

    norm.layout = lay_out(norm.columns, is_wide(all, norm.dtype, norm.columns));
    return norm;
}

static gx_status prepare(const gx_norm *norm, gx_prepared *prepared, gx_error *err)
{
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = norm->rows > 0 && norm->columns > 0 ? 1 : 0;
    return prepared->n_launches > 0 ? gx_norm_load(norm, err) : GX_OK;
}

static gx_status prepare_layer_norm(const gx_group *group, const gx_ctx *ctx,
                                    gx_prepared *prepared, gx_error *err)
{
    const gx_norm norm = describe(&group->call[0], true);

    (void)ctx;
    return prepare(&norm, prepared, err);
}

static gx_status prepare_rms_norm(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err)
{
    const gx_norm norm = describe(&group->call[0], false);

    (void)ctx;
    return prepare(&norm, prepared, err);
}

static gx_status launch_layer_norm(const gx_group *group, const gx_prepared *prepared,
                                   gx_ctx *ctx, gx_error *err)
{
    const gx_norm norm = describe(&group->call[0], true);

    return prepared->n_launches > 0 ? gx_norm_launch(&norm, ctx, err) : GX_OK;
}

static gx_status launch_rms_norm(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    const gx_norm norm = describe(&group->call[0], false);

    return prepared->n_launches > 0 ? gx_norm_launch(&norm, ctx, err) : GX_OK;
}

/* --- backward --- */

static int32_t blocks_of(const gx_norm_bwd *norm, const gx_ctx *ctx)
{
    const int64_t per_block = norm->layout.threads / (norm->layout.warps * 32);
    const int64_t needed = gx_divide_up(norm->rows, per_block);
    int64_t most = (int64_t)ctx->n_sm * BLOCKS_PER_SM;

    if (norm->dweight != NULL || norm->dbias != NULL) {
        most = SUM_FLOATS / (2 * norm->columns);
        most = most < 1 ? 1 : most < SUM_BLOCKS ? most : SUM_BLOCKS;
    }
    return (int32_t)(needed < most ? needed : most);
}

static gx_norm_bwd describe_bwd(const gx_call *call, bool centred, const gx_ctx *ctx)
{
    const gx_tensor *x = &call->arg[0];
    gx_norm_bwd norm = {
        .rows = gx_rows(x),
        .columns = gx_columns(x),
        .dtype = x->dtype,
        .centred = centred,
        .eps = eps_of(call),
        .x = x->data,
        .weight =
            gx_data(call, centred ? GX_LAYER_NORM_BWD_WEIGHT : GX_RMS_NORM_BWD_WEIGHT),
        .dy = gx_data(call, centred ? GX_LAYER_NORM_BWD_DY : GX_RMS_NORM_BWD_DY),
        .dx = gx_data(call, centred ? GX_LAYER_NORM_BWD_DX : GX_RMS_NORM_BWD_DX),
        .dweight =
            gx_data(call, centred ? GX_LAYER_NORM_BWD_DWEIGHT : GX_RMS_NORM_BWD_DWEIGHT),
        .dbias = centred ? gx_data(call, GX_LAYER_NORM_BWD_DBIAS) : NULL,
        .partial = ctx->workspace,
    };
    const uintptr_t all = (uintptr_t)norm.x | (uintptr_t)norm.weight |
                          (uintptr_t)norm.dy | (uintptr_t)norm.dx;

    if (norm.columns == 0)
        return norm;
    norm.layout = lay_out(norm.columns, is_wide(all, norm.dtype, norm.columns));
    norm.blocks = blocks_of(&norm, ctx);
    /* One block may write the sums itself, unless it has no registers to keep them. */
    norm.apart = (norm.dweight != NULL || norm.dbias != NULL) &&
                 (norm.blocks != 1 || norm.layout.chunks == 0);
    return norm;
}

static gx_status prepare_bwd(const gx_norm_bwd *norm, gx_prepared *prepared,
                             gx_error *err)
{
    const size_t sums =
        norm->apart ? (size_t)norm->blocks * 2 * (size_t)norm->columns : 0;

    prepared->workspace_bytes = sums * sizeof *norm->partial;
    prepared->n_algos = 1;
    prepared->n_launches = (norm->blocks > 0) + norm->apart;
    return prepared->n_launches > 0 ? gx_norm_bwd_load(norm, err) : GX_OK;
}

static gx_status prepare_layer_norm_bwd(const gx_group *group, const gx_ctx *ctx,
                                        gx_prepared *prepared, gx_error *err)
{
    const gx_norm_bwd norm = describe_bwd(&group->call[0], true, ctx);

    return prepare_bwd(&norm, prepared, err);
}

static gx_status prepare_rms_norm_bwd(const gx_group *group, const gx_ctx *ctx,
                                      gx_prepared *prepared, gx_error *err)
{
    const gx_norm_bwd norm = describe_bwd(&group->call[0], false, ctx);

    return prepare_bwd(&norm, prepared, err);
}

static gx_status launch_layer_norm_bwd(const gx_group *group, const gx_prepared *prepared,
                                       gx_ctx *ctx, gx_error *err)
{
    const gx_norm_bwd norm = describe_bwd(&group->call[0], true, ctx);

    return prepared->n_launches > 0 ? gx_norm_bwd_launch(&norm, ctx, err) : GX_OK;
}

static gx_status launch_rms_norm_bwd(const gx_group *group, const gx_prepared *prepared,
                                     gx_ctx *ctx, gx_error *err)
{
    const gx_norm_bwd norm = describe_bwd(&group->call[0], false, ctx);

    return prepared->n_launches > 0 ? gx_norm_bwd_launch(&norm, ctx, err) : GX_OK;
}

static const char *const layer_norm[] = { "layer_norm", NULL };
static const char *const layer_norm_bwd[] = { "layer_norm.bwd", NULL };
static const char *const rms_norm[] = { "rms_norm", NULL };
static const char *const rms_norm_bwd[] = { "rms_norm.bwd", NULL };

#define ALTERNATIVE(ops)                                                      \
    {                                                                         \
        .name = "kernel", .pattern = ops, .strict = true, .refuses = refuses, \
        .prepare = prepare_##ops, .launch = launch_##ops                      \
    }

const gx_alternative gx_norm_alternatives[] = {
    ALTERNATIVE(layer_norm),
    ALTERNATIVE(layer_norm_bwd),
    ALTERNATIVE(rms_norm),
    ALTERNATIVE(rms_norm_bwd),
    { 0 },
};
