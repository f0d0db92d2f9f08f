/* Losses and their derivatives, together or alone. */
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
    double *partial; /* [blocks], when there is more than one and out is wanted */
    int32_t blocks;
} gx_sce;

typedef struct gx_mse {
    int64_t n;
    gx_dtype dtype, target_dtype; /* the target is f32 or like x */
    bool wide;                    /* every pointer allows four elements at once */
    const void *x, *target;
    float *out;
    void *dx;
    const float *dy;
    double *partial;
    int32_t blocks;
} gx_mse;

/* A warp works on a row up to this many classes, above it a block. */
enum { GX_SCE_WARP_CLASSES = 1024, GX_LOSS_THREADS = 256 };

gx_status gx_sce_load(const gx_sce *sce, gx_error *err) GX_MUST_CHECK;
gx_status gx_sce_launch(const gx_sce *sce, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;
gx_status gx_mse_load(const gx_mse *mse, gx_error *err) GX_MUST_CHECK;
gx_status gx_mse_launch(const gx_mse *mse, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
