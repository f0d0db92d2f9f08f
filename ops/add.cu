/* out = a + b, 16 bytes a thread where the addresses allow it. */
#include "add_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256;

template <typename T, int N>
__global__ void __launch_bounds__(THREADS) add_kernel(const __grid_constant__ gx_add g)
{
    gx_begin_kernel();
    const T *a = static_cast<const T *>(g.a), *b = static_cast<const T *>(g.b);
    T *out = static_cast<T *>(g.out);
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * THREADS;
    const int64_t in_vectors = g.n / N * N;

    for (int64_t i = first * N; i < in_vectors; i += threads * N) {
        float x[N], y[N];

        gx_load_vector(x, a + i);
        gx_load_vector(y, b + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            x[e] += y[e];
        gx_store_vector(out + i, x);
    }
    for (int64_t i = in_vectors + first; i < g.n; i += threads)
        gx_store(out + i, gx_to_float(a[i]) + gx_to_float(b[i]));
}

static const void *instance(const gx_add *add)
{
    if (add->dtype == GX_BF16)
        return add->wide ? (const void *)add_kernel<__nv_bfloat16, 8>
                         : (const void *)add_kernel<__nv_bfloat16, 1>;
    return add->wide ? (const void *)add_kernel<float, 4>
                     : (const void *)add_kernel<float, 1>;
}

} // namespace

extern "C" gx_status gx_add_load(const gx_add *add, gx_error *err)
{
    return gx_load_kernel(instance(add), 0, "add_kernel", err);
}

extern "C" gx_status gx_add_launch(const gx_add *add, gx_ctx *ctx, gx_error *err)
{
    const int64_t per_block = (int64_t)THREADS * (!add->wide              ? 1
                                                  : add->dtype == GX_BF16 ? 8
                                                                          : 4);
    void *args[] = { (void *)add };

    return gx_launch(ctx, "add_kernel", instance(add),
                     dim3(gx_grid_for(add->n, per_block, INT32_MAX)), dim3(THREADS), 0,
                     args, err);
}
