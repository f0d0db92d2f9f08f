/* Many steps a launch on the simulated CUDA: nodes, steps, edges, and every failure. */
#include "fake_cuda_paths.h"

#include <string.h>

#include <cuda_runtime_api.h>

#include "exec_cuda.h"

static const gx_exec_options loop = { .steps_per_launch = 5, .step_loop = true };

static void make_exec(path_program *program, const gx_exec_options *options)
{
    gx_error err;

    assert_ok(
        gx_exec_create(program->plan, program->state, options, &program->exec, &err),
        &err);
    path_write_inputs(program);
}

static int32_t steps_done(path_program *program)
{
    int32_t count = -1;
    gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &count };
    gx_error err;

    assert_ok(gx_state_read(program->state, "gexec.step", &host, &err), &err);
    return count;
}

/* --- a loop --- */

static void a_loop_records_one_step_and_runs_k(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    make_exec(&program, &loop);
    fake_begin();
    const long before = fake_turns();
    assert_fails(gx_exec_run(program.exec, GX_MODE_GRAPH, 7, &err), GX_ERR_ARGUMENT, &err,
                 "multiple of the 5");
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 15, &err), &err);
    assert_int_equal(fake_calls("cudaGraphLaunch"), 3);
    assert_int_equal(fake_calls("cudaGraphInstantiate"), 1);
    assert_int_equal(fake_calls("cudaStreamBeginCaptureToGraph"), 1);
    assert_int_equal(fake_calls("cudaGraphGetNodes"), 2); /* of the body */
    assert_int_equal(fake_turns() - before, 15);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step + 2);
    assert_int_equal(stats.graph_launches, 3);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void a_replay_of_a_loop_is_one_call(void **state)
{
    enum { N = 20 };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    make_exec(&program, &loop);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err), &err);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 5 * N, &err), &err);
    assert_int_equal(fake_calls("cudaGraphLaunch"), N);
    assert_int_equal(fake_calls(NULL), N + 1); /* cudaGetDevice */
    path_close(&program);
}

static void one_step_needs_no_loop(void **state)
{
    const gx_exec_options one = { .steps_per_launch = 1, .step_loop = true };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    fake_begin();
    make_exec(&program, &one);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 3, &err), &err);
    assert_int_equal(fake_calls("cudaGraphAddNode"), 0);
    assert_int_equal(fake_calls("cudaGraphLaunch"), 3);
    path_close(&program);
}

static void a_loop_is_no_child_of_another_graph(void **state)
{
    path_program program;
    void *graph = NULL;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    make_exec(&program, &loop);
    assert_fails(gx_exec_cuda_graph(program.exec, &graph, &err), GX_ERR_STATE, &err,
                 "child graph");
    assert_null(graph);
    path_close(&program);
}

static void an_old_driver_has_no_loops(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    const long live = fake_live();
    fake_set_driver(12020);
    assert_fails(gx_exec_create(program.plan, program.state, &loop, &program.exec, &err),
                 GX_ERR_UNSUPPORTED, &err, "this one is of CUDA 12.2");
    fake_set_driver(13000);
    assert_int_equal(fake_live(), live);
    path_close(&program);
}

static void a_rebuilt_loop_is_a_loop(void **state)
{
    path_program program;
    void *memory = NULL;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    make_exec(&program, &loop);
    gx_error_clear(&err);
    assert_ok(gx_device_alloc(program.exec->device, 4 * 3 * 4, &memory, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err), &err);
    assert_ok(gx_exec_bind(program.exec, "x", memory, &err), &err);
    const long before = fake_turns();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 10, &err), &err);
    assert_int_equal(fake_turns() - before, 10);
    assert_int_equal(gx_exec_stats_get(program.exec).rebuilds, 1);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    gx_device_release(program.exec->device, memory);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- each call fails --- */

static gx_status run_loop(void *user, gx_error *err)
{
    return path_try_replays(&loop, user, err);
}

static gx_status run_unrolled(void *user, gx_error *err)
{
    return path_try_replays(&(gx_exec_options){ .steps_per_launch = 2 }, user, err);
}

static void many_steps_take_every_failure(void **state)
{
    path_program program;

    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        path_open(&program, lanes);
        assert_true(path_fail_each_call(run_loop, &program) >= 100);
        assert_true(path_fail_some_calls(run_unrolled, &program, 6) >= 60);
        path_close(&program);
        assert_int_equal(fake_live(), 0);
    }
}

static void a_failed_loop_leaves_the_stream_and_the_state(void **state)
{
    static const char *const functions[] = {
        "cudaGraphCreate", "cudaGraphConditionalHandleCreate", "cudaGraphAddNode",
        "cudaStreamBeginCaptureToGraph", "cudaStreamEndCapture"
    };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    make_exec(&program, &loop);
    const int32_t done = steps_done(&program);
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        fake_begin();
        fake_fail(functions[i], 1, cudaErrorUnknown);
        assert_fails(gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err), GX_ERR_CUDA, &err,
                     functions[i]);
        assert_null(fake_mistake());
        assert_int_equal(steps_done(&program), done);
    }
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err), &err);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- edges --- */

static int64_t edges_of(int lanes, gx_choice programmatic, const gx_exec_options *options)
{
    const gx_plan_options plan_options = { .device = 0,
                                           .cache_folder = "",
                                           .lanes = lanes,
                                           .programmatic = programmatic,
                                           .force = "tile",
                                           .no_measure = true };
    path_program program;
    gx_error err;

    path_open(&program, lanes);
    gx_plan_free(program.plan);
    assert_ok(gx_plan_create(program.graph, &plan_options, &program.plan, &err), &err);
    make_exec(&program, options);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const int64_t edges = gx_exec_stats_get(program.exec).programmatic_edges;
    path_close(&program);
    return edges;
}

/* A chain of steps is one chain; lanes join between steps, and turns end with a full
 * edge.
 */
static void steps_of_one_lane_overlap(void **state)
{
    const gx_exec_options one = { .steps_per_launch = 1 };
    const gx_exec_options four = { .steps_per_launch = 4 };

    (void)state;
    const int64_t edges = edges_of(1, GX_ON, &one);
    assert_true(edges > 0);
    assert_int_equal(edges_of(1, GX_ON, &four), 4 * edges + 3);
    assert_int_equal(edges_of(1, GX_ON, &loop), edges);
    assert_int_equal(edges_of(1, GX_OFF, &four), 0);
    for (int lanes = 2; lanes <= 3; lanes++) {
        const int64_t forked = edges_of(lanes, GX_ON, &one);

        assert_int_equal(edges_of(lanes, GX_ON, &four), 4 * forked);
    }
}

/* --- what a kernel may load ahead of its wait --- */

enum { MAX_SEEN = 512 };

static const size_t NO_UNIT = SIZE_MAX;

static bool first_step[MAX_SEEN]; /* by launch */
static size_t n_launches;

static gx_status note_launch(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    (void)group;
    (void)prepared;
    (void)err;
    assert_true(n_launches < MAX_SEEN);
    first_step[n_launches++] = ctx->first_step;
    ctx->n_launched++;
    return GX_OK;
}

/* Walks two steps, the second behind the first; each unit but the first of a step is
 * programmatic where the plan is, but for unit `full`, whose edge is full (NO_UNIT:
 * none). Returns the units of a step. */
static size_t walk_two(int lanes, gx_choice programmatic, size_t full)
{
    const gx_plan_options plan_options = { .device = 0,
                                           .cache_folder = "",
                                           .lanes = lanes,
                                           .programmatic = programmatic,
                                           .no_measure = true };
    gx_alternative spies[64];
    path_program program;
    gx_error err;

    path_open(&program, lanes);
    gx_plan_free(program.plan);
    assert_ok(gx_plan_create(program.graph, &plan_options, &program.plan, &err), &err);
    make_exec(&program, NULL);
    const size_t n = program.plan->n_units;
    assert_true((full == NO_UNIT || full < n) && n <= ARRAY_SIZE(spies));
    for (size_t u = 0; u < n; u++) {
        spies[u] = *program.plan->units[u].alternative;
        spies[u].launch = note_launch;
        program.plan->units[u].alternative = &spies[u];
        program.plan->units[u].programmatic_first = u > 0 && programmatic == GX_ON;
        program.plan->units[u].full_edge = u == full;
    }
    n_launches = 0;
    for (int step = 0; step < 2; step++)
        assert_ok(gx_walk_cuda(program.exec, step > 0, NULL, &err), &err);
    assert_int_equal(n_launches, 2 * n);
    path_close(&program);
    return n;
}

static void what_an_earlier_step_wrote_is_not_loaded_early(void **state)
{
    (void)state;
    size_t n = walk_two(1, GX_ON, NO_UNIT);
    for (size_t u = 0; u < n; u++) {
        assert_true(first_step[u]);
        assert_false(first_step[n + u]);
    }
    /* Behind a full edge nothing of the step before is under way. */
    n = walk_two(1, GX_ON, 3);
    for (size_t u = 0; u < n; u++)
        assert_int_equal(first_step[n + u], u >= 3);
    n = walk_two(1, GX_ON, 0); /* that of the step before */
    for (size_t u = 0; u < 2 * n; u++)
        assert_true(first_step[u]);
    n = walk_two(1, GX_OFF, NO_UNIT);
    for (size_t u = 0; u < 2 * n; u++)
        assert_true(first_step[u]);
    for (int lanes = 2; lanes <= 3; lanes++) { /* which join and fork between steps */
        n = walk_two(lanes, GX_ON, NO_UNIT);
        for (size_t u = 0; u < 2 * n; u++)
            assert_true(first_step[u]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_records_one_step_and_runs_k),
        cmocka_unit_test(a_replay_of_a_loop_is_one_call),
        cmocka_unit_test(one_step_needs_no_loop),
        cmocka_unit_test(a_loop_is_no_child_of_another_graph),
        cmocka_unit_test(an_old_driver_has_no_loops),
        cmocka_unit_test(a_rebuilt_loop_is_a_loop),
        cmocka_unit_test(many_steps_take_every_failure),
        cmocka_unit_test(a_failed_loop_leaves_the_stream_and_the_state),
        cmocka_unit_test(steps_of_one_lane_overlap),
        cmocka_unit_test(what_an_earlier_step_wrote_is_not_loaded_early),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_steps", tests, NULL, NULL);
}
