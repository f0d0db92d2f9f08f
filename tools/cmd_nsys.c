/* gexec nsys: what a profile of anyone's program says about gaps and launches. */
#include <string.h>

#include "nsys_report.h"
#include "report.h"

static gx_status read_one(const gx_args *args, const char *path, gx_nsys_report *report,
                          gx_error *err)
{
    const bool everything = args->within && strcmp(args->within, "-") == 0;
    const gx_trace_options options = { .step = args->step,
                                       .within = everything ? "" : args->within };
    gx_status st;

    GX_TRY(gx_trace_file_read(path, &report->file, err));
    st = gx_trace_figures_create(report->file.trace, &options, &report->figures, err);
    if (st == GX_OK)
        st = gx_nsys_predict(&report->file, &options, &report->predicted, err);
    if (st != GX_OK)
        gx_error_prefix(err, path);
    return st;
}

/* A name that was asked for and is nowhere may be a slip. */
static void remark_on_steps(const gx_args *args, const gx_nsys_report *report)
{
    if (args->step && report->figures->n_steps == 0)
        gx_say(args, "%s: no range named '%s' is in what is counted, so that no step is",
               report->file.path, args->step);
}

static void print_all(const gx_args *args, const gx_nsys_report *reports, size_t n)
{
    if (n == 2) {
        gx_nsys_print_pair(&reports[0], &reports[1], stdout);
        fputc('\n', stdout);
    }
    for (size_t i = 0; i < n; i++) {
        if (i)
            fputc('\n', stdout);
        gx_nsys_print(&reports[i], args, stdout);
        /* Of two, the first is the one without graphs. */
        if (i == 0)
            gx_nsys_print_prediction(&reports[i].predicted, &reports[i].file, stdout);
    }
}

/* The name of the file without its folder. */
static const char *base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static gx_status draw(const gx_args *args, const gx_nsys_report *reports, size_t n,
                      gx_error *err)
{
    gx_report drawn = { .n_sides = n };
    char title[512];

    for (size_t i = 0; i < n; i++)
        drawn.side[i] = (gx_report_side){ .title = base_name(reports[i].file.path),
                                          .trace = reports[i].file.trace,
                                          .figures = reports[i].figures };
    if (n == 2)
        snprintf(title, sizeof title, "%s against %s", drawn.side[0].title,
                 drawn.side[1].title);
    else
        snprintf(title, sizeof title, "%s", drawn.side[0].title);
    drawn.title = title;
    if (args->html)
        GX_TRY(gx_report_html(&drawn, args->html, err));
    if (args->chrome) {
        int64_t left_out;

        GX_TRY(gx_report_chrome(&drawn, args->chrome, 0, &left_out, err));
        if (left_out)
            gx_say(args,
                   "%s: %lld records beyond a million events are left out; --within "
                   "narrows what is counted, and a shorter profile shows all",
                   args->chrome, (long long)left_out);
    }
    return GX_OK;
}

static gx_status read_and_report(const gx_args *args, gx_nsys_report *reports,
                                 gx_error *err)
{
    const size_t n = args->n_names;
    gx_nsys_predicted start;

    GX_TRY(gx_nsys_costs(args->costs, &start, err));
    for (size_t i = 0; i < n; i++)
        reports[i].predicted = start;
    for (size_t i = 0; i < n; i++) {
        GX_TRY(read_one(args, args->names[i], &reports[i], err));
        remark_on_steps(args, &reports[i]);
    }
    if (!gx_stdout_is_taken(args))
        print_all(args, reports, n);
    if (args->json)
        GX_TRY(gx_nsys_write_json(reports, n, args->json, err));
    if (args->csv)
        GX_TRY(gx_nsys_write_csv(reports, n, args->csv, err));
    return draw(args, reports, n, err);
}

int gx_cmd_nsys(const gx_args *args)
{
    gx_nsys_report reports[2] = { { .figures = NULL }, { .figures = NULL } };
    gx_error err = { 0 };
    int exit_status = GX_EXIT_OK;

    if (read_and_report(args, reports, &err) != GX_OK)
        exit_status = gx_say_error(args, &err);
    for (size_t i = 0; i < 2; i++) {
        gx_prediction_free(reports[i].predicted.prediction);
        gx_trace_figures_free(reports[i].figures);
        gx_trace_file_free(&reports[i].file);
    }
    return exit_status;
}
