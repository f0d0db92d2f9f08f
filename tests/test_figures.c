/* What is said of measured values, and how it is written. */
#include "support.h"

#include <math.h>

#include "args.h"
#include "figures.h"
#include "text_format.h"

static void percentiles_lie_between_neighbours(void **state)
{
    gx_series series = { 0 };
    gx_summary summary;

    (void)state;
    for (int i = 100; i >= 0; i--)
        assert_true(gx_series_add(&series, i));
    summary = gx_series_summary(&series);
    assert_int_equal(summary.n, 101);
    assert_true(summary.median == 50 && summary.p5 == 5 && summary.p95 == 95);
    gx_series_free(&series);
    assert_true(gx_series_add(&series, 1));
    assert_true(gx_series_add(&series, 2));
    assert_true(gx_series_summary(&series).median == 1.5);
    gx_series_free(&series);
}

static void nothing_measured_is_said_so(void **state)
{
    gx_series series = { 0 };

    (void)state;
    assert_true(gx_series_summary(&series).median < 0);
    assert_true(gx_series_add(&series, (double)NAN));
    assert_int_equal(gx_series_summary(&series).n, 0);
    assert_string_equal(gx_words_seconds(gx_series_summary(&series).median).text, "n/a");
    assert_string_equal(gx_words_seconds((double)NAN).text, "n/a");
    assert_string_equal(gx_words_count(-1).text, "n/a");
    gx_series_free(&series);
}

static void figures_have_units(void **state)
{
    const gx_tensor tensor = { .rank = 3, .dim = { 2, 3, 4 } };

    (void)state;
    assert_string_equal(gx_words_seconds(93.14e-6).text, "93.1 us");
    assert_string_equal(gx_words_seconds(0).text, "0.00 us");
    assert_string_equal(gx_words_seconds(1.25e-3).text, "1.25 ms");
    assert_string_equal(gx_words_seconds(250).text, "250 s");
    assert_string_equal(gx_words_bytes(1023).text, "1023 B");
    assert_string_equal(gx_words_bytes(1536).text, "1.50 KiB");
    assert_string_equal(gx_words_clock(3723).text, "1:02:03");
    assert_string_equal(gx_words_clock(61).text, "01:01");
    assert_string_equal(gx_words_position(&tensor, 23).text, "[1, 2, 3]");
    assert_string_equal(gx_words_position(&(gx_tensor){ 0 }, 0).text, "[]");
    assert_string_equal(gx_words_cuda_version(12040).text, "12.4");
}

static void the_name_that_was_meant_is_found(void **state)
{
    static const char *const names[] = { "run",     "compare",
                                         "check",   "--steps-per-launch",
                                         "--steps", NULL };

    (void)state;
    assert_string_equal(gx_near_name("rnu", names), "run");
    assert_string_equal(gx_near_name("comapre", names), "compare");
    assert_string_equal(gx_near_name("--step", names), "--steps");
    assert_null(gx_near_name("frobnicate", names));
    assert_null(gx_near_name("", names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_lie_between_neighbours),
        cmocka_unit_test(nothing_measured_is_said_so),
        cmocka_unit_test(figures_have_units),
        cmocka_unit_test(the_name_that_was_meant_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
