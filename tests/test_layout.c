/* Layout: on random programs the order and the memory are checked by brute force against
 * every interleaving that the lanes allow. */
#include <string.h>

#include "builder.h"
#include "support_plan.h"

enum { MAX_UNITS = 64 };

/* --- random programs --- */

/* One of the values in [0, n) that may be read, or -1. */
static int32_t pick(test_random *random, const test_graph *t, int32_t n, bool recent)
{
    const int64_t low = recent && n > 6 ? n - 6 : 0;

    if (n == 0 || test_random_int(random, 0, 4) == 0)
        return -1;
    const int32_t id = (int32_t)test_random_int(random, low, n - 1);

    /* What nobody has made yet cannot be read. */
    return t->graph.values[id].kind == GX_VALUE_TEMP && t->graph.values[id].producer < 0
               ? -1
               : id;
}

static void add_random_node(test_graph *t, test_random *random, gx_phase phase)
{
    const int32_t n = (int32_t)t->graph.n_values;
    int32_t args[5];

    for (int i = 0; i < 3; i++)
        args[i] = pick(random, t, n, i > 0);
    for (int i = 3; i < 5; i++) {
        args[i] = -1;
        if (i == 3 || test_random_int(random, 0, 2) == 0) {
            args[i] = test_value(t, GX_VALUE_TEMP, test_random_int(random, 0, 700));
            t->graph.values[args[i]].is_output = test_random_int(random, 0, 9) == 0;
            t->graph.values[args[i]].producer = 0; /* set for good by finish */
        }
    }
    test_node(t, test_random_int(random, 0, 1) ? &test_make : &test_bend, phase, args);
}

static void add_random_update(test_graph *t, test_random *random, const int32_t *params,
                              int n_params, gx_phase phase)
{
    const int32_t w = params[test_random_int(random, 0, n_params - 1)];
    int32_t g = -1;

    while (g < 0)
        g = pick(random, t, (int32_t)t->graph.n_values, false);
    test_node(t, &test_update, phase, (int32_t[]){ w, g });
}

static test_graph *random_program(test_random *random)
{
    static const gx_phase phases[] = { GX_PHASE_FORWARD, GX_PHASE_BACKWARD,
                                       GX_PHASE_OPTIMIZER, GX_PHASE_STEP };
    test_graph *t = test_graph_new();
    const int n_params = (int)test_random_int(random, 1, 4);
    int32_t params[4];

    for (int i = 0; i < n_params; i++)
        params[i] = test_value(t, GX_VALUE_PARAM, test_random_int(random, 1, 99));
    for (int64_t i = test_random_int(random, 1, 3); i > 0; i--)
        test_value(t, GX_VALUE_INPUT, test_random_int(random, 0, 300));
    for (int p = 0; p < 4; p++) {
        for (int64_t i = test_random_int(random, 1, 10); i > 0; i--) {
            if (phases[p] == GX_PHASE_OPTIMIZER || test_random_int(random, 0, 7) == 0)
                add_random_update(t, random, params, n_params, phases[p]);
            else
                add_random_node(t, random, phases[p]);
        }
    }
    test_graph_finish(t);
    for (int32_t left = (int32_t)t->graph.n_nodes; left > 0;) {
        const int64_t most = left < 3 ? left : 3;
        const int32_t n = (int32_t)test_random_int(random, 1, most);

        test_unit(t, n, test_random_int(random, 0, 1) ? &test_eliding : &test_storing);
        left -= n;
    }
    return t;
}

/* --- brute force --- */

typedef struct touch {
    bool reads, writes;
} touch;

/* What a unit does to a value in memory, found anew. */
static touch touches(const gx_plan *plan, size_t u, int32_t id)
{
    const gx_unit *unit = &plan->units[u];
    touch found = { false, false };

    if (plan->slots[id].elided)
        return found;
    for (int32_t i = 0; i < unit->n_nodes; i++) {
        const gx_node *node = &plan->graph->nodes[unit->first_node + i];

        for (int arg = 0; arg < gx_n_args(node->op); arg++) {
            const gx_field_kind kind = gx_arg_kind(node->op, arg);

            if (node->arg[arg] != id)
                continue;
            found.reads |= kind != GX_FIELD_OUT;
            found.writes |= kind != GX_FIELD_IN;
        }
    }
    return found;
}

/* before[a][b]: unit a has ended before unit b starts, by lanes and waits alone. `skip`:
 * wait number `wait` of that unit is left out. */
static void close_order(const gx_plan *plan, size_t skip, int wait,
                        bool before[MAX_UNITS][MAX_UNITS])
{
    const size_t n = plan->n_units;

    memset(before, 0, sizeof(bool) * MAX_UNITS * MAX_UNITS);
    for (size_t b = 0; b < n; b++) {
        for (size_t a = 0; a < b; a++)
            before[a][b] = plan->units[a].lane == plan->units[b].lane;
        for (int w = 0; w < plan->units[b].n_waits; w++)
            before[plan->units[b].waits[w]][b] |= b != skip || w != wait;
    }
    for (size_t k = 0; k < n; k++) {
        for (size_t a = 0; a < n; a++) {
            for (size_t b = 0; b < n; b++)
                before[a][b] |= before[a][k] && before[k][b];
        }
    }
}

static void check_hazards(const gx_plan *plan, bool before[MAX_UNITS][MAX_UNITS])
{
    for (int32_t id = 0; id < (int32_t)plan->graph->n_values; id++) {
        for (size_t b = 0; b < plan->n_units; b++) {
            for (size_t a = 0; a < b; a++) {
                const touch x = touches(plan, a, id);
                const touch y = touches(plan, b, id);

                if ((x.writes && (y.reads || y.writes)) || (x.reads && y.writes))
                    assert_true(before[a][b]);
            }
        }
    }
}

static bool in_arena(const gx_plan *plan, int32_t id)
{
    return plan->slots[id].offset >= 0;
}

static bool overlap(const gx_slot_info *a, const gx_slot_info *b)
{
    const int64_t a_end = a->offset + (int64_t)(a->bytes ? a->bytes : 1);
    const int64_t b_end = b->offset + (int64_t)(b->bytes ? b->bytes : 1);

    return a->offset < b_end && b->offset < a_end;
}

/* Every user of x has ended before any user of y starts. */
static bool all_before(const gx_plan *plan, int32_t x, int32_t y,
                       bool before[MAX_UNITS][MAX_UNITS])
{
    for (size_t a = 0; a < plan->n_units; a++) {
        const touch t = touches(plan, a, x);

        if (!t.reads && !t.writes)
            continue;
        for (size_t b = 0; b < plan->n_units; b++) {
            const touch s = touches(plan, b, y);

            if ((s.reads || s.writes) && !before[a][b])
                return false;
        }
    }
    return true;
}

static bool keeps_place(const gx_plan *plan, int32_t id)
{
    return plan->graph->values[id].is_output ||
           plan->graph->values[id].kind == GX_VALUE_INPUT;
}

static void check_memory(const gx_plan *plan, bool before[MAX_UNITS][MAX_UNITS])
{
    const int32_t n = (int32_t)plan->graph->n_values;

    for (int32_t a = 0; a < n; a++) {
        const gx_slot_info *slot = &plan->slots[a];
        const bool persistent = plan->graph->values[a].kind == GX_VALUE_PARAM;

        assert_int_equal(in_arena(plan, a), !persistent && !slot->elided);
        if (!in_arena(plan, a))
            continue;
        assert_int_equal(slot->offset % GX_ALIGNMENT, 0);
        assert_true((size_t)slot->offset + slot->bytes <= plan->arena_bytes);
        for (int32_t b = 0; b < a; b++) {
            if (!in_arena(plan, b) || !overlap(slot, &plan->slots[b]))
                continue;
            assert_false(keeps_place(plan, a) || keeps_place(plan, b));
            assert_true(all_before(plan, a, b, before) || all_before(plan, b, a, before));
        }
    }
}

/* A wait that the rest of the order implies costs an edge for nothing. */
static void check_waits_are_needed(const gx_plan *plan)
{
    static bool without[MAX_UNITS][MAX_UNITS];

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        assert_in_range(unit->n_waits, 0, plan->n_lanes - 1);
        for (int w = 0; w < unit->n_waits; w++) {
            assert_true(plan->units[unit->waits[w]].signals);
            assert_int_not_equal(plan->units[unit->waits[w]].lane, unit->lane);
            close_order(plan, u, w, without);
            assert_false(without[unit->waits[w]][u]);
        }
    }
}

/* A unit that may start early finds every lasting tensor that it reads as it was at the
 * last full edge of its lane. */
static void check_early_starts(const gx_plan *plan)
{
    for (size_t u = 0; u < plan->n_units; u++) {
        size_t edge = u;

        if (!plan->units[u].programmatic_first)
            continue;
        assert_int_equal(plan->units[u].n_waits, 0);
        do {
            assert_true(edge > 0);
            edge--;
        } while (plan->units[edge].lane != plan->units[u].lane ||
                 plan->units[edge].programmatic_first);
        for (int32_t id = 0; id < (int32_t)plan->graph->n_values; id++) {
            if (plan->graph->values[id].kind != GX_VALUE_PARAM ||
                !touches(plan, u, id).reads)
                continue;
            for (size_t a = edge; a < u; a++)
                assert_false(touches(plan, a, id).writes);
        }
    }
}

static bool launches(const gx_plan *plan, size_t u)
{
    if (plan->units[u].n_launches == 0)
        return false;
    for (int32_t id = 0; id < (int32_t)plan->graph->n_values; id++) {
        if (plan->graph->values[id].dim[0] > 0 && touches(plan, u, id).writes)
            return true;
    }
    return false;
}

/* The unit that starts behind everything and from which the lane's launches overlap up to
 * this one. One that launches nothing makes no edge. */
static size_t last_full_edge(const gx_plan *plan, size_t u)
{
    size_t edge = u;

    while (edge != SIZE_MAX &&
           (plan->units[edge].lane != plan->units[u].lane ||
            plan->units[edge].programmatic_first || (edge < u && !launches(plan, edge))))
        edge--;
    return edge;
}

static int count_writes(const gx_unit *unit, const gx_graph *graph, int32_t id)
{
    int n = 0;

    for (int32_t i = unit->first_node; i < unit->first_node + unit->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];

        for (int arg = 0; arg < gx_n_args(node->op); arg++)
            n += node->arg[arg] == id && gx_arg_kind(node->op, arg) != GX_FIELD_IN;
    }
    return n;
}

/* Whoever writes a steady operand has ended before the last full edge, or starts when the
 * unit has ended; or is the unit itself, once, in place. */
static int check_steady(const gx_plan *plan, bool before[MAX_UNITS][MAX_UNITS])
{
    int n_steady = 0;

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];
        const size_t edge = last_full_edge(plan, u);

        assert_true(edge != SIZE_MAX);
        for (int32_t i = 0; i < unit->n_nodes * GX_MAX_ARGS; i++) {
            const gx_node *node = &plan->graph->nodes[unit->first_node + i / GX_MAX_ARGS];
            const int32_t id = node->arg[i % GX_MAX_ARGS];

            if (!unit->steady[i])
                continue;
            n_steady++;
            assert_true(id >= 0 && !plan->slots[id].elided);
            const gx_field_kind kind = gx_arg_kind(node->op, i % GX_MAX_ARGS);

            assert_true(kind == GX_FIELD_IN || kind == GX_FIELD_INOUT);
            assert_int_equal(count_writes(unit, plan->graph, id), kind == GX_FIELD_INOUT);
            for (size_t a = 0; a < plan->n_units; a++) {
                if (a != u && touches(plan, a, id).writes)
                    assert_true(a < edge ? before[a][edge] : before[u][a]);
            }
        }
    }
    return n_steady;
}

static void random_programs_are_right_on_any_interleaving(void **state)
{
    static bool before[MAX_UNITS][MAX_UNITS];
    test_random random = test_random_start(test_seed());
    int n_two = 0, n_three = 0, n_both = 0, n_shared = 0, n_elided = 0, n_steady = 0;

    (void)state;
    for (int round = 0; round < 500; round++) {
        test_graph *t = random_program(&random);
        gx_error err = { 0 };

        for (int lanes = 1; lanes <= GX_MAX_LANES; lanes++) {
            assert_ok(gx_layout(&t->plan, lanes, true, 0, &err), &err);
            assert_true(t->plan.n_units <= MAX_UNITS);
            assert_true(t->plan.n_lanes <= lanes);
            close_order(&t->plan, SIZE_MAX, 0, before);
            check_hazards(&t->plan, before);
            check_memory(&t->plan, before);
            check_waits_are_needed(&t->plan);
            check_early_starts(&t->plan);
            n_steady += check_steady(&t->plan, before);
            assert_true(t->plan.arena_bytes <= t->plan.naive_bytes);
            n_two += t->plan.n_lanes == 2;
            n_three += t->plan.n_lanes == 3;
            for (size_t u = 0; u < t->plan.n_units; u++)
                n_both += t->plan.units[u].n_waits == 2;
            n_shared += t->plan.arena_bytes < t->plan.naive_bytes;
            for (size_t i = 0; i < t->graph.n_values; i++)
                n_elided += t->plan.slots[i].elided;
        }
        test_graph_free(t);
    }
    /* Else nothing of interest was tested. */
    assert_true(n_two > 100 && n_three > 100 && n_both > 10);
    assert_true(n_shared > 100 && n_elided > 100 && n_steady > 100);
}

static void without_reuse_nothing_overlaps(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int round = 0; round < 50; round++) {
        test_graph *t = random_program(&random);
        gx_error err = { 0 };

        assert_ok(gx_layout(&t->plan, GX_MAX_LANES, false, 0, &err), &err);
        assert_int_equal(t->plan.arena_bytes, t->plan.naive_bytes);
        for (int32_t a = 0; a < (int32_t)t->graph.n_values; a++) {
            for (int32_t b = 0; b < a; b++) {
                if (in_arena(&t->plan, a) && in_arena(&t->plan, b))
                    assert_false(overlap(&t->plan.slots[a], &t->plan.slots[b]));
            }
        }
        test_graph_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_are_right_on_any_interleaving),
        cmocka_unit_test(without_reuse_nothing_overlaps),
    };

    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
