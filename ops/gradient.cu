/* Gradients summed over steps, and the norm of all of them: partial sums of chunks that
 * do not hang on the grid, then one block that adds them up, always in the same order. */
#include "chunk.cuh"
#include "gradient_kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int END_THREADS = 1024;
constexpr int BLOCKS_PER_SM = 8;
constexpr double CLIP_EPSILON = 1e-6; /* as clip_grad_norm_ has it */

static_assert(sizeof(gx_accumulate_table) <= 4096 && sizeof(gx_grad_norm_table) <= 4096,
              "a kernel takes 4 KB of arguments");

template <typename T, int N>
__device__ __forceinline__ void add_to(const gx_accumulate_entry &e, int64_t i, float n,
                                       bool anew)
{
    float *sum = e.sum + i;
    float g[N], s[N];

    gx_load_vector(g, static_cast<const T *>(e.grad) + i);
    if (!anew)
        gx_load_vector(s, sum);
#pragma unroll
    for (int x = 0; x < N; x++)
        s[x] = anew ? g[x] / n : s[x] + g[x] / n;
    gx_store_vector(sum, s);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS, 4)
    accumulate_kernel(const __grid_constant__ gx_accumulate_table table)
{
    gx_begin_kernel();
    const bool anew = *table.step % table.n == 0;
    const float n = (float)table.n;

    for (int64_t chunk = blockIdx.x; chunk < table.n_chunks; chunk += gridDim.x) {
        const gx_accumulate_entry &e =
            table.entry[gx_find_entry(table.entry, table.n_entries, chunk)];

        gx_over_chunk<N, THREADS, GX_ACCUMULATE_CHUNK>(
            chunk - e.first_chunk, e.n, [&](int64_t i) { add_to<T, N>(e, i, n, anew); },
            [&](int64_t i) { add_to<T, 1>(e, i, n, anew); });
    }
}

template <typename T, int N> __device__ __forceinline__ double squares(const T *from)
{
    double sum = 0.0;
    float g[N];

    gx_load_vector(g, from);
#pragma unroll
    for (int x = 0; x < N; x++)
        sum += (double)g[x] * (double)g[x];
    return sum;
}

/* In double: squares of f32 leave the range of f32, and a norm that is not finite would
 * clip finite gradients to nothing. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    grad_norm_kernel(const __grid_constant__ gx_grad_norm_table table)
{
    __shared__ double shared[32];

    gx_begin_kernel();
    for (int64_t chunk = blockIdx.x; chunk < table.n_chunks; chunk += gridDim.x) {
        const gx_grad_norm_entry &e =
            table.entry[gx_find_entry(table.entry, table.n_entries, chunk)];
        const T *grad = static_cast<const T *>(e.grad);
        double sum = 0.0;

        gx_over_chunk<N, THREADS, GX_NORM_CHUNK>(
            chunk - e.first_chunk, e.n,
            [&](int64_t i) { sum += squares<T, N>(grad + i); },
            [&](int64_t i) { sum += squares<T, 1>(grad + i); });
        sum = gx_block_sum(sum, shared);
        if (threadIdx.x == 0)
            table.partial[chunk] = sum;
    }
}

__global__ void __launch_bounds__(END_THREADS)
    grad_norm_end_kernel(const gx_grad_norm_end g)
{
    __shared__ double shared[32];
    double total = 0.0;

    gx_begin_kernel();
    for (int64_t i = threadIdx.x; i < g.n_partial; i += END_THREADS)
        total += g.partial[i];
    total = gx_block_sum(total, shared);
    if (threadIdx.x != 0)
        return;
    const double before = g.before != nullptr ? (double)*g.before : 0.0;
    const double norm = sqrt(total + before * before);

    if (g.out != nullptr)
        *g.out = (float)norm;
    if (g.factor != nullptr) {
        const double factor = g.max_norm / (norm + CLIP_EPSILON);

        *g.factor = factor > 1.0 ? 1.0f : (float)factor; /* NaN stays */
    }
}

const void *accumulate_instance(const gx_accumulate_table *table)
{
    return gx_with_type(table->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return table->wide ? (const void *)accumulate_kernel<T, 4>
                           : (const void *)accumulate_kernel<T, 1>;
    });
}

/* How wide a load is does not change which thread adds what: both instances would give
 * other bits, so the choice hangs on the addresses alone, which a plan fixes. */
const void *grad_norm_instance(const gx_grad_norm_table *table)
{
    return gx_with_type(table->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return table->wide ? (const void *)grad_norm_kernel<T, 4>
                           : (const void *)grad_norm_kernel<T, 1>;
    });
}

} // namespace

extern "C" gx_status gx_accumulate_load(const gx_accumulate_table *table, gx_error *err)
{
    return gx_load_kernel(accumulate_instance(table), 0, "accumulate_kernel", err);
}

extern "C" gx_status gx_accumulate_launch(const gx_accumulate_table *table, gx_ctx *ctx,
                                          gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, "accumulate_kernel", accumulate_instance(table),
        dim3(gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM)),
        dim3(THREADS), 0, args, err);
}

extern "C" gx_status gx_grad_norm_load(const gx_grad_norm_table *table, gx_error *err)
{
    return gx_load_kernel(grad_norm_instance(table), 0, "grad_norm_kernel", err);
}

extern "C" gx_status gx_grad_norm_launch(const gx_grad_norm_table *table, gx_ctx *ctx,
                                         gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, "grad_norm_kernel", grad_norm_instance(table),
        dim3(gx_grid_for(table->n_chunks, 1, (int64_t)ctx->n_sm * BLOCKS_PER_SM)),
        dim3(THREADS), 0, args, err);
}

extern "C" gx_status gx_grad_norm_end_load(gx_error *err)
{
    return gx_load_kernel((const void *)grad_norm_end_kernel, 0, "grad_norm_end_kernel",
                          err);
}

extern "C" gx_status gx_grad_norm_end_launch(const gx_grad_norm_end *end, gx_ctx *ctx,
                                             gx_error *err)
{
    void *args[] = { (void *)end };

    return gx_launch(ctx, "grad_norm_end_kernel", (const void *)grad_norm_end_kernel,
                     dim3(1), dim3(END_THREADS), 0, args, err);
}
