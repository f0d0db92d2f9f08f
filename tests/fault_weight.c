/* The gradient of a bias as an op of its own, without a GPU: with which ops around it it
 * is one kernel and with which not, that every alternative runs and may fail, and that it
 * stands beside the backward pass and not in it. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_cuda.h"
#include "plan.h"
#include "support_walk.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                        \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")              \
        INPUT("xt", "[8, 6]") INPUT("d", "[6, 16]") INPUT("e", "[6, 16]")           \
            INPUT("w", "[8, 16]") INPUT("wide", "[16, 8]") INPUT("xb", "[3, 6, 8]") \
                INPUT("db", "[3, 6, 16]") INPUT("x0", "[0, 8]")                     \
                    INPUT("d0", "[0, 16]") "ops:\n"

#define SUMS "  - {op: epilogue.bwd, name: s, dy: d, dbias: g}\n"
#define PRODUCT(fields) "  - {op: gemm, name: y, " fields "}\n"
#define BACK "  - {op: epilogue.bwd, name: r, dy: e, y: d, act: relu, dx: back}\n"
#define OUTPUTS(names) "outputs: [" names "]\n"

static const gx_alternative *find(const gx_graph *graph, const char *name, int32_t n)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (strcmp(at->name, name) == 0 && gx_match_length(graph, at, 0) == n)
            return at;
    }
    fail_msg("no alternative %s of %d ops", name, n);
    return NULL;
}

/* --- what is one kernel --- */

static void groups_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *ops, *name;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { SUMS PRODUCT("a: x, b: d, trans_a: true"), "direct_weight", 2, NULL },
        { SUMS PRODUCT("a: x, b: d, trans_a: true"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: x, trans_a: true"), "direct_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: x, trans_a: true"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: d, trans_a: true"), "direct_weight", 2, NULL },
        /* x lies transposed: the library's kernel does it */
        { SUMS PRODUCT("a: xt, b: d"), "direct_weight", 2, "is not transposed" },
        { SUMS PRODUCT("a: xt, b: d"), "lt_weight", 2, NULL },
        { SUMS PRODUCT("a: d, b: xt, trans_a: true, trans_b: true"), "direct_weight", 2,
          "both operands are transposed" },
        { SUMS PRODUCT("a: d, b: wide"), "direct_weight", 2, "the rows that the bias" },
        { SUMS PRODUCT("a: d, b: wide"), "lt_weight", 2, "the rows that the bias" },
        { SUMS PRODUCT("a: w, b: d, trans_b: true"), "lt_weight", 2,
          "the rows that the bias" },
        { SUMS PRODUCT("a: x, b: e, trans_a: true"), "direct_weight", 2,
          "the rows that the bias" },
        { SUMS PRODUCT("a: x, b: d, trans_a: true, alpha: 2"), "direct_weight", 2,
          "one plain product" },
        { SUMS PRODUCT("a: x, b: d, trans_a: true, alpha: 2"), "lt_weight", 2,
          "one plain product" },
        { SUMS PRODUCT("a: x, b: d, c: w, trans_a: true"), "lt_weight", 2,
          "one plain product" },
        { "  - {op: epilogue.bwd, name: s, dy: d, y: e, act: relu, dbias: g}\n" PRODUCT(
              "a: x, b: d, trans_a: true"),
          "direct_weight", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: s, dy: d, dx: c, dbias: g}\n" PRODUCT(
              "a: x, b: d, trans_a: true"),
          "lt_weight", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: s, dy: db, dbias: g}\n" PRODUCT(
              "a: xb, b: db, trans_a: true, sum_batch: true"),
          "direct_weight", 2, NULL },
        { "  - {op: epilogue.bwd, name: s, dy: db, dbias: g}\n" PRODUCT(
              "a: xb, b: db, trans_a: true"),
          "direct_weight", 2, "one plain product" },
        { "  - {op: epilogue.bwd, name: s, dy: d0, dbias: g}\n" PRODUCT(
              "a: x0, b: d0, trans_a: true"),
          "direct_weight", 2, "of size zero" },
        { "  - {op: epilogue.bwd, name: s, dy: d0, dbias: g}\n" PRODUCT(
              "a: x0, b: d0, trans_a: true"),
          "lt_weight", 2, "a size is zero" },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n", "fused", 2,
          NULL },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n", "wide_fused", 2,
          NULL },
        { BACK "  - {op: epilogue.bwd, name: y, dy: d, dbias: g}\n", "fused", 2,
          "not of this epilogue" },
        { BACK "  - {op: epilogue.bwd, name: y, dy: back, dx: c, dbias: g}\n",
          "wide_fused", 2, "more than the gradient of a bias" },
        { "  - {op: epilogue.bwd, name: r, dy: e, dx: back, dbias: c}\n"
          "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n",
          "fused", 2, "two gradients of a bias" },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: back, dbias: g}\n",
          "direct_fused", 3, NULL },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: e, dbias: g}\n",
          "direct_fused", 3, "not of this epilogue" },
        { "  - {op: gemm, name: p, a: x, b: w}\n"
          "  - {op: epilogue.bwd, name: r, dy: p, y: d, act: relu, dx: back}\n"
          "  - {op: epilogue.bwd, name: y, dy: p, dbias: g}\n",
          "fused", 3, "not of this epilogue" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];
        gx_call calls[3];
        bool elided[3 * GX_MAX_ARGS];
        const gx_ctx ctx = { .cc = 90, .shared_optin_bytes = 1 << 17 };
        const gx_group group = { .n_calls = cases[i].n, .call = calls, .elided = elided };

        snprintf(text, sizeof text, "%s%s%s", HEAD, cases[i].ops,
                 strstr(cases[i].ops, "dx: back") ? OUTPUTS("g, back")
                 : strstr(cases[i].ops, "dx: c")  ? OUTPUTS("g, c, y")
                                                  : OUTPUTS("g, y"));
        test_walk model = test_walk_parse(text, "tf32", GX_TRAIN, 1);
        const gx_alternative *at = find(model.graph, cases[i].name, cases[i].n);

        gx_match_calls(model.graph, 0, cases[i].n, calls);
        gx_match_elided(model.graph, 0, cases[i].n, elided);
        const char *why = at->refuses(&group, &ctx);

        if (cases[i].why)
            assert_has(why ? why : "nothing", cases[i].why);
        else if (why)
            fail_msg("%s: %s refuses: %s", cases[i].ops, cases[i].name, why);
        test_walk_free(&model);
    }
}

/* Vectors are loaded from 16 bytes on. */
static void operands_that_are_not_aligned_are_refused(void **state)
{
    static const char *const texts[] = {
        HEAD SUMS PRODUCT("a: x, b: d, trans_a: true") OUTPUTS("g, y"),
        HEAD SUMS PRODUCT("a: d, b: x, trans_a: true") OUTPUTS("g, y"),
    };
    const gx_ctx ctx = { .cc = 90, .shared_optin_bytes = 1 << 17 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts) * 3; i++) {
        test_walk model = test_walk_parse(texts[i / 3], "bf16", GX_TRAIN, 1);
        const gx_alternative *at = find(model.graph, "direct_weight", 2);
        gx_prepared prepared = { .n_algos = 1 };
        gx_call calls[2];
        const gx_group group = { .n_calls = 2, .call = calls };
        gx_error err = { 0 };

        gx_match_calls(model.graph, 0, 2, calls);
        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            for (int c = 0; c < 2; c++)
                calls[c].arg[arg].data =
                    (void *)((uintptr_t)calls[c].arg[arg].data * 4096);
        }
        if (i % 3 > 0) {
            gx_tensor *shifted =
                &calls[1].arg[i % 3 == 1 ? (int)GX_GEMM_A : (int)GX_GEMM_B];

            shifted->data = (char *)shifted->data + 2;
            if (shifted->data == (char *)calls[0].arg[GX_EPILOGUE_BWD_DY].data + 2)
                calls[0].arg[GX_EPILOGUE_BWD_DY].data = shifted->data;
        }
        const gx_status st = at->prepare(&group, &ctx, &prepared, &err);

        assert_int_equal(st, i % 3 > 0 ? GX_ERR_UNSUPPORTED : GX_OK);
        if (st != GX_OK)
            assert_has(err.message, "are not aligned to 16 bytes");
        test_walk_free(&model);
    }
}

/* --- each sample through each alternative --- */

static gx_status run_both(gx_plan *plan, gx_state *state, gx_error *err)
{
    gx_exec *exec = NULL;
    gx_status st = gx_exec_create(plan, state, NULL, &exec, err);

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

typedef struct planned {
    gx_plan *plan;
    gx_state *state;
} planned;

static gx_status run_planned(void *user, gx_error *err)
{
    const planned *of = user;

    return run_both(of->plan, of->state, err);
}

static planned plan_forced(const gx_graph *graph, const char *force, int lanes)
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

static void drop(planned *of)
{
    gx_state_free(of->state);
    gx_plan_free(of->plan);
}

static const char *const forced[] = { "direct_weight", "lt_weight", "direct_fused",
                                      "lt_fused",      "fused",     "wide_fused" };

static void every_sample_runs_with_every_alternative(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd" };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    int n_forced[ARRAY_SIZE(forced)] = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(precisions); i++) {
        const gx_op *op = gx_op_find(rows[i / ARRAY_SIZE(precisions)]);

        for (const char *const *text = op->samples; *text; text++) {
            test_walk model = test_walk_parse(
                *text, precisions[i % ARRAY_SIZE(precisions)], GX_TRAIN, 1);

            for (size_t k = 0; k < ARRAY_SIZE(forced); k++) {
                planned of = plan_forced(model.graph, forced[k], 1);
                gx_error err;

                n_forced[k] += (int)gx_plan_info_get(of.plan).n_forced;
                if (run_planned(&of, &err) != GX_OK)
                    fail_msg("%s\n%s: %s", *text, forced[k], err.message);
                drop(&of);
            }
            test_walk_free(&model);
        }
    }
    for (size_t k = 0; k < ARRAY_SIZE(forced); k++)
        assert_true(n_forced[k] > 10);
    assert_int_equal(fake_live(), 0);
}

/* --- two layers --- */

static const char layers[] = "gexec: 1\nname: m\nprecision: bf16\ninputs:\n" INPUT(
    "x", "[40, 8]") INPUT("t", "[40, 8]") "params:\n" INPUT("w1", "[8, 32]")
    INPUT("b1", "[32]") INPUT("w2", "[32, 8]") INPUT(
        "b2",
        "[8]") "ops:\n"
               "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, act: relu}, "
               "out: h}\n"
               "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, out: y}\n"
               "  - {op: mse, name: loss, x: y, target: t}\n"
               "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";

/* The unit that has the node. */
static const gx_unit *unit_of(const gx_plan *plan, const char *node)
{
    const int32_t id = gx_graph_node_id(plan->graph, node);

    assert_true(id >= 0);
    for (size_t u = 0; u < plan->n_units; u++) {
        if (id < plan->units[u].first_node + plan->units[u].n_nodes)
            return &plan->units[u];
    }
    fail();
    return NULL;
}

/* Whatever the gradient of a bias goes with but the way back itself: the backward pass
 * does not go on from it. */
static void a_bias_alone_or_with_its_weight_goes_to_lane_1(void **state)
{
    static const struct {
        const char *force;
        int32_t n_nodes; /* of the unit of fc1's bias */
        int lane;
    } cases[] = {
        { NULL, 1, 1 },           { "direct_weight", 2, 1 }, { "lt_weight", 2, 1 },
        { "direct_fused", 3, 0 }, { "fused", 3, 0 },         { "wide_fused", 2, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_walk model = test_walk_parse(layers, "", GX_TRAIN, 1);
        planned of = plan_forced(model.graph, cases[i].force, 2);
        const gx_unit *unit = unit_of(of.plan, "fc1.bwd.bias");

        assert_int_equal(unit->n_nodes, cases[i].n_nodes);
        assert_int_equal(unit->lane, cases[i].lane);
        assert_int_equal(unit_of(of.plan, "fc1.bwd.weight")->lane, 1);
        assert_int_equal(unit_of(of.plan, "fc1.bwd.act")->lane, 0);
        drop(&of);
        test_walk_free(&model);
    }
}

static void each_call_may_fail(void **state)
{
    static const char *const names[] = { "direct_weight", "lt_weight", "wide_fused" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        test_walk model = test_walk_parse(layers, "", GX_TRAIN, 1);
        planned of = plan_forced(model.graph, names[i], 2);

        assert_true(gx_plan_info_get(of.plan).n_forced > 0);
        assert_true(path_fail_some_calls(run_planned, &of, 3) > 20);
        drop(&of);
        test_walk_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_refuse_what_they_do_not_do),
        cmocka_unit_test(operands_that_are_not_aligned_are_refused),
        cmocka_unit_test(every_sample_runs_with_every_alternative),
        cmocka_unit_test(a_bias_alone_or_with_its_weight_goes_to_lane_1),
        cmocka_unit_test(each_call_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_weight", tests, NULL, NULL);
}
