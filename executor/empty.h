/* Kernels that do nothing, for gx_launch. */
#ifndef GX_EMPTY_H
#define GX_EMPTY_H

#ifdef __cplusplus
extern "C" {
#endif

const void *gx_empty_kernel(void);

/* (uint64_t ns): lasts for so long, by the card's clock. */
const void *gx_busy_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
