/* The CUDA alternatives of gather, one input or all of a batch, and of step.end. */
#include "step_kernels.h"

/* --- gather --- */

static const char *refuses_gather(const gx_group *group, const gx_ctx *ctx)
{
    const gx_call *first = &group->call[0];

    (void)ctx;
    if (first->arg[GX_GATHER_INDEX].dim[0] == 0)
        return "there are no rows to gather";
    for (int i = 1; i < group->n_calls; i++) {
        const gx_call *call = &group->call[i];

        if (!gx_feeds(first, GX_GATHER_INDEX, call, GX_GATHER_INDEX) ||
            !gx_feeds(first, GX_GATHER_SAMPLE, call, GX_GATHER_SAMPLE) ||
            !gx_feeds(first, GX_GATHER_EPOCH, call, GX_GATHER_EPOCH) ||
            call->attr[GX_GATHER_SHUFFLE].i != first->attr[GX_GATHER_SHUFFLE].i ||
            call->seed != first->seed ||
            call->arg[GX_GATHER_OUT].dim[0] != first->arg[GX_GATHER_OUT].dim[0])
            return "the inputs take different rows";
    }
    return NULL;
}

static gx_gather_entry entry_of(const gx_call *call)
{
    const gx_tensor *data = &call->arg[GX_GATHER_DATA], *out = &call->arg[GX_GATHER_OUT];
    const int64_t element = (int64_t)gx_dtype_bytes(out->dtype);
    const int64_t bytes = gx_count(out) / out->dim[0] * element;
    const uintptr_t all = (uintptr_t)data->data | (uintptr_t)out->data | (uintptr_t)bytes;
    const int unit = all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 2;

    return (gx_gather_entry){
        .data = data->data,
        .out = out->data,
        .n_rows = data->dim[0],
        .units = bytes / unit,
        .unit_bytes = unit,
    };
}

/* The table that follows after `*at` calls; false: there is none. */
static bool next_gather(const gx_group *group, int *at, gx_gather_table *table)
{
    const gx_call *first = &group->call[0];

    table->n_entries = 0;
    for (; *at < group->n_calls && table->n_entries < (int)GX_GATHER_ENTRIES; (*at)++) {
        if (gx_count(&group->call[*at].arg[GX_GATHER_OUT]) > 0)
            table->entry[table->n_entries++] = entry_of(&group->call[*at]);
    }
    table->shuffle = first->attr[GX_GATHER_SHUFFLE].i != 0;
    table->seed = first->seed;
    table->batch = first->arg[GX_GATHER_OUT].dim[0];
    table->n_index = first->arg[GX_GATHER_INDEX].dim[0];
    table->index = first->arg[GX_GATHER_INDEX].data;
    table->sample = first->arg[GX_GATHER_SAMPLE].data;
    table->epoch = first->arg[GX_GATHER_EPOCH].data;
    return table->n_entries > 0;
}

static gx_status prepare_gather(const gx_group *group, const gx_ctx *ctx,
                                gx_prepared *prepared, gx_error *err)
{
    gx_gather_table table;
    int at = 0;

    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 0;
    while (next_gather(group, &at, &table))
        prepared->n_launches++;
    return prepared->n_launches > 0 ? gx_gather_load(err) : GX_OK;
}

static gx_status launch_gather(const gx_group *group, const gx_prepared *prepared,
                               gx_ctx *ctx, gx_error *err)
{
    gx_gather_table table;
    int at = 0;

    (void)prepared;
    while (next_gather(group, &at, &table))
        GX_TRY(gx_gather_launch(&table, ctx, err));
    return GX_OK;
}

/* --- step.end --- */

static const char *refuses_end(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return gx_count(&group->call[0].arg[GX_STEP_LOG]) == 0 ? "the log has no room" : NULL;
}

static gx_status prepare_end(const gx_group *group, const gx_ctx *ctx,
                             gx_prepared *prepared, gx_error *err)
{
    (void)group;
    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = 1;
    return gx_step_end_load(err);
}

static gx_status launch_end(const gx_group *group, const gx_prepared *prepared,
                            gx_ctx *ctx, gx_error *err)
{
    const gx_call *call = &group->call[0];
    const gx_tensor *log = &call->arg[GX_STEP_LOG];
    gx_step_end end = {
        .step = call->arg[GX_STEP_STEP].data,
        .sample = call->arg[GX_STEP_SAMPLE].data,
        .epoch = call->arg[GX_STEP_EPOCH].data,
        .log = log->data,
        .log_rows = log->dim[0],
        .log_columns = log->dim[1],
        .batch = call->attr[GX_STEP_BATCH].i,
        .total = call->attr[GX_STEP_TOTAL].i,
        .need = call->attr[GX_STEP_NEED].i,
    };

    (void)prepared;
    for (int i = 0; i < GX_MAX_LOGGED; i++)
        end.value[i] = gx_data(call, GX_STEP_V0 + i);
    return gx_step_end_launch(&end, ctx, err);
}

/* --- the table --- */

static const char *const gather[] = { "gather", NULL };
static const char *const end[] = { "step.end", NULL };

#define ALTERNATIVE(alternative, ops, hook)                         \
    .name = alternative, .pattern = ops, .refuses = refuses_##hook, \
    .prepare = prepare_##hook, .launch = launch_##hook

const gx_alternative gx_step_alternatives[] = {
    { ALTERNATIVE("kernel", gather, gather), .strict = true },
    { ALTERNATIVE("multi", gather, gather), .repeat = GX_REPEAT_LAST },
    { ALTERNATIVE("kernel", end, end), .strict = true },
    { 0 },
};
