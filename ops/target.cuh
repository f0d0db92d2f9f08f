/* What kernels ask of the card that C++ has no word for: PTX, dynamic shared memory, a
 * kernel's address. tests/emulate/ has another version of all of it, so that kernels run
 * where there is no card; nothing else of theirs depends on which one it is. What is
 * sm_90a's alone stands in wgmma.cuh, and has another version there as well. */
#ifndef GX_TARGET_CUH
#define GX_TARGET_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include <type_traits>

/* `name`: the T's that a launch gives the block. */
#define GX_DYNAMIC_SHARED(T, name) extern __shared__ __align__(16) T name[]

/* What a launch is given of a kernel. */
template <typename... ARGS> static inline const void *gx_kernel(void (*kernel)(ARGS...))
{
    return (const void *)kernel;
}

/* x stays what it is, but the compiler does not know that. */
static __device__ __forceinline__ void gx_hide(int &x)
{
    asm volatile("" : "+r"(x));
}

static __device__ __forceinline__ void gx_hide(size_t &x)
{
    asm volatile("" : "+l"(x));
}

/* The thread is done. */
static __device__ __forceinline__ void gx_end_thread()
{
    asm volatile("exit;\n");
}

/* 1 / x to one unit in the last place, for x from 2^-126 on; 0 from 2^126 on. */
static __device__ __forceinline__ float gx_reciprocal(float x)
{
    float y;

    asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* The root of x to two units in the last place. */
static __device__ __forceinline__ float gx_root(float x)
{
    float y;

    asm("sqrt.approx.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* One store of 16 bytes, to an address that is a multiple of them. */
static __device__ __forceinline__ void gx_store_16(void *to, uint4 bits)
{
    asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};\n" ::"l"(to), "r"(bits.x),
                 "r"(bits.y), "r"(bits.z), "r"(bits.w)
                 : "memory");
}

/* --- tensor cores --- */

/* x rounded to tf32, ties away from zero. */
static __device__ __forceinline__ uint32_t gx_tf32(float x)
{
    uint32_t bits;

    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(x));
    return bits;
}

/* sum += 16 x 8 of a times 8 x 8 of b. */
static __device__ __forceinline__ void gx_mma_tf32(float (&sum)[4], uint32_t a0,
                                                   uint32_t a1, uint32_t a2, uint32_t a3,
                                                   uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* sum += 16 x 16 of a times 16 x 8 of b, pairs of T: __nv_bfloat16 or __half. */
template <typename T>
static __device__ __forceinline__ void gx_mma_16(float (&sum)[4], uint32_t a0,
                                                 uint32_t a1, uint32_t a2, uint32_t a3,
                                                 uint32_t b0, uint32_t b1)
{
#define GX_MMA_16(TYPE)                                                         \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 " \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"      \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])       \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<T, __nv_bfloat16>)
        GX_MMA_16("bf16");
    else
        GX_MMA_16("f16");
#undef GX_MMA_16
}

/* --- copies to shared memory, past the registers --- */

/* Copies `valid` of BYTES bytes, 16 or 4, and fills the rest with zeros. */
template <int BYTES>
static __device__ __forceinline__ void gx_copy_async(void *to, const void *from,
                                                     int valid)
{
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(to);

    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address),
                     "l"(from), "r"(valid)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(address),
                     "l"(from), "r"(valid)
                     : "memory");
}

/* The thread's copies since the last commit are a group. */
static __device__ __forceinline__ void gx_commit_copies()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Until all but the thread's last N groups are there. */
template <int N> static __device__ __forceinline__ void gx_wait_copies()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* Four 8 x 8 matrices of 16 bits from shared memory; lane l names row l % 8 of matrix
 * l / 8, and gets elements (l / 4, l % 4 * 2) and the next of each; `turned`: of their
 * transposes. */
static __device__ __forceinline__ void gx_load_matrices(uint32_t (&to)[4], const void *at,
                                                        bool turned)
{
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(at);

    if (turned)
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
            : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
            : "r"(address)
            : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
}

/* --- clusters: from sm_90 on, and never called before --- */

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

/* Where `own` lies in the shared memory of block `rank` of the cluster. */
static __device__ __forceinline__ uint32_t gx_map_shared(uint32_t own, unsigned rank)
{
    uint32_t address = own;

    (void)rank;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(address) : "r"(own), "r"(rank));
#endif
    return address;
}

/* Writes to an address of gx_map_shared. */
static __device__ __forceinline__ void gx_store_shared(uint32_t address, float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f32 [%0], %1;\n" ::"r"(address), "f"(x) : "memory");
#else
    (void)address, (void)x;
#endif
}

/* The same of types of two bytes. */
template <typename T>
static __device__ __forceinline__ void gx_store_shared(uint32_t address, T x)
{
    static_assert(sizeof(T) == 2, "a type of two bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint16_t bits;

    memcpy(&bits, &x, sizeof bits);
    asm volatile("st.shared::cluster.b16 [%0], %1;\n" ::"r"(address), "h"(bits)
                 : "memory");
#else
    (void)address, (void)x;
#endif
}

#endif
