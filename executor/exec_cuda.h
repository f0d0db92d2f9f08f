/* What a program needs of CUDA beyond its device; without CUDA each call fails, and none
 * is made: a state is then on the CPU. */
#ifndef GX_EXEC_CUDA_H
#define GX_EXEC_CUDA_H

#include "exec_model.h"

#if GX_HAVE_CUDA

typedef gx_status gx_walk_fn(void *walk, gx_error *err);

/* What a capture does on the way of a walk. */
typedef struct gx_walk_hooks {
    /* Behind each unit; `in_branch`: it went to the branch's stream. */
    gx_status (*after_unit)(void *user, size_t unit, bool in_branch, gx_error *err);
    /* Enqueues on lane 0 what decides whether the units that can be skipped run;
     * `overlaps`: with a programmatic edge from what stands there. */
    gx_status (*decide)(void *user, bool overlaps, gx_error *err);
    /* Captures those units as a branch: `body`, given `walk`, enqueues them. */
    gx_status (*branch)(void *user, gx_walk_fn *body, void *walk, gx_error *err);
    void *user;
} gx_walk_hooks;

/* run_cuda.c: one step, op by op: what eager mode runs (`hooks` NULL: what can be skipped
 * is enqueued, and skips itself) and what a capture records. `follows`: the step stands
 * behind another in the same graph, so that its first kernel may be programmatic where
 * the step is one chain. */
gx_status gx_walk_cuda(gx_exec *exec, bool follows, const gx_walk_hooks *hooks,
                       gx_error *err) GX_MUST_CHECK;
/* One step of a run in eager mode, fed where its data stream. */
gx_status gx_step_cuda(gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* capture_cuda.c: records K steps, checks the nodes, instantiates, uploads. On failure
 * the exec has no graph, and the next try starts afresh. */
gx_status gx_capture(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
gx_status gx_replay(gx_exec *exec, int64_t n_launches, gx_error *err) GX_MUST_CHECK;
void gx_capture_drop(gx_exec *exec);

/* An event; `flags` cudaEventDisableTiming for order alone, which costs less. */
gx_status gx_event_make(void **event, unsigned flags, gx_error *err) GX_MUST_CHECK;
/* *event may be NULL, and is then. */
void gx_event_destroy(void **event);

/* Events of the lanes, of the staging, and those for timing: all made before any capture.
 */
gx_status gx_exec_cuda_open(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* Frees what open, write, fetch and capture made. The device must be idle. */
void gx_exec_cuda_close(gx_exec *exec);

/* Pinned memory of at least `bytes` that no copy reads any more, from the exec's ring. */
gx_status gx_exec_cuda_stage(gx_exec *exec, size_t bytes, gx_staging **staging,
                             gx_error *err) GX_MUST_CHECK;
/* Copies what was staged to `to`, in the order of lane 0's stream; does not wait. */
gx_status gx_exec_cuda_send(gx_exec *exec, gx_staging *staging, void *to, size_t bytes,
                            gx_error *err) GX_MUST_CHECK;
/* Copies to pinned memory in stream order; the next deliver brings it to `to`. */
gx_status gx_exec_cuda_fetch(gx_exec *exec, void *to, const void *from, size_t bytes,
                             gx_error *err) GX_MUST_CHECK;
/* Waits for the stream, then finishes the fetches. Those of a failed stream are dropped.
 */
gx_status gx_exec_cuda_deliver(gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* Marks the begin or the end of a timed block in lane 0's stream. */
gx_status gx_exec_cuda_mark(gx_exec *exec, bool end, gx_error *err) GX_MUST_CHECK;
/* Device seconds between the marks; both must have passed. */
gx_status gx_exec_cuda_elapsed(gx_exec *exec, double *seconds,
                               gx_error *err) GX_MUST_CHECK;

#else

static inline gx_status gx_exec_no_cuda(gx_error *err)
{
    return GX_FAIL(err, GX_ERR_UNSUPPORTED, "built without CUDA");
}

#define gx_walk_cuda(exec, follows, hooks, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_step_cuda(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_capture(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_replay(exec, n_launches, err) \
    ((void)(exec), (void)(n_launches), gx_exec_no_cuda(err))
#define gx_capture_drop(exec) ((void)(exec))
#define gx_exec_cuda_open(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_exec_cuda_close(exec) ((void)(exec))
#define gx_exec_cuda_stage(exec, bytes, staging, err) \
    ((void)(exec), (void)(bytes), (void)(staging), gx_exec_no_cuda(err))
#define gx_exec_cuda_send(exec, staging, to, bytes, err) \
    ((void)(exec), (void)(staging), (void)(to), (void)(bytes), gx_exec_no_cuda(err))
#define gx_exec_cuda_fetch(exec, to, from, bytes, err) \
    ((void)(exec), (void)(to), (void)(from), (void)(bytes), gx_exec_no_cuda(err))
#define gx_exec_cuda_deliver(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_exec_cuda_mark(exec, end, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_exec_cuda_elapsed(exec, seconds, err) \
    ((void)(exec), (void)(seconds), gx_exec_no_cuda(err))

#endif
#endif
