/* Which block of a kernel is the last. */
#ifndef GX_TICKET_CUH
#define GX_TICKET_CUH

#include "kernel.cuh"

/* True in the block that draws the last ticket, for the threads that thread 0 tells; what
 * the thread wrote before is seen by the last block, which reads it by __ldcg. The
 * counter wraps to the 0 that it began with. */
static __device__ __forceinline__ bool gx_draws_last(unsigned *ticket, unsigned blocks)
{
    __threadfence();
    const bool is_last = atomicInc(ticket, blocks - 1) == blocks - 1;
    __threadfence();
    return is_last;
}

#endif
