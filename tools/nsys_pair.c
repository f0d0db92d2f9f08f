/* Two traces side by side: did the second do the same work with fewer launches and gaps?
 */
#include <math.h>

#include "nsys_report.h"
#include "text_format.h"
#include "text_table.h"

/* From here on busy times are said to differ. Clocks and tracing alone make a few
 * percent. */
static const double busy_tolerance = 0.05;

static void add_row(gx_text_table *table, const char *name, int64_t before, int64_t after)
{
    gx_text_table_cell(table, "%s", name);
    gx_text_table_cell(table, "%s", gx_words_count(before).text);
    gx_text_table_cell(table, "%s", gx_words_count(after).text);
    if (before < 0 || after < 0)
        gx_text_table_cell(table, "n/a");
    else if (before == after)
        gx_text_table_cell(table, "same");
    else if (before > 0)
        gx_text_table_cell(table, "x %.3f", (double)after / (double)before);
    else
        gx_text_table_cell(table, "n/a");
}

/* -1, which is n/a, where the trace has no calls. */
static int64_t calls_of(const gx_nsys_report *report, gx_trace_call_kind kind)
{
    return gx_nsys_has_calls(report) ? report->figures->calls[kind].n : -1;
}

static int64_t launches_of(const gx_nsys_report *report)
{
    return gx_nsys_has_calls(report) ? calls_of(report, GX_TRACE_CALL_KERNEL) +
                                           calls_of(report, GX_TRACE_CALL_GRAPH)
                                     : -1;
}

static void print_warnings(const gx_nsys_report *before, const gx_nsys_report *after,
                           FILE *out)
{
    const int64_t kernels_before = before->figures->kind[GX_TRACE_KERNEL].n;
    const int64_t kernels_after = after->figures->kind[GX_TRACE_KERNEL].n;
    const gx_nsys_totals a = gx_nsys_totals_of(before->figures);
    const gx_nsys_totals b = gx_nsys_totals_of(after->figures);

    if (gx_nsys_is_whole_graph(before) || gx_nsys_is_whole_graph(after))
        fputs("  warning: graph-level trace: a replay's kernels are not in it, so that "
              "kernels cannot be\n"
              "  compared; trace with nsys profile --cuda-graph-trace=node\n",
              out);
    else if (kernels_before != kernels_after)
        fprintf(
            out,
            "  warning: %lld kernels before, %lld after: the two did not run the same "
            "work, or one\n"
            "  trace is cut\n",
            (long long)kernels_before, (long long)kernels_after);
    if (a.busy > 0 && b.busy > 0 &&
        fabs((double)b.busy / (double)a.busy - 1) > busy_tolerance)
        fprintf(out,
                "  warning: busy time differs by %+.1f%%: the kernels became other ones, "
                "ran side by side,\n"
                "  or ran at another clock\n",
                100 * ((double)b.busy / (double)a.busy - 1));
}

static void print_steps(const gx_nsys_report *before, const gx_nsys_report *after,
                        FILE *out)
{
    const int64_t n_before = before->figures->n_steps;
    const int64_t n_after = after->figures->n_steps;

    if (n_before && n_after && n_before != n_after)
        fprintf(out, "  warning: %lld steps before, %lld after\n", (long long)n_before,
                (long long)n_after);
}

void gx_nsys_print_pair(const gx_nsys_report *before, const gx_nsys_report *after,
                        FILE *out)
{
    static const char *const classes[GX_GAP_CLASSES] = { "  host, ns", "  launch, ns",
                                                         "  device, ns",
                                                         "  unknown, ns" };
    const gx_trace_figures *const a = before->figures;
    const gx_trace_figures *const b = after->figures;
    const gx_nsys_totals first = gx_nsys_totals_of(a);
    const gx_nsys_totals second = gx_nsys_totals_of(b);
    gx_text_table *const table = gx_text_table_create("lrrr");

    fprintf(out,
            "before against after: %s launches became %s, idle time went from %s to %s, "
            "busy time from %s to %s.\n\n",
            gx_words_count(launches_of(before)).text,
            gx_words_count(launches_of(after)).text,
            gx_words_seconds((double)first.idle * 1e-9).text,
            gx_words_seconds((double)second.idle * 1e-9).text,
            gx_words_seconds((double)first.busy * 1e-9).text,
            gx_words_seconds((double)second.busy * 1e-9).text);
    fprintf(out, "  before  %s\n  after   %s\n\n", before->file.path, after->file.path);
    gx_text_table_cell(table, "all devices");
    gx_text_table_cell(table, "before");
    gx_text_table_cell(table, "after");
    gx_text_table_cell(table, "after/before");
    gx_text_table_rule(table);
    add_row(table, "kernel launches", calls_of(before, GX_TRACE_CALL_KERNEL),
            calls_of(after, GX_TRACE_CALL_KERNEL));
    add_row(table, "graph launches", calls_of(before, GX_TRACE_CALL_GRAPH),
            calls_of(after, GX_TRACE_CALL_GRAPH));
    add_row(table, "kernels", a->kind[GX_TRACE_KERNEL].n, b->kind[GX_TRACE_KERNEL].n);
    add_row(table, "copies", a->kind[GX_TRACE_COPY].n, b->kind[GX_TRACE_COPY].n);
    add_row(table, "fills", a->kind[GX_TRACE_FILL].n, b->kind[GX_TRACE_FILL].n);
    add_row(table, "whole replays", a->kind[GX_TRACE_GRAPH].n, b->kind[GX_TRACE_GRAPH].n);
    add_row(table, "steps", a->n_steps, b->n_steps);
    add_row(table, "span, ns", first.span, second.span);
    add_row(table, "busy, ns", first.busy, second.busy);
    add_row(table, "idle, ns", first.idle, second.idle);
    add_row(table, "gaps", first.n_gaps, second.n_gaps);
    for (int c = 0; c < GX_GAP_CLASSES; c++)
        add_row(table, classes[c], first.gaps[c].ns, second.gaps[c].ns);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    print_warnings(before, after, out);
    print_steps(before, after, out);
}
