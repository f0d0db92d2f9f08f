/* What the tests of trace readers share. */
#ifndef GX_SUPPORT_TRACE_H
#define GX_SUPPORT_TRACE_H

#include "support.h"
#include "trace_file.h"

/* What is known of one device of a trace, in ns. */
typedef struct trace_truth {
    const char *file;
    size_t device; /* index among the figures */
    int64_t activities, span, busy, idle;
    int64_t n_gaps;
    int64_t largest[GX_TRACE_LARGEST]; /* 0: there are no more */
    int64_t stream, n_kernels, median;
    gx_trace_share gaps[GX_GAP_CLASSES];
} trace_truth;

/* Folders of traces, behind the root of the source tree; other people's stand beside it
 * and are not everywhere. */
#define OWN_TRACES "tests/data/traces"
#define OTHER_TRACES "../shared/fixtures"

/* Skips the test unless other people's traces are here. */
void trace_skip_unless_shared(void);

/* Reads FOLDER/NAME, an SQLite file that may be gzipped, or a Kineto trace. */
void trace_load(const char *folder, const char *name, gx_trace_file *file);

/* Fails the test unless figures are exactly what is known. */
void trace_check(const char *folder, const trace_truth *truth);

/* Activities of this name. */
int64_t trace_count_op(const gx_trace_file *file, const gx_trace_figures *figures,
                       const char *name);
/* The row of a range's sum; NULL. */
const gx_trace_range_sum *trace_range_sum(const gx_trace_file *file,
                                          const gx_trace_figures *figures,
                                          const char *name);

/* Figures with nothing special asked for. */
gx_trace_figures *trace_figures(const gx_trace_file *file);

#endif
