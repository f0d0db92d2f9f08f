/* Both gradients of a layer in one launch, without a GPU: which ops are a pair and which
 * are not, that derived backward passes have them on lane 0, that every sample runs with
 * them, and that each call may fail. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "gemm_cuda.h"
#include "plan.h"
#include "support_walk.h"

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

static const gx_ctx card = { .cc = 90, .shared_optin_bytes = 1 << 17 };

static const gx_alternative *find(const gx_graph *graph, int32_t first, int32_t n)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (strcmp(at->name, "direct_pair") == 0 &&
            gx_match_length(graph, at, first) == n)
            return at;
    }
    return NULL;
}

enum { MOST = 4 }; /* calls of a pair */

/* The first calls of a model, as an alternative of pairs sees them. */
typedef struct pair_group {
    test_walk model;
    const gx_alternative *at;
    gx_call calls[MOST];
    bool elided[MOST * GX_MAX_ARGS];
    gx_group group;
} pair_group;

static void open_group(pair_group *p, const char *ops, const char *outputs, int32_t n,
                       const char *precision)
{
    char text[4000];

    snprintf(text, sizeof text, "%s%soutputs: [%s]\n", HEAD, ops, outputs);
    p->model = test_walk_parse(text, precision, GX_TRAIN, 1);
    p->at = find(p->model.graph, 0, n);
    assert_non_null(p->at);
    gx_match_calls(p->model.graph, 0, n, p->calls);
    gx_match_elided(p->model.graph, 0, n, p->elided);
    p->group = (gx_group){ .n_calls = n,
                           .call = p->calls,
                           .elided = p->at->elides ? p->elided : NULL };
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
        pair_group p;

        open_group(&p, cases[i].ops, cases[i].outputs, cases[i].n, "tf32");
        const char *why = p.at->refuses(&p.group, &card);

        if (cases[i].why)
            assert_has(why ? why : "nothing", cases[i].why);
        else if (why)
            fail_msg("%s: refused: %s", cases[i].ops, why);
        test_walk_free(&p.model);
    }
}

static void f32_without_tf32_is_refused(void **state)
{
    static const struct {
        const char *precision;
        bool is_taken;
    } cases[] = { { "f32", false }, { "tf32", true }, { "bf16", true }, { "f16", true } };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        pair_group p;

        open_group(&p, SUMS WEIGHT DATA BACK, "g, dw, back", 4, cases[i].precision);
        const char *why = p.at->refuses(&p.group, &card);

        if (cases[i].is_taken)
            assert_null(why);
        else
            assert_has(why, "no tensor cores");
        test_walk_free(&p.model);
    }
}

/* What a model would hardly have. */
static void made_up_groups_are_refused(void **state)
{
    static const int elided[][2] = { { 0, GX_EPILOGUE_BWD_DBIAS },
                                     { 1, GX_GEMM_OUT },
                                     { 3, GX_EPILOGUE_BWD_DX } };
    pair_group p;

    (void)state;
    open_group(&p, SUMS WEIGHT DATA BACK, "g, dw, back", 4, "bf16");
    for (size_t i = 0; i < ARRAY_SIZE(elided); i++) {
        bool *at = &p.elided[elided[i][0] * GX_MAX_ARGS + elided[i][1]];

        *at = true;
        assert_has(p.at->refuses(&p.group, &card), "nothing reads");
        *at = false;
    }
    assert_null(p.at->refuses(&p.group, &card));
    /* A weight of [2^20, 2^10]: as many tiles as no small product has. */
    const int64_t in = 1 << 20, out = 1 << 10;

    p.calls[0].arg[GX_EPILOGUE_BWD_DBIAS].dim[0] = out;
    p.calls[1].arg[GX_GEMM_A].dim[1] = in;
    p.calls[1].arg[GX_GEMM_B].dim[1] = out;
    memcpy(p.calls[1].arg[GX_GEMM_OUT].dim, (int64_t[]){ in, out }, 2 * sizeof in);
    assert_has(p.at->refuses(&p.group, &card), "many tiles");
    p.calls[1].arg[GX_GEMM_OUT].dim[0] = INT64_C(1) << 31;
    assert_has(p.at->refuses(&p.group, &card), "2^31");
    test_walk_free(&p.model);
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
        pair_group p;

        open_group(&p, SUMS WEIGHT DATA BACK, "g, dw, back", 4, "bf16");
        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            for (int c = 0; c < MOST; c++)
                p.calls[c].arg[arg].data =
                    (void *)((uintptr_t)p.calls[c].arg[arg].data * 4096);
        }
        if (i < ARRAY_SIZE(shifted)) {
            gx_tensor *tensor = &p.calls[shifted[i][0]].arg[shifted[i][1]];

            tensor->data = (char *)tensor->data + 2;
        }
        const gx_status st = p.at->prepare(&p.group, &card, &prepared, &err);

        assert_int_equal(st, i < ARRAY_SIZE(shifted) ? GX_ERR_UNSUPPORTED : GX_OK);
        if (st != GX_OK)
            assert_has(err.message, "are not aligned to 16 bytes");
        else
            assert_true(prepared.n_algos > 1 && prepared.n_launches == 1);
        test_walk_free(&p.model);
    }
}

/* A plan of another version may pin what there is not. */
static void a_shape_that_is_not_there_is_refused(void **state)
{
    gx_prepared prepared = { .has_algo = true, .algo = { 99 } };
    gx_error err = { 0 };
    pair_group p;

    (void)state;
    open_group(&p, WEIGHT DATA, "dw, dx", 2, "tf32");
    for (int c = 0; c < 2; c++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++)
            p.calls[c].arg[arg].data =
                (void *)((uintptr_t)p.calls[c].arg[arg].data * 4096);
    }
    assert_int_equal(p.at->prepare(&p.group, &card, &prepared, &err), GX_ERR_UNSUPPORTED);
    assert_has(err.message, "99 of");
    test_walk_free(&p.model);
}

/* --- plans --- */

typedef struct planned {
    gx_plan *plan;
    gx_state *state;
} planned;

static planned plan_forced(const gx_graph *graph, int lanes)
{
    const gx_plan_options options = { .device = 0,
                                      .cache_folder = "",
                                      .lanes = lanes,
                                      .no_measure = true,
                                      .force = "direct_pair" };
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

static bool is_pair(const gx_unit *unit)
{
    return strcmp(unit->alternative->name, "direct_pair") == 0;
}

/* Both parts of a pair run at once: nothing that one writes may lie where another reads.
 */
static void check_memory(const gx_plan *plan, const gx_unit *unit)
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
        planned of = plan_forced(graph, lanes);

        for (size_t u = 0; u < of.plan->n_units; u++) {
            const gx_unit *unit = &of.plan->units[u];

            n_beside += unit->phase == GX_PHASE_BACKWARD && unit->lane == 1;
            if (!is_pair(unit))
                continue;
            assert_int_equal(unit->n_nodes, 4);
            assert_int_equal(unit->n_launches, 1);
            assert_int_equal(unit->lane, 0);
            check_memory(of.plan, unit);
            n_pairs++;
        }
        assert_int_equal(n_pairs, models[i / 2].n_pairs);
        assert_true((n_beside > 0) == (lanes > 1)); /* the first layer's weight */
        drop(&of);
        gx_graph_free(graph);
    }
}

static gx_status run_planned(void *user, gx_error *err)
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

/* Each kind of pair is a unit of some sample, so that what goes through the samples on a
 * device has them all. */
static void every_sample_runs_in_pairs(void **state)
{
    static const char *const rows[] = { "gemm", "gemm.bwd" };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    int n_of[2][MOST + 1] = { { 0 } }; /* by whether a bias is there, and calls */

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(precisions); i++) {
        const gx_op *op = gx_op_find(rows[i / ARRAY_SIZE(precisions)]);
        const char *precision = precisions[i % ARRAY_SIZE(precisions)];

        for (const char *const *text = op->samples; *text; text++) {
            test_walk model = test_walk_parse(*text, precision, GX_TRAIN, 1);
            planned of = plan_forced(model.graph, 1);
            gx_error err;

            for (size_t u = 0; u < of.plan->n_units; u++) {
                const gx_unit *unit = &of.plan->units[u];
                const char *first = model.graph->nodes[unit->first_node].op->name;

                if (is_pair(unit))
                    n_of[strcmp(first, "gemm") != 0][unit->n_nodes]++;
            }
            if (run_planned(&of, &err) != GX_OK)
                fail_msg("%s\n%s: %s", *text, precision, err.message);
            drop(&of);
            test_walk_free(&model);
        }
    }
    assert_true(n_of[0][2] > 2 && n_of[0][3] > 2);
    assert_true(n_of[1][3] > 2 && n_of[1][4] > 2);
    assert_int_equal(fake_live(), 0);
}

static void each_call_may_fail(void **state)
{
    static const char layers[] = "gexec: 1\nname: m\nprecision: bf16\ninputs:\n" INPUT(
        "x", "[40, 8]") INPUT("t", "[40, 8]") "params:\n" INPUT("w1", "[8, 32]")
        INPUT("b1", "[32]") INPUT("w2", "[32, 8]") INPUT(
            "b2", "[8]") "ops:\n"
                         "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, "
                         "act: relu}, "
                         "out: h}\n"
                         "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, "
                         "out: y}\n"
                         "  - {op: mse, name: loss, x: y, target: t}\n"
                         "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";
    test_walk model = test_walk_parse(layers, "", GX_TRAIN, 1);
    planned of = plan_forced(model.graph, 2);

    (void)state;
    assert_int_equal(gx_plan_info_get(of.plan).n_forced, 1);
    assert_true(path_fail_some_calls(run_planned, &of, 3) > 20);
    drop(&of);
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
