/* Scales of pictures: their ends, places and marks. */
#include <math.h>

#include "axis.h"
#include "support.h"

static void assert_ticks(const gx_axis *axis, const double *wanted, size_t n)
{
    double ticks[GX_AXIS_TICKS];

    assert_int_equal(gx_axis_ticks(axis, ticks), n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(ticks[i] - wanted[i]) <= 1e-9 * fabs(wanted[i]));
}

#define ASSERT_TICKS(axis, ...)                           \
    assert_ticks((axis), (const double[]){ __VA_ARGS__ }, \
                 sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

static void more_than_a_decade_is_logarithmic(void **state)
{
    (void)state;
    assert_false(gx_axis_wants_log(1, 10));
    assert_true(gx_axis_wants_log(1, 11));
    assert_false(gx_axis_wants_log(0, 1000));
}

static void a_linear_axis_starts_at_zero(void **state)
{
    const gx_axis axis = gx_axis_fit(39, 88, false, 300, 0);

    (void)state;
    assert_true(axis.low == 0 && axis.high == 100);
    assert_true(gx_axis_place(&axis, 0) == 300 && gx_axis_place(&axis, 50) == 150);
    ASSERT_TICKS(&axis, 0, 20, 40, 60, 80, 100);
}

static void a_logarithmic_axis_ends_at_round_values(void **state)
{
    const gx_axis axis = gx_axis_fit(39, 880, true, 0, 100);

    (void)state;
    assert_true(fabs(axis.low - 20) < 1e-9 && fabs(axis.high - 1000) < 1e-6);
    ASSERT_TICKS(&axis, 20, 50, 100, 200, 500, 1000);
    assert_true(fabs(gx_axis_place(&axis, sqrt(20.0 * 1000)) - 50) < 1e-9);
}

static void a_short_logarithmic_axis_has_marks_all_the_same(void **state)
{
    const gx_axis axis = { .log = true, .low = 41, .high = 47, .from = 0, .to = 100 };
    /* One round value, 50, says too little. */
    const gx_axis longer = { .log = true, .low = 39, .high = 88, .from = 0, .to = 100 };

    (void)state;
    ASSERT_TICKS(&axis, 42, 44, 46);
    ASSERT_TICKS(&longer, 40, 50, 60, 70, 80);
}

static void many_decades_have_marks_that_do_not_touch(void **state)
{
    const gx_axis five = gx_axis_fit(1, 1e5, true, 0, 100);
    const gx_axis many = gx_axis_fit(1e-9, 1e30, true, 0, 100);
    double ticks[GX_AXIS_TICKS];

    (void)state;
    ASSERT_TICKS(&five, 1, 10, 100, 1000, 10000, 100000);
    assert_in_range(gx_axis_ticks(&many, ticks), 3, 12);
}

static void one_value_has_an_axis(void **state)
{
    const gx_axis linear = gx_axis_around(8, 8, false, 0, 100);
    const gx_axis zero = gx_axis_around(0, 0, false, 0, 100);
    const gx_axis log = gx_axis_fit(20, 20, true, 0, 100);
    const gx_axis nothing = gx_axis_fit(0, 0, false, 0, 100);

    (void)state;
    assert_true(fabs(gx_axis_place(&linear, 8) - 50) < 1e-9);
    assert_true(fabs(gx_axis_place(&zero, 0) - 50) < 1e-9);
    assert_true(log.high > log.low && nothing.high > nothing.low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_a_decade_is_logarithmic),
        cmocka_unit_test(a_linear_axis_starts_at_zero),
        cmocka_unit_test(a_logarithmic_axis_ends_at_round_values),
        cmocka_unit_test(a_short_logarithmic_axis_has_marks_all_the_same),
        cmocka_unit_test(many_decades_have_marks_that_do_not_touch),
        cmocka_unit_test(one_value_has_an_axis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
