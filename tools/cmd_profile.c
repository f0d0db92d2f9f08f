/* gexec profile: where the time of a step goes, eagerly and as a graph. */
#include <string.h>

#include "interrupt.h"
#include "profile_pass.h"

/* What the card can do was measured once, or floors are not known. */
static void load_ceilings(gx_profile *profile)
{
    const gx_session *const session = &profile->timing.session;
    gx_error err = { 0 };
    const gx_status st =
        gx_ceilings_load(&session->device_info, NULL, &profile->ceilings, &err);

    profile->has_ceilings = st == GX_OK;
    if (st != GX_OK && st != GX_ERR_STATE)
        gx_say(session->args, "the card's ceilings: %s", err.message);
}

static gx_status profile_model(gx_profile *profile, const gx_args *args,
                               gx_error missing[2], gx_error *err)
{
    gx_mode mode;
    int device;

    GX_TRY(gx_device_choose(args, true, &device, &mode, err));
    GX_TRY(
        gx_compare_open(&profile->timing, args, &(gx_session_needs){ 0 }, device, err));
    gx_interrupt_watch();
    GX_TRY(gx_compare_run(&profile->timing, err));
    /* The traced processes need the memory, and nothing of this one may run beside them.
     * Plan and graph stay: reports are made from them. */
    gx_compare_release(&profile->timing);
    load_ceilings(profile);
    gx_profile_trace(profile, missing);
    return gx_profile_figures(profile, err);
}

/* --- results --- */

static gx_report report_of(const gx_profile *profile)
{
    gx_report report = { .title = gx_graph_name(
                             profile->timing.session.graph[GX_PROGRAM_TRAIN]),
                         .profile = profile };

    for (int i = 0; i < 2; i++)
        if (profile->pass[i].trace)
            report.side[report.n_sides++] =
                (gx_report_side){ .title = gx_mode_name(profile->pass[i].mode),
                                  .trace = profile->pass[i].trace,
                                  .figures = profile->pass[i].figures };
    return report;
}

/* The exit status with what could not be written in it; what fails is said, and keeps
 * none of the others back. */
static int note(const gx_args *args, gx_status st, const gx_error *err, int exit_status)
{
    const int failed = st == GX_OK ? GX_EXIT_OK : gx_say_error(args, err);

    return exit_status == GX_EXIT_OK ? failed : exit_status;
}

static gx_status write_chrome(const gx_profile *profile, const gx_report *report,
                              gx_error *err)
{
    const gx_args *const args = profile->timing.session.args;
    int64_t left_out = 0;

    GX_TRY(gx_report_chrome(report, args->chrome, 0, &left_out, err));
    if (left_out > 0)
        gx_say(args,
               "%s: %lld events were left out; trace fewer steps with --active to see "
               "all",
               args->chrome, (long long)left_out);
    return GX_OK;
}

static int deliver(const gx_profile *profile)
{
    const gx_args *const args = profile->timing.session.args;
    const gx_report report = report_of(profile);
    int exit_status = GX_EXIT_OK;
    gx_error err = { 0 };

    if (!gx_stdout_is_taken(args))
        gx_profile_print(profile, stdout);
    if (args->json)
        exit_status = note(args, gx_profile_write_json(profile, args->json, &err), &err,
                           exit_status);
    gx_error_clear(&err);
    if (args->csv)
        exit_status =
            note(args, gx_profile_write_csv(profile, args->csv, &err), &err, exit_status);
    if (report.n_sides == 0) {
        if (args->chrome || args->html)
            gx_say(args, "there is no trace to write with --chrome or --html");
        return exit_status;
    }
    gx_error_clear(&err);
    if (args->chrome)
        exit_status = note(args, write_chrome(profile, &report, &err), &err, exit_status);
    gx_error_clear(&err);
    if (args->html)
        exit_status =
            note(args, gx_report_html(&report, args->html, &err), &err, exit_status);
    return exit_status;
}

/* --- the exit status --- */

/* Says once why a trace is missing, and gives the status for it. */
static int say_missing(const gx_profile *profile, const gx_error missing[2])
{
    const gx_args *const args = profile->timing.session.args;
    int exit_status = GX_EXIT_OK;

    for (int i = 0; i < 2; i++) {
        const gx_profile_pass *const pass = &profile->pass[i];
        const bool again = i == 1 && strcmp(pass->missing, profile->pass[0].missing) == 0;
        gx_error err = missing[i];

        if (pass->status == GX_OK)
            continue;
        if (err.status == GX_OK) /* found out when the figures were made */
            (void)GX_FAIL(&err, pass->status, "%s", pass->missing);
        gx_error_prefix(&err, pass->mode == GX_MODE_GRAPH ? "no trace of the graph"
                                                          : "no trace of eager launches");
        if (!again)
            gx_say_error(args, &err);
        if (exit_status == GX_EXIT_OK)
            exit_status = gx_status_exit(pass->status);
    }
    return exit_status;
}

static int conclude(const gx_profile *profile, const gx_error missing[2])
{
    const int delivered = deliver(profile);
    int untraced;

    if (gx_interrupted())
        return GX_EXIT_INTERRUPTED;
    untraced = say_missing(profile, missing);
    if (profile->timing.difference.found)
        return GX_EXIT_NO;
    return untraced != GX_EXIT_OK ? untraced : delivered;
}

int gx_cmd_profile(const gx_args *args)
{
    enum { MOST_STEPS = 1000000 };
    gx_profile profile = { .schedule = { args->wait, args->warmup, args->active,
                                         args->repeat } };
    gx_error missing[2] = { { 0 }, { 0 } };
    gx_error err = { 0 };
    int exit_status;

    if (args->active * args->repeat > MOST_STEPS)
        return gx_say_usage(args,
                            "--active %lld and --repeat %lld: at most %d steps can "
                            "be traced",
                            (long long)args->active, (long long)args->repeat, MOST_STEPS);
    exit_status = profile_model(&profile, args, missing, &err) == GX_OK
                      ? conclude(&profile, missing)
                      : gx_say_error(args, &err);
    gx_profile_free(&profile);
    return exit_status;
}
