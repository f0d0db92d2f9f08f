/* The ranges of a program, to NVTX and to a profiler. */
#include "ranges.h"

#include "nvtx.h"
#include "profile_ranges.h"

const char *const gx_range_names[GX_N_NAMED_RANGES] = {
    [GX_NAMED_STEP] = "step",         [GX_NAMED_FORWARD] = "forward",
    [GX_NAMED_BACKWARD] = "backward", [GX_NAMED_OPTIMIZER] = "optimizer",
    [GX_NAMED_CAPTURE] = "capture",   [GX_NAMED_REPLAY] = "replay",
    [GX_NAMED_MEASURED] = "measured",
};

static void begin(gx_exec *exec, gx_named_range name)
{
    gx_nvtx_begin(name);
    if (exec->range_log)
        gx_range_log_begin(exec->range_log, name);
}

void gx_range_capture_begin(gx_exec *exec)
{
    begin(exec, GX_NAMED_CAPTURE);
}

void gx_range_replay_begin(gx_exec *exec)
{
    gx_nvtx_begin(GX_NAMED_REPLAY);
    if (exec->range_log)
        gx_range_log_begin(exec->range_log,
                           exec->steps_per_launch == 1 ? GX_NAMED_STEP : GX_NAMED_REPLAY);
}

void gx_range_unit_begin(gx_exec *exec, size_t unit)
{
    gx_nvtx_begin_unit(&exec->units[unit], exec->plan->units[unit].first_node);
    if (exec->range_log)
        gx_range_log_begin_unit(exec->range_log, unit);
}

void gx_range_end(gx_exec *exec)
{
    gx_nvtx_end();
    if (exec->range_log)
        gx_range_log_end(exec->range_log);
}

static bool phase_name(int phase, gx_named_range *name)
{
    switch (phase) {
    case GX_PHASE_FORWARD:
        *name = GX_NAMED_FORWARD;
        return true;
    case GX_PHASE_BACKWARD:
        *name = GX_NAMED_BACKWARD;
        return true;
    case GX_PHASE_OPTIMIZER:
        *name = GX_NAMED_OPTIMIZER;
        return true;
    default: /* counters and the log stand in the step itself */
        return false;
    }
}

static void close_phase(gx_step_ranges *ranges)
{
    gx_named_range name;

    if (phase_name(ranges->phase, &name))
        gx_range_end(ranges->exec);
    ranges->phase = -1;
}

void gx_ranges_step_begin(gx_step_ranges *ranges, gx_exec *exec)
{
    ranges->exec = exec;
    ranges->phase = -1;
    begin(exec, GX_NAMED_STEP);
}

void gx_ranges_unit_begin(gx_step_ranges *ranges, size_t unit)
{
    gx_exec *exec = ranges->exec;
    const gx_unit *planned = &exec->plan->units[unit];
    gx_named_range name;

    if (ranges->phase != (int)planned->phase) {
        close_phase(ranges);
        ranges->phase = (int)planned->phase;
        if (phase_name(ranges->phase, &name))
            begin(exec, name);
    }
    gx_range_unit_begin(exec, unit);
}

void gx_ranges_unit_end(gx_step_ranges *ranges)
{
    gx_range_end(ranges->exec);
}

void gx_ranges_step_end(gx_step_ranges *ranges)
{
    close_phase(ranges);
    gx_range_end(ranges->exec);
}
