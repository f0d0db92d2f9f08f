/* Rows of a table by index, and their gradient in a fixed order, without atomics. */
#include "embedding_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int64_t MAX_GRID_Y = 65535;

/* --- forward --- */

/* Threads along x keep to their columns, those along y share the indices. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    embedding_kernel(const __grid_constant__ gx_embedding g)
{
    gx_begin_kernel();
    const T *table = static_cast<const T *>(g.table);
    T *out = static_cast<T *>(g.out);

    for (int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; c < g.columns;
         c += (int64_t)gridDim.x * blockDim.x * N) {
#pragma unroll 2
        for (int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; i < g.n;
             i += (int64_t)gridDim.y * blockDim.y) {
            const int64_t row = g.index[i];
            float v[N];

#pragma unroll
            for (int e = 0; e < N; e++)
                v[e] = NAN;
            if (row >= 0 && row < g.rows)
                gx_load_vector(v, table + row * g.columns + c);
            gx_store_vector(out + i * g.columns + c, v);
        }
    }
}

/* --- the order of the indices --- */

constexpr int TILE = 2048; /* indices in shared memory at once */

/* A block has 32 indices, a lane each; its warps share the indices to compare with. */
__global__ void __launch_bounds__(THREADS)
    embedding_order_kernel(const __grid_constant__ gx_embedding_bwd g)
{
    gx_begin_kernel();
    __shared__ int4 tile[TILE / 4];
    __shared__ int counts[WARPS][32];
    constexpr int PART = TILE / 4 / WARPS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    for (int64_t first = (int64_t)blockIdx.x * 32; first < g.n;
         first += (int64_t)gridDim.x * 32) {
        const int64_t own = first + lane;
        const int mine = own < g.n ? g.index[own] : 0;
        int before = 0;

        for (int64_t start = 0; start < g.n; start += TILE) {
            __syncthreads();
            for (int i = threadIdx.x; i < TILE; i += THREADS)
                reinterpret_cast<int *>(tile)[i] =
                    start + i < g.n ? g.index[start + i] : INT32_MAX;
            __syncthreads();
            /* How far into this warp's part an equal index comes before: past the end of
             * all indices nothing is smaller than mine, or equal and before. */
            const int64_t begin = start + (int64_t)warp * PART * 4;
            const int64_t until = own - begin;

#pragma unroll 4
            for (int i = 0; i < PART; i++) {
                const int4 four = tile[warp * PART + i];
                const int at = 4 * i;

                before += four.x < mine || (four.x == mine && at < until);
                before += four.y < mine || (four.y == mine && at + 1 < until);
                before += four.z < mine || (four.z == mine && at + 2 < until);
                before += four.w < mine || (four.w == mine && at + 3 < until);
            }
        }
        counts[warp][lane] = before;
        __syncthreads();
        if (warp == 0 && own < g.n) {
            int place = 0;

            for (int w = 0; w < WARPS; w++)
                place += counts[w][lane];
            g.sorted[place] = mine;
            g.from[place] = (int)own;
        }
    }
}

/* --- the sums --- */

constexpr int ROWS = 32;  /* of the table, for a block */
constexpr int HEAVY = 64; /* indices from which a row is shared by the block's warps */

/* The first place in the order whose index is `row` or more. */
__device__ __forceinline__ int lower_bound(const gx_embedding_bwd &g, int64_t row)
{
    int low = 0, high = (int)g.n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (g.sorted[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the rows of dy from place `at` on, every `step`th, in their order. */
template <typename T, int N>
__device__ __forceinline__ void add_rows(const gx_embedding_bwd &g, int64_t c, int at,
                                         int end, int step, float (&sum)[N])
{
    const T *dy = static_cast<const T *>(g.dy);

#pragma unroll 4
    for (int64_t i = at; i < end; i += step) {
        float v[N];

        gx_load_vector(v, dy + (int64_t)g.from[i] * g.columns + c);
#pragma unroll
        for (int e = 0; e < N; e++)
            sum[e] += v[e];
    }
}

/* A warp has a row of the table at a time, its lanes the columns; a row that many indices
 * name is left to all warps, which add what they have in their order. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    embedding_sum_kernel(const __grid_constant__ gx_embedding_bwd g)
{
    gx_begin_kernel();
    __shared__ int bounds[ROWS + 1];
    __shared__ float parts[WARPS][32 * N];
    T *dtable = static_cast<T *>(g.dtable);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < g.rows;
         first += (int64_t)gridDim.x * ROWS) {
        const int n_rows = g.rows - first < ROWS ? (int)(g.rows - first) : ROWS;

        __syncthreads();
        if (threadIdx.x <= n_rows)
            bounds[threadIdx.x] = lower_bound(g, first + threadIdx.x);
        __syncthreads();
        for (int64_t tile = (int64_t)blockIdx.y * 32 * N; tile < g.columns;
             tile += (int64_t)gridDim.y * 32 * N) {
            const int64_t c = tile + lane * N;

            for (int r = warp; r < n_rows; r += WARPS) {
                const int at = bounds[r], end = bounds[r + 1];
                float sum[N] = {};

                if (end - at >= HEAVY || c >= g.columns)
                    continue;
                add_rows<T, N>(g, c, at, end, 1, sum);
                gx_store_vector(dtable + (first + r) * g.columns + c, sum);
            }
            for (int r = 0; r < n_rows; r++) {
                const int at = bounds[r], end = bounds[r + 1];
                float sum[N] = {};

                if (end - at < HEAVY)
                    continue;
                if (c < g.columns)
                    add_rows<T, N>(g, c, at + warp, end, WARPS, sum);
                __syncthreads();
#pragma unroll
                for (int e = 0; e < N; e++)
                    parts[warp][lane * N + e] = sum[e];
                __syncthreads();
                if (warp != 0 || c >= g.columns)
                    continue;
                for (int w = 1; w < WARPS; w++) {
#pragma unroll
                    for (int e = 0; e < N; e++)
                        sum[e] += parts[w][lane * N + e];
                }
                gx_store_vector(dtable + (first + r) * g.columns + c, sum);
            }
        }
    }
}

/* --- launching --- */

static const void *instance(const gx_embedding *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->wide ? (const void *)embedding_kernel<T, 4>
                       : (const void *)embedding_kernel<T, 1>;
    });
}

static const void *sum_instance(const gx_embedding_bwd *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->wide ? (const void *)embedding_sum_kernel<T, 4>
                       : (const void *)embedding_sum_kernel<T, 1>;
    });
}

} // namespace

extern "C" gx_status gx_embedding_load(const gx_embedding *embedding, gx_error *err)
{
    return gx_load_kernel(instance(embedding), 0, "embedding_kernel", err);
}

extern "C" gx_status gx_embedding_launch(const gx_embedding *embedding, gx_ctx *ctx,
                                         gx_error *err)
{
    const int64_t vectors = gx_divide_up(embedding->columns, embedding->wide ? 4 : 1);
    unsigned x = 1;
    void *args[] = { (void *)embedding };

    while (x < THREADS && x < vectors)
        x *= 2;
    const dim3 block(x, THREADS / x);

    return gx_launch(ctx, "embedding_kernel", instance(embedding),
                     dim3(gx_grid_for(vectors, x, INT32_MAX),
                          gx_grid_for(embedding->n, block.y, MAX_GRID_Y)),
                     block, 0, args, err);
}

extern "C" gx_status gx_embedding_bwd_load(const gx_embedding_bwd *embedding,
                                           gx_error *err)
{
    if (embedding->n > 0)
        GX_TRY(gx_load_kernel((const void *)embedding_order_kernel, 0,
                              "embedding_order_kernel", err));
    return gx_load_kernel(sum_instance(embedding), 0, "embedding_sum_kernel", err);
}

extern "C" gx_status gx_embedding_bwd_launch(const gx_embedding_bwd *embedding,
                                             gx_ctx *ctx, gx_error *err)
{
    const int64_t width = 32 * (embedding->wide ? 4 : 1);
    void *args[] = { (void *)embedding };

    if (embedding->n > 0)
        GX_TRY(gx_launch(
            ctx, "embedding_order_kernel", (const void *)embedding_order_kernel,
            dim3(gx_grid_for(embedding->n, 32, INT32_MAX)), dim3(THREADS), 0, args, err));
    return gx_launch(ctx, "embedding_sum_kernel", sum_instance(embedding),
                     dim3(gx_grid_for(embedding->rows, ROWS, INT32_MAX),
                          gx_grid_for(embedding->columns, width, MAX_GRID_Y)),
                     dim3(THREADS), 0, args, err);
}
