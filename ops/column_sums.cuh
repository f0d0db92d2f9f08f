/* The sums of a matrix's columns, of which each block of a cluster has added up some
 * rows. */
#ifndef GX_COLUMN_SUMS_CUH
#define GX_COLUMN_SUMS_CUH

#include "cluster.cuh"

/* Threads of a block are X x Y, each with the totals of N columns; blockIdx.x counts the
 * columns' blocks, blockIdx.y those of a cluster, all of gridDim.y. Threads of one column
 * add in the order of y, blocks of a cluster in theirs. Where there are several, each
 * thread has arrived at the cluster's barrier once since the kernel began. */
template <int X, int Y, int N, typename T>
static __device__ __forceinline__ void
gx_store_column_sums(T *to, int64_t columns, const float (&total)[N],
                     float (&sums)[Y][X * N], float (&blocks)[GX_MAX_CLUSTER][X * N])
{
    constexpr int WIDTH = X * N;
    const int own = (int)(threadIdx.y * X + threadIdx.x);
    const int64_t column = (int64_t)blockIdx.x * WIDTH + own;
    const bool is_cluster = gridDim.y > 1;
    float sum = 0.0f;

    static_assert(X * Y >= WIDTH, "a thread for each column");
#pragma unroll
    for (int i = 0; i < N; i++)
        sums[threadIdx.y][threadIdx.x * N + i] = total[i];
    __syncthreads();
    if (is_cluster)
        gx_wait_for_cluster(); /* every block of it has begun */
    if (own < WIDTH) {
        for (int y = 0; y < Y; y++)
            sum += sums[y][own];
        if (is_cluster)
            gx_store_at_first(&blocks[blockIdx.y][own], sum);
    }
    if (is_cluster) {
        gx_arrive_at_cluster(true);
        gx_wait_for_cluster();
        sum = 0.0f;
        for (int b = 0; own < WIDTH && b < (int)gridDim.y; b++)
            sum += blocks[b][own];
    }
    if (own < WIDTH && column < columns && blockIdx.y == 0)
        gx_store(to + column, sum);
}

#endif
