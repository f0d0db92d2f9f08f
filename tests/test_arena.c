/* Arena, growing text, and the map of names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "name_map.h"
#include "support.h"
#include "text.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    test_random random = test_random_start(test_seed());
    gx_arena *arena = gx_arena_create();
    unsigned char *pieces[500];
    size_t sizes[500];

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        const int64_t most = i % 50 == 49 ? 3000000 : 300;

        sizes[i] = (size_t)test_random_int(&random, 0, most);
        pieces[i] = gx_arena_alloc(arena, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i % 255 + 1), sizes[i]);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i % 255 + 1);
    }
    assert_int_equal(gx_arena_failed(arena), 0);
    gx_arena_free(arena);
}

static void a_failure_stays(void **state)
{
    gx_arena *arena = gx_arena_create();

    (void)state;
    assert_null(gx_arena_alloc(arena, SIZE_MAX));
    assert_non_null(gx_arena_alloc(arena, 16));
    assert_true(gx_arena_failed(arena));
    gx_arena_free(arena);
    gx_arena_free(NULL);
}

static void texts_are_copied(void **state)
{
    gx_arena *arena = gx_arena_create();
    char source[] = "tensor";
    const char *copy = gx_arena_text(arena, source);

    (void)state;
    source[0] = 'x';
    assert_string_equal(copy, "tensor");
    assert_string_equal(gx_arena_format(arena, "%s.%d", "blk", 3), "blk.3");
    gx_arena_free(arena);
}

static void a_text_grows(void **state)
{
    gx_text text = { 0 };
    char *bytes;

    (void)state;
    for (int i = 0; i < 1000; i++)
        gx_text_format(&text, "%d,", i % 10);
    gx_text_put(&text, "end");
    bytes = gx_text_take(&text);
    assert_int_equal(strlen(bytes), 2003);
    assert_memory_equal(bytes + 1994, "7,8,9,end", 9);
    free(bytes);
    bytes = gx_text_take(&text);
    assert_string_equal(bytes, "");
    free(bytes);
}

static void a_map_finds_every_name(void **state)
{
    enum { N = 20000 };
    gx_name_map *map = gx_name_map_create();
    gx_arena *arena = gx_arena_create();

    (void)state;
    assert_int_equal(gx_name_map_get(map, "blk.0"), -1);
    for (int i = 0; i < N; i++)
        assert_true(gx_name_map_set(map, gx_arena_format(arena, "blk.%d", i), i));
    assert_true(gx_name_map_set(map, "blk.7", 70000));
    for (int i = 0; i < N; i++) {
        char name[32];

        snprintf(name, sizeof name, "blk.%d", i);
        assert_int_equal(gx_name_map_get(map, name), i == 7 ? 70000 : i);
    }
    assert_int_equal(gx_name_map_get(map, "blk"), -1);
    assert_int_equal(gx_name_map_get(map, ""), -1);
    gx_name_map_free(map);
    gx_name_map_free(NULL);
    gx_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_failure_stays),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(a_text_grows),
        cmocka_unit_test(a_map_finds_every_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
