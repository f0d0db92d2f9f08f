/* Copies between strided places, walked on the host as a kernel walks them: they give
 * what the rows' references give, whatever the addresses, sizes and units. */
#include <stdlib.h>
#include <string.h>

#include "move.h"
#include "shape.h"
#include "support_moves.h"

enum { DRAWS = 2000, SHIFTS = 8 };

/* What move.cu does, unit by unit. Each unit of out is written once. */
static void walk(const gx_move *move)
{
    const size_t bytes = (size_t)move->unit_bytes;

    for (int p = 0; p < move->n_parts; p++) {
        const gx_move_part *part = &move->part[p];

        for (int64_t unit = 0; unit < part->n; unit++) {
            int64_t t = unit, from = 0, to = 0;

            for (int i = part->rank - 1; i >= 0; i--) {
                const gx_move_axis *axis = &part->axis[i];
                const int64_t next = i == 0 ? 0
                                     : move->narrow
                                         ? (int64_t)gx_move_divide(axis, (uint32_t)t)
                                         : t / axis->size;

                assert_true(i == 0 || next == t / axis->size);
                from += (t - next * axis->size) * axis->from;
                to += (t - next * axis->size) * axis->to;
                t = next;
            }
            assert_true((uintptr_t)part->to % bytes == 0);
            if (part->from)
                memcpy((char *)part->to + to * (int64_t)bytes,
                       (const char *)part->from + from * (int64_t)bytes, bytes);
            else
                memset((char *)part->to + to * (int64_t)bytes, 0, bytes);
        }
    }
}

/* --- random calls --- */

static void describe(const gx_call *call, gx_move *move)
{
    static void (*const plan[])(const gx_call *, gx_move *) = {
        gx_move_transpose, gx_move_reshape, gx_move_slice,
        gx_move_slice_bwd, gx_move_concat,
    };

    for (size_t i = 0; test_moves[i]; i++) {
        if (strcmp(test_moves[i], gx_op_name(call->op)) == 0)
            plan[i](call, move);
    }
}

/* Elements at addresses that allow much or little; `block` is freed by the caller. */
static void give_memory(test_random *random, gx_tensor *t, char **block)
{
    const size_t element = gx_dtype_bytes(t->dtype);
    const size_t shift = (size_t)test_random_int(random, 0, SHIFTS - 1) * element;
    const size_t bytes = ((size_t)gx_count(t) * element + 191) / 64 * 64;

    *block = aligned_alloc(64, bytes);
    assert_non_null(*block);
    memset(*block, 0xee, bytes);
    t->data = *block + (test_random_int(random, 0, 1) ? shift : 0);
}

static void put_mark(const gx_tensor *t, int64_t k, uint16_t mark)
{
    const uint32_t wide = mark;

    if (gx_dtype_bytes(t->dtype) == 4)
        memcpy((char *)t->data + 4 * k, &wide, 4);
    else
        memcpy((char *)t->data + 2 * k, &mark, 2);
}

static double get_mark(const gx_tensor *t, int64_t k)
{
    uint32_t wide = 0;
    uint16_t narrow = 0;

    if (gx_dtype_bytes(t->dtype) == 4)
        memcpy(&wide, (char *)t->data + 4 * k, 4);
    else
        memcpy(&narrow, (char *)t->data + 2 * k, 2);
    return wide + narrow;
}

static void moves_give_what_the_references_give(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        char *block[GX_MAX_ARGS] = { NULL };
        gx_move move;
        gx_call call;
        const int out = test_move_draw(&random, test_moves[draw % 5], 17, &call);
        const gx_tensor *result = &call.arg[out];
        double *expected = test_move_expected(&call, out);

        for (int i = 0; i <= out; i++) {
            if (call.arg[i].rank >= 0)
                give_memory(&random, &call.arg[i], &block[i]);
            for (int64_t k = 0; i < out && block[i] && k < gx_count(&call.arg[i]); k++)
                put_mark(&call.arg[i], k, test_move_mark(i, k));
        }
        describe(&call, &move);
        walk(&move);
        for (int64_t k = 0; k < gx_count(result); k++)
            assert_true(get_mark(result, k) == expected[k]);
        /* nothing is written behind the end */
        assert_int_equal(
            ((const unsigned char *)
                 result->data)[(size_t)gx_count(result) * gx_dtype_bytes(result->dtype)],
            0xee);
        for (int i = 0; i <= out; i++)
            free(block[i]);
        free(expected);
    }
}

static gx_call start(const char *op)
{
    gx_call call = { .op = gx_op_find(op) };

    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    return call;
}

static void set_attr(gx_attr *attr, int64_t value)
{
    attr->i = value;
    attr->present = true;
}

static void a_view_moves_nothing(void **state)
{
    gx_call call = start("reshape");
    float same[6] = { 0 };
    gx_move move;

    (void)state;
    call.arg[GX_RESHAPE_X] = (gx_tensor){ GX_F32, 2, { 2, 3 }, same };
    call.arg[GX_RESHAPE_OUT] = (gx_tensor){ GX_F32, 1, { 6 }, same };
    gx_move_reshape(&call, &move);
    assert_int_equal(move.n_parts, 0);
}

/* --- units and division --- */

static void units_are_as_wide_as_everything_allows(void **state)
{
    static const struct {
        int64_t columns, width, start;
        size_t shift;
        int unit;
    } cases[] = {
        { 40, 16, 8, 0, 16 }, { 40, 16, 2, 0, 8 }, { 40, 16, 1, 0, 4 },
        { 42, 16, 8, 0, 8 },  { 40, 18, 8, 0, 8 }, { 41, 16, 8, 0, 4 },
        { 40, 16, 8, 4, 4 },  { 40, 16, 8, 8, 8 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_call call = start("slice");
        gx_move move;

        set_attr(&call.attr[GX_SLICE_AXIS], 1);
        set_attr(&call.attr[GX_SLICE_START], cases[i].start);
        set_attr(&call.attr[GX_SLICE_STOP], cases[i].start + cases[i].width);
        set_attr(&call.attr[GX_SLICE_STEP], 1);
        call.arg[GX_SLICE_X] =
            (gx_tensor){ GX_F32, 2, { 3, cases[i].columns }, (void *)4096 };
        call.arg[GX_SLICE_OUT] = (gx_tensor){
            GX_F32, 2, { 3, cases[i].width }, (void *)(8192 + cases[i].shift)
        };
        gx_move_slice(&call, &move);
        assert_int_equal(move.unit_bytes, cases[i].unit);
        assert_true(move.narrow);
        assert_int_equal(move.part[0].n, 3 * cases[i].width * 4 / cases[i].unit);
    }
}

/* Numbers alone: nothing of that size is allocated. */
static void indexes_pass_2_to_the_31(void **state)
{
    const int64_t rows = (INT64_C(1) << 31) + 3, columns = 3;
    gx_call call = start("transpose");
    gx_move move;

    (void)state;
    call.arg[GX_TRANSPOSE_X] = (gx_tensor){ GX_BF16, 2, { rows, columns }, (void *)4096 };
    call.arg[GX_TRANSPOSE_OUT] =
        (gx_tensor){ GX_BF16, 2, { columns, rows }, (void *)4096 };
    gx_move_transpose(&call, &move);
    assert_false(move.narrow);
    assert_int_equal(move.part[0].n, rows * columns);
    assert_int_equal(move.part[0].axis[0].to, rows);
    assert_int_equal(move.part[0].axis[1].size, rows);
    assert_int_equal(move.part[0].axis[1].from, columns);
}

/* Rows of x and of out that all start at a multiple of two elements; of 4 bytes, as many
 * elements as tiles four times as large are worth. */
static void pairs_are_moved_where_every_row_allows_them(void **state)
{
    static const struct {
        int64_t rows, columns, row_from, column_to, n_matrices, matrix_from;
        size_t bytes, shift; /* of an element, and of the address */
        bool pairs;
    } cases[] = {
        { 64, 66, 66, 64, 1, 0, 2, 0, true },
        { 64, 66, 66, 64, 1, 0, 2, 2, false },
        { 65, 66, 66, 66, 1, 0, 2, 0, false },
        { 64, 66, 67, 64, 1, 0, 2, 0, false },
        { 64, 66, 66, 65, 1, 0, 2, 0, false },
        { 64, 66, 66, 64, 2, 4223, 2, 0, false },
        { 64, 66, 66, 64, 2, 4224, 2, 0, true },
        { 1024, 1024, 1024, 1024, 1, 0, 4, 0, true },
        { 1024, 1024, 1024, 1024, 1, 0, 4, 4, false },
        { 1024, 1024, 1024, 1024, 1, 0, 4, 8, true },
        { 1024, 1022, 1024, 1024, 1, 0, 4, 0, false },
        { 512, 512, 512, 512, 4, 1 << 18, 4, 0, true },
        { 512, 512, 512, 512, 3, 1 << 18, 4, 0, false },
        { 1 << 20, 1, 1, 1 << 20, 1, 0, 4, 0, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const int64_t edge = cases[i].pairs ? 64 : 32;
        gx_turn turn = {
            .rows = cases[i].rows,
            .columns = cases[i].columns,
            .row_from = cases[i].row_from,
            .column_to = cases[i].column_to,
            .element_bytes = (int32_t)cases[i].bytes,
            .from = (const void *)(4096 + cases[i].shift),
            .to = (void *)8192,
        };

        if (cases[i].n_matrices > 1)
            turn.axis[turn.n_axes++] = gx_move_along(
                cases[i].n_matrices, cases[i].matrix_from, turn.columns * turn.column_to);
        gx_turn_finish(&turn);
        assert_int_equal(turn.pairs, cases[i].pairs);
        assert_int_equal(turn.row_tiles, (turn.rows + edge - 1) / edge);
        assert_int_equal(turn.column_tiles, (turn.columns + edge - 1) / edge);
        assert_int_equal(turn.n_tiles,
                         cases[i].n_matrices * turn.row_tiles * turn.column_tiles);
    }
}

static void division_is_exact(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < 20000; draw++) {
        const int64_t most = (INT64_C(1) << test_random_int(&random, 2, 31)) - 1;
        const int64_t size = test_random_int(&random, 2, most);
        const int64_t near = test_random_int(&random, 0, INT32_MAX / size) * size;
        const gx_move_axis axis[] = { gx_move_along(2, 7 * size, 9 * size),
                                      gx_move_along(size, 3, 5) };
        int64_t t[] = { test_random_int(&random, 0, INT32_MAX), near, near - 1, INT32_MAX,
                        0 };
        gx_move move;

        gx_move_start(&move);
        gx_move_add(&move, t, t, 2, axis);
        gx_move_finish(&move, GX_F32);
        if (!move.narrow)
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
            if (t[i] >= 0)
                assert_int_equal(gx_move_divide(&move.part[0].axis[1], (uint32_t)t[i]),
                                 t[i] / size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_give_what_the_references_give),
        cmocka_unit_test(a_view_moves_nothing),
        cmocka_unit_test(units_are_as_wide_as_everything_allows),
        cmocka_unit_test(indexes_pass_2_to_the_31),
        cmocka_unit_test(pairs_are_moved_where_every_row_allows_them),
        cmocka_unit_test(division_is_exact),
    };

    return cmocka_run_group_tests_name("move", tests, NULL, NULL);
}
