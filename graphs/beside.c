/* A file that is made beside the one whose place it takes when it is whole. */
#include "beside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- links --- */

/* The target of a symbolic link, from where the link lies. NULL: `path` is none, or with
 * ENOMEM. */
static char *target_of(const char *path)
{
    char target[PATH_MAX];
    const ssize_t n = readlink(path, target, sizeof target - 1);
    const char *const slash = strrchr(path, '/');
    char *joined;

    if (n < 0)
        return NULL;
    target[n] = '\0';
    const size_t folder = slash && target[0] != '/' ? (size_t)(slash - path) + 1 : 0;

    joined = malloc(folder + (size_t)n + 1);
    if (joined) {
        memcpy(joined, path, folder);
        memcpy(joined + folder, target, (size_t)n + 1);
    }
    return joined;
}

char *gx_link_end(const char *path)
{
    enum { MOST_LINKS = 40 }; /* as the system follows */
    char *at = strdup(path);

    for (int i = 0; at && i <= MOST_LINKS; i++) {
        errno = 0;
        char *const next = target_of(at);

        if (!next && errno != ENOMEM)
            return at;
        free(at);
        at = next;
    }
    if (at)
        errno = ELOOP;
    free(at);
    return NULL;
}

/* --- the file --- */

static gx_status fail(const gx_beside *beside, gx_error *err)
{
    return GX_FAIL_NATIVE(err, errno == ENOMEM ? GX_ERR_MEMORY : GX_ERR_WRITE, errno,
                          "%s: %s", beside->path, strerror(errno));
}

/* Standard output or error where that goes to this file; else -1. */
static int own_output(const struct stat *there)
{
    struct stat own;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == there->st_dev &&
            own.st_ino == there->st_ino)
            return fd;
    return -1;
}

/* To replace it would lose what else goes there; one place in the file keeps both. */
static FILE *open_own(int output)
{
    const int fd = dup(output);
    FILE *const file = fd < 0 ? NULL : fdopen(fd, "wb");

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

bool gx_beside_keep_mode(int fd, const struct stat *of)
{
    enum { RIGHTS = 07777 };
    struct stat is;

    if (fstat(fd, &is) != 0)
        return false;
    if (is.st_uid != of->st_uid || is.st_gid != of->st_gid)
        (void)!fchown(fd, of->st_uid, of->st_gid); /* others than root may not */
    return (is.st_mode & RIGHTS) == (of->st_mode & RIGHTS) ||
           fchmod(fd, of->st_mode & RIGHTS) == 0;
}

/* Not mkstemp, whose files are private. -1 with errno. */
static int open_new(const char *end, char **name)
{
    enum { ROOM = 40, TRIES = 100 }; /* of an earlier process some may be left */
    const size_t size = strlen(end) + ROOM;
    int fd = -1;

    *name = malloc(size);
    for (int i = 0; *name && fd < 0 && i < TRIES; i++) {
        snprintf(*name, size, "%s.%ld-%d.tmp", end, (long)getpid(), i);
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        free(*name);
        *name = NULL;
    }
    return fd;
}

gx_status gx_beside_open(gx_beside *beside, const char *path, gx_error *err)
{
    struct stat there;
    const bool is_there = stat(path, &there) == 0;
    const bool is_file = !is_there || S_ISREG(there.st_mode);
    const int own = is_there && is_file ? own_output(&there) : -1;
    int fd;

    *beside = (gx_beside){ .path = path };
    if (!is_file || own >= 0) {
        beside->file = own >= 0 ? open_own(own) : fopen(path, "wb");
        return beside->file ? GX_OK : fail(beside, err);
    }
    beside->end = gx_link_end(path);
    fd = beside->end ? open_new(beside->end, &beside->name) : -1;
    if (fd < 0)
        return fail(beside, err);
    if (!is_there || gx_beside_keep_mode(fd, &there))
        beside->file = fdopen(fd, "wb");
    if (!beside->file) {
        const gx_status st = fail(beside, err);

        close(fd);
        return st;
    }
    return GX_OK;
}

gx_status gx_beside_close(gx_beside *beside, gx_status st, gx_error *err)
{
    bool written = true;

    if (beside->file) {
        written = !ferror(beside->file);
        if (fclose(beside->file) != 0)
            written = false;
    }
    if (st == GX_OK && written && beside->name && rename(beside->name, beside->end) != 0)
        written = false;
    if (st == GX_OK && !written)
        st = fail(beside, err);
    if (st != GX_OK && beside->name)
        unlink(beside->name);
    free(beside->name);
    free(beside->end);
    *beside = (gx_beside){ 0 };
    return st;
}
