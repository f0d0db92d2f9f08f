/* The CUDA alternatives of transpose and reshape. */
#include "cuda_call.h"
#include "move_kernels.h"

/* --- strided copies --- */

static gx_move describe(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    gx_move move;

    if (call->op->view)
        gx_move_reshape(call, &move);
    else
        gx_move_transpose(call, &move);
    return move;
}

static gx_status prepare_move(const gx_group *group, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    const gx_move move = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = move.n_parts > 0 ? 1 : 0;
    return move.n_parts > 0 ? gx_move_load(&move, err) : GX_OK;
}

static gx_status launch_move(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    const gx_move move = describe(group);

    (void)prepared;
    return move.n_parts > 0 ? gx_move_launch(&move, ctx, err) : GX_OK;
}

/* --- tiles --- */

/* Below this a tile would be mostly empty, and what a strided copy reads beside an
 * element is wanted by the threads next to it. */
enum { LEAST_EDGE = 8 };

static const char *refuses_tile(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *call = &group->call[0];
    gx_move_axis axis[GX_MAX_RANK];
    const int n = gx_transpose_axes(call, axis);

    (void)ctx;
    if (gx_count(&call->arg[GX_TRANSPOSE_X]) == 0)
        return "there is nothing to transpose";
    if (n < 2 || axis[n - 1].from == 1)
        return "the last axis stays the last";
    if (axis[n - 1].size < LEAST_EDGE)
        return "the rows of the result are short";
    for (int i = 0; i < n; i++) {
        if (axis[i].from == 1 && axis[i].size < LEAST_EDGE)
            return "the rows of x are short";
    }
    return NULL;
}

/* The last axis of out and the last one of x make the tiles; the others count them. */
static gx_turn describe_tile(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    gx_move_axis axis[GX_MAX_RANK];
    const int n = gx_transpose_axes(call, axis);
    gx_turn tile = {
        .rows = axis[n - 1].size,
        .row_from = axis[n - 1].from,
        .element_bytes = (int32_t)gx_dtype_bytes(call->arg[GX_TRANSPOSE_X].dtype),
        .from = call->arg[GX_TRANSPOSE_X].data,
        .to = call->arg[GX_TRANSPOSE_OUT].data,
    };

    for (int i = 0; i < n - 1; i++) {
        if (axis[i].from == 1) {
            tile.columns = axis[i].size;
            tile.column_to = axis[i].to;
        } else {
            tile.axis[tile.n_axes++] = axis[i];
        }
    }
    gx_turn_finish(&tile);
    return tile;
}

static gx_status prepare_tile(const gx_group *group, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    const gx_turn tile = describe_tile(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    return gx_turn_load(&tile, err);
}

static gx_status launch_tile(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    const gx_turn tile = describe_tile(group);

    (void)prepared;
    return gx_turn_launch(&tile, ctx, err);
}

static const char *refuses_move(const gx_group *group, const gx_ctx *ctx)
{
    (void)group;
    (void)ctx;
    return NULL;
}

/* --- the table --- */

static const char *const transpose[] = { "transpose", NULL };
static const char *const reshape[] = { "reshape", NULL };

#define ALTERNATIVE(alternative, ops, hook)                         \
    .name = alternative, .pattern = ops, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_transpose_alternatives[] = {
    { ALTERNATIVE("tile", transpose, tile) },
    { ALTERNATIVE("kernel", transpose, move), .strict = true },
    { ALTERNATIVE("kernel", reshape, move), .strict = true },
    { 0 },
};
