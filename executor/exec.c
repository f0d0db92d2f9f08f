/* Programs: made from a plan and a state, run, timed, freed. */
#include <stdlib.h>

#include "device_cuda.h"
#include "exec_cuda.h"
#include "feed.h"
#include "need.h"
#include "profile_ranges.h"

static bool on_cpu(const gx_exec *exec)
{
    return exec->device->ordinal == GX_CPU;
}

gx_status gx_exec_enter(const gx_exec *exec, int *previous, gx_error *err)
{
    GX_TRY(gx_need(exec, "program", err));
    if (exec->device->broken)
        return GX_FAIL(err, GX_ERR_BROKEN,
                       "the device failed earlier; free its programs and its state");
    if (exec->device->capturing)
        return GX_FAIL(err, GX_ERR_STATE, "not possible while a capture is under way");
    return gx_device_enter(exec->device, previous, err);
}

gx_status gx_exec_leave(gx_exec *exec, int previous, gx_status status,
                        const gx_error *err)
{
    status = gx_device_cuda_note(exec->device, status, err);
    gx_device_leave(exec->device, previous);
    return status;
}

/* --- create and free --- */

static gx_status check_options(const gx_plan *plan, const gx_state *state,
                               const gx_exec_options *options, gx_error *err)
{
    GX_TRY(gx_need(plan, "plan", err));
    GX_TRY(gx_need(state, "state", err));
    if (plan->device != state->device->ordinal)
        return GX_FAIL(
            err, GX_ERR_ARGUMENT,
            "the plan is for device %d and the state is on device %d (%d: CPU)",
            plan->device, state->device->ordinal, (int)GX_CPU);
    if (options && (options->steps_per_launch < 0 ||
                    options->steps_per_launch > GX_MAX_STEPS_PER_LAUNCH))
        return GX_FAIL(err, GX_ERR_ARGUMENT, "steps per launch: %d, expected 0 to %d",
                       options->steps_per_launch, (int)GX_MAX_STEPS_PER_LAUNCH);
    if (options && options->step_loop && plan->graph->data.streams)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the data stream, and a loop on the device reads one batch again "
                       "and again: steps that stream are unrolled");
    return GX_OK;
}

static gx_exec *new_exec(const gx_plan *plan, gx_state *state,
                         const gx_exec_options *options)
{
    gx_exec *exec = calloc(1, sizeof *exec);

    if (!exec)
        return NULL;
    exec->plan = plan;
    exec->state = state;
    exec->device = state->device;
    exec->steps_per_launch =
        options && options->steps_per_launch > 0 ? options->steps_per_launch : 1;
    exec->loops = options && options->step_loop && exec->steps_per_launch > 1;
    exec->branches = plan->skip_if;
    exec->stats.prime_s = -1;
    exec->stats.prepare_s = -1;
    exec->stats.capture_s = -1;
    exec->stats.instantiate_s = -1;
    exec->stats.upload_s = -1;
    exec->stats.first_launch_s = -1;
    exec->stats.data_wait_s = -1;
    exec->memory = gx_arena_create();
    if (!exec->memory) {
        free(exec);
        return NULL;
    }
    return exec;
}

static gx_status prepare(gx_exec *exec, gx_error *err)
{
    const double begin = gx_exec_clock();

    for (size_t i = 0; i < exec->plan->n_units; i++)
        GX_TRY(gx_exec_prepare_unit(exec, i, err));
    GX_TRY(gx_exec_cuda_open(exec, err));
    if (exec->feed)
        GX_TRY(gx_feed_cuda_open(exec, err));
    exec->stats.prepare_s = gx_exec_clock() - begin;
    return GX_OK;
}

/* One step before any capture: whatever a library or the driver makes when something is
 * first used is made here. The state is then as if the step had not been. */
static gx_status prime(gx_exec *exec, gx_error *err)
{
    const double begin = gx_exec_clock();
    gx_snapshot *before = NULL;

    GX_TRY(gx_state_save(exec->state, &before, err));
    gx_status st = gx_walk_cuda(exec, false, NULL, err);
    st = gx_first(st, gx_device_sync(exec->device, err));
    /* Public functions forget an earlier error, and the first one is wanted. */
    st = gx_first(st, gx_state_restore(exec->state, before, st == GX_OK ? err : NULL));
    st = gx_first(st, gx_device_sync(exec->device, err));
    gx_snapshot_free(before);
    if (st == GX_OK)
        exec->stats.prime_s = gx_exec_clock() - begin;
    return st;
}

gx_status gx_exec_create(const gx_plan *plan, gx_state *state,
                         const gx_exec_options *options, gx_exec **exec, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_need_place(exec, "program", err));
    *exec = NULL;
    GX_TRY(check_options(plan, state, options, err));

    gx_exec *made = new_exec(plan, state, options);
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a program");
    gx_status st = gx_exec_enter(made, &previous, err);
    if (st != GX_OK) {
        gx_exec_free(made);
        return st;
    }
    st = gx_exec_bind_memory(made, err);
    /* The CPU has nothing to prepare and nothing to prime: the walk calls plain
     * functions, and no capture follows. */
    if (st == GX_OK && !on_cpu(made)) {
        st = prepare(made, err);
        if (st == GX_OK && !(options && options->no_prime_check))
            st = prime(made, err);
    }
    st = gx_exec_leave(made, previous, st, err);
    if (st == GX_OK)
        *exec = made;
    else
        gx_exec_free(made);
    return st;
}

void gx_exec_free(gx_exec *exec)
{
    int previous = 0;

    if (!exec)
        return;
    gx_device *device = exec->device;
    gx_range_log_orphan(exec->range_log);
    const bool entered = gx_device_enter(device, &previous, NULL) == GX_OK;

    if (!on_cpu(exec)) {
        /* The graph and copies of it may still run on this memory. A failure here is the
         * device's and was or will be reported by another call. */
        if (!device->broken)
            (void)gx_first(gx_device_sync(device, NULL), GX_OK);
        gx_capture_drop(exec);
        gx_exec_cuda_close(exec);
        for (size_t i = 0; exec->units && i < exec->plan->n_units; i++)
            gx_exec_release_unit(exec, i);
    }
    gx_feed_close(exec);
    gx_device_release(device, exec->turns);
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        gx_workspace_release(device, exec->workspace[lane]);
    gx_device_release(device, exec->arena);
    if (entered)
        gx_device_leave(device, previous);
    gx_arena_free(exec->memory);
    free(exec);
}

/* --- running --- */

static gx_part part_of(const gx_exec *exec)
{
    return exec->plan->graph->kind == GX_TRAIN ? GX_PART_TRAIN : GX_PART_HELD;
}

static gx_status check_run(const gx_exec *exec, gx_mode mode, int64_t n_steps,
                           gx_error *err)
{
    if (n_steps < 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "%lld steps, expected 0 or more",
                       (long long)n_steps);
    if (mode != GX_MODE_CPU && mode != GX_MODE_EAGER && mode != GX_MODE_GRAPH)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "mode %d is none of CPU, eager, graph",
                       (int)mode);
    if ((mode == GX_MODE_CPU) != on_cpu(exec))
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the state is on %s, which does not run mode %s",
                       on_cpu(exec) ? "the CPU" : "a GPU",
                       mode == GX_MODE_CPU     ? "cpu"
                       : mode == GX_MODE_EAGER ? "eager"
                                               : "graph");
    if (mode == GX_MODE_GRAPH && n_steps % exec->steps_per_launch != 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "%lld steps are no multiple of the %d steps of one launch",
                       (long long)n_steps, exec->steps_per_launch);
    GX_TRY(gx_state_count(exec->state, part_of(exec), n_steps, err));
    if (exec->n_missing == 0 || n_steps == 0)
        return GX_OK;
    for (size_t i = 0; i < exec->plan->graph->n_values; i++)
        if (exec->missing[i])
            return GX_FAIL(
                err, GX_ERR_STATE,
                "input '%s' has no values: it has neither data nor an initialiser, "
                "and nothing was written to it",
                exec->plan->graph->values[i].name);
    return GX_OK;
}

static gx_status step_on_cpu(gx_exec *exec, gx_error *err)
{
    const bool feeds = exec->feed && exec->feed->active;

    if (feeds)
        GX_TRY(gx_feed_cpu(exec, err));
    GX_TRY(gx_walk_cpu(exec, err));
    if (feeds)
        gx_feed_advance(exec, 1);
    return GX_OK;
}

static gx_status submit_steps(gx_exec *exec, gx_mode mode, int64_t n_steps, gx_error *err)
{
    if (mode == GX_MODE_GRAPH)
        return gx_replay(exec, n_steps / exec->steps_per_launch, err);
    for (int64_t i = 0; i < n_steps; i++) {
        if (mode == GX_MODE_CPU) {
            GX_TRY(step_on_cpu(exec, err));
        } else {
            GX_TRY(gx_step_cuda(exec, err));
            exec->stats.eager_steps++;
        }
    }
    return GX_OK;
}

/* Submits n steps; the device is current and the arguments are good. */
static gx_status submit(gx_exec *exec, gx_mode mode, int64_t n_steps, gx_error *err)
{
    if (mode == GX_MODE_GRAPH && !exec->graph_exec[0])
        GX_TRY(gx_capture(exec, err));
    gx_status st = gx_feed_begin(exec, err);
    exec->state->progress[part_of(exec)].steps += n_steps;
    if (st == GX_OK)
        st = submit_steps(exec, mode, n_steps, err);
    gx_feed_end(exec, st);
    exec->has_run = exec->has_run || (st == GX_OK && n_steps > 0);
    return st;
}

gx_status gx_exec_run(gx_exec *exec, gx_mode mode, int64_t n_steps, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    gx_status st = check_run(exec, mode, n_steps, err);
    if (st == GX_OK && n_steps > 0)
        st = submit(exec, mode, n_steps, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* Updates that skip themselves give the bits of those in a branch. The graph that goes
 * was never handed out; it may still run. */
static gx_status give_up_branches(gx_exec *exec, gx_error *err)
{
    if (!exec->branches)
        return GX_OK;
    if (exec->graph_exec[0]) {
        GX_TRY(gx_exec_cuda_deliver(exec, err));
        gx_capture_drop(exec);
    }
    exec->branches = false;
    return GX_OK;
}

static gx_status capture(gx_exec *exec, bool for_others, gx_error *err)
{
    int previous = 0;

    GX_TRY(gx_exec_enter(exec, &previous, err));
    gx_status st = GX_OK;
    if (on_cpu(exec))
        st = GX_FAIL(err, GX_ERR_ARGUMENT,
                     "the state is on the CPU, which captures nothing");
    else if (for_others)
        st = give_up_branches(exec, err);
    if (st == GX_OK && !exec->graph_exec[0])
        st = gx_capture(exec, err);
    return gx_exec_leave(exec, previous, st, err);
}

gx_status gx_exec_capture(gx_exec *exec, gx_error *err)
{
    gx_error own;

    return capture(exec, false, gx_error_start(err, &own));
}

gx_status gx_exec_sync(gx_exec *exec, gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_exec_enter(exec, &previous, err));
    const gx_status st = on_cpu(exec) ? GX_OK : gx_exec_cuda_deliver(exec, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* --- measuring --- */

static gx_status time_cpu(gx_exec *exec, int64_t n_steps, gx_timing *timing,
                          gx_error *err)
{
    const double begin = gx_exec_clock();

    GX_TRY(submit(exec, GX_MODE_CPU, n_steps, err));
    timing->host_s = gx_exec_clock() - begin;
    timing->wall_s = timing->host_s;
    timing->device_s = -1;
    return GX_OK;
}

static gx_status time_gpu(gx_exec *exec, gx_mode mode, int64_t n_steps, gx_timing *timing,
                          gx_error *err)
{
    if (mode == GX_MODE_GRAPH && !exec->graph_exec[0])
        GX_TRY(gx_capture(exec, err));
    GX_TRY(gx_exec_cuda_deliver(exec, err));
    GX_TRY(gx_exec_cuda_mark(exec, false, err));

    const double begin = gx_exec_clock();
    GX_TRY(submit(exec, mode, n_steps, err));
    const double submitted = gx_exec_clock();
    GX_TRY(gx_exec_cuda_mark(exec, true, err));
    GX_TRY(gx_exec_cuda_deliver(exec, err));
    timing->wall_s = gx_exec_clock() - begin;
    timing->host_s = submitted - begin;
    return gx_exec_cuda_elapsed(exec, &timing->device_s, err);
}

gx_status gx_exec_time(gx_exec *exec, gx_mode mode, int64_t n_steps, gx_timing *timing,
                       gx_error *err)
{
    gx_error own;
    int previous = 0;

    err = gx_error_start(err, &own);
    GX_TRY(gx_need_place(timing, "times", err));
    *timing = (gx_timing){ .device_s = -1 };
    GX_TRY(gx_exec_enter(exec, &previous, err));
    gx_status st = check_run(exec, mode, n_steps, err);
    if (st == GX_OK)
        st = on_cpu(exec) ? time_cpu(exec, n_steps, timing, err)
                          : time_gpu(exec, mode, n_steps, timing, err);
    return gx_exec_leave(exec, previous, st, err);
}

/* Graph nodes that one step adds, -1 where a library's share is not known yet. */
static int64_t launches_per_step(const gx_exec *exec)
{
    int64_t sum = 0;

    for (size_t i = 0; i < exec->plan->n_units; i++) {
        const int planned = gx_planned_launches(&exec->plan->units[i]);
        const int n = planned >= 0 ? planned : exec->units[i].n_seen;

        if (n < 0)
            return -1;
        sum += n;
    }
    return sum;
}

gx_exec_stats gx_exec_stats_get(const gx_exec *exec)
{
    gx_exec_stats stats = exec->stats;

    stats.launches_per_step = on_cpu(exec) ? 0 : launches_per_step(exec);
    return stats;
}

gx_status gx_exec_cuda_graph(gx_exec *exec, void **graph, gx_error *err)
{
    gx_error own;

    err = gx_error_start(err, &own);
    GX_TRY(gx_need_place(graph, "graph", err));
    *graph = NULL;
    if (exec && exec->feed)
        return GX_FAIL(err, GX_ERR_STATE,
                       "the data stream: each launch needs a batch that gx_exec_run "
                       "copies, so that the graph cannot be launched by others");
    if (exec && exec->loops)
        return GX_FAIL(err, GX_ERR_STATE,
                       "the steps of a launch are a loop, which CUDA allows in no child "
                       "graph");
    GX_TRY(capture(exec, true, err));
    *graph = exec->graph[0];
    exec->has_run = true; /* or the caller's launches of it will have */
    return GX_OK;
}
