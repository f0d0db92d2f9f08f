/* Traces cut into steps, and the gaps between ops. */
#include "profile_made.h"

static const gx_profile_schedule ten = { .active = 10, .repeat = 1 };
static const gx_profile_schedule two_by_two = { .active = 2, .repeat = 2 };

static void steps_are_the_ranges_in_which_work_was_launched(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_GRAPH);

    (void)state;
    add_range(pass.trace, "capture", 0, 500);
    add_range(pass.trace, "step", 10, 490);  /* of the capture */
    add_range(pass.trace, "step", 600, 700); /* of warming up */
    add_launched(pass.trace, "before", 710, 720, 730, GX_TRACE_NONE);
    add_plain_steps(pass.trace, 3, 50, false);
    finish_pass(&pass, &ten);
    assert_int_equal(pass.n_steps, 3);
    assert_int_equal(pass.found, 7);
    assert_int_equal(pass.outside, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pass.step[i].start, 1000 * (i + 1));
        assert_int_equal(pass.step[i].end, 1000 * (i + 1) + 250);
        assert_int_equal(pass.step[i].busy, 200);
        assert_int_equal(pass.step[i].idle, 50);
        assert_int_equal(pass.step[i].n_kernels, 2);
        assert_int_equal(pass.step[i].step_gap, i == 2 ? -1 : 750);
    }
    drop_pass(&pass);
}

static void ranges_of_others_are_no_steps(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);
    const gx_trace_range range = { .name = text(pass.trace, "step"),
                                   .domain = text(pass.trace, "other"),
                                   .start = 0,
                                   .end = 10000,
                                   .process = 1,
                                   .thread = 10 };

    (void)state;
    assert_ok(gx_trace_add_range(pass.trace, &range, &err), &err);
    add_launched(pass.trace, "kernel", 100, 120, 130, 0);
    finish_pass(&pass, &ten);
    assert_int_equal(pass.n_steps, 0);
    assert_int_equal(pass.outside, 1);
    drop_pass(&pass);
}

/* One gap of each class in a step, and one to the next step. */
static void gaps_inside_a_step_are_told_by_class(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);
    gx_trace *const trace = pass.trace;
    const gx_profile_step *step;

    (void)state;
    add_range(trace, "step", 900, 1500);
    add_launched(trace, "a", 950, 1000, 1100, 0);
    add_launched(trace, "b", 1105, 1120, 1200, 0); /* 20 host */
    add_call(trace, "cudaLaunchKernel", 1150, 1230, 1);
    add(trace, made_activity(trace, "c", 1240, 1300, 1, 1));             /* 40 launch */
    add_launched(trace, "d", 1235, 1303, 1350, 1);                       /* 3 device */
    add(trace, made_activity(trace, "e", 1357, 1400, 1, GX_TRACE_NONE)); /* no step */
    add_range(trace, "step", 1600, 2500);
    add_launched(trace, "a", 1650, 1700, 1800, 0);
    add_launched(trace, "b", 1810, 1850, 1900, 0); /* 50 host */
    finish_pass(&pass, &ten);
    assert_int_equal(pass.n_steps, 2);
    step = &pass.step[0];
    assert_int_equal(step->gaps[GX_GAP_HOST].ns, 20);
    assert_int_equal(step->gaps[GX_GAP_LAUNCH].ns, 40);
    assert_int_equal(step->gaps[GX_GAP_DEVICE].ns, 3);
    assert_int_equal(step->gaps[GX_GAP_UNKNOWN].ns, 0);
    assert_int_equal(step->idle, 63);
    assert_int_equal(step->busy, 350 - 63);
    assert_int_equal(step->step_gap, 350);
    assert_int_equal(pass.step[1].gaps[GX_GAP_HOST].ns, 50);
    assert_int_equal(pass.outside, 1);
    drop_pass(&pass);
}

static void windows_are_not_joined_by_a_step_gap(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_GRAPH);
    gx_summary summary;

    (void)state;
    add_plain_steps(pass.trace, 4, 50, false);
    finish_pass(&pass, &two_by_two);
    assert_int_equal(pass.n_steps, 4);
    assert_int_equal(pass.step[0].step_gap, 750);
    assert_int_equal(pass.step[1].step_gap, -1);
    assert_int_equal(pass.step[2].step_gap, 750);
    assert_int_equal(pass.step[3].step_gap, -1);
    assert_int_equal(pass.step_gaps[GX_GAP_HOST].n + pass.step_gaps[GX_GAP_DEVICE].n, 2);
    assert_int_equal(pass.step_gaps[GX_GAP_HOST].ns + pass.step_gaps[GX_GAP_DEVICE].ns,
                     1500);
    assert_ok(gx_profile_figure_of(&pass, GX_FIGURE_STEP, &summary, &err), &err);
    assert_int_equal(summary.n, 2);
    assert_true(summary.median == 1000);
    assert_ok(gx_profile_figure_of(&pass, GX_FIGURE_SPAN, &summary, &err), &err);
    assert_int_equal(summary.n, 4);
    assert_true(summary.median == 250 && summary.p5 == 250 && summary.p95 == 250);
    drop_pass(&pass);
}

static void calls_that_wait_are_counted_inside_steps_alone(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);

    (void)state;
    add_plain_steps(pass.trace, 2, 50, false);
    add_call(pass.trace, "cudaStreamSynchronize_v3020", 1300, 1400, 1);
    add_call(pass.trace, "cudaMemcpy_v3020", 2300, 2310, 2);
    add_call(pass.trace, "cudaMemcpyAsync_v3020", 2320, 2330, 3);
    add_call(pass.trace, "cudaDeviceSynchronize_v3020", 5000, 5010, 4);
    finish_pass(&pass, &ten);
    assert_int_equal(pass.n_waiting_calls, 2);
    drop_pass(&pass);
}

static const gx_profile_unit units[2] = { { .name = "fc1", .alternative = "lt" },
                                          { .name = "fc2", .alternative = "lt" } };

static void pairs_of_ops_have_their_idle_time(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);
    gx_trace *const trace = pass.trace;

    (void)state;
    add_range(trace, "step", 900, 2000);
    add_launched(trace, "a", 950, 1000, 1100, 0);
    add_launched(trace, "b", 1105, 1120, 1200, 1);             /* fc1 -> fc2: 20 host */
    add_launched(trace, "b", 1205, 1300, 1400, 1);             /* fc2 -> fc2: 100 host */
    add_launched(trace, "x", 1301, 1402, 1450, GX_TRACE_NONE); /* fc2 -> ?: 2 device */
    add_range(trace, "step", 2900, 4000);
    add_launched(trace, "a", 2950, 3000, 3100, 0);
    add_launched(trace, "b", 3105, 3140, 3200, 1); /* fc1 -> fc2: 40 host */
    finish_pass(&pass, &ten);
    assert_ok(gx_profile_ops(&pass, units, 2, &err), &err);
    assert_ok(gx_profile_pairs(&pass, &err), &err);
    assert_int_equal(pass.n_pairs, 3);
    assert_int_equal(pass.pair[0].total_ns, 100);
    assert_int_equal(pass.pair[0].before, 1);
    assert_int_equal(pass.pair[0].after, 1);
    assert_int_equal(pass.pair[0].median_ns, 50); /* the second step has none */
    assert_int_equal(pass.pair[1].total_ns, 60);
    assert_int_equal(pass.pair[1].before, 0);
    assert_int_equal(pass.pair[1].after, 1);
    assert_int_equal(pass.pair[1].median_ns, 30);
    assert_int_equal(pass.pair[1].gaps[GX_GAP_HOST].n, 2);
    assert_int_equal(pass.pair[2].after, 2);
    assert_true(pass.op[2].unit == SIZE_MAX);
    assert_int_equal(pass.pair[2].gaps[GX_GAP_DEVICE].ns, 2);
    drop_pass(&pass);
}

typedef struct lane_work {
    int64_t start, end;
    int lane;
} lane_work;

static double overlap_of(const lane_work *work, size_t n)
{
    gx_profile_pass pass = start_pass(GX_MODE_GRAPH);
    gx_trace *const trace = pass.trace;

    add_range(trace, "step", 900, 1000);
    add_call(trace, "cudaGraphLaunch", 950, 960, 1);
    for (size_t i = 0; i < n; i++) {
        gx_trace_activity *const activity =
            made_activity(trace, "k", work[i].start, work[i].end, 0, 1);

        activity->lane = work[i].lane;
        activity->stream = 7 + work[i].lane;
        add(trace, activity);
    }
    finish_pass(&pass, &ten);
    assert_ok(gx_profile_overlap(&pass, &err), &err);
    const double overlap = pass.lane_overlap_ns;

    drop_pass(&pass);
    return overlap;
}

static void lanes_overlap_for_as_long_as_both_run(void **state)
{
    static const lane_work two[] = { { 1000, 1100, 0 }, { 1010, 1020, 1 },
                                     { 1030, 1040, 1 }, { 1050, 1130, 1 },
                                     { 1090, 1120, 0 }, { 1200, 1300, 1 } };
    /* Lanes 1 and 2 under lane 0, which ends before them; lane 2 alone beside lane 0. */
    static const lane_work three[] = { { 1000, 1050, 0 }, { 1010, 1060, 1 },
                                       { 1020, 1070, 2 }, { 1100, 1140, 2 },
                                       { 1110, 1120, 0 }, { 1115, 1118, 1 } };

    (void)state;
    assert_true(overlap_of(two, ARRAY_SIZE(two)) == 10 + 10 + 70);
    assert_true(overlap_of(three, ARRAY_SIZE(three)) == 50 + 10);
}

static void one_lane_has_no_overlap(void **state)
{
    gx_profile_pass pass = start_pass(GX_MODE_GRAPH);

    (void)state;
    add_plain_steps(pass.trace, 2, 50, false);
    finish_pass(&pass, &ten);
    assert_ok(gx_profile_overlap(&pass, &err), &err);
    assert_true(pass.lane_overlap_ns < 0);
    drop_pass(&pass);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_ranges_in_which_work_was_launched),
        cmocka_unit_test(ranges_of_others_are_no_steps),
        cmocka_unit_test(gaps_inside_a_step_are_told_by_class),
        cmocka_unit_test(windows_are_not_joined_by_a_step_gap),
        cmocka_unit_test(calls_that_wait_are_counted_inside_steps_alone),
        cmocka_unit_test(pairs_of_ops_have_their_idle_time),
        cmocka_unit_test(lanes_overlap_for_as_long_as_both_run),
        cmocka_unit_test(one_lane_has_no_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
