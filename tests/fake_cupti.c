/* A CUPTI that does as it is told. With FAKE_CUPTI_LACKS it lacks a function. */
#include "fake_cupti.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupti.h>

enum { MAX_KINDS = 128, STEP_NS = 10 };

static CUpti_CallbackFunc subscriber;
static void *subscriber_data;
static bool hears_nodes[2]; /* created, cloned */
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static bool enabled[MAX_KINDS];
static _Atomic uint64_t clock_ns = 1000000;
static uint8_t *buffer;
static size_t buffer_size, buffer_used;

fake_cupti_emit_fn fake_cupti_emit;
fake_cupti_node_fn fake_cupti_node;
fake_cupti_fill_fn fake_cupti_fill;

/* --- the script --- */

/* What stands behind "word=" or after the word itself; NULL: it is not there. */
static const char *scripted(const char *word)
{
    const char *script = getenv("FAKE_CUPTI");
    const size_t length = strlen(word);

    for (; script && *script; script += strspn(script, " ")) {
        if (strncmp(script, word, length) == 0 && strchr("= ", script[length]))
            return script + length + (script[length] == '=');
        script += strcspn(script, " ");
    }
    return NULL;
}

static int number_of(const char *word)
{
    const char *text = scripted(word);

    return text ? atoi(text) : 0;
}

static CUptiResult result_of(const char *word)
{
    return (CUptiResult)number_of(word);
}

/* --- versions and texts --- */

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
    *version = scripted("version") ? (uint32_t)number_of("version") : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
                ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
            : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id,
                                          const char **name)
{
    static const char *const runtime[FAKE_CUPTI_N_CALLS] = {
        [FAKE_CUPTI_KERNEL] = "cudaLaunchKernelExC_v11060",
        [FAKE_CUPTI_FILL] = "cudaMemsetAsync_v3020",
        [FAKE_CUPTI_COPY] = "cudaMemcpyAsync_v3020",
        [FAKE_CUPTI_GRAPH] = "cudaGraphLaunch_v10000",
        [FAKE_CUPTI_OTHER] = "cudaEventRecord_v3020",
    };
    static const char *const driver[FAKE_CUPTI_N_CALLS] = {
        [FAKE_CUPTI_KERNEL] = "cuLaunchKernelEx", [FAKE_CUPTI_FILL] = "cuMemsetD8Async",
        [FAKE_CUPTI_COPY] = "cuMemcpyAsync",      [FAKE_CUPTI_GRAPH] = "cuGraphLaunch",
        [FAKE_CUPTI_OTHER] = "cuEventRecord",
    };

    if (id == 0 || id >= FAKE_CUPTI_N_CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver[id] : runtime[id];
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *now)
{
    *now = atomic_fetch_add(&clock_ns, STEP_NS);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                        : CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute,
                                               size_t *size, void *value)
{
    (void)attribute;
    return size && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

/* --- the subscription --- */

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
                             void *data)
{
    const CUptiResult result = result_of("subscribe");

    if (result != CUPTI_SUCCESS)
        return result;
    if (subscriber)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber = callback;
    subscriber_data = data;
    *handle = (CUpti_SubscriberHandle)(void *)&subscriber;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *handle,
                                    CUpti_CallbackFunc callback, void *data)
{
    return subscribe(handle, callback, data);
}

#ifdef CUPTI_SUBSCRIBER_NAME_MAX_LEN
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle *handle,
                                       CUpti_CallbackFunc callback, void *data,
                                       CUpti_SubscriberParams *params)
{
    const char *holder = scripted("holder");

    if (params->oldSubscriberName && holder)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%.*s",
                 (int)strcspn(holder, " "), holder);
    return subscribe(handle, callback, data);
}
#endif

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    (void)handle;
    if (!subscriber)
        return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber = NULL;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    const CUptiResult result = enable ? result_of("callback") : CUPTI_SUCCESS;

    (void)handle;
    if (result != CUPTI_SUCCESS || domain != CUPTI_CB_DOMAIN_RESOURCE)
        return result;
    hears_nodes[id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED] = enable != 0;
    return CUPTI_SUCCESS;
}

/* --- graph nodes --- */

#ifndef FAKE_CUPTI_LACKS
CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
    *id = (uint64_t)(uintptr_t)node;
    return CUPTI_SUCCESS;
}
#endif

void fake_cupti_node(const void *node, const void *original)
{
    CUpti_GraphData graph = { .node = (CUgraphNode)(uintptr_t)node,
                              .originalNode = (CUgraphNode)(uintptr_t)original };
    const CUpti_ResourceData resource = { .resourceDescriptor = &graph };

    if (subscriber && hears_nodes[original != NULL])
        subscriber(subscriber_data, CUPTI_CB_DOMAIN_RESOURCE,
                   original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
                            : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                   &resource);
}

/* --- records --- */

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed)
{
    const CUptiResult result = result_of("register");

    if (result == CUPTI_SUCCESS) {
        request = requested;
        complete = completed;
    }
    return result;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    const CUptiResult result =
        result_of(kind == CUPTI_ACTIVITY_KIND_OVERHEAD ? "overhead" : "enable");

    if (result == CUPTI_SUCCESS)
        enabled[kind] = true;
    return result;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
    enabled[kind] = false;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                       size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = (size_t)number_of("dropped");
    return CUPTI_SUCCESS;
}

static void hand_over(void)
{
    if (buffer)
        complete(NULL, 0, buffer, buffer_size, buffer_used);
    buffer = NULL;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    hand_over();
    return result_of("flush");
}

void fake_cupti_emit(const void *record, size_t size)
{
    const CUpti_Activity *activity = record;
    size_t most = 0;

    if (scripted("deaf") || !enabled[activity->kind])
        return;
    if (buffer && buffer_size - buffer_used < size)
        hand_over();
    if (!buffer) {
        request(&buffer, &buffer_size, &most);
        buffer_used = 0;
    }
    if (!buffer || (uintptr_t)buffer % 8 != 0 || most != 0)
        abort();
    memcpy(buffer + buffer_used, record, size);
    buffer_used += size;
}

void fake_cupti_fill(const void *record, size_t size, size_t n)
{
    uint8_t *own = NULL;
    size_t own_size = 0, most = 0;

    request(&own, &own_size, &most);
    if (!own || n * size > own_size)
        abort();
    for (size_t i = 0; i < n; i++)
        memcpy(own + i * size, record, size);
    complete(NULL, 0, own, own_size, n * size);
}

static size_t size_of(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
#if CUPTI_API_VERSION >= 130000
        return sizeof(CUpti_ActivityKernel10);
#else
        return sizeof(CUpti_ActivityKernel9);
#endif
    case CUPTI_ACTIVITY_KIND_MEMCPY:
#if CUPTI_API_VERSION >= 130000
        return sizeof(CUpti_ActivityMemcpy6);
#else
        return sizeof(CUpti_ActivityMemcpy5);
#endif
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
#if CUPTI_API_VERSION >= 130000
        return sizeof(CUpti_ActivityOverhead3);
#else
        return sizeof(CUpti_ActivityOverhead);
#endif
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_NAME:
        return sizeof(CUpti_ActivityName);
    default:
        return 0;
    }
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *bytes, size_t valid,
                                                CUpti_Activity **record)
{
    size_t at = 0;

    if (*record)
        at = (size_t)((uint8_t *)*record - bytes) + size_of((*record)->kind);
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)(bytes + at);
    const size_t size = size_of(next->kind);
    if (size == 0 || (valid - at < size && !scripted("careless")))
        return CUPTI_ERROR_INVALID_KIND;
    *record = next;
    return CUPTI_SUCCESS;
}
