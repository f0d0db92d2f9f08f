/* Which programmatic edges a plan has, and the public call that measures them. */
#include "edges.h"

#include <stdlib.h>
#include <string.h>

#include "need.h"

/* --- the edges --- */

typedef struct numbered {
    uint64_t hash[2];
    size_t edge;
} numbered;

static void add_text(uint64_t hash[2], const char *text)
{
    /* The final zero as well: it keeps two texts apart. */
    for (size_t i = 0, n = strlen(text) + 1; i < n; i++) {
        hash[0] = (hash[0] ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
        hash[1] = (hash[1] ^ (unsigned char)text[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

static void add_unit(uint64_t hash[2], const gx_unit *unit)
{
    const char lane[] = { (char)('0' + unit->lane), '\0' };

    add_text(hash, unit->key ? unit->key : "");
    add_text(hash, unit->alternative ? unit->alternative->name : "");
    add_text(hash, lane);
    for (int i = 0; unit->has_algo && i < GX_ALGO_BYTES; i++)
        hash[0] = (hash[0] ^ unit->algo[i]) * UINT64_C(0x100000001b3);
}

/* By what they join; among equals the earlier edge first. */
static int compare_numbered(const void *a, const void *b)
{
    const numbered *x = a, *y = b;

    for (int i = 0; i < 2; i++) {
        if (x->hash[i] != y->hash[i])
            return x->hash[i] < y->hash[i] ? -1 : 1;
    }
    return (x->edge > y->edge) - (x->edge < y->edge);
}

/* Equal edges get the index of the first of them, and then sets are counted in the order
 * of the plan. */
static gx_status number_sets(const gx_plan *plan, gx_edge *edges, size_t n_edges,
                             int32_t *n_sets, gx_error *err)
{
    numbered *sorted = malloc((n_edges + 1) * sizeof *sorted);

    *n_sets = 0;
    if (!sorted)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the edges of a plan");
    for (size_t i = 0; i < n_edges; i++) {
        sorted[i] = (numbered){ .hash = { UINT64_C(0xcbf29ce484222325),
                                          UINT64_C(0x84222325cbf29ce4) },
                                .edge = i };
        add_unit(sorted[i].hash, &plan->units[edges[i].before]);
        add_unit(sorted[i].hash, &plan->units[edges[i].unit]);
    }
    qsort(sorted, n_edges, sizeof *sorted, compare_numbered);
    for (size_t i = 0, first = 0; i < n_edges; i++) {
        if (memcmp(sorted[i].hash, sorted[first].hash, sizeof sorted[i].hash) != 0)
            first = i;
        edges[sorted[i].edge].set = (int32_t)sorted[first].edge;
    }
    for (size_t i = 0; i < n_edges; i++) {
        const int32_t first = edges[i].set;

        edges[i].set = (size_t)first == i ? (*n_sets)++ : edges[first].set;
    }
    free(sorted);
    return GX_OK;
}

gx_status gx_edges_list(const gx_plan *plan, gx_edge *edges, size_t *n_edges,
                        int32_t *n_sets, gx_error *err)
{
    int32_t last[GX_MAX_LANES];

    *n_edges = 0;
    memset(last, -1, sizeof last);
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (gx_planned_launches(unit) == 0)
            continue;
        if (unit->programmatic_first && last[unit->lane] >= 0)
            edges[(*n_edges)++] =
                (gx_edge){ .before = last[unit->lane], .unit = (int32_t)u };
        last[unit->lane] = (int32_t)u;
    }
    return number_sets(plan, edges, *n_edges, n_sets, err);
}

/* --- the public call --- */

#if GX_HAVE_CUDA

static gx_status measure(gx_plan *plan, gx_edge *edges, gx_edge_gain *gains,
                         gx_edge_info *infos, size_t *n_infos, gx_error *err)
{
    gx_state *state = NULL;
    size_t n_edges;
    int32_t n_sets;

    GX_TRY(gx_edges_list(plan, edges, &n_edges, &n_sets, err));
    if (n_edges == 0)
        return GX_OK;
    GX_TRY(gx_state_create_unfed(plan->graph, plan->device, &state, err));
    const gx_status st =
        gx_edges_measure(plan, state, edges, n_edges, n_sets, gains, err);
    gx_state_free(state);
    GX_TRY(st);
    for (size_t i = 0; i < n_edges; i++) {
        const gx_edge_gain *gain = &gains[edges[i].set];

        if (gain->n_edges == 0)
            continue;
        infos[(*n_infos)++] = (gx_edge_info){
            .before = (size_t)edges[i].before,
            .unit = (size_t)edges[i].unit,
            .n_equal = (size_t)gain->n_edges,
            .programmatic = !plan->units[edges[i].unit].full_edge,
            .gain_us = gain->gain_us,
            .spread_us = gain->spread_us,
        };
    }
    return GX_OK;
}

#endif

gx_status gx_plan_measure_edges(gx_plan *plan, gx_edge_info *infos, size_t *n_infos,
                                gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(gx_need_place(n_infos, "number of edges", err));
    *n_infos = 0;
    GX_TRY(gx_need(plan, "plan", err));
    GX_TRY(gx_need_place(infos, "edges", err));
    if (plan->device == GX_CPU)
        return GX_FAIL(err, GX_ERR_NO_DEVICE,
                       "programmatic edges join kernels on a GPU, and the plan is for "
                       "the CPU");
#if GX_HAVE_CUDA
    if (!plan->programmatic)
        return GX_OK;
    gx_edge *edges = calloc(plan->n_units + 1, sizeof *edges);
    gx_edge_gain *gains = calloc(plan->n_units + 1, sizeof *gains);
    const gx_status st =
        edges && gains ? measure(plan, edges, gains, infos, n_infos, err)
                       : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a plan's edges");

    free(gains);
    free(edges);
    return st;
#else
    (void)infos;
    return GX_FAIL(err, GX_ERR_NO_DEVICE, "device %d: this gexec was built without CUDA",
                   plan->device);
#endif
}
