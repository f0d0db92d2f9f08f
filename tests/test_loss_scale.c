/* The scale of the loss: against a model of torch.amp.GradScaler, and its limits. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

static double cell(const test_walk *model, const char *name)
{
    return *test_walk_tensor(model, name);
}

static bool has(const test_walk *model, const char *name)
{
    return gx_graph_find(model->graph, name) >= 0;
}

static void assert_near(double x, double y, double error)
{
    if (!(fabs(x - y) <= error * (1 + fabs(y)))) {
        print_error("%.17g is not %.17g\n", x, y);
        fail();
    }
}

/* One parameter, whose gradient is 2 (p - t) / 4; of 2^-k it is exact in every type. */
#define SCALED_HEAD                                                   \
    "gexec: 1\nname: m\nprecision: $P\n"                              \
    "inputs: {t: {shape: [4], dtype: f32, init: zeros}}\n"            \
    "params: {p: {shape: [4], init: ones}}\n"                         \
    "ops: [{op: mse, name: loss, x: p, target: t}]\nbackward: loss\n" \
    "metrics: {norm: {op: grad_norm}, loss_scale: {}, skipped: {}}\n"

static test_walk scaled(const char *section, const char *precision)
{
    char text[2000];

    snprintf(text, sizeof text, SCALED_HEAD "optimizer: {%s}\n", section);
    return test_walk_parse(text, precision, GX_TRAIN, 77);
}

/* Leaves the gradient of the next step at `gradient`, before it is scaled. */
static void aim(const test_walk *model, double gradient)
{
    for (int i = 0; i < 4; i++)
        test_walk_tensor(model, "t")[i] = test_walk_tensor(model, "p")[i] - 2 * gradient;
}

static void the_loss_is_as_it_is_and_its_gradient_scaled(void **state)
{
    test_walk model =
        test_walk_parse(SCALED_HEAD "optimizer: {sgd: {lr: 0.5}, loss_scale: 1024}\n"
                                    "outputs: [p.grad]\n",
                        "f32", GX_TRAIN, 1);

    (void)state;
    aim(&model, 0.25);
    test_walk_step(&model);
    assert_near(cell(&model, "loss"), 0.25, 0);
    assert_near(cell(&model, "p.grad"), 256, 0);
    assert_near(cell(&model, "norm"), 0.5, 1e-7);
    assert_near(cell(&model, "p"), 1 - 0.5 * 0.25, 1e-7);
    assert_near(cell(&model, "loss_scale"), 1024, 0);
    assert_near(cell(&model, "skipped"), 0, 0);
    assert_string_equal(gx_graph_logged(model.graph, 2), "loss_scale");
    assert_near(test_walk_tensor(&model, "gexec.log")[2], 1024, 0);
    test_walk_free(&model);
}

/* 2^-26 is no f16, and is lost without a scale. */
static void a_scale_saves_what_f16_loses(void **state)
{
    static const char *const sections[] = { "sgd: {lr: 65536}, master: f32",
                                            "sgd: {lr: 65536}, master: f32, "
                                            "loss_scale: 1024" };

    (void)state;
    for (int with = 0; with < 2; with++) {
        char text[1000];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\nprecision: $P\n"
                 "inputs: {t: {shape: [4], dtype: f32, init: zeros}}\n"
                 "params: {p: {shape: [4], init: zeros}}\n"
                 "ops: [{op: mse, name: loss, x: p, target: t}]\nbackward: loss\n"
                 "optimizer: {%s}\n",
                 sections[with]);
        test_walk model = test_walk_parse(text, "f16", GX_TRAIN, 1);

        aim(&model, 0x1p-26);
        test_walk_step(&model);
        assert_true(cell(&model, "p.master") == (with ? -0x1p-10 : 0));
        test_walk_free(&model);
    }
}

/* What torch.amp.GradScaler and AdamW(t) would be at. */
typedef struct scaler {
    double scale, growth, backoff;
    int interval, tracker, skipped, updates;
    double p, m, v;
} scaler;

static void scaler_step(scaler *s, double gradient)
{
    const double scaled_gradient = gx_round_to(GX_F16, s->scale * gradient);

    if (!isfinite(scaled_gradient)) {
        s->scale *= s->backoff;
        s->tracker = 0;
        s->skipped++;
        return;
    }
    const double g = scaled_gradient / s->scale;

    s->updates++;
    s->m = 0.9 * s->m + 0.1 * g;
    s->v = 0.999 * s->v + 0.001 * g * g;
    s->p -= 0.01 * (s->m / (1 - pow(0.9, s->updates))) /
            (sqrt(s->v / (1 - pow(0.999, s->updates))) + 1e-8);
    if (++s->tracker == s->interval) {
        s->scale *= s->growth;
        s->tracker = 0;
    }
}

/* Overflows at first, twice in a row, and whenever the scale has grown too far. */
static void a_dynamic_scale_follows_torch(void **state)
{
    test_walk model = scaled(
        "adamw: {lr: 0.01, weight_decay: 0}, master: f32, moments: f32, loss_scale: "
        "{dynamic: {initial: 262144, growth_interval: 3, growth: 4, backoff: 0.25}}",
        "f16");
    scaler s = { .scale = 262144, .growth = 4, .backoff = 0.25, .interval = 3, .p = 1 };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int step = 0; step < 200; step++) {
        const double gradient = ldexp(1, (int)test_random_int(&random, -3, 3));
        double before[3];

        memcpy(before,
               (double[]){ cell(&model, "p.master"), cell(&model, "p.m"),
                           cell(&model, "p.v") },
               sizeof before);
        aim(&model, gradient);
        const double found = 0.5 * (cell(&model, "p") - cell(&model, "t"));
        const int skipped = s.skipped;
        const double scale = s.scale;

        scaler_step(&s, found);
        test_walk_step(&model);
        assert_true(cell(&model, "gexec.scale") == s.scale);
        assert_true(cell(&model, "gexec.growth_tracker") == s.tracker);
        assert_true(cell(&model, "gexec.skipped") == s.skipped);
        assert_true(cell(&model, "loss_scale") == scale);
        assert_true(cell(&model, "skipped") == s.skipped);
        assert_true(cell(&model, "gexec.step") == step + 1);
        if (s.skipped > skipped) {
            assert_true(cell(&model, "gexec.update") == -1);
            assert_true(before[0] == cell(&model, "p.master") &&
                        before[1] == cell(&model, "p.m") &&
                        before[2] == cell(&model, "p.v"));
        } else {
            assert_true(cell(&model, "gexec.update") == s.updates - 1);
            assert_near(cell(&model, "norm"), 2 * fabs(found), 1e-3);
        }
        assert_near(cell(&model, "p.master"), s.p, 1e-4);
    }
    assert_true(s.skipped > 5 && s.updates > 50);
    test_walk_free(&model);
}

static void a_constant_scale_skips_and_stays(void **state)
{
    test_walk model = scaled("sgd: {lr: 0.5}, loss_scale: 65536", "f16");

    (void)state;
    assert_false(has(&model, "gexec.growth_tracker"));
    aim(&model, 4);
    test_walk_step(&model);
    assert_true(cell(&model, "p") == 1);
    assert_true(isinf(cell(&model, "norm")));
    aim(&model, 0.5);
    test_walk_step(&model);
    assert_true(cell(&model, "p") == 0.75);
    assert_true(cell(&model, "gexec.scale") == 65536);
    assert_true(cell(&model, "gexec.skipped") == 1);
    /* a scale that is changed between steps holds from the next on */
    *test_walk_tensor(&model, "gexec.scale") = 2;
    aim(&model, 0.5);
    test_walk_step(&model);
    assert_true(cell(&model, "p") == 0.5 && cell(&model, "loss_scale") == 2);
    test_walk_free(&model);
}

static void a_gradient_that_is_no_number_is_skipped_too(void **state)
{
    test_walk model = scaled("sgd: {lr: 0.5}, loss_scale: dynamic", "f32");

    (void)state;
    assert_true(cell(&model, "gexec.scale") == 65536);
    test_walk_tensor(&model, "t")[2] = NAN;
    test_walk_step(&model);
    assert_true(cell(&model, "p") == 1);
    assert_true(cell(&model, "gexec.scale") == 32768);
    test_walk_free(&model);
}

static void a_scale_does_not_grow_beyond_f32(void **state)
{
    test_walk model = scaled(
        "sgd: {lr: 0}, loss_scale: {dynamic: {initial: 1, growth_interval: 1}}", "f32");

    (void)state;
    *test_walk_tensor(&model, "gexec.scale") = 0x1p126;
    aim(&model, 0x1p-40);
    for (int step = 0; step < 3; step++)
        test_walk_step(&model);
    assert_true(cell(&model, "gexec.scale") == 0x1p127);
    assert_true(cell(&model, "gexec.growth_tracker") == 0);
    test_walk_free(&model);
}

/* Sums are of scaled gradients, the norm is taken from the scale, then clipped; one step
 * of three that overflows takes the update with it. */
static void accumulation_and_clipping_go_with_a_scale(void **state)
{
    test_walk model = scaled("sgd: {lr: 1}, clip_norm: 0.5, accumulate: 3, loss_scale: "
                             "{dynamic: {initial: 1024, growth_interval: 2}}",
                             "f32");

    (void)state;
    for (int update = 0; update < 4; update++) {
        const bool overflows = update == 1;
        const double before = cell(&model, "p"), scale = cell(&model, "gexec.scale");

        for (int k = 0; k < 3; k++) {
            assert_true(cell(&model, "p") == before);
            assert_true(cell(&model, "gexec.scale") == scale);
            aim(&model, overflows && k == 0 ? 0x1p120 : 0.25 * (k + 1));
            test_walk_step(&model);
            assert_true(cell(&model, "gexec.update") ==
                        (k < 2 || overflows ? -1 : update - (update > 1)));
        }
        if (overflows) {
            assert_true(cell(&model, "p") == before);
            assert_true(cell(&model, "gexec.scale") == scale / 2);
        } else { /* each gradient is 0.5, their norm 1 */
            assert_near(cell(&model, "norm"), 1, 1e-6);
            assert_near(cell(&model, "p"), before - 0.25, 1e-6);
        }
    }
    assert_true(cell(&model, "gexec.skipped") == 1);
    assert_true(cell(&model, "gexec.scale") == 1024); /* halved, then grown */
    assert_int_equal(gx_graph_accumulate(model.graph), 3);
    test_walk_free(&model);
}

static void a_schedule_counts_updates_that_were_made(void **state)
{
    test_walk model = scaled("sgd: {lr: 1}, loss_scale: 65536, schedule: {step: {every: "
                             "1, factor: 0.5}}",
                             "f16");

    (void)state;
    aim(&model, 4);
    test_walk_step(&model);
    assert_true(cell(&model, "gexec.rate") == 1);
    aim(&model, 0.25);
    test_walk_step(&model);
    assert_true(cell(&model, "gexec.rate") == 1);
    aim(&model, 0.25);
    test_walk_step(&model);
    assert_true(cell(&model, "gexec.rate") == 0.5);
    test_walk_free(&model);
}

/* A sum that is the loss takes the scale, and so does a loss written by hand. */
static void every_way_to_a_gradient_takes_the_scale(void **state)
{
    test_walk sum = test_walk_parse(
        "gexec: 1\nname: m\nprecision: $P\nparams: {p: {shape: [4], init: ones}}\n"
        "inputs: {t: {shape: [4], dtype: f32, init: zeros}}\n"
        "ops:\n  - {op: sum, name: s, x: p, dtype: f32}\n"
        "  - {op: mse, name: e, x: p, target: t}\n  - {op: add, name: loss, a: s, b: e}\n"
        "backward: loss\noptimizer: {sgd: {lr: 0.125}, loss_scale: 64}\n"
        "outputs: [p.grad]\n",
        "bf16", GX_TRAIN, 1);
    test_walk hand = test_walk_parse(
        "gexec: 1\nname: m\nprecision: $P\nparams: {p: {shape: [4], init: ones}}\n"
        "inputs: {t: {shape: [4], dtype: f32, init: zeros}}\n"
        "ops: [{op: mse.bwd, name: b, x: p, target: t, dy: gexec.scale, dx: p.grad}]\n"
        "optimizer: {sgd: {lr: 0.5}, loss_scale: 64}\noutputs: [p.grad]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&sum);
    assert_true(cell(&sum, "p.grad") == 64 * 1.5);
    assert_true(cell(&sum, "p") == gx_round_to(GX_BF16, 1 - 0.125 * 1.5));
    test_walk_step(&hand);
    assert_true(cell(&hand, "p.grad") == 32);
    assert_true(cell(&hand, "p") == 0.75);
    test_walk_free(&hand);
    test_walk_free(&sum);
}

static void an_evaluation_has_none_of_it(void **state)
{
    test_walk eval =
        test_walk_parse(SCALED_HEAD "optimizer: {adamw: {}, master: f32, loss_scale: "
                                    "dynamic}\noutputs: [loss, loss_scale]\n",
                        "f16", GX_EVAL, 1);

    (void)state;
    assert_false(has(&eval, "gexec.scale") || has(&eval, "p.master"));
    assert_null(gx_graph_logged(eval.graph, 1));
    test_walk_free(&eval);
}

/* --- what is written out --- */

static void an_expanded_model_goes_on_as_the_model_does(void **state)
{
    static const char section[] =
        "adamw: {lr: 0.25}, master: f32, moments: f32, clip_norm: 1, accumulate: 2, "
        "schedule: constant, loss_scale: {dynamic: {initial: 8, growth_interval: 2}}";
    test_walk model = scaled(section, "f16");
    char *yaml = gx_graph_yaml(model.graph);
    test_walk again;

    (void)state;
    assert_non_null(yaml);
    assert_has(yaml, "p.master: {kind: state, dtype: f32, shape: [4], init: {param: p}}");
    again = test_walk_parse(yaml, "", GX_TRAIN, 77);
    char *same = gx_graph_yaml(again.graph);

    assert_string_equal(yaml, same);
    for (int step = 0; step < 9; step++) {
        aim(&model, 0.5);
        aim(&again, 0.5);
        test_walk_step(&model);
        test_walk_step(&again);
        assert_true(cell(&model, "p.master") == cell(&again, "p.master"));
        assert_true(cell(&model, "gexec.scale") == cell(&again, "gexec.scale"));
    }
    free(same);
    free(yaml);
    test_walk_free(&again);
    test_walk_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_as_it_is_and_its_gradient_scaled),
        cmocka_unit_test(a_scale_saves_what_f16_loses),
        cmocka_unit_test(a_dynamic_scale_follows_torch),
        cmocka_unit_test(a_constant_scale_skips_and_stays),
        cmocka_unit_test(a_gradient_that_is_no_number_is_skipped_too),
        cmocka_unit_test(a_scale_does_not_grow_beyond_f32),
        cmocka_unit_test(accumulation_and_clipping_go_with_a_scale),
        cmocka_unit_test(a_schedule_counts_updates_that_were_made),
        cmocka_unit_test(every_way_to_a_gradient_takes_the_scale),
        cmocka_unit_test(an_evaluation_has_none_of_it),
        cmocka_unit_test(an_expanded_model_goes_on_as_the_model_does),
    };

    return cmocka_run_group_tests_name("loss_scale", tests, NULL, NULL);
}
