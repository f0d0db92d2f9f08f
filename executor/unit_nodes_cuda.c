/* The nodes of a captured graph by the unit that added them. */
#include "unit_nodes.h"

#include <stdlib.h>

/* What a branch adds to the graph around it: itself, and what decides it. */
enum { BRANCH_NODES = 2 };

gx_status gx_unit_nodes_open(gx_unit_nodes *nodes, gx_exec *exec, int n_steps,
                             gx_error *err)
{
    const size_t n_units = exec->plan->n_units;
    /* Between two branches of a step there is a unit. */
    const size_t most = 2 * (size_t)n_steps * n_units + 1;

    *nodes = (gx_unit_nodes){ .exec = exec };
    nodes->ends = calloc(most, sizeof *nodes->ends);
    nodes->seen = calloc(n_units + 1, sizeof *nodes->seen);
    return nodes->ends && nodes->seen
               ? GX_OK
               : GX_FAIL(err, GX_ERR_MEMORY, "no memory to count the nodes of %zu units",
                         n_units);
}

void gx_unit_nodes_close(gx_unit_nodes *nodes)
{
    free(nodes->seen);
    free(nodes->ends);
    *nodes = (gx_unit_nodes){ .exec = NULL };
}

void gx_unit_nodes_begin(gx_unit_nodes *nodes, bool asks)
{
    nodes->asks = asks;
    nodes->n_ends = 0;
    nodes->n_steps = 0;
    nodes->n_body = 0;
    nodes->n_settled = 0;
    for (size_t u = 0; u < nodes->exec->plan->n_units; u++)
        nodes->seen[u] = -1;
}

void gx_unit_nodes_enter(gx_unit_nodes *nodes)
{
    nodes->n_body = 0;
}

/* --- what was promised --- */

/* -1: nothing, and it was never captured. */
static int promised(const gx_unit_nodes *nodes, size_t unit)
{
    const gx_exec *exec = nodes->exec;

    if (unit == GX_NO_UNIT)
        return BRANCH_NODES;
    const gx_bound_unit *bound = &exec->units[unit];
    const int planned = gx_planned_launches(&exec->plan->units[unit]);

    if (planned >= 0)
        return planned;
    if (bound->prepared.n_launches >= 0)
        return bound->prepared.n_launches;
    return bound->n_seen >= 0 ? bound->n_seen : nodes->seen[unit];
}

/* What adds nodes for the first time promises as many. */
static bool keeps(gx_unit_nodes *nodes, size_t unit, size_t added)
{
    const int expected = promised(nodes, unit);

    if (expected < 0)
        nodes->seen[unit] = (int)added;
    return expected < 0 || added == (size_t)expected;
}

void gx_unit_nodes_learn(const gx_unit_nodes *nodes)
{
    for (size_t u = 0; u < nodes->exec->plan->n_units; u++)
        if (nodes->seen[u] >= 0)
            nodes->exec->units[u].n_seen = nodes->seen[u];
}

/* --- while it is captured --- */

static gx_status wrong_count(void *stream, size_t found, size_t expected, gx_error *err)
{
    gx_node_counts counts;

    GX_TRY(gx_record_look(stream, &counts, err));
    return GX_FAIL(
        err, GX_ERR_CAPTURE,
        "%zu graph nodes were captured, expected %zu%s (the graph holds %zu memory "
        "nodes and %zu host nodes)",
        found, expected, found < expected ? ": work went past the capture" : "",
        counts.memory, counts.host);
}

static gx_status ask(gx_unit_nodes *nodes, gx_unit_end *end, void *stream, gx_error *err)
{
    size_t *const so_far = end->body ? &nodes->n_body : &nodes->n_steps;

    GX_TRY(gx_record_count(stream, &end->n_nodes, err));
    const size_t added = end->n_nodes - *so_far;
    *so_far = end->n_nodes;
    return keeps(nodes, end->unit, added)
               ? GX_OK
               : wrong_count(stream, added, (size_t)promised(nodes, end->unit), err);
}

gx_status gx_unit_nodes_end(gx_unit_nodes *nodes, size_t unit, size_t body, void *stream,
                            gx_error *err)
{
    gx_unit_end *end = &nodes->ends[nodes->n_ends++];

    *end = (gx_unit_end){ .unit = unit, .body = body };
    return nodes->asks ? ask(nodes, end, stream, err)
                       : gx_record_last(stream, &end->last, err);
}

/* --- when it is done --- */

/* A hash table: nodes to their places in the list, from 1. */
typedef struct places {
    const gx_node_list *list;
    size_t *slot; /* 0: free */
    size_t mask;
} places;

static size_t slot_of(const places *of, const void *node)
{
    size_t at =
        (size_t)(((uint64_t)(uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

    for (at &= of->mask; of->slot[at]; at = (at + 1) & of->mask)
        if (of->list->node[of->slot[at] - 1] == node)
            break;
    return at;
}

static gx_status make_places(places *of, const gx_node_list *list, gx_error *err)
{
    size_t n_slots = 2;

    while (n_slots < 2 * list->n)
        n_slots *= 2;
    *of = (places){ .list = list, .mask = n_slots - 1 };
    of->slot = calloc(n_slots, sizeof *of->slot);
    if (!of->slot)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory to find %zu graph nodes", list->n);
    for (size_t i = 0; i < list->n; i++)
        of->slot[slot_of(of, list->node[i])] = i + 1;
    return GX_OK;
}

/* Units are captured one after the other: where a stream goes on from a node that was
 * there before, the unit has added nothing. */
gx_status gx_unit_nodes_settle(gx_unit_nodes *nodes, size_t body,
                               const gx_node_list *list, size_t n_more, bool *kept,
                               gx_error *err)
{
    size_t so_far = 0;
    places of;

    GX_TRY(make_places(&of, list, err));
    for (size_t i = body ? nodes->n_settled : 0; i < nodes->n_ends; i++) {
        gx_unit_end *end = &nodes->ends[i];

        if (end->body != body)
            continue;
        const size_t place = end->last ? of.slot[slot_of(&of, end->last)] : 0;

        end->n_nodes = place > so_far ? place : so_far;
        *kept &= keeps(nodes, end->unit, end->n_nodes - so_far);
        so_far = end->n_nodes;
        if (body && (i + 1 == nodes->n_ends || nodes->ends[i + 1].body != body)) {
            nodes->n_settled = i + 1;
            break;
        }
    }
    *kept &= list->n - so_far == n_more;
    free(of.slot);
    return GX_OK;
}

/* NULL: the joining of lanes added the node. */
static const gx_unit_end *end_of(const gx_unit_nodes *nodes, size_t body, size_t node)
{
    for (size_t i = 0; i < nodes->n_ends; i++) {
        const gx_unit_end *end = &nodes->ends[i];

        if (end->body == body && node < end->n_nodes)
            return end;
    }
    return NULL;
}

size_t gx_unit_nodes_unit(const gx_unit_nodes *nodes, size_t body, size_t node)
{
    const gx_unit_end *end = end_of(nodes, body, node);

    return end ? end->unit : GX_NO_UNIT;
}

const char *gx_unit_nodes_owner(const gx_unit_nodes *nodes, size_t body, size_t node)
{
    const gx_unit_end *end = end_of(nodes, body, node);

    if (!end)
        return "the joining of lanes";
    return end->unit == GX_NO_UNIT ? "a branch" : nodes->exec->units[end->unit].name;
}
