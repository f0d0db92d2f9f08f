/* What gexec adds for a model with data: gathers first, counters last, and the same for
 * an evaluation with names of its own. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

enum { ROWS = 10, WIDTH = 3, BATCH = 4 };

static void write_npy(const char *name, const gx_tensor *tensor)
{
    char *path = test_path(name);
    gx_error err = { 0 };

    assert_ok(gx_npy_write(path, tensor, &err), &err);
    free(path);
}

/* Rows 0 to 9; x[i] = 10 i + column, y[i] = i mod 3; rows 3 and 7 are held out. */
static int write_data(void **state)
{
    float x[ROWS * WIDTH];
    int32_t y[ROWS], split[ROWS], all[ROWS] = { 0 };

    (void)state;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < WIDTH; j++)
            x[i * WIDTH + j] = (float)(10 * i + j);
        y[i] = i % 3;
        split[i] = i == 3 || i == 7;
    }
    write_npy("x.npy", &(gx_tensor){ GX_F32, 2, { ROWS, WIDTH }, x });
    write_npy("y.npy", &(gx_tensor){ GX_I32, 1, { ROWS }, y });
    write_npy("split.npy", &(gx_tensor){ GX_I32, 1, { ROWS }, split });
    write_npy("all.npy", &(gx_tensor){ GX_I32, 1, { ROWS }, all });
    return 0;
}

static char *model_text(const char *data)
{
    static char text[1500];

    snprintf(text, sizeof text,
             "gexec: 1\nname: m\ndims: {batch: %d}\ndata: {x: x.npy, y: y.npy, %s}\n"
             "inputs: {x: {shape: [batch, %d]}, y: {shape: [batch], dtype: i32}}\n"
             "params: {w: {shape: [%d, 3], init: he_normal}}\nops:\n"
             "  - {op: gemm, name: h, a: x, b: w}\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
             "backward: loss\noptimizer: {sgd: {lr: 0.001}}\n"
             "metrics: {accuracy: {logits: h, labels: y}}\n",
             BATCH, data, WIDTH, WIDTH);
    return text;
}

static gx_graph *load(const char *data, gx_kind kind)
{
    const gx_load_options options = { .kind = kind };
    const char *text = model_text(data);
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", test_folder(), &options,
                             &graph, NULL, &err),
              &err);
    return graph;
}

static void assert_refused(const char *data, gx_kind kind, const char *message)
{
    const gx_load_options options = { .kind = kind };
    const char *text = model_text(data);
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    assert_fails(gx_graph_parse(text, strlen(text), "m.yaml", test_folder(), &options,
                                &graph, NULL, &err),
                 GX_ERR_MODEL, &err, message);
}

static const gx_value *value_of(const gx_graph *graph, const char *name)
{
    const int32_t id = gx_graph_value_id(graph, name);

    assert_true(id >= 0);
    return &graph->values[id];
}

static void gathers_come_first_and_counters_last(void **state)
{
    gx_graph *graph = load("split: split.npy, shuffle: true", GX_TRAIN);
    const gx_node *last = &graph->nodes[graph->n_nodes - 1];

    (void)state;
    assert_string_equal(graph->nodes[0].name, "x.gather");
    assert_string_equal(graph->nodes[1].name, "y.gather");
    assert_int_equal(graph->nodes[0].attr[GX_GATHER_SHUFFLE].i, 1);
    assert_string_equal(graph->nodes[2].name, "h");
    assert_string_equal(last->op_name, "step.end");
    assert_int_equal(last->attr[GX_STEP_BATCH].i, BATCH);
    assert_int_equal(last->attr[GX_STEP_TOTAL].i, ROWS - 2);
    assert_int_equal(last->attr[GX_STEP_NEED].i, 1);

    const gx_value *x = value_of(graph, "data.x"), *y = value_of(graph, "data.y");

    assert_int_equal(x->kind, GX_VALUE_DATA);
    assert_int_equal(x->rank, 2);
    assert_int_equal(x->dim[0], ROWS);
    assert_int_equal(x->dim[1], WIDTH);
    assert_int_equal(y->dtype, GX_I32);
    assert_int_equal(y->index_limit, 3);
    assert_int_equal(value_of(graph, "data.train")->dim[0], ROWS - 2);
    assert_int_equal(value_of(graph, "data.train")->index_limit, ROWS);
    assert_true(gx_graph_value_id(graph, "data.held") < 0);
    assert_int_equal(value_of(graph, "x")->producer, 0);
    gx_graph_free(graph);
}

static void an_evaluation_reads_the_held_out_rows_in_order(void **state)
{
    gx_graph *graph = load("split: split.npy, shuffle: true, drop_last: true", GX_EVAL);
    const gx_node *last = &graph->nodes[graph->n_nodes - 1];

    (void)state;
    assert_int_equal(graph->nodes[0].attr[GX_GATHER_SHUFFLE].i, 0);
    assert_int_equal(last->attr[GX_STEP_TOTAL].i, 2);
    assert_int_equal(last->attr[GX_STEP_NEED].i, 1);
    assert_int_equal(value_of(graph, "data.held")->dim[0], 2);
    assert_int_equal(value_of(graph, "gexec.eval.sample")->kind, GX_VALUE_STATE);
    for (size_t i = 0; i < graph->n_values; i++)
        assert_null(strstr(graph->values[i].name, "data.train"));
    assert_true(gx_graph_value_id(graph, "gexec.sample") < 0);
    gx_graph_free(graph);
}

static void drop_last_needs_a_whole_batch(void **state)
{
    gx_graph *graph = load("split: split.npy, drop_last: true", GX_TRAIN);

    (void)state;
    assert_int_equal(graph->nodes[graph->n_nodes - 1].attr[GX_STEP_NEED].i, BATCH);
    assert_int_equal(graph->nodes[0].attr[GX_GATHER_SHUFFLE].i, 0);
    gx_graph_free(graph);
}

static void data_without_rows_is_refused(void **state)
{
    (void)state;
    assert_refused("shuffle: false", GX_EVAL,
                   "the data has no held-out rows to evaluate on");
    assert_refused("split: all.npy", GX_EVAL,
                   "the data has no held-out rows to evaluate on");
}

/* Two epochs by steps: each training row once an epoch, none of the held-out ones. */
static void an_epoch_sees_every_training_row_once(void **state)
{
    gx_graph *graph = load("split: split.npy, shuffle: true", GX_TRAIN);
    test_walk walk = test_walk_of(graph, test_seed());
    double *data = test_walk_tensor(&walk, "data.x"),
           *rows = test_walk_tensor(&walk, "data.train");

    (void)state;
    for (int i = 0, n = 0; i < ROWS; i++) {
        for (int j = 0; j < WIDTH; j++)
            data[i * WIDTH + j] = 10 * i + j;
        if (i != 3 && i != 7)
            rows[n++] = i;
    }
    for (int i = 0; i < 4 * GX_MAX_LOGGED; i++)
        test_walk_tensor(&walk, "gexec.log")[i] = -1;
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[ROWS] = { 0 };

        for (int step = 0; step < 2; step++) {
            assert_true(*test_walk_tensor(&walk, "gexec.epoch") == epoch);
            test_walk_step(&walk);
            for (int j = 0; j < BATCH; j++) {
                const int row = (int)(test_walk_tensor(&walk, "x")[j * WIDTH] / 10);

                assert_true(test_walk_tensor(&walk, "x")[j * WIDTH + 2] == 10 * row + 2);
                seen[row]++;
            }
        }
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(seen[i], i != 3 && i != 7);
    }
    assert_true(*test_walk_tensor(&walk, "gexec.step") == 4);
    assert_true(*test_walk_tensor(&walk, "gexec.sample") == 0);
    /* the log holds the loss and the accuracy of each step */
    for (int i = 0; i < 4; i++) {
        const double *row = test_walk_tensor(&walk, "gexec.log") + i * GX_MAX_LOGGED;

        assert_true(row[0] >= 0 && row[1] >= 0 && row[1] <= 1);
    }
    test_walk_free(&walk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_come_first_and_counters_last),
        cmocka_unit_test(an_evaluation_reads_the_held_out_rows_in_order),
        cmocka_unit_test(drop_last_needs_a_whole_batch),
        cmocka_unit_test(data_without_rows_is_refused),
        cmocka_unit_test(an_epoch_sees_every_training_row_once),
    };

    return cmocka_run_group_tests_name("program", tests, write_data, NULL);
}
