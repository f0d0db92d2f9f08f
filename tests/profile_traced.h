/* A program on the simulated CUDA, traced by a profiler on a CUPTI that does as it is
 * told. */
#ifndef TEST_PROFILE_TRACED_H
#define TEST_PROFILE_TRACED_H

#include <string.h>

#include "fake_cuda_paths.h"
#include "fake_cuda_trace.h"

#if GX_HAVE_CUPTI

typedef struct traced {
    gx_profiler *profiler;
    path_program program;
    gx_trace *trace;
    gx_profiler_losses losses;
} traced;

static traced run;

/* Opens a profiler (`options` may be NULL), makes the program and attaches it. */
static inline void open_traced_as(const gx_profiler_options *options, const char *script)
{
    gx_error err;

    trace_use(script);
    assert_ok(gx_profiler_open(options, &run.profiler, &err), &err);
    path_open(&run.program, 2);
    path_make_exec(&run.program);
    path_write_inputs(&run.program);
    assert_ok(gx_profiler_attach(run.profiler, run.program.exec, &err), &err);
}

static inline void open_traced(const char *script)
{
    open_traced_as(NULL, script);
}

static inline void run_steps(gx_mode mode, int64_t n)
{
    gx_error err;

    assert_ok(gx_exec_run(run.program.exec, mode, n, &err), &err);
}

static inline void record_steps(gx_mode mode, int64_t n)
{
    gx_error err;

    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(mode, n);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
}

static inline void take_trace(void)
{
    gx_error err;

    assert_ok(gx_profiler_trace(run.profiler, &run.trace, &run.losses, &err), &err);
}

static inline void close_traced(void)
{
    gx_trace_free(run.trace);
    gx_profiler_free(run.profiler);
    path_close(&run.program);
    assert_null(fake_mistake());
}

static inline void check_unit(const gx_trace_activity *activity, gx_trace_by by)
{
    const gx_plan *plan = run.program.plan;
    size_t n;
    const gx_trace_range *ranges = gx_trace_ranges(run.trace, &n);

    assert_in_range(activity->group, 0, plan->n_units - 1);
    assert_int_equal(activity->lane, plan->units[activity->group].lane);
    assert_int_equal(activity->body, 0);
    assert_int_equal(activity->by, by);
    assert_in_range(activity->range, 0, n - 1);
    assert_string_equal(gx_trace_text_at(run.trace, ranges[activity->range].name),
                        run.program.exec->units[activity->group].name);
}

/* Steps as the plan has them: each unit's work in its place, n times over. */
static inline void check_groups(const gx_trace_activity *activities, size_t n,
                                int64_t n_steps)
{
    const size_t per_step = n / (size_t)n_steps;
    int seen = 0;

    for (size_t i = 0; i < n; i++) {
        if (i % per_step == 0)
            seen = 0;
        assert_true(activities[i].group >= seen);
        seen = activities[i].group;
        assert_int_equal(activities[i].group, activities[i % per_step].group);
    }
    assert_int_equal(seen, run.program.plan->n_units - 1);
}

#endif
#endif
