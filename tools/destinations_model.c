/* Results against what a model reads, and against what --out DIR writes by itself. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "destinations.h"
#include "destinations_list.h"
#include "out_folders.h"
#include "saved_state.h"
#include "saved_sums.h"

/* "NAME.npy" of a tensor of the model that a folder has: saved, or an output as well. */
static bool is_tensor_file(const gx_session *session, const char *base, bool outputs)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const size_t n = strlen(base);
    char *const name = n > 4 && strcmp(base + n - 4, ".npy") == 0 ? strdup(base) : NULL;
    ptrdiff_t at = -1;
    gx_value_info value;

    if (strcmp(base, GX_SAVED_ACCUMULATE ".npy") == 0) {
        free(name);
        return gx_graph_accumulate(graph) > 1;
    }
    if (name) {
        name[n - 4] = '\0';
        at = gx_graph_find(graph, name);
        free(name);
    }
    if (at < 0)
        return false;
    value = gx_graph_value(graph, (size_t)at);
    return outputs ? gx_is_delivered(&value) : gx_is_saved(&value);
}

static bool is_plan_file(const gx_session *session, const char *base)
{
    for (int i = 0; i < GX_N_PROGRAMS && session->device != GX_CPU; i++)
        if (session->graph[i] && gx_is_saved_plan(base, (gx_program)i))
            return true;
    return false;
}

/* `folder` and `real` as gx_real_path has them: whether this is a file there. */
static bool lies_in(const char *folder, const char *real)
{
    const size_t n = folder ? strlen(folder) : 0;

    return n > 0 && real && strncmp(folder, real, n) == 0 && real[n] == '/' &&
           strchr(real + n + 1, '/') == NULL;
}

/* A folder of --out has the plan that --plan names: it is one plan. */
static gx_status spare_out(const gx_session *session, const gx_destination *folder,
                           const gx_destination *to, gx_error *err)
{
    const char *base;

    if (folder == to || !folder->is_folder || !lies_in(folder->real, to->real))
        return GX_OK;
    base = gx_base_of(to->real);
    if (is_tensor_file(session, base, true) ||
        (!to->is_source && is_plan_file(session, base)))
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%s%s writes %s, the file of %s%s",
                       folder->flag, folder->path, base, to->flag, to->path);
    return GX_OK;
}

static gx_status would_replace(const gx_destination *to, const char *path, gx_error *err)
{
    return GX_FAIL(err, GX_ERR_ARGUMENT, "%s%s would replace %s, which the command reads",
                   to->flag, to->path, path);
}

/* A tensor may go back to where it started from, but not to where the data are. */
static gx_status spare_file(const gx_session *session, const gx_file_info *file,
                            const gx_destination *list, size_t n, gx_error *err)
{
    char *const real = gx_real_path(file->path);
    gx_status st = GX_OK;

    for (size_t i = 0; i < n && real && st == GX_OK; i++) {
        const gx_destination *const to = &list[i];
        const bool inside = to->is_folder && file->is_data && lies_in(to->real, real) &&
                            is_tensor_file(session, gx_base_of(real), true);
        const bool same = to->real && strcmp(to->real, real) == 0 &&
                          (file->is_data || !gx_destination_is_tensor(to));

        if (inside || same)
            st = would_replace(to, file->path, err);
    }
    free(real);
    return st;
}

static gx_status spare_resumed(const gx_session *session, const gx_destination *list,
                               size_t n, gx_error *err)
{
    const char *const folder = session->args->resume;
    char *const real = folder ? gx_real_path(folder) : NULL;
    gx_status st = GX_OK;

    for (size_t i = 0; i < n && real && st == GX_OK; i++) {
        const gx_destination *const to = &list[i];

        if (!to->is_folder && !to->is_source && !gx_destination_is_tensor(to) &&
            lies_in(real, to->real) &&
            (is_tensor_file(session, gx_base_of(to->real), false) ||
             is_plan_file(session, gx_base_of(to->real))))
            st = would_replace(to, "a file of --resume", err);
    }
    free(real);
    return st;
}

/* What will be written to a folder of --out under `name` finds no folder in its place. */
static gx_status check_place(const gx_destination *folder, const char *name,
                             const char *ending, gx_error *err)
{
    char *const place = gx_saved_path(folder->path, name, ending);
    struct stat found;
    gx_status st = GX_OK;

    if (!place)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (stat(place, &found) == 0 && S_ISDIR(found.st_mode))
        st = GX_FAIL(err, GX_ERR_ARGUMENT, "%s%s: %s is a folder; expected a file",
                     folder->flag, folder->path, place);
    free(place);
    return st;
}

static gx_status check_places(const gx_session *session, const gx_destination *folder,
                              gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (gx_is_delivered(&value))
            GX_TRY(check_place(folder, value.name, ".npy", err));
    }
    if (gx_graph_accumulate(graph) > 1)
        GX_TRY(check_place(folder, GX_SAVED_ACCUMULATE, ".npy", err));
    for (int i = 0; i < GX_N_PROGRAMS && session->device != GX_CPU; i++)
        if (session->graph[i])
            GX_TRY(check_place(folder, GX_SAVED_PLAN, gx_program_ending((gx_program)i),
                               err));
    return GX_OK;
}

static gx_status spare(const gx_session *session, const gx_destination *list, size_t n,
                       gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < gx_graph_file_count(graph); i++) {
        const gx_file_info file = gx_graph_file(graph, i);

        if (file.path)
            GX_TRY(spare_file(session, &file, list, n, err));
    }
    GX_TRY(spare_resumed(session, list, n, err));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            GX_TRY(spare_out(session, &list[i], &list[j], err));
        if (list[i].is_folder)
            GX_TRY(check_places(session, &list[i], err));
    }
    return GX_OK;
}

gx_status gx_destinations_spare_model(const gx_session *session, gx_error *err)
{
    gx_destination *list;
    gx_status st = GX_OK;
    size_t n;

    /* What cannot be made was told before. */
    (void)!gx_out_folders_make(session->args, NULL);
    list = gx_destinations_list(session->args, &n);
    if (!list)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    else if (n > 0)
        st = spare(session, list, n, err);
    gx_destinations_free(list, n);
    gx_out_folders_drop(session->args);
    return st;
}
