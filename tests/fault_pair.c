/* Both gradients of a layer in one launch, without a GPU: which ops are a pair and which
 * are not, that derived backward passes have them on lane 0, that every sample runs with
 * them, and that each call may fail. */
#include "fake_cuda_planned.h"

#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "gemm_cuda.h"
#include "plan.h"
#include "support_group.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                             \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]")                   \
        INPUT("xt", "[8, 6]") INPUT("d", "[6, 16]") INPUT("e", "[6, 16]")                \
            INPUT("w", "[8, 16]") INPUT("wt", "[16, 8]") INPUT("h", "[6, 8]")            \
                INPUT("xb", "[3, 6, 8]") INPUT("db", "[3, 6, 16]") INPUT("x0", "[0, 8]") \
                    INPUT("d0", "[0, 16]") INPUT("xo", "[6, 7]") INPUT("do", "[6, 5]")   \
                        INPUT("wo", "[7, 5]") INPUT("xl", "[257, 8]")                    \
                            INPUT("dl", "[257, 16]") "ops:\n"

#define SUMS_OF(dy) "  - {op: epilogue.bwd, name: s, dy: " dy ", dbias: g}\n"
#define SUMS SUMS_OF("d")
#define GEMM(name, fields) "  - {op: gemm, name: " name ", " fields "}\n"
#define WEIGHT GEMM("dw", "a: x, b: d, trans_a: true")
#define DATA GEMM("dx", "a: d, b: w, trans_b: true")
#define WEIGHT_T GEMM("dw", "a: d, b: x, trans_a: true")
#define DATA_T GEMM("dx", "a: d, b: wt")
#define BACK_TO(out) "  - {op: epilogue.bwd, name: r, dy: dx, y: h, act: relu, " out "}\n"
#define BACK BACK_TO("dx: back")

static void open_group(test_group *g, const char *ops, const char *outputs, int32_t n,
                       const char *precision)
{
    char text[4000];

    snprintf(text, sizeof text, "%s%soutputs: [%s]\n", HEAD, ops, outputs);
    test_group_open(g, text, precision, "direct_pair", n);
    assert_int_equal(g->first, 0);
}

/* --- what is a pair --- */

static void groups_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *ops, *outputs;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { SUMS WEIGHT DATA BACK, "g, dw, back", 4, NULL },
        { SUMS WEIGHT_T DATA_T BACK, "g, dw, back", 4, NULL },
        { SUMS WEIGHT DATA, "g, dw, dx", 3, NULL },
        { SUMS WEIGHT_T DATA_T, "g, dw, dx", 3, NULL },
        { WEIGHT DATA BACK, "dw, back", 3, NULL },
        { WEIGHT_T DATA_T BACK, "dw, back", 3, NULL },
        { WEIGHT DATA, "dw, dx", 2, NULL },
        { WEIGHT_T DATA_T, "dw, dx", 2, NULL },
        /* batches that lie as one matrix */
        { SUMS_OF("db") GEMM("dw", "a: xb, b: db, trans_a: true, sum_batch: true")
              GEMM("dx", "a: db, b: w, trans_b: true"),
          "g, dw, dx", 3, NULL },
        { GEMM("dw", "a: xb, b: db, trans_a: true")
              GEMM("dx", "a: db, b: w, trans_b: true"),
          "dw, dx", 2, "one plain product" },
        { WEIGHT GEMM("dx", "a: d, b: w, trans_b: true, alpha: 2"), "dw, dx", 2,
          "one plain product" },
        { WEIGHT DATA BACK, "dw, dx, back", 3, "the product itself is read elsewhere" },
        { WEIGHT DATA BACK_TO("dx: back, dbias: g"), "dw, back, g", 3,
          "column sums follow" },
        { WEIGHT DATA BACK_TO("dbias: g"), "dw, g", 3, "column sums follow" },
        { WEIGHT DATA "  - {op: epilogue.bwd, name: r, dy: e, y: d, act: relu, dx: "
                      "back}\n",
          "dw, dx, back", 3, "does not work on the product" },
        /* gradients of other products */
        { WEIGHT GEMM("dx", "a: e, b: w, trans_b: true"), "dw, dx", 2, "of one product" },
        { SUMS_OF("e") WEIGHT DATA, "g, dw, dx", 3, "the rows that the bias" },
        { WEIGHT DATA_T, "dw, dx", 2, "of one product" },
        { WEIGHT_T DATA, "dw, dx", 2, "of one product" },
        { SUMS GEMM("dw", "a: xt, b: d") DATA, "g, dw, dx", 3, "not the gradients of" },
        { GEMM("dw", "a: d, b: xt, trans_a: true, trans_b: true") DATA_T, "dw, dx", 2,
          "not the gradients of" },
        { GEMM("dw", "a: xt, b: d") DATA, "dw, dx", 2, "not the gradients of" },
        { DATA WEIGHT, "dx, dw", 2, "not the gradients of" },
        { WEIGHT GEMM("dx", "a: d, b: dw, trans_b: true"), "dw, dx", 2,
          "made of the other" },
        /* sizes */
        { GEMM("dw", "a: x0, b: d0, trans_a: true")
              GEMM("dx", "a: d0, b: w, trans_b: true"),
          "dw, dx", 2, "of size zero" },
        { GEMM("dw", "a: xo, b: do, trans_a: true")
              GEMM("dx", "a: do, b: wo, trans_b: true"),
          "dw, dx", 2, "odd sizes" },
        { GEMM("dw", "a: xl, b: dl, trans_a: true")
              GEMM("dx", "a: dl, b: w, trans_b: true"),
          "dw, dx", 2, "more rows than one warp" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_group g;

        open_group(&g, cases[i].ops, cases[i].outputs, cases[i].n, "tf32");
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

static void f32_without_tf32_is_refused(void **state)
{
    static const struct {
        const char *precision, *why; /* NULL: it takes it */
    } cases[] = {
        { "f32", "no tensor cores" }, { "tf32", NULL }, { "bf16", NULL }, { "f16", NULL }
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_group g;

        open_group(&g, SUMS WEIGHT DATA BACK, "g, dw, back", 4, cases[i].precision);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* What a model would hardly have. */
static void made_up_groups_are_refused(void **state)
{
    static const int elided[][2] = { { 0, GX_EPILOGUE_BWD_DBIAS },
                                     { 1, GX_GEMM_OUT },
                                     { 3, GX_EPILOGUE_BWD_DX } };
    test_group g;

    (void)state;
    open_group(&g, SUMS WEIGHT DATA BACK, "g, dw, back", 4, "bf16");
    for (size_t i = 0; i < ARRAY_SIZE(elided); i++) {
        bool *at = &g.elided[elided[i][0] * GX_MAX_ARGS + elided[i][1]];

        *at = true;
        test_group_refuses(&g, "nothing reads");
        *at = false;
    }
    test_group_refuses(&g, NULL);
    /* A weight of [2^20, 2^10]: as many tiles as no small product has. */
    const int64_t in = 1 << 20, out = 1 << 10;

    g.calls[0].arg[GX_EPILOGUE_BWD_DBIAS].dim[0] = out;
    g.calls[1].arg[GX_GEMM_A].dim[1] = in;
    g.calls[1].arg[GX_GEMM_B].dim[1] = out;
    memcpy(g.calls[1].arg[GX_GEMM_OUT].dim, (int64_t[]){ in, out }, 2 * sizeof in);
    test_group_refuses(&g, "many tiles");
    g.calls[1].arg[GX_GEMM_OUT].dim[0] = INT64_C(1) << 31;
    test_group_refuses(&g, "2^31");
    test_group_close(&g);
}

/* Vectors are loaded and stored from 16 bytes on. */
static void operands_that_are_not_aligned_are_refused(void **state)
{
    static const int shifted[][2] = { { 1, GX_GEMM_A },
                                      { 1, GX_GEMM_B },
                                      { 1, GX_GEMM_OUT },
                                      { 2, GX_GEMM_A },
                                      { 2, GX_GEMM_B } };

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(shifted); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        test_group g;

        open_group(&g, SUMS WEIGHT DATA BACK, "g, dw, back", 4, "bf16");
        test_group_align(&g);
        if (i < ARRAY_SIZE(shifted)) {
            gx_tensor *tensor = &g.calls[shifted[i][0]].arg[shifted[i][1]];

            tensor->data = (char *)tensor->data + 2;
        }
        const gx_status st = g.at->prepare(&g.group, &test_card, &prepared, &err);

        assert_int_equal(st, i < ARRAY_SIZE(shifted) ? GX_ERR_UNSUPPORTED : GX_OK);
        if (st != GX_OK)
            assert_has(err.message, "are not aligned to 16 bytes");
        else
            assert_true(prepared.n_algos > 1 && prepared.n_launches == 1);
        test_group_close(&g);
    }
}

/* A plan of another version may pin what there is not. */
static void a_shape_that_is_not_there_is_refused(void **state)
{
    gx_prepared prepared = { .has_algo = true, .algo = { 99 } };
    gx_error err = { 0 };
    test_group g;

    (void)state;
    open_group(&g, WEIGHT DATA, "dw, dx", 2, "tf32");
    test_group_align(&g);
    assert_int_equal(g.at->prepare(&g.group, &test_card, &prepared, &err),
                     GX_ERR_UNSUPPORTED);
    assert_has(err.message, "99 of");
    test_group_close(&g);
}

/* --- plans --- */

static bool is_pair(const gx_unit *unit)
{
    return strcmp(unit->alternative->name, "direct_pair") == 0;
}

/* All layers but the first, which has no data gradient, are pairs with their bias and the
 * activation behind; the backward pass goes on from them. */
static void derived_backward_passes_are_chains_of_pairs(void **state)
{
    static const struct {
        const char *path;
        int n_pairs;
    } models[] = { { "graphs/examples/mnist_mlp.yaml", 2 },
                   { "graphs/examples/deep_narrow.yaml", 15 } };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(models); i++) {
        const int lanes = 1 + (int)(i % 2);
        gx_graph *graph = NULL;
        gx_error err = { 0 };
        int n_pairs = 0, n_beside = 0;

        assert_ok(gx_graph_load(models[i / 2].path, NULL, &graph, NULL, &err), &err);
        planned of = planned_open(graph, "direct_pair", lanes);

        for (size_t u = 0; u < of.plan->n_units; u++) {
            const gx_unit *unit = &of.plan->units[u];

            n_beside += unit->phase == GX_PHASE_BACKWARD && unit->lane == 1;
            if (!is_pair(unit))
                continue;
            assert_int_equal(unit->n_nodes, 4);
            assert_int_equal(unit->n_launches, 1);
            assert_int_equal(unit->lane, 0);
            planned_check_memory(of.plan, unit);
            n_pairs++;
        }
        assert_int_equal(n_pairs, models[i / 2].n_pairs);
        assert_true((n_beside > 0) == (lanes > 1)); /* the first layer's weight */
        planned_close(&of);
        gx_graph_free(graph);
    }
}

typedef struct pair_count {
    int of[2][TEST_GROUP_CALLS]; /* by whether a bias is there, and calls */
} pair_count;

static void count_pairs(const gx_plan *plan, void *user)
{
    pair_count *n = user;

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];
        const char *first = plan->graph->nodes[unit->first_node].op->name;

        if (is_pair(unit))
            n->of[strcmp(first, "gemm") != 0][unit->n_nodes]++;
    }
}

/* Each kind of pair is a unit of some sample, so that what goes through the samples on a
 * device has them all. */
static void every_sample_runs_in_pairs(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd", NULL };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16", NULL };
    pair_count n = { { { 0 } } };

    (void)state;
    planned_samples(rows, precisions, "direct_pair", count_pairs, &n);
    assert_true(n.of[0][2] > 2 && n.of[0][3] > 2);
    assert_true(n.of[1][3] > 2 && n.of[1][4] > 2);
    assert_int_equal(fake_live(), 0);
}

static void each_call_may_fail(void **state)
{
    test_walk model = test_walk_parse(planned_layers, "", GX_TRAIN, 1);
    planned of = planned_open(model.graph, "direct_pair", 2);

    (void)state;
    assert_int_equal(gx_plan_info_get(of.plan).n_forced, 1);
    assert_true(path_fail_some_calls(planned_run, &of, 3) > 20);
    planned_close(&of);
    test_walk_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_refuse_what_they_do_not_do),
        cmocka_unit_test(f32_without_tf32_is_refused),
        cmocka_unit_test(made_up_groups_are_refused),
        cmocka_unit_test(operands_that_are_not_aligned_are_refused),
        cmocka_unit_test(a_shape_that_is_not_there_is_refused),
        cmocka_unit_test(derived_backward_passes_are_chains_of_pairs),
        cmocka_unit_test(every_sample_runs_in_pairs),
        cmocka_unit_test(each_call_may_fail),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_pair", tests, NULL, NULL);
}
