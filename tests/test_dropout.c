/* dropout: another mask in each step and for each op, the share that was asked for, the
 * same mask on the way back, none in an evaluation, and a sequence that goes on. */
#include "dropout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

enum { N = 4001 };

/* Of one op on ones: 1 where the element was kept, checked to be scaled or 0. */
static void mask_of(const test_walk *model, const char *name, double p, bool *kept)
{
    const double *y = test_walk_tensor(model, name);

    for (int i = 0; i < N; i++) {
        kept[i] = y[i] != 0;
        assert_true(y[i] == 0 || fabs(y[i] * (1 - p) - 1) < 1e-6);
    }
}

static int64_t count(const bool *kept)
{
    int64_t n = 0;

    for (int i = 0; i < N; i++)
        n += kept[i];
    return n;
}

/* Elements in which two masks agree. */
static int64_t agreements(const bool *a, const bool *b)
{
    int64_t n = 0;

    for (int i = 0; i < N; i++)
        n += a[i] == b[i];
    return n;
}

/* Within six standard deviations of N draws of probability p: by chance it fails once in
 * some ten million runs, each of which draws a fresh seed. */
static void expect_share(int64_t n, double p)
{
    const double deviation = sqrt(N * p * (1 - p));

    if (fabs((double)n - N * p) > 6 * deviation)
        print_error("%lld of %d, expected %.0f +- %.0f\n", (long long)n, (int)N, N * p,
                    6 * deviation);
    assert_true(fabs((double)n - N * p) <= 6 * deviation);
}

static const char two_ops[] = HEAD "inputs:\n  x: {shape: [4001], init: ones}\nops:\n"
                                   "  - {op: dropout, name: d, x: x, p: 0.2}\n"
                                   "  - {op: dropout, name: e, x: x, p: 0.2}\n"
                                   "outputs: [d, e]\n";

/* B04: a mask that a replay repeats is the mistake that this op is known for. */
static void each_step_and_each_op_has_its_own_mask(void **state)
{
    test_walk model = test_walk_parse(two_ops, "f32", GX_TRAIN, test_seed());
    static bool d[3][N], e[3][N];
    const double same = 0.8 * 0.8 + 0.2 * 0.2;

    (void)state;
    for (int step = 0; step < 3; step++) {
        test_walk_step(&model);
        mask_of(&model, "d", 0.2, d[step]);
        mask_of(&model, "e", 0.2, e[step]);
        expect_share(count(d[step]), 0.8);
        expect_share(count(e[step]), 0.8);
        expect_share(agreements(d[step], e[step]), same);
        for (int before = 0; before < step; before++) {
            expect_share(agreements(d[step], d[before]), same);
            expect_share(agreements(e[step], e[before]), same);
            expect_share(agreements(d[step], e[before]), same);
        }
    }
    assert_true(*test_walk_tensor(&model, "gexec.step") == 3);
    test_walk_free(&model);
}

/* The mask hangs on nothing but seed, name, step and index. */
static void another_op_changes_no_mask(void **state)
{
    const uint64_t seed = test_seed();
    test_walk before = test_walk_parse(two_ops, "f32", GX_TRAIN, seed);
    test_walk after =
        test_walk_parse(HEAD "inputs:\n  x: {shape: [4001], init: ones}\nops:\n"
                             "  - {op: dropout, name: c, x: x, p: 0.5}\n"
                             "  - {op: relu, name: r, x: x}\n"
                             "  - {op: dropout, name: e, x: r, p: 0.2}\n"
                             "  - {op: dropout, name: d, x: x, p: 0.2}\n"
                             "outputs: [c, d, e]\n",
                        "f32", GX_TRAIN, seed);
    test_walk other = test_walk_parse(two_ops, "f32", GX_TRAIN, seed + 1);
    static bool a[N], b[N];

    (void)state;
    for (int step = 0; step < 2; step++) {
        test_walk_step(&before);
        test_walk_step(&after);
        test_walk_step(&other);
        for (int op = 0; op < 2; op++) {
            mask_of(&before, op ? "e" : "d", 0.2, a);
            mask_of(&after, op ? "e" : "d", 0.2, b);
            assert_int_equal(agreements(a, b), N);
            mask_of(&other, op ? "e" : "d", 0.2, b);
            expect_share(agreements(a, b), 0.68);
        }
    }
    test_walk_free(&before);
    test_walk_free(&after);
    test_walk_free(&other);
}

/* The words are those of the generator, four to a block, and the type does not matter. */
static void the_mask_is_a_function_of_the_generator(void **state)
{
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    const uint64_t seed = test_seed();

    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
        test_walk model = test_walk_parse(
            HEAD
            "inputs:\n  x: {shape: [4001], init: ones}\nops:\n"
            "  - {op: dropout, name: d, x: x, p: 0.3, stream: 12345}\noutputs: [d]\n",
            precisions[p], GX_TRAIN, seed);

        *test_walk_tensor(&model, "gexec.step") = 70000;
        test_walk_step(&model);
        for (uint64_t i = 0; i < N; i++) {
            const uint64_t key = gx_dropout_key(seed, 12345);
            uint32_t word[4];

            gx_philox(key, i / 4, 70000, word);
            const bool dropped = (double)word[i % 4] < 0.3 * 4294967296.0;

            assert_int_equal(test_walk_tensor(&model, "d")[i] == 0, dropped);
        }
        test_walk_free(&model);
    }
}

/* The gradient is 0 just where the result is, in each step anew. */
static void the_derivative_has_the_same_mask(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  t: {shape: [60, 20], init: zeros}\n"
             "params:\n  w: {shape: [60, 20], init: ones}\nops:\n"
             "  - {op: dropout, name: y, x: w, p: 0.4}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
             "outputs: [y]\n",
        "f32", GX_TRAIN, test_seed());
    double first[1200];
    int64_t n_changed = 0;

    (void)state;
    for (int step = 0; step < 3; step++) {
        test_walk_step(&model);
        for (int i = 0; i < 1200; i++) {
            const double y = test_walk_tensor(&model, "y")[i];
            const double dw = test_walk_tensor(&model, "w.grad")[i];

            assert_true((y == 0) == (dw == 0));
            assert_true(fabs(dw - 2 * y / 1200 / 0.6) < 1e-8);
            n_changed += step == 2 && (dw == 0) != (first[i] == 0);
            if (step == 0)
                first[i] = dw;
        }
    }
    assert_true(n_changed > 300);
    test_walk_free(&model);
}

static void shares_of_0_and_1_keep_all_and_none(void **state)
{
    test_walk model = test_walk_parse(HEAD "inputs:\n  x: {shape: [6]}\nops:\n"
                                           "  - {op: dropout, name: all, x: x, p: 0}\n"
                                           "  - {op: dropout, name: none, x: x, p: 1}\n"
                                           "outputs: [all, none]\n",
                                      "f32", GX_TRAIN, test_seed());
    const double x[] = { 1.5, -2, 0, INFINITY, -INFINITY, NAN };

    (void)state;
    memcpy(test_walk_tensor(&model, "x"), x, sizeof x);
    for (int step = 0; step < 3; step++) {
        test_walk_step(&model);
        for (int i = 0; i < 6; i++) {
            const double all = test_walk_tensor(&model, "all")[i];

            assert_true(all == x[i] || (isnan(all) && isnan(x[i])));
            assert_true(test_walk_tensor(&model, "none")[i] == 0);
        }
    }
    test_walk_free(&model);
}

static void an_evaluation_drops_nothing(void **state)
{
    static const char text[] = HEAD
        "inputs:\n  x: {shape: [3, 5], init: normal}\n  t: {shape: [3, 5], init: ones}\n"
        "ops:\n  - {op: dropout, name: d, x: x, p: 0.9}\n"
        "  - {op: mse, name: loss, x: d, target: t}\noutputs: [d, loss]\n";
    test_walk model = test_walk_parse(text, "f32", GX_EVAL, test_seed());

    (void)state;
    assert_int_equal(gx_graph_value_id(model.graph, "gexec.step"), -1);
    test_walk_step(&model);
    for (int i = 0; i < 15; i++)
        assert_true(test_walk_tensor(&model, "d")[i] == test_walk_tensor(&model, "x")[i]);
    test_walk_free(&model);
}

/* --- through the executor --- */

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

static program open_program(const char *text, uint64_t seed)
{
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU, .seed = seed };
    gx_error err = { 0 };
    program p;

    assert_ok(gx_graph_parse(text, strlen(text), "m", ".", NULL, &p.graph, NULL, &err),
              &err);
    const gx_graph *const list[] = { p.graph };

    assert_ok(gx_plan_create(p.graph, &plan_options, &p.plan, &err), &err);
    assert_ok(gx_state_create(list, 1, &state_options, &p.state, &err), &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    return p;
}

static void close_program(program *p)
{
    gx_exec_free(p->exec);
    gx_state_free(p->state);
    gx_plan_free(p->plan);
    gx_graph_free(p->graph);
}

static void run(const program *p, int64_t n, double *d)
{
    gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { 257 }, .data = d };
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, n, &err), &err);
    assert_ok(gx_exec_read(p->exec, "d", &host, &err), &err);
}

/* A state that was saved and put back, or written into another program, draws what the
 * first one drew next. */
static void a_resumed_run_goes_on(void **state)
{
    static const char text[] = "gexec: 1\nname: m\n"
                               "inputs:\n  x: {shape: [257], init: ones}\n"
                               "ops:\n  - {op: dropout, name: d, x: x}\noutputs: [d]\n";
    const uint64_t seed = test_seed();
    program first = open_program(text, seed), second = open_program(text, seed);
    double through[4][257], again[257];
    double step = 2;
    gx_tensor steps = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &step };
    gx_snapshot *saved;
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            assert_ok(gx_state_save(first.state, &saved, &err), &err);
        run(&first, 1, through[i]);
        assert_true(i == 0 || memcmp(through[i], through[i - 1], sizeof again) != 0);
    }
    assert_ok(gx_state_restore(first.state, saved, &err), &err);
    run(&first, 2, again);
    assert_memory_equal(again, through[3], sizeof again);
    assert_ok(gx_state_write(second.state, "gexec.step", &steps, &err), &err);
    run(&second, 1, again);
    assert_memory_equal(again, through[2], sizeof again);
    gx_snapshot_free(saved);
    close_program(&first);
    close_program(&second);
}

/* The expanded graph names step and stream, and loads to the same masks. */
static void an_expanded_graph_draws_the_same(void **state)
{
    static const char text[] = "gexec: 1\nname: m\n"
                               "inputs:\n  x: {shape: [257], init: ones}\n"
                               "ops:\n  - {op: dropout, name: d, x: x}\noutputs: [d]\n";
    const uint64_t seed = test_seed();
    program first = open_program(text, seed);
    char *yaml = gx_graph_yaml(first.graph);
    double a[257], b[257];

    (void)state;
    assert_non_null(yaml);
    assert_has(yaml, "step: gexec.step, out: d, stream: ");
    program second = open_program(yaml, seed);

    for (int i = 0; i < 2; i++) {
        run(&first, 1, a);
        run(&second, 1, b);
        assert_memory_equal(a, b, sizeof a);
    }
    free(yaml);
    close_program(&first);
    close_program(&second);
}

/* --- mistakes --- */

static void what_does_not_fit_is_said(void **state)
{
    static const char *const mistakes[][2] = {
        { "p: 1.5",
          "model.yaml:7:37: dropout \"d\": p is 1.5, expected a share from 0 to 1" },
        { "p: -0.1", "p is -0.1, expected a share" },
        { "stream: -1",
          "model.yaml:7:42: dropout \"d\": stream is -1, expected 0 or more" },
        { "step: y", "step has shape [3], expected [1]" },
        { "step: x", "step is f32, expected i32" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        char text[400], *all;

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n  x: {shape: [3]}\n"
                 "  y: {shape: [3], dtype: i32}\nops:\n"
                 "  - {op: dropout, name: d, x: x, %s}\n",
                 mistakes[i][0]);
        all = test_walk_mistakes(text, GX_TRAIN);
        assert_has(all, mistakes[i][1]);
        free(all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_and_each_op_has_its_own_mask),
        cmocka_unit_test(another_op_changes_no_mask),
        cmocka_unit_test(the_mask_is_a_function_of_the_generator),
        cmocka_unit_test(the_derivative_has_the_same_mask),
        cmocka_unit_test(shares_of_0_and_1_keep_all_and_none),
        cmocka_unit_test(an_evaluation_drops_nothing),
        cmocka_unit_test(a_resumed_run_goes_on),
        cmocka_unit_test(an_expanded_graph_draws_the_same),
        cmocka_unit_test(what_does_not_fit_is_said),
    };

    return cmocka_run_group_tests_name("dropout", tests, NULL, NULL);
}
