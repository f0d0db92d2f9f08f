/* Views in the layout: a reshape between two ops has its input's memory for as long as
 * either is needed, no place in the order, and no launch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec_model.h"
#include "support_plan.h"

static const gx_field view_fields[] = {
    { .name = "x", .kind = GX_FIELD_IN },
    { .name = "out", .kind = GX_FIELD_OUT },
    { .name = NULL },
};
static const gx_op view_op = {
    .name = "view", .fields = view_fields, .view = true, .tolerance = { 1, 1, 1 }
};

static int32_t add_make(test_graph *t, gx_phase phase, int32_t a, int32_t b)
{
    const int32_t out = test_value(t, GX_VALUE_TEMP, 100);

    test_node(t, &test_make, phase, (int32_t[]){ a, b, -1, out, -1 });
    return out;
}

static int32_t add_view(test_graph *t, gx_phase phase, int32_t x)
{
    const int32_t out = test_value(t, GX_VALUE_TEMP, 100);

    test_node(t, &view_op, phase, (int32_t[]){ x, out });
    return out;
}

static void lay_out(test_graph *t, int n_lanes, bool reuse)
{
    gx_error err = { 0 };

    test_graph_finish(t);
    for (size_t i = 0; i < t->graph.n_nodes; i++)
        test_unit(t, 1, NULL);
    assert_ok(gx_layout(&t->plan, n_lanes, reuse, 0, &err), &err);
}

static int64_t offset(const test_graph *t, int32_t value)
{
    return gx_plan_slot(&t->plan, (size_t)value).offset;
}

static bool is_view(const test_graph *t, size_t unit)
{
    return strcmp(gx_plan_unit(&t->plan, unit).alternative, "view") == 0;
}

/* Nothing that is made while a view is still to be read gets its memory. */
static void a_view_has_its_home_s_memory(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    const int32_t h = add_make(t, GX_PHASE_FORWARD, x, -1);
    const int32_t v = add_view(t, GX_PHASE_FORWARD, h);
    const int32_t w = add_view(t, GX_PHASE_FORWARD, v);
    const int32_t a = add_make(t, GX_PHASE_FORWARD, x, -1);
    const int32_t b = add_make(t, GX_PHASE_FORWARD, w, a);
    const int32_t c = add_make(t, GX_PHASE_FORWARD, b, -1);

    (void)state;
    lay_out(t, 1, true);
    assert_int_equal(offset(t, v), offset(t, h));
    assert_int_equal(offset(t, w), offset(t, h));
    assert_int_not_equal(offset(t, a), offset(t, h));
    assert_int_not_equal(offset(t, b), offset(t, h));
    assert_int_equal(offset(t, c), offset(t, h)); /* it is free by then */
    assert_true(is_view(t, 1) && is_view(t, 2) && !is_view(t, 0) && !is_view(t, 3));
    for (size_t u = 1; u < 3; u++)
        assert_int_equal(gx_planned_launches(&t->plan.units[u]), 0);

    lay_out(t, 1, false); /* every value by itself */
    assert_int_not_equal(offset(t, v), offset(t, h));
    assert_int_not_equal(offset(t, w), offset(t, v));
    assert_false(is_view(t, 1));
    test_graph_free(t);
}

static void a_view_that_is_an_output_keeps_its_memory(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    const int32_t h = add_make(t, GX_PHASE_FORWARD, x, -1);
    const int32_t v = add_view(t, GX_PHASE_FORWARD, h);
    int32_t last = add_make(t, GX_PHASE_FORWARD, x, -1);

    (void)state;
    t->graph.values[v].is_output = true;
    for (int i = 0; i < 4; i++) {
        last = add_make(t, GX_PHASE_FORWARD, last, -1);
        lay_out(t, 1, true);
        assert_true(is_view(t, 1));
        assert_int_equal(offset(t, v), offset(t, h));
        assert_int_not_equal(offset(t, last), offset(t, h));
    }
    test_graph_free(t);
}

/* A parameter may be updated before its view is read, an input written before an output
 * is. */
static void what_may_change_is_copied(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    const int32_t p = test_value(t, GX_VALUE_PARAM, 100);
    const int32_t v = add_view(t, GX_PHASE_FORWARD, p);
    const int32_t out = add_view(t, GX_PHASE_FORWARD, x);
    const int32_t inner = add_view(t, GX_PHASE_FORWARD, x);
    const int32_t outer = add_view(t, GX_PHASE_FORWARD, inner);

    (void)state;
    add_make(t, GX_PHASE_FORWARD, v, inner);
    t->graph.values[out].is_output = true;
    t->graph.values[outer].is_output = true;
    lay_out(t, 1, true);
    assert_false(is_view(t, 0));
    assert_false(is_view(t, 1));
    assert_true(is_view(t, 2));
    assert_false(is_view(t, 3));
    assert_int_equal(offset(t, inner), offset(t, x));
    assert_int_not_equal(offset(t, out), offset(t, x));
    assert_int_not_equal(offset(t, outer), offset(t, x));
    test_graph_free(t);
}

/* A weight's gradient on lane 1 reads a view of what lane 0 has made: it waits for that,
 * and lane 0 does not write there before it is done. */
static void lanes_wait_for_the_home(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    const int32_t p = test_value(t, GX_VALUE_PARAM, 100);
    const int32_t d = add_make(t, GX_PHASE_BACKWARD, x, -1); /* unit 0, on the path */
    const int32_t v = add_view(t, GX_PHASE_BACKWARD, d);
    const int32_t g = add_make(t, GX_PHASE_BACKWARD, v, -1); /* unit 2, lane 1 */
    const int32_t e = add_make(t, GX_PHASE_BACKWARD, v, -1); /* unit 3, on the path */
    const int32_t w = add_view(t, GX_PHASE_BACKWARD, e);
    const int32_t f = add_make(t, GX_PHASE_BACKWARD, w, -1); /* unit 5 */
    const int32_t h = add_make(t, GX_PHASE_BACKWARD, f, -1); /* unit 6, lane 1 */

    (void)state;
    test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ p, g });
    test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ p, h });
    lay_out(t, 2, true);

    const gx_unit *units = t->plan.units;

    assert_int_equal(t->plan.n_lanes, 2);
    assert_int_equal(units[0].lane, 0);
    assert_int_equal(units[2].lane, 1);
    assert_int_equal(units[3].lane, 0);
    assert_int_equal(units[5].lane, 0);
    assert_int_equal(units[2].n_waits, 1);
    assert_int_equal(units[2].waits[0], 0);
    for (size_t u = 1; u < 5; u += 3) {
        assert_true(units[u].is_view);
        assert_int_equal(units[u].lane, 0);
        assert_int_equal(units[u].n_waits, 0);
        assert_false(units[u].signals);
    }
    /* d lives until unit 2 has ended, and nothing on lane 0 is ordered behind that */
    assert_int_not_equal(offset(t, e), offset(t, d));
    assert_int_not_equal(offset(t, f), offset(t, d));
    test_graph_free(t);
}

/* --- whole programs: with and without views the same bits --- */

enum { VALUES = 14, SIZE = 12 };

static char *random_model(test_random *random)
{
    static const char *const shapes[] = { "[12]", "[3, 4]", "[2, 3, 2]", "[12, 1]" };
    char *text = calloc(1, 4000);
    size_t used;

    assert_non_null(text);
    used = (size_t)sprintf(text, "gexec: 1\nname: m\n"
                                 "inputs:\n  v0: {shape: [12], init: normal}\n"
                                 "params:\n  v1: {shape: [12], init: normal}\nops:\n");
    for (int i = 2; i < VALUES; i++) {
        const int x = (int)test_random_int(random, i > 5 ? i - 4 : 0, i - 1);
        const int y = (int)test_random_int(random, 0, i - 1);

        switch (test_random_int(random, 0, 3)) {
        case 0: /* two views in one shape, added */
            used +=
                (size_t)sprintf(text + used,
                                "  - {op: reshape, name: a%d, x: v%d, shape: [4, 3]}\n"
                                "  - {op: reshape, name: b%d, x: v%d, shape: [4, 3]}\n"
                                "  - {op: add, name: v%d, a: a%d, b: b%d}\n",
                                i, x, i, y, i, i, i);
            break;
        case 1:
            used += (size_t)sprintf(text + used,
                                    "  - {op: gelu_tanh, name: v%d, x: v%d}\n", i, x);
            break;
        default:
            used += (size_t)sprintf(text + used,
                                    "  - {op: reshape, name: v%d, x: v%d, shape: %s}\n",
                                    i, x, shapes[test_random_int(random, 0, 3)]);
        }
    }
    used += (size_t)sprintf(text + used, "outputs: [v%d", VALUES - 1);
    for (int i = 2; i < VALUES - 1; i++) {
        if (test_random_int(random, 0, 4) == 0)
            used += (size_t)sprintf(text + used, ", v%d", i);
    }
    sprintf(text + used, "]\n");
    return text;
}

/* The outputs one after the other after two steps, the input written anew before each;
 * with `bound` the input lives in memory of the caller's. */
static size_t run(const gx_graph *graph, bool reuse, bool bound, double *outputs)
{
    const gx_plan_options plan_options = { .device = GX_CPU, .reuse_off = !reuse };
    const gx_state_options state_options = { .device = GX_CPU, .seed = 3, .exact = true };
    double x[SIZE], *own = aligned_alloc(256, 256);
    gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { SIZE }, .data = x };
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
    gx_error err = { 0 };
    size_t n = 0;

    assert_non_null(own);
    assert_ok(gx_plan_create(graph, &plan_options, &plan, &err), &err);
    assert_ok(gx_state_create(&graph, 1, &state_options, &state, &err), &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    if (bound)
        assert_ok(gx_exec_bind(exec, "v0", own, &err), &err);
    for (size_t i = 0; i < graph->n_values; i++)
        assert_ptr_equal(exec->value_data[i], exec->value_data[plan->home[i]]);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < SIZE; i++)
            x[i] = 0.25 * i - step;
        assert_ok(gx_exec_write(exec, "v0", &host, &err), &err);
        assert_ok(gx_exec_run(exec, GX_MODE_CPU, 1, &err), &err);
        /* what is written now is for the next step: outputs stay what they are */
        x[0] = 1000;
        assert_ok(gx_exec_write(exec, "v0", &host, &err), &err);
        for (size_t i = 0; i < graph->n_values; i++) {
            const gx_value *value = &graph->values[i];
            gx_tensor out = { .dtype = GX_F64, .rank = value->rank, .data = outputs + n };

            if (!value->is_output)
                continue;
            memcpy(out.dim, value->dim, sizeof out.dim);
            assert_ok(gx_exec_read(exec, value->name, &out, &err), &err);
            n += SIZE;
        }
    }
    gx_exec_free(exec);
    gx_state_free(state);
    gx_plan_free(plan);
    free(own);
    return n;
}

static void views_change_no_result(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < 200; draw++) {
        static double with[2 * VALUES * SIZE], without[2 * VALUES * SIZE];
        char *text = random_model(&random);
        gx_graph *graph;
        gx_error err = { 0 };

        assert_ok(gx_graph_parse(text, strlen(text), "m", ".", NULL, &graph, NULL, &err),
                  &err);
        const size_t n = run(graph, false, false, without);

        for (int bound = 0; bound < 2; bound++) {
            assert_int_equal(run(graph, true, bound, with), n);
            if (memcmp(with, without, n * sizeof *with) != 0) {
                print_error("%s\n", text);
                fail();
            }
        }
        gx_graph_free(graph);
        free(text);
    }
}

/* A view runs nowhere, so that it is read is nothing; what is made of it is. */
static void the_pass_goes_on_from_what_a_view_is_used_for(void **state)
{
    (void)state;
    for (int on_path = 0; on_path < 2; on_path++) {
        test_graph *t = test_graph_new();
        const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
        const int32_t w = test_value(t, GX_VALUE_PARAM, 100);
        const int32_t a = add_make(t, GX_PHASE_BACKWARD, x, -1);
        const int32_t v = add_view(t, GX_PHASE_BACKWARD, a);

        if (on_path)
            add_make(t, GX_PHASE_BACKWARD, v, -1);
        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, v });
        lay_out(t, 2, true);
        assert_true(is_view(t, 1));
        assert_int_equal(gx_plan_unit(&t->plan, 0).lane, !on_path);
        test_graph_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pass_goes_on_from_what_a_view_is_used_for),
        cmocka_unit_test(a_view_has_its_home_s_memory),
        cmocka_unit_test(a_view_that_is_an_output_keeps_its_memory),
        cmocka_unit_test(what_may_change_is_copied),
        cmocka_unit_test(lanes_wait_for_the_home),
        cmocka_unit_test(views_change_no_result),
    };

    return cmocka_run_group_tests_name("layout_views", tests, NULL, NULL);
}
