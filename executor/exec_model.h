/* A program: a plan bound to a state's memory. */
#ifndef GX_EXEC_MODEL_H
#define GX_EXEC_MODEL_H

#include <time.h>

#include "plan.h"
#include "state.h"

/* Ranges that every program has; that of a unit has the name of its ops. */
typedef enum gx_named_range {
    GX_NAMED_STEP,
    GX_NAMED_FORWARD,
    GX_NAMED_BACKWARD,
    GX_NAMED_OPTIMIZER,
    GX_NAMED_CAPTURE,
    GX_NAMED_REPLAY,
    GX_NAMED_MEASURED,
    GX_N_NAMED_RANGES
} gx_named_range;

/* What an NVTX range says about itself: its category and colour. */
typedef enum gx_range_kind {
    GX_RANGE_PLAIN, /* step, forward, measured: no category of their own */
    GX_RANGE_CAPTURE,
    GX_RANGE_GEMM,
    GX_RANGE_EPILOGUE, /* forward ops other than products */
    GX_RANGE_BWD,
    GX_RANGE_OPTIMIZER,
    GX_RANGE_COPY, /* batches, counters, the log */
    GX_RANGE_REPLAY,
    GX_N_RANGE_KINDS
} gx_range_kind;

typedef struct gx_bound_unit {
    gx_group group; /* calls with real pointers */
    gx_prepared prepared;
    bool is_prepared;
    void *event;      /* cudaEvent_t for lanes, made before capture; NULL: none */
    const char *name; /* the ops of the unit, for messages and ranges */
    gx_range_kind kind;
    const void *range; /* the name, registered with NVTX */
    int n_seen; /* graph nodes that the first good capture saw of it; -1: none yet */
} gx_bound_unit;

/* Pinned memory through which a host tensor travels. */
typedef struct gx_staging {
    void *memory;
    size_t bytes;
    void *event; /* recorded behind the copy: the memory may be reused after it */
    bool in_use;
} gx_staging;

/* A fetch under way: pinned memory that the next sync copies to `to`. */
typedef struct gx_fetch {
    struct gx_fetch *next;
    void *memory;
    size_t capacity;
    void *to;
    size_t bytes; /* 0: free for reuse */
} gx_fetch;

typedef struct gx_feed gx_feed; /* feed.h */

enum {
    GX_N_STAGING = 2,
    /* While a step reads one slot the next batch is copied to the other, and the host
     * gathers the one behind it as soon as the pinned side of the first is read. */
    GX_FEED_SLOTS = 2
};

struct gx_exec {
    const gx_plan *plan;
    gx_state *state;
    gx_device *device; /* the state's */
    int steps_per_launch;
    bool loops;           /* they are the turns of a loop on the device, not unrolled */
    int32_t *turns;       /* on the device: turns of the loop that are done */
    bool branches;        /* a captured step has its updates in a branch */
    void *branch_stream;  /* on which the body of a branch is captured, or NULL */
    gx_arena *memory;     /* host memory of the arrays below */
    gx_call *calls;       /* by node */
    gx_bound_unit *units; /* by unit */
    void *arena;          /* device block */
    void *workspace[GX_MAX_LANES];
    void **value_data; /* by value id; NULL: elided */
    bool *missing;     /* by value id: an input that was never given values */
    size_t n_missing;
    void *fork_event; /* the other lanes start behind lane 0; NULL: there is none */
    void *join_event[GX_MAX_LANES]; /* lane 0 ends behind each that has one */
    gx_feed *feed;                  /* of data that stream; NULL: nothing does */
    void *graph[GX_FEED_SLOTS]; /* cudaGraph_t or NULL, one a slot; without slots one */
    void *graph_exec[GX_FEED_SLOTS]; /* cudaGraphExec_t or NULL */
    void *time_begin, *time_end;     /* events for timing only, never used in a capture */
    gx_staging staging[GX_N_STAGING];
    int next_staging;
    gx_fetch *fetches;
    bool has_run; /* what a step makes has values; true too once the graph is given out */
    bool was_captured; /* a capture stood before: the next one counts as a rebuild */
    struct gx_range_log *range_log; /* of the profiler that is attached, or NULL */
    gx_exec_stats stats;
};

/* run.c: one step on the CPU, op by op. */
gx_status gx_walk_cpu(gx_exec *exec, gx_error *err) GX_MUST_CHECK;

/* exec_memory.c: memory, values, calls and inputs of a new program. */
gx_status gx_exec_bind_memory(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* Points every operand that is value `id` to where the value lives now. */
void gx_exec_point(gx_exec *exec, int32_t id);
/* Prepares a unit's alternative as the plan pinned it; undone by gx_exec_release_unit. */
gx_status gx_exec_prepare_unit(gx_exec *exec, size_t unit, gx_error *err) GX_MUST_CHECK;
void gx_exec_release_unit(gx_exec *exec, size_t unit);

/* exec.c: how each public call on a program begins and ends. enter clears `err`, refuses
 * a broken or a capturing device, and makes the device current; leave is owed only when
 * enter succeeded, and returns `status`. */
gx_status gx_exec_enter(const gx_exec *exec, int *previous, gx_error *err) GX_MUST_CHECK;
gx_status gx_exec_leave(gx_exec *exec, int previous, gx_status status,
                        const gx_error *err);

/* A public call needs an error of its own where the caller gave none: whether the device
 * broke is read from it. */
static inline gx_error *gx_error_start(gx_error *err, gx_error *own)
{
    if (!err) {
        own->status = GX_OK;
        err = own;
    }
    gx_error_clear(err);
    return err;
}

/* Seconds of a clock that only goes forward. */
static inline double gx_exec_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
