/* Kernels that tell whether delays are there: see gpu_delays.c. */
#ifndef GX_GPU_DELAYS_H
#define GX_GPU_DELAYS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { PROBE_BLOCK = 128, PROBE_GRID = 64, PROBE_N = PROBE_BLOCK * PROBE_GRID };

/* (float *to, float value): to[i] = value. */
const void *probe_fill(void);
/* (float *to, const float *from): to[i] = from[i], as the rule wants it. */
const void *probe_copy(void);
/* The same, but what it copies is loaded ahead of the wait. */
const void *probe_early_copy(void);

#ifdef __cplusplus
}
#endif
#endif
