/* Where results go: checked before the work, so that none is lost to a wrong path and
 * nothing that is read is lost to a result. */
#ifndef GX_DESTINATIONS_H
#define GX_DESTINATIONS_H

#include "args.h"
#include "session.h"

/* Every file and folder that the flags name for results can be made or replaced, no two
 * of them are one, and none is a file that the flags name to be read. What lies in a
 * folder of --out may wait for it. False: what is wrong has been said on standard error.
 */
bool gx_destinations_check(const gx_args *args);

/* The same of what the flags do not name: the files that a loaded model and --resume
 * read, and those that --out writes to a folder. */
gx_status gx_destinations_spare_model(const gx_session *session,
                                      gx_error *err) GX_MUST_CHECK;

#endif
