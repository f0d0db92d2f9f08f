/* Rows of a softmax by a warp or a block; sums in a fixed order. */
#include "loss_kernels.h"
#include "mean.cuh"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

struct larger {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return fmaxf(a, b);
    }
};
struct sum {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

/* Every thread of the row's warp, or block, gets the same result. `shared` holds 32. */
template <bool WIDE, typename F>
__device__ __forceinline__ float reduce(float x, F both, float none, float *shared)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    if constexpr (WIDE) {
        const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

        __syncthreads();
        if (lane == 0)
            shared[threadIdx.x / 32] = x;
        __syncthreads();
        x = lane < n_warps ? shared[lane] : none;
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

/* How many rows are left, by one block; an exact sum of whole numbers. */
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    count_kernel(const int32_t *labels, int64_t rows, int32_t ignored, double *counted)
{
    gx_begin_kernel();
    __shared__ double shared[32];
    int64_t n = 0;

    for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
        n += labels[row] != ignored;
    const double total = gx_block_sum((double)n, shared);
    if (threadIdx.x == 0)
        *counted = total;
}

/* One row: returns its loss, and writes its part of dlogits where that is wanted. The
 * label's term is kept apart from the others': 1 - p would cancel where the label is
 * nearly sure. */
template <typename T, bool WIDE>
__device__ __forceinline__ float sce_row(const gx_sce &g, float divisor, int64_t row,
                                         float *shared)
{
    const T *x = static_cast<const T *>(g.logits) + row * g.classes;
    T *dx = static_cast<T *>(g.dlogits) + (g.dlogits != nullptr ? row * g.classes : 0);
    const int64_t first = WIDE ? threadIdx.x : threadIdx.x % 32;
    const int64_t step = WIDE ? blockDim.x : 32;
    const int64_t label = g.labels[row];
    float most = -INFINITY, others = 0.0f, all = 0.0f;

    if (g.ignores && label == g.ignored) {
        for (int64_t c = first; dx != nullptr && c < g.classes; c += step)
            gx_store(dx + c, 0.0f);
        return 0.0f;
    }

    for (int64_t c = first; c < g.classes; c += step)
        most = fmaxf(most, gx_to_float(x[c]));
    most = reduce<WIDE>(most, larger{}, -INFINITY, shared);
    for (int64_t c = first; c < g.classes; c += step)
        others += c == label ? 0.0f : expf(gx_to_float(x[c]) - most);
    others = reduce<WIDE>(others, sum{}, 0.0f, shared);
    if (g.smoothing > 0.0f) {
        for (int64_t c = first; c < g.classes; c += step)
            all += gx_to_float(x[c]) - most;
        all = reduce<WIDE>(all, sum{}, 0.0f, shared);
    }

    /* A label that is not a class gives NaN; nothing is read outside the row. */
    const float at_label = label >= 0 && label < g.classes ? gx_to_float(x[label]) : NAN;
    const float own = expf(at_label - most);
    const float total = own + others;

    if (dx != nullptr) {
        const float dy = g.dy != nullptr ? *g.dy : 1.0f;
        const float scale = dy / (total * divisor);
        const float share = dy * (g.smoothing / ((float)g.classes * divisor));
        const float back = g.smoothing > 0.0f ? share * (float)(g.classes - 1) : 0.0f;

        for (int64_t c = first; c < g.classes; c += step)
            gx_store(dx + c, c == label ? back - others * scale
                                        : expf(gx_to_float(x[c]) - most) * scale - share);
    }
    const float log_total = own == 1.0f ? log1pf(others) : logf(total);

    if (g.smoothing == 0.0f)
        return log_total - (at_label - most);
    return log_total - (1.0f - g.smoothing) * (at_label - most) -
           g.smoothing * (all / (float)g.classes);
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    sce_kernel(const __grid_constant__ gx_sce g)
{
    gx_begin_kernel();
    __shared__ float shared[32];
    const int per_block = WIDE ? 1 : blockDim.x / 32;
    const int group = WIDE ? 0 : threadIdx.x / 32;
    const bool leads = (WIDE ? threadIdx.x : threadIdx.x % 32) == 0;
    const float divisor = (float)gx_divisor(g.divisor, g.counted);
    double total = 0.0;

    for (int64_t row = (int64_t)blockIdx.x * per_block + group; row < g.rows;
         row += (int64_t)gridDim.x * per_block)
        total += sce_row<T, WIDE>(g, divisor, row, shared);
    if (g.out != nullptr)
        gx_leave_mean(leads ? total : 0.0, g.divisor, g.partial, g.out, g.counted);
}

static const void *sce_instance(const gx_sce *g)
{
    const bool wide = g->classes > GX_SCE_WARP_CLASSES;

    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return wide ? (const void *)sce_kernel<T, true>
                    : (const void *)sce_kernel<T, false>;
    });
}

static unsigned threads_for(int32_t blocks)
{
    return blocks == 1 ? ONE_BLOCK_THREADS : GX_LOSS_THREADS;
}

} // namespace

extern "C" gx_status gx_sce_load(const gx_sce *sce, gx_error *err)
{
    if (sce->counted != NULL)
        GX_TRY(gx_load_kernel((const void *)count_kernel, 0, "count_kernel", err));
    GX_TRY(gx_mean_load(sce->out != NULL ? sce->blocks : 1, err));
    return gx_load_kernel(sce_instance(sce), 0, "sce_kernel", err);
}

static gx_status launch_count(const gx_sce *sce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)&sce->labels, (void *)&sce->rows, (void *)&sce->ignored,
                     (void *)&sce->counted };

    return gx_launch(ctx, "count_kernel", (const void *)count_kernel, dim3(1),
                     dim3(ONE_BLOCK_THREADS), 0, args, err);
}

extern "C" gx_status gx_sce_launch(const gx_sce *sce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)sce };

    if (sce->counted != NULL)
        GX_TRY(launch_count(sce, ctx, err));
    GX_TRY(gx_launch(ctx, "sce_kernel", sce_instance(sce), dim3((unsigned)sce->blocks),
                     dim3(threads_for(sce->blocks)), 0, args, err));
    return gx_mean_launch(sce->partial, sce->out != NULL ? sce->blocks : 1, sce->divisor,
                          sce->out, ctx, err, sce->counted);
}
