/* Exports of Nsight Systems that are built here: tables, columns, rows. */
#include <stdio.h>

#include "support_nsys.h"
#include "support_trace.h"

#if !GX_HAVE_SQLITE

int main(void)
{
    printf("skipped: this build has no SQLite\n");
    return TEST_SKIPPED;
}

#else

/* E05: two graph launches of three nodes and four plain launches. */
static void graph_launches_and_plain_ones_are_counted_apart_and_once(void **state)
{
    nsys_built one = nsys_build_export("e05.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;
    int64_t at = 1000;

    (void)state;
    for (int i = 1; i <= 6; i++, at += 1000) {
        const bool graph = i > 4;

        nsys_put_call(&one, at, at + 100, i, graph ? 11 : 10);
        for (int k = 0; k < (graph ? 3 : 1); k++)
            nsys_put_kernel(&one, at + 200 + 10 * k, at + 205 + 10 * k, i);
    }
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 4);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 2);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].ns, 400);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].ns, 200);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 10);
    assert_int_equal(figures->n_replayed, 6);
    nsys_close_both(&file, figures);
}

/* E06, and the types of NVTXT, and a registered text. */
static void every_type_of_range_is_read(void **state)
{
    static const int types[] = { 59, 60, 70, 71 };
    nsys_built one = nsys_build_export("e06.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, nsys_ranges_sql);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "type %d", types[i]);
        nsys_put_range(&one, 1000 * i, 1000 * i + 500, types[i], name);
        nsys_put_call(&one, 1000 * i + 100, 1000 * i + 200, i + 1, 10);
        nsys_put_kernel(&one, 1000 * i + 150, 1000 * i + 250, i + 1);
    }
    nsys_run_sql(&one,
                 "INSERT INTO NVTX_EVENTS VALUES (5000, 6000, 59, NULL, 20, 16777221, 3),"
                 " (1, NULL, 75, 'domain three', NULL, 16777221, 3),"
                 " (2, NULL, 34, 'a mark', NULL, 16777221, 0)");
    nsys_put_call(&one, 5100, 5200, 9, 10);
    nsys_put_kernel(&one, 5150, 5160, 9);
    nsys_read_built(&one, &file, &figures);
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
    nsys_close_both(&file, figures);
}

/* E07: the table of ranges is there, has a version in its name, or is absent. */
static void a_table_may_carry_a_version_or_be_absent(void **state)
{
    for (int i = 0; i < 3; i++) {
        nsys_built one = nsys_build_export("e07.sqlite");
        gx_trace_file file;
        gx_trace_figures *figures;
        size_t n;

        (void)state;
        nsys_put_call(&one, 100, 200, 1, 10);
        nsys_put_kernel(&one, 150, 250, 1);
        if (i < 2) {
            nsys_run_sql(&one, nsys_ranges_sql);
            nsys_put_range(&one, 0, 500, 59, "forward");
        }
        if (i == 1)
            nsys_run_sql(&one, "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2");
        nsys_read_built(&one, &file, &figures);
        gx_trace_ranges(file.trace, &n);
        assert_int_equal(n, i < 2);
        assert_int_equal(figures->n_ranges, i < 2);
        nsys_close_both(&file, figures);
    }
}

/* E08: a needed column under another name; a schema of the future. */
static void a_needed_column_that_is_absent_is_named(void **state)
{
    nsys_built one = nsys_build_export("e08.sqlite");

    (void)state;
    nsys_run_sql(&one,
                 "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN end TO finish");
    nsys_refuse_built(&one, "its table CUPTI_ACTIVITY_KIND_KERNEL has no column end");
}

static void a_schema_of_the_future_is_said(void **state)
{
    nsys_built one = nsys_build_export("e08b.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, "UPDATE META_DATA_EXPORT SET value = '99.0.0' WHERE name = "
                       "'EXPORT_SCHEMA_VERSION'");
    nsys_put_kernel(&one, 150, 250, 1);
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(file.remarks.n, 1);
    assert_has(file.remarks.items[0], "99.0.0");
    nsys_close_both(&file, figures);
}

static void what_the_collector_warned_of_is_passed_on(void **state)
{
    nsys_built one = nsys_build_export("warnings.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, "CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);"
                       "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 'CUDA started'),"
                       " (2, 'Not all CUDA events might have been collected.'),"
                       " (2, 'No samples of the CPU'), (3, NULL)");
    nsys_put_kernel(&one, 150, 250, 1);
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(file.remarks.n, 1);
    assert_has(file.remarks.items[0], "Not all CUDA events");
    nsys_close_both(&file, figures);
}

/* Of 2020: no metadata, and numbers that are not there. */
static void an_export_without_metadata_is_one_too(void **state)
{
    nsys_built one = nsys_build_export("2020.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, "DROP TABLE META_DATA_EXPORT;"
                       "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
                       " (10, 20, NULL, NULL, NULL, NULL)");
    nsys_put_kernel(&one, 150, 250, 1);
    nsys_run_sql(&one, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = NULL,"
                       " demangledName = 999");
    nsys_read_built(&one, &file, &figures);
    assert_string_equal(file.schema, "");
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 1);
    assert_int_equal(trace_count_op(&file, figures, ""), 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_OTHER].n, 1);
    nsys_close_both(&file, figures);
}

/* E09: nothing of CUDA in it. */
static void a_trace_of_the_cpu_alone_is_valid(void **state)
{
    nsys_built one = nsys_build("e09.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, nsys_names_sql);
    nsys_run_sql(&one, "CREATE TABLE OSRT_API (start INTEGER, end INTEGER)");
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(figures->n_devices, 0);
    assert_int_equal(file.absent.n, 7);
    nsys_close_both(&file, figures);
}

/* E12: records that cannot be true never make a gap of years. */
static void records_without_a_time_are_left_out_and_counted(void **state)
{
    nsys_built one = nsys_build_export("e12.sqlite");
    const int64_t year = INT64_C(1700000000000000000);
    gx_trace_file file;
    gx_trace_figures *figures;
    gx_trace_dropped dropped;

    (void)state;
    nsys_put_call(&one, year, year + 10, 1, 10);
    nsys_put_kernel(&one, year + 20, year + 30, 1);
    nsys_put_kernel(&one, year + 50, year + 60, 1);
    nsys_put_kernel(&one, 0, 0, 1);
    nsys_put_kernel(&one, year + 50, year + 40, 1);
    nsys_put_kernel(&one, 1000, 1010, 1);
    nsys_read_built(&one, &file, &figures);
    dropped = gx_trace_dropped_get(file.trace);
    assert_int_equal(dropped.no_time, 1);
    assert_int_equal(dropped.backwards, 1);
    assert_int_equal(dropped.before_call, 1);
    assert_int_equal(figures->device[0].span, 40);
    assert_int_equal(figures->device[0].n_gaps, 1);
    nsys_close_both(&file, figures);
}

static void a_trace_of_nothing_but_impossible_records_is_refused(void **state)
{
    nsys_built one = nsys_build_export("impossible.sqlite");

    (void)state;
    nsys_put_kernel(&one, 0, 0, 1);
    nsys_put_kernel(&one, 50, 40, 1);
    nsys_refuse_built(&one, "none of its records of device work can be true");
}

/* The node table before 2023.4 had the name that the life of graphs has now. */
static void the_old_node_table_is_told_by_its_columns(void **state)
{
    nsys_built one = nsys_build_export("old_nodes.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, nsys_ranges_sql);
    nsys_put_range(&one, 0, 100, 59, "captured");
    nsys_run_sql(&one,
                 "CREATE TABLE CUDA_GRAPH_EVENTS (start INTEGER, end INTEGER, globalTid"
                 " INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);"
                 "INSERT INTO CUDA_GRAPH_EVENTS VALUES (50, 50, 16777221, 3, NULL),"
                 " (150, 150, 16777221, 8, 3), (150, 150, 16777221, 8, NULL)");
    nsys_put_call(&one, 200, 210, 1, 11);
    nsys_run_sql(&one, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                       " (220, 230, 0, 7, 1, 16777216, 1, 8)");
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(trace_range_sum(&file, figures, "captured")->share.n, 1);
    assert_int_equal(figures->by[GX_TRACE_BY_CAPTURE].n, 1);
    nsys_close_both(&file, figures);
}

/* Calls with a backtrace stand twice, the second time under class 67. */
static void rows_of_backtraces_are_no_calls(void **state)
{
    nsys_built one = nsys_build_export("backtraces.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_put_call(&one, 100, 200, 1, 10);
    nsys_run_sql(&one, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES"
                       " (90, 300, 67, 16777221, 1, 10)");
    nsys_put_kernel(&one, 150, 250, 1);
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 1);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].ns, 100);
    nsys_close_both(&file, figures);
}

static void texts_that_are_no_utf8_do_not_harm(void **state)
{
    nsys_built one = nsys_build_export("utf8.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one,
                 "UPDATE StringIds SET value = CAST(x'6B00FF7A' AS TEXT) WHERE id = 1");
    nsys_put_kernel(&one, 150, 250, 1);
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(trace_count_op(&file, figures, "k\xEF\xBF\xBD\xEF\xBF\xBDz"), 1);
    nsys_close_both(&file, figures);
}

/* Where a copy reads and writes, and which streams are legacy default ones. */
static void memory_and_legacy_streams_are_read(void **state)
{
    nsys_built one = nsys_build_export("memory.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;
    size_t n;

    (void)state;
    nsys_run_sql(
        &one,
        "CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INTEGER, processId INTEGER, flag"
        " INTEGER); INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 1, 3), (9, 1, 1),"
        " (9, 2, 3);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId"
        " INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes"
        " INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES"
        " (10, 20, 0, 7, 1, 16777216, 4, 1, 0, 2), (30, 40, 0, 9, 2, 16777216, 4, 2, 2, "
        "1),"
        " (50, 60, 0, 9, 3, 16777216, 4, 8, 7, NULL)");
    nsys_read_built(&one, &file, &figures);
    const gx_trace_activity *const copy = gx_trace_activities(file.trace, &n);
    assert_int_equal(n, 3);
    assert_int_equal(copy[0].source, GX_TRACE_MEMORY_PAGEABLE);
    assert_int_equal(copy[0].target, GX_TRACE_MEMORY_OTHER);
    assert_true(copy[0].legacy_stream);
    assert_int_equal(copy[1].source, GX_TRACE_MEMORY_OTHER);
    assert_int_equal(copy[1].target, GX_TRACE_MEMORY_PINNED);
    assert_false(copy[1].legacy_stream);
    assert_int_equal(copy[2].source, GX_TRACE_MEMORY_UNKNOWN);
    assert_int_equal(copy[2].target, GX_TRACE_MEMORY_UNKNOWN);
    nsys_close_both(&file, figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_legacy_streams_are_read),
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
