/* Sums along k of an operand of a small product, which the bias wants: made of what the
 * product loads (direct.cuh). */
#ifndef GX_DIRECT_SUMS_CUH
#define GX_DIRECT_SUMS_CUH

#include "direct.cuh"

namespace
{

/* In f32 and always in one order: a thread its neighbours of each chunk, the four threads
 * of a line. OF_A: of the rows of a, else of the columns of b. */
template <typename T, typename TILE, bool OF_A> struct direct_line_sums {
    static constexpr int EACH = OF_A ? TILE::ROWS : TILE::COLUMNS; /* lines of a thread */
    static constexpr int LINES = OF_A ? TILE::BM : TILE::BN;

    bool wanted; /* by this warp */
    float sum[EACH];

    __device__ __forceinline__ explicit direct_line_sums(bool is_wanted)
        : wanted(is_wanted)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sum[i] = 0.0f;
    }

    /* The operands are zero past their ends. */
    __device__ __forceinline__ void take(const TILE &tile)
    {
        if (!wanted)
            return;
#pragma unroll
        for (int c = 0; c < TILE::TURN; c++) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                T k[4];
                static_assert(TILE::DEPTH == 4, "of four");

                if constexpr (OF_A)
                    memcpy(k, tile.a[c][i], sizeof k);
                else
                    memcpy(k, tile.b[c][i], sizeof k);
                sum[i] += (gx_to_float(k[0]) + gx_to_float(k[1])) +
                          (gx_to_float(k[2]) + gx_to_float(k[3]));
            }
        }
    }

    /* The four threads of line i have its sum. */
    __device__ __forceinline__ void fold(int i)
    {
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    }
};

} // namespace

#endif
