/* gexec run: steps through a model and delivers what came of it. */
#include <stdio.h>

#include "figures.h"
#include "interrupt.h"
#include "remarks.h"
#include "run_report.h"

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

/* Parameters that stay as they are although the model is trained: mostly a gradient whose
 * name is misspelt. */
static void remark_untrained(const gx_session *session)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    char names[400] = "";
    size_t length = 0;

    for (size_t i = 0; i < gx_graph_value_count(graph) && length < sizeof names; i++)
        if (gx_is_left_out(graph, i))
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                       length ? ", " : "", gx_graph_value(graph, i).name);
    if (length)
        gx_say(session->args, "no optimizer op updates %s%s", names,
               length < sizeof names ? "" : "...");
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
    int exit_status = GX_EXIT_OK;
    gx_status st;

    if (args->exact && args->target != GX_TARGET_CPU)
        return gx_say_usage(args, "--exact: only the CPU keeps doubles, so --device cpu "
                                  "is expected beside it");
    if (args->blocks && gx_is_standard_input(args->names[0]))
        return gx_say_usage(args, "--blocks reads standard input, so that the model "
                                  "cannot stand there");
    st = gx_device_choose(args, false, &device, &mode, &err);
    if (st == GX_OK)
        st = gx_session_load(
            &run.session, args,
            &(gx_session_needs){ .data_programs = !args->blocks, .exact = args->exact },
            device, mode, &err);
    if (st == GX_OK)
        st = check_outs(&run.session, &err);
    /* A plan and a large state take their time; blocks are ended by who asks for them. */
    if (!args->blocks)
        gx_interrupt_watch();
    if (st == GX_OK)
        st = gx_session_open(&run.session, &err);
    if (st == GX_OK) {
        gx_session_say(&run.session, true);
        remark_untrained(&run.session);
    }
    if (st == GX_OK && args->blocks) {
        st = main_exec(&run, &err);
        if (st == GX_OK)
            st = gx_run_serve(&run, stdin, &err);
    } else if (st == GX_OK) {
        st = train(&run, &err);
        if (st == GX_OK)
            exit_status = gx_run_deliver(&run);
    }
    if (st != GX_OK)
        exit_status = gx_say_error(args, &err);
    else if (exit_status == GX_EXIT_OK && run.history.interrupted)
        exit_status = GX_EXIT_INTERRUPTED;
    gx_history_free(&run.history);
    gx_session_close(&run.session);
    return exit_status;
}
