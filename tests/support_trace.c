/* What the tests of trace readers share. */
#include "support_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if GX_HAVE_ZLIB
#include <zlib.h>
#endif

void trace_skip_unless_shared(void)
{
    if (access(OTHER_TRACES, R_OK) == 0)
        return;
    print_message("skipped: there is no folder %s\n", OTHER_TRACES);
    skip();
}

static bool ends_with(const char *text, const char *tail)
{
    const size_t n = strlen(text);

    return n >= strlen(tail) && strcmp(text + n - strlen(tail), tail) == 0;
}

#if GX_HAVE_ZLIB
/* The contents of a gzipped file; the caller frees. */
static char *unzip(const char *path, size_t *n)
{
    enum { CHUNK = 1 << 20 };
    gzFile file = gzopen(path, "rb");
    char *bytes = NULL;
    int got = 0;

    *n = 0;
    if (!file)
        fail_msg("cannot open %s", path);
    do {
        *n += (size_t)got;
        bytes = realloc(bytes, *n + CHUNK);
        assert_non_null(bytes);
        got = gzread(file, bytes + *n, CHUNK);
    } while (got > 0);
    assert_int_equal(got, 0);
    gzclose(file);
    return bytes;
}

static void load_zipped(const char *path, gx_trace_file *file)
{
    gx_error err = { 0 };
    size_t n;
    char *bytes = unzip(path, &n);

    assert_ok(gx_nsys_read_bytes(bytes, n, path, file, &err), &err);
    free(bytes);
}
#else
static void load_zipped(const char *path, gx_trace_file *file)
{
    (void)file;
    print_message("skipped: no zlib to unpack %s\n", path);
    skip();
}
#endif

void trace_load(const char *folder, const char *name, gx_trace_file *file)
{
    gx_error err = { 0 };
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (ends_with(name, ".sqlite.gz"))
        load_zipped(path, file);
    else
        assert_ok(gx_trace_file_read(path, file, &err), &err);
}

gx_trace_figures *trace_figures(const gx_trace_file *file)
{
    gx_trace_figures *figures;
    gx_error err = { 0 };

    assert_ok(gx_trace_figures_create(file->trace, NULL, &figures, &err), &err);
    return figures;
}

static void check_stream(const trace_truth *truth, const gx_trace_device *device)
{
    for (size_t i = 0; i < device->n_streams; i++)
        if (device->stream[i].stream == truth->stream) {
            assert_int_equal(device->stream[i].n_kernels, truth->n_kernels);
            assert_int_equal(device->stream[i].median_ns, truth->median);
            return;
        }
    fail_msg("%s: no stream %lld", truth->file, (long long)truth->stream);
}

void trace_check(const char *folder, const trace_truth *truth)
{
    gx_trace_file file;
    gx_trace_figures *figures;
    size_t n_largest = 0;

    print_message("%s, device %zu\n", truth->file, truth->device);
    trace_load(folder, truth->file, &file);
    figures = trace_figures(&file);
    assert_true(truth->device < figures->n_devices);
    const gx_trace_device *const device = &figures->device[truth->device];
    assert_int_equal(device->n_activities, truth->activities);
    assert_int_equal(device->span, truth->span);
    assert_int_equal(device->busy, truth->busy);
    assert_int_equal(device->idle, truth->idle);
    assert_int_equal(device->n_gaps, truth->n_gaps);
    while (n_largest < GX_TRACE_LARGEST && truth->largest[n_largest])
        n_largest++;
    assert_int_equal(device->n_largest, n_largest);
    for (size_t i = 0; i < n_largest; i++) {
        const gx_trace_gap *const gap = &device->gap[device->largest[i]];

        assert_int_equal(gap->end - gap->start, truth->largest[i]);
    }
    check_stream(truth, device);
    for (int c = 0; c < GX_GAP_CLASSES; c++) {
        assert_int_equal(device->gaps[c].n, truth->gaps[c].n);
        assert_int_equal(device->gaps[c].ns, truth->gaps[c].ns);
    }
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

int64_t trace_count_op(const gx_trace_file *file, const gx_trace_figures *figures,
                       const char *name)
{
    for (size_t i = 0; i < figures->n_ops; i++)
        if (strcmp(gx_trace_text_at(file->trace, figures->op[i].name), name) == 0)
            return figures->op[i].share.n;
    return 0;
}

const gx_trace_range_sum *trace_range_sum(const gx_trace_file *file,
                                          const gx_trace_figures *figures,
                                          const char *name)
{
    for (size_t i = 0; i < figures->n_ranges; i++)
        if (strcmp(gx_trace_text_at(file->trace, figures->range[i].name), name) == 0)
            return &figures->range[i];
    return NULL;
}
