/* Saved state: what --out DIR writes so that --resume DIR goes on to the same bits. */
#include "saved_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder_lock.h"
#include "host_tensor.h"
#include "saved_sums.h"
#include "text_format.h"

char *gx_saved_path(const char *folder, const char *name, const char *ending)
{
    const size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s/%s%s", folder, name, ending);
    return path;
}

bool gx_is_saved(const gx_value_info *value)
{
    return value->kind == GX_VALUE_PARAM ||
           (value->kind == GX_VALUE_STATE && strcmp(value->name, "gexec.log") != 0);
}

bool gx_is_delivered(const gx_value_info *value)
{
    return gx_is_saved(value) || (value->kind == GX_VALUE_TEMP && value->is_output);
}

bool gx_is_saved_plan(const char *base, gx_program program)
{
    const size_t n = strlen(GX_SAVED_PLAN);

    return strncmp(base, GX_SAVED_PLAN, n) == 0 &&
           strcmp(base + n, gx_program_ending(program)) == 0;
}

gx_status gx_saved_write_tensor(gx_session *session, const gx_value_info *value,
                                const char *path, gx_error *err)
{
    gx_tensor tensor = { .dtype = gx_session_dtype(session, value), .rank = value->rank };
    gx_status st;

    memcpy(tensor.dim, value->dim, sizeof tensor.dim);
    GX_TRY(gx_host_tensor_alloc(&tensor, err));
    st = gx_state_read(session->state, value->name, &tensor, err);
    if (st == GX_OK)
        st = gx_npy_write(path, &tensor, err);
    free(tensor.data);
    return st;
}

/* --- plans --- */

gx_status gx_saved_write_plans(const gx_session *session, const char *folder,
                               gx_error *err)
{
    if (session->device == GX_CPU) /* nothing is chosen there */
        return GX_OK;
    for (int i = 0; i < GX_N_PROGRAMS; i++) {
        char *path;
        gx_status st;

        if (!session->plan[i])
            continue;
        path = gx_saved_path(folder, GX_SAVED_PLAN, gx_program_ending((gx_program)i));
        st = path ? gx_plan_write(session->plan[i], path, err)
                  : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        free(path);
        GX_TRY(st);
    }
    return GX_OK;
}

gx_status gx_saved_plan(const gx_session *session, gx_program program, char **path,
                        gx_error *err)
{
    const char *const folder = session->args->resume;
    struct stat found;

    *path = NULL;
    if (!folder || session->device == GX_CPU)
        return GX_OK;
    *path = gx_saved_path(folder, GX_SAVED_PLAN, gx_program_ending(program));
    if (!*path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (stat(*path, &found) != 0) { /* saved on the CPU, or by a run without it */
        free(*path);
        *path = NULL;
    }
    return GX_OK;
}

/* --- reading --- */

gx_status gx_counter_check(const gx_graph *graph, const char *name,
                           const gx_tensor *tensor, gx_error *err)
{
    const ptrdiff_t at = gx_graph_find(graph, name);

    if (strncmp(name, "gexec.", 6) != 0 || at < 0 ||
        gx_graph_value(graph, (size_t)at).dtype != GX_I32)
        return GX_OK;
    for (int64_t i = 0; i < gx_count(tensor); i++)
        if (!(gx_host_tensor_at(tensor, i) >= 0))
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s is a counter: expected 0 or more, found %g", name,
                           gx_plain_nan(gx_host_tensor_at(tensor, i)));
    return GX_OK;
}

static gx_status read_tensor(gx_session *session, const gx_value_info *value,
                             const char *path, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    gx_tensor tensor = { 0 };
    gx_status st;

    GX_TRY(gx_npy_read(path, &tensor, err));
    st = gx_counter_check(graph, value->name, &tensor, err);
    if (st == GX_OK)
        st = gx_session_write_state(session, value, &tensor, err);
    free(tensor.data);
    if (st != GX_OK)
        gx_error_prefix(err, path);
    return st;
}

/* Takes up the file of a value; `found`: there is one. */
static gx_status read_value(gx_session *session, const gx_value_info *value, bool *found,
                            gx_error *err)
{
    char *const path = gx_saved_path(session->args->resume, value->name, ".npy");
    struct stat file;
    gx_status st = GX_OK;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    *found = stat(path, &file) == 0;
    if (!*found && errno != ENOENT)
        st = GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    else if (*found)
        st = read_tensor(session, value, path, err);
    free(path);
    return st;
}

/* Tensors that have no file: as many names as a message has room for, and how many. One
 * has room, however long it is. */
typedef struct missing {
    char names[260];
    int n_named, n;
} missing;

static void add_missing(missing *list, const char *name)
{
    const size_t length = strlen(list->names);
    const size_t room = sizeof list->names - length;

    if (list->n == list->n_named && strlen(name) + sizeof ", .npy" <= room) {
        snprintf(list->names + length, room, "%s%s.npy", length ? ", " : "", name);
        list->n_named++;
    }
    list->n++;
}

/* " and 4 more", or "". */
static gx_words more_missing(const missing *list)
{
    gx_words words = { "" };

    if (list->n > list->n_named)
        snprintf(words.text, sizeof words.text, " and %d more", list->n - list->n_named);
    return words;
}

/* A state that starts anew beside parameters that go on is another training: it has to be
 * asked for. */
static gx_status report_missing(const gx_session *session, const missing *params,
                                const missing *states, gx_error *err)
{
    const gx_args *const args = session->args;

    if (params->n)
        return GX_FAIL(err, GX_ERR_READ, "there is no %s%s: %s of the model",
                       params->names, more_missing(params).text,
                       params->n > 1 ? "parameters" : "a parameter");
    if (states->n == 0)
        return GX_OK;
    if (!args->new_state)
        return GX_FAIL(err, GX_ERR_READ,
                       "there is no %s%s; with --new-state what has no file starts anew",
                       states->names, more_missing(states).text);
    gx_say(args, "--resume %s: there is no %s%s: starts anew", args->resume,
           states->names, more_missing(states).text);
    return GX_OK;
}

static gx_status check_folder(const char *path, gx_error *err)
{
    struct stat folder;

    if (stat(path, &folder) != 0)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s", strerror(errno));
    return S_ISDIR(folder.st_mode) ? GX_OK
                                   : GX_FAIL(err, GX_ERR_READ, "this is no folder");
}

/* What was found wrong with --resume itself. */
static gx_status of_flag(const gx_session *session, gx_status st, gx_error *err)
{
    const char *const folder = session->args->resume;
    const size_t size = strlen(folder) + sizeof "--resume ";
    char *const flag = st == GX_OK ? NULL : malloc(size);

    if (flag) {
        snprintf(flag, size, "--resume %s", folder);
        gx_error_prefix(err, flag);
    }
    free(flag);
    return st;
}

static gx_status read_folder(gx_session *session, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    missing params = { .n = 0 };
    missing states = { .n = 0 };

    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        bool found = true;

        if (gx_is_saved(&value))
            GX_TRY(read_value(session, &value, &found, err));
        if (!found)
            add_missing(value.kind == GX_VALUE_PARAM ? &params : &states, value.name);
    }
    GX_TRY(of_flag(session, report_missing(session, &params, &states, err), err));
    return of_flag(session, gx_saved_check_sums(session, err), err);
}

gx_status gx_saved_read(gx_session *session, gx_error *err)
{
    const char *const folder = session->args->resume;
    gx_status st;
    int lock;

    if (!folder)
        return GX_OK;
    GX_TRY(of_flag(session, check_folder(folder, err), err));
    /* A run that puts its files there now would have them read beside older ones. */
    lock = gx_folder_lock(folder, false);
    st = read_folder(session, err);
    gx_folder_unlock(lock);
    return st;
}
