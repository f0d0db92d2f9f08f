/* What a run leaves behind: the report, the files, JSON. One that fails keeps none of the
 * others back, for the steps cannot be had again as cheaply. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host_tensor.h"
#include "out_folders.h"
#include "run_report.h"
#include "saved_state.h"
#include "saved_sums.h"
#include "staging.h"

static gx_status write_output(gx_run *run, const gx_value_info *value, const char *path,
                              gx_error *err)
{
    gx_tensor tensor;
    gx_status st;

    GX_TRY(gx_host_tensor_read(run->history.last, value,
                               gx_session_dtype(&run->session, value), &tensor, err));
    st = gx_npy_write(path, &tensor, err);
    free(tensor.data);
    return st;
}

/* What a file in `from` could not be made of, said of the place that it was made for. */
static gx_status of_place(gx_status st, const gx_error *why, const char *place,
                          gx_error *err)
{
    if (st == GX_ERR_WRITE && why->native != 0)
        return GX_FAIL_NATIVE(err, st, why->native, "%s: %s", place,
                              strerror(why->native));
    return st == GX_OK ? st : GX_FAIL(err, st, "%s: %s", place, why->message);
}

/* A value's name as a file of the folder; a name has no slash. What stands there and is
 * no file, such as a pipe, is written to. *keeps_older: an older one stays, for want of
 * it. */
static gx_status write_into(gx_run *run, const gx_value_info *value,
                            const gx_staging *staging, bool *keeps_older, gx_error *err)
{
    char *const path = gx_saved_path(staging->inside, value->name, ".npy");
    char *const place = gx_saved_path(staging->folder, value->name, ".npy");
    struct stat older;
    gx_error why = { 0 };
    gx_status st;

    if (!path || !place) {
        *keeps_older = true;
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        goto done;
    }
    const bool is_older = stat(place, &older) == 0;
    const char *const to = is_older && !S_ISREG(older.st_mode) ? place : path;

    st = gx_is_saved(value) ? gx_saved_write_tensor(&run->session, value, to, &why)
                            : write_output(run, value, to, &why);
    if (st != GX_OK && is_older)
        *keeps_older = true;
    st = of_place(st, &why, place, err);
done:
    free(place);
    free(path);
    return st;
}

/* Of how many steps the sums of gradients are, beside them. */
static gx_status write_accumulate(const gx_graph *graph, const gx_staging *staging,
                                  bool *keeps_older, gx_error *err)
{
    char *const path = gx_saved_path(staging->inside, GX_SAVED_ACCUMULATE, ".npy");
    char *const place = gx_saved_path(staging->folder, GX_SAVED_ACCUMULATE, ".npy");
    struct stat older;
    gx_error why = { 0 };
    gx_status st = GX_OK;

    if (!path || !place)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    else
        st = of_place(gx_saved_write_accumulate(graph, path, &why), &why, place, err);
    if (st != GX_OK && (!place || stat(place, &older) == 0))
        *keeps_older = true;
    free(place);
    free(path);
    return st;
}

/* A tensor that finds no room keeps none of the others back, unless an older one stands
 * in its place: with the others new, the folder would be of two runs and look whole. */
static gx_status write_folder(gx_run *run, const char *folder, gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->history.last_program];
    bool keeps_older = false;
    gx_error why = { 0 };
    gx_staging staging;
    gx_status st;

    GX_TRY(gx_staging_open(&staging, folder, err));
    st = of_place(gx_saved_write_plans(&run->session, staging.inside, &why), &why, folder,
                  err);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (gx_is_delivered(&value))
            st = gx_first(st, write_into(run, &value, &staging, &keeps_older,
                                         st == GX_OK ? err : NULL));
    }
    if (gx_graph_accumulate(graph) > 1)
        st = gx_first(st, write_accumulate(graph, &staging, &keeps_older,
                                           st == GX_OK ? err : NULL));
    if (keeps_older)
        gx_error_prefix(err, "the folder keeps what it had");
    return gx_first(st,
                    gx_staging_close(&staging, !keeps_older, st == GX_OK ? err : NULL));
}

static gx_status write_named(gx_run *run, const char *name, const char *path,
                             gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->history.last_program];
    const ptrdiff_t at = gx_graph_find(graph, name);
    gx_value_info value;

    if (at < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "--out %s: no tensor of that name", name);
    value = gx_graph_value(graph, (size_t)at);
    return write_output(run, &value, path, err);
}

static gx_status write_losses(const gx_run *run, gx_error *err)
{
    const gx_history *const history = &run->history;
    gx_tensor losses = { .dtype = GX_F64, .rank = 1, .dim = { history->n_rows } };
    gx_status st;

    GX_TRY(gx_host_tensor_alloc(&losses, err));
    for (int64_t i = 0; i < history->n_rows; i++)
        ((double *)losses.data)[i] = history->rows[i * (int64_t)history->n_columns];
    st = gx_npy_write(run->session.args->loss_out, &losses, err);
    free(losses.data);
    return st;
}

/* Says a failure at once, and keeps the exit status of the first. */
static void note(const gx_run *run, gx_status st, gx_error *err, int *exit_status)
{
    int status;

    if (st == GX_OK)
        return;
    status = gx_say_error(run->session.args, err);
    if (*exit_status == GX_EXIT_OK)
        *exit_status = status;
    gx_error_clear(err);
}

int gx_run_deliver(gx_run *run)
{
    const gx_args *const args = run->session.args;
    int exit_status = GX_EXIT_OK;
    gx_error err = { 0 };

    if (!gx_stdout_is_taken(args))
        note(run, gx_run_print(run, stdout, &err), &err, &exit_status);
    note(run, gx_out_folders_make(args, &err), &err, &exit_status);
    for (size_t i = 0; i < args->outs.n && run->history.last; i++) {
        const gx_set *const out = &args->outs.items[i];

        note(run,
             out->name ? write_named(run, out->name, out->value, &err)
                       : write_folder(run, out->value, &err),
             &err, &exit_status);
    }
    if (args->loss_out)
        note(run, write_losses(run, &err), &err, &exit_status);
    if (args->json)
        note(run, gx_run_write_json(run, &err), &err, &exit_status);
    return exit_status;
}
