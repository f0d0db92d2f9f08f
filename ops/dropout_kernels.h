/* Dropout and its derivative. */
#ifndef GX_DROPOUT_KERNELS_H
#define GX_DROPOUT_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_dropout {
    int64_t n; /* at least 1 */
    gx_dtype dtype;
    bool wide; /* both addresses allow four elements at once */
    uint64_t key, bar;
    float scale;
    const int32_t *step;
    const void *x;
    void *out;
} gx_dropout;

gx_status gx_dropout_load(const gx_dropout *dropout, gx_error *err) GX_MUST_CHECK;
gx_status gx_dropout_launch(const gx_dropout *dropout, gx_ctx *ctx,
                            gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
