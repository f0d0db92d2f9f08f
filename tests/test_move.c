/* Copies between strided places, walked on the host as a kernel walks them: they give
 * what the rows' references give, whatever the addresses, sizes and units. */
#include <stdlib.h>
#include <string.h>

#include "move.h"
#include "shape.h"
#include "support.h"

enum { DRAWS = 300, SHIFTS = 8 };

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

/* --- calls with random operands --- */

static void set_attr(gx_attr *attr, int64_t value)
{
    attr->i = value;
    attr->present = true;
}

static gx_tensor random_tensor(test_random *random, int rank)
{
    gx_tensor t = { .dtype = test_random_int(random, 0, 1) ? GX_F32 : GX_BF16,
                    .rank = rank };

    /* sizes that allow wide units, and others */
    for (int i = 0; i < rank; i++)
        t.dim[i] = test_random_int(random, 0, 2)   ? test_random_int(random, 1, 5)
                   : test_random_int(random, 0, 9) ? 8
                                                   : 0;
    return t;
}

static gx_call start(const char *op)
{
    gx_call call = { .op = gx_op_find(op) };

    assert_non_null(call.op);
    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    return call;
}

/* Runs the reference on doubles that number the elements, and the move on elements of the
 * declared types with the same numbers at shifted addresses, and compares. */
static void compare(test_random *random, gx_call *call, int n_in, int out,
                    void (*plan)(const gx_call *, gx_move *))
{
    const size_t element = gx_dtype_bytes(call->arg[out].dtype);
    gx_call reference = *call;
    gx_error err = { 0 };
    uint32_t number = 1;
    gx_move move;

    for (int i = 0; i <= out; i++) {
        gx_tensor *t = &call->arg[i], *r = &reference.arg[i];
        char *data;

        if (t->rank < 0)
            continue;
        const int64_t n = gx_count(t);
        const size_t shift = (size_t)test_random_int(random, 0, SHIFTS - 1);

        r->dtype = GX_F64;
        r->data = calloc((size_t)n + 1, sizeof(double));
        data = aligned_alloc(64, ((size_t)n * element + 191) / 64 * 64);
        assert_true(data && r->data);
        t->data = data + (test_random_int(random, 0, 1) ? shift * element : 0);
        memset(data, 0xee, ((size_t)n * element + 191) / 64 * 64);
        for (int64_t k = 0; k < n && i < n_in; k++) {
            ((double *)r->data)[k] = number & 0xffff;
            memcpy((char *)t->data + (size_t)k * element,
                   element == 4 ? (const void *)&(uint32_t){ number & 0xffff }
                                : (const void *)&(uint16_t){ (uint16_t)number },
                   element);
            number++;
        }
    }
    assert_ok(reference.op->reference(&reference, &err), &err);
    plan(call, &move);
    walk(&move);
    assert_true(move.unit_bytes >= (int)element);

    const gx_tensor *got = &call->arg[out];
    const double *want = reference.arg[out].data;

    for (int64_t k = 0; k < gx_count(got); k++) {
        const char *at = (const char *)got->data + (size_t)k * element;
        const double value = element == 4 ? *(const uint32_t *)(const void *)at
                                          : *(const uint16_t *)(const void *)at;

        assert_true(value == want[k]);
    }
    /* nothing is written behind the end */
    assert_int_equal(((const unsigned char *)got->data)[(size_t)gx_count(got) * element],
                     0xee);
    for (int i = 0; i <= out; i++) {
        if (call->arg[i].rank < 0)
            continue;
        free((void *)((uintptr_t)call->arg[i].data / 64 * 64));
        free(reference.arg[i].data);
    }
}

static void transposes_are_strided_copies(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        gx_call call = start("transpose");
        const int rank = (int)test_random_int(&random, 1, 6);
        const gx_tensor x = random_tensor(&random, rank);
        gx_tensor out = x;
        int perm[GX_MAX_RANK];

        for (int i = 0; i < rank; i++)
            perm[i] = i;
        for (int i = rank - 1; i > 0; i--) {
            const int k = (int)test_random_int(&random, 0, i);
            const int kept = perm[i];

            perm[i] = perm[k];
            perm[k] = kept;
        }
        for (int i = 0; i < rank; i++) {
            set_attr(&call.attr[GX_TRANSPOSE_PERM + i], perm[i]);
            out.dim[i] = x.dim[perm[i]];
        }
        call.arg[GX_TRANSPOSE_X] = x;
        call.arg[GX_TRANSPOSE_OUT] = out;
        compare(&random, &call, 1, GX_TRANSPOSE_OUT, gx_move_transpose);
    }
}

/* Draws axis, start, stop and step for x, and gives the shape of the slice. */
static gx_tensor draw_slice(test_random *random, const gx_tensor *x, gx_attr *attr)
{
    const int axis = (int)test_random_int(random, 0, x->rank - 1);
    const int64_t begin = test_random_int(random, 0, x->dim[axis]);
    gx_tensor part = *x;

    set_attr(&attr[GX_SLICE_AXIS], axis);
    set_attr(&attr[GX_SLICE_START], begin);
    set_attr(&attr[GX_SLICE_STEP], test_random_int(random, 1, 4));
    if (test_random_int(random, 0, 1))
        set_attr(&attr[GX_SLICE_STOP], test_random_int(random, begin, x->dim[axis]));
    part.dim[axis] = gx_slice_range_of(x->rank, x->dim[axis], attr).count;
    return part;
}

static void slices_are_strided_copies(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        gx_call call = start("slice");
        const gx_tensor x = random_tensor(&random, (int)test_random_int(&random, 1, 4));

        call.arg[GX_SLICE_X] = x;
        call.arg[GX_SLICE_OUT] = draw_slice(&random, &x, call.attr);
        compare(&random, &call, 1, GX_SLICE_OUT, gx_move_slice);
    }
}

static void derivatives_of_slices_write_every_element(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        gx_call call = start("slice.bwd");
        const gx_tensor dx = random_tensor(&random, (int)test_random_int(&random, 1, 4));

        call.arg[GX_SLICE_BWD_DX] = dx;
        call.arg[GX_SLICE_BWD_DY] = draw_slice(&random, &dx, call.attr);
        compare(&random, &call, 1, GX_SLICE_BWD_DX, gx_move_slice_bwd);
    }
}

static void concats_are_strided_copies(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        gx_call call = start("concat");
        gx_tensor out = random_tensor(&random, (int)test_random_int(&random, 1, 4));
        const int axis = (int)test_random_int(&random, 0, out.rank - 1);
        const int n = (int)test_random_int(&random, 1, GX_CONCAT_MOST);
        int64_t sum = 0;

        set_attr(&call.attr[GX_CONCAT_AXIS], axis);
        for (int i = 0; i < n; i++) {
            call.arg[GX_CONCAT_X + i] = out;
            call.arg[GX_CONCAT_X + i].dim[axis] = test_random_int(&random, 0, 9);
            sum += call.arg[GX_CONCAT_X + i].dim[axis];
        }
        out.dim[axis] = sum;
        call.arg[GX_CONCAT_OUT] = out;
        compare(&random, &call, GX_CONCAT_MOST, GX_CONCAT_OUT, gx_move_concat);
    }
}

static void a_reshape_is_copied_where_it_is_no_view(void **state)
{
    test_random random = test_random_start(test_seed());
    gx_call call = start("reshape");
    float same[6] = { 0 };
    gx_move move;

    (void)state;
    call.arg[GX_RESHAPE_X] = (gx_tensor){ GX_F32, 2, { 2, 3 }, same };
    call.arg[GX_RESHAPE_OUT] = (gx_tensor){ GX_F32, 1, { 6 }, same };
    gx_move_reshape(&call, &move);
    assert_int_equal(move.n_parts, 0);
    compare(&random, &call, 1, GX_RESHAPE_OUT, gx_move_reshape);
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
        cmocka_unit_test(transposes_are_strided_copies),
        cmocka_unit_test(slices_are_strided_copies),
        cmocka_unit_test(derivatives_of_slices_write_every_element),
        cmocka_unit_test(concats_are_strided_copies),
        cmocka_unit_test(a_reshape_is_copied_where_it_is_no_view),
        cmocka_unit_test(units_are_as_wide_as_everything_allows),
        cmocka_unit_test(indexes_pass_2_to_the_31),
        cmocka_unit_test(division_is_exact),
    };

    return cmocka_run_group_tests_name("move", tests, NULL, NULL);
}
