/* The batch's gather, and the counters and the log at the end of a step. */
#ifndef GX_STEP_KERNELS_H
#define GX_STEP_KERNELS_H

#include "cuda_call.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_gather_entry {
    const void *data;
    void *out;
    int64_t n_rows; /* of data */
    int64_t units;  /* of a row */
    int unit_bytes; /* 16, 4 or 2 */
} gx_gather_entry;

enum { GX_GATHER_ENTRIES = GX_TABLE_BYTES / sizeof(gx_gather_entry) };

typedef struct gx_gather_table {
    int n_entries;
    bool shuffle;
    uint64_t seed;
    int64_t batch, n_index;
    const int32_t *index, *sample, *epoch;
    gx_gather_entry entry[GX_GATHER_ENTRIES];
} gx_gather_table;

typedef struct gx_step_end {
    int32_t *step, *sample, *epoch;
    float *log;
    int64_t log_rows, log_columns;
    const float *value[GX_MAX_LOGGED]; /* NULL: nothing for that column */
    int64_t batch, total, need;
} gx_step_end;

gx_status gx_gather_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_gather_launch(const gx_gather_table *table, gx_ctx *ctx,
                           gx_error *err) GX_MUST_CHECK;
gx_status gx_step_end_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_step_end_launch(const gx_step_end *end, gx_ctx *ctx,
                             gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
