/* The way back through an epilogue in f32 that leaves what it makes transposed too: tile
 * by tile through shared memory, so that reads and both writes are in order. */
#include "column_sums.cuh"
#include "epilogue_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int N = gx_widest<float>;
constexpr int X = 16, Y = 16; /* threads along columns and rows */
constexpr int EDGE = X * N, EACH = EDGE / Y;
constexpr int GROUPS = 32 / N; /* N rows each, that a warp turns at once, of N columns */
constexpr int MAX_GRID_Y = 65535;

using quad = gx_vector<float, N>;

/* Where quad x of row r stands: stores of a row and loads of a column, N rows at a time,
 * each meet every bank of shared memory once. */
__device__ __forceinline__ int place(int r, int x)
{
    return r * X + (x ^ (r / N % GROUPS));
}

/* `n_rows` of a tile, of which the thread's first vector is `at`; the others are zeros.
 * All loads stand ahead of the first store, which may be to where dy was. */
template <int ACT>
__device__ __forceinline__ void go_back(const gx_epilogue_bwd &e, int64_t at, int n_rows,
                                        float (&total)[N], quad *tile)
{
    const float *dy = static_cast<const float *>(e.dy) + at;
    const float *saved =
        ACT == GX_ACT_NONE ? dy : static_cast<const float *>(e.saved) + at;
    float *dx = static_cast<float *>(e.dx);
    const int64_t step = Y * e.columns;
    quad d[EACH], s[EACH];

#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool is_there = k * Y + (int)threadIdx.y < n_rows;

        d[k] = is_there ? gx_vector_at<N>(dy + k * step) : quad{};
        s[k] = ACT == GX_ACT_NONE || !is_there ? d[k] : gx_vector_at<N>(saved + k * step);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int r = k * Y + (int)threadIdx.y;
        float v[N];

#pragma unroll
        for (int i = 0; i < N; i++) {
            v[i] = gx_act_backward(ACT, d[k].at[i], s[k].at[i]);
            total[i] += v[i];
        }
        if (dx != nullptr && r < n_rows)
            gx_store_widest(dx + at + k * step, v);
        gx_store_vector(tile[place(r, (int)threadIdx.x)].at, v);
    }
}

/* The tile to where its first element goes: N rows of a column at a time, which are
 * neighbours there. */
__device__ __forceinline__ void store_turned(float *to, int64_t pitch, int n_rows,
                                             int n_columns, const quad *tile)
{
    const int own = (int)(threadIdx.y * X + threadIdx.x), lane = own % 32;
    constexpr int WARPS = X * Y / 32, PARTS = EDGE / (GROUPS * N);

    /* More at once would take more registers than four blocks of a multiprocessor have.
     */
#pragma unroll 2
    for (int k = 0; k < X * PARTS / WARPS; k++) {
        const int part = own / 32 + k * WARPS, x = part / PARTS;
        const int r = (part % PARTS * GROUPS + lane % GROUPS) * N;
        const int c = x * N + lane / GROUPS;
        float v[N];

        if (r >= n_rows || c >= n_columns)
            continue;
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = tile[place(r + i, x)].at[lane / GROUPS];
        gx_store_widest(to + c * pitch + r, v);
    }
}

/* Of so many, those that one tile has. */
__device__ __forceinline__ int within_tile(int64_t n)
{
    return (int)(n < EDGE ? n : EDGE);
}

template <int ACT>
__global__ void __launch_bounds__(X *Y, 4)
    epilogue_bwd_turned_kernel(const __grid_constant__ gx_epilogue_turned t)
{
    __shared__ quad tile[EDGE * X];
    __shared__ float sums[Y][EDGE], blocks[GX_MAX_CLUSTER][EDGE];
    float *dbias = static_cast<float *>(t.back.dbias);
    const int64_t column = (int64_t)blockIdx.x * EDGE, c = column + threadIdx.x * N;
    const int64_t step = (int64_t)gridDim.y * EDGE;
    float total[N] = {};

    if (dbias != nullptr && gridDim.y > 1)
        gx_arrive_at_cluster(false);
    gx_begin_kernel();
    for (int64_t row = (int64_t)blockIdx.y * EDGE; row < t.back.rows; row += step) {
        const int n_rows = within_tile(t.back.rows - row);

        go_back<ACT>(t.back, (row + threadIdx.y) * t.back.columns + c,
                     c < t.back.columns ? n_rows : 0, total, tile);
        __syncthreads();
        store_turned(t.turned + column * t.pitch + row, t.pitch, n_rows,
                     within_tile(t.back.columns - column), tile);
        __syncthreads();
    }
    if (dbias != nullptr)
        gx_store_column_sums<X, Y>(dbias, t.back.columns, total, sums, blocks);
}

static const void *instance(const gx_epilogue_turned *t)
{
    switch (t->back.act) {
#define TURNED_CASE(act, name, reads, flops) \
    case GX_ACT_##act:                       \
        return gx_kernel(epilogue_bwd_turned_kernel<GX_ACT_##act>);
        GX_ACT_LIST(TURNED_CASE)
#undef TURNED_CASE
    default:
        return nullptr;
    }
}

} // namespace

extern "C" gx_status gx_epilogue_turned_load(const gx_epilogue_turned *turned,
                                             gx_error *err)
{
    return gx_load_kernel(instance(turned), 0, "epilogue_bwd_turned_kernel", err);
}

extern "C" gx_status gx_epilogue_turned_launch(const gx_epilogue_turned *turned,
                                               gx_ctx *ctx, gx_error *err)
{
    const bool has_sums = turned->back.dbias != NULL;
    const unsigned blocks_x = gx_grid_for(turned->back.columns, EDGE, INT32_MAX);
    const unsigned blocks_y =
        gx_grid_for(turned->back.rows, EDGE, has_sums ? GX_MAX_CLUSTER : MAX_GRID_Y);
    void *args[] = { (void *)turned };

    return gx_launch_cluster(ctx, "epilogue_bwd_turned_kernel", instance(turned),
                             dim3(blocks_x, blocks_y), dim3(X, Y),
                             has_sums ? blocks_y : 1, 0, args, err);
}
