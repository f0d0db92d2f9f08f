/* layer_norm and rms_norm against their formulas in long double, and their derivatives
 * against central differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

enum { N_DRAWS = 20, MOST = 40 };

/* A norm with what is given of weight and bias, and its derivative by hand. */
typedef struct norm {
    bool centred, has_weight, has_bias;
    int rows, columns;
    double eps; /* below 0: not written */
} norm;

static norm draw(test_random *random, bool centred)
{
    return (norm){
        .centred = centred,
        .has_weight = test_random_int(random, 0, 1),
        .has_bias = centred && test_random_int(random, 0, 1),
        .rows = (int)test_random_int(random, 1, 6),
        .columns = (int)test_random_int(random, 2, MOST),
        .eps = test_random_int(random, 0, 1) ? test_random_real(random, 1e-3, 0.5) : -1,
    };
}

static test_walk open_norm(const norm *n)
{
    char text[1200], eps[40] = "";
    const char *op = n->centred ? "layer_norm" : "rms_norm";

    if (n->eps >= 0)
        snprintf(eps, sizeof eps, ", eps: %.17g", n->eps);
    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: [%d, %d]}\n  dy: {shape: [%d, %d]}\n"
                  "  w: {shape: [%d]}\n  b: {shape: [%d]}\n"
                  "ops:\n  - {op: %s, name: y, x: x%s%s%s}\n"
                  "  - {op: %s.bwd, name: r, x: x, dy: dy%s%s, dx: dx, dweight: dw%s}\n"
                  "outputs: [y, dx, dw%s]\n",
             n->rows, n->columns, n->rows, n->columns, n->columns, n->columns, op,
             n->has_weight ? ", weight: w" : "", n->has_bias ? ", bias: b" : "", eps, op,
             n->has_weight ? ", weight: w" : "", eps, n->centred ? ", dbias: db" : "",
             n->centred ? ", db" : "");
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    model.exact = true;
    return model;
}

static void fill(test_random *random, test_walk *model, const char *name, double mean)
{
    double *x = test_walk_tensor(model, name);

    for (int64_t i = 0; i < test_walk_count(model, name); i++)
        x[i] = mean + test_random_real(random, -1, 1);
}

static double norm_of(const norm *n, const test_walk *model, int i, int j)
{
    const double *x = test_walk_tensor(model, "x") + i * n->columns;
    long double mean = 0, squares = 0;
    const double eps = n->eps >= 0 ? n->eps : n->centred ? 1e-5 : 0x1p-52;

    for (int k = 0; n->centred && k < n->columns; k++)
        mean += x[k] / (long double)n->columns;
    for (int k = 0; k < n->columns; k++)
        squares += (x[k] - mean) * (x[k] - mean) / n->columns;
    const long double z = (x[j] - mean) / sqrtl(squares + eps);

    return (double)(z * (n->has_weight ? test_walk_tensor(model, "w")[j] : 1) +
                    (n->has_bias ? test_walk_tensor(model, "b")[j] : 0));
}

static void check_formula(bool centred)
{
    test_random random = test_random_start(test_seed());

    for (int round = 0; round < N_DRAWS; round++) {
        const norm n = draw(&random, centred);
        test_walk model = open_norm(&n);

        fill(&random, &model, "x", round % 3 == 0 ? 50 : 0);
        fill(&random, &model, "w", 1);
        fill(&random, &model, "b", 0);
        fill(&random, &model, "dy", 0);
        test_walk_step(&model);
        for (int i = 0; i < n.rows * n.columns; i++) {
            const double want = norm_of(&n, &model, i / n.columns, i % n.columns);

            assert_true(fabs(test_walk_tensor(&model, "y")[i] - want) < 1e-11);
        }
        test_walk_free(&model);
    }
}

static void layer_norm_is_its_formula(void **state)
{
    (void)state;
    check_formula(true);
}

static void rms_norm_is_its_formula(void **state)
{
    (void)state;
    check_formula(false);
}

/* The sum of y dy, as it stands after a step. */
static double total(test_walk *model)
{
    double sum = 0;

    test_walk_step(model);
    for (int64_t i = 0; i < test_walk_count(model, "y"); i++)
        sum += test_walk_tensor(model, "y")[i] * test_walk_tensor(model, "dy")[i];
    return sum;
}

static void check_slope(test_walk *model, const char *of, const char *gradient)
{
    const int64_t n = test_walk_count(model, of);
    double *x = test_walk_tensor(model, of), *want = calloc((size_t)n, sizeof *want);
    const double h = 1e-5;

    assert_non_null(want);
    total(model);
    memcpy(want, test_walk_tensor(model, gradient), (size_t)n * sizeof *want);
    for (int64_t i = 0; i < n; i++) {
        const double at = x[i];

        x[i] = at + h;
        const double above = total(model);

        x[i] = at - h;
        const double slope = (above - total(model)) / (2 * h);

        x[i] = at;
        if (!(fabs(slope - want[i]) < 1e-5)) {
            print_error("%s[%lld]: %.12g, difference quotient %.12g\n", gradient,
                        (long long)i, want[i], slope);
            fail();
        }
    }
    free(want);
}

static void derivatives_are_difference_quotients(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < N_DRAWS; round++) {
        norm n = draw(&random, round % 2);

        n.columns =
            5 + n.columns % 5; /* two columns alone are nearly +-1 whatever x is */
        n.has_weight = true;   /* so that y depends on what dw is of */
        n.has_bias = n.centred;
        test_walk model = open_norm(&n);

        fill(&random, &model, "x", 0);
        fill(&random, &model, "w", 1);
        fill(&random, &model, "b", 0);
        fill(&random, &model, "dy", 0);
        check_slope(&model, "x", "dx");
        check_slope(&model, "w", "dw");
        if (n.centred)
            check_slope(&model, "b", "db");
        test_walk_free(&model);
    }
}

/* Without a weight the derivative is that of a weight of ones. */
static void an_absent_weight_is_one(void **state)
{
    test_random random = test_random_start(test_seed());
    norm n = { true, false, false, 3, 7, -1 };
    test_walk without = open_norm(&n);

    (void)state;
    n.has_weight = true;
    test_walk with = open_norm(&n);
    fill(&random, &without, "x", 0);
    fill(&random, &without, "dy", 0);
    for (int i = 0; i < 21; i++) {
        test_walk_tensor(&with, "x")[i] = test_walk_tensor(&without, "x")[i];
        test_walk_tensor(&with, "dy")[i] = test_walk_tensor(&without, "dy")[i];
        test_walk_tensor(&with, "w")[i % 7] = 1;
    }
    test_walk_step(&without);
    test_walk_step(&with);
    assert_memory_equal(test_walk_tensor(&with, "y"), test_walk_tensor(&without, "y"),
                        21 * sizeof(double));
    assert_memory_equal(test_walk_tensor(&with, "dx"), test_walk_tensor(&without, "dx"),
                        21 * sizeof(double));
    test_walk_free(&with);
    test_walk_free(&without);
}

/* A variance of 1e-4 about 1e4: mean(x^2) - mean(x)^2 would keep none of its digits in
 * f32, and half of them in double. */
static void a_large_mean_cancels_nothing(void **state)
{
    norm n = { true, false, false, 1, 8, 0 };
    test_walk model = open_norm(&n);

    (void)state;
    for (int j = 0; j < 8; j++) {
        test_walk_tensor(&model, "x")[j] = 1e4 + (j % 2 ? 0.01 : -0.01);
        test_walk_tensor(&model, "dy")[j] = j;
    }
    test_walk_step(&model);
    for (int j = 0; j < 8; j++)
        assert_true(fabs(test_walk_tensor(&model, "y")[j] - (j % 2 ? 1 : -1)) < 1e-9);
    test_walk_free(&model);
}

/* rms_norm's eps where none is written is the epsilon of x's type. */
static void the_default_eps_of_rms_norm_goes_by_the_type(void **state)
{
    static const struct {
        gx_dtype dtype;
        double eps;
    } types[] = { { GX_F32, 0x1p-23 }, { GX_BF16, 0x1p-7 }, { GX_F16, 0x1p-10 } };
    const gx_op *op = gx_op_find("rms_norm");
    double x = 0x1p-4, out = 0;
    gx_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        gx_call call = { .op = op };

        call.arg[GX_RMS_NORM_X] = (gx_tensor){ types[i].dtype, 1, { 1 }, &x };
        call.arg[GX_RMS_NORM_WEIGHT].rank = -1;
        call.arg[GX_RMS_NORM_OUT] = (gx_tensor){ types[i].dtype, 1, { 1 }, &out };
        assert_ok(op->reference(&call, &err), &err);
        assert_true(fabs(out - x / sqrt(x * x + types[i].eps)) < 1e-15);
    }
}

/* One tensor in several roles gets the gradient of each. */
static void a_tensor_in_several_roles_gets_all_gradients(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  t: {shape: [4]}\n"
             "params:\n  x: {shape: [4], init: normal}\nops:\n"
             "  - {op: layer_norm, name: y, x: x, weight: x, bias: x}\n"
             "  - {op: mse, name: loss, x: y, target: t, reduction: sum}\n"
             "backward: loss\noutputs: [loss]\n",
        "f32", GX_TRAIN, 7);
    double want[4], x[4];

    (void)state;
    model.exact = true;
    test_walk_step(&model);
    memcpy(x, test_walk_tensor(&model, "x"), sizeof x);
    memcpy(want, test_walk_tensor(&model, "x.grad"), sizeof want);
    for (int i = 0; i < 4; i++) {
        double loss[2];

        for (int side = 0; side < 2; side++) {
            test_walk_tensor(&model, "x")[i] = x[i] + (side ? -1e-6 : 1e-6);
            test_walk_step(&model);
            loss[side] = *test_walk_tensor(&model, "loss");
        }
        test_walk_tensor(&model, "x")[i] = x[i];
        assert_true(fabs((loss[0] - loss[1]) / 2e-6 - want[i]) <
                    1e-5 * (1 + fabs(want[i])));
    }
    test_walk_free(&model);
}

static void mistakes_are_named_at_their_place(void **state)
{
    static const struct {
        const char *op, *message;
    } mistakes[] = {
        { "{op: layer_norm, name: y, x: s}",
          "model.yaml:10:34: layer_norm \"y\": x is a scalar, expected one dimension or "
          "more" },
        { "{op: layer_norm, name: y, x: x, weight: s}",
          "model.yaml:10:45: layer_norm \"y\": weight has shape [], expected [3]" },
        { "{op: layer_norm, name: y, x: x, bias: x}",
          "model.yaml:10:43: layer_norm \"y\": bias has shape [2, 3], expected [3]" },
        { "{op: layer_norm, name: y, x: x, weight: h}",
          "model.yaml:10:45: layer_norm \"y\": weight is bf16, expected f32" },
        { "{op: layer_norm, name: y, x: x, eps: -1}",
          "model.yaml:10:42: layer_norm \"y\": eps is -1, expected 0 or more" },
        { "{op: layer_norm, name: y, x: i}",
          "model.yaml:10:34: layer_norm \"y\": x is i32, expected f32, bf16 or f16" },
        { "{op: rms_norm, name: y, x: x, bias: w}",
          "model.yaml:10:35: rms_norm has no field \"bias\"" },
        { "{op: rms_norm, name: y, x: x, eps: abc}",
          "model.yaml:10:40: eps is \"abc\", expected a number" },
        { "{op: layer_norm.bwd, name: y, x: x, dy: x}",
          "model.yaml:10:10: layer_norm.bwd \"y\": it makes nothing: expected dx, "
          "dweight "
          "or dbias" },
        { "{op: rms_norm.bwd, name: y, x: x, dy: x}",
          "model.yaml:10:10: rms_norm.bwd \"y\": it makes nothing: expected dx or "
          "dweight" },
        { "{op: rms_norm.bwd, name: y, x: x, dy: w, dx: z}",
          "model.yaml:10:43: rms_norm.bwd \"y\": dy has shape [3], expected [2, 3]" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        char text[800];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n  x: {shape: [2, 3]}\n  w: {shape: [3]}\n"
                 "  h: {shape: [3], dtype: bf16}\n  s: {shape: []}\n"
                 "  i: {shape: [2, 3], dtype: i32}\nops:\n  - %s\n",
                 mistakes[i].op);
        char *found = test_walk_mistakes(text, GX_TRAIN);

        assert_has(found, mistakes[i].message);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_is_its_formula),
        cmocka_unit_test(rms_norm_is_its_formula),
        cmocka_unit_test(derivatives_are_difference_quotients),
        cmocka_unit_test(an_absent_weight_is_one),
        cmocka_unit_test(a_large_mean_cancels_nothing),
        cmocka_unit_test(the_default_eps_of_rms_norm_goes_by_the_type),
        cmocka_unit_test(a_tensor_in_several_roles_gets_all_gradients),
        cmocka_unit_test(mistakes_are_named_at_their_place),
    };

    return cmocka_run_group_tests_name("norms", tests, NULL, NULL);
}
