/* The ranges of a program as a profiler keeps them: written by the program's thread,
 * read when the trace is made. */
#ifndef GX_PROFILE_RANGES_H
#define GX_PROFILE_RANGES_H

#include <gexec/trace.h>

#include "exec_model.h"

/* What the logs of a profiler share. Changed only while no program of its runs. */
typedef struct gx_range_feed {
    int64_t (*now)(const void *user); /* of the clock of the records */
    const void *user;
    bool recording; /* else only what lies in a capture is kept */
} gx_range_feed;

/* The ranges of one program. */
typedef struct gx_range_log gx_range_log;

/* Where a log says which unit ran: the range of thread and time that is group and lane.
 */
typedef struct gx_unit_span {
    int64_t thread, start, end;
    int32_t group, lane;
} gx_unit_span;

typedef struct gx_unit_spans {
    gx_unit_span *span;
    size_t n, room;
} gx_unit_spans;

/* Attaches a log to `exec`; names go into `trace`. It lives until gx_range_log_free, with
 * or without the program. */
gx_status gx_range_log_create(const gx_range_feed *feed, gx_exec *exec, gx_trace *trace,
                              gx_range_log **log, gx_error *err) GX_MUST_CHECK;
/* Detaches it from its program too. NULL is allowed. */
void gx_range_log_free(gx_range_log *log);
/* The program is freed. NULL is allowed. */
void gx_range_log_orphan(gx_range_log *log);
/* NULL when it was freed. */
gx_exec *gx_range_log_exec(const gx_range_log *log);
/* Steps and replays that were begun while recording. */
int64_t gx_range_log_launches(const gx_range_log *log);

/* Called on the way of a step: they take no lock, and allocate a block every few thousand
 * ranges. */
void gx_range_log_begin(gx_range_log *log, gx_named_range name);
void gx_range_log_begin_unit(gx_range_log *log, size_t unit);
void gx_range_log_end(gx_range_log *log);

/* Adds what was logged to the trace, and the units' ranges to `spans` (freed by the
 * caller). An error where memory had run out before. */
gx_status gx_range_log_tell(const gx_range_log *log, gx_trace *trace,
                            gx_unit_spans *spans, gx_error *err) GX_MUST_CHECK;

/* The thread as the system and CUPTI number it. */
int64_t gx_thread_id(void);

#endif
