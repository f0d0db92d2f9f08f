/* What follows a small product in the same kernel: direct.cu's, and a pair's. */
#ifndef GX_DIRECT_TAIL_CUH
#define GX_DIRECT_TAIL_CUH

#include "direct.cuh"

namespace
{

/* What follows the product grows the code with each element that a thread finishes. */
constexpr int MOST_WITH_TAIL = 4;

/* --- activations --- */

/* The same number, of which the compiler does not know that. */
__device__ __forceinline__ int hidden(int x)
{
    gx_hide(x);
    return x;
}

/* Comparisons for those that most models have: a switch over all is a jump by a table,
 * which has to come from memory first. */
static_assert(GX_ACT_NONE < GX_ACT_RELU && GX_ACT_RELU < GX_ACT_GELU_TANH &&
                  GX_ACT_GELU_TANH == 2,
              "the others come behind them");

__device__ __forceinline__ float forward_of(int act, float x)
{
    if (hidden(act) == GX_ACT_RELU)
        return gx_apply_act(GX_ACT_RELU, x);
    if (hidden(act) == GX_ACT_GELU_TANH)
        return gx_apply_act(GX_ACT_GELU_TANH, x);
    if (hidden(act) == GX_ACT_NONE)
        return x;
    __builtin_assume(act > GX_ACT_GELU_TANH);
    return gx_apply_act(act, x);
}

__device__ __forceinline__ float backward_of(int act, float dy, float saved)
{
    if (hidden(act) == GX_ACT_RELU)
        return gx_act_backward(GX_ACT_RELU, dy, saved);
    if (hidden(act) == GX_ACT_GELU_TANH)
        return gx_act_backward(GX_ACT_GELU_TANH, dy, saved);
    if (hidden(act) == GX_ACT_NONE)
        return dy;
    __builtin_assume(act > GX_ACT_GELU_TANH);
    return gx_act_backward(act, dy, saved);
}

/* --- what the tail needs beside the product --- */

/* Bias or saved values of the elements that a thread finishes. Their addresses are found
 * ahead of the wait, and they are loaded while the operands are on their way. */
template <typename T, typename TILE> struct direct_beside {
    const T *from[PER_THREAD<TILE>]; /* NULL: there is none */
    T other[PER_THREAD<TILE>];

    __device__ __forceinline__ direct_beside(const gx_tile &g, gx_tile_tail tail, int row,
                                             int column)
    {
        const bool is_forward = tail == GX_TAIL_FORWARD;
        const T *all = static_cast<const T *>(is_forward ? g.bias : g.saved);
        const int m = (int)g.m, n = (int)g.n;

#pragma unroll
        for (int i = 0; i < PER_THREAD<TILE>; i++) {
            const int e = (int)threadIdx.x + i * TILE::THREADS;
            const int r = row + e / TILE::BN, c = column + e % TILE::BN;
            const bool is_there =
                all != nullptr && e < TILE::BM * TILE::BN && r < m && c < n;

            from[i] = direct_settled(
                is_there ? all + (is_forward ? c : (int64_t)r * n + c) : nullptr);
        }
    }

    __device__ __forceinline__ void load()
    {
#pragma unroll
        for (int i = 0; i < PER_THREAD<TILE>; i++)
            other[i] = from[i] != nullptr ? *from[i] : T(0.0f);
    }

    __device__ __forceinline__ float operator[](int i) const
    {
        return gx_to_float(other[i]);
    }
};

/* --- the tile --- */

/* A block's tile at `row` and `column`, and what follows it but column sums. `tail` is
 * g.tail, or what the caller knows of it. `sums`: as TILE::run leaves them. */
template <typename T, typename TILE>
__device__ __forceinline__ void make_tailed_tile(const gx_tile &g, gx_tile_tail tail,
                                                 int row, int column, bool steady_b,
                                                 float *sums)
{
    constexpr int BM = TILE::BM, BN = TILE::BN, THREADS = TILE::THREADS;
    const int m = (int)g.m, n = (int)g.n;
    T *out = static_cast<T *>(g.out);
    direct_beside<T, TILE> beside(g, tail, row, column);
    TILE tile;

    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [&] { beside.load(); });
#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE>; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN, c = e % BN;
        const int64_t at = (int64_t)(row + r) * n + column + c;

        if (r >= BM || row + r >= m || column + c >= n)
            continue;
        float x = TILE::total(sums, r, c);

        if (tail == GX_TAIL_FORWARD) {
            x += beside[i];
            if (g.pre != nullptr)
                gx_store(static_cast<T *>(g.pre) + at, x);
            x = forward_of(g.act, x);
        } else if (tail == GX_TAIL_BACKWARD) {
            x = backward_of(g.act, x, beside[i]);
        }
        if (out != nullptr)
            gx_store(out + at, x);
    }
}

} // namespace

#endif
