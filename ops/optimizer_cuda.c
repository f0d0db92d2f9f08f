/* The CUDA alternatives of the optimizers: each op by itself, or all tensors at once. */
#include <math.h>

#include "optimizer_kernels.h"

/* Calls that share a kernel differ in their tensors alone. */
static const char *refuses_group(const gx_group *group, int param, int first_shared,
                                 int last_shared, int n_attrs)
{
    const gx_call *first = &group->call[0];

    if (!gx_is_float(first->arg[param].dtype))
        return "only f32 and bf16";
    for (int i = 1; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];

        if (call->arg[param].dtype != first->arg[param].dtype)
            return "the tensors differ in type";
        for (int arg = first_shared; arg <= last_shared; arg++) {
            if (call->arg[arg].data != first->arg[arg].data)
                return "the tensors have counters or rates of their own";
        }
        for (int a = 0; a < n_attrs; a++) {
            if (call->attr[a].r < first->attr[a].r || call->attr[a].r > first->attr[a].r)
                return "the tensors differ in a setting";
        }
    }
    return NULL;
}

/* The calls that have elements, from `at` on, `most` at a time; returns their number. */
static int next_calls(const gx_group *group, int *at, int param, int most,
                      const gx_call **calls)
{
    int n = 0;

    for (; *at < group->n_calls && n < most; (*at)++) {
        if (gx_count(&group->call[*at].arg[param]) > 0)
            calls[n++] = &group->call[*at];
    }
    return n;
}

static bool is_wide(const gx_call *call, const int *args, int n_args)
{
    uintptr_t all = 0;

    for (int i = 0; i < n_args; i++)
        all |= (uintptr_t)call->arg[args[i]].data;
    return all % (4 * gx_dtype_bytes(call->arg[args[0]].dtype)) == 0;
}

static int64_t chunks_of(int64_t n)
{
    return gx_divide_up(n, GX_OPTIMIZER_CHUNK);
}

/* --- sgd --- */

static const char *refuses_sgd(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return refuses_group(group, GX_SGD_PARAM, GX_SGD_LR, GX_SGD_LR,
                         GX_SGD_WEIGHT_DECAY + 1);
}

/* Fills the table that follows after `*at` calls; false: there is none. */
static bool next_sgd(const gx_group *group, int *at, gx_sgd_table *table)
{
    static const int args[] = { GX_SGD_PARAM, GX_SGD_GRAD };
    const gx_call *calls[GX_SGD_ENTRIES];

    table->n_entries = next_calls(group, at, GX_SGD_PARAM, GX_SGD_ENTRIES, calls);
    if (table->n_entries == 0)
        return false;
    table->dtype = calls[0]->arg[GX_SGD_PARAM].dtype;
    table->lr = calls[0]->arg[GX_SGD_LR].data;
    table->weight_decay = (float)calls[0]->attr[GX_SGD_WEIGHT_DECAY].r;
    table->wide = true;
    table->n_chunks = 0;
    for (int i = 0; i < table->n_entries; i++) {
        const gx_tensor *arg = calls[i]->arg;
        const int64_t n = gx_count(&arg[GX_SGD_PARAM]);

        table->wide = table->wide && is_wide(calls[i], args, 2);
        table->entry[i] = (gx_sgd_entry){
            .param = arg[GX_SGD_PARAM].data,
            .grad = arg[GX_SGD_GRAD].data,
            .n = n,
            .first_chunk = table->n_chunks,
        };
        table->n_chunks += chunks_of(n);
    }
    return true;
}

static gx_status prepare_sgd(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    gx_sgd_table table;
    int at = 0;

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    for (prepared->n_launches = 0; next_sgd(group, &at, &table); prepared->n_launches++)
        GX_TRY(gx_sgd_load(&table, err));
    return GX_OK;
}

static gx_status launch_sgd(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    gx_sgd_table table;
    int at = 0;

    (void)prepared;
    while (next_sgd(group, &at, &table))
        GX_TRY(gx_sgd_launch(&table, ctx, err));
    return GX_OK;
}

/* --- adamw --- */

static const char *refuses_adamw(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return refuses_group(group, GX_ADAMW_PARAM, GX_ADAMW_STEP, GX_ADAMW_LR,
                         GX_ADAMW_WEIGHT_DECAY + 1);
}

static void set_adamw(const gx_call *call, gx_adamw_table *table)
{
    const double beta1 = call->attr[GX_ADAMW_BETA1].r;
    const double beta2 = call->attr[GX_ADAMW_BETA2].r;

    table->dtype = call->arg[GX_ADAMW_PARAM].dtype;
    table->lr = call->arg[GX_ADAMW_LR].data;
    table->step = call->arg[GX_ADAMW_STEP].data;
    table->log_beta1 = log(beta1);
    table->log_beta2 = log(beta2);
    table->weight_decay = call->attr[GX_ADAMW_WEIGHT_DECAY].r;
    table->take1 = (float)(1.0 - beta1);
    table->keep2 = (float)beta2;
    table->take2 = (float)(1.0 - beta2);
    table->eps = (float)call->attr[GX_ADAMW_EPS].r;
}

static bool next_adamw(const gx_group *group, int *at, gx_adamw_table *table)
{
    static const int args[] = { GX_ADAMW_PARAM, GX_ADAMW_GRAD, GX_ADAMW_M, GX_ADAMW_V };
    const gx_call *calls[GX_ADAMW_ENTRIES];

    table->n_entries = next_calls(group, at, GX_ADAMW_PARAM, GX_ADAMW_ENTRIES, calls);
    if (table->n_entries == 0)
        return false;
    set_adamw(calls[0], table);
    table->wide = true;
    table->n_chunks = 0;
    for (int i = 0; i < table->n_entries; i++) {
        const gx_tensor *arg = calls[i]->arg;
        const int64_t n = gx_count(&arg[GX_ADAMW_PARAM]);

        table->wide = table->wide && is_wide(calls[i], args, 4);
        table->entry[i] = (gx_adamw_entry){
            .param = arg[GX_ADAMW_PARAM].data,
            .grad = arg[GX_ADAMW_GRAD].data,
            .m = arg[GX_ADAMW_M].data,
            .v = arg[GX_ADAMW_V].data,
            .n = n,
            .first_chunk = table->n_chunks,
        };
        table->n_chunks += chunks_of(n);
    }
    return true;
}

static gx_status prepare_adamw(const gx_group *group, const gx_ctx *ctx,
                               gx_prepared *prepared, gx_error *err)
{
    gx_adamw_table table;
    int at = 0;

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    for (prepared->n_launches = 0; next_adamw(group, &at, &table); prepared->n_launches++)
        GX_TRY(gx_adamw_load(&table, err));
    return GX_OK;
}

static gx_status launch_adamw(const gx_group *group, const gx_prepared *prepared,
                              gx_ctx *ctx, gx_error *err)
{
    gx_adamw_table table;
    int at = 0;

    (void)prepared;
    while (next_adamw(group, &at, &table))
        GX_TRY(gx_adamw_launch(&table, ctx, err));
    return GX_OK;
}

/* --- the table --- */

static const char *const sgd[] = { "sgd", NULL };
static const char *const adamw[] = { "adamw", NULL };

#define ALTERNATIVE(alternative, ops, hook)                         \
    .name = alternative, .pattern = ops, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_optimizer_alternatives[] = {
    { ALTERNATIVE("kernel", sgd, sgd), .strict = true },
    { ALTERNATIVE("multi", sgd, sgd), .repeat = true },
    { ALTERNATIVE("kernel", adamw, adamw), .strict = true },
    { ALTERNATIVE("multi", adamw, adamw), .repeat = true },
    { 0 },
};
