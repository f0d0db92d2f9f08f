/* How the blocks of a kernel make a mean, see mean.h. */
#ifndef GX_MEAN_CUH
#define GX_MEAN_CUH

#include "ticket.cuh"

/* `counted`: where the device has counted what to divide by, or NULL: n. */
static __device__ __forceinline__ double gx_divisor(int64_t n, const double *counted)
{
    return counted != nullptr ? *counted : (double)n;
}

/* What a block does with its sum, which thread 0 has; the whole block comes here. The
 * order in which the last block adds up hangs on how many there are, not on which it is.
 */
static __device__ __forceinline__ void gx_finish_mean(double total, int64_t n,
                                                      double *partial, unsigned *ticket,
                                                      float *out, const double *counted)
{
    __shared__ double shared[32];
    __shared__ bool is_last;

    if (gridDim.x > 1) {
        if (threadIdx.x == 0) {
            partial[blockIdx.x] = total;
            is_last = gx_draws_last(ticket, gridDim.x);
        }
        __syncthreads();
        if (!is_last)
            return;
        total = 0.0;
#pragma unroll 4
        for (int i = threadIdx.x; i < (int)gridDim.x; i += blockDim.x)
            total += __ldcg(partial + i);
        total = gx_block_sum(total, shared);
    }
    if (threadIdx.x == 0)
        *out = (float)(total / gx_divisor(n, counted));
}

/* The same where every thread has a part of the block's sum. */
static __device__ __forceinline__ void
gx_leave_mean(double total, int64_t n, double *partial, unsigned *ticket, float *out)
{
    __shared__ double shared[32];

    gx_finish_mean(gx_block_sum(total, shared), n, partial, ticket, out, nullptr);
}

#endif
