/* The simulated CUDA: graphs whose nodes and edges come and go when they are done. */
#include "fake_cuda_parts.h"

#include <stdlib.h>
#include <string.h>

#if CUDART_VERSION >= 13000
WRAPS(cudaGraphGetEdges);
WRAPS(cudaGraphAddDependencies);
#else
WRAPS(cudaGraphGetEdges_v2);
WRAPS(cudaGraphAddDependencies_v2);
#endif
WRAPS(cudaGraphAddKernelNode);
WRAPS(cudaGraphDestroyNode);
WRAPS(cudaGraphMemsetNodeGetParams);

/* --- edges --- */

static void add_edge(fake_graph *graph, fake_edge edge)
{
    graph->edges = realloc(graph->edges, (graph->n_edges + 1) * sizeof *graph->edges);
    if (!graph->edges)
        abort();
    graph->edges[graph->n_edges++] = edge;
}

/* Nodes follow one another; which lane they are on is not kept. */
static void list_edges(fake_graph *graph)
{
    if (graph->is_edited)
        return;
    graph->is_edited = true;
    for (size_t i = 1; i < graph->n_nodes; i++) {
        fake_edge edge = { .from = graph->nodes[i - 1], .to = graph->nodes[i] };

        if (edge.to->programmatic)
            edge.data.type = cudaGraphDependencyTypeProgrammatic;
        add_edge(graph, edge);
    }
}

cudaError_t __wrap_cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t *from,
                                     cudaGraphNode_t *to, cudaGraphEdgeData *data,
                                     size_t *n_edges)
{
    fake_graph *graph = (fake_graph *)handle;

    ENTER(cudaGraphGetEdges);
    if (fake_is_real())
        return __real_cudaGraphGetEdges(handle, from, to, data, n_edges);
    list_edges(graph);
    for (size_t i = 0; from && i < *n_edges && i < graph->n_edges; i++) {
        from[i] = (cudaGraphNode_t)graph->edges[i].from;
        to[i] = (cudaGraphNode_t)graph->edges[i].to;
        data[i] = graph->edges[i].data;
    }
    *n_edges = graph->n_edges;
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphAddDependencies(cudaGraph_t handle,
                                            const cudaGraphNode_t *from,
                                            const cudaGraphNode_t *to,
                                            const cudaGraphEdgeData *data, size_t n_edges)
{
    fake_graph *graph = (fake_graph *)handle;

    ENTER(cudaGraphAddDependencies);
    if (fake_is_real())
        return __real_cudaGraphAddDependencies(handle, from, to, data, n_edges);
    list_edges(graph);
    for (size_t i = 0; i < n_edges; i++) {
        const fake_edge edge = { .from = (fake_node *)from[i],
                                 .to = (fake_node *)to[i],
                                 .data = data[i] };

        if (edge.from->graph != graph || edge.to->graph != graph)
            return fake_error(cudaErrorInvalidValue);
        add_edge(graph, edge);
    }
    return cudaSuccess;
}

/* --- nodes --- */

cudaError_t __wrap_cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t handle,
                                          const cudaGraphNode_t *from, size_t n_from,
                                          const struct cudaKernelNodeParams *params)
{
    fake_node made = { .type = cudaGraphNodeTypeKernel };
    fake_graph *graph = (fake_graph *)handle;

    ENTER(cudaGraphAddKernelNode);
    if (fake_is_real())
        return __real_cudaGraphAddKernelNode(node, handle, from, n_from, params);
    if (n_from != 0 || params->gridDim.x * params->gridDim.y * params->gridDim.z == 0 ||
        params->blockDim.x == 0)
        return fake_error(cudaErrorInvalidValue);
    if (params->func == gx_fill_kernel())
        made.fill = *(const gx_fill *)params->kernelParams[0];
    list_edges(graph); /* before there is a node that follows none */
    *node = (cudaGraphNode_t)fake_graph_add(graph, made);
    fake_tell((const fake_node *)*node);
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphDestroyNode(cudaGraphNode_t handle)
{
    fake_node *node = (fake_node *)handle;
    size_t n_nodes = 0, n_edges = 0;

    ENTER(cudaGraphDestroyNode);
    if (fake_is_real())
        return __real_cudaGraphDestroyNode(handle);
    fake_graph *graph = node->graph;
    list_edges(graph);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i] != node)
            graph->nodes[n_nodes++] = graph->nodes[i];
    for (size_t i = 0; i < graph->n_edges; i++)
        if (graph->edges[i].from != node && graph->edges[i].to != node)
            graph->edges[n_edges++] = graph->edges[i];
    graph->n_nodes = n_nodes;
    graph->n_edges = n_edges;
    free(node);
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                                struct cudaMemsetParams *params)
{
    ENTER(cudaGraphMemsetNodeGetParams);
    if (fake_is_real())
        return __real_cudaGraphMemsetNodeGetParams(node, params);
    if (((const fake_node *)node)->type != cudaGraphNodeTypeMemset)
        return fake_error(cudaErrorInvalidValue);
    *params = ((const fake_node *)node)->memset;
    return cudaSuccess;
}

/* --- the order --- */

static fake_edge *edge_behind(const fake_graph *graph, const fake_node *node)
{
    fake_edge *found = NULL;

    for (size_t i = 0; i < graph->n_edges; i++) {
        if (graph->edges[i].from != node)
            continue;
        if (found)
            fake_note_mistake("an edited graph in which two nodes follow one");
        found = &graph->edges[i];
    }
    return found;
}

static fake_node *first_node(const fake_graph *graph)
{
    fake_node *first = NULL;

    for (size_t i = 0; i < graph->n_nodes; i++) {
        size_t n = 0;

        for (size_t e = 0; e < graph->n_edges; e++)
            n += graph->edges[e].to == graph->nodes[i];
        if (n > 1 || (n == 0 && first))
            fake_note_mistake("an edited graph in which a node does not follow one");
        if (n == 0)
            first = graph->nodes[i];
    }
    return first;
}

static void settle_order(fake_graph *graph)
{
    fake_node *node = graph->n_nodes ? first_node(graph) : NULL;
    size_t n = 0;

    while (node && n < graph->n_nodes) {
        const fake_edge *edge = edge_behind(graph, node);

        graph->nodes[n++] = node;
        node = edge ? edge->to : NULL;
        if (edge)
            node->programmatic = edge->data.type == cudaGraphDependencyTypeProgrammatic;
    }
    if (n < graph->n_nodes)
        fake_note_mistake("an edited graph that falls to pieces");
}

void fake_settle(fake_graph *graph)
{
    if (graph->is_edited)
        settle_order(graph);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->body)
            fake_settle(graph->nodes[i]->body);
}
