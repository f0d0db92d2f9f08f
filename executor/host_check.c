/* What a caller's tensor has to be to be copied from or to one of ours. */
#include <string.h>

#include "state.h"

gx_status gx_check_host(const char *name, gx_dtype dtype, int rank, const int64_t *dim,
                        const gx_tensor *host, bool any_float, gx_error *err)
{
    gx_tensor declared = { .rank = rank };
    char expected[128], found[128];

    if (!host)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the host tensor of '%s' is NULL", name);
    if (host->rank < 0 || host->rank > GX_MAX_RANK)
        return GX_FAIL(err, GX_ERR_SHAPE,
                       "'%s' has shape %s, the host tensor a rank of %d: 0 to %d is "
                       "expected",
                       name, gx_shape_text(rank, dim, expected, sizeof expected),
                       host->rank, (int)GX_MAX_RANK);
    memcpy(declared.dim, dim, sizeof declared.dim);
    if (!gx_same_shape(&declared, host))
        return GX_FAIL(err, GX_ERR_SHAPE, "'%s': expected shape %s, found %s", name,
                       gx_shape_text(rank, dim, expected, sizeof expected),
                       gx_shape_text(host->rank, host->dim, found, sizeof found));
    if (!host->data && gx_count(host) > 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the data of the host tensor of '%s' is NULL", name);
    if (host->dtype == dtype ||
        (any_float && (host->dtype == GX_F32 || host->dtype == GX_F64)))
        return GX_OK;
    const bool is_one_of_both = any_float && dtype == GX_F32;

    return GX_FAIL(err, GX_ERR_SHAPE, "'%s': expected %s%s, found %s", name,
                   is_one_of_both ? "f32 or f64" : gx_dtype_name(dtype),
                   any_float && !is_one_of_both ? ", f32 or f64" : "",
                   gx_dtype_name(host->dtype));
}
