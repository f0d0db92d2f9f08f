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

/* What a thread updates of a row of a tile: as many neighbours as two threads have loaded
 * for the product (store_from_registers), of which the second half may be past the end.
 */
template <typename T, int EACH> struct adam_line {
    static constexpr int N = 2 * EACH;
    float p[N], m[N], v[N];

    template <int COUNT>
    __device__ __forceinline__ void load_some(const gx_updated &of, int64_t at, int first)
    {
        float some[COUNT];

        gx_load_vector(some, static_cast<const T *>(of.param) + at + first);
        memcpy(p + first, some, sizeof some);
        load_away(some, static_cast<const T *>(of.m) + at + first);
        memcpy(m + first, some, sizeof some);
        load_away(some, static_cast<const T *>(of.v) + at + first);
        memcpy(v + first, some, sizeof some);
    }

    template <int COUNT>
    __device__ __forceinline__ void store_some(const gx_updated &of, int64_t at,
                                               int first) const
    {
        float some[COUNT];

        memcpy(some, p + first, sizeof some);
        gx_store_vector(static_cast<T *>(of.param) + at + first, some);
        memcpy(some, m + first, sizeof some);
        store_away(static_cast<T *>(of.m) + at + first, some);
        memcpy(some, v + first, sizeof some);
        store_away(static_cast<T *>(of.v) + at + first, some);
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

    __device__ __forceinline__ void store(const gx_updated &of, int64_t at, int left,
                                          bool is_wide) const
    {
        if (is_wide) {
            if (left > 0)
                store_some<N>(of, at, 0);
            return;
        }
        if (left > 0)
            store_some<EACH>(of, at, 0);
        if (left > EACH)
            store_some<EACH>(of, at, EACH);
    }
};

template <typename T>
__device__ __forceinline__ void update_element(const gx_updated &of, int at, float g,
                                               const gx_update_settings &s,
                                               const factors &f, const moment &now)
{
    adam_line<T, 1> c;

    c.template load_some<1>(of, at, 0);
    update<GX_UPDATE_ADAM>(c.p[0], g, c.m[0], c.v[0], s, f, now);
    c.template store_some<1>(of, at, 0);
}

/* What one warp makes of layer l. */
template <typename T, typename TILE, bool OF_A>
__device__ __forceinline__ void update_weight_tile(const gx_weights_update &u, int l,
                                                   int row, int column)
{
    using LINE = adam_line<T, TILE::COLUMNS>;
    using SUMS = direct_line_sums<T, TILE, OF_A>;
    const gx_weights_layer &layer = u.weights.layer[l];
    const int m = layer.m, n = layer.n, lane = threadIdx.x % 32;
    const int first = row + TILE::ROWS * (lane / 4), c = column + LINE::N * (lane % 4);
    const int64_t at = (int64_t)first * n + c;
    const bool is_wide = n % LINE::N == 0;
    int32_t done = 0;
    float lr = 0.0f;
    LINE line[TILE::ROWS];
    SUMS tally((OF_A ? column : row) == 0);
    TILE tile;

    tile.add_up(
        { static_cast<const T *>(layer.a), layer.lda, m, layer.k },
        { static_cast<const T *>(layer.b), layer.ldb, n, layer.k }, row, column, 0,
        direct_never(),
        [&] {
            done = *u.step;
            lr = *u.settings.lr;
#pragma unroll
            for (int i = 0; i < TILE::ROWS; i++)
                line[i].load(u.weight[l], at + (int64_t)i * n, first + i < m ? n - c : 0,
                             is_wide);
        },
        tally);
    if (layer.out != nullptr)
        store_from_registers<T, TILE>(tile, static_cast<T *>(layer.out), m, n, row,
                                      column);

    const factors f = factors_of<GX_UPDATE_ADAM>(u.settings, done, lr);
    const moment now = { 1.0f, done == 0 };

#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
#pragma unroll
        for (int x = 0; x < LINE::N; x++) {
            /* As store_from_registers has them. */
            float g = tile.sum[i / 2][x % TILE::COLUMNS][i % 2 * 2 + x / TILE::COLUMNS];

            update<GX_UPDATE_ADAM>(line[i].p[x], g, line[i].m[x], line[i].v[x],
                                   u.settings, f, now);
        }
        line[i].store(u.weight[l], at + (int64_t)i * n, first + i < m ? n - c : 0,
                      is_wide);
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
        update_element<T>(u.bias[l], at_bias, tally.sum[i], u.settings, f, now);
    }
}

} // namespace

#endif
