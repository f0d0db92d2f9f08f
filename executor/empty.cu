/* Kernels that do nothing: what a launch costs by itself, whether ours can run here, and
 * a card that is busy for a while. */
#include "empty.h"

#include <stdint.h>

static __global__ void empty_kernel(void)
{
}

static __device__ uint64_t now(void)
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void busy_kernel(uint64_t ns)
{
    const uint64_t begin = now();

    while (now() - begin < ns) {
    }
}

const void *gx_empty_kernel(void)
{
    return (const void *)empty_kernel;
}

const void *gx_busy_kernel(void)
{
    return (const void *)busy_kernel;
}
