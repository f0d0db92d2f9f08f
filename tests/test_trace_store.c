/* Traces as files. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gexec/trace.h>

#include "trace_model.h"

static uint32_t text(gx_trace *trace, const char *words)
{
    uint32_t number;
    gx_error err;

    assert_ok(gx_trace_text(trace, words, strlen(words), &number, &err), &err);
    return number;
}

/* Every field of every record differs from what it is at first. */
static gx_trace *made_trace(void)
{
    gx_trace *trace = gx_trace_create();
    gx_error err;

    assert_non_null(trace);
    for (int i = 0; i < 3; i++) {
        const gx_trace_activity activity = {
            .kind = (gx_trace_kind)(i % GX_TRACE_KINDS),
            .name = text(trace, i ? "gemm \xC3\xA9\xEF\xBF\xBD <4>" : "fill"),
            .start = 1000 + 100 * i,
            .end = 1050 + 100 * i,
            .process = 11,
            .device = 1,
            .stream = 13 + i,
            .correlation = 20 + i,
            .node = INT64_C(0x500000001) + i,
            .bytes = 77 + i,
            .grid = { 1 + i, 2, 3 },
            .block = { 4, 5 + i, 6 },
            .registers = 40 + i,
            .shared_bytes = 50 + i,
            .source = GX_TRACE_MEMORY_PAGEABLE + (gx_trace_memory)i,
            .target = GX_TRACE_MEMORY_OTHER,
            .legacy_stream = i == 0,
            .source_device = i,
            .target_device = 4 + i,
            .group = i,
            .lane = i % 2,
            .body = 3 + i,
            .call = GX_TRACE_NONE,
            .range = GX_TRACE_NONE,
        };
        const gx_trace_call call = { .start = 900 + 100 * i,
                                     .end = 940 + 100 * i,
                                     .process = 11,
                                     .thread = 12,
                                     .correlation = 20 + i,
                                     .name = text(trace, i ? "cudaLaunchKernel"
                                                           : "cudaGraphLaunch") };

        const gx_trace_overhead overhead = { .name = text(trace, "buffer flush"),
                                             .start = 800 + 10 * i,
                                             .end = 850 + 10 * i,
                                             .inside = 7 + i,
                                             .process = 11,
                                             .thread = 12 + i,
                                             .device = 2 + i,
                                             .correlation = 30 + i };

        assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
        assert_ok(gx_trace_add_call(trace, &call, &err), &err);
        assert_ok(gx_trace_add_overhead(trace, &overhead, &err), &err);
    }
    const gx_trace_call twin = { .start = 905,
                                 .end = 930,
                                 .process = 11,
                                 .thread = 12,
                                 .correlation = 20,
                                 .name = text(trace, "cuGraphLaunch") };
    const gx_trace_range open = { .kind = GX_TRACE_START_END,
                                  .name = text(trace, "step"),
                                  .domain = text(trace, "gexec"),
                                  .start = -5,
                                  .end = GX_TRACE_OPEN,
                                  .process = 11,
                                  .thread = 14 };
    const gx_trace_range unit = { .kind = GX_TRACE_PUSH_POP,
                                  .name = text(trace, "fc1"),
                                  .domain = text(trace, "gexec"),
                                  .start = 880,
                                  .end = 1200,
                                  .process = 11,
                                  .thread = 12 };
    const gx_trace_node clone = { .id = INT64_C(0x500000001),
                                  .original = INT64_C(0x400000001),
                                  .time = 700,
                                  .process = 11,
                                  .thread = 12 };
    const gx_trace_node early = { .id = INT64_C(0x400000001),
                                  .original = GX_TRACE_NONE,
                                  .time = -1000,
                                  .process = 11,
                                  .thread = 12 };
    gx_trace_activity untimed = gx_trace_activity_none();
    assert_ok(gx_trace_add_call(trace, &twin, &err), &err);
    assert_ok(gx_trace_add_range(trace, &open, &err), &err);
    assert_ok(gx_trace_add_range(trace, &unit, &err), &err);
    assert_ok(gx_trace_add_node(trace, &clone, &err), &err);
    assert_ok(gx_trace_add_node(trace, &early, &err), &err);
    assert_ok(gx_trace_add_activity(trace, &untimed, &err), &err);
    return trace;
}

/* Padding aside, records are the same when all their fields are. */
#define ASSERT_FIELD(a, b, field) assert_int_equal((a)->field, (b)->field)

static void compare_activities(const gx_trace *a, const gx_trace *b)
{
    size_t n, n_other;
    const gx_trace_activity *left = gx_trace_activities(a, &n);
    const gx_trace_activity *right = gx_trace_activities(b, &n_other);

    assert_int_equal(n, n_other);
    for (size_t i = 0; i < n; i++, left++, right++) {
        ASSERT_FIELD(left, right, kind);
        ASSERT_FIELD(left, right, name);
        ASSERT_FIELD(left, right, start);
        ASSERT_FIELD(left, right, end);
        ASSERT_FIELD(left, right, process);
        ASSERT_FIELD(left, right, device);
        ASSERT_FIELD(left, right, stream);
        ASSERT_FIELD(left, right, correlation);
        ASSERT_FIELD(left, right, node);
        ASSERT_FIELD(left, right, bytes);
        assert_memory_equal(left->grid, right->grid, sizeof left->grid);
        assert_memory_equal(left->block, right->block, sizeof left->block);
        ASSERT_FIELD(left, right, registers);
        ASSERT_FIELD(left, right, shared_bytes);
        ASSERT_FIELD(left, right, source);
        ASSERT_FIELD(left, right, target);
        ASSERT_FIELD(left, right, legacy_stream);
        ASSERT_FIELD(left, right, source_device);
        ASSERT_FIELD(left, right, target_device);
        ASSERT_FIELD(left, right, group);
        ASSERT_FIELD(left, right, lane);
        ASSERT_FIELD(left, right, body);
        ASSERT_FIELD(left, right, call);
        ASSERT_FIELD(left, right, range);
        ASSERT_FIELD(left, right, by);
        assert_string_equal(gx_trace_text_at(a, left->name),
                            gx_trace_text_at(b, right->name));
    }
}

static void compare_hosts(const gx_trace *a, const gx_trace *b)
{
    size_t n, n_other;
    const gx_trace_call *call = gx_trace_calls(a, &n);
    const gx_trace_call *other_call = gx_trace_calls(b, &n_other);

    assert_int_equal(n, n_other);
    for (size_t i = 0; i < n; i++, call++, other_call++) {
        ASSERT_FIELD(call, other_call, start);
        ASSERT_FIELD(call, other_call, end);
        ASSERT_FIELD(call, other_call, process);
        ASSERT_FIELD(call, other_call, thread);
        ASSERT_FIELD(call, other_call, correlation);
        ASSERT_FIELD(call, other_call, name);
        ASSERT_FIELD(call, other_call, kind);
        ASSERT_FIELD(call, other_call, twin);
        ASSERT_FIELD(call, other_call, n_activities);
    }
    const gx_trace_range *range = gx_trace_ranges(a, &n);
    const gx_trace_range *other_range = gx_trace_ranges(b, &n_other);
    assert_int_equal(n, n_other);
    for (size_t i = 0; i < n; i++, range++, other_range++) {
        ASSERT_FIELD(range, other_range, kind);
        ASSERT_FIELD(range, other_range, name);
        ASSERT_FIELD(range, other_range, domain);
        ASSERT_FIELD(range, other_range, start);
        ASSERT_FIELD(range, other_range, end);
        ASSERT_FIELD(range, other_range, process);
        ASSERT_FIELD(range, other_range, thread);
    }
    const gx_trace_node *node = gx_trace_nodes(a, &n);
    const gx_trace_node *other_node = gx_trace_nodes(b, &n_other);
    assert_int_equal(n, n_other);
    for (size_t i = 0; i < n; i++, node++, other_node++) {
        ASSERT_FIELD(node, other_node, id);
        ASSERT_FIELD(node, other_node, original);
        ASSERT_FIELD(node, other_node, time);
        ASSERT_FIELD(node, other_node, process);
        ASSERT_FIELD(node, other_node, thread);
    }
    const gx_trace_overhead *overhead = gx_trace_overheads(a, &n);
    const gx_trace_overhead *other_overhead = gx_trace_overheads(b, &n_other);
    assert_int_equal(n, n_other);
    assert_int_equal(gx_trace_tells_overhead(a), gx_trace_tells_overhead(b));
    for (size_t i = 0; i < n; i++, overhead++, other_overhead++) {
        ASSERT_FIELD(overhead, other_overhead, name);
        ASSERT_FIELD(overhead, other_overhead, start);
        ASSERT_FIELD(overhead, other_overhead, end);
        ASSERT_FIELD(overhead, other_overhead, inside);
        ASSERT_FIELD(overhead, other_overhead, process);
        ASSERT_FIELD(overhead, other_overhead, thread);
        ASSERT_FIELD(overhead, other_overhead, device);
        ASSERT_FIELD(overhead, other_overhead, correlation);
    }
}

static gx_trace *there_and_back(const gx_trace *trace)
{
    char *path = test_path("there.trace");
    gx_trace *back;
    gx_error err;

    assert_ok(gx_trace_write(trace, path, &err), &err);
    assert_ok(gx_trace_read(path, &back, &err), &err);
    unlink(path);
    free(path);
    return back;
}

static void every_field_survives(void **state)
{
    gx_trace *trace = made_trace();
    gx_trace *back = there_and_back(trace);
    gx_error err;

    (void)state;
    compare_activities(trace, back);
    compare_hosts(trace, back);
    /* It is not finished, and finishes to the same. */
    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_trace_finish(back, &err), &err);
    compare_activities(trace, back);
    compare_hosts(trace, back);
    gx_trace_free(trace);
    gx_trace_free(back);
}

static void what_finishing_found_survives(void **state)
{
    gx_trace *trace = made_trace();
    gx_trace_figures *figures, *other;
    gx_error err;

    (void)state;
    assert_ok(gx_trace_finish(trace, &err), &err);
    gx_trace *back = there_and_back(trace);
    compare_activities(trace, back);
    compare_hosts(trace, back);
    assert_int_equal(gx_trace_dropped_get(trace).no_time, 1);
    assert_int_equal(gx_trace_dropped_get(back).no_time, 1);
    assert_fails(gx_trace_finish(back, &err), GX_ERR_STATE, &err, "finished already");
    assert_ok(gx_trace_figures_create(trace, NULL, &figures, &err), &err);
    assert_ok(gx_trace_figures_create(back, NULL, &other, &err), &err);
    assert_true(figures->nodes_before_window.n > 0);
    assert_int_equal(figures->nodes_before_window.n, other->nodes_before_window.n);
    assert_int_equal(figures->device[0].busy, other->device[0].busy);
    gx_trace_figures_free(figures);
    gx_trace_figures_free(other);
    gx_trace_free(trace);
    gx_trace_free(back);
}

static void an_empty_trace_is_one_too(void **state)
{
    gx_trace *trace = gx_trace_create();
    size_t n;

    (void)state;
    assert_non_null(trace);
    gx_trace *back = there_and_back(trace);
    (void)gx_trace_activities(back, &n);
    assert_int_equal(n, 0);
    assert_false(gx_trace_tells_overhead(back));
    gx_trace_free(back);
    gx_trace_expect_overhead(trace);
    back = there_and_back(trace);
    assert_true(gx_trace_tells_overhead(back)); /* that there is none */
    gx_trace_free(trace);
    gx_trace_free(back);
}

/* The bytes of the made trace, finished, as they stand in a file. */
static char *written_bytes(size_t *length)
{
    gx_trace *trace = made_trace();
    char *path = test_path("bytes.trace");
    gx_error err;

    assert_ok(gx_trace_finish(trace, &err), &err);
    assert_ok(gx_trace_write(trace, path, &err), &err);
    char *bytes = test_read(path, length);
    unlink(path);
    free(path);
    gx_trace_free(trace);
    return bytes;
}

static gx_status read_bytes(const char *bytes, size_t length, gx_error *err)
{
    char *path = test_write("read.trace", bytes, length);
    gx_trace *trace;
    const gx_status st = gx_trace_read(path, &trace, err);

    assert_true((st == GX_OK) == (trace != NULL));
    if (st != GX_OK)
        assert_has(err->message, path);
    gx_trace_free(trace);
    free(path);
    return st;
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
    size_t length;
    char *bytes = written_bytes(&length);
    char *path = test_write("cut.trace", bytes, length);
    gx_trace *trace;
    gx_error err;

    (void)state;
    assert_ok(gx_trace_read(path, &trace, &err), &err);
    gx_trace_free(trace);
    while (length-- > 0) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        assert_fails(gx_trace_read(path, &trace, &err), GX_ERR_READ, &err, path);
        assert_null(trace);
    }
    free(path);
    free(bytes);
}

static void what_stands_behind_its_end_is_refused(void **state)
{
    size_t length;
    char *bytes = written_bytes(&length);
    char *longer = calloc(length + 1, 1);
    gx_error err;

    (void)state;
    assert_non_null(longer);
    memcpy(longer, bytes, length);
    assert_fails(read_bytes(longer, length + 1, &err), GX_ERR_READ, &err, "behind");
    free(longer);
    free(bytes);
}

/* Changes one byte of a file. */
static void put_byte(int fd, size_t at, unsigned char byte)
{
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* Whatever is read of it can be asked for its figures. */
static void a_damaged_file_is_refused_or_read(void **state)
{
    static const unsigned char changes[] = { 0x01, 0x80, 0xFF };
    size_t length;
    char *bytes = written_bytes(&length);
    char *path = test_write("damaged.trace", bytes, length);
    const int fd = open(path, O_WRONLY);
    int n_refused = 0;

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < length * ARRAY_SIZE(changes); i++) {
        const size_t at = i / ARRAY_SIZE(changes);
        const unsigned char byte = (unsigned char)bytes[at];
        gx_trace_figures *figures = NULL;
        gx_trace *trace;
        gx_error err;

        put_byte(fd, at, byte ^ changes[i % ARRAY_SIZE(changes)]);
        const gx_status st = gx_trace_read(path, &trace, &err);
        n_refused += st != GX_OK;
        if (st == GX_OK)
            (void)!gx_trace_figures_create(trace, NULL, &figures, &err);
        else
            assert_int_not_equal(gx_status_exit(st), 4);
        gx_trace_figures_free(figures);
        gx_trace_free(trace);
        put_byte(fd, at, byte);
    }
    assert_true(n_refused > 100);
    close(fd);
    free(path);
    free(bytes);
}

static void overhead_out_of_order_is_refused(void **state)
{
    const gx_trace_overhead late = { .start = 20, .end = 30 }, early = { .end = 30 };
    gx_trace *trace = gx_trace_create(), *back;
    char *path = test_path("order.trace");
    gx_error err;

    (void)state;
    assert_non_null(trace);
    assert_ok(gx_trace_add_overhead(trace, &late, &err), &err);
    assert_ok(gx_trace_add_overhead(trace, &early, &err), &err);
    trace->finished = true; /* as if it had sorted them */
    assert_ok(gx_trace_write(trace, path, &err), &err);
    assert_fails(gx_trace_read(path, &back, &err), GX_ERR_READ, &err, "out of order");
    unlink(path);
    free(path);
    gx_trace_free(trace);
}

static void a_foreign_file_is_refused(void **state)
{
    static const char later[] = "gexec-trace\n\x04\0\0\0 and more";
    gx_trace *trace;
    gx_error err;

    (void)state;
    assert_fails(read_bytes("", 0, &err), GX_ERR_READ, &err, "not a trace that gexec");
    assert_fails(read_bytes("SQLite format 3", 16, &err), GX_ERR_READ, &err,
                 "not a trace that gexec");
    assert_fails(read_bytes(later, sizeof later, &err), GX_ERR_READ, &err, "version 4");
    assert_fails(gx_trace_read("/nowhere/x.trace", &trace, &err), GX_ERR_READ, &err,
                 "/nowhere/x.trace: No such file");
    assert_fails(gx_trace_read(test_folder(), &trace, &err), GX_ERR_READ, &err,
                 test_folder());
    assert_null(trace);
}

static void a_file_that_cannot_be_written_is_told_and_not_left(void **state)
{
    gx_trace *trace = made_trace();
    gx_error err;

    (void)state;
    assert_fails(gx_trace_write(trace, "/nowhere/x.trace", &err), GX_ERR_WRITE, &err,
                 "/nowhere/x.trace");
    /* A folder stands where the file should be. */
    char *path = test_path("taken.trace");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(gx_trace_write(trace, path, &err), GX_ERR_WRITE, &err, path);
    assert_int_equal(rmdir(path), 0);
    char command[600];
    snprintf(command, sizeof command, "! ls '%s' | grep -q tmp", test_folder());
    assert_int_equal(system(command), 0);
    free(path);
    gx_trace_free(trace);
}

static void a_pipe_is_written_to_and_not_replaced(void **state)
{
    gx_trace *trace = made_trace();
    char *path = test_path("pipe.trace");
    char bytes[12];
    struct stat there;
    gx_error err;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_ok(gx_trace_write(trace, path, &err), &err);
    assert_int_equal(lstat(path, &there), 0);
    assert_true(S_ISFIFO(there.st_mode));
    assert_int_equal(read(fd, bytes, sizeof bytes), sizeof bytes);
    assert_memory_equal(bytes, "gexec-trace\n", sizeof bytes);
    close(fd);
    unlink(path);
    free(path);
    gx_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_survives),
        cmocka_unit_test(what_finishing_found_survives),
        cmocka_unit_test(an_empty_trace_is_one_too),
        cmocka_unit_test(a_file_cut_short_anywhere_is_refused),
        cmocka_unit_test(what_stands_behind_its_end_is_refused),
        cmocka_unit_test(a_damaged_file_is_refused_or_read),
        cmocka_unit_test(overhead_out_of_order_is_refused),
        cmocka_unit_test(a_foreign_file_is_refused),
        cmocka_unit_test(a_file_that_cannot_be_written_is_told_and_not_left),
        cmocka_unit_test(a_pipe_is_written_to_and_not_replaced),
    };

    return cmocka_run_group_tests_name("trace_store", tests, NULL, NULL);
}
