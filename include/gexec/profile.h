/* Tracing what the device does for an exec, through CUPTI's activity API. CUPTI is looked
 * up at run time, here and nowhere else: where it is missing, too old, held by another
 * tool or not permitted, everything but a trace still works. */
#ifndef GEXEC_PROFILE_H
#define GEXEC_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include <gexec/exec.h>
#include <gexec/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One at a time in a process, and one session of records in its life: later ones have had
 * wrong correlation ids. */
typedef struct gx_profiler gx_profiler;

typedef struct gx_profiler_options {
    int64_t n_records; /* activities that are expected, for the size of the buffers; 0:
                        * not known */
    bool peer_copies; /* copies from device to device too, of which gexec makes none. With
                       * CUPTI 13.0 on an H200 a replay behind a window in which nothing
                       * ran ends in a launch failure where these are asked for */
} gx_profiler_options;

/* What became of the records. A trace is whole where all of these are 0. */
typedef struct gx_profiler_losses {
    int64_t dropped; /* that CUPTI says it dropped, or that there was no room for */
    int64_t unknown; /* of a kind or a version that is not read */
    int64_t corrupt; /* buffers that ended inside a record, and records with a time of no
                      * clock */
} gx_profiler_losses;

/* Whether CUPTI can be loaded, with `text` ("FILE, API version N") where it can; nothing
 * is subscribed. GX_ERR_UNSUPPORTED with the reason. */
GX_API gx_status gx_profiler_available(char *text, size_t size,
                                       gx_error *err) GX_MUST_CHECK;

/* Subscribes, before the first CUDA call of the process: nodes of graphs that were
 * captured earlier have no name. `options` may be NULL. GX_ERR_UNSUPPORTED with the one
 * thing to do about it: built without CUPTI, no library, one that is older than the
 * headers, another tool in the process (by name where CUPTI gives it), not permitted. The
 * caller frees. */
GX_API gx_status gx_profiler_open(const gx_profiler_options *options,
                                  gx_profiler **profiler, gx_error *err) GX_MUST_CHECK;
GX_API void gx_profiler_free(gx_profiler *profiler);

/* From here on the walks, captures and replays of the exec leave ranges in the trace, of
 * the domain "gexec" and with the names that NVTX would have: capture, step, forward,
 * backward, optimizer, units; and "step" around each step that is replayed ("replay"
 * around a launch of several). Legal until the trace is made; exec and profiler may be
 * freed in either order. An exec on the CPU has nothing to trace: GX_ERR_ARGUMENT. No
 * call on an attached exec may run beside a call on its profiler. */
GX_API gx_status gx_profiler_attach(gx_profiler *profiler, gx_exec *exec,
                                    gx_error *err) GX_MUST_CHECK;

/* Records activities from now on, until stop; may be called again after it. Creations of
 * graph nodes, ranges of captures, and overhead (of CUPTI's and the driver's own) ahead
 * of a window (of more than 50,000 records at least the newest so many) are recorded
 * always. Both wait for the device. */
GX_API gx_status gx_profiler_start(gx_profiler *profiler, gx_error *err) GX_MUST_CHECK;
GX_API gx_status gx_profiler_stop(gx_profiler *profiler, gx_error *err) GX_MUST_CHECK;

/* Everything that was recorded, as a trace that is not finished yet, with group (index of
 * the plan's unit), lane and body of each activity that an attached exec launched. Ends
 * the session. Work of a captured graph that
 * sits as a child in another one has no unit: CUPTI does not say what its nodes are
 * clones of. No record where launches were made is an error. The caller frees. */
GX_API gx_status gx_profiler_trace(gx_profiler *profiler, gx_trace **trace,
                                   gx_profiler_losses *losses,
                                   gx_error *err) GX_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
