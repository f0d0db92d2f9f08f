/* Exports of Nsight Systems: what is known of real ones, and ones built here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_trace.h"

#if !GX_HAVE_SQLITE

int main(void)
{
    printf("skipped: this build has no SQLite\n");
    return TEST_SKIPPED;
}

#else

#include <sqlite3.h>

static gx_error err;

/* --- real exports --- */

static const trace_truth own[] = {
    { "torch_mnist_mlp_tf32_eager.sqlite.gz",
      0,
      156,
      12899235,
      532717,
      12366518,
      155,
      { 894896, 558218, 367815, 359238, 355206 },
      7,
      156,
      51008,
      { { 139, 12052463 }, { 16, 314055 }, { 0, 0 }, { 0, 0 } } },
    { "torch_mnist_mlp_tf32_graph.sqlite.gz",
      0,
      156,
      600650,
      529385,
      71265,
      155,
      { 34144, 5664, 5632, 5632, 5632 },
      7,
      156,
      96,
      { { 0, 0 }, { 1, 34144 }, { 154, 37121 }, { 0, 0 } } },
};

static const trace_truth others[] = {
    { "flameox-2025.5.2-graphmode.sqlite",
      0,
      6,
      186815,
      7808,
      179007,
      5,
      { 84703, 80672, 6144, 4480, 3008 },
      13,
      3,
      4576,
      { { 3, 171519 }, { 2, 7488 }, { 0, 0 }, { 0, 0 } } },
    { "nsysai-2026.1.1-mock.sqlite",
      0,
      3,
      22453059,
      5761,
      22447298,
      2,
      { 18250538, 4196760 },
      7,
      2,
      18250538,
      { { 2, 22447298 }, { 0, 0 }, { 0, 0 }, { 0, 0 } } },
    { "nsysai-2026.2.1-h100x2-1s.sqlite",
      0,
      2184,
      969447605,
      962890247,
      6557358,
      2183,
      { 761862, 509732, 279874, 113313, 43712 },
      7,
      1721,
      1216,
      { { 7, 1781805 }, { 0, 0 }, { 1039, 2278862 }, { 1137, 2496691 } } },
    { "nsysai-2026.2.1-h100x2-1s.sqlite",
      1,
      2184,
      969258578,
      962810705,
      6447873,
      2183,
      { 731904, 454720, 180384, 89568, 44768 },
      15,
      1721,
      1248,
      { { 7, 1568864 }, { 0, 0 }, { 1039, 2327233 }, { 1137, 2551776 } } },
    { "pipit-2022.2.1-saxpy-mpi.sqlite",
      0,
      20,
      1097327843,
      373273080,
      724054763,
      19,
      { 196245801, 178326307, 176723671, 172295404, 63968 },
      7,
      5,
      234586037,
      { { 5, 723650062 }, { 14, 404701 }, { 0, 0 }, { 0, 0 } } },
    { "pipit-2024.5.1-cloverleaf.sqlite",
      0,
      1591,
      342407810,
      303795463,
      38612347,
      1590,
      { 2559289, 1148317, 1107965, 885437, 876638 },
      7,
      1312,
      8352,
      { { 1339, 29832348 }, { 190, 8419016 }, { 61, 360983 }, { 0, 0 } } },
    { "easycuda-2023.4.4.sqlite",
      0,
      73,
      6089529,
      2664923,
      3424606,
      24,
      { 1051711, 558218, 547596, 291123, 279892 },
      7,
      1,
      GX_TRACE_NONE,
      { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 24, 3424606 } } },
};

static void own_exports_have_the_figures_that_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        trace_check(OWN_TRACES, &own[i]);
}

static void other_exports_have_the_figures_that_are_known(void **state)
{
    (void)state;
    trace_skip_unless_shared();
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        trace_check(OTHER_TRACES "/nsys", &others[i]);
}

/* Leave whole replays out, and a trace in graph mode looks idle. */
static void an_export_in_graph_mode_counts_its_replays(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "probe_ten_ops_graph.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_int_equal(file.graph_mode, GX_GRAPH_MODE_WHOLE);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 10);
    assert_int_equal(figures->kind[GX_TRACE_GRAPH].n, 3);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 3);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 20);
    assert_int_equal(figures->calls_without_work[GX_TRACE_CALL_KERNEL], 10);
    for (size_t i = 0; i < figures->n_ops; i++)
        if (figures->op[i].kind == GX_TRACE_GRAPH) {
            assert_in_range(figures->op[i].least_ns, 9350, 9650);
            assert_in_range(figures->op[i].most_ns, 9350, 9650);
        }
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void each_captured_op_owns_its_replayed_kernels(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "probe_ten_ops_node.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_string_equal(file.version, "2025.3.2.0");
    assert_string_equal(file.schema, "3.20.3");
    assert_int_equal(file.graph_mode, GX_GRAPH_MODE_NODES);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 40);
    assert_int_equal(figures->by[GX_TRACE_BY_CAPTURE].n, 30);
    for (int i = 0; i < 10; i++) {
        char name[8];
        const gx_trace_range_sum *sum;

        snprintf(name, sizeof name, "op%d", i);
        sum = trace_range_sum(&file, figures, name);
        assert_non_null(sum);
        assert_int_equal(sum->share.n, 3);
        assert_int_equal(sum->by, GX_TRACE_BY_CAPTURE);
    }
    assert_int_equal(trace_range_sum(&file, figures, "eager")->share.n, 10);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void a_capture_before_the_window_is_said(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "torch_mnist_mlp_tf32_graph.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_int_equal(figures->nodes_before_window.n, 156);
    assert_int_equal(figures->by[GX_TRACE_BY_REPLAY].n, 156);
    assert_int_equal(figures->n_steps, 6);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 6);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_LAUNCH].n, 1);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_DEVICE].n, 4);
    assert_string_equal(gx_trace_text_at(file.trace, file.gpus[0].name),
                        "NVIDIA H100 80GB HBM3");
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void an_export_without_device_work_has_no_kernels(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_skip_unless_shared();
    trace_load(OTHER_TRACES "/nsys", "ltgemm-2025.1.3-nokernels.sqlite", &file);
    figures = trace_figures(&file);
    assert_int_equal(figures->n_devices, 0);
    assert_true(file.absent.n > 0);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

/* --- exports built here --- */

typedef struct built {
    char *path;
    sqlite3 *sqlite;
} built;

static void run_sql(built *one, const char *sql)
{
    char *message = NULL;

    if (sqlite3_exec(one->sqlite, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static const char strings_sql[] =
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
static const char ranges_sql[] =
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
    " textId INTEGER, globalTid INTEGER, domainId INTEGER);";

/* A new file in the test's folder; end with read_built or refuse_built. */
static built build(const char *name)
{
    built one = { .path = test_path(name) };

    remove(one.path);
    assert_int_equal(sqlite3_open(one.path, &one.sqlite), SQLITE_OK);
    run_sql(&one, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
    return one;
}

static built build_export(const char *name)
{
    built one = build(name);

    run_sql(&one, strings_sql);
    run_sql(&one, kernels_sql);
    run_sql(&one, calls_sql);
    return one;
}

/* Process 1, thread 1 << 24 | 5, unless told otherwise. */
enum { PROCESS = 1 << 24, THREAD = PROCESS | 5 };

static void put_call(built *one, int64_t start, int64_t end, int64_t correlation,
                     int name)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld, %lld, 0, %d, %lld, %d)",
        (long long)start, (long long)end, (int)THREAD, (long long)correlation, name);

    run_sql(one, sql);
    sqlite3_free(sql);
}

static void put_kernel(built *one, int64_t start, int64_t end, int64_t correlation)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%lld, %lld, 0, 7, %lld, %d, 1, "
        "NULL)",
        (long long)start, (long long)end, (long long)correlation, (int)PROCESS);

    run_sql(one, sql);
    sqlite3_free(sql);
}

static void put_range(built *one, int64_t start, int64_t end, int type, const char *text)
{
    char *sql = sqlite3_mprintf(
        "INSERT INTO NVTX_EVENTS VALUES (%lld, %lld, %d, %Q, NULL, %d, 0)",
        (long long)start, (long long)end, type, text, (int)THREAD);

    run_sql(one, sql);
    sqlite3_free(sql);
}

static void read_built(built *one, gx_trace_file *file, gx_trace_figures **figures)
{
    assert_int_equal(sqlite3_close(one->sqlite), SQLITE_OK);
    assert_ok(gx_trace_file_read(one->path, file, &err), &err);
    *figures = trace_figures(file);
    free(one->path);
}

static void refuse_path(const char *path, gx_status status, const char *text)
{
    gx_trace_file file;

    assert_fails(gx_trace_file_read(path, &file, &err), status, &err, text);
    gx_trace_file_free(&file);
}

static void refuse_built(built *one, const char *text)
{
    assert_int_equal(sqlite3_close(one->sqlite), SQLITE_OK);
    refuse_path(one->path, GX_ERR_DATA, text);
    free(one->path);
}

static void close_both(gx_trace_file *file, gx_trace_figures *figures)
{
    gx_trace_figures_free(figures);
    gx_trace_file_free(file);
}

/* E05: two graph launches of three nodes and four plain launches. */
static void graph_launches_and_plain_ones_are_counted_apart_and_once(void **state)
{
    built one = build_export("e05.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;
    int64_t at = 1000;

    (void)state;
    for (int i = 1; i <= 6; i++, at += 1000) {
        const bool graph = i > 4;

        put_call(&one, at, at + 100, i, graph ? 11 : 10);
        for (int k = 0; k < (graph ? 3 : 1); k++)
            put_kernel(&one, at + 200 + 10 * k, at + 205 + 10 * k, i);
    }
    read_built(&one, &file, &figures);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 4);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 2);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].ns, 400);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].ns, 200);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 10);
    assert_int_equal(figures->n_replayed, 6);
    close_both(&file, figures);
}

/* E06, and the types of NVTXT, and a registered text. */
static void every_type_of_range_is_read(void **state)
{
    static const int types[] = { 59, 60, 70, 71 };
    built one = build_export("e06.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, ranges_sql);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "type %d", types[i]);
        put_range(&one, 1000 * i, 1000 * i + 500, types[i], name);
        put_call(&one, 1000 * i + 100, 1000 * i + 200, i + 1, 10);
        put_kernel(&one, 1000 * i + 150, 1000 * i + 250, i + 1);
    }
    run_sql(&one,
            "INSERT INTO NVTX_EVENTS VALUES (5000, 6000, 59, NULL, 20, 16777221, 3),"
            " (1, NULL, 75, 'domain three', NULL, 16777221, 3),"
            " (2, NULL, 34, 'a mark', NULL, 16777221, 0)");
    put_call(&one, 5100, 5200, 9, 10);
    put_kernel(&one, 5150, 5160, 9);
    read_built(&one, &file, &figures);
    assert_int_equal(figures->n_ranges, 5);
    assert_int_equal(figures->by[GX_TRACE_BY_LAUNCH].n, 3);
    assert_int_equal(figures->by[GX_TRACE_BY_START_END].n, 2);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "type %d", types[i]);
        assert_int_equal(trace_range_sum(&file, figures, name)->share.n, 1);
    }
    assert_string_equal(
        gx_trace_text_at(file.trace,
                         trace_range_sum(&file, figures, "registered")->domain),
        "domain three");
    close_both(&file, figures);
}

/* E07: the table of ranges is there, has a version in its name, or is absent. */
static void a_table_may_carry_a_version_or_be_absent(void **state)
{
    for (int i = 0; i < 3; i++) {
        built one = build_export("e07.sqlite");
        gx_trace_file file;
        gx_trace_figures *figures;
        size_t n;

        (void)state;
        put_call(&one, 100, 200, 1, 10);
        put_kernel(&one, 150, 250, 1);
        if (i < 2) {
            run_sql(&one, ranges_sql);
            put_range(&one, 0, 500, 59, "forward");
        }
        if (i == 1)
            run_sql(&one, "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2");
        read_built(&one, &file, &figures);
        gx_trace_ranges(file.trace, &n);
        assert_int_equal(n, i < 2);
        assert_int_equal(figures->n_ranges, i < 2);
        close_both(&file, figures);
    }
}

/* E08: a needed column under another name; a schema of the future. */
static void a_needed_column_that_is_absent_is_named(void **state)
{
    built one = build_export("e08.sqlite");

    (void)state;
    run_sql(&one, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN end TO finish");
    refuse_built(&one, "its table CUPTI_ACTIVITY_KIND_KERNEL has no column end");
}

static void a_schema_of_the_future_is_said(void **state)
{
    built one = build_export("e08b.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, "UPDATE META_DATA_EXPORT SET value = '99.0.0' WHERE name = "
                  "'EXPORT_SCHEMA_VERSION'");
    put_kernel(&one, 150, 250, 1);
    read_built(&one, &file, &figures);
    assert_int_equal(file.remarks.n, 1);
    assert_has(file.remarks.items[0], "99.0.0");
    close_both(&file, figures);
}

static void what_the_collector_warned_of_is_passed_on(void **state)
{
    built one = build_export("warnings.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, "CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);"
                  "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 'CUDA started'),"
                  " (2, 'Not all CUDA events might have been collected.'),"
                  " (2, 'No samples of the CPU'), (3, NULL)");
    put_kernel(&one, 150, 250, 1);
    read_built(&one, &file, &figures);
    assert_int_equal(file.remarks.n, 1);
    assert_has(file.remarks.items[0], "Not all CUDA events");
    close_both(&file, figures);
}

/* Of 2020: no metadata, and numbers that are not there. */
static void an_export_without_metadata_is_one_too(void **state)
{
    built one = build_export("2020.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, "DROP TABLE META_DATA_EXPORT;"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
                  " (10, 20, NULL, NULL, NULL, NULL)");
    put_kernel(&one, 150, 250, 1);
    run_sql(&one, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = NULL,"
                  " demangledName = 999");
    read_built(&one, &file, &figures);
    assert_string_equal(file.schema, "");
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 1);
    assert_int_equal(trace_count_op(&file, figures, ""), 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_OTHER].n, 1);
    close_both(&file, figures);
}

/* E09: nothing of CUDA in it. */
static void a_trace_of_the_cpu_alone_is_valid(void **state)
{
    built one = build("e09.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, strings_sql);
    run_sql(&one, "CREATE TABLE OSRT_API (start INTEGER, end INTEGER)");
    read_built(&one, &file, &figures);
    assert_int_equal(figures->n_devices, 0);
    assert_int_equal(file.absent.n, 7);
    close_both(&file, figures);
}

/* E12: records that cannot be true never make a gap of years. */
static void records_without_a_time_are_left_out_and_counted(void **state)
{
    built one = build_export("e12.sqlite");
    const int64_t year = INT64_C(1700000000000000000);
    gx_trace_file file;
    gx_trace_figures *figures;
    gx_trace_dropped dropped;

    (void)state;
    put_call(&one, year, year + 10, 1, 10);
    put_kernel(&one, year + 20, year + 30, 1);
    put_kernel(&one, year + 50, year + 60, 1);
    put_kernel(&one, 0, 0, 1);
    put_kernel(&one, year + 50, year + 40, 1);
    put_kernel(&one, 1000, 1010, 1);
    read_built(&one, &file, &figures);
    dropped = gx_trace_dropped_get(file.trace);
    assert_int_equal(dropped.no_time, 1);
    assert_int_equal(dropped.backwards, 1);
    assert_int_equal(dropped.before_call, 1);
    assert_int_equal(figures->device[0].span, 40);
    assert_int_equal(figures->device[0].n_gaps, 1);
    close_both(&file, figures);
}

static void a_trace_of_nothing_but_impossible_records_is_refused(void **state)
{
    built one = build_export("impossible.sqlite");

    (void)state;
    put_kernel(&one, 0, 0, 1);
    put_kernel(&one, 50, 40, 1);
    refuse_built(&one, "none of its records of device work can be true");
}

/* The node table before 2023.4 had the name that the life of graphs has now. */
static void the_old_node_table_is_told_by_its_columns(void **state)
{
    built one = build_export("old_nodes.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, ranges_sql);
    put_range(&one, 0, 100, 59, "captured");
    run_sql(&one, "CREATE TABLE CUDA_GRAPH_EVENTS (start INTEGER, end INTEGER, globalTid"
                  " INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);"
                  "INSERT INTO CUDA_GRAPH_EVENTS VALUES (50, 50, 16777221, 3, NULL),"
                  " (150, 150, 16777221, 8, 3), (150, 150, 16777221, 8, NULL)");
    put_call(&one, 200, 210, 1, 11);
    run_sql(&one, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                  " (220, 230, 0, 7, 1, 16777216, 1, 8)");
    read_built(&one, &file, &figures);
    assert_int_equal(trace_range_sum(&file, figures, "captured")->share.n, 1);
    assert_int_equal(figures->by[GX_TRACE_BY_CAPTURE].n, 1);
    close_both(&file, figures);
}

/* Calls with a backtrace stand twice, the second time under class 67. */
static void rows_of_backtraces_are_no_calls(void **state)
{
    built one = build_export("backtraces.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    put_call(&one, 100, 200, 1, 10);
    run_sql(&one, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
                  " (90, 300, 67, 16777221, 1, 10)");
    put_kernel(&one, 150, 250, 1);
    read_built(&one, &file, &figures);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].ns, 100);
    close_both(&file, figures);
}

static void texts_that_are_no_utf8_do_not_harm(void **state)
{
    built one = build_export("utf8.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, "UPDATE StringIds SET value = CAST(x'6B00FF7A' AS TEXT) WHERE id = 1");
    put_kernel(&one, 150, 250, 1);
    read_built(&one, &file, &figures);
    assert_int_equal(trace_count_op(&file, figures, "k\xEF\xBF\xBD\xEF\xBF\xBDz"), 1);
    close_both(&file, figures);
}

/* --- files that are wrong --- */

static void what_is_no_whole_number_is_told(void **state)
{
    built one = build_export("text.sqlite");

    (void)state;
    put_kernel(&one, 1, 2, 1);
    run_sql(&one, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'");
    refuse_built(&one,
                 "row 1 of its table CUPTI_ACTIVITY_KIND_KERNEL has no whole number "
                 "in column start");
}

static void times_beyond_any_clock_are_told(void **state)
{
    built one = build_export("overflow.sqlite");

    (void)state;
    put_kernel(&one, INT64_MIN, INT64_MAX, 1);
    refuse_built(&one, "no clock shows such a time");
}

static void a_foreign_database_is_told(void **state)
{
    built one = build("foreign.sqlite");

    (void)state;
    run_sql(&one, "CREATE TABLE places (id INTEGER, url TEXT)");
    refuse_built(&one, "no export of Nsight Systems");
}

/* A view could run for ever. */
static void views_are_not_run(void **state)
{
    built one = build("view.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    run_sql(&one, strings_sql);
    run_sql(
        &one,
        "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT "
        "x + 1 FROM n) SELECT x AS start, x AS end, 59 AS eventType, 1 AS globalTid "
        "FROM n");
    read_built(&one, &file, &figures);
    assert_int_equal(figures->n_devices, 0);
    close_both(&file, figures);
}

static void a_file_that_was_cut_is_told_wherever_it_was_cut(void **state)
{
    built one = build_export("whole.sqlite");
    test_random random = test_random_start(test_seed());
    size_t n;
    char *bytes;

    (void)state;
    for (int i = 1; i < 2000; i++)
        put_kernel(&one, 100 * i, 100 * i + 50, i);
    assert_int_equal(sqlite3_close(one.sqlite), SQLITE_OK);
    bytes = test_read(one.path, &n);
    for (int i = 0; i < 20; i++) {
        const size_t cut = (size_t)test_random_int(&random, 17, (int64_t)n - 1);
        char *path = test_write("cut.sqlite", bytes, cut);

        refuse_path(path, GX_ERR_DATA, "truncated");
        free(path);
    }
    free(bytes);
    free(one.path);
}

/* Damage gives figures or an error, and nothing else. */
static void a_damaged_file_does_no_harm(void **state)
{
    built one = build_export("damage.sqlite");
    test_random random = test_random_start(test_seed());
    size_t n;
    char *bytes;

    (void)state;
    run_sql(&one, ranges_sql);
    for (int i = 1; i < 300; i++) {
        put_call(&one, 100 * i, 100 * i + 20, i, 10);
        put_kernel(&one, 100 * i, 100 * i + 50, i);
        put_range(&one, 100 * i, 100 * i + 50, 59 + i % 2, "range");
    }
    assert_int_equal(sqlite3_close(one.sqlite), SQLITE_OK);
    bytes = test_read(one.path, &n);
    for (int i = 0; i < 200; i++) {
        char *copy = malloc(n);
        gx_trace_file file;
        gx_status st;

        assert_non_null(copy);
        memcpy(copy, bytes, n);
        for (int j = 0; j < 20; j++)
            copy[test_random_int(&random, 0, (int64_t)n - 1)] =
                (char)test_random_bits(&random);
        gx_error_clear(&err);
        st = gx_nsys_read_bytes(copy, n, "damaged", &file, &err);
        assert_int_equal(st, err.status);
        if (st == GX_OK)
            gx_trace_figures_free(trace_figures(&file));
        gx_trace_file_free(&file);
        free(copy);
    }
    free(bytes);
    free(one.path);
}

static void what_is_no_trace_at_all_is_told(void **state)
{
    char *empty = test_write("empty.sqlite", "", 0);
    char *words = test_write_text("words.txt", "these are words\n");
    char *head = test_write_text("head.sqlite", "SQLite format 3");

    (void)state;
    refuse_path(empty, GX_ERR_DATA, "the file is empty");
    refuse_path(words, GX_ERR_DATA, "neither an Nsight Systems export");
    refuse_path(head, GX_ERR_DATA, "neither an Nsight Systems export");
    refuse_path(test_folder(), GX_ERR_READ, "a folder");
    refuse_path("no/such/file.sqlite", GX_ERR_READ, "No such file");
    free(empty);
    free(words);
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_exports_have_the_figures_that_are_known),
        cmocka_unit_test(other_exports_have_the_figures_that_are_known),
        cmocka_unit_test(an_export_in_graph_mode_counts_its_replays),
        cmocka_unit_test(each_captured_op_owns_its_replayed_kernels),
        cmocka_unit_test(a_capture_before_the_window_is_said),
        cmocka_unit_test(an_export_without_device_work_has_no_kernels),
        cmocka_unit_test(graph_launches_and_plain_ones_are_counted_apart_and_once),
        cmocka_unit_test(every_type_of_range_is_read),
        cmocka_unit_test(a_table_may_carry_a_version_or_be_absent),
        cmocka_unit_test(a_needed_column_that_is_absent_is_named),
        cmocka_unit_test(a_schema_of_the_future_is_said),
        cmocka_unit_test(what_the_collector_warned_of_is_passed_on),
        cmocka_unit_test(an_export_without_metadata_is_one_too),
        cmocka_unit_test(a_trace_of_the_cpu_alone_is_valid),
        cmocka_unit_test(records_without_a_time_are_left_out_and_counted),
        cmocka_unit_test(a_trace_of_nothing_but_impossible_records_is_refused),
        cmocka_unit_test(the_old_node_table_is_told_by_its_columns),
        cmocka_unit_test(rows_of_backtraces_are_no_calls),
        cmocka_unit_test(texts_that_are_no_utf8_do_not_harm),
        cmocka_unit_test(what_is_no_whole_number_is_told),
        cmocka_unit_test(times_beyond_any_clock_are_told),
        cmocka_unit_test(a_foreign_database_is_told),
        cmocka_unit_test(views_are_not_run),
        cmocka_unit_test(a_file_that_was_cut_is_told_wherever_it_was_cut),
        cmocka_unit_test(a_damaged_file_does_no_harm),
        cmocka_unit_test(what_is_no_trace_at_all_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
