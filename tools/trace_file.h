/* A profile of somebody's program, read from a file of one of several kinds. */
#ifndef GX_TRACE_FILE_H
#define GX_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <gexec/trace.h>

typedef enum gx_trace_format { GX_TRACE_NSYS, GX_TRACE_KINETO } gx_trace_format;

/* What the collector was told to record of a graph's replays. */
typedef enum gx_graph_mode {
    GX_GRAPH_MODE_UNKNOWN,
    GX_GRAPH_MODE_WHOLE,
    GX_GRAPH_MODE_NODES
} gx_graph_mode;

typedef struct gx_trace_gpu {
    int64_t device;
    uint32_t name; /* text of the trace */
} gx_trace_gpu;

typedef struct gx_lines {
    char **items;
    size_t n;
} gx_lines;

typedef struct gx_trace_file {
    char *path;
    gx_trace *trace; /* finished */
    gx_trace_format format;
    char version[64], schema[64]; /* empty: not said */
    gx_graph_mode graph_mode;
    gx_trace_gpu *gpus;
    size_t n_gpus;
    gx_lines absent;  /* tables that were not found */
    gx_lines remarks; /* what a reader of the figures should know */
} gx_trace_file;

/* Reads an Nsight Systems SQLite export, a Kineto trace (.json, .json.gz), or, by way of
 * `nsys export`, an Nsight Systems report. Free it in any case. */
gx_status gx_trace_file_read(const char *path, gx_trace_file *file,
                             gx_error *err) GX_MUST_CHECK;
void gx_trace_file_free(gx_trace_file *file);

/* The number of a process as its system knew it; GX_TRACE_NONE where it was not told. */
int64_t gx_trace_file_pid(const gx_trace_file *file, int64_t process);

/* --- for the readers --- */

gx_status gx_trace_file_start(gx_trace_file *file, const char *path,
                              gx_trace_format format, gx_error *err) GX_MUST_CHECK;
/* Finishes the trace, and refuses one of which nothing can be true. */
gx_status gx_trace_file_finish(gx_trace_file *file, gx_error *err) GX_MUST_CHECK;
gx_status gx_trace_file_add_gpu(gx_trace_file *file, int64_t device, uint32_t name,
                                gx_error *err) GX_MUST_CHECK;
gx_status gx_lines_add(gx_lines *lines, gx_error *err, const char *format, ...)
    GX_PRINTF(3, 4) GX_MUST_CHECK;

/* Nsight Systems: a file, or a database in memory. */
gx_status gx_nsys_read(const char *path, gx_trace_file *file,
                       gx_error *err) GX_MUST_CHECK;
gx_status gx_nsys_read_bytes(const void *bytes, size_t n, const char *path,
                             gx_trace_file *file, gx_error *err) GX_MUST_CHECK;

/* Kineto: a file, gzipped or not, or JSON in memory. */
gx_status gx_kineto_read(const char *path, gx_trace_file *file,
                         gx_error *err) GX_MUST_CHECK;
gx_status gx_kineto_read_bytes(const void *bytes, size_t n, const char *path,
                               gx_trace_file *file, gx_error *err) GX_MUST_CHECK;

#endif
