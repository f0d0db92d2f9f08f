/* Graphs planned with an alternative forced, and run. */
#include "fake_cuda_planned.h"

#include "builder.h"
#include "support_walk.h"

#define TENSOR(name, shape) "  " name ": {shape: " shape ", init: normal}\n"

const char planned_layers[] = "gexec: 1\nname: m\nprecision: bf16\ninputs:\n" TENSOR(
    "x", "[40, 8]") TENSOR("t", "[40, 8]") "params:\n" TENSOR("w1", "[8, 32]")
    TENSOR("b1", "[32]") TENSOR("w2", "[32, 8]") TENSOR(
        "b2",
        "[8]") "ops:\n"
               "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, act: relu}, "
               "out: h}\n"
               "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, out: y}\n"
               "  - {op: mse, name: loss, x: y, target: t}\n"
               "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";

planned planned_open(const gx_graph *graph, const char *force, int lanes)
{
    const gx_plan_options options = { .device = 0,
                                      .cache_folder = "",
                                      .lanes = lanes,
                                      .no_measure = true,
                                      .force = force };
    const gx_state_options state_options = { .device = 0, .seed = 7 };
    planned of = { NULL, NULL };
    gx_error err;

    assert_ok(gx_plan_create(graph, &options, &of.plan, &err), &err);
    assert_ok(gx_state_create(&graph, 1, &state_options, &of.state, &err), &err);
    return of;
}

void planned_close(planned *of)
{
    gx_state_free(of->state);
    gx_plan_free(of->plan);
}

gx_status planned_run(void *user, gx_error *err)
{
    const planned *of = user;
    gx_exec *exec = NULL;
    gx_status st = gx_exec_create(of->plan, of->state, NULL, &exec, err);

    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_EAGER, 1, err);
    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_GRAPH, 2, err);
    if (st == GX_OK)
        st = gx_exec_sync(exec, err);
    fake_quiet(true); /* what gives back has no status */
    gx_exec_free(exec);
    fake_quiet(false);
    return st;
}

static int run_sample(const char *text, const char *precision, const char *force,
                      planned_look *look, void *user)
{
    test_walk model = test_walk_parse(text, precision, GX_TRAIN, 1);
    planned of = planned_open(model.graph, force, 1);
    const int n_forced = (int)gx_plan_info_get(of.plan).n_forced;
    gx_error err;

    if (look)
        look(of.plan, user);
    if (planned_run(&of, &err) != GX_OK)
        fail_msg("%s\n%s, %s: %s", text, precision, force ? force : "nothing forced",
                 err.message);
    planned_close(&of);
    test_walk_free(&model);
    return n_forced;
}

void planned_data_first(const char *path, const char *force, int lanes,
                        planned_look *look, void *user)
{
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    assert_ok(gx_graph_load(path, NULL, &graph, NULL, &err), &err);
    planned of = planned_open(graph, force, lanes);

    assert_int_equal(gx_plan_info_get(of.plan).order, GX_ORDER_DATA_FIRST);
    look(of.plan, user);
    assert_ok(planned_run(&of, &err), &err);
    planned_close(&of);
    gx_graph_free(graph);
}

int planned_samples(const char *const *rows, const char *const *precisions,
                    const char *force, planned_look *look, void *user)
{
    int n_forced = 0;

    for (; *rows; rows++) {
        for (const char *const *text = gx_op_find(*rows)->samples; *text; text++) {
            for (const char *const *precision = precisions; *precision; precision++)
                n_forced += run_sample(*text, *precision, force, look, user);
        }
    }
    return n_forced;
}

void planned_check_memory(const gx_plan *plan, const gx_unit *unit)
{
    int n_compared = 0;

    for (int32_t i = 0; i < unit->n_nodes * GX_MAX_ARGS; i++) {
        for (int32_t k = 0; k < unit->n_nodes * GX_MAX_ARGS; k++) {
            const gx_node *a = &plan->graph->nodes[unit->first_node + i / GX_MAX_ARGS];
            const gx_node *b = &plan->graph->nodes[unit->first_node + k / GX_MAX_ARGS];
            const int out = i % GX_MAX_ARGS, in = k % GX_MAX_ARGS;

            if (out >= gx_n_args(a->op) || in >= gx_n_args(b->op) || a->arg[out] < 0 ||
                b->arg[in] < 0 || a->arg[out] == b->arg[in] ||
                gx_arg_kind(a->op, out) != GX_FIELD_OUT)
                continue;
            const gx_slot_info *x = &plan->slots[a->arg[out]];
            const gx_slot_info *y = &plan->slots[b->arg[in]];

            if (x->elided || y->elided || x->offset < 0 || y->offset < 0)
                continue;
            assert_true(x->offset + (int64_t)x->bytes <= y->offset ||
                        y->offset + (int64_t)y->bytes <= x->offset);
            n_compared++;
        }
    }
    assert_true(n_compared > 0);
}
