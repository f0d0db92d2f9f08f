/* A plan for a GPU: selection on the device, then the whole step timed with one and two
 * lanes, with and without programmatic edges, and with and without an IF node around the
 * updates. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edges.h"
#include "measure.h"
#include "select.h"

/* Two lanes cost memory and events, so they must be worth it. */
static const double LANE_GAIN = 0.99;

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

static gx_status select_cuda(gx_plan *plan, gx_workshop *shop, gx_cache *cache,
                             gx_error *err)
{
    gx_selector selector = {
        .graph = plan->graph,
        .arena = plan->arena,
        .alternative_at = gx_alternative_at,
        .unfused = shop->options->unfused,
        .measure = !shop->options->no_measure,
        .force = shop->options->force,
        .cache = cache,
        .examine = examine,
        .user = shop,
    };

    GX_TRY(gx_device_limits(shop->options->device, &selector.ctx, err));
    const gx_status st = gx_select(&selector, plan, err);

    gx_bench_close(shop->bench); /* its memory is wanted for timing the step */
    shop->bench = NULL;
    return st;
}

/* --- the whole step --- */

static gx_status try_lanes(gx_trial *trial, double *us, gx_error *err)
{
    gx_plan *plan = trial->plan;
    const gx_plan_options *options = trial->options;
    double *lane_us = plan->info.lane_us;

    GX_TRY(gx_trial_time(trial, NULL, &lane_us[0], err));
    *us = lane_us[0];
    if (options->lanes != 0 || lane_us[0] < 0)
        return GX_OK;
    GX_TRY(gx_layout(plan, 2, !options->reuse_off, 0, err));
    if (plan->n_lanes == 2) {
        GX_TRY(gx_trial_time(trial, NULL, &lane_us[1], err));
        if (lane_us[1] >= 0 && lane_us[1] < LANE_GAIN * lane_us[0]) {
            *us = lane_us[1];
            return GX_OK;
        }
    }
    return gx_layout(plan, 1, !options->reuse_off, 0, err);
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
static gx_status try_step(gx_trial *trial, gx_error *err)
{
    gx_plan *plan = trial->plan;
    const gx_plan_options *options = trial->options;
    double us;

    plan->programmatic = options->programmatic != GX_OFF;
    GX_TRY(try_lanes(trial, &us, err));
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

static gx_status obey(gx_plan *plan, const gx_plan_options *options,
                      const gx_step_choice *choice, gx_error *err)
{
    plan->programmatic = choice->programmatic;
    memcpy(plan->info.lane_us, choice->lane_us, sizeof choice->lane_us);
    memcpy(plan->info.programmatic_us, choice->programmatic_us,
           sizeof choice->programmatic_us);
    for (size_t i = 0; i < choice->n_full_edges; i++) {
        if ((size_t)choice->full_edges[i] < plan->n_units)
            plan->units[choice->full_edges[i]].full_edge = true;
    }
    return choice->n_lanes == plan->n_lanes
               ? GX_OK
               : gx_layout(plan, choice->n_lanes, !options->reuse_off, 0, err);
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

static gx_status choose_step(gx_plan *plan, const gx_plan_options *options,
                             gx_cache *cache, gx_error *err)
{
    gx_step_choice choice;
    char key[128];

    plan->programmatic = options->programmatic == GX_ON;
    if (options->no_measure || plan->n_units < 2 ||
        (options->lanes != 0 && options->programmatic != GX_AUTO))
        return GX_OK;
    step_key(plan, options, key, sizeof key);
    if (cache && gx_cache_find_step(cache, key, &choice))
        return obey(plan, options, &choice, err);
    gx_trial trial = { .plan = plan, .options = options };
    const gx_status st = try_step(&trial, err);

    gx_state_free(trial.state);
    GX_TRY(st);
    if (cache)
        remember(cache, key, plan);
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
    gx_cache *cache = NULL;
    double start = gx_plan_clock();
    gx_status st = GX_OK;

    if (cached)
        st = gx_cache_open(options->cache_folder, device, &cache, err);
    if (st == GX_OK)
        st = select_cuda(plan, &shop, cache, err);
    plan->info.select_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = gx_layout(plan, n_lanes, !options->reuse_off, 0, err);
    plan->info.layout_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = choose_step(plan, options, cache, err);
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
