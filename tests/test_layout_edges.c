/* Edges of one lane: which launches may overlap, and which operands nothing writes
 * meanwhile. */
#include "support_plan.h"

static void one_lane_needs_no_waits_and_chains_its_launches(void **state)
{
    test_graph *t = test_small_training();
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
    test_units(t);
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
    test_units(t);
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    const gx_unit *units = t->plan.units;

    assert_true(units[0].steady[TEST_A]);
    assert_false(units[0].steady[TEST_B]); /* absent */
    assert_true(units[1].steady[TEST_A] && units[1].steady[TEST_B]);
    assert_false(units[1].steady[TEST_C]);
    assert_false(units[2].steady[TEST_A]);
    assert_true(units[2].steady[TEST_B]);
    /* It alone writes the weight, in place. */
    assert_true(units[3].steady[TEST_W]);
    assert_false(units[3].steady[TEST_G]);
    /* Unit 4 reads what was just updated, which makes its edge full. */
    assert_false(units[4].programmatic_first);
    assert_true(units[4].steady[TEST_A] && units[4].steady[TEST_B]);
    assert_false(units[4].steady[TEST_C]);
    test_graph_free(t);
}

/* A unit that updates a weight twice has one kernel read what the other wrote. */
static void what_is_updated_twice_is_not_steady(void **state)
{
    static const bool one_unit[] = { false, true };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(one_unit); i++) {
        test_graph *t = test_graph_new();
        const int32_t w = test_value(t, GX_VALUE_PARAM, 4);
        const int32_t g = test_value(t, GX_VALUE_INPUT, 4);
        gx_error err = { 0 };

        for (int update = 0; update < 2; update++)
            test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w, g });
        test_graph_finish(t);
        if (one_unit[i])
            test_unit(t, 2, &test_storing);
        else
            test_units(t);
        assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
        const gx_unit *units = t->plan.units;

        if (one_unit[i]) {
            assert_false(units[0].steady[TEST_W]);
            assert_false(units[0].steady[GX_MAX_ARGS + TEST_W]);
            assert_true(units[0].steady[TEST_G]);
        } else {
            assert_true(units[0].steady[TEST_W]);
            /* The edge is full, since the weight was just written. */
            assert_false(units[1].programmatic_first);
            assert_true(units[1].steady[TEST_W]);
        }
        test_graph_free(t);
    }
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
        test_unit(t, 1, &test_storing)->n_launches = i == 1 ? 0 : 1;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(t->plan.units[i].programmatic_first, i == 3);
    test_graph_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lane_needs_no_waits_and_chains_its_launches),
        cmocka_unit_test(a_read_of_what_was_just_updated_is_a_full_edge),
        cmocka_unit_test(weights_are_steady_until_they_are_updated),
        cmocka_unit_test(what_is_updated_twice_is_not_steady),
        cmocka_unit_test(a_unit_that_launches_nothing_makes_no_edge),
    };

    return cmocka_run_group_tests_name("layout_edges", tests, NULL, NULL);
}
