/* How kernels walk rows and columns whose operands may be broadcast. */
#ifndef GX_SPAN_CUH
#define GX_SPAN_CUH

#include "elementwise_kernels.h"
#include "kernel.cuh"

enum { GX_SPAN_THREADS = 256 };

/* Where row `row` begins in each operand. Rows that fit 32 bits are divided there: a
 * division in 64 bits costs more than the memory that a thread moves. */
static __device__ __forceinline__ void gx_span_row(const gx_span &g, int64_t row,
                                                   int64_t (&at)[GX_GRID_OPERANDS])
{
#pragma unroll
    for (int k = 0; k < GX_GRID_OPERANDS; k++)
        at[k] = g.n == 1 ? row * g.step[k][0] : 0;
    for (int i = 0; g.n > 1 && i < g.n; i++) {
        int64_t next, digit;

        if (g.rows <= UINT32_MAX) {
            next = (uint32_t)row / (uint32_t)g.size[i];
            digit = (uint32_t)row % (uint32_t)g.size[i];
        } else {
            next = row / g.size[i];
            digit = row % g.size[i];
        }
#pragma unroll
        for (int k = 0; k < GX_GRID_OPERANDS; k++)
            at[k] += digit * g.step[k][i];
        row = next;
    }
}

/* N elements of an operand from column c on. */
template <typename T, int N>
static __device__ __forceinline__ void gx_span_load(float (&to)[N], const T *row,
                                                    bool along, int64_t c)
{
    if (along) {
        gx_load_vector(to, row + c);
        return;
    }
    const float x = gx_to_float(*row);

#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = x;
}

/* Calls body(row, at, c, std::integral_constant-like width) for each vector of N columns,
 * and element by element for what is left of a single row. */
template <int N> struct gx_width {
    static constexpr int value = N;
};

template <int N, typename F>
static __device__ __forceinline__ void gx_span_walk(const gx_span &g, F body)
{
    const int64_t row_step = (int64_t)gridDim.y * blockDim.y;
    const int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;

    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < g.rows;
         row += row_step) {
        int64_t at[GX_GRID_OPERANDS];

        gx_span_row(g, row, at);
        for (int64_t c = first; c < g.columns; c += (int64_t)gridDim.x * blockDim.x * N) {
            if (c + N <= g.columns) {
                body(row * g.columns + c, at, c, gx_width<N>());
                continue;
            }
            for (int64_t rest = c; rest < g.columns; rest++)
                body(row * g.columns + rest, at, rest, gx_width<1>());
        }
    }
}

/* Threads along the columns, then along the rows; a grid that fills the card. */
static inline void gx_span_shape(const gx_span *span, int vector, int n_sm, dim3 *grid,
                                 dim3 *block)
{
    const int64_t vectors = gx_divide_up(span->columns, vector);
    unsigned x = 1;

    while (x < GX_SPAN_THREADS && x < vectors)
        x *= 2;
    *block = dim3(x, GX_SPAN_THREADS / x);
    const unsigned blocks_x = gx_grid_for(vectors, x, INT32_MAX);
    const int64_t rows = gx_divide_up(span->rows, block->y);
    /* Four rows a thread once the card is full. */
    const int64_t full = gx_divide_up((int64_t)n_sm * 16, blocks_x);
    int64_t blocks_y = rows <= full ? rows : full > rows / 4 ? full : rows / 4;

    if (blocks_y > 65535)
        blocks_y = 65535;
    *grid = dim3(blocks_x, (unsigned)blocks_y);
}

#endif
