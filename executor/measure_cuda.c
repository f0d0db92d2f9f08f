/* Measuring on the device, for selection: chains of copies of a group in a small graph,
 * and a whole plan as a graph. */
#include "measure.h"

#include <stdlib.h>

#include "capture.h"
#include "exec_model.h"
#include "stopwatch.h"

enum {
    CHAIN = 12,  /* copies in a graph: enough to hide what a launch of it costs */
    WARM = 2,    /* launches that are not timed */
    REPEATS = 9, /* launches that are */
    MOST_LAUNCHES = 1000, /* of a graph that is timed sustained */
    PLAN_STEPS = 20       /* steps in a block of a plan's timing, or more */
};

/* A chain is cut short where it would run for longer than this. */
static const double chain_limit_s = 3e-3;

/* How long a card that is limited by its power takes to find its clocks, and how long is
 * enough to time it at them. */
static const double settle_s = 60e-3;
static const double sustained_s = 60e-3;

/* Whole steps: as long as this for those that take at least so long. Shorter ones leave
 * the card idle between kernels, and plans of small models stay quick to make. */
static const double plan_settle_s = 200e-3;
static const double long_step_us = 500;

/* --- a group --- */

typedef struct gx_chain {
    gx_device *device;
    const gx_group *group;
    const gx_alternative *alternative;
    const gx_prepared *prepared;
    void *workspace;
    int n_copies;
    size_t n_nodes; /* of one copy */
} gx_chain;

/* `follows`: right after another copy, with a programmatic edge where the card has them,
 * since that is how most plans run. */
static gx_status launch_once(const gx_chain *chain, bool follows, gx_error *err)
{
    gx_ctx ctx = gx_device_ctx(chain->device, 0);

    ctx.programmatic = true;
    ctx.programmatic_first = follows;
    gx_workspace_use(&ctx, chain->workspace, chain->prepared->workspace_bytes);
    return chain->alternative->launch(chain->group, chain->prepared, &ctx, err);
}

static gx_status record_chain(void *user, gx_error *err)
{
    gx_chain *chain = user;
    size_t before = 0;

    for (int i = 0; i < chain->n_copies; i++) {
        size_t n_nodes;

        GX_TRY(launch_once(chain, i > 0, err));
        GX_TRY(gx_record_count(chain->device->stream, &n_nodes, err));
        if (i == 0)
            chain->n_nodes = n_nodes;
        if (n_nodes - before != chain->n_nodes)
            return GX_FAIL(err, GX_ERR_CAPTURE,
                           "%s added %zu graph nodes once and %zu nodes another time",
                           chain->alternative->name, chain->n_nodes, n_nodes - before);
        before = n_nodes;
    }
    return GX_OK;
}

/* Seconds on the device of one launch of `graph_exec`, or of the group where it is NULL.
 */
static gx_status time_once(const gx_chain *chain, void *graph_exec,
                           const gx_stopwatch *watch, double *seconds, gx_error *err)
{
    GX_TRY(gx_stopwatch_start(watch, chain->device, err));
    GX_TRY(graph_exec ? gx_graph_submit(chain->device, graph_exec, err)
                      : launch_once(chain, false, err));
    return gx_stopwatch_stop(watch, chain->device, seconds, err);
}

static gx_status time_chain(const gx_chain *chain, void *graph_exec,
                            const gx_stopwatch *watch, double *us, gx_error *err)
{
    double seconds[REPEATS];

    for (int i = -WARM; i < REPEATS; i++)
        GX_TRY(time_once(chain, graph_exec, watch, &seconds[i < 0 ? 0 : i], err));
    *us = 1e6 * gx_median(seconds, REPEATS) / chain->n_copies;
    return GX_OK;
}

/* Launches of the chain's graph that run for so long, where one of the group takes
 * `us`. */
static int launches_for(const gx_chain *chain, double seconds, double us)
{
    const double n = 1e6 * seconds / (us * chain->n_copies);

    return n < 1 ? 1 : n > MOST_LAUNCHES ? MOST_LAUNCHES : (int)n;
}

static gx_status submit(const gx_chain *chain, void *graph_exec, int n, gx_error *err)
{
    for (int i = 0; i < n; i++)
        GX_TRY(gx_graph_submit(chain->device, graph_exec, err));
    return GX_OK;
}

/* Nothing waits between the launches that settle the card and those that are timed. */
static gx_status time_sustained(const gx_chain *chain, void *graph_exec,
                                const gx_stopwatch *watch, double *us, gx_error *err)
{
    const int n_settle = launches_for(chain, settle_s, *us);
    const int n_timed = launches_for(chain, sustained_s, *us);
    double seconds = 0;

    GX_TRY(submit(chain, graph_exec, n_settle, err));
    GX_TRY(gx_stopwatch_start(watch, chain->device, err));
    GX_TRY(submit(chain, graph_exec, n_timed, err));
    GX_TRY(gx_stopwatch_stop(watch, chain->device, &seconds, err));
    *us = 1e6 * seconds / ((double)n_timed * chain->n_copies);
    return GX_OK;
}

typedef gx_status time_fn(const gx_chain *chain, void *graph_exec,
                          const gx_stopwatch *watch, double *us, gx_error *err);

/* As a program does with what it has captured. */
static gx_status replace_fills(void *graph, gx_error *err)
{
    gx_node_counts counts;
    gx_node_list list;

    GX_TRY(gx_graph_list(graph, &list, err));
    gx_status st = gx_graph_look(&list, &counts, err);
    if (st == GX_OK)
        st = gx_graph_replace_fills(graph, &list, counts.fills, NULL, err);
    free(list.node);
    return st;
}

static gx_status start(gx_chain *chain, void *graph, void **graph_exec, gx_error *err)
{
    gx_graph_cost cost;

    GX_TRY(replace_fills(graph, err));
    return gx_graph_start(chain->device, graph, graph_exec, &cost, err);
}

/* The chain as a graph, for as many copies as do not take too long; *us is what one is
 * expected to take, and then what `time` (NULL: nothing) says. */
static gx_status with_graph(gx_chain *chain, const gx_stopwatch *watch, time_fn *time,
                            double *us, gx_error *err)
{
    void *graph = NULL;
    void *graph_exec = NULL;

    while (chain->n_copies > 1 && 1e-6 * chain->n_copies * *us > chain_limit_s)
        chain->n_copies--;
    gx_status st = gx_record(chain->device, record_chain, chain, &graph, err);
    /* A group of size zero launches nothing and takes no time. */
    if (st == GX_OK && chain->n_nodes == 0)
        *us = 0;
    else if (st == GX_OK && time)
        st = start(chain, graph, &graph_exec, err);
    if (st == GX_OK && graph_exec)
        st = time(chain, graph_exec, watch, us, err);
    /* A launch may be under way where a later one failed. */
    if (st != GX_OK && graph_exec && !chain->device->broken)
        st = gx_first(st, gx_device_sync(chain->device, err));
    gx_graph_end(graph, graph_exec);
    return st;
}

static gx_status measure_chain(gx_chain *chain, const gx_stopwatch *watch,
                               double give_up_us, gx_group_time *time, gx_error *err)
{
    double seconds = 0;

    /* The first launch loads what is loaded lazily, the second tells the length. */
    GX_TRY(time_once(chain, NULL, watch, &seconds, err));
    GX_TRY(time_once(chain, NULL, watch, &seconds, err));
    time->once_us = 1e6 * seconds;
    /* Nothing is given up for one launch that was disturbed. */
    if (give_up_us > 0 && time->once_us > give_up_us) {
        GX_TRY(time_once(chain, NULL, watch, &seconds, err));
        if (1e6 * seconds < time->once_us)
            time->once_us = 1e6 * seconds;
    }
    time->us = time->once_us;
    time->given_up = give_up_us > 0 && time->once_us > give_up_us;
    if (time->given_up)
        chain->n_copies = 1;
    GX_TRY(with_graph(chain, watch, time->given_up ? NULL : time_chain, &time->us, err));
    time->n_nodes = (int)chain->n_nodes;
    return GX_OK;
}

static gx_chain chain_of(gx_device *device, const gx_group *group,
                         const gx_alternative *alternative, const gx_prepared *prepared,
                         void *workspace)
{
    return (gx_chain){
        .device = device,
        .group = group,
        .alternative = alternative,
        .prepared = prepared,
        .workspace = workspace,
        .n_copies = CHAIN,
    };
}

gx_status gx_measure_group(gx_device *device, const gx_group *group,
                           const gx_alternative *alternative, const gx_prepared *prepared,
                           void *workspace, double give_up_us, gx_group_time *time,
                           gx_error *err)
{
    gx_chain chain = chain_of(device, group, alternative, prepared, workspace);
    gx_stopwatch watch;
    int previous = 0;

    *time = (gx_group_time){ .us = -1, .once_us = -1, .n_nodes = -1 };
    GX_TRY(gx_device_enter(device, &previous, err));
    gx_status st = gx_stopwatch_open(&watch, err);
    if (st == GX_OK) {
        st = measure_chain(&chain, &watch, give_up_us, time, err);
        gx_stopwatch_close(&watch);
    }
    gx_device_leave(device, previous);
    return st;
}

gx_status gx_measure_sustained(gx_device *device, const gx_group *group,
                               const gx_alternative *alternative,
                               const gx_prepared *prepared, void *workspace, double *us,
                               gx_error *err)
{
    gx_chain chain = chain_of(device, group, alternative, prepared, workspace);
    gx_stopwatch watch;
    int previous = 0;

    GX_TRY(gx_device_enter(device, &previous, err));
    gx_status st = gx_stopwatch_open(&watch, err);
    if (st == GX_OK) {
        st = with_graph(&chain, &watch, time_sustained, us, err);
        gx_stopwatch_close(&watch);
    }
    gx_device_leave(device, previous);
    return st;
}

gx_status gx_run_group(gx_device *device, const gx_group *group,
                       const gx_alternative *alternative, const gx_prepared *prepared,
                       void *workspace, gx_error *err)
{
    const gx_chain chain = chain_of(device, group, alternative, prepared, workspace);
    int previous = 0;

    GX_TRY(gx_device_enter(device, &previous, err));
    gx_status st = launch_once(&chain, false, err);
    st = gx_first(st, gx_device_sync(device, err));
    gx_device_leave(device, previous);
    return st;
}

/* --- a plan --- */

static gx_status time_block(gx_exec *exec, int n_steps, double *us, gx_error *err)
{
    gx_timing timing;

    GX_TRY(gx_exec_time(exec, GX_MODE_GRAPH, n_steps, &timing, err));
    *us = 1e6 * timing.device_s / n_steps;
    return GX_OK;
}

/* Plans are timed one after the other, and while the next one is made the card rests: a
 * card that is limited by its power would then run the first blocks faster. */
static gx_status settle_steps(gx_exec *exec, int n_steps, double us, gx_error *err)
{
    double left_us = us < long_step_us ? 0 : 1e6 * plan_settle_s;

    while (left_us > 0 && us > 0) {
        GX_TRY(time_block(exec, n_steps, &us, err));
        left_us -= us * n_steps;
    }
    return GX_OK;
}

static gx_status measure_exec(gx_exec *exec, double *us, gx_error *err)
{
    const int k = exec->steps_per_launch;
    const int n_steps = (PLAN_STEPS + k - 1) / k * k;
    double steps[REPEATS];

    /* Times hardly depend on values: inputs that nobody gave are zeros. */
    exec->n_missing = 0;
    for (int i = 0; i < WARM; i++)
        GX_TRY(time_block(exec, n_steps, us, err));
    GX_TRY(settle_steps(exec, n_steps, *us, err));
    for (int i = 0; i < REPEATS; i++)
        GX_TRY(time_block(exec, n_steps, &steps[i], err));
    *us = gx_median(steps, REPEATS);
    return GX_OK;
}

gx_status gx_measure_plan(const gx_plan *plan, gx_state *state,
                          const gx_exec_options *options, double *us, gx_error *err)
{
    gx_exec *exec = NULL;

    *us = -1;
    gx_status st = gx_exec_create(plan, state, options, &exec, err);
    if (st == GX_OK)
        st = measure_exec(exec, us, err);
    gx_exec_free(exec);
    return st;
}
