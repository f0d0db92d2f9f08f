/* Softmax cross-entropy and its derivative, together or alone. */
#ifndef GX_LOSS_KERNELS_H
#define GX_LOSS_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out and dlogits: NULL where not wanted; dy: NULL where it is 1. */
typedef struct gx_sce {
    int64_t rows, classes;
    gx_dtype dtype;
    const void *logits;
    const int32_t *labels;
    float *out;
    void *dlogits;
    const float *dy;
    bool ignores; /* rows whose label is `ignored` count for nothing */
    int32_t ignored;
    float smoothing;
    int64_t divisor; /* of the sum over rows */
    double share;    /* one over it */
    bool counts;     /* the rows that are left are what is divided by */
    double *counted; /* where a kernel of its own counts them; NULL: there is none */
    /* when there is more than one block and out is wanted: */
    double *partial;  /* [blocks] */
    unsigned *ticket; /* 0; the kernel leaves it so */
    int32_t blocks;
} gx_sce;

/* A warp or less works on a row up to this many classes, above it a block. */
enum { GX_SCE_WARP_CLASSES = 1024, GX_LOSS_THREADS = 256 };

/* Rows that a block of GX_LOSS_THREADS works on at once. */
int64_t gx_sce_rows_at_once(int64_t classes);

/* The loss alone by one block, which also counts: one kernel and no workspace. */
static inline bool gx_sce_is_one_pass(const gx_sce *sce)
{
    return sce->dlogits == NULL && sce->blocks == 1 &&
           sce->classes <= GX_SCE_WARP_CLASSES;
}

gx_status gx_sce_load(const gx_sce *sce, gx_error *err) GX_MUST_CHECK;
gx_status gx_sce_launch(const gx_sce *sce, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
