/* The files of a folder, made in a folder inside it and then moved to their places. */
#include "staging.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder_lock.h"

/* "FOLDER/NAME"; the caller frees. NULL: out of memory. */
static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

enum { MOST_TURNS = 20 }; /* of making a folder that is removed again */

static void drop(gx_staging *staging)
{
    gx_folder_unlock(staging->lock);
    free(staging->inside);
    *staging = (gx_staging){ .lock = -1 };
}

gx_status gx_staging_open(gx_staging *staging, const char *folder, gx_error *err)
{
    char name[40];

    snprintf(name, sizeof name, ".gexec.%ld.tmp", (long)getpid());
    *staging = (gx_staging){ .folder = folder, .inside = join(folder, name), .lock = -1 };
    if (!staging->inside)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (int i = 0; i < MOST_TURNS; i++) {
        gx_folder_unlock(staging->lock);
        staging->lock = gx_folder_lock(folder, true);
        /* One that is there was left by an earlier process of this number. */
        if (mkdir(staging->inside, 0777) == 0 || errno == EEXIST)
            return GX_OK;
        /* Another process, which had made the empty folder to try it, removed it. */
        if (errno != ENOENT || (mkdir(folder, 0777) != 0 && errno != EEXIST))
            break;
    }
    (void)GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "--out %s: %s", folder,
                         strerror(errno));
    drop(staging);
    return GX_ERR_WRITE;
}

static gx_status move_one(const gx_staging *staging, const char *name, bool take,
                          gx_error *err)
{
    char *const from = join(staging->inside, name);
    char *const to = join(staging->folder, name);
    gx_status st = GX_OK;

    if (!from || !to)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    else if (take && rename(from, to) != 0)
        st = GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", to, strerror(errno));
    if (from && (!take || st != GX_OK))
        unlink(from);
    free(from);
    free(to);
    return st;
}

static gx_status move_all(const gx_staging *staging, bool take, gx_error *err)
{
    DIR *const list = opendir(staging->inside);
    gx_status st = GX_OK;

    if (!list)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", staging->inside,
                              strerror(errno));
    for (const struct dirent *file = readdir(list); file; file = readdir(list))
        if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0)
            st = gx_first(
                st, move_one(staging, file->d_name, take, st == GX_OK ? err : NULL));
    closedir(list);
    return st;
}

gx_status gx_staging_close(gx_staging *staging, bool take, gx_error *err)
{
    gx_status st = GX_OK;

    if (staging->inside) {
        st = move_all(staging, take, err);
        rmdir(staging->inside);
    }
    drop(staging);
    return st;
}
