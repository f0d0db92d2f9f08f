/* The user's cache folder. */
#include "cache_place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

const char *gx_cache_folder(gx_arena *arena, const char *folder)
{
    const char *base = getenv("XDG_CACHE_HOME");

    if (folder)
        return gx_arena_text(arena, folder);
    if (base && base[0] == '/')
        return gx_arena_format(arena, "%s/gexec", base);
    base = getenv("HOME");
    return base && base[0] == '/' ? gx_arena_format(arena, "%s/.cache/gexec", base)
                                  : NULL;
}

const char *gx_cache_file(gx_arena *arena, const char *folder, const char *name)
{
    char *plain_name = gx_arena_text(arena, name);

    for (char *c = plain_name; c && *c; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9') || *c == '-' || *c == '.';

        if (!plain)
            *c = '_';
    }
    return plain_name ? gx_arena_format(arena, "%s/%s", folder, plain_name) : NULL;
}

bool gx_cache_make_folder(gx_arena *arena, const char *folder)
{
    char *path = gx_arena_text(arena, folder);

    for (char *c = path ? path + 1 : NULL; c && *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
        *c = '/';
    }
    return path && (mkdir(path, 0777) == 0 || errno == EEXIST);
}
