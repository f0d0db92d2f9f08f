/* What programmatic edges gain, and a plan whose choices are known: on a simulated card
 * whose edges cost what the test says. */
#include "fake_cuda_paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "edges.h"

enum { MOST_UNITS = 40 };

static const double forever_s = 1e9;

/* The clock stands still: how far a budget reaches does not depend on the machine. */
double __wrap_gx_plan_clock(void);
double __wrap_gx_plan_clock(void)
{
    return 0;
}

static void open_programmatic(path_program *program, int lanes)
{
    path_open(program, lanes);
    program->plan->programmatic = true;
    assert_true(program->plan->n_units <= MOST_UNITS);
}

/* The first node that the unit has in a graph of one lane. */
static size_t first_node(const path_program *program, size_t unit)
{
    size_t at = 0;

    for (size_t u = 0; u < unit; u++)
        at += (size_t)(program->exec->units[u].prepared.n_launches >= 0
                           ? program->exec->units[u].prepared.n_launches
                           : program->exec->units[u].n_seen);
    return at;
}

/* An edge that no other is equal to. */
static size_t lone_edge(const gx_edge_info *edges, size_t n_edges)
{
    for (size_t i = 1; i < n_edges; i++) {
        if (edges[i].n_equal == 1)
            return i;
    }
    fail_msg("every edge has an equal");
    return 0;
}

static size_t measure(const path_program *program, gx_edge_info *edges)
{
    size_t n_edges = 0;
    gx_error err;

    assert_ok(gx_plan_measure_edges(program->plan, edges, &n_edges, &err), &err);
    return n_edges;
}

/* --- what they gain --- */

static void every_edge_gains_what_it_saves(void **state)
{
    path_program program;
    gx_edge_info edges[MOST_UNITS];
    gx_error err;

    (void)state;
    open_programmatic(&program, 1);
    const long live = fake_live();

    fake_set_edge_ms(-0.01, SIZE_MAX, 0);
    const size_t n_edges = measure(&program, edges);
    assert_true(n_edges >= 4);
    assert_int_equal(fake_live(), live);
    for (size_t i = 0; i < n_edges; i++) {
        assert_true(edges[i].programmatic && edges[i].before < edges[i].unit);
        assert_true(fabs(edges[i].gain_us - 10) < 0.1);
        assert_true(edges[i].spread_us < 0.1);
    }

    /* Those that a capture of the plan has, but for the ones inside units. */
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const int64_t n_all = gx_exec_stats_get(program.exec).programmatic_edges;
    int64_t n_inside = 0;
    for (size_t u = 0; u < program.plan->n_units; u++)
        n_inside += program.exec->units[u].prepared.n_launches > 1
                        ? program.exec->units[u].prepared.n_launches - 1
                        : 0;
    assert_int_equal((int64_t)n_edges, n_all - n_inside);

    const size_t costly = lone_edge(edges, n_edges);
    fake_set_edge_ms(-0.01, first_node(&program, edges[costly].unit), 0.02);
    assert_int_equal(measure(&program, edges), n_edges);
    for (size_t i = 0; i < n_edges; i++)
        assert_true(fabs(edges[i].gain_us - (i == costly ? -20 : 10)) < 0.1);

    /* As full as it is programmatic: what is measured is the edge, not the plan. */
    program.plan->units[edges[costly].unit].full_edge = true;
    assert_int_equal(measure(&program, edges), n_edges);
    assert_false(edges[costly].programmatic);
    assert_true(fabs(edges[costly].gain_us + 20) < 0.1);
    assert_true(program.plan->units[edges[costly].unit].full_edge);
    fake_set_edge_ms(0, 0, 0);
    path_close(&program);
    assert_null(fake_mistake());
}

static void a_plan_without_has_none(void **state)
{
    path_program program;
    gx_edge_info edges[MOST_UNITS];

    (void)state;
    path_open(&program, 1);
    program.plan->programmatic = false;
    assert_int_equal(measure(&program, edges), 0);
    program.plan->programmatic = true;
    fake_set_cc(80);
    assert_int_equal(measure(&program, edges), 0);
    fake_set_cc(90);
    path_close(&program);
}

static gx_status measure_all(const path_program *program, gx_error *err)
{
    gx_edge_info edges[MOST_UNITS];
    size_t n_edges;

    return gx_plan_measure_edges(program->plan, edges, &n_edges, err);
}

/* What is called while all is given back cannot be told, and is left out. */
static void a_failure_leaves_the_plan_and_the_device_as_they_were(void **state)
{
    static const char *const functions[] = {
        "cudaMalloc",           "cudaEventCreateWithFlags", "cudaStreamBeginCapture",
        "cudaLaunchKernelExC",  "cudaStreamEndCapture",     "cudaGraphInstantiate",
        "cudaGraphUpload",      "cudaEventRecord",          "cudaGraphLaunch",
        "cudaEventSynchronize", "cudaEventElapsedTime"
    };
    path_program program;
    gx_error err;

    (void)state;
    open_programmatic(&program, 2);
    const long live = fake_live();
    fake_begin();
    assert_ok(measure_all(&program, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        fake_begin();
        assert_ok(measure_all(&program, &err), &err);
        const long n = fake_calls(functions[i]);

        assert_true(n > 0);
        for (long k = 0; k < 7; k++) {
            fake_begin();
            fake_fail(functions[i], 1 + k * (n - 1) / 6, cudaErrorUnknown);
            assert_fails(measure_all(&program, &err), GX_ERR_CUDA, &err, functions[i]);
            assert_true(fake_has_failed());
            assert_int_equal(fake_live(), live);
            for (size_t u = 0; u < program.plan->n_units; u++)
                assert_false(program.plan->units[u].full_edge);
        }
    }
    fake_begin();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

/* --- which are left --- */

static void choose(const path_program *program, double budget_s)
{
    gx_error err;

    assert_ok(gx_edges_choose(program->plan, program->state, budget_s, &err), &err);
}

static size_t count_full(const path_program *program)
{
    size_t n = 0;

    for (size_t u = 0; u < program->plan->n_units; u++)
        n += program->plan->units[u].full_edge;
    return n;
}

static void what_costs_is_full_and_the_rest_is_not(void **state)
{
    path_program program;
    gx_edge_info edges[MOST_UNITS];
    gx_error err;

    (void)state;
    open_programmatic(&program, 1);
    const size_t n_edges = measure(&program, edges);
    const size_t costly = lone_edge(edges, n_edges);
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const int64_t n_programmatic = gx_exec_stats_get(program.exec).programmatic_edges;

    fake_set_edge_ms(-0.01, first_node(&program, edges[costly].unit), 0.02);
    choose(&program, forever_s);
    assert_int_equal(count_full(&program), 1);
    assert_true(program.plan->units[edges[costly].unit].full_edge);
    gx_exec_free(program.exec);
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    assert_int_equal(gx_exec_stats_get(program.exec).programmatic_edges,
                     n_programmatic - 1);

    /* No time: nothing is measured, and nothing is left full from before. */
    choose(&program, 0);
    assert_int_equal(count_full(&program), 0);
    /* Neither gain nor cost: programmatic. */
    fake_set_edge_ms(0, 0, 0);
    choose(&program, forever_s);
    assert_int_equal(count_full(&program), 0);
    fake_set_edge_ms(0.01, SIZE_MAX, 0);
    choose(&program, forever_s);
    assert_int_equal(count_full(&program), n_edges);
    fake_set_edge_ms(0, 0, 0);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- a plan that is known --- */

static const char *const model =
    "gexec: 1\nname: known\nprecision: f32\n"
    "inputs: {x: {shape: [4, 3], init: normal}, t: {shape: [4, 5], init: normal}}\n"
    "params: {w: {shape: [3, 5], init: he_normal}, b: {shape: [5]}}\n"
    "ops:\n  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu}}\n"
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
    "optimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";

static gx_plan *plan_with_cache(const gx_graph *graph, const char *folder)
{
    const gx_plan_options options = { .device = 0, .cache_folder = folder };
    gx_plan *plan = NULL;
    gx_error err;

    fake_begin();
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_null(gx_plan_info_get(plan).cache_note);
    return plan;
}

/* The device is asked what it is, and nothing else. */
static void a_warm_cache_leaves_the_device_alone(void **state)
{
    static const char *const unwanted[] = { "cublasLtCreate",
                                            "cudaMalloc",
                                            "cudaMemsetAsync",
                                            "cudaMemcpyAsync",
                                            "cudaLaunchKernelExC",
                                            "cudaGraphLaunch",
                                            "cudaStreamBeginCapture",
                                            "cudaGraphInstantiate",
                                            "cudaStreamCreateWithFlags",
                                            "cudaStreamCreateWithPriority",
                                            "cudaEventCreateWithFlags",
                                            "cudaStreamSynchronize" };
    char *folder = test_path("warm");
    gx_graph *graph;
    int n_full = 0;
    gx_error err;

    (void)state;
    assert_ok(
        gx_graph_parse(model, strlen(model), "known.yaml", ".", NULL, &graph, NULL, &err),
        &err);
    fake_set_edge_ms(-0.01, 2, 0.02);
    gx_plan *cold = plan_with_cache(graph, folder);
    fake_set_edge_ms(0, 0, 0);
    assert_true(gx_plan_info_get(cold).n_measured > 0);
    assert_int_equal(fake_calls("cublasLtCreate"), 1);

    gx_plan *warm = plan_with_cache(graph, folder);
    for (size_t i = 0; i < ARRAY_SIZE(unwanted); i++) {
        if (fake_calls(unwanted[i]) > 0)
            fail_msg("a known plan calls %s %ld times", unwanted[i],
                     fake_calls(unwanted[i]));
    }
    assert_int_equal(gx_plan_info_get(warm).n_measured, 0);
    assert_int_equal(gx_plan_info_get(warm).n_cached, gx_plan_unit_count(warm));
    assert_int_equal(gx_plan_unit_count(cold), gx_plan_unit_count(warm));
    assert_true(gx_plan_info_get(cold).programmatic);
    assert_true(gx_plan_info_get(warm).programmatic);
    for (size_t u = 0; u < gx_plan_unit_count(cold); u++) {
        const gx_unit_info a = gx_plan_unit(cold, u), b = gx_plan_unit(warm, u);

        assert_string_equal(a.alternative, b.alternative);
        assert_int_equal(a.lane, b.lane);
        assert_int_equal(a.programmatic, b.programmatic);
        assert_int_equal(a.full_edge, b.full_edge);
        n_full += a.full_edge;
    }
    assert_int_equal(n_full, 1);
    gx_plan_free(warm);
    gx_plan_free(cold);
    gx_graph_free(graph);
    free(folder);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

static bool edge_of_steps_is_full(const gx_graph *graph)
{
    const gx_plan_options options = { .device = 0, .cache_folder = "", .lanes = 1 };
    gx_plan *plan = NULL;
    gx_error err;

    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    const bool is_full = gx_plan_unit(plan, 0).full_edge;
    assert_false(gx_plan_unit(plan, 0).programmatic);
    gx_plan_free(plan);
    return is_full;
}

/* In graphs of one step such an edge does not show: all of its nodes' edges gain. */
static void the_edge_between_steps_is_as_measured(void **state)
{
    gx_graph *graph;
    gx_error err;

    (void)state;
    fake_begin();
    assert_ok(
        gx_graph_parse(model, strlen(model), "known.yaml", ".", NULL, &graph, NULL, &err),
        &err);
    fake_set_edge_ms(-0.01, SIZE_MAX, 0);
    assert_false(edge_of_steps_is_full(graph));
    path_program program = { .graph = graph };
    const gx_plan_options options = { .device = 0, .cache_folder = "", .lanes = 1 };
    assert_ok(gx_plan_create(graph, &options, &program.plan, &err), &err);
    size_t n_nodes = 0;
    for (size_t u = 0; u < program.plan->n_units; u++)
        n_nodes += (size_t)gx_planned_launches(&program.plan->units[u]);
    gx_plan_free(program.plan);
    /* The first node of the second step, against what all later ones gain. */
    fake_set_edge_ms(-0.01, n_nodes, 0.2);
    assert_true(edge_of_steps_is_full(graph));
    fake_set_edge_ms(0, 0, 0);
    gx_graph_free(graph);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_gains_what_it_saves),
        cmocka_unit_test(a_plan_without_has_none),
        cmocka_unit_test(a_failure_leaves_the_plan_and_the_device_as_they_were),
        cmocka_unit_test(what_costs_is_full_and_the_rest_is_not),
        cmocka_unit_test(the_edge_between_steps_is_as_measured),
        cmocka_unit_test(a_warm_cache_leaves_the_device_alone),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_edges", tests, NULL, NULL);
}
