/* Optimizers over a table of tensors: a block walks chunks, and finds each one's tensor.
 */
#include "kernel.cuh"
#include "optimizer_kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int BLOCKS_PER_SM = 8;

static_assert(sizeof(gx_sgd_table) <= 4096 && sizeof(gx_adamw_table) <= 4096,
              "a kernel takes 4 KB of arguments");

/* The entry that a chunk belongs to: the last one that begins at or before it. */
template <typename Table>
__device__ __forceinline__ int find_entry(const Table &table, int64_t chunk)
{
    int low = 0, high = table.n_entries;

    while (high - low > 1) {
        const int middle = (low + high) / 2;

        if (table.entry[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Calls `full(i)` for N whole elements and `single(i)` for those at the end of a tensor.
 */
template <int N, typename Full, typename Single>
__device__ __forceinline__ void over_chunk(int64_t chunk, int64_t n, Full full,
                                           Single single)
{
    const int64_t first = chunk * GX_OPTIMIZER_CHUNK;
    const int64_t end = first + GX_OPTIMIZER_CHUNK < n ? first + GX_OPTIMIZER_CHUNK : n;

#pragma unroll 2
    for (int64_t i = first + threadIdx.x * N; i < end; i += THREADS * N) {
        if (i + N <= end) {
            full(i);
        } else {
            for (int64_t j = i; j < end; j++)
                single(j);
        }
    }
}

template <typename T, int N>
__device__ __forceinline__ void sgd_update(const gx_sgd_entry &e, int64_t i, float lr,
                                           float weight_decay)
{
    T *param = static_cast<T *>(e.param) + i;
    float p[N], g[N];

    gx_load_vector(p, param);
    gx_load_vector(g, static_cast<const T *>(e.grad) + i);
#pragma unroll
    for (int x = 0; x < N; x++)
        p[x] -= lr * (g[x] + weight_decay * p[x]);
    gx_store_vector(param, p);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS, 4)
    sgd_kernel(const __grid_constant__ gx_sgd_table table)
{
    gx_begin_kernel();
    const float lr = *table.lr, decay = table.weight_decay;

    for (int64_t chunk = blockIdx.x; chunk < table.n_chunks; chunk += gridDim.x) {
        const gx_sgd_entry &e = table.entry[find_entry(table, chunk)];

        over_chunk<N>(
            chunk - e.first_chunk, e.n,
            [&](int64_t i) { sgd_update<T, N>(e, i, lr, decay); },
            [&](int64_t i) { sgd_update<T, 1>(e, i, lr, decay); });
    }
}

/* What all elements share: the factor that shrinks a parameter, the corrected rate, and
 * one over the root of the second correction. */
struct adamw_factors {
    float keep, rate, root;
};

/* 1 - beta^t in double: in float it would lose most of its digits at the first steps. */
__device__ __forceinline__ adamw_factors find_factors(const gx_adamw_table &table)
{
    __shared__ double correction[2];
    const double lr = (double)*table.lr;

    if (threadIdx.x < 2) {
        const double t = (double)*table.step + 1.0;

        correction[threadIdx.x] =
            -expm1(t * (threadIdx.x == 0 ? table.log_beta1 : table.log_beta2));
    }
    __syncthreads();
    return { (float)(1.0 - lr * table.weight_decay), (float)(lr / correction[0]),
             (float)sqrt(correction[1]) };
}

template <typename T, int N>
__device__ __forceinline__ void adamw_update(const gx_adamw_table &table,
                                             const gx_adamw_entry &e, int64_t i,
                                             const adamw_factors &f)
{
    T *param = static_cast<T *>(e.param) + i;
    T *mean = static_cast<T *>(e.m) + i, *square = static_cast<T *>(e.v) + i;
    float p[N], g[N], m[N], v[N];

    gx_load_vector(p, param);
    gx_load_vector(g, static_cast<const T *>(e.grad) + i);
    gx_load_vector(m, mean);
    gx_load_vector(v, square);
#pragma unroll
    for (int x = 0; x < N; x++) {
        m[x] += table.take1 * (g[x] - m[x]);
        v[x] = table.keep2 * v[x] + table.take2 * g[x] * g[x];
        p[x] = f.keep * p[x] - f.rate * m[x] / (sqrtf(v[x]) / f.root + table.eps);
    }
    gx_store_vector(param, p);
    gx_store_vector(mean, m);
    gx_store_vector(square, v);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS, 4)
    adamw_kernel(const __grid_constant__ gx_adamw_table table)
{
    gx_begin_kernel();
    const adamw_factors f = find_factors(table);

    for (int64_t chunk = blockIdx.x; chunk < table.n_chunks; chunk += gridDim.x) {
        const gx_adamw_entry &e = table.entry[find_entry(table, chunk)];

        over_chunk<N>(
            chunk - e.first_chunk, e.n,
            [&](int64_t i) { adamw_update<T, N>(table, e, i, f); },
            [&](int64_t i) { adamw_update<T, 1>(table, e, i, f); });
    }
}

static const void *sgd_instance(const gx_sgd_table *table)
{
    if (table->dtype == GX_BF16)
        return table->wide ? (const void *)sgd_kernel<__nv_bfloat16, 4>
                           : (const void *)sgd_kernel<__nv_bfloat16, 1>;
    return table->wide ? (const void *)sgd_kernel<float, 4>
                       : (const void *)sgd_kernel<float, 1>;
}

static const void *adamw_instance(const gx_adamw_table *table)
{
    if (table->dtype == GX_BF16)
        return table->wide ? (const void *)adamw_kernel<__nv_bfloat16, 4>
                           : (const void *)adamw_kernel<__nv_bfloat16, 1>;
    return table->wide ? (const void *)adamw_kernel<float, 4>
                       : (const void *)adamw_kernel<float, 1>;
}

} // namespace

extern "C" gx_status gx_sgd_load(const gx_sgd_table *table, gx_error *err)
{
    return gx_load_kernel(sgd_instance(table), 0, "sgd_kernel", err);
}

extern "C" gx_status gx_sgd_launch(const gx_sgd_table *table, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, "sgd_kernel", sgd_instance(table),
        dim3(gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM)),
        dim3(THREADS), 0, args, err);
}

extern "C" gx_status gx_adamw_load(const gx_adamw_table *table, gx_error *err)
{
    return gx_load_kernel(adamw_instance(table), 0, "adamw_kernel", err);
}

extern "C" gx_status gx_adamw_launch(const gx_adamw_table *table, gx_ctx *ctx,
                                     gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, "adamw_kernel", adamw_instance(table),
        dim3(gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM)),
        dim3(THREADS), 0, args, err);
}
