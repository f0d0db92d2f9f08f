/* f16, f32 masters and the scale of the loss on a GPU: eager and graph mode give the same
 * bits, the CPU decides the same, and a step that overflows leaves everything as it was.
 */
#include "support_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 40, ROWS = 24, COLUMNS = 129 };

/* Odd sizes; the second weight is larger than a chunk. */
#define MODEL                                                                       \
    "gexec: 1\nname: m\nprecision: %s\n"                                            \
    "inputs:\n  x: {shape: [24, 7], init: normal}\n"                                \
    "  t: {shape: [24, 129], dtype: f32, init: normal}\n"                           \
    "params:\n  w1: {shape: [7, 133], init: he_normal}\n  b1: {shape: [133]}\n"     \
    "  w2: {shape: [133, 129], init: he_normal}\n  b2: {shape: [129]}\n"            \
    "ops:\n  - {op: gemm, name: h, a: x, b: w1, epilogue: {bias: b1, act: relu}}\n" \
    "  - {op: gemm, name: y, a: h, b: w2, epilogue: {bias: b2}}\n"                  \
    "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"                  \
    "optimizer: {%s}\nmetrics: {grad_norm: {}, loss_scale: {}, skipped: {}}\n"      \
    "outputs: [loss, grad_norm]\n"

/* The scale is too large at first, and grows until it is too large again. */
static const char scaling[] =
    ", loss_scale: {dynamic: {initial: 1.0e9, growth_interval: 2, growth: 8}}";
static const char everything[] =
    ", schedule: {cosine: {steps: 15, warmup: 4, end: 0.1}}, clip_norm: 0.05, "
    "accumulate: 3, groups: [{params: \"b*\", weight_decay: 0.1, lr: 0.2}]";

static char *text_of(const char *precision, const char *optimizer, const char *beside)
{
    char section[800];
    char *text = malloc(3000);

    assert_non_null(text);
    snprintf(section, sizeof section, "%s%s%s", optimizer, beside, scaling);
    snprintf(text, 3000, MODEL, precision, section);
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

static double cell(gpu_program *program, const char *name, int rank)
{
    double value;
    gx_tensor host = { .dtype = GX_F64, .rank = rank, .dim = { 1 }, .data = &value };
    gx_error err;

    assert_ok(gx_state_read(program->state, name, &host, &err), &err);
    return value;
}

/* --- the modes --- */

static uint64_t bits_after(const char *precision, const char *optimizer,
                           const char *beside, gx_mode mode, const gpu_options *options)
{
    gpu_program program = open_model(precision, optimizer, beside, options);

    gpu_run(&program, mode, test_is_short() ? 8 : STEPS);
    const uint64_t bits = gpu_bits(&program);

    if (strcmp(precision, "f16") == 0)
        assert_true(cell(&program, "gexec.skipped", 1) > 0);
    gpu_close(&program);
    return bits;
}

static void eager_and_graph_give_the_same_bits(void **state)
{
    static const char *const precisions[] = { "f32", "bf16", "f16" };
    static const char *const optimizers[] = {
        "sgd: {lr: 0.5}, master: f32", "momentum: {lr: 0.1}, moments: f32",
        "nesterov: {lr: 0.1}, master: f32, moments: f32",
        "adam: {lr: 0.01}, moments: f32", "adamw: {lr: 0.01}, master: f32, moments: f32"
    };
    const gpu_options plain = { .lanes = 1 };
    const gpu_options two = { .lanes = 2, .programmatic = GX_ON };
    const gpu_options all = { .lanes = 3, .programmatic = GX_ON, .steps_per_launch = 2 };
    const gpu_options three = { .lanes = 1, .steps_per_launch = 4 };

    (void)state;
    /* Every seventh has each precision, each optimizer, and what stands beside it. */
    for (size_t i = 0; i < 2 * ARRAY_SIZE(precisions) * ARRAY_SIZE(optimizers);
         i += test_is_short() ? 7 : 1) {
        const char *beside = i % 2 ? everything : "";
        const char *precision = precisions[i / 2 % ARRAY_SIZE(precisions)];
        const char *optimizer = optimizers[i / 2 / ARRAY_SIZE(precisions)];
        const uint64_t bits =
            bits_after(precision, optimizer, beside, GX_MODE_EAGER, &plain);

        assert_true(bits ==
                    bits_after(precision, optimizer, beside, GX_MODE_GRAPH, &plain));
        assert_true(bits ==
                    bits_after(precision, optimizer, beside, GX_MODE_GRAPH, &two));
        assert_true(bits ==
                    bits_after(precision, optimizer, beside, GX_MODE_GRAPH, &all));
        assert_true(bits ==
                    bits_after(precision, optimizer, beside, GX_MODE_GRAPH, &three));
    }
}

/* --- an IF node around the updates --- */

/* Behind its first step, which overflows, the scale is far from where that hangs on a
 * rounding: of 8 steps the first, the fourth and the seventh are skipped. */
#define LEAPING                                                                     \
    ", loss_scale: {dynamic: {initial: 1.0e9, backoff: 0.001, growth_interval: 2, " \
    "growth: 1000}}"

enum { LEAPS = 8, LEAPS_SKIPPED = 3 };

typedef struct branch_outcome {
    uint64_t bits;
    double scale, tracker, skipped;
    gx_exec_stats stats;
} branch_outcome;

static branch_outcome train_leaping(const char *beside, gx_mode mode,
                                    const gpu_options *options)
{
    char section[300], text[3000];
    gpu_program program;
    branch_outcome out;

    snprintf(section, sizeof section,
             "adamw: {lr: 0.01}, master: f32, moments: f32%s" LEAPING, beside);
    snprintf(text, sizeof text, MODEL, "f16", section);
    gpu_open_text(&program, text, options);
    gpu_run(&program, mode, LEAPS);
    out.bits = gpu_bits(&program);
    out.scale = cell(&program, "gexec.scale", 0);
    out.tracker = cell(&program, "gexec.growth_tracker", 1);
    out.skipped = cell(&program, "gexec.skipped", 1);
    out.stats = gx_exec_stats_get(program.exec);
    assert_int_equal(gpu_step_count(&program), LEAPS);
    gpu_close(&program);
    return out;
}

static void check_branch(const char *beside, const gpu_options *options,
                         const branch_outcome *eager)
{
    gpu_options with = *options;
    const branch_outcome without = train_leaping(beside, GX_MODE_GRAPH, options);

    with.skip_if = GX_ON;
    const branch_outcome found = train_leaping(beside, GX_MODE_GRAPH, &with);
    if (found.bits != eager->bits || without.bits != eager->bits)
        fail_msg(
            "%d lanes, programmatic %d, %d steps a launch, loop %d: other bits %s an "
            "IF node",
            options->lanes, (int)options->programmatic, options->steps_per_launch,
            options->step_loop, found.bits != eager->bits ? "with" : "without");
    assert_true(found.scale == eager->scale && found.tracker == eager->tracker &&
                found.skipped == eager->skipped);
    const int n_branches = options->step_loop ? 1 : options->steps_per_launch;
    assert_int_equal(found.stats.graph_nodes, without.stats.graph_nodes + 2 * n_branches);
    assert_int_equal(found.stats.graph_launches, LEAPS / options->steps_per_launch);
}

static void updates_in_an_if_node_give_the_same_bits(void **state)
{
    static const struct {
        int steps;
        bool loop;
    } launches[] = { { 1, false }, { 4, false }, { 8, false }, { 4, true }, { 8, true } };
    static const char *const besides[] = { "", ", accumulate: 2, clip_norm: 0.05" };

    (void)state;
    if (!test_has_conditions())
        skip();
    for (size_t b = 0; b < ARRAY_SIZE(besides); b++) {
        const gpu_options plain = { .lanes = 1 };
        const branch_outcome eager = train_leaping(besides[b], GX_MODE_EAGER, &plain);

        if (b == 0)
            assert_true(eager.skipped == LEAPS_SKIPPED);
        assert_true(eager.skipped > 0);
        for (size_t i = 0; i < 4 * ARRAY_SIZE(launches); i++) {
            const gpu_options options = { .lanes = 1 + (int)(i % 2),
                                          .programmatic = i / 2 % 2 ? GX_ON : GX_OFF,
                                          .steps_per_launch = launches[i / 4].steps,
                                          .step_loop = launches[i / 4].loop };

            check_branch(besides[b], &options, &eager);
        }
    }
}

/* Handed out, the graph has no IF node, and the launches of the program itself neither.
 */
static void a_graph_for_others_gives_the_same_bits(void **state)
{
    const gpu_options options = { .lanes = 1, .skip_if = GX_ON };
    char section[300], text[3000];
    gpu_program program;
    void *graph = NULL;
    gx_error err;

    (void)state;
    if (!test_has_conditions())
        skip();
    const branch_outcome eager = train_leaping("", GX_MODE_EAGER, &options);
    snprintf(section, sizeof section,
             "adamw: {lr: 0.01}, master: f32, moments: f32" LEAPING);
    snprintf(text, sizeof text, MODEL, "f16", section);
    gpu_open_text(&program, text, &options);
    gpu_run(&program, GX_MODE_GRAPH, 3);
    assert_ok(gx_exec_cuda_graph(program.exec, &graph, &err), &err);
    assert_non_null(graph);
    gpu_run(&program, GX_MODE_GRAPH, LEAPS - 3);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    assert_int_equal(stats.rebuilds, 1);
    assert_true(gpu_bits(&program) == eager.bits);
    gpu_close(&program);
}

/* --- an overflow --- */

static void fill_target(gpu_program *program, float value)
{
    float *t = malloc(ROWS * COLUMNS * sizeof *t);
    const gx_tensor host = {
        .dtype = GX_F32, .rank = 2, .dim = { ROWS, COLUMNS }, .data = t
    };
    gx_error err;

    assert_non_null(t);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        t[i] = value;
    assert_ok(gx_exec_write(program->exec, "t", &host, &err), &err);
    free(t);
}

static double *read_weights(gpu_program *program, const char *name)
{
    double *values = malloc(133 * 129 * sizeof *values);
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 133, 129 }, .data = values };
    gx_error err;

    assert_non_null(values);
    assert_ok(gx_state_read(program->state, name, &host, &err), &err);
    return values;
}

/* G15: at replay 3 of 6, from a fixed graph. */
static void check_overflow(gx_mode mode, const gpu_options *options)
{
    static const char *const names[] = { "w2", "w2.master", "w2.m", "w2.v" };
    gpu_program program =
        open_model("f16", "adamw: {lr: 0.01}, master: f32, moments: f32", "", options);
    double scale = 1024, *before[4];
    const gx_tensor host = { .dtype = GX_F64, .data = &scale };
    gx_error err;

    assert_ok(gx_state_write(program.state, "gexec.scale", &host, &err), &err);
    fill_target(&program, 0.5F);
    gpu_run(&program, mode, 2);
    for (int k = 0; k < 4; k++)
        before[k] = read_weights(&program, names[k]);
    fill_target(&program, 1e6F);
    gpu_run(&program, mode, 1);
    fill_target(&program, 0.5F);
    for (int k = 0; k < 4; k++) {
        double *after = read_weights(&program, names[k]);

        assert_memory_equal(before[k], after, 133 * 129 * sizeof *after);
        free(after);
        free(before[k]);
    }
    assert_true(cell(&program, "gexec.skipped", 1) == 1);
    assert_true(cell(&program, "gexec.growth_tracker", 1) == 0);
    assert_true(cell(&program, "gexec.scale", 0) == 8 * 1024 / 2);
    assert_true(isinf(gpu_scalar(&program, "grad_norm")) ||
                isnan(gpu_scalar(&program, "grad_norm")));
    gpu_run(&program, mode, 3);
    assert_true(cell(&program, "gexec.skipped", 1) == 1);
    assert_int_equal(gpu_step_count(&program), 6);
    if (mode == GX_MODE_GRAPH)
        assert_int_equal(gx_exec_stats_get(program.exec).instantiations, 1);
    gpu_close(&program);
}

static void a_step_that_overflows_leaves_everything_as_it_was(void **state)
{
    (void)state;
    check_overflow(GX_MODE_EAGER, NULL);
    check_overflow(GX_MODE_GRAPH, NULL);
    if (test_has_conditions())
        check_overflow(GX_MODE_GRAPH, &(gpu_options){ .skip_if = GX_ON });
}

/* --- against the CPU --- */

/* Targets far off, so that whether a step overflows hangs on no rounding. */
static void the_gpu_skips_what_the_cpu_skips(void **state)
{
    static const char optimizer[] = "adamw: {lr: 1.0e-4}, master: f32, moments: f32";
    char *text = text_of("f16", optimizer, ", accumulate: 2");
    gpu_program gpu = open_model("f16", optimizer, ", accumulate: 2", NULL);
    gpu_program cpu;
    test_random random = test_random_start(test_seed());
    double scale = 4096;
    const gx_tensor host = { .dtype = GX_F64, .data = &scale };
    gx_error err;

    (void)state;
    gpu_open_cpu(&cpu, text);
    assert_ok(gx_state_write(gpu.state, "gexec.scale", &host, &err), &err);
    assert_ok(gx_state_write(cpu.state, "gexec.scale", &host, &err), &err);
    for (int step = 0; step < STEPS; step++) {
        const float target = test_random_int(&random, 0, 4) == 0 ? 1e9F : 2.0F;

        /* the scale grows by 8, which finite targets must bear */
        if (cell(&cpu, "gexec.scale", 0) > 1e5) {
            assert_ok(gx_state_write(gpu.state, "gexec.scale", &host, &err), &err);
            assert_ok(gx_state_write(cpu.state, "gexec.scale", &host, &err), &err);
        }
        fill_target(&gpu, target);
        fill_target(&cpu, target);
        gpu_run(&gpu, GX_MODE_GRAPH, 1);
        gpu_run(&cpu, GX_MODE_CPU, 1);
        assert_true(cell(&gpu, "gexec.scale", 0) == cell(&cpu, "gexec.scale", 0));
        assert_true(cell(&gpu, "gexec.skipped", 1) == cell(&cpu, "gexec.skipped", 1));
        assert_true(cell(&gpu, "gexec.growth_tracker", 1) ==
                    cell(&cpu, "gexec.growth_tracker", 1));
    }
    assert_true(cell(&cpu, "gexec.skipped", 1) > 0);
    double *found = read_weights(&gpu, "w2.master");
    double *expected = read_weights(&cpu, "w2.master");
    const double error = test_error(found, expected, 133 * 129);

    print_message("w2.master is %.3g off\n", error);
    assert_true(error < 1e-2);
    free(found);
    free(expected);
    free(text);
    gpu_close(&cpu);
    gpu_close(&gpu);
}

/* A parameter is the rounded copy of its master to the bit. */
static void check_copies(const char *precision, gx_dtype dtype)
{
    gpu_program program =
        open_model(precision, "sgd: {lr: 1.0e-3}, master: f32", "", NULL);

    gpu_run(&program, GX_MODE_GRAPH, 50);
    double *weights = read_weights(&program, "w2");
    double *masters = read_weights(&program, "w2.master");
    int n_rounded = 0;

    for (int i = 0; i < 133 * 129; i++) {
        assert_true(weights[i] == gx_round_to(dtype, masters[i]));
        n_rounded += weights[i] < masters[i] || weights[i] > masters[i];
    }
    assert_true(n_rounded > 1000);
    free(masters);
    free(weights);
    gpu_close(&program);
}

static void parameters_are_the_rounded_copies_of_masters(void **state)
{
    (void)state;
    check_copies("bf16", GX_BF16);
    check_copies("f16", GX_F16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_and_graph_give_the_same_bits),
        cmocka_unit_test(updates_in_an_if_node_give_the_same_bits),
        cmocka_unit_test(a_graph_for_others_gives_the_same_bits),
        cmocka_unit_test(a_step_that_overflows_leaves_everything_as_it_was),
        cmocka_unit_test(the_gpu_skips_what_the_cpu_skips),
        cmocka_unit_test(parameters_are_the_rounded_copies_of_masters),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_mixed", tests, NULL, NULL);
}
