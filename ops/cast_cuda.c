/* The CUDA alternative of cast: one kernel. */
#include "cast_kernels.h"
#include "cuda_call.h"

static bool has_kernel(gx_dtype dtype)
{
    return gx_is_float(dtype) || dtype == GX_I32;
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *arg = group->call[0].arg;

    (void)ctx;
    return has_kernel(arg[GX_CAST_X].dtype) && has_kernel(arg[GX_CAST_OUT].dtype)
               ? NULL
               : "only f32, bf16, f16 and i32";
}

static bool is_wide(const gx_tensor *tensor)
{
    return (uintptr_t)tensor->data % (4 * gx_dtype_bytes(tensor->dtype)) == 0;
}

static gx_cast describe(const gx_group *group)
{
    const gx_tensor *x = &group->call[0].arg[GX_CAST_X];
    const gx_tensor *out = &group->call[0].arg[GX_CAST_OUT];

    return (gx_cast){
        .n = gx_count(out),
        .from_dtype = x->dtype,
        .to_dtype = out->dtype,
        .wide = is_wide(x) && is_wide(out),
        .from = x->data,
        .to = out->data,
    };
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_cast cast = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = cast.n > 0 ? 1 : 0;
    return cast.n > 0 ? gx_cast_load(&cast, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_cast cast = describe(group);

    return prepared->n_launches > 0 ? gx_cast_launch(&cast, ctx, err) : GX_OK;
}

static const char *const pattern[] = { "cast", NULL };

const gx_alternative gx_cast_alternatives[] = {
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
