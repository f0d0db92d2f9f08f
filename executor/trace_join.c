/* Finishing a trace: which call launched what, and which records cannot be true. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "trace_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static bool begins_with_one_of(const char *name, const char *const *heads)
{
    for (; *heads; heads++)
        if (strncmp(name, *heads, strlen(*heads)) == 0)
            return true;
    return false;
}

/* Names carry suffixes of versions and of streams (cudaGraphLaunch_v10000), so that their
 * heads decide. */
static gx_trace_call_kind kind_of_call(const char *name)
{
    static const char *const graphs[] = { "cudaGraphLaunch", "cuGraphLaunch",
                                          "hipGraphLaunch", NULL };
    static const char *const kernels[] = { "cudaLaunchKernel",
                                           "cudaLaunchCooperativeKernel",
                                           "cudaLaunch_",
                                           "cuLaunchKernel",
                                           "cuLaunchCooperativeKernel",
                                           "cuLaunchGrid",
                                           "hipLaunchKernel",
                                           "hipLaunchCooperativeKernel",
                                           "hipModuleLaunch",
                                           "hipExtLaunch",
                                           "hipExtModuleLaunch",
                                           "hipHccModuleLaunch",
                                           NULL };
    static const char *const copies[] = { "cudaMemcpy", "cuMemcpy", "hipMemcpy", NULL };
    static const char *const fills[] = { "cudaMemset", "cuMemset", "hipMemset", NULL };

    if (begins_with_one_of(name, graphs))
        return GX_TRACE_CALL_GRAPH;
    if (strcmp(name, "cudaLaunch") == 0 || strcmp(name, "cuLaunch") == 0 ||
        begins_with_one_of(name, kernels))
        return GX_TRACE_CALL_KERNEL;
    if (begins_with_one_of(name, copies))
        return GX_TRACE_CALL_COPY;
    return begins_with_one_of(name, fills) ? GX_TRACE_CALL_FILL : GX_TRACE_CALL_OTHER;
}

static int compare_calls(const void *left, const void *right)
{
    const gx_trace_call *const a = left;
    const gx_trace_call *const b = right;
    int order = COMPARE(a->process, b->process);

    if (order == 0)
        order = COMPARE(a->correlation, b->correlation);
    if (order == 0)
        order = COMPARE(a->start, b->start);
    if (order == 0)
        order = COMPARE(b->end, a->end); /* the outer one first */
    return order != 0 ? order : COMPARE(a->thread, b->thread);
}

void gx_trace_sort_calls(gx_trace *trace)
{
    if (trace->n_calls)
        qsort(trace->calls, trace->n_calls, sizeof *trace->calls, compare_calls);
    for (size_t i = 0; i < trace->n_calls; i++) {
        gx_trace_call *const call = &trace->calls[i];
        const gx_trace_call *const last = i ? call - 1 : NULL;

        call->kind = kind_of_call(gx_trace_text_at(trace, call->name));
        call->n_activities = 0;
        call->twin = last && call->correlation != GX_TRACE_NONE &&
                     call->process == last->process &&
                     call->correlation == last->correlation;
    }
}

int32_t gx_trace_find_call(const gx_trace *trace, int64_t process, int64_t correlation)
{
    size_t low = 0;
    size_t high = trace->n_calls;

    if (correlation == GX_TRACE_NONE)
        return GX_TRACE_NONE;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const gx_trace_call *const call = &trace->calls[middle];

        if (call->process < process ||
            (call->process == process && call->correlation < correlation))
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->n_calls && trace->calls[low].process == process &&
                   trace->calls[low].correlation == correlation
               ? (int32_t)low
               : GX_TRACE_NONE;
}

/* False where the record has no time, or ends before it starts, which is counted. */
static bool can_be_true(gx_trace *trace, int64_t start, int64_t end)
{
    const bool has_time = start != 0 || end != 0;

    trace->dropped.no_time += !has_time;
    trace->dropped.backwards += has_time && end < start;
    return has_time && end >= start;
}

/* Joins an activity with its call; false where it cannot be true. */
static bool join(gx_trace *trace, gx_trace_activity *activity)
{
    if (!can_be_true(trace, activity->start, activity->end))
        return false;
    activity->call = gx_trace_find_call(trace, activity->process, activity->correlation);
    if (activity->call == GX_TRACE_NONE)
        return true;
    if (activity->start < trace->calls[activity->call].start) {
        trace->dropped.before_call++;
        return false;
    }
    trace->calls[activity->call].n_activities++;
    return true;
}

static int compare_activities(const void *left, const void *right)
{
    const gx_trace_activity *const a = left;
    const gx_trace_activity *const b = right;
    int order = COMPARE(a->process, b->process);

    if (order == 0)
        order = COMPARE(a->device, b->device);
    if (order == 0)
        order = COMPARE(a->start, b->start);
    if (order == 0)
        order = COMPARE(a->end, b->end);
    if (order == 0)
        order = COMPARE(a->correlation, b->correlation);
    return order != 0 ? order : COMPARE(a->stream, b->stream);
}

static int compare_overheads(const void *left, const void *right)
{
    const gx_trace_overhead *const a = left;
    const gx_trace_overhead *const b = right;
    int order = COMPARE(a->start, b->start);

    if (order == 0)
        order = COMPARE(a->end, b->end);
    if (order == 0)
        order = COMPARE(a->thread, b->thread);
    return order != 0 ? order : COMPARE(a->name, b->name);
}

static void keep_true_overhead(gx_trace *trace)
{
    size_t kept = 0;

    for (size_t i = 0; i < trace->n_overheads; i++)
        if (can_be_true(trace, trace->overheads[i].start, trace->overheads[i].end))
            trace->overheads[kept++] = trace->overheads[i];
    trace->n_overheads = kept;
    if (kept)
        qsort(trace->overheads, kept, sizeof *trace->overheads, compare_overheads);
}

gx_status gx_trace_finish(gx_trace *trace, gx_error *err)
{
    size_t kept = 0;

    gx_error_clear(err);
    GX_TRY(gx_need(trace, "trace", err));
    if (trace->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the trace is finished already");
    trace->finished = true;
    gx_trace_sort_calls(trace);
    for (size_t i = 0; i < trace->n_activities; i++)
        if (join(trace, &trace->activities[i]))
            trace->activities[kept++] = trace->activities[i];
    trace->n_activities = kept;
    if (kept)
        qsort(trace->activities, kept, sizeof *trace->activities, compare_activities);
    keep_true_overhead(trace);
    return gx_trace_attribute(trace, err);
}
