/* An SQLite file that a stranger gave us: read only, its columns found by name. */
#ifndef GX_NSYS_DB_H
#define GX_NSYS_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gexec/status.h>

typedef struct gx_nsys_db gx_nsys_db;
typedef struct gx_nsys_rows gx_nsys_rows;

typedef struct gx_nsys_column {
    const char *name;
    bool needed; /* else it reads as NULL where it is not there */
} gx_nsys_column;

/* Opens a file, as immutable; or bytes, which stay the caller's and must outlive it. */
gx_status gx_nsys_db_open(const char *path, gx_nsys_db **db, gx_error *err) GX_MUST_CHECK;
gx_status gx_nsys_db_open_bytes(const void *bytes, size_t n, const char *path,
                                gx_nsys_db **db, gx_error *err) GX_MUST_CHECK;
void gx_nsys_db_close(gx_nsys_db *db);

/* The table of this name, or of this name with a version behind it (NVTX_EVENTS_V2). */
bool gx_nsys_db_has(const gx_nsys_db *db, const char *table);
bool gx_nsys_db_has_column(const gx_nsys_db *db, const char *table, const char *column);

/* Begins to read a table: *rows is NULL where it is not there. A needed column that is
 * absent is an error that names it. */
gx_status gx_nsys_rows_begin(gx_nsys_db *db, const char *table,
                             const gx_nsys_column *columns, size_t n_columns,
                             gx_nsys_rows **rows, gx_error *err) GX_MUST_CHECK;
void gx_nsys_rows_end(gx_nsys_rows *rows);
/* *more is false behind the last row, and at once where `rows` is NULL. */
gx_status gx_nsys_rows_next(gx_nsys_rows *rows, bool *more, gx_error *err) GX_MUST_CHECK;

/* A value of the row, by the column's place. NULL is `absent`; a value that is no whole
 * number is an error. */
gx_status gx_nsys_rows_integer(gx_nsys_rows *rows, size_t column, int64_t absent,
                               int64_t *value, gx_error *err) GX_MUST_CHECK;
/* The bytes of a text, not ended by NUL; NULL where there is none. Until the next row. */
const char *gx_nsys_rows_text(gx_nsys_rows *rows, size_t column, size_t *n);

#endif
