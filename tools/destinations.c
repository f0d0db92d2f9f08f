/* Where results go: checked before the work, so that none is lost to a wrong path and
 * nothing that is read is lost to a result. */
#include "destinations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "destinations_list.h"
#include "flags.h"
#include "out_folders.h"
#include "session.h"

static bool complain(const gx_args *args, const gx_destination *to, const char *path)
{
    const char *const why = strerror(errno);

    gx_say_usage(args, "%s%s: %s cannot be written: %s", to->flag, to->path, path, why);
    return false;
}

/* Makes a file of such a name as a result has until it is whole, and removes it: rights,
 * a read-only disk, a name that is too long, all show only then. */
static bool probe(const gx_args *args, const gx_destination *to, const char *path,
                  const char *shown)
{
    const size_t size = strlen(path) + 40;
    char *const name = malloc(size);
    int turns = 20;
    bool fits, gone;
    int fd;

    if (!name) {
        gx_say_usage(args, "out of memory");
        return false;
    }
    snprintf(name, size, "%s.%ld-probe.tmp", path, (long)getpid());
    /* A folder that was there may be one that another process made, to try it, and
     * removes or makes again meanwhile; it is made when there is something to put in it.
     */
    do {
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        gone = fd < 0 && errno == ENOENT && to->is_folder;
        fits = fd >= 0 || (gone && access(to->path, F_OK) != 0);
    } while (!fits && gone && --turns > 0);
    if (!fits)
        complain(args, to, shown);
    if (fd >= 0) {
        close(fd);
        unlink(name);
    }
    free(name);
    return fits;
}

/* What holds `path` is a folder. */
static bool check_folder(const gx_args *args, const gx_destination *to, const char *path)
{
    char *const folder = gx_folder_of(path);
    struct stat found;
    bool fits = false;

    if (!folder)
        gx_say_usage(args, "out of memory");
    else if (stat(folder, &found) != 0)
        gx_say_usage(args, "%s%s: the folder %s: %s", to->flag, to->path, folder,
                     strerror(errno));
    else if (!S_ISDIR(found.st_mode))
        gx_say_usage(args, "%s%s: %s is no folder", to->flag, to->path, folder);
    else
        fits = true;
    free(folder);
    return fits;
}

/* "FOLDER/x": what will be made in a folder. */
static bool probe_inside(const gx_args *args, const gx_destination *to)
{
    const size_t size = strlen(to->path) + sizeof "/x";
    char *const inside = malloc(size);
    bool fits;

    if (!inside) {
        gx_say_usage(args, "out of memory");
        return false;
    }
    snprintf(inside, size, "%s/x", to->path);
    fits = probe(args, to, inside, to->path);
    free(inside);
    return fits;
}

/* A folder that is not there yet; another process may make it meanwhile. */
static bool probe_folder(const gx_args *args, const gx_destination *to)
{
    if (mkdir(to->path, 0777) == 0)
        rmdir(to->path);
    else if (errno != EEXIST)
        return complain(args, to, to->path);
    return true;
}

/* The new file is made where the links lead. */
static bool probe_file(const gx_args *args, const gx_destination *to)
{
    return probe(args, to, to->real ? to->real : to->path, to->path);
}

static bool check_there(const gx_args *args, const gx_destination *to,
                        const struct stat *found)
{
    if (to->is_folder && !S_ISDIR(found->st_mode)) {
        gx_say_usage(args, "%s%s: %s is no folder", to->flag, to->path, to->path);
        return false;
    }
    if (to->is_folder)
        return probe_inside(args, to);
    if (S_ISDIR(found->st_mode)) {
        gx_say_usage(args, "%s%s: this is a folder; expected a file", to->flag, to->path);
        return false;
    }
    if (to->is_source)
        return true;
    if (access(to->path, W_OK) != 0)
        return complain(args, to, to->path);
    /* Into a pipe or a device: nothing is made. */
    return !S_ISREG(found->st_mode) || probe_file(args, to);
}

static bool check_one(const gx_args *args, const gx_destination *to)
{
    struct stat found;

    if (strcmp(to->path, "-") == 0) {
        gx_say_usage(args,
                     "%s-: this does not go to standard output; a %s of that name is ./-",
                     to->flag, to->is_folder ? "folder" : "file");
        return false;
    }
    if (to->is_stem)
        return check_folder(args, to, to->path) && probe(args, to, to->path, to->path);
    if (stat(to->path, &found) == 0)
        return check_there(args, to, &found);
    if (errno != ENOENT && errno != ENOTDIR)
        return complain(args, to, to->path);
    if (!check_folder(args, to, to->path))
        return false;
    return to->is_folder ? probe_folder(args, to) : probe_file(args, to);
}

/* --- what is wrong with them --- */

/* `to` takes the place of what stands at `path`. */
static bool replaces(const gx_destination *to, const char *path)
{
    char *const real = path && to->real && !to->is_folder ? gx_real_path(path) : NULL;
    const bool is_one = real && strcmp(real, to->real) == 0;

    free(real);
    return is_one;
}

/* A tensor may go back to the file that it came from; that is what was asked for. */
static bool spares_sources(const gx_args *args, const gx_destination *to)
{
    const bool names_files = !(args->command->bit & (GX_CMD_OPS | GX_CMD_INIT));
    bool lost = replaces(to, args->costs);

    for (size_t i = 0; i < args->n_names && names_files; i++)
        lost = lost || replaces(to, args->names[i]);
    for (size_t i = 0; i < args->inputs.n && !gx_destination_is_tensor(to); i++)
        lost = lost || replaces(to, args->inputs.items[i].value);
    if (lost)
        gx_say_usage(args, "%s%s would replace a file that the command reads", to->flag,
                     to->path);
    return !lost;
}

/* A plan is a file of each program's own: "FILE", "FILE.eval", ...; in a sweep of each
 * size's. */
static bool is_plan_of(const gx_destination *to, const char *real)
{
    const size_t n = to->is_source && to->real ? strlen(to->real) : 0;

    if (n == 0 || strncmp(real, to->real, n) != 0)
        return false;
    if (to->is_stem)
        return real[n] == '.' && strchr(real + n, '=');
    for (int i = 0; i < GX_N_PROGRAMS; i++)
        if (strcmp(real + n, gx_program_ending((gx_program)i)) == 0)
            return true;
    return false;
}

/* Says so where two of them are one. */
static bool are_apart(const gx_args *args, const gx_destination *a,
                      const gx_destination *b)
{
    if (!a->real || !b->real)
        return true;
    if (strcmp(a->real, b->real) == 0 && !a->is_stem && !b->is_stem)
        gx_say_usage(args, "%s%s and %s%s are one file", a->flag, a->path, b->flag,
                     b->path);
    else if (is_plan_of(a, b->real) || is_plan_of(b, a->real))
        gx_say_usage(args,
                     "%s%s and %s%s: --plan has a file of each program's, in a sweep of "
                     "each size's, and this is one of them",
                     a->flag, a->path, b->flag, b->path);
    else
        return true;
    return false;
}

static bool check_list(const gx_args *args, const gx_destination *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!check_one(args, &list[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (!are_apart(args, &list[j], &list[i]))
                return false;
        if (!spares_sources(args, &list[i]))
            return false;
    }
    return true;
}

bool gx_destinations_check(const gx_args *args)
{
    gx_destination *list;
    bool fits = false;
    size_t n;

    /* What lies in a folder that --out makes is looked at in it; one that cannot be made
     * is found by its own turn. */
    (void)!gx_out_folders_make(args, NULL);
    list = gx_destinations_list(args, &n);
    if (list)
        fits = check_list(args, list, n);
    else
        gx_say_usage(args, "out of memory");
    gx_destinations_free(list, n);
    gx_out_folders_drop(args);
    return fits;
}
