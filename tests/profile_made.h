/* Profiles of traces that are built in code. The link replaces the two functions of
 * ceilings by those below (see CMakeLists.txt), so that floors are known. */
#ifndef TEST_PROFILE_MADE_H
#define TEST_PROFILE_MADE_H

#include <stdlib.h>
#include <string.h>

#include "profile_parts.h"
#include "support.h"

double __wrap_gx_ceilings_floor(const gx_ceilings *ceilings, gx_rate rate, double flops,
                                double bytes, gx_bound *bound);
const char *__wrap_gx_bound_name(gx_bound bound);

static gx_error err;

/* Copies go at one rate whatever their size. */
double __wrap_gx_ceilings_floor(const gx_ceilings *ceilings, gx_rate rate, double flops,
                                double bytes, gx_bound *bound)
{
    const double compute = flops / ceilings->flops_per_s[rate];
    const double memory = bytes / ceilings->copy[0].bytes_per_s;

    *bound = compute > memory ? GX_BOUND_COMPUTE : GX_BOUND_MEMORY;
    if (compute < ceilings->node_s && memory < ceilings->node_s)
        *bound = GX_BOUND_LATENCY;
    return compute > memory ? compute : memory;
}

const char *__wrap_gx_bound_name(gx_bound bound)
{
    static const char *const names[] = { "unknown", "compute", "memory", "latency" };

    return names[bound];
}

/* 1 TFLOP/s, tf32 ten times that, 1 TB/s, 1 us a node. */
static inline gx_ceilings made_ceilings(void)
{
    return (gx_ceilings){ .card = "a card",
                          .date = "2027-01-01T00:00:00Z",
                          .flops_per_s = { 1e12, 1e13, -1, -1 },
                          .copy = { { 1 << 20, 1e12 } },
                          .n_copy = 1,
                          .node_s = 1e-6,
                          .programmatic_node_s = -1,
                          .step_s = -1,
                          .launch_s = -1,
                          .graph_host_s = -1 };
}

static inline uint32_t text(gx_trace *trace, const char *words)
{
    uint32_t id;

    assert_ok(gx_trace_text(trace, words, strlen(words), &id, &err), &err);
    return id;
}

/* An activity of unit `group`, launched by the call with this correlation. */
static inline gx_trace_activity *made_activity(gx_trace *trace, const char *name,
                                               int64_t start, int64_t end, int group,
                                               int64_t correlation)
{
    static gx_trace_activity activity;

    activity = gx_trace_activity_none();
    activity.kind = GX_TRACE_KERNEL;
    activity.name = text(trace, name);
    activity.start = start;
    activity.end = end;
    activity.process = 1;
    activity.stream = 7;
    activity.group = group;
    activity.lane = 0;
    activity.correlation = correlation;
    return &activity;
}

static inline void add(gx_trace *trace, const gx_trace_activity *activity)
{
    assert_ok(gx_trace_add_activity(trace, activity, &err), &err);
}

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

static inline void add_range(gx_trace *trace, const char *name, int64_t start,
                             int64_t end)
{
    const gx_trace_range range = { .kind = GX_TRACE_PUSH_POP,
                                   .name = text(trace, name),
                                   .domain = text(trace, "gexec"),
                                   .start = start,
                                   .end = end,
                                   .process = 1,
                                   .thread = 10 };

    assert_ok(gx_trace_add_range(trace, &range, &err), &err);
}

/* A kernel with a launch call of its own, which begins at `called` and lasts 10. */
static inline void add_launched(gx_trace *trace, const char *name, int64_t called,
                                int64_t start, int64_t end, int group)
{
    static int64_t correlation = 1000;

    add_call(trace, "cudaLaunchKernel", called, called + 10, ++correlation);
    add(trace, made_activity(trace, name, start, end, group, correlation));
}

static inline void finish_pass(gx_profile_pass *pass, const gx_profile_schedule *schedule)
{
    pass->lane_overlap_ns = -1;
    assert_ok(gx_trace_finish(pass->trace, &err), &err);
    assert_ok(gx_trace_figures_create(pass->trace, NULL, &pass->figures, &err), &err);
    assert_ok(gx_profile_steps(pass, schedule, &err), &err);
}

static inline gx_profile_pass start_pass(gx_mode mode)
{
    const gx_profile_pass pass = { .mode = mode, .trace = gx_trace_create() };

    assert_non_null(pass.trace);
    return pass;
}

/* The pass with all that it has. */
static inline void drop_pass(gx_profile_pass *pass)
{
    gx_profile profile = { .pass[0] = *pass };

    gx_profile_free(&profile);
    *pass = (gx_profile_pass){ 0 };
}

/* `n` steps of 1000 ns: two kernels of 100 ns each, launched before the step, with a gap
 * of `gap` ns between them that is the host's where `late`, else the device's. */
static inline void add_plain_steps(gx_trace *trace, int64_t n, int64_t gap, bool late)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = 1000 * (i + 1);
        const int64_t second = at + 100 + gap;

        add_range(trace, "step", at - 100, at + 800);
        add_launched(trace, "first", at - 50, at, at + 100, 0);
        add_launched(trace, "second", late ? second - 5 : at - 20, second, second + 100,
                     1);
    }
}

#endif
