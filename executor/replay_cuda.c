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
#include "unit_nodes.h"

typedef struct gx_recording {
    gx_exec *exec;
    int slot; /* whose batches the steps read */
    gx_unit_nodes *nodes;
    gx_loop loop;
    uint64_t condition; /* of the branch that comes next */
    void **bodies;      /* cudaGraph_t of the branches, in the order of the steps */
    size_t n_bodies;
    size_t n_nodes; /* of the steps' graph and the bodies, once they are checked */
} gx_recording;

static gx_status end_unit(void *user, size_t unit, bool in_branch, gx_error *err)
{
    gx_recording *recording = user;
    const gx_exec *exec = recording->exec;
    const int lane = exec->plan->units[unit].lane;
    void *const stream =
        in_branch ? exec->branch_stream : exec->device->lane_stream[lane];

    return gx_unit_nodes_end(recording->nodes, unit, in_branch ? recording->n_bodies : 0,
                             stream, err);
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
    gx_recording *recording = user;
    gx_exec *exec = recording->exec;

    gx_unit_nodes_enter(recording->nodes);
    GX_TRY(gx_record_branch(exec->device, exec->branch_stream, recording->condition, body,
                            walk, &recording->bodies[recording->n_bodies++], err));
    return gx_unit_nodes_end(recording->nodes, GX_NO_UNIT, 0, exec->device->stream, err);
}

static gx_walk_hooks hooks_of(gx_recording *recording)
{
    return (gx_walk_hooks){ .after_unit = end_unit,
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

/* Of the steps' graph, or of a branch's body. */
static gx_status check_types(const gx_recording *recording, const gx_node_list *list,
                             size_t body, size_t *n_fills, gx_error *err)
{
    const size_t n_branches = body ? 0 : recording->n_bodies;
    gx_node_counts n;

    GX_TRY(gx_graph_look(list, &n, err));
    /* Beside a branch fills stay: that a driver lets nodes go there was not seen. */
    *n_fills = n_branches > 0 ? 0 : n.fills;
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
            gx_unit_nodes_owner(recording->nodes, body, n.first_refused), n.memory,
            n.host, n.host_copies, n.other);
    if (n.kernels + n.copies + n.fills == 0 && !body)
        return refuse_empty(recording->exec, err);
    return GX_OK;
}

/* --- fills --- */

typedef struct filling {
    const gx_recording *recording;
    size_t body;
} filling;

static size_t unit_of(const filling *f, size_t node)
{
    return gx_unit_nodes_unit(f->recording->nodes, f->body, node);
}

/* By the range a trace finds the unit of a replayed node: the one that was open when it
 * was made. */
static void begin_fill(void *user, size_t node)
{
    const filling *f = user;
    const size_t unit = unit_of(f, node);

    if (unit != GX_NO_UNIT)
        gx_range_unit_begin(f->recording->exec, unit);
}

static void end_fill(void *user, size_t node)
{
    const filling *f = user;

    if (unit_of(f, node) != GX_NO_UNIT)
        gx_range_end(f->recording->exec);
}

static gx_status replace_fills(const gx_recording *recording, void *graph, size_t body,
                               const gx_node_list *list, size_t n_fills, gx_error *err)
{
    filling f = { .recording = recording, .body = body };
    const gx_fill_hooks hooks = { .before = begin_fill, .after = end_fill, .user = &f };

    return gx_graph_replace_fills(graph, list, n_fills, &hooks, err);
}

/* Nothing more is looked at where a unit has not kept what it promised: the graph is
 * captured again. */
static gx_status check_nodes(gx_recording *recording, void *graph, size_t body,
                             bool *kept, gx_error *err)
{
    const size_t n_more = body == 0 && recording->exec->loops; /* the count of turns */
    size_t n_fills = 0;
    gx_node_list list;

    GX_TRY(gx_graph_list(graph, &list, err));
    gx_status st =
        recording->nodes->asks
            ? GX_OK
            : gx_unit_nodes_settle(recording->nodes, body, &list, n_more, kept, err);
    if (st == GX_OK && *kept)
        st = check_types(recording, &list, body, &n_fills, err);
    if (st == GX_OK)
        st = replace_fills(recording, graph, body, &list, n_fills, err);
    recording->n_nodes += list.n;
    free(list.node);
    return st;
}

/* The same for the steps and for each of their branches, and the sum of their
 * programmatic edges. */
static gx_status check_graphs(gx_recording *recording, void *steps,
                              int64_t *n_programmatic, bool *kept, gx_error *err)
{
    *kept = true;
    recording->n_nodes = 0;
    GX_TRY(check_nodes(recording, steps, 0, kept, err));
    GX_TRY(gx_graph_programmatic_edges(steps, n_programmatic, err));
    for (size_t i = 0; i < recording->n_bodies && *kept; i++) {
        int64_t n;

        GX_TRY(check_nodes(recording, recording->bodies[i], i + 1, kept, err));
        GX_TRY(gx_graph_programmatic_edges(recording->bodies[i], &n, err));
        *n_programmatic += n;
    }
    return GX_OK;
}

/* The graph is the caller's, also after a failure; NULL: there is none. The range reaches
 * over the checks, since a trace takes what is made within it as captured. */
static gx_status record(gx_recording *recording, bool asks, void **graph,
                        int64_t *n_programmatic, bool *kept, gx_error *err)
{
    gx_exec *exec = recording->exec;

    recording->n_bodies = 0;
    gx_unit_nodes_begin(recording->nodes, asks);
    gx_range_capture_begin(exec);
    gx_status st = exec->loops
                       ? gx_record_loop(exec->device, record_turn, recording,
                                        &recording->loop, graph, err)
                       : gx_record(exec->device, record_steps, recording, graph, err);
    if (st == GX_OK)
        st = check_graphs(recording, exec->loops ? recording->loop.body : *graph,
                          n_programmatic, kept, err);
    gx_range_end(exec);
    return st;
}

/* Where the nodes are not those that were promised the units are asked one by one, and
 * the one that is to blame fails by its name. */
static gx_status record_checked(gx_recording *recording, void **graph,
                                int64_t *n_programmatic, gx_error *err)
{
    bool kept;

    GX_TRY(record(recording, false, graph, n_programmatic, &kept, err));
    if (!kept) {
        gx_graph_end(*graph, NULL);
        GX_TRY(record(recording, true, graph, n_programmatic, &kept, err));
    }
    gx_unit_nodes_learn(recording->nodes);
    return GX_OK;
}

static gx_status capture(gx_exec *exec, gx_recording *recording, gx_error *err)
{
    const double begin = gx_exec_clock();
    gx_graph_cost cost;
    int64_t n_programmatic = 0;
    void *graph = NULL;
    void *graph_exec = NULL;

    gx_status st = record_checked(recording, &graph, &n_programmatic, err);
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
    exec->stats.graph_nodes = (int64_t)recording->n_nodes + exec->loops; /* the loop */
    exec->stats.programmatic_edges = n_programmatic;
    exec->stats.instantiations++;
    return GX_OK;
}

/* A graph for each slot, which differ in the addresses of the inputs alone. */
static gx_status capture_slots(gx_exec *exec, gx_unit_nodes *nodes, void **bodies,
                               gx_error *err)
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
            .exec = exec, .slot = slot, .nodes = nodes, .bodies = bodies
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
    void **bodies = calloc(n ? n : 1, sizeof *bodies);
    gx_unit_nodes nodes;
    gx_status st = gx_unit_nodes_open(&nodes, exec, exec->steps_per_launch, err);

    if (st == GX_OK)
        st = bodies ? capture_slots(exec, &nodes, bodies, err)
                    : GX_FAIL(err, GX_ERR_MEMORY, "no memory for %zu branches", n);
    gx_unit_nodes_close(&nodes);
    free(bodies);
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
