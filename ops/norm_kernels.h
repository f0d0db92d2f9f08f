/* Norms over the rows of a matrix, and back. */
#ifndef GX_NORM_KERNELS_H
#define GX_NORM_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GX_NORM_THREADS = 256, /* of a block with one team of up to as many, or several */
    GX_NORM_MOST_THREADS = 512,
    GX_NORM_HELD = 16 /* elements of a row that a thread keeps in registers */
};

/* How rows lie on threads: a team of whole warps has a row at a time, a block has several
 * teams. A row that no team can hold is read again for each pass. */
typedef struct gx_norm_layout {
    int vector;         /* elements read at once: 1, or 4 where every pointer allows it */
    int chunks;         /* vectors of a row that a thread holds: 1, 4 or 16; 0: none */
    int warps, threads; /* of a team, of a block */
} gx_norm_layout;

/* layer_norm, or rms_norm where `centred` is false; weight and bias may be NULL. */
typedef struct gx_norm {
    int64_t rows, columns;
    gx_dtype dtype;
    bool centred;
    float eps;
    gx_norm_layout layout;
    const void *x, *weight, *bias;
    void *out;
} gx_norm;

/* dx, dweight and dbias may be NULL. Each block adds up the column sums of its rows;
 * where they are summed apart the blocks leave them in `partial` and a second kernel adds
 * those. Without rows there are no blocks, and the second kernel writes zeros. */
typedef struct gx_norm_bwd {
    int64_t rows, columns;
    gx_dtype dtype;
    bool centred;
    float eps;
    gx_norm_layout layout;
    const void *x, *weight, *dy;
    void *dx, *dweight, *dbias;
    bool apart;
    float *partial; /* [blocks][2][columns]: dweight and dbias */
    int32_t blocks;
} gx_norm_bwd;

gx_status gx_norm_load(const gx_norm *norm, gx_error *err) GX_MUST_CHECK;
gx_status gx_norm_launch(const gx_norm *norm, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
gx_status gx_norm_bwd_load(const gx_norm_bwd *norm, gx_error *err) GX_MUST_CHECK;
gx_status gx_norm_bwd_launch(const gx_norm_bwd *norm, gx_ctx *ctx,
                             gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
