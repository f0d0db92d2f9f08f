/* Copies between strided places, the widest units that they allow; and transposes, tile
 * by tile through shared memory, so that reads and writes are both in order. */
#include "kernel.cuh"
#include "move_kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int UNITS = 4; /* of a thread, all read before the first is written */
constexpr int LANES = 32, ROWS = 8;

static_assert(sizeof(gx_move) <= 4096, "a kernel takes 4 KB of arguments");

/* Where unit t of a part stands, there and here. */
template <bool NARROW>
__device__ __forceinline__ void find(const gx_move_part &part, int64_t t, int64_t *from,
                                     int64_t *to)
{
    *from = *to = 0;
    for (int i = part.rank - 1; i > 0; i--) {
        const gx_move_axis &axis = part.axis[i];
        const int64_t next =
            NARROW ? (int64_t)gx_move_divide(&axis, (uint32_t)t) : t / axis.size;
        const int64_t rest = t - next * axis.size;

        *from += rest * axis.from;
        *to += rest * axis.to;
        t = next;
    }
    *from += t * part.axis[0].from;
    *to += t * part.axis[0].to;
}

template <typename T, bool NARROW>
__global__ void __launch_bounds__(THREADS) move_kernel(const __grid_constant__ gx_move g)
{
    gx_begin_kernel();
    const gx_move_part &part = g.part[blockIdx.y];
    const T *source = static_cast<const T *>(part.from);
    T *target = static_cast<T *>(part.to);
    const int64_t stride = (int64_t)gridDim.x * THREADS * UNITS;

    for (int64_t first = (int64_t)blockIdx.x * THREADS * UNITS + threadIdx.x;
         first < part.n; first += stride) {
        T value[UNITS];
        int64_t to[UNITS];

#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const int64_t t = first + u * THREADS;
            int64_t from = 0;

            value[u] = T{};
            if (t < part.n)
                find<NARROW>(part, t, &from, &to[u]);
            if (t < part.n && source != nullptr)
                value[u] = source[from];
        }
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            if (first + u * THREADS < part.n)
                target[to[u]] = value[u];
        }
    }
}

template <int BYTES> struct word_of;
template <> struct word_of<2> {
    using type = uint16_t;
};
template <> struct word_of<4> {
    using type = uint32_t;
};
template <> struct word_of<8> {
    using type = uint64_t;
};

/* In one instruction: of a vector the compiler would store each element. */
template <typename T, int N>
__device__ __forceinline__ void store_word(T *to, const gx_vector<T, N> &v)
{
    using word = typename word_of<sizeof v>::type;
    word bits;

    memcpy(&bits, &v, sizeof bits);
    *reinterpret_cast<word *>(to) = bits;
}

/* As it is stored, of what was read. */
template <typename T> __device__ __forceinline__ T as_stored(T bits, bool to_tf32)
{
    if constexpr (sizeof(T) == sizeof(float))
        return to_tf32 ? (T)gx_tf32(__uint_as_float(bits)) : bits;
    else
        return bits;
}

/* A tile's loads are all under way before the first of them is needed. */
template <typename T, int N>
__global__ void __launch_bounds__(LANES *ROWS)
    transpose_kernel(const __grid_constant__ gx_turn g)
{
    gx_begin_kernel();
    constexpr int EDGE = LANES * N, EACH = EDGE / ROWS;
    constexpr int PITCH = EDGE + 1; /* odd: a column lies in as many banks as a row */
    __shared__ T tile[EDGE * PITCH];
    const int x = threadIdx.x * N, y = threadIdx.y;

    for (int64_t i = blockIdx.x; i < g.n_tiles; i += gridDim.x) {
        int64_t matrix = i / g.column_tiles;
        const int64_t column = (i - matrix * g.column_tiles) * EDGE;
        const int64_t row_tile = matrix % g.row_tiles;
        const int64_t row = row_tile * EDGE;
        const T *from = static_cast<const T *>(g.from);
        T *to = static_cast<T *>(g.to);
        gx_vector<T, N> v[EACH];

        matrix /= g.row_tiles;
        for (int k = g.n_axes - 1; k >= 0; k--) {
            const int64_t next = matrix / g.axis[k].size;
            const int64_t rest = matrix - next * g.axis[k].size;

            from += rest * g.axis[k].from;
            to += rest * g.axis[k].to;
            matrix = next;
        }
        from += (row + y) * g.row_from + column + x;
        to += (column + y) * g.column_to + row + x;

#pragma unroll
        for (int k = 0; k < EACH; k++) {
            v[k] = {};
            if (row + y + k * ROWS < g.rows && column + x < g.columns)
                v[k] = gx_vector_at<N>(from + k * ROWS * g.row_from);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
#pragma unroll
            for (int e = 0; e < N; e++)
                tile[(y + k * ROWS) * PITCH + x + e] = as_stored(v[k].at[e], g.to_tf32);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (column + y + k * ROWS >= g.columns || row + x >= g.rows)
                continue;
#pragma unroll
            for (int e = 0; e < N; e++)
                v[k].at[e] = tile[(x + e) * PITCH + y + k * ROWS];
            store_word(to + k * ROWS * g.column_to, v[k]);
        }
        __syncthreads();
    }
}

template <typename T> const void *move_instance_of(const gx_move *move)
{
    return move->narrow ? gx_kernel(move_kernel<T, true>)
                        : gx_kernel(move_kernel<T, false>);
}

static const void *move_instance(const gx_move *move)
{
    switch (move->unit_bytes) {
    case 16:
        return move_instance_of<uint4>(move);
    case 8:
        return move_instance_of<uint2>(move);
    case 4:
        return move_instance_of<uint32_t>(move);
    default:
        return move_instance_of<uint16_t>(move);
    }
}

template <typename T> const void *turn_instance_of(const gx_turn *turn)
{
    return turn->pairs ? gx_kernel(transpose_kernel<T, 2>)
                       : gx_kernel(transpose_kernel<T, 1>);
}

static const void *turn_instance(const gx_turn *turn)
{
    return turn->element_bytes == 4 ? turn_instance_of<uint32_t>(turn)
                                    : turn_instance_of<uint16_t>(turn);
}

} // namespace

extern "C" gx_status gx_move_load(const gx_move *move, gx_error *err)
{
    return gx_load_kernel(move_instance(move), 0, "move_kernel", err);
}

extern "C" gx_status gx_move_launch(const gx_move *move, gx_ctx *ctx, gx_error *err)
{
    const unsigned blocks =
        gx_grid_for(gx_move_units(move), (int64_t)THREADS * UNITS, INT32_MAX);
    void *args[] = { (void *)move };

    return gx_launch(ctx, "move_kernel", move_instance(move),
                     dim3(blocks, (unsigned)move->n_parts), dim3(THREADS), 0, args, err);
}

extern "C" gx_status gx_turn_load(const gx_turn *turn, gx_error *err)
{
    return gx_load_kernel(turn_instance(turn), 0, "transpose_kernel", err);
}

extern "C" gx_status gx_turn_launch(const gx_turn *turn, gx_ctx *ctx, gx_error *err)
{
    void *args[] = { (void *)turn };

    return gx_launch(ctx, "transpose_kernel", turn_instance(turn),
                     dim3(gx_grid_for(turn->n_tiles, 1, INT32_MAX)), dim3(LANES, ROWS), 0,
                     args, err);
}
