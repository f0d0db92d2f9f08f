/* The kernel that fills memory, run on the CPU by tests/emulate: every byte, also around
 * what is filled. */
#include "fill.h"

#include "emulate.h"
#include "launch.h"
#include "support.h"

enum { MEMORY_BYTES = 4096 };

typedef struct shape {
    size_t at, row_bytes, n_rows, pitch;
    uint32_t word;
    unsigned x, y, block; /* 0: as in graphs */
} shape;

static void expect(const shape *s, unsigned char *memory)
{
    for (size_t row = 0; row < s->n_rows; row++)
        for (size_t i = 0; i < s->row_bytes; i++) {
            const size_t at = s->at + row * s->pitch + i;

            memory[at] = (unsigned char)(s->word >> 8 * (at % 4)); /* memory is aligned */
        }
}

static void check(const shape *s, uint64_t seed)
{
    unsigned char *const memory = emulate_alloc(MEMORY_BYTES);
    unsigned char expected[MEMORY_BYTES];
    gx_fill fill = { memory + s->at, s->row_bytes, s->n_rows, s->pitch, s->word };
    gx_ctx ctx = { .cc = 90, .n_sm = 1 };
    void *args[] = { &fill };
    gx_error err;

    gx_error_clear(&err);
    assert_int_equal((uintptr_t)memory % GX_FILL_UNIT, 0);
    for (int i = 0; i < MEMORY_BYTES; i++)
        memory[i] = expected[i] = (unsigned char)(i * 7);
    expect(s, expected);
    emulate_seed(seed);
    assert_ok(gx_load_kernel(gx_fill_kernel(), 0, "fill_kernel", &err), &err);
    assert_ok(gx_launch(&ctx, "fill_kernel", gx_fill_kernel(), (dim3){ s->x, s->y, 1 },
                        (dim3){ s->block ? s->block : GX_FILL_BLOCK, 1, 1 }, 0, args,
                        &err),
              &err);
    assert_memory_equal(memory, expected, MEMORY_BYTES);
    emulate_free(memory);
}

static void fills_are_right_to_the_byte(void **state)
{
    const shape shapes[] = {
        { 0, 1024, 1, 0, 0, 1, 1, 0 },
        { 0, 1, 1, 0, 0x55555555, 1, 1, 0 },
        { 15, 1, 1, 0, 0x55555555, 1, 1, 0 },
        { 13, 6, 1, 0, 0x55555555, 1, 1, 0 },
        { 1, 4095, 1, 0, 0x7f7f7f7f, 1, 1, 0 }, /* to the end */
        { 0, 4096, 1, 0, 0x01010101, 4, 1, 0 }, /* more blocks than it needs */
        { 2, 2 * 500, 1, 0, 0x12341234, 1, 1, 0 },
        { 6, 2, 1, 0, 0x12341234, 2, 1, 0 },
        { 12, 4 * 33, 1, 0, 0x89abcdef, 1, 1, 0 },
        { 4, 4 * 1001, 1, 0, 0x89abcdef, 1, 1, 0 },
        { 3, 5, 40, 17, 0x60606060, 1, 3, 0 },
        { 0, 16, 100, 16, 0x60606060, 1, 2, 0 }, /* rows without gaps */
        { 2, 2 * 11, 30, 26, 0xbeefbeef, 1, 7, 0 },
        { 8, 4 * 50, 9, 404, 0x01020304, 1, 9, 0 },
        { 100, 300, 1, 0, 0x42424242, 1, 4, 0 }, /* blocks without a row */
        { 64, 0, 3, 16, 0x42424242, 1, 1, 0 },   /* nothing */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
        check(&shapes[i], i);
}

/* Small blocks, so that each thread has several units of a row. */
static void fills_at_random_are_right(void **state)
{
    test_random random = test_random_start(test_seed());
    const int n = test_is_short() ? 20 : 200;

    (void)state;
    for (int i = 0; i < n; i++) {
        const size_t element = (size_t)1 << (size_t)test_random_int(&random, 0, 2);
        const size_t n_rows = 1 + (size_t)test_random_int(&random, 0, 5);
        const size_t row_bytes = element * (size_t)test_random_int(&random, 0, 99);
        const size_t pitch = row_bytes + element * (size_t)test_random_int(&random, 0, 8);
        const uint32_t value = (uint32_t)test_random_bits(&random);
        shape s = { .at = element * (size_t)test_random_int(&random, 0, 39),
                    .row_bytes = row_bytes,
                    .n_rows = n_rows,
                    .pitch = pitch,
                    .word = element == 1   ? (value & 0xff) * 0x01010101u
                            : element == 2 ? (value & 0xffff) * 0x00010001u
                                           : value,
                    .x = 1 + (unsigned)test_random_int(&random, 0, 2),
                    .y = 1 + (unsigned)test_random_int(&random, 0, 3),
                    .block = 8 };

        check(&s, (uint64_t)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_are_right_to_the_byte),
        cmocka_unit_test(fills_at_random_are_right),
    };

    return cmocka_run_group_tests_name("emulated_fill", tests, NULL, NULL);
}
