/* Clusters of blocks, along y: they see each other's shared memory. Before sm_90 there
 * are none, and none of this is called. */
#ifndef GX_CLUSTER_CUH
#define GX_CLUSTER_CUH

#include "kernel.cuh"

/* A block that arrives says that it has begun, and with `publish` shows the others what
 * it has stored so far, which waits for its stores. */
static __device__ __forceinline__ void gx_arrive_at_cluster(bool publish)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (publish)
        asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
    else
        asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
#else
    (void)publish;
#endif
}

static __device__ __forceinline__ void gx_wait_for_cluster()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
#endif
}

/* Writes x where `own` lies in the shared memory of the first block, once that has begun.
 */
static __device__ __forceinline__ void gx_store_at_first(float *own, float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t address;

    asm("mapa.shared::cluster.u32 %0, %1, 0;\n"
        : "=r"(address)
        : "r"((uint32_t)__cvta_generic_to_shared(own)));
    asm volatile("st.shared::cluster.f32 [%0], %1;\n" ::"r"(address), "f"(x) : "memory");
#else
    *own = x;
#endif
}

#endif
