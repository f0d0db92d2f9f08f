/* The CUDA alternatives of add, sub, mul and scale: one kernel each. */
#include <string.h>

#include "cuda_call.h"
#include "elementwise_kernels.h"

gx_span gx_span_of(const gx_grid *grid)
{
    gx_span span = {
        .rows = gx_grid_rows(grid),
        .columns = gx_grid_columns(grid),
        .n = grid->n > 1 ? grid->n - 1 : 0,
    };

    for (int k = 0; k < GX_GRID_OPERANDS; k++) {
        span.along[k] = gx_grid_step(grid, k) != 0;
        for (int i = 0; i < span.n; i++)
            span.step[k][i] = grid->step[k][i + 1];
    }
    for (int i = 0; i < span.n; i++)
        span.size[i] = grid->size[i + 1];
    return span;
}

bool gx_span_allows(const gx_span *span, int n)
{
    return span->rows == 1 || span->columns % n == 0;
}

/* What both prepare hooks leave. */
static void set_prepared(gx_prepared *prepared, bool launches)
{
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = launches ? 1 : 0;
}

/* --- two operands --- */

static const char *refuses_binary(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *arg = group->call[0].arg;

    (void)ctx;
    if (!gx_is_float(arg[GX_BINARY_OUT].dtype))
        return "only f32, bf16 and f16";
    return arg[GX_BINARY_A].dtype == arg[GX_BINARY_OUT].dtype &&
                   arg[GX_BINARY_B].dtype == arg[GX_BINARY_OUT].dtype
               ? NULL
               : "the operands differ in type";
}

static gx_binary describe_binary(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *a = &call->arg[GX_BINARY_A], *b = &call->arg[GX_BINARY_B];
    const gx_tensor *out = &call->arg[GX_BINARY_OUT];
    const char *name = gx_op_name(call->op);
    const gx_grid grid = gx_grid_broadcast(out->rank, out->dim, a, b);
    const uintptr_t all = (uintptr_t)a->data | (uintptr_t)b->data | (uintptr_t)out->data;
    gx_binary binary = {
        .span = gx_span_of(&grid),
        .op = strcmp(name, "add") == 0   ? GX_BINARY_ADD
              : strcmp(name, "sub") == 0 ? GX_BINARY_SUB
                                         : GX_BINARY_MUL,
        .dtype = out->dtype,
        .operand = { a->data, b->data },
        .out = out->data,
    };

    binary.span.wide =
        all % 16 == 0 &&
        gx_span_allows(&binary.span, 16 / (int)gx_dtype_bytes(binary.dtype));
    return binary;
}

static gx_status prepare_binary(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    const gx_binary binary = describe_binary(group);

    (void)ctx;
    set_prepared(prepared, gx_count(&group->call[0].arg[GX_BINARY_OUT]) > 0);
    return prepared->n_launches > 0 ? gx_binary_load(&binary, err) : GX_OK;
}

static gx_status launch_binary(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    const gx_binary binary = describe_binary(group);

    return prepared->n_launches > 0 ? gx_binary_launch(&binary, ctx, err) : GX_OK;
}

/* --- scale --- */

static const char *refuses_scale(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_SCALE_OUT].dtype) ? NULL
                                                               : "only f32, bf16 and f16";
}

static gx_spread describe_scale(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *x = &call->arg[GX_SCALE_X], *out = &call->arg[GX_SCALE_OUT];
    const uintptr_t all = (uintptr_t)x->data | (uintptr_t)out->data;

    return (gx_spread){
        .span = { .rows = 1,
                  .columns = gx_count(out),
                  .wide = all % 16 == 0,
                  .along = { true } },
        .from = x->dtype,
        .to = out->dtype,
        .factor = (float)call->attr[GX_SCALE_FACTOR].r,
        .x = x->data,
        .out = out->data,
    };
}

static gx_status prepare_scale(const gx_group *group, const gx_ctx *ctx,
                               gx_prepared *prepared, gx_error *err)
{
    const gx_spread spread = describe_scale(group);

    (void)ctx;
    set_prepared(prepared, spread.span.columns > 0);
    return prepared->n_launches > 0 ? gx_spread_load(&spread, err) : GX_OK;
}

static gx_status launch_scale(const gx_group *group, const gx_prepared *prepared,
                              gx_ctx *ctx, gx_error *err)
{
    const gx_spread spread = describe_scale(group);

    return prepared->n_launches > 0 ? gx_spread_launch(&spread, ctx, err) : GX_OK;
}

/* --- the table --- */

static const char *const add[] = { "add", NULL };
static const char *const sub[] = { "sub", NULL };
static const char *const mul[] = { "mul", NULL };
static const char *const scale[] = { "scale", NULL };

#define KERNEL(ops, hook)                                                        \
    .name = "kernel", .pattern = ops, .strict = true, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_elementwise_alternatives[] = {
    { KERNEL(add, binary) },
    { KERNEL(sub, binary) },
    { KERNEL(mul, binary) },
    { KERNEL(scale, scale) },
    { 0 },
};
