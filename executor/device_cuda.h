/* The GPU half of device.h, called by device.c and only where the build has CUDA.
 * Each function is the one of device.h without the word cuda, and may take for granted
 * that the device is a GPU; none of them is legal between begin and end of a capture. */
#ifndef GX_DEVICE_CUDA_H
#define GX_DEVICE_CUDA_H

#include "device.h"

gx_status gx_device_cuda_count(int *n_devices, gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_info(int ordinal, gx_device_info *info,
                              gx_error *err) GX_MUST_CHECK;
const char *gx_device_cuda_architectures(void);

/* GX_ERR_UNSUPPORTED where the card is older than sm_80 or none of our kernels was built
 * for it; the card is the current one. */
gx_status gx_device_cuda_usable(int ordinal, int cc, gx_error *err) GX_MUST_CHECK;

/* `device` is zeroed but for `ordinal`, and stays the caller's: open fills it and leaves
 * nothing behind when it fails; close takes what a failed open left, too. */
gx_status gx_device_cuda_open(gx_device *device, void *stream,
                              gx_error *err) GX_MUST_CHECK;
void gx_device_cuda_close(gx_device *device);
/* Likewise zeroed: fills in the limits alone, and makes nothing. */
gx_status gx_device_cuda_limits(gx_device *device, gx_error *err) GX_MUST_CHECK;

gx_status gx_device_cuda_enter(const gx_device *device, int *previous,
                               gx_error *err) GX_MUST_CHECK;
void gx_device_cuda_leave(const gx_device *device, int previous);

/* bytes > 0 in all of these; GX_ERR_BROKEN has been dealt with by the caller, and a fault
 * that shows itself here sets device->broken. */
gx_status gx_device_cuda_alloc(gx_device *device, size_t bytes, void **memory,
                               gx_error *err) GX_MUST_CHECK;
void gx_device_cuda_release(gx_device *device, void *memory);
gx_status gx_device_cuda_free_bytes(gx_device *device, size_t *free_bytes,
                                    size_t *total_bytes, gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_upload(gx_device *device, void *to, const void *from,
                                size_t bytes, gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_download(gx_device *device, void *to, const void *from,
                                  size_t bytes, gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_copy(gx_device *device, void *to, const void *from, size_t bytes,
                              gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_fill(gx_device *device, void *memory, int byte, size_t bytes,
                              gx_error *err) GX_MUST_CHECK;
gx_status gx_device_cuda_sync(gx_device *device, gx_error *err) GX_MUST_CHECK;

/* Sets device->broken where `err` (with `status`) tells of a fault after which the device
 * takes no more work. Returns `status`. */
#if GX_HAVE_CUDA
gx_status gx_device_cuda_note(gx_device *device, gx_status status, const gx_error *err);
#else
static inline gx_status gx_device_cuda_note(gx_device *device, gx_status status,
                                            const gx_error *err)
{
    (void)device;
    (void)err;
    return status;
}
#endif

#endif
