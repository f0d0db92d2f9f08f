/* A graph with its nodes in another order. */
#include <string.h>

#include "graph_model.h"
#include "name_map.h"

static bool copy_nodes(const gx_graph *graph, const int32_t *order, gx_graph *made)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        made->nodes[i] = graph->nodes[order[i]];
        if (!gx_name_map_set(made->node_names, made->nodes[i].name, (int32_t)i))
            return false;
    }
    return true;
}

/* `to`: by old node id, where it stands now. */
static void copy_values(const gx_graph *graph, const int32_t *to, gx_graph *made)
{
    for (size_t i = 0; i < graph->n_values; i++) {
        gx_value *value = &made->values[i];

        *value = graph->values[i];
        value->producer = value->producer >= 0 ? to[value->producer] : -1;
    }
}

gx_graph *gx_graph_permuted(const gx_graph *graph, const int32_t *order, gx_arena *arena)
{
    gx_graph *made = gx_arena_alloc(arena, sizeof *made);
    gx_node *nodes = gx_arena_alloc(arena, (graph->n_nodes + 1) * sizeof *nodes);
    gx_value *values = gx_arena_alloc(arena, (graph->n_values + 1) * sizeof *values);
    int32_t *to = gx_arena_alloc(arena, (graph->n_nodes + 1) * sizeof *to);

    if (!made || !nodes || !values || !to)
        return NULL;
    *made = *graph;
    made->arena = arena;
    made->nodes = nodes;
    made->nodes_capacity = graph->n_nodes;
    made->values = values;
    made->values_capacity = graph->n_values;
    made->node_names = gx_name_map_create();
    if (!made->node_names || !copy_nodes(graph, order, made)) {
        gx_name_map_free(made->node_names);
        return NULL;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        to[order[i]] = (int32_t)i;
    copy_values(graph, to, made);
    return made;
}

void gx_graph_permuted_free(gx_graph *graph)
{
    if (graph)
        gx_name_map_free(graph->node_names);
}
