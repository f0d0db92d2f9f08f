/* The figures of a whole trace: steps, the window that counts, calls, and one block of
 * figures for each device of each process. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "trace_model.h"

/* Whether a range's name is `name`, with a number behind it or without: "step",
 * "step 12", "ProfilerStep#3". */
static bool is_named(const char *text, const char *name)
{
    const size_t length = strlen(name);

    if (strncmp(text, name, length) != 0)
        return false;
    text += length;
    if (!*text)
        return true;
    text += strspn(text, " #_:");
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Which ranges are meant, and where each activity's launch lies among them. */
typedef struct selection {
    gx_trace_span *spans;
    gx_trace_query *queries;
    size_t n_spans, n_queries;
    int32_t *range; /* of each activity */
} selection;

static void selection_free(selection *chosen)
{
    free(chosen->spans);
    free(chosen->queries);
    free(chosen->range);
}

static gx_status selection_create(const gx_trace *trace, selection *chosen, gx_error *err)
{
    *chosen = (selection){
        .spans = calloc(trace->n_ranges + 1, sizeof *chosen->spans),
        .queries =
            calloc(trace->n_activities + trace->n_calls + 1, sizeof *chosen->queries),
        .range = calloc(trace->n_activities + 1, sizeof *chosen->range),
    };
    if (chosen->spans && chosen->queries && chosen->range)
        return GX_OK;
    selection_free(chosen);
    *chosen = (selection){ 0 };
    return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the figures of a trace");
}

/* Host threads of a process are one here: frameworks launch a step's backward half from a
 * thread of its own. */
static size_t select_ranges(const gx_trace *trace, const char *name, const char *domain,
                            gx_trace_span *spans)
{
    size_t n = 0;

    for (size_t i = 0; i < trace->n_ranges; i++) {
        const gx_trace_range *const range = &trace->ranges[i];

        if (range->end >= range->start &&
            is_named(gx_trace_text_at(trace, range->name), name) &&
            (!domain || strcmp(gx_trace_text_at(trace, range->domain), domain) == 0))
            spans[n++] = (gx_trace_span){
                .key = range->process,
                .start = range->start,
                .end = range->end,
                .range = (int32_t)i,
            };
    }
    return n;
}

static gx_status place_activities(const gx_trace *trace, selection *chosen, gx_error *err)
{
    chosen->n_queries = 0;
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        chosen->range[i] = GX_TRACE_NONE;
        if (activity->call != GX_TRACE_NONE)
            chosen->queries[chosen->n_queries++] = (gx_trace_query){
                .key = activity->process,
                .time = trace->calls[activity->call].start,
                .index = (int32_t)i,
            };
    }
    GX_TRY(gx_trace_cover(chosen->spans, chosen->n_spans, chosen->queries,
                          chosen->n_queries, err));
    for (size_t i = 0; i < chosen->n_queries; i++)
        chosen->range[chosen->queries[i].index] = chosen->queries[i].range;
    return GX_OK;
}

/* --- calls --- */

static void count_calls(const gx_trace *trace, const bool *counted,
                        gx_trace_figures *figures)
{
    for (size_t i = 0; i < trace->n_calls; i++) {
        const gx_trace_call *const call = &trace->calls[i];

        if (call->twin || (counted && !counted[i]))
            continue;
        gx_trace_share_add(&figures->calls[call->kind],
                           call->end > call->start ? call->end - call->start : 0);
        figures->calls_without_work[call->kind] += call->n_activities == 0;
    }
}

static gx_status count_calls_within(const gx_trace *trace, selection *window,
                                    gx_trace_figures *figures, gx_error *err)
{
    bool *counted = calloc(trace->n_calls + 1, sizeof *counted);
    gx_status st;

    if (!counted)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the calls of a trace");
    window->n_queries = trace->n_calls;
    for (size_t i = 0; i < trace->n_calls; i++)
        window->queries[i] = (gx_trace_query){ .key = trace->calls[i].process,
                                               .time = trace->calls[i].start,
                                               .index = (int32_t)i };
    st = gx_trace_cover(window->spans, window->n_spans, window->queries,
                        window->n_queries, err);
    for (size_t i = 0; st == GX_OK && i < window->n_queries; i++)
        counted[window->queries[i].index] = window->queries[i].range != GX_TRACE_NONE;
    if (st == GX_OK)
        count_calls(trace, counted, figures);
    free(counted);
    return st;
}

/* --- devices --- */

static bool same_device(const gx_trace_activity *a, const gx_trace_activity *b)
{
    return a->process == b->process && a->device == b->device;
}

static bool any_counted(const bool *counted, size_t first, size_t end)
{
    while (counted && first < end && !counted[first])
        first++;
    return first < end;
}

static gx_status make_devices(const gx_trace *trace, const bool *counted,
                              const int32_t *step, gx_trace_figures *figures,
                              gx_error *err)
{
    const gx_trace_activity *const activities = trace->activities;
    const size_t n = trace->n_activities;
    size_t n_devices = 0;

    for (size_t i = 0; i < n; i++)
        n_devices += i == 0 || !same_device(&activities[i - 1], &activities[i]);
    figures->device = calloc(n_devices + 1, sizeof *figures->device);
    if (!figures->device)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the devices of a trace");
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && same_device(&activities[first], &activities[end]);)
            end++;
        if (!any_counted(counted, first, end))
            continue;
        GX_TRY(gx_trace_device_figures(trace, first, end - first, counted, step,
                                       &figures->device[figures->n_devices++], err));
    }
    return GX_OK;
}

static void add_totals(const gx_trace *trace, const bool *counted,
                       gx_trace_figures *figures)
{
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (counted && !counted[i])
            continue;
        gx_trace_share_add(&figures->kind[activity->kind],
                           activity->end - activity->start);
        figures->n_replayed += activity->call != GX_TRACE_NONE &&
                               trace->calls[activity->call].kind == GX_TRACE_CALL_GRAPH;
    }
}

/* --- all of it --- */

size_t gx_trace_select_window(const gx_trace *trace, const char *given,
                              gx_trace_span *spans)
{
    if (given)
        return given[0] ? select_ranges(trace, given, NULL, spans) : 0;
    return select_ranges(trace, "measured", "gexec", spans);
}

/* Keeps the spans that begin in one of the windows; returns how many. */
static size_t keep_within(gx_trace_span *spans, size_t n, const gx_trace_span *windows,
                          size_t n_windows)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        size_t w = 0;

        while (w < n_windows &&
               (windows[w].key != spans[i].key || spans[i].start < windows[w].start ||
                spans[i].start >= windows[w].end))
            w++;
        if (w < n_windows)
            spans[n_kept++] = spans[i];
    }
    return n_kept;
}

size_t gx_trace_select_steps(const gx_trace *trace, const char *given,
                             const gx_trace_span *windows, size_t n_windows,
                             gx_trace_span *spans)
{
    /* gexec's own replays are marked by themselves; its steps are its launches then. */
    static const struct {
        const char *name, *domain;
    } usual[] = { { "step", NULL }, { "ProfilerStep", NULL }, { "replay", "gexec" } };
    size_t n = 0;

    for (size_t i = 0; i < (given ? 1 : 3) && n == 0; i++) {
        n = given ? select_ranges(trace, given, NULL, spans)
                  : select_ranges(trace, usual[i].name, usual[i].domain, spans);
        if (n_windows)
            n = keep_within(spans, n, windows, n_windows);
    }
    return n;
}

static gx_status find_steps(const gx_trace *trace, const char *given,
                            const selection *window, selection *steps,
                            gx_trace_figures *figures, gx_error *err)
{
    steps->n_spans =
        gx_trace_select_steps(trace, given, window->spans, window->n_spans, steps->spans);
    figures->n_steps = (int64_t)steps->n_spans;
    if (steps->n_spans)
        figures->step_name = trace->ranges[steps->spans[0].range].name;
    return place_activities(trace, steps, err);
}

/* The window: *counted stays NULL where everything counts. */
static gx_status find_window(const gx_trace *trace, const char *given, selection *window,
                             gx_trace_figures *figures, bool **counted, gx_error *err)
{
    window->n_spans = gx_trace_select_window(trace, given, window->spans);
    if (given && given[0] && window->n_spans == 0)
        return GX_FAIL(err, GX_ERR_DATA, "no range is named '%s'", given);
    if (window->n_spans == 0)
        return GX_OK;
    figures->within = true;
    figures->within_name = trace->ranges[window->spans[0].range].name;
    *counted = calloc(trace->n_activities + 1, sizeof **counted);
    if (!*counted)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the figures of a trace");
    GX_TRY(place_activities(trace, window, err));
    for (size_t i = 0; i < trace->n_activities; i++)
        (*counted)[i] = window->range[i] != GX_TRACE_NONE;
    return GX_OK;
}

static gx_status fill(const gx_trace *trace, const gx_trace_options *options,
                      selection *steps, selection *window, bool **counted,
                      gx_trace_figures *figures, gx_error *err)
{
    GX_TRY(find_window(trace, options->within, window, figures, counted, err));
    GX_TRY(find_steps(trace, options->step, window, steps, figures, err));
    if (figures->within)
        GX_TRY(count_calls_within(trace, window, figures, err));
    else
        count_calls(trace, NULL, figures);
    add_totals(trace, *counted, figures);
    GX_TRY(make_devices(trace, *counted, steps->range, figures, err));
    GX_TRY(gx_trace_op_table(trace, *counted, figures, err));
    return gx_trace_range_table(trace, *counted, figures, err);
}

gx_status gx_trace_figures_create(const gx_trace *trace, const gx_trace_options *options,
                                  gx_trace_figures **figures, gx_error *err)
{
    static const gx_trace_options nothing_asked;
    selection steps = { 0 };
    selection window = { 0 };
    bool *counted = NULL;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(figures, "figures", err));
    *figures = NULL;
    GX_TRY(gx_need(trace, "trace", err));
    if (!trace->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the trace is not finished");
    *figures = calloc(1, sizeof **figures);
    st = *figures ? selection_create(trace, &steps, err)
                  : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st == GX_OK)
        st = selection_create(trace, &window, err);
    if (st == GX_OK)
        st = fill(trace, options ? options : &nothing_asked, &steps, &window, &counted,
                  *figures, err);
    selection_free(&steps);
    selection_free(&window);
    free(counted);
    if (st != GX_OK) {
        gx_trace_figures_free(*figures);
        *figures = NULL;
    }
    return st;
}

void gx_trace_figures_free(gx_trace_figures *figures)
{
    if (!figures)
        return;
    for (size_t i = 0; i < figures->n_devices; i++) {
        free(figures->device[i].gap);
        free(figures->device[i].stream);
    }
    free(figures->device);
    free(figures->op);
    free(figures->range);
    free(figures);
}
