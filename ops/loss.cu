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

/* From a row's sums: of exp below its largest logit, but the label's own, and of what all
 * its logits are below it. */
__device__ __forceinline__ float loss_of_row(const gx_sce &g, float label_below,
                                             float own, float others, float all)
{
    const float log_total = own == 1.0f ? log1pf(others) : logf(own + others);

    if (g.smoothing == 0.0f)
        return log_total - label_below;
    return log_total - (1.0f - g.smoothing) * label_below -
           g.smoothing * (all / (float)g.classes);
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
    return loss_of_row(g, at_label - most, own, others, all);
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

/* Of `lanes` neighbours every one gets the same result. */
template <typename F>
__device__ __forceinline__ float reduce_lanes(float x, F both, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* The loss alone, by one block: `lanes` threads a row, so few that the block has all rows
 * at once where it can. A group without a row only takes part in the shuffles. */
template <typename T>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    sce_value_kernel(const __grid_constant__ gx_sce g, const int lanes)
{
    gx_begin_kernel();
    __shared__ double shared[32];
    const int first = threadIdx.x % lanes, n_groups = ONE_BLOCK_THREADS / lanes;
    double total = 0.0;
    int counted = 0;

    for (int64_t start = 0; start < g.rows; start += n_groups) {
        const int64_t row = start + threadIdx.x / lanes;
        const int classes = row < g.rows ? (int)g.classes : 0;
        const T *x = static_cast<const T *>(g.logits) + row * g.classes;
        const int label = row < g.rows ? g.labels[row] : 0;
        float most = -INFINITY, others = 0.0f, all = 0.0f;

#pragma unroll 4
        for (int c = first; c < classes; c += lanes)
            most = fmaxf(most, gx_to_float(x[c]));
        most = reduce_lanes(most, larger{}, lanes);
        for (int c = first; c < classes; c += lanes) {
            const float below = gx_to_float(x[c]) - most;

            all += below;
            others += c == label ? 0.0f : expf(below);
        }
        others = reduce_lanes(others, sum{}, lanes);
        all = reduce_lanes(all, sum{}, lanes);
        if (first != 0 || row >= g.rows || (g.ignores && label == g.ignored))
            continue;
        /* A label that is not a class gives NaN, as in sce_row. */
        const float below =
            label >= 0 && label < classes ? gx_to_float(x[label]) - most : NAN;

        total += loss_of_row(g, below, expf(below), others, all);
        counted++;
    }
    const double divisor =
        g.counts ? gx_block_sum((double)counted, shared) : (double)g.divisor;

    total = gx_block_sum(total, shared);
    if (threadIdx.x == 0)
        *g.out = (float)(total / divisor);
}

static const void *sce_instance(const gx_sce *g)
{
    const bool wide = g->classes > GX_SCE_WARP_CLASSES;

    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        if (gx_sce_is_one_pass(g))
            return (const void *)sce_value_kernel<T>;
        return wide ? (const void *)sce_kernel<T, true>
                    : (const void *)sce_kernel<T, false>;
    });
}

static const char *sce_name(const gx_sce *g)
{
    return gx_sce_is_one_pass(g) ? "sce_value_kernel" : "sce_kernel";
}

/* Not more than there are classes, nor than leave a block all rows. */
static int lanes_for(const gx_sce *g)
{
    int lanes = 32;

    while (lanes > 1 && (lanes / 2 >= g->classes || g->rows * lanes > ONE_BLOCK_THREADS))
        lanes /= 2;
    return lanes;
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
    return gx_load_kernel(sce_instance(sce), 0, sce_name(sce), err);
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
    int lanes = lanes_for(sce);
    void *args[] = { (void *)sce, &lanes }; /* sce_kernel takes the first */

    if (sce->counted != NULL)
        GX_TRY(launch_count(sce, ctx, err));
    GX_TRY(gx_launch(ctx, sce_name(sce), sce_instance(sce), dim3((unsigned)sce->blocks),
                     dim3(threads_for(sce->blocks)), 0, args, err));
    return gx_mean_launch(sce->partial, sce->out != NULL ? sce->blocks : 1, sce->divisor,
                          sce->out, ctx, err, sce->counted);
}
