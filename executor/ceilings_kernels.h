/* The kernels that a card's ceilings are measured with, for gx_launch. */
#ifndef GX_CEILINGS_KERNELS_H
#define GX_CEILINGS_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Threads a block of noise and copy; copy moves this many bytes at once. */
enum { GX_CEILINGS_BLOCK = 256, GX_CEILINGS_UNIT = 16 };

/* (uint32_t *words, int64_t n, uint32_t random, uint32_t fixed): each word gets `fixed`
 * and, where `random` has ones, bits that look random. */
const void *gx_noise_kernel(void);

/* (void *to, const void *from, int64_t n_units, int64_t n_moves): copies units of a set
 * of n_units, a power of two, over and over, n_moves of them in all. Goes past L1. */
const void *gx_copy_kernel(void);

/* (int cycles): lasts for so many cycles of a multiprocessor. */
const void *gx_spin_kernel(void);

/* (): does nothing, but may be brought in while the kernel before it still runs. */
const void *gx_overlap_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
