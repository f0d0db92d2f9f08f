/* Types, shapes, rounding. */
#include <math.h>
#include <string.h>

#include "support.h"

static void types_have_names_and_sizes(void **state)
{
    (void)state;
    assert_string_equal(gx_dtype_name(GX_F32), "f32");
    assert_string_equal(gx_dtype_name(GX_BF16), "bf16");
    assert_string_equal(gx_dtype_name(GX_F16), "f16");
    assert_string_equal(gx_dtype_name(GX_I32), "i32");
    assert_string_equal(gx_dtype_name(GX_F64), "f64");
    assert_int_equal(gx_dtype_bytes(GX_F32), 4);
    assert_int_equal(gx_dtype_bytes(GX_BF16), 2);
    assert_int_equal(gx_dtype_bytes(GX_F16), 2);
    assert_true(gx_is_float(GX_F32) && gx_is_float(GX_BF16) && gx_is_float(GX_F16));
    assert_false(gx_is_float(GX_I32) || gx_is_float(GX_F64));
    assert_int_equal(gx_dtype_bytes(GX_I32), 4);
    assert_int_equal(gx_dtype_bytes(GX_F64), 8);
    assert_int_equal(gx_dtype_bytes((gx_dtype)77), 0);
    assert_non_null(gx_dtype_name((gx_dtype)-1));
}

static void shapes_are_counted_and_compared(void **state)
{
    gx_tensor a = { .rank = 3, .dim = { 2, 3, 5 } };
    gx_tensor b = { .rank = 3, .dim = { 2, 3, 5 } };
    const gx_tensor scalar = { .rank = 0 };

    (void)state;
    assert_int_equal(gx_count(&a), 30);
    assert_int_equal(gx_count(&scalar), 1);
    assert_true(gx_same_shape(&a, &b));
    b.dim[2] = 0;
    assert_int_equal(gx_count(&b), 0);
    assert_false(gx_same_shape(&a, &b));
    b = a;
    b.rank = 2;
    assert_false(gx_same_shape(&a, &b));
}

static void shapes_have_a_text(void **state)
{
    const int64_t dim[] = { 64, INT64_C(1) << 40, 0 };
    char text[64];

    (void)state;
    assert_string_equal(gx_shape_text(0, dim, text, sizeof text), "[]");
    assert_string_equal(gx_shape_text(1, dim, text, sizeof text), "[64]");
    assert_string_equal(gx_shape_text(3, dim, text, sizeof text),
                        "[64, 1099511627776, 0]");
    for (size_t size = 1; size < 20; size++) {
        memset(text, 'x', sizeof text);
        assert_ptr_equal(gx_shape_text(3, dim, text, size), text);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], 'x');
    }
}

/* The nearest of the two bf16 neighbours, ties to even, by exact arithmetic on doubles.
 */
static double nearest_bf16(double value)
{
    int exponent;
    double scaled;

    if (value == 0 || !isfinite(value))
        return value;
    frexp(value, &exponent);
    exponent = exponent < -125 ? -125 : exponent; /* below lie subnormals */
    scaled = nearbyint(ldexp(value, 8 - exponent));
    value = ldexp(scaled, exponent - 8);
    return fabs(value) > 0x1.fep127 ? copysign(INFINITY, value) : value;
}

static void bf16_rounds_to_nearest_even(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int i = 0; i < 200000; i++) {
        const uint32_t bits = (uint32_t)test_random_bits(&random);
        float value;

        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        const double expected = nearest_bf16((double)value);
        const double got = (double)gx_bf16_to_float(gx_bf16_from_float(value));

        if (memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("%a gave %a, expected %a", (double)value, got, expected);
    }
    assert_true(isnan(gx_bf16_to_float(gx_bf16_from_float(NAN))));
    assert_true(isinf(gx_bf16_to_float(gx_bf16_from_float(INFINITY))));
}

static void every_bf16_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const float value = gx_bf16_to_float((uint16_t)bits);

        if (!isnan(value))
            assert_int_equal(gx_bf16_from_float(value), bits);
        else
            assert_true(isnan(gx_bf16_to_float(gx_bf16_from_float(value))));
    }
}

static void doubles_are_rounded_once(void **state)
{
    test_random random = test_random_start(test_seed());
    /* Just above a tie between two bf16: through f32 it would fall on the tie. */
    const double above_tie = 1 + 0x1p-8 + 0x1p-40;

    (void)state;
    assert_true(gx_round_to(GX_BF16, above_tie) == 1 + 0x1p-7);
    assert_true(gx_round_to(GX_BF16, -above_tie) == -1 - 0x1p-7);
    assert_true(gx_round_to(GX_BF16, 1 + 0x1p-8) == 1);
    assert_true(gx_round_to(GX_F32, 0.1) == (double)0.1f);
    assert_true(gx_round_to(GX_F64, 0.1) == 0.1);
    assert_true(gx_round_to(GX_I32, 2.5) == 2);
    assert_true(gx_round_to(GX_I32, -7) == -7);
    assert_true(isnan(gx_round_to(GX_BF16, NAN)));
    assert_true(isnan(gx_round_to(GX_F32, NAN)));
    assert_true(isinf(gx_round_to(GX_BF16, 1e300)));
    assert_true(gx_round_to(GX_BF16, 1e-300) == 0);
    for (int i = 0; i < 100000; i++) {
        const uint64_t bits = test_random_bits(&random);
        double value;

        memcpy(&value, &bits, sizeof value);
        if (i % 2 == 0) /* most doubles are far outside: half of these are not */
            value = ldexp(1 + (double)(bits >> 12) * 0x1p-52, (int)(bits % 250) - 120);
        if (isnan(value))
            continue;
        if (gx_round_to(GX_BF16, value) != nearest_bf16(value))
            fail_msg("%a gave %a", value, gx_round_to(GX_BF16, value));
    }
}

/* From the bits of a half, by the formula of the standard. */
static double half(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 0x1f);
    const double digits = bits & 0x3ff;
    const double size =
        exponent == 0 ? digits * 0x1p-24 : ldexp(1 + digits * 0x1p-10, exponent - 15);

    return bits & 0x8000 ? -size : size;
}

static void every_f16_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const float value = gx_f16_to_float((uint16_t)bits);

        if ((bits & 0x7fff) > 0x7c00) {
            assert_true(isnan(value));
            assert_true(isnan(gx_f16_to_float(gx_f16_from_float(value))));
            assert_true(isnan(gx_round_to(GX_F16, (double)value)));
            continue;
        }
        if ((bits & 0x7fff) == 0x7c00)
            assert_true(isinf(value) && (value < 0) == (bits == 0xfc00));
        else
            assert_true((double)value == half(bits));
        assert_int_equal(gx_f16_from_float(value), bits);
        assert_true(gx_round_to(GX_F16, (double)value) == (double)value);
        assert_int_equal(signbit(value) != 0, bits >> 15);
    }
}

/* Between each two neighbours: the middle goes to the even one, what is off it by one
 * unit of the wider type to the nearer. */
static void check_between(uint32_t low)
{
    const double a = half(low), b = low == 0x7bff ? 65536 : half(low + 1);
    const double middle = (a + b) / 2;
    const double beyond = low == 0x7bff ? INFINITY : b;
    const double even = low % 2 == 0 ? a : beyond;

    for (int sign = -1; sign <= 1; sign += 2) {
        const float under = nextafterf((float)middle, 0);
        const float over = nextafterf((float)middle, INFINITY);

        assert_true(gx_round_to(GX_F16, sign * middle) == sign * even);
        assert_true(gx_round_to(GX_F16, sign * nextafter(middle, 0)) == sign * a);
        assert_true(gx_round_to(GX_F16, sign * nextafter(middle, INFINITY)) ==
                    sign * beyond);
        assert_true((double)gx_f16_to_float(gx_f16_from_float((float)(sign * middle))) ==
                    sign * even);
        assert_true((double)gx_f16_to_float(gx_f16_from_float((float)sign * under)) ==
                    sign * a);
        assert_true((double)gx_f16_to_float(gx_f16_from_float((float)sign * over)) ==
                    sign * beyond);
    }
}

static void f16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 0x7c00; low++)
        check_between(low);
    assert_int_equal(gx_f16_from_float(65504.0F), 0x7bff);
    assert_int_equal(gx_f16_from_float(65519.996F), 0x7bff);
    assert_int_equal(gx_f16_from_float(65520.0F), 0x7c00);
    assert_int_equal(gx_f16_from_float(-1e30F), 0xfc00);
    assert_int_equal(gx_f16_from_float(INFINITY), 0x7c00);
    assert_int_equal(gx_f16_from_float(-0.0F), 0x8000);
    assert_int_equal(gx_f16_from_float(-0x1p-26F), 0x8000);
    assert_int_equal(gx_f16_from_float(0x1.8p-25F), 1);
    assert_true(isinf(gx_round_to(GX_F16, 1e300)));
    assert_true(gx_round_to(GX_F16, 1e-300) == 0);
    assert_true(isnan(gx_round_to(GX_F16, NAN)));
}

static void a_rank_that_no_tensor_has_reads_no_sizes(void **state)
{
    const gx_tensor high = { .rank = 99 }, low = { .rank = -3 };
    char text[32];

    (void)state;
    assert_string_equal(gx_shape_text(99, NULL, text, sizeof text), "[of rank 99]");
    assert_string_equal(gx_shape_text(-3, NULL, text, sizeof text), "[of rank -3]");
    assert_string_equal(gx_shape_text(99, NULL, text, 4), "[of");
    assert_false(gx_same_shape(&high, &high));
    assert_false(gx_same_shape(&low, &low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_names_and_sizes),
        cmocka_unit_test(shapes_are_counted_and_compared),
        cmocka_unit_test(a_rank_that_no_tensor_has_reads_no_sizes),
        cmocka_unit_test(shapes_have_a_text),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(every_bf16_survives),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(every_f16_survives),
        cmocka_unit_test(f16_rounds_to_nearest_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
