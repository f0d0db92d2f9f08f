/* The HTML report: its data as JSON, what a page without a profile leaves out, and pages
 * that a browser can be shown (GX_REPORT_PAGES=FOLDER keeps them). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_json.h"
#include "support_profile.h"
#include "support_trace_made.h"

#if GX_HAVE_YAJL
/* Where a page is written: kept, or in this test's folder. The caller frees. */
static char *page_path(const char *name)
{
    const char *const folder = getenv("GX_REPORT_PAGES");
    char path[1024];

    if (!folder)
        return test_path(name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return strdup(path);
}

static const char odd[] =
    "</script><!-- a\"b\\c \xF0\x9F\x9A\x80 \xFF kernel<float>(int)";
static const char odd_back[] =
    "</script><!-- a\"b\\c \xF0\x9F\x9A\x80 \xEF\xBF\xBD kernel<float>(int)";

typedef struct written {
    char *page, *json;
    yajl_val root;
} written;

static written write_page(const gx_report *report, const char *name)
{
    static const char opens[] = "<script id=\"data\" type=\"application/json\">";
    char *const path = page_path(name);
    written back;
    size_t length;
    char *start, *end;

    assert_ok(gx_report_html(report, path, &err), &err);
    back.page = test_read(path, &length);
    assert_int_equal(strlen(back.page), length);
    start = strstr(back.page, opens);
    assert_non_null(start);
    start += strlen(opens);
    /* Where a browser ends the element, the data end. */
    end = strstr(start, "</");
    assert_non_null(end);
    assert_memory_equal(end, "</script>", 9);
    back.json = strndup(start, (size_t)(end - start));
    assert_null(strchr(back.json, '<'));
    back.root = json_parse(back.json);
    free(path);
    return back;
}

static void drop_written(written *back)
{
    yajl_tree_free(back->root);
    free(back->page);
    free(back->json);
}

static yajl_val device_of(const written *back, size_t side)
{
    return json_at(json_get(json_at(json_get(back->root, "sides"), side), "devices"), 0);
}

static int64_t sum_of(yajl_val array)
{
    int64_t sum = 0;

    for (size_t i = 0; i < json_count(array); i++)
        sum += YAJL_GET_INTEGER(json_at(array, i));
    return sum;
}

/* A kernel of this name after its call, and another 100 ns later. */
static gx_report make_two(gx_trace *trace, const char *name, gx_trace_figures **figures)
{
    gx_trace_activity activity = kernel(1000, 1500, 1);

    activity.name = text(trace, name);
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    add_call(trace, "cudaLaunchKernel", 900, 950, 1);
    add_kernel(trace, 1600, 1700, 2);
    add_call(trace, "cudaLaunchKernel", 1550, 1560, 2);
    *figures = finish(trace, NULL);
    return (
        gx_report){ .title = odd, .side = { { odd, trace, *figures } }, .n_sides = 1 };
}

static void names_come_back(void **state)
{
    gx_trace_figures *figures;
    const gx_report report = make_two(*state, odd, &figures);
    written back = write_page(&report, "names.html");
    const yajl_val ops = json_get(back.root, "ops");

    assert_string_equal(json_text(back.root, "title"), odd_back);
    assert_int_equal(json_count(ops), 2);
    assert_string_equal(json_text(json_at(ops, 0), "name"), odd_back);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void times_and_gaps_are_those_of_the_trace(void **state)
{
    gx_trace_figures *figures;
    const gx_report report = make_two(*state, "k", &figures);
    written back = write_page(&report, "times.html");
    const yajl_val device = device_of(&back, 0);
    const yajl_val row = json_at(json_get(device, "rows"), 0);
    const yajl_val gap = json_get(device, "gap");

    /* From the first call on; each start counts from the one before. */
    assert_int_equal(YAJL_GET_INTEGER(json_at(json_get(row, "start"), 0)), 100);
    assert_int_equal(YAJL_GET_INTEGER(json_at(json_get(row, "start"), 1)), 600);
    assert_int_equal(sum_of(json_get(row, "ns")), 600);
    assert_int_equal(sum_of(json_get(gap, "ns")), 100);
    assert_int_equal(YAJL_GET_INTEGER(json_at(json_get(gap, "start"), 0)), 600);
    assert_int_equal(YAJL_GET_INTEGER(json_at(json_get(gap, "class"), 0)), GX_GAP_HOST);
    assert_int_equal(YAJL_GET_INTEGER(json_at(json_get(gap, "launch"), 0)), 50);
    assert_int_equal(json_integer(device, "idle"), 100);
    assert_int_equal(json_integer(back.root, "left_out"), 0);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

/* A call, a kernel that is not counted, and one inside a range 'steps' that is. */
static gx_trace_figures *make_late(gx_trace *trace, int64_t start)
{
    static const gx_trace_options options = { .within = "steps" };

    add_call(trace, "cudaLaunchKernel", 100, 110, 1);
    add_kernel(trace, 120, 130, 1);
    add_range(trace, GX_TRACE_PUSH_POP, "steps", start - 50, start + 50, 10);
    add_call(trace, "cudaLaunchKernel", start - 20, start - 10, 2);
    add_kernel(trace, start, start + 30, 2);
    return finish(trace, &options);
}

static void sides_are_laid_together_where_they_are_counted(void **state)
{
    gx_trace *const second = gx_trace_create();
    gx_trace_figures *figures[2];
    written back;

    assert_non_null(second);
    figures[0] = make_late(*state, 5000);
    figures[1] = make_late(second, 900);
    const gx_report report = { .title = "late",
                               .side = { { "late", *state, figures[0] },
                                         { "early", second, figures[1] } },
                               .n_sides = 2 };
    back = write_page(&report, "late.html");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(json_integer(device_of(&back, i), "start"), 5000 - 100);
    drop_written(&back);
    for (size_t i = 0; i < 2; i++)
        gx_trace_figures_free(figures[i]);
    gx_trace_free(second);
}

static void a_page_asks_for_nothing_from_outside(void **state)
{
    static const char *const words[] = { "src=",   "url(",     "@import", "fetch(",
                                         "https:", "href=\"h", "XMLHttp", "{{" };
    gx_trace_figures *figures;
    const gx_report report = make_two(*state, "k", &figures);
    written back = write_page(&report, "alone.html");

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(back.page, words[i]))
            fail_msg("the page holds '%s'", words[i]);
    assert_has(back.page, "default-src 'none'");
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void traces_alone_have_no_profile(void **state)
{
    gx_trace_figures *figures;
    const gx_report report = make_two(*state, "k", &figures);
    written back = write_page(&report, "alone.html");

    assert_null(json_get(back.root, "profile"));
    assert_int_equal(json_count(json_get(back.root, "verdict")), 1);
    assert_has(
        YAJL_GET_STRING(json_at(json_get(back.root, "verdict"), 0)),
        "is busy for 0.60 us of 0.70 us (85.7%); 100.0% of its idle time waits for "
        "the host");
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void a_trace_without_work_makes_a_page(void **state)
{
    gx_trace_figures *const figures = finish(*state, NULL);
    const gx_report report = { .title = "none",
                               .side = { { "none", *state, figures } },
                               .n_sides = 1 };
    written back = write_page(&report, "empty.html");

    assert_int_equal(json_count(json_get(back.root, "ops")), 0);
    assert_has(YAJL_GET_STRING(json_at(json_get(back.root, "verdict"), 0)),
               "shows no work of a GPU");
    drop_written(&back);
    gx_trace_figures_free(figures);
}

/* Numbers in the array behind the first `key`. */
static int64_t count_numbers(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    int64_t n = 1;

    assert_non_null(at);
    at += strlen(key);
    for (; *at != ']'; at++)
        n += *at == ',';
    return n;
}

/* A tree of so much JSON takes long, and a browser reads it elsewhere. */
static void too_many_records_are_left_out_and_counted(void **state)
{
    gx_trace *const trace = *state;
    const int64_t n = 400000;
    char *const path = page_path("many.html");
    gx_trace_figures *figures;
    gx_report report;
    char *page, expected[64];
    size_t length;
    int64_t kept, n_gaps;

    for (int64_t i = 0; i < n; i++)
        add_kernel(trace, 10 * i, 10 * i + 4, GX_TRACE_NONE);
    figures = finish(trace, NULL);
    report = (gx_report){ .title = "many",
                          .side = { { "many", trace, figures } },
                          .n_sides = 1 };
    assert_ok(gx_report_html(&report, path, &err), &err);
    page = test_read(path, &length);
    n_gaps = count_numbers(page, "\"gap\":{\"start\":[");
    kept = count_numbers(page, "\"label\":\"stream 7\",\"start\":[");
    assert_int_equal(kept + n_gaps, 599999);
    snprintf(expected, sizeof expected, "\"left_out\":%lld,",
             (long long)(2 * n - 1 - kept - n_gaps));
    assert_has(page, expected);
    assert_has(page, "\"activities\":400000");
    free(page);
    free(path);
    gx_trace_figures_free(figures);
}

static void a_profile_tells_everything(void **state)
{
    made_profile made;
    written back;
    yajl_val profile, pass;
    int64_t idle = 0;

    (void)state;
    profile_make(&made, 12, true);
    back = write_page(&made.report, "profile.html");
    profile = json_get(back.root, "profile");
    assert_non_null(profile);
    assert_has(YAJL_GET_STRING(json_at(json_get(back.root, "verdict"), 0)),
               "The graph is 2.42 times as fast as eager launches");
    assert_int_equal(json_count(json_get(back.root, "ops")), made.profile.pass[0].n_ops);
    assert_int_equal(json_count(json_get(profile, "ledger")), 11);
    assert_int_equal(json_integer(profile, "pays_after"), 15);
    assert_int_equal(json_count(json_get(profile, "patterns")), 2);
    pass = json_at(json_get(profile, "passes"), 1);
    assert_string_equal(json_text(pass, "mode"), "graph");
    for (size_t i = 0; i < made.profile.pass[1].n_steps; i++)
        idle += made.profile.pass[1].step[i].idle;
    assert_int_equal(
        YAJL_GET_INTEGER(json_at(json_at(json_get(pass, "gaps"), GX_GAP_DEVICE), 1)),
        idle);
    assert_int_equal(
        json_count(json_get(json_at(json_get(back.root, "sides"), 1), "steps")), 12);
    drop_written(&back);
    profile_drop(&made);
}

/* The page does not draw it, so that nothing moves for it. */
static void overhead_does_not_move_the_rows(void **state)
{
    gx_trace *const trace = *state;
    const gx_trace_overhead early = { .name = text(trace, "buffer flush"),
                                      .start = 400,
                                      .end = 9000,
                                      .inside = GX_TRACE_NONE };
    char *const path = page_path("moved.html");
    gx_trace_figures *figures;
    gx_report report;
    char *page;
    size_t length;

    add_kernel(trace, 1000, 1010, GX_TRACE_NONE);
    assert_ok(gx_trace_add_overhead(trace, &early, &err), &err);
    figures = finish(trace, NULL);
    report = (gx_report){ .title = "moved",
                          .side = { { "moved", trace, figures } },
                          .n_sides = 1 };
    assert_ok(gx_report_html(&report, path, &err), &err);
    page = test_read(path, &length);
    assert_has(page, "\"label\":\"stream 7\",\"start\":[0]");
    free(page);
    free(path);
    gx_trace_figures_free(figures);
}

/* Rows of a name and four numbers. */
static void check_overhead(yajl_val row, const char *name, const int64_t *numbers)
{
    assert_string_equal(YAJL_GET_STRING(json_at(row, 0)), name);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(YAJL_GET_INTEGER(json_at(row, 1 + i)), numbers[i]);
}

static void overhead_is_told_by_kind(void **state)
{
    static const int64_t all[4] = { 1, 30, 2, 120 }, number[4] = { 1, 30, 1, 70 },
                         flush[4] = { 0, 0, 1, 50 };
    gx_profile_overhead kinds[] = {
        { .name = "overhead of kind 9", .inside = { 1, 30 }, .before = { 1, 70 } },
        { .name = "buffer flush", .before = { 1, 50 } },
    };
    made_profile made;
    written back;
    yajl_val passes, rows;

    (void)state;
    profile_make(&made, 3, true);
    made.profile.pass[1].overhead = kinds;
    made.profile.pass[1].n_overheads = ARRAY_SIZE(kinds);
    gx_trace_expect_overhead(made.profile.pass[1].trace);
    back = write_page(&made.report, "overhead.html");
    passes = json_get(json_get(back.root, "profile"), "passes");
    assert_true(YAJL_IS_NULL(json_get(json_at(passes, 0), "overhead")));
    rows = json_get(json_at(passes, 1), "overhead");
    assert_int_equal(json_count(rows), 3);
    check_overhead(json_at(rows, 0), "", all);
    check_overhead(json_at(rows, 1), "overhead of kind 9", number);
    check_overhead(json_at(rows, 2), "buffer flush", flush);
    drop_written(&back);
    profile_drop(&made);
}

static void what_was_not_measured_is_null(void **state)
{
    made_profile made;
    written back;
    yajl_val profile, op;

    (void)state;
    profile_make(&made, 3, false);
    /* Only the eager pass has a trace. */
    made.report.n_sides = 1;
    snprintf(made.profile.pass[1].missing, sizeof made.profile.pass[1].missing,
             "the process was killed");
    back = write_page(&made.report, "lacking.html");
    profile = json_get(back.root, "profile");
    assert_true(YAJL_IS_NULL(json_get(profile, "ceilings")));
    op = json_at(json_get(json_at(json_get(back.root, "ops"), 0), "sides"), 0);
    assert_true(YAJL_IS_NULL(json_get(op, "of_floor")));
    assert_true(YAJL_IS_NULL(json_get(op, "bound")));
    assert_string_equal(json_text(json_at(json_get(profile, "passes"), 1), "missing"),
                        "the process was killed");
    drop_written(&back);
    profile_drop(&made);
}

static void a_file_that_cannot_be_written_is_an_error(void **state)
{
    gx_trace_figures *figures;
    const gx_report report = make_two(*state, "k", &figures);

    assert_fails(gx_report_html(&report, "/no/such/folder/a.html", &err), GX_ERR_WRITE,
                 &err, "/no/such/folder/a.html");
    gx_error_clear(&err);
    gx_trace_figures_free(figures);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names_come_back),
        TEST(times_and_gaps_are_those_of_the_trace),
        TEST(sides_are_laid_together_where_they_are_counted),
        TEST(a_page_asks_for_nothing_from_outside),
        TEST(traces_alone_have_no_profile),
        TEST(a_trace_without_work_makes_a_page),
        TEST(too_many_records_are_left_out_and_counted),
        cmocka_unit_test(a_profile_tells_everything),
        cmocka_unit_test(overhead_is_told_by_kind),
        TEST(overhead_does_not_move_the_rows),
        cmocka_unit_test(what_was_not_measured_is_null),
        TEST(a_file_that_cannot_be_written_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return TEST_SKIPPED;
}
#endif
