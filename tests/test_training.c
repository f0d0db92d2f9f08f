/* What stands beside an optimizer: schedules, clipping, accumulation, groups. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

enum { N = 5 };

/* Parameters whose gradients are given: p.grad is what gp holds, q.grad gq, r.grad gr. */
#define HEAD                                                                     \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  gp: {shape: [5], init: normal}\n" \
    "  gq: {shape: [5], init: normal}\n  gr: {shape: [5], init: normal}\n"       \
    "  z: {shape: [5], init: zeros}\n"                                           \
    "params:\n  p: {shape: [5], init: normal}\n  q: {shape: [5], init: normal}\n"   \
    "  blk.r: {shape: [5], init: normal}\n"                                      \
    "ops:\n  - {op: add, name: sp, a: gp, b: z, out: p.grad}\n"                  \
    "  - {op: add, name: sq, a: gq, b: z, out: q.grad}\n"                        \
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
    test_walk model = parse("sgd: {lr: 1}, schedule: {cosine: {steps: 1000}}", "", GX_TRAIN);
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
    test_walk with = parse("sgd: {lr: 0.5}", "metrics: {gn: {op: grad_norm}}\n", GX_TRAIN);
    test_walk without = parse("sgd: {lr: 0.5}", "", GX_TRAIN);
    test_walk bare = test_walk_parse(HEAD "metrics: {grad_norm: {}}\n", "f32", GX_TRAIN, 77);
    test_walk eval = parse("sgd: {lr: 0.5}",
                           "metrics: {gn: {op: grad_norm}}\noutputs: [gn, gexec.clip]\n",
                           GX_EVAL);
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
    test_walk model = parse("sgd: {lr: 1}, schedule: {linear: {steps: 2, end: 0.5}}, "
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

/* --- what is refused --- */

static void mistakes_are_named_where_they_stand(void **state)
{
    static const struct {
        const char *section, *message;
    } cases[] = {
        { "sgd: {lr: 1}, schedul: constant",
          "24:27: unknown key \"schedul\" in optimizer; did you mean \"schedule\"?" },
        { "sgd: {lr: 1, clip_norm: 1}", "24:26: \"clip_norm\" stands beside \"sgd\"" },
        { "sgd: {lr: 1}, schedule: cosinus",
          "24:37: there is no schedule \"cosinus\"; did you mean \"cosine\"?" },
        { "sgd: {lr: 1}, schedule: {cosine: {}}",
          "24:38: the schedule cosine lacks the setting \"steps\"" },
        { "sgd: {lr: 1}, schedule: cosine",
          "24:37: the schedule cosine lacks the setting \"steps\"" },
        { "sgd: {lr: 1}, schedule: {step: {every: 2, factr: 1}}",
          "24:55: the schedule step has no setting \"factr\"; did you mean \"factor\"?" },
        { "sgd: {lr: 1}, schedule: {constant: {end: 1}}",
          "24:49: the schedule constant has no setting \"end\"" },
        { "sgd: {lr: 1}, schedule: {linear: {steps: 5, warmup: 5}}",
          "24:54: schedule \"gexec.rate\": steps is 5, expected 6 to" },
        { "sgd: {lr: 1}, schedule: {step: {every: 0, factor: 1}}", "every is 0, expected 1" },
        { "sgd: {lr: 1}, schedule: {step: {every: 1, factor: -1}}",
          "factor is -1, expected 0 or more" },
        { "sgd: {lr: 1}, schedule: [constant]", "24:37: expected a schedule, as in" },
        { "sgd: {lr: 1}, clip_norm: 0", "24:38: clip_norm is \"0\", expected a number" },
        { "sgd: {lr: 1}, clip_norm: x", "24:38: clip_norm is \"x\", expected a number" },
        { "sgd: {lr: 1}, accumulate: 0", "24:39: accumulate is 0, expected 1 to" },
        { "sgd: {lr: 1}, accumulate: 2.5", "24:39: " },
        { "sgd: {lr: 1, accumulate: 2}", "24:26: \"accumulate\" stands beside \"sgd\"" },
        { "sgd: {lr: 1}, groups: {params: p}", "24:35: expected a list of groups" },
        { "sgd: {lr: 1}, groups: [{lr: 2}]", "24:36: the group lacks \"params\"" },
        { "sgd: {lr: 1}, groups: [{params: []}]", "a group of no parameters" },
        { "sgd: {lr: 1}, groups: [{params: p}]", "24:37: the group sets nothing" },
        { "sgd: {lr: 1}, groups: [{params: [p, blk.s], lr: 2}]",
          "24:49: no parameter is called \"blk.s\"; did you mean \"blk.r\"?" },
        { "sgd: {lr: 1}, groups: [{params: [\"blk.*.b\"], lr: 2}]",
          "24:46: no parameter that is trained fits \"blk.*.b\"" },
        { "sgd: {lr: 1}, groups: [{params: gp, lr: 2}]",
          "24:45: no parameter that is trained is called \"gp\"" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: 2}, {params: [p, \"*\"], lr: 3}]",
          "24:69: parameter \"q\" is in two groups: in this one, and in that of line 24" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: -2}]",
          "24:52: lr is \"-2\", expected a number, 0 or more" },
        { "sgd: {lr: 1}, groups: [{params: q, weight_deca: 2}]",
          "24:48: sgd has no setting \"weight_deca\"; did you mean \"weight_decay\"?" },
        { "sgd: {lr: 1}, groups: [{params: q, weight_decay: -2}]",
          "24:62: sgd \"q.sgd\": weight_decay is -2, expected 0 or more" },
        { "sgd: {lr: 1}, groups: [{params: q, accumulate: 2}]",
          "24:48: sgd has no setting \"accumulate\"" },
        { "sgd: {lr: 1}, groups: [{params: q, lr: 2}], accumulate: 1}\n"
          "metrics: {grad_norm: {x: p}",
          "grad_norm takes no fields" },
        { "sgd: {lr: 1}}\nmetrics: {a: {op: grad_norm}, b: {op: grad_norm}",
          "metric \"b\" is the norm of all gradients, as \"a\" is" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];
        char *head = test_walk_text(HEAD, "f32");

        /* the section stands on line 24 */
        snprintf(text, sizeof text, "%s%s\noptimizer: {%s}\n", head,
                 "outputs: [p.grad]\n\n\n\n\n\n", cases[i].section);
        free(head);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        assert_has(mistakes, cases[i].message);
        free(mistakes);
    }
}

static void a_frozen_parameter_is_in_no_group(void **state)
{
    char *mistakes = test_walk_mistakes(
        "gexec: 1\ninputs:\n  t: {shape: [5]}\nparams:\n  p: {shape: [5]}\n"
        "  f: {shape: [5], trainable: false}\n"
        "ops:\n  - {op: add, name: s, a: p, b: f}\n  - {op: mse, name: loss, x: s, "
        "target: t}\nbackward: loss\n"
        "optimizer: {sgd: {lr: 1}, groups: [{params: f, lr: 2}]}\n",
        GX_TRAIN);

    (void)state;
    assert_has(mistakes, "11:45: parameter \"f\" is not trained, so no group has it");
    free(mistakes);
}

static void the_names_of_sums_are_gexecs_own(void **state)
{
    char *mistakes = test_walk_mistakes(
        "gexec: 1\ninputs:\n  t: {shape: [5]}\nparams:\n  p: {shape: [5]}\n"
        "ops:\n  - {op: relu, name: p.sum, x: t}\n  - {op: mse, name: loss, x: p, "
        "target: p.sum}\nbackward: loss\n"
        "optimizer: {sgd: {lr: 1}, accumulate: 2}\n",
        GX_TRAIN);

    (void)state;
    assert_has(mistakes, "name \"p.sum\" is gexec's own here");
    free(mistakes);
}

/* --- built in code --- */

static void code_has_the_same_section(void **state)
{
    static const gx_field_text fields[] = {
        { "lr", "0.1" },          { "schedule", "linear" },
        { "schedule.steps", "4" }, { "clip_norm", "1" },
        { "accumulate", "2" },    { "groups.0.params.0", "w" },
        { "groups.0.lr", "0.2" },
    };
    gx_graph *graph;
    gx_error err;

    (void)state;
    assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_INPUT, "t", GX_F32, 1, (int64_t[]){ 3 },
                                  "normal", &err),
              &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F32, 1, (int64_t[]){ 3 },
                                  "zeros", &err),
              &err);
    assert_ok(gx_graph_add_op(graph, "mse", "loss",
                              (gx_field_text[]){ { "x", "w" }, { "target", "t" } }, 2,
                              &err),
              &err);
    assert_ok(gx_graph_set_backward(graph, "loss", &err), &err);
    assert_ok(gx_graph_set_optimizer(graph, "sgd", fields, ARRAY_SIZE(fields), &err),
              &err);
    assert_ok(gx_graph_finish(graph, GX_TRAIN, NULL, &err), &err);
    assert_int_equal(gx_graph_accumulate(graph), 2);
    for (const char *const *name =
             (const char *const[]){ "gexec.lr.1", "gexec.rate.1", "w.sum", "gexec.clip",
                                    "gexec.grad_norm", NULL };
         *name; name++)
        assert_true(gx_graph_find(graph, *name) >= 0);
    gx_graph_free(graph);
}

static void code_that_names_no_schedule_is_refused(void **state)
{
    static const struct {
        gx_field_text field;
        const char *message;
    } cases[] = {
        { { "schedule.steps", "4" }, "\"schedule.steps\" needs \"schedule\"" },
        { { "groups.1.lr", "4" }, "expected \"groups.N.SETTING\", with N from 0 on" },
        { { "groups.x", "4" }, "expected \"groups.N.SETTING\", with N from 0 on" },
        { { "groups.0.lr", "4" }, "the group names no parameters" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_field_text fields[] = { { "lr", "0.1" }, cases[i].field };
        gx_graph *graph;
        gx_error err;

        assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
        assert_ok(gx_graph_set_optimizer(graph, "sgd", fields, 2, &err), &err);
        assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_MODEL, &err,
                     cases[i].message);
        gx_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(mistakes_are_named_where_they_stand),
        cmocka_unit_test(a_frozen_parameter_is_in_no_group),
        cmocka_unit_test(the_names_of_sums_are_gexecs_own),
        cmocka_unit_test(code_has_the_same_section),
        cmocka_unit_test(code_that_names_no_schedule_is_refused),
    };

    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
