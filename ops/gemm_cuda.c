/* The CUDA alternatives of gemm: the table, and those that our own kernel runs. */
#include "gemm_cuda.h"

#include <string.h>

#include "gemm_tile.h"
#include "lt.h"

/* --- when they apply --- */

const char *gx_gemm_refuses(const gx_group *group)
{
    const gx_call *gemm = &group->call[0];
    const gx_dtype dtype = gemm->arg[GX_GEMM_OUT].dtype;

    if (gx_has(gemm, GX_GEMM_BIAS) || gx_act_of(gemm, GX_GEMM_ACT) != GX_ACT_NONE)
        return "the epilogue is not an op of its own yet";
    if (!gx_is_float(dtype))
        return "only f32, bf16 and f16";
    if (gemm->arg[GX_GEMM_A].dtype != dtype || gemm->arg[GX_GEMM_B].dtype != dtype)
        return "the operands differ in type";
    if (gemm->arg[GX_GEMM_A].rank != 2 || gemm->arg[GX_GEMM_B].rank != 2 ||
        gemm->arg[GX_GEMM_OUT].rank != 2)
        return "an operand is not a matrix";
    return NULL;
}

const char *gx_gemm_refuses_link(const gx_group *group, int in)
{
    const gx_call *gemm = &group->call[0], *next = &group->call[1];

    if (!gx_feeds(gemm, GX_GEMM_OUT, next, in))
        return "the second op does not work on the product";
    if (!gx_is_elided(group, 0, GX_GEMM_OUT) && !gx_keeps_product(group))
        return "the product itself is read elsewhere";
    /* The product would have to be there twice. Bound, an elided product has no address.
     */
    for (int arg = 0; gemm->arg[GX_GEMM_OUT].data != NULL && arg < GX_MAX_ARGS; arg++) {
        if (arg != in && gx_feeds(gemm, GX_GEMM_OUT, next, arg))
            return "the second op reads the product twice";
    }
    return NULL;
}

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

static const char *refuses_fused_backward(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    (void)ctx;
    return reason != NULL ? reason : gx_gemm_refuses_link(group, GX_EPILOGUE_BWD_DY);
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
    tile->dbias = gx_data(call, GX_EPILOGUE_BWD_DBIAS);
}

static gx_tile describe(const gx_group *group, int shape, void *workspace)
{
    const gx_product product = gx_product_of(&group->call[0]);
    gx_tile tile = {
        .m = product.m,
        .n = product.n,
        .k = product.k,
        .a = product.a,
        .b = product.b,
        .out = group->call[0].arg[GX_GEMM_OUT].data,
        .lda = product.trans_a ? product.m : product.k,
        .ldb = product.trans_b ? product.k : product.n,
        .trans_a = product.trans_a,
        .trans_b = product.trans_b,
        .math = math_of(&product),
        .shape = shape,
        .tail = GX_TAIL_NONE,
    };

    if (tile.m == 0)
        tile.k = 0; /* then only the column sums are written: zeros */
    tile.chunk_a = chunk_of(tile.a, tile.lda, product.dtype);
    tile.chunk_b = chunk_of(tile.b, tile.ldb, product.dtype);
    if (gx_is_backward(group))
        add_backward(group, &tile);
    else if (group->n_calls == 2)
        add_epilogue(group, &tile);
    if (tile.dbias != NULL && tile.m > gx_tile_rows(shape))
        tile.partial = workspace;
    return tile;
}

/* --- the choice of a tile shape --- */

/* Small tiles until there are enough blocks to fill the card; with column sums, a tile
 * that has all rows if there is one, since it spares a second kernel. */
static int usual_shape(const gx_tile *tile, int n_sm)
{
    const int by_size[] = { 4, 3, 1, 0 };

    if (tile->dbias != NULL && tile->m <= 64)
        return tile->m <= 16 ? 0 : tile->m <= 32 ? 1 : 2;
    for (size_t i = 0; i < sizeof by_size / sizeof by_size[0]; i++) {
        const int64_t blocks = gx_divide_up(tile->m, gx_tile_rows(by_size[i])) *
                               gx_divide_up(tile->n, gx_tile_columns(by_size[i]));

        if (blocks >= n_sm / 2)
            return by_size[i];
    }
    return 0;
}

/* Candidate 0 is the usual shape, and the others follow in order. */
static gx_status choose_shape(const gx_tile *tile, const gx_ctx *ctx,
                              gx_prepared *prepared, int *shape, gx_error *err)
{
    if (prepared->has_algo) {
        prepared->n_algos = 1;
        *shape = prepared->algo[0];
        if (*shape >= GX_N_TILES)
            return GX_FAIL(err, GX_ERR_UNSUPPORTED, "tile shape %d of %d is pinned",
                           *shape, GX_N_TILES);
    } else {
        const int usual = usual_shape(tile, ctx->n_sm), choice = prepared->algo_choice;

        prepared->n_algos = GX_N_TILES;
        if (choice < 0 || choice >= GX_N_TILES)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "tile shape %d of %d", choice,
                           GX_N_TILES);
        *shape = choice == 0 ? usual : choice <= usual ? choice - 1 : choice;
    }
    if (gx_tile_shared_bytes(tile->math, *shape) > ctx->shared_optin_bytes)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "tile shape %d needs %zu bytes of shared memory, a block has %zu",
                       *shape, gx_tile_shared_bytes(tile->math, *shape),
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
    gx_tile tile = describe(group, 0, NULL);
    int shape = 0;

    prepared->workspace_bytes = 0;
    prepared->n_launches = 0;
    prepared->n_algos = 1;
    if (tile.n == 0 || (tile.m == 0 && tile.dbias == NULL))
        return GX_OK;
    GX_TRY(choose_shape(&tile, ctx, prepared, &shape, err));
    tile.shape = shape;
    prepared->n_launches = 1;
    if (tile.dbias != NULL && tile.m > gx_tile_rows(shape)) {
        const int64_t row_tiles = gx_divide_up(tile.m, gx_tile_rows(shape));

        prepared->workspace_bytes = (size_t)(row_tiles * tile.n) * sizeof(float);
        prepared->n_launches = 2;
        tile.partial = (float *)(uintptr_t)sizeof(float); /* there will be one */
    }
    return gx_tile_load(&tile, err);
}

static gx_status launch_tile(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    if (prepared->n_launches == 0)
        return GX_OK;
    const gx_tile tile = describe(group, prepared->algo[0], ctx->workspace);

    return gx_tile_launch(&tile, ctx, err);
}

/* --- the table --- */

static const char *const gemm_pattern[] = { "gemm", NULL };
static const char *const forward_pattern[] = { "gemm", "epilogue", NULL };
static const char *const backward_pattern[] = { "gemm", "epilogue.bwd", NULL };

const gx_alternative gx_gemm_alternatives[] = {
    {
        .name = "lt",
        .pattern = gemm_pattern,
        .strict = true,
        .refuses = gx_gemm_lt_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
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
        .name = "lt_fused",
        .pattern = forward_pattern,
        .elides = true,
        .refuses = gx_gemm_lt_forward_refuses,
        .prepare = gx_gemm_lt_prepare,
        .launch = gx_gemm_lt_launch,
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
        .name = "lt_fused",
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
    { 0 },
};
