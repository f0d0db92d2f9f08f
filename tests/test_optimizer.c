/* Optimizers against plain loops with PyTorch's formulas, and how they enter a program.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"
#define MODEL                                         \
    HEAD "inputs:\n  t: {shape: [5], init: normal}\n" \
         "params:\n  p: {shape: [5], init: normal}\n" \
         "ops:\n  - {op: mse, name: loss, x: p, target: t}\nbackward: loss\n"

enum { N = 5, STEPS = 5 };

/* torch.optim.AdamW, one tensor: decay, moments, bias corrections, denominator. */
typedef struct adamw {
    double p[N], m[N], v[N];
    double lr, beta1, beta2, eps, decay;
    int t;
} adamw;

static void adamw_step(adamw *a, const double *g)
{
    a->t++;
    const double c1 = 1 - pow(a->beta1, a->t), c2 = 1 - pow(a->beta2, a->t);

    for (int i = 0; i < N; i++) {
        a->p[i] -= a->lr * a->decay * a->p[i];
        a->m[i] = a->beta1 * a->m[i] + (1 - a->beta1) * g[i];
        a->v[i] = a->beta2 * a->v[i] + (1 - a->beta2) * g[i] * g[i];
        a->p[i] -= a->lr / c1 * a->m[i] / (sqrt(a->v[i]) / sqrt(c2) + a->eps);
    }
}

static void run_adamw(const char *settings, adamw expected)
{
    char text[700];

    snprintf(text, sizeof text, MODEL "optimizer: {adamw: {%s}}\n", settings);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());

    model.exact = true;
    *test_walk_tensor(&model, "gexec.lr") = expected.lr; /* a double, not its f32 */
    memcpy(expected.p, test_walk_tensor(&model, "p"), sizeof expected.p);
    for (int step = 1; step <= STEPS; step++) {
        test_walk_step(&model);
        adamw_step(&expected, test_walk_tensor(&model, "p.grad"));
        assert_true(test_error(test_walk_tensor(&model, "p"), expected.p, N) < 1e-12);
        assert_true(test_error(test_walk_tensor(&model, "p.m"), expected.m, N) < 1e-12);
        assert_true(test_error(test_walk_tensor(&model, "p.v"), expected.v, N) < 1e-12);
        assert_true(*test_walk_tensor(&model, "gexec.step") == step);
    }
    test_walk_free(&model);
}

static void adamw_is_that_of_torch(void **state)
{
    (void)state;
    run_adamw(
        "",
        (adamw){ .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01 });
    run_adamw(
        "lr: 0.5, beta1: 0.5, beta2: 0.9, eps: 1.0e-2, weight_decay: 0.3",
        (adamw){ .lr = 0.5, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-2, .decay = 0.3 });
    run_adamw("beta1: 0, weight_decay: 0",
              (adamw){ .lr = 1e-3, .beta1 = 0, .beta2 = 0.999, .eps = 1e-8, .decay = 0 });
}

static void sgd_is_that_of_torch(void **state)
{
    test_walk model =
        test_walk_parse(MODEL "optimizer: {sgd: {lr: 0.25, weight_decay: 0.1}}\n", "f32",
                        GX_TRAIN, test_seed());
    double expected[N];

    (void)state;
    model.exact = true;
    memcpy(expected, test_walk_tensor(&model, "p"), sizeof expected);
    for (int step = 0; step < STEPS; step++) {
        test_walk_step(&model);
        for (int i = 0; i < N; i++)
            expected[i] -=
                0.25 * (test_walk_tensor(&model, "p.grad")[i] + 0.1 * expected[i]);
        assert_true(test_error(test_walk_tensor(&model, "p"), expected, N) < 1e-12);
    }
    test_walk_free(&model);
}

/* --- every row over many steps, on gradients of any kind --- */

/* One parameter as torch.optim keeps it, in torch's own order of operations. */
typedef struct torch_param {
    const char *optimizer;
    double p[N], first[N], second[N];
    double lr, decay, momentum, dampening, beta1, beta2, eps;
    int t;
} torch_param;

static void torch_sgd(torch_param *a, const double *grad)
{
    const bool nesterov = strcmp(a->optimizer, "nesterov") == 0;
    const bool plain = strcmp(a->optimizer, "sgd") == 0;

    for (int i = 0; i < N; i++) {
        double d_p = grad[i];

        if (a->decay > 0)
            d_p += a->decay * a->p[i];
        if (!plain) {
            if (a->t == 0)
                a->first[i] = d_p; /* buf = clone(d_p) */
            else
                a->first[i] = a->first[i] * a->momentum + d_p * (1 - a->dampening);
            d_p = nesterov ? d_p + a->first[i] * a->momentum : a->first[i];
        }
        a->p[i] += -a->lr * d_p;
    }
    a->t++;
}

static void torch_adam(torch_param *a, const double *grad)
{
    const bool decoupled = strcmp(a->optimizer, "adamw") == 0;

    a->t++;
    const double correction1 = 1 - pow(a->beta1, a->t);
    const double correction2 = 1 - pow(a->beta2, a->t);
    const double step_size = a->lr / correction1;

    for (int i = 0; i < N; i++) {
        double g = grad[i];

        if (decoupled)
            a->p[i] *= 1 - a->lr * a->decay;
        else if (a->decay > 0)
            g += a->decay * a->p[i];
        a->first[i] = a->first[i] * a->beta1 + g * (1 - a->beta1);
        a->second[i] = a->second[i] * a->beta2 + g * g * (1 - a->beta2);
        const double denominator = sqrt(a->second[i]) / sqrt(correction2) + a->eps;

        a->p[i] += -step_size * (a->first[i] / denominator);
    }
}

/* A gradient that is given: p.grad is what g holds. */
#define GIVEN                                                                         \
    HEAD "inputs:\n  g: {shape: [5], init: normal}\n  z: {shape: [5], init: zeros}\n" \
         "params:\n  p: {shape: [5], init: normal}\n"                                 \
         "ops:\n  - {op: add, name: sum, a: g, b: z, out: p.grad}\n"

static void check_50_steps(torch_param expected, const char *settings)
{
    const bool adam = strncmp(expected.optimizer, "adam", 4) == 0;
    test_random random = test_random_start(test_seed());
    char text[700];

    snprintf(text, sizeof text, GIVEN "optimizer: {%s: {%s}}\n", expected.optimizer,
             settings);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());

    model.exact = true;
    *test_walk_tensor(&model, "gexec.lr") = expected.lr;
    memcpy(expected.p, test_walk_tensor(&model, "p"), sizeof expected.p);
    for (int step = 0; step < 50; step++) {
        double *grad = test_walk_tensor(&model, "g");

        for (int i = 0; i < N; i++)
            grad[i] = test_random_real(&random, -2, 2) * (step % 7 == 3 ? 1e-3 : 1);
        test_walk_step(&model);
        if (adam)
            torch_adam(&expected, grad);
        else
            torch_sgd(&expected, grad);
        assert_true(test_error(test_walk_tensor(&model, "p"), expected.p, N) < 1e-11);
        if (strcmp(expected.optimizer, "sgd") != 0)
            assert_true(test_error(test_walk_tensor(&model, adam ? "p.m" : "p.buf"),
                                   expected.first, N) < 1e-11);
    }
    test_walk_free(&model);
}

static void every_optimizer_is_that_of_torch_for_50_steps(void **state)
{
    const torch_param sgd = { .optimizer = "sgd", .lr = 0.1 };
    const torch_param heavy = { .optimizer = "momentum", .lr = 0.1, .momentum = 0.9 };
    const torch_param adam = {
        .optimizer = "adam", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
    };
    torch_param x;

    (void)state;
    check_50_steps(sgd, "lr: 0.1");
    x = sgd, x.decay = 0.2;
    check_50_steps(x, "lr: 0.1, weight_decay: 0.2");
    check_50_steps(heavy, "lr: 0.1");
    x = heavy, x.momentum = 0.5, x.dampening = 0.25, x.decay = 0.1;
    check_50_steps(x, "lr: 0.1, momentum: 0.5, dampening: 0.25, weight_decay: 0.1");
    x = heavy, x.dampening = 1;
    check_50_steps(x, "lr: 0.1, dampening: 1");
    x = heavy, x.optimizer = "nesterov";
    check_50_steps(x, "lr: 0.1");
    x.momentum = 0.7, x.decay = 0.3;
    check_50_steps(x, "lr: 0.1, momentum: 0.7, weight_decay: 0.3");
    check_50_steps(adam, "");
    x = adam, x.lr = 0.05, x.decay = 0.1, x.beta1 = 0.5, x.beta2 = 0.9, x.eps = 1e-2;
    check_50_steps(x, "lr: 0.05, weight_decay: 0.1, beta1: 0.5, beta2: 0.9, eps: 1e-2");
    x.optimizer = "adamw";
    check_50_steps(x, "lr: 0.05, weight_decay: 0.1, beta1: 0.5, beta2: 0.9, eps: 1e-2");
    x = adam, x.optimizer = "adamw", x.decay = 0.01;
    check_50_steps(x, "");
}

/* The rate is read from memory at each step: half of it, half the step (B03). */
static void the_rate_is_read_at_each_step(void **state)
{
    test_walk model = test_walk_parse(MODEL "optimizer: {sgd: {lr: 0.5}}\n", "f32",
                                      GX_TRAIN, test_seed());
    double before[N];

    (void)state;
    assert_true(*test_walk_tensor(&model, "gexec.lr") == 0.5);
    assert_true(gx_graph_rate(model.graph) == 0.5);
    model.exact = true;
    *test_walk_tensor(&model, "gexec.lr") = 0.125;
    memcpy(before, test_walk_tensor(&model, "p"), sizeof before);
    test_walk_step(&model);
    for (int i = 0; i < N; i++)
        assert_true(fabs(before[i] - test_walk_tensor(&model, "p")[i] -
                         0.125 * test_walk_tensor(&model, "p.grad")[i]) < 1e-15);
    test_walk_free(&model);
}

static void moments_have_the_parameters_type(void **state)
{
    test_walk model =
        test_walk_parse(MODEL "optimizer: {adamw: {}}\n", "bf16", GX_TRAIN, 1);

    (void)state;
    for (const char *const *name =
             (const char *const[]){ "p", "p.grad", "p.m", "p.v", NULL };
         *name; name++) {
        const gx_value_info info =
            gx_graph_value(model.graph, (size_t)gx_graph_find(model.graph, *name));

        assert_int_equal(info.dtype, GX_BF16);
        assert_int_equal(info.rank, 1);
    }
    assert_int_equal(
        gx_graph_value(model.graph, (size_t)gx_graph_find(model.graph, "p.m")).kind,
        GX_VALUE_STATE);
    test_walk_free(&model);
}

/* A gradient that the model makes itself is taken by its name. */
static void hand_written_gradients_are_found_by_name(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  t: {shape: [5], init: normal}\n"
             "params:\n  p: {shape: [5], init: normal}\n  q: {shape: [5], init: normal}\n"
             "ops:\n  - {op: mse.bwd, name: g, x: p, target: t, dx: p.grad}\n"
             "optimizer: {sgd: {lr: 1}}\n",
        "f32", GX_TRAIN, test_seed());
    double p[N], q[N];

    (void)state;
    model.exact = true;
    memcpy(p, test_walk_tensor(&model, "p"), sizeof p);
    memcpy(q, test_walk_tensor(&model, "q"), sizeof q);
    test_walk_step(&model);
    assert_memory_equal(q, test_walk_tensor(&model, "q"), sizeof q);
    for (int i = 0; i < N; i++)
        assert_true(test_walk_tensor(&model, "p")[i] ==
                    p[i] - test_walk_tensor(&model, "p.grad")[i]);
    test_walk_free(&model);
}

static void evaluation_has_no_optimizer_and_counters_of_its_own(void **state)
{
    test_walk model = test_walk_parse(MODEL "optimizer: {adamw: {}}\noutputs: [p.grad]\n",
                                      "f32", GX_EVAL, 1);

    (void)state;
    assert_true(gx_graph_value_id(model.graph, "p.m") < 0);
    assert_true(gx_graph_value_id(model.graph, "p.grad") < 0);
    assert_true(gx_graph_value_id(model.graph, "gexec.step") < 0);
    assert_true(gx_graph_value_id(model.graph, "gexec.eval.step") >= 0);
    assert_int_equal(model.graph->n_nodes, 2); /* the loss, and the end of the step */
    assert_string_equal(gx_graph_logged(model.graph, 0), "loss");
    test_walk_free(&model);
}

static void bad_settings_are_named(void **state)
{
    static const struct {
        const char *section, *message;
    } cases[] = {
        { "optimizer: {admw: {}}\n",
          "there is no optimizer \"admw\"; did you mean \"adamw\"?" },
        { "optimizer: {gemm: {}}\n",
          "there is no optimizer \"gemm\"; there are sgd, momentum, nesterov, adam, "
          "adamw" },
        { "optimizer: {accumulate: {}}\n", "expected one optimizer" },
        { "optimizer: {momentum: {lr: 1, dampening: 2}}\n",
          "dampening is 2, expected 0 to 1" },
        { "optimizer: {nesterov: {lr: 1, dampening: 0.5}}\n",
          "nesterov has no setting \"dampening\"" },
        { "optimizer: {adam: {grad_norm: 1}}\n", "adam has no setting \"grad_norm\"" },
        { "optimizer: {adamw: {learning_rate: 1}}\n",
          "adamw has no setting \"learning_rate\"" },
        { "optimizer: {adamw: {weight_deca: 1}}\n",
          "adamw has no setting \"weight_deca\"; did you mean \"weight_decay\"?" },
        { "optimizer: {adamw: {m: p}}\n", "adamw has no setting \"m\"" },
        { "optimizer: {adamw: {lr: 1e-4x}}\n",
          "lr is \"1e-4x\", expected a number, 0 or more" },
        { "optimizer: {adamw: {lr: -1}}\n",
          "lr is \"-1\", expected a number, 0 or more" },
        { "optimizer: {adamw: {beta1: 1}}\n",
          "beta1 is 1, expected 0 or more and less than 1" },
        { "optimizer: {adamw: {eps: -1}}\n", "eps is -1, expected 0 or more" },
        { "optimizer: {sgd: {}}\n", "sgd lacks the setting \"lr\": a number" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *text = test_walk_text(MODEL, "f32"), all[1500];

        snprintf(all, sizeof all, "%s%s", text, cases[i].section);
        char *mistakes = test_walk_mistakes(all, GX_TRAIN);

        assert_has(mistakes, cases[i].message);
        /* once, however many parameters there are */
        assert_null(strstr(strstr(mistakes, cases[i].message) + 1, cases[i].message));
        free(mistakes);
        free(text);
    }
}

static void an_optimizer_without_gradients_is_refused(void **state)
{
    char *mistakes = test_walk_mistakes(
        "gexec: 1\nname: m\ninputs:\n  t: {shape: [5]}\nparams:\n  p: {shape: [5]}\n"
        "ops:\n  - {op: mse, name: loss, x: p, target: t}\noptimizer: {sgd: {lr: 1}}\n",
        GX_TRAIN);

    (void)state;
    assert_has(mistakes, "the optimizer finds no gradients: expected `backward: LOSS`");
    free(mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_is_that_of_torch),
        cmocka_unit_test(sgd_is_that_of_torch),
        cmocka_unit_test(every_optimizer_is_that_of_torch_for_50_steps),
        cmocka_unit_test(the_rate_is_read_at_each_step),
        cmocka_unit_test(moments_have_the_parameters_type),
        cmocka_unit_test(hand_written_gradients_are_found_by_name),
        cmocka_unit_test(evaluation_has_no_optimizer_and_counters_of_its_own),
        cmocka_unit_test(bad_settings_are_named),
        cmocka_unit_test(an_optimizer_without_gradients_is_refused),
    };

    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
