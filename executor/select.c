/* Selection: every site of every alternative is examined once, then the cheapest way
 * through all nodes is taken. */
#include "select.h"

#include <stdlib.h>
#include <string.h>

#include "pass_path.h"

enum { NONE = -1 };

/* What a microsecond off the path counts for, where a second lane may take it: it runs
 * beside the passes, but shares the card with them, and its lane has to end too. */
static const double BESIDE_WEIGHT = 0.5;

/* What a library's kernel costs a step beside the time of its own: it never begins while
 * the one ahead of it ends, nor reads anything ahead. Where both are as fast ours is
 * better, since its launch costs the host a fraction. */
static const double LIBRARY_US = 0.6;

/* One way to go on from a node: site and length. */
typedef struct edge {
    int32_t site, n;
    int32_t next; /* another edge from the same node */
} edge;

/* What it costs from a node to the end. More nodes under the forced alternative count
 * first, then time; among equals the first in table order stays. */
typedef struct cost {
    int64_t n_forced;
    double us;
    int32_t edge, candidate; /* edge NONE: no way */
} cost;

typedef struct search {
    const gx_selector *s;
    gx_plan *plan;
    gx_site *sites;
    uint64_t (*hashes)[2]; /* by site */
    size_t n_sites, site_capacity;
    int32_t *table; /* open addressing over the sites */
    size_t table_size;
    edge *edges;
    size_t n_edges, edge_capacity;
    int32_t *edges_from; /* by node */
    int32_t *past;       /* by alternative, see add_edges */
    cost *costs;         /* by node */
    gx_pass_path path;
} search;

static gx_status out_of_memory(gx_error *err)
{
    return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the selection");
}

/* Doubles an array; false when memory is out. */
static bool grow(void **array, size_t *capacity, size_t item_bytes)
{
    const size_t larger = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*array, larger * item_bytes);

    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

/* --- sites --- */

static bool grow_table(search *f)
{
    const size_t size = f->table_size ? f->table_size * 2 : 256;
    int32_t *table = malloc(size * sizeof *table);

    if (!table)
        return false;
    for (size_t i = 0; i < size; i++)
        table[i] = NONE;
    for (size_t i = 0; i < f->n_sites; i++) {
        size_t at = (size_t)f->hashes[i][0] & (size - 1);

        while (table[at] != NONE)
            at = (at + 1) & (size - 1);
        table[at] = (int32_t)i;
    }
    free(f->table);
    f->table = table;
    f->table_size = size;
    return true;
}

static bool is_allowed(const gx_selector *s, const gx_alternative *alternative, int32_t n)
{
    return !s->unfused || (n == 1 && !alternative->repeat);
}

/* The alternatives that cover these nodes and no others. */
static gx_status list_candidates(search *f, gx_site *site, gx_error *err)
{
    const gx_selector *s = f->s;
    const gx_alternative *alternative;

    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;

        for (size_t k = 0; (alternative = s->alternative_at(k)); k++) {
            if (!is_allowed(s, alternative, site->n) ||
                !gx_match_covers(s->graph, alternative, site->first, site->n))
                continue;
            if (pass == 1)
                site->candidates[n] = (gx_candidate){ .alternative = alternative,
                                                      .us = -1,
                                                      .n_launches = -1 };
            n++;
        }
        site->n_candidates = n;
        if (pass == 0)
            site->candidates =
                gx_arena_alloc(s->arena, (n + 1) * sizeof *site->candidates);
        if (!site->candidates)
            return out_of_memory(err);
    }
    return GX_OK;
}

static gx_status add_site(search *f, int32_t first, int32_t n, const char *key,
                          const uint64_t hash[2], int32_t *result, gx_error *err)
{
    gx_site *site;

    if (f->n_sites == f->site_capacity) {
        size_t capacity = f->site_capacity;

        if (!grow((void **)&f->hashes, &capacity, sizeof *f->hashes) ||
            !grow((void **)&f->sites, &f->site_capacity, sizeof *f->sites))
            return out_of_memory(err);
    }
    site = &f->sites[f->n_sites];
    *site = (gx_site){ .key = gx_arena_text(f->s->arena, key), .first = first, .n = n };
    if (!site->key)
        return out_of_memory(err);
    GX_TRY(list_candidates(f, site, err));
    f->hashes[f->n_sites][0] = hash[0];
    f->hashes[f->n_sites][1] = hash[1];
    *result = (int32_t)f->n_sites++;
    if (2 * f->n_sites > f->table_size && !grow_table(f))
        return out_of_memory(err);
    return GX_OK;
}

static gx_status find_site(search *f, int32_t first, int32_t n, int32_t *result,
                           gx_error *err)
{
    char key[GX_KEY_SIZE];
    uint64_t hash[2];
    size_t at;

    if (f->table_size == 0 && !grow_table(f))
        return out_of_memory(err);
    gx_site_key(f->s->graph, first, n, key, hash);
    at = (size_t)hash[0] & (f->table_size - 1);
    for (; f->table[at] != NONE; at = (at + 1) & (f->table_size - 1)) {
        const int32_t i = f->table[at];

        if (f->hashes[i][0] == hash[0] && f->hashes[i][1] == hash[1]) {
            *result = i;
            return GX_OK;
        }
    }
    f->table[at] = (int32_t)f->n_sites;
    return add_site(f, first, n, key, hash, result, err);
}

/* The edge from `first` over n nodes, unless it is there. */
static gx_status add_edge(search *f, int32_t first, int32_t n, gx_error *err)
{
    int32_t *link = &f->edges_from[first];
    int32_t site = NONE;

    for (; *link != NONE; link = &f->edges[*link].next) {
        if (f->edges[*link].n == n)
            return GX_OK;
    }
    GX_TRY(find_site(f, first, n, &site, err));
    if (f->n_edges == f->edge_capacity) {
        /* `link` may point into the array that moves. */
        const ptrdiff_t at =
            link == &f->edges_from[first]
                ? NONE
                : (edge *)((char *)link - offsetof(edge, next)) - f->edges;

        if (!grow((void **)&f->edges, &f->edge_capacity, sizeof *f->edges))
            return out_of_memory(err);
        link = at == NONE ? &f->edges_from[first] : &f->edges[at].next;
    }
    f->edges[f->n_edges] = (edge){ .site = site, .n = n, .next = NONE };
    *link = (int32_t)f->n_edges++;
    return GX_OK;
}

/* The edges of one alternative from a node. `past`: where the last run ended that it took
 * whole patterns of; inside it the same run would be there again, shorter. */
static gx_status add_edges(search *f, const gx_alternative *alternative, int32_t first,
                           int32_t *past, gx_error *err)
{
    const bool repeats = alternative->repeat == GX_REPEAT_ALL;

    if (repeats && (f->s->unfused || first < *past))
        return GX_OK;
    const int32_t n = gx_match_length(f->s->graph, alternative, first);
    const int32_t shorter = gx_match_shorter(alternative, n);

    if (repeats && n > 0)
        *past = first + n;
    if (n > 0 && is_allowed(f->s, alternative, n))
        GX_TRY(add_edge(f, first, n, err));
    return shorter > 0 ? add_edge(f, first, shorter, err) : GX_OK;
}

/* Edges from a node stand in the order of the first alternative that has them. */
static gx_status find_edges(search *f, gx_error *err)
{
    const gx_selector *s = f->s;
    const gx_alternative *alternative;

    for (int32_t i = 0; i < (int32_t)s->graph->n_nodes; i++) {
        f->edges_from[i] = NONE;
        for (size_t k = 0; (alternative = s->alternative_at(k)); k++)
            GX_TRY(add_edges(f, alternative, i, &f->past[k], err));
    }
    return GX_OK;
}

/* --- what is known of the candidates --- */

bool gx_is_forced(const char *force, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = force; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == length && memcmp(at, name, length) == 0)
            return true;
    }
    return false;
}

static bool is_forced(const gx_selector *s, const gx_alternative *alternative)
{
    return gx_is_forced(s->force, alternative->name);
}

static const char *reason(const gx_selector *s, const char *what, const char *text)
{
    const char *made = gx_arena_format(s->arena, "%s: %s", what, text);

    return made ? made : what;
}

/* A refusal may be one by tolerance, and what is forced is taken with any. */
static bool find_in_cache(const gx_selector *s, const gx_site *site,
                          gx_candidate *candidate)
{
    gx_candidate found = *candidate;

    if (!s->measure || !s->cache ||
        !gx_cache_find(s->cache, site->key, &found, s->arena) ||
        (found.refused && is_forced(s, found.alternative)))
        return false;
    *candidate = found;
    return true;
}

static gx_status examine_candidate(const gx_selector *s, const gx_site *site,
                                   const gx_group *group, gx_candidate *candidate,
                                   double best_us, gx_error *err)
{
    const char *refusal = candidate->alternative->refuses
                              ? candidate->alternative->refuses(group, &s->ctx)
                              : NULL;

    if (refusal) {
        candidate->refused = reason(s, "does not apply", refusal);
        candidate->known = true;
        return GX_OK;
    }
    if (candidate->alternative->trial && !is_forced(s, candidate->alternative)) {
        candidate->refused = "on trial: taken only where it is forced";
        candidate->known = true;
        return GX_OK;
    }
    if (find_in_cache(s, site, candidate))
        return GX_OK;
    GX_TRY(s->examine(s, site, candidate, best_us, err));
    candidate->known = true;
    /* What only force accepts nobody else may find there. */
    if (s->measure && s->cache && !candidate->over_tolerance)
        gx_cache_add(s->cache, site->key, candidate);
    return GX_OK;
}

gx_status gx_select_examine(const gx_selector *s, const gx_site *site, gx_error *err)
{
    const size_t n = (size_t)site->n;
    gx_call *calls = malloc(n * sizeof *calls);
    bool *elided = calloc(n * GX_MAX_ARGS, sizeof *elided);
    const gx_group group = { .n_calls = site->n, .call = calls, .elided = elided };
    double best_us = -1;
    gx_status st = GX_OK;

    if (!calls || !elided) {
        st = out_of_memory(err);
    } else {
        gx_match_calls(s->graph, site->first, site->n, calls);
        gx_match_elided(s->graph, site->first, site->n, elided);
    }
    for (size_t i = 0; i < site->n_candidates && st == GX_OK; i++) {
        gx_candidate *candidate = &site->candidates[i];

        st = examine_candidate(s, site, &group, candidate, best_us, err);
        if (!candidate->refused && candidate->us >= 0 &&
            (best_us < 0 || candidate->us < best_us))
            best_us = candidate->us;
    }
    free(elided);
    free(calls);
    return st;
}

/* --- the cheapest way --- */

static bool is_better(const cost *a, const cost *b)
{
    if (b->edge == NONE)
        return true;
    if (a->n_forced != b->n_forced)
        return a->n_forced > b->n_forced;
    return a->us < b->us;
}

static double weight_of(const search *f, int32_t first, int32_t n)
{
    return f->s->beside && gx_pass_path_is_beside(&f->path, NULL, first, n)
               ? BESIDE_WEIGHT
               : 1.0;
}

static double us_of(const gx_candidate *candidate)
{
    if (candidate->us <= 0) /* not measured, or nothing to do */
        return 0;
    return candidate->us + (candidate->alternative->library ? LIBRARY_US : 0);
}

static void find_costs(search *f)
{
    const int32_t n_nodes = (int32_t)f->s->graph->n_nodes;

    f->costs[n_nodes] = (cost){ .edge = 0 };
    for (int32_t i = n_nodes - 1; i >= 0; i--) {
        cost best = { .edge = NONE };

        for (int32_t e = f->edges_from[i]; e != NONE; e = f->edges[e].next) {
            const gx_site *site = &f->sites[f->edges[e].site];
            const cost *rest = &f->costs[i + f->edges[e].n];
            const double weight = weight_of(f, i, f->edges[e].n);

            for (size_t k = 0; rest->edge != NONE && k < site->n_candidates; k++) {
                const gx_candidate *candidate = &site->candidates[k];
                const bool forced = is_forced(f->s, candidate->alternative);
                const cost way = {
                    .n_forced = rest->n_forced + (forced ? f->edges[e].n : 0),
                    .us = rest->us + weight * us_of(candidate),
                    .edge = e,
                    .candidate = (int32_t)k,
                };

                if (!candidate->refused && is_better(&way, &best))
                    best = way;
            }
        }
        f->costs[i] = best;
    }
}

/* Says which op cannot be run, and why not by the first alternative that has it. */
static gx_status no_way(const search *f, gx_error *err)
{
    int32_t i = (int32_t)f->s->graph->n_nodes - 1;

    while (i > 0 && f->costs[i].edge != NONE)
        i--;
    const gx_node *node = &f->s->graph->nodes[i];
    const char *why = "it has no CUDA alternative";

    for (int32_t e = f->edges_from[i]; e != NONE; e = f->edges[e].next) {
        const gx_site *site = &f->sites[f->edges[e].site];

        for (size_t k = 0; k < site->n_candidates; k++) {
            if (site->candidates[k].refused)
                why = site->candidates[k].refused;
        }
    }
    return GX_FAIL(err, GX_ERR_UNSUPPORTED, "%s (%s): nothing can run it on the GPU: %s",
                   node->name, node->op->name, why);
}

/* --- units --- */

/* "lt_fused", or with the ops where it covers others than the unit: "lt (gemm)". */
static const char *rejected_name(const search *f, const gx_unit *unit, int32_t first,
                                 int32_t n, const gx_alternative *alternative)
{
    const gx_graph *graph = f->s->graph;
    const char *name = NULL;

    if (first == unit->first_node && n == unit->n_nodes)
        return alternative->name;
    if (n == 1)
        name = gx_arena_format(f->s->arena, "%s (%s)", alternative->name,
                               graph->nodes[first].op->name);
    else
        name = gx_arena_format(f->s->arena, "%s (%s to %s)", alternative->name,
                               graph->nodes[first].op->name,
                               graph->nodes[first + n - 1].op->name);
    return name ? name : alternative->name;
}

/* `is_same`: of the nodes that the one which was taken covers. */
static const char *why_not(const gx_selector *s, const gx_candidate *c,
                           const gx_candidate *taken, bool is_same)
{
    if (c->refused)
        return c->refused;
    if (s->force)
        return "another one is forced, or was as good";
    if (c->us < 0)
        return "later in the table";
    return is_same && c->us <= taken->us && us_of(c) > us_of(taken)
               ? "slower with what a library's launch costs"
               : "slower";
}

/* Every candidate that starts in the unit and was not taken. */
static gx_status list_rejected(const search *f, gx_unit *unit, const gx_candidate *taken,
                               gx_error *err)
{
    const gx_selector *s = f->s;

    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;

        for (int32_t i = unit->first_node; i < unit->first_node + unit->n_nodes; i++) {
            for (int32_t e = f->edges_from[i]; e != NONE; e = f->edges[e].next) {
                const gx_site *site = &f->sites[f->edges[e].site];

                for (size_t k = 0; k < site->n_candidates; k++) {
                    const gx_candidate *c = &site->candidates[k];
                    const bool is_same =
                        i == unit->first_node && site->n == unit->n_nodes;

                    if (c == taken && is_same)
                        continue;
                    if (pass == 1)
                        unit->rejected[n] = (gx_rejected){
                            .alternative =
                                rejected_name(f, unit, i, site->n, c->alternative),
                            .us = c->us,
                            .reason = why_not(s, c, taken, is_same),
                        };
                    n++;
                }
            }
        }
        unit->n_rejected = n;
        if (pass == 0)
            unit->rejected = gx_arena_alloc(s->arena, (n + 1) * sizeof *unit->rejected);
        if (!unit->rejected)
            return out_of_memory(err);
    }
    return GX_OK;
}

static gx_status emit_unit(const search *f, int32_t first, gx_unit *unit, gx_error *err)
{
    const cost *way = &f->costs[first];
    const gx_site *site = &f->sites[f->edges[way->edge].site];
    const gx_candidate *candidate = &site->candidates[way->candidate];

    GX_TRY(gx_unit_start(f->plan, unit, first, site->n, candidate->alternative, err));
    gx_unit_take(unit, site->key, candidate);
    return list_rejected(f, unit, candidate, err);
}

static gx_status emit_units(const search *f, gx_error *err)
{
    const int32_t n_nodes = (int32_t)f->s->graph->n_nodes;
    gx_plan *plan = f->plan;
    size_t n = 0;

    if (f->costs[0].edge == NONE)
        return no_way(f, err);
    for (int32_t i = 0; i < n_nodes; i += f->edges[f->costs[i].edge].n)
        n++;
    plan->units = gx_arena_alloc(plan->arena, (n + 1) * sizeof *plan->units);
    if (!plan->units)
        return out_of_memory(err);
    plan->n_units = 0;
    for (int32_t i = 0; i < n_nodes; i += f->edges[f->costs[i].edge].n)
        GX_TRY(emit_unit(f, i, &plan->units[plan->n_units++], err));
    gx_count_choices(f->s, plan);
    return GX_OK;
}

static gx_status run_search(search *f, gx_error *err)
{
    const size_t n = f->s->graph->n_nodes + 1;
    size_t n_alternatives = 0;

    while (f->s->alternative_at(n_alternatives))
        n_alternatives++;
    f->edges_from = malloc(n * sizeof *f->edges_from);
    f->past = calloc(n_alternatives + 1, sizeof *f->past);
    f->costs = malloc(n * sizeof *f->costs);
    if (!f->edges_from || !f->past || !f->costs)
        return out_of_memory(err);
    GX_TRY(gx_pass_path_find(f->s->graph, NULL, &f->path, err));
    GX_TRY(find_edges(f, err));
    for (size_t i = 0; i < f->n_sites; i++)
        GX_TRY(gx_select_examine(f->s, &f->sites[i], err));
    find_costs(f);
    return emit_units(f, err);
}

gx_status gx_select(const gx_selector *selector, gx_plan *plan, gx_error *err)
{
    search f = { .s = selector, .plan = plan };
    const gx_status st = run_search(&f, err);

    gx_pass_path_free(&f.path);
    free(f.costs);
    free(f.past);
    free(f.edges_from);
    free(f.edges);
    free(f.table);
    free(f.hashes);
    free(f.sites);
    return st;
}
