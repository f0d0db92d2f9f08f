/* What `gexec profile` found: an untraced timing and a trace of each mode. Every report
 * prints from this alone. */
#ifndef GX_REPORT_H
#define GX_REPORT_H

#include <stdio.h>

#include <gexec/ceilings.h>
#include <gexec/profile.h>

#include "compare.h"

/* A cycle is wait, warmup and active steps; only the active ones are recorded. */
typedef struct gx_profile_schedule {
    int64_t wait, warmup, active, repeat;
} gx_profile_schedule;

/* A unit of the plan, as far as figures are made from it. */
typedef struct gx_profile_unit {
    char name[120];          /* "fc1" */
    const char *alternative; /* of the plan */
    gx_phase phase;
    int lane;
    double flops, bytes; /* a step */
    gx_rate rate;        /* that bounds its arithmetic */
    double floor_s;      /* < 0: n/a */
    gx_bound bound;
    const int32_t *waits; /* of the plan */
    size_t n_waits;
} gx_profile_unit;

/* The least that a step can take: the longest chain of units, each after the one before
 * it on its lane and those of other lanes that it waits for. */
typedef struct gx_profile_floor {
    double path_s;    /* the sum of its units' floors; < 0: n/a */
    size_t n_units;   /* on it */
    int64_t n_nodes;  /* kernels, copies and fills on it; < 0: n/a */
    double latency_s; /* that so many dependent nodes have; < 0: n/a */
} gx_profile_floor;

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

/* Idle time inside steps between the work of two ops. */
typedef struct gx_profile_pair {
    size_t before, after; /* of gx_profile_pass.op */
    gx_trace_share gaps[GX_GAP_CLASSES];
    int64_t total_ns;          /* of all traced steps */
    int64_t median_ns, p95_ns; /* a step, 0 where a step has no such gap */
} gx_profile_pair;

/* Overhead of one kind: in the windows that were traced, and ahead of one. A record that
 * lies in both counts in both. */
typedef struct gx_profile_overhead {
    const char *name; /* of the trace; "" for all kinds together */
    gx_trace_share inside, before;
    int64_t longest_ns; /* inside, of one record */
} gx_profile_overhead;

typedef struct gx_profile_pass {
    gx_mode mode;      /* GX_MODE_EAGER or GX_MODE_GRAPH */
    char missing[256]; /* why there is no trace; "" where there is one */
    gx_status status;  /* of the pass: GX_OK where there is a trace */
    gx_trace *trace;   /* finished; only the traced steps */
    gx_trace_figures *figures;
    gx_profiler_losses losses;
    int64_t expected; /* nodes, or launches, x steps: what the trace should hold */
    int64_t found;
    int64_t expected_steps;
    int64_t outside;     /* of those found: launched in no step */
    gx_exec_stats stats; /* of the exec that was traced */
    /* As the card counts it, with the tracing tool's own: before the state was made, and
     * with everything there. */
    int64_t free_before, free_after;
    gx_profile_step *step;
    size_t n_steps;
    gx_trace_share step_gaps[GX_GAP_CLASSES]; /* between the steps of a window */
    int64_t n_waiting_calls;                  /* calls inside steps that wait for the
                                               * device */
    int32_t *step_of;      /* of each activity: index of its step, GX_TRACE_NONE */
    gx_profile_pair *pair; /* the longest in total first */
    size_t n_pairs;
    gx_profile_op *op; /* in the order of the plan, unclaimed work last */
    size_t n_ops;
    gx_profile_overhead *overhead; /* the longest inside first */
    size_t n_overheads;
    double lane_overlap_ns; /* a step: time in which several lanes ran; < 0: one lane */
} gx_profile_pass;

/* Something worth telling, in words, with the figure behind it and what to do. */
typedef struct gx_profile_pattern {
    const char *name; /* "host-bound launches" */
    char found[256];
    char advice[256];
} gx_profile_pattern;

enum { GX_PROFILE_PATTERNS = 8 };

typedef struct gx_profile {
    gx_compare timing; /* its session has graph, plan and device */
    gx_profile_schedule schedule;
    gx_profile_unit *unit; /* of the plan */
    size_t n_units;
    gx_profile_pass pass[2]; /* eager, graph */
    bool has_ceilings;
    gx_ceilings ceilings;
    gx_profile_floor floor;
    gx_profile_pattern pattern[GX_PROFILE_PATTERNS];
    size_t n_patterns;
} gx_profile;

/* Everything above from the two traces, once they and `timing` are there: units and
 * floors, then steps, ops, pairs and patterns. */
gx_status gx_profile_figures(gx_profile *profile, gx_error *err) GX_MUST_CHECK;
void gx_profile_free(gx_profile *profile);

/* --- what is printed --- */

void gx_profile_print(const gx_profile *profile, FILE *out);
gx_status gx_profile_write_json(const gx_profile *profile, const char *path,
                                gx_error *err) GX_MUST_CHECK;
/* The op table: a row for each op and one for each of its kernels. */
gx_status gx_profile_write_csv(const gx_profile *profile, const char *path,
                               gx_error *err) GX_MUST_CHECK;

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
