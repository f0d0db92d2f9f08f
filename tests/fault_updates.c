/* Weight gradients with their updates in one launch, without a GPU: where they stand,
 * what is refused, and the plans and programs that have them. */
#include "fake_cuda_planned.h"

#include <stdio.h>
#include <string.h>

#include "support_group.h"
#include "weights.h"

#define HEAD                                                                            \
    "gexec: 1\nname: m\nprecision: $P\n"                                                \
    "inputs: {x: {shape: [6, 8], init: normal}, t: {shape: [6, 4], init: normal}}\n"    \
    "params: {a: {shape: [8, 4], init: he_normal}, p: {shape: [4]}, q: {shape: [4]}}\n" \
    "ops:\n  - {op: gemm, name: y, a: x, b: a, epilogue: {bias: p}}\n"
#define LOSS "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss"

/* --- what is refused --- */

static void groups_refuse_what_they_do_not_do(void **state)
{
    static const struct {
        const char *rest, *precision, *why; /* NULL: it takes it */
    } cases[] = {
        { LOSS "]\noptimizer: {adamw: {}}\n", "tf32", NULL },
        { LOSS "]\noptimizer: {adam: {weight_decay: 0.1}}\n", "bf16", NULL },
        { LOSS "]\noptimizer: {adamw: {}}\n", "f32", "no tensor cores" },
        { LOSS "]\noptimizer: {adamw: {}, master: f32}\n", "bf16", "have a master" },
        { LOSS "]\noptimizer: {adamw: {}, moments: f32}\n", "bf16", "differ in type" },
        { LOSS "]\noptimizer: {adamw: {}, groups: [{params: p, lr: 0.1}]}\n", "tf32",
          "settings" },
        { LOSS "]\noptimizer: {adamw: {}, groups: [{params: a, weight_decay: 0}]}\n",
          "tf32", "settings" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[2000];
        test_group g;

        snprintf(text, sizeof text, "%s%s", HEAD, cases[i].rest);
        test_group_open(&g, text, cases[i].precision, "weights_update", 4);
        test_group_refuses(&g, cases[i].why);
        test_group_close(&g);
    }
}

/* Another parameter's gradient is made elsewhere. */
static void updates_of_others_are_refused(void **state)
{
    test_group g;

    (void)state;
    test_group_open(&g,
                    HEAD "  - {op: add, name: z, a: y, b: q}\n"
                         "  - {op: mse, name: loss, x: z, target: t}\nbackward: loss\n"
                         "outputs: [loss]\noptimizer: {adamw: {}}\n",
                    "tf32", "weights_update", 5);
    test_group_refuses(&g, "not every update");
    test_group_close(&g);
}

/* Between the gradients and their updates stands what needs all of them. */
static void nothing_stands_between(void **state)
{
    static const char *const rests[] = {
        LOSS "]\noptimizer: {adamw: {}, clip_norm: 1}\n",
        LOSS "]\noptimizer: {adamw: {}, accumulate: 2}\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s", HEAD, rests[i]);
        test_walk walk = test_walk_parse(text, "tf32", GX_TRAIN, 1);
        const gx_alternative *at;

        for (size_t k = 0; (at = gx_alternative_at(k)); k++) {
            for (int32_t n = 0; n < (int32_t)walk.graph->n_nodes; n++) {
                if (at->repeat == GX_REPEAT_BOTH)
                    assert_int_equal(gx_match_length(walk.graph, at, n), 0);
            }
        }
        test_walk_free(&walk);
    }
}

static void parameters_that_are_not_aligned_are_refused(void **state)
{
    static const int args[] = { GX_ADAMW_PARAM, GX_ADAMW_M, GX_ADAMW_V };

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(args); i++) {
        gx_prepared prepared = { .n_algos = 1 };
        gx_error err = { 0 };
        test_group g;

        test_group_open(&g, HEAD LOSS "]\noptimizer: {adamw: {}}\n", "bf16",
                        "weights_update", 4);
        test_group_align(&g);
        if (i < ARRAY_SIZE(args)) {
            gx_tensor *tensor = &g.calls[3].arg[args[i]];

            tensor->data = (char *)tensor->data + 8;
            assert_fails(g.at->prepare(&g.group, &test_card, &prepared, &err),
                         GX_ERR_UNSUPPORTED, &err, "not aligned");
        } else {
            assert_ok(g.at->prepare(&g.group, &test_card, &prepared, &err), &err);
            assert_int_equal(prepared.n_launches, 1);
        }
        test_group_close(&g);
    }
}

static int n_ahead;

static void note_ahead(void **args)
{
    n_ahead += ((const gx_weights_update *)args[0])->is_ahead;
}

/* Only behind a programmatic edge, and where nothing under way writes any of it. */
static void what_is_updated_is_loaded_ahead_where_it_may_be(void **state)
{
    enum { ALL = -1, LAST = 3 };
    static const struct {
        bool programmatic, first;
        int fresh; /* what was just written */
        bool is_ahead;
    } cases[] = {
        { true, true, ALL, true },
        { false, true, ALL, false },
        { true, false, ALL, false },
        { true, true, GX_ADAMW_GRAD, true },
        { true, true, GX_ADAMW_PARAM, false },
        { true, true, GX_ADAMW_M, false },
        { true, true, GX_ADAMW_V, false },
        { true, true, GX_ADAMW_STEP, false },
        { true, true, GX_ADAMW_LR, false },
    };

    (void)state;
    fake_begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool steady[TEST_GROUP_CALLS * GX_MAX_ARGS];
        gx_prepared prepared = { .n_algos = 1 };
        gx_ctx ctx = test_card;
        gx_error err = { 0 };
        test_group g;

        memset(steady, true, sizeof steady);
        if (cases[i].fresh != ALL)
            steady[LAST * GX_MAX_ARGS + cases[i].fresh] = false;
        test_group_open(&g, HEAD LOSS "]\noptimizer: {adamw: {}}\n", "tf32",
                        "weights_update", LAST + 1);
        test_group_align(&g);
        g.group.steady = steady;
        ctx.programmatic = cases[i].programmatic;
        ctx.programmatic_first = cases[i].first;
        assert_ok(g.at->prepare(&g.group, &ctx, &prepared, &err), &err);
        n_ahead = 0;
        fake_on_launch(note_ahead);
        assert_ok(g.at->launch(&g.group, &prepared, &ctx, &err), &err);
        fake_on_launch(NULL);
        assert_int_equal(n_ahead, cases[i].is_ahead);
        test_group_close(&g);
    }
}

/* --- plans --- */

typedef struct runs {
    int32_t n_nodes;
    int n;
} runs;

static void count_runs(const gx_plan *plan, void *user)
{
    runs *r = user;

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (strcmp(unit->alternative->name, "weights_update") != 0)
            continue;
        assert_int_equal(unit->n_launches, 1);
        r->n_nodes += unit->n_nodes;
        r->n++;
    }
}

/* All gradients and all updates of a step are one launch. */
static void a_training_step_has_one(void **state)
{
    static const struct {
        const char *path;
        int32_t n_nodes;
    } models[] = { { "graphs/examples/mnist_mlp.yaml", 12 },
                   { "graphs/examples/deep_narrow.yaml", 64 } };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(models); i++) {
        runs r = { 0 };

        planned_data_first(models[i / 2].path, "weights_update", 1 + (int)(i % 2),
                           count_runs, &r);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.n_nodes, models[i / 2].n_nodes);
    }
    assert_int_equal(fake_live(), 0);
}

/* It is a unit of some sample, so that what goes through the samples on a device has it.
 */
static void samples_have_it(void **state)
{
    static const char *const rows[] = { "adam", "adamw", "gemm", NULL };
    static const char *const precisions[] = { "tf32", "bf16", NULL };
    runs r = { 0 };

    (void)state;
    assert_true(planned_samples(rows, precisions, "weights_update", count_runs, &r) > 0);
    assert_true(r.n >= 4);
    assert_true(r.n_nodes > 4 * r.n); /* of several layers too */
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_refuse_what_they_do_not_do),
        cmocka_unit_test(updates_of_others_are_refused),
        cmocka_unit_test(nothing_stands_between),
        cmocka_unit_test(parameters_that_are_not_aligned_are_refused),
        cmocka_unit_test(what_is_updated_is_loaded_ahead_where_it_may_be),
        cmocka_unit_test(a_training_step_has_one),
        cmocka_unit_test(samples_have_it),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_updates", tests, NULL, NULL);
}
