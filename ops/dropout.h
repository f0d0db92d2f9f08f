/* The mask of dropout, for the host and for kernels: integers alone decide, so the CPU
 * and the GPU, eager and graph, drop the same elements. */
#ifndef GX_DROPOUT_H
#define GX_DROPOUT_H

#include <stdint.h>

#include "philox.h"

enum { GX_DROPOUT_WORDS = 4 }; /* elements that one block of the generator decides on */

/* The generator's key for one op: its stream, spread over 64 bits, and the seed. */
static inline uint64_t gx_dropout_key(uint64_t seed, uint64_t stream)
{
    uint64_t x = stream + UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return seed ^ x ^ (x >> 31);
}

/* An element is dropped when its word is below this: 0 drops none, 2^32 all. */
static inline uint64_t gx_dropout_bar(double p)
{
    return (uint64_t)(p * 4294967296.0 + 0.5);
}

/* What is kept is multiplied by this. */
static inline double gx_dropout_scale(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

/* The words of elements 4 block to 4 block + 3 in a step. */
static inline GX_HOST_DEVICE void gx_dropout_words(uint64_t key, uint32_t step,
                                                   uint64_t block,
                                                   uint32_t word[GX_DROPOUT_WORDS])
{
    gx_philox(key, block, step, word);
}

#endif
