/* Metrics beside the loss. */
#ifndef GX_METRIC_KERNELS_H
#define GX_METRIC_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_accuracy {
    int64_t rows, classes;
    gx_dtype dtype;
    const void *logits;
    const int32_t *labels;
    float *out;
    /* when there is more than one block: */
    double *partial;  /* [blocks] */
    unsigned *ticket; /* 0; the kernel leaves it so */
    int32_t blocks;
    int64_t k; /* topk; 0: accuracy */
} gx_accuracy;

enum { GX_METRIC_THREADS = 256 };

gx_status gx_accuracy_load(const gx_accuracy *accuracy, gx_error *err) GX_MUST_CHECK;
gx_status gx_accuracy_launch(const gx_accuracy *accuracy, gx_ctx *ctx,
                             gx_error *err) GX_MUST_CHECK;

gx_status gx_perplexity_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_perplexity_launch(const float *loss, float *out, gx_ctx *ctx,
                               gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
