/* A small weight gradient and its update: each thread updates the elements of the product
 * that it finishes. What an update reads is loaded while the operands are on their way.
 */
#include "direct.cuh"
#include "direct_update.h"
#include "update.cuh"

namespace
{

/* The old values of the elements of one thread. */
template <typename T, typename S, int N> struct old_values {
    float p[N], first[N], second[N];

    template <int RULE>
    __device__ __forceinline__ void load(const gx_update_one &u, int i, int64_t at)
    {
        p[i] = gx_to_float(static_cast<const T *>(u.param)[at]);
        if constexpr (RULE != GX_UPDATE_SGD)
            first[i] = gx_to_float(static_cast<const S *>(u.state[0])[at]);
        if constexpr (RULE == GX_UPDATE_ADAM)
            second[i] = gx_to_float(static_cast<const S *>(u.state[1])[at]);
    }

    template <int RULE>
    __device__ __forceinline__ void update(const gx_update_one &u, int i, int64_t at,
                                           float g, const gx_update_factors &f,
                                           const gx_update_moment &now)
    {
        if constexpr (RULE == GX_UPDATE_SGD)
            gx_sgd_rule(p[i], g, u.settings, f, now);
        else if constexpr (RULE == GX_UPDATE_MOMENTUM)
            gx_momentum_rule(p[i], g, first[i], u.settings, f, now);
        else
            gx_adam_rule(p[i], g, first[i], second[i], u.settings, f, now);
        gx_store(static_cast<T *>(u.param) + at, p[i]);
        if constexpr (RULE != GX_UPDATE_SGD)
            gx_store(static_cast<S *>(u.state[0]) + at, first[i]);
        if constexpr (RULE == GX_UPDATE_ADAM)
            gx_store(static_cast<S *>(u.state[1]) + at, second[i]);
    }
};

/* What the counters say: how many updates stand behind, -1 for a step that makes none. */
struct counters {
    int32_t done;
    gx_update_moment now;
};

static __device__ __forceinline__ counters read_counters(const gx_update_one &u)
{
    const int32_t done = u.step != nullptr ? *u.step : 0;

    return { done, { u.scale != nullptr ? *u.scale : 1.0f, done == 0 } };
}

/* Threads 0 to 3 make the corrections of both updates; read behind a barrier. */
template <int RULE>
__device__ __forceinline__ void correct(const gx_direct_update &d, int32_t done,
                                        double (&correction)[4])
{
    const int x = (int)threadIdx.x;

    if (RULE == GX_UPDATE_ADAM && x < (d.bias.n > 0 ? 4 : 2)) {
        const gx_update_settings &s = x < 2 ? d.update.settings : d.bias.settings;

        correction[x] = gx_bias_correction(x % 2 == 0 ? s.log_beta1 : s.log_beta2, done);
    }
}

template <int RULE>
__device__ __forceinline__ gx_update_factors factors_of(const gx_update_settings &s,
                                                        const double *correction)
{
    if constexpr (RULE == GX_UPDATE_ADAM)
        return gx_adam_factors(s, correction[0], correction[1]);
    return { 1.0f, *s.lr, 1.0f };
}

template <int RULE, typename T, typename S, typename TILE>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_update_kernel(const __grid_constant__ gx_direct_update d)
{
    extern __shared__ __align__(16) float sums[];
    constexpr int BM = TILE::BM, BN = TILE::BN, THREADS = TILE::THREADS;
    constexpr int N = (BM * BN + THREADS - 1) / THREADS;
    __shared__ double correction[4];
    const int row = (int)blockIdx.y * BM, column = (int)blockIdx.x * BN;
    old_values<T, S, N> old;
    counters count;
    TILE tile;

    const auto load = [&] {
        count = read_counters(d.update);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int e = (int)threadIdx.x + i * THREADS;
            const int r = row + e / BN, c = column + e % BN;

            if (e < BM * BN && r < d.m && c < d.n)
                old.template load<RULE>(d.update, i, (int64_t)r * d.n + c);
        }
    };

    if (d.steady)
        load();
    tile.run({ static_cast<const T *>(d.a), d.m, d.m, d.k },
             { static_cast<const T *>(d.b), d.n, d.n, d.k }, row, column, false, sums,
             [&] {
                 if (!d.steady)
                     load();
                 correct<RULE>(d, count.done, correction);
             });
    const bool updates = count.done >= 0;
    const gx_update_factors f = factors_of<RULE>(d.update.settings, correction);

#pragma unroll
    for (int i = 0; i < N; i++) {
        const int e = (int)threadIdx.x + i * THREADS, r = e / BN, c = e % BN;
        const int64_t at = (int64_t)(row + r) * d.n + column + c;

        if (r >= BM || row + r >= d.m || column + c >= d.n)
            continue;
        T gradient;

        gx_store(&gradient, TILE::total(sums, r, c));
        if (d.out != nullptr)
            static_cast<T *>(d.out)[at] = gradient;
        if (updates)
            old.template update<RULE>(d.update, i, at, gx_to_float(gradient), f,
                                      count.now);
    }
    if (!updates || d.bias.n == 0)
        return;
    const gx_update_factors f_bias = factors_of<RULE>(d.bias.settings, correction + 2);
    const int64_t n_threads = (int64_t)gridDim.x * gridDim.y * THREADS;

    for (int64_t at =
             ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * THREADS + threadIdx.x;
         at < d.bias.n; at += n_threads) {
        old_values<T, S, 1> one;

        one.template load<RULE>(d.bias, 0, at);
        one.template update<RULE>(d.bias, 0, at,
                                  gx_to_float(static_cast<const T *>(d.bias.grad)[at]),
                                  f_bias, count.now);
    }
}

template <int RULE, typename T, typename S> const void *of_shape(int shape)
{
    switch (shape) {
#define UPDATE_CASE(i, mi, ni, wk)                 \
    case i:                                        \
        return (const void *)direct_update_kernel< \
            RULE, T, S, direct_tile<T, true, false, false, mi, ni, wk>>;
        GX_DIRECT_UPDATE_LIST(UPDATE_CASE)
#undef UPDATE_CASE
    default:
        return nullptr;
    }
}

template <int RULE> const void *of_types(const gx_direct_update *d)
{
    return gx_with_type(d->update.dtype, [&](auto of) -> const void * {
        using T = typename decltype(of)::type;

        if constexpr (RULE != GX_UPDATE_SGD) {
            if (d->update.state_dtype == GX_F32)
                return of_shape<RULE, T, float>(d->shape);
        }
        return of_shape<RULE, T, T>(d->shape);
    });
}

static const void *instance(const gx_direct_update *d)
{
    return d->update.rule == GX_UPDATE_SGD        ? of_types<GX_UPDATE_SGD>(d)
           : d->update.rule == GX_UPDATE_MOMENTUM ? of_types<GX_UPDATE_MOMENTUM>(d)
                                                  : of_types<GX_UPDATE_ADAM>(d);
}

struct shape {
    int rows, columns, threads;
    size_t shared_bytes;
};

static const shape shapes[] = {
#define UPDATE_SHAPE(i, mi, ni, wk) \
    { 16 * mi, 8 * ni, 32 * wk,     \
      direct_tile<float, true, false, false, mi, ni, wk>::SUM_BYTES },
    GX_DIRECT_UPDATE_LIST(UPDATE_SHAPE)
#undef UPDATE_SHAPE
};

} // namespace

extern "C" int gx_direct_update_rows(int i)
{
    return shapes[i].rows;
}

extern "C" int gx_direct_update_columns(int i)
{
    return shapes[i].columns;
}

extern "C" size_t gx_direct_update_shared_bytes(int i)
{
    return shapes[i].shared_bytes;
}

extern "C" gx_status gx_direct_update_load(const gx_direct_update *update, gx_error *err)
{
    return gx_load_kernel(instance(update), shapes[update->shape].shared_bytes,
                          "direct_update_kernel", err);
}

extern "C" gx_status gx_direct_update_launch(const gx_direct_update *update, gx_ctx *ctx,
                                             gx_error *err)
{
    const shape &s = shapes[update->shape];
    void *args[] = { (void *)update };
    const dim3 grid((unsigned)gx_divide_up(update->n, s.columns),
                    (unsigned)gx_divide_up(update->m, s.rows));

    return gx_launch(ctx, "direct_update_kernel", instance(update), grid,
                     dim3((unsigned)s.threads), s.shared_bytes, args, err);
}
