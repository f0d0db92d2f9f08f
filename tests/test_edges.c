/* Which programmatic edges a plan has, and which of them are equal. */
#include "edges.h"

#include "support_plan.h"

static const char *const any[] = { "make", NULL };
static const gx_alternative one = { .name = "one", .pattern = any };
static const gx_alternative other = { .name = "other", .pattern = any };

enum { N_UNITS = 8 };

/* A chain of units that launch one kernel each. */
static test_graph *chain(void)
{
    test_graph *t = test_graph_new();
    int32_t last = test_value(t, GX_VALUE_INPUT, 4);

    for (int i = 0; i < N_UNITS; i++) {
        const int32_t next = test_value(t, GX_VALUE_TEMP, 4);

        test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ last, -1, -1, next, -1 });
        last = next;
    }
    test_graph_finish(t);
    for (int i = 0; i < N_UNITS; i++) {
        gx_unit *unit = test_unit(t, 1, &one);

        unit->key = i == 5 ? "large" : "small";
        unit->n_launches = 1;
    }
    return t;
}

static size_t list(const test_graph *t, gx_edge *edges, int32_t *n_sets)
{
    size_t n_edges = 0;
    gx_error err = { 0 };

    assert_ok(gx_edges_list(&t->plan, edges, &n_edges, n_sets, &err), &err);
    return n_edges;
}

static void equal_edges_are_one_set(void **state)
{
    /* small -> small five times, small -> large, large -> small; one alternative differs
     */
    static const int32_t sets[] = { 0, 1, 2, 0, 3, 4, 0 };
    test_graph *t = chain();
    gx_edge edges[N_UNITS];
    int32_t n_sets;
    gx_error err = { 0 };

    (void)state;
    t->plan.units[2].alternative = &other;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_int_equal(list(t, edges, &n_sets), N_UNITS - 1);
    assert_int_equal(n_sets, 5);
    for (int32_t i = 0; i < N_UNITS - 1; i++) {
        assert_int_equal(edges[i].before, i);
        assert_int_equal(edges[i].unit, i + 1);
        assert_int_equal(edges[i].set, sets[i]);
    }
    test_graph_free(t);
}

static void units_that_launch_nothing_are_passed_over(void **state)
{
    test_graph *t = chain();
    gx_edge edges[N_UNITS];
    int32_t n_sets;
    gx_error err = { 0 };

    (void)state;
    t->plan.units[3].n_launches = 0;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    assert_int_equal(list(t, edges, &n_sets), N_UNITS - 2);
    assert_int_equal(edges[2].before, 2);
    assert_int_equal(edges[2].unit, 4);
    test_graph_free(t);
}

static void a_full_edge_and_another_lane_have_none(void **state)
{
    test_graph *t = chain();
    gx_edge edges[N_UNITS];
    int32_t n_sets;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    t->plan.units[2].lane = 1;
    t->plan.units[2].programmatic_first = false;
    t->plan.units[6].lane = 1;
    t->plan.units[4].programmatic_first = false;
    t->plan.units[3].full_edge = true; /* could be programmatic: it is listed */
    assert_int_equal(list(t, edges, &n_sets), 5);
    static const int32_t ends[][2] = { { 0, 1 }, { 1, 3 }, { 4, 5 }, { 2, 6 }, { 5, 7 } };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(edges[i].before, ends[i][0]);
        assert_int_equal(edges[i].unit, ends[i][1]);
    }
    /* 1 -> 3 is as 0 -> 1; 2 -> 6 is on the other lane. */
    assert_int_equal(edges[1].set, edges[0].set);
    assert_int_not_equal(edges[3].set, edges[0].set);
    test_graph_free(t);
}

/* The first launch of a lane follows nothing on it. */
static void each_lane_begins_without_an_edge(void **state)
{
    test_graph *t = chain();
    gx_edge edges[N_UNITS];
    int32_t n_sets;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_layout(&t->plan, 1, true, 0, &err), &err);
    for (int lane = 1; lane < GX_MAX_LANES; lane++) {
        t->plan.units[3].lane = lane;
        assert_true(t->plan.units[3].programmatic_first);
        const size_t n = list(t, edges, &n_sets);

        assert_int_equal(n, N_UNITS - 2);
        for (size_t i = 0; i < n; i++)
            assert_true(edges[i].unit != 3 && edges[i].before != 3);
    }
    test_graph_free(t);
}

static void a_plan_for_the_cpu_has_nothing_to_measure(void **state)
{
    test_graph *t = chain();
    gx_edge_info infos[N_UNITS];
    size_t n_infos = 7;
    gx_error err = { 0 };

    (void)state;
    t->plan.device = GX_CPU;
    assert_fails(gx_plan_measure_edges(&t->plan, infos, &n_infos, &err), GX_ERR_NO_DEVICE,
                 &err, "for the CPU");
    assert_int_equal(n_infos, 0);
    test_graph_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_edges_are_one_set),
        cmocka_unit_test(units_that_launch_nothing_are_passed_over),
        cmocka_unit_test(a_full_edge_and_another_lane_have_none),
        cmocka_unit_test(each_lane_begins_without_an_edge),
        cmocka_unit_test(a_plan_for_the_cpu_has_nothing_to_measure),
    };

    return cmocka_run_group_tests_name("test_edges", tests, NULL, NULL);
}
