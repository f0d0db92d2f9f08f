/* Casts, four elements a thread where the addresses allow it. */
#include <type_traits>

#include "cast_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256;

/* From i32 by way of double, which holds every integer: by way of float what is rounded
 * to 16 bits would be rounded twice. */
__device__ __forceinline__ void from_integer(float *to, int32_t x)
{
    *to = __int2float_rn(x);
}

__device__ __forceinline__ void from_integer(__nv_bfloat16 *to, int32_t x)
{
    *to = __double2bfloat16((double)x);
}

__device__ __forceinline__ void from_integer(__half *to, int32_t x)
{
    *to = __double2half((double)x);
}

/* To i32 towards zero, kept within the range, NaN to 0. */
template <typename T, typename F> __device__ __forceinline__ T convert(F x)
{
    T y;

    if constexpr (std::is_same_v<T, F>)
        y = x;
    else if constexpr (std::is_same_v<F, int32_t>)
        from_integer(&y, x);
    else if constexpr (std::is_same_v<T, int32_t>)
        y = __float2int_rz(gx_to_float(x));
    else
        gx_store(&y, gx_to_float(x));
    return y;
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

/* gx_with_type, and i32 beside the floats. */
template <typename F> auto with_any_type(gx_dtype dtype, F f)
{
    return dtype == GX_I32 ? f(gx_type<int32_t>()) : gx_with_type(dtype, f);
}

static const void *instance(const gx_cast *cast)
{
    return with_any_type(cast->to_dtype, [&](auto to) {
        return with_any_type(cast->from_dtype, [&](auto from) {
            return instance_of<typename decltype(to)::type,
                               typename decltype(from)::type>(cast);
        });
    });
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
