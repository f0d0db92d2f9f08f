/* Small models trained on a GPU. */
#include "support_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_start(void)
{
    int n_devices = 0;
    gx_error err;

    if (gx_device_count(&n_devices, &err) == GX_OK)
        return;
    fprintf(stderr, "no GPU: %s\n", err.message);
    exit(getenv("GX_REQUIRE_GPU") ? EXIT_FAILURE : TEST_SKIPPED);
}

static gpu_options filled(const gpu_options *options)
{
    gpu_options all = options ? *options : (gpu_options){ .seed = 0 };

    if (all.batch == 0)
        all.batch = 16;
    if (all.inner == 0)
        all.inner = 33;
    if (all.outer == 0)
        all.outer = 7;
    if (all.n_layers == 0)
        all.n_layers = 2;
    if (all.lanes == 0)
        all.lanes = 1;
    if (all.programmatic == GX_AUTO)
        all.programmatic = GX_OFF;
    return all;
}

void gpu_open_text(gpu_program *program, const char *text, const gpu_options *options)
{
    const gpu_options all = filled(options);
    const gx_load_options load = { .kind = all.kind };
    const gx_plan_options plan = { .device = 0,
                                   .cache_folder = "",
                                   .lanes = all.lanes,
                                   .programmatic = all.programmatic,
                                   .force = all.force,
                                   .skip_if = all.skip_if,
                                   .no_measure = true };
    const gx_state_options state = { .device = 0,
                                     .seed = all.seed,
                                     .stream = all.stream };
    const gx_exec_options exec = { .steps_per_launch = all.steps_per_launch,
                                   .step_loop = all.step_loop };
    gx_error err;

    *program = (gpu_program){ NULL, NULL, NULL, NULL };
    assert_ok(gx_graph_parse(text, strlen(text), "gpu.yaml",
                             all.folder ? all.folder : ".", &load, &program->graph, NULL,
                             &err),
              &err);
    const gx_graph *graph = program->graph;
    assert_ok(gx_plan_create(graph, &plan, &program->plan, &err), &err);
    assert_ok(gx_state_create(&graph, 1, &state, &program->state, &err), &err);
    assert_ok(gx_exec_create(program->plan, program->state, &exec, &program->exec, &err),
              &err);
}

static char *perceptron_text(const gpu_options *all)
{
    const size_t size = 1000 + 300 * (size_t)all->n_layers;
    char *text = malloc(size);
    size_t at;

    assert_non_null(text);
    at = (size_t)snprintf(text, size,
                          "gexec: 1\nname: perceptron\nprecision: f32\ninputs:\n"
                          "  x: {shape: [%lld, %lld]}\n  y: {shape: [%lld], dtype: i32}\n"
                          "params:\n",
                          (long long)all->batch, (long long)all->inner,
                          (long long)all->batch);
    for (int i = 0; i < all->n_layers; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "  w%d: {shape: [%lld, %lld], init: he_normal}\n"
                               "  b%d: {shape: [%lld]}\n",
                               i, (long long)(i == 0 ? all->inner : all->outer),
                               (long long)all->outer, i, (long long)all->outer);
    at += (size_t)snprintf(text + at, size - at, "ops:\n");
    for (int i = 0; i < all->n_layers; i++) {
        char from[16] = "x";

        if (i > 0)
            snprintf(from, sizeof from, "h%d", i - 1);
        at += (size_t)snprintf(text + at, size - at,
                               "  - {op: gemm, name: fc%d, a: %s, b: w%d, "
                               "epilogue: {bias: b%d, act: %s}, out: h%d}\n",
                               i, from, i, i, i + 1 < all->n_layers ? "relu" : "none", i);
    }
    snprintf(text + at, size - at,
             "  - {op: softmax_cross_entropy, name: loss, logits: h%d, labels: y}\n"
             "backward: loss\noptimizer: {adamw: {lr: 1.0e-2}}\noutputs: [loss, h%d]\n",
             all->n_layers - 1, all->n_layers - 1);
    return text;
}

static void write_inputs(gpu_program *program, const gpu_options *options)
{
    const gpu_options all = filled(options);
    test_random random = test_random_start(all.seed + 1);
    const int64_t n = all.batch * all.inner;
    float *x = malloc((size_t)n * sizeof *x);
    int32_t *y = malloc((size_t)all.batch * sizeof *y);
    const gx_tensor host_x = {
        .dtype = GX_F32, .rank = 2, .dim = { all.batch, all.inner }, .data = x
    };
    const gx_tensor host_y = {
        .dtype = GX_I32, .rank = 1, .dim = { all.batch }, .data = y
    };
    gx_error err;

    assert_true(x && y);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)test_random_real(&random, -1, 1);
    for (int64_t i = 0; i < all.batch; i++)
        y[i] = (int32_t)test_random_int(&random, 0, all.outer - 1);
    assert_ok(gx_exec_write(program->exec, "x", &host_x, &err), &err);
    assert_ok(gx_exec_write(program->exec, "y", &host_y, &err), &err);
    free(x);
    free(y);
}

void gpu_open(gpu_program *program, const gpu_options *options)
{
    const gpu_options all = filled(options);
    char *text = perceptron_text(&all);

    gpu_open_text(program, text, &all);
    free(text);
    write_inputs(program, &all);
}

void gpu_open_cpu(gpu_program *program, const char *text)
{
    const gx_plan_options plan = { .device = GX_CPU };
    const gx_state_options state = { .device = GX_CPU };
    gx_error err;

    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &program->graph,
                             NULL, &err),
              &err);
    const gx_graph *graph = program->graph;
    assert_ok(gx_plan_create(graph, &plan, &program->plan, &err), &err);
    assert_ok(gx_state_create(&graph, 1, &state, &program->state, &err), &err);
    assert_ok(gx_exec_create(program->plan, program->state, NULL, &program->exec, &err),
              &err);
}

void gpu_close(gpu_program *program)
{
    gx_exec_free(program->exec);
    gx_state_free(program->state);
    gx_plan_free(program->plan);
    gx_graph_free(program->graph);
}

void gpu_run(gpu_program *program, gx_mode mode, int64_t n_steps)
{
    gx_error err;

    assert_ok(gx_exec_run(program->exec, mode, n_steps, &err), &err);
}

/* FNV-1a. */
static uint64_t hash(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *byte = data;

    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return sum;
}

uint64_t gpu_bits(gpu_program *program)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    gx_error err;

    assert_ok(gx_exec_sync(program->exec, &err), &err);
    for (size_t i = 0; i < gx_graph_value_count(program->graph); i++) {
        const gx_value_info info = gx_graph_value(program->graph, i);
        gx_tensor host = { .dtype = info.dtype, .rank = info.rank };

        if (info.kind != GX_VALUE_PARAM && info.kind != GX_VALUE_STATE)
            continue;
        memcpy(host.dim, info.dim, sizeof host.dim);
        const size_t bytes = (size_t)gx_count(&host) * gx_dtype_bytes(info.dtype);
        host.data = malloc(bytes + 1);
        assert_non_null(host.data);
        assert_ok(gx_state_read(program->state, info.name, &host, &err), &err);
        sum = hash(sum, host.data, bytes);
        free(host.data);
    }
    return sum;
}

int32_t gpu_step_count(gpu_program *program)
{
    int32_t n = -1;
    gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &n };
    gx_error err;

    assert_ok(gx_exec_read(program->exec, "gexec.step", &host, &err), &err);
    return n;
}

double gpu_scalar(gpu_program *program, const char *name)
{
    double value = NAN;
    gx_tensor host = { .dtype = GX_F64, .rank = 0, .data = &value };
    gx_error err;

    assert_ok(gx_exec_read(program->exec, name, &host, &err), &err);
    return value;
}
