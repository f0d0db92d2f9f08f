/* Lanes: what goes beside the passes, what waits for what, and which updates are early.
 */
#include "support_plan.h"

static void weight_gradients_and_their_updates_go_to_lane_1(void **state)
{
    test_graph *t = test_small_training();
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
    test_units(t);
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

/* Gradients of all weights with their updates, behind the whole way back: nothing is left
 * to run beside. Without the last gradient, or without an update, they are beside. */
static void the_last_gradient_with_its_update_stays_on_lane_0(void **state)
{
    static const struct {
        bool reads_last, updates;
        int lane;
    } cases[] = { { true, true, 0 }, { false, true, 1 }, { true, false, 1 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_graph *t = test_graph_new();
        const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
        const int32_t w = test_value(t, GX_VALUE_PARAM, 8);
        int32_t dx[3], dw;
        gx_error err = { 0 };

        for (int d = 0; d < 3; d++) {
            dx[d] = test_value(t, GX_VALUE_TEMP, 100);
            test_node(t, &test_make, GX_PHASE_BACKWARD,
                      (int32_t[]){ d ? dx[d - 1] : x, -1, -1, dx[d], -1 });
        }
        dw = test_value(t, GX_VALUE_TEMP, 100);
        test_node(t, &test_make, GX_PHASE_BACKWARD,
                  (int32_t[]){ dx[cases[i].reads_last ? 1 : 0], -1, -1, dw, -1 });
        test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, dw });
        test_graph_finish(t);
        for (int u = 0; u < 3; u++) /* nothing goes on from the third */
            test_unit(t, 1, &test_storing);
        test_unit(t, cases[i].updates ? 2 : 1, &test_storing);
        if (!cases[i].updates)
            test_unit(t, 1, &test_storing);
        assert_ok(gx_layout(&t->plan, 2, true, 0, &err), &err);
        assert_int_equal(t->plan.units[3].lane, cases[i].lane);
        test_graph_free(t);
    }
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
    test_unit(t, 2, &test_storing);
    test_unit(t, 1, &test_storing);
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
        test_unit(t, 2, i ? &test_eliding : &test_storing);
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
        test_units(t);
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
    test_units(t);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weight_gradients_and_their_updates_go_to_lane_1),
        cmocka_unit_test(the_value_of_a_loss_goes_to_lane_1),
        cmocka_unit_test(the_last_gradient_with_its_update_stays_on_lane_0),
        cmocka_unit_test(a_value_made_with_its_derivative_stays_on_lane_0),
        cmocka_unit_test(what_a_unit_reads_of_its_own_is_not_the_path),
        cmocka_unit_test(parts_go_where_their_sum_goes),
        cmocka_unit_test(updates_start_on_lane_2_as_their_gradients_come),
        cmocka_unit_test(nothing_stands_before_the_first_update_on_lane_2),
        cmocka_unit_test(updates_that_wait_for_every_gradient_are_not_early),
        cmocka_unit_test(a_wait_passes_on_what_was_waited_for),
    };

    return cmocka_run_group_tests_name("layout_lanes", tests, NULL, NULL);
}
