/* Kernels with one fault each, for emulated_faults.c. */
#ifndef EMULATED_FAULTS_H
#define EMULATED_FAULTS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emulated_fault {
    NO_FAULT,
    NO_BARRIER,          /* a neighbour's element is read at once */
    NO_WAIT,             /* the input is read before the kernels before are waited for */
    HALF_A_BARRIER,      /* half of a warp waits, the other shuffles */
    TWO_BARRIERS,        /* half of the block waits in another line */
    WIDE_SHARED,         /* written behind dynamic shared memory */
    WIDE_GLOBAL,         /* written behind the output */
    NOT_ROUNDED,         /* mma.sync of an operand that is not rounded to tf32 */
    EARLY_STORE,         /* into a block of the cluster that may not have begun */
    NO_CLUSTER_WAIT,     /* into one that may have ended */
    WAIT_WITHOUT_ARRIVAL /* for the cluster */
} emulated_fault;

enum { FAULT_THREADS = 64, FAULT_BLOCKS = 2 };

/* out[thread of the grid] = in[the next of its block] + 1, by a cluster of FAULT_BLOCKS
 * blocks. `shared_bytes`: FAULT_THREADS floats are needed. */
gx_status emulated_fault_load(size_t shared_bytes, gx_error *err) GX_MUST_CHECK;
gx_status emulated_fault_launch(emulated_fault fault, const float *in, float *out,
                                size_t shared_bytes, gx_ctx *ctx,
                                gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
