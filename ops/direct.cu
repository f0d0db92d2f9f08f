/* Small products with what follows them: see direct.cuh. */
#include "cluster.cuh"
#include "direct.h"
#include "direct_tail.cuh"

namespace
{

/* --- column sums --- */

/* The blocks of a cluster are the row tiles of the same columns. dbias of this column
 * tile from each thread's N neighbours of a row. With several row tiles the first adds
 * them, in order. */
template <typename T, typename TILE, int N>
__device__ __forceinline__ void add_columns(float (&x)[N], int column, int n, T *dbias)
{
    constexpr int BN = TILE::BN, WARPS = TILE::THREADS / 32, OF_ROW = BN / N;
    static_assert(OF_ROW <= 32, "a row would take several warps");
    __shared__ float sums[WARPS][BN];
    __shared__ float tiles[GX_MAX_CLUSTER][BN];
    const int c = (int)threadIdx.x, warp = c / 32, lane = c % 32;
    const bool is_cluster = gridDim.y > 1;
    float sum = 0.0f;

#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int step = OF_ROW; step < 32; step *= 2)
            x[i] += __shfl_xor_sync(0xffffffffu, x[i], step);
        if (lane < OF_ROW)
            sums[warp][N * lane + i] = x[i];
    }
    __syncthreads();
    if (is_cluster)
        gx_wait_for_cluster(); /* every block of it has begun */
    if (c < BN) {
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += sums[w][c];
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
    direct_plain_kernel(const __grid_constant__ gx_tile g, const direct_known known)
{
    GX_DYNAMIC_SHARED(float, sums);
    const int row = (int)blockIdx.y * TILE::BM, column = (int)blockIdx.x * TILE::BN;
    const int m = (int)g.m, n = (int)g.n;
    TILE tile;

    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column,
             known.steady_b, sums, [] {});
    store_tile<T, TILE>(g, sums, row, column, known.is_wide);
}

template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_kernel(const __grid_constant__ gx_tile g, const direct_known known)
{
    GX_DYNAMIC_SHARED(float, sums);

    make_tailed_tile<T, TILE>(g, g.tail, (int)blockIdx.y * TILE::BM,
                              (int)blockIdx.x * TILE::BN, known.steady_b, known.is_wide,
                              sums);
}

/* The way back with column sums: a kernel of its own, so that the other has none of its
 * code to jump over. */
template <typename T, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_columns_kernel(const __grid_constant__ gx_tile g, const direct_known known)
{
    GX_DYNAMIC_SHARED(float, sums);
    constexpr int N = PER_THREAD<TILE>;
    const int row = (int)blockIdx.y * TILE::BM, column = (int)blockIdx.x * TILE::BN;
    const int m = (int)g.m, n = (int)g.n;
    direct_beside<T, TILE> beside(g, g.tail, row, column, known.is_wide);
    float result[N], column_sum[N];
    TILE tile;

    if (gridDim.y > 1)
        gx_arrive_at_cluster(false);
    tile.run({ static_cast<const T *>(g.a), g.lda, m, (int)g.k },
             { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column,
             known.steady_b, sums, [&] { beside.load(); });
    if (beside.left > 0) {
        TILE::total(result, sums, beside.r, beside.c);
        go_back(g.act, result, beside);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        column_sum[i] = i < beside.left ? result[i] : 0.0f;
    /* Before anything is stored: a cluster's barrier waits for stores. */
    add_columns<T, TILE>(column_sum, column, n, static_cast<T *>(g.dbias));
    if (g.out != nullptr)
        store_some(static_cast<T *>(g.out) + (int64_t)(row + beside.r) * n + column +
                       beside.c,
                   result, beside.left, known.is_wide);
}

/* --- choosing the instantiation --- */

bool has_column_sums(const gx_tile *tile)
{
    return tile->tail == GX_TAIL_BACKWARD && tile->dbias != nullptr;
}

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED, int MI, int NI, int WK,
          int DEPTH>
const void *make_instance(bool has_sums)
{
    using TILE = direct_tile<T, A_TURNED, B_TURNED, RAGGED, MI, NI, WK, DEPTH>;

    /* One column of a 16-bit type is less than a word. */
    if constexpr (NI == 1 && (A_TURNED || (!B_TURNED && sizeof(T) < 4)))
        return nullptr;
    else if constexpr (DEPTH > 4 && (A_TURNED || RAGGED || sizeof(T) == 4))
        return nullptr;
    else if constexpr (A_TURNED)
        return gx_kernel(direct_plain_kernel<T, TILE>);
    else if constexpr (PER_THREAD<TILE> <= MOST_WITH_TAIL && (!RAGGED || WK == 8))
        return has_sums ? gx_kernel(direct_columns_kernel<T, TILE>)
                        : gx_kernel(direct_kernel<T, TILE>);
    else
        return nullptr;
}

/* Every line along k begins at a multiple of `depth` elements, and is one. */
bool lines_are_multiples(const gx_tile *tile, int depth)
{
    return tile->k % depth == 0 && (tile->trans_a || tile->lda % depth == 0) &&
           (!tile->trans_b || tile->ldb % depth == 0);
}

template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED>
const void *find_shape(const gx_tile *tile)
{
    const bool has_sums = has_column_sums(tile);

    switch (tile->shape) {
#define DIRECT_CASE(i, mi, ni, wk, depth)                                             \
    case i:                                                                           \
        return depth > 4 && !lines_are_multiples(tile, depth)                         \
                   ? nullptr                                                          \
                   : make_instance<T, A_TURNED, B_TURNED, RAGGED, mi, ni, wk, depth>( \
                         has_sums);
        GX_DIRECT_LIST(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_turned(const gx_tile *tile)
{
    /* Rows that do not begin at a vector are read one by one, whatever k is. */
    const bool is_ragged = !lines_are_multiples(tile, 4);

    /* Turned rows of a are for weight gradients, which nothing follows; what stands
     * beside them is in direct_sums.cu. */
    if (tile->trans_a)
        return find_shape<T, true, false, false>(tile);
    if (tile->trans_b)
        return is_ragged ? find_shape<T, false, true, true>(tile)
                         : find_shape<T, false, true, false>(tile);
    return is_ragged ? find_shape<T, false, false, true>(tile)
                     : find_shape<T, false, false, false>(tile);
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
#define DIRECT_THREADS(i, mi, ni, wk, depth) 32 * wk,
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
#define DIRECT_ROWS(i, mi, ni, wk, depth) 16 * mi,
        GX_DIRECT_LIST(DIRECT_ROWS)
#undef DIRECT_ROWS
    };

    return rows[shape];
}

extern "C" int gx_direct_columns(int shape)
{
    static const int columns[] = {
#define DIRECT_COLUMNS(i, mi, ni, wk, depth) 8 * ni,
        GX_DIRECT_LIST(DIRECT_COLUMNS)
#undef DIRECT_COLUMNS
    };

    return columns[shape];
}

extern "C" size_t gx_direct_shared_bytes(int shape)
{
    static const size_t bytes[] = {
#define DIRECT_BYTES(i, mi, ni, wk, depth) \
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
    direct_known known = known_of(tile, steady_b);
    void *args[] = { (void *)tile, &known };
    const dim3 grid((unsigned)gx_divide_up(tile->n, gx_direct_columns(tile->shape)),
                    (unsigned)gx_divide_up(tile->m, gx_direct_rows(tile->shape)));
    const bool is_cluster = has_column_sums(tile) && grid.y > 1;

    return gx_launch_cluster(ctx, name_of(tile), find(tile), grid,
                             dim3(threads_of(tile->shape)), is_cluster ? grid.y : 1,
                             gx_direct_shared_bytes(tile->shape), args, err);
}
