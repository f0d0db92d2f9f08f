/* Index spaces of ops that broadcast or reduce: the sizes of the largest operand, and for
 * every operand a step along each of them, 0 where it is broadcast or summed up. */
#ifndef GX_GRID_H
#define GX_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <gexec/tensor.h>

enum { GX_GRID_OPERANDS = 2 };

/* Innermost first; sizes of 1 are left out, and neighbours that every operand walks
 * through without a jump are one. */
typedef struct gx_grid {
    int n;
    int64_t size[GX_MAX_RANK];
    int64_t step[GX_GRID_OPERANDS][GX_MAX_RANK];
} gx_grid;

static inline void gx_grid_add(gx_grid *grid, int64_t size,
                               const int64_t step[GX_GRID_OPERANDS])
{
    const int last = grid->n - 1;
    bool joins = last >= 0;

    if (size == 1)
        return;
    for (int k = 0; joins && k < GX_GRID_OPERANDS; k++)
        joins = step[k] == grid->step[k][last] * grid->size[last];
    if (joins) {
        grid->size[last] *= size;
        return;
    }
    grid->size[grid->n] = size;
    for (int k = 0; k < GX_GRID_OPERANDS; k++)
        grid->step[k][grid->n] = step[k];
    grid->n++;
}

/* Two operands over the shape [dim]; their own sizes are right-aligned with it, and equal
 * to it or 1. */
static inline gx_grid gx_grid_broadcast(int rank, const int64_t *dim, const gx_tensor *a,
                                        const gx_tensor *b)
{
    const gx_tensor *operand[GX_GRID_OPERANDS] = { a, b };
    int64_t stride[GX_GRID_OPERANDS] = { 1, 1 };
    gx_grid grid;

    memset(&grid, 0, sizeof grid);
    for (int i = rank - 1; i >= 0; i--) {
        int64_t step[GX_GRID_OPERANDS];

        for (int k = 0; k < GX_GRID_OPERANDS; k++) {
            const int at = i - (rank - operand[k]->rank);
            const int64_t own = at >= 0 ? operand[k]->dim[at] : 1;

            step[k] = own == 1 ? 0 : stride[k];
            stride[k] *= own;
        }
        gx_grid_add(&grid, dim[i], step);
    }
    return grid;
}

/* Operand 0 is a tensor of the shape [dim], operand 1 the same without the axes that the
 * bits of `mask` name. */
static inline gx_grid gx_grid_reduce(int rank, const int64_t *dim, unsigned mask)
{
    int64_t stride[GX_GRID_OPERANDS] = { 1, 1 };
    gx_grid grid;

    memset(&grid, 0, sizeof grid);
    for (int i = rank - 1; i >= 0; i--) {
        const bool reduced = mask >> i & 1;
        const int64_t step[GX_GRID_OPERANDS] = { stride[0], reduced ? 0 : stride[1] };

        stride[0] *= dim[i];
        stride[1] *= reduced ? 1 : dim[i];
        gx_grid_add(&grid, dim[i], step);
    }
    return grid;
}

/* Where the rows of a grid, all but its innermost size, begin in operand k. */
static inline int64_t gx_grid_row(const gx_grid *grid, int k, int64_t row)
{
    int64_t at = 0;

    for (int i = 1; i < grid->n; i++) {
        at += row % grid->size[i] * grid->step[k][i];
        row /= grid->size[i];
    }
    return at;
}

static inline int64_t gx_grid_columns(const gx_grid *grid)
{
    return grid->n > 0 ? grid->size[0] : 1;
}

static inline int64_t gx_grid_rows(const gx_grid *grid)
{
    int64_t rows = 1;

    for (int i = 1; i < grid->n; i++)
        rows *= grid->size[i];
    return rows;
}

/* Step of operand k along a row. */
static inline int64_t gx_grid_step(const gx_grid *grid, int k)
{
    return grid->n > 0 ? grid->step[k][0] : 0;
}

#endif
