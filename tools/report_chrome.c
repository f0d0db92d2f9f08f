/* A trace in Chrome's JSON, as ui.perfetto.dev and chrome://tracing open it: a process
 * for the host and one for each GPU, on one clock. */
#include <stdlib.h>
#include <string.h>

#include "chrome_events.h"
#include "part_file.h"

enum { MOST_EVENTS = 1000000 };

/* --- the host --- */

static void put_call(gx_chrome *to, const gx_slice *slice, int64_t process,
                     int64_t thread)
{
    const gx_trace_call *const call = &to->calls[slice->index];

    gx_chrome_open_slice(to, "call", gx_chrome_text(to, call->name), process, thread,
                         slice);
    gx_json_object(to->json, "args");
    if (call->correlation != GX_TRACE_NONE)
        gx_json_integer(to->json, "correlation", call->correlation);
    gx_json_integer(to->json, "activities", call->n_activities);
    gx_json_end(to->json);
    gx_json_end(to->json);
    if (gx_bit(to->launched, slice->index))
        gx_chrome_flow(to, false, slice->index, process, thread, call->start);
}

static void put_range(gx_chrome *to, const gx_slice *slice, int64_t process,
                      int64_t thread)
{
    const gx_trace_range *const range = &to->ranges[slice->index];

    gx_chrome_open_slice(to, "range", gx_chrome_text(to, range->name), process, thread,
                         slice);
    gx_json_object(to->json, "args");
    if (range->domain)
        gx_json_text(to->json, "domain", gx_chrome_text(to, range->domain));
    if (range->end == GX_TRACE_OPEN)
        gx_json_bool(to->json, "never_closed", true);
    gx_json_end(to->json);
    gx_json_end(to->json);
}

static void put_overhead(gx_chrome *to, const gx_slice *slice, int64_t process,
                         int64_t thread)
{
    const gx_trace_overhead *const overhead = &to->overheads[slice->index];

    gx_chrome_open_slice(to, "overhead", gx_chrome_text(to, overhead->name), process,
                         thread, slice);
    gx_json_object(to->json, "args");
    if (overhead->device != GX_TRACE_NONE)
        gx_json_integer(to->json, "device", overhead->device);
    if (overhead->correlation != GX_TRACE_NONE)
        gx_json_integer(to->json, "correlation", overhead->correlation);
    gx_json_bool(to->json, "in_window", overhead->inside != GX_TRACE_NONE);
    gx_json_end(to->json);
    gx_json_end(to->json);
}

typedef void put_slice_fn(gx_chrome *to, const gx_slice *slice, int64_t process,
                          int64_t thread);

/* Rows of one process, from `*at` on, which is moved behind them. */
static gx_status write_threads(gx_chrome *to, const gx_slices *slices, size_t *at,
                               int64_t process, int64_t *place, const char *what,
                               put_slice_fn *put, gx_error *err)
{
    const size_t end = *at < slices->n ? *at + gx_slices_run(slices, *at, 1) : slices->n;
    gx_chrome_row row = { .thread = NULL };
    gx_status st = GX_OK;
    int64_t number = 0;

    while (*at < end && st == GX_OK) {
        const size_t behind = *at + gx_slices_run(slices, *at, GX_ROW_KEYS);
        const int64_t kind = slices->items[*at].row[2];
        char title[80];

        /* Of the ids that Nsight Systems gives to threads these are the system's. */
        number = slices->items[*at].row[1] & 0xFFFFFF;
        if (slices->items[*at].row[1] == GX_TRACE_NONE)
            snprintf(title, sizeof title, "%s", what);
        else
            snprintf(title, sizeof title, "%s, thread %lld%s", what, (long long)number,
                     kind == GX_TRACE_START_END ? ", start/end" : "");
        gx_chrome_row_start(&row, process, title, *place, true);
        for (; *at < behind && st == GX_OK; (*at)++) {
            int64_t thread;

            st = gx_chrome_place(to, &row, &slices->items[*at], &thread, err);
            if (st == GX_OK)
                put(to, &slices->items[*at], process, thread);
        }
        *place += (int64_t)row.lanes.n;
    }
    free(row.thread);
    return st;
}

static gx_status gather_host(gx_chrome *to, gx_slices *calls, gx_slices *ranges,
                             gx_error *err)
{
    const int64_t last = gx_report_last(to->trace, true);

    for (size_t i = 0; i < to->n_calls; i++) {
        const gx_trace_call *const call = &to->calls[i];
        const gx_slice slice = {
            { call->process, call->thread, 0 }, call->start, call->end, i
        };

        if (gx_report_shows(&to->window, to->side, call->start))
            GX_TRY(gx_slices_add(calls, &slice, err));
    }
    for (size_t i = 0; i < to->n_ranges; i++) {
        const gx_trace_range *const range = &to->ranges[i];
        const gx_slice slice = { { range->process, range->thread, (int64_t)range->kind },
                                 range->start,
                                 range->end == GX_TRACE_OPEN ? last : range->end,
                                 i };

        if (gx_report_shows(&to->window, to->side, range->start))
            GX_TRY(gx_slices_add(ranges, &slice, err));
    }
    gx_slices_sort(calls);
    gx_slices_sort(ranges);
    return GX_OK;
}

static gx_status write_host(gx_chrome *to, gx_error *err)
{
    gx_slices calls = { 0 }, ranges = { 0 };
    size_t call = 0, range = 0;
    int64_t n_hosts = 0;
    gx_status st = gather_host(to, &calls, &ranges, err);

    while (st == GX_OK && (call < calls.n || range < ranges.n)) {
        const bool has_calls =
            call < calls.n &&
            (range == ranges.n || calls.items[call].row[0] <= ranges.items[range].row[0]);
        const bool has_ranges =
            range < ranges.n &&
            (call == calls.n || ranges.items[range].row[0] <= calls.items[call].row[0]);
        const int64_t process =
            gx_chrome_process(to, "host", -1, n_hosts++, to->n_processes++);
        int64_t place = 0;

        if (has_ranges)
            st = write_threads(to, &ranges, &range, process, &place, "ranges", put_range,
                               err);
        if (st == GX_OK && has_calls)
            st = write_threads(to, &calls, &call, process, &place, "API calls", put_call,
                               err);
    }
    gx_slices_free(&calls);
    gx_slices_free(&ranges);
    return st;
}

/* --- overhead --- */

/* A process of its own: it is no work of the program. */
static gx_status write_overhead(gx_chrome *to, gx_error *err)
{
    gx_slices slices = { 0 };
    size_t at = 0;
    int64_t nth = 0;
    gx_status st = GX_OK;

    for (size_t i = 0; i < to->n_overheads && st == GX_OK; i++) {
        const gx_trace_overhead *const overhead = &to->overheads[i];
        const gx_slice slice = {
            { overhead->process, overhead->thread, 0 }, overhead->start, overhead->end, i
        };

        if (gx_report_shows(&to->window, to->side, overhead->start))
            st = gx_slices_add(&slices, &slice, err);
    }
    gx_slices_sort(&slices);
    while (st == GX_OK && at < slices.n) {
        const int64_t process =
            gx_chrome_process(to, "overhead", -1, nth++, to->n_processes++);
        int64_t place = 0;

        st = write_threads(to, &slices, &at, process, &place, "overhead", put_overhead,
                           err);
    }
    gx_slices_free(&slices);
    return st;
}

/* --- a side --- */

static gx_status gather_activities(gx_chrome *to, gx_slices *slices, gx_error *err)
{
    for (size_t i = 0; i < to->n_activities; i++) {
        const gx_trace_activity *const activity = &to->activities[i];
        const gx_slice slice = { { activity->process, activity->device,
                                   activity->stream },
                                 activity->start,
                                 activity->end,
                                 i };

        if (!gx_report_shows(&to->window, to->side, activity->start))
            continue;
        GX_TRY(gx_slices_add(slices, &slice, err));
        /* In the order of the trace, the first of a call is its earliest on the device.
         */
        if (activity->call != GX_TRACE_NONE &&
            !gx_bit(to->launched, (size_t)activity->call)) {
            gx_bit_set(to->launched, (size_t)activity->call);
            gx_bit_set(to->first, i);
        }
    }
    gx_slices_sort(slices);
    return GX_OK;
}

static gx_status write_side(gx_chrome *to, size_t side, gx_error *err)
{
    gx_slices slices = { 0 };
    gx_status st = GX_OK;

    to->side = side;
    to->trace = to->report->side[side].trace;
    to->activities = gx_trace_activities(to->trace, &to->n_activities);
    to->calls = gx_trace_calls(to->trace, &to->n_calls);
    to->ranges = gx_trace_ranges(to->trace, &to->n_ranges);
    to->overheads = gx_trace_overheads(to->trace, &to->n_overheads);
    to->launched = calloc(to->n_calls / 8 + 1, 1);
    to->first = calloc(to->n_activities / 8 + 1, 1);
    if (!to->launched || !to->first)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st == GX_OK)
        st = gather_activities(to, &slices, err);
    if (st == GX_OK)
        st = write_host(to, err);
    if (st == GX_OK)
        st = write_overhead(to, err);
    if (st == GX_OK)
        st = gx_chrome_devices(to, &slices, err);
    gx_slices_free(&slices);
    free(to->launched);
    free(to->first);
    return st;
}

static void put_metadata(gx_chrome *to)
{
    gx_json_object(to->json, "otherData");
    gx_json_text(to->json, "producer", "gexec");
    gx_json_text(to->json, "version", gx_version());
    gx_json_text(to->json, "title", to->report->title);
    for (size_t i = 0; i < to->report->n_sides; i++) {
        char key[40], value[32];

        /* Texts: doubles would round them. */
        snprintf(key, sizeof key, "side_%zu", i + 1);
        gx_json_text(to->json, key, to->report->side[i].title);
        snprintf(key, sizeof key, "side_%zu_zero_is_ns", i + 1);
        snprintf(value, sizeof value, "%lld", (long long)to->window.origin[i]);
        gx_json_text(to->json, key, value);
    }
    gx_json_integer(to->json, "records_left_out", to->window.left_out);
    if (to->window.cut != INT64_MAX)
        gx_json_us(to->json, "left_out_from_us", to->window.cut);
    gx_json_end(to->json);
}

static gx_status write_all(gx_chrome *to, gx_error *err)
{
    gx_json_object(to->json, NULL);
    gx_json_text(to->json, "displayTimeUnit", "ns");
    put_metadata(to);
    gx_json_array(to->json, "traceEvents");
    for (size_t i = 0; i < to->report->n_sides; i++)
        GX_TRY(write_side(to, i, err));
    gx_json_end(to->json);
    gx_json_end(to->json);
    return GX_OK;
}

gx_status gx_report_chrome(const gx_report *report, const char *path, int64_t most_events,
                           int64_t *left_out, gx_error *err)
{
    /* An activity is a slice, two counts at most and a replay of its own at most; a
     * launch has an arrow of two ends. */
    static const gx_report_weights weights = {
        .activity = 4, .call = 1, .launch = 2, .range = 1, .gap = 1, .overhead = 1
    };
    gx_chrome to = { .report = report };
    gx_part_file file;
    gx_status st = gx_part_open(&file, path, err);

    *left_out = 0;
    if (st == GX_OK) {
        to.window = gx_report_window_of(report, most_events ? most_events : MOST_EVENTS,
                                        &weights);
        to.json = gx_json_stream(file.out, false);
        if (!to.json)
            st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    }
    if (st == GX_OK)
        st = write_all(&to, err);
    gx_json_free(to.json);
    *left_out = to.window.left_out;
    return gx_part_close(&file, st, err);
}
