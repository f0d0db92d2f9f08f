/* Programs made, fed, run eagerly, read: each CUDA and cuBLASLt call fails once. */
#include "fake_cuda_paths.h"

#include <math.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "measure.h"

#ifndef FAULT_REAL
#define FAULT_REAL false
#endif

/* --- each call fails --- */

static gx_status use_exec(gx_exec *exec, gx_error *err)
{
    float loss = -1;
    double logits[8];
    gx_tensor host_loss = { .dtype = GX_F32, .rank = 0, .data = &loss };
    gx_tensor host_logits = {
        .dtype = GX_F64, .rank = 2, .dim = { 4, 2 }, .data = logits
    };
    gx_timing timing;

    GX_TRY(path_try_write_inputs(exec, err));
    GX_TRY(path_try_write_inputs(exec, err)); /* the staging comes round again */
    GX_TRY(gx_exec_run(exec, GX_MODE_EAGER, 2, err));
    GX_TRY(gx_exec_fetch(exec, "loss", &host_loss, err));
    GX_TRY(gx_exec_sync(exec, err));
    GX_TRY(gx_exec_read(exec, "logits", &host_logits, err));
    return gx_exec_time(exec, GX_MODE_EAGER, 1, &timing, err);
}

static gx_status whole_exec(void *user, gx_error *err)
{
    const path_program *program = user;
    gx_exec *exec = NULL;

    GX_TRY(gx_exec_create(program->plan, program->state, NULL, &exec, err));
    const gx_status st = use_exec(exec, err);
    fake_quiet(true);
    gx_exec_free(exec);
    return st;
}

static void fail_each_call_of_exec(int lanes)
{
    path_program program;

    path_open(&program, lanes);
    assert_true(path_fail_each_call(whole_exec, &program) >= 100);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void a_program_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_exec(1);
}

static void a_program_of_two_lanes_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_exec(2);
}

static void a_program_of_three_lanes_takes_every_failure(void **state)
{
    (void)state;
    fail_each_call_of_exec(3);
}

static gx_status empty_graph(void *user, gx_error *err)
{
    double seconds = -1;

    GX_TRY(gx_empty_graph_host(0, 5, 3, *(const double *)user, &seconds, err));
    assert_true(seconds >= 0);
    return GX_OK;
}

static void measuring_empty_kernels_takes_every_failure(void **state)
{
    double busy_s[] = { 0, 1e-3 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(busy_s); i++)
        assert_true(path_fail_each_call(empty_graph, &busy_s[i]) >= 20);
    assert_int_equal(fake_live(), 0);
}

/* What the device does while the host waits stands in no graph. */
static void a_device_is_busy_between_empty_graphs_where_asked(void **state)
{
    enum { NODES = 5, REPEATS = 4, WARM = 3 };
    const double wrong[] = { -1e-3, 1.5, (double)NAN };
    double seconds = 0;
    gx_error err;

    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        const int n_behind = busy ? REPEATS + WARM : 0;

        fake_begin();
        assert_ok(gx_empty_graph_host(0, NODES, REPEATS, busy * 1e-3, &seconds, &err),
                  &err);
        assert_true(seconds >= 0);
        assert_int_equal(fake_calls("cudaGraphLaunch"), REPEATS + WARM);
        assert_int_equal(fake_calls("cudaLaunchKernelExC"), NODES + n_behind);
        assert_int_equal(fake_calls("cudaEventRecord"), 2 * n_behind);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_fails(gx_empty_graph_host(0, NODES, REPEATS, wrong[i], &seconds, &err),
                     GX_ERR_ARGUMENT, &err, "busy");
        assert_true(seconds < 0);
    }
    assert_int_equal(fake_live(), 0);
}

static gx_status window(void *user, gx_error *err)
{
    (void)user;
    GX_TRY(gx_profiler_window(true, err));
    return gx_profiler_window(false, err);
}

static void the_profiler_window_takes_every_failure(void **state)
{
    (void)state;
    assert_int_equal(path_fail_each_call(window, NULL), 2);
}

/* --- measuring for selection --- */

static gx_status measure_unit(const path_program *program, size_t i, gx_error *err)
{
    const gx_exec *exec = program->exec;
    const gx_unit *unit = &program->plan->units[i];
    const gx_bound_unit *bound = &exec->units[i];
    gx_group_time time;
    double us;

    GX_TRY(gx_run_group(exec->device, &bound->group, unit->alternative, &bound->prepared,
                        exec->workspace[unit->lane], err));
    GX_TRY(gx_measure_group(exec->device, &bound->group, unit->alternative,
                            &bound->prepared, exec->workspace[unit->lane], 0, &time,
                            err));
    assert_true(time.us > 0 && time.once_us > 0);
    assert_true(time.n_nodes > 0 && !time.given_up);
    if (bound->prepared.n_launches >= 0)
        assert_int_equal(time.n_nodes, bound->prepared.n_launches);
    us = 60e3; /* so that it is launched few times */
    GX_TRY(gx_measure_sustained(exec->device, &bound->group, unit->alternative,
                                &bound->prepared, exec->workspace[unit->lane], &us, err));
    assert_true(us > 0);
    return GX_OK;
}

/* One whose launches are all ours, and one of the library's where there is one. */
static gx_status measure_two_units(void *user, gx_error *err)
{
    const path_program *program = user;
    bool seen[2] = { false, false };

    for (size_t i = 0; i < program->plan->n_units; i++) {
        const bool ours = program->exec->units[i].prepared.n_launches >= 0;

        if (seen[ours])
            continue;
        seen[ours] = true;
        GX_TRY(measure_unit(program, i, err));
    }
    return GX_OK;
}

static void measuring_a_group_takes_every_failure(void **state)
{
    path_program program;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    assert_true(path_fail_each_call(measure_two_units, &program) >= 60);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static gx_status measure_plan(void *user, gx_error *err)
{
    const path_program *program = user;
    double us = -1;

    GX_TRY(gx_measure_plan(program->plan, program->state, NULL, &us, err));
    assert_true(us > 0);
    return GX_OK;
}

static void measuring_a_plan_leaves_nothing(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    const long live = fake_live();
    gx_error_clear(&err);
    assert_ok(measure_plan(&program, &err), &err);
    assert_int_equal(fake_live(), live);
    for (long nth = 1; nth <= 3; nth++) {
        fake_begin();
        fake_fail("cudaGraphLaunch", nth, cudaErrorUnknown);
        assert_fails(measure_plan(&program, &err), GX_ERR_CUDA, &err, "cudaGraphLaunch");
        assert_int_equal(fake_live(), live);
    }
    fake_begin();
    path_close(&program);
}

/* --- priming --- */

/* Every unit is launched once while a program is made, on a state that is put back. */
static void making_a_program_runs_one_step(void **state)
{
    const gx_exec_options unprimed = { .no_prime_check = true };
    path_program program;
    gx_exec *exec = NULL;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    fake_begin();
    assert_ok(gx_exec_create(program.plan, program.state, &unprimed, &exec, &err), &err);
    assert_int_equal(fake_calls("cudaLaunchKernelExC") + fake_calls("cublasLtMatmul"), 0);
    assert_true(gx_exec_stats_get(exec).prime_s < 0);
    gx_exec_free(exec);
    fake_begin();
    path_make_exec(&program);
    const long primed = fake_calls("cudaLaunchKernelExC") + fake_calls("cublasLtMatmul");
    assert_true(gx_exec_stats_get(program.exec).prime_s >= 0);
    path_write_inputs(&program);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    assert_int_equal(fake_calls("cudaLaunchKernelExC") + fake_calls("cublasLtMatmul"),
                     primed);
    assert_true(primed > 0);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
}

/* --- the op that failed is named --- */

static void a_failing_launch_names_its_op(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    path_write_inputs(&program);
    const char *functions[] = { "cudaLaunchKernelExC", "cublasLtMatmul" };
    for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
        fake_begin();
        assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
        const long n = fake_calls(functions[f]);
        for (long nth = 1; nth <= n; nth++) {
            bool named = false;

            fake_begin();
            fake_fail(functions[f], nth, 14);
            assert_int_not_equal(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err),
                                 GX_OK);
            for (size_t i = 0; i < program.plan->n_units; i++) {
                const char *name = program.exec->units[i].name;

                named |= strncmp(err.message, name, strlen(name)) == 0 &&
                         err.message[strlen(name)] == ':';
            }
            if (!named)
                fail_msg("no op's name in front of: %s", err.message);
        }
    }
    fake_begin();
    path_close(&program);
}

/* --- a device that failed --- */

static void after_a_fault_each_call_says_that_the_device_is_broken(void **state)
{
    path_program program;
    gx_snapshot *snapshot = NULL;
    double values[15];
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 3, 5 }, .data = values };
    gx_tensor logits = { .dtype = GX_F32, .rank = 2, .dim = { 4, 2 }, .data = values };
    gx_timing timing;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    path_write_inputs(&program);
    fake_begin();
    fake_fail("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
    assert_fails(gx_exec_sync(program.exec, &err), GX_ERR_CUDA, &err,
                 "cudaErrorIllegalAddress");
    gx_exec *exec = program.exec;
    assert_fails(gx_exec_sync(exec, &err), GX_ERR_BROKEN, &err, "failed earlier");
    assert_fails(gx_exec_run(exec, GX_MODE_EAGER, 1, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_exec_run(exec, GX_MODE_GRAPH, 1, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_exec_capture(exec, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(path_try_write_inputs(exec, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_exec_read(exec, "logits", &logits, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_exec_fetch(exec, "logits", &logits, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_exec_time(exec, GX_MODE_EAGER, 1, &timing, &err), GX_ERR_BROKEN, &err,
                 "");
    assert_fails(gx_exec_log(exec, 1, values, &err), GX_ERR_BROKEN, &err, "");
    assert_fails(gx_state_read(program.state, "w1", &host, &err), GX_ERR_BROKEN, &err,
                 "");
    assert_fails(gx_state_write(program.state, "w1", &host, &err), GX_ERR_BROKEN, &err,
                 "");
    assert_fails(gx_state_save(program.state, &snapshot, &err), GX_ERR_BROKEN, &err, "");
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* Whether the device broke is seen also where the caller gave no place for an error. */
static void a_fault_is_noticed_without_an_error_to_fill(void **state)
{
    path_program program;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    path_write_inputs(&program);
    fake_begin();
    fake_fail("cudaLaunchKernelExC", 1, cudaErrorLaunchFailure);
    assert_int_equal(gx_exec_run(program.exec, GX_MODE_EAGER, 1, NULL), GX_ERR_CUDA);
    assert_int_equal(gx_exec_run(program.exec, GX_MODE_EAGER, 1, NULL), GX_ERR_BROKEN);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- inputs --- */

static void an_input_that_nobody_gave_stops_the_first_run(void **state)
{
    path_program program;
    double x[12] = { 0 };
    int32_t y[4] = { 0, 1, 2, 0 };
    gx_tensor host_x = { .dtype = GX_F64, .rank = 2, .dim = { 4, 3 }, .data = x };
    gx_tensor host_y = { .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = y };
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    gx_exec *exec = program.exec;
    assert_fails(gx_exec_run(exec, GX_MODE_EAGER, 1, &err), GX_ERR_STATE, &err, "'x'");
    assert_ok(gx_exec_write(exec, "x", &host_x, &err), &err);
    assert_fails(gx_exec_run(exec, GX_MODE_GRAPH, 1, &err), GX_ERR_STATE, &err, "'y'");
    assert_fails(gx_exec_write(exec, "y", &host_y, &err), GX_ERR_DATA, &err, "[0, 2)");
    y[2] = 1;
    assert_ok(gx_exec_write(exec, "y", &host_y, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_EAGER, 1, &err), &err);
    assert_fails(gx_exec_write(exec, "z", &host_y, &err), GX_ERR_ARGUMENT, &err, "'z'");
    assert_fails(gx_exec_write(exec, "w1", &host_x, &err), GX_ERR_ARGUMENT, &err,
                 "no input");
    host_x.dim[0] = 5;
    assert_fails(gx_exec_write(exec, "x", &host_x, &err), GX_ERR_SHAPE, &err, "[4, 3]");
    path_close(&program);
}

static void host_memory_may_be_reused_when_write_returns(void **state)
{
    enum { N = 12 };
    path_program program;
    float x[N];
    float back[N];
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { 4, 3 }, .data = x };
    gx_tensor read = { .dtype = GX_F32, .rank = 2, .dim = { 4, 3 }, .data = back };
    gx_error err;

    (void)state;
    path_open(&program, 1);
    path_make_exec(&program);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(round * N + i);
        assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
        memset(x, 0xff, sizeof x);
        assert_ok(gx_exec_read(program.exec, "x", &read, &err), &err);
        for (int i = 0; i < N; i++)
            assert_true(back[i] == (float)(round * N + i));
    }
    path_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_takes_every_failure),
        cmocka_unit_test(a_program_of_two_lanes_takes_every_failure),
        cmocka_unit_test(a_program_of_three_lanes_takes_every_failure),
        cmocka_unit_test(measuring_empty_kernels_takes_every_failure),
        cmocka_unit_test(a_device_is_busy_between_empty_graphs_where_asked),
        cmocka_unit_test(the_profiler_window_takes_every_failure),
        cmocka_unit_test(measuring_a_group_takes_every_failure),
        cmocka_unit_test(measuring_a_plan_leaves_nothing),
        cmocka_unit_test(making_a_program_runs_one_step),
        cmocka_unit_test(a_failing_launch_names_its_op),
        cmocka_unit_test(after_a_fault_each_call_says_that_the_device_is_broken),
        cmocka_unit_test(a_fault_is_noticed_without_an_error_to_fill),
        cmocka_unit_test(an_input_that_nobody_gave_stops_the_first_run),
        cmocka_unit_test(host_memory_may_be_reused_when_write_returns),
    };

    path_start(FAULT_REAL);
    return cmocka_run_group_tests_name("fault_exec", tests, NULL, NULL);
}
