/* Losses of each element and their derivatives, together or alone. */
#ifndef GX_POINTWISE_LOSS_KERNELS_H
#define GX_POINTWISE_LOSS_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gx_pointwise_kind {
    GX_POINT_MSE,
    GX_POINT_L1,
    GX_POINT_BCE
} gx_pointwise_kind;

/* out and dx: NULL where not wanted; dy: NULL where it is 1. */
typedef struct gx_pointwise_loss {
    int64_t n;
    gx_pointwise_kind kind;
    gx_dtype dtype, target_dtype; /* the target is f32 or like x */
    bool wide;                    /* every pointer allows four elements at once */
    bool large;                   /* wide, by several blocks, and much */
    const void *x, *target;
    float *out;
    void *dx;
    const float *dy;
    int64_t divisor; /* of the sum over elements */
    double share;    /* one over it */
    /* when there is more than one block and out is wanted: */
    double *partial;  /* [blocks] */
    unsigned *ticket; /* 0; the kernel leaves it so */
    int32_t blocks;
} gx_pointwise_loss;

enum {
    GX_POINTWISE_THREADS = 256,
    GX_POINTWISE_PER_SM = 4 /* blocks of a large one that a multiprocessor holds */
};

gx_status gx_pointwise_loss_load(const gx_pointwise_loss *loss,
                                 gx_error *err) GX_MUST_CHECK;
gx_status gx_pointwise_loss_launch(const gx_pointwise_loss *loss, gx_ctx *ctx,
                                   gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
