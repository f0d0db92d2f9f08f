/* Rows of a table by index, and the sum of rows back into it. */
#ifndef GX_EMBEDDING_KERNELS_H
#define GX_EMBEDDING_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index that names no row of the table gives a row of NaN; nothing else is read. */
typedef struct gx_embedding {
    int64_t n, rows, columns; /* n indices */
    gx_dtype dtype;
    bool wide; /* every pointer and row allows four elements at once */
    const void *table;
    const int32_t *index;
    void *out;
} gx_embedding;

/* Two kernels. The first counts for each index how many are smaller, or equal and before
 * it: that is its place in order, and takes n^2 comparisons. The second finds the range
 * of each table row in that order and adds its rows of dy in it. */
typedef struct gx_embedding_bwd {
    int64_t n, rows, columns;
    gx_dtype dtype;
    bool wide;
    const void *dy;
    const int32_t *index;
    void *dtable;
    int32_t *sorted; /* [n]: the indices in order */
    int32_t *from;   /* [n]: where each of them stood */
} gx_embedding_bwd;

gx_status gx_embedding_load(const gx_embedding *embedding, gx_error *err) GX_MUST_CHECK;
gx_status gx_embedding_launch(const gx_embedding *embedding, gx_ctx *ctx,
                              gx_error *err) GX_MUST_CHECK;
gx_status gx_embedding_bwd_load(const gx_embedding_bwd *embedding,
                                gx_error *err) GX_MUST_CHECK;
gx_status gx_embedding_bwd_launch(const gx_embedding_bwd *embedding, gx_ctx *ctx,
                                  gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
