/* Gradients before the update, over tables of tensors. */
#ifndef GX_GRADIENT_KERNELS_H
#define GX_GRADIENT_KERNELS_H

#include "cuda_call.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements that a block takes at a time; of a norm, those of one partial sum. */
enum { GX_ACCUMULATE_CHUNK = 2048, GX_NORM_CHUNK = 16384 };

typedef struct gx_accumulate_entry {
    const void *grad;
    float *sum;
    int64_t n;
    int64_t first_chunk; /* chunks of the entries before it */
} gx_accumulate_entry;

typedef struct gx_grad_norm_entry {
    const void *grad;
    int64_t n;
    int64_t first_chunk;
} gx_grad_norm_entry;

enum {
    GX_ACCUMULATE_ENTRIES = GX_TABLE_BYTES / sizeof(gx_accumulate_entry),
    GX_NORM_ENTRIES = GX_TABLE_BYTES / sizeof(gx_grad_norm_entry)
};

typedef struct gx_accumulate_table {
    int n_entries;
    gx_dtype dtype;
    bool wide; /* every pointer allows four elements at once */
    int32_t n; /* steps of one sum */
    int64_t n_chunks;
    const int32_t *step;
    gx_accumulate_entry entry[GX_ACCUMULATE_ENTRIES]; /* none of them empty */
} gx_accumulate_table;

typedef struct gx_grad_norm_table {
    int n_entries;
    gx_dtype dtype;
    bool wide;
    int64_t n_chunks;
    double *partial; /* a sum of squares for each chunk */
    gx_grad_norm_entry entry[GX_NORM_ENTRIES];
} gx_grad_norm_table;

/* What follows: the sums of all tables, and the norm. */
typedef struct gx_grad_norm_end {
    const double *partial;
    int64_t n_partial;
    const float *before; /* NULL: none */
    float *out;          /* NULL: not asked for */
    float *factor;       /* NULL: not asked for */
    double max_norm;
} gx_grad_norm_end;

gx_status gx_accumulate_load(const gx_accumulate_table *table,
                             gx_error *err) GX_MUST_CHECK;
gx_status gx_accumulate_launch(const gx_accumulate_table *table, gx_ctx *ctx,
                               gx_error *err) GX_MUST_CHECK;
gx_status gx_grad_norm_load(const gx_grad_norm_table *table, gx_error *err) GX_MUST_CHECK;
gx_status gx_grad_norm_launch(const gx_grad_norm_table *table, gx_ctx *ctx,
                              gx_error *err) GX_MUST_CHECK;
gx_status gx_grad_norm_end_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_grad_norm_end_launch(const gx_grad_norm_end *end, gx_ctx *ctx,
                                  gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
