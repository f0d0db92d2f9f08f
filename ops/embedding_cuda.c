/* The CUDA alternatives of embedding and its derivative. */
#include "cuda_call.h"
#include "embedding_kernels.h"

/* Every pointer and row allows four elements at once. */
static bool is_wide(uintptr_t all, gx_dtype dtype, int64_t columns)
{
    return all % (4 * gx_dtype_bytes(dtype)) == 0 && columns % 4 == 0;
}

/* --- forward --- */

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_is_float(group->call[0].arg[GX_EMBEDDING_TABLE].dtype)
               ? NULL
               : "only f32, bf16 and f16";
}

static gx_embedding describe(const gx_group *group)
{
    const gx_tensor *arg = group->call[0].arg;
    const gx_tensor *table = &arg[GX_EMBEDDING_TABLE];
    const uintptr_t all = (uintptr_t)table->data | (uintptr_t)arg[GX_EMBEDDING_OUT].data;

    return (gx_embedding){
        .n = gx_count(&arg[GX_EMBEDDING_INDEX]),
        .rows = table->dim[0],
        .columns = table->dim[1],
        .dtype = table->dtype,
        .wide = is_wide(all, table->dtype, table->dim[1]),
        .table = table->data,
        .index = arg[GX_EMBEDDING_INDEX].data,
        .out = arg[GX_EMBEDDING_OUT].data,
    };
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    const gx_embedding embedding = describe(group);

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = embedding.n > 0 && embedding.columns > 0 ? 1 : 0;
    return prepared->n_launches > 0 ? gx_embedding_load(&embedding, err) : GX_OK;
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_embedding embedding = describe(group);

    return prepared->n_launches > 0 ? gx_embedding_launch(&embedding, ctx, err) : GX_OK;
}

/* --- backward --- */

static const char *refuses_bwd(const gx_group *group, const gx_ctx *ctx)
{
    const gx_tensor *arg = group->call[0].arg;

    (void)ctx;
    if (!gx_is_float(arg[GX_EMBEDDING_BWD_DY].dtype))
        return "only f32, bf16 and f16";
    return gx_count(&arg[GX_EMBEDDING_BWD_INDEX]) > INT32_MAX
               ? "only up to 2^31 - 1 indices"
               : NULL;
}

static gx_embedding_bwd describe_bwd(const gx_group *group, int32_t *workspace)
{
    const gx_tensor *arg = group->call[0].arg;
    const gx_tensor *dtable = &arg[GX_EMBEDDING_BWD_DTABLE];
    const int64_t n = gx_count(&arg[GX_EMBEDDING_BWD_INDEX]);
    const uintptr_t all =
        (uintptr_t)dtable->data | (uintptr_t)arg[GX_EMBEDDING_BWD_DY].data;

    return (gx_embedding_bwd){
        .n = n,
        .rows = dtable->dim[0],
        .columns = dtable->dim[1],
        .dtype = dtable->dtype,
        .wide = is_wide(all, dtable->dtype, dtable->dim[1]),
        .dy = arg[GX_EMBEDDING_BWD_DY].data,
        .index = arg[GX_EMBEDDING_BWD_INDEX].data,
        .dtable = dtable->data,
        .sorted = workspace,
        .from = workspace ? workspace + n : NULL,
    };
}

/* Without indices the table's gradient is still written: zeros. */
static gx_status prepare_bwd(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    const gx_embedding_bwd embedding = describe_bwd(group, NULL);
    const bool writes = embedding.rows > 0 && embedding.columns > 0;

    (void)ctx;
    prepared->workspace_bytes =
        writes ? 2 * (size_t)embedding.n * sizeof *embedding.sorted : 0;
    prepared->n_algos = 1;
    prepared->n_launches = writes ? 1 + (embedding.n > 0) : 0;
    return writes ? gx_embedding_bwd_load(&embedding, err) : GX_OK;
}

static gx_status launch_bwd(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    const gx_embedding_bwd embedding = describe_bwd(group, ctx->workspace);

    return prepared->n_launches > 0 ? gx_embedding_bwd_launch(&embedding, ctx, err)
                                    : GX_OK;
}

static const char *const forward_pattern[] = { "embedding", NULL };
static const char *const backward_pattern[] = { "embedding.bwd", NULL };

const gx_alternative gx_embedding_alternatives[] = {
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
        .refuses = refuses_bwd,
        .prepare = prepare_bwd,
        .launch = launch_bwd,
    },
    { 0 },
};
