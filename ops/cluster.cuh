/* Clusters of blocks, along y: they see each other's shared memory. Before sm_90 there
 * are none, and none of this is called. */
#ifndef GX_CLUSTER_CUH
#define GX_CLUSTER_CUH

#include "kernel.cuh"

/* Writes x where `own` lies in the shared memory of the first block, once that has begun.
 */
static __device__ __forceinline__ void gx_store_at_first(float *own, float x)
{
    gx_store_shared(gx_map_shared((uint32_t)__cvta_generic_to_shared(own), 0), x);
}

#endif
