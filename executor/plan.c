/* Making a plan: device, selection, layout, and how the whole step runs best. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "builder.h"
#include "need.h"
#include "select.h"

double gx_plan_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- options --- */

static gx_status check_forced(const char *name, gx_error *err)
{
    enum { MAX_NAMES = 256 };
    const char *names[MAX_NAMES];
    const char *nearest;
    size_t n = 0;

    for (; n < MAX_NAMES && gx_alternative_at(n); n++) {
        names[n] = gx_alternative_at(n)->name;
        if (strcmp(names[n], name) == 0)
            return GX_OK;
    }
    nearest = gx_nearest(name, names, n);
    return GX_FAIL(err, GX_ERR_ARGUMENT, "no alternative is named '%s'%s%s%s", name,
                   nearest ? "; the nearest is '" : "", nearest ? nearest : "",
                   nearest ? "'" : "");
}

static gx_status check_choice(gx_choice choice, const char *what, gx_error *err)
{
    if ((unsigned)choice <= GX_OFF)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_ARGUMENT, "%s: %d is none of auto, on, off", what,
                   (int)choice);
}

/* Names with commas between them. */
static gx_status check_force(const char *force, gx_error *err)
{
    char *names = strdup(force), *name = names;
    gx_status st = GX_OK;

    if (!names)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a plan");
    while (name && st == GX_OK) {
        char *comma = strchr(name, ',');

        if (comma)
            *comma++ = 0;
        st = check_forced(name, err);
        name = comma;
    }
    free(names);
    return st;
}

static gx_status check_options(const gx_graph *graph, const gx_plan_options *options,
                               gx_error *err)
{
    if (!graph->finished)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "the graph is not finished");
    if (options->device < GX_CPU)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no device %d", options->device);
    if (options->lanes < 0 || options->lanes > GX_MAX_LANES)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "lanes: %d, expected 0 (as measured) or 1 to %d", options->lanes,
                       (int)GX_MAX_LANES);
    GX_TRY(check_choice(options->programmatic, "programmatic", err));
    GX_TRY(check_choice(options->step_loop, "step_loop", err));
    GX_TRY(check_choice(options->skip_if, "skip_if", err));
    if ((unsigned)options->order > GX_ORDER_DATA_FIRST)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "there is no order %d of the nodes",
                       (int)options->order);
    if (options->steps_per_launch != 0 && options->steps_per_launch != GX_STEPS_AUTO &&
        !gx_launch_is_possible(options->steps_per_launch, false))
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "steps per launch: %d, expected 0, 1 to %d, or GX_STEPS_AUTO",
                       options->steps_per_launch, (int)GX_MAX_STEPS_PER_LAUNCH);
    if (options->device == GX_CPU) {
        if (options->steps_per_launch == GX_STEPS_AUTO)
            return GX_FAIL(err, GX_ERR_ARGUMENT,
                           "steps per launch mean something on a GPU alone; the plan is "
                           "for the CPU");
        if (options->force || options->lanes > 1 || options->programmatic == GX_ON ||
            options->skip_if == GX_ON || options->order == GX_ORDER_DATA_FIRST)
            return GX_FAIL(err, GX_ERR_ARGUMENT,
                           "%s means something on a GPU alone; the plan is for the CPU",
                           options->force                   ? "forcing an alternative"
                           : options->lanes > 1             ? "more than one lane"
                           : options->programmatic == GX_ON ? "programmatic launch"
                           : options->skip_if == GX_ON      ? "an IF node"
                                                            : "data first");
        return GX_OK;
    }
    return options->force ? check_force(options->force, err) : GX_OK;
}

/* A pinned plan is obeyed, so what it says otherwise cannot be asked for as well. */
static gx_status check_pinned(const gx_plan *plan, const gx_plan_options *options,
                              gx_error *err)
{
    const char *what = NULL;

    if (options->force)
        what = "an alternative is forced";
    else if (options->unfused != plan->unfused)
        what = options->unfused ? "an unfused plan is asked for"
                                : "a fused plan is asked for";
    else if (options->order != GX_ORDER_AUTO && options->order != plan->order)
        what = options->order == GX_ORDER_DATA_FIRST
                   ? "the backward pass is asked for data first"
                   : "the backward pass is asked for as derived";
    else if (options->lanes > 0 && options->lanes < plan->n_lanes)
        what = "fewer lanes are asked for";
    else if (options->programmatic == GX_ON && !plan->programmatic)
        what = "programmatic launch is asked for";
    else if (options->programmatic == GX_OFF && plan->programmatic)
        what = "programmatic launch is switched off";
    else if (options->skip_if == GX_ON && !plan->skip_if)
        what = "an IF node around the updates is asked for";
    else if (options->skip_if == GX_OFF && plan->skip_if)
        what = "updates without an IF node are asked for";
    else if (options->steps_per_launch == GX_STEPS_AUTO &&
             plan->info.steps_per_launch > 1 && options->step_loop != GX_AUTO &&
             plan->info.step_loop != (options->step_loop == GX_ON))
        what = plan->info.step_loop ? "unrolled steps are asked for"
                                    : "a loop of steps is asked for";
    if (!what)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_ARGUMENT,
                   "%s: the plan file says otherwise than the call: %s",
                   options->pin_file, what);
}

#if !GX_HAVE_CUDA

static gx_status gx_plan_cuda(gx_plan *plan, const gx_plan_options *options,
                              const gx_device_info *device, gx_error *err)
{
    (void)plan;
    (void)device;
    return GX_FAIL(err, GX_ERR_NO_DEVICE, "device %d: this gexec was built without CUDA",
                   options->device);
}

#endif

/* --- create --- */

static gx_status plan_cpu(gx_plan *plan, const gx_plan_options *options, gx_error *err)
{
    const double start = gx_plan_clock();

    GX_TRY(gx_select_reference(plan, err));
    plan->info.select_s = gx_plan_clock() - start;
    GX_TRY(gx_layout(plan, 1, !options->reuse_off, sizeof(double), err));
    plan->info.layout_s = gx_plan_clock() - start - plan->info.select_s;
    return GX_OK;
}

/* What a plan file does not say is measured, and stays unsaid: it is obeyed, not written.
 */
static gx_status pinned_launch(gx_plan *plan, const gx_plan_options *options,
                               gx_error *err)
{
#if GX_HAVE_CUDA
    if (options->steps_per_launch == GX_STEPS_AUTO && plan->info.steps_per_launch == 0)
        return gx_choose_launch(plan, options, NULL, err);
#endif
    (void)plan;
    (void)options;
    (void)err;
    return GX_OK;
}

static gx_status plan_pinned(gx_plan *plan, const gx_plan_options *options,
                             const gx_device_info *device, gx_error *err)
{
    const size_t element_bytes = options->device == GX_CPU ? sizeof(double) : 0;
    const double start = gx_plan_clock();

    GX_TRY(gx_plan_file_read(plan, options->pin_file, device, err));
    GX_TRY(check_pinned(plan, options, err));
    plan->info.select_s = gx_plan_clock() - start;
    GX_TRY(gx_layout(plan, plan->n_lanes, !options->reuse_off, element_bytes, err));
    plan->info.layout_s = gx_plan_clock() - start - plan->info.select_s;
    return pinned_launch(plan, options, err);
}

static gx_status build(gx_plan *plan, const gx_plan_options *options, gx_error *err)
{
    const bool pinned = options->pin_file && access(options->pin_file, F_OK) == 0;
    gx_device_info device;

    plan->unfused = options->unfused;
    GX_TRY(gx_device_info_get(options->device, &device, err));
    if (pinned)
        return plan_pinned(plan, options, &device, err);
    if (options->device == GX_CPU)
        GX_TRY(plan_cpu(plan, options, err));
    else
        GX_TRY(gx_plan_cuda(plan, options, &device, err));
    return options->pin_file ? gx_plan_write(plan, options->pin_file, err) : GX_OK;
}

gx_status gx_plan_create(const gx_graph *graph, const gx_plan_options *options,
                         gx_plan **plan, gx_error *err)
{
    const gx_plan_options usual = { .device = gx_has_cuda() ? 0 : GX_CPU };
    gx_plan *made;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(plan, "plan", err));
    *plan = NULL;
    GX_TRY(gx_need(graph, "graph", err));
    if (!options)
        options = &usual;
    GX_TRY(check_options(graph, options, err));
    made = calloc(1, sizeof *made);
    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a plan");
    made->graph = graph;
    made->given = graph;
    made->order = GX_ORDER_DERIVED;
    made->device = options->device;
    made->n_lanes = 1;
    gx_launch_trials(made->info.launch_trial);
    for (int i = 0; i < GX_MAX_LANES; i++)
        made->info.lane_us[i] = -1;
    for (int i = 0; i < 2; i++) {
        made->info.programmatic_us[i] = -1;
        made->info.skip_us[i] = -1;
        made->info.order_us[i] = -1;
    }
    made->arena = gx_arena_create();
    if (!made->arena)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for a plan");
    else
        st = build(made, options, err);
    if (st != GX_OK) {
        gx_plan_free(made);
        return st;
    }
    *plan = made;
    return GX_OK;
}

void gx_plan_free(gx_plan *plan)
{
    if (!plan)
        return;
    gx_graph_permuted_free(plan->reordered);
    gx_arena_free(plan->arena);
    free(plan);
}

/* --- inspection --- */

const gx_graph *gx_plan_graph(const gx_plan *plan)
{
    return plan->graph;
}

size_t gx_plan_unit_count(const gx_plan *plan)
{
    return plan->n_units;
}

static double value_bytes(const gx_value *value)
{
    double bytes = (double)gx_dtype_bytes(value->dtype);

    for (int d = 0; d < value->rank; d++)
        bytes *= (double)value->dim[d];
    return bytes;
}

/* What a unit's nodes move of a value: written once, read once by each that reads it. */
static double bytes_inside(const gx_plan *plan, const gx_unit *unit, int32_t value)
{
    double bytes = 0;

    for (int32_t i = 0; i < unit->n_nodes; i++) {
        const gx_node *node = &plan->graph->nodes[unit->first_node + i];

        for (int arg = 0; arg < gx_n_args(node->op); arg++)
            if (node->arg[arg] == value)
                bytes += value_bytes(&plan->graph->values[value]);
    }
    return bytes;
}

/* An earlier node of the unit than node i has read the value, or made and stored it. */
static bool is_at_hand(const gx_plan *plan, const gx_unit *unit, int32_t i, int32_t value)
{
    bool found = false;

    for (int32_t before = 0; before < i; before++) {
        const gx_node *node = &plan->graph->nodes[unit->first_node + before];

        for (int arg = 0; arg < gx_n_args(node->op); arg++) {
            if (node->arg[arg] != value)
                continue;
            if (unit->elided && unit->elided[before * GX_MAX_ARGS + arg])
                return false;
            found = true;
        }
    }
    return found;
}

/* What node i of the unit need not read, since a kernel of several ops has it already.
 * What is elided is left to bytes_inside. */
static double bytes_at_hand(const gx_plan *plan, const gx_unit *unit, int32_t i)
{
    const gx_node *node = &plan->graph->nodes[unit->first_node + i];
    double bytes = 0;

    if (!unit->alternative || unit->alternative->repeat || node->op->bytes)
        return 0;
    for (int arg = 0; arg < gx_n_args(node->op); arg++) {
        const int32_t value = node->arg[arg];

        if (value >= 0 && gx_arg_kind(node->op, arg) == GX_FIELD_IN &&
            is_at_hand(plan, unit, i, value))
            bytes += value_bytes(&plan->graph->values[value]);
    }
    return bytes;
}

static void add_work(const gx_plan *plan, const gx_unit *unit, gx_unit_info *info)
{
    for (int32_t i = 0; i < unit->n_nodes; i++) {
        const int32_t at = unit->first_node + i;
        const gx_node_info node = gx_graph_node(plan->graph, (size_t)at);

        info->flops += node.flops;
        info->bytes += node.bytes - bytes_at_hand(plan, unit, i);
        for (int arg = 0; unit->elided && arg < GX_MAX_ARGS; arg++)
            if (unit->elided[i * GX_MAX_ARGS + arg])
                info->bytes -= bytes_inside(plan, unit, plan->graph->nodes[at].arg[arg]);
    }
}

gx_unit_info gx_plan_unit(const gx_plan *plan, size_t i)
{
    if (i >= plan->n_units)
        return (gx_unit_info){ .measured_us = -1 };
    const gx_unit *unit = &plan->units[i];

    gx_unit_info info = {
        .first_node = (size_t)unit->first_node,
        .n_nodes = (size_t)unit->n_nodes,
        .alternative = unit->is_view       ? "view"
                       : unit->alternative ? unit->alternative->name
                                           : "reference",
        .lane = unit->lane,
        .phase = unit->phase,
        .measured_us = unit->is_view ? -1 : unit->us,
        .workspace_bytes = unit->workspace_bytes,
        .n_rejected = unit->n_rejected,
        .waits = unit->waits,
        .n_waits = (size_t)unit->n_waits,
        .programmatic =
            plan->programmatic && unit->programmatic_first && !unit->full_edge,
        .full_edge = plan->programmatic && unit->full_edge,
        .in_if = plan->skip_if && unit->skips,
    };
    add_work(plan, unit, &info);
    return info;
}

gx_rejected_info gx_plan_rejected(const gx_plan *plan, size_t unit, size_t i)
{
    if (unit >= plan->n_units || i >= plan->units[unit].n_rejected)
        return (gx_rejected_info){ .alternative = "", .measured_us = -1, .reason = "" };
    const gx_rejected *rejected = &plan->units[unit].rejected[i];

    return (gx_rejected_info){
        .alternative = rejected->alternative,
        .measured_us = rejected->us,
        .reason = rejected->reason,
    };
}

gx_plan_info gx_plan_info_get(const gx_plan *plan)
{
    gx_plan_info info = plan->info;

    info.device = plan->device;
    info.n_lanes = plan->n_lanes;
    info.order = plan->order;
    info.programmatic = plan->programmatic;
    info.skip_if = plan->skip_if;
    info.unfused = plan->unfused;
    info.arena_bytes = plan->arena_bytes;
    info.naive_bytes = plan->naive_bytes;
    info.workspace_bytes = 0;
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        info.workspace_bytes += plan->workspace_bytes[lane];
    return info;
}

gx_slot_info gx_plan_slot(const gx_plan *plan, size_t value)
{
    if (value >= plan->graph->n_values)
        return (gx_slot_info){ .offset = -1 };
    return plan->slots[value];
}
