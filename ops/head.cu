/* The loss, its derivative and the sums of its columns over an x that is there; and what
 * all heads share on the host. */
#include "head.cuh"

namespace
{

constexpr int MEMORY_THREADS = 512, MEMORY_COLUMNS = 32;

/* Of rows of a softmax: as many as there are registers for. */
template <int PER>
constexpr int row_threads = PER > 16 ? MEMORY_THREADS / 2 : MEMORY_THREADS;

/* All rows of a tile at once, or so many that the block's threads are busy. */
template <typename T, int LANES, int PER>
__global__ void __launch_bounds__(row_threads<PER>, 1)
    head_rows_kernel(const __grid_constant__ gx_head g, const int tile_rows)
{
    GX_DYNAMIC_SHARED(float, shared);
    constexpr int AT_ONCE = row_threads<PER> / LANES;
    const int first = (int)threadIdx.x / LANES, top = (int)blockIdx.y * tile_rows;
    const int left = (int)g.rows - top < tile_rows ? (int)g.rows - top : tile_rows;
    const int columns = (int)g.columns;
    const T *x = static_cast<const T *>(g.x) + (int64_t)(top + first) * columns +
                 gx_lane_of<LANES>();
    const int32_t *labels = g.labels + top + first;
    column_sums<LANES, PER> sums;
    float row[PER];
    double total = 0.0;

    sums.start();
    gx_find_ahead(x, labels);
    gx_begin_kernel();
    gx_load_row<LANES>(row, x, first < left ? columns : 0);
    int label = first < left ? *labels : 0;
    const double share = softmax_share(g);

    for (int r = first;;) {
        total += finish_row<T, LANES>(g, row, top + r, r < left, label, share);
        sums.add(row);
        r += AT_ONCE;
        if (r - first >= left)
            break;
        x += (int64_t)AT_ONCE * columns;
        labels += AT_ONCE;
        gx_load_row<LANES>(row, x, r < left ? columns : 0);
        label = r < left ? *labels : 0;
    }
    leave_rows<T, row_threads<PER> / 32>(g, total, sums, share, shared);
    finish<T>(g, share, shared);
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
    finish<T>(g, g.share, shared);
}

template <typename T>
__global__ void __launch_bounds__(MEMORY_THREADS, 1)
    head_points_kernel(const __grid_constant__ gx_head g, const int tile_rows)
{
    GX_DYNAMIC_SHARED(float, shared);
    __shared__ double sums[32];

    gx_begin_kernel();
    points_of_memory<T>(g, tile_rows, shared, sums);
}

static const void *memory_kernel(const gx_head *head)
{
    return gx_with_type(head->dtype, [&](auto of) -> const void * {
        using T = typename decltype(of)::type;

        if (!head->is_softmax)
            return gx_kernel(head_points_kernel<T>);
#define ROWS_KERNEL(lanes, per)       \
    if (head->columns <= lanes * per) \
        return gx_kernel(head_rows_kernel<T, lanes, per>);
        GX_SOFTMAX_SHAPES(ROWS_KERNEL)
#undef ROWS_KERNEL
        return nullptr;
    });
}

static int threads_of(const gx_head *head)
{
    if (head->source == GX_HEAD_MEMORY && head->is_softmax) {
#define THREADS_OF(lanes, per)        \
    if (head->columns <= lanes * per) \
        return row_threads<per>;
        GX_SOFTMAX_SHAPES(THREADS_OF)
#undef THREADS_OF
    }
    return 32 * gx_head_shape_of(head->source, head->shape).warps;
}

/* Floats of a row in shared memory, for as many columns as its kernel has. */
static size_t row_width(const gx_head *head)
{
#define ROW_WIDTH(lanes, per)         \
    if (head->columns <= lanes * per) \
        return lanes * per;
    GX_SOFTMAX_SHAPES(ROW_WIDTH)
#undef ROW_WIDTH
    return 0;
}

static const void *instance(const gx_head *head)
{
    switch (head->source) {
    case GX_HEAD_TENSOR:
        return gx_head_tensor_kernel(head);
    case GX_HEAD_PLAIN:
        return gx_head_plain_kernel(head);
    default:
        return memory_kernel(head);
    }
}

static const char *kernel_name(const gx_head *head)
{
    return head->source != GX_HEAD_MEMORY ? "head_kernel"
           : head->is_softmax             ? "head_rows_kernel"
                                          : "head_points_kernel";
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
    const size_t floats =
        head->is_softmax ? (size_t)threads_of(head) / 32 * row_width(head) : 0;

    return (floats > MEMORY_THREADS ? floats : MEMORY_THREADS) * sizeof(float);
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
                     dim3((unsigned)threads_of(head)), gx_head_shared_bytes(head), args,
                     err);
}
