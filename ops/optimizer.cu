/* Optimizers over a table of tensors: a block walks chunks, and finds each one's tensor.
 */
#include <string.h>
#include <type_traits>

#include "kernel.cuh"
#include "optimizer_kernels.h"

namespace
{

constexpr int THREADS = 256;

/* So many blocks of a multiprocessor have enough bytes on the way to keep memory busy,
 * and registers for them. */
constexpr int BLOCKS_PER_SM = 3;

/* A block ends after so many chunks: one of another kernel that goes first, or needs all
 * of a multiprocessor, does not wait for the whole table. */
constexpr int CHUNKS_PER_BLOCK = 4;

static_assert(sizeof(gx_update_table) <= 4096, "a kernel takes 4 KB of arguments");

/* An entry of the table, by the number of its pointers. */
template <int POINTERS> struct entry_of {
    const uint64_t *words;

    __device__ entry_of(const gx_update_table &table, int index)
        : words(table.words + index * (POINTERS + 2))
    {
    }
    template <typename T> __device__ T *at(int pointer) const
    {
        return reinterpret_cast<T *>(words[pointer]);
    }
    __device__ int64_t n() const
    {
        return (int64_t)words[POINTERS];
    }
    __device__ int64_t first_chunk() const
    {
        return (int64_t)(uint32_t)words[POINTERS + 1];
    }
    __device__ int group() const
    {
        return (int)(words[POINTERS + 1] >> GX_UPDATE_GROUP_SHIFT);
    }
};

/* The entry that a chunk belongs to: the last one that begins at or before it. */
template <int POINTERS>
__device__ __forceinline__ int find_entry(const gx_update_table &table, int64_t chunk)
{
    int low = 0, high = table.n_entries;

    while (high - low > 1) {
        const int middle = (low + high) / 2;

        if (entry_of<POINTERS>(table, middle).first_chunk() <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* What the elements of a group share: the factor that shrinks a parameter, the rate
 * (adam: corrected), and one over the root of the second correction. */
struct factors {
    float keep, rate, root;
};

/* 1 - beta^t in double: in float it would lose most of its digits at the first steps. */
template <int RULE>
__device__ __forceinline__ void find_factors(const gx_update_table &table, int64_t done,
                                             factors (&f)[GX_UPDATE_SETTINGS])
{
    __shared__ double correction[GX_UPDATE_SETTINGS][2];
    const int x = threadIdx.x;

    if (RULE == GX_UPDATE_ADAM && x < 2 * table.n_settings) {
        const gx_update_settings &s = table.settings[x / 2];

        correction[x / 2][x % 2] =
            -expm1(((double)done + 1.0) * (x % 2 == 0 ? s.log_beta1 : s.log_beta2));
    }
    __syncthreads();
    if (x < table.n_settings) {
        const gx_update_settings &s = table.settings[x];
        const double lr = (double)*s.lr;

        if (RULE == GX_UPDATE_ADAM)
            f[x] = { (float)(1.0 - lr * s.shrink), (float)(lr / correction[x][0]),
                     (float)sqrt(correction[x][1]) };
        else
            f[x] = { 1.0f, *s.lr, 1.0f };
    }
    __syncthreads();
}

/* What does not change from element to element. */
struct moment {
    float scale;
    bool first; /* no update stands behind */
};

/* Types of an update: the parameter, its gradient, its state; and whether it has a
 * master in f32, of which it is a copy then. */
template <typename PARAM, typename GRAD, typename STATE, bool MASTER> struct types {
    using T = PARAM;
    using G = GRAD;
    using S = STATE;
    using W = std::conditional_t<MASTER, float, PARAM>; /* what is updated */
    static constexpr bool has_master = MASTER;
};

/* What one thread updates at a time, as f32; a rule without moments leaves them alone. */
template <int RULE, int N> struct cells {
    float p[N], g[N], m[N], v[N];
};

/* The bits of as many elements as a thread takes at once, stored by name: left to itself
 * the compiler takes a vector apart where the division before it branches. */
__device__ __forceinline__ void store_bits(void *to, unsigned short bits)
{
    asm volatile("st.global.b16 [%0], %1;" ::"l"(to), "h"(bits) : "memory");
}

__device__ __forceinline__ void store_bits(void *to, unsigned bits)
{
    asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(bits) : "memory");
}

__device__ __forceinline__ void store_bits(void *to, uint2 bits)
{
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(bits.x), "r"(bits.y)
                 : "memory");
}

__device__ __forceinline__ void store_bits(void *to, uint4 bits)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bits.x),
                 "r"(bits.y), "r"(bits.z), "r"(bits.w)
                 : "memory");
}

template <int BYTES>
using bits_of =
    std::conditional_t<BYTES == 2, unsigned short,
                       std::conditional_t<BYTES == 4, unsigned,
                                          std::conditional_t<BYTES == 8, uint2, uint4>>>;

template <typename T, int N>
__device__ __forceinline__ bits_of<sizeof(T) * N> pack(const float (&from)[N])
{
    gx_vector<T, N> v;
    bits_of<sizeof v> bits;

#pragma unroll
    for (int x = 0; x < N; x++)
        gx_store(&v.at[x], from[x]);
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

template <typename T, int N>
__device__ __forceinline__ void store(T *to, const float (&from)[N])
{
    store_bits(to, pack<T>(from));
}

/* Moments and masters are wanted again by the next step's update alone: they leave the
 * cache first, so that parameters, which the next forward pass reads, stay. */
template <typename T, int N>
__device__ __forceinline__ void store_away(T *to, const float (&from)[N])
{
    __stcs(reinterpret_cast<bits_of<sizeof(T) * N> *>(to), pack<T>(from));
}

template <typename T, int N>
__device__ __forceinline__ void load_away(float (&to)[N], const T *from)
{
    const bits_of<sizeof(T) *N> bits =
        __ldcs(reinterpret_cast<const bits_of<sizeof(T) * N> *>(from));
    gx_vector<T, N> v;

    memcpy(&v, &bits, sizeof v);
#pragma unroll
    for (int x = 0; x < N; x++)
        to[x] = gx_to_float(v.at[x]);
}

template <typename TYPES, int POINTERS>
__device__ __forceinline__ typename TYPES::W *weights(const entry_of<POINTERS> &e,
                                                      int64_t i)
{
    constexpr int at = TYPES::has_master ? POINTERS - 1 : 0;

    return e.template at<typename TYPES::W>(at) + i;
}

template <typename TYPES, int RULE, int N, int POINTERS>
__device__ __forceinline__ void load_cells(cells<RULE, N> &c, const entry_of<POINTERS> &e,
                                           int64_t i)
{
    using G = typename TYPES::G;
    using S = typename TYPES::S;

    if constexpr (TYPES::has_master)
        load_away(c.p, weights<TYPES>(e, i));
    else
        gx_load_vector(c.p, weights<TYPES>(e, i));
    gx_load_vector(c.g, e.template at<const G>(1) + i);
    if constexpr (RULE != GX_UPDATE_SGD)
        load_away(c.m, e.template at<const S>(2) + i);
    if constexpr (RULE == GX_UPDATE_ADAM)
        load_away(c.v, e.template at<const S>(3) + i);
}

template <typename TYPES, int RULE, int N, int POINTERS>
__device__ __forceinline__ void store_cells(const cells<RULE, N> &c,
                                            const entry_of<POINTERS> &e, int64_t i)
{
    using S = typename TYPES::S;

    store(e.template at<typename TYPES::T>(0) + i, c.p);
    if constexpr (TYPES::has_master)
        store_away(weights<TYPES>(e, i), c.p);
    if constexpr (RULE != GX_UPDATE_SGD)
        store_away(e.template at<S>(2) + i, c.m);
    if constexpr (RULE == GX_UPDATE_ADAM)
        store_away(e.template at<S>(3) + i, c.v);
}

/* Each operation is rounded by itself or fused by name, so that an element's bits do not
 * hang on which of the kernel's loops it is in. */
template <int RULE>
__device__ __forceinline__ void update(float &p, float &g, float &m, float &v,
                                       const gx_update_settings &s, const factors &f,
                                       const moment &now)
{
    g = __fmul_rn(g, now.scale); /* so that a scale of 1 changes nothing */
    if (RULE != GX_UPDATE_ADAM || s.decay > 0.0f)
        g = __fmaf_rn(s.decay, p, g);
    if constexpr (RULE == GX_UPDATE_SGD) {
        p = __fmaf_rn(-f.rate, g, p);
    } else if constexpr (RULE == GX_UPDATE_MOMENTUM) {
        m = now.first ? g : __fmaf_rn(s.keep2, m, __fmul_rn(s.take1, g));
        p = __fmaf_rn(-f.rate, s.nesterov ? __fmaf_rn(s.keep2, m, g) : m, p);
    } else {
        m = __fmaf_rn(s.take1, __fsub_rn(g, m), m);
        v = __fmaf_rn(s.keep2, v, __fmul_rn(__fmul_rn(s.take2, g), g));
        const float size = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), f.root), s.eps);

        p = __fmaf_rn(f.keep, p, -__fdiv_rn(__fmul_rn(f.rate, m), size));
    }
}

/* A chunk of the table: its tensor, and where in that it begins. */
template <int POINTERS> struct piece_of {
    entry_of<POINTERS> e;
    int64_t first, n; /* elements before it, and of the tensor */

    __device__ piece_of(const gx_update_table &table, int64_t chunk)
        : e(table, find_entry<POINTERS>(table, chunk)),
          first((chunk - e.first_chunk()) * GX_OPTIMIZER_CHUNK), n(e.n())
    {
    }
    __device__ bool is_whole() const
    {
        return first + GX_OPTIMIZER_CHUNK <= n;
    }
};

/* A thread's part of a whole chunk: all of it is on the way before any of it is used. */
template <int RULE, typename TYPES, int N, int POINTERS> struct part {
    static constexpr int ROUNDS = GX_OPTIMIZER_CHUNK / (THREADS * N);
    cells<RULE, N> c[ROUNDS];

    __device__ __forceinline__ int64_t at(const piece_of<POINTERS> &piece, int round)
    {
        return piece.first + (int64_t)(round * THREADS + (int)threadIdx.x) * N;
    }
    __device__ __forceinline__ void load(const piece_of<POINTERS> &piece)
    {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++)
            load_cells<TYPES>(c[r], piece.e, at(piece, r));
    }
    __device__ __forceinline__ void finish(const piece_of<POINTERS> &piece,
                                           const gx_update_settings &s, const factors &f,
                                           const moment &now)
    {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
            for (int x = 0; x < N; x++)
                update<RULE>(c[r].p[x], c[r].g[x], c[r].m[x], c[r].v[x], s, f, now);
            store_cells<TYPES>(c[r], piece.e, at(piece, r));
        }
    }
};

/* The end of a tensor, element by element. */
template <int RULE, typename TYPES, int POINTERS>
__device__ __forceinline__ void update_end(const piece_of<POINTERS> &piece,
                                           const gx_update_settings &s, const factors &f,
                                           const moment &now)
{
    for (int64_t i = piece.first + threadIdx.x; i < piece.n; i += THREADS) {
        cells<RULE, 1> c;

        load_cells<TYPES>(c, piece.e, i);
        update<RULE>(c.p[0], c.g[0], c.m[0], c.v[0], s, f, now);
        store_cells<TYPES>(c, piece.e, i);
    }
}

/* The first chunk is on its way while the factors are found, which takes about as long.
 */
template <int RULE, typename TYPES, int N>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    update_kernel(const __grid_constant__ gx_update_table table)
{
    constexpr int POINTERS = 2 + RULE + TYPES::has_master;
    __shared__ factors f[GX_UPDATE_SETTINGS];
    part<RULE, TYPES, N, POINTERS> mine;

    gx_begin_kernel();
    const int32_t step = table.step != nullptr ? *table.step : 0;
    const float scale = table.scale != nullptr ? *table.scale : 1.0f;
    int64_t chunk = blockIdx.x;
    piece_of<POINTERS> piece(table, chunk);

    if (piece.is_whole())
        mine.load(piece);
    const int32_t done = step / table.accumulate;

    if (step < 0 || step - done * table.accumulate != table.accumulate - 1)
        return; /* skipped, or a gradient has been added to, no more */
    const moment now = { scale, done == 0 };

    find_factors<RULE>(table, done, f);
    while (true) {
        const gx_update_settings &s = table.settings[piece.e.group()];
        const factors shared = f[piece.e.group()];

        if (piece.is_whole())
            mine.finish(piece, s, shared, now);
        else
            update_end<RULE, TYPES>(piece, s, shared, now);
        chunk += gridDim.x;
        if (chunk >= table.n_chunks)
            return;
        piece = piece_of<POINTERS>(table, chunk);
        if (piece.is_whole())
            mine.load(piece);
    }
}

template <int RULE, typename T, typename G, typename S, bool MASTER>
const void *of_width(const gx_update_table *table)
{
    return table->wide ? (const void *)update_kernel<RULE, types<T, G, S, MASTER>, 4>
                       : (const void *)update_kernel<RULE, types<T, G, S, MASTER>, 1>;
}

template <int RULE, typename T, typename G, typename S>
const void *of_master(const gx_update_table *table)
{
    return table->has_master ? of_width<RULE, T, G, S, true>(table)
                             : of_width<RULE, T, G, S, false>(table);
}

/* sgd has no state. */
template <int RULE, typename T, typename G>
const void *of_state(const gx_update_table *table)
{
    if constexpr (RULE != GX_UPDATE_SGD) {
        if (table->state_dtype == GX_F32)
            return of_master<RULE, T, G, float>(table);
    }
    return of_master<RULE, T, G, T>(table);
}

template <int RULE> const void *of_types(const gx_update_table *table)
{
    return gx_with_type(table->dtype, [&](auto of) -> const void * {
        using T = typename decltype(of)::type;

        if constexpr (std::is_same_v<T, float>)
            return of_width<RULE, T, T, T, false>(table);
        else
            return table->grad_dtype == GX_F32 ? of_state<RULE, T, float>(table)
                                               : of_state<RULE, T, T>(table);
    });
}

const void *instance(const gx_update_table *table)
{
    return table->rule == GX_UPDATE_SGD        ? of_types<GX_UPDATE_SGD>(table)
           : table->rule == GX_UPDATE_MOMENTUM ? of_types<GX_UPDATE_MOMENTUM>(table)
                                               : of_types<GX_UPDATE_ADAM>(table);
}

const char *name_of(const gx_update_table *table)
{
    return table->rule == GX_UPDATE_SGD        ? "sgd_kernel"
           : table->rule == GX_UPDATE_MOMENTUM ? "momentum_kernel"
                                               : "adam_kernel";
}

} // namespace

extern "C" gx_status gx_update_load(const gx_update_table *table, gx_error *err)
{
    return gx_load_kernel(instance(table), 0, name_of(table), err);
}

extern "C" gx_status gx_update_launch(const gx_update_table *table, gx_ctx *ctx,
                                      gx_error *err)
{
    const unsigned at_once =
        gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM);
    const unsigned in_turn = gx_grid_for(table->n_chunks, CHUNKS_PER_BLOCK, INT32_MAX);
    void *args[] = { (void *)table };

    return gx_launch(ctx, name_of(table), instance(table),
                     dim3(at_once > in_turn ? at_once : in_turn), dim3(THREADS), 0, args,
                     err);
}
