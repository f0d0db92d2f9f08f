/* Feeding a program: what is fed, where it lives, and in which order. */
#include "feed.h"

#include <string.h>

#include "builder.h"
#include "exec_cuda.h"

static bool on_cpu(const gx_exec *exec)
{
    return exec->device->ordinal == GX_CPU;
}

/* --- what is fed --- */

static size_t aligned(size_t bytes)
{
    return (bytes + GX_ALIGNMENT - 1) / GX_ALIGNMENT * GX_ALIGNMENT;
}

static gx_status describe_column(gx_exec *exec, const gx_data_column *from, gx_error *err)
{
    const gx_value *input = &exec->plan->graph->values[from->input];
    gx_feed *feed = exec->feed;
    gx_feed_column *column = &feed->columns[feed->n_columns++];
    size_t bytes = gx_device_element_bytes(exec->device, input->dtype);

    for (int i = 0; i < input->rank; i++)
        bytes *= (size_t)input->dim[i];
    *column = (gx_feed_column){ .id = from->input, .offset = feed->batch_bytes };
    feed->batch_bytes += aligned(bytes ? bytes : 1);
    if (!exec->state->rows) /* one that only times a plan */
        return GX_OK;
    column->rows = gx_host_rows_find(exec->state->rows, input->name);
    if (!column->rows || column->rows->dtype != input->dtype)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "the state has no rows for '%s': it was made for other graphs",
                       input->name);
    return GX_OK;
}

static gx_status describe(gx_exec *exec, gx_error *err)
{
    const gx_data_spec *data = &exec->plan->graph->data;
    gx_feed *feed = exec->feed;

    GX_TRY(gx_walk_of(exec->plan->graph, exec->state->seed, &feed->walk, err));
    feed->columns = gx_arena_alloc(exec->memory, data->n_columns * sizeof *feed->columns);
    feed->picked = gx_arena_alloc(exec->memory,
                                  (size_t)(feed->walk.batch + 1) * sizeof *feed->picked);
    if (!feed->columns || !feed->picked)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a program");
    for (size_t i = 0; i < data->n_columns; i++)
        GX_TRY(describe_column(exec, &data->columns[i], err));
    feed->n_slots = on_cpu(exec) ? 1 : GX_FEED_SLOTS;
    for (int s = 0; s < GX_FEED_SLOTS; s++)
        feed->slot[s].reader = -1;
    if (exec->state->rows)
        exec->stats.data_wait_s = 0;
    return GX_OK;
}

gx_status gx_feed_create(gx_exec *exec, gx_error *err)
{
    if (!exec->plan->graph->data.streams || exec->plan->graph->data.n_columns == 0)
        return GX_OK;
    exec->feed = gx_arena_alloc(exec->memory, sizeof *exec->feed);
    if (!exec->feed)
        return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a program");
    return describe(exec, err);
}

/* --- memory --- */

/* The CPU does one step at a time. */
static size_t slot_bytes(const gx_exec *exec)
{
    const size_t n = on_cpu(exec) ? 1 : (size_t)exec->steps_per_launch;

    return n * exec->feed->batch_bytes;
}

size_t gx_feed_bytes(const gx_exec *exec)
{
    return exec->feed ? (size_t)exec->feed->n_slots * slot_bytes(exec) : 0;
}

gx_status gx_feed_open(gx_exec *exec, gx_error *err)
{
    gx_feed *feed = exec->feed;
    void *memory = NULL;

    if (!feed)
        return GX_OK;
    /* Zeros: labels that are in range, where a step runs that nobody feeds. */
    GX_TRY(gx_device_alloc(exec->device, gx_feed_bytes(exec), &memory, err));
    feed->slot[0].device = memory;
    for (int s = 1; s < feed->n_slots; s++)
        feed->slot[s].device = feed->slot[s - 1].device + slot_bytes(exec);
    GX_TRY(gx_device_fill(exec->device, memory, 0, gx_feed_bytes(exec), err));
    /* The copies come on another stream. */
    GX_TRY(gx_device_sync(exec->device, err));
    for (size_t i = 0; i < feed->n_columns; i++)
        exec->value_data[feed->columns[i].id] =
            feed->slot[0].device + feed->columns[i].offset;
    return GX_OK;
}

void gx_feed_close(gx_exec *exec)
{
    if (!exec->feed)
        return;
    if (!on_cpu(exec))
        gx_feed_cuda_close(exec);
    gx_device_release(exec->device, exec->feed->slot[0].device);
    exec->feed = NULL;
}

/* --- addresses --- */

/* Counts the places, and writes them down where there is room. */
static size_t list_operands(gx_exec *exec, int32_t id, void ***to)
{
    const gx_graph *graph = exec->plan->graph;
    size_t n = 0;

    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int arg = 0; arg < gx_n_args(graph->nodes[i].op); arg++)
            if (graph->nodes[i].arg[arg] == id) {
                if (to)
                    to[n] = &exec->calls[i].arg[arg].data;
                n++;
            }
    return n;
}

gx_status gx_feed_find_operands(gx_exec *exec, gx_error *err)
{
    gx_feed *feed = exec->feed;

    for (size_t i = 0; feed && i < feed->n_columns; i++) {
        gx_feed_column *column = &feed->columns[i];

        column->n_operands = list_operands(exec, column->id, NULL);
        column->operand = gx_arena_alloc(exec->memory, (column->n_operands + 1) *
                                                           sizeof *column->operand);
        if (!column->operand)
            return GX_FAIL(err, GX_ERR_MEMORY, "no memory for a program");
        list_operands(exec, column->id, column->operand);
    }
    return GX_OK;
}

void gx_feed_point(gx_exec *exec, int slot, int batch)
{
    gx_feed *feed = exec->feed;
    char *const base = feed->slot[slot].device + (size_t)batch * feed->batch_bytes;

    feed->at_slot = slot;
    feed->at_batch = batch;
    for (size_t i = 0; i < feed->n_columns; i++) {
        const gx_feed_column *column = &feed->columns[i];

        exec->value_data[column->id] = base + column->offset;
        for (size_t k = 0; k < column->n_operands; k++)
            *column->operand[k] = base + column->offset;
    }
}

/* --- batches --- */

gx_status gx_feed_gather(gx_exec *exec, gx_position at, int64_t n, char *to,
                         gx_error *err)
{
    const gx_feed *feed = exec->feed;
    const gx_host_rows *rows = exec->state->rows;

    for (int64_t i = 0; i < n; i++, to += feed->batch_bytes) {
        gx_host_rows_pick(rows, &feed->walk, at, feed->picked);
        for (size_t c = 0; c < feed->n_columns; c++)
            GX_TRY(gx_host_rows_gather(rows, feed->columns[c].rows, feed->picked,
                                       feed->walk.batch, on_cpu(exec),
                                       to + feed->columns[c].offset, err));
        gx_walk_advance(&feed->walk, &at);
    }
    return GX_OK;
}

gx_status gx_feed_begin(gx_exec *exec, gx_error *err)
{
    gx_state *state = exec->state;

    if (exec->feed && state->rows) {
        GX_TRY(gx_state_locate(state, exec->feed->walk.part, err));
        exec->feed->active = true;
        exec->feed->in_run = false;
    } else if (state->rows) {
        /* Another program of the state moves the counters on. */
        state->at[exec->plan->graph->kind == GX_TRAIN ? GX_PART_TRAIN : GX_PART_HELD]
            .known = false;
    }
    return GX_OK;
}

void gx_feed_end(gx_exec *exec, gx_status status)
{
    gx_feed *feed = exec->feed;

    if (!feed || !feed->active)
        return;
    feed->active = false;
    if (status == GX_OK)
        return;
    exec->state->at[feed->walk.part].known = false;
    if (!on_cpu(exec))
        gx_feed_cuda_reset(exec);
}

void gx_feed_advance(gx_exec *exec, int64_t n)
{
    const gx_walk *walk = &exec->feed->walk;

    for (int64_t i = 0; i < n; i++)
        gx_walk_advance(walk, &exec->state->at[walk->part]);
}

gx_status gx_feed_cpu(gx_exec *exec, gx_error *err)
{
    const double begin = gx_exec_clock();

    GX_TRY(gx_feed_gather(exec, exec->state->at[exec->feed->walk.part], 1,
                          exec->feed->slot[0].device, err));
    exec->stats.data_wait_s += gx_exec_clock() - begin;
    exec->stats.data_steps++;
    return GX_OK;
}
