/* Copies between strided places: what transpose, reshape, slice and concat come down to.
 * Pure C; move.cu runs it. */
#ifndef GX_MOVE_H
#define GX_MOVE_H

#include "host_device.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One axis of a copy: how many, and how far apart there and here. */
typedef struct gx_move_axis {
    int64_t size, from, to;
    uint32_t magic; /* division by size, see gx_move_divide */
    int32_t shift;
} gx_move_axis;

/* n units; the last axis moves fastest. */
typedef struct gx_move_part {
    const void *from; /* NULL: zeros */
    void *to;
    int64_t n;
    int32_t rank;
    gx_move_axis axis[GX_MAX_RANK];
} gx_move_part;

enum { GX_MOVE_PARTS = 8 };

/* Parts that do not overlap, copied in one launch. */
typedef struct gx_move {
    int32_t n_parts;
    int32_t unit_bytes; /* 16, 8, 4 or 2 */
    bool narrow;        /* every part has less than 2^31 units */
    gx_move_part part[GX_MOVE_PARTS];
} gx_move;

/* The quotient of t < 2^31 by the axis' size, of a move that is narrow. */
static inline GX_HOST_DEVICE uint32_t gx_move_divide(const gx_move_axis *axis, uint32_t t)
{
    const uint32_t high = (uint32_t)(((uint64_t)t * axis->magic) >> 32);

    return (high + t) >> axis->shift;
}

/* An axis for gx_move_add, strides in elements. */
static inline gx_move_axis gx_move_along(int64_t size, int64_t from, int64_t to)
{
    const gx_move_axis axis = { size, from, to, 0, 0 };

    return axis;
}

/* Starts with no parts; sizes and strides are in elements until gx_move_finish. */
void gx_move_start(gx_move *move);
/* Adds a part, the axes as short as they can be written; none where it has no elements.
 */
void gx_move_add(gx_move *move, const void *from, void *to, int rank,
                 const gx_move_axis *axis);
/* Chooses the widest unit that every part allows. */
void gx_move_finish(gx_move *move, gx_dtype dtype);

/* The largest n of a part; 0: there is nothing to do. */
static inline int64_t gx_move_units(const gx_move *move)
{
    int64_t most = 0;

    for (int p = 0; p < move->n_parts; p++)
        most = move->part[p].n > most ? move->part[p].n : most;
    return most;
}

/* --- what each op's call is, as a copy --- */

void gx_move_transpose(const gx_call *call, gx_move *move);
void gx_move_reshape(const gx_call *call, gx_move *move); /* nothing, if it is a view */
void gx_move_slice(const gx_call *call, gx_move *move);
void gx_move_slice_bwd(const gx_call *call, gx_move *move);
void gx_move_concat(const gx_call *call, gx_move *move);

/* --- transposes, tile by tile --- */

/* Matrices of rows x columns, each to be stored as columns x rows; strides in elements.
 * Along a row x goes on by 1, along a column of out. */
typedef struct gx_turn {
    int64_t rows, columns;
    int64_t row_from, column_to;
    int64_t row_tiles, column_tiles, n_tiles; /* of all matrices; at least 1 */
    int32_t n_axes;                           /* that the matrices are counted by */
    int32_t element_bytes;                    /* 4 or 2 */
    bool pairs;   /* two elements are read, and written, at once */
    bool to_tf32; /* floats are rounded: only products of tf32 read them */
    gx_move_axis axis[GX_MAX_RANK];
    const void *from;
    void *to;
} gx_turn;

/* Elements of a side of a tile. */
static inline int64_t gx_turn_edge(const gx_turn *turn)
{
    return turn->pairs ? 64 : 32;
}

/* Fills in the tiles and `pairs`, from everything else. Nothing is empty. */
void gx_turn_finish(gx_turn *turn);

/* The axes of a transpose, those that stay together as one, sizes of 1 left out; strides
 * in elements. Returns how many. */
int gx_transpose_axes(const gx_call *call, gx_move_axis axis[GX_MAX_RANK]);

#ifdef __cplusplus
}
#endif
#endif
