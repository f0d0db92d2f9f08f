/* What the parts of a prediction share. */
#ifndef GX_PREDICT_MODEL_H
#define GX_PREDICT_MODEL_H

#include <gexec/predict.h>

#include "trace_model.h"

/* Eager device work, in the order of its launches. */
typedef struct gx_predict_item {
    int64_t at;       /* its launch call's start; its own where no call is known */
    int32_t activity; /* of the trace */
    int32_t step;     /* GX_TRACE_NONE */
} gx_predict_item;

typedef struct gx_predict_step {
    size_t first, n;  /* of the items */
    int64_t from, to; /* of the host's time */
    size_t first_mark, n_marks;
    uint64_t content; /* hash over names and grids */
} gx_predict_step;

/* Calls that order streams, or make the host wait. */
typedef enum gx_predict_mark_kind {
    GX_MARK_RECORD,
    GX_MARK_WAIT,
    GX_MARK_SYNC
} gx_predict_mark_kind;

typedef struct gx_predict_mark {
    int32_t step;
    gx_predict_mark_kind kind;
    int64_t at, thread;
} gx_predict_mark;

typedef struct gx_predict_work {
    const gx_trace *trace;
    const char *step_name; /* NULL: the usual ones */
    int64_t process, device;
    gx_predict_item *item;
    size_t n_items;
    gx_predict_step *step;
    size_t n_steps;
    gx_predict_mark *mark; /* by step, then time */
    size_t n_marks;
    gx_trace_span *spans; /* of the steps in the host's time; .range is the step */
    size_t n_spans;
} gx_predict_work;

static inline const gx_trace_activity *gx_predict_activity(const gx_predict_work *work,
                                                           size_t item)
{
    return &work->trace->activities[work->item[item].activity];
}

/* --- predict_sequence.c --- */

/* The length of the block that, repeated, covers most of the symbols, of equal ones the
 * shortest; 0 where nothing repeats. *covered: symbols in whole blocks; [*first, *end):
 * the longest stretch of them. In n log n. */
gx_status gx_predict_period(const uint64_t *symbols, size_t n, size_t *length,
                            size_t *covered, size_t *first, size_t *end,
                            gx_error *err) GX_MUST_CHECK;

/* --- predict_steps.c --- */

/* Cuts the items into steps. What cannot be cut leaves work->n_steps 0 and says why. */
gx_status gx_predict_find_steps(gx_predict_work *work, gx_prediction *prediction,
                                gx_error *err) GX_MUST_CHECK;

/* --- predict_calls.c --- */

/* Names what stands in the way, and lists the calls that order streams. */
gx_status gx_predict_read_calls(gx_predict_work *work, gx_prediction *prediction,
                                gx_error *err) GX_MUST_CHECK;

/* --- predict_path.c --- */

typedef struct gx_predict_path {
    double
        replay_ns; /* the longest path, or the time that the card has no room to save */
    double serial_ns; /* of all nodes one after the other */
    double naive_ns;
    int64_t n_streams, n_joins;
} gx_predict_path;

/* `programmatic`: kernels that may have been launched programmatically save what that
 * saves at most, although the trace does not show it. */
gx_status gx_predict_longest_path(const gx_predict_work *work,
                                  const gx_predict_step *step,
                                  const gx_predict_costs *costs, bool programmatic,
                                  gx_predict_path *path, gx_error *err) GX_MUST_CHECK;

#endif
