/* CUPTI as it is found when the program runs: its functions, and the one place that knows
 * which version writes which records. */
#ifndef GX_PROFILE_LIBRARY_H
#define GX_PROFILE_LIBRARY_H

#include <gexec/status.h>

#include <cupti.h>

/* A library writes its own newest form of a record. Later forms add fields at the end, so
 * that one which is not older than these headers is read right. */
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 gx_cupti_kernel;
typedef CUpti_ActivityMemcpy6 gx_cupti_copy;
typedef CUpti_ActivityOverhead3 gx_cupti_overhead;
#else
typedef CUpti_ActivityKernel9 gx_cupti_kernel;
typedef CUpti_ActivityMemcpy5 gx_cupti_copy;
typedef CUpti_ActivityOverhead gx_cupti_overhead;
#endif
typedef CUpti_ActivityMemcpyPtoP4 gx_cupti_peer_copy;
typedef CUpti_ActivityMemset4 gx_cupti_fill;
typedef CUpti_ActivityAPI gx_cupti_call;

#define GX_CUPTI_FUNCTIONS(X)         \
    X(cuptiGetVersion)                \
    X(cuptiGetResultString)           \
    X(cuptiSubscribe)                 \
    X(cuptiUnsubscribe)               \
    X(cuptiEnableCallback)            \
    X(cuptiGetCallbackName)           \
    X(cuptiSetThreadIdType)           \
    X(cuptiGetTimestamp)              \
    X(cuptiGetGraphNodeId)            \
    X(cuptiActivitySetAttribute)      \
    X(cuptiActivityRegisterCallbacks) \
    X(cuptiActivityEnable)            \
    X(cuptiActivityDisable)           \
    X(cuptiActivityFlushAll)          \
    X(cuptiActivityGetNextRecord)     \
    X(cuptiActivityGetNumDroppedRecords)

enum { GX_CUPTI_PATH = 512 };

typedef struct gx_cupti {
    void *library;
    char path[GX_CUPTI_PATH];
    uint32_t version;
#define GX_CUPTI_FIELD(name) __typeof__(name) *name;
    GX_CUPTI_FUNCTIONS(GX_CUPTI_FIELD)
#undef GX_CUPTI_FIELD
#ifdef CUPTI_SUBSCRIBER_NAME_MAX_LEN
    __typeof__(cuptiSubscribe_v2) *cuptiSubscribe_v2; /* NULL: the library lacks it */
#endif
} gx_cupti;

/* Loads the library and never unloads it: threads of its own run in it. Looks in
 * GEXEC_CUPTI alone where that is set; else where the loader looks, in the toolkit of the
 * build, in the usual place, and beside cuBLASLt. GX_ERR_UNSUPPORTED with what to do. */
gx_status gx_cupti_load(gx_cupti *cupti, gx_error *err) GX_MUST_CHECK;

/* Turns CUPTI's result into a status that names the call. */
gx_status gx_check_cupti(const gx_cupti *cupti, CUptiResult result, const char *call,
                         const char *file, int line, gx_error *err) GX_MUST_CHECK;
#define GX_CUPTI(cupti, function, arguments, err)                                       \
    gx_check_cupti((cupti), (cupti)->function arguments, #function, __FILE__, __LINE__, \
                   (err))

#endif
