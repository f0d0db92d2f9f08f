/* gexec run: steps through a model and delivers what came of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "figures.h"
#include "host_tensor.h"
#include "interrupt.h"
#include "run_report.h"

/* --- tensors to files --- */

static gx_status write_tensor(gx_run *run, const gx_value_info *value, const char *path,
                              gx_error *err)
{
    gx_tensor tensor;
    gx_status st;

    GX_TRY(gx_host_tensor_read(run->history.last, value, GX_N_DTYPES, &tensor, err));
    st = gx_npy_write(path, &tensor, err);
    free(tensor.data);
    return st;
}

/* A value's name as a file of `folder`; a name has no slash. */
static gx_status write_into(gx_run *run, const gx_value_info *value, const char *folder,
                            gx_error *err)
{
    const size_t size = strlen(folder) + strlen(value->name) + sizeof "/.npy";
    char *path = malloc(size);
    gx_status st;

    if (!path)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    snprintf(path, size, "%s/%s.npy", folder, value->name);
    st = write_tensor(run, value, path, err);
    free(path);
    return st;
}

static gx_status write_folder(gx_run *run, const char *folder, gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->history.last_program];
    struct stat found;

    if (mkdir(folder, 0777) != 0 &&
        (errno != EEXIST || stat(folder, &found) != 0 || !S_ISDIR(found.st_mode)))
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                              strerror(errno));
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (value.kind == GX_VALUE_PARAM ||
            (value.kind == GX_VALUE_TEMP && value.is_output))
            GX_TRY(write_into(run, &value, folder, err));
    }
    return GX_OK;
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
    return write_tensor(run, &value, path, err);
}

static gx_status write_losses(const gx_run *run, gx_error *err)
{
    const gx_history *const history = &run->history;
    gx_tensor losses = { .dtype = GX_F64, .rank = 1, .dim = { history->n_rows } };
    gx_status st;

    if (history->n_columns == 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "--loss-out: the model logs no loss");
    GX_TRY(gx_host_tensor_alloc(&losses, err));
    for (int64_t i = 0; i < history->n_rows; i++)
        ((double *)losses.data)[i] = history->rows[i * (int64_t)history->n_columns];
    st = gx_npy_write(run->session.args->loss_out, &losses, err);
    free(losses.data);
    return st;
}

static gx_status deliver(gx_run *run, gx_error *err)
{
    const gx_args *const args = run->session.args;

    for (size_t i = 0; i < args->outs.n && run->history.last; i++) {
        const gx_set *const out = &args->outs.items[i];

        if (out->name)
            GX_TRY(write_named(run, out->name, out->value, err));
        else
            GX_TRY(write_folder(run, out->value, err));
    }
    if (args->loss_out)
        GX_TRY(write_losses(run, err));
    if (!args->json || strcmp(args->json, "-") != 0)
        GX_TRY(gx_run_print(run, stdout, err));
    if (args->json)
        GX_TRY(gx_run_write_json(run, err));
    return GX_OK;
}

/* --- the run --- */

/* Names of --out are checked before the work, not after it. */
static gx_status check_outs(const gx_session *session, gx_error *err)
{
    const gx_args *const args = session->args;

    for (size_t i = 0; i < args->outs.n; i++)
        if (args->outs.items[i].name &&
            gx_graph_find(session->graph[GX_PROGRAM_TRAIN], args->outs.items[i].name) < 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "--out %s: no tensor of that name",
                           args->outs.items[i].name);
    if (args->loss_out && !gx_graph_logged(session->graph[GX_PROGRAM_TRAIN], 0))
        return GX_FAIL(err, GX_ERR_ARGUMENT, "--loss-out: the model logs no loss");
    return GX_OK;
}

/* The exec whose outputs are delivered: the program of whole batches, or the short one
 * where no batch is whole. */
static gx_status main_exec(gx_run *run, gx_error *err)
{
    gx_session *const session = &run->session;
    const bool is_short = session->data.n_train > 0 &&
                          session->data.n_train < session->data.batch &&
                          session->graph[GX_PROGRAM_TRAIN_SHORT];
    const double start = gx_clock();

    run->program = is_short ? GX_PROGRAM_TRAIN_SHORT : GX_PROGRAM_TRAIN;
    GX_TRY(gx_session_exec(session, run->program,
                           session->mode == GX_MODE_GRAPH && !is_short, &run->exec, err));
    if (session->mode == GX_MODE_GRAPH)
        GX_TRY(gx_exec_capture(run->exec, err));
    run->build_s = gx_clock() - start;
    return GX_OK;
}

static gx_status train(gx_run *run, gx_error *err)
{
    gx_status st;

    if (run->session.args->nsys_window)
        GX_TRY(gx_profiler_window(true, err));
    st = main_exec(run, err);
    if (st == GX_OK) {
        gx_measured_begin();
        st = gx_train(&run->session, &run->history, err);
        gx_measured_end();
    }
    /* The window closes whatever happened, so that the profiler keeps what it has. */
    if (run->session.args->nsys_window)
        st = gx_first(st, gx_profiler_window(false, st == GX_OK ? err : NULL));
    return st;
}

int gx_cmd_run(const gx_args *args)
{
    gx_run run = { 0 };
    gx_error err = { 0 };
    gx_mode mode;
    int device;
    int exit_status;
    gx_status st = gx_device_choose(args, false, &device, &mode, &err);

    if (st == GX_OK)
        st = gx_session_load(&run.session, args,
                             &(gx_session_needs){ .data_programs = !args->blocks },
                             device, mode, &err);
    if (st == GX_OK)
        st = check_outs(&run.session, &err);
    if (st == GX_OK)
        st = gx_session_open(&run.session, &err);
    if (st == GX_OK && args->blocks) {
        st = main_exec(&run, &err);
        if (st == GX_OK)
            st = gx_run_serve(&run, stdin, &err);
    } else if (st == GX_OK) {
        st = train(&run, &err);
        if (st == GX_OK)
            st = deliver(&run, &err);
    }
    if (st != GX_OK)
        exit_status = gx_say_error(args, &err);
    else
        exit_status = run.history.interrupted ? GX_EXIT_INTERRUPTED : GX_EXIT_OK;
    gx_history_free(&run.history);
    gx_session_close(&run.session);
    return exit_status;
}
