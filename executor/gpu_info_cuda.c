/* Which GPUs there are and whether they can be used; launch cost; the profiler's window.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_profiler_api.h>

#include "capture.h"
#include "device_cuda.h"
#include "empty.h"
#include "exec_model.h"
#include "launch.h"
#include "stopwatch.h"

#ifndef GX_CUDA_ARCHITECTURES
#define GX_CUDA_ARCHITECTURES "unknown"
#endif

enum { OLDEST_CC = 80, MOST_BUSY_S = 1 };

const char *gx_device_cuda_architectures(void)
{
    return GX_CUDA_ARCHITECTURES;
}

/* --- which GPUs there are --- */

/* What a user can do about it, for the statuses that the first call of CUDA gives. */
static const char *no_device_reason(int native)
{
    switch (native) {
    case cudaErrorInsufficientDriver: /* 35 */
        return "the NVIDIA driver is missing or older than this program's CUDA; install "
               "or "
               "update the driver";
    case cudaErrorNoDevice: /* 100 */
        return "no NVIDIA GPU is visible; look at the card and at CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidDevice: /* 101 */
        return "CUDA_VISIBLE_DEVICES names a GPU that is not there";
    case cudaErrorSystemDriverMismatch: /* 803 */
        return "the driver's library and its kernel module have different versions; "
               "reboot or "
               "reinstall the driver";
    case cudaErrorCompatNotSupportedOnDevice: /* 804 */
        return "CUDA's forward compatibility libraries are in use, which this card does "
               "not "
               "support; take them out of the library path or update the driver";
    case cudaErrorInitializationError: /* 3 */
        return "the driver could not be initialised; a process that forked after using "
               "CUDA "
               "cannot use it, and a container needs the GPU's device files";
    case cudaErrorUnknown: /* 999 */
        return "the driver gave an unknown error; look at the kernel log, and reload the "
               "driver "
               "or reboot";
    default:
        return "the driver refused";
    }
}

static void version_text(int version, char *text, size_t size)
{
    if (version > 0)
        snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
    else
        snprintf(text, size, "none");
}

static gx_status no_device(cudaError_t error, gx_error *err)
{
    int driver = 0;
    int runtime = 0;
    char driver_text[16];
    char runtime_text[16];

    (void)cudaGetLastError();
    /* Neither call needs a device; where one fails its version stays 0. */
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        runtime = 0;
    (void)cudaGetLastError();
    version_text(driver, driver_text, sizeof driver_text);
    version_text(runtime, runtime_text, sizeof runtime_text);
    return GX_FAIL_NATIVE(
        err, GX_ERR_NO_DEVICE, (int)error,
        "no usable GPU: %s (%s, %s; driver's CUDA %s, program's CUDA %s). "
        "The CPU works without one",
        no_device_reason((int)error), cudaGetErrorName(error), cudaGetErrorString(error),
        driver_text, runtime_text);
}

static gx_status device_cc(int ordinal, int *cc, gx_error *err)
{
    int major = 0;
    int minor = 0;

    *cc = 0;
    GX_TRY(GX_CUDA(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), err));
    GX_TRY(GX_CUDA(
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal), err));
    *cc = 10 * major + minor;
    return GX_OK;
}

/* All are counted when one can be used, as an ordinal is its place among all of them. */
static gx_status one_is_new_enough(int n_devices, gx_error *err)
{
    int newest = 0;

    for (int i = 0; i < n_devices; i++) {
        int cc;

        GX_TRY(device_cc(i, &cc, err));
        newest = cc > newest ? cc : newest;
    }
    if (newest >= OLDEST_CC)
        return GX_OK;
    return GX_FAIL(
        err, GX_ERR_NO_DEVICE,
        "no usable GPU: the newest here is sm_%d, and gexec needs sm_%d or newer. "
        "The CPU works without one",
        newest, (int)OLDEST_CC);
}

gx_status gx_device_cuda_count(int *n_devices, gx_error *err)
{
    int n = 0;

    *n_devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess) /* and then `n` means nothing */
        return no_device(error, err);
    if (n <= 0)
        return no_device(cudaErrorNoDevice, err);
    GX_TRY(one_is_new_enough(n, err));
    *n_devices = n;
    return GX_OK;
}

gx_status gx_device_cuda_usable(int ordinal, int cc, gx_error *err)
{
    if (cc < OLDEST_CC)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "GPU %d is sm_%d; gexec needs sm_%d or newer", ordinal, cc,
                       (int)OLDEST_CC);
    return gx_load_kernel(gx_empty_kernel(), 0, "empty", err);
}

static gx_status read_info(int ordinal, gx_device_info *info, gx_error *err)
{
    struct cudaDeviceProp properties;
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    GX_TRY(GX_CUDA(cudaGetDeviceProperties(&properties, ordinal), err));
    GX_TRY(GX_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes), err));
    GX_TRY(GX_CUDA(cudaDriverGetVersion(&info->driver_version), err));
    GX_TRY(GX_CUDA(cudaRuntimeGetVersion(&info->runtime_version), err));
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1,
             properties.name);
    snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "%08x:%02x:%02x.0",
             (unsigned)properties.pciDomainID, (unsigned)properties.pciBusID,
             (unsigned)properties.pciDeviceID);
    info->cc_major = properties.major;
    info->cc_minor = properties.minor;
    info->n_sm = properties.multiProcessorCount;
    info->l2_bytes = properties.l2CacheSize;
    info->memory_bytes = (int64_t)total_bytes;
    info->free_bytes = (int64_t)free_bytes;
    info->cublaslt_version = cublasLtGetVersion();
    return GX_OK;
}

gx_status gx_device_cuda_info(int ordinal, gx_device_info *info, gx_error *err)
{
    const gx_device device = { .ordinal = ordinal };
    int n_devices = 0;
    int previous = 0;

    GX_TRY(gx_device_cuda_count(&n_devices, err));
    if (ordinal < 0 || ordinal >= n_devices)
        return GX_FAIL(err, GX_ERR_NO_DEVICE, "there is no GPU %d; this machine has %d",
                       ordinal, n_devices);
    GX_TRY(gx_device_cuda_enter(&device, &previous, err));
    const gx_status st = read_info(ordinal, info, err);
    gx_device_cuda_leave(&device, previous);
    return st;
}

/* --- what launching costs --- */

typedef struct gx_empty_chain {
    gx_device *device;
    int64_t n_nodes;
} gx_empty_chain;

static gx_status record_empty(void *user, gx_error *err)
{
    const gx_empty_chain *chain = user;
    gx_ctx ctx = gx_device_ctx(chain->device, 0);
    const dim3 one = { 1, 1, 1 };
    void *no_arguments[1] = { NULL };

    for (int64_t i = 0; i < chain->n_nodes; i++)
        GX_TRY(
            gx_launch(&ctx, "empty", gx_empty_kernel(), one, one, 0, no_arguments, err));
    return GX_OK;
}

typedef struct gx_empty_launches {
    gx_device *device;
    void *graph_exec;
    double busy_s;
    gx_stopwatch watch; /* open where the device is kept busy */
} gx_empty_launches;

/* To an idle device, with nothing around it. */
static gx_status time_bare(const gx_empty_launches *l, double *seconds, gx_error *err)
{
    GX_TRY(gx_device_sync(l->device, err));
    const double begin = gx_exec_clock();
    GX_TRY(gx_graph_submit(l->device, l->graph_exec, err));
    *seconds = gx_exec_clock() - begin;
    return GX_OK;
}

/* As gx_exec_time times a replay: between two events, and then the host waits, here for
 * the kernel behind the graph. So what the host does before the next launch is the same,
 * and it has as long to forget what the launch needs. */
static gx_status time_busy(const gx_empty_launches *l, double *seconds, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(l->device, 0);
    uint64_t ns = (uint64_t)(1e9 * l->busy_s);
    void *args[] = { &ns };
    const dim3 one = { 1, 1, 1 };
    double elapsed_s;

    GX_TRY(gx_device_sync(l->device, err));
    GX_TRY(gx_stopwatch_start(&l->watch, l->device, err));
    const double begin = gx_exec_clock();
    GX_TRY(gx_graph_submit(l->device, l->graph_exec, err));
    *seconds = gx_exec_clock() - begin;
    GX_TRY(gx_launch(&ctx, "busy", gx_busy_kernel(), one, one, 0, args, err));
    return gx_stopwatch_stop(&l->watch, l->device, &elapsed_s, err);
}

static gx_status time_launches(const gx_empty_launches *l, int repeats, double *median_s,
                               gx_error *err)
{
    enum { WARM = 3 };
    double *seconds = malloc((size_t)repeats * sizeof *seconds);
    gx_status st = GX_OK;

    if (!seconds)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for %d times", repeats);
    for (int i = -WARM; i < repeats && st == GX_OK; i++) {
        double *const next = &seconds[i < 0 ? 0 : i];

        st = l->busy_s > 0 ? time_busy(l, next, err) : time_bare(l, next, err);
    }
    st = gx_first(st, gx_device_sync(l->device, err));
    if (st == GX_OK)
        *median_s = gx_median(seconds, (size_t)repeats);
    free(seconds);
    return st;
}

static gx_status with_watch(gx_empty_launches *l, int repeats, double *median_s,
                            gx_error *err)
{
    if (!(l->busy_s > 0))
        return time_launches(l, repeats, median_s, err);
    GX_TRY(gx_load_kernel(gx_busy_kernel(), 0, "busy", err));
    GX_TRY(gx_stopwatch_open(&l->watch, err));
    const gx_status st = time_launches(l, repeats, median_s, err);
    gx_stopwatch_close(&l->watch);
    return st;
}

static gx_status empty_graph_host(gx_device *device, int64_t n_nodes, int repeats,
                                  double busy_s, double *median_s, gx_error *err)
{
    gx_empty_chain chain = { .device = device, .n_nodes = n_nodes };
    gx_empty_launches launches = { .device = device, .busy_s = busy_s };
    gx_graph_cost cost;
    void *graph = NULL;

    gx_status st = gx_record(device, record_empty, &chain, &graph, err);
    if (st == GX_OK)
        st = gx_graph_start(device, graph, &launches.graph_exec, &cost, err);
    if (st == GX_OK)
        st = with_watch(&launches, repeats, median_s, err);
    gx_graph_end(graph, launches.graph_exec);
    return st;
}

gx_status gx_empty_graph_host(int device, int64_t n_nodes, int repeats, double busy_s,
                              double *median_s, gx_error *err)
{
    gx_device *opened = NULL;
    int previous = 0;

    gx_error_clear(err);
    if (!median_s || n_nodes < 1 || repeats < 1)
        return GX_FAIL(
            err, GX_ERR_ARGUMENT,
            "an empty graph of %lld nodes, launched %d times: at least one of each "
            "and a place for the result are needed",
            (long long)n_nodes, repeats);
    *median_s = -1;
    if (!(busy_s >= 0 && busy_s <= MOST_BUSY_S))
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "a device that is busy for %g s between launches: it can be for 0 "
                       "to %d s",
                       busy_s, (int)MOST_BUSY_S);
    if (device < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "device %d launches no graphs", device);
    GX_TRY(gx_device_open(device, NULL, &opened, err));
    gx_status st = gx_device_enter(opened, &previous, err);
    if (st == GX_OK) {
        st = empty_graph_host(opened, n_nodes, repeats, busy_s, median_s, err);
        gx_device_leave(opened, previous);
    }
    gx_device_close(opened);
    return st;
}

/* --- the profiler's window --- */

gx_status gx_profiler_window(bool open, gx_error *err)
{
    gx_error_clear(err);
    return open ? GX_CUDA(cudaProfilerStart(), err) : GX_CUDA(cudaProfilerStop(), err);
}
