/* Where results go: checked before the work, so that none is lost to a wrong path. */
#ifndef GX_DESTINATIONS_H
#define GX_DESTINATIONS_H

#include "args.h"

/* Every file and folder that the flags name for results can be made or replaced, and no
 * two of them are one. False: it has been said on standard error which cannot. */
bool gx_destinations_check(const gx_args *args);

#endif
