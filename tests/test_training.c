/* What stands beside an optimizer: schedules, clipping, accumulation, groups. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support_walk.h"

enum { N = 5 };

/* Parameters whose gradients are given: p.grad is what gp holds, q.grad gq, r.grad gr. */
#define HEAD                                                                        \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  gp: {shape: [5], init: normal}\n" \
    "  gq: {shape: [5], init: normal}\n  gr: {shape: [5], init: normal}\n"          \
    "  z: {shape: [5], init: zeros}\n"                                              \
    "params:\n  p: {shape: [5], init: normal}\n  q: {shape: [5], init: normal}\n"   \
    "  blk.r: {shape: [5], init: normal}\n"                                         \
    "ops:\n  - {op: add, name: sp, a: gp, b: z, out: p.grad}\n"                     \
    "  - {op: add, name: sq, a: gq, b: z, out: q.grad}\n"                           \
    "  - {op: add, name: sr, a: gr, b: z, out: blk.r.grad}\n"

static const char *const params[] = { "p", "q", "blk.r" };
static const char *const inputs[] = { "gp", "gq", "gr" };

static test_walk parse(const char *section, const char *more, gx_kind kind)
{
    char text[2000];

    snprintf(text, sizeof text, HEAD "optimizer: {%s}\n%s", section, more);
    test_walk model = test_walk_parse(text, "f32", kind, 77);

    model.exact = true;
    return model;
}

static void set_gradients(const test_walk *model, double values[3][N])
{
    for (int k = 0; k < 3; k++)
        memcpy(test_walk_tensor(model, inputs[k]), values[k], sizeof values[k]);
}

static void draw(test_random *random, double values[3][N])
{
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++)
            values[k][i] = test_random_real(random, -1, 1);
    }
}

static double cell(const test_walk *model, const char *name)
{
    return *test_walk_tensor(model, name);
}

static void assert_near(double x, double y)
{
    if (!(fabs(x - y) <= 1e-12 * (1 + fabs(y)))) {
        print_error("%.17g is not %.17g\n", x, y);
        fail();
    }
}

/* --- schedules --- */

/* The recursive forms in which torch's schedulers go from one rate to the next. */
static double torch_step_lr(double lr, int t, int every, double gamma)
{
    return t % every == 0 ? lr * gamma : lr;
}

static double torch_cosine(double lr, int t, int t_max, double eta)
{
    const double pi = acos(-1.0);

    return (1 + cos(pi * t / t_max)) / (1 + cos(pi * (t - 1) / t_max)) * (lr - eta) + eta;
}

static double torch_linear(double lr, int t, double start, double end, int total)
{
    if (t > total)
        return lr;
    return lr * (1 + (end - start) / (total * start + (t - 1) * (end - start)));
}

static double next_rate(test_walk *model)
{
    test_walk_step(model);
    return cell(model, "gexec.rate");
}

static void a_stepped_rate_is_that_of_torch(void **state)
{
    test_walk model = parse("sgd: {lr: 0.5}, schedule: {step: {every: 3, factor: 0.7}}",
                            "outputs: [gexec.rate]\n", GX_TRAIN);
    double lr = 0.5;

    (void)state;
    assert_near(next_rate(&model), lr);
    for (int t = 1; t < 50; t++) {
        lr = torch_step_lr(lr, t, 3, 0.7);
        assert_near(next_rate(&model), lr);
    }
    test_walk_free(&model);
}

static void a_cosine_rate_is_that_of_torch(void **state)
{
    test_walk model =
        parse("sgd: {lr: 0.5}, schedule: {cosine: {steps: 40, warmup: 10, end: 0.1}}",
              "outputs: [gexec.rate]\n", GX_TRAIN);
    double lr = 0.05;

    (void)state;
    /* LinearLR(start_factor=1/10, total_iters=9), then CosineAnnealingLR(T_max=30) */
    assert_near(next_rate(&model), lr);
    for (int t = 1; t < 10; t++) {
        lr = torch_linear(lr, t, 0.1, 1, 9);
        assert_near(next_rate(&model), lr);
    }
    assert_near(lr, 0.5);
    assert_near(next_rate(&model), lr);
    for (int t = 1; t <= 30; t++) {
        lr = torch_cosine(lr, t, 30, 0.05);
        assert_near(next_rate(&model), lr);
    }
    assert_near(lr, 0.05);
    for (int t = 0; t < 20; t++)
        assert_near(next_rate(&model), 0.05); /* and it stays there */
    test_walk_free(&model);
}

static void a_linear_rate_is_that_of_torch(void **state)
{
    test_walk model = parse("sgd: {lr: 2}, schedule: {linear: {steps: 20, end: 0.25}}",
                            "outputs: [gexec.rate]\n", GX_TRAIN);
    double lr = 2;

    (void)state;
    assert_near(next_rate(&model), lr);
    for (int t = 1; t < 30; t++) {
        lr = torch_linear(lr, t, 1, 0.25, 20);
        assert_near(next_rate(&model), lr);
    }
    assert_near(lr, 0.5);
    test_walk_free(&model);
}

static void a_constant_rate_rises_in_its_warm_up(void **state)
{
    test_walk model = parse("sgd: {lr: 3}, schedule: {constant: {warmup: 4}}",
                            "outputs: [gexec.rate]\n", GX_TRAIN);
    test_walk plain = parse("sgd: {lr: 3}, schedule: constant", "", GX_TRAIN);
    static const double rates[] = { 0.75, 1.5, 2.25, 3, 3, 3 };

    (void)state;
    for (size_t t = 0; t < ARRAY_SIZE(rates); t++) {
        assert_near(next_rate(&model), rates[t]);
        assert_near(next_rate(&plain), 3);
    }
    assert_string_equal(gx_graph_logged(model.graph, 0), "gexec.rate");
    test_walk_free(&plain);
    test_walk_free(&model);
}

/* Also one that was saved: the count is all that the rate hangs on. */
static void a_rate_follows_the_count_and_the_base(void **state)
{
    test_walk model =
        parse("sgd: {lr: 1}, schedule: {cosine: {steps: 1000}}", "", GX_TRAIN);
    double before[N];

    (void)state;
    *test_walk_tensor(&model, "gexec.step") = 500;
    assert_near(next_rate(&model), 0.5);
    *test_walk_tensor(&model, "gexec.step") = 999;
    assert_near(next_rate(&model), (1 + cos(acos(-1.0) * 0.999)) / 2);
    *test_walk_tensor(&model, "gexec.step") = INT32_MAX - 1;
    assert_near(next_rate(&model), 0);
    /* the base is read at each step, not kept (B03) */
    *test_walk_tensor(&model, "gexec.step") = 500;
    *test_walk_tensor(&model, "gexec.lr") = 0.25;
    memcpy(before, test_walk_tensor(&model, "p"), sizeof before);
    assert_near(next_rate(&model), 0.125);
    for (int i = 0; i < N; i++)
        assert_near(test_walk_tensor(&model, "p")[i],
                    before[i] - 0.125 * test_walk_tensor(&model, "gp")[i]);
    test_walk_free(&model);
}

/* --- clipping --- */

static double norm_of(double values[3][N])
{
    double sum = 0;

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++)
            sum += values[k][i] * values[k][i];
    }
    return sqrt(sum);
}

/* One step of sgd with rate 1: the parameters move by the clipped gradients. */
static void check_clip(double most, double values[3][N])
{
    char section[100];
    double before[3][N];
    const double norm = norm_of(values);
    const double factor = fmin(1, most / (norm + 1e-6));

    snprintf(section, sizeof section, "sgd: {lr: 1}, clip_norm: %.17g", most);
    test_walk model = parse(section, "metrics: {grad_norm: {}}\n", GX_TRAIN);

    set_gradients(&model, values);
    for (int k = 0; k < 3; k++)
        memcpy(before[k], test_walk_tensor(&model, params[k]), sizeof before[k]);
    test_walk_step(&model);
    assert_near(cell(&model, "grad_norm"), norm);
    assert_near(cell(&model, "gexec.clip"), factor);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++)
            assert_near(test_walk_tensor(&model, params[k])[i],
                        before[k][i] - factor * values[k][i]);
    }
    assert_string_equal(gx_graph_logged(model.graph, 0), "grad_norm");
    assert_near(test_walk_tensor(&model, "gexec.log")[0], norm);
    test_walk_free(&model);
}

static void gradients_are_clipped_as_torch_does(void **state)
{
    double zero[3][N] = { { 0 } };
    test_random random = test_random_start(test_seed());
    double values[3][N];

    (void)state;
    draw(&random, values);
    const double norm = norm_of(values);

    check_clip(norm / 3, values);
    check_clip(norm, values); /* norm / (norm + 1e-6): a little less than 1 */
    check_clip(norm + 1e-6, values);
    check_clip(3 * norm, values);
    check_clip(1, zero);
    for (int i = 0; i < N; i++)
        values[1][i] *= 1e25; /* the squares leave the range of f32 */
    check_clip(1, values);
}

static void a_gradient_that_is_no_number_is_seen(void **state)
{
    test_walk model = parse("sgd: {lr: 1}, clip_norm: 1", "", GX_TRAIN);
    double values[3][N] = { { 1, 2, NAN, 4, 5 } };

    (void)state;
    set_gradients(&model, values);
    test_walk_step(&model);
    assert_true(isnan(cell(&model, "gexec.grad_norm")));
    assert_true(isnan(test_walk_tensor(&model, "q")[0]));
    test_walk_free(&model);
}

/* The metric alone changes nothing; it has the name that it is given. */
static void the_norm_is_a_metric(void **state)
{
    test_walk with =
        parse("sgd: {lr: 0.5}", "metrics: {gn: {op: grad_norm}}\n", GX_TRAIN);
    test_walk without = parse("sgd: {lr: 0.5}", "", GX_TRAIN);
    test_walk bare =
        test_walk_parse(HEAD "metrics: {grad_norm: {}}\n", "f32", GX_TRAIN, 77);
    test_walk eval =
        parse("sgd: {lr: 0.5}, clip_norm: 1",
              "metrics: {gn: {op: grad_norm}}\noutputs: [gn, gexec.clip]\n", GX_EVAL);
    double sum = 0;

    (void)state;
    bare.exact = true;
    test_walk_step(&with);
    test_walk_step(&without);
    test_walk_step(&bare);
    for (int k = 0; k < 3; k++) {
        assert_memory_equal(test_walk_tensor(&with, params[k]),
                            test_walk_tensor(&without, params[k]), N * sizeof(double));
        for (int i = 0; i < N; i++)
            sum += pow(test_walk_tensor(&with, inputs[k])[i], 2);
    }
    assert_near(cell(&with, "gn"), sqrt(sum));
    assert_near(cell(&bare, "grad_norm"), sqrt(sum));
    assert_string_equal(gx_graph_logged(with.graph, 0), "gn");
    assert_null(gx_graph_logged(without.graph, 0));
    assert_null(gx_graph_logged(eval.graph, 0));
    test_walk_free(&eval);
    test_walk_free(&bare);
    test_walk_free(&without);
    test_walk_free(&with);
}

/* --- accumulation --- */

/* `n` steps of the one are one step of the other on the mean gradient. */
static void check_accumulation(const char *section, const char *beside, int n)
{
    test_random random = test_random_start(test_seed());
    char text[400];

    snprintf(text, sizeof text, "%s, accumulate: %d%s", section, n, beside);
    test_walk parts = parse(text, "", GX_TRAIN);
    snprintf(text, sizeof text, "%s%s", section, beside);
    test_walk whole = parse(text, "", GX_TRAIN);

    assert_int_equal(gx_graph_accumulate(parts.graph), n);
    assert_int_equal(gx_graph_accumulate(whole.graph), 1);
    for (int update = 0; update < 12; update++) {
        double mean[3][N] = { { 0 } };
        double before[N];

        memcpy(before, test_walk_tensor(&parts, "p"), sizeof before);
        for (int k = 0; k < n; k++) {
            double values[3][N];

            assert_memory_equal(before, test_walk_tensor(&parts, "p"), sizeof before);
            draw(&random, values);
            set_gradients(&parts, values);
            test_walk_step(&parts);
            for (int i = 0; i < 3 * N; i++)
                mean[i / N][i % N] += values[i / N][i % N] / n;
        }
        assert_true(memcmp(before, test_walk_tensor(&parts, "p"), sizeof before) != 0);
        set_gradients(&whole, mean);
        test_walk_step(&whole);
        for (int k = 0; k < 3; k++)
            assert_true(test_error(test_walk_tensor(&parts, params[k]),
                                   test_walk_tensor(&whole, params[k]), N) < 1e-11);
    }
    test_walk_free(&whole);
    test_walk_free(&parts);
}

static void accumulated_steps_are_one_on_the_mean_gradient(void **state)
{
    static const char *const sections[] = {
        "sgd: {lr: 0.1, weight_decay: 0.1}",
        "momentum: {lr: 0.1, dampening: 0.2}",
        "nesterov: {lr: 0.1}",
        "adam: {lr: 0.01, weight_decay: 0.1}",
        "adamw: {lr: 0.01}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        check_accumulation(sections[i], "", 2);
        check_accumulation(sections[i], ", clip_norm: 0.3", 3);
        check_accumulation(sections[i],
                           ", schedule: {cosine: {steps: 9, warmup: 2, end: 0.1}}, "
                           "groups: [{params: q, lr: 0.02}]",
                           5);
    }
}

static void sums_are_f32_and_state(void **state)
{
    test_walk model = test_walk_parse(HEAD "optimizer: {sgd: {lr: 1}, accumulate: 4}\n",
                                      "bf16", GX_TRAIN, 1);
    const gx_value_info sum =
        gx_graph_value(model.graph, (size_t)gx_graph_find(model.graph, "p.sum"));

    (void)state;
    assert_int_equal(sum.dtype, GX_F32);
    assert_int_equal(sum.kind, GX_VALUE_STATE);
    test_walk_free(&model);
}

/* --- groups --- */

/* A group is a model of its own for the parameters that it names. */
static void check_group(const test_walk *found, const char *param, const char *section)
{
    test_walk alone = parse(section, "", GX_TRAIN);

    for (int step = 0; step < 10; step++) {
        test_walk_step(&alone);
    }
    assert_true(test_error(test_walk_tensor(found, param),
                           test_walk_tensor(&alone, param), N) < 1e-11);
    test_walk_free(&alone);
}

static void groups_have_settings_of_their_own(void **state)
{
    test_walk model = parse(
        "adamw: {lr: 0.01, weight_decay: 0.1}, groups: "
        "[{params: [q], lr: 0.25, beta1: 0.5}, {params: \"blk.*\", weight_decay: 0}]",
        "", GX_TRAIN);

    (void)state;
    for (int step = 0; step < 10; step++)
        test_walk_step(&model);
    check_group(&model, "p", "adamw: {lr: 0.01, weight_decay: 0.1}");
    check_group(&model, "q", "adamw: {lr: 0.25, weight_decay: 0.1, beta1: 0.5}");
    check_group(&model, "blk.r", "adamw: {lr: 0.01, weight_decay: 0}");
    assert_near(cell(&model, "gexec.lr.1"), 0.25);
    assert_true(gx_graph_find(model.graph, "gexec.lr.2") < 0);
    assert_true(gx_graph_rate(model.graph) == 0.01);
    test_walk_free(&model);
}

static void the_rate_of_a_group_is_read_at_each_step(void **state)
{
    test_walk model =
        parse("sgd: {lr: 1}, schedule: {linear: {steps: 2, end: 0.5}}, "
              "groups: [{params: \"?\", lr: 0.5}, {params: blk.?, lr: 0.25}]",
              "", GX_TRAIN);
    double before[N];

    (void)state;
    test_walk_step(&model);
    assert_near(cell(&model, "gexec.rate.1"), 0.5);
    assert_near(cell(&model, "gexec.rate.2"), 0.25);
    assert_true(gx_graph_find(model.graph, "gexec.rate") < 0); /* nobody has it */
    *test_walk_tensor(&model, "gexec.lr.2") = 4;
    memcpy(before, test_walk_tensor(&model, "blk.r"), sizeof before);
    test_walk_step(&model);
    assert_near(cell(&model, "gexec.rate.1"), 0.375);
    assert_near(cell(&model, "gexec.rate.2"), 3);
    for (int i = 0; i < N; i++)
        assert_near(test_walk_tensor(&model, "blk.r")[i],
                    before[i] - 3 * test_walk_tensor(&model, "gr")[i]);
    test_walk_free(&model);
}

/* --- order --- */

/* Names of nodes, in the order in which they stand in the graph. */
static void assert_in_order(const gx_graph *graph, const char *const *names)
{
    int32_t before = -1;

    for (; *names; names++) {
        const int32_t at = gx_graph_node_id(graph, *names);

        if (at <= before)
            fail_msg("'%s' is node %d, behind node %d", *names, at, before);
        before = at;
    }
}

static gx_graph *load(const char *text)
{
    gx_graph *graph = NULL;
    gx_error err;

    assert_ok(
        gx_graph_parse(text, strlen(text), "order.yaml", ".", NULL, &graph, NULL, &err),
        &err);
    return graph;
}

#define TWO_LAYERS                                                                   \
    "gexec: 1\nname: m\nprecision: f32\n"                                            \
    "inputs: {x: {shape: [4, 3], init: normal}, t: {shape: [4, 2], init: normal}}\n" \
    "params:\n  w1: {shape: [3, 5], init: he_normal}\n"                              \
    "  w2: {shape: [5, 2], init: he_normal}\n"                                       \
    "ops:\n  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {act: relu}, out: h}\n"  \
    "  - {op: gemm, name: fc2, a: h, b: w2, out: y}\n"                               \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss]\n"

/* The last layer's gradient is there first. The norm adds up as the parameters stand. */
static void updates_come_as_their_gradients_do(void **state)
{
    gx_graph *plain = load(TWO_LAYERS "optimizer: {adamw: {lr: 0.1}}\n");
    gx_graph *all =
        load(TWO_LAYERS "optimizer: {sgd: {lr: 0.1}, clip_norm: 1, accumulate: 2}\n");
    test_walk given = parse("sgd: {lr: 1}", "", GX_TRAIN);

    (void)state;
    assert_in_order(plain, (const char *[]){ "w2.adamw", "w1.adamw", NULL });
    assert_in_order(all, (const char *[]){ "w2.accumulate", "w1.accumulate", "w1.norm",
                                           "w2.sgd", "w1.sgd", NULL });
    assert_in_order(given.graph, (const char *[]){ "p.sgd", "q.sgd", "blk.r.sgd", NULL });
    test_walk_free(&given);
    gx_graph_free(all);
    gx_graph_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_come_as_their_gradients_do),
        cmocka_unit_test(a_stepped_rate_is_that_of_torch),
        cmocka_unit_test(a_cosine_rate_is_that_of_torch),
        cmocka_unit_test(a_linear_rate_is_that_of_torch),
        cmocka_unit_test(a_constant_rate_rises_in_its_warm_up),
        cmocka_unit_test(a_rate_follows_the_count_and_the_base),
        cmocka_unit_test(gradients_are_clipped_as_torch_does),
        cmocka_unit_test(a_gradient_that_is_no_number_is_seen),
        cmocka_unit_test(the_norm_is_a_metric),
        cmocka_unit_test(accumulated_steps_are_one_on_the_mean_gradient),
        cmocka_unit_test(sums_are_f32_and_state),
        cmocka_unit_test(groups_have_settings_of_their_own),
        cmocka_unit_test(the_rate_of_a_group_is_read_at_each_step),
    };

    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
