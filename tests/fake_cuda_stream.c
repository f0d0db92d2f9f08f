/* The simulated CUDA: streams and events. */
#include "fake_cuda_parts.h"

#include <stdlib.h>

/* --- streams --- */

WRAPS(cudaStreamCreateWithFlags);
WRAPS(cudaStreamCreateWithPriority);
WRAPS(cudaStreamGetPriority);
WRAPS(cudaDeviceGetStreamPriorityRange);
WRAPS(cudaStreamDestroy);
WRAPS(cudaStreamSynchronize);
WRAPS(cudaDeviceSynchronize);
WRAPS(cudaStreamWaitEvent);

cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaStreamCreateWithFlags);
    if (fake_is_real())
        error = __real_cudaStreamCreateWithFlags(stream, flags);
    else if (!(*stream = calloc(1, sizeof(fake_stream))))
        abort();
    if (flags != cudaStreamNonBlocking)
        fake_note_mistake("a stream of ours is ordered with the default one");
    fake_born(FAKE_STREAM, *stream, (int)error);
    return error;
}

cudaError_t __wrap_cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                                int priority)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaStreamCreateWithPriority);
    if (fake_is_real())
        error = __real_cudaStreamCreateWithPriority(stream, flags, priority);
    else if (!(*stream = calloc(1, sizeof(fake_stream))))
        abort();
    else
        ((fake_stream *)*stream)->priority = priority;
    if (flags != cudaStreamNonBlocking)
        fake_note_mistake("a stream of ours is ordered with the default one");
    fake_born(FAKE_STREAM, *stream, (int)error);
    return error;
}

cudaError_t __wrap_cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    ENTER(cudaStreamGetPriority);
    if (fake_is_real())
        return __real_cudaStreamGetPriority(stream, priority);
    *priority = ((const fake_stream *)stream)->priority;
    return cudaSuccess;
}

cudaError_t __wrap_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cudaDeviceGetStreamPriorityRange);
    if (fake_is_real())
        return __real_cudaDeviceGetStreamPriorityRange(least, greatest);
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream)
{
    const int planned = fake_enter("cudaStreamDestroy");
    cudaError_t error = cudaSuccess;

    fake_died(FAKE_STREAM, stream);
    if (fake_is_real()) {
        error = __real_cudaStreamDestroy(stream);
    } else {
        if (((fake_stream *)stream)->capture)
            fake_note_mistake("a stream was destroyed while it captured");
        fake_order_finish((fake_stream *)stream);
        free(stream);
    }
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t handle)
{
    const int planned = fake_enter("cudaStreamSynchronize");
    fake_stream *stream = (fake_stream *)handle;
    cudaError_t error = cudaSuccess;

    if (fake_is_real())
        error = __real_cudaStreamSynchronize(handle);
    else if (stream && stream->capture)
        error = fake_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    else
        fake_order_finish(stream);
    fake_rest();
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaDeviceSynchronize(void)
{
    const int planned = fake_enter("cudaDeviceSynchronize");
    const cudaError_t error =
        fake_is_real() ? __real_cudaDeviceSynchronize() : fake_unsafe();

    return planned != 0 ? fake_error(planned) : error;
}

static void follow(fake_front *front, const fake_front *other)
{
    for (size_t i = 0; i < other->n; i++) {
        size_t at = 0;

        while (at < front->n && front->node[at] != other->node[i])
            at++;
        if (at == FAKE_MAX_STREAMS)
            abort();
        front->node[at] = other->node[i];
        front->n += at == front->n;
    }
}

cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event,
                                       unsigned flags)
{
    fake_stream *stream = (fake_stream *)handle;
    const fake_event *waited = (const fake_event *)event;

    ENTER(cudaStreamWaitEvent);
    if (fake_is_real())
        return __real_cudaStreamWaitEvent(handle, event, flags);
    if (!fake_is_alive(FAKE_EVENT, event) || !fake_is_alive(FAKE_STREAM, stream)) {
        fake_note_mistake("a wait for an event or on a stream that is not alive");
        return fake_error(cudaErrorInvalidResourceHandle);
    }
    if (!waited->capture) {
        if (!stream->capture && waited->ms >= 0)
            fake_order_wait(stream, waited);
        /* What lies outside of a capture cannot be waited for inside. */
        return stream->capture && waited->ms >= 0
                   ? fake_invalidate(stream->capture, cudaErrorStreamCaptureIsolation)
                   : cudaSuccess;
    }
    if (waited->capture != fake_capturing())
        return fake_error(cudaErrorCapturedEvent);
    if (!stream->capture)
        fake_take_into(waited->capture, stream);
    follow(&stream->front, &waited->front);
    if (stream == stream->capture->stream[0] && waited->stream->joined < waited->place)
        waited->stream->joined = waited->place;
    if (waited->stream == stream->capture->stream[0] && stream->waited < waited->place)
        stream->waited = waited->place;
    return cudaSuccess;
}

/* --- events --- */

WRAPS(cudaEventCreateWithFlags);
WRAPS(cudaEventDestroy);
WRAPS(cudaEventRecord);
WRAPS(cudaEventSynchronize);
WRAPS(cudaEventElapsedTime);

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaEventCreateWithFlags);
    if (fake_is_real()) {
        error = __real_cudaEventCreateWithFlags(event, flags);
    } else {
        fake_event *made = calloc(1, sizeof *made);

        if (!made)
            abort();
        made->ms = -1;
        made->record = -1;
        made->timed = !(flags & cudaEventDisableTiming);
        *event = (cudaEvent_t)made;
        if (fake_capturing())
            fake_note_mistake("an event was made in a capture");
    }
    fake_born(FAKE_EVENT, *event, (int)error);
    return error;
}

cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event)
{
    const int planned = fake_enter("cudaEventDestroy");
    cudaError_t error = cudaSuccess;

    fake_died(FAKE_EVENT, event);
    if (fake_is_real())
        error = __real_cudaEventDestroy(event);
    else
        free(event);
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    fake_event *event = (fake_event *)handle;

    ENTER(cudaEventRecord);
    if (fake_is_real())
        return __real_cudaEventRecord(handle, stream);
    if (!fake_is_alive(FAKE_EVENT, event)) {
        fake_note_mistake("an event was recorded that is not alive");
        return fake_error(cudaErrorInvalidResourceHandle);
    }
    event->stream = (fake_stream *)stream;
    event->capture = event->stream ? event->stream->capture : NULL;
    event->place = event->stream ? event->stream->last : 0;
    if (event->capture)
        event->front = event->stream->front;
    event->ms = fake_clock();
    if (!event->capture)
        fake_order_record(event->stream, event);
    return cudaSuccess;
}

cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t handle)
{
    const int planned = fake_enter("cudaEventSynchronize");
    const fake_event *event = (const fake_event *)handle;
    cudaError_t error = cudaSuccess;

    if (fake_is_real())
        error = __real_cudaEventSynchronize(handle);
    else if (event->capture)
        error = fake_error(cudaErrorCapturedEvent);
    else
        fake_order_finish_event(event);
    fake_rest();
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    const fake_event *first = (const fake_event *)begin;
    const fake_event *second = (const fake_event *)end;

    ENTER(cudaEventElapsedTime);
    if (fake_is_real())
        return __real_cudaEventElapsedTime(ms, begin, end);
    if (first->capture || second->capture || first->ms < 0 || second->ms < 0 ||
        !first->timed || !second->timed)
        return fake_error(cudaErrorInvalidResourceHandle);
    if (!fake_order_has_passed(first) || !fake_order_has_passed(second))
        return fake_error(cudaErrorNotReady);
    *ms = (float)(second->ms - first->ms);
    return cudaSuccess;
}
