/* The names in an Nsight Systems export that other tables refer to by number. */
#ifndef GX_NSYS_NAMES_H
#define GX_NSYS_NAMES_H

#include "nsys_db.h"
#include "trace_file.h"

typedef struct gx_nsys_name {
    int64_t process, id; /* the process is 0 where ids belong to the whole file */
    uint32_t text;
} gx_nsys_name;

/* In order after gx_nsys_names_sort. */
typedef struct gx_nsys_names {
    gx_nsys_name *items;
    size_t n, room;
} gx_nsys_names;

gx_status gx_nsys_names_add(gx_nsys_names *names, int64_t process, int64_t id,
                            uint32_t text, gx_error *err) GX_MUST_CHECK;
void gx_nsys_names_sort(gx_nsys_names *names);
/* Text 0, the empty one, where there is none. */
uint32_t gx_nsys_names_find(const gx_nsys_names *names, int64_t process, int64_t id);
void gx_nsys_names_free(gx_nsys_names *names);

/* All of StringIds. It may hold the environment of the process that was profiled: only
 * what an event names is ever shown. */
gx_status gx_nsys_names_read(gx_nsys_db *db, gx_trace *trace, gx_nsys_names *names,
                             gx_error *err) GX_MUST_CHECK;

/* Versions, how graphs were traced, and the names of the GPUs, into the file. */
gx_status gx_nsys_about_read(gx_nsys_db *db, gx_trace_file *file,
                             gx_error *err) GX_MUST_CHECK;

#endif
