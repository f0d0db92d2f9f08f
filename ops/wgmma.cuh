/* The instructions of sm_90a that wgmma_tile.cuh and its kernels are made of. */
#ifndef GX_WGMMA_CUH
#define GX_WGMMA_CUH

#include <cuda.h>

#include "kernel.cuh"

static __device__ __forceinline__ uint32_t gx_shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* --- registers --- */

/* A warpgroup that multiplies nothing leaves its registers to those that do. */
template <int N> static __device__ __forceinline__ void gx_fewer_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void gx_more_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

/* --- barriers in shared memory --- */

static __device__ __forceinline__ void gx_barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Shows the block's new barriers to the cluster and to the copy engine. */
static __device__ __forceinline__ void gx_publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

/* Arrives, and `bytes` more have to be copied before the phase ends. */
static __device__ __forceinline__ void gx_barrier_expect(uint32_t barrier, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

/* Arrives at the barrier that lies there in block `rank` of the cluster. */
static __device__ __forceinline__ void gx_barrier_arrive(uint32_t barrier, unsigned rank)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];\n" ::"r"(
                     gx_map_shared(barrier, rank))
                 : "memory");
}

/* Arrives at a barrier of the own block. */
static __device__ __forceinline__ void gx_barrier_arrive_here(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/* Until the phase of this parity has ended; of a new barrier the one before the first,
 * of parity 1, has. */
static __device__ __forceinline__ void gx_barrier_wait(uint32_t barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN;\n"
                 "}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Of n threads of the block, whole warps; barrier 0 is __syncthreads's. */
static __device__ __forceinline__ void gx_sync_threads(int n)
{
    __syncwarp();
    asm volatile("bar.sync 1, %0;\n" ::"r"(n) : "memory");
}

static __device__ __forceinline__ void gx_load_shared(uint4 &to, uint32_t from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void gx_load_shared(uint2 &to, uint32_t from)
{
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n"
                 : "=r"(to.x), "=r"(to.y)
                 : "r"(from)
                 : "memory");
}

/* --- copies of a box of a tensor map to shared memory --- */

static __device__ __forceinline__ void gx_copy_box(uint32_t to, const CUtensorMap *map,
                                                   uint32_t barrier, int column, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row)
                 : "memory");
}

/* To the same place of every block in `blocks`, a bit each. */
static __device__ __forceinline__ void gx_copy_box_to_all(uint32_t to,
                                                          const CUtensorMap *map,
                                                          uint32_t barrier, int column,
                                                          int row, uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3,%4}], [%2], %5;\n" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row), "h"(blocks)
                 : "memory");
}

/* --- the product of a warpgroup --- */

static __device__ __forceinline__ void gx_begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

static __device__ __forceinline__ void gx_commit_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/* Until all but the last N groups are done. */
template <int N> static __device__ __forceinline__ void gx_wait_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

/* Behind a wait: what the products have written is read from here on, and not before. */
template <int N> static __device__ __forceinline__ void gx_take_products(float (&sum)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(sum[i])::"memory");
}

#define GX_TEN_NAMES(t)                                                        \
    "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7," \
    "%" #t "8,%" #t "9,"
#define GX_128_NAMES                                                                    \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," GX_TEN_NAMES(1) GX_TEN_NAMES(2) GX_TEN_NAMES(3)    \
        GX_TEN_NAMES(4) GX_TEN_NAMES(5) GX_TEN_NAMES(6) GX_TEN_NAMES(7) GX_TEN_NAMES(8) \
            GX_TEN_NAMES(9) GX_TEN_NAMES(10)                                            \
                GX_TEN_NAMES(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define GX_4_SUMS(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define GX_16_SUMS(i) GX_4_SUMS(i), GX_4_SUMS(i + 4), GX_4_SUMS(i + 8), GX_4_SUMS(i + 12)
#define GX_64_SUMS(i) \
    GX_16_SUMS(i), GX_16_SUMS(i + 16), GX_16_SUMS(i + 32), GX_16_SUMS(i + 48)

/* sum (+)= 64 x 16 of a times 16 x 256 of b; `adds` 0: sum is written anew. A_ALONG_K:
 * rows of a lie along k; B_ALONG_K: columns of b do. */
template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void gx_multiply_64x256(float (&sum)[128], uint64_t a,
                                                          uint64_t b, int adds)
{
#define GX_WGMMA(TYPE)                                                        \
    asm volatile("{\n"                                                        \
                 ".reg .pred adds;\n"                                         \
                 "setp.ne.b32 adds, %130, 0;\n"                               \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE \
                 " {" GX_128_NAMES "}, %128, %129, adds, 1, 1, %131, %132;\n" \
                 "}\n"                                                        \
                 : GX_64_SUMS(0), GX_64_SUMS(64)                              \
                 : "l"(a), "l"(b), "r"(adds), "n"(A_ALONG_K ? 0 : 1),         \
                   "n"(B_ALONG_K ? 0 : 1))
    if constexpr (std::is_same_v<T, __nv_bfloat16>)
        GX_WGMMA("bf16");
    else
        GX_WGMMA("f16");
#undef GX_WGMMA
}

/* The same of tf32: 64 x 8 of a times 8 x 256 of b, whose columns lie along k. Of a each
 * lane has what it has of it for mma.sync: of warp w, with g = lane / 4 and t = lane % 4,
 * rows 16 w + g and eight further at k = t, and then both at k = t + 4. */
static __device__ __forceinline__ void
gx_multiply_64x256_tf32(float (&sum)[128], const uint32_t (&a)[4], uint64_t b, int adds)
{
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, %133, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" GX_128_NAMES
                 "}, {%128,%129,%130,%131}, %132, adds, 1, 1;\n"
                 "}\n"
                 : GX_64_SUMS(0), GX_64_SUMS(64)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}

#undef GX_64_SUMS
#undef GX_16_SUMS
#undef GX_4_SUMS
#undef GX_128_NAMES
#undef GX_TEN_NAMES

#endif
