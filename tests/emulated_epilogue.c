/* The forward pass through an epilogue, run on the CPU by tests/emulate: what is stored
 * of an output that products of tf32 alone read. */
#include <string.h>

#include "emulate_operand.h"
#include "epilogue.h"
#include "epilogue_kernels.h"

typedef struct matrix {
    int rows, columns;
    bool to_tf32;
} matrix;

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Bit for bit: `pre` is never rounded, `out` where it was asked for. */
static void check(const matrix *m, test_random *random)
{
    const int64_t n = (int64_t)m->rows * m->columns;
    emulate_operand x = emulate_plain_input(GX_F32, n, random);
    emulate_operand bias = emulate_plain_input(GX_F32, m->columns, random);
    emulate_operand pre = emulate_output(GX_F32, n), out = emulate_output(GX_F32, n);
    const gx_epilogue e = { .rows = m->rows,
                            .columns = m->columns,
                            .dtype = GX_F32,
                            .wide = m->columns % 4 == 0,
                            .act = GX_ACT_RELU,
                            .to_tf32 = m->to_tf32,
                            .x = x.memory,
                            .bias = bias.memory,
                            .out = out.memory,
                            .pre = pre.memory,
                            .scale = 1.0f };
    gx_ctx ctx = { .cc = 90, .n_sm = 132 };
    gx_error err = { 0 };
    int n_rounded = 0;

    assert_ok(gx_epilogue_load(&e, &err), &err);
    assert_ok(gx_epilogue_launch(&e, &ctx, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const float sum =
            ((const float *)x.memory)[i] + ((const float *)bias.memory)[i % m->columns];
        const uint32_t plain = bits_of(sum > 0 ? sum : 0.0f);
        const uint32_t want = m->to_tf32 ? emulate_tf32(plain) : plain;

        assert_int_equal(bits_of(((const float *)pre.memory)[i]), bits_of(sum));
        assert_int_equal(bits_of(((const float *)out.memory)[i]), want);
        n_rounded += want != plain;
    }
    assert_true(m->to_tf32 ? n_rounded > 0 : n_rounded == 0);
    emulate_drop(&x);
    emulate_drop(&bias);
    emulate_drop(&pre);
    emulate_drop(&out);
}

static void outputs_are_rounded_where_asked(void **state)
{
    static const int sizes[][2] = { { 3, 8 }, { 70, 36 }, { 5, 7 }, { 130, 260 } };
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (size_t i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
        const matrix m = { .rows = sizes[i / 2][0],
                           .columns = sizes[i / 2][1],
                           .to_tf32 = i % 2 };

        emulate_seed(test_random_bits(&random));
        check(&m, &random);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(outputs_are_rounded_where_asked, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_epilogue", tests, NULL, NULL);
}
