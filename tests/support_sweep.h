/* Sweeps that tests make up: nothing in them was measured. */
#ifndef GX_SUPPORT_SWEEP_H
#define GX_SUPPORT_SWEEP_H

#include "support.h"
#include "sweep.h"

/* A sweep over these --set lists (at most 4 of "dim=a,b"), of which no point has begun.
 * `args` has to outlive it. */
void sweep_make(gx_sweep *sweep, gx_args *args, const char *const *sets, size_t n);
void sweep_drop(gx_sweep *sweep, gx_args *args);

/* Gives a point five pairs of figures: steady times of this many microseconds. */
void sweep_measure(gx_sweep *sweep, size_t i, const int64_t *size, double unfused_us,
                   double eager_us, double graph_us);
void sweep_fail(gx_sweep *sweep, size_t i, gx_status status, const char *reason);
/* Bits of this point differ in a tensor. */
void sweep_differ(gx_sweep *sweep, size_t i, const char *tensor);

/* What one of the writers of sweep.h puts; the caller frees. */
char *sweep_text(const gx_sweep *sweep, void (*put)(const gx_sweep *sweep, FILE *out));

#endif
