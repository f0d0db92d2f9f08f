/* The CUDA alternatives of the schedule: the rate of one group, or of all. */
#include "schedule_kernels.h"

static bool same_schedule(const gx_call *a, const gx_call *b)
{
    for (int i = GX_SCHEDULE_KIND; i <= GX_SCHEDULE_ACCUMULATE; i++) {
        if (a->attr[i].i != b->attr[i].i || a->attr[i].r < b->attr[i].r ||
            a->attr[i].r > b->attr[i].r)
            return false;
    }
    return gx_feeds(a, GX_SCHEDULE_STEP, b, GX_SCHEDULE_STEP) &&
           gx_data(a, GX_SCHEDULE_SKIPPED) == gx_data(b, GX_SCHEDULE_SKIPPED);
}

static const char *refuses(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    for (int i = 1; i < group->n_calls; i++) {
        if (!same_schedule(&group->call[0], &group->call[i]))
            return "the rates follow schedules of their own";
    }
    return NULL;
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    (void)ctx;
    prepared->workspace_bytes = 0;
    prepared->n_algos = 1;
    prepared->n_launches = (int)gx_divide_up(group->n_calls, GX_SCHEDULE_ENTRIES);
    return gx_schedule_load(err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const gx_call *first = &group->call[0];
    gx_schedule_table table = {
        .kind = (int)first->attr[GX_SCHEDULE_KIND].i,
        .warmup = (int32_t)first->attr[GX_SCHEDULE_WARMUP].i,
        .steps = (int32_t)first->attr[GX_SCHEDULE_STEPS].i,
        .every = (int32_t)first->attr[GX_SCHEDULE_EVERY].i,
        .accumulate = (int32_t)first->attr[GX_SCHEDULE_ACCUMULATE].i,
        .end = (float)first->attr[GX_SCHEDULE_END].r,
        .factor = (float)first->attr[GX_SCHEDULE_FACTOR].r,
        .step = first->arg[GX_SCHEDULE_STEP].data,
        .skipped = gx_data(first, GX_SCHEDULE_SKIPPED),
    };

    (void)prepared;
    for (int at = 0; at < group->n_calls; at += (int)GX_SCHEDULE_ENTRIES) {
        table.n_entries = 0;
        for (int i = at; i < group->n_calls && table.n_entries < (int)GX_SCHEDULE_ENTRIES;
             i++)
            table.entry[table.n_entries++] = (gx_schedule_entry){
                .lr = group->call[i].arg[GX_SCHEDULE_LR].data,
                .out = group->call[i].arg[GX_SCHEDULE_OUT].data,
            };
        GX_TRY(gx_schedule_launch(&table, ctx, err));
    }
    return GX_OK;
}

/* --- the table --- */

static const char *const schedule[] = { "schedule", NULL };

#define ALTERNATIVE(alternative)                                                      \
    .name = alternative, .pattern = schedule, .refuses = refuses, .prepare = prepare, \
    .launch = launch

const gx_alternative gx_schedule_alternatives[] = {
    { ALTERNATIVE("kernel"), .strict = true },
    { ALTERNATIVE("multi"), .repeat = GX_REPEAT_LAST },
    { 0 },
};
