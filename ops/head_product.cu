/* The last product of a network with everything up to the bias's gradient behind it: a
 * block makes some rows of x, its warps share k, and their sums meet in shared memory. */
#include "direct.cuh"
#include "head.cuh"

namespace
{

/* The total of one element of a tile, warps in order. */
template <int BM, int LD, int WK>
__device__ __forceinline__ float tile_total(const float *sums, int r, int c)
{
    float x = 0.0f;

#pragma unroll
    for (int w = 0; w < WK; w++)
        x += sums[(w * BM + r) * LD + c];
    return x;
}

/* On the tensor cores, as direct.cuh says: 16 MI rows, and NP pieces of 16 columns, of
 * which a thread holds two neighbours each. B_TURNED: b is stored [n, k]. */
template <typename T, bool B_TURNED, int MI, int NP, int WK> struct tensor_product {
    static constexpr int BM = 16 * MI, BN = 16 * NP, THREADS = 32 * WK, LD = BN + 1;
    static constexpr int WORDS = GX_DIRECT_WORDS<T>, ROWS = 2 * MI;
    /* Chunks in flight: as many as 64 registers hold. */
    static constexpr int IN_FLIGHT = 64 / (WORDS * (ROWS + 2 * NP));
    static constexpr int TURN = IN_FLIGHT < 1 ? 1 : IN_FLIGHT > 4 ? 4 : IN_FLIGHT;

    float sum[MI][2 * NP][4];
    uint32_t a[TURN][ROWS][WORDS], b[TURN][NP][2][WORDS];

    direct_lines<T, ROWS, true> lines_a; /* where the thread's part of a turn begins */

    __device__ __forceinline__ void load_a(const direct_operand<T> &p, int row, int chunk)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
        for (int i = 0; i < TURN; i++)
            load_lines<false>(a[i], p, lines_a, i * WK * 16, row + ROWS * g,
                              (chunk + i * WK) * 16 + 4 * t);
    }

    __device__ __forceinline__ void load_b(const direct_operand<T> &p, int column,
                                           int chunk)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
        for (int i = 0; i < TURN; i++) {
#pragma unroll
            for (int piece = 0; piece < NP; piece++)
                load_chunk<T, 2, B_TURNED, false>(b[i][piece], p,
                                                  column + 16 * piece + 2 * g,
                                                  (chunk + i * WK) * 16 + 4 * t);
        }
    }

    __device__ __forceinline__ void round_operands()
    {
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int i = 0; i < TURN; i++) {
#pragma unroll
                for (int w = 0; w < WORDS; w++) {
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        a[i][r][w] = direct_tf32(a[i][r][w]);
#pragma unroll
                    for (int c = 0; c < 2 * NP; c++)
                        b[i][c / 2][c % 2][w] = direct_tf32(b[i][c / 2][c % 2][w]);
                }
            }
        }
    }

    __device__ __forceinline__ void multiply()
    {
        round_operands();
#pragma unroll
        for (int i = 0; i < TURN; i++) {
#pragma unroll
            for (int x = 0; x < MI; x++) {
#pragma unroll
                for (int y = 0; y < 2 * NP; y++)
                    multiply_chunk<T>(sum[x][y], a[i][2 * x], a[i][2 * x + 1],
                                      b[i][y / 2][y % 2]);
            }
        }
    }

    /* Rows g and g + 8 of an instruction are rows 2x and 2x + 1 of what the thread holds,
     * and its columns 2t and 2t + 1 are column y % 2 of threads 2t and 2t + 1. */
    __device__ __forceinline__ void leave(float *sums) const
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int y = 0; y < 2 * NP; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sums[(warp * BM + ROWS * g + 2 * x + e / 2) * LD + 16 * (y / 2) +
                         2 * (2 * t + e % 2) + y % 2] = sum[x][y][e];
            }
        }
    }

    /* Leaves the warps' sums for every thread. Waits for the kernels before on the way;
     * `meanwhile` loads what else is needed. */
    template <typename MEANWHILE>
    __device__ __forceinline__ void run(const gx_head &g, int row, int column,
                                        float *sums, MEANWHILE &&meanwhile)
    {
        const direct_operand<T> pa = { static_cast<const T *>(g.a), g.a_row, (int)g.rows,
                                       (int)g.k };
        const direct_operand<T> pb = { static_cast<const T *>(g.b),
                                       B_TURNED ? g.b_column : g.b_k, (int)g.columns,
                                       (int)g.k };
        const int n_chunks = ((int)g.k + 15) / 16;
        int chunk = threadIdx.x / 32;

#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int y = 0; y < 2 * NP; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[x][y][e] = 0.0f;
            }
        }
        lines_a.start(pa, row + ROWS * (int)(threadIdx.x % 32 / 4),
                      chunk * 16 + 4 * (int)(threadIdx.x % 4));
        lines_a.settle();
        if (g.steady_b)
            load_b(pb, column, chunk);
        gx_find_ahead(lines_a.at[0], lines_a.at[lines_a.KEPT - 1]);
        gx_begin_kernel();
        load_a(pa, row, chunk);
        if (!g.steady_b)
            load_b(pb, column, chunk);
        meanwhile();
        multiply();
        for (chunk += TURN * WK; chunk < n_chunks; chunk += TURN * WK) {
            lines_a.advance(16 * TURN * WK);
            load_a(pa, row, chunk);
            load_b(pb, column, chunk);
            multiply();
        }
        leave(sums);
        __syncthreads();
    }
};

/* On the ordinary cores, for operands that lie anyhow: warp w takes k = w, w + WK, ...;
 * thread (g, t) has rows g and g + 8 and columns 4t .. 4t + 3 of each piece of 16. */
template <typename T, int NP, int WK> struct plain_product {
    static constexpr int BM = 16, BN = 16 * NP, THREADS = 32 * WK, LD = BN + 1;

    float sum[2][4 * NP];

    template <typename MEANWHILE>
    __device__ __forceinline__ void run(const gx_head &h, int row, int column,
                                        float *sums, MEANWHILE &&meanwhile)
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const T *a = static_cast<const T *>(h.a), *b = static_cast<const T *>(h.b);

#pragma unroll
        for (int j = 0; j < 4 * NP; j++)
            sum[0][j] = sum[1][j] = 0.0f;
        gx_begin_kernel();
        meanwhile();
#pragma unroll 4
        for (int k = warp; k < (int)h.k; k += WK) {
            float x[2];

#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int r = row + g + 8 * i;

                x[i] = r < (int)h.rows ? gx_to_float(a[r * h.a_row + k * h.a_k]) : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < 4 * NP; j++) {
                const int c = column + j / 4 * 16 + 4 * t + j % 4;
                const float y = c < (int)h.columns
                                    ? gx_to_float(b[k * h.b_k + c * h.b_column])
                                    : 0.0f;

                sum[0][j] += x[0] * y;
                sum[1][j] += x[1] * y;
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int j = 0; j < 4 * NP; j++)
                sums[(warp * BM + g + 8 * i) * LD + j / 4 * 16 + 4 * t + j % 4] =
                    sum[i][j];
        }
        __syncthreads();
    }
};

/* A row of the tile is LANES threads', each of which makes PER of its elements. */
template <typename T, typename PRODUCT>
__device__ __forceinline__ void softmax_of_product(const gx_head &g, float *tile)
{
    constexpr int BM = PRODUCT::BM, BN = PRODUCT::BN, LD = PRODUCT::LD;
    constexpr int WK = PRODUCT::THREADS / 32, LANES = BN < 32 ? BN : 32, PER = BN / LANES;
    constexpr int AT_ONCE = PRODUCT::THREADS / LANES,
                  TURNS = (BM + AT_ONCE - 1) / AT_ONCE;
    __shared__ float parts[WK * BN];
    const int row = (int)blockIdx.y * BM, first = (int)threadIdx.x / LANES;
    const int c = gx_lane_of<LANES>(), columns = (int)g.columns;
    column_sums<LANES, PER> sums;
    float bias[PER];
    int label[TURNS];
    double total = 0.0;
    PRODUCT product;

    product.run(g, row, 0, tile, [&] {
#pragma unroll
        for (int i = 0; i < PER; i++)
            bias[i] = g.bias != nullptr && c + LANES * i < columns
                          ? gx_to_float(static_cast<const T *>(g.bias)[c + LANES * i])
                          : 0.0f;
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            const int r = first + i * AT_ONCE;

            label[i] = r < BM && row + r < (int)g.rows ? g.labels[row + r] : 0;
        }
    });
    const double share = softmax_share(g);

    sums.start();
#pragma unroll
    for (int turn = 0; turn < TURNS; turn++) {
        const int r = first + turn * AT_ONCE;
        const bool has_row = r < BM && row + r < (int)g.rows;
        float x[PER];

#pragma unroll
        for (int i = 0; i < PER; i++)
            x[i] = has_row && c + LANES * i < columns
                       ? tile_total<BM, LD, WK>(tile, r, c + LANES * i) + bias[i]
                       : -INFINITY;
        if (g.out != nullptr && has_row)
            gx_store_row<LANES>(
                static_cast<T *>(g.out) + (int64_t)(row + r) * columns + c, x, columns);
        total += finish_row<T, LANES>(g, x, row + r, has_row, label[turn], share);
        sums.add(x);
    }
    leave_rows<T, WK>(g, total, sums, share, parts);
    finish<T>(g, share, tile);
}

template <typename T, typename PRODUCT>
__device__ __forceinline__ void points_of_product(const gx_head &g, float *tile)
{
    constexpr int BM = PRODUCT::BM, BN = PRODUCT::BN, LD = PRODUCT::LD;
    constexpr int WK = PRODUCT::THREADS / 32, STEP = PRODUCT::THREADS / BN;
    constexpr int PER_THREAD = (BM + STEP - 1) / STEP;
    __shared__ double sums[32];
    const int row = (int)blockIdx.y * BM, column = (int)blockIdx.x * BN;
    const int c = threadIdx.x % BN, first = threadIdx.x / BN;
    const bool has_column = column + c < (int)g.columns;
    const float scale = (float)g.share;
    float bias = 0.0f, target[PER_THREAD], total = 0.0f, column_sum = 0.0f;
    PRODUCT product;

    static_assert(PRODUCT::THREADS % BN == 0, "a thread would meet several columns");
    product.run(g, row, column, tile, [&] {
        if (g.bias != nullptr && has_column)
            bias = gx_to_float(static_cast<const T *>(g.bias)[column + c]);
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++) {
            const int r = first + i * STEP;

            target[i] = r < BM && row + r < (int)g.rows && has_column
                            ? target_at<T>(g, (row + r) * g.columns + column + c)
                            : 0.0f;
        }
    });
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const int r = first + i * STEP;
        const int64_t at = (row + r) * g.columns + column + c;

        if (r >= BM || row + r >= (int)g.rows || !has_column)
            continue;
        const float x = tile_total<BM, LD, WK>(tile, r, c) + bias;

        if (g.out != nullptr)
            gx_store(static_cast<T *>(g.out) + at, x);
        column_sum += point_at<T>(g, at, x, target[i], scale, &total);
    }
    leave_points<T, BN>(g, column, total, column_sum, tile, sums);
    finish<T>(g, g.share, tile);
}

/* Bias, labels and targets are loaded while the operands are on their way. */
template <typename T, typename PRODUCT, bool SOFTMAX>
__global__ void __launch_bounds__(PRODUCT::THREADS, 1)
    head_kernel(const __grid_constant__ gx_head g)
{
    GX_DYNAMIC_SHARED(float, tile);

    if constexpr (SOFTMAX)
        softmax_of_product<T, PRODUCT>(g, tile);
    else
        points_of_product<T, PRODUCT>(g, tile);
}

template <typename T, typename PRODUCT> const void *of_loss(const gx_head *head)
{
    return head->is_softmax ? gx_kernel(head_kernel<T, PRODUCT, true>)
                            : gx_kernel(head_kernel<T, PRODUCT, false>);
}

template <typename T, bool B_TURNED> const void *tensor_kernel(const gx_head *head)
{
    switch (head->shape) {
#define TENSOR_CASE(i, rows, columns, warps)                                            \
    case i:                                                                             \
        return of_loss<T, tensor_product<T, B_TURNED, rows / 16, columns / 16, warps>>( \
            head);
        GX_HEAD_TENSOR_LIST(TENSOR_CASE)
#undef TENSOR_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *plain_kernel(const gx_head *head)
{
    switch (head->shape) {
#define PLAIN_CASE(i, rows, columns, warps) \
    case i:                                 \
        return of_loss<T, plain_product<T, columns / 16, warps>>(head);
        GX_HEAD_PLAIN_LIST(PLAIN_CASE)
#undef PLAIN_CASE
    default:
        return nullptr;
    }
}

} // namespace

extern "C" const void *gx_head_tensor_kernel(const gx_head *head)
{
    const bool turned = head->b_k == 1;

    return gx_with_type(head->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return turned ? tensor_kernel<T, true>(head) : tensor_kernel<T, false>(head);
    });
}

extern "C" const void *gx_head_plain_kernel(const gx_head *head)
{
    return gx_with_type(head->dtype, [&](auto of) {
        return plain_kernel<typename decltype(of)::type>(head);
    });
}
