/* Lanes on the simulated CUDA: their streams, and how they part and join. */
#include "fake_cuda_paths.h"

#include <string.h>

#include <cuda_runtime_api.h>

#include "exec_cuda.h"

/* --- streams --- */

static int priority_of(const gx_device *device, int lane)
{
    int priority = 1;

    assert_int_equal(cudaStreamGetPriority(device->lane_stream[lane], &priority),
                     cudaSuccess);
    return priority;
}

static void check_priorities(void *stream, const int expected[GX_MAX_LANES])
{
    gx_device *device;
    gx_error err = { 0 };

    assert_ok(gx_device_open(0, stream, &device, &err), &err);
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        assert_int_equal(priority_of(device, lane), expected[lane]);
    if (stream)
        assert_ptr_equal(device->stream, stream);
    assert_ptr_equal(device->stream, device->lane_stream[0]);
    gx_device_close(device);
}

/* The simulated card has priorities from 0 down to -5. */
static void lane_0_goes_first(void **state)
{
    static const int callers[] = { 0, -1, -5 };
    const int own[] = { -2, -1, 0 };

    (void)state;
    check_priorities(NULL, own);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        const int p = callers[i];
        const int expected[] = { p, p < 0 ? p + 1 : 0, p < -1 ? p + 2 : 0 };
        cudaStream_t stream;

        assert_int_equal(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, p),
                         cudaSuccess);
        check_priorities(stream, expected);
        assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    }
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

static gx_status open_device(void *stream, gx_error *err)
{
    gx_device *device = NULL;

    GX_TRY(gx_device_open(0, stream, &device, err));
    fake_quiet(true);
    gx_device_close(device);
    return GX_OK;
}

static void a_device_takes_every_failure(void **state)
{
    cudaStream_t stream;

    (void)state;
    assert_true(path_fail_each_call(open_device, NULL) >= 10);
    assert_int_equal(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0),
                     cudaSuccess);
    assert_true(path_fail_each_call(open_device, stream) >= 10);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    assert_int_equal(fake_live(), 0);
}

/* --- parting and joining --- */

/* A step waits for two lanes in the end; one that parted is joined, though the other did
 * not part. */
static void lanes_that_parted_are_joined(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 3);
    assert_int_equal(program.plan->n_lanes, 3);
    path_make_exec(&program);
    path_write_inputs(&program);
    assert_non_null(program.exec->join_event[1]);
    assert_non_null(program.exec->join_event[2]);
    for (long nth = 1; nth <= 2; nth++) {
        fake_begin();
        fake_fail("cudaStreamWaitEvent", nth, cudaErrorUnknown);
        assert_fails(gx_walk_cuda(program.exec, false, NULL, NULL, &err), GX_ERR_CUDA,
                     &err, "cudaStreamWaitEvent");
        assert_int_equal(fake_calls("cudaLaunchKernelExC"), 0);
        assert_int_equal(fake_calls("cudaEventRecord"), nth); /* one parts */
        assert_int_equal(fake_calls("cudaStreamWaitEvent"), nth + nth - 1);
    }
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* What has nothing on lane 1 parts and joins without it. */
static void a_lane_without_work_takes_no_part(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 3);
    for (size_t u = 0; u < program.plan->n_units; u++) {
        gx_unit *unit = &program.plan->units[u];

        unit->n_waits = 0; /* order is of no account here */
        unit->signals = false;
        unit->lane = unit->lane == 1 ? 0 : unit->lane;
        if (unit->workspace_bytes > program.plan->workspace_bytes[unit->lane])
            program.plan->workspace_bytes[unit->lane] = unit->workspace_bytes;
    }
    path_make_exec(&program);
    path_write_inputs(&program);
    assert_null(program.exec->join_event[1]);
    assert_non_null(program.exec->join_event[2]);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    assert_int_equal(fake_calls("cudaEventRecord"), 2);
    assert_int_equal(fake_calls("cudaStreamWaitEvent"), 2);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_0_goes_first),
        cmocka_unit_test(a_device_takes_every_failure),
        cmocka_unit_test(lanes_that_parted_are_joined),
        cmocka_unit_test(a_lane_without_work_takes_no_part),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_lanes", tests, NULL, NULL);
}
