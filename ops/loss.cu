/* Rows of a softmax by a few threads or a block; sums in a fixed order. */
#include "loss_kernels.h"
#include "mean.cuh"
#include "softmax_rows.cuh"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

/* As many as there are registers for. */
#define MOST_THREADS_OF(per) ((per) > 4 ? 512 : 1024)

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

/* Every thread of the block gets the same result. `shared` holds 32. */
template <typename F>
__device__ __forceinline__ float reduce(float x, F both, float none, float *shared)
{
    const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();
    if (lane == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = lane < n_warps ? shared[lane] : none;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
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
template <typename T>
__device__ __forceinline__ float sce_row(const gx_sce &g, float divisor, int64_t row,
                                         float *shared)
{
    const T *x = static_cast<const T *>(g.logits) + row * g.classes;
    T *dx = static_cast<T *>(g.dlogits) + (g.dlogits != nullptr ? row * g.classes : 0);
    const int64_t first = threadIdx.x, step = blockDim.x;
    const int64_t label = g.labels[row];
    float most = -INFINITY, others = 0.0f, all = 0.0f;

    if (g.ignores && label == g.ignored) {
        for (int64_t c = first; dx != nullptr && c < g.classes; c += step)
            gx_store(dx + c, 0.0f);
        return 0.0f;
    }

    for (int64_t c = first; c < g.classes; c += step)
        most = fmaxf(most, gx_to_float(x[c]));
    most = reduce(most, larger{}, -INFINITY, shared);
    for (int64_t c = first; c < g.classes; c += step)
        others += c == label ? 0.0f : expf(gx_to_float(x[c]) - most);
    others = reduce(others, sum{}, 0.0f, shared);
    if (g.smoothing > 0.0f) {
        for (int64_t c = first; c < g.classes; c += step)
            all += gx_to_float(x[c]) - most;
        all = reduce(all, sum{}, 0.0f, shared);
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

/* A block for a row of many classes. */
template <typename T>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    sce_wide_kernel(const __grid_constant__ gx_sce g)
{
    gx_begin_kernel();
    __shared__ float shared[32];
    const float divisor = (float)gx_divisor(g.divisor, g.counted);
    double total = 0.0;

    for (int64_t row = blockIdx.x; row < g.rows; row += gridDim.x)
        total += sce_row<T>(g, divisor, row, shared);
    if (g.out != nullptr)
        gx_finish_mean(total, g.divisor, g.partial, g.ticket, g.out, g.counted);
}

/* The block's sum of what the first thread of each row has, for thread 0. */
template <int LANES>
__device__ __forceinline__ double sum_of_rows(double x, double *shared)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

    x = gx_sum_over_rows<LANES>(x);
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return warp == 0 ? gx_warp_sum(lane < n_warps ? shared[lane] : 0.0) : 0.0;
}

/* A thread's part of a row and of those that come after it in steps. A group without a
 * row has no classes, and only takes part in the shuffles. */
template <typename T, int LANES, int PER> struct row_part {
    const T *logits;
    T *dlogits;
    const int32_t *labels;
    int classes, label;
    float x[PER];

    __device__ __forceinline__ row_part(const gx_sce &g, int64_t row)
    {
        const int64_t at = row * g.classes + threadIdx.x % LANES;

        logits = static_cast<const T *>(g.logits) + at;
        dlogits = static_cast<T *>(g.dlogits) + (g.dlogits != nullptr ? at : 0);
        labels = g.labels + row;
    }
    __device__ __forceinline__ void load(const gx_sce &g, bool has_row)
    {
        classes = has_row ? (int)g.classes : 0;
        label = has_row ? *labels : 0;
        gx_load_row<LANES>(x, logits, classes);
    }
    __device__ __forceinline__ bool counts(const gx_sce &g) const
    {
        return classes > 0 && !(g.ignores && label == g.ignored);
    }
    /* Returns the loss. */
    __device__ __forceinline__ float finish(const gx_sce &g, float dy)
    {
        const float loss =
            gx_softmax_row<LANES>(x, (int)g.classes, label, counts(g), g.smoothing, dy);

        if (g.dlogits != nullptr)
            gx_store_row<LANES>(dlogits, x, classes);
        return loss;
    }
    __device__ __forceinline__ void advance(const gx_sce &g, int64_t rows)
    {
        logits += rows * g.classes;
        dlogits += g.dlogits != nullptr ? rows * g.classes : 0;
        labels += rows;
    }
};

/* LANES threads for a row; the first is on its way before anything else is looked up. */
template <typename T, int LANES, int PER>
__global__ void __launch_bounds__(MOST_THREADS_OF(PER), 1)
    sce_kernel(const __grid_constant__ gx_sce g)
{
    __shared__ double losses[32], counts[32];
    const int64_t step = (int64_t)gridDim.x * (blockDim.x / LANES);
    const int64_t first =
        (int64_t)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    const int64_t ahead = threadIdx.x % 32 / LANES; /* of the warp's first row */
    row_part<T, LANES, PER> mine(g, first);
    double total = 0.0;
    int n = 0;

    gx_find_ahead(mine.logits, mine.labels, mine.dlogits, g.out); /* one is not NULL */
    gx_begin_kernel();
    mine.load(g, first < g.rows);
    const double share = g.counted != nullptr ? 1.0 / *g.counted : g.share;
    const float dy = (g.dy != nullptr ? *g.dy : 1.0f) * (float)share;

    for (int64_t row = first; row - ahead < g.rows;) {
        const float loss = mine.finish(g, dy);

        if (threadIdx.x % LANES == 0) {
            total += loss;
            n += mine.counts(g);
        }
        row += step;
        mine.advance(g, step);
        if (row - ahead < g.rows)
            mine.load(g, row < g.rows);
    }
    if (g.out == nullptr)
        return;
    total = sum_of_rows<LANES>(total, losses);
    if (gridDim.x > 1) {
        gx_finish_mean(total, g.divisor, g.partial, g.ticket, g.out, g.counted);
        return;
    }
    const bool divides = g.counts && g.counted == nullptr;

    if (divides)
        total /= sum_of_rows<LANES>((double)n, counts);
    if (threadIdx.x == 0)
        *g.out = (float)(divides ? total : total * share);
}

static const void *sce_instance(const gx_sce *g)
{
    return gx_with_type(g->dtype, [&](auto of) -> const void * {
        using T = typename decltype(of)::type;

#define SCE_INSTANCE(lanes, per)   \
    if (g->classes <= lanes * per) \
        return gx_kernel(sce_kernel<T, lanes, per>);
        GX_SOFTMAX_SHAPES(SCE_INSTANCE)
#undef SCE_INSTANCE
        return gx_kernel(sce_wide_kernel<T>);
    });
}

static const char *sce_name(const gx_sce *g)
{
    return g->classes > GX_SCE_WARP_CLASSES ? "sce_wide_kernel" : "sce_kernel";
}

/* Of one block no more than its rows need. */
static unsigned threads_for(const gx_sce *g)
{
    if (g->blocks > 1)
        return GX_LOSS_THREADS;
    if (g->classes > GX_SCE_WARP_CLASSES)
        return ONE_BLOCK_THREADS;
#define MOST_THREADS(lanes, per)                                  \
    if (g->classes <= lanes * per)                                \
        return gx_grid_for(g->rows > 0 ? g->rows * lanes : 1, 32, \
                           MOST_THREADS_OF(per) / 32) *           \
               32;
    GX_SOFTMAX_SHAPES(MOST_THREADS)
#undef MOST_THREADS
    return 0;
}

} // namespace

extern "C" int64_t gx_sce_rows_at_once(int64_t classes)
{
#define ROWS_AT_ONCE(lanes, per) \
    if (classes <= lanes * per)  \
        return GX_LOSS_THREADS / lanes;
    GX_SOFTMAX_SHAPES(ROWS_AT_ONCE)
#undef ROWS_AT_ONCE
    return 1;
}

extern "C" gx_status gx_sce_load(const gx_sce *sce, gx_error *err)
{
    if (sce->counted != NULL)
        GX_TRY(gx_load_kernel(gx_kernel(count_kernel), 0, "count_kernel", err));
    return gx_load_kernel(sce_instance(sce), 0, sce_name(sce), err);
}

static gx_status launch_count(const gx_sce *sce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)&sce->labels, (void *)&sce->rows, (void *)&sce->ignored,
                     (void *)&sce->counted };

    return gx_launch(ctx, "count_kernel", gx_kernel(count_kernel), dim3(1),
                     dim3(ONE_BLOCK_THREADS), 0, args, err);
}

extern "C" gx_status gx_sce_launch(const gx_sce *sce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)sce };

    if (sce->counted != NULL)
        GX_TRY(launch_count(sce, ctx, err));
    return gx_launch(ctx, sce_name(sce), sce_instance(sce), dim3((unsigned)sce->blocks),
                     dim3(threads_for(sce)), 0, args, err);
}
