/* A file that is made beside the one whose place it takes when it is whole. */
#ifndef GX_BESIDE_H
#define GX_BESIDE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include <gexec/status.h>

typedef struct gx_beside {
    FILE *file;
    const char *path; /* the caller's */
    char *end;        /* where the links at `path` lead */
    char *name; /* of the file until it is whole; NULL: what stands at `path` is written
                 * to, such as a pipe, a device or this process's own output */
} gx_beside;

/* The new file follows the links at `path` and has the mode of the file that it replaces.
 */
gx_status gx_beside_open(gx_beside *beside, const char *path,
                         gx_error *err) GX_MUST_CHECK;
/* Gives the file its place where `st`, which is handed on, is GX_OK and all was written;
 * else removes it. To be called once after gx_beside_open, whatever that gave. */
gx_status gx_beside_close(gx_beside *beside, gx_status st, gx_error *err) GX_MUST_CHECK;

/* Gives the open file the mode and, where that is allowed, the owner of another. False
 * with errno: the mode is another. */
bool gx_beside_keep_mode(int fd, const struct stat *of);

/* Where the links at `path` lead, whether something stands there or not; the caller
 * frees. NULL with errno. */
char *gx_link_end(const char *path);

#endif
