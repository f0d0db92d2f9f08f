/* Repeats: unrolled, with local names and carried tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_model.h"

#define HEAD "gexec: 1\ndims: {b: 4, n: 3}\ninputs: {x: {shape: [b, n]}}\n"

static void a_repeat_is_unrolled(void **state)
{
    gx_graph *graph = test_model_good(
        HEAD "ops:\n  - repeat:\n      name: blk\n      count: n\n      carry: {h: x}\n"
             "      params: {w: {shape: [n, n], init: ones}}\n      ops:\n"
             "        - {op: gemm, name: fc, a: h, b: w}\n"
             "        - {op: add, name: s, a: fc, b: h, out: h}\n"
             "  - {op: gemm, name: last, a: h, b: blk.1.w}\noutputs: [h, blk.0.fc]\n"
             "backward: h\n");

    (void)state;
    assert_int_equal(graph->n_nodes, 7);
    assert_string_equal(test_field(graph, "blk.0.fc", "a"), "x");
    assert_string_equal(test_field(graph, "blk.0.fc", "b"), "blk.0.w");
    assert_string_equal(test_field(graph, "blk.0.fc", "out"), "blk.0.fc");
    assert_string_equal(test_field(graph, "blk.0.s", "b"), "x");
    assert_string_equal(test_field(graph, "blk.0.s", "out"), "blk.0.h");
    assert_string_equal(test_field(graph, "blk.1.fc", "a"), "blk.0.h");
    assert_string_equal(test_field(graph, "blk.2.s", "b"), "blk.1.h");
    assert_string_equal(test_field(graph, "last", "a"), "blk.2.h");
    assert_string_equal(test_field(graph, "last", "b"), "blk.1.w");
    assert_string_equal(graph->outputs[0], "blk.2.h");
    assert_string_equal(graph->outputs[1], "blk.0.fc");
    assert_string_equal(graph->backward, "blk.2.h");
    assert_true(gx_graph_find(graph, "blk.2.w") >= 0);
    gx_graph_free(graph);
}

static void a_tensor_may_be_carried_from_itself(void **state)
{
    gx_graph *graph = test_model_good(
        HEAD
        "ops:\n  - {op: relu, name: h, x: x}\n"
        "  - repeat: {name: a, count: 2, carry: {h: h}, ops: [{op: relu, name: r, x: h, "
        "out: h}]}\n"
        "  - repeat: {name: none, count: 0, carry: {h: h, z: x}, ops: [{op: relu, name: "
        "r, "
        "x: h, out: h}]}\n"
        "  - {op: add, name: end, a: h, b: z}\n");

    (void)state;
    assert_string_equal(test_field(graph, "a.0.r", "x"), "h");
    assert_string_equal(test_field(graph, "a.1.r", "x"), "a.0.h");
    assert_string_equal(test_field(graph, "end", "a"), "a.1.h");
    assert_string_equal(test_field(graph, "end", "b"), "x");
    gx_graph_free(graph);
}

static void repeats_nest(void **state)
{
    gx_graph *graph = test_model_good(
        HEAD "ops:\n  - repeat:\n      name: o\n      count: 2\n      carry: {h: x}\n    "
             "  ops:\n"
             "        - {op: relu, name: first, x: h}\n"
             "        - repeat:\n            name: i\n            count: 2\n"
             "            carry: {h: first}\n"
             "            params: {w: {shape: [1]}}\n"
             "            ops:\n"
             "              - {op: add, name: s, a: h, b: w, out: h}\n"
             "              - {op: add, name: outer, a: first, b: x}\n"
             "        - {op: gemm, name: end, a: h, b: i.0.w}\n");

    (void)state;
    assert_int_equal(graph->n_nodes, 12);
    assert_string_equal(test_field(graph, "o.0.i.0.s", "a"), "o.0.first");
    assert_string_equal(test_field(graph, "o.0.i.1.s", "a"), "o.0.i.0.h");
    assert_string_equal(test_field(graph, "o.0.i.1.s", "b"), "o.0.i.1.w");
    assert_string_equal(test_field(graph, "o.0.i.1.outer", "a"), "o.0.first");
    assert_string_equal(test_field(graph, "o.0.i.1.outer", "b"), "x");
    assert_string_equal(test_field(graph, "o.0.end", "a"), "o.0.i.1.h");
    assert_string_equal(test_field(graph, "o.0.end", "b"), "o.0.i.0.w");
    assert_string_equal(test_field(graph, "o.1.first", "x"), "o.0.i.1.h");
    gx_graph_free(graph);
}

static void repeats_are_checked(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "{count: 1, ops: [{op: relu, name: r, x: x}]}", "a repeat needs \"name\"" },
        { "{name: b, ops: [{op: relu, name: r, x: x}]}", "a repeat needs \"count\"" },
        { "{name: b, count: 1}", "a repeat needs \"ops\"" },
        { "{name: b, count: -1, ops: [{op: relu, name: r, x: x}]}",
          "count is 0 or more" },
        { "{name: b, count: many, ops: [{op: relu, name: r, x: x}]}", "no dim \"many\"" },
        { "{name: b, count: 1, ops: []}", "a repeat of no ops" },
        { "{name: b, count: 1, ops: {}}", "expected a list of ops, found a map" },
        { "{name: b, count: 2, carry: {h: x}, ops: [{op: relu, name: r, x: h}]}",
          "no op of repeat \"b\" makes the carried tensor \"h\"" },
        { "{name: b, count: 2, carry: {h: z}, ops: [{op: relu, name: h, x: h}]}",
          "there is no tensor \"z\" before this repeat" },
        { "{name: b, count: 2, carry: {x: k}, ops: [{op: relu, name: x, x: x}]}",
          "name \"x\" is taken" },
        { "{name: x, count: 1, ops: [{op: relu, name: r, x: x}]}",
          "name \"x\" is taken" },
        { "{name: b, count: 1000001, ops: [{op: relu, name: r, x: x}]}", "limit on ops" },
        { "{name: b, count: 9223372036854775807, ops: [{op: relu}]}", "limit on ops" },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(text, sizeof text,
                 HEAD "params: {k: {shape: [1]}}\nops:\n  - repeat: %s\n", bad[i].text);
        assert_mistake(text, bad[i].message);
    }
}

static void names_that_grow_too_long_are_refused(void **state)
{
    char text[1000];
    char name[GX_LIMIT_NAME];

    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text,
             HEAD
             "ops:\n  - repeat: {name: %s, count: 1, ops: [{op: relu, name: r, x: x}]}\n",
             name);
    assert_mistake(text, "longer than 160 bytes (limit on names)");
}

/* Slow only if something is not linear: each name is looked up among all. */
static void a_hundred_thousand_ops_are_read(void **state)
{
    enum { N = 50000 };
    gx_graph *graph = test_model_good(
        HEAD
        "ops:\n  - repeat:\n      name: blk\n      count: 50000\n      carry: {h: x}\n"
        "      params: {w: {shape: [n, n], init: ones}}\n      ops:\n"
        "        - {op: gemm, name: fc, a: h, b: w}\n"
        "        - {op: relu, name: act, x: fc, out: h}\n");

    (void)state;
    assert_int_equal(graph->n_nodes, 2 * N);
    assert_string_equal(test_field(graph, "blk.49999.fc", "a"), "blk.49998.h");
    assert_int_equal(gx_graph_find(graph, "blk.49999.w"), N);
    gx_graph_free(graph);
}

static void as_many_ops_may_be_written_out(void **state)
{
    enum { N = 20000, LINE = 80 };
    char *text = malloc((size_t)(N + 4) * LINE);
    size_t at = (size_t)sprintf(text, HEAD "ops:\n  - {op: relu, name: r0, x: x}\n");
    gx_graph *graph;

    (void)state;
    for (int i = 1; i < N; i++)
        at += (size_t)sprintf(text + at, "  - {op: relu, name: r%d, x: r%d}\n", i, i - 1);
    graph = test_model_good(text);
    assert_int_equal(graph->n_nodes, N);
    assert_string_equal(test_field(graph, "r19999", "x"), "r19998");
    gx_graph_free(graph);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeat_is_unrolled),
        cmocka_unit_test(a_tensor_may_be_carried_from_itself),
        cmocka_unit_test(repeats_nest),
        cmocka_unit_test(repeats_are_checked),
        cmocka_unit_test(names_that_grow_too_long_are_refused),
        cmocka_unit_test(a_hundred_thousand_ops_are_read),
        cmocka_unit_test(as_many_ops_may_be_written_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
