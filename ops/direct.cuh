/* Products of small matrices: fragments go straight from global memory to registers.
 *
 * A block makes one tile of out. Its warps share k: warp w takes the chunks w, w + WK,
 * ... of 16 or 32 k each, and has all loads of a turn in flight before it multiplies,
 * since what a small product waits for is latency. The warps' sums meet in shared memory.
 *
 * The order of k inside a chunk is free as long as both operands have the same one, and
 * so is the order of rows and columns inside a tile. Thread (g, t), g = lane / 4, t =
 * lane % 4, holds the t-th DEPTH k of a chunk, 4 or 8, and ROWS or COLUMNS neighbours
 * from g * ROWS or g * COLUMNS on: whichever of the two is contiguous is read as one
 * vector. So do the sums of a thread, of ROWS rows 2 COLUMNS neighbours each, go to
 * shared memory and from there to out in vectors. */
#ifndef GX_DIRECT_CUH
#define GX_DIRECT_CUH

#include <type_traits>

#include "gemm_tile.h"
#include "kernel.cuh"

namespace
{

/* 32-bit words that hold 4 neighbours along k. */
template <typename T> constexpr int GX_DIRECT_WORDS = sizeof(T);

template <int BYTES> struct direct_vector;
template <> struct direct_vector<4> {
    using type = uint32_t;
};
template <> struct direct_vector<8> {
    using type = uint2;
};
template <> struct direct_vector<16> {
    using type = uint4;
};

/* BYTES (a power of two) from an address that is a multiple of them, or of 16. Plain
 * loads: the kernel before may still have been writing when this one began. Word by word
 * into the array, since gcc 12 loses a copy into a part of one (emulated_weights). */
template <int BYTES>
__device__ __forceinline__ void load_words(uint32_t (&to)[BYTES / 4], const void *from)
{
    constexpr int AT_ONCE = BYTES < 16 ? BYTES : 16;
    using V = typename direct_vector<AT_ONCE>::type;

#pragma unroll
    for (int i = 0; i < BYTES / AT_ONCE; i++) {
        const V v = static_cast<const V *>(from)[i];
        uint32_t words[AT_ONCE / 4];

        memcpy(words, &v, sizeof v);
#pragma unroll
        for (int w = 0; w < AT_ONCE / 4; w++)
            to[i * AT_ONCE / 4 + w] = words[w];
    }
}

/* A matrix seen as [outer, k]: rows of a, or columns of b. */
template <typename T> struct direct_operand {
    const T *at;
    int64_t ld; /* elements from line to line, as stored */
    int n_outer, n_k;
};

/* Up to 4 neighbours along k, one by one. */
template <typename T>
__device__ __forceinline__ void load_rest(uint32_t (&to)[GX_DIRECT_WORDS<T>],
                                          const T *from, int n)
{
    alignas(4) T part[4];

#pragma unroll
    for (int j = 0; j < 4; j++)
        part[j] = j < n ? from[j] : T(0.0f);
    memcpy(to, part, sizeof to);
}

/* The address as it is, found here and now: the compiler would put it off to where it is
 * used, and in a loop find it anew from what it began with. It stays one of global
 * memory.
 */
template <typename T> __device__ __forceinline__ const T *direct_settled(const T *at)
{
    size_t global = __cvta_generic_to_global(at);

    gx_hide(global);
    return static_cast<const T *>(__cvta_global_to_generic(global));
}

/* Where what a thread loads of a chunk begins: N lines along k, or DEPTH across it.
 * Addresses are found ahead of the wait for the kernels before, which is time that nobody
 * misses; of many lines not all, since they take registers. */
template <typename T, int N, bool K_CONTIGUOUS, int DEPTH = 4> struct direct_lines {
    static constexpr int COUNT = K_CONTIGUOUS ? N : DEPTH;
    static constexpr int KEPT = COUNT < 4 ? COUNT : 4, EACH = COUNT / KEPT;
    static_assert(KEPT * EACH == COUNT, "each address is that of as many lines");
    const T *at[KEPT];
    int64_t ld, k_stride; /* elements from line to line, and from one k to the next */

    __device__ __forceinline__ void start(const direct_operand<T> &p, int outer, int k)
    {
        ld = p.ld;
        k_stride = K_CONTIGUOUS ? 1 : p.ld;
        at[0] = K_CONTIGUOUS ? p.at + outer * p.ld + k : p.at + k * p.ld + outer;
#pragma unroll
        for (int i = 1; i < KEPT; i++)
            at[i] = at[i - 1] + EACH * p.ld;
    }

    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            at[i] = direct_settled(at[i]);
    }

    __device__ __forceinline__ void advance(int n_k)
    {
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            at[i] += n_k * k_stride;
        settle();
    }

    __device__ __forceinline__ const T *operator[](int i) const
    {
        return at[i / EACH] + i % EACH * ld;
    }
};

/* N neighbours of the outer index and DEPTH of k as they come from memory: N lines along
 * k, or DEPTH across it. What is loaded ahead of a wait must not be looked at there, or
 * the thread would wait for it first. */
template <typename T, int N, bool K_CONTIGUOUS, int DEPTH = 4> struct direct_loaded {
    static constexpr int LINES = K_CONTIGUOUS ? N : DEPTH;
    static constexpr int EACH = (K_CONTIGUOUS ? DEPTH : N) * (int)sizeof(T) / 4;
    static constexpr int WORDS = DEPTH * (int)sizeof(T) / 4;
    uint32_t line[LINES][EACH];

    /* From `outer` and k on, which lie `ahead` along k of where `lines` begin; zeros past
     * the end. Where k is contiguous and not RAGGED n_k and ld are multiples of DEPTH,
     * where it is not contiguous n_outer and ld are ones of N. WHOLE: nothing lies past
     * the end. */
    template <bool RAGGED, bool WHOLE = false>
    __device__ __forceinline__ void
    load(const direct_operand<T> &p, const direct_lines<T, N, K_CONTIGUOUS, DEPTH> &lines,
         int ahead, int outer, int k)
    {
        const int64_t further = ahead * lines.k_stride;

#pragma unroll
        for (int i = 0; i < LINES; i++) {
            const T *from = lines[i] + further;
            const bool is_there =
                WHOLE || (K_CONTIGUOUS ? outer + i < p.n_outer && k < p.n_k
                                       : outer < p.n_outer && k + i < p.n_k);

            if (is_there) {
                if constexpr (K_CONTIGUOUS && RAGGED)
                    load_rest<T>(line[i], from, p.n_k - k);
                else
                    load_words<4 * EACH>(line[i], from);
            } else {
#pragma unroll
                for (int w = 0; w < EACH; w++)
                    line[i][w] = 0;
            }
        }
    }

    /* Of each of the N its DEPTH of k. */
    __device__ __forceinline__ void arrange(uint32_t (&to)[N][WORDS]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                if constexpr (K_CONTIGUOUS)
                    to[i][w] = line[i][w];
                else if constexpr (sizeof(T) == 4)
                    to[i][w] = line[w][i];
                else
                    to[i][w] = __byte_perm(line[2 * w][i / 2], line[2 * w + 1][i / 2],
                                           i % 2 == 0 ? 0x5410 : 0x7632);
            }
        }
    }
};

/* The same where nothing is to wait for in between. */
template <bool RAGGED, bool WHOLE = false, typename T, int N, bool K_CONTIGUOUS,
          int DEPTH, int WORDS>
__device__ __forceinline__ void
load_lines(uint32_t (&to)[N][WORDS], const direct_operand<T> &p,
           const direct_lines<T, N, K_CONTIGUOUS, DEPTH> &lines, int ahead, int outer,
           int k)
{
    direct_loaded<T, N, K_CONTIGUOUS, DEPTH> loaded;

    loaded.template load<RAGGED, WHOLE>(p, lines, ahead, outer, k);
    loaded.arrange(to);
}

/* The same of lines that are used once. */
template <typename T, int N, bool K_CONTIGUOUS, bool RAGGED>
__device__ __forceinline__ void load_chunk(uint32_t (&to)[N][GX_DIRECT_WORDS<T>],
                                           const direct_operand<T> &p, int outer, int k)
{
    direct_lines<T, N, K_CONTIGUOUS> lines;

    lines.start(p, outer, k);
    load_lines<RAGGED>(to, p, lines, 0, outer, k);
}

__device__ __forceinline__ uint32_t direct_tf32(uint32_t x)
{
    return gx_tf32(__uint_as_float(x));
}

/* sum += 16 rows of a times 8 columns of b, one chunk of k. a0 and a1 are the rows g and
 * g + 8 of the instruction. */
template <typename T, int WORDS>
__device__ __forceinline__ void
multiply_chunk(float (&sum)[4], const uint32_t (&a0)[WORDS], const uint32_t (&a1)[WORDS],
               const uint32_t (&b)[WORDS])
{
#pragma unroll
    for (int s = 0; s < WORDS; s += 2) {
        if constexpr (sizeof(T) == 4)
            gx_mma_tf32(sum, a0[s], a1[s], a0[s + 1], a1[s + 1], b[s], b[s + 1]);
        else
            gx_mma_16<T>(sum, a0[s], a1[s], a0[s + 1], a1[s + 1], b[s], b[s + 1]);
    }
}

/* What a kernel does with the operands themselves: nothing. `take` sees them in registers
 * before each multiplication, and `leave` is called before the block's threads meet. */
struct direct_no_tally {
    template <typename TILE> __device__ __forceinline__ void take(const TILE &)
    {
    }
    __device__ __forceinline__ void leave()
    {
    }
};

/* No operand is steady, as the compiler knows. */
struct direct_never {
    __device__ __forceinline__ constexpr operator bool() const
    {
        return false;
    }
};

/* A tile of 16 MI rows and 8 NI columns, made by WK warps. Operands of f32 are rounded to
 * tf32. A_TURNED: a is stored [k, m]; B_TURNED: b is stored [n, k]; RAGGED: k is
 * contiguous somewhere, and it or ld there is no multiple of 4. MOST: chunks in flight at
 * most. WHOLE: m, n and k are multiples of BM, BN and of the k of a turn. */
template <typename T, bool A_TURNED, bool B_TURNED, bool RAGGED, int MI, int NI, int WK,
          int K_AT_ONCE = 4, int MOST = 4, bool WHOLE = false>
struct direct_tile {
    static constexpr int ROWS = 2 * MI, COLUMNS = NI; /* neighbours that a thread holds */
    static constexpr int BM = 16 * MI, BN = 8 * NI, THREADS = 32 * WK;
    static constexpr int DEPTH = K_AT_ONCE;
    static constexpr int CHUNK = 4 * DEPTH; /* of k */
    static constexpr int WORDS = DEPTH * (int)sizeof(T) / 4;
    /* Chunks in flight: as many as 64 registers hold. */
    static constexpr int IN_FLIGHT = 64 / (WORDS * (ROWS + COLUMNS));
    static constexpr int TURN = IN_FLIGHT < 1 ? 1 : IN_FLIGHT > MOST ? MOST : IN_FLIGHT;
    static constexpr int SUM_BYTES = WK * BM * BN * (int)sizeof(float);

    float sum[MI][NI][4];
    uint32_t a[TURN][ROWS][WORDS], b[TURN][COLUMNS][WORDS];

    direct_loaded<T, ROWS, !A_TURNED, DEPTH> next_a[TURN];
    direct_loaded<T, COLUMNS, B_TURNED, DEPTH> next_b[TURN];
    direct_lines<T, ROWS, !A_TURNED, DEPTH> lines_a;
    direct_lines<T, COLUMNS, B_TURNED, DEPTH> lines_b;
    int outer_a, outer_b, k; /* where the thread's part of a turn begins */

    __device__ __forceinline__ void load_a(const direct_operand<T> &p)
    {
#pragma unroll
        for (int i = 0; i < TURN; i++)
            next_a[i].template load<RAGGED, WHOLE>(p, lines_a, i * WK * CHUNK, outer_a,
                                                   k + i * WK * CHUNK);
    }

    __device__ __forceinline__ void load_b(const direct_operand<T> &p)
    {
#pragma unroll
        for (int i = 0; i < TURN; i++)
            next_b[i].template load<RAGGED, WHOLE>(p, lines_b, i * WK * CHUNK, outer_b,
                                                   k + i * WK * CHUNK);
    }

    __device__ __forceinline__ void arrange()
    {
#pragma unroll
        for (int i = 0; i < TURN; i++) {
            next_a[i].arrange(a[i]);
            next_b[i].arrange(b[i]);
        }
    }

    __device__ __forceinline__ void multiply()
    {
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int i = 0; i < TURN; i++) {
#pragma unroll
                for (int w = 0; w < WORDS; w++) {
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        a[i][r][w] = direct_tf32(a[i][r][w]);
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
                        b[i][c][w] = direct_tf32(b[i][c][w]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < TURN; i++) {
#pragma unroll
            for (int x = 0; x < MI; x++) {
#pragma unroll
                for (int y = 0; y < NI; y++)
                    multiply_chunk<T>(sum[x][y], a[i][2 * x], a[i][2 * x + 1], b[i][y]);
            }
        }
    }

    /* Adds up in `sum` the chunks that warp `warp` of those that share k takes. Waits for
     * the kernels before (gx_begin_kernel) on the way: with `b_is_steady`, a bool or
     * direct_never, b is loaded ahead of that, which is right where none of them wrote
     * it. What else the caller must load `meanwhile` loads while a and b are on their
     * way.
     */
    template <typename STEADY, typename MEANWHILE, typename TALLY>
    __device__ __forceinline__ void
    add_up(const direct_operand<T> &pa, const direct_operand<T> &pb, int row, int column,
           int warp, STEADY b_is_steady, MEANWHILE &&meanwhile, TALLY &&tally)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

        outer_a = row + ROWS * g;
        outer_b = column + COLUMNS * g;
        k = CHUNK * warp + DEPTH * t;
        lines_a.start(pa, outer_a, k);
        lines_b.start(pb, outer_b, k);
        lines_a.settle();
        lines_b.settle();
#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int y = 0; y < NI; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[x][y][e] = 0.0f;
            }
        }
        if (b_is_steady)
            load_b(pb);
        /* Without that branch the assembler moves the wait ahead of the addresses: one
         * that hangs on them, and that is never taken, holds it. */
        if constexpr (std::is_same_v<STEADY, direct_never>) {
            if (lines_a.at[lines_a.KEPT - 1] == nullptr &&
                lines_b.at[lines_b.KEPT - 1] == nullptr)
                __trap();
        }
        gx_begin_kernel();
        load_a(pa);
        if (!b_is_steady)
            load_b(pb);
        meanwhile();
        /* One copy of the code that multiplies: what is not there need not be fetched. */
#pragma unroll 1
        for (int left = pa.n_k - CHUNK * warp;;) {
            arrange();
            tally.take(*this);
            multiply();
            left -= CHUNK * TURN * WK;
            if (left <= 0)
                break;
            k += CHUNK * TURN * WK;
            lines_a.advance(CHUNK * TURN * WK);
            lines_b.advance(CHUNK * TURN * WK);
            load_a(pa);
            load_b(pb);
        }
    }

    /* Where an element of a tile lies in `sums`: rows behind each other, but of each
     * thread's rows in another order, so that threads store to other banks. */
    static __device__ __forceinline__ int place(int r, int c)
    {
        const int g = r / ROWS, turn = NI == 1   ? g % 4 * 8
                                       : NI == 2 ? g % 2 * 16
                                                 : g % 2 * 4;
        static_assert(NI == 1 || NI == 2 || NI == 4, "has another order");

        return (r * BN + c) ^ turn;
    }

    /* The same by all warps of the block, whose sums are left in `sums`, of each warp as
     * `place` says, for every thread of it. */
    template <typename MEANWHILE, typename TALLY = direct_no_tally>
    __device__ __forceinline__ void
    run(const direct_operand<T> &pa, const direct_operand<T> &pb, int row, int column,
        bool b_is_steady, float *sums, MEANWHILE &&meanwhile, TALLY &&tally = TALLY())
    {
        constexpr int LINE = 2 * COLUMNS, AT_ONCE = LINE < 4 ? LINE : 4;
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

        add_up(pa, pb, row, column, warp, b_is_steady, meanwhile, tally);

        /* Rows g and g + 8 of an instruction are rows 2x and 2x + 1 of what the thread
         * holds, and its columns 2t and 2t + 1 are column y of threads 2t and 2t + 1: of
         * ROWS rows LINE neighbours. */
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int c = 0; c < LINE; c += AT_ONCE) {
                gx_vector<float, AT_ONCE> part;

#pragma unroll
                for (int x = 0; x < AT_ONCE; x++)
                    part.at[x] =
                        sum[i / 2][(c + x) % COLUMNS][i % 2 * 2 + (c + x) / COLUMNS];
                *reinterpret_cast<gx_vector<float, AT_ONCE> *>(
                    sums + warp * BM * BN + place(ROWS * g + i, LINE * t + c)) = part;
            }
        }
        tally.leave();
        __syncthreads();
    }

    /* The totals of N neighbours of a row of the tile, warps in order. */
    template <int N>
    static __device__ __forceinline__ void total(float (&x)[N], const float *sums, int r,
                                                 int c)
    {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = 0.0f;
#pragma unroll
        for (int w = 0; w < WK; w++) {
            const auto part = *reinterpret_cast<const gx_vector<float, N> *>(
                sums + w * BM * BN + place(r, c));

#pragma unroll
            for (int i = 0; i < N; i++)
                x[i] += part.at[i];
        }
    }
};

/* Elements of a tile that one thread finishes, and how many neighbours at once. */
template <typename TILE>
constexpr int PER_THREAD = (TILE::BM * TILE::BN + TILE::THREADS - 1) / TILE::THREADS;
template <typename TILE>
constexpr int AT_ONCE = PER_THREAD<TILE> < 4 ? PER_THREAD<TILE> : 4;

/* What the launcher knows of the operands. */
struct direct_known {
    bool steady_b;
    bool is_wide; /* what is beside out and out itself: rows are made of whole vectors */
};

inline direct_known known_of(const gx_tile *tile, bool steady_b)
{
    const unsigned bytes = 4 * (tile->math == GX_TILE_TF32 ? 4 : 2);
    bool is_wide = tile->n % 4 == 0;

    for (const void *data :
         { (const void *)tile->out, (const void *)tile->pre, tile->bias, tile->saved })
        is_wide = is_wide && gx_alignment_of(data, bytes) == bytes;
    return { steady_b, is_wide };
}

/* `left` neighbours of a row, N at most; is_wide: all or none, and aligned to them. */
template <typename T, int N>
__device__ __forceinline__ void load_some(gx_vector<T, N> &to, const T *from, int left,
                                          bool is_wide)
{
    if (is_wide) {
        if (left > 0)
            to = *reinterpret_cast<const gx_vector<T, N> *>(from);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i < left)
            to.at[i] = from[i];
    }
}

template <typename T, int N>
__device__ __forceinline__ void store_some(T *to, const float (&x)[N], int left,
                                           bool is_wide)
{
    if (is_wide) {
        if (left > 0)
            gx_store_vector<T, N>(to, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i < left)
            gx_store(to + i, x[i]);
    }
}

/* The product alone, once TILE::run has left `sums`. */
template <typename T, typename TILE>
__device__ __forceinline__ void store_tile(const gx_tile &g, const float *sums, int row,
                                           int column, bool is_wide)
{
    constexpr int N = AT_ONCE<TILE>;
    const int m = (int)g.m, n = (int)g.n;

#pragma unroll
    for (int i = 0; i < PER_THREAD<TILE> / N; i++) {
        const int e = N * ((int)threadIdx.x + i * TILE::THREADS);
        const int r = e / TILE::BN, c = e % TILE::BN;
        float x[N];

        if (r >= TILE::BM || row + r >= m)
            continue;
        TILE::total(x, sums, r, c);
        store_some(static_cast<T *>(g.out) + (int64_t)(row + r) * n + column + c, x,
                   n - column - c, is_wide);
    }
}

} // namespace

#endif
