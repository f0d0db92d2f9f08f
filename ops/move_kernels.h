/* Strided copies, and transposes through tiles in shared memory. */
#ifndef GX_MOVE_KERNELS_H
#define GX_MOVE_KERNELS_H

#include "launch.h"
#include "move.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Matrices of rows x columns, each to be stored as columns x rows; strides in elements.
 * Along a row x goes on by 1, along a column of out. */
typedef struct gx_turn {
    int64_t rows, columns;
    int64_t row_from, column_to;
    int64_t row_tiles, column_tiles, n_tiles; /* of all matrices; at least 1 */
    int32_t n_axes;                           /* that the matrices are counted by */
    int32_t element_bytes;                    /* 4 or 2 */
    bool pairs; /* two elements of 2 bytes are read, and written, at once */
    gx_move_axis axis[GX_MAX_RANK];
    const void *from;
    void *to;
} gx_turn;

/* Moves with something to do alone. */
gx_status gx_move_load(const gx_move *move, gx_error *err) GX_MUST_CHECK;
gx_status gx_move_launch(const gx_move *move, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
gx_status gx_turn_load(const gx_turn *tile, gx_error *err) GX_MUST_CHECK;
gx_status gx_turn_launch(const gx_turn *tile, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* Elements of a side of a tile. */
static inline int64_t gx_turn_edge(const gx_turn *tile)
{
    return tile->pairs ? 64 : 32;
}

#ifdef __cplusplus
}
#endif
#endif
