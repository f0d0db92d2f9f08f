/* Element by element over rows and columns, with operands that may be broadcast. */
#ifndef GX_ELEMENTWISE_KERNELS_H
#define GX_ELEMENTWISE_KERNELS_H

#include "grid.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A grid as kernels walk it: out is [rows, columns] without a gap, an operand steps by 1
 * or by 0 along the columns. */
typedef struct gx_span {
    int64_t rows, columns; /* each at least 1 */
    bool wide;             /* every pointer and row allows vectors */
    bool along[GX_GRID_OPERANDS];
    int n; /* sizes that the rows are made of, innermost first */
    int64_t size[GX_MAX_RANK];
    int64_t step[GX_GRID_OPERANDS][GX_MAX_RANK];
} gx_span;

gx_span gx_span_of(const gx_grid *grid);
/* Every row may begin a vector of n elements, those of the pointers allowing it; the rest
 * of a single row is done one by one. */
bool gx_span_allows(const gx_span *span, int n);

typedef enum gx_binary_op { GX_BINARY_ADD, GX_BINARY_SUB, GX_BINARY_MUL } gx_binary_op;

typedef struct gx_binary {
    gx_span span;
    gx_binary_op op;
    gx_dtype dtype;
    const void *operand[2];
    void *out;
} gx_binary;

/* out = factor x, x being operand 0; x NULL is 1 everywhere. */
typedef struct gx_spread {
    gx_span span;
    gx_dtype from, to;
    float factor;
    const void *x;
    void *out;
} gx_spread;

gx_status gx_binary_load(const gx_binary *binary, gx_error *err) GX_MUST_CHECK;
gx_status gx_binary_launch(const gx_binary *binary, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;
/* Elements that a vector of a spread has. */
int gx_spread_vector(gx_dtype from, gx_dtype to);
gx_status gx_spread_load(const gx_spread *spread, gx_error *err) GX_MUST_CHECK;
gx_status gx_spread_launch(const gx_spread *spread, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
