/* The activations: forms, tails, derivatives, and that an op of its own, an epilogue and
 * a gemm with one are the same. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

static const long double grid[] = { -20,   -9, -6, -5, -4, -3.7L, -1, -0.751791524L,
                                    -0.1L, 0,  1,  2,  4,  0.3L,  6,  9,
                                    20 };
enum { N = sizeof grid / sizeof grid[0] };

/* --- plain formulas in long double, none of which cancels in a tail --- */

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double normal_share(long double x)
{
    return erfcl(-x / sqrtl(2)) / 2;
}

static long double gelu_tanh(long double x)
{
    const long double u = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);

    return x * sigmoid(2 * u);
}

static long double value(const char *act, long double x)
{
    if (strcmp(act, "gelu_erf") == 0)
        return x * normal_share(x);
    if (strcmp(act, "gelu_tanh") == 0)
        return gelu_tanh(x);
    if (strcmp(act, "silu") == 0)
        return x * sigmoid(x);
    if (strcmp(act, "tanh") == 0)
        return tanhl(x);
    return sigmoid(x);
}

static long double slope(const char *act, long double x)
{
    if (strcmp(act, "gelu_erf") == 0)
        return normal_share(x) + x * expl(-x * x / 2) / sqrtl(2 * acosl(-1));
    if (strcmp(act, "silu") == 0)
        return sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
    if (strcmp(act, "tanh") == 0)
        return 1 / (coshl(x) * coshl(x));
    return sigmoid(x) * sigmoid(-x);
}

static const struct {
    const char *act, *kept;
} acts[] = { { "gelu_erf", "x" }, { "silu", "x" }, { "tanh", "y" }, { "sigmoid", "y" } };

/* Forward and back over the grid, exact or rounded as `precision` says. */
static test_walk run_act(const char *act, const char *kept, const char *precision,
                         bool exact)
{
    char text[500];

    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: [%d]}\n  dy: {shape: [%d], init: ones}\nops:\n"
                  "  - {op: %s, name: y, x: x}\n"
                  "  - {op: %s.bwd, name: dx, dy: dy, %s: %s}\noutputs: [y, dx]\n",
             N, N, act, act, kept, kept);
    test_walk model = test_walk_parse(text, precision, GX_TRAIN, 1);
    const gx_dtype dtype = strcmp(precision, "bf16") == 0  ? GX_BF16
                           : strcmp(precision, "f16") == 0 ? GX_F16
                                                           : GX_F32;

    model.exact = exact;
    for (int i = 0; i < N; i++)
        test_walk_tensor(&model, "x")[i] =
            exact ? (double)grid[i] : gx_round_to(dtype, (double)grid[i]);
    test_walk_step(&model);
    return model;
}

static void activations_are_what_they_are_called(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAY_SIZE(acts); a++) {
        test_walk model = run_act(acts[a].act, acts[a].kept, "f32", true);

        for (int i = 0; i < N; i++) {
            const double x = test_walk_tensor(&model, "x")[i];
            const double y = test_walk_tensor(&model, "y")[i];
            const double dx = test_walk_tensor(&model, "dx")[i];
            const double right = (double)value(acts[a].act, x);
            const double steep = (double)slope(acts[a].act, x);

            /* at -20 a rounding of x counts 400 times in erfc */
            assert_true(fabs(y - right) <= 1e-12 * fabs(right));
            /* Two terms cancel where gelu is least; 1 - y^2 and y (1 - y) lose what y
             * does not hold, as in PyTorch. */
            assert_true(fabs(dx - steep) <=
                        1e-15 + (acts[a].kept[0] == 'y' ? 0 : 1e-12 * fabs(steep)));
        }
        test_walk_free(&model);
    }
}

/* The names keep the two forms apart, which differ by up to 5e-4. */
static void gelu_erf_is_not_the_tanh_form(void **state)
{
    enum { POINTS = 121 };
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [121]}\nops:\n  - {op: gelu_erf, name: y, x: x}\n"
             "outputs: [y]\n",
        "f32", GX_TRAIN, 1);
    double to_erf = 0, to_tanh = 0;

    (void)state;
    for (int i = 0; i < POINTS; i++)
        test_walk_tensor(&model, "x")[i] = -6 + 0.1 * i;
    test_walk_step(&model);
    for (int i = 0; i < POINTS; i++) {
        const double x = test_walk_tensor(&model, "x")[i];
        const double y = test_walk_tensor(&model, "y")[i];

        to_erf = fmax(to_erf, fabs(y - (double)value("gelu_erf", x)));
        to_tanh = fmax(to_tanh, fabs(y - (double)value("gelu_tanh", x)));
    }
    assert_true(to_erf < 1e-6);
    assert_true(to_tanh > 1e-4);
    test_walk_free(&model);
}

/* In the tails sign and digits stay, after one rounding of what is stored. */
static void slopes_that_read_x_keep_sign_and_digits(void **state)
{
    static const char *const precision[] = { "f32", "bf16", "f16" };
    static const double share[] = { 1e-6, 4e-3, 5e-4 };
    /* Nothing below is held; gelu_erf' at -20 is 1e-86. */
    static const double least[] = { 1e-45, 1e-45, 0x1p-24 };

    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(precision); p++) {
        for (int a = 0; a < 2; a++) {
            test_walk model = run_act(acts[a].act, acts[a].kept, precision[p], false);

            for (int i = 0; i < N; i++) {
                const double x = test_walk_tensor(&model, "x")[i];
                const double dx = test_walk_tensor(&model, "dx")[i];
                const double steep = (double)slope(acts[a].act, x);

                assert_true(signbit(dx) == signbit(steep));
                assert_true(fabs(dx - steep) <= share[p] * fabs(steep) + least[p]);
            }
            test_walk_free(&model);
        }
    }
}

static void infinities_and_nan_come_to_their_limits(void **state)
{
    static const double at[] = { INFINITY, NAN };
    static const double limit[] = { INFINITY, INFINITY, 1, 1 };
    static const double limit_slope[] = { 1, 1, 0, 0 };

    (void)state;
    for (size_t a = 0; a < ARRAY_SIZE(acts); a++) {
        for (int k = 0; k < 2; k++) {
            test_walk model = run_act(acts[a].act, acts[a].kept, "f32", true);

            test_walk_tensor(&model, "x")[0] = at[k];
            test_walk_step(&model);
            const double y = *test_walk_tensor(&model, "y");
            const double dx = *test_walk_tensor(&model, "dx");

            assert_true(k ? isnan(y) && isnan(dx)
                          : y == limit[a] && dx == limit_slope[a]);
            test_walk_free(&model);
        }
    }
}

/* One op, one epilogue, and one gemm by an identity: the same numbers, and the
 * same back. */
static void an_activation_is_the_same_wherever_it_stands(void **state)
{
    const uint64_t seed = test_seed();

    (void)state;
    for (size_t a = 0; a < ARRAY_SIZE(acts); a++) {
        char text[2000];

        snprintf(text, sizeof text,
                 HEAD
                 "inputs:\n  t: {shape: [3, 1], init: normal}\n"
                 "  one: {shape: [1, 1], init: ones}\n"
                 "params:\n  p: {shape: [3, 1], init: {normal: {std: 2}}}\n"
                 "  q: {shape: [3, 1], init: zeros}\n  r: {shape: [3, 1], init: zeros}\n"
                 "ops:\n  - {op: %s, name: y1, x: p}\n"
                 "  - {op: epilogue, name: y2, x: q, act: %s}\n"
                 "  - {op: gemm, name: y3, a: r, b: one, epilogue: {act: %s}}\n"
                 "  - {op: mse, name: l1, x: y1, target: t}\n"
                 "  - {op: mse, name: l2, x: y2, target: t}\n"
                 "  - {op: mse, name: l3, x: y3, target: t}\n"
                 "  - {op: add, name: l12, a: l1, b: l2}\n"
                 "  - {op: add, name: loss, a: l12, b: l3}\nbackward: loss\n"
                 "outputs: [y1, y2, y3]\n",
                 acts[a].act, acts[a].act, acts[a].act);
        test_walk model = test_walk_parse(text, "bf16", GX_TRAIN, seed);
        const size_t bytes = 3 * sizeof(double);

        memcpy(test_walk_tensor(&model, "q"), test_walk_tensor(&model, "p"), bytes);
        memcpy(test_walk_tensor(&model, "r"), test_walk_tensor(&model, "p"), bytes);
        test_walk_step(&model);
        for (int k = 2; k <= 3; k++) {
            const char *y = k == 2 ? "y2" : "y3";
            const char *grad = k == 2 ? "q.grad" : "r.grad";

            /* -0, where y is 1 and its slope 0, is 0 behind a product */
            for (int i = 0; i < 3; i++) {
                assert_true(test_walk_tensor(&model, y)[i] ==
                            test_walk_tensor(&model, "y1")[i]);
                assert_true(test_walk_tensor(&model, grad)[i] ==
                            test_walk_tensor(&model, "p.grad")[i]);
            }
        }
        test_walk_free(&model);
    }
}

/* The table says it, and the derived node reads no more than that. */
static void derivatives_read_what_the_table_says(void **state)
{
    static const struct {
        gx_act act;
        gx_act_reads reads;
    } rows[] = {
        { GX_ACT_NONE, GX_ACT_READS_NOTHING },  { GX_ACT_RELU, GX_ACT_READS_Y },
        { GX_ACT_GELU_TANH, GX_ACT_READS_PRE }, { GX_ACT_GELU_ERF, GX_ACT_READS_PRE },
        { GX_ACT_SILU, GX_ACT_READS_PRE },      { GX_ACT_TANH, GX_ACT_READS_Y },
        { GX_ACT_SIGMOID, GX_ACT_READS_Y },
    };

    (void)state;
    assert_int_equal(ARRAY_SIZE(rows), GX_N_ACTS);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *act = gx_act_names[rows[i].act];
        char text[500];

        assert_int_equal(gx_act_reads_of[rows[i].act], rows[i].reads);
        snprintf(text, sizeof text,
                 HEAD "inputs:\n  t: {shape: [2, 3], init: normal}\n"
                      "params:\n  x: {shape: [2, 3], init: normal}\n  b: {shape: [3]}\n"
                      "ops:\n  - {op: epilogue, name: y, x: x, bias: b, act: %s}\n"
                      "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
                 act);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
        const bool has_act = rows[i].act != GX_ACT_NONE;
        const int32_t id =
            gx_graph_node_id(model.graph, has_act ? "y.bwd.act" : "y.bwd.bias");

        assert_true(id >= 0);
        const gx_node *node = &model.graph->nodes[id];

        assert_int_equal(node->arg[GX_EPILOGUE_BWD_Y] >= 0,
                         rows[i].reads == GX_ACT_READS_Y);
        assert_int_equal(node->arg[GX_EPILOGUE_BWD_PRE] >= 0,
                         rows[i].reads == GX_ACT_READS_PRE);
        test_walk_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_what_they_are_called),
        cmocka_unit_test(gelu_erf_is_not_the_tanh_form),
        cmocka_unit_test(slopes_that_read_x_keep_sign_and_digits),
        cmocka_unit_test(infinities_and_nan_come_to_their_limits),
        cmocka_unit_test(an_activation_is_the_same_wherever_it_stands),
        cmocka_unit_test(derivatives_read_what_the_table_says),
    };

    return cmocka_run_group_tests_name("activations", tests, NULL, NULL);
}
