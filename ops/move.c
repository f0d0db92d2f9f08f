/* Copies between strided places: axes made few, units made wide, tiles made large. */
#include "move.h"

#include "shape.h"

void gx_move_start(gx_move *move)
{
    *move = (gx_move){ .n_parts = 0 };
}

/* Leaves out sizes of 1, and makes one axis of two that go on in both places. */
static int collapse(int rank, const gx_move_axis *axis, gx_move_axis *kept)
{
    int n = 0;

    for (int i = 0; i < rank; i++) {
        gx_move_axis *last = n > 0 ? &kept[n - 1] : NULL;

        if (axis[i].size == 1)
            continue;
        if (last && last->from == axis[i].from * axis[i].size &&
            last->to == axis[i].to * axis[i].size) {
            last->size *= axis[i].size;
            last->from = axis[i].from;
            last->to = axis[i].to;
        } else {
            kept[n++] = axis[i];
        }
    }
    return n;
}

void gx_move_add(gx_move *move, const void *from, void *to, int rank,
                 const gx_move_axis *axis)
{
    gx_move_part part = { .from = from, .to = to, .n = 1 };
    gx_move_axis all[GX_MAX_RANK];

    for (int i = 0; i < rank; i++) {
        all[i] = axis[i];
        if (!from) /* zeros come from nowhere: only where they go counts */
            all[i].from = all[i].to;
        part.n *= axis[i].size;
    }
    if (part.n == 0)
        return;
    part.rank = collapse(rank, all, part.axis);
    move->part[move->n_parts++] = part;
}

/* --- units --- */

/* Whether every run, stride and address of the part is a whole number of units of k
 * elements. */
static bool allows(const gx_move_part *part, int64_t k, int64_t unit_bytes)
{
    if (k == 1)
        return true;
    if (part->rank == 0)
        return false;
    const gx_move_axis *last = &part->axis[part->rank - 1];

    if (last->from != 1 || last->to != 1 || last->size % k != 0)
        return false;
    for (int i = 0; i + 1 < part->rank; i++) {
        if (part->axis[i].from % k != 0 || part->axis[i].to % k != 0)
            return false;
    }
    return ((uintptr_t)part->from | (uintptr_t)part->to) % (uintptr_t)unit_bytes == 0;
}

static void set_divisor(gx_move_axis *axis)
{
    const uint64_t d = (uint64_t)axis->size;
    int shift = 0;

    while ((UINT64_C(1) << shift) < d)
        shift++;
    axis->shift = shift;
    axis->magic =
        (uint32_t)(((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - d)) / d + 1);
}

static void widen(gx_move_part *part, int64_t k, bool narrow)
{
    part->n /= k;
    for (int i = 0; k > 1 && i + 1 < part->rank; i++) {
        part->axis[i].from /= k;
        part->axis[i].to /= k;
    }
    if (k > 1)
        part->axis[part->rank - 1].size /= k;
    if (part->rank > 0 && part->axis[part->rank - 1].size == 1)
        part->rank--;
    for (int i = 0; narrow && i < part->rank; i++)
        set_divisor(&part->axis[i]);
}

void gx_move_finish(gx_move *move, gx_dtype dtype)
{
    enum { WIDEST = 16 };
    const int64_t element = (int64_t)gx_dtype_bytes(dtype);
    int64_t unit = WIDEST;

    for (int p = 0; p < move->n_parts; p++) {
        while (unit > element && !allows(&move->part[p], unit / element, unit))
            unit /= 2;
    }
    move->unit_bytes = (int32_t)unit;
    move->narrow = gx_move_units(move) / (unit / element) <= INT32_MAX;
    for (int p = 0; p < move->n_parts; p++)
        widen(&move->part[p], unit / element, move->narrow);
}

/* --- tiles --- */

/* Elements of 4 bytes from which the tiles that pairs make, four times as large, are
 * enough for every multiprocessor. Tiles of 2 bytes are small either way. */
enum { MANY = 1 << 20 };

static int64_t count_matrices(const gx_turn *turn)
{
    int64_t n = 1;

    for (int i = 0; i < turn->n_axes; i++)
        n *= turn->axis[i].size;
    return n;
}

/* Every row starts at a multiple of two elements. */
static bool allows_pairs(const gx_turn *turn)
{
    int64_t all = turn->rows | turn->columns | turn->row_from | turn->column_to;

    for (int i = 0; i < turn->n_axes; i++)
        all |= turn->axis[i].from | turn->axis[i].to;
    return all % 2 == 0 && ((uintptr_t)turn->from | (uintptr_t)turn->to) %
                                   (2 * (uintptr_t)turn->element_bytes) ==
                               0;
}

static int64_t tiles_of(int64_t size, int64_t edge)
{
    return size / edge + (size % edge != 0);
}

void gx_turn_finish(gx_turn *turn)
{
    const int64_t n_matrices = count_matrices(turn);
    const bool is_large = n_matrices * turn->rows * turn->columns >= MANY;

    turn->pairs = (turn->element_bytes == 2 || is_large) && allows_pairs(turn);
    turn->row_tiles = tiles_of(turn->rows, gx_turn_edge(turn));
    turn->column_tiles = tiles_of(turn->columns, gx_turn_edge(turn));
    turn->n_tiles = n_matrices * turn->row_tiles * turn->column_tiles;
}

/* --- what each op's call is --- */

/* `data` moved on by n elements; an absent operand stays absent. */
static void *at(const gx_tensor *tensor, int64_t n)
{
    return (char *)tensor->data + n * (int64_t)gx_dtype_bytes(tensor->dtype);
}

int gx_transpose_axes(const gx_call *call, gx_move_axis kept[GX_MAX_RANK])
{
    const gx_tensor *x = &call->arg[GX_TRANSPOSE_X], *out = &call->arg[GX_TRANSPOSE_OUT];
    gx_move_axis axis[GX_MAX_RANK];
    int perm[GX_MAX_RANK];

    gx_transpose_perm(x->rank, &call->attr[GX_TRANSPOSE_PERM], perm);
    for (int i = 0; i < x->rank; i++)
        axis[i] = gx_move_along(out->dim[i], gx_span_count(x->dim, perm[i] + 1, x->rank),
                                gx_span_count(out->dim, i + 1, out->rank));
    return collapse(x->rank, axis, kept);
}

void gx_move_transpose(const gx_call *call, gx_move *move)
{
    const gx_tensor *x = &call->arg[GX_TRANSPOSE_X], *out = &call->arg[GX_TRANSPOSE_OUT];
    gx_move_axis axis[GX_MAX_RANK];

    gx_move_start(move);
    if (gx_count(x) > 0)
        gx_move_add(move, x->data, out->data, gx_transpose_axes(call, axis), axis);
    gx_move_finish(move, x->dtype);
}

void gx_move_reshape(const gx_call *call, gx_move *move)
{
    const gx_tensor *x = &call->arg[GX_RESHAPE_X], *out = &call->arg[GX_RESHAPE_OUT];
    const gx_move_axis axis = gx_move_along(gx_count(out), 1, 1);

    gx_move_start(move);
    if (x->data != out->data)
        gx_move_add(move, x->data, out->data, 1, &axis);
    gx_move_finish(move, x->dtype);
}

/* A slice's whole tensor: [outer, size, inner]. */
typedef struct cut {
    int64_t outer, size, inner;
    gx_slice_range range;
} cut;

static cut cut_of(const gx_call *call, const gx_tensor *whole)
{
    const int axis = gx_axis_of(call->attr[GX_SLICE_AXIS].i, whole->rank);

    return (cut){
        .outer = gx_span_count(whole->dim, 0, axis),
        .size = whole->dim[axis],
        .inner = gx_span_count(whole->dim, axis + 1, whole->rank),
        .range = gx_slice_range_of(whole->rank, whole->dim[axis], call->attr),
    };
}

void gx_move_slice(const gx_call *call, gx_move *move)
{
    const gx_tensor *x = &call->arg[GX_SLICE_X], *out = &call->arg[GX_SLICE_OUT];
    const cut c = cut_of(call, x);
    const gx_move_axis axis[] = {
        gx_move_along(c.outer, c.size * c.inner, c.range.count * c.inner),
        gx_move_along(c.range.count, c.range.step * c.inner, c.inner),
        gx_move_along(c.inner, 1, 1),
    };

    gx_move_start(move);
    gx_move_add(move, at(x, c.range.start * c.inner), out->data, 3, axis);
    gx_move_finish(move, x->dtype);
}

/* Zeros for [from, to) of the axis. */
static void add_zeros(gx_move *move, const gx_tensor *dx, const cut *c, int64_t from,
                      int64_t to)
{
    const gx_move_axis axis[] = {
        gx_move_along(c->outer, 0, c->size * c->inner),
        gx_move_along((to - from) * c->inner, 0, 1),
    };

    gx_move_add(move, NULL, at(dx, from * c->inner), 2, axis);
}

/* dy, and zeros before it, between its elements, and behind it. */
void gx_move_slice_bwd(const gx_call *call, gx_move *move)
{
    const gx_tensor *dy = &call->arg[GX_SLICE_BWD_DY], *dx = &call->arg[GX_SLICE_BWD_DX];
    const cut c = cut_of(call, dx);
    const gx_slice_range r = c.range;
    const int64_t row = c.size * c.inner;
    const int64_t end = r.count > 0 ? r.start + (r.count - 1) * r.step + 1 : r.start;
    const gx_move_axis taken[] = {
        gx_move_along(c.outer, r.count * c.inner, row),
        gx_move_along(r.count, c.inner, r.step * c.inner),
        gx_move_along(c.inner, 1, 1),
    };
    const gx_move_axis between[] = {
        gx_move_along(c.outer, 0, row),
        gx_move_along(r.count > 0 ? r.count - 1 : 0, 0, r.step * c.inner),
        gx_move_along((r.step - 1) * c.inner, 0, 1),
    };

    gx_move_start(move);
    gx_move_add(move, dy->data, at(dx, r.start * c.inner), 3, taken);
    gx_move_add(move, NULL, at(dx, (r.start + 1) * c.inner), 3, between);
    add_zeros(move, dx, &c, 0, r.start);
    add_zeros(move, dx, &c, end, c.size);
    gx_move_finish(move, dx->dtype);
}

void gx_move_concat(const gx_call *call, gx_move *move)
{
    const gx_tensor *out = &call->arg[GX_CONCAT_OUT];
    const int axis = gx_axis_of(call->attr[GX_CONCAT_AXIS].i, out->rank);
    const int64_t outer = gx_span_count(out->dim, 0, axis);
    const int64_t row = gx_span_count(out->dim, axis, out->rank);
    int64_t start = 0;

    gx_move_start(move);
    for (int i = 0; i < GX_CONCAT_MOST && gx_has(call, GX_CONCAT_X + i); i++) {
        const gx_tensor *x = &call->arg[GX_CONCAT_X + i];
        const int64_t width = gx_span_count(x->dim, axis, x->rank);
        const gx_move_axis along[] = { gx_move_along(outer, width, row),
                                       gx_move_along(width, 1, 1) };

        gx_move_add(move, x->data, at(out, start), 2, along);
        start += width;
    }
    gx_move_finish(move, out->dtype);
}
