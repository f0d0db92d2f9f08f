/* From what was recorded to a trace. */
#include "profile_join.h"

#include <stdlib.h>

#include "trace_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* --- windows --- */

/* The window that began last before `time`, or NULL. */
static const gx_window *window_before(const gx_window *windows, size_t n, int64_t time)
{
    size_t low = 0;
    size_t high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (windows[middle].start <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &windows[low - 1] : NULL;
}

static void keep_calls_in_windows(gx_recorded *recorded, const gx_window *windows,
                                  size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < recorded->n_calls; i++) {
        const gx_window *window = window_before(windows, n, recorded->call[i].call.start);

        if (window && recorded->call[i].call.start <= window->end)
            recorded->call[kept++] = recorded->call[i];
    }
    recorded->n_calls = kept;
}

/* --- calls of the driver inside those of the runtime --- */

/* The correlation of a call that was left out, and that of the call which it served. */
typedef struct alias {
    int64_t correlation, served;
} alias;

typedef struct aliases {
    alias *alias;
    size_t n;
} aliases;

static int compare_aliases(const void *left, const void *right)
{
    const alias *const a = left;
    const alias *const b = right;

    return COMPARE(a->correlation, b->correlation);
}

static int64_t served_by(const aliases *left_out, int64_t correlation)
{
    const alias wanted = { .correlation = correlation };
    const alias *found = left_out->n ? bsearch(&wanted, left_out->alias, left_out->n,
                                               sizeof wanted, compare_aliases)
                                     : NULL;

    return found ? found->served : correlation;
}

/* For each call of the driver, the call of the runtime that was under way then on its
 * thread: `query` gets one entry for each call of the driver. */
static gx_status find_servants(const gx_recorded *recorded, gx_trace_query *query,
                               size_t *n_queries, gx_error *err)
{
    gx_trace_span *spans = calloc(recorded->n_calls + 1, sizeof *spans);
    size_t n_spans = 0;

    *n_queries = 0;
    if (!spans)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
    for (size_t i = 0; i < recorded->n_calls; i++) {
        const gx_trace_call *call = &recorded->call[i].call;

        if (recorded->call[i].driver)
            query[(*n_queries)++] = (gx_trace_query){ .key = call->thread,
                                                      .time = call->start,
                                                      .index = (int32_t)i };
        else
            spans[n_spans++] = (gx_trace_span){ .key = call->thread,
                                                .start = call->start,
                                                .end = call->end,
                                                .range = (int32_t)i };
    }
    const gx_status st = gx_trace_cover(spans, n_spans, query, *n_queries, err);
    free(spans);
    return st;
}

/* Marks what is left out by a negative end, which no call has. */
static gx_status leave_out_servants(gx_recorded *recorded, aliases *left_out,
                                    gx_error *err)
{
    gx_trace_query *query = calloc(recorded->n_calls + 1, sizeof *query);
    size_t n_queries;
    size_t kept = 0;

    left_out->n = 0;
    left_out->alias = calloc(recorded->n_calls + 1, sizeof *left_out->alias);
    if (!query || !left_out->alias) {
        free(query);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
    }
    gx_status st = find_servants(recorded, query, &n_queries, err);
    for (size_t i = 0; st == GX_OK && i < n_queries; i++) {
        gx_trace_call *call = &recorded->call[query[i].index].call;

        if (query[i].range == GX_TRACE_NONE)
            continue;
        left_out->alias[left_out->n++] =
            (alias){ .correlation = call->correlation,
                     .served = recorded->call[query[i].range].call.correlation };
        call->end = INT64_MIN;
    }
    free(query);
    if (st != GX_OK)
        return st;
    if (left_out->n)
        qsort(left_out->alias, left_out->n, sizeof *left_out->alias, compare_aliases);
    for (size_t i = 0; i < recorded->n_calls; i++)
        if (recorded->call[i].call.end != INT64_MIN)
            recorded->call[kept++] = recorded->call[i];
    recorded->n_calls = kept;
    return GX_OK;
}

/* --- activities --- */

static bool is_kept(const gx_trace *trace, const gx_trace_activity *activity,
                    const gx_window *windows, size_t n)
{
    if (gx_trace_find_call(trace, activity->process, activity->correlation) !=
        GX_TRACE_NONE)
        return true;
    const gx_window *window = window_before(windows, n, activity->start);
    return window && activity->start <= window->waited;
}

static gx_status add_activities(gx_recorded *recorded, const aliases *left_out,
                                const gx_window *windows, size_t n_windows,
                                gx_trace *trace, gx_error *err)
{
    for (size_t i = 0; i < recorded->n_activities; i++) {
        gx_trace_activity *activity = &recorded->activity[i];

        activity->correlation = served_by(left_out, activity->correlation);
        if (is_kept(trace, activity, windows, n_windows))
            GX_TRY(gx_trace_add_activity(trace, activity, err));
    }
    return GX_OK;
}

/* --- overhead --- */

/* ns of it in windows; GX_TRACE_NONE where it touches none. */
static int64_t inside(const gx_trace_overhead *overhead, const gx_window *windows,
                      size_t n)
{
    const gx_window *at = window_before(windows, n, overhead->start);
    int64_t ns = GX_TRACE_NONE;

    for (at = at ? at : windows; at < windows + n && at->start <= overhead->end; at++) {
        const int64_t from = overhead->start > at->start ? overhead->start : at->start;
        const int64_t to = overhead->end < at->waited ? overhead->end : at->waited;

        if (from <= to)
            ns = (ns == GX_TRACE_NONE ? 0 : ns) + to - from;
    }
    return ns;
}

/* What follows the last window is that of ending. */
static gx_status add_overheads(gx_recorded *recorded, const aliases *left_out,
                               const gx_window *windows, size_t n_windows,
                               gx_trace *trace, gx_error *err)
{
    for (size_t i = 0; i < recorded->n_overheads; i++) {
        gx_trace_overhead *overhead = &recorded->overhead[i];

        if (n_windows == 0 || overhead->start > windows[n_windows - 1].waited)
            continue;
        if (overhead->end > windows[n_windows - 1].waited)
            overhead->end = windows[n_windows - 1].waited;
        overhead->correlation = served_by(left_out, overhead->correlation);
        overhead->inside = inside(overhead, windows, n_windows);
        GX_TRY(gx_trace_add_overhead(trace, overhead, err));
    }
    return GX_OK;
}

/* --- units --- */

/* When and on which thread the unit of an activity was under way: when its node was
 * captured, else when it was launched. */
static bool moment_of(const gx_trace *trace, const gx_trace_activity *activity,
                      gx_trace_query *query)
{
    const gx_trace_node *node =
        activity->node == GX_TRACE_NONE
            ? NULL
            : gx_trace_captured_node(trace, activity->process, activity->node);

    if (node) {
        query->key = node->thread;
        query->time = node->time;
        return true;
    }
    const int32_t call =
        gx_trace_find_call(trace, activity->process, activity->correlation);
    if (activity->node != GX_TRACE_NONE || call == GX_TRACE_NONE)
        return false;
    query->key = trace->calls[call].thread;
    query->time = trace->calls[call].start;
    return true;
}

static gx_status place(gx_trace *trace, const gx_unit_spans *units, gx_trace_span *spans,
                       gx_trace_query *queries, gx_error *err)
{
    size_t n_queries = 0;

    for (size_t i = 0; i < units->n; i++)
        spans[i] = (gx_trace_span){ .key = units->span[i].thread,
                                    .start = units->span[i].start,
                                    .end = units->span[i].end,
                                    .range = (int32_t)i };
    for (size_t i = 0; i < trace->n_activities; i++) {
        queries[n_queries].index = (int32_t)i;
        n_queries += moment_of(trace, &trace->activities[i], &queries[n_queries]);
    }
    GX_TRY(gx_trace_cover(spans, units->n, queries, n_queries, err));
    for (size_t i = 0; i < n_queries; i++) {
        gx_trace_activity *activity = &trace->activities[queries[i].index];

        if (queries[i].range == GX_TRACE_NONE)
            continue;
        activity->group = units->span[queries[i].range].group;
        activity->lane = units->span[queries[i].range].lane;
        activity->body = 0;
    }
    return GX_OK;
}

static gx_status place_activities(gx_trace *trace, const gx_unit_spans *units,
                                  gx_error *err)
{
    gx_trace_span *spans = calloc(units->n + 1, sizeof *spans);
    gx_trace_query *queries = calloc(trace->n_activities + 1, sizeof *queries);
    gx_status st;

    if (spans && queries)
        st = place(trace, units, spans, queries, err);
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the units of a trace");
    free(spans);
    free(queries);
    return st;
}

/* --- all of it --- */

gx_status gx_profile_join(gx_recorded *recorded, const gx_window *windows,
                          size_t n_windows, const gx_unit_spans *units, gx_trace *trace,
                          gx_error *err)
{
    aliases left_out = { .alias = NULL };

    keep_calls_in_windows(recorded, windows, n_windows);
    gx_status st = leave_out_servants(recorded, &left_out, err);
    for (size_t i = 0; i < recorded->n_calls && st == GX_OK; i++)
        st = gx_trace_add_call(trace, &recorded->call[i].call, err);
    if (st == GX_OK) {
        gx_trace_sort_calls(trace);
        gx_trace_sort_nodes(trace);
        st = add_activities(recorded, &left_out, windows, n_windows, trace, err);
    }
    if (st == GX_OK)
        st = add_overheads(recorded, &left_out, windows, n_windows, trace, err);
    if (st == GX_OK)
        st = place_activities(trace, units, err);
    free(left_out.alias);
    return st;
}

int64_t gx_profile_launches(const gx_trace *trace)
{
    int64_t n = 0;

    for (size_t i = 0; i < trace->n_calls; i++)
        n += !trace->calls[i].twin && (trace->calls[i].kind == GX_TRACE_CALL_KERNEL ||
                                       trace->calls[i].kind == GX_TRACE_CALL_GRAPH);
    return n;
}
