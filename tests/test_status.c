/* Statuses and errors. */
#include <string.h>

#include "support.h"

static void every_status_has_texts_and_an_exit(void **state)
{
    (void)state;
#define CHECK(code, text, exits)                      \
    assert_string_equal(gx_status_name(code), #code); \
    assert_string_equal(gx_status_text(code), text);  \
    assert_int_equal(gx_status_exit(code), exits);
    GX_STATUS_LIST(CHECK)
#undef CHECK
}

static void an_unknown_status_is_a_failure(void **state)
{
    (void)state;
    for (int i = -1; i < 1000; i += 500) {
        assert_non_null(gx_status_text((gx_status)i));
        assert_non_null(gx_status_name((gx_status)i));
    }
    assert_int_equal(gx_status_exit((gx_status)999), 4);
}

static void the_first_failure_is_kept(void **state)
{
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    assert_int_equal(GX_FAIL_NATIVE(&err, GX_ERR_READ, 7, "file %d", 1), GX_ERR_READ);
    assert_int_equal(GX_FAIL(&err, GX_ERR_SHAPE, "later"), GX_ERR_SHAPE);
    assert_int_equal(err.status, GX_ERR_READ);
    assert_int_equal(err.native, 7);
    assert_string_equal(err.message, "file 1");
    assert_has(err.file, "test_status.c");
    assert_true(err.line > 0);
    gx_error_clear(&err);
    assert_int_equal(err.status, GX_OK);
    assert_string_equal(err.message, "");
}

static void no_error_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(GX_FAIL(NULL, GX_ERR_DATA, "nobody reads this"), GX_ERR_DATA);
    gx_error_clear(NULL);
    gx_error_prefix(NULL, "x");
}

static void a_prefix_stands_before_the_message(void **state)
{
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    gx_error_prefix(&err, "fc1");
    assert_string_equal(err.message, "");
    (void)GX_FAIL(&err, GX_ERR_SHAPE, "wrong");
    gx_error_prefix(&err, "fc1");
    assert_string_equal(err.message, "fc1: wrong");
}

/* What is cut says so, at the side where it is. */
static void long_messages_are_cut(void **state)
{
    char words[2 * GX_MESSAGE_SIZE];
    gx_error err;

    (void)state;
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    gx_error_clear(&err);
    (void)GX_FAIL(&err, GX_ERR_SHAPE, "%s", words);
    assert_int_equal(strlen(err.message), GX_MESSAGE_SIZE - 1);
    assert_string_equal(err.message + GX_MESSAGE_SIZE - 6, "xx...");
    gx_error_prefix(&err, "fc1");
    assert_int_equal(strlen(err.message), GX_MESSAGE_SIZE - 1);
    assert_memory_equal(err.message, "fc1: xxx", 8);
    assert_string_equal(err.message + GX_MESSAGE_SIZE - 6, "xx...");
    gx_error_prefix(&err, words);
    assert_int_equal(strlen(err.message), GX_MESSAGE_SIZE - 1);
    assert_memory_equal(err.message, "...xxx", 6);
    assert_has(err.message, "x: fc1: xxx");
    assert_string_equal(err.message + GX_MESSAGE_SIZE - 6, "xx...");
}

static void a_message_that_just_fits_is_whole(void **state)
{
    char words[GX_MESSAGE_SIZE];
    gx_error err;

    (void)state;
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    gx_error_clear(&err);
    (void)GX_FAIL(&err, GX_ERR_SHAPE, "%s", words);
    assert_string_equal(err.message, words);
    gx_error_clear(&err);
    (void)GX_FAIL(&err, GX_ERR_SHAPE, "wrong");
    words[sizeof words - sizeof ": wrong"] = '\0';
    gx_error_prefix(&err, words);
    assert_int_equal(strlen(err.message), GX_MESSAGE_SIZE - 1);
    assert_memory_equal(err.message, "xxx", 3);
    assert_has(err.message, "x: wrong");
}

/* A long path keeps its end, and what is said of it stays. */
static void a_long_prefix_leaves_the_message_whole(void **state)
{
    char path[3 * GX_MESSAGE_SIZE];
    gx_error err;

    (void)state;
    memset(path, 'd', sizeof path);
    strcpy(path + sizeof path - sizeof "/w1.npy", "/w1.npy");
    gx_error_clear(&err);
    (void)GX_FAIL(&err, GX_ERR_SHAPE, "wrong");
    gx_error_prefix(&err, path);
    assert_int_equal(strlen(err.message), GX_MESSAGE_SIZE - 1);
    assert_memory_equal(err.message, "...ddd", 6);
    assert_has(err.message, "d/w1.npy: wrong");
}

static void no_character_is_cut_in_two(void **state)
{
    char words[2 * GX_MESSAGE_SIZE + 1] = "";
    gx_error err;

    (void)state;
    for (int shift = 0; shift < 2; shift++) {
        memset(words, 'x', (size_t)shift);
        for (int i = 0; i < GX_MESSAGE_SIZE - 1; i++)
            memcpy(words + shift + 2 * i, "\xc3\xa4", 3);
        gx_error_clear(&err);
        (void)GX_FAIL(&err, GX_ERR_SHAPE, "%s", words);
        assert_has(err.message, "\xc3\xa4...");
        gx_error_clear(&err);
        (void)GX_FAIL(&err, GX_ERR_SHAPE, "%s", shift ? "wrong" : "wrongs");
        gx_error_prefix(&err, words);
        assert_memory_equal(err.message, "...\xc3\xa4", 5);
        assert_has(err.message, "\xc3\xa4: wrong");
    }
}

static gx_status both(gx_status a, gx_status b)
{
    GX_TRY(a);
    GX_TRY(b);
    return GX_OK;
}

static void trying_returns_the_failure(void **state)
{
    (void)state;
    assert_int_equal(both(GX_OK, GX_OK), GX_OK);
    assert_int_equal(both(GX_ERR_DATA, GX_ERR_READ), GX_ERR_DATA);
    assert_int_equal(both(GX_OK, GX_ERR_READ), GX_ERR_READ);
    assert_int_equal(gx_first(GX_OK, GX_ERR_READ), GX_ERR_READ);
    assert_int_equal(gx_first(GX_ERR_DATA, GX_ERR_READ), GX_ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_texts_and_an_exit),
        cmocka_unit_test(an_unknown_status_is_a_failure),
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(no_error_is_allowed),
        cmocka_unit_test(a_prefix_stands_before_the_message),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(a_message_that_just_fits_is_whole),
        cmocka_unit_test(a_long_prefix_leaves_the_message_whole),
        cmocka_unit_test(no_character_is_cut_in_two),
        cmocka_unit_test(trying_returns_the_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
