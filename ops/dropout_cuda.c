/* The CUDA alternative of dropout: one kernel. */
#include "cuda_call.h"
#include "dropout.h"
#include "dropout_kernels.h"

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_DROPOUT_OUT].dtype)
               ? NULL
               : "only f32, bf16 and f16";
}

static gx_dropout describe(const gx_group *group)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *x = &call->arg[GX_DROPOUT_X], *out = &call->arg[GX_DROPOUT_OUT];
    const double p = call->attr[GX_DROPOUT_P].r;
    const uintptr_t unit = GX_DROPOUT_WORDS * gx_dtype_bytes(out->dtype);

    return (gx_dropout){
        .n = gx_count(out),
        .dtype = out->dtype,
        .wide = ((uintptr_t)x->data | (uintptr_t)out->data) % unit == 0,
        .key = gx_dropout_key(call->seed, (uint64_t)call->attr[GX_DROPOUT_STREAM].i),
        .bar = gx_dropout_bar(p),
        .scale = (float)gx_dropout_scale(p),
        .step = call->arg[GX_DROPOUT_STEP].data,
        .x = x->data,
        .out = out->data,
    };
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_dropout dropout = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = dropout.n > 0 ? 1 : 0;
    return dropout.n > 0 ? gx_dropout_load(&dropout, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_dropout dropout = describe(group);

    return prepared->n_launches > 0 ? gx_dropout_launch(&dropout, ctx, err) : GX_OK;
}

static const char *const pattern[] = { "dropout", NULL };

const gx_alternative gx_dropout_alternatives[] = {
    {
        .name = "kernel",
        .pattern = pattern,
        .strict = true,
        .refuses = refuses,
        .prepare = prepare,
        .launch = launch,
    },
    { 0 },
};
