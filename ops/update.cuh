/* The update of an element by an optimizer, and how what is updated is read and written.
 */
#ifndef GX_UPDATE_CUH
#define GX_UPDATE_CUH

#include <string.h>
#include <type_traits>

#include "kernel.cuh"
#include "optimizer_kernels.h"

namespace
{

/* What the elements of a group share: the factor that shrinks a parameter, the rate
 * (adam: corrected), and one over the root of the second correction. */
struct factors {
    float keep, rate, root;
};

/* 1 - beta^t. Not as a power: that would lose most of its digits at the first steps. */
__device__ __forceinline__ float correction(int64_t done, double log_beta)
{
    return -expm1f((float)(((double)done + 1.0) * log_beta));
}

template <int RULE>
__device__ __forceinline__ factors factors_of(const gx_update_settings &s, int64_t done,
                                              float lr)
{
    if constexpr (RULE == GX_UPDATE_ADAM)
        return { (float)(1.0 - (double)lr * s.shrink), lr / correction(done, s.log_beta1),
                 1.0f / sqrtf(correction(done, s.log_beta2)) };
    else
        return { 1.0f, lr, 1.0f };
}

/* What does not change from element to element. */
struct moment {
    float scale;
    bool first; /* no update stands behind */
};

/* Each operation is rounded by itself or fused by name, so that an element's bits do not
 * hang on which of the kernel's loops it is in. */
template <int RULE>
__device__ __forceinline__ void update(float &p, float g, float &m, float &v,
                                       const gx_update_settings &s, const factors &f,
                                       const moment &now)
{
    g = __fmul_rn(g, now.scale); /* so that a scale of 1 changes nothing */
    if (RULE != GX_UPDATE_ADAM || s.decay > 0.0f)
        g = __fmaf_rn(s.decay, p, g);
    if constexpr (RULE == GX_UPDATE_SGD) {
        p = __fmaf_rn(-f.rate, g, p);
    } else if constexpr (RULE == GX_UPDATE_MOMENTUM) {
        m = now.first ? g : __fmaf_rn(s.keep2, m, __fmul_rn(s.take1, g));
        p = __fmaf_rn(-f.rate, s.nesterov ? __fmaf_rn(s.keep2, m, g) : m, p);
    } else {
        m = __fmaf_rn(s.take1, __fsub_rn(g, m), m);
        v = __fmaf_rn(s.keep2, v, __fmul_rn(__fmul_rn(s.take2, g), g));
        const float size = __fmaf_rn(gx_root(v), f.root, s.eps);

        p = __fmaf_rn(f.keep, p, -__fmul_rn(__fmul_rn(f.rate, m), gx_reciprocal(size)));
    }
}

/* --- elements as they lie in memory --- */

template <int BYTES>
using bits_of_size =
    std::conditional_t<BYTES == 2, unsigned short,
                       std::conditional_t<BYTES == 4, unsigned,
                                          std::conditional_t<BYTES == 8, uint2, uint4>>>;
template <typename T, int N> using bits_of = bits_of_size<(int)sizeof(T) * N>;

template <typename T, int N>
__device__ __forceinline__ bits_of<T, N> pack(const float (&from)[N])
{
    gx_vector<T, N> v;
    bits_of<T, N> bits;

#pragma unroll
    for (int x = 0; x < N; x++)
        gx_store(&v.at[x], from[x]);
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Moments and masters are wanted again by the next step's update alone: they leave the
 * cache first, so that parameters, which the next forward pass reads, stay. */
template <typename T, int N>
__device__ __forceinline__ void store_away(T *to, const float (&from)[N])
{
    __stcs(reinterpret_cast<bits_of<T, N> *>(to), pack<T>(from));
}

template <int N, typename T>
__device__ __forceinline__ bits_of<T, N> load_bits(const T *from)
{
    return *reinterpret_cast<const bits_of<T, N> *>(from);
}

template <int N, typename T>
__device__ __forceinline__ bits_of<T, N> load_bits_away(const T *from)
{
    return __ldcs(reinterpret_cast<const bits_of<T, N> *>(from));
}

template <typename T, int N>
__device__ __forceinline__ void unpack(float (&to)[N], const bits_of<T, N> &bits)
{
    gx_vector<T, N> v;

    memcpy(&v, &bits, sizeof v);
    gx_to_floats(to, v);
}

} // namespace

#endif
