/* Where a program's values live: arena, workspaces, calls with real pointers, first
 * inputs. */
#include <string.h>

#include "builder.h"
#include "exec_model.h"
#include "feed.h"
#include "nvtx.h"

static gx_status no_memory(gx_error *err)
{
    return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a program");
}

/* --- device memory --- */

static gx_status check_free(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const bool cpu = exec->device->ordinal == GX_CPU;
    size_t needed = plan->arena_bytes;
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        if (__builtin_add_overflow(needed, gx_workspace_size(plan->workspace_bytes[lane]),
                                   &needed))
            return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
    if (__builtin_add_overflow(needed, gx_feed_bytes(exec), &needed))
        return GX_FAIL(err, GX_ERR_LIMIT, "more bytes than can be addressed");
    exec->stats.device_bytes = needed;
    GX_TRY(gx_device_free_bytes(exec->device, &free_bytes, &total_bytes, err));
    if (needed <= free_bytes)
        return GX_OK;
    return GX_FAIL(err, cpu ? GX_ERR_MEMORY : GX_ERR_DEVICE_MEMORY,
                   "one step needs %zu bytes for its tensors and %zu for %s, together "
                   "%.2f GiB; %zu bytes (%.2f GiB) of %.2f GiB are free on %s",
                   plan->arena_bytes, needed - plan->arena_bytes,
                   exec->feed ? "workspaces and batches that stream" : "workspaces",
                   (double)needed / (1 << 30), free_bytes, (double)free_bytes / (1 << 30),
                   (double)total_bytes / (1 << 30), cpu ? "the host" : "the device");
}

static gx_status allocate(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;

    GX_TRY(check_free(exec, err));
    GX_TRY(gx_device_alloc(exec->device, plan->arena_bytes, &exec->arena, err));
    /* Labels that nobody gave yet are class 0 then, and not an index out of range. */
    GX_TRY(gx_device_fill(exec->device, exec->arena, 0, plan->arena_bytes, err));
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        GX_TRY(gx_workspace_alloc(exec->device, plan->workspace_bytes[lane],
                                  &exec->workspace[lane], err));
    return gx_feed_open(exec, err);
}

/* --- values --- */

static gx_tensor tensor_of(const gx_value *value)
{
    gx_tensor tensor = { .dtype = value->dtype, .rank = value->rank };

    memcpy(tensor.dim, value->dim, sizeof tensor.dim);
    return tensor;
}

static gx_status find_persistent(gx_exec *exec, const gx_value *value, void **data,
                                 gx_error *err)
{
    const gx_entry *entry = gx_state_find(exec->state, value->name);
    const gx_tensor expected = tensor_of(value);

    if (!entry)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the state holds no '%s': it was made for other graphs",
                       value->name);
    gx_tensor found = { .rank = entry->rank };
    memcpy(found.dim, entry->dim, sizeof found.dim);
    if (entry->dtype != value->dtype || !gx_same_shape(&found, &expected))
        return GX_FAIL(err, GX_ERR_SHAPE,
                       "the state's '%s' has another shape or type than the plan's graph",
                       value->name);
    *data = entry->data;
    return GX_OK;
}

static gx_status place_values(gx_exec *exec, gx_error *err)
{
    const gx_graph *graph = exec->plan->graph;

    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];
        const gx_slot_info *slot = &exec->plan->slots[i];

        if (gx_is_persistent(value))
            GX_TRY(find_persistent(exec, value, &exec->value_data[i], err));
        else if (!slot->elided && slot->offset >= 0)
            exec->value_data[i] = (char *)exec->arena + slot->offset;
    }
    return GX_OK;
}

/* --- calls and units --- */

static void make_calls(gx_exec *exec)
{
    const gx_graph *graph = exec->plan->graph;

    gx_match_calls(graph, 0, (int32_t)graph->n_nodes, exec->calls);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        gx_call *call = &exec->calls[i];

        call->seed = exec->state->seed;
        for (int arg = 0; arg < gx_n_args(call->op); arg++) {
            const int32_t id = graph->nodes[i].arg[arg];

            call->arg[arg].data = id >= 0 ? exec->value_data[id] : NULL;
        }
    }
}

void gx_exec_point(gx_exec *exec, int32_t id)
{
    const gx_graph *graph = exec->plan->graph;

    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int arg = 0; arg < gx_n_args(graph->nodes[i].op); arg++)
            if (graph->nodes[i].arg[arg] == id)
                exec->calls[i].arg[arg].data = exec->value_data[id];
}

/* "fc1", "fc1 + fc1.epilogue", "w1.step + ... + b8.step (16 ops)". */
static const char *unit_name(gx_exec *exec, const gx_unit *unit)
{
    const gx_node *nodes = &exec->plan->graph->nodes[unit->first_node];

    switch (unit->n_nodes) {
    case 1:
        return nodes[0].name;
    case 2:
        return gx_arena_format(exec->memory, "%s + %s", nodes[0].name, nodes[1].name);
    case 3:
        return gx_arena_format(exec->memory, "%s + %s + %s", nodes[0].name, nodes[1].name,
                               nodes[2].name);
    default:
        return gx_arena_format(exec->memory, "%s + ... + %s (%d ops)", nodes[0].name,
                               nodes[unit->n_nodes - 1].name, (int)unit->n_nodes);
    }
}

static gx_range_kind unit_kind(const gx_exec *exec, const gx_unit *unit)
{
    const char *op = gx_op_name(exec->plan->graph->nodes[unit->first_node].op);

    if (strcmp(op, "gather") == 0 || unit->phase == GX_PHASE_STEP)
        return GX_RANGE_COPY;
    if (unit->phase == GX_PHASE_BACKWARD)
        return GX_RANGE_BWD;
    if (unit->phase == GX_PHASE_OPTIMIZER)
        return GX_RANGE_OPTIMIZER;
    return strcmp(op, "gemm") == 0 ? GX_RANGE_GEMM : GX_RANGE_EPILOGUE;
}

static gx_status make_units(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;

    gx_nvtx_open();
    for (size_t i = 0; i < plan->n_units; i++) {
        const gx_unit *unit = &plan->units[i];
        gx_bound_unit *bound = &exec->units[i];
        const bool *elided = unit->elided;

        if (!elided)
            elided = gx_arena_alloc(exec->memory, (size_t)unit->n_nodes * GX_MAX_ARGS);
        bound->name = unit_name(exec, unit);
        if (!elided || !bound->name)
            return no_memory(err);
        bound->group = (gx_group){ .n_calls = unit->n_nodes,
                                   .call = &exec->calls[unit->first_node],
                                   .elided = elided,
                                   .steady = unit->steady };
        bound->kind = unit_kind(exec, unit);
        bound->range = gx_nvtx_register(bound->name);
        bound->n_seen = -1;
    }
    return GX_OK;
}

/* --- inputs --- */

static gx_status init_input(gx_exec *exec, size_t id, gx_error *err)
{
    const gx_value *value = &exec->plan->graph->values[id];
    gx_tensor tensor = tensor_of(value);

    tensor.data = exec->value_data[id];
    return gx_state_fill_first(exec->state, exec->device, value, &tensor, err);
}

static gx_status init_inputs(gx_exec *exec, gx_error *err)
{
    const gx_graph *graph = exec->plan->graph;

    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];

        if (value->kind != GX_VALUE_INPUT || value->fed || !exec->value_data[i])
            continue;
        if (value->has_init) {
            GX_TRY(init_input(exec, i, err));
        } else {
            exec->missing[i] = true;
            exec->n_missing++;
        }
    }
    return GX_OK;
}

/* --- all of it --- */

gx_status gx_exec_bind_memory(gx_exec *exec, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const size_t n_values = plan->graph->n_values + 1;

    exec->calls =
        gx_arena_alloc(exec->memory, (plan->graph->n_nodes + 1) * sizeof(gx_call));
    exec->units =
        gx_arena_alloc(exec->memory, (plan->n_units + 1) * sizeof(gx_bound_unit));
    exec->value_data = gx_arena_alloc(exec->memory, n_values * sizeof(void *));
    exec->missing = gx_arena_alloc(exec->memory, n_values * sizeof(bool));
    if (!exec->calls || !exec->units || !exec->value_data || !exec->missing)
        return no_memory(err);
    GX_TRY(gx_feed_create(exec, err));
    GX_TRY(allocate(exec, err));
    GX_TRY(place_values(exec, err));
    make_calls(exec);
    GX_TRY(gx_feed_find_operands(exec, err));
    GX_TRY(make_units(exec, err));
    return init_inputs(exec, err);
}

/* --- units on a GPU --- */

static gx_status prepare(gx_exec *exec, size_t i, gx_error *err)
{
    const gx_plan *plan = exec->plan;
    const gx_unit *unit = &plan->units[i];
    gx_bound_unit *bound = &exec->units[i];
    gx_ctx ctx = gx_device_ctx(exec->device, unit->lane);

    gx_workspace_use(&ctx, exec->workspace[unit->lane],
                     plan->workspace_bytes[unit->lane]);
    bound->prepared = (gx_prepared){ .has_algo = unit->has_algo };
    memcpy(bound->prepared.algo, unit->algo, sizeof unit->algo);
    GX_TRY(unit->alternative->prepare(&bound->group, &ctx, &bound->prepared, err));
    bound->is_prepared = true;
    if (bound->prepared.workspace_bytes != unit->workspace_bytes)
        return GX_FAIL(
            err, GX_ERR_STATE,
            "%s asks for a workspace of %zu bytes and the plan says %zu: it was made "
            "with another card or library; plan again",
            unit->alternative->name, bound->prepared.workspace_bytes,
            unit->workspace_bytes);
    return GX_OK;
}

gx_status gx_exec_prepare_unit(gx_exec *exec, size_t unit, gx_error *err)
{
    const gx_status st = prepare(exec, unit, err);

    if (st != GX_OK)
        gx_error_prefix(err, exec->units[unit].name);
    return st;
}

void gx_exec_release_unit(gx_exec *exec, size_t unit)
{
    gx_bound_unit *bound = &exec->units[unit];
    const gx_alternative *alternative = exec->plan->units[unit].alternative;

    if (bound->is_prepared && alternative->release)
        alternative->release(&bound->prepared);
    bound->is_prepared = false;
}
