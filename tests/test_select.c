/* Selection over a table of alternatives that only pretend. */
#include <stdlib.h>
#include <string.h>

#include "select.h"
#include "support_plan.h"

/* --- a table that pretends --- */

static const char *const make_only[] = { "make", NULL };
static const char *const bend_only[] = { "bend", NULL };
static const char *const update_only[] = { "update", NULL };
static const char *const make_bend[] = { "make", "bend", NULL };
static const char *const make_bend_make[] = { "make", "bend", "make", NULL };

static const char *refuses_small(const gx_group *group, const gx_ctx *ctx)
{
    (void)ctx;
    return group->call[0].arg[TEST_P].dim[0] < 10 ? "too small for it" : NULL;
}

static const gx_alternative table[] = {
    { .name = "plain", .pattern = make_only, .strict = true },
    { .name = "tile", .pattern = make_only, .refuses = refuses_small },
    { .name = "bender", .pattern = bend_only, .strict = true },
    { .name = "single", .pattern = update_only, .strict = true },
    { .name = "pair", .pattern = make_bend, .elides = true },
    { .name = "triple", .pattern = make_bend_make },
    { .name = "multi", .pattern = update_only, .repeat = GX_REPEAT_LAST },
    { .name = NULL },
};

static const gx_alternative *table_at(size_t i)
{
    return table[i].name ? &table[i] : NULL;
}

/* Times by name; a time below zero: the candidate fails its check. */
typedef struct prices {
    double plain, tile, bender, single, pair, triple, multi;
    int n_examined;
} prices;

static double price(const prices *p, const char *name)
{
    const struct {
        const char *name;
        double us;
    } list[] = { { "plain", p->plain },   { "tile", p->tile }, { "bender", p->bender },
                 { "single", p->single }, { "pair", p->pair }, { "triple", p->triple },
                 { "multi", p->multi } };

    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        if (strcmp(list[i].name, name) == 0)
            return list[i].us;
    }
    return -1;
}

static gx_status examine(const gx_selector *selector, const gx_site *site,
                         gx_candidate *candidate, double best_us, gx_error *err)
{
    prices *p = selector->user;
    const double us = price(p, candidate->alternative->name);

    (void)site;
    (void)best_us;
    (void)err;
    p->n_examined++;
    candidate->n_launches = 1;
    candidate->workspace_bytes = 64;
    candidate->over_tolerance =
        us < 0 && gx_is_forced(selector->force, candidate->alternative->name);
    if (candidate->over_tolerance)
        candidate->us = -us;
    else if (selector->measure && us < 0)
        candidate->refused = "error 3e-1 over tolerance 1e-3";
    else if (selector->measure)
        candidate->us = us;
    return GX_OK;
}

/* make(100), bend, make(100), bend, update x 3, make(4) */
static test_graph *program(void)
{
    test_graph *t = test_graph_new();
    int32_t last = test_value(t, GX_VALUE_INPUT, 100);

    for (int i = 0; i < 4; i++) {
        const int32_t next = test_value(t, GX_VALUE_TEMP, 100);

        test_node(t, i % 2 ? &test_bend : &test_make, GX_PHASE_FORWARD,
                  (int32_t[]){ last, -1, -1, next, -1 });
        last = next;
    }
    for (int i = 0; i < 3; i++)
        test_node(t, &test_update, GX_PHASE_OPTIMIZER,
                  (int32_t[]){ test_value(t, GX_VALUE_PARAM, 100), last });
    test_node(t, &test_make, GX_PHASE_STEP,
              (int32_t[]){ last, -1, -1, test_value(t, GX_VALUE_TEMP, 4), -1 });
    test_graph_finish(t);
    return t;
}

static gx_selector selector_of(test_graph *t, prices *p)
{
    return (gx_selector){
        .graph = &t->graph,
        .arena = t->plan.arena,
        .alternative_at = table_at,
        .measure = true,
        .examine = examine,
        .user = p,
    };
}

/* "pair pair multi plain" */
static void assert_units(const test_graph *t, const char *expected)
{
    char text[256] = "";

    for (size_t i = 0; i < t->plan.n_units; i++) {
        strcat(text, i ? " " : "");
        strcat(text, t->plan.units[i].alternative->name);
    }
    assert_string_equal(text, expected);
}

static const prices usual = {
    .plain = 3, .tile = 4, .bender = 2, .single = 2, .pair = 4, .triple = 20, .multi = 3
};

static void the_fastest_way_through_all_nodes_is_taken(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "pair pair multi plain");
    assert_int_equal(t->plan.units[2].n_nodes, 3);
    assert_true(t->plan.units[0].us == 4);
    assert_int_equal(t->plan.units[0].workspace_bytes, 64);
    assert_int_equal(t->plan.info.n_measured, 4);
    assert_non_null(t->plan.units[0].elided);
    assert_true(t->plan.units[0].elided[TEST_P]);
    assert_null(t->plan.units[2].elided);
    test_graph_free(t);
}

static const gx_alternative two_makers[] = {
    { .name = "plain", .pattern = make_only, .strict = true, .library = true },
    { .name = "tile", .pattern = make_only },
};

static const gx_alternative *two_makers_at(size_t i)
{
    return i < ARRAY_SIZE(two_makers) ? &two_makers[i] : NULL;
}

static void a_library_has_to_be_faster_by_what_its_launch_costs(void **state)
{
    static const struct {
        double library_us, own_us;
        bool measure;
        const char *taken, *why_not; /* the other one */
    } cases[] = {
        { 3, 3.5, true, "tile", "slower with what a library's launch costs" },
        { 3, 4, true, "plain", "slower" },
        { 3, 3, true, "tile", "slower with what a library's launch costs" },
        { 3, 2, true, "tile", "slower" },
        { 3, 3, false, "plain", "later in the table" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_graph *t = test_graph_new();
        prices p = { .plain = cases[i].library_us, .tile = cases[i].own_us };
        gx_error err = { 0 };

        test_node(t, &test_make, GX_PHASE_FORWARD,
                  (int32_t[]){ test_value(t, GX_VALUE_INPUT, 100), -1, -1,
                               test_value(t, GX_VALUE_TEMP, 100), -1 });
        test_graph_finish(t);
        gx_selector s = selector_of(t, &p);

        s.alternative_at = two_makers_at;
        s.measure = cases[i].measure;
        assert_ok(gx_select(&s, &t->plan, &err), &err);
        assert_units(t, cases[i].taken);
        assert_int_equal(t->plan.units[0].n_rejected, 1);
        assert_string_equal(t->plan.units[0].rejected[0].reason, cases[i].why_not);
        test_graph_free(t);
    }
}

static void a_unit_moves_what_leaves_it(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    /* 400 bytes in and 400 out; the 400 between are neither written nor read. */
    assert_int_equal(gx_plan_unit(&t->plan, 0).n_nodes, 2);
    assert_true(gx_plan_unit(&t->plan, 0).bytes == 800);
    /* Three tensors read and written in place, and three that are read. */
    assert_true(gx_plan_unit(&t->plan, 2).bytes == 3 * (2 * 400 + 400));
    test_graph_free(t);
}

/* What two ops of one kernel read is read once, and what the first makes and others want
 * too is written and not read. */
static void a_unit_reads_once_what_its_ops_share(void **state)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    const int32_t y = test_value(t, GX_VALUE_TEMP, 100);
    const int32_t z = test_value(t, GX_VALUE_TEMP, 100);
    prices p = usual;
    gx_error err = { 0 };

    (void)state;
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, y, -1 });
    test_node(t, &test_bend, GX_PHASE_FORWARD, (int32_t[]){ y, x, -1, z, -1 });
    test_graph_finish(t);
    t->graph.values[y].is_output = true;
    t->graph.values[z].is_output = true;

    gx_selector s = selector_of(t, &p);

    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_int_equal(gx_plan_unit(&t->plan, 0).n_nodes, 2);
    assert_true(gx_plan_unit(&t->plan, 0).bytes == 3 * 400);
    test_graph_free(t);
}

static void parts_win_where_they_are_faster(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.pair = 6;
    p.tile = 1;
    p.single = 0.5;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "tile bender tile bender single single single plain");
    test_graph_free(t);
}

/* make, make, bend, make: what the second makes the last goes on from; nobody reads what
 * the third makes but the log. */
static test_graph *with_a_value_beside(void)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 100);
    int32_t made[4];

    for (int i = 0; i < 4; i++)
        made[i] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, -1, -1, made[0], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ made[0], -1, -1, made[1], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ made[0], -1, -1, made[2], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ made[1], -1, -1, made[3], -1 });
    t->graph.values[made[2]].is_output = true;
    test_graph_finish(t);
    return t;
}

/* Apart it is 3 + 4, together 6: by time alone together is better. Beside the passes the
 * 4 count for half, and so do the 3 of the last, in either case. */
static void what_runs_beside_the_passes_costs_less(void **state)
{
    static const struct {
        double bender, pair;
        bool beside;
        const char *units;
    } cases[] = {
        { 4, 6, false, "plain pair plain" },
        { 4, 6, true, "plain plain bender plain" },
        { 4, 4.9, true, "plain pair plain" },
        { 5.9, 6, true, "plain plain bender plain" },
        { 6.1, 6, true, "plain pair plain" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_graph *t = with_a_value_beside();
        prices p = usual;
        gx_selector s = selector_of(t, &p);
        gx_error err = { 0 };

        p.bender = cases[i].bender;
        p.pair = cases[i].pair;
        s.beside = cases[i].beside;
        assert_ok(gx_select(&s, &t->plan, &err), &err);
        assert_units(t, cases[i].units);
        test_graph_free(t);
    }
}

/* The weight is of the choice: what is told of a unit is its time. */
static void a_unit_beside_the_passes_keeps_its_time(void **state)
{
    test_graph *t = with_a_value_beside();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.pair = 100;
    s.beside = true;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "plain plain bender plain");
    assert_true(t->plan.units[2].us == p.bender);
    test_graph_free(t);
}

/* The pair at the second node would stop a longer group from its first node. */
static void a_longer_group_may_beat_two_good_parts(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.triple = 4.5;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "triple bender multi plain");
    test_graph_free(t);
}

static void equal_sites_are_measured_once(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    /* make(100): plain, tile; bend; make bend; make bend make; update; update x 3;
     * make(4): plain, for tile refuses before it is examined */
    assert_int_equal(p.n_examined, 2 + 1 + 1 + 1 + 1 + 1 + 1);
    test_graph_free(t);
}

static const gx_rejected *find_rejected(const gx_unit *unit, const char *name)
{
    for (size_t i = 0; i < unit->n_rejected; i++) {
        if (strcmp(unit->rejected[i].alternative, name) == 0)
            return &unit->rejected[i];
    }
    fail_msg("'%s' is not among the rejected", name);
    return NULL;
}

static void what_was_rejected_is_kept_with_reason_and_time(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.triple = -1;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    const gx_unit *pair = &t->plan.units[0];
    const gx_unit *last = &t->plan.units[3];

    assert_true(find_rejected(pair, "tile (make)")->us == 4);
    assert_string_equal(find_rejected(pair, "tile (make)")->reason, "slower");
    assert_has(find_rejected(pair, "triple (make to make)")->reason, "over tolerance");
    assert_has(find_rejected(last, "tile")->reason, "does not apply: too small for it");
    assert_true(find_rejected(last, "tile")->us < 0);
    test_graph_free(t);
}

static void an_unfused_plan_has_every_op_by_itself(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    s.unfused = true;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "plain bender plain bender single single single plain");
    test_graph_free(t);
}

static void a_forced_alternative_is_taken_wherever_it_applies(void **state)
{
    static const struct {
        const char *name, *units;
        size_t n;
    } cases[] = {
        { "tile", "tile bender tile bender multi plain", 2 },
        { "triple", "triple bender multi plain", 1 },
        { "single", "pair pair single single single plain", 3 },
        { "multi", "pair pair multi plain", 1 },
        { "plain", "plain bender plain bender multi plain", 3 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_graph *t = program();
        prices p = usual;
        gx_selector s = selector_of(t, &p);
        gx_error err = { 0 };

        s.force = cases[i].name;
        assert_ok(gx_select(&s, &t->plan, &err), &err);
        assert_units(t, cases[i].units);
        assert_int_equal(t->plan.info.n_forced, cases[i].n);
        test_graph_free(t);
    }
}

static void without_measuring_the_first_in_the_table_is_taken(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    s.measure = false;
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "plain bender plain bender single single single plain");
    assert_int_equal(t->plan.info.n_measured, 0);
    assert_true(t->plan.units[0].us < 0);
    s.force = "multi";
    assert_ok(gx_select(&s, &t->plan, &err), &err);
    assert_units(t, "plain bender plain bender multi plain");
    test_graph_free(t);
}

static void an_op_that_nothing_runs_is_named_with_the_reason(void **state)
{
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.bender = -1;
    p.pair = -1;
    assert_fails(gx_select(&s, &t->plan, &err), GX_ERR_UNSUPPORTED, &err, "(bend)");
    assert_has(err.message, "over tolerance");
    test_graph_free(t);
}

static void what_the_cache_knows_is_not_measured_again(void **state)
{
    const gx_device_info device = { .name = "Card 1",
                                    .cc_major = 9,
                                    .driver_version = 13000 };
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };
    char *folder = test_path("cache/of/mine");

    (void)state;
    for (int round = 0; round < 2; round++) {
        p.n_examined = 0;
        p.pair = round == 0 ? 4 : 1000; /* what is remembered counts */
        p.triple = -1;
        assert_ok(gx_cache_open(folder, &device, &s.cache, &err), &err);
        assert_null(gx_cache_note(s.cache));
        memset(&t->plan.info, 0, sizeof t->plan.info);
        assert_ok(gx_select(&s, &t->plan, &err), &err);
        assert_units(t, "pair pair multi plain");
        assert_int_equal(p.n_examined > 0, round == 0);
        assert_int_equal(t->plan.info.n_cached, round * 4);
        assert_int_equal(t->plan.info.n_measured, (1 - round) * 4);
        assert_has(find_rejected(&t->plan.units[0], "triple (make to make)")->reason,
                   "over tolerance");
        gx_cache_save(s.cache);
        assert_null(gx_cache_note(s.cache));
        gx_cache_close(s.cache);
    }
    free(folder);
    test_graph_free(t);
}

/* What is over the tolerance is taken where it is forced, whatever the cache knows, and
 * there alone, whatever was forced before. */
static void what_force_alone_accepts_is_not_remembered(void **state)
{
    static const char *const forces[] = { "triple", NULL, "triple" };
    const gx_device_info device = { .name = "Card 1" };
    test_graph *t = program();
    prices p = usual;
    gx_selector s = selector_of(t, &p);
    gx_error err = { 0 };

    (void)state;
    p.triple = -1;
    assert_ok(gx_cache_open("", &device, &s.cache, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(forces); i++) {
        s.force = forces[i];
        assert_ok(gx_select(&s, &t->plan, &err), &err);
        assert_units(t,
                     forces[i] ? "triple bender multi plain" : "pair pair multi plain");
    }
    gx_cache_close(s.cache);
    test_graph_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_way_through_all_nodes_is_taken),
        cmocka_unit_test(a_unit_moves_what_leaves_it),
        cmocka_unit_test(a_unit_reads_once_what_its_ops_share),
        cmocka_unit_test(parts_win_where_they_are_faster),
        cmocka_unit_test(what_runs_beside_the_passes_costs_less),
        cmocka_unit_test(a_unit_beside_the_passes_keeps_its_time),
        cmocka_unit_test(a_longer_group_may_beat_two_good_parts),
        cmocka_unit_test(equal_sites_are_measured_once),
        cmocka_unit_test(what_was_rejected_is_kept_with_reason_and_time),
        cmocka_unit_test(an_unfused_plan_has_every_op_by_itself),
        cmocka_unit_test(a_library_has_to_be_faster_by_what_its_launch_costs),
        cmocka_unit_test(a_forced_alternative_is_taken_wherever_it_applies),
        cmocka_unit_test(without_measuring_the_first_in_the_table_is_taken),
        cmocka_unit_test(an_op_that_nothing_runs_is_named_with_the_reason),
        cmocka_unit_test(what_the_cache_knows_is_not_measured_again),
        cmocka_unit_test(what_force_alone_accepts_is_not_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
