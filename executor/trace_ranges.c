/* Attribution: which range an activity belongs to. */
#include <stdlib.h>

#include "trace_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* --- the innermost range at a time --- */

static int compare_spans(const void *left, const void *right)
{
    const gx_trace_span *const a = left;
    const gx_trace_span *const b = right;
    int order = COMPARE(a->key, b->key);

    if (order == 0)
        order = COMPARE(a->start, b->start);
    if (order == 0)
        order = COMPARE(b->end, a->end);
    return order != 0 ? order : COMPARE(a->range, b->range);
}

static int compare_queries(const void *left, const void *right)
{
    const gx_trace_query *const a = left;
    const gx_trace_query *const b = right;
    int order = COMPARE(a->key, b->key);

    if (order == 0)
        order = COMPARE(a->time, b->time);
    return order != 0 ? order : COMPARE(a->index, b->index);
}

/* One pass over both in order of time. The stack holds what has begun, the latest on top;
 * what has ended is taken off when it comes to the top, since time does not go back. */
gx_status gx_trace_cover(gx_trace_span *spans, size_t n_spans, gx_trace_query *queries,
                         size_t n_queries, gx_error *err)
{
    size_t *stack = malloc((n_spans + 1) * sizeof *stack);
    size_t depth = 0;
    size_t next = 0;

    if (!stack)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a trace");
    if (n_spans)
        qsort(spans, n_spans, sizeof *spans, compare_spans);
    if (n_queries)
        qsort(queries, n_queries, sizeof *queries, compare_queries);
    for (size_t i = 0; i < n_queries; i++) {
        gx_trace_query *const query = &queries[i];

        for (; next < n_spans &&
               (spans[next].key < query->key ||
                (spans[next].key == query->key && spans[next].start <= query->time));
             next++) {
            if (depth && spans[stack[depth - 1]].key != spans[next].key)
                depth = 0;
            stack[depth++] = next;
        }
        while (depth && (spans[stack[depth - 1]].key != query->key ||
                         spans[stack[depth - 1]].end < query->time))
            depth--;
        query->range = depth ? spans[stack[depth - 1]].range : GX_TRACE_NONE;
    }
    free(stack);
    return GX_OK;
}

/* --- nodes --- */

static int compare_nodes(const void *left, const void *right)
{
    const gx_trace_node *const a = left;
    const gx_trace_node *const b = right;
    int order = COMPARE(a->process, b->process);

    if (order == 0)
        order = COMPARE(a->id, b->id);
    /* A clone has two rows: that which names the original comes first. */
    if (order == 0)
        order = COMPARE(a->original == GX_TRACE_NONE, b->original == GX_TRACE_NONE);
    return order != 0 ? order : COMPARE(a->time, b->time);
}

static const gx_trace_node *find_node(const gx_trace *trace, int64_t process, int64_t id)
{
    size_t low = 0;
    size_t high = trace->n_nodes;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const gx_trace_node *const node = &trace->nodes[middle];

        if (node->process < process || (node->process == process && node->id < id))
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->n_nodes && trace->nodes[low].process == process &&
                   trace->nodes[low].id == id
               ? &trace->nodes[low]
               : NULL;
}

void gx_trace_sort_nodes(gx_trace *trace)
{
    if (trace->n_nodes)
        qsort(trace->nodes, trace->n_nodes, sizeof *trace->nodes, compare_nodes);
}

const gx_trace_node *gx_trace_captured_node(const gx_trace *trace, int64_t process,
                                            int64_t id)
{
    enum { MOST_CLONES = 64 };

    for (int i = 0; i < MOST_CLONES; i++) {
        const gx_trace_node *const node = find_node(trace, process, id);

        if (!node || node->original == GX_TRACE_NONE)
            return node;
        id = node->original;
    }
    return NULL;
}

/* --- attribution --- */

typedef struct working {
    gx_trace_span *spans;
    gx_trace_query *queries;
    size_t n_spans, n_queries;
} working;

static void take_ranges(const gx_trace *trace, gx_trace_range_kind kind, working *work)
{
    work->n_spans = 0;
    for (size_t i = 0; i < trace->n_ranges; i++) {
        const gx_trace_range *const range = &trace->ranges[i];

        if (range->kind == kind && range->end >= range->start)
            work->spans[work->n_spans++] =
                (gx_trace_span){ .key = kind == GX_TRACE_PUSH_POP ? range->thread
                                                                  : range->process,
                                 .start = range->start,
                                 .end = range->end,
                                 .range = (int32_t)i };
    }
}

static void ask(working *work, int64_t key, int64_t time, size_t index)
{
    if (key == GX_TRACE_NONE)
        return; /* nobody's thread is no thread that others are on */
    work->queries[work->n_queries++] =
        (gx_trace_query){ .key = key, .time = time, .index = (int32_t)index };
}

static void take_answers(gx_trace *trace, const working *work, gx_trace_by by)
{
    for (size_t i = 0; i < work->n_queries; i++) {
        gx_trace_activity *const activity = &trace->activities[work->queries[i].index];

        if (work->queries[i].range != GX_TRACE_NONE) {
            activity->range = work->queries[i].range;
            activity->by = by;
        }
    }
}

static bool is_replayed(const gx_trace *trace, const gx_trace_activity *activity)
{
    return activity->call != GX_TRACE_NONE &&
           trace->calls[activity->call].kind == GX_TRACE_CALL_GRAPH;
}

/* The earliest that the host shows: no range of before is in the trace. */
static int64_t window_start(const gx_trace *trace)
{
    int64_t start = GX_TRACE_OPEN;

    for (size_t i = 0; i < trace->n_calls; i++)
        if (trace->calls[i].start < start)
            start = trace->calls[i].start;
    for (size_t i = 0; i < trace->n_ranges; i++)
        if (trace->ranges[i].start < start)
            start = trace->ranges[i].start;
    return start;
}

/* Ranges around the capture of the node that was replayed. */
static gx_status attribute_nodes(gx_trace *trace, working *work, gx_error *err)
{
    const int64_t start = window_start(trace);

    work->n_queries = 0;
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];
        const gx_trace_node *const node =
            activity->node == GX_TRACE_NONE
                ? NULL
                : gx_trace_captured_node(trace, activity->process, activity->node);

        if (node && node->time < start)
            trace->before_window[i] = true;
        else if (node)
            ask(work, node->thread, node->time, i);
    }
    take_ranges(trace, GX_TRACE_PUSH_POP, work);
    GX_TRY(
        gx_trace_cover(work->spans, work->n_spans, work->queries, work->n_queries, err));
    take_answers(trace, work, GX_TRACE_BY_CAPTURE);
    return GX_OK;
}

/* Ranges around the launch, for what has none yet: whole launches of graphs or others. */
static gx_status attribute_calls(gx_trace *trace, gx_trace_range_kind kind, bool replayed,
                                 gx_trace_by by, working *work, gx_error *err)
{
    work->n_queries = 0;
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (activity->call == GX_TRACE_NONE || activity->range != GX_TRACE_NONE ||
            is_replayed(trace, activity) != replayed)
            continue;
        const gx_trace_call *const call = &trace->calls[activity->call];
        ask(work, kind == GX_TRACE_PUSH_POP ? call->thread : call->process, call->start,
            i);
    }
    take_ranges(trace, kind, work);
    GX_TRY(
        gx_trace_cover(work->spans, work->n_spans, work->queries, work->n_queries, err));
    take_answers(trace, work, by);
    return GX_OK;
}

static gx_status attribute_all(gx_trace *trace, working *work, gx_error *err)
{
    GX_TRY(attribute_nodes(trace, work, err));
    GX_TRY(
        attribute_calls(trace, GX_TRACE_PUSH_POP, false, GX_TRACE_BY_LAUNCH, work, err));
    GX_TRY(
        attribute_calls(trace, GX_TRACE_PUSH_POP, true, GX_TRACE_BY_REPLAY, work, err));
    GX_TRY(attribute_calls(trace, GX_TRACE_START_END, false, GX_TRACE_BY_START_END, work,
                           err));
    return attribute_calls(trace, GX_TRACE_START_END, true, GX_TRACE_BY_START_END, work,
                           err);
}

gx_status gx_trace_attribute(gx_trace *trace, gx_error *err)
{
    const size_t n = trace->n_activities + 1;
    working work = { .spans = calloc(trace->n_ranges + 1, sizeof *work.spans),
                     .queries = calloc(n, sizeof *work.queries) };
    gx_status st;

    trace->before_window = calloc(n, sizeof *trace->before_window);
    gx_trace_sort_nodes(trace);
    if (work.spans && work.queries && trace->before_window)
        st = attribute_all(trace, &work, err);
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the ranges of a trace");
    free(work.spans);
    free(work.queries);
    return st;
}
