/* Exports of gexec's own runs against what Nsight Systems itself says of them, in
 * tests/data/nsys: `nsys stats` and `nsys analyze`, as they printed it. */
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

#define FOLDER "tests/data/nsys"

static const char *const runs[] = { "gexec_deep_narrow_eager", "gexec_deep_narrow_graph",
                                    "gexec_digits_mlp_eager", "gexec_digits_mlp_graph" };

/* --- tables of nsys --- */

enum { MOST_FIELDS = 16, MOST_ROWS = 1000 };

typedef struct table {
    char *text;
    char *field[MOST_ROWS][MOST_FIELDS]; /* row 0: titles */
    size_t n_rows, n_fields;
} table;

/* Cuts a field off at `at`, quoted or not, and gives what stands behind it. */
static char *cut(char *at, char **field)
{
    char end;

    if (*at == '"') {
        *field = ++at;
        at = strchr(at, '"');
        assert_non_null(at);
        *at++ = '\0';
    } else {
        *field = at;
        at += strcspn(at, ",\n");
    }
    end = *at;
    *at = '\0';
    return end ? at + 1 : at;
}

static void load(table *t, const char *run, const char *report)
{
    char path[256];
    size_t length;

    *t = (table){ .n_rows = 0 };
    snprintf(path, sizeof path, FOLDER "/%s.%s.csv", run, report);
    t->text = test_read(path, &length);
    t->n_fields = 1;
    for (const char *c = t->text; *c != '\n'; c++)
        t->n_fields += *c == ',';
    assert_in_range(t->n_fields, 2, MOST_FIELDS);
    for (char *at = t->text; *at; t->n_rows++) {
        assert_true(t->n_rows < MOST_ROWS);
        for (size_t f = 0; f < t->n_fields; f++)
            at = cut(at, &t->field[t->n_rows][f]);
    }
    assert_true(t->n_rows > 1);
}

static size_t column(const table *t, const char *title)
{
    for (size_t f = 0; f < t->n_fields; f++)
        if (strcmp(t->field[0][f], title) == 0)
            return f;
    fail_msg("no column '%s'", title);
    return 0;
}

static int64_t number(const table *t, size_t row, const char *title)
{
    return strtoll(t->field[row][column(t, title)], NULL, 10);
}

/* --- our side: all of the export, not the measured part alone --- */

typedef struct ours {
    gx_trace_file file;
    gx_trace_figures *figures;
} ours;

static void load_ours(ours *o, const char *run)
{
    const gx_trace_options everything = { .within = "" };
    gx_error err = { 0 };
    char name[128];

    print_message("%s\n", run);
    snprintf(name, sizeof name, "%s.sqlite.gz", run);
    trace_load(FOLDER, name, &o->file);
    assert_ok(gx_trace_figures_create(o->file.trace, &everything, &o->figures, &err),
              &err);
}

static void drop_ours(ours *o)
{
    gx_trace_figures_free(o->figures);
    gx_trace_file_free(&o->file);
}

/* --- kernels --- */

static const gx_trace_op *find_kernel(const ours *o, const char *name)
{
    for (size_t i = 0; i < o->figures->n_ops; i++) {
        const gx_trace_op *const op = &o->figures->op[i];

        if (op->kind == GX_TRACE_KERNEL &&
            strcmp(gx_trace_text_at(o->file.trace, op->name), name) == 0)
            return op;
    }
    fail_msg("no kernel '%s'", name);
    return NULL;
}

static void sums_of_kernels_are_those_of_nsys(void **state)
{
    table *const t = malloc(sizeof *t);
    ours o;

    (void)state;
    for (size_t r = 0; r < ARRAY_SIZE(runs); r++) {
        int64_t n = 0;

        load_ours(&o, runs[r]);
        load(t, runs[r], "cuda_gpu_kern_sum");
        for (size_t row = 1; row < t->n_rows; row++) {
            const gx_trace_op *const op =
                find_kernel(&o, t->field[row][column(t, "Name")]);
            const double median = strtod(t->field[row][column(t, "Med (ns)")], NULL);

            assert_int_equal(op->share.n, number(t, row, "Instances"));
            assert_int_equal(op->share.ns, number(t, row, "Total Time (ns)"));
            assert_int_equal(op->least_ns, number(t, row, "Min (ns)"));
            assert_int_equal(op->most_ns, number(t, row, "Max (ns)"));
            /* Between two middle values nsys takes the mean, and we that in whole ns. */
            assert_int_equal(op->median_ns, (int64_t)median);
            n += op->share.n;
        }
        assert_int_equal(n, o.figures->kind[GX_TRACE_KERNEL].n);
        free(t->text);
        drop_ours(&o);
    }
    free(t);
}

/* --- gaps --- */

static int by_start(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void every_gap_is_that_of_nsys(void **state)
{
    table *const t = malloc(sizeof *t);
    int64_t(*const theirs)[2] = calloc(MOST_ROWS, sizeof *theirs);
    ours o;

    (void)state;
    for (size_t r = 0; r < ARRAY_SIZE(runs); r++) {
        load_ours(&o, runs[r]);
        load(t, runs[r], "gpu_gaps");
        for (size_t row = 1; row < t->n_rows; row++) {
            theirs[row - 1][0] = number(t, row, "Start (ns)");
            theirs[row - 1][1] = number(t, row, "Duration (ns)");
        }
        qsort(theirs, t->n_rows - 1, sizeof *theirs, by_start);
        assert_int_equal(o.figures->n_devices, 1);
        const gx_trace_device *const device = &o.figures->device[0];
        assert_int_equal(device->n_gaps, t->n_rows - 1);
        for (size_t i = 0; i < device->n_gaps; i++) {
            assert_int_equal(device->gap[i].start, theirs[i][0]);
            assert_int_equal(device->gap[i].end - device->gap[i].start, theirs[i][1]);
        }
        free(t->text);
        drop_ours(&o);
    }
    free(theirs);
    free(t);
}

/* --- ranges --- */

/* "gexec:step" as nsys writes a range and its domain. */
static bool is_range(const ours *o, const gx_trace_range *range, const char *text)
{
    const char *const domain = gx_trace_text_at(o->file.trace, range->domain);
    const size_t n = strlen(domain);

    return strncmp(text, domain, n) == 0 && text[n] == ':' &&
           strcmp(text + n + 1, gx_trace_text_at(o->file.trace, range->name)) == 0;
}

static void sums_of_ranges_are_those_of_nsys(void **state)
{
    table *const t = malloc(sizeof *t);
    ours o;

    (void)state;
    for (size_t r = 0; r < ARRAY_SIZE(runs); r++) {
        size_t n_ranges, n_seen = 0;

        load_ours(&o, runs[r]);
        load(t, runs[r], "nvtx_sum");
        const gx_trace_range *const ranges = gx_trace_ranges(o.file.trace, &n_ranges);
        for (size_t row = 1; row < t->n_rows; row++) {
            gx_trace_share sum = { 0 };

            for (size_t i = 0; i < n_ranges; i++)
                if (is_range(&o, &ranges[i], t->field[row][column(t, "Range")])) {
                    sum.n++;
                    sum.ns += ranges[i].end - ranges[i].start;
                }
            assert_int_equal(sum.n, number(t, row, "Instances"));
            assert_int_equal(sum.ns, number(t, row, "Total Time (ns)"));
            n_seen += (size_t)sum.n;
        }
        assert_int_equal(n_seen, n_ranges);
        free(t->text);
        drop_ours(&o);
    }
    free(t);
}

/* What nsys projects on a range that has no other inside is what we attribute to it. */
static void ops_of_innermost_ranges_are_those_of_nsys(void **state)
{
    table *const t = malloc(sizeof *t);
    int64_t n_checked = 0;
    ours o;

    (void)state;
    load_ours(&o, "gexec_digits_mlp_eager");
    load(t, "gexec_digits_mlp_eager", "nvtx_gpu_proj_trace");
    for (size_t i = 0; i < o.figures->n_ranges; i++) {
        const gx_trace_range_sum *const sum = &o.figures->range[i];
        const gx_trace_range range = { .name = sum->name, .domain = sum->domain };
        int64_t n = 0, children = 0;

        for (size_t row = 1; row < t->n_rows; row++)
            if (is_range(&o, &range, t->field[row][column(t, "Name")])) {
                n += number(t, row, "NumGPUOps");
                children += number(t, row, "NumChild");
            }
        if (children == 0 && n > 0) {
            assert_int_equal(sum->share.n, n);
            n_checked++;
        }
    }
    assert_in_range(n_checked, 10, 100);
    free(t->text);
    free(t);
    drop_ours(&o);
}

/* nsys gives a replay's kernels to the range around the launch; the ops that captured
 * them are known all the same. */
static void replayed_kernels_have_their_ops(void **state)
{
    ours o;

    (void)state;
    load_ours(&o, "gexec_digits_mlp_graph");
    const gx_trace_range_sum *const sum =
        trace_range_sum(&o.file, o.figures, "loss + loss.bwd");
    assert_non_null(sum);
    /* 12 replays, and the step that primed. */
    assert_int_equal(sum->share.n, 13);
    assert_int_equal(o.figures->by[GX_TRACE_BY_CAPTURE].n, 144);
    assert_int_equal(o.figures->by[GX_TRACE_BY_REPLAY].n, 0);
    drop_ours(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_kernels_are_those_of_nsys),
        cmocka_unit_test(every_gap_is_that_of_nsys),
        cmocka_unit_test(sums_of_ranges_are_those_of_nsys),
        cmocka_unit_test(ops_of_innermost_ranges_are_those_of_nsys),
        cmocka_unit_test(replayed_kernels_have_their_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
