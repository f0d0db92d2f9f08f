/* A device to work on: memory, copies and order; the CPU is one too. Only device.c and
 * device_cuda.c allocate device memory. */
#ifndef GX_DEVICE_H
#define GX_DEVICE_H

#include <gexec/exec.h>

#include "ops.h"

enum { GX_ALIGNMENT = 256 };

typedef struct gx_device {
    int ordinal;  /* GX_CPU, or a GPU's ordinal */
    void *stream; /* the stream of lane 0; NULL on the CPU */
    bool owns_stream;
    void *lane_stream[GX_MAX_LANES]; /* [0] is stream; the others are made at open */
    void *lt;                        /* cublasLtHandle_t, made at open */
    int n_sm, cc;
    size_t shared_optin_bytes;
    bool broken;    /* a fault was seen: each later call returns GX_ERR_BROKEN */
    bool capturing; /* between begin and end of a capture: nothing else is legal */
} gx_device;

/* Opens a device: streams (non-blocking), the cuBLASLt handle, limits. `stream` may be
 * the caller's. GX_ERR_NO_DEVICE or GX_ERR_UNSUPPORTED with the reason. */
gx_status gx_device_open(int ordinal, void *stream, gx_device **device,
                         gx_error *err) GX_MUST_CHECK;
void gx_device_close(gx_device *device);

/* Makes the device current and remembers what was; leave puts it back. No-ops on the CPU.
 */
gx_status gx_device_enter(const gx_device *device, int *previous,
                          gx_error *err) GX_MUST_CHECK;
void gx_device_leave(const gx_device *device, int previous);

/* GX_ALIGNMENT-aligned memory, at least one byte; not cleared. */
gx_status gx_device_alloc(gx_device *device, size_t bytes, void **memory,
                          gx_error *err) GX_MUST_CHECK;
void gx_device_release(gx_device *device, void *memory);
gx_status gx_device_free_bytes(gx_device *device, size_t *free_bytes, size_t *total_bytes,
                               gx_error *err) GX_MUST_CHECK;

/* In the order of lane 0's stream. upload and download wait; copy and fill do not. */
gx_status gx_device_upload(gx_device *device, void *to, const void *from, size_t bytes,
                           gx_error *err) GX_MUST_CHECK;
gx_status gx_device_download(gx_device *device, void *to, const void *from, size_t bytes,
                             gx_error *err) GX_MUST_CHECK;
gx_status gx_device_copy(gx_device *device, void *to, const void *from, size_t bytes,
                         gx_error *err) GX_MUST_CHECK;
gx_status gx_device_fill(gx_device *device, void *memory, int byte, size_t bytes,
                         gx_error *err) GX_MUST_CHECK;
/* The first `made` bytes again and again, up to `bytes`; made > 0 where bytes > 0. */
gx_status gx_device_repeat(gx_device *device, void *memory, size_t made, size_t bytes,
                           gx_error *err) GX_MUST_CHECK;
gx_status gx_device_sync(gx_device *device, gx_error *err) GX_MUST_CHECK;

/* The launch context for a lane; workspace and programmatic flags are the caller's. */
gx_ctx gx_device_ctx(const gx_device *device, int lane);

/* The same before a device is open, for `refuses`: its limits alone. */
gx_status gx_device_limits(int ordinal, gx_ctx *ctx, gx_error *err) GX_MUST_CHECK;

/* A workspace behind tickets of its own, see gx_ctx; NULL for no bytes. The device's
 * memory holds gx_workspace_size of them. */
gx_status gx_workspace_alloc(gx_device *device, size_t bytes, void **workspace,
                             gx_error *err) GX_MUST_CHECK;
void gx_workspace_release(gx_device *device, void *workspace);

/* Puts it into a context. */
static inline void gx_workspace_use(gx_ctx *ctx, void *workspace, size_t bytes)
{
    ctx->workspace = workspace;
    ctx->workspace_bytes = bytes;
    ctx->tickets =
        workspace ? (unsigned *)(void *)((char *)workspace - GX_TICKET_BYTES) : NULL;
}

static inline size_t gx_workspace_size(size_t bytes)
{
    if (bytes > SIZE_MAX - GX_TICKET_BYTES)
        return SIZE_MAX; /* which nothing has */
    return bytes > 0 ? bytes + GX_TICKET_BYTES : 0;
}

/* Bytes that an element of `dtype` takes on this device: 8 on the CPU, whatever the type.
 */
size_t gx_device_element_bytes(const gx_device *device, gx_dtype dtype);

/* Host values <-> the device's form: converts n elements with rounding. `host_dtype` is
 * the declared type, GX_F32 or GX_F64. Waits. On an exact CPU state nothing is rounded.
 */
gx_status gx_device_put(gx_device *device, void *to, gx_dtype dtype, const void *host,
                        gx_dtype host_dtype, int64_t n, bool exact,
                        gx_error *err) GX_MUST_CHECK;
gx_status gx_device_get(gx_device *device, void *host, gx_dtype host_dtype,
                        const void *from, gx_dtype dtype, int64_t n,
                        gx_error *err) GX_MUST_CHECK;

/* The same conversion between two places of host memory. */
gx_status gx_device_convert(void *to, gx_dtype to_dtype, const void *from,
                            gx_dtype from_dtype, int64_t n, gx_error *err) GX_MUST_CHECK;

#endif
