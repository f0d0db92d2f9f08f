/* The alternatives that run several layers in one launch: each a product and what follows
 * it, or on the way back the data gradient and the activation of the layer before. */
#include "chain.h"
#include "gemm_cuda.h"

enum {
    LAYER = 2,          /* calls of a layer */
    MOST_COLUMNS = 512, /* of a layer: more are many weights for each of few blocks */
    MOST_ROWS = 512,    /* of a batch: more fill the card with any kernel */
    VECTOR = 16         /* bytes that operands are aligned to */
};

static gx_group layer_of(const gx_group *group, int i)
{
    return gx_group_part(group, LAYER * i, LAYER);
}

/* --- how far a run of layers hangs together --- */

/* The second call works on the product, and no more than that follows it. */
static bool is_layer(const gx_group *layer)
{
    const gx_call *gemm = &layer->call[0], *next = &layer->call[1];

    if (gemm->attr[GX_GEMM_TRANS_A].i || gemm->arg[GX_GEMM_OUT].rank != 2)
        return false;
    if (!gx_is_backward(layer))
        return gx_feeds(gemm, GX_GEMM_OUT, next, GX_EPILOGUE_X);
    return gx_feeds(gemm, GX_GEMM_OUT, next, GX_EPILOGUE_BWD_DY) &&
           gx_has(next, GX_EPILOGUE_BWD_DX);
}

static bool goes_on_from(const gx_group *layer, const gx_group *before)
{
    const int out =
        gx_is_backward(before) ? (int)GX_EPILOGUE_BWD_DX : (int)GX_EPILOGUE_OUT;

    return gx_feeds(&before->call[1], out, &layer->call[0], GX_GEMM_A) &&
           !layer->call[0].attr[GX_GEMM_TRANS_B].i ==
               !before->call[0].attr[GX_GEMM_TRANS_B].i;
}

/* The layer goes on from the one before by its first operand, and has nothing else from
 * the run: what another cluster makes is not there yet. */
static bool reads_no_more(const gx_group *run, int i)
{
    const gx_group layer = layer_of(run, i);
    const int in = gx_is_backward(&layer) ? (int)GX_EPILOGUE_BWD_DY : (int)GX_EPILOGUE_X;

    return !gx_gemm_reads_group(run, LAYER * i, GX_GEMM_A) &&
           !gx_gemm_reads_group(run, LAYER * i + 1, in);
}

/* What b must be for vectors of 4, which every shape of a tile loads at least. Of the
 * first layer b may be ragged where it is stored [n, k]. */
static bool is_narrow(const gx_group *layer, bool is_first)
{
    const gx_product product = gx_product_of(&layer->call[0]);
    const int64_t along = product.trans_b ? product.k : product.n;

    return product.m > 0 && product.n > 0 && product.k > 0 && product.m <= MOST_ROWS &&
           product.n <= MOST_COLUMNS &&
           ((along % 4 == 0 && product.ldb % 4 == 0) || (is_first && product.trans_b));
}

int gx_gemm_chain_takes(const gx_group *run)
{
    const int n = run->n_calls / LAYER;
    gx_group before = { 0 };
    int taken = 0;

    for (; taken < n; taken++) {
        const gx_group layer = layer_of(run, taken);

        if (!is_layer(&layer) || !is_narrow(&layer, taken == 0) ||
            (taken > 0 && !goes_on_from(&layer, &before)) || !reads_no_more(run, taken))
            break;
        before = layer;
    }
    return taken;
}

/* --- what the kernel gets --- */

/* All but the shape. *plain: each layer is one product and one tail, of 2^31 elements or
 * less to a row. */
static gx_chain describe(const gx_group *group, bool *plain)
{
    gx_chain chain = { .n_layers = group->n_calls / LAYER,
                       .steady_b = gx_is_steady(group, 0, GX_GEMM_B) };

    *plain = true;
    for (int i = 0; i < chain.n_layers; i++) {
        const gx_group layer = layer_of(group, i);
        bool is_plain;
        const gx_tile tile = gx_gemm_tile_of(&layer, &is_plain);
        const bool is_back = tile.tail == GX_TAIL_BACKWARD;
        const int out = is_back ? (int)GX_EPILOGUE_BWD_DX : (int)GX_EPILOGUE_OUT;

        *plain &= is_plain && tile.lda == tile.k && tile.dbias == NULL;
        if (i == 0) {
            chain.a = tile.a;
            chain.m = (int)tile.m;
            chain.math = tile.math;
            chain.backward = is_back;
            chain.trans_b = tile.trans_b;
            chain.ragged = tile.trans_b && (tile.k % 4 != 0 || tile.ldb % 4 != 0);
        }
        chain.layer[i] = (gx_chain_layer){
            .b = tile.b,
            .other = is_back ? tile.saved : tile.bias,
            .out = gx_is_elided(&layer, 1, out) ? NULL : tile.out,
            .pre = tile.pre,
            .n = (int)tile.n,
            .k = (int)tile.k,
            .ldb = (int)tile.ldb,
            .act = tile.act,
        };
    }
    return chain;
}

/* --- when it applies --- */

static bool fits(const gx_chain *chain, int shape, const gx_ctx *ctx)
{
    const int at_once = gx_chain_shape_at(shape)->at_once;
    gx_chain shaped = *chain;

    shaped.shape = shape;
    for (int i = 0; i < chain->n_layers && !chain->trans_b; i++) {
        if (chain->layer[i].n % at_once != 0 || chain->layer[i].ldb % at_once != 0)
            return false;
    }
    return gx_chain_cluster(&shaped) <= GX_MAX_LARGE_CLUSTER &&
           (!chain->ragged || chain->layer[0].k <= gx_chain_ragged_k(&shaped)) &&
           gx_chain_shared_bytes(&shaped) <= ctx->shared_optin_bytes;
}

static const char *refuses_layer(const gx_group *layer)
{
    const char *reason;

    if (gx_is_backward(layer)) {
        reason = gx_gemm_refuses_backward(layer);
    } else {
        reason = gx_gemm_refuses(layer);
        if (reason == NULL)
            reason = gx_gemm_refuses_link(layer, GX_EPILOGUE_X);
    }
    return reason;
}

const char *gx_gemm_chain_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const int n = group->n_calls / LAYER;
    bool plain;

    if (ctx->cc < GX_CLUSTER_CC)
        return "the device has no clusters of blocks";
    if (gx_gemm_chain_takes(group) != n)
        return "the layers do not follow one another, or are not narrow";
    for (int i = 0; i < n; i++) {
        const gx_group layer = layer_of(group, i);
        const char *reason = refuses_layer(&layer);

        if (reason != NULL)
            return reason;
    }
    const gx_chain chain = describe(group, &plain);

    if (!plain)
        return "a layer is more than one plain product and what follows it";
    if (chain.math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    for (int shape = 0; shape < GX_N_CHAINS; shape++) {
        if (fits(&chain, shape, ctx))
            return NULL;
    }
    return "no shape fits: odd sizes, or layers that need more shared memory";
}

/* --- hooks --- */

/* Of a large cluster it is the card that says whether it has room for one; there may be a
 * shape with wider tiles and fewer blocks. What failed last stands in `why`. */
static gx_status find_shapes(const gx_chain *chain, const gx_ctx *ctx, bool *fit,
                             gx_error *why)
{
    for (int shape = 0; shape < GX_N_CHAINS; shape++) {
        gx_chain shaped = *chain;

        shaped.shape = shape;
        fit[shape] = fits(chain, shape, ctx);
        if (!fit[shape] || gx_chain_cluster(&shaped) <= GX_MAX_CLUSTER)
            continue;
        gx_error own = { 0 };
        const gx_status st = gx_chain_load(&shaped, &own);

        if (st != GX_OK)
            *why = own;
        if (st != GX_OK && st != GX_ERR_UNSUPPORTED)
            return st;
        fit[shape] = st == GX_OK;
    }
    return GX_OK;
}

static bool is_any(const bool *fit)
{
    bool any = false;

    for (int shape = 0; shape < GX_N_CHAINS; shape++)
        any |= fit[shape];
    return any;
}

gx_status gx_gemm_chain_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    bool plain, fit[GX_N_CHAINS];
    gx_chain chain = describe(group, &plain);
    gx_error why = { 0 };
    gx_status st;
    bool is_aligned = gx_alignment_of(chain.a, VECTOR) == VECTOR;

    for (int i = 0; i < chain.n_layers; i++)
        is_aligned &= gx_alignment_of(chain.layer[i].b, VECTOR) == VECTOR;
    if (!is_aligned)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    st = find_shapes(&chain, ctx, fit, &why);
    if (st != GX_OK || (why.status != GX_OK && !is_any(fit)))
        return GX_FAIL_NATIVE(err, why.status, why.native, "%s", why.message);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    GX_TRY(gx_take_shape(fit, GX_N_CHAINS, prepared, &chain.shape, err));
    return gx_chain_load(&chain, err);
}

gx_status gx_gemm_chain_launch(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_chain chain = describe(group, &plain);

    chain.shape = prepared->algo[0];
    return gx_chain_launch(&chain, ctx, err);
}
