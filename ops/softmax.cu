/* Softmax: a warp or a block for each line that lies in one piece, else a thread for each
 * line, so that neighbours read neighbours. */
#include "kernel.cuh"
#include "softmax_kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t WARP_LINE = 1024; /* elements up to which a warp has a line */

/* A line's warp, or block: every thread gets the same. `shared` holds 32. */
template <bool WHOLE> struct team {
    float *shared;

    __device__ __forceinline__ float across(float x, bool is_max) const
    {
        x = in_warp(x, is_max);
        if constexpr (WHOLE) {
            const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

            __syncthreads();
            if (lane == 0)
                shared[threadIdx.x / 32] = x;
            __syncthreads();
            x = in_warp(lane < n_warps ? shared[lane]
                        : is_max       ? -INFINITY
                                       : 0.0f,
                        is_max);
        }
        return x;
    }

    static __device__ __forceinline__ float in_warp(float x, bool is_max)
    {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, x, step);

            x = is_max ? fmaxf(x, other) : x + other;
        }
        return x;
    }
};

template <typename T, int N, bool WHOLE>
__device__ __forceinline__ void forward_line(const gx_softmax &g, int64_t line,
                                             team<WHOLE> all)
{
    const T *x = static_cast<const T *>(g.x) + line * g.n;
    T *out = static_cast<T *>(g.out) + line * g.n;
    const int64_t first = (WHOLE ? threadIdx.x : threadIdx.x % 32) * N;
    const int64_t step = (WHOLE ? blockDim.x : 32) * N;
    float most = -INFINITY, sum = 0.0f, v[N];

    for (int64_t i = first; i < g.n; i += step) {
        gx_load_vector(v, x + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            most = fmaxf(most, v[e]);
    }
    most = all.across(most, true);
    for (int64_t i = first; i < g.n; i += step) {
        gx_load_vector(v, x + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            sum += expf(v[e] - most); /* NaN where x is, and so everywhere */
    }
    sum = all.across(sum, false);
    const float scale = 1.0f / sum;

    for (int64_t i = first; i < g.n; i += step) {
        gx_load_vector(v, x + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = expf(v[e] - most) * scale;
        gx_store_vector(out + i, v);
    }
}

template <typename T, int N, bool WHOLE>
__device__ __forceinline__ void backward_line(const gx_softmax &g, int64_t line,
                                              team<WHOLE> all)
{
    const T *y = static_cast<const T *>(g.x) + line * g.n;
    const T *dy = static_cast<const T *>(g.dy) + line * g.n;
    T *dx = static_cast<T *>(g.out) + line * g.n;
    const int64_t first = (WHOLE ? threadIdx.x : threadIdx.x % 32) * N;
    const int64_t step = (WHOLE ? blockDim.x : 32) * N;
    float sum = 0.0f, v[N], d[N];

    for (int64_t i = first; i < g.n; i += step) {
        gx_load_vector(v, y + i);
        gx_load_vector(d, dy + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            sum += v[e] * d[e];
    }
    sum = all.across(sum, false);
    for (int64_t i = first; i < g.n; i += step) {
        gx_load_vector(v, y + i);
        gx_load_vector(d, dy + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] *= d[e] - sum;
        gx_store_vector(dx + i, v);
    }
}

template <typename T, int N, bool WHOLE, bool BACKWARD>
__global__ void __launch_bounds__(THREADS)
    softmax_lines_kernel(const __grid_constant__ gx_softmax g)
{
    gx_begin_kernel();
    __shared__ float shared[32];
    const int lines = WHOLE ? 1 : THREADS / 32;
    const int group = WHOLE ? 0 : threadIdx.x / 32;

    for (int64_t line = (int64_t)blockIdx.x * lines + group; line < g.outer;
         line += (int64_t)gridDim.x * lines) {
        if constexpr (BACKWARD)
            backward_line<T, N>(g, line, team<WHOLE>{ shared });
        else
            forward_line<T, N>(g, line, team<WHOLE>{ shared });
    }
}

template <typename T>
__device__ __forceinline__ void forward_apart(const gx_softmax &g, int64_t first)
{
    const T *x = static_cast<const T *>(g.x) + first;
    T *out = static_cast<T *>(g.out) + first;
    float most = -INFINITY, sum = 0.0f;

    for (int64_t i = 0; i < g.n; i++)
        most = fmaxf(most, gx_to_float(x[i * g.inner]));
    for (int64_t i = 0; i < g.n; i++)
        sum += expf(gx_to_float(x[i * g.inner]) - most);
    const float scale = 1.0f / sum;

    for (int64_t i = 0; i < g.n; i++)
        gx_store(out + i * g.inner, expf(gx_to_float(x[i * g.inner]) - most) * scale);
}

template <typename T>
__device__ __forceinline__ void backward_apart(const gx_softmax &g, int64_t first)
{
    const T *y = static_cast<const T *>(g.x) + first;
    const T *dy = static_cast<const T *>(g.dy) + first;
    T *dx = static_cast<T *>(g.out) + first;
    float sum = 0.0f;

    for (int64_t i = 0; i < g.n; i++)
        sum += gx_to_float(y[i * g.inner]) * gx_to_float(dy[i * g.inner]);
    for (int64_t i = 0; i < g.n; i++)
        gx_store(dx + i * g.inner,
                 gx_to_float(y[i * g.inner]) * (gx_to_float(dy[i * g.inner]) - sum));
}

/* A thread for each line whose elements are `inner` apart. */
template <typename T, bool BACKWARD>
__global__ void __launch_bounds__(THREADS)
    softmax_apart_kernel(const __grid_constant__ gx_softmax g)
{
    gx_begin_kernel();
    const int64_t lines = g.outer * g.inner;

    for (int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x; line < lines;
         line += (int64_t)gridDim.x * THREADS) {
        const int64_t first = line / g.inner * g.n * g.inner + line % g.inner;

        if constexpr (BACKWARD)
            backward_apart<T>(g, first);
        else
            forward_apart<T>(g, first);
    }
}

template <typename T, int N, bool BACKWARD> const void *lines_of(const gx_softmax *g)
{
    return g->n > WARP_LINE ? (const void *)softmax_lines_kernel<T, N, true, BACKWARD>
                            : (const void *)softmax_lines_kernel<T, N, false, BACKWARD>;
}

template <typename T, int N, bool BACKWARD> const void *instance_of(const gx_softmax *g)
{
    if (g->inner > 1)
        return (const void *)softmax_apart_kernel<T, BACKWARD>;
    return g->wide ? lines_of<T, N, BACKWARD>(g) : lines_of<T, 1, BACKWARD>(g);
}

static const void *instance(const gx_softmax *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->dy != nullptr ? instance_of<T, gx_widest<T>, true>(g)
                                : instance_of<T, gx_widest<T>, false>(g);
    });
}

} // namespace

extern "C" gx_status gx_softmax_load(const gx_softmax *softmax, gx_error *err)
{
    return gx_load_kernel(instance(softmax), 0, "softmax_kernel", err);
}

extern "C" gx_status gx_softmax_launch(const gx_softmax *softmax, gx_ctx *ctx,
                                       gx_error *err)
{
    const int64_t per_block = softmax->inner > 1       ? THREADS
                              : softmax->n > WARP_LINE ? 1
                                                       : THREADS / 32;
    void *args[] = { (void *)softmax };

    return gx_launch(
        ctx, "softmax_kernel", instance(softmax),
        dim3(gx_grid_for(softmax->outer * softmax->inner, per_block, INT32_MAX)),
        dim3(THREADS), 0, args, err);
}
