/* The simulated CUDA: graphs that are built, and loops in them. */
#include "fake_cuda_parts.h"

#include <stdlib.h>

#include "count_turn.h"

static unsigned long long last_handle;
static cudaStream_t looping; /* the stream that captures a body; NULL: none does */

fake_graph *fake_graph_create(void)
{
    fake_graph *made = calloc(1, sizeof *made);

    if (!made)
        abort();
    return made;
}

WRAPS(cudaGraphCreate);
WRAPS(cudaGraphConditionalHandleCreate);
WRAPS(cudaStreamBeginCaptureToGraph);
WRAPS(cudaGraphAddNode);

cudaError_t __wrap_cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaGraphCreate);
    if (fake_is_real())
        error = __real_cudaGraphCreate(graph, flags);
    else
        *graph = (cudaGraph_t)fake_graph_create();
    fake_born(FAKE_GRAPH, *graph, (int)error);
    return error;
}

cudaError_t __wrap_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle,
                                                    cudaGraph_t graph, unsigned value,
                                                    unsigned flags)
{
    ENTER(cudaGraphConditionalHandleCreate);
    if (fake_is_real())
        return __real_cudaGraphConditionalHandleCreate(handle, graph, value, flags);
    if (value != 1 || flags != cudaGraphCondAssignDefault)
        fake_note_mistake("a loop whose first turn does not run at each launch");
    *handle = ++last_handle;
    ((fake_graph *)graph)->handle = *handle;
    return cudaSuccess;
}

static cudaError_t simulate_add(cudaGraphNode_t *node, fake_graph *graph,
                                struct cudaGraphNodeParams *params)
{
    struct cudaConditionalNodeParams *loop = &params->conditional;

    if (params->type != cudaGraphNodeTypeConditional || loop->size != 1 ||
        loop->type != cudaGraphCondTypeWhile || loop->handle != graph->handle)
        return fake_error(cudaErrorInvalidValue);
    fake_node *made = (fake_node *)fake_graph_add(
        graph, (fake_node){ .type = params->type, .body = fake_graph_create() });
    made->body->is_body = true;
    made->body->handle = graph->handle;
    loop->phGraph_out = (cudaGraph_t *)&made->body;
    *node = (cudaGraphNode_t)made;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t __wrap_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *from,
                                    const cudaGraphEdgeData *edges, size_t n_from,
                                    struct cudaGraphNodeParams *params)
{
    ENTER(cudaGraphAddNode);
    if (fake_is_real())
        return __real_cudaGraphAddNode(node, graph, from, edges, n_from, params);
    return simulate_add(node, (fake_graph *)graph, params);
}
#else
cudaError_t __wrap_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *from, size_t n_from,
                                    struct cudaGraphNodeParams *params)
{
    ENTER(cudaGraphAddNode);
    if (fake_is_real())
        return __real_cudaGraphAddNode(node, graph, from, n_from, params);
    return simulate_add(node, (fake_graph *)graph, params);
}
#endif

cudaError_t __wrap_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                 const cudaGraphNode_t *from,
                                                 const cudaGraphEdgeData *edges,
                                                 size_t n_from,
                                                 enum cudaStreamCaptureMode mode)
{
    cudaError_t error = cudaSuccess;

    ENTER(cudaStreamBeginCaptureToGraph);
    if (fake_is_real())
        error = __real_cudaStreamBeginCaptureToGraph(stream, graph, from, edges, n_from,
                                                     mode);
    else if (!stream || ((fake_stream *)stream)->capture)
        error = fake_error(cudaErrorIllegalState);
    else
        fake_capture_into((fake_graph *)graph, (fake_stream *)stream);
    if (error == cudaSuccess)
        looping = stream;
    return error;
}

bool fake_captures_loop(cudaStream_t stream)
{
    const bool loops = stream && looping == stream;

    if (loops)
        looping = NULL;
    return loops;
}

const fake_graph *fake_loop_body(const fake_graph *graph)
{
    if (graph->n_nodes != 1 || !graph->nodes[0]->body)
        return graph;
    const fake_graph *body = graph->nodes[0]->body;
    const fake_node *end = body->n_nodes ? body->nodes[body->n_nodes - 1] : NULL;
    if (!end || end->n_turns == 0)
        fake_note_mistake("a loop that nothing ends");
    else if (end->programmatic)
        fake_note_mistake("a loop that may end before its turn has");
    return body;
}

const fake_node *fake_loop_end(const fake_node *nodes, size_t n_nodes)
{
    return n_nodes > 0 && nodes[n_nodes - 1].n_turns > 0 ? &nodes[n_nodes - 1] : NULL;
}

void fake_loop_note(fake_node *node, const void *kernel, void **args)
{
    if (kernel != gx_count_turn_kernel())
        return;
    if (*(const cudaGraphConditionalHandle *)args[0] != last_handle)
        fake_note_mistake("a turn is counted for another condition");
    node->turns = *(int **)args[1];
    node->n_turns = *(const int *)args[2];
}

static long all_turns;

/* Simulated device memory is the host's. */
long fake_loop_run(const fake_node *end)
{
    long n = 0;
    bool again;

    do {
        const int done = *end->turns + 1;

        again = done < end->n_turns;
        *end->turns = again ? done : 0;
        n++;
    } while (again);
    all_turns += n;
    return n;
}

long fake_turns(void)
{
    return all_turns;
}
