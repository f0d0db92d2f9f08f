/* Reads Kineto traces (PyTorch's profiler, Chrome trace JSON), which stream by: a trace
 * of a gigabyte is never held as a document. */
#include "trace_file.h"

#if GX_HAVE_YAJL

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>
#if GX_HAVE_ZLIB
#include <zlib.h>
#endif

#include "kineto_events.h"

enum { MOST_DEPTH = 64, CHUNK = 1 << 16 };

/* Where a value stands. The document is an object with "traceEvents", or the list. */
typedef enum root { ROOT_NONE, ROOT_OBJECT, ROOT_LIST } root;
typedef enum key {
    KEY_OTHER = -1, /* else a field */
    KEY_PHASE = GX_KINETO_FIELDS,
    KEY_CATEGORY,
    KEY_NAME,
    KEY_ARGS,
    KEY_EVENTS,
    KEY_GPUS,
    KEY_GPU_ID
} key;

typedef struct reader {
    gx_trace_file *file;
    yajl_handle json;
    gx_error *err; /* filled where a callback stops the parser */
    gx_status st;
    uint64_t offset; /* of the chunk under way */
    int depth;
    root root;
    int key_at[8]; /* key of the object at each of the first depths */
    int element;   /* of the list under way inside args */
    bool has_events;
    gx_kineto_event event;
    int64_t gpu;
    uint32_t gpu_name;
} reader;

/* --- places --- */

/* How deep an event's fields are. */
static int event_depth(const reader *from)
{
    return from->root == ROOT_OBJECT ? 3 : 2;
}

static bool inside_events(const reader *from)
{
    return from->depth >= event_depth(from) &&
           (from->root == ROOT_LIST || from->key_at[1] == KEY_EVENTS);
}

static bool inside_args(const reader *from)
{
    return inside_events(from) && from->depth > event_depth(from) &&
           from->key_at[event_depth(from)] == KEY_ARGS;
}

static bool in_gpu(const reader *from)
{
    return from->root == ROOT_OBJECT && from->depth == 3 && from->key_at[1] == KEY_GPUS;
}

typedef struct named {
    const char *name;
    int key;
} named;

static int find_key(const named *keys, const char *name, size_t n)
{
    for (; keys->name; keys++)
        if (strlen(keys->name) == n && memcmp(keys->name, name, n) == 0)
            return keys->key;
    return KEY_OTHER;
}

static const named root_keys[] = { { "traceEvents", KEY_EVENTS },
                                   { "deviceProperties", KEY_GPUS },
                                   { NULL, 0 } };
static const named gpu_keys[] = { { "id", KEY_GPU_ID },
                                  { "name", KEY_NAME },
                                  { NULL, 0 } };
static const named event_keys[] = {
    { "ph", KEY_PHASE },      { "cat", KEY_CATEGORY },  { "name", KEY_NAME },
    { "args", KEY_ARGS },     { "ts", GX_KINETO_TS },   { "dur", GX_KINETO_DUR },
    { "pid", GX_KINETO_PID }, { "tid", GX_KINETO_TID }, { NULL, 0 }
};
static const named args_keys[] = { { "device", GX_KINETO_DEVICE },
                                   { "stream", GX_KINETO_STREAM },
                                   { "correlation", GX_KINETO_CORRELATION },
                                   { "bytes", GX_KINETO_BYTES },
                                   { "registers per thread", GX_KINETO_REGISTERS },
                                   { "shared memory", GX_KINETO_SHARED },
                                   { "graph node id", GX_KINETO_NODE },
                                   { "grid", GX_KINETO_GRID },
                                   { "block", GX_KINETO_BLOCK },
                                   { NULL, 0 } };

/* --- callbacks: 1 goes on, 0 stops --- */

static int stop(reader *from, gx_status st)
{
    from->st = st;
    return st == GX_OK;
}

static int on_key(void *context, const unsigned char *bytes, size_t n)
{
    reader *const from = context;
    const char *const name = (const char *)bytes;
    const int event = event_depth(from);
    const named *keys = NULL;

    if (from->root == ROOT_OBJECT && from->depth == 1)
        keys = root_keys;
    else if (in_gpu(from))
        keys = gpu_keys;
    else if (inside_events(from) && from->depth == event)
        keys = event_keys;
    else if (inside_args(from) && from->depth == event + 1)
        keys = args_keys;
    if (from->depth < 8)
        from->key_at[from->depth] = keys ? find_key(keys, name, n) : KEY_OTHER;
    return 1;
}

static void keep(gx_kineto_number *number, const char *bytes, size_t n, bool is_string)
{
    number->n = n < sizeof number->text ? n : 0;
    number->is_string = is_string;
    memcpy(number->text, bytes, number->n);
}

static void keep_text(char *to, size_t size, const char *bytes, size_t n)
{
    if (n >= size)
        n = 0; /* no category that is known is as long */
    memcpy(to, bytes, n);
    to[n] = '\0';
}

static int take_gpu_value(reader *from, const char *bytes, size_t n, bool is_string)
{
    gx_kineto_number id;

    if (from->key_at[3] == KEY_NAME && is_string)
        return stop(
            from, gx_trace_text(from->file->trace, bytes, n, &from->gpu_name, from->err));
    keep(&id, bytes, n, is_string);
    if (from->key_at[3] == KEY_GPU_ID && id.n > 0 && id.n < 10) {
        id.text[id.n] = '\0';
        from->gpu = strtol(id.text, NULL, 10);
    }
    return 1;
}

static int take_event_value(reader *from, const char *bytes, size_t n, bool is_string)
{
    gx_kineto_event *const event = &from->event;
    const int field = from->key_at[event_depth(from)];

    switch (field) {
    case KEY_PHASE:
        keep_text(event->phase, sizeof event->phase, bytes, n);
        break;
    case KEY_CATEGORY:
        keep_text(event->category, sizeof event->category, bytes, n);
        break;
    case KEY_NAME:
        return stop(from,
                    gx_trace_text(from->file->trace, bytes, n, &event->name, from->err));
    case KEY_OTHER:
    case KEY_ARGS:
        break;
    default:
        keep(&event->field[field], bytes, n, is_string);
    }
    return 1;
}

static int take_args_value(reader *from, const char *bytes, size_t n, bool is_string)
{
    const int event = event_depth(from);
    const int field = from->key_at[event + 1];

    if (field < 0 || field >= GX_KINETO_FIELDS)
        return 1;
    if (from->depth == event + 1 && field < GX_KINETO_GRID)
        keep(&from->event.field[field], bytes, n, is_string);
    else if (from->depth == event + 2 && field >= GX_KINETO_GRID && from->element < 3)
        keep(&from->event.field[field + from->element++], bytes, n, is_string);
    return 1;
}

static int take_value(reader *from, const char *bytes, size_t n, bool is_string)
{
    if (in_gpu(from))
        return take_gpu_value(from, bytes, n, is_string);
    if (inside_events(from) && from->depth == event_depth(from))
        return take_event_value(from, bytes, n, is_string);
    return inside_args(from) ? take_args_value(from, bytes, n, is_string) : 1;
}

static int on_number(void *context, const char *bytes, size_t n)
{
    return take_value(context, bytes, n, false);
}

static int on_string(void *context, const unsigned char *bytes, size_t n)
{
    return take_value(context, (const char *)bytes, n, true);
}

static int deeper(reader *from)
{
    if (++from->depth > MOST_DEPTH)
        return stop(from,
                    GX_FAIL(from->err, GX_ERR_LIMIT, "%s: nested deeper than %d levels",
                            from->file->path, (int)MOST_DEPTH));
    if (from->depth < 8)
        from->key_at[from->depth] = KEY_OTHER;
    return 1;
}

static int on_map(void *context)
{
    reader *const from = context;

    if (!deeper(from))
        return 0;
    if (from->depth == 1)
        from->root = ROOT_OBJECT;
    if (inside_events(from) && from->depth == event_depth(from))
        from->event = (gx_kineto_event){ .name = 0 };
    if (in_gpu(from)) {
        from->gpu = GX_TRACE_NONE;
        from->gpu_name = 0;
    }
    return 1;
}

static int on_map_end(void *context)
{
    reader *const from = context;
    gx_status st = GX_OK;
    const bool is_event = inside_events(from) && from->depth == event_depth(from);

    /* Any JSON may be a list; one of events has what each event has. */
    if (is_event && from->event.phase[0])
        from->has_events = true;
    if (is_event)
        st = gx_kineto_event_take(&from->event, from->file,
                                  from->offset + yajl_get_bytes_consumed(from->json),
                                  from->err);
    else if (in_gpu(from) && from->gpu != GX_TRACE_NONE && from->gpu_name)
        st = gx_trace_file_add_gpu(from->file, from->gpu, from->gpu_name, from->err);
    from->depth--;
    return stop(from, st);
}

static int on_list(void *context)
{
    reader *const from = context;

    if (!deeper(from))
        return 0;
    if (from->depth == 1)
        from->root = ROOT_LIST;
    else if (from->depth == 2 && from->root == ROOT_OBJECT &&
             from->key_at[1] == KEY_EVENTS)
        from->has_events = true;
    if (inside_args(from) && from->depth == event_depth(from) + 2)
        from->element = 0;
    return 1;
}

static int on_list_end(void *context)
{
    reader *const from = context;

    from->depth--;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_list,
    .yajl_end_array = on_list_end,
};

/* --- the file --- */

static gx_status explain(reader *from, yajl_status status, gx_error *err)
{
    unsigned char *text;
    uint64_t at;

    if (from->st != GX_OK)
        return from->st;
    at = from->offset + yajl_get_bytes_consumed(from->json);
    text = status == yajl_status_error ? yajl_get_error(from->json, 0, NULL, 0) : NULL;
    if (text)
        text[strcspn((char *)text, "\n")] = '\0';
    GX_FAIL(err, GX_ERR_DATA, "%s: no JSON, or cut short, at byte %llu: %s",
            from->file->path, (unsigned long long)at,
            text ? (const char *)text : "stopped");
    if (text)
        yajl_free_error(from->json, text);
    return GX_ERR_DATA;
}

static gx_status feed(reader *from, const void *bytes, size_t n, gx_error *err)
{
    const yajl_status status = yajl_parse(from->json, bytes, n);

    if (status != yajl_status_ok)
        return explain(from, status, err);
    from->offset += n;
    return GX_OK;
}

static gx_status finish(reader *from, gx_error *err)
{
    const yajl_status status = yajl_complete_parse(from->json);

    if (status != yajl_status_ok)
        return explain(from, status, err);
    if (!from->has_events)
        return GX_FAIL(err, GX_ERR_DATA, "%s: JSON, but no Kineto trace: %s",
                       from->file->path,
                       from->root == ROOT_LIST
                           ? "no item of the list is an event, which has a \"ph\""
                           : "it has no list traceEvents");
    return gx_trace_file_finish(from->file, err);
}

static gx_status begin(reader *from, gx_trace_file *file, gx_error *err)
{
    *from = (reader){ .file = file, .err = err };
    from->json = yajl_alloc(&callbacks, NULL, from);
    if (!from->json)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    /* Names may hold bytes that are no UTF-8; the trace makes texts of them. */
    yajl_config(from->json, yajl_dont_validate_strings, 1);
    return GX_OK;
}

#if GX_HAVE_ZLIB

typedef gzFile source;

static source source_open(const char *path)
{
    return gzopen(path, "rb");
}

static gx_status source_read(source from, const char *path, void *bytes, size_t *n,
                             gx_error *err)
{
    const int got = gzread(from, bytes, CHUNK);
    int code;

    *n = got > 0 ? (size_t)got : 0;
    const char *text = gzerror(from, &code);
    const size_t length = strlen(path);

    /* zlib puts the path in front as well. */
    if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END))
        return GX_FAIL_NATIVE(err, GX_ERR_DATA, code, "%s: damaged or truncated gzip: %s",
                              path, text);
    return GX_OK;
}

static void source_close(source from)
{
    gzclose(from);
}

#else

typedef FILE *source;

static source source_open(const char *path)
{
    return fopen(path, "rb");
}

static gx_status source_read(source from, const char *path, void *bytes, size_t *n,
                             gx_error *err)
{
    *n = fread(bytes, 1, CHUNK, from);
    if (*n >= 2 && ftell(from) == (long)*n && memcmp(bytes, "\x1F\x8B", 2) == 0)
        return GX_FAIL(
            err, GX_ERR_UNSUPPORTED,
            "%s: this build has no zlib, which reads gzip; gunzip the file, or "
            "install zlib1g-dev and build gexec again",
            path);
    if (ferror(from))
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    return GX_OK;
}

static void source_close(source from)
{
    fclose(from);
}

#endif

/* SQLite comes gzipped too, and is not read so. */
static gx_status check_head(const reader *from, const char *bytes, size_t n,
                            gx_error *err)
{
    if (from->offset == 0 && n >= 15 && memcmp(bytes, "SQLite format 3", 15) == 0)
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: an SQLite file inside gzip; gunzip it first",
                       from->file->path);
    return GX_OK;
}

static gx_status feed_all(reader *from, source file, char *chunk, gx_error *err)
{
    size_t n;

    GX_TRY(source_read(file, from->file->path, chunk, &n, err));
    while (n > 0) {
        GX_TRY(check_head(from, chunk, n, err));
        GX_TRY(feed(from, chunk, n, err));
        GX_TRY(source_read(file, from->file->path, chunk, &n, err));
    }
    return finish(from, err);
}

gx_status gx_kineto_read(const char *path, gx_trace_file *file, gx_error *err)
{
    reader from = { 0 };
    source input;
    char *chunk = NULL;
    gx_status st;

    GX_TRY(gx_trace_file_start(file, path, GX_TRACE_KINETO, err));
    input = source_open(path);
    if (!input)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    st = begin(&from, file, err);
    if (st == GX_OK && (chunk = malloc(CHUNK)) == NULL)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    if (st == GX_OK)
        st = feed_all(&from, input, chunk, err);
    free(chunk);
    if (from.json)
        yajl_free(from.json);
    source_close(input);
    return st;
}

gx_status gx_kineto_read_bytes(const void *bytes, size_t n, const char *path,
                               gx_trace_file *file, gx_error *err)
{
    reader from = { 0 };
    gx_status st;

    GX_TRY(gx_trace_file_start(file, path, GX_TRACE_KINETO, err));
    st = begin(&from, file, err);
    if (st == GX_OK)
        st = feed(&from, bytes, n, err);
    if (st == GX_OK)
        st = finish(&from, err);
    if (from.json)
        yajl_free(from.json);
    return st;
}

#else

gx_status gx_kineto_read(const char *path, gx_trace_file *file, gx_error *err)
{
    (void)file;
    return GX_FAIL(
        err, GX_ERR_UNSUPPORTED,
        "%s: this build has no YAJL, which reads Kineto traces (JSON); install "
        "libyajl-dev and build gexec again",
        path);
}

gx_status gx_kineto_read_bytes(const void *bytes, size_t n, const char *path,
                               gx_trace_file *file, gx_error *err)
{
    (void)bytes;
    (void)n;
    return gx_kineto_read(path, file, err);
}

#endif
