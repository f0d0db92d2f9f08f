/* Views on the simulated card: a captured step has no node for them, where an input lives
 * now included, and a copy stays one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"
#include "plan.h"
#include "support.h"

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

static program open_program(const char *text)
{
    const gx_plan_options options = { .no_measure = true, .lanes = 1 };
    program p = { NULL, NULL, NULL, NULL };
    gx_error err = { 0 };

    fake_begin();
    assert_ok(gx_graph_parse(text, strlen(text), "m", ".", NULL, &p.graph, NULL, &err),
              &err);
    const gx_graph *const list[] = { p.graph };

    assert_ok(gx_plan_create(p.graph, &options, &p.plan, &err), &err);
    assert_ok(gx_state_create(list, 1, NULL, &p.state, &err), &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    return p;
}

static void close_program(program *p)
{
    gx_exec_free(p->exec);
    gx_state_free(p->state);
    gx_plan_free(p->plan);
    gx_graph_free(p->graph);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

static void expect_nodes(const program *p, int64_t n)
{
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(p->exec, &err), &err);
    assert_int_equal(gx_exec_stats_get(p->exec).graph_nodes, n);
    assert_int_equal(gx_exec_stats_get(p->exec).launches_per_step, n);
}

#define HEAD "gexec: 1\nname: m\ninputs:\n  x: {shape: [4, 6], init: normal}\n"

static void a_view_has_no_node(void **state)
{
    program p = open_program(HEAD "params:\n  w: {shape: [4, 6], init: normal}\nops:\n"
                                  "  - {op: reshape, name: a, x: x, shape: [24]}\n"
                                  "  - {op: relu, name: b, x: a}\n"
                                  "  - {op: reshape, name: c, x: b, shape: [6, 4]}\n"
                                  "  - {op: reshape, name: d, x: w, shape: [6, 4]}\n"
                                  "  - {op: add, name: y, a: c, b: d}\noutputs: [y]\n");
    void *memory = aligned_alloc(256, 256);
    gx_error err = { 0 };

    (void)state;
    expect_nodes(&p, 3); /* relu, the copy of w, add */
    assert_ok(gx_exec_bind(p.exec, "x", memory, &err), &err);
    expect_nodes(&p, 3);
    close_program(&p);
    free(memory);
}

/* Nothing reads the view, and that is no capture that lost its work. */
static void a_step_of_a_view_alone_has_no_nodes(void **state)
{
    program p = open_program(HEAD "ops:\n"
                                  "  - {op: reshape, name: a, x: x, shape: [24]}\n"
                                  "outputs: [x]\n");

    (void)state;
    expect_nodes(&p, 0);
    close_program(&p);
}

/* Each op that moves, casts or drops adds the one node that it declares, and none where
 * there is nothing to do. */
static void each_op_adds_one_node(void **state)
{
    static const char *const ops[] = {
        "op: transpose, name: y, x: x",
        "op: transpose, name: y, x: t",
        "op: transpose, name: y, x: b, perm: [1, 2, 0]",
        "op: reshape, name: y, x: x, shape: [24]",
        "op: slice, name: y, x: x, axis: 1, start: 1, step: 2",
        "op: slice.bwd, name: y, dy: x, size: 9, start: 1, step: 2, stop: 8",
        "op: concat, name: y, x: [x, x, t], axis: 1",
        "op: cast, name: y, x: x, dtype: bf16",
        "op: dropout, name: y, x: x, step: n",
    };

    (void)state;
    for (int empty = 0; empty < 2; empty++) {
        for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
            char text[600];

            snprintf(text, sizeof text,
                     "gexec: 1\nname: m\ndims: {e: %d}\ninputs:\n"
                     "  x: {shape: [4, 6 * e], init: normal}\n"
                     "  t: {shape: [4, 96 * e], init: normal}\n"
                     "  b: {shape: [3, 12, 33 * e], dtype: bf16, init: normal}\n"
                     "  n: {shape: [1], dtype: i32, init: zeros}\n"
                     "ops:\n  - {%s}\noutputs: [y]\n",
                     !empty,
                     strstr(ops[i], "shape") && empty
                         ? "op: reshape, name: y, x: x, shape: [0]"
                         : ops[i]);
            if (empty && strstr(ops[i], "axis: 1, start: 1"))
                continue; /* there is no index 1 */
            program p = open_program(text);

            expect_nodes(&p, empty ? 0 : 1);
            close_program(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_has_no_node),
        cmocka_unit_test(a_step_of_a_view_alone_has_no_nodes),
        cmocka_unit_test(each_op_adds_one_node),
    };

    return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
