/* What reports that draw rows of slices have in common: one clock for all sides, a window
 * that holds so many records and no more, and rows in which nothing overlaps. */
#ifndef GX_REPORT_SLICES_H
#define GX_REPORT_SLICES_H

#include "report.h"

/* --- clock and window --- */

/* Of each side: the time that the report shows as 0, so that the first activities of all
 * sides that are counted stand at one place and nothing lies before 0. What starts at
 * `cut` after it or later is left out. */
typedef struct gx_report_window {
    int64_t origin[2];
    int64_t cut; /* INT64_MAX: everything is shown */
    int64_t left_out;
} gx_report_window;

/* Events that a report needs for one record, at most. */
typedef struct gx_report_weights {
    int64_t activity, call, launch, range, gap, overhead;
} gx_report_weights;

/* The longest window for which all sides together need `most` events or fewer. Overhead
 * without weight moves neither its origin nor its cut. */
gx_report_window gx_report_window_of(const gx_report *report, int64_t most,
                                     const gx_report_weights *weights);
/* After the origin of the side. An end that is open is that of the last activity or call.
 */
int64_t gx_report_time(const gx_report_window *window, size_t side, int64_t time);
bool gx_report_shows(const gx_report_window *window, size_t side, int64_t start);
/* The last time that the trace knows, whether or not by its overhead. */
int64_t gx_report_last(const gx_trace *trace, bool with_overhead);

/* --- slices --- */

typedef struct gx_slice {
    int64_t row[3]; /* what tells its row from others */
    int64_t start, end;
    size_t index; /* of its record */
} gx_slice;

typedef struct gx_slices {
    gx_slice *items;
    size_t n, capacity;
} gx_slices;

gx_status gx_slices_add(gx_slices *slices, const gx_slice *slice,
                        gx_error *err) GX_MUST_CHECK;
/* By row, start, the longer first, and record. */
void gx_slices_sort(gx_slices *slices);
void gx_slices_free(gx_slices *slices);
/* How many slices from `from` on agree with it in the first `n_keys` of their rows. */
size_t gx_slices_run(const gx_slices *slices, size_t from, int n_keys);

/* Of `n` activities of a device those that launches of graphs ran: a slice a launch,
 * around all of them, with their number as its index; sorted. */
gx_status gx_slices_replays(const gx_trace *trace, const gx_slice *activities, size_t n,
                            gx_slices *replays, gx_error *err) GX_MUST_CHECK;

/* --- lanes --- */

enum { GX_LANES = 64, GX_LANE_DEPTH = 64 };

/* Places slices that come in the order of gx_slices_sort. */
typedef struct gx_lanes {
    bool nest; /* one may lie wholly within another */
    size_t n;
    size_t depth[GX_LANES];
    int64_t end[GX_LANES][GX_LANE_DEPTH]; /* of what is open there */
} gx_lanes;

void gx_lanes_start(gx_lanes *lanes, bool nest);
/* Its lane, from 0. Lanes beyond GX_LANES hold one slice each. */
size_t gx_lanes_place(gx_lanes *lanes, int64_t start, int64_t end);

#endif
