/* The CUDA alternatives of gemm: the table, and those that our own kernel runs. */
#include "gemm_cuda.h"

#include <string.h>

#include "lt.h"

/* --- when they apply --- */

static const char *refuses_tile(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_gemm_refuses(group);
}

static const char *refuses_fused(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    (void)ctx;
    return reason != NULL ? reason : gx_gemm_refuses_link(group, GX_EPILOGUE_X);
}

static const char *refuses_fused_third(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_fused(group, ctx);

    return reason != NULL ? reason : gx_gemm_refuses_third(group);
}

static const char *refuses_fused_backward(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses_backward(group);

    (void)ctx;
    if (reason != NULL)
        return reason;
    const gx_product product = gx_product_of(&group->call[0]);

    if (product.n_batches != 1 && !product.sum)
        return "column sums of a batch of products";
    return NULL;
}

/* --- what the kernel gets --- */

static gx_tile_math math_of(const gx_product *product)
{
    if (product->dtype == GX_BF16)
        return GX_TILE_BF16;
    if (product->dtype == GX_F16)
        return GX_TILE_F16;
    return product->precision == GX_PRECISION_TF32 ? GX_TILE_TF32 : GX_TILE_F32;
}

/* The largest copy that every row of a stored matrix allows. */
static int chunk_of(const void *data, int64_t ld, gx_dtype dtype)
{
    const int64_t element = (int64_t)gx_dtype_bytes(dtype), stride = ld * element;

    if (gx_alignment_of(data, 16) == 16 && stride % 16 == 0)
        return 16;
    if (gx_alignment_of(data, 4) == 4 && stride % 4 == 0)
        return 4;
    return (int)element;
}

static void add_epilogue(const gx_group *group, gx_tile *tile)
{
    const gx_call *call = &group->call[1];

    tile->tail = GX_TAIL_FORWARD;
    tile->act = (int)gx_act_of(call, GX_EPILOGUE_ACT);
    tile->out = call->arg[GX_EPILOGUE_OUT].data;
    tile->bias = gx_data(call, GX_EPILOGUE_BIAS);
    tile->pre = gx_kept_of(group);
}

static void add_backward(const gx_group *group, gx_tile *tile)
{
    const gx_call *call = &group->call[1];
    const gx_act act = gx_act_of(call, GX_EPILOGUE_BWD_ACT);

    tile->tail = GX_TAIL_BACKWARD;
    tile->act = (int)act;
    tile->saved = gx_act_saved(call, act, GX_EPILOGUE_BWD_Y, GX_EPILOGUE_BWD_PRE);
    tile->out = gx_is_elided(group, 1, GX_EPILOGUE_BWD_DX)
                    ? NULL
                    : gx_data(call, GX_EPILOGUE_BWD_DX);
    tile->dbias = gx_bias_sums_of(group);
}

/* The last of three calls scales and adds a tensor again. */
static bool is_third(const gx_group *group)
{
    return group->n_calls == 3 && !gx_is_backward(group);
}

/* What the kernel does, and whether it takes the kernel that does more. */
typedef struct tile_job {
    gx_tile tile;
    gx_tile_more more;
    bool has_more;
} tile_job;

static gx_tile_more more_of(const gx_group *group, const gx_product *product)
{
    const bool is_forward = group->n_calls >= 2 && !gx_is_backward(group);
    gx_tile_more more = {
        .n_batches = product->n_batches,
        .stride_a = product->stride_a,
        .stride_b = product->stride_b,
        .sum = product->sum,
        .alpha = (float)product->alpha,
        .beta = (float)product->beta,
        .c = product->c,
        .ldc = product->ldc,
        .ld_out = product->ld_out,
        .scale = 1.0f,
    };

    if (is_forward) {
        more.scale = (float)gx_call_factor(&group->call[1], GX_EPILOGUE_SCALE);
        more.residual = gx_data(&group->call[1], GX_EPILOGUE_RESIDUAL);
    }
    if (is_third(group)) {
        more.again = true;
        more.y = gx_is_elided(group, 1, GX_EPILOGUE_OUT)
                     ? NULL
                     : group->call[1].arg[GX_EPILOGUE_OUT].data;
        more.last_scale = (float)gx_call_factor(&group->call[2], GX_EPILOGUE_SCALE);
        more.last_residual = gx_data(&group->call[2], GX_EPILOGUE_RESIDUAL);
    }
    return more;
}

static bool is_more(const gx_tile_more *more, int64_t n)
{
    return more->ld_out != n || more->n_batches != 1 || more->alpha != 1.0f ||
           more->c != NULL || more->scale != 1.0f || more->residual != NULL ||
           more->again;
}

static tile_job describe(const gx_group *group, int shape, void *workspace)
{
    const gx_product product = gx_product_of(&group->call[0]);
    gx_tile tile = {
        .m = product.m,
        .n = product.n,
        .k = product.k,
        .a = product.a,
        .b = product.b,
        .out = group->call[0].arg[GX_GEMM_OUT].data,
        .lda = product.lda,
        .ldb = product.ldb,
        .trans_a = product.trans_a,
        .trans_b = product.trans_b,
        .math = math_of(&product),
        .shape = shape,
        .tail = GX_TAIL_NONE,
    };

    if (tile.m == 0 || tile.n == 0)
        tile.k = 0; /* then only zeros are written: column sums, or behind the columns */
    tile.chunk_a = chunk_of(tile.a, tile.lda, product.dtype);
    tile.chunk_b = chunk_of(tile.b, tile.ldb, product.dtype);
    if (gx_is_backward(group))
        add_backward(group, &tile);
    else if (group->n_calls >= 2)
        add_epilogue(group, &tile);
    if (is_third(group))
        tile.out = group->call[2].arg[GX_EPILOGUE_OUT].data;
    if (tile.dbias != NULL && tile.m > gx_tile_rows(shape))
        tile.partial = workspace;

    tile_job job = { .tile = tile, .more = more_of(group, &product) };

    job.has_more = is_more(&job.more, tile.n);
    return job;
}

gx_tile gx_gemm_tile_of(const gx_group *group, bool *plain)
{
    const tile_job job = describe(group, 0, NULL);

    *plain = !job.has_more;
    return job.tile;
}

/* --- the choice of a tile shape --- */

/* Small tiles until there are enough blocks to fill the card; with column sums, a tile
 * that has all rows if there is one, since it spares a second kernel. */
static int usual_shape(const tile_job *job, int n_sm)
{
    const gx_tile *tile = &job->tile;
    const int64_t n_outs = job->more.sum ? 1 : job->more.n_batches;
    const int by_size[] = { 4, 3, 1, 0 };

    if (tile->dbias != NULL && tile->m <= 64)
        return tile->m <= 16 ? 0 : tile->m <= 32 ? 1 : 2;
    for (size_t i = 0; i < sizeof by_size / sizeof by_size[0]; i++) {
        const int64_t blocks = gx_divide_up(tile->m, gx_tile_rows(by_size[i])) *
                               gx_divide_up(tile->n, gx_tile_columns(by_size[i])) *
                               n_outs;

        if (blocks >= n_sm / 2)
            return by_size[i];
    }
    return 0;
}

/* Candidate 0 is the usual shape, and the others follow in order. */
static gx_status choose_shape(const tile_job *job, const gx_ctx *ctx,
                              gx_prepared *prepared, int *shape, gx_error *err)
{
    if (prepared->has_algo) {
        prepared->n_algos = 1;
        *shape = prepared->algo[0];
        if (*shape >= GX_N_TILES)
            return GX_FAIL(err, GX_ERR_UNSUPPORTED, "tile shape %d of %d is pinned",
                           *shape, GX_N_TILES);
    } else {
        const int usual = usual_shape(job, ctx->n_sm), choice = prepared->algo_choice;

        prepared->n_algos = GX_N_TILES;
        if (choice < 0 || choice >= GX_N_TILES)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "tile shape %d of %d", choice,
                           GX_N_TILES);
        *shape = choice == 0 ? usual : choice <= usual ? choice - 1 : choice;
    }
    if (gx_tile_shared_bytes(job->tile.math, *shape) > ctx->shared_optin_bytes)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "tile shape %d needs %zu bytes of shared memory, a block has %zu",
                       *shape, gx_tile_shared_bytes(job->tile.math, *shape),
                       ctx->shared_optin_bytes);
    memset(prepared->algo, 0, sizeof prepared->algo);
    prepared->algo[0] = (unsigned char)*shape;
    prepared->has_algo = true;
    return GX_OK;
}

/* --- hooks --- */

static gx_status prepare_tile(const gx_group *group, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    tile_job job = describe(group, 0, NULL);
    gx_tile *tile = &job.tile;
    int shape = 0;

    prepared->workspace_bytes = 0;
    prepared->n_launches = 0;
    prepared->n_algos = 1;
    if (job.more.ld_out == 0 || job.more.n_batches == 0 ||
        (tile->m == 0 && tile->dbias == NULL))
        return GX_OK;
    GX_TRY(choose_shape(&job, ctx, prepared, &shape, err));
    tile->shape = shape;
    prepared->n_launches = 1;
    if (tile->dbias != NULL && tile->m > gx_tile_rows(shape)) {
        const int64_t row_tiles = gx_divide_up(tile->m, gx_tile_rows(shape));

        prepared->workspace_bytes = (size_t)(row_tiles * tile->n) * sizeof(float);
        prepared->n_launches = 2;
        tile->partial = (float *)(uintptr_t)sizeof(float); /* there will be one */
    }
    return gx_tile_load(tile, job.has_more ? &job.more : NULL, err);
}

static gx_status launch_tile(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    if (prepared->n_launches == 0)
        return GX_OK;
    const tile_job job = describe(group, prepared->algo[0], ctx->workspace);

    return gx_tile_launch(&job.tile, job.has_more ? &job.more : NULL, ctx, err);
}

/* --- the table --- */

static const char *const gemm_pattern[] = { "gemm", NULL };
static const char *const forward_pattern[] = { "gemm", "epilogue", NULL };
static const char *const third_pattern[] = { "gemm", "epilogue", "epilogue", NULL };
static const char *const backward_pattern[] = { "gemm", "epilogue.bwd", NULL };
static const char *const split_pattern[] = { "gemm", "epilogue.bwd", "epilogue.bwd",
                                             NULL };
static const char *const pair_pattern[] = { "gemm", "gemm", NULL };
static const char *const pair_back_pattern[] = { "gemm", "gemm", "epilogue.bwd", NULL };

const gx_alternative gx_gemm_alternatives[] = {
    {
        .name = "lt",
        .library = true,
        .pattern = gemm_pattern,
        .strict = true,
        .refuses = gx_gemm_lt_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
        .release = gx_lt_release,
    },
    {
        .name = "lt_turned",
        .library = true,
        .pattern = gemm_pattern,
        .refuses = gx_gemm_lt_turned_refuses,
        .prepare = gx_gemm_lt_turned_prepare,
        .launch = gx_gemm_lt_turned_launch,
        .release = gx_lt_release,
    },
    {
        .name = "lt_turned_b",
        .library = true,
        .pattern = gemm_pattern,
        .refuses = gx_gemm_lt_turned_b_refuses,
        .prepare = gx_gemm_lt_turned_b_prepare,
        .launch = gx_gemm_lt_turned_b_launch,
        .release = gx_lt_release,
    },
    {
        .name = "tile",
        .pattern = gemm_pattern,
        .strict = true,
        .refuses = refuses_tile,
        .prepare = prepare_tile,
        .launch = launch_tile,
    },
    {
        .name = "direct",
        .pattern = gemm_pattern,
        .refuses = gx_gemm_direct_refuses,
        .prepare = gx_gemm_direct_prepare,
        .launch = gx_gemm_direct_launch,
    },
    {
        .name = "wgmma",
        .pattern = gemm_pattern,
        .refuses = gx_gemm_wgmma_refuses,
        .prepare = gx_gemm_wgmma_prepare,
        .launch = gx_gemm_wgmma_launch,
        .release = gx_gemm_wgmma_release,
    },
    {
        .name = "lt_fused",
        .library = true,
        .pattern = forward_pattern,
        .elides = true,
        .refuses = gx_gemm_lt_forward_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
        .release = gx_lt_release,
    },
    {
        .name = "lt_bias",
        .library = true,
        .pattern = forward_pattern,
        .elides = true,
        .refuses = gx_gemm_lt_bias_refuses,
        .prepare = gx_gemm_lt_bias_prepare,
        .launch = gx_gemm_lt_bias_launch,
        .release = gx_lt_release,
    },
    {
        .name = "fused",
        .pattern = forward_pattern,
        .elides = true,
        .refuses = refuses_fused,
        .prepare = prepare_tile,
        .launch = launch_tile,
    },
    {
        .name = "direct_fused",
        .pattern = forward_pattern,
        .elides = true,
        .refuses = gx_gemm_direct_forward_refuses,
        .prepare = gx_gemm_direct_prepare,
        .launch = gx_gemm_direct_launch,
    },
    {
        .name = "wgmma_fused",
        .pattern = forward_pattern,
        .elides = true,
        .refuses = gx_gemm_wgmma_forward_refuses,
        .prepare = gx_gemm_wgmma_prepare,
        .launch = gx_gemm_wgmma_launch,
        .release = gx_gemm_wgmma_release,
    },
    {
        .name = "fused",
        .pattern = third_pattern,
        .elides = true,
        .refuses = refuses_fused_third,
        .prepare = prepare_tile,
        .launch = launch_tile,
    },
    {
        .name = "lt_fused",
        .library = true,
        .pattern = backward_pattern,
        .elides = true,
        .refuses = gx_gemm_lt_backward_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
        .release = gx_lt_release,
    },
    {
        .name = "fused",
        .pattern = backward_pattern,
        .elides = true,
        .refuses = refuses_fused_backward,
        .prepare = prepare_tile,
        .launch = launch_tile,
    },
    {
        .name = "direct_fused",
        .pattern = backward_pattern,
        .elides = true,
        .refuses = gx_gemm_direct_backward_refuses,
        .prepare = gx_gemm_direct_prepare,
        .launch = gx_gemm_direct_launch,
    },
    {
        .name = "wgmma_fused",
        .pattern = backward_pattern,
        .elides = true,
        .refuses = gx_gemm_wgmma_backward_refuses,
        .prepare = gx_gemm_wgmma_prepare,
        .launch = gx_gemm_wgmma_launch,
        .release = gx_gemm_wgmma_release,
    },
    {
        .name = "lt_fused",
        .library = true,
        .pattern = split_pattern,
        .elides = true,
        .refuses = gx_gemm_lt_backward_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
        .release = gx_lt_release,
    },
    {
        .name = "fused",
        .pattern = split_pattern,
        .elides = true,
        .refuses = refuses_fused_backward,
        .prepare = prepare_tile,
        .launch = launch_tile,
    },
    {
        .name = "direct_fused",
        .pattern = split_pattern,
        .elides = true,
        .refuses = gx_gemm_direct_backward_refuses,
        .prepare = gx_gemm_direct_prepare,
        .launch = gx_gemm_direct_launch,
    },
    {
        .name = "wgmma_fused",
        .pattern = split_pattern,
        .elides = true,
        .refuses = gx_gemm_wgmma_backward_refuses,
        .prepare = gx_gemm_wgmma_prepare,
        .launch = gx_gemm_wgmma_launch,
        .release = gx_gemm_wgmma_release,
    },
    {
        .name = "chain",
        .pattern = forward_pattern,
        .repeat = GX_REPEAT_ALL,
        .takes = gx_gemm_chain_takes,
        .elides = true,
        .trial = true,
        .refuses = gx_gemm_chain_refuses,
        .prepare = gx_gemm_chain_prepare,
        .launch = gx_gemm_chain_launch,
    },
    {
        .name = "chain",
        .pattern = backward_pattern,
        .repeat = GX_REPEAT_ALL,
        .takes = gx_gemm_chain_takes,
        .elides = true,
        .trial = true,
        .refuses = gx_gemm_chain_refuses,
        .prepare = gx_gemm_chain_prepare,
        .launch = gx_gemm_chain_launch,
    },
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
