/* The last product of a network with its bias, a loss of each element and that loss's
 * derivative, on the tensor cores of sm_90: see wgmma_tile.cuh.
 *
 * This file is compiled as wgmma.cu is. */
#include "pointwise_loss.cuh"
#include "ticket.cuh"
#include "wgmma_tile.cuh"

namespace
{

constexpr int SUM_BYTES = ALL_FINISHERS / 32 * (int)sizeof(double); /* one a warp */
constexpr int SHARED_BYTES = TILES_BYTES + HAND_OVER_BYTES + SUM_BYTES;

#if GX_HAVE_WGMMA

constexpr int AT_ONCE = 2; /* pieces that a thread has under way */

/* One branch for all eight; v becomes their derivatives. Returns the sum of their losses.
 */
__device__ __forceinline__ float losses_of(gx_pointwise_kind kind, float (&v)[WIDE],
                                           const float (&target)[WIDE])
{
    float sum = 0.0f;

    switch (kind) {
#define LOSS_CASE(KIND)                                     \
    case KIND:                                              \
        _Pragma("unroll") for (int x = 0; x < WIDE; x++)    \
        {                                                   \
            float slope;                                    \
                                                            \
            sum += gx_point(KIND, v[x], target[x], &slope); \
            v[x] = slope;                                   \
        }                                                   \
        break;
        LOSS_CASE(GX_POINT_MSE)
        LOSS_CASE(GX_POINT_L1)
        LOSS_CASE(GX_POINT_BCE)
#undef LOSS_CASE
    }
    return sum;
}

template <typename T, typename U>
__device__ __forceinline__ float finish_eight(const gx_wgmma_head &g, const eighth &its,
                                              const uint4 &product,
                                              const gx_elements<U, WIDE> &wanted)
{
    const int64_t at = (int64_t)its.row * g.n + its.column;
    const float scale = (float)g.share;
    float v[WIDE], target[WIDE];

    unpack<T>(v, product);
    wanted.unpack(target);
    add_bias<T>(g.bias, its.column, v);
    if (g.out != nullptr)
        gx_store_widest(static_cast<T *>(g.out) + at, v);
    const float sum = losses_of(g.kind, v, target);

#pragma unroll
    for (int x = 0; x < WIDE; x++)
        v[x] *= scale;
    if (g.dx != nullptr)
        gx_store_widest(static_cast<T *>(g.dx) + at, v);
    return sum;
}

/* Returns the sum of the losses that the thread has found. */
template <typename T, typename U>
__device__ __forceinline__ float finish_tile(const gx_wgmma_head &g, place at,
                                             const uint4 *tile, crew of)
{
    const U *target = static_cast<const U *>(g.target);
    float sum = 0.0f;

#pragma unroll 1
    for (int e = of.thread; e < EIGHTHS; e += AT_ONCE * of.n) {
        uint4 product[AT_ONCE];
        gx_elements<U, WIDE> wanted[AT_ONCE];

#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * of.n, g.m, g.n);

            if (!its.is_there)
                continue;
            product[x] = __ldcg(tile + e + x * of.n);
            wanted[x].load(target + (int64_t)its.row * g.n + its.column);
        }
#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * of.n, g.m, g.n);

            if (its.is_there)
                sum += finish_eight<T>(g, its, product[x], wanted[x]);
        }
    }
    return sum;
}

/* The loss from what every thread but those that copy has found: sums of warps, of
 * blocks, and by the last block of all, each in order. */
__device__ __forceinline__ void leave_loss(const gx_wgmma_head &g, double total,
                                           const hand_over &over, double *sums)
{
    const int thread = crew::all().thread, lane = thread % 32;
    const unsigned n_blocks = gridDim.x * CLUSTER;
    unsigned is_last = 0;

    total = gx_warp_sum(total);
    if (lane == 0)
        sums[thread / 32] = total;
    meet(over, crew::all());
    if (thread >= 32)
        return;
    total = gx_warp_sum(lane < ALL_FINISHERS / 32 ? sums[lane] : 0.0);
    if (lane == 0) {
        g.partial[blockIdx.x * CLUSTER + blockIdx.y] = total;
        is_last = gx_draws_last(g.ticket, n_blocks);
    }
    if (!__shfl_sync(0xffffffffu, is_last, 0))
        return;
    __syncwarp(); /* what the first lane has seen to be written the others read */
    total = 0.0;
    for (unsigned i = (unsigned)lane; i < n_blocks; i += 32)
        total += __ldcg(g.partial + i);
    total = gx_warp_sum(total);
    if (lane == 0)
        *g.loss = (float)(total * g.share);
}

/* By the warps that multiply nothing. */
template <typename T, typename U>
__device__ __forceinline__ void finish_all(const gx_wgmma_head &g, const hand_over &over,
                                           double *sums)
{
    const tiles all(g.m, g.n);
    unsigned parity = 0;
    double total = 0.0;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x, parity ^= 1) {
        await_tile(over, parity);
        total += finish_tile<T, U>(g, all[i], static_cast<const uint4 *>(over.tile),
                                   all.is_last(i) ? crew::all() : crew::few());
        gx_barrier_arrive_here(over.is_taken);
    }
    if (g.loss != nullptr)
        leave_loss(g, total, over, sums);
}

template <typename T, typename U, bool B_TURNED>
__device__ __forceinline__ void multiply_all(const gx_wgmma_head &g, const memory &shared,
                                             const hand_over &over, int half,
                                             double *sums)
{
    const tiles all(g.m, g.n);
    place at;
    turn now;
    unsigned parity = 1;

    for (int64_t i = blockIdx.x; i < all.count(); i += gridDim.x, parity ^= 1) {
        float sum[COLUMNS / 2];

        at = all[i];
        multiply_tile<T, false, B_TURNED>(sum, g.k, shared, half, now);
        hand_tile<T>(sum, over, half, parity);
    }
    await_tile(over, parity);
    const double total =
        finish_tile<T, U>(g, at, static_cast<const uint4 *>(over.tile), crew::all());

    if (g.loss != nullptr)
        leave_loss(g, total, over, sums);
}

template <typename T, typename U, bool B_TURNED>
__global__ void __launch_bounds__(THREADS, 1)
    wgmma_head_kernel(const __grid_constant__ gx_wgmma_head g)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, bytes);
    const division at(bytes);
    const hand_over over(at.hand_over, g.handed);
    double *sums = reinterpret_cast<double *>(at.rest);
    const int warpgroup = (int)threadIdx.x / WARPGROUP;

    over.open();
    open_barriers(at.shared);
    if (warpgroup == 2) {
        gx_fewer_registers<FINISHING_REGISTERS>();
        if (threadIdx.x == 2 * WARPGROUP)
            fetch_all<false, B_TURNED>(g.maps, tiles(g.m, g.n), g.k, at.shared);
        else if (crew::few().thread >= 0)
            finish_all<T, U>(g, over, sums);
    } else {
        gx_more_registers<HANDING_REGISTERS>();
        multiply_all<T, U, B_TURNED>(g, at.shared, over, warpgroup, sums);
    }
    close_cluster();
}

template <typename T> const void *find_target(const gx_wgmma_head *head)
{
    if (head->target_dtype == GX_F32)
        return head->b_turned ? gx_kernel(wgmma_head_kernel<T, float, true>)
                              : gx_kernel(wgmma_head_kernel<T, float, false>);
    return head->b_turned ? gx_kernel(wgmma_head_kernel<T, T, true>)
                          : gx_kernel(wgmma_head_kernel<T, T, false>);
}

const void *find(const gx_wgmma_head *head)
{
    return head->math == GX_TILE_BF16 ? find_target<__nv_bfloat16>(head)
                                      : find_target<__half>(head);
}

#else

const void *find(const gx_wgmma_head *)
{
    return nullptr;
}

#endif

unsigned clusters_of(const gx_wgmma_head *head, int n_sm)
{
    const int64_t pairs =
        gx_divide_up(head->m, CLUSTER * ROWS) * gx_divide_up(head->n, COLUMNS);

    return gx_grid_for(pairs, 1, room_of(n_sm));
}

} // namespace

extern "C" int64_t gx_wgmma_head_blocks(const gx_wgmma_head *head, int n_sm)
{
    return (int64_t)clusters_of(head, n_sm) * CLUSTER;
}

extern "C" gx_status gx_wgmma_head_load(const gx_wgmma_head *head, gx_error *err)
{
    return gx_load_cluster_kernel(find(head), dim3(THREADS), CLUSTER, SHARED_BYTES,
                                  "wgmma_head_kernel", err);
}

extern "C" gx_status gx_wgmma_head_launch(const gx_wgmma_head *head, gx_ctx *ctx,
                                          gx_error *err)
{
    void *args[] = { (void *)head };

    return gx_launch_cluster(ctx, "wgmma_head_kernel", find(head),
                             dim3(clusters_of(head, ctx->n_sm), CLUSTER), dim3(THREADS),
                             CLUSTER, SHARED_BYTES, args, err);
}
