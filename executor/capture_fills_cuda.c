/* Fills in a captured graph become kernels.
 *
 * A library's product may clear counters in its workspace first, and the capture makes a
 * memset node of that. A graph of kernels alone is launched in a few microseconds; with
 * memset nodes among them it took an H200 several times as long, on the host and on the
 * device. */
#include "capture_parts.h"

#include <stdlib.h>

#include "fill.h"
#include "launch.h"

/* A fill and the kernel in its place. */
typedef struct replaced {
    cudaGraphNode_t fill, kernel;
} replaced;

/* In the order of the fills' addresses. */
typedef struct replacements {
    replaced *list;
    size_t n;
} replacements;

/* --- the kernel --- */

static gx_fill fill_of(const struct cudaMemsetParams *from)
{
    gx_fill fill = { .to = from->dst,
                     .row_bytes = from->width * from->elementSize,
                     .n_rows = from->height,
                     .pitch = from->height > 1 ? from->pitch : 0 };

    for (unsigned i = 0; i < 4; i++)
        fill.word |= (from->value >> 8 * (i % from->elementSize) & 0xff) << 8 * i;
    return fill;
}

static unsigned at_most(size_t n, unsigned most)
{
    return n < 1 ? 1 : n > most ? most : (unsigned)n;
}

/* Enough for a large fill to use the whole card; the kernel goes on where they end. */
static dim3 grid_of(const gx_fill *fill)
{
    enum { MOST = 1024 };
    const size_t n_units = fill->row_bytes / GX_FILL_UNIT + 2; /* an end on either side */
    const unsigned x = at_most((n_units + GX_FILL_BLOCK - 1) / GX_FILL_BLOCK, MOST);

    return (dim3){ x, at_most(fill->n_rows, MOST / x), 1 };
}

/* Without edges. */
static gx_status add_kernel(cudaGraph_t graph, const struct cudaMemsetParams *from,
                            cudaGraphNode_t *node, gx_error *err)
{
    gx_fill fill = fill_of(from);
    void *args[] = { &fill };
    const struct cudaKernelNodeParams params = {
        .func = (void *)gx_fill_kernel(),
        .gridDim = grid_of(&fill),
        .blockDim = { GX_FILL_BLOCK, 1, 1 },
        .kernelParams = args,
    };

    return GX_CUDA(cudaGraphAddKernelNode(node, graph, NULL, 0, &params), err);
}

/* --- which --- */

/* Of device memory alone, as all is that programs of ours fill; any other fill stays what
 * it is. */
static gx_status is_replaceable(cudaGraphNode_t node, struct cudaMemsetParams *params,
                                bool *replaceable, gx_error *err)
{
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;

    *replaceable = false;
    GX_TRY(GX_CUDA(cudaGraphNodeGetType(node, &type), err));
    if (type != cudaGraphNodeTypeMemset)
        return GX_OK;
    GX_TRY(GX_CUDA(cudaGraphMemsetNodeGetParams(node, params), err));
    return gx_is_on_device(params->dst, replaceable, err);
}

static gx_status replace(cudaGraph_t graph, const gx_node_list *nodes,
                         const gx_fill_hooks *hooks, replacements *made, gx_error *err)
{
    for (size_t i = 0; i < nodes->n; i++) {
        replaced *const next = &made->list[made->n];
        struct cudaMemsetParams params = { .dst = NULL };
        bool replaceable;

        next->fill = nodes->node[i];
        GX_TRY(is_replaceable(next->fill, &params, &replaceable, err));
        if (!replaceable)
            continue;
        if (hooks)
            hooks->before(hooks->user, i);
        const gx_status st = add_kernel(graph, &params, &next->kernel, err);
        if (hooks)
            hooks->after(hooks->user, i);
        GX_TRY(st);
        made->n++;
    }
    return GX_OK;
}

/* --- edges --- */

static int compare_fills(const void *left, const void *right)
{
    const uintptr_t a = (uintptr_t)((const replaced *)left)->fill;
    const uintptr_t b = (uintptr_t)((const replaced *)right)->fill;

    return (a > b) - (a < b);
}

/* Whether there is a kernel in the node's place, and that instead of the node. */
static bool find_kernel(const replacements *made, cudaGraphNode_t *node)
{
    const replaced key = { .fill = *node };
    const replaced *const found =
        bsearch(&key, made->list, made->n, sizeof *made->list, compare_fills);

    if (found)
        *node = found->kernel;
    return found != NULL;
}

/* The edges of each fill, to or from its kernel, with the data that they have. */
static gx_status add_edges(cudaGraph_t graph, const replacements *made, gx_error *err)
{
    gx_node_edges edges;
    size_t n = 0;

    GX_TRY(gx_node_edges_list(graph, &edges, err));
    for (size_t i = 0; i < edges.n; i++) {
        const bool starts = find_kernel(made, &edges.from[i]);
        const bool ends = find_kernel(made, &edges.to[i]);

        if (!starts && !ends)
            continue;
        edges.from[n] = edges.from[i];
        edges.to[n] = edges.to[i];
        edges.data[n++] = edges.data[i];
    }
    const gx_status st =
        n ? GX_COMPAT("cudaGraphAddDependencies",
                      gx_compat_add_edges(graph, edges.from, edges.to, edges.data, n),
                      err)
          : GX_OK;
    gx_node_edges_free(&edges);
    return st;
}

/* --- all of it --- */

static gx_status replace_all(cudaGraph_t graph, const gx_node_list *nodes,
                             const gx_fill_hooks *hooks, replacements *made,
                             gx_error *err)
{
    GX_TRY(gx_load_kernel(gx_fill_kernel(), 0, "fill_kernel", err));
    GX_TRY(replace(graph, nodes, hooks, made, err));
    qsort(made->list, made->n, sizeof *made->list, compare_fills);
    GX_TRY(add_edges(graph, made, err));
    for (size_t i = 0; i < made->n; i++)
        GX_TRY(GX_CUDA(cudaGraphDestroyNode(made->list[i].fill), err));
    return GX_OK;
}

gx_status gx_graph_replace_fills(void *graph, const gx_node_list *nodes, size_t n_fills,
                                 const gx_fill_hooks *hooks, gx_error *err)
{
    replacements made = { .n = 0 };

    if (n_fills == 0)
        return GX_OK;
    made.list = calloc(n_fills + 1, sizeof *made.list); /* and one that is looked at */
    if (!made.list)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory to replace %zu fills", n_fills);
    const gx_status st = replace_all(graph, nodes, hooks, &made, err);
    free(made.list);
    return st;
}
