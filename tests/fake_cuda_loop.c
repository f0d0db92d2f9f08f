/* The simulated CUDA: graphs that are built, and loops and branches in them. */
#include "fake_cuda_parts.h"

#include <stdlib.h>

#include "count_turn.h"
#include "set_branch.h"

static unsigned long long last_handle;
static double branch_ms;

enum { MAX_DEPTH = 4 };

static struct { /* streams that capture bodies */
    cudaStream_t stream[MAX_DEPTH];
    int n;
} bodies;

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
WRAPS(cudaStreamUpdateCaptureDependencies);

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
    if (flags != cudaGraphCondAssignDefault)
        fake_note_mistake("a condition that one launch leaves to the next");
    *handle = ++last_handle;
    *(value == 1 ? &((fake_graph *)graph)->handle : &((fake_graph *)graph)->condition) =
        *handle;
    return cudaSuccess;
}

static cudaError_t add_body(cudaGraphNode_t *node, fake_graph *graph,
                            struct cudaGraphNodeParams *params, const int32_t *update)
{
    fake_node *made = (fake_node *)fake_graph_add(
        graph, (fake_node){
                   .type = params->type, .update = update, .body = fake_graph_create() });

    made->body->is_body = true;
    params->conditional.phGraph_out = (cudaGraph_t *)&made->body;
    *node = (cudaGraphNode_t)made;
    return cudaSuccess;
}

/* Behind the kernel that decides it, which is the last on the stream. */
static cudaError_t add_branch(cudaGraphNode_t *node, fake_graph *graph,
                              const fake_node *decides,
                              struct cudaGraphNodeParams *params)
{
    if (params->conditional.handle != graph->condition || !decides || !decides->update) {
        fake_note_mistake("a branch that nothing decides");
        return fake_error(cudaErrorInvalidValue);
    }
    for (int i = 1; i < graph->n_streams; i++)
        if (graph->stream[i]->joined < graph->stream[i]->last)
            fake_note_mistake("a branch that does not wait for another stream");
    graph->condition = 0;
    graph->goes_astray = true;
    return add_body(node, graph, params, decides->update);
}

static cudaError_t simulate_add(cudaGraphNode_t *node, fake_graph *graph,
                                const cudaGraphNode_t *from, size_t n_from,
                                struct cudaGraphNodeParams *params)
{
    const struct cudaConditionalNodeParams *wanted = &params->conditional;

    if (params->type != cudaGraphNodeTypeConditional || wanted->size != 1)
        return fake_error(cudaErrorInvalidValue);
    if (wanted->type == cudaGraphCondTypeIf)
        return add_branch(node, graph, n_from == 1 ? (const fake_node *)from[0] : NULL,
                          params);
    if (wanted->type != cudaGraphCondTypeWhile || wanted->handle != graph->handle ||
        n_from != 0)
        return fake_error(cudaErrorInvalidValue);
    (void)add_body(node, graph, params, NULL);
    ((fake_node *)*node)->body->handle = graph->handle;
    return cudaSuccess;
}

static cudaError_t simulate_follow(cudaStream_t handle, const cudaGraphNode_t *node,
                                   size_t n_nodes, unsigned flags)
{
    fake_graph *graph = ((fake_stream *)handle)->capture;

    if (!graph || n_nodes != 1 || flags != cudaStreamSetCaptureDependencies ||
        (const fake_node *)*node != graph->nodes[graph->n_nodes - 1])
        return fake_error(cudaErrorInvalidValue);
    graph->goes_astray = false;
    graph->branch = graph->stream[0]->last = ++graph->places;
    graph->stream[0]->front =
        (fake_front){ .node = { (const fake_node *)*node }, .n = 1 };
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
    if (edges)
        fake_note_mistake("an edge to a branch that is not full");
    return simulate_add(node, (fake_graph *)graph, from, n_from, params);
}

cudaError_t __wrap_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                       cudaGraphNode_t *nodes,
                                                       const cudaGraphEdgeData *edges,
                                                       size_t n_nodes, unsigned flags)
{
    ENTER(cudaStreamUpdateCaptureDependencies);
    if (fake_is_real())
        return __real_cudaStreamUpdateCaptureDependencies(stream, nodes, edges, n_nodes,
                                                          flags);
    return simulate_follow(stream, nodes, n_nodes, flags);
}
#else
cudaError_t __wrap_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *from, size_t n_from,
                                    struct cudaGraphNodeParams *params)
{
    ENTER(cudaGraphAddNode);
    if (fake_is_real())
        return __real_cudaGraphAddNode(node, graph, from, n_from, params);
    return simulate_add(node, (fake_graph *)graph, from, n_from, params);
}

cudaError_t __wrap_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                       cudaGraphNode_t *nodes,
                                                       size_t n_nodes, unsigned flags)
{
    ENTER(cudaStreamUpdateCaptureDependencies);
    if (fake_is_real())
        return __real_cudaStreamUpdateCaptureDependencies(stream, nodes, n_nodes, flags);
    return simulate_follow(stream, nodes, n_nodes, flags);
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
    if (error == cudaSuccess && bodies.n == MAX_DEPTH)
        abort();
    if (error == cudaSuccess)
        bodies.stream[bodies.n++] = stream;
    return error;
}

bool fake_captures_body(cudaStream_t stream)
{
    for (int i = bodies.n; i-- > 0;)
        if (bodies.stream[i] == stream) {
            bodies.stream[i] = bodies.stream[--bodies.n];
            return true;
        }
    return false;
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

void fake_condition_note(fake_node *node, const fake_graph *graph, const void *kernel,
                         void **args)
{
    if (graph && kernel == gx_set_branch_kernel()) {
        if (*(const cudaGraphConditionalHandle *)args[0] != graph->condition)
            fake_note_mistake("a branch is decided by another condition");
        node->update = *(const int32_t *const *)args[1];
    }
    if (kernel != gx_count_turn_kernel())
        return;
    if (!graph || *(const cudaGraphConditionalHandle *)args[0] != graph->handle)
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

/* --- branches --- */

void fake_set_branch_ms(double ms)
{
    branch_ms = ms;
}

void fake_branch_check(const fake_stream *stream, const fake_node *node)
{
    const fake_graph *graph = stream->capture;
    const fake_node *before = graph->n_nodes ? graph->nodes[graph->n_nodes - 1] : NULL;

    if (graph->goes_astray)
        fake_note_mistake("what stands behind a branch does not follow it");
    if (stream != graph->stream[0] && stream->waited < graph->branch)
        fake_note_mistake("work that does not wait for a branch");
    if (node->programmatic && (before ? before->body != NULL : graph->is_body))
        fake_note_mistake("a programmatic edge from a branch, or to the first in it");
}

size_t fake_flat_count(const fake_graph *graph)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_nodes; i++)
        n += graph->nodes[i]->body ? fake_flat_count(graph->nodes[i]->body) : 1;
    return n;
}

/* A branch's nodes stand side by side, behind the kernel that decides it. */
double fake_branches_decide(fake_node *nodes, size_t n_nodes)
{
    double ms = 0;

    for (size_t i = 0; i < n_nodes; i++) {
        nodes[i].skipped = nodes[i].update && *nodes[i].update < 0;
        if (nodes[i].update && (i == 0 || !nodes[i - 1].update))
            ms += branch_ms;
    }
    return ms;
}
