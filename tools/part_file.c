/* A file that appears under its name when it is whole. */
#include "part_file.h"

#include <errno.h>
#include <string.h>

gx_status gx_part_open(gx_part_file *file, const char *path, gx_error *err)
{
    *file = (gx_part_file){ .out = stdout };
    if (strcmp(path, "-") == 0)
        return GX_OK;
    const gx_status st = gx_beside_open(&file->beside, path, err);

    file->out = file->beside.file;
    return st;
}

gx_status gx_part_close(gx_part_file *file, gx_status st, gx_error *err)
{
    if (file->beside.path)
        return gx_beside_close(&file->beside, st, err);
    const bool written = !ferror(stdout);

    if ((fflush(stdout) != 0 || !written) && st == GX_OK)
        st = GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "standard output: %s",
                            strerror(errno));
    return st;
}
