/* SQLite, with all that a file could make it do switched off. */
#include "nsys_db.h"

#if GX_HAVE_SQLITE

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

typedef struct table {
    char *name;
    char **columns;
    size_t n_columns;
} table;

struct gx_nsys_db {
    sqlite3 *sqlite;
    char *path; /* for messages */
    table *tables;
    size_t n_tables;
};

struct gx_nsys_rows {
    gx_nsys_db *db;
    const table *from;
    sqlite3_stmt *statement;
    const gx_nsys_column *columns;
    int64_t row;
};

static gx_status sqlite_failed(const gx_nsys_db *db, const char *where, gx_error *err)
{
    const int code = sqlite3_errcode(db->sqlite);

    if (code == SQLITE_NOMEM)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    return GX_FAIL_NATIVE(
        err, GX_ERR_DATA, code, "%s: damaged or truncated, or no SQLite file%s%s: %s",
        db->path, where[0] ? "; reading " : "", where, sqlite3_errmsg(db->sqlite));
}

static gx_status no_memory(gx_error *err)
{
    return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
}

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);

    if (copy)
        strcpy(copy, text);
    return copy;
}

/* --- opening --- */

/* The header names the size of the whole, so that a file that was cut is known at once.
 */
static gx_status check_size(const unsigned char *head, uint64_t size, const char *path,
                            gx_error *err)
{
    enum { PAGE_SIZE_AT = 16, VERSION_VALID_AT = 92, CHANGES_AT = 24, PAGES_AT = 28 };
    uint64_t page = (uint64_t)head[PAGE_SIZE_AT] << 8 | head[PAGE_SIZE_AT + 1];
    uint64_t pages = 0;

    if (page == 1)
        page = 65536;
    for (int i = 0; i < 4; i++)
        pages = pages << 8 | head[PAGES_AT + i];
    /* Old writers left the number of pages stale; this is how it is told. */
    if (memcmp(head + CHANGES_AT, head + VERSION_VALID_AT, 4) != 0)
        return GX_OK;
    if (page * pages > size)
        return GX_FAIL(err, GX_ERR_DATA, "%s: truncated: it has %llu of %llu bytes", path,
                       (unsigned long long)size, (unsigned long long)(page * pages));
    return GX_OK;
}

static gx_status check_file(const char *path, gx_error *err)
{
    unsigned char head[100] = { 0 };
    FILE *file = fopen(path, "rb");
    struct stat info;
    size_t n;

    if (!file)
        return GX_FAIL(err, GX_ERR_READ, "%s: cannot be opened", path);
    n = fread(head, 1, sizeof head, file);
    if (fstat(fileno(file), &info) != 0)
        info.st_size = 0;
    fclose(file);
    if (n < sizeof head)
        return GX_FAIL(err, GX_ERR_DATA, "%s: truncated: it has %zu bytes", path, n);
    return check_size(head, (uint64_t)info.st_size, path, err);
}

/* "file:PATH?mode=ro&immutable=1" with the path escaped; the caller frees. */
static char *uri_of(const char *path)
{
    static const char head[] = "file:";
    static const char tail[] = "?mode=ro&immutable=1";
    char *uri = malloc(sizeof head + 3 * strlen(path) + sizeof tail);
    char *at = uri;

    if (!uri)
        return NULL;
    at += sprintf(at, "%s", head);
    for (; *path; path++) {
        if (isalnum((unsigned char)*path) || strchr("/._-", *path))
            *at++ = *path;
        else
            at += sprintf(at, "%%%02X", (unsigned char)*path);
    }
    strcpy(at, tail);
    return uri;
}

/* A schema may hold views, triggers and functions; none of them is run. */
static void disarm(sqlite3 *sqlite)
{
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_limit(sqlite, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(sqlite, SQLITE_LIMIT_LENGTH, 64 << 20);
    sqlite3_exec(sqlite, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", NULL, NULL,
                 NULL);
}

static gx_status list_columns(gx_nsys_db *db, table *one, gx_error *err)
{
    sqlite3_stmt *statement = NULL;
    gx_status st = GX_OK;
    int code;

    if (sqlite3_prepare_v2(db->sqlite, "SELECT name FROM pragma_table_info(?)", -1,
                           &statement, NULL) != SQLITE_OK)
        return sqlite_failed(db, one->name, err);
    sqlite3_bind_text(statement, 1, one->name, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && st == GX_OK) {
        const char *const name = (const char *)sqlite3_column_text(statement, 0);
        char **grown = realloc(one->columns, (one->n_columns + 1) * sizeof *grown);

        if (grown)
            one->columns = grown;
        if (grown && name && (grown[one->n_columns] = copy_of(name)) != NULL)
            one->n_columns++;
        else
            st = no_memory(err);
    }
    if (st == GX_OK && code != SQLITE_DONE)
        st = sqlite_failed(db, one->name, err);
    sqlite3_finalize(statement);
    return st;
}

static gx_status list_tables(gx_nsys_db *db, gx_error *err)
{
    sqlite3_stmt *statement = NULL;
    gx_status st = GX_OK;
    int code;

    if (sqlite3_prepare_v2(db->sqlite,
                           "SELECT name FROM sqlite_master WHERE type = 'table' AND "
                           "sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
                           -1, &statement, NULL) != SQLITE_OK)
        return sqlite_failed(db, "", err);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && st == GX_OK) {
        const char *const name = (const char *)sqlite3_column_text(statement, 0);
        table *grown = realloc(db->tables, (db->n_tables + 1) * sizeof *grown);

        if (!grown) {
            st = no_memory(err);
            break;
        }
        db->tables = grown;
        grown[db->n_tables] = (table){ .name = copy_of(name ? name : "") };
        if (!grown[db->n_tables].name)
            st = no_memory(err);
        else
            db->n_tables++;
    }
    if (st == GX_OK && code != SQLITE_DONE)
        st = sqlite_failed(db, "", err);
    sqlite3_finalize(statement);
    for (size_t i = 0; i < db->n_tables && st == GX_OK; i++)
        st = list_columns(db, &db->tables[i], err);
    return st;
}

/* Opens `uri`, and puts the bytes in its place where there are some. */
static gx_status open_and_list(const char *uri, const void *bytes, size_t n,
                               const char *path, gx_nsys_db **out, gx_error *err)
{
    gx_nsys_db *db = calloc(1, sizeof *db);
    gx_status st = GX_OK;

    *out = NULL;
    if (!db || (db->path = copy_of(path)) == NULL) {
        free(db);
        return no_memory(err);
    }
    if (sqlite3_open_v2(uri, &db->sqlite, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) !=
        SQLITE_OK)
        st = sqlite_failed(db, "", err);
    if (st == GX_OK && bytes &&
        sqlite3_deserialize(db->sqlite, "main", (unsigned char *)(uintptr_t)bytes,
                            (sqlite3_int64)n, (sqlite3_int64)n,
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
        st = sqlite_failed(db, "", err);
    if (st == GX_OK) {
        disarm(db->sqlite);
        st = list_tables(db, err);
    }
    if (st != GX_OK)
        gx_nsys_db_close(db);
    else
        *out = db;
    return st;
}

gx_status gx_nsys_db_open(const char *path, gx_nsys_db **db, gx_error *err)
{
    char *uri;
    gx_status st;

    *db = NULL;
    GX_TRY(check_file(path, err));
    uri = uri_of(path);
    st = uri ? open_and_list(uri, NULL, 0, path, db, err) : no_memory(err);
    free(uri);
    return st;
}

gx_status gx_nsys_db_open_bytes(const void *bytes, size_t n, const char *path,
                                gx_nsys_db **db, gx_error *err)
{
    *db = NULL;
    if (n < 100 || n > ((size_t)1 << 40))
        return GX_FAIL(err, GX_ERR_DATA, "%s: truncated: it has %zu bytes", path, n);
    GX_TRY(check_size(bytes, n, path, err));
    return open_and_list(":memory:", bytes, n, path, db, err);
}

void gx_nsys_db_close(gx_nsys_db *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < db->n_tables; i++) {
        for (size_t j = 0; j < db->tables[i].n_columns; j++)
            free(db->tables[i].columns[j]);
        free(db->tables[i].columns);
        free(db->tables[i].name);
    }
    free(db->tables);
    free(db->path);
    sqlite3_close(db->sqlite);
    free(db);
}

/* --- tables --- */

/* "_V2" or "_2", of whatever number. */
static bool is_version(const char *suffix)
{
    if (*suffix++ != '_')
        return false;
    if (*suffix == 'V' || *suffix == 'v')
        suffix++;
    return *suffix && strspn(suffix, "0123456789") == strlen(suffix);
}

static const table *find_table(const gx_nsys_db *db, const char *name)
{
    const size_t length = strlen(name);
    const table *versioned = NULL;

    for (size_t i = 0; i < db->n_tables; i++) {
        const char *const other = db->tables[i].name;

        if (strcmp(other, name) == 0)
            return &db->tables[i];
        if (strncmp(other, name, length) == 0 && is_version(other + length))
            versioned = &db->tables[i];
    }
    return versioned;
}

static bool has_column(const table *one, const char *column)
{
    for (size_t i = 0; i < one->n_columns; i++)
        if (strcmp(one->columns[i], column) == 0)
            return true;
    return false;
}

bool gx_nsys_db_has(const gx_nsys_db *db, const char *name)
{
    return find_table(db, name) != NULL;
}

bool gx_nsys_db_has_column(const gx_nsys_db *db, const char *name, const char *column)
{
    const table *const one = find_table(db, name);

    return one && has_column(one, column);
}

/* --- rows --- */

/* "SELECT "start", NULL, ... FROM "table""; sqlite3_free it. */
static char *select_text(const table *from, const gx_nsys_column *columns,
                         size_t n_columns)
{
    sqlite3_str *text = sqlite3_str_new(NULL);

    for (size_t i = 0; i < n_columns; i++)
        if (has_column(from, columns[i].name))
            sqlite3_str_appendf(text, "%s\"%w\"", i ? ", " : "SELECT ", columns[i].name);
        else
            sqlite3_str_appendf(text, "%sNULL", i ? ", " : "SELECT ");
    sqlite3_str_appendf(text, " FROM \"%w\"", from->name);
    return sqlite3_str_finish(text);
}

gx_status gx_nsys_rows_begin(gx_nsys_db *db, const char *name,
                             const gx_nsys_column *columns, size_t n_columns,
                             gx_nsys_rows **out, gx_error *err)
{
    const table *const from = find_table(db, name);
    gx_nsys_rows *rows;
    char *text;
    int code;

    *out = NULL;
    if (!from)
        return GX_OK;
    for (size_t i = 0; i < n_columns; i++)
        if (columns[i].needed && !has_column(from, columns[i].name))
            return GX_FAIL(err, GX_ERR_DATA,
                           "%s: its table %s has no column %s; no figure can be trusted",
                           db->path, from->name, columns[i].name);
    rows = calloc(1, sizeof *rows);
    text = select_text(from, columns, n_columns);
    if (!rows || !text) {
        free(rows);
        sqlite3_free(text);
        return no_memory(err);
    }
    *rows = (gx_nsys_rows){ .db = db, .from = from, .columns = columns };
    code = sqlite3_prepare_v2(db->sqlite, text, -1, &rows->statement, NULL);
    sqlite3_free(text);
    if (code != SQLITE_OK) {
        free(rows);
        return sqlite_failed(db, from->name, err);
    }
    *out = rows;
    return GX_OK;
}

void gx_nsys_rows_end(gx_nsys_rows *rows)
{
    if (!rows)
        return;
    sqlite3_finalize(rows->statement);
    free(rows);
}

gx_status gx_nsys_rows_next(gx_nsys_rows *rows, bool *more, gx_error *err)
{
    *more = false;
    if (!rows)
        return GX_OK;
    switch (sqlite3_step(rows->statement)) {
    case SQLITE_ROW:
        rows->row++;
        *more = true;
        return GX_OK;
    case SQLITE_DONE:
        return GX_OK;
    default:
        return sqlite_failed(rows->db, rows->from->name, err);
    }
}

gx_status gx_nsys_rows_integer(gx_nsys_rows *rows, size_t column, int64_t absent,
                               int64_t *value, gx_error *err)
{
    const int type = sqlite3_column_type(rows->statement, (int)column);

    *value = absent;
    if (type == SQLITE_NULL)
        return GX_OK;
    if (type != SQLITE_INTEGER)
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: row %lld of its table %s has no whole number in column %s",
                       rows->db->path, (long long)rows->row, rows->from->name,
                       rows->columns[column].name);
    *value = sqlite3_column_int64(rows->statement, (int)column);
    return GX_OK;
}

const char *gx_nsys_rows_text(gx_nsys_rows *rows, size_t column, size_t *n)
{
    const int type = sqlite3_column_type(rows->statement, (int)column);
    const void *text;

    *n = 0;
    if (type != SQLITE_TEXT && type != SQLITE_BLOB)
        return NULL;
    text = type == SQLITE_TEXT ? sqlite3_column_text(rows->statement, (int)column)
                               : sqlite3_column_blob(rows->statement, (int)column);
    *n = (size_t)sqlite3_column_bytes(rows->statement, (int)column);
    return text ? text : "";
}

#else

/* A file needs something in it. */
typedef int gx_nsys_db_absent;

#endif
