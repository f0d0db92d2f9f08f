/* Saved state: what --out DIR writes so that --resume DIR goes on to the same bits. */
#ifndef GX_SAVED_STATE_H
#define GX_SAVED_STATE_H

#include "session.h"

#define GX_SAVED_PLAN "plan.yaml" /* and behind it the ending of a program */

/* "FOLDER/NAME" with `ending` behind; the caller frees. NULL: out of memory. */
char *gx_saved_path(const char *folder, const char *name, const char *ending);

/* True for what a later run needs: parameters, moments, counters, the rate. The data are
 * the model's, and the log is told by --loss-out. */
bool gx_is_saved(const gx_value_info *value);
/* True for what --out DIR writes as well: outputs. */
bool gx_is_delivered(const gx_value_info *value);
/* True for the name that the plan of a program has in the folder. */
bool gx_is_saved_plan(const char *base, gx_program program);
/* Writes one tensor of the state to `path`. */
gx_status gx_saved_write_tensor(gx_session *session, const gx_value_info *value,
                                const char *path, gx_error *err) GX_MUST_CHECK;
/* Writes the plans that were made, on a GPU. */
gx_status gx_saved_write_plans(const gx_session *session, const char *folder,
                               gx_error *err) GX_MUST_CHECK;

/* Reads every saved tensor of --resume into the state; a missing parameter is an error.
 */
gx_status gx_saved_read(gx_session *session, gx_error *err) GX_MUST_CHECK;
/* The saved plan of a program, in *path, or NULL where there is none; the caller frees.
 */
gx_status gx_saved_plan(const gx_session *session, gx_program program, char **path,
                        gx_error *err) GX_MUST_CHECK;

/* A tensor read for `name`, refused where it is a counter of gexec's below 0. */
gx_status gx_counter_check(const gx_graph *graph, const char *name,
                           const gx_tensor *tensor, gx_error *err) GX_MUST_CHECK;

#endif
