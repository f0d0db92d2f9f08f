/* Sums of gradients in a saved state: of how many steps they are, and whether a model
 * that goes on from them can use them. */
#ifndef GX_SAVED_SUMS_H
#define GX_SAVED_SUMS_H

#include "session.h"

#define GX_SAVED_ACCUMULATE "gexec.accumulate" /* the file of the steps of an update */

/* Writes how many steps make an update to `path`. */
gx_status gx_saved_write_accumulate(const gx_graph *graph, const char *path,
                                    gx_error *err) GX_MUST_CHECK;
/* Refuses sums of --resume to which the model's steps would add what does not belong to
 * them, and says which ones it has no use for. A folder of an earlier version does not
 * tell of how many steps its sums are: they are then taken as they stand. */
gx_status gx_saved_check_sums(const gx_session *session, gx_error *err) GX_MUST_CHECK;

#endif
