/* Statuses, errors, and how a function fails. */
#ifndef GEXEC_STATUS_H
#define GEXEC_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GX_API __attribute__((visibility("default")))
#define GX_MUST_CHECK __attribute__((warn_unused_result))
#define GX_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define GX_API
#define GX_MUST_CHECK
#define GX_PRINTF(text, first)
#endif

/* code, text, exit status of the command line */
#define GX_STATUS_LIST(X)                                                  \
    X(GX_OK, "ok", 0)                                                      \
    X(GX_ERR_ARGUMENT, "bad argument", 2)                                  \
    X(GX_ERR_MODEL, "the model is not valid", 2)                           \
    X(GX_ERR_SHAPE, "shapes or types do not fit", 2)                       \
    X(GX_ERR_LIMIT, "a limit was passed", 2)                               \
    X(GX_ERR_DATA, "data out of range", 2)                                 \
    X(GX_ERR_READ, "a file could not be read", 2)                          \
    X(GX_ERR_STATE, "the call is not valid now", 2)                        \
    X(GX_ERR_NO_DEVICE, "no usable GPU", 3)                                \
    X(GX_ERR_UNSUPPORTED, "this machine or build lacks what is needed", 3) \
    X(GX_ERR_WRITE, "a file could not be written", 4)                      \
    X(GX_ERR_MEMORY, "out of host memory", 4)                              \
    X(GX_ERR_DEVICE_MEMORY, "out of device memory", 4)                     \
    X(GX_ERR_CUDA, "a CUDA call failed", 4)                                \
    X(GX_ERR_CUBLAS, "a cuBLASLt call failed", 4)                          \
    X(GX_ERR_CAPTURE, "the capture is not what the plan says", 4)          \
    X(GX_ERR_BROKEN, "the device failed earlier", 4)

typedef enum gx_status {
#define GX_STATUS_ENUM(code, text, exit_status) code,
    GX_STATUS_LIST(GX_STATUS_ENUM)
#undef GX_STATUS_ENUM
} gx_status;

enum { GX_MESSAGE_SIZE = 1024 };

/* Filled where a failure is found. The first failure is kept: a later one, such as that
 * of a cleanup, does not replace it. Public functions clear it on entry. */
typedef struct gx_error {
    gx_status status;
    int native;       /* errno, cudaError_t or cublasStatus_t; 0 when there is none */
    const char *file; /* our source, a static string */
    int line;
    char message[GX_MESSAGE_SIZE];
} gx_error;

/* A short text for a status, static; never NULL. */
GX_API const char *gx_status_text(gx_status status);

/* The status's name, such as "GX_ERR_SHAPE". */
GX_API const char *gx_status_name(gx_status status);

/* What the command line exits with for this status: 0, 2, 3 or 4. */
GX_API int gx_status_exit(gx_status status);

/* Fills `err` unless it is NULL or already holds a failure. Returns `status`. */
GX_API gx_status gx_fail(gx_error *err, gx_status status, int native, const char *file,
                         int line, const char *format, ...) GX_PRINTF(6, 7);

/* Forgets an earlier failure. NULL is allowed. */
GX_API void gx_error_clear(gx_error *err);

/* Puts "prefix: " before the message that `err` holds, once; for the walk that knows
 * which op failed. Does nothing where err is NULL or holds no failure. */
GX_API void gx_error_prefix(gx_error *err, const char *prefix);

#define GX_FAIL(err, status, ...) \
    gx_fail((err), (status), 0, __FILE__, __LINE__, __VA_ARGS__)
#define GX_FAIL_NATIVE(err, status, native, ...) \
    gx_fail((err), (status), (native), __FILE__, __LINE__, __VA_ARGS__)

/* Returns from the function on failure. Only where it owns nothing yet. */
#define GX_TRY(call)                             \
    do {                                         \
        const gx_status gx_try_status_ = (call); \
        if (gx_try_status_ != GX_OK)             \
            return gx_try_status_;               \
    } while (0)

/* The first of two statuses that is a failure. */
static inline gx_status gx_first(gx_status a, gx_status b)
{
    return a != GX_OK ? a : b;
}

#ifdef __cplusplus
}
#endif
#endif
