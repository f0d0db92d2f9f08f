/* Where the plan cache and what was measured of a card are kept: the user's cache folder.
 */
#ifndef GX_CACHE_PLACE_H
#define GX_CACHE_PLACE_H

#include <stdbool.h>

#include "arena.h"

/* `folder`, or where it is NULL the folder gexec of XDG_CACHE_HOME or of HOME's .cache;
 * NULL where neither is set or memory is out. */
const char *gx_cache_folder(gx_arena *arena, const char *folder);

/* The file of that name in the folder: characters that a file name had better not have
 * become '_'. NULL: out of memory. */
const char *gx_cache_file(gx_arena *arena, const char *folder, const char *name);

/* Makes the folder and those that it lies in; false with errno. */
bool gx_cache_make_folder(gx_arena *arena, const char *folder);

#endif
