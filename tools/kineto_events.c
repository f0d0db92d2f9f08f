/* What the events of a Kineto trace mean. */
#include "kineto_events.h"

#include <string.h>

#include "decimal.h"

enum { NS_OF_US = 3 }; /* powers of ten */

typedef enum meaning { NOTHING, KERNEL, COPY, FILL, CALL, RANGE } meaning;

static meaning meaning_of(const char *category)
{
    static const struct {
        const char *category;
        meaning meaning;
    } table[] = {
        { "kernel", KERNEL },         { "Kernel", KERNEL },    { "gpu_memcpy", COPY },
        { "Memcpy", COPY },           { "gpu_memset", FILL },  { "Memset", FILL },
        { "cuda_runtime", CALL },     { "cuda_driver", CALL }, { "hip_runtime", CALL },
        { "hip_driver", CALL },       { "Runtime", CALL },     { "cpu_op", RANGE },
        { "user_annotation", RANGE }, { "Operator", RANGE },
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(category, table[i].category) == 0)
            return table[i].meaning;
    return NOTHING;
}

static bool number(const gx_kineto_number *from, int shift, int64_t *value)
{
    return from->n > 0 && gx_decimal_read(from->text, from->n, shift, value);
}

static int64_t number_or(const gx_kineto_event *event, gx_kineto_field field,
                         int64_t absent)
{
    int64_t value;

    return number(&event->field[field], 0, &value) ? value : absent;
}

static int32_t small_or(const gx_kineto_event *event, gx_kineto_field field,
                        int32_t absent)
{
    const int64_t value = number_or(event, field, absent);

    return value < absent || value > INT32_MAX ? absent : (int32_t)value;
}

/* Threads are numbers, or texts that stand for one. */
static int64_t id_of(const gx_kineto_number *from)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    int64_t value;

    if (number(from, 0, &value))
        return value;
    for (size_t i = 0; i < from->n; i++)
        hash = (hash ^ (unsigned char)from->text[i]) * UINT64_C(1099511628211);
    return from->n ? (int64_t)(hash >> 2) : GX_TRACE_NONE;
}

static gx_status no_time(const gx_kineto_event *event, const gx_trace_file *file,
                         uint64_t offset, gx_error *err)
{
    return GX_FAIL(
        err, GX_ERR_DATA,
        "%s: the event that ends at byte %llu ('%s', category %s) has no time: "
        "expected ts and dur as numbers of microseconds",
        file->path, (unsigned long long)offset,
        gx_trace_text_at(file->trace, event->name), event->category);
}

/* Correlation 0 is what is written where there is none. */
static int64_t correlation_of(const gx_kineto_event *event)
{
    const int64_t correlation = number_or(event, GX_KINETO_CORRELATION, 0);

    return correlation > 0 ? correlation : GX_TRACE_NONE;
}

/* Of a copy's name: "Memcpy HtoD (Pageable -> Device)". */
static void read_memory(const char *name, gx_trace_activity *copy)
{
    static const struct {
        const char *source, *target;
        gx_trace_memory memory;
    } words[] = {
        { "(Pageable ->", "-> Pageable)", GX_TRACE_MEMORY_PAGEABLE },
        { "(Pinned ->", "-> Pinned)", GX_TRACE_MEMORY_PINNED },
        { "(Device ->", "-> Device)", GX_TRACE_MEMORY_OTHER },
        { "(Managed ->", "-> Managed)", GX_TRACE_MEMORY_OTHER },
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i].source))
            copy->source = words[i].memory;
        if (strstr(name, words[i].target))
            copy->target = words[i].memory;
    }
}

/* A number that cannot be read is no place, and another must not stand in for it. */
static gx_status check_place(const gx_kineto_event *event, gx_kineto_field field,
                             const char *what, const gx_trace *trace, gx_error *err)
{
    const gx_kineto_number *const place = &event->field[field];
    int64_t value;

    if (place->n == 0 || place->is_string || number(place, 0, &value))
        return GX_OK;
    return GX_FAIL(err, GX_ERR_DATA,
                   "an event ('%s', category %s) has %s %.*s: expected an integer of 64 "
                   "bits",
                   gx_trace_text_at(trace, event->name), event->category, what,
                   (int)place->n, place->text);
}

static gx_status take_activity(const gx_kineto_event *event, gx_trace_kind kind,
                               int64_t start, int64_t end, gx_trace *trace, gx_error *err)
{
    gx_trace_activity activity = gx_trace_activity_none();

    GX_TRY(check_place(event, GX_KINETO_DEVICE, "device", trace, err));
    GX_TRY(check_place(event, GX_KINETO_STREAM, "stream", trace, err));
    activity.kind = kind;
    activity.name = event->name;
    activity.start = start;
    activity.end = end;
    activity.device =
        number_or(event, GX_KINETO_DEVICE, id_of(&event->field[GX_KINETO_PID]));
    activity.stream =
        number_or(event, GX_KINETO_STREAM, id_of(&event->field[GX_KINETO_TID]));
    activity.correlation = correlation_of(event);
    activity.node = number_or(event, GX_KINETO_NODE, 0) > 0
                        ? number_or(event, GX_KINETO_NODE, 0)
                        : GX_TRACE_NONE;
    activity.bytes = number_or(event, GX_KINETO_BYTES, GX_TRACE_NONE);
    activity.registers = small_or(event, GX_KINETO_REGISTERS, GX_TRACE_NONE);
    activity.shared_bytes = number_or(event, GX_KINETO_SHARED, GX_TRACE_NONE);
    if (kind == GX_TRACE_COPY)
        read_memory(gx_trace_text_at(trace, event->name), &activity);
    for (int i = 0; i < 3; i++) {
        activity.grid[i] = small_or(event, (gx_kineto_field)(GX_KINETO_GRID + i), 0);
        activity.block[i] = small_or(event, (gx_kineto_field)(GX_KINETO_BLOCK + i), 0);
    }
    return gx_trace_add_activity(trace, &activity, err);
}

static gx_status take_range(const gx_kineto_event *event, int64_t start, int64_t end,
                            gx_trace *trace, gx_error *err)
{
    gx_trace_range range = { .kind = GX_TRACE_PUSH_POP,
                             .name = event->name,
                             .start = start,
                             .end = end,
                             .thread = id_of(&event->field[GX_KINETO_TID]) };

    GX_TRY(gx_trace_text(trace, event->category, strlen(event->category), &range.domain,
                         err));
    return gx_trace_add_range(trace, &range, err);
}

/* One trace is one process: rows of a device do not say whose they are. */
static gx_status take_call(const gx_kineto_event *event, int64_t start, int64_t end,
                           gx_trace *trace, gx_error *err)
{
    const gx_trace_call call = { .name = event->name,
                                 .start = start,
                                 .end = end,
                                 .thread = id_of(&event->field[GX_KINETO_TID]),
                                 .correlation = correlation_of(event) };

    return gx_trace_add_call(trace, &call, err);
}

gx_status gx_kineto_event_take(const gx_kineto_event *event, gx_trace_file *file,
                               uint64_t offset, gx_error *err)
{
    const meaning what =
        strcmp(event->phase, "X") == 0 ? meaning_of(event->category) : NOTHING;
    gx_trace *const trace = file->trace;
    int64_t start, length;

    if (what == NOTHING)
        return GX_OK;
    if (!number(&event->field[GX_KINETO_TS], NS_OF_US, &start) ||
        !number(&event->field[GX_KINETO_DUR], NS_OF_US, &length) ||
        start > GX_TRACE_MOST_TIME || start < -GX_TRACE_MOST_TIME ||
        length > GX_TRACE_MOST_TIME || length < -GX_TRACE_MOST_TIME)
        return no_time(event, file, offset, err);
    switch (what) {
    case KERNEL:
        return take_activity(event, GX_TRACE_KERNEL, start, start + length, trace, err);
    case COPY:
        return take_activity(event, GX_TRACE_COPY, start, start + length, trace, err);
    case FILL:
        return take_activity(event, GX_TRACE_FILL, start, start + length, trace, err);
    case CALL:
        return take_call(event, start, start + length, trace, err);
    case RANGE:
        return take_range(event, start, start + length, trace, err);
    case NOTHING:
        break;
    }
    return GX_OK;
}
