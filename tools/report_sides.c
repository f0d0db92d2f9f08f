/* What the page draws of each trace: rows of activities, gaps, replays, calls. Starts are
 * written as distances to the one before, which keeps the numbers short. */
#include <stdlib.h>

#include "report_page.h"

enum { NO_OP = -1 };

typedef struct drawn {
    gx_json *json;
    const gx_report *report;
    const gx_report_ops *ops;
    const gx_report_window *window;
    size_t side;
    const gx_trace *trace;
    const gx_trace_figures *figures;
    const gx_trace_activity *activities;
    const gx_trace_call *calls;
    size_t n_activities, n_calls;
    /* By text of the trace: number among the page's names, and by kind and text the op.
     */
    int32_t *name, *op;
    size_t n_texts;
} drawn;

/* --- names and ops --- */

static gx_status number_names(drawn *to, gx_error *err)
{
    uint32_t most = 0;
    int32_t n = 0;

    for (size_t i = 0; i < to->n_activities; i++)
        most = to->activities[i].name > most ? to->activities[i].name : most;
    for (size_t i = 0; i < to->n_calls; i++)
        most = to->calls[i].name > most ? to->calls[i].name : most;
    to->n_texts = (size_t)most + 1;
    to->name = malloc(to->n_texts * sizeof *to->name);
    to->op = malloc(to->n_texts * GX_TRACE_KINDS * sizeof *to->op);
    if (!to->name || !to->op)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < to->n_texts; i++)
        to->name[i] = -1;
    for (size_t i = 0; i < to->n_texts * GX_TRACE_KINDS; i++)
        to->op[i] = NO_OP;
    for (size_t i = 0; i < to->n_activities; i++)
        to->name[to->activities[i].name] = 0;
    for (size_t i = 0; i < to->n_calls; i++)
        to->name[to->calls[i].name] = 0;
    gx_json_array(to->json, "names");
    for (size_t i = 0; i < to->n_texts; i++)
        if (to->name[i] == 0) {
            to->name[i] = n++;
            gx_json_text(to->json, NULL, gx_trace_text_at(to->trace, (uint32_t)i));
        }
    gx_json_end(to->json);
    for (size_t i = 0; i < to->ops->n; i++) {
        const gx_trace_op *const op = to->ops->items[i].traced[to->side];

        if (op && op->name < to->n_texts)
            to->op[op->name * GX_TRACE_KINDS + op->kind] = (int32_t)i;
    }
    return GX_OK;
}

static int64_t op_of(const drawn *to, const gx_trace_activity *activity)
{
    const size_t unit =
        activity->group == GX_TRACE_NONE ? SIZE_MAX : (size_t)activity->group;

    if (!to->report->profile)
        return to->op[activity->name * GX_TRACE_KINDS + activity->kind];
    for (size_t i = 0; i < to->ops->n; i++) {
        const gx_profile_op *const op = to->ops->items[i].profiled[to->side];

        if (op && op->unit == unit)
            return (int64_t)i;
    }
    return NO_OP;
}

/* --- columns --- */

static void put_times(gx_json *json, const drawn *to, const gx_slice *slices, size_t n)
{
    int64_t before = 0;

    gx_json_array(json, "start");
    for (size_t i = 0; i < n; i++) {
        const int64_t start = gx_report_time(to->window, to->side, slices[i].start);

        gx_json_integer(json, NULL, start - before);
        before = start;
    }
    gx_json_end(json);
    gx_json_array(json, "ns");
    for (size_t i = 0; i < n; i++)
        gx_json_integer(json, NULL, slices[i].end - slices[i].start);
    gx_json_end(json);
}

static void put_row(drawn *to, const char *label, const gx_slice *slices, size_t n)
{
    gx_json_object(to->json, NULL);
    gx_json_text(to->json, "label", label);
    put_times(to->json, to, slices, n);
    gx_json_array(to->json, "name");
    for (size_t i = 0; i < n; i++)
        gx_json_integer(to->json, NULL, to->name[to->activities[slices[i].index].name]);
    gx_json_end(to->json);
    gx_json_array(to->json, "op");
    for (size_t i = 0; i < n; i++)
        gx_json_integer(to->json, NULL, op_of(to, &to->activities[slices[i].index]));
    gx_json_end(to->json);
    gx_json_end(to->json);
}

/* One row a stream, and more where what it ran overlaps. */
static gx_status put_stream(drawn *to, const gx_slice *slices, size_t n, gx_error *err)
{
    gx_slices lanes = { 0 };
    gx_lanes *const place = malloc(sizeof *place);
    const long long stream = (long long)slices[0].row[2];
    gx_status st = GX_OK;

    if (!place)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    gx_lanes_start(place, false);
    for (size_t i = 0; i < n && st == GX_OK; i++) {
        gx_slice slice = slices[i];

        slice.row[0] = slice.row[1] = 0;
        slice.row[2] = (int64_t)gx_lanes_place(place, slice.start, slice.end);
        st = gx_slices_add(&lanes, &slice, err);
    }
    gx_slices_sort(&lanes);
    for (size_t i = 0; i < lanes.n && st == GX_OK;) {
        const size_t run = gx_slices_run(&lanes, i, 3);
        char label[64];

        if (lanes.items[i].row[2])
            snprintf(label, sizeof label, "stream %lld +%lld", stream,
                     (long long)lanes.items[i].row[2]);
        else
            snprintf(label, sizeof label, "stream %lld", stream);
        put_row(to, label, &lanes.items[i], run);
        i += run;
    }
    gx_slices_free(&lanes);
    free(place);
    return st;
}

static void put_shares(gx_json *json, const char *key, const gx_trace_share *shares)
{
    gx_json_array(json, key);
    for (int c = 0; c < GX_GAP_CLASSES; c++) {
        gx_json_array(json, NULL);
        gx_json_integer(json, NULL, shares[c].n);
        gx_json_integer(json, NULL, shares[c].ns);
        gx_json_end(json);
    }
    gx_json_end(json);
}

typedef int64_t gap_column_fn(const drawn *to, const gx_trace_gap *gap);

static int64_t gap_class(const drawn *to, const gx_trace_gap *gap)
{
    (void)to;
    return (int64_t)gap->type;
}

static int64_t gap_between(const drawn *to, const gx_trace_gap *gap)
{
    (void)to;
    return gap->between_steps;
}

static int64_t gap_before(const drawn *to, const gx_trace_gap *gap)
{
    return to->name[to->activities[gap->before].name];
}

static int64_t gap_after(const drawn *to, const gx_trace_gap *gap)
{
    return to->name[to->activities[gap->after].name];
}

static void put_gaps(drawn *to, const gx_trace_device *device)
{
    static const struct {
        const char *key;
        gap_column_fn *value;
    } columns[] = { { "class", gap_class },
                    { "between_steps", gap_between },
                    { "after", gap_before },
                    { "before", gap_after } };
    size_t n = 0;
    int64_t before = 0;

    while (n < device->n_gaps &&
           gx_report_shows(to->window, to->side, device->gap[n].end))
        n++;
    gx_json_object(to->json, "gap");
    gx_json_array(to->json, "start");
    for (size_t i = 0; i < n; i++) {
        const int64_t start = gx_report_time(to->window, to->side, device->gap[i].start);

        gx_json_integer(to->json, NULL, start - before);
        before = start;
    }
    gx_json_end(to->json);
    gx_json_array(to->json, "ns");
    for (size_t i = 0; i < n; i++)
        gx_json_integer(to->json, NULL, device->gap[i].end - device->gap[i].start);
    gx_json_end(to->json);
    for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
        gx_json_array(to->json, columns[k].key);
        for (size_t i = 0; i < n; i++)
            gx_json_integer(to->json, NULL, columns[k].value(to, &device->gap[i]));
        gx_json_end(to->json);
    }
    /* From the start of the gap to that of the launch call of what ends it. */
    gx_json_array(to->json, "launch");
    for (size_t i = 0; i < n; i++) {
        const int32_t call = to->activities[device->gap[i].after].call;

        if (call == GX_TRACE_NONE)
            gx_json_text(to->json, NULL, NULL);
        else
            gx_json_integer(to->json, NULL, to->calls[call].start - device->gap[i].start);
    }
    gx_json_end(to->json);
    gx_json_end(to->json);
    gx_json_array(to->json, "largest");
    for (size_t i = 0; i < device->n_largest; i++)
        if (device->largest[i] < n)
            gx_json_integer(to->json, NULL, (int64_t)device->largest[i]);
    gx_json_end(to->json);
}

/* --- devices --- */

static gx_status put_replays(drawn *to, const gx_slices *slices, gx_error *err)
{
    gx_slices replays;
    const gx_status st =
        gx_slices_replays(to->trace, slices->items, slices->n, &replays, err);

    gx_json_object(to->json, "replay");
    put_times(to->json, to, replays.items, replays.n);
    gx_json_end(to->json);
    gx_slices_free(&replays);
    return st;
}

static gx_status put_device(drawn *to, const gx_trace_device *device, gx_error *err)
{
    gx_slices slices = { 0 };
    gx_status st = GX_OK;

    gx_json_object(to->json, NULL);
    gx_json_integer(to->json, "device", device->device);
    gx_json_integer(to->json, "process", device->process);
    gx_json_integer(to->json, "start",
                    gx_report_time(to->window, to->side, device->start));
    gx_json_integer(to->json, "span", device->span);
    gx_json_integer(to->json, "busy", device->busy);
    gx_json_integer(to->json, "idle", device->idle);
    gx_json_integer(to->json, "activities", device->n_activities);
    put_shares(to->json, "gaps", device->gaps);
    put_shares(to->json, "step_gaps", device->step_gaps);
    for (size_t i = 0; i < to->n_activities && st == GX_OK; i++) {
        const gx_trace_activity *const activity = &to->activities[i];
        const gx_slice slice = {
            { 0, 0, activity->stream }, activity->start, activity->end, i
        };

        /* Beyond a window that was asked for nothing is counted, and nothing drawn. */
        if (activity->process == device->process && activity->device == device->device &&
            activity->start >= device->start && activity->end <= device->end &&
            gx_report_shows(to->window, to->side, activity->start))
            st = gx_slices_add(&slices, &slice, err);
    }
    gx_slices_sort(&slices);
    put_gaps(to, device);
    if (st == GX_OK)
        st = put_replays(to, &slices, err);
    gx_json_array(to->json, "rows");
    for (size_t i = 0; i < slices.n && st == GX_OK;) {
        const size_t run = gx_slices_run(&slices, i, 3);

        st = put_stream(to, &slices.items[i], run, err);
        i += run;
    }
    gx_json_end(to->json);
    gx_json_end(to->json);
    gx_slices_free(&slices);
    return st;
}

/* --- the host --- */

static gx_status put_threads(drawn *to, gx_error *err)
{
    gx_slices slices = { 0 };
    gx_status st = GX_OK;

    for (size_t i = 0; i < to->n_calls && st == GX_OK; i++) {
        const gx_trace_call *const call = &to->calls[i];
        const gx_slice slice = {
            { call->process, call->thread, 0 }, call->start, call->end, i
        };

        if (!call->twin && gx_report_shows(to->window, to->side, call->start))
            st = gx_slices_add(&slices, &slice, err);
    }
    gx_slices_sort(&slices);
    gx_json_array(to->json, "threads");
    for (size_t i = 0; i < slices.n && st == GX_OK;) {
        const size_t run = gx_slices_run(&slices, i, 2);

        gx_json_object(to->json, NULL);
        gx_json_integer(to->json, "thread", slices.items[i].row[1] & 0xFFFFFF);
        put_times(to->json, to, &slices.items[i], run);
        gx_json_array(to->json, "name");
        for (size_t k = i; k < i + run; k++)
            gx_json_integer(to->json, NULL,
                            to->name[to->calls[slices.items[k].index].name]);
        gx_json_end(to->json);
        gx_json_array(to->json, "launched");
        for (size_t k = i; k < i + run; k++)
            gx_json_integer(to->json, NULL,
                            to->calls[slices.items[k].index].n_activities);
        gx_json_end(to->json);
        gx_json_end(to->json);
        i += run;
    }
    gx_json_end(to->json);
    gx_slices_free(&slices);
    return st;
}

static void put_steps(drawn *to)
{
    const gx_profile_pass *const pass = gx_report_pass(to->report, to->side);
    const size_t n = pass ? pass->n_steps : 0;

    gx_json_array(to->json, "steps");
    for (size_t i = 0; i < n; i++)
        gx_json_integer(to->json, NULL,
                        gx_report_time(to->window, to->side, pass->step[i].start));
    gx_json_end(to->json);
}

gx_status gx_report_put_side(gx_json *json, const gx_report *report,
                             const gx_report_ops *ops, const gx_report_window *window,
                             size_t side, gx_error *err)
{
    drawn to = {
        .json = json, .report = report, .ops = ops, .window = window, .side = side
    };
    gx_status st;

    to.trace = report->side[side].trace;
    to.figures = report->side[side].figures;
    to.activities = gx_trace_activities(to.trace, &to.n_activities);
    to.calls = gx_trace_calls(to.trace, &to.n_calls);
    gx_json_object(json, NULL);
    gx_json_text(json, "title", report->side[side].title);
    gx_json_integer(json, "n_steps", to.figures->n_steps);
    gx_json_integer(json, "n_calls", (int64_t)to.n_calls);
    gx_json_integer(json, "kernel_launches", to.figures->calls[GX_TRACE_CALL_KERNEL].n);
    gx_json_integer(json, "graph_launches", to.figures->calls[GX_TRACE_CALL_GRAPH].n);
    put_steps(&to);
    st = number_names(&to, err);
    gx_json_array(json, "devices");
    for (size_t i = 0; i < to.figures->n_devices && st == GX_OK; i++)
        st = put_device(&to, &to.figures->device[i], err);
    gx_json_end(json);
    if (st == GX_OK)
        st = put_threads(&to, err);
    gx_json_end(json);
    free(to.name);
    free(to.op);
    return st;
}
