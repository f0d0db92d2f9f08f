/* Metrics: which labels are among the k largest, the perplexity, and how figures of
 * several batches become one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_walk.h"

enum { ROWS = 29, CLASSES = 11 };

static test_walk parse(const char *op, int k)
{
    char text[1000], count[32] = "";

    if (k > 0)
        snprintf(count, sizeof count, ", k: %d", k);
    snprintf(text, sizeof text,
             "gexec: 1\nname: m\nprecision: f32\ninputs:\n"
             "  x: {shape: [29, 11], init: normal}\n"
             "  y: {shape: [29], dtype: i32, init: {integers: [0, 11]}}\n"
             "ops: [{op: %s, name: r, logits: x, labels: y%s}]\noutputs: [r]\n",
             op, count);
    return test_walk_parse(text, "f32", GX_TRAIN, test_seed());
}

static const double *row_of_sort;

static int by_logit_then_index(const void *a, const void *b)
{
    const int i = *(const int *)a, j = *(const int *)b;

    if (row_of_sort[i] > row_of_sort[j] || row_of_sort[i] < row_of_sort[j])
        return row_of_sort[i] > row_of_sort[j] ? -1 : 1;
    return i - j;
}

/* Sorts each row. */
static double share_of_sorted(const double *x, const double *y, int k)
{
    int right = 0;

    for (int r = 0; r < ROWS; r++) {
        int order[CLASSES];

        for (int c = 0; c < CLASSES; c++)
            order[c] = c;
        row_of_sort = x + r * CLASSES;
        qsort(order, CLASSES, sizeof order[0], by_logit_then_index);
        for (int c = 0; c < k; c++)
            right += order[c] == (int)y[r];
    }
    return (double)right / ROWS;
}

static void topk_is_what_sorting_gives(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int k = 1; k <= CLASSES; k++) {
        test_walk model = parse("topk", k);
        double *x = test_walk_tensor(&model, "x");
        const double *y = test_walk_tensor(&model, "y");

        /* of few values, so that ties decide */
        for (int i = 0; i < ROWS * CLASSES; i++)
            x[i] = (double)test_random_int(&random, -2, 2);
        test_walk_step(&model);
        assert_true(fabs(*test_walk_tensor(&model, "r") - share_of_sorted(x, y, k)) <
                    1e-6);
        test_walk_free(&model);
    }
}

static void of_equal_logits_the_lower_index_comes_first(void **state)
{
    test_walk model = parse("topk", 3);
    double *x = test_walk_tensor(&model, "x");
    double *y = test_walk_tensor(&model, "y");

    (void)state;
    for (int i = 0; i < ROWS * CLASSES; i++)
        x[i] = 0.5;
    for (int r = 0; r < ROWS; r++)
        y[r] = 2;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "r") >= 1);
    for (int r = 0; r < ROWS; r++)
        y[r] = 3;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "r") <= 0);
    test_walk_free(&model);
}

static void a_nan_is_not_among_the_largest(void **state)
{
    test_walk model = parse("topk", 2);
    double *x = test_walk_tensor(&model, "x");
    double *y = test_walk_tensor(&model, "y");

    (void)state;
    for (int i = 0; i < ROWS * CLASSES; i++)
        x[i] = i % CLASSES == 0 ? NAN : -(double)(i % CLASSES);
    for (int r = 0; r < ROWS; r++)
        y[r] = 2; /* the second of those that are numbers */
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "r") >= 1);
    for (int r = 0; r < ROWS; r++)
        y[r] = 0;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "r") <= 0);
    test_walk_free(&model);
}

static void one_of_the_largest_is_accuracy(void **state)
{
    test_walk topk = parse("topk", 1), accuracy = parse("accuracy", 0);
    const char *both[] = { "x", "y" };

    (void)state;
    for (int i = 0; i < 2; i++)
        memcpy(test_walk_tensor(&topk, both[i]), test_walk_tensor(&accuracy, both[i]),
               (size_t)test_walk_count(&topk, both[i]) * sizeof(double));
    test_walk_step(&topk);
    test_walk_step(&accuracy);
    assert_memory_equal(test_walk_tensor(&topk, "r"), test_walk_tensor(&accuracy, "r"),
                        sizeof(double));
    test_walk_free(&accuracy);
    test_walk_free(&topk);
}

static void k_is_five_and_at_most_the_classes(void **state)
{
    static const char *const wrong[] = { "0", "-1", "12" };
    test_walk usual = parse("topk", 0), five = parse("topk", 5);

    (void)state;
    memcpy(test_walk_tensor(&usual, "x"), test_walk_tensor(&five, "x"),
           ROWS * CLASSES * sizeof(double));
    memcpy(test_walk_tensor(&usual, "y"), test_walk_tensor(&five, "y"),
           ROWS * sizeof(double));
    test_walk_step(&usual);
    test_walk_step(&five);
    assert_memory_equal(test_walk_tensor(&usual, "r"), test_walk_tensor(&five, "r"),
                        sizeof(double));
    test_walk_free(&five);
    test_walk_free(&usual);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char text[400], expected[100];
        char *found;

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\nprecision: f32\ninputs:\n"
                 "  x: {shape: [2, 11]}\n  y: {shape: [2], dtype: i32}\n"
                 "ops: [{op: topk, name: r, logits: x, labels: y, k: %s}]\n",
                 wrong[i]);
        snprintf(expected, sizeof expected,
                 "k is %s: expected 1 to 11, the number of classes", wrong[i]);
        found = test_walk_mistakes(text, GX_TRAIN);
        assert_has(found, expected);
        free(found);
    }
}

static void perplexity_is_the_exponential_of_the_loss(void **state)
{
    static const char text[] =
        "gexec: 1\nname: m\nprecision: f32\ninputs:\n"
        "  x: {shape: [29, 11], init: normal}\n"
        "  y: {shape: [29], dtype: i32, init: {integers: [0, 11]}}\n"
        "ops: [{op: softmax_cross_entropy, name: loss, logits: x, labels: y}]\n"
        "metrics: {perplexity: {loss: loss}, ppl: {op: perplexity, loss: loss}, "
        "topk: {logits: x, labels: y, k: 3}}\noutputs: [loss]\n";
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());
    const gx_average expected[] = { GX_AVERAGE_MEAN, GX_AVERAGE_EXP_OF_MEAN_LOG,
                                    GX_AVERAGE_EXP_OF_MEAN_LOG, GX_AVERAGE_MEAN };

    (void)state;
    test_walk_step(&model);
    const double loss = *test_walk_tensor(&model, "loss");
    assert_true(fabs(*test_walk_tensor(&model, "perplexity") / exp(loss) - 1) < 1e-6);
    assert_true(fabs(*test_walk_tensor(&model, "ppl") / exp(loss) - 1) < 1e-6);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(gx_graph_logged_average(model.graph, i), expected[i]);
    assert_int_equal(gx_graph_logged_average(model.graph, 99), GX_AVERAGE_MEAN);

    /* written out, it says the same of its columns */
    char *yaml = gx_graph_yaml(model.graph);
    gx_graph *again;
    gx_error err = { 0 };

    assert_non_null(yaml);
    assert_ok(gx_graph_parse(yaml, strlen(yaml), "m", NULL, NULL, &again, NULL, &err),
              &err);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(gx_graph_logged_average(again, i), expected[i]);
    gx_graph_free(again);
    free(yaml);
    test_walk_free(&model);
}

static void a_loss_that_is_a_sum_adds_up(void **state)
{
    static const char text[] =
        "gexec: 1\nname: m\nprecision: f32\n"
        "inputs: {x: {shape: [29, 11], init: normal}, t: {shape: [29, 11]}, y: {shape: "
        "[29], dtype: i32, init: {integers: [0, 11]}}}\nops:\n"
        "  - {op: softmax_cross_entropy, name: ce, logits: x, labels: y, reduction: "
        "sum}\n"
        "  - {op: mse, name: e, x: x, target: t, reduction: sum}\n"
        "  - {op: mse, name: m, x: x, target: t}\n"
        "  - {op: scale, name: half, x: e, factor: 0.5}\n"
        "  - {op: add, name: both, a: ce, b: half}\n"
        "  - {op: sub, name: mixed, a: both, b: m}\n"
        "outputs: [ce, e, m, half, both, mixed]\n";
    static const gx_average expected[] = { GX_AVERAGE_SUM,  GX_AVERAGE_SUM,
                                           GX_AVERAGE_MEAN, GX_AVERAGE_SUM,
                                           GX_AVERAGE_SUM,  GX_AVERAGE_STEPS };
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(gx_graph_logged_average(model.graph, i), expected[i]);
    test_walk_free(&model);
}

/* What `ops` make of x, the rows, and w, a parameter, in a model that logs "out". */
static gx_average average_of(const char *ops)
{
    char text[1200];

    snprintf(
        text, sizeof text,
        "gexec: 1\nname: m\nprecision: f32\n"
        "inputs: {x: {shape: [29, 11], init: normal}, t: {shape: [29, 11]}}\n"
        "params: {w: {shape: [11], init: normal}, w2: {shape: [11, 3], init: normal}}\n"
        "ops:\n"
        "  - {op: mse, name: m, x: x, target: t}\n"
        "  - {op: l1, name: s, x: x, target: t, reduction: sum}\n"
        "  - {op: mul, name: ww, a: w, b: w}\n"
        "  - {op: sum, name: penalty, x: ww}\n"
        "  - {op: mul, name: xw, a: x, b: w}\n%s\noutputs: [out]\n",
        ops);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());
    const gx_average found = gx_graph_logged_average(model.graph, 0);

    assert_string_equal(gx_graph_logged(model.graph, 0), "out");
    test_walk_free(&model);
    return found;
}

static void the_rows_are_followed_to_the_log(void **state)
{
    static const struct {
        const char *ops;
        gx_average average;
    } cases[] = {
        { "  - {op: sum, name: out, x: xw}", GX_AVERAGE_SUM },
        { "  - {op: mean, name: out, x: xw}", GX_AVERAGE_MEAN },
        { "  - {op: max, name: out, x: xw}", GX_AVERAGE_STEPS },
        { "  - {op: scale, name: out, x: penalty, factor: 0.5}", GX_AVERAGE_MEAN },
        { "  - {op: add, name: out, a: m, b: penalty}", GX_AVERAGE_MEAN },
        { "  - {op: add, name: out, a: s, b: penalty}", GX_AVERAGE_STEPS },
        { "  - {op: sub, name: out, a: m, b: s}", GX_AVERAGE_STEPS },
        { "  - {op: mul, name: out, a: s, b: penalty}", GX_AVERAGE_SUM },
        { "  - {op: mul, name: out, a: s, b: s}", GX_AVERAGE_STEPS },
        { "  - {op: mul, name: out, a: m, b: m}", GX_AVERAGE_STEPS },
        { "  - {op: mul, name: out, a: m, b: penalty}", GX_AVERAGE_MEAN },
        { "  - {op: max, name: out, x: s}", GX_AVERAGE_STEPS },
        { "  - {op: max, name: out, x: m}", GX_AVERAGE_STEPS },
        { "  - {op: max, name: out, x: penalty}", GX_AVERAGE_MEAN },
        { "  - {op: max, name: a, x: xw, axis: 1}\n  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: max, name: a, x: xw, axis: 0}\n  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        /* what is no function of a mean that a mean is passed on by */
        { "  - {op: reshape, name: a, x: m, shape: [1]}\n"
          "  - {op: relu, name: b, x: a}\n  - {op: reshape, name: out, x: b, shape: []}",
          GX_AVERAGE_STEPS },
        { "  - {op: perplexity, name: out, loss: m}", GX_AVERAGE_EXP_OF_MEAN_LOG },
        { "  - {op: perplexity, name: out, loss: s}", GX_AVERAGE_STEPS },
        { "  - {op: perplexity, name: p, loss: m}\n  - {op: add, name: out, a: p, b: p}",
          GX_AVERAGE_STEPS },
        { "  - {op: perplexity, name: p, loss: m}\n"
          "  - {op: scale, name: out, x: p, factor: -1}",
          GX_AVERAGE_STEPS },
        { "  - {op: mean, name: a, x: xw, axis: 0}\n"
          "  - {op: sub, name: d, a: xw, b: a}\n  - {op: mul, name: dd, a: d, b: d}\n"
          "  - {op: mean, name: out, x: dd}",
          GX_AVERAGE_STEPS }, /* a variance */
        { "  - {op: softmax, name: a, x: xw, axis: 1}\n"
          "  - {op: mul, name: b, a: a, b: a}\n  - {op: mean, name: out, x: b}",
          GX_AVERAGE_MEAN },
        { "  - {op: softmax, name: a, x: xw, axis: 0}\n"
          "  - {op: mul, name: b, a: a, b: a}\n  - {op: sum, name: out, x: b}",
          GX_AVERAGE_STEPS },
        { "  - {op: layer_norm, name: a, x: xw}\n  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: transpose, name: xt, x: xw}\n  - {op: layer_norm, name: a, x: xt}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        /* products of matrices: rows of one, of both, and sums over the rows */
        { "  - {op: gemm, name: a, a: x, b: w2}\n  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: gemm, name: a, a: w2, b: x, trans_a: true, trans_b: true}\n"
          "  - {op: sum, name: b, x: a, axis: 0}\n  - {op: max, name: c, x: b, axis: 0}\n"
          "  - {op: mean, name: out, x: c}",
          GX_AVERAGE_STEPS },
        { "  - {op: gemm, name: a, a: x, b: x, trans_a: true}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        { "  - {op: gemm, name: a, a: x, b: t, trans_b: true}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        /* under another shape, in which the rows are elsewhere, or mixed with others */
        { "  - {op: reshape, name: a, x: xw, shape: [29, 1, 11]}\n"
          "  - {op: sum, name: b, x: a, axis: 1}\n  - {op: mean, name: out, x: b}",
          GX_AVERAGE_MEAN },
        { "  - {op: reshape, name: a, x: xw, shape: [1, 29, 11]}\n"
          "  - {op: sum, name: b, x: a, axis: [1, 2]}\n"
          "  - {op: reshape, name: out, x: b, shape: []}",
          GX_AVERAGE_SUM },
        { "  - {op: reshape, name: a, x: xw, shape: [319]}\n"
          "  - {op: reshape, name: b, x: a, shape: [29, 11]}\n"
          "  - {op: sum, name: c, x: b, axis: 1}\n  - {op: mean, name: out, x: c}",
          GX_AVERAGE_MEAN },
        { "  - {op: reshape, name: a, x: xw, shape: [11, 29]}\n"
          "  - {op: sum, name: b, x: a, axis: 0}\n  - {op: mean, name: out, x: b}",
          GX_AVERAGE_STEPS },
        { "  - {op: transpose, name: xt, x: xw}\n"
          "  - {op: reshape, name: a, x: xt, shape: [319]}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: slice, name: a, x: xw, axis: 1, start: 2, stop: 5}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: slice, name: a, x: xw, axis: 0, start: 2, stop: 5}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        { "  - {op: concat, name: a, x: [xw, t], axis: 1}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: concat, name: a, x: [xw, t], axis: 0}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_STEPS },
        { "  - {op: cast, name: c, x: s, dtype: f32}\n"
          "  - {op: reshape, name: out, x: c, shape: []}",
          GX_AVERAGE_SUM },
        /* over the rows and what each has, one after the other, in either order */
        { "  - {op: mean, name: a, x: xw, axis: 1}\n  - {op: sum, name: out, x: a}",
          GX_AVERAGE_SUM },
        { "  - {op: mean, name: a, x: xw, axis: 0}\n  - {op: sum, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: sum, name: a, x: xw, axis: -1, keepdim: true}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: sum, name: a, x: xw, axis: 0}\n  - {op: mean, name: out, x: a}",
          GX_AVERAGE_SUM },
        { "  - {op: transpose, name: xt, x: xw}\n  - {op: sum, name: a, x: xt, axis: 0}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: transpose, name: xt, x: xw}\n  - {op: sum, name: a, x: xt, axis: 1}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_SUM },
        { "  - {op: sum_to, name: a, x: xw, shape: [29, 1]}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_MEAN },
        { "  - {op: sum_to, name: a, x: xw, shape: [11]}\n"
          "  - {op: mean, name: out, x: a}",
          GX_AVERAGE_SUM },
        { "  - {op: sum_to, name: out, x: xw}", GX_AVERAGE_SUM },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (average_of(cases[i].ops) != cases[i].average)
            fail_msg("%s: %d", cases[i].ops, (int)average_of(cases[i].ops));
}

static void perplexity_is_of_one_loss(void **state)
{
    char *found = test_walk_mistakes("gexec: 1\nname: m\nprecision: f32\n"
                                     "inputs: {x: {shape: [3]}}\n"
                                     "ops: [{op: perplexity, name: p, loss: x}]\n",
                                     GX_TRAIN);

    (void)state;
    assert_has(found, "loss");
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_is_what_sorting_gives),
        cmocka_unit_test(of_equal_logits_the_lower_index_comes_first),
        cmocka_unit_test(a_nan_is_not_among_the_largest),
        cmocka_unit_test(one_of_the_largest_is_accuracy),
        cmocka_unit_test(k_is_five_and_at_most_the_classes),
        cmocka_unit_test(perplexity_is_the_exponential_of_the_loss),
        cmocka_unit_test(a_loss_that_is_a_sum_adds_up),
        cmocka_unit_test(the_rows_are_followed_to_the_log),
        cmocka_unit_test(perplexity_is_of_one_loss),
    };

    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
