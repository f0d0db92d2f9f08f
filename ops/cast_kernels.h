/* A tensor in another type. */
#ifndef GX_CAST_KERNELS_H
#define GX_CAST_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_cast {
    int64_t n; /* at least 1 */
    gx_dtype from_dtype, to_dtype;
    bool wide; /* both addresses allow four elements at once */
    const void *from;
    void *to;
} gx_cast;

gx_status gx_cast_load(const gx_cast *cast, gx_error *err) GX_MUST_CHECK;
gx_status gx_cast_launch(const gx_cast *cast, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
