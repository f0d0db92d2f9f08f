/* Running the steps of a model: epochs, the short last batch, evaluation, the losses. */
#ifndef GX_TRAINER_H
#define GX_TRAINER_H

#include "progress.h"
#include "session.h"

/* One pass over rows, held out or of an epoch: figures as gx_average says, so that a
 * short batch counts as what it is where that can be known. */
typedef struct gx_evaluation {
    int64_t step, epoch;
    int64_t rows;
    double value[GX_MAX_LOGGED];
} gx_evaluation;

typedef struct gx_history {
    size_t n_columns;
    const char *names[GX_MAX_LOGGED];
    double *rows; /* steps x n_columns, oldest first */
    int64_t n_rows, capacity;
    size_t n_held_columns;
    const char *held_names[GX_MAX_LOGGED];
    gx_evaluation *evaluations;
    size_t n_evaluations;
    gx_evaluation *means; /* of epochs that were gone through from their first row on */
    size_t n_means;
    double data_wait_s; /* of the training steps; < 0: the data do not stream */
    int64_t data_steps;
    int64_t steps, epochs;     /* that were done */
    int64_t n_steps, n_epochs; /* that were asked for; epochs 0: none */
    double train_s, evaluate_s;
    bool interrupted;
    int64_t not_finite_from; /* the first step whose loss is NaN or infinite; 0: none */
    gx_exec *last; /* what ran last, and so holds the outputs; NULL: nothing ran */
    gx_program last_program;
} gx_history;

/* Steps through the model as its data and the flags say, until done, interrupted or
 * failed; `history` is filled as far as it went. Free it in any case. */
gx_status gx_train(gx_session *session, gx_history *history, gx_error *err) GX_MUST_CHECK;
/* Seconds that a training step waited for its batch; < 0: nothing streams, or none ran.
 */
double gx_history_wait(const gx_history *history);
void gx_history_free(gx_history *history);

/* What evaluation runs, whole batches before the short one; NULL: nothing. */
const gx_graph *gx_eval_graph(const gx_session *session);
/* What stands behind a figure of many rows in that column: " (sum)", " (mean of steps)",
 * or "" for a mean over the rows. */
const char *gx_average_mark(const gx_graph *graph, size_t column);

#endif
