/* Exports of Nsight Systems that tests build. */
#include "support_nsys.h"

#if GX_HAVE_SQLITE

#include <stdio.h>
#include <stdlib.h>

static gx_error err;

void nsys_run_sql(nsys_built *one, const char *sql)
{
    char *message = NULL;

    if (sqlite3_exec(one->sqlite, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

const char nsys_names_sql[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'k1'), (2, 'k2'), (10, 'cudaLaunchKernel_v7000'),"
    " (11, 'cudaGraphLaunch_v10000'), (20, 'registered');"
    "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
    "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3'),"
    " ('EXPORT_PRODUCT_VERSION', '2025.3.2');";
static const char kernels_sql[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId"
    " INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName"
    " INTEGER, graphNodeId INTEGER);";
static const char calls_sql[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass"
    " INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);";
const char nsys_ranges_sql[] =
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
    " textId INTEGER, globalTid INTEGER, domainId INTEGER);";

nsys_built nsys_build(const char *name)
{
    nsys_built one = { .path = test_path(name) };

    remove(one.path);
    assert_int_equal(sqlite3_open(one.path, &one.sqlite), SQLITE_OK);
    nsys_run_sql(&one, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
    return one;
}

nsys_built nsys_build_export(const char *name)
{
    nsys_built one = nsys_build(name);

    nsys_run_sql(&one, nsys_names_sql);
    nsys_run_sql(&one, kernels_sql);
    nsys_run_sql(&one, calls_sql);
    return one;
}

void nsys_put_call(nsys_built *one, int64_t start, int64_t end, int64_t correlation,
                   int name)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld, %lld, 0, %d, %lld, %d)",
        (long long)start, (long long)end, (int)NSYS_THREAD, (long long)correlation, name);

    nsys_run_sql(one, sql);
    sqlite3_free(sql);
}

void nsys_put_kernel(nsys_built *one, int64_t start, int64_t end, int64_t correlation)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%lld, %lld, 0, 7, %lld, %d, 1, "
        "NULL)",
        (long long)start, (long long)end, (long long)correlation, (int)NSYS_PROCESS);

    nsys_run_sql(one, sql);
    sqlite3_free(sql);
}

void nsys_put_range(nsys_built *one, int64_t start, int64_t end, int type,
                    const char *text)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO NVTX_EVENTS VALUES (%lld, %lld, %d, %Q, NULL, %d, 0)",
        (long long)start, (long long)end, type, text, (int)NSYS_THREAD);

    nsys_run_sql(one, sql);
    sqlite3_free(sql);
}

void nsys_read_built(nsys_built *one, gx_trace_file *file, gx_trace_figures **figures)
{
    assert_int_equal(sqlite3_close(one->sqlite), SQLITE_OK);
    assert_ok(gx_trace_file_read(one->path, file, &err), &err);
    *figures = trace_figures(file);
    free(one->path);
}

void nsys_refuse_path(const char *path, gx_status status, const char *text)
{
    gx_trace_file file;

    assert_fails(gx_trace_file_read(path, &file, &err), status, &err, text);
    gx_trace_file_free(&file);
}

void nsys_refuse_built(nsys_built *one, const char *text)
{
    assert_int_equal(sqlite3_close(one->sqlite), SQLITE_OK);
    nsys_refuse_path(one->path, GX_ERR_DATA, text);
    free(one->path);
}

void nsys_close_both(gx_trace_file *file, gx_trace_figures *figures)
{
    gx_trace_figures_free(figures);
    gx_trace_file_free(file);
}

#else

typedef int nsys_nothing_to_build;

#endif
