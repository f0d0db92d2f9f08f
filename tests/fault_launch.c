/* How many steps a launch holds, on the simulated CUDA, where a launch takes a tick and a
 * turn of a loop another: what is tried, taken and remembered; and training by launches
 * of several steps, from the command line. */
#include "fake_cuda_paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "select.h"

/* --- what is tried and taken --- */

static gx_plan_info choose(path_program *program, const gx_plan_options *options,
                           gx_cache *cache)
{
    gx_error err;

    gx_error_clear(&err);
    assert_ok(gx_choose_launch(program->plan, options, cache, &err), &err);
    return gx_plan_info_get(program->plan);
}

/* A tick is a millisecond, so a launch may hold 16 steps and no more than 20. */
static void the_fastest_is_taken(void **state)
{
    const gx_plan_options automatic = { .steps_per_launch = GX_STEPS_AUTO };
    path_program program;

    (void)state;
    path_open(&program, 1);
    const gx_plan_info info = choose(&program, &automatic, NULL);
    assert_int_equal(info.steps_per_launch, 16);
    assert_false(info.step_loop);
    for (int i = 0; i < 5; i++)
        assert_true(info.launch_trial[i].us == 1000.0 / (1 << i));
    assert_true(info.launch_trial[5].us < 0 && info.launch_trial[6].us < 0);
    assert_true(info.launch_trial[7].loop && info.launch_trial[7].us == 1000);
    assert_int_equal(info.launch_trial[7].steps_per_launch, 16);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void limits_are_kept(void **state)
{
    gx_plan_options options = { .steps_per_launch = GX_STEPS_AUTO, .longest_launch = 5 };
    path_program program;

    (void)state;
    path_open(&program, 1);
    assert_int_equal(choose(&program, &options, NULL).steps_per_launch, 4);
    options.longest_launch = 1;
    assert_int_equal(choose(&program, &options, NULL).steps_per_launch, 1);
    options.longest_launch = 0;
    options.step_loop = GX_OFF;
    assert_true(choose(&program, &options, NULL).launch_trial[7].us < 0);
    /* In a loop a turn takes as long as a launch of one step here, which is the shorter.
     */
    options.step_loop = GX_ON;
    const gx_plan_info info = choose(&program, &options, NULL);
    assert_int_equal(info.steps_per_launch, 1);
    assert_true(info.launch_trial[1].us < 0 && info.launch_trial[7].us == 1000);
    options.no_measure = true;
    fake_begin();
    assert_int_equal(choose(&program, &options, NULL).steps_per_launch, 1);
    assert_int_equal(fake_calls(NULL), 0);
    path_close(&program);
}

static void a_device_without_room_or_loops_takes_what_it_can(void **state)
{
    const gx_plan_options automatic = { .steps_per_launch = GX_STEPS_AUTO };
    path_program program;

    (void)state;
    path_open(&program, 1);
    fake_set_driver(12010);
    gx_plan_info info = choose(&program, &automatic, NULL);
    assert_int_equal(info.steps_per_launch, 16);
    assert_true(info.launch_trial[7].us < 0);
    fake_set_driver(13000);
    fake_set_free_bytes(1000);
    info = choose(&program, &automatic, NULL);
    fake_set_free_bytes((size_t)8 << 30);
    assert_int_equal(info.steps_per_launch, 1);
    assert_true(info.launch_trial[0].us < 0 && info.launch_trial[1].us < 0);
    path_close(&program);
}

/* A device that had no room may have it the next time. */
static void what_was_not_timed_is_not_remembered(void **state)
{
    const gx_device_info card = { .name = "card", .cc_major = 9 };
    const gx_plan_options automatic = { .steps_per_launch = GX_STEPS_AUTO };
    char *folder = test_path("no_room");
    path_program program;
    gx_cache *cache;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    fake_set_free_bytes(1000);
    assert_true(choose(&program, &automatic, cache).launch_trial[0].us < 0);
    fake_set_free_bytes((size_t)8 << 30);
    assert_true(choose(&program, &automatic, cache).launch_trial[0].us > 0);
    gx_cache_close(cache);
    path_close(&program);
    free(folder);
}

static void a_choice_is_remembered_by_what_was_asked(void **state)
{
    const gx_device_info card = { .name = "card", .cc_major = 9 };
    gx_plan_options options = { .steps_per_launch = GX_STEPS_AUTO };
    char *folder = test_path("launches");
    path_program program;
    gx_cache *cache;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    const gx_plan_info first = choose(&program, &options, cache);
    gx_cache_save(cache);
    gx_cache_close(cache);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    assert_null(gx_cache_note(cache));
    fake_begin();
    const gx_plan_info second = choose(&program, &options, cache);
    assert_int_equal(fake_calls(NULL), 0);
    assert_int_equal(second.steps_per_launch, first.steps_per_launch);
    assert_memory_equal(second.launch_trial, first.launch_trial,
                        sizeof first.launch_trial);
    options.longest_launch = 8;
    assert_int_equal(choose(&program, &options, cache).steps_per_launch, 8);
    assert_true(fake_calls("cudaGraphLaunch") > 0);
    gx_cache_close(cache);
    path_close(&program);
    free(folder);
}

static void a_trial_that_fails_is_told(void **state)
{
    static const char *const functions[] = { "cudaGraphInstantiate", "cudaGraphLaunch",
                                             "cudaGraphAddNode", "cudaLaunchKernelExC",
                                             "cudaEventElapsedTime" };
    const gx_plan_options automatic = { .steps_per_launch = GX_STEPS_AUTO };
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    const long live = fake_live();
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        fake_begin();
        fake_fail(functions[i], 1, 999);
        gx_error_clear(&err);
        assert_fails(gx_choose_launch(program.plan, &automatic, NULL, &err), GX_ERR_CUDA,
                     &err, "timing the plan: ");
        assert_has(err.message, functions[i]);
        assert_int_equal(fake_live(), live);
    }
    fake_begin();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- from the command line --- */

/* The simulated card computes nothing, so nothing would pass the check of a measured
 * plan. */
gx_status __real_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err);
gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err);

gx_status __wrap_gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                                gx_plan **plan, gx_error *err)
{
    gx_plan_options unmeasured = *options;

    unmeasured.no_measure = true;
    GX_TRY(__real_gx_plan_create(graph, &unmeasured, plan, err));
    return options->steps_per_launch == GX_STEPS_AUTO
               ? gx_choose_launch(*plan, options, NULL, err)
               : GX_OK;
}

/* No kernel counts steps either: what was submitted since the last call is the log. */
gx_status __wrap_gx_exec_log(gx_exec *exec, int64_t n_rows, double *rows, gx_error *err);
static int64_t n_logged;

gx_status __wrap_gx_exec_log(gx_exec *exec, int64_t n_rows, double *rows, gx_error *err)
{
    (void)exec;
    (void)err;
    assert_in_range(n_rows, 1, GX_LOG_ROWS);
    for (int64_t i = 0; i < n_rows; i++)
        rows[i] = (double)n_logged++;
    return GX_OK;
}

enum { ROWS = 43, BATCH = 4, WHOLE = ROWS / BATCH, EPOCH = WHOLE + 1 };

static bool ignoring; /* every row whose number three divides, and all from 32 to 35 */

static bool is_ignored(int row)
{
    return ignoring && (row % 3 == 0 || row / BATCH == 8);
}

static char *write_model(void)
{
    float x[ROWS * 3] = { 0 };
    int32_t y[ROWS] = { 0 };
    const gx_tensor rows = { .dtype = GX_F32, .rank = 2, .dim = { ROWS, 3 }, .data = x };
    const gx_tensor labels = { .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = y };
    char *const paths[] = { test_path("x.npy"), test_path("y.npy") };
    char text[1000];
    gx_error err;

    for (int i = 0; i < ROWS; i++)
        y[i] = is_ignored(i) ? -1 : 0;
    assert_ok(gx_npy_write(paths[0], &rows, &err), &err);
    assert_ok(gx_npy_write(paths[1], &labels, &err), &err);
    free(paths[0]);
    free(paths[1]);
    snprintf(text, sizeof text,
             "gexec: 1\nname: launched\nprecision: f32\ndims: {batch: 4}\n"
             "data: {x: x.npy, y: y.npy, epochs: 3}\n"
             "inputs:\n  x: {shape: [batch, 3]}\n  y: {shape: [batch], dtype: i32}\n"
             "params: {w: {shape: [3, 2], init: he_normal}}\n"
             "ops:\n  - {op: gemm, name: fc, a: x, b: w, out: h}\n"
             "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y%s}\n"
             "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n",
             ignoring ? ", ignore_index: -1" : "");
    return test_write_text("launched.yaml", text);
}

/* Runs `gexec COMMAND MODEL -q --no-cache --json F FLAGS...`, which has to exit with
 * `wanted`. What it wrote as JSON, the caller frees; NULL where it did not. */
static char *command(int wanted, const char *name, const char *flags)
{
    char *const file = write_model();
    char *const json = test_path("launched.json");
    char line[200];
    char *argv[24];
    int argc = 0;
    gx_args args;
    char *text = NULL;

    snprintf(line, sizeof line, "gexec %s -q --no-cache %s", name, flags);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    char option[] = "--json";
    argv[argc++] = option;
    argv[argc++] = json;
    argv[argc++] = file;
    remove(json);
    n_logged = 0;
    fake_begin();
    assert_true(gx_args_parse(&args, argc, argv));
    assert_int_equal(args.command->run(&args), wanted);
    gx_args_free(&args);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
    if (wanted == GX_EXIT_OK)
        text = test_read(json, NULL);
    free(json);
    free(file);
    return text;
}

/* Each once and in order. */
static int count_losses(const char *text)
{
    const char *at = strstr(text, "\"curves\"");
    char *end;
    int n = 0;

    assert_non_null(at);
    at = strchr(at, '[');
    assert_non_null(at);
    for (; *at != ']'; at = end, n++) {
        assert_true(strtod(at + 1, &end) == n);
        end += strspn(end, " \n");
    }
    return n;
}

/* Of the log, which numbers the steps, a mean weighted by the labels that count. */
static void steps_are_weighted_by_labels_that_count(void **state)
{
    static const char *const flags[] = { "", "--steps-per-launch 4", "--stream" };

    (void)state;
    ignoring = true;
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        char *const text = command(GX_EXIT_OK, "run", flags[i]);
        const char *at = strstr(text, "\"epoch_means\"");

        for (int epoch = 0; epoch < 3; epoch++) {
            double sum = 0, n = 0;

            for (int row = 0; row < ROWS; row++)
                if (!is_ignored(row)) {
                    sum += epoch * EPOCH + row / BATCH;
                    n++;
                }
            assert_non_null(at);
            at = strstr(at, "\"loss\": ");
            assert_non_null(at);
            at += strlen("\"loss\": ");
            assert_true(fabs(strtod(at, NULL) - sum / n) < 1e-6);
        }
        free(text);
    }
    ignoring = false;
}

/* 10 whole batches and a short one: two launches of four, two of one, the short one. */
static void an_epoch_is_launches_and_a_remainder(void **state)
{
    static const char *const flags[] = { "--steps-per-launch 4",
                                         "--steps-per-launch 4 --step-loop on",
                                         "--steps-per-launch 4 --stream" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        const long before = fake_turns();
        char *const text = command(GX_EXIT_OK, "run", flags[i]);

        assert_int_equal(fake_calls("cudaGraphLaunch"), 3 * (2 + 2 + 1));
        assert_int_equal(fake_turns() - before, i == 1 ? 3 * 2 * 4 : 0);
        assert_has(text, "\"steps\": 33,");
        assert_has(text, "\"steps_per_launch\": 4");
        assert_has(text, i == 1 ? "\"step_loop\": true" : "\"step_loop\": false");
        assert_int_equal(count_losses(text), 3 * EPOCH);
        free(text);
    }
}

static void steps_are_never_too_many(void **state)
{
    char flags[64];

    (void)state;
    for (int steps = 1; steps <= 12; steps++) {
        const int whole = steps > WHOLE ? WHOLE : steps;
        const int launches = whole / 3 + whole % 3;

        snprintf(flags, sizeof flags, "--steps-per-launch 3 --steps %d", steps);
        char *const text = command(GX_EXIT_OK, "run", flags);
        assert_int_equal(count_losses(text), steps);
        assert_int_equal(fake_calls("cudaGraphLaunch"), launches + steps - whole);
        free(text);
    }
}

static void automatic_takes_what_an_epoch_can_use(void **state)
{
    char *text = command(GX_EXIT_OK, "run", "--steps-per-launch auto");

    (void)state;
    assert_has(text, "\"steps_per_launch\": 8"); /* of 10 whole batches */
    assert_int_equal(count_losses(text), 3 * EPOCH);
    free(text);
    text = command(GX_EXIT_OK, "run", "--steps-per-launch auto --steps 5");
    assert_has(text, "\"steps_per_launch\": 4");
    assert_int_equal(count_losses(text), 5);
    free(text);
    text = command(GX_EXIT_OK, "run", "--steps-per-launch auto --stream");
    assert_has(text, "\"steps_per_launch\": 1");
    free(text);
    /* Comparing goes round in the data, so that no epoch limits it. */
    text = command(GX_EXIT_OK, "compare", "--steps-per-launch auto --pairs 3");
    assert_has(text, "\"steps_per_launch\": 16");
    assert_has(text, "\"launch_host_s\": ");
    assert_has(text, "\"build_a_node\": ");
    assert_has(text, "\"launch_trials\": [");
    free(text);
    text = command(GX_EXIT_OK, "plan", "--steps-per-launch auto");
    assert_has(text, "\"launch_trials\": [");
    assert_has(text, "\"steps_per_launch\": 16");
    free(text);
}

static void comparing_holds_launches_against_as_many_eager_steps(void **state)
{
    char *const text =
        command(GX_EXIT_OK, "compare",
                "--steps-per-launch 7 --step-loop on --pairs 3 --block 20 --steps 5");

    (void)state;
    assert_has(text, "\"steps_per_launch\": 7");
    assert_has(text, "\"step_loop\": true");
    assert_has(text, "\"block_steps\": 21");
    assert_has(text, "\"bits\": {\n    \"equal\": true,\n    \"steps\": 7,");
    free(text);
}

static void a_loop_of_data_that_stream_is_refused(void **state)
{
    (void)state;
    assert_null(
        command(GX_EXIT_USAGE, "run", "--stream --steps-per-launch 4 --step-loop on"));
    assert_null(command(GX_EXIT_USAGE, "compare",
                        "--stream --steps-per-launch auto --step-loop on"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_taken),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(a_device_without_room_or_loops_takes_what_it_can),
        cmocka_unit_test(what_was_not_timed_is_not_remembered),
        cmocka_unit_test(a_choice_is_remembered_by_what_was_asked),
        cmocka_unit_test(a_trial_that_fails_is_told),
        cmocka_unit_test(steps_are_weighted_by_labels_that_count),
        cmocka_unit_test(an_epoch_is_launches_and_a_remainder),
        cmocka_unit_test(steps_are_never_too_many),
        cmocka_unit_test(automatic_takes_what_an_epoch_can_use),
        cmocka_unit_test(comparing_holds_launches_against_as_many_eager_steps),
        cmocka_unit_test(a_loop_of_data_that_stream_is_refused),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_launch", tests, NULL, NULL);
}
