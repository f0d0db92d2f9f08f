/* What plans are measured by, on a simulated card where things take what the test says:
 * the library's algorithms in a burst and in a long run, and whole steps. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "measure.h"
#include "plan.h"
#include "state.h"

enum { MANY = 64, FEW = 8 };

static const char model[] = "gexec: 1\n"
                            "name: product\n"
                            "dims: {size: %d}\n"
                            "precision: %s\n"
                            "inputs:\n"
                            "  a: {shape: [size, size]}\n"
                            "  b: {shape: [size, size]}\n"
                            "ops:\n"
                            "  - {op: gemm, a: a, trans_a: true, b: b, out: c}\n"
                            "outputs: [c]\n";

/* Of f32: one that takes as long as is worth many candidates, and one that does not. */
enum { LARGE = 1088, SMALL = 256 };

/* Each takes 0.3 ms unless the test says otherwise; all else takes next to nothing. */
static fake_algorithm algorithms[MANY];

static int set_up(void **state)
{
    (void)state;
    fake_begin();
    for (int i = 0; i < MANY; i++)
        algorithms[i] = (fake_algorithm){ .ms = 0.3, .hot_ms = 0.3 };
    fake_set_algorithms(algorithms, MANY);
    fake_set_tick_ms(1e-4);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_set_algorithms(NULL, 0);
    fake_set_tick_ms(1);
    assert_null(fake_mistake());
    assert_int_equal(fake_live(), 0);
    return 0;
}

static gx_graph *product(int size, const char *precision)
{
    char text[sizeof model + 10];
    gx_graph *graph;
    gx_error err;

    snprintf(text, sizeof text, model, size, precision);
    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &graph, NULL, &err),
              &err);
    return graph;
}

static gx_plan *plan_of(const gx_graph *graph, const char *force, const char *file)
{
    const gx_plan_options options = { .device = 0,
                                      .cache_folder = "",
                                      .lanes = 1,
                                      .programmatic = GX_OFF,
                                      .force = force,
                                      .pin_file = file };
    gx_plan *plan;
    gx_error err;

    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_int_equal(plan->n_units, 1);
    return plan;
}

/* From 0, as in the table; -1: none of the library's. */
static int algorithm_of(const gx_plan *plan)
{
    uint64_t algorithm;

    if (!plan->units[0].has_algo)
        return -1;
    memcpy(&algorithm, plan->units[0].algo, sizeof algorithm);
    return (int)algorithm - 1;
}

static void expect(int size, int algorithm, double us)
{
    gx_graph *graph = product(size, "f32");
    gx_plan *plan = plan_of(graph, "lt", NULL);

    assert_string_equal(plan->units[0].alternative->name, "lt");
    assert_int_equal(algorithm_of(plan), algorithm);
    if (!(plan->units[0].us > 0.98 * us && plan->units[0].us < 1.02 * us))
        fail_msg("%g us, expected %g us", plan->units[0].us, us);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

static void a_large_product_gets_one_from_the_end_of_the_list(void **state)
{
    (void)state;
    algorithms[50] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    expect(LARGE, 50, 200);
    assert_int_equal(fake_algorithms_wanted(), MANY);
}

static void a_plan_file_has_it_too(void **state)
{
    char *path = test_path("algorithm.yaml");
    gx_graph *graph = product(LARGE, "f32");
    gx_error err;

    (void)state;
    algorithms[50] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    gx_plan *plan = plan_of(graph, "lt", NULL);
    assert_ok(gx_plan_write(plan, path, &err), &err);
    gx_plan_free(plan);
    fake_set_algorithms(algorithms, MANY);
    plan = plan_of(graph, NULL, path);
    assert_int_equal(algorithm_of(plan), 50);
    assert_int_equal(fake_algorithms_wanted(), 0);
    gx_plan_free(plan);
    gx_graph_free(graph);
    remove(path);
    free(path);
}

static void a_small_product_is_asked_for_few(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        algorithms[i] = (fake_algorithm){ .ms = 0.02, .hot_ms = 0.02 };
    algorithms[FEW - 1] = (fake_algorithm){ .ms = 0.01, .hot_ms = 0.01 };
    algorithms[FEW] = (fake_algorithm){ .ms = 0.005, .hot_ms = 0.005 };
    expect(SMALL, FEW - 1, 10);
    assert_int_equal(fake_algorithms_wanted(), FEW);
}

/* As they are in a run of a few milliseconds, where the card stays cool. */
static void short_products_are_compared_in_bursts(void **state)
{
    (void)state;
    algorithms[1] = (fake_algorithm){ .ms = 0.0500, .hot_ms = 0.09 };
    algorithms[2] = (fake_algorithm){ .ms = 0.0501, .hot_ms = 0.05 };
    expect(SMALL, 1, 50);
}

static void long_products_are_compared_in_long_runs(void **state)
{
    (void)state;
    algorithms[3] = (fake_algorithm){ .ms = 0.200, .hot_ms = 0.230 };
    algorithms[17] = (fake_algorithm){ .ms = 0.212, .hot_ms = 0.215 };
    algorithms[40] = (fake_algorithm){ .ms = 0.208, .hot_ms = 0.225 };
    expect(LARGE, 17, 215);
}

/* As the ones of tf32 on a card that is limited by its power. */
static void what_is_far_slower_in_a_burst_is_not_run_for_long(void **state)
{
    (void)state;
    algorithms[3] = (fake_algorithm){ .ms = 0.200, .hot_ms = 0.230 };
    algorithms[4] = (fake_algorithm){ .ms = 0.220, .hot_ms = 0.100 };
    expect(LARGE, 3, 230);
}

/* There is room for four in a long run, whatever came before them. */
static void the_best_in_a_burst_are_run_for_long(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) /* the later, the faster */
        algorithms[i] = (fake_algorithm){ .ms = 0.220 - 0.002 * i, .hot_ms = 0.3 };
    algorithms[5].hot_ms = 0.100; /* five are faster, with the four of them last */
    algorithms[6].hot_ms = 0.250;
    expect(LARGE, 6, 250);
    set_up(NULL);
    for (int i = 0; i < 10; i++) /* the later, the slower */
        algorithms[i] = (fake_algorithm){ .ms = 0.200 + 0.001 * i, .hot_ms = 0.3 };
    algorithms[3].hot_ms = 0.250;
    algorithms[4].hot_ms = 0.100;
    expect(LARGE, 3, 250);
}

/* What is known of an alternative of the library where a kernel of ours is faster, as all
 * are on this card. Nothing is forced, which would take what is wrong too. */
static void expect_beside(const char *precision, const char *name, double us)
{
    gx_graph *graph = product(LARGE, precision);
    gx_plan *plan = plan_of(graph, NULL, NULL);
    const gx_rejected *found = NULL;

    for (size_t i = 0; i < plan->units[0].n_rejected; i++)
        if (strcmp(plan->units[0].rejected[i].alternative, name) == 0)
            found = &plan->units[0].rejected[i];
    assert_non_null(found);
    assert_string_equal(found->reason, "slower");
    if (!(found->us > 0.98 * us && found->us < 1.02 * us))
        fail_msg("%g us, expected %g us", found->us, us);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

static void a_fast_one_that_is_wrong_is_refused(void **state)
{
    (void)state;
    algorithms[20] = (fake_algorithm){ .ms = 0.1, .hot_ms = 0.1, .is_wrong = true };
    algorithms[21] = (fake_algorithm){ .ms = 0.205, .hot_ms = 0.1, .is_wrong = true };
    algorithms[22] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    expect_beside("f32", "lt", 200);
    /* The first is what the others are compared with. */
    for (int i = 1; i < MANY; i++)
        algorithms[i] = (fake_algorithm){ .ms = 0.1, .hot_ms = 0.1, .is_wrong = true };
    expect_beside("f32", "lt", 300);
}

static void a_forced_one_is_right_where_there_is_one_that_is(void **state)
{
    (void)state;
    algorithms[20] = (fake_algorithm){ .ms = 0.1, .hot_ms = 0.1, .is_wrong = true };
    algorithms[22] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    algorithms[30] = (fake_algorithm){ .ms = 0.1, .hot_ms = 0.1, .is_wrong = true };
    expect(LARGE, 22, 200);
}

/* Not even on a card on which that would help it. */
static void what_loses_by_its_burst_is_not_run_for_long(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        algorithms[i] = (fake_algorithm){ .ms = 0.3, .hot_ms = 0.2 };
    expect_beside("tf32", "lt", 200);
    expect_beside("tf32", "lt_turned", 300);
}

/* A later one; without the first there is no product of the library at all. */
static void one_that_does_not_run_is_left_out(void **state)
{
    (void)state;
    algorithms[1] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    fake_fail("cublasLtMatmul", 40, CUBLAS_STATUS_NOT_SUPPORTED);
    expect(LARGE, 1, 200);
    assert_true(fake_has_failed());
}

static void one_that_does_not_run_for_long_is_left_out(void **state)
{
    (void)state;
    algorithms[50] = (fake_algorithm){ .ms = 0.2, .hot_ms = 0.2 };
    algorithms[51] = (fake_algorithm){ .ms = 0.205, .hot_ms = 0.205 };
    fake_fail("cublasLtMatmulAlgoCheck", 2, CUBLAS_STATUS_NOT_SUPPORTED);
    expect(LARGE, 51, 205);
    assert_true(fake_has_failed());
}

/* --- steps --- */

static long launches_of_a_trial(path_program *program, double step_ms)
{
    gx_error err;
    double us;

    gx_error_clear(&err);
    fake_set_tick_ms(step_ms);
    fake_begin();
    assert_ok(gx_measure_plan(program->plan, program->state, NULL, &us, &err), &err);
    assert_true(us > 990 * step_ms && us < 1010 * step_ms);
    return fake_calls("cudaGraphLaunch");
}

/* Eleven blocks of twenty, and of long steps as many more as take a fifth of a second. */
static void long_steps_run_for_a_while_before_they_are_timed(void **state)
{
    path_program program;

    (void)state;
    fake_set_algorithms(NULL, 0);
    path_open(&program, 1);
    assert_int_equal(launches_of_a_trial(&program, 0.4), 11 * 20);
    assert_int_equal(launches_of_a_trial(&program, 0.625), (11 + 16) * 20);
    assert_int_equal(launches_of_a_trial(&program, 100), (11 + 1) * 20);
    path_close(&program);
}

enum { MADE = 1 << 20, REPEATED = 5 * MADE / 2 };

static void expect_repeated(const float *timed, const float *usual)
{
    assert_memory_equal(timed, usual, MADE * sizeof *timed);
    assert_memory_equal(timed + MADE, timed, MADE * sizeof *timed);
    assert_memory_equal(timed + 2 * MADE, timed, (REPEATED - 2 * MADE) * sizeof *timed);
    assert_memory_not_equal(usual + MADE, usual, MADE * sizeof *usual);
}

static gx_exec *exec_on(const gx_plan *plan, gx_state *state)
{
    gx_exec *exec;
    gx_error err;

    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    return exec;
}

static void a_program_for_timing_repeats_what_is_random(void **state)
{
    static const char text[] = "gexec: 1\n"
                               "name: large\n"
                               "precision: f32\n"
                               "inputs:\n"
                               "  x: {shape: [2621440], init: normal}\n"
                               "params:\n"
                               "  w: {shape: [2621440], init: normal}\n"
                               "ops:\n"
                               "  - {op: add, a: x, b: w, out: y}\n"
                               "outputs: [y]\n";
    const gx_plan_options options = { .cache_folder = "", .no_measure = true };
    gx_graph *graph;
    gx_plan *plan;
    gx_state *timed, *usual;
    gx_error err;

    (void)state;
    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &graph, NULL, &err),
              &err);
    const gx_graph *const graphs[] = { graph };
    const int32_t x = gx_graph_value_id(graph, "x");

    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_ok(gx_state_create_unfed(graph, 0, &timed, &err), &err);
    assert_ok(gx_state_create(graphs, 1, NULL, &usual, &err), &err);
    gx_exec *on_timed = exec_on(plan, timed), *on_usual = exec_on(plan, usual);

    expect_repeated(gx_state_find(timed, "w")->data, gx_state_find(usual, "w")->data);
    expect_repeated(on_timed->value_data[x], on_usual->value_data[x]);
    gx_exec_free(on_usual);
    gx_exec_free(on_timed);
    gx_state_free(usual);
    gx_state_free(timed);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_large_product_gets_one_from_the_end_of_the_list),
        TEST(a_plan_file_has_it_too),
        TEST(a_small_product_is_asked_for_few),
        TEST(short_products_are_compared_in_bursts),
        TEST(long_products_are_compared_in_long_runs),
        TEST(what_is_far_slower_in_a_burst_is_not_run_for_long),
        TEST(the_best_in_a_burst_are_run_for_long),
        TEST(a_fast_one_that_is_wrong_is_refused),
        TEST(a_forced_one_is_right_where_there_is_one_that_is),
        TEST(what_loses_by_its_burst_is_not_run_for_long),
        TEST(one_that_does_not_run_is_left_out),
        TEST(one_that_does_not_run_for_long_is_left_out),
        TEST(long_steps_run_for_a_while_before_they_are_timed),
        TEST(a_program_for_timing_repeats_what_is_random),
#undef TEST
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_measure", tests, NULL, NULL);
}
