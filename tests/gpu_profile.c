/* Traces of a real card through the real CUPTI. A process has one session, which begins
 * before its first CUDA call, so that each scenario runs in a process of its own. */
#include "support_alone.h"
#include "support_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "exec_model.h"

enum { EAGER_STEPS = 5, REPLAYS = 20, ERROR_OF_ANOTHER_TOOL = 39 };

static gx_profiler *profiler;
static gpu_program program;
static gx_trace *trace;
static gx_profiler_losses losses;
static int64_t n_launches, n_nodes; /* a step */
static int64_t n_replays;           /* that were recorded */

/* Skips where there is no GPU, no CUPTI in the build, or another tool (compute-sanitizer)
 * that holds CUPTI; any other failure is one. */
static void open_profiler(const gx_profiler_options *options)
{
    gx_error err;

    if (gx_profiler_open(options, &profiler, &err) == GX_OK)
        return;
    gpu_start();
    fprintf(stderr, "no trace: %s\n", err.message);
    if (err.status == GX_ERR_UNSUPPORTED && (err.native == ERROR_OF_ANOTHER_TOOL ||
                                             strstr(err.message, "built without CUPTI")))
        exit(TEST_SKIPPED);
    exit(EXIT_FAILURE);
}

static void record(gx_mode mode, int64_t n_steps)
{
    gx_error err;

    assert_ok(gx_profiler_start(profiler, &err), &err);
    gpu_run(&program, mode, n_steps);
    assert_ok(gx_profiler_stop(profiler, &err), &err);
}

/* The program's graph as a child of another, launched once inside a window. */
static void record_as_child(void)
{
    cudaGraph_t parent;
    cudaGraphNode_t child;
    cudaGraphExec_t made;
    void *graph;
    gx_error err;

    assert_ok(gx_exec_cuda_graph(program.exec, &graph, &err), &err);
    assert_int_equal(cudaGraphCreate(&parent, 0), 0);
    assert_int_equal(cudaGraphAddChildGraphNode(&child, parent, NULL, 0, graph), 0);
    assert_int_equal(cudaGraphInstantiate(&made, parent, 0), 0);
    assert_ok(gx_profiler_start(profiler, &err), &err);
    assert_int_equal(cudaGraphLaunch(made, program.exec->device->stream), 0);
    assert_ok(gx_profiler_stop(profiler, &err), &err);
    assert_int_equal(cudaGraphExecDestroy(made), 0);
    assert_int_equal(cudaGraphDestroy(parent), 0);
}

static void check_activity(const gx_trace_activity *activity, const gx_trace_call *calls,
                           size_t n_calls, gx_trace_by by)
{
    const gx_plan *plan = program.plan;
    size_t n;
    const gx_trace_range *ranges = gx_trace_ranges(trace, &n);

    assert_in_range(activity->group, 0, plan->n_units - 1);
    assert_int_equal(activity->lane, plan->units[activity->group].lane);
    assert_int_equal(activity->body, 0);
    assert_int_equal(activity->by, by);
    assert_in_range(activity->range, 0, n - 1);
    assert_string_equal(gx_trace_text_at(trace, ranges[activity->range].name),
                        program.exec->units[activity->group].name);
    assert_in_range(activity->call, 0, n_calls - 1);
    assert_true(activity->start >= calls[activity->call].start);
    assert_true(activity->end >= activity->start);
}

/* Calls that launched, each once: with how much work. */
static void check_calls(const gx_trace_call *calls, size_t n_calls)
{
    int64_t n_seen = 0;

    for (size_t i = 0; i < n_calls; i++) {
        if (calls[i].twin || calls[i].n_activities == 0)
            continue;
        if (calls[i].kind != GX_TRACE_CALL_GRAPH) {
            assert_int_equal(calls[i].n_activities, 1);
            continue;
        }
        n_seen++;
        assert_int_equal(calls[i].n_activities, n_nodes);
    }
    assert_int_equal(n_seen, n_replays);
}

/* How much there is of it depends on the driver and on what was loaded before. */
static void check_overhead(void)
{
    size_t n, n_inside = 0;
    const gx_trace_overhead *overheads = gx_trace_overheads(trace, &n);

    assert_true(gx_trace_tells_overhead(trace));
    for (size_t i = 0; i < n; i++) {
        const int64_t length = overheads[i].end - overheads[i].start;

        assert_in_range(overheads[i].inside + 1, 0, length + 1);
        assert_true(gx_trace_text_at(trace, overheads[i].name)[0] != '\0');
        n_inside += overheads[i].inside != GX_TRACE_NONE;
        print_message("overhead: %s, %lld ns%s\n",
                      gx_trace_text_at(trace, overheads[i].name), (long long)length,
                      overheads[i].inside != GX_TRACE_NONE ? ", in a window" : "");
    }
    print_message("overhead: %zu records, %zu in windows\n", n, n_inside);
}

static void check_trace(void)
{
    int64_t n_eager = 0, n_replayed = 0, n_unclaimed = 0;
    size_t n, n_calls;
    gx_error err;

    (void)gx_trace_activities(trace, &n);
    assert_int_equal(n, n_launches * EAGER_STEPS + n_nodes * n_replays);
    assert_ok(gx_trace_finish(trace, &err), &err);
    const gx_trace_dropped dropped = gx_trace_dropped_get(trace);
    assert_int_equal(dropped.no_time, 0);
    assert_int_equal(dropped.backwards, 0);
    assert_int_equal(dropped.before_call, 0);
    assert_int_equal(losses.dropped, 0);
    assert_int_equal(losses.unknown, 0);
    assert_int_equal(losses.corrupt, 0);
    const gx_trace_activity *activities = gx_trace_activities(trace, &n);
    const gx_trace_call *calls = gx_trace_calls(trace, &n_calls);
    for (size_t i = 0; i < n; i++) {
        const bool eager = activities[i].node == GX_TRACE_NONE;

        if (activities[i].group == GX_TRACE_NONE)
            n_unclaimed++;
        else
            check_activity(&activities[i], calls, n_calls,
                           eager ? GX_TRACE_BY_LAUNCH : GX_TRACE_BY_CAPTURE);
        n_eager += eager;
        n_replayed += !eager;
    }
    assert_int_equal(n_eager, n_launches * EAGER_STEPS);
    assert_int_equal(n_replayed, n_nodes * n_replays);
    assert_int_equal(n_unclaimed, n_nodes * (n_replays - REPLAYS));
    check_calls(calls, n_calls);
    check_overhead();
}

static void trace_program(const gpu_options *options, bool as_child)
{
    gx_profiler *second;
    gx_error err;

    open_profiler(NULL);
    gpu_open(&program, options);
    assert_ok(gx_profiler_attach(profiler, program.exec, &err), &err);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    n_launches = stats.launches_per_step;
    n_nodes = stats.graph_nodes;
    assert_true(n_launches > 0 && n_nodes > 0);
    gpu_run(&program, GX_MODE_EAGER, 3);
    record(GX_MODE_EAGER, EAGER_STEPS);
    gpu_run(&program, GX_MODE_GRAPH, 7);
    record(GX_MODE_GRAPH, REPLAYS);
    gpu_run(&program, GX_MODE_GRAPH, 4);
    n_replays = REPLAYS + as_child;
    if (as_child)
        record_as_child();
    assert_fails(gx_profiler_open(NULL, &second, &err), GX_ERR_STATE, &err,
                 "a process has one");
    assert_ok(gx_profiler_trace(profiler, &trace, &losses, &err), &err);
    check_trace();
    gx_trace_free(trace);
    gx_profiler_free(profiler);
    assert_fails(gx_profiler_open(NULL, &second, &err), GX_ERR_STATE, &err,
                 "a process has one");
    gpu_run(&program, GX_MODE_GRAPH, 2);
    gpu_close(&program);
}

static void one_lane(void **state)
{
    (void)state;
    trace_program(NULL, false);
}

static void two_lanes(void **state)
{
    const gpu_options options = { .lanes = 2, .n_layers = 4 };

    (void)state;
    trace_program(&options, false);
}

static void three_lanes(void **state)
{
    const gpu_options options = { .lanes = 3, .n_layers = 4 };

    (void)state;
    trace_program(&options, false);
}

static void programmatic_launches(void **state)
{
    const gpu_options options = { .programmatic = GX_ON, .n_layers = 4 };

    (void)state;
    trace_program(&options, false);
}

/* Of a captured graph inside another one CUPTI does not say which nodes the exec's are
 * clones of: its work is recorded, and no unit claims it. */
static void a_child_graph(void **state)
{
    (void)state;
    trace_program(NULL, true);
}

/* A window without work, and one with. */
static void an_empty_window_harms_none(void **state)
{
    size_t n;
    gx_error err;

    (void)state;
    open_profiler(NULL);
    gpu_open(&program, NULL);
    assert_ok(gx_profiler_attach(profiler, program.exec, &err), &err);
    record(GX_MODE_GRAPH, 0);
    record(GX_MODE_GRAPH, 10);
    assert_ok(gx_profiler_trace(profiler, &trace, &losses, &err), &err);
    (void)gx_trace_activities(trace, &n);
    assert_int_equal(n, 10 * gx_exec_stats_get(program.exec).graph_nodes);
    gx_trace_free(trace);
    gx_profiler_free(profiler);
    gpu_close(&program);
}

/* --- two devices --- */

static void *make_on(int device, size_t n_bytes)
{
    void *made;

    assert_int_equal(cudaSetDevice(device), 0);
    assert_int_equal(cudaMalloc(&made, n_bytes), 0);
    assert_int_equal(cudaMemset(made, 0, n_bytes), 0);
    return made;
}

static void a_copy_between_devices_is_told_with_both(void **state)
{
    enum { BYTES = 1 << 20 };
    const gx_profiler_options with_peers = { .peer_copies = true };
    int n_devices = 0, can_reach = 0;
    size_t n, n_found = 0;
    gx_error err;

    (void)state;
    open_profiler(&with_peers);
    if (cudaGetDeviceCount(&n_devices) != 0 || n_devices < 2 ||
        cudaDeviceCanAccessPeer(&can_reach, 0, 1) != 0 || !can_reach) {
        fprintf(stderr, "skipped: no two devices that reach each other\n");
        gx_profiler_free(profiler);
        exit(TEST_SKIPPED);
    }
    void *const from = make_on(0, BYTES);
    void *const to = make_on(1, BYTES);
    assert_int_equal(cudaSetDevice(0), 0);
    assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), 0);
    assert_ok(gx_profiler_start(profiler, &err), &err);
    assert_int_equal(cudaMemcpyPeer(to, 1, from, 0, BYTES), 0);
    assert_ok(gx_profiler_stop(profiler, &err), &err);
    assert_ok(gx_profiler_trace(profiler, &trace, &losses, &err), &err);
    assert_ok(gx_trace_finish(trace, &err), &err);
    const gx_trace_activity *at = gx_trace_activities(trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (at[i].source_device == GX_TRACE_NONE)
            continue;
        n_found++;
        assert_int_equal(at[i].kind, GX_TRACE_COPY);
        assert_int_equal(at[i].bytes, BYTES);
        assert_int_equal(at[i].source_device, 0);
        assert_int_equal(at[i].target_device, 1);
        assert_string_equal(gx_trace_text_at(trace, at[i].name),
                            "copy peer to peer, GPU 0 to GPU 1");
        assert_true(at[i].call != GX_TRACE_NONE && at[i].end > at[i].start);
    }
    assert_int_equal(n_found, 1);
    assert_int_equal(losses.unknown, 0);
    gx_trace_free(trace);
    gx_profiler_free(profiler);
    assert_int_equal(cudaFree(from), 0);
    assert_int_equal(cudaFree(to), 0);
}

/* --- data that stream --- */

enum { ROWS = 2048, WIDTH = 1024 };

/* A step that takes longer than gathering a batch of 1 MiB. */
static const char *const streamed =
    "gexec: 1\nname: streamed\nprecision: f32\ndims: {batch: 256}\n"
    "data: {x: x.npy, stream: true}\ninputs: {x: {shape: [batch, 1024]}}\n"
    "params: {w: {shape: [1024, 16384], init: zeros}}\n"
    "ops:\n  - {op: gemm, name: y, a: x, b: w}\n  - {op: mean, name: loss, x: y}\n"
    "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";

static void write_rows(void)
{
    char *const path = test_path("x.npy");
    float *x = calloc((size_t)ROWS * WIDTH, sizeof *x);
    const gx_tensor rows = {
        .dtype = GX_F32, .rank = 2, .dim = { ROWS, WIDTH }, .data = x
    };
    gx_error err;

    assert_non_null(x);
    assert_ok(gx_npy_write(path, &rows, &err), &err);
    free(x);
    free(path);
}

static bool runs_beside_a_kernel(const gx_trace_activity *copy)
{
    size_t n;
    const gx_trace_activity *at = gx_trace_activities(trace, &n);
    bool beside = false;

    for (size_t i = 0; i < n; i++)
        beside |= at[i].kind == GX_TRACE_KERNEL && at[i].start < copy->end &&
                  at[i].end > copy->start;
    return beside;
}

static void copies_run_beside_steps(void **state)
{
    const gpu_options options = { .folder = test_folder() };
    int n_copies = 0, n_beside = 0;
    size_t n;
    gx_error err;

    (void)state;
    open_profiler(NULL);
    write_rows();
    gpu_open_text(&program, streamed, &options);
    assert_ok(gx_profiler_attach(profiler, program.exec, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 3);
    record(GX_MODE_GRAPH, REPLAYS);
    assert_ok(gx_profiler_trace(profiler, &trace, &losses, &err), &err);
    assert_ok(gx_trace_finish(trace, &err), &err);
    const gx_trace_activity *at = gx_trace_activities(trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind != GX_TRACE_COPY || at[i].bytes != 256 * 4 * WIDTH)
            continue;
        n_copies++;
        n_beside += runs_beside_a_kernel(&at[i]);
    }
    print_message("%d of %d copies beside a kernel\n", n_beside, n_copies);
    assert_int_equal(n_copies, REPLAYS);
    assert_true(n_beside > REPLAYS / 2);
    gx_trace_free(trace);
    gx_profiler_free(profiler);
    gpu_close(&program);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lane),
        cmocka_unit_test(two_lanes),
        cmocka_unit_test(three_lanes),
        cmocka_unit_test(programmatic_launches),
        cmocka_unit_test(a_child_graph),
        cmocka_unit_test(an_empty_window_harms_none),
        cmocka_unit_test(copies_run_beside_steps),
        cmocka_unit_test(a_copy_between_devices_is_told_with_both),
    };

    return test_each_alone(argc, argv, tests, ARRAY_SIZE(tests));
}
