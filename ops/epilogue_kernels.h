/* The steps of an epilogue over a matrix, and back. */
#ifndef GX_EPILOGUE_KERNELS_H
#define GX_EPILOGUE_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pre = scale x + bias + residual, out = act(pre); bias, residual and pre may be NULL. */
typedef struct gx_epilogue {
    int64_t rows, columns;
    gx_dtype dtype;
    bool wide; /* every pointer and row allows 16 bytes at once */
    int act;
    bool to_tf32; /* f32: out is rounded */
    const void *x, *bias;
    void *out, *pre;
    float scale;
    const void *residual;
} gx_epilogue;

/* dx = dy * act'(saved), dbias = column sums of dx; dx or dbias may be NULL. */
typedef struct gx_epilogue_bwd {
    int64_t rows, columns;
    gx_dtype dtype;
    bool wide; /* every pointer and row allows two elements at once */
    int act;
    const void *dy, *saved; /* y or pre, as GX_ACT_LIST says; else NULL */
    void *dx, *dbias;
} gx_epilogue_bwd;

gx_status gx_epilogue_load(const gx_epilogue *epilogue, gx_error *err) GX_MUST_CHECK;
gx_status gx_epilogue_launch(const gx_epilogue *epilogue, gx_ctx *ctx,
                             gx_error *err) GX_MUST_CHECK;
gx_status gx_epilogue_bwd_load(const gx_epilogue_bwd *backward,
                               gx_error *err) GX_MUST_CHECK;
gx_status gx_epilogue_bwd_launch(const gx_epilogue_bwd *backward, gx_ctx *ctx,
                                 gx_error *err) GX_MUST_CHECK;

/* The same for rows that are not few: columns is at least 1 and rows too, every pointer
 * and row allows 16 bytes at once, and column sums need a card with clusters. */
gx_status gx_epilogue_bwd_wide_load(const gx_epilogue_bwd *backward,
                                    gx_error *err) GX_MUST_CHECK;
gx_status gx_epilogue_bwd_wide_launch(const gx_epilogue_bwd *backward, gx_ctx *ctx,
                                      gx_error *err) GX_MUST_CHECK;

/* Way back in f32 that stores what would be dx transposed too, whether dx is wanted or
 * not: element (row, column) at turned[column * pitch + row], pitch a multiple of 4 and
 * not less than rows; what lies between a row's end and the next multiple of 4 is written
 * too. */
typedef struct gx_epilogue_turned {
    gx_epilogue_bwd back; /* as for the wide kernel */
    float *turned;
    int64_t pitch;
} gx_epilogue_turned;

gx_status gx_epilogue_turned_load(const gx_epilogue_turned *turned,
                                  gx_error *err) GX_MUST_CHECK;
gx_status gx_epilogue_turned_launch(const gx_epilogue_turned *turned, gx_ctx *ctx,
                                    gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
