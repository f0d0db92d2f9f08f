/* The walk on a GPU: one step, unit by unit, on its lanes. Eager mode runs it, and a
 * capture records it; it does not know which. */
#include "exec_cuda.h"
#include "feed.h"
#include "launch.h"
#include "ranges.h"

/* Lane 1 starts behind what stands on lane 0, which also brings it into a capture. */
static gx_status fork_lane(gx_exec *exec, gx_error *err)
{
    const gx_device *device = exec->device;

    GX_TRY(GX_CUDA(cudaEventRecord(exec->fork_event, device->lane_stream[0]), err));
    return GX_CUDA(cudaStreamWaitEvent(device->lane_stream[1], exec->fork_event, 0), err);
}

static gx_status join_lane(gx_exec *exec, gx_error *err)
{
    const gx_device *device = exec->device;

    GX_TRY(GX_CUDA(cudaEventRecord(exec->join_event, device->lane_stream[1]), err));
    return GX_CUDA(cudaStreamWaitEvent(device->lane_stream[0], exec->join_event, 0), err);
}

static gx_status launch_unit(gx_exec *exec, size_t i, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const gx_unit *unit = &plan->units[i];
    const gx_bound_unit *bound = &exec->units[i];
    const cudaStream_t stream = exec->device->lane_stream[unit->lane];
    gx_ctx ctx = gx_device_ctx(exec->device, unit->lane);
    gx_group group = bound->group;

    /* Layout has looked at one step alone, not at what the one before it wrote. */
    if (exec->launch_step > 0)
        group.steady = NULL;

    gx_workspace_use(&ctx, exec->workspace[unit->lane],
                     plan->workspace_bytes[unit->lane]);
    ctx.programmatic = plan->programmatic;
    ctx.programmatic_first = plan->programmatic && unit->programmatic_first;
    for (int w = 0; w < unit->n_waits; w++) {
        const cudaEvent_t event = exec->units[unit->waits[w]].event;

        GX_TRY(GX_CUDA(cudaStreamWaitEvent(stream, event, 0), err));
    }
    GX_TRY(unit->alternative->launch(&group, &bound->prepared, &ctx, err));
    if (bound->event)
        GX_TRY(GX_CUDA(cudaEventRecord(bound->event, stream), err));
    return GX_OK;
}

gx_status gx_walk_cuda(gx_exec *exec, gx_after_unit_fn *after_unit, void *user,
                       gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const bool forks = exec->fork_event != NULL;
    gx_step_ranges ranges;

    gx_ranges_step_begin(&ranges, exec);
    gx_status st = forks ? fork_lane(exec, err) : GX_OK;
    const bool forked = forks && st == GX_OK;
    for (size_t i = 0; i < plan->n_units && st == GX_OK; i++) {
        gx_ranges_unit_begin(&ranges, i);
        st = launch_unit(exec, i, err);
        if (st == GX_OK && after_unit)
            st = after_unit(exec, i, user, err);
        gx_ranges_unit_end(&ranges);
        if (st != GX_OK)
            gx_error_prefix(err, exec->units[i].name);
    }
    /* Also after a failure: work left on lane 1 would keep a capture from ending well,
     * and would run on beside whatever comes next on lane 0. */
    if (forked)
        st = gx_first(st, join_lane(exec, err));
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
    return gx_walk_cuda(exec, NULL, NULL, err);
}
