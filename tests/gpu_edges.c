/* Programmatic edges on a GPU: measured, chosen, and without influence on any bit. */
#include "edges.h"

#include <math.h>

#include "support_gpu.h"

enum { MOST_UNITS = 64, STEPS = 20, FEW = 5 };

static int n_lanes = 1; /* of the programs that a test opens */

static gpu_options programmatic(void)
{
    return (gpu_options){ .n_layers = test_is_short() ? 2 : 4,
                          .lanes = n_lanes,
                          .programmatic = GX_ON };
}

static void need_programmatic(void)
{
    gx_device_info info;
    gx_error err;

    assert_ok(gx_device_info_get(0, &info, &err), &err);
    if (info.cc_major >= 9)
        return;
    print_message("no programmatic launch before compute capability 9.0\n");
    skip();
}

static void every_edge_is_measured_and_the_plan_stays(void **state)
{
    const gpu_options options = programmatic();
    gpu_program program;
    gx_edge_info edges[MOST_UNITS];
    size_t n_edges = 0;
    gx_error err;

    (void)state;
    need_programmatic();
    gpu_open(&program, &options);
    assert_true(gx_plan_unit_count(program.plan) <= MOST_UNITS);
    assert_ok(gx_plan_measure_edges(program.plan, edges, &n_edges, &err), &err);
    assert_true(n_edges > 0);
    for (size_t i = 0; i < n_edges; i++) {
        assert_true(edges[i].before < edges[i].unit && edges[i].programmatic);
        assert_true(edges[i].n_equal >= 1 && edges[i].n_equal <= n_edges);
        assert_true(isfinite(edges[i].gain_us) && edges[i].spread_us >= 0);
    }
    for (size_t u = 0; u < program.plan->n_units; u++)
        assert_false(program.plan->units[u].full_edge);
    gpu_close(&program);
}

/* The bits after some steps, and the programmatic edges of the graph. */
static uint64_t run(const bool *full, gx_mode mode, int64_t *n_programmatic)
{
    const gpu_options options = programmatic();
    gpu_program program;

    gpu_open(&program, &options);
    for (size_t u = 0; full && u < program.plan->n_units; u++)
        program.plan->units[u].full_edge = full[u];
    gpu_run(&program, mode, STEPS);
    const uint64_t bits = gpu_bits(&program);
    *n_programmatic = gx_exec_stats_get(program.exec).programmatic_edges;
    gpu_close(&program);
    return bits;
}

static void check_each_edge(void)
{
    const gpu_options options = programmatic();
    gpu_program program;
    gx_edge edges[MOST_UNITS];
    size_t n_edges;
    int32_t n_sets;
    int64_t n_all, n_now;
    gx_error err;

    const uint64_t expected = run(NULL, GX_MODE_GRAPH, &n_all);

    gpu_open(&program, &options);
    assert_ok(gx_edges_list(program.plan, edges, &n_edges, &n_sets, &err), &err);
    gpu_close(&program);
    /* Neighbours are kernels of different kinds. */
    for (size_t i = 0; i < n_edges && (i < FEW || !test_is_short()); i++) {
        bool full[MOST_UNITS] = { false };

        full[edges[i].unit] = true;
        assert_true(run(full, GX_MODE_GRAPH, &n_now) == expected);
        assert_true(n_now == n_all || n_now == n_all - 1); /* a library's has none */
        assert_true(run(full, GX_MODE_EAGER, &n_now) == expected);
    }
}

static void each_edge_may_be_full_and_no_bit_changes(void **state)
{
    (void)state;
    need_programmatic();
    for (n_lanes = 1; n_lanes <= GX_MAX_LANES; n_lanes++)
        check_each_edge();
    n_lanes = 1;
}

static void check_choice(void)
{
    const gpu_options options = programmatic();
    gpu_program program, other;
    gx_error err;
    int64_t n_all;

    const uint64_t expected = run(NULL, GX_MODE_GRAPH, &n_all);

    gpu_open(&program, &options);
    gpu_open(&other, &options);
    assert_ok(gx_edges_choose(program.plan, other.state, 2, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, STEPS);
    assert_true(gpu_bits(&program) == expected);
    assert_true(gx_exec_stats_get(program.exec).programmatic_edges <= n_all);
    gpu_close(&other);
    gpu_close(&program);
}

static void choosing_leaves_a_plan_that_runs(void **state)
{
    (void)state;
    need_programmatic();
    for (n_lanes = 1; n_lanes <= GX_MAX_LANES; n_lanes++)
        check_choice();
    n_lanes = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_is_measured_and_the_plan_stays),
        cmocka_unit_test(each_edge_may_be_full_and_no_bit_changes),
        cmocka_unit_test(choosing_leaves_a_plan_that_runs),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_edges", tests, NULL, NULL);
}
