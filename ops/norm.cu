/* Norms over rows: a team of warps reads a row once and keeps it in registers.
 *
 * The mean is taken in two steps, since in f32 it is only near the true one and a row far
 * from zero would show that: x - pivot is exact where x is near the pivot, and the mean
 * of that is what the pivot is off by. The variance is the mean square about both. */
#include "kernel.cuh"
#include "norm_kernels.h"

namespace
{

/* --- a row on its team --- */

template <typename T, int N, int CHUNKS> struct held {
    const T *x;
    int64_t columns;
    int lane, width; /* this thread in its team, and threads of that */
    float v[CHUNKS > 0 ? CHUNKS : 1][N];

    __device__ __forceinline__ void load(const T *row)
    {
        x = row;
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int64_t c = ((int64_t)k * width + lane) * N;

            if (c < columns && x != nullptr)
                gx_load_vector(v[k], x + c);
        }
    }

    /* f(elements, their first column, which chunk) for each vector of this thread. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
        if constexpr (CHUNKS > 0) {
#pragma unroll
            for (int k = 0; k < CHUNKS; k++) {
                const int64_t c = ((int64_t)k * width + lane) * N;

                if (c < columns && x != nullptr)
                    f(v[k], c, k);
            }
        } else if (x != nullptr) {
            for (int64_t c = (int64_t)lane * N; c < columns; c += (int64_t)width * N) {
                gx_load_vector(v[0], x + c);
                f(v[0], c, 0);
            }
        }
    }
};

/* Sums over the team, in a fixed order, for all of its threads. `shared` holds two
 * numbers for each warp of the block; every thread of the block calls it. */
struct team {
    int warps; /* a power of two */
    float *shared;

    __device__ __forceinline__ float2 sum(float a, float b) const
    {
        a = gx_warp_sum(a);
        b = gx_warp_sum(b);
        if (warps == 1)
            return { a, b };
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int first = warp / warps * warps;

        __syncthreads();
        if (lane == 0) {
            shared[2 * warp] = a;
            shared[2 * warp + 1] = b;
        }
        __syncthreads();
        a = lane < warps ? shared[2 * (first + lane)] : 0.0f;
        b = lane < warps ? shared[2 * (first + lane) + 1] : 0.0f;
        return { gx_warp_sum(a), gx_warp_sum(b) };
    }
};

/* x - pivot - shift is what is scaled; both are 0 where the norm is not centred. */
struct statistics {
    float pivot, shift, scale;

    __device__ __forceinline__ float of(float x) const
    {
        return (x - pivot - shift) * scale;
    }
};

template <typename ROW>
__device__ __forceinline__ statistics measure(ROW &row, const team &all, bool centred,
                                              float eps)
{
    constexpr int N = sizeof row.v[0] / sizeof(float);
    const float n = (float)row.columns;
    statistics s = { 0.0f, 0.0f, 0.0f };
    float part = 0.0f;

    if (centred) {
        row.each([&](float(&v)[N], int64_t, int) {
#pragma unroll
            for (int i = 0; i < N; i++)
                part += v[i];
        });
        s.pivot = all.sum(part, 0.0f).x / n;
        part = 0.0f;
        row.each([&](float(&v)[N], int64_t, int) {
#pragma unroll
            for (int i = 0; i < N; i++)
                part += v[i] - s.pivot;
        });
        s.shift = all.sum(part, 0.0f).x / n;
        part = 0.0f;
    }
    row.each([&](float(&v)[N], int64_t, int) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float d = v[i] - s.pivot - s.shift;

            part += d * d;
        }
    });
    s.scale = 1.0f / sqrtf(all.sum(part, 0.0f).x / n + eps);
    return s;
}

/* --- forward --- */

template <typename T, int N, int CHUNKS>
__global__ void __launch_bounds__(GX_NORM_MOST_THREADS)
    norm_kernel(const __grid_constant__ gx_norm g)
{
    gx_begin_kernel();
    __shared__ float shared[2 * GX_NORM_MOST_THREADS / 32];
    const T *weight = static_cast<const T *>(g.weight);
    const T *bias = static_cast<const T *>(g.bias);
    const int width = g.layout.warps * 32, per_block = blockDim.x / width;
    const team all = { g.layout.warps, shared };
    held<T, N, CHUNKS> row;

    row.columns = g.columns;
    row.lane = threadIdx.x % width;
    row.width = width;
    /* Every team goes round as often as the first, since all of them meet in the sums. */
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < g.rows;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t r = first + threadIdx.x / width;

        row.load(r < g.rows ? static_cast<const T *>(g.x) + r * g.columns : nullptr);
        const statistics s = measure(row, all, g.centred, g.eps);

        row.each([&](float(&v)[N], int64_t c, int) {
            float by[N], add[N] = {};

#pragma unroll
            for (int i = 0; i < N; i++)
                by[i] = 1.0f;
            if (weight != nullptr)
                gx_load_vector(by, weight + c);
            if (bias != nullptr)
                gx_load_vector(add, bias + c);
#pragma unroll
            for (int i = 0; i < N; i++)
                by[i] = s.of(v[i]) * by[i] + add[i];
            gx_store_vector(static_cast<T *>(g.out) + r * g.columns + c, by);
        });
    }
}

/* --- backward --- */

/* Where the column sums of this block go: dweight and dbias themselves where there is no
 * other block. */
template <typename T>
__device__ __forceinline__ void leave(const gx_norm_bwd &g, int which, int64_t c,
                                      float sum)
{
    if (g.apart)
        g.partial[((int64_t)blockIdx.x * 2 + which) * g.columns + c] = sum;
    else if (which == 0 && g.dweight != nullptr)
        gx_store(static_cast<T *>(g.dweight) + c, sum);
    else if (which == 1 && g.dbias != nullptr)
        gx_store(static_cast<T *>(g.dbias) + c, sum);
}

/* Adds what the teams of a block have, in the order of the teams; `sums` is [columns]. */
template <typename T, int N, int CHUNKS>
__device__ __forceinline__ void add_teams(const gx_norm_bwd &g, int which,
                                          const float (&mine)[CHUNKS][N], float *sums)
{
    const int width = g.layout.warps * 32, teams = blockDim.x / width;
    const int own = threadIdx.x / width, lane = threadIdx.x % width;

    for (int t = 0; t < teams; t++) {
        __syncthreads();
        if (t != own)
            continue;
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            const int64_t c = ((int64_t)k * width + lane) * N;

#pragma unroll
            for (int i = 0; i < N; i++) {
                if (c >= g.columns)
                    continue;
                const float sum = t == 0 ? mine[k][i] : sums[c + i] + mine[k][i];

                if (t + 1 < teams)
                    sums[c + i] = sum;
                else
                    leave<T>(g, which, c + i, sum);
            }
        }
    }
}

/* Dynamic shared memory: [columns], where a block has several teams. A row that is not
 * held has the whole block, and its column sums lie in `partial` all along. */
template <typename T, int N, int CHUNKS>
__global__ void __launch_bounds__(GX_NORM_MOST_THREADS)
    norm_bwd_kernel(const __grid_constant__ gx_norm_bwd g)
{
    gx_begin_kernel();
    extern __shared__ float sums[];
    __shared__ float shared[2 * GX_NORM_MOST_THREADS / 32];
    constexpr int KEPT = CHUNKS > 0 ? CHUNKS : 1;
    const T *weight = static_cast<const T *>(g.weight);
    const bool has_sums = g.dweight != nullptr || g.dbias != nullptr;
    const int width = g.layout.warps * 32, per_block = blockDim.x / width;
    const team all = { g.layout.warps, shared };
    const float n = (float)g.columns;
    float dw[KEPT][N] = {}, db[KEPT][N] = {};
    held<T, N, CHUNKS> row, back;
    float *part = CHUNKS > 0 || !has_sums
                      ? nullptr
                      : g.partial + (int64_t)blockIdx.x * 2 * g.columns;

    row.columns = back.columns = g.columns;
    row.lane = back.lane = threadIdx.x % width;
    row.width = back.width = width;
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < g.rows;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t r = first + threadIdx.x / width;
        const bool is_row = r < g.rows;

        row.load(is_row ? static_cast<const T *>(g.x) + r * g.columns : nullptr);
        back.load(is_row ? static_cast<const T *>(g.dy) + r * g.columns : nullptr);
        const statistics s = measure(row, all, g.centred, g.eps);
        float sum = 0.0f, product = 0.0f;

        /* x at the place of dy: of what is held, or read again. */
        const auto at = [&](int64_t c, int k, float(&x)[N]) {
            if constexpr (CHUNKS > 0) {
#pragma unroll
                for (int i = 0; i < N; i++)
                    x[i] = row.v[k][i];
            } else {
                gx_load_vector(x, row.x + c);
            }
        };

        back.each([&](float(&v)[N], int64_t c, int k) {
            float x[N], by[N];

            at(c, k, x);
            if (weight != nullptr)
                gx_load_vector(by, weight + c);
#pragma unroll
            for (int i = 0; i < N; i++) {
                const float z = s.of(x[i]);
                const float d = weight != nullptr ? v[i] * by[i] : v[i];

                sum += d;
                product += d * z;
                if constexpr (CHUNKS > 0) {
                    dw[k][i] += v[i] * z;
                    db[k][i] += v[i];
                } else if (part != nullptr) {
                    float *to = part + c + i;

                    to[0] = (r == blockIdx.x ? 0.0f : to[0]) + v[i] * z;
                    to[g.columns] = (r == blockIdx.x ? 0.0f : to[g.columns]) + v[i];
                }
            }
        });
        if (g.dx == nullptr)
            continue;
        const float2 both = all.sum(sum, product);
        const float mean = g.centred ? both.x / n : 0.0f, along = both.y / n;

        back.each([&](float(&v)[N], int64_t c, int k) {
            float x[N], by[N];

            at(c, k, x);
            if (weight != nullptr)
                gx_load_vector(by, weight + c);
#pragma unroll
            for (int i = 0; i < N; i++) {
                const float d = weight != nullptr ? v[i] * by[i] : v[i];

                x[i] = s.scale * (d - mean - s.of(x[i]) * along);
            }
            gx_store_vector(static_cast<T *>(g.dx) + r * g.columns + c, x);
        });
    }
    if constexpr (CHUNKS > 0) {
        if (has_sums) {
            add_teams<T>(g, 0, dw, sums);
            add_teams<T>(g, 1, db, sums);
        }
    }
}

constexpr int SUM_COLUMNS = 32, SUM_PARTS = 32;

/* Adds the column sums of the blocks: threads along y have every 32nd block, and what
 * they have is added in the order of y. */
template <typename T>
__global__ void __launch_bounds__(SUM_COLUMNS *SUM_PARTS)
    norm_sum_kernel(const __grid_constant__ gx_norm_bwd g)
{
    gx_begin_kernel();
    __shared__ float parts[SUM_PARTS][SUM_COLUMNS + 1];
    T *to = static_cast<T *>(blockIdx.y == 0 ? g.dweight : g.dbias);

    if (to == nullptr)
        return;
    for (int64_t first = (int64_t)blockIdx.x * SUM_COLUMNS; first < g.columns;
         first += (int64_t)gridDim.x * SUM_COLUMNS) {
        const int64_t c = first + threadIdx.x;
        float sum = 0.0f;

        for (int b = threadIdx.y; b < g.blocks && c < g.columns; b += SUM_PARTS)
            sum += g.partial[((int64_t)b * 2 + blockIdx.y) * g.columns + c];
        __syncthreads();
        parts[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y != 0 || c >= g.columns)
            continue;
        for (int p = 1; p < SUM_PARTS; p++)
            sum += parts[p][threadIdx.x];
        gx_store(to + c, sum);
    }
}

/* --- launching --- */

#define INSTANCE(kernel, T, layout)                                                   \
    ((layout).vector == 4 ? ((layout).chunks == 1   ? (const void *)kernel<T, 4, 1>   \
                             : (layout).chunks == 4 ? (const void *)kernel<T, 4, 4>   \
                                                    : (const void *)kernel<T, 4, 0>)  \
                          : ((layout).chunks == 4    ? (const void *)kernel<T, 1, 4>  \
                             : (layout).chunks == 16 ? (const void *)kernel<T, 1, 16> \
                                                     : (const void *)kernel<T, 1, 0>))

static const void *instance(const gx_norm *norm)
{
    return gx_with_type(norm->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return INSTANCE(norm_kernel, T, norm->layout);
    });
}

static const void *bwd_instance(const gx_norm_bwd *norm)
{
    return gx_with_type(norm->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return INSTANCE(norm_bwd_kernel, T, norm->layout);
    });
}

static const void *sum_instance(const gx_norm_bwd *norm)
{
    return gx_with_type(norm->dtype, [](auto of) {
        return (const void *)norm_sum_kernel<typename decltype(of)::type>;
    });
}

} // namespace

extern "C" gx_status gx_norm_load(const gx_norm *norm, gx_error *err)
{
    return gx_load_kernel(instance(norm), 0, "norm_kernel", err);
}

extern "C" gx_status gx_norm_launch(const gx_norm *norm, gx_ctx *ctx, gx_error *err)
{
    const int per_block = norm->layout.threads / (norm->layout.warps * 32);
    void *args[] = { (void *)norm };

    return gx_launch(ctx, "norm_kernel", instance(norm),
                     dim3(gx_grid_for(norm->rows, per_block, (int64_t)ctx->n_sm * 16)),
                     dim3((unsigned)norm->layout.threads), 0, args, err);
}

extern "C" gx_status gx_norm_bwd_load(const gx_norm_bwd *norm, gx_error *err)
{
    if (norm->apart)
        GX_TRY(gx_load_kernel(sum_instance(norm), 0, "norm_sum_kernel", err));
    return gx_load_kernel(bwd_instance(norm), 0, "norm_bwd_kernel", err);
}

extern "C" gx_status gx_norm_bwd_launch(const gx_norm_bwd *norm, gx_ctx *ctx,
                                        gx_error *err)
{
    const bool several_teams = norm->layout.threads > norm->layout.warps * 32;
    const size_t shared = several_teams ? (size_t)norm->columns * sizeof(float) : 0;
    void *args[] = { (void *)norm };

    if (norm->blocks > 0)
        GX_TRY(gx_launch(ctx, "norm_bwd_kernel", bwd_instance(norm),
                         dim3((unsigned)norm->blocks),
                         dim3((unsigned)norm->layout.threads), shared, args, err));
    if (!norm->apart)
        return GX_OK;
    return gx_launch(ctx, "norm_sum_kernel", sum_instance(norm),
                     dim3(gx_grid_for(norm->columns, SUM_COLUMNS, INT32_MAX), 2),
                     dim3(SUM_COLUMNS, SUM_PARTS), 0, args, err);
}
