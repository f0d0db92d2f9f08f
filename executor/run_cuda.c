/* The walk on a GPU: one step, unit by unit, on its lanes. Eager mode runs it, and a
 * capture records it; it does not know which. */
#include "exec_cuda.h"
#include "feed.h"
#include "launch.h"
#include "ranges.h"

/* The other lanes start behind what stands on lane 0, which also brings them into a
 * capture. Lanes below *n_forked have. */
static gx_status fork_lanes(gx_exec *exec, int *n_forked, gx_error *err)
{
    void *const *const stream = exec->device->lane_stream;

    *n_forked = 0;
    if (!exec->fork_event)
        return GX_OK;
    GX_TRY(GX_CUDA(cudaEventRecord(exec->fork_event, stream[0]), err));
    for (int lane = 1; lane < GX_MAX_LANES; lane++) {
        if (exec->join_event[lane])
            GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream[lane], exec->fork_event, 0), err));
        *n_forked = lane + 1;
    }
    return GX_OK;
}

static gx_status join_lane(gx_exec *exec, int lane, gx_error *err)
{
    void *const *const stream = exec->device->lane_stream;
    const cudaEvent_t event = exec->join_event[lane];

    GX_TRY(GX_CUDA(cudaEventRecord(event, stream[lane]), err));
    return GX_CUDA(cudaStreamWaitEvent(stream[0], event, 0), err);
}

static gx_status join_lanes(gx_exec *exec, int n_forked, gx_error *err)
{
    gx_status st = GX_OK;

    for (int lane = 1; lane < n_forked; lane++)
        if (exec->join_event[lane])
            st = gx_first(st, join_lane(exec, lane, err));
    return st;
}

/* Where a step stands among others while it is walked. */
typedef struct gx_standing {
    bool overlaps; /* its first kernel may be programmatic to the step before */
    bool apart[GX_MAX_LANES]; /* a full edge stands between the lane and earlier steps */
    bool started;
    bool beside_branch[GX_MAX_LANES]; /* the lane's next kernel follows a branch, or is
                                         the first in one */
} gx_standing;

typedef struct walked {
    gx_exec *exec;
    const gx_walk_hooks *hooks;
    gx_step_ranges ranges;
    gx_standing at;
    size_t next;  /* unit */
    int n_forked; /* lanes below that have */
    bool in_branch;
} walked;

/* A step of one chain follows the one before as a unit follows the one before it; lanes
 * join and fork between steps. */
static gx_standing stand(const gx_exec *exec, bool follows)
{
    gx_standing at = { .overlaps =
                           follows && exec->plan->programmatic && !exec->fork_event };

    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        at.apart[lane] = !at.overlaps;
    return at;
}

static bool is_programmatic(const gx_plan *plan, const gx_unit *unit,
                            const gx_standing *at)
{
    if (at->beside_branch[unit->lane]) /* where programmatic edges end */
        return false;
    if (at->overlaps && !at->started)
        return !unit->full_edge;
    return plan->programmatic && unit->programmatic_first && !unit->full_edge;
}

/* In a branch there is one stream, which is in order, and behind what all lanes did. */
static gx_status wait_for_units(const walked *walk, const gx_unit *unit,
                                cudaStream_t stream, gx_error *err)
{
    for (int w = 0; w < unit->n_waits && !walk->in_branch; w++) {
        const cudaEvent_t event = walk->exec->units[unit->waits[w]].event;

        GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream, event, 0), err));
    }
    return GX_OK;
}

static gx_status signal_unit(const gx_exec *exec, size_t i, cudaStream_t stream,
                             gx_error *err)
{
    const cudaEvent_t event = exec->units[i].event;

    return event ? GX_CUDA(cudaEventRecord(event, stream), err) : GX_OK;
}

static gx_status launch_unit(walked *walk, size_t i, gx_error *err)
{
    const gx_exec *exec = walk->exec;
    const gx_plan *plan = exec->plan;
    const gx_unit *unit = &plan->units[i];
    const gx_bound_unit *bound = &exec->units[i];
    gx_standing *at = &walk->at;
    gx_ctx ctx = gx_device_ctx(exec->device, unit->lane);
    gx_group group = bound->group;

    if (walk->in_branch)
        ctx.stream = exec->branch_stream;
    gx_workspace_use(&ctx, exec->workspace[unit->lane],
                     plan->workspace_bytes[unit->lane]);
    ctx.programmatic = plan->programmatic;
    ctx.programmatic_first = is_programmatic(plan, unit, at);
    ctx.first_step = at->apart[unit->lane] || !ctx.programmatic_first;
    /* Layout has looked at one step alone, not at what the one before it wrote. */
    if (!ctx.first_step)
        group.steady = NULL;
    GX_TRY(wait_for_units(walk, unit, ctx.stream, err));
    GX_TRY(unit->alternative->launch(&group, &bound->prepared, &ctx, err));
    at->started |= !unit->is_view;
    at->beside_branch[unit->lane] &= ctx.n_launched == 0;
    at->apart[unit->lane] |= ctx.n_launched > 0 && !ctx.programmatic_first;
    return walk->in_branch ? GX_OK : signal_unit(exec, i, ctx.stream, err);
}

static gx_status walk_unit(walked *walk, size_t i, gx_error *err)
{
    const gx_walk_hooks *hooks = walk->hooks;

    gx_ranges_unit_begin(&walk->ranges, i);
    gx_status st = launch_unit(walk, i, err);
    if (st == GX_OK && hooks)
        st = hooks->after_unit(hooks->user, i, walk->in_branch, err);
    gx_ranges_unit_end(&walk->ranges);
    if (st != GX_OK)
        gx_error_prefix(err, walk->exec->units[i].name);
    return st;
}

/* --- units that can be skipped --- */

static void stand_beside_branch(gx_standing *at)
{
    for (int lane = 0; lane < GX_MAX_LANES; lane++) {
        at->beside_branch[lane] = true;
        at->apart[lane] = true;
    }
}

static gx_status walk_body(void *user, gx_error *err)
{
    walked *walk = user;
    const gx_plan *plan = walk->exec->plan;
    gx_status st = GX_OK;

    walk->in_branch = true;
    stand_beside_branch(&walk->at);
    for (; walk->next < plan->n_units && plan->units[walk->next].skips && st == GX_OK;
         walk->next++)
        st = walk_unit(walk, walk->next, err);
    walk->in_branch = false;
    return st;
}

/* What decides is captured in the range of the first of the units, and has its name. The
 * first unit of a step is no such, and may not be programmatic to lanes that joined. */
static gx_status decide(walked *walk, gx_error *err)
{
    const bool overlaps = walk->exec->plan->programmatic && !walk->exec->fork_event &&
                          walk->at.started && !walk->at.beside_branch[0];

    gx_ranges_unit_begin(&walk->ranges, walk->next);
    const gx_status st = walk->hooks->decide(walk->hooks->user, overlaps, err);
    gx_ranges_unit_end(&walk->ranges);
    if (st != GX_OK)
        gx_error_prefix(err, walk->exec->units[walk->next].name);
    return st;
}

/* Lanes join before the branch and fork behind it, so that whatever layout has ordered
 * stays so: its body has one stream. An event of the body would be none outside. */
static gx_status walk_branch(walked *walk, gx_error *err)
{
    gx_exec *exec = walk->exec;
    const size_t first = walk->next;

    GX_TRY(join_lanes(exec, walk->n_forked, err));
    GX_TRY(decide(walk, err));
    GX_TRY(walk->hooks->branch(walk->hooks->user, walk_body, walk, err));
    stand_beside_branch(&walk->at);
    for (size_t i = first; i < walk->next; i++)
        GX_TRY(signal_unit(exec, i, exec->device->lane_stream[0], err));
    return fork_lanes(exec, &walk->n_forked, err);
}

/* --- a step --- */

static gx_status walk_units(walked *walk, gx_error *err)
{
    const gx_plan *plan = walk->exec->plan;

    while (walk->next < plan->n_units) {
        if (walk->hooks && walk->exec->branches && plan->units[walk->next].skips)
            GX_TRY(walk_branch(walk, err));
        else
            GX_TRY(walk_unit(walk, walk->next++, err));
    }
    return GX_OK;
}

gx_status gx_walk_cuda(gx_exec *exec, bool follows, const gx_walk_hooks *hooks,
                       gx_error *err)
{
    walked walk = { .exec = exec, .hooks = hooks, .at = stand(exec, follows) };

    gx_ranges_step_begin(&walk.ranges, exec);
    gx_status st = fork_lanes(exec, &walk.n_forked, err);
    if (st == GX_OK)
        st = walk_units(&walk, err);
    /* Also after a failure: work left on another lane would keep a capture from ending
     * well, and would run on beside whatever comes next on lane 0. */
    st = gx_first(st, join_lanes(exec, walk.n_forked, err));
    /* Not in a capture: the batch is gathered while the step runs. */
    if (st == GX_OK && exec->feed && exec->feed->active)
        st = gx_feed_cuda_launched(exec, 1, err);
    gx_ranges_step_end(&walk.ranges);
    return st;
}

gx_status gx_step_cuda(gx_exec *exec, gx_error *err)
{
    if (exec->feed && exec->feed->active)
        GX_TRY(gx_feed_cuda_next(exec, 1, err));
    return gx_walk_cuda(exec, false, NULL, err);
}
