/* With kernels that dawdle (GEXEC_TEST_DELAYS): programmatic edges and lanes give the
 * bits of one lane with full edges, and a kernel that reads too early would have shown.
 */
#include "gpu_delays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "support_gpu.h"
#include "support_walk.h"
#include "wgmma.h"

enum {
    N_CHUNKS = 10, /* of steps, behind each of which all bits are compared */
    CHUNK = 100,
    FEW = 20,     /* in a chunk where a step has more blocks than fit at once */
    PROBES = 200, /* launches of the chain of probes */
    TEXT_BYTES = 1 << 16
};

static int compute_capability(void)
{
    int major = 0, minor = 0;

    assert_int_equal(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0),
                     cudaSuccess);
    assert_int_equal(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0),
                     cudaSuccess);
    return 10 * major + minor;
}

static void need_delays(void)
{
    if (GX_TEST_DELAYS)
        return;
    print_message("no delays in this build: configure with -DGEXEC_TEST_DELAYS=ON\n");
    skip();
}

/* --- does a kernel that reads too early show? --- */

static gx_status record_probe(gx_ctx *ctx, const void *copy, float *from, float *to,
                              gx_error *err)
{
    float before = -1, after = 1;
    void *first[] = { &from, &before }, *second[] = { &from, &after };
    void *third[] = { &to, &from };
    const dim3 grid = { PROBE_GRID, 1, 1 }, block = { PROBE_BLOCK, 1, 1 };

    GX_TRY(gx_launch(ctx, "fill", probe_fill(), grid, block, 0, first, err));
    GX_TRY(gx_launch(ctx, "fill", probe_fill(), grid, block, 0, second, err));
    return gx_launch(ctx, "copy", copy, grid, block, 0, third, err);
}

/* Launches of (from = -1, from = 1, to = from) behind which `to` was not all 1. */
static int count_wrong(const void *copy)
{
    gx_ctx ctx = { .cc = compute_capability(), .programmatic = true };
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStream_t stream;
    float *memory, *host = malloc(PROBE_N * sizeof *host);
    gx_error err;
    int n_wrong = 0;

    assert_non_null(host);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&memory, 2 * PROBE_N * sizeof *memory),
                     cudaSuccess);
    ctx.stream = stream;
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                     cudaSuccess);
    const gx_status st = record_probe(&ctx, copy, memory, memory + PROBE_N, &err);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_ok(st, &err);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int i = 0; i < PROBES; i++) {
        bool wrong = false;

        assert_int_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
        assert_int_equal(cudaMemcpyAsync(host, memory + PROBE_N, PROBE_N * sizeof *host,
                                         cudaMemcpyDeviceToHost, stream),
                         cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
        for (int k = 0; k < PROBE_N; k++)
            wrong |= host[k] != 1;
        n_wrong += wrong;
    }
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    free(host);
    return n_wrong;
}

static void a_kernel_that_reads_too_early_is_caught(void **state)
{
    (void)state;
    need_delays();
    if (compute_capability() < 90) {
        print_message("no programmatic launch before compute capability 9.0\n");
        skip();
    }
    assert_int_equal(count_wrong(probe_copy()), 0);
    const int n_wrong = count_wrong(probe_early_copy());

    print_message("reading too early: %d of %d launches wrong\n", n_wrong, (int)PROBES);
    /* Most of them: a test that catches one in a hundred would not do. */
    assert_true(n_wrong > PROBES / 2);
}

/* --- models --- */

static char *read_model(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, TEXT_BYTES);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, TEXT_BYTES - 1, file) > 0);
    assert_true(feof(file));
    fclose(file);
    return text;
}

/* A hash over the bits of the losses and other logged figures of the last steps. */
static uint64_t log_bits(gpu_program *program, int64_t n_steps)
{
    size_t n_logged = 0;
    gx_error err;

    while (gx_graph_logged(program->graph, n_logged))
        n_logged++;
    const size_t bytes = n_logged * (size_t)n_steps * sizeof(double);
    double *rows = malloc(bytes + 1);
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    assert_non_null(rows);
    assert_true(n_logged > 0);
    assert_ok(gx_exec_log(program->exec, n_steps, rows, &err), &err);
    /* Else equal bits would mean nothing. */
    for (size_t i = 0; i < n_logged * (size_t)n_steps; i++)
        assert_true(isfinite(rows[i]));
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)rows)[i]) * UINT64_C(0x100000001b3);
    free(rows);
    return sum;
}

/* What every chunk of steps left: parameters, state, and the figures of each step. */
typedef struct trail {
    uint64_t bits[N_CHUNKS], logged[N_CHUNKS];
} trail;

static void follow(const char *text, const gpu_options *options, gx_mode mode, int chunk,
                   trail *found, int64_t *n_programmatic)
{
    gpu_program program;

    gpu_open_text(&program, text, options);
    for (int i = 0; i < N_CHUNKS; i++) {
        gpu_run(&program, mode, chunk);
        found->bits[i] = gpu_bits(&program);
        found->logged[i] = log_bits(&program, chunk);
    }
    *n_programmatic = gx_exec_stats_get(program.exec).programmatic_edges;
    gpu_close(&program);
}

static void assert_same_trail(const trail *a, const trail *b, const char *what, int chunk,
                              const gpu_options *options)
{
    for (int i = 0; i < N_CHUNKS; i++) {
        if (a->bits[i] == b->bits[i] && a->logged[i] == b->logged[i])
            continue;
        fail_msg("%s, force %s, %d lanes, %d steps a launch: other bits at step %d or "
                 "before",
                 what, options->force ? options->force : "nothing", options->lanes,
                 options->steps_per_launch, (i + 1) * chunk);
    }
}

/* Eager, one lane, full edges: nothing overlaps. Against it replays, and eager steps with
 * programmatic edges. */
static void compare_text(const char *name, const char *text, const char *force, int chunk)
{
    static trail expected, found;
    static const struct {
        int lanes, steps_per_launch;
        gx_mode mode;
    } ways[] = { { 1, 1, GX_MODE_GRAPH }, { 2, 1, GX_MODE_GRAPH },
                 { 2, 4, GX_MODE_GRAPH }, { 2, 1, GX_MODE_EAGER },
                 { 3, 1, GX_MODE_GRAPH }, { 3, 4, GX_MODE_GRAPH },
                 { 3, 1, GX_MODE_EAGER } };
    gpu_options options = { .force = force, .folder = "graphs/examples" };
    int64_t n_programmatic;

    follow(text, &options, GX_MODE_EAGER, chunk, &expected, &n_programmatic);
    assert_int_equal(n_programmatic, 0);
    options.programmatic = GX_ON;
    for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
        options.lanes = ways[w].lanes;
        options.steps_per_launch = ways[w].steps_per_launch;
        follow(text, &options, ways[w].mode, chunk, &found, &n_programmatic);
        /* Without any there was nothing to get wrong. */
        if (ways[w].mode == GX_MODE_GRAPH && compute_capability() >= 90)
            assert_true(n_programmatic > 0);
        assert_same_trail(&expected, &found, name, chunk, &options);
    }
}

static void compare(const char *path, const char *precision, const char *force)
{
    char *text = read_model(path);
    char *at = strstr(text, "precision: ");

    if (at)
        memcpy(at + strlen("precision: "), precision, strlen("tf32"));
    compare_text(path, text, force, CHUNK);
    free(text);
}

/* Products by the library, and by kernels of ours, which are delayed as well; updates by
 * one kernel each, and by one for many. */
static void compare_each_way(const char *path)
{
    need_delays();
    compare(path, "tf32", NULL);
    compare(path, "tf32", "fused");
    compare(path, "tf32", "tile");
    compare(path, "tf32", "multi");
    compare(path, "tf32", "weights_update");
    compare(path, "bf16", "fused");
}

static void a_small_classifier_has_the_bits_of_full_edges(void **state)
{
    (void)state;
    compare_each_way("graphs/examples/mnist_mlp.yaml");
}

static void a_deep_chain_has_the_bits_of_full_edges(void **state)
{
    (void)state;
    compare_each_way("graphs/examples/deep_narrow.yaml");
}

/* Batches that the step itself gathers, attention and norms. */
static void batches_and_blocks_have_the_bits_of_full_edges(void **state)
{
    (void)state;
    need_delays();
    compare("graphs/examples/digits_mlp.yaml", "tf32", NULL);
    compare("graphs/examples/encoder_copy.yaml", "tf32", NULL);
}

/* Products that warps finish which did not make them. */
static void large_products_have_the_bits_of_full_edges(void **state)
{
    static const char text[] =
        "gexec: 1\nname: large\ndims: {batch: 2048, width: 1040}\nprecision: $P\n"
        "inputs:\n  x: {shape: [batch, width], init: normal}\n"
        "  t: {shape: [batch, width], dtype: f32, init: normal}\nops:\n  - repeat:\n"
        "      name: layer\n      count: 3\n      carry: {h: x}\n      params:\n"
        "        w: {shape: [width, width], init: torch_linear}\n"
        "        b: {shape: [width]}\n      ops:\n"
        "        - {op: gemm, name: fc, a: h, b: w, epilogue: {bias: b, act: gelu_tanh}, "
        "out: h}\n  - {op: mse, name: loss, x: h, target: t}\nbackward: loss\n"
        "outputs: [loss]\noptimizer: {adamw: {}}\n";
    static const struct {
        const char *precision, *force;
    } cases[] = { { "bf16", "wgmma_fused,wgmma_update" }, { "tf32", "wgmma_update" } };

    (void)state;
    need_delays();
    if (!gx_wgmma_is_built() || compute_capability() != GX_WGMMA_CC) {
        print_message("no kernels for large products\n");
        skip();
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *filled = test_walk_text(text, cases[i].precision);

        compare_text("large", filled, cases[i].force, FEW);
        free(filled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_reads_too_early_is_caught),
        cmocka_unit_test(a_small_classifier_has_the_bits_of_full_edges),
        cmocka_unit_test(a_deep_chain_has_the_bits_of_full_edges),
        cmocka_unit_test(batches_and_blocks_have_the_bits_of_full_edges),
        cmocka_unit_test(large_products_have_the_bits_of_full_edges),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_delays", tests, NULL, NULL);
}
