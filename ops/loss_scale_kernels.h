/* What stands between the norm of scaled gradients and the updates, by one warp. */
#ifndef GX_LOSS_SCALE_KERNELS_H
#define GX_LOSS_SCALE_KERNELS_H

#include "cuda_call.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: not there, or not asked for. */
typedef struct gx_loss_scale {
    const float *norm;
    const int32_t *step;
    float *scale;
    int32_t *skipped, *tracker;
    float *factor, *out, *used, *count;
    int32_t *update;
    double max_norm; /* infinite: gradients are not clipped */
    double growth, backoff;
    int32_t interval, accumulate;
} gx_loss_scale;

gx_status gx_loss_scale_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_loss_scale_launch(const gx_loss_scale *scale, gx_ctx *ctx,
                               gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
