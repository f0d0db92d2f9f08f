/* Builds traces record by record, for the tests of the records and of the ranges. */
#ifndef TEST_TRACE_MADE_H
#define TEST_TRACE_MADE_H

#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "trace_model.h"

static gx_error err;

static inline int set_up(void **state)
{
    *state = gx_trace_create();
    return *state ? 0 : -1;
}

static inline int tear_down(void **state)
{
    gx_trace_free(*state);
    return 0;
}

static inline uint32_t text(gx_trace *trace, const char *words)
{
    uint32_t id;

    assert_ok(gx_trace_text(trace, words, strlen(words), &id, &err), &err);
    return id;
}

/* A kernel of process 1, device 0, stream 7. */
static inline gx_trace_activity kernel(int64_t start, int64_t end, int64_t correlation)
{
    gx_trace_activity activity = gx_trace_activity_none();

    activity.process = 1;
    activity.stream = 7;
    activity.start = start;
    activity.end = end;
    activity.correlation = correlation;
    return activity;
}

static inline void add_kernel(gx_trace *trace, int64_t start, int64_t end,
                              int64_t correlation)
{
    const gx_trace_activity activity = kernel(start, end, correlation);

    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
}

static inline void add_node_kernel(gx_trace *trace, int64_t start, int64_t end,
                                   int64_t correlation, int64_t node)
{
    gx_trace_activity activity = kernel(start, end, correlation);

    activity.node = node;
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
}

/* On thread 10. */
static inline void add_call(gx_trace *trace, const char *name, int64_t start, int64_t end,
                            int64_t correlation)
{
    const gx_trace_call call = { .start = start,
                                 .end = end,
                                 .process = 1,
                                 .thread = 10,
                                 .correlation = correlation,
                                 .name = text(trace, name) };

    assert_ok(gx_trace_add_call(trace, &call, &err), &err);
}

static inline void add_range(gx_trace *trace, gx_trace_range_kind kind, const char *name,
                             int64_t start, int64_t end, int64_t thread)
{
    const gx_trace_range range = { .kind = kind,
                                   .name = text(trace, name),
                                   .start = start,
                                   .end = end,
                                   .process = 1,
                                   .thread = thread };

    assert_ok(gx_trace_add_range(trace, &range, &err), &err);
}

static inline void add_node(gx_trace *trace, int64_t id, int64_t original, int64_t time)
{
    const gx_trace_node node = {
        .id = id, .original = original, .time = time, .process = 1, .thread = 10
    };

    assert_ok(gx_trace_add_node(trace, &node, &err), &err);
}

static inline gx_trace_figures *finish(gx_trace *trace, const gx_trace_options *options)
{
    gx_trace_figures *figures;

    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_trace_figures_create(trace, options, &figures, &err), &err);
    return figures;
}

static inline const char *range_of(const gx_trace *trace, size_t i)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n);
    const gx_trace_range *ranges;

    assert_true(i < n);
    ranges = gx_trace_ranges(trace, &n);
    return activities[i].range == GX_TRACE_NONE
               ? "none"
               : gx_trace_text_at(trace, ranges[activities[i].range].name);
}

static inline gx_trace_by by_of(const gx_trace *trace, size_t i)
{
    size_t n;

    return gx_trace_activities(trace, &n)[i].by;
}

#endif
