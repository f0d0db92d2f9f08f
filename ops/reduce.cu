/* Reductions: a team of threads for each output where the innermost dimension is reduced,
 * a thread for each column where it is kept. Every order is fixed by sizes alone. */
#include "reduce_kernels.h"
#include "span.cuh"

namespace
{

template <int KIND> static __device__ __forceinline__ float identity()
{
    return KIND == GX_REDUCE_MAX ? -INFINITY : 0.0f;
}

/* NaN stays a maximum. */
template <int KIND> static __device__ __forceinline__ float join(float a, float b)
{
    if (KIND == GX_REDUCE_MAX)
        return b > a || b != b ? b : a;
    return a + b;
}

template <int KIND>
static __device__ __forceinline__ float take(float total, float x, float y)
{
    if (KIND == GX_REDUCE_COUNT)
        return total + (x == y ? 1.0f : 0.0f);
    return join<KIND>(total, x);
}

static __device__ __forceinline__ int64_t offset(const gx_sizes &s, int first, int64_t i)
{
    int64_t at = 0;

    for (int k = first; k + 1 < s.n; k++) {
        const int64_t next = i / s.size[k];

        at += (i - next * s.size[k]) * s.step[k];
        i = next;
    }
    return s.n > first ? at + i * s.step[s.n - 1] : 0;
}

static __device__ __forceinline__ void leave(const gx_reduce &g, int64_t i, float total)
{
    if (g.divisor != 1.0f)
        total /= g.divisor;
    if (g.to == GX_BF16)
        gx_store(static_cast<__nv_bfloat16 *>(g.out) + i, total);
    else if (g.to == GX_F16)
        gx_store(static_cast<__half *>(g.out) + i, total);
    else
        static_cast<float *>(g.out)[i] = total;
}

/* The whole block shares one output: `shared` holds 32. */
template <int KIND>
static __device__ __forceinline__ float join_team(float total, int team, float *shared)
{
    const int within = team < 32 ? team : 32;

    for (int step = within / 2; step > 0; step /= 2)
        total = join<KIND>(total, __shfl_xor_sync(0xffffffffu, total, step));
    if (team <= 32)
        return total;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = total;
    __syncthreads();
    total =
        (int)threadIdx.x % 32 < team / 32 ? shared[threadIdx.x % 32] : identity<KIND>();
    for (int step = 16; step > 0; step /= 2)
        total = join<KIND>(total, __shfl_xor_sync(0xffffffffu, total, step));
    return total;
}

template <int KIND, typename T, int N>
__global__ void __launch_bounds__(GX_REDUCE_THREADS)
    reduce_rows_kernel(const __grid_constant__ gx_reduce g)
{
    gx_begin_kernel();
    __shared__ float shared[32];
    const T *x = static_cast<const T *>(g.x);
    const int teams = blockDim.x / g.team, lane = threadIdx.x % g.team;
    const int64_t items = g.n_out * g.splits;

    /* All threads of a block turn as often: their shuffles and barriers meet. */
    for (int64_t first = (int64_t)blockIdx.x * teams; first < items;
         first += (int64_t)gridDim.x * teams) {
        const int64_t item = first + threadIdx.x / g.team;
        const bool active = item < items;
        const int64_t o = g.splits == 1 ? item : item / g.splits;
        const int64_t from = g.splits == 1 ? 0 : item % g.splits * g.chunk;
        const int64_t rest = g.n_reduced - from;
        const int64_t to = !active ? from : from + (rest < g.chunk ? rest : g.chunk);
        const T *row = x + (active ? offset(g.kept, 0, o) : 0);
        const float y = KIND == GX_REDUCE_COUNT && active
                            ? gx_to_float(static_cast<const T *>(g.y)[o])
                            : 0.0f;
        float total = identity<KIND>();

#pragma unroll 4
        for (int64_t i = from + lane * N; i < to; i += g.team * N) {
            if (i + N <= to) {
                float v[N];

                gx_load_vector(v, row + offset(g.reduced, 0, i));
#pragma unroll
                for (int e = 0; e < N; e++)
                    total = take<KIND>(total, v[e], y);
                continue;
            }
            for (int64_t e = i; e < to; e++)
                total = take<KIND>(total, gx_to_float(row[offset(g.reduced, 0, e)]), y);
        }
        total = join_team<KIND>(total, g.team, shared);
        if (active && lane == 0)
            leave(g, g.splits == 1 ? o : item % g.splits * g.n_out + o, total);
    }
}

/* Threads along y share what is reduced; their totals are joined in the order of y.
 * Shared memory: [blockDim.y][blockDim.x * N]. */
template <int KIND, typename T, int N>
__global__ void __launch_bounds__(GX_REDUCE_THREADS)
    reduce_columns_kernel(const __grid_constant__ gx_reduce g)
{
    gx_begin_kernel();
    extern __shared__ float totals[];
    const T *x = static_cast<const T *>(g.x);
    const int width = blockDim.x * N;
    const int64_t columns = g.kept.size[0];
    const int64_t tiles = (columns + width - 1) / width;
    const int64_t items = g.n_out / columns * tiles * g.splits;

    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t split = item / tiles % g.splits, outer = item / tiles / g.splits;
        const int64_t start = item % tiles * width, c = start + threadIdx.x * N;
        const int64_t from = split * g.chunk, rest = g.n_reduced - from;
        const int64_t to = c < columns ? from + (rest < g.chunk ? rest : g.chunk) : from;
        const T *column = x + offset(g.kept, 1, outer) + c;
        float total[N], y[N] = {};

        if (KIND == GX_REDUCE_COUNT && c < columns)
            gx_load_vector(y, static_cast<const T *>(g.y) + outer * columns + c);
#pragma unroll
        for (int e = 0; e < N; e++)
            total[e] = identity<KIND>();
#pragma unroll 4
        for (int64_t i = from + threadIdx.y; i < to; i += blockDim.y) {
            float v[N];

            gx_load_vector(v, column + offset(g.reduced, 0, i));
#pragma unroll
            for (int e = 0; e < N; e++)
                total[e] = take<KIND>(total[e], v[e], y[e]);
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < N; e++)
            totals[threadIdx.y * width + threadIdx.x * N + e] = total[e];
        __syncthreads();
        for (int i = threadIdx.y * blockDim.x + threadIdx.x;
             i < width && start + i < columns; i += blockDim.x * blockDim.y) {
            float all = identity<KIND>();

            for (int t = 0; t < (int)blockDim.y; t++)
                all = join<KIND>(all, totals[t * width + i]);
            leave(g, split * g.n_out + outer * columns + start + i, all);
        }
    }
}

template <typename T, int N>
__global__ void __launch_bounds__(GX_SPAN_THREADS)
    max_bwd_kernel(const __grid_constant__ gx_max_bwd g)
{
    gx_begin_kernel();
    const T *x = static_cast<const T *>(g.x), *y = static_cast<const T *>(g.y);
    const T *dy = static_cast<const T *>(g.dy);
    T *dx = static_cast<T *>(g.dx);

    gx_span_walk<N>(g.span, [&](int64_t i, const int64_t(&at)[GX_GRID_OPERANDS],
                                int64_t c, auto span_width) {
        constexpr int W = decltype(span_width)::value;
        float v[W], most[W], share[W], count[W];

        gx_load_vector(v, x + i);
        gx_span_load(most, y + at[1], g.span.along[1], c);
        gx_span_load(count, g.count + at[1], g.span.along[1], c);
#pragma unroll
        for (int e = 0; e < W; e++)
            share[e] = 1.0f;
        if (dy != nullptr)
            gx_span_load(share, dy + at[1], g.span.along[1], c);
            /* Where y is NaN nothing equals it, and 0 / 0 is NaN. */
#pragma unroll
        for (int e = 0; e < W; e++)
            v[e] = (v[e] == most[e] ? share[e] : 0.0f * share[e]) / count[e];
        gx_store_vector(dx + i, v);
    });
}

/* --- choosing the instantiation --- */

template <int KIND, typename T, int N> const void *reduce_of(const gx_reduce *g)
{
    return g->by_columns ? (const void *)reduce_columns_kernel<KIND, T, N>
                         : (const void *)reduce_rows_kernel<KIND, T, N>;
}

template <int KIND> const void *reduce_instance_of(const gx_reduce *g)
{
    return gx_with_type(g->from, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->wide ? reduce_of<KIND, T, gx_widest<T>>(g) : reduce_of<KIND, T, 1>(g);
    });
}

static const void *reduce_instance(const gx_reduce *g)
{
    switch (g->kind) {
    case GX_REDUCE_MAX:
        return reduce_instance_of<GX_REDUCE_MAX>(g);
    case GX_REDUCE_COUNT:
        return reduce_instance_of<GX_REDUCE_COUNT>(g);
    default:
        return reduce_instance_of<GX_REDUCE_SUM>(g);
    }
}

static int vector_of(const gx_reduce *g)
{
    return g->wide ? gx_widest_of(g->from) : 1;
}

static size_t shared_bytes(const gx_reduce *g)
{
    return g->by_columns ? (size_t)g->block_x * g->block_y * vector_of(g) * sizeof(float)
                         : 0;
}

static const void *max_bwd_instance(const gx_max_bwd *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->span.wide ? (const void *)max_bwd_kernel<T, 4>
                            : (const void *)max_bwd_kernel<T, 1>;
    });
}

} // namespace

extern "C" gx_status gx_reduce_load(const gx_reduce *reduce, gx_error *err)
{
    return gx_load_kernel(reduce_instance(reduce), shared_bytes(reduce), "reduce_kernel",
                          err);
}

extern "C" gx_status gx_reduce_launch(const gx_reduce *reduce, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)reduce };
    int64_t blocks;

    if (reduce->by_columns) {
        const int64_t columns = reduce->kept.size[0];

        blocks = reduce->n_out / columns *
                 gx_divide_up(columns, (int64_t)reduce->block_x * vector_of(reduce)) *
                 reduce->splits;
    } else {
        blocks =
            gx_divide_up(reduce->n_out * reduce->splits, reduce->block_x / reduce->team);
    }
    return gx_launch(ctx, "reduce_kernel", reduce_instance(reduce),
                     dim3(gx_grid_for(blocks, 1, INT32_MAX)),
                     dim3(reduce->block_x, reduce->block_y), shared_bytes(reduce), args,
                     err);
}

extern "C" gx_status gx_max_bwd_load(const gx_max_bwd *backward, gx_error *err)
{
    return gx_load_kernel(max_bwd_instance(backward), 0, "max_bwd_kernel", err);
}

extern "C" gx_status gx_max_bwd_launch(const gx_max_bwd *backward, gx_ctx *ctx,
                                       gx_error *err)
{
    void *args[] = { (void *)backward };
    dim3 grid, block;

    gx_span_shape(&backward->span, backward->span.wide ? 4 : 1, ctx->n_sm, &grid, &block);
    return gx_launch(ctx, "max_bwd_kernel", max_bwd_instance(backward), grid, block, 0,
                     args, err);
}
