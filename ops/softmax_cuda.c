/* The CUDA alternatives of softmax and its derivative: one kernel each. */
#include <string.h>

#include "axes.h"
#include "cuda_call.h"
#include "softmax_kernels.h"

static bool is_backward(const gx_call *call)
{
    return strcmp(gx_op_name(call->op), "softmax.bwd") == 0;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[0].dtype) ? NULL : "only f32, bf16 and f16";
}

static gx_softmax describe(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const bool backward = is_backward(call);
    const gx_tensor *x = &call->arg[backward ? GX_SOFTMAX_BWD_Y : GX_SOFTMAX_X];
    const gx_lines lines = gx_lines_of(x, &call->attr[GX_SOFTMAX_AXIS]);
    gx_softmax softmax = {
        .outer = lines.outer,
        .n = lines.n,
        .inner = lines.inner,
        .dtype = x->dtype,
        .x = x->data,
        .dy = backward ? call->arg[GX_SOFTMAX_BWD_DY].data : NULL,
        .out = call->arg[backward ? GX_SOFTMAX_BWD_DX : GX_SOFTMAX_OUT].data,
    };
    const uintptr_t all =
        (uintptr_t)softmax.x | (uintptr_t)softmax.dy | (uintptr_t)softmax.out;

    softmax.wide = lines.inner == 1 && all % 16 == 0 &&
                   lines.n % (16 / (int64_t)gx_dtype_bytes(x->dtype)) == 0;
    return softmax;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_softmax softmax = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = gx_count(&group->call[0].arg[0]) > 0 ? 1 : 0;
    return prepared->n_launches > 0 ? gx_softmax_load(&softmax, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_softmax softmax = describe(group);

    return prepared->n_launches > 0 ? gx_softmax_launch(&softmax, ctx, err) : GX_OK;
}

static const char *const forward_pattern[] = { "softmax", NULL };
static const char *const backward_pattern[] = { "softmax.bwd", NULL };

const gx_alternative gx_softmax_alternatives[] = {
    {
        .name = "kernel",
        .pattern = forward_pattern,
        .strict = true,
        .refuses = refuses,
        .prepare = prepare,
        .launch = launch,
    },
    {
        .name = "kernel",
        .pattern = backward_pattern,
        .strict = true,
        .refuses = refuses,
        .prepare = prepare,
        .launch = launch,
    },
    { 0 },
};
