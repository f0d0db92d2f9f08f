/* The order of the nodes: as derived, or the way of the backward pass ahead of what
 * stands beside it, so that runs of like nodes stand together. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "pass_path.h"

const char *gx_node_order_name(gx_node_order order)
{
    static const char *const names[] = {
        [GX_ORDER_AUTO] = "auto",
        [GX_ORDER_DERIVED] = "derived",
        [GX_ORDER_DATA_FIRST] = "data-first",
    };

    return (size_t)order < sizeof names / sizeof names[0] ? names[order] : NULL;
}

bool gx_node_order_find(const char *name, gx_node_order *order)
{
    for (*order = GX_ORDER_DERIVED; *order <= GX_ORDER_DATA_FIRST; (*order)++) {
        if (strcmp(name, gx_node_order_name(*order)) == 0)
            return true;
    }
    return false;
}

/* --- which nodes stand back --- */

/* What the nodes that stay, of those behind the one at hand, do with a value. */
typedef struct use {
    bool is_read, is_written;
} use;

typedef struct sorter {
    const gx_graph *graph;
    gx_pass_path path;
    use *uses;   /* by value */
    bool *waits; /* by node: it stands back */
} sorter;

static bool is_backward(const gx_graph *graph, int32_t node)
{
    return node >= 0 && graph->nodes[node].phase == GX_PHASE_BACKWARD;
}

static bool reads_gradient(const gx_graph *graph, const gx_node *node)
{
    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        if (node->arg[arg] >= 0 && gx_arg_kind(node->op, arg) != GX_FIELD_OUT &&
            is_backward(graph, graph->values[node->arg[arg]].producer))
            return true;
    }
    return false;
}

/* A node behind it that stays would then run before it, and must not. */
static bool is_held(const sorter *s, const gx_node *node)
{
    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        if (node->arg[arg] < 0)
            continue;
        const use *u = &s->uses[node->arg[arg]];

        if (u->is_written || (u->is_read && gx_arg_kind(node->op, arg) != GX_FIELD_IN))
            return true;
    }
    return false;
}

static void note_uses(sorter *s, const gx_node *node)
{
    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        if (node->arg[arg] < 0)
            continue;
        const gx_field_kind kind = gx_arg_kind(node->op, arg);
        use *u = &s->uses[node->arg[arg]];

        u->is_read |= kind != GX_FIELD_OUT;
        u->is_written |= kind != GX_FIELD_IN;
    }
}

/* From the last backward node to the first, so that what holds a node is known. Returns
 * one past the last. */
static int32_t find_waiting(sorter *s)
{
    const gx_graph *graph = s->graph;
    int32_t end = (int32_t)graph->n_nodes;

    while (end > 0 && !is_backward(graph, end - 1))
        end--;
    for (int32_t i = end - 1; i >= 0; i--) {
        const gx_node *node = &graph->nodes[i];

        s->waits[i] = gx_pass_path_is_beside(&s->path, NULL, i, 1) &&
                      reads_gradient(graph, node) && !is_held(s, node);
        if (!s->waits[i])
            note_uses(s, node);
    }
    return end;
}

/* --- the order --- */

static void sort(sorter *s, int32_t *order, bool *differs)
{
    const int32_t n = (int32_t)s->graph->n_nodes;
    const int32_t end = find_waiting(s);
    int32_t at = 0;

    for (int waiting = 0; waiting < 2; waiting++) {
        for (int32_t i = 0; i < end; i++) {
            if (s->waits[i] == (waiting == 1))
                order[at++] = i;
        }
    }
    for (; at < n; at++)
        order[at] = at;
    *differs = false;
    for (int32_t i = 0; i < n; i++)
        *differs |= order[i] != i;
}

gx_status gx_data_first(const gx_graph *graph, int32_t *order, bool *differs,
                        gx_error *err)
{
    sorter s = { .graph = graph };

    GX_TRY(gx_pass_path_find(graph, NULL, &s.path, err));
    s.uses = calloc(graph->n_values + 1, sizeof *s.uses);
    s.waits = calloc(graph->n_nodes + 1, sizeof *s.waits);
    const bool good = s.uses && s.waits;

    if (good)
        sort(&s, order, differs);
    free(s.waits);
    free(s.uses);
    gx_pass_path_free(&s.path);
    return good ? GX_OK
                : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the order of a plan");
}

/* --- of a plan --- */

/* plan->reordered stays NULL where the graph stands that way already. */
static gx_status reorder(gx_plan *plan, gx_error *err)
{
    int32_t *order = malloc((plan->given->n_nodes + 1) * sizeof *order);
    bool differs = false;
    gx_status st =
        order ? gx_data_first(plan->given, order, &differs, err)
              : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the order of a plan");

    if (st == GX_OK && differs) {
        plan->reordered = gx_graph_permuted(plan->given, order, plan->arena);
        if (!plan->reordered)
            st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the order of a plan");
    }
    free(order);
    return st;
}

gx_status gx_plan_use_order(gx_plan *plan, gx_node_order order, gx_error *err)
{
    const bool data_first = order == GX_ORDER_DATA_FIRST;

    if (data_first && !plan->reordered)
        GX_TRY(reorder(plan, err));
    plan->order = data_first ? GX_ORDER_DATA_FIRST : GX_ORDER_DERIVED;
    plan->graph = data_first && plan->reordered ? plan->reordered : plan->given;
    return GX_OK;
}
