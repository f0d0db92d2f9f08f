/* Bias and activation by themselves, and their derivative with the gradient of the bias.
 *
 * Blocks are two-dimensional: threads along x keep to their columns, so that no index has
 * to be divided and a bias is read once; threads along y share the rows. */
#include "epilogue_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t MAX_GRID_Y = 65535;

template <typename T, int N>
__device__ __forceinline__ void scale_and_add(float (&v)[N], const gx_epilogue &e,
                                              int64_t at, const T *residual)
{
    float more[N] = {};

    if (residual != nullptr)
        gx_load_vector(more, residual + at);
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = e.scale * v[i] + more[i];
}

template <int N> __device__ __forceinline__ void round_to_tf32(float (&v)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = __uint_as_float(gx_tf32(v[i]));
}

/* MORE: with a factor or a residual, which the plain kernel spends no registers on. */
template <typename T, int N, int ACT, bool MORE>
__device__ __forceinline__ void run_epilogue(const gx_epilogue &e)
{
    const T *x = static_cast<const T *>(e.x), *bias = static_cast<const T *>(e.bias);
    T *out = static_cast<T *>(e.out), *pre = static_cast<T *>(e.pre);
    const int64_t row_step = (int64_t)gridDim.y * blockDim.y;

    for (int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; c < e.columns;
         c += (int64_t)gridDim.x * blockDim.x * N) {
        float shift[N] = {};

        if (bias != nullptr)
            gx_load_vector(shift, bias + c);
#pragma unroll 2
        for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < e.rows;
             r += row_step) {
            const int64_t at = r * e.columns + c;
            float v[N];

            gx_load_vector(v, x + at);
            if constexpr (MORE)
                scale_and_add(v, e, at, static_cast<const T *>(e.residual));
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] += shift[i];
            if (pre != nullptr)
                gx_store_vector(pre + at, v);
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] = gx_apply_act(ACT, v[i]);
            if constexpr (std::is_same_v<T, float>) {
                if (e.to_tf32)
                    round_to_tf32(v);
            }
            gx_store_vector(out + at, v);
        }
    }
}

template <typename T, int N, int ACT>
__global__ void __launch_bounds__(THREADS)
    epilogue_kernel(const __grid_constant__ gx_epilogue e)
{
    gx_begin_kernel();
    run_epilogue<T, N, ACT, false>(e);
}

template <typename T, int N, int ACT>
__global__ void __launch_bounds__(THREADS)
    epilogue_more_kernel(const __grid_constant__ gx_epilogue e)
{
    gx_begin_kernel();
    run_epilogue<T, N, ACT, true>(e);
}

/* With column sums a block has all rows of its columns (gridDim.y is 1), and adds the
 * sums of its threads in the order of y. Shared memory: [blockDim.y][blockDim.x * N]. */
template <typename T, int N, int ACT>
__global__ void __launch_bounds__(1024)
    epilogue_bwd_kernel(const __grid_constant__ gx_epilogue_bwd e)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(float, sums);
    const T *dy = static_cast<const T *>(e.dy), *saved = static_cast<const T *>(e.saved);
    T *dx = static_cast<T *>(e.dx), *dbias = static_cast<T *>(e.dbias);
    const int64_t row_step = (int64_t)gridDim.y * blockDim.y;
    const int width = blockDim.x * N;

    for (int64_t first = (int64_t)blockIdx.x * width; first < e.columns;
         first += (int64_t)gridDim.x * width) {
        const int64_t c = first + threadIdx.x * N;
        float total[N] = {};

#pragma unroll 4
        for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
             c < e.columns && r < e.rows; r += row_step) {
            const int64_t at = r * e.columns + c;
            float v[N], s[N] = {};

            gx_load_vector(v, dy + at);
            if (ACT != GX_ACT_NONE)
                gx_load_vector(s, saved + at);
#pragma unroll
            for (int i = 0; i < N; i++) {
                v[i] = gx_act_backward(ACT, v[i], s[i]);
                total[i] += v[i];
            }
            if (dx != nullptr)
                gx_store_vector(dx + at, v);
        }
        if (dbias == nullptr)
            continue;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++)
            sums[threadIdx.y * width + threadIdx.x * N + i] = total[i];
        __syncthreads();
        for (int i = threadIdx.y * blockDim.x + threadIdx.x;
             i < width && first + i < e.columns; i += blockDim.x * blockDim.y) {
            float all = 0.0f;

            for (int y = 0; y < (int)blockDim.y; y++)
                all += sums[y * width + i];
            gx_store(dbias + first + i, all);
        }
    }
}

/* An instance for each activation: a branch in the loop would keep the registers of the
 * dearest one for all. */
template <typename T, int N> const void *forward_instance_of(int act, bool more)
{
    switch (act) {
#define FORWARD_CASE(act, name, reads, flops)                             \
    case GX_ACT_##act:                                                    \
        return more ? gx_kernel(epilogue_more_kernel<T, N, GX_ACT_##act>) \
                    : gx_kernel(epilogue_kernel<T, N, GX_ACT_##act>);
        GX_ACT_LIST(FORWARD_CASE)
#undef FORWARD_CASE
    default:
        return nullptr;
    }
}

template <typename T, int N> const void *backward_instance_of(int act)
{
    switch (act) {
#define BACKWARD_CASE(act, name, reads, flops) \
    case GX_ACT_##act:                         \
        return gx_kernel(epilogue_bwd_kernel<T, N, GX_ACT_##act>);
        GX_ACT_LIST(BACKWARD_CASE)
#undef BACKWARD_CASE
    default:
        return nullptr;
    }
}

static bool has_more(const gx_epilogue *e)
{
    return e->scale != 1.0f || e->residual != nullptr;
}

static const char *forward_name(const gx_epilogue *e)
{
    return has_more(e) ? "epilogue_more_kernel" : "epilogue_kernel";
}

static const void *forward_instance(const gx_epilogue *e)
{
    const bool more = has_more(e);

    return gx_with_type(e->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return e->wide ? forward_instance_of<T, gx_widest<T>>(e->act, more)
                       : forward_instance_of<T, 1>(e->act, more);
    });
}

static const void *backward_instance(const gx_epilogue_bwd *e)
{
    return gx_with_type(e->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return e->wide ? backward_instance_of<T, 2>(e->act)
                       : backward_instance_of<T, 1>(e->act);
    });
}

/* The smallest power of two from `least` to `most` that covers n. */
static unsigned cover(int64_t n, unsigned least, unsigned most)
{
    unsigned size = least;

    while (size < most && size < n)
        size *= 2;
    return size;
}

} // namespace

extern "C" gx_status gx_epilogue_load(const gx_epilogue *epilogue, gx_error *err)
{
    return gx_load_kernel(forward_instance(epilogue), 0, forward_name(epilogue), err);
}

extern "C" gx_status gx_epilogue_launch(const gx_epilogue *epilogue, gx_ctx *ctx,
                                        gx_error *err)
{
    const int64_t n = epilogue->wide ? gx_widest_of(epilogue->dtype) : 1;
    const int64_t vectors = gx_divide_up(epilogue->columns, n);
    const unsigned x = cover(vectors, 1, THREADS);
    const dim3 block(x, THREADS / x);
    const unsigned blocks_x = gx_grid_for(vectors, x, INT32_MAX);
    /* Four rows a thread once the card is full: then a bias is not read again for each.
     */
    const int64_t full = gx_divide_up((int64_t)ctx->n_sm * 16, blocks_x);
    const int64_t rows = gx_divide_up(epilogue->rows, block.y);
    const int64_t blocks_y = rows <= full ? rows : full > rows / 4 ? full : rows / 4;
    void *args[] = { (void *)epilogue };

    return gx_launch(
        ctx, forward_name(epilogue), forward_instance(epilogue),
        dim3(blocks_x, (unsigned)(blocks_y < MAX_GRID_Y ? blocks_y : MAX_GRID_Y)), block,
        0, args, err);
}

extern "C" gx_status gx_epilogue_bwd_load(const gx_epilogue_bwd *backward, gx_error *err)
{
    return gx_load_kernel(backward_instance(backward), 0, "epilogue_bwd_kernel", err);
}

extern "C" gx_status gx_epilogue_bwd_launch(const gx_epilogue_bwd *backward, gx_ctx *ctx,
                                            gx_error *err)
{
    const bool has_sums = backward->dbias != NULL;
    const int64_t vectors = gx_divide_up(backward->columns, backward->wide ? 2 : 1);
    const unsigned x = has_sums ? 16 : cover(vectors, 1, THREADS);
    const dim3 block(x, has_sums ? cover(backward->rows, 4, 1024 / x) : THREADS / x);
    const int64_t rows = gx_divide_up(backward->rows, block.y);
    const unsigned blocks_y =
        has_sums ? 1 : (unsigned)(rows < MAX_GRID_Y ? rows : MAX_GRID_Y);
    const size_t shared =
        has_sums ? block.x * block.y * (backward->wide ? 2 : 1) * sizeof(float) : 0;
    void *args[] = { (void *)backward };

    return gx_launch(ctx, "epilogue_bwd_kernel", backward_instance(backward),
                     dim3(gx_grid_for(vectors, x, INT32_MAX), blocks_y), block, shared,
                     args, err);
}
