/* Traces built in code: attribution to ranges, steps and windows. */

#include "support_trace_made.h"

/* --- attribution --- */

static void eager_work_belongs_to_the_innermost_range_of_its_thread(void **state)
{
    gx_trace *const trace = *state;

    add_range(trace, GX_TRACE_PUSH_POP, "outer", 0, 100, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "inner", 20, 40, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "elsewhere", 0, 1000, 11);
    add_range(trace, GX_TRACE_PUSH_POP, "open", 200, GX_TRACE_OPEN, 10);
    add_call(trace, "cudaLaunchKernel", 25, 30, 1);
    add_call(trace, "cudaLaunchKernel", 50, 60, 2);
    add_call(trace, "cudaLaunchKernel", 150, 160, 3);
    add_call(trace, "cudaLaunchKernel", 250, 260, 4);
    for (int i = 1; i <= 4; i++)
        add_kernel(trace, 1000 + 10 * i, 1005 + 10 * i, i);
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_string_equal(range_of(trace, 0), "inner");
    assert_string_equal(range_of(trace, 1), "outer");
    assert_string_equal(range_of(trace, 2), "none");
    assert_string_equal(range_of(trace, 3), "open");
    assert_int_equal(by_of(trace, 0), GX_TRACE_BY_LAUNCH);
}

static void start_end_ranges_count_where_no_push_pop_does(void **state)
{
    gx_trace *const trace = *state;

    add_range(trace, GX_TRACE_START_END, "early", 0, 100, 99);
    add_range(trace, GX_TRACE_START_END, "late", 50, 200,
              98); /* overlaps, other thread */
    add_range(trace, GX_TRACE_PUSH_POP, "pushed", 60, 70, 10);
    add_call(trace, "cudaLaunchKernel", 10, 11, 1);
    add_call(trace, "cudaLaunchKernel", 65, 66, 2);
    add_call(trace, "cudaLaunchKernel", 90, 91, 3);
    add_call(trace, "cudaLaunchKernel", 150, 151, 4);
    add_call(trace, "cudaLaunchKernel", 250, 251, 5);
    for (int i = 1; i <= 5; i++)
        add_kernel(trace, 1000 + 10 * i, 1005 + 10 * i, i);
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_string_equal(range_of(trace, 0), "early");
    assert_string_equal(range_of(trace, 1), "pushed");
    assert_string_equal(range_of(trace, 2), "late");
    assert_string_equal(range_of(trace, 3), "late");
    assert_string_equal(range_of(trace, 4), "none");
    assert_int_equal(by_of(trace, 2), GX_TRACE_BY_START_END);
}

/* Against trying every range; they cross each other as real ones must not. */
static void the_range_that_began_last_is_found_among_any(void **state)
{
    enum { SPANS = 40, QUERIES = 200, LATEST = 60 };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < 50; round++) {
        gx_trace_span spans[SPANS];
        gx_trace_query queries[QUERIES];

        for (int i = 0; i < SPANS; i++) {
            spans[i].key = test_random_int(&random, 0, 2);
            spans[i].start = test_random_int(&random, 0, LATEST);
            spans[i].end = spans[i].start + test_random_int(&random, 0, 15);
            spans[i].range = i;
        }
        for (int i = 0; i < QUERIES; i++)
            queries[i] = (gx_trace_query){ .key = test_random_int(&random, 0, 3),
                                           .time = test_random_int(&random, -5, LATEST),
                                           .index = i };
        assert_ok(gx_trace_cover(spans, SPANS, queries, QUERIES, &err), &err);
        for (int i = 0; i < QUERIES; i++) {
            int64_t began = -1, found = -1;

            for (int j = 0; j < SPANS; j++)
                if (spans[j].key == queries[i].key && spans[j].start <= queries[i].time &&
                    spans[j].end >= queries[i].time) {
                    began = spans[j].start > began ? spans[j].start : began;
                    if (spans[j].range == queries[i].range)
                        found = spans[j].start;
                }
            assert_int_equal(found, began);
            assert_true((queries[i].range == GX_TRACE_NONE) == (began == -1));
        }
    }
}

/* A clone has two rows; clones of clones are followed. */
static void replayed_nodes_belong_to_the_range_of_their_capture(void **state)
{
    gx_trace *const trace = *state;

    add_range(trace, GX_TRACE_PUSH_POP, "gemm", 10, 20, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "relu", 30, 40, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "instantiate", 50, 60, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "replay", 100, 200, 10);
    add_node(trace, 1, GX_TRACE_NONE, 15);
    add_node(trace, 2, GX_TRACE_NONE, 35);
    add_node(trace, 101, 1, 55);
    add_node(trace, 101, GX_TRACE_NONE, 55);
    add_node(trace, 102, GX_TRACE_NONE, 55);
    add_node(trace, 102, 2, 55);
    add_node(trace, 201, 101, 56); /* of a clone */
    add_call(trace, "cudaGraphLaunch", 110, 120, 9);
    add_node_kernel(trace, 130, 131, 9, 101);
    add_node_kernel(trace, 132, 133, 9, 102);
    add_node_kernel(trace, 134, 135, 9, 201);
    add_node_kernel(trace, 136, 137, 9, 777); /* unknown: only its launch is known */
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_string_equal(range_of(trace, 0), "gemm");
    assert_string_equal(range_of(trace, 1), "relu");
    assert_string_equal(range_of(trace, 2), "gemm");
    assert_string_equal(range_of(trace, 3), "replay");
    assert_int_equal(by_of(trace, 0), GX_TRACE_BY_CAPTURE);
    assert_int_equal(by_of(trace, 3), GX_TRACE_BY_REPLAY);
}

static void clones_that_go_in_circles_end(void **state)
{
    gx_trace *const trace = *state;

    add_node(trace, 1, 2, 15);
    add_node(trace, 2, 1, 15);
    add_node_kernel(trace, 130, 131, GX_TRACE_NONE, 1);
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_string_equal(range_of(trace, 0), "none");
}

static void nodes_from_before_the_window_are_said(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;

    add_node(trace, 1, GX_TRACE_NONE, -500);
    add_node(trace, 101, 1, -400);
    add_range(trace, GX_TRACE_PUSH_POP, "step", 100, 200, 10);
    add_call(trace, "cudaGraphLaunch", 110, 120, 9);
    add_node_kernel(trace, 130, 135, 9, 101);
    figures = finish(trace, NULL);
    assert_int_equal(figures->nodes_before_window.n, 1);
    assert_int_equal(figures->nodes_before_window.ns, 5);
    assert_string_equal(range_of(trace, 0), "step");
    gx_trace_figures_free(figures);
}

/* --- steps and windows --- */

static void gaps_between_steps_stand_apart(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_options iterations = { .step = "iteration" };
    gx_trace_figures *figures;

    add_range(trace, GX_TRACE_PUSH_POP, "iteration 1", 0, 100, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "iteration 2", 100, 200, 10);
    add_range(trace, GX_TRACE_PUSH_POP, "iterations", 0, 300, 10); /* another name */
    add_call(trace, "cudaLaunchKernel", 10, 11, 1);
    add_call(trace, "cudaLaunchKernel", 20, 21, 2);
    add_call(trace, "cudaLaunchKernel", 110, 111, 3);
    add_kernel(trace, 12, 14, 1);
    add_kernel(trace, 22, 24, 2);
    add_kernel(trace, 112, 114, 3);
    figures = finish(trace, &iterations);
    assert_int_equal(figures->n_steps, 2);
    assert_int_equal(figures->device[0].gaps[GX_GAP_HOST].n, 2);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_HOST].n, 1);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_HOST].ns, 88);
    gx_trace_figures_free(figures);
    assert_ok(gx_trace_figures_create(trace, NULL, &figures, &err), &err);
    assert_int_equal(figures->n_steps, 0);
    gx_trace_figures_free(figures);
}

static void a_window_leaves_the_rest_out(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_options window = { .within = "hot" };
    const gx_trace_options absent = { .within = "cold" };
    gx_trace_figures *figures;

    add_range(trace, GX_TRACE_PUSH_POP, "hot", 100, 200, 10);
    add_call(trace, "cudaLaunchKernel", 10, 11, 1);
    add_call(trace, "cudaLaunchKernel", 110, 111, 2);
    add_call(trace, "cudaLaunchKernel", 120, 121, 3);
    add_kernel(trace, 20, 30, 1);
    add_kernel(trace, 115, 116, 2);
    add_kernel(trace, 125, 126, 3);
    figures = finish(trace, &window);
    assert_true(figures->within);
    assert_int_equal(figures->device[0].span, 11);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 2);
    gx_trace_figures_free(figures);
    assert_fails(gx_trace_figures_create(trace, &absent, &figures, &err), GX_ERR_DATA,
                 &err, "no range is named 'cold'");
    assert_null(figures);
}

static void gexecs_own_window_is_found(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_range measured = { .name = text(trace, "measured"),
                                      .domain = text(trace, "gexec"),
                                      .start = 100,
                                      .end = 200,
                                      .process = 1,
                                      .thread = 10 };
    gx_trace_figures *figures;

    add_range(trace, GX_TRACE_PUSH_POP, "measured", 0, 50, 10); /* somebody else's */
    assert_ok(gx_trace_add_range(trace, &measured, &err), &err);
    add_call(trace, "cudaLaunchKernel", 10, 11, 1);
    add_call(trace, "cudaGraphLaunch", 110, 111, 2);
    add_kernel(trace, 20, 30, 1);
    add_kernel(trace, 115, 116, 2);
    figures = finish(trace, NULL);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 0);
    gx_trace_figures_free(figures);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(eager_work_belongs_to_the_innermost_range_of_its_thread),
        TEST(start_end_ranges_count_where_no_push_pop_does),
        TEST(the_range_that_began_last_is_found_among_any),
        TEST(replayed_nodes_belong_to_the_range_of_their_capture),
        TEST(clones_that_go_in_circles_end),
        TEST(nodes_from_before_the_window_are_said),
        TEST(gaps_between_steps_stand_apart),
        TEST(a_window_leaves_the_rest_out),
        TEST(gexecs_own_window_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
