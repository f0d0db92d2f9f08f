/* A tile of a weight gradient that is used up at once: adam's update of those weights,
 * and where the tile is the first of its lines that of their biases. What is updated is
 * on its way while the product is made, and no gradient is written that nobody else
 * reads. */
#ifndef GX_WEIGHTS_UPDATE_CUH
#define GX_WEIGHTS_UPDATE_CUH

#include "direct_weight.cuh"
#include "update.cuh"
#include "weights.h"

namespace
{

/* What a thread updates of a row of a tile, as it lies in memory: as many neighbours as
 * two threads have loaded for the product (store_from_registers), of which the second
 * half may be past the end. */
template <typename T, int EACH> struct adam_line {
    static constexpr int N = 2 * EACH;
    gx_vector<T, N> p, m, v;

    template <int COUNT>
    __device__ __forceinline__ void load_some(const gx_updated &of, int64_t at, int first)
    {
        const bits_of<T, COUNT> some[] = {
            load_bits<COUNT>(static_cast<const T *>(of.param) + at + first),
            load_bits_away<COUNT>(static_cast<const T *>(of.m) + at + first),
            load_bits_away<COUNT>(static_cast<const T *>(of.v) + at + first)
        };

        memcpy(&p.at[first], &some[0], sizeof some[0]);
        memcpy(&m.at[first], &some[1], sizeof some[1]);
        memcpy(&v.at[first], &some[2], sizeof some[2]);
    }

    template <int COUNT>
    __device__ __forceinline__ void
    finish_some(const gx_updated &of, int64_t at, int first, const float *g,
                const gx_update_settings &s, const factors &f, const moment &now)
    {
        float of_p[COUNT], of_m[COUNT], of_v[COUNT];

#pragma unroll
        for (int x = 0; x < COUNT; x++) {
            of_p[x] = gx_to_float(p.at[first + x]);
            of_m[x] = gx_to_float(m.at[first + x]);
            of_v[x] = gx_to_float(v.at[first + x]);
            update<GX_UPDATE_ADAM>(of_p[x], g[first + x], of_m[x], of_v[x], s, f, now);
        }
        gx_store_vector(static_cast<T *>(of.param) + at + first, of_p);
        store_away(static_cast<T *>(of.m) + at + first, of_m);
        store_away(static_cast<T *>(of.v) + at + first, of_v);
    }

    /* `left` elements of the row from here on; is_wide: its length is a multiple of N. */
    __device__ __forceinline__ void load(const gx_updated &of, int64_t at, int left,
                                         bool is_wide)
    {
        if (is_wide) {
            if (left > 0)
                load_some<N>(of, at, 0);
            return;
        }
        if (left > 0)
            load_some<EACH>(of, at, 0);
        if (left > EACH)
            load_some<EACH>(of, at, EACH);
    }

    __device__ __forceinline__ void finish(const gx_updated &of, int64_t at, int left,
                                           bool is_wide, const float *g,
                                           const gx_update_settings &s, const factors &f,
                                           const moment &now)
    {
        if (is_wide) {
            if (left > 0)
                finish_some<N>(of, at, 0, g, s, f, now);
            return;
        }
        if (left > 0)
            finish_some<EACH>(of, at, 0, g, s, f, now);
        if (left > EACH)
            finish_some<EACH>(of, at, EACH, g, s, f, now);
    }
};

/* What all elements share. A thread finds it once, while the operands of its first tile
 * are on their way. */
struct step_factors {
    bool are_known = false;
    int32_t done;
    float lr;
    factors all;
    moment now;

    __device__ __forceinline__ void load(const gx_weights_update &u)
    {
        done = *u.step;
        lr = *u.settings.lr;
    }

    /* Once they are loaded. */
    __device__ __forceinline__ void make(const gx_weights_update &u)
    {
        all = factors_of<GX_UPDATE_ADAM>(u.settings, done, lr);
        now = { 1.0f, done == 0 };
        are_known = true;
    }

    __device__ __forceinline__ void find(const gx_weights_update &u)
    {
        if (are_known)
            return;
        load(u);
        make(u);
    }
};

/* What one warp makes of layer l. */
template <typename T, typename TILE, bool OF_A, bool WHOLE>
__device__ __forceinline__ void update_weight_tile(const gx_weights_update &u, int l,
                                                   int row, int column,
                                                   step_factors &found)
{
    using LINE = adam_line<T, TILE::COLUMNS>;
    using SUMS = direct_line_sums<T, TILE, OF_A>;
    const gx_weights_layer &layer = u.weights.layer[l];
    const int m = layer.m, n = layer.n, lane = threadIdx.x % 32;
    const int first = row + TILE::ROWS * (lane / 4), c = column + LINE::N * (lane % 4);
    const int64_t at = (int64_t)first * n + c;
    const bool is_wide = WHOLE || n % LINE::N == 0;
    const auto left_of = [&](int i) {
        return WHOLE ? LINE::N : first + i < m ? n - c : 0;
    };
    LINE line[TILE::ROWS];
    SUMS tally((OF_A ? column : row) == 0);
    TILE tile;

    tile.add_up(
        { static_cast<const T *>(layer.a), layer.lda, m, layer.k },
        { static_cast<const T *>(layer.b), layer.ldb, n, layer.k }, row, column, 0,
        direct_never(),
        [&] {
#pragma unroll
            for (int i = 0; i < TILE::ROWS; i++)
                line[i].load(u.weight[l], at + (int64_t)i * n, left_of(i), is_wide);
            found.find(u);
        },
        tally);
    if (layer.out != nullptr)
        store_from_registers<T, TILE>(tile, static_cast<T *>(layer.out), m, n, row,
                                      column);
#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
        float g[LINE::N];

#pragma unroll
        for (int x = 0; x < LINE::N; x++) /* as store_from_registers has them */
            g[x] = tile.sum[i / 2][x % TILE::COLUMNS][i % 2 * 2 + x / TILE::COLUMNS];
        line[i].finish(u.weight[l], at + (int64_t)i * n, left_of(i), is_wide, g,
                       u.settings, found.all, found.now);
    }
    if (!tally.wanted)
        return;
#pragma unroll
    for (int i = 0; i < SUMS::EACH; i++) {
        const int at_bias = (OF_A ? row : column) + SUMS::EACH * (lane / 4) + i;

        tally.fold(i);
        if (lane % 4 != 0 || at_bias >= (OF_A ? m : n))
            continue;
        if (layer.dbias != nullptr)
            gx_store(static_cast<T *>(layer.dbias) + at_bias, tally.sum[i]);
        LINE beside;
        beside.template load_some<1>(u.bias[l], at_bias, 0);
        beside.template finish_some<1>(u.bias[l], at_bias, 0, &tally.sum[i], u.settings,
                                       found.all, found.now);
    }
}

} // namespace

#endif
