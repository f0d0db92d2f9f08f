/* The units of a plan: what they compute and move, and the least time that takes. */
#include <stdlib.h>
#include <string.h>

#include "plan_report.h"
#include "profile_parts.h"

/* Only products round their operands or run on tensor cores; the rest is f32. */
static gx_rate rate_of(const gx_graph *graph, const gx_unit_info *unit)
{
    static const char *const names[GX_RATES] = { "f32", "tf32", "bf16", "f16" };
    bool multiplies = false;

    for (size_t i = 0; i < unit->n_nodes; i++) {
        const gx_node_info node = gx_graph_node(graph, unit->first_node + i);

        multiplies |= strncmp(gx_op_name(node.op), "gemm", 4) == 0;
    }
    for (int r = 0; multiplies && r < GX_RATES; r++)
        if (strcmp(gx_graph_precision(graph), names[r]) == 0)
            return (gx_rate)r;
    return GX_RATE_F32;
}

gx_status gx_profile_units(const gx_plan *plan, gx_profile_unit **units, size_t *n_units,
                           gx_error *err)
{
    const gx_graph *const graph = gx_plan_graph(plan);
    const size_t n = gx_plan_unit_count(plan);
    gx_profile_unit *made = calloc(n + 1, sizeof *made);

    *units = NULL;
    *n_units = 0;
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the units of a profile");
    for (size_t i = 0; i < n; i++) {
        const gx_unit_info unit = gx_plan_unit(plan, i);

        made[i] = (gx_profile_unit){ .alternative = unit.alternative,
                                     .phase = unit.phase,
                                     .lane = unit.lane,
                                     .flops = unit.flops,
                                     .bytes = unit.bytes,
                                     .rate = rate_of(graph, &unit),
                                     .floor_s = -1,
                                     .waits = unit.waits,
                                     .n_waits = unit.n_waits };
        gx_unit_text(plan, &unit, made[i].name, sizeof made[i].name);
    }
    *units = made;
    *n_units = n;
    return GX_OK;
}

void gx_profile_unit_floors(gx_profile_unit *units, size_t n_units,
                            const gx_ceilings *ceilings)
{
    for (size_t i = 0; i < n_units; i++) {
        gx_profile_unit *const unit = &units[i];

        unit->floor_s = -1;
        unit->bound = GX_BOUND_UNKNOWN;
        if (ceilings)
            unit->floor_s = gx_ceilings_floor(ceilings, unit->rate, unit->flops,
                                              unit->bytes, &unit->bound);
    }
}

/* --- the longest path --- */

/* Where a chain stands when a unit has ended. */
typedef struct reached {
    double seconds;
    size_t n_units;
    double n_nodes;
} reached;

static void take_later(reached *best, const reached *other)
{
    if (other->seconds > best->seconds)
        *best = *other;
}

/* What a unit puts on the device in a step. */
static double nodes_of(const gx_profile_pass *pass, size_t unit)
{
    for (size_t i = 0; pass && i < pass->n_ops; i++)
        if (pass->op[i].unit == unit && pass->n_steps)
            return (double)pass->op[i].calls / (double)pass->n_steps;
    return 0;
}

static reached walk(const gx_profile_unit *units, size_t n_units,
                    const gx_profile_pass *pass, reached *ends)
{
    reached lane[GX_MAX_LANES];
    reached last = { 0 };

    memset(lane, 0, sizeof lane);

    for (size_t i = 0; i < n_units; i++) {
        const gx_profile_unit *const unit = &units[i];
        reached *const end = &ends[i];

        *end = lane[unit->lane];
        for (size_t w = 0; w < unit->n_waits; w++)
            if (unit->waits[w] >= 0 && (size_t)unit->waits[w] < i)
                take_later(end, &ends[unit->waits[w]]);
        end->seconds += unit->floor_s;
        end->n_units++;
        end->n_nodes += nodes_of(pass, i);
        lane[unit->lane] = *end;
    }
    for (int l = 0; l < GX_MAX_LANES; l++)
        take_later(&last, &lane[l]);
    return last;
}

/* Programmatic edges let the next node begin sooner; more of them than nodes on the path
 * lie elsewhere. */
static double latency_of(const gx_profile_pass *pass, const gx_ceilings *ceilings,
                         double n_nodes)
{
    double n_early = 0;

    if (!(ceilings->node_s >= 0))
        return -1;
    if (ceilings->programmatic_node_s >= 0 && pass->mode == GX_MODE_GRAPH)
        n_early = (double)pass->stats.programmatic_edges;
    if (n_early > n_nodes)
        n_early = n_nodes;
    return (n_nodes - n_early) * ceilings->node_s +
           n_early * ceilings->programmatic_node_s;
}

gx_status gx_profile_path(const gx_profile_unit *units, size_t n_units,
                          const gx_profile_pass *pass, const gx_ceilings *ceilings,
                          gx_profile_floor *floor, gx_error *err)
{
    const bool counted = pass && pass->n_steps > 0;
    reached *ends;
    reached last;

    *floor = (gx_profile_floor){ .path_s = -1, .n_nodes = -1, .latency_s = -1 };
    if (!ceilings || n_units == 0)
        return GX_OK;
    for (size_t i = 0; i < n_units; i++)
        if (units[i].floor_s < 0)
            return GX_OK;
    ends = calloc(n_units, sizeof *ends);
    if (!ends)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the path of a profile");
    last = walk(units, n_units, counted ? pass : NULL, ends);
    free(ends);
    floor->path_s = last.seconds;
    floor->n_units = last.n_units;
    if (counted) {
        floor->n_nodes = (int64_t)(last.n_nodes + 0.5);
        floor->latency_s = latency_of(pass, ceilings, (double)floor->n_nodes);
    }
    return GX_OK;
}
