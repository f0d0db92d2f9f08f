/* The launch seam, the checks of CUDA and cuBLASLt calls, and the driver's log lines. */
#include "launch.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cuda_compat.h"

#ifndef GX_CUDA_ARCHITECTURES
#define GX_CUDA_ARCHITECTURES "unknown"
#endif

/* --- the driver's log --- */

enum { LOG_LINES = 8, LOG_LINE_SIZE = 256 };

/* Lines that the driver wrote and no error has taken yet, with the thread they came on.
 */
typedef struct log_line {
    pthread_t thread;
    bool fresh;
    char text[LOG_LINE_SIZE];
} log_line;

static struct {
    pthread_mutex_t lock;
    atomic_bool registered; /* or known to be missing */
    log_line line[LOG_LINES];
    unsigned next;
} driver_log = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_log_line(void *user, unsigned level, char *message, size_t length)
{
    (void)user;
    (void)level;
    if (message == NULL)
        return;
    pthread_mutex_lock(&driver_log.lock);
    log_line *line = &driver_log.line[driver_log.next];

    driver_log.next = (driver_log.next + 1) % LOG_LINES;
    if (length >= sizeof line->text)
        length = sizeof line->text - 1;
    memcpy(line->text, message, length);
    line->text[length] = '\0';
    while (length > 0 &&
           (line->text[length - 1] == '\n' || line->text[length - 1] == '\0'))
        line->text[--length] = '\0';
    line->thread = pthread_self();
    line->fresh = true;
    pthread_mutex_unlock(&driver_log.lock);
}

/* Takes this thread's newest line into `text`, and forgets its older ones. */
static bool take_log_line(char *text, size_t size)
{
    bool found = false;

    pthread_mutex_lock(&driver_log.lock);
    for (unsigned back = 1; back <= LOG_LINES; back++) {
        log_line *line =
            &driver_log.line[(driver_log.next + LOG_LINES - back) % LOG_LINES];

        if (!line->fresh || !pthread_equal(line->thread, pthread_self()))
            continue;
        if (!found)
            snprintf(text, size, "%s", line->text);
        found = true;
        line->fresh = false;
    }
    pthread_mutex_unlock(&driver_log.lock);
    return found;
}

/* Asks the driver for its log lines, so that errors can quote them: once per process. The
 * runtime loads the driver's library itself; before it has, there is nothing to ask. */
static void start_driver_log(void)
{
    if (atomic_load_explicit(&driver_log.registered, memory_order_acquire))
        return;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (library == NULL)
        return;
    if (!atomic_exchange(&driver_log.registered, true)) {
        void *symbol = dlsym(library, "cuLogsRegisterCallback");
        gx_driver_log_register_fn *register_callback = NULL;
        void *handle = NULL;

        if (symbol != NULL) {
            memcpy(&register_callback, &symbol, sizeof symbol);
            /* Without the log an error is only less wordy. */
            (void)register_callback(keep_log_line, NULL, &handle);
        }
    }
    dlclose(library);
}

/* --- checks --- */

static gx_status status_of_cuda(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return GX_OK;
    case cudaErrorMemoryAllocation:
        return GX_ERR_DEVICE_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
        return GX_ERR_NO_DEVICE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorNotSupported:
    case cudaErrorInvalidClusterSize:
    case cudaErrorCallRequiresNewerDriver:
        return GX_ERR_UNSUPPORTED;
    default:
        return GX_ERR_CUDA;
    }
}

gx_status gx_check_cuda(int cuda_error, const char *call, const char *file, int line,
                        gx_error *err)
{
    const cudaError_t error = (cudaError_t)cuda_error;
    char log[LOG_LINE_SIZE];

    start_driver_log();
    if (error == cudaSuccess)
        return GX_OK;
    (void)cudaGetLastError();
    const bool has_log = take_log_line(log, sizeof log);

    return gx_fail(err, status_of_cuda(error), cuda_error, file, line, "%s: %s (%s)%s%s",
                   call, cudaGetErrorString(error), cudaGetErrorName(error),
                   has_log ? "; driver: " : "", has_log ? log : "");
}

gx_status gx_check_cublas(int cublas_status, const char *call, const char *file, int line,
                          gx_error *err)
{
    const cublasStatus_t status = (cublasStatus_t)cublas_status;
    gx_status ours = GX_ERR_CUBLAS;
    char log[LOG_LINE_SIZE];

    start_driver_log();
    if (status == CUBLAS_STATUS_SUCCESS)
        return GX_OK;
    (void)cudaGetLastError();
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        ours = GX_ERR_DEVICE_MEMORY;
    else if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
             status == CUBLAS_STATUS_ARCH_MISMATCH)
        ours = GX_ERR_UNSUPPORTED;
    const bool has_log = take_log_line(log, sizeof log);

    return gx_fail(err, ours, cublas_status, file, line, "%s: %s (%s)%s%s", call,
                   cublasLtGetStatusString(status), cublasLtGetStatusName(status),
                   has_log ? "; driver: " : "", has_log ? log : "");
}

/* --- kernels --- */

gx_status gx_launch(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                    dim3 block, size_t shared_bytes, void **args, gx_error *err)
{
    return gx_launch_cluster(ctx, name, kernel, grid, block, 1, shared_bytes, args, err);
}

static cudaLaunchAttribute cluster_of(unsigned blocks)
{
    cudaLaunchAttribute attribute;

    memset(&attribute, 0, sizeof attribute);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 1;
    attribute.val.clusterDim.y = blocks;
    attribute.val.clusterDim.z = 1;
    return attribute;
}

gx_status gx_launch_cluster(gx_ctx *ctx, const char *name, const void *kernel, dim3 grid,
                            dim3 block, unsigned cluster, size_t shared_bytes,
                            void **args, gx_error *err)
{
    const bool first = ctx->n_launched == 0;
    const bool programmatic =
        ctx->programmatic && ctx->cc >= 90 && (!first || ctx->programmatic_first);
    cudaLaunchAttribute attributes[2];
    unsigned n_attributes = 0;
    char call[160];

    assert(grid.x > 0 && grid.y > 0 && grid.z > 0);
    memset(attributes, 0, sizeof attributes);
    if (programmatic) {
        attributes[n_attributes].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[n_attributes++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1)
        attributes[n_attributes++] = cluster_of(cluster);
    const cudaLaunchConfig_t config = {
        .gridDim = grid,
        .blockDim = block,
        .dynamicSmemBytes = shared_bytes,
        .stream = ctx->stream,
        .attrs = attributes,
        .numAttrs = n_attributes,
    };
    const cudaError_t error = cudaLaunchKernelExC(&config, kernel, args);

    if (error == cudaSuccess) {
        ctx->n_launched++;
        return GX_OK;
    }
    snprintf(call, sizeof call,
             "cudaLaunchKernelExC(%s, grid %u x %u x %u, block %u, shared %zu)", name,
             grid.x, grid.y, grid.z, block.x * block.y * block.z, shared_bytes);
    return gx_check_cuda((int)error, call, __FILE__, __LINE__, err);
}

/* The current device as "sm_90"; "unknown" where it cannot be asked. */
static void device_architecture(char *text, size_t size)
{
    int device = 0, major = 0, minor = 0;

    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
            cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
            cudaSuccess)
        snprintf(text, size, "sm_%d%d", major, minor);
    else
        snprintf(text, size, "unknown");
    (void)cudaGetLastError();
}

static gx_status load_kernel(const void *kernel, size_t shared_bytes, const char *name,
                             gx_error *err)
{
    struct cudaFuncAttributes attributes;
    char call[160];
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);

    if (status_of_cuda(error) == GX_ERR_UNSUPPORTED) {
        char device[16];

        (void)cudaGetLastError();
        device_architecture(device, sizeof device);
        return GX_FAIL_NATIVE(err, GX_ERR_UNSUPPORTED, (int)error,
                              "kernel %s: %s (%s): built for %s; device is %s", name,
                              cudaGetErrorString(error), cudaGetErrorName(error),
                              GX_CUDA_ARCHITECTURES, device);
    }
    snprintf(call, sizeof call, "cudaFuncGetAttributes(%s)", name);
    GX_TRY(gx_check_cuda((int)error, call, __FILE__, __LINE__, err));
    if (shared_bytes <= (size_t)attributes.maxDynamicSharedSizeBytes)
        return GX_OK;
    snprintf(call, sizeof call, "cudaFuncSetAttribute(%s, dynamic shared memory %zu)",
             name, shared_bytes);
    return gx_check_cuda(
        (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)shared_bytes),
        call, __FILE__, __LINE__, err);
}

/* A kernel has one limit, which is raised and never lowered: of two threads that both
 * found the old one, that with the smaller need might set its own last. */
static pthread_mutex_t limits = PTHREAD_MUTEX_INITIALIZER;

gx_status gx_load_kernel(const void *kernel, size_t shared_bytes, const char *name,
                         gx_error *err)
{
    pthread_mutex_lock(&limits);
    const gx_status st = load_kernel(kernel, shared_bytes, name, err);

    pthread_mutex_unlock(&limits);
    return st;
}

/* How many of these clusters the device can run at once: none where a part of it that
 * they have to share has too few multiprocessors, or memory. */
static gx_status find_room(const void *kernel, dim3 block, unsigned cluster,
                           size_t shared_bytes, const char *name, gx_error *err)
{
    cudaLaunchAttribute attribute = cluster_of(cluster);
    const cudaLaunchConfig_t config = {
        .gridDim = { 1, cluster, 1 },
        .blockDim = block,
        .dynamicSmemBytes = shared_bytes,
        .attrs = &attribute,
        .numAttrs = 1,
    };
    char call[160];
    int n_clusters = 0;

    snprintf(call, sizeof call, "cudaOccupancyMaxActiveClusters(%s, %u blocks)", name,
             cluster);
    GX_TRY(
        gx_check_cuda((int)cudaOccupancyMaxActiveClusters(&n_clusters, kernel, &config),
                      call, __FILE__, __LINE__, err));
    if (n_clusters < 1)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "kernel %s: the device has no room for a cluster of %u blocks",
                       name, cluster);
    return GX_OK;
}

gx_status gx_load_cluster_kernel(const void *kernel, dim3 block, unsigned cluster,
                                 size_t shared_bytes, const char *name, gx_error *err)
{
    char call[160];

    GX_TRY(gx_load_kernel(kernel, shared_bytes, name, err));
    snprintf(call, sizeof call, "cudaFuncSetAttribute(%s, clusters of %u)", name,
             cluster);
    if (cluster > GX_MAX_CLUSTER)
        GX_TRY(
            gx_check_cuda((int)cudaFuncSetAttribute(
                              kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                          call, __FILE__, __LINE__, err));
    return find_room(kernel, block, cluster, shared_bytes, name, err);
}
