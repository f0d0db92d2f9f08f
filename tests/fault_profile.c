/* Profilers on the simulated CUDA and a CUPTI that does as it is told. */
#include "profile_traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if GX_HAVE_CUPTI

#include <pthread.h>

#include <cuda_runtime_api.h>

#include "resolve.h"
#include "support_alone.h"

static int64_t count_ranges(const char *name)
{
    int64_t count = 0;
    size_t n;
    const gx_trace_range *ranges = gx_trace_ranges(run.trace, &n);

    for (size_t i = 0; i < n; i++) {
        count += strcmp(gx_trace_text_at(run.trace, ranges[i].name), name) == 0;
        assert_string_equal(gx_trace_text_at(run.trace, ranges[i].domain), "gexec");
        assert_true(ranges[i].end > ranges[i].start && ranges[i].end != GX_TRACE_OPEN);
    }
    return count;
}

/* --- scenarios --- */

static void eager_work_belongs_to_its_units(void **state)
{
    enum { STEPS = 3 };
    size_t n, n_calls;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_exec_capture(run.program.exec, &err), &err); /* counts the launches */
    record_steps(GX_MODE_EAGER, STEPS);
    const int64_t per_step = gx_exec_stats_get(run.program.exec).launches_per_step;
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, per_step * STEPS);
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    const gx_trace_call *calls = gx_trace_calls(run.trace, &n_calls);
    assert_int_equal(n, per_step * STEPS);
    assert_int_equal(n_calls, n); /* the driver's are not counted beside the runtime's */
    for (size_t i = 0; i < n; i++) {
        check_unit(&activities[i], GX_TRACE_BY_LAUNCH);
        assert_in_range(activities[i].call, 0, n_calls - 1);
        const gx_trace_call *call = &calls[activities[i].call];
        assert_false(call->twin);
        assert_int_equal(call->n_activities, 1);
        assert_true(activities[i].start >= call->start);
        assert_int_equal(activities[i].node, GX_TRACE_NONE);
        assert_int_equal(activities[i].stream, TRACE_STREAM);
    }
    check_groups(activities, n, STEPS);
    assert_int_equal(count_ranges("step"), STEPS + 1); /* and the captured one */
    assert_int_equal(count_ranges("forward"), STEPS + 1);
    assert_int_equal(count_ranges("capture"), 1);
    assert_int_equal(run.losses.dropped, 0);
    assert_int_equal(run.losses.corrupt, 0);
    assert_int_equal(run.losses.unknown, 0);
    close_traced();
}

static void replayed_nodes_belong_to_the_units_that_captured_them(void **state)
{
    enum { REPLAYS = 10 };
    int64_t n_graph_calls = 0;
    size_t n, n_calls;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_exec_capture(run.program.exec, &err), &err);
    record_steps(GX_MODE_GRAPH, REPLAYS);
    const int64_t n_nodes = gx_exec_stats_get(run.program.exec).graph_nodes;
    take_trace();
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    const gx_trace_call *calls = gx_trace_calls(run.trace, &n_calls);
    assert_true(n_nodes > 0);
    assert_int_equal(n, n_nodes * REPLAYS);
    for (size_t i = 0; i < n; i++) {
        check_unit(&activities[i], GX_TRACE_BY_CAPTURE);
        assert_true(activities[i].node != GX_TRACE_NONE);
        assert_in_range(activities[i].call, 0, n_calls - 1);
    }
    check_groups(activities, n, REPLAYS);
    for (size_t i = 0; i < n_calls; i++) {
        if (calls[i].kind != GX_TRACE_CALL_GRAPH || calls[i].twin)
            continue;
        n_graph_calls++;
        assert_int_equal(calls[i].n_activities, n_nodes);
    }
    assert_int_equal(n_graph_calls, REPLAYS);
    assert_int_equal(count_ranges("step"), REPLAYS + 1);
    close_traced();
}

/* Nodes in the body are captured in the ranges of their units like all others. */
static void nodes_of_a_branch_belong_to_the_units_that_captured_them(void **state)
{
    enum { REPLAYS = 4, BRANCH = 1 };
    size_t n, n_updates = 0;
    gx_error err;

    (void)state;
    trace_use("");
    assert_ok(gx_profiler_open(NULL, &run.profiler, &err), &err);
    path_open_scaled(&run.program, 2, GX_ON, false);
    path_make_exec(&run.program);
    path_write_inputs(&run.program);
    const int32_t update = gx_graph_value_id(run.program.graph, GX_UPDATE);
    *(int32_t *)run.program.exec->value_data[update] = 0;
    assert_ok(gx_profiler_attach(run.profiler, run.program.exec, &err), &err);
    assert_ok(gx_exec_capture(run.program.exec, &err), &err);
    record_steps(GX_MODE_GRAPH, REPLAYS);
    const int64_t n_nodes = gx_exec_stats_get(run.program.exec).graph_nodes;
    take_trace();
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    assert_int_equal(n, (n_nodes - BRANCH) * REPLAYS);
    for (size_t i = 0; i < n; i++) {
        check_unit(&activities[i], GX_TRACE_BY_CAPTURE);
        n_updates += run.program.plan->units[activities[i].group].skips;
    }
    assert_true(n_updates >= 2 * REPLAYS); /* what decides, and an update */
    check_groups(activities, n, REPLAYS);
    close_traced();
}

static void a_kernel_keeps_what_its_record_says(void **state)
{
    size_t n;
    bool seen = false;

    (void)state;
    open_traced("");
    record_steps(GX_MODE_EAGER, 1);
    take_trace();
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = gx_trace_text_at(run.trace, activities[i].name);

        if (activities[i].kind == GX_TRACE_COPY)
            assert_string_equal(name, "copy device to device");
        if (activities[i].kind == GX_TRACE_FILL)
            assert_string_equal(name, "fill");
        if (activities[i].kind != GX_TRACE_KERNEL)
            continue;
        seen = true;
        assert_has(name, "kernel");
        assert_int_equal(activities[i].grid[0], 2);
        assert_int_equal(activities[i].grid[1], 3);
        assert_int_equal(activities[i].block[0], 128);
        assert_int_equal(activities[i].registers, 32);
        assert_int_equal(activities[i].shared_bytes, 1100);
        assert_int_equal(activities[i].bytes, GX_TRACE_NONE);
    }
    assert_true(seen);
    close_traced();
}

/* Buffers of records between windows are dropped unread, but for overhead. */
static void only_windows_are_kept_and_an_empty_one_harms_none(void **state)
{
    const CUpti_ActivityName unread = { .kind = CUPTI_ACTIVITY_KIND_NAME };
    const gx_cupti_kernel pair[2] = { trace_kernel(1, 2, 1, 0),
                                      trace_kernel(1, 2, 1, 0) };
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_exec_capture(run.program.exec, &err), &err);
    run_steps(GX_MODE_GRAPH, 3);
    trace_fill(pair, sizeof pair - 8, 1); /* it would be counted as cut short */
    record_steps(GX_MODE_GRAPH, 0);
    run_steps(GX_MODE_GRAPH, 4);
    trace_fill(&unread, sizeof unread, 3);
    record_steps(GX_MODE_GRAPH, 10);
    run_steps(GX_MODE_GRAPH, 5);
    record_steps(GX_MODE_GRAPH, 2);
    run_steps(GX_MODE_EAGER, 1);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 12 * gx_exec_stats_get(run.program.exec).graph_nodes);
    assert_int_equal(run.losses.unknown, 0);
    assert_int_equal(run.losses.corrupt, 0);
    assert_int_equal(count_ranges("step"), 1 + 12);
    close_traced();
}

static void nothing_recorded_of_steps_that_ran_is_an_error(void **state)
{
    gx_error err;

    (void)state;
    open_traced("deaf");
    record_steps(GX_MODE_GRAPH, 4);
    assert_fails(gx_profiler_trace(run.profiler, &run.trace, &run.losses, &err),
                 GX_ERR_UNSUPPORTED, &err, "recorded nothing, though 4 steps");
    assert_null(run.trace);
    assert_fails(gx_profiler_trace(run.profiler, &run.trace, &run.losses, &err),
                 GX_ERR_STATE, &err, "ended");
    close_traced();
}

static void no_steps_and_nothing_recorded_is_an_empty_trace(void **state)
{
    size_t n;

    (void)state;
    open_traced("");
    record_steps(GX_MODE_GRAPH, 0);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 0);
    close_traced();
}

/* Records that no clock can have seen, or of which not all is there. */
static void what_is_wrong_with_records_is_counted(void **state)
{
    gx_trace_dropped dropped;
    size_t n;
    gx_error err;

    (void)state;
    open_traced("careless dropped=7");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_EAGER, 1);
    const uint64_t launch = trace_now();
    const gx_cupti_kernel early = trace_kernel(launch - 1000, trace_now(), 5000000, 0);
    trace_emit(&early, sizeof early);
    const gx_cupti_kernel very_early = trace_kernel(1, 2, 5000000, 0);
    trace_emit(&very_early, sizeof very_early);
    const gx_cupti_kernel untimed = trace_kernel(0, 0, 5000000, 0);
    trace_emit(&untimed, sizeof untimed);
    const gx_cupti_kernel backwards = trace_kernel(launch + 8, launch + 3, 5000000, 0);
    trace_emit(&backwards, sizeof backwards);
    const gx_cupti_kernel endless = trace_kernel(launch, UINT64_MAX, 5000000, 0);
    trace_emit(&endless, sizeof endless);
    trace_call(CUPTI_ACTIVITY_KIND_RUNTIME, FAKE_CUPTI_KERNEL, launch, trace_now(),
               5000000);
    const CUpti_ActivityName strange = { .kind = CUPTI_ACTIVITY_KIND_NAME };
    trace_fill(&strange, sizeof strange, 3);
    trace_fill(&early, sizeof early / 2, 1);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    dropped = gx_trace_dropped_get(run.trace);
    assert_int_equal(dropped.before_call, 2);
    assert_int_equal(dropped.no_time, 1);
    assert_int_equal(dropped.backwards, 1);
    assert_int_equal(run.losses.dropped, 7);
    assert_int_equal(run.losses.unknown, 3);
    assert_int_equal(run.losses.corrupt, 2); /* the endless one and the half one */
    close_traced();
}

static void a_buffer_cut_short_is_counted(void **state)
{
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_EAGER, 1);
    const gx_cupti_kernel half = trace_kernel(trace_now(), trace_now(), 1, 0);
    trace_fill(&half, sizeof half / 2, 1);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    assert_int_equal(run.losses.corrupt, 1);
    close_traced();
}

enum { THREADS = 4, BUFFERS = 50, RECORDS = 20 };

static void *hand_over(void *user)
{
    for (int i = 0; i < BUFFERS; i++)
        trace_fill(user, sizeof(gx_cupti_kernel), RECORDS);
    return NULL;
}

static void threads_hand_over_buffers_at_once(void **state)
{
    pthread_t thread[THREADS];
    size_t n;
    gx_error err;

    (void)state;
    trace_use("");
    assert_ok(gx_profiler_open(NULL, &run.profiler, &err), &err);
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    gx_cupti_kernel kernel = trace_kernel(trace_now(), trace_now(), 0, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hand_over, &kernel), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, THREADS * BUFFERS * RECORDS);
    assert_int_equal(run.losses.corrupt, 0);
    gx_trace_free(run.trace);
    gx_profiler_free(run.profiler);
}

static void calls_out_of_turn_are_errors(void **state)
{
    gx_profiler *second;
    gx_error err;

    (void)state;
    open_traced("");
    assert_fails(gx_profiler_open(NULL, &second, &err), GX_ERR_STATE, &err,
                 "a process has one");
    assert_fails(gx_profiler_stop(run.profiler, &err), GX_ERR_STATE, &err,
                 "not recording");
    assert_fails(gx_profiler_attach(run.profiler, run.program.exec, &err), GX_ERR_STATE,
                 &err, "attached already");
    assert_fails(gx_profiler_attach(run.profiler, NULL, &err), GX_ERR_ARGUMENT, &err,
                 "NULL");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    assert_fails(gx_profiler_start(run.profiler, &err), GX_ERR_STATE, &err,
                 "recording already");
    assert_fails(gx_profiler_trace(run.profiler, &run.trace, &run.losses, &err),
                 GX_ERR_STATE, &err, "stop it first");
    run_steps(GX_MODE_GRAPH, 1);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    assert_fails(gx_profiler_start(run.profiler, &err), GX_ERR_STATE, &err, "ended");
    gx_profiler_free(run.profiler);
    assert_fails(gx_profiler_open(NULL, &run.profiler, &err), GX_ERR_STATE, &err,
                 "a process has one");
    run_steps(GX_MODE_GRAPH, 1); /* the program goes on without it */
    close_traced();
}

static void a_program_may_be_freed_before_its_profiler(void **state)
{
    size_t n;

    (void)state;
    open_traced("");
    record_steps(GX_MODE_GRAPH, 2);
    const int64_t n_nodes = gx_exec_stats_get(run.program.exec).graph_nodes;
    path_close(&run.program);
    run.program = (path_program){ NULL, NULL, NULL, NULL };
    take_trace();
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 2 * n_nodes);
    for (size_t i = 0; i < n; i++)
        assert_true(activities[i].group >= 0);
    close_traced();
}

static void a_profiler_may_be_freed_without_a_trace(void **state)
{
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_GRAPH, 2);
    gx_profiler_free(run.profiler);
    run.profiler = NULL;
    run_steps(GX_MODE_GRAPH, 2);
    close_traced();
}

static void a_window_closes_whatever_fails(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    run_steps(GX_MODE_GRAPH, 1);
    fake_begin();
    fake_fail("cudaDeviceSynchronize", 1, cudaErrorUnknown);
    assert_fails(gx_profiler_start(run.profiler, &err), GX_ERR_CUDA, &err,
                 "cudaDeviceSynchronize");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_GRAPH, 2);
    fake_begin();
    fake_fail("cudaDeviceSynchronize", 1, cudaErrorUnknown);
    assert_fails(gx_profiler_stop(run.profiler, &err), GX_ERR_CUDA, &err,
                 "cudaDeviceSynchronize");
    assert_fails(gx_profiler_stop(run.profiler, &err), GX_ERR_STATE, &err,
                 "not recording");
    fake_begin();
    run_steps(GX_MODE_GRAPH, 3);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 2 * gx_exec_stats_get(run.program.exec).graph_nodes);
    close_traced();
}

static void a_failing_flush_is_told(void **state)
{
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_GRAPH, 2);
    assert_int_equal(setenv("FAKE_CUPTI", "flush=999", 1), 0);
    assert_fails(gx_profiler_stop(run.profiler, &err), GX_ERR_UNSUPPORTED, &err,
                 "cuptiActivityFlushAll");
    assert_fails(gx_profiler_trace(run.profiler, &run.trace, &run.losses, &err),
                 GX_ERR_UNSUPPORTED, &err, "cuptiActivityFlushAll");
    close_traced();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_work_belongs_to_its_units),
        cmocka_unit_test(replayed_nodes_belong_to_the_units_that_captured_them),
        cmocka_unit_test(nodes_of_a_branch_belong_to_the_units_that_captured_them),
        cmocka_unit_test(a_kernel_keeps_what_its_record_says),
        cmocka_unit_test(only_windows_are_kept_and_an_empty_one_harms_none),
        cmocka_unit_test(nothing_recorded_of_steps_that_ran_is_an_error),
        cmocka_unit_test(no_steps_and_nothing_recorded_is_an_empty_trace),
        cmocka_unit_test(what_is_wrong_with_records_is_counted),
        cmocka_unit_test(a_buffer_cut_short_is_counted),
        cmocka_unit_test(threads_hand_over_buffers_at_once),
        cmocka_unit_test(calls_out_of_turn_are_errors),
        cmocka_unit_test(a_program_may_be_freed_before_its_profiler),
        cmocka_unit_test(a_profiler_may_be_freed_without_a_trace),
        cmocka_unit_test(a_window_closes_whatever_fails),
        cmocka_unit_test(a_failing_flush_is_told),
    };

    return test_each_alone(argc, argv, tests, ARRAY_SIZE(tests));
}

#else

int main(void)
{
    fprintf(stderr, "no CUPTI in this build\n");
    return TEST_SKIPPED;
}

#endif
