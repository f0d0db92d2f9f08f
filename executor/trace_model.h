/* What the parts of a trace share. */
#ifndef GX_TRACE_MODEL_H
#define GX_TRACE_MODEL_H

#include <gexec/trace.h>

struct gx_trace {
    gx_trace_activity *activities;
    size_t n_activities, activities_room;
    gx_trace_call *calls;
    size_t n_calls, calls_room;
    gx_trace_range *ranges;
    size_t n_ranges, ranges_room;
    gx_trace_node *nodes;
    size_t n_nodes, nodes_room;
    gx_trace_overhead *overheads;
    size_t n_overheads, overheads_room;
    bool tells_overhead; /* that there is none means that there was none */
    char *bytes;         /* of all texts, each with its NUL */
    size_t n_bytes, bytes_room;
    size_t *texts; /* where each begins */
    size_t n_texts, texts_room;
    uint32_t *slots; /* hash table: text + 1, 0 is free */
    size_t n_slots;  /* a power of two */
    gx_trace_dropped dropped;
    bool *before_window; /* an activity whose node is older than what the host showed */
    bool finished;
};

/* A question to gx_trace_cover, in any order. */
typedef struct gx_trace_query {
    int64_t key, time;
    int32_t index; /* for the caller */
    int32_t range; /* the answer: a range or GX_TRACE_NONE */
} gx_trace_query;

typedef struct gx_trace_span {
    int64_t key, start, end;
    int32_t range;
} gx_trace_span;

/* Finds for each query the span of the same key that holds its time, and of several the
 * one that began last. Sorts both arrays. */
gx_status gx_trace_cover(gx_trace_span *spans, size_t n_spans, gx_trace_query *queries,
                         size_t n_queries, gx_error *err) GX_MUST_CHECK;

/* The ranges that are the window, by name or, where that is NULL, by the usual one; the
 * key is the process. There is room for all ranges. Returns how many. */
size_t gx_trace_select_window(const gx_trace *trace, const char *name,
                              gx_trace_span *spans);
/* The same of the ranges that are steps, of which those count that begin in one of the
 * windows, or all where there are none. */
size_t gx_trace_select_steps(const gx_trace *trace, const char *name,
                             const gx_trace_span *windows, size_t n_windows,
                             gx_trace_span *spans);

/* Sorts the calls by process and correlation and says what each is: a kind, a twin. */
void gx_trace_sort_calls(gx_trace *trace);
/* Of sorted calls the first row with this correlation, or GX_TRACE_NONE. */
int32_t gx_trace_find_call(const gx_trace *trace, int64_t process, int64_t correlation);

void gx_trace_sort_nodes(gx_trace *trace);
/* Of sorted nodes the captured one behind one that runs, or NULL: clones of clones are
 * followed, and records in which they go round in circles lead nowhere. */
const gx_trace_node *gx_trace_captured_node(const gx_trace *trace, int64_t process,
                                            int64_t id);

/* Attributes every activity to a range. Calls are joined before. */
gx_status gx_trace_attribute(gx_trace *trace, gx_error *err) GX_MUST_CHECK;

/* a + b, and the largest number where that is too large. Neither is negative. */
static inline int64_t gx_trace_sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static inline void gx_trace_share_add(gx_trace_share *share, int64_t ns)
{
    share->n++;
    share->ns = gx_trace_sum(share->ns, ns);
}

/* The figures of one device: activities[first, first + n) of the trace, of which
 * `counted` (NULL: all) tells which count; step[i] is the step of an activity, or
 * GX_TRACE_NONE. At least one counts. */
gx_status gx_trace_device_figures(const gx_trace *trace, size_t first, size_t n,
                                  const bool *counted, const int32_t *step,
                                  gx_trace_device *device, gx_error *err) GX_MUST_CHECK;

/* Tables over names and over ranges. */
gx_status gx_trace_op_table(const gx_trace *trace, const bool *counted,
                            gx_trace_figures *figures, gx_error *err) GX_MUST_CHECK;
gx_status gx_trace_range_table(const gx_trace *trace, const bool *counted,
                               gx_trace_figures *figures, gx_error *err) GX_MUST_CHECK;

#endif
