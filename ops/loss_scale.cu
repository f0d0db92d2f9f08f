/* The scale of the loss: decided by one thread, from what lies in memory. */
#include "kernel.cuh"
#include "loss_scale_kernels.h"

namespace
{

constexpr int THREADS = 32;
constexpr double CLIP_EPSILON = 1e-6; /* as clip_grad_norm_ has it */

/* The new scale, after an update or after one that was skipped. */
__device__ void follow(const gx_loss_scale &g, float scale, bool finite)
{
    const int32_t tracker = *g.tracker + 1;

    if (!finite) {
        *g.scale = (float)((double)scale * g.backoff);
        *g.tracker = 0;
    } else if (tracker >= g.interval) {
        const float grown = (float)((double)scale * g.growth);

        if (isfinite(grown))
            *g.scale = grown;
        *g.tracker = 0;
    } else {
        *g.tracker = tracker;
    }
}

template <typename T> __device__ void put(T *to, T value)
{
    if (to != nullptr)
        *to = value;
}

__global__ void __launch_bounds__(THREADS)
    loss_scale_kernel(const __grid_constant__ gx_loss_scale g)
{
    gx_begin_kernel();
    if (threadIdx.x != 0)
        return;
    const float scale = *g.scale;
    const bool finite = isfinite(*g.norm);
    const double norm = (double)*g.norm / (double)scale;
    const double clip = g.max_norm / (norm + CLIP_EPSILON);
    const int32_t step = *g.step, done = step / g.accumulate;
    const bool ends = step - done * g.accumulate == g.accumulate - 1;
    const int32_t before = *g.skipped, skipped = before + (ends && !finite);

    put(g.factor, finite ? (float)((clip < 1.0 ? clip : 1.0) / (double)scale) : 0.0f);
    put(g.update, ends && finite ? done - before : -1);
    put(g.out, (float)norm);
    put(g.used, scale);
    put(g.count, (float)skipped);
    *g.skipped = skipped;
    if (ends && g.tracker != nullptr)
        follow(g, scale, finite);
}

} // namespace

extern "C" gx_status gx_loss_scale_load(gx_error *err)
{
    return gx_load_kernel((const void *)loss_scale_kernel, 0, "loss_scale_kernel", err);
}

extern "C" gx_status gx_loss_scale_launch(const gx_loss_scale *scale, gx_ctx *ctx,
                                          gx_error *err)
{
    void *args[] = { (void *)scale };

    return gx_launch(ctx, "loss_scale_kernel", (const void *)loss_scale_kernel, dim3(1),
                     dim3(THREADS), 0, args, err);
}
