/* embedding and its derivative against plain loops, and indices that name no row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "support.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

enum { N_DRAWS = 20 };

static test_walk open_pair(int rows, int width, int n)
{
    char text[800];

    snprintf(text, sizeof text,
             HEAD "inputs:\n  w: {shape: [%d, %d], init: normal}\n"
                  "  dy: {shape: [%d, 2, %d], init: normal}\n"
                  "  i: {shape: [%d, 2], dtype: i32}\nops:\n"
                  "  - {op: embedding, name: y, table: w, index: i}\n"
                  "  - {op: embedding.bwd, name: dw, dy: dy, index: i, rows: %d}\n"
                  "outputs: [y, dw]\n",
             rows, width, n, width, n, rows);
    return test_walk_parse(text, "f32", GX_TRAIN, test_seed());
}

static void check_pair(test_walk *model, int rows, int width, int n)
{
    const double *w = test_walk_tensor(model, "w"), *dy = test_walk_tensor(model, "dy");
    const double *i = test_walk_tensor(model, "i");

    model->exact = true;
    test_walk_step(model);
    assert_int_equal(test_walk_count(model, "y"), 2 * n * width);
    for (int k = 0; k < 2 * n * width; k++)
        assert_true(test_walk_tensor(model, "y")[k] ==
                    w[(int)i[k / width] * width + k % width]);
    for (int row = 0; row < rows; row++) {
        for (int j = 0; j < width; j++) {
            double sum = 0;

            for (int k = 0; k < 2 * n; k++)
                sum += (int)i[k] == row ? dy[k * width + j] : 0;
            assert_true(test_walk_tensor(model, "dw")[row * width + j] == sum);
        }
    }
}

static void rows_are_gathered_and_summed_back(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < N_DRAWS; round++) {
        const int rows = (int)test_random_int(&random, 1, 12);
        const int width = (int)test_random_int(&random, 1, 9);
        const int n = (int)test_random_int(&random, 1, 15);
        test_walk model = open_pair(rows, width, n);

        for (int k = 0; k < 2 * n; k++)
            test_walk_tensor(&model, "i")[k] =
                (double)test_random_int(&random, 0, rows - 1);
        check_pair(&model, rows, width, n);
        test_walk_free(&model);
    }
}

/* Also of equal indices every one counts, and rows that none names get 0, not what was
 * there. */
static void equal_indices_all_count(void **state)
{
    test_walk model = open_pair(5, 3, 400);

    (void)state;
    for (int k = 0; k < 800; k++)
        test_walk_tensor(&model, "i")[k] = 3;
    check_pair(&model, 5, 3, 400);
    for (int j = 0; j < 3; j++)
        assert_true(test_walk_tensor(&model, "dw")[j] == 0);
    test_walk_free(&model);
}

/* 4096 ones: a sum that was kept in bf16 would stop at 256, in f16 at 2048. */
static void a_narrow_gradient_is_rounded_once(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        test_walk model = test_walk_parse(
            HEAD "inputs:\n  dy: {shape: [4096, 1], init: ones}\n"
                 "  i: {shape: [4096], dtype: i32}\nops:\n"
                 "  - {op: embedding.bwd, name: dw, dy: dy, index: i, rows: 2}\n"
                 "outputs: [dw]\n",
            p ? "f16" : "bf16", GX_TRAIN, 1);

        test_walk_step(&model);
        assert_true(test_walk_tensor(&model, "dw")[0] == 4096);
        assert_true(test_walk_tensor(&model, "dw")[1] == 0);
        test_walk_free(&model);
    }
}

/* Calls the reference by hand, since no index out of range comes past gx_exec_write. */
static void the_reference_names_an_index_that_is_no_row(void **state)
{
    const gx_op *op = gx_op_find("embedding");
    double w[] = { 0, 1, 2 }, i[] = { 0, 2, 3 }, out[3];
    gx_call call = { .op = op };
    gx_error err = { 0 };

    (void)state;
    call.arg[GX_EMBEDDING_TABLE] = (gx_tensor){ GX_F64, 2, { 3, 1 }, w };
    call.arg[GX_EMBEDDING_INDEX] = (gx_tensor){ GX_F64, 1, { 3 }, i };
    call.arg[GX_EMBEDDING_OUT] = (gx_tensor){ GX_F64, 2, { 3, 1 }, out };
    assert_fails(op->reference(&call, &err), GX_ERR_DATA, &err,
                 "index 3 at element 2 is not between 0 and 2");
    i[2] = -1;
    assert_fails(op->reference(&call, &err), GX_ERR_DATA, &err, "index -1 at element 2");
}

static void an_index_that_is_no_row_is_refused_with_its_place(void **state)
{
    static const char text[] =
        "gexec: 1\nname: m\ninputs:\n  i: {shape: [2, 3, 2], dtype: i32}\n"
        "params:\n  w: {shape: [10, 4], init: normal}\nops:\n"
        "  - {op: embedding, name: y, table: w, index: i}\noutputs: [y]\n";
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU };
    int32_t index[12] = { 0 };
    gx_tensor host = { .dtype = GX_I32, .rank = 3, .dim = { 2, 3, 2 }, .data = index };
    gx_graph *graph = NULL;
    gx_plan *plan = NULL;
    gx_state *made = NULL;
    gx_exec *exec = NULL;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &graph, NULL, &err),
              &err);
    const gx_graph *graphs[] = { graph };
    assert_ok(gx_plan_create(graph, &plan_options, &plan, &err), &err);
    assert_ok(gx_state_create(graphs, 1, &state_options, &made, &err), &err);
    assert_ok(gx_exec_create(plan, made, NULL, &exec, &err), &err);
    index[9] = 10;
    assert_fails(gx_exec_write(exec, "i", &host, &err), GX_ERR_DATA, &err,
                 "i: row 1, element 1 1: value 10 is not an integer in [0, 10)");
    index[9] = -1;
    assert_fails(gx_exec_write(exec, "i", &host, &err), GX_ERR_DATA, &err,
                 "i: row 1, element 1 1: value -1 is not");
    index[9] = 9;
    assert_ok(gx_exec_write(exec, "i", &host, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_CPU, 1, &err), &err);
    gx_exec_free(exec);
    gx_state_free(made);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

static void mistakes_are_named_at_their_place(void **state)
{
    static const struct {
        const char *op, *message;
    } mistakes[] = {
        { "{op: embedding, name: y, table: w, index: w}",
          "model.yaml:11:47: embedding \"y\": index is f32, expected i32" },
        { "{op: embedding, name: y, table: i, index: i}",
          "model.yaml:11:37: embedding \"y\": table is i32, expected f32, bf16 or f16" },
        { "{op: embedding, name: y, table: v, index: i}",
          "model.yaml:11:37: embedding \"y\": table has shape [3], expected 2 "
          "dimensions" },
        { "{op: embedding, name: y, table: e, index: i}",
          "model.yaml:11:37: embedding \"y\": table has no rows that an index could "
          "name" },
        { "{op: embedding, name: y, table: w, index: deep}",
          "model.yaml:11:47: embedding \"y\": index has 8 dimensions, expected at most "
          "7" },
        { "{op: embedding.bwd, name: y, dy: w, index: i, rows: 0}",
          "model.yaml:11:57: embedding.bwd \"y\": rows is 0, expected the rows of a "
          "table" },
        { "{op: embedding.bwd, name: y, dy: v, index: i, rows: 4}",
          "model.yaml:11:38: embedding.bwd \"y\": dy has shape [3], expected [5, 3]" },
        { "{op: embedding.bwd, name: y, dy: w, index: i}",
          "embedding.bwd \"y\" lacks the field \"rows\"" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        char text[800];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n  w: {shape: [5, 2]}\n  v: {shape: [3]}\n"
                 "  e: {shape: [0, 3]}\n  i: {shape: [5], dtype: i32}\n"
                 "  deep: {shape: [1, 1, 1, 1, 1, 1, 1, 1], dtype: i32}\n"
                 "  u: {shape: [1]}\nops:\n  - %s\n",
                 mistakes[i].op);
        char *found = test_walk_mistakes(text, GX_TRAIN);

        assert_has(found, mistakes[i].message);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_gathered_and_summed_back),
        cmocka_unit_test(equal_indices_all_count),
        cmocka_unit_test(a_narrow_gradient_is_rounded_once),
        cmocka_unit_test(the_reference_names_an_index_that_is_no_row),
        cmocka_unit_test(an_index_that_is_no_row_is_refused_with_its_place),
        cmocka_unit_test(mistakes_are_named_at_their_place),
    };

    return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}
