/* Layers one after the other in one launch.
 *
 * A row of a batch goes through a network without the others, so a cluster of blocks
 * takes a few rows through all layers. Each block makes some columns of every layer: it
 * has its part of the weights on the way while the layer before is finished, and what it
 * has made it writes into the shared memory of all blocks of the cluster, where the next
 * layer reads it. Between two layers stands a barrier of the cluster instead of a launch.
 *
 * The instructions' rows are the columns of out and their columns are rows of the batch:
 * 8 of those are the least that tensor cores take, and what goes from block to block. */
#include "chain.h"
#include "cluster.cuh"
#include "direct_tail.cuh"

namespace
{

constexpr int WARPS = 8, THREADS = 32 * WARPS; /* the warps share k */

/* Elements from row to row in shared memory. Rows begin 64 bytes apart in the banks where
 * T is 4 bytes, else 32: the vectors that 8 or 16 threads read at once meet no bank
 * twice. */
__host__ __device__ constexpr int row_stride(int width)
{
    return (width + 63) / 64 * 64 + 16;
}

/* The product of a layer: weights from global memory to registers, a turn of chunks of 16
 * k ahead; rows of the batch from shared memory. */
template <typename T, bool B_TURNED, int MI, int NR> struct chain_tile {
    static constexpr int EACH = 2 * MI; /* neighbouring columns that a thread holds */
    static constexpr int COLUMNS = 16 * MI, ROWS = 8 * NR;
    static constexpr int WORDS = GX_DIRECT_WORDS<T>;
    /* Chunks in flight: as many as 128 registers hold, since a block has its processor to
     * itself. */
    static constexpr int IN_FLIGHT = (MI < 4 || NR < 2 ? 128 : 64) / (WORDS * EACH);
    static constexpr int TURN = IN_FLIGHT > 8 ? 8 : IN_FLIGHT;
    static constexpr int TURN_K = TURN * WARPS * 16;
    static constexpr int SUM_LD = COLUMNS + 1;
    static constexpr int PER_THREAD = (ROWS * COLUMNS + THREADS - 1) / THREADS;

    float sum[MI][NR][4];
    uint32_t b[TURN][EACH][WORDS];
    direct_operand<T> from;
    direct_lines<T, EACH, B_TURNED> lines;
    int outer, k; /* where the thread's part of a turn begins */

    /* Loads the first turn of a layer. */
    template <bool RAGGED>
    __device__ __forceinline__ void start(const gx_chain_layer &layer, int column)
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

        from = { static_cast<const T *>(layer.b), layer.ldb, layer.n, layer.k };
        outer = column + EACH * g;
        k = 16 * warp + 4 * t;
        lines.start(from, outer, k);
        load<RAGGED>();
    }

    /* The same for all of a warp: chunk i of the turn has nothing. */
    __device__ __forceinline__ bool is_past(int i) const
    {
        return k / 16 * 16 + i * WARPS * 16 >= from.n_k;
    }

    template <bool RAGGED> __device__ __forceinline__ void load()
    {
#pragma unroll
        for (int i = 0; i < TURN; i++) {
            if (is_past(i))
                break;
            load_lines<RAGGED>(b[i], from, lines, i * WARPS * 16, outer,
                               k + i * WARPS * 16);
        }
    }

    /* `x`: rows of the batch, zeros from n_k to the next multiple of 16. */
    __device__ __forceinline__ void multiply(const T *x, int x_ld)
    {
        const int g = threadIdx.x % 32 / 4;

#pragma unroll
        for (int i = 0; i < TURN; i++) {
            if (is_past(i))
                break;
            if constexpr (sizeof(T) == 4) {
#pragma unroll
                for (int c = 0; c < EACH; c++) {
#pragma unroll
                    for (int w = 0; w < WORDS; w++)
                        b[i][c][w] = direct_tf32(b[i][c][w]);
                }
            }
#pragma unroll
            for (int y = 0; y < NR; y++) {
                uint32_t row[WORDS];

                load_words<4 * WORDS>(row, x + (8 * y + g) * x_ld + k + i * WARPS * 16);
#pragma unroll
                for (int m = 0; m < MI; m++)
                    multiply_chunk<T>(sum[m][y], b[i][2 * m], b[i][2 * m + 1], row);
            }
        }
    }

    /* Adds up what the warp takes of the layer that was started. */
    __device__ __forceinline__ void run(const T *x, int x_ld)
    {
#pragma unroll
        for (int m = 0; m < MI; m++) {
#pragma unroll
            for (int y = 0; y < NR; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[m][y][e] = 0.0f;
            }
        }
#pragma unroll 1
        for (int left = from.n_k;;) {
            multiply(x, x_ld);
            left -= TURN_K;
            if (left <= 0)
                break;
            k += TURN_K;
            lines.advance(TURN_K);
            load<false>();
        }
    }

    /* Leaves the sums of the warps in `sums`, [WARPS][ROWS][SUM_LD]. Rows g and g + 8 of
     * an instruction are columns 2m and 2m + 1 of what the thread holds. */
    __device__ __forceinline__ void leave(float *sums) const
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
        for (int m = 0; m < MI; m++) {
#pragma unroll
            for (int y = 0; y < NR; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sums[(warp * ROWS + 8 * y + 2 * t + e % 2) * SUM_LD + EACH * g +
                         2 * m + e / 2] = sum[m][y][e];
            }
        }
    }

    /* The total of one element, warps in order. */
    static __device__ __forceinline__ float total(const float *sums, int r, int c)
    {
        float x = 0.0f;

#pragma unroll
        for (int w = 0; w < WARPS; w++)
            x += sums[(w * ROWS + r) * SUM_LD + c];
        return x;
    }
};

/* What the tensor cores get of a value. */
template <typename T> __device__ __forceinline__ T as_operand(T x)
{
    if constexpr (sizeof(T) == 4)
        return __uint_as_float(gx_tf32(x));
    else
        return x;
}

/* Rows of the first layer's a, zeros past the ends: 4 neighbours along k at once. */
template <typename T, int ROWS>
__device__ __forceinline__ void load_rows(const gx_chain &chain, int row, T *x, int x_ld)
{
    constexpr int WORDS = GX_DIRECT_WORDS<T>;
    const int n_k = chain.layer[0].k, quads = (n_k + 15) / 16 * 4;
    const T *a = static_cast<const T *>(chain.a);

#pragma unroll 4
    for (int e = (int)threadIdx.x; e < ROWS * quads; e += THREADS) {
        const int r = e / quads, k = 4 * (e - r * quads);
        const T *from = a + (int64_t)(row + r) * n_k + k;
        uint32_t words[WORDS] = {};

        if (row + r < chain.m && k < n_k) {
            if (n_k % 4 == 0)
                load_words<4 * WORDS>(words, from);
            else
                load_rest<T>(words, from, n_k - k);
        }
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int w = 0; w < WORDS; w++)
                words[w] = direct_tf32(words[w]);
        }
        typename direct_vector<4 * WORDS>::type quad;

        memcpy(&quad, words, sizeof quad);
        *reinterpret_cast<decltype(quad) *>(&x[r * x_ld + k]) = quad;
    }
}

/* Bias or saved values of the elements that a thread finishes, loaded a layer ahead. */
template <typename T, typename TILE> struct chain_beside {
    T other[TILE::PER_THREAD];

    __device__ __forceinline__ void load(const gx_chain &chain,
                                         const gx_chain_layer &layer, int row, int column)
    {
        const T *all = static_cast<const T *>(layer.other);

#pragma unroll
        for (int i = 0; i < TILE::PER_THREAD; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            const int r = row + e / TILE::COLUMNS, c = column + e % TILE::COLUMNS;
            const bool is_there = all != nullptr && e < TILE::ROWS * TILE::COLUMNS &&
                                  r < chain.m && c < layer.n;

            other[i] =
                is_there ? all[chain.backward ? (int64_t)r * layer.n + c : c] : T(0.0f);
        }
    }
};

/* An element of out, and what the activation was applied to. */
template <typename T> struct chain_element {
    T y;
    float pre;

    __device__ __forceinline__ void
    make(const gx_chain &chain, const gx_chain_layer &layer, float x, float other)
    {
        const float saved[1] = { other };
        float made[1] = { chain.backward ? x : x + other };

        pre = made[0];
        if (chain.backward)
            go_back(layer.act, made, saved);
        else
            apply_act(layer.act, made);
        gx_store(&y, made[0]);
    }

    __device__ __forceinline__ void keep(const gx_chain_layer &layer, int64_t at) const
    {
        if (layer.pre != nullptr)
            gx_store(static_cast<T *>(layer.pre) + at, pre);
        if (layer.out != nullptr)
            static_cast<T *>(layer.out)[at] = y;
    }
};

/* Writes x where `own` lies in the shared memory of each block of the cluster. */
template <typename T> __device__ __forceinline__ void store_everywhere(T *own, T x)
{
    const uint32_t here = (uint32_t)__cvta_generic_to_shared(own);

    for (unsigned block = 0; block < gridDim.y; block++)
        gx_store_shared(gx_map_shared(here, block), x);
}

template <typename T, bool B_TURNED, int MI, int NR>
__global__ void __launch_bounds__(THREADS, 1)
    chain_kernel(const __grid_constant__ gx_chain chain, const int x_ld)
{
    using TILE = chain_tile<T, B_TURNED, MI, NR>;
    GX_DYNAMIC_SHARED(float, sums);
    T *x = reinterpret_cast<T *>(sums + WARPS * TILE::ROWS * TILE::SUM_LD);
    const int row = (int)blockIdx.x * TILE::ROWS,
              column = (int)blockIdx.y * TILE::COLUMNS;
    chain_beside<T, TILE> beside;
    TILE tile;

    gx_arrive_at_cluster(false);
    if (chain.steady_b && !chain.ragged)
        tile.template start<false>(chain.layer[0], column);
    gx_begin_kernel();
    if (chain.ragged)
        tile.template start<B_TURNED>(chain.layer[0], column);
    else if (!chain.steady_b)
        tile.template start<false>(chain.layer[0], column);
    beside.load(chain, chain.layer[0], row, column);
    load_rows<T, TILE::ROWS>(chain, row, x, x_ld);
    __syncthreads();
#pragma unroll 1
    for (int l = 0;; l++) {
        const gx_chain_layer &layer = chain.layer[l];
        const chain_beside<T, TILE> now = beside;
        chain_element<T> made[TILE::PER_THREAD];
        const bool is_last = l + 1 == chain.n_layers;

        tile.run(x + l % 2 * TILE::ROWS * x_ld, x_ld);
        if (!is_last) {
            tile.template start<false>(chain.layer[l + 1], column);
            beside.load(chain, chain.layer[l + 1], row, column);
        }
        tile.leave(sums);
        __syncthreads();
        if (l == 0)
            gx_wait_for_cluster(); /* every block of it has begun */
#pragma unroll
        for (int i = 0; i < TILE::PER_THREAD; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            const int r = e / TILE::COLUMNS, c = e % TILE::COLUMNS;

            if (e >= TILE::ROWS * TILE::COLUMNS)
                continue;
            made[i].make(chain, layer, TILE::total(sums, r, c),
                         gx_to_float(now.other[i]));
            if (!is_last && column + c < (layer.n + 15) / 16 * 16)
                store_everywhere(&x[((l + 1) % 2 * TILE::ROWS + r) * x_ld + column + c],
                                 column + c < layer.n ? as_operand(made[i].y) : T(0.0f));
        }
        /* A barrier that publishes waits for stores: those that only later kernels read
         * come behind it. Both halves of it are for whole warps, which may have parted
         * before. */
        __syncwarp();
        if (!is_last)
            gx_arrive_at_cluster(true);
#pragma unroll
        for (int i = 0; i < TILE::PER_THREAD; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            const int r = row + e / TILE::COLUMNS, c = column + e % TILE::COLUMNS;

            if (e < TILE::ROWS * TILE::COLUMNS && r < chain.m && c < layer.n)
                made[i].keep(layer, (int64_t)r * layer.n + c);
        }
        if (is_last)
            break;
        __syncwarp();
        gx_wait_for_cluster();
    }
}

/* --- choosing the instantiation --- */

template <typename T, bool B_TURNED> const void *find_shape(int shape)
{
    switch (shape) {
#define CHAIN_CASE(i, mi, nr) \
    case i:                   \
        return gx_kernel(chain_kernel<T, B_TURNED, mi, nr>);
        GX_CHAIN_LIST(CHAIN_CASE)
#undef CHAIN_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_turned(const gx_chain *chain)
{
    return chain->trans_b ? find_shape<T, true>(chain->shape)
                          : find_shape<T, false>(chain->shape);
}

const void *find(const gx_chain *chain)
{
    return chain->math == GX_TILE_BF16  ? find_turned<__nv_bfloat16>(chain)
           : chain->math == GX_TILE_F16 ? find_turned<__half>(chain)
                                        : find_turned<float>(chain);
}

int stride_of(const gx_chain *chain)
{
    int width = 0;

    for (int l = 0; l < chain->n_layers; l++)
        width = width < chain->layer[l].k ? chain->layer[l].k : width;
    return row_stride(width);
}

size_t element_bytes(const gx_chain *chain)
{
    return chain->math == GX_TILE_TF32 ? 4 : 2;
}

} // namespace

extern "C" const gx_chain_shape *gx_chain_shape_at(int shape)
{
    static const gx_chain_shape shapes[] = {
#define CHAIN_SHAPE(i, mi, nr) { 8 * nr, 16 * mi, 2 * mi },
        GX_CHAIN_LIST(CHAIN_SHAPE)
#undef CHAIN_SHAPE
    };

    return &shapes[shape];
}

extern "C" int gx_chain_cluster(const gx_chain *chain)
{
    int width = 0;

    for (int l = 0; l < chain->n_layers; l++)
        width = width < chain->layer[l].n ? chain->layer[l].n : width;
    return (int)gx_divide_up(width, gx_chain_shape_at(chain->shape)->columns);
}

extern "C" int gx_chain_ragged_k(const gx_chain *chain)
{
    static const int wide[] = {
#define CHAIN_K(i, mi, nr) chain_tile<float, true, mi, nr>::TURN_K,
        GX_CHAIN_LIST(CHAIN_K)
#undef CHAIN_K
    };
    static const int narrow[] = {
#define CHAIN_K(i, mi, nr) chain_tile<__half, true, mi, nr>::TURN_K,
        GX_CHAIN_LIST(CHAIN_K)
#undef CHAIN_K
    };

    return (chain->math == GX_TILE_TF32 ? wide : narrow)[chain->shape];
}

extern "C" size_t gx_chain_shared_bytes(const gx_chain *chain)
{
    const gx_chain_shape *shape = gx_chain_shape_at(chain->shape);
    const size_t rows = (size_t)shape->rows;

    return WARPS * rows * (size_t)(shape->columns + 1) * sizeof(float) +
           2 * rows * (size_t)stride_of(chain) * element_bytes(chain);
}

extern "C" gx_status gx_chain_load(const gx_chain *chain, gx_error *err)
{
    return gx_load_cluster_kernel(find(chain), dim3(THREADS),
                                  (unsigned)gx_chain_cluster(chain),
                                  gx_chain_shared_bytes(chain), "chain_kernel", err);
}

extern "C" gx_status gx_chain_launch(const gx_chain *chain, gx_ctx *ctx, gx_error *err)
{
    const gx_chain_shape *shape = gx_chain_shape_at(chain->shape);
    const unsigned cluster = (unsigned)gx_chain_cluster(chain);
    int x_ld = stride_of(chain);
    void *args[] = { (void *)chain, &x_ld };

    return gx_launch_cluster(ctx, "chain_kernel", find(chain),
                             dim3((unsigned)gx_divide_up(chain->m, shape->rows), cluster),
                             dim3(THREADS), cluster, gx_chain_shared_bytes(chain), args,
                             err);
}
