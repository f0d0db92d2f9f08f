/* Dropout: a thread draws the words of four elements. The step is read from memory, so a
 * replay draws others than the one before. */
#include "dropout.h"
#include "dropout_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256;
constexpr int N = GX_DROPOUT_WORDS;

__device__ __forceinline__ float drop(const gx_dropout &g, uint32_t word, float x)
{
    return word < g.bar ? 0.0f : g.scale * x;
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS)
    dropout_kernel(const __grid_constant__ gx_dropout g)
{
    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    T *out = static_cast<T *>(g.out);
    const uint32_t step = (uint32_t)*g.step;
    const int64_t stride = (int64_t)gridDim.x * THREADS;

    for (int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x; block * N < g.n;
         block += stride) {
        const int64_t i = block * N;
        uint32_t word[N];

        gx_dropout_words(g.key, step, (uint64_t)block, word);
        if (WIDE && i + N <= g.n) {
            float v[N];

            gx_load_vector(v, x + i);
#pragma unroll
            for (int e = 0; e < N; e++)
                v[e] = drop(g, word[e], v[e]);
            gx_store_vector(out + i, v);
            continue;
        }
#pragma unroll
        for (int e = 0; e < N; e++) {
            if (i + e < g.n)
                gx_store(out + i + e, drop(g, word[e], gx_to_float(x[i + e])));
        }
    }
}

static const void *instance(const gx_dropout *dropout)
{
    return gx_with_type(dropout->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return dropout->wide ? (const void *)dropout_kernel<T, true>
                             : (const void *)dropout_kernel<T, false>;
    });
}

} // namespace

extern "C" gx_status gx_dropout_load(const gx_dropout *dropout, gx_error *err)
{
    return gx_load_kernel(instance(dropout), 0, "dropout_kernel", err);
}

extern "C" gx_status gx_dropout_launch(const gx_dropout *dropout, gx_ctx *ctx,
                                       gx_error *err)
{
    void *args[] = { (void *)dropout };

    return gx_launch(ctx, "dropout_kernel", instance(dropout),
                     dim3(gx_grid_for(dropout->n, (int64_t)THREADS * N, INT32_MAX)),
                     dim3(THREADS), 0, args, err);
}
