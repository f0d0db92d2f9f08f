/* The alternatives of gemm that run our kernel for large products on sm_90. */
#include <limits.h>
#include <stdlib.h>

#include "gemm_cuda.h"
#include "wgmma.h"

enum {
    VECTOR = 16,     /* bytes that operands and rows are aligned to */
    PER_VECTOR = 8,  /* elements */
    FEWEST = 1 << 27 /* multiplications: of less a launch is the larger part */
};

/* --- when it applies --- */

static const char *refuses_sizes(const gx_tile *tile, const gx_ctx *ctx)
{
    const int64_t tiles =
        gx_divide_up(tile->m, GX_WGMMA_ROWS) * gx_divide_up(tile->n, GX_WGMMA_COLUMNS);

    if (tile->m > INT_MAX || tile->n > INT_MAX || tile->k > INT_MAX)
        return "a size of 2^31 or more";
    if (tile->n % PER_VECTOR != 0 || tile->lda % PER_VECTOR != 0 ||
        tile->ldb % PER_VECTOR != 0)
        return "rows that are no multiple of 16 bytes";
    if ((double)tile->m * (double)tile->n * (double)tile->k < FEWEST ||
        tiles < ctx->n_sm / 2)
        return "small: direct and the library are for it";
    return NULL;
}

static const char *refuses_tile(const gx_tile *tile, bool plain, const gx_ctx *ctx)
{
    if (!gx_wgmma_is_built())
        return "built without sm_90a";
    if (ctx->cc != GX_WGMMA_CC)
        return "only sm_90 has the instruction";
    if (tile->math != GX_TILE_BF16 && tile->math != GX_TILE_F16)
        return "only bf16 and f16";
    if (!plain)
        return "more than one plain product and what follows it";
    if (tile->trans_a && tile->trans_b)
        return "both operands are transposed";
    if (tile->trans_a && tile->tail != GX_TAIL_NONE)
        return "something follows a product whose first operand is transposed";
    if (tile->tail != GX_TAIL_NONE && !gx_wgmma_has_act(tile->act))
        return "an activation other than relu, gelu_tanh and silu";
    if (gx_wgmma_shared_bytes() > ctx->shared_optin_bytes)
        return "a block has too little shared memory";
    return refuses_sizes(tile, ctx);
}

static const char *refuses_group(const gx_group *group, const gx_ctx *ctx)
{
    bool plain;
    const gx_tile tile = gx_gemm_tile_of(group, &plain);

    return refuses_tile(&tile, plain, ctx);
}

const char *gx_gemm_wgmma_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    return reason != NULL ? reason : refuses_group(group, ctx);
}

const char *gx_gemm_wgmma_forward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses(group);

    if (reason == NULL)
        reason = gx_gemm_refuses_link(group, GX_EPILOGUE_X);
    return reason != NULL ? reason : refuses_group(group, ctx);
}

const char *gx_gemm_wgmma_backward_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses_backward(group);

    return reason != NULL ? reason : refuses_group(group, ctx);
}

/* --- hooks --- */

/* What prepare keeps: the driver's function. */
typedef struct wgmma_state {
    PFN_cuTensorMapEncodeTiled_v12000 encode;
} wgmma_state;

static bool is_aligned(const void *data)
{
    return gx_alignment_of(data, VECTOR) == VECTOR;
}

static bool has_sums(const gx_tile *tile)
{
    return tile->tail == GX_TAIL_BACKWARD && tile->dbias != NULL;
}

void gx_gemm_wgmma_release(gx_prepared *prepared)
{
    free(prepared->state);
    prepared->state = NULL;
}

gx_status gx_gemm_wgmma_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    bool plain;
    const gx_tile tile = gx_gemm_tile_of(group, &plain);

    (void)ctx;
    if (!is_aligned(tile.a) || !is_aligned(tile.b) || !is_aligned(tile.out) ||
        !is_aligned(tile.bias) || !is_aligned(tile.pre) || !is_aligned(tile.saved))
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    prepared->n_algos = 1;
    if (has_sums(&tile)) {
        prepared->workspace_bytes =
            (size_t)(gx_divide_up(tile.m, GX_WGMMA_PIECE) * tile.n) * sizeof(float);
        prepared->n_launches = 2;
    }
    GX_TRY(gx_wgmma_load(&tile, err));
    wgmma_state *state = malloc(sizeof *state);

    if (state == NULL)
        return GX_FAIL(err, GX_ERR_MEMORY, "wgmma: out of memory");
    prepared->state = state;
    const gx_status st = gx_tensor_map_find(&state->encode, err);

    if (st != GX_OK)
        gx_gemm_wgmma_release(prepared);
    return st;
}

static gx_status map_operands(const gx_tile *tile, const wgmma_state *state,
                              gx_wgmma_maps *maps, gx_error *err)
{
    const gx_dtype dtype = tile->math == GX_TILE_BF16 ? GX_BF16 : GX_F16;
    const gx_mapped a = {
        .data = tile->a,
        .dtype = dtype,
        .rows = tile->trans_a ? tile->k : tile->m,
        .columns = tile->trans_a ? tile->m : tile->k,
        .ld = tile->lda,
        .box_rows = tile->trans_a ? GX_WGMMA_K : GX_WGMMA_ROWS,
        .box_columns = GX_WGMMA_K,
    };
    const gx_mapped b = {
        .data = tile->b,
        .dtype = dtype,
        .rows = tile->trans_b ? tile->n : tile->k,
        .columns = tile->trans_b ? tile->k : tile->n,
        .ld = tile->ldb,
        .box_rows = GX_WGMMA_K,
        .box_columns = GX_WGMMA_K,
    };

    GX_TRY(gx_tensor_map_encode(state->encode, &a, &maps->a, err));
    return gx_tensor_map_encode(state->encode, &b, &maps->b, err);
}

gx_status gx_gemm_wgmma_launch(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_tile tile = gx_gemm_tile_of(group, &plain);
    gx_wgmma_maps maps;

    if (has_sums(&tile))
        tile.partial = ctx->workspace;
    GX_TRY(map_operands(&tile, prepared->state, &maps, err));
    return gx_wgmma_launch(&tile, &maps, ctx, err);
}
