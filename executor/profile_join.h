/* From what was recorded to a trace: what belongs to the windows, each call once, each
 * activity with its unit. Pure C; knows nothing of CUPTI. */
#ifndef GX_PROFILE_JOIN_H
#define GX_PROFILE_JOIN_H

#include <gexec/trace.h>

#include "profile_ranges.h"

typedef struct gx_recorded_call {
    gx_trace_call call;
    bool driver; /* of the driver's interface, not of the runtime's */
} gx_recorded_call;

typedef struct gx_recorded {
    gx_trace_activity *activity;
    size_t n_activities, activities_room;
    gx_recorded_call *call;
    size_t n_calls, calls_room;
    gx_trace_overhead *overhead;
    size_t n_overheads, overheads_room;
} gx_recorded;

/* From start to stop; `waited`: when the device had ended what it had been given. */
typedef struct gx_window {
    int64_t start, end, waited;
} gx_window;

/* Adds to the trace, which has the nodes and the ranges already: the calls that began in
 * a window, less those of the driver that only serve one of the runtime; and the
 * activities that such a call caused or, where no call is known, that began in a window;
 * and the overhead in windows and ahead of one, with what of it lies in them.
 * Windows are in order of time. Sorts the arrays. */
gx_status gx_profile_join(gx_recorded *recorded, const gx_window *windows,
                          size_t n_windows, const gx_unit_spans *units, gx_trace *trace,
                          gx_error *err) GX_MUST_CHECK;

/* Calls of the trace that launch kernels or graphs. After gx_profile_join. */
int64_t gx_profile_launches(const gx_trace *trace);

#endif
