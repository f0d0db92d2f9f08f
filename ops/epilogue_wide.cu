/* The way back through an epilogue for large matrices: the widest loads there are, and
 * column sums over the blocks of a cluster. */
#include "column_sums.cuh"
#include "epilogue_kernels.h"
#include "kernel.cuh"

namespace
{

constexpr int X = 16, Y = 32; /* threads along columns and rows */
constexpr int ROWS = 4;       /* that a thread should have before there are more blocks */

/* Of a thread's rows so many are on their way at once: two blocks have room on a
 * multiprocessor. Sums alone read one matrix, and keep nothing but them. */
constexpr int AT_ONCE = 2, AT_ONCE_ALONE = 8;
constexpr int MAX_GRID_Y = 65535;

/* COUNT rows of a thread, `step` elements apart; dx may be wanted only where HAS_DX is.
 * Their loads stand ahead of the first store, which may be to the same place, and so need
 * not wait for it. */
template <int COUNT, int ACT, bool HAS_DX, typename T, int N>
__device__ __forceinline__ void go_back(const gx_epilogue_bwd &e, int64_t at,
                                        int64_t step, float (&total)[N])
{
    const T *dy = static_cast<const T *>(e.dy), *saved = static_cast<const T *>(e.saved);
    T *dx = static_cast<T *>(e.dx);
    gx_vector<T, N> d[COUNT], s[COUNT];

#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        d[j] = gx_vector_at<N>(dy + at + j * step);
        s[j] = ACT == GX_ACT_NONE ? d[j] : gx_vector_at<N>(saved + at + j * step);
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        float v[N], of_saved[N];

        gx_to_floats(v, d[j]);
        gx_to_floats(of_saved, s[j]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            v[i] = gx_act_backward(ACT, v[i], of_saved[i]);
            total[i] += v[i];
        }
        if (HAS_DX && dx != nullptr)
            gx_store_widest(dx + at + j * step, v);
    }
}

template <typename T, int ACT>
__global__ void __launch_bounds__(X *Y, 2)
    epilogue_bwd_wide_kernel(const __grid_constant__ gx_epilogue_bwd e)
{
    constexpr int N = gx_widest<T>, WIDTH = X * N;
    __shared__ float sums[Y][WIDTH], blocks[GX_MAX_CLUSTER][WIDTH];
    T *dbias = static_cast<T *>(e.dbias);
    const int64_t c = (int64_t)blockIdx.x * WIDTH + threadIdx.x * N;
    const int64_t row_step = (int64_t)gridDim.y * Y;
    float total[N] = {};

    if (dbias != nullptr && gridDim.y > 1)
        gx_arrive_at_cluster(false);
    gx_begin_kernel();
    int64_t r = (int64_t)blockIdx.y * Y + threadIdx.y;

    if (c < e.columns) {
        const int64_t step = row_step * e.columns;

        if (ACT == GX_ACT_NONE && e.dx == nullptr) {
            for (; r + (AT_ONCE_ALONE - 1) * row_step < e.rows;
                 r += AT_ONCE_ALONE * row_step)
                go_back<AT_ONCE_ALONE, ACT, false, T>(e, r * e.columns + c, step, total);
        }
        for (; r + (AT_ONCE - 1) * row_step < e.rows; r += AT_ONCE * row_step)
            go_back<AT_ONCE, ACT, true, T>(e, r * e.columns + c, step, total);
        for (; r < e.rows; r += row_step)
            go_back<1, ACT, true, T>(e, r * e.columns + c, step, total);
    }
    if (dbias != nullptr)
        gx_store_column_sums<X, Y>(dbias, e.columns, total, sums, blocks);
}

static const void *instance(const gx_epilogue_bwd *e)
{
    return gx_with_type(e->dtype, [&](auto of) -> const void * {
        using T = typename decltype(of)::type;

        switch (e->act) {
#define WIDE_CASE(act, name, reads, flops) \
    case GX_ACT_##act:                     \
        return gx_kernel(epilogue_bwd_wide_kernel<T, GX_ACT_##act>);
            GX_ACT_LIST(WIDE_CASE)
#undef WIDE_CASE
        default:
            return nullptr;
        }
    });
}

} // namespace

extern "C" gx_status gx_epilogue_bwd_wide_load(const gx_epilogue_bwd *backward,
                                               gx_error *err)
{
    return gx_load_kernel(instance(backward), 0, "epilogue_bwd_wide_kernel", err);
}

extern "C" gx_status gx_epilogue_bwd_wide_launch(const gx_epilogue_bwd *backward,
                                                 gx_ctx *ctx, gx_error *err)
{
    const bool has_sums = backward->dbias != NULL;
    const int64_t width = (int64_t)X * gx_widest_of(backward->dtype);
    const unsigned blocks_x = gx_grid_for(backward->columns, width, INT32_MAX);
    const unsigned blocks_y = gx_grid_for(backward->rows, (int64_t)Y * ROWS,
                                          has_sums ? GX_MAX_CLUSTER : MAX_GRID_Y);
    void *args[] = { (void *)backward };

    return gx_launch_cluster(ctx, "epilogue_bwd_wide_kernel", instance(backward),
                             dim3(blocks_x, blocks_y), dim3(X, Y),
                             has_sums ? blocks_y : 1, 0, args, err);
}
