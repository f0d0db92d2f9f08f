/* The alternatives that make the gradients of several layers' parameters in one launch,
 * of each the sums that the bias wants, and the product: alone, and with adam's update of
 * those parameters. */
#include <limits.h>
#include <string.h>

#include "gemm_cuda.h"

enum {
    LAYER = 2,          /* calls of a layer */
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

/* One kernel has operands of one type, and multiplies them in one way. */
static bool is_alike(const gx_group *layer, const gx_group *first)
{
    const gx_product product = gx_product_of(&layer->call[1]);
    const gx_product other = gx_product_of(&first->call[1]);

    return product.dtype == other.dtype && product.precision == other.precision &&
           gx_sums_first_operand(layer) == gx_sums_first_operand(first);
}

int gx_gemm_weights_takes(const gx_group *run)
{
    const int n = run->n_calls / LAYER;
    const gx_group first = layer_of(run, 0);
    int taken = 0;

    for (; taken < n; taken++) {
        const gx_group layer = layer_of(run, taken);

        if (!is_layer(&layer) || gx_gemm_reads_group(run, LAYER * taken, -1) ||
            gx_gemm_reads_group(run, LAYER * taken + 1, -1))
            break;
        if (!is_alike(&layer, &first))
            break;
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
                  tile.m <= INT_MAX && tile.n <= INT_MAX && tile.k <= INT_MAX &&
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

static bool has_many_rows(const gx_weights *weights)
{
    for (int i = 0; i < weights->n_layers; i++) {
        if (weights->layer[i].k > GX_WEIGHTS_MOST_ROWS)
            return true;
    }
    return false;
}

static bool fits(const gx_weights *weights, int shape, const gx_ctx *ctx)
{
    gx_weights shaped = *weights;

    shaped.shape = shape;
    return gx_weights_has(&shaped) &&
           gx_weights_shared_bytes(&shaped) <= ctx->shared_optin_bytes &&
           gx_weights_tiles(&shaped) <= MOST_TILES;
}

/* The layers of the group, each as such kernels take it; what the products are like is
 * for the caller to see. */
static const char *refuses_layers(const gx_group *group)
{
    const int n = group->n_calls / LAYER;

    if (gx_gemm_weights_takes(group) != n)
        return "not the gradients of layers of one type whose weights are stored alike";
    for (int i = 0; i < n; i++) {
        const gx_group layer = layer_of(group, i);
        const char *reason = gx_gemm_refuses_weight(&layer);

        if (reason != NULL)
            return reason;
    }
    return NULL;
}

/* Of layers that hang together: what their products are like. */
static const char *refuses_products(const gx_group *layers, const gx_ctx *ctx)
{
    bool plain;
    const gx_weights weights = describe(layers, &plain);

    if (!plain || has_many_rows(&weights))
        return "a product is not a plain one, of size zero or of many rows";
    if (weights.math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    for (int shape = 0; shape < GX_N_WEIGHTS; shape++) {
        if (fits(&weights, shape, ctx))
            return NULL;
    }
    return "no tile shape fits: odd sizes, or many tiles";
}

const char *gx_gemm_weights_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = refuses_layers(group);

    return reason != NULL ? reason : refuses_products(group, ctx);
}

/* --- hooks --- */

static bool is_aligned(const void *data)
{
    return gx_alignment_of(data, VECTOR) == VECTOR;
}

static gx_status take_shape(gx_weights *weights, const gx_ctx *ctx, gx_prepared *prepared,
                            gx_error *err)
{
    bool fit[GX_N_WEIGHTS];

    for (int i = 0; i < weights->n_layers; i++) {
        const gx_weights_layer *layer = &weights->layer[i];

        if (!is_aligned(layer->a) || !is_aligned(layer->b) || !is_aligned(layer->out))
            return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                           "the operands are not aligned to %d bytes", VECTOR);
    }
    for (int shape = 0; shape < GX_N_WEIGHTS; shape++)
        fit[shape] = fits(weights, shape, ctx);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    return gx_take_shape(fit, GX_N_WEIGHTS, prepared, &weights->shape, err);
}

gx_status gx_gemm_weights_prepare(const gx_group *group, const gx_ctx *ctx,
                                  gx_prepared *prepared, gx_error *err)
{
    bool plain;
    gx_weights weights = describe(group, &plain);

    GX_TRY(take_shape(&weights, ctx, prepared, err));
    return gx_weights_load(&weights, ctx, err);
}

gx_status gx_gemm_weights_launch(const gx_group *group, const gx_prepared *prepared,
                                 gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_weights weights = describe(group, &plain);

    weights.shape = prepared->algo[0];
    return gx_weights_launch(&weights, ctx, err);
}

/* --- with the updates --- */

/* The layers at the head of such a group. */
static int n_layers_of(const gx_group *group)
{
    int n = 0;

    while (LAYER * (n + 1) <= group->n_calls && gx_is_back(&group->call[LAYER * n]))
        n++;
    return n;
}

static gx_group layers_of(const gx_group *group)
{
    return gx_group_part(group, 0, LAYER * n_layers_of(group));
}

/* Updates stand in the order of the gradients: of each layer the bias's, then the
 * weight's. What is elided has no address after the binding, so that the order must do.
 */
static const gx_call *update_of(const gx_group *group, int gradient)
{
    return &group->call[LAYER * n_layers_of(group) + gradient];
}

static int gradient_arg(int gradient)
{
    return gradient % LAYER == 0 ? (int)GX_EPILOGUE_BWD_DBIAS : (int)GX_GEMM_OUT;
}

static const gx_tensor *gradient_of(const gx_group *group, int gradient)
{
    return &group->call[gradient].arg[gradient_arg(gradient)];
}

/* Neither clipping nor a scale of the loss has to know all gradients first, and none is
 * added to for further steps. */
static const char *refuses_one_update(const gx_tensor *gradient, const gx_call *update)
{
    static const int tensors[] = { GX_ADAMW_PARAM, GX_ADAMW_M, GX_ADAMW_V };

    if (update->arg[GX_ADAMW_GRAD].data != gradient->data)
        return "an update takes a gradient from elsewhere, or in another order";
    if (gx_has(update, GX_ADAMW_SCALE) || update->attr[GX_ADAMW_ACCUMULATE].i != 1)
        return "gradients are clipped, scaled or accumulated first";
    if (gx_has(update, GX_ADAMW_MASTER))
        return "parameters have a master";
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const gx_tensor *tensor = &update->arg[tensors[i]];

        if (tensor->dtype != gradient->dtype)
            return "the tensors differ in type";
        if (gx_count(tensor) != gx_count(gradient))
            return "the tensors differ in size";
    }
    return NULL;
}

/* A product would read a tensor while another warp updates it. */
static bool reads_updated(const gx_group *group, const gx_call *update)
{
    const gx_group layers = layers_of(group);

    for (int i = 0; i < layers.n_calls; i++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            const void *data = gx_data(&layers.call[i], arg);

            if (data != NULL && (data == update->arg[GX_ADAMW_PARAM].data ||
                                 data == update->arg[GX_ADAMW_M].data ||
                                 data == update->arg[GX_ADAMW_V].data))
                return true;
        }
    }
    return false;
}

const char *gx_gemm_refuses_updates(const gx_group *group)
{
    const gx_group layers = layers_of(group);
    const int n = layers.n_calls;
    const char *reason = refuses_layers(&layers);
    gx_update_settings first, settings;

    if (reason != NULL)
        return reason;
    if (group->n_calls != 2 * n)
        return "not every update is of these layers' parameters";
    gx_update_settings_of(update_of(group, 0), &first);
    for (int i = 0; i < n; i++) {
        const gx_call *update = update_of(group, i);

        reason = refuses_one_update(gradient_of(group, i), update);
        if (reason != NULL)
            return reason;
        gx_update_settings_of(update, &settings);
        if (memcmp(&first, &settings, sizeof first) != 0 ||
            update->arg[GX_ADAMW_STEP].data !=
                update_of(group, 0)->arg[GX_ADAMW_STEP].data)
            return "the updates have settings or counters of their own";
        if (reads_updated(group, update))
            return "a product reads what is updated";
    }
    return NULL;
}

const char *gx_gemm_weights_update_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_group layers = layers_of(group);
    const char *reason = gx_gemm_refuses_updates(group);

    return reason != NULL ? reason : refuses_products(&layers, ctx);
}

static gx_updated updated_by(const gx_call *update)
{
    return (gx_updated){ .param = update->arg[GX_ADAMW_PARAM].data,
                         .m = update->arg[GX_ADAMW_M].data,
                         .v = update->arg[GX_ADAMW_V].data };
}

gx_weights_update gx_gemm_updates_of(const gx_group *group, bool *plain)
{
    const gx_group layers = layers_of(group);
    gx_weights_update update = { .weights = describe(&layers, plain),
                                 .step = update_of(group, 0)->arg[GX_ADAMW_STEP].data };

    gx_update_settings_of(update_of(group, 0), &update.settings);
    for (int i = 0; i < update.weights.n_layers; i++) {
        gx_weights_layer *layer = &update.weights.layer[i];

        if (gx_is_elided(group, LAYER * i, GX_EPILOGUE_BWD_DBIAS))
            layer->dbias = NULL;
        if (gx_is_elided(group, LAYER * i + 1, GX_GEMM_OUT))
            layer->out = NULL;
        update.bias[i] = updated_by(update_of(group, LAYER * i));
        update.weight[i] = updated_by(update_of(group, LAYER * i + 1));
    }
    return update;
}

/* What an update reads beside the gradient may be loaded ahead of the wait. */
static bool has_steady_updates(const gx_group *group)
{
    static const int tensors[] = { GX_ADAMW_PARAM, GX_ADAMW_M, GX_ADAMW_V, GX_ADAMW_STEP,
                                   GX_ADAMW_LR };
    const int n = layers_of(group).n_calls;

    for (int call = n; call < group->n_calls; call++) {
        for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
            if (!gx_is_steady(group, call, tensors[i]))
                return false;
        }
    }
    return true;
}

gx_status gx_gemm_weights_update_prepare(const gx_group *group, const gx_ctx *ctx,
                                         gx_prepared *prepared, gx_error *err)
{
    bool plain;
    gx_weights_update update = gx_gemm_updates_of(group, &plain);

    for (int i = 0; i < update.weights.n_layers; i++) {
        const gx_updated *weight = &update.weight[i];

        if (!is_aligned(weight->param) || !is_aligned(weight->m) ||
            !is_aligned(weight->v))
            return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                           "the parameters are not aligned to %d bytes", VECTOR);
    }
    GX_TRY(take_shape(&update.weights, ctx, prepared, err));
    return gx_weights_update_load(&update, ctx, err);
}

gx_status gx_gemm_weights_update_launch(const gx_group *group,
                                        const gx_prepared *prepared, gx_ctx *ctx,
                                        gx_error *err)
{
    bool plain;
    gx_weights_update update = gx_gemm_updates_of(group, &plain);

    update.weights.shape = prepared->algo[0];
    /* Behind a full edge that would only keep the operands waiting. */
    update.is_ahead =
        ctx->programmatic && ctx->programmatic_first && has_steady_updates(group);
    return gx_weights_update_launch(&update, ctx, err);
}
