/* Losses against their formulas on fresh numbers: reductions, ignored rows, smoothed
 * labels, far logits; derivatives against central differences; what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "support.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

enum { N_DRAWS = 20, ROWS = 6, CLASSES = 5, IGNORED = -100 };

/* --- softmax_cross_entropy --- */

typedef struct rule {
    bool sum, ignores;
    double smoothing;
} rule;

static test_walk open_sce(const rule *r)
{
    char text[800], more[120];

    snprintf(more, sizeof more, "%s%s, label_smoothing: %.17g",
             r->sum ? ", reduction: sum" : "", r->ignores ? ", ignore_index: -100" : "",
             r->smoothing);
    snprintf(text, sizeof text,
             HEAD
             "inputs:\n  x: {shape: [6, 5]}\n  y: {shape: [6], dtype: i32}\nops:\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y%s}\n"
             "  - {op: softmax_cross_entropy.bwd, name: dx, logits: x, labels: y%s}\n"
             "outputs: [loss, dx]\n",
             more, more);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    model.exact = true;
    return model;
}

/* Cross-entropy of the softmax against a target that is spelled out. */
static double sce_of(const rule *r, const double *x, const double *y)
{
    double sum = 0, rows = 0;

    for (int i = 0; i < ROWS; i++) {
        double all = 0;

        if (r->ignores && y[i] == IGNORED)
            continue;
        rows++;
        for (int j = 0; j < CLASSES; j++)
            all += exp(x[i * CLASSES + j]);
        for (int j = 0; j < CLASSES; j++) {
            const double target =
                (j == (int)y[i] ? 1 - r->smoothing : 0) + r->smoothing / CLASSES;

            sum -= target * log(exp(x[i * CLASSES + j]) / all);
        }
    }
    return r->sum ? sum : sum / rows;
}

static rule draw(test_random *random, test_walk *model)
{
    const rule r = { test_random_int(random, 0, 1), test_random_int(random, 0, 1),
                     test_random_int(random, 0, 1) ? test_random_real(random, 0, 1) : 0 };

    *model = open_sce(&r);
    for (int i = 0; i < ROWS * CLASSES; i++)
        test_walk_tensor(model, "x")[i] = test_random_real(random, -4, 4);
    for (int i = 0; i < ROWS; i++)
        test_walk_tensor(model, "y")[i] = (double)test_random_int(random, 0, CLASSES - 1);
    for (int i = 1; r.ignores && i < ROWS; i += 2)
        test_walk_tensor(model, "y")[i] = IGNORED;
    return r;
}

static void cross_entropy_is_its_formula(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < N_DRAWS; round++) {
        test_walk model;
        const rule r = draw(&random, &model);
        double *x = test_walk_tensor(&model, "x"), *y = test_walk_tensor(&model, "y");
        const double h = 1e-6;

        test_walk_step(&model);
        assert_true(fabs(*test_walk_tensor(&model, "loss") - sce_of(&r, x, y)) < 1e-11);
        for (int i = 0; i < ROWS * CLASSES; i++) {
            const double at = x[i];

            x[i] = at + h;
            const double above = sce_of(&r, x, y);

            x[i] = at - h;
            const double slope = (above - sce_of(&r, x, y)) / (2 * h);

            x[i] = at;
            assert_true(fabs(test_walk_tensor(&model, "dx")[i] - slope) < 1e-8);
        }
        test_walk_free(&model);
    }
}

/* A mean of nothing is no number, as in PyTorch; its gradient is 0, and so is a sum. */
static void all_rows_ignored(void **state)
{
    (void)state;
    for (int sum = 0; sum < 2; sum++) {
        const rule r = { sum, true, 0.1 };
        test_walk model = open_sce(&r);

        for (int i = 0; i < ROWS; i++)
            test_walk_tensor(&model, "y")[i] = IGNORED;
        test_walk_step(&model);
        if (sum)
            assert_true(*test_walk_tensor(&model, "loss") == 0);
        else
            assert_true(isnan(*test_walk_tensor(&model, "loss")));
        for (int i = 0; i < ROWS * CLASSES; i++)
            assert_true(test_walk_tensor(&model, "dx")[i] == 0);
        test_walk_free(&model);
    }
}

/* What an ignored row holds, NaN too, reaches neither the loss nor the others. */
static void an_ignored_row_is_not_read(void **state)
{
    const rule r = { false, true, 0 };
    test_walk model = open_sce(&r);

    (void)state;
    for (int j = 0; j < CLASSES; j++)
        test_walk_tensor(&model, "x")[2 * CLASSES + j] = NAN;
    test_walk_tensor(&model, "y")[2] = IGNORED;
    test_walk_step(&model);
    assert_true(fabs(*test_walk_tensor(&model, "loss") - log(CLASSES)) < 1e-12);
    for (int j = 0; j < CLASSES; j++)
        assert_true(test_walk_tensor(&model, "dx")[2 * CLASSES + j] == 0);
    test_walk_free(&model);
}

/* Without smoothing a class of -inf costs nothing; with it, it is given a share. */
static void a_class_that_cannot_be(void **state)
{
    (void)state;
    for (int smooth = 0; smooth < 2; smooth++) {
        const rule r = { false, false, smooth ? 0.1 : 0 };
        test_walk model = open_sce(&r);

        test_walk_tensor(&model, "x")[1] = -INFINITY;
        test_walk_step(&model);
        if (smooth)
            assert_true(*test_walk_tensor(&model, "loss") == INFINITY);
        else
            assert_true(fabs(*test_walk_tensor(&model, "loss") -
                             ((ROWS - 1) * log(CLASSES) + log(CLASSES - 1)) / ROWS) <
                        1e-12);
        test_walk_free(&model);
    }
}

/* --- losses of each element --- */

static double point(const char *op, double x, double t)
{
    if (strcmp(op, "mse") == 0)
        return (x - t) * (x - t);
    if (strcmp(op, "l1") == 0)
        return fabs(x - t);
    return -t * log(1 / (1 + exp(-x))) - (1 - t) * log(1 / (1 + exp(x)));
}

static const char *const pointwise[] = { "mse", "l1", "bce_with_logits" };

static test_walk open_points(const char *op, bool sum)
{
    char text[800];
    const char *more = sum ? ", reduction: sum" : ", reduction: mean";

    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: [3, 7]}\n  t: {shape: [3, 7]}\nops:\n"
                  "  - {op: %s, name: loss, x: x, target: t%s}\n"
                  "  - {op: %s.bwd, name: dx, x: x, target: t%s}\noutputs: [loss, dx]\n",
             op, more, op, more);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    model.exact = true;
    return model;
}

static void losses_of_each_element_are_their_formulas(void **state)
{
    enum { N = 21 };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < 2 * N_DRAWS; round++) {
        const char *op = pointwise[round % 3];
        const bool sum = round % 2;
        test_walk model = open_points(op, sum);
        double *x = test_walk_tensor(&model, "x"), *t = test_walk_tensor(&model, "t");
        double loss = 0;
        const double h = 1e-6, by = sum ? 1 : N;

        for (int i = 0; i < N; i++) {
            x[i] = test_random_real(&random, -3, 3);
            t[i] = test_random_real(&random, 0, 1);
            loss += point(op, x[i], t[i]) / by;
        }
        test_walk_step(&model);
        assert_true(fabs(*test_walk_tensor(&model, "loss") - loss) < 1e-11);
        for (int i = 0; i < N; i++) {
            const double slope =
                (point(op, x[i] + h, t[i]) - point(op, x[i] - h, t[i])) / (2 * h) / by;

            if (strcmp(op, "l1") != 0 || fabs(x[i] - t[i]) > h)
                assert_true(fabs(test_walk_tensor(&model, "dx")[i] - slope) < 1e-8);
        }
        test_walk_free(&model);
    }
}

static void l1_has_no_slope_where_it_is_zero(void **state)
{
    test_walk model = open_points("l1", true);

    (void)state;
    test_walk_tensor(&model, "x")[0] = 2;
    test_walk_tensor(&model, "t")[0] = 2;
    test_walk_tensor(&model, "t")[1] = 1;
    test_walk_tensor(&model, "t")[2] = -1;
    test_walk_step(&model);
    assert_true(test_walk_tensor(&model, "dx")[0] == 0);
    assert_true(test_walk_tensor(&model, "dx")[1] == -1);
    assert_true(test_walk_tensor(&model, "dx")[2] == 1);
    assert_true(*test_walk_tensor(&model, "loss") == 2);
    test_walk_free(&model);
}

/* exp(1000) has no double, and 1 - s(40) has no digits where it is taken from 1. */
static void bce_of_far_logits_keeps_its_digits(void **state)
{
    static const double x[] = { 1000, -1000, 1000, -1000, 40, -40 };
    static const double t[] = { 1, 0, 0, 1, 1, 0 };
    const double loss[] = { 0, 0, 1000, 1000, exp(-40), exp(-40) };
    const double dx[] = { 0, 0, 1, -1, -exp(-40), exp(-40) };

    (void)state;
    /* Each in a step of its own: beside 1000 the others would not show. */
    for (int i = 0; i < 6; i++) {
        test_walk model = open_points("bce_with_logits", true);

        for (int k = 0; k < 21; k++) { /* -2000 for a target of 0 costs nothing */
            test_walk_tensor(&model, "x")[k] = k == i ? x[i] : -2000;
            test_walk_tensor(&model, "t")[k] = k == i ? t[i] : 0;
        }
        test_walk_step(&model);
        assert_true(fabs(*test_walk_tensor(&model, "loss") - loss[i]) <= 1e-14 * loss[i]);
        assert_true(fabs(test_walk_tensor(&model, "dx")[i] - dx[i]) <=
                    1e-14 * fabs(dx[i]));
        test_walk_free(&model);
    }
}

static void sums_of_nothing_are_zero(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [0, 4]}\n  y: {shape: [0], dtype: i32}\nops:\n"
             "  - {op: mse, name: a, x: x, target: x, reduction: sum}\n"
             "  - {op: l1, name: b, x: x, target: x, reduction: sum}\n"
             "  - {op: bce_with_logits, name: c, x: x, target: x, reduction: sum}\n"
             "  - {op: softmax_cross_entropy, name: d, logits: x, labels: y, reduction: "
             "sum}\noutputs: [a, b, c, d]\n",
        "bf16", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    for (char name[] = "a"; name[0] <= 'd'; name[0]++)
        assert_true(*test_walk_tensor(&model, name) == 0);
    test_walk_free(&model);
}

/* --- labels on their way in --- */

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

static program open_program(const char *text)
{
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU };
    program p = { 0 };
    gx_error err = { 0 };

    assert_ok(
        gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &p.graph, NULL, &err),
        &err);
    const gx_graph *graphs[] = { p.graph };
    assert_ok(gx_plan_create(p.graph, &plan_options, &p.plan, &err), &err);
    assert_ok(gx_state_create(graphs, 1, &state_options, &p.state, &err), &err);
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

#define LABELLED(ops)                                                           \
    "gexec: 1\nname: m\ninputs:\n  y: {shape: [4], dtype: i32}\n"               \
    "params:\n  x: {shape: [4, 3], init: normal}\nops:\n"                       \
    "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y, "        \
    "ignore_index: -100}\n" ops "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n" \
    "outputs: [loss]\n"

static void an_ignored_label_is_taken_and_no_other(void **state)
{
    int32_t labels[] = { 0, 2, -100, 1 };
    const gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = labels };
    program p = open_program(LABELLED(""));
    double no_labels[] = { 0, copysign(NAN, -1), 0, 1 };
    const gx_tensor reals = {
        .dtype = GX_F64, .rank = 1, .dim = { 4 }, .data = no_labels
    };
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_exec_write(p.exec, "y", &host, &err), &err);
    assert_ok(gx_exec_run(p.exec, GX_MODE_CPU, 1, &err), &err);
    labels[3] = -99;
    assert_fails(gx_exec_write(p.exec, "y", &host, &err), GX_ERR_DATA, &err,
                 "y: row 3: value -99 is not an integer in [0, 3) and not -100, which is "
                 "ignored");
    assert_fails(gx_exec_write(p.exec, "y", &reals, &err), GX_ERR_DATA, &err,
                 "y: row 1: value nan is not an integer");
    close_program(&p);
}

/* Who reads the same labels and ignores none would take -100 for a class. */
static void a_reader_that_ignores_nothing_decides(void **state)
{
    static const char *const others[] = {
        "  - {op: accuracy, name: a, logits: x, labels: y}\n",
        "  - {op: softmax_cross_entropy, name: b, logits: x, labels: y, ignore_index: "
        "-1}\n",
    };
    int32_t labels[] = { 0, 2, -100, 1 };
    const gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = labels };
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[1200];

        snprintf(text, sizeof text, LABELLED("%s"), others[i]);
        /* It stands only because something asks for it. */
        char *outputs = strstr(text, "outputs: [loss]");

        strcpy(outputs, i == 0 ? "outputs: [loss, a]\n" : "outputs: [loss, b]\n");
        program p = open_program(text);

        assert_fails(gx_exec_write(p.exec, "y", &host, &err), GX_ERR_DATA, &err,
                     "y: row 2: value -100 is not an integer in [0, 3)");
        close_program(&p);
    }
}

/* The graph that is written out keeps reduction, ignored label and smoothing. */
static void an_expanded_model_means_the_same(void **state)
{
    static const char text[] =
        "gexec: 1\nname: m\ninputs:\n  y: {shape: [4], dtype: i32}\n"
        "params:\n  x: {shape: [4, 3], init: normal}\nops:\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y, ignore_index: "
        "-100, reduction: sum, label_smoothing: 0.25}\n"
        "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";
    program p = open_program(text);
    const gx_value *y = &p.graph->values[gx_graph_value_id(p.graph, "y")];
    char *yaml = gx_graph_yaml(p.graph);

    (void)state;
    assert_int_equal(y->index_limit, 3);
    assert_int_equal(y->index_ignored, -100);
    assert_non_null(yaml);
    assert_has(yaml, "index_limit: 3, index_ignored: -100");
    assert_has(yaml, "softmax_cross_entropy.bwd");
    program again = open_program(yaml);
    const gx_graph *graph = again.graph;
    const gx_node *bwd = NULL;

    y = &graph->values[gx_graph_value_id(graph, "y")];
    assert_int_equal(y->index_limit, 3);
    assert_int_equal(y->index_ignored, -100);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (strcmp(graph->nodes[i].op_name, "softmax_cross_entropy.bwd") == 0)
            bwd = &graph->nodes[i];
    }
    assert_non_null(bwd);
    assert_int_equal(bwd->attr[GX_SCE_REDUCTION].i, GX_REDUCTION_SUM);
    assert_true(bwd->attr[GX_SCE_IGNORE_INDEX].present);
    assert_int_equal(bwd->attr[GX_SCE_IGNORE_INDEX].i, -100);
    assert_true(bwd->attr[GX_SCE_LABEL_SMOOTHING].r == 0.25);
    close_program(&again);
    free(yaml);
    close_program(&p);
}

/* --- mistakes --- */

#define SCE "  - {op: softmax_cross_entropy, name: l, logits: x, labels: y, "

static void mistakes_are_named_at_their_place(void **state)
{
    static const struct {
        const char *op, *message;
    } mistakes[] = {
        { SCE "reduction: none}\n",
          "model.yaml:9:75: reduction is \"none\", expected one of: mean, sum" },
        { SCE "reduction: su}\n", "did you mean \"sum\"?" },
        { SCE "label_smoothing: 1.5}\n",
          "model.yaml:9:81: softmax_cross_entropy \"l\": label_smoothing is 1.5, "
          "expected a number from 0 to 1" },
        { SCE "label_smoothing: -0.1}\n", "label_smoothing is -0.1, expected" },
        { SCE "ignore_index: 3000000000}\n",
          "model.yaml:9:78: softmax_cross_entropy \"l\": ignore_index is 3000000000, "
          "expected an i32, as the labels are" },
        { SCE "ignore_index: 0.5}\n", "model.yaml:9:78: " },
        { SCE "ignore_idx: 1}\n",
          "model.yaml:9:64: softmax_cross_entropy has no field \"ignore_idx\"; did you "
          "mean \"ignore_index\"?" },
        { "  - {op: softmax_cross_entropy, name: l, logits: e, labels: n, reduction: "
          "mean}\n",
          "model.yaml:9:50: softmax_cross_entropy \"l\": a mean over no rows has no "
          "value" },
        { "  - {op: l1, name: l, x: x, target: y}\n",
          "model.yaml:9:37: l1 \"l\": target has shape [4], expected [4, 3]" },
        { "  - {op: l1, name: l, x: e, target: e}\n",
          "model.yaml:9:26: l1 \"l\": a mean over no elements has no value" },
        { "  - {op: bce_with_logits, name: l, x: y, target: y}\n",
          "model.yaml:9:39: bce_with_logits \"l\": x is i32, expected f32, bf16 or f16" },
        { "  - {op: bce_with_logits, name: l, x: x, target: p}\nbackward: l\n",
          "bce_with_logits has no gradient for its target, and \"p\" is trained" },
        { "  - {op: mse, name: l, x: p, target: x}\n"
          "  - {op: add, name: s, a: l, b: l}\nbackward: s\n",
          "\"l\" counts more than once in the loss" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        char text[800];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n  x: {shape: [4, 3]}\n"
                 "  y: {shape: [4], dtype: i32}\n  e: {shape: [0, 3]}\n"
                 "  n: {shape: [0], dtype: i32}\nops:\n%s"
                 "params: {p: {shape: [4, 3], init: normal}}\n",
                 mistakes[i].op);
        char *found = test_walk_mistakes(text, GX_TRAIN);

        assert_has(found, mistakes[i].message);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_is_its_formula),
        cmocka_unit_test(all_rows_ignored),
        cmocka_unit_test(an_ignored_row_is_not_read),
        cmocka_unit_test(a_class_that_cannot_be),
        cmocka_unit_test(losses_of_each_element_are_their_formulas),
        cmocka_unit_test(l1_has_no_slope_where_it_is_zero),
        cmocka_unit_test(bce_of_far_logits_keeps_its_digits),
        cmocka_unit_test(sums_of_nothing_are_zero),
        cmocka_unit_test(an_ignored_label_is_taken_and_no_other),
        cmocka_unit_test(a_reader_that_ignores_nothing_decides),
        cmocka_unit_test(an_expanded_model_means_the_same),
        cmocka_unit_test(mistakes_are_named_at_their_place),
    };

    return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
