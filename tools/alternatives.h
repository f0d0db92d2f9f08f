/* The alternatives that --force names: there have to be some of these names. */
#ifndef GX_ALTERNATIVES_H
#define GX_ALTERNATIVES_H

#include "args.h"

/* Says so where --force has a name that no alternative has, whatever the device: the
 * names are of gexec, not of a card. A gexec without CUDA knows none, and refuses none.
 */
bool gx_alternatives_check(const gx_args *args);

#endif
