/* The simulated CUDA: captures and graphs. */
#include "fake_cuda_parts.h"

#include <stdlib.h>
#include <string.h>

/* A card that has worked for so long while nobody waited for it is hot. */
static const double hot_after_ms = 30;

static double clock_ms, tick_ms = 1;
static double rested_ms; /* when the host waited last */
static const fake_watcher *watcher;
static fake_graph *capturing; /* by this thread; the tests have one */

static struct {
    double ms, node_ms;
    size_t node;
} edge_cost;

void fake_set_edge_ms(double ms, size_t node, double node_ms)
{
    edge_cost.ms = ms;
    edge_cost.node = node;
    edge_cost.node_ms = node_ms;
}

void fake_watch(const fake_watcher *who)
{
    watcher = who;
}

void fake_set_tick_ms(double ms)
{
    tick_ms = ms;
}

void fake_rest(void)
{
    rested_ms = clock_ms;
}

static double time_of(const fake_node *node)
{
    return clock_ms - rested_ms >= hot_after_ms ? node->hot_ms : node->ms;
}

double fake_clock(void)
{
    return clock_ms;
}

/* --- captures --- */

cudaError_t fake_invalidate(fake_graph *graph, cudaError_t error)
{
    graph->invalid = true;
    return fake_error((int)error);
}

fake_graph *fake_capturing(void)
{
    return capturing;
}

cudaError_t fake_unsafe(void)
{
    return capturing ? fake_invalidate(capturing, cudaErrorStreamCaptureUnsupported)
                     : cudaSuccess;
}

const fake_node *fake_graph_add(fake_graph *graph, fake_node node)
{
    fake_node *kept = malloc(sizeof *kept);

    if (graph->n_nodes == graph->capacity) {
        graph->capacity = graph->capacity ? 2 * graph->capacity : 32;
        graph->nodes = realloc(graph->nodes, graph->capacity * sizeof *graph->nodes);
    }
    if (!kept || !graph->nodes)
        abort();
    *kept = node;
    kept->graph = graph;
    graph->nodes[graph->n_nodes++] = kept;
    return kept;
}

void fake_tell(const fake_node *node)
{
    if (watcher)
        watcher->work(node, node);
}

cudaError_t fake_enqueue(cudaStream_t handle, fake_node node, bool *captured)
{
    fake_stream *stream = (fake_stream *)handle;

    *captured = stream && stream->capture;
    if (stream && !fake_is_alive(FAKE_STREAM, stream)) {
        fake_note_mistake("work on a stream that is not alive");
        return fake_error(cudaErrorInvalidResourceHandle);
    }
    if (!*captured) {
        clock_ms += tick_ms + time_of(&node);
        if (watcher)
            watcher->work(&node, NULL);
        return cudaSuccess;
    }
    if (stream->capture->invalid)
        return fake_error(cudaErrorStreamCaptureInvalidated);
    fake_branch_check(stream, &node);
    const fake_node *kept = fake_graph_add(stream->capture, node);
    fake_tell(kept);
    stream->last = ++stream->capture->places;
    stream->front = (fake_front){ .node = { kept }, .n = 1 };
    return cudaSuccess;
}

void fake_take_into(fake_graph *graph, fake_stream *stream)
{
    if (graph->n_streams == FAKE_MAX_STREAMS)
        abort();
    graph->stream[graph->n_streams++] = stream;
    stream->capture = graph;
    stream->last = ++graph->places;
    stream->joined = 0;
    stream->waited = 0;
    stream->front.n = 0;
}

void fake_graph_free(fake_graph *graph)
{
    if (graph->is_body)
        return;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->body) {
            graph->nodes[i]->body->is_body = false;
            fake_graph_free(graph->nodes[i]->body);
        }
        free(graph->nodes[i]);
    }
    free(graph->edges);
    free(graph->nodes);
    free(graph);
}

void fake_capture_into(fake_graph *graph, fake_stream *stream)
{
    graph->outer = capturing;
    capturing = graph;
    fake_take_into(graph, stream);
}

WRAPS(cudaGraphDestroy);
WRAPS(cudaStreamBeginCapture);
WRAPS(cudaStreamEndCapture);
#if CUDART_VERSION >= 13000
WRAPS(cudaStreamGetCaptureInfo);
#else
WRAPS(cudaStreamGetCaptureInfo_v3);
#endif

cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t handle,
                                          enum cudaStreamCaptureMode mode)
{
    ENTER(cudaStreamBeginCapture);
    if (fake_is_real())
        return __real_cudaStreamBeginCapture(handle, mode);
    if (!handle || ((fake_stream *)handle)->capture)
        return fake_error(cudaErrorIllegalState);
    fake_capture_into(fake_graph_create(), (fake_stream *)handle);
    return cudaSuccess;
}

static cudaError_t simulate_end(fake_stream *first, cudaGraph_t *result)
{
    fake_graph *graph = first->capture;
    cudaError_t error = cudaSuccess;

    *result = NULL;
    if (!graph)
        return fake_error(cudaErrorIllegalState);
    for (int i = 0; i < graph->n_streams; i++) {
        if (i > 0 && graph->stream[i]->joined < graph->stream[i]->last)
            error = cudaErrorStreamCaptureUnjoined;
        graph->stream[i]->capture = NULL;
    }
    if (capturing != graph)
        fake_note_mistake("a capture ended while the body of a branch was captured");
    capturing = graph->outer;
    if (graph->invalid)
        error = cudaErrorStreamCaptureInvalidated;
    if (error != cudaSuccess) {
        fake_graph_free(graph);
        return fake_error((int)error);
    }
    *result = (cudaGraph_t)graph;
    return cudaSuccess;
}

/* The planned failure comes when the capture has ended, as the driver's do. */
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const int planned = fake_enter("cudaStreamEndCapture");
    const bool is_body = fake_captures_body(stream);
    cudaError_t error = fake_is_real() ? __real_cudaStreamEndCapture(stream, graph)
                                       : simulate_end((fake_stream *)stream, graph);

    if (planned != 0) {
        if (*graph && fake_is_real() && !is_body)
            (void)__real_cudaGraphDestroy(*graph);
        else if (*graph && !fake_is_real())
            fake_graph_free((fake_graph *)*graph);
        *graph = NULL;
        error = fake_error(planned);
    }
    if (!is_body)
        fake_born(FAKE_GRAPH, *graph, (int)error);
    return error;
}

cudaError_t __wrap_cudaStreamGetCaptureInfo(cudaStream_t handle,
                                            enum cudaStreamCaptureStatus *status,
                                            unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **dependencies,
                                            const cudaGraphEdgeData **edges,
                                            size_t *n_dependencies)
{
    const fake_stream *stream = (const fake_stream *)handle;

    ENTER(cudaStreamGetCaptureInfo);
    if (fake_is_real())
        return __real_cudaStreamGetCaptureInfo(handle, status, id, graph, dependencies,
                                               edges, n_dependencies);
    *status = cudaStreamCaptureStatusNone;
    if (!stream->capture)
        return cudaSuccess;
    *status = stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    if (graph)
        *graph = (cudaGraph_t)stream->capture;
    *n_dependencies = stream->front.n;
    *dependencies = (const cudaGraphNode_t *)stream->front.node;
    *edges = NULL;
    return cudaSuccess;
}

/* --- graphs --- */

WRAPS(cudaGraphGetNodes);
WRAPS(cudaGraphNodeGetType);
WRAPS(cudaGraphMemcpyNodeGetParams);
WRAPS(cudaPointerGetAttributes);
WRAPS(cudaGraphInstantiate);
WRAPS(cudaGraphUpload);
WRAPS(cudaGraphLaunch);
WRAPS(cudaGraphExecDestroy);

cudaError_t __wrap_cudaGraphDestroy(cudaGraph_t graph)
{
    const int planned = fake_enter("cudaGraphDestroy");
    cudaError_t error = cudaSuccess;

    fake_died(FAKE_GRAPH, graph);
    if (fake_is_real())
        error = __real_cudaGraphDestroy(graph);
    else
        fake_graph_free((fake_graph *)graph);
    return planned != 0 ? fake_error(planned) : error;
}

cudaError_t __wrap_cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes,
                                     size_t *n_nodes)
{
    const fake_graph *graph = (const fake_graph *)handle;

    ENTER(cudaGraphGetNodes);
    if (fake_is_real())
        return __real_cudaGraphGetNodes(handle, nodes, n_nodes);
    for (size_t i = 0; nodes && i < *n_nodes && i < graph->n_nodes; i++)
        nodes[i] = (cudaGraphNode_t)graph->nodes[i];
    *n_nodes = graph->n_nodes;
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphNodeGetType(cudaGraphNode_t node,
                                        enum cudaGraphNodeType *type)
{
    ENTER(cudaGraphNodeGetType);
    if (fake_is_real())
        return __real_cudaGraphNodeGetType(node, type);
    *type = ((const fake_node *)node)->type;
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                                struct cudaMemcpy3DParms *copy)
{
    ENTER(cudaGraphMemcpyNodeGetParams);
    if (fake_is_real())
        return __real_cudaGraphMemcpyNodeGetParams(node, copy);
    memset(copy, 0, sizeof *copy);
    copy->kind = ((const fake_node *)node)->copy;
    return cudaSuccess;
}

/* Simulated copies say their kind, so that nobody needs to ask; of fills all is device
 * memory that is not pinned. */
cudaError_t __wrap_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                            const void *address)
{
    ENTER(cudaPointerGetAttributes);
    if (fake_is_real())
        return __real_cudaPointerGetAttributes(attributes, address);
    memset(attributes, 0, sizeof *attributes);
    attributes->type =
        fake_is_alive(FAKE_PINNED, address) ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    return cudaSuccess;
}

/* A graph that can be launched: its own copies of the nodes. */
typedef struct fake_exec {
    size_t n_nodes;
    fake_node node[];
} fake_exec;

static void clone_nodes(fake_exec *made, const fake_graph *graph, const int32_t *update)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const fake_node *original = graph->nodes[i];
        fake_node *node = &made->node[made->n_nodes];

        if (original->body) {
            clone_nodes(made, original->body, original->update);
            continue;
        }
        *node = *original;
        node->update = update;
        made->n_nodes++;
        if (watcher)
            watcher->cloned(node, original);
    }
}

static cudaGraphExec_t clone_graph(const fake_graph *whole)
{
    const fake_graph *graph = fake_loop_body(whole);
    fake_exec *made =
        calloc(1, sizeof *made + fake_flat_count(graph) * sizeof made->node[0]);

    if (!made)
        abort();
    clone_nodes(made, graph, NULL);
    return (cudaGraphExec_t)made;
}

cudaError_t __wrap_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                        unsigned long long flags)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaGraphInstantiate);
    if (fake_is_real())
        error = __real_cudaGraphInstantiate(exec, graph, flags);
    else if (!fake_is_alive(FAKE_GRAPH, graph))
        return fake_error(cudaErrorInvalidValue);
    else {
        fake_settle((fake_graph *)graph);
        *exec = clone_graph((const fake_graph *)graph);
    }
    fake_born(FAKE_GRAPH_EXEC, *exec, (int)error);
    return error;
}

cudaError_t __wrap_cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    ENTER(cudaGraphUpload);
    if (fake_is_real())
        return __real_cudaGraphUpload(exec, stream);
    return fake_is_alive(FAKE_GRAPH_EXEC, exec) ? cudaSuccess
                                                : fake_error(cudaErrorInvalidValue);
}

cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    ENTER(cudaGraphLaunch);
    if (fake_is_real())
        return __real_cudaGraphLaunch(exec, stream);
    if (!fake_is_alive(FAKE_GRAPH_EXEC, exec)) {
        fake_note_mistake("a graph was launched that is not alive");
        return fake_error(cudaErrorInvalidValue);
    }
    fake_exec *launched = (fake_exec *)exec;
    const fake_node *end = fake_loop_end(launched->node, launched->n_nodes);
    const long n_turns = end ? fake_loop_run(end) : 1;
    for (long turn = 0; turn < n_turns; turn++) {
        clock_ms += tick_ms + fake_branches_decide(launched->node, launched->n_nodes);
        for (size_t i = 0; i < launched->n_nodes; i++) {
            clock_ms += time_of(&launched->node[i]);
            if (launched->node[i].programmatic)
                clock_ms += i == edge_cost.node ? edge_cost.node_ms : edge_cost.ms;
        }
        if (watcher)
            watcher->replayed(launched->node, launched->n_nodes);
    }
    return cudaSuccess;
}

cudaError_t __wrap_cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const int planned = fake_enter("cudaGraphExecDestroy");
    cudaError_t error = cudaSuccess;

    fake_died(FAKE_GRAPH_EXEC, exec);
    if (fake_is_real())
        error = __real_cudaGraphExecDestroy(exec);
    else
        free(exec);
    return planned != 0 ? fake_error(planned) : error;
}
