/* Accuracy: a warp finds the first largest logit of a row. */
#include "mean.cuh"
#include "metric_kernels.h"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

/* A candidate; NaN is never one, and a row of NaNs has none. */
struct best {
    float value;
    int64_t at;

    __device__ __forceinline__ void meet(float v, int64_t i)
    {
        if (v > value || (v == value && i < at)) {
            value = v;
            at = i;
        }
    }
};

template <typename T>
__device__ __forceinline__ int64_t first_largest(const T *x, int64_t classes)
{
    best b = { -INFINITY, INT64_MAX };

    for (int64_t c = threadIdx.x % 32; c < classes; c += 32)
        b.meet(gx_to_float(x[c]), c);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const float value = __shfl_xor_sync(0xffffffffu, b.value, step);
        const int64_t at = __shfl_xor_sync(0xffffffffu, (long long)b.at, step);

        b.meet(value, at);
    }
    return b.at;
}

template <typename T>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    accuracy_kernel(const __grid_constant__ gx_accuracy g)
{
    gx_begin_kernel();
    const int n_warps = blockDim.x / 32;
    int64_t right = 0;

    for (int64_t row = (int64_t)blockIdx.x * n_warps + threadIdx.x / 32; row < g.rows;
         row += (int64_t)gridDim.x * n_warps) {
        const T *x = static_cast<const T *>(g.logits) + row * g.classes;

        right += first_largest(x, g.classes) == g.labels[row];
    }
    gx_leave_mean(threadIdx.x % 32 == 0 ? (double)right : 0.0, g.rows, g.partial, g.out);
}

static const void *instance(const gx_accuracy *accuracy)
{
    return gx_with_type(accuracy->dtype, [](auto of) {
        return (const void *)accuracy_kernel<typename decltype(of)::type>;
    });
}

} // namespace

extern "C" gx_status gx_accuracy_load(const gx_accuracy *accuracy, gx_error *err)
{
    GX_TRY(gx_mean_load(accuracy->blocks, err));
    return gx_load_kernel(instance(accuracy), 0, "accuracy_kernel", err);
}

extern "C" gx_status gx_accuracy_launch(const gx_accuracy *accuracy, gx_ctx *ctx,
                                        gx_error *err)
{
    const int threads = accuracy->blocks == 1 ? ONE_BLOCK_THREADS : GX_METRIC_THREADS;
    void *args[] = { (void *)accuracy };

    GX_TRY(gx_launch(ctx, "accuracy_kernel", instance(accuracy),
                     dim3((unsigned)accuracy->blocks), dim3(threads), 0, args, err));
    return gx_mean_launch(accuracy->partial, accuracy->blocks, accuracy->rows,
                          accuracy->out, ctx, err);
}
