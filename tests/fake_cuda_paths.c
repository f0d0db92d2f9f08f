/* Paths through the library, on which each call is made to fail once. */
#include "fake_cuda_paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

/* --- a program --- */

/* %s: what stands beside the rule of the optimizer. */
#define MODEL                                                      \
    "gexec: 1\n"                                                   \
    "name: paths\n"                                                \
    "dims: {batch: 4}\n"                                           \
    "precision: f32\n"                                             \
    "inputs:\n"                                                    \
    "  x: {shape: [batch, 3]}\n"                                   \
    "  y: {shape: [batch], dtype: i32}\n"                          \
    "params:\n"                                                    \
    "  w1: {shape: [3, 5], init: he_normal}\n"                     \
    "  b1: {shape: [5]}\n"                                         \
    "  w2: {shape: [5, 2], init: he_normal}\n"                     \
    "  b2: {shape: [2]}\n"                                         \
    "ops:\n"                                                       \
    "  - {op: gemm, name: fc1, a: x, b: w1, "                      \
    "epilogue: {bias: b1, act: relu}, out: h}\n"                   \
    "  - {op: gemm, name: fc2, a: h, b: w2, "                      \
    "epilogue: {bias: b2}, out: logits}\n"                         \
    "  - {op: softmax_cross_entropy, name: loss, logits: logits, " \
    "labels: y}\n"                                                 \
    "backward: loss\n"                                             \
    "optimizer: {adamw: {lr: 1.0e-2}%s}\n"                         \
    "outputs: [loss, logits]\n"

static void open_program(path_program *program, const char *beside,
                         const gx_plan_options *plan_options)
{
    const gx_state_options state_options = { .device = 0, .seed = 7 };
    char text[1200];
    gx_error err;

    *program = (path_program){ NULL, NULL, NULL, NULL };
    snprintf(text, sizeof text, MODEL, beside);
    assert_ok(gx_graph_parse(text, strlen(text), "paths.yaml", ".", NULL, &program->graph,
                             NULL, &err),
              &err);
    assert_ok(gx_plan_create(program->graph, plan_options, &program->plan, &err), &err);
    const gx_graph *graph = program->graph;
    assert_ok(gx_state_create(&graph, 1, &state_options, &program->state, &err), &err);
}

void path_open(path_program *program, int lanes)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = lanes, .no_measure = true
    };

    open_program(program, "", &options);
}

void path_open_scaled(path_program *program, int lanes, gx_choice skip_if,
                      bool programmatic)
{
    const gx_plan_options options = { .device = 0,
                                      .cache_folder = "",
                                      .lanes = lanes,
                                      .no_measure = true,
                                      .skip_if = skip_if,
                                      .programmatic = programmatic ? GX_ON : GX_OFF,
                                      .force = programmatic ? "tile" : NULL };

    open_program(program, ", loss_scale: {dynamic: {}}", &options);
}

void path_make_exec(path_program *program)
{
    gx_error err;

    assert_ok(gx_exec_create(program->plan, program->state, NULL, &program->exec, &err),
              &err);
}

gx_status path_try_write_inputs(gx_exec *exec, gx_error *err)
{
    double x[12];
    int32_t y[4] = { 0, 1, 1, 0 };
    const gx_tensor host_x = { .dtype = GX_F64, .rank = 2, .dim = { 4, 3 }, .data = x };
    const gx_tensor host_y = { .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = y };

    for (int i = 0; i < 12; i++)
        x[i] = 0.25 * i - 1;
    GX_TRY(gx_exec_write(exec, "x", &host_x, err));
    return gx_exec_write(exec, "y", &host_y, err);
}

gx_status path_try_replays(const gx_exec_options *options, path_program *program,
                           gx_error *err)
{
    gx_exec *exec = NULL;

    gx_status st = gx_exec_create(program->plan, program->state, options, &exec, err);
    if (st == GX_OK)
        st = path_try_write_inputs(exec, err);
    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_GRAPH, 2 * options->steps_per_launch, err);
    if (st == GX_OK)
        st = gx_exec_sync(exec, err);
    fake_quiet(true);
    gx_exec_free(exec);
    return st;
}

void path_write_inputs(path_program *program)
{
    gx_error err;

    assert_ok(path_try_write_inputs(program->exec, &err), &err);
}

void path_close(path_program *program)
{
    gx_exec_free(program->exec);
    gx_state_free(program->state);
    gx_plan_free(program->plan);
    gx_graph_free(program->graph);
}

/* --- failures --- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool holds_any(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

/* Calls that free or only tell something: their failure changes no result. */
static bool may_be_silent(const char *function)
{
    static const char *const parts[] = { "Free",
                                         "Destroy",
                                         "GetLastError",
                                         "GetErrorName",
                                         "GetErrorString",
                                         "GetStatusName",
                                         "GetStatusString",
                                         "GetVersion",
                                         NULL };

    return holds_any(function, parts) || fake_has_failed_quietly();
}

/* Calls whose failure has a sentence of its own, without the call's name. */
static bool has_own_words(const char *function)
{
    static const char *const parts[] = { "cudaGetDeviceCount", "cublasLtMatmulAlgoCheck",
                                         NULL };

    return holds_any(function, parts);
}

static void check_failed(const char *function, long nth, gx_status st,
                         const gx_error *err)
{
    const bool cuda = starts_with(function, "cuda");
    const gx_status expected = cuda ? GX_ERR_CUDA : GX_ERR_CUBLAS;

    if (may_be_silent(function))
        return;
    /* Asked for on the way out as well, by functions that return nothing. */
    if (st == GX_OK && nth > 1 && strcmp(function, "cudaGetDevice") == 0)
        return;
    if (st == GX_OK)
        fail_msg("%s failed at call %ld and nobody was told", function, nth);
    if (has_own_words(function))
        return;
    if (st != expected)
        fail_msg("%s failed at call %ld: %s, expected %s: %s", function, nth,
                 gx_status_name(st), gx_status_name(expected), err->message);
    assert_int_equal(err->status, st);
    assert_has(err->message, function);
}

static void check_clean(const char *function, long nth, long live)
{
    if (fake_live() != live)
        fail_msg("after %s failed at call %ld: alive are %s", function, nth,
                 fake_live_text());
    if (fake_mistake())
        fail_msg("after %s failed at call %ld: %s", function, nth, fake_mistake());
}

static gx_status run_clean(path_run *run, void *user, gx_error *err)
{
    fake_begin();
    gx_error_clear(err);
    const gx_status st = run(user, err);
    fake_quiet(false);
    return st;
}

/* False where this run did not come so far: what is measured on a real device that is
 * busy is cut short.
 */
static bool fail_call(path_run *run, void *user, const char *function, long nth,
                      long live)
{
    const int status = starts_with(function, "cuda") ? (int)cudaErrorUnknown
                                                     : (int)CUBLAS_STATUS_INTERNAL_ERROR;
    gx_error err;

    fake_begin();
    fake_fail(function, nth, status);
    gx_error_clear(&err);
    const gx_status st = run(user, &err);
    fake_quiet(false);
    if (!fake_has_failed()) {
        if (!fake_is_real())
            fail_msg("%s was not called %ld times", function, nth);
        assert_ok(st, &err);
        fake_begin(); /* it would fail what comes next */
        return false;
    }
    check_failed(function, nth, st, &err);
    check_clean(function, nth, live);
    if (run_clean(run, user, &err) != GX_OK)
        fail_msg("after %s failed at call %ld the next try fails: %s", function, nth,
                 err.message);
    check_clean(function, nth, live);
    return true;
}

enum { MAX_FUNCTIONS = 160, FEW_CALLS = 3 };

/* The i-th of `most` places spread over n calls, from the first to the last. */
static long place_of(long i, long most, long n)
{
    return n <= most ? i + 1 : 1 + i * (n - 1) / (most - 1);
}

/* Of each function at most `most`; returns how many calls there are, failed or not. */
static long fail_calls(path_run *run, void *user, long most, long *n_failed)
{
    const char *name[MAX_FUNCTIONS];
    long calls[MAX_FUNCTIONS];
    size_t n = 0;
    long n_calls = 0;
    gx_error err;
    const long live = fake_live();

    assert_ok(run_clean(run, user, &err), &err);
    check_clean("nothing", 0, live);
    for (; fake_function(n); n++) {
        name[n] = fake_function(n);
        calls[n] = fake_calls(name[n]);
        n_calls += calls[n];
    }
    for (size_t i = 0; i < n; i++) {
        for (long k = 0; k < calls[i] && k < most; k++)
            *n_failed += fail_call(run, user, name[i], place_of(k, most, calls[i]), live);
    }
    print_message("%zu functions, %ld calls made to fail\n", n, *n_failed);
    return n_calls;
}

long path_fail_some_calls(path_run *run, void *user, long most)
{
    long n_failed = 0;

    fail_calls(run, user, most, &n_failed);
    return n_failed;
}

long path_fail_each_call(path_run *run, void *user)
{
    long n_failed = 0;

    return fail_calls(run, user, test_is_short() ? FEW_CALLS : LONG_MAX, &n_failed);
}

void path_start(bool real)
{
    int n_devices = 0;
    gx_error err;

    if (!real)
        return;
    fake_use_real();
    if (gx_device_count(&n_devices, &err) == GX_OK)
        return;
    fprintf(stderr, "no GPU: %s\n", err.message);
    exit(getenv("GX_REQUIRE_GPU") ? EXIT_FAILURE : TEST_SKIPPED);
}
