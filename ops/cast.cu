/* Casts, four elements a thread where the addresses allow it. */
#include "cast_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256;

template <typename T, typename F> __device__ __forceinline__ T convert(F x)
{
    return (T)gx_to_float(x);
}

template <> __device__ __forceinline__ int32_t convert<int32_t, int32_t>(int32_t x)
{
    return x;
}

template <> __device__ __forceinline__ float convert<float, int32_t>(int32_t x)
{
    return __int2float_rn(x);
}

/* By way of double, which holds every integer: by way of float it would be rounded twice.
 */
template <>
__device__ __forceinline__ __nv_bfloat16 convert<__nv_bfloat16, int32_t>(int32_t x)
{
    return __double2bfloat16((double)x);
}

template <>
__device__ __forceinline__ __nv_bfloat16
convert<__nv_bfloat16, __nv_bfloat16>(__nv_bfloat16 x)
{
    return x;
}

template <>
__device__ __forceinline__ __nv_bfloat16 convert<__nv_bfloat16, float>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Towards zero, kept within the range, NaN to 0. */
template <> __device__ __forceinline__ int32_t convert<int32_t, float>(float x)
{
    return __float2int_rz(x);
}

template <>
__device__ __forceinline__ int32_t convert<int32_t, __nv_bfloat16>(__nv_bfloat16 x)
{
    return __float2int_rz(__bfloat162float(x));
}

template <typename T, typename F, int N>
__global__ void __launch_bounds__(THREADS) cast_kernel(const __grid_constant__ gx_cast g)
{
    gx_begin_kernel();
    const F *from = static_cast<const F *>(g.from);
    T *to = static_cast<T *>(g.to);
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * THREADS;
    const int64_t in_vectors = g.n / N * N;

    for (int64_t i = first * N; i < in_vectors; i += threads * N) {
        const gx_vector<F, N> x = *reinterpret_cast<const gx_vector<F, N> *>(from + i);
        gx_vector<T, N> y;

#pragma unroll
        for (int e = 0; e < N; e++)
            y.at[e] = convert<T, F>(x.at[e]);
        *reinterpret_cast<gx_vector<T, N> *>(to + i) = y;
    }
    for (int64_t i = in_vectors + first; i < g.n; i += threads)
        to[i] = convert<T, F>(from[i]);
}

template <typename T, typename F> const void *instance_of(const gx_cast *cast)
{
    return cast->wide ? (const void *)cast_kernel<T, F, 4>
                      : (const void *)cast_kernel<T, F, 1>;
}

template <typename T> const void *instance_to(const gx_cast *cast)
{
    if (cast->from_dtype == GX_BF16)
        return instance_of<T, __nv_bfloat16>(cast);
    return cast->from_dtype == GX_I32 ? instance_of<T, int32_t>(cast)
                                      : instance_of<T, float>(cast);
}

static const void *instance(const gx_cast *cast)
{
    if (cast->to_dtype == GX_BF16)
        return instance_to<__nv_bfloat16>(cast);
    return cast->to_dtype == GX_I32 ? instance_to<int32_t>(cast)
                                    : instance_to<float>(cast);
}

} // namespace

extern "C" gx_status gx_cast_load(const gx_cast *cast, gx_error *err)
{
    return gx_load_kernel(instance(cast), 0, "cast_kernel", err);
}

extern "C" gx_status gx_cast_launch(const gx_cast *cast, gx_ctx *ctx, gx_error *err)
{
    const int64_t per_block = (int64_t)THREADS * (cast->wide ? 4 : 1);
    void *args[] = { (void *)cast };

    return gx_launch(ctx, "cast_kernel", instance(cast),
                     dim3(gx_grid_for(cast->n, per_block, INT32_MAX)), dim3(THREADS), 0,
                     args, err);
}
