/* The folders that --out names: made when there is something to put in them. */
#include "out_folders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const gx_args *args, size_t i)
{
    return !args->outs.items[i].name;
}

static bool is_there(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

gx_status gx_out_folders_make(const gx_args *args, gx_error *err)
{
    gx_status st = GX_OK;
    bool again = true;

    while (again) { /* each round may have made the parent of another */
        again = false;
        for (size_t i = 0; i < args->outs.n; i++)
            if (is_folder(args, i) && !args->made[i] &&
                mkdir(args->outs.items[i].value, 0777) == 0)
                args->made[i] = again = true;
    }
    for (size_t i = 0; i < args->outs.n; i++) {
        const char *const path = args->outs.items[i].value;

        if (!is_folder(args, i) || is_there(path) || mkdir(path, 0777) == 0)
            continue;
        const int native = errno;

        if (!is_there(path)) /* nor made by another process meanwhile */
            st = gx_first(st, GX_FAIL_NATIVE(err, GX_ERR_WRITE, native, "--out %s: %s",
                                             path, strerror(native)));
    }
    return st;
}

void gx_out_folders_drop(const gx_args *args)
{
    bool again = true;

    while (again) { /* each round may have emptied the parent of another */
        again = false;
        for (size_t i = 0; i < args->outs.n; i++)
            if (args->made && args->made[i] && rmdir(args->outs.items[i].value) == 0) {
                args->made[i] = false;
                again = true;
            }
    }
}
