/* The loss, its derivative and the sums of its columns over an x that is there; and what
 * all heads share on the host. */
#include "head.cuh"

namespace
{

constexpr int MEMORY_THREADS = 512, MEMORY_COLUMNS = 32;

/* Softmax: dynamic shared memory is the tile, padded, at least a float a thread, and a
 * float a row. */
__host__ __device__ __forceinline__ int tile_ld(int64_t columns)
{
    return (int)columns | 1;
}

__host__ __device__ __forceinline__ int tile_floats(int rows, int64_t columns)
{
    const int floats = rows * tile_ld(columns);

    return floats < MEMORY_THREADS ? MEMORY_THREADS : floats;
}

template <typename T>
__device__ __forceinline__ void softmax_of_memory(const gx_head &g, int tile_rows,
                                                  float *tile, double *sums)
{
    const int columns = (int)g.columns, ld = tile_ld(columns);
    const int64_t row = (int64_t)blockIdx.y * tile_rows;
    const int left = g.rows - row < tile_rows ? (int)(g.rows - row) : tile_rows;
    const T *x = static_cast<const T *>(g.x) + row * columns;
    const int label = label_of(g, row, tile_rows);

#pragma unroll 4
    for (int e = threadIdx.x; e < left * columns; e += MEMORY_THREADS)
        tile[e / columns * ld + e % columns] = gx_to_float(x[e]);
    const double divisor = head_divisor(g, sums);

    __syncthreads();
    softmax_tile<T>(g, tile, ld, tile_rows, row, label, divisor,
                    tile + tile_floats(tile_rows, columns));
    finish<T>(g, divisor, tile);
}

template <typename T>
__device__ __forceinline__ void points_of_memory(const gx_head &g, int tile_rows,
                                                 float *shared, double *sums)
{
    constexpr int STEP = MEMORY_THREADS / MEMORY_COLUMNS;
    const int64_t column = (int64_t)blockIdx.x * MEMORY_COLUMNS;
    const int64_t c = column + threadIdx.x % MEMORY_COLUMNS;
    const int64_t row = (int64_t)blockIdx.y * tile_rows;
    const int64_t end = row + tile_rows < g.rows ? row + tile_rows : g.rows;
    const float scale = point_scale(g);
    float total = 0.0f, column_sum = 0.0f;

    if (c < g.columns) {
#pragma unroll 4
        for (int64_t r = row + threadIdx.x / MEMORY_COLUMNS; r < end; r += STEP) {
            const int64_t at = r * g.columns + c;

            column_sum += point_at<T>(g, at, gx_to_float(static_cast<const T *>(g.x)[at]),
                                      target_at<T>(g, at), scale, &total);
        }
    }
    leave_points<T, MEMORY_COLUMNS>(g, column, total, column_sum, shared, sums);
    finish<T>(g, (double)g.divisor, shared);
}

template <typename T>
__global__ void __launch_bounds__(MEMORY_THREADS, 1)
    head_memory_kernel(const __grid_constant__ gx_head g, const int tile_rows)
{
    GX_DYNAMIC_SHARED(float, shared);
    __shared__ double sums[32];

    gx_begin_kernel();
    if (g.is_softmax)
        softmax_of_memory<T>(g, tile_rows, shared, sums);
    else
        points_of_memory<T>(g, tile_rows, shared, sums);
}

static const void *instance(const gx_head *head)
{
    switch (head->source) {
    case GX_HEAD_TENSOR:
        return gx_head_tensor_kernel(head);
    case GX_HEAD_PLAIN:
        return gx_head_plain_kernel(head);
    default:
        return gx_with_type(head->dtype, [](auto of) {
            return gx_kernel(head_memory_kernel<typename decltype(of)::type>);
        });
    }
}

static const char *kernel_name(const gx_head *head)
{
    return head->source == GX_HEAD_MEMORY ? "head_memory_kernel" : "head_kernel";
}

static int64_t column_tiles(const gx_head *head)
{
    return head->is_softmax
               ? 1
               : gx_divide_up(head->columns,
                              gx_head_shape_of(head->source, head->shape).columns);
}

#define HEAD_SHAPE(i, rows, columns, warps) { rows, columns, warps },
const gx_head_shape memory_shapes[] = { GX_HEAD_MEMORY_LIST(HEAD_SHAPE) };
const gx_head_shape plain_shapes[] = { GX_HEAD_PLAIN_LIST(HEAD_SHAPE) };
const gx_head_shape tensor_shapes[] = { GX_HEAD_TENSOR_LIST(HEAD_SHAPE) };
#undef HEAD_SHAPE

} // namespace

extern "C" int gx_head_n_shapes(gx_head_source source)
{
    switch (source) {
    case GX_HEAD_TENSOR:
        return sizeof tensor_shapes / sizeof tensor_shapes[0];
    case GX_HEAD_PLAIN:
        return sizeof plain_shapes / sizeof plain_shapes[0];
    default:
        return sizeof memory_shapes / sizeof memory_shapes[0];
    }
}

extern "C" gx_head_shape gx_head_shape_of(gx_head_source source, int shape)
{
    switch (source) {
    case GX_HEAD_TENSOR:
        return tensor_shapes[shape];
    case GX_HEAD_PLAIN:
        return plain_shapes[shape];
    default:
        return memory_shapes[shape];
    }
}

extern "C" int64_t gx_head_row_tiles(const gx_head *head)
{
    return gx_divide_up(head->rows, gx_head_shape_of(head->source, head->shape).rows);
}

extern "C" int64_t gx_head_blocks(const gx_head *head)
{
    return gx_head_row_tiles(head) * column_tiles(head);
}

extern "C" size_t gx_head_shared_bytes(const gx_head *head)
{
    const gx_head_shape shape = gx_head_shape_of(head->source, head->shape);

    if (head->source != GX_HEAD_MEMORY)
        return (size_t)shape.warps * shape.rows * (shape.columns + 1) * sizeof(float);
    if (!head->is_softmax)
        return MEMORY_THREADS * sizeof(float);
    return (size_t)(tile_floats(shape.rows, head->columns) + shape.rows) * sizeof(float);
}

extern "C" gx_status gx_head_load(const gx_head *head, gx_error *err)
{
    return gx_load_kernel(instance(head), gx_head_shared_bytes(head), kernel_name(head),
                          err);
}

extern "C" gx_status gx_head_launch(const gx_head *head, gx_ctx *ctx, gx_error *err)
{
    const gx_head_shape shape = gx_head_shape_of(head->source, head->shape);
    int tile_rows = shape.rows;
    void *args[] = { (void *)head, &tile_rows };
    const dim3 grid((unsigned)column_tiles(head), (unsigned)gx_head_row_tiles(head));

    return gx_launch(ctx, kernel_name(head), instance(head), grid,
                     dim3((unsigned)(32 * shape.warps)), gx_head_shared_bytes(head), args,
                     err);
}
