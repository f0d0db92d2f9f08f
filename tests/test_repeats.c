/* Alternatives whose pattern may stand several times in one group. */
#include <stdio.h>
#include <string.h>

#include "select.h"
#include "support_plan.h"

static const char *const make_only[] = { "make", NULL };
static const char *const bend_only[] = { "bend", NULL };
static const char *const update_only[] = { "update", NULL };
static const char *const make_bend[] = { "make", "bend", NULL };
static const char *const bend_update[] = { "bend", "update", NULL };

static int most; /* that one group takes */

static int takes(const gx_group *run)
{
    const int n = run->n_calls / 2;

    assert_int_equal(run->n_calls % 2, 0);
    assert_string_equal(gx_op_name(run->call[0].op), "make");
    return n < most ? n : most;
}

static const gx_alternative table[] = {
    { .name = "plain", .pattern = make_only, .strict = true },
    { .name = "bender", .pattern = bend_only, .strict = true },
    { .name = "single", .pattern = update_only, .strict = true },
    { .name = "chain", .pattern = make_bend, .repeat = GX_REPEAT_ALL, .takes = takes },
    { .name = "end", .pattern = bend_update },
    { .name = "trial", .pattern = bend_update, .trial = true },
    { .name = NULL },
};
enum { CHAIN = 3 };

static const gx_alternative *table_at(size_t i)
{
    return table[i].name ? &table[i] : NULL;
}

static double end_us;

/* A chain costs 1 and 0.1 for each pattern in it, anything else that is one op 3. */
static gx_status examine(const gx_selector *selector, const gx_site *site,
                         gx_candidate *candidate, double best_us, gx_error *err)
{
    const char *name = candidate->alternative->name;

    (void)selector;
    (void)best_us;
    (void)err;
    candidate->n_launches = 1;
    if (strcmp(name, "chain") == 0)
        candidate->us = 1 + 0.05 * site->n;
    else if (strcmp(name, "end") == 0)
        candidate->us = end_us;
    else
        candidate->us = strcmp(name, "trial") == 0 ? 0.01 : 3;
    return GX_OK;
}

/* `n` times make and bend, and an update of what comes out. */
static test_graph *chain_of(int n)
{
    test_graph *t = test_graph_new();
    int32_t last = test_value(t, GX_VALUE_INPUT, 8);

    for (int i = 0; i < 2 * n; i++) {
        const int32_t next = test_value(t, GX_VALUE_TEMP, 8);

        test_node(t, i % 2 ? &test_bend : &test_make, GX_PHASE_FORWARD,
                  (int32_t[]){ last, -1, -1, next, -1 });
        last = next;
    }
    test_node(t, &test_update, GX_PHASE_OPTIMIZER,
              (int32_t[]){ test_value(t, GX_VALUE_PARAM, 8), last });
    test_graph_finish(t);
    most = GX_MAX_REPEATS;
    end_us = 100;
    return t;
}

/* "chain:4 single:1": how the units are named, and how many nodes each has. */
static void assert_units(test_graph *t, const char *force, const char *expected)
{
    const gx_selector selector = { .graph = &t->graph,
                                   .arena = t->plan.arena,
                                   .alternative_at = table_at,
                                   .measure = true,
                                   .examine = examine,
                                   .force = force };
    gx_error err = { 0 };
    char text[512] = "";

    assert_ok(gx_select(&selector, &t->plan, &err), &err);
    for (size_t i = 0; i < t->plan.n_units; i++) {
        const size_t used = strlen(text);

        snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " " : "",
                 t->plan.units[i].alternative->name, (int)t->plan.units[i].n_nodes);
    }
    assert_string_equal(text, expected);
}

static void a_pattern_stands_at_least_twice(void **state)
{
    test_graph *t = chain_of(3);
    const gx_graph *g = &t->graph;

    (void)state;
    assert_int_equal(gx_match_length(g, &table[CHAIN], 0), 6);
    assert_int_equal(gx_match_length(g, &table[CHAIN], 2), 4);
    assert_int_equal(gx_match_length(g, &table[CHAIN], 4), 0);
    assert_int_equal(gx_match_length(g, &table[CHAIN], 1), 0);
    assert_true(gx_match_pattern(g, &table[CHAIN], 0, 4));
    assert_false(gx_match_pattern(g, &table[CHAIN], 0, 2));
    assert_false(gx_match_pattern(g, &table[CHAIN], 0, 5));
    assert_false(gx_match_pattern(g, &table[CHAIN], 0, 8));
    test_graph_free(t);
}

static void one_group_covers_what_it_takes_and_one_pattern_less(void **state)
{
    test_graph *t = chain_of(5);
    const gx_graph *g = &t->graph;

    (void)state;
    most = 4;
    assert_int_equal(gx_match_length(g, &table[CHAIN], 0), 8);
    assert_int_equal(gx_match_shorter(&table[CHAIN], 8), 6);
    assert_int_equal(gx_match_shorter(&table[CHAIN], 4), 0);
    assert_int_equal(gx_match_shorter(&table[CHAIN], 0), 0);
    assert_int_equal(gx_match_shorter(&table[0], 6), 0);
    assert_true(gx_match_covers(g, &table[CHAIN], 0, 8));
    assert_true(gx_match_covers(g, &table[CHAIN], 0, 6));
    assert_false(gx_match_covers(g, &table[CHAIN], 0, 10));
    most = 1;
    assert_int_equal(gx_match_length(g, &table[CHAIN], 0), 0);
    assert_false(gx_match_covers(g, &table[CHAIN], 0, 4));
    test_graph_free(t);
}

static void a_run_is_cut_where_a_group_is_full(void **state)
{
    test_graph *t = chain_of(7);

    (void)state;
    most = 3;
    assert_units(t, NULL, "chain:6 chain:6 plain:1 bender:1 single:1");
    test_graph_free(t);
    t = chain_of(GX_MAX_REPEATS + 2);
    assert_units(t, NULL, "chain:64 chain:4 single:1");
    test_graph_free(t);
}

static void the_last_pattern_may_go_with_what_follows(void **state)
{
    test_graph *t = chain_of(4);

    (void)state;
    assert_units(t, NULL, "chain:8 single:1");
    end_us = 0.02;
    assert_units(t, NULL, "chain:6 plain:1 end:2");
    assert_units(t, "chain", "chain:8 single:1");
    assert_units(t, "end", "chain:6 plain:1 end:2");
    test_graph_free(t);
}

static void what_is_on_trial_is_taken_where_it_is_forced(void **state)
{
    test_graph *t = chain_of(1);

    (void)state;
    assert_units(t, NULL, "plain:1 bender:1 single:1");
    assert_string_equal(t->plan.units[1].rejected[1].reason,
                        "on trial: taken only where it is forced");
    assert_units(t, "trial", "plain:1 trial:2");
    assert_units(t, "plain,trial", "plain:1 trial:2");
    assert_units(t, "tria", "plain:1 bender:1 single:1");
    test_graph_free(t);
}

static void names_in_a_list_are_whole(void **state)
{
    (void)state;
    assert_true(gx_is_forced("a,bc,d", "a"));
    assert_true(gx_is_forced("a,bc,d", "bc"));
    assert_true(gx_is_forced("a,bc,d", "d"));
    assert_false(gx_is_forced("a,bc,d", "b"));
    assert_false(gx_is_forced("a,bc,d", "c"));
    assert_false(gx_is_forced("a,bc,d", "bc,d"));
    assert_false(gx_is_forced(NULL, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_stands_at_least_twice),
        cmocka_unit_test(one_group_covers_what_it_takes_and_one_pattern_less),
        cmocka_unit_test(a_run_is_cut_where_a_group_is_full),
        cmocka_unit_test(the_last_pattern_may_go_with_what_follows),
        cmocka_unit_test(what_is_on_trial_is_taken_where_it_is_forced),
        cmocka_unit_test(names_in_a_list_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
