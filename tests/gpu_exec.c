/* Programs on a GPU: the graph does what the eager steps do, to the bit, whatever is
 * asked of it in between. */
#include "support_gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define assert_cuda(call) assert_int_equal((int)(call), (int)cudaSuccess)

static uint64_t bits_after(const gpu_options *options, gx_mode mode, int64_t n_steps)
{
    gpu_program program;

    gpu_open(&program, options);
    gpu_run(&program, mode, n_steps);
    const uint64_t bits = gpu_bits(&program);
    assert_int_equal(gpu_step_count(&program), n_steps);
    gpu_close(&program);
    return bits;
}

/* --- capture --- */

/* The first of this program, and so of the process: nothing is warm but what making a
 * program primes. */
static void the_first_product_of_a_process_may_stand_in_a_capture(void **state)
{
    const gpu_options options = { .batch = 32, .inner = 32, .outer = 32 };
    gpu_program program;
    gx_error err;

    (void)state;
    gpu_open(&program, &options);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 3);
    assert_int_equal(gpu_step_count(&program), 3);
    assert_true(isfinite(gpu_scalar(&program, "loss")));
    assert_true(gx_exec_stats_get(program.exec).prime_s > 0);
    gpu_close(&program);
}

static void making_a_program_leaves_the_state_as_it_was(void **state)
{
    gpu_program program;
    gx_exec *second = NULL;
    gx_error err;

    (void)state;
    gpu_open(&program, NULL);
    gpu_run(&program, GX_MODE_GRAPH, 5);
    const uint64_t bits = gpu_bits(&program);
    assert_ok(gx_exec_create(program.plan, program.state, NULL, &second, &err), &err);
    assert_ok(gx_exec_sync(second, &err), &err);
    assert_int_equal(gpu_bits(&program), bits);
    gx_exec_free(second);
    gpu_close(&program);
}

static void a_product_that_wants_a_workspace_adds_no_memory_nodes(void **state)
{
    const gpu_options options = {
        .batch = 16, .inner = 16384, .outer = 64, .n_layers = 1
    };
    gpu_program program;
    cudaGraphNode_t nodes[256];
    size_t n = ARRAY_SIZE(nodes);
    void *graph = NULL;
    gx_error err;

    (void)state;
    gpu_open(&program, &options);
    assert_ok(gx_exec_cuda_graph(program.exec, &graph, &err), &err);
    assert_cuda(cudaGraphGetNodes(graph, nodes, &n));
    assert_true(n > 0 && n < ARRAY_SIZE(nodes));
    for (size_t i = 0; i < n; i++) {
        enum cudaGraphNodeType type;

        assert_cuda(cudaGraphNodeGetType(nodes[i], &type));
        /* Nor fills: kernels have taken their place. */
        assert_true(type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy);
    }
    const gx_plan_info info = gx_plan_info_get(program.plan);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    print_message("workspace %zu bytes, %lld nodes\n", info.workspace_bytes,
                  (long long)stats.graph_nodes);
    assert_int_equal(stats.graph_nodes, n);
    assert_int_equal(stats.launches_per_step, n);
    gpu_close(&program);
}

/* --- the same bits --- */

static void eager_and_graph_give_the_same_bits_at_each_step(void **state)
{
    const int64_t steps[] = { 1, 2, 3, 20 };
    const gpu_options options = { .seed = test_seed() };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        assert_int_equal(bits_after(&options, GX_MODE_EAGER, steps[i]),
                         bits_after(&options, GX_MODE_GRAPH, steps[i]));
    assert_int_not_equal(bits_after(&options, GX_MODE_EAGER, 19),
                         bits_after(&options, GX_MODE_GRAPH, 20));
}

static void modes_may_be_mixed(void **state)
{
    const gpu_options options = { .seed = test_seed() };
    gpu_program program;

    (void)state;
    const uint64_t expected = bits_after(&options, GX_MODE_EAGER, 12);
    gpu_open(&program, &options);
    gpu_run(&program, GX_MODE_EAGER, 5);
    gpu_run(&program, GX_MODE_GRAPH, 5);
    gpu_run(&program, GX_MODE_EAGER, 2);
    assert_int_equal(gpu_bits(&program), expected);
    gpu_close(&program);
}

static void more_lanes_give_the_bits_of_one(void **state)
{
    const gpu_options one = { .n_layers = 5, .batch = 64, .outer = 64 };

    (void)state;
    const uint64_t expected = bits_after(&one, GX_MODE_EAGER, 50);
    for (int lanes = 2; lanes <= 3; lanes++) {
        gpu_options more = one;

        more.lanes = lanes;
        assert_int_equal(bits_after(&more, GX_MODE_EAGER, 50), expected);
        assert_int_equal(bits_after(&more, GX_MODE_GRAPH, 50), expected);
    }
}

static size_t count_updates(const gpu_options *options)
{
    gpu_program program;
    size_t n = 0;

    gpu_open(&program, options);
    for (size_t u = 0; u < gx_plan_unit_count(program.plan); u++)
        n += gx_plan_unit(program.plan, u).lane == 2;
    gpu_close(&program);
    return n;
}

/* Wide enough that the updates are cut. */
static void updates_in_chunks_give_the_bits_of_one_launch(void **state)
{
    const gpu_options whole = {
        .n_layers = 5, .batch = 64, .outer = 512, .force = "multi"
    };
    gpu_options cut = whole;

    (void)state;
    cut.lanes = 3;
    assert_in_range(count_updates(&cut), 3, 8);
    const uint64_t expected = bits_after(&whole, GX_MODE_EAGER, 50);
    for (int on = 0; on < 2; on++) {
        cut.programmatic = on ? GX_ON : GX_OFF;
        for (int k = 1; k <= 5; k += 4) {
            cut.steps_per_launch = k;
            assert_int_equal(bits_after(&cut, GX_MODE_EAGER, 50), expected);
            assert_int_equal(bits_after(&cut, GX_MODE_GRAPH, 50), expected);
        }
        cut.step_loop = test_has_conditions();
        assert_int_equal(bits_after(&cut, GX_MODE_GRAPH, 50), expected);
        cut.step_loop = false;
    }
}

static void k_steps_a_launch_give_the_bits_of_one(void **state)
{
    const gpu_options one = { .seed = test_seed() };
    gpu_options many = one;

    (void)state;
    many.steps_per_launch = 4;
    assert_int_equal(bits_after(&many, GX_MODE_GRAPH, 20),
                     bits_after(&one, GX_MODE_GRAPH, 20));
}

static void programmatic_edges_change_no_bit_in_1000_replays(void **state)
{
    const gpu_options off = { .n_layers = 4 };
    const gpu_options on = { .n_layers = 4, .programmatic = GX_ON };
    const int64_t n_steps = test_is_short() ? 20 : 1000;
    gpu_program program;
    gx_error err;

    (void)state;
    gpu_open(&program, &on);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    print_message("%lld programmatic edges\n",
                  (long long)gx_exec_stats_get(program.exec).programmatic_edges);
    gpu_close(&program);
    assert_int_equal(bits_after(&on, GX_MODE_GRAPH, n_steps),
                     bits_after(&off, GX_MODE_GRAPH, n_steps));
    assert_int_equal(bits_after(&on, GX_MODE_EAGER, n_steps),
                     bits_after(&off, GX_MODE_EAGER, n_steps));
}

/* --- what changes between steps --- */

static void a_new_rate_takes_effect_without_a_rebuild(void **state)
{
    gpu_program program;
    gx_error err;

    (void)state;
    gpu_open(&program, NULL);
    gpu_run(&program, GX_MODE_GRAPH, 3);
    assert_ok(gx_state_set_rate(program.state, 0, &err), &err);
    double before[33 * 7];
    double after[33 * 7];
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 33, 7 }, .data = before };
    assert_ok(gx_state_read(program.state, "w0", &host, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 3);
    host.data = after;
    assert_ok(gx_state_read(program.state, "w0", &host, &err), &err);
    assert_memory_equal(before, after, sizeof before);
    assert_ok(gx_state_set_rate(program.state, 0.1, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 1);
    assert_ok(gx_state_read(program.state, "w0", &host, &err), &err);
    assert_memory_not_equal(before, after, sizeof before);
    assert_int_equal(gx_exec_stats_get(program.exec).instantiations, 1);
    gpu_close(&program);
}

/* A step of a few kernels, for the log takes many: p falls, and the loss with it. */
static const char *const falling =
    "gexec: 1\nname: falling\nprecision: f32\n"
    "inputs: {zero: {shape: [4], init: zeros}}\nparams: {p: {shape: [4], init: ones}}\n"
    "ops:\n  - {op: mse, name: loss, x: p, target: zero}\nbackward: loss\n"
    "optimizer: {sgd: {lr: 1.0e-3}}\noutputs: [loss]\n";

static void the_log_keeps_the_last_rows_when_it_wraps(void **state)
{
    enum { MORE = 20 };
    gpu_program program;
    double rows[MORE];
    double losses[MORE];
    gx_error err;

    (void)state;
    gpu_open_text(&program, falling, NULL);
    gpu_run(&program, GX_MODE_GRAPH, GX_LOG_ROWS - MORE / 2);
    for (int i = 0; i < MORE; i++) {
        gpu_run(&program, GX_MODE_GRAPH, 1);
        losses[i] = gpu_scalar(&program, "loss");
    }
    assert_string_equal(gx_graph_logged(program.graph, 0), "loss");
    assert_null(gx_graph_logged(program.graph, 1));
    assert_ok(gx_exec_log(program.exec, MORE, rows, &err), &err);
    for (int i = 0; i < MORE; i++) {
        assert_true(rows[i] == losses[i]);
        assert_true(i == 0 || losses[i] < losses[i - 1]);
    }
    gpu_close(&program);
}

/* --- inputs and outputs --- */

/* loss = mean(x^2), which is v^2 where every element is v. */
static const char *const square = "gexec: 1\nname: square\nprecision: f32\n"
                                  "inputs:\n  x: {shape: [512, 512]}\n"
                                  "  zero: {shape: [512, 512], init: zeros}\n"
                                  "ops:\n  - {op: mse, name: loss, x: x, target: zero}\n"
                                  "outputs: [loss]\n";
enum { SQUARE = 512 };

static void fill(float *x, float value)
{
    for (int i = 0; i < SQUARE * SQUARE; i++)
        x[i] = value;
}

static void a_large_pageable_input_is_never_stale(void **state)
{
    enum { STEPS = 200 };
    float *x = malloc(sizeof(float) * SQUARE * SQUARE);
    float losses[STEPS];
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { SQUARE, SQUARE }, .data = x };
    gpu_program program;
    gx_error err;

    (void)state;
    assert_non_null(x);
    gpu_open_text(&program, square, NULL);
    for (int i = 0; i < STEPS; i++) {
        gx_tensor loss = { .dtype = GX_F32, .rank = 0, .data = &losses[i] };

        fill(x, (float)(i + 1));
        assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
        fill(x, -1000); /* the memory is ours again */
        gpu_run(&program, GX_MODE_GRAPH, 1);
        assert_ok(gx_exec_fetch(program.exec, "loss", &loss, &err), &err);
    }
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    for (int i = 0; i < STEPS; i++) {
        const double expected = (double)(i + 1) * (i + 1);

        if (!(fabs(losses[i] - expected) <= 1e-5 * expected))
            fail_msg("step %d: %g, expected %g", i, (double)losses[i], expected);
    }
    free(x);
    gpu_close(&program);
}

static void a_fetch_holds_its_step_whatever_is_submitted_behind_it(void **state)
{
    enum { STEPS = 1000 };
    const int n_steps = test_is_short() ? 20 : STEPS;
    gpu_program program;
    int32_t *counts = malloc(STEPS * sizeof *counts);
    gx_error err;

    (void)state;
    assert_non_null(counts);
    gpu_open(&program, NULL);
    for (int i = 0; i < n_steps; i++) {
        gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &counts[i] };

        gpu_run(&program, GX_MODE_GRAPH, 1);
        assert_ok(gx_exec_fetch(program.exec, "gexec.step", &host, &err), &err);
        gpu_run(&program, GX_MODE_GRAPH, 1);
    }
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    for (int i = 0; i < n_steps; i++)
        assert_int_equal(counts[i], 2 * i + 1);
    free(counts);
    gpu_close(&program);
}

static void an_input_changes_by_writing_alone_in_every_mode(void **state)
{
    const gx_mode modes[] = { GX_MODE_EAGER, GX_MODE_GRAPH };
    float *x = malloc(sizeof(float) * SQUARE * SQUARE);
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { SQUARE, SQUARE }, .data = x };
    gpu_program program;
    gx_error err;

    (void)state;
    assert_non_null(x);
    gpu_open_text(&program, square, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        fill(x, 3);
        assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
        fill(x, 5);
        gpu_run(&program, modes[i], 1);
        assert_true(gpu_scalar(&program, "loss") == 9);
        assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
        gpu_run(&program, modes[i], 1);
        assert_true(gpu_scalar(&program, "loss") == 25);
    }
    free(x);
    gpu_close(&program);
}

static void a_bound_input_is_read_from_its_new_place(void **state)
{
    const size_t bytes = sizeof(float) * SQUARE * SQUARE;
    float *x = malloc(bytes);
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { SQUARE, SQUARE }, .data = x };
    void *places[2] = { NULL, NULL };
    gpu_program program;
    gx_error err;

    (void)state;
    assert_non_null(x);
    gpu_open_text(&program, square, NULL);
    fill(x, 2);
    assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 1);
    assert_true(gpu_scalar(&program, "loss") == 4);
    for (int i = 0; i < 2; i++) {
        assert_cuda(cudaMalloc(&places[i], bytes));
        fill(x, (float)(i + 6));
        assert_cuda(cudaMemcpy(places[i], x, bytes, cudaMemcpyHostToDevice));
        assert_ok(gx_exec_bind(program.exec, "x", places[i], &err), &err);
        gpu_run(&program, GX_MODE_GRAPH, 1);
        assert_true(gpu_scalar(&program, "loss") == (i + 6) * (i + 6));
        if (i == 1)
            assert_cuda(cudaFree(places[0])); /* it is no longer bound */
    }
    gpu_run(&program, GX_MODE_GRAPH, 1);
    assert_true(gpu_scalar(&program, "loss") == 49);
    assert_int_equal(gx_exec_stats_get(program.exec).rebuilds, 2);
    gpu_close(&program);
    assert_cuda(cudaFree(places[1]));
    free(x);
}

/* --- several programs --- */

static void programs_do_not_share_what_their_graphs_hold(void **state)
{
    const gpu_options a = { .n_layers = 150, .batch = 4, .inner = 5, .outer = 3 };
    const gpu_options b = {
        .n_layers = 100, .batch = 8, .inner = 9, .outer = 6, .seed = 3
    };
    gpu_program first;
    gpu_program second;

    (void)state;
    const uint64_t expected_a = bits_after(&a, GX_MODE_EAGER, 6);
    const uint64_t expected_b = bits_after(&b, GX_MODE_EAGER, 6);
    gpu_open(&first, &a);
    gpu_run(&first, GX_MODE_GRAPH, 2);
    gpu_open(&second, &b);
    for (int i = 0; i < 3; i++) {
        gpu_run(&second, GX_MODE_GRAPH, 2);
        if (i < 2)
            gpu_run(&first, GX_MODE_GRAPH, 2);
    }
    assert_int_equal(gpu_bits(&first), expected_a);
    gpu_close(&first);
    assert_int_equal(gpu_bits(&second), expected_b);
    gpu_close(&second);
}

static void programs_side_by_side_give_the_bits_of_one_after_the_other(void **state)
{
    const int n_steps = test_is_short() ? 20 : 1000;
    const gpu_options a = { .batch = 16, .inner = 4096, .outer = 64, .n_layers = 1 };
    const gpu_options b = {
        .batch = 32, .inner = 4096, .outer = 64, .n_layers = 1, .seed = 9
    };
    gpu_program first;
    gpu_program second;

    (void)state;
    const uint64_t expected_a = bits_after(&a, GX_MODE_GRAPH, n_steps);
    const uint64_t expected_b = bits_after(&b, GX_MODE_GRAPH, n_steps + 1);
    gpu_open(&first, &a);
    gpu_open(&second, &b);
    for (int i = 0; i < n_steps; i++) {
        gpu_run(&first, GX_MODE_GRAPH, 1);
        gpu_run(&second, GX_MODE_GRAPH, 1);
    }
    assert_int_equal(gpu_bits(&first), expected_a);
    gpu_close(&first);
    gpu_run(&second, GX_MODE_GRAPH, 1);
    assert_int_equal(gpu_bits(&second), expected_b);
    gpu_close(&second);
}

/* --- the caller's own CUDA --- */

static void the_callers_stream_orders_the_steps(void **state)
{
    gpu_options options = { .seed = 5 };
    gpu_program program;
    cudaStream_t stream;
    int device = -1;

    (void)state;
    const uint64_t expected = bits_after(&options, GX_MODE_GRAPH, 7);
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    options.stream = stream;
    gpu_open(&program, &options);
    gpu_run(&program, GX_MODE_GRAPH, 7);
    assert_cuda(cudaStreamSynchronize(stream));
    assert_int_equal(gpu_bits(&program), expected);
    gpu_close(&program);
    assert_cuda(cudaStreamSynchronize(stream)); /* it is still there */
    assert_cuda(cudaStreamDestroy(stream));
    assert_cuda(cudaGetDevice(&device));
    assert_int_equal(device, 0);
}

static void the_graph_can_stand_in_the_callers_graph(void **state)
{
    gpu_program program;
    cudaGraph_t graph;
    cudaGraphExec_t graph_exec;
    cudaGraphNode_t first;
    cudaGraphNode_t second;
    cudaStream_t stream;
    void *ours = NULL;
    gx_error err;

    (void)state;
    const uint64_t expected = bits_after(NULL, GX_MODE_EAGER, 4);
    gpu_open(&program, NULL);
    assert_ok(gx_exec_cuda_graph(program.exec, &ours, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_cuda(cudaGraphCreate(&graph, 0));
    assert_cuda(cudaGraphAddChildGraphNode(&first, graph, NULL, 0, ours));
    assert_cuda(cudaGraphAddChildGraphNode(&second, graph, &first, 1, ours));
    assert_cuda(cudaGraphInstantiate(&graph_exec, graph, 0));
    assert_cuda(cudaStreamCreate(&stream));
    assert_cuda(cudaGraphLaunch(graph_exec, stream));
    assert_cuda(cudaGraphLaunch(graph_exec, stream));
    assert_cuda(cudaStreamSynchronize(stream));
    assert_int_equal(gpu_bits(&program), expected);
    assert_cuda(cudaGraphExecDestroy(graph_exec));
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(cudaStreamDestroy(stream));
    gpu_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_product_of_a_process_may_stand_in_a_capture),
        cmocka_unit_test(making_a_program_leaves_the_state_as_it_was),
        cmocka_unit_test(a_product_that_wants_a_workspace_adds_no_memory_nodes),
        cmocka_unit_test(eager_and_graph_give_the_same_bits_at_each_step),
        cmocka_unit_test(modes_may_be_mixed),
        cmocka_unit_test(more_lanes_give_the_bits_of_one),
        cmocka_unit_test(updates_in_chunks_give_the_bits_of_one_launch),
        cmocka_unit_test(k_steps_a_launch_give_the_bits_of_one),
        cmocka_unit_test(programmatic_edges_change_no_bit_in_1000_replays),
        cmocka_unit_test(a_new_rate_takes_effect_without_a_rebuild),
        cmocka_unit_test(the_log_keeps_the_last_rows_when_it_wraps),
        cmocka_unit_test(a_large_pageable_input_is_never_stale),
        cmocka_unit_test(a_fetch_holds_its_step_whatever_is_submitted_behind_it),
        cmocka_unit_test(an_input_changes_by_writing_alone_in_every_mode),
        cmocka_unit_test(a_bound_input_is_read_from_its_new_place),
        cmocka_unit_test(programs_do_not_share_what_their_graphs_hold),
        cmocka_unit_test(programs_side_by_side_give_the_bits_of_one_after_the_other),
        cmocka_unit_test(the_callers_stream_orders_the_steps),
        cmocka_unit_test(the_graph_can_stand_in_the_callers_graph),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_exec", tests, NULL, NULL);
}
