/* What a program needs of CUDA: events, and pinned memory on the way in and out. */
#include "exec_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "count_turn.h"
#include "feed.h"
#include "launch.h"
#include "set_branch.h"

/* --- events --- */

gx_status gx_event_make(void **event, unsigned flags, gx_error *err)
{
    cudaEvent_t made = NULL;

    GX_TRY(GX_CUDA(cudaEventCreateWithFlags(&made, flags), err));
    *event = made;
    return GX_OK;
}

void gx_event_destroy(void **event)
{
    if (*event)
        (void)GX_CUDA(cudaEventDestroy(*event), NULL);
    *event = NULL;
}

/* For each lane beside lane 0 that has a unit. */
static gx_status make_lane_events(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const unsigned order = cudaEventDisableTiming;

    for (size_t i = 0; i < plan->n_units; i++) {
        const int lane = plan->units[i].lane;

        if (lane == 0 || exec->join_event[lane])
            continue;
        if (!exec->fork_event)
            GX_TRY(gx_event_make(&exec->fork_event, order, err));
        GX_TRY(gx_event_make(&exec->join_event[lane], order, err));
    }
    return GX_OK;
}

static gx_status check_driver(const char *what, gx_error *err)
{
    int driver = 0;

    GX_TRY(GX_CUDA(cudaDriverGetVersion(&driver), err));
    return gx_need_conditions(driver, what, err);
}

/* What the loop counts with, made and loaded before the capture. */
static gx_status open_loop(gx_exec *exec, gx_error *err)
{
    void *turns = NULL;

    GX_TRY(check_driver("a loop in a graph", err));
    GX_TRY(gx_load_kernel(gx_count_turn_kernel(), 0, "count_turn", err));
    GX_TRY(gx_device_alloc(exec->device, sizeof *exec->turns, &turns, err));
    exec->turns = turns;
    return gx_device_fill(exec->device, turns, 0, sizeof *exec->turns, err);
}

/* Likewise. The body of a branch is a capture of its own beside the step's, which has the
 * lanes' streams. */
static gx_status open_branch(gx_exec *exec, gx_error *err)
{
    cudaStream_t stream = NULL;

    GX_TRY(check_driver("an IF node in a graph", err));
    GX_TRY(gx_load_kernel(gx_set_branch_kernel(), 0, "set_branch", err));
    GX_TRY(GX_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), err));
    exec->branch_stream = stream;
    return GX_OK;
}

/* An event that a capture has used cannot be asked or timed afterwards, so those of the
 * lanes, of the staging and of the timing are never the same. */
gx_status gx_exec_cuda_open(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;

    if (exec->loops)
        GX_TRY(open_loop(exec, err));
    if (exec->branches)
        GX_TRY(open_branch(exec, err));
    for (size_t i = 0; i < plan->n_units; i++)
        if (plan->units[i].signals)
            GX_TRY(gx_event_make(&exec->units[i].event, cudaEventDisableTiming, err));
    GX_TRY(make_lane_events(exec, err));
    for (int i = 0; i < GX_N_STAGING; i++)
        GX_TRY(gx_event_make(&exec->staging[i].event, cudaEventDisableTiming, err));
    GX_TRY(gx_event_make(&exec->time_begin, cudaEventDefault, err));
    return gx_event_make(&exec->time_end, cudaEventDefault, err);
}

static void free_pinned(void *memory)
{
    if (memory)
        (void)GX_CUDA(cudaFreeHost(memory), NULL);
}

void gx_exec_cuda_close(gx_exec *exec)
{
    for (gx_fetch *fetch = exec->fetches; fetch;) {
        gx_fetch *next = fetch->next;

        free_pinned(fetch->memory);
        free(fetch);
        fetch = next;
    }
    exec->fetches = NULL;
    for (int i = 0; i < GX_N_STAGING; i++) {
        free_pinned(exec->staging[i].memory);
        exec->staging[i].memory = NULL;
        gx_event_destroy(&exec->staging[i].event);
    }
    if (exec->branch_stream)
        (void)GX_CUDA(cudaStreamDestroy(exec->branch_stream), NULL);
    exec->branch_stream = NULL;
    gx_event_destroy(&exec->time_begin);
    gx_event_destroy(&exec->time_end);
    gx_event_destroy(&exec->fork_event);
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        gx_event_destroy(&exec->join_event[lane]);
    for (size_t i = 0; exec->units && i < exec->plan->n_units; i++)
        gx_event_destroy(&exec->units[i].event);
}

/* --- on the way in --- */

gx_status gx_exec_cuda_stage(gx_exec *exec, size_t bytes, gx_staging **staging,
                             gx_error *err)
{
    gx_staging *slot = &exec->staging[exec->next_staging];

    *staging = NULL;
    if (slot->in_use) {
        GX_TRY(GX_CUDA(cudaEventSynchronize(slot->event), err));
        slot->in_use = false;
    }
    if (slot->bytes < bytes) {
        free_pinned(slot->memory);
        slot->memory = NULL;
        slot->bytes = 0;
        GX_TRY(GX_CUDA(cudaMallocHost(&slot->memory, bytes), err));
        slot->bytes = bytes;
    }
    exec->next_staging = (exec->next_staging + 1) % GX_N_STAGING;
    *staging = slot;
    return GX_OK;
}

gx_status gx_exec_cuda_send(gx_exec *exec, gx_staging *staging, void *to, size_t bytes,
                            gx_error *err)
{
    const cudaStream_t stream = exec->device->stream;

    GX_TRY(GX_CUDA(
        cudaMemcpyAsync(to, staging->memory, bytes, cudaMemcpyHostToDevice, stream),
        err));
    gx_status st = GX_CUDA(cudaEventRecord(staging->event, stream), err);
    /* Without the event nothing says when the memory is free again. */
    if (st != GX_OK)
        return gx_first(st, GX_CUDA(cudaStreamSynchronize(stream), err));
    staging->in_use = true;
    return GX_OK;
}

/* --- on the way out --- */

static gx_status new_fetch(gx_exec *exec, size_t bytes, gx_fetch **fetch, gx_error *err)
{
    gx_fetch *made = calloc(1, sizeof *made);

    *fetch = NULL;
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a fetch");
    const gx_status st = GX_CUDA(cudaMallocHost(&made->memory, bytes), err);
    if (st != GX_OK) {
        free(made);
        return st;
    }
    made->capacity = bytes;
    made->next = exec->fetches;
    exec->fetches = made;
    *fetch = made;
    return GX_OK;
}

gx_status gx_exec_cuda_fetch(gx_exec *exec, void *to, const void *from, size_t bytes,
                             gx_error *err)
{
    gx_fetch *fetch = exec->fetches;

    while (fetch && (fetch->bytes > 0 || fetch->capacity < bytes))
        fetch = fetch->next;
    if (!fetch)
        GX_TRY(new_fetch(exec, bytes, &fetch, err));
    GX_TRY(GX_CUDA(cudaMemcpyAsync(fetch->memory, from, bytes, cudaMemcpyDeviceToHost,
                                   exec->device->stream),
                   err));
    fetch->to = to;
    fetch->bytes = bytes;
    return GX_OK;
}

gx_status gx_exec_cuda_deliver(gx_exec *exec, gx_error *err)
{
    const gx_status st = GX_CUDA(cudaStreamSynchronize(exec->device->stream), err);

    for (gx_fetch *fetch = exec->fetches; fetch; fetch = fetch->next) {
        if (st == GX_OK && fetch->bytes > 0)
            memcpy(fetch->to, fetch->memory, fetch->bytes);
        fetch->bytes = 0;
    }
    return st == GX_OK && exec->feed ? gx_feed_cuda_collect(exec, err) : st;
}

/* --- timing --- */

gx_status gx_exec_cuda_mark(gx_exec *exec, bool end, gx_error *err)
{
    const cudaEvent_t event = end ? exec->time_end : exec->time_begin;

    return GX_CUDA(cudaEventRecord(event, exec->device->stream), err);
}

gx_status gx_exec_cuda_elapsed(gx_exec *exec, double *seconds, gx_error *err)
{
    float ms = 0;

    GX_TRY(GX_CUDA(cudaEventElapsedTime(&ms, exec->time_begin, exec->time_end), err));
    *seconds = 1e-3 * (double)ms;
    return GX_OK;
}
