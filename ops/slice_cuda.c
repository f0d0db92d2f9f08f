/* The CUDA alternatives of slice, its derivative and concat: one strided copy each. */
#include <string.h>

#include "move_kernels.h"

static gx_move describe(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const char *op = gx_op_name(call->op);
    gx_move move;

    if (strcmp(op, "slice") == 0)
        gx_move_slice(call, &move);
    else if (strcmp(op, "concat") == 0)
        gx_move_concat(call, &move);
    else
        gx_move_slice_bwd(call, &move);
    return move;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)group;
    (void)ctx;
    return NULL;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_move move = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = move.n_parts > 0 ? 1 : 0;
    return move.n_parts > 0 ? gx_move_load(&move, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_move move = describe(group);

    (void)prepared;
    return move.n_parts > 0 ? gx_move_launch(&move, ctx, err) : GX_OK;
}

static const char *const slice[] = { "slice", NULL };
static const char *const slice_bwd[] = { "slice.bwd", NULL };
static const char *const concat[] = { "concat", NULL };

#define KERNEL(ops)                                                       \
    .name = "kernel", .pattern = ops, .strict = true, .refuses = refuses, \
    .prepare = prepare, .launch = launch

const gx_alternative gx_slice_alternatives[] = {
    { KERNEL(slice) },
    { KERNEL(slice_bwd) },
    { KERNEL(concat) },
    { 0 },
};
