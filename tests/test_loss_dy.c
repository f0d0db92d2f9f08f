/* The derivative of every loss takes the gradient of the loss itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops.h"
#include "support.h"
#include "support_walk.h"

static void assert_near(double x, double y, double error)
{
    if (!(fabs(x - y) <= error * (1 + fabs(y)))) {
        print_error("%.17g is not %.17g\n", x, y);
        fail();
    }
}

#define SCE_OF(more) "softmax_cross_entropy", "logits: x, labels: y" more, "dlogits"
#define POINTS_OF(op, more) op, "x: x, target: t" more, "dx"

static const struct {
    const char *op, *fields, *out;
} losses[] = {
    { SCE_OF("") },
    { SCE_OF(", reduction: sum") },
    { SCE_OF(", ignore_index: 1, label_smoothing: 0.2") },
    { POINTS_OF("mse", "") },
    { POINTS_OF("mse", ", reduction: sum") },
    { POINTS_OF("l1", "") },
    { POINTS_OF("bce_with_logits", "") },
    { POINTS_OF("bce_with_logits", ", reduction: sum") },
};

#define LOSS_INPUTS                                   \
    "  t: {shape: [5, 3], init: {uniform: [0, 1]}}\n" \
    "  y: {shape: [5], dtype: i32, init: {integers: [0, 3]}}\n  s: {shape: []}\n"
#define LOSS_X "  x: {shape: [5, 3], init: normal}\n"

static void derivatives_are_multiplied_by_dy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
        char text[1000];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n" LOSS_X LOSS_INPUTS "ops:\n"
                 "  - {op: %s.bwd, name: a, %s, %s: plain}\n"
                 "  - {op: %s.bwd, name: b, %s, %s: scaled, dy: s}\n"
                 "outputs: [plain, scaled]\n",
                 losses[i].op, losses[i].fields, losses[i].out, losses[i].op,
                 losses[i].fields, losses[i].out);
        test_walk model = test_walk_parse(text, "", GX_TRAIN, test_seed());

        model.exact = true;
        *test_walk_tensor(&model, "s") = -24.5;
        test_walk_step(&model);
        for (int k = 0; k < 15; k++)
            assert_near(test_walk_tensor(&model, "scaled")[k],
                        -24.5 * test_walk_tensor(&model, "plain")[k], 1e-14);
        test_walk_free(&model);
    }
}

/* With a scale of 2^k every gradient is that without one, times 2^k to the bit. */
static void every_loss_takes_the_scale(void **state)
{
    const uint64_t seed = test_seed();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
        test_walk model[2];

        for (int with = 0; with < 2; with++) {
            char text[1000];

            snprintf(text, sizeof text,
                     "gexec: 1\nname: m\nprecision: f32\ninputs:\n" LOSS_INPUTS
                     "params:\n" LOSS_X "ops:\n  - {op: %s, name: loss, %s}\n"
                     "backward: loss\noptimizer: {sgd: {lr: 0.1}%s}\n"
                     "outputs: [x.grad, loss]\n",
                     losses[i].op, losses[i].fields, with ? ", loss_scale: 4096" : "");
            model[with] = test_walk_parse(text, "", GX_TRAIN, seed);
            test_walk_step(&model[with]);
        }
        assert_near(*test_walk_tensor(&model[1], "loss"),
                    *test_walk_tensor(&model[0], "loss"), 0);
        for (int k = 0; k < 15; k++) {
            assert_near(test_walk_tensor(&model[1], "x.grad")[k],
                        4096 * test_walk_tensor(&model[0], "x.grad")[k], 0);
            assert_near(test_walk_tensor(&model[1], "x")[k],
                        test_walk_tensor(&model[0], "x")[k], 1e-7);
        }
        test_walk_free(&model[0]);
        test_walk_free(&model[1]);
    }
}

static void dy_is_a_scalar_in_f32(void **state)
{
    static const char *const wrong[][2] = { { "y", "dy is i32, expected f32" },
                                            { "t", "dy has shape [5, 3], expected" } };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(losses); i++) {
        char text[1000];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\ninputs:\n" LOSS_X LOSS_INPUTS
                 "ops:\n  - {op: %s.bwd, name: a, %s, %s: z, dy: %s}\n",
                 losses[i / 2].op, losses[i / 2].fields, losses[i / 2].out,
                 wrong[i % 2][0]);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        assert_has(mistakes, wrong[i % 2][1]);
        free(mistakes);
    }
}

/* One kernel for a loss and its derivative cannot read what it is about to write. */
static void a_loss_does_not_scale_its_own_derivative(void **state)
{
    const gx_alternative *alternative;
    double place[4];
    int n = 0;

    (void)state;
    for (size_t i = 0; (alternative = gx_alternative_at(i)); i++) {
        const gx_op *loss = gx_op_find(alternative->pattern[0]);

        if (!loss->loss || !alternative->pattern[1])
            continue;
        const bool sums = alternative->pattern[2] != NULL; /* the columns of dx, too */
        gx_call call[3] = { { .op = loss },
                            { .op = gx_op_find(alternative->pattern[1]) },
                            { .op = sums ? gx_op_find(alternative->pattern[2]) : NULL } };
        const gx_group group = { .n_calls = sums ? 3 : 2, .call = call };

        for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
            call[0].arg[arg].rank = arg < 3 ? 0 : -1;
            call[0].arg[arg].data = &place[arg < 3 ? arg : 0];
            call[1].arg[arg] = call[0].arg[arg];
            call[2].arg[arg].rank = -1;
        }
        call[1].arg[GX_MSE_BWD_DX].data = &place[3];
        call[2].arg[GX_EPILOGUE_BWD_DY] = call[1].arg[GX_MSE_BWD_DX];
        assert_null(alternative->refuses(&group, NULL));
        call[1].arg[GX_MSE_BWD_DY] = call[0].arg[GX_MSE_OUT];
        assert_string_equal(alternative->refuses(&group, NULL),
                            "the derivative is scaled by the loss");
        n++;
    }
    if (gx_alternative_at(0))
        assert_int_equal(n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_are_multiplied_by_dy),
        cmocka_unit_test(every_loss_takes_the_scale),
        cmocka_unit_test(dy_is_a_scalar_in_f32),
        cmocka_unit_test(a_loss_does_not_scale_its_own_derivative),
    };

    return cmocka_run_group_tests_name("loss_dy", tests, NULL, NULL);
}
