/* Progress on standard error: a bar on a terminal, plain lines otherwise. */
#ifndef GX_PROGRESS_H
#define GX_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_progress {
    bool quiet, terminal;
    bool drawn;      /* a bar stands on the last line */
    double start_s;  /* of the clock of figures.h */
    double last_s;   /* when the last bar or line was written */
    double paused_s; /* time that does not count for the rate, such as evaluation */
} gx_progress;

/* What a bar or a line shows. */
typedef struct gx_progress_point {
    int64_t step, n_steps;
    int64_t epoch, n_epochs; /* 0: no epochs */
    size_t n_columns;
    const char *const *names;
    const double *values;
} gx_progress_point;

void gx_progress_begin(gx_progress *progress, bool quiet);
/* Redraws the bar, at most ten times a second; off a terminal a line, at most every two
 * seconds unless the steps are done. */
void gx_progress_update(gx_progress *progress, const gx_progress_point *point);
/* A line that stays, above the bar; of an epoch's evaluation. */
void gx_progress_note(gx_progress *progress, const char *text);
/* Takes the bar away. */
void gx_progress_end(gx_progress *progress);

#endif
