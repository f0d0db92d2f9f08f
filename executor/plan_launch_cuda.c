/* How many steps a launch should hold: tried one after the other, and remembered. */
#include <inttypes.h>
#include <stdio.h>

#include "measure.h"
#include "select.h"

/* Of launches that run as fast, but for this much, the shortest is taken: an interrupt
 * waits for a launch to end. */
static const double AS_FAST = 1.005;

/* A launch is no longer than this on the device, and no larger: the gain is in what a
 * launch costs, which is microseconds, and building the graph takes as much a node. */
static const double LONGEST_US = 20e3;
enum { MOST_NODES = 20000 };

static int64_t nodes_of(const gx_plan *plan)
{
    int64_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++) {
        const int launches = gx_planned_launches(&plan->units[u]);

        n += launches >= 0 ? launches : 1;
    }
    return n;
}

static bool is_short_enough(const gx_plan *plan, const gx_plan_options *options, int n)
{
    const double one_us = plan->info.launch_trial[0].us;

    return one_us >= 0 && n * one_us <= LONGEST_US &&
           (options->longest_launch == 0 || n <= options->longest_launch);
}

/* A turn costs the same however many there are, so the longest loop is the one to try. */
static void set_loop(gx_plan *plan, const gx_plan_options *options)
{
    gx_launch_trial *trials = plan->info.launch_trial;

    for (int i = 0; i < GX_N_LAUNCH_TRIALS - 1; i++)
        if (i == 0 || is_short_enough(plan, options, trials[i].steps_per_launch))
            trials[GX_N_LAUNCH_TRIALS - 1].steps_per_launch = trials[i].steps_per_launch;
}

static bool is_worth_it(const gx_plan *plan, const gx_plan_options *options,
                        const gx_launch_trial *trial)
{
    const int n = trial->steps_per_launch;

    if (n == 1)
        return !trial->loop;
    if (!is_short_enough(plan, options, n))
        return false;
    if (trial->loop)
        return options->step_loop != GX_OFF;
    return options->step_loop != GX_ON && n * nodes_of(plan) <= MOST_NODES;
}

static gx_status try_all(gx_trial *trial, gx_error *err)
{
    gx_plan *plan = trial->plan;

    for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++) {
        gx_launch_trial *way = &plan->info.launch_trial[i];
        const gx_exec_options options = { .steps_per_launch = way->steps_per_launch,
                                          .step_loop = way->loop };

        if (is_worth_it(plan, trial->options, way))
            GX_TRY(gx_trial_time(trial, &options, &way->us, err));
        if (i == 0)
            set_loop(plan, trial->options);
    }
    return GX_OK;
}

/* The trials are in the order in which one is preferred to another that is as fast. */
static void take_best(gx_plan *plan)
{
    const gx_launch_trial *trials = plan->info.launch_trial;
    const gx_launch_trial *best = NULL;
    int taken = 0;

    for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++)
        if (trials[i].us >= 0 && (!best || trials[i].us < best->us))
            best = &trials[i];
    while (best && (trials[taken].us < 0 || trials[taken].us > AS_FAST * best->us))
        taken++;
    plan->info.steps_per_launch = trials[taken].steps_per_launch;
    plan->info.step_loop = trials[taken].loop;
}

static void launch_key(const gx_plan *plan, const gx_plan_options *options, char *key,
                       size_t size)
{
    const int most = plan->info.launch_trial[GX_N_LAUNCH_TRIALS - 2].steps_per_launch;
    const bool limited = options->longest_launch > 0 && options->longest_launch < most;
    char hash[GX_PLAN_HASH_SIZE];

    gx_plan_hash(plan, hash);
    snprintf(key, size,
             "%zu units, lanes %d, programmatic %d, if %d, loop %d, at most %" PRId64
             ", %s",
             plan->n_units, plan->n_lanes, plan->programmatic, plan->skip_if,
             (int)options->step_loop, limited ? options->longest_launch : most, hash);
}

gx_status gx_choose_launch(gx_plan *plan, const gx_plan_options *options, gx_cache *cache,
                           gx_error *err)
{
    gx_trial trial = { .plan = plan, .options = options };
    gx_launch_choice choice;
    char key[160];

    gx_launch_trials(plan->info.launch_trial);
    plan->info.steps_per_launch = 1;
    plan->info.step_loop = false;
    if (options->no_measure || plan->graph->data.streams || plan->n_units == 0)
        return GX_OK;
    launch_key(plan, options, key, sizeof key);
    if (cache && gx_cache_find_launch(cache, key, &choice)) {
        plan->info.steps_per_launch = choice.steps_per_launch;
        plan->info.step_loop = choice.loop;
        for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++)
            plan->info.launch_trial[i].us = choice.us[i];
        set_loop(plan, options);
        return GX_OK;
    }
    const gx_status st = try_all(&trial, err);
    gx_state_free(trial.state);
    GX_TRY(st);
    take_best(plan);
    choice = (gx_launch_choice){ .steps_per_launch = plan->info.steps_per_launch,
                                 .loop = plan->info.step_loop };
    for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++)
        choice.us[i] = plan->info.launch_trial[i].us;
    if (cache && choice.us[0] >= 0)
        gx_cache_add_launch(cache, key, &choice);
    return GX_OK;
}
