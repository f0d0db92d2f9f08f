/* Kernels with one fault each in how they use the copy engine and the tensor cores of
 * sm_90, for emulated_engines.c. */
#ifndef EMULATED_ENGINES_H
#define EMULATED_ENGINES_H

#include "wgmma.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum engine_fault {
    ENGINES_RIGHT,
    NO_WAIT_FOR_COPIES,
    NO_WAIT_FOR_PRODUCTS,
    STAGE_TAKEN_EARLY, /* copied to anew while products may still read it */
    BARRIER_NOT_MADE,
    ARRIVAL_TOO_MANY,
    BYTES_TOO_FEW,    /* fewer are expected than come */
    COPY_LEFT_BEHIND, /* when the block ends */
    HALF_A_WARPGROUP, /* the other half multiplies nothing */
    OTHER_OPERANDS,   /* one thread names another stage */
    OTHER_NUMBER      /* of threads at one barrier */
} engine_fault;

enum { ENGINE_ROWS = 64, ENGINE_COLUMNS = 256 };

/* out = a b, by one block: out [64, 256] of f32, a [64, 64] and b [64, 256] of bf16. */
gx_status engine_load(gx_error *err) GX_MUST_CHECK;
gx_status engine_launch(engine_fault fault, const gx_wgmma_maps *maps, float *out,
                        gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
