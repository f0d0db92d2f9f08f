/* With GX_TEST_DELAYS alone, which only tests are built with: each warp of a kernel
 * dawdles when the next kernel has been let in, so that one which reads before its wait
 * finds what was there before. */
#ifndef GX_DELAY_CUH
#define GX_DELAY_CUH

#include <stdint.h>

/* At most so long; the device has no shorter clock that all multiprocessors share. */
constexpr uint32_t GX_DELAY_NS = 20000;

static __device__ uint32_t gx_delay_launches; /* of kernels of this file; only roughly */

static __device__ __forceinline__ uint64_t gx_delay_clock()
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

/* Warps of a block wait for times of their own, and blocks of a kernel too. The finalizer
 * is MurmurHash3's. */
static __device__ __forceinline__ void gx_delay()
{
    const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const uint32_t thread =
        threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const uint64_t begin = gx_delay_clock();
    const uint32_t launch = *(volatile uint32_t *)&gx_delay_launches;
    uint32_t x = (uint32_t)(begin >> 5) + launch * 0x9e3779b9u;

    x ^= (block * 32 + thread / 32) * 0x85ebca6bu;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    if (block == 0 && thread == 0)
        atomicAdd(&gx_delay_launches, 1u);
    while (gx_delay_clock() - begin < x % GX_DELAY_NS)
        ;
}

#endif
