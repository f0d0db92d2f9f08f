/* Small products with what follows them: see direct.cuh. */
#include "direct.cuh"
#include "direct.h"

namespace
{

/* What the tail needs beside the product, bias or saved values, is loaded while the
 * operands are on their way. */
template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_kernel(const __grid_constant__ gx_tile g, const bool steady_b)
{
    extern __shared__ __align__(16) float sums[];
    constexpr int BM = TILE::BM, BN = TILE::BN, THREADS = TILE::THREADS;
    constexpr int PER_THREAD = (BM * BN + THREADS - 1) / THREADS;
    const int row = (int)blockIdx.y * BM, column = (int)blockIdx.x * BN;
    const int m = (int)g.m, n = (int)g.n;
    const direct_operand<T> a = { static_cast<const T *>(g.a), g.lda, m, (int)g.k };
    const direct_operand<T> b = { static_cast<const T *>(g.b), g.ldb, n, (int)g.k };
    T *out = static_cast<T *>(g.out);
    const T *beside =
        static_cast<const T *>(g.tail == GX_TAIL_FORWARD ? g.bias : g.saved);
    float other[PER_THREAD];
    float column_sum = 0.0f;
    TILE tile;

    tile.run(a, b, row, column, steady_b, sums, [&] {
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++) {
            const int e = (int)threadIdx.x + i * THREADS, r = row + e / BN;
            const int c = column + e % BN;

            other[i] = 0.0f;
            if (beside != nullptr && e < BM * BN && r < m && c < n)
                other[i] = gx_to_float(
                    beside[g.tail == GX_TAIL_FORWARD ? c : (int64_t)r * n + c]);
        }
    });
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN, c = e % BN;
        const int64_t at = (int64_t)(row + r) * n + column + c;

        if (e >= BM * BN || row + r >= m || column + c >= n)
            continue;
        float x = TILE::total(sums, r, c);

        if (g.tail == GX_TAIL_FORWARD) {
            x += other[i];
            if (g.pre != nullptr)
                gx_store(static_cast<T *>(g.pre) + at, x);
            x = gx_apply_act(g.act, x);
        } else if (g.tail == GX_TAIL_BACKWARD && g.act != GX_ACT_NONE) {
            x = gx_act_backward(g.act, x, other[i]);
        }
        if (out != nullptr)
            gx_store(out + at, x);
        column_sum += x;
    }
    if (g.tail != GX_TAIL_BACKWARD || g.dbias == nullptr)
        return;

    /* A thread's elements lie in one column: threads are a multiple of columns. */
    static_assert(THREADS % BN == 0, "a thread would meet several columns");
    __syncthreads();
    sums[threadIdx.x] = column_sum;
    __syncthreads();
    if (threadIdx.x < BN && column + (int)threadIdx.x < n) {
        float x = 0.0f;

        for (int s = 0; s < THREADS / BN; s++)
            x += sums[s * BN + threadIdx.x];
        gx_store(static_cast<T *>(g.dbias) + column + threadIdx.x, x);
    }
}

struct instance {
    const void *kernel;
    int threads;
};

template <typename T, bool A_TURNED, bool B_TURNED> instance find_shape(int shape)
{
    switch (shape) {
#define DIRECT_CASE(i, mi, ni, wk)                                                     \
    case i:                                                                            \
        return { (const void *)                                                        \
                     direct_kernel<T, direct_tile<T, A_TURNED, B_TURNED, mi, ni, wk>>, \
                 32 * wk };
        GX_DIRECT_LIST(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        return { nullptr, 0 };
    }
}

template <typename T> instance find_turned(const gx_tile *tile)
{
    if (tile->trans_a)
        return find_shape<T, true, false>(tile->shape);
    return tile->trans_b ? find_shape<T, false, true>(tile->shape)
                         : find_shape<T, false, false>(tile->shape);
}

static instance find(const gx_tile *tile)
{
    return tile->math == GX_TILE_BF16 ? find_turned<__nv_bfloat16>(tile)
                                      : find_turned<float>(tile);
}

} // namespace

extern "C" int gx_direct_rows(int shape)
{
    static const int rows[] = {
#define DIRECT_ROWS(i, mi, ni, wk) 16 * mi,
        GX_DIRECT_LIST(DIRECT_ROWS)
#undef DIRECT_ROWS
    };

    return rows[shape];
}

extern "C" int gx_direct_columns(int shape)
{
    static const int columns[] = {
#define DIRECT_COLUMNS(i, mi, ni, wk) 8 * ni,
        GX_DIRECT_LIST(DIRECT_COLUMNS)
#undef DIRECT_COLUMNS
    };

    return columns[shape];
}

extern "C" size_t gx_direct_shared_bytes(int shape)
{
    static const size_t bytes[] = {
#define DIRECT_BYTES(i, mi, ni, wk) \
    direct_tile<float, false, false, mi, ni, wk>::SUM_BYTES,
        GX_DIRECT_LIST(DIRECT_BYTES)
#undef DIRECT_BYTES
    };

    return bytes[shape];
}

extern "C" gx_status gx_direct_load(const gx_tile *tile, gx_error *err)
{
    return gx_load_kernel(find(tile).kernel, gx_direct_shared_bytes(tile->shape),
                          "direct_kernel", err);
}

extern "C" gx_status gx_direct_launch(const gx_tile *tile, bool steady_b, gx_ctx *ctx,
                                      gx_error *err)
{
    const instance chosen = find(tile);
    void *args[] = { (void *)tile, &steady_b };
    const dim3 grid((unsigned)gx_divide_up(tile->n, gx_direct_columns(tile->shape)),
                    (unsigned)gx_divide_up(tile->m, gx_direct_rows(tile->shape)));

    return gx_launch(ctx, "direct_kernel", chosen.kernel, grid,
                     dim3((unsigned)chosen.threads), gx_direct_shared_bytes(tile->shape),
                     args, err);
}
