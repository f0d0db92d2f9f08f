/* What the shape ops' references, derivatives and kernels share: fields made plain. */
#ifndef GX_SHAPE_H
#define GX_SHAPE_H

#include "ops.h"

/* The tolerance of rows that copy values: the bits are the same, and the catalogue has no
 * tolerance of 0 but for what gexec adds by itself. */
#define GX_MOVED 1e-12

/* The key of item `i` of a list field: "perm.0". */
void gx_item_key(char key[16], const char *name, int i);
/* False after a report: field `key` is an axis of `value`, which is field `of`. */
bool gx_expect_axis(gx_diagnostics *list, const gx_node *node, const char *key,
                    int64_t axis, const char *of, const gx_value *value);

/* A number as the text of a field, in the graph's arena. */
const char *gx_int_text(gx_builder *builder, int64_t value);

/* Which axis of x each axis of the result is: the last two swapped unless perm is given,
 * whose items count from the end where they are negative. */
void gx_transpose_perm(int rank, const gx_attr *given, int perm[GX_MAX_RANK]);

/* A slice of an axis that has been found to fit. */
typedef struct gx_slice_range {
    int axis;
    int64_t start, count, step;
} gx_slice_range;

/* `size`: of the axis; negative numbers count from the end. */
gx_slice_range gx_slice_range_of(int rank, int64_t size, const gx_attr *attr);

/* The axis that `axis` means, from the end where it is negative; -1: none. */
static inline int gx_axis_of(int64_t axis, int rank)
{
    const int64_t at = axis < 0 ? axis + rank : axis;

    return at >= 0 && at < rank ? (int)at : -1;
}

/* Elements of the axes [from, to). */
static inline int64_t gx_span_count(const int64_t *dim, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to; i++)
        n *= dim[i];
    return n;
}

#endif
