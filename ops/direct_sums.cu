/* The gradients of a weight and of its bias in one kernel: a small product (direct.cuh),
 * and the sums along k of the operand that both of them add up. k is whole in a block, so
 * the blocks of the first tiles have all that they need. */
#include "direct.h"
#include "direct_sums.cuh"

namespace
{

/* The sums of a block: its warps share k, and `parts` are what they leave. */
template <typename T, typename TILE, bool OF_A>
struct direct_sums : direct_line_sums<T, TILE, OF_A> {
    using base = direct_line_sums<T, TILE, OF_A>;
    using base::EACH, base::LINES, base::sum, base::wanted;
    static constexpr int WARPS = TILE::THREADS / 32;

    float (*parts)[LINES];

    __device__ __forceinline__ direct_sums(bool is_wanted, float (*shared)[LINES])
        : base(is_wanted), parts(shared)
    {
    }

    __device__ __forceinline__ void leave()
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;

        if (!wanted)
            return;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            base::fold(i);
            if (threadIdx.x % 4 == 0)
                parts[warp][EACH * g + i] = sum[i];
        }
    }

    /* Once the block's threads have met. The block's lines begin at `first` of n. */
    __device__ __forceinline__ void store(T *to, int first, int n) const
    {
        if (!wanted)
            return;
        for (int i = (int)threadIdx.x; i < LINES && first + i < n; i += TILE::THREADS) {
            float all = 0.0f;

#pragma unroll
            for (int w = 0; w < WARPS; w++)
                all += parts[w][i];
            gx_store(to + first + i, all);
        }
    }
};

template <typename T, typename TILE, bool OF_A>
__global__ void __launch_bounds__(TILE::THREADS, 1)
    direct_sums_kernel(const __grid_constant__ gx_tile g, const direct_known known)
{
    using SUMS = direct_sums<T, TILE, OF_A>;
    GX_DYNAMIC_SHARED(float, sums);
    __shared__ float parts[SUMS::WARPS][SUMS::LINES];
    const int row = (int)blockIdx.y * TILE::BM, column = (int)blockIdx.x * TILE::BN;
    const int m = (int)g.m, n = (int)g.n;
    SUMS tally(OF_A ? blockIdx.x == 0 : blockIdx.y == 0, parts);
    TILE tile;

    tile.run(
        { static_cast<const T *>(g.a), g.lda, m, (int)g.k },
        { static_cast<const T *>(g.b), g.ldb, n, (int)g.k }, row, column, known.steady_b,
        sums, [] {}, tally);
    store_tile<T, TILE>(g, sums, row, column, known.is_wide);
    tally.store(static_cast<T *>(g.dbias), OF_A ? row : column, OF_A ? m : n);
}

/* --- choosing the instantiation --- */

template <typename T, int MI, int NI, int WK, int DEPTH>
const void *make_instance(bool of_a)
{
    using TILE = direct_tile<T, true, false, false, MI, NI, WK>;

    if constexpr (NI == 1 || DEPTH > 4) /* for tails, or for lines along k */
        return nullptr;
    else if (of_a)
        return gx_kernel(direct_sums_kernel<T, TILE, true>);
    else
        return gx_kernel(direct_sums_kernel<T, TILE, false>);
}

template <typename T> const void *find_shape(int shape, bool of_a)
{
    switch (shape) {
#define DIRECT_CASE(i, mi, ni, wk, depth) \
    case i:                               \
        return make_instance<T, mi, ni, wk, depth>(of_a);
        GX_DIRECT_LIST(DIRECT_CASE)
#undef DIRECT_CASE
    default:
        return nullptr;
    }
}

} // namespace

extern "C" const void *gx_direct_sums_kernel(const gx_tile *tile)
{
    const bool of_a = tile->tail == GX_TAIL_SUMS_OF_A;

    return tile->math == GX_TILE_BF16  ? find_shape<__nv_bfloat16>(tile->shape, of_a)
           : tile->math == GX_TILE_F16 ? find_shape<__half>(tile->shape, of_a)
                                       : find_shape<float>(tile->shape, of_a);
}
