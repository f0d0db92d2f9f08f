/* Layout: on random programs the order and the memory are checked by brute force against
 * every interleaving that the lanes allow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "support_plan.h"

enum { MAX_UNITS = 64 };

static const char *const any[] = { "make", NULL };
static const gx_alternative storing = { .name = "storing", .pattern = any };
static const gx_alternative eliding = { .name = "eliding",
                                        .pattern = any,
                                        .elides = true };

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

        test_unit(t, n, test_random_int(random, 0, 1) ? &eliding : &storing);
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

/* Whoever writes a steady operand has ended before the last full edge, or starts when the
 * unit has ended. */
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
            assert_int_equal(gx_arg_kind(node->op, i % GX_MAX_ARGS), GX_FIELD_IN);
            for (size_t a = 0; a < plan->n_units; a++) {
                if (touches(plan, a, id).writes)
                    assert_true(a != u && (a < edge ? before[a][edge] : before[u][a]));
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

/* --- shapes of programs --- */

/* forward: h = x w; backward: dh, then dw (lane 1) and dx; optimizer: w. */
static test_graph *small_training(void)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
    const int32_t w1 = test_value(t, GX_VALUE_PARAM, 8);
    const int32_t w2 = test_value(t, GX_VALUE_PARAM, 8);
    int32_t temp[8];

    for (int i = 0; i < 8; i++)
        temp[i] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, w1, -1, temp[0], -1 });
    test_node(t, &test_make, GX_PHASE_FORWARD,
              (int32_t[]){ temp[0], w2, -1, temp[1], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[1], -1, -1, temp[2], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, /* dw2 */
              (int32_t[]){ temp[0], temp[2], -1, temp[3], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, /* dh */
              (int32_t[]){ temp[2], w2, -1, temp[4], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[4], -1, -1, temp[5], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[5], -1, -1, temp[6], -1 });
    t->graph.values[temp[6]].is_output = true;
    test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w2, temp[3] });
    test_node(t, &test_make, GX_PHASE_STEP, (int32_t[]){ temp[6], -1, -1, temp[7], -1 });
    test_graph_finish(t);
    for (size_t i = 0; i < t->graph.n_nodes; i++)
        test_unit(t, 1, &storing);
    return t;
}

static void weight_gradients_and_their_updates_go_to_lane_1(void **state)
{
    test_graph *t = small_training();
    gx_error err = { 0 };
    const gx_unit *units = t->plan.units;

    (void)state;
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    assert_int_equal(t->plan.n_lanes, 2);
    assert_int_equal(units[0].lane, 0);
    assert_int_equal(units[2].lane, 0);
    assert_int_equal(units[3].lane, 1);
    assert_int_equal(units[4].lane, 0);
    assert_int_equal(units[7].lane, 1);
    assert_int_equal(units[8].lane, 0);
    /* dw2 needs dy of unit 2. The update of w2 must not overtake dh, unit 4, which reads
     * w2: unit 6 before it on its lane has waited for unit 5. */
    assert_int_equal(units[3].n_waits, 1);
    assert_int_equal(units[3].waits[0], 2);
    assert_int_equal(units[6].lane, 1);
    assert_int_equal(units[6].n_waits, 1);
    assert_int_equal(units[6].waits[0], 5);
    assert_int_equal(units[7].n_waits, 0);
    test_graph_free(t);
}

/* A loss: its derivative, from which the pass goes on, then its value, from which it does
 * not, the gradients of the last layer, and the end of the step, which logs the value. */
static void the_value_of_a_loss_goes_to_lane_1(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8),
                  w = test_value(t, GX_VALUE_PARAM, 8);
    int32_t temp[5];
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 5; i++)
        temp[i] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, w, -1, temp[0], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[0], -1, -1, temp[1], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[0], -1, -1, temp[2], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[1], w, -1, temp[3], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[3], -1, -1, temp[4], -1 });
    test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, temp[4] });
    test_node(t, &test_bend, GX_PHASE_STEP,
              (int32_t[]){ temp[2], -1, -1, test_value(t, GX_VALUE_TEMP, 4), -1 });
    test_graph_finish(t);
    for (size_t i = 0; i < t->graph.n_nodes; i++)
        test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    const gx_unit *units = t->plan.units;

    assert_int_equal(units[1].lane, 0);
    assert_int_equal(units[2].lane, 1);
    assert_int_equal(units[3].lane, 0);
    /* It reads what unit 0 made; the derivative has nothing to do with it. */
    assert_int_equal(units[2].n_waits, 1);
    assert_int_equal(units[2].waits[0], 0);
    /* The end of the step logs it. */
    assert_int_equal(units[6].lane, 0);
    assert_int_equal(units[6].n_waits, 1);
    test_graph_free(t);
}

/* In one unit with its derivative it is on the path, whatever their order. */
static void a_value_made_with_its_derivative_stays_on_lane_0(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
    int32_t temp[3];
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++)
        temp[i] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ x, -1, -1, temp[0], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD, (int32_t[]){ x, -1, -1, temp[1], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[0], -1, -1, temp[2], -1 });
    test_graph_finish(t);
    test_unit(t, 2, &storing);
    test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    assert_int_equal(t->plan.units[0].lane, 0);
    assert_int_equal(t->plan.units[1].lane, 1);
    test_graph_free(t);
}

/* What only the unit itself goes on from leads nowhere, stored or not. */
static void what_a_unit_reads_of_its_own_is_not_the_path(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        test_graph *t = test_graph_new();
        const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
        const int32_t inside = test_value(t, GX_VALUE_TEMP, 100);
        const int32_t made = test_value(t, GX_VALUE_TEMP, 100);
        gx_error err = { 0 };

        test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ x, -1, -1, inside, -1 });
        test_node(t, &test_make, GX_PHASE_BACKWARD,
                  (int32_t[]){ inside, -1, -1, made, -1 });
        t->graph.values[made].is_output = true;
        test_graph_finish(t);
        test_unit(t, 2, i ? &eliding : &storing);
        assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
        assert_int_equal(t->plan.units[0].lane, 1);
        test_graph_free(t);
    }
}

static const gx_field sum_fields[] = {
    { .name = "a", .kind = GX_FIELD_IN },
    { .name = "b", .kind = GX_FIELD_IN },
    { .name = "out", .kind = GX_FIELD_OUT },
    { .name = NULL },
};
static const gx_op sum_op = {
    .name = "sum_op", .fields = sum_fields, .sum = true, .tolerance = { 1, 1, 1 }
};

/* Parts that only a sum reads are beside the passes where the sum is, as those of a
 * weight that is used twice; the parts of what the pass goes on from are not. */
static void parts_go_where_their_sum_goes(void **state)
{
    (void)state;
    for (int on_path = 0; on_path < 2; on_path++) {
        test_graph *t = test_graph_new();
        const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
        int32_t part[3], sum[2];
        gx_error err = { 0 };

        for (int i = 0; i < 3; i++) {
            part[i] = test_value(t, GX_VALUE_TEMP, 100);
            test_node(t, &test_make, GX_PHASE_BACKWARD,
                      (int32_t[]){ x, -1, -1, part[i], -1 });
        }
        for (int i = 0; i < 2; i++) {
            sum[i] = test_value(t, GX_VALUE_TEMP, 100);
            test_node(t, &sum_op, GX_PHASE_BACKWARD,
                      (int32_t[]){ i ? sum[0] : part[0], part[i + 1], sum[i] });
        }
        if (on_path)
            test_node(t, &test_make, GX_PHASE_BACKWARD,
                      (int32_t[]){ sum[1], -1, -1, test_value(t, GX_VALUE_TEMP, 4), -1 });
        else
            test_node(t, &test_update, GX_PHASE_OPTIMIZER,
                      (int32_t[]){ test_value(t, GX_VALUE_PARAM, 100), sum[1] });
        test_graph_finish(t);
        for (int i = 0; i < 6; i++)
            test_unit(t, 1, &storing);
        assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
        for (int i = 0; i < 5; i++)
            assert_int_equal(t->plan.units[i].lane, !on_path);
        test_graph_free(t);
    }
}

/* Three layers whose updates are one unit each: backward is dy3, then dw and dx of each
 * layer from the last to the first, then `extra` optimizer nodes, the updates, the end.
 */
enum { DW3 = 4, DX3, DW2, DX2, DW1, EXTRA };

static test_graph *layers(const gx_op *extra, const int32_t *extra_args)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
    int32_t w[3], h[4] = { x }, dw[3], dx[4];

    for (int i = 0; i < 3; i++) {
        w[i] = test_value(t, GX_VALUE_PARAM, 8);
        h[i + 1] = test_value(t, GX_VALUE_TEMP, 100);
        test_node(t, &test_make, GX_PHASE_FORWARD,
                  (int32_t[]){ h[i], w[i], -1, h[i + 1], -1 });
    }
    dx[3] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_BACKWARD, (int32_t[]){ h[3], -1, -1, dx[3], -1 });
    for (int i = 2; i >= 0; i--) {
        dw[i] = test_value(t, GX_VALUE_TEMP, 8);
        test_node(t, &test_make, GX_PHASE_BACKWARD,
                  (int32_t[]){ h[i], dx[i + 1], -1, dw[i], -1 });
        dx[i] = i > 0 ? test_value(t, GX_VALUE_TEMP, 100) : -1;
        if (i > 0)
            test_node(t, &test_make, GX_PHASE_BACKWARD,
                      (int32_t[]){ dx[i + 1], w[i], -1, dx[i], -1 });
    }
    const int32_t made = extra ? test_value(t, GX_VALUE_TEMP, 1) : -1;

    if (extra)
        test_node(t, extra, GX_PHASE_OPTIMIZER,
                  extra_args ? (int32_t[]){ dw[0], dw[1], dw[2], made, -1 }
                             : (int32_t[]){ -1, -1, -1, made, -1 });
    for (int i = 2; i >= 0; i--)
        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w[i], dw[i] });
    test_node(t, &test_make, GX_PHASE_STEP,
              (int32_t[]){ dx[1], made, -1, test_value(t, GX_VALUE_TEMP, 8), -1 });
    test_graph_finish(t);
    for (size_t i = 0; i < t->graph.n_nodes; i++)
        test_unit(t, 1, &storing);
    return t;
}

static void assert_waits(const gx_unit *unit, int lane, int32_t first, int32_t second)
{
    assert_int_equal(unit->lane, lane);
    assert_int_equal(unit->n_waits, (first >= 0) + (second >= 0));
    if (first >= 0)
        assert_int_equal(unit->waits[0], first);
    if (second >= 0)
        assert_int_equal(unit->waits[1], second);
}

/* An update waits for its gradient, and for what read its parameter last; that of the
 * first layer, whose input has no gradient, for the gradient alone. */
static void updates_start_on_lane_2_as_their_gradients_come(void **state)
{
    test_graph *t = layers(NULL, NULL);
    const gx_unit *units = t->plan.units;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_layout(&t->plan, 3, true, 0, &err), &err);
    assert_int_equal(t->plan.n_lanes, 3);
    assert_int_equal(t->plan.n_early, 2);
    assert_waits(&units[DW3], 1, 3, -1);
    assert_waits(&units[DX3], 0, -1, -1);
    assert_waits(&units[DW2], 1, DX3, -1);
    assert_waits(&units[EXTRA], 2, DX3, DW3);
    assert_waits(&units[EXTRA + 1], 2, DX2, DW2);
    assert_waits(&units[EXTRA + 2], 2, DW1, -1);
    assert_waits(&units[EXTRA + 3], 0, -1, -1);
    for (size_t u = 0; u < t->plan.n_units; u++) {
        assert_int_equal(units[u].signals, (u >= 3 && u <= DW1));
        if (units[u].lane == 2)
            assert_false(units[u].programmatic_first);
    }
    /* On two lanes they follow the last gradient. */
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    assert_int_equal(t->plan.n_lanes, 2);
    assert_int_equal(t->plan.n_early, 0);
    for (int u = EXTRA; u < EXTRA + 3; u++)
        assert_int_equal(units[u].lane, 1);
    test_graph_free(t);
}

/* What all updates would wait for on lane 2, and need not: a norm that nothing but the
 * end of the step reads stays with the gradients; a rate, which needs nothing, is made
 * there and not behind the backward pass. */
static void nothing_stands_before_the_first_update_on_lane_2(void **state)
{
    test_graph *norm = layers(&test_make, (int32_t[]){ 0 });
    test_graph *rate = layers(&test_make, NULL);
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_layout(&norm->plan, 3, true, 0, &err), &err);
    assert_waits(&norm->plan.units[EXTRA], 1, -1, -1);
    assert_waits(&norm->plan.units[EXTRA + 1], 2, DX3, DW3);
    assert_int_equal(norm->plan.n_early, 2);
    assert_ok(gx_layout(&rate->plan, 3, true, 0, &err), &err);
    assert_waits(&rate->plan.units[EXTRA], 2, -1, -1);
    assert_waits(&rate->plan.units[EXTRA + 1], 2, DX3, DW3);
    assert_int_equal(rate->plan.n_early, 2);
    test_graph_free(rate);
    test_graph_free(norm);
}

/* Then they gain nothing by a lane of their own. */
static void updates_that_wait_for_every_gradient_are_not_early(void **state)
{
    test_graph *t = layers(&test_make, (int32_t[]){ 0 });
    const int32_t norm = t->graph.nodes[EXTRA].arg[TEST_P];
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++) /* as where they are clipped: of the norm, too */
        t->graph.nodes[EXTRA + 1 + i].arg[TEST_G] = norm;
    assert_ok(gx_layout(&t->plan, 3, true, 0, &err), &err);
    assert_int_equal(t->plan.n_lanes, 3);
    assert_waits(&t->plan.units[EXTRA + 1], 2, EXTRA, -1);
    assert_int_equal(t->plan.n_early, 0);
    test_graph_free(t);
}

/* Lane 0 has waited for lane 2, which had waited for lane 1: a second wait says nothing
 * new. */
static void a_wait_passes_on_what_was_waited_for(void **state)
{
    test_graph *t = layers(NULL, NULL);
    const int32_t dw3 = t->graph.nodes[DW3].arg[TEST_P];
    const int32_t w3 = t->graph.nodes[EXTRA].arg[TEST_W];
    const int32_t last = EXTRA + 3;
    gx_error err = { 0 };

    (void)state;
    t->graph.nodes[last].arg[TEST_A] = dw3; /* made on lane 1 */
    t->graph.nodes[last].arg[TEST_B] = w3;  /* updated on lane 2, behind it */
    assert_ok(gx_layout(&t->plan, 3, true, 0, &err), &err);
    assert_waits(&t->plan.units[last], 0, EXTRA, -1);
    test_graph_free(t);
}

static void one_lane_needs_no_waits_and_chains_its_launches(void **state)
{
    test_graph *t = small_training();
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    for (size_t u = 0; u < t->plan.n_units; u++) {
        assert_int_equal(t->plan.units[u].lane, 0);
        assert_int_equal(t->plan.units[u].n_waits, 0);
        assert_false(t->plan.units[u].signals);
        assert_int_equal(t->plan.units[u].programmatic_first, u > 0);
    }
    test_graph_free(t);
}

static void a_read_of_what_was_just_updated_is_a_full_edge(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t w = test_value(t, GX_VALUE_PARAM, 4);
    const int32_t x = test_value(t, GX_VALUE_INPUT, 4);
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 4; i++)
        test_node(t, i == 1 ? &test_update : &test_make, GX_PHASE_FORWARD,
                  i == 1 ? (int32_t[]){ w, x }
                         : (int32_t[]){ w, x, -1, test_value(t, GX_VALUE_TEMP, 4), -1 });
    test_graph_finish(t);
    for (int i = 0; i < 4; i++)
        test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_true(t->plan.units[1].programmatic_first);
    assert_false(t->plan.units[2].programmatic_first); /* reads w, which unit 1 wrote */
    assert_true(t->plan.units[3].programmatic_first);  /* unit 2 was a full edge */
    test_graph_free(t);
}

/* Inputs that nothing in the step writes, and weights until their update; not what was
 * made since the last full edge, nor an input that the step itself fills. */
static void weights_are_steady_until_they_are_updated(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t w = test_value(t, GX_VALUE_PARAM, 4);
    const int32_t x = test_value(t, GX_VALUE_INPUT, 4);
    const int32_t batch = test_value(t, GX_VALUE_INPUT, 4);
    const int32_t h = test_value(t, GX_VALUE_TEMP, 4);
    const int32_t g = test_value(t, GX_VALUE_TEMP, 4);
    const int32_t y = test_value(t, GX_VALUE_TEMP, 4);
    gx_error err = { 0 };

    (void)state;
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, batch, -1 });
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ w, x, batch, h, -1 });
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ h, w, -1, g, -1 });
    test_node(t, &test_update, GX_PHASE_FORWARD, (int32_t[]){ w, g });
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ w, h, batch, y, -1 });
    test_graph_finish(t);
    for (int i = 0; i < 5; i++)
        test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    const gx_unit *units = t->plan.units;

    assert_true(units[0].steady[TEST_A]);
    assert_false(units[0].steady[TEST_B]); /* absent */
    assert_true(units[1].steady[TEST_A] && units[1].steady[TEST_B]);
    assert_false(units[1].steady[TEST_C]);
    assert_false(units[2].steady[TEST_A]);
    assert_true(units[2].steady[TEST_B]);
    assert_false(units[3].steady[TEST_W] || units[3].steady[TEST_G]);
    /* Unit 4 reads what was just updated, which makes its edge full. */
    assert_false(units[4].programmatic_first);
    assert_true(units[4].steady[TEST_A] && units[4].steady[TEST_B]);
    assert_false(units[4].steady[TEST_C]);
    test_graph_free(t);
}

static void a_unit_that_launches_nothing_makes_no_edge(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t w = test_value(t, GX_VALUE_PARAM, 4);
    const int32_t x = test_value(t, GX_VALUE_INPUT, 4);
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 4; i++)
        test_node(
            t, &test_make, GX_PHASE_FORWARD,
            (int32_t[]){ w, x, -1, test_value(t, GX_VALUE_TEMP, i == 0 ? 0 : 4), -1 });
    test_graph_finish(t);
    for (int i = 0; i < 4; i++)
        test_unit(t, 1, &storing)->n_launches = i == 1 ? 0 : 1;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(t->plan.units[i].programmatic_first, i == 3);
    test_graph_free(t);
}

static void a_long_chain_takes_the_memory_of_two_links(void **state)
{
    enum { LINKS = 100000 };
    test_graph *t = test_graph_new();
    int32_t last = test_value(t, GX_VALUE_INPUT, 64);
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < LINKS; i++) {
        const int32_t next = test_value(t, GX_VALUE_TEMP, 64);

        test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ last, -1, -1, next, -1 });
        last = next;
    }
    test_graph_finish(t);
    for (int i = 0; i < LINKS; i++)
        test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_int_equal(t->plan.arena_bytes, 3 * 256);
    assert_int_equal(t->plan.naive_bytes, (LINKS + 1) * 256);
    test_graph_free(t);
}

/* Values of growing size that all die at once leave many free pieces behind. */
static void a_hundred_thousand_values_of_many_sizes_are_placed(void **state)
{
    enum { VALUES = 100000 };
    test_graph *t = test_graph_new();
    test_random random = test_random_start(test_seed());
    gx_error err = { 0 };

    (void)state;
    test_value(t, GX_VALUE_INPUT, 64);
    for (int32_t i = 1; i < VALUES; i++) {
        const int32_t a =
            (int32_t)test_random_int(&random, i > 3000 ? i - 3000 : 0, i - 1);

        test_value(t, GX_VALUE_TEMP, test_random_int(&random, 1, 1 << 20));
        test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ a, i - 1, -1, i, -1 });
    }
    test_graph_finish(t);
    for (int32_t i = 1; i < VALUES; i++)
        test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_true(t->plan.arena_bytes < t->plan.naive_bytes / 10);
    test_graph_free(t);
}

static void sizes_beyond_32_bits_are_counted_right(void **state)
{
    test_graph *t = test_graph_new();
    const int64_t n = INT64_C(1) << 33;
    const int32_t x = test_value(t, GX_VALUE_INPUT, n);
    const int32_t y = test_value(t, GX_VALUE_TEMP, n);
    gx_error err = { 0 };

    (void)state;
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, y, -1 });
    test_graph_finish(t);
    test_unit(t, 1, &storing);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_true(t->plan.arena_bytes == UINT64_C(2) * 4 * (size_t)n);
    assert_ok(gx_layout(&t->plan, 1, true, 8, &err), &err);
    assert_true(t->plan.arena_bytes == UINT64_C(2) * 8 * (size_t)n);

    t->graph.values[x].rank = 2;
    t->graph.values[x].dim[1] = n;
    assert_fails(gx_layout(&t->plan, 1, true, 0, &err), GX_ERR_LIMIT, &err, "v0");
    test_graph_free(t);
}

static void reading_what_another_unit_elided_is_refused(void **state)
{
    test_graph *t = small_training();
    gx_error err = { 0 };

    (void)state;
    t->plan.units[0].elided = gx_arena_alloc(t->plan.arena, GX_MAX_ARGS);
    assert_non_null(t->plan.units[0].elided);
    t->plan.units[0].elided[TEST_P] = true;
    assert_fails(gx_layout(&t->plan, 1, true, 0, &err), GX_ERR_STATE, &err,
                 "never stores");
    test_graph_free(t);
}

static void a_lane_has_the_largest_workspace_of_its_units(void **state)
{
    test_graph *t = small_training();
    gx_error err = { 0 };

    (void)state;
    t->plan.units[0].workspace_bytes = 500;
    t->plan.units[3].workspace_bytes = 900;
    t->plan.units[4].workspace_bytes = 700;
    assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
    assert_int_equal(t->plan.workspace_bytes[0], 700);
    assert_int_equal(t->plan.workspace_bytes[1], 900);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_int_equal(t->plan.workspace_bytes[0], 900);
    assert_int_equal(t->plan.workspace_bytes[1], 0);
    test_graph_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_are_right_on_any_interleaving),
        cmocka_unit_test(without_reuse_nothing_overlaps),
        cmocka_unit_test(weight_gradients_and_their_updates_go_to_lane_1),
        cmocka_unit_test(the_value_of_a_loss_goes_to_lane_1),
        cmocka_unit_test(a_value_made_with_its_derivative_stays_on_lane_0),
        cmocka_unit_test(what_a_unit_reads_of_its_own_is_not_the_path),
        cmocka_unit_test(parts_go_where_their_sum_goes),
        cmocka_unit_test(updates_start_on_lane_2_as_their_gradients_come),
        cmocka_unit_test(nothing_stands_before_the_first_update_on_lane_2),
        cmocka_unit_test(updates_that_wait_for_every_gradient_are_not_early),
        cmocka_unit_test(a_wait_passes_on_what_was_waited_for),
        cmocka_unit_test(one_lane_needs_no_waits_and_chains_its_launches),
        cmocka_unit_test(a_read_of_what_was_just_updated_is_a_full_edge),
        cmocka_unit_test(weights_are_steady_until_they_are_updated),
        cmocka_unit_test(a_unit_that_launches_nothing_makes_no_edge),
        cmocka_unit_test(a_long_chain_takes_the_memory_of_two_links),
        cmocka_unit_test(a_hundred_thousand_values_of_many_sizes_are_placed),
        cmocka_unit_test(sizes_beyond_32_bits_are_counted_right),
        cmocka_unit_test(reading_what_another_unit_elided_is_refused),
        cmocka_unit_test(a_lane_has_the_largest_workspace_of_its_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
