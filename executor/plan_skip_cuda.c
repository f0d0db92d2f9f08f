/* Whether a graph has its updates in an IF node: timed both ways, and remembered. */
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "select.h"

/* An IF node keeps a graph from being a child of another, and so must be worth it. */
static const double SKIP_GAIN = 0.99;

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
    if (cache && choice.us[0] >= 0 && choice.us[1] >= 0)
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
