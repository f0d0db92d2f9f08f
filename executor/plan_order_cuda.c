/* In which order of the nodes a step runs faster: timed both ways, and remembered. */
#include <stdio.h>
#include <string.h>

#include "planning.h"

/* Data first keeps gradients that would have been done with, and so must be worth it. */
static const double ORDER_GAIN = 0.99;

static int64_t count_forced(const gx_way *way, const char *force)
{
    int64_t n = 0;

    for (size_t u = 0; u < way->whole.n; u++) {
        const gx_unit *unit = &way->whole.units[u];

        n += gx_is_forced(force, unit->alternative->name) ? unit->n_nodes : 0;
    }
    return n;
}

/* Memory is asked for by the examination of the updates first, for both, and by the trial
 * of the step then. */
static gx_status time_both(gx_planning *p, gx_trial *trial, gx_error *err)
{
    for (int i = 0; i < 2 && p->options->lanes == 0; i++) {
        GX_TRY(gx_planning_lay_out_first(p, &p->ways[i], err));
        GX_TRY(gx_planning_look_at_updates(p, err));
    }
    for (int i = 0; i < 2; i++) {
        GX_TRY(gx_planning_lay_out_first(p, &p->ways[i], err));
        GX_TRY(gx_planning_time_way(p, trial, err));
    }
    return GX_OK;
}

/* Both ways are in it, so that a new alternative in one of them is a new question. */
static gx_status order_key(gx_planning *p, char *key, size_t size, gx_error *err)
{
    char alone[2][GX_PLAN_HASH_SIZE], whole[2][GX_PLAN_HASH_SIZE];

    for (int i = 0; i < 2; i++) {
        GX_TRY(gx_planning_use_way(p, &p->ways[i], err));
        gx_planning_hash(p, p->way->alone, alone[i]);
        gx_planning_hash(p, p->way->whole, whole[i]);
    }
    snprintf(key, size, "lanes %d, programmatic %d, %s %s or %s %s", p->options->lanes,
             (int)p->options->programmatic, alone[0], whole[0], alone[1], whole[1]);
    return GX_OK;
}

static gx_status measure_order(gx_planning *p, gx_trial *trial, gx_way **best,
                               gx_error *err)
{
    gx_order_choice choice;
    char key[200];

    GX_TRY(order_key(p, key, sizeof key, err));
    if (!p->cache || !gx_cache_find_order(p->cache, key, &choice)) {
        GX_TRY(time_both(p, trial, err));
        choice.order = GX_ORDER_DERIVED;
        for (int i = 0; i < 2; i++)
            choice.us[i] = p->ways[i].us;
        if (choice.us[0] >= 0 && choice.us[1] >= 0 &&
            choice.us[1] < ORDER_GAIN * choice.us[0])
            choice.order = GX_ORDER_DATA_FIRST;
        if (p->cache && choice.us[0] >= 0 && choice.us[1] >= 0)
            gx_cache_add_order(p->cache, key, &choice);
    }
    memcpy(p->plan->info.order_us, choice.us, sizeof choice.us);
    *best = &p->ways[choice.order == GX_ORDER_DATA_FIRST];
    return GX_OK;
}

gx_status gx_planning_choose_way(gx_planning *p, gx_trial *trial, gx_error *err)
{
    const char *force = p->options->force;
    gx_way *best = &p->ways[0];

    if (p->n_ways < 2)
        return GX_OK;
    const int64_t more =
        force ? count_forced(&p->ways[1], force) - count_forced(&p->ways[0], force) : 0;

    if (more > 0)
        best = &p->ways[1];
    else if (more == 0 && !p->options->no_measure)
        GX_TRY(measure_order(p, trial, &best, err));
    return gx_planning_lay_out_first(p, best, err);
}
