/* Captures: the one place that begins and ends them and that makes and launches graphs.
 * Only with CUDA. Graphs are passed as void *: cudaGraph_t, cudaGraphExec_t. */
#ifndef GX_CAPTURE_H
#define GX_CAPTURE_H

#include "device.h"

typedef gx_status gx_record_fn(void *user, gx_error *err);

/* Captures what `record` enqueues on the device's lanes, lane 0 first and last, into a
 * new graph. Whatever `record` says the capture is ended; on failure there is no graph,
 * and the device's streams can be used as before. */
gx_status gx_record(gx_device *device, gx_record_fn *record, void *user, void **graph,
                    gx_error *err) GX_MUST_CHECK;

/* A loop in a graph: a WHILE node, whose condition is 1 at each launch. */
typedef struct gx_loop {
    uint64_t handle; /* cudaGraphConditionalHandle; the body clears the condition */
    void *body;      /* cudaGraph_t, the graph's */
} gx_loop;

/* The same as the body of a loop in a new graph that holds nothing else. loop->handle is
 * there when `record` is called. */
gx_status gx_record_loop(gx_device *device, gx_record_fn *record, void *user,
                         gx_loop *loop, void **graph, gx_error *err) GX_MUST_CHECK;

/* A condition of the graph under capture, for a branch in it: 0 at each launch, until a
 * kernel that lane 0 captures before the branch sets it, at each turn of a loop anew. */
gx_status gx_record_condition(gx_device *device, uint64_t *handle,
                              gx_error *err) GX_MUST_CHECK;
/* The branch: an IF node behind what lane 0 has captured so far, whose body is what
 * `record` enqueues on `stream`, one that captures nothing, and there alone. Edges to the
 * node and from it are full. Whatever `record` says the body's capture is ended. *body is
 * a cudaGraph_t of the graph's, and is there when `record` is called. */
gx_status gx_record_branch(gx_device *device, void *stream, uint64_t handle,
                           gx_record_fn *record, void *user, void **body,
                           gx_error *err) GX_MUST_CHECK;

/* Nodes of the graph that `stream` is captured into; those in bodies do not count. Legal
 * in a capture, and only there. The driver goes through all nodes to tell: whoever asks
 * behind each node pays for the square of their number. */
gx_status gx_record_count(void *stream, size_t *n_nodes, gx_error *err) GX_MUST_CHECK;

/* The node (cudaGraphNode_t) that the next one of `stream` will follow; NULL where that
 * are none or several, as behind a wait for an event. Likewise in a capture alone; costs
 * the same however many nodes there are. */
gx_status gx_record_last(void *stream, const void **node, gx_error *err) GX_MUST_CHECK;

/* The nodes of a graph that is done, in the order in which they were captured; those in
 * bodies are not among them. `node` is the caller's to free; NULL where there are none,
 * and after a failure. */
typedef struct gx_node_list {
    void **node; /* cudaGraphNode_t */
    size_t n;
} gx_node_list;
gx_status gx_graph_list(void *graph, gx_node_list *list, gx_error *err) GX_MUST_CHECK;

/* What the nodes of a graph are. A captured event leaves an edge and no node. */
typedef struct gx_node_counts {
    size_t kernels, copies, fills;
    size_t host_copies; /* of the copies those that read or write host memory */
    size_t memory;      /* allocations and frees */
    size_t host;        /* host functions */
    size_t branches;    /* and loops: conditional nodes */
    size_t other;
    size_t first_refused; /* index of the first that no program of ours may hold */
    bool refused;
} gx_node_counts;

/* Of a graph that is done, or of the one that `stream` is captured into; copies of the
 * latter are not looked into. */
gx_status gx_graph_look(const gx_node_list *list, gx_node_counts *counts,
                        gx_error *err) GX_MUST_CHECK;
gx_status gx_record_look(void *stream, gx_node_counts *counts,
                         gx_error *err) GX_MUST_CHECK;
gx_status gx_graph_programmatic_edges(void *graph, int64_t *n_edges,
                                      gx_error *err) GX_MUST_CHECK;

/* Puts a kernel in the place of each fill of device memory in a graph that is done, since
 * memset nodes make the launch of a graph slow: it writes the same bytes and has the same
 * edges. `nodes` are the graph's, with n_fills fills among them, which it lists no more;
 * those in bodies are not looked at. Not for a graph with conditional nodes. A failure
 * leaves a graph that can only be ended. */
typedef struct gx_fill_hooks {
    /* Around the making of the kernel for the fill at this place in the list. */
    void (*before)(void *user, size_t place);
    void (*after)(void *user, size_t place);
    void *user;
} gx_fill_hooks;
gx_status gx_graph_replace_fills(void *graph, const gx_node_list *nodes, size_t n_fills,
                                 const gx_fill_hooks *hooks, /* NULL: none */
                                 gx_error *err) GX_MUST_CHECK;

/* Instantiates and uploads, each once and timed; waits for the upload. */
typedef struct gx_graph_cost {
    double instantiate_s, upload_s;
} gx_graph_cost;
gx_status gx_graph_start(gx_device *device, void *graph, void **graph_exec,
                         gx_graph_cost *cost, gx_error *err) GX_MUST_CHECK;
/* Launches on lane 0's stream: one call of the driver and nothing else. */
gx_status gx_graph_submit(const gx_device *device, void *graph_exec,
                          gx_error *err) GX_MUST_CHECK;
/* Frees both; NULL is allowed. */
void gx_graph_end(void *graph, void *graph_exec);

#endif
