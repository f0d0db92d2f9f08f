/* The losses of an element, for every kernel that has one. */
#ifndef GX_POINTWISE_LOSS_CUH
#define GX_POINTWISE_LOSS_CUH

#include "kernel.cuh"
#include "pointwise_loss_kernels.h"

/* The loss of one element; `slope` gets its derivative. For bce nothing overflows, and
 * nothing cancels where the target is 0 or 1. */
static __device__ __forceinline__ float gx_point(gx_pointwise_kind kind, float x,
                                                 float target, float *slope)
{
    if (kind == GX_POINT_BCE) {
        const float e = expf(-fabsf(x)), rest = e * gx_reciprocal(1.0f + e);

        *slope = x > 0.0f ? (1.0f - target) - rest : rest - target;
        return (x > 0.0f ? x * (1.0f - target) : -x * target) + log1pf(e);
    }
    const float d = x - target;

    if (kind == GX_POINT_L1) {
        *slope = (float)((d > 0.0f) - (d < 0.0f));
        return fabsf(d);
    }
    *slope = 2.0f * d;
    return d * d;
}

#endif
