/* Large products with what follows them, on the tensor cores of sm_90.
 *
 * A block stays and makes one tile after the other. One of its warpgroups only copies:
 * boxes of the operands, several stages ahead, by the copy engine. The two others
 * multiply 64 rows of the tile each, straight from shared memory, and finish them in
 * registers while the copies for the next tile are under way. Two blocks of a cluster
 * make tiles one above the other: each copies half of the columns of b, for both. The
 * engine puts zeros where an operand ends, so that only what is stored asks for bounds.
 *
 * This file is compiled for sm_90a where the build has sm_90, and else for what the
 * others are, without the kernels. */
#include "wgmma.h"

#include "wgmma.cuh"

#ifndef GX_HAVE_WGMMA
#define GX_HAVE_WGMMA 0
#endif

namespace
{

constexpr int ROWS = GX_WGMMA_ROWS, COLUMNS = GX_WGMMA_COLUMNS, K = GX_WGMMA_K;
constexpr int PIECE = GX_WGMMA_PIECE;
constexpr int WARPGROUP = 128, THREADS = 3 * WARPGROUP;
constexpr int CLUSTER = 2, STAGES = 4;
constexpr int A_BYTES = ROWS * K * 2;
constexpr int STAGE_BYTES = A_BYTES + COLUMNS * K * 2;
constexpr int ATOM = 1024; /* bytes that the swizzle repeats after */
constexpr int BARRIER_BYTES = 2 * STAGES * (int)sizeof(uint64_t);
constexpr int SUM_BYTES = 2 * 4 * COLUMNS * (int)sizeof(float); /* of each warp */
constexpr int SHARED_BYTES = ATOM + STAGES * STAGE_BYTES + BARRIER_BYTES + SUM_BYTES;
constexpr int SUM_THREADS = 256;

#if GX_HAVE_WGMMA

constexpr int STRIP = 64;                  /* rows or columns of a box */
constexpr int STRIP_BYTES = STRIP * K * 2; /* in shared memory */
/* What one warpgroup gives away, the others get: 65536 in all. */
constexpr int FEW_REGISTERS = 40, MANY_REGISTERS = 232;
/* Rows of tiles of a cluster that are made before the next column of tiles: what both
 * operands need then stays in the cache. */
constexpr int GROUP_ROWS = 8;

/* --- where a tile lies --- */

struct place {
    int row, column; /* of the block's tile */
};

/* Tiles of a cluster, in the order in which they are made. */
struct tiles {
    int down, across;

    __device__ __forceinline__ tiles(const gx_tile &g)
        : down((int)((g.m + CLUSTER * ROWS - 1) / (CLUSTER * ROWS))),
          across((int)((g.n + COLUMNS - 1) / COLUMNS))
    {
    }

    __device__ __forceinline__ int64_t count() const
    {
        return (int64_t)down * across;
    }

    __device__ __forceinline__ place operator[](int64_t i) const
    {
        const int64_t per_group = (int64_t)GROUP_ROWS * across;
        const int first = (int)(i / per_group) * GROUP_ROWS, rest = (int)(i % per_group);
        const int rows = min(GROUP_ROWS, down - first);

        return { ((first + rest % rows) * CLUSTER + (int)blockIdx.y) * ROWS,
                 rest / rows * COLUMNS };
    }
};

/* Stages follow one another through all tiles of a block, each as often as the other. */
struct turn {
    int stage = 0;
    unsigned parity = 0; /* of the stage's phases */

    __device__ __forceinline__ void advance()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* Addresses in shared memory. */
struct memory {
    uint32_t stages, full, empty;

    __device__ __forceinline__ uint32_t a(int stage) const
    {
        return stages + stage * STAGE_BYTES;
    }
    __device__ __forceinline__ uint32_t b(int stage) const
    {
        return a(stage) + A_BYTES;
    }
    __device__ __forceinline__ uint32_t is_full(int stage) const
    {
        return full + 8 * stage;
    }
    __device__ __forceinline__ uint32_t is_empty(int stage) const
    {
        return empty + 8 * stage;
    }
};

/* --- the thread that copies --- */

template <bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void fetch(const gx_wgmma_maps &maps, const memory &shared,
                                      int stage, place at, int k)
{
    const uint32_t barrier = shared.is_full(stage);

    gx_barrier_expect(barrier, STAGE_BYTES);
    if constexpr (A_TURNED) {
#pragma unroll
        for (int i = 0; i < ROWS / STRIP; i++)
            gx_copy_box(shared.a(stage) + i * STRIP_BYTES, &maps.a, barrier,
                        at.row + i * STRIP, k);
    } else {
        gx_copy_box(shared.a(stage), &maps.a, barrier, k, at.row);
    }
#pragma unroll
    for (int i = 0; i < COLUMNS / STRIP / CLUSTER; i++) {
        const int strip = (int)blockIdx.y * (COLUMNS / STRIP / CLUSTER) + i;
        const int column = at.column + strip * STRIP;

        gx_copy_box_to_all(shared.b(stage) + strip * STRIP_BYTES, &maps.b, barrier,
                           B_TURNED ? k : column, B_TURNED ? column : k,
                           (1 << CLUSTER) - 1);
    }
}

template <bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void fetch_all(const gx_wgmma_maps &maps, const gx_tile &g,
                                          const memory &shared)
{
    const tiles all(g);
    const int k = (int)g.k;
    turn now;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x) {
        const place at = all[i];

        for (int64_t from = 0; from < k; from += K) {
            gx_barrier_wait(shared.is_empty(now.stage), now.parity ^ 1);
            fetch<A_TURNED, B_TURNED>(maps, shared, now.stage, at, (int)from);
            now.advance();
        }
    }
    /* Both blocks arrive at these barriers: they have to be there until all have. */
    for (int s = 0; s < STAGES; s++) {
        gx_barrier_wait(shared.is_empty(now.stage), now.parity ^ 1);
        now.advance();
    }
}

/* --- the warpgroups that multiply --- */

/* Tells the threads that copy, in both blocks, that this warpgroup has read the stage. */
__device__ __forceinline__ void leave(const memory &shared, int stage)
{
    if (threadIdx.x % WARPGROUP < CLUSTER)
        gx_barrier_arrive(shared.is_empty(stage), threadIdx.x % WARPGROUP);
    __syncwarp();
}

template <typename T, bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void multiply_stage(float (&sum)[COLUMNS / 2], uint32_t a,
                                               uint32_t b, bool is_first)
{
    /* From 16 k to the next: 16 rows, or 32 bytes of each row. */
    constexpr int A_STEP = A_TURNED ? 16 * STRIP * 2 : 32;
    constexpr int B_STEP = B_TURNED ? 32 : 16 * STRIP * 2;
    const uint64_t at_a = gx_operand_at(a, A_TURNED ? STRIP_BYTES : 16);
    const uint64_t at_b = gx_operand_at(b, B_TURNED ? 16 : STRIP_BYTES);

    gx_begin_products();
#pragma unroll
    for (int i = 0; i < K / 16; i++)
        gx_multiply_64x256<T, !A_TURNED, B_TURNED>(
            sum, at_a + i * (A_STEP / 16), at_b + i * (B_STEP / 16), !is_first || i > 0);
    gx_commit_products();
}

/* A stage is left when the products of the next one have begun. */
template <typename T, bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void multiply_tile(float (&sum)[COLUMNS / 2], int k,
                                              const memory &shared, int half, turn &now)
{
    int before = 0;

    for (int64_t from = 0; from < k; from += K) {
        gx_barrier_wait(shared.is_full(now.stage), now.parity);
        multiply_stage<T, A_TURNED, B_TURNED>(sum,
                                              shared.a(now.stage) + half * STRIP_BYTES,
                                              shared.b(now.stage), from == 0);
        if (from > 0) {
            gx_wait_products<1>();
            leave(shared, before);
        }
        before = now.stage;
        now.advance();
    }
    gx_wait_products<0>();
    gx_take_products(sum);
    leave(shared, before);
}

/* --- what follows --- */

constexpr int WIDE = 8; /* neighbours that a lane finishes at once: 16 bytes */

/* Of four lanes, each with a pair out of each of four rows of eight, each gets a row: the
 * 4 x 4 pairs are transposed, in two steps. */
__device__ __forceinline__ void transpose_quad(float (&pair)[4][2], int lane)
{
    const bool odd = (lane & 1) != 0, upper = (lane & 2) != 0;

#pragma unroll
    for (int e = 0; e < 2; e++) {
        float x = odd ? pair[0][e] : pair[1][e], y = odd ? pair[2][e] : pair[3][e];

        x = __shfl_xor_sync(0xffffffffu, x, 1);
        y = __shfl_xor_sync(0xffffffffu, y, 1);
        (odd ? pair[0][e] : pair[1][e]) = x;
        (odd ? pair[2][e] : pair[3][e]) = y;
        x = upper ? pair[0][e] : pair[2][e];
        y = upper ? pair[1][e] : pair[3][e];
        x = __shfl_xor_sync(0xffffffffu, x, 2);
        y = __shfl_xor_sync(0xffffffffu, y, 2);
        (upper ? pair[0][e] : pair[2][e]) = x;
        (upper ? pair[1][e] : pair[3][e]) = y;
    }
}

/* One branch for all eight; each activation is written 32 times for a lane, so only short
 * ones are here. */
__device__ __forceinline__ void forward_of(int act, float (&v)[WIDE])
{
#define GX_EACH(ACT)                                                                     \
    case ACT:                                                                            \
        _Pragma("unroll") for (int x = 0; x < WIDE; x++) v[x] = gx_apply_act(ACT, v[x]); \
        break
    switch (act) {
        GX_EACH(GX_ACT_RELU);
        GX_EACH(GX_ACT_GELU_TANH);
        GX_EACH(GX_ACT_SILU);
    default:
        break;
    }
#undef GX_EACH
}

__device__ __forceinline__ void backward_of(int act, float (&v)[WIDE],
                                            const float (&saved)[WIDE])
{
#define GX_EACH(ACT)                                            \
    case ACT:                                                   \
        _Pragma("unroll") for (int x = 0; x < WIDE; x++) v[x] = \
            gx_act_backward(ACT, v[x], saved[x]);               \
        break
    switch (act) {
        GX_EACH(GX_ACT_RELU);
        GX_EACH(GX_ACT_GELU_TANH);
        GX_EACH(GX_ACT_SILU);
    default:
        break;
    }
#undef GX_EACH
}

template <typename T>
__device__ __forceinline__ void load_eight(float (&to)[WIDE], const T *from)
{
    gx_to_floats(to, gx_vector_at<WIDE>(from));
}

/* Finishes eight neighbours; v is then what a column sum gets. */
template <typename T, gx_tile_tail TAIL>
__device__ __forceinline__ void finish_eight(const gx_tile &g, int row, int column,
                                             float (&v)[WIDE])
{
    const int64_t at = (int64_t)row * g.n + column;
    T *out = static_cast<T *>(g.out);

    if constexpr (TAIL == GX_TAIL_FORWARD) {
        if (g.bias != nullptr) {
            float bias[WIDE];

            load_eight(bias, static_cast<const T *>(g.bias) + column);
#pragma unroll
            for (int x = 0; x < WIDE; x++)
                v[x] += bias[x];
        }
        if (g.pre != nullptr)
            gx_store_widest(static_cast<T *>(g.pre) + at, v);
        forward_of(g.act, v);
    } else if constexpr (TAIL == GX_TAIL_BACKWARD) {
        if (g.saved != nullptr) {
            float saved[WIDE];

            load_eight(saved, static_cast<const T *>(g.saved) + at);
            backward_of(g.act, v, saved);
        }
    }
    if (out != nullptr)
        gx_store_widest(out + at, v);
}

/* The column sums of a piece from those of its four warps, in order. */
__device__ __forceinline__ void add_warps(const gx_tile &g, int row, int column, int half,
                                          const float *sums)
{
    gx_sync_warpgroup(1 + half);
#pragma unroll
    for (int c = (int)threadIdx.x % WARPGROUP; c < COLUMNS; c += WARPGROUP) {
        float total = 0.0f;

#pragma unroll
        for (int warp = 0; warp < WARPGROUP / 32; warp++)
            total += sums[warp * COLUMNS + c];
        if (row < g.m && column + c < g.n)
            g.partial[(int64_t)(row / PIECE) * g.n + column + c] = total;
    }
    gx_sync_warpgroup(1 + half); /* the next tile's are written to the same place */
}

/* 64 rows of the tile. A lane has two rows, eight apart, and pairs of columns; four lanes
 * exchange theirs. Lanes beyond the edge take part in every exchange. `sums`: of this
 * warpgroup. */
template <typename T, gx_tile_tail TAIL, bool HAS_SUMS>
__device__ __forceinline__ void finish_tile(const gx_tile &g,
                                            const float (&sum)[COLUMNS / 2], int row,
                                            int column, int half, float *sums)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x % WARPGROUP / 32;
    const int m = (int)g.m, n = (int)g.n;

#pragma unroll
    for (int j = 0; j < COLUMNS / 32; j++) {
        const int c = 32 * j + WIDE * (lane % 4);
        float column_sum[WIDE] = {};

#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = row + 16 * warp + 8 * i + lane / 4;
            float pair[4][2], v[WIDE];

#pragma unroll
            for (int p = 0; p < 4; p++) {
                pair[p][0] = sum[(4 * j + p) * 4 + 2 * i];
                pair[p][1] = sum[(4 * j + p) * 4 + 2 * i + 1];
            }
            __syncwarp();
            transpose_quad(pair, lane);
#pragma unroll
            for (int x = 0; x < WIDE; x++)
                v[x] = pair[x / 2][x % 2];
            if (r < m && column + c < n) {
                finish_eight<T, TAIL>(g, r, column + c, v);
                if constexpr (HAS_SUMS) {
#pragma unroll
                    for (int x = 0; x < WIDE; x++)
                        column_sum[x] += v[x];
                }
            }
        }
        if constexpr (HAS_SUMS) {
            __syncwarp();
#pragma unroll
            for (int x = 0; x < WIDE; x++) {
#pragma unroll
                for (int step = 4; step < 32; step *= 2)
                    column_sum[x] += __shfl_xor_sync(0xffffffffu, column_sum[x], step);
                if (lane < 4)
                    sums[warp * COLUMNS + c + x] = column_sum[x];
            }
        }
    }
    if constexpr (HAS_SUMS)
        add_warps(g, row, column, half, sums);
}

template <typename T, bool A_TURNED, bool B_TURNED, gx_tile_tail TAIL, bool HAS_SUMS>
__device__ __forceinline__ void multiply_all(const gx_tile &g, const memory &shared,
                                             int half, float *sums)
{
    const tiles all(g);
    turn now;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x) {
        const place at = all[i];
        float sum[COLUMNS / 2];

        multiply_tile<T, A_TURNED, B_TURNED>(sum, (int)g.k, shared, half, now);
        finish_tile<T, TAIL, HAS_SUMS>(g, sum, at.row + half * PIECE, at.column, half,
                                       sums);
    }
}

/* --- the kernels --- */

template <typename T, bool A_TURNED, bool B_TURNED, gx_tile_tail TAIL, bool HAS_SUMS>
__global__ void __launch_bounds__(THREADS, 1)
    wgmma_kernel(const __grid_constant__ gx_wgmma_maps maps,
                 const __grid_constant__ gx_tile g)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, bytes);
    const uint32_t begin = gx_shared_address(bytes);
    const uint32_t stages = (begin + ATOM - 1) / ATOM * ATOM;
    const uint32_t barriers = stages + STAGES * STAGE_BYTES;
    const memory shared = { stages, barriers, barriers + 8 * STAGES };
    const int warpgroup = (int)threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            gx_barrier_init(shared.is_full(s), 1);
            gx_barrier_init(shared.is_empty(s), 2 * CLUSTER);
        }
        gx_publish_barriers();
    }
    __syncwarp();
    gx_arrive_at_cluster(true);
    gx_wait_for_cluster();
    if (warpgroup == 2) {
        gx_fewer_registers<FEW_REGISTERS>();
        if (threadIdx.x == 2 * WARPGROUP)
            fetch_all<A_TURNED, B_TURNED>(maps, g, shared);
    } else {
        float *sums =
            reinterpret_cast<float *>(bytes + (barriers - begin) + BARRIER_BYTES) +
            warpgroup * (WARPGROUP / 32) * COLUMNS;

        gx_more_registers<MANY_REGISTERS>();
        multiply_all<T, A_TURNED, B_TURNED, TAIL, HAS_SUMS>(g, shared, warpgroup, sums);
    }
    /* The other block writes to this one's memory until it is done. */
    __syncwarp();
    gx_arrive_at_cluster(true);
    gx_wait_for_cluster();
}

/* dbias from the sums of all pieces: each warp adds every eighth, then they are added, in
 * order. A block has 32 columns. */
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS)
    wgmma_sums_kernel(const float *partial, T *dbias, int64_t pieces, int64_t n)
{
    gx_begin_kernel();
    constexpr int WARPS = SUM_THREADS / 32;
    __shared__ float sums[WARPS][32];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int64_t c = (int64_t)blockIdx.x * 32 + lane;
    float total = 0.0f;

#pragma unroll 4
    for (int64_t piece = warp; c < n && piece < pieces; piece += WARPS)
        total += partial[piece * n + c];
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
    return act == GX_ACT_NONE || act == GX_ACT_RELU || act == GX_ACT_GELU_TANH ||
           act == GX_ACT_SILU;
}

extern "C" size_t gx_wgmma_shared_bytes(void)
{
    return SHARED_BYTES;
}

extern "C" gx_status gx_wgmma_load(const gx_tile *tile, gx_error *err)
{
    if (has_sums(tile))
        GX_TRY(gx_load_kernel(find_sums(tile), 0, "wgmma_sums_kernel", err));
    return gx_load_cluster_kernel(find(tile), dim3(THREADS), CLUSTER, SHARED_BYTES,
                                  "wgmma_kernel", err);
}

extern "C" gx_status gx_wgmma_launch(const gx_tile *tile, const gx_wgmma_maps *maps,
                                     gx_ctx *ctx, gx_error *err)
{
    const int64_t all =
        gx_divide_up(tile->m, CLUSTER * ROWS) * gx_divide_up(tile->n, COLUMNS);
    const int64_t room = ctx->n_sm / CLUSTER;
    void *args[] = { (void *)maps, (void *)tile };

    GX_TRY(gx_launch_cluster(ctx, "wgmma_kernel", find(tile),
                             dim3(gx_grid_for(all, 1, room > 0 ? room : 1), CLUSTER),
                             dim3(THREADS), CLUSTER, SHARED_BYTES, args, err));
    if (!has_sums(tile))
        return GX_OK;
    int64_t pieces = gx_divide_up(tile->m, PIECE);
    void *sum_args[] = { (void *)&tile->partial, (void *)&tile->dbias, &pieces,
                         (void *)&tile->n };

    return gx_launch(ctx, "wgmma_sums_kernel", find_sums(tile),
                     dim3((unsigned)gx_divide_up(tile->n, 32)), dim3(SUM_THREADS), 0,
                     sum_args, err);
}
