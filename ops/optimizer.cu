/* Optimizers over a table of tensors: a block walks chunks, and finds each one's tensor.
 */
#include <type_traits>

#include "chunk.cuh"
#include "optimizer_kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int BLOCKS_PER_SM = 8;

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

template <typename TYPES, int POINTERS>
__device__ __forceinline__ typename TYPES::W *weights(const entry_of<POINTERS> &e,
                                                      int64_t i)
{
    constexpr int at = TYPES::has_master ? POINTERS - 1 : 0;

    return e.template at<typename TYPES::W>(at) + i;
}

template <typename TYPES, int N, int POINTERS>
__device__ __forceinline__ void store_weights(const entry_of<POINTERS> &e, int64_t i,
                                              const float (&p)[N])
{
    gx_store_vector(weights<TYPES>(e, i), p);
    if constexpr (TYPES::has_master)
        gx_store_vector(e.template at<typename TYPES::T>(0) + i, p);
}

template <typename TYPES, int N, int POINTERS>
__device__ __forceinline__ void sgd_update(const entry_of<POINTERS> &e, int64_t i,
                                           const gx_update_settings &s, const factors &f,
                                           const moment &now)
{
    using G = typename TYPES::G;
    const float lr = f.rate, decay = s.decay;
    float p[N], g[N];

    gx_load_vector(p, weights<TYPES>(e, i));
    gx_load_vector(g, e.template at<const G>(1) + i);
#pragma unroll
    for (int x = 0; x < N; x++) {
        /* rounded by itself, so that a scale of 1 changes nothing */
        g[x] = __fmul_rn(g[x], now.scale);
        p[x] -= lr * (g[x] + decay * p[x]);
    }
    store_weights<TYPES>(e, i, p);
}

template <typename TYPES, int N, int POINTERS>
__device__ __forceinline__ void momentum_update(const entry_of<POINTERS> &e, int64_t i,
                                                const gx_update_settings &s,
                                                const factors &f, const moment &now)
{
    using G = typename TYPES::G;
    typename TYPES::S *buf = e.template at<typename TYPES::S>(2) + i;
    float p[N], g[N], b[N];

    gx_load_vector(p, weights<TYPES>(e, i));
    gx_load_vector(g, e.template at<const G>(1) + i);
    gx_load_vector(b, buf);
#pragma unroll
    for (int x = 0; x < N; x++) {
        g[x] = __fmul_rn(g[x], now.scale);
        g[x] += s.decay * p[x];
        b[x] = now.first ? g[x] : s.keep2 * b[x] + s.take1 * g[x];
        p[x] -= f.rate * (s.nesterov ? g[x] + s.keep2 * b[x] : b[x]);
    }
    store_weights<TYPES>(e, i, p);
    gx_store_vector(buf, b);
}

template <typename TYPES, int N, int POINTERS>
__device__ __forceinline__ void adam_update(const entry_of<POINTERS> &e, int64_t i,
                                            const gx_update_settings &s, const factors &f,
                                            const moment &now)
{
    using G = typename TYPES::G;
    using S = typename TYPES::S;
    S *mean = e.template at<S>(2) + i, *square = e.template at<S>(3) + i;
    float p[N], g[N], m[N], v[N];

    gx_load_vector(p, weights<TYPES>(e, i));
    gx_load_vector(g, e.template at<const G>(1) + i);
    gx_load_vector(m, mean);
    gx_load_vector(v, square);
#pragma unroll
    for (int x = 0; x < N; x++) {
        g[x] = __fmul_rn(g[x], now.scale);
        if (s.decay > 0.0f)
            g[x] = __fmaf_rn(s.decay, p[x], g[x]);
        m[x] += s.take1 * (g[x] - m[x]);
        v[x] = s.keep2 * v[x] + s.take2 * g[x] * g[x];
        /* fused by name: behind a division the assembler does it in some lanes alone */
        p[x] = __fmaf_rn(f.keep, p[x], -(f.rate * m[x] / (sqrtf(v[x]) / f.root + s.eps)));
    }
    store_weights<TYPES>(e, i, p);
    gx_store_vector(mean, m);
    gx_store_vector(square, v);
}

template <int RULE, typename TYPES, int N, int POINTERS>
__device__ __forceinline__ void update(const entry_of<POINTERS> &e, int64_t i,
                                       const gx_update_settings &s, const factors &f,
                                       const moment &now)
{
    if constexpr (RULE == GX_UPDATE_SGD)
        sgd_update<TYPES, N>(e, i, s, f, now);
    else if constexpr (RULE == GX_UPDATE_MOMENTUM)
        momentum_update<TYPES, N>(e, i, s, f, now);
    else
        adam_update<TYPES, N>(e, i, s, f, now);
}

template <int RULE, typename TYPES, int N>
__global__ void __launch_bounds__(THREADS, 4)
    update_kernel(const __grid_constant__ gx_update_table table)
{
    constexpr int POINTERS = 2 + RULE + TYPES::has_master;
    __shared__ factors f[GX_UPDATE_SETTINGS];

    gx_begin_kernel();
    const int32_t step = table.step != nullptr ? *table.step : 0;
    const int32_t done = step / table.accumulate;

    if (step < 0 || step - done * table.accumulate != table.accumulate - 1)
        return; /* skipped, or a gradient has been added to, no more */
    const moment now = { table.scale != nullptr ? *table.scale : 1.0f, done == 0 };

    find_factors<RULE>(table, done, f);
    for (int64_t chunk = blockIdx.x; chunk < table.n_chunks; chunk += gridDim.x) {
        const entry_of<POINTERS> e(table, find_entry<POINTERS>(table, chunk));
        const gx_update_settings &s = table.settings[e.group()];
        const factors shared = f[e.group()];

        gx_over_chunk<N, THREADS, GX_OPTIMIZER_CHUNK>(
            chunk - e.first_chunk(), e.n(),
            [&](int64_t i) { update<RULE, TYPES, N>(e, i, s, shared, now); },
            [&](int64_t i) { update<RULE, TYPES, 1>(e, i, s, shared, now); });
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
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, name_of(table), instance(table),
        dim3(gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM)),
        dim3(THREADS), 0, args, err);
}
