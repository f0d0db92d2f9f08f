/* Gradients of large products with their updates on sm_90, beside a reference in doubles,
 * and of many layers beside their ops one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_call.h"
#include "support.h"
#include "support_gpu_walk.h"
#include "support_group.h"
#include "wgmma.h"

/* Layers of one width, the last without an activation, as many as two launches take. */
#define DEEP                                                                             \
    "gexec: 1\nname: m\nprecision: $P\ndims: {width: 520, rows: 264}\ninputs:\n"         \
    "  x: {shape: [rows, width], init: normal}\n"                                        \
    "  t: {shape: [rows, width], init: normal}\nops:\n  - repeat:\n      name: layer\n"  \
    "      count: 9\n      carry: {h: x}\n      params:\n"                               \
    "        w: {shape: [width, width], init: he_normal}\n        b: {shape: [width]}\n" \
    "      ops:\n        - {op: gemm, name: fc, a: h, b: w, epilogue: {bias: b, act: "   \
    "relu}, out: h}\n  - {op: mse, name: loss, x: h, target: t}\nbackward: loss\n"       \
    "outputs: [loss]\noptimizer: {adamw: {}}\n"
/* One layer, whose gradients somebody reads or nobody does. */
#define LAYER(rows, in, out, more)                                                      \
    "gexec: 1\nname: m\nprecision: $P\ninputs:\n  x: {shape: [" rows ", " in            \
    "], init: normal}\n  t: {shape: [" rows ", " out "], init: normal}\nparams:\n"      \
    "  w: {shape: [" in ", " out "], init: he_normal}\n  b: {shape: [" out "]}\nops:\n" \
    "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b}}\n"                        \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\noutputs: [loss" more   \
    "]\noptimizer: {adamw: {weight_decay: 0.1}}\n"

static double largest(const double *x, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

/* What the program begins a step from, in the reference. */
static void begin_alike(gpu_program *program, test_walk *truth, test_random *random)
{
    static const char *const inputs[] = { "x", "t" };
    static const char *const states[] = { "w",   "w.m", "w.v",        "b",
                                          "b.m", "b.v", "gexec.step", "gexec.lr" };

    for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
        gpu_fill(truth, inputs[i], 1, random);
        gpu_write_input(program, truth, inputs[i], 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        double *x = gpu_read_output(program, truth, states[i]);
        const size_t n = (size_t)test_walk_count(truth, states[i]);

        memcpy(test_walk_tensor(truth, states[i]), x, n * sizeof *x);
        free(x);
    }
}

/* A parameter after its first step goes by the sign of its gradient, which is no other's
 * but where the gradient is about 0. */
static void expect_updated(gpu_program *program, const test_walk *truth, const char *name,
                           bool is_half)
{
    const double rate = 1e-3, rounding = is_half ? 0x1p-8 : 0x1p-20;
    const double off = is_half ? 0.02 : 0.004;
    char first[8], second[8];

    snprintf(first, sizeof first, "%s.m", name);
    snprintf(second, sizeof second, "%s.v", name);
    const int64_t n = test_walk_count(truth, name);
    const double *want[] = { test_walk_tensor(truth, name),
                             test_walk_tensor(truth, first),
                             test_walk_tensor(truth, second) };
    double *got[] = { gpu_read_output(program, truth, name),
                      gpu_read_output(program, truth, first),
                      gpu_read_output(program, truth, second) };
    const double most[] = { 0, largest(want[1], n), largest(want[2], n) };

    assert_true(most[1] > 0 && most[2] > 0);
    for (int64_t i = 0; i < n; i++) {
        const bool is_sure = fabs(want[1][i]) > off * most[1];
        const double allowed[] = { rounding * fabs(want[0][i]) +
                                       (is_sure ? 0.05 : 2.1) * rate,
                                   off * most[1], off * most[2] };

        for (int t = 0; t < 3; t++) {
            if (!(fabs(got[t][i] - want[t][i]) <= allowed[t]))
                fail_msg("%s%s[%lld] is %.9g, expected %.9g, give or take %g", name,
                         t == 0   ? ""
                         : t == 1 ? ".m"
                                  : ".v",
                         (long long)i, got[t][i], want[t][i], allowed[t]);
        }
    }
    for (int t = 0; t < 3; t++)
        free(got[t]);
}

static const char *const precisions[] = { "bf16", "tf32" };

/* Of sizes that no tile divides, beside the reference. */
static void updates_are_right(void **state)
{
    static const char *const texts[] = {
        LAYER("264", "1000", "2056", ""),
        LAYER("328", "2056", "1000", ", w.grad, b.grad"),
    };
    const gpu_options options = { .force = "wgmma_update" };
    const test_device *s = *state;
    test_random random = test_random_start(s->seed + 4);

    for (size_t i = 0; i < ARRAY_SIZE(precisions) * ARRAY_SIZE(texts); i++) {
        const char *precision = precisions[i / ARRAY_SIZE(texts)];
        char *text = test_walk_text(texts[i % ARRAY_SIZE(texts)], precision);
        test_walk truth = test_walk_parse(text, precision, GX_TRAIN, 1);
        const bool is_half = strcmp(precision, "bf16") == 0;
        gpu_program program;

        truth.exact = true;
        gpu_open_text(&program, text, &options);
        assert_int_equal(gx_plan_info_get(program.plan).n_forced, 1);
        begin_alike(&program, &truth, &random);
        gpu_run(&program, i % 2 ? GX_MODE_GRAPH : GX_MODE_EAGER, 1);
        test_walk_step(&truth);
        expect_updated(&program, &truth, "w", is_half);
        expect_updated(&program, &truth, "b", is_half);
        gpu_close(&program);
        test_walk_free(&truth);
        free(text);
    }
}

/* Each layer's moments are those that its ops by themselves leave. */
static void compare_layers(const char *precision)
{
    const gpu_options options[] = { { .force = "wgmma_update" }, { .force = "kernel" } };
    char *text = test_walk_text(DEEP, precision);
    test_walk walk = test_walk_parse(text, precision, GX_TRAIN, 1);
    gpu_program programs[2];
    int n_compared = 0;

    for (int i = 0; i < 2; i++) {
        gpu_open_text(&programs[i], text, &options[i]);
        gpu_write_input(&programs[i], &walk, "x", 1);
        gpu_write_input(&programs[i], &walk, "t", 1);
        gpu_run(&programs[i], GX_MODE_GRAPH, 2);
    }
    assert_int_equal(gx_plan_info_get(programs[0].plan).n_forced, 1);
    for (int layer = 0; layer < 9; layer++) {
        static const char *const tensors[] = { "w.m", "w.v", "b.m", "b.v" };

        for (size_t t = 0; t < ARRAY_SIZE(tensors); t++) {
            char name[40];

            snprintf(name, sizeof name, "layer.%d.%s", layer, tensors[t]);
            const int64_t n = test_walk_count(&walk, name);
            double *got = gpu_read_output(&programs[0], &walk, name);
            double *want = gpu_read_output(&programs[1], &walk, name);
            const double most = largest(want, n);

            assert_true(most > 0);
            for (int64_t e = 0; e < n; e++) {
                if (!(fabs(got[e] - want[e]) <= 0.05 * most))
                    fail_msg("%s[%lld] is %.9g, expected %.9g; the largest is %.9g", name,
                             (long long)e, got[e], want[e], most);
            }
            n_compared++;
            free(got);
            free(want);
        }
    }
    assert_int_equal(n_compared, 4 * 9);
    gpu_close(&programs[0]);
    gpu_close(&programs[1]);
    test_walk_free(&walk);
    free(text);
}

static void layers_are_not_mixed_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(precisions); i++)
        compare_layers(precisions[i]);
}

int main(void)
{
    gpu_start();
    const char *reason = !gx_wgmma_is_built()              ? "built without sm_90a"
                         : test_device_cc() != GX_WGMMA_CC ? "the card is not sm_90"
                                                           : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(updates_are_right, test_device_open,
                                        test_device_close),
        cmocka_unit_test(layers_are_not_mixed_up),
    };

    if (reason != NULL) {
        fprintf(stderr, "skipped: %s\n", reason);
        return TEST_SKIPPED;
    }
    return cmocka_run_group_tests_name("gpu_wgmma_update", tests, NULL, NULL);
}
