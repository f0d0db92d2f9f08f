/* Whether updates are in a branch, on the simulated CUDA: who can have one, which way is
 * measured to be faster and remembered, and plan files that say it. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "plan.h"
#include "select.h"

/* --- who has none --- */

static gx_status try_plan(const path_program *program, const gx_plan_options *options,
                          gx_plan_info *info, gx_error *err)
{
    gx_plan *plan = NULL;
    const gx_status st = gx_plan_create(program->graph, options, &plan, err);

    if (st == GX_OK)
        *info = gx_plan_info_get(plan);
    gx_plan_free(plan);
    return st;
}

static void an_old_driver_has_no_branches(void **state)
{
    gx_plan_options options = { .cache_folder = "", .lanes = 1, .skip_if = GX_ON };
    path_program program;
    gx_plan_info info = { .device = GX_CPU };
    gx_error err;

    (void)state;
    path_open_scaled(&program, 1, GX_ON, false);
    const long live = fake_live();
    fake_set_driver(12020);
    assert_fails(
        gx_exec_create(program.plan, program.state, NULL, &program.exec, &err),
        GX_ERR_UNSUPPORTED, &err,
        "an IF node in a graph needs a driver of CUDA 12.4 or newer, and this one "
        "is of CUDA 12.2");
    assert_fails(try_plan(&program, &options, &info, &err), GX_ERR_UNSUPPORTED, &err,
                 "12.4 or newer");
    options.skip_if = GX_AUTO;
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    assert_false(info.skip_if);
    assert_true(info.skip_us[0] < 0 && info.skip_us[1] < 0);
    fake_set_driver(13000);
    assert_int_equal(fake_live(), live);
    path_close(&program);
}

static void a_model_without_a_scale_has_no_branch(void **state)
{
    gx_plan_options options = { .cache_folder = "", .lanes = 1, .skip_if = GX_ON };
    path_program program;
    gx_plan_info info = { .device = GX_CPU };
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_fails(try_plan(&program, &options, &info, &err), GX_ERR_ARGUMENT, &err,
                 "no loss_scale");
    options.skip_if = GX_AUTO;
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    assert_false(info.skip_if);
    assert_true(info.skip_us[0] < 0 && info.skip_us[1] < 0);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- measured --- */

static gx_plan_info choose(path_program *program, const gx_device_info *card,
                           gx_cache *cache)
{
    const gx_plan_options automatic = { .lanes = 1 };
    gx_error err;

    gx_error_clear(&err);
    assert_ok(gx_choose_skip(program->plan, &automatic, card, cache, &err), &err);
    return gx_plan_info_get(program->plan);
}

/* A launch takes a tick, which is a millisecond, and what a branch adds. */
static void the_faster_way_is_taken_and_remembered(void **state)
{
    const gx_device_info card = { .name = "card",
                                  .cc_major = 9,
                                  .driver_version = 13000 };
    char *folder = test_path("branches");
    path_program program;
    gx_cache *cache;
    gx_error err;

    (void)state;
    path_open_scaled(&program, 1, GX_OFF, false);
    fake_set_branch_ms(0.5);
    gx_plan_info info = choose(&program, &card, NULL);
    assert_false(info.skip_if);
    assert_true(info.skip_us[0] == 1000 && info.skip_us[1] == 1500);
    fake_set_branch_ms(-0.005); /* half a percent is too little */
    assert_false(choose(&program, &card, NULL).skip_if);
    fake_set_branch_ms(-0.25);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    info = choose(&program, &card, cache);
    assert_true(info.skip_if);
    assert_true(info.skip_us[0] == 1000 && info.skip_us[1] == 750);
    gx_cache_save(cache);
    gx_cache_close(cache);
    fake_set_branch_ms(0);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    assert_null(gx_cache_note(cache));
    fake_begin();
    info = choose(&program, &card, cache);
    assert_int_equal(fake_calls(NULL), 0);
    assert_true(info.skip_if && info.skip_us[0] == 1000 && info.skip_us[1] == 750);
    gx_cache_close(cache);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
    free(folder);
}

static void a_device_without_room_takes_the_predicate(void **state)
{
    const gx_device_info card = { .name = "card", .driver_version = 13000 };
    char *folder = test_path("no_room");
    path_program program;
    gx_cache *cache;
    gx_error err;

    (void)state;
    path_open_scaled(&program, 1, GX_OFF, false);
    assert_ok(gx_cache_open(folder, &card, &cache, &err), &err);
    fake_set_branch_ms(-0.25);
    fake_set_free_bytes(1000);
    gx_plan_info info = choose(&program, &card, cache);
    fake_set_free_bytes((size_t)8 << 30);
    assert_false(info.skip_if);
    assert_true(info.skip_us[0] < 0 && info.skip_us[1] < 0);
    /* What was not timed is not remembered. */
    info = choose(&program, &card, cache);
    assert_true(info.skip_if && info.skip_us[1] > 0);
    fake_set_branch_ms(0);
    gx_cache_close(cache);
    path_close(&program);
    free(folder);
}

static gx_status choose_afresh(void *user, gx_error *err)
{
    const gx_device_info card = { .name = "card", .driver_version = 13000 };
    const gx_plan_options automatic = { .lanes = 1 };
    path_program *program = user;

    const gx_status st = gx_choose_skip(program->plan, &automatic, &card, NULL, err);
    if (st != GX_OK)
        assert_has(err->message, "timing the plan: ");
    return st;
}

static void a_trial_that_fails_is_told(void **state)
{
    static const char *const functions[] = { "cudaGraphInstantiate", "cudaGraphAddNode",
                                             "cudaStreamUpdateCaptureDependencies",
                                             "cudaEventElapsedTime" };
    path_program program;
    gx_error err;

    (void)state;
    path_open_scaled(&program, 1, GX_OFF, false);
    const long live = fake_live();
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        fake_begin();
        fake_fail(functions[i], 1, cudaErrorUnknown);
        gx_error_clear(&err);
        assert_fails(choose_afresh(&program, &err), GX_ERR_CUDA, &err, functions[i]);
        assert_int_equal(fake_live(), live);
    }
    fake_begin();
    assert_ok(choose_afresh(&program, &err), &err);
    path_close(&program);
}

/* --- plan files --- */

static void a_plan_file_says_which(void **state)
{
    gx_plan_options options = {
        .cache_folder = "", .lanes = 1, .no_measure = true, .skip_if = GX_ON
    };
    char *path = test_path("branch-plan.yaml");
    path_program program;
    gx_plan_info info = { .device = GX_CPU };
    gx_error err;
    size_t length;

    (void)state;
    path_open_scaled(&program, 1, GX_ON, false);
    options.pin_file = path;
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    char *text = test_read(path, &length);
    assert_has(text, "\nskip_if: true\n");
    free(text);
    options.skip_if = GX_AUTO;
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    assert_true(info.skip_if);
    options.skip_if = GX_OFF;
    assert_fails(try_plan(&program, &options, &info, &err), GX_ERR_ARGUMENT, &err,
                 "updates without an IF node are asked for");
    remove(path);
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    options.skip_if = GX_AUTO;
    assert_ok(try_plan(&program, &options, &info, &err), &err);
    assert_false(info.skip_if);
    options.skip_if = GX_ON;
    assert_fails(try_plan(&program, &options, &info, &err), GX_ERR_ARGUMENT, &err,
                 "an IF node around the updates is asked for");
    path_close(&program);
    remove(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_driver_has_no_branches),
        cmocka_unit_test(a_model_without_a_scale_has_no_branch),
        cmocka_unit_test(the_faster_way_is_taken_and_remembered),
        cmocka_unit_test(a_device_without_room_takes_the_predicate),
        cmocka_unit_test(a_trial_that_fails_is_told),
        cmocka_unit_test(a_plan_file_says_which),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_branch_choice", tests, NULL, NULL);
}
