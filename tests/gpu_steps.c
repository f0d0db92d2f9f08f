/* Many steps a launch on a GPU, unrolled and in a loop on the device: the bits and the
 * losses of one step a launch, whatever lies between launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "support_gpu.h"

/* --- a program --- */

enum { STEPS = 100 };

static const int counts[] = { 1, 2, 5, 50 };

static int n_steps(void)
{
    return test_is_short() ? 10 : STEPS;
}

typedef struct outcome {
    uint64_t bits;
    double *losses; /* of n_steps() steps */
    gx_exec_stats stats;
} outcome;

static outcome train(const gpu_options *options, gx_mode mode)
{
    gpu_program program;
    outcome out = { .losses = malloc(STEPS * sizeof *out.losses) };
    gx_error err;

    assert_non_null(out.losses);
    gpu_open(&program, options);
    gpu_run(&program, mode, n_steps());
    assert_ok(gx_exec_log(program.exec, n_steps(), out.losses, &err), &err);
    assert_int_equal(gpu_step_count(&program), n_steps());
    out.bits = gpu_bits(&program);
    out.stats = gx_exec_stats_get(program.exec);
    gpu_close(&program);
    return out;
}

static void same_by_launches(const gpu_options *base)
{
    const outcome expected = train(base, GX_MODE_EAGER);
    const int steps = n_steps();

    for (size_t i = 0; i < ARRAY_SIZE(counts) && counts[i] <= steps; i++)
        for (int loop = 0; loop < 1 + test_has_conditions(); loop++) {
            gpu_options options = *base;

            options.steps_per_launch = counts[i];
            options.step_loop = loop;
            const outcome found = train(&options, GX_MODE_GRAPH);
            if (found.bits != expected.bits ||
                memcmp(found.losses, expected.losses,
                       (size_t)steps * sizeof *found.losses) != 0)
                fail_msg("%d steps a launch%s, %d lanes, programmatic %d: other bits",
                         counts[i], loop ? " in a loop" : "", options.lanes,
                         (int)options.programmatic);
            assert_int_equal(found.stats.graph_launches, steps / counts[i]);
            assert_int_equal(found.stats.graph_nodes,
                             loop && counts[i] > 1
                                 ? found.stats.launches_per_step + 2
                                 : counts[i] * found.stats.launches_per_step);
            free(found.losses);
        }
    free(expected.losses);
}

static void launches_change_no_bit(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++)
        for (int on = 0; on < 2; on++) {
            const gpu_options base = { .n_layers = 4,
                                       .lanes = lanes,
                                       .programmatic = on ? GX_ON : GX_OFF,
                                       .seed = test_seed() };

            same_by_launches(&base);
        }
}

/* Kernels of our own alone are a chain of programmatic edges from launch to launch. */
static void steps_that_overlap_change_no_bit(void **state)
{
    const gpu_options base = {
        .n_layers = 3, .programmatic = GX_ON, .force = "tile", .seed = test_seed()
    };
    gpu_options five = base;

    (void)state;
    same_by_launches(&base);
    five.steps_per_launch = 1;
    const outcome one = train(&five, GX_MODE_GRAPH);
    five.steps_per_launch = 5;
    const outcome many = train(&five, GX_MODE_GRAPH);
    print_message("%lld programmatic edges in a step, %lld in five\n",
                  (long long)one.stats.programmatic_edges,
                  (long long)many.stats.programmatic_edges);
    assert_true(many.stats.programmatic_edges >= 5 * one.stats.programmatic_edges);
    free(one.losses);
    free(many.losses);
}

static void a_thousand_launches_of_a_loop_are_whole(void **state)
{
    const gpu_options one = { .seed = test_seed() };
    gpu_options loop = one;
    const int steps = test_is_short() ? 70 : 7000;
    gpu_program program;

    (void)state;
    if (!test_has_conditions())
        skip();
    loop.steps_per_launch = 7;
    loop.step_loop = true;
    gpu_open(&program, &loop);
    gpu_run(&program, GX_MODE_GRAPH, steps);
    assert_int_equal(gpu_step_count(&program), steps);
    const uint64_t bits = gpu_bits(&program);
    gpu_close(&program);
    gpu_open(&program, &one);
    gpu_run(&program, GX_MODE_GRAPH, steps);
    assert_int_equal(gpu_bits(&program), bits);
    gpu_close(&program);
}

/* What lies between launches: another rate, another input, eager steps, a new address. */
static uint64_t interrupted_bits(const gpu_options *options)
{
    float x[16 * 33];
    const gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { 16, 33 }, .data = x };
    gpu_program program;
    gx_error err;

    gpu_open(&program, options);
    gpu_run(&program, GX_MODE_GRAPH, 10);
    assert_ok(gx_state_set_rate(program.state, 0.5e-2, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 10);
    for (int i = 0; i < 16 * 33; i++)
        x[i] = (float)(i % 11) / 11;
    assert_ok(gx_exec_write(program.exec, "x", &host, &err), &err);
    gpu_run(&program, GX_MODE_GRAPH, 20);
    gpu_run(&program, GX_MODE_EAGER, 3);
    gpu_run(&program, GX_MODE_GRAPH, 10);
    assert_int_equal(gpu_step_count(&program), 53);
    const uint64_t bits = gpu_bits(&program);
    gpu_close(&program);
    return bits;
}

static void what_changes_between_launches_is_seen(void **state)
{
    gpu_options options = { .seed = test_seed() };

    (void)state;
    const uint64_t expected = interrupted_bits(&options);
    options.steps_per_launch = 10;
    assert_int_equal(interrupted_bits(&options), expected);
    if (!test_has_conditions())
        return;
    options.step_loop = true;
    assert_int_equal(interrupted_bits(&options), expected);
}

/* --- from the command line --- */

/* 12 whole batches and a short one; more steps than the log holds. */
enum { ROWS = 203, BATCH = 16, EPOCHS = 320, PER_EPOCH = 13 };

static int n_epochs(void)
{
    return test_is_short() ? 2 : EPOCHS;
}

static char *write_model(const char *precision)
{
    static float x[ROWS * 20];
    int32_t y[ROWS];
    const gx_tensor rows = { .dtype = GX_F32, .rank = 2, .dim = { ROWS, 20 }, .data = x };
    const gx_tensor labels = { .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = y };
    char *const paths[] = { test_path("x.npy"), test_path("y.npy") };
    test_random random = test_random_start(3);
    char text[1600];
    gx_error err;

    for (int i = 0; i < ROWS * 20; i++)
        x[i] = (float)test_random_real(&random, -1, 1);
    for (int i = 0; i < ROWS; i++)
        y[i] = (int32_t)test_random_int(&random, 0, 4);
    assert_ok(gx_npy_write(paths[0], &rows, &err), &err);
    assert_ok(gx_npy_write(paths[1], &labels, &err), &err);
    free(paths[0]);
    free(paths[1]);
    snprintf(text, sizeof text,
             "gexec: 1\nname: launched\nprecision: %s\ndims: {batch: %d}\n"
             "data: {x: x.npy, y: y.npy, shuffle: true}\n"
             "inputs:\n  x: {shape: [batch, 20]}\n  y: {shape: [batch], dtype: i32}\n"
             "params:\n  w1: {shape: [20, 31], init: he_normal}\n  b1: {shape: [31]}\n"
             "  w2: {shape: [31, 5], init: he_normal}\n  b2: {shape: [5]}\n"
             "ops:\n  - {op: gemm, name: fc1, a: x, b: w1, "
             "epilogue: {bias: b1, act: relu}, out: h}\n"
             "  - {op: dropout, name: d, x: h, p: 0.2}\n"
             "  - {op: gemm, name: fc2, a: d, b: w2, epilogue: {bias: b2}, out: z}\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: z, labels: y}\n"
             "backward: loss\noptimizer:\n  adamw: {lr: 0.003}\n"
             "  schedule: {cosine: {steps: 3000, warmup: 100}}\noutputs: [loss]\n",
             precision, BATCH);
    return test_write_text("launched.yaml", text);
}

/* Trains by the command and gives the bytes of all losses and of two tensors. */
static char *run(const char *flags, size_t *length)
{
    static const char *const names[] = { "loss.npy", "w1.npy", "step.npy" };
    char *const folder = test_path("");
    char line[1200];
    char *argv[40];
    int argc = 0;
    gx_args args;
    char *all = NULL;

    snprintf(line, sizeof line,
             "gexec run %slaunched.yaml -q --graph --no-cache --epochs %d --plan "
             "%splan.yaml --loss-out %sloss.npy --out w1=%sw1.npy --out "
             "gexec.sample=%sstep.npy --json %srun.json %s",
             folder, n_epochs(), folder, folder, folder, folder, folder, flags);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    assert_true(gx_args_parse(&args, argc, argv));
    assert_int_equal(args.command->run(&args), GX_EXIT_OK);
    gx_args_free(&args);
    *length = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *const path = test_path(names[i]);
        size_t n;
        char *const bytes = test_read(path, &n);

        all = realloc(all, *length + n + 1);
        assert_non_null(all);
        memcpy(all + *length, bytes, n);
        *length += n;
        assert_true(i > 0 || n >= (size_t)n_epochs() * PER_EPOCH * sizeof(double));
        remove(path);
        free(bytes);
        free(path);
    }
    free(folder);
    return all;
}

static void epochs_and_remainders_change_no_loss(void **state)
{
    static const char *const precisions[] = { "f32", "tf32", "bf16" };
    const size_t n_precisions = test_is_short() ? 1 : ARRAY_SIZE(precisions);
    static const char *const flags[] = { "--steps-per-launch 2",
                                         "--steps-per-launch 5",
                                         "--steps-per-launch 50",
                                         "--steps-per-launch 5 --step-loop on",
                                         "--steps-per-launch 12 --step-loop on",
                                         "--steps-per-launch auto" }; /* tries loops */
    const size_t n_flags = test_has_conditions() ? ARRAY_SIZE(flags) : 3;

    (void)state;
    for (size_t p = 0; p < n_precisions; p++) {
        char *const model = write_model(precisions[p]);
        char *const plan = test_path("plan.yaml");
        char *const short_plan = test_path("plan.yaml.short");
        size_t length, found_length;
        char *const expected = run("", &length);

        for (size_t i = 0; i < n_flags; i++) {
            char *const found = run(flags[i], &found_length);

            assert_int_equal(found_length, length);
            if (memcmp(found, expected, length) != 0)
                fail_msg("%s, %s: other losses or weights", precisions[p], flags[i]);
            free(found);
        }
        remove(plan);
        remove(short_plan);
        free(expected);
        free(short_plan);
        free(plan);
        free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_change_no_bit),
        cmocka_unit_test(steps_that_overlap_change_no_bit),
        cmocka_unit_test(a_thousand_launches_of_a_loop_are_whole),
        cmocka_unit_test(what_changes_between_launches_is_seen),
        cmocka_unit_test(epochs_and_remainders_change_no_loss),
    };

    gpu_start();
    return cmocka_run_group_tests_name("gpu_steps", tests, NULL, NULL);
}
