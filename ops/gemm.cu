/* The product kernel: tiles through shared memory, k split over the warps of a block.
 *
 * A block computes one tile of out. Panels of a and b travel to shared memory as they lie
 * in global memory, several panels ahead. Each warp multiplies its own slice of every
 * panel; at the end the warps' sums are added in shared memory in the order of the warps,
 * and the tail (bias, activation, its derivative, column sums) works on the total. Edges
 * are filled with zeros, so that any size and any alignment goes the same way. */
#include "gemm_copy.cuh"
#include "gemm_multiply.cuh"
#include "gemm_tile.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = GX_TILE_THREADS;
constexpr int SLICE = GX_TILE_SLICE;
/* Every card from sm_80 on gives a block that much. */
constexpr int SHARED_LIMIT = 96 << 10;

template <int MATH> struct operand {
    using type = float;
};
template <> struct operand<GX_TILE_BF16> {
    using type = __nv_bfloat16;
};
template <> struct operand<GX_TILE_F16> {
    using type = __half;
};

/* Warps along rows, columns and k of a tile. Small tiles give every warp to k. */
template <int BM, int BN> struct warps {
    static constexpr int M = BM >= 64 && BN >= 64 ? 2 : 1;
    static constexpr int N = M;
    static constexpr int K = THREADS / 32 / (M * N);
};

/* Everything that follows from a tile's shape and its math. Rows in shared memory are
 * padded so that the threads of a warp meet no bank twice. */
template <int MATH, int BM, int BN> struct plan {
    using T = typename operand<MATH>::type;
    using W = warps<BM, BN>;
    static constexpr int BK = SLICE * W::K;
    static constexpr int WARP_M = BM / W::M, WARP_N = BN / W::N;
    static constexpr int MI = WARP_M / 16, NI = WARP_N / 8;
    static constexpr int PAD_K = sizeof(T) == 2 ? 8 : 4; /* rows along k */
    static constexpr int PAD_MN = 8;                     /* rows along m or n */

    static constexpr int larger(int x, int y)
    {
        return x > y ? x : y;
    }
    static constexpr int A_ELEMENTS = larger(BM * (BK + PAD_K), BK *(BM + PAD_MN));
    static constexpr int B_ELEMENTS = larger(BN * (BK + PAD_K), BK *(BN + PAD_MN));
    static constexpr int STAGE = A_ELEMENTS + B_ELEMENTS;
    static constexpr int FIT = SHARED_LIMIT / (STAGE * (int)sizeof(T));
    static constexpr int STAGES = FIT < 4 ? FIT : 4;
    static_assert(STAGES >= 2, "one panel is computed on while the next one arrives");

    static constexpr int SUM_LD = BN + 8;
    static constexpr int SUM_BYTES = (W::K * BM * SUM_LD + THREADS) * (int)sizeof(float);
    static constexpr int SHARED_BYTES =
        larger(STAGES * STAGE * (int)sizeof(T), SUM_BYTES);
};

/* --- one tile --- */

/* Stands for gx_tile_more in the kernels of one plain product. */
struct no_more {
};
template <typename MORE> constexpr bool has_more = false;
template <> constexpr bool has_more<gx_tile_more> = true;

/* The panels of a tile, from the first to the last. */
template <int MATH, int BM, int BN> struct panels {
    using P = plan<MATH, BM, BN>;
    using T = typename P::T;
    const gx_tile &g;
    int64_t row, column; /* of the tile */
    T *memory;

    __device__ __forceinline__ T *a(int stage) const
    {
        return memory + stage * P::STAGE;
    }
    __device__ __forceinline__ T *b(int stage) const
    {
        return a(stage) + P::A_ELEMENTS;
    }

    __device__ __forceinline__ void fetch(int64_t k, int stage) const
    {
        fetch(k, stage, static_cast<const T *>(g.a), static_cast<const T *>(g.b));
    }

    __device__ __forceinline__ void fetch(int64_t k, int stage, const T *ga,
                                          const T *gb) const
    {
        const window<T> wa = g.trans_a
                                 ? window<T>{ ga, g.k, g.m, g.lda, k, row, P::BK, BM }
                                 : window<T>{ ga, g.m, g.k, g.lda, row, k, BM, P::BK };
        const window<T> wb = g.trans_b
                                 ? window<T>{ gb, g.n, g.k, g.ldb, column, k, BN, P::BK }
                                 : window<T>{ gb, g.k, g.n, g.ldb, k, column, P::BK, BN };

        copy_window(a(stage), g.trans_a ? BM + P::PAD_MN : P::BK + P::PAD_K, wa,
                    g.chunk_a);
        copy_window(b(stage), g.trans_b ? P::BK + P::PAD_K : BN + P::PAD_MN, wb,
                    g.chunk_b);
    }

    __device__ __forceinline__ panel<T> seen_a(int stage) const
    {
        return g.trans_a ? panel<T>{ a(stage), 1, BM + P::PAD_MN }
                         : panel<T>{ a(stage), P::BK + P::PAD_K, 1 };
    }
    __device__ __forceinline__ panel<T> seen_b(int stage) const
    {
        return g.trans_b ? panel<T>{ b(stage), P::BK + P::PAD_K, 1 }
                         : panel<T>{ b(stage), 1, BN + P::PAD_MN };
    }
};

/* Panel `at` of a tile: of one product, or of all products of a batch in order. */
template <int MATH, int BM, int BN>
__device__ __forceinline__ void fetch_of_batch(const panels<MATH, BM, BN> &all,
                                               const gx_tile_more &more, int64_t batch,
                                               int64_t at, int stage)
{
    using P = plan<MATH, BM, BN>;
    using T = typename P::T;
    const int64_t per_product = (all.g.k + P::BK - 1) / P::BK;

    if (more.sum) {
        batch = at / per_product;
        at %= per_product;
    }
    all.fetch(at * P::BK, stage, static_cast<const T *>(all.g.a) + batch * more.stride_a,
              static_cast<const T *>(all.g.b) + batch * more.stride_b);
}

template <typename MORE>
__device__ __forceinline__ int64_t count_products(const MORE &more)
{
    if constexpr (has_more<MORE>)
        return more.sum ? more.n_batches : 1;
    return 1;
}

/* Leaves the warps' sums in shared memory: [warp of k][row][column], rows SUM_LD apart.
 */
template <int MATH, int BM, int BN, typename MORE>
__device__ __forceinline__ void sum_tile(const gx_tile &g, const MORE &more,
                                         int64_t batch, int64_t row, int64_t column,
                                         unsigned char *shared)
{
    using P = plan<MATH, BM, BN>;
    using T = typename P::T;
    using W = typename P::W;
    const panels<MATH, BM, BN> all = { g, row, column, reinterpret_cast<T *>(shared) };
    const int64_t n_panels = (g.k + P::BK - 1) / P::BK * count_products(more);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int i = warp % W::M * P::WARP_M, j = warp / W::M % W::N * P::WARP_N;
    const int slice = warp / (W::M * W::N);
    float sum[P::MI][P::NI][4] = {};
    int stage = 0, next_stage = 0;

    /* The first turns only fetch. */
    for (int64_t at = 1 - P::STAGES; at < n_panels; at++) {
        if (at >= 0) {
            gx_wait_copies<P::STAGES - 2>();
            /* The panel is there for every thread, and every warp is done with the one
             * before, whose place the fetch takes. */
            __syncthreads();
        }
        if (at + P::STAGES - 1 < n_panels) {
            if constexpr (has_more<MORE>)
                fetch_of_batch(all, more, batch, at + P::STAGES - 1, next_stage);
            else
                all.fetch((at + P::STAGES - 1) * P::BK, next_stage);
        }
        gx_commit_copies();
        next_stage = next_stage + 1 == P::STAGES ? 0 : next_stage + 1;
        if (at < 0)
            continue;
        multiply<MATH, P::MI, P::NI, T>(sum, all.seen_a(stage), all.seen_b(stage), i, j,
                                        slice * SLICE);
        stage = stage + 1 == P::STAGES ? 0 : stage + 1;
    }
    gx_wait_copies<0>();
    __syncthreads();

    float *sums = reinterpret_cast<float *>(shared) + slice * BM * P::SUM_LD;
#pragma unroll
    for (int x = 0; x < P::MI; x++) {
#pragma unroll
        for (int y = 0; y < P::NI; y++) {
            float *to =
                sums + (i + 16 * x + lane / 4) * P::SUM_LD + j + 8 * y + lane % 4 * 2;

            *reinterpret_cast<float2 *>(to) = make_float2(sum[x][y][0], sum[x][y][1]);
            *reinterpret_cast<float2 *>(to + 8 * P::SUM_LD) =
                make_float2(sum[x][y][2], sum[x][y][3]);
        }
    }
    __syncthreads();
}

template <typename T>
__device__ __forceinline__ float element(const void *tensor, int64_t at)
{
    return gx_to_float(static_cast<const T *>(tensor)[at]);
}

template <typename T>
__device__ __forceinline__ float add_before(const gx_tile &g, const gx_tile_more &more,
                                            int64_t row, int64_t column, float x)
{
    x *= more.alpha;
    if (more.c != nullptr)
        x += more.beta * element<T>(more.c, row * more.ldc + column);
    if (g.tail != GX_TAIL_FORWARD)
        return x;
    x *= more.scale;
    if (more.residual != nullptr)
        x += element<T>(more.residual, row * g.n + column);
    return x;
}

template <typename T>
__device__ __forceinline__ float add_after(const gx_tile_more &more, int64_t at, float x)
{
    if (!more.again)
        return x;
    if (more.y != nullptr)
        gx_store(static_cast<T *>(more.y) + at, x);
    x *= more.last_scale;
    if (more.last_residual != nullptr)
        x += element<T>(more.last_residual, at);
    return x;
}

/* What is done with one element of the product; returns what its column sum gets. */
template <typename T, typename MORE>
__device__ __forceinline__ float finish(const gx_tile &g, const MORE &more, int64_t row,
                                        int64_t column, float x, float bias)
{
    const int64_t at = row * g.n + column;
    int64_t out_at = at;
    T *out = static_cast<T *>(g.out);

    if constexpr (has_more<MORE>) {
        x = add_before<T>(g, more, row, column, x);
        out_at = row * more.ld_out + column;
    }
    if (g.tail == GX_TAIL_FORWARD) {
        x += bias;
        if (g.pre != nullptr)
            gx_store(static_cast<T *>(g.pre) + at, x);
        x = gx_apply_act(g.act, x);
        if constexpr (has_more<MORE>)
            x = add_after<T>(more, at, x);
    } else if (g.tail == GX_TAIL_BACKWARD && g.act != GX_ACT_NONE) {
        x = gx_act_backward(g.act, x, gx_to_float(static_cast<const T *>(g.saved)[at]));
    }
    if (out != nullptr)
        gx_store(out + out_at, x);
    return x;
}

/* Zeros behind the last column of `rows` rows of out. */
template <typename T>
__device__ __forceinline__ void zero_rest(T *out, int64_t ld, int64_t columns,
                                          int64_t rows)
{
    const int64_t width = ld - columns;

    for (int64_t i = threadIdx.x; i < rows * width; i += THREADS)
        gx_store(out + i / width * ld + columns + i % width, 0.0f);
}

/* Adds the warps' sums and finishes. A thread keeps to one column of the tile; `first`
 * is the row of out that is row 0 of this product. */
template <int MATH, int BM, int BN, typename MORE>
__device__ __forceinline__ void finish_tile(const gx_tile &g, const MORE &more,
                                            int64_t first, int64_t row, int64_t column,
                                            unsigned char *shared)
{
    using P = plan<MATH, BM, BN>;
    using T = typename P::T;
    constexpr int STEP = THREADS / BN;
    const float *sums = reinterpret_cast<const float *>(shared);
    float *column_sums = reinterpret_cast<float *>(shared) + P::W::K * BM * P::SUM_LD;
    const int c = threadIdx.x % BN;
    const bool inside = column + c < g.n;
    const float bias = inside && g.tail == GX_TAIL_FORWARD && g.bias != nullptr
                           ? gx_to_float(static_cast<const T *>(g.bias)[column + c])
                           : 0.0f;
    float total = 0.0f;

#pragma unroll 4
    for (int r = threadIdx.x / BN; r < BM; r += STEP) {
        float x = 0.0f;

        if (!inside || row + r >= g.m)
            continue;
#pragma unroll
        for (int w = 0; w < P::W::K; w++)
            x += sums[(w * BM + r) * P::SUM_LD + c];
        total += finish<T>(g, more, first + row + r, column + c, x, bias);
    }
    if (g.tail != GX_TAIL_BACKWARD || g.dbias == nullptr)
        return;
    column_sums[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x < BN && inside) {
        total = 0.0f;
        for (int s = 0; s < STEP; s++)
            total += column_sums[s * BN + c];
        if (g.partial != nullptr)
            g.partial[row / BM * g.n + column + c] = total;
        else
            gx_store(static_cast<T *>(g.dbias) + column + c, total);
    }
}

template <int MATH, int BM, int BN>
__global__ void __launch_bounds__(THREADS, 1)
    tile_kernel(const __grid_constant__ gx_tile g)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, shared);
    /* Without a row there are still column sums to write. */
    const int64_t row_tiles = g.m > 0 ? (g.m + BM - 1) / BM : 1;
    const int64_t column_tiles = (g.n + BN - 1) / BN;

    for (int64_t tile = blockIdx.x; tile < row_tiles * column_tiles; tile += gridDim.x) {
        const int64_t row = tile % row_tiles * BM, column = tile / row_tiles * BN;

        sum_tile<MATH, BM, BN>(g, no_more{}, 0, row, column, shared);
        finish_tile<MATH, BM, BN>(g, no_more{}, 0, row, column, shared);
        __syncthreads();
    }
}

template <int MATH, int BM, int BN>
__global__ void __launch_bounds__(THREADS, 1)
    tile_more_kernel(const __grid_constant__ gx_tile g,
                     const __grid_constant__ gx_tile_more more)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, shared);
    using T = typename plan<MATH, BM, BN>::T;
    const int64_t row_tiles = g.m > 0 ? (g.m + BM - 1) / BM : 1;
    /* Without a column there are still zeros to write behind them. */
    const int64_t column_tiles = g.n > 0 ? (g.n + BN - 1) / BN : 1;
    const int64_t per_out = row_tiles * column_tiles;
    const int64_t n_outs = more.sum ? 1 : more.n_batches;

    for (int64_t tile = blockIdx.x; tile < per_out * n_outs; tile += gridDim.x) {
        const int64_t batch = tile / per_out, rest = tile % per_out;
        const int64_t row = rest % row_tiles * BM, column = rest / row_tiles * BN;

        sum_tile<MATH, BM, BN>(g, more, batch, row, column, shared);
        finish_tile<MATH, BM, BN>(g, more, batch * g.m, row, column, shared);
        if (more.ld_out > g.n && column + BN >= g.n)
            zero_rest(static_cast<T *>(g.out) + (batch * g.m + row) * more.ld_out,
                      more.ld_out, g.n, g.m - row < BM ? g.m - row : BM);
        __syncthreads();
    }
}

/* dbias from the column sums of each row of tiles, first to last. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    partial_kernel(const float *partial, T *dbias, int64_t rows, int64_t n)
{
    gx_begin_kernel();
    for (int64_t c = (int64_t)blockIdx.x * THREADS + threadIdx.x; c < n;
         c += (int64_t)gridDim.x * THREADS) {
        float total = 0.0f;

        for (int64_t r = 0; r < rows; r++)
            total += partial[r * n + c];
        gx_store(dbias + c, total);
    }
}

/* Each block takes rows of its own. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    zero_rest_kernel(T *out, int64_t rows, int64_t columns, int64_t ld)
{
    gx_begin_kernel();
    const int64_t per_block = (rows + gridDim.x - 1) / gridDim.x;
    const int64_t first = blockIdx.x * per_block, left = rows - first;

    if (left > 0)
        zero_rest(out + first * ld, ld, columns, left < per_block ? left : per_block);
}

/* A warp makes one word of 32 bits at a time; bits past the last column are 0. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    relu_mask_kernel(const T *y, int64_t rows, int64_t columns, int64_t words_per_row,
                     uint32_t *mask)
{
    gx_begin_kernel();
    const int64_t n_words = rows * words_per_row,
                  step = (int64_t)gridDim.x * (THREADS / 32);
    const int lane = threadIdx.x % 32;

    for (int64_t word = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
         word < n_words; word += step) {
        const int64_t row = word / words_per_row;
        const int64_t column = word % words_per_row * 32 + lane;
        const bool on = column < columns && gx_to_float(y[row * columns + column]) > 0.0f;
        const uint32_t bits = __ballot_sync(0xffffffffu, on);

        if (lane == 0)
            mask[word] = bits;
    }
}

/* --- choosing the instantiation --- */

struct instance {
    const void *kernel, *more_kernel;
    size_t shared_bytes;
    int rows, columns;
};

template <int MATH> instance find_instance(int shape)
{
    switch (shape) {
#define TILE_CASE(i, bm, bn)                                \
    case i:                                                 \
        return { gx_kernel(tile_kernel<MATH, bm, bn>),      \
                 gx_kernel(tile_more_kernel<MATH, bm, bn>), \
                 (size_t)plan<MATH, bm, bn>::SHARED_BYTES, bm, bn };
        GX_TILE_LIST(TILE_CASE)
#undef TILE_CASE
    default:
        return { nullptr, nullptr, 0, 0, 0 };
    }
}

static instance find(gx_tile_math math, int shape)
{
    switch (math) {
    case GX_TILE_F32:
        return find_instance<GX_TILE_F32>(shape);
    case GX_TILE_TF32:
        return find_instance<GX_TILE_TF32>(shape);
    case GX_TILE_F16:
        return find_instance<GX_TILE_F16>(shape);
    default:
        return find_instance<GX_TILE_BF16>(shape);
    }
}

static const void *partial_instance(gx_tile_math math)
{
    return math == GX_TILE_BF16  ? gx_kernel(partial_kernel<__nv_bfloat16>)
           : math == GX_TILE_F16 ? gx_kernel(partial_kernel<__half>)
                                 : gx_kernel(partial_kernel<float>);
}

static const void *mask_instance(gx_dtype dtype)
{
    return gx_with_type(dtype, [](auto of) {
        return gx_kernel(relu_mask_kernel<typename decltype(of)::type>);
    });
}

static const void *zero_instance(gx_dtype dtype)
{
    return gx_with_type(dtype, [](auto of) {
        return gx_kernel(zero_rest_kernel<typename decltype(of)::type>);
    });
}

constexpr int64_t MAX_GRID = INT32_MAX;

} // namespace

extern "C" int gx_tile_rows(int shape)
{
    return find(GX_TILE_F32, shape).rows;
}

extern "C" int gx_tile_columns(int shape)
{
    return find(GX_TILE_F32, shape).columns;
}

extern "C" size_t gx_tile_shared_bytes(gx_tile_math math, int shape)
{
    return find(math, shape).shared_bytes;
}

extern "C" gx_status gx_tile_load(const gx_tile *tile, const gx_tile_more *more,
                                  gx_error *err)
{
    const instance chosen = find(tile->math, tile->shape);

    if (tile->partial != nullptr)
        GX_TRY(gx_load_kernel(partial_instance(tile->math), 0, "partial_kernel", err));
    if (more != nullptr)
        return gx_load_kernel(chosen.more_kernel, chosen.shared_bytes, "tile_more_kernel",
                              err);
    return gx_load_kernel(chosen.kernel, chosen.shared_bytes, "tile_kernel", err);
}

static gx_status launch_tiles(const gx_tile *tile, const gx_tile_more *more,
                              int64_t tiles, gx_ctx *ctx, gx_error *err)
{
    const instance chosen = find(tile->math, tile->shape);
    void *args[] = { (void *)tile, (void *)more };

    if (more != nullptr && !more->sum)
        tiles *= more->n_batches;
    return gx_launch(ctx, more != nullptr ? "tile_more_kernel" : "tile_kernel",
                     more != nullptr ? chosen.more_kernel : chosen.kernel,
                     dim3(gx_grid_for(tiles, 1, MAX_GRID)), dim3(THREADS),
                     chosen.shared_bytes, args, err);
}

extern "C" gx_status gx_tile_launch(const gx_tile *tile, const gx_tile_more *more,
                                    gx_ctx *ctx, gx_error *err)
{
    const instance chosen = find(tile->math, tile->shape);
    int64_t row_tiles = tile->m > 0 ? gx_divide_up(tile->m, chosen.rows) : 1;
    const int64_t column_tiles = tile->n > 0 ? gx_divide_up(tile->n, chosen.columns) : 1;

    GX_TRY(launch_tiles(tile, more, row_tiles * column_tiles, ctx, err));
    if (tile->partial == nullptr)
        return GX_OK;
    void *sum_args[] = { (void *)&tile->partial, (void *)&tile->dbias, &row_tiles,
                         (void *)&tile->n };

    return gx_launch(ctx, "partial_kernel", partial_instance(tile->math),
                     dim3(gx_grid_for(tile->n, THREADS, MAX_GRID)), dim3(THREADS), 0,
                     sum_args, err);
}

extern "C" gx_status gx_zero_rest_load(gx_dtype dtype, gx_error *err)
{
    return gx_load_kernel(zero_instance(dtype), 0, "zero_rest_kernel", err);
}

extern "C" gx_status gx_zero_rest_launch(void *out, gx_dtype dtype, int64_t rows,
                                         int64_t columns, int64_t ld, gx_ctx *ctx,
                                         gx_error *err)
{
    void *args[] = { &out, &rows, &columns, &ld };
    const int64_t blocks =
        gx_grid_for(rows * (ld - columns), THREADS, (int64_t)ctx->n_sm * 8);

    return gx_launch(ctx, "zero_rest_kernel", zero_instance(dtype),
                     dim3((unsigned)(blocks < rows ? blocks : rows)), dim3(THREADS), 0,
                     args, err);
}

extern "C" gx_status gx_relu_mask_load(gx_dtype dtype, gx_error *err)
{
    return gx_load_kernel(mask_instance(dtype), 0, "relu_mask_kernel", err);
}

extern "C" gx_status gx_relu_mask_launch(const void *y, gx_dtype dtype, int64_t rows,
                                         int64_t columns, int64_t ld, void *mask,
                                         gx_ctx *ctx, gx_error *err)
{
    int64_t words_per_row = ld / 32;
    const int64_t blocks_of_words = rows * words_per_row;
    void *args[] = { &y, &rows, &columns, &words_per_row, &mask };

    return gx_launch(
        ctx, "relu_mask_kernel", mask_instance(dtype),
        dim3(gx_grid_for(blocks_of_words, THREADS / 32, (int64_t)ctx->n_sm * 32)),
        dim3(THREADS), 0, args, err);
}
