/* Random calls of the ops that move elements. */
#include "support_moves.h"

#include <stdlib.h>
#include <string.h>

#include "shape.h"

const char *const test_moves[] = { "transpose", "reshape", "slice",
                                   "slice.bwd", "concat",  NULL };

static void set_attr(gx_attr *attr, int64_t value)
{
    attr->i = value;
    attr->present = true;
}

/* Sizes that allow wide units, others, and now and then none. */
static int64_t draw_size(test_random *random, int64_t most)
{
    switch (test_random_int(random, 0, 5)) {
    case 0:
        return 8 * test_random_int(random, 1, most / 8 > 0 ? most / 8 : 1);
    case 1:
        return test_random_int(random, 0, 3) ? 1 : 0;
    case 2:
        return test_random_int(random, 1, most);
    default:
        return test_random_int(random, 1, most < 5 ? most : 5);
    }
}

static gx_tensor draw_tensor(test_random *random, int most_rank, int64_t most)
{
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_I32 };
    gx_tensor t = { .dtype = types[test_random_int(random, 0, 2)],
                    .rank = (int)test_random_int(random, 1, most_rank) };

    for (int i = 0; i < t.rank; i++)
        t.dim[i] = draw_size(random, most);
    return t;
}

static int draw_transpose(test_random *random, int64_t most, gx_call *call)
{
    const gx_tensor x = draw_tensor(random, 6, most);
    static int64_t perm[GX_MAX_RANK];
    gx_tensor out = x;

    for (int i = 0; i < x.rank; i++)
        perm[i] = i;
    for (int i = x.rank - 1; i > 0; i--) {
        const int k = (int)test_random_int(random, 0, i);
        const int64_t kept = perm[i];

        perm[i] = perm[k];
        perm[k] = kept;
    }
    for (int i = 0; i < x.rank; i++)
        out.dim[i] = x.dim[perm[i]];
    set_attr(&call->attr[GX_TRANSPOSE_PERM], x.rank);
    call->attr[GX_TRANSPOSE_PERM].list = perm;
    call->arg[GX_TRANSPOSE_X] = x;
    call->arg[GX_TRANSPOSE_OUT] = out;
    return GX_TRANSPOSE_OUT;
}

static int draw_reshape(test_random *random, int64_t most, gx_call *call)
{
    gx_tensor out = { .rank = 1 };

    call->arg[GX_RESHAPE_X] = draw_tensor(random, 4, most);
    out.dtype = call->arg[GX_RESHAPE_X].dtype;
    out.dim[0] = gx_count(&call->arg[GX_RESHAPE_X]);
    call->arg[GX_RESHAPE_OUT] = out;
    return GX_RESHAPE_OUT;
}

/* Axis, start, stop and step for `whole`; gives the shape of the part. */
static gx_tensor draw_slice(test_random *random, const gx_tensor *whole, gx_attr *attr)
{
    const int axis = (int)test_random_int(random, 0, whole->rank - 1);
    const int64_t size = whole->dim[axis], start = test_random_int(random, 0, size);
    gx_tensor part = *whole;

    set_attr(&attr[GX_SLICE_AXIS], axis);
    set_attr(&attr[GX_SLICE_START], start);
    set_attr(&attr[GX_SLICE_STEP],
             test_random_int(random, 0, 1) ? 1 : test_random_int(random, 1, 4));
    if (test_random_int(random, 0, 1))
        set_attr(&attr[GX_SLICE_STOP], test_random_int(random, start, size));
    part.dim[axis] = gx_slice_range_of(whole->rank, size, attr).count;
    return part;
}

static int draw_concat(test_random *random, int64_t most, gx_call *call)
{
    gx_tensor out = draw_tensor(random, 4, most);
    const int axis = (int)test_random_int(random, 0, out.rank - 1);
    const int n = (int)test_random_int(random, 1, GX_CONCAT_MOST);
    int64_t sum = 0;

    set_attr(&call->attr[GX_CONCAT_AXIS], axis);
    for (int i = 0; i < n; i++) {
        call->arg[GX_CONCAT_X + i] = out;
        call->arg[GX_CONCAT_X + i].dim[axis] = draw_size(random, most);
        sum += call->arg[GX_CONCAT_X + i].dim[axis];
    }
    out.dim[axis] = sum;
    call->arg[GX_CONCAT_OUT] = out;
    return GX_CONCAT_OUT;
}

int test_move_draw(test_random *random, const char *op, int64_t most, gx_call *call)
{
    *call = (gx_call){ .op = gx_op_find(op), .name = op };
    assert_non_null(call->op);
    for (int i = 0; i < GX_MAX_ARGS; i++)
        call->arg[i].rank = -1;
    if (strcmp(op, "transpose") == 0)
        return draw_transpose(random, most, call);
    if (strcmp(op, "reshape") == 0)
        return draw_reshape(random, most, call);
    if (strcmp(op, "concat") == 0)
        return draw_concat(random, most, call);

    const gx_tensor whole = draw_tensor(random, 4, most);
    const gx_tensor part = draw_slice(random, &whole, call->attr);
    const bool back = strcmp(op, "slice.bwd") == 0;

    call->arg[GX_SLICE_X] = back ? part : whole;
    call->arg[GX_SLICE_OUT] = back ? whole : part;
    return GX_SLICE_OUT;
}

uint16_t test_move_mark(int i, int64_t k)
{
    return (uint16_t)(1 + (k + 7919 * i) % 65521);
}

double *test_move_expected(const gx_call *call, int out)
{
    gx_call reference = *call;
    gx_error err = { 0 };

    for (int i = 0; i <= out; i++) {
        gx_tensor *t = &reference.arg[i];

        if (t->rank < 0)
            continue;
        const int64_t n = gx_count(t);

        t->dtype = GX_F64;
        t->data = calloc((size_t)n + 1, sizeof(double));
        assert_non_null(t->data);
        for (int64_t k = 0; k < n && i < out; k++)
            ((double *)t->data)[k] = test_move_mark(i, k);
    }
    assert_ok(reference.op->reference(&reference, &err), &err);
    for (int i = 0; i < out; i++)
        free(reference.arg[i].rank >= 0 ? reference.arg[i].data : NULL);
    return reference.arg[out].data;
}
