/* Where results go: checked before the work, so that none is lost to a wrong path and
 * nothing that is read is lost to a result. */
#ifndef GX_DESTINATIONS_H
#define GX_DESTINATIONS_H

#include "args.h"

/* Every file and folder that the flags name for results can be made or replaced, no two
 * of them are one, and none is a file that the command reads. False: what is wrong has
 * been said on standard error. */
bool gx_destinations_check(const gx_args *args);

#endif
