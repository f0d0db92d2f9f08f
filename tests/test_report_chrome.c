/* The Chrome trace: whether it is JSON, and holds what viewers ask for. */
#include <stdio.h>
#include <sys/stat.h>

#include "report.h"
#include "support_json.h"
#include "support_trace.h"
#include "support_trace_made.h"

#if GX_HAVE_YAJL
static const char odd[] = "a\"b\\c\t\n\x01 </script> \xF0\x9F\x9A\x80 \xFF\xC0\xAF end";
static const char template_name[] =
    "void at::native::(anonymous namespace)::kernel<4, Functor<float>>(int, float*)";

/* --- reading it back --- */

typedef struct written {
    char *text;
    yajl_val root, events;
    int64_t left_out;
} written;

static written write_report(const gx_report *report, int64_t most)
{
    char *const path = test_path("trace.json");
    written back;
    size_t length;

    assert_ok(gx_report_chrome(report, path, most, &back.left_out, &err), &err);
    back.text = test_read(path, &length);
    assert_int_equal(strlen(back.text), length);
    back.root = json_parse(back.text);
    back.events = json_get(back.root, "traceEvents");
    assert_string_equal(json_text(back.root, "displayTimeUnit"), "ns");
    assert_int_equal(json_integer(json_get(back.root, "otherData"), "records_left_out"),
                     back.left_out);
    free(path);
    return back;
}

static void drop_written(written *back)
{
    yajl_tree_free(back->root);
    free(back->text);
}

static bool is_event(yajl_val event, const char *phase, const char *category)
{
    return strcmp(json_text(event, "ph"), phase) == 0 &&
           (!category || strcmp(json_text(event, "cat"), category) == 0);
}

static size_t count_events(const written *back, const char *phase, const char *category)
{
    size_t n = 0;

    for (size_t i = 0; i < json_count(back->events); i++)
        n += is_event(json_at(back->events, i), phase, category);
    return n;
}

/* The event of that category and name; fails without. */
static yajl_val find_event(const written *back, const char *category, const char *name)
{
    for (size_t i = 0; i < json_count(back->events); i++) {
        const yajl_val event = json_at(back->events, i);

        if (is_event(event, "X", category) && strcmp(json_text(event, "name"), name) == 0)
            return event;
    }
    fail_msg("no %s named '%s'", category, name);
    return NULL;
}

/* --- what every trace has to keep --- */

typedef struct slice {
    int64_t process, thread, start, end;
    const char *category;
} slice;

static int by_place(const void *left, const void *right)
{
    const slice *const a = left;
    const slice *const b = right;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end == b->end ? 0 : a->end > b->end ? -1 : 1;
}

static slice *slices_of(const written *back, size_t *n)
{
    slice *const slices = malloc((json_count(back->events) + 1) * sizeof *slices);

    assert_non_null(slices);
    *n = 0;
    for (size_t i = 0; i < json_count(back->events); i++) {
        const yajl_val event = json_at(back->events, i);

        if (!is_event(event, "X", NULL))
            continue;
        const int64_t start = json_us(event, "ts");
        slices[(*n)++] =
            (slice){ json_integer(event, "pid"), json_integer(event, "tid"), start,
                     start + json_us(event, "dur"), json_text(event, "cat") };
    }
    qsort(slices, *n, sizeof *slices, by_place);
    return slices;
}

/* Slices of a thread lie apart or, on the host alone, one within another. */
static void check_rows(const written *back)
{
    size_t n, depth = 0;
    slice *const slices = slices_of(back, &n);
    const slice **const open = malloc((n + 1) * sizeof(slice *));

    assert_non_null(open);
    for (size_t i = 0; i < n; i++) {
        const slice *const one = &slices[i];
        const bool host = strcmp(one->category, "call") == 0 ||
                          strcmp(one->category, "range") == 0 ||
                          strcmp(one->category, "overhead") == 0;

        assert_true(one->thread > 0 && one->start >= 0 && one->end >= one->start);
        assert_int_not_equal(one->thread, one->process);
        if (i == 0 || slices[i - 1].thread != one->thread)
            depth = 0;
        while (depth > 0 && open[depth - 1]->end <= one->start)
            depth--;
        if (depth > 0)
            assert_true(host && open[depth - 1]->end >= one->end);
        open[depth++] = one;
    }
    free(open);
    free(slices);
}

/* Each arrow has two ends of one name and category, each inside a slice. */
static void check_flows(const written *back, size_t expected)
{
    size_t n_slices, n_starts = 0;
    slice *const slices = slices_of(back, &n_slices);
    const size_t n = json_count(back->events);

    for (size_t i = 0; i < n; i++) {
        const yajl_val event = json_at(back->events, i);
        const bool end = is_event(event, "f", NULL);
        bool enclosed = false;
        size_t n_others = 0;

        if (!end && !is_event(event, "s", NULL))
            continue;
        n_starts += !end;
        assert_true(!end || strcmp(json_text(event, "bp"), "e") == 0);
        for (size_t k = 0; k < n; k++) {
            const yajl_val other = json_at(back->events, k);

            if (!is_event(other, end ? "s" : "f", NULL) ||
                json_integer(other, "id") != json_integer(event, "id"))
                continue;
            n_others++;
            assert_string_equal(json_text(other, "cat"), json_text(event, "cat"));
            assert_string_equal(json_text(other, "name"), json_text(event, "name"));
        }
        assert_int_equal(n_others, 1);
        for (size_t k = 0; k < n_slices && !enclosed; k++)
            enclosed = slices[k].process == json_integer(event, "pid") &&
                       slices[k].thread == json_integer(event, "tid") &&
                       slices[k].start <= json_us(event, "ts") &&
                       slices[k].end >= json_us(event, "ts");
        assert_true(enclosed);
    }
    assert_int_equal(n_starts, expected);
    free(slices);
}

/* The counts of what is running begin at 1 or more, and end at 0. */
static void check_running(const written *back)
{
    int64_t process = -1, time = -1, running = 0;

    for (size_t i = 0; i < json_count(back->events); i++) {
        const yajl_val event = json_at(back->events, i);

        if (!is_event(event, "C", NULL))
            continue;
        if (json_integer(event, "pid") != process) {
            assert_int_equal(running, 0);
            process = json_integer(event, "pid");
            time = -1;
        }
        assert_true(json_us(event, "ts") > time);
        time = json_us(event, "ts");
        running = json_integer(json_get(event, "args"), "running");
        assert_true(running >= 0);
        assert_int_equal(json_get(event, "args")->u.object.len, 1);
    }
    assert_int_equal(running, 0);
}

static gx_report report_of(gx_trace *trace, gx_trace_figures *figures)
{
    return (gx_report){ .title = "made",
                        .side = { { "side", trace, figures } },
                        .n_sides = 1 };
}

/* --- tests --- */

static void names_come_back(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_activity activity = kernel(1000, 2000, 1);
    gx_trace_figures *figures;
    gx_report report;
    written back;

    activity.name = text(trace, template_name);
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    add_call(trace, "cudaLaunchKernel", 500, 600, 1);
    add_range(trace, GX_TRACE_PUSH_POP, odd, 400, 700, 10);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    report.title = odd;
    back = write_report(&report, 0);
    (void)find_event(&back, "kernel", template_name);
    /* A trace has blanks for control characters; U+FFFD stands for each invalid byte. */
    (void)find_event(
        &back, "range",
        "a\"b\\c    </script> \xF0\x9F\x9A\x80 \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD end");
    assert_string_equal(json_text(json_get(back.root, "otherData"), "title"),
                        "a\"b\\c\t\n\x01 </script> \xF0\x9F\x9A\x80 "
                        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD end");
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void times_are_exact_and_start_at_0(void **state)
{
    gx_trace *const trace = *state;
    const int64_t zero = INT64_C(1700000000123456789);
    gx_trace_figures *figures;
    gx_report report;
    written back;
    yajl_val event;

    add_call(trace, "cudaLaunchKernel", zero, zero + 5, 1);
    add_kernel(trace, zero + 1001, zero + 1001 + INT64_C(9007199254740993), 1);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    event = find_event(&back, "kernel", "");
    assert_string_equal(YAJL_GET_NUMBER(json_get(event, "ts")), "1.001");
    assert_string_equal(YAJL_GET_NUMBER(json_get(event, "dur")), "9007199254740.993");
    assert_int_equal(json_us(find_event(&back, "call", "cudaLaunchKernel"), "ts"), 0);
    assert_string_equal(json_text(json_get(back.root, "otherData"), "side_1_zero_is_ns"),
                        "1700000000123456789");
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void nothing_overlaps_in_a_row(void **state)
{
    gx_trace *const trace = *state;
    test_random random = test_random_start(test_seed());
    gx_trace_figures *figures;
    gx_report report;
    written back;

    for (int64_t i = 1; i <= 300; i++) {
        const int64_t start = test_random_int(&random, 0, 3000);

        add_call(trace, i % 5 ? "cudaLaunchKernel" : "cudaGraphLaunch", start,
                 start + test_random_int(&random, 0, 60), i);
        add_range(trace, i % 2 ? GX_TRACE_PUSH_POP : GX_TRACE_START_END, "r", start,
                  i % 50 ? start + test_random_int(&random, 0, 900) : GX_TRACE_OPEN, 10);
        for (int64_t k = 0; k <= i % 3; k++) {
            const int64_t begin = start + test_random_int(&random, 0, 90);

            add_kernel(trace, begin, begin + test_random_int(&random, 0, 120), i);
        }
    }
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    assert_int_equal(count_events(&back, "X", "call"), 300);
    assert_int_equal(count_events(&back, "X", "range"), 300);
    assert_int_equal(count_events(&back, "X", "kernel"), 600);
    assert_int_equal(count_events(&back, "X", "replay"), 60);
    check_rows(&back);
    check_flows(&back, 300);
    check_running(&back);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void more_rows_than_lanes_lose_nothing(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_report report;
    written back;

    for (int64_t i = 1; i <= 200; i++)
        add_kernel(trace, i, 1000 + i, GX_TRACE_NONE);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    assert_int_equal(count_events(&back, "X", "kernel"), 200);
    check_rows(&back);
    check_running(&back);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void a_replay_has_one_slice_and_one_arrow(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_report report;
    written back;
    yajl_val event;

    add_call(trace, "cudaGraphLaunch", 0, 50, 1);
    add_node_kernel(trace, 100, 200, 1, 7);
    add_node_kernel(trace, 150, 400, 1, 8);
    add_node_kernel(trace, 450, 500, 1, 9);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    assert_int_equal(count_events(&back, "X", "replay"), 1);
    event = find_event(&back, "replay", "replay");
    assert_int_equal(json_us(event, "ts"), 100);
    assert_int_equal(json_us(event, "dur"), 400);
    assert_int_equal(json_us(find_event(&back, "gap", "device"), "dur"), 50);
    check_rows(&back);
    check_flows(&back, 1);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

/* Sums of gaps, by class name, against the figures; of a trace that was recorded. */
static void gaps_add_up_to_the_idle_time(void **state)
{
    static const char *const names[] = { "torch_mnist_mlp_tf32_eager.sqlite.gz",
                                         "torch_mnist_mlp_tf32_graph.sqlite.gz" };
    gx_trace_file file[2];
    gx_trace_figures *figures[2];
    gx_report report = { .title = "two", .n_sides = 2 };
    int64_t sum = 0, idle = 0;
    written back;

    (void)state;
#if !GX_HAVE_SQLITE
    skip();
#endif
    for (int i = 0; i < 2; i++) {
        trace_load(OWN_TRACES, names[i], &file[i]);
        figures[i] = trace_figures(&file[i]);
        report.side[i] =
            (gx_report_side){ i ? "graph" : "eager", file[i].trace, figures[i] };
        idle += figures[i]->device[0].idle;
    }
    back = write_report(&report, 0);
    for (size_t i = 0; i < json_count(back.events); i++) {
        const yajl_val event = json_at(back.events, i);

        if (is_event(event, "X", "gap"))
            sum += json_us(event, "dur");
    }
    assert_int_equal(sum, idle);
    assert_int_equal(count_events(&back, "X", "gap"),
                     figures[0]->device[0].n_gaps + figures[1]->device[0].n_gaps);
    assert_int_equal(count_events(&back, "X", "replay"), 6);
    assert_has(back.text, "\"GPU 0 eager\"");
    assert_has(back.text, "\"GPU 0 graph\"");
    assert_has(back.text, "\"host eager\"");
    check_rows(&back);
    check_running(&back);
    check_flows(&back, 156 + 6);
    drop_written(&back);
    for (int i = 0; i < 2; i++) {
        gx_trace_figures_free(figures[i]);
        gx_trace_file_free(&file[i]);
    }
}

static void add_overhead(gx_trace *trace, const char *name, int64_t start, int64_t end,
                         int64_t thread, int64_t device)
{
    const gx_trace_overhead overhead = { .name = text(trace, name),
                                         .start = start,
                                         .end = end,
                                         .inside = start < 1000 ? GX_TRACE_NONE : 0,
                                         .process = 1,
                                         .thread = thread,
                                         .device = device,
                                         .correlation = device ? GX_TRACE_NONE : 77 };

    assert_ok(gx_trace_add_overhead(trace, &overhead, &err), &err);
}

static int64_t thread_named(const written *back, const char *name)
{
    for (size_t i = 0; i < json_count(back->events); i++) {
        const yajl_val event = json_at(back->events, i);

        if (is_event(event, "M", NULL) &&
            strcmp(json_text(event, "name"), "thread_name") == 0 &&
            strcmp(json_text(json_get(event, "args"), "name"), name) == 0)
            return json_integer(event, "tid");
    }
    fail_msg("no thread '%s'", name);
    return -1;
}

static void overhead_has_rows_of_its_own(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_report report;
    written back;
    yajl_val event;

    add_call(trace, "cudaLaunchKernel", 1000, 1010, 1);
    add_kernel(trace, 1200, 1300, 1);
    add_overhead(trace, "lazy function loading", 400, 900, 10, GX_TRACE_NONE);
    add_overhead(trace, "overhead of kind 589824", 1002, 1004, 10, GX_TRACE_NONE);
    add_overhead(trace, "resource", 1003, 2000, 10, GX_TRACE_NONE); /* overlaps it */
    add_overhead(trace, "buffer flush", 1500, 1600, GX_TRACE_NONE, 0);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    assert_int_equal(count_events(&back, "X", "overhead"), 4);
    event = find_event(&back, "overhead", "lazy function loading");
    assert_int_equal(json_us(event, "ts"), 0); /* the first of all */
    assert_int_equal(json_us(event, "dur"), 500);
    assert_int_equal(json_integer(event, "tid"),
                     thread_named(&back, "overhead, thread 10"));
    assert_true(YAJL_IS_FALSE(json_get(json_get(event, "args"), "in_window")));
    event = find_event(&back, "overhead", "overhead of kind 589824");
    assert_int_equal(json_us(event, "ts"), 602);
    assert_true(YAJL_IS_TRUE(json_get(json_get(event, "args"), "in_window")));
    event = find_event(&back, "overhead", "resource");
    assert_int_equal(json_integer(event, "tid"),
                     thread_named(&back, "overhead, thread 10, lane 2"));
    event = find_event(&back, "overhead", "buffer flush");
    assert_int_equal(json_integer(event, "tid"), thread_named(&back, "overhead"));
    assert_int_equal(json_integer(json_get(event, "args"), "device"), 0);
    assert_int_equal(json_integer(json_get(event, "args"), "correlation"), 77);
    check_rows(&back);
    drop_written(&back);
    back = write_report(&report, 3);
    assert_int_equal((int64_t)count_events(&back, "X", "overhead") +
                         (int64_t)count_events(&back, "X", "kernel") +
                         (int64_t)count_events(&back, "X", "call") + back.left_out,
                     6);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void a_copy_between_devices_says_which(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_activity copy = kernel(100, 200, GX_TRACE_NONE);
    gx_trace_figures *figures;
    gx_report report;
    written back;
    yajl_val args;

    copy.kind = GX_TRACE_COPY;
    copy.name = text(trace, "peer");
    copy.source_device = 2;
    copy.target_device = 0;
    assert_ok(gx_trace_add_activity(trace, &copy, &err), &err);
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 0);
    args = json_get(find_event(&back, "copy", "peer"), "args");
    assert_int_equal(json_integer(args, "source_device"), 2);
    assert_int_equal(json_integer(args, "target_device"), 0);
    assert_int_equal(figures->device[0].busy, 100);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void what_is_too_much_is_left_out_and_counted(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *figures;
    gx_report report;
    written back;
    size_t n_records;

    for (int64_t i = 1; i <= 100; i++) {
        add_call(trace, "cudaLaunchKernel", 1000 * i, 1000 * i + 10, i);
        add_kernel(trace, 1000 * i + 200, 1000 * i + 300, i);
        add_range(trace, GX_TRACE_PUSH_POP, "r", 1000 * i, 1000 * i + 20, 10);
    }
    figures = finish(trace, NULL);
    report = report_of(trace, figures);
    back = write_report(&report, 200);
    n_records = count_events(&back, "X", "kernel") + count_events(&back, "X", "call") +
                count_events(&back, "X", "range") + count_events(&back, "X", "gap");
    assert_true(back.left_out > 0 && n_records > 60);
    assert_int_equal((int64_t)n_records + back.left_out, 100 * 3 + 99);
    assert_true(json_count(back.events) - count_events(&back, "M", NULL) <= 200);
    check_rows(&back);
    check_flows(&back, count_events(&back, "X", "kernel"));
    check_running(&back);
    drop_written(&back);
    back = write_report(&report, 1);
    assert_int_equal(back.left_out, 100 * 3 + 99);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void an_empty_trace_is_json_too(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *const figures = finish(trace, NULL);
    gx_report report = report_of(trace, figures);
    written back = write_report(&report, 0);

    assert_int_equal(json_count(back.events), 0);
    drop_written(&back);
    gx_trace_figures_free(figures);
}

static void a_file_that_cannot_be_written_leaves_nothing(void **state)
{
    gx_trace *const trace = *state;
    gx_trace_figures *const figures = finish(trace, NULL);
    gx_report report = report_of(trace, figures);
    char *const folder = test_path("taken.json");
    char part[512];
    struct stat found;
    int64_t left_out;

    assert_fails(gx_report_chrome(&report, "/no/such/folder/a.json", 0, &left_out, &err),
                 GX_ERR_WRITE, &err, "/no/such/folder/a.json");
    if (stat("/dev/full", &found) == 0)
        assert_fails(gx_report_chrome(&report, "/dev/full", 0, &left_out, &err),
                     GX_ERR_WRITE, &err, "/dev/full");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_fails(gx_report_chrome(&report, folder, 0, &left_out, &err), GX_ERR_WRITE,
                 &err, folder);
    snprintf(part, sizeof part, "%s.part", folder);
    assert_int_not_equal(stat(part, &found), 0);
    gx_error_clear(&err);
    gx_trace_figures_free(figures);
    free(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names_come_back),
        TEST(times_are_exact_and_start_at_0),
        TEST(nothing_overlaps_in_a_row),
        TEST(more_rows_than_lanes_lose_nothing),
        TEST(a_replay_has_one_slice_and_one_arrow),
        TEST(gaps_add_up_to_the_idle_time),
        TEST(overhead_has_rows_of_its_own),
        TEST(a_copy_between_devices_says_which),
        TEST(what_is_too_much_is_left_out_and_counted),
        TEST(an_empty_trace_is_json_too),
        TEST(a_file_that_cannot_be_written_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return TEST_SKIPPED;
}
#endif
