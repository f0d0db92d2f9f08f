/* The rate of a step, from its count in memory: a warp does it for all groups. */
#include "kernel.cuh"
#include "schedule_kernels.h"

namespace
{

constexpr int THREADS = 32;

static_assert(sizeof(gx_schedule_table) <= 4096, "a kernel takes 4 KB of arguments");

/* `done` updates stand behind; counting is in integers. */
__device__ float factor_at(const gx_schedule_table &t, int32_t done)
{
    if (done < t.warmup)
        return (float)(done + 1) / (float)t.warmup;
    if (t.kind == GX_SCHEDULE_CONSTANT)
        return 1.0f;
    if (t.kind == GX_SCHEDULE_DECAY)
        return powf(t.factor, (float)((done - t.warmup) / t.every));
    const float left =
        done < t.steps ? (float)(t.steps - done) / (float)(t.steps - t.warmup) : 0.0f;

    if (t.kind == GX_SCHEDULE_LINEAR)
        return t.end + (1.0f - t.end) * left;
    /* (1 + cos(pi (1 - left))) / 2, which keeps its digits near the end */
    const float s = sinpif(0.5f * left);

    return t.end + (1.0f - t.end) * s * s;
}

__global__ void __launch_bounds__(THREADS)
    schedule_kernel(const __grid_constant__ gx_schedule_table table)
{
    gx_begin_kernel();
    const int32_t skipped = table.skipped != nullptr ? *table.skipped : 0;
    const float factor = factor_at(table, *table.step / table.accumulate - skipped);

    for (int i = threadIdx.x; i < table.n_entries; i += THREADS)
        *table.entry[i].out = *table.entry[i].lr * factor;
}

} // namespace

extern "C" gx_status gx_schedule_load(gx_error *err)
{
    return gx_load_kernel((const void *)schedule_kernel, 0, "schedule_kernel", err);
}

extern "C" gx_status gx_schedule_launch(const gx_schedule_table *table, gx_ctx *ctx,
                                        gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(ctx, "schedule_kernel", (const void *)schedule_kernel, dim3(1),
                     dim3(THREADS), 0, args, err);
}
