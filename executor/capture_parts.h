/* What the files that look into captured graphs share. */
#ifndef GX_CAPTURE_PARTS_H
#define GX_CAPTURE_PARTS_H

#include "capture.h"
#include "cuda_compat.h"

/* The edges of a graph, each with its data; free it where this came out well. */
typedef struct gx_node_edges {
    cudaGraphNode_t *from, *to;
    cudaGraphEdgeData *data;
    size_t n;
} gx_node_edges;
gx_status gx_node_edges_list(void *graph, gx_node_edges *edges,
                             gx_error *err) GX_MUST_CHECK;
void gx_node_edges_free(gx_node_edges *edges);

gx_status gx_is_on_device(const void *address, bool *on_device,
                          gx_error *err) GX_MUST_CHECK;

#endif
