/* Gradients against central differences, all in double. */
#include "support_gradients.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resolve.h"
#include "support_walk.h"

/* Parameters and state, as a step finds them. */
typedef struct snapshot {
    double **data;
} snapshot;

static snapshot save(const test_walk *model)
{
    snapshot saved = { calloc(model->graph->n_values + 1, sizeof(double *)) };

    assert_non_null(saved.data);
    for (size_t i = 0; i < model->graph->n_values; i++) {
        const int64_t n = test_walk_count(model, model->graph->values[i].name);

        saved.data[i] = calloc((size_t)n + 1, sizeof(double));
        assert_non_null(saved.data[i]);
        memcpy(saved.data[i], model->data[i], (size_t)n * sizeof(double));
    }
    return saved;
}

static void restore(test_walk *model, const snapshot *saved)
{
    for (size_t i = 0; i < model->graph->n_values; i++) {
        const int64_t n = test_walk_count(model, model->graph->values[i].name);

        memcpy(model->data[i], saved->data[i], (size_t)n * sizeof(double));
    }
}

static void drop(const test_walk *model, snapshot *saved)
{
    for (size_t i = 0; i < model->graph->n_values; i++)
        free(saved->data[i]);
    free(saved->data);
}

static double loss_at(test_walk *model, const snapshot *saved, int32_t value, int64_t k,
                      double x)
{
    restore(model, saved);
    model->data[value][k] = x;
    test_walk_step(model);
    return *test_walk_tensor(model, "loss");
}

/* True when the difference quotient of one of three steps agrees. Its error is 1e-16 / h
 * by rounding and h^2 by curvature; a step that crosses the kink of a relu is off by
 * more, and a smaller one does not cross it. */
static bool agrees(test_walk *model, const snapshot *saved, int32_t value, int64_t k,
                   double gradient, double allowed)
{
    static const double steps[] = { 1e-6, 1e-7, 1e-8 };
    const double x = saved->data[value][k];
    double slope = NAN;

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        const double h = steps[i];

        slope = (loss_at(model, saved, value, k, x + h) -
                 loss_at(model, saved, value, k, x - h)) /
                (2 * h);
        if (fabs(slope - gradient) <= allowed)
            return true;
    }
    print_error("%s[%lld]: gradient %.12g, difference quotient %.12g\n",
                model->graph->values[value].name, (long long)k, gradient, slope);
    return false;
}

/* Some elements of "NAME.grad" against difference quotients. */
static int compare_elements(test_walk *model, const snapshot *saved, int32_t value,
                            const double *gradient, test_random *random)
{
    const int64_t n = test_walk_count(model, model->graph->values[value].name);
    const int64_t tries = n < 16 ? n : 16;
    double largest = 0;

    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs(gradient[k]));
    for (int64_t i = 0; i < tries; i++) {
        const int64_t k = n <= 16 ? i : test_random_int(random, 0, n - 1);

        if (!agrees(model, saved, value, k, gradient[k], 1e-5 * fmax(largest, 1e-4)))
            return 1;
    }
    return 0;
}

uint64_t test_run_seed(void)
{
    static uint64_t seed;

    if (seed == 0)
        seed = test_seed();
    return seed;
}

void test_gradients(const char *text, int n_expected)
{
    const uint64_t seed = test_run_seed();
    test_random random = test_random_start(seed);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, seed);
    snapshot saved = save(&model);
    int n = 0, wrong = 0;

    const int32_t scaled = gx_graph_value_id(model.graph, GX_STATE_SCALE);
    const double scale = scaled >= 0 ? model.data[scaled][0] : 1;

    model.exact = true;
    test_walk_step(&model);
    snapshot after = save(&model);

    for (size_t i = 0; i < model.graph->n_values; i++) {
        const gx_value *value = &model.graph->values[i];
        char name[300];

        if (value->kind != GX_VALUE_PARAM && value->kind != GX_VALUE_INPUT)
            continue;
        snprintf(name, sizeof name, "%s.grad", value->name);
        const int32_t gradient = gx_graph_value_id(model.graph, name);

        if (gradient < 0)
            continue;
        assert_int_equal(model.graph->values[gradient].rank, value->rank);
        /* of the loss as it is, not scaled */
        for (int64_t k = 0; k < test_walk_count(&model, value->name); k++)
            after.data[gradient][k] /= scale;
        wrong +=
            compare_elements(&model, &saved, (int32_t)i, after.data[gradient], &random);
        n++;
    }
    if (wrong)
        print_error("%s\n", text);
    assert_int_equal(wrong, 0);
    if (n_expected >= 0)
        assert_int_equal(n, n_expected);
    else
        assert_true(n > 0);
    drop(&model, &after);
    drop(&model, &saved);
    test_walk_free(&model);
}
