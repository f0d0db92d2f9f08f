/* Events of a Chrome trace, one by one, and rows of them. */
#ifndef GX_CHROME_EVENTS_H
#define GX_CHROME_EVENTS_H

#include "json_out.h"
#include "report_slices.h"

enum { GX_ROW_KEYS = 3 }; /* of a slice: process, then thread or device and stream */

typedef struct gx_chrome {
    const gx_report *report;
    gx_report_window window;
    gx_json *json;
    int64_t n_ids, n_processes;
    /* Of the side that is being written. */
    size_t side;
    const gx_trace *trace;
    const gx_trace_activity *activities;
    const gx_trace_call *calls;
    const gx_trace_range *ranges;
    const gx_trace_overhead *overheads;
    size_t n_activities, n_calls, n_ranges, n_overheads;
    uint8_t *launched; /* a bit a call: work of it is shown */
    uint8_t *first;    /* a bit an activity: the earliest of its call */
} gx_chrome;

/* One row while it is written: its lanes become threads as they are needed. */
typedef struct gx_chrome_row {
    int64_t process;
    const char *title;
    int64_t place; /* among the rows of its process */
    gx_lanes lanes;
    int64_t *thread; /* by lane; the caller frees */
    size_t capacity;
} gx_chrome_row;

bool gx_bit(const uint8_t *bits, size_t i);
void gx_bit_set(uint8_t *bits, size_t i);
const char *gx_chrome_text(const gx_chrome *to, uint32_t text);

/* An event up to its time, left open. */
void gx_chrome_open(gx_chrome *to, const char *phase, const char *category,
                    const char *name, int64_t process, int64_t thread, int64_t time);
/* The same of a slice, with its length. */
void gx_chrome_open_slice(gx_chrome *to, const char *category, const char *name,
                          int64_t process, int64_t thread, const gx_slice *slice);
/* One end of the arrow from a call to the first work that it launched. */
void gx_chrome_flow(gx_chrome *to, bool is_end, size_t call, int64_t process,
                    int64_t thread, int64_t time);

/* Names a new process and returns its id: "WHAT 0 eager", without the number where it is
 * negative; `nth` of the processes that the trace has. */
int64_t gx_chrome_process(gx_chrome *to, const char *what, int64_t number, int64_t nth,
                          int64_t place);
void gx_chrome_row_start(gx_chrome_row *row, int64_t process, const char *title,
                         int64_t place, bool nest);
/* The thread for the next slice of the row, which is named when it is new. */
gx_status gx_chrome_place(gx_chrome *to, gx_chrome_row *row, const gx_slice *slice,
                          int64_t *thread, gx_error *err) GX_MUST_CHECK;

/* chrome_gpu.c: every device of the side, from its activities in order. */
gx_status gx_chrome_devices(gx_chrome *to, const gx_slices *activities,
                            gx_error *err) GX_MUST_CHECK;

#endif
