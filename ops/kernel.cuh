/* What kernels share: how they begin, types, vectors, sums over a block in a fixed order.
 */
#ifndef GX_KERNEL_CUH
#define GX_KERNEL_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "cuda_call.h"
#include "launch.h"
#include "target.cuh"
#if GX_TEST_DELAYS
#include "delay.cuh"
#endif

/* Where tests are to make a warp late. */
static __device__ __forceinline__ void gx_may_delay()
{
#if GX_TEST_DELAYS
    gx_delay();
#endif
}

/* The first statement of every kernel. Nothing is read before the wait, since whatever
 * ran before may have written it, but for operands that are `steady` (gx_group): a kernel
 * may load those ahead. Only behind the wait may the next kernel be brought in. */
static __device__ __forceinline__ void gx_begin_kernel()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    gx_may_delay();
}

/* Ahead of gx_begin_kernel: addresses are found before the wait, which is time that
 * nobody misses. The assembler moves the wait ahead of them unless a branch that hangs on
 * them, and that is never taken, holds it. */
template <typename... AT> static __device__ __forceinline__ void gx_find_ahead(AT *...at)
{
    if (((size_t)at | ...) == 0)
        gx_end_thread();
}

/* The thread's warp of the block, of which the compiler knows that the warp agrees on it:
 * behind a branch of which it does not know that, every access to memory takes more
 * instructions. All of the warp has to call it. */
static __device__ __forceinline__ unsigned gx_warp_of_block()
{
    return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
}

static __device__ __forceinline__ float gx_to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float gx_to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ __forceinline__ float gx_to_float(__half x)
{
    return __half2float(x);
}

static __device__ __forceinline__ void gx_store(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void gx_store(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

static __device__ __forceinline__ void gx_store(__half *to, float x)
{
    *to = __float2half_rn(x);
}

/* Elements of a vector as wide as a load can be. */
template <typename T> constexpr int gx_widest = 16 / (int)sizeof(T);

static inline int gx_widest_of(gx_dtype dtype)
{
    return 16 / (int)gx_dtype_bytes(dtype);
}

/* Calls f with a gx_type of what the elements of a tensor are: how a launcher comes from
 * a type in a table to the instance of its kernel. */
template <typename T> struct gx_type {
    using type = T;
};

template <typename F> static inline auto gx_with_type(gx_dtype dtype, F f)
{
    switch (dtype) {
    case GX_BF16:
        return f(gx_type<__nv_bfloat16>());
    case GX_F16:
        return f(gx_type<__half>());
    default:
        return f(gx_type<float>());
    }
}

/* N elements that are read and written at once; their address is a multiple of their
 * size. */
template <typename T, int N> struct alignas(sizeof(T) * N) gx_vector {
    T at[N];
};

template <int N, typename T>
static __device__ __forceinline__ gx_vector<T, N> gx_vector_at(const T *from)
{
    return *reinterpret_cast<const gx_vector<T, N> *>(from);
}

/* A pair of bf16 is two instructions: by itself the upper one would be moved down first.
 */
template <typename T, int N>
static __device__ __forceinline__ void gx_to_floats(float (&to)[N],
                                                    const gx_vector<T, N> &v)
{
    if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) {
        uint32_t pair[N / 2];

        memcpy(pair, &v, sizeof pair);
#pragma unroll
        for (int i = 0; i < N; i++)
            to[i] = __uint_as_float(i % 2 == 0 ? pair[i / 2] << 16
                                               : pair[i / 2] & 0xffff0000u);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            to[i] = gx_to_float(v.at[i]);
    }
}

template <typename T, int N>
static __device__ __forceinline__ void gx_load_vector(float (&to)[N], const T *from)
{
    const gx_vector<T, N> v = gx_vector_at<N>(from);

#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = gx_to_float(v.at[i]);
}

template <typename T, int N>
static __device__ __forceinline__ void gx_store_vector(T *to, const float (&from)[N])
{
    gx_vector<T, N> v;

#pragma unroll
    for (int i = 0; i < N; i++)
        gx_store(&v.at[i], from[i]);
    *reinterpret_cast<gx_vector<T, N> *>(to) = v;
}

/* The same of 16 bytes, in one instruction: where rows are loaded ahead the compiler
 * makes a store of each element. */
template <typename T, int N>
static __device__ __forceinline__ void gx_store_widest(T *to, const float (&from)[N])
{
    gx_vector<T, N> v;
    uint4 bits;

    static_assert(sizeof v == sizeof bits, "16 bytes");
#pragma unroll
    for (int i = 0; i < N; i++)
        gx_store(&v.at[i], from[i]);
    memcpy(&bits, &v, sizeof bits);
    gx_store_16(to, bits);
}

/* --- activations --- */

/* The logistic function of x, and of -x in `rest`: 1 - s would cancel. */
static __device__ __forceinline__ float gx_logistic(float x, float *rest)
{
    const float e = expf(-fabsf(x)), large = gx_reciprocal(1.0f + e), small = e * large;

    *rest = x < 0.0f ? large : small;
    return x < 0.0f ? small : large;
}

/* GELU in its tanh form is x s(2u) with the logistic function s, since
 * (1 + tanh u) / 2 = s(2u); written so, the tails keep their digits. */
static __device__ __forceinline__ float gx_gelu_gate(float x)
{
    const float c0 = 0.7978845608028654f, c1 = 0.044715f;

    return gx_reciprocal(1.0f + expf(-2.0f * c0 * x * (1.0f + c1 * x * x)));
}

/* x, no further from 0 than `most`; NaN stays. Selects: a slope that returned early
 * beyond would be two branches for each element. */
static __device__ __forceinline__ float gx_within(float x, float most)
{
    x = x > most ? most : x;
    return x < -most ? -most : x;
}

static __device__ __forceinline__ float gx_gelu_slope(float x)
{
    const float c0 = 0.7978845608028654f, c1 = 0.044715f;
    float rest;

    /* From here on the gate is 0 or 1 to the last bit, and its slope times x^3 is 0. */
    x = gx_within(x, 20.0f);
    const float s = gx_logistic(2.0f * c0 * x * (1.0f + c1 * x * x), &rest);

    return s * (1.0f + 2.0f * x * rest * c0 * (1.0f + 3.0f * c1 * x * x));
}

/* The share of a normal distribution below x: 1 + erf would cancel where x is far below
 * zero. */
static __device__ __forceinline__ float gx_normal_share(float x)
{
    return 0.5f * erfcf(-0.7071067811865476f * x);
}

static __device__ __forceinline__ float gx_gelu_erf_slope(float x)
{
    /* From here on the density is 0 in f32, and x times it is. */
    x = gx_within(x, 20.0f);
    return gx_normal_share(x) + x * 0.3989422804014327f * expf(-0.5f * x * x);
}

static __device__ __forceinline__ float gx_sigmoid(float x)
{
    return gx_reciprocal(1.0f + expf(-x));
}

static __device__ __forceinline__ float gx_silu_slope(float x)
{
    float rest;

    /* From here on the gate is 0, or 1 and its slope times x is 0. */
    x = gx_within(x, 110.0f);
    const float s = gx_logistic(x, &rest);

    return s * (1.0f + x * rest);
}

/* Near 0 the polynomial that meets (tanh(x) / x - 1) / x^2 at the Chebyshev points of
 * x^2, and beyond 1 - 2 / (1 + exp(2 |x|)), within 5 times 2^-24. Both are made and one
 * is selected: of branches a warp would mostly take both, one element after the other. */
static __device__ __forceinline__ float gx_tanh(float x)
{
    const float square = x * x;
    float p = -0.0066157467f;

    p = fmaf(p, square, 0.02131274f);
    p = fmaf(p, square, -0.053910065f);
    p = fmaf(p, square, 0.13333118f);
    p = fmaf(p, square, -0.3333333135f);
    const float far = 1.0f - 2.0f * gx_reciprocal(1.0f + expf(2.0f * fabsf(x)));

    return copysignf(fabsf(x) < 0.55f ? fmaf(p, square * x, x) : far, x);
}

static __device__ __forceinline__ float gx_apply_act(int act, float x)
{
    switch (act) {
    case GX_ACT_RELU:
        return x > 0.0f || x != x ? x : 0.0f; /* NaN stays */
    case GX_ACT_GELU_TANH:
        return x * gx_gelu_gate(x);
    case GX_ACT_GELU_ERF:
        return x * gx_normal_share(x);
    case GX_ACT_SILU:
        return x * gx_sigmoid(x);
    case GX_ACT_TANH:
        return gx_tanh(x);
    case GX_ACT_SIGMOID:
        return gx_sigmoid(x);
    default:
        return x;
    }
}

/* `saved` is y or pre, as GX_ACT_LIST says. relu selects and does not multiply: an
 * infinite dy where y is 0 gives 0. */
static __device__ __forceinline__ float gx_act_backward(int act, float dy, float saved)
{
    switch (act) {
    case GX_ACT_RELU:
        return saved > 0.0f ? dy : 0.0f;
    case GX_ACT_GELU_TANH:
        return dy * gx_gelu_slope(saved);
    case GX_ACT_GELU_ERF:
        return dy * gx_gelu_erf_slope(saved);
    case GX_ACT_SILU:
        return dy * gx_silu_slope(saved);
    case GX_ACT_TANH:
        return dy * (1.0f - saved * saved);
    case GX_ACT_SIGMOID:
        return dy * saved * (1.0f - saved);
    default:
        return dy;
    }
}

/* --- sums --- */

static __device__ __forceinline__ float gx_warp_sum(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ double gx_warp_sum(double x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Every thread of the block gives x; thread 0 gets the sum, always in the same order. The
 * block is whole warps, at most 32; `shared` holds 32. */
static __device__ __forceinline__ double gx_block_sum(double x, double *shared)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

    x = gx_warp_sum(x);
    __syncthreads();
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    if (warp == 0)
        x = gx_warp_sum(lane < n_warps ? shared[lane] : 0.0);
    return x;
}

/* Blocks for n threads of work, at most `most`: kernels stride over the rest. */
static inline unsigned gx_grid_for(int64_t n, int64_t per_block, int64_t most)
{
    const int64_t blocks = gx_divide_up(n, per_block);

    return (unsigned)(blocks < most ? blocks : most);
}

#endif
