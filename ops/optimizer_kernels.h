/* One optimizer step over a table of tensors, which travels among the kernel's arguments.
 */
#ifndef GX_OPTIMIZER_KERNELS_H
#define GX_OPTIMIZER_KERNELS_H

#include "cuda_call.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements that a block takes at a time. */
enum { GX_OPTIMIZER_CHUNK = 2048 };

typedef struct gx_sgd_entry {
    void *param;
    const void *grad;
    int64_t n;
    int64_t first_chunk; /* chunks of the entries before it */
} gx_sgd_entry;

typedef struct gx_adamw_entry {
    void *param;
    const void *grad;
    void *m, *v;
    int64_t n;
    int64_t first_chunk;
} gx_adamw_entry;

enum {
    GX_SGD_ENTRIES = GX_TABLE_BYTES / sizeof(gx_sgd_entry),
    GX_ADAMW_ENTRIES = GX_TABLE_BYTES / sizeof(gx_adamw_entry)
};

typedef struct gx_sgd_table {
    int n_entries;
    gx_dtype dtype;
    bool wide; /* every pointer allows four elements at once */
    int64_t n_chunks;
    const float *lr;
    float weight_decay;
    gx_sgd_entry entry[GX_SGD_ENTRIES]; /* none of them empty */
} gx_sgd_table;

typedef struct gx_adamw_table {
    int n_entries;
    gx_dtype dtype;
    bool wide;
    int64_t n_chunks;
    const float *lr;
    const int32_t *step;
    double log_beta1, log_beta2; /* -HUGE_VAL for 0 */
    double weight_decay;
    float take1, keep2, take2; /* 1 - beta1, beta2, 1 - beta2 */
    float eps;
    gx_adamw_entry entry[GX_ADAMW_ENTRIES];
} gx_adamw_table;

gx_status gx_sgd_load(const gx_sgd_table *table, gx_error *err) GX_MUST_CHECK;
gx_status gx_sgd_launch(const gx_sgd_table *table, gx_ctx *ctx,
                        gx_error *err) GX_MUST_CHECK;
gx_status gx_adamw_load(const gx_adamw_table *table, gx_error *err) GX_MUST_CHECK;
gx_status gx_adamw_launch(const gx_adamw_table *table, gx_ctx *ctx,
                          gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
