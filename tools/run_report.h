/* What `gexec run` says: as text, as JSON, and line by line when it serves. */
#ifndef GX_RUN_REPORT_H
#define GX_RUN_REPORT_H

#include <stdio.h>

#include "json_out.h"
#include "trainer.h"

typedef struct gx_run {
    gx_session session;
    gx_history history;
    gx_program program; /* of exec */
    gx_exec *exec;      /* whose outputs are delivered */
    double build_s;     /* seconds for its plan, exec and capture */
} gx_run;

gx_status gx_run_print(gx_run *run, FILE *out, gx_error *err) GX_MUST_CHECK;
gx_status gx_run_write_json(gx_run *run, gx_error *err) GX_MUST_CHECK;

/* Prints the report and writes what the flags ask for, each whatever became of the
 * others. What fails is said; the exit status of the first failure, or GX_EXIT_OK. */
int gx_run_deliver(gx_run *run);

/* Obeys lines from `in` until `quit` or the end: each is answered by one line of JSON.
 *   time N    runs N steps as one timed block
 *   losses N  the loss of the last N steps
 *   reset     parameters and state as they were at first
 *   quit */
gx_status gx_run_serve(gx_run *run, FILE *in, gx_error *err) GX_MUST_CHECK;

/* Card, driver, toolkit and the like, as an object under `key`. */
void gx_json_environment(gx_json *json, const char *key, const gx_session *session);

#endif
