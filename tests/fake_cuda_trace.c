/* What the simulated CUDA tells the CUPTI that does as it is told. */
#include "fake_cuda_trace.h"

#if GX_HAVE_CUPTI

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda_parts.h"
#include "profile_ranges.h"

enum { ALIAS = 1000000 };

bool trace_peers;
fake_cupti_emit_fn *trace_emit;
fake_cupti_fill_fn *trace_fill;
static fake_cupti_node_fn *make_node;
static __typeof__(cuptiGetTimestamp) *timestamp;
static uint32_t correlation;

static void find(void *library, const char *name, void *function)
{
    void *const symbol = dlsym(library, name);

    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

uint64_t trace_now(void)
{
    uint64_t time = 0;

    (void)timestamp(&time);
    return time;
}

void trace_call(CUpti_ActivityKind kind, uint32_t id, uint64_t start, uint64_t end,
                uint32_t number)
{
    const gx_cupti_call call = { .kind = kind,
                                 .cbid = id,
                                 .start = start,
                                 .end = end,
                                 .processId = (uint32_t)getpid(),
                                 .threadId = (uint32_t)gx_thread_id(),
                                 .correlationId = number };

    trace_emit(&call, sizeof call);
}

gx_cupti_kernel trace_kernel(uint64_t start, uint64_t end, uint32_t number, uint64_t node)
{
    gx_cupti_kernel kernel;

    memset(&kernel, 0, sizeof kernel);
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = start;
    kernel.end = end;
    kernel.streamId = TRACE_STREAM;
    kernel.correlationId = number;
    kernel.graphNodeId = node;
    kernel.name = "_ZN5names6kernelILi4EEEvPKf";
    kernel.gridX = 2;
    kernel.gridY = 3;
    kernel.gridZ = 1;
    kernel.blockX = 128;
    kernel.blockY = 1;
    kernel.blockZ = 1;
    kernel.registersPerThread = 32;
    kernel.staticSharedMemory = 100;
    kernel.dynamicSharedMemory = 1000;
    return kernel;
}

/* Of this thread. */
gx_cupti_overhead trace_overhead(uint32_t kind, uint64_t start, uint64_t end)
{
    gx_cupti_overhead overhead;

    memset(&overhead, 0, sizeof overhead);
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = (CUpti_ActivityOverheadKind)kind;
    overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    overhead.objectId.pt.processId = (uint32_t)getpid();
    overhead.objectId.pt.threadId = (uint32_t)gx_thread_id();
    overhead.start = start;
    overhead.end = end;
    return overhead;
}

gx_cupti_peer_copy trace_peer_copy(uint64_t start, uint64_t end, uint32_t number,
                                   uint64_t node)
{
    gx_cupti_peer_copy copied;

    memset(&copied, 0, sizeof copied);
    copied.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    copied.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    copied.bytes = 32;
    copied.start = start;
    copied.end = end;
    copied.streamId = TRACE_STREAM;
    copied.srcDeviceId = TRACE_SOURCE;
    copied.dstDeviceId = TRACE_TARGET;
    copied.correlationId = number;
    copied.graphNodeId = node;
    return copied;
}

static void emit_work(const fake_node *what, uint32_t number, uint64_t node)
{
    const uint64_t start = trace_now();
    const uint64_t end = trace_now();

    if (trace_peers) {
        const gx_cupti_peer_copy copied = trace_peer_copy(start, end, number, node);

        trace_emit(&copied, sizeof copied);
    } else if (what->type == cudaGraphNodeTypeMemset) {
        const gx_cupti_fill filled = { .kind = CUPTI_ACTIVITY_KIND_MEMSET,
                                       .bytes = 64,
                                       .start = start,
                                       .end = end,
                                       .streamId = TRACE_STREAM,
                                       .correlationId = number,
                                       .graphNodeId = node };

        trace_emit(&filled, sizeof filled);
    } else if (what->type == cudaGraphNodeTypeMemcpy) {
        const gx_cupti_copy copied = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                       .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
                                       .bytes = 32,
                                       .start = start,
                                       .end = end,
                                       .streamId = TRACE_STREAM,
                                       .correlationId = number,
                                       .graphNodeId = node };

        trace_emit(&copied, sizeof copied);
    } else {
        const gx_cupti_kernel kernel = trace_kernel(start, end, number, node);

        trace_emit(&kernel, sizeof kernel);
    }
}

/* A call of the runtime that is served by one of the driver, whose number the work has.
 */
static void watch_work(const fake_node *what, const fake_node *node)
{
    const uint32_t id = what->type == cudaGraphNodeTypeMemset   ? FAKE_CUPTI_FILL
                        : what->type == cudaGraphNodeTypeMemcpy ? FAKE_CUPTI_COPY
                                                                : FAKE_CUPTI_KERNEL;
    const uint32_t number = ++correlation;
    const uint64_t start = trace_now();
    const uint64_t inner = trace_now();

    if (node)
        make_node(node, NULL);
    else
        emit_work(what, number + ALIAS, 0);
    trace_call(CUPTI_ACTIVITY_KIND_DRIVER, id, inner, trace_now(), number + ALIAS);
    trace_call(CUPTI_ACTIVITY_KIND_RUNTIME, id, start, trace_now(), number);
}

/* The driver tells of a clone twice. */
static void watch_clone(const fake_node *node, const fake_node *original)
{
    make_node(node, NULL);
    make_node(node, original);
}

static void watch_replay(const fake_node *nodes, size_t n_nodes)
{
    const uint32_t number = ++correlation;
    const uint64_t start = trace_now();
    const uint64_t inner = trace_now();

    for (size_t i = 0; i < n_nodes; i++)
        if (!nodes[i].skipped)
            emit_work(&nodes[i], number, (uint64_t)(uintptr_t)&nodes[i]);
    trace_call(CUPTI_ACTIVITY_KIND_DRIVER, FAKE_CUPTI_GRAPH, inner, trace_now(), number);
    trace_call(CUPTI_ACTIVITY_KIND_RUNTIME, FAKE_CUPTI_GRAPH, start, trace_now(), number);
}

void trace_use(const char *script)
{
    static const fake_watcher watcher = { .work = watch_work,
                                          .cloned = watch_clone,
                                          .replayed = watch_replay };
    const char *path = getenv("GX_FAKE_CUPTI");

    assert_non_null(path);
    assert_int_equal(setenv("GEXEC_CUPTI", path, 1), 0);
    assert_int_equal(setenv("FAKE_CUPTI", script, 1), 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    find(library, "fake_cupti_emit", &trace_emit);
    find(library, "fake_cupti_node", &make_node);
    find(library, "fake_cupti_fill", &trace_fill);
    find(library, "cuptiGetTimestamp", &timestamp);
    fake_watch(&watcher);
}

#endif
