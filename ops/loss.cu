/* Losses: rows of a softmax by a warp or a block, squares by every thread; sums in a
 * fixed order. */
#include "loss_kernels.h"
#include "mean.cuh"

namespace
{

constexpr int ONE_BLOCK_THREADS = 1024;

struct larger {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return fmaxf(a, b);
    }
};
struct sum {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

/* Every thread of the row's warp, or block, gets the same result. `shared` holds 32. */
template <bool WIDE, typename F>
__device__ __forceinline__ float reduce(float x, F both, float none, float *shared)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    if constexpr (WIDE) {
        const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;

        __syncthreads();
        if (lane == 0)
            shared[threadIdx.x / 32] = x;
        __syncthreads();
        x = lane < n_warps ? shared[lane] : none;
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            x = both(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

/* One row: returns its loss, and writes its part of dlogits where that is wanted. The
 * label's term is kept apart from the others': 1 - p would cancel where the label is
 * nearly sure. */
template <typename T, bool WIDE>
__device__ __forceinline__ float sce_row(const gx_sce &g, int64_t row, float *shared)
{
    const T *x = static_cast<const T *>(g.logits) + row * g.classes;
    const int64_t first = WIDE ? threadIdx.x : threadIdx.x % 32;
    const int64_t step = WIDE ? blockDim.x : 32;
    const int64_t label = g.labels[row];
    float most = -INFINITY, others = 0.0f;

    for (int64_t c = first; c < g.classes; c += step)
        most = fmaxf(most, gx_to_float(x[c]));
    most = reduce<WIDE>(most, larger{}, -INFINITY, shared);
    for (int64_t c = first; c < g.classes; c += step)
        others += c == label ? 0.0f : expf(gx_to_float(x[c]) - most);
    others = reduce<WIDE>(others, sum{}, 0.0f, shared);

    /* A label that is not a class gives NaN; nothing is read outside the row. */
    const float at_label = label >= 0 && label < g.classes ? gx_to_float(x[label]) : NAN;
    const float own = expf(at_label - most);
    const float total = own + others;

    if (g.dlogits != nullptr) {
        T *dx = static_cast<T *>(g.dlogits) + row * g.classes;
        const float dy = g.dy != nullptr ? *g.dy : 1.0f;
        const float scale = dy / (total * (float)g.rows);

        for (int64_t c = first; c < g.classes; c += step)
            gx_store(dx + c, c == label ? -others * scale
                                        : expf(gx_to_float(x[c]) - most) * scale);
    }
    return own == 1.0f ? log1pf(others) : logf(total) - (at_label - most);
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    sce_kernel(const __grid_constant__ gx_sce g)
{
    gx_begin_kernel();
    __shared__ float shared[32];
    const int per_block = WIDE ? 1 : blockDim.x / 32;
    const int group = WIDE ? 0 : threadIdx.x / 32;
    const bool leads = (WIDE ? threadIdx.x : threadIdx.x % 32) == 0;
    double total = 0.0;

    for (int64_t row = (int64_t)blockIdx.x * per_block + group; row < g.rows;
         row += (int64_t)gridDim.x * per_block)
        total += sce_row<T, WIDE>(g, row, shared);
    if (g.out != nullptr)
        gx_leave_mean(leads ? total : 0.0, g.rows, g.partial, g.out);
}

template <typename T, typename U, int N>
__global__ void __launch_bounds__(ONE_BLOCK_THREADS, 1)
    mse_kernel(const __grid_constant__ gx_mse g)
{
    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x);
    const U *target = static_cast<const U *>(g.target);
    T *dx = static_cast<T *>(g.dx);
    const float dy = g.dy != nullptr ? *g.dy : 1.0f;
    const float scale = __fmul_rn((float)(2.0 / (double)g.n), dy);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t in_vectors = g.n / N * N;
    double total = 0.0;

#pragma unroll 4
    for (int64_t i = first * N; i < in_vectors; i += threads * N) {
        float a[N], b[N], squares = 0.0f;

        gx_load_vector(a, x + i);
        gx_load_vector(b, target + i);
#pragma unroll
        for (int e = 0; e < N; e++) {
            const float d = a[e] - b[e];

            squares += d * d;
            a[e] = d * scale;
        }
        total += squares;
        if (dx != nullptr)
            gx_store_vector(dx + i, a);
    }
    for (int64_t i = in_vectors + first; i < g.n; i += threads) {
        const float d = gx_to_float(x[i]) - gx_to_float(target[i]);

        total += d * d;
        if (dx != nullptr)
            gx_store(dx + i, d * scale);
    }
    if (g.out != nullptr)
        gx_leave_mean(total, g.n, g.partial, g.out);
}

static const void *sce_instance(const gx_sce *g)
{
    const bool wide = g->classes > GX_SCE_WARP_CLASSES;

    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return wide ? (const void *)sce_kernel<T, true>
                    : (const void *)sce_kernel<T, false>;
    });
}

template <typename T, typename U> const void *mse_instance_of(const gx_mse *g)
{
    return g->wide ? (const void *)mse_kernel<T, U, 4>
                   : (const void *)mse_kernel<T, U, 1>;
}

static const void *mse_instance(const gx_mse *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->target_dtype == GX_F32 ? mse_instance_of<T, float>(g)
                                         : mse_instance_of<T, T>(g);
    });
}

static unsigned threads_for(int32_t blocks)
{
    return blocks == 1 ? ONE_BLOCK_THREADS : GX_LOSS_THREADS;
}

} // namespace

extern "C" gx_status gx_sce_load(const gx_sce *sce, gx_error *err)
{
    GX_TRY(gx_mean_load(sce->out != NULL ? sce->blocks : 1, err));
    return gx_load_kernel(sce_instance(sce), 0, "sce_kernel", err);
}

extern "C" gx_status gx_sce_launch(const gx_sce *sce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)sce };

    GX_TRY(gx_launch(ctx, "sce_kernel", sce_instance(sce), dim3((unsigned)sce->blocks),
                     dim3(threads_for(sce->blocks)), 0, args, err));
    return gx_mean_launch(sce->partial, sce->out != NULL ? sce->blocks : 1, sce->rows,
                          sce->out, ctx, err);
}

extern "C" gx_status gx_mse_load(const gx_mse *mse, gx_error *err)
{
    GX_TRY(gx_mean_load(mse->out != NULL ? mse->blocks : 1, err));
    return gx_load_kernel(mse_instance(mse), 0, "mse_kernel", err);
}

extern "C" gx_status gx_mse_launch(const gx_mse *mse, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)mse };

    GX_TRY(gx_launch(ctx, "mse_kernel", mse_instance(mse), dim3((unsigned)mse->blocks),
                     dim3(threads_for(mse->blocks)), 0, args, err));
    return gx_mean_launch(mse->partial, mse->out != NULL ? mse->blocks : 1, mse->n,
                          mse->out, ctx, err);
}
