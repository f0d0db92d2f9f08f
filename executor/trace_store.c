/* Traces as files. Integers are little-endian; texts come first, then the records. One
 * function a record moves it either way, so that what is written is what is read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "beside.h"
#include "trace_model.h"

enum { MAGIC_SIZE = 12, STORE_VERSION = 3 };

static const char magic[MAGIC_SIZE] = "gexec-trace\n";

typedef struct store {
    FILE *file;
    const char *path;
    bool reading;
    int64_t left; /* bytes of the file that are not read yet */
    uint32_t n_texts;
    int32_t n_calls, n_ranges;
    gx_status st; /* the first failure; nothing is moved after it */
    gx_error *err;
} store;

static void damaged(store *at, const char *what)
{
    if (at->st == GX_OK)
        at->st =
            GX_FAIL(at->err, GX_ERR_READ, "%s: the trace is damaged: %s", at->path, what);
}

/* --- numbers --- */

static void move_bytes(store *at, void *bytes, size_t n)
{
    if (at->st != GX_OK)
        return;
    if (at->reading && at->left < (int64_t)n) {
        damaged(at, "the file is cut short");
        return;
    }
    errno = 0;
    if (at->reading ? fread(bytes, 1, n, at->file) != n
                    : fwrite(bytes, 1, n, at->file) != n) {
        at->st = GX_FAIL_NATIVE(at->err, at->reading ? GX_ERR_READ : GX_ERR_WRITE, errno,
                                "%s: %s", at->path,
                                errno ? strerror(errno) : "the file ends early");
        return;
    }
    at->left -= (int64_t)n;
}

static void move_number(store *at, uint64_t *number, size_t n_bytes)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(*number >> (8 * i));
    move_bytes(at, bytes, n_bytes);
    if (!at->reading)
        return;
    *number = 0;
    for (size_t i = 0; i < n_bytes && at->st == GX_OK; i++)
        *number |= (uint64_t)bytes[i] << (8 * i);
}

static void move_i64(store *at, int64_t *value)
{
    uint64_t number = (uint64_t)*value;

    move_number(at, &number, 8);
    *value = (int64_t)number;
}

/* At least `least`, at most `most`. */
static void move_i32(store *at, int32_t *value, int32_t least, int32_t most,
                     const char *what)
{
    uint64_t number = (uint32_t)*value;

    move_number(at, &number, 4);
    *value = (int32_t)(uint32_t)number;
    if (at->reading && at->st == GX_OK && (*value < least || *value > most))
        damaged(at, what);
}

static void move_text(store *at, uint32_t *text)
{
    uint64_t number = *text;

    move_number(at, &number, 4);
    *text = (uint32_t)number;
    if (at->reading && at->st == GX_OK && *text >= at->n_texts)
        damaged(at, "a text that it does not hold");
}

static void move_bool(store *at, bool *value)
{
    uint64_t number = *value;

    move_number(at, &number, 1);
    *value = number == 1;
    if (at->st == GX_OK && number > 1)
        damaged(at, "neither yes nor no");
}

/* Moves an enumerator that counts from 0 to n - 1. */
#define MOVE_ENUM(at, type, field, n, what)      \
    do {                                         \
        int32_t moved_ = (int32_t)(field);       \
        move_i32((at), &moved_, 0, (n)-1, what); \
        (field) = (type)moved_;                  \
    } while (0)

/* --- records --- */

static void move_activity(store *at, gx_trace_activity *activity)
{
    MOVE_ENUM(at, gx_trace_kind, activity->kind, GX_TRACE_KINDS, "a kind of activity");
    move_text(at, &activity->name);
    move_i64(at, &activity->start);
    move_i64(at, &activity->end);
    move_i64(at, &activity->process);
    move_i64(at, &activity->device);
    move_i64(at, &activity->stream);
    move_i64(at, &activity->correlation);
    move_i64(at, &activity->node);
    move_i64(at, &activity->bytes);
    for (int i = 0; i < 3; i++)
        move_i32(at, &activity->grid[i], INT32_MIN, INT32_MAX, "");
    for (int i = 0; i < 3; i++)
        move_i32(at, &activity->block[i], INT32_MIN, INT32_MAX, "");
    move_i32(at, &activity->registers, INT32_MIN, INT32_MAX, "");
    move_i64(at, &activity->shared_bytes);
    MOVE_ENUM(at, gx_trace_memory, activity->source, GX_TRACE_MEMORY_OTHER + 1,
              "a kind of memory");
    MOVE_ENUM(at, gx_trace_memory, activity->target, GX_TRACE_MEMORY_OTHER + 1,
              "a kind of memory");
    move_i32(at, &activity->source_device, GX_TRACE_NONE, INT32_MAX, "a device");
    move_i32(at, &activity->target_device, GX_TRACE_NONE, INT32_MAX, "a device");
    move_bool(at, &activity->legacy_stream);
    move_i32(at, &activity->group, GX_TRACE_NONE, INT32_MAX, "a group");
    move_i32(at, &activity->lane, GX_TRACE_NONE, INT32_MAX, "a lane");
    move_i32(at, &activity->body, GX_TRACE_NONE, INT32_MAX, "a body");
    move_i32(at, &activity->call, GX_TRACE_NONE, at->n_calls - 1, "a call");
    move_i32(at, &activity->range, GX_TRACE_NONE, at->n_ranges - 1, "a range");
    MOVE_ENUM(at, gx_trace_by, activity->by, GX_TRACE_BYS, "a way to a range");
}

static void move_call(store *at, gx_trace_call *call)
{
    move_i64(at, &call->start);
    move_i64(at, &call->end);
    move_i64(at, &call->process);
    move_i64(at, &call->thread);
    move_i64(at, &call->correlation);
    move_text(at, &call->name);
    MOVE_ENUM(at, gx_trace_call_kind, call->kind, GX_TRACE_CALL_KINDS, "a kind of call");
    move_bool(at, &call->twin);
    move_i64(at, &call->n_activities);
}

static void move_range(store *at, gx_trace_range *range)
{
    MOVE_ENUM(at, gx_trace_range_kind, range->kind, GX_TRACE_RANGE_KINDS,
              "a kind of range");
    move_text(at, &range->name);
    move_text(at, &range->domain);
    move_i64(at, &range->start);
    move_i64(at, &range->end);
    move_i64(at, &range->process);
    move_i64(at, &range->thread);
}

static void move_node(store *at, gx_trace_node *node)
{
    move_i64(at, &node->id);
    move_i64(at, &node->original);
    move_i64(at, &node->time);
    move_i64(at, &node->process);
    move_i64(at, &node->thread);
}

static void move_overhead(store *at, gx_trace_overhead *overhead)
{
    move_text(at, &overhead->name);
    move_i64(at, &overhead->start);
    move_i64(at, &overhead->end);
    move_i64(at, &overhead->inside);
    move_i64(at, &overhead->process);
    move_i64(at, &overhead->thread);
    move_i64(at, &overhead->device);
    move_i64(at, &overhead->correlation);
}

/* --- the head --- */

typedef struct head {
    int32_t n_texts, n_activities, n_calls, n_ranges, n_nodes, n_overheads;
    bool finished, tells_overhead;
    gx_trace_dropped dropped;
} head;

static void move_head(store *at, head *counts)
{
    char found[MAGIC_SIZE];
    int32_t version = STORE_VERSION;

    memcpy(found, magic, MAGIC_SIZE);
    move_bytes(at, found, MAGIC_SIZE);
    if (at->reading && (at->st != GX_OK || memcmp(found, magic, MAGIC_SIZE) != 0)) {
        gx_error_clear(at->err);
        at->st =
            GX_FAIL(at->err, GX_ERR_READ, "%s: not a trace that gexec wrote", at->path);
        return;
    }
    move_i32(at, &version, INT32_MIN, INT32_MAX, "");
    if (at->st == GX_OK && version != STORE_VERSION)
        at->st = GX_FAIL(at->err, GX_ERR_READ,
                         "%s: a trace of version %d, expected %d: it was written by "
                         "another gexec",
                         at->path, (int)version, (int)STORE_VERSION);
    move_i32(at, &counts->n_texts, 1, INT32_MAX, "how many texts");
    move_i32(at, &counts->n_activities, 0, INT32_MAX, "how many activities");
    move_i32(at, &counts->n_calls, 0, INT32_MAX, "how many calls");
    move_i32(at, &counts->n_ranges, 0, INT32_MAX, "how many ranges");
    move_i32(at, &counts->n_nodes, 0, INT32_MAX, "how many nodes");
    move_i32(at, &counts->n_overheads, 0, INT32_MAX, "how much overhead");
    move_bool(at, &counts->finished);
    move_bool(at, &counts->tells_overhead);
    move_i64(at, &counts->dropped.no_time);
    move_i64(at, &counts->dropped.backwards);
    move_i64(at, &counts->dropped.before_call);
    at->n_texts = (uint32_t)counts->n_texts;
    at->n_calls = counts->n_calls;
    at->n_ranges = counts->n_ranges;
}

/* --- writing --- */

static void write_records(store *at, const gx_trace *trace)
{
    bool unknown = false; /* finishing failed */

    for (size_t i = 0; i < trace->n_texts && at->st == GX_OK; i++) {
        const char *text = gx_trace_text_at(trace, (uint32_t)i);
        uint64_t length = strlen(text);

        move_number(at, &length, 4);
        move_bytes(at, (char *)(uintptr_t)text, (size_t)length); /* only read from */
    }
    for (size_t i = 0; i < trace->n_activities && at->st == GX_OK; i++) {
        gx_trace_activity activity = trace->activities[i];

        move_activity(at, &activity);
        if (trace->finished)
            move_bool(at, trace->before_window ? &trace->before_window[i] : &unknown);
    }
    for (size_t i = 0; i < trace->n_calls && at->st == GX_OK; i++) {
        gx_trace_call call = trace->calls[i];

        move_call(at, &call);
    }
    for (size_t i = 0; i < trace->n_ranges && at->st == GX_OK; i++) {
        gx_trace_range range = trace->ranges[i];

        move_range(at, &range);
    }
    for (size_t i = 0; i < trace->n_nodes && at->st == GX_OK; i++) {
        gx_trace_node node = trace->nodes[i];

        move_node(at, &node);
    }
    for (size_t i = 0; i < trace->n_overheads && at->st == GX_OK; i++) {
        gx_trace_overhead overhead = trace->overheads[i];

        move_overhead(at, &overhead);
    }
}

static gx_status write_trace(const gx_trace *trace, FILE *file, const char *path,
                             gx_error *err)
{
    store at = { .file = file, .path = path, .err = err };
    head counts = { .n_texts = (int32_t)trace->n_texts,
                    .n_activities = (int32_t)trace->n_activities,
                    .n_calls = (int32_t)trace->n_calls,
                    .n_ranges = (int32_t)trace->n_ranges,
                    .n_nodes = (int32_t)trace->n_nodes,
                    .n_overheads = (int32_t)trace->n_overheads,
                    .finished = trace->finished,
                    .tells_overhead = trace->tells_overhead,
                    .dropped = trace->dropped };

    if (trace->n_texts > INT32_MAX)
        return GX_FAIL(err, GX_ERR_LIMIT, "%s: the trace has too many texts", path);
    move_head(&at, &counts);
    write_records(&at, trace);
    return at.st;
}

gx_status gx_trace_write(const gx_trace *trace, const char *path, gx_error *err)
{
    gx_beside to;
    gx_status st;

    gx_error_clear(err);
    if (!trace || !path)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the %s is NULL", trace ? "path" : "trace");
    st = gx_beside_open(&to, path, err);
    if (st == GX_OK)
        st = write_trace(trace, to.file, path, err);
    return gx_beside_close(&to, st, err);
}

/* --- reading --- */

static void read_text(store *at, gx_trace *trace, uint32_t expected)
{
    uint64_t length = 0;
    uint32_t text = 0;

    move_number(at, &length, 4);
    if (at->st == GX_OK && (int64_t)length > at->left)
        damaged(at, "the file is cut short");
    if (at->st != GX_OK)
        return;
    char *bytes = malloc((size_t)length + 1);
    if (!bytes) {
        at->st = GX_FAIL(at->err, GX_ERR_MEMORY, "out of memory for %s", at->path);
        return;
    }
    move_bytes(at, bytes, (size_t)length);
    if (at->st == GX_OK)
        at->st = gx_trace_text(trace, bytes, (size_t)length, &text, at->err);
    free(bytes);
    if (at->st == GX_OK && text != expected)
        damaged(at, "a text twice");
}

/* What add says is of the record; the file is named before it. */
static void added(store *at, gx_status st)
{
    at->st = st;
    if (st != GX_OK)
        gx_error_prefix(at->err, at->path);
}

static void read_activities(store *at, gx_trace *trace, const head *counts)
{
    bool *before_window = NULL;
    size_t room = 0;

    for (size_t i = 0; i < (size_t)counts->n_activities && at->st == GX_OK; i++) {
        gx_trace_activity activity = gx_trace_activity_none();

        move_activity(at, &activity);
        if (at->st == GX_OK)
            added(at, gx_trace_add_activity(trace, &activity, at->err));
        if (!counts->finished || at->st != GX_OK)
            continue;
        if (i == room) {
            room = room ? 2 * room : 64;
            bool *grown = realloc(before_window, room * sizeof *grown);

            if (!grown) {
                at->st =
                    GX_FAIL(at->err, GX_ERR_MEMORY, "out of memory for %s", at->path);
                break;
            }
            before_window = grown;
        }
        before_window[i] = false;
        move_bool(at, &before_window[i]);
    }
    trace->before_window = before_window;
}

static void read_records(store *at, gx_trace *trace, const head *counts)
{
    for (int32_t i = 0; i < counts->n_texts && at->st == GX_OK; i++)
        read_text(at, trace, (uint32_t)i);
    read_activities(at, trace, counts);
    for (int32_t i = 0; i < counts->n_calls && at->st == GX_OK; i++) {
        gx_trace_call call = { 0 };

        move_call(at, &call);
        if (at->st == GX_OK)
            added(at, gx_trace_add_call(trace, &call, at->err));
    }
    for (int32_t i = 0; i < counts->n_ranges && at->st == GX_OK; i++) {
        gx_trace_range range = { 0 };

        move_range(at, &range);
        if (at->st == GX_OK)
            added(at, gx_trace_add_range(trace, &range, at->err));
    }
    for (int32_t i = 0; i < counts->n_nodes && at->st == GX_OK; i++) {
        gx_trace_node node = { 0 };

        move_node(at, &node);
        if (at->st == GX_OK)
            added(at, gx_trace_add_node(trace, &node, at->err));
    }
    for (int32_t i = 0; i < counts->n_overheads && at->st == GX_OK; i++) {
        gx_trace_overhead overhead = { 0 };

        move_overhead(at, &overhead);
        if (at->st == GX_OK)
            added(at, gx_trace_add_overhead(trace, &overhead, at->err));
    }
}

/* The figures stand on the order that finishing brings. */
static bool is_in_order(const gx_trace *trace)
{
    for (size_t i = 0; i < trace->n_activities; i++) {
        const gx_trace_activity *b = &trace->activities[i];
        const gx_trace_activity *a = i ? b - 1 : b;

        if (b->end < b->start || a->process > b->process ||
            (a->process == b->process && a->device > b->device) ||
            (a->process == b->process && a->device == b->device && a->start > b->start))
            return false;
    }
    for (size_t i = 0; i < trace->n_overheads; i++) {
        const gx_trace_overhead *b = &trace->overheads[i];

        if (b->end < b->start || (i && b[-1].start > b->start))
            return false;
    }
    for (size_t i = 1; i < trace->n_calls; i++) {
        const gx_trace_call *b = &trace->calls[i];
        const gx_trace_call *a = b - 1;

        if (a->process > b->process ||
            (a->process == b->process && a->correlation > b->correlation))
            return false;
    }
    return true;
}

static gx_status read_trace(store *at, gx_trace *trace)
{
    head counts = { 0 };

    move_head(at, &counts);
    if (at->st == GX_OK)
        read_records(at, trace, &counts);
    if (at->st == GX_OK && at->left != 0)
        damaged(at, "something stands behind its end");
    if (at->st == GX_OK && counts.finished && !is_in_order(trace))
        damaged(at, "its records are out of order");
    trace->finished = counts.finished;
    trace->tells_overhead = counts.tells_overhead;
    trace->dropped = counts.dropped;
    return at->st;
}

gx_status gx_trace_read(const char *path, gx_trace **trace, gx_error *err)
{
    store at = { .path = path, .reading = true, .err = err };
    struct stat about;

    gx_error_clear(err);
    if (!trace || !path)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the %s is NULL", trace ? "path" : "trace");
    *trace = NULL;
    at.file = fopen(path, "rb");
    if (!at.file || fstat(fileno(at.file), &about) != 0 || !S_ISREG(about.st_mode)) {
        at.st = GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path,
                               at.file ? "not a file" : strerror(errno));
    } else {
        at.left = about.st_size;
        *trace = gx_trace_create();
        at.st = *trace ? read_trace(&at, *trace)
                       : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %s", path);
    }
    if (at.file)
        fclose(at.file);
    if (at.st != GX_OK) {
        gx_trace_free(*trace);
        *trace = NULL;
    }
    return at.st;
}
