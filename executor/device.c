/* A device: the CPU here, a GPU by way of device_cuda.c; and values that change their
 * form on the way between host and device. */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "need.h"
#include "number.h"

#if GX_HAVE_CUDA

#include "device_cuda.h"

#define ON_GPU(call) (call)

#else

static gx_status no_cuda(gx_error *err)
{
    return GX_FAIL(err, GX_ERR_NO_DEVICE,
                   "this gexec was built without CUDA; it has the CPU alone");
}

#define ON_GPU(call) no_cuda(err)

#endif

static gx_status check_whole(const gx_device *device, gx_error *err)
{
    if (device->broken)
        return GX_FAIL(err, GX_ERR_BROKEN,
                       "device %d failed earlier; nothing runs on it now",
                       device->ordinal);
    if (device->capturing)
        return GX_FAIL(err, GX_ERR_STATE, "not possible while a capture is under way");
    return GX_OK;
}

static bool on_cpu(const gx_device *device)
{
    return device->ordinal == GX_CPU;
}

/* --- what there is --- */

bool gx_has_cuda(void)
{
    return GX_HAVE_CUDA;
}

const char *gx_cuda_architectures(void)
{
#if GX_HAVE_CUDA
    return gx_device_cuda_architectures();
#else
    return "";
#endif
}

gx_status gx_device_count(int *n_devices, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(gx_need_place(n_devices, "number of devices", err));
    *n_devices = 0;
    return ON_GPU(gx_device_cuda_count(n_devices, err));
}

/* Of /proc/meminfo, in bytes; 0 when there is no such line. */
static int64_t memory_line(const char *name)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    int64_t bytes = 0;

    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        long long kib;

        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), ": %lld", &kib) == 1) {
            bytes = (int64_t)kib * 1024;
            break;
        }
    }
    fclose(file);
    return bytes;
}

static void cpu_memory(int64_t *free_bytes, int64_t *total_bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE);

    *total_bytes = memory_line("MemTotal");
    *free_bytes = memory_line("MemAvailable");
    if (*total_bytes == 0)
        *total_bytes = sysconf(_SC_PHYS_PAGES) * page;
    if (*free_bytes == 0)
        *free_bytes = sysconf(_SC_AVPHYS_PAGES) * page;
}

gx_status gx_device_info_get(int device, gx_device_info *info, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(gx_need_place(info, "device's figures", err));
    *info = (gx_device_info){ .ordinal = device };
    if (device < GX_CPU)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no device %d", device);
    if (device != GX_CPU)
        return ON_GPU(gx_device_cuda_info(device, info, err));
    snprintf(info->name, sizeof info->name, "CPU");
    cpu_memory(&info->free_bytes, &info->memory_bytes);
    return GX_OK;
}

/* --- open and close --- */

gx_status gx_device_open(int ordinal, void *stream, gx_device **device, gx_error *err)
{
    gx_device *opened;

    *device = NULL;
    if (ordinal < GX_CPU)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no device %d", ordinal);
    if (ordinal == GX_CPU && stream)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the CPU has no streams");
    opened = calloc(1, sizeof *opened);
    if (!opened)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a device");
    opened->ordinal = ordinal;
    if (ordinal != GX_CPU) {
        const gx_status st = ON_GPU(gx_device_cuda_open(opened, stream, err));

        if (st != GX_OK) {
            free(opened);
            return st;
        }
    }
    *device = opened;
    return GX_OK;
}

void gx_device_close(gx_device *device)
{
    if (!device)
        return;
#if GX_HAVE_CUDA
    if (!on_cpu(device))
        gx_device_cuda_close(device);
#endif
    free(device);
}

gx_status gx_device_enter(const gx_device *device, int *previous, gx_error *err)
{
    *previous = -1;
    if (on_cpu(device))
        return GX_OK;
    return ON_GPU(gx_device_cuda_enter(device, previous, err));
}

void gx_device_leave(const gx_device *device, int previous)
{
#if GX_HAVE_CUDA
    if (!on_cpu(device))
        gx_device_cuda_leave(device, previous);
#else
    (void)device;
    (void)previous;
#endif
}

/* --- memory --- */

gx_status gx_device_alloc(gx_device *device, size_t bytes, void **memory, gx_error *err)
{
    int failed;

    *memory = NULL;
    GX_TRY(check_whole(device, err));
    if (bytes == 0)
        bytes = 1;
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_alloc(device, bytes, memory, err));
    failed = posix_memalign(memory, GX_ALIGNMENT, bytes);
    if (failed) {
        *memory = NULL;
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, failed, "out of memory for %zu bytes",
                              bytes);
    }
    return GX_OK;
}

void gx_device_release(gx_device *device, void *memory)
{
    if (!memory)
        return;
#if GX_HAVE_CUDA
    if (!on_cpu(device)) {
        gx_device_cuda_release(device, memory);
        return;
    }
#else
    (void)device;
#endif
    free(memory);
}

gx_status gx_device_free_bytes(gx_device *device, size_t *free_bytes, size_t *total_bytes,
                               gx_error *err)
{
    int64_t unused, total;

    *free_bytes = 0;
    *total_bytes = 0;
    GX_TRY(check_whole(device, err));
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_free_bytes(device, free_bytes, total_bytes, err));
    cpu_memory(&unused, &total);
    *free_bytes = (size_t)unused;
    *total_bytes = (size_t)total;
    return GX_OK;
}

gx_status gx_device_upload(gx_device *device, void *to, const void *from, size_t bytes,
                           gx_error *err)
{
    GX_TRY(check_whole(device, err));
    if (bytes == 0)
        return GX_OK;
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_upload(device, to, from, bytes, err));
    memcpy(to, from, bytes);
    return GX_OK;
}

gx_status gx_device_download(gx_device *device, void *to, const void *from, size_t bytes,
                             gx_error *err)
{
    GX_TRY(check_whole(device, err));
    if (bytes == 0)
        return GX_OK;
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_download(device, to, from, bytes, err));
    memcpy(to, from, bytes);
    return GX_OK;
}

gx_status gx_device_copy(gx_device *device, void *to, const void *from, size_t bytes,
                         gx_error *err)
{
    GX_TRY(check_whole(device, err));
    if (bytes == 0)
        return GX_OK;
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_copy(device, to, from, bytes, err));
    memcpy(to, from, bytes);
    return GX_OK;
}

gx_status gx_device_fill(gx_device *device, void *memory, int byte, size_t bytes,
                         gx_error *err)
{
    GX_TRY(check_whole(device, err));
    if (bytes == 0)
        return GX_OK;
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_fill(device, memory, byte, bytes, err));
    memset(memory, byte, bytes);
    return GX_OK;
}

gx_status gx_device_repeat(gx_device *device, void *memory, size_t made, size_t bytes,
                           gx_error *err)
{
    for (; made < bytes; made *= 2)
        GX_TRY(gx_device_copy(device, (char *)memory + made, memory,
                              bytes - made < made ? bytes - made : made, err));
    return GX_OK;
}

gx_status gx_device_sync(gx_device *device, gx_error *err)
{
    GX_TRY(check_whole(device, err));
    if (!on_cpu(device))
        return ON_GPU(gx_device_cuda_sync(device, err));
    return GX_OK;
}

gx_ctx gx_device_ctx(const gx_device *device, int lane)
{
    return (gx_ctx){
        .stream = device->lane_stream[lane],
        .lt = device->lt,
        .n_sm = device->n_sm,
        .cc = device->cc,
        .shared_optin_bytes = device->shared_optin_bytes,
    };
}

gx_status gx_device_limits(int ordinal, gx_ctx *ctx, gx_error *err)
{
    gx_device probe = { .ordinal = ordinal };

    if (ordinal != GX_CPU)
        GX_TRY(ON_GPU(gx_device_cuda_limits(&probe, err)));
    *ctx = gx_device_ctx(&probe, 0);
    return GX_OK;
}

gx_status gx_workspace_alloc(gx_device *device, size_t bytes, void **workspace,
                             gx_error *err)
{
    void *memory = NULL;

    *workspace = NULL;
    if (bytes == 0)
        return GX_OK;
    GX_TRY(gx_device_alloc(device, gx_workspace_size(bytes), &memory, err));
    const gx_status st = gx_device_fill(device, memory, 0, GX_TICKET_BYTES, err);

    if (st == GX_OK)
        *workspace = (char *)memory + GX_TICKET_BYTES;
    else
        gx_device_release(device, memory);
    return st;
}

void gx_workspace_release(gx_device *device, void *workspace)
{
    if (workspace)
        gx_device_release(device, (char *)workspace - GX_TICKET_BYTES);
}

/* --- values on their way --- */

size_t gx_device_element_bytes(const gx_device *device, gx_dtype dtype)
{
    return on_cpu(device) ? sizeof(double) : gx_dtype_bytes(dtype);
}

static double load_value(const void *from, gx_dtype dtype, int64_t i)
{
    switch (dtype) {
    case GX_F32:
        return ((const float *)from)[i];
    case GX_BF16:
        return gx_bf16_to_float(((const uint16_t *)from)[i]);
    case GX_F16:
        return gx_f16_to_float(((const uint16_t *)from)[i]);
    case GX_I32:
        return ((const int32_t *)from)[i];
    default:
        return ((const double *)from)[i];
    }
}

/* `value` is one that the type holds. */
static void store_value(void *to, gx_dtype dtype, int64_t i, double value)
{
    switch (dtype) {
    case GX_F32:
        ((float *)to)[i] = (float)value;
        break;
    case GX_BF16:
        ((uint16_t *)to)[i] = gx_bf16_from_float((float)value);
        break;
    case GX_F16:
        ((uint16_t *)to)[i] = gx_f16_from_float((float)value);
        break;
    case GX_I32:
        ((int32_t *)to)[i] = (int32_t)value;
        break;
    default:
        ((double *)to)[i] = value;
    }
}

/* n elements from..., of which the first is element `first` of the whole tensor. */
static gx_status convert(void *to, gx_dtype to_dtype, const void *from,
                         gx_dtype from_dtype, gx_dtype round_as, bool exact,
                         int64_t first, int64_t n, gx_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        double value = load_value(from, from_dtype, i);

        if (round_as == GX_I32 && from_dtype != GX_I32) {
            if (!(value > -2147483648.5 && value < 2147483647.5))
                return GX_FAIL(err, GX_ERR_DATA, "element %lld is %g, which no i32 holds",
                               (long long)(first + i), gx_unsigned_nan(value));
            value = rint(value);
        } else if (!exact) {
            value = gx_round_to(round_as, value);
        }
        store_value(to, to_dtype, i, value);
    }
    return GX_OK;
}

enum { CHUNK_ELEMENTS = 1 << 19 };

static int64_t chunk_size(int64_t n)
{
    return n < CHUNK_ELEMENTS ? n : CHUNK_ELEMENTS;
}

static gx_status alloc_chunk(int64_t n, void **chunk, gx_error *err)
{
    const size_t bytes = (size_t)chunk_size(n) * sizeof(double);

    *chunk = malloc(bytes ? bytes : 1);
    if (!*chunk)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for %zu bytes", bytes);
    return GX_OK;
}

gx_status gx_device_put(gx_device *device, void *to, gx_dtype dtype, const void *host,
                        gx_dtype host_dtype, int64_t n, bool exact, gx_error *err)
{
    const size_t host_bytes = gx_dtype_bytes(host_dtype);
    const size_t bytes = gx_dtype_bytes(dtype);
    void *chunk;
    gx_status st = GX_OK;

    GX_TRY(check_whole(device, err));
    if (on_cpu(device))
        return convert(to, GX_F64, host, host_dtype, dtype, exact, 0, n, err);
    if (host_dtype == dtype)
        return gx_device_upload(device, to, host, (size_t)n * bytes, err);
    GX_TRY(alloc_chunk(n, &chunk, err));
    for (int64_t at = 0; at < n && st == GX_OK; at += CHUNK_ELEMENTS) {
        const int64_t count = chunk_size(n - at);

        st = convert(chunk, dtype, (const char *)host + (size_t)at * host_bytes,
                     host_dtype, dtype, false, at, count, err);
        if (st == GX_OK)
            st = gx_device_upload(device, (char *)to + (size_t)at * bytes, chunk,
                                  (size_t)count * bytes, err);
    }
    free(chunk);
    return st;
}

gx_status gx_device_get(gx_device *device, void *host, gx_dtype host_dtype,
                        const void *from, gx_dtype dtype, int64_t n, gx_error *err)
{
    const size_t host_bytes = gx_dtype_bytes(host_dtype);
    const size_t bytes = gx_dtype_bytes(dtype);
    void *chunk;
    gx_status st = GX_OK;

    GX_TRY(check_whole(device, err));
    if (on_cpu(device))
        return convert(host, host_dtype, from, GX_F64, host_dtype, false, 0, n, err);
    if (host_dtype == dtype)
        return gx_device_download(device, host, from, (size_t)n * bytes, err);
    GX_TRY(alloc_chunk(n, &chunk, err));
    for (int64_t at = 0; at < n && st == GX_OK; at += CHUNK_ELEMENTS) {
        const int64_t count = chunk_size(n - at);

        st = gx_device_download(device, chunk, (const char *)from + (size_t)at * bytes,
                                (size_t)count * bytes, err);
        if (st == GX_OK)
            st = convert((char *)host + (size_t)at * host_bytes, host_dtype, chunk, dtype,
                         host_dtype, false, at, count, err);
    }
    free(chunk);
    return st;
}

gx_status gx_device_convert(void *to, gx_dtype to_dtype, const void *from,
                            gx_dtype from_dtype, int64_t n, gx_error *err)
{
    return convert(to, to_dtype, from, from_dtype, to_dtype, false, 0, n, err);
}
