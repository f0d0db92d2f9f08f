/* A trace cut into its steps: span, busy, idle and the gaps of each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile_parts.h"

gx_status gx_profile_summary(const int64_t *ns, size_t n, gx_summary *summary,
                             gx_error *err)
{
    gx_series series = { 0 };
    bool fits = true;

    for (size_t i = 0; i < n && fits; i++)
        fits = gx_series_add(&series, (double)ns[i]);
    *summary = gx_series_summary(&series);
    gx_series_free(&series);
    return fits ? GX_OK
                : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for figures of a profile");
}

int64_t gx_profile_ns(double ns)
{
    return (int64_t)llround(ns);
}

/* --- which step an activity belongs to --- */

/* A range that is a step; `index` among the steps that have work. */
typedef struct window {
    int64_t process, start, end;
    int32_t index;
} window;

static bool is_step(const gx_trace *trace, const gx_trace_range *range)
{
    return strcmp(gx_trace_text_at(trace, range->domain), "gexec") == 0 &&
           strcmp(gx_trace_text_at(trace, range->name), "step") == 0;
}

static int compare_windows(const void *left, const void *right)
{
    const window *const a = left;
    const window *const b = right;

    return (a->start > b->start) - (a->start < b->start);
}

static gx_status find_windows(const gx_trace *trace, window **windows, size_t *n_windows,
                              gx_error *err)
{
    size_t n;
    const gx_trace_range *const ranges = gx_trace_ranges(trace, &n);
    window *found = calloc(n + 1, sizeof *found);

    *windows = found;
    *n_windows = 0;
    if (!found)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
    for (size_t i = 0; i < n; i++)
        if (is_step(trace, &ranges[i]))
            found[(*n_windows)++] = (window){ ranges[i].process, ranges[i].start,
                                              ranges[i].end, GX_TRACE_NONE };
    if (*n_windows)
        qsort(found, *n_windows, sizeof *found, compare_windows);
    return GX_OK;
}

/* The last window that began by then, if it still lasts: steps do not nest. */
static window *window_at(window *windows, size_t n_windows, int64_t process, int64_t time)
{
    size_t low = 0;
    size_t high = n_windows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (windows[middle].start <= time)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || windows[low - 1].process != process || windows[low - 1].end <= time)
        return NULL;
    return &windows[low - 1];
}

static window *window_of(const gx_trace *trace, const gx_trace_activity *activity,
                         window *windows, size_t n_windows)
{
    size_t n;
    const gx_trace_call *const calls = gx_trace_calls(trace, &n);

    if (activity->call == GX_TRACE_NONE)
        return NULL;
    return window_at(windows, n_windows, activity->process, calls[activity->call].start);
}

/* Windows without work, such as those of captures, are no steps. */
static size_t number_windows(const gx_profile_pass *pass, window *windows,
                             size_t n_windows)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(pass->trace, &n);
    int32_t n_steps = 0;

    for (size_t i = 0; i < n; i++) {
        window *const found = window_of(pass->trace, &activities[i], windows, n_windows);

        if (found)
            found->index = 0;
    }
    for (size_t i = 0; i < n_windows; i++)
        if (windows[i].index != GX_TRACE_NONE)
            windows[i].index = n_steps++;
    return (size_t)n_steps;
}

/* --- the figures --- */

static void span_steps(gx_profile_pass *pass, window *windows, size_t n_windows)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(pass->trace, &n);

    pass->found = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const gx_trace_activity *const activity = &activities[i];
        const window *const found = window_of(pass->trace, activity, windows, n_windows);

        pass->step_of[i] = found ? found->index : GX_TRACE_NONE;
        if (!found) {
            pass->outside++;
            continue;
        }
        gx_profile_step *const step = &pass->step[found->index];

        if (activity->start < step->start)
            step->start = activity->start;
        if (activity->end > step->end)
            step->end = activity->end;
        step->n_kernels += activity->kind == GX_TRACE_KERNEL;
    }
}

static bool ends_window(const gx_profile_schedule *schedule, size_t step, size_t n_steps)
{
    return step + 1 == n_steps || (int64_t)(step + 1) % schedule->active == 0;
}

/* The gap between two steps of one window. */
static bool is_step_gap(const gx_profile_pass *pass, const gx_profile_schedule *schedule,
                        const gx_trace_gap *gap)
{
    const int32_t before = pass->step_of[gap->before];
    const int32_t after = pass->step_of[gap->after];

    return before != GX_TRACE_NONE && after == before + 1 &&
           !ends_window(schedule, (size_t)before, pass->n_steps);
}

int32_t gx_profile_gap_step(const gx_profile_pass *pass, const gx_trace_gap *gap)
{
    const int32_t step = pass->step_of[gap->after];

    return step != GX_TRACE_NONE && gap->start >= pass->step[step].start ? step
                                                                         : GX_TRACE_NONE;
}

static void add_gap(gx_trace_share *share, const gx_trace_gap *gap)
{
    share->n++;
    share->ns += gap->end - gap->start;
}

static void share_gaps(gx_profile_pass *pass, const gx_profile_schedule *schedule)
{
    for (size_t d = 0; d < pass->figures->n_devices; d++) {
        const gx_trace_device *const device = &pass->figures->device[d];

        for (size_t i = 0; i < device->n_gaps; i++) {
            const gx_trace_gap *const gap = &device->gap[i];
            const int32_t step = gx_profile_gap_step(pass, gap);

            if (step != GX_TRACE_NONE)
                add_gap(&pass->step[step].gaps[gap->type], gap);
            else if (is_step_gap(pass, schedule, gap))
                add_gap(&pass->step_gaps[gap->type], gap);
        }
    }
}

static void sum_steps(gx_profile_pass *pass, const gx_profile_schedule *schedule)
{
    for (size_t i = 0; i < pass->n_steps; i++) {
        gx_profile_step *const step = &pass->step[i];

        for (int c = 0; c < GX_GAP_CLASSES; c++)
            step->idle += step->gaps[c].ns;
        step->busy = step->end - step->start - step->idle;
        step->step_gap = -1;
        if (!ends_window(schedule, i, pass->n_steps)) {
            const int64_t next = pass->step[i + 1].start;

            step->step_gap = next > step->end ? next - step->end : 0;
        }
    }
}

/* A call that returns when the device is done: of synchronization, or a copy that is not
 * asynchronous. */
static bool waits(const gx_trace *trace, const gx_trace_call *call)
{
    const char *const name = gx_trace_text_at(trace, call->name);

    if (call->twin)
        return false;
    if (call->kind == GX_TRACE_CALL_COPY)
        return strncmp(name, "cudaMemcpy", 10) == 0 && !strstr(name, "Async");
    return call->kind == GX_TRACE_CALL_OTHER && strstr(name, "Synchronize") != NULL;
}

static void count_waiting(gx_profile_pass *pass, window *windows, size_t n_windows)
{
    size_t n;
    const gx_trace_call *const calls = gx_trace_calls(pass->trace, &n);

    for (size_t i = 0; i < n; i++) {
        const window *found;

        if (!waits(pass->trace, &calls[i]))
            continue;
        found = window_at(windows, n_windows, calls[i].process, calls[i].start);
        pass->n_waiting_calls += found && found->index != GX_TRACE_NONE;
    }
}

gx_status gx_profile_steps(gx_profile_pass *pass, const gx_profile_schedule *schedule,
                           gx_error *err)
{
    window *windows;
    size_t n_windows, n_activities;
    gx_status st;

    (void)gx_trace_activities(pass->trace, &n_activities);
    st = find_windows(pass->trace, &windows, &n_windows, err);
    if (st != GX_OK)
        goto done;
    pass->n_steps = number_windows(pass, windows, n_windows);
    pass->step = calloc(pass->n_steps + 1, sizeof *pass->step);
    pass->step_of = calloc(n_activities + 1, sizeof *pass->step_of);
    if (!pass->step || !pass->step_of) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the steps of a trace");
        goto done;
    }
    for (size_t i = 0; i < pass->n_steps; i++)
        pass->step[i] = (gx_profile_step){ .start = INT64_MAX, .end = INT64_MIN };
    span_steps(pass, windows, n_windows);
    share_gaps(pass, schedule);
    sum_steps(pass, schedule);
    count_waiting(pass, windows, n_windows);
done:
    free(windows);
    return st;
}

/* --- the steps together --- */

const char *gx_profile_figure_name(gx_profile_figure figure)
{
    static const char *const names[GX_FIGURES] = { "span",    "busy",     "idle",
                                                   "host",    "launch",   "device",
                                                   "unknown", "step_gap", "step" };

    return names[figure];
}

/* < 0: this step has none. */
static int64_t figure_in(const gx_profile_step *step, gx_profile_figure figure)
{
    const int64_t span = step->end - step->start;

    switch (figure) {
    case GX_FIGURE_SPAN:
        return span;
    case GX_FIGURE_BUSY:
        return step->busy;
    case GX_FIGURE_IDLE:
        return step->idle;
    case GX_FIGURE_STEP_GAP:
        return step->step_gap;
    case GX_FIGURE_STEP:
        return step->step_gap < 0 ? -1 : span + step->step_gap;
    case GX_FIGURE_HOST:
    case GX_FIGURE_LAUNCH:
    case GX_FIGURE_DEVICE:
    case GX_FIGURE_UNKNOWN:
        return step->gaps[GX_GAP_HOST + (int)(figure - GX_FIGURE_HOST)].ns;
    case GX_FIGURES:
        break;
    }
    return -1;
}

gx_status gx_profile_figure_of(const gx_profile_pass *pass, gx_profile_figure figure,
                               gx_summary *summary, gx_error *err)
{
    int64_t *values = calloc(pass->n_steps + 1, sizeof *values);
    size_t n = 0;
    gx_status st;

    if (!values)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for figures of a profile");
    for (size_t i = 0; i < pass->n_steps; i++) {
        values[n] = figure_in(&pass->step[i], figure);
        n += values[n] >= 0;
    }
    st = gx_profile_summary(values, n, summary, err);
    free(values);
    return st;
}
