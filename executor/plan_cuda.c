/* A plan for a GPU: selection on the device, then the whole step timed with one lane and
 * with more, with and without programmatic edges, and with and without an IF node around
 * the updates. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edges.h"
#include "measure.h"
#include "select.h"

/* Another lane costs memory and events, so it must be worth it. */
static const double LANE_GAIN = 0.99;

/* With so many the updates have a lane of their own, and are cut. */
enum { UPDATE_LANES = GX_MAX_LANES };

/* An IF node keeps a graph from being a child of another, and so must be worth it. */
static const double SKIP_GAIN = 0.99;

/* Edges are looked at one by one as far as this reaches. */
static const double EDGE_BUDGET_S = 0.25;

/* --- selection --- */

/* The device is opened when the first candidate has to be examined: with a warm cache
 * nothing is, and neither streams nor a handle of the library are made. It then stays
 * open until the plan is made, since making the handle takes long. */
typedef struct gx_workshop {
    const gx_plan_options *options;
    gx_device *device;
    int previous; /* the device that was current */
    gx_bench *bench;
} gx_workshop;

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

/* A list of units for all nodes. */
typedef struct gx_unit_list {
    gx_unit *units;
    size_t n;
} gx_unit_list;

typedef struct gx_planning {
    gx_plan *plan;
    const gx_plan_options *options;
    gx_cache *cache; /* NULL: none */
    gx_workshop *shop;
    gx_selector selector;
    gx_unit_list whole, cut; /* updates in one launch; in several, NULL: not made yet */
    bool tries_updates;      /* a step with a lane for the updates is worth timing */
} gx_planning;

static void close_bench(gx_planning *p)
{
    gx_bench_close(p->shop->bench); /* its memory is wanted for timing the step */
    p->shop->bench = NULL;
}

static void use_units(gx_planning *p, gx_unit_list list)
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
    p->cut = good ? (gx_unit_list){ p->plan->units, p->plan->n_units } : p->whole;
    return st;
}

static gx_status make_cut(gx_planning *p, gx_error *err)
{
    bool any;

    use_units(p, p->whole);
    GX_TRY(gx_cut_updates(p->plan, &any, err));
    return examine_cut(p, any, err);
}

static gx_status select_cuda(gx_planning *p, gx_error *err)
{
    gx_plan *plan = p->plan;

    p->selector = (gx_selector){
        .graph = plan->graph,
        .arena = plan->arena,
        .alternative_at = gx_alternative_at,
        .unfused = p->options->unfused,
        .measure = !p->options->no_measure,
        .beside = p->options->lanes != 1,
        .force = p->options->force,
        .cache = p->cache,
        .examine = examine,
        .user = p->shop,
    };
    GX_TRY(gx_device_limits(p->options->device, &p->selector.ctx, err));
    const gx_status st = gx_select(&p->selector, plan, err);

    close_bench(p);
    p->whole = (gx_unit_list){ plan->units, plan->n_units };
    return st == GX_OK && p->options->lanes == UPDATE_LANES ? make_cut(p, err) : st;
}

/* --- layout --- */

static gx_status lay_out_units(gx_planning *p, int n_lanes, gx_error *err)
{
    return gx_layout(p->plan, n_lanes, !p->options->reuse_off, 0, err);
}

/* Lays out for so many lanes, or for those that have something to do. */
static gx_status lay_out(gx_planning *p, int n_lanes, gx_error *err)
{
    if (n_lanes == UPDATE_LANES && !p->cut.units)
        GX_TRY(make_cut(p, err));
    use_units(p, n_lanes == UPDATE_LANES ? p->cut : p->whole);
    GX_TRY(lay_out_units(p, n_lanes, err));
    return n_lanes == UPDATE_LANES && p->plan->n_lanes < n_lanes
               ? lay_out(p, n_lanes - 1, err)
               : GX_OK;
}

/* Whether an update could start before the last gradient is there: what waits for a norm
 * of all gradients, or is one launch, gains nothing. Asked before the parts are examined,
 * which takes time, and that before the step is timed, which takes memory. */
static gx_status look_at_updates(gx_planning *p, gx_error *err)
{
    bool any;

    GX_TRY(gx_cut_updates(p->plan, &any, err));
    GX_TRY(lay_out_units(p, UPDATE_LANES, err));
    p->tries_updates = p->plan->n_early > 0;
    if (p->tries_updates)
        GX_TRY(examine_cut(p, any, err));
    return lay_out(p, 1, err);
}

/* --- the whole step --- */

static gx_status try_lanes(gx_planning *p, gx_trial *trial, double *us, gx_error *err)
{
    gx_plan *plan = p->plan;
    double *lane_us = plan->info.lane_us;
    const int most = p->tries_updates ? UPDATE_LANES : UPDATE_LANES - 1;
    int best = plan->n_lanes;

    GX_TRY(gx_trial_time(trial, NULL, us, err));
    lane_us[best - 1] = *us;
    if (p->options->lanes != 0 || *us < 0)
        return GX_OK;
    for (int n = 2; n <= most; n++) {
        GX_TRY(lay_out(p, n, err));
        if (plan->n_lanes != n)
            continue;
        GX_TRY(gx_trial_time(trial, NULL, &lane_us[n - 1], err));
        if (lane_us[n - 1] >= 0 && lane_us[n - 1] < LANE_GAIN * *us) {
            *us = lane_us[n - 1];
            best = n;
        }
    }
    return plan->n_lanes == best ? GX_OK : lay_out(p, best, err);
}

/* Without room for another program the edges stay as they are, as in gx_trial_time. */
static gx_status try_edges(gx_trial *trial, gx_error *err)
{
    gx_error own = { 0 };
    const gx_status st = gx_edges_choose(trial->plan, trial->state, EDGE_BUDGET_S, &own);

    if (st == GX_OK || st == GX_ERR_DEVICE_MEMORY)
        return GX_OK;
    return GX_FAIL_NATIVE(err, st, own.native, "timing the edges: %s", own.message);
}

/* Lanes are tried with programmatic edges where those are not switched off, then the
 * edges are tried without, and then each. */
static gx_status try_step(gx_planning *p, gx_trial *trial, gx_error *err)
{
    gx_plan *plan = p->plan;
    const gx_plan_options *options = p->options;
    double us;

    plan->programmatic = options->programmatic != GX_OFF;
    GX_TRY(try_lanes(p, trial, &us, err));
    if (options->programmatic == GX_AUTO) {
        plan->info.programmatic_us[1] = us;
        plan->programmatic = false;
        GX_TRY(gx_trial_time(trial, NULL, &plan->info.programmatic_us[0], err));
        plan->programmatic = us >= 0 && plan->info.programmatic_us[0] >= us;
        if (plan->programmatic)
            GX_TRY(try_edges(trial, err));
    }
    return GX_OK;
}

void gx_plan_hash(const gx_plan *plan, char text[GX_PLAN_HASH_SIZE])
{
    uint64_t hash[2] = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4) };

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];
        const char *texts[] = { unit->key, unit->alternative->name };

        for (int t = 0; t < 2; t++) {
            for (const char *c = texts[t]; *c; c++) {
                hash[0] = (hash[0] ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
                hash[1] = (hash[1] ^ (unsigned char)*c) * UINT64_C(0x9e3779b97f4a7c15);
            }
        }
        for (int i = 0; unit->has_algo && i < GX_ALGO_BYTES; i++)
            hash[0] = (hash[0] ^ unit->algo[i]) * UINT64_C(0x100000001b3);
    }
    snprintf(text, GX_PLAN_HASH_SIZE, "#%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

/* The units and what was asked for, as the key under which the choice is remembered. */
static void step_key(const gx_plan *plan, const gx_plan_options *options, char *key,
                     size_t size)
{
    char hash[GX_PLAN_HASH_SIZE];

    gx_plan_hash(plan, hash);
    snprintf(key, size, "%zu units, lanes %d, programmatic %d, %s", plan->n_units,
             options->lanes, (int)options->programmatic, hash);
}

static gx_status obey(gx_planning *p, const gx_step_choice *choice, gx_error *err)
{
    gx_plan *plan = p->plan;

    if (choice->n_lanes != plan->n_lanes)
        GX_TRY(lay_out(p, choice->n_lanes, err));
    plan->programmatic = choice->programmatic;
    memcpy(plan->info.lane_us, choice->lane_us, sizeof choice->lane_us);
    memcpy(plan->info.programmatic_us, choice->programmatic_us,
           sizeof choice->programmatic_us);
    for (size_t i = 0; i < choice->n_full_edges; i++) {
        /* of the units as they were, which may have been others */
        if (choice->n_lanes == plan->n_lanes &&
            (size_t)choice->full_edges[i] < plan->n_units)
            plan->units[choice->full_edges[i]].full_edge = true;
    }
    return GX_OK;
}

/* Where memory is out the choice is only not remembered. */
static void remember(gx_cache *cache, const char *key, const gx_plan *plan)
{
    gx_step_choice choice = { .n_lanes = plan->n_lanes,
                              .programmatic = plan->programmatic };
    int32_t *full_edges = malloc((plan->n_units + 1) * sizeof *full_edges);

    if (!full_edges)
        return;
    memcpy(choice.lane_us, plan->info.lane_us, sizeof choice.lane_us);
    memcpy(choice.programmatic_us, plan->info.programmatic_us,
           sizeof choice.programmatic_us);
    for (size_t u = 0; u < plan->n_units; u++) {
        if (plan->units[u].full_edge)
            full_edges[choice.n_full_edges++] = (int32_t)u;
    }
    choice.full_edges = full_edges;
    gx_cache_add_step(cache, key, &choice);
    free(full_edges);
}

static gx_status choose_step(gx_planning *p, gx_error *err)
{
    gx_plan *plan = p->plan;
    const gx_plan_options *options = p->options;
    gx_step_choice choice;
    char key[128];

    plan->programmatic = options->programmatic == GX_ON;
    if (options->no_measure || plan->n_units < 2 ||
        (options->lanes != 0 && options->programmatic != GX_AUTO))
        return GX_OK;
    step_key(plan, options, key, sizeof key);
    if (p->cache && gx_cache_find_step(p->cache, key, &choice))
        return obey(p, &choice, err);
    if (options->lanes == 0)
        GX_TRY(look_at_updates(p, err));
    gx_trial trial = { .plan = plan, .options = options };
    const gx_status st = try_step(p, &trial, err);

    gx_state_free(trial.state);
    GX_TRY(st);
    if (p->cache)
        remember(p->cache, key, plan);
    return GX_OK;
}

/* --- updates that are skipped --- */

/* The steps on trial are skipped as often as the model says: of `accumulate` steps one
 * has an update. */
static gx_status try_skip(gx_plan *plan, const gx_plan_options *options, gx_error *err)
{
    gx_trial trial = { .plan = plan, .options = options };
    double *us = plan->info.skip_us;
    gx_status st = GX_OK;

    for (int on = 0; on < 2 && st == GX_OK; on++) {
        plan->skip_if = on;
        st = gx_trial_time(&trial, NULL, &us[on], err);
    }
    plan->skip_if = us[0] >= 0 && us[1] >= 0 && us[1] < SKIP_GAIN * us[0];
    gx_state_free(trial.state);
    return st;
}

static void skip_key(const gx_plan *plan, char *key, size_t size)
{
    char hash[GX_PLAN_HASH_SIZE];

    gx_plan_hash(plan, hash);
    snprintf(key, size, "%zu units, lanes %d, programmatic %d, %s", plan->n_units,
             plan->n_lanes, plan->programmatic, hash);
}

static gx_status measure_skip(gx_plan *plan, const gx_plan_options *options,
                              gx_cache *cache, gx_error *err)
{
    gx_skip_choice choice;
    char key[128];

    skip_key(plan, key, sizeof key);
    if (cache && gx_cache_find_skip(cache, key, &choice)) {
        plan->skip_if = choice.skip_if;
        memcpy(plan->info.skip_us, choice.us, sizeof choice.us);
        return GX_OK;
    }
    GX_TRY(try_skip(plan, options, err));
    choice.skip_if = plan->skip_if;
    memcpy(choice.us, plan->info.skip_us, sizeof choice.us);
    if (cache)
        gx_cache_add_skip(cache, key, &choice);
    return GX_OK;
}

gx_status gx_choose_skip(gx_plan *plan, const gx_plan_options *options,
                         const gx_device_info *device, gx_cache *cache, gx_error *err)
{
    const bool may_skip = gx_plan_may_skip(plan);
    gx_error reason = { 0 };
    const gx_status able =
        gx_need_conditions(device->driver_version, "an IF node in a graph", &reason);

    plan->skip_if = false;
    if (options->skip_if == GX_ON && !may_skip)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "an IF node around the updates is asked for, and this model skips "
                       "none: it has no loss_scale");
    if (options->skip_if == GX_ON && able != GX_OK)
        return GX_FAIL(err, able, "%s", reason.message);
    if (options->skip_if != GX_AUTO)
        plan->skip_if = options->skip_if == GX_ON;
    else if (may_skip && able == GX_OK && !options->no_measure)
        return measure_skip(plan, options, cache, err);
    return GX_OK;
}

gx_status gx_plan_cuda(gx_plan *plan, const gx_plan_options *options,
                       const gx_device_info *device, gx_error *err)
{
    const bool cached =
        !options->no_measure && !(options->cache_folder && options->cache_folder[0] == 0);
    const int n_lanes = options->lanes ? options->lanes : 1;
    gx_workshop shop = { .options = options };
    gx_planning p = { .plan = plan, .options = options, .shop = &shop };
    gx_cache *cache = NULL;
    double start = gx_plan_clock();
    gx_status st = GX_OK;

    if (cached)
        st = gx_cache_open(options->cache_folder, device, &cache, err);
    p.cache = cache;
    if (st == GX_OK)
        st = select_cuda(&p, err);
    plan->info.select_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = lay_out(&p, n_lanes, err);
    plan->info.layout_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = choose_step(&p, err);
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
