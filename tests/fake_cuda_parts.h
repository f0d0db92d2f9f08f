/* What the files of the simulated CUDA share. */
#ifndef FAKE_CUDA_PARTS_H
#define FAKE_CUDA_PARTS_H

#include <cublasLt.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "fake_cuda.h"
#include "fill.h"

/* What the headers of CUDA 12 call by these names is of another shape, or an older one's.
 */
#if CUDART_VERSION < 13000
#define __wrap_cudaGetDeviceProperties __wrap_cudaGetDeviceProperties_v2
#define __real_cudaGetDeviceProperties __real_cudaGetDeviceProperties_v2
#define __wrap_cudaStreamGetCaptureInfo __wrap_cudaStreamGetCaptureInfo_v3
#define __real_cudaStreamGetCaptureInfo __real_cudaStreamGetCaptureInfo_v3
#define __wrap_cudaGraphGetEdges __wrap_cudaGraphGetEdges_v2
#define __real_cudaGraphGetEdges __real_cudaGraphGetEdges_v2
#define __wrap_cudaGraphAddDependencies __wrap_cudaGraphAddDependencies_v2
#define __real_cudaGraphAddDependencies __real_cudaGraphAddDependencies_v2
#endif

/* Declares the real function and its replacement with the type that the header gives. */
#define WRAPS(name) __typeof__(name) __real_##name, __wrap_##name

/* Counts the call; leaves it with the planned failure. */
#define ENTER(name)                             \
    do {                                        \
        const int planned_ = fake_enter(#name); \
        if (planned_ != 0)                      \
            return fake_error(planned_);        \
    } while (0)

typedef enum fake_kind {
    FAKE_MEMORY,
    FAKE_PINNED,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_GRAPH,
    FAKE_GRAPH_EXEC,
    FAKE_HANDLE,
    FAKE_DESCRIPTOR,
    FAKE_LAYOUT,
    FAKE_PREFERENCE,
    FAKE_N_KINDS
} fake_kind;

/* The status that this call is planned to fail with, or 0. */
int fake_enter(const char *function);
/* Remembers an error as the last one, which cudaGetLastError gives. */
cudaError_t fake_error(int error);

/* Objects: born where `status` is 0, dead whatever is said. */
void fake_born(fake_kind kind, const void *object, int status);
void fake_died(fake_kind kind, const void *object);
bool fake_is_alive(fake_kind kind, const void *object);
void fake_note_mistake(const char *what);

/* --- the simulation --- */

typedef struct fake_node {
    enum cudaGraphNodeType type;
    enum cudaMemcpyKind copy;
    bool programmatic;       /* the edge that leads to it */
    struct fake_graph *body; /* of a loop or a branch: its graph's own; NULL: none */
    int *turns, n_turns;     /* of a kernel that ends a loop; 0: another */
    const int32_t *update;   /* of a kernel that decides a branch, of the branch, and in
                                what can be launched of its body: below 0 it is skipped */
    bool skipped;            /* in the launch that is told of */
    double ms, hot_ms;       /* of a product, besides its tick; of a card that is hot */
    struct cudaMemsetParams memset; /* of a fill */
    gx_fill fill;                   /* of a kernel that fills; to NULL: another */
    struct fake_graph *graph;       /* that it is in; of what runs at once NULL */
} fake_node;

typedef struct fake_graph fake_graph;

typedef struct fake_edge {
    fake_node *from, *to;
    cudaGraphEdgeData data;
} fake_edge;

enum { FAKE_MAX_STREAMS = 8 };

/* What the next node of a stream in a capture follows. */
typedef struct fake_front {
    const fake_node *node[FAKE_MAX_STREAMS];
    size_t n;
} fake_front;

typedef struct fake_stream {
    fake_graph *capture; /* NULL: none */
    long last;           /* place of its last work in the capture */
    long joined;         /* up to where the first stream waits for it */
    int priority;        /* the lower, the sooner */
    long waited;         /* up to where it waits for the first stream */
    fake_front front;
} fake_stream;

typedef struct fake_event {
    fake_graph *capture; /* it was recorded in, last */
    fake_stream *stream;
    long place;
    fake_front front; /* of the stream then */
    double ms;        /* < 0: never recorded */
    bool timed;
    long record; /* place of the record among work that is ordered; < 0: none */
} fake_event;

struct fake_graph {
    fake_node **nodes;
    size_t n_nodes, capacity;
    fake_stream *stream[FAKE_MAX_STREAMS]; /* the first began the capture */
    int n_streams;
    long places;
    bool invalid;
    bool is_body; /* of a loop or a branch, and freed with the graph that has it */
    unsigned long long handle; /* of the loop that it is the body of, or holds; 0: none */
    unsigned long long condition; /* of the branch that comes next; 0: none */
    long branch;                  /* place of the last branch; 0: none */
    bool goes_astray;  /* what the stream captures next does not follow the branch */
    fake_graph *outer; /* the one that this thread captured when it began */
    bool is_edited;    /* its edges are listed; else each node follows the one before */
    fake_edge *edges;
    size_t n_edges;
};

/* Told of what is simulated, in the call that does it; a tool that traces hears the same.
 * `node` is NULL for what runs at once. */
typedef struct fake_watcher {
    void (*work)(const fake_node *what, const fake_node *node);
    void (*cloned)(const fake_node *node, const fake_node *original);
    void (*replayed)(const fake_node *nodes, size_t n_nodes);
} fake_watcher;

/* NULL: nobody. */
void fake_watch(const fake_watcher *watcher);
/* Tells of a node that was made. */
void fake_tell(const fake_node *node);

/* --- fake_cuda_loop.c: graphs that are built, and loops in them --- */

/* A graph without nodes; does not come back without memory. */
fake_graph *fake_graph_create(void);
void fake_graph_free(fake_graph *graph); /* but for a loop's body */
const fake_node *fake_graph_add(fake_graph *graph, fake_node node);
/* Begins a capture on the stream into a graph that has no nodes. */
void fake_capture_into(fake_graph *graph, fake_stream *stream);
/* Whether the stream captures the body of a loop or a branch, simulated or not; asked
 * when it ends. */
bool fake_captures_body(cudaStream_t stream);
/* The body of the loop that the graph consists of; the graph itself where there is none.
 */
const fake_graph *fake_loop_body(const fake_graph *graph);
/* The kernel that ends the loop that these nodes are, or NULL. */
const fake_node *fake_loop_end(const fake_node *nodes, size_t n_nodes);
/* What a launch of `kernel` into the graph (NULL: none) says of the loop that it ends or
 * of the branch that it decides. */
void fake_condition_note(fake_node *node, const fake_graph *graph, const void *kernel,
                         void **args);
/* Looks at where a node is captured: programmatic edges end at branches, and other
 * streams wait for them. */
void fake_branch_check(const fake_stream *stream, const fake_node *node);
/* Nodes that a launch of the graph can run: those of branches' bodies for the branches.
 */
size_t fake_flat_count(const fake_graph *graph);
/* Milliseconds that branches among the nodes add; marks what is skipped. */
double fake_branches_decide(fake_node *nodes, size_t n_nodes);
/* Turns that one launch of such a loop makes. */
long fake_loop_run(const fake_node *end);

/* --- fake_cuda_edit.c: nodes and edges that come and go when a graph is done --- */

/* Brings the nodes of an edited graph, and of bodies in it, into the order that its edges
 * say, of which each node has one; one that has more or none is a mistake. */
void fake_settle(fake_graph *graph);

/* --- fake_cuda_order.c: at once, or in some order that is allowed --- */

void fake_order_copy(fake_stream *stream, void *to, const void *from, size_t bytes);
void fake_order_fill(fake_stream *stream, void *to, int byte, size_t bytes);
void fake_order_record(fake_stream *stream, fake_event *event);
void fake_order_wait(fake_stream *stream, const fake_event *event);
/* Everything on the stream; NULL: on all. */
void fake_order_finish(const fake_stream *stream);
void fake_order_finish_event(const fake_event *event);
bool fake_order_has_passed(const fake_event *event);

/* Work on a stream: a node where it captures, else a tick of the clock. *captured says
 * which. */
cudaError_t fake_enqueue(cudaStream_t stream, fake_node node, bool *captured);
/* A fill of bytes. */
fake_node fake_fill_node(void *memory, unsigned char byte, size_t bytes);
/* Milliseconds, one for each thing that ran. */
double fake_clock(void);
/* The host waits, and what the card has run until now no longer makes it hot. */
void fake_rest(void);
/* An unsafe call while this thread captures invalidates the capture. */
cudaError_t fake_unsafe(void);
/* What this thread captures; NULL: nothing. */
fake_graph *fake_capturing(void);
/* Nothing more can be captured into the graph; gives the error. */
cudaError_t fake_invalidate(fake_graph *graph, cudaError_t error);
/* The stream captures into the graph from now on. */
void fake_take_into(fake_graph *graph, fake_stream *stream);

#endif
