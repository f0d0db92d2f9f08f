/* Tiles of weight gradients by whole blocks: see weights_block.cu. */
#ifndef GX_WEIGHTS_BLOCK_H
#define GX_WEIGHTS_BLOCK_H

#include "weights.h"

/* A kernel, which takes a gx_weights or a gx_weights_update, and what a launch gives it.
 */
typedef struct gx_weights_block {
    const void *kernel; /* NULL: there is none */
    int threads;
    size_t shared_bytes;
} gx_weights_block;

/* For a shape of GX_WEIGHTS_BLOCK_LIST. */
gx_weights_block gx_weights_block_find(const gx_weights *weights, bool updates);

#endif
