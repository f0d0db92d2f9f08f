/* The alternative that makes the gradients of several layers' parameters in one launch:
 * of each the sums that the bias wants, and the product. */
#include <limits.h>

#include "gemm_cuda.h"
#include "weights.h"

enum {
    LAYER = 2,          /* calls of a layer */
    MOST_ROWS = 256,    /* of a batch: more take one warp too long */
    MOST_TILES = 65536, /* more than these are no small products */
    VECTOR = 16         /* bytes that operands are aligned to */
};

static gx_group layer_of(const gx_group *group, int i)
{
    return gx_group_part(group, LAYER * i, LAYER);
}

/* --- how far a run of layers goes: none reads what another makes --- */

static bool is_layer(const gx_group *layer)
{
    const gx_call *sums = &layer->call[0], *gemm = &layer->call[1];

    return gx_is_weight(layer) && gx_has(sums, GX_EPILOGUE_BWD_DBIAS) &&
           !gx_has(sums, GX_EPILOGUE_BWD_DX) && gemm->attr[GX_GEMM_TRANS_A].i &&
           !gemm->attr[GX_GEMM_TRANS_B].i && gemm->arg[GX_GEMM_OUT].rank == 2;
}

int gx_gemm_weights_takes(const gx_group *run)
{
    const int n = run->n_calls / LAYER;
    bool sums_of_a = false;
    int taken = 0;

    for (; taken < n; taken++) {
        const gx_group layer = layer_of(run, taken);

        if (!is_layer(&layer) || gx_gemm_reads_group(run, LAYER * taken, -1) ||
            gx_gemm_reads_group(run, LAYER * taken + 1, -1))
            break;
        if (taken > 0 && gx_sums_first_operand(&layer) != sums_of_a)
            break;
        sums_of_a = gx_sums_first_operand(&layer);
    }
    return taken;
}

/* --- what the kernel gets --- */

/* All but the shape. *plain: each is one plain product of rows without gaps, none of its
 * sizes 0 or more than fits. */
static gx_weights describe(const gx_group *group, bool *plain)
{
    gx_weights weights = { .n_layers = group->n_calls / LAYER };

    *plain = true;
    for (int i = 0; i < weights.n_layers; i++) {
        const gx_group layer = layer_of(group, i);
        const gx_group product = gx_weight_product(&layer);
        bool is_plain;
        const gx_tile tile = gx_gemm_tile_of(&product, &is_plain);

        *plain &= is_plain && tile.m > 0 && tile.n > 0 && tile.k > 0 &&
                  tile.m <= INT_MAX && tile.n <= INT_MAX && tile.k <= MOST_ROWS &&
                  tile.lda == tile.m && tile.ldb == tile.n;
        weights.math = tile.math;
        weights.sums_of_a = gx_sums_first_operand(&layer);
        weights.layer[i] = (gx_weights_layer){
            .a = tile.a,
            .b = tile.b,
            .out = tile.out,
            .dbias = layer.call[0].arg[GX_EPILOGUE_BWD_DBIAS].data,
            .m = (int)tile.m,
            .n = (int)tile.n,
            .k = (int)tile.k,
            .lda = (int)tile.lda,
            .ldb = (int)tile.ldb,
        };
    }
    return weights;
}

/* --- when it applies --- */

static bool fits(const gx_weights *weights, int shape)
{
    const int at_once = gx_weights_rows(shape) / 8;
    gx_weights shaped = *weights;

    shaped.shape = shape;
    for (int i = 0; i < weights->n_layers; i++) {
        const gx_weights_layer *layer = &weights->layer[i];

        if (layer->m % at_once != 0 || layer->n % (GX_WEIGHTS_COLUMNS / 8) != 0)
            return false;
    }
    return gx_weights_tiles(&shaped) <= MOST_TILES;
}

const char *gx_gemm_weights_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const int n = group->n_calls / LAYER;
    bool plain;

    (void)ctx;
    if (gx_gemm_weights_takes(group) != n)
        return "not the gradients of layers whose weights are stored alike";
    for (int i = 0; i < n; i++) {
        const gx_group layer = layer_of(group, i);
        const char *reason = gx_gemm_refuses_weight(&layer);

        if (reason != NULL)
            return reason;
    }
    const gx_weights weights = describe(group, &plain);

    if (!plain)
        return "a product is not a plain one, of size zero or of many rows";
    if (weights.math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    for (int shape = 0; shape < GX_N_WEIGHTS; shape++) {
        if (fits(&weights, shape))
            return NULL;
    }
    return "no tile shape fits: odd sizes, or many tiles";
}

/* --- hooks --- */

static bool is_aligned(const void *data)
{
    return gx_alignment_of(data, VECTOR) == VECTOR;
}

gx_status gx_gemm_weights_prepare(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err)
{
    bool plain, fit[GX_N_WEIGHTS];
    gx_weights weights = describe(group, &plain);

    (void)ctx;
    for (int i = 0; i < weights.n_layers; i++) {
        const gx_weights_layer *layer = &weights.layer[i];

        if (!is_aligned(layer->a) || !is_aligned(layer->b) || !is_aligned(layer->out))
            return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                           "the operands are not aligned to %d bytes", VECTOR);
    }
    for (int shape = 0; shape < GX_N_WEIGHTS; shape++)
        fit[shape] = fits(&weights, shape);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    GX_TRY(gx_take_shape(fit, GX_N_WEIGHTS, prepared, &weights.shape, err));
    return gx_weights_load(&weights, err);
}

gx_status gx_gemm_weights_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_weights weights = describe(group, &plain);

    weights.shape = prepared->algo[0];
    return gx_weights_launch(&weights, ctx, err);
}
