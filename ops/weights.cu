/* The gradients of the parameters of several layers in one launch. None needs another's,
 * so their tiles stand one behind the other, each made by one warp as in direct_pair.cu:
 * the k of such a product is the batch, which is short. With the update of what they are
 * the gradients of, or without. */
#include "weights_update.cuh"

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

/* A tile: its layer, and where it begins there. */
struct place {
    int layer, row, column;
};

template <typename TILE>
__device__ __forceinline__ place place_of(const gx_weights &weights, unsigned tile)
{
    const int l = layer_of(weights, tile);
    const gx_weights_layer &layer = weights.layer[l];
    const unsigned columns = (unsigned)(layer.n + TILE::BN - 1) / TILE::BN;
    const unsigned row = (tile - layer.first_tile) / columns;

    return { l, (int)row * TILE::BM,
             (int)(tile - layer.first_tile - row * columns) * TILE::BN };
}

template <typename T, bool OF_A, int MI, int NI, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, 16 / WARPS)
    weights_kernel(const __grid_constant__ gx_weights weights, const unsigned n_tiles)
{
    using TILE = direct_tile<T, true, false, false, MI, NI, 1>;
    const unsigned at = blockIdx.x * WARPS + threadIdx.x / 32;

    /* The last block may have warps to spare. */
    if (at >= n_tiles)
        return;
    const place p = place_of<TILE>(weights, at);

    make_weight_tile<T, TILE, OF_A>(weights.layer[p.layer], p.row, p.column);
}

static_assert(sizeof(gx_weights_update) + sizeof(unsigned) <= 4096,
              "a kernel takes 4 KB of arguments");

/* Warps of a multiprocessor that have registers for what they update beside the product.
 */
template <typename T, int MI> constexpr int AT_ONCE = MI == 1 && sizeof(T) == 2 ? 16 : 12;

template <typename T, bool OF_A, int MI, int NI, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, AT_ONCE<T, MI> / WARPS)
    weights_update_kernel(const __grid_constant__ gx_weights_update update,
                          const unsigned n_tiles)
{
    using TILE = direct_tile<T, true, false, false, MI, NI, 1>;
    const unsigned at = blockIdx.x * WARPS + threadIdx.x / 32;

    if (at >= n_tiles)
        return;
    const place p = place_of<TILE>(update.weights, at);

    update_weight_tile<T, TILE, OF_A>(update, p.layer, p.row, p.column);
}

/* --- choosing the instantiation --- */

template <typename T, bool OF_A, int MI, int NI, int WARPS>
const void *make_instance(bool updates)
{
    /* Of f32 two neighbours' columns would be more than a vector. */
    if constexpr (sizeof(T) == 4 && NI > 2)
        return nullptr;
    else
        return updates ? gx_kernel(weights_update_kernel<T, OF_A, MI, NI, WARPS>)
                       : gx_kernel(weights_kernel<T, OF_A, MI, NI, WARPS>);
}

template <typename T, bool OF_A> const void *find_shape(int shape, bool updates)
{
    switch (shape) {
#define WEIGHTS_CASE(i, mi, ni, warps) \
    case i:                            \
        return make_instance<T, OF_A, mi, ni, warps>(updates);
        GX_WEIGHTS_LIST(WEIGHTS_CASE)
#undef WEIGHTS_CASE
    default:
        return nullptr;
    }
}

template <typename T> const void *find_operand(const gx_weights *weights, bool updates)
{
    return weights->sums_of_a ? find_shape<T, true>(weights->shape, updates)
                              : find_shape<T, false>(weights->shape, updates);
}

const void *find(const gx_weights *weights, bool updates)
{
    return weights->math == GX_TILE_BF16  ? find_operand<__nv_bfloat16>(weights, updates)
           : weights->math == GX_TILE_F16 ? find_operand<__half>(weights, updates)
                                          : find_operand<float>(weights, updates);
}

int64_t tiles_of(const gx_weights *weights, const gx_weights_layer *layer)
{
    return gx_divide_up(layer->m, gx_weights_rows(weights->shape)) *
           gx_divide_up(layer->n, gx_weights_columns(weights->shape));
}

unsigned warps_of(int shape)
{
    static const unsigned warps[] = {
#define WEIGHTS_WARPS(i, mi, ni, warps) warps,
        GX_WEIGHTS_LIST(WEIGHTS_WARPS)
#undef WEIGHTS_WARPS
    };

    return warps[shape];
}

/* Returns how many tiles there are. */
unsigned place_layers(gx_weights *weights)
{
    unsigned n_tiles = 0;

    for (int l = 0; l < weights->n_layers; l++) {
        weights->layer[l].first_tile = n_tiles;
        n_tiles += (unsigned)tiles_of(weights, &weights->layer[l]);
    }
    return n_tiles;
}

gx_status launch(const gx_weights *weights, const char *name, bool updates,
                 unsigned n_tiles, void **args, gx_ctx *ctx, gx_error *err)
{
    const unsigned warps = warps_of(weights->shape);

    return gx_launch(ctx, name, find(weights, updates),
                     dim3((unsigned)gx_divide_up(n_tiles, warps)), dim3(32 * warps), 0,
                     args, err);
}

} // namespace

extern "C" int gx_weights_rows(int shape)
{
    static const int rows[] = {
#define WEIGHTS_ROWS(i, mi, ni, warps) 16 * mi,
        GX_WEIGHTS_LIST(WEIGHTS_ROWS)
#undef WEIGHTS_ROWS
    };

    return rows[shape];
}

extern "C" int gx_weights_columns(int shape)
{
    static const int columns[] = {
#define WEIGHTS_COLUMNS(i, mi, ni, warps) 8 * ni,
        GX_WEIGHTS_LIST(WEIGHTS_COLUMNS)
#undef WEIGHTS_COLUMNS
    };

    return columns[shape];
}

extern "C" bool gx_weights_has(gx_tile_math math, int shape)
{
    gx_weights weights = {};

    weights.math = math;
    weights.shape = shape;
    return find(&weights, false) != nullptr;
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
    return gx_load_kernel(find(weights, false), 0, "weights_kernel", err);
}

extern "C" gx_status gx_weights_launch(const gx_weights *weights, gx_ctx *ctx,
                                       gx_error *err)
{
    gx_weights placed = *weights;
    unsigned n_tiles = place_layers(&placed);
    void *args[] = { &placed, &n_tiles };

    return launch(weights, "weights_kernel", false, n_tiles, args, ctx, err);
}

extern "C" gx_status gx_weights_update_load(const gx_weights_update *update,
                                            gx_error *err)
{
    return gx_load_kernel(find(&update->weights, true), 0, "weights_update_kernel", err);
}

extern "C" gx_status gx_weights_update_launch(const gx_weights_update *update,
                                              gx_ctx *ctx, gx_error *err)
{
    gx_weights_update placed = *update;
    unsigned n_tiles = place_layers(&placed.weights);
    void *args[] = { &placed, &n_tiles };

    return launch(&update->weights, "weights_update_kernel", true, n_tiles, args, ctx,
                  err);
}
