/* Captures: begin, record, end, look at what was captured, instantiate, launch. */
#include "capture_parts.h"

#include <stdlib.h>

#include "exec_model.h"
#include "launch.h"

/* Records into the capture that has begun, and ends it: until then the stream can do
 * nothing else, so whatever record() said. The failure that came first is kept. */
static gx_status record_and_end(gx_device *device, gx_record_fn *record, void *user,
                                cudaGraph_t *captured, gx_error *err)
{
    device->capturing = true;
    gx_status st = record(user, err);
    st = gx_first(st, GX_CUDA(cudaStreamEndCapture(device->stream, captured), err));
    device->capturing = false;
    if (st == GX_OK && !*captured)
        st = GX_FAIL(err, GX_ERR_CAPTURE, "the capture ended without a graph");
    return st;
}

gx_status gx_record(gx_device *device, gx_record_fn *record, void *user, void **graph,
                    gx_error *err)
{
    cudaGraph_t captured = NULL;

    *graph = NULL;
    GX_TRY(GX_CUDA(
        cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal), err));
    const gx_status st = record_and_end(device, record, user, &captured, err);
    if (st != GX_OK && captured)
        (void)GX_CUDA(cudaGraphDestroy(captured), NULL);
    if (st == GX_OK)
        *graph = captured;
    return st;
}

/* --- conditional nodes --- */

/* The condition has its first value at each launch. */
static gx_status make_condition(cudaGraph_t graph, unsigned first, uint64_t *handle,
                                gx_error *err)
{
    cudaGraphConditionalHandle made = 0;

    GX_TRY(GX_CUDA(
        cudaGraphConditionalHandleCreate(&made, graph, first, cudaGraphCondAssignDefault),
        err));
    *handle = made;
    return GX_OK;
}

static gx_status add_conditional(const gx_compat_capture *where, uint64_t handle,
                                 enum cudaGraphConditionalNodeType type,
                                 cudaGraphNode_t *node, void **body, gx_error *err)
{
    struct cudaGraphNodeParams params = { .type = cudaGraphNodeTypeConditional };

    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = 1;
    GX_TRY(GX_COMPAT(
        "cudaGraphAddNode",
        gx_compat_add_node(node, where->graph, where->last, where->n_last, &params),
        err));
    *body = params.conditional.phGraph_out[0];
    return GX_OK;
}

static gx_status begin_body(void *stream, void *body, gx_error *err)
{
    return GX_CUDA(cudaStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0,
                                                 cudaStreamCaptureModeThreadLocal),
                   err);
}

static gx_status add_loop(cudaGraph_t graph, gx_loop *loop, gx_error *err)
{
    const gx_compat_capture empty = { .graph = graph };
    cudaGraphNode_t node = NULL;

    GX_TRY(make_condition(graph, 1, &loop->handle, err));
    return add_conditional(&empty, loop->handle, cudaGraphCondTypeWhile, &node,
                           &loop->body, err);
}

static gx_status record_body(gx_device *device, gx_record_fn *record, void *user,
                             const gx_loop *loop, gx_error *err)
{
    cudaGraph_t captured = NULL; /* the body, which the loop's graph frees */

    GX_TRY(begin_body(device->stream, loop->body, err));
    return record_and_end(device, record, user, &captured, err);
}

gx_status gx_record_loop(gx_device *device, gx_record_fn *record, void *user,
                         gx_loop *loop, void **graph, gx_error *err)
{
    cudaGraph_t made = NULL;

    *graph = NULL;
    *loop = (gx_loop){ .body = NULL };
    GX_TRY(GX_CUDA(cudaGraphCreate(&made, 0), err));
    gx_status st = add_loop(made, loop, err);
    if (st == GX_OK)
        st = record_body(device, record, user, loop, err);
    if (st == GX_OK)
        *graph = made;
    else
        (void)GX_CUDA(cudaGraphDestroy(made), NULL);
    return st;
}

static gx_status find_capture(void *stream, gx_compat_capture *capture, gx_error *err)
{
    GX_TRY(GX_COMPAT("cudaStreamGetCaptureInfo", gx_compat_capture_info(stream, capture),
                     err));
    if (!capture->graph)
        return GX_FAIL(err, GX_ERR_CAPTURE, "the capture was invalidated");
    return GX_OK;
}

gx_status gx_record_condition(gx_device *device, uint64_t *handle, gx_error *err)
{
    gx_compat_capture capture;

    GX_TRY(find_capture(device->stream, &capture, err));
    return make_condition(capture.graph, 0, handle, err);
}

/* The node stands in the graph, and the stream goes on behind it, before its body is
 * captured: by then the driver has the body, which is empty. */
static gx_status add_branch(void *stream, uint64_t handle, void **body, gx_error *err)
{
    gx_compat_capture capture;
    cudaGraphNode_t node = NULL;

    GX_TRY(find_capture(stream, &capture, err));
    GX_TRY(add_conditional(&capture, handle, cudaGraphCondTypeIf, &node, body, err));
    return GX_COMPAT("cudaStreamUpdateCaptureDependencies",
                     gx_compat_capture_follow(stream, node), err);
}

gx_status gx_record_branch(gx_device *device, void *stream, uint64_t handle,
                           gx_record_fn *record, void *user, void **body, gx_error *err)
{
    cudaGraph_t captured = NULL; /* the body, which its graph frees */

    GX_TRY(add_branch(device->stream, handle, body, err));
    GX_TRY(begin_body(stream, *body, err));
    const gx_status st = record(user, err);
    return gx_first(st, GX_CUDA(cudaStreamEndCapture(stream, &captured), err));
}

/* --- what was captured --- */

gx_status gx_record_count(void *stream, size_t *n_nodes, gx_error *err)
{
    gx_compat_capture capture;

    *n_nodes = 0;
    GX_TRY(find_capture(stream, &capture, err));
    return GX_CUDA(cudaGraphGetNodes(capture.graph, NULL, n_nodes), err);
}

gx_status gx_record_last(void *stream, const void **node, gx_error *err)
{
    gx_compat_capture capture;

    *node = NULL;
    GX_TRY(find_capture(stream, &capture, err));
    if (capture.n_last == 1)
        *node = capture.last[0];
    return GX_OK;
}

gx_status gx_is_on_device(const void *address, bool *on_device, gx_error *err)
{
    struct cudaPointerAttributes attributes;

    GX_TRY(GX_CUDA(cudaPointerGetAttributes(&attributes, address), err));
    *on_device = attributes.type == cudaMemoryTypeDevice;
    return GX_OK;
}

/* A copy that touches host memory would read or write that address at each replay. */
static gx_status copy_is_inside(cudaGraphNode_t node, bool *inside, gx_error *err)
{
    struct cudaMemcpy3DParms copy;

    GX_TRY(GX_CUDA(cudaGraphMemcpyNodeGetParams(node, &copy), err));
    *inside = copy.kind == cudaMemcpyDeviceToDevice;
    if (copy.kind != cudaMemcpyDefault) /* else the addresses tell */
        return GX_OK;
    GX_TRY(gx_is_on_device(copy.srcPtr.ptr, inside, err));
    return *inside ? gx_is_on_device(copy.dstPtr.ptr, inside, err) : GX_OK;
}

static gx_status count_node(cudaGraphNode_t node, bool look_into, gx_node_counts *counts,
                            bool *allowed, gx_error *err)
{
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;

    *allowed = true;
    GX_TRY(GX_CUDA(cudaGraphNodeGetType(node, &type), err));
    switch (type) {
    case cudaGraphNodeTypeKernel:
        counts->kernels++;
        return GX_OK;
    case cudaGraphNodeTypeMemset:
        counts->fills++;
        return GX_OK;
    case cudaGraphNodeTypeMemcpy:
        counts->copies++;
        if (look_into)
            GX_TRY(copy_is_inside(node, allowed, err));
        counts->host_copies += !*allowed;
        return GX_OK;
    case cudaGraphNodeTypeConditional:
        counts->branches++;
        return GX_OK;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
        counts->memory++;
        break;
    case cudaGraphNodeTypeHost:
        counts->host++;
        break;
    default:
        counts->other++;
        break;
    }
    *allowed = false;
    return GX_OK;
}

gx_status gx_graph_list(void *graph, gx_node_list *list, gx_error *err)
{
    *list = (gx_node_list){ .n = 0 };
    GX_TRY(GX_CUDA(cudaGraphGetNodes(graph, NULL, &list->n), err));
    if (list->n == 0)
        return GX_OK;
    list->node = calloc(list->n, sizeof *list->node);
    gx_status st =
        list->node
            ? GX_CUDA(cudaGraphGetNodes(graph, (cudaGraphNode_t *)list->node, &list->n),
                      err)
            : GX_FAIL(err, GX_ERR_MEMORY, "no memory to list %zu graph nodes", list->n);
    if (st != GX_OK) {
        free(list->node);
        *list = (gx_node_list){ .n = 0 };
    }
    return st;
}

static gx_status look_at(const gx_node_list *list, bool look_into, gx_node_counts *counts,
                         gx_error *err)
{
    *counts = (gx_node_counts){ .refused = false };
    for (size_t i = 0; i < list->n; i++) {
        bool allowed;

        GX_TRY(count_node(list->node[i], look_into, counts, &allowed, err));
        if (!allowed && !counts->refused) {
            counts->refused = true;
            counts->first_refused = i;
        }
    }
    return GX_OK;
}

gx_status gx_graph_look(const gx_node_list *list, gx_node_counts *counts, gx_error *err)
{
    return look_at(list, true, counts, err);
}

gx_status gx_record_look(void *stream, gx_node_counts *counts, gx_error *err)
{
    gx_compat_capture capture;
    gx_node_list list;

    GX_TRY(find_capture(stream, &capture, err));
    GX_TRY(gx_graph_list(capture.graph, &list, err));
    const gx_status st = look_at(&list, false, counts, err);
    free(list.node);
    return st;
}

void gx_node_edges_free(gx_node_edges *edges)
{
    free(edges->from);
    free(edges->data);
    *edges = (gx_node_edges){ .n = 0 };
}

gx_status gx_node_edges_list(void *graph, gx_node_edges *edges, gx_error *err)
{
    *edges = (gx_node_edges){ .n = 0 };
    GX_TRY(GX_COMPAT("cudaGraphGetEdges",
                     gx_compat_graph_edges(graph, NULL, NULL, NULL, &edges->n), err));
    if (edges->n == 0)
        return GX_OK;
    edges->from = calloc(2 * edges->n, sizeof(*edges->from));
    edges->data = calloc(edges->n, sizeof(*edges->data));
    gx_status st = GX_OK;
    if (edges->from && edges->data)
        edges->to = edges->from + edges->n;
    else
        st = GX_FAIL(err, GX_ERR_MEMORY, "no memory to list %zu graph edges", edges->n);
    if (st == GX_OK)
        st = GX_COMPAT(
            "cudaGraphGetEdges",
            gx_compat_graph_edges(graph, edges->from, edges->to, edges->data, &edges->n),
            err);
    if (st != GX_OK)
        gx_node_edges_free(edges);
    return st;
}

gx_status gx_graph_programmatic_edges(void *graph, int64_t *n_edges, gx_error *err)
{
    gx_node_edges edges;

    *n_edges = 0;
    GX_TRY(gx_node_edges_list(graph, &edges, err));
    for (size_t i = 0; i < edges.n; i++)
        *n_edges += edges.data[i].type == cudaGraphDependencyTypeProgrammatic;
    gx_node_edges_free(&edges);
    return GX_OK;
}

gx_status gx_graph_start(gx_device *device, void *graph, void **graph_exec,
                         gx_graph_cost *cost, gx_error *err)
{
    cudaGraphExec_t made = NULL;
    const double begin = gx_exec_clock();

    *graph_exec = NULL;
    GX_TRY(GX_COMPAT("cudaGraphInstantiate", gx_compat_instantiate(&made, graph), err));
    const double instantiated = gx_exec_clock();
    gx_status st = GX_CUDA(cudaGraphUpload(made, device->stream), err);
    if (st == GX_OK)
        st = GX_CUDA(cudaStreamSynchronize(device->stream), err);
    if (st != GX_OK) {
        (void)GX_CUDA(cudaGraphExecDestroy(made), NULL);
        return st;
    }
    cost->instantiate_s = instantiated - begin;
    cost->upload_s = gx_exec_clock() - instantiated;
    *graph_exec = made;
    return GX_OK;
}

gx_status gx_graph_submit(const gx_device *device, void *graph_exec, gx_error *err)
{
    return GX_CUDA(cudaGraphLaunch(graph_exec, device->stream), err);
}

void gx_graph_end(void *graph, void *graph_exec)
{
    if (graph_exec)
        (void)GX_CUDA(cudaGraphExecDestroy(graph_exec), NULL);
    if (graph)
        (void)GX_CUDA(cudaGraphDestroy(graph), NULL);
}
