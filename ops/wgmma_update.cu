/* Weight gradients of several layers with adam's update of those weights and biases, on
 * the tensor cores of sm_90: see wgmma_tile.cuh.
 *
 * This file is compiled as wgmma.cu is. */
#include "wgmma_tile.cuh"

namespace
{

constexpr int SHARED_BYTES = TILES_BYTES + HAND_OVER_BYTES;
static_assert(sizeof(gx_wgmma_update) <= 4096, "a kernel takes 4 KB of arguments");

#if GX_HAVE_WGMMA

constexpr int AT_ONCE = 2; /* pieces that a thread has under way */

/* --- tiles of all layers, one layer behind the other --- */

struct walk {
    const gx_wgmma_update &all;
    int64_t before; /* pairs of tiles of the layers before */
    int64_t i, n;   /* the pair that the cluster makes, of so many */
    int layer;      /* that it is of */

    __device__ __forceinline__ explicit walk(const gx_wgmma_update &update)
        : all(update), before(0), i(blockIdx.x), n(0), layer(0)
    {
        for (int l = 0; l < all.n_layers; l++)
            n += of(l).count();
        find();
    }

    __device__ __forceinline__ tiles of(int l) const
    {
        return tiles(all.layer[l].m, all.layer[l].n);
    }

    __device__ __forceinline__ void find()
    {
        while (i < n && i - before >= of(layer).count())
            before += of(layer++).count();
    }

    __device__ __forceinline__ bool goes_on() const
    {
        return i < n;
    }

    __device__ __forceinline__ void go_on()
    {
        i += gridDim.x;
        find();
    }

    __device__ __forceinline__ place at() const
    {
        return of(layer)[i - before];
    }
};

__device__ __forceinline__ void fetch_all(const gx_wgmma_update &u, const memory &shared)
{
    turn now;

    for (walk at(u); at.goes_on(); at.go_on())
        fetch_tile<true, false>(u.layer[at.layer].maps, u.layer[at.layer].k, shared,
                                at.at(), now);
    await_readers(shared, now);
}

/* --- the warpgroups that multiply --- */

template <typename T>
__device__ __forceinline__ void multiply_all(const gx_wgmma_update &u,
                                             const memory &shared, const hand_over &over,
                                             int half)
{
    turn now;
    unsigned parity = 1; /* of a barrier that nobody has arrived at */

    for (walk at(u); at.goes_on(); at.go_on(), parity ^= 1) {
        float sum[COLUMNS / 2];

        multiply_tile<T, true, false>(sum, u.layer[at.layer].k, shared, half, now);
        hand_tile<T>(sum, over, half, parity);
    }
}

/* --- the warps that update --- */

/* What all elements share. */
struct step_factors {
    factors all;
    moment now;

    __device__ __forceinline__ explicit step_factors(const gx_wgmma_update &u)
    {
        const int32_t done = *u.step;

        all = factors_of<GX_UPDATE_ADAM>(u.settings, done, *u.settings.lr);
        now = { 1.0f, done == 0 };
    }
};

/* Those from element `first` on, of a vector as it lies in memory. */
template <typename T, int EACH, typename BITS>
__device__ __forceinline__ void take_some(float (&to)[EACH], const BITS &from, int first)
{
    bits_of<T, EACH> some;

    memcpy(&some, reinterpret_cast<const char *>(&from) + first * sizeof(T), sizeof some);
    unpack<T>(to, some);
}

template <typename T, int EACH, typename BITS>
__device__ __forceinline__ void put_some(BITS &to, const float (&from)[EACH], int first)
{
    const bits_of<T, EACH> some = pack<T>(from);

    memcpy(reinterpret_cast<char *>(&to) + first * sizeof(T), &some, sizeof some);
}

/* What the update of N neighbours reads beside the gradient, as it lies in memory. */
template <typename T, int N> struct piece {
    bits_of<T, N> p, m, v;

    __device__ __forceinline__ void load(const gx_updated &of, int64_t at)
    {
        p = load_bits<N>(static_cast<const T *>(of.param) + at);
        m = load_bits_away<N>(static_cast<const T *>(of.m) + at);
        v = load_bits_away<N>(static_cast<const T *>(of.v) + at);
    }

    /* In place, a pair after the other, or one where there is but one: few of them are in
     * registers as floats at a time. */
    __device__ __forceinline__ void finish(const bits_of<T, N> &gradient,
                                           const gx_update_settings &s,
                                           const step_factors &f)
    {
        constexpr int EACH = N == 1 ? 1 : 2;

#pragma unroll
        for (int i = 0; i < N; i += EACH) {
            float of_p[EACH], of_m[EACH], of_v[EACH], g[EACH];

            take_some<T>(of_p, p, i);
            take_some<T>(of_m, m, i);
            take_some<T>(of_v, v, i);
            take_some<T>(g, gradient, i);
#pragma unroll
            for (int x = 0; x < EACH; x++)
                update<GX_UPDATE_ADAM>(of_p[x], g[x], of_m[x], of_v[x], s, f.all, f.now);
            put_some<T>(p, of_p, i);
            put_some<T>(m, of_m, i);
            put_some<T>(v, of_v, i);
        }
    }

    __device__ __forceinline__ void store(const gx_updated &of, int64_t at) const
    {
        using bits = bits_of<T, N>;

        *reinterpret_cast<bits *>(static_cast<T *>(of.param) + at) = p;
        __stcs(reinterpret_cast<bits *>(static_cast<T *>(of.m) + at), m);
        __stcs(reinterpret_cast<bits *>(static_cast<T *>(of.v) + at), v);
    }
};

template <typename T>
__device__ __forceinline__ void
update_tile(const gx_wgmma_layer &layer, place at, const uint4 *gradient, int thread,
            const gx_update_settings &s, const step_factors &f)
{
#pragma unroll 1
    for (int e = thread; e < EIGHTHS; e += AT_ONCE * FINISHERS) {
        piece<T, WIDE> some[AT_ONCE];
        uint4 g[AT_ONCE];

#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * FINISHERS, layer.m, layer.n);

            if (its.is_there) {
                some[x].load(layer.weight, (int64_t)its.row * layer.n + its.column);
                g[x] = __ldcg(gradient + e + x * FINISHERS);
            }
        }
#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const eighth its(at, e + x * FINISHERS, layer.m, layer.n);

            if (!its.is_there)
                continue;
            some[x].finish(g[x], s, f);
            some[x].store(layer.weight, (int64_t)its.row * layer.n + its.column);
            if (layer.out != nullptr)
                *reinterpret_cast<uint4 *>(static_cast<T *>(layer.out) +
                                           (int64_t)its.row * layer.n + its.column) =
                    g[x];
        }
    }
}

/* The biases' gradients are there before the kernel begins. */
template <typename T>
__device__ __forceinline__ void update_biases(const gx_wgmma_update &u, int thread,
                                              const step_factors &f)
{
    const int block = (int)(blockIdx.x * CLUSTER + blockIdx.y);
    const int step = (int)gridDim.x * CLUSTER * FINISHERS;

    for (int l = 0; l < u.n_layers; l++) {
        const gx_wgmma_layer &layer = u.layer[l];

#pragma unroll 1
        for (int i = block * FINISHERS + thread; i < layer.n_bias; i += step) {
            piece<T, 1> one;

            one.load(layer.bias, i);
            one.finish(load_bits<1>(static_cast<const T *>(layer.dbias) + i), u.settings,
                       f);
            one.store(layer.bias, i);
        }
    }
}

template <typename T>
__device__ __forceinline__ void update_all(const gx_wgmma_update &u,
                                           const hand_over &over, int thread)
{
    const step_factors f(u);
    unsigned parity = 0;

    update_biases<T>(u, thread, f);
    for (walk at(u); at.goes_on(); at.go_on(), parity ^= 1) {
        gx_barrier_wait(over.is_there, parity);
        update_tile<T>(u.layer[at.layer], at.at(), static_cast<const uint4 *>(over.tile),
                       thread, u.settings, f);
        gx_barrier_arrive_here(over.is_taken);
    }
}

/* --- the kernel --- */

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
    wgmma_update_kernel(const __grid_constant__ gx_wgmma_update u)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, bytes);
    const uint32_t stages = (gx_shared_address(bytes) + ATOM - 1) / ATOM * ATOM;
    const uint32_t barriers = stages + STAGES * STAGE_BYTES;
    const memory shared = { stages, barriers, barriers + 8 * STAGES };
    const hand_over over(barriers + BARRIER_BYTES, u.gradients);
    const int warpgroup = (int)threadIdx.x / WARPGROUP;

    over.open();
    open_barriers(shared);
    if (warpgroup == 2) {
        gx_fewer_registers<FINISHING_REGISTERS>();
        if (threadIdx.x == 2 * WARPGROUP)
            fetch_all(u, shared);
        else if (finisher() >= 0)
            update_all<T>(u, over, finisher());
    } else {
        gx_more_registers<HANDING_REGISTERS>();
        multiply_all<T>(u, shared, over, warpgroup);
    }
    close_cluster();
}

const void *find(gx_tile_math math)
{
    return math == GX_TILE_BF16 ? gx_kernel(wgmma_update_kernel<__nv_bfloat16>)
                                : gx_kernel(wgmma_update_kernel<__half>);
}

#else

const void *find(gx_tile_math)
{
    return nullptr;
}

#endif

int64_t pairs_of(const gx_wgmma_update *update)
{
    int64_t n = 0;

    for (int l = 0; l < update->n_layers; l++)
        n += gx_divide_up(update->layer[l].m, CLUSTER * ROWS) *
             gx_divide_up(update->layer[l].n, COLUMNS);
    return n;
}

} // namespace

extern "C" size_t gx_wgmma_update_shared_bytes(void)
{
    return SHARED_BYTES;
}

extern "C" gx_status gx_wgmma_update_load(gx_tile_math math, gx_error *err)
{
    return gx_load_cluster_kernel(find(math), dim3(THREADS), CLUSTER, SHARED_BYTES,
                                  "wgmma_update_kernel", err);
}

extern "C" gx_status gx_wgmma_update_launch(const gx_wgmma_update *update, gx_ctx *ctx,
                                            gx_error *err)
{
    void *args[] = { (void *)update };

    return gx_launch_cluster(
        ctx, "wgmma_update_kernel", find(update->math),
        dim3(gx_grid_for(pairs_of(update), 1, room_of(ctx->n_sm)), CLUSTER),
        dim3(THREADS), CLUSTER, SHARED_BYTES, args, err);
}
