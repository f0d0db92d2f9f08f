/* Sums, means, maxima and their derivatives in double, row by row of the grid. */
#include <math.h>
#include <stdlib.h>

#include "axes.h"
#include "grid.h"
#include "reduce.h"

typedef void (*fold)(const double *x, double *out, int64_t n, int64_t out_step);

static void fold_sum(const double *x, double *out, int64_t n, int64_t out_step)
{
    for (int64_t i = 0; i < n; i++)
        out[i * out_step] += x[i];
}

/* NaN stays. */
static void fold_max(const double *x, double *out, int64_t n, int64_t out_step)
{
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > out[i * out_step] || isnan(x[i]))
            out[i * out_step] = x[i];
    }
}

static void fold_all(const gx_grid *grid, const double *x, double *out, int64_t n_out,
                     double start, fold one)
{
    const int64_t rows = gx_grid_rows(grid), columns = gx_grid_columns(grid);

    for (int64_t i = 0; i < n_out; i++)
        out[i] = start;
    for (int64_t r = 0; r < rows; r++)
        one(x + r * columns, out + gx_grid_row(grid, 1, r), columns,
            gx_grid_step(grid, 1));
}

gx_status gx_sum_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_REDUCE_X], *out = &call->arg[GX_REDUCE_OUT];
    const gx_grid grid = gx_grid_reduce(
        x->rank, x->dim, gx_axes_mask(&call->attr[GX_REDUCE_AXIS], x->rank));

    (void)err;
    fold_all(&grid, x->data, out->data, gx_count(out), 0.0, fold_sum);
    return GX_OK;
}

gx_status gx_mean_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_REDUCE_X], *out = &call->arg[GX_REDUCE_OUT];
    const int64_t n = gx_count(out);
    double *mean = out->data;

    GX_TRY(gx_sum_reference(call, err));
    for (int64_t i = 0; i < n; i++)
        mean[i] /= (double)(gx_count(x) / n);
    return GX_OK;
}

gx_status gx_max_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_REDUCE_X], *out = &call->arg[GX_REDUCE_OUT];
    const gx_grid grid = gx_grid_reduce(
        x->rank, x->dim, gx_axes_mask(&call->attr[GX_REDUCE_AXIS], x->rank));

    (void)err;
    fold_all(&grid, x->data, out->data, gx_count(out), -INFINITY, fold_max);
    return GX_OK;
}

gx_status gx_sum_to_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_SHAPED_X], *out = &call->arg[GX_SHAPED_OUT];
    const gx_grid grid = gx_grid_broadcast(x->rank, x->dim, x, out);

    (void)err;
    fold_all(&grid, x->data, out->data, gx_count(out), 0.0, fold_sum);
    return GX_OK;
}

/* out = factor x, x being operand k of the grid; NULL is 1. */
static void spread(const gx_grid *grid, int k, const double *x, double factor,
                   double *out)
{
    const int64_t rows = gx_grid_rows(grid), columns = gx_grid_columns(grid);
    const int64_t step = gx_grid_step(grid, k);

    for (int64_t r = 0; r < rows; r++) {
        const double *from = x ? x + gx_grid_row(grid, k, r) : NULL;

        for (int64_t i = 0; i < columns; i++)
            out[r * columns + i] = factor * (from ? from[i * step] : 1.0);
    }
}

static gx_status total_bwd(const gx_call *call, bool is_mean)
{
    const gx_tensor *dx = &call->arg[GX_REDUCE_BWD_DX];
    const unsigned mask = gx_axes_mask(&call->attr[GX_REDUCE_BWD_AXIS], dx->rank);
    const gx_grid grid = gx_grid_reduce(dx->rank, dx->dim, mask);
    const double n = is_mean ? (double)gx_axes_count(mask, dx->rank, dx->dim) : 1.0;

    spread(&grid, 1,
           gx_has(call, GX_REDUCE_BWD_DY) ? call->arg[GX_REDUCE_BWD_DY].data : NULL,
           1.0 / n, dx->data);
    return GX_OK;
}

gx_status gx_sum_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return total_bwd(call, false);
}

gx_status gx_mean_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return total_bwd(call, true);
}

gx_status gx_broadcast_to_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_SHAPED_X], *out = &call->arg[GX_SHAPED_OUT];
    const gx_grid grid = gx_grid_broadcast(out->rank, out->dim, x, out);

    (void)err;
    spread(&grid, 0, x->data, 1.0, out->data);
    return GX_OK;
}

/* Twice through x: to count what equals the maximum, and to share dy. Where the maximum
 * is NaN nothing does, and 0 / 0 is NaN. */
gx_status gx_max_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_MAX_BWD_X], *y = &call->arg[GX_MAX_BWD_Y];
    const gx_grid grid = gx_grid_reduce(
        x->rank, x->dim, gx_axes_mask(&call->attr[GX_MAX_BWD_AXIS], x->rank));
    const int64_t rows = gx_grid_rows(&grid), columns = gx_grid_columns(&grid);
    const int64_t step = gx_grid_step(&grid, 1);
    const double *dy = gx_has(call, GX_MAX_BWD_DY) ? call->arg[GX_MAX_BWD_DY].data : NULL;
    const double *from = x->data, *most = y->data;
    double *dx = call->arg[GX_MAX_BWD_DX].data;
    double *equals = calloc((size_t)gx_count(y) + 1, sizeof *equals);

    if (!equals)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = gx_grid_row(&grid, 1, r);

        for (int64_t i = 0; i < columns; i++)
            equals[at + i * step] += from[r * columns + i] == most[at + i * step];
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = gx_grid_row(&grid, 1, r);

        for (int64_t i = 0; i < columns; i++) {
            const int64_t o = at + i * step;

            dx[r * columns + i] = (from[r * columns + i] == most[o] ? 1.0 : 0.0) *
                                  (dy ? dy[o] : 1.0) / equals[o];
        }
    }
    free(equals);
    return GX_OK;
}
