/* Kineto traces: what is known of real ones, and ones written here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_trace.h"

#if !GX_HAVE_YAJL

int main(void)
{
    printf("skipped: this build has no YAJL\n");
    return TEST_SKIPPED;
}

#else

static gx_error err;

#if GX_HAVE_ZLIB

/* Torch's own traces, by the same definitions. */
static const trace_truth own[] = {
    { "kineto_mnist_mlp_tf32_eager.json.gz",
      0,
      156,
      25607988,
      529096,
      25078892,
      155,
      { 4593172, 805711, 741229, 668300, 633612 },
      7,
      156,
      92546,
      { { 142, 24957034 }, { 13, 121858 }, { 0, 0 }, { 0, 0 } } },
    { "kineto_mnist_mlp_tf32_graph.json.gz",
      0,
      156,
      640942,
      528656,
      112286,
      155,
      { 77282, 5632, 5632, 5631, 5537 },
      7,
      156,
      65,
      { { 1, 77282 }, { 0, 0 }, { 154, 35004 }, { 0, 0 } } },
};

static const trace_truth others[] = {
    { "hta-a100-rank0-graphs.json.gz",
      0,
      7747,
      1231461000,
      438424000,
      793037000,
      7075,
      { 64652000, 64325000, 64235000, 63470000, 63364000 },
      7,
      5705,
      4000,
      { { 99, 13801000 }, { 16, 345000 }, { 6268, 687099000 }, { 692, 91792000 } } },
    { "tracelens-bert-small-eager-h100.json.gz",
      0,
      61,
      3907825,
      309437,
      3598388,
      60,
      { 247551, 218367, 153855, 128704, 126432 },
      7,
      60,
      50528,
      { { 60, 3598388 }, { 0, 0 }, { 0, 0 }, { 0, 0 } } },
    { "tracelens-vllm-decode-mi.json.gz",
      0,
      434,
      10743181,
      10717708,
      25473,
      433,
      { 11681, 10081, 3281, 1, 1 },
      0,
      425,
      1,
      { { 0, 0 }, { 0, 0 }, { 433, 25473 }, { 0, 0 } } },
};

static void own_traces_have_the_figures_that_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        trace_check(OWN_TRACES, &own[i]);
}

static void other_traces_have_the_figures_that_are_known(void **state)
{
    (void)state;
    trace_skip_unless_shared();
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        trace_check(OTHER_TRACES "/kineto", &others[i]);
}

static void graph_launches_and_what_they_replay_are_known(void **state)
{
    static const struct {
        const char *folder, *file;
        int64_t launches, replayed, kernels;
    } cases[] = {
        { OWN_TRACES, "kineto_mnist_mlp_tf32_graph.json.gz", 6, 156, 156 },
        { OTHER_TRACES "/kineto", "hta-a100-rank0-graphs.json.gz", 70, 345, 6080 },
        { OTHER_TRACES "/kineto", "tracelens-vllm-decode-mi.json.gz", 1, 421, 425 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_trace_file file;
        gx_trace_figures *figures;

        if (i == 1)
            trace_skip_unless_shared();
        trace_load(cases[i].folder, cases[i].file, &file);
        figures = trace_figures(&file);
        assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, cases[i].launches);
        assert_int_equal(figures->n_replayed, cases[i].replayed);
        assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, cases[i].kernels);
        gx_trace_figures_free(figures);
        gx_trace_file_free(&file);
    }
}

/* Both profilers saw the same program: kernels are the same to within their own rounding.
 */
static void both_readers_agree_on_one_program(void **state)
{
    gx_trace_file nsys, kineto;
    gx_trace_figures *a, *b;

    (void)state;
#if !GX_HAVE_SQLITE
    skip();
#endif
    trace_load(OWN_TRACES, "torch_mnist_mlp_tf32_eager.sqlite.gz", &nsys);
    trace_load(OWN_TRACES, "kineto_mnist_mlp_tf32_eager.json.gz", &kineto);
    a = trace_figures(&nsys);
    b = trace_figures(&kineto);
    assert_int_equal(a->kind[GX_TRACE_KERNEL].n, b->kind[GX_TRACE_KERNEL].n);
    assert_int_equal(a->calls[GX_TRACE_CALL_KERNEL].n, b->calls[GX_TRACE_CALL_KERNEL].n);
    assert_int_equal(a->n_ops, b->n_ops);
    gx_trace_figures_free(a);
    gx_trace_figures_free(b);
    gx_trace_file_free(&nsys);
    gx_trace_file_free(&kineto);
}

static void a_gzip_that_was_cut_is_told(void **state)
{
    gx_trace_file file;
    size_t n;
    char *bytes = test_read(OWN_TRACES "/kineto_mnist_mlp_tf32_graph.json.gz", &n);
    char *path = test_write("cut.json.gz", bytes, n / 2);

    (void)state;
    assert_fails(gx_trace_file_read(path, &file, &err), GX_ERR_DATA, &err, "gzip");
    assert_null(strstr(strstr(err.message, path) + 1, path)); /* named once */
    gx_trace_file_free(&file);
    free(path);
    free(bytes);
}

#endif

/* --- traces written here --- */

static void read_text(const char *json, gx_trace_file *file, gx_trace_figures **figures)
{
    assert_ok(gx_kineto_read_bytes(json, strlen(json), "here.json", file, &err), &err);
    *figures = trace_figures(file);
}

static const char small[] =
    "{\"deviceProperties\": [{\"id\": 0, \"name\": \"A card\", \"more\": [1]}],"
    " \"traceEvents\": ["
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
    "5,"
    " \"tid\": 6, \"ts\": 1700000000000000.001, \"dur\": 4, \"args\": {\"correlation\": "
    "3}},"
    "{\"args\": {\"grid\": [4, 2, 1], \"block\": [128, 1, 1], \"device\": 0, \"stream\": "
    "7,"
    " \"correlation\": 3, \"registers per thread\": 40, \"nested\": {\"stream\": 9}, "
    "\"shared memory\": [5]},"
    " \"dur\": 1.5, \"ts\": 1700000000000003.002, \"name\": \"k<\\\"a\\\">\", \"cat\":"
    " \"kernel\", \"ph\": \"X\", \"pid\": 0, \"tid\": 7},"
    "{\"ph\": \"X\", \"cat\": \"gpu_memset\", \"name\": \"Memset\", \"pid\": 0, \"tid\": "
    "7,"
    " \"ts\": 1700000000000005.0, \"dur\": 0.25, \"args\": {\"bytes\": 64}},"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"tid\": 6, \"ts\":"
    " 1700000000000000, \"dur\": 9},"
    "{\"ph\": \"s\", \"cat\": \"ac2g\", \"id\": 3, \"ts\": 1},"
    "{\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"python\"}}]}";

static void an_event_is_read_whatever_the_order_of_its_keys(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;
    size_t n;

    (void)state;
    read_text(small, &file, &figures);
    const gx_trace_activity *const kernel = gx_trace_activities(file.trace, &n);
    assert_int_equal(n, 2);
    assert_string_equal(gx_trace_text_at(file.trace, kernel->name), "k<\"a\">");
    assert_true(kernel->start == INT64_C(1700000000000003002));
    assert_true(kernel->end == INT64_C(1700000000000004502));
    assert_int_equal(kernel->grid[0], 4);
    assert_int_equal(kernel->grid[1], 2);
    assert_int_equal(kernel->block[0], 128);
    assert_int_equal(kernel->registers, 40);
    assert_int_equal(kernel->stream, 7);
    assert_int_equal(kernel->shared_bytes,
                     GX_TRACE_NONE); /* what is there is no number */
    assert_int_equal(kernel->correlation, 3);
    assert_int_equal(kernel[1].kind, GX_TRACE_FILL);
    assert_int_equal(kernel[1].bytes, 64);
    assert_int_equal(kernel[1].correlation, GX_TRACE_NONE);
    assert_int_equal(figures->device[0].idle, 498);
    assert_int_equal(trace_range_sum(&file, figures, "aten::mm")->share.n, 1);
    assert_string_equal(gx_trace_text_at(file.trace, file.gpus[0].name), "A card");
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void a_bare_list_of_events_is_a_trace(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    read_text("[{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"old\", \"ts\": 10, "
              "\"dur\": 5, \"pid\": 1, \"tid\": \"stream 7\"}]",
              &file, &figures);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 1);
    assert_int_equal(figures->device[0].device, 1);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
    read_text("{\"traceEvents\": []}", &file, &figures);
    assert_int_equal(figures->n_devices, 0);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void a_copy_tells_its_memory_by_its_name(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;
    size_t n;

    (void)state;
    read_text("[{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD "
              "(Pageable -> Device)\", \"ts\": 10, \"dur\": 5},"
              " {\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy DtoH "
              "(Device -> Pinned)\", \"ts\": 20, \"dur\": 5},"
              " {\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy\","
              " \"ts\": 30, \"dur\": 5}]",
              &file, &figures);
    const gx_trace_activity *const copy = gx_trace_activities(file.trace, &n);
    assert_int_equal(n, 3);
    assert_int_equal(copy[0].source, GX_TRACE_MEMORY_PAGEABLE);
    assert_int_equal(copy[0].target, GX_TRACE_MEMORY_OTHER);
    assert_int_equal(copy[1].source, GX_TRACE_MEMORY_OTHER);
    assert_int_equal(copy[1].target, GX_TRACE_MEMORY_PINNED);
    assert_int_equal(copy[2].source, GX_TRACE_MEMORY_UNKNOWN);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void names_that_are_no_utf8_do_not_harm(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    read_text(
        "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\xFF\\u0000b\", \"ts\": 10,"
        " \"dur\": 5, \"pid\": 1, \"tid\": 7}]",
        &file, &figures);
    assert_int_equal(trace_count_op(&file, figures,
                                    "a\xEF\xBF\xBD\xEF\xBF\xBD"
                                    "b"),
                     1);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *json, *text;
        gx_status status;
    } cases[] = {
        { "{\"traceEvents\": [", "cut short", GX_ERR_DATA },
        { "{\"traceEvents\": [{]}", "no JSON", GX_ERR_DATA },
        { "{\"traceEvents\": []} x", "no JSON", GX_ERR_DATA },
        { "{\"other\": []}", "no list traceEvents", GX_ERR_DATA },
        { "{\"traceEvents\": 3}", "no list traceEvents", GX_ERR_DATA },
        { "[1, {\"name\": \"k\"}, [{\"ph\": \"X\"}]]", "no item of the list is an event",
          GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"dur\": 1}]",
          "('k', category kernel) has no time", GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": \"soon\", \"dur\": 1}]",
          "has no time", GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": 1e300, \"dur\": 1}]",
          "has no time", GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": 5, \"dur\": -1}]", "can be true",
          GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 5, \"dur\": 1, "
          "\"args\": {\"device\": 99999999999999999999}}]",
          "('k', category kernel) has device 99999999999999999999", GX_ERR_DATA },
        { "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 5, \"dur\": 1, "
          "\"args\": {\"device\": 0, \"stream\": 1e30}}]",
          "has stream 1e30", GX_ERR_DATA },
        { "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
          "nested deeper", GX_ERR_LIMIT },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        gx_trace_file file;

        print_message("%s\n", cases[i].json);
        assert_fails(gx_kineto_read_bytes(cases[i].json, strlen(cases[i].json), "here",
                                          &file, &err),
                     cases[i].status, &err, cases[i].text);
        gx_trace_file_free(&file);
    }
}

/* Cut anywhere, a trace is refused; only the whole is one. */
static void a_trace_that_was_cut_is_told(void **state)
{
    (void)state;
    for (size_t n = 0; n < strlen(small); n++) {
        gx_trace_file file;
        char *part = malloc(n + 1);

        assert_non_null(part);
        memcpy(part, small, n);
        assert_fails(gx_kineto_read_bytes(part, n, "here", &file, &err), GX_ERR_DATA,
                     &err, "cut short");
        gx_trace_file_free(&file);
        free(part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if GX_HAVE_ZLIB
        cmocka_unit_test(own_traces_have_the_figures_that_are_known),
        cmocka_unit_test(other_traces_have_the_figures_that_are_known),
        cmocka_unit_test(graph_launches_and_what_they_replay_are_known),
        cmocka_unit_test(both_readers_agree_on_one_program),
        cmocka_unit_test(a_gzip_that_was_cut_is_told),
#endif
        cmocka_unit_test(an_event_is_read_whatever_the_order_of_its_keys),
        cmocka_unit_test(a_bare_list_of_events_is_a_trace),
        cmocka_unit_test(a_copy_tells_its_memory_by_its_name),
        cmocka_unit_test(names_that_are_no_utf8_do_not_harm),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(a_trace_that_was_cut_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
