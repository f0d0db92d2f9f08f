/* Axes that an op works over, as a field of integers gives them. */
#ifndef GX_AXES_H
#define GX_AXES_H

#include "ops.h"

typedef struct gx_axes {
    unsigned mask; /* by dimension */
    bool keepdim;
} gx_axes;

/* Bits of the dimensions that a checked field names; none written is all of them. */
static inline unsigned gx_axes_mask(const gx_attr *attr, int rank)
{
    unsigned mask = 0;

    if (attr->i == 0)
        return (1u << rank) - 1;
    for (int64_t k = 0; rank > 0 && k < attr->i; k++)
        mask |= 1u << (attr->list[k] < 0 ? attr->list[k] + rank : attr->list[k]);
    return mask;
}

/* Elements along those dimensions. */
static inline int64_t gx_axes_count(unsigned mask, int rank, const int64_t *dim)
{
    int64_t n = 1;

    for (int i = 0; i < rank; i++)
        n *= mask >> i & 1 ? dim[i] : 1;
    return n;
}

/* A tensor as lines along one axis, `inner` elements from one to the next of a line. */
typedef struct gx_lines {
    int64_t outer, n, inner;
} gx_lines;

static inline gx_lines gx_lines_of(const gx_tensor *x, const gx_attr *axis)
{
    const unsigned mask = gx_axes_mask(axis, x->rank);
    gx_lines lines = { 1, 1, 1 };
    bool after = false;

    for (int i = 0; i < x->rank; i++) {
        if (mask >> i & 1) {
            lines.n = x->dim[i];
            after = true;
        } else if (after) {
            lines.inner *= x->dim[i];
        } else {
            lines.outer *= x->dim[i];
        }
    }
    return lines;
}

/* Reads the field "axis"; reports and returns false where it does not fit the shape. */
bool gx_expect_axes(gx_diagnostics *list, const gx_node *node, const gx_attr *attr,
                    bool keepdim, int rank, const int64_t *dim, gx_axes *axes);
/* Reports and returns false where there is nothing along the axes and yet an output: a
 * mean, or maximum, of nothing. */
bool gx_expect_elements(gx_diagnostics *list, const gx_node *node, const char *what,
                        int rank, const int64_t *dim, const gx_axes *axes);
/* Reports and returns false where the field "shape" is not a shape. */
bool gx_expect_sizes(gx_diagnostics *list, const gx_node *node, const gx_attr *attr);
/* The shape without the axes; returns its rank. */
int gx_axes_out(const gx_axes *axes, int rank, const int64_t *dim,
                int64_t out[GX_MAX_RANK]);

#endif
