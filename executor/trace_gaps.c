/* Span, busy, idle and gaps of one device, and who was late for each gap. */
#include <stdlib.h>

#include "trace_model.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

const char *gx_gap_class_name(gx_gap_class class_of_gap)
{
    static const char *const names[GX_GAP_CLASSES] = { "host", "launch", "device",
                                                       "unknown" };

    return (unsigned)class_of_gap < GX_GAP_CLASSES ? names[class_of_gap] : "?";
}

static gx_gap_class class_of(const gx_trace *trace, int32_t before, int32_t after,
                             int64_t start)
{
    const int32_t index = trace->activities[after].call;

    if (index == GX_TRACE_NONE)
        return GX_GAP_UNKNOWN;
    const gx_trace_call *const call = &trace->calls[index];
    if (call->kind == GX_TRACE_CALL_GRAPH && trace->activities[before].call == index)
        return GX_GAP_DEVICE;
    if (call->start > start)
        return GX_GAP_HOST;
    return call->end > start ? GX_GAP_LAUNCH : GX_GAP_DEVICE;
}

static void count_gap(gx_trace_device *device, const gx_trace_gap *gap)
{
    gx_trace_share_add(&device->gaps[gap->type], gap->end - gap->start);
    if (gap->between_steps)
        gx_trace_share_add(&device->step_gaps[gap->type], gap->end - gap->start);
}

static int64_t gap_ns(const gx_trace_device *device, size_t i)
{
    return device->gap[i].end - device->gap[i].start;
}

/* Keeps the largest few in order; of equal ones the earlier. */
static void rank_gap(gx_trace_device *device, size_t i)
{
    size_t at = device->n_largest;

    while (at > 0 && gap_ns(device, device->largest[at - 1]) < gap_ns(device, i))
        at--;
    if (at == GX_TRACE_LARGEST)
        return;
    if (device->n_largest < GX_TRACE_LARGEST)
        device->n_largest++;
    for (size_t j = device->n_largest - 1; j > at; j--)
        device->largest[j] = device->largest[j - 1];
    device->largest[at] = i;
}

/* Activities come in order of their starts, so that what has run so far ends at one time,
 * and a start beyond it ends a gap. Between two steps work may run that belongs to none:
 * `coming` has for each activity the step that it or the next one belongs to. */
static void sweep(const gx_trace *trace, size_t first, size_t n, const bool *counted,
                  const int32_t *step, const int32_t *coming, gx_trace_device *device)
{
    int32_t last_step = GX_TRACE_NONE;
    size_t furthest = n;

    for (size_t i = first; i < first + n; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (counted && !counted[i])
            continue;
        gx_trace_share_add(&device->kind[activity->kind],
                           activity->end - activity->start);
        if (device->n_activities++ == 0) {
            device->start = activity->start;
            device->end = activity->end;
            furthest = i;
            last_step = step[i];
            continue;
        }
        if (activity->start > device->end) {
            gx_trace_gap *const gap = &device->gap[device->n_gaps];

            gap->start = device->end;
            gap->end = activity->start;
            gap->before = (int32_t)furthest;
            gap->after = (int32_t)i;
            gap->type = class_of(trace, gap->before, gap->after, gap->start);
            gap->between_steps = last_step != GX_TRACE_NONE &&
                                 coming[i - first] != GX_TRACE_NONE &&
                                 last_step != coming[i - first];
            device->idle += gap->end - gap->start;
            count_gap(device, gap);
            rank_gap(device, device->n_gaps++);
        }
        if (activity->end >= device->end) {
            device->end = activity->end;
            furthest = i;
        }
        if (step[i] != GX_TRACE_NONE)
            last_step = step[i];
    }
    device->span = device->end - device->start;
    device->busy = device->span - device->idle;
}

/* --- streams --- */

typedef struct kernel {
    int64_t stream, start, end;
} kernel;

static int compare_kernels(const void *left, const void *right)
{
    const kernel *const a = left;
    const kernel *const b = right;
    int order = COMPARE(a->stream, b->stream);

    if (order == 0)
        order = COMPARE(a->start, b->start);
    return order != 0 ? order : COMPARE(a->end, b->end);
}

static int compare_ns(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return COMPARE(a, b);
}

/* The middle one, or the mean of the two in the middle, rounded down. */
static int64_t median_of(int64_t *values, size_t n)
{
    if (n == 0)
        return GX_TRACE_NONE;
    qsort(values, n, sizeof *values, compare_ns);
    if (n % 2 == 1)
        return values[n / 2];
    return values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;
}

static void one_stream(const kernel *kernels, size_t n, int64_t *distances,
                       gx_trace_stream *stream)
{
    int64_t end = kernels[0].end;
    size_t n_distances = 0;

    for (size_t i = 1; i < n; i++) {
        if (kernels[i].start > end)
            distances[n_distances++] = kernels[i].start - end;
        if (kernels[i].end > end)
            end = kernels[i].end;
    }
    stream->stream = kernels[0].stream;
    stream->n_kernels = (int64_t)n;
    stream->n_distances = (int64_t)n_distances;
    stream->median_ns = median_of(distances, n_distances);
}

static gx_status find_streams(gx_trace_device *device, kernel *kernels, size_t n,
                              int64_t *distances, gx_error *err)
{
    size_t n_streams = 0;

    if (n == 0)
        return GX_OK;
    qsort(kernels, n, sizeof *kernels, compare_kernels);
    for (size_t i = 0; i < n; i++)
        n_streams += i == 0 || kernels[i].stream != kernels[i - 1].stream;
    device->stream = calloc(n_streams, sizeof *device->stream);
    if (!device->stream)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the streams of a trace");
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && kernels[end].stream == kernels[i].stream;)
            end++;
        one_stream(kernels + i, end - i, distances, &device->stream[device->n_streams++]);
    }
    return GX_OK;
}

static void find_coming(size_t first, size_t n, const bool *counted, const int32_t *step,
                        int32_t *coming)
{
    int32_t next = GX_TRACE_NONE;

    for (size_t i = first + n; i-- > first;) {
        if ((!counted || counted[i]) && step[i] != GX_TRACE_NONE)
            next = step[i];
        coming[i - first] = next;
    }
}

gx_status gx_trace_device_figures(const gx_trace *trace, size_t first, size_t n,
                                  const bool *counted, const int32_t *step,
                                  gx_trace_device *device, gx_error *err)
{
    kernel *kernels = calloc(n, sizeof *kernels);
    int64_t *distances = calloc(n, sizeof *distances);
    int32_t *coming = calloc(n, sizeof *coming);
    size_t n_kernels = 0;
    gx_status st;

    device->process = trace->activities[first].process;
    device->device = trace->activities[first].device;
    device->gap = calloc(n, sizeof *device->gap);
    if (!kernels || !distances || !coming || !device->gap) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the gaps of a trace");
        goto done;
    }
    find_coming(first, n, counted, step, coming);
    sweep(trace, first, n, counted, step, coming, device);
    for (size_t i = first; i < first + n; i++) {
        const gx_trace_activity *const activity = &trace->activities[i];

        if (activity->kind == GX_TRACE_KERNEL && (!counted || counted[i]))
            kernels[n_kernels++] =
                (kernel){ activity->stream, activity->start, activity->end };
    }
    st = find_streams(device, kernels, n_kernels, distances, err);
done:
    free(coming);
    free(kernels);
    free(distances);
    return st;
}
