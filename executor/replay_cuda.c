/* A program as a graph: the walk captured K times, or once in a loop; checked node by
 * node, and replayed. */
#include <stdlib.h>

#include "builder.h"
#include "capture.h"
#include "count_turn.h"
#include "exec_cuda.h"
#include "feed.h"
#include "launch.h"
#include "ranges.h"
#include "set_branch.h"

/* A unit of a step, when it had been captured. */
typedef struct gx_end {
    size_t n_nodes; /* of the graph that holds it */
    size_t branch;  /* whose body that is, from 1; 0: of none */
} gx_end;

typedef struct gx_recording {
    gx_exec *exec;
    int slot;        /* whose batches the steps read */
    size_t n_nodes;  /* so far, of the graph that is being captured */
    gx_end *ends;    /* by step and unit */
    size_t n_walked; /* entries of `ends` that are filled */
    gx_loop loop;
    uint64_t condition; /* of the branch that comes next */
    void **bodies;      /* cudaGraph_t of the branches, in the order of the steps */
    size_t n_bodies;
    size_t n_inside; /* nodes of the bodies */
} gx_recording;

static gx_status wrong_count(void *stream, size_t found, int expected, gx_error *err)
{
    gx_node_counts counts;

    GX_TRY(gx_graph_nodes(stream, NULL, &counts, err));
    return GX_FAIL(
        err, GX_ERR_CAPTURE,
        "%zu graph nodes were captured, expected %d%s (the graph holds %zu memory "
        "nodes and %zu host nodes)",
        found, expected, found < (size_t)expected ? ": work went past the capture" : "",
        counts.memory, counts.host);
}

/* Work that went to another stream than the captured one adds no node here, and would run
 * once, now, instead of at each replay. */
static gx_status count_unit(void *user, size_t unit, bool in_branch, gx_error *err)
{
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;
    void *const stream = in_branch ? exec->branch_stream : exec->device->stream;
    gx_bound_unit *bound = &exec->units[unit];
    size_t n_nodes;
    int expected = gx_planned_launches(&exec->plan->units[unit]);

    GX_TRY(gx_record_count(stream, &n_nodes, err));
    const size_t added = n_nodes - recording->n_nodes;
    recording->n_nodes = n_nodes;
    recording->ends[recording->n_walked++] =
        (gx_end){ .n_nodes = n_nodes, .branch = in_branch ? recording->n_bodies : 0 };
    if (expected < 0)
        expected = bound->prepared.n_launches;
    if (expected < 0)
        expected = bound->n_seen;
    if (expected < 0)
        bound->n_seen = (int)added;
    else if (added != (size_t)expected)
        return wrong_count(stream, added, expected, err);
    return GX_OK;
}

/* The kernel reads what the updates of a launch without branches read. */
static gx_status record_decision(void *user, bool overlaps, gx_error *err)
{
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;
    gx_ctx ctx = gx_device_ctx(exec->device, 0);
    const int32_t update = gx_graph_value_id(exec->plan->graph, GX_UPDATE);
    void *args[] = { &recording->condition, &exec->value_data[update] };

    ctx.programmatic = exec->plan->programmatic;
    ctx.programmatic_first = overlaps;
    GX_TRY(gx_record_condition(exec->device, &recording->condition, err));
    return gx_launch(&ctx, "set_branch", gx_set_branch_kernel(), (dim3){ 1, 1, 1 },
                     (dim3){ 1, 1, 1 }, 0, args, err);
}

/* The branch's nodes in its own graph are counted there; those that it adds to the graph
 * around it are itself and what decides it. */
static gx_status record_branch(void *user, gx_walk_fn *body, void *walk, gx_error *err)
{
    enum { BRANCH_NODES = 2 };
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;
    const size_t before = recording->n_nodes;
    size_t n_nodes;

    recording->n_nodes = 0;
    GX_TRY(gx_record_branch(exec->device, exec->branch_stream, recording->condition, body,
                            walk, &recording->bodies[recording->n_bodies++], err));
    recording->n_inside += recording->n_nodes;
    GX_TRY(gx_record_count(exec->device->stream, &n_nodes, err));
    recording->n_nodes = n_nodes;
    return n_nodes - before == BRANCH_NODES
               ? GX_OK
               : wrong_count(exec->device->stream, n_nodes - before, BRANCH_NODES, err);
}

static gx_walk_hooks hooks_of(gx_recording *recording)
{
    return (gx_walk_hooks){ .after_unit = count_unit,
                            .decide = record_decision,
                            .branch = record_branch,
                            .user = recording };
}

static gx_status record_steps(void *user, gx_error *err)
{
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;
    const gx_walk_hooks hooks = hooks_of(recording);

    for (int step = 0; step < exec->steps_per_launch; step++) {
        if (exec->feed)
            gx_feed_point(exec, recording->slot, step);
        GX_TRY(gx_walk_cuda(exec, step > 0, &hooks, err));
    }
    return GX_OK;
}

/* A step and the count of its turn, which ends the loop with the last and stands behind
 * all else: on lane 0, with a full edge. */
static gx_status record_turn(void *user, gx_error *err)
{
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;
    const gx_walk_hooks hooks = hooks_of(recording);
    gx_ctx ctx = gx_device_ctx(exec->device, 0);
    int n_turns = exec->steps_per_launch;
    void *args[] = { &recording->loop.handle, &exec->turns, &n_turns };

    GX_TRY(gx_walk_cuda(exec, false, &hooks, err));
    return gx_launch(&ctx, "count_turn", gx_count_turn_kernel(), (dim3){ 1, 1, 1 },
                     (dim3){ 1, 1, 1 }, 0, args, err);
}

static bool has_work(const gx_call *call)
{
    for (int arg = 0; arg < gx_n_args(call->op); arg++) {
        const gx_field_kind kind = gx_arg_kind(call->op, arg);

        if (kind != GX_FIELD_IN && gx_has(call, arg) && gx_count(&call->arg[arg]) > 0)
            return true;
    }
    return false;
}

static gx_status refuse_empty(const gx_exec *exec, gx_error *err)
{
    for (size_t u = 0; u < exec->plan->n_units; u++) {
        const gx_unit *unit = &exec->plan->units[u];

        for (int32_t i = 0; i < unit->n_nodes && !unit->is_view; i++)
            if (has_work(&exec->units[u].group.call[i]))
                return GX_FAIL(
                    err, GX_ERR_CAPTURE,
                    "the capture holds no nodes, though op '%s' has work to do",
                    exec->units[u].group.call[i].name);
    }
    return GX_OK;
}

/* Nodes are listed in the order in which they were captured. */
static const char *captured_by(const gx_recording *recording, size_t branch, size_t node)
{
    for (size_t i = 0; i < recording->n_walked; i++)
        if (recording->ends[i].branch == branch && node < recording->ends[i].n_nodes)
            return recording->exec->units[i % recording->exec->plan->n_units].name;
    return "the joining of lanes";
}

/* Of the steps' graph, or of a branch's body. */
static gx_status check_nodes(const gx_recording *recording, void *graph, size_t branch,
                             gx_error *err)
{
    const size_t n_branches = branch ? 0 : recording->n_bodies;
    gx_node_counts n;

    GX_TRY(gx_graph_nodes(recording->exec->device->stream, graph, &n, err));
    if (n.branches != n_branches)
        return GX_FAIL(err, GX_ERR_CAPTURE,
                       "the graph holds %zu conditional nodes, expected %zu", n.branches,
                       n_branches);
    if (n.refused)
        return GX_FAIL(
            err, GX_ERR_CAPTURE,
            "%s: graph holds %zu memory nodes, %zu host nodes, %zu copies from or to "
            "host memory and %zu other nodes; a replay may hold kernels, copies on "
            "the device and fills alone",
            captured_by(recording, branch, n.first_refused), n.memory, n.host,
            n.host_copies, n.other);
    if (n.kernels + n.copies + n.fills == 0 && !branch)
        return refuse_empty(recording->exec, err);
    return GX_OK;
}

/* The same for the steps and for each of their branches, and the sum of their
 * programmatic edges. */
static gx_status check_graphs(const gx_recording *recording, void *steps,
                              int64_t *n_programmatic, gx_error *err)
{
    GX_TRY(check_nodes(recording, steps, 0, err));
    GX_TRY(gx_graph_programmatic_edges(steps, n_programmatic, err));
    for (size_t i = 0; i < recording->n_bodies; i++) {
        int64_t n;

        GX_TRY(check_nodes(recording, recording->bodies[i], i + 1, err));
        GX_TRY(gx_graph_programmatic_edges(recording->bodies[i], &n, err));
        *n_programmatic += n;
    }
    return GX_OK;
}

static gx_status capture(gx_exec *exec, gx_recording *recording, gx_error *err)
{
    enum { LOOP_NODES = 2 }; /* itself, and the count of turns */
    const double begin = gx_exec_clock();
    gx_graph_cost cost;
    int64_t n_programmatic = 0;
    void *graph = NULL;
    void *graph_exec = NULL;

    gx_range_capture_begin(exec);
    gx_status st = exec->loops
                       ? gx_record_loop(exec->device, record_turn, recording,
                                        &recording->loop, &graph, err)
                       : gx_record(exec->device, record_steps, recording, &graph, err);
    gx_range_end(exec);
    void *const steps = exec->loops ? recording->loop.body : graph;
    if (st == GX_OK)
        st = check_graphs(recording, steps, &n_programmatic, err);
    const double captured = gx_exec_clock();
    if (st == GX_OK)
        st = gx_graph_start(exec->device, graph, &graph_exec, &cost, err);
    if (st != GX_OK) {
        gx_graph_end(graph, NULL);
        return st;
    }
    exec->graph[recording->slot] = graph;
    exec->graph_exec[recording->slot] = graph_exec;
    exec->stats.capture_s += captured - begin;
    exec->stats.instantiate_s += cost.instantiate_s;
    exec->stats.upload_s += cost.upload_s;
    exec->stats.graph_nodes = (int64_t)(recording->n_nodes + recording->n_inside) +
                              (exec->loops ? LOOP_NODES : 0);
    exec->stats.programmatic_edges = n_programmatic;
    exec->stats.instantiations++;
    return GX_OK;
}

/* A graph for each slot, which differ in the addresses of the inputs alone. */
static gx_status capture_slots(gx_exec *exec, gx_end *ends, void **bodies, gx_error *err)
{
    const int n_slots = exec->feed ? GX_FEED_SLOTS : 1;
    const int at_slot = exec->feed ? exec->feed->at_slot : 0;
    const int at_batch = exec->feed ? exec->feed->at_batch : 0;
    gx_status st = GX_OK;

    exec->stats.capture_s = 0;
    exec->stats.instantiate_s = 0;
    exec->stats.upload_s = 0;
    for (int slot = 0; slot < n_slots && st == GX_OK; slot++) {
        gx_recording recording = {
            .exec = exec, .slot = slot, .ends = ends, .bodies = bodies
        };

        st = capture(exec, &recording, err);
    }
    if (exec->feed)
        gx_feed_point(exec, at_slot, at_batch);
    if (st != GX_OK) {
        gx_capture_drop(exec);
        exec->stats.capture_s = -1;
        exec->stats.instantiate_s = -1;
        exec->stats.upload_s = -1;
        return st;
    }
    exec->stats.rebuilds += exec->was_captured;
    exec->was_captured = true;
    return GX_OK;
}

gx_status gx_capture(gx_exec *exec, gx_error *err)
{
    const size_t n = (size_t)exec->steps_per_launch * exec->plan->n_units;
    gx_end *ends = calloc(n ? n : 1, sizeof *ends);
    void **bodies = calloc(n ? n : 1, sizeof *bodies);
    const gx_status st =
        ends && bodies
            ? capture_slots(exec, ends, bodies, err)
            : GX_FAIL(err, GX_ERR_MEMORY, "no memory to count the nodes of %zu units", n);

    free(bodies);
    free(ends);
    return st;
}

static gx_status replay_once(gx_exec *exec, gx_error *err)
{
    const bool feeds = exec->feed && exec->feed->active;
    int slot = 0;

    if (feeds) {
        GX_TRY(gx_feed_cuda_next(exec, exec->steps_per_launch, err));
        slot = exec->feed->next;
    }
    gx_range_replay_begin(exec);
    gx_status st = gx_graph_submit(exec->device, exec->graph_exec[slot], err);
    exec->stats.graph_launches += st == GX_OK;
    if (st == GX_OK && feeds)
        st = gx_feed_cuda_launched(exec, exec->steps_per_launch, err);
    gx_range_end(exec);
    return st;
}

/* Nothing here allocates, locks or asks: a replay is one call of the driver, and where
 * data stream the calls that copy a batch and order the copy. */
gx_status gx_replay(gx_exec *exec, int64_t n_launches, gx_error *err)
{
    if (n_launches > 0 && exec->stats.first_launch_s < 0) {
        const double begin = gx_exec_clock();

        GX_TRY(replay_once(exec, err));
        exec->stats.first_launch_s = gx_exec_clock() - begin;
        n_launches--;
    }
    for (int64_t i = 0; i < n_launches; i++)
        GX_TRY(replay_once(exec, err));
    return GX_OK;
}

void gx_capture_drop(gx_exec *exec)
{
    for (int slot = 0; slot < GX_FEED_SLOTS; slot++) {
        gx_graph_end(exec->graph[slot], exec->graph_exec[slot]);
        exec->graph[slot] = NULL;
        exec->graph_exec[slot] = NULL;
    }
    exec->stats.graph_nodes = 0;
}
