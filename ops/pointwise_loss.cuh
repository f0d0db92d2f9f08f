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

/* N elements, in loads of 16 bytes. They leave the cache first: nothing reads them again
 * soon, while the derivative is what is read next. */
template <typename T, int N> struct gx_elements {
    static constexpr int EACH = gx_widest<T>;
    uint4 piece[N / EACH];

    __device__ __forceinline__ void load(const T *from)
    {
#pragma unroll
        for (int p = 0; p < N / EACH; p++)
            piece[p] = __ldcs(reinterpret_cast<const uint4 *>(from + p * EACH));
    }
    __device__ __forceinline__ void unpack(float (&to)[N]) const
    {
#pragma unroll
        for (int p = 0; p < N / EACH; p++) {
            gx_vector<T, EACH> v;
            float some[EACH];

            memcpy(&v, &piece[p], sizeof v);
            gx_to_floats(some, v);
#pragma unroll
            for (int e = 0; e < EACH; e++)
                to[p * EACH + e] = some[e];
        }
    }
};

#endif
