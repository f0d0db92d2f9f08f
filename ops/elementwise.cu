/* Sums, differences and products, and multiples; operands may be broadcast. */
#include "span.cuh"

namespace
{

static __device__ __forceinline__ float apply(gx_binary_op op, float a, float b)
{
    return op == GX_BINARY_ADD ? a + b : op == GX_BINARY_SUB ? a - b : a * b;
}

template <typename T, int N>
__global__ void __launch_bounds__(GX_SPAN_THREADS)
    binary_kernel(const __grid_constant__ gx_binary g)
{
    gx_begin_kernel();
    const T *a = static_cast<const T *>(g.operand[0]);
    const T *b = static_cast<const T *>(g.operand[1]);
    T *out = static_cast<T *>(g.out);

    gx_span_walk<N>(g.span, [&](int64_t i, const int64_t(&at)[GX_GRID_OPERANDS],
                                int64_t c, auto width) {
        constexpr int W = decltype(width)::value;
        float x[W], y[W];

        gx_span_load(x, a + at[0], g.span.along[0], c);
        gx_span_load(y, b + at[1], g.span.along[1], c);
#pragma unroll
        for (int e = 0; e < W; e++)
            x[e] = apply(g.op, x[e], y[e]);
        gx_store_vector(out + i, x);
    });
}

template <typename From, typename To, int N>
__global__ void __launch_bounds__(GX_SPAN_THREADS)
    spread_kernel(const __grid_constant__ gx_spread g)
{
    gx_begin_kernel();
    const From *from = static_cast<const From *>(g.x);
    To *out = static_cast<To *>(g.out);

    gx_span_walk<N>(g.span, [&](int64_t i, const int64_t(&at)[GX_GRID_OPERANDS],
                                int64_t c, auto width) {
        constexpr int W = decltype(width)::value;
        float x[W];

        if (from != nullptr) {
            gx_span_load(x, from + at[0], g.span.along[0], c);
        } else {
#pragma unroll
            for (int e = 0; e < W; e++)
                x[e] = 1.0f;
        }
#pragma unroll
        for (int e = 0; e < W; e++)
            x[e] *= g.factor;
        gx_store_vector(out + i, x);
    });
}

static int binary_vector(const gx_binary *g)
{
    return g->span.wide ? gx_widest_of(g->dtype) : 1;
}

static const void *binary_instance(const gx_binary *g)
{
    return gx_with_type(g->dtype, [&](auto of) {
        using T = typename decltype(of)::type;

        return g->span.wide ? (const void *)binary_kernel<T, gx_widest<T>>
                            : (const void *)binary_kernel<T, 1>;
    });
}

constexpr int smaller(int x, int y)
{
    return x < y ? x : y;
}

template <typename From, typename To> const void *spread_of(const gx_spread *g)
{
    constexpr int N = smaller(gx_widest<From>, gx_widest<To>);

    return g->span.wide ? (const void *)spread_kernel<From, To, N>
                        : (const void *)spread_kernel<From, To, 1>;
}

static const void *spread_instance(const gx_spread *g)
{
    return gx_with_type(g->from, [&](auto from) {
        return gx_with_type(g->to, [&](auto to) {
            return spread_of<typename decltype(from)::type, typename decltype(to)::type>(
                g);
        });
    });
}

} // namespace

extern "C" gx_status gx_binary_load(const gx_binary *binary, gx_error *err)
{
    return gx_load_kernel(binary_instance(binary), 0, "binary_kernel", err);
}

extern "C" gx_status gx_binary_launch(const gx_binary *binary, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)binary };
    dim3 grid, block;

    gx_span_shape(&binary->span, binary_vector(binary), ctx->n_sm, &grid, &block);
    return gx_launch(ctx, "binary_kernel", binary_instance(binary), grid, block, 0, args,
                     err);
}

extern "C" int gx_spread_vector(gx_dtype from, gx_dtype to)
{
    return smaller(gx_widest_of(from), gx_widest_of(to));
}

extern "C" gx_status gx_spread_load(const gx_spread *spread, gx_error *err)
{
    return gx_load_kernel(spread_instance(spread), 0, "spread_kernel", err);
}

extern "C" gx_status gx_spread_launch(const gx_spread *spread, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)spread };
    dim3 grid, block;

    gx_span_shape(&spread->span,
                  spread->span.wide ? gx_spread_vector(spread->from, spread->to) : 1,
                  ctx->n_sm, &grid, &block);
    return gx_launch(ctx, "spread_kernel", spread_instance(spread), grid, block, 0, args,
                     err);
}
