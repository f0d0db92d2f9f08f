/* Small products with what follows them: see direct.cuh. */
#include "cluster.cuh"
#include "direct.cuh"
#include "direct.h"

namespace
{

/* Elements of a tile that one thread finishes. */
template <typename TILE>
constexpr int PER_THREAD = (TILE::BM * TILE::BN + TILE::THREADS - 1) / TILE::THREADS;

/* --- column sums --- */

/* The blocks of a cluster are the row tiles of the same columns. dbias of this column
 * tile from each thread's sum over its rows, all of one column. With
 * several row tiles the first adds them, in order. `column_sums` holds THREADS. */
template <typename T, typename TILE>
__device__ __forceinline__ void add_columns(float sum, float *column_sums, int column,
                                            int n, T *dbias)
{
    constexpr int BN = TILE::BN, THREADS = TILE::THREADS;
    static_assert(THREADS % BN == 0, "a thread would meet several columns");
    __shared__ float tiles[GX_MAX_CLUSTER][BN];
    const int c = (int)threadIdx.x;
    const bool is_cluster = gridDim.y > 1;

    __syncthreads();
    column_sums[c] = sum;
    __syncthreads();
    if (is_cluster)
        gx_wait_for_cluster(); /* every block of it has begun */
    if (c < BN) {
        sum = 0.0f;
#pragma unroll
        for (int s = 0; s < THREADS / BN; s++)
            sum += column_sums[s * BN + c];
        if (is_cluster)
            gx_store_at_first(&tiles[blockIdx.y][c], sum);
    }
    if (is_cluster) {
        gx_arrive_at_cluster(true);
        gx_wait_for_cluster();
        sum = 0.0f;
        for (int s = 0; c < BN && s < (int)gridDim.y; s++)
            sum += tiles[s][c];
    }
    if (c < BN && column + c < n && blockIdx.y == 0)
        gx_store(dbias + column + c, sum);
}

/* --- the kernels --- */

template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_plain_kernel(const __grid_constant__ gx_tile g, const bool steady_b)
{
    extern __shared__ __align__(16) float sums[];
    const int row = (int)blockIdx.y * TILE::BM, column = (int)blockIdx.x * TILE::BN;
    const int m = (int)g.m, n = (int)g.n;
    TILE tile;

    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [] {});
#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE>; i++) {
        const int e = (int)threadIdx.x + i * TILE::THREADS;
        const int r = e / TILE::BN, c = e % TILE::BN;

        if (r < TILE::BM && row + r < m && column + c < n)
            gx_store(static_cast<T *>(g.out) + (int64_t)(row + r) * n + column + c,
                     TILE::total(sums, r, c));
    }
}

/* What the tail needs beside the product, bias or saved values, is loaded while the
 * operands are on their way. */
template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_kernel(const __grid_constant__ gx_tile g, const bool steady_b)
{
    extern __shared__ __align__(16) float sums[];
    constexpr int BM = TILE::BM, BN = TILE::BN, THREADS = TILE::THREADS;
    const int row = (int)blockIdx.y * BM, column = (int)blockIdx.x * BN;
    const int m = (int)g.m, n = (int)g.n;
    const bool is_forward = g.tail == GX_TAIL_FORWARD;
    const bool has_sums = g.tail == GX_TAIL_BACKWARD && g.dbias != nullptr;
    T *out = static_cast<T *>(g.out);
    const T *beside = static_cast<const T *>(is_forward ? g.bias : g.saved);
    float other[PER_THREAD<TILE>], result[PER_THREAD<TILE>];
    TILE tile;

    if (has_sums && gridDim.y > 1)
        gx_arrive_at_cluster(false);
    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [&] {
#pragma unroll
                 for (int i = 0; i < PER_THREAD<TILE>; i++) {
                     const int e = (int)threadIdx.x + i * THREADS;
                     const int r = row + e / BN, c = column + e % BN;

                     other[i] = 0.0f;
                     if (beside != nullptr && e < BM * BN && r < m && c < n)
                         other[i] =
                             gx_to_float(beside[is_forward ? c : (int64_t)r * n + c]);
                 }
             });
    /* Sums are added before anything is stored: a cluster's barrier waits for stores. */
    if (has_sums) {
        float column_sum = 0.0f;

#pragma unroll
        for (int i = 0; i < PER_THREAD<TILE>; i++) {
            const int e = (int)threadIdx.x + i * THREADS, r = e / BN;

            result[i] = r < BM ? TILE::total(sums, r, e % BN) : 0.0f;
            if (g.act != GX_ACT_NONE)
                result[i] = gx_act_backward(g.act, result[i], other[i]);
            if (r < BM && row + r < m)
                column_sum += result[i];
        }
        add_columns<T, TILE>(column_sum, sums, column, n, static_cast<T *>(g.dbias));
    }
#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE>; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN, c = e % BN;
        const int64_t at = (int64_t)(row + r) * n + column + c;

        if (r >= BM || row + r >= m || column + c >= n)
            continue;
        float x = has_sums ? result[i] : TILE::total(sums, r, c);

        if (is_forward) {
            x += other[i];
            if (g.pre != nullptr)
                gx_store(static_cast<T *>(g.pre) + at, x);
            x = gx_apply_act(g.act, x);
        } else if (!has_sums && g.tail == GX_TAIL_BACKWARD && g.act != GX_ACT_NONE) {
            x = gx_act_backward(g.act, x, other[i]);
        }
        if (out != nullptr)
            gx_store(out + at, x);
    }
}

/* --- choosing the instantiation --- */

struct instance {
    const void *kernel;
    int threads;
};

/* What follows the product grows the code with each element that a thread finishes. */
constexpr int MOST_WITH_TAIL = 4;

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED, int MI, int NI, int WK>
instance make_instance()
{
    using TILE = direct_tile<T, A_TURNED, B_TURNED, RAGGED, MI, NI, WK>;

    /* One column of a 16-bit type is less than a word. */
    if constexpr (NI == 1 && (A_TURNED || (!B_TURNED && sizeof(T) < 4)))
        return { nullptr, 0 };
    else if constexpr (A_TURNED)
        return { (const void *)direct_plain_kernel<T, TILE>, TILE::THREADS };
    else if constexpr (PER_THREAD<TILE> <= MOST_WITH_TAIL && (!RAGGED || WK == 8))
        return { (const void *)direct_kernel<T, TILE>, TILE::THREADS };
    else
        return { nullptr, 0 };
}

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED>
instance find_shape(int shape)
{
    switch (shape) {
#define DIRECT_CASE(i, mi, ni, wk) \
    case i:                        \
        return make_instance<T, A_TURNED, B_TURNED, RAGGED, mi, ni, wk>();
        GX_DIRECT_LIST(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        return { nullptr, 0 };
    }
}

template <typename T> instance find_turned(const gx_tile *tile)
{
    /* Rows that do not begin at a vector are read one by one, whatever k is. */
    const bool is_ragged = tile->k % 4 != 0 || (!tile->trans_a && tile->lda % 4 != 0) ||
                           (tile->trans_b && tile->ldb % 4 != 0);

    /* Turned rows of a are for weight gradients, which nothing follows. */
    if (tile->trans_a)
        return find_shape<T, true, false, false>(tile->shape);
    if (tile->trans_b)
        return is_ragged ? find_shape<T, false, true, true>(tile->shape)
                         : find_shape<T, false, true, false>(tile->shape);
    return is_ragged ? find_shape<T, false, false, true>(tile->shape)
                     : find_shape<T, false, false, false>(tile->shape);
}

static instance find(const gx_tile *tile)
{
    return tile->math == GX_TILE_BF16  ? find_turned<__nv_bfloat16>(tile)
           : tile->math == GX_TILE_F16 ? find_turned<__half>(tile)
                                       : find_turned<float>(tile);
}

} // namespace

extern "C" bool gx_direct_has(const gx_tile *tile)
{
    return find(tile).kernel != nullptr;
}

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
    direct_tile<float, false, false, false, mi, ni, wk>::SUM_BYTES,
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

    const char *name = tile->trans_a ? "direct_plain_kernel" : "direct_kernel";
    const bool is_cluster =
        tile->tail == GX_TAIL_BACKWARD && tile->dbias != nullptr && grid.y > 1;

    return gx_launch_cluster(ctx, name, chosen.kernel, grid,
                             dim3((unsigned)chosen.threads), is_cluster ? grid.y : 1,
                             gx_direct_shared_bytes(tile->shape), args, err);
}
