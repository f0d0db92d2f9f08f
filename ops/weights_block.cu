/* The gradients of the parameters of several layers (weights.cu), a tile a block. Of a
 * batch of more than a few rows a warp would wait for its operands turn by turn, so all
 * rows of the block's operands are on their way to shared memory at once. With the update
 * of what they are the gradients of, or without. */
#include "gemm_multiply.cuh"
#include "weights_block.h"
#include "weights_tiles.cuh"
#include "weights_update.cuh"

namespace
{

constexpr int GROUP = 64, GROUPS = GX_WEIGHTS_MOST_ROWS / GROUP; /* rows that arrive */
constexpr int WARP_ROWS = 32, WARP_COLUMNS = 16;                 /* what a warp makes */
static_assert(GX_WEIGHTS_MOST_ROWS % GROUP == 0 && GROUPS >= 2,
              "whole groups, two waits");

template <int MATH>
using element_of =
    std::conditional_t<MATH == GX_TILE_BF16, __nv_bfloat16,
                       std::conditional_t<MATH == GX_TILE_F16, __half, float>>;

__host__ __device__ constexpr int padded(int k)
{
    return (k + GX_TILE_SLICE - 1) / GX_TILE_SLICE * GX_TILE_SLICE;
}

/* Rows in shared memory are 8 elements longer than what is used of them, so that those of
 * a fragment lie in other banks. */
template <int MATH, int BM, int BN> struct block_tile {
    using T = element_of<MATH>;
    static constexpr int THREADS = 32 * (BM / WARP_ROWS) * (BN / WARP_COLUMNS);
    static constexpr int LD_A = BM + 8, LD_B = BN + 8, SUM_LD = BN + 8;
    static constexpr int N = gx_widest<T>; /* elements of a copy, and of an update */
    static constexpr int LINES = BM * BN / N / THREADS; /* of a thread */

    static constexpr size_t shared_bytes(int k)
    {
        const size_t operands = sizeof(T) * (size_t)padded(k) * (LD_A + LD_B);
        const size_t sums = sizeof(float) * (BM * SUM_LD + BM * BN / WARP_COLUMNS);

        return operands > sums ? operands : sums;
    }
};

/* What a thread copies of an operand: vectors of one column, STEP rows apart. */
template <typename T, int WIDTH, int LD, int THREADS> struct block_copies {
    static constexpr int N = gx_widest<T>, OF_ROW = WIDTH / N, STEP = THREADS / OF_ROW;
    static constexpr int COPIES = GROUP / STEP; /* of a group */
    static_assert(THREADS % OF_ROW == 0 && GROUP % STEP == 0, "whole rows");

    const T *from;
    T *to;
    int ld, first, n_k; /* from row to row; the thread's first row; rows that are there */

    __device__ __forceinline__ block_copies(T *shared, const void *operand, int lines,
                                            int outer, int n_outer, int rows)
        : ld(lines), first((int)threadIdx.x / OF_ROW)
    {
        const int c = (int)threadIdx.x % OF_ROW * N;

        from = static_cast<const T *>(operand) + (int64_t)first * ld + outer + c;
        to = shared + first * LD + c;
        n_k = outer + c < n_outer ? rows : 0;
    }

    /* Rows up to `end`; those that are not there are zeros. */
    __device__ __forceinline__ void copy_group(int group, int end) const
    {
#pragma unroll
        for (int u = 0; u < COPIES; u++) {
            const int ahead = group * GROUP + u * STEP, k = first + ahead;

            if (k < end)
                gx_copy_async<16>(to + ahead * LD, from + (int64_t)ahead * ld,
                                  k < n_k ? 16 : 0);
        }
    }
};

/* The sums along k of the lines of an operand that the warp's tile has, in f32 and always
 * in one order. Lanes share a line where there are fewer of them, and the SHARING warps
 * that have the same lines share the slices. */
template <int LINES, int SHARING> struct line_tally {
    static constexpr int PARTS = 32 / LINES, OF_SLICE = GX_TILE_SLICE / PARTS;
    static constexpr int STEP = SHARING * GX_TILE_SLICE;
    static_assert(GROUP % STEP == 0, "each warp has as many slices of a group");
    float sum = 0.0f;

    /* Of the slices from row `k` to `end` the warp's, which is the `part`-th of those
     * that share them. */
    template <typename T>
    __device__ __forceinline__ void take(const T *at, int ld, int part, int k, int end)
    {
        const int lane = threadIdx.x % 32;
        const T *from =
            at + (k + part * GX_TILE_SLICE + lane / LINES) * ld + lane % LINES;

#pragma unroll 1
        for (k += part * GX_TILE_SLICE; k < end; k += STEP, from += STEP * ld) {
            float x[OF_SLICE];

#pragma unroll
            for (int i = 0; i < OF_SLICE; i++)
                x[i] = gx_to_float(from[i * PARTS * ld]);
#pragma unroll
            for (int n = OF_SLICE / 2; n > 0; n /= 2) {
#pragma unroll
                for (int i = 0; i < n; i++)
                    x[i] += x[i + n];
            }
            sum += x[0];
        }
    }

    __device__ __forceinline__ void fold()
    {
#pragma unroll
        for (int step = LINES; step < 32; step *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
};

/* A block's tile of one layer. UPDATES: it is used up at once. */
template <int MATH, int BM, int BN, bool OF_A, bool UPDATES> struct block_maker {
    using TILE = block_tile<MATH, BM, BN>;
    using T = typename TILE::T;
    static constexpr int N = TILE::N, LINES = TILE::LINES;
    static constexpr int TALLIED = OF_A ? WARP_ROWS : WARP_COLUMNS;
    static constexpr int SHARING = OF_A ? BN / WARP_COLUMNS : BM / WARP_ROWS;
    static constexpr int ALL_TALLIED = OF_A ? BM : BN;
    using LINE = adam_line<T, N / 2>;

    const gx_weights_layer &layer;
    const int l;
    T *const a, *const b;
    float *const sums;
    const int k_end;
    int row, column; /* of the tile */
    int i, j;        /* of the warp's part of it */
    bool tallies;    /* the sums of lines are this block's to make */
    float sum[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    line_tally<TALLIED, SHARING> tally;
    LINE line[LINES], of_bias; /* of UPDATES */
    step_factors found;

    __device__ __forceinline__ block_maker(const gx_weights &weights,
                                           unsigned char *shared)
        : layer(weights.layer[layer_of(weights, blockIdx.x)]),
          l((int)(&layer - weights.layer)), a(reinterpret_cast<T *>(shared)),
          b(a + padded(layer.k) * TILE::LD_A), sums(reinterpret_cast<float *>(shared)),
          k_end(padded(layer.k))
    {
        const int warp = (int)gx_warp_of_block();

        find_place<BM, BN>(weights, l, blockIdx.x, &row, &column);
        i = warp % (BM / WARP_ROWS) * WARP_ROWS;
        j = warp / (BM / WARP_ROWS) * WARP_COLUMNS;
        tallies = (UPDATES || layer.dbias != nullptr) && (OF_A ? column : row) == 0;
    }

    /* The vector of the tile that is the thread's v-th: its place, and whether it is of
     * the layer. */
    __device__ __forceinline__ bool find_vector(int v, int *r, int *c) const
    {
        const int e = (int)threadIdx.x + v * TILE::THREADS;

        *r = e / (BN / N);
        *c = e % (BN / N) * N;
        return row + *r < layer.m && column + *c < layer.n;
    }

    /* Which of the warps that share the lines it is. */
    __device__ __forceinline__ int part() const
    {
        return OF_A ? j / WARP_COLUMNS : i / WARP_ROWS;
    }

    /* The line that the thread finishes, or -1. */
    __device__ __forceinline__ int tallied_line() const
    {
        const int t = (int)threadIdx.x, at = (OF_A ? row : column) + t;

        return tallies && t < ALL_TALLIED && at < (OF_A ? layer.m : layer.n) ? at : -1;
    }

    __device__ __forceinline__ void load_updated(const gx_weights_update &update)
    {
        const int at_bias = tallied_line();

#pragma unroll
        for (int v = 0; v < LINES; v++) {
            int r, c;
            const bool is_there = find_vector(v, &r, &c);

            line[v].load(update.weight[l], (int64_t)(row + r) * layer.n + column + c,
                         is_there ? N : 0, true);
        }
        if (at_bias >= 0)
            of_bias.template load_some<1>(update.bias[l], at_bias, 0);
    }

    /* Waits for the kernels before on the way: what is updated is loaded ahead of that
     * where none of them wrote it. */
    __device__ __forceinline__ void fetch(const gx_weights_update *update)
    {
        const block_copies<T, BM, TILE::LD_A, TILE::THREADS> of_a(a, layer.a, layer.lda,
                                                                  row, layer.m, layer.k);
        const block_copies<T, BN, TILE::LD_B, TILE::THREADS> of_b(
            b, layer.b, layer.ldb, column, layer.n, layer.k);
        const bool is_ahead = UPDATES && update->is_ahead;

        if (!is_ahead)
            gx_begin_kernel();
        if constexpr (UPDATES) {
            found.load(*update);
            load_updated(*update);
        }
        if (is_ahead)
            gx_begin_kernel();
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            if (group * GROUP < k_end) {
                of_a.copy_group(group, k_end);
                of_b.copy_group(group, k_end);
            }
            gx_commit_copies();
        }
        if constexpr (UPDATES)
            found.make(*update);
    }

    __device__ __forceinline__ void multiply_slice(int k)
    {
        multiply<MATH, WARP_ROWS / 16, WARP_COLUMNS / 8, T>(
            sum, { a, 1, TILE::LD_A }, { b, 1, TILE::LD_B }, i, j, k);
    }

    /* Once the thread's copies of the group are there. */
    __device__ __forceinline__ void take_group(int group)
    {
        const int first = group * GROUP;
        const int end = first + GROUP < k_end ? first + GROUP : k_end;

        __syncthreads();
        if (end == first + GROUP) {
#pragma unroll
            for (int k = 0; k < GROUP; k += GX_TILE_SLICE)
                multiply_slice(first + k);
        } else {
#pragma unroll 1
            for (int k = first; k < end; k += GX_TILE_SLICE)
                multiply_slice(k);
        }
        if (tallies)
            tally.take(OF_A ? a + i : b + j, OF_A ? TILE::LD_A : TILE::LD_B, part(),
                       first, end);
    }

    __device__ __forceinline__ void take_all()
    {
        gx_wait_copies<GROUPS - 1>();
        take_group(0);
        gx_wait_copies<GROUPS - 2>();
        if (k_end > GROUP)
            take_group(1);
        gx_wait_copies<0>();
#pragma unroll 1
        for (int group = 2; group * GROUP < k_end; group++)
            take_group(group);
    }

    /* From where a warp has its sums to rows for vectors; behind them the parts of those
     * of lines. */
    __device__ __forceinline__ void leave_sums()
    {
        const int lane = threadIdx.x % 32;
        float *const to = sums + (i + lane / 4) * TILE::SUM_LD + j + lane % 4 * 2;

        __syncthreads();
#pragma unroll
        for (int x = 0; x < WARP_ROWS; x += 8) {
#pragma unroll
            for (int y = 0; y < WARP_COLUMNS; y += 8) {
                const float *from = &sum[x / 16][y / 8][x / 8 % 2 * 2];

                *reinterpret_cast<float2 *>(to + x * TILE::SUM_LD + y) =
                    make_float2(from[0], from[1]);
            }
        }
        if (tallies) {
            tally.fold();
            if (lane < TALLIED)
                sums[BM * TILE::SUM_LD + part() * ALL_TALLIED + (OF_A ? i : j) + lane] =
                    tally.sum;
        }
        __syncthreads();
    }

    __device__ __forceinline__ void finish_weights(const gx_weights_update *update)
    {
#pragma unroll
        for (int v = 0; v < LINES; v++) {
            int r, c;
            const bool is_there = find_vector(v, &r, &c);
            const int64_t at = (int64_t)(row + r) * layer.n + column + c;
            float g[N];

            if (!is_there)
                continue;
#pragma unroll
            for (int x = 0; x < N; x += 4)
                memcpy(&g[x], sums + r * TILE::SUM_LD + c + x, 4 * sizeof(float));
            if (layer.out != nullptr)
                gx_store_vector<T, N>(static_cast<T *>(layer.out) + at, g);
            if constexpr (UPDATES)
                line[v].finish(update->weight[l], at, N, true, g, update->settings,
                               found.all, found.now);
        }
    }

    __device__ __forceinline__ void finish_bias(const gx_weights_update *update)
    {
        const float *const parts = sums + BM * TILE::SUM_LD + threadIdx.x;
        const int at = tallied_line();
        float total = 0.0f;

        if (at < 0)
            return;
#pragma unroll
        for (int p = 0; p < SHARING; p++)
            total += parts[p * ALL_TALLIED];
        if (layer.dbias != nullptr)
            gx_store(static_cast<T *>(layer.dbias) + at, total);
        if constexpr (UPDATES)
            of_bias.template finish_some<1>(update->bias[l], at, 0, &total,
                                            update->settings, found.all, found.now);
    }
};

template <int MATH, int BM, int BN, bool OF_A>
__global__ void __launch_bounds__(block_tile<MATH, BM, BN>::THREADS)
    weights_block_kernel(const __grid_constant__ gx_weights weights)
{
    GX_DYNAMIC_SHARED(unsigned char, shared);
    block_maker<MATH, BM, BN, OF_A, false> maker(weights, shared);

    maker.fetch(nullptr);
    maker.take_all();
    maker.leave_sums();
    maker.finish_weights(nullptr);
    maker.finish_bias(nullptr);
}

template <int MATH, int BM, int BN, bool OF_A>
__global__ void __launch_bounds__(block_tile<MATH, BM, BN>::THREADS)
    weights_update_block_kernel(const __grid_constant__ gx_weights_update update)
{
    GX_DYNAMIC_SHARED(unsigned char, shared);
    block_maker<MATH, BM, BN, OF_A, true> maker(update.weights, shared);

    maker.fetch(&update);
    maker.take_all();
    maker.leave_sums();
    maker.finish_weights(&update);
    maker.finish_bias(&update);
}

/* --- choosing the instantiation --- */

template <int MATH, int BM, int BN> const void *find_kernel(bool of_a, bool updates)
{
    if (of_a)
        return updates ? gx_kernel(weights_update_block_kernel<MATH, BM, BN, true>)
                       : gx_kernel(weights_block_kernel<MATH, BM, BN, true>);
    return updates ? gx_kernel(weights_update_block_kernel<MATH, BM, BN, false>)
                   : gx_kernel(weights_block_kernel<MATH, BM, BN, false>);
}

template <int MATH>
gx_weights_block find(const gx_weights *weights, int most_k, bool updates)
{
    switch (weights->shape) {
#define BLOCK_CASE(i, bm, bn)                                            \
    case i:                                                              \
        return { find_kernel<MATH, bm, bn>(weights->sums_of_a, updates), \
                 block_tile<MATH, bm, bn>::THREADS,                      \
                 block_tile<MATH, bm, bn>::shared_bytes(most_k) };
        GX_WEIGHTS_BLOCK_LIST(BLOCK_CASE)
#undef BLOCK_CASE
    default:
        return {};
    }
}

} // namespace

gx_weights_block gx_weights_block_find(const gx_weights *weights, bool updates)
{
    int most_k = 0;

    for (int l = 0; l < weights->n_layers; l++) {
        const int k = weights->layer[l].k;

        most_k = k > most_k ? k : most_k;
    }
    if (most_k > GX_WEIGHTS_MOST_ROWS)
        return {};
    switch (weights->math) {
    case GX_TILE_TF32:
        return find<GX_TILE_TF32>(weights, most_k, updates);
    case GX_TILE_BF16:
        return find<GX_TILE_BF16>(weights, most_k, updates);
    case GX_TILE_F16:
        return find<GX_TILE_F16>(weights, most_k, updates);
    default:
        return {};
    }
}
