/* Losses of each element, by every thread; sums in a fixed order. */
#include "mean.cuh"
#include "pointwise_loss.cuh"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

/* The derivative, and the loss where it is wanted. */
template <typename T, typename U, int N>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    pointwise_loss_kernel(const __grid_constant__ gx_pointwise_loss g)
{
    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    const U *target = static_cast<const U *>(g.target);
    T *dx = static_cast<T *>(g.dx);
    const float dy = g.dy != nullptr ? *g.dy : 1.0f;
    const float scale = __fmul_rn((float)g.share, dy);
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
        gx_store_vector(dx + i, a);
    }
    for (int64_t i = in_vectors + first; i < g.n; i += threads) {
        float slope;

        total += gx_point(g.kind, gx_to_float(x[i]), gx_to_float(target[i]), &slope);
        gx_store(dx + i, slope * scale);
    }
    if (g.out != nullptr)
        gx_leave_mean(total, g.divisor, g.partial, g.ticket, g.out);
}

/* The loss alone: nothing is stored on the way, so a thread has AT_ONCE vectors of either
 * operand in flight. Those behind the last are the last once more, and count for nothing.
 */
template <typename T, typename U, int N>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    pointwise_value_kernel(const __grid_constant__ gx_pointwise_loss g)
{
    constexpr int AT_ONCE = 4;

    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    const U *target = static_cast<const U *>(g.target);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t n_vectors = g.n / N;
    double total = 0.0;

    for (int64_t v = first; v < n_vectors; v += threads * AT_ONCE) {
        float a[AT_ONCE][N], b[AT_ONCE][N];

#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int64_t at = v + j * threads;
            const int64_t from = (at < n_vectors ? at : n_vectors - 1) * N;

            gx_load_vector(a[j], x + from);
            gx_load_vector(b[j], target + from);
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            float sum = 0.0f, slope;

#pragma unroll
            for (int e = 0; e < N; e++)
                sum += gx_point(g.kind, a[j][e], b[j][e], &slope);
            total += v + j * threads < n_vectors ? sum : 0.0f;
        }
    }
    for (int64_t i = n_vectors * N + first; i < g.n; i += threads) {
        float slope;

        total += gx_point(g.kind, gx_to_float(x[i]), gx_to_float(target[i]), &slope);
    }
    gx_leave_mean(total, g.divisor, g.partial, g.ticket, g.out);
}

/* COUNT vectors of a thread, `step` elements apart; returns the sum of their losses. */
template <int COUNT, gx_pointwise_kind KIND, int N, typename T, typename U>
__device__ __forceinline__ float go_over(const T *x, const U *target, T *dx, int64_t at,
                                         int64_t step, float scale)
{
    gx_elements<T, N> of_x[COUNT];
    gx_elements<U, N> of_target[COUNT];
    float sum = 0.0f;

#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        of_x[j].load(x + at + j * step);
        of_target[j].load(target + at + j * step);
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        float a[N], b[N];

        of_x[j].unpack(a);
        of_target[j].unpack(b);
#pragma unroll
        for (int e = 0; e < N; e++) {
            float slope;

            sum += gx_point(KIND, a[e], b[e], &slope);
            a[e] = slope * scale;
        }
        if (dx != nullptr)
            gx_store_widest(dx + at + j * step, a);
    }
    return sum;
}

/* Either or both, for many elements: the widest loads and stores, several of them on the
 * way. A group of vectors is added up in float, and its sum once in double. */
template <gx_pointwise_kind KIND, typename T, typename U>
__global__ void __launch_bounds__(GX_POINTWISE_THREADS, GX_POINTWISE_PER_SM)
    pointwise_large_kernel(const __grid_constant__ gx_pointwise_loss g)
{
    constexpr int N = gx_widest<T>;
    constexpr int BYTES = 128; /* on the way: there are registers for so many */
    constexpr int AT_ONCE = BYTES / (N * (int)(sizeof(T) + sizeof(U)));

    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    const U *target = static_cast<const U *>(g.target);
    T *dx = static_cast<T *>(g.dx);
    const float dy = g.dy != nullptr ? *g.dy : 1.0f;
    const float scale = __fmul_rn((float)g.share, dy);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x, step = threads * N;
    const int64_t in_vectors = g.n / N * N;
    int64_t i = first * N;
    double total = 0.0;

    for (; i + (AT_ONCE - 1) * step < in_vectors; i += AT_ONCE * step)
        total += go_over<AT_ONCE, KIND, N>(x, target, dx, i, step, scale);
    for (; i < in_vectors; i += step)
        total += go_over<1, KIND, N>(x, target, dx, i, step, scale);
    for (i = in_vectors + first; i < g.n; i += threads) {
        float slope;

        total += gx_point(KIND, gx_to_float(x[i]), gx_to_float(target[i]), &slope);
        if (dx != nullptr)
            gx_store(dx + i, slope * scale);
    }
    if (g.out != nullptr)
        gx_leave_mean(total, g.divisor, g.partial, g.ticket, g.out);
}

template <typename T, typename U, int N>
const void *instance_by(const gx_pointwise_loss *loss)
{
    return loss->dx != NULL ? gx_kernel(pointwise_loss_kernel<T, U, N>)
                            : gx_kernel(pointwise_value_kernel<T, U, N>);
}

template <typename T, typename U> const void *large_by(const gx_pointwise_loss *loss)
{
    switch (loss->kind) {
    case GX_POINT_L1:
        return gx_kernel(pointwise_large_kernel<GX_POINT_L1, T, U>);
    case GX_POINT_BCE:
        return gx_kernel(pointwise_large_kernel<GX_POINT_BCE, T, U>);
    default:
        return gx_kernel(pointwise_large_kernel<GX_POINT_MSE, T, U>);
    }
}

template <typename T, typename U> const void *instance_of(const gx_pointwise_loss *loss)
{
    if (loss->large)
        return large_by<T, U>(loss);
    return loss->wide ? instance_by<T, U, 4>(loss) : instance_by<T, U, 1>(loss);
}

static const void *instance(const gx_pointwise_loss *loss)
{
    return gx_with_type(loss->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return loss->target_dtype == GX_F32 ? instance_of<T, float>(loss)
                                            : instance_of<T, T>(loss);
    });
}

static const char *name_of(const gx_pointwise_loss *loss)
{
    return loss->large        ? "pointwise_large_kernel"
           : loss->dx != NULL ? "pointwise_loss_kernel"
                              : "pointwise_value_kernel";
}

} // namespace

extern "C" gx_status gx_pointwise_loss_load(const gx_pointwise_loss *loss, gx_error *err)
{
    return gx_load_kernel(instance(loss), 0, name_of(loss), err);
}

extern "C" gx_status gx_pointwise_loss_launch(const gx_pointwise_loss *loss, gx_ctx *ctx,
                                              gx_error *err)
{
    void *args[] = { (void *)loss };
    const unsigned threads = loss->blocks == 1 ? ONE_BLOCK_THREADS : GX_POINTWISE_THREADS;

    return gx_launch(ctx, name_of(loss), instance(loss), dim3((unsigned)loss->blocks),
                     dim3(threads), 0, args, err);
}
