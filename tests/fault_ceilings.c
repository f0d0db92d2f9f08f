/* Measuring a card's ceilings on the simulated CUDA: calls that fail, and figures that
 * cannot be. */
#include "fake_cuda_paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "args.h"

static gx_status measure(void *user, gx_error *err)
{
    return gx_ceilings_measure(0, user, err);
}

static void measuring_takes_every_failure(void **state)
{
    gx_ceilings ceilings;

    (void)state;
    assert_true(path_fail_some_calls(measure, &ceilings, 4) >= 100);
    assert_int_equal(fake_live(), 0);
}

/* The simulated clock ticks once for each thing that runs, however large: rates follow,
 * while graphs of any length take a tick, and so a node costs nothing, which cannot be.
 */
static void rates_are_told_and_what_cannot_be_is_not(void **state)
{
    const double largest = 2 * pow(2048, 3) / 2e-3; /* a product is two ticks */
    gx_ceilings c;
    gx_device_info info;
    gx_error err = { 0 };

    (void)state;
    fake_begin();
    assert_ok(gx_device_info_get(0, &info, &err), &err);
    assert_ok(gx_ceilings_measure(0, &c, &err), &err);
    assert_string_equal(c.card, info.name);
    assert_int_equal(c.driver_version, info.driver_version);
    assert_int_equal(c.runtime_version, info.runtime_version);
    assert_int_equal(strlen(c.date), strlen("2026-01-31T12:34:56Z"));
    for (int i = 0; i < GX_RATES; i++)
        assert_true(fabs(c.flops_per_s[i] / (64 * largest) - 1) < 1e-3);
    assert_int_equal(c.n_copy, 15);
    assert_int_equal(c.copy[0].bytes, 64 << 10);
    assert_int_equal(c.copy[14].bytes, 1 << 30);
    for (size_t i = 0; i < c.n_copy; i++)
        assert_true(fabs(c.copy[i].bytes_per_s / (4096.0 * (1 << 20) / 1e-3) - 1) < 1e-3);
    assert_true(c.node_s == -1 && c.programmatic_node_s == -1 && c.step_s == -1);
    assert_true(c.launch_s > 0 && c.graph_host_s > 0);
    assert_int_equal(fake_live(), 0);
}

/* --- what a card or its library lacks --- */

static void a_type_without_algorithms_has_no_rate(void **state)
{
    gx_ceilings c;
    gx_error err = { 0 };

    (void)state;
    /* Six searches for each type: two forms of three sizes. The first type has none. */
    fake_begin();
    fake_fail("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_NOT_SUPPORTED);
    fake_fail_too("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED);
    assert_ok(gx_ceilings_measure(0, &c, &err), &err);
    for (int i = 0; i < GX_RATES; i++)
        assert_true(c.flops_per_s[i] == -1);
    assert_int_equal(c.n_copy, 15);
    assert_int_equal(fake_live(), 0);
}

static void an_older_card_has_no_programmatic_nodes(void **state)
{
    gx_ceilings c;
    gx_error err = { 0 };

    (void)state;
    fake_begin();
    assert_ok(gx_ceilings_measure(0, &c, &err), &err);
    const long with = fake_calls("cudaStreamBeginCapture");
    fake_set_cc(80);
    fake_begin();
    assert_ok(gx_ceilings_measure(0, &c, &err), &err);
    assert_int_equal(fake_calls("cudaStreamBeginCapture"), with - 2);
    assert_true(c.programmatic_node_s == -1);
    fake_set_cc(90);
}

static void too_little_memory_is_told_with_what_it_takes(void **state)
{
    gx_ceilings c;
    gx_error err = { 0 };

    (void)state;
    fake_begin();
    fake_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
    assert_fails(gx_ceilings_measure(0, &c, &err), GX_ERR_DEVICE_MEMORY, &err,
                 "1056 MiB");
    assert_true(c.launch_s < 0 && c.n_copy == 0);
    assert_int_equal(fake_live(), 0);
}

static void a_card_that_is_not_there_is_told(void **state)
{
    gx_ceilings c;
    gx_error err = { 0 };

    (void)state;
    fake_begin();
    assert_fails(gx_ceilings_measure(3, &c, &err), GX_ERR_NO_DEVICE, &err,
                 "there is no GPU 3");
    fake_set_device_count(0);
    assert_fails(gx_ceilings_measure(0, &c, &err), GX_ERR_NO_DEVICE, &err, "");
    fake_set_device_count(1);
}

/* --- gexec doctor --- */

/* Runs doctor with its JSON in the file `json` and what it prints in the file `out`. */
static int doctor(bool measure, const char *json, const char *out)
{
    const gx_args args = { .measure = measure, .gpu = -1, .quiet = true, .json = json };
    FILE *file = fopen(out, "w");

    assert_non_null(file);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    assert_true(before >= 0);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    const int exit_status = gx_cmd_doctor(&args);
    fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    fclose(file);
    return exit_status;
}

static void assert_files_have(const char *json, const char *in_json, const char *out,
                              const char *in_out)
{
    char *text = test_read(json, NULL);

    assert_has(text, in_json);
    free(text);
    text = test_read(out, NULL);
    assert_has(text, in_out);
    free(text);
}

static void doctor_measures_keeps_and_shows(void **state)
{
    char *json = test_path("doctor.json");
    char *out = test_path("doctor.txt");

    (void)state;
    fake_begin();
    assert_int_equal(setenv("XDG_CACHE_HOME", test_folder(), 1), 0);
    assert_int_equal(doctor(false, json, out), GX_EXIT_OK);
    assert_files_have(json, "gexec doctor --measure", out, "\nlacks  ceilings ");
    assert_int_equal(doctor(true, json, out), GX_EXIT_OK);
    assert_files_have(json, "\"programmatic_node_s\": null", out,
                      "ceilings of simulated GPU, measured 2");
    fake_begin();
    assert_int_equal(doctor(false, json, out), GX_EXIT_OK);
    assert_int_equal(fake_calls("cudaLaunchKernelExC"), 0);
    assert_files_have(json, "\"bytes\": 65536", out, "\nhas    ceilings            0: ");
    assert_files_have(json, "\"bytes\": 1073741824", out, "  1.00 GiB ");
    free(json);
    free(out);
}

static void doctor_prints_nothing_when_measuring_fails(void **state)
{
    char *json = test_path("failed.json");
    char *out = test_path("failed.txt");

    (void)state;
    fake_begin();
    fake_fail("cudaGraphUpload", 1, cudaErrorUnknown);
    assert_int_equal(doctor(true, json, out), GX_EXIT_FAILED);
    assert_true(access(json, F_OK) != 0);
    char *text = test_read(out, NULL);
    assert_string_equal(text, "");
    free(text);
    free(json);
    free(out);
}

static void doctor_shows_what_it_could_not_keep(void **state)
{
    char *json = test_path("unkept.json");
    char *out = test_path("unkept.txt");
    char *in_the_way = test_write_text("file", "");

    (void)state;
    fake_begin();
    assert_int_equal(setenv("XDG_CACHE_HOME", in_the_way, 1), 0);
    assert_int_equal(doctor(true, json, out), GX_EXIT_FAILED);
    assert_files_have(json, "\"bytes\": 65536", out, "ceilings of simulated GPU");
    free(in_the_way);
    free(json);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measuring_takes_every_failure),
        cmocka_unit_test(rates_are_told_and_what_cannot_be_is_not),
        cmocka_unit_test(a_type_without_algorithms_has_no_rate),
        cmocka_unit_test(an_older_card_has_no_programmatic_nodes),
        cmocka_unit_test(too_little_memory_is_told_with_what_it_takes),
        cmocka_unit_test(a_card_that_is_not_there_is_told),
        cmocka_unit_test(doctor_measures_keeps_and_shows),
        cmocka_unit_test(doctor_prints_nothing_when_measuring_fails),
        cmocka_unit_test(doctor_shows_what_it_could_not_keep),
    };

    if (fake_is_real())
        return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
