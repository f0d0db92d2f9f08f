/* The parts of the HTML report: the page as it was built in, and the data that its
 * scripts read. */
#ifndef GX_REPORT_PAGE_H
#define GX_REPORT_PAGE_H

#include "json_out.h"
#include "report_slices.h"

/* tools/report/, put together by the build: what stands before the data and behind. */
extern const unsigned char gx_report_head[], gx_report_tail[];
extern const size_t gx_report_head_size, gx_report_tail_size;

/* A row of the table of ops. */
typedef struct gx_report_op {
    const gx_trace_op *traced[2];     /* by side; NULL: the side has none */
    const gx_profile_op *profiled[2]; /* with a profile */
} gx_report_op;

typedef struct gx_report_ops {
    gx_report_op *items;
    size_t n;
    size_t n_left_out;
} gx_report_ops;

/* The pass whose trace the side shows; NULL without a profile. */
const gx_profile_pass *gx_report_pass(const gx_report *report, size_t side);

gx_status gx_report_ops_of(const gx_report *report, gx_report_ops *ops,
                           gx_error *err) GX_MUST_CHECK;
void gx_report_ops_free(gx_report_ops *ops);

/* "ops": [...] */
void gx_report_put_ops(gx_json *json, const gx_report *report, const gx_report_ops *ops);
/* One side as an element of an array. */
gx_status gx_report_put_side(gx_json *json, const gx_report *report,
                             const gx_report_ops *ops, const gx_report_window *window,
                             size_t side, gx_error *err) GX_MUST_CHECK;
/* "profile": {...} */
void gx_report_put_profile(gx_json *json, const gx_profile *profile);
/* "verdict": [...], the sentence above everything, then one a side. */
void gx_report_put_verdict(gx_json *json, const gx_report *report);

#endif
