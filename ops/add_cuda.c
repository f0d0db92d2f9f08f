/* The CUDA alternative of add: one kernel. */
#include "add_kernels.h"
#include "cuda_call.h"

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_ADD_OUT].dtype) ? NULL : "only f32 and bf16";
}

static gx_add describe(const gx_group *group)
{
    const gx_tensor *arg = group->call[0].arg;
    const uintptr_t all = (uintptr_t)arg[GX_ADD_A].data | (uintptr_t)arg[GX_ADD_B].data |
                          (uintptr_t)arg[GX_ADD_OUT].data;

    return (gx_add){
        .n = gx_count(&arg[GX_ADD_OUT]),
        .dtype = arg[GX_ADD_OUT].dtype,
        .wide = all % 16 == 0,
        .a = arg[GX_ADD_A].data,
        .b = arg[GX_ADD_B].data,
        .out = arg[GX_ADD_OUT].data,
    };
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_add add = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = add.n > 0 ? 1 : 0;
    return add.n > 0 ? gx_add_load(&add, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_add add = describe(group);

    return prepared->n_launches > 0 ? gx_add_launch(&add, ctx, err) : GX_OK;
}

static const char *const pattern[] = { "add", NULL };

const gx_alternative gx_add_alternatives[] = {
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
