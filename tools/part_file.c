/* A file that appears under its name when it is whole. */
#include "part_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gx_status fail(const gx_part_file *file, gx_error *err)
{
    return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s",
                          strcmp(file->path, "-") == 0 ? "standard output" : file->path,
                          strerror(errno));
}

gx_status gx_part_open(gx_part_file *file, const char *path, gx_error *err)
{
    const size_t size = strlen(path) + 40;
    struct stat found;

    *file = (gx_part_file){ .path = path };
    if (strcmp(path, "-") == 0) {
        file->out = stdout;
        return GX_OK;
    }
    /* A pipe or /dev/null must not be replaced by a file. */
    if (stat(path, &found) != 0 || S_ISREG(found.st_mode)) {
        file->part = malloc(size);
        if (!file->part)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        snprintf(file->part, size, "%s.%ld.part", path, (long)getpid());
    }
    file->out = fopen(file->part ? file->part : path, "wb");
    return file->out ? GX_OK : fail(file, err);
}

gx_status gx_part_close(gx_part_file *file, gx_status st, gx_error *err)
{
    bool written = true;

    if (file->out) {
        written = !ferror(file->out);
        if ((file->out == stdout ? fflush(file->out) : fclose(file->out)) != 0)
            written = false;
    }
    if (st == GX_OK && written && file->part && rename(file->part, file->path) != 0)
        written = false;
    if (st == GX_OK && !written)
        st = fail(file, err);
    if (st != GX_OK && file->out && file->part)
        unlink(file->part);
    free(file->part);
    *file = (gx_part_file){ 0 };
    return st;
}
