/* NVTX ranges of captures and replays, on the simulated CUDA. */
#include "fake_cuda_paths.h"
#include "support_nvtx.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

static path_program program;

static int open_program(void **state)
{
    const gx_exec_options options = { .steps_per_launch = 2 };
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_ok(gx_exec_create(program.plan, program.state, &options, &program.exec, &err),
              &err);
    path_write_inputs(&program);
    return 0;
}

static int close_program(void **state)
{
    (void)state;
    path_close(&program);
    return 0;
}

static size_t lines_so_far(void)
{
    nvtx_log *log = nvtx_log_read(0);
    const size_t n = log->n_lines;

    free(log);
    return n;
}

static void check_step(const nvtx_log *log, int *i, int parent)
{
    const int step = (*i)++;
    int n_units = 0;

    assert_string_equal(log->range[step].text, "step");
    assert_int_equal(log->range[step].parent, parent);
    for (; *i < log->n_ranges && log->range[*i].depth > log->range[step].depth; (*i)++) {
        const nvtx_range *range = &log->range[*i];

        if (range->payload < 0)
            continue;
        assert_string_equal(range->text, program.exec->units[n_units].name);
        assert_int_equal(range->payload, program.plan->units[n_units].first_node);
        n_units++;
    }
    assert_int_equal(n_units, program.plan->n_units);
}

static void an_eager_step_has_ranges_of_its_own(void **state)
{
    const size_t first_line = lines_so_far();
    gx_error err;
    int i = 0;

    (void)state;
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    nvtx_log *log = nvtx_log_read(first_line);
    check_step(log, &i, -1);
    assert_int_equal(i, log->n_ranges);
    assert_int_equal(log->n_open, 0);
    free(log);
}

/* The fill of each product, which becomes a kernel when the capture is done. */
static void check_fills(const nvtx_log *log, int *i, int parent)
{
    const path_program *const p = &program;
    int n_fills = 0;

    for (; *i < log->n_ranges; (*i)++, n_fills++) {
        const nvtx_range *range = &log->range[*i];
        size_t unit = 0;

        assert_int_equal(range->parent, parent);
        while (unit < p->plan->n_units &&
               range->payload != p->plan->units[unit].first_node)
            unit++;
        assert_in_range(unit, 0, p->plan->n_units - 1);
        assert_string_equal(range->text, p->exec->units[unit].name);
    }
    assert_true(n_fills > 0);
    assert_int_equal(n_fills, fake_calls("cudaGraphAddKernelNode"));
}

static void a_capture_is_one_range_around_its_steps(void **state)
{
    const size_t first_line = lines_so_far();
    gx_error err;
    int i = 1;

    (void)state;
    fake_begin();
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    nvtx_log *log = nvtx_log_read(first_line);
    assert_int_equal(nvtx_count(log, 0), 1);
    assert_string_equal(log->range[0].text, "capture");
    assert_int_equal(log->range[0].category, nvtx_category(log, "capture"));
    check_step(log, &i, 0);
    check_step(log, &i, 0);
    check_fills(log, &i, 0);
    assert_int_equal(log->n_open, 0);
    free(log);
}

static void a_replay_is_one_range_and_no_other_call(void **state)
{
    enum { LAUNCHES = 5 };
    gx_error err;

    (void)state;
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const size_t first_line = lines_so_far();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2 * LAUNCHES, &err), &err);
    nvtx_log *log = nvtx_log_read(first_line);
    assert_int_equal(log->n_lines - first_line, 2 * LAUNCHES); /* a push and a pop each */
    assert_int_equal(log->n_ranges, LAUNCHES);
    assert_int_equal(log->n_open, 0);
    for (int i = 0; i < LAUNCHES; i++) {
        assert_string_equal(log->range[i].text, "replay");
        assert_int_equal(log->range[i].depth, 0);
        assert_int_equal(log->range[i].category, nvtx_category(log, "replay"));
    }
    free(log);
}

static void failures_close_every_range(void **state)
{
    const char *const functions[] = { "cudaLaunchKernelExC", "cublasLtMatmul",
                                      "cudaStreamEndCapture", "cudaGraphLaunch" };
    gx_error err;

    (void)state;
    for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
        path_program other;

        path_open(&other, 2);
        path_make_exec(&other);
        path_write_inputs(&other);
        const size_t first_line = lines_so_far();
        fake_begin();
        fake_fail(functions[f], 2, cudaErrorUnknown);
        (void)!gx_exec_run(other.exec, GX_MODE_GRAPH, 3, &err);
        fake_fail(functions[f], fake_calls(functions[f]) + 1, cudaErrorUnknown);
        (void)!gx_exec_run(other.exec, GX_MODE_EAGER, 3, &err);
        fake_begin();
        nvtx_log *log = nvtx_log_read(first_line);
        assert_true(log->n_ranges > 0);
        assert_int_equal(log->n_open, 0);
        free(log);
        path_close(&other);
    }
}

static void making_a_program_registers_its_names_and_replays_none(void **state)
{
    nvtx_log *before = nvtx_log_read(0);
    gx_error err;

    (void)state;
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 4, &err), &err);
    nvtx_log *after = nvtx_log_read(0);
    assert_true(before->n_strings >= (int)program.plan->n_units);
    assert_int_equal(after->n_strings, before->n_strings);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eager_step_has_ranges_of_its_own),
        cmocka_unit_test(a_capture_is_one_range_around_its_steps),
        cmocka_unit_test(a_replay_is_one_range_and_no_other_call),
        cmocka_unit_test(failures_close_every_range),
        cmocka_unit_test(making_a_program_registers_its_names_and_replays_none),
    };

    nvtx_start();
    return cmocka_run_group_tests_name("nvtx_replay", tests, open_program, close_program);
}
