/* What `gexec nsys` says, from one set of figures. */
#ifndef GX_NSYS_REPORT_H
#define GX_NSYS_REPORT_H

#include <stdio.h>

#include "args.h"
#include "nsys_predict.h"
#include "trace_file.h"

typedef struct gx_nsys_report {
    gx_trace_file file;
    gx_trace_figures *figures;
    gx_nsys_predicted predicted;
} gx_nsys_report;

/* Sums over the devices of a trace. */
typedef struct gx_nsys_totals {
    int64_t span, busy, idle, n_gaps;
    gx_trace_share gaps[GX_GAP_CLASSES], step_gaps[GX_GAP_CLASSES];
} gx_nsys_totals;

gx_nsys_totals gx_nsys_totals_of(const gx_trace_figures *figures);
/* Replays of which the trace holds no nodes, by what is recorded or what was asked for.
 */
bool gx_nsys_is_whole_graph(const gx_nsys_report *report);
/* Whether the trace has any calls: without them launches are not known, rather than none.
 */
bool gx_nsys_has_calls(const gx_nsys_report *report);
/* The GPU's name, or "GPU". */
const char *gx_nsys_gpu_name(const gx_trace_file *file, int64_t device);
const char *gx_nsys_kind_name(gx_trace_kind kind);
const char *gx_nsys_call_name(gx_trace_call_kind kind);
const char *gx_nsys_by_name(gx_trace_by by);

/* One trace, as asked for: --top rows of a table, under -v the tables that were not
 * found, under -q no remarks. */
void gx_nsys_print(const gx_nsys_report *report, const gx_args *args, FILE *out);
/* Two of them, before against after. */
void gx_nsys_print_pair(const gx_nsys_report *before, const gx_nsys_report *after,
                        FILE *out);

gx_status gx_nsys_write_json(const gx_nsys_report *reports, size_t n, const char *path,
                             gx_error *err) GX_MUST_CHECK;
gx_status gx_nsys_write_csv(const gx_nsys_report *reports, size_t n, const char *path,
                            gx_error *err) GX_MUST_CHECK;

#endif
