/* Updates cut into chunks: where, and what is found out about each. */
#include <string.h>

#include "select.h"
#include "support_plan.h"

enum { MOST = 8, LAYERS = 16, WIDE = 512 * 512, NARROW = 512 };

/* No chunk moves less; an update of n f32 moves 12 n bytes. */
static const double LEAST = 4 << 20;

static const char *const make_only[] = { "make", NULL };
static const char *const update_only[] = { "update", NULL };

static const gx_alternative plain = { .name = "plain", .pattern = make_only };
static const gx_alternative single = { .name = "single", .pattern = update_only };
static const gx_alternative multi = { .name = "multi",
                                      .pattern = update_only,
                                      .repeat = GX_REPEAT_LAST };
static const gx_alternative eliding = {
    .name = "multi", .pattern = update_only, .repeat = GX_REPEAT_LAST, .elides = true
};

/* A node, and one unit of the updates of parameters of these sizes. */
static test_graph *program(const int64_t *sizes, int n, gx_phase phase,
                           const gx_alternative *alternative)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8);

    test_node(t, &test_make, GX_PHASE_FORWARD,
              (int32_t[]){ x, -1, -1, test_value(t, GX_VALUE_TEMP, 8), -1 });
    for (int i = 0; i < n; i++) {
        const int32_t w = test_value(t, GX_VALUE_PARAM, sizes[i]);

        test_node(t, &test_update, phase,
                  (int32_t[]){ w, test_value(t, GX_VALUE_INPUT, sizes[i]) });
    }
    test_graph_finish(t);
    test_unit(t, 1, &plain)->key = "plain";
    test_unit(t, n, alternative)->key = "whole";
    t->plan.units[1].us = 45;
    t->plan.units[1].n_launches = 1;
    return t;
}

/* A small tensor before each large one. */
static test_graph *equal_layers(void)
{
    int64_t sizes[2 * LAYERS];

    for (int i = 0; i < LAYERS; i++) {
        sizes[2 * i] = NARROW;
        sizes[2 * i + 1] = WIDE;
    }
    return program(sizes, 2 * LAYERS, GX_PHASE_OPTIMIZER, &multi);
}

static bool cut(test_graph *t)
{
    bool any;
    gx_error err = { 0 };

    assert_ok(gx_cut_updates(&t->plan, &any, &err), &err);
    return any;
}

/* Units of the updates follow one another and leave none out. */
static void check_chunks(const test_graph *t)
{
    int32_t at = 1;

    assert_in_range(t->plan.n_units, 3, 1 + MOST);
    assert_string_equal(t->plan.units[0].key, "plain");
    for (size_t u = 1; u < t->plan.n_units; u++) {
        const gx_unit *unit = &t->plan.units[u];

        assert_int_equal(unit->first_node, at);
        assert_true(unit->n_nodes > 0);
        assert_ptr_equal(unit->alternative, &multi);
        assert_int_equal(unit->phase, GX_PHASE_OPTIMIZER);
        assert_null(unit->key);
        assert_true(unit->us < 0);
        assert_true(gx_plan_unit(&t->plan, u).bytes >= LEAST);
        at += unit->n_nodes;
    }
    assert_int_equal(at, t->graph.n_nodes);
}

static void equal_layers_make_equal_chunks(void **state)
{
    test_graph *t = equal_layers();

    (void)state;
    assert_true(cut(t));
    check_chunks(t);
    assert_int_equal(t->plan.n_units, 1 + MOST);
    for (size_t u = 1; u < t->plan.n_units; u++)
        assert_int_equal(t->plan.units[u].n_nodes, 2 * LAYERS / MOST);
    /* The whole is what a chunk was preferred to. */
    const gx_rejected_info whole = gx_plan_rejected(&t->plan, 3, 0);

    assert_int_equal(t->plan.units[3].n_rejected, 1);
    assert_string_equal(whole.alternative, "multi (update to update)");
    assert_true(whole.measured_us == 45);
    assert_has(whole.reason, "every gradient");
    test_graph_free(t);
}

static void what_is_small_stays_whole(void **state)
{
    const int64_t small[] = { 1000, 2000, 3000 };
    const int64_t one[] = { NARROW, 20 * WIDE, NARROW };
    const int64_t two[] = { WIDE, WIDE, WIDE };
    const int64_t *sizes[] = { small, one };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        test_graph *t = program(sizes[i], 3, GX_PHASE_OPTIMIZER, &multi);
        const gx_unit *units = t->plan.units;

        assert_false(cut(t));
        assert_ptr_equal(t->plan.units, units);
        assert_int_equal(t->plan.n_units, 2);
        test_graph_free(t);
    }
    /* Two tensors of 3 MB are one chunk, and the third by itself is too small. */
    test_graph *t = program(two, 3, GX_PHASE_OPTIMIZER, &multi);

    assert_false(cut(t));
    test_graph_free(t);
}

static void only_runs_of_updates_are_cut(void **state)
{
    int64_t sizes[LAYERS];

    (void)state;
    for (int i = 0; i < LAYERS; i++)
        sizes[i] = WIDE;
    test_graph *others[] = { program(sizes, LAYERS, GX_PHASE_OPTIMIZER, &eliding),
                             program(sizes, LAYERS, GX_PHASE_OPTIMIZER, &single),
                             program(sizes, LAYERS, GX_PHASE_BACKWARD, &multi),
                             program(sizes, LAYERS, GX_PHASE_OPTIMIZER, &multi) };

    /* of what nothing keeps: as rates, which all updates read */
    for (size_t i = 0; i < others[3]->graph.n_values; i++) {
        if (others[3]->graph.values[i].kind == GX_VALUE_PARAM)
            others[3]->graph.values[i].kind = GX_VALUE_TEMP;
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_false(cut(others[i]));
        test_graph_free(others[i]);
    }
}

static void any_sizes_make_good_chunks(void **state)
{
    test_random random = test_random_start(test_seed());
    int n_cut = 0;

    (void)state;
    for (int round = 0; round < 200; round++) {
        int64_t sizes[40];
        const int n = (int)test_random_int(&random, 1, 40);

        for (int i = 0; i < n; i++)
            sizes[i] = test_random_int(&random, 0, 1) ? test_random_int(&random, 0, 2048)
                                                      : test_random_int(&random, 0, 1e6);
        test_graph *t = program(sizes, n, GX_PHASE_OPTIMIZER, &multi);

        if (cut(t)) {
            check_chunks(t);
            n_cut++;
        }
        test_graph_free(t);
    }
    assert_true(n_cut > 50);
}

/* --- what a chunk costs --- */

typedef struct examined {
    int n;
    bool refuse;
} examined;

static gx_status examine(const gx_selector *selector, const gx_site *site,
                         gx_candidate *candidate, double best_us, gx_error *err)
{
    examined *e = selector->user;

    (void)best_us;
    (void)err;
    assert_ptr_equal(candidate->alternative, &multi);
    e->n++;
    candidate->us = site->n;
    candidate->n_launches = 1;
    candidate->workspace_bytes = 64;
    candidate->refused = e->refuse ? "error 3e-1 over tolerance 1e-3" : NULL;
    return GX_OK;
}

static gx_selector selector_of(test_graph *t, examined *e)
{
    return (gx_selector){ .graph = &t->graph,
                          .arena = t->plan.arena,
                          .measure = true,
                          .examine = examine,
                          .user = e };
}

static void equal_chunks_are_examined_once(void **state)
{
    test_graph *t = equal_layers();
    examined e = { .n = 0 };
    const gx_selector s = selector_of(t, &e);
    bool good;
    gx_error err = { 0 };

    (void)state;
    assert_true(cut(t));
    assert_ok(gx_examine_updates(&s, &t->plan, &good, &err), &err);
    assert_true(good);
    assert_int_equal(e.n, 1);
    for (size_t u = 1; u < t->plan.n_units; u++) {
        char key[GX_KEY_SIZE];
        uint64_t hash[2];
        const gx_unit *unit = &t->plan.units[u];

        gx_site_key(&t->graph, unit->first_node, unit->n_nodes, key, hash);
        assert_string_equal(unit->key, key);
        assert_true(unit->us == unit->n_nodes);
        assert_int_equal(unit->n_launches, 1);
        assert_int_equal(unit->workspace_bytes, 64);
    }
    gx_count_choices(&s, &t->plan);
    assert_int_equal(t->plan.info.n_measured, MOST);
    test_graph_free(t);
}

static void a_chunk_that_cannot_be_run_is_told(void **state)
{
    test_graph *t = equal_layers();
    examined e = { .refuse = true };
    const gx_selector s = selector_of(t, &e);
    bool good;
    gx_error err = { 0 };

    (void)state;
    assert_true(cut(t));
    assert_ok(gx_examine_updates(&s, &t->plan, &good, &err), &err);
    assert_false(good);
    test_graph_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_layers_make_equal_chunks),
        cmocka_unit_test(what_is_small_stays_whole),
        cmocka_unit_test(only_runs_of_updates_are_cut),
        cmocka_unit_test(any_sizes_make_good_chunks),
        cmocka_unit_test(equal_chunks_are_examined_once),
        cmocka_unit_test(a_chunk_that_cannot_be_run_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
