/* Finds out what kind of profile a file is, and has it read. */
#include "trace_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nsys_export.h"

gx_status gx_lines_add(gx_lines *lines, gx_error *err, const char *format, ...)
{
    char **grown = realloc(lines->items, (lines->n + 1) * sizeof *grown);
    char *line = NULL;
    va_list list;
    int length;

    if (grown) {
        lines->items = grown;
        va_start(list, format);
        length = vsnprintf(NULL, 0, format, list);
        va_end(list);
        line = length < 0 ? NULL : malloc((size_t)length + 1);
    }
    if (!line)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    va_start(list, format);
    vsnprintf(line, (size_t)length + 1, format, list);
    va_end(list);
    lines->items[lines->n++] = line;
    return GX_OK;
}

static void lines_free(gx_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        free(lines->items[i]);
    free(lines->items);
    *lines = (gx_lines){ 0 };
}

void gx_trace_file_free(gx_trace_file *file)
{
    gx_trace_free(file->trace);
    free(file->path);
    free(file->gpus);
    lines_free(&file->absent);
    lines_free(&file->remarks);
    *file = (gx_trace_file){ 0 };
}

gx_status gx_trace_file_start(gx_trace_file *file, const char *path,
                              gx_trace_format format, gx_error *err)
{
    *file = (gx_trace_file){ .format = format };
    file->path = malloc(strlen(path) + 1);
    file->trace = gx_trace_create();
    if (!file->path || !file->trace)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    strcpy(file->path, path);
    return GX_OK;
}

gx_status gx_trace_file_add_gpu(gx_trace_file *file, int64_t device, uint32_t name,
                                gx_error *err)
{
    gx_trace_gpu *grown = realloc(file->gpus, (file->n_gpus + 1) * sizeof *grown);

    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    file->gpus = grown;
    file->gpus[file->n_gpus++] = (gx_trace_gpu){ device, name };
    return GX_OK;
}

gx_status gx_trace_file_finish(gx_trace_file *file, gx_error *err)
{
    gx_trace_dropped dropped;
    size_t n;

    GX_TRY(gx_trace_finish(file->trace, err));
    dropped = gx_trace_dropped_get(file->trace);
    gx_trace_activities(file->trace, &n);
    if (n == 0 && dropped.no_time + dropped.backwards + dropped.before_call > 0)
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: none of its records of device work can be true: %lld have no "
                       "time, %lld end before they start, %lld start before their launch",
                       file->path, (long long)dropped.no_time,
                       (long long)dropped.backwards, (long long)dropped.before_call);
    return GX_OK;
}

int64_t gx_trace_file_pid(const gx_trace_file *file, int64_t process)
{
    /* The layout of Nsight Systems' ids: 24 bits of process above 24 bits of thread. */
    return file->format == GX_TRACE_NSYS ? (process >> 24) & 0xFFFFFF : GX_TRACE_NONE;
}

/* --- which kind --- */

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path);
    const size_t length = strlen(suffix);

    return n >= length && strcmp(path + n - length, suffix) == 0;
}

/* The first bytes of a file, and its length. */
static gx_status peek(const char *path, unsigned char *head, size_t room, size_t *n,
                      gx_error *err)
{
    struct stat info;
    FILE *file;

    *n = 0;
    /* Before it is opened: a pipe without a writer would keep us there. */
    if (stat(path, &info) == 0 && S_ISFIFO(info.st_mode))
        return GX_FAIL(err, GX_ERR_READ,
                       "%s: a pipe; expected a file, since it is read more than once",
                       path);
    file = fopen(path, "rb");
    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        fclose(file);
        return GX_FAIL(err, GX_ERR_READ, "%s: a folder; expected a file", path);
    }
    *n = fread(head, 1, room, file);
    if (ferror(file)) {
        const int native = errno;

        fclose(file);
        return GX_FAIL_NATIVE(err, GX_ERR_READ, native, "%s: %s", path, strerror(native));
    }
    fclose(file);
    if (*n == 0)
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s: the file is empty; expected an Nsight Systems export "
                       "(SQLite) or a Kineto trace (JSON)",
                       path);
    return GX_OK;
}

static bool looks_like_json(const unsigned char *head, size_t n)
{
    size_t i = n >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;

    while (i < n && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    return i < n && (head[i] == '{' || head[i] == '[');
}

gx_status gx_trace_file_read(const char *path, gx_trace_file *file, gx_error *err)
{
    static const char sqlite[16] = "SQLite format 3";
    unsigned char head[256];
    size_t n;

    *file = (gx_trace_file){ 0 };
    GX_TRY(peek(path, head, sizeof head, &n, err));
    if (n >= sizeof sqlite && memcmp(head, sqlite, sizeof sqlite) == 0)
        return gx_nsys_read(path, file, err);
    if ((n >= 2 && head[0] == 0x1F && head[1] == 0x8B) || looks_like_json(head, n))
        return gx_kineto_read(path, file, err);
    if (has_suffix(path, ".nsys-rep") || has_suffix(path, ".qdrep"))
        return gx_nsys_export_and_read(path, file, err);
    return GX_FAIL(err, GX_ERR_DATA,
                   "%s: neither an Nsight Systems export (SQLite) nor a report "
                   "(.nsys-rep) nor a Kineto trace (.json, .json.gz)",
                   path);
}
