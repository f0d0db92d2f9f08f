/* Tensors on the host: made to fit a value of a graph, read, summed up. */
#ifndef GX_HOST_TENSOR_H
#define GX_HOST_TENSOR_H

#include <gexec/gexec.h>

/* Gives `tensor`, whose type and shape are set, memory of its own; at least one byte. */
gx_status gx_host_tensor_alloc(gx_tensor *tensor, gx_error *err) GX_MUST_CHECK;

/* Reads a value from an exec into a new tensor: `dtype` GX_N_DTYPES means the declared
 * type. tensor->data is the caller's; NULL on failure. */
gx_status gx_host_tensor_read(gx_exec *exec, const gx_value_info *value, gx_dtype dtype,
                              gx_tensor *tensor, gx_error *err) GX_MUST_CHECK;

/* Element i as a number, whatever the type. */
double gx_host_tensor_at(const gx_tensor *tensor, int64_t i);

typedef struct gx_tensor_summary {
    double mean, least, most; /* of the finite elements */
    int64_t n_bad;            /* NaN and infinities */
} gx_tensor_summary;
gx_tensor_summary gx_host_tensor_summary(const gx_tensor *tensor);

#endif
