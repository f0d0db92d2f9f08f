/* Our product kernel for small matrices: see direct.cuh. */
#ifndef GX_DIRECT_H
#define GX_DIRECT_H

#include "gemm_tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of 16 rows, pieces of 8 columns, warps that share k, and of how many neighbours
 * along k a thread holds a line at once: 8 are 16 bytes of a 16-bit type, and want a k
 * and rows along it that are multiples of them. */
#define GX_DIRECT_LIST(X) \
    X(0, 1, 2, 16, 4)     \
    X(1, 1, 2, 8, 4)      \
    X(2, 2, 2, 16, 4)     \
    X(3, 2, 2, 8, 4)      \
    X(4, 4, 2, 16, 4)     \
    X(5, 2, 4, 8, 4)      \
    X(6, 2, 4, 4, 4)      \
    X(7, 2, 4, 2, 4)      \
    X(8, 2, 4, 1, 4)      \
    X(9, 2, 1, 16, 4)     \
    X(10, 4, 1, 16, 4)    \
    X(11, 1, 2, 8, 8)     \
    X(12, 2, 2, 8, 8)     \
    X(13, 2, 4, 8, 8)
enum { GX_N_DIRECT = 14 };

/* There is a kernel for tile->shape. Without `a` turned a tile of many elements for few
 * warps has none; lines of 8 have none for tf32 and with `a` turned. */
bool gx_direct_has(const gx_tile *tile);

/* Rows and columns of a tile of this shape. */
int gx_direct_rows(int shape);
int gx_direct_columns(int shape);
size_t gx_direct_shared_bytes(int shape);

/* As gx_tile_load and gx_tile_launch, for tile->shape of GX_DIRECT_LIST: math is tf32,
 * bf16 or f16, not both operands are turned, sums of an operand go with `a` turned alone,
 * and there are no partial column sums. m, n and k are at least 1. `steady_b`: no kernel
 * since the last full edge has written b. */
gx_status gx_direct_load(const gx_tile *tile, gx_error *err) GX_MUST_CHECK;
gx_status gx_direct_launch(const gx_tile *tile, bool steady_b, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;

/* The kernel of direct_sums.cu for a tile with sums of an operand, and NULL for a shape
 * that has none. */
const void *gx_direct_sums_kernel(const gx_tile *tile);

#ifdef __cplusplus
}
#endif
#endif
