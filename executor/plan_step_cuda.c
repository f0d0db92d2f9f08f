/* How the whole step runs best: timed with one lane and with more, with and without
 * programmatic edges, and remembered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edges.h"
#include "planning.h"

/* Another lane costs memory and events, so it must be worth it. */
static const double LANE_GAIN = 0.995;

/* Edges are looked at one by one as far as this reaches. */
static const double EDGE_BUDGET_S = 0.25;

/* Of a longer launch no edge is looked for. */
static const double LONGEST_US = 20e3;

static gx_status try_lanes(gx_planning *p, gx_trial *trial, double *us, gx_error *err)
{
    gx_plan *plan = p->plan;
    double *lane_us = plan->info.lane_us;
    const int most = p->way->tries_updates ? GX_UPDATE_LANES : GX_UPDATE_LANES - 1;
    int best = plan->n_lanes;

    GX_TRY(gx_trial_time(trial, NULL, us, err));
    lane_us[best - 1] = *us;
    if (p->options->lanes != 0 || *us < 0)
        return GX_OK;
    for (int n = 2; n <= most; n++) {
        GX_TRY(gx_planning_lay_out(p, n, err));
        if (plan->n_lanes != n)
            continue;
        GX_TRY(gx_trial_time(trial, NULL, &lane_us[n - 1], err));
        if (lane_us[n - 1] >= 0 && lane_us[n - 1] < LANE_GAIN * *us) {
            *us = lane_us[n - 1];
            best = n;
        }
    }
    return gx_planning_lay_out(p, best, err); /* of the units for so many */
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

/* Steps that are unrolled in one launch follow one another as units do, where one lane
 * has them all. Programmatic, the edge between two hides a launch; full, it lets every
 * product behind it load its weights ahead of its wait, as in the first step. */
static gx_status try_edge_of_steps(gx_trial *trial, gx_error *err)
{
    enum { STEPS = 8 };
    const gx_exec_options unrolled = { .steps_per_launch = STEPS };
    gx_plan *plan = trial->plan;
    gx_unit *first = plan->units;
    double us[2];

    if (plan->n_lanes > 1 || plan->graph->data.streams ||
        STEPS * plan->info.lane_us[0] > LONGEST_US)
        return GX_OK;
    while (first < plan->units + plan->n_units && gx_planned_launches(first) == 0)
        first++;
    if (first == plan->units + plan->n_units)
        return GX_OK;
    for (int full = 0; full < 2; full++) {
        first->full_edge = full != 0;
        GX_TRY(gx_trial_time(trial, &unrolled, &us[full], err));
    }
    first->full_edge = us[1] >= 0 && us[1] < us[0];
    return GX_OK;
}

/* Lanes are tried with programmatic edges where those are not switched off, then the
 * edges are tried without. */
static gx_status try_step(gx_planning *p, gx_trial *trial, double *us, gx_error *err)
{
    gx_plan *plan = p->plan;
    const gx_plan_options *options = p->options;

    plan->programmatic = options->programmatic != GX_OFF;
    GX_TRY(try_lanes(p, trial, us, err));
    if (options->programmatic == GX_AUTO) {
        double *programmatic_us = plan->info.programmatic_us;

        programmatic_us[1] = *us;
        plan->programmatic = false;
        GX_TRY(gx_trial_time(trial, NULL, &programmatic_us[0], err));
        plan->programmatic = *us >= 0 && programmatic_us[0] >= *us;
        if (!plan->programmatic && programmatic_us[0] >= 0)
            *us = programmatic_us[0];
    }
    return GX_OK;
}

void gx_plan_hash(const gx_plan *plan, char text[GX_PLAN_HASH_SIZE])
{
    uint64_t hash[2] = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4) };

    if (plan->order == GX_ORDER_DATA_FIRST)
        hash[0] ^= 1;
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

void gx_planning_hash(gx_planning *p, gx_unit_list list, char text[GX_PLAN_HASH_SIZE])
{
    gx_planning_use_units(p, list);
    gx_plan_hash(p->plan, text);
}

/* The units and what was asked for, as the key under which the choice is remembered. */
static void step_key(gx_planning *p, char *key, size_t size)
{
    const gx_unit_list at_hand = { p->plan->units, p->plan->n_units };
    char alone[GX_PLAN_HASH_SIZE], whole[GX_PLAN_HASH_SIZE];

    gx_planning_hash(p, p->way->alone, alone);
    gx_planning_hash(p, p->way->whole, whole);
    gx_planning_use_units(p, at_hand);
    snprintf(key, size, "lanes %d, programmatic %d, %s %s", p->options->lanes,
             (int)p->options->programmatic, alone, whole);
}

static gx_status obey(gx_planning *p, const gx_step_choice *choice, gx_error *err)
{
    gx_plan *plan = p->plan;

    if (choice->n_lanes != plan->n_lanes)
        GX_TRY(gx_planning_lay_out(p, choice->n_lanes, err));
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

/* What gx_cache_add_step wants, but for the edges. */
static gx_step_choice choice_of(const gx_plan *plan)
{
    gx_step_choice choice = { .n_lanes = plan->n_lanes,
                              .programmatic = plan->programmatic };

    memcpy(choice.lane_us, plan->info.lane_us, sizeof choice.lane_us);
    memcpy(choice.programmatic_us, plan->info.programmatic_us,
           sizeof choice.programmatic_us);
    return choice;
}

/* Where memory is out the choice is only not remembered. */
static void remember(gx_cache *cache, const char *key, const gx_plan *plan)
{
    gx_step_choice choice = choice_of(plan);
    int32_t *full_edges = malloc((plan->n_units + 1) * sizeof *full_edges);

    if (!full_edges)
        return;
    for (size_t u = 0; u < plan->n_units; u++) {
        if (plan->units[u].full_edge)
            full_edges[choice.n_full_edges++] = (int32_t)u;
    }
    choice.full_edges = full_edges;
    gx_cache_add_step(cache, key, &choice);
    free(full_edges);
}

/* Whether lanes or edges are for a measurement to choose. */
static bool is_open(const gx_planning *p)
{
    const gx_plan_options *options = p->options;

    return !options->no_measure && p->plan->n_units >= 2 &&
           (options->lanes == 0 || options->programmatic == GX_AUTO);
}

gx_status gx_planning_time_way(gx_planning *p, gx_trial *trial, gx_error *err)
{
    gx_plan *plan = p->plan;
    gx_way *way = p->way;

    plan->programmatic = p->options->programmatic == GX_ON;
    for (int i = 0; i < GX_MAX_LANES; i++)
        plan->info.lane_us[i] = -1;
    if (is_open(p))
        GX_TRY(try_step(p, trial, &way->us, err));
    else
        GX_TRY(gx_trial_time(trial, NULL, &way->us, err));
    way->choice = choice_of(plan);
    way->is_timed = true;
    return GX_OK;
}

gx_status gx_planning_choose_step(gx_planning *p, gx_trial *trial, gx_error *err)
{
    gx_plan *plan = p->plan;
    gx_step_choice choice;
    char key[128];

    plan->programmatic = p->options->programmatic == GX_ON;
    if (!is_open(p))
        return GX_OK;
    step_key(p, key, sizeof key);
    if (p->way->is_timed) {
        GX_TRY(obey(p, &p->way->choice, err));
    } else if (p->cache && gx_cache_find_step(p->cache, key, &choice)) {
        return obey(p, &choice, err);
    } else {
        if (p->options->lanes == 0)
            GX_TRY(gx_planning_look_at_updates(p, err));
        GX_TRY(gx_planning_time_way(p, trial, err));
    }
    if (p->options->programmatic == GX_AUTO && plan->programmatic) {
        GX_TRY(try_edges(trial, err));
        GX_TRY(try_edge_of_steps(trial, err));
    }
    /* Without room to time it nothing was found out. */
    if (p->cache && plan->info.lane_us[plan->n_lanes - 1] >= 0)
        remember(p->cache, key, plan);
    return GX_OK;
}
