/* Layers one after the other in one launch, without a GPU: how far a run of layers goes,
 * which are refused, and that each call may fail. */
#include "fake_cuda_planned.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "builder.h"
#include "chain.h"
#include "gemm_cuda.h"
#include "launch.h"
#include "plan.h"
#include "support_walk.h"

#define INPUT(name, shape) "  " name ": {shape: " shape ", init: normal}\n"
#define HEAD                                                                            \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n" INPUT("x", "[6, 8]") INPUT(           \
        "a", "[8, 16]") INPUT("b", "[16, 12]") INPUT("c", "[12, 8]")                    \
        INPUT("at", "[16, 8]") INPUT("bt", "[12, 16]") INPUT("ct", "[8, 12]") INPUT(    \
            "w", "[16, 16]") INPUT("v", "[16, 256]") INPUT("odd", "[12, 10]")           \
            INPUT("oddt", "[16, 7]") INPUT("xo", "[6, 7]") INPUT("wide", "[16, 516]")   \
                INPUT("p", "[16]") INPUT("q", "[12]") INPUT("r", "[6, 12]")             \
                    INPUT("s", "[6, 16]") INPUT("xb", "[3, 6, 8]")                      \
                        INPUT("xl", "[513, 8]") "  xf: {shape: [6, 8], dtype: bf16}\n"  \
                                                "  sf: {shape: [6, 16], dtype: bf16}\n" \
                                                "ops:\n"

#define LAYER(name, x, w, more) \
    "  - {op: gemm, name: " name ", a: " x ", b: " w ", epilogue: {" more "}}\n"
#define A LAYER("h", "x", "a", "bias: p, act: relu")
#define B LAYER("i", "h", "b", "bias: q, act: gelu_tanh")
#define C LAYER("j", "i", "c", "act: tanh")
#define TURNED(name, x, w)                                         \
    "  - {op: gemm, name: " name ", a: " x ", b: " w ", trans_b: " \
    "true, epilogue: {act: relu}}\n"
#define BACK(name, x, w, y)                                                           \
    "  - {op: gemm, name: p" name ", a: " x ", b: " w ", trans_b: true}\n"            \
    "  - {op: epilogue.bwd, name: " name ", dy: p" name ", y: " y ", act: relu, dx: " \
    "d" name "}\n"

static const gx_ctx card = { .cc = 90, .shared_optin_bytes = 1 << 17 };

enum { MOST = 8 }; /* calls of a group */

typedef struct chain_group {
    test_walk model;
    const gx_alternative *at;
    gx_call calls[MOST];
    bool elided[MOST * GX_MAX_ARGS];
    gx_group group;
} chain_group;

/* By what stands behind the first op. */
static const gx_alternative *find(const gx_graph *graph, const char *name)
{
    const gx_alternative *at;

    for (size_t i = 0; (at = gx_alternative_at(i)); i++) {
        if (strcmp(at->name, name) == 0 && at->pattern[1] &&
            strcmp(at->pattern[1], graph->nodes[1].op->name) == 0)
            return at;
    }
    fail_msg("no %s of %s", name, graph->nodes[1].op->name);
    return NULL;
}

static void open_group(chain_group *p, const char *name, const char *ops,
                       const char *outputs, int32_t n, const char *precision)
{
    char text[4000];

    snprintf(text, sizeof text, "%s%soutputs: [%s]\n", HEAD, ops, outputs);
    p->model = test_walk_parse(text, precision, GX_TRAIN, 1);
    p->at = find(p->model.graph, name);
    gx_match_calls(p->model.graph, 0, n, p->calls);
    gx_match_elided(p->model.graph, 0, n, p->elided);
    p->group = (gx_group){ .n_calls = n, .call = p->calls, .elided = p->elided };
}

/* --- how far it goes --- */

static void a_run_goes_as_far_as_layers_follow_and_are_narrow(void **state)
{
    static const struct {
        const char *ops, *outputs;
        int32_t n; /* nodes that are taken */
    } cases[] = {
        { A B C, "j", 6 },
        { A B C, "h, i, j", 6 },
        { A B, "i", 4 },
        /* columns that vectors of 4 do not divide, and too many */
        { A B LAYER("j", "i", "odd", "act: relu"), "j", 4 },
        { A LAYER("i", "h", "wide", "act: relu"), "i", 0 },
        /* something else is multiplied */
        { A B LAYER("j", "r", "c", "act: relu"), "i, j", 4 },
        { A LAYER("i", "s", "b", "bias: q"), "h, i", 0 },
        /* weights that are stored otherwise */
        { A B TURNED("j", "i", "ct"), "j", 4 },
        { TURNED("h", "x", "at") TURNED("i", "h", "bt") TURNED("j", "i", "ct"), "j", 6 },
        /* an odd width may stand in front of weights that are stored turned */
        { TURNED("h", "xo", "oddt") TURNED("i", "h", "bt"), "i", 4 },
        /* what one layer makes is more than what the next begins with */
        { LAYER("h", "at", "a", "act: relu") LAYER("i", "h", "h", "act: relu"), "i", 0 },
        { TURNED("h", "at", "at") TURNED("i", "h", "h"), "i", 0 },
        { BACK("i", "at", "at", "w") BACK("j", "di", "w", "di"), "di, dj", 0 },
        /* a batch of matrices, and of too many rows */
        { LAYER("h", "xb", "a", "act: relu") LAYER("i", "h", "b", "act: relu"), "i", 0 },
        { LAYER("h", "xl", "a", "act: relu") LAYER("i", "h", "b", "act: relu"), "i", 0 },
        /* the way back */
        { BACK("i", "x", "at", "s") BACK("j", "di", "bt", "r"), "di, dj", 4 },
        { BACK("i", "xo", "oddt", "s") BACK("j", "di", "bt", "r"), "di, dj", 4 },
        { BACK("i", "x", "at", "s") BACK("j", "s", "bt", "r"), "di, dj", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        chain_group p;

        open_group(&p, "chain", cases[i].ops, cases[i].outputs, 4, "tf32");
        if (gx_match_length(p.model.graph, p.at, 0) != cases[i].n)
            fail_msg("%s: %d nodes and not %d", cases[i].ops,
                     (int)gx_match_length(p.model.graph, p.at, 0), (int)cases[i].n);
        test_walk_free(&p.model);
    }
}

#define SUMS(name, a, dy)                                                     \
    "  - {op: epilogue.bwd, name: d" name ", dy: " dy ", dbias: b" name "}\n" \
    "  - {op: gemm, name: " name ", a: " a ", b: " dy ", trans_a: true}\n"

/* The gradients of several layers' parameters in one launch have no order. */
static void weight_gradients_go_together_where_none_reads_another(void **state)
{
    static const struct {
        const char *ops, *outputs;
        int32_t n;
    } cases[] = {
        { SUMS("i", "x", "s") SUMS("j", "s", "r"), "i, j, bi, bj", 4 },
        { SUMS("i", "x", "s") SUMS("j", "a", "i"), "i, j, bi, bj", 0 },
        { SUMS("i", "x", "s") SUMS("j", "i", "a"), "i, j, bi, bj", 0 },
        /* nor two types */
        { SUMS("i", "x", "s") SUMS("j", "xf", "sf"), "i, j, bi, bj", 0 },
        { SUMS("i", "xf", "sf") SUMS("j", "xf", "sf") SUMS("k", "x", "s"),
          "i, j, k, bi, bj, bk", 4 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        chain_group p;

        open_group(&p, "weights", cases[i].ops, cases[i].outputs, 4, "tf32");
        assert_int_equal(gx_match_length(p.model.graph, p.at, 0), cases[i].n);
        test_walk_free(&p.model);
    }
}

/* --- what is refused --- */

static void groups_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *ops, *outputs;
        int32_t n;
        const char *why; /* NULL: it takes it */
    } cases[] = {
        { A B C, "j", 6, NULL },
        { A B, "h, i", 4, NULL },
        { BACK("i", "x", "at", "s") BACK("j", "di", "bt", "r"), "di, dj", 4, NULL },
        { A LAYER("i", "h", "b", "bias: q, residual: r"), "i", 4,
          "more than one plain product" },
        { A LAYER("i", "h", "b", "act: relu, scale: 2"), "i", 4,
          "more than one plain product" },
        { "  - {op: gemm, name: h, a: x, b: a, alpha: 2, epilogue: {act: relu}}\n" B, "i",
          4, "more than one plain product" },
        { A LAYER("i", "s", "b", "bias: q"), "h, i", 4, "do not follow one another" },
        { BACK("i", "x", "at", "s") BACK("j", "di", "bt", "r"), "di, dj, pj", 4,
          "the product itself is read elsewhere" },
        { BACK("i", "x", "at",
               "s") "  - {op: gemm, name: pj, a: di, b: bt, trans_b: true}\n"
                    "  - {op: epilogue.bwd, name: j, dy: pj, y: r, act: relu, dx: dj, "
                    "dbias: g}\n",
          "dj, g", 4, "more than one plain product" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        chain_group p;

        open_group(&p, "chain", cases[i].ops, cases[i].outputs, cases[i].n, "tf32");
        const char *why = p.at->refuses(&p.group, &card);

        if (cases[i].why)
            assert_has(why ? why : "nothing", cases[i].why);
        else if (why)
            fail_msg("%s: refused: %s", cases[i].ops, why);
        test_walk_free(&p.model);
    }
}

static void cards_without_clusters_and_f32_are_refused(void **state)
{
    const gx_ctx old = { .cc = 89, .shared_optin_bytes = 1 << 17 };
    const gx_ctx small = { .cc = 90, .shared_optin_bytes = 1 << 10 };
    chain_group p;

    (void)state;
    open_group(&p, "chain", A B C, "j", 6, "bf16");
    assert_null(p.at->refuses(&p.group, &card));
    assert_has(p.at->refuses(&p.group, &old), "no clusters");
    assert_has(p.at->refuses(&p.group, &small), "shared memory");
    test_walk_free(&p.model);
    open_group(&p, "chain", A B C, "j", 6, "f32");
    assert_has(p.at->refuses(&p.group, &card), "no tensor cores");
    test_walk_free(&p.model);
}

static void place(chain_group *p)
{
    for (int c = 0; c < p->group.n_calls; c++) {
        for (int arg = 0; arg < GX_MAX_ARGS; arg++)
            p->calls[c].arg[arg].data =
                (void *)((uintptr_t)p->calls[c].arg[arg].data * 4096);
    }
}

static void operands_that_are_not_aligned_are_refused(void **state)
{
    static const int shifted[][2] = { { 0, GX_GEMM_A },
                                      { 0, GX_GEMM_B },
                                      { 2, GX_GEMM_B } };

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(shifted); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        chain_group p;

        open_group(&p, "chain", A B C, "j", 6, "bf16");
        place(&p);
        if (i < ARRAY_SIZE(shifted)) {
            gx_tensor *tensor = &p.calls[shifted[i][0]].arg[shifted[i][1]];

            tensor->data = (char *)tensor->data + 2;
        }
        const gx_status st = p.at->prepare(&p.group, &card, &prepared, &err);

        assert_int_equal(st, i < ARRAY_SIZE(shifted) ? GX_ERR_UNSUPPORTED : GX_OK);
        if (st != GX_OK)
            assert_has(err.message, "not aligned to 16 bytes");
        else
            assert_true(prepared.n_algos > 1 && prepared.n_launches == 1);
        test_walk_free(&p.model);
    }
}

/* A wide layer takes many blocks, or fewer with wider tiles. */
static void a_card_without_room_for_a_large_cluster_takes_a_wider_tile(void **state)
{
    static const struct {
        unsigned most;
        gx_status st;
        int n_algos, columns; /* of the first */
    } cards[] = { { 16, GX_OK, GX_N_CHAINS, 16 },
                  { 8, GX_OK, GX_N_CHAINS - 2, 32 },
                  { 2, GX_ERR_UNSUPPORTED, 0, 0 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cards); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        chain_group p;

        open_group(&p, "chain", A LAYER("i", "h", "v", "act: relu"), "i", 4, "bf16");
        place(&p);
        fake_begin();
        fake_set_most_cluster(cards[i].most);
        const gx_status st = p.at->prepare(&p.group, &card, &prepared, &err);

        fake_set_most_cluster(16);
        assert_int_equal(st, cards[i].st);
        if (st == GX_OK) {
            assert_int_equal(prepared.n_algos, cards[i].n_algos);
            assert_int_equal(gx_chain_shape_at(prepared.algo[0])->columns,
                             cards[i].columns);
        } else {
            assert_has(err.message, "no room for a cluster");
        }
        test_walk_free(&p.model);
    }
}

/* Loading a kernel for a large cluster asks the device three things; each may fail. */
static void each_call_may_fail(void **state)
{
    static const char *const calls[] = { "cudaFuncGetAttributes",
                                         "cudaOccupancyMaxActiveClusters",
                                         "cudaLaunchKernelExC" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        gx_ctx ctx = card;
        chain_group p;

        open_group(&p, "chain", A B C, "j", 6, "bf16");
        place(&p);
        fake_begin();
        fake_fail(calls[i], 1, 999);
        gx_status st = p.at->prepare(&p.group, &card, &prepared, &err);

        if (st == GX_OK)
            st = p.at->launch(&p.group, &prepared, &ctx, &err);
        assert_int_not_equal(st, GX_OK);
        assert_has(err.message, calls[i]);
        fake_begin();
        test_walk_free(&p.model);
    }
}

/* --- two threads, one kernel --- */

enum { LESS = 60 << 10, MORE = 100 << 10 };

static struct {
    pthread_t thread;
    atomic_bool ended;
    gx_status st;
} other;

static void *load_more(void *user)
{
    gx_error err;

    other.st = gx_load_kernel(&other, MORE, "kernel", &err);
    atomic_store(&other.ended, true);
    return user;
}

/* While one thread has found the limit and not raised it yet, another that needs more
 * gets as far as it can. */
static void let_another_load(void)
{
    assert_int_equal(pthread_create(&other.thread, NULL, load_more, NULL), 0);
    for (int i = 0; i < 100 && !atomic_load(&other.ended); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void a_limit_is_never_lowered_by_another_thread(void **state)
{
    gx_error err;

    (void)state;
    fake_begin();
    fake_on_attributes(let_another_load);
    assert_ok(gx_load_kernel(&other, LESS, "kernel", &err), &err);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    assert_int_equal(other.st, GX_OK);
    assert_int_equal(fake_shared_limit(), MORE);
}

/* --- plans --- */

/* Nodes of each kind of unit that was forced. */
typedef struct runs {
    int32_t forward, backward, weights;
    int n;
} runs;

static void count_runs(const gx_plan *plan, void *user)
{
    runs *r = user;

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];
        const char *name = unit->alternative->name;
        const bool is_chain = strcmp(name, "chain") == 0;

        if (!is_chain && strcmp(name, "weights") != 0)
            continue;
        assert_int_equal(unit->n_launches, 1);
        planned_check_memory(plan, unit);
        *(!is_chain                         ? &r->weights
          : unit->phase == GX_PHASE_FORWARD ? &r->forward
                                            : &r->backward) += unit->n_nodes;
        r->n++;
    }
}

/* The layers, the data gradients and the weight gradients of a step are three launches,
 * where the data gradients stand one behind the other. */
static void a_training_step_has_three_runs(void **state)
{
    static const struct {
        const char *path;
        runs of;
    } models[] = { { "graphs/examples/mnist_mlp.yaml", { 4, 4, 6, 3 } },
                   { "graphs/examples/deep_narrow.yaml", { 32, 30, 32, 3 } } };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(models); i++) {
        const runs *expected = &models[i / 2].of;
        runs r = { 0 };

        planned_data_first(models[i / 2].path, "chain,weights", 1 + (int)(i % 2),
                           count_runs, &r);
        assert_int_equal(r.forward, expected->forward);
        assert_int_equal(r.backward, expected->backward);
        assert_int_equal(r.weights, expected->weights);
        assert_int_equal(r.n, expected->n);
    }
    assert_int_equal(fake_live(), 0);
}

/* Each kind of run is a unit of some sample, so that what goes through the samples on a
 * device has them all. */
static void samples_run_in_chains(void **state)
{
    static const char *const rows[] = { "gemm", NULL };
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16", NULL };
    runs r = { 0 };

    (void)state;
    assert_true(planned_samples(rows, precisions, "chain,weights", count_runs, &r) > 0);
    assert_true(r.forward > 20 && r.backward > 20 && r.weights > 20);
    assert_int_equal(fake_live(), 0);
}

/* A plan file of all nodes as one chain, whatever they are. */
static void refuse_pinned(const char *ops, const char *outputs)
{
    char *path = test_path("chain.yaml"), *text = malloc(8000);
    const gx_plan_options first = { .device = 0, .cache_folder = "", .no_measure = true };
    const gx_plan_options pinned = { .device = 0, .cache_folder = "", .pin_file = path };
    gx_plan *plan;
    gx_error err = { 0 };

    snprintf(text, 8000, "%s%soutputs: [%s]\n", HEAD, ops, outputs);
    test_walk model = test_walk_parse(text, "bf16", GX_TRAIN, 1);

    assert_ok(gx_plan_create(model.graph, &first, &plan, &err), &err);
    plan->units[0].n_nodes = (int32_t)model.graph->n_nodes;
    plan->units[0].alternative = find(model.graph, "chain");
    plan->n_units = 1;
    assert_ok(gx_plan_write(plan, path, &err), &err);
    gx_plan_free(plan);
    assert_fails(gx_plan_create(model.graph, &pinned, &plan, &err), GX_ERR_MODEL, &err,
                 "no alternative \"chain\" covers the unit of op \"h.product\"");
    test_walk_free(&model);
    free(text);
    free(path);
}

static void a_plan_file_has_no_chain_that_is_none(void **state)
{
    char ops[4000];
    size_t used =
        (size_t)snprintf(ops, sizeof ops, "%s%s", LAYER("h", "s", "w", "act: relu"),
                         LAYER("l0", "h", "w", "act: relu"));

    (void)state;
    refuse_pinned(A LAYER("i", "s", "b", "bias: q"), "h, i");
    for (int i = 1; i < GX_MAX_REPEATS; i++)
        used += (size_t)snprintf(ops + used, sizeof ops - used,
                                 LAYER("l%d", "l%d", "w", "act: relu"), i, i - 1);
    refuse_pinned(ops, "l31");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_as_far_as_layers_follow_and_are_narrow),
        cmocka_unit_test(weight_gradients_go_together_where_none_reads_another),
        cmocka_unit_test(groups_refuse_what_they_do_not_do),
        cmocka_unit_test(cards_without_clusters_and_f32_are_refused),
        cmocka_unit_test(operands_that_are_not_aligned_are_refused),
        cmocka_unit_test(a_card_without_room_for_a_large_cluster_takes_a_wider_tile),
        cmocka_unit_test(each_call_may_fail),
        cmocka_unit_test(a_limit_is_never_lowered_by_another_thread),
        cmocka_unit_test(a_training_step_has_three_runs),
        cmocka_unit_test(samples_run_in_chains),
        cmocka_unit_test(a_plan_file_has_no_chain_that_is_none),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_chain", tests, NULL, NULL);
}
