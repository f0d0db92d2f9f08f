/* Kernels with one fault each. */
#include "emulated_faults.h"

#include "cluster.cuh"
#include "kernel.cuh"

namespace
{

__device__ void meet(emulated_fault fault)
{
    if (fault == NO_BARRIER)
        return;
    if (fault == HALF_A_BARRIER && threadIdx.x % 32 < 16)
        (void)__shfl_xor_sync(0xffffffffu, 0.0f, 1);
    else if (fault == TWO_BARRIERS && threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__device__ void use_cluster(emulated_fault fault)
{
    __shared__ float from_all[FAULT_BLOCKS];

    if (fault == WAIT_WITHOUT_ARRIVAL)
        gx_wait_for_cluster();
    gx_arrive_at_cluster(false);
    if (fault != EARLY_STORE)
        gx_wait_for_cluster();
    if (threadIdx.x == 0)
        gx_store_at_first(&from_all[blockIdx.y], 1.0f);
    if (fault == EARLY_STORE)
        gx_wait_for_cluster();
    gx_arrive_at_cluster(true);
    if (fault != NO_CLUSTER_WAIT)
        gx_wait_for_cluster();
}

__global__ void fault_kernel(const emulated_fault fault, const float *in, float *out)
{
    GX_DYNAMIC_SHARED(float, shared);
    const int t = (int)threadIdx.x, at = (int)blockIdx.y * FAULT_THREADS + t;
    const int next = (t + 1) % FAULT_THREADS;

    if (fault == NO_WAIT)
        shared[t] = in[at];
    gx_begin_kernel();
    use_cluster(fault);
    if (fault != NO_WAIT)
        shared[t] = in[at];
    meet(fault);
    if (fault == NOT_ROUNDED) {
        float sum[4] = {};

        gx_mma_tf32(sum, 0x3f800001, 0, 0, 0, 0, 0);
    }
    if (fault == WIDE_SHARED && t == 0)
        shared[FAULT_THREADS] = 0.0f;
    out[at] = shared[next] + 1.0f;
    if (fault == WIDE_GLOBAL && t == 0)
        out[FAULT_BLOCKS * FAULT_THREADS] = 0.0f;
}

} // namespace

extern "C" gx_status emulated_fault_load(size_t shared_bytes, gx_error *err)
{
    return gx_load_kernel(gx_kernel(fault_kernel), shared_bytes, "fault_kernel", err);
}

extern "C" gx_status emulated_fault_launch(emulated_fault fault, const float *in,
                                           float *out, size_t shared_bytes, gx_ctx *ctx,
                                           gx_error *err)
{
    void *args[] = { &fault, &in, &out };

    return gx_launch_cluster(ctx, "fault_kernel", gx_kernel(fault_kernel),
                             dim3(1, FAULT_BLOCKS), dim3(FAULT_THREADS), FAULT_BLOCKS,
                             shared_bytes, args, err);
}
