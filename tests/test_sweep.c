/* The points of a sweep, and what is said of them: the sentence, tables, CSV, JSON. */
#include <stdlib.h>
#include <string.h>

#include "support_sweep.h"

static gx_error err;
static gx_args args;
static gx_sweep sweep;

static void make(const char *first, const char *second)
{
    const char *const sets[] = { first, second };

    sweep_make(&sweep, &args, sets, second ? 2 : 1);
}

static int drop(void **state)
{
    (void)state;
    sweep_drop(&sweep, &args);
    return 0;
}

/* The text of a writer holds `part`. */
static void assert_puts(void (*put)(const gx_sweep *, FILE *), const char *part)
{
    char *const text = sweep_text(&sweep, put);

    assert_has(text, part);
    free(text);
}

/* --- the points --- */

static void the_points_are_the_product_of_the_lists(void **state)
{
    static const char *const wanted[] = {
        "batch=1, hidden=2*batch", "batch=1, hidden=16", "batch=1, hidden=7",
        "batch=8, hidden=2*batch", "batch=8, hidden=16", "batch=8, hidden=7"
    };
    char text[64];

    (void)state;
    make("batch=1,8", "hidden=2*batch,16,7");
    assert_int_equal(sweep.n_dims, 2);
    assert_int_equal(sweep.n_points, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        gx_sweep_point_text(&sweep, &sweep.point[i], 0, text, sizeof text);
        assert_string_equal(text, wanted[i]);
    }
    sweep.point[0].size[1] = 2;
    gx_sweep_point_text(&sweep, &sweep.point[0], 1, text, sizeof text);
    assert_string_equal(text, "hidden=2");
}

static void a_set_without_a_list_is_no_dim(void **state)
{
    (void)state;
    make("batch=64", "hidden=16,32");
    assert_int_equal(sweep.n_dims, 1);
    assert_string_equal(sweep.dim[0].name, "hidden");
    assert_int_equal(sweep.n_points, 2);
}

static void a_long_text_of_a_point_is_cut(void **state)
{
    char text[12];

    (void)state;
    make("batch=1,8", "hidden=16,32");
    gx_sweep_point_text(&sweep, &sweep.point[3], 0, text, sizeof text);
    assert_string_equal(text, "batch=8, hi");
}

/* --- the sentence and the exit status --- */

static void measure_three(void)
{
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep_measure(&sweep, 1, (const int64_t[]){ 8 }, 100, 80, 40);
    sweep_measure(&sweep, 2, (const int64_t[]){ 64 }, 100, 80, 60);
}

static void all_faster_is_said_with_its_range(void **state)
{
    (void)state;
    measure_three();
    assert_puts(gx_sweep_verdict,
                "The graph is faster than eager launches at all 3 sizes, 4.00 times "
                "as fast (batch=1) down to 1.33 times as fast (batch=64); bits are equal "
                "at all 3.\n");
    assert_int_equal(gx_sweep_exit(&sweep), GX_EXIT_OK);
}

static void slower_and_unclear_are_counted_apart(void **state)
{
    (void)state;
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 40);
    sweep_measure(&sweep, 1, (const int64_t[]){ 8 }, 100, 80, 80);
    sweep_measure(&sweep, 2, (const int64_t[]){ 64 }, 100, 80, 90);
    assert_puts(gx_sweep_verdict,
                "at 1 of 3 sizes, 2.00 times as fast (batch=1); slower at 1; no clear "
                "difference at 1; bits are equal at all 3.");
    assert_puts(gx_sweep_print, "never");
}

static void bits_that_differ_are_named_and_win(void **state)
{
    (void)state;
    measure_three();
    sweep_differ(&sweep, 1, "fc1.w");
    sweep_fail(&sweep, 2, GX_ERR_DEVICE_MEMORY, "no room");
    assert_int_equal(gx_sweep_exit(&sweep), GX_EXIT_NO);
    assert_puts(gx_sweep_verdict, "THE BITS DIFFER at batch=8 in 'fc1.w'. ");
    assert_puts(
        gx_sweep_print,
        "bits at batch=8: 'fc1.w' differs first at [3] after 20 steps: eager 1.5, "
        "graph 2.5 (2 of its 9 elements differ)");
}

static void the_worst_failure_is_the_exit_status(void **state)
{
    (void)state;
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep_fail(&sweep, 1, GX_ERR_MODEL, "m.yaml:3:1: a mean over no rows\nhas no value");
    assert_int_equal(gx_sweep_exit(&sweep), GX_EXIT_USAGE);
    assert_puts(gx_sweep_print, "m.yaml:3:1: a mean over no rows has no value");
    sweep_fail(&sweep, 2, GX_ERR_DEVICE_MEMORY, "no room");
    assert_int_equal(gx_sweep_exit(&sweep), GX_EXIT_FAILED);
    assert_puts(gx_sweep_verdict, "; 2 failed; bits are equal at 1.");
    assert_null(gx_sweep_common_failure(&sweep));
    sweep.interrupted = true;
    assert_int_equal(gx_sweep_exit(&sweep), GX_EXIT_INTERRUPTED);
}

static void a_failure_of_every_point_alike_is_one(void **state)
{
    (void)state;
    make("batch=1,8", NULL);
    sweep_fail(&sweep, 0, GX_ERR_MODEL, "there is no dim \"batch\"");
    assert_null(gx_sweep_common_failure(&sweep));
    sweep_fail(&sweep, 1, GX_ERR_MODEL, "there is no dim \"batch\"");
    assert_ptr_equal(gx_sweep_common_failure(&sweep), &sweep.point[0]);
    assert_puts(gx_sweep_verdict, "No size was measured; 2 failed.");
}

static void an_interrupt_leaves_what_was_done(void **state)
{
    (void)state;
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep.interrupted = true;
    assert_puts(gx_sweep_verdict, "interrupted with 1 of 3 sizes measured");
    char *const text = sweep_text(&sweep, gx_sweep_print);
    assert_has(text, "20.0 us");
    assert_null(strstr(text, "64"));
    free(text);
}

/* --- tables, CSV, JSON --- */

static void what_was_not_measured_is_not_zero(void **state)
{
    static const char *const rows[] = {
        "      8       n/a      n/a      n/a          n/a",
        "      8          n/a           n/a"
    };

    (void)state;
    make("batch=1,8", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep_fail(&sweep, 1, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_puts(gx_sweep_print, rows[i]);
    assert_puts(gx_sweep_print, "      1  20 / 12 / 1       50.0 us     40.0 us");
    assert_puts(gx_sweep_put_csv, "\n8,failed,out of memory,n/a,n/a,n/a,n/a,");
}

static void csv_quotes_what_it_must(void **state)
{
    (void)state;
    make("batch=1,8", "hidden=2*batch,4");
    sweep_measure(&sweep, 0, (const int64_t[]){ 1, 2 }, 100, 80, 20);
    sweep_fail(&sweep, 1, GX_ERR_MODEL, "expected a, \"b\" or c");
    assert_puts(gx_sweep_put_csv, "batch,hidden,result,reason,unfused_launches,");
    assert_puts(gx_sweep_put_csv, "\n1,2,done,,20,12,1,0.0001,");
    assert_puts(gx_sweep_put_csv, "\n1,4,failed,\"expected a, \"\"b\"\" or c\",n/a,");
    assert_puts(gx_sweep_put_csv, ",6,equal,0123456789abcdef\n");
}

static size_t count_commas(const char *line, size_t length)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++)
        n += line[i] == ',';
    return n;
}

static void every_row_of_the_csv_has_every_column(void **state)
{
    (void)state;
    make("batch=1,8,64", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep_fail(&sweep, 1, GX_ERR_MEMORY, "out of memory");
    sweep.point[2].begun = sweep.point[2].interrupted = true;
    char *const text = sweep_text(&sweep, gx_sweep_put_csv);
    const size_t titles = count_commas(text, strcspn(text, "\n"));
    size_t n_rows = 0;
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'), n_rows++)
        assert_int_equal(count_commas(at + 1, strcspn(at + 1, "\n")), titles);
    assert_int_equal(n_rows, 3);
    free(text);
}

static void json_has_every_block(void **state)
{
    char *const path = test_path("sweep.json");
    size_t length;

    (void)state;
    make("batch=1,8", NULL);
    sweep_measure(&sweep, 0, (const int64_t[]){ 1 }, 100, 80, 20);
    sweep_fail(&sweep, 1, GX_ERR_DEVICE_MEMORY, "no \"room\"");
    assert_ok(gx_sweep_write_json(&sweep, path, &err), &err);
    char *const text = test_read(path, &length);
    assert_has(text, "\"schema\": \"gexec-sweep/1\"");
    assert_has(text, "\"batch\": 1");
    assert_has(text, "\"status\": \"GX_ERR_DEVICE_MEMORY\"");
    assert_has(text, "\"reason\": \"no \\\"room\\\"\"");
    assert_has(text, "\"pays_back_after_steps\": 6");
    assert_has(text, "\"steady_s\": {");
    /* host, queued, wall, steady and data wait of three ways, two ratios, two clocks. */
    size_t n_raw = 0;
    for (const char *at = text; (at = strstr(at, "\"raw\": [")); at++)
        n_raw++;
    assert_int_equal(n_raw, 19);
    free(text);
    free(path);
}

#define SWEEP_TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SWEEP_TEST(the_points_are_the_product_of_the_lists),
        SWEEP_TEST(a_set_without_a_list_is_no_dim),
        SWEEP_TEST(a_long_text_of_a_point_is_cut),
        SWEEP_TEST(all_faster_is_said_with_its_range),
        SWEEP_TEST(slower_and_unclear_are_counted_apart),
        SWEEP_TEST(bits_that_differ_are_named_and_win),
        SWEEP_TEST(the_worst_failure_is_the_exit_status),
        SWEEP_TEST(a_failure_of_every_point_alike_is_one),
        SWEEP_TEST(an_interrupt_leaves_what_was_done),
        SWEEP_TEST(what_was_not_measured_is_not_zero),
        SWEEP_TEST(csv_quotes_what_it_must),
        SWEEP_TEST(every_row_of_the_csv_has_every_column),
        SWEEP_TEST(json_has_every_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
