/* gexec sweep from its command line to its files, on the simulated CUDA: points that fail
 * are rows, everything of a point is freed, and the figures of the others are kept. */
#include "fake_cuda_paths.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

static const char model[] = "gexec: 1\n"
                            "name: swept\n"
                            "dims: {batch: 4, wide: 5}\n"
                            "precision: f32\n"
                            "inputs:\n"
                            "  x: {shape: [batch, 3], init: normal}\n"
                            "  y: {shape: [batch, 2], init: normal}\n"
                            "params:\n"
                            "  w1: {shape: [3, wide], init: he_normal}\n"
                            "  w2: {shape: [wide, 2], init: he_normal}\n"
                            "ops:\n"
                            "  - {op: gemm, name: fc1, a: x, b: w1, out: h}\n"
                            "  - {op: gemm, name: fc2, a: h, b: w2, out: logits}\n"
                            "  - {op: mse, name: loss, x: logits, target: y}\n"
                            "backward: loss\n"
                            "optimizer: {adamw: {lr: 1.0e-2}}\n"
                            "outputs: [loss]\n";

/* The simulated card computes nothing, so nothing would pass the check of a measured
 * plan. One of these calls can interrupt the program. */
gx_status __real_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err);
gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err);
static int interrupt_in; /* calls until then; 0: never */

gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err)
{
    gx_plan_options unmeasured = *options;

    if (interrupt_in > 0 && --interrupt_in == 0)
        raise(SIGINT);
    unmeasured.no_measure = true;
    return __real_gx_plan_create(graph, &unmeasured, plan, err);
}

/* Runs `gexec sweep MODEL --set SET ...`, which has to exit with `wanted` and to leave
 * nothing on the device. What it wrote as JSON, the caller frees. */
static char *sweep(int wanted, const char *set, const char *other)
{
    static char words[][12] = { "gexec",   "sweep", "--no-cache", "--pairs", "3",
                                "--block", "5",     "-q",         "--set",   "--json" };
    char *const file = test_write_text("swept.yaml", model);
    char *const json = test_path("swept.json");
    char sets[2][64];
    char *argv[16];
    int argc = 0;
    gx_args args;
    size_t length;

    for (; argc < 8; argc++)
        argv[argc] = words[argc];
    argv[argc++] = words[9];
    argv[argc++] = json;
    for (int i = 0; i < (other ? 2 : 1); i++) {
        snprintf(sets[i], sizeof sets[i], "%s", i ? other : set);
        argv[argc++] = words[8];
        argv[argc++] = sets[i];
    }
    argv[argc++] = file;
    assert_true(gx_args_parse(&args, argc, argv));
    assert_int_equal(args.command->run(&args), wanted);
    gx_args_free(&args);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
    char *const text = test_read(json, &length);
    remove(json);
    free(json);
    free(file);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void every_size_is_compared(void **state)
{
    (void)state;
    fake_begin();
    char *const text = sweep(GX_EXIT_OK, "batch=2,4", "wide=batch+1,7,9");
    assert_int_equal(count(text, "\"result\": \"done\""), 6);
    assert_int_equal(count(text, "\"flags_without_effect\": []"), 6);
    assert_int_equal(count(text, "\"wide\": 3,"), 0);
    assert_has(text, "\"sizes\": {\n        \"batch\": 4,\n        \"wide\": 5\n");
    assert_has(text, "\"wide\": \"batch+1\"");
    assert_int_equal(count(text, "\"equal\": true"), 6);
    assert_int_equal(count(text, "\"count\": 3,"), 6 * 8);
    free(text);
}

static void a_size_that_the_model_refuses_is_a_row(void **state)
{
    (void)state;
    fake_begin();
    char *const text = sweep(GX_EXIT_USAGE, "batch=0,4", NULL);
    assert_int_equal(count(text, "\"result\": \"done\""), 1);
    assert_int_equal(count(text, "\"result\": \"failed\""), 1);
    assert_has(text, "a mean over no elements has no value");
    free(text);
}

static void a_size_whose_call_fails_is_a_row(void **state)
{
    static const struct {
        const char *function;
        int status;
        const char *result;
    } cases[] = {
        { "cudaMalloc", 2, "GX_ERR_DEVICE_MEMORY" },
        { "cudaGraphInstantiate", 2, "GX_ERR_DEVICE_MEMORY" },
        { "cudaGraphLaunch", 719, "GX_ERR_CUDA" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_begin();
        fake_fail(cases[i].function, 1, cases[i].status);
        char *const text = sweep(GX_EXIT_FAILED, "batch=2,4", NULL);
        assert_true(fake_has_failed());
        assert_int_equal(count(text, "\"result\": \"failed\""), 1);
        assert_int_equal(count(text, "\"result\": \"done\""), 1);
        assert_has(text, cases[i].result);
        assert_has(text, cases[i].function);
        free(text);
    }
}

/* A comparison of a model whose data stream tells how long steps waited for them. */
static void waits_for_data_are_compared(void **state)
{
    static char words[][12] = { "gexec",   "compare", "--no-cache", "--pairs", "3",
                                "--block", "5",       "-q",         "--json" };
    static char stream[] = "--stream";
    static const char fed[] =
        "gexec: 1\nname: fed\nprecision: f32\ndims: {batch: 4}\ndata: {x: fed.npy}\n"
        "inputs: {x: {shape: [batch, 3]}}\nparams: {w: {shape: [3, 2], init: normal}}\n"
        "ops:\n  - {op: gemm, name: y, a: x, b: w}\n  - {op: mean, name: loss, x: y}\n"
        "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";
    float x[30] = { 0 };
    const gx_tensor rows = { .dtype = GX_F32, .rank = 2, .dim = { 10, 3 }, .data = x };
    char *const file = test_write_text("fed.yaml", fed);
    char *const data = test_path("fed.npy");
    char *const json = test_path("fed.json");
    gx_error err;

    (void)state;
    assert_ok(gx_npy_write(data, &rows, &err), &err);
    for (int streams = 0; streams < 2; streams++) {
        char *argv[16];
        int argc = 0;
        gx_args args;
        size_t length;

        for (; argc < 9; argc++)
            argv[argc] = words[argc];
        argv[argc++] = json;
        argv[argc++] = file;
        if (streams)
            argv[argc++] = stream;
        fake_begin();
        assert_true(gx_args_parse(&args, argc, argv));
        assert_int_equal(args.command->run(&args), GX_EXIT_OK);
        gx_args_free(&args);
        assert_int_equal(fake_live(), 0);
        assert_null(fake_mistake());
        char *const text = test_read(json, &length);
        assert_has(text, streams ? "\"streams\": true" : "\"streams\": false");
        /* three ways: queued, steady and, where there are waits, those; two ratios */
        assert_int_equal(count(text, "\"count\": 3,"), streams ? 11 : 8);
        free(text);
        remove(json);
    }
    free(json);
    free(data);
    free(file);
}

/* The last test: an interrupt stays. */
static void an_interrupt_keeps_what_was_measured(void **state)
{
    (void)state;
    fake_begin();
    interrupt_in = 3; /* two plans a size: in the second */
    char *const text = sweep(GX_EXIT_INTERRUPTED, "batch=2,4,8", NULL);
    assert_int_equal(count(text, "\"result\": \"done\""), 1);
    assert_int_equal(count(text, "\"result\": \"interrupted\""), 1);
    assert_has(text, "\"interrupted\": true");
    assert_has(text, "\"points_planned\": 3");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_compared),
        cmocka_unit_test(a_size_that_the_model_refuses_is_a_row),
        cmocka_unit_test(a_size_whose_call_fails_is_a_row),
        cmocka_unit_test(waits_for_data_are_compared),
        cmocka_unit_test(an_interrupt_keeps_what_was_measured),
    };

    path_start(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
