/* The updates in several launches, for a lane of their own: one can start as soon as its
 * gradients are there, while the backward pass goes on with earlier layers. */
#include <string.h>

#include "builder.h"
#include "select.h"

/* So many launches at most, and none that moves less than takes about as long as a launch
 * itself: a part that is smaller starts no earlier by itself. */
enum { MOST_CHUNKS = 8 };
static const double LEAST_BYTES = 4 << 20;

/* A chunk ends where it has nearly its share: equal layers then make equal chunks, which
 * a small tensor beside them does not shift. */
static const double NEARLY = 0.9;

/* A node that changes what stays: its like can do so apart from it. */
static bool updates(const gx_graph *graph, int32_t node)
{
    const gx_node *at = &graph->nodes[node];

    for (int arg = 0; arg < gx_n_args(at->op); arg++) {
        if (gx_arg_kind(at->op, arg) == GX_FIELD_INOUT && at->arg[arg] >= 0 &&
            gx_is_lasting(&graph->values[at->arg[arg]]))
            return true;
    }
    return false;
}

static bool can_be_cut(const gx_graph *graph, const gx_unit *unit)
{
    const gx_alternative *at = unit->alternative;

    if (unit->phase != GX_PHASE_OPTIMIZER || !at || at->repeat != GX_REPEAT_LAST ||
        at->elides || at->pattern[1])
        return false;
    for (int32_t i = 0; i < unit->n_nodes; i++) {
        if (!updates(graph, unit->first_node + i))
            return false;
    }
    return true;
}

static double bytes_of(const gx_graph *graph, int32_t node)
{
    return gx_graph_node(graph, (size_t)node).bytes;
}

/* The end of the chunk that begins at each node is found in turn. */
typedef struct cutter {
    const gx_graph *graph;
    int32_t at, end; /* nodes that are left */
    double left;     /* their bytes */
    double share;    /* of a chunk */
    int n_chunks;    /* at most, still to come */
} cutter;

static cutter start(const gx_graph *graph, const gx_unit *unit)
{
    cutter c = { .graph = graph,
                 .at = unit->first_node,
                 .end = unit->first_node + unit->n_nodes,
                 .n_chunks = 1 };

    for (int32_t i = c.at; i < c.end; i++)
        c.left += bytes_of(graph, i);
    while (c.n_chunks < MOST_CHUNKS && c.left >= (c.n_chunks + 1) * LEAST_BYTES)
        c.n_chunks++;
    c.share = c.left / c.n_chunks;
    return c;
}

/* Nodes of the next chunk; 0: there is none. */
static int32_t next(cutter *c)
{
    const int32_t first = c->at;
    double bytes = 0;

    while (c->at < c->end) {
        bytes += bytes_of(c->graph, c->at);
        c->left -= bytes_of(c->graph, c->at);
        c->at++;
        if (c->n_chunks > 1 && bytes >= NEARLY * c->share && bytes >= LEAST_BYTES &&
            c->left >= LEAST_BYTES)
            break;
    }
    c->n_chunks--;
    return c->at - first;
}

static size_t count_chunks(const gx_graph *graph, const gx_unit *unit)
{
    cutter c = start(graph, unit);
    size_t n = 0;

    while (next(&c) > 0)
        n++;
    return n;
}

/* Says of a chunk what the whole would have cost. */
static gx_status reject_whole(gx_plan *plan, const gx_unit *whole, gx_unit *unit,
                              gx_error *err)
{
    const char *op = plan->graph->nodes[whole->first_node].op->name;

    unit->rejected = gx_arena_alloc(plan->arena, sizeof *unit->rejected);
    if (!unit->rejected)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    unit->rejected[0] = (gx_rejected){
        .alternative = gx_arena_format(plan->arena, "%s (%s to %s)",
                                       whole->alternative->name, op, op),
        .us = whole->us,
        .reason = "would wait for every gradient",
    };
    if (!unit->rejected[0].alternative)
        unit->rejected[0].alternative = whole->alternative->name;
    unit->n_rejected = 1;
    return GX_OK;
}

static gx_status cut(gx_plan *plan, const gx_unit *whole, gx_unit *to, gx_error *err)
{
    cutter c = start(plan->graph, whole);
    int32_t first = c.at, n;

    while ((n = next(&c)) > 0) {
        GX_TRY(gx_unit_start(plan, to, first, n, whole->alternative, err));
        GX_TRY(reject_whole(plan, whole, to, err));
        first += n;
        to++;
    }
    return GX_OK;
}

gx_status gx_cut_updates(gx_plan *plan, bool *any, gx_error *err)
{
    const gx_unit *units = plan->units;
    size_t n = 0;

    *any = false;
    for (size_t u = 0; u < plan->n_units; u++)
        n +=
            can_be_cut(plan->graph, &units[u]) ? count_chunks(plan->graph, &units[u]) : 1;
    if (n == plan->n_units)
        return GX_OK;
    gx_unit *made = gx_arena_alloc(plan->arena, (n + 1) * sizeof *made);

    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    n = 0;
    for (size_t u = 0; u < plan->n_units; u++) {
        const size_t n_chunks =
            can_be_cut(plan->graph, &units[u]) ? count_chunks(plan->graph, &units[u]) : 1;

        if (n_chunks > 1)
            GX_TRY(cut(plan, &units[u], &made[n], err));
        else
            made[n] = units[u];
        n += n_chunks;
    }
    plan->units = made;
    plan->n_units = n;
    *any = true;
    return GX_OK;
}

/* --- what a chunk costs --- */

/* Takes over what is known of an equal unit before it. */
static bool take_equal(const gx_plan *plan, gx_unit *unit, const char *key)
{
    const gx_unit *at = plan->units;

    while (at < unit && !(at->key && at->alternative == unit->alternative &&
                          strcmp(at->key, key) == 0))
        at++;
    if (at == unit)
        return false;
    unit->key = at->key;
    unit->us = at->us;
    unit->cached = at->cached;
    unit->n_launches = at->n_launches;
    unit->workspace_bytes = at->workspace_bytes;
    unit->has_algo = at->has_algo;
    memcpy(unit->algo, at->algo, sizeof unit->algo);
    return true;
}

static gx_status examine(const gx_selector *selector, gx_plan *plan, gx_unit *unit,
                         bool *good, gx_error *err)
{
    char key[GX_KEY_SIZE];
    uint64_t hash[2];

    gx_site_key(plan->graph, unit->first_node, unit->n_nodes, key, hash);
    if (take_equal(plan, unit, key))
        return GX_OK;
    gx_candidate *candidate = gx_arena_alloc(plan->arena, sizeof *candidate);
    gx_site *site = gx_arena_alloc(plan->arena, sizeof *site); /* told apart by address */

    if (!candidate || !site)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    *candidate =
        (gx_candidate){ .alternative = unit->alternative, .us = -1, .n_launches = -1 };
    *site = (gx_site){ .key = gx_arena_text(plan->arena, key),
                       .first = unit->first_node,
                       .n = unit->n_nodes,
                       .candidates = candidate,
                       .n_candidates = 1 };
    if (!site->key)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    GX_TRY(gx_select_examine(selector, site, err));
    *good = !candidate->refused;
    gx_unit_take(unit, site->key, candidate);
    return GX_OK;
}

gx_status gx_examine_updates(const gx_selector *selector, gx_plan *plan, bool *good,
                             gx_error *err)
{
    *good = true;
    for (size_t u = 0; u < plan->n_units && *good; u++) {
        if (!plan->units[u].key)
            GX_TRY(examine(selector, plan, &plan->units[u], good, err));
    }
    return GX_OK;
}
