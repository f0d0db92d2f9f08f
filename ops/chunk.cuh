/* Chunks of tensors: how the threads of a block share one. */
#ifndef GX_CHUNK_CUH
#define GX_CHUNK_CUH

#include "kernel.cuh"

/* Calls `full(i)` for N whole elements and `single(i)` for those at the end of a tensor.
 */
template <int N, int THREADS, int CHUNK, typename Full, typename Single>
static __device__ __forceinline__ void gx_over_chunk(int64_t chunk, int64_t n, Full full,
                                                     Single single)
{
    const int64_t first = chunk * CHUNK;
    const int64_t end = first + CHUNK < n ? first + CHUNK : n;

#pragma unroll 2
    for (int64_t i = first + threadIdx.x * N; i < end; i += THREADS * N) {
        if (i + N <= end) {
            full(i);
        } else {
            for (int64_t j = i; j < end; j++)
                single(j);
        }
    }
}

/* The entry that a chunk belongs to: the last one that begins at or before it. */
template <typename Entry>
static __device__ __forceinline__ int gx_find_entry(const Entry *entry, int n_entries,
                                                    int64_t chunk)
{
    int low = 0, high = n_entries;

    while (high - low > 1) {
        const int middle = (low + high) / 2;

        if (entry[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
