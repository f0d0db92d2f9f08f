/* Predictions from real traces, beside what the same work took as a graph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nsys_predict.h"
#include "support_trace.h"

#if !GX_HAVE_SQLITE || !GX_HAVE_ZLIB

int main(void)
{
    printf("skipped: this build has no SQLite or no zlib\n");
    return TEST_SKIPPED;
}

#else

static gx_error err;

/* With the constants: nothing here depends on the machine. */
static gx_prediction *predict(const char *name, const char *step, gx_trace_file *file)
{
    const gx_trace_options options = { .step = step };
    gx_prediction *prediction;

    trace_load(OWN_TRACES, name, file);
    assert_ok(gx_prediction_create(file->trace, &options, NULL, &prediction, &err), &err);
    return prediction;
}

static void assert_within(double value, double truth, double share)
{
    print_message("%.0f ns predicted, %.0f measured: %+.1f%%\n", value, truth,
                  100 * (value / truth - 1));
    if (!(fabs(value - truth) <= share * truth))
        fail_msg("not within %.0f%%", 100 * share);
}

/* A step of 26 kernels, in an untraced CUDAGraph 87.5 us, in the profiler's process 87.2.
 */
static void a_training_step_of_pytorch(void **state)
{
    static const struct {
        const char *name, *step;
        gx_predict_by by;
        double truth_ns;
    } cases[] = {
        { "torch_mnist_mlp_tf32_eager.sqlite.gz", NULL, GX_PREDICT_BY_RANGE, 87500 },
        { "torch_mnist_mlp_tf32_eager.sqlite.gz", "none such", GX_PREDICT_BY_SEQUENCE,
          87500 },
#if GX_HAVE_YAJL
        { "kineto_mnist_mlp_tf32_eager.json.gz", NULL, GX_PREDICT_BY_SEQUENCE, 87200 },
#endif
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_trace_file file;
        gx_prediction *prediction = predict(cases[i].name, cases[i].step, &file);

        assert_int_equal(prediction->by, cases[i].by);
        assert_int_equal(prediction->n_steps, 6);
        assert_int_equal(prediction->n_same, 6);
        assert_int_equal(prediction->n_kernels, 26);
        assert_within(prediction->step_ns, cases[i].truth_ns, 0.05);
        assert_true(prediction->low_ns <= cases[i].truth_ns);
        assert_true(prediction->high_ns >= cases[i].truth_ns);
        assert_true(prediction->eager_ns > 1e6);
        gx_prediction_free(prediction);
        gx_trace_file_free(&file);
    }
}

/* PyTorch launches on the legacy default stream, which the export tells. */
static void the_legacy_stream_is_seen(void **state)
{
    gx_trace_file file;
    gx_prediction *prediction =
        predict("torch_mnist_mlp_tf32_eager.sqlite.gz", NULL, &file);

    (void)state;
    assert_int_equal(prediction->n_obstacles, 1);
    assert_int_equal(prediction->obstacle[0].kind, GX_OBSTACLE_LEGACY);
    assert_int_equal(prediction->obstacle[0].n, 156);
    gx_prediction_free(prediction);
    gx_trace_file_free(&file);
}

/* Ten tiny kernels: replays took 9.4 to 9.6 us from first to last, untraced inside. The
 * sum of the traced times is 11. */
static void ten_tiny_kernels(void **state)
{
    static const char *const names[] = { "probe_ten_ops_node.sqlite.gz",
                                         "probe_ten_ops_graph.sqlite.gz" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (int given = 0; given < 2; given++) {
            gx_trace_file file;
            gx_prediction *prediction = predict(names[i], given ? "eager" : NULL, &file);

            assert_int_equal(prediction->by,
                             given ? GX_PREDICT_BY_RANGE : GX_PREDICT_BY_OUTER);
            assert_int_equal(prediction->n_kernels, 10);
            assert_within(prediction->replay_ns, 9500, 0.10);
            assert_true(prediction->naive_ns > 1.1 * 9500);
            gx_prediction_free(prediction);
            gx_trace_file_free(&file);
        }
}

static void graphs_are_not_predicted(void **state)
{
    static const char *const names[] = {
        "torch_mnist_mlp_tf32_graph.sqlite.gz",
#if GX_HAVE_YAJL
        "kineto_mnist_mlp_tf32_graph.json.gz"
#endif
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        gx_trace_file file;
        gx_prediction *prediction = predict(names[i], NULL, &file);

        assert_int_equal(prediction->by, GX_PREDICT_BY_NONE);
        assert_non_null(strstr(prediction->why_not, "already"));
        gx_prediction_free(prediction);
        gx_trace_file_free(&file);
    }
}

/* A program that waits after each launch and copies from pageable memory. */
static void what_stands_in_the_way_of_a_synchronous_program(void **state)
{
    gx_trace_file file;
    gx_prediction *prediction;
    bool sync = false, pageable = false;

    (void)state;
    trace_skip_unless_shared();
    trace_load(OTHER_TRACES "/nsys", "pipit-2024.5.1-cloverleaf.sqlite", &file);
    assert_ok(gx_prediction_create(file.trace, NULL, NULL, &prediction, &err), &err);
    assert_int_equal(prediction->by, GX_PREDICT_BY_SEQUENCE);
    assert_true(prediction->after_removal);
    for (size_t i = 0; i < prediction->n_obstacles; i++) {
        const gx_obstacle *const one = &prediction->obstacle[i];

        sync = sync || (one->kind == GX_OBSTACLE_SYNC &&
                        strcmp(gx_trace_text_at(file.trace, one->name),
                               "cudaDeviceSynchronize_v3020") == 0);
        pageable = pageable || one->kind == GX_OBSTACLE_PAGEABLE;
    }
    assert_true(sync);
    assert_true(pageable);
    gx_prediction_free(prediction);
    gx_trace_file_free(&file);
}

/* --- costs --- */

static void read_costs(const char *words, gx_predict_costs *costs, const char *wrong)
{
    char *path = test_path("costs.txt");
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(words, file);
    fclose(file);
    if (wrong)
        assert_fails(gx_predict_costs_read(path, costs, &err), GX_ERR_DATA, &err, wrong);
    else
        assert_ok(gx_predict_costs_read(path, costs, &err), &err);
    free(path);
}

static void costs_come_from_a_file(void **state)
{
    gx_predict_costs costs;

    (void)state;
    read_costs("# of a card\ncard A big card\n\n node_ns\t1500 # measured\nstep_ns 3e3\n",
               &costs, NULL);
    assert_string_equal(costs.card, "A big card");
    assert_true(costs.node_ns == 1500);
    assert_true(costs.step_ns == 3000);
    assert_true(costs.trace_ns == gx_predict_costs_default().trace_ns);
    read_costs("node_ns 1500\nnodes 3\n", &costs,
               "costs.txt:2: no cost is named 'nodes'");
    read_costs("node_ns -1\n", &costs, ":1: '-1' is no value of node_ns");
    read_costs("node_ns 1 2\n", &costs, "'1 2' is no value");
    read_costs("node_ns\n", &costs, "'' is no value");
    read_costs("step_ns nan\n", &costs, "'nan' is no value");
    read_costs("n_sm 0\n", &costs, "at least 1");
    assert_fails(gx_predict_costs_read("no/such/file", &costs, &err), GX_ERR_READ, &err,
                 "no/such/file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_step_of_pytorch),
        cmocka_unit_test(the_legacy_stream_is_seen),
        cmocka_unit_test(ten_tiny_kernels),
        cmocka_unit_test(graphs_are_not_predicted),
        cmocka_unit_test(what_stands_in_the_way_of_a_synchronous_program),
        cmocka_unit_test(costs_come_from_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
