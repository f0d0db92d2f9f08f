/* A kernel that keeps the rule of programmatic edges, and one that breaks it. */
#include "gpu_delays.h"

#include "kernel.cuh"

static __global__ void fill(float *to, float value)
{
    gx_begin_kernel();
    to[blockIdx.x * PROBE_BLOCK + threadIdx.x] = value;
}

static __global__ void copy(float *to, const float *from)
{
    gx_begin_kernel();
    const unsigned i = blockIdx.x * PROBE_BLOCK + threadIdx.x;

    to[i] = __ldcg(from + i);
}

static __global__ void early_copy(float *to, const float *from)
{
    const unsigned i = blockIdx.x * PROBE_BLOCK + threadIdx.x;
    float x;

    /* Volatile, or the compiler might do what was forgotten. */
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(from + i) : "memory");
    gx_begin_kernel();
    to[i] = x;
}

const void *probe_fill(void)
{
    return (const void *)fill;
}

const void *probe_copy(void)
{
    return (const void *)copy;
}

const void *probe_early_copy(void)
{
    return (const void *)early_copy;
}
