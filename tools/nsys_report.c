/* The report of one trace as text. */
#include "nsys_report.h"

#include <string.h>

#include "text_format.h"
#include "text_table.h"

enum { NAME_WIDTH = 60, GAP_NAME_WIDTH = 34 };

typedef struct shortened {
    char text[NAME_WIDTH + 4];
} shortened;

/* At most `width` bytes, cut between characters. */
static shortened shorten(const char *name, size_t width)
{
    shortened result;
    size_t n = strlen(name);

    if (n > width) {
        n = width - 3;
        while (n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80)
            n--;
        snprintf(result.text, sizeof result.text, "%.*s...", (int)n, name);
    } else {
        snprintf(result.text, sizeof result.text, "%s", name);
    }
    return result;
}

static gx_words ns_words(int64_t ns)
{
    return gx_words_seconds(ns < 0 ? -1.0 : (double)ns * 1e-9);
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

gx_nsys_totals gx_nsys_totals_of(const gx_trace_figures *figures)
{
    gx_nsys_totals totals = { 0 };

    /* In doubles' range by far: each span is below 2^62, but a file may name many. */
    for (size_t i = 0; i < figures->n_devices; i++) {
        const gx_trace_device *const device = &figures->device[i];

        if (totals.span > INT64_MAX - device->span)
            break;
        totals.span += device->span;
        totals.busy += device->busy;
        totals.idle += device->idle;
        totals.n_gaps += (int64_t)device->n_gaps;
        for (int c = 0; c < GX_GAP_CLASSES; c++) {
            totals.gaps[c].n += device->gaps[c].n;
            totals.gaps[c].ns += device->gaps[c].ns;
            totals.step_gaps[c].n += device->step_gaps[c].n;
            totals.step_gaps[c].ns += device->step_gaps[c].ns;
        }
    }
    return totals;
}

bool gx_nsys_is_whole_graph(const gx_nsys_report *report)
{
    const gx_trace_figures *const figures = report->figures;

    return figures->kind[GX_TRACE_GRAPH].n > 0 ||
           (report->file.graph_mode == GX_GRAPH_MODE_WHOLE &&
            figures->calls[GX_TRACE_CALL_GRAPH].n > 0 && figures->n_replayed == 0);
}

bool gx_nsys_has_calls(const gx_nsys_report *report)
{
    size_t n;

    gx_trace_calls(report->file.trace, &n);
    return n > 0;
}

const char *gx_nsys_gpu_name(const gx_trace_file *file, int64_t device)
{
    for (size_t i = 0; i < file->n_gpus; i++)
        if (file->gpus[i].device == device)
            return gx_trace_text_at(file->trace, file->gpus[i].name);
    return "GPU";
}

const char *gx_nsys_kind_name(gx_trace_kind kind)
{
    static const char *const names[GX_TRACE_KINDS] = { "kernel", "copy", "fill",
                                                       "graph" };

    return names[kind];
}

const char *gx_nsys_call_name(gx_trace_call_kind kind)
{
    static const char *const names[GX_TRACE_CALL_KINDS] = { "kernel", "graph", "copy",
                                                            "fill", "other" };

    return names[kind];
}

const char *gx_nsys_by_name(gx_trace_by by)
{
    static const char *const names[GX_TRACE_BYS] = { "none", "launch", "start/end",
                                                     "capture", "replay" };

    return names[by];
}

/* --- the parts --- */

static gx_gap_class largest_class(const gx_nsys_totals *totals)
{
    gx_gap_class largest = GX_GAP_HOST;

    for (int c = 1; c < GX_GAP_CLASSES; c++)
        if (totals->gaps[c].ns > totals->gaps[largest].ns)
            largest = (gx_gap_class)c;
    return largest;
}

static void print_verdict(const gx_nsys_report *report, FILE *out)
{
    static const char *const why[GX_GAP_CLASSES] = {
        "waited for the host to get to the launch",
        "fell while the launch call was under way",
        "was the device's own, between work that was already launched",
        "ended with work of which the trace has no launch call"
    };
    const gx_trace_figures *const figures = report->figures;
    const gx_nsys_totals totals = gx_nsys_totals_of(figures);
    const gx_gap_class most = largest_class(&totals);

    if (figures->n_devices == 0) {
        fprintf(out, "%s: 0 kernels: the trace shows no work of a GPU.\n\n",
                report->file.path);
        return;
    }
    fprintf(out, "%s: the GPU was busy for %s of %s (%.1f%%)", report->file.path,
            ns_words(totals.busy).text, ns_words(totals.span).text,
            percent(totals.busy, totals.span));
    if (totals.idle > 0)
        fprintf(out, "; %.1f%% of its idle time %s",
                percent(totals.gaps[most].ns, totals.idle), why[most]);
    fputs(".\n\n", out);
}

static void print_source(const gx_nsys_report *report, bool verbose, FILE *out)
{
    static const char *const modes[] = { "", "; graphs traced as a whole",
                                         "; graphs traced by node" };
    const gx_trace_file *const file = &report->file;

    if (file->format == GX_TRACE_KINETO)
        fputs("  read        a Kineto trace (PyTorch's profiler)\n", out);
    else
        fprintf(out, "  read        an export of Nsight Systems %s, schema %s%s\n",
                file->version[0] ? file->version : "n/a",
                file->schema[0] ? file->schema : "n/a", modes[file->graph_mode]);
    if (report->figures->within)
        fprintf(out, "  counted     what was launched inside ranges named '%s'\n",
                gx_trace_text_at(file->trace, report->figures->within_name));
    if (report->figures->n_steps)
        fprintf(out, "  steps       %lld (ranges named '%s')\n",
                (long long)report->figures->n_steps,
                gx_trace_text_at(file->trace, report->figures->step_name));
    if (file->absent.n && (verbose || report->figures->n_devices == 0)) {
        fputs("  not found   ", out);
        for (size_t i = 0; i < file->absent.n; i++)
            fprintf(out, "%s%s", i ? ", " : "", file->absent.items[i]);
        fputc('\n', out);
    }
}

static void print_remarks(const gx_nsys_report *report, FILE *out)
{
    const gx_trace_figures *const figures = report->figures;
    const gx_trace_dropped dropped = gx_trace_dropped_get(report->file.trace);
    const int64_t n_dropped = dropped.no_time + dropped.backwards + dropped.before_call;

    if (gx_nsys_is_whole_graph(report))
        fprintf(out,
                "  remark      graph-level trace: no per-op data for %lld graph launches "
                "(%lld replays recorded);\n"
                "              to see inside: nsys profile --cuda-graph-trace=node ...\n",
                (long long)figures->calls[GX_TRACE_CALL_GRAPH].n,
                (long long)figures->kind[GX_TRACE_GRAPH].n);
    if (figures->nodes_before_window.n)
        fprintf(out,
                "  remark      node rows before the window, ranges absent: %lld replayed "
                "ops were captured before\n"
                "              the trace begins; open the window before the capture\n",
                (long long)figures->nodes_before_window.n);
    if (n_dropped)
        fprintf(
            out,
            "  remark      %lld records dropped as invalid: %lld without a time, %lld "
            "that end before they\n"
            "              start, %lld that start before their launch\n",
            (long long)n_dropped, (long long)dropped.no_time,
            (long long)dropped.backwards, (long long)dropped.before_call);
    for (size_t i = 0; i < report->file.remarks.n; i++)
        fprintf(out, "  remark      %s\n", report->file.remarks.items[i]);
}

static void print_classes(const gx_trace_device *device, FILE *out)
{
    gx_text_table *const table = gx_text_table_create("lrrrrr");
    static const char *const titles[] = { "class of gap", "gaps",          "ns",
                                          "of idle",      "between steps", "ns" };
    gx_trace_share steps = { 0 };

    for (size_t i = 0; i < 6; i++)
        gx_text_table_cell(table, "%s", titles[i]);
    gx_text_table_rule(table);
    for (int c = 0; c < GX_GAP_CLASSES; c++) {
        gx_text_table_cell(table, "%s", gx_gap_class_name((gx_gap_class)c));
        gx_text_table_cell(table, "%lld", (long long)device->gaps[c].n);
        gx_text_table_cell(table, "%lld", (long long)device->gaps[c].ns);
        gx_text_table_cell(table, "%.1f%%", percent(device->gaps[c].ns, device->idle));
        gx_text_table_cell(table, "%lld", (long long)device->step_gaps[c].n);
        gx_text_table_cell(table, "%lld", (long long)device->step_gaps[c].ns);
        steps.n += device->step_gaps[c].n;
        steps.ns += device->step_gaps[c].ns;
    }
    gx_text_table_rule(table);
    gx_text_table_cell(table, "all");
    gx_text_table_cell(table, "%zu", device->n_gaps);
    gx_text_table_cell(table, "%lld", (long long)device->idle);
    gx_text_table_cell(table, "%.1f%%", percent(device->idle, device->idle));
    gx_text_table_cell(table, "%lld", (long long)steps.n);
    gx_text_table_cell(table, "%lld", (long long)steps.ns);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

/* "range: kernel", as far as they are known. */
static shortened side_name(const gx_trace *trace, const gx_trace_activity *activity)
{
    size_t n;
    const gx_trace_range *const ranges = gx_trace_ranges(trace, &n);
    const char *const name = gx_trace_text_at(trace, activity->name);
    char both[256];

    if (activity->range == GX_TRACE_NONE)
        return shorten(name, GAP_NAME_WIDTH);
    const char *const range = gx_trace_text_at(trace, ranges[activity->range].name);
    snprintf(both, sizeof both, "%s: %s", shorten(range, GAP_NAME_WIDTH / 2).text,
             shorten(name, NAME_WIDTH).text);
    return shorten(both, GAP_NAME_WIDTH);
}

static void print_largest(const gx_trace *trace, const gx_trace_device *device, FILE *out)
{
    gx_text_table *const table = gx_text_table_create("rlll");
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n);

    if (device->n_largest == 0) {
        gx_text_table_free(table);
        return;
    }
    gx_text_table_cell(table, "largest, ns");
    gx_text_table_cell(table, "class");
    gx_text_table_cell(table, "after");
    gx_text_table_cell(table, "before");
    gx_text_table_rule(table);
    for (size_t i = 0; i < device->n_largest; i++) {
        const gx_trace_gap *const gap = &device->gap[device->largest[i]];

        gx_text_table_cell(table, "%lld", (long long)(gap->end - gap->start));
        gx_text_table_cell(table, "%s%s", gx_gap_class_name(gap->type),
                           gap->between_steps ? ", step" : "");
        gx_text_table_cell(table, "%s", side_name(trace, &activities[gap->before]).text);
        gx_text_table_cell(table, "%s", side_name(trace, &activities[gap->after]).text);
    }
    fputc('\n', out);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

static void print_device(const gx_nsys_report *report, const gx_trace_device *device,
                         FILE *out)
{
    const int64_t pid = gx_trace_file_pid(&report->file, device->process);

    fprintf(out, "\ndevice %lld, %s", (long long)device->device,
            gx_nsys_gpu_name(&report->file, device->device));
    if (pid != GX_TRACE_NONE)
        fprintf(out, ", process %lld", (long long)pid);
    fprintf(out, "\n  %lld kernels, %lld copies, %lld fills",
            (long long)device->kind[GX_TRACE_KERNEL].n,
            (long long)device->kind[GX_TRACE_COPY].n,
            (long long)device->kind[GX_TRACE_FILL].n);
    if (device->kind[GX_TRACE_GRAPH].n)
        fprintf(out, ", %lld whole replays", (long long)device->kind[GX_TRACE_GRAPH].n);
    fprintf(out, "\n  span %lld ns = busy %lld (%.1f%%) + idle %lld (%.1f%%)\n\n",
            (long long)device->span, (long long)device->busy,
            percent(device->busy, device->span), (long long)device->idle,
            percent(device->idle, device->span));
    print_classes(device, out);
    print_largest(report->file.trace, device, out);
    for (size_t i = 0; i < device->n_streams; i++) {
        const gx_trace_stream *const stream = &device->stream[i];

        fprintf(out, "%s  stream %lld: %lld kernels", i ? "" : "\n",
                (long long)stream->stream, (long long)stream->n_kernels);
        if (stream->median_ns != GX_TRACE_NONE)
            fprintf(out, ", median distance %lld ns", (long long)stream->median_ns);
        fputc('\n', out);
    }
}

static void print_calls(const gx_nsys_report *report, FILE *out)
{
    const gx_trace_figures *const figures = report->figures;
    gx_text_table *table;

    if (!gx_nsys_has_calls(report)) {
        fputs("\n  launch calls: n/a (the trace has no calls of the runtime)\n", out);
        return;
    }
    table = gx_text_table_create("lrrr");
    gx_text_table_cell(table, "launch calls of");
    gx_text_table_cell(table, "calls");
    gx_text_table_cell(table, "host ns");
    gx_text_table_cell(table, "without work seen");
    gx_text_table_rule(table);
    for (int k = 0; k < GX_TRACE_CALL_OTHER; k++) {
        gx_text_table_cell(table, "%s", gx_nsys_call_name((gx_trace_call_kind)k));
        gx_text_table_cell(table, "%lld", (long long)figures->calls[k].n);
        gx_text_table_cell(table, "%lld", (long long)figures->calls[k].ns);
        gx_text_table_cell(table, "%lld", (long long)figures->calls_without_work[k]);
    }
    fputc('\n', out);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

static void print_ops(const gx_nsys_report *report, int64_t top, FILE *out)
{
    gx_text_table *const table = gx_text_table_create("rrrrrll");
    static const char *const titles[] = { "share", "ns",   "times", "median",
                                          "p95",   "kind", "name" };
    const gx_trace_figures *const figures = report->figures;
    int64_t all = 0;

    for (int k = 0; k < GX_TRACE_KINDS; k++)
        all =
            all > INT64_MAX - figures->kind[k].ns ? INT64_MAX : all + figures->kind[k].ns;
    for (size_t i = 0; i < 7; i++)
        gx_text_table_cell(table, "%s", titles[i]);
    gx_text_table_rule(table);
    for (size_t i = 0; i < figures->n_ops && (int64_t)i < top; i++) {
        const gx_trace_op *const op = &figures->op[i];

        gx_text_table_cell(table, "%.1f%%", percent(op->share.ns, all));
        gx_text_table_cell(table, "%lld", (long long)op->share.ns);
        gx_text_table_cell(table, "%lld", (long long)op->share.n);
        gx_text_table_cell(table, "%lld", (long long)op->median_ns);
        gx_text_table_cell(table, "%lld", (long long)op->p95_ns);
        gx_text_table_cell(table, "%s", gx_nsys_kind_name(op->kind));
        gx_text_table_cell(
            table, "%s",
            shorten(gx_trace_text_at(report->file.trace, op->name), NAME_WIDTH).text);
    }
    fputc('\n', out);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    if ((int64_t)figures->n_ops > top)
        fprintf(out, "  and %lld more names\n",
                (long long)((int64_t)figures->n_ops - top));
}

static void print_ranges(const gx_nsys_report *report, int64_t top, FILE *out)
{
    gx_text_table *const table = gx_text_table_create("rrll");
    const gx_trace_figures *const figures = report->figures;
    const gx_trace *const trace = report->file.trace;

    gx_text_table_cell(table, "ns");
    gx_text_table_cell(table, "ops");
    gx_text_table_cell(table, "by");
    gx_text_table_cell(table, "range");
    gx_text_table_rule(table);
    for (size_t i = 0; i < figures->n_ranges && (int64_t)i < top; i++) {
        const gx_trace_range_sum *const range = &figures->range[i];
        const char *const domain = gx_trace_text_at(trace, range->domain);

        gx_text_table_cell(table, "%lld", (long long)range->share.ns);
        gx_text_table_cell(table, "%lld", (long long)range->share.n);
        gx_text_table_cell(table, "%s",
                           range->by == GX_TRACE_BY_NONE ? "several"
                                                         : gx_nsys_by_name(range->by));
        gx_text_table_cell(table, "%s%s%s",
                           shorten(gx_trace_text_at(trace, range->name), NAME_WIDTH).text,
                           domain[0] ? "  " : "", shorten(domain, GAP_NAME_WIDTH).text);
    }
    fputc('\n', out);
    if (figures->n_ranges)
        gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    if ((int64_t)figures->n_ranges > top)
        fprintf(out, "  and %lld more ranges\n",
                (long long)((int64_t)figures->n_ranges - top));
    fputs("  attributed to the innermost range:", out);
    for (int b = GX_TRACE_BY_LAUNCH; b < GX_TRACE_BYS; b++)
        fprintf(out, " %lld by %s,", (long long)figures->by[b].n,
                gx_nsys_by_name((gx_trace_by)b));
    fprintf(out, " not attributed: %lld\n", (long long)figures->by[GX_TRACE_BY_NONE].n);
    if (figures->by[GX_TRACE_BY_NONE].n)
        fputs("  (not attributed: no range was open on the thread of the launch, or the "
              "launch is not in the trace)\n",
              out);
}

void gx_nsys_print(const gx_nsys_report *report, const gx_args *args, FILE *out)
{
    size_t n_ranges;

    print_verdict(report, out);
    print_source(report, args->verbose, out);
    if (!args->quiet)
        print_remarks(report, out);
    for (size_t i = 0; i < report->figures->n_devices; i++)
        print_device(report, &report->figures->device[i], out);
    print_calls(report, out);
    if (report->figures->n_ops)
        print_ops(report, args->top, out);
    gx_trace_ranges(report->file.trace, &n_ranges);
    if (n_ranges == 0)
        fputs("\n  no NVTX data: nothing to attribute the ops to\n", out);
    else if (report->figures->n_ops)
        print_ranges(report, args->top, out);
}
