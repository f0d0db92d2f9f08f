/* The sentences above the page. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report_page.h"

enum { SENTENCES = 1024 };

typedef struct sentences {
    char text[SENTENCES];
    size_t n;
} sentences;

static void say(sentences *to, const char *format, ...) GX_PRINTF(2, 3);

static void say(sentences *to, const char *format, ...)
{
    va_list values;
    int n;

    va_start(values, format);
    n = vsnprintf(to->text + to->n, sizeof to->text - to->n, format, values);
    va_end(values);
    if (n > 0)
        to->n +=
            (size_t)n < sizeof to->text - to->n ? (size_t)n : sizeof to->text - 1 - to->n;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

static const char *ns_words(gx_words *words, int64_t ns)
{
    *words = gx_words_seconds((double)ns * 1e-9);
    return words->text;
}

/* Of the idle time of a trace what most of it waited for. */
static void say_idle(sentences *to, const gx_trace_figures *figures, const char *name)
{
    static const char *const why[GX_GAP_CLASSES] = {
        "waits for the host to get to the launch",
        "falls while the launch call is under way",
        "is the device's own, between work that was already launched",
        "ends with work of which the trace has no launch call"
    };
    int64_t span = 0, busy = 0, idle = 0, ns[GX_GAP_CLASSES] = { 0 };
    gx_words busy_words, span_words;
    int most = 0;

    for (size_t i = 0; i < figures->n_devices; i++) {
        const gx_trace_device *const device = &figures->device[i];

        if (span > INT64_MAX - device->span)
            break;
        span += device->span;
        busy += device->busy;
        idle += device->idle;
        for (int c = 0; c < GX_GAP_CLASSES; c++)
            ns[c] += device->gaps[c].ns;
    }
    for (int c = 1; c < GX_GAP_CLASSES; c++)
        if (ns[c] > ns[most])
            most = c;
    if (figures->n_devices == 0) {
        say(to, "%s shows no work of a GPU.", name);
        return;
    }
    say(to, "In %s the GPU is busy for %s of %s (%.1f%%)", name,
        ns_words(&busy_words, busy), ns_words(&span_words, span), percent(busy, span));
    if (idle > 0)
        say(to, "; %.1f%% of its idle time %s", percent(ns[most], idle), why[most]);
    say(to, ".");
}

static void say_times(sentences *to, const gx_compare *compare)
{
    const gx_summary eager = gx_series_summary(&compare->way[GX_WAY_EAGER].steady);
    const gx_summary graph = gx_series_summary(&compare->way[GX_WAY_GRAPH].steady);
    const gx_summary ratio = gx_series_summary(&compare->ratio);
    const double pays = gx_compare_pays_after(compare);
    const gx_words eager_words = gx_words_seconds(eager.median);
    const gx_words graph_words = gx_words_seconds(graph.median);

    if (!ratio.n) {
        say(to, "No pair of blocks was timed.");
        return;
    }
    if (ratio.p95 < 1)
        say(to, "The graph is %.2f times as fast as eager launches: %s against %s a step",
            1 / ratio.median, graph_words.text, eager_words.text);
    else if (ratio.p5 > 1)
        say(to,
            "Eager launches are faster: the graph takes %.2f times as long, %s "
            "against %s a step",
            ratio.median, graph_words.text, eager_words.text);
    else
        say(to, "No clear difference: the graph takes %s and eager launches %s a step",
            graph_words.text, eager_words.text);
    if (pays >= 0)
        say(to, "; it pays back after %.0f steps.", pays);
    else
        say(to, "; it never pays back.");
}

static gx_words launches_of(const gx_report_side *side)
{
    const gx_trace_share *const calls = side->figures->calls;
    size_t n;

    gx_trace_calls(side->trace, &n);
    return gx_words_count(n ? calls[GX_TRACE_CALL_KERNEL].n + calls[GX_TRACE_CALL_GRAPH].n
                            : -1);
}

static void say_change(sentences *to, const gx_report *report)
{
    int64_t busy[2] = { 0 }, idle[2] = { 0 };
    gx_words words[4];

    for (size_t i = 0; i < 2; i++)
        for (size_t d = 0; d < report->side[i].figures->n_devices; d++) {
            busy[i] += report->side[i].figures->device[d].busy;
            idle[i] += report->side[i].figures->device[d].idle;
        }
    say(to,
        "%s launches became %s, idle time went from %s to %s, busy time from %s to %s.",
        launches_of(&report->side[0]).text, launches_of(&report->side[1]).text,
        ns_words(&words[0], idle[0]), ns_words(&words[1], idle[1]),
        ns_words(&words[2], busy[0]), ns_words(&words[3], busy[1]));
}

void gx_report_put_verdict(gx_json *json, const gx_report *report)
{
    sentences to = { .n = 0 };

    gx_json_array(json, "verdict");
    if (report->profile)
        say_times(&to, &report->profile->timing);
    else if (report->n_sides == 2)
        say_change(&to, report);
    if (to.n)
        gx_json_text(json, NULL, to.text);
    for (size_t i = 0; i < report->n_sides; i++) {
        to.n = 0;
        say_idle(&to, report->side[i].figures, report->side[i].title);
        gx_json_text(json, NULL, to.text);
    }
    gx_json_end(json);
}
