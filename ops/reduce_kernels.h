/* Reductions over some dimensions of a tensor, in a fixed order. */
#ifndef GX_REDUCE_KERNELS_H
#define GX_REDUCE_KERNELS_H

#include "elementwise_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gx_reduce_kind {
    GX_REDUCE_SUM,
    GX_REDUCE_MAX,
    GX_REDUCE_COUNT /* of what equals y */
} gx_reduce_kind;

/* Dimensions of one kind, innermost first: sizes, and elements of x from one to the next.
 * Half of GX_MAX_RANK at most, since neighbours of one kind are joined. */
typedef struct gx_sizes {
    int n;
    int64_t size[GX_MAX_RANK / 2], step[GX_MAX_RANK / 2];
} gx_sizes;

/* One kernel. By rows: the innermost dimension of x is reduced, and a team of threads has
 * an output. By columns: it is kept, and a thread has a column. */
typedef struct gx_reduce {
    gx_reduce_kind kind;
    bool by_columns, wide;
    gx_dtype from, to;
    int64_t n_out, n_reduced; /* n_out at least 1 */
    gx_sizes kept, reduced;
    int64_t splits,
        chunk; /* what is reduced, in parts of `chunk`: out is [splits, n_out] */
    int team;  /* by rows: threads of an output, up to 32 or the whole block */
    int block_x, block_y; /* threads of a block; by rows block_y is 1 */
    float divisor;        /* of a sum; 1 but for means */
    const void *x, *y;    /* y: GX_REDUCE_COUNT, [n_out] like x */
    void *out;
} gx_reduce;

/* dx = dy / count where x = y; dy NULL is 1. Operand 0 of the span is x, operand 1 y, and
 * so dy and count. */
typedef struct gx_max_bwd {
    gx_span span;
    gx_dtype dtype;
    const void *dy, *x, *y;
    const float *count;
    void *dx;
} gx_max_bwd;

enum { GX_REDUCE_THREADS = 1024 };

gx_status gx_reduce_load(const gx_reduce *reduce, gx_error *err) GX_MUST_CHECK;
gx_status gx_reduce_launch(const gx_reduce *reduce, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;
gx_status gx_max_bwd_load(const gx_max_bwd *backward, gx_error *err) GX_MUST_CHECK;
gx_status gx_max_bwd_launch(const gx_max_bwd *backward, gx_ctx *ctx,
                            gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
