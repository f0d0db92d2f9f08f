/* What stands around a model's own ops: a warp copies a row of the batch, and one warp
 * ends the step. */
#include "kernel.cuh"
#include "shuffle.h"
#include "step_kernels.h"

namespace
{

constexpr int WARPS = 8;
constexpr int64_t MAX_GRID_X = INT32_MAX;

static_assert(sizeof(gx_gather_table) <= 4096, "a kernel takes 4 KB of arguments");

/* Zeros where the list names a row that the data lacks; nothing is read then. */
template <typename T>
__device__ __forceinline__ void copy_row(const gx_gather_entry &e, int64_t from,
                                         int64_t to)
{
    const T *source = static_cast<const T *>(e.data) + from * e.units;
    T *target = static_cast<T *>(e.out) + to * e.units;
    const bool known = from >= 0 && from < e.n_rows;

#pragma unroll 4
    for (int64_t i = threadIdx.x; i < e.units; i += 32)
        target[i] = known ? source[i] : T{};
}

static __global__ void __launch_bounds__(32 * WARPS)
    gather_kernel(const __grid_constant__ gx_gather_table table)
{
    gx_begin_kernel();
    const gx_gather_entry &e = table.entry[blockIdx.y];
    const int64_t sample = *table.sample;
    const uint32_t epoch = (uint32_t)*table.epoch;

    for (int64_t j = (int64_t)blockIdx.x * WARPS + threadIdx.y; j < table.batch;
         j += (int64_t)gridDim.x * WARPS) {
        int64_t at = sample + j < table.n_index ? sample + j : table.n_index - 1;

        if (table.shuffle)
            at = gx_shuffle_index((uint32_t)at, (uint32_t)table.n_index, table.seed,
                                  epoch);
        const int64_t row = table.index[at];

        if (e.unit_bytes == 16)
            copy_row<uint4>(e, row, j);
        else if (e.unit_bytes == 4)
            copy_row<uint32_t>(e, row, j);
        else
            copy_row<uint16_t>(e, row, j);
    }
}

static __global__ void __launch_bounds__(32)
    step_end_kernel(const __grid_constant__ gx_step_end g)
{
    const int lane = threadIdx.x;
    const bool logs =
        lane < GX_MAX_LOGGED && lane < g.log_columns && g.value[lane] != nullptr;

    gx_begin_kernel();
    /* All that is read is on its way at once. */
    const int32_t step = *g.step, done = *g.sample, epoch = *g.epoch;
    const float value = logs ? *g.value[lane] : 0.0f;

    if (logs) {
        const uint32_t row = (uint32_t)step % (uint32_t)g.log_rows;

        g.log[row * g.log_columns + lane] = value;
    }
    __syncwarp();
    if (lane != 0)
        return;
    *g.step = step + 1;
    if (g.total <= 0)
        return;
    const int64_t sample = done + g.batch;
    const bool ends = g.total - sample < g.need;

    *g.sample = ends ? 0 : (int32_t)sample;
    if (ends)
        *g.epoch = epoch + 1;
}

} // namespace

extern "C" gx_status gx_gather_load(gx_error *err)
{
    return gx_load_kernel((const void *)gather_kernel, 0, "gather_kernel", err);
}

extern "C" gx_status gx_gather_launch(const gx_gather_table *table, gx_ctx *ctx,
                                      gx_error *err)
{
    void *args[] = { (void *)table };

    return gx_launch(
        ctx, "gather_kernel", (const void *)gather_kernel,
        dim3(gx_grid_for(table->batch, WARPS, MAX_GRID_X), (unsigned)table->n_entries),
        dim3(32, WARPS), 0, args, err);
}

extern "C" gx_status gx_step_end_load(gx_error *err)
{
    return gx_load_kernel((const void *)step_end_kernel, 0, "step_end_kernel", err);
}

extern "C" gx_status gx_step_end_launch(const gx_step_end *end, gx_ctx *ctx,
                                        gx_error *err)
{
    void *args[] = { (void *)end };

    return gx_launch(ctx, "step_end_kernel", (const void *)step_end_kernel, dim3(1),
                     dim3(32), 0, args, err);
}
