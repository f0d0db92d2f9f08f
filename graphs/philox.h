/* Random words from a counter; integers only, so host and device agree to the bit. */
#ifndef GX_PHILOX_H
#define GX_PHILOX_H

#include <stdint.h>

#include "host_device.h"

/* Philox-4x32-10 (Salmon et al., 2011): four words of the block that key and 128-bit
 * counter name. */
static inline GX_HOST_DEVICE void gx_philox(uint64_t key, uint64_t low, uint64_t high,
                                            uint32_t out[4])
{
    enum { ROUNDS = 10 };
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32);
    uint32_t c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = UINT64_C(0xd2511f53) * c0;
        const uint64_t p1 = UINT64_C(0xcd9e8d57) * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
