/* The checks of CUDA and cuBLASLt calls, and the driver's log lines. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cuda_compat.h"
#include "launch.h"

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

gx_status gx_status_of_cuda(int cuda_error)
{
    switch ((cudaError_t)cuda_error) {
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

    return gx_fail(err, gx_status_of_cuda(cuda_error), cuda_error, file, line,
                   "%s: %s (%s)%s%s", call, cudaGetErrorString(error),
                   cudaGetErrorName(error), has_log ? "; driver: " : "",
                   has_log ? log : "");
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
