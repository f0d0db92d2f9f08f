/* Checks of axes and shapes that are given as fields. */
#include "axes.h"

#include "infer.h"
#include "shape.h"

bool gx_expect_axes(gx_diagnostics *list, const gx_node *node, const gx_attr *attr,
                    bool keepdim, int rank, const int64_t *dim, gx_axes *axes)
{
    /* As in PyTorch a scalar may be counted as one dimension. */
    const int64_t most = rank > 0 ? rank : 1;
    unsigned seen = 0;
    char shape[128];

    for (int64_t k = 0; k < attr->i; k++) {
        const int64_t axis = attr->list[k] < 0 ? attr->list[k] + most : attr->list[k];
        char key[16];

        gx_item_key(key, "axis", (int)k);
        if (axis < 0 || axis >= most) {
            gx_misfit(list, node, key, "axis %lld of shape %s, expected %lld to %lld",
                      (long long)attr->list[k],
                      gx_shape_text(rank, dim, shape, sizeof shape), (long long)-most,
                      (long long)most - 1);
            return false;
        }
        if (seen >> axis & 1) {
            gx_misfit(list, node, key, "axis %lld stands twice", (long long)axis);
            return false;
        }
        seen |= 1u << axis;
    }
    *axes = (gx_axes){ gx_axes_mask(attr, rank), keepdim };
    return true;
}

bool gx_expect_elements(gx_diagnostics *list, const gx_node *node, const char *what,
                        int rank, const int64_t *dim, const gx_axes *axes)
{
    const unsigned others = ~axes->mask;

    if (gx_axes_count(axes->mask, rank, dim) > 0 || gx_axes_count(others, rank, dim) == 0)
        return true;
    gx_misfit(list, node, "x", "a %s of no elements has no value", what);
    return false;
}

bool gx_expect_sizes(gx_diagnostics *list, const gx_node *node, const gx_attr *attr)
{
    int64_t n = 1;

    for (int64_t k = 0; k < attr->i; k++) {
        const int64_t size = attr->list[k];
        char key[16];

        gx_item_key(key, "shape", (int)k);
        if (size < 0) {
            gx_misfit(list, node, key, "size %lld is %lld, expected 0 or more",
                      (long long)k, (long long)size);
            return false;
        }
        if (size > 0 && n > GX_LIMIT_ELEMENTS / size) {
            gx_misfit(list, node, key, "a tensor has at most %lld elements",
                      (long long)GX_LIMIT_ELEMENTS);
            return false;
        }
        n *= size;
    }
    return true;
}

int gx_axes_out(const gx_axes *axes, int rank, const int64_t *dim,
                int64_t out[GX_MAX_RANK])
{
    int n = 0;

    for (int i = 0; i < rank; i++) {
        if (!(axes->mask >> i & 1))
            out[n++] = dim[i];
        else if (axes->keepdim)
            out[n++] = 1;
    }
    return n;
}
