/* Feeding a program whose data stream: batches gathered by the host go into slots, ahead
 * of the steps that read them.
 *
 * On a GPU a slot is pinned memory and device memory of the same layout; a copy on a
 * stream of its own (the copy lane) brings one to the other while steps run. Kernels of a
 * graph hold addresses, so each slot has a graph of its own; the copies stand outside the
 * graphs, since one that stood inside could not begin before the step does that waits
 * for it. Events keep order: a step waits for its slot's copy, a copy for the last step
 * that read the slot, the host for the last copy out of the pinned memory. No thread is
 * hidden: gx_exec_run gathers the next batch as soon as a step is submitted, while the
 * device is busy with it.
 *
 * On the CPU there is one slot, filled before each step. */
#ifndef GX_FEED_H
#define GX_FEED_H

#include "exec_model.h"
#include "host_rows.h"

enum {
    GX_FEED_MARKS = 16 /* launches whose events are kept; more than can be under way */
};

typedef struct gx_feed_column {
    int32_t id; /* of the input */
    const gx_host_column *rows;
    size_t offset;   /* in a batch */
    void ***operand; /* every place that holds the input's address */
    size_t n_operands;
} gx_feed_column;

typedef struct gx_feed_slot {
    char *host; /* pinned; the CPU has none */
    char *device;
    void *copied;   /* event: behind the copy */
    bool copying;   /* the pinned memory may still be read */
    gx_position at; /* of the first batch that it holds; not known: it is used up */
    int64_t n;      /* batches that it holds */
    int reader;     /* mark of the last launch that read it; -1: none did */
} gx_feed_slot;

/* Of one launch; `start` only of the first of a run. */
typedef struct gx_feed_mark {
    void *start, *ready, *done;
    int64_t n_steps;
    bool first, pending;
} gx_feed_mark;

struct gx_feed {
    gx_walk walk;
    gx_feed_column *columns;
    size_t n_columns;
    size_t batch_bytes;
    int n_slots, next;     /* the slot of the next launch */
    int at_slot, at_batch; /* where the inputs are */
    gx_feed_slot slot[GX_FEED_SLOTS];
    int32_t *picked;
    bool active;  /* a run is under way that feeds; not in priming and measuring */
    void *stream; /* the copy lane */
    gx_feed_mark mark[GX_FEED_MARKS];
    int next_mark;
    bool in_run; /* a launch of this run came before */
};

/* feed.c */

/* Describes what must be fed: exec->feed, NULL where nothing streams. */
gx_status gx_feed_create(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* Bytes of device memory that the slots take. */
size_t gx_feed_bytes(const gx_exec *exec);
/* Allocates the slots and lets the inputs live in them. */
gx_status gx_feed_open(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* After the calls are bound: finds the operands. */
gx_status gx_feed_find_operands(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
void gx_feed_close(gx_exec *exec);

/* Lets the inputs be batch `batch` of a slot. */
void gx_feed_point(gx_exec *exec, int slot, int batch);
/* A run begins: finds out where the program stands. Nothing where nothing streams. */
gx_status gx_feed_begin(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* It ends, well or not: after a failure nothing is taken for known. */
void gx_feed_end(gx_exec *exec, gx_status status);
/* On the CPU, before and after a step. */
gx_status gx_feed_cpu(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
void gx_feed_advance(gx_exec *exec, int64_t n);
/* Gathers the n batches from `at` on to `to`. */
gx_status gx_feed_gather(gx_exec *exec, gx_position at, int64_t n, char *to,
                         gx_error *err) GX_MUST_CHECK;

/* feed_cuda.c */

#if GX_HAVE_CUDA

/* Pinned memory, the copy lane and the events. */
gx_status gx_feed_cuda_open(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
void gx_feed_cuda_close(gx_exec *exec);
/* Before a launch of n steps: its slot is filled, and the device waits for it. */
gx_status gx_feed_cuda_next(gx_exec *exec, int64_t n, gx_error *err) GX_MUST_CHECK;
/* Behind the launch: moves on, and fills the next slot while the launch runs. */
gx_status gx_feed_cuda_launched(gx_exec *exec, int64_t n, gx_error *err) GX_MUST_CHECK;
/* What was enqueued reads the batch of the last step: no copy overtakes it. */
gx_status gx_feed_cuda_read(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* The device is idle: adds the waits that are not counted yet. */
gx_status gx_feed_cuda_collect(gx_exec *exec, gx_error *err) GX_MUST_CHECK;
/* After a failure: waits for what runs, and forgets it. */
void gx_feed_cuda_reset(gx_exec *exec);

#else

#define gx_feed_cuda_open(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_feed_cuda_close(exec) ((void)(exec))
#define gx_feed_cuda_read(exec, err) ((void)(exec), gx_exec_no_cuda(err))
#define gx_feed_cuda_reset(exec) ((void)(exec))

#endif
#endif
