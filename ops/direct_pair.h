/* Both gradients of a layer in one launch: see direct_pair.cu. */
#ifndef GX_DIRECT_PAIR_H
#define GX_DIRECT_PAIR_H

#include "gemm_tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tiles of the data gradient: pieces of 16 rows, pieces of 8 columns, warps that share k.
 * Of the weight gradient, one by each warp: pieces of 16 rows; two of 8 columns. */
#define GX_PAIR_LIST(X) \
    X(0, 1, 2, 8, 2)    \
    X(1, 1, 2, 8, 1)    \
    X(2, 2, 2, 8, 2)    \
    X(3, 2, 2, 8, 1)    \
    X(4, 1, 2, 16, 2)   \
    X(5, 2, 2, 16, 2)   \
    X(6, 2, 1, 16, 2)
enum { GX_N_PAIRS = 7 };

/* data = dz op(w), and GX_TAIL_NONE or _BACKWARD without dbias behind it; weight = the
 * product of an operand that is turned and one that is not, and GX_TAIL_NONE or
 * _SUMS_OF_* beside it. dz is data.a, and the operand b of the weight gradient where
 * data.trans_b, else a. Neither reads what the other writes. */
typedef struct gx_pair {
    gx_tile data, weight;
    int shape;     /* of GX_PAIR_LIST */
    bool steady_w; /* no kernel since the last full edge has written data.b */
} gx_pair;

/* Rows and columns of the tiles, warps of a block, and what memory it takes. */
typedef struct gx_pair_shape {
    int rows, columns;               /* of the data gradient */
    int weight_rows, weight_columns; /* of the weight gradient */
    int warps;
    size_t shared_bytes;
} gx_pair_shape;

/* Lives as long as the program. */
const gx_pair_shape *gx_pair_shape_at(int shape);
/* There is a kernel for the types, the layout and the k of these. */
bool gx_pair_has(const gx_pair *pair);
/* Blocks of a launch: those of the data gradient come first. */
int64_t gx_pair_data_blocks(const gx_pair *pair);
int64_t gx_pair_weight_blocks(const gx_pair *pair);

/* One kernel; m, n and k of both are at least 1. */
gx_status gx_pair_load(const gx_pair *pair, gx_error *err) GX_MUST_CHECK;
gx_status gx_pair_launch(const gx_pair *pair, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
