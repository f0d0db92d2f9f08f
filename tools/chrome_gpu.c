/* The devices of a Chrome trace: how much is running, replays, gaps, and streams. */
#include <stdlib.h>
#include <string.h>

#include "chrome_events.h"

/* In a viewer the hosts stand above the GPUs. */
enum { GPUS_AFTER = 1000 };

static void put_shape(gx_json *json, const char *key, const int32_t dim[3])
{
    gx_json_array(json, key);
    for (int i = 0; i < 3; i++)
        gx_json_integer(json, NULL, dim[i]);
    gx_json_end(json);
}

static void put_known(gx_json *json, const char *key, int64_t value)
{
    if (value != GX_TRACE_NONE)
        gx_json_integer(json, key, value);
}

static void put_activity(gx_chrome *to, const gx_slice *slice, int64_t process,
                         int64_t thread)
{
    static const char *const kinds[GX_TRACE_KINDS] = { "kernel", "copy", "fill",
                                                       "graph" };
    const gx_trace_activity *const activity = &to->activities[slice->index];

    gx_chrome_open_slice(to, kinds[activity->kind], gx_chrome_text(to, activity->name),
                         process, thread, slice);
    gx_json_object(to->json, "args");
    if (activity->range != GX_TRACE_NONE)
        gx_json_text(to->json, "range",
                     gx_chrome_text(to, to->ranges[activity->range].name));
    put_known(to->json, "stream", activity->stream);
    put_known(to->json, "correlation", activity->correlation);
    put_known(to->json, "graph_node", activity->node);
    put_known(to->json, "unit", activity->group);
    put_known(to->json, "lane", activity->lane);
    put_known(to->json, "body", activity->body);
    put_known(to->json, "bytes", activity->bytes);
    put_known(to->json, "source_device", activity->source_device);
    put_known(to->json, "target_device", activity->target_device);
    if (activity->grid[0])
        put_shape(to->json, "grid", activity->grid);
    if (activity->block[0])
        put_shape(to->json, "block", activity->block);
    put_known(to->json, "registers", activity->registers);
    put_known(to->json, "shared_bytes", activity->shared_bytes);
    gx_json_end(to->json);
    gx_json_end(to->json);
    if (gx_bit(to->first, slice->index))
        gx_chrome_flow(to, true, (size_t)activity->call, process, thread,
                       activity->start);
}

/* The streams of one device: slices from `from` to `to_index`. */
static gx_status write_streams(gx_chrome *to, const gx_slices *slices, size_t from,
                               size_t end, int64_t process, int64_t *place, gx_error *err)
{
    gx_chrome_row row = { .thread = NULL };
    gx_status st = GX_OK;

    for (size_t i = from; i < end && st == GX_OK;) {
        const size_t behind = i + gx_slices_run(slices, i, GX_ROW_KEYS);
        char title[64];

        snprintf(title, sizeof title, "stream %lld", (long long)slices->items[i].row[2]);
        gx_chrome_row_start(&row, process, title, *place, false);
        for (; i < behind && st == GX_OK; i++) {
            int64_t thread;

            st = gx_chrome_place(to, &row, &slices->items[i], &thread, err);
            if (st == GX_OK)
                put_activity(to, &slices->items[i], process, thread);
        }
        *place += (int64_t)row.lanes.n;
    }
    free(row.thread);
    return st;
}

/* A slice for each launch of a graph, around all that it ran on the device. */
static gx_status write_replays(gx_chrome *to, const gx_slices *slices, size_t from,
                               size_t end, int64_t process, int64_t place, gx_error *err)
{
    gx_chrome_row row = { .thread = NULL };
    gx_slices replays;
    gx_status st =
        gx_slices_replays(to->trace, &slices->items[from], end - from, &replays, err);

    gx_chrome_row_start(&row, process, "replay", place, false);
    for (size_t i = 0; i < replays.n && st == GX_OK; i++) {
        int64_t thread;

        st = gx_chrome_place(to, &row, &replays.items[i], &thread, err);
        if (st != GX_OK)
            break;
        gx_chrome_open_slice(to, "replay", "replay", process, thread, &replays.items[i]);
        gx_json_object(to->json, "args");
        gx_json_integer(to->json, "activities", (int64_t)replays.items[i].index);
        gx_json_end(to->json);
        gx_json_end(to->json);
    }
    gx_slices_free(&replays);
    free(row.thread);
    return st;
}

static gx_status write_gaps(gx_chrome *to, const gx_trace_device *device, int64_t process,
                            int64_t place, gx_error *err)
{
    gx_chrome_row row = { .thread = NULL };
    gx_status st = GX_OK;

    gx_chrome_row_start(&row, process, "gaps", place, false);
    for (size_t i = 0; i < device->n_gaps && st == GX_OK; i++) {
        const gx_trace_gap *const gap = &device->gap[i];
        const gx_slice slice = { .start = gap->start, .end = gap->end };
        int64_t thread;

        if (!gx_report_shows(&to->window, to->side, gap->end))
            continue;
        st = gx_chrome_place(to, &row, &slice, &thread, err);
        if (st != GX_OK)
            break;
        gx_chrome_open_slice(to, "gap", gx_gap_class_name(gap->type), process, thread,
                             &slice);
        gx_json_object(to->json, "args");
        gx_json_bool(to->json, "between_steps", gap->between_steps);
        gx_json_text(to->json, "after",
                     gx_chrome_text(to, to->activities[gap->before].name));
        gx_json_text(to->json, "before",
                     gx_chrome_text(to, to->activities[gap->after].name));
        gx_json_end(to->json);
        gx_json_end(to->json);
    }
    free(row.thread);
    return st;
}

static int by_time(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* How many activities are running, at each time at which that changes. */
static gx_status write_running(gx_chrome *to, const gx_slices *slices, size_t from,
                               size_t end, int64_t process, gx_error *err)
{
    const size_t n = end - from;
    int64_t *const start = malloc(2 * n * sizeof *start);
    int64_t *const stop = start ? start + n : NULL;

    if (!start)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        start[i] = slices->items[from + i].start;
        stop[i] = slices->items[from + i].end;
    }
    qsort(start, n, sizeof *start, by_time);
    qsort(stop, n, sizeof *stop, by_time);
    for (size_t begun = 0, ended = 0; ended < n;) {
        const int64_t now =
            begun < n && start[begun] < stop[ended] ? start[begun] : stop[ended];

        while (begun < n && start[begun] == now)
            begun++;
        while (ended < n && stop[ended] == now)
            ended++;
        gx_chrome_open(to, "C", "running", "running", process, process,
                       gx_report_time(&to->window, to->side, now));
        gx_json_object(to->json, "args");
        gx_json_integer(to->json, "running", (int64_t)(begun - ended));
        gx_json_end(to->json);
        gx_json_end(to->json);
    }
    free(start);
    return GX_OK;
}

static gx_status write_device(gx_chrome *to, const gx_slices *slices, size_t from,
                              size_t end, int64_t n_before, gx_error *err)
{
    const gx_trace_figures *const figures = to->report->side[to->side].figures;
    const int64_t *const key = slices->items[from].row;
    const int64_t process =
        gx_chrome_process(to, "GPU", key[1], n_before, GPUS_AFTER + to->n_processes++);
    int64_t place = 2;

    GX_TRY(write_running(to, slices, from, end, process, err));
    GX_TRY(write_replays(to, slices, from, end, process, 0, err));
    for (size_t i = 0; i < figures->n_devices; i++)
        if (figures->device[i].process == key[0] && figures->device[i].device == key[1])
            GX_TRY(write_gaps(to, &figures->device[i], process, 1, err));
    return write_streams(to, slices, from, end, process, &place, err);
}

gx_status gx_chrome_devices(gx_chrome *to, const gx_slices *slices, gx_error *err)
{
    int64_t n_processes = 0;

    for (size_t i = 0; i < slices->n;) {
        const size_t n = gx_slices_run(slices, i, 2);

        GX_TRY(write_device(to, slices, i, i + n, n_processes, err));
        i += n;
        if (i < slices->n && slices->items[i].row[0] != slices->items[i - 1].row[0])
            n_processes++;
    }
    return GX_OK;
}
