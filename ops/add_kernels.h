/* Sums of two tensors. */
#ifndef GX_ADD_KERNELS_H
#define GX_ADD_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_add {
    int64_t n; /* at least 1 */
    gx_dtype dtype;
    bool wide; /* every pointer is a multiple of 16 */
    const void *a, *b;
    void *out;
} gx_add;

gx_status gx_add_load(const gx_add *add, gx_error *err) GX_MUST_CHECK;
gx_status gx_add_launch(const gx_add *add, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
