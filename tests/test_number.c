/* The grammar of numbers, truth values and names, in any locale. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "graph_model.h"
#include "number.h"
#include "support.h"

static void reals_are_decimal(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        { "1e-4", 1e-4 },
        { "1E-4", 1e-4 },
        { "1.e-4", 1e-4 },
        { ".5", 0.5 },
        { "+1e-4", 1e-4 },
        { "-0", -0.0 },
        { "0", 0 },
        { "0.10", 0.1 },
        { "1e+05", 1e5 },
        { "-12.25", -12.25 },
        { "123456789", 123456789 },
        { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "4.9406564584124654e-324", 4.9406564584124654e-324 },
        { "0e999999999999", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        double value = 99;

        assert_true(gx_read_real(good[i].text, &value));
        assert_memory_equal(&value, &good[i].value, sizeof value);
    }
}

static void what_is_no_real_is_refused(void **state)
{
    static const char *const bad[] = {
        "",       "1_000",  "0x10",     "0x1p3", ".inf", "inf",  "-inf", ".nan", "nan",
        "1e400",  "-1e400", "1e-4x",    "1e",    "1e+",  "e5",   ".",    "+",    "-",
        "+-1",    "01",     "00",       "-007",  "0o10", "1:30", " 1",   "1 ",   "1,5",
        "1e-400", "1.2.3",  "infinity", "1f",    "1d0",  "\t1",  "0b1",  "--1",  "1e5.0",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        double value = 99;

        if (gx_read_real(bad[i], &value))
            fail_msg("\"%s\" was read as %g", bad[i], value);
        assert_true(value == 99);
    }
}

static void texts_of_reals_read_back(void **state)
{
    test_random random = test_random_start(test_seed());
    char text[GX_REAL_TEXT];

    (void)state;
    assert_string_equal(gx_real_text(0.001, text), "0.001");
    assert_string_equal(gx_real_text(0.1, text), "0.1");
    assert_string_equal(gx_real_text(1, text), "1");
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = test_random_bits(&random);
        double value, back;

        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        assert_true(gx_read_real(gx_real_text(value, text), &back));
        assert_memory_equal(&back, &value, sizeof value);
    }
}

static void the_locale_does_not_matter(void **state)
{
    static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE",
                                          "fr_FR" };
    char text[GX_REAL_TEXT];
    double value;
    bool found = false;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(commas) && !found; i++)
        found = setlocale(LC_ALL, commas[i]) != NULL;
    if (!found)
        print_message("no locale with a decimal comma is installed\n");
    assert_true(gx_read_real("0.5", &value));
    assert_true(value == 0.5);
    assert_string_equal(gx_real_text(0.5, text), "0.5");
    assert_string_equal(localeconv()->decimal_point, found ? "," : ".");
    setlocale(LC_ALL, "C");
}

static void only_true_and_false_are_truth_values(void **state)
{
    static const char *const bad[] = {
        "no",    "yes", "on", "off", "y",    "n", "True",
        "FALSE", "1",   "0",  "",    "null", "~", "true "
    };
    bool value;

    (void)state;
    assert_true(gx_read_bool("true", &value));
    assert_true(value);
    assert_true(gx_read_bool("false", &value));
    assert_false(value);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(gx_read_bool(bad[i], &value));
}

static void names_are_words(void **state)
{
    static const char *const good[] = { "x",   "y",    "n",  "no",  "null",
                                        "on",  "off",  "_1", "W-2", "blk.3.w",
                                        "a_b", "true", "inf" };
    static const char *const bad[] = { "",    "1x",  "-x",          ".x", "a b", "a/b",
                                       "a:b", "a\n", "caf\xc3\xa9", "<<", "a*" };
    char longest[GX_LIMIT_NAME + 2];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(gx_is_name(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(gx_is_name(bad[i]));
    memset(longest, 'x', sizeof longest);
    longest[GX_LIMIT_NAME] = '\0';
    assert_true(gx_is_name(longest));
    longest[GX_LIMIT_NAME] = 'x';
    longest[GX_LIMIT_NAME + 1] = '\0';
    assert_false(gx_is_name(longest));
    assert_false(gx_is_dim_name("a-b"));
    assert_true(gx_is_dim_name("n_heads2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_decimal),
        cmocka_unit_test(what_is_no_real_is_refused),
        cmocka_unit_test(texts_of_reals_read_back),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(only_true_and_false_are_truth_values),
        cmocka_unit_test(names_are_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
