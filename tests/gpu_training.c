/* Schedules, clipping, accumulation and groups on a GPU: eager and graph mode give the
 * same bits, the CPU the same numbers, and nothing of a captured step is frozen. */
#include "support_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some updates of three steps each. */
static int n_steps(void)
{
    return test_is_short() ? 9 : 57;
}

/* Odd sizes; the second weight is larger than a chunk. */
#define MODEL                                                                            \
    "gexec: 1\nname: m\nprecision: %s\n"                                                 \
    "inputs: {x: {shape: [24, 7], init: normal}, t: {shape: [24, 129], init: normal}}\n" \
    "params:\n  w1: {shape: [7, 133], init: he_normal}\n  b1: {shape: [133]}\n"          \
    "  w2: {shape: [133, 129], init: he_normal}\n  b2: {shape: [129]}\n"                 \
    "ops:\n  - {op: gemm, name: h, a: x, b: w1, epilogue: {bias: b1, act: relu}}\n"      \
    "  - {op: gemm, name: y, a: h, b: w2, epilogue: {bias: b2}}\n"                       \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"                       \
    "optimizer: {%s}\nmetrics: {grad_norm: {}}\noutputs: [loss, grad_norm%s]\n"

static const char *const optimizers[] = { "sgd: {lr: 0.5, weight_decay: 0.01}",
                                          "momentum: {lr: 0.1, dampening: 0.3}",
                                          "nesterov: {lr: 0.1}", "adam: {lr: 0.01}",
                                          "adamw: {lr: 0.01}" };
static const char everything[] =
    ", schedule: {cosine: {steps: 15, warmup: 4, end: 0.1}}, clip_norm: 0.05, "
    "accumulate: 3, groups: [{params: \"b*\", weight_decay: 0.1, lr: 0.2}]";

static char *text_of(const char *precision, const char *optimizer, const char *beside)
{
    char section[600];
    char *text = malloc(3000);

    assert_non_null(text);
    snprintf(section, sizeof section, "%s%s", optimizer, beside);
    snprintf(text, 3000, MODEL, precision, section,
             strstr(beside, "schedule") ? ", gexec.rate" : "");
    return text;
}

static gpu_program open_model(const char *precision, const char *optimizer,
                              const char *beside, const gpu_options *options)
{
    char *text = text_of(precision, optimizer, beside);
    gpu_program program;

    gpu_open_text(&program, text, options);
    free(text);
    return program;
}

static uint64_t bits_after(const char *precision, const char *optimizer, gx_mode mode,
                           const gpu_options *options)
{
    gpu_program program = open_model(precision, optimizer, everything, options);

    gpu_run(&program, mode, n_steps());
    const uint64_t bits = gpu_bits(&program);

    gpu_close(&program);
    return bits;
}

static void eager_and_graph_give_the_same_bits(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16", "f16" };
    const gpu_options plain = { .lanes = 1 };
    const gpu_options two = { .lanes = 2, .programmatic = GX_ON };
    const gpu_options all = { .lanes = 3, .programmatic = GX_ON, .steps_per_launch = 3 };
    const gpu_options three = { .lanes = 1, .steps_per_launch = 3 };

    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(precisions); p++) {
        for (size_t i = 0; i < ARRAY_SIZE(optimizers); i++) {
            if (test_is_short() && i % ARRAY_SIZE(precisions) != p)
                continue;
            const uint64_t bits =
                bits_after(precisions[p], optimizers[i], GX_MODE_EAGER, &plain);

            assert_true(bits ==
                        bits_after(precisions[p], optimizers[i], GX_MODE_GRAPH, &plain));
            assert_true(bits ==
                        bits_after(precisions[p], optimizers[i], GX_MODE_GRAPH, &two));
            assert_true(bits ==
                        bits_after(precisions[p], optimizers[i], GX_MODE_GRAPH, &all));
            assert_true(bits ==
                        bits_after(precisions[p], optimizers[i], GX_MODE_GRAPH, &three));
        }
    }
}

/* --- against the CPU --- */

static double *read_all(gx_exec *exec, const char *name, int rank, int64_t rows,
                        int64_t columns)
{
    gx_tensor host = { .dtype = GX_F64, .rank = rank, .dim = { rows, columns } };
    gx_error err;

    host.data = malloc((size_t)gx_count(&host) * sizeof(double));
    assert_non_null(host.data);
    assert_ok(gx_exec_read(exec, name, &host, &err), &err);
    return host.data;
}

static void the_gpu_follows_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(optimizers); i++) {
        char *text = text_of("f32", optimizers[i], everything);
        gpu_program gpu = open_model("f32", optimizers[i], everything, NULL);
        gpu_program cpu;

        gpu_open_cpu(&cpu, text);
        for (int step = 0; step < n_steps(); step++) {
            gpu_run(&gpu, GX_MODE_GRAPH, 1);
            gpu_run(&cpu, GX_MODE_CPU, 1);
            const double rate = gpu_scalar(&cpu, "gexec.rate");
            const double norm = gpu_scalar(&cpu, "grad_norm");

            assert_true(fabs(gpu_scalar(&gpu, "gexec.rate") - rate) <= 1e-6 * rate);
            /* the weights have gone a few roundings apart */
            assert_true(fabs(gpu_scalar(&gpu, "grad_norm") - norm) <= 1e-3 * norm);
        }
        double *found = read_all(gpu.exec, "w2", 2, 133, 129);
        double *expected = read_all(cpu.exec, "w2", 2, 133, 129);
        const double error = test_error(found, expected, 133 * 129);

        print_message("%s: w2 is %.3g off\n", optimizers[i], error);
        assert_true(error < 1e-3);
        free(found);
        free(expected);
        free(text);
        gpu_close(&cpu);
        gpu_close(&gpu);
    }
}

/* --- what a captured step reads anew --- */

static void set_cell(gpu_program *program, const char *name, double value)
{
    const gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &value };
    gx_error err;

    assert_ok(gx_state_write(program->state, name, &host, &err), &err);
}

static void rates_of_groups_take_effect_without_a_rebuild(void **state)
{
    gpu_program program = open_model("f32", "sgd: {lr: 0.5}",
                                     ", groups: [{params: \"b*\", lr: 0.25}]", NULL);

    (void)state;
    gpu_run(&program, GX_MODE_GRAPH, 3);
    set_cell(&program, "gexec.lr.1", 0);
    double *w = read_all(program.exec, "w1", 2, 7, 133);
    double *b = read_all(program.exec, "b1", 1, 133, 0);

    gpu_run(&program, GX_MODE_GRAPH, 3);
    double *w_after = read_all(program.exec, "w1", 2, 7, 133);
    double *b_after = read_all(program.exec, "b1", 1, 133, 0);

    assert_memory_equal(b, b_after, 133 * sizeof *b);
    assert_true(memcmp(w, w_after, 7 * 133 * sizeof *w) != 0);
    assert_int_equal(gx_exec_stats_get(program.exec).instantiations, 1);
    free(w);
    free(b);
    free(w_after);
    free(b_after);
    gpu_close(&program);
}

/* B03: the change of a step falls with the scheduled rate, in one captured graph. */
static void a_schedule_goes_on_in_a_captured_graph(void **state)
{
    gpu_program program = open_model("f32", "sgd: {lr: 1}",
                                     ", schedule: {step: {every: 3, factor: 0.1}}", NULL);

    (void)state;
    for (int step = 0; step < 9; step++) {
        gpu_run(&program, GX_MODE_GRAPH, 1);
        const double expected = pow(0.1, step / 3);

        assert_true(fabs(gpu_scalar(&program, "gexec.rate") - expected) <=
                    1e-6 * expected);
    }
    assert_int_equal(gx_exec_stats_get(program.exec).instantiations, 1);
    gpu_close(&program);
}

static void parameters_move_at_each_nth_step(void **state)
{
    gpu_program program = open_model("f32", "adamw: {lr: 0.01}", ", accumulate: 4", NULL);
    double *before = read_all(program.exec, "w1", 2, 7, 133);

    (void)state;
    for (int step = 1; step <= 12; step++) {
        gpu_run(&program, GX_MODE_GRAPH, 1);
        double *after = read_all(program.exec, "w1", 2, 7, 133);
        const bool same = memcmp(before, after, 7 * 133 * sizeof *after) == 0;

        assert_int_equal(same, step % 4 != 0);
        free(before);
        before = after;
    }
    free(before);
    gpu_close(&program);
}

/* Saved between two updates. */
static void a_snapshot_within_an_accumulation_goes_on_with_the_same_bits(void **state)
{
    gpu_program program = open_model("f32", "nesterov: {lr: 0.1}", everything, NULL);
    gx_snapshot *snapshot;
    gx_error err;

    (void)state;
    gpu_run(&program, GX_MODE_GRAPH, 10);
    assert_ok(gx_state_save(program.state, &snapshot, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 20);
    const uint64_t bits = gpu_bits(&program);

    assert_ok(gx_state_restore(program.state, snapshot, &err), &err);
    gpu_run(&program, GX_MODE_EAGER, 20);
    assert_true(bits == gpu_bits(&program));
    gx_snapshot_free(snapshot);
    gpu_close(&program);
}

/* Gradients whose squares f32 does not hold are still clipped to the norm. */
static void a_large_norm_is_finite(void **state)
{
    gpu_program program;

    (void)state;
    gpu_open_text(&program,
                  "gexec: 1\nname: m\nprecision: f32\n"
                  "inputs: {g: {shape: [40001], init: {constant: 1.0e30}}, "
                  "z: {shape: [40001], init: zeros}}\n"
                  "params: {p: {shape: [40001]}}\n"
                  "ops: [{op: add, name: s, a: g, b: z, out: p.grad}]\n"
                  "optimizer: {sgd: {lr: 1}, clip_norm: 2}\n"
                  "metrics: {grad_norm: {}}\noutputs: [grad_norm]\n",
                  NULL);
    gpu_run(&program, GX_MODE_GRAPH, 1);
    assert_true(fabs(gpu_scalar(&program, "grad_norm") / (1e30 * sqrt(40001)) - 1) <
                1e-6);
    double *p = read_all(program.exec, "p", 1, 40001, 0);

    assert_true(fabs(p[40000] * sqrt(40001) + 2) < 1e-5);
    free(p);
    gpu_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_and_graph_give_the_same_bits),
        cmocka_unit_test(the_gpu_follows_the_cpu),
        cmocka_unit_test(rates_of_groups_take_effect_without_a_rebuild),
        cmocka_unit_test(a_schedule_goes_on_in_a_captured_graph),
        cmocka_unit_test(parameters_move_at_each_nth_step),
        cmocka_unit_test(a_snapshot_within_an_accumulation_goes_on_with_the_same_bits),
        cmocka_unit_test(a_large_norm_is_finite),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_training", tests, NULL, NULL);
}
