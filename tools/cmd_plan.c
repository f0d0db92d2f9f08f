/* gexec plan: the stages of a model. */
#include <stdlib.h>

#include "plan_report.h"
#include "remarks.h"

/* What is wanted decides how far the model has to go. */
static bool wants_plan(const gx_args *args)
{
    if (args->pdl_report)
        return true;
    return !args->dot && !args->yaml && args->stage != GX_STAGE_DOCUMENT &&
           args->stage != GX_STAGE_GRAPH;
}

static bool wants_program(const gx_args *args)
{
    return wants_plan(args) && !args->pdl_report &&
           (args->stage == GX_STAGE_ALL || args->stage == GX_STAGE_PROGRAM);
}

static gx_status print_whole(const gx_session *session, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    char *text = session->args->dot ? gx_graph_dot(graph) : gx_graph_yaml(graph);

    if (!text)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    fputs(text, stdout);
    free(text);
    return GX_OK;
}

static gx_status print_stages(const gx_session *session, const gx_exec *exec,
                              gx_error *err)
{
    const int stage = session->args->stage;
    const bool all = stage == GX_STAGE_ALL;

    if (all || stage == GX_STAGE_DOCUMENT)
        GX_TRY(gx_plan_print_document(session, stdout, err));
    if (all || stage == GX_STAGE_GRAPH)
        gx_plan_print_graph(session, stdout);
    if (all || stage == GX_STAGE_SELECTION)
        gx_plan_print_selection(session, stdout);
    if (all || stage == GX_STAGE_LAYOUT)
        gx_plan_print_layout(session, stdout);
    if (exec)
        gx_plan_print_program(session, exec, stdout);
    return GX_OK;
}

/* Makes the plan, and for the program the state and the captured exec as well. */
static gx_status make_plan(gx_session *session, gx_exec **exec, gx_error *err)
{
    const gx_plan_options options = gx_session_plan_options(session);

    if (!wants_program(session->args)) {
        GX_TRY(gx_plan_create(session->graph[GX_PROGRAM_TRAIN], &options,
                              &session->plan[GX_PROGRAM_TRAIN], err));
        gx_plan_say(session);
        return GX_OK;
    }
    GX_TRY(gx_session_open(session, err));
    GX_TRY(gx_session_exec(session, GX_PROGRAM_TRAIN, true, exec, err));
    if (session->mode == GX_MODE_GRAPH)
        GX_TRY(gx_exec_capture(*exec, err));
    return GX_OK;
}

static gx_status report_edges(const gx_session *session, bool *is_lack, gx_error *err)
{
    const gx_args *const args = session->args;
    gx_edge_report report;
    gx_status st = gx_edge_report_make(session, &report, err);

    if (st == GX_OK && !gx_stdout_is_taken(args))
        gx_plan_print_edges(session, &report, stdout);
    if (st == GX_OK && args->json)
        st = gx_plan_write_json(session, NULL, &report, err);
    *is_lack = report.is_lack;
    gx_edge_report_free(&report);
    return st;
}

static gx_status plan_model(gx_session *session, const gx_args *args, bool *is_lack,
                            gx_error *err)
{
    gx_mode mode = GX_MODE_CPU;
    int device = GX_CPU;
    gx_exec *exec = NULL;

    if (wants_plan(args))
        GX_TRY(gx_device_choose(args, false, &device, &mode, err));
    GX_TRY(gx_session_load(session, args, &(gx_session_needs){ 0 }, device, mode, err));
    gx_session_say(session, wants_plan(args));
    if (args->dot || args->yaml)
        return print_whole(session, err);
    if (wants_plan(args))
        GX_TRY(make_plan(session, &exec, err));
    if (args->pdl_report)
        return report_edges(session, is_lack, err);
    if (!gx_stdout_is_taken(args))
        GX_TRY(print_stages(session, exec, err));
    return args->json ? gx_plan_write_json(session, exec, NULL, err) : GX_OK;
}

int gx_cmd_plan(const gx_args *args)
{
    gx_session session = { 0 };
    gx_error err = { 0 };
    int exit_status = GX_EXIT_OK;
    bool is_lack = false;

    if ((args->dot || args->yaml) && args->json)
        return gx_say_usage(args, "--json does not go with --dot or --yaml");
    if (args->pdl_report && (args->dot || args->yaml || args->stage != GX_STAGE_ALL))
        return gx_say_usage(args,
                            "--pdl-report does not go with --dot, --yaml or --stage");
    if (plan_model(&session, args, &is_lack, &err) != GX_OK)
        exit_status = gx_say_error(args, &err);
    else if (is_lack)
        exit_status = GX_EXIT_LACKS;
    gx_session_close(&session);
    return exit_status;
}
