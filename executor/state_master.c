/* Parameters and the masters that they are rounded from. */
#include <string.h>

#include "state.h"

/* The entry of an operand of a node, by the field's name; NULL: there is none. */
static gx_entry *operand(const gx_state *state, const gx_graph *graph,
                         const gx_node *node, const char *name)
{
    int arg = 0;

    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (field->kind > GX_FIELD_OUT)
            continue;
        if (strcmp(field->name, name) == 0 && node->arg[arg] >= 0)
            return (gx_entry *)gx_state_find(state, graph->values[node->arg[arg]].name);
        arg++;
    }
    return NULL;
}

void gx_state_pair_masters(gx_state *state, const gx_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];
        gx_entry *master = node->phase == GX_PHASE_OPTIMIZER
                               ? operand(state, graph, node, "master")
                               : NULL;
        gx_entry *param = master ? operand(state, graph, node, "param") : NULL;

        if (!param)
            continue;
        param->master = master;
        master->copy = param;
    }
}
