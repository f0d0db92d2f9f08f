/* The destinations that the flags name, and what their paths come to. */
#include "destinations_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "beside.h"
#include "flags.h"

char *gx_folder_of(const char *path)
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

const char *gx_base_of(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* --- what a path comes to --- */

/* A name that nothing stands under, in a folder that is there. */
static char *real_name(const char *path)
{
    char *const folder = gx_folder_of(path);
    char *const real = folder ? realpath(folder, NULL) : NULL;
    char *joined = real ? malloc(strlen(real) + strlen(gx_base_of(path)) + 2) : NULL;

    if (joined)
        sprintf(joined, "%s/%s", real, gx_base_of(path));
    free(real);
    free(folder);
    return joined;
}

char *gx_real_path(const char *path)
{
    char *real = realpath(path, NULL);
    char *const end = real ? NULL : gx_link_end(path); /* links that lead to nothing */

    if (end)
        real = real_name(end);
    free(end);
    return real;
}

/* Devices such as /dev/null take any number of results. */
static bool takes_many(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* --- the list --- */

enum { MOST_OTHERS = 8 }; /* destinations beside those of --out */

static void add(gx_destination *list, size_t *n, const char *flag, const char *path)
{
    gx_destination *const to = &list[*n];

    if (!path)
        return;
    *to = (gx_destination){ .path = path };
    snprintf(to->flag, sizeof to->flag, "%s", flag);
    (*n)++;
}

/* A result that "-" sends to standard output. */
static void add_text(gx_destination *list, size_t *n, const char *flag, const char *path)
{
    if (path && strcmp(path, "-") != 0)
        add(list, n, flag, path);
}

/* At most `args->outs.n` and MOST_OTHERS. */
static size_t collect(const gx_args *args, gx_destination *list)
{
    size_t n = 0;

    if (args->command->bit & GX_CMD_INIT) {
        add(list, &n, "", args->n_names ? args->names[0] : ".");
        list[0].is_folder = true;
    }
    for (size_t i = 0; i < args->outs.n; i++) {
        const gx_set *const out = &args->outs.items[i];
        gx_destination *const to = &list[n++];

        *to = (gx_destination){ .path = out->value, .is_folder = !out->name };
        snprintf(to->flag, sizeof to->flag, "--out %.200s%s%s",
                 out->name ? out->name : "",
                 out->name && strlen(out->name) > 200 ? "..." : "", out->name ? "=" : "");
    }
    if (args->plan)
        list[n++] = (gx_destination){ .flag = "--plan ",
                                      .path = args->plan,
                                      .is_source = true,
                                      .is_stem = args->command->bit & GX_CMD_SWEEP };
    add(list, &n, "--loss-out ", args->loss_out);
    add_text(list, &n, "--json ", args->json);
    add_text(list, &n, "--csv ", args->csv);
    add_text(list, &n, "--svg ", args->svg);
    add_text(list, &n, "--chrome ", args->chrome);
    add_text(list, &n, "--html ", args->html);
    return n;
}

void gx_destinations_free(gx_destination *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        free(list[i].real);
    free(list);
}

gx_destination *gx_destinations_list(const gx_args *args, size_t *n)
{
    gx_destination *const list = calloc(args->outs.n + MOST_OTHERS, sizeof *list);

    *n = list ? collect(args, list) : 0;
    for (size_t i = 0; i < *n; i++)
        list[i].real = takes_many(list[i].path) ? NULL : gx_real_path(list[i].path);
    return list;
}

bool gx_destination_is_tensor(const gx_destination *to)
{
    return strncmp(to->flag, "--out ", 6) == 0 && !to->is_folder;
}
