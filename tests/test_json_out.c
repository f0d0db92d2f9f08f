/* JSON as the command line writes it. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_out.h"

/* The document in a file, as text; the caller frees. */
static char *written(gx_json *json)
{
    gx_error err = { 0 };
    char *path = test_path("out.json");
    char *text;

    assert_ok(gx_json_write(json, path, &err), &err);
    gx_json_free(json);
    text = test_read(path, NULL);
    free(path);
    return text;
}

static void text_is_escaped(void **state)
{
    gx_json *json = gx_json_create();
    char *text;

    (void)state;
    gx_json_array(json, NULL);
    gx_json_text(json, NULL, "a\"b\\c\n\t\x01\x7f");
    gx_json_text(json, NULL, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    gx_json_text(json, NULL, NULL);
    gx_json_end(json);
    text = written(json);
    assert_string_equal(text,
                        "[\n  \"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\",\n"
                        "  \"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\",\n  null\n]\n");
    free(text);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    /* cut short, overlong, a surrogate, beyond the last code point, a stray byte */
    static const char *const wrong[] = { "\xc3(",        "\xc0\xaf",
                                         "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                         "\xff",         "\xe2\x82" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        gx_json *json = gx_json_create();
        char *text;

        gx_json_text(json, NULL, wrong[i]);
        text = written(json);
        assert_has(text, "\xef\xbf\xbd");
        for (const char *at = text; *at; at++)
            assert_true((unsigned char)*at < 0x80 || strchr("\xef\xbf\xbd", *at));
        free(text);
    }
}

static void numbers_read_back_the_same(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const double value = ldexp(test_random_real(&random, -1, 1),
                                   (int)test_random_int(&random, -300, 300));
        gx_json *json = gx_json_create();
        char *text;

        gx_json_real(json, NULL, value);
        text = written(json);
        assert_true(strtod(text, NULL) == value);
        free(text);
    }
}

static void what_is_no_number_is_null(void **state)
{
    gx_json *json = gx_json_create();
    char *text;

    (void)state;
    gx_json_object(json, NULL);
    gx_json_real(json, "nan", (double)NAN);
    gx_json_real(json, "infinite", (double)INFINITY);
    gx_json_figure(json, "not measured", -1);
    gx_json_figure(json, "measured", 0.5);
    gx_json_object(json, "empty");
    gx_json_end(json);
    gx_json_end(json);
    text = written(json);
    assert_string_equal(text,
                        "{\n  \"nan\": null,\n  \"infinite\": null,\n  \"not measured\": "
                        "null,\n  \"measured\": 0.5,\n  \"empty\": {}\n}\n");
    free(text);
}

static void a_file_that_cannot_be_made_is_told(void **state)
{
    gx_json *json = gx_json_create();
    char *path = test_path("no/such/folder.json");
    gx_error err = { 0 };

    (void)state;
    gx_json_bool(json, NULL, true);
    assert_fails(gx_json_write(json, path, &err), GX_ERR_WRITE, &err, path);
    gx_json_free(json);
    free(path);
}

/* A device or a pipe is written to, never replaced by a file. */
static void what_is_no_file_stays(void **state)
{
    char *path = test_path("link");
    gx_json *json = gx_json_create();
    gx_error err = { 0 };
    struct stat found;

    (void)state;
    assert_int_equal(symlink("/dev/null", path), 0);
    gx_json_bool(json, NULL, true);
    assert_ok(gx_json_write(json, path, &err), &err);
    gx_json_free(json);
    assert_int_equal(lstat(path, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(what_is_no_number_is_null),
        cmocka_unit_test(a_file_that_cannot_be_made_is_told),
        cmocka_unit_test(what_is_no_file_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
