/* Measuring on the device, for selection: chains of copies of a group in a small graph,
 * and a whole plan as a graph. */
#include "measure.h"

#include "capture.h"
#include "exec_model.h"
#include "stopwatch.h"

enum {
    CHAIN = 12,     /* copies in a graph: enough to hide what a launch of it costs */
    WARM = 2,       /* launches that are not timed */
    REPEATS = 9,    /* launches that are */
    PLAN_STEPS = 20 /* steps in a block of a plan's timing, or more */
};

/* A chain is cut short where it would run for longer than this. */
static const double chain_limit_s = 8e-3;

/* One launch by itself tells a hopeless candidate: so many times the best, and so much
 * more that what a launch itself costs does not matter. */
static const double hopeless_factor = 4;
static const double hopeless_us = 200;

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

static gx_status measure_chain(gx_chain *chain, const gx_stopwatch *watch, double best_us,
                               double *us, gx_error *err)
{
    gx_graph_cost cost;
    void *graph = NULL;
    void *graph_exec = NULL;
    double seconds = 0;

    /* The first launch loads what is loaded lazily, the second tells the length. */
    gx_status st = time_once(chain, NULL, watch, &seconds, err);
    if (st == GX_OK)
        st = time_once(chain, NULL, watch, &seconds, err);
    if (st != GX_OK)
        return st;
    const bool is_hopeless =
        best_us > 0 && 1e6 * seconds > hopeless_factor * best_us + hopeless_us;

    if (is_hopeless)
        chain->n_copies = 1;
    while (chain->n_copies > 1 && chain->n_copies * seconds > chain_limit_s)
        chain->n_copies--;
    st = gx_record(chain->device, record_chain, chain, &graph, err);
    /* A group of size zero launches nothing and takes no time. */
    if (st == GX_OK && chain->n_nodes == 0)
        *us = 0;
    else if (st == GX_OK && is_hopeless)
        *us = 1e6 * seconds;
    else if (st == GX_OK)
        st = gx_graph_start(chain->device, graph, &graph_exec, &cost, err);
    if (st == GX_OK && graph_exec)
        st = time_chain(chain, graph_exec, watch, us, err);
    gx_graph_end(graph, graph_exec);
    return st;
}

gx_status gx_measure_group(gx_device *device, const gx_group *group,
                           const gx_alternative *alternative, const gx_prepared *prepared,
                           void *workspace, double best_us, double *us, int *n_nodes,
                           gx_error *err)
{
    gx_chain chain = {
        .device = device,
        .group = group,
        .alternative = alternative,
        .prepared = prepared,
        .workspace = workspace,
        .n_copies = CHAIN,
    };
    gx_stopwatch watch;
    int previous = 0;

    *us = -1;
    *n_nodes = -1;
    GX_TRY(gx_device_enter(device, &previous, err));
    gx_status st = gx_stopwatch_open(&watch, err);
    if (st == GX_OK) {
        st = measure_chain(&chain, &watch, best_us, us, err);
        gx_stopwatch_close(&watch);
    }
    gx_device_leave(device, previous);
    if (st == GX_OK)
        *n_nodes = (int)chain.n_nodes;
    return st;
}

gx_status gx_run_group(gx_device *device, const gx_group *group,
                       const gx_alternative *alternative, const gx_prepared *prepared,
                       void *workspace, gx_error *err)
{
    const gx_chain chain = {
        .device = device,
        .group = group,
        .alternative = alternative,
        .prepared = prepared,
        .workspace = workspace,
    };
    int previous = 0;

    GX_TRY(gx_device_enter(device, &previous, err));
    gx_status st = launch_once(&chain, false, err);
    st = gx_first(st, gx_device_sync(device, err));
    gx_device_leave(device, previous);
    return st;
}

/* --- a plan --- */

static gx_status measure_exec(gx_exec *exec, double *us, gx_error *err)
{
    const int k = exec->steps_per_launch;
    const int n_steps = (PLAN_STEPS + k - 1) / k * k;
    double steps[REPEATS];

    /* Times do not depend on values: inputs that nobody gave are zeros. */
    exec->n_missing = 0;
    for (int i = -WARM; i < REPEATS; i++) {
        gx_timing timing;

        GX_TRY(gx_exec_time(exec, GX_MODE_GRAPH, n_steps, &timing, err));
        steps[i < 0 ? 0 : i] = 1e6 * timing.device_s / n_steps;
    }
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
