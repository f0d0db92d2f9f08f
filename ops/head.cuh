/* What the blocks of a head do with a tile of x: the loss, its derivative, the sums of
 * its columns; and how the last block adds up what all of them leave. */
#ifndef GX_HEAD_CUH
#define GX_HEAD_CUH

#include "head_kernels.h"
#include "kernel.cuh"
#include "pointwise_loss.cuh"
#include "softmax_rows.cuh"
#include "ticket.cuh"

namespace
{

/* --- what a block leaves --- */

__device__ __forceinline__ void leave_loss(const gx_head &g, double total, double share)
{
    if (g.loss == nullptr)
        return;
    if (gridDim.x * gridDim.y == 1)
        *g.loss = (float)(total * share);
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
__device__ __forceinline__ void add_losses(const gx_head &g, double share)
{
    const int blocks = gridDim.x * gridDim.y;
    double total = 0.0;

#pragma unroll 2
    for (int i = threadIdx.x; i < blocks; i += 32)
        total += __ldcg(g.partial_loss + i);
    total = gx_warp_sum(total);
    if (threadIdx.x == 0)
        *g.loss = (float)(total * share);
}

__device__ __forceinline__ bool draws_last(const gx_head &g)
{
    return gx_draws_last(g.ticket, gridDim.x * gridDim.y);
}

/* The last block adds up, in the order of the blocks. What a block leaves of the loss is
 * thread 0's, so where that is all its warp is enough. */
template <typename T>
__device__ __forceinline__ void finish(const gx_head &g, double share, float *shared)
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
            add_losses(g, share);
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
        add_losses(g, share);
}

/* --- softmax --- */

/* What the sum over rows is multiplied by; every block counts for itself. */
__device__ __forceinline__ double softmax_share(const gx_head &g)
{
    __shared__ double counted, sums[32];
    int n = 0;

    if (!g.counts)
        return g.share;
    for (int64_t row = threadIdx.x; row < g.rows; row += blockDim.x)
        n += g.labels[row] != g.ignored;
    const double total = gx_block_sum((double)n, sums);

    if (threadIdx.x == 0)
        counted = total;
    __syncthreads();
    return 1.0 / counted;
}

/* A thread's sums of columns over its rows of a block. */
template <int LANES, int PER> struct column_sums {
    float sum[PER];

    __device__ __forceinline__ void start()
    {
#pragma unroll
        for (int i = 0; i < PER; i++)
            sum[i] = 0.0f;
    }
    __device__ __forceinline__ void add(const float (&x)[PER])
    {
#pragma unroll
        for (int i = 0; i < PER; i++)
            sum[i] += x[i];
    }
    /* The warp's, of LANES PER columns in shared memory. */
    __device__ __forceinline__ void leave(float *of_warp) const
    {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const float total = gx_sum_over_rows<LANES>(sum[i]);

            if (threadIdx.x % 32 < LANES)
                of_warp[LANES * i + threadIdx.x % 32] = total;
        }
    }
};

/* The part of a thread in a row of logits x: leaves the derivative in x and in memory.
 * Returns the loss. */
template <typename T, int LANES, int PER>
__device__ __forceinline__ float finish_row(const gx_head &g, float (&x)[PER], int row,
                                            bool has_row, int label, double share)
{
    const int columns = (int)g.columns;
    const bool counts = has_row && !(g.ignores && label == g.ignored);
    const float loss =
        gx_softmax_row<LANES>(x, columns, label, counts, g.smoothing, (float)share);

    if (g.dx != nullptr && has_row)
        gx_store_row<LANES>(static_cast<T *>(g.dx) + (int64_t)row * columns +
                                gx_lane_of<LANES>(),
                            x, columns);
    return loss;
}

/* What all threads have added up: losses, the same in all lanes of a row, and columns.
 * `parts` holds LANES PER floats for each of WARPS. */
template <typename T, int WARPS, int LANES, int PER>
__device__ __forceinline__ void leave_rows(const gx_head &g, double total,
                                           const column_sums<LANES, PER> &sums,
                                           double share, float *parts)
{
    __shared__ double losses[WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    static_assert(WARPS > 1, "one for the loss, others for the columns");
    if (g.loss == nullptr && g.dbias == nullptr)
        return;
    total = gx_sum_over_rows<LANES>(total);
    if (lane == 0)
        losses[warp] = total;
    if (g.dbias != nullptr)
        sums.leave(parts + warp * LANES * PER);
    __syncthreads();
    if (warp == 0) {
        total = gx_warp_sum(lane < WARPS ? losses[lane] : 0.0);
        if (lane == 0)
            leave_loss(g, total, share);
    } else if (g.dbias != nullptr) {
#pragma unroll 1
        for (int c = (int)threadIdx.x - 32; c < (int)g.columns; c += 32 * WARPS - 32) {
            float sum = 0.0f;

#pragma unroll
            for (int w = 0; w < WARPS; w++)
                sum += parts[w * LANES * PER + c];
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
    return (float)g.share;
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
            leave_loss(g, all, g.share);
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
