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

/* Calls `apply` with the activation, which the compiler then knows. By comparisons: a
 * switch is a jump by a table, which has to come from memory first. */
template <typename F> __device__ __forceinline__ void choose_act(int act, F &&apply)
{
#define ACT_CASE(which, name, reads, flops) \
    if (hidden(act) == GX_ACT_##which)      \
        return apply(GX_ACT_##which);
    GX_ACT_LIST(ACT_CASE)
#undef ACT_CASE
}

/* x = act(x), all elements behind one choice. */
template <int N> __device__ __forceinline__ void apply_act(int act, float (&x)[N])
{
    choose_act(act, [&](int which) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = gx_apply_act(which, x[i]);
    });
}

/* dy = dy act'(saved), likewise. */
template <int N, typename SAVED>
__device__ __forceinline__ void go_back(int act, float (&dy)[N], const SAVED &saved)
{
    choose_act(act, [&](int which) {
#pragma unroll
        for (int i = 0; i < N; i++)
            dy[i] = gx_act_backward(which, dy[i], saved[i]);
    });
}

/* --- what the tail needs beside the product --- */

/* Bias or saved values of the elements that a thread finishes, neighbours of a row. Their
 * address is found ahead of the wait, and they are loaded while the operands are on their
 * way. */
template <typename T, typename TILE> struct direct_beside {
    static constexpr int N = PER_THREAD<TILE>;
    static_assert(N <= MOST_WITH_TAIL && N == AT_ONCE<TILE>, "at once");
    int r, c; /* of the tile */
    int left; /* of the row from the first on; none where the thread finishes none */
    bool is_wide;
    const T *from; /* NULL: there is none */
    gx_vector<T, N> other;

    __device__ __forceinline__ direct_beside(const gx_tile &g, gx_tile_tail tail, int row,
                                             int column, bool wide)
        : is_wide(wide)
    {
        const bool is_forward = tail == GX_TAIL_FORWARD;
        const T *all = static_cast<const T *>(is_forward ? g.bias : g.saved);
        const int m = (int)g.m, n = (int)g.n, e = N * (int)threadIdx.x;

        r = e / TILE::BN;
        c = e % TILE::BN;
        left = r < TILE::BM && row + r < m ? n - column - c : 0;
        from = direct_settled(all != nullptr && left > 0
                                  ? all + (is_forward ? 0 : (int64_t)(row + r) * n) +
                                        column + c
                                  : nullptr);
#pragma unroll
        for (int i = 0; i < N; i++)
            other.at[i] = T(0.0f);
    }

    __device__ __forceinline__ void load()
    {
        if (from != nullptr)
            load_some(other, from, left, is_wide);
    }

    __device__ __forceinline__ float operator[](int i) const
    {
        return gx_to_float(other.at[i]);
    }
};

/* --- the tile --- */

/* A block's tile at `row` and `column`, and what follows it but column sums. `tail` is
 * g.tail, or what the caller knows of it. `sums`: as TILE::run leaves them. */
template <typename T, typename TILE>
__device__ __forceinline__ void make_tailed_tile(const gx_tile &g, gx_tile_tail tail,
                                                 int row, int column, bool steady_b,
                                                 bool is_wide, float *sums)
{
    constexpr int N = PER_THREAD<TILE>;
    const int m = (int)g.m, n = (int)g.n;
    direct_beside<T, TILE> beside(g, tail, row, column, is_wide);
    const int64_t at = (int64_t)(row + beside.r) * n + column + beside.c;
    float x[N];
    TILE tile;

    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [&] { beside.load(); });
    if (beside.left <= 0)
        return;
    TILE::total(x, sums, beside.r, beside.c);
    if (tail == GX_TAIL_FORWARD) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] += beside[i];
        if (g.pre != nullptr)
            store_some(static_cast<T *>(g.pre) + at, x, beside.left, is_wide);
        apply_act(g.act, x);
    } else if (tail == GX_TAIL_BACKWARD) {
        go_back(g.act, x, beside);
    }
    if (g.out != nullptr)
        store_some(static_cast<T *>(g.out) + at, x, beside.left, is_wide);
}

} // namespace

#endif
