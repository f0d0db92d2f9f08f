/* CUPTI's records read. */
#ifndef GX_PROFILE_RECORDS_H
#define GX_PROFILE_RECORDS_H

#include "profile_join.h"
#include "profile_session.h"

/* True where a record of the buffer began at `until` or before, or has no time. */
bool gx_records_begin_by(const gx_cupti *cupti, const gx_buffer *buffer, int64_t until);

typedef void gx_overhead_fn(void *user, const gx_cupti_overhead *record);

/* Shows `take` (NULL: nobody) the overhead of a buffer that is read no more. */
void gx_records_each_overhead(const gx_cupti *cupti, const gx_buffer *buffer,
                              gx_overhead_fn *take, void *user);

enum { GX_KERNEL_NAMES = 256, GX_CALL_NAMES = 2048 };

typedef struct gx_kernel_name {
    char *symbol;
    uint32_t text;
} gx_kernel_name;

typedef char *gx_demangle_fn(const char *symbol, char *buffer, size_t *length,
                             int *status);

/* Reads into `recorded`, with names that are texts of `trace`. */
typedef struct gx_record_reader {
    const gx_cupti *cupti;
    gx_trace *trace;
    gx_recorded recorded;
    gx_profiler_losses losses;
    /* Texts that were made already: by a hash of the symbol, and by the number of the
     * call (+ 1; driver and runtime). */
    gx_kernel_name kernel_name[GX_KERNEL_NAMES];
    uint32_t call_name[2][GX_CALL_NAMES];
    gx_demangle_fn *demangle; /* of the C++ run time where there is one, or NULL */
} gx_record_reader;

void gx_record_reader_open(gx_record_reader *reader, const gx_cupti *cupti,
                           gx_trace *trace);
void gx_record_reader_close(gx_record_reader *reader);
/* The buffer is read no more, after a failure either: what came with it is freed. */
gx_status gx_record_reader_take(gx_record_reader *reader, const gx_buffer *buffer,
                                gx_error *err) GX_MUST_CHECK;
gx_status gx_record_reader_take_overhead(gx_record_reader *reader,
                                         const gx_cupti_overhead *from,
                                         gx_error *err) GX_MUST_CHECK;

#endif
