/* What the passes go on from, by value. */
#include "pass_path.h"

#include <stdlib.h>
#include <string.h>

#include "builder.h"

static int32_t home_of(const int32_t *home, int32_t value)
{
    return home ? home[value] : value;
}

static bool is_view(const gx_node *node, const int32_t *home)
{
    return home && node->op->view && home[node->arg[1]] != node->arg[1];
}

bool gx_pass_path_is_beside(const gx_pass_path *path, const int32_t *home, int32_t first,
                            int32_t n)
{
    if (path->graph->nodes[first].phase != GX_PHASE_BACKWARD)
        return false;
    for (int32_t i = first; i < first + n; i++) {
        const gx_node *node = &path->graph->nodes[i];

        for (int arg = 0; arg < gx_n_args(node->op); arg++) {
            if (node->arg[arg] >= 0 && gx_arg_kind(node->op, arg) != GX_FIELD_IN &&
                path->last[home_of(home, node->arg[arg])] >= first + n)
                return false;
        }
    }
    return true;
}

/* The nodes behind this one have been seen. What only adds up, as where a weight is used
 * twice, leads to the path where its sum does. */
static void see_node(gx_pass_path *path, const int32_t *home, int32_t i)
{
    const gx_node *node = &path->graph->nodes[i];

    if (node->phase > GX_PHASE_BACKWARD || is_view(node, home) ||
        (node->op->sum && gx_pass_path_is_beside(path, home, i, 1)))
        return;
    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        if (node->arg[arg] < 0 || gx_arg_kind(node->op, arg) == GX_FIELD_OUT)
            continue;
        int32_t *last = &path->last[home_of(home, node->arg[arg])];

        if (*last < i)
            *last = i;
    }
}

gx_status gx_pass_path_find(const gx_graph *graph, const int32_t *home,
                            gx_pass_path *path, gx_error *err)
{
    const size_t n = graph->n_values + 1;

    *path = (gx_pass_path){ .graph = graph, .last = malloc(n * sizeof *path->last) };
    if (!path->last)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the path of a step");
    memset(path->last, -1, n * sizeof *path->last);
    for (int32_t i = (int32_t)graph->n_nodes - 1; i >= 0; i--)
        see_node(path, home, i);
    return GX_OK;
}

void gx_pass_path_free(gx_pass_path *path)
{
    free(path->last);
    path->last = NULL;
}
