/* Large products with what follows them, on the tensor cores of sm_90: see
 * wgmma_tile.cuh.
 *
 * This file is compiled for sm_90a where the build has sm_90, and else for what the
 * others are, without the kernels. */
#include "wgmma_tile.cuh"

namespace
{

constexpr int SUM_BYTES =
    ALL_FINISHERS / 32 * COLUMNS * (int)sizeof(float); /* a row a warp */
constexpr int SHARED_BYTES = TILES_BYTES + HAND_OVER_BYTES + SUM_BYTES;
constexpr int SUM_THREADS = 256;

/* Each is written out for every neighbour of every piece: longer ones are not here. */
#define SHORT_ACTS(X) X(GX_ACT_RELU) X(GX_ACT_GELU_TANH) X(GX_ACT_SILU)

#if GX_HAVE_WGMMA

constexpr int FEW_REGISTERS = 40, MANY_REGISTERS = 232; /* where nothing follows */
constexpr int AT_ONCE = 3; /* pieces that a thread has under way */
static_assert(is_share_of_registers<FEW_REGISTERS, MANY_REGISTERS>, "");

/* --- what follows --- */

/* One branch for all eight. */
__device__ __forceinline__ void forward_of(int act, float (&v)[WIDE])
{
    switch (act) {
#define FORWARD_CASE(ACT)                                                                \
    case ACT:                                                                            \
        _Pragma("unroll") for (int x = 0; x < WIDE; x++) v[x] = gx_apply_act(ACT, v[x]); \
        break;
        SHORT_ACTS(FORWARD_CASE)
#undef FORWARD_CASE
    default:
        break;
    }
}

__device__ __forceinline__ void backward_of(int act, float (&v)[WIDE],
                                            const float (&saved)[WIDE])
{
    switch (act) {
#define BACKWARD_CASE(ACT)                                      \
    case ACT:                                                   \
        _Pragma("unroll") for (int x = 0; x < WIDE; x++) v[x] = \
            gx_act_backward(ACT, v[x], saved[x]);               \
        break;
        SHORT_ACTS(BACKWARD_CASE)
#undef BACKWARD_CASE
    default:
        break;
    }
}

/* Finishes eight neighbours; v is then what a column sum gets. `saved` as it was loaded.
 */
template <typename T, gx_tile_tail TAIL>
__device__ __forceinline__ void finish_eight(const gx_tile &g, const eighth &its,
                                             const bits_of<T, WIDE> &saved,
                                             float (&v)[WIDE])
{
    const int64_t at = (int64_t)its.row * g.n + its.column;
    T *out = static_cast<T *>(g.out);

    if constexpr (TAIL == GX_TAIL_FORWARD) {
        add_bias<T>(g.bias, its.column, v);
        if (g.pre != nullptr) /* wanted on the way back, long after what is next read */
            store_away(static_cast<T *>(g.pre) + at, v);
        forward_of(g.act, v);
    } else if (g.saved != nullptr) {
        float of_saved[WIDE];

        unpack<T>(of_saved, saved);
        backward_of(g.act, v, of_saved);
    }
    if (out != nullptr)
        gx_store_widest(out + at, v);
}

/* The column sums of a tile from those of its warps, in order. */
__device__ __forceinline__ void add_warps(const gx_tile &g, place at, crew its,
                                          const float (&sum)[WIDE], const hand_over &over,
                                          float *sums)
{
#pragma unroll
    for (int x = 0; x < WIDE; x++)
        sums[its.thread / 32 * COLUMNS + its.thread % 32 * WIDE + x] = sum[x];
    meet(over, its);
    for (int c = its.thread; c < COLUMNS && at.column + c < g.n; c += its.n) {
        float total = 0.0f;

        for (int warp = 0; warp < its.n / 32; warp++)
            total += sums[warp * COLUMNS + c];
        if (at.row < g.m)
            g.partial[(int64_t)(at.row / ROWS) * g.n + at.column + c] = total;
    }
    if (its.n == FINISHERS) /* the next tile's are written to the same place */
        meet(over, its);
}

template <typename T, gx_tile_tail TAIL, bool HAS_SUMS>
__device__ __forceinline__ void finish_tile(const gx_tile &g, place at, crew of,
                                            const hand_over &over, float *sums)
{
    const uint4 *tile = static_cast<const uint4 *>(over.tile);
    const int m = (int)g.m, n = (int)g.n;
    const T *of_saved = static_cast<const T *>(g.saved);
    float column_sum[WIDE] = {};

#pragma unroll 1
    for (int e = of.thread; e < EIGHTHS; e += AT_ONCE * of.n) {
        uint4 product[AT_ONCE];
        bits_of<T, WIDE> saved[AT_ONCE];

#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * of.n, m, n);

            if (!its.is_there)
                continue;
            product[x] = __ldcg(tile + e + x * of.n);
            if (TAIL == GX_TAIL_BACKWARD && of_saved != nullptr)
                saved[x] =
                    load_bits_away<WIDE>(of_saved + (int64_t)its.row * n + its.column);
        }
#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * of.n, m, n);
            float v[WIDE];

            if (!its.is_there)
                continue;
            unpack<T>(v, product[x]);
            finish_eight<T, TAIL>(g, its, saved[x], v);
            if constexpr (HAS_SUMS) {
#pragma unroll
                for (int c = 0; c < WIDE; c++)
                    column_sum[c] += v[c];
            }
        }
    }
    if constexpr (HAS_SUMS)
        add_warps(g, at, of, column_sum, over, sums);
}

template <typename T, gx_tile_tail TAIL, bool HAS_SUMS>
__device__ __forceinline__ void finish_all(const gx_tile &g, const hand_over &over,
                                           float *sums)
{
    const tiles all(g.m, g.n);
    unsigned parity = 0;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x, parity ^= 1) {
        await_tile(over, parity);
        finish_tile<T, TAIL, HAS_SUMS>(
            g, all[i], all.is_last(i) ? crew::all() : crew::few(), over, sums);
        gx_barrier_arrive_here(over.is_taken);
    }
}

/* --- the warpgroups that multiply --- */

/* 64 rows of a tile that nothing follows. */
template <typename T>
__device__ __forceinline__ void
store_tile(const gx_tile &g, const float (&sum)[COLUMNS / 2], int row, int column)
{
#pragma unroll
    for (int j = 0; j < COLUMNS / 32; j++) {
        const int c = column + column_of_eight(j);

#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = row + row_of_eight<T>(i);
            float v[WIDE];

            take_eight(sum, i, j, v);
            if (r < (int)g.m && c < (int)g.n)
                gx_store_widest(static_cast<T *>(g.out) + (int64_t)r * g.n + c, v);
        }
    }
}

template <typename T, bool A_TURNED, bool B_TURNED, gx_tile_tail TAIL, bool HAS_SUMS>
__device__ __forceinline__ void multiply_all(const gx_tile &g, const memory &shared,
                                             const hand_over &over, int half, float *sums)
{
    const tiles all(g.m, g.n);
    place at;
    turn now;
    unsigned parity = 1;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x, parity ^= 1) {
        float sum[COLUMNS / 2];

        at = all[i];
        multiply_tile<T, A_TURNED, B_TURNED>(sum, (int)g.k, shared, half, now);
        if constexpr (TAIL == GX_TAIL_NONE)
            store_tile<T>(g, sum, at.row + half * (ROWS / 2), at.column);
        else
            hand_tile<T>(sum, over, half, parity);
    }
    if constexpr (TAIL != GX_TAIL_NONE) {
        await_tile(over, parity);
        finish_tile<T, TAIL, HAS_SUMS>(g, at, crew::all(), over, sums);
    }
}

/* --- the kernels --- */

template <typename T, bool A_TURNED, bool B_TURNED, gx_tile_tail TAIL, bool HAS_SUMS>
__global__ void __launch_bounds__(THREADS, 1)
    wgmma_kernel(const __grid_constant__ gx_wgmma_maps maps,
                 const __grid_constant__ gx_tile g, void *handed)
{
    constexpr bool HANDS = TAIL != GX_TAIL_NONE;

    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, bytes);
    const division at(bytes);
    const hand_over over(at.hand_over, handed);
    float *sums = reinterpret_cast<float *>(at.rest);
    const int warpgroup = (int)threadIdx.x / WARPGROUP;

    over.open();
    open_barriers(at.shared);
    if (warpgroup == 2) {
        gx_fewer_registers<HANDS ? FINISHING_REGISTERS : FEW_REGISTERS>();
        if (threadIdx.x == 2 * WARPGROUP)
            fetch_all<A_TURNED, B_TURNED>(maps, tiles(g.m, g.n), (int)g.k, at.shared);
        else if (HANDS && crew::few().thread >= 0)
            finish_all<T, TAIL, HAS_SUMS>(g, over, sums);
    } else {
        gx_more_registers<HANDS ? HANDING_REGISTERS : MANY_REGISTERS>();
        multiply_all<T, A_TURNED, B_TURNED, TAIL, HAS_SUMS>(g, at.shared, over, warpgroup,
                                                            sums);
    }
    close_cluster();
}

/* dbias from the sums of all rows of tiles: each warp adds every eighth, then they are
 * added, in order. A block has 32 columns. */
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS)
    wgmma_sums_kernel(const float *partial, T *dbias, int64_t rows, int64_t n)
{
    gx_begin_kernel();
    constexpr int WARPS = SUM_THREADS / 32;
    __shared__ float sums[WARPS][32];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int64_t c = (int64_t)blockIdx.x * 32 + lane;
    float total = 0.0f;

#pragma unroll 4
    for (int64_t row = warp; c < n && row < rows; row += WARPS)
        total += partial[row * n + c];
    sums[warp][lane] = total;
    __syncthreads();
    if (warp > 0 || c >= n)
        return;
    total = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        total += sums[w][lane];
    gx_store(dbias + c, total);
}

/* --- choosing the instantiation --- */

template <typename T, bool B_TURNED> const void *find_tail(const gx_tile *tile)
{
    switch (tile->tail) {
    case GX_TAIL_FORWARD:
        return gx_kernel(wgmma_kernel<T, false, B_TURNED, GX_TAIL_FORWARD, false>);
    case GX_TAIL_BACKWARD:
        return tile->dbias != nullptr
                   ? gx_kernel(wgmma_kernel<T, false, B_TURNED, GX_TAIL_BACKWARD, true>)
                   : gx_kernel(wgmma_kernel<T, false, B_TURNED, GX_TAIL_BACKWARD, false>);
    default:
        return gx_kernel(wgmma_kernel<T, false, B_TURNED, GX_TAIL_NONE, false>);
    }
}

template <typename T> const void *find_turned(const gx_tile *tile)
{
    if (tile->trans_a)
        return gx_kernel(wgmma_kernel<T, true, false, GX_TAIL_NONE, false>);
    return tile->trans_b ? find_tail<T, true>(tile) : find_tail<T, false>(tile);
}

const void *find(const gx_tile *tile)
{
    return tile->math == GX_TILE_BF16 ? find_turned<__nv_bfloat16>(tile)
                                      : find_turned<__half>(tile);
}

const void *find_sums(const gx_tile *tile)
{
    return tile->math == GX_TILE_BF16 ? gx_kernel(wgmma_sums_kernel<__nv_bfloat16>)
                                      : gx_kernel(wgmma_sums_kernel<__half>);
}

#else

const void *find(const gx_tile *)
{
    return nullptr;
}

const void *find_sums(const gx_tile *)
{
    return nullptr;
}

#endif

bool has_sums(const gx_tile *tile)
{
    return tile->tail == GX_TAIL_BACKWARD && tile->dbias != nullptr;
}

} // namespace

extern "C" bool gx_wgmma_is_built(void)
{
    return GX_HAVE_WGMMA;
}

extern "C" bool gx_wgmma_has_act(int act)
{
#define IS_ACT(ACT) || act == ACT
    return act == GX_ACT_NONE SHORT_ACTS(IS_ACT);
#undef IS_ACT
}

extern "C" size_t gx_wgmma_shared_bytes(void)
{
    return SHARED_BYTES;
}

extern "C" size_t gx_wgmma_handed_bytes(gx_tile_math math, int n_sm)
{
    return (size_t)room_of(n_sm) * CLUSTER * TILE_ELEMENTS *
           (math == GX_TILE_TF32 ? sizeof(float) : 2);
}

extern "C" gx_status gx_wgmma_load(const gx_tile *tile, gx_error *err)
{
    if (has_sums(tile))
        GX_TRY(gx_load_kernel(find_sums(tile), 0, "wgmma_sums_kernel", err));
    return gx_load_cluster_kernel(find(tile), dim3(THREADS), CLUSTER, SHARED_BYTES,
                                  "wgmma_kernel", err);
}

extern "C" gx_status gx_wgmma_launch(const gx_tile *tile, const gx_wgmma_maps *maps,
                                     void *handed, gx_ctx *ctx, gx_error *err)
{
    const int64_t all =
        gx_divide_up(tile->m, CLUSTER * ROWS) * gx_divide_up(tile->n, COLUMNS);
    void *args[] = { (void *)maps, (void *)tile, &handed };

    GX_TRY(gx_launch_cluster(ctx, "wgmma_kernel", find(tile),
                             dim3(gx_grid_for(all, 1, room_of(ctx->n_sm)), CLUSTER),
                             dim3(THREADS), CLUSTER, SHARED_BYTES, args, err));
    if (!has_sums(tile))
        return GX_OK;
    int64_t rows = gx_divide_up(tile->m, ROWS);
    void *sum_args[] = { (void *)&tile->partial, (void *)&tile->dbias, &rows,
                         (void *)&tile->n };

    return gx_launch(ctx, "wgmma_sums_kernel", find_sums(tile),
                     dim3((unsigned)gx_divide_up(tile->n, 32)), dim3(SUM_THREADS), 0,
                     sum_args, err);
}
