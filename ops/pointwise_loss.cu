/* Losses of each element, by every thread; sums in a fixed order. */
#include "mean.cuh"
#include "pointwise_loss.cuh"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

template <typename T, typename U, int N>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    pointwise_loss_kernel(const __grid_constant__ gx_pointwise_loss g)
{
    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    const U *target = static_cast<const U *>(g.target);
    T *dx = static_cast<T *>(g.dx);
    const float dy = g.dy != nullptr ? *g.dy : 1.0f;
    const float scale = __fmul_rn((float)(1.0 / (double)g.divisor), dy);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t in_vectors = g.n / N * N;
    double total = 0.0;

#pragma unroll 4
    for (int64_t i = first * N; i < in_vectors; i += threads * N) {
        float a[N], b[N], sum = 0.0f;

        gx_load_vector(a, x + i);
        gx_load_vector(b, target + i);
#pragma unroll
        for (int e = 0; e < N; e++) {
            float slope;

            sum += gx_point(g.kind, a[e], b[e], &slope);
            a[e] = slope * scale;
        }
        total += sum;
        if (dx != nullptr)
            gx_store_vector(dx + i, a);
    }
    for (int64_t i = in_vectors + first; i < g.n; i += threads) {
        float slope;

        total += gx_point(g.kind, gx_to_float(x[i]), gx_to_float(target[i]), &slope);
        if (dx != nullptr)
            gx_store(dx + i, slope * scale);
    }
    if (g.out != nullptr)
        gx_leave_mean(total, g.divisor, g.partial, g.out);
}

template <typename T, typename U> const void *instance_of(const gx_pointwise_loss *loss)
{
    return loss->wide ? (const void *)pointwise_loss_kernel<T, U, 4>
                      : (const void *)pointwise_loss_kernel<T, U, 1>;
}

static const void *instance(const gx_pointwise_loss *loss)
{
    return gx_with_type(loss->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return loss->target_dtype == GX_F32 ? instance_of<T, float>(loss)
                                            : instance_of<T, T>(loss);
    });
}

} // namespace

extern "C" gx_status gx_pointwise_loss_load(const gx_pointwise_loss *loss, gx_error *err)
{
    GX_TRY(gx_mean_load(loss->out != NULL ? loss->blocks : 1, err));
    return gx_load_kernel(instance(loss), 0, "pointwise_loss_kernel", err);
}

extern "C" gx_status gx_pointwise_loss_launch(const gx_pointwise_loss *loss, gx_ctx *ctx,
                                              gx_error *err)
{
    void *args[] = { (void *)loss };
    const unsigned threads = loss->blocks == 1 ? ONE_BLOCK_THREADS : GX_POINTWISE_THREADS;

    GX_TRY(gx_launch(ctx, "pointwise_loss_kernel", instance(loss),
                     dim3((unsigned)loss->blocks), dim3(threads), 0, args, err));
    return gx_mean_launch(loss->partial, loss->out != NULL ? loss->blocks : 1,
                          loss->divisor, loss->out, ctx, err);
}
