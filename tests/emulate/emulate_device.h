/* CUDA C++ for the host's compiler: see emulate.h. Included ahead of a .cu file. */
#ifndef EMULATE_DEVICE_H
#define EMULATE_DEVICE_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <string.h>

#include <utility>

#include "launch.h"

/* From here on code is a card's; the headers above are the host's. */
#define __CUDA_ARCH__ 900
#undef __shared__
#define __shared__ static thread_local /* emulate.cc finds these and swaps them */
#undef __forceinline__                 /* what is forced takes compilers long */
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif

namespace emulate
{

/* --- where a thread is --- */

struct place {
    uint3 thread, block;
    dim3 block_size, grid_size;
};
extern const place *here; /* of the thread that runs */

/* A line of the kernel, for messages. */
struct site {
    const char *file;
    int line;
};
#define EMULATE_SITE \
    emulate::site    \
    {                \
        file, line   \
    }
#define EMULATE_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* --- what emulate.cc does --- */

using kernel_call = void(const void *kernel, void **args);
void remember(const void *kernel, kernel_call *call);
void *dynamic_shared();
/* Ends the launch with an error of the thread that runs. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void block_barrier(site at);
void cluster_arrive(site at);
void cluster_wait(site at);
void grid_wait(site at);

/* What a lane brings to a collective. `combine` runs once, when all lanes of the mask are
 * there; lanes that the mask lacks are NULL. */
using combine_lanes = void(void *const (&lane)[32]);
void collect(const char *name, unsigned mask, void *lane, combine_lanes *combine,
             site at);

/* Copies that are made when the thread waits for them. */
void copy_later(size_t to, const void *from, int bytes, int valid);
void commit_copies();
void wait_copies(size_t most_left);

/* Shared memory has addresses of 32 bits, with the rank of the block in a cluster. */
uint32_t shared_address(const void *at);
uint32_t address_of_rank(uint32_t address, unsigned rank);
/* Where such an address lies, for `bytes` that are aligned to them. */
void *shared_memory(uint32_t address, size_t bytes);

/* --- kernels by their address --- */

template <typename... ARGS, size_t... I>
void call_kernel(void (*kernel)(ARGS...), void **args, std::index_sequence<I...>)
{
    kernel(*static_cast<ARGS *>(args[I])...);
}

template <typename... ARGS> void call_erased(const void *kernel, void **args)
{
    call_kernel(reinterpret_cast<void (*)(ARGS...)>(const_cast<void *>(kernel)), args,
                std::index_sequence_for<ARGS...>());
}

/* --- collectives of a warp --- */

template <typename T> struct shuffle_lane {
    T given, taken;
    unsigned from;
};

template <typename T>
T shuffle(const char *name, unsigned mask, T x, unsigned from, site at)
{
    shuffle_lane<T> mine = { x, x, from };

    collect(
        name, mask, &mine,
        [](void *const(&lane)[32]) {
            for (void *each : lane) {
                if (each == nullptr)
                    continue;
                auto *to = static_cast<shuffle_lane<T> *>(each);
                auto *source = static_cast<shuffle_lane<T> *>(lane[to->from % 32]);

                if (source == nullptr)
                    fail("a shuffle takes from lane %u, which has no part in it",
                         to->from % 32);
                to->taken = source->given;
            }
        },
        at);
    return mine.taken;
}

struct ballot_lane {
    bool is_set;
    unsigned all;
};

inline void ballot(void *const (&lane)[32])
{
    unsigned all = 0;

    for (int i = 0; i < 32; i++)
        all |= lane[i] != nullptr && static_cast<ballot_lane *>(lane[i])->is_set ? 1u << i
                                                                                 : 0;
    for (void *each : lane) {
        if (each != nullptr)
            static_cast<ballot_lane *>(each)->all = all;
    }
}

inline unsigned lane_index()
{
    return here->thread.x % 32;
}

/* --- tensor cores --- */

struct mma_lane {
    float *sum;
    uint32_t a[4], b[2];
};

/* One of 16 rows of a, 8 columns of b and their k, as an f32. */
using mma_element = float(void *const (&lane)[32], int outer, int k);

/* Fragments as the PTX ISA has them: thread (g, t), g = lane / 4 and t = lane % 4, has of
 * the sums the elements (g, 2t), (g, 2t + 1), (g + 8, 2t) and (g + 8, 2t + 1). */
template <int K, mma_element *A, mma_element *B> void multiply(void *const (&lane)[32])
{
    float a[16][K], b[8][K];

    for (int k = 0; k < K; k++) {
        for (int i = 0; i < 16; i++)
            a[i][k] = A(lane, i, k);
        for (int j = 0; j < 8; j++)
            b[j][k] = B(lane, j, k);
    }
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 8; j++) {
            auto *to = static_cast<mma_lane *>(lane[i % 8 * 4 + j / 2]);
            float sum = to->sum[i / 8 * 2 + j % 2];

            for (int k = 0; k < K; k++)
                sum += a[i][k] * b[j][k];
            to->sum[i / 8 * 2 + j % 2] = sum;
        }
    }
}

inline float tf32_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    if ((bits & 0x1fff) != 0 && x == x)
        fail("an operand of a product is not rounded to tf32: %a", (double)x);
    return x;
}

/* m16n8k8: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of a; (t, g), (t + 4, g) of b.
 */
inline float tf32_a(void *const (&lane)[32], int i, int k)
{
    return tf32_of(
        static_cast<mma_lane *>(lane[i % 8 * 4 + k % 4])->a[i / 8 + k / 4 * 2]);
}

inline float tf32_b(void *const (&lane)[32], int j, int k)
{
    return tf32_of(static_cast<mma_lane *>(lane[j * 4 + k % 4])->b[k / 4]);
}

template <typename T> float half_of(uint32_t pair, int k)
{
    const uint16_t bits = (uint16_t)(pair >> k % 2 * 16);
    T x;

    memcpy(static_cast<void *>(&x), &bits, sizeof x);
    return (float)x;
}

/* m16n8k16: k in pairs, (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) of a; (2t, g),
 * (2t + 8, g) of b. */
template <typename T> float half_a(void *const (&lane)[32], int i, int k)
{
    return half_of<T>(
        static_cast<mma_lane *>(lane[i % 8 * 4 + k % 8 / 2])->a[i / 8 + k / 8 * 2], k);
}

template <typename T> float half_b(void *const (&lane)[32], int j, int k)
{
    return half_of<T>(static_cast<mma_lane *>(lane[j * 4 + k % 8 / 2])->b[k / 8], k);
}

/* --- ldmatrix --- */

struct matrix_lane {
    uint32_t *to;
    const uint16_t *row;
};

/* Lane l has row l % 8 of matrix l / 8. */
template <bool TURNED> void load_matrices(void *const (&lane)[32])
{
    for (int l = 0; l < 32; l++) {
        for (int matrix = 0; matrix < 4; matrix++) {
            uint32_t pair = 0;

            for (int half = 0; half < 2; half++) {
                const int near = l / 4, far = l % 4 * 2 + half;
                const int row = TURNED ? far : near, column = TURNED ? near : far;
                const auto *from = static_cast<matrix_lane *>(lane[matrix * 8 + row]);

                pair |= (uint32_t)from->row[column] << 16 * half;
            }
            static_cast<matrix_lane *>(lane[l])->to[matrix] = pair;
        }
    }
}

} // namespace emulate

/* --- what CUDA C++ has built in --- */

#define threadIdx (emulate::here->thread)
#define blockIdx (emulate::here->block)
#define blockDim (emulate::here->block_size)
#define gridDim (emulate::here->grid_size)

static inline void __syncthreads(EMULATE_CALLER)
{
    emulate::block_barrier(EMULATE_SITE);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATE_CALLER)
{
    int mine = 0;

    emulate::collect(
        "__syncwarp", mask, &mine, [](void *const(&)[32]) {}, EMULATE_SITE);
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T x, int from, EMULATE_CALLER)
{
    return emulate::shuffle("__shfl_sync", mask, x, (unsigned)from, EMULATE_SITE);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T x, int step, EMULATE_CALLER)
{
    return emulate::shuffle("__shfl_xor_sync", mask, x,
                            emulate::lane_index() ^ (unsigned)step, EMULATE_SITE);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T x, unsigned step, EMULATE_CALLER)
{
    const unsigned lane = emulate::lane_index();

    return emulate::shuffle("__shfl_down_sync", mask, x,
                            lane + step < 32 ? lane + step : lane, EMULATE_SITE);
}

static inline unsigned __ballot_sync(unsigned mask, bool is_set, EMULATE_CALLER)
{
    emulate::ballot_lane mine = { is_set, 0 };

    emulate::collect("__ballot_sync", mask, &mine, emulate::ballot, EMULATE_SITE);
    return mine.all;
}

static inline void cudaGridDependencySynchronize(EMULATE_CALLER)
{
    emulate::grid_wait(EMULATE_SITE);
}

static inline void cudaTriggerProgrammaticLaunchCompletion()
{
}

static inline void __threadfence()
{
}

[[noreturn]] static inline void __trap()
{
    emulate::fail("__trap");
}

static inline unsigned atomicAdd(unsigned *at, unsigned x)
{
    const unsigned old = *at;

    *at += x;
    return old;
}

static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned old = *at;

    *at = old >= most ? 0 : old + 1;
    return old;
}

template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}

template <typename T> static inline T __ldcg(const T *at)
{
    return *at;
}

template <typename T> static inline T __ldcs(const T *at)
{
    return *at;
}

template <typename T> static inline void __stcg(T *at, T x)
{
    *at = x;
}

template <typename T> static inline void __stcs(T *at, T x)
{
    *at = x;
}

static inline int min(int x, int y)
{
    return x < y ? x : y;
}

static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

static inline float __uint_as_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float __fmul_rn(float x, float y)
{
    return x * y;
}

static inline float __fsub_rn(float x, float y)
{
    return x - y;
}

static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}

static inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t out = 0;

    for (int i = 0; i < 4; i++)
        out |= (uint32_t)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return out;
}

static inline size_t __cvta_generic_to_global(const void *at)
{
    return (size_t)at;
}

static inline void *__cvta_global_to_generic(size_t at)
{
    return (void *)at;
}

static inline size_t __cvta_generic_to_shared(const void *at)
{
    return emulate::shared_address(at);
}

/* --- target.cuh --- */

#define GX_TARGET_CUH

#define GX_DYNAMIC_SHARED(T, name) \
    T *const name = static_cast<T *>(emulate::dynamic_shared())

template <typename... ARGS> static inline const void *gx_kernel(void (*kernel)(ARGS...))
{
    const void *erased = reinterpret_cast<const void *>(kernel);

    emulate::remember(erased, emulate::call_erased<ARGS...>);
    return erased;
}

template <typename T> static inline void gx_hide(T &)
{
}

static inline void gx_end_thread()
{
    emulate::fail("a thread ends where none does");
}

/* 0 from 2^126 on, as the card has it. */
static inline float gx_reciprocal(float x)
{
    return x > 0x1p126f ? 0.0f : 1.0f / x;
}

static inline float gx_root(float x)
{
    return sqrtf(x);
}

static inline void gx_store_16(void *to, uint4 bits)
{
    if ((size_t)to % sizeof bits != 0)
        emulate::fail("a store of 16 bytes to %p", to);
    memcpy(to, &bits, sizeof bits);
}

/* To the nearest number of 10 bits, ties away from zero. */
static inline uint32_t gx_tf32(float x)
{
    uint32_t bits;

    if (x != x)
        return 0x7fffffff;
    memcpy(&bits, &x, sizeof bits);
    return fabsf(x) < INFINITY ? (bits + 0x1000) & ~0x1fffu : bits;
}

static inline void gx_mma_tf32(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                               uint32_t a3, uint32_t b0, uint32_t b1, EMULATE_CALLER)
{
    emulate::mma_lane mine = { sum, { a0, a1, a2, a3 }, { b0, b1 } };

    emulate::collect("mma.sync", 0xffffffffu, &mine,
                     emulate::multiply<8, emulate::tf32_a, emulate::tf32_b>,
                     EMULATE_SITE);
}

template <typename T>
static inline void gx_mma_16(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                             uint32_t a3, uint32_t b0, uint32_t b1, EMULATE_CALLER)
{
    emulate::mma_lane mine = { sum, { a0, a1, a2, a3 }, { b0, b1 } };

    emulate::collect("mma.sync", 0xffffffffu, &mine,
                     emulate::multiply<16, emulate::half_a<T>, emulate::half_b<T>>,
                     EMULATE_SITE);
}

template <int BYTES>
static inline void gx_copy_async(void *to, const void *from, int valid)
{
    static_assert(BYTES == 16 || BYTES == 4);
    emulate::copy_later(__cvta_generic_to_shared(to), from, BYTES, valid);
}

static inline void gx_commit_copies()
{
    emulate::commit_copies();
}

template <int N> static inline void gx_wait_copies()
{
    emulate::wait_copies(N);
}

static inline void gx_load_matrices(uint32_t (&to)[4], const void *at, bool turned,
                                    EMULATE_CALLER)
{
    emulate::matrix_lane mine = { to,
                                  static_cast<const uint16_t *>(emulate::shared_memory(
                                      emulate::shared_address(at), 16)) };

    emulate::collect("ldmatrix", 0xffffffffu, &mine,
                     turned ? emulate::load_matrices<true>
                            : emulate::load_matrices<false>,
                     EMULATE_SITE);
}

static inline void gx_arrive_at_cluster(bool, EMULATE_CALLER)
{
    emulate::cluster_arrive(EMULATE_SITE);
}

static inline void gx_wait_for_cluster(EMULATE_CALLER)
{
    emulate::cluster_wait(EMULATE_SITE);
}

static inline uint32_t gx_map_shared(uint32_t own, unsigned rank)
{
    return emulate::address_of_rank(own, rank);
}

static inline void gx_store_shared(uint32_t address, float x)
{
    *static_cast<float *>(emulate::shared_memory(address, sizeof x)) = x;
}

template <typename T> static inline void gx_store_shared(uint32_t address, T x)
{
    static_assert(sizeof(T) == 2, "a type of two bytes");
    *static_cast<T *>(emulate::shared_memory(address, sizeof x)) = x;
}

#include "emulate_wgmma.h"

#endif
