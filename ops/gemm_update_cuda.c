/* The alternatives that make a small weight gradient and update its parameter at once,
 * and the bias beside it. */
#include <limits.h>
#include <string.h>

#include "direct_update.h"
#include "gemm_cuda.h"

enum {
    MAX_GRID_Y = 65535,
    MAX_TILES = 16384, /* more than these are no small product */
    VECTOR = 16        /* bytes that operands are aligned to */
};

/* --- when it applies --- */

/* The operand of the second call's row that is the gradient. */
static int gradient_operand(const gx_call *update)
{
    int arg = 0;

    for (const gx_field *field = update->op->fields; field->name; field++) {
        if (strcmp(field->name, "grad") == 0)
            break;
        arg += field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
               field->kind == GX_FIELD_OUT;
    }
    return arg;
}

static const char *refuses_update(const gx_update_one *update, gx_dtype dtype)
{
    if (update->has_master)
        return "the parameter has a master";
    if (update->accumulate != 1)
        return "an update of several steps";
    if (update->dtype != dtype || update->grad_dtype != dtype)
        return "the tensors differ in type";
    if (update->state_dtype != dtype && update->state_dtype != GX_F32)
        return "the state has a type of its own";
    return NULL;
}

static const char *refuses_bias(const gx_group *group, const gx_update_one *update)
{
    const gx_call *gemm = &group->call[0], *call = &group->call[2];
    const gx_update_one bias = gx_update_one_of(call);

    if (call->op != group->call[1].op)
        return "the updates differ";
    if (gemm->arg[GX_GEMM_OUT].data != NULL &&
        gx_feeds(gemm, GX_GEMM_OUT, call, gradient_operand(call)))
        return "both updates have the same gradient";
    if (bias.param == update->param)
        return "both updates are of one parameter";
    if (bias.step != update->step || bias.scale != update->scale ||
        bias.state_dtype != update->state_dtype)
        return "the updates have counters or types of their own";
    return refuses_update(&bias, update->dtype);
}

static bool fits(const gx_direct_update *update, int shape, const gx_ctx *ctx)
{
    const int64_t rows = gx_divide_up(update->m, gx_direct_update_rows(shape));
    const int64_t columns = gx_divide_up(update->n, gx_direct_update_columns(shape));

    return update->m % (gx_direct_update_rows(shape) / 8) == 0 &&
           update->n % (gx_direct_update_columns(shape) / 8) == 0 && rows <= MAX_GRID_Y &&
           rows * columns <= MAX_TILES &&
           gx_direct_update_shared_bytes(shape) <= ctx->shared_optin_bytes;
}

static gx_direct_update describe(const gx_group *group)
{
    const gx_product product = gx_product_of(&group->call[0]);
    gx_direct_update update = {
        .m = (int)product.m,
        .n = (int)product.n,
        .k = (int)product.k,
        .a = product.a,
        .b = product.b,
        .out = gx_is_elided(group, 0, GX_GEMM_OUT) ? NULL
                                                   : group->call[0].arg[GX_GEMM_OUT].data,
        .update = gx_update_one_of(&group->call[1]),
        .steady = gx_update_is_steady(group, 1),
    };

    if (group->n_calls == 3) {
        update.bias = gx_update_one_of(&group->call[2]);
        update.steady = update.steady && gx_update_is_steady(group, 2);
    }
    return update;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *gemm = &group->call[0], *call = &group->call[1];
    const char *reason = gx_gemm_refuses(group);
    bool plain;

    if (reason != NULL)
        return reason;
    const gx_group product = { .n_calls = 1, .call = gemm, .elided = group->elided };
    const gx_tile tile = gx_gemm_tile_of(&product, &plain);

    if (!plain || !tile.trans_a || tile.trans_b)
        return "no plain product of a transposed first operand";
    if (tile.math == GX_TILE_F32)
        return "f32 without tf32 has no tensor cores";
    if (tile.m == 0 || tile.n == 0 || tile.k == 0)
        return "of size zero";
    if (tile.m > INT_MAX || tile.n > INT_MAX || tile.k > INT_MAX)
        return "a size of 2^31 or more";
    if (!gx_feeds(gemm, GX_GEMM_OUT, call, gradient_operand(call)))
        return "the update is not of the product";
    const gx_update_one update = gx_update_one_of(call);

    reason = refuses_update(&update, gemm->arg[GX_GEMM_OUT].dtype);
    if (reason == NULL && group->n_calls == 3)
        reason = refuses_bias(group, &update);
    if (reason != NULL)
        return reason;
    const gx_direct_update all = describe(group);

    for (int shape = 0; shape < GX_N_DIRECT_UPDATES; shape++) {
        if (fits(&all, shape, ctx))
            return NULL;
    }
    return "no tile shape fits: odd sizes, or many tiles";
}

/* --- hooks --- */

/* Candidates are the shapes that fit, in table order. */
static gx_status choose_shape(gx_direct_update *update, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    int n_fit = 0, chosen = -1;

    for (int shape = 0; shape < GX_N_DIRECT_UPDATES; shape++) {
        if (!fits(update, shape, ctx))
            continue;
        if (prepared->has_algo ? prepared->algo[0] == shape
                               : prepared->algo_choice == n_fit)
            chosen = shape;
        n_fit++;
    }
    if (chosen < 0)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "tile shape %d of %d does not fit",
                       prepared->has_algo ? prepared->algo[0] : prepared->algo_choice,
                       GX_N_DIRECT_UPDATES);
    prepared->n_algos = prepared->has_algo ? 1 : n_fit;
    memset(prepared->algo, 0, sizeof prepared->algo);
    prepared->algo[0] = (unsigned char)chosen;
    prepared->has_algo = true;
    update->shape = chosen;
    return GX_OK;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    gx_direct_update update = describe(group);

    if (gx_alignment_of(update.a, VECTOR) < VECTOR ||
        gx_alignment_of(update.b, VECTOR) < VECTOR)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "the operands are not aligned to %d bytes", VECTOR);
    prepared->workspace_bytes = 0;
    prepared->n_launches = 1;
    GX_TRY(choose_shape(&update, ctx, prepared, err));
    return gx_direct_update_load(&update, err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    gx_direct_update update = describe(group);

    update.shape = prepared->algo[0];
    return gx_direct_update_launch(&update, ctx, err);
}

/* --- the table --- */

#define UPDATE(op)                                                 \
    static const char *const op##_alone[] = { "gemm", #op, NULL }; \
    static const char *const op##_both[] = { "gemm", #op, #op, NULL }
UPDATE(sgd);
UPDATE(momentum);
UPDATE(nesterov);
UPDATE(adam);
UPDATE(adamw);

#define ALTERNATIVE(ops)                                                             \
    {                                                                                \
        .name = "direct_update", .pattern = ops, .elides = true, .refuses = refuses, \
        .prepare = prepare, .launch = launch                                         \
    }
#define BOTH(op) ALTERNATIVE(op##_both), ALTERNATIVE(op##_alone)

const gx_alternative gx_gemm_update_alternatives[] = {
    BOTH(sgd), BOTH(momentum), BOTH(nesterov), BOTH(adam), BOTH(adamw), { 0 },
};
