/* What the blocks of a head do with a tile of x: the loss, its derivative, the sums of
 * its columns; and how the last block adds up what all of them leave. */
#ifndef GX_HEAD_CUH
#define GX_HEAD_CUH

#include "head_kernels.h"
#include "kernel.cuh"
#include "pointwise_loss.cuh"

namespace
{

/* --- what a block leaves --- */

__device__ __forceinline__ void leave_loss(const gx_head &g, double total, double divisor)
{
    if (g.loss == nullptr)
        return;
    if (gridDim.x * gridDim.y == 1)
        *g.loss = (float)(total / divisor);
    else
        g.partial_loss[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

template <typename T>
__device__ __forceinline__ void leave_column(const gx_head &g, int64_t column, float sum)
{
    if (gridDim.y == 1)
        gx_store(static_cast<T *>(g.dbias) + column, sum);
    else
        g.partial_bias[blockIdx.y * g.columns + column] = sum;
}

/* Threads beyond the columns share the row tiles; `shared` holds a float a thread. */
template <typename T>
__device__ __forceinline__ void add_columns(const gx_head &g, float *shared)
{
    const int tiles = gridDim.y, columns = (int)g.columns;
    int lanes = blockDim.x;

    while (lanes / 2 >= columns)
        lanes /= 2;
    const int parts = blockDim.x / lanes, part = threadIdx.x / lanes;

    for (int c = threadIdx.x % lanes; c < columns; c += lanes) {
        float sum = 0.0f;

#pragma unroll 4
        for (int t = part; t < tiles; t += parts)
            sum += __ldcg(g.partial_bias + (int64_t)t * columns + c);
        if (parts == 1)
            gx_store(static_cast<T *>(g.dbias) + c, sum);
        else
            shared[threadIdx.x] = sum;
    }
    if (parts == 1)
        return;
    __syncthreads();
    if ((int)threadIdx.x < columns) {
        float sum = 0.0f;

        for (int p = 0; p < parts; p++)
            sum += shared[p * lanes + threadIdx.x];
        gx_store(static_cast<T *>(g.dbias) + threadIdx.x, sum);
    }
}

/* The losses of all blocks, by the first warp. */
__device__ __forceinline__ void add_losses(const gx_head &g, double divisor)
{
    const int blocks = gridDim.x * gridDim.y;
    double total = 0.0;

    for (int i = threadIdx.x; i < blocks; i += 32)
        total += __ldcg(g.partial_loss + i);
    total = gx_warp_sum(total);
    if (threadIdx.x == 0)
        *g.loss = (float)(total / divisor);
}

/* True in the block that draws the last ticket, for the threads that thread 0 tells; what
 * the thread wrote before is seen by the last block. The counter wraps to the 0 that it
 * began with. */
__device__ __forceinline__ bool draws_last(const gx_head &g)
{
    const unsigned blocks = gridDim.x * gridDim.y;

    __threadfence();
    const bool is_last = atomicInc(g.ticket, blocks - 1) == blocks - 1;
    __threadfence();
    return is_last;
}

/* The last block adds up, in the order of the blocks. What a block leaves of the loss is
 * thread 0's, so where that is all its warp is enough. */
template <typename T>
__device__ __forceinline__ void finish(const gx_head &g, double divisor, float *shared)
{
    __shared__ bool is_last;

    if (g.ticket == nullptr)
        return;
    if (g.dbias == nullptr || gridDim.y == 1) {
        if (threadIdx.x >= 32)
            return;
        if (threadIdx.x == 0)
            is_last = draws_last(g);
        __syncwarp();
        if (is_last)
            add_losses(g, divisor);
        return;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = draws_last(g);
    __syncthreads();
    if (!is_last)
        return;
    add_columns<T>(g, shared);
    if (g.loss != nullptr && threadIdx.x < 32)
        add_losses(g, divisor);
}

/* --- softmax --- */

/* What the sum over rows is divided by; every block counts for itself. */
__device__ __forceinline__ double head_divisor(const gx_head &g, double *sums)
{
    __shared__ double counted;
    int n = 0;

    if (!g.counts)
        return (double)g.divisor;
    for (int64_t row = threadIdx.x; row < g.rows; row += blockDim.x)
        n += g.labels[row] != g.ignored;
    const double total = gx_block_sum((double)n, sums);

    if (threadIdx.x == 0)
        counted = total;
    __syncthreads();
    return counted;
}

/* Lanes that work on a row: so many that the block does all its rows at once. */
__device__ __forceinline__ int lanes_of_row(int rows)
{
    int lanes = 32;

    while (lanes > 1 && lanes * rows > (int)blockDim.x)
        lanes /= 2;
    return lanes;
}

/* One row by `lanes` lanes: returns its loss, if wanted, and leaves its derivative in x,
 * and in dx unless that is NULL. Without columns (n 0) the lanes only take part in the
 * shuffles. */
template <typename T>
__device__ __forceinline__ float softmax_row(const gx_head &g, float *x, T *dx, int n,
                                             int lanes, int label, float divisor)
{
    const int first = threadIdx.x % lanes;
    const bool is_ignored = g.ignores && label == g.ignored;
    /* A label that is not a class gives NaN; nothing is read outside the row. */
    const float at_label = label >= 0 && label < n ? x[label] : NAN;
    float most = -INFINITY, others = 0.0f, all = 0.0f;

    for (int c = first; c < n; c += lanes)
        most = fmaxf(most, x[c]);
    for (int step = lanes / 2; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    __syncwarp();
    for (int c = first; c < n; c += lanes) {
        const float below = x[c] - most, e = expf(below);

        all += below;
        others += c == label ? 0.0f : e;
        x[c] = e;
    }
    for (int step = lanes / 2; step > 0; step /= 2) {
        others += __shfl_xor_sync(0xffffffffu, others, step);
        all += __shfl_xor_sync(0xffffffffu, all, step);
    }

    /* The label's term is kept apart from the others': 1 - p would cancel where the
     * label is nearly sure. */
    const float own = expf(at_label - most), total = own + others;
    const float dy = g.dy != nullptr ? *g.dy : 1.0f;
    const float scale = dy / (total * divisor);
    const float share = dy * (g.smoothing / ((float)g.columns * divisor));
    const float back = g.smoothing > 0.0f ? share * (float)(g.columns - 1) : 0.0f;

    for (int c = first; c < n; c += lanes) {
        float d = c == label ? back - others * scale : x[c] * scale;

        if (c != label && g.smoothing > 0.0f)
            d -= share;
        if (is_ignored)
            d = 0.0f;
        x[c] = d;
        if (dx != nullptr)
            gx_store(dx + c, d);
    }

    if (is_ignored || g.loss == nullptr)
        return 0.0f;
    const float log_total = own == 1.0f ? log1pf(others) : logf(total);

    if (g.smoothing == 0.0f)
        return log_total - (at_label - most);
    return log_total - (1.0f - g.smoothing) * (at_label - most) -
           g.smoothing * (all / (float)g.columns);
}

/* The label of the row that this thread works on. */
__device__ __forceinline__ int label_of(const gx_head &g, int64_t row, int tile_rows)
{
    const int r = threadIdx.x / lanes_of_row(tile_rows);

    return r < tile_rows && row + r < g.rows ? g.labels[row + r] : 0;
}

/* `tile` holds rows row .. row + tile_rows - 1 of x, for every thread; `row_loss` holds
 * tile_rows. There are two warps at least. */
template <typename T>
__device__ __forceinline__ void softmax_tile(const gx_head &g, float *tile, int ld,
                                             int tile_rows, int64_t row, int label,
                                             double divisor, float *row_loss)
{
    const int lanes = lanes_of_row(tile_rows), r = threadIdx.x / lanes;
    const int left = g.rows - row < tile_rows ? (int)(g.rows - row) : tile_rows;
    const int columns = (int)g.columns;
    T *dx = g.dx != nullptr && r < left ? static_cast<T *>(g.dx) + (row + r) * columns
                                        : nullptr;
    const float loss = softmax_row<T>(g, tile + r * ld, dx, r < left ? columns : 0, lanes,
                                      label, (float)divisor);

    if (g.loss == nullptr && g.dbias == nullptr)
        return;
    if (r < left && threadIdx.x % lanes == 0)
        row_loss[r] = loss;
    __syncthreads();
    if (threadIdx.x < 32) {
        double total = 0.0;

        for (int i = threadIdx.x; i < left; i += 32)
            total += row_loss[i];
        total = gx_warp_sum(total);
        if (threadIdx.x == 0)
            leave_loss(g, total, divisor);
    } else if (g.dbias != nullptr) {
        for (int c = (int)threadIdx.x - 32; c < columns; c += (int)blockDim.x - 32) {
            float sum = 0.0f;

#pragma unroll 8
            for (int i = 0; i < left; i++)
                sum += tile[i * ld + c];
            leave_column<T>(g, c, sum);
        }
    }
}

/* --- losses of each element --- */

template <typename T>
__device__ __forceinline__ float target_at(const gx_head &g, int64_t at)
{
    if (g.target_dtype == GX_F32)
        return static_cast<const float *>(g.target)[at];
    return gx_to_float(static_cast<const T *>(g.target)[at]);
}

/* What the derivative of an element is multiplied by. */
__device__ __forceinline__ float point_scale(const gx_head &g)
{
    return __fmul_rn((float)(1.0 / (double)g.divisor), g.dy != nullptr ? *g.dy : 1.0f);
}

/* One element: writes its derivative and returns it; adds its loss to `total`. */
template <typename T>
__device__ __forceinline__ float point_at(const gx_head &g, int64_t at, float x,
                                          float target, float scale, float *total)
{
    float slope;

    *total += gx_point(g.kind, x, target, &slope);
    slope *= scale;
    if (g.dx != nullptr)
        gx_store(static_cast<T *>(g.dx) + at, slope);
    return slope;
}

/* Thread t has summed up elements of column `column` + t % WIDTH. `shared` holds a float
 * a thread, and nothing reads it any more when the last thread comes here. */
template <typename T, int WIDTH>
__device__ __forceinline__ void leave_points(const gx_head &g, int64_t column,
                                             float total, float column_sum, float *shared,
                                             double *sums)
{
    if (g.loss != nullptr) {
        const double all = gx_block_sum((double)total, sums);

        if (threadIdx.x == 0)
            leave_loss(g, all, (double)g.divisor);
    }
    if (g.dbias == nullptr)
        return;
    __syncthreads();
    shared[threadIdx.x] = column_sum;
    __syncthreads();
    if (threadIdx.x < WIDTH && column + threadIdx.x < g.columns) {
        float sum = 0.0f;

        for (int s = threadIdx.x; s < (int)blockDim.x; s += WIDTH)
            sum += shared[s];
        leave_column<T>(g, column + threadIdx.x, sum);
    }
}

} // namespace

#endif
