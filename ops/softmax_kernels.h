/* Softmax along lines of a tensor, and its derivative. */
#ifndef GX_SOFTMAX_KERNELS_H
#define GX_SOFTMAX_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forward: out = softmax(x). Backward (dy given): out = x (dy - sum of x dy), x being
 * what the forward pass made. Lines have n elements, `inner` apart; sizes are at least 1.
 */
typedef struct gx_softmax {
    int64_t outer, n, inner;
    gx_dtype dtype;
    bool wide; /* inner is 1, and every line allows 16 bytes at once */
    const void *x, *dy;
    void *out;
} gx_softmax;

gx_status gx_softmax_load(const gx_softmax *softmax, gx_error *err) GX_MUST_CHECK;
gx_status gx_softmax_launch(const gx_softmax *softmax, gx_ctx *ctx,
                            gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
