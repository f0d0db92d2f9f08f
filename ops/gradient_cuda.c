/* The CUDA alternatives of accumulate and grad_norm: one tensor, or all at once. */
#include "gradient_kernels.h"

/* --- accumulate --- */

static const char *refuses_accumulate(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *first = &group->call[0];

    (void)ctx;
    for (int i = 0; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];

        if (!gx_is_float(call->arg[GX_ACCUMULATE_GRAD].dtype))
            return "only f32, bf16 and f16";
        if (call->arg[GX_ACCUMULATE_GRAD].dtype != first->arg[GX_ACCUMULATE_GRAD].dtype)
            return "the tensors differ in type";
        if (!gx_feeds(first, GX_ACCUMULATE_STEP, call, GX_ACCUMULATE_STEP) ||
            call->attr[GX_ACCUMULATE_N].i != first->attr[GX_ACCUMULATE_N].i)
            return "the tensors are summed over steps of their own";
    }
    return NULL;
}

/* Fills the table that follows after `*at` calls; false: there is none. */
static bool next_accumulate(const gx_group *group, int *at, gx_accumulate_table *table)
{
    const gx_call *first = &group->call[0];

    table->dtype = first->arg[GX_ACCUMULATE_GRAD].dtype;
    table->n = (int32_t)first->attr[GX_ACCUMULATE_N].i;
    table->step = first->arg[GX_ACCUMULATE_STEP].data;
    table->wide = true;
    table->n_entries = 0;
    table->n_chunks = 0;
    for (; *at < group->n_calls && table->n_entries < (int)GX_ACCUMULATE_ENTRIES;
         (*at)++) {
        const gx_tensor *arg = group->call[*at].arg;
        const int64_t n = gx_count(&arg[GX_ACCUMULATE_GRAD]);

        if (n == 0)
            continue;
        table->entry[table->n_entries++] = (gx_accumulate_entry){
            .grad = arg[GX_ACCUMULATE_GRAD].data,
            .sum = arg[GX_ACCUMULATE_SUM].data,
            .n = n,
            .first_chunk = table->n_chunks,
        };
        table->n_chunks += gx_divide_up(n, GX_ACCUMULATE_CHUNK);
        table->wide = table->wide &&
                      (uintptr_t)arg[GX_ACCUMULATE_SUM].data % (4 * sizeof(float)) == 0 &&
                      (uintptr_t)arg[GX_ACCUMULATE_GRAD].data %
                              (4 * gx_dtype_bytes(table->dtype)) ==
                          0;
    }
    return table->n_entries > 0;
}

static gx_status prepare_accumulate(const gx_group *group, const gx_ctx *ctx,
                                    gx_prepared *prepared, gx_error *err)
{
    gx_accumulate_table table;
    int at = 0;

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 0;
    for (; next_accumulate(group, &at, &table); prepared->n_launches++)
        GX_TRY(gx_accumulate_load(&table, err));
    return GX_OK;
}

static gx_status launch_accumulate(const gx_group *group, const gx_prepared *prepared,
                                   gx_ctx *ctx, gx_error *err)
{
    gx_accumulate_table table;
    int at = 0;

    (void)prepared;
    while (next_accumulate(group, &at, &table))
        GX_TRY(gx_accumulate_launch(&table, ctx, err));
    return GX_OK;
}

/* --- grad_norm --- */

/* Each link reads the one before, and nobody else does. */
static const char *refuses_norm(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *call = group->call;

    (void)ctx;
    for (int i = 0; i < group->n_calls; i++) {
        if (!gx_is_float(call[i].arg[GX_GRAD_NORM_GRAD].dtype))
            return "only f32, bf16 and f16";
        if (call[i].arg[GX_GRAD_NORM_GRAD].dtype != call[0].arg[GX_GRAD_NORM_GRAD].dtype)
            return "the tensors differ in type";
        if (i > 0 &&
            !gx_feeds(&call[i - 1], GX_GRAD_NORM_OUT, &call[i], GX_GRAD_NORM_BEFORE))
            return "the norms are not of one chain";
        if (i + 1 < group->n_calls && (gx_has(&call[i], GX_GRAD_NORM_FACTOR) ||
                                       !gx_is_elided(group, i, GX_GRAD_NORM_OUT)))
            return "a norm within the chain is asked for";
    }
    return NULL;
}

/* The table that follows after `*at` calls, its sums behind the `*n_partial` of those
 * before; false: there is none. */
static bool next_norm(const gx_group *group, int *at, int64_t *n_partial,
                      double *workspace, gx_grad_norm_table *table)
{
    table->dtype = group->call[0].arg[GX_GRAD_NORM_GRAD].dtype;
    table->partial = workspace ? workspace + *n_partial : NULL;
    table->wide = true;
    table->n_entries = 0;
    table->n_chunks = 0;
    for (; *at < group->n_calls && table->n_entries < (int)GX_NORM_ENTRIES; (*at)++) {
        const gx_tensor *grad = &group->call[*at].arg[GX_GRAD_NORM_GRAD];
        const int64_t n = gx_count(grad);

        if (n == 0)
            continue;
        table->entry[table->n_entries++] = (gx_grad_norm_entry){
            .grad = grad->data, .n = n, .first_chunk = table->n_chunks
        };
        table->n_chunks += gx_divide_up(n, GX_NORM_CHUNK);
        table->wide = table->wide &&
                      (uintptr_t)grad->data % (4 * gx_dtype_bytes(table->dtype)) == 0;
    }
    *n_partial += table->n_chunks;
    return table->n_entries > 0;
}

static gx_status prepare_norm(const gx_group *group, const gx_ctx *ctx,
                              gx_prepared *prepared, gx_error *err)
{
    gx_grad_norm_table table;
    int64_t n_partial = 0;
    int at = 0;

    (void)ctx;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    for (; next_norm(group, &at, &n_partial, NULL, &table); prepared->n_launches++)
        GX_TRY(gx_grad_norm_load(&table, err));
    prepared->workspace_bytes = (size_t)n_partial * sizeof(double);
    return gx_grad_norm_end_load(err);
}

static gx_status launch_norm(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    const gx_call *last = &group->call[group->n_calls - 1];
    gx_grad_norm_end end = {
        .partial = ctx->workspace,
        .before = gx_data(&group->call[0], GX_GRAD_NORM_BEFORE),
        .factor = gx_data(last, GX_GRAD_NORM_FACTOR),
        .max_norm = last->attr[GX_GRAD_NORM_MAX].r,
    };
    gx_grad_norm_table table;
    int at = 0;

    (void)prepared;
    if (!gx_is_elided(group, group->n_calls - 1, GX_GRAD_NORM_OUT))
        end.out = last->arg[GX_GRAD_NORM_OUT].data;
    while (next_norm(group, &at, &end.n_partial, ctx->workspace, &table))
        GX_TRY(gx_grad_norm_launch(&table, ctx, err));
    return gx_grad_norm_end_launch(&end, ctx, err);
}

/* --- the table --- */

static const char *const accumulate[] = { "accumulate", NULL };
static const char *const grad_norm[] = { "grad_norm", NULL };

#define ALTERNATIVE(alternative, ops, hook)                         \
    .name = alternative, .pattern = ops, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_gradient_alternatives[] = {
    { ALTERNATIVE("kernel", accumulate, accumulate), .strict = true },
    { ALTERNATIVE("multi", accumulate, accumulate), .repeat = GX_REPEAT_LAST },
    { ALTERNATIVE("kernel", grad_norm, norm), .strict = true },
    { ALTERNATIVE("multi", grad_norm, norm), .repeat = GX_REPEAT_LAST, .elides = true },
    { 0 },
};
