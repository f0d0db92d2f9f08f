/* Asynchronous copies of a rectangle of a matrix to shared memory, by a whole block. */
#ifndef GX_GEMM_COPY_CUH
#define GX_GEMM_COPY_CUH

#include "kernel.cuh"

enum { GX_TILE_THREADS = 256 };

namespace
{

/* A rectangle of a stored matrix: rows x columns (a power of two) from (row, column). */
template <typename T> struct window {
    const T *matrix;
    int64_t n_rows, n_columns, ld; /* of the matrix */
    int64_t row, column;
    int rows, columns;
};

template <typename T, int BYTES>
__device__ __forceinline__ void copy_chunks(T *to, int to_ld, const window<T> &w)
{
    constexpr int PER = BYTES / (int)sizeof(T);
    constexpr int UNROLL = BYTES >= 4 ? 2 : 4; /* plain loads wait, copies do not */
    const int per_row = w.columns / PER;
    const int shift = 31 - __clz(per_row);

#pragma unroll UNROLL
    for (int i = (int)threadIdx.x; i < w.rows * per_row; i += GX_TILE_THREADS) {
        const int r = i >> shift;
        const int c = (i & (per_row - 1)) * PER;
        const int64_t row = w.row + r, column = w.column + c;
        int64_t left = row < w.n_rows ? w.n_columns - column : 0;

        left = left < 0 ? 0 : left > PER ? PER : left;
        const T *from = left > 0 ? w.matrix + row * w.ld + column : w.matrix;

        if constexpr (BYTES >= 4)
            gx_copy_async<BYTES>(to + r * to_ld + c, from, (int)left * (int)sizeof(T));
        else
            to[r * to_ld + c] = left > 0 ? *from : T(0.0f);
    }
}

template <typename T>
__device__ __forceinline__ void copy_window(T *to, int to_ld, const window<T> &w,
                                            int chunk)
{
    if (chunk == 16)
        copy_chunks<T, 16>(to, to_ld, w);
    else if (chunk == 4)
        copy_chunks<T, 4>(to, to_ld, w);
    else if constexpr (sizeof(T) < 4)
        copy_chunks<T, (int)sizeof(T)>(to, to_ld, w);
}

} // namespace

#endif
