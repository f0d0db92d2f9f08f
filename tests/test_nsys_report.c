/* The words of `gexec nsys`, of traces built in code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nsys_report.h"
#include "support.h"

static gx_error err;

/* Kernels of 10 ns, 100 ns apart, each with a call of its own where `calls`. */
static void make(gx_nsys_report *report, int64_t n_kernels, bool calls, int64_t length)
{
    gx_trace_file *const file = &report->file;
    uint32_t name, call_name;

    assert_ok(gx_trace_file_start(file, "here.sqlite", GX_TRACE_NSYS, &err), &err);
    assert_ok(gx_trace_text(file->trace, "kernel", 6, &name, &err), &err);
    assert_ok(gx_trace_text(file->trace, "cudaLaunchKernel", 16, &call_name, &err), &err);
    for (int64_t i = 1; i <= n_kernels; i++) {
        gx_trace_activity kernel = gx_trace_activity_none();
        const gx_trace_call call = {
            .start = 100 * i - 5, .end = 100 * i + 5, .correlation = i, .name = call_name
        };

        kernel.start = 100 * i;
        kernel.end = 100 * i + length;
        kernel.name = name;
        kernel.correlation = i;
        assert_ok(gx_trace_add_activity(file->trace, &kernel, &err), &err);
        if (calls)
            assert_ok(gx_trace_add_call(file->trace, &call, &err), &err);
    }
    assert_ok(gx_trace_file_finish(file, &err), &err);
    assert_ok(gx_trace_figures_create(file->trace, NULL, &report->figures, &err), &err);
}

static void drop(gx_nsys_report *report)
{
    gx_trace_figures_free(report->figures);
    gx_trace_file_free(&report->file);
}

/* What is printed of one, or of two where `after` is there; the caller frees. */
static char *print(const gx_nsys_report *before, const gx_nsys_report *after)
{
    const gx_args args = { .top = 5 };
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    assert_non_null(out);
    if (after)
        gx_nsys_print_pair(before, after, out);
    else
        gx_nsys_print(before, &args, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void launches_are_not_known_without_calls(void **state)
{
    gx_nsys_report with, without;
    char *text;

    (void)state;
    make(&with, 3, true, 10);
    make(&without, 3, false, 10);
    text = print(&without, NULL);
    assert_has(text, "launch calls: n/a");
    assert_has(text, "ended with work of which the trace has no launch call");
    free(text);
    text = print(&with, NULL);
    assert_has(text, "100.0% of its idle time waited for the host");
    assert_has(text, "  kernel               3       30                  0");
    free(text);
    text = print(&without, &with);
    assert_has(text, "n/a launches became 3");
    free(text);
    drop(&with);
    drop(&without);
}

static void two_that_did_other_work_are_warned_of(void **state)
{
    gx_nsys_report three, four, slow;
    char *text;

    (void)state;
    make(&three, 3, true, 10);
    make(&four, 4, true, 10);
    make(&slow, 3, true, 11);
    text = print(&three, &four);
    assert_has(text, "warning: 3 kernels before, 4 after");
    free(text);
    text = print(&three, &slow);
    assert_has(text, "warning: busy time differs by +10.0%");
    assert_null(strstr(text, "kernels before"));
    free(text);
    text = print(&three, &three);
    assert_null(strstr(text, "warning"));
    free(text);
    drop(&three);
    drop(&four);
    drop(&slow);
}

static void nothing_is_said_as_nothing(void **state)
{
    gx_nsys_report empty;
    char *text;

    (void)state;
    make(&empty, 0, false, 0);
    text = print(&empty, NULL);
    assert_has(text, "here.sqlite: 0 kernels");
    assert_has(text, "no NVTX data");
    free(text);
    text = print(&empty, &empty);
    assert_has(text, "kernels");
    free(text);
    drop(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_are_not_known_without_calls),
        cmocka_unit_test(two_that_did_other_work_are_warned_of),
        cmocka_unit_test(nothing_is_said_as_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
