/* Tensors on the host: made to fit a value of a graph, read, summed up. */
#include "host_tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gx_status gx_host_tensor_alloc(gx_tensor *tensor, gx_error *err)
{
    const size_t bytes = (size_t)gx_count(tensor) * gx_dtype_bytes(tensor->dtype);

    tensor->data = malloc(bytes ? bytes : 1);
    if (!tensor->data)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory: %zu bytes for a tensor",
                       bytes);
    return GX_OK;
}

gx_status gx_host_tensor_read(gx_exec *exec, const gx_value_info *value, gx_dtype dtype,
                              gx_tensor *tensor, gx_error *err)
{
    gx_status st;

    *tensor = (gx_tensor){ .dtype = dtype == GX_N_DTYPES ? value->dtype : dtype,
                           .rank = value->rank };
    memcpy(tensor->dim, value->dim, sizeof tensor->dim);
    GX_TRY(gx_host_tensor_alloc(tensor, err));
    st = gx_exec_read(exec, value->name, tensor, err);
    if (st != GX_OK) {
        free(tensor->data);
        tensor->data = NULL;
    }
    return st;
}

double gx_host_tensor_at(const gx_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case GX_F32:
        return ((const float *)tensor->data)[i];
    case GX_F64:
        return ((const double *)tensor->data)[i];
    case GX_I32:
        return ((const int32_t *)tensor->data)[i];
    case GX_BF16:
        return gx_bf16_to_float(((const uint16_t *)tensor->data)[i]);
    case GX_F16:
        return gx_f16_to_float(((const uint16_t *)tensor->data)[i]);
    case GX_N_DTYPES:
        break;
    }
    return NAN;
}

gx_tensor_summary gx_host_tensor_summary(const gx_tensor *tensor)
{
    gx_tensor_summary summary = { NAN, NAN, NAN, 0 };
    const int64_t n = gx_count(tensor);
    int64_t n_finite = 0;
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double value = gx_host_tensor_at(tensor, i);

        if (!isfinite(value)) {
            summary.n_bad++;
            continue;
        }
        summary.least = n_finite ? fmin(summary.least, value) : value;
        summary.most = n_finite ? fmax(summary.most, value) : value;
        sum += value;
        n_finite++;
    }
    if (n_finite)
        summary.mean = sum / (double)n_finite;
    return summary;
}
