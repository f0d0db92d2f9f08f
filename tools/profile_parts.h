/* How the figures of a profile are made, part by part; each stands on the ones before. */
#ifndef GX_PROFILE_PARTS_H
#define GX_PROFILE_PARTS_H

#include "report.h"

/* Median, p5 and p95 of whole nanoseconds; -1 where there are none. */
gx_status gx_profile_summary(const int64_t *ns, size_t n, gx_summary *summary,
                             gx_error *err) GX_MUST_CHECK;
/* The nearest whole nanosecond. */
int64_t gx_profile_ns(double ns);

/* --- profile_units.c --- */

/* The units of a plan, without floors. */
gx_status gx_profile_units(const gx_plan *plan, gx_profile_unit **units, size_t *n_units,
                           gx_error *err) GX_MUST_CHECK;
/* `ceilings` NULL: every floor is n/a. */
void gx_profile_unit_floors(gx_profile_unit *units, size_t n_units,
                            const gx_ceilings *ceilings);
/* The longest chain of units. Nodes are those that `pass` found for each; NULL: n/a. */
gx_status gx_profile_path(const gx_profile_unit *units, size_t n_units,
                          const gx_profile_pass *pass, const gx_ceilings *ceilings,
                          gx_profile_floor *floor, gx_error *err) GX_MUST_CHECK;

/* --- profile_steps.c --- */

/* Cuts the trace into steps: ranges "step" of the domain "gexec" inside which something
 * was launched that the trace shows. */
gx_status gx_profile_steps(gx_profile_pass *pass, const gx_profile_schedule *schedule,
                           gx_error *err) GX_MUST_CHECK;

/* --- profile_ops.c --- */

/* The op table. */
gx_status gx_profile_ops(gx_profile_pass *pass, const gx_profile_unit *units,
                         size_t n_units, gx_error *err) GX_MUST_CHECK;

/* --- profile_gaps.c --- */

/* Which ops the idle time inside steps lies between, and what lanes overlapped. */
gx_status gx_profile_pairs(gx_profile_pass *pass, gx_error *err) GX_MUST_CHECK;
gx_status gx_profile_overlap(gx_profile_pass *pass, gx_error *err) GX_MUST_CHECK;
/* The gap's step where it lies inside one, else GX_TRACE_NONE. */
int32_t gx_profile_gap_step(const gx_profile_pass *pass, const gx_trace_gap *gap);

/* --- profile_overhead.c --- */

/* By kind what tracing tool and driver took for themselves. */
gx_status gx_profile_overheads(gx_profile_pass *pass, gx_error *err) GX_MUST_CHECK;
/* The sum over the kinds. */
gx_profile_overhead gx_profile_overhead_sum(const gx_profile_pass *pass);

/* --- profile_patterns.c --- */

gx_status gx_profile_patterns(gx_profile *profile, gx_error *err) GX_MUST_CHECK;

/* --- what a pass says of its steps together --- */

typedef enum gx_profile_figure {
    GX_FIGURE_SPAN,
    GX_FIGURE_BUSY,
    GX_FIGURE_IDLE,
    GX_FIGURE_HOST,
    GX_FIGURE_LAUNCH,
    GX_FIGURE_DEVICE,
    GX_FIGURE_UNKNOWN,
    GX_FIGURE_STEP_GAP, /* of steps that have a next one */
    GX_FIGURE_STEP,     /* span and step gap: from start to start */
    GX_FIGURES
} gx_profile_figure;

const char *gx_profile_figure_name(gx_profile_figure figure);
/* In nanoseconds a step. */
gx_status gx_profile_figure_of(const gx_profile_pass *pass, gx_profile_figure figure,
                               gx_summary *summary, gx_error *err) GX_MUST_CHECK;

#endif
