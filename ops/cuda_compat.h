/* What differs between CUDA toolkits 12.4 .. 13.x; nothing else asks for a version. */
#ifndef GX_CUDA_COMPAT_H
#define GX_CUDA_COMPAT_H

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12040
#error "gexec needs CUDA 12.4 or newer"
#endif

/* One of the calls below, under the name that a reader knows it by; with launch.h. */
#define GX_COMPAT(name, call, err) \
    gx_check_cuda((int)(call), name, __FILE__, __LINE__, (err))

/* --- launches --- */

/* The driver's log callback (12.9 and newer) is looked up by name when the program runs,
 * so its types are written here and not taken from a cuda.h that may lack them. */
typedef void gx_driver_log_fn(void *user, unsigned level, char *message, size_t length);
typedef int gx_driver_log_register_fn(gx_driver_log_fn *callback, void *user,
                                      void **handle);

/* --- functions of the driver --- */

/* In the form that CUDA 12.0 has. */
static inline cudaError_t
gx_compat_driver_entry(const char *name, void **function,
                       enum cudaDriverEntryPointQueryResult *found)
{
#if CUDART_VERSION >= 12050
    return cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault,
                                            found);
#else
    return cudaGetDriverEntryPoint(name, function, cudaEnableDefault, found);
#endif
}

/* --- graphs: the forms that tell edges' data, which a graph with programmatic edges
 * needs --- */

/* The graph that a stream is being captured into, NULL when it is not, and the nodes that
 * its next one will follow: good until the next call on the stream. */
typedef struct gx_compat_capture {
    cudaGraph_t graph;
    const cudaGraphNode_t *last;
    size_t n_last;
} gx_compat_capture;

static inline cudaError_t gx_compat_capture_info(cudaStream_t stream,
                                                 gx_compat_capture *capture)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphEdgeData *edges = NULL;

    *capture = (gx_compat_capture){ .graph = NULL };

#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaStreamGetCaptureInfo(
        stream, &status, NULL, &capture->graph, &capture->last, &edges, &capture->n_last);
#else
    const cudaError_t error = cudaStreamGetCaptureInfo_v3(
        stream, &status, NULL, &capture->graph, &capture->last, &edges, &capture->n_last);
#endif
    if (status != cudaStreamCaptureStatusActive)
        capture->graph = NULL;
    return error;
}

/* The number of edges where the arrays are NULL, else at most *n_edges of them. */
static inline cudaError_t gx_compat_graph_edges(cudaGraph_t graph, cudaGraphNode_t *from,
                                                cudaGraphNode_t *to,
                                                cudaGraphEdgeData *data, size_t *n_edges)
{
#if CUDART_VERSION >= 13000
    return cudaGraphGetEdges(graph, from, to, data, n_edges);
#else
    return cudaGraphGetEdges_v2(graph, from, to, data, n_edges);
#endif
}

/* Adds a node behind others, with full edges. */
static inline cudaError_t gx_compat_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *from, size_t n_from,
                                             struct cudaGraphNodeParams *params)
{
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(node, graph, from, NULL, n_from, params);
#else
    return cudaGraphAddNode(node, graph, from, n_from, params);
#endif
}

static inline cudaError_t gx_compat_add_edges(cudaGraph_t graph,
                                              const cudaGraphNode_t *from,
                                              const cudaGraphNode_t *to,
                                              const cudaGraphEdgeData *data,
                                              size_t n_edges)
{
#if CUDART_VERSION >= 13000
    return cudaGraphAddDependencies(graph, from, to, data, n_edges);
#else
    return cudaGraphAddDependencies_v2(graph, from, to, data, n_edges);
#endif
}

/* What the stream captures next follows this node alone, with a full edge. */
static inline cudaError_t gx_compat_capture_follow(cudaStream_t stream,
                                                   cudaGraphNode_t node)
{
#if CUDART_VERSION >= 13000
    return cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                               cudaStreamSetCaptureDependencies);
#else
    return cudaStreamUpdateCaptureDependencies(stream, &node, 1,
                                               cudaStreamSetCaptureDependencies);
#endif
}

/* The three-argument form, since CUDA 12. */
static inline cudaError_t gx_compat_instantiate(cudaGraphExec_t *graph_exec,
                                                cudaGraph_t graph)
{
    return cudaGraphInstantiate(graph_exec, graph, 0);
}

#endif
