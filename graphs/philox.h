/* Random words from a counter. */
#ifndef GX_PHILOX_H
#define GX_PHILOX_H

#include <stdint.h>

/* Philox-4x32-10: four words of the block that key and 128-bit counter name. */
void gx_philox(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]);

#endif
