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
} gx_standing;

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

static gx_status launch_unit(gx_exec *exec, size_t i, gx_standing *at, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const gx_unit *unit = &plan->units[i];
    const gx_bound_unit *bound = &exec->units[i];
    const cudaStream_t stream = exec->device->lane_stream[unit->lane];
    gx_ctx ctx = gx_device_ctx(exec->device, unit->lane);
    gx_group group = bound->group;

    gx_workspace_use(&ctx, exec->workspace[unit->lane],
                     plan->workspace_bytes[unit->lane]);
    ctx.programmatic = plan->programmatic;
    ctx.programmatic_first =
        at->overlaps && !at->started
            ? true
            : plan->programmatic && unit->programmatic_first && !unit->full_edge;
    ctx.first_step = at->apart[unit->lane] || !ctx.programmatic_first;
    /* Layout has looked at one step alone, not at what the one before it wrote. */
    if (!ctx.first_step)
        group.steady = NULL;
    for (int w = 0; w < unit->n_waits; w++) {
        const cudaEvent_t event = exec->units[unit->waits[w]].event;

        GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream, event, 0), err));
    }
    GX_TRY(unit->alternative->launch(&group, &bound->prepared, &ctx, err));
    at->started |= !unit->is_view;
    at->apart[unit->lane] |= ctx.n_launched > 0 && !ctx.programmatic_first;
    if (bound->event)
        GX_TRY(GX_CUDA(cudaEventRecord(bound->event, stream), err));
    return GX_OK;
}

gx_status gx_walk_cuda(gx_exec *exec, bool follows, gx_after_unit_fn *after_unit,
                       void *user, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    gx_standing at = stand(exec, follows);
    gx_step_ranges ranges;
    int n_forked;

    gx_ranges_step_begin(&ranges, exec);
    gx_status st = fork_lanes(exec, &n_forked, err);
    for (size_t i = 0; i < plan->n_units && st == GX_OK; i++) {
        gx_ranges_unit_begin(&ranges, i);
        st = launch_unit(exec, i, &at, err);
        if (st == GX_OK && after_unit)
            st = after_unit(exec, i, user, err);
        gx_ranges_unit_end(&ranges);
        if (st != GX_OK)
            gx_error_prefix(err, exec->units[i].name);
    }
    /* Also after a failure: work left on another lane would keep a capture from ending
     * well, and would run on beside whatever comes next on lane 0. */
    st = gx_first(st, join_lanes(exec, n_forked, err));
    /* Not in a capture: the batch is gathered while the step runs. */
    if (st == GX_OK && exec->feed && exec->feed->active)
        st = gx_feed_cuda_launched(exec, 1, err);
    gx_ranges_step_end(&ranges);
    return st;
}

gx_status gx_step_cuda(gx_exec *exec, gx_error *err)
{
    if (exec->feed && exec->feed->active)
        GX_TRY(gx_feed_cuda_next(exec, 1, err));
    return gx_walk_cuda(exec, false, NULL, NULL, err);
}
