/* Units: what one has whoever runs it, and what it has of the candidate that does. */
#include "select.h"

#include <string.h>

gx_status gx_unit_start(gx_plan *plan, gx_unit *unit, int32_t first, int32_t n,
                        const gx_alternative *alternative, gx_error *err)
{
    *unit = (gx_unit){
        .first_node = first,
        .n_nodes = n,
        .alternative = alternative,
        .phase = plan->graph->nodes[first].phase,
        .us = -1,
        .n_launches = -1,
        .skips = gx_unit_skips(plan->graph, first, n),
    };
    if (!alternative || !alternative->elides)
        return GX_OK;
    unit->elided =
        gx_arena_alloc(plan->arena, (size_t)n * GX_MAX_ARGS * sizeof *unit->elided);
    if (!unit->elided)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    gx_match_elided(plan->graph, first, n, unit->elided);
    return GX_OK;
}

void gx_unit_take(gx_unit *unit, const char *key, const gx_candidate *candidate)
{
    unit->key = key;
    unit->us = candidate->us;
    unit->cached = candidate->cached;
    unit->n_launches = candidate->n_launches;
    unit->workspace_bytes = candidate->workspace_bytes;
    unit->has_algo = candidate->has_algo;
    memcpy(unit->algo, candidate->algo, sizeof unit->algo);
}

void gx_count_choices(const gx_selector *selector, gx_plan *plan)
{
    plan->info.n_cached = 0;
    plan->info.n_measured = 0;
    plan->info.n_forced = 0;
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        plan->info.n_cached += unit->cached;
        plan->info.n_measured += !unit->cached && unit->us >= 0;
        plan->info.n_forced += gx_is_forced(selector->force, unit->alternative->name);
    }
}

gx_status gx_select_reference(gx_plan *plan, gx_error *err)
{
    const size_t n = plan->graph->n_nodes;

    plan->units = gx_arena_alloc(plan->arena, (n + 1) * sizeof *plan->units);
    if (!plan->units)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
    plan->n_units = n;
    for (size_t i = 0; i < n; i++)
        GX_TRY(gx_unit_start(plan, &plan->units[i], (int32_t)i, 1, NULL, err));
    return GX_OK;
}
