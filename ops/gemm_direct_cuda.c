/* The alternatives of gemm that run our kernel for small products. */
#include <limits.h>

#include "direct.h"
#include "gemm_cuda.h"

enum {
    MAX_GRID_Y = 65535,
    VECTOR = 16,     /* bytes that operands are aligned to */
    MAX_TILES = 4096 /* more than these are no small product */
};

/* --- when it applies --- */

/* Neighbours along rows or columns that a thread of this shape loads at once. */
static int rows_at_once(int shape)
{
    return gx_direct_rows(shape) / 8;
}

static int columns_at_once(int shape)
{
    return gx_direct_columns(shape) / 8;
}

static bool fits(const gx_tile *tile, int shape, const gx_ctx *ctx)
{
    gx_tile shaped = *tile;

    const int64_t row_tiles = gx_divide_up(tile->m, gx_direct_rows(shape));
    const int64_t column_tiles = gx_divide_up(tile->n, gx_direct_columns(shape));

    shaped.shape = shape;
    if (!gx_direct_has(&shaped) ||
        gx_direct_shared_bytes(shape) > ctx->shared_optin_bytes)
        return false;
    if (tile->trans_a &&
        (tile->m % rows_at_once(shape) != 0 || tile->lda % rows_at_once(shape) != 0))
        return false;
    if (!tile->trans_b && (tile->n % columns_at_once(shape) != 0 ||
                           tile->ldb % columns_at_once(shape) != 0))
        return false;
    if (tile->tail == GX_TAIL_BACKWARD && tile->dbias != NULL &&
        row_tiles > (ctx->cc >= GX_CLUSTER_CC ? GX_MAX_CLUSTER : 1))
        return false;
    return row_tiles <= MAX_GRID_Y && row_tiles * column_tiles <= MAX_TILES;
}

static const char *refuses_tile(const gx_tile *tile, bool plain, const gx_ctx *ctx)
{
    if (!plain)
        return "more than one plain product and what follows it";
    if (tile->math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    if (tile->trans_a && tile->trans_b)
        return "both operands are transposed";
    if (tile->m == 0 || tile->n == 0 || tile->k == 0)
        return "of size zero";
    if (tile->m > INT_MAX || tile->n > INT_MAX || tile->k > INT_MAX)
        return "a size of 2^31 or more";
    if (gx_tail_sums(tile->tail) && !tile->trans_a)
        return "sums beside a product whose first operand is not transposed";
    if (tile->trans_a && tile->tail != GX_TAIL_NONE && !gx_tail_sums(tile->tail))
        return "something follows a product whose first operand is transposed";
    for (int shape = 0; shape < GX_N_DIRECT; shape++) {
        if (fits(tile, shape, ctx))
            return NULL;
    }
    return "no tile shape fits: odd sizes, many tiles, or column sums over many rows";
}

static gx_tile describe(const gx_group *group, bool *plain)
{
    if (!gx_is_weight(group))
        return gx_gemm_tile_of(group, plain);
    const gx_group alone = gx_weight_product(group);
    gx_tile tile = gx_gemm_tile_of(&alone, plain);

    tile.tail = gx_sums_first_operand(group) ? GX_TAIL_SUMS_OF_A : GX_TAIL_SUMS_OF_B;
    tile.dbias = group->call[0].arg[GX_EPILOGUE_BWD_DBIAS].data;
    return tile;
}

static const char *refuses_group(const gx_group *group, const gx_ctx *ctx)
{
    bool plain;
    const gx_tile tile = describe(group, &plain);

    return refuses_tile(&tile, plain, ctx);
}

const char *gx_gemm_direct_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    return reason != NULL ? reason : refuses_group(group, ctx);
}

const char *gx_gemm_direct_forward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    if (reason == NULL)
        reason = gx_gemm_refuses_link(group, GX_EPILOGUE_X);
    return reason != NULL ? reason : refuses_group(group, ctx);
}

const char *gx_gemm_direct_backward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses_backward(group);

    return reason != NULL ? reason : refuses_group(group, ctx);
}

const char *gx_gemm_direct_weight_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses_weight(group);

    return reason != NULL ? reason : refuses_group(group, ctx);
}

/* --- hooks --- */

static gx_status choose_shape(gx_tile *tile, const gx_ctx *ctx, gx_prepared *prepared,
                              gx_error *err)
{
    bool fit[GX_N_DIRECT];

    for (int shape = 0; shape < GX_N_DIRECT; shape++)
        fit[shape] = fits(tile, shape, ctx);
    return gx_take_shape(fit, GX_N_DIRECT, prepared, &tile->shape, err);
}

gx_status gx_gemm_direct_prepare(const gx_group *group, const gx_ctx *ctx,
                                 gx_prepared *prepared, gx_error *err)
{
    bool plain;
    gx_tile tile = describe(group, &plain);

    if (gx_alignment_of(tile.a, VECTOR) < VECTOR ||
        gx_alignment_of(tile.b, VECTOR) < VECTOR)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    GX_TRY(choose_shape(&tile, ctx, prepared, err));
    return gx_direct_load(&tile, err);
}

gx_status gx_gemm_direct_launch(const gx_group *group, const gx_prepared *prepared,
                                gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_tile tile = describe(group, &plain);
    const int gemm = gx_is_weight(group) ? 1 : 0;

    tile.shape = prepared->algo[0];
    return gx_direct_launch(&tile, gx_is_steady(group, gemm, GX_GEMM_B), ctx, err);
}
