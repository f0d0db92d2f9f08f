/* Kernels that show what a card can do: noise to compute with, copies within a set of
 * some size, and a link of a programmatic chain. */
#include "ceilings_kernels.h"

#include "kernel.cuh"

namespace
{

/* Loads in flight per thread: enough for a card's memory with a few blocks on each
 * multiprocessor. */
constexpr int UNROLL = 4;

static_assert(sizeof(uint4) == GX_CEILINGS_UNIT, "a unit is a uint4");

/* A finalizer of MurmurHash3: a bijection that leaves no pattern. */
__device__ __forceinline__ uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

/* Volatile, since a load from an address that was read before is no news to the
 * compiler. */
__device__ __forceinline__ uint4 load(const uint4 *from)
{
    uint4 v;

    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

__device__ __forceinline__ void store(uint4 *to, uint4 v)
{
    asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

static __global__ void __launch_bounds__(GX_CEILINGS_BLOCK)
    noise_kernel(uint32_t *words, int64_t n, uint32_t random, uint32_t fixed)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;

    gx_begin_kernel();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        words[i] = fixed | (random & scramble((uint32_t)i + 1));
}

/* A small set is gone through by many threads at once, so that it keeps the whole card
 * busy; those that meet at one place write the same there. */
static __global__ void __launch_bounds__(GX_CEILINGS_BLOCK)
    copy_kernel(uint4 *to, const uint4 *from, int64_t n_units, int64_t n_moves)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    const int64_t mask = n_units - 1;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    gx_begin_kernel();
    for (; i + (UNROLL - 1) * stride < n_moves; i += UNROLL * stride) {
        uint4 v[UNROLL];

#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            v[k] = load(from + ((i + k * stride) & mask));
#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            store(to + ((i + k * stride) & mask), v[k]);
    }
    for (; i < n_moves; i += stride)
        store(to + (i & mask), load(from + (i & mask)));
}

static __global__ void spin_kernel(int cycles)
{
    gx_begin_kernel();
    const long long begin = clock64();

    while (clock64() - begin < cycles) {
    }
}

static __global__ void overlap_kernel(void)
{
    gx_begin_kernel();
}

} // namespace

const void *gx_noise_kernel(void)
{
    return (const void *)noise_kernel;
}

const void *gx_copy_kernel(void)
{
    return (const void *)copy_kernel;
}

const void *gx_spin_kernel(void)
{
    return (const void *)spin_kernel;
}

const void *gx_overlap_kernel(void)
{
    return (const void *)overlap_kernel;
}
