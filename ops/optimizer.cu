/* Optimizers over a table of tensors: a block walks chunks, and finds each one's tensor.
 */
#include <string.h>
#include <type_traits>

#include "kernel.cuh"
#include "optimizer_kernels.h"
#include "update.cuh"

namespace
{

/* Threads of a block. Many chunks of narrow types go to smaller blocks: a thread's part
 * of a chunk is then two vectors of 16 bytes each as it is with wide types, and the one
 * is on its way while the other is worked on. Of few chunks each is done sooner by more
 * threads.
 */
constexpr int THREADS = 256, THREADS_OF_MANY = 128;

/* So many blocks of a multiprocessor have enough bytes on the way to keep memory busy,
 * and registers for them. */
constexpr int blocks_per_sm(bool all_narrow, int threads)
{
    return threads == THREADS_OF_MANY ? 6 : all_narrow ? 4 : 3;
}

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

/* For the threads of the block, each group's by one of them, whose rate is `lr`. */
template <int RULE>
__device__ __forceinline__ void find_factors(const gx_update_table &table, int64_t done,
                                             float lr, factors (&f)[GX_UPDATE_SETTINGS])
{
    if ((int)threadIdx.x < table.n_settings)
        f[threadIdx.x] = factors_of<RULE>(table.settings[threadIdx.x], done, lr);
    __syncthreads();
}

/* Types of an update: the parameter, its gradient, its state; and whether it has a
 * master in f32, of which it is a copy then. */
template <typename PARAM, typename GRAD, typename STATE, bool MASTER> struct types {
    using T = PARAM;
    using G = GRAD;
    using S = STATE;
    using W = std::conditional_t<MASTER, float, PARAM>; /* what is updated */
    static constexpr bool has_master = MASTER;
    static constexpr bool all_narrow =
        sizeof(W) == 2 && sizeof(GRAD) == 2 && sizeof(STATE) == 2;
};

/* What one thread updates at a time, as it lies in memory: what turned it into f32 at
 * once would wait for it before the next loads are on their way. A rule without moments
 * leaves them alone. */
template <typename TYPES, int N> struct cells {
    bits_of<typename TYPES::W, N> p;
    bits_of<typename TYPES::G, N> g;
    bits_of<typename TYPES::S, N> m, v;
};

/* Where a thread's part of a piece begins in each tensor. */
template <int RULE, typename TYPES> struct places {
    static constexpr int POINTERS = 2 + RULE + TYPES::has_master;
    using T = typename TYPES::T;
    using G = typename TYPES::G;
    using S = typename TYPES::S;
    using W = typename TYPES::W;
    T *param;
    const G *grad;
    S *m, *v;
    float *weight; /* the master */

    __device__ __forceinline__ void start(const entry_of<POINTERS> &e, int64_t i)
    {
        param = e.template at<T>(0) + i;
        grad = e.template at<const G>(1) + i;
        m = RULE != GX_UPDATE_SGD ? e.template at<S>(2) + i : nullptr;
        v = RULE == GX_UPDATE_ADAM ? e.template at<S>(3) + i : nullptr;
        weight = TYPES::has_master ? e.template at<float>(POINTERS - 1) + i : nullptr;
    }

    __device__ __forceinline__ void move(int64_t elements)
    {
        param += elements;
        grad += elements;
        if constexpr (RULE != GX_UPDATE_SGD)
            m += elements;
        if constexpr (RULE == GX_UPDATE_ADAM)
            v += elements;
        if constexpr (TYPES::has_master)
            weight += elements;
    }

    template <int N> __device__ __forceinline__ void load(cells<TYPES, N> &c, int i) const
    {
        if constexpr (TYPES::has_master)
            c.p = load_bits_away<N>(weight + i);
        else
            c.p = load_bits<N>(param + i);
        c.g = load_bits<N>(grad + i);
        if constexpr (RULE != GX_UPDATE_SGD)
            c.m = load_bits_away<N>(m + i);
        if constexpr (RULE == GX_UPDATE_ADAM)
            c.v = load_bits_away<N>(v + i);
    }

    template <int N>
    __device__ __forceinline__ void finish(const cells<TYPES, N> &c, int i,
                                           const gx_update_settings &s, const factors &f,
                                           const moment &now) const
    {
        float p[N], g[N], of_m[N], of_v[N];

        unpack<W>(p, c.p);
        unpack<G>(g, c.g);
        if constexpr (RULE != GX_UPDATE_SGD)
            unpack<S>(of_m, c.m);
        if constexpr (RULE == GX_UPDATE_ADAM)
            unpack<S>(of_v, c.v);
#pragma unroll
        for (int x = 0; x < N; x++)
            update<RULE>(p[x], g[x], of_m[x], of_v[x], s, f, now);
        gx_store_vector(param + i, p);
        if constexpr (TYPES::has_master)
            store_away(weight + i, p);
        if constexpr (RULE != GX_UPDATE_SGD)
            store_away(m + i, of_m);
        if constexpr (RULE == GX_UPDATE_ADAM)
            store_away(v + i, of_v);
    }
};

/* A thread's part of a chunk of the table: of a whole one N neighbours in each of so many
 * rounds, at the end of a tensor element by element. */
template <int RULE, typename TYPES, int N, int BLOCK> struct part {
    places<RULE, TYPES> at; /* of the thread's first N */
    int64_t left;           /* elements of the tensor, from the chunk on */
    int group;

    __device__ __forceinline__ void find(const gx_update_table &table, int64_t chunk)
    {
        constexpr int POINTERS = places<RULE, TYPES>::POINTERS;
        const entry_of<POINTERS> e(table, find_entry<POINTERS>(table, chunk));
        const int64_t first = (chunk - e.first_chunk()) * GX_OPTIMIZER_CHUNK;

        left = e.n() - first;
        group = e.group();
        at.start(e, first + (int)threadIdx.x * N);
    }
    /* Goes to `chunk`, which is so many elements on: in most cases in the same tensor. */
    __device__ __forceinline__ void move(const gx_update_table &table, int64_t chunk,
                                         int64_t elements)
    {
        if (left > elements) {
            left -= elements;
            at.move(elements);
        } else {
            find(table, chunk);
        }
    }
    __device__ __forceinline__ bool is_whole() const
    {
        return left >= GX_OPTIMIZER_CHUNK;
    }
    __device__ __forceinline__ void finish_end(const gx_update_settings &s,
                                               const factors &f, const moment &now) const
    {
        const int own = (int)threadIdx.x;

#pragma unroll 1
        for (int i = own; i < (int)left; i += BLOCK) {
            cells<TYPES, 1> one;

            at.load(one, i - own * N);
            at.finish(one, i - own * N, s, f, now);
        }
    }
};

/* The first chunk is on its way while the factors are found, which takes about as long;
 * where it lies is found ahead of the wait for the kernels before. From then on each
 * round of the next chunk is on its way as soon as that of this one is done. */
template <int RULE, typename TYPES, int N, int BLOCK>
__global__ void __launch_bounds__(BLOCK, blocks_per_sm(TYPES::all_narrow, BLOCK))
    update_kernel(const __grid_constant__ gx_update_table table)
{
    constexpr int ROUNDS = GX_OPTIMIZER_CHUNK / (BLOCK * N), STEP = BLOCK * N;
    __shared__ factors f[GX_UPDATE_SETTINGS];
    cells<TYPES, N> c[ROUNDS];
    const int64_t stride = (int64_t)gridDim.x * GX_OPTIMIZER_CHUNK;
    int64_t chunk = blockIdx.x;
    part<RULE, TYPES, N, BLOCK> mine;

    mine.find(table, chunk);
    gx_find_ahead(mine.at.param, mine.at.grad, mine.at.m, mine.at.v, mine.at.weight);
    gx_begin_kernel();
    if (mine.is_whole()) {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++)
            mine.at.load(c[r], r * STEP);
    }
    const int32_t step = table.step != nullptr ? *table.step : 0;
    const float scale = table.scale != nullptr ? *table.scale : 1.0f;
    const float lr =
        (int)threadIdx.x < table.n_settings ? *table.settings[threadIdx.x].lr : 0.0f;
    const uint32_t every = (uint32_t)table.accumulate, done = (uint32_t)step / every;

    if (step < 0 || (uint32_t)step - done * every != every - 1)
        return; /* skipped, or a gradient has been added to, no more */
    const moment now = { scale, done == 0 };

    find_factors<RULE>(table, done, lr, f);
    while (true) {
        const gx_update_settings s = table.settings[mine.group];
        const factors shared = f[mine.group];
        part<RULE, TYPES, N, BLOCK> next = mine;

        chunk += gridDim.x;
        const bool is_last = chunk >= table.n_chunks;

        if (!is_last)
            next.move(table, chunk, stride);
        if (!mine.is_whole())
            mine.finish_end(s, shared, now);
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (mine.is_whole())
                mine.at.finish(c[r], r * STEP, s, shared, now);
            if (!is_last && next.is_whole())
                next.at.load(c[r], r * STEP);
        }
        if (is_last)
            return;
        mine = next;
    }
}

template <int RULE, typename TYPES> const void *of_width(const gx_update_table *table)
{
    constexpr int AT_ONCE = TYPES::all_narrow ? 8 : 4; /* 16 bytes of the widest type */

    if (!table->wide)
        return gx_kernel(update_kernel<RULE, TYPES, 1, THREADS>);
    if constexpr (TYPES::all_narrow) {
        if (table->many)
            return gx_kernel(update_kernel<RULE, TYPES, AT_ONCE, THREADS_OF_MANY>);
    }
    return gx_kernel(update_kernel<RULE, TYPES, AT_ONCE, THREADS>);
}

template <int RULE, typename T, typename G, typename S>
const void *of_master(const gx_update_table *table)
{
    return table->has_master ? of_width<RULE, types<T, G, S, true>>(table)
                             : of_width<RULE, types<T, G, S, false>>(table);
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
            return of_width<RULE, types<T, T, T, false>>(table);
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
    const int threads = table->many ? THREADS_OF_MANY : THREADS;
    const int per_sm = blocks_per_sm(gx_update_is_narrow(table), threads);
    const unsigned at_once = gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * per_sm);
    const unsigned in_turn = gx_grid_for(table->n_chunks, CHUNKS_PER_BLOCK, INT32_MAX);
    void *args[] = { (void *)table };

    return gx_launch(ctx, name_of(table), instance(table),
                     dim3(at_once > in_turn ? at_once : in_turn), dim3((unsigned)threads),
                     0, args, err);
}
