/* What a warp does with two panels in shared memory: it adds their product to its sums.
 */
#ifndef GX_GEMM_MULTIPLY_CUH
#define GX_GEMM_MULTIPLY_CUH

#include "gemm_copy.cuh"
#include "gemm_tile.h"

enum { GX_TILE_SLICE = 16 }; /* of k, for one warp and panel */

namespace
{

/* A panel in shared memory, seen as [outer, k]: element (i, k) at i * i_step + k *
 * k_step. */
template <typename T> struct panel {
    const T *at;
    int i_step, k_step;
};

/* Four 8 x 8 matrices of a panel of 16-bit elements at (i, k): the lane names a row of
 * one of them. Matrices 1 and 2 lie further along i or along k, as `i_first` says. */
template <typename T>
__device__ __forceinline__ void load_fragments(uint32_t (&to)[4], const panel<T> &p,
                                               int i, int k, bool i_first)
{
    const int lane = threadIdx.x % 32;
    const int low = (lane >> 3 & 1) * 8, high = (lane >> 4) * 8;
    const int along_i = i + (i_first ? low : high), along_k = k + (i_first ? high : low);
    const bool turned = p.i_step == 1;
    const int row = lane % 8;

    gx_load_matrices(to,
                     p.at + (along_i + (turned ? 0 : row)) * p.i_step +
                         (along_k + (turned ? row : 0)) * p.k_step,
                     turned);
}

/* sum += a slice of a times a slice of b; a at rows `i`, b at columns `j`, both from k
 * on. Each thread holds of every 16 x 8 piece the elements (g, 2t), (g, 2t + 1), (g + 8,
 * 2t) and (g + 8, 2t + 1), g = lane / 4 and t = lane % 4, whatever the math. */
template <int MI, int NI, typename T>
__device__ __forceinline__ void multiply_16(float (&sum)[MI][NI][4], const panel<T> &a,
                                            const panel<T> &b, int i, int j, int k)
{
    uint32_t fa[MI][4], fb[NI / 2][4];

#pragma unroll
    for (int x = 0; x < MI; x++)
        load_fragments(fa[x], a, i + 16 * x, k, true);
#pragma unroll
    for (int y = 0; y < NI / 2; y++)
        load_fragments(fb[y], b, j + 16 * y, k, false);
#pragma unroll
    for (int x = 0; x < MI; x++) {
#pragma unroll
        for (int y = 0; y < NI; y++)
            gx_mma_16<T>(sum[x][y], fa[x][0], fa[x][1], fa[x][2], fa[x][3],
                         fb[y / 2][y % 2 * 2], fb[y / 2][y % 2 * 2 + 1]);
    }
}

template <int MI, int NI>
__device__ __forceinline__ void multiply_tf32(float (&sum)[MI][NI][4],
                                              const panel<float> &a,
                                              const panel<float> &b, int i, int j, int k)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
    for (int step = 0; step < GX_TILE_SLICE; step += 8) {
        uint32_t fa[MI][4], fb[NI][2];

#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                fa[x][e] = gx_tf32(a.at[(i + 16 * x + g + e % 2 * 8) * a.i_step +
                                        (k + step + t + e / 2 * 4) * a.k_step]);
        }
#pragma unroll
        for (int y = 0; y < NI; y++) {
#pragma unroll
            for (int e = 0; e < 2; e++)
                fb[y][e] = gx_tf32(
                    b.at[(j + 8 * y + g) * b.i_step + (k + step + t + e * 4) * b.k_step]);
        }
#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int y = 0; y < NI; y++)
                gx_mma_tf32(sum[x][y], fa[x][0], fa[x][1], fa[x][2], fa[x][3], fb[y][0],
                            fb[y][1]);
        }
    }
}

template <int MI, int NI>
__device__ __forceinline__ void multiply_f32(float (&sum)[MI][NI][4],
                                             const panel<float> &a, const panel<float> &b,
                                             int i, int j, int k)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll 4
    for (int step = 0; step < GX_TILE_SLICE; step++) {
        float fa[MI][2], fb[NI][2];

#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int e = 0; e < 2; e++)
                fa[x][e] =
                    a.at[(i + 16 * x + g + 8 * e) * a.i_step + (k + step) * a.k_step];
        }
#pragma unroll
        for (int y = 0; y < NI; y++) {
#pragma unroll
            for (int e = 0; e < 2; e++)
                fb[y][e] =
                    b.at[(j + 8 * y + 2 * t + e) * b.i_step + (k + step) * b.k_step];
        }
#pragma unroll
        for (int x = 0; x < MI; x++) {
#pragma unroll
            for (int y = 0; y < NI; y++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[x][y][e] = fmaf(fa[x][e / 2], fb[y][e % 2], sum[x][y][e]);
            }
        }
    }
}

template <int MATH, int MI, int NI, typename T>
__device__ __forceinline__ void multiply(float (&sum)[MI][NI][4], const panel<T> &a,
                                         const panel<T> &b, int i, int j, int k)
{
    if constexpr (sizeof(T) == 2)
        multiply_16(sum, a, b, i, j, k);
    else if constexpr (MATH == GX_TILE_TF32)
        multiply_tf32(sum, a, b, i, j, k);
    else
        multiply_f32(sum, a, b, i, j, k);
}

} // namespace

#endif
