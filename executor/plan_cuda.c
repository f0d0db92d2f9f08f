/* A plan for a GPU: selection on the device, then the whole step timed with one and two
 * lanes and with and without programmatic edges. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "select.h"

/* Two lanes cost memory and events, so they must be worth it. */
static const double LANE_GAIN = 0.99;

static gx_status select_on(gx_plan *plan, const gx_plan_options *options,
                           gx_device *device, gx_cache *cache, gx_error *err)
{
    gx_selector selector = {
        .graph = plan->graph,
        .arena = plan->arena,
        .alternative_at = gx_alternative_at,
        .ctx = gx_device_ctx(device, 0),
        .unfused = options->unfused,
        .measure = !options->no_measure,
        .force = options->force,
        .cache = cache,
        .examine = gx_bench_examine,
    };
    gx_bench *bench;
    gx_status st;

    GX_TRY(gx_bench_open(device, &bench, err));
    selector.user = bench;
    st = gx_select(&selector, plan, err);
    gx_bench_close(bench);
    return st;
}

static gx_status select_cuda(gx_plan *plan, const gx_plan_options *options,
                             gx_cache *cache, gx_error *err)
{
    gx_device *device;
    int previous;
    gx_status st;

    GX_TRY(gx_device_open(options->device, NULL, &device, err));
    st = gx_device_enter(device, &previous, err);
    if (st == GX_OK) {
        st = select_on(plan, options, device, cache, err);
        gx_device_leave(device, previous);
    }
    gx_device_close(device);
    return st;
}

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

/* Lanes are tried with programmatic edges where those are not switched off, then the
 * edges are tried without. */
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
    if (cache && gx_cache_find_step(cache, key, &choice)) {
        plan->programmatic = choice.programmatic;
        memcpy(plan->info.lane_us, choice.lane_us, sizeof choice.lane_us);
        memcpy(plan->info.programmatic_us, choice.programmatic_us,
               sizeof choice.programmatic_us);
        return choice.n_lanes == plan->n_lanes
                   ? GX_OK
                   : gx_layout(plan, choice.n_lanes, !options->reuse_off, 0, err);
    }
    gx_trial trial = { .plan = plan, .options = options };
    const gx_status st = try_step(&trial, err);

    gx_state_free(trial.state);
    GX_TRY(st);
    choice =
        (gx_step_choice){ .n_lanes = plan->n_lanes, .programmatic = plan->programmatic };
    memcpy(choice.lane_us, plan->info.lane_us, sizeof choice.lane_us);
    memcpy(choice.programmatic_us, plan->info.programmatic_us,
           sizeof choice.programmatic_us);
    if (cache)
        gx_cache_add_step(cache, key, &choice);
    return GX_OK;
}

gx_status gx_plan_cuda(gx_plan *plan, const gx_plan_options *options,
                       const gx_device_info *device, gx_error *err)
{
    const bool cached =
        !options->no_measure && !(options->cache_folder && options->cache_folder[0] == 0);
    const int n_lanes = options->lanes ? options->lanes : 1;
    gx_cache *cache = NULL;
    double start = gx_plan_clock();
    gx_status st = GX_OK;

    if (cached)
        st = gx_cache_open(options->cache_folder, device, &cache, err);
    if (st == GX_OK)
        st = select_cuda(plan, options, cache, err);
    plan->info.select_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = gx_layout(plan, n_lanes, !options->reuse_off, 0, err);
    plan->info.layout_s = gx_plan_clock() - start;
    start = gx_plan_clock();
    if (st == GX_OK)
        st = choose_step(plan, options, cache, err);
    if (st == GX_OK && options->steps_per_launch == GX_STEPS_AUTO)
        st = gx_choose_launch(plan, options, cache, err);
    plan->info.select_s += gx_plan_clock() - start;
    if (st == GX_OK && cache)
        gx_cache_save(cache);
    if (cache && gx_cache_note(cache))
        plan->info.cache_note = gx_arena_text(plan->arena, gx_cache_note(cache));
    gx_cache_close(cache);
    return st;
}
