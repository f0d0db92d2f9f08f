/* A small weight gradient and the update that it is for, in one kernel. */
#ifndef GX_DIRECT_UPDATE_H
#define GX_DIRECT_UPDATE_H

#include "direct.h"
#include "optimizer_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of 16 rows, pieces of 8 columns, warps that share k. */
#define GX_DIRECT_UPDATE_LIST(X) \
    X(0, 2, 4, 4)                \
    X(1, 2, 4, 2)                \
    X(2, 1, 2, 8)
enum { GX_N_DIRECT_UPDATES = 3 };

typedef struct gx_direct_update {
    int m, n, k;
    const void *a, *b;    /* [k, m] and [k, n]: the gradient is their product over k */
    void *out;            /* the gradient, where something else reads it; or NULL */
    gx_update_one update; /* of the product, rounded to its type; its grad is not read */
    gx_update_one bias;   /* of another parameter; n 0: none. Same rule, types, step and
                             scale */
    bool steady;          /* all that the updates read but their gradients may be loaded
                             ahead of the wait */
    int shape;
} gx_direct_update;

int gx_direct_update_rows(int shape);
int gx_direct_update_columns(int shape);
size_t gx_direct_update_shared_bytes(int shape);

/* Neither has a master or is one of several steps; the state of a 16-bit parameter is of
 * its type or f32. */
gx_status gx_direct_update_load(const gx_direct_update *update,
                                gx_error *err) GX_MUST_CHECK;
gx_status gx_direct_update_launch(const gx_direct_update *update, gx_ctx *ctx,
                                  gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
