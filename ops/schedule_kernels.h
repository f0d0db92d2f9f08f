/* The rates of all groups, by one small kernel. */
#ifndef GX_SCHEDULE_KERNELS_H
#define GX_SCHEDULE_KERNELS_H

#include "cuda_call.h"
#include "launch.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_schedule_entry {
    const float *lr;
    float *out;
} gx_schedule_entry;

enum { GX_SCHEDULE_ENTRIES = GX_TABLE_BYTES / sizeof(gx_schedule_entry) };

typedef struct gx_schedule_table {
    int n_entries;
    int kind;
    int32_t warmup, steps, every, accumulate;
    float end, factor;
    const int32_t *step;
    const int32_t *skipped; /* NULL: none */
    gx_schedule_entry entry[GX_SCHEDULE_ENTRIES];
} gx_schedule_table;

gx_status gx_schedule_load(gx_error *err) GX_MUST_CHECK;
gx_status gx_schedule_launch(const gx_schedule_table *table, gx_ctx *ctx,
                             gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
