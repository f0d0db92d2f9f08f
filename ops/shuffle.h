/* A permutation of [0, n) that needs no memory: a keyed Feistel network over the next
 * power of four, walked until it lands inside. Integers only, so CPU and GPU agree to the
 * bit. */
#ifndef GX_SHUFFLE_H
#define GX_SHUFFLE_H

#include <stdint.h>

#include "host_device.h"

/* A well-mixed 32-bit hash of (value, key): the finalizer of MurmurHash3. */
static inline GX_HOST_DEVICE uint32_t gx_mix32(uint32_t value, uint32_t key)
{
    uint32_t h = value ^ key;

    h ^= h >> 16;
    h *= UINT32_C(0x85ebca6b);
    h ^= h >> 13;
    h *= UINT32_C(0xc2b2ae35);
    h ^= h >> 16;
    return h;
}

/* Where row i stands in epoch `epoch`; n in [1, 2^31), i in [0, n). */
static inline GX_HOST_DEVICE uint32_t gx_shuffle_index(uint32_t i, uint32_t n,
                                                       uint64_t seed, uint32_t epoch)
{
    enum { ROUNDS = 6 };
    const uint32_t key =
        gx_mix32((uint32_t)seed, gx_mix32((uint32_t)(seed >> 32), epoch));
    uint32_t half = 1;

    while (half < 16 && (UINT64_C(1) << (2 * half)) < n)
        half++;
    const uint32_t mask = (UINT32_C(1) << half) - 1;

    do {
        uint32_t left = i >> half;
        uint32_t right = i & mask;

        for (uint32_t round = 0; round < ROUNDS; round++) {
            const uint32_t next =
                left ^ (gx_mix32(right + (round << 24), key + round) & mask);

            left = right;
            right = next;
        }
        i = (left << half) | right;
    } while (i >= n);
    return i;
}

#endif
