/* From what was recorded to a trace: windows, calls once, units. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "profile_join.h"

enum { PROCESS = 5, THREAD = 6, OTHER_THREAD = 7 };

typedef struct joined {
    gx_trace *trace;
    gx_recorded recorded;
    gx_unit_spans units;
    gx_window window[3];
    size_t n_windows;
} joined;

static int set_up(void **state)
{
    joined *made = calloc(1, sizeof *made);

    if (!made || !(made->trace = gx_trace_create()))
        return -1;
    made->recorded.activity = calloc(64, sizeof *made->recorded.activity);
    made->recorded.call = calloc(64, sizeof *made->recorded.call);
    made->recorded.overhead = calloc(64, sizeof *made->recorded.overhead);
    made->units.span = calloc(64, sizeof *made->units.span);
    made->window[0] = (gx_window){ .start = 1000, .end = 2000, .waited = 2100 };
    made->n_windows = 1;
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    joined *made = *state;

    gx_trace_free(made->trace);
    free(made->recorded.activity);
    free(made->recorded.call);
    free(made->recorded.overhead);
    free(made->units.span);
    free(made);
    return 0;
}

static void add_call(joined *made, const char *name, bool driver, int64_t start,
                     int64_t end, int64_t correlation)
{
    gx_recorded_call *call = &made->recorded.call[made->recorded.n_calls++];
    gx_error err;

    *call = (gx_recorded_call){ .call = { .start = start,
                                          .end = end,
                                          .process = PROCESS,
                                          .thread = THREAD,
                                          .correlation = correlation },
                                .driver = driver };
    assert_ok(gx_trace_text(made->trace, name, strlen(name), &call->call.name, &err),
              &err);
}

static gx_trace_activity *add_activity(joined *made, int64_t start, int64_t correlation)
{
    gx_trace_activity *activity = &made->recorded.activity[made->recorded.n_activities++];

    *activity = gx_trace_activity_none();
    activity->process = PROCESS;
    activity->start = start;
    activity->end = start + 1;
    activity->correlation = correlation;
    return activity;
}

static void add_unit(joined *made, int64_t thread, int64_t start, int64_t end,
                     int32_t group)
{
    made->units.span[made->units.n++] = (gx_unit_span){
        .thread = thread, .start = start, .end = end, .group = group, .lane = group % 2
    };
}

static void add_node(joined *made, int64_t id, int64_t original, int64_t time,
                     int64_t thread)
{
    const gx_trace_node node = {
        .id = id, .original = original, .time = time, .process = PROCESS, .thread = thread
    };
    gx_error err;

    assert_ok(gx_trace_add_node(made->trace, &node, &err), &err);
}

static void join(joined *made)
{
    gx_error err;

    assert_ok(gx_profile_join(&made->recorded, made->window, made->n_windows,
                              &made->units, made->trace, &err),
              &err);
}

static const gx_trace_activity *only_activity(const joined *made)
{
    size_t n;
    const gx_trace_activity *activities = gx_trace_activities(made->trace, &n);

    assert_int_equal(n, 1);
    return activities;
}

static void a_driver_call_inside_one_of_the_runtime_is_that_call(void **state)
{
    joined *made = *state;
    size_t n;

    add_call(made, "cuLaunchKernelEx", true, 1110, 1120, 900);
    add_call(made, "cudaLaunchKernelExC", false, 1100, 1130, 1);
    add_activity(made, 1200, 900);
    join(made);
    const gx_trace_call *calls = gx_trace_calls(made->trace, &n);
    assert_int_equal(n, 1);
    assert_string_equal(gx_trace_text_at(made->trace, calls->name),
                        "cudaLaunchKernelExC");
    assert_int_equal(only_activity(made)->correlation, 1);
    assert_int_equal(gx_profile_launches(made->trace), 1);
}

static void a_driver_call_with_the_same_number_leaves_it(void **state)
{
    joined *made = *state;

    add_call(made, "cudaLaunchKernelExC", false, 1100, 1130, 1);
    add_call(made, "cuLaunchKernelEx", true, 1110, 1120, 1);
    add_activity(made, 1200, 1);
    join(made);
    assert_int_equal(only_activity(made)->correlation, 1);
    assert_int_equal(gx_profile_launches(made->trace), 1);
}

static void a_driver_call_by_itself_is_kept(void **state)
{
    joined *made = *state;
    size_t n;

    add_call(made, "cudaLaunchKernelExC", false, 1100, 1130, 1);
    add_call(made, "cuLaunchKernelEx", true, 1140, 1150, 2);
    add_call(made, "cuLaunchKernelEx", true, 1110, 1120, 3);
    made->recorded.call[2].call.thread = OTHER_THREAD;
    add_activity(made, 1200, 2);
    join(made);
    (void)gx_trace_calls(made->trace, &n);
    assert_int_equal(n, 3);
    assert_int_equal(only_activity(made)->correlation, 2);
    assert_int_equal(gx_profile_launches(made->trace), 3);
}

static void what_began_in_no_window_is_left_out(void **state)
{
    static const int64_t starts[] = { 900, 1000, 1500, 2000, 2001, 2999, 3000, 3500 };
    joined *made = *state;
    size_t n;

    made->window[1] = (gx_window){ .start = 3000, .end = 3100, .waited = 3200 };
    made->n_windows = 2;
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        add_call(made, "cudaLaunchKernel", false, starts[i], starts[i] + 1,
                 (int64_t)i + 1);
        add_activity(made, starts[i] + 2, (int64_t)i + 1);
    }
    join(made);
    const gx_trace_call *calls = gx_trace_calls(made->trace, &n);
    assert_int_equal(n, 4);
    assert_int_equal(calls[0].start, 1000);
    assert_int_equal(calls[1].start, 1500);
    assert_int_equal(calls[2].start, 2000);
    assert_int_equal(calls[3].start, 3000);
}

static void work_without_a_call_belongs_to_the_window_that_it_began_in(void **state)
{
    joined *made = *state;

    add_activity(made, 999, GX_TRACE_NONE);
    add_activity(made, 2050, GX_TRACE_NONE); /* the window waited for it */
    add_activity(made, 2101, GX_TRACE_NONE);
    join(made);
    assert_int_equal(only_activity(made)->start, 2050);
}

static void work_of_a_call_in_the_window_is_kept_whatever_its_time(void **state)
{
    joined *made = *state;

    add_call(made, "cudaLaunchKernel", false, 1100, 1101, 1);
    add_activity(made, 3, 1);
    join(made);
    assert_int_equal(only_activity(made)->start, 3);
}

static void eager_work_has_the_unit_around_its_call(void **state)
{
    joined *made = *state;

    add_unit(made, THREAD, 1050, 1090, 3);
    add_unit(made, THREAD, 1095, 1150, 4);
    add_unit(made, OTHER_THREAD, 1095, 1150, 9);
    add_call(made, "cudaLaunchKernel", false, 1100, 1101, 1);
    add_activity(made, 1170, 1);
    join(made);
    assert_int_equal(only_activity(made)->group, 4);
    assert_int_equal(only_activity(made)->lane, 0);
    assert_int_equal(only_activity(made)->body, 0);
}

static void work_outside_of_units_has_no_group(void **state)
{
    joined *made = *state;

    add_unit(made, THREAD, 1050, 1090, 3);
    add_call(made, "cudaMemcpyAsync", false, 1100, 1101, 1);
    add_activity(made, 1170, 1);
    join(made);
    assert_int_equal(only_activity(made)->group, GX_TRACE_NONE);
    assert_int_equal(only_activity(made)->body, GX_TRACE_NONE);
}

/* A graph that sits in another as a child: its nodes are clones, and instantiated they
 * are clones of clones. The range was open before any window, on another thread. */
static void a_replayed_node_has_the_unit_that_captured_it(void **state)
{
    joined *made = *state;

    add_unit(made, OTHER_THREAD, 10, 20, 5);
    add_unit(made, THREAD, 1095, 1150, 1);
    add_node(made, 100, GX_TRACE_NONE, 15, OTHER_THREAD);
    add_node(made, 200, 100, 30, OTHER_THREAD);
    add_node(made, 300, GX_TRACE_NONE, 40, THREAD); /* the same clone, told twice */
    add_node(made, 300, 200, 40, THREAD);
    add_call(made, "cudaGraphLaunch", false, 1100, 1101, 1);
    add_activity(made, 1170, 1)->node = 300;
    join(made);
    assert_int_equal(only_activity(made)->group, 5);
    assert_int_equal(only_activity(made)->lane, 1);
}

static void clones_that_go_round_in_circles_lead_nowhere(void **state)
{
    joined *made = *state;

    add_unit(made, THREAD, 10, 20, 5);
    add_node(made, 100, 200, 15, THREAD);
    add_node(made, 200, 100, 15, THREAD);
    add_call(made, "cudaGraphLaunch", false, 1100, 1101, 1);
    add_activity(made, 1170, 1)->node = 100;
    join(made);
    assert_int_equal(only_activity(made)->group, GX_TRACE_NONE);
}

/* --- overhead --- */

static void add_overhead(joined *made, int64_t start, int64_t end, int64_t correlation)
{
    made->recorded.overhead[made->recorded.n_overheads++] = (gx_trace_overhead){
        .start = start, .end = end, .process = PROCESS, .correlation = correlation
    };
}

static void overhead_is_told_inside_windows_and_ahead_of_them(void **state)
{
    static const struct {
        int64_t start, end, inside, told_end;
    } cases[] = {
        { 100, 200, GX_TRACE_NONE, 200 },    /* ahead of all windows */
        { 900, 1100, 100, 1100 },            /* lasts into one */
        { 1000, 1100, 100, 1100 },           /* within it */
        { 2050, 2060, 10, 2060 },            /* while the device was waited for */
        { 2090, 2200, 10, 2200 },            /* lasts beyond it */
        { 1500, 1500, 0, 1500 },             /* of no length, within it */
        { 2101, 2900, GX_TRACE_NONE, 2900 }, /* between two */
        { 2000, 3050, 150, 3050 },           /* in both */
        { 900, 9000, 2200, 4100 },           /* around both; the rest is that of ending */
        { 1200, 1100, GX_TRACE_NONE, 1100 }, /* ends before it starts */
        { 4100, 4200, 0, 4100 },             /* at the last end */
    };
    joined *made = *state;
    size_t n;

    made->window[1] = (gx_window){ .start = 3000, .end = 4000, .waited = 4100 };
    made->n_windows = 2;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        add_overhead(made, cases[i].start, cases[i].end, GX_TRACE_NONE);
    add_overhead(made, 4101, 4102, GX_TRACE_NONE); /* of ending */
    join(made);
    const gx_trace_overhead *overheads = gx_trace_overheads(made->trace, &n);
    assert_int_equal(n, ARRAY_SIZE(cases));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(overheads[i].start, cases[i].start);
        assert_int_equal(overheads[i].end, cases[i].told_end);
        assert_int_equal(overheads[i].inside, cases[i].inside);
    }
}

static void overhead_without_a_window_is_left_out(void **state)
{
    joined *made = *state;
    size_t n;

    made->n_windows = 0;
    add_overhead(made, 100, 200, GX_TRACE_NONE);
    join(made);
    (void)gx_trace_overheads(made->trace, &n);
    assert_int_equal(n, 0);
}

static void overhead_in_a_driver_call_is_in_the_call_that_it_serves(void **state)
{
    joined *made = *state;
    size_t n;

    add_call(made, "cuLaunchKernel", true, 1120, 1130, 1001);
    add_call(made, "cudaLaunchKernel", false, 1100, 1150, 1);
    add_overhead(made, 1122, 1128, 1001);
    join(made);
    assert_int_equal(gx_trace_overheads(made->trace, &n)->correlation, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_driver_call_inside_one_of_the_runtime_is_that_call),
        TEST(a_driver_call_with_the_same_number_leaves_it),
        TEST(a_driver_call_by_itself_is_kept),
        TEST(what_began_in_no_window_is_left_out),
        TEST(work_without_a_call_belongs_to_the_window_that_it_began_in),
        TEST(work_of_a_call_in_the_window_is_kept_whatever_its_time),
        TEST(eager_work_has_the_unit_around_its_call),
        TEST(work_outside_of_units_has_no_group),
        TEST(a_replayed_node_has_the_unit_that_captured_it),
        TEST(clones_that_go_round_in_circles_lead_nowhere),
        TEST(overhead_is_told_inside_windows_and_ahead_of_them),
        TEST(overhead_without_a_window_is_left_out),
        TEST(overhead_in_a_driver_call_is_in_the_call_that_it_serves),
    };

    return cmocka_run_group_tests_name("profile_join", tests, NULL, NULL);
}
