/* The plan cache, which is never in the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "select.h"
#include "support.h"

static const gx_device_info card = { .name = "NVIDIA H100 80GB",
                                     .cc_major = 9,
                                     .cc_minor = 0,
                                     .driver_version = 13000,
                                     .runtime_version = 13000,
                                     .cublaslt_version = 130100 };
static const gx_alternative tile = { .name = "tile" };
static const gx_alternative lt = { .name = "lt" };

static gx_cache *open_cache(const char *folder, const gx_device_info *device)
{
    gx_cache *cache;
    gx_error err = { 0 };

    assert_ok(gx_cache_open(folder, device, &cache, &err), &err);
    return cache;
}

static void save_and_close(gx_cache *cache)
{
    gx_cache_save(cache);
    assert_null(gx_cache_note(cache));
    gx_cache_close(cache);
}

static gx_candidate measured(const gx_alternative *alternative, double us)
{
    gx_candidate c = {
        .alternative = alternative, .us = us, .n_launches = 2, .workspace_bytes = 4096
    };

    return c;
}

static void choices_come_back_whole(void **state)
{
    char *folder = test_path("whole");
    gx_arena *arena = gx_arena_create();
    gx_cache *cache = open_cache(folder, &card);
    gx_candidate in = measured(&lt, 4.125);
    gx_candidate bad = measured(&tile, -1);
    gx_candidate out = { .alternative = &lt };
    const gx_step_choice step = { .n_lanes = 3,
                                  .programmatic = true,
                                  .lane_us = { 10.5, 9.25, 8.75 },
                                  .programmatic_us = { 11, 9.25 },
                                  .full_edges = (const int32_t[]){ 3, 70000 },
                                  .n_full_edges = 2 };
    const gx_launch_choice launch = { .steps_per_launch = 32,
                                      .loop = true,
                                      .us = { 10, 9, 8.5, 8.25, 8.125, -1, -1, 11 } };
    gx_step_choice step_out;
    const gx_order_choice order = { .order = GX_ORDER_DATA_FIRST, .us = { 12.5, 11.25 } };
    gx_launch_choice launch_out;
    gx_order_choice order_out;

    (void)state;
    in.has_algo = true;
    for (int i = 0; i < GX_ALGO_BYTES; i++)
        in.algo[i] = (unsigned char)(i * 7 + 3);
    bad.refused = "error 0.5 over \"tolerance\" \\ 1e-3";
    gx_cache_add(cache, "tf32: gemm f32[1, 2] #ab", &in);
    gx_cache_add(cache, "tf32: gemm f32[1, 2] #ab", &bad);
    gx_cache_add_step(cache, "step #1", &step);
    gx_cache_add_launch(cache, "step #1", &launch); /* a key says nothing of the kind */
    gx_cache_add_order(cache, "step #1", &order);
    /* What was measured just now is known, and is not from the cache. */
    assert_true(gx_cache_find(cache, "tf32: gemm f32[1, 2] #ab", &out, arena));
    assert_true(out.known && !out.cached);
    out = (gx_candidate){ .alternative = &lt };
    save_and_close(cache);

    cache = open_cache(folder, &card);
    assert_null(gx_cache_note(cache));
    assert_true(gx_cache_find(cache, "tf32: gemm f32[1, 2] #ab", &out, arena));
    assert_true(out.us == 4.125 && out.cached && out.known && out.has_algo &&
                !out.refused);
    assert_int_equal(out.n_launches, 2);
    assert_int_equal(out.workspace_bytes, 4096);
    assert_memory_equal(out.algo, in.algo, sizeof in.algo);
    out = (gx_candidate){ .alternative = &tile };
    assert_true(gx_cache_find(cache, "tf32: gemm f32[1, 2] #ab", &out, arena));
    assert_string_equal(out.refused, bad.refused);
    assert_false(gx_cache_find(cache, "another", &out, arena));
    assert_true(gx_cache_find_step(cache, "step #1", &step_out));
    assert_int_equal(step_out.n_lanes, 3);
    assert_true(step_out.programmatic);
    assert_memory_equal(step_out.lane_us, step.lane_us, sizeof step.lane_us);
    assert_int_equal(step_out.n_full_edges, 2);
    assert_int_equal(step_out.full_edges[0], 3);
    assert_int_equal(step_out.full_edges[1], 70000);
    assert_false(gx_cache_find_step(cache, "step #2", &step_out));
    assert_true(gx_cache_find_launch(cache, "step #1", &launch_out));
    assert_int_equal(launch_out.steps_per_launch, 32);
    assert_true(launch_out.loop);
    assert_memory_equal(launch_out.us, launch.us, sizeof launch.us);
    assert_true(gx_cache_find_order(cache, "step #1", &order_out));
    assert_int_equal(order_out.order, GX_ORDER_DATA_FIRST);
    assert_memory_equal(order_out.us, order.us, sizeof order.us);
    assert_false(gx_cache_find_order(cache, "step #2", &order_out));
    assert_false(gx_cache_find_launch(cache, "step #2", &launch_out));
    gx_cache_close(cache);
    gx_arena_free(arena);
    free(folder);
}

static void two_that_write_at_once_keep_both(void **state)
{
    char *folder = test_path("both");
    gx_arena *arena = gx_arena_create();
    gx_cache *a = open_cache(folder, &card);
    gx_cache *b = open_cache(folder, &card);
    gx_candidate one = measured(&lt, 1), two = measured(&tile, 2);
    gx_candidate out = { .alternative = &lt };

    (void)state;
    gx_cache_add(a, "one", &one);
    gx_cache_add(b, "two", &two);
    save_and_close(a);
    save_and_close(b);
    a = open_cache(folder, &card);
    assert_true(gx_cache_find(a, "one", &out, arena));
    out.alternative = &tile;
    assert_true(gx_cache_find(a, "two", &out, arena));
    gx_cache_close(a);
    gx_arena_free(arena);
    free(folder);
}

static void cards_and_versions_have_files_of_their_own(void **state)
{
    char *folder = test_path("versions");
    gx_arena *arena = gx_arena_create();
    gx_device_info other = card;
    gx_cache *cache = open_cache(folder, &card);
    gx_candidate one = measured(&lt, 1);
    gx_candidate out = { .alternative = &lt };

    (void)state;
    gx_cache_add(cache, "one", &one);
    save_and_close(cache);
    other.driver_version = 12080;
    cache = open_cache(folder, &other);
    assert_null(gx_cache_note(cache));
    assert_false(gx_cache_find(cache, "one", &out, arena));
    gx_cache_close(cache);
    gx_arena_free(arena);
    free(folder);
}

static char *cache_file(const char *folder)
{
    char *path = malloc(strlen(folder) + 128);

    assert_non_null(path);
    sprintf(path,
            "%s/NVIDIA_H100_80GB-cc90-driver13000-runtime13000-cublaslt130100-%s.yaml",
            folder, gx_version());
    return path;
}

/* A step without the list was written before edges were measured; a list that is none is
 * told. */
static void a_step_without_its_edges_is_measured_again(void **state)
{
    static const char *const lists[][3] = {
        { ", full_edges: [4]", NULL, "known" },
        { "", NULL, NULL },
        { ", full_edges: 4", "a list of units", NULL },
        { ", full_edges: [4, -1]", "the index of a unit", NULL },
        { ", full_edges: [4.5]", "the index of a unit", NULL },
    };
    char *folder = test_path("edges");
    gx_cache *cache = open_cache(folder, &card);
    const gx_step_choice step = { .n_lanes = 1,
                                  .full_edges = (const int32_t[]){ 4 },
                                  .n_full_edges = 1 };
    gx_step_choice found;
    size_t length;

    (void)state;
    gx_cache_add_step(cache, "step", &step);
    save_and_close(cache);
    char *path = cache_file(folder);
    char *text = test_read(path, &length);
    char *at = strstr(text, lists[0][0]);

    assert_non_null(at);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fprintf(file, "%.*s%s%s", (int)(at - text), text, lists[i][0],
                at + strlen(lists[0][0]));
        fclose(file);
        cache = open_cache(folder, &card);
        if (lists[i][1])
            assert_has(gx_cache_note(cache), lists[i][1]);
        else
            assert_null(gx_cache_note(cache));
        assert_int_equal(gx_cache_find_step(cache, "step", &found), lists[i][2] != NULL);
        gx_cache_close(cache);
    }
    free(text);
    free(path);
    free(folder);
}

static void an_order_that_no_plan_has_is_told(void **state)
{
    static const char *const orders[][2] = {
        { "order: sideways", "no order is named \"sideways\"" },
        { "order: auto", "no order is named \"auto\"" },
        { "ordr: derived", "did you mean \"order\"?" },
    };
    char *folder = test_path("orders");
    gx_cache *cache = open_cache(folder, &card);
    const gx_order_choice order = { .order = GX_ORDER_DERIVED, .us = { 1, 2 } };
    gx_order_choice found;
    size_t length;

    (void)state;
    gx_cache_add_order(cache, "both", &order);
    save_and_close(cache);
    char *path = cache_file(folder);
    char *text = test_read(path, &length);
    char *at = strstr(text, "order: derived");

    assert_non_null(at);
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fprintf(file, "%.*s%s%s", (int)(at - text), text, orders[i][0],
                at + strlen("order: derived"));
        fclose(file);
        cache = open_cache(folder, &card);
        assert_has(gx_cache_note(cache), orders[i][1]);
        assert_false(gx_cache_find_order(cache, "both", &found));
        gx_cache_close(cache);
    }
    free(text);
    free(path);
    free(folder);
}

static void a_broken_cache_is_left_aside_with_the_reason_and_replaced(void **state)
{
    static const char *const broken[] = {
        "{{{",
        "",
        "gexec_cache: 9\nsites: [1, 2]\n",
        "\xff\xfe",
        "- 1\n",
        "gexec_cache: 9\ndevice: {name: other}\nsites: {}\nsteps: {}\n",
    };
    char *folder = test_path("broken");
    gx_arena *arena = gx_arena_create();

    (void)state;
    assert_int_equal(mkdir(folder, 0777), 0);
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        char *path = cache_file(folder);
        FILE *file = fopen(path, "w");
        gx_cache *cache;
        gx_candidate one = measured(&lt, 1);
        gx_candidate out = { .alternative = &lt };

        assert_non_null(file);
        fputs(broken[i], file);
        fclose(file);
        cache = open_cache(folder, &card);
        assert_non_null(gx_cache_note(cache));
        assert_has(gx_cache_note(cache), "the plan cache was not read");
        assert_false(gx_cache_find(cache, "one", &out, arena));
        gx_cache_add(cache, "one", &one);
        gx_cache_save(cache);
        gx_cache_close(cache);
        cache = open_cache(folder, &card);
        assert_null(gx_cache_note(cache));
        assert_true(gx_cache_find(cache, "one", &out, arena));
        gx_cache_close(cache);
        free(path);
    }
    gx_arena_free(arena);
    free(folder);
}

/* What an older gexec of the same version has measured is of older kernels. */
static void a_cache_of_another_format_is_left_aside(void **state)
{
    static const char head[] = "gexec_cache: 9";
    char *folder = test_path("format");
    gx_arena *arena = gx_arena_create();
    gx_cache *cache = open_cache(folder, &card);
    gx_candidate one = measured(&lt, 1), out = { .alternative = &lt };
    size_t length;

    (void)state;
    gx_cache_add(cache, "one", &one);
    save_and_close(cache);
    char *path = cache_file(folder);
    char *text = test_read(path, &length);

    assert_memory_equal(text, head, strlen(head));
    text[strlen(head) - 1] = '1';
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    cache = open_cache(folder, &card);
    assert_has(gx_cache_note(cache), "not a plan cache of format 9");
    assert_false(gx_cache_find(cache, "one", &out, arena));
    gx_cache_close(cache);
    gx_arena_free(arena);
    free(text);
    free(path);
    free(folder);
}

static void a_cache_that_cannot_be_written_is_noted(void **state)
{
    char *file = test_write_text("a_file", "not a folder");
    gx_cache *cache = open_cache(file, &card);
    gx_candidate one = measured(&lt, 1);

    (void)state;
    gx_cache_add(cache, "one", &one);
    gx_cache_save(cache);
    assert_non_null(gx_cache_note(cache));
    assert_has(gx_cache_note(cache), "a_file");
    gx_cache_close(cache);
    free(file);
}

static void the_cache_lies_where_the_user_keeps_such_files(void **state)
{
    char *base = test_path("xdg");
    char *file, *folder;
    gx_cache *cache;
    gx_candidate one = measured(&lt, 1);

    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", base, 1), 0);
    cache = open_cache(NULL, &card);
    gx_cache_add(cache, "one", &one);
    save_and_close(cache);
    folder = test_path("xdg/gexec");
    file = cache_file(folder);
    assert_int_equal(access(file, R_OK), 0);
    free(file);
    free(folder);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    cache = open_cache(NULL, &card);
    assert_has(gx_cache_note(cache), "HOME");
    gx_cache_add(cache, "one", &one);
    gx_cache_save(cache);
    gx_cache_close(cache);
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_come_back_whole),
        cmocka_unit_test(two_that_write_at_once_keep_both),
        cmocka_unit_test(cards_and_versions_have_files_of_their_own),
        cmocka_unit_test(a_step_without_its_edges_is_measured_again),
        cmocka_unit_test(an_order_that_no_plan_has_is_told),
        cmocka_unit_test(a_broken_cache_is_left_aside_with_the_reason_and_replaced),
        cmocka_unit_test(a_cache_of_another_format_is_left_aside),
        cmocka_unit_test(a_cache_that_cannot_be_written_is_noted),
        cmocka_unit_test(the_cache_lies_where_the_user_keeps_such_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
