/* The gradients of the parameters of several layers in one launch. None needs another's,
 * so their tiles stand one behind the other, each made by one warp as in direct_pair.cu:
 * the k of such a product is the batch, which is short. */
#include "direct_weight.cuh"
#include "weights.h"

namespace
{

/* The layer that has a tile: the last of those that begin at it or before. */
__device__ __forceinline__ int layer_of(const gx_weights &weights, unsigned tile)
{
    int first = 0, past = weights.n_layers;

    while (past - first > 1) {
        const int middle = (first + past) / 2;

        if (weights.layer[middle].first_tile <= tile)
            first = middle;
        else
            past = middle;
    }
    return first;
}

template <typename T, bool OF_A, int MI, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, 16 / WARPS)
    weights_kernel(const __grid_constant__ gx_weights weights, const unsigned n_tiles)
{
    using TILE = direct_tile<T, true, false, false, MI, GX_WEIGHTS_COLUMNS / 8, 1>;
    const unsigned at = blockIdx.x * WARPS + threadIdx.x / 32;

    /* The last block may have warps to spare. */
    if (at >= n_tiles)
        return;
    const gx_weights_layer &layer = weights.layer[layer_of(weights, at)];
    const unsigned columns =
        (unsigned)(layer.n + GX_WEIGHTS_COLUMNS - 1) / GX_WEIGHTS_COLUMNS;
    const unsigned row = (at - layer.first_tile) / columns;
    const unsigned column = at - layer.first_tile - row * columns;

    make_weight_tile<T, TILE, OF_A>(layer, (int)row * TILE::BM, (int)column * TILE::BN);
}

/* --- choosing the instantiation --- */

template <typename T, bool OF_A> const void *find_shape(int shape)
{
    switch (shape) {
#define WEIGHTS_CASE(i, mi, warps) \
    case i:                        \
        return gx_kernel(weights_kernel<T, OF_A, mi, warps>);
        GX_WEIGHTS_LIST(WEIGHTS_CASE)
#undef WEIGHTS_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_operand(const gx_weights *weights)
{
    return weights->sums_of_a ? find_shape<T, true>(weights->shape)
                              : find_shape<T, false>(weights->shape);
}

const void *find(const gx_weights *weights)
{
    return weights->math == GX_TILE_BF16  ? find_operand<__nv_bfloat16>(weights)
           : weights->math == GX_TILE_F16 ? find_operand<__half>(weights)
                                          : find_operand<float>(weights);
}

int64_t tiles_of(const gx_weights *weights, const gx_weights_layer *layer)
{
    return gx_divide_up(layer->m, gx_weights_rows(weights->shape)) *
           gx_divide_up(layer->n, GX_WEIGHTS_COLUMNS);
}

unsigned warps_of(int shape)
{
    static const unsigned warps[] = {
#define WEIGHTS_WARPS(i, mi, warps) warps,
        GX_WEIGHTS_LIST(WEIGHTS_WARPS)
#undef WEIGHTS_WARPS
    };

    return warps[shape];
}

} // namespace

extern "C" int gx_weights_rows(int shape)
{
    static const int rows[] = {
#define WEIGHTS_ROWS(i, mi, warps) 16 * mi,
        GX_WEIGHTS_LIST(WEIGHTS_ROWS)
#undef WEIGHTS_ROWS
    };

    return rows[shape];
}

extern "C" int64_t gx_weights_tiles(const gx_weights *weights)
{
    int64_t n = 0;

    for (int l = 0; l < weights->n_layers; l++)
        n += tiles_of(weights, &weights->layer[l]);
    return n;
}

extern "C" gx_status gx_weights_load(const gx_weights *weights, gx_error *err)
{
    return gx_load_kernel(find(weights), 0, "weights_kernel", err);
}

extern "C" gx_status gx_weights_launch(const gx_weights *weights, gx_ctx *ctx,
                                       gx_error *err)
{
    const unsigned warps = warps_of(weights->shape);
    gx_weights placed = *weights;
    unsigned n_tiles = 0;
    void *args[] = { &placed, &n_tiles };

    for (int l = 0; l < placed.n_layers; l++) {
        placed.layer[l].first_tile = n_tiles;
        n_tiles += (unsigned)tiles_of(&placed, &placed.layer[l]);
    }
    return gx_launch(ctx, "weights_kernel", find(weights),
                     dim3((unsigned)gx_divide_up(n_tiles, warps)), dim3(32 * warps), 0,
                     args, err);
}
