/* Metrics: a warp finds the first largest logit of a row, or how many come before the
 * label's. */
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

/* False for a NaN, which compares with nothing, and for a label out of range, whose logit
 * is not read. */
template <typename T>
__device__ __forceinline__ bool is_among_largest(const T *x, int64_t classes,
                                                 int64_t label, int64_t k)
{
    const float own = label >= 0 && label < classes ? gx_to_float(x[label]) : NAN;
    int64_t before = 0;

    for (int64_t c = threadIdx.x % 32; c < classes; c += 32) {
        const float value = gx_to_float(x[c]);

        before += value > own || (value == own && c < label);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        before += __shfl_xor_sync(0xffffffffu, (long long)before, step);
    return own == own && before < k;
}

template <typename T>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    topk_kernel(const __grid_constant__ gx_accuracy g)
{
    gx_begin_kernel();
    const int n_warps = blockDim.x / 32;
    int64_t right = 0;

    for (int64_t row = (int64_t)blockIdx.x * n_warps + threadIdx.x / 32; row < g.rows;
         row += (int64_t)gridDim.x * n_warps)
        right += is_among_largest(static_cast<const T *>(g.logits) + row * g.classes,
                                  g.classes, g.labels[row], g.k);
    gx_leave_mean(threadIdx.x % 32 == 0 ? (double)right : 0.0, g.rows, g.partial,
                  g.ticket, g.out);
}

static __global__ void __launch_bounds__(32)
    perplexity_kernel(const float *loss, float *out)
{
    gx_begin_kernel();
    if (threadIdx.x == 0)
        *out = (float)exp((double)*loss);
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
    gx_leave_mean(threadIdx.x % 32 == 0 ? (double)right : 0.0, g.rows, g.partial,
                  g.ticket, g.out);
}

static const void *instance(const gx_accuracy *accuracy)
{
    return gx_with_type(accuracy->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return accuracy->k > 0 ? (const void *)topk_kernel<T>
                               : (const void *)accuracy_kernel<T>;
    });
}

static const char *name_of(const gx_accuracy *accuracy)
{
    return accuracy->k > 0 ? "topk_kernel" : "accuracy_kernel";
}

} // namespace

extern "C" gx_status gx_accuracy_load(const gx_accuracy *accuracy, gx_error *err)
{
    return gx_load_kernel(instance(accuracy), 0, name_of(accuracy), err);
}

extern "C" gx_status gx_accuracy_launch(const gx_accuracy *accuracy, gx_ctx *ctx,
                                        gx_error *err)
{
    const int threads = accuracy->blocks == 1 ? ONE_BLOCK_THREADS : GX_METRIC_THREADS;
    void *args[] = { (void *)accuracy };

    return gx_launch(ctx, name_of(accuracy), instance(accuracy),
                     dim3((unsigned)accuracy->blocks), dim3(threads), 0, args, err);
}

extern "C" gx_status gx_perplexity_load(gx_error *err)
{
    return gx_load_kernel((const void *)perplexity_kernel, 0, "perplexity_kernel", err);
}

extern "C" gx_status gx_perplexity_launch(const float *loss, float *out, gx_ctx *ctx,
                                          gx_error *err)
{
    void *args[] = { &loss, &out };

    return gx_launch(ctx, "perplexity_kernel", (const void *)perplexity_kernel, dim3(1),
                     dim3(32), 0, args, err);
}
