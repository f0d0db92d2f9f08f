/* Clock, window, slices and lanes of the reports that draw. */
#include "report_slices.h"

#include <stdlib.h>
#include <string.h>

/* Sides further apart than this are not shifted against each other. */
static const int64_t most_lead = INT64_C(1) << 60;

/* --- clock and window --- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t earliest(const gx_trace *trace, bool with_overhead)
{
    size_t n_activities, n_calls, n_ranges, n_overheads;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n_activities);
    const gx_trace_call *const calls = gx_trace_calls(trace, &n_calls);
    const gx_trace_range *const ranges = gx_trace_ranges(trace, &n_ranges);
    const gx_trace_overhead *const overheads = gx_trace_overheads(trace, &n_overheads);
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < n_activities; i++)
        first = least(first, activities[i].start);
    for (size_t i = 0; i < n_calls; i++)
        first = least(first, calls[i].start);
    for (size_t i = 0; i < n_ranges; i++)
        first = least(first, ranges[i].start);
    for (size_t i = 0; with_overhead && i < n_overheads; i++)
        first = least(first, overheads[i].start);
    return first == INT64_MAX ? 0 : first;
}

/* From the earliest record to the first activity that is counted; -1 where there is none.
 * What a program does before the steps that count takes each side another time. */
static int64_t lead_of(const gx_trace_figures *figures, int64_t first)
{
    int64_t start = INT64_MAX;

    for (size_t i = 0; i < figures->n_devices; i++)
        start = least(start, figures->device[i].start);
    return figures->n_devices ? start - first : -1;
}

int64_t gx_report_last(const gx_trace *trace, bool with_overhead)
{
    size_t n_activities, n_calls, n_ranges, n_overheads;
    const gx_trace_activity *const activities = gx_trace_activities(trace, &n_activities);
    const gx_trace_call *const calls = gx_trace_calls(trace, &n_calls);
    const gx_trace_range *const ranges = gx_trace_ranges(trace, &n_ranges);
    const gx_trace_overhead *const overheads = gx_trace_overheads(trace, &n_overheads);
    int64_t last = -GX_TRACE_MOST_TIME;

    for (size_t i = 0; i < n_activities; i++)
        last = activities[i].end > last ? activities[i].end : last;
    for (size_t i = 0; i < n_calls; i++)
        last = calls[i].end > last ? calls[i].end : last;
    for (size_t i = 0; i < n_ranges; i++) {
        const int64_t end =
            ranges[i].end == GX_TRACE_OPEN ? ranges[i].start : ranges[i].end;

        last = end > last ? end : last;
    }
    for (size_t i = 0; with_overhead && i < n_overheads; i++)
        last = overheads[i].end > last ? overheads[i].end : last;
    return last;
}

int64_t gx_report_time(const gx_report_window *window, size_t side, int64_t time)
{
    return time - window->origin[side];
}

bool gx_report_shows(const gx_report_window *window, size_t side, int64_t start)
{
    return window->cut == INT64_MAX || gx_report_time(window, side, start) < window->cut;
}

static void set_origins(const gx_report *report, bool with_overhead,
                        gx_report_window *window)
{
    int64_t lead[2] = { -1, -1 }, longest = 0;

    for (size_t i = 0; i < report->n_sides; i++) {
        window->origin[i] = earliest(report->side[i].trace, with_overhead);
        lead[i] = lead_of(report->side[i].figures, window->origin[i]);
        longest = lead[i] > longest ? lead[i] : longest;
    }
    for (size_t i = 0; i < report->n_sides && longest < most_lead; i++)
        if (lead[i] >= 0)
            window->origin[i] -= longest - lead[i];
}

/* Events of what the window shows; `records` becomes their number. */
static int64_t weigh(const gx_report *report, const gx_report_window *window,
                     const gx_report_weights *weights, int64_t *records)
{
    int64_t sum = 0;

    *records = 0;
    for (size_t s = 0; s < report->n_sides; s++) {
        const gx_trace *const trace = report->side[s].trace;
        size_t n_activities, n_calls, n_ranges, n_overheads;
        const gx_trace_activity *const activities =
            gx_trace_activities(trace, &n_activities);
        const gx_trace_call *const calls = gx_trace_calls(trace, &n_calls);
        const gx_trace_range *const ranges = gx_trace_ranges(trace, &n_ranges);
        const gx_trace_overhead *const overheads =
            gx_trace_overheads(trace, &n_overheads);
        const gx_trace_figures *const figures = report->side[s].figures;
        int64_t n[5] = { 0 }, n_launches = 0;

        for (size_t i = 0; i < n_activities; i++)
            n[0] += gx_report_shows(window, s, activities[i].start);
        for (size_t i = 0; i < n_calls; i++)
            if (gx_report_shows(window, s, calls[i].start)) {
                n[1]++;
                n_launches += calls[i].n_activities > 0;
            }
        for (size_t i = 0; i < n_ranges; i++)
            n[2] += gx_report_shows(window, s, ranges[i].start);
        for (size_t d = 0; d < figures->n_devices; d++)
            for (size_t i = 0; i < figures->device[d].n_gaps; i++)
                n[3] += gx_report_shows(window, s, figures->device[d].gap[i].end);
        for (size_t i = 0; i < n_overheads; i++)
            n[4] += gx_report_shows(window, s, overheads[i].start);
        sum += n[0] * weights->activity + n[1] * weights->call + n[2] * weights->range +
               n[3] * weights->gap + n[4] * weights->overhead +
               n_launches * weights->launch;
        *records += (weights->activity ? n[0] : 0) + (weights->call ? n[1] : 0) +
                    (weights->range ? n[2] : 0) + (weights->gap ? n[3] : 0) +
                    (weights->overhead ? n[4] : 0);
    }
    return sum;
}

gx_report_window gx_report_window_of(const gx_report *report, int64_t most,
                                     const gx_report_weights *weights)
{
    const bool with_overhead = weights->overhead != 0; /* else it is not drawn */
    gx_report_window window = { .cut = INT64_MAX };
    int64_t low = 0, high = 1, all, shown;

    set_origins(report, with_overhead, &window);
    if (weigh(report, &window, weights, &all) <= most)
        return window;
    for (size_t i = 0; i < report->n_sides; i++) {
        const int64_t last = gx_report_last(report->side[i].trace, with_overhead);
        const int64_t end = gx_report_time(&window, i, last);

        high = end >= high ? end + 1 : high;
    }
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;

        window.cut = middle;
        if (weigh(report, &window, weights, &shown) <= most)
            low = middle;
        else
            high = middle;
    }
    window.cut = low;
    (void)weigh(report, &window, weights, &shown);
    window.left_out = all - shown;
    return window;
}

/* --- slices --- */

gx_status gx_slices_add(gx_slices *slices, const gx_slice *slice, gx_error *err)
{
    if (slices->n == slices->capacity) {
        const size_t capacity = slices->capacity ? 2 * slices->capacity : 64;
        gx_slice *const grown = realloc(slices->items, capacity * sizeof *grown);

        if (!grown)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory while sorting a trace");
        slices->items = grown;
        slices->capacity = capacity;
    }
    slices->items[slices->n++] = *slice;
    return GX_OK;
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_row(const void *left, const void *right)
{
    const gx_slice *const a = left;
    const gx_slice *const b = right;
    int c = 0;

    for (int i = 0; i < 3 && c == 0; i++)
        c = order(a->row[i], b->row[i]);
    if (c == 0)
        c = order(a->start, b->start);
    if (c == 0)
        c = order(b->end, a->end);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

void gx_slices_sort(gx_slices *slices)
{
    if (slices->n)
        qsort(slices->items, slices->n, sizeof *slices->items, by_row);
}

void gx_slices_free(gx_slices *slices)
{
    free(slices->items);
    *slices = (gx_slices){ 0 };
}

size_t gx_slices_run(const gx_slices *slices, size_t from, int n_keys)
{
    size_t n = 1;

    while (from + n < slices->n &&
           memcmp(slices->items[from].row, slices->items[from + n].row,
                  (size_t)n_keys * sizeof slices->items[from].row[0]) == 0)
        n++;
    return n;
}

gx_status gx_slices_replays(const gx_trace *trace, const gx_slice *activities, size_t n,
                            gx_slices *replays, gx_error *err)
{
    size_t n_all, n_replays = 0;
    const gx_trace_activity *const all = gx_trace_activities(trace, &n_all);
    const gx_trace_call *const calls = gx_trace_calls(trace, &n_all);

    *replays = (gx_slices){ 0 };
    for (size_t i = 0; i < n; i++) {
        const int32_t call = all[activities[i].index].call;
        const gx_slice slice = {
            { call, 0, 0 }, activities[i].start, activities[i].end, i
        };

        if (call != GX_TRACE_NONE && calls[call].kind == GX_TRACE_CALL_GRAPH)
            GX_TRY(gx_slices_add(replays, &slice, err));
    }
    gx_slices_sort(replays);
    for (size_t i = 0; i < replays->n;) {
        const size_t run = gx_slices_run(replays, i, 1);
        gx_slice replay = replays->items[i];

        for (size_t k = 1; k < run; k++)
            if (replays->items[i + k].end > replay.end)
                replay.end = replays->items[i + k].end;
        replay.row[0] = 0;
        replay.index = run;
        replays->items[n_replays++] = replay;
        i += run;
    }
    replays->n = n_replays;
    gx_slices_sort(replays);
    return GX_OK;
}

/* --- lanes --- */

void gx_lanes_start(gx_lanes *lanes, bool nest)
{
    lanes->nest = nest;
    lanes->n = 0;
    memset(lanes->depth, 0, sizeof lanes->depth);
}

static bool fits(gx_lanes *lanes, size_t lane, int64_t start, int64_t end)
{
    int64_t *const open = lanes->end[lane];
    size_t *const depth = &lanes->depth[lane];

    while (*depth > 0 && open[*depth - 1] <= start)
        (*depth)--;
    if (*depth == GX_LANE_DEPTH ||
        (*depth > 0 && !(lanes->nest && end <= open[*depth - 1])))
        return false;
    open[(*depth)++] = end;
    return true;
}

size_t gx_lanes_place(gx_lanes *lanes, int64_t start, int64_t end)
{
    for (size_t i = 0; i < lanes->n && i < GX_LANES; i++)
        if (fits(lanes, i, start, end))
            return i;
    const size_t lane = lanes->n++;
    if (lane < GX_LANES)
        (void)fits(lanes, lane, start, end);
    return lane;
}
