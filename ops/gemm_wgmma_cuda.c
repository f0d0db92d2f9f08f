/* The alternatives that run our kernels for large products on sm_90. */
#include <limits.h>
#include <stdlib.h>

#include "gemm_cuda.h"
#include "head.h"
#include "move_kernels.h"
#include "ticket.h"
#include "wgmma.h"

enum {
    VECTOR = 16,     /* bytes that operands and rows are aligned to */
    PER_VECTOR = 8,  /* elements */
    FEWEST = 1 << 27 /* multiplications: of less a launch is the larger part */
};

/* Bytes of copies: a workspace that large is missed elsewhere. */
#define MOST_COPIED 0x1p30

/* --- when it applies --- */

static int64_t tiles_of(int64_t m, int64_t n)
{
    return gx_divide_up(m, GX_WGMMA_ROWS) * gx_divide_up(n, GX_WGMMA_COLUMNS);
}

static const char *refuses_little(double multiplications, int64_t tiles,
                                  const gx_ctx *ctx)
{
    return multiplications < FEWEST || tiles < ctx->n_sm / 2
               ? "small: direct and the library are for it"
               : NULL;
}

static const char *refuses_sizes(const gx_tile *tile, const gx_ctx *ctx)
{
    if (tile->m > INT_MAX || tile->n > INT_MAX || tile->k > INT_MAX)
        return "a size of 2^31 or more";
    if (tile->n % PER_VECTOR != 0 || tile->lda % PER_VECTOR != 0 ||
        tile->ldb % PER_VECTOR != 0)
        return "rows that are no multiple of 16 bytes";
    return refuses_little((double)tile->m * (double)tile->n * (double)tile->k,
                          tiles_of(tile->m, tile->n), ctx);
}

static const char *refuses_card(size_t shared_bytes, const gx_ctx *ctx)
{
    if (!gx_wgmma_is_built())
        return "built without sm_90a";
    if (ctx->cc != GX_WGMMA_CC)
        return "only sm_90 has the instruction";
    if (shared_bytes > ctx->shared_optin_bytes)
        return "a block has too little shared memory";
    return NULL;
}

static const char *refuses_tile(const gx_tile *tile, bool plain, const gx_ctx *ctx)
{
    const char *reason = refuses_card(gx_wgmma_shared_bytes(), ctx);

    if (reason != NULL)
        return reason;
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

/* Of the workspace; partial sums are behind. */
static size_t handed_bytes(const gx_tile *tile, const gx_ctx *ctx)
{
    return tile->tail == GX_TAIL_NONE ? 0 : gx_wgmma_handed_bytes(tile->math, ctx->n_sm);
}

void gx_gemm_wgmma_release(gx_prepared *prepared)
{
    free(prepared->state);
    prepared->state = NULL;
}

static gx_status find_encoder(gx_prepared *prepared, gx_error *err)
{
    wgmma_state *state = malloc(sizeof *state);

    if (state == NULL)
        return GX_FAIL(err, GX_ERR_MEMORY, "wgmma: out of memory");
    prepared->state = state;
    const gx_status st = gx_tensor_map_find(&state->encode, err);

    if (st != GX_OK)
        gx_gemm_wgmma_release(prepared);
    return st;
}

gx_status gx_gemm_wgmma_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    bool plain;
    const gx_tile tile = gx_gemm_tile_of(group, &plain);

    if (!is_aligned(tile.a) || !is_aligned(tile.b) || !is_aligned(tile.out) ||
        !is_aligned(tile.bias) || !is_aligned(tile.pre) || !is_aligned(tile.saved))
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = handed_bytes(&tile, ctx);
    prepared->n_launches = 1;
    prepared->n_algos = 1;
    if (has_sums(&tile)) {
        prepared->workspace_bytes +=
            (size_t)(gx_divide_up(tile.m, GX_WGMMA_ROWS) * tile.n) * sizeof(float);
        prepared->n_launches = 2;
    }
    GX_TRY(gx_wgmma_load(&tile, err));
    return find_encoder(prepared, err);
}

static gx_dtype dtype_of(gx_tile_math math)
{
    return math == GX_TILE_TF32 ? GX_F32 : math == GX_TILE_BF16 ? GX_BF16 : GX_F16;
}

/* Elements of 128 bytes. */
static int line_of(gx_tile_math math)
{
    return math == GX_TILE_TF32 ? GX_WGMMA_K_TF32 : GX_WGMMA_K;
}

static gx_status map_operands(const gx_tile *tile, const wgmma_state *state,
                              gx_wgmma_maps *maps, gx_error *err)
{
    const int line = line_of(tile->math);
    const gx_mapped a = {
        .data = tile->a,
        .dtype = dtype_of(tile->math),
        .rows = tile->trans_a ? tile->k : tile->m,
        .columns = tile->trans_a ? tile->m : tile->k,
        .ld = tile->lda,
        .box_rows = tile->trans_a ? line : GX_WGMMA_ROWS,
        .box_columns = line,
        .to_tf32 = true,
    };
    const gx_mapped b = {
        .data = tile->b,
        .dtype = dtype_of(tile->math),
        .rows = tile->trans_b ? tile->n : tile->k,
        .columns = tile->trans_b ? tile->k : tile->n,
        .ld = tile->ldb,
        .box_rows = tile->trans_b ? GX_WGMMA_BOX : line,
        .box_columns = line,
        .to_tf32 = true,
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
        tile.partial = (float *)((char *)ctx->workspace + handed_bytes(&tile, ctx));
    GX_TRY(map_operands(&tile, prepared->state, &maps, err));
    return gx_wgmma_launch(&tile, &maps, ctx->workspace, ctx, err);
}

/* --- with a loss of each element --- */

static gx_group product_of(const gx_group *group)
{
    return gx_group_part(group, 0, 1);
}

const char *gx_wgmma_head_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_head_refuses_calls(group);
    const gx_group product = product_of(group);

    if (reason != NULL)
        return reason;
    reason = refuses_group(&product, ctx);
    if (reason != NULL)
        return reason;
    return group->call[0].attr[GX_GEMM_TRANS_A].i
               ? "something follows a product whose first operand is transposed"
               : NULL;
}

/* All but the maps and what lies in the workspace. */
static gx_wgmma_head describe_head(const gx_group *group, gx_tile *operands)
{
    const gx_group product = product_of(group);
    const gx_head of = gx_head_of(group);
    bool plain;

    *operands = gx_gemm_tile_of(&product, &plain);
    return (gx_wgmma_head){
        .m = (int)operands->m,
        .n = (int)operands->n,
        .k = (int)operands->k,
        .b_turned = operands->trans_b,
        .math = operands->math,
        .bias = of.bias,
        .out = of.out,
        .kind = of.kind,
        .target = of.target,
        .target_dtype = of.target_dtype,
        .share = of.share,
        .loss = of.loss,
        .dx = of.dx,
    };
}

gx_status gx_wgmma_head_prepare(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    gx_tile operands;
    const gx_wgmma_head head = describe_head(group, &operands);

    if (!is_aligned(operands.a) || !is_aligned(operands.b) || !is_aligned(head.bias) ||
        !is_aligned(head.out) || !is_aligned(head.target) || !is_aligned(head.dx))
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = gx_wgmma_handed_bytes(head.math, ctx->n_sm);
    if (head.loss != NULL)
        prepared->workspace_bytes +=
            (size_t)gx_wgmma_head_blocks(&head, ctx->n_sm) * sizeof(double);
    prepared->n_launches = 1;
    prepared->n_algos = 1;
    GX_TRY(gx_wgmma_head_load(&head, err));
    return find_encoder(prepared, err);
}

gx_status gx_wgmma_head_launch_group(const gx_group *group, const gx_prepared *prepared,
                                     gx_ctx *ctx, gx_error *err)
{
    gx_tile operands;
    gx_wgmma_head head = describe_head(group, &operands);

    head.handed = ctx->workspace;
    if (head.loss != NULL) {
        head.partial = (double *)(void *)((char *)ctx->workspace +
                                          gx_wgmma_handed_bytes(head.math, ctx->n_sm));
        GX_TRY(gx_take_ticket(ctx, &head.ticket, err));
    }
    GX_TRY(map_operands(&operands, prepared->state, &head.maps, err));
    return gx_wgmma_head_launch(&head, ctx, err);
}

/* --- with the updates --- */

/* Of tf32 the tensor cores read the second operand along k alone, so that it is copied
 * ahead, transposed. */
static bool has_copies(const gx_weights_update *update)
{
    return update->weights.math == GX_TILE_TF32;
}

/* Elements from one row of a copy, which is along k, to the next. */
static int64_t pitch_of(const gx_weights_layer *layer)
{
    return gx_round_up(layer->k, PER_VECTOR);
}

static size_t copy_bytes(const gx_weights_layer *layer)
{
    return (size_t)(layer->n * pitch_of(layer)) * sizeof(float);
}

static int last_of(const gx_weights_update *update, int first)
{
    const int n = update->weights.n_layers, end = first + GX_WGMMA_LAYERS;

    return n < end ? n : end;
}

/* Of the layers of a launch together, and of the launch that has most: the next has its
 * copies in the same place. */
static size_t copied_bytes(const gx_weights_update *update)
{
    size_t most = 0;

    if (!has_copies(update))
        return 0;
    for (int first = 0; first < update->weights.n_layers; first += GX_WGMMA_LAYERS) {
        size_t sum = 0;

        for (int i = first; i < last_of(update, first); i++)
            sum += copy_bytes(&update->weights.layer[i]);
        most = sum > most ? sum : most;
    }
    return most;
}

const char *gx_gemm_wgmma_update_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const char *reason = gx_gemm_refuses_updates(group);
    double multiplications = 0;
    int64_t tiles = 0;
    bool plain;

    if (reason != NULL)
        return reason;
    const gx_weights_update update = gx_gemm_updates_of(group, &plain);

    reason = refuses_card(gx_wgmma_update_shared_bytes(), ctx);
    if (reason != NULL)
        return reason;
    if (update.weights.math == GX_TILE_F32)
        return "only tf32, bf16 and f16";
    if (!plain)
        return "a product is not a plain one, or of size zero";
    for (int i = 0; i < update.weights.n_layers; i++) {
        const gx_weights_layer *layer = &update.weights.layer[i];

        if (layer->m % PER_VECTOR != 0 || layer->n % PER_VECTOR != 0)
            return "sizes that 8 does not divide";
        multiplications += (double)layer->m * layer->n * layer->k;
        tiles += tiles_of(layer->m, layer->n);
    }
    if ((double)copied_bytes(&update) > MOST_COPIED)
        return "the copies would have more than 1 GiB";
    return refuses_little(multiplications, tiles, ctx);
}

static bool are_aligned(const gx_weights_layer *layer, const gx_updated *weight)
{
    return is_aligned(layer->a) && is_aligned(layer->b) && is_aligned(layer->out) &&
           is_aligned(weight->param) && is_aligned(weight->m) && is_aligned(weight->v);
}

/* Of the second operand, to `to`. */
static gx_turn turn_of(const gx_weights_layer *layer, void *to)
{
    gx_turn turn = { .rows = layer->k,
                     .columns = layer->n,
                     .row_from = layer->ldb,
                     .column_to = pitch_of(layer),
                     .element_bytes = sizeof(float),
                     .to_tf32 = true,
                     .from = layer->b,
                     .to = to };

    gx_turn_finish(&turn);
    return turn;
}

gx_status gx_gemm_wgmma_update_prepare(const gx_group *group, const gx_ctx *ctx,
                                       gx_prepared *prepared, gx_error *err)
{
    bool plain;
    const gx_weights_update update = gx_gemm_updates_of(group, &plain);
    const int n = update.weights.n_layers;

    prepared->workspace_bytes =
        gx_wgmma_handed_bytes(update.weights.math, ctx->n_sm) + copied_bytes(&update);
    prepared->n_launches =
        (int)gx_divide_up(n, GX_WGMMA_LAYERS) + (has_copies(&update) ? n : 0);
    prepared->n_algos = 1;
    for (int i = 0; i < n; i++) {
        if (!are_aligned(&update.weights.layer[i], &update.weight[i]))
            return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                           "the operands are not aligned to %d bytes", VECTOR);
        if (has_copies(&update)) {
            const gx_turn turn =
                turn_of(&update.weights.layer[i], gx_planned_workspace());

            GX_TRY(gx_turn_load(&turn, err));
        }
    }
    GX_TRY(gx_wgmma_update_load(update.weights.math, err));
    return find_encoder(prepared, err);
}

static gx_status map_sums(const gx_weights_update *update, int i,
                          const wgmma_state *state, CUtensorMap *map, gx_error *err)
{
    const gx_weights_layer *of = &update->weights.layer[i];
    const bool of_a = update->weights.sums_of_a;
    const int line = line_of(update->weights.math);
    const gx_mapped summed = {
        .data = of_a ? of->a : of->b,
        .dtype = dtype_of(update->weights.math),
        .rows = of->k,
        .columns = of_a ? of->m : of->n,
        .ld = of_a ? of->lda : of->ldb,
        .box_rows = line,
        .box_columns = line,
    };

    return gx_tensor_map_encode(state->encode, &summed, map, err);
}

/* Layer i of the group, as the kernel gets it; `copy` of its second operand, or NULL. */
static gx_status describe_layer(const gx_weights_update *update, int i, const void *copy,
                                const wgmma_state *state, gx_wgmma_layer *layer,
                                gx_error *err)
{
    const gx_weights_layer *of = &update->weights.layer[i];
    const gx_tile operands = {
        .m = of->m,
        .n = of->n,
        .k = of->k,
        .a = of->a,
        .b = copy != NULL ? copy : of->b,
        .lda = of->lda,
        .ldb = copy != NULL ? pitch_of(of) : of->ldb,
        .trans_a = true,
        .trans_b = copy != NULL,
        .math = update->weights.math,
    };

    *layer = (gx_wgmma_layer){
        .m = of->m,
        .n = of->n,
        .k = of->k,
        .n_bias = update->weights.sums_of_a ? of->m : of->n,
        .out = of->out,
        .dbias = of->dbias,
        .weight = update->weight[i],
        .bias = update->bias[i],
    };
    GX_TRY(map_operands(&operands, state, &layer->maps, err));
    return map_sums(update, i, state, &layer->sums, err);
}

/* Those from `first` on, as many as a launch has room for. */
static gx_status launch_some(const gx_weights_update *update, int first,
                             const wgmma_state *state, gx_ctx *ctx, gx_error *err)
{
    gx_wgmma_update some = { .math = update->weights.math,
                             .settings = update->settings,
                             .step = update->step,
                             .gradients = ctx->workspace };
    char *copy =
        (char *)ctx->workspace + gx_wgmma_handed_bytes(update->weights.math, ctx->n_sm);

    for (int i = first; i < last_of(update, first); i++) {
        const gx_weights_layer *layer = &update->weights.layer[i];

        if (has_copies(update)) {
            const gx_turn turn = turn_of(layer, copy);

            GX_TRY(gx_turn_launch(&turn, ctx, err));
        }
        GX_TRY(describe_layer(update, i, has_copies(update) ? copy : NULL, state,
                              &some.layer[some.n_layers++], err));
        copy += copy_bytes(layer);
    }
    return gx_wgmma_update_launch(&some, ctx, err);
}

gx_status gx_gemm_wgmma_update_launch(const gx_group *group, const gx_prepared *prepared,
                                      gx_ctx *ctx, gx_error *err)
{
    bool plain;
    const gx_weights_update update = gx_gemm_updates_of(group, &plain);

    for (int first = 0; first < update.weights.n_layers; first += GX_WGMMA_LAYERS)
        GX_TRY(launch_some(&update, first, prepared->state, ctx, err));
    return GX_OK;
}
