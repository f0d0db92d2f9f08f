/* Which nodes an alternative may cover. */
#include <stdlib.h>
#include <string.h>

#include "epilogue.h"
#include "support_plan.h"
#include "support_walk.h"

static const char *const one[] = { "make", NULL };
static const char *const two[] = { "make", "bend", NULL };
static const char *const run[] = { "update", NULL };
static const char *const tail[] = { "bend", "update", NULL };

static const gx_alternative at_one = { .name = "one", .pattern = one };
static const gx_alternative at_two = { .name = "two", .pattern = two, .elides = true };
static const gx_alternative at_run = { .name = "run",
                                       .pattern = run,
                                       .repeat = GX_REPEAT_LAST };
static const gx_alternative at_tail = { .name = "tail",
                                        .pattern = tail,
                                        .repeat = GX_REPEAT_LAST };

/* make, bend, update, update, update, make */
static int set_up(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 3);
    const int32_t y = test_value(t, GX_VALUE_TEMP, 3);
    const int32_t z = test_value(t, GX_VALUE_TEMP, 3);
    const int32_t last = test_value(t, GX_VALUE_TEMP, 3);

    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, y, -1 });
    test_node(t, &test_bend, GX_PHASE_FORWARD, (int32_t[]){ y, y, -1, z, -1 });
    for (int i = 0; i < 3; i++) {
        const int32_t w = test_value(t, GX_VALUE_PARAM, 3);

        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, z });
    }
    test_node(t, &test_make, GX_PHASE_STEP, (int32_t[]){ z, -1, -1, last, -1 });
    test_graph_finish(t);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    test_graph_free(*state);
    return 0;
}

static void a_pattern_fits_by_names_in_order(void **state)
{
    const gx_graph *g = &((test_graph *)*state)->graph;

    assert_true(gx_match_pattern(g, &at_one, 0, 1));
    assert_false(gx_match_pattern(g, &at_one, 1, 1));
    assert_false(gx_match_pattern(g, &at_one, 0, 2));
    assert_true(gx_match_pattern(g, &at_two, 0, 2));
    assert_false(gx_match_pattern(g, &at_two, 0, 1));
    assert_false(gx_match_pattern(g, &at_two, 5, 2));
    assert_false(gx_match_pattern(g, &at_one, 6, 1));
    assert_false(gx_match_pattern(g, &at_one, -1, 1));
}

static void a_repeat_takes_the_whole_run_from_its_start(void **state)
{
    const gx_graph *g = &((test_graph *)*state)->graph;

    assert_int_equal(gx_match_length(g, &at_run, 2), 3);
    assert_int_equal(gx_match_length(g, &at_run, 3), 0);
    assert_int_equal(gx_match_length(g, &at_run, 1), 0);
    assert_int_equal(gx_match_length(g, &at_tail, 1), 4);
    assert_int_equal(gx_match_length(g, &at_two, 0), 2);
    assert_true(gx_match_pattern(g, &at_run, 2, 2));
    assert_false(gx_match_pattern(g, &at_run, 2, 4));
}

static void calls_hold_value_ids_and_mark_what_is_absent(void **state)
{
    const gx_graph *g = &((test_graph *)*state)->graph;
    gx_call calls[2];

    gx_match_calls(g, 0, 2, calls);
    assert_ptr_equal(calls[0].op, &test_make);
    assert_int_equal((uintptr_t)calls[0].arg[TEST_A].data, 1);
    assert_int_equal(calls[0].arg[TEST_B].rank, -1);
    assert_null(calls[0].arg[TEST_B].data);
    assert_ptr_equal(calls[0].arg[TEST_P].data, calls[1].arg[TEST_A].data);
    assert_int_equal(calls[1].arg[TEST_A].dim[0], 3);
    assert_false(gx_has(&calls[1], TEST_Q));
    assert_false(gx_has(&calls[1], GX_MAX_ARGS - 1));
}

static void only_what_stays_in_the_group_is_elided(void **state)
{
    test_graph *t = *state;
    bool elided[3 * GX_MAX_ARGS];

    gx_match_elided(&t->graph, 0, 2, elided);
    assert_true(elided[TEST_P]); /* y, read twice by one node */
    assert_false(elided[GX_MAX_ARGS + TEST_P]);
    gx_match_elided(&t->graph, 0, 1, elided);
    assert_false(elided[TEST_P]);
    gx_match_elided(&t->graph, 2, 1, elided);
    assert_false(elided[TEST_W]); /* a parameter */

    t->graph.values[1].is_output = true;
    gx_match_elided(&t->graph, 0, 2, elided);
    assert_false(elided[TEST_P]);
}

static void keys_tell_groups_apart_by_shape_type_and_connection(void **state)
{
    test_graph *t = *state;
    char a[GX_KEY_SIZE], b[GX_KEY_SIZE];
    uint64_t x[2], y[2];

    gx_site_key(&t->graph, 2, 1, a, x);
    gx_site_key(&t->graph, 3, 1, b, y);
    assert_string_equal(a, b);
    assert_memory_equal(x, y, sizeof x);

    t->graph.values[t->graph.nodes[3].arg[TEST_W]].dim[0] = 4;
    gx_site_key(&t->graph, 3, 1, b, y);
    assert_string_not_equal(a, b);

    gx_site_key(&t->graph, 0, 2, a, x);
    t->graph.nodes[1].arg[TEST_B] = t->graph.nodes[0].arg[TEST_A];
    gx_site_key(&t->graph, 0, 2, b, y);
    assert_string_not_equal(a, b); /* same shapes, other connections */

    t->graph.nodes[0].attr[0].r = 2;
    gx_site_key(&t->graph, 0, 2, a, x);
    assert_string_not_equal(a, b);
}

static void a_long_key_is_cut_and_still_tells_apart(void **state)
{
    test_graph *t = *state;
    char a[GX_KEY_SIZE], b[GX_KEY_SIZE];
    uint64_t x[2], y[2];
    int32_t w = -1;

    for (int i = 0; i < 40; i++) {
        w = test_value(t, GX_VALUE_PARAM, 1000000);
        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, 2 });
    }
    test_graph_finish(t);
    gx_site_key(&t->graph, 6, 40, a, x);
    t->graph.values[w].dtype = GX_BF16;
    gx_site_key(&t->graph, 6, 40, b, y);
    assert_string_not_equal(a, b);
    assert_true(x[0] != y[0] && x[1] != y[1]);
}

static const char *const body[] = { "make", "bend", "update", NULL };
static const gx_alternative at_both = { .name = "both",
                                        .pattern = body,
                                        .repeat = GX_REPEAT_BOTH };

/* make, bend, make, bend, ..., update, update, ...: n of each. */
static test_graph *pairs_and_updates(int n, int n_updates)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 3);
    int32_t last[2 * GX_MAX_REPEATS];

    for (int i = 0; i < n; i++) {
        const int32_t y = test_value(t, GX_VALUE_TEMP, 3);

        last[i] = test_value(t, GX_VALUE_TEMP, 3);
        test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ x, -1, -1, y, -1 });
        test_node(t, &test_bend, GX_PHASE_BACKWARD, (int32_t[]){ y, y, -1, last[i], -1 });
    }
    for (int i = 0; i < n_updates; i++) {
        const int32_t w = test_value(t, GX_VALUE_PARAM, 3);

        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, last[i % n] });
    }
    test_graph_finish(t);
    return t;
}

static void both_runs_are_taken_whole(void **state)
{
    (void)state;
    for (int n = 1; n <= GX_MAX_REPEATS + 1; n += GX_MAX_REPEATS / 4) {
        test_graph *t = pairs_and_updates(n, 3);
        const gx_graph *g = &t->graph;
        const int32_t whole = n <= GX_MAX_REPEATS ? 2 * n + 3 : 0;

        assert_int_equal(gx_match_length(g, &at_both, 0), whole);
        assert_int_equal(gx_match_covers(g, &at_both, 0, 2 * n + 3), whole > 0);
        assert_int_equal(gx_match_pattern(g, &at_both, 0, 2 * n + 3), whole > 0);
        assert_false(gx_match_pattern(g, &at_both, 0, 2 * n + 2));
        assert_int_equal(gx_match_length(g, &at_both, 1), 0);
        if (n > 1) /* in the middle */
            assert_int_equal(gx_match_length(g, &at_both, 2), 0);
        test_graph_free(t);
    }
    test_graph *t = pairs_and_updates(2, 0);
    assert_int_equal(gx_match_length(&t->graph, &at_both, 0), 0);
    test_graph_free(t);
}

/* Which update takes which gradient, and what is read elsewhere, in the longest group. */
static void a_key_of_both_runs_knows_its_connections(void **state)
{
    enum { N = GX_MAX_REPEATS };
    test_graph *t = pairs_and_updates(N, N);
    gx_node *update = &t->graph.nodes[2 * N];
    char a[GX_KEY_SIZE], b[GX_KEY_SIZE];
    uint64_t x[2], y[2];

    (void)state;
    gx_site_key(&t->graph, 0, 3 * N, a, x);
    const int32_t gradient = update[N - 1].arg[TEST_G];
    update[N - 1].arg[TEST_G] = update[N - 2].arg[TEST_G];
    update[N - 2].arg[TEST_G] = gradient;
    gx_site_key(&t->graph, 0, 3 * N, b, y);
    assert_string_not_equal(a, b);
    t->graph.values[gradient].is_output = true;
    gx_site_key(&t->graph, 0, 3 * N, a, x);
    assert_string_not_equal(a, b);
    test_graph_free(t);
}

/* --- what products alone read --- */

#define TWO(act, more)                                                                   \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  x: {shape: [8, 16], init: normal}\n"   \
    "  t: {shape: [8, 16], dtype: f32, init: normal}\nparams:\n"                         \
    "  w: {shape: [16, 16], init: he_normal}\n  v: {shape: [16, 16], init: he_normal}\n" \
    "ops:\n  - {op: gemm, name: h, a: x, b: w, epilogue: {act: " act "}}\n"              \
    "  - {op: gemm, name: y, a: h, b: v}\n  - {op: mse, name: loss, x: y, target: t}\n"  \
    "backward: loss\noutputs: [loss" more "]\noptimizer: {sgd: {lr: 0.1}}\n"

/* Whether the epilogue that makes h may store it as products round it. */
static bool rounds_h(const char *text, const char *precision)
{
    test_walk model = test_walk_parse(text, precision, GX_TRAIN, 1);
    const gx_graph *graph = model.graph;
    gx_call *calls = calloc(graph->n_nodes, sizeof *calls);
    bool rounds = false;
    int n_found = 0;

    assert_non_null(calls);
    gx_match_calls(graph, 0, (int32_t)graph->n_nodes, calls);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const bool is_h = strcmp(calls[i].op->name, "epilogue") == 0;

        rounds |= is_h && calls[i].to_tf32 == 1u << GX_EPILOGUE_OUT;
        if (is_h) /* not what is kept for the way back */
            assert_int_equal(calls[i].to_tf32 & ~(1u << GX_EPILOGUE_OUT), 0);
        n_found += is_h;
    }
    assert_int_equal(n_found, 1);
    free(calls);
    test_walk_free(&model);
    return rounds;
}

static void what_products_alone_read_may_be_rounded(void **state)
{
    (void)state;
    assert_true(rounds_h(TWO("gelu_tanh", ""), "tf32"));
    assert_false(rounds_h(TWO("gelu_tanh", ""), "f32"));
    assert_false(rounds_h(TWO("gelu_tanh", ""), "bf16"));
    /* The caller reads it, or the way back through the activation does. */
    assert_false(rounds_h(TWO("gelu_tanh", ", h"), "tf32"));
    assert_false(rounds_h(TWO("relu", ""), "tf32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_runs_are_taken_whole),
        cmocka_unit_test(what_products_alone_read_may_be_rounded),
        cmocka_unit_test(a_key_of_both_runs_knows_its_connections),
        cmocka_unit_test_setup_teardown(a_pattern_fits_by_names_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_repeat_takes_the_whole_run_from_its_start,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_hold_value_ids_and_mark_what_is_absent,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_what_stays_in_the_group_is_elided, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            keys_tell_groups_apart_by_shape_type_and_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_key_is_cut_and_still_tells_apart, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
