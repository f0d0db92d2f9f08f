/* One cuBLASLt product over row-major matrices, planned once and launched often. */
#ifndef GX_LT_H
#define GX_LT_H

#include <cublasLt.h>

#include "launch.h"

/* out[m,n] = op(a)[m,k] op(b)[k,n], and then the epilogue along the rows of out. */
typedef struct gx_lt_product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    gx_dtype dtype; /* of all operands */
    gx_precision precision;
    const void *a, *b;
    void *out;
    cublasLtEpilogue_t epilogue;
    void *bias; /* [n], read or (gradient) written by the epilogue; else NULL */
    void *aux;  /* what the epilogue keeps or reads; else NULL */
    int64_t aux_ld;
    size_t skip_bytes; /* at the start of the workspace that the caller uses himself */
} gx_lt_product;

/* Fills everything of `prepared` but n_launches, which is set to -1: asks the heuristic
 * with the pointers' real alignments and takes candidate `algo_choice`, or checks the
 * pinned one. GX_ERR_UNSUPPORTED where the library has no algorithm. m, n and k are at
 * least 1. */
gx_status gx_lt_prepare(const gx_lt_product *product, const gx_ctx *ctx,
                        gx_prepared *prepared, gx_error *err) GX_MUST_CHECK;
/* The pointers may differ from those at prepare, but not their alignment. */
gx_status gx_lt_launch(const gx_lt_product *product, const gx_prepared *prepared,
                       gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
void gx_lt_release(gx_prepared *prepared);

#endif
