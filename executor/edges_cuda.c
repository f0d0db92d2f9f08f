/* What programmatic edges gain: the step captured with some of them full and with the
 * same ones programmatic, both launched in turn. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "edges.h"
#include "exec_cuda.h"
#include "select.h"
#include "stopwatch.h"

enum {
    MOST_PAIRS = 15,
    CHOOSE_PAIRS = 9,
    WARM = 2,       /* launches of each graph that are not timed */
    MOST_STEPS = 64 /* in a block */
};

/* A block is this long, so that events and the gap before its first launch do not matter;
 * when choosing there is less time. */
static const double report_block_s = 1e-3;
static const double choose_block_s = 0.3e-3;

typedef struct captured {
    void *graph[GX_FEED_SLOTS], *graph_exec[GX_FEED_SLOTS];
    int64_t n_programmatic;
} captured;

typedef struct bench {
    gx_plan *plan;
    gx_exec *exec;
    gx_stopwatch watch;
    const gx_edge *edges;
    size_t n_edges;
    captured as_planned;
    int n_pairs;
    double block_s;
    int n_steps; /* in a block; 0: not known yet */
} bench;

static void drop(captured *graphs)
{
    for (int slot = 0; slot < GX_FEED_SLOTS; slot++)
        gx_graph_end(graphs->graph[slot], graphs->graph_exec[slot]);
    *graphs = (captured){ .n_programmatic = 0 };
}

/* The step as the units' flags say now. The program is left without a graph. */
static gx_status capture_step(bench *b, captured *graphs, gx_error *err)
{
    gx_exec *exec = b->exec;

    GX_TRY(gx_capture(exec, err));
    memcpy(graphs->graph, exec->graph, sizeof graphs->graph);
    memcpy(graphs->graph_exec, exec->graph_exec, sizeof graphs->graph_exec);
    memset(exec->graph, 0, sizeof exec->graph);
    memset(exec->graph_exec, 0, sizeof exec->graph_exec);
    graphs->n_programmatic = exec->stats.programmatic_edges;
    return GX_OK;
}

/* --- pairs --- */

static gx_status time_block(const bench *b, const captured *graphs, int n_steps,
                            double *step_us, gx_error *err)
{
    double seconds = 0;

    GX_TRY(gx_stopwatch_start(&b->watch, b->exec->device, err));
    for (int i = 0; i < n_steps; i++)
        GX_TRY(gx_graph_submit(b->exec->device, graphs->graph_exec[0], err));
    GX_TRY(gx_stopwatch_stop(&b->watch, b->exec->device, &seconds, err));
    *step_us = 1e6 * seconds / n_steps;
    return GX_OK;
}

static gx_status find_block(bench *b, gx_error *err)
{
    double step_us = 0;

    GX_TRY(time_block(b, &b->as_planned, WARM, &step_us, err));
    GX_TRY(time_block(b, &b->as_planned, WARM, &step_us, err));
    const double steps = step_us > 0 ? 1e6 * b->block_s / step_us : MOST_STEPS;

    b->n_steps = steps < 1 ? 1 : steps < MOST_STEPS ? (int)steps : MOST_STEPS;
    return GX_OK;
}

/* Every other pair the other way round, so that a drift does not count for either. */
static gx_status time_pairs(const bench *b, const captured *other, double *differences,
                            gx_error *err)
{
    double warm_us;

    GX_TRY(time_block(b, other, WARM, &warm_us, err));
    for (int i = 0; i < b->n_pairs; i++) {
        const captured *order[2] = { &b->as_planned, other };
        double step_us[2] = { 0, 0 };

        for (int k = 0; k < 2; k++) {
            const int which = (i + k) % 2;

            GX_TRY(time_block(b, order[which], b->n_steps, &step_us[which], err));
        }
        differences[i] = step_us[1] - step_us[0];
    }
    return GX_OK;
}

/* Turns the edges of the sets that are in `chosen` round: full becomes programmatic. */
static void flip(const bench *b, const bool *chosen)
{
    for (size_t i = 0; i < b->n_edges; i++) {
        gx_unit *unit = &b->plan->units[b->edges[i].unit];

        if (chosen[b->edges[i].set])
            unit->full_edge = !unit->full_edge;
    }
}

/* What those edges gain by being programmatic, all in all; either they are it now or none
 * is. */
static gx_status measure_sets(bench *b, const bool *chosen, gx_edge_gain *gain,
                              gx_error *err)
{
    double differences[MOST_PAIRS];
    captured other = { .n_programmatic = 0 };

    *gain = (gx_edge_gain){ .n_edges = 0 };
    flip(b, chosen);
    gx_status st = capture_step(b, &other, err);
    flip(b, chosen);
    GX_TRY(st);
    const int64_t added = other.n_programmatic - b->as_planned.n_programmatic;
    if (added != 0 && b->n_steps == 0)
        st = find_block(b, err);
    if (added != 0 && st == GX_OK)
        st = time_pairs(b, &other, differences, err);
    drop(&other);
    if (st != GX_OK || added == 0)
        return st;
    for (int i = 0; i < b->n_pairs; i++)
        differences[i] *= added < 0 ? 1 : -1;
    gain->n_edges = added < 0 ? -added : added;
    gain->gain_us = gx_median(differences, (size_t)b->n_pairs); /* which sorts */
    gain->spread_us = differences[3 * b->n_pairs / 4] - differences[b->n_pairs / 4];
    return GX_OK;
}

/* --- a program to measure on --- */

typedef gx_status use_fn(bench *b, void *user, gx_error *err);

static gx_status run_bench(bench *b, use_fn *use, void *user, gx_error *err)
{
    int previous = 0;

    GX_TRY(gx_exec_enter(b->exec, &previous, err));
    gx_status st = gx_stopwatch_open(&b->watch, err);
    if (st == GX_OK) {
        st = capture_step(b, &b->as_planned, err);
        if (st == GX_OK)
            st = use(b, user, err);
        /* A replay may be under way where a later one failed. */
        st = gx_first(st, b->exec->device->broken ? GX_OK
                                                  : gx_device_sync(b->exec->device, err));
        drop(&b->as_planned);
        gx_stopwatch_close(&b->watch);
    }
    return gx_exec_leave(b->exec, previous, st, err);
}

static gx_status with_bench(bench *b, gx_state *state, use_fn *use, void *user,
                            gx_error *err)
{
    GX_TRY(gx_exec_create(b->plan, state, NULL, &b->exec, err));
    const gx_status st = run_bench(b, use, user, err);

    gx_exec_free(b->exec);
    return st;
}

/* --- all of them, for a report --- */

typedef struct report {
    int32_t n_sets;
    bool *chosen;
    gx_edge_gain *gains;
} report;

static gx_status measure_each(bench *b, void *user, gx_error *err)
{
    report *r = user;

    for (int32_t set = 0; set < r->n_sets; set++) {
        gx_edge_gain *gain = &r->gains[set];

        r->chosen[set] = true;
        GX_TRY(measure_sets(b, r->chosen, gain, err));
        r->chosen[set] = false;
        if (gain->n_edges > 0) {
            gain->gain_us /= (double)gain->n_edges;
            gain->spread_us /= (double)gain->n_edges;
        }
    }
    return GX_OK;
}

gx_status gx_edges_measure(gx_plan *plan, gx_state *state, const gx_edge *edges,
                           size_t n_edges, int32_t n_sets, gx_edge_gain *gains,
                           gx_error *err)
{
    bench b = {
        .plan = plan,
        .edges = edges,
        .n_edges = n_edges,
        .n_pairs = MOST_PAIRS,
        .block_s = report_block_s,
    };
    report r = { .n_sets = n_sets, .gains = gains };

    r.chosen = calloc((size_t)n_sets + 1, sizeof *r.chosen);
    if (!r.chosen)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the edges of a plan");
    const gx_status st = with_bench(&b, state, measure_each, &r, err);
    free(r.chosen);
    return st;
}

/* --- which to leave, for a plan --- */

typedef struct choice {
    int32_t n_sets;
    double end_s; /* no set is begun behind this */
    bool *tried, *costly;
    bool any_costly;
} choice;

static bool costs(const gx_edge_gain *gain)
{
    return gain->n_edges > 0 && -gain->gain_us > gain->spread_us;
}

/* Each by itself against all programmatic; then what was found costly together, since a
 * gain may depend on its neighbours. */
static gx_status find_costly(bench *b, void *user, gx_error *err)
{
    choice *c = user;
    gx_edge_gain gain;

    for (int32_t set = 0; set < c->n_sets && gx_plan_clock() < c->end_s; set++) {
        c->tried[set] = true;
        GX_TRY(measure_sets(b, c->tried, &gain, err));
        c->tried[set] = false;
        c->costly[set] = costs(&gain);
        c->any_costly |= c->costly[set];
    }
    if (!c->any_costly)
        return GX_OK;
    GX_TRY(measure_sets(b, c->costly, &gain, err));
    c->any_costly = costs(&gain);
    return GX_OK;
}

static gx_status choose(bench *b, choice *c, gx_state *state, gx_error *err)
{
    GX_TRY(with_bench(b, state, find_costly, c, err));
    for (size_t i = 0; i < b->n_edges; i++)
        b->plan->units[b->edges[i].unit].full_edge =
            c->any_costly && c->costly[b->edges[i].set];
    return GX_OK;
}

gx_status gx_edges_choose(gx_plan *plan, gx_state *state, double budget_s, gx_error *err)
{
    gx_edge *edges = calloc(plan->n_units + 1, sizeof *edges);
    bool *flags = calloc(plan->n_units + 1, 2 * sizeof *flags);
    bench b = {
        .plan = plan,
        .edges = edges,
        .n_pairs = CHOOSE_PAIRS,
        .block_s = choose_block_s,
    };
    choice c = { .end_s = gx_plan_clock() + budget_s, .tried = flags };
    gx_status st = edges && flags
                       ? gx_edges_list(plan, edges, &b.n_edges, &c.n_sets, err)
                       : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a plan's edges");

    for (size_t u = 0; u < plan->n_units; u++)
        plan->units[u].full_edge = false;
    if (st == GX_OK && b.n_edges > 0) {
        c.costly = flags + c.n_sets;
        st = choose(&b, &c, state, err);
    }
    free(flags);
    free(edges);
    return st;
}
