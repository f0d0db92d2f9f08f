/* The gradients of the parameters of several layers in one launch. None needs another's,
 * so their tiles stand one behind the other, each made by one warp as in direct_pair.cu,
 * since the k of such a product is the batch, which is short, or by a block
 * (weights_block.cu). With the update of what they are the gradients of, or without. */
#include "weights_block.h"
#include "weights_tiles.cuh"
#include "weights_update.cuh"

namespace
{

constexpr int WARPS = 4;       /* of a block */
constexpr int MOST_WARPS = 16; /* of a multiprocessor: their registers are enough */

/* Where a warp stands among the tiles. */
template <typename TILE> struct walk {
    const gx_weights &weights;
    unsigned tile;
    int layer, row, column; /* where the tile begins there */

    __device__ __forceinline__ explicit walk(const gx_weights &all)
        : weights(all), tile(blockIdx.x * WARPS + gx_warp_of_block()),
          layer(layer_of(all, tile))
    {
        find();
    }

    __device__ __forceinline__ void find()
    {
        while (layer + 1 < weights.n_layers && weights.first_tile[layer + 1] <= tile)
            layer++;
        find_place<TILE::BM, TILE::BN>(weights, layer, tile, &row, &column);
    }

    __device__ __forceinline__ void go_on()
    {
        tile += gridDim.x * WARPS;
        find();
    }
};

template <typename T, bool OF_A, int MI, int NI, bool WHOLE>
__global__ void __launch_bounds__(32 * WARPS, MOST_WARPS / WARPS)
    weights_kernel(const __grid_constant__ gx_weights weights, const unsigned n_tiles)
{
    using TILE = weight_tile<T, MI, NI, WHOLE>;

    /* The last block may have warps to spare. */
#pragma unroll 1
    for (walk<TILE> at(weights); at.tile < n_tiles; at.go_on())
        make_weight_tile<T, TILE, OF_A>(weights.layer[at.layer], at.row, at.column);
}

static_assert(sizeof(gx_weights_update) + sizeof(unsigned) <= 4096,
              "a kernel takes 4 KB of arguments");

/* Warps of a multiprocessor that have registers for what they update beside the product.
 */
constexpr int at_once(int mi)
{
    return mi == 1 ? MOST_WARPS : 12;
}

template <typename T, bool OF_A, int MI, int NI, bool WHOLE>
__global__ void __launch_bounds__(32 * WARPS, at_once(MI) / WARPS)
    weights_update_kernel(const __grid_constant__ gx_weights_update update,
                          const unsigned n_tiles)
{
    using TILE = weight_tile<T, MI, NI, WHOLE>;
    step_factors found;

#pragma unroll 1
    for (walk<TILE> at(update.weights); at.tile < n_tiles; at.go_on())
        update_weight_tile<T, TILE, OF_A, WHOLE>(update, at.layer, at.row, at.column,
                                                 found);
}

/* --- choosing the instantiation --- */

template <typename T, bool OF_A, int MI, int NI, bool WHOLE>
const void *make_instance(bool updates)
{
    /* Of f32 two neighbours' columns would be more than a vector. */
    if constexpr (sizeof(T) == 4 && NI > 2)
        return nullptr;
    else
        return updates ? gx_kernel(weights_update_kernel<T, OF_A, MI, NI, WHOLE>)
                       : gx_kernel(weights_kernel<T, OF_A, MI, NI, WHOLE>);
}

template <typename T, bool OF_A, bool WHOLE>
const void *find_shape(int shape, bool updates)
{
    switch (shape) {
#define WEIGHTS_CASE(i, mi, ni, stays) \
    case i:                            \
        return make_instance<T, OF_A, mi, ni, WHOLE>(updates);
        GX_WEIGHTS_LIST(WEIGHTS_CASE)
#undef WEIGHTS_CASE
    default:
        return nullptr;
    }
}

/* No tile and no turn of k reaches past the end of a layer. */
bool is_whole(const gx_weights *weights)
{
    for (int l = 0; l < weights->n_layers; l++) {
        const gx_weights_layer *layer = &weights->layer[l];

        if (layer->m % gx_weights_rows(weights->shape) != 0 ||
            layer->n % gx_weights_columns(weights->shape) != 0 ||
            layer->k % (16 * WEIGHT_CHUNKS) != 0)
            return false;
    }
    return true;
}

template <typename T, bool OF_A>
const void *find_whole(const gx_weights *weights, bool updates)
{
    return is_whole(weights) ? find_shape<T, OF_A, true>(weights->shape, updates)
                             : find_shape<T, OF_A, false>(weights->shape, updates);
}

template <typename T> const void *find_operand(const gx_weights *weights, bool updates)
{
    return weights->sums_of_a ? find_whole<T, true>(weights, updates)
                              : find_whole<T, false>(weights, updates);
}

const void *find(const gx_weights *weights, bool updates)
{
    if (weights->shape >= GX_N_WARP_WEIGHTS)
        return gx_weights_block_find(weights, updates).kernel;
    return weights->math == GX_TILE_BF16  ? find_operand<__nv_bfloat16>(weights, updates)
           : weights->math == GX_TILE_F16 ? find_operand<__half>(weights, updates)
                                          : find_operand<float>(weights, updates);
}

int64_t tiles_of(const gx_weights *weights, const gx_weights_layer *layer)
{
    return gx_divide_up(layer->m, gx_weights_rows(weights->shape)) *
           gx_divide_up(layer->n, gx_weights_columns(weights->shape));
}

/* Returns how many tiles there are. */
unsigned place_layers(gx_weights *weights)
{
    unsigned n_tiles = 0;

    for (int l = 0; l < weights->n_layers; l++) {
        weights->first_tile[l] = n_tiles;
        n_tiles += (unsigned)tiles_of(weights, &weights->layer[l]);
    }
    return n_tiles;
}

unsigned blocks_of(const gx_weights *weights, bool updates, unsigned n_tiles,
                   const gx_ctx *ctx)
{
    static const struct {
        int mi;
        bool stays;
    } shapes[] = {
#define WEIGHTS_SHAPE(i, mi, ni, stays) { mi, stays },
        GX_WEIGHTS_LIST(WEIGHTS_SHAPE)
#undef WEIGHTS_SHAPE
    };
    const unsigned all = (unsigned)gx_divide_up(n_tiles, WARPS);
    const int warps = updates ? at_once(shapes[weights->shape].mi) : MOST_WARPS;
    const unsigned held = (unsigned)(ctx->n_sm * warps / WARPS);

    return shapes[weights->shape].stays && held < all ? held : all;
}

const char *name_of(const gx_weights *weights, bool updates)
{
    if (weights->shape < GX_N_WARP_WEIGHTS)
        return updates ? "weights_update_kernel" : "weights_kernel";
    return updates ? "weights_update_block_kernel" : "weights_block_kernel";
}

/* Shared memory of a block that takes `needed`: so much that a multiprocessor has room
 * for its share of the blocks and no more, where all of them are there at once. Those
 * that come while the kernel before is under way would crowd where that left room. */
size_t spread_bytes(size_t needed, unsigned n_blocks, const gx_ctx *ctx)
{
    const size_t of_system = 1024; /* of each block */
    const size_t all = ctx->shared_optin_bytes + of_system;
    const size_t share = (size_t)gx_divide_up(n_blocks, ctx->n_sm);
    const size_t too_much_for_more = all / (share + 1);

    if (share * (needed + of_system) > all || needed > too_much_for_more)
        return needed;
    return too_much_for_more;
}

gx_status load(const gx_weights *weights, bool updates, const gx_ctx *ctx, gx_error *err)
{
    const size_t needed = gx_weights_shared_bytes(weights);
    const unsigned n_tiles = (unsigned)gx_weights_tiles(weights);

    return gx_load_kernel(find(weights, updates),
                          needed > 0 ? spread_bytes(needed, n_tiles, ctx) : 0,
                          name_of(weights, updates), err);
}

gx_status launch(const gx_weights *weights, bool updates, unsigned n_tiles, void **args,
                 gx_ctx *ctx, gx_error *err)
{
    const char *name = name_of(weights, updates);

    if (weights->shape >= GX_N_WARP_WEIGHTS) {
        const gx_weights_block block = gx_weights_block_find(weights, updates);

        /* Of `args` such a kernel takes the first alone. */
        return gx_launch(ctx, name, block.kernel, dim3(n_tiles),
                         dim3((unsigned)block.threads),
                         spread_bytes(block.shared_bytes, n_tiles, ctx), args, err);
    }
    return gx_launch(ctx, name, find(weights, updates),
                     dim3(blocks_of(weights, updates, n_tiles, ctx)), dim3(32 * WARPS), 0,
                     args, err);
}

/* What m and lda, and n and ldb must be multiples of. */
int row_step(const gx_weights *weights)
{
    return weights->shape < GX_N_WARP_WEIGHTS ? gx_weights_rows(weights->shape) / 8
           : weights->math == GX_TILE_TF32    ? 4
                                              : 8;
}

int column_step(const gx_weights *weights)
{
    return weights->shape < GX_N_WARP_WEIGHTS ? gx_weights_columns(weights->shape) / 8
                                              : row_step(weights);
}

} // namespace

extern "C" int gx_weights_rows(int shape)
{
    static const int rows[] = {
#define WEIGHTS_ROWS(i, mi, ni, stays) 16 * mi,
        GX_WEIGHTS_LIST(WEIGHTS_ROWS)
#undef WEIGHTS_ROWS
#define BLOCK_ROWS(i, bm, bn) bm,
            GX_WEIGHTS_BLOCK_LIST(BLOCK_ROWS)
#undef BLOCK_ROWS
    };

    return rows[shape];
}

extern "C" int gx_weights_columns(int shape)
{
    static const int columns[] = {
#define WEIGHTS_COLUMNS(i, mi, ni, stays) 8 * ni,
        GX_WEIGHTS_LIST(WEIGHTS_COLUMNS)
#undef WEIGHTS_COLUMNS
#define BLOCK_COLUMNS(i, bm, bn) bn,
            GX_WEIGHTS_BLOCK_LIST(BLOCK_COLUMNS)
#undef BLOCK_COLUMNS
    };

    return columns[shape];
}

extern "C" bool gx_weights_has(const gx_weights *weights)
{
    for (int l = 0; l < weights->n_layers; l++) {
        const gx_weights_layer *layer = &weights->layer[l];

        if (layer->m % row_step(weights) != 0 || layer->lda % row_step(weights) != 0 ||
            layer->n % column_step(weights) != 0 ||
            layer->ldb % column_step(weights) != 0)
            return false;
    }
    return find(weights, false) != nullptr;
}

extern "C" size_t gx_weights_shared_bytes(const gx_weights *weights)
{
    return weights->shape < GX_N_WARP_WEIGHTS
               ? 0
               : gx_weights_block_find(weights, false).shared_bytes;
}

extern "C" int64_t gx_weights_tiles(const gx_weights *weights)
{
    int64_t n = 0;

    for (int l = 0; l < weights->n_layers; l++)
        n += tiles_of(weights, &weights->layer[l]);
    return n;
}

extern "C" gx_status gx_weights_load(const gx_weights *weights, const gx_ctx *ctx,
                                     gx_error *err)
{
    return load(weights, false, ctx, err);
}

extern "C" gx_status gx_weights_launch(const gx_weights *weights, gx_ctx *ctx,
                                       gx_error *err)
{
    gx_weights placed = *weights;
    unsigned n_tiles = place_layers(&placed);
    void *args[] = { &placed, &n_tiles };

    return launch(weights, false, n_tiles, args, ctx, err);
}

extern "C" gx_status gx_weights_update_load(const gx_weights_update *update,
                                            const gx_ctx *ctx, gx_error *err)
{
    return load(&update->weights, true, ctx, err);
}

extern "C" gx_status gx_weights_update_launch(const gx_weights_update *update,
                                              gx_ctx *ctx, gx_error *err)
{
    gx_weights_update placed = *update;
    unsigned n_tiles = place_layers(&placed.weights);
    void *args[] = { &placed, &n_tiles };

    return launch(&update->weights, true, n_tiles, args, ctx, err);
}
