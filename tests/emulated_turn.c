/* Transposes through tiles, run on the CPU by tests/emulate. */
#include <stdio.h>
#include <string.h>

#include "cuda_call.h"
#include "emulate.h"
#include "move_kernels.h"
#include "support.h"

/* Matrices as they lie, one row, column and matrix after the other but for what is
 * between them. */
typedef struct matrices {
    int rows, columns, n[2];
    int element_bytes;
    bool pairs, to_tf32;
    int between; /* elements */
} matrices;

typedef struct place {
    int64_t row, matrix[2]; /* elements from one to the next */
    int64_t all;
} place;

static place place_of(const matrices *m, int rows, int columns)
{
    place p = { .row = columns + m->between };

    p.matrix[1] = rows * p.row + m->between;
    p.matrix[0] = m->n[1] * p.matrix[1] + m->between;
    p.all = m->n[0] * p.matrix[0];
    return p;
}

static uint32_t get(const matrices *m, const void *memory, int64_t i)
{
    return m->element_bytes == 4 ? ((const uint32_t *)memory)[i]
                                 : ((const uint16_t *)memory)[i];
}

/* Floats that are rounded are neither NaN nor near the largest. */
static void *make_marks(const matrices *m, int64_t n)
{
    void *memory = emulate_alloc((size_t)(n * m->element_bytes));

    assert_non_null(memory);
    for (int64_t i = 0; i < n; i++) {
        if (m->element_bytes == 4)
            ((uint32_t *)memory)[i] =
                (uint32_t)(i * 2654435761 + 1) & (m->to_tf32 ? 0xbfffffff : 0xffffffff);
        else
            ((uint16_t *)memory)[i] = (uint16_t)(i * 40503 + 1);
    }
    return memory;
}

static gx_turn turn_of(const matrices *m, const place *from, const place *to)
{
    gx_turn turn = {
        .rows = m->rows,
        .columns = m->columns,
        .row_from = from->row,
        .column_to = to->row,
        .element_bytes = m->element_bytes,
        .to_tf32 = m->to_tf32,
    };

    for (int i = 0; i < 2; i++) {
        if (m->n[i] > 1)
            turn.axis[turn.n_axes++] =
                gx_move_along(m->n[i], from->matrix[i], to->matrix[i]);
    }
    /* Small ones have pairs too, so that the test is short. */
    turn.pairs = m->pairs;
    turn.row_tiles = gx_divide_up(turn.rows, gx_turn_edge(&turn));
    turn.column_tiles = gx_divide_up(turn.columns, gx_turn_edge(&turn));
    turn.n_tiles = m->n[0] * m->n[1] * turn.row_tiles * turn.column_tiles;
    return turn;
}

static void round_to_tf32(void *at)
{
    uint32_t bits;

    memcpy(&bits, at, sizeof bits);
    bits = emulate_tf32(bits);
    memcpy(at, &bits, sizeof bits);
}

/* What must be there: x where an element goes to, and between them what was before. */
static void expect_turned(const matrices *m, const place *from, const place *to,
                          const void *x, void *before)
{
    for (int64_t i = 0; i < (int64_t)m->n[0] * m->n[1]; i++) {
        const int64_t first = i / m->n[1], second = i % m->n[1];

        for (int64_t e = 0; e < (int64_t)m->rows * m->columns; e++) {
            const int64_t row = e / m->columns, column = e % m->columns;

            char *at = (char *)before + m->element_bytes * (first * to->matrix[0] +
                                                            second * to->matrix[1] +
                                                            column * to->row + row);

            memcpy(at,
                   (const char *)x + m->element_bytes * (first * from->matrix[0] +
                                                         second * from->matrix[1] +
                                                         row * from->row + column),
                   (size_t)m->element_bytes);
            if (m->to_tf32)
                round_to_tf32(at);
        }
    }
}

static void check(const matrices *m)
{
    const place from = place_of(m, m->rows, m->columns);
    const place to = place_of(m, m->columns, m->rows);
    gx_turn turn = turn_of(m, &from, &to);
    void *x = make_marks(m, from.all), *out = make_marks(m, to.all);
    void *expected = make_marks(m, to.all);
    gx_ctx ctx = { .cc = 90 };
    gx_error err = { 0 };

    turn.from = x;
    turn.to = out;
    expect_turned(m, &from, &to, x, expected);
    assert_ok(gx_turn_load(&turn, &err), &err);
    assert_ok(gx_turn_launch(&turn, &ctx, &err), &err);
    assert_int_equal(ctx.n_launched, 1);
    for (int64_t i = 0; i < to.all; i++) {
        if (get(m, out, i) != get(m, expected, i))
            fail_msg("%d x %d x %d x %d of %d bytes, pairs %d, between %d: element %lld",
                     m->n[0], m->n[1], m->rows, m->columns, m->element_bytes, m->pairs,
                     m->between, (long long)i);
    }
    emulate_free(expected);
    emulate_free(out);
    emulate_free(x);
}

/* Less than a tile, tiles that are full and not, several of them, several matrices. */
static void every_element_goes_to_its_place(void **state)
{
    static const int sizes[][4] = {
        { 1, 1, 2, 2 },    { 1, 1, 64, 64 }, { 1, 1, 130, 66 },
        { 1, 1, 62, 200 }, { 3, 1, 34, 70 }, { 2, 3, 66, 32 },
    };
    const uint64_t *seed = *state;
    test_random random = test_random_start(*seed);

    for (size_t i = 0; i < ARRAY_SIZE(sizes) * 8; i++) {
        const int *size = sizes[i / 8];
        matrices m = { .rows = size[2],
                       .columns = size[3],
                       .n = { size[0], size[1] },
                       .element_bytes = i & 1 ? 4 : 2,
                       .pairs = i & 2,
                       .to_tf32 = i & 1 && i & 4,
                       .between = i & 4 ? 2 : 0 };

        emulate_seed(test_random_bits(&random));
        check(&m);
        if (m.pairs)
            continue;
        m.rows--;
        m.columns--;
        m.between /= 2;
        check(&m);
    }
}

int main(void)
{
    static uint64_t seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_element_goes_to_its_place, &seed),
    };

    seed = test_seed();
    return cmocka_run_group_tests_name("emulated_turn", tests, NULL, NULL);
}
