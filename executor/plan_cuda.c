/* A plan for a GPU: selection on the device, in both orders of the nodes where the order
 * may matter, and layout. */
#include "planning.h"

/* --- selection --- */

static gx_status open_workshop(gx_workshop *shop, gx_error *err)
{
    GX_TRY(gx_device_open(shop->options->device, NULL, &shop->device, err));
    const gx_status st = gx_device_enter(shop->device, &shop->previous, err);

    if (st != GX_OK) {
        gx_device_close(shop->device);
        shop->device = NULL;
    }
    return st;
}

static void close_workshop(gx_workshop *shop)
{
    if (!shop->device)
        return;
    gx_device_leave(shop->device, shop->previous);
    gx_device_close(shop->device);
    shop->device = NULL;
}

static gx_status examine(const gx_selector *selector, const gx_site *site,
                         gx_candidate *candidate, double best_us, gx_error *err)
{
    gx_workshop *shop = selector->user;
    gx_selector inner = *selector;

    if (!shop->device)
        GX_TRY(open_workshop(shop, err));
    if (!shop->bench)
        GX_TRY(gx_bench_open(shop->device, &shop->bench, err));
    inner.user = shop->bench;
    inner.ctx = gx_device_ctx(shop->device, 0);
    return gx_bench_examine(&inner, site, candidate, best_us, err);
}

static void close_bench(gx_planning *p)
{
    gx_bench_close(p->shop->bench); /* its memory is wanted for timing the step */
    p->shop->bench = NULL;
}

void gx_planning_use_units(gx_planning *p, gx_unit_list list)
{
    p->plan->units = list.units;
    p->plan->n_units = list.n;
    gx_count_choices(&p->selector, p->plan);
}

/* Where one of the parts cannot be run the updates stay whole. */
static gx_status examine_cut(gx_planning *p, bool any, gx_error *err)
{
    bool good = any;
    gx_status st = GX_OK;

    if (any)
        st = gx_examine_updates(&p->selector, p->plan, &good, err);
    close_bench(p);
    p->way->cut =
        good ? (gx_unit_list){ p->plan->units, p->plan->n_units } : p->way->whole;
    return st;
}

static gx_status make_cut(gx_planning *p, gx_error *err)
{
    bool any;

    gx_planning_use_units(p, p->way->whole);
    GX_TRY(gx_cut_updates(p->plan, &any, err));
    return examine_cut(p, any, err);
}

gx_status gx_planning_use_way(gx_planning *p, gx_way *way, gx_error *err)
{
    GX_TRY(gx_plan_use_order(p->plan, way->order, err));
    p->selector.graph = p->plan->graph;
    p->way = way;
    return GX_OK;
}

static gx_status select_units(gx_planning *p, bool beside, gx_unit_list *list,
                              gx_error *err)
{
    p->selector.beside = beside;
    const gx_status st = gx_select(&p->selector, p->plan, err);

    close_bench(p);
    *list = (gx_unit_list){ p->plan->units, p->plan->n_units };
    return st;
}

/* What both lists have in common is measured once; without measurements they are equal.
 */
static gx_status select_way(gx_planning *p, gx_node_order order, gx_error *err)
{
    gx_way *way = &p->ways[p->n_ways++];

    *way = (gx_way){ .order = order, .us = -1 };
    GX_TRY(gx_planning_use_way(p, way, err));
    GX_TRY(select_units(p, false, &way->alone, err));
    way->whole = way->alone;
    if (p->options->lanes != 1 && !p->options->no_measure)
        GX_TRY(select_units(p, true, &way->whole, err));
    return p->options->lanes == GX_UPDATE_LANES ? make_cut(p, err) : GX_OK;
}

static bool repeats_pattern(const gx_alternative *at)
{
    return at->repeat == GX_REPEAT_ALL || at->repeat == GX_REPEAT_BOTH;
}

/* Another order brings nodes together for those alternatives alone that take a pattern
 * again and again. */
static bool may_gain(const gx_planning *p)
{
    const gx_graph *graph = p->plan->graph;
    const gx_alternative *at;

    for (size_t k = 0; !p->options->unfused && (at = gx_alternative_at(k)); k++) {
        if (!repeats_pattern(at) ||
            (at->trial && !gx_is_forced(p->options->force, at->name)))
            continue;
        for (int32_t i = 0; i < (int32_t)graph->n_nodes; i++) {
            if (graph->nodes[i].phase == GX_PHASE_BACKWARD &&
                gx_match_length(graph, at, i) > 0)
                return true;
        }
    }
    return false;
}

static bool has_repeat(const gx_unit_list *list)
{
    for (size_t u = 0; u < list->n; u++) {
        const gx_unit *unit = &list->units[u];

        if (unit->phase == GX_PHASE_BACKWARD && repeats_pattern(unit->alternative))
            return true;
    }
    return false;
}

/* The second way is there only where it has something to gain by. What both have in
 * common was measured for the first. */
static gx_status select_second(gx_planning *p, gx_error *err)
{
    gx_plan *plan = p->plan;

    if (p->options->no_measure && !p->options->force)
        return GX_OK;
    GX_TRY(gx_plan_use_order(plan, GX_ORDER_DATA_FIRST, err));
    if (plan->graph != plan->given && may_gain(p)) {
        GX_TRY(select_way(p, GX_ORDER_DATA_FIRST, err));
        const gx_way *way = p->way;

        p->n_ways = has_repeat(&way->alone) || has_repeat(&way->whole) ? 2 : 1;
    }
    return gx_planning_use_way(p, &p->ways[0], err);
}

static gx_status select_cuda(gx_planning *p, gx_error *err)
{
    const gx_node_order order = p->options->order;

    p->selector = (gx_selector){
        .arena = p->plan->arena,
        .alternative_at = gx_alternative_at,
        .unfused = p->options->unfused,
        .measure = !p->options->no_measure,
        .force = p->options->force,
        .cache = p->cache,
        .examine = examine,
        .user = p->shop,
    };
    GX_TRY(gx_device_limits(p->options->device, &p->selector.ctx, err));
    if (order != GX_ORDER_AUTO)
        return select_way(p, order, err);
    GX_TRY(select_way(p, GX_ORDER_DERIVED, err));
    return select_second(p, err);
}

/* --- layout --- */

static gx_status lay_out_units(gx_planning *p, int n_lanes, gx_error *err)
{
    return gx_layout(p->plan, n_lanes, !p->options->reuse_off, 0, err);
}

gx_status gx_planning_lay_out(gx_planning *p, int n_lanes, gx_error *err)
{
    if (n_lanes == GX_UPDATE_LANES && !p->way->cut.units)
        GX_TRY(make_cut(p, err));
    gx_planning_use_units(p, n_lanes == 1                 ? p->way->alone
                             : n_lanes == GX_UPDATE_LANES ? p->way->cut
                                                          : p->way->whole);
    GX_TRY(lay_out_units(p, n_lanes, err));
    return n_lanes == GX_UPDATE_LANES && p->plan->n_lanes < n_lanes
               ? gx_planning_lay_out(p, n_lanes - 1, err)
               : GX_OK;
}

gx_status gx_planning_lay_out_first(gx_planning *p, gx_way *way, gx_error *err)
{
    GX_TRY(gx_planning_use_way(p, way, err));
    return gx_planning_lay_out(p, p->options->lanes ? p->options->lanes : 1, err);
}

gx_status gx_planning_look_at_updates(gx_planning *p, gx_error *err)
{
    bool any;

    gx_planning_use_units(p, p->way->whole);
    GX_TRY(gx_cut_updates(p->plan, &any, err));
    GX_TRY(lay_out_units(p, GX_UPDATE_LANES, err));
    p->way->tries_updates = p->plan->n_early > 0;
    if (p->way->tries_updates)
        GX_TRY(examine_cut(p, any, err));
    return gx_planning_lay_out(p, 1, err);
}

/* --- all of it --- */

static gx_status choose_whole(gx_planning *p, gx_error *err)
{
    gx_trial trial = { .plan = p->plan, .options = p->options };
    gx_status st = gx_planning_choose_way(p, &trial, err);

    if (st == GX_OK)
        st = gx_planning_choose_step(p, &trial, err);
    gx_state_free(trial.state);
    return st;
}

gx_status gx_plan_cuda(gx_plan *plan, const gx_plan_options *options,
                       const gx_device_info *device, gx_error *err)
{
    gx_workshop shop = { .options = options };
    gx_planning p = { .plan = plan, .options = options, .shop = &shop };
    gx_cache *cache = NULL;
    double start = gx_plan_clock();
    gx_status st = GX_OK;

    if (!options->no_measure)
        st = gx_cache_open(options->cache_folder, device, &cache, err);
    p.cache = cache;
    if (st == GX_OK)
        st = select_cuda(&p, err);
    plan->info.select_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = gx_planning_lay_out_first(&p, &p.ways[0], err);
    plan->info.layout_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = choose_whole(&p, err);
    if (st == GX_OK)
        st = gx_choose_skip(plan, options, device, cache, err);
    if (st == GX_OK && options->steps_per_launch == GX_STEPS_AUTO)
        st = gx_choose_launch(plan, options, cache, err);
    close_workshop(&shop);
    plan->info.select_s += gx_plan_clock() - start;
    if (st == GX_OK && cache)
        gx_cache_save(cache);
    if (cache && gx_cache_note(cache))
        plan->info.cache_note = gx_arena_text(plan->arena, gx_cache_note(cache));
    gx_cache_close(cache);
    return st;
}
