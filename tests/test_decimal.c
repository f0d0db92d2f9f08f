/* Decimal texts as whole numbers. */
#include <stdio.h>
#include <string.h>

#include "decimal.h"
#include "support.h"

static void numbers_are_read_exactly(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        { "0", 0 },
        { "0.000", 0 },
        { "1", 1000 },
        { "-2.5", -2500 },
        { "4958201588882.869", INT64_C(4958201588882869) },
        { "1700000000000123.457", INT64_C(1700000000000123457) }, /* no double can */
        { "1.5e3", 1500000 },
        { "15E-1", 1500 },
        { "0.0004", 0 },
        { "0.0005", 1 },
        { "0.00049999999999999999999999", 0 },
        { "12.3456", 12346 },
        { "0000000000000000000000000000001.000", 1000 },
        { "1e-400", 0 },
        { "0e999999999999", 0 },
        { "9223372036854775.807", INT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t value = -1;

        print_message("%s\n", cases[i].text);
        assert_true(gx_decimal_read(cases[i].text, strlen(cases[i].text), 3, &value));
        assert_int_equal(value, cases[i].value);
    }
}

static void what_is_no_number_or_too_large_is_refused(void **state)
{
    static const char *const cases[] = { "",
                                         "-",
                                         ".",
                                         "abc",
                                         "1x",
                                         "1e",
                                         "1e+",
                                         "1.2.3",
                                         "--1",
                                         "1e1x",
                                         "1e30",
                                         "9223372036854775.808",
                                         "99999999999999999999",
                                         "1e999999999999999999999" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t value;

        print_message("'%s'\n", cases[i]);
        assert_false(gx_decimal_read(cases[i], strlen(cases[i]), 3, &value));
    }
}

static void random_times_come_back(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int i = 0; i < 10000; i++) {
        const int64_t ns = test_random_int(&random, 0, INT64_MAX);
        char text[64];
        int64_t value;

        snprintf(text, sizeof text, "%lld.%03d", (long long)(ns / 1000),
                 (int)(ns % 1000));
        assert_true(gx_decimal_read(text, strlen(text), 3, &value));
        assert_true(value == ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_exactly),
        cmocka_unit_test(what_is_no_number_or_too_large_is_refused),
        cmocka_unit_test(random_times_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
