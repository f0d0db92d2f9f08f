/* The alternatives that make both gradients of a layer in one launch. */
#include <limits.h>

#include "builder.h"
#include "direct_pair.h"
#include "gemm_cuda.h"

enum {
    MAX_ROWS = 256,    /* of a batch: more take one warp too long */
    MAX_BLOCKS = 4096, /* more than these are no small products */
    VECTOR = 16        /* bytes that operands are aligned to */
};

/* --- the two parts of a group --- */

/* {[sums of the bias], weight, data, [way back]}: the calls that make the parameters'
 * gradients, and the others. */
static int weight_calls(const gx_group *group)
{
    return gx_is_back(&group->call[0]) ? 2 : 1;
}

static gx_group weight_part(const gx_group *group)
{
    return gx_group_part(group, 0, weight_calls(group));
}

static gx_group data_part(const gx_group *group)
{
    return gx_group_part(group, weight_calls(group),
                         group->n_calls - weight_calls(group));
}

/* The weight is stored [out, in], and dz the first operand of its gradient. */
static bool is_turned(const gx_call *data)
{
    return !data->attr[GX_GEMM_TRANS_B].i;
}

/* What the kernel gets but for the shape; *plain: the products are no more than that. */
static gx_pair describe(const gx_group *group, bool *plain)
{
    const gx_group weight = weight_part(group), data = data_part(group);
    const bool has_bias = gx_is_weight(&weight);
    const gx_group product = has_bias ? gx_weight_product(&weight) : weight;
    bool weight_is_plain;
    gx_pair pair = { .weight = gx_gemm_tile_of(&product, &weight_is_plain),
                     .data = gx_gemm_tile_of(&data, plain),
                     .steady_w = gx_is_steady(&data, 0, GX_GEMM_B) };

    *plain &= weight_is_plain;
    if (has_bias) {
        pair.weight.tail =
            is_turned(&data.call[0]) ? GX_TAIL_SUMS_OF_A : GX_TAIL_SUMS_OF_B;
        pair.weight.dbias = weight.call[0].arg[GX_EPILOGUE_BWD_DBIAS].data;
    }
    return pair;
}

/* --- when it applies --- */

static const char *refuses_parts(const gx_group *weight, const gx_group *data)
{
    const char *reason =
        gx_is_weight(weight) ? gx_gemm_refuses_weight(weight) : gx_gemm_refuses(weight);

    if (reason != NULL)
        return reason;
    if (!gx_is_backward(data))
        return gx_gemm_refuses(data);
    reason = gx_gemm_refuses_backward(data);
    if (reason == NULL && gx_bias_sums_of(data) != NULL)
        reason = "column sums follow the data gradient";
    return reason;
}

/* The gradient of the layer's parameters and that of its input, of one dz. */
static const char *refuses_operands(const gx_group *weight, const gx_group *data)
{
    const gx_call *to_data = &data->call[0];
    const gx_call *to_weight = &weight->call[weight->n_calls - 1];
    const void *dz = to_data->arg[GX_GEMM_A].data;

    if (!to_weight->attr[GX_GEMM_TRANS_A].i || to_weight->attr[GX_GEMM_TRANS_B].i ||
        to_data->attr[GX_GEMM_TRANS_A].i)
        return "not the gradients of a weight and of the rows that it was applied to";
    if (to_weight->arg[is_turned(to_data) ? GX_GEMM_A : GX_GEMM_B].data != dz)
        return "the gradients are not of one product";
    if (gx_is_weight(weight) && weight->call[0].arg[GX_EPILOGUE_BWD_DY].data != dz)
        return "the gradients are not of one product";
    return NULL;
}

/* Operand `arg` of one of the calls is `value`. */
static bool reads(const gx_group *group, const void *value)
{
    for (int i = 0; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];

        for (int arg = 0; arg < gx_n_args(call->op); arg++) {
            if (gx_arg_kind(call->op, arg) != GX_FIELD_OUT && gx_has(call, arg) &&
                call->arg[arg].data == value)
                return true;
        }
    }
    return false;
}

/* Nothing waits for what the first calls make; that which is elided is nowhere. */
static const char *refuses_outputs(const gx_group *weight, const gx_group *data)
{
    const int last = data->n_calls - 1;

    for (int i = 0; i < weight->n_calls; i++) {
        const gx_call *call = &weight->call[i];
        const int out =
            i + 1 < weight->n_calls ? (int)GX_EPILOGUE_BWD_DBIAS : (int)GX_GEMM_OUT;

        if (gx_is_elided(weight, i, out))
            return "a gradient that nothing reads";
        if (reads(data, call->arg[out].data))
            return "one gradient is made of the other";
    }
    if (last > 0 && gx_is_elided(data, last, GX_EPILOGUE_BWD_DX))
        return "a gradient that nothing reads";
    return NULL;
}

static const char *refuses_sizes(const gx_tile *tile)
{
    if (tile->math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    if (tile->m == 0 || tile->n == 0 || tile->k == 0)
        return "of size zero";
    if (tile->m > INT_MAX || tile->n > INT_MAX || tile->k > INT_MAX)
        return "a size of 2^31 or more";
    if (tile->lda != (tile->trans_a ? tile->m : tile->k) ||
        tile->ldb != (tile->trans_b ? tile->k : tile->n))
        return "rows are wider than what is used of them";
    return NULL;
}

/* Neighbours that a thread loads at once: of a line of 8 threads. */
static bool divides(int64_t size, int tile)
{
    return size % (tile / 8) == 0;
}

static bool fits(const gx_pair *pair, int shape, const gx_ctx *ctx)
{
    const gx_pair_shape *of = gx_pair_shape_at(shape);
    gx_pair shaped = *pair;

    shaped.shape = shape;
    if (!gx_pair_has(&shaped) || of->shared_bytes > ctx->shared_optin_bytes)
        return false;
    if (!divides(pair->weight.m, of->weight_rows) ||
        !divides(pair->weight.n, of->weight_columns) ||
        (!pair->data.trans_b && !divides(pair->data.n, of->columns)))
        return false;
    return gx_pair_data_blocks(&shaped) <= MAX_BLOCKS &&
           gx_pair_weight_blocks(&shaped) <= MAX_BLOCKS;
}

const char *gx_gemm_pair_refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_group weight = weight_part(group), data = data_part(group);
    const char *reason = refuses_parts(&weight, &data);
    bool plain = true;

    if (reason == NULL)
        reason = refuses_operands(&weight, &data);
    if (reason == NULL)
        reason = refuses_outputs(&weight, &data);
    if (reason != NULL)
        return reason;
    const gx_pair pair = describe(group, &plain);

    if (!plain)
        return "more than one plain product and what follows it";
    reason = refuses_sizes(&pair.weight);
    if (reason == NULL)
        reason = refuses_sizes(&pair.data);
    if (reason != NULL)
        return reason;
    if (pair.weight.k > MAX_ROWS)
        return "more rows than one warp adds up quickly";
    for (int shape = 0; shape < GX_N_PAIRS; shape++) {
        if (fits(&pair, shape, ctx))
            return NULL;
    }
    return "no tile shape fits: odd sizes, or many tiles";
}

/* --- hooks --- */

static bool is_aligned(const void *data)
{
    return gx_alignment_of(data, VECTOR) == VECTOR;
}

static gx_status choose_shape(gx_pair *pair, const gx_ctx *ctx, gx_prepared *prepared,
                              gx_error *err)
{
    bool fit[GX_N_PAIRS];

    for (int shape = 0; shape < GX_N_PAIRS; shape++)
        fit[shape] = fits(pair, shape, ctx);
    return gx_take_shape(fit, GX_N_PAIRS, prepared, &pair->shape, err);
}

gx_status gx_gemm_pair_prepare(const gx_group *group, const gx_ctx *ctx,
                               gx_prepared *prepared, gx_error *err)
{
    bool plain;
    gx_pair pair = describe(group, &plain);

    if (!is_aligned(pair.data.a) || !is_aligned(pair.data.b) ||
        !is_aligned(pair.weight.a) || !is_aligned(pair.weight.b) ||
        !is_aligned(pair.weight.out))
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    GX_TRY(choose_shape(&pair, ctx, prepared, err));
    return gx_pair_load(&pair, err);
}

gx_status gx_gemm_pair_launch(const gx_group *group, const gx_prepared *prepared,
                              gx_ctx *ctx, gx_error *err)
{
    bool plain;
    gx_pair pair = describe(group, &plain);

    pair.shape = prepared->algo[0];
    return gx_pair_launch(&pair, ctx, err);
}
