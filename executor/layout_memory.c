/* Lifetimes and offsets. Inputs and outputs keep their place; a temporary's place is had
 * by others once every unit that uses it has ended, in whatever order the lanes run. */
#include <stdlib.h>

#include "layout.h"
#include "offsets.h"

enum { NONE = -1 };

_Static_assert((int)GX_OFFSET_LANES == (int)GX_MAX_LANES, "a last user for each lane");

/* The units that use a value: the first, and the last of each lane. */
typedef struct life {
    int32_t first;
    int32_t last[GX_MAX_LANES];
    int32_t block;
    bool kept;                     /* a view of it is an output */
    int32_t next_first, next_last; /* in the lists of the unit that is first or last */
} life;

typedef struct memory {
    gx_plan *plan;
    const gx_order *order;
    life *lives;                 /* by value */
    int32_t *first_at, *last_at; /* by unit: heads of lists of values */
    gx_offsets *offsets;
    int32_t unit; /* the one that memory is found for */
    bool bad;     /* a unit reads what was never stored */
} memory;

static void note_life(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    memory *m = user;
    life *l = &m->lives[value];

    (void)writes;
    if (l->first == NONE)
        l->first = unit;
    l->last[m->plan->units[unit].lane] = unit;
    m->bad |= reads && m->plan->slots[value].elided;
}

static int32_t last_unit(const life *l)
{
    int32_t last = NONE;

    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        last = l->last[lane] > last ? l->last[lane] : last;
    return last;
}

static bool is_ordered(const void *user, const int32_t last[GX_OFFSET_LANES])
{
    const memory *m = user;

    for (int lane = 0; lane < GX_MAX_LANES; lane++) {
        if (last[lane] >= 0 && !gx_order_holds(m->order, last[lane], m->unit))
            return false;
    }
    return true;
}

/* It lives in the slots that the host feeds. */
static bool is_streamed(const gx_graph *graph, const gx_value *value)
{
    return graph->data.streams && value->kind == GX_VALUE_INPUT && value->fed;
}

/* Values that are there before the first unit or after the last one. */
static bool keeps_place(const gx_value *value)
{
    return value->kind == GX_VALUE_INPUT || value->is_output;
}

static gx_status value_bytes(const gx_value *value, size_t element_bytes, size_t *bytes,
                             gx_error *err)
{
    bool too_large = false;

    *bytes = element_bytes ? element_bytes : gx_dtype_bytes(value->dtype);
    for (int i = 0; i < value->rank; i++)
        too_large |= __builtin_mul_overflow(*bytes, (size_t)value->dim[i], bytes);
    if (too_large || *bytes > (size_t)INT64_MAX - GX_ALIGNMENT)
        return GX_FAIL(err, GX_ERR_LIMIT, "'%s': more bytes than can be addressed",
                       value->name);
    return GX_OK;
}

static void mark_elided(gx_plan *plan)
{
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        for (int32_t i = 0; unit->elided && i < unit->n_nodes * GX_MAX_ARGS; i++) {
            const int32_t node = unit->first_node + i / GX_MAX_ARGS;

            if (unit->elided[i])
                plan->slots[plan->graph->nodes[node].arg[i % GX_MAX_ARGS]].elided = true;
        }
    }
}

static gx_status start_values(memory *m, size_t element_bytes, gx_error *err)
{
    gx_plan *plan = m->plan;

    for (size_t i = 0; i < plan->graph->n_values; i++) {
        gx_slot_info *slot = &plan->slots[i];

        *slot = (gx_slot_info){ .offset = -1,
                                .first_unit = 0,
                                .last_unit = (int64_t)plan->n_units - 1 };
        m->lives[i] = (life){ .first = NONE, .block = NONE };
        for (int lane = 0; lane < GX_MAX_LANES; lane++)
            m->lives[i].last[lane] = NONE;
        GX_TRY(value_bytes(&plan->graph->values[i], element_bytes, &slot->bytes, err));
    }
    for (size_t i = 0; i < plan->graph->n_values; i++)
        m->lives[plan->home[i]].kept |= plan->graph->values[i].is_output;
    mark_elided(plan);
    return GX_OK;
}

/* What all takes where every value has its own place. */
static gx_status add_up(gx_plan *plan, gx_error *err)
{
    bool too_large = false;

    plan->naive_bytes = 0;
    plan->info.persistent_bytes = 0;
    for (size_t i = 0; i < plan->graph->n_values; i++) {
        size_t bytes = plan->slots[i].bytes ? plan->slots[i].bytes : 1;
        size_t *sum = gx_is_persistent(&plan->graph->values[i])
                          ? &plan->info.persistent_bytes
                          : &plan->naive_bytes;

        bytes = (bytes + GX_ALIGNMENT - 1) / GX_ALIGNMENT * GX_ALIGNMENT;
        if (!plan->slots[i].elided && !is_streamed(plan->graph, &plan->graph->values[i]))
            too_large |= __builtin_add_overflow(*sum, bytes, sum);
    }
    if (too_large || plan->naive_bytes > (size_t)INT64_MAX)
        return GX_FAIL(err, GX_ERR_LIMIT,
                       "the tensors have more bytes than can be addressed");
    return GX_OK;
}

static gx_status take(memory *m, int32_t value, gx_error *err)
{
    gx_slot_info *slot = &m->plan->slots[value];

    return gx_offsets_take(m->offsets, (int64_t)slot->bytes, is_ordered, m,
                           &m->lives[value].block, &slot->offset, err);
}

/* Gives inputs and outputs their place, and lists the others by their first and last
 * unit. */
static gx_status place_values(memory *m, bool reuse, gx_error *err)
{
    gx_plan *plan = m->plan;

    for (size_t u = 0; u < plan->n_units; u++) {
        m->first_at[u] = NONE;
        m->last_at[u] = NONE;
    }
    for (int32_t i = (int32_t)plan->graph->n_values - 1; i >= 0; i--) {
        const gx_value *value = &plan->graph->values[i];
        gx_slot_info *slot = &plan->slots[i];
        life *l = &m->lives[i];

        if (gx_is_persistent(value) || slot->elided || plan->home[i] != i ||
            is_streamed(plan->graph, value))
            continue;
        if (l->first != NONE && value->kind != GX_VALUE_INPUT)
            slot->first_unit = l->first;
        if (keeps_place(value) || l->kept || l->first == NONE || !reuse) {
            GX_TRY(take(m, i, err));
            continue;
        }
        slot->last_unit = last_unit(l);
        l->next_first = m->first_at[l->first];
        m->first_at[l->first] = i;
        l->next_last = m->last_at[last_unit(l)];
        m->last_at[last_unit(l)] = i;
    }
    return GX_OK;
}

static gx_status place_temporaries(memory *m, gx_error *err)
{
    for (m->unit = 0; m->unit < (int32_t)m->plan->n_units; m->unit++) {
        for (int32_t i = m->first_at[m->unit]; i != NONE; i = m->lives[i].next_first)
            GX_TRY(take(m, i, err));
        for (int32_t i = m->last_at[m->unit]; i != NONE; i = m->lives[i].next_last)
            gx_offsets_give(m->offsets, m->lives[i].block, m->lives[i].last);
    }
    return GX_OK;
}

/* A view lies where its home lies, as long as that does. */
static void place_views(gx_plan *plan)
{
    for (size_t i = 0; i < plan->graph->n_values; i++) {
        const gx_slot_info *home = &plan->slots[plan->home[i]];

        plan->slots[i].offset = home->offset;
        plan->slots[i].first_unit = home->first_unit;
        plan->slots[i].last_unit = home->last_unit;
    }
}

static gx_status find_offsets(memory *m, bool reuse, size_t element_bytes, gx_error *err)
{
    gx_plan *plan = m->plan;

    GX_TRY(start_values(m, element_bytes, err));
    GX_TRY(add_up(plan, err));
    for (int32_t u = 0; u < (int32_t)plan->n_units; u++)
        gx_layout_accesses(plan, u, note_life, m);
    if (m->bad)
        return GX_FAIL(
            err, GX_ERR_STATE,
            "the plan has a unit that reads a value which another one never stores");
    GX_TRY(place_values(m, reuse, err));
    GX_TRY(place_temporaries(m, err));
    place_views(plan);
    plan->arena_bytes = (size_t)gx_offsets_bytes(m->offsets);
    return GX_OK;
}

static void add_up_workspaces(gx_plan *plan)
{
    for (int lane = 0; lane < GX_MAX_LANES; lane++)
        plan->workspace_bytes[lane] = 0;
    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (unit->workspace_bytes > plan->workspace_bytes[unit->lane])
            plan->workspace_bytes[unit->lane] = unit->workspace_bytes;
    }
}

gx_status gx_layout_memory(gx_plan *plan, const gx_order *order, bool reuse,
                           size_t element_bytes, gx_error *err)
{
    const size_t n_values = plan->graph->n_values + 1;
    const size_t n_units = plan->n_units + 1;
    memory m = { .plan = plan, .order = order };
    gx_status st;

    if (!plan->slots)
        plan->slots = gx_arena_alloc(plan->arena, n_values * sizeof *plan->slots);
    m.lives = malloc(n_values * sizeof *m.lives);
    m.first_at = malloc(n_units * sizeof *m.first_at);
    m.last_at = malloc(n_units * sizeof *m.last_at);
    m.offsets = gx_offsets_create(GX_ALIGNMENT);
    if (!plan->slots || !m.lives || !m.first_at || !m.last_at || !m.offsets)
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    else
        st = find_offsets(&m, reuse, element_bytes, err);
    if (st == GX_OK)
        add_up_workspaces(plan);
    gx_offsets_free(m.offsets);
    free(m.last_at);
    free(m.first_at);
    free(m.lives);
    return st;
}
