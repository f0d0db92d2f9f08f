/* What the measuring of a card's ceilings is made of. */
#ifndef GX_CEILINGS_PARTS_H
#define GX_CEILINGS_PARTS_H

#include <gexec/ceilings.h>

/* Nothing is known: every figure is n/a. */
gx_ceilings gx_ceilings_none(void);

#if GX_HAVE_CUDA

#include "stopwatch.h"

/* What the parts measure with: a device that is current, and memory on it. */
typedef struct gx_ceilings_bench {
    gx_device *device;
    gx_stopwatch watch;
    void *memory;
    int64_t memory_bytes;
    void *workspace; /* of cuBLASLt */
    int64_t workspace_bytes;
} gx_ceilings_bench;

/* ceilings_cuda.c: fills the memory with words that are `fixed` and, where `random` has
 * ones, look random. */
gx_status gx_ceilings_fill(const gx_ceilings_bench *bench, uint32_t random,
                           uint32_t fixed, gx_error *err) GX_MUST_CHECK;

/* ceilings_lt_cuda.c: the best rate of large square products; n/a where the library has
 * none of that type. Writes over the memory. */
gx_status gx_ceilings_products(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                               gx_error *err) GX_MUST_CHECK;

/* ceilings_graph_cuda.c: what nodes, replays and launches cost. */
gx_status gx_ceilings_latencies(const gx_ceilings_bench *bench, gx_ceilings *ceilings,
                                gx_error *err) GX_MUST_CHECK;

#endif

#endif
