/* Names and metadata of an Nsight Systems export. */
#include "nsys_names.h"

#if GX_HAVE_SQLITE

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

enum { NEWEST_KNOWN_SCHEMA = 3 };

gx_status gx_nsys_names_add(gx_nsys_names *names, int64_t process, int64_t id,
                            uint32_t text, gx_error *err)
{
    if (names->n == names->room) {
        const size_t room = 2 * names->room + 64;
        gx_nsys_name *grown = realloc(names->items, room * sizeof *grown);

        if (!grown)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        names->items = grown;
        names->room = room;
    }
    names->items[names->n++] = (gx_nsys_name){ process, id, text };
    return GX_OK;
}

static int compare_names(const void *left, const void *right)
{
    const gx_nsys_name *const a = left;
    const gx_nsys_name *const b = right;
    int order = COMPARE(a->process, b->process);

    if (order == 0)
        order = COMPARE(a->id, b->id);
    return order != 0 ? order : COMPARE(a->text, b->text);
}

void gx_nsys_names_sort(gx_nsys_names *names)
{
    if (names->n)
        qsort(names->items, names->n, sizeof *names->items, compare_names);
}

uint32_t gx_nsys_names_find(const gx_nsys_names *names, int64_t process, int64_t id)
{
    size_t low = 0;
    size_t high = names->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const gx_nsys_name *const name = &names->items[middle];

        if (name->process < process || (name->process == process && name->id < id))
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->n && names->items[low].process == process &&
                   names->items[low].id == id
               ? names->items[low].text
               : 0;
}

void gx_nsys_names_free(gx_nsys_names *names)
{
    free(names->items);
    *names = (gx_nsys_names){ 0 };
}

static gx_status read_strings(gx_nsys_rows *rows, gx_trace *trace, gx_nsys_names *names,
                              gx_error *err)
{
    bool more;

    GX_TRY(gx_nsys_rows_next(rows, &more, err));
    while (more) {
        int64_t id;
        uint32_t text;
        size_t n;

        GX_TRY(gx_nsys_rows_integer(rows, 0, GX_TRACE_NONE, &id, err));
        const char *const bytes = gx_nsys_rows_text(rows, 1, &n);
        GX_TRY(gx_trace_text(trace, bytes ? bytes : "", n, &text, err));
        GX_TRY(gx_nsys_names_add(names, 0, id, text, err));
        GX_TRY(gx_nsys_rows_next(rows, &more, err));
    }
    gx_nsys_names_sort(names);
    return GX_OK;
}

gx_status gx_nsys_names_read(gx_nsys_db *db, gx_trace *trace, gx_nsys_names *names,
                             gx_error *err)
{
    static const gx_nsys_column columns[] = { { "id", true }, { "value", true } };
    gx_nsys_rows *rows;
    gx_status st;

    GX_TRY(gx_nsys_rows_begin(db, "StringIds", columns, 2, &rows, err));
    st = read_strings(rows, trace, names, err);
    gx_nsys_rows_end(rows);
    return st;
}

/* --- metadata --- */

static bool ends_with(const char *text, size_t n, const char *tail)
{
    const size_t length = strlen(tail);

    return n >= length && memcmp(text + n - length, tail, length) == 0;
}

/* Versions are printed: only what versions are made of is kept. */
static void keep_version(char *version, size_t size, const char *bytes, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n && kept + 1 < size; i++)
        if (bytes[i] && strchr("0123456789.-abcdefghijklmnopqrstuvwxyz", bytes[i]))
            version[kept++] = bytes[i];
    version[kept] = '\0';
}

static void take_entry(gx_trace_file *file, const char *name, size_t n_name,
                       const char *value, size_t n_value)
{
    static const char mode[] = "CUDA_GRAPH_TRACE_OPTIONS:MODE";

    if (ends_with(name, n_name, "EXPORT_PRODUCT_VERSION"))
        keep_version(file->version, sizeof file->version, value, n_value);
    else if (ends_with(name, n_name, "EXPORT_SCHEMA_VERSION"))
        keep_version(file->schema, sizeof file->schema, value, n_value);
    else if (ends_with(name, n_name, mode) && n_value == 4 &&
             strncasecmp(value, "node", 4) == 0)
        file->graph_mode = GX_GRAPH_MODE_NODES;
    else if (ends_with(name, n_name, mode) && n_value == 5 &&
             strncasecmp(value, "graph", 5) == 0)
        file->graph_mode = GX_GRAPH_MODE_WHOLE;
}

static gx_status read_entries(gx_nsys_db *db, const char *table, gx_trace_file *file,
                              gx_error *err)
{
    static const gx_nsys_column columns[] = { { "name", true }, { "value", true } };
    gx_nsys_rows *rows;
    gx_status st;
    bool more = false;

    GX_TRY(gx_nsys_rows_begin(db, table, columns, 2, &rows, err));
    for (st = gx_nsys_rows_next(rows, &more, err); more && st == GX_OK;
         st = gx_nsys_rows_next(rows, &more, err)) {
        size_t n_name, n_value;
        const char *const name = gx_nsys_rows_text(rows, 0, &n_name);
        const char *const value = gx_nsys_rows_text(rows, 1, &n_value);

        if (name && value)
            take_entry(file, name, n_name, value, n_value);
    }
    gx_nsys_rows_end(rows);
    return st;
}

static gx_status read_gpus(gx_nsys_rows *rows, gx_trace_file *file, gx_error *err)
{
    bool more;

    GX_TRY(gx_nsys_rows_next(rows, &more, err));
    while (more) {
        int64_t id, device;
        uint32_t text;
        size_t n;

        GX_TRY(gx_nsys_rows_integer(rows, 0, GX_TRACE_NONE, &id, err));
        GX_TRY(gx_nsys_rows_integer(rows, 1, id, &device, err));
        const char *const name = gx_nsys_rows_text(rows, 2, &n);
        if (name && n) {
            GX_TRY(gx_trace_text(file->trace, name, n, &text, err));
            GX_TRY(gx_trace_file_add_gpu(file, device, text, err));
        }
        GX_TRY(gx_nsys_rows_next(rows, &more, err));
    }
    return GX_OK;
}

/* Warnings and errors of the collector that bear on what is read here. */
static gx_status take_warning(gx_nsys_rows *rows, gx_trace_file *file, gx_error *err)
{
    enum { WARNING = 2, ERROR = 3 };
    int64_t severity;
    uint32_t text;
    size_t n;

    GX_TRY(gx_nsys_rows_integer(rows, 0, 0, &severity, err));
    const char *const bytes = gx_nsys_rows_text(rows, 1, &n);
    if (!bytes || (severity != WARNING && severity != ERROR))
        return GX_OK;
    GX_TRY(gx_trace_text(file->trace, bytes, n, &text, err));
    const char *const words = gx_trace_text_at(file->trace, text);
    if (!strstr(words, "CUDA") && !strstr(words, "NVTX"))
        return GX_OK;
    return gx_lines_add(&file->remarks, err, "the collector warns: %.300s", words);
}

static gx_status read_warnings(gx_nsys_db *db, gx_trace_file *file, gx_error *err)
{
    enum { MOST_WARNINGS = 8 };
    static const gx_nsys_column columns[] = { { "severity", false }, { "text", false } };
    gx_nsys_rows *rows;
    gx_status st;
    bool more = false;

    GX_TRY(gx_nsys_rows_begin(db, "DIAGNOSTIC_EVENT", columns, 2, &rows, err));
    st = gx_nsys_rows_next(rows, &more, err);
    while (st == GX_OK && more && file->remarks.n < MOST_WARNINGS) {
        st = take_warning(rows, file, err);
        if (st == GX_OK)
            st = gx_nsys_rows_next(rows, &more, err);
    }
    gx_nsys_rows_end(rows);
    return st;
}

gx_status gx_nsys_about_read(gx_nsys_db *db, gx_trace_file *file, gx_error *err)
{
    static const gx_nsys_column columns[] = { { "id", false },
                                              { "cuDevice", false },
                                              { "name", false } };
    gx_nsys_rows *rows;
    gx_status st;

    GX_TRY(read_entries(db, "EXPORT_META_DATA", file, err));
    GX_TRY(read_entries(db, "META_DATA_EXPORT", file, err));
    GX_TRY(read_entries(db, "META_DATA_CAPTURE", file, err));
    if (strtol(file->schema, NULL, 10) > NEWEST_KNOWN_SCHEMA)
        GX_TRY(gx_lines_add(&file->remarks, err,
                            "its schema is of version %s, newer than the %d that is "
                            "known here; every column was found by its name, but what "
                            "it means may have changed",
                            file->schema, NEWEST_KNOWN_SCHEMA));
    GX_TRY(read_warnings(db, file, err));
    GX_TRY(gx_nsys_rows_begin(db, "TARGET_INFO_GPU", columns, 3, &rows, err));
    st = read_gpus(rows, file, err);
    gx_nsys_rows_end(rows);
    return st;
}

#else

typedef int gx_nsys_names_absent;

#endif
