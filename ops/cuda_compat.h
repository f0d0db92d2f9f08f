/* What differs between CUDA toolkits 12.4 .. 13.x; nothing else asks for a version. */
#ifndef GX_CUDA_COMPAT_H
#define GX_CUDA_COMPAT_H

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12040
#error "gexec needs CUDA 12.4 or newer"
#endif

/* --- launches --- */

/* The driver's log callback (12.9 and newer) is looked up by name when the program runs,
 * so its types are written here and not taken from a cuda.h that may lack them. */
typedef void gx_driver_log_fn(void *user, unsigned level, char *message, size_t length);
typedef int gx_driver_log_register_fn(gx_driver_log_fn *callback, void *user,
                                      void **handle);

/* --- graphs: the forms that tell edges' data, which a graph with programmatic edges
 * needs --- */

/* The graph that a stream is being captured into; NULL when it is not. */
static inline cudaError_t gx_compat_capture_graph(cudaStream_t stream, cudaGraph_t *graph)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *dependencies = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t n_dependencies = 0;
    cudaGraph_t found = NULL;

#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaStreamGetCaptureInfo(
        stream, &status, NULL, &found, &dependencies, &edges, &n_dependencies);
#else
    const cudaError_t error = cudaStreamGetCaptureInfo_v3(
        stream, &status, NULL, &found, &dependencies, &edges, &n_dependencies);
#endif
    *graph = status == cudaStreamCaptureStatusActive ? found : NULL;
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

/* Adds a node without edges. */
static inline cudaError_t gx_compat_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                             struct cudaGraphNodeParams *params)
{
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(node, graph, NULL, NULL, 0, params);
#else
    return cudaGraphAddNode(node, graph, NULL, 0, params);
#endif
}

/* The three-argument form, since CUDA 12. */
static inline cudaError_t gx_compat_instantiate(cudaGraphExec_t *graph_exec,
                                                cudaGraph_t graph)
{
    return cudaGraphInstantiate(graph_exec, graph, 0);
}

#endif
