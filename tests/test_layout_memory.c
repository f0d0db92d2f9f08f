/* Memory of long, large and odd programs: places, workspaces, and what never has one. */
#include "support_plan.h"

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
    test_units(t);
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
    test_units(t);
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
    test_unit(t, 1, &test_storing);
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
    test_graph *t = test_small_training();
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
    test_graph *t = test_small_training();
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
        cmocka_unit_test(a_long_chain_takes_the_memory_of_two_links),
        cmocka_unit_test(a_hundred_thousand_values_of_many_sizes_are_placed),
        cmocka_unit_test(sizes_beyond_32_bits_are_counted_right),
        cmocka_unit_test(reading_what_another_unit_elided_is_refused),
        cmocka_unit_test(a_lane_has_the_largest_workspace_of_its_units),
    };

    return cmocka_run_group_tests_name("layout_memory", tests, NULL, NULL);
}
