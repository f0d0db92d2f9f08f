/* What `gexec profile` found: an untraced timing and a trace of each mode. Every report
 * prints from this alone. */
#ifndef GX_REPORT_H
#define GX_REPORT_H

#include <gexec/ceilings.h>
#include <gexec/profile.h>

#include "compare.h"

/* One kernel, copy or fill of an op. */
typedef struct gx_profile_kernel {
    const char *name;
    gx_trace_kind kind;
    int64_t calls; /* in all traced steps */
    int64_t total_ns, median_ns, p95_ns;
    int32_t grid[3], block[3]; /* 0: not known */
    int32_t registers;         /* GX_TRACE_NONE */
    int64_t shared_bytes;      /* GX_TRACE_NONE */
} gx_profile_kernel;

/* A unit of the plan: one op, or a group that one alternative runs. */
typedef struct gx_profile_op {
    const char *name;        /* "fc1"; "" for work that no unit claims */
    const char *alternative; /* "" there */
    gx_phase phase;
    int lane;
    size_t unit; /* of the plan; SIZE_MAX there */
    gx_profile_kernel *kernel;
    size_t n_kernels;
    int64_t calls;               /* kernels, copies and fills in all traced steps */
    int64_t total_ns;            /* of all traced steps */
    double share;                /* of the sum over ops */
    int64_t median_ns, p95_ns;   /* a step: its kernels together */
    double flops, bytes;         /* a step; < 0: n/a */
    double flop_rate, byte_rate; /* a second; < 0: n/a */
    double floor_s;              /* < 0: n/a */
    double of_floor;             /* floor / median, 0 to 1; < 0: n/a */
    gx_bound bound;
} gx_profile_op;

/* Figures of one step, ns. */
typedef struct gx_profile_step {
    int64_t start, end; /* first activity's start, last one's end */
    int64_t busy, idle, n_kernels;
    int64_t
        step_gap; /* idle between this step and the next; -1 for the last of a window */
    gx_trace_share gaps[GX_GAP_CLASSES]; /* inside the step */
} gx_profile_step;

typedef struct gx_profile_pass {
    gx_mode mode;      /* GX_MODE_EAGER or GX_MODE_GRAPH */
    char missing[256]; /* why there is no trace; "" where there is one */
    gx_trace *trace;   /* finished; only the traced steps */
    gx_trace_figures *figures;
    gx_profiler_losses losses;
    int64_t expected; /* nodes, or launches, x steps: what the trace should hold */
    int64_t found;
    gx_profile_step *step;
    size_t n_steps;
    gx_profile_op *op; /* in the order of the plan, unclaimed work last */
    size_t n_ops;
    double lane_overlap_ns; /* a step: time in which both lanes ran; < 0: one lane */
} gx_profile_pass;

/* Something worth telling, in words, with the figure behind it and what to do. */
typedef struct gx_profile_pattern {
    const char *name; /* "host-bound launches" */
    char found[256];
    char advice[256];
} gx_profile_pattern;

enum { GX_PROFILE_PATTERNS = 8 };

typedef struct gx_profile {
    gx_compare timing;       /* its session has graph, plan and device */
    gx_profile_pass pass[2]; /* eager, graph */
    bool has_ceilings;
    gx_ceilings ceilings;
    gx_profile_pattern pattern[GX_PROFILE_PATTERNS];
    size_t n_patterns;
} gx_profile;

/* One trace as a report shows it; without a profile, as of `gexec nsys`, only that. */
typedef struct gx_report_side {
    const char *title; /* "eager" */
    const gx_trace *trace;
    const gx_trace_figures *figures;
} gx_report_side;

typedef struct gx_report {
    const char *title; /* the model's or the file's name */
    gx_report_side side[2];
    size_t n_sides;
    const gx_profile *profile; /* NULL: traces alone */
} gx_report;

/* --- report_chrome.c: Chrome trace JSON, for ui.perfetto.dev --- */

/* Writes through a temporary file, as it goes: memory does not grow with the events.
 * Beyond `most_events` (0: one million) what is left out is counted in the file's
 * metadata and told through `left_out`. */
gx_status gx_report_chrome(const gx_report *report, const char *path, int64_t most_events,
                           int64_t *left_out, gx_error *err) GX_MUST_CHECK;

/* --- report_html.c: one file that needs no network --- */

gx_status gx_report_html(const gx_report *report, const char *path,
                         gx_error *err) GX_MUST_CHECK;

#endif
