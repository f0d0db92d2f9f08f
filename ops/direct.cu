/* Small products with what follows them: see direct.cuh. */
#include "cluster.cuh"
#include "direct.h"
#include "direct_tail.cuh"

namespace
{

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
    GX_DYNAMIC_SHARED(float, sums);
    const int row = (int)blockIdx.y * TILE::BM, column = (int)blockIdx.x * TILE::BN;
    const int m = (int)g.m, n = (int)g.n;
    TILE tile;

    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [] {});
    store_tile<T, TILE>(g, sums, row, column);
}

template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_kernel(const __grid_constant__ gx_tile g, const bool steady_b)
{
    GX_DYNAMIC_SHARED(float, sums);

    make_tailed_tile<T, TILE>(g, g.tail, (int)blockIdx.y * TILE::BM,
                              (int)blockIdx.x * TILE::BN, steady_b, sums);
}

/* The way back with column sums: a kernel of its own, so that the other has none of its
 * code to jump over. */
template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_columns_kernel(const __grid_constant__ gx_tile g, const bool steady_b)
{
    GX_DYNAMIC_SHARED(float, sums);
    constexpr int BM = TILE::BM, BN = TILE::BN, THREADS = TILE::THREADS;
    const int row = (int)blockIdx.y * BM, column = (int)blockIdx.x * BN;
    const int m = (int)g.m, n = (int)g.n;
    T *out = static_cast<T *>(g.out);
    float result[PER_THREAD<TILE>], column_sum = 0.0f;
    direct_beside<T, TILE> beside(g, g.tail, row, column);
    TILE tile;

    if (gridDim.y > 1)
        gx_arrive_at_cluster(false);
    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, steady_b,
             sums, [&] { beside.load(); });
#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE>; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN;

        result[i] = r < BM ? TILE::total(sums, r, e % BN) : 0.0f;
        result[i] = backward_of(g.act, result[i], beside[i]);
        if (r < BM && row + r < m)
            column_sum += result[i];
    }
    /* Before anything is stored: a cluster's barrier waits for stores. */
    add_columns<T, TILE>(column_sum, sums, column, n, static_cast<T *>(g.dbias));
#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE>; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN, c = e % BN;

        if (r < BM && row + r < m && column + c < n && out != nullptr)
            gx_store(out + (int64_t)(row + r) * n + column + c, result[i]);
    }
}

/* --- choosing the instantiation --- */

bool has_column_sums(const gx_tile *tile)
{
    return tile->tail == GX_TAIL_BACKWARD && tile->dbias != nullptr;
}

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED, int MI, int NI, int WK>
const void *make_instance(bool has_sums)
{
    using TILE = direct_tile<T, A_TURNED, B_TURNED, RAGGED, MI, NI, WK>;

    /* One column of a 16-bit type is less than a word. */
    if constexpr (NI == 1 && (A_TURNED || (!B_TURNED && sizeof(T) < 4)))
        return nullptr;
    else if constexpr (A_TURNED)
        return gx_kernel(direct_plain_kernel<T, TILE>);
    else if constexpr (PER_THREAD<TILE> <= MOST_WITH_TAIL && (!RAGGED || WK == 8))
        return has_sums ? gx_kernel(direct_columns_kernel<T, TILE>)
                        : gx_kernel(direct_kernel<T, TILE>);
    else
        return nullptr;
}

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED>
const void *find_shape(int shape, bool has_sums)
{
    switch (shape) {
#define DIRECT_CASE(i, mi, ni, wk) \
    case i:                        \
        return make_instance<T, A_TURNED, B_TURNED, RAGGED, mi, ni, wk>(has_sums);
        GX_DIRECT_LIST(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_turned(const gx_tile *tile)
{
    /* Rows that do not begin at a vector are read one by one, whatever k is. */
    const bool is_ragged = tile->k % 4 != 0 || (!tile->trans_a && tile->lda % 4 != 0) ||
                           (tile->trans_b && tile->ldb % 4 != 0);
    const bool has_sums = has_column_sums(tile);

    /* Turned rows of a are for weight gradients, which nothing follows; what stands
     * beside them is in direct_sums.cu. */
    if (tile->trans_a)
        return find_shape<T, true, false, false>(tile->shape, false);
    if (tile->trans_b)
        return is_ragged ? find_shape<T, false, true, true>(tile->shape, has_sums)
                         : find_shape<T, false, true, false>(tile->shape, has_sums);
    return is_ragged ? find_shape<T, false, false, true>(tile->shape, has_sums)
                     : find_shape<T, false, false, false>(tile->shape, has_sums);
}

static const void *find(const gx_tile *tile)
{
    if (gx_tail_sums(tile->tail))
        return gx_direct_sums_kernel(tile);
    return tile->math == GX_TILE_BF16  ? find_turned<__nv_bfloat16>(tile)
           : tile->math == GX_TILE_F16 ? find_turned<__half>(tile)
                                       : find_turned<float>(tile);
}

static unsigned threads_of(int shape)
{
    static const unsigned threads[] = {
#define DIRECT_THREADS(i, mi, ni, wk) 32 * wk,
        GX_DIRECT_LIST(DIRECT_THREADS)
#undef DIRECT_THREADS
    };

    return threads[shape];
}

static const char *name_of(const gx_tile *tile)
{
    if (gx_tail_sums(tile->tail))
        return "direct_sums_kernel";
    if (tile->trans_a)
        return "direct_plain_kernel";
    return has_column_sums(tile) ? "direct_columns_kernel" : "direct_kernel";
}

} // namespace

extern "C" bool gx_direct_has(const gx_tile *tile)
{
    return find(tile) != nullptr;
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
    return gx_load_kernel(find(tile), gx_direct_shared_bytes(tile->shape), name_of(tile),
                          err);
}

extern "C" gx_status gx_direct_launch(const gx_tile *tile, bool steady_b, gx_ctx *ctx,
                                      gx_error *err)
{
    void *args[] = { (void *)tile, &steady_b };
    const dim3 grid((unsigned)gx_divide_up(tile->n, gx_direct_columns(tile->shape)),
                    (unsigned)gx_divide_up(tile->m, gx_direct_rows(tile->shape)));
    const bool is_cluster = has_column_sums(tile) && grid.y > 1;

    return gx_launch_cluster(ctx, name_of(tile), find(tile), grid,
                             dim3(threads_of(tile->shape)), is_cluster ? grid.y : 1,
                             gx_direct_shared_bytes(tile->shape), args, err);
}
