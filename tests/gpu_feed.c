/* Data that stream on a GPU: the same bits as with the data set on the device, in eager
 * and in graph mode, over short batches and evaluations, and while copies take longer
 * than steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_gpu.h"

/* Batches of 1 MiB for a step that is short, and more rows than a run goes through. */
enum { ROWS = 4001, WIDTH = 1024, BATCH = 256, SHORT = ROWS % BATCH, STEPS = 15 };

typedef struct fed {
    gx_graph *graph[2]; /* whole batches, and the short one */
    gx_plan *plan[2];
    gx_state *state;
    gx_exec *exec[2], *unrolled;
} fed;

static void write_rows(void)
{
    float *x = malloc((size_t)ROWS * WIDTH * sizeof *x);
    int32_t y[ROWS];
    gx_tensor rows = { .dtype = GX_F32, .rank = 2, .dim = { ROWS, WIDTH }, .data = x };
    gx_tensor labels = { .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = y };
    char *const paths[] = { test_path("x.npy"), test_path("y.npy") };
    test_random random = test_random_start(17);
    gx_error err;

    assert_non_null(x);
    for (int64_t i = 0; i < (int64_t)ROWS * WIDTH; i++)
        x[i] = (float)test_random_real(&random, -1, 1);
    for (int i = 0; i < ROWS; i++)
        y[i] = (int32_t)test_random_int(&random, 0, 9);
    assert_ok(gx_npy_write(paths[0], &rows, &err), &err);
    assert_ok(gx_npy_write(paths[1], &labels, &err), &err);
    free(paths[0]);
    free(paths[1]);
    free(x);
}

static gx_graph *load(const char *precision, gx_streaming stream, int64_t batch_rows)
{
    const gx_load_options options = { .stream = stream, .batch_rows = batch_rows };
    char text[1500];
    gx_graph *graph;
    gx_error err;

    snprintf(text, sizeof text,
             "gexec: 1\nname: fed\nprecision: %s\ndims: {batch: %d}\n"
             "data: {x: x.npy, y: y.npy, shuffle: true}\n"
             "inputs:\n  x: {shape: [batch, %d]}\n  y: {shape: [batch], dtype: i32}\n"
             "params: {w: {shape: [%d, 10], init: he_normal}, b: {shape: [10]}}\n"
             "ops:\n  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: b}, out: h}\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
             "backward: loss\noptimizer: {adamw: {lr: 0.01}}\n"
             "metrics: {topk: {logits: h, labels: y, k: 3}, perplexity: {loss: loss}}\n"
             "outputs: [loss]\n",
             precision, BATCH, WIDTH, WIDTH);
    assert_ok(gx_graph_parse(text, strlen(text), "fed.yaml", test_folder(), &options,
                             &graph, NULL, &err),
              &err);
    return graph;
}

static fed open_fed(const char *precision, gx_streaming stream, int lanes)
{
    const gx_plan_options plan_options = { .device = 0,
                                           .cache_folder = "",
                                           .lanes = lanes,
                                           .programmatic = GX_OFF,
                                           .no_measure = true };
    const gx_exec_options three = { .steps_per_launch = 3 };
    const gx_state_options options = { .device = 0, .seed = 5 };
    fed f;
    gx_error err;

    for (int i = 0; i < 2; i++)
        f.graph[i] = load(precision, stream, i ? SHORT : 0);
    assert_ok(
        gx_state_create((const gx_graph *const *)f.graph, 2, &options, &f.state, &err),
        &err);
    for (int i = 0; i < 2; i++) {
        assert_ok(gx_plan_create(f.graph[i], &plan_options, &f.plan[i], &err), &err);
        assert_ok(gx_exec_create(f.plan[i], f.state, NULL, &f.exec[i], &err), &err);
    }
    assert_ok(gx_exec_create(f.plan[0], f.state, &three, &f.unrolled, &err), &err);
    return f;
}

static void close_fed(fed *f)
{
    gx_exec_free(f->unrolled);
    for (int i = 0; i < 2; i++) {
        gx_exec_free(f->exec[i]);
        gx_plan_free(f->plan[i]);
    }
    gx_state_free(f->state);
    for (int i = 0; i < 2; i++)
        gx_graph_free(f->graph[i]);
}

/* Two epochs without a wait between submissions; the log of all steps. */
static void train(fed *f, gx_mode mode, bool unrolled, double *log)
{
    gx_error err;

    for (int epoch = 0; epoch < 2; epoch++) {
        assert_ok(gx_exec_run(unrolled ? f->unrolled : f->exec[0], mode, STEPS, &err),
                  &err);
        assert_ok(gx_exec_run(f->exec[1], mode, 1, &err), &err);
    }
    assert_ok(gx_exec_sync(f->exec[1], &err), &err);
    assert_ok(gx_exec_log(f->exec[1], 2 * (STEPS + 1), log, &err), &err);
}

static void streaming_changes_no_bit(void **state)
{
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    enum { COLUMNS = 3, N = 2 * (STEPS + 1) * COLUMNS };
    static double expected[N], found[N];

    (void)state;
    write_rows();
    for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
        for (int lanes = 1; lanes <= 3; lanes++) {
            fed resident = open_fed(precisions[p], GX_STREAM_OFF, lanes);
            fed stream = open_fed(precisions[p], GX_STREAM_ON, lanes);
            gx_snapshot *start;
            gx_error err;

            assert_ok(gx_state_save(stream.state, &start, &err), &err);
            train(&resident, GX_MODE_GRAPH, false, expected);
            for (int way = 0; way < 3; way++) {
                memset(found, 0, sizeof found);
                train(&stream, way ? GX_MODE_GRAPH : GX_MODE_EAGER, way == 2, found);
                for (int i = 0; i < N; i++)
                    if (memcmp(&expected[i], &found[i], sizeof found[i]) != 0)
                        fail_msg("%s, %d lanes, way %d: row %d of the log, column %d: "
                                 "%.9g and not %.9g",
                                 precisions[p], lanes, way, i / COLUMNS, i % COLUMNS,
                                 found[i], expected[i]);
                assert_ok(gx_state_restore(stream.state, start, &err), &err);
            }
            gx_snapshot_free(start);
            close_fed(&stream);
            close_fed(&resident);
        }
    }
}

/* What is fetched behind a step is that step's batch, whatever is copied ahead. */
static void a_fetched_batch_is_that_of_its_step(void **state)
{
    enum { N = 12 };
    float *batch[2][N];
    gx_error err;

    (void)state;
    write_rows();
    for (int k = 0; k < 2; k++) {
        fed f = open_fed("f32", k ? GX_STREAM_ON : GX_STREAM_OFF, 1);

        for (int i = 0; i < N; i++) {
            gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { BATCH, WIDTH } };

            host.data = batch[k][i] = malloc((size_t)BATCH * WIDTH * sizeof(float));
            assert_non_null(host.data);
            assert_ok(gx_exec_run(f.exec[0], GX_MODE_GRAPH, 1, &err), &err);
            assert_ok(gx_exec_fetch(f.exec[0], "x", &host, &err), &err);
        }
        assert_ok(gx_exec_sync(f.exec[0], &err), &err);
        close_fed(&f);
    }
    for (int i = 0; i < N; i++) {
        assert_memory_equal(batch[0][i], batch[1][i],
                            (size_t)BATCH * WIDTH * sizeof(float));
        free(batch[0][i]);
        free(batch[1][i]);
    }
}

static void waits_are_counted_step_by_step(void **state)
{
    gx_exec_stats stats;
    gx_error err;

    (void)state;
    write_rows();
    fed f = open_fed("f32", GX_STREAM_ON, 1);
    assert_ok(gx_exec_run(f.exec[0], GX_MODE_GRAPH, 100, &err), &err);
    assert_ok(gx_exec_sync(f.exec[0], &err), &err);
    stats = gx_exec_stats_get(f.exec[0]);
    assert_int_equal(stats.data_steps, 100);
    assert_true(stats.data_wait_s >= 0);
    print_message("data wait %.2f us a step\n", 1e6 * stats.data_wait_s / 100);
    close_fed(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streaming_changes_no_bit),
        cmocka_unit_test(a_fetched_batch_is_that_of_its_step),
        cmocka_unit_test(waits_are_counted_step_by_step),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_feed", tests, NULL, NULL);
}
