/* The files of a folder, made in a folder inside it and then moved to their places. */
#include "staging.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beside.h"
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

static gx_status copy_into(FILE *from, const char *to, gx_error *err)
{
    enum { PIECE = 1 << 16 };
    char *const bytes = malloc(PIECE);
    gx_beside file;
    gx_status st = gx_beside_open(&file, to, err);
    size_t n = PIECE;

    if (!bytes)
        st = gx_first(st, GX_FAIL(err, GX_ERR_MEMORY, "out of memory"));
    while (st == GX_OK && n == PIECE) {
        n = fread(bytes, 1, PIECE, from);
        if (fwrite(bytes, 1, n, file.file) != n)
            break; /* found at the end */
    }
    if (st == GX_OK && ferror(from))
        st = GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", to, strerror(errno));
    free(bytes);
    return gx_beside_close(&file, st, err);
}

/* `to` may be a link, perhaps to another disk, or no file: those are written through. */
static gx_status take_place(const char *from, const char *to, gx_error *err)
{
    struct stat there;
    const bool is_there = lstat(to, &there) == 0;
    const bool is_file = !is_there || S_ISREG(there.st_mode);
    FILE *file = is_there ? fopen(from, "rb") : NULL;
    gx_status st = GX_OK;

    if ((is_there &&
         (!file || (is_file && !gx_beside_keep_mode(fileno(file), &there)))) ||
        (is_file && rename(from, to) != 0))
        st = GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", to, strerror(errno));
    else if (!is_file)
        st = copy_into(file, to, err);
    if (file)
        fclose(file);
    if (st == GX_OK && !is_file)
        unlink(from);
    return st;
}

static gx_status move_one(const gx_staging *staging, const char *name, bool take,
                          gx_error *err)
{
    char *const from = join(staging->inside, name);
    char *const to = join(staging->folder, name);
    gx_status st = GX_OK;

    if (!from || !to)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    else if (take)
        st = take_place(from, to, err);
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
