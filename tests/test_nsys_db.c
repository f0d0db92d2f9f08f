/* Files that are no exports, or damaged ones: told, and harmless. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_nsys.h"
#include "support_trace.h"

#if !GX_HAVE_SQLITE

int main(void)
{
    printf("skipped: this build has no SQLite\n");
    return TEST_SKIPPED;
}

#else

static gx_error err;

static void what_is_no_whole_number_is_told(void **state)
{
    nsys_built one = nsys_build_export("text.sqlite");

    (void)state;
    nsys_put_kernel(&one, 1, 2, 1);
    nsys_run_sql(&one, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'");
    nsys_refuse_built(&one,
                      "row 1 of its table CUPTI_ACTIVITY_KIND_KERNEL has no whole number "
                      "in column start");
}

static void times_beyond_any_clock_are_told(void **state)
{
    nsys_built one = nsys_build_export("overflow.sqlite");

    (void)state;
    nsys_put_kernel(&one, INT64_MIN, INT64_MAX, 1);
    nsys_refuse_built(&one, "no clock shows such a time");
}

static void a_foreign_database_is_told(void **state)
{
    nsys_built one = nsys_build("foreign.sqlite");

    (void)state;
    nsys_run_sql(&one, "CREATE TABLE places (id INTEGER, url TEXT)");
    nsys_refuse_built(&one, "no export of Nsight Systems");
}

/* A view could run for ever. */
static void views_are_not_run(void **state)
{
    nsys_built one = nsys_build("view.sqlite");
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    nsys_run_sql(&one, nsys_names_sql);
    nsys_run_sql(
        &one,
        "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT "
        "x + 1 FROM n) SELECT x AS start, x AS end, 59 AS eventType, 1 AS globalTid "
        "FROM n");
    nsys_read_built(&one, &file, &figures);
    assert_int_equal(figures->n_devices, 0);
    nsys_close_both(&file, figures);
}

static void a_file_that_was_cut_is_told_wherever_it_was_cut(void **state)
{
    nsys_built one = nsys_build_export("whole.sqlite");
    test_random random = test_random_start(test_seed());
    size_t n;
    char *bytes;

    (void)state;
    for (int i = 1; i < 2000; i++)
        nsys_put_kernel(&one, 100 * i, 100 * i + 50, i);
    assert_int_equal(sqlite3_close(one.sqlite), SQLITE_OK);
    bytes = test_read(one.path, &n);
    for (int i = 0; i < 20; i++) {
        const size_t cut = (size_t)test_random_int(&random, 17, (int64_t)n - 1);
        char *path = test_write("cut.sqlite", bytes, cut);

        nsys_refuse_path(path, GX_ERR_DATA, "truncated");
        free(path);
    }
    free(bytes);
    free(one.path);
}

/* Damage gives figures or an error, and nothing else. */
static void a_damaged_file_does_no_harm(void **state)
{
    nsys_built one = nsys_build_export("damage.sqlite");
    test_random random = test_random_start(test_seed());
    size_t n;
    char *bytes;

    (void)state;
    nsys_run_sql(&one, nsys_ranges_sql);
    for (int i = 1; i < 300; i++) {
        nsys_put_call(&one, 100 * i, 100 * i + 20, i, 10);
        nsys_put_kernel(&one, 100 * i, 100 * i + 50, i);
        nsys_put_range(&one, 100 * i, 100 * i + 50, 59 + i % 2, "range");
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
    nsys_refuse_path(empty, GX_ERR_DATA, "the file is empty");
    nsys_refuse_path(words, GX_ERR_DATA, "neither an Nsight Systems export");
    nsys_refuse_path(head, GX_ERR_DATA, "neither an Nsight Systems export");
    nsys_refuse_path(test_folder(), GX_ERR_READ, "a folder");
    nsys_refuse_path("no/such/file.sqlite", GX_ERR_READ, "No such file");
    free(empty);
    free(words);
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
