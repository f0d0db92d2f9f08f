/* A card's ceilings: floors that follow from them, and the file that keeps them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static const gx_device_info card = {
    .name = "Card of \"Tests\" 9",
    .cc_major = 9,
    .driver_version = 13000,
    .runtime_version = 12040,
    .cublaslt_version = 130100,
};

/* In round numbers: 1e12 FLOPs a second, 4e12 bytes a second up to 1 MiB, 1e12 from
 * 16 MiB. */
static gx_ceilings made(void)
{
    return (gx_ceilings){
        .card = "Card of \"Tests\" 9",
        .driver_version = 13000,
        .runtime_version = 12040,
        .date = "2026-01-31T12:34:56Z",
        .flops_per_s = { 1e12, 8e12, 1.0 / 3 * 1e14, -1 },
        .copy = { { 1 << 20, 4e12 }, { 16 << 20, 1e12 } },
        .n_copy = 2,
        .node_s = 1e-6,
        .programmatic_node_s = -1,
        .copy_node_s = 3e-6,
        .copy_engine_s = 9e-6,
        .beside_s = 3e-7,
        .join_s = 1.5e-6,
        .step_s = 2e-6,
        .launch_s = 3e-6,
        .graph_host_s = 4e-6,
    };
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* --- floors --- */

static void between_two_sizes_the_rate_goes_by_the_logarithm(void **state)
{
    const gx_ceilings c = made();

    (void)state;
    assert_near(gx_ceilings_copy_rate(&c, 1 << 20), 4e12);
    assert_near(gx_ceilings_copy_rate(&c, 4 << 20), 2.5e12);
    assert_near(gx_ceilings_copy_rate(&c, 2 << 20), 3.25e12);
    assert_near(gx_ceilings_copy_rate(&c, 16 << 20), 1e12);
}

static void between_three_sizes_the_two_nearest_count(void **state)
{
    gx_ceilings c = made();

    (void)state;
    c.copy[2] = (gx_copy_rate){ 64 << 20, 0.5e12 };
    c.n_copy = 3;
    assert_near(gx_ceilings_copy_rate(&c, 4 << 20), 2.5e12);
    assert_near(gx_ceilings_copy_rate(&c, 32 << 20), 0.75e12);
}

static void beyond_the_sizes_the_nearest_counts(void **state)
{
    const gx_ceilings c = made();
    gx_ceilings none = made();

    (void)state;
    assert_near(gx_ceilings_copy_rate(&c, 0), 4e12);
    assert_near(gx_ceilings_copy_rate(&c, 1), 4e12);
    assert_near(gx_ceilings_copy_rate(&c, 1e15), 1e12);
    assert_true(gx_ceilings_copy_rate(&c, NAN) < 0);
    none.n_copy = 0;
    assert_true(gx_ceilings_copy_rate(&none, 1 << 20) < 0);
    none.n_copy = 1;
    assert_near(gx_ceilings_copy_rate(&none, 1e9), 4e12);
}

static void assert_floor(const gx_ceilings *c, gx_rate rate, double flops, double bytes,
                         double expected, gx_bound bound)
{
    gx_bound found = GX_BOUND_COMPUTE;
    const double floor_s = gx_ceilings_floor(c, rate, flops, bytes, &found);

    if (expected < 0)
        assert_true(floor_s < 0);
    else
        assert_near(floor_s, expected);
    assert_string_equal(gx_bound_name(found), gx_bound_name(bound));
    assert_near(gx_ceilings_floor(c, rate, flops, bytes, NULL), floor_s);
}

static void the_larger_of_two_times_is_the_floor(void **state)
{
    const gx_ceilings c = made();

    (void)state;
    assert_floor(&c, GX_RATE_F32, 1e9, 4e6, 1e-3, GX_BOUND_COMPUTE);
    assert_floor(&c, GX_RATE_TF32, 1e9, 4e6, 1e9 / 8e12, GX_BOUND_COMPUTE);
    assert_floor(&c, GX_RATE_F32, 1e6, 32e9, 32e-3, GX_BOUND_MEMORY);
    assert_floor(&c, GX_RATE_F32, 0, 32e9, 32e-3, GX_BOUND_MEMORY);
}

static void below_the_cost_of_a_node_latency_bounds(void **state)
{
    gx_ceilings c = made();

    (void)state;
    assert_floor(&c, GX_RATE_F32, 9e5, 1000, 9e-7, GX_BOUND_LATENCY);
    assert_floor(&c, GX_RATE_F32, 10, 3.2e6 / 8, 1e-7, GX_BOUND_LATENCY);
    assert_floor(&c, GX_RATE_F32, 0, 0, 0, GX_BOUND_LATENCY);
    assert_floor(&c, GX_RATE_F32, 1.1e6, 1000, 1.1e-6, GX_BOUND_COMPUTE);
    c.node_s = -1;
    assert_floor(&c, GX_RATE_F32, 9e5, 1000, 9e-7, GX_BOUND_COMPUTE);
}

static void without_a_rate_there_is_no_floor(void **state)
{
    gx_ceilings c = made();

    (void)state;
    assert_floor(&c, GX_RATE_F16, 1e9, 4e6, -1, GX_BOUND_UNKNOWN);
    assert_floor(&c, GX_RATE_F32, -1, 4e6, -1, GX_BOUND_UNKNOWN);
    assert_floor(&c, GX_RATE_F32, 1e9, -1, -1, GX_BOUND_UNKNOWN);
    assert_floor(&c, GX_RATE_F32, NAN, 4e6, -1, GX_BOUND_UNKNOWN);
    /* What does not compute needs no rate of computing. */
    assert_floor(&c, GX_RATE_F16, 0, 32e9, 32e-3, GX_BOUND_MEMORY);
    c.n_copy = 0;
    assert_floor(&c, GX_RATE_F32, 1e9, 4e6, -1, GX_BOUND_UNKNOWN);
    assert_floor(&c, GX_RATE_F32, 1e9, 0, 1e-3, GX_BOUND_COMPUTE);
}

static void rates_and_bounds_have_names(void **state)
{
    (void)state;
    assert_string_equal(gx_rate_name(GX_RATE_F32), "f32");
    assert_string_equal(gx_rate_name(GX_RATE_TF32), "tf32");
    assert_string_equal(gx_rate_name(GX_RATE_BF16), "bf16");
    assert_string_equal(gx_rate_name(GX_RATE_F16), "f16");
    assert_string_equal(gx_bound_name(GX_BOUND_LATENCY), "latency");
    assert_string_equal(gx_bound_name(GX_BOUND_UNKNOWN), "n/a");
}

/* --- kept --- */

/* A fresh folder in a folder that is not there yet. The caller frees. */
static char *fresh_folder(void)
{
    static int n;
    char name[40];

    snprintf(name, sizeof name, "cache%d/gexec", n++);
    return test_path(name);
}

/* Where the ceilings of the card lie: the name is plain. The caller frees. */
static char *file_in(const char *folder)
{
    const char *name = "Card_of__Tests__9-cc90-driver13000-runtime12040-ceilings.yaml";
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    assert_non_null(path);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static char *save(const gx_ceilings *ceilings)
{
    char *folder = fresh_folder();
    gx_error err = { 0 };

    assert_ok(gx_ceilings_save(&card, folder, ceilings, &err), &err);
    return folder;
}

static void assert_equal(const gx_ceilings *a, const gx_ceilings *b)
{
    assert_string_equal(a->card, b->card);
    assert_string_equal(a->date, b->date);
    assert_int_equal(a->driver_version, b->driver_version);
    assert_int_equal(a->runtime_version, b->runtime_version);
    assert_memory_equal(a->flops_per_s, b->flops_per_s, sizeof a->flops_per_s);
    assert_int_equal(a->n_copy, b->n_copy);
    for (size_t i = 0; i < a->n_copy; i++) {
        assert_int_equal(a->copy[i].bytes, b->copy[i].bytes);
        assert_true(a->copy[i].bytes_per_s == b->copy[i].bytes_per_s);
    }
    assert_true(a->node_s == b->node_s);
    assert_true(a->programmatic_node_s == b->programmatic_node_s);
    assert_true(a->copy_node_s == b->copy_node_s);
    assert_true(a->copy_engine_s == b->copy_engine_s);
    assert_true(a->beside_s == b->beside_s);
    assert_true(a->join_s == b->join_s);
    assert_true(a->step_s == b->step_s);
    assert_true(a->launch_s == b->launch_s);
    assert_true(a->graph_host_s == b->graph_host_s);
}

static void what_was_saved_is_loaded_to_the_last_bit(void **state)
{
    const gx_ceilings saved = made();
    char *folder = save(&saved);
    char *path = file_in(folder);
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    assert_int_equal(access(path, R_OK), 0);
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    assert_equal(&loaded, &saved);
    free(path);
    free(folder);
}

static void figures_that_are_not_known_stay_so(void **state)
{
    gx_ceilings saved = made();
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < GX_RATES; i++)
        saved.flops_per_s[i] = -1;
    saved.n_copy = 0;
    saved.node_s = saved.step_s = saved.launch_s = saved.graph_host_s = -1;
    char *folder = save(&saved);
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    assert_equal(&loaded, &saved);
    /* What cannot be is not kept as if it could. */
    saved.node_s = NAN;
    saved.step_s = INFINITY;
    saved.launch_s = 0;
    assert_ok(gx_ceilings_save(&card, folder, &saved, &err), &err);
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    assert_true(loaded.node_s == -1 && loaded.step_s == -1 && loaded.launch_s == -1);
    free(folder);
}

static void as_many_sizes_as_there_may_be_are_kept(void **state)
{
    gx_ceilings saved = made();
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < GX_CEILING_SIZES; i++)
        saved.copy[i] = (gx_copy_rate){ INT64_C(1) << (16 + i), 1e12 + i };
    saved.n_copy = GX_CEILING_SIZES;
    char *folder = save(&saved);
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    assert_equal(&loaded, &saved);
    free(folder);
}

static void the_last_that_was_saved_counts(void **state)
{
    gx_ceilings saved = made();
    char *folder = save(&saved);
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    saved.node_s = 7e-7;
    assert_ok(gx_ceilings_save(&card, folder, &saved, &err), &err);
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    assert_true(loaded.node_s == 7e-7);
    free(folder);
}

static void assert_nothing_known(const gx_ceilings *c)
{
    assert_int_equal(c->n_copy, 0);
    assert_true(c->flops_per_s[GX_RATE_F32] < 0 && c->node_s < 0 && c->launch_s < 0);
}

static void what_was_not_measured_says_how_to(void **state)
{
    char *folder = fresh_folder();
    gx_ceilings loaded = made();
    gx_error err = { 0 };

    (void)state;
    assert_fails(gx_ceilings_load(&card, folder, &loaded, &err), GX_ERR_STATE, &err,
                 "gexec doctor --measure");
    assert_has(err.message, card.name);
    assert_nothing_known(&loaded);
    assert_fails(gx_ceilings_load(&card, "", &loaded, &err), GX_ERR_STATE, &err,
                 "no folder");
    free(folder);
}

static void the_users_cache_folder_is_the_plan_caches(void **state)
{
    const gx_ceilings saved = made();
    const char *base = test_folder();
    char *path = test_path("gexec/Card_of__Tests__9-cc90-driver13000-runtime12040-"
                           "ceilings.yaml");
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", base, 1), 0);
    assert_ok(gx_ceilings_save(&card, NULL, &saved, &err), &err);
    assert_int_equal(access(path, R_OK), 0);
    assert_ok(gx_ceilings_load(&card, NULL, &loaded, &err), &err);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_fails(gx_ceilings_load(&card, NULL, &loaded, &err), GX_ERR_STATE, &err,
                 "HOME");
    free(path);
}

static void another_card_has_other_ceilings(void **state)
{
    const gx_ceilings saved = made();
    char *folder = save(&saved);
    gx_device_info others[3] = { card, card, card };
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    snprintf(others[0].name, sizeof others[0].name, "Other");
    others[1].driver_version = 13010;
    others[2].runtime_version = 13000;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_fails(gx_ceilings_load(&others[i], folder, &loaded, &err), GX_ERR_STATE,
                     &err, "not measured yet");
        assert_fails(gx_ceilings_save(&others[i], folder, &saved, &err), GX_ERR_ARGUMENT,
                     &err, "are not kept for");
    }
    free(folder);
}

/* --- files that are not what they should be --- */

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Loads what `bytes` say and expects a refusal that tells to measure again. */
static void refuse(const char *folder, const char *path, const char *bytes, size_t length,
                   const char *why)
{
    gx_ceilings loaded = made();
    gx_error err = { 0 };

    write_file(path, bytes, length);
    assert_fails(gx_ceilings_load(&card, folder, &loaded, &err), GX_ERR_DATA, &err,
                 "gexec doctor --measure");
    assert_has(err.message, why);
    assert_has(err.message, path);
    assert_nothing_known(&loaded);
}

static void a_file_that_was_cut_off_is_refused_wherever(void **state)
{
    const gx_ceilings saved = made();
    char *folder = save(&saved);
    char *path = file_in(folder);
    size_t length;
    char *whole = test_read(path, &length);
    gx_ceilings loaded;
    gx_error err = { 0 };

    (void)state;
    for (size_t cut = 0; cut + 1 < length; cut++)
        refuse(folder, path, whole, cut, "");
    write_file(path, whole, length - 1); /* its last line break alone */
    assert_ok(gx_ceilings_load(&card, folder, &loaded, &err), &err);
    free(whole);
    free(path);
    free(folder);
}

/* The file with the first `from` replaced by `to` is refused with these words. */
static void refuse_changed(const char *from, const char *to, const char *why)
{
    const gx_ceilings saved = made();
    char *folder = save(&saved);
    char *path = file_in(folder);
    char *whole = test_read(path, NULL);
    const char *at = strstr(whole, from);
    const size_t size = strlen(whole) + strlen(to) + 1;
    char *changed = malloc(size);

    assert_non_null(changed);
    if (!at)
        fail_msg("the file has no \"%s\"", from);
    snprintf(changed, size, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    refuse(folder, path, changed, strlen(changed), why);
    free(changed);
    free(whole);
    free(path);
    free(folder);
}

static void a_file_of_another_making_is_refused(void **state)
{
    (void)state;
    refuse_changed("gexec_ceilings: 1", "gexec_ceilings: 0", "format 0");
    refuse_changed("gexec_ceilings: 1", "gexec_ceilings: 2\nmore: 1", "format 2");
    refuse_changed("gexec_ceilings", "gexec_cache", "\"gexec_ceilings\" is missing");
    refuse_changed("Tests", "Toasts", "made for the card");
    refuse_changed("driver: 13000", "driver: 12080", "made for driver 12080");
    refuse_changed("gexec: \"", "gexec: \"9", "made by gexec 9");
}

static void figures_that_cannot_be_are_refused(void **state)
{
    (void)state;
    refuse_changed("step_s: 2e-06", "step_s: -2e-06", "step_s: expected a number above");
    refuse_changed("step_s: 2e-06", "step_s: 0", "step_s: expected");
    refuse_changed("step_s: 2e-06", "step_s: inf", "step_s: expected");
    refuse_changed("step_s: 2e-06", "step_s: nan", "step_s: expected");
    refuse_changed("step_s: 2e-06", "step_s: soon", "step_s: expected");
    refuse_changed("step_s: 2e-06", "step_s: [2e-06]", "step_s: expected");
    refuse_changed("step_s: 2e-06\n", "", "\"step_s\" is missing");
    refuse_changed("step_s:", "stop_s:", "unknown key");
    refuse_changed("tf32:", "f32:", "f32");
    refuse_changed("bytes: 1048576", "bytes: 0", "sizes above 0 that grow");
    refuse_changed("bytes: 16777216", "bytes: 1048576", "sizes above 0 that grow");
    refuse_changed("bytes_per_s: 4e+12", "bytes_per_s: n/a", "bytes_per_s: expected");
    refuse_changed("copy:\n", "copy: 3\ncapy:\n", "unknown key");
    refuse_changed("whole: true", "whole: false", "not whole");
}

static void more_sizes_than_there_may_be_are_refused(void **state)
{
    char list[40 * (GX_CEILING_SIZES + 1) + 20] = "copy:\n";

    (void)state;
    for (int i = 0; i <= GX_CEILING_SIZES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list),
                 "  - {bytes: %d, bytes_per_s: 1e9}\n", i + 1);
    refuse_changed("copy:\n", list, "at most 16 sizes");
}

static void a_foreign_file_is_refused(void **state)
{
    const gx_ceilings saved = made();
    char *folder = save(&saved);
    char *path = file_in(folder);
    const char *const foreign[] = { "",
                                    "\n",
                                    "[]",
                                    "text",
                                    "{}",
                                    "a: [",
                                    "\x7f"
                                    "ELF\x02" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
        refuse(folder, path, foreign[i], strlen(foreign[i]), "");
    free(path);
    free(folder);
}

static void a_folder_that_cannot_be_made_is_told(void **state)
{
    const gx_ceilings saved = made();
    char *file = test_write_text("in_the_way", "");
    gx_error err = { 0 };

    (void)state;
    assert_fails(gx_ceilings_save(&card, file, &saved, &err), GX_ERR_WRITE, &err, file);
    free(file);
}

static void the_cpu_has_none(void **state)
{
    gx_ceilings found = made();
    gx_error err = { 0 };

    (void)state;
    assert_fails(gx_ceilings_measure(GX_CPU, &found, &err),
                 gx_has_cuda() ? GX_ERR_ARGUMENT : GX_ERR_NO_DEVICE, &err, "");
    assert_nothing_known(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_two_sizes_the_rate_goes_by_the_logarithm),
        cmocka_unit_test(between_three_sizes_the_two_nearest_count),
        cmocka_unit_test(beyond_the_sizes_the_nearest_counts),
        cmocka_unit_test(the_larger_of_two_times_is_the_floor),
        cmocka_unit_test(below_the_cost_of_a_node_latency_bounds),
        cmocka_unit_test(without_a_rate_there_is_no_floor),
        cmocka_unit_test(rates_and_bounds_have_names),
        cmocka_unit_test(what_was_saved_is_loaded_to_the_last_bit),
        cmocka_unit_test(figures_that_are_not_known_stay_so),
        cmocka_unit_test(as_many_sizes_as_there_may_be_are_kept),
        cmocka_unit_test(the_last_that_was_saved_counts),
        cmocka_unit_test(what_was_not_measured_says_how_to),
        cmocka_unit_test(another_card_has_other_ceilings),
        cmocka_unit_test(a_file_that_was_cut_off_is_refused_wherever),
        cmocka_unit_test(a_file_of_another_making_is_refused),
        cmocka_unit_test(figures_that_cannot_be_are_refused),
        cmocka_unit_test(more_sizes_than_there_may_be_are_refused),
        cmocka_unit_test(a_foreign_file_is_refused),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_told),
        cmocka_unit_test(the_cpu_has_none),
        cmocka_unit_test(the_users_cache_folder_is_the_plan_caches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
