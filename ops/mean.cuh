/* The second kernel of a mean, see mean.h. */
#ifndef GX_MEAN_CUH
#define GX_MEAN_CUH

#include "kernel.cuh"

enum { GX_MEAN_THREADS = 256 };

/* `counted`: where the device has counted what to divide by, or NULL: n. */
static __device__ __forceinline__ double gx_divisor(int64_t n, const double *counted)
{
    return counted != nullptr ? *counted : (double)n;
}

static __global__ void __launch_bounds__(GX_MEAN_THREADS)
    gx_mean_kernel(const double *partial, int n_partial, int64_t n, const double *counted,
                   float *out)
{
    gx_begin_kernel();
    __shared__ double shared[32];
    double total = 0.0;

    for (int i = threadIdx.x; i < n_partial; i += GX_MEAN_THREADS)
        total += partial[i];
    total = gx_block_sum(total, shared);
    if (threadIdx.x == 0)
        *out = (float)(total / gx_divisor(n, counted));
}

/* What a block of the first kernel does with its sum. */
static __device__ __forceinline__ void gx_leave_mean(double total, int64_t n,
                                                     double *partial, float *out,
                                                     const double *counted = nullptr)
{
    __shared__ double shared[32];

    total = gx_block_sum(total, shared);
    if (threadIdx.x != 0)
        return;
    if (gridDim.x == 1)
        *out = (float)(total / gx_divisor(n, counted));
    else
        partial[blockIdx.x] = total;
}

static inline gx_status gx_mean_load(int32_t n_partial, gx_error *err)
{
    return n_partial == 1
               ? GX_OK
               : gx_load_kernel(gx_kernel(gx_mean_kernel), 0, "mean_kernel", err);
}

/* Nothing where one block has done it all. */
static inline gx_status gx_mean_launch(const double *partial, int32_t n_partial,
                                       int64_t n, float *out, gx_ctx *ctx, gx_error *err,
                                       const double *counted = nullptr)
{
    void *args[] = { &partial, &n_partial, &n, &counted, &out };

    if (n_partial == 1)
        return GX_OK;
    return gx_launch(ctx, "mean_kernel", gx_kernel(gx_mean_kernel), dim3(1),
                     dim3(GX_MEAN_THREADS), 0, args, err);
}

#endif
