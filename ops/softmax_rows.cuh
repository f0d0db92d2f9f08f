/* The loss of a row of a softmax and its derivative, in registers: LANES neighbours share
 * a row, and of each of them element i is column threadIdx.x % LANES + LANES i. */
#ifndef GX_SOFTMAX_ROWS_CUH
#define GX_SOFTMAX_ROWS_CUH

#include "kernel.cuh"

/* LANES and elements of each for rows of up to as many classes as their product. Few
 * lanes are soon done with what they exchange. */
#define GX_SOFTMAX_SHAPES(X) \
    X(4, 4)                  \
    X(8, 16)                 \
    X(32, 8)                 \
    X(32, 12)                \
    X(32, 16)                \
    X(32, 32)

template <int LANES> static __device__ __forceinline__ int gx_lane_of()
{
    return (int)(threadIdx.x % LANES);
}

/* Every one of LANES neighbours gets the same. */
template <int LANES> static __device__ __forceinline__ float gx_largest_of_lanes(float x)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

template <int LANES> static __device__ __forceinline__ float gx_sum_of_lanes(float x)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* The warp's sum of what threads have at the same place of their rows, for the first
 * row's threads. */
template <int LANES, typename T> static __device__ __forceinline__ T gx_sum_over_rows(T x)
{
#pragma unroll
    for (int step = 16; step >= LANES; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* `row`: the thread's first element. What is no element is below all others. */
template <int LANES, int PER, typename T>
static __device__ __forceinline__ void gx_load_row(float (&x)[PER], const T *row,
                                                   int columns)
{
#pragma unroll
    for (int i = 0; i < PER; i++)
        x[i] = gx_lane_of<LANES>() + LANES * i < columns ? gx_to_float(row[LANES * i])
                                                         : -INFINITY;
}

template <int LANES, int PER, typename T>
static __device__ __forceinline__ void gx_store_row(T *row, const float (&x)[PER],
                                                    int columns)
{
#pragma unroll
    for (int i = 0; i < PER; i++) {
        if (gx_lane_of<LANES>() + LANES * i < columns)
            gx_store(row + LANES * i, x[i]);
    }
}

/* The label's logit, for all lanes. A label that is not a class gives NaN. */
template <int LANES, int PER>
static __device__ __forceinline__ float gx_at_label(const float (&x)[PER], int label,
                                                    int columns)
{
    const bool is_class = label >= 0 && label < columns;
    const int at = is_class ? label : 0, group = (int)(threadIdx.x % 32) / LANES;
    float mine = 0.0f;

    /* One of them is all of the sum; a choice would become an index into memory. */
#pragma unroll
    for (int i = 0; i < PER; i++)
        mine += gx_lane_of<LANES>() + LANES * i == at ? x[i] : 0.0f;
    mine = __shfl_sync(0xffffffffu, mine, group * LANES + at % LANES);
    return is_class ? mine : NAN;
}

/* Returns the loss of the row, and leaves in x its derivative times dy; zeros of a row
 * that does not count. All threads of a warp come here. The label's term is kept apart
 * from the others': 1 - p would cancel where the label is nearly sure. */
template <int LANES, int PER>
static __device__ __forceinline__ float gx_softmax_row(float (&x)[PER], int columns,
                                                       int label, bool counts,
                                                       float smoothing, float dy)
{
    const int first = gx_lane_of<LANES>();
    float most = x[0], others = 0.0f, all = 0.0f, share = 0.0f;

#pragma unroll
    for (int i = 1; i < PER; i++)
        most = fmaxf(most, x[i]);
    most = gx_largest_of_lanes<LANES>(most);
    const float below = gx_at_label<LANES>(x, label, columns) - most, own = expf(below);

    if (smoothing > 0.0f) {
        const float part = gx_reciprocal((float)columns);

#pragma unroll
        for (int i = 0; i < PER; i++)
            all += first + LANES * i < columns ? x[i] - most : 0.0f;
        all = gx_sum_of_lanes<LANES>(all) * part;
        share = dy * smoothing * part;
    }
#pragma unroll
    for (int i = 0; i < PER; i++) {
        x[i] = expf(x[i] - most);
        others += first + LANES * i == label ? 0.0f : x[i];
    }
    others = gx_sum_of_lanes<LANES>(others);
    const float total = own + others, scale = dy * gx_reciprocal(total);
    const float of_label = share * (float)(columns - 1) - others * scale;

#pragma unroll
    for (int i = 0; i < PER; i++) {
        x[i] = first + LANES * i == label ? of_label : x[i] * scale - share;
        x[i] = counts ? x[i] : 0.0f;
    }
    const float log_total = log1pf(own == 1.0f ? others : total - 1.0f);

    return !counts ? 0.0f : log_total - (1.0f - smoothing) * below - smoothing * all;
}

#endif
