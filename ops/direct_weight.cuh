/* A tile of a weight gradient by one warp, and the sums that the bias wants beside it.
 * The k of such a product is the batch, which is short: the warp takes all of it, and its
 * sums go from registers to memory without a barrier. */
#ifndef GX_DIRECT_WEIGHT_CUH
#define GX_DIRECT_WEIGHT_CUH

#include "direct_sums.cuh"

namespace
{

/* Chunks of k in flight: of a batch of 32 both. More are more code and registers. */
constexpr int WEIGHT_CHUNKS = 2;

template <typename T, int MI, int NI, bool WHOLE>
using weight_tile =
    direct_tile<T, true, false, false, MI, NI, 1, 4, WEIGHT_CHUNKS, WHOLE>;

/* Rows g and g + 8 of an instruction are rows 2x and 2x + 1 of what the thread holds, and
 * its columns 2t and 2t + 1 are column y of threads 2t and 2t + 1: as many neighbours of
 * a row as two threads have loaded. n is a multiple of what one has. */
template <typename T, typename TILE>
__device__ __forceinline__ void store_from_registers(const TILE &tile, T *out, int m,
                                                     int n, int row, int column)
{
    constexpr int EACH = TILE::COLUMNS;
    const int g = threadIdx.x % 32 / 4, c = column + 2 * EACH * (threadIdx.x % 4);
    const bool is_wide = n % (2 * EACH) == 0;

#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
        const int r = row + TILE::ROWS * g + i;
        T *to = out + (int64_t)r * n + c;
        float line[2][EACH];

#pragma unroll
        for (int y = 0; y < EACH; y++) {
            line[0][y] = tile.sum[i / 2][y][i % 2 * 2];
            line[1][y] = tile.sum[i / 2][y][i % 2 * 2 + 1];
        }
        if (r >= m || c >= n)
            continue;
        if (is_wide) {
            float all[2 * EACH];

            memcpy(all, line, sizeof all);
            gx_store_vector<T, 2 * EACH>(to, all);
        } else {
            gx_store_vector<T, EACH>(to, line[0]);
            if (c + EACH < n)
                gx_store_vector<T, EACH>(to + EACH, line[1]);
        }
    }
}

/* What one warp makes of `g`, a gx_tile or what has such operands: a tile, and where it
 * is the first of its lines their sums. */
template <typename T, typename TILE, bool OF_A, typename G>
__device__ __forceinline__ void make_weight_tile(const G &g, int row, int column)
{
    using SUMS = direct_line_sums<T, TILE, OF_A>;
    const int m = (int)g.m, n = (int)g.n;
    SUMS tally(g.dbias != nullptr && (OF_A ? column : row) == 0);
    TILE tile;

    tile.add_up(
        { static_cast<const T *>(g.a), g.lda, m, (int)g.k },
        { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, 0,
        direct_never(), [] {}, tally);
    store_from_registers<T, TILE>(tile, static_cast<T *>(g.out), m, n, row, column);
    if (!tally.wanted)
        return;
#pragma unroll
    for (int i = 0; i < SUMS::EACH; i++) {
        const int line =
            (OF_A ? row : column) + SUMS::EACH * (int)(threadIdx.x % 32 / 4) + i;

        tally.fold(i);
        if (threadIdx.x % 4 == 0 && line < (OF_A ? m : n))
            gx_store(static_cast<T *>(g.dbias) + line, tally.sum[i]);
    }
}

} // namespace

#endif
