/* Traces built in code: gaps and their classes, calls, tables. */
#include <stdio.h>

#include "support_trace_made.h"

/* --- gaps --- */

static void gaps_get_their_class_from_the_call_behind(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    add_kernel(trace, 100, 110, GX_TRACE_NONE);
    add_call(trace, "cudaLaunchKernel", 111, 115, 2); /* begins after the end: host */
    add_kernel(trace, 120, 130, 2);
    add_call(trace, "cudaLaunchKernel", 130, 140, 3); /* under way at 130: launch */
    add_kernel(trace, 135, 150, 3);
    add_call(trace, "cudaLaunchKernel", 132, 150, 4); /* returned at 150: device */
    add_kernel(trace, 157, 160, 4);
    add_kernel(trace, 161, 170, 99); /* no such call */
    figures = finish(trace, NULL);
    const gx_trace_device *const device = &figures->device[0];
    assert_int_equal(device->span, 70);
    assert_int_equal(device->idle, 10 + 5 + 7 + 1);
    assert_int_equal(device->busy, device->span - device->idle);
    assert_int_equal(device->n_gaps, 4);
    for (int c = 0; c < GX_GAP_CLASSES; c++)
        assert_int_equal(device->gaps[c].n, 1);
    assert_int_equal(device->gaps[GX_GAP_HOST].ns, 10);
    assert_int_equal(device->gaps[GX_GAP_LAUNCH].ns, 5);
    assert_int_equal(device->gaps[GX_GAP_DEVICE].ns, 7);
    assert_int_equal(device->gaps[GX_GAP_UNKNOWN].ns, 1);
    assert_int_equal(device->largest[0], 0);
    assert_int_equal(device->n_largest, 4);
    gx_trace_figures_free(figures);
}

static void a_gap_inside_one_graph_launch_is_the_devices(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    add_call(trace, "cudaGraphLaunch_v10000", 0, 1000, 5);
    add_kernel(trace, 100, 110, 5);
    add_kernel(trace, 120, 130, 5); /* the call is still under way */
    figures = finish(trace, NULL);
    assert_int_equal(figures->device[0].gaps[GX_GAP_DEVICE].n, 1);
    assert_int_equal(figures->n_replayed, 2);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 1);
    gx_trace_figures_free(figures);
}

static void work_that_overlaps_is_busy_once(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    add_kernel(trace, 10, 100, GX_TRACE_NONE);
    add_kernel(trace, 20, 30, GX_TRACE_NONE);   /* inside */
    add_kernel(trace, 90, 110, GX_TRACE_NONE);  /* overlaps */
    add_kernel(trace, 110, 120, GX_TRACE_NONE); /* touches */
    add_kernel(trace, 121, 121, GX_TRACE_NONE); /* lasts no time, 1 ns later */
    figures = finish(trace, NULL);
    assert_int_equal(figures->device[0].busy, 110);
    assert_int_equal(figures->device[0].n_gaps, 1);
    assert_int_equal(figures->device[0].stream[0].n_distances, 1);
    assert_int_equal(figures->device[0].stream[0].median_ns, 1);
    gx_trace_figures_free(figures);
}

static void devices_and_processes_stand_apart(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_trace_activity other;

    add_kernel(trace, 10, 20, GX_TRACE_NONE);
    add_kernel(trace, 90, 100, GX_TRACE_NONE);
    other = kernel(30, 40, GX_TRACE_NONE);
    other.device = 1;
    assert_ok(gx_trace_add_activity(trace, &other, &err), &err);
    other = kernel(50, 60, GX_TRACE_NONE);
    other.process = 2;
    assert_ok(gx_trace_add_activity(trace, &other, &err), &err);
    figures = finish(trace, NULL);
    assert_int_equal(figures->n_devices, 3);
    assert_int_equal(figures->device[0].idle, 70);
    assert_int_equal(figures->device[1].idle, 0);
    assert_int_equal(figures->device[2].idle, 0);
    gx_trace_figures_free(figures);
}

/* Against a count of every nanosecond. */
static void busy_and_gaps_are_those_of_a_slow_count(void **state)
{
    enum { LENGTH = 2000, KERNELS = 60 };
    gx_trace *const trace = *state;
    test_random random = test_random_start(test_seed());
    bool busy[LENGTH + 1] = { false };
    int64_t first = LENGTH, last = 0, n_busy = 0, n_gaps = 0;
    gx_trace_figures *figures;

    for (int i = 0; i < KERNELS; i++) {
        const int64_t start = test_random_int(&random, 1, LENGTH - 40);
        const int64_t end = start + test_random_int(&random, 1, 40);

        add_kernel(trace, start, end, GX_TRACE_NONE);
        for (int64_t t = start; t < end; t++)
            busy[t] = true;
        first = start < first ? start : first;
        last = end > last ? end : last;
    }
    for (int64_t t = first; t < last; t++) {
        n_busy += busy[t];
        n_gaps += !busy[t] && busy[t + 1];
    }
    figures = finish(trace, NULL);
    assert_int_equal(figures->device[0].span, last - first);
    assert_int_equal(figures->device[0].busy, n_busy);
    assert_int_equal(figures->device[0].n_gaps, n_gaps);
    gx_trace_figures_free(figures);
}

/* --- records that cannot be true --- */

static void impossible_records_are_dropped_and_counted(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_trace_dropped dropped;

    add_call(trace, "cudaLaunchKernel", 1000, 1010, 1);
    add_kernel(trace, 1005, 1020, 1); /* before the call returns: normal */
    add_kernel(trace, 0, 0, 1);
    add_kernel(trace, 1100, 1090, GX_TRACE_NONE);
    add_kernel(trace, 999, 1020, 1); /* before the call begins */
    figures = finish(trace, NULL);
    dropped = gx_trace_dropped_get(trace);
    assert_int_equal(dropped.no_time, 1);
    assert_int_equal(dropped.backwards, 1);
    assert_int_equal(dropped.before_call, 1);
    assert_int_equal(figures->device[0].n_activities, 1);
    assert_int_equal(figures->device[0].span, 15);
    gx_trace_figures_free(figures);
}

static gx_trace_overhead overhead(int64_t start, int64_t end, int64_t inside)
{
    return (gx_trace_overhead){ .start = start, .end = end, .inside = inside };
}

static void impossible_overhead_is_dropped_and_counted(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_overhead records[] = { overhead(0, 0, GX_TRACE_NONE),
                                          overhead(1100, 1090, GX_TRACE_NONE),
                                          overhead(1100, 1100, 0) };
    gx_trace_overhead odd = overhead(100, 200, 101);
    size_t n;

    assert_false(gx_trace_tells_overhead(trace));
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        assert_ok(gx_trace_add_overhead(trace, &records[i], &err), &err);
    assert_true(gx_trace_tells_overhead(trace));
    assert_fails(gx_trace_add_overhead(trace, &odd, &err), GX_ERR_DATA, &err, "101 ns");
    odd = overhead(INT64_MIN, 0, 0);
    assert_fails(gx_trace_add_overhead(trace, &odd, &err), GX_ERR_DATA, &err, "no clock");
    odd = overhead(0, INT64_MAX, 0);
    assert_fails(gx_trace_add_overhead(trace, &odd, &err), GX_ERR_DATA, &err, "no clock");
    gx_trace_figures_free(finish(trace, NULL));
    assert_int_equal(gx_trace_overheads(trace, &n)->start, 1100);
    assert_int_equal(n, 1);
    assert_int_equal(gx_trace_dropped_get(trace).no_time, 1);
    assert_int_equal(gx_trace_dropped_get(trace).backwards, 1);
}

/* It comes in any order: what is read late may have begun early. */
static void overhead_is_sorted_by_start(void **state)
{
    gx_trace *const trace = *state;
    static const int64_t starts[] = { 1300, 1100, 1200, 900 };
    size_t n;

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        const gx_trace_overhead made = overhead(starts[i], 2000, GX_TRACE_NONE);

        assert_ok(gx_trace_add_overhead(trace, &made, &err), &err);
    }
    gx_trace_figures_free(finish(trace, NULL));
    const gx_trace_overhead *const sorted = gx_trace_overheads(trace, &n);
    assert_int_equal(n, ARRAY_SIZE(starts));
    for (size_t i = 1; i < n; i++)
        assert_true(sorted[i - 1].start < sorted[i].start);
}

static void overhead_has_the_names_of_its_kinds(void **state)
{
    (void)state;
    assert_string_equal(gx_trace_overhead_name(0), "unknown");
    assert_string_equal(gx_trace_overhead_name(1), "driver compiler");
    assert_string_equal(gx_trace_overhead_name(1 << 16), "buffer flush");
    assert_string_equal(gx_trace_overhead_name(5 << 16), "lazy function loading");
    assert_string_equal(gx_trace_overhead_name(8 << 16), "UVM activity init");
    assert_null(gx_trace_overhead_name(9 << 16));
    assert_null(gx_trace_overhead_name(2));
    assert_null(gx_trace_overhead_name((5 << 16) + 1));
    assert_null(gx_trace_overhead_name(-(1 << 16)));
}

static void times_that_no_clock_shows_are_refused(void **state)
{
    gx_trace_activity activity = kernel(INT64_MIN, INT64_MAX, 1);
    const gx_trace_range range = { .start = INT64_MIN };

    assert_fails(gx_trace_add_activity(*state, &activity, &err), GX_ERR_DATA, &err,
                 "no clock");
    activity.start = 0;
    assert_fails(gx_trace_add_activity(*state, &activity, &err), GX_ERR_DATA, &err,
                 "no clock");
    assert_fails(gx_trace_add_range(*state, &range, &err), GX_ERR_DATA, &err, "no clock");
}

/* --- calls --- */

static void each_call_is_counted_once(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    add_call(trace, "cudaLaunchKernel_v7000", 10, 20, 1);
    add_call(trace, "cuLaunchKernelEx", 10, 18, 1); /* a twin, inside the other */
    add_call(trace, "cudaLaunchKernel", 30, 40, 2); /* captured: no work */
    add_call(trace, "cudaGraphLaunch_v10000", 50, 70, 3);
    add_call(trace, "cudaLaunchHostFunc", 80, 90, 4);
    add_kernel(trace, 15, 25, 1);
    add_kernel(trace, 60, 61, 3);
    add_kernel(trace, 62, 63, 3);
    figures = finish(trace, NULL);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 2);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].ns, 20);
    assert_int_equal(figures->calls_without_work[GX_TRACE_CALL_KERNEL], 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].ns, 20);
    assert_int_equal(figures->calls[GX_TRACE_CALL_OTHER].n, 1);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 3);
    gx_trace_figures_free(figures);
}

static void correlations_of_other_processes_do_not_count(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_call same = { .process = 3, .correlation = 1, .thread = 30 };
    gx_trace_activity activity = kernel(100, 110, 1);
    gx_trace_figures *figures;

    add_call(trace, "cudaLaunchKernel", 10, 20, 1);
    assert_ok(gx_trace_add_call(trace, &same, &err), &err);
    activity.process = 2;
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    figures = finish(trace, NULL);
    assert_int_equal(gx_trace_activities(trace, &(size_t){ 0 })[0].call, GX_TRACE_NONE);
    assert_int_equal(figures->calls[GX_TRACE_CALL_OTHER].n, 1); /* no twin of the other */
    gx_trace_figures_free(figures);
}

/* --- tables and texts --- */

static void ops_are_summed_by_name(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_trace_activity activity;

    for (int i = 1; i <= 40; i++) {
        activity = kernel(1000 * i, 1000 * i + i, GX_TRACE_NONE);
        activity.name = text(trace, i % 2 ? "odd" : "even");
        assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    }
    figures = finish(trace, NULL);
    assert_int_equal(figures->n_ops, 2);
    const gx_trace_op *const even = &figures->op[0];
    assert_string_equal(gx_trace_text_at(trace, even->name), "even");
    assert_int_equal(even->share.n, 20);
    assert_int_equal(even->share.ns, 420);
    assert_int_equal(even->median_ns, 21);
    assert_int_equal(even->p95_ns, 38);
    assert_int_equal(even->least_ns, 2);
    assert_int_equal(even->most_ns, 40);
    gx_trace_figures_free(figures);
}

static void texts_are_kept_clean_and_once(void **state)
{
    gx_trace *const trace = *state;
    uint32_t first, second;
    char name[32];

    assert_ok(gx_trace_text(trace, "a\0b\xFFz\n\xC3\xA9\xED\xA0\x80", 11, &first, &err),
              &err);
    assert_string_equal(gx_trace_text_at(trace, first),
                        "a\xEF\xBF\xBD"
                        "b\xEF\xBF\xBDz \xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_int_equal(text(trace, ""), 0);
    first = text(trace, "kernel 7");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "kernel %d", i);
        (void)text(trace, name);
    }
    second = text(trace, "kernel 7");
    assert_int_equal(first, second);
    assert_string_equal(gx_trace_text_at(trace, second), "kernel 7");
    assert_string_equal(gx_trace_text_at(trace, 1u << 30), "");
}

static void an_empty_trace_has_no_devices(void **state)
{
    gx_trace_figures *figures;

    assert_fails(gx_trace_figures_create(*state, NULL, &figures, &err), GX_ERR_STATE,
                 &err, "not finished");
    figures = finish(*state, NULL);
    assert_int_equal(figures->n_devices, 0);
    assert_int_equal(figures->n_ops, 0);
    gx_trace_figures_free(figures);
    assert_fails(gx_trace_finish(*state, &err), GX_ERR_STATE, &err, "finished");
}

/* Quadratic work would take hours. */
static void a_million_records_are_no_matter(void **state)
{
    enum { KERNELS = 300000 };
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    for (int64_t i = 1; i <= KERNELS; i++) {
        add_call(trace, "cudaLaunchKernel", 100 * i, 100 * i + 10, i);
        add_kernel(trace, 100 * i + 5, 100 * i + 50, i);
        add_range(trace, GX_TRACE_PUSH_POP, "op", 100 * i - 1, 100 * i + 11, 10);
    }
    add_range(trace, GX_TRACE_START_END, "all", 0, GX_TRACE_OPEN, 10);
    figures = finish(trace, NULL);
    assert_int_equal(figures->by[GX_TRACE_BY_LAUNCH].n, KERNELS);
    assert_int_equal(figures->device[0].n_gaps, KERNELS - 1);
    gx_trace_figures_free(figures);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gaps_get_their_class_from_the_call_behind),
        TEST(a_gap_inside_one_graph_launch_is_the_devices),
        TEST(work_that_overlaps_is_busy_once),
        TEST(devices_and_processes_stand_apart),
        TEST(busy_and_gaps_are_those_of_a_slow_count),
        TEST(impossible_records_are_dropped_and_counted),
        TEST(impossible_overhead_is_dropped_and_counted),
        TEST(overhead_is_sorted_by_start),
        TEST(overhead_has_the_names_of_its_kinds),
        TEST(times_that_no_clock_shows_are_refused),
        TEST(each_call_is_counted_once),
        TEST(correlations_of_other_processes_do_not_count),
        TEST(ops_are_summed_by_name),
        TEST(texts_are_kept_clean_and_once),
        TEST(an_empty_trace_has_no_devices),
        TEST(a_million_records_are_no_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
