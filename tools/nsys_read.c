/* Reads SQLite exports of Nsight Systems, of any program and of the versions from 2020
 * on. Columns are found by name, and every table may be absent. */
#include "trace_file.h"

#if GX_HAVE_SQLITE

#include <stdio.h>
#include <string.h>

#include "nsys_names.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMNS(...) static const gx_nsys_column columns[] = { __VA_ARGS__ }

/* In an id of a thread the low 24 bits are the thread, and the rest its process. */
#define PROCESS_OF(thread) \
    ((thread) == GX_TRACE_NONE ? (int64_t)GX_TRACE_NONE : (thread) & ~INT64_C(0xFFFFFF))
/* A process as its system knows it, which is how some tables name it. */
#define SYSTEM_ID_OF(process) ((process) >> 24 & 0xFFFFFF)

static const char kernels_table[] = "CUPTI_ACTIVITY_KIND_KERNEL";
static const char copies_table[] = "CUPTI_ACTIVITY_KIND_MEMCPY";
static const char fills_table[] = "CUPTI_ACTIVITY_KIND_MEMSET";
static const char replays_table[] = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
static const char calls_table[] = "CUPTI_ACTIVITY_KIND_RUNTIME";
static const char ranges_table[] = "NVTX_EVENTS";
static const char nodes_table[] = "CUDA_GRAPH_NODE_EVENTS";
static const char streams_table[] = "TARGET_INFO_CUDA_STREAM";
static const char old_nodes_table[] = "CUDA_GRAPH_EVENTS"; /* until 2023.4 */

typedef struct reader {
    gx_nsys_db *db;
    gx_trace_file *file;
    gx_nsys_names strings, domains;
    gx_nsys_names legacy; /* by process and stream: legacy default streams */
    int64_t threadless;   /* ranges of which no thread is known */
} reader;

/* Adds what a row says to the trace. */
typedef gx_status row_fn(reader *from, gx_nsys_rows *rows, gx_error *err);

static gx_status read_table(reader *from, const char *table,
                            const gx_nsys_column *columns, size_t n_columns, row_fn *take,
                            gx_error *err)
{
    gx_nsys_rows *rows;
    gx_status st;
    bool more = false;

    GX_TRY(gx_nsys_rows_begin(from->db, table, columns, n_columns, &rows, err));
    st = gx_nsys_rows_next(rows, &more, err);
    while (st == GX_OK && more) {
        st = take(from, rows, err);
        if (st == GX_OK)
            st = gx_nsys_rows_next(rows, &more, err);
    }
    gx_nsys_rows_end(rows);
    return st;
}

static gx_status get(gx_nsys_rows *rows, size_t column, int64_t *value, gx_error *err)
{
    return gx_nsys_rows_integer(rows, column, GX_TRACE_NONE, value, err);
}

static gx_status get_small(gx_nsys_rows *rows, size_t column, int64_t absent,
                           int32_t *value, gx_error *err)
{
    int64_t large;

    GX_TRY(gx_nsys_rows_integer(rows, column, absent, &large, err));
    *value = large < 0 ? -1 : large > INT32_MAX ? INT32_MAX : (int32_t)large;
    return GX_OK;
}

/* What every table of device work begins with. */
#define ACTIVITY_COLUMNS                                                            \
    { "start", true }, { "end", true }, { "deviceId", true }, { "streamId", true }, \
        { "correlationId", true }, { "globalPid", true },                           \
    {                                                                               \
        "graphNodeId", false                                                        \
    }
enum { N_ACTIVITY_COLUMNS = 7 };

static gx_status get_activity(reader *from, gx_nsys_rows *rows,
                              gx_trace_activity *activity, gx_error *err)
{
    GX_TRY(get(rows, 0, &activity->start, err));
    GX_TRY(get(rows, 1, &activity->end, err));
    GX_TRY(get(rows, 2, &activity->device, err));
    GX_TRY(get(rows, 3, &activity->stream, err));
    GX_TRY(get(rows, 4, &activity->correlation, err));
    GX_TRY(get(rows, 5, &activity->process, err));
    GX_TRY(get(rows, 6, &activity->node, err));
    activity->process = PROCESS_OF(activity->process);
    activity->legacy_stream =
        gx_nsys_names_find(&from->legacy, SYSTEM_ID_OF(activity->process),
                           activity->stream) != 0;
    return GX_OK;
}

static gx_status take_kernel(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    gx_trace_activity kernel = gx_trace_activity_none();
    size_t column = N_ACTIVITY_COLUMNS;
    int64_t name, fixed, dynamic;

    kernel.kind = GX_TRACE_KERNEL;
    GX_TRY(get_activity(from, rows, &kernel, err));
    GX_TRY(get(rows, column++, &name, err));
    kernel.name = gx_nsys_names_find(&from->strings, 0, name);
    for (int i = 0; i < 3; i++)
        GX_TRY(get_small(rows, column++, 0, &kernel.grid[i], err));
    for (int i = 0; i < 3; i++)
        GX_TRY(get_small(rows, column++, 0, &kernel.block[i], err));
    GX_TRY(get_small(rows, column++, GX_TRACE_NONE, &kernel.registers, err));
    GX_TRY(get(rows, column++, &fixed, err));
    GX_TRY(get(rows, column++, &dynamic, err));
    if (fixed >= 0 && dynamic >= 0 && fixed <= INT32_MAX && dynamic <= INT32_MAX)
        kernel.shared_bytes = fixed + dynamic;
    return gx_trace_add_activity(from->file->trace, &kernel, err);
}

static gx_status read_kernels(reader *from, gx_error *err)
{
    COLUMNS(ACTIVITY_COLUMNS, { "demangledName", true }, { "gridX", false },
            { "gridY", false }, { "gridZ", false }, { "blockX", false },
            { "blockY", false }, { "blockZ", false }, { "registersPerThread", false },
            { "staticSharedMemory", false }, { "dynamicSharedMemory", false });

    return read_table(from, kernels_table, columns, N(columns), take_kernel, err);
}

/* ENUM_CUDA_MEM_KIND. */
static gx_status get_memory(gx_nsys_rows *rows, size_t column, gx_trace_memory *memory,
                            gx_error *err)
{
    static const gx_trace_memory kinds[] = {
        GX_TRACE_MEMORY_PAGEABLE, GX_TRACE_MEMORY_PINNED, GX_TRACE_MEMORY_OTHER,
        GX_TRACE_MEMORY_OTHER,    GX_TRACE_MEMORY_OTHER,  GX_TRACE_MEMORY_OTHER,
        GX_TRACE_MEMORY_OTHER
    };
    int64_t kind;

    GX_TRY(get(rows, column, &kind, err));
    *memory =
        kind >= 0 && kind < (int64_t)N(kinds) ? kinds[kind] : GX_TRACE_MEMORY_UNKNOWN;
    return GX_OK;
}

static gx_status take_transfer(reader *from, gx_nsys_rows *rows, gx_trace_kind kind,
                               gx_error *err)
{
    gx_trace_activity transfer = gx_trace_activity_none();
    int64_t copy_kind = 0;

    transfer.kind = kind;
    GX_TRY(get_activity(from, rows, &transfer, err));
    GX_TRY(get(rows, N_ACTIVITY_COLUMNS, &transfer.bytes, err));
    if (kind == GX_TRACE_COPY) {
        GX_TRY(get(rows, N_ACTIVITY_COLUMNS + 1, &copy_kind, err));
        GX_TRY(get_memory(rows, N_ACTIVITY_COLUMNS + 2, &transfer.source, err));
        GX_TRY(get_memory(rows, N_ACTIVITY_COLUMNS + 3, &transfer.target, err));
    }
    const char *const name =
        kind == GX_TRACE_COPY ? gx_trace_copy_name(copy_kind) : "fill";
    GX_TRY(gx_trace_text(from->file->trace, name, strlen(name), &transfer.name, err));
    return gx_trace_add_activity(from->file->trace, &transfer, err);
}

static gx_status take_copy(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    return take_transfer(from, rows, GX_TRACE_COPY, err);
}

static gx_status take_fill(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    return take_transfer(from, rows, GX_TRACE_FILL, err);
}

static gx_status read_transfers(reader *from, gx_error *err)
{
    COLUMNS(ACTIVITY_COLUMNS, { "bytes", false }, { "copyKind", false },
            { "srcKind", false }, { "dstKind", false });

    GX_TRY(read_table(from, copies_table, columns, N(columns), take_copy, err));
    return read_table(from, fills_table, columns, N(columns) - 3, take_fill, err);
}

/* The legacy default streams, before what ran on them. */
static gx_status take_stream(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    enum { LEGACY = 3 }; /* CUpti_ActivityStreamFlag */
    int64_t stream, process, flag;

    GX_TRY(get(rows, 0, &stream, err));
    GX_TRY(get(rows, 1, &process, err));
    GX_TRY(get(rows, 2, &flag, err));
    return flag == LEGACY ? gx_nsys_names_add(&from->legacy, process, stream, 1, err)
                          : GX_OK;
}

static gx_status read_streams(reader *from, gx_error *err)
{
    COLUMNS({ "streamId", true }, { "processId", true }, { "flag", true });

    if (!gx_nsys_db_has_column(from->db, streams_table, "flag"))
        return GX_OK;
    GX_TRY(read_table(from, streams_table, columns, N(columns), take_stream, err));
    gx_nsys_names_sort(&from->legacy);
    return GX_OK;
}

static gx_status take_replay(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    gx_trace_activity replay = gx_trace_activity_none();
    int64_t graph;
    char name[48];

    replay.kind = GX_TRACE_GRAPH;
    GX_TRY(get_activity(from, rows, &replay, err));
    GX_TRY(get(rows, N_ACTIVITY_COLUMNS, &graph, err));
    snprintf(name, sizeof name, graph == GX_TRACE_NONE ? "graph" : "graph %lld",
             (long long)graph);
    GX_TRY(gx_trace_text(from->file->trace, name, strlen(name), &replay.name, err));
    return gx_trace_add_activity(from->file->trace, &replay, err);
}

static gx_status read_replays(reader *from, gx_error *err)
{
    COLUMNS(ACTIVITY_COLUMNS, { "graphId", false });

    return read_table(from, replays_table, columns, N(columns), take_replay, err);
}

/* Runtime and driver; others are twins of these that carry a backtrace. */
static gx_status take_call(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    enum { RUNTIME = 0, DRIVER = 1 };
    gx_trace_call call = { 0 };
    int64_t event_class, name;

    GX_TRY(gx_nsys_rows_integer(rows, 2, RUNTIME, &event_class, err));
    if (event_class != RUNTIME && event_class != DRIVER)
        return GX_OK;
    GX_TRY(get(rows, 0, &call.start, err));
    GX_TRY(get(rows, 1, &call.end, err));
    GX_TRY(get(rows, 3, &call.thread, err));
    GX_TRY(get(rows, 4, &call.correlation, err));
    GX_TRY(get(rows, 5, &name, err));
    call.process = PROCESS_OF(call.thread);
    call.name = gx_nsys_names_find(&from->strings, 0, name);
    return gx_trace_add_call(from->file->trace, &call, err);
}

static gx_status read_calls(reader *from, gx_error *err)
{
    COLUMNS({ "start", true }, { "end", true }, { "eventClass", false },
            { "globalTid", true }, { "correlationId", true }, { "nameId", true });

    return read_table(from, calls_table, columns, N(columns), take_call, err);
}

/* --- ranges --- */

enum {
    NVTX_PUSH_POP = 59,
    NVTX_START_END = 60,
    NVTXT_PUSH_POP = 70,
    NVTXT_START_END = 71,
    NVTX_DOMAIN = 75
};
enum { AT_START, AT_END, AT_TYPE, AT_THREAD, AT_DOMAIN, AT_TEXT, AT_TEXT_ID };

/* The text stands in the row, or is registered. */
static gx_status get_text(reader *from, gx_nsys_rows *rows, uint32_t *text, gx_error *err)
{
    size_t n;
    const char *const bytes = gx_nsys_rows_text(rows, AT_TEXT, &n);
    int64_t id;

    if (bytes)
        return gx_trace_text(from->file->trace, bytes, n, text, err);
    GX_TRY(get(rows, AT_TEXT_ID, &id, err));
    *text = gx_nsys_names_find(&from->strings, 0, id);
    return GX_OK;
}

static gx_status take_domain(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    int64_t type, thread, domain;
    uint32_t text;

    GX_TRY(get(rows, AT_TYPE, &type, err));
    if (type != NVTX_DOMAIN)
        return GX_OK;
    GX_TRY(get(rows, AT_THREAD, &thread, err));
    GX_TRY(get(rows, AT_DOMAIN, &domain, err));
    GX_TRY(get_text(from, rows, &text, err));
    return gx_nsys_names_add(&from->domains, PROCESS_OF(thread), domain, text, err);
}

static gx_status take_range(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    gx_trace_range range = { 0 };
    int64_t type, domain;

    GX_TRY(get(rows, AT_TYPE, &type, err));
    if (type == NVTX_PUSH_POP || type == NVTXT_PUSH_POP)
        range.kind = GX_TRACE_PUSH_POP;
    else if (type == NVTX_START_END || type == NVTXT_START_END)
        range.kind = GX_TRACE_START_END;
    else
        return GX_OK;
    GX_TRY(get(rows, AT_START, &range.start, err));
    GX_TRY(gx_nsys_rows_integer(rows, AT_END, GX_TRACE_OPEN, &range.end, err));
    GX_TRY(get(rows, AT_THREAD, &range.thread, err));
    GX_TRY(get(rows, AT_DOMAIN, &domain, err));
    GX_TRY(get_text(from, rows, &range.name, err));
    range.process = PROCESS_OF(range.thread);
    range.domain = gx_nsys_names_find(&from->domains, range.process, domain);
    from->threadless += range.thread == GX_TRACE_NONE;
    return gx_trace_add_range(from->file->trace, &range, err);
}

/* Domains first: a range may stand ahead of the row that names its domain. */
static gx_status read_ranges(reader *from, gx_error *err)
{
    COLUMNS({ "start", true }, { "end", true }, { "eventType", true },
            { "globalTid", true }, { "domainId", false }, { "text", false },
            { "textId", false });

    GX_TRY(read_table(from, ranges_table, columns, N(columns), take_domain, err));
    gx_nsys_names_sort(&from->domains);
    return read_table(from, ranges_table, columns, N(columns), take_range, err);
}

static gx_status take_node(reader *from, gx_nsys_rows *rows, gx_error *err)
{
    gx_trace_node node = { 0 };

    GX_TRY(get(rows, 0, &node.time, err));
    GX_TRY(get(rows, 1, &node.thread, err));
    GX_TRY(get(rows, 2, &node.id, err));
    GX_TRY(get(rows, 3, &node.original, err));
    node.process = PROCESS_OF(node.thread);
    return gx_trace_add_node(from->file->trace, &node, err);
}

static gx_status read_nodes(reader *from, gx_error *err)
{
    COLUMNS({ "start", true }, { "globalTid", true }, { "graphNodeId", true },
            { "originalGraphNodeId", true });
    const char *table = nodes_table;

    /* The old table keeps its name for something else later: its columns decide. */
    if (!gx_nsys_db_has(from->db, table) &&
        gx_nsys_db_has_column(from->db, old_nodes_table, "graphNodeId"))
        table = old_nodes_table;
    return read_table(from, table, columns, N(columns), take_node, err);
}

/* --- the whole --- */

static gx_status check_kind(const reader *from, gx_error *err)
{
    const gx_nsys_db *const db = from->db;

    if (gx_nsys_db_has(db, "META_DATA_EXPORT") || gx_nsys_db_has(db, "EXPORT_META_DATA"))
        return GX_OK;
    if (gx_nsys_db_has(db, "StringIds") &&
        (gx_nsys_db_has(db, kernels_table) || gx_nsys_db_has(db, copies_table) ||
         gx_nsys_db_has(db, calls_table) || gx_nsys_db_has(db, ranges_table)))
        return GX_OK; /* of 2020, without metadata */
    return GX_FAIL(err, GX_ERR_DATA,
                   "%s: an SQLite file, but no export of Nsight Systems: it has neither "
                   "META_DATA_EXPORT nor StringIds with CUDA or NVTX tables",
                   from->file->path);
}

static gx_status list_absent(const reader *from, gx_error *err)
{
    static const char *const tables[] = { kernels_table, copies_table, fills_table,
                                          replays_table, calls_table,  ranges_table };

    for (size_t i = 0; i < N(tables); i++)
        if (!gx_nsys_db_has(from->db, tables[i]))
            GX_TRY(gx_lines_add(&from->file->absent, err, "%s", tables[i]));
    if (!gx_nsys_db_has(from->db, nodes_table) &&
        !gx_nsys_db_has_column(from->db, old_nodes_table, "graphNodeId"))
        GX_TRY(gx_lines_add(&from->file->absent, err, "%s", nodes_table));
    return GX_OK;
}

static gx_status read_all(reader *from, gx_error *err)
{
    GX_TRY(check_kind(from, err));
    GX_TRY(gx_nsys_about_read(from->db, from->file, err));
    GX_TRY(gx_nsys_names_read(from->db, from->file->trace, &from->strings, err));
    GX_TRY(read_streams(from, err));
    GX_TRY(read_kernels(from, err));
    GX_TRY(read_transfers(from, err));
    GX_TRY(read_replays(from, err));
    GX_TRY(read_calls(from, err));
    GX_TRY(read_ranges(from, err));
    GX_TRY(read_nodes(from, err));
    GX_TRY(list_absent(from, err));
    if (from->threadless)
        GX_TRY(gx_lines_add(&from->file->remarks, err,
                            "%lld ranges belong to no thread that is known, and no "
                            "kernel is attributed to them",
                            (long long)from->threadless));
    return gx_trace_file_finish(from->file, err);
}

static gx_status read_database(gx_nsys_db *db, gx_trace_file *file, gx_error *err)
{
    reader from = { .db = db, .file = file };
    const gx_status st = read_all(&from, err);

    gx_nsys_names_free(&from.strings);
    gx_nsys_names_free(&from.domains);
    gx_nsys_names_free(&from.legacy);
    gx_nsys_db_close(db);
    return st;
}

gx_status gx_nsys_read(const char *path, gx_trace_file *file, gx_error *err)
{
    gx_nsys_db *db;

    GX_TRY(gx_trace_file_start(file, path, GX_TRACE_NSYS, err));
    GX_TRY(gx_nsys_db_open(path, &db, err));
    return read_database(db, file, err);
}

gx_status gx_nsys_read_bytes(const void *bytes, size_t n, const char *path,
                             gx_trace_file *file, gx_error *err)
{
    gx_nsys_db *db;

    GX_TRY(gx_trace_file_start(file, path, GX_TRACE_NSYS, err));
    GX_TRY(gx_nsys_db_open_bytes(bytes, n, path, &db, err));
    return read_database(db, file, err);
}

#else

gx_status gx_nsys_read(const char *path, gx_trace_file *file, gx_error *err)
{
    (void)file;
    return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                   "%s: this build has no SQLite, which reads exports of Nsight Systems; "
                   "install libsqlite3-dev and build gexec again",
                   path);
}

gx_status gx_nsys_read_bytes(const void *bytes, size_t n, const char *path,
                             gx_trace_file *file, gx_error *err)
{
    (void)bytes;
    (void)n;
    return gx_nsys_read(path, file, err);
}

#endif
