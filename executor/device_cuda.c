/* The GPU half of a device: streams, the cuBLASLt handle, memory, copies. */
#include "device_cuda.h"

#include "launch.h"
#include "lt_handle.h"

/* Errors after which the context is lost. Others leave the device as it was. */
static bool is_fault(int native)
{
    switch (native) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
        return true;
    default:
        return false;
    }
}

gx_status gx_device_cuda_note(gx_device *device, gx_status status, const gx_error *err)
{
    if (status == GX_ERR_CUDA && err && is_fault(err->native))
        device->broken = true;
    return status;
}

/* A CUDA call on a device that is not capturing: checked, and noted when it is a fault.
 * The error is a fresh one, as `err` may be NULL or hold an earlier failure. */
static gx_status noted(gx_device *device, int cuda_error, const char *call, int line,
                       gx_error *err)
{
    gx_error own = { .status = GX_OK };

    if (cuda_error == cudaSuccess)
        return GX_OK;
    const gx_status st = gx_check_cuda(cuda_error, call, __FILE__, line, &own);
    (void)gx_device_cuda_note(device, st, &own);
    return gx_fail(err, st, own.native, own.file, own.line, "%s", own.message);
}

#define NOTED(device, call, err) noted((device), (int)(call), #call, __LINE__, (err))

static gx_status not_capturing(const gx_device *device, gx_error *err)
{
    return device->capturing
               ? GX_FAIL(err, GX_ERR_STATE, "not possible while a capture is under way")
               : GX_OK;
}

/* --- open and close --- */

gx_status gx_device_cuda_limits(gx_device *device, gx_error *err)
{
    int major = 0;
    int minor = 0;
    int optin = 0;
    const int i = device->ordinal;

    GX_TRY(GX_CUDA(
        cudaDeviceGetAttribute(&device->n_sm, cudaDevAttrMultiProcessorCount, i), err));
    GX_TRY(GX_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i),
                   err));
    GX_TRY(GX_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i),
                   err));
    GX_TRY(GX_CUDA(
        cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, i), err));
    device->cc = 10 * major + minor;
    device->shared_optin_bytes = (size_t)optin;
    return GX_OK;
}

/* The step waits for lane 0 in the end, and lane 2 fills the time that the others leave:
 * a block of a lower lane goes first wherever there is room for one. Each lane has a
 * priority below the lane before it, as far as the card has them; a smaller number is a
 * higher one. Lane 0 is only as high as it takes, or is the caller's, and then as it is.
 */
static gx_status find_priorities(void *stream, int priority[GX_MAX_LANES], gx_error *err)
{
    int least = 0, greatest = 0;

    GX_TRY(GX_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest), err));
    priority[0] = least - (GX_MAX_LANES - 1);
    if (stream)
        GX_TRY(GX_CUDA(cudaStreamGetPriority(stream, &priority[0]), err));
    else if (priority[0] < greatest)
        priority[0] = greatest;
    for (int lane = 1; lane < GX_MAX_LANES; lane++)
        priority[lane] =
            priority[lane - 1] < least ? priority[lane - 1] + 1 : priority[lane - 1];
    return GX_OK;
}

static gx_status make_streams(gx_device *device, void *stream, gx_error *err)
{
    int priority[GX_MAX_LANES];

    GX_TRY(find_priorities(stream, priority, err));
    device->lane_stream[0] = stream;
    for (int lane = stream ? 1 : 0; lane < GX_MAX_LANES; lane++) {
        cudaStream_t made = NULL;

        GX_TRY(GX_CUDA(
            cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority[lane]),
            err));
        device->lane_stream[lane] = made;
        device->owns_stream |= lane == 0;
    }
    device->stream = device->lane_stream[0];
    return GX_OK;
}

gx_status gx_device_cuda_open(gx_device *device, void *stream, gx_error *err)
{
    int previous = 0;
    int n_devices = 0;

    GX_TRY(gx_device_cuda_count(&n_devices, err));
    if (device->ordinal < 0 || device->ordinal >= n_devices)
        return GX_FAIL(err, GX_ERR_NO_DEVICE, "there is no GPU %d; this machine has %d",
                       device->ordinal, n_devices);
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    gx_status st = gx_device_cuda_limits(device, err);
    if (st == GX_OK)
        st = gx_device_cuda_usable(device->ordinal, device->cc, err);
    if (st == GX_OK)
        st = make_streams(device, stream, err);
    if (st == GX_OK)
        st = gx_lt_handle_acquire(device->ordinal, &device->lt, err);
    gx_device_cuda_leave(device, previous);
    if (st != GX_OK)
        gx_device_cuda_close(device);
    return st;
}

/* What fails on the way out has no one left to act on it, and must not keep the rest from
 * being freed. */
void gx_device_cuda_close(gx_device *device)
{
    int previous = device->ordinal;

    (void)gx_first(gx_device_cuda_enter(device, &previous, NULL), GX_OK);
    if (device->lt)
        gx_lt_handle_release(device->ordinal);
    for (int lane = GX_MAX_LANES - 1; lane >= 0; lane--)
        if (device->lane_stream[lane] && (lane > 0 || device->owns_stream))
            (void)GX_CUDA(cudaStreamDestroy(device->lane_stream[lane]), NULL);
    device->lt = NULL;
    device->stream = NULL;
    device->owns_stream = false;
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        device->lane_stream[lane] = NULL;
    gx_device_cuda_leave(device, previous);
}

gx_status gx_device_cuda_enter(const gx_device *device, int *previous, gx_error *err)
{
    GX_TRY(GX_CUDA(cudaGetDevice(previous), err));
    if (*previous != device->ordinal)
        GX_TRY(GX_CUDA(cudaSetDevice(device->ordinal), err));
    return GX_OK;
}

void gx_device_cuda_leave(const gx_device *device, int previous)
{
    if (previous != device->ordinal)
        (void)GX_CUDA(cudaSetDevice(previous), NULL);
}

/* --- memory --- */

gx_status gx_device_cuda_alloc(gx_device *device, size_t bytes, void **memory,
                               gx_error *err)
{
    int previous = 0;

    *memory = NULL;
    GX_TRY(not_capturing(device, err));
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    const gx_status st = NOTED(device, cudaMalloc(memory, bytes), err);
    gx_device_cuda_leave(device, previous);
    return st;
}

void gx_device_cuda_release(gx_device *device, void *memory)
{
    int previous = device->ordinal;

    if (!memory)
        return;
    (void)gx_first(gx_device_cuda_enter(device, &previous, NULL), GX_OK);
    (void)NOTED(device, cudaFree(memory), NULL);
    gx_device_cuda_leave(device, previous);
}

gx_status gx_device_cuda_free_bytes(gx_device *device, size_t *free_bytes,
                                    size_t *total_bytes, gx_error *err)
{
    int previous = 0;

    GX_TRY(not_capturing(device, err));
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    const gx_status st = NOTED(device, cudaMemGetInfo(free_bytes, total_bytes), err);
    gx_device_cuda_leave(device, previous);
    return st;
}

/* --- in the order of lane 0's stream --- */

static gx_status enqueue_copy(gx_device *device, void *to, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind, bool wait, gx_error *err)
{
    int previous = 0;

    GX_TRY(not_capturing(device, err));
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    gx_status st =
        NOTED(device, cudaMemcpyAsync(to, from, bytes, kind, device->stream), err);
    if (st == GX_OK && wait)
        st = NOTED(device, cudaStreamSynchronize(device->stream), err);
    gx_device_cuda_leave(device, previous);
    return st;
}

/* The wait makes pageable memory safe: a copy from it may return before it has ended. */
gx_status gx_device_cuda_upload(gx_device *device, void *to, const void *from,
                                size_t bytes, gx_error *err)
{
    return enqueue_copy(device, to, from, bytes, cudaMemcpyHostToDevice, true, err);
}

gx_status gx_device_cuda_download(gx_device *device, void *to, const void *from,
                                  size_t bytes, gx_error *err)
{
    return enqueue_copy(device, to, from, bytes, cudaMemcpyDeviceToHost, true, err);
}

gx_status gx_device_cuda_copy(gx_device *device, void *to, const void *from, size_t bytes,
                              gx_error *err)
{
    return enqueue_copy(device, to, from, bytes, cudaMemcpyDeviceToDevice, false, err);
}

gx_status gx_device_cuda_fill(gx_device *device, void *memory, int byte, size_t bytes,
                              gx_error *err)
{
    int previous = 0;

    GX_TRY(not_capturing(device, err));
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    const gx_status st =
        NOTED(device, cudaMemsetAsync(memory, byte, bytes, device->stream), err);
    gx_device_cuda_leave(device, previous);
    return st;
}

gx_status gx_device_cuda_sync(gx_device *device, gx_error *err)
{
    int previous = 0;

    GX_TRY(not_capturing(device, err));
    GX_TRY(gx_device_cuda_enter(device, &previous, err));
    const gx_status st = NOTED(device, cudaStreamSynchronize(device->stream), err);
    gx_device_cuda_leave(device, previous);
    return st;
}
