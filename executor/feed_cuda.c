/* Feeding a program on a GPU: pinned slots, the copy lane, and the events between. */
#include "feed.h"

#include "exec_cuda.h"
#include "launch.h"

/* --- open and close --- */

static size_t slot_bytes(const gx_exec *exec)
{
    return (size_t)exec->steps_per_launch * exec->feed->batch_bytes;
}

gx_status gx_feed_cuda_open(gx_exec *exec, gx_error *err)
{
    gx_feed *feed = exec->feed;
    cudaStream_t stream = NULL;
    void *pinned = NULL;

    GX_TRY(GX_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), err));
    feed->stream = stream;
    for (int s = 0; s < feed->n_slots; s++) {
        gx_feed_slot *slot = &feed->slot[s];

        GX_TRY(gx_event_make(&slot->copied, cudaEventDisableTiming, err));
        GX_TRY(GX_CUDA(cudaMallocHost(&pinned, slot_bytes(exec)), err));
        slot->host = pinned;
    }
    for (int i = 0; i < GX_FEED_MARKS; i++) {
        GX_TRY(gx_event_make(&feed->mark[i].start, cudaEventDefault, err));
        GX_TRY(gx_event_make(&feed->mark[i].ready, cudaEventDefault, err));
        GX_TRY(gx_event_make(&feed->mark[i].done, cudaEventDefault, err));
    }
    return GX_OK;
}

void gx_feed_cuda_close(gx_exec *exec)
{
    gx_feed *feed = exec->feed;

    if (feed->stream) {
        /* A copy that was made ahead may be under way. */
        if (!exec->device->broken)
            (void)GX_CUDA(cudaStreamSynchronize(feed->stream), NULL);
        (void)GX_CUDA(cudaStreamDestroy(feed->stream), NULL);
    }
    feed->stream = NULL;
    for (int s = 0; s < feed->n_slots; s++) {
        gx_feed_slot *slot = &feed->slot[s];

        gx_event_destroy(&slot->copied);
        if (slot->host)
            (void)GX_CUDA(cudaFreeHost(slot->host), NULL);
        slot->host = NULL;
    }
    for (int i = 0; i < GX_FEED_MARKS; i++) {
        gx_event_destroy(&feed->mark[i].start);
        gx_event_destroy(&feed->mark[i].ready);
        gx_event_destroy(&feed->mark[i].done);
    }
}

/* --- how long steps waited --- */

/* From the end of the step before, or the begin of the run, to when the batch was there.
 */
static gx_status collect(gx_exec *exec, int i, gx_error *err)
{
    gx_feed *feed = exec->feed;
    gx_feed_mark *mark = &feed->mark[i];
    const gx_feed_mark *before = &feed->mark[(i + GX_FEED_MARKS - 1) % GX_FEED_MARKS];
    float ms = 0;

    if (!mark->pending)
        return GX_OK;
    mark->pending = false;
    GX_TRY(GX_CUDA(
        cudaEventElapsedTime(&ms, mark->first ? mark->start : before->done, mark->ready),
        err));
    exec->stats.data_wait_s += 1e-3 * (double)ms;
    exec->stats.data_steps += mark->n_steps;
    return GX_OK;
}

gx_status gx_feed_cuda_collect(gx_exec *exec, gx_error *err)
{
    for (int i = 0; i < GX_FEED_MARKS; i++)
        GX_TRY(collect(exec, i, err));
    return GX_OK;
}

/* --- slots --- */

/* The host waits for the copy that reads the pinned memory, the copy for the step that
 * reads the device's. */
static gx_status fill(gx_exec *exec, gx_feed_slot *slot, int64_t n, gx_error *err)
{
    gx_feed *feed = exec->feed;
    const gx_position at = exec->state->at[feed->walk.part];
    const size_t bytes = (size_t)n * feed->batch_bytes;

    slot->at.known = false;
    if (slot->copying)
        GX_TRY(GX_CUDA(cudaEventSynchronize(slot->copied), err));
    slot->copying = false;
    GX_TRY(gx_feed_gather(exec, at, n, slot->host, err));
    if (slot->reader >= 0)
        GX_TRY(GX_CUDA(
            cudaStreamWaitEvent(feed->stream, feed->mark[slot->reader].done, 0), err));
    GX_TRY(GX_CUDA(cudaMemcpyAsync(slot->device, slot->host, bytes,
                                   cudaMemcpyHostToDevice, feed->stream),
                   err));
    GX_TRY(GX_CUDA(cudaEventRecord(slot->copied, feed->stream), err));
    slot->copying = true;
    slot->at = at;
    slot->n = n;
    return GX_OK;
}

static bool holds(const gx_feed_slot *slot, gx_position at, int64_t n)
{
    return slot->at.known && slot->at.sample == at.sample && slot->at.epoch == at.epoch &&
           slot->n >= n;
}

gx_status gx_feed_cuda_next(gx_exec *exec, int64_t n, gx_error *err)
{
    gx_feed *feed = exec->feed;
    gx_feed_slot *slot = &feed->slot[feed->next];
    gx_feed_mark *mark = &feed->mark[feed->next_mark];
    const cudaStream_t stream = exec->device->stream;

    /* The wait of the oldest launch ends at an event that this one is about to reuse. It
     * has passed: each launch comes after a copy into the slot of the last but one, which
     * came after the launch before that one. */
    GX_TRY(collect(exec, (feed->next_mark + 1) % GX_FEED_MARKS, err));
    mark->first = !feed->in_run;
    if (mark->first)
        GX_TRY(GX_CUDA(cudaEventRecord(mark->start, stream), err));
    if (!holds(slot, exec->state->at[feed->walk.part], n))
        GX_TRY(fill(exec, slot, n, err));
    GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream, slot->copied, 0), err));
    GX_TRY(GX_CUDA(cudaEventRecord(mark->ready, stream), err));
    mark->n_steps = n;
    slot->at.known = false;
    gx_feed_point(exec, feed->next, (int)n - 1);
    return GX_OK;
}

gx_status gx_feed_cuda_launched(gx_exec *exec, int64_t n, gx_error *err)
{
    gx_feed *feed = exec->feed;
    gx_feed_mark *mark = &feed->mark[feed->next_mark];

    feed->slot[feed->next].reader = feed->next_mark;
    GX_TRY(GX_CUDA(cudaEventRecord(mark->done, exec->device->stream), err));
    mark->pending = true;
    feed->in_run = true;
    feed->next_mark = (feed->next_mark + 1) % GX_FEED_MARKS;
    feed->next = (feed->next + 1) % feed->n_slots;
    gx_feed_advance(exec, n);
    return fill(exec, &feed->slot[feed->next], n, err);
}

gx_status gx_feed_cuda_read(gx_exec *exec, gx_error *err)
{
    gx_feed *feed = exec->feed;
    const int last = (feed->next + feed->n_slots - 1) % feed->n_slots;
    const int reader = feed->slot[last].reader;

    if (reader < 0)
        return GX_OK;
    return GX_CUDA(cudaEventRecord(feed->mark[reader].done, exec->device->stream), err);
}

void gx_feed_cuda_reset(gx_exec *exec)
{
    gx_feed *feed = exec->feed;

    if (!exec->device->broken) {
        (void)GX_CUDA(cudaStreamSynchronize(feed->stream), NULL);
        (void)GX_CUDA(cudaStreamSynchronize(exec->device->stream), NULL);
    }
    for (int s = 0; s < feed->n_slots; s++) {
        feed->slot[s].at.known = false;
        feed->slot[s].copying = false;
        feed->slot[s].reader = -1;
    }
    for (int i = 0; i < GX_FEED_MARKS; i++)
        feed->mark[i].pending = false;
}
