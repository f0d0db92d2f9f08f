/* ops/wgmma.cuh for the host's compiler: included by emulate_device.h. */
#ifndef EMULATE_WGMMA_H
#define EMULATE_WGMMA_H

#define GX_WGMMA_CUH

#include <cuda.h>

namespace emulate
{

void barrier_init(uint32_t barrier, int arrivals, site at);
/* `bytes` more have to be copied. */
void barrier_arrive(uint32_t barrier, int bytes, site at);
void barrier_wait(uint32_t barrier, unsigned parity, site at);
void named_barrier(unsigned n_threads, site at);

/* A box of a tensor map to every block of `ranks`, a bit each; none: to the own. */
void copy_box(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column, int row,
              unsigned ranks, site at);

/* Of a thread of a warpgroup: its part of a product of 64 x K by K x N. */
using element_of = float(uint32_t bits);
struct product {
    float *sum;
    uint64_t a, b; /* as operand_at of wgmma_tile.cuh has them */
    bool adds, a_along_k, b_along_k;
    element_of *element;
    const uint32_t *registers; /* that have the thread's part of a, or NULL */
    int bytes;                 /* of an element */
    unsigned group;            /* committed with so many before */
};
void multiply_later(const product &of);
void commit_products();
void wait_products(unsigned most_left, site at);

template <typename T> float element_as(uint32_t bits)
{
    return half_of<T>(bits, 0);
}

} // namespace emulate

static inline uint32_t gx_shared_address(const void *at)
{
    return emulate::shared_address(at);
}

template <int N> static inline void gx_fewer_registers()
{
}

template <int N> static inline void gx_more_registers()
{
}

static inline void gx_barrier_init(uint32_t barrier, int arrivals, EMULATE_CALLER)
{
    emulate::barrier_init(barrier, arrivals, EMULATE_SITE);
}

static inline void gx_publish_barriers()
{
}

static inline void gx_barrier_expect(uint32_t barrier, int bytes, EMULATE_CALLER)
{
    emulate::barrier_arrive(barrier, bytes, EMULATE_SITE);
}

static inline void gx_barrier_arrive(uint32_t barrier, unsigned rank, EMULATE_CALLER)
{
    emulate::barrier_arrive(emulate::address_of_rank(barrier, rank), 0, EMULATE_SITE);
}

static inline void gx_barrier_arrive_here(uint32_t barrier, EMULATE_CALLER)
{
    emulate::barrier_arrive(barrier, 0, EMULATE_SITE);
}

static inline void gx_barrier_wait(uint32_t barrier, unsigned parity, EMULATE_CALLER)
{
    emulate::barrier_wait(barrier, parity, EMULATE_SITE);
}

static inline void gx_sync_threads(int n, EMULATE_CALLER)
{
    emulate::named_barrier((unsigned)n, EMULATE_SITE);
}

static inline void gx_load_shared(uint4 &to, uint32_t from)
{
    memcpy(&to, emulate::shared_memory(from, sizeof to), sizeof to);
}

static inline void gx_load_shared(uint2 &to, uint32_t from)
{
    memcpy(&to, emulate::shared_memory(from, sizeof to), sizeof to);
}

static inline void gx_copy_box(uint32_t to, const CUtensorMap *map, uint32_t barrier,
                               int column, int row, EMULATE_CALLER)
{
    emulate::copy_box(to, map, barrier, column, row, 0, EMULATE_SITE);
}

static inline void gx_copy_box_to_all(uint32_t to, const CUtensorMap *map,
                                      uint32_t barrier, int column, int row,
                                      uint16_t blocks, EMULATE_CALLER)
{
    emulate::copy_box(to, map, barrier, column, row, blocks, EMULATE_SITE);
}

static inline void gx_begin_products()
{
}

static inline void gx_commit_products()
{
    emulate::commit_products();
}

template <int N> static inline void gx_wait_products(EMULATE_CALLER)
{
    emulate::wait_products(N, EMULATE_SITE);
}

template <int N> static inline void gx_take_products(float (&)[N])
{
}

template <typename T, bool A_ALONG_K, bool B_ALONG_K>
static inline void gx_multiply_64x256(float (&sum)[128], uint64_t a, uint64_t b, int adds)
{
    emulate::multiply_later({ sum, a, b, adds != 0, A_ALONG_K, B_ALONG_K,
                              emulate::element_as<T>, nullptr, 2, 0 });
}

/* The registers are read when the product is made: they have to be as they were. */
static inline void gx_multiply_64x256_tf32(float (&sum)[128], const uint32_t (&a)[4],
                                           uint64_t b, int adds)
{
    emulate::multiply_later(
        { sum, 0, b, adds != 0, true, true, emulate::tf32_of, a, 4, 0 });
}

#endif
