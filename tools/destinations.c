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

#include "flags.h"

typedef struct destination {
    char flag[256]; /* as it was given, for messages: "--out w1=" */
    const char *path;
    bool is_folder;
    bool is_source; /* read where it is there, and written only where it is not */
} destination;

/* The folder that holds `path`; the caller frees. */
static char *folder_of(const char *path)
{
    size_t n = strlen(path);
    char *folder;

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    folder = malloc(n + 2);
    if (!folder)
        return NULL;
    memcpy(folder, path, n);
    strcpy(folder + n, n ? "" : ".");
    return folder;
}

static const char *base_of(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool complain(const gx_args *args, const destination *to, const char *path)
{
    const char *const why = strerror(errno);

    gx_say_usage(args, "%s%s: %s cannot be written: %s", to->flag, to->path, path, why);
    return false;
}

/* Makes a file of such a name as a result has until it is whole, and removes it: rights,
 * a read-only disk, a name that is too long, all show only then. */
static bool probe(const gx_args *args, const destination *to, const char *path,
                  const char *shown)
{
    const size_t size = strlen(path) + 40;
    char *const name = malloc(size);
    bool fits;
    int fd;

    if (!name) {
        gx_say_usage(args, "out of memory");
        return false;
    }
    snprintf(name, size, "%s.%ld-probe.tmp", path, (long)getpid());
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    fits = fd >= 0 || complain(args, to, shown);
    if (fd >= 0) {
        close(fd);
        unlink(name);
    }
    free(name);
    return fits;
}

/* What holds `path` is a folder. */
static bool check_folder(const gx_args *args, const destination *to, const char *path)
{
    char *const folder = folder_of(path);
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
static bool probe_inside(const gx_args *args, const destination *to)
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

/* A folder that is not there yet. */
static bool probe_folder(const gx_args *args, const destination *to)
{
    if (mkdir(to->path, 0777) != 0)
        return complain(args, to, to->path);
    rmdir(to->path);
    return true;
}

static bool check_there(const gx_args *args, const destination *to,
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
    return !S_ISREG(found->st_mode) || probe(args, to, to->path, to->path);
}

static bool check_one(const gx_args *args, const destination *to)
{
    struct stat found;

    if (stat(to->path, &found) == 0)
        return check_there(args, to, &found);
    if (errno != ENOENT && errno != ENOTDIR)
        return complain(args, to, to->path);
    if (!check_folder(args, to, to->path))
        return false;
    return to->is_folder ? probe_folder(args, to) : probe(args, to, to->path, to->path);
}

/* The same name in the same folder, however the folder is written. Devices such as
 * /dev/null take any number of results. */
static bool are_one(const destination *a, const destination *b)
{
    struct stat x, y;
    char *folder_a, *folder_b;
    bool one = false;

    if (stat(a->path, &x) == 0 && !S_ISREG(x.st_mode) && !S_ISDIR(x.st_mode))
        return false;
    if (strcmp(a->path, b->path) == 0)
        return true;
    if (strcmp(base_of(a->path), base_of(b->path)) != 0)
        return false;
    folder_a = folder_of(a->path);
    folder_b = folder_of(b->path);
    if (folder_a && folder_b && stat(folder_a, &x) == 0 && stat(folder_b, &y) == 0)
        one = x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    free(folder_a);
    free(folder_b);
    return one;
}

/* At most `args->outs.n` and MOST_OTHERS. */
enum { MOST_OTHERS = 8 };

static size_t collect(const gx_args *args, destination *list)
{
    size_t n = 0;

    if (args->command->bit & GX_CMD_INIT)
        list[n++] = (destination){ .path = args->n_names ? args->names[0] : ".",
                                   .is_folder = true };
    for (size_t i = 0; i < args->outs.n; i++) {
        const gx_set *const out = &args->outs.items[i];
        destination *const to = &list[n++];

        *to = (destination){ .path = out->value, .is_folder = !out->name };
        snprintf(to->flag, sizeof to->flag, "--out %.200s%s", out->name ? out->name : "",
                 out->name ? "=" : "");
    }
    if (args->plan && !(args->command->bit & GX_CMD_SWEEP)) /* a file a size there */
        list[n++] =
            (destination){ .flag = "--plan ", .path = args->plan, .is_source = true };
    if (args->loss_out)
        list[n++] = (destination){ .flag = "--loss-out ", .path = args->loss_out };
    if (args->json && strcmp(args->json, "-") != 0)
        list[n++] = (destination){ .flag = "--json ", .path = args->json };
    if (args->csv && strcmp(args->csv, "-") != 0)
        list[n++] = (destination){ .flag = "--csv ", .path = args->csv };
    if (args->svg && strcmp(args->svg, "-") != 0)
        list[n++] = (destination){ .flag = "--svg ", .path = args->svg };
    if (args->chrome && strcmp(args->chrome, "-") != 0)
        list[n++] = (destination){ .flag = "--chrome ", .path = args->chrome };
    if (args->html && strcmp(args->html, "-") != 0)
        list[n++] = (destination){ .flag = "--html ", .path = args->html };
    return n;
}

/* By whatever name: what `to` writes takes the place of `path`. */
static bool replaces(const destination *to, const char *path)
{
    const destination from = { .path = path };
    struct stat x, y;

    if (!path || to->is_folder)
        return false;
    if (stat(to->path, &x) == 0 && stat(path, &y) == 0)
        return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    return are_one(to, &from);
}

/* A tensor may go back to the file that it came from; that is what was asked for. */
static bool spares_sources(const gx_args *args, const destination *to)
{
    const bool names_files = !(args->command->bit & (GX_CMD_OPS | GX_CMD_INIT));
    const bool is_tensor = strncmp(to->flag, "--out ", 6) == 0;
    bool lost = replaces(to, args->costs) || (!to->is_source && replaces(to, args->plan));

    for (size_t i = 0; i < args->n_names && names_files; i++)
        lost = lost || replaces(to, args->names[i]);
    for (size_t i = 0; i < args->inputs.n && !is_tensor; i++)
        lost = lost || replaces(to, args->inputs.items[i].value);
    if (lost)
        gx_say_usage(args, "%s%s would replace a file that the command reads", to->flag,
                     to->path);
    return !lost;
}

bool gx_destinations_check(const gx_args *args)
{
    destination *const list = calloc(args->outs.n + MOST_OTHERS, sizeof *list);
    bool fits = true;
    size_t n;

    if (!list) {
        gx_say_usage(args, "out of memory");
        return false;
    }
    n = collect(args, list);
    for (size_t i = 0; i < n && fits; i++) {
        fits = check_one(args, &list[i]) && spares_sources(args, &list[i]);
        for (size_t j = 0; j < i && fits; j++)
            if (are_one(&list[j], &list[i])) {
                gx_say_usage(args, "%s%s and %s%s are one file", list[j].flag,
                             list[j].path, list[i].flag, list[i].path);
                fits = false;
            }
    }
    free(list);
    return fits;
}
