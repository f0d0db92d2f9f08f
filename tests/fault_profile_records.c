/* Records of copies between devices and of overhead, from a CUPTI that does as it is told
 * to a trace. */
#include "profile_traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if GX_HAVE_CUPTI

#include <unistd.h>

#include "profile_ranges.h"
#include "profile_session.h"
#include "support_alone.h"

static const gx_profiler_options with_peers = { .peer_copies = true };

/* Their devices are told; else they are work like any other. */
static void check_peer_copies(gx_mode mode, gx_trace_by by)
{
    enum { STEPS = 3 };
    size_t n;
    gx_error err;

    open_traced_as(&with_peers, "");
    trace_peers = true;
    assert_ok(gx_exec_capture(run.program.exec, &err), &err);
    record_steps(mode, STEPS);
    take_trace();
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    assert_int_equal(n, STEPS * gx_exec_stats_get(run.program.exec).graph_nodes);
    for (size_t i = 0; i < n; i++) {
        check_unit(&activities[i], by);
        assert_int_equal(activities[i].kind, GX_TRACE_COPY);
        assert_int_equal(activities[i].source_device, TRACE_SOURCE);
        assert_int_equal(activities[i].target_device, TRACE_TARGET);
        assert_string_equal(gx_trace_text_at(run.trace, activities[i].name),
                            "copy peer to peer, GPU 2 to GPU 5");
        assert_int_equal(activities[i].bytes, 32);
        assert_int_equal(activities[i].stream, TRACE_STREAM);
        assert_int_equal(activities[i].node != GX_TRACE_NONE, mode == GX_MODE_GRAPH);
    }
    check_groups(activities, n, STEPS);
    assert_int_equal(run.losses.unknown, 0);
    close_traced();
}

static void copies_between_devices_belong_to_units(void **state)
{
    (void)state;
    check_peer_copies(GX_MODE_EAGER, GX_TRACE_BY_LAUNCH);
}

static void copies_between_devices_in_a_graph_belong_to_units(void **state)
{
    (void)state;
    check_peer_copies(GX_MODE_GRAPH, GX_TRACE_BY_CAPTURE);
}

static void copies_told_of_late_belong_to_their_window(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_traced_as(&with_peers, "");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    const uint64_t in = trace_now();
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    const gx_cupti_peer_copy copy = trace_peer_copy(in, in + 1, 0, 0);
    trace_fill(&copy, sizeof copy, 1);
    take_trace();
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 1);
    close_traced();
}

static void copies_between_devices_are_recorded_where_they_are_asked_for(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    const uint64_t start = trace_now();
    const gx_cupti_peer_copy copy = trace_peer_copy(start, trace_now(), 0, 0);
    trace_emit(&copy, sizeof copy);
    run_steps(GX_MODE_EAGER, 1);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    const gx_trace_activity *activities = gx_trace_activities(run.trace, &n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(activities[i].source_device, GX_TRACE_NONE);
    close_traced();
}

/* --- overhead --- */

enum { NO_SUCH_KIND = 1 << 24 };

static void emit_overhead(uint32_t kind)
{
    const uint64_t start = trace_now();
    gx_cupti_overhead overhead = trace_overhead(kind, start, trace_now());

#if CUPTI_API_VERSION >= 130000
    /* Whoever reads the record frees it. */
    if (kind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL)
        overhead.overheadData = calloc(1, 16);
    overhead.correlationId = kind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH ? 0 : 9;
#endif
    trace_emit(&overhead, sizeof overhead);
}

static void emit_every_overhead(void)
{
    for (uint32_t kind = 0; kind <= CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT;
         kind += 1 << 16)
        emit_overhead(kind);
    emit_overhead(CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
    emit_overhead(NO_SUCH_KIND);
}

/* Records of this kind in the trace; those that touch a window in *n_inside. */
static size_t count_overhead(const char *name, size_t *n_inside)
{
    size_t n, count = 0;
    const gx_trace_overhead *overheads = gx_trace_overheads(run.trace, &n);

    *n_inside = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(gx_trace_text_at(run.trace, overheads[i].name), name) != 0)
            continue;
        count++;
        *n_inside += overheads[i].inside != GX_TRACE_NONE;
        assert_true(overheads[i].end > overheads[i].start);
        assert_int_equal(overheads[i].process, getpid());
        assert_int_equal(overheads[i].thread, gx_thread_id());
        assert_int_equal(overheads[i].device, GX_TRACE_NONE);
#if CUPTI_API_VERSION >= 130000
        assert_int_equal(overheads[i].correlation,
                         strcmp(name, "buffer flush") == 0 ? GX_TRACE_NONE : 9);
#endif
    }
    return count;
}

static void overhead_of_every_kind_is_kept(void **state)
{
    static const char *const names[] = { "unknown",
                                         "driver compiler",
                                         "buffer flush",
                                         "instrumentation",
                                         "resource",
                                         "runtime-triggered module loading",
                                         "lazy function loading",
                                         "command buffer full",
                                         "activity buffer request",
                                         "UVM activity init",
                                         "overhead of kind 16777216" };
    size_t n, n_inside;
    gx_error err;

    (void)state;
    open_traced("");
    emit_every_overhead(); /* ahead of the windows */
    record_steps(GX_MODE_GRAPH, 1);
    emit_every_overhead(); /* between them */
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    emit_every_overhead();
    run_steps(GX_MODE_GRAPH, 1);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    emit_every_overhead(); /* behind them */
    take_trace();
    assert_true(gx_trace_tells_overhead(run.trace));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_int_equal(count_overhead(names[i], &n_inside), 3);
        assert_int_equal(n_inside, 1);
    }
    (void)gx_trace_overheads(run.trace, &n);
    assert_int_equal(n, 3 * ARRAY_SIZE(names));
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 2 * gx_exec_stats_get(run.program.exec).graph_nodes);
    assert_int_equal(run.losses.unknown, 0);
    assert_int_equal(run.losses.corrupt, 0);
    assert_int_equal(run.losses.dropped, 0);
    close_traced();
}

static void overhead_is_of_whom_its_record_names(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    const uint64_t now = trace_now();
    gx_cupti_overhead of_device = trace_overhead(1 << 16, now, now + 1);
    gx_cupti_overhead of_none = of_device;
    of_device.objectKind = CUPTI_ACTIVITY_OBJECT_STREAM;
    of_device.objectId.dcs.deviceId = 3;
    of_none.objectKind = CUPTI_ACTIVITY_OBJECT_UNKNOWN;
    trace_emit(&of_device, sizeof of_device);
    trace_emit(&of_none, sizeof of_none);
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    const gx_trace_overhead *overheads = gx_trace_overheads(run.trace, &n);
    assert_int_equal(n, 2);
    assert_int_equal(overheads[0].device, 3);
    assert_int_equal(overheads[1].device, GX_TRACE_NONE);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(overheads[i].thread, GX_TRACE_NONE);
        assert_int_equal(overheads[i].process, getpid());
    }
    close_traced();
}

/* As records of all other kinds. */
static void overhead_that_cannot_be_true_is_counted(void **state)
{
    gx_trace_dropped dropped;
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    run_steps(GX_MODE_EAGER, 1);
    const uint64_t now = trace_now();
    const gx_cupti_overhead backwards = trace_overhead(1 << 16, now + 8, now + 3);
    trace_emit(&backwards, sizeof backwards);
    const gx_cupti_overhead untimed = trace_overhead(1 << 16, 0, 0);
    trace_emit(&untimed, sizeof untimed);
    const gx_cupti_overhead endless = trace_overhead(1 << 16, now, UINT64_MAX);
    trace_emit(&endless, sizeof endless);
    const gx_cupti_overhead true_one = trace_overhead(1 << 16, now, now + 1);
    trace_emit(&true_one, sizeof true_one);
    trace_fill(&true_one, sizeof true_one / 2, 1);
    (void)trace_now();
    assert_ok(gx_profiler_stop(run.profiler, &err), &err);
    take_trace();
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    dropped = gx_trace_dropped_get(run.trace);
    assert_int_equal(dropped.no_time, 1);
    assert_int_equal(dropped.backwards, 1);
    assert_int_equal(run.losses.corrupt, 2); /* the endless one and the half one */
    (void)gx_trace_overheads(run.trace, &n);
    assert_int_equal(n, 1);
    close_traced();
}

static void without_records_of_overhead_none_is_known(void **state)
{
    size_t n;

    (void)state;
    open_traced("overhead=27");
    emit_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
    record_steps(GX_MODE_GRAPH, 2);
    take_trace();
    assert_false(gx_trace_tells_overhead(run.trace));
    (void)gx_trace_overheads(run.trace, &n);
    assert_int_equal(n, 0);
    (void)gx_trace_activities(run.trace, &n);
    assert_int_equal(n, 2 * gx_exec_stats_get(run.program.exec).graph_nodes);
    close_traced();
}

/* Hands over more buffers of nothing but overhead than are kept; the last start. */
static int64_t fill_with_overhead(void)
{
    enum { PER_BUFFER = 1000, N_BUFFERS = 3 * GX_NEWEST_OVERHEADS / PER_BUFFER };
    uint64_t now = 0;

    for (int i = 0; i < N_BUFFERS; i++) {
        now = trace_now();
        const gx_cupti_overhead overhead = trace_overhead(1 << 16, now, now + 1);
        trace_fill(&overhead, sizeof overhead, PER_BUFFER);
    }
    return (int64_t)now;
}

/* A program may run for days ahead of a window, and after it. */
static void the_newest_overhead_ahead_of_a_window_is_kept(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_traced("");
    const int64_t first = (int64_t)trace_now();
    const int64_t last = fill_with_overhead();
    record_steps(GX_MODE_GRAPH, 1);
    (void)fill_with_overhead();
    take_trace();
    assert_ok(gx_trace_finish(run.trace, &err), &err);
    const gx_trace_overhead *overheads = gx_trace_overheads(run.trace, &n);
    assert_in_range(n, GX_NEWEST_OVERHEADS, 2 * GX_NEWEST_OVERHEADS);
    assert_int_equal(overheads[n - 1].start, last);
    assert_true(overheads[0].start > first + (last - first) / 4);
    assert_int_equal(run.losses.dropped, 0);
    close_traced();
}

static void what_comes_with_overhead_is_freed_without_a_trace(void **state)
{
    gx_error err;

    (void)state;
    open_traced("");
    emit_every_overhead();
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    emit_every_overhead();
    gx_profiler_free(run.profiler);
    run.profiler = NULL;
    close_traced();
}

/* --- records that cannot be read --- */

/* What comes with the overhead of two buffers of two records. */
static void *told[4];
static int n_freed;
static bool text_fails;

void __real_free(void *block);
void __wrap_free(void *block);
gx_status __real_gx_trace_text(gx_trace *trace, const char *bytes, size_t length,
                               uint32_t *text, gx_error *err);
gx_status __wrap_gx_trace_text(gx_trace *trace, const char *bytes, size_t length,
                               uint32_t *text, gx_error *err);

void __wrap_free(void *block)
{
    for (size_t i = 0; block && i < ARRAY_SIZE(told); i++)
        if (told[i] == block) {
            told[i] = NULL;
            n_freed++;
        }
    __real_free(block);
}

gx_status __wrap_gx_trace_text(gx_trace *trace, const char *bytes, size_t length,
                               uint32_t *text, gx_error *err)
{
    if (text_fails)
        return GX_FAIL(err, GX_ERR_LIMIT, "too much text");
    return __real_gx_trace_text(trace, bytes, length, text, err);
}

#if CUPTI_API_VERSION >= 130000
static void what_comes_with_overhead_is_freed_after_a_failure(void **state)
{
    gx_cupti_overhead pair[2];
    gx_error err;

    (void)state;
    open_traced("");
    assert_ok(gx_profiler_start(run.profiler, &err), &err);
    const uint64_t now = trace_now();
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        pair[i % 2] =
            trace_overhead(CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, now, now + 1);
        pair[i % 2].overheadData = told[i] = calloc(1, 16);
        if (i % 2)
            trace_fill(pair, sizeof pair, 1);
    }
    text_fails = true;
    assert_fails(gx_profiler_stop(run.profiler, &err), GX_ERR_LIMIT, &err, "text");
    text_fails = false;
    assert_int_equal(n_freed, ARRAY_SIZE(told));
    close_traced();
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_between_devices_belong_to_units),
        cmocka_unit_test(copies_between_devices_in_a_graph_belong_to_units),
        cmocka_unit_test(copies_told_of_late_belong_to_their_window),
        cmocka_unit_test(copies_between_devices_are_recorded_where_they_are_asked_for),
        cmocka_unit_test(overhead_of_every_kind_is_kept),
        cmocka_unit_test(overhead_is_of_whom_its_record_names),
        cmocka_unit_test(overhead_that_cannot_be_true_is_counted),
        cmocka_unit_test(without_records_of_overhead_none_is_known),
        cmocka_unit_test(the_newest_overhead_ahead_of_a_window_is_kept),
#if CUPTI_API_VERSION >= 130000
        cmocka_unit_test(what_comes_with_overhead_is_freed_after_a_failure),
#endif
        cmocka_unit_test(what_comes_with_overhead_is_freed_without_a_trace),
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
