/* Lanes on the simulated CUDA: their streams, how they part and join, and plans that give
 * the updates one of their own. */
#include "fake_cuda_paths.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
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
        assert_fails(gx_walk_cuda(program.exec, false, NULL, &err), GX_ERR_CUDA, &err,
                     "cudaStreamWaitEvent");
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

/* --- plans --- */

/* Three layers, the update of each of which moves 7 MB. */
#define LAYERS                                                                          \
    "gexec: 1\nname: wide\nprecision: f32\n"                                            \
    "inputs: {x: {shape: [4, 512], init: normal}, "                                     \
    "t: {shape: [4, 512], init: normal}}\n"                                             \
    "params: {w1: {shape: [512, 512], init: he_normal}, w2: {shape: [512, 512], init: " \
    "he_normal}, "                                                                      \
    "w3: {shape: [512, 512], init: he_normal}}\n"                                       \
    "ops:\n  - {op: gemm, name: a, a: x, b: w1, epilogue: {act: relu}}\n"               \
    "  - {op: gemm, name: b, a: a, b: w2, epilogue: {act: relu}}\n"                     \
    "  - {op: gemm, name: y, a: b, b: w3}\n"                                            \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss]\n"

enum { N_CHUNKS = 3 };

static gx_graph *load(const char *optimizer)
{
    char text[2000];
    gx_graph *graph = NULL;
    gx_error err;

    snprintf(text, sizeof text, LAYERS "optimizer: {%s}\n", optimizer);
    assert_ok(
        gx_graph_parse(text, strlen(text), "wide.yaml", ".", NULL, &graph, NULL, &err),
        &err);
    return graph;
}

static gx_plan *plan_of(const gx_graph *graph, const gx_plan_options *options)
{
    gx_plan *plan = NULL;
    gx_error err;

    fake_begin();
    assert_ok(gx_plan_create(graph, options, &plan, &err), &err);
    assert_null(gx_plan_info_get(plan).cache_note);
    return plan;
}

static size_t count_on(const gx_plan *plan, int lane)
{
    size_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++)
        n += plan->units[u].lane == lane;
    return n;
}

/* Chunks follow one another on lane 2, and only the last one waits for every gradient. */
static void check_updates(const gx_plan *plan)
{
    assert_int_equal(plan->n_lanes, 3);
    assert_int_equal(count_on(plan, 2), N_CHUNKS);
    assert_int_equal(plan->n_early, N_CHUNKS - 1);
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (unit->lane != 2)
            continue;
        assert_string_equal(unit->alternative->name, "multi");
        assert_int_equal(unit->phase, GX_PHASE_OPTIMIZER);
        assert_int_equal(unit->n_nodes, 1);
        assert_int_equal(unit->n_launches, 1);
        assert_non_null(unit->key);
        assert_true(unit->n_waits > 0);
    }
}

/* Nothing is measured, and the updates are one unit before they are cut. */
static const gx_plan_options asked = {
    .device = 0, .cache_folder = "", .lanes = 3, .no_measure = true, .force = "multi"
};

static void three_lanes_can_be_asked_for(void **state)
{
    gx_plan_options options = asked;
    gx_graph *plain = load("adamw: {lr: 0.1}");
    gx_graph *clipped = load("adamw: {lr: 0.1}, clip_norm: 1");
    gx_plan *plan = plan_of(plain, &options);

    (void)state;
    check_updates(plan);
    gx_plan_free(plan);
    plan = plan_of(clipped, &options); /* then it is done, though it gains nothing */
    assert_int_equal(plan->n_lanes, 3);
    assert_int_equal(count_on(plan, 2), N_CHUNKS);
    assert_int_equal(plan->n_early, 0);
    gx_plan_free(plan);
    options.lanes = 2;
    plan = plan_of(plain, &options);
    assert_int_equal(plan->n_lanes, 2);
    assert_int_equal(plan->units[plan->n_units - 2].n_nodes, N_CHUNKS);
    gx_plan_free(plan);
    gx_graph_free(clipped);
    gx_graph_free(plain);
    assert_int_equal(fake_live(), 0);
}

static void three_lanes_are_timed_where_updates_can_be_early(void **state)
{
    static const struct {
        const char *optimizer;
        bool tried;
    } cases[] = {
        { "adamw: {lr: 0.1}", true },
        { "adamw: {lr: 0.1}, schedule: {cosine: {steps: 9}}", true },
        { "adamw: {lr: 0.1}, clip_norm: 1", false },
    };
    const gx_plan_options options = { .device = 0, .cache_folder = "" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_graph *graph = load(cases[i].optimizer);
        gx_plan *plan = plan_of(graph, &options);
        const gx_plan_info info = gx_plan_info_get(plan);

        assert_true(info.lane_us[0] >= 0 && info.lane_us[1] >= 0);
        assert_int_equal(info.lane_us[2] >= 0, cases[i].tried);
        gx_plan_free(plan);
        gx_graph_free(graph);
    }
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

/* The one file of the folder. */
static char *file_in(const char *folder)
{
    DIR *dir = opendir(folder);
    char *path = NULL;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        path = malloc(strlen(folder) + strlen(e->d_name) + 2);
        assert_non_null(path);
        sprintf(path, "%s/%s", folder, e->d_name);
    }
    closedir(dir);
    assert_non_null(path);
    return path;
}

/* As if three lanes had been the fastest. */
static void remember_three(const char *folder)
{
    char *path = file_in(folder);
    size_t length;
    char *text = test_read(path, &length);
    char *at = strstr(text, ": {lanes: ");
    FILE *file = fopen(path, "w");

    assert_non_null(at);
    assert_non_null(file);
    at[strlen(": {lanes: ")] = '3';
    fputs(text, file);
    fclose(file);
    free(text);
    free(path);
}

static void a_third_lane_is_remembered(void **state)
{
    char *folder = test_path("three");
    const gx_plan_options options = { .device = 0, .cache_folder = folder };
    gx_graph *graph = load("adamw: {lr: 0.1}");

    (void)state;
    gx_plan_free(plan_of(graph, &options));
    remember_three(folder);
    gx_plan *plan = plan_of(graph, &options);

    check_updates(plan);
    /* The chunks are known as well: the device is not opened. */
    assert_int_equal(fake_calls("cublasLtCreate"), 0);
    assert_int_equal(fake_calls("cudaStreamCreateWithPriority"), 0);
    assert_int_equal(fake_calls("cudaLaunchKernelExC"), 0);
    assert_int_equal(gx_plan_info_get(plan).n_cached, gx_plan_unit_count(plan));
    assert_int_equal(gx_plan_info_get(plan).n_measured, 0);
    gx_plan_free(plan);
    gx_graph_free(graph);
    free(folder);
    assert_int_equal(fake_live(), 0);
}

/* --- a plan file --- */

static void run_plan(const gx_graph *graph, const gx_plan *plan)
{
    const gx_state_options options = { .device = 0, .seed = 7 };
    gx_state *state;
    gx_exec *exec;
    gx_error err;

    assert_ok(gx_state_create(&graph, 1, &options, &state, &err), &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_EAGER, 2, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(exec, &err), &err);
    gx_exec_free(exec);
    gx_state_free(state);
}

static void a_plan_of_three_lanes_is_written_and_obeyed(void **state)
{
    char *path = test_path("three.yaml");
    char *again = test_path("again.yaml");
    gx_plan_options options = asked;
    gx_graph *graph = load("adamw: {lr: 0.1}");
    gx_plan *made = plan_of(graph, &options);
    size_t length;
    gx_plan *plan;
    gx_error err;

    (void)state;
    assert_ok(gx_plan_write(made, path, &err), &err);
    options = (gx_plan_options){ .device = 0, .cache_folder = "", .pin_file = path };
    plan = plan_of(graph, &options);
    check_updates(plan);
    assert_int_equal(plan->n_units, made->n_units);
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *a = &made->units[u], *b = &plan->units[u];

        assert_string_equal(a->key, b->key);
        assert_int_equal(a->lane, b->lane);
        assert_int_equal(a->n_waits, b->n_waits);
        for (int w = 0; w < a->n_waits; w++)
            assert_int_equal(a->waits[w], b->waits[w]);
    }
    assert_ok(gx_plan_write(plan, again, &err), &err);
    char *first = test_read(path, &length), *second = test_read(again, &length);
    assert_string_equal(first, second);
    run_plan(graph, plan);
    gx_plan_free(plan);
    options.lanes = 2;
    assert_fails(gx_plan_create(graph, &options, &plan, &err), GX_ERR_ARGUMENT, &err,
                 "fewer lanes are asked for");
    gx_plan_free(made);
    gx_graph_free(graph);
    free(second);
    free(first);
    free(again);
    free(path);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_0_goes_first),
        cmocka_unit_test(a_device_takes_every_failure),
        cmocka_unit_test(lanes_that_parted_are_joined),
        cmocka_unit_test(a_lane_without_work_takes_no_part),
        cmocka_unit_test(three_lanes_can_be_asked_for),
        cmocka_unit_test(three_lanes_are_timed_where_updates_can_be_early),
        cmocka_unit_test(a_third_lane_is_remembered),
        cmocka_unit_test(a_plan_of_three_lanes_is_written_and_obeyed),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_lanes", tests, NULL, NULL);
}
