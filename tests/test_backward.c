/* Derived gradients against central differences, all in double. */
#include <stdio.h>
#include <string.h>

#include "ops.h"
#include "support_gradients.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\n"

static void every_sample_with_a_backward_pass_is_right(void **state)
{
    int n = 0;

    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        for (const char *const *text = gx_op_at(i)->samples; *text; text++) {
            if (!strstr(*text, "backward:"))
                continue;
            test_gradients(*text, -1);
            n++;
        }
    }
    assert_true(n >= 15);
}

/* y1 is read by the next layer, and again further on, as in a residual net of 8 layers.
 */
static void values_read_twice_get_both_gradients(void **state)
{
    (void)state;
    test_gradients(
        HEAD
        "inputs:\n  x: {shape: [5, 6], init: normal}\n  t: {shape: [5, 6], init: "
        "normal}\n"
        "params:\n  w0: {shape: [6, 6], init: he_normal}\n  w1: {shape: [6, 6], init: "
        "he_normal}\n"
        "  w2: {shape: [6, 6], init: he_normal}\n  b: {shape: [6], init: normal}\n"
        "ops:\n"
        "  - {op: gemm, name: h1, a: x, b: w0, epilogue: {bias: b, act: gelu_tanh}}\n"
        "  - {op: gemm, name: g2, a: h1, b: w1, epilogue: {bias: b, act: gelu_tanh}}\n"
        "  - {op: add, name: h2, a: h1, b: g2}\n"
        "  - {op: gemm, name: g3, a: h2, b: w2, epilogue: {act: gelu_tanh}}\n"
        "  - {op: add, name: h3, a: h2, b: g3}\n"
        "  - {op: gemm, name: g4, a: h3, b: w1, trans_b: true}\n"
        "  - {op: add, name: h4, a: h1, b: g4}\n"
        "  - {op: add, name: h5, a: h4, b: h4}\n"
        "  - {op: relu, name: y, x: h5}\n"
        "  - {op: mse, name: loss, x: y, target: t}\n"
        "backward: loss\n",
        4);
}

static void a_product_of_a_parameter_with_itself_is_right(void **state)
{
    (void)state;
    test_gradients(HEAD "inputs:\n  t: {shape: [4, 4], init: normal}\n"
                        "params:\n  w: {shape: [4, 4], init: normal}\n"
                        "ops:\n  - {op: gemm, name: y, a: w, b: w, trans_a: true}\n"
                        "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
                   1);
}

/* All four pairs of transposes, the weight on either side, sizes all different (G11). */
static void every_pair_of_transposes_is_right(void **state)
{
    (void)state;
    for (int flags = 0; flags < 8; flags++) {
        const bool ta = flags & 1, tb = flags & 2, left = flags & 4;
        char text[1000];

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  x: {shape: %s, init: normal}\n  t: {shape: [3, 5], "
                      "init: normal}\n"
                      "params:\n  w: {shape: %s, init: normal}\nops:\n"
                      "  - {op: gemm, name: y, a: %s, b: %s, trans_a: %s, trans_b: %s}\n"
                      "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
                      "outputs: [x.grad]\n",
                 left ? (tb ? "[5, 7]" : "[7, 5]") : (ta ? "[7, 3]" : "[3, 7]"),
                 left ? (ta ? "[7, 3]" : "[3, 7]") : (tb ? "[5, 7]" : "[7, 5]"),
                 left ? "w" : "x", left ? "x" : "w", ta ? "true" : "false",
                 tb ? "true" : "false");
        test_gradients(text, 2);
    }
}

static void a_sum_of_losses_and_a_trained_target_are_right(void **state)
{
    (void)state;
    test_gradients(
        HEAD "inputs:\n  x: {shape: [4, 3], init: normal}\n"
             "  y: {shape: [4], dtype: i32, init: {integers: [0, 3]}}\n"
             "params:\n  p: {shape: [4, 3], init: normal}\n"
             "  q: {shape: [4, 3], init: normal}\n"
             "ops:\n  - {op: softmax_cross_entropy, name: one, logits: p, labels: y}\n"
             "  - {op: mse, name: two, x: p, target: q}\n"
             "  - {op: add, name: loss, a: one, b: two}\nbackward: loss\n",
        2);
}

/* `pre` is read by the model itself, beside what the derivative needs of it. */
static void a_gradient_through_pre_is_right(void **state)
{
    static const char *const act[] = { "none", "relu", "gelu_tanh" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int both = 0; both < 2; both++) {
            char text[1000];

            snprintf(text, sizeof text,
                     HEAD "inputs:\n  t: {shape: [4, 3], init: normal}\n"
                          "params:\n  x: {shape: [4, 3], init: normal}\n  b: {shape: "
                          "[3], init: normal}\n"
                          "ops:\n  - {op: epilogue, name: e, x: x, bias: b, act: %s, "
                          "pre: p, out: y}\n"
                          "  - {op: add, name: s, a: p, b: %s}\n"
                          "  - {op: mse, name: loss, x: s, target: t}\nbackward: loss\n",
                     act[i], both ? "y" : "p");
            test_gradients(text, 2);
        }
    }
}

/* gemm.bwd with every transpose and activation against the derivative of gemm. */
static void gemm_bwd_equals_the_derivative_of_gemm(void **state)
{
    static const struct {
        const char *act, *kept;
    } acts[] = { { "none", "" }, { "relu", ", y: y" }, { "gelu_tanh", ", pre: p" } };
    const uint64_t seed = test_run_seed();

    (void)state;
    for (int flags = 0; flags < 12; flags++) {
        const bool ta = flags & 1, tb = flags & 2;
        const int act = flags / 4;
        const char *ta_text = ta ? "true" : "false", *tb_text = tb ? "true" : "false";
        char text[2000];

        snprintf(
            text, sizeof text,
            HEAD
            "inputs:\n  t: {shape: [3, 5], init: normal}\n"
            "params:\n  a: {shape: %s, init: normal}\n  w: {shape: %s, init: normal}\n"
            "  b: {shape: [5], init: normal}\nops:\n"
            "  - {op: gemm, name: q, a: a, b: w, trans_a: %s, trans_b: %s}\n"
            "  - {op: epilogue, name: y, x: q, bias: b, act: %s, pre: p}\n"
            "  - {op: mse, name: loss, x: y, target: t}\n"
            "  - {op: mse.bwd, name: dy, x: y, target: t}\n"
            "  - {op: gemm.bwd, name: g, a: a, b: w, dy: dy%s, trans_a: %s, trans_b: %s, "
            "epilogue: {act: %s}, da: da, db: db, dbias: dbias}\n"
            "backward: loss\n",
            ta ? "[7, 3]" : "[3, 7]", tb ? "[5, 7]" : "[7, 5]", ta_text, tb_text,
            acts[act].act, acts[act].kept, ta_text, tb_text, acts[act].act);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, seed);

        test_walk_step(&model);
        assert_memory_equal(test_walk_tensor(&model, "da"),
                            test_walk_tensor(&model, "a.grad"), 21 * sizeof(double));
        assert_memory_equal(test_walk_tensor(&model, "db"),
                            test_walk_tensor(&model, "w.grad"), 35 * sizeof(double));
        assert_memory_equal(test_walk_tensor(&model, "dbias"),
                            test_walk_tensor(&model, "b.grad"), 5 * sizeof(double));
        test_walk_free(&model);
    }
}

/* A gradient that is another tensor's still has a tensor of its own name. */
static void a_parameter_that_is_only_added_has_a_gradient_by_name(void **state)
{
    (void)state;
    test_gradients(HEAD "inputs:\n  x: {shape: [3, 2], init: normal}\n"
                        "  t: {shape: [3, 2], init: normal}\n"
                        "params:\n  p: {shape: [3, 2], init: normal}\n"
                        "ops:\n  - {op: add, name: y, a: x, b: p}\n"
                        "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
                        "outputs: [p.grad, x.grad]\n",
                   2);
}

static void a_scalar_that_is_only_added_has_a_gradient_by_name(void **state)
{
    (void)state;
    test_gradients(HEAD "inputs:\n  g: {shape: [], init: normal}\n"
                        "params:\n  p: {shape: [], init: normal}\n"
                        "  q: {shape: [], init: normal}\n"
                        "ops:\n  - {op: add, name: y, a: p, b: q}\n"
                        "  - {op: mul, name: z, a: y, b: g}\n"
                        "  - {op: mul, name: s, a: z, b: z}\n"
                        "  - {op: sum, name: loss, x: s}\nbackward: loss\n",
                   2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_with_a_backward_pass_is_right),
        cmocka_unit_test(values_read_twice_get_both_gradients),
        cmocka_unit_test(a_product_of_a_parameter_with_itself_is_right),
        cmocka_unit_test(every_pair_of_transposes_is_right),
        cmocka_unit_test(a_sum_of_losses_and_a_trained_target_are_right),
        cmocka_unit_test(a_gradient_through_pre_is_right),
        cmocka_unit_test(gemm_bwd_equals_the_derivative_of_gemm),
        cmocka_unit_test(a_parameter_that_is_only_added_has_a_gradient_by_name),
        cmocka_unit_test(a_scalar_that_is_only_added_has_a_gradient_by_name),
    };

    return cmocka_run_group_tests_name("backward", tests, NULL, NULL);
}
