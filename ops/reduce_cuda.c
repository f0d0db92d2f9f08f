/* The CUDA alternatives of the reductions: one kernel, or two where few outputs are made
 * of much; max.bwd counts what equals the maximum first. */
#include <string.h>

#include "axes.h"
#include "cuda_call.h"
#include "reduce_kernels.h"

enum {
    WORKSPACE_ALIGNMENT = 256,
    ALONE = 65536,    /* elements up to which one kernel does it all */
    FEWEST_TURNS = 8, /* of a thread, before the work is split further */
    WARP_TURNS = 16   /* of a warp, before a block works on one output */
};

static bool is(const gx_call *call, const char *name)
{
    return strcmp(gx_op_name(call->op), name) == 0;
}

/* A power of two from `least` to `most` that covers n. */
static int cover(int64_t n, int least, int most)
{
    int size = least;

    while (size < most && size < n)
        size *= 2;
    return size;
}

/* --- one kernel --- */

/* What is reduced and what is kept; operand `whole` of the grid is x, the other steps by
 * 0 along what is reduced. */
static void set_sizes(gx_reduce *reduce, const gx_grid *grid)
{
    reduce->n_reduced = reduce->n_out = 1;
    for (int i = 0; i < grid->n; i++) {
        const bool is_reduced = grid->step[1][i] == 0;
        gx_sizes *sizes = is_reduced ? &reduce->reduced : &reduce->kept;

        sizes->size[sizes->n] = grid->size[i];
        sizes->step[sizes->n++] = grid->step[0][i];
        *(is_reduced ? &reduce->n_reduced : &reduce->n_out) *= grid->size[i];
    }
    reduce->by_columns = grid->n > 0 && grid->step[1][0] != 0;
}

/* Vectors lie along the innermost dimension, and every line of it begins with one. What
 * is left at the end of a single line is done one by one. */
static void set_vectors(gx_reduce *reduce, const gx_grid *grid)
{
    const int64_t n = 16 / (int64_t)gx_dtype_bytes(reduce->from);
    const uintptr_t all =
        (uintptr_t)reduce->x | (reduce->by_columns ? (uintptr_t)reduce->y : 0);

    reduce->wide = grid->n > 0 && all % 16 == 0 &&
                   (grid->size[0] % n == 0 || (grid->n == 1 && !reduce->by_columns));
}

static void set_threads(gx_reduce *reduce, int n_sm)
{
    const int64_t n = reduce->wide ? 16 / (int64_t)gx_dtype_bytes(reduce->from) : 1;
    const int64_t wanted = 2 * (int64_t)n_sm; /* blocks that fill the card */
    int64_t items, turns;

    if (reduce->by_columns) {
        const int64_t vectors = gx_divide_up(reduce->kept.size[0], n);

        reduce->block_x = cover(vectors, 1, 32);
        reduce->block_y =
            cover(reduce->n_reduced, 1, GX_REDUCE_THREADS / reduce->block_x);
        items =
            reduce->n_out / reduce->kept.size[0] * gx_divide_up(vectors, reduce->block_x);
        turns = reduce->n_reduced / reduce->block_y;
    } else {
        const int64_t vectors = gx_divide_up(reduce->n_reduced, n);
        const bool by_block = vectors > 32 * WARP_TURNS;

        reduce->block_x = by_block ? cover(vectors / 4, 32, GX_REDUCE_THREADS) : 256;
        reduce->block_y = 1;
        reduce->team = by_block ? reduce->block_x : cover(vectors, 1, 32);
        items = gx_divide_up(reduce->n_out, reduce->block_x / reduce->team);
        turns = vectors / reduce->team;
    }
    reduce->splits =
        items > 0 && reduce->n_out * reduce->n_reduced > ALONE ? wanted / items : 1;
    if (reduce->splits > turns / FEWEST_TURNS)
        reduce->splits = turns / FEWEST_TURNS;
    if (reduce->splits < 1)
        reduce->splits = 1;
    /* A part begins with a vector. */
    reduce->chunk = gx_divide_up(gx_divide_up(reduce->n_reduced, reduce->splits), n) * n;
    if (reduce->chunk < 1)
        reduce->chunk = 1;
    reduce->splits =
        reduce->n_reduced > 0 ? gx_divide_up(reduce->n_reduced, reduce->chunk) : 1;
}

/* --- one or two kernels --- */

typedef struct plan {
    gx_reduce stage[2];
    int n;                  /* stages; 0: there are no outputs */
    size_t workspace_bytes; /* of the first stage's parts */
} plan;

/* `workspace`: where the parts go, when there are any. */
static plan plan_of(gx_reduce reduce, const gx_grid *grid, void *workspace, int n_sm)
{
    plan p = { .n = 0 };

    reduce.kept.n = reduce.reduced.n = 0;
    set_sizes(&reduce, grid);
    if (reduce.n_out == 0)
        return p;
    set_vectors(&reduce, grid);
    set_threads(&reduce, n_sm);
    p.stage[0] = reduce;
    p.n = 1;
    if (reduce.splits == 1)
        return p;

    const int64_t step[GX_GRID_OPERANDS] = { 1, 1 };
    const int64_t down[GX_GRID_OPERANDS] = { reduce.n_out, 0 };
    gx_grid parts = { .n = 0 };
    gx_reduce *last = &p.stage[1];

    p.workspace_bytes = (size_t)(reduce.n_out * reduce.splits) * sizeof(float);
    p.stage[0].out = workspace;
    p.stage[0].to = GX_F32;
    p.stage[0].divisor = 1.0f;
    *last = (gx_reduce){
        .kind = reduce.kind == GX_REDUCE_MAX ? GX_REDUCE_MAX : GX_REDUCE_SUM,
        .from = GX_F32,
        .to = reduce.to,
        .divisor = reduce.divisor,
        .x = workspace,
        .out = reduce.out,
    };
    gx_grid_add(&parts, reduce.n_out, step);
    gx_grid_add(&parts, reduce.splits, down);
    set_sizes(last, &parts);
    set_vectors(last, &parts);
    set_threads(last, n_sm);
    /* The parts are few: they are not split again. */
    last->splits = 1;
    last->chunk = last->n_reduced;
    p.n = 2;
    return p;
}

static gx_status load_plan(const plan *p, gx_error *err)
{
    for (int i = 0; i < p->n; i++)
        GX_TRY(gx_reduce_load(&p->stage[i], err));
    return GX_OK;
}

static gx_status launch_plan(const plan *p, gx_ctx *ctx, gx_error *err)
{
    for (int i = 0; i < p->n; i++)
        GX_TRY(gx_reduce_launch(&p->stage[i], ctx, err));
    return GX_OK;
}

/* Before there is a workspace: an address as aligned as one. */
static void *any_workspace(void)
{
    return (void *)(uintptr_t)WORKSPACE_ALIGNMENT;
}

/* --- sum, mean, max, sum_to --- */

static const char *refuses_reduce(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *call = &group->call[0];

    (void)ctx;
    return gx_is_float(call->arg[GX_REDUCE_X].dtype) &&
                   gx_is_float(call->arg[GX_REDUCE_OUT].dtype)
               ? NULL
               : "only f32, bf16 and f16";
}

static plan plan_reduce(const gx_group *group, void *workspace, int n_sm)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *x = &call->arg[GX_REDUCE_X], *out = &call->arg[GX_REDUCE_OUT];
    const bool to_shape = is(call, "sum_to");
    const unsigned mask =
        to_shape ? 0 : gx_axes_mask(&call->attr[GX_REDUCE_AXIS], x->rank);
    const gx_grid grid = to_shape ? gx_grid_broadcast(x->rank, x->dim, x, out)
                                  : gx_grid_reduce(x->rank, x->dim, mask);
    const gx_reduce reduce = {
        .kind = is(call, "max") ? GX_REDUCE_MAX : GX_REDUCE_SUM,
        .from = x->dtype,
        .to = out->dtype,
        .divisor = is(call, "mean") ? (float)gx_axes_count(mask, x->rank, x->dim) : 1.0f,
        .x = x->data,
        .out = out->data,
    };

    return plan_of(reduce, &grid, workspace, n_sm);
}

static gx_status prepare_reduce(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    const plan p = plan_reduce(group, any_workspace(), ctx->n_sm);

    prepared->workspace_bytes = p.workspace_bytes;
    prepared->n_algos = 1;
    prepared->n_launches = p.n;
    return load_plan(&p, err);
}

static gx_status launch_reduce(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    const plan p = plan_reduce(group, ctx->workspace, ctx->n_sm);

    (void)prepared;
    return launch_plan(&p, ctx, err);
}

/* --- sum.bwd, mean.bwd, broadcast_to --- */

static const char *refuses_spread(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *call = &group->call[0];

    (void)ctx;
    return gx_is_float(call->arg[1].dtype) &&
                   (!gx_has(call, 0) || gx_is_float(call->arg[0].dtype))
               ? NULL
               : "only f32, bf16 and f16";
}

/* Operand 0 of all three is what is repeated, operand 1 the result. */
static gx_spread describe_spread(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *from = &call->arg[0], *out = &call->arg[1];
    const bool to_shape = is(call, "broadcast_to");
    const unsigned mask =
        to_shape ? 0 : gx_axes_mask(&call->attr[GX_REDUCE_BWD_AXIS], out->rank);
    gx_grid grid = to_shape ? gx_grid_broadcast(out->rank, out->dim, from, out)
                            : gx_grid_reduce(out->rank, out->dim, mask);

    for (int i = 0; !to_shape && i < grid.n; i++)
        grid.step[0][i] = grid.step[1][i]; /* what is repeated is operand 0 of a spread */
    gx_spread spread = {
        .span = gx_span_of(&grid),
        .from = gx_has(call, 0) ? from->dtype : out->dtype,
        .to = out->dtype,
        .factor = is(call, "mean.bwd")
                      ? (float)(1.0 / (double)gx_axes_count(mask, out->rank, out->dim))
                      : 1.0f,
        .x = gx_data(call, 0),
        .out = out->data,
    };
    const uintptr_t all = (uintptr_t)spread.x | (uintptr_t)spread.out;

    spread.span.wide =
        all % 16 == 0 &&
        gx_span_allows(&spread.span, gx_spread_vector(spread.from, spread.to));
    return spread;
}

static gx_status prepare_spread(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    const gx_spread spread = describe_spread(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = gx_count(&group->call[0].arg[1]) > 0 ? 1 : 0;
    return prepared->n_launches > 0 ? gx_spread_load(&spread, err) : GX_OK;
}

static gx_status launch_spread(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    const gx_spread spread = describe_spread(group);

    return prepared->n_launches > 0 ? gx_spread_launch(&spread, ctx, err) : GX_OK;
}

/* --- max.bwd --- */

static const char *refuses_max_bwd(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_MAX_BWD_X].dtype) ? NULL
                                                               : "only f32, bf16 and f16";
}

/* The counts stand at the start of the workspace, the parts of counts behind them. */
static plan plan_max_bwd(const gx_group *group, void *workspace, int n_sm,
                         gx_max_bwd *backward, size_t *workspace_bytes)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *x = &call->arg[GX_MAX_BWD_X], *y = &call->arg[GX_MAX_BWD_Y];
    const gx_grid grid = gx_grid_reduce(
        x->rank, x->dim, gx_axes_mask(&call->attr[GX_MAX_BWD_AXIS], x->rank));
    const int64_t aligned = WORKSPACE_ALIGNMENT / (int64_t)sizeof(float);
    float *counts = workspace;
    float *parts = counts + gx_divide_up(gx_count(y), aligned) * aligned;
    const gx_reduce count = {
        .kind = GX_REDUCE_COUNT,
        .from = x->dtype,
        .to = GX_F32,
        .divisor = 1.0f,
        .x = x->data,
        .y = y->data,
        .out = counts,
    };
    const uintptr_t all = (uintptr_t)x->data | (uintptr_t)y->data |
                          (uintptr_t)gx_data(call, GX_MAX_BWD_DY) |
                          (uintptr_t)call->arg[GX_MAX_BWD_DX].data;

    *backward = (gx_max_bwd){
        .span = gx_span_of(&grid),
        .dtype = x->dtype,
        .dy = gx_data(call, GX_MAX_BWD_DY),
        .x = x->data,
        .y = y->data,
        .count = counts,
        .dx = call->arg[GX_MAX_BWD_DX].data,
    };
    backward->span.wide = all % 16 == 0 && gx_span_allows(&backward->span, 4);
    const plan p = plan_of(count, &grid, parts, n_sm);

    *workspace_bytes = (size_t)((char *)parts - (char *)counts) + p.workspace_bytes;
    return p;
}

static gx_status prepare_max_bwd(const gx_group *group, const gx_ctx *ctx,
                                 gx_prepared *prepared, gx_error *err)
{
    const bool has_work = gx_count(&group->call[0].arg[GX_MAX_BWD_X]) > 0;
    gx_max_bwd backward;
    size_t bytes;
    const plan p = plan_max_bwd(group, any_workspace(), ctx->n_sm, &backward, &bytes);

    prepared->workspace_bytes = has_work ? bytes : 0;
    prepared->n_algos = 1;
    prepared->n_launches = has_work ? p.n + 1 : 0;
    if (!has_work)
        return GX_OK;
    GX_TRY(load_plan(&p, err));
    return gx_max_bwd_load(&backward, err);
}

static gx_status launch_max_bwd(const gx_group *group, const gx_prepared *prepared,
                                gx_ctx *ctx, gx_error *err)
{
    gx_max_bwd backward;
    size_t bytes;

    if (prepared->n_launches == 0)
        return GX_OK;
    const plan p = plan_max_bwd(group, ctx->workspace, ctx->n_sm, &backward, &bytes);

    GX_TRY(launch_plan(&p, ctx, err));
    return gx_max_bwd_launch(&backward, ctx, err);
}

/* --- the table --- */

static const char *const sum[] = { "sum", NULL };
static const char *const sum_bwd[] = { "sum.bwd", NULL };
static const char *const mean[] = { "mean", NULL };
static const char *const mean_bwd[] = { "mean.bwd", NULL };
static const char *const max[] = { "max", NULL };
static const char *const max_bwd[] = { "max.bwd", NULL };
static const char *const sum_to[] = { "sum_to", NULL };
static const char *const broadcast_to[] = { "broadcast_to", NULL };

#define KERNEL(ops, hook)                                                        \
    .name = "kernel", .pattern = ops, .strict = true, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_reduce_alternatives[] = {
    { KERNEL(sum, reduce) },
    { KERNEL(sum_bwd, spread) },
    { KERNEL(mean, reduce) },
    { KERNEL(mean_bwd, spread) },
    { KERNEL(max, reduce) },
    { KERNEL(max_bwd, max_bwd) },
    { KERNEL(sum_to, reduce) },
    { KERNEL(broadcast_to, spread) },
    { 0 },
};
