/* What a gemm is made of: how few ops an epilogue becomes, what its derivatives are, and
 * that costs and fans are of what is used. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support_walk.h"

enum { TEXT = 2000 };

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

/* --- what the parts are --- */

static char *ops_of(const test_walk *model, char *text)
{
    size_t used = 0;

    for (size_t i = 0; i < model->graph->n_nodes; i++)
        used += (size_t)snprintf(text + used, TEXT - used, "%s%s", i > 0 ? " " : "",
                                 model->graph->nodes[i].op_name);
    assert_in_range(used, 1, TEXT - 1);
    return text;
}

#define ALL_INPUTS                                                                \
    HEAD "inputs:\n  a: {shape: [2, 3]}\n  b: {shape: [3, 4]}\n  c: {shape: [2, " \
         "4]}\n  r: {shape: [2, 4]}\n  s: {shape: [4]}\nops:\n"

/* What the product can do stays in it, and as few epilogues follow as there must be. */
static void an_order_becomes_as_few_ops_as_it_can(void **state)
{
    static const struct {
        const char *fields, *ops;
    } cases[] = {
        { "epilogue: {scale: 2}", "gemm" },
        { "epilogue: {residual: r}", "gemm" },
        { "epilogue: {scale: 2, residual: r}", "gemm" },
        { "epilogue: {residual: r, scale: 2, order: [residual, scale]}", "gemm" },
        { "c: c, epilogue: {scale: 2}", "gemm" },
        { "c: c, epilogue: {residual: r}", "gemm epilogue" },
        { "epilogue: {bias: s, residual: r, act: relu}", "gemm epilogue" },
        { "epilogue: {bias: s, residual: r, act: relu, order: [residual, bias, act]}",
          "gemm epilogue" },
        { "epilogue: {bias: s, act: relu, residual: r, order: [bias, act, residual]}",
          "gemm epilogue epilogue" },
        { "epilogue: {bias: s, scale: 2, act: relu, order: [bias, scale, act]}",
          "gemm epilogue epilogue" },
        { "epilogue: {scale: 2, residual: r, act: relu, order: [act, residual, scale]}",
          "gemm epilogue epilogue epilogue" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT], ops[TEXT];

        snprintf(text, sizeof text,
                 ALL_INPUTS "  - {op: gemm, name: y, a: a, b: b, %s}\noutputs: [y]\n",
                 cases[i].fields);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

        assert_string_equal(ops_of(&model, ops), cases[i].ops);
        test_walk_free(&model);
    }
}

/* Wide rows of operands are nothing of an op; those of the result are zeros behind what
 * an epilogue makes. */
static void wide_rows_need_an_op_behind_an_epilogue_alone(void **state)
{
    static const struct {
        const char *fields, *ops;
    } cases[] = {
        { "ld: {a: 5}", "gemm" },
        { "n: 3, ld: {b: 4}, epilogue: {act: relu}", "gemm epilogue" },
        { "ld: {out: 9}", "gemm" },
        { "ld: {out: 9}, epilogue: {scale: 2, residual: r}", "gemm" },
        { "ld: {out: 9}, epilogue: {bias: s}", "gemm epilogue slice.bwd" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT], ops[TEXT];

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  b: {shape: [3, 4]}\n  r: {shape: [2, 4]}\n"
                      "  s: {shape: [4]}\n  a: {shape: [2, %s]}\nops:\n"
                      "  - {op: gemm, name: y, a: a, b: b, %s}\noutputs: [y]\n",
                 strstr(cases[i].fields, "a: 5") ? "5" : "3", cases[i].fields);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

        assert_string_equal(ops_of(&model, ops), cases[i].ops);
        test_walk_free(&model);
    }
}

/* As torch.addmm: with beta 0 what c holds is of no account. */
static void with_beta_0_c_is_not_read(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        ALL_INPUTS "  - {op: gemm, name: y, a: a, b: b, c: c, beta: 0}\noutputs: [y]\n",
        "f32", GX_TRAIN, 1);

    for (int i = 0; i < 8; i++)
        test_walk_tensor(&model, "c")[i] = NAN;
    test_walk_step(&model);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(test_walk_tensor(&model, "y")[i]) < 1e9);
    test_walk_free(&model);
}

/* --- derivatives; test_backward.c compares those of all samples with differences --- */

/* gemm.bwd makes every gradient that `backward` derives, to the bit. */
static void gemm_bwd_makes_what_is_derived(void **state)
{
    static const char *const pairs[][2] = { { "da", "a.grad" },
                                            { "db", "b.grad" },
                                            { "dc", "c.grad" },
                                            { "dbias", "s.grad" },
                                            { "dresidual", "r.grad" } };
    static const struct {
        const char *a, *b, *c, *out, *sizes;
    } cases[] = {
        { "[2, 3, 5]", "[2, 5, 4]", "4", "4", "" },
        { "[2, 3, 5]", "[5, 4]", "4", "4", "" },
        { "[3, 5]", "[2, 5, 4]", "4", "4", "" },
        { "[2, 3, 6]", "[2, 5, 7]", "6", "4", ", n: 4, ld: {a: 6, b: 7, c: 6}" },
        { "[2, 3, 6]", "[5, 7]", "6", "9", ", n: 4, ld: {a: 6, b: 7, c: 6, out: 9}" },
        { "[3, 5]", "[2, 5, 4]", "4", "5", ", ld: {out: 5}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT];

        snprintf(
            text, sizeof text,
            HEAD
            "inputs:\n  t: {shape: [2, 3, %s], init: normal}\nparams:\n"
            "  a: {shape: %s, init: normal}\n  b: {shape: %s, init: normal}\n"
            "  c: {shape: [2, 3, %s], init: normal}\n  r: {shape: [2, 3, 4], init: "
            "normal}\n  s: {shape: [4], init: normal}\nops:\n"
            "  - {op: gemm, name: y, a: a, b: b, alpha: 0.5, c: c, beta: 3%s, "
            "epilogue: {bias: s, residual: r, act: tanh}}\n"
            "  - {op: mse, name: loss, x: y, target: t}\n"
            "  - {op: mse.bwd, name: dy, x: y, target: t}\n"
            "  - {op: gemm.bwd, name: g, a: a, b: b, dy: dy, y: y, alpha: 0.5, "
            "beta: 3%s, epilogue: {act: tanh}, da: da, db: db, dc: dc, dbias: dbias, "
            "dresidual: dresidual}\nbackward: loss\n",
            cases[i].out, cases[i].a, cases[i].b, cases[i].c, cases[i].sizes,
            cases[i].sizes);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());

        test_walk_step(&model);
        for (size_t k = 0; k < ARRAY_SIZE(pairs); k++) {
            const int64_t n = test_walk_count(&model, pairs[k][1]);

            assert_int_equal(test_walk_count(&model, pairs[k][0]), n);
            assert_memory_equal(test_walk_tensor(&model, pairs[k][0]),
                                test_walk_tensor(&model, pairs[k][1]),
                                (size_t)n * sizeof(double));
        }
        test_walk_free(&model);
    }
}

/* What a batch shares gets the sum over the batch, and no op more than that. */
static void the_gradient_of_a_shared_weight_is_one_product(void **state)
{
    char ops[TEXT];

    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [2, 3, 5], init: normal}\n"
             "  t: {shape: [2, 3, 4], init: normal}\n"
             "params:\n  w: {shape: [5, 4], init: normal}\nops:\n"
             "  - {op: gemm, name: y, a: x, b: w}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, 1);

    assert_string_equal(ops_of(&model, ops), "gemm mse.bwd mse gemm step.end");
    assert_true(model.graph->nodes[3].attr[GX_GEMM_SUM_BATCH].i);
    test_walk_free(&model);
}

/* What a product does not use has the gradient 0, what it uses that of the narrow one. */
static void what_is_not_used_has_no_gradient(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  t: {shape: [3, 6], init: normal}\nparams:\n"
             "  a: {shape: [3, 5], init: normal}\n  b: {shape: [4, 7], init: normal}\n"
             "  c: {shape: [3, 8], init: normal}\nops:\n"
             "  - {op: gemm, name: y, a: a, b: b, c: c, n: 2, ld: {a: 5, b: 7, c: 8, "
             "out: 6}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, test_seed());
    static const struct {
        const char *name;
        int64_t rows, row, used;
    } cases[] = { { "a.grad", 3, 5, 4 }, { "b.grad", 4, 7, 2 }, { "c.grad", 3, 8, 2 } };

    test_walk_step(&model);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const double *x = test_walk_tensor(&model, cases[i].name);

        assert_int_equal(test_walk_count(&model, cases[i].name),
                         cases[i].rows * cases[i].row);
        for (int64_t at = 0; at < cases[i].rows * cases[i].row; at++)
            assert_true((x[at] == 0) == (at % cases[i].row >= cases[i].used));
    }
    test_walk_free(&model);
}

/* Costs are of what is used, and of all that is written. */
static void costs_are_of_what_is_used(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  a: {shape: [2, 3, 9]}\n  b: {shape: [2, 5, 8]}\n"
             "  c: {shape: [2, 3, 6]}\nops:\n"
             "  - {op: gemm, name: y, a: a, b: b, c: c, alpha: 2, n: 4, ld: {a: 9, b: 8, "
             "c: 6, out: 7}}\noutputs: [y]\n",
        "f32", GX_TRAIN, 1);
    const gx_node_info info = gx_graph_node(model.graph, 0);

    assert_true(info.flops == 2 * 3 * 4 * (2.0 * 5 + 3));
    assert_true(info.bytes == 4.0 * 2 * (3 * 5 + 5 * 4 + 3 * 4 + 3 * 7));
    test_walk_free(&model);
}

/* A weight whose rows are wider has the fans of what is used. */
static void fans_are_of_what_is_used(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [3, 9]}\n  t: {shape: [3, 4]}\nparams:\n"
             "  w: {shape: [5, 8], init: he_normal}\n  s: {shape: [4]}\nops:\n"
             "  - {op: gemm, name: y, a: x, b: w, n: 4, ld: {a: 9, b: 8}, epilogue: "
             "{bias: s}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, 1);
    const gx_graph *graph = model.graph;
    const gx_value *w = &graph->values[gx_graph_value_id(graph, "w")];
    const gx_value *s = &graph->values[gx_graph_value_id(graph, "s")];

    assert_int_equal(w->fan_in, 5);
    assert_int_equal(w->fan_out, 4);
    assert_int_equal(s->fan_in, 5);
    assert_int_equal(s->fan_out, 4);
    test_walk_free(&model);
}

/* A shared weight's fans are those of the matrix. */
static void fans_are_of_the_last_two_dimensions(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [9, 3, 5]}\n  t: {shape: [9, 3, 4]}\nparams:\n"
             "  w: {shape: [9, 5, 4], init: he_normal}\n  s: {shape: [4]}\nops:\n"
             "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: s}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, 1);
    const gx_graph *graph = model.graph;
    const gx_value *w = &graph->values[gx_graph_value_id(graph, "w")];
    const gx_value *s = &graph->values[gx_graph_value_id(graph, "s")];

    assert_int_equal(w->fan_in, 5);
    assert_int_equal(w->fan_out, 4);
    assert_int_equal(s->fan_in, 5);
    assert_int_equal(s->fan_out, 4);
    test_walk_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_becomes_as_few_ops_as_it_can),
        cmocka_unit_test(wide_rows_need_an_op_behind_an_epilogue_alone),
        cmocka_unit_test(with_beta_0_c_is_not_read),
        cmocka_unit_test(gemm_bwd_makes_what_is_derived),
        cmocka_unit_test(the_gradient_of_a_shared_weight_is_one_product),
        cmocka_unit_test(what_is_not_used_has_no_gradient),
        cmocka_unit_test(costs_are_of_what_is_used),
        cmocka_unit_test(fans_are_of_what_is_used),
        cmocka_unit_test(fans_are_of_the_last_two_dimensions),
    };

    return cmocka_run_group_tests_name("gemm_parts", tests, NULL, NULL);
}
