/* One cuBLASLt product over row-major matrices, planned once and launched often. */
#ifndef GX_LT_H
#define GX_LT_H

#include <cublasLt.h>

#include "launch.h"

/* out[m,n] = alpha op(a)[m,k] op(b)[k,n] + beta c, and then the epilogue along the rows
 * of out; so for each of a batch, whose out and c lie one after the other, m rows each.
 */
typedef struct gx_lt_product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    gx_dtype dtype; /* of all operands */
    gx_precision precision;
    const void *a, *b;
    int64_t n_batches;          /* 1: no batch */
    int64_t stride_a, stride_b; /* elements from one to the next; 0: all share it */
    /* elements from row to row, as stored; of c where there is one */
    int64_t lda, ldb, ldc, ld_out;
    float alpha, beta;
    const void *c; /* NULL: beta is 0 */
    void *out;
    cublasLtEpilogue_t epilogue;
    void *bias; /* [n], read or (gradient) written by the epilogue, [m] where that sums up
                   the rows of op(a) (BGRADB); else NULL */
    void *aux;  /* what the epilogue keeps or reads; else NULL */
    int64_t aux_ld;
    size_t skip_bytes; /* at the start of the workspace that the caller uses himself */
} gx_lt_product;

/* Fills everything of `prepared` but n_launches, which is set to -1: asks the heuristic
 * with the pointers' real alignments and takes candidate `algo_choice`, or checks the
 * pinned one. Of a product that takes long there are more candidates. GX_ERR_UNSUPPORTED
 * where the library has no algorithm. m, n and k are at least 1. */
gx_status gx_lt_prepare(const gx_lt_product *product, const gx_ctx *ctx,
                        gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
/* The pointers may differ from those at prepare, but not their alignment. */
gx_status gx_lt_launch(const gx_lt_product *product, const gx_prepared *prepared,
                       gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
void gx_lt_release(gx_prepared *prepared);

#endif
