/* The order of the nodes, data first: what stands where, and that a step stays the same.
 */
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "exec_model.h"
#include "select.h"
#include "support.h"
#include "support_plan.h"

#define SIZES                                             \
    "gexec: 1\nname: ordered\nprecision: f32\n"           \
    "dims: {batch: 6, width: 5}\n"                        \
    "inputs: {x: {shape: [batch, width], init: normal}, " \
    "t: {shape: [batch, width], init: normal}}\n"
#define LAYERS                                                                      \
    "params: {w1: {shape: [width, width], init: he_normal}, b1: {shape: [width]}, " \
    "w2: {shape: [width, width], init: he_normal}, b2: {shape: [width]}, "          \
    "w3: {shape: [width, width], init: he_normal}, b3: {shape: [width]}}\n"         \
    "ops:\n  - {op: gemm, name: a, a: x, b: w1, epilogue: {bias: b1, act: relu}}\n" \
    "  - {op: gemm, name: b, a: a, b: w2, epilogue: {bias: b2, act: gelu_tanh}}\n"  \
    "  - {op: gemm, name: y, a: b, b: w3, epilogue: {bias: b3}}\n"                  \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss, y]\n"
#define SHARED                                                                     \
    "params: {w: {shape: [width, width], init: he_normal}, b: {shape: [width]}}\n" \
    "ops:\n  - {op: gemm, name: a, a: x, b: w, epilogue: {bias: b, act: relu}}\n"  \
    "  - {op: gemm, name: b1, a: a, b: w, epilogue: {bias: b, act: relu}}\n"       \
    "  - {op: gemm, name: c, a: b1, b: w, epilogue: {bias: b}}\n"                  \
    "  - {op: add, name: y, a: c, b: a}\n"                                         \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss, y]\n"

static const char plain[] = SIZES LAYERS "optimizer: {adamw: {lr: 1.0e-2}}\n";
static const char evaluated[] =
    SIZES "params: {w: {shape: [width, width], init: he_normal}}\n"
          "ops:\n  - {op: gemm, name: y, a: x, b: w}\n"
          "  - {op: mse, name: loss, x: y, target: t}\noutputs: [loss]\n";

/* What an optimizer and its company add to the backward pass and behind it. */
static const char *const models[] = {
    plain,
    SIZES SHARED "optimizer: {adamw: {lr: 1.0e-2}}\n",
    SIZES LAYERS "optimizer: {adamw: {lr: 1.0e-2}, accumulate: 2}\n",
    SIZES LAYERS "optimizer: {adamw: {lr: 1.0e-2}, clip_norm: 0.5}\n",
    SIZES SHARED "optimizer: {sgd: {lr: 1.0e-2}, accumulate: 2, "
                 "clip_norm: 0.5, loss_scale: {dynamic: {}}}\n",
    SIZES LAYERS "optimizer: {adamw: {lr: 1.0e-2}, schedule: {cosine: {steps: 9}}}\n",
};

static const char *const files[] = {
    "graphs/examples/deep_narrow.yaml",  "graphs/examples/digits_mlp.yaml",
    "graphs/examples/encoder_copy.yaml", "graphs/examples/handwritten_backward.yaml",
    "graphs/examples/mnist_mlp.yaml",    "graphs/examples/wide.yaml",
};

static gx_graph *parse(const char *text)
{
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(
        gx_graph_parse(text, strlen(text), "model.yaml", NULL, NULL, &graph, NULL, &err),
        &err);
    return graph;
}

static gx_graph *load(const char *path)
{
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(gx_graph_load(path, NULL, &graph, NULL, &err), &err);
    return graph;
}

static int32_t *sort(const gx_graph *graph, bool *differs)
{
    int32_t *order = malloc((graph->n_nodes + 1) * sizeof *order);
    gx_error err = { 0 };

    assert_non_null(order);
    assert_ok(gx_data_first(graph, order, differs, &err), &err);
    return order;
}

/* --- what stands where --- */

static void data_gradients_stand_together_ahead_of_the_others(void **state)
{
    static const char *const expected[] = {
        "loss.bwd",   "loss",         "y.bwd.data", "b.bwd.act",
        "b.bwd.data", "a.bwd.act",    "y.bwd.bias", "y.bwd.weight",
        "b.bwd.bias", "b.bwd.weight", "a.bwd.bias", "a.bwd.weight",
    };
    gx_graph *graph = parse(plain);
    bool differs;
    int32_t *order = sort(graph, &differs);
    size_t first = 0;

    (void)state;
    assert_true(differs);
    while (graph->nodes[first].phase != GX_PHASE_BACKWARD)
        first++;
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_string_equal(graph->nodes[order[first + i]].name, expected[i]);
    assert_true(graph->nodes[first + ARRAY_SIZE(expected)].phase > GX_PHASE_BACKWARD);
    free(order);
    gx_graph_free(graph);
}

static void without_a_backward_pass_nothing_moves(void **state)
{
    gx_graph *graphs[] = { parse(evaluated), load("graphs/examples/inference.yaml") };

    (void)state;
    for (size_t g = 0; g < ARRAY_SIZE(graphs); g++) {
        bool differs;
        int32_t *order = sort(graphs[g], &differs);

        assert_false(differs);
        for (size_t i = 0; i < graphs[g]->n_nodes; i++)
            assert_int_equal(order[i], i);
        free(order);
        gx_graph_free(graphs[g]);
    }
}

/* --- what depends on what --- */

/* What has happened to a value so far: who wrote it last, and who has read it since. */
typedef struct history {
    int64_t writer;   /* node + 1 */
    uint64_t readers; /* a sum of marks, in whatever order they read */
} history;

static uint64_t mark_of(int32_t node)
{
    uint64_t x = ((uint64_t)node + 1) * UINT64_C(0x9e3779b97f4a7c15);

    return (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* What each node finds, by node and operand, when they run in this order (NULL: as they
 * stand): what wrote it and, where the node writes, what has read it. */
static history *found_by(const gx_graph *graph, const int32_t *order)
{
    history *found = calloc(graph->n_nodes * GX_MAX_ARGS + 1, sizeof *found);
    history *now = calloc(graph->n_values + 1, sizeof *now);

    assert_non_null(found);
    assert_non_null(now);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const int32_t n = order ? order[i] : (int32_t)i;
        const gx_node *node = &graph->nodes[n];
        int arg = 0;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (!gx_is_tensor_field(field))
                continue;
            const int32_t id = node->arg[arg];
            history *at = &found[(size_t)n * GX_MAX_ARGS + (size_t)arg++];

            if (id < 0)
                continue;
            at->writer = now[id].writer;
            if (field->kind != GX_FIELD_IN) {
                at->readers = now[id].readers;
                now[id] = (history){ .writer = n + 1 };
            } else {
                now[id].readers += mark_of(n);
            }
        }
    }
    free(now);
    return found;
}

static void check_order(const gx_graph *graph)
{
    bool differs;
    int32_t *order = sort(graph, &differs);
    history *before = found_by(graph, NULL), *after = found_by(graph, order);
    bool *seen = calloc(graph->n_nodes + 1, sizeof *seen);
    size_t n_falls = 0;

    assert_non_null(seen);
    assert_true(differs);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        assert_in_range(order[i], 0, graph->n_nodes - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        if (graph->nodes[i].phase != GX_PHASE_BACKWARD)
            assert_int_equal(order[i], i);
        n_falls += i > 0 && order[i] < order[i - 1];
    }
    /* Those that stand first and those behind them are as they were among themselves. */
    assert_int_equal(n_falls, 1);
    assert_memory_equal(before, after, graph->n_nodes * GX_MAX_ARGS * sizeof *before);
    free(seen);
    free(after);
    free(before);
    free(order);
}

static void what_depends_on_what_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
        gx_graph *graph = parse(models[i]);

        check_order(graph);
        gx_graph_free(graph);
    }
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        gx_graph *graph = load(files[i]);

        check_order(graph);
        gx_graph_free(graph);
    }
}

/* 0 makes y, 1 its gradient. Nothing goes on from 2, 3 and 6; but 2 reads what 4 updates,
 * and 5 goes on from that. */
static void a_node_does_not_pass_one_that_changes_what_it_reads(void **state)
{
    static const int32_t expected[] = { 0, 1, 2, 4, 5, 3, 6 };
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 3);
    const int32_t kept = test_value(t, GX_VALUE_STATE, 3);
    int32_t made[6];
    bool differs;
    int32_t *order;

    (void)state;
    for (int i = 0; i < 6; i++)
        made[i] = test_value(t, GX_VALUE_TEMP, 3);
    const int32_t y = made[0], dy = made[1], z = made[4];

    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, y, -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ y, -1, -1, dy, -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ dy, kept, -1, made[2], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ dy, x, -1, made[3], -1 });
    test_node(t, &test_update, GX_PHASE_BACKWARD, (int32_t[]){ kept, dy });
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ kept, -1, -1, z, -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD, (int32_t[]){ z, -1, -1, made[5], -1 });
    test_graph_finish(t);
    order = sort(&t->graph, &differs);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(order[i], expected[i]);
    free(order);
    test_graph_free(t);
}

/* --- the graph in another order --- */

static void the_graph_in_another_order_has_the_same_values(void **state)
{
    gx_graph *graph = parse(plain);
    gx_arena *arena = gx_arena_create();
    bool differs;
    int32_t *order = sort(graph, &differs);
    char *before = gx_graph_yaml(graph), *after;
    gx_graph *made;

    (void)state;
    assert_non_null(arena);
    made = gx_graph_permuted(graph, order, arena);
    assert_non_null(made);
    assert_int_equal(made->n_nodes, graph->n_nodes);
    assert_int_equal(made->n_values, graph->n_values);
    for (size_t i = 0; i < made->n_nodes; i++) {
        const gx_node *node = &made->nodes[i];

        assert_string_equal(node->name, graph->nodes[order[i]].name);
        assert_int_equal(gx_graph_node_id(made, node->name), i);
        assert_int_equal(gx_graph_node_id(graph, node->name), order[i]);
        assert_ptr_equal(node->arg, graph->nodes[order[i]].arg);
    }
    for (size_t i = 0; i < made->n_values; i++) {
        const int32_t producer = made->values[i].producer;

        assert_string_equal(made->values[i].name, graph->values[i].name);
        assert_int_equal(gx_graph_find(made, made->values[i].name), i);
        assert_int_equal(producer < 0 ? -1 : order[producer], graph->values[i].producer);
    }
    gx_graph_permuted_free(made);
    gx_graph_permuted_free(NULL);
    gx_arena_free(arena);
    after = gx_graph_yaml(graph);
    assert_string_equal(before, after);
    free(after);
    free(before);
    free(order);
    gx_graph_free(graph);
}

/* --- of a plan --- */

static void a_plan_goes_from_one_order_to_the_other(void **state)
{
    const gx_plan_options options = { .device = GX_CPU };
    gx_graph *graph = parse(plain);
    gx_error err = { 0 };
    gx_plan *plan;

    (void)state;
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_ptr_equal(gx_plan_graph(plan), graph);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DERIVED);
    assert_ok(gx_plan_use_order(plan, GX_ORDER_DATA_FIRST, &err), &err);
    const gx_graph *first = gx_plan_graph(plan);
    assert_ptr_not_equal(first, graph);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_ok(gx_plan_use_order(plan, GX_ORDER_DERIVED, &err), &err);
    assert_ptr_equal(gx_plan_graph(plan), graph);
    assert_ok(gx_plan_use_order(plan, GX_ORDER_DATA_FIRST, &err), &err);
    assert_ptr_equal(gx_plan_graph(plan), first); /* made once */
    gx_plan_free(plan);
    gx_graph_free(graph);
}

static void orders_have_names(void **state)
{
    gx_node_order order;

    (void)state;
    assert_string_equal(gx_node_order_name(GX_ORDER_AUTO), "auto");
    assert_null(gx_node_order_name((gx_node_order)3));
    assert_true(gx_node_order_find("derived", &order));
    assert_int_equal(order, GX_ORDER_DERIVED);
    assert_true(gx_node_order_find("data-first", &order));
    assert_int_equal(order, GX_ORDER_DATA_FIRST);
    assert_false(gx_node_order_find("auto", &order)); /* no plan has it */
}

/* --- a step --- */

typedef struct program {
    gx_state *state;
    gx_plan *plan;
    gx_exec *exec;
} program;

/* A program on the CPU, which itself would keep the nodes as derived. */
static program start(const gx_graph *graph, gx_node_order order)
{
    const gx_state_options state_options = { .device = GX_CPU, .seed = 5 };
    const gx_plan_options options = { .device = GX_CPU };
    program p;
    gx_error err = { 0 };

    assert_ok(gx_state_create(&graph, 1, &state_options, &p.state, &err), &err);
    assert_ok(gx_plan_create(graph, &options, &p.plan, &err), &err);
    assert_ok(gx_plan_use_order(p.plan, order, &err), &err);
    assert_ok(gx_select_reference(p.plan, &err), &err);
    assert_ok(gx_layout(p.plan, 1, true, sizeof(double), &err), &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    assert_ok(gx_exec_run(p.exec, GX_MODE_CPU, 5, &err), &err);
    return p;
}

static void stop(program *p)
{
    gx_exec_free(p->exec);
    gx_plan_free(p->plan);
    gx_state_free(p->state);
}

static void *read_value(const program *p, const gx_value_info *value, size_t *bytes)
{
    gx_tensor host = { .dtype = value->dtype, .rank = value->rank };
    gx_error err = { 0 };

    memcpy(host.dim, value->dim, sizeof host.dim);
    *bytes = (size_t)gx_count(&host) * gx_dtype_bytes(value->dtype);
    host.data = malloc(*bytes + 1);
    assert_non_null(host.data);
    assert_ok(gx_exec_read(p->exec, value->name, &host, &err), &err);
    return host.data;
}

/* Data first every gradient is kept until the weight gradient behind it has read it: what
 * lies in its memory too early shows as other numbers. */
static void a_step_gives_the_same_bits_in_both_orders(void **state)
{
    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(models); m++) {
        gx_graph *graph = parse(models[m]);
        program a = start(graph, GX_ORDER_DERIVED), b = start(graph, GX_ORDER_DATA_FIRST);
        size_t n_compared = 0;

        assert_ptr_not_equal(gx_plan_graph(b.plan), graph);
        assert_true(gx_plan_info_get(b.plan).arena_bytes >=
                    gx_plan_info_get(a.plan).arena_bytes);
        for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
            const gx_value_info value = gx_graph_value(graph, i);
            size_t bytes;

            if (value.kind != GX_VALUE_PARAM && value.kind != GX_VALUE_STATE &&
                !value.is_output)
                continue;
            void *first = read_value(&a, &value, &bytes);
            void *second = read_value(&b, &value, &bytes);

            if (memcmp(first, second, bytes) != 0)
                fail_msg("model %zu: %s is another", m, value.name);
            free(second);
            free(first);
            n_compared++;
        }
        assert_true(n_compared >= 6);
        stop(&b);
        stop(&a);
        gx_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_gradients_stand_together_ahead_of_the_others),
        cmocka_unit_test(without_a_backward_pass_nothing_moves),
        cmocka_unit_test(what_depends_on_what_stays),
        cmocka_unit_test(a_node_does_not_pass_one_that_changes_what_it_reads),
        cmocka_unit_test(the_graph_in_another_order_has_the_same_values),
        cmocka_unit_test(a_plan_goes_from_one_order_to_the_other),
        cmocka_unit_test(orders_have_names),
        cmocka_unit_test(a_step_gives_the_same_bits_in_both_orders),
    };

    return cmocka_run_group_tests_name("test_node_order", tests, NULL, NULL);
}
