/* Kernels with one fault each. */
#include "emulated_engines.h"

#include "wgmma_tile.cuh"

namespace
{

constexpr int SHARED_BYTES = STAGE_BYTES + (int)sizeof(uint64_t);

__device__ void copy(engine_fault fault, const gx_wgmma_maps &maps, uint32_t barrier)
{
    gx_barrier_expect(barrier, fault == BYTES_TOO_FEW ? STAGE_BYTES - 16 : STAGE_BYTES);
    gx_copy_box(0, &maps.a, barrier, 0, 0);
    for (int strip = 0; strip < ENGINE_COLUMNS / K; strip++)
        gx_copy_box((uint32_t)(A_BYTES + strip * STRIP_BYTES), &maps.b, barrier,
                    strip * K, 0);
    if (fault == ARRIVAL_TOO_MANY)
        gx_barrier_arrive_here(barrier);
    if (fault == STAGE_TAKEN_EARLY) {
        gx_barrier_wait(barrier, 0);
        gx_barrier_expect(barrier, A_BYTES);
        gx_copy_box(0, &maps.a, barrier, K, 0); /* zeros */
        gx_barrier_wait(barrier, 1);
    }
}

__device__ void multiply(engine_fault fault, uint32_t barrier, float (&sum)[128])
{
    const bool is_other = fault == OTHER_OPERANDS && threadIdx.x == 77;

    if (fault != NO_WAIT_FOR_COPIES)
        gx_barrier_wait(barrier, 0);
    if (fault == HALF_A_WARPGROUP && threadIdx.x >= WARPGROUP / 2)
        return;
    gx_begin_products();
    for (int i = 0; i < K / 16; i++)
        gx_multiply_64x256<__nv_bfloat16, true, false>(
            sum, operand_at((uint32_t)(i * 32 + (is_other ? A_BYTES : 0)), 16),
            operand_at((uint32_t)(A_BYTES + i * 16 * K * 2), STRIP_BYTES), i > 0);
    gx_commit_products();
    if (fault != NO_WAIT_FOR_PRODUCTS)
        gx_wait_products<0>();
    gx_take_products(sum);
}

__device__ void store(const float (&sum)[128], float *out)
{
    const int row = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;

    for (int i = 0; i < 128; i++)
        out[(row + i / 2 % 2 * 8) * ENGINE_COLUMNS + i / 4 * 8 +
            (int)threadIdx.x % 4 * 2 + i % 2] = sum[i];
}

__global__ void engine_kernel(const engine_fault fault,
                              const __grid_constant__ gx_wgmma_maps maps, float *out)
{
    gx_begin_kernel();
    const uint32_t barrier = STAGE_BYTES;

    if (threadIdx.x == 0 && fault != BARRIER_NOT_MADE)
        gx_barrier_init(barrier, 1);
    gx_publish_barriers();
    __syncthreads();
    if (threadIdx.x == WARPGROUP) {
        copy(fault, maps, barrier);
    } else if (threadIdx.x < WARPGROUP) {
        float sum[128];

        multiply(fault, barrier, sum);
        gx_sync_threads(fault == OTHER_NUMBER && threadIdx.x < 32 ? 32 : WARPGROUP);
        if (fault == COPY_LEFT_BEHIND && threadIdx.x == 0) {
            gx_barrier_expect(barrier, A_BYTES);
            gx_copy_box(0, &maps.a, barrier, 0, 0);
        }
        store(sum, out);
        gx_wait_products<0>(); /* which else would write where nothing is */
    }
}

} // namespace

extern "C" gx_status engine_load(gx_error *err)
{
    return gx_load_kernel(gx_kernel(engine_kernel), SHARED_BYTES, "engine_kernel", err);
}

extern "C" gx_status engine_launch(engine_fault fault, const gx_wgmma_maps *maps,
                                   float *out, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { &fault, (void *)maps, &out };

    return gx_launch(ctx, "engine_kernel", gx_kernel(engine_kernel), dim3(1),
                     dim3(WARPGROUP + 32), SHARED_BYTES, args, err);
}
