/* Order: which lane a unit runs on, and what it has to wait for. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "pass_path.h"

static bool is_elided(const gx_unit *unit, int32_t node, int arg)
{
    return unit->elided && unit->elided[(node - unit->first_node) * GX_MAX_ARGS + arg];
}

/* Whether an earlier node of the unit makes value `id` without storing it. */
static bool reads_elided(const gx_graph *graph, const gx_unit *unit, int32_t node,
                         int32_t id)
{
    const int32_t producer = graph->values[id].producer;

    if (!unit->elided || producer < unit->first_node || producer >= node)
        return false;
    for (int arg = 0; arg < GX_MAX_ARGS; arg++) {
        if (is_elided(unit, producer, arg) && graph->nodes[producer].arg[arg] == id)
            return true;
    }
    return false;
}

void gx_layout_accesses(const gx_plan *plan, int32_t u, gx_access_fn *access, void *user)
{
    const gx_graph *graph = plan->graph;
    const gx_unit *unit = &plan->units[u];

    if (unit->is_view)
        return;
    for (int32_t i = unit->first_node; i < unit->first_node + unit->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];
        int arg = -1;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (field->kind != GX_FIELD_IN && field->kind != GX_FIELD_INOUT &&
                field->kind != GX_FIELD_OUT)
                continue;
            arg++;
            const int32_t id = node->arg[arg];

            if (id < 0)
                continue;
            if (field->kind == GX_FIELD_OUT ? is_elided(unit, i, arg)
                                            : reads_elided(graph, unit, i, id))
                continue;
            access(user, u, plan->home[id], field->kind != GX_FIELD_OUT,
                   field->kind != GX_FIELD_IN);
        }
    }
}

/* --- views --- */

/* Values that are written once in a step, so that a view of one always shows what it
 * should: not parameters and state. An input may be written again before its view, which
 * is an output, is read; one that is streamed lives in several places in turn. */
static bool may_show(const gx_graph *graph, const gx_value *view, const gx_value *home)
{
    return view->kind == GX_VALUE_TEMP &&
           (home->kind == GX_VALUE_TEMP ||
            (home->kind == GX_VALUE_INPUT && !view->is_output &&
             !(graph->data.streams && home->fed)));
}

static gx_status find_views(gx_plan *plan, bool reuse, gx_error *err)
{
    const gx_graph *graph = plan->graph;

    if (!plan->home)
        plan->home =
            gx_arena_alloc(plan->arena, (graph->n_values + 1) * sizeof *plan->home);
    if (!plan->home)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    for (size_t i = 0; i < graph->n_values; i++)
        plan->home[i] = (int32_t)i;
    for (size_t u = 0; u < plan->n_units; u++) {
        gx_unit *unit = &plan->units[u];
        const gx_node *node = &graph->nodes[unit->first_node];

        unit->is_view = false;
        if (!reuse || unit->n_nodes != 1 || !node->op->view)
            continue;
        const int32_t home = plan->home[node->arg[0]];

        if (may_show(graph, &graph->values[node->arg[1]], &graph->values[home])) {
            unit->is_view = true;
            plan->home[node->arg[1]] = home;
        }
    }
    return GX_OK;
}

/* --- lanes --- */

typedef struct lanes {
    const gx_plan *plan;
    int32_t *writer; /* by value: the unit that wrote it; -1: not written yet */
    int32_t last;    /* the last unit on the path of the passes; -1: none */
    /* of the unit at hand */
    bool writes_lasting, reads_last;
    int n_gradients, n_elsewhere;
} lanes;

static void see_lasting(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    lanes *l = user;

    (void)unit;
    (void)reads;
    l->writes_lasting |= writes && gx_is_lasting(&l->plan->graph->values[value]);
}

static void see_writers(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    lanes *l = user;

    see_lasting(user, unit, value, reads, writes);
    if (!reads || l->plan->graph->values[value].kind != GX_VALUE_TEMP)
        return;
    const int32_t writer = l->writer[value];

    l->reads_last |= writer >= 0 && writer == l->last;
    if (writer >= 0 && l->plan->units[writer].lane == 1)
        l->n_gradients++;
    else
        l->n_elsewhere++;
}

static void note_writer(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    lanes *l = user;

    (void)reads;
    if (writes)
        l->writer[value] = unit;
}

static void look_at(const gx_plan *plan, lanes *l, int32_t unit)
{
    l->writes_lasting = l->reads_last = false;
    l->n_gradients = l->n_elsewhere = 0;
    gx_layout_accesses(plan, unit, see_writers, l);
}

/* An optimizer unit follows the weight gradients when all that it reads comes from there.
 * With a third lane what it updates is updated there, and what needs nothing of this step
 * is made there: a rate must not stand behind the backward pass, nor the first update
 * behind a norm that only the log wants. */
static int optimizer_lane(gx_plan *plan, lanes *l, int32_t unit, int most)
{
    look_at(plan, l, unit);
    if (most > 2 && (l->writes_lasting || l->n_gradients + l->n_elsewhere == 0))
        return 2;
    return l->n_gradients > 0 && l->n_elsewhere == 0;
}

static bool is_beside(const gx_plan *plan, const gx_pass_path *path, const gx_unit *unit)
{
    return !unit->is_view &&
           gx_pass_path_is_beside(path, plan->home, unit->first_node, unit->n_nodes);
}

/* The last unit that the passes go on from, or with which they end. */
static int32_t find_last(const gx_plan *plan, const gx_pass_path *path)
{
    int32_t last = -1;

    for (int32_t u = 0; u < (int32_t)plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (unit->phase <= GX_PHASE_BACKWARD && gx_planned_launches(unit) != 0 &&
            !is_beside(plan, path, unit))
            last = u;
    }
    return last;
}

/* A backward unit goes to lane 1 when the backward pass does not go on from it. One that
 * updates the last of the gradients too stays: nothing is left that it could run beside,
 * and behind the last unit of lane 0 it needs no edge between lanes. */
static int assign_lanes(gx_plan *plan, lanes *l, const gx_pass_path *path, int most)
{
    int n_lanes = 1;

    l->last = find_last(plan, path);
    for (int32_t u = 0; u < (int32_t)plan->n_units; u++) {
        gx_unit *unit = &plan->units[u];

        if (unit->phase == GX_PHASE_OPTIMIZER && !unit->is_view) {
            unit->lane = optimizer_lane(plan, l, u, most);
        } else {
            look_at(plan, l, u);
            unit->lane =
                is_beside(plan, path, unit) && !(l->reads_last && l->writes_lasting);
        }
        gx_layout_accesses(plan, u, note_writer, l);
        if (unit->lane >= n_lanes)
            n_lanes = unit->lane + 1;
    }
    return n_lanes;
}

static gx_status find_lanes(gx_plan *plan, int n_lanes, gx_error *err)
{
    const size_t n = plan->graph->n_values + 1;
    lanes l = { .plan = plan };
    gx_pass_path path;

    for (size_t u = 0; u < plan->n_units; u++)
        plan->units[u].lane = 0;
    plan->n_lanes = 1;
    if (n_lanes == 1)
        return GX_OK;
    GX_TRY(gx_pass_path_find(plan->graph, plan->home, &path, err));
    l.writer = malloc(n * sizeof *l.writer);
    if (l.writer) {
        memset(l.writer, -1, n * sizeof *l.writer);
        plan->n_lanes = assign_lanes(plan, &l, &path, n_lanes);
    }
    const bool found = l.writer != NULL;

    free(l.writer);
    gx_pass_path_free(&path);
    return found ? GX_OK : GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
}

/* --- waits --- */

/* What has touched a value so far. */
typedef struct touched {
    int32_t writer;               /* the last unit that wrote it; -1: none */
    int32_t before;               /* the last one ahead of that write */
    int32_t reader[GX_MAX_LANES]; /* the last of each lane that has read it since */
} touched;

typedef struct waits {
    const gx_plan *plan;
    touched *by_value;
    int32_t needed[GX_MAX_LANES];    /* the last unit of each other lane to wait for */
    int32_t full_edge[GX_MAX_LANES]; /* the last unit that started behind everything */
    bool reads_fresh; /* reads a lasting tensor that was written since the last full edge
                       */
    bool stores;      /* writes at least one element */
} waits;

static bool has_elements(const gx_value *value)
{
    for (int d = 0; d < value->rank; d++) {
        if (value->dim[d] == 0)
            return false;
    }
    return true;
}

static void need(waits *w, int32_t unit, int32_t before)
{
    const gx_unit *units = w->plan->units;

    if (before >= 0 && units[before].lane != units[unit].lane &&
        before > w->needed[units[before].lane])
        w->needed[units[before].lane] = before;
}

static void find_needed(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    waits *w = user;
    const touched *t = &w->by_value[value];
    const int lane = w->plan->units[unit].lane;

    need(w, unit, t->writer);
    if (writes) {
        for (int i = 0; i < GX_MAX_LANES; i++)
            need(w, unit, t->reader[i]);
    }
    if (reads && w->plan->graph->values[value].kind != GX_VALUE_TEMP &&
        t->writer >= w->full_edge[lane])
        w->reads_fresh = true;
    w->stores |= writes && has_elements(&w->plan->graph->values[value]);
}

static void note_access(void *user, int32_t unit, int32_t value, bool reads, bool writes)
{
    waits *w = user;
    touched *t = &w->by_value[value];

    if (reads)
        t->reader[w->plan->units[unit].lane] = unit;
    if (writes) {
        t->before = t->writer;
        t->writer = unit;
        for (int i = 0; i < GX_MAX_LANES; i++)
            t->reader[i] = -1;
    }
}

/* What a kernel of the unit may load ahead of its wait: what no kernel since the last
 * full edge has written. Whatever its lane stood behind at that edge had ended then, the
 * units of other lanes that it had waited for too; a writer there that it had not waited
 * for starts when this unit has ended. What the unit itself writes counts as just
 * written, unless one call of it alone does, in place; and an input as soon as anything
 * in the step has written it. */
static gx_status find_steady(const waits *w, gx_unit *unit, gx_error *err)
{
    const gx_plan *plan = w->plan;
    const size_t n = (size_t)unit->n_nodes * GX_MAX_ARGS;

    if (!unit->alternative) /* on the CPU nothing runs ahead */
        return GX_OK;
    if (!unit->steady)
        unit->steady = gx_arena_alloc(plan->arena, n * sizeof *unit->steady);
    if (!unit->steady)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    memset(unit->steady, 0, n * sizeof *unit->steady);
    for (int32_t i = 0; i < unit->n_nodes && !unit->is_view; i++) {
        const int32_t node = unit->first_node + i;
        const gx_op *op = plan->graph->nodes[node].op;

        for (int arg = 0; arg < gx_n_args(op); arg++) {
            const int32_t id = plan->graph->nodes[node].arg[arg];
            const gx_field_kind kind = gx_arg_kind(op, arg);

            if (id < 0 || kind == GX_FIELD_OUT ||
                reads_elided(plan->graph, unit, node, id))
                continue;
            const int32_t home = plan->home[id];
            const touched *t = &w->by_value[home];
            const int32_t writer = kind == GX_FIELD_INOUT ? t->before : t->writer;

            unit->steady[i * GX_MAX_ARGS + arg] =
                writer < 0 || (writer < w->full_edge[unit->lane] &&
                               plan->graph->values[home].kind != GX_VALUE_INPUT);
        }
    }
    return GX_OK;
}

/* Whether another of the units to wait for has itself started behind this one. */
static bool is_implied(const gx_order *order, const int32_t needed[GX_MAX_LANES],
                       int lane)
{
    for (int other = 0; other < GX_MAX_LANES; other++) {
        if (other != lane && needed[other] >= 0 &&
            order->seen[needed[other]][lane] >= needed[lane])
            return true;
    }
    return false;
}

static void see(int32_t seen[GX_MAX_LANES], int lane, int32_t unit)
{
    if (unit > seen[lane])
        seen[lane] = unit;
}

/* Waits for what is needed, but for what `seen`, which grows by it, knows to have ended.
 */
static gx_status wait_for(gx_plan *plan, const gx_order *order, gx_unit *unit,
                          int32_t needed[GX_MAX_LANES], int32_t seen[GX_MAX_LANES],
                          gx_error *err)
{
    bool any = false;

    for (int lane = 0; lane < GX_MAX_LANES; lane++) {
        if (needed[lane] <= seen[lane])
            needed[lane] = -1;
        any |= needed[lane] >= 0;
    }
    if (!any)
        return GX_OK;
    unit->waits = gx_arena_alloc(plan->arena, GX_MAX_LANES * sizeof *unit->waits);
    if (!unit->waits)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    for (int lane = 0; lane < GX_MAX_LANES; lane++) {
        const int32_t before = needed[lane];

        if (before < 0 || is_implied(order, needed, lane))
            continue;
        unit->waits[unit->n_waits++] = before;
        plan->units[before].signals = true;
        see(seen, lane, before);
        for (int other = 0; other < GX_MAX_LANES; other++)
            see(seen, other, order->seen[before][other]);
    }
    return GX_OK;
}

/* A lane runs in order, so of the units of another lane only the last one needed counts,
 * and only when this lane is not behind it or a later one yet: by a wait of its own, or
 * by what those that it has waited for had waited for. A unit that launches nothing makes
 * no edge: the full edge that it should have had is then owed to the next. */
static gx_status order_units(gx_plan *plan, gx_order *order, waits *w, gx_error *err)
{
    int32_t seen[GX_MAX_LANES][GX_MAX_LANES]; /* by lane, as gx_order by unit */
    bool owes_full[GX_MAX_LANES];

    memset(seen, -1, sizeof seen);
    memset(owes_full, true, sizeof owes_full);
    for (int32_t u = 0; u < (int32_t)plan->n_units; u++) {
        gx_unit *unit = &plan->units[u];
        const int lane = unit->lane;

        memcpy(order->seen[u], seen[lane], sizeof seen[lane]);
        unit->programmatic_first = false;
        if (unit->is_view) /* it is nowhere in the order: nothing runs */
            continue;
        memset(w->needed, -1, sizeof w->needed);
        w->reads_fresh = false;
        w->stores = false;
        gx_layout_accesses(plan, u, find_needed, w);
        GX_TRY(wait_for(plan, order, unit, w->needed, seen[lane], err));
        unit->programmatic_first =
            !owes_full[lane] && unit->n_waits == 0 && !w->reads_fresh;
        if (!unit->programmatic_first) {
            w->full_edge[lane] = u;
            owes_full[lane] = unit->n_launches == 0 || !w->stores;
        }
        memcpy(order->seen[u], seen[lane], sizeof seen[lane]);
        gx_layout_accesses(plan, u, note_access, w);
        GX_TRY(find_steady(w, unit, err));
    }
    return GX_OK;
}

static gx_status find_waits(gx_plan *plan, gx_order *order, gx_error *err)
{
    const size_t n = plan->graph->n_values + 1;
    waits w = { .plan = plan };
    gx_status st;

    for (size_t u = 0; u < plan->n_units; u++) {
        plan->units[u].waits = NULL;
        plan->units[u].n_waits = 0;
        plan->units[u].signals = false;
    }
    w.by_value = malloc(n * sizeof *w.by_value);
    if (!w.by_value)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    memset(w.by_value, -1, n * sizeof *w.by_value); /* nothing has touched them */
    st = order_units(plan, order, &w, err);
    free(w.by_value);
    return st;
}

/* What lane 2 is for. */
static void count_early(gx_plan *plan, const gx_order *order)
{
    lanes l = { .plan = plan };
    int32_t last = -1;

    plan->n_early = 0;
    for (int32_t u = 0; u < (int32_t)plan->n_units; u++)
        if (plan->units[u].lane == 1 && plan->units[u].phase == GX_PHASE_BACKWARD)
            last = u;
    for (int32_t u = 0; u < (int32_t)plan->n_units; u++) {
        if (plan->units[u].lane != 2 || order->seen[u][1] >= last)
            continue;
        l.writes_lasting = false;
        gx_layout_accesses(plan, u, see_lasting, &l);
        plan->n_early += l.writes_lasting;
    }
}

gx_status gx_layout(gx_plan *plan, int n_lanes, bool reuse, size_t element_bytes,
                    gx_error *err)
{
    gx_order order = { .plan = plan };
    gx_status st;

    order.seen = malloc((plan->n_units + 1) * sizeof *order.seen);
    if (!order.seen)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the layout");
    st = find_views(plan, reuse, err);
    if (st == GX_OK)
        st = find_lanes(plan, n_lanes, err);
    if (st == GX_OK)
        st = find_waits(plan, &order, err);
    if (st == GX_OK)
        count_early(plan, &order);
    if (st == GX_OK)
        st = gx_layout_memory(plan, &order, reuse, element_bytes, err);
    free(order.seen);
    return st;
}
