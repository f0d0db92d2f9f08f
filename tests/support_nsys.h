/* Exports of Nsight Systems that tests build; for builds that have SQLite. */
#ifndef GX_SUPPORT_NSYS_H
#define GX_SUPPORT_NSYS_H

#if GX_HAVE_SQLITE

#include <sqlite3.h>

#include "support_trace.h"

typedef struct nsys_built {
    char *path;
    sqlite3 *sqlite;
} nsys_built;

/* Where rows come from unless a test says otherwise. */
enum { NSYS_PROCESS = 1 << 24, NSYS_THREAD = NSYS_PROCESS | 5 };

/* Makes NVTX_EVENTS. */
extern const char nsys_ranges_sql[];
/* Makes StringIds and META_DATA_EXPORT, with a few rows. */
extern const char nsys_names_sql[];

/* A new file in the test's folder, empty, or with names, metadata and empty tables of
 * kernels and calls; to be ended by nsys_read_built or nsys_refuse_built. */
nsys_built nsys_build(const char *name);
nsys_built nsys_build_export(const char *name);
void nsys_run_sql(nsys_built *one, const char *sql);
void nsys_put_call(nsys_built *one, int64_t start, int64_t end, int64_t correlation,
                   int name);
void nsys_put_kernel(nsys_built *one, int64_t start, int64_t end, int64_t correlation);
void nsys_put_range(nsys_built *one, int64_t start, int64_t end, int type,
                    const char *text);

void nsys_read_built(nsys_built *one, gx_trace_file *file, gx_trace_figures **figures);
void nsys_close_both(gx_trace_file *file, gx_trace_figures *figures);
/* Fails the test unless the file is refused as it is expected. */
void nsys_refuse_built(nsys_built *one, const char *text);
void nsys_refuse_path(const char *path, gx_status status, const char *text);

#endif
#endif
