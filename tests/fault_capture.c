/* Captures and replays: each CUDA and cuBLASLt call fails once. */
#include "fake_cuda_paths.h"

#include <string.h>

#include <cuda_runtime_api.h>

#include "exec_cuda.h"

#ifndef FAULT_REAL
#define FAULT_REAL false
#endif

/* --- each call fails --- */

static gx_status capture_and_replay(void *user, gx_error *err)
{
    const path_program *program = user;
    gx_exec *exec = program->exec;
    gx_timing timing;

    GX_TRY(gx_exec_capture(exec, err));
    gx_status st = gx_exec_run(exec, GX_MODE_GRAPH, 3, err);
    if (st == GX_OK)
        st = gx_exec_time(exec, GX_MODE_GRAPH, 2, &timing, err);
    fake_quiet(true);
    gx_capture_drop(exec);
    return st;
}

static void fail_each_call_of_capture(int lanes)
{
    path_program program;

    path_open(&program, lanes);
    path_make_exec(&program);
    path_write_inputs(&program);
    assert_true(path_fail_each_call(capture_and_replay, &program) >= 30);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void a_capture_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_capture(1);
}

static void a_capture_of_two_lanes_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_capture(2);
}

static void a_capture_of_three_lanes_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_capture(3);
}

static void a_failure_at_each_op_leaves_nothing_behind(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    path_write_inputs(&program);
    const long live = fake_live();
    for (int round = 0; round < 100; round++) {
        fake_begin();
        fake_fail("cudaLaunchKernelExC", 1 + round % 5, cudaErrorInvalidValue);
        assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CUDA, &err,
                     "cudaLaunchKernelExC");
        assert_int_equal(fake_live(), live);
        assert_int_equal(fake_calls("cudaStreamBeginCapture"), 1);
        assert_int_equal(fake_calls("cudaStreamEndCapture"), 1);
    }
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void a_failure_of_the_end_is_told(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    fake_begin();
    fake_fail("cudaStreamEndCapture", 1, cudaErrorStreamCaptureUnjoined);
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CUDA, &err,
                 "cudaStreamEndCapture");
    fake_begin();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* Ending fails too then, and its status must not hide what came first. */
static void the_first_failure_is_the_one_that_is_told(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    fake_begin();
    fake_fail("cublasLtMatmul", 1, 14);
    fake_fail_too("cudaStreamEndCapture", cudaErrorStreamCaptureInvalidated);
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CUBLAS, &err,
                 "cublasLtMatmul");
    assert_null(strstr(err.message, "cudaStreamEndCapture"));
    assert_has(err.message, "fc1");
    fake_begin();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- what a good capture is --- */

static void a_replay_is_one_call_and_the_graph_is_made_once(void **state)
{
    enum { N = 100 };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    path_make_exec(&program);
    path_write_inputs(&program);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
    assert_int_equal(fake_calls("cudaGraphInstantiate"), 1);
    assert_int_equal(fake_calls("cudaGraphUpload"), 1);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, N, &err), &err);
    assert_int_equal(fake_calls("cudaGraphLaunch"), N);
    assert_int_equal(fake_calls("cudaGetDevice"), 1);
    assert_int_equal(fake_calls(NULL), N + 1);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.instantiations, 1);
    assert_int_equal(stats.graph_launches, N + 1);
    assert_int_equal(stats.rebuilds, 0);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    assert_true(stats.capture_s >= 0 && stats.instantiate_s >= 0 && stats.upload_s >= 0 &&
                stats.first_launch_s >= 0 && stats.prime_s >= 0 && stats.prepare_s >= 0);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
}

/* However many nodes there are, they are listed once; behind a unit the driver is asked
 * what is told at once. */
static void a_good_capture_is_made_once_and_listed_once(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        for (int n_steps = 1; n_steps <= 3; n_steps++) {
            const gx_exec_options options = { .steps_per_launch = n_steps };
            path_program program;
            gx_error err;

            path_open(&program, lanes);
            assert_ok(gx_exec_create(program.plan, program.state, &options, &program.exec,
                                     &err),
                      &err);
            fake_begin();
            assert_ok(gx_exec_capture(program.exec, &err), &err);
            assert_int_equal(fake_calls("cudaStreamBeginCapture"), 1);
            assert_int_equal(fake_calls("cudaGraphGetNodes"), 2);
            assert_int_equal(fake_calls("cudaStreamGetCaptureInfo"),
                             (size_t)n_steps * program.plan->n_units);
            const size_t n_nodes = (size_t)gx_exec_stats_get(program.exec).graph_nodes;
            const size_t n_asked = (size_t)fake_calls("cudaGraphNodeGetType");

            /* For what it may not hold, and again where there are fills. */
            assert_true(n_asked == n_nodes || n_asked == 2 * n_nodes);
            path_close(&program);
        }
    }
    assert_int_equal(fake_live(), 0);
}

static void k_steps_are_one_launch(void **state)
{
    const gx_exec_options options = { .steps_per_launch = 3 };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_ok(gx_exec_create(program.plan, program.state, &options, &program.exec, &err),
              &err);
    path_write_inputs(&program);
    assert_fails(gx_exec_run(program.exec, GX_MODE_GRAPH, 4, &err), GX_ERR_ARGUMENT, &err,
                 "multiple of the 3");
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 6, &err), &err);
    assert_int_equal(fake_calls("cudaGraphLaunch"), 2);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_nodes, 3 * stats.launches_per_step);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 4, &err), &err);
    assert_int_equal(gx_exec_stats_get(program.exec).eager_steps, 4);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
}

/* Events of timing are not those of captures. */
static void eager_times_are_there_before_and_after_a_capture(void **state)
{
    const gx_mode modes[] = { GX_MODE_EAGER, GX_MODE_GRAPH, GX_MODE_EAGER };
    path_program program;
    gx_timing timing;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    path_make_exec(&program);
    path_write_inputs(&program);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        assert_ok(gx_exec_time(program.exec, modes[i], 5, &timing, &err), &err);
        assert_true(timing.device_s > 0);
        assert_true(timing.host_s > 0);
        assert_true(timing.wall_s >= timing.host_s);
    }
    path_close(&program);
}

static void binding_builds_the_graph_again_with_the_new_address(void **state)
{
    path_program program;
    void *memory = NULL;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    path_write_inputs(&program);
    gx_error_clear(&err);
    assert_ok(gx_device_alloc(program.exec->device, 4 * 3 * 4, &memory, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
    assert_fails(gx_exec_bind(program.exec, "x", (char *)memory + 4, &err),
                 GX_ERR_ARGUMENT, &err, "256");
    assert_fails(gx_exec_bind(program.exec, "x", NULL, &err), GX_ERR_ARGUMENT, &err,
                 "256");
    assert_fails(gx_exec_bind(program.exec, "h", memory, &err), GX_ERR_ARGUMENT, &err,
                 "no input");
    assert_ok(gx_exec_bind(program.exec, "x", memory, &err), &err);
    assert_null(program.exec->graph_exec[0]);
    const int32_t id = (int32_t)gx_graph_find(program.graph, "x");
    size_t n_operands = 0;
    for (size_t i = 0; i < program.graph->n_nodes; i++)
        for (int arg = 0; arg < GX_MAX_ARGS; arg++)
            n_operands += program.exec->calls[i].arg[arg].data == memory;
    assert_ptr_equal(program.exec->value_data[id], memory);
    assert_true(n_operands >= 2); /* the product and the gradient of its weights */
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
    assert_int_equal(gx_exec_stats_get(program.exec).rebuilds, 1);
    assert_int_equal(gx_exec_stats_get(program.exec).instantiations, 2);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    gx_device_release(program.exec->device, memory);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void building_again_and_again_leaves_nothing(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    const long live = fake_live();
    for (int round = 0; round < 50; round++) {
        path_make_exec(&program);
        path_write_inputs(&program);
        assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 3, &err), &err);
        gx_exec_free(program.exec);
        program.exec = NULL;
        assert_int_equal(fake_live(), live);
    }
    assert_null(fake_mistake());
    path_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_takes_every_failure),
        cmocka_unit_test(a_capture_of_two_lanes_takes_every_failure),
        cmocka_unit_test(a_capture_of_three_lanes_takes_every_failure),
        cmocka_unit_test(a_failure_at_each_op_leaves_nothing_behind),
        cmocka_unit_test(a_failure_of_the_end_is_told),
        cmocka_unit_test(the_first_failure_is_the_one_that_is_told),
        cmocka_unit_test(a_replay_is_one_call_and_the_graph_is_made_once),
        cmocka_unit_test(a_good_capture_is_made_once_and_listed_once),
        cmocka_unit_test(k_steps_are_one_launch),
        cmocka_unit_test(eager_times_are_there_before_and_after_a_capture),
        cmocka_unit_test(binding_builds_the_graph_again_with_the_new_address),
        cmocka_unit_test(building_again_and_again_leaves_nothing),
    };

    path_start(FAULT_REAL);
    return cmocka_run_group_tests_name("fault_capture", tests, NULL, NULL);
}
