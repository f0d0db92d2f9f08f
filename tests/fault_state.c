/* Devices and states: each CUDA call that they make fails once. */
#include "fake_cuda_paths.h"

#include <string.h>

#ifndef FAULT_REAL
#define FAULT_REAL false
#endif

/* --- which GPUs there are --- */

static void each_status_of_the_count_has_its_own_sentence(void **state)
{
    static const struct {
        int status;
        const char *part;
    } cases[] = {
        { 35, "older than this program's CUDA" },
        { 100, "CUDA_VISIBLE_DEVICES" },
        { 803, "different versions" },
        { 804, "forward compatibility" },
        { 3, "could not be initialised" },
        { 999, "unknown error" },
    };
    char sentences[ARRAY_SIZE(cases)][GX_MESSAGE_SIZE];
    gx_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int n = 12345;

        fake_begin();
        fake_fail("cudaGetDeviceCount", 1, cases[i].status);
        assert_fails(gx_device_count(&n, &err), GX_ERR_NO_DEVICE, &err, cases[i].part);
        assert_int_equal(n, 0);
        assert_int_equal(err.native, cases[i].status);
        assert_has(err.message, "driver's CUDA");
        assert_has(err.message, "program's CUDA 1");
        assert_has(err.message, "CPU");
        assert_int_equal(gx_status_exit(err.status), 3);
        memcpy(sentences[i], err.message, sizeof sentences[i]);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(sentences[other], sentences[i]);
    }
    fake_begin();
}

static void no_device_is_an_error_and_not_a_count_of_zero(void **state)
{
    int n = 12345;
    gx_error err;

    (void)state;
    if (fake_is_real())
        skip();
    fake_set_device_count(0);
    assert_fails(gx_device_count(&n, &err), GX_ERR_NO_DEVICE, &err, "no NVIDIA GPU");
    assert_int_equal(n, 0);
    fake_set_device_count(1);
    assert_ok(gx_device_count(&n, &err), &err);
    assert_int_equal(n, 1);
}

static void an_ordinal_that_is_not_there_is_named(void **state)
{
    gx_device_info info;
    gx_device *device = NULL;
    gx_error err;

    (void)state;
    assert_fails(gx_device_info_get(99, &info, &err), GX_ERR_NO_DEVICE, &err,
                 "no GPU 99");
    assert_fails(gx_device_open(99, NULL, &device, &err), GX_ERR_NO_DEVICE, &err,
                 "no GPU 99");
    assert_null(device);
}

static void an_old_card_is_refused(void **state)
{
    gx_device *device = NULL;
    int n;
    gx_error err;

    (void)state;
    if (fake_is_real())
        skip();
    fake_set_cc(75);
    assert_fails(gx_device_count(&n, &err), GX_ERR_NO_DEVICE, &err, "sm_75");
    assert_fails(gx_device_open(0, NULL, &device, &err), GX_ERR_NO_DEVICE, &err, "sm_80");
    assert_null(device);
    fake_set_cc(90);
}

static void a_card_without_a_kernel_image_is_refused(void **state)
{
    gx_device *device = NULL;
    gx_error err;

    (void)state;
    fake_begin();
    fake_fail("cudaFuncGetAttributes", 1, 209);
    assert_fails(gx_device_open(0, NULL, &device, &err), GX_ERR_UNSUPPORTED, &err,
                 "built for");
    assert_null(device);
    assert_int_equal(fake_live(), 0);
    fake_begin();
}

/* --- each call fails --- */

static gx_status open_and_close(void *user, gx_error *err)
{
    gx_device *device = NULL;

    (void)user;
    GX_TRY(gx_device_open(0, NULL, &device, err));
    fake_quiet(true);
    gx_device_close(device);
    return GX_OK;
}

static void opening_a_device_takes_every_failure(void **state)
{
    (void)state;
    assert_true(path_fail_each_call(open_and_close, NULL) >= 8);
}

static gx_status get_info(void *user, gx_error *err)
{
    gx_device_info info;

    (void)user;
    GX_TRY(gx_device_info_get(0, &info, err));
    assert_true(strlen(info.name) > 0);
    assert_true(info.cc_major >= 8);
    return GX_OK;
}

static void asking_for_a_card_takes_every_failure(void **state)
{
    (void)state;
    assert_true(path_fail_each_call(get_info, NULL) >= 4);
}

static gx_status use_state(gx_state *state, gx_snapshot **snapshot, gx_error *err)
{
    double w[15];
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 3, 5 }, .data = w };

    GX_TRY(gx_state_read(state, "w1", &host, err));
    GX_TRY(gx_state_save(state, snapshot, err));
    GX_TRY(gx_state_write(state, "w1", &host, err));
    GX_TRY(gx_state_set_rate(state, 0.5, err));
    return gx_state_restore(state, *snapshot, err);
}

static gx_status whole_state(void *user, gx_error *err)
{
    const path_program *program = user;
    const gx_graph *graph = program->graph;
    const gx_state_options options = { .device = 0, .seed = 1 };
    gx_snapshot *snapshot = NULL;
    gx_state *state = NULL;

    GX_TRY(gx_state_create(&graph, 1, &options, &state, err));
    const gx_status st = use_state(state, &snapshot, err);
    fake_quiet(true);
    gx_snapshot_free(snapshot);
    gx_state_free(state);
    return st;
}

static void a_state_takes_every_failure(void **state)
{
    path_program program;

    (void)state;
    path_open(&program, 1);
    assert_true(path_fail_each_call(whole_state, &program) >= 20);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- limits --- */

static void a_model_too_large_for_the_card_is_refused_before_allocation(void **state)
{
    path_program program;
    const gx_state_options options = { .device = 0 };
    gx_state *made = NULL;
    gx_error err;

    (void)state;
    if (fake_is_real())
        skip();
    path_open(&program, 1);
    const gx_graph *graph = program.graph;
    fake_set_free_bytes(64);
    fake_begin();
    assert_fails(gx_state_create(&graph, 1, &options, &made, &err), GX_ERR_DEVICE_MEMORY,
                 &err, "64 bytes");
    assert_int_equal(fake_calls("cudaMalloc"), 0);
    assert_fails(gx_exec_create(program.plan, program.state, NULL, &program.exec, &err),
                 GX_ERR_DEVICE_MEMORY, &err, "64 bytes");
    assert_int_equal(fake_calls("cudaMalloc"), 0);
    fake_set_free_bytes((size_t)8 << 30);
    path_close(&program);
}

static void out_of_device_memory_is_its_own_status(void **state)
{
    const gx_state_options options = { .device = 0 };
    path_program program;
    gx_state *made = NULL;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    const gx_graph *graph = program.graph;
    fake_begin();
    fake_fail("cudaMalloc", 1, 2);
    assert_fails(gx_state_create(&graph, 1, &options, &made, &err), GX_ERR_DEVICE_MEMORY,
                 &err, "cudaMalloc");
    assert_null(made);
    fake_begin();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_of_the_count_has_its_own_sentence),
        cmocka_unit_test(no_device_is_an_error_and_not_a_count_of_zero),
        cmocka_unit_test(an_ordinal_that_is_not_there_is_named),
        cmocka_unit_test(an_old_card_is_refused),
        cmocka_unit_test(a_card_without_a_kernel_image_is_refused),
        cmocka_unit_test(opening_a_device_takes_every_failure),
        cmocka_unit_test(asking_for_a_card_takes_every_failure),
        cmocka_unit_test(a_state_takes_every_failure),
        cmocka_unit_test(a_model_too_large_for_the_card_is_refused_before_allocation),
        cmocka_unit_test(out_of_device_memory_is_its_own_status),
    };

    path_start(FAULT_REAL);
    return cmocka_run_group_tests_name("fault_state", tests, NULL, NULL);
}
