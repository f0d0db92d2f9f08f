/* A traced pass: eager or graph, in a process of its own, since a tracing tool has to be
 * there before the first capture and wants one session a process. */
#ifndef GX_PROFILE_PASS_H
#define GX_PROFILE_PASS_H

#include "report.h"

/* With this first word the program is such a process. It is no command:
 * gexec WORD MODE FOLDER RECORDS COMMAND FLAGS... */
#define GX_TRACED_PASS "--traced-pass"

/* What the process finds in the folder beside its plan. */
#define GX_PASS_MODEL "model.yaml"

/* What the process leaves in the folder: this, and beside it the trace. */
typedef struct gx_pass_result {
    char mark[16];
    gx_status status;
    char message[GX_MESSAGE_SIZE]; /* of a failure */
    gx_exec_stats stats;
    gx_profiler_losses losses;
    int64_t free_before, free_after;
} gx_pass_result;

gx_status gx_pass_write(const char *folder, const gx_pass_result *result,
                        gx_error *err) GX_MUST_CHECK;
/* GX_ERR_READ where there is none that is whole. */
gx_status gx_pass_read(const char *folder, gx_pass_result *result,
                       gx_error *err) GX_MUST_CHECK;
/* "FOLDER/name"; the caller frees. NULL: out of memory. */
char *gx_pass_path(const char *folder, const char *name);

/* Is the process; its exit status. */
int gx_pass_main(int argc, char **argv);

/* Starts the program again with these words, waits for it, and kills it at an interrupt.
 * GX_OK: it exited with 0. */
gx_status gx_pass_spawn(char *const *words, gx_error *err) GX_MUST_CHECK;

/* Both passes one after the other. What fails is kept in each pass, and whole in its
 * error. */
void gx_profile_trace(gx_profile *profile, gx_error errors[2]);

#endif
