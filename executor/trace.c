/* The records of a trace and its texts. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "trace_model.h"

enum { MOST_RECORDS = INT32_MAX - 1 };

gx_trace_activity gx_trace_activity_none(void)
{
    return (gx_trace_activity){ .correlation = GX_TRACE_NONE,
                                .node = GX_TRACE_NONE,
                                .bytes = GX_TRACE_NONE,
                                .registers = GX_TRACE_NONE,
                                .shared_bytes = GX_TRACE_NONE,
                                .source_device = GX_TRACE_NONE,
                                .target_device = GX_TRACE_NONE,
                                .group = GX_TRACE_NONE,
                                .lane = GX_TRACE_NONE,
                                .body = GX_TRACE_NONE,
                                .call = GX_TRACE_NONE,
                                .range = GX_TRACE_NONE };
}

/* Makes room for `more` elements behind n. */
static gx_status reserve(void *array_at, size_t n, size_t *room, size_t more, size_t size,
                         gx_error *err)
{
    void **const array = array_at;
    size_t wanted = *room ? *room : 64;
    void *grown;

    if (more <= *room - n)
        return GX_OK;
    while (wanted - n < more) {
        if (wanted > SIZE_MAX / 2 / size)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory: the trace is too large");
        wanted *= 2;
    }
    grown = realloc(*array, wanted * size);
    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the records of a trace");
    *array = grown;
    *room = wanted;
    return GX_OK;
}

gx_trace *gx_trace_create(void)
{
    gx_trace *trace = calloc(1, sizeof *trace);
    uint32_t empty;

    if (trace && gx_trace_text(trace, "", 0, &empty, NULL) != GX_OK) {
        gx_trace_free(trace);
        trace = NULL;
    }
    return trace;
}

void gx_trace_free(gx_trace *trace)
{
    if (!trace)
        return;
    free(trace->activities);
    free(trace->calls);
    free(trace->ranges);
    free(trace->nodes);
    free(trace->overheads);
    free(trace->bytes);
    free(trace->texts);
    free(trace->slots);
    free(trace->before_window);
    free(trace);
}

/* --- texts --- */

/* Bytes of the UTF-8 sequence at the head of `bytes`; 0 where there is none. */
static size_t sequence_length(const unsigned char *bytes, size_t n)
{
    const unsigned char c = bytes[0];
    const size_t length = c < 0x80                ? 1
                          : c >= 0xC2 && c < 0xE0 ? 2
                          : c >= 0xE0 && c < 0xF0 ? 3
                          : c >= 0xF0 && c < 0xF5 ? 4
                                                  : 0;

    if (length == 0 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
    if ((c == 0xE0 && bytes[1] < 0xA0) || (c == 0xED && bytes[1] > 0x9F) ||
        (c == 0xF0 && bytes[1] < 0x90) || (c == 0xF4 && bytes[1] > 0x8F))
        return 0;
    return length;
}

/* Writes the clean form of a text behind the others, at most three times as long. */
static size_t append_clean(char *to, const char *bytes, size_t n)
{
    const unsigned char *const from = (const unsigned char *)bytes;
    size_t length = 0;

    for (size_t i = 0; i < n;) {
        const size_t sequence = from[i] ? sequence_length(from + i, n - i) : 0;

        if (sequence == 0) {
            memcpy(to + length, "\xEF\xBF\xBD", 3);
            length += 3;
            i++;
        } else if (sequence == 1 && (from[i] < 0x20 || from[i] == 0x7F)) {
            to[length++] = ' ';
            i++;
        } else {
            memcpy(to + length, from + i, sequence);
            length += sequence;
            i += sequence;
        }
    }
    to[length] = '\0';
    return length;
}

static size_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (size_t)(hash ^ (hash >> 29));
}

static size_t find_slot(const gx_trace *trace, const char *text)
{
    size_t slot = hash_of(text) & (trace->n_slots - 1);

    while (trace->slots[slot] &&
           strcmp(gx_trace_text_at(trace, trace->slots[slot] - 1), text) != 0)
        slot = (slot + 1) & (trace->n_slots - 1);
    return slot;
}

static gx_status grow_slots(gx_trace *trace, gx_error *err)
{
    const size_t n = trace->n_slots ? 2 * trace->n_slots : 256;
    uint32_t *slots = calloc(n, sizeof *slots);

    if (!slots)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the texts of a trace");
    free(trace->slots);
    trace->slots = slots;
    trace->n_slots = n;
    for (size_t i = 0; i < trace->n_texts; i++)
        slots[find_slot(trace, trace->bytes + trace->texts[i])] = (uint32_t)i + 1;
    return GX_OK;
}

gx_status gx_trace_text(gx_trace *trace, const char *bytes, size_t length, uint32_t *text,
                        gx_error *err)
{
    size_t slot;

    gx_error_clear(err);
    GX_TRY(gx_need(trace, "trace", err));
    GX_TRY(gx_need_place(text, "number of the text", err));
    *text = 0;
    if (length > 0)
        GX_TRY(gx_need(bytes, "text", err));
    if (length > SIZE_MAX / 4 || trace->n_texts >= UINT32_MAX - 1)
        return GX_FAIL(err, GX_ERR_LIMIT, "the trace has too much text");
    GX_TRY(reserve(&trace->bytes, trace->n_bytes, &trace->bytes_room, 3 * length + 1, 1,
                   err));
    GX_TRY(reserve(&trace->texts, trace->n_texts, &trace->texts_room, 1,
                   sizeof *trace->texts, err));
    if (2 * (trace->n_texts + 1) > trace->n_slots)
        GX_TRY(grow_slots(trace, err));
    length = append_clean(trace->bytes + trace->n_bytes, bytes, length);
    slot = find_slot(trace, trace->bytes + trace->n_bytes);
    if (!trace->slots[slot]) {
        trace->texts[trace->n_texts++] = trace->n_bytes;
        trace->n_bytes += length + 1;
        trace->slots[slot] = (uint32_t)trace->n_texts;
    }
    *text = trace->slots[slot] - 1;
    return GX_OK;
}

const char *gx_trace_text_at(const gx_trace *trace, uint32_t text)
{
    return text < trace->n_texts ? trace->bytes + trace->texts[text] : "";
}

const char *gx_trace_copy_name(int64_t kind)
{
    static const char *const names[] = { "copy",
                                         "copy host to device",
                                         "copy device to host",
                                         "copy host to array",
                                         "copy array to host",
                                         "copy array to array",
                                         "copy array to device",
                                         "copy device to array",
                                         "copy device to device",
                                         "copy host to host",
                                         "copy peer to peer",
                                         "copy unified, host to device",
                                         "copy unified, device to host",
                                         "copy unified, device to device" };
    const int64_t n = sizeof names / sizeof names[0];

    return kind >= 0 && kind < n ? names[kind] : names[0];
}

const char *gx_trace_overhead_name(int64_t kind)
{
    /* CUPTI's own, from 1 << 16 on, 1 << 16 apart. */
    static const char *const names[] = { "buffer flush",
                                         "instrumentation",
                                         "resource",
                                         "runtime-triggered module loading",
                                         "lazy function loading",
                                         "command buffer full",
                                         "activity buffer request",
                                         "UVM activity init" };
    const int64_t n = sizeof names / sizeof names[0];

    if (kind == 0 || kind == 1)
        return kind ? "driver compiler" : "unknown";
    return kind > 0 && kind % 65536 == 0 && kind / 65536 <= n ? names[kind / 65536 - 1]
                                                              : NULL;
}

/* --- records --- */

/* The trace and a record for it. */
static gx_status check_given(const gx_trace *trace, const void *record, const char *what,
                             gx_error *err)
{
    GX_TRY(gx_need(trace, "trace", err));
    return gx_need(record, what, err);
}

static gx_status check_room(const gx_trace *trace, size_t n, gx_error *err)
{
    if (trace->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the trace is finished");
    if (n >= MOST_RECORDS)
        return GX_FAIL(err, GX_ERR_LIMIT, "the trace has more than %d records of a kind",
                       (int)MOST_RECORDS);
    return GX_OK;
}

static gx_status check_time(int64_t time, const char *what, gx_error *err)
{
    if (time > GX_TRACE_MOST_TIME || time < -GX_TRACE_MOST_TIME)
        return GX_FAIL(err, GX_ERR_DATA, "%s at %lld ns: no clock shows such a time",
                       what, (long long)time);
    return GX_OK;
}

static gx_status check_name(const gx_trace *trace, uint32_t text, const char *what,
                            gx_error *err)
{
    if (text >= trace->n_texts)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%s of text %u: the trace has %zu texts",
                       what, (unsigned)text, trace->n_texts);
    return GX_OK;
}

/* Kinds count from 0. */
static gx_status check_kind(int kind, int n, const char *what, gx_error *err)
{
    if (kind < 0 || kind >= n)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%s of kind %d, expected 0 to %d", what,
                       kind, n - 1);
    return GX_OK;
}

gx_status gx_trace_add_activity(gx_trace *trace, const gx_trace_activity *activity,
                                gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_given(trace, activity, "device work", err));
    GX_TRY(check_room(trace, trace->n_activities, err));
    GX_TRY(check_kind((int)activity->kind, GX_TRACE_KINDS, "device work", err));
    GX_TRY(
        check_kind((int)activity->source, GX_TRACE_MEMORY_OTHER + 1, "memory read", err));
    GX_TRY(check_kind((int)activity->target, GX_TRACE_MEMORY_OTHER + 1, "memory written",
                      err));
    GX_TRY(check_name(trace, activity->name, "device work", err));
    GX_TRY(check_time(activity->start, "device work that starts", err));
    GX_TRY(check_time(activity->end, "device work that ends", err));
    GX_TRY(reserve(&trace->activities, trace->n_activities, &trace->activities_room, 1,
                   sizeof *activity, err));
    trace->activities[trace->n_activities++] = *activity;
    return GX_OK;
}

gx_status gx_trace_add_call(gx_trace *trace, const gx_trace_call *call, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_given(trace, call, "call", err));
    GX_TRY(check_room(trace, trace->n_calls, err));
    GX_TRY(check_name(trace, call->name, "a call", err));
    GX_TRY(check_time(call->start, "a call that starts", err));
    GX_TRY(check_time(call->end, "a call that ends", err));
    GX_TRY(
        reserve(&trace->calls, trace->n_calls, &trace->calls_room, 1, sizeof *call, err));
    trace->calls[trace->n_calls++] = *call;
    return GX_OK;
}

gx_status gx_trace_add_range(gx_trace *trace, const gx_trace_range *range, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_given(trace, range, "range", err));
    GX_TRY(check_room(trace, trace->n_ranges, err));
    GX_TRY(check_kind((int)range->kind, GX_TRACE_RANGE_KINDS, "a range", err));
    GX_TRY(check_name(trace, range->name, "a range", err));
    GX_TRY(check_name(trace, range->domain, "a range in a domain", err));
    GX_TRY(check_time(range->start, "a range that starts", err));
    if (range->end != GX_TRACE_OPEN)
        GX_TRY(check_time(range->end, "a range that ends", err));
    GX_TRY(reserve(&trace->ranges, trace->n_ranges, &trace->ranges_room, 1, sizeof *range,
                   err));
    trace->ranges[trace->n_ranges++] = *range;
    return GX_OK;
}

gx_status gx_trace_add_node(gx_trace *trace, const gx_trace_node *node, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_given(trace, node, "graph node", err));
    GX_TRY(check_room(trace, trace->n_nodes, err));
    GX_TRY(check_time(node->time, "a graph node made", err));
    GX_TRY(
        reserve(&trace->nodes, trace->n_nodes, &trace->nodes_room, 1, sizeof *node, err));
    trace->nodes[trace->n_nodes++] = *node;
    return GX_OK;
}

void gx_trace_expect_overhead(gx_trace *trace)
{
    trace->tells_overhead = true;
}

gx_status gx_trace_add_overhead(gx_trace *trace, const gx_trace_overhead *overhead,
                                gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_given(trace, overhead, "overhead", err));
    GX_TRY(check_room(trace, trace->n_overheads, err));
    GX_TRY(check_name(trace, overhead->name, "overhead", err));
    GX_TRY(check_time(overhead->start, "overhead that starts", err));
    GX_TRY(check_time(overhead->end, "overhead that ends", err));
    if (overhead->inside < GX_TRACE_NONE ||
        (overhead->inside > 0 && overhead->inside > overhead->end - overhead->start))
        return GX_FAIL(err, GX_ERR_DATA, "overhead that lies in windows for %lld ns",
                       (long long)overhead->inside);
    GX_TRY(reserve(&trace->overheads, trace->n_overheads, &trace->overheads_room, 1,
                   sizeof *overhead, err));
    trace->overheads[trace->n_overheads++] = *overhead;
    trace->tells_overhead = true;
    return GX_OK;
}

gx_trace_dropped gx_trace_dropped_get(const gx_trace *trace)
{
    return trace->dropped;
}

const gx_trace_activity *gx_trace_activities(const gx_trace *trace, size_t *n)
{
    *n = trace->n_activities;
    return trace->activities;
}

const gx_trace_call *gx_trace_calls(const gx_trace *trace, size_t *n)
{
    *n = trace->n_calls;
    return trace->calls;
}

const gx_trace_range *gx_trace_ranges(const gx_trace *trace, size_t *n)
{
    *n = trace->n_ranges;
    return trace->ranges;
}

const gx_trace_node *gx_trace_nodes(const gx_trace *trace, size_t *n)
{
    *n = trace->n_nodes;
    return trace->nodes;
}

bool gx_trace_tells_overhead(const gx_trace *trace)
{
    return trace->tells_overhead;
}

const gx_trace_overhead *gx_trace_overheads(const gx_trace *trace, size_t *n)
{
    *n = trace->n_overheads;
    return trace->overheads;
}
