/* Gradients of several layers' weights and biases with adam's update of both, on the
 * tensor cores of sm_90: see wgmma_tile.cuh.
 *
 * A bias's gradient is sums of columns of an operand. They are made behind the last
 * tiles, first where there is no tile left while others make theirs.
 *
 * The tensor cores take tf32 from shared memory along k alone, and of `a` from registers
 * as well: there it is read as it is stored, and `b` comes transposed.
 *
 * This file is compiled as wgmma.cu is. */
#include "wgmma_tile.cuh"

namespace
{

constexpr int MULTIPLIERS = 2 * WARPGROUP;
constexpr int SUM_BYTES = 2 * COLUMNS * (int)sizeof(float); /* two of every column */
constexpr int SHARED_BYTES = TILES_BYTES + HAND_OVER_BYTES + SUM_BYTES;
static_assert(sizeof(gx_wgmma_update) <= 4096, "a kernel takes 4 KB of arguments");

#if GX_HAVE_WGMMA

constexpr int AT_ONCE = 2; /* pieces that a thread has under way */
/* Neighbours of a piece: 16 bytes. */
template <typename T> constexpr int PIECE = 16 / (int)sizeof(T);
/* Elements along k of a stage, and of a row of a box. */
template <typename T> constexpr int LINE = LINE_BYTES / (int)sizeof(T);
template <typename T> constexpr bool IS_TF32 = std::is_same_v<T, float>;
static_assert(LINE<float> == GX_WGMMA_K_TF32, "");

/* --- what is to be made: of all layers, one behind the other --- */

/* Pairs of tiles, one for each block of a cluster. */
struct tile_pairs {
    static __device__ __forceinline__ int64_t count(const gx_wgmma_layer &layer)
    {
        return tiles(layer.m, layer.n).count();
    }
    static __device__ __forceinline__ int64_t first()
    {
        return blockIdx.x;
    }
};

/* Pairs of strips of a bias, each of COLUMNS. From the last cluster on: it is the first
 * that has no tile left. */
struct sum_pairs {
    static __device__ __forceinline__ int64_t count(const gx_wgmma_layer &layer)
    {
        return (layer.n_bias + CLUSTER * COLUMNS - 1) / (CLUSTER * COLUMNS);
    }
    static __device__ __forceinline__ int64_t first()
    {
        return gridDim.x - 1 - blockIdx.x;
    }
};

template <typename OF> struct walk {
    const gx_wgmma_update &all;
    int64_t before; /* pairs of the layers before */
    int64_t i, n;   /* the pair that the cluster makes, of so many */
    int layer;      /* that it is of */

    __device__ __forceinline__ explicit walk(const gx_wgmma_update &update)
        : all(update), before(0), i(OF::first()), n(0), layer(0)
    {
        for (int l = 0; l < all.n_layers; l++)
            n += OF::count(all.layer[l]);
        find();
    }

    __device__ __forceinline__ void find()
    {
        while (i < n && i - before >= OF::count(all.layer[layer]))
            before += OF::count(all.layer[layer++]);
    }

    __device__ __forceinline__ bool goes_on() const
    {
        return i < n;
    }

    __device__ __forceinline__ bool is_last() const
    {
        return i + gridDim.x >= n;
    }

    __device__ __forceinline__ void go_on()
    {
        i += gridDim.x;
        find();
    }

    __device__ __forceinline__ const gx_wgmma_layer &its() const
    {
        return all.layer[layer];
    }
};

__device__ __forceinline__ place tile_at(const walk<tile_pairs> &at)
{
    return tiles(at.its().m, at.its().n)[at.i - at.before];
}

__device__ __forceinline__ int strip_at(const walk<sum_pairs> &at)
{
    return (int)((at.i - at.before) * CLUSTER + blockIdx.y) * COLUMNS;
}

/* Those that multiplied help to finish the last tile where they have no sums to make. */
__device__ __forceinline__ crew crew_of_last(const gx_wgmma_update &u)
{
    return walk<sum_pairs>(u).goes_on() ? crew::few() : crew::all();
}

/* --- the thread that copies --- */

/* Columns of the operand that the bias's gradient is sums of, to where b lies else. Both
 * blocks of a cluster have as many stages, which both empty for both. */
template <typename T>
__device__ __forceinline__ void fetch_strip(const gx_wgmma_layer &layer, int column,
                                            const memory &shared, turn &now)
{
    constexpr int EACH = LINE<T>;

    for (int64_t from = 0; from < layer.k; from += EACH) {
        const uint32_t barrier = shared.is_full(now.stage);

        gx_barrier_wait(shared.is_empty(now.stage), now.parity ^ 1);
        gx_barrier_expect(barrier, STAGE_BYTES - A_BYTES);
#pragma unroll
        for (int i = 0; i < COLUMNS / EACH; i++)
            gx_copy_box(shared.b(now.stage) + i * EACH * LINE_BYTES, &layer.sums, barrier,
                        column + i * EACH, (int)from);
        now.advance();
    }
}

template <typename T>
__device__ __forceinline__ void fetch_all(const gx_wgmma_update &u, const memory &shared)
{
    turn now;

    for (walk<tile_pairs> at(u); at.goes_on(); at.go_on())
        fetch_tile<true, IS_TF32<T>, LINE<T>>(at.its().maps, at.its().k, shared,
                                              tile_at(at), now);
    for (walk<sum_pairs> at(u); at.goes_on(); at.go_on())
        fetch_strip<T>(at.its(), strip_at(at), shared, now);
    await_readers(shared, now);
}

/* --- updates --- */

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
update_tile(const gx_wgmma_layer &layer, place at, const uint4 *gradient, crew of,
            const gx_update_settings &s, const step_factors &f)
{
    constexpr int N = PIECE<T>;

#pragma unroll 1
    for (int e = of.thread; e < TILE_ELEMENTS / N; e += AT_ONCE * of.n) {
        piece<T, N> some[AT_ONCE];
        uint4 g[AT_ONCE];

#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const neighbours<N> its(at, e + x * of.n, layer.m, layer.n);

            if (its.is_there) {
                some[x].load(layer.weight, (int64_t)its.row * layer.n + its.column);
                g[x] = __ldcg(gradient + e + x * of.n);
            }
        }
#pragma unroll
        for (int x = 0; x < AT_ONCE; x++) {
            const neighbours<N> its(at, e + x * of.n, layer.m, layer.n);

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

/* By the warps that multiply nothing. */
template <typename T>
__device__ __forceinline__ void update_all(const gx_wgmma_update &u,
                                           const hand_over &over)
{
    const step_factors f(u);
    unsigned parity = 0;

    for (walk<tile_pairs> at(u); at.goes_on(); at.go_on(), parity ^= 1) {
        await_tile(over, parity);
        update_tile<T>(at.its(), tile_at(at), static_cast<const uint4 *>(over.tile),
                       at.is_last() ? crew_of_last(u) : crew::few(), u.settings, f);
        gx_barrier_arrive_here(over.is_taken);
    }
}

/* --- products of tf32 --- */

/* Each warp reads `a` for itself, and tells for itself that it has. */
constexpr int LEAVING_TF32 = 2 * WARPGROUP / 32;

template <typename T>
__device__ __forceinline__ void leave_as(const memory &shared, int s)
{
    const unsigned lane = threadIdx.x % 32;

    if constexpr (IS_TF32<T>) {
        __syncwarp();
        if (lane < CLUSTER)
            gx_barrier_arrive(shared.is_empty(s), lane);
        __syncwarp();
    } else {
        leave(shared, s);
    }
}

/* What a lane has of `a` at 16 of k: half of a stage. */
struct of_a {
    uint32_t at[2][4];

    /* From the stage's boxes of 32 rows, the warpgroup's first of which is there. */
    __device__ __forceinline__ void load(uint32_t boxes, int part)
    {
        const int thread = (int)threadIdx.x % WARPGROUP, t = thread % 4;
        const uint32_t box = boxes + thread / 64 * LINE<float> * LINE_BYTES;
        const uint32_t pair =
            box + t * LINE_BYTES + (piece_of_lane() ^ t) * 16 + thread / 4 % 2 * 8;

#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                uint2 rows;

                gx_load_shared(rows, (pair ^ upper * 64) +
                                         (part * 16 + i * 8 + upper * 4) * LINE_BYTES);
                at[i][2 * upper] = rows.x;
                at[i][2 * upper + 1] = rows.y;
            }
        }
    }

    __device__ __forceinline__ void multiply(float (&sum)[COLUMNS / 2], uint64_t b,
                                             bool is_first) const
    {
        gx_begin_products();
        gx_multiply_64x256_tf32(sum, at[0], b, !is_first);
        gx_multiply_64x256_tf32(sum, at[1], b + 32 / 16, 1);
        gx_commit_products();
    }
};

/* Registers of one half of a stage are loaded while the tensor cores read those of the
 * other. A stage is left when the products of the next one have begun. */
__device__ __forceinline__ void multiply_tf32_tile(float (&sum)[COLUMNS / 2], int k,
                                                   const memory &shared, int half,
                                                   turn &now)
{
    int before = 0;
    of_a first, second;

    for (int64_t from = 0; from < k; from += LINE<float>) {
        const uint32_t boxes = shared.a(now.stage) + half * (ROWS / 2) * LINE_BYTES;
        const uint64_t b = operand_at(shared.b(now.stage), 16);

        gx_barrier_wait(shared.is_full(now.stage), now.parity);
        first.load(boxes, 0);
        first.multiply(sum, b, from == 0);
        gx_wait_products<1>();
        if (from > 0)
            leave_as<float>(shared, before);
        second.load(boxes, 1);
        second.multiply(sum, b + 64 / 16, false);
        gx_wait_products<1>();
        before = now.stage;
        now.advance();
    }
    gx_wait_products<0>();
    gx_take_products(sum);
    leave_as<float>(shared, before);
}

/* --- gradients of biases, by the warps that multiplied --- */

/* Warps that add up the columns of a box, and its rows that they read at once. */
template <typename T> constexpr int SHARERS = MULTIPLIERS / 32 / (COLUMNS / LINE<T>);
template <typename T> constexpr int ROWS_AT_ONCE = 4 * SHARERS<T>;

/* A piece of the strip in some rows of the stage. The copy engine has put piece number i
 * of a row where i ^ row % 8 would be. */
template <typename T>
__device__ __forceinline__ void add_stage(uint32_t stage, float (&sum)[PIECE<T>])
{
    constexpr int TIMES = LINE<T> / ROWS_AT_ONCE<T>;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first = warp % SHARERS<T> * 4 + lane / 8;
    const uint32_t box = stage + warp / SHARERS<T> * LINE<T> * LINE_BYTES;
    bits_of<T, PIECE<T>> bits[TIMES];

#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        const int row = first + i * ROWS_AT_ONCE<T>;

        gx_load_shared(bits[i], box + row * LINE_BYTES + (lane % 8 ^ row % 8) * 16);
    }
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        float v[PIECE<T>];

        unpack<T>(v, bits[i]);
#pragma unroll
        for (int x = 0; x < PIECE<T>; x++)
            sum[x] += v[x];
    }
}

/* Of every column the sums of each of the sharing warps, of so many columns behind those
 * of the one before. */
template <typename T>
__device__ __forceinline__ void gather_sums(float (&sum)[PIECE<T>], float *sums)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *to = sums + warp % SHARERS<T> * COLUMNS + warp / SHARERS<T> * LINE<T>;

#pragma unroll
    for (int x = 0; x < PIECE<T>; x++) {
        sum[x] += __shfl_xor_sync(0xffffffffu, sum[x], 8);
        sum[x] += __shfl_xor_sync(0xffffffffu, sum[x], 16);
        if (lane < 8)
            to[lane * PIECE<T> + x] = sum[x];
    }
    gx_sync_threads(MULTIPLIERS);
}

template <typename T>
__device__ __forceinline__ void update_bias(const gx_wgmma_layer &layer, int i,
                                            float gradient, const gx_update_settings &s,
                                            const step_factors &f)
{
    const float of_one[1] = { gradient };
    const bits_of<T, 1> bits = pack<T>(of_one);
    piece<T, 1> one;

    one.load(layer.bias, i);
    one.finish(bits, s, f);
    one.store(layer.bias, i);
    if (layer.dbias != nullptr)
        memcpy(static_cast<T *>(layer.dbias) + i, &bits, sizeof bits);
}

template <typename T>
__device__ __forceinline__ void
sum_strip(const gx_wgmma_update &u, const gx_wgmma_layer &layer, int column,
          const memory &shared, float *sums, turn &now, const step_factors &f)
{
    const int i = (int)threadIdx.x;
    float sum[PIECE<T>] = {};

    for (int64_t from = 0; from < layer.k; from += LINE<T>) {
        gx_barrier_wait(shared.is_full(now.stage), now.parity);
        gx_may_delay();
        add_stage<T>(shared.b(now.stage), sum);
        gx_sync_threads(MULTIPLIERS); /* all have read it; of 16 bits one warp tells so */
        leave_as<T>(shared, now.stage);
        now.advance();
    }
    gather_sums<T>(sum, sums);
    if (column + i < layer.n_bias) {
        float all = sums[i];

#pragma unroll
        for (int s = 1; s < SHARERS<T>; s++)
            all += sums[s * COLUMNS + i];
        update_bias<T>(layer, column + i, all, u.settings, f);
    }
    gx_sync_threads(MULTIPLIERS); /* the next strip's are written to the same place */
}
static_assert(MULTIPLIERS == COLUMNS && SHARERS<__half> == 2 && SHARERS<float> == 1, "");

/* --- the warpgroups that multiply --- */

template <typename T>
__device__ __forceinline__ void multiply_all(const gx_wgmma_update &u,
                                             const memory &shared, const hand_over &over,
                                             int half, float *sums)
{
    const crew of_last = crew_of_last(u);
    place last;
    turn now;
    int layer = 0;
    unsigned parity = 1; /* of a barrier that nobody has arrived at */

    for (walk<tile_pairs> at(u); at.goes_on(); at.go_on(), parity ^= 1) {
        float sum[COLUMNS / 2];

        if constexpr (IS_TF32<T>)
            multiply_tf32_tile(sum, at.its().k, shared, half, now);
        else
            multiply_tile<T, true, false>(sum, at.its().k, shared, half, now);
        hand_tile<T>(sum, over, half, parity);
        last = tile_at(at);
        layer = at.layer;
    }
    const step_factors f(u);

    if (of_last.thread >= 0) {
        await_tile(over, parity);
        update_tile<T>(u.layer[layer], last, static_cast<const uint4 *>(over.tile),
                       of_last, u.settings, f);
    }
    for (walk<sum_pairs> at(u); at.goes_on(); at.go_on())
        sum_strip<T>(u, at.its(), strip_at(at), shared, sums, now, f);
}

/* --- the kernel --- */

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
    wgmma_update_kernel(const __grid_constant__ gx_wgmma_update u)
{
    gx_begin_kernel();
    GX_DYNAMIC_SHARED(unsigned char, bytes);
    const division at(bytes);
    const hand_over over(at.hand_over, u.gradients, sizeof(T));
    const int warpgroup = (int)threadIdx.x / WARPGROUP;

    over.open();
    open_barriers(at.shared, IS_TF32<T> ? LEAVING_TF32 : 2);
    if (warpgroup == 2) {
        gx_fewer_registers<FINISHING_REGISTERS>();
        if (threadIdx.x == 2 * WARPGROUP)
            fetch_all<T>(u, at.shared);
        else if (crew::few().thread >= 0)
            update_all<T>(u, over);
    } else {
        gx_more_registers<HANDING_REGISTERS>();
        multiply_all<T>(u, at.shared, over, warpgroup,
                        reinterpret_cast<float *>(at.rest));
    }
    close_cluster();
}

const void *find(gx_tile_math math)
{
    switch (math) {
    case GX_TILE_TF32:
        return gx_kernel(wgmma_update_kernel<float>);
    case GX_TILE_BF16:
        return gx_kernel(wgmma_update_kernel<__nv_bfloat16>);
    default:
        return gx_kernel(wgmma_update_kernel<__half>);
    }
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
