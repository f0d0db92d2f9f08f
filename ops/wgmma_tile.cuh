/* Tiles of large products on the tensor cores of sm_90, for the kernels that are made of
 * them.
 *
 * A block stays and makes one tile after the other. Two of its warpgroups multiply 64
 * rows of the tile each, straight from shared memory. A thread of the third copies boxes
 * of the operands, several stages ahead, by the copy engine; what follows a product is
 * done by three more of that warpgroup's warps. Two blocks of a cluster
 * make tiles one above the other: each copies half of the columns of b, for both. The
 * engine puts zeros where an operand ends, so that only what is stored asks for bounds.
 */
#ifndef GX_WGMMA_TILE_CUH
#define GX_WGMMA_TILE_CUH

#include "update.cuh"
#include "wgmma.cuh"
#include "wgmma.h"

#ifndef GX_HAVE_WGMMA
#define GX_HAVE_WGMMA 0
#endif

namespace
{

constexpr int ROWS = GX_WGMMA_ROWS, COLUMNS = GX_WGMMA_COLUMNS, K = GX_WGMMA_K;
constexpr int WARPGROUP = 128, THREADS = 3 * WARPGROUP;
constexpr int CLUSTER = 2, STAGES = 4;
constexpr int A_BYTES = ROWS * K * 2;
constexpr int STAGE_BYTES = A_BYTES + COLUMNS * K * 2;
constexpr int ATOM = 1024; /* bytes that the swizzle repeats after */
constexpr int BARRIER_BYTES = 2 * STAGES * (int)sizeof(uint64_t);
constexpr int TILES_BYTES = ATOM + STAGES * STAGE_BYTES + BARRIER_BYTES;
/* Of tiles that others finish, see below. */
constexpr int TILE_ELEMENTS = ROWS * COLUMNS;
constexpr int FINISHERS = WARPGROUP - 32, ALL_FINISHERS = FINISHERS + 2 * WARPGROUP;
constexpr int HAND_OVER_BYTES = 3 * (int)sizeof(uint64_t);

/* Clusters of a launch: the card has room for as many, and for no more. */
inline int64_t room_of(int n_sm)
{
    return n_sm / CLUSTER > 0 ? n_sm / CLUSTER : 1;
}

#if GX_HAVE_WGMMA

constexpr int LINE_BYTES = 128;                 /* of a row of a box */
constexpr int STRIP = GX_WGMMA_BOX;             /* rows or columns of a box of b */
constexpr int STRIP_BYTES = STRIP * LINE_BYTES; /* in shared memory */
/* Rows of tiles of a cluster that are made before the next column of tiles: what both
 * operands need then stays in the cache. */
constexpr int GROUP_ROWS = 8;

/* A block has 64 K registers, of which each thread begins with the same share: what one
 * warpgroup gives away, the two others get. */
template <int FEW, int MANY>
constexpr bool is_share_of_registers = FEW + 2 * MANY <= 65536 / THREADS / 8 * 8 * 3;

/* --- where a tile lies --- */

struct place {
    int row, column; /* of the block's tile */
};

/* Tiles of a cluster, in the order in which they are made. */
struct tiles {
    int down, across;

    __device__ __forceinline__ tiles(int64_t m, int64_t n)
        : down((int)((m + CLUSTER * ROWS - 1) / (CLUSTER * ROWS))),
          across((int)((n + COLUMNS - 1) / COLUMNS))
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

    /* Of those that the block makes. */
    __device__ __forceinline__ bool is_last(int64_t i) const
    {
        return i + gridDim.x >= count();
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

/* Where everything lies in the shared memory that a launch asks for. */
struct division {
    memory shared;
    uint32_t hand_over;  /* where HAND_OVER_BYTES are */
    unsigned char *rest; /* behind them */

    __device__ __forceinline__ explicit division(unsigned char *bytes)
    {
        const uint32_t begin = gx_shared_address(bytes);
        const uint32_t stages = (begin + ATOM - 1) / ATOM * ATOM;
        const uint32_t barriers = stages + STAGES * STAGE_BYTES;

        shared = { stages, barriers, barriers + 8 * STAGES };
        hand_over = barriers + BARRIER_BYTES;
        rest = bytes + (hand_over - begin) + HAND_OVER_BYTES;
    }
};

/* Before the first copy, by all threads of both blocks. `leaving` of each block tell that
 * they have read a stage. */
__device__ __forceinline__ void open_barriers(const memory &shared, int leaving = 2)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            gx_barrier_init(shared.is_full(s), 1);
            gx_barrier_init(shared.is_empty(s), leaving * CLUSTER);
        }
        gx_publish_barriers();
    }
    __syncwarp();
    gx_arrive_at_cluster(true);
    gx_wait_for_cluster();
}

/* At the end: the other block writes to this one's memory until it is done. */
__device__ __forceinline__ void close_cluster()
{
    __syncwarp();
    gx_arrive_at_cluster(true);
    gx_wait_for_cluster();
}

/* --- the thread that copies --- */

/* A stage has K_AT_ONCE along k. */
template <bool A_TURNED, bool B_TURNED, int K_AT_ONCE>
__device__ __forceinline__ void fetch(const gx_wgmma_maps &maps, const memory &shared,
                                      int stage, place at, int k)
{
    const uint32_t barrier = shared.is_full(stage);

    gx_barrier_expect(barrier, STAGE_BYTES);
    if constexpr (A_TURNED) {
#pragma unroll
        for (int i = 0; i < ROWS / K_AT_ONCE; i++)
            gx_copy_box(shared.a(stage) + i * K_AT_ONCE * LINE_BYTES, &maps.a, barrier,
                        at.row + i * K_AT_ONCE, k);
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

template <bool A_TURNED, bool B_TURNED, int K_AT_ONCE = K>
__device__ __forceinline__ void fetch_tile(const gx_wgmma_maps &maps, int k,
                                           const memory &shared, place at, turn &now)
{
    for (int64_t from = 0; from < k; from += K_AT_ONCE) {
        gx_barrier_wait(shared.is_empty(now.stage), now.parity ^ 1);
        fetch<A_TURNED, B_TURNED, K_AT_ONCE>(maps, shared, now.stage, at, (int)from);
        now.advance();
    }
}

/* Both blocks arrive at these barriers: they have to be there until all have. */
__device__ __forceinline__ void await_readers(const memory &shared, turn &now)
{
    for (int s = 0; s < STAGES; s++) {
        gx_barrier_wait(shared.is_empty(now.stage), now.parity ^ 1);
        now.advance();
    }
}

/* Of the tiles of one product. */
template <bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void fetch_all(const gx_wgmma_maps &maps, const tiles &all,
                                          int k, const memory &shared)
{
    turn now;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x)
        fetch_tile<A_TURNED, B_TURNED>(maps, k, shared, all[i], now);
    await_readers(shared, now);
}

/* --- the warpgroups that multiply --- */

/* Tells the threads that copy, in both blocks, that this warpgroup has read the stage. */
__device__ __forceinline__ void leave(const memory &shared, int stage)
{
    if (threadIdx.x % WARPGROUP < CLUSTER)
        gx_barrier_arrive(shared.is_empty(stage), threadIdx.x % WARPGROUP);
    __syncwarp();
}

/* Where an operand lies, in the 128-byte swizzle. `leading` bytes from 64 columns to the
 * next where k is not along the rows; 1024 from eight rows to the next. */
__device__ __forceinline__ uint64_t operand_at(uint32_t address, uint32_t leading)
{
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

template <typename T, bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void multiply_stage(float (&sum)[COLUMNS / 2], uint32_t a,
                                               uint32_t b, bool is_first)
{
    /* From 16 k to the next: 16 rows, or 32 bytes of each row. */
    constexpr int A_STEP = A_TURNED ? 16 * STRIP * 2 : 32;
    constexpr int B_STEP = B_TURNED ? 32 : 16 * STRIP * 2;
    const uint64_t at_a = operand_at(a, A_TURNED ? STRIP_BYTES : 16);
    const uint64_t at_b = operand_at(b, B_TURNED ? 16 : STRIP_BYTES);

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

/* --- the sums as they are stored --- */

constexpr int WIDE = 8; /* neighbours that a lane finishes at once: 16 bytes, or 32 */

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

/* Of tf32 a lane reads pairs of rows of `a` from boxes of 32, four rows in each 16 bytes,
 * the swizzle's pieces. Sixteen lanes read at once, at four k each, and would meet in the
 * same banks of shared memory with pieces that differ in less than their highest bit: so
 * 0 and 4 are the first sixteen lanes' of the first warp of two, 1 and 5 the other
 * sixteen's, and 2 and 6, 3 and 7 the second warp's. */
__device__ __forceinline__ int piece_of_lane()
{
    const int warp = (int)threadIdx.x % WARPGROUP / 32, g = (int)threadIdx.x % 32 / 4;

    return warp % 2 * 2 + g / 4 + g / 2 % 2 * 4;
}

/* Of the 64 rows of a warpgroup's sums: where the lane's eight neighbours number j of row
 * i begin, and what they are. All lanes take part. */
template <typename T> __device__ __forceinline__ int row_of_eight(int i)
{
    const int warp = (int)threadIdx.x % WARPGROUP / 32, g = (int)threadIdx.x % 32 / 4;

    if constexpr (sizeof(T) == 4)
        return warp / 2 * 32 + piece_of_lane() * 4 + g % 2 * 2 + i;
    else
        return 16 * warp + 8 * i + g;
}

__device__ __forceinline__ int column_of_eight(int j)
{
    return 32 * j + WIDE * ((int)threadIdx.x % 4);
}

__device__ __forceinline__ void take_eight(const float (&sum)[COLUMNS / 2], int i, int j,
                                           float (&v)[WIDE])
{
    float pair[4][2];

#pragma unroll
    for (int p = 0; p < 4; p++) {
        pair[p][0] = sum[(4 * j + p) * 4 + 2 * i];
        pair[p][1] = sum[(4 * j + p) * 4 + 2 * i + 1];
    }
    __syncwarp();
    transpose_quad(pair, (int)threadIdx.x % 32);
#pragma unroll
    for (int x = 0; x < WIDE; x++)
        v[x] = pair[x / 2][x % 2];
}

/* --- tiles that others finish --- */

/* What follows a product takes as long as memory takes to bring what it reads: the warps
 * of the copying warpgroup that copy nothing do that with the last tile while the next
 * one is made. They get a tile, rounded to what is stored, through a place in memory that
 * each block has for itself and that stays in the cache. With a block's last tile those
 * that multiplied help, having nothing else to do. */
constexpr int EIGHTHS = TILE_ELEMENTS / WIDE;
constexpr int FINISHING_REGISTERS = 104, HANDING_REGISTERS = 200;
static_assert(is_share_of_registers<FINISHING_REGISTERS, HANDING_REGISTERS>, "");

struct hand_over {
    uint32_t is_there, is_taken, all_met; /* barriers */
    void *tile;                           /* [ROWS, COLUMNS] */

    /* `barriers`: where HAND_OVER_BYTES are free; elements have so many bytes. */
    __device__ __forceinline__ hand_over(uint32_t barriers, void *tiles, size_t bytes = 2)
        : is_there(barriers), is_taken(barriers + 8), all_met(barriers + 16),
          tile(static_cast<unsigned char *>(tiles) +
               (blockIdx.x * CLUSTER + blockIdx.y) * TILE_ELEMENTS * bytes)
    {
    }

    /* Ahead of open_barriers. */
    __device__ __forceinline__ void open() const
    {
        if (threadIdx.x != 0)
            return;
        gx_barrier_init(is_there, 2 * WARPGROUP);
        gx_barrier_init(is_taken, FINISHERS);
        gx_barrier_init(all_met, ALL_FINISHERS);
    }
};

/* Until the block's tile is there: `parity` is 0 for its first and changes from tile to
 * tile. */
__device__ __forceinline__ void await_tile(const hand_over &over, unsigned parity)
{
    gx_barrier_wait(over.is_there, parity);
    gx_may_delay();
}

template <typename T>
__device__ __forceinline__ void hand_eight(T *to, const float (&v)[WIDE])
{
    constexpr int EACH = (int)sizeof(uint4) / (int)sizeof(T);

#pragma unroll
    for (int i = 0; i < WIDE; i += EACH) {
        float some[EACH];

#pragma unroll
        for (int x = 0; x < EACH; x++)
            some[x] = v[i + x];
        __stcg(reinterpret_cast<uint4 *>(to + i), pack<T>(some));
    }
}

/* By both warpgroups, their half each. `parity` is 1 for a block's first tile and changes
 * from tile to tile. */
template <typename T>
__device__ __forceinline__ void hand_tile(const float (&sum)[COLUMNS / 2],
                                          const hand_over &over, int half,
                                          unsigned parity)
{
    T *tile = static_cast<T *>(over.tile) + half * (ROWS / 2) * COLUMNS;

    gx_barrier_wait(over.is_taken, parity);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 32; j++) {
            float v[WIDE];

            take_eight(sum, i, j, v);
            hand_eight(tile + row_of_eight<T>(i) * COLUMNS + column_of_eight(j), v);
        }
    }
    gx_barrier_arrive_here(over.is_there);
}

/* Those that finish a tile together: how many, and the thread's number among them, below
 * 0 where it is none of them. */
struct crew {
    int n, thread;

    /* By a thread that multiplies nothing. */
    static __device__ __forceinline__ crew few()
    {
        return { FINISHERS, (int)threadIdx.x - 2 * WARPGROUP - 32 };
    }

    /* All but the warp that copies. */
    static __device__ __forceinline__ crew all()
    {
        const int thread = (int)threadIdx.x;

        return { ALL_FINISHERS, thread < 2 * WARPGROUP ? thread : thread - 32 };
    }
};

/* What each of a crew has written to shared memory the others then see. A crew of all
 * meets once. */
__device__ __forceinline__ void meet(const hand_over &over, const crew &of)
{
    if (of.n == FINISHERS) {
        gx_sync_threads(FINISHERS);
    } else {
        gx_barrier_arrive_here(over.all_met);
        gx_barrier_wait(over.all_met, 0);
    }
}

/* N neighbours of a tile that begins at `at`: number e of them all. */
template <int N> struct neighbours {
    int row, column;
    bool is_there; /* and not past the edge */

    __device__ __forceinline__ neighbours(place at, int e, int m, int n)
        : row(at.row + e / (COLUMNS / N)), column(at.column + e % (COLUMNS / N) * N),
          is_there(e < TILE_ELEMENTS / N && row < m && column < n)
    {
    }
};

/* A thread that takes every n-th of a crew's n has the same columns of every row. */
using eighth = neighbours<WIDE>;
static_assert(FINISHERS % (COLUMNS / WIDE) == 0 && ALL_FINISHERS % (COLUMNS / WIDE) == 0,
              "");

template <typename T>
__device__ __forceinline__ void add_bias(const void *bias, int column, float (&v)[WIDE])
{
    float of_columns[WIDE];

    if (bias == nullptr)
        return;
    gx_to_floats(of_columns, gx_vector_at<WIDE>(static_cast<const T *>(bias) + column));
#pragma unroll
    for (int x = 0; x < WIDE; x++)
        v[x] += of_columns[x];
}

#endif

} // namespace

#endif
