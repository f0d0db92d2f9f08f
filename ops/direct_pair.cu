/* Both gradients of a layer in one launch. They have the same dz and need nothing of each
 * other, so the first blocks make the data gradient and what follows it, as direct.cu
 * does, and the others the weight gradient and the sums that the bias wants, a tile a
 * warp. */
#include "direct_pair.h"
#include "direct_tail.cuh"
#include "direct_weight.cuh"

namespace
{

struct pair_grid {
    unsigned data_blocks, data_columns, weight_columns; /* columns: of tiles */
    bool whole; /* no tile of the weight gradient and no turn of its k is cut short */
};

/* Pieces of 8 columns of a tile of the weight gradient. */
constexpr int WEIGHT_NI = 2;

/* --- the kernel --- */

/* Blocks of 8 warps take no more registers than let two of them, or one and one of the
 * next kernel, stand on a multiprocessor. */
template <typename TILE> constexpr int PAIR_BLOCKS = TILE::THREADS <= 256 ? 2 : 1;

template <typename T, typename DATA, int WEIGHT_MI, bool OF_A>
__global__ void __launch_bounds__(DATA::THREADS, PAIR_BLOCKS<DATA>)
    direct_pair_kernel(const __grid_constant__ gx_tile data,
                       const __grid_constant__ gx_tile weight, const pair_grid grid,
                       const direct_known known)
{
    GX_DYNAMIC_SHARED(float, sums);

    if (blockIdx.x < grid.data_blocks) {
        const unsigned row = blockIdx.x / grid.data_columns;
        const unsigned column = blockIdx.x - row * grid.data_columns;

        /* Without an activation to go back through it is GX_ACT_NONE. */
        make_tailed_tile<T, DATA>(data, GX_TAIL_BACKWARD, (int)row * DATA::BM,
                                  (int)column * DATA::BN, known.steady_b, known.is_wide,
                                  sums);
    } else {
        using WHOLE = weight_tile<T, WEIGHT_MI, WEIGHT_NI, true>;
        using CUT = weight_tile<T, WEIGHT_MI, WEIGHT_NI, false>;
        const unsigned at =
            (blockIdx.x - grid.data_blocks) * (DATA::THREADS / 32) + gx_warp_of_block();
        const unsigned row = at / grid.weight_columns;
        const unsigned column = at - row * grid.weight_columns;

        /* The last block may have warps to spare. */
        if ((int)row * CUT::BM >= (int)weight.m)
            return;
        if (grid.whole)
            make_weight_tile<T, WHOLE, OF_A>(weight, (int)row * CUT::BM,
                                             (int)column * CUT::BN);
        else
            make_weight_tile<T, CUT, OF_A>(weight, (int)row * CUT::BM,
                                           (int)column * CUT::BN);
    }
}

/* --- choosing the instantiation --- */

template <typename T, bool B_TURNED, bool RAGGED, int MI, int NI, int WK, int WEIGHT_MI>
const void *make_instance()
{
    using DATA = direct_tile<T, false, B_TURNED, RAGGED, MI, NI, WK>;

    /* One column of a 16-bit type is less than a word. */
    if constexpr ((NI == 1 && !B_TURNED && sizeof(T) < 4) || (RAGGED && WK != 8))
        return nullptr;
    else
        return gx_kernel(direct_pair_kernel<T, DATA, WEIGHT_MI, !B_TURNED>);
}

template <typename T, bool B_TURNED, bool RAGGED> const void *find_shape(int shape)
{
    switch (shape) {
#define PAIR_CASE(i, mi, ni, wk, weight_mi) \
    case i:                                 \
        return make_instance<T, B_TURNED, RAGGED, mi, ni, wk, weight_mi>();
        GX_PAIR_LIST(PAIR_CASE)
#undef PAIR_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_turned(const gx_pair *pair)
{
    const bool is_ragged = pair->data.k % 4 != 0;

    if (pair->data.trans_b)
        return is_ragged ? find_shape<T, true, true>(pair->shape)
                         : find_shape<T, true, false>(pair->shape);
    return is_ragged ? find_shape<T, false, true>(pair->shape)
                     : find_shape<T, false, false>(pair->shape);
}

const void *find(const gx_pair *pair)
{
    return pair->data.math == GX_TILE_BF16  ? find_turned<__nv_bfloat16>(pair)
           : pair->data.math == GX_TILE_F16 ? find_turned<__half>(pair)
                                            : find_turned<float>(pair);
}

int64_t column_tiles(const gx_tile *tile, int columns)
{
    return gx_divide_up(tile->n, columns);
}

} // namespace

extern "C" const gx_pair_shape *gx_pair_shape_at(int shape)
{
    static const gx_pair_shape shapes[] = {
#define PAIR_SHAPE(i, mi, ni, wk, weight_mi) \
    { 16 * mi,                               \
      8 * ni,                                \
      16 * weight_mi,                        \
      8 * WEIGHT_NI,                         \
      wk,                                    \
      direct_tile<float, false, false, false, mi, ni, wk>::SUM_BYTES },
        GX_PAIR_LIST(PAIR_SHAPE)
#undef PAIR_SHAPE
    };

    return &shapes[shape];
}

extern "C" bool gx_pair_has(const gx_pair *pair)
{
    return find(pair) != nullptr;
}

extern "C" int64_t gx_pair_data_blocks(const gx_pair *pair)
{
    const gx_pair_shape *shape = gx_pair_shape_at(pair->shape);

    return gx_divide_up(pair->data.m, shape->rows) *
           column_tiles(&pair->data, shape->columns);
}

extern "C" int64_t gx_pair_weight_blocks(const gx_pair *pair)
{
    const gx_pair_shape *shape = gx_pair_shape_at(pair->shape);

    return gx_divide_up(gx_divide_up(pair->weight.m, shape->weight_rows) *
                            column_tiles(&pair->weight, shape->weight_columns),
                        shape->warps);
}

extern "C" gx_status gx_pair_load(const gx_pair *pair, gx_error *err)
{
    return gx_load_kernel(find(pair), gx_pair_shape_at(pair->shape)->shared_bytes,
                          "direct_pair_kernel", err);
}

extern "C" gx_status gx_pair_launch(const gx_pair *pair, gx_ctx *ctx, gx_error *err)
{
    const gx_pair_shape *shape = gx_pair_shape_at(pair->shape);
    pair_grid grid = { (unsigned)gx_pair_data_blocks(pair),
                       (unsigned)column_tiles(&pair->data, shape->columns),
                       (unsigned)column_tiles(&pair->weight, shape->weight_columns),
                       pair->weight.m % shape->weight_rows == 0 &&
                           pair->weight.n % shape->weight_columns == 0 &&
                           pair->weight.k % (16 * WEIGHT_CHUNKS) == 0 };
    direct_known known = known_of(&pair->data, pair->steady_w);
    void *args[] = { (void *)&pair->data, (void *)&pair->weight, &grid, &known };
    const unsigned blocks = grid.data_blocks + (unsigned)gx_pair_weight_blocks(pair);

    return gx_launch(ctx, "direct_pair_kernel", find(pair), dim3(blocks),
                     dim3((unsigned)(32 * shape->warps)), shape->shared_bytes, args, err);
}
