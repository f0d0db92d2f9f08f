/* Where the tiles of the gradients of several layers' weights lie. */
#ifndef GX_WEIGHTS_TILES_CUH
#define GX_WEIGHTS_TILES_CUH

#include "kernel.cuh"
#include "weights.h"

namespace
{

/* The layer that has a tile: the last of those that begin at it or before. */
__device__ __forceinline__ int layer_of(const gx_weights &weights, unsigned tile)
{
    int first = 0, past = weights.n_layers;

    while (past - first > 1) {
        const int middle = (first + past) / 2;

        if (weights.first_tile[middle] <= tile)
            first = middle;
        else
            past = middle;
    }
    return first;
}

/* Row and column of a tile of layer l, of BM rows and BN columns. */
template <int BM, int BN>
__device__ __forceinline__ void find_place(const gx_weights &weights, int l,
                                           unsigned tile, int *row, int *column)
{
    const unsigned columns = (unsigned)(weights.layer[l].n + BN - 1) / BN;
    const unsigned of_layer = tile - weights.first_tile[l];
    const unsigned before = of_layer / columns;

    *row = (int)before * BM;
    *column = (int)(of_layer - before * columns) * BN;
}

} // namespace

#endif
