/* Which order of the backward pass is chosen, on a simulated card where steps take what
 * the test says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "measure.h"
#include "order_made.h"
#include "select.h"

/* --- what a step takes, and what is measured twice --- */

static double step_us[2]; /* as derived, data first; 0: as the simulated card has it */
static double lane_us[2]; /* with one lane, with more; likewise */

gx_status __real_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err);
gx_status __wrap_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err);
gx_status __wrap_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err)
{
    const double by_order = step_us[trial->plan->order == GX_ORDER_DATA_FIRST];
    const double known = by_order > 0 ? by_order : lane_us[trial->plan->n_lanes > 1];

    GX_TRY(__real_gx_trial_time(trial, options, us, err));
    if (known > 0)
        *us = known;
    return GX_OK;
}

/* A loss and its derivative: in one kernel they take less than in two, of which one may
 * run beside the backward pass. */
static bool has_loss_us;
static const struct {
    const char *alternative, *first;
    double us;
} loss_us[] = { { "fused", "mse.bwd", 9 },
                { "fused", "mse", 9 },
                { "kernel", "mse.bwd", 5 },
                { "kernel", "mse", 6 } };

static void set_loss_us(const gx_selector *selector, const gx_site *site,
                        gx_candidate *candidate)
{
    const gx_node *node = &selector->graph->nodes[site->first];

    for (size_t i = 0; i < ARRAY_SIZE(loss_us) && has_loss_us; i++) {
        if (strcmp(candidate->alternative->name, loss_us[i].alternative) == 0 &&
            strcmp(node->op->name, loss_us[i].first) == 0)
            candidate->us = loss_us[i].us;
    }
}

enum { MOST_EXAMINED = 400 };
static char examined[MOST_EXAMINED][GX_KEY_SIZE + 40];
static size_t n_examined, n_again;

gx_status __real_gx_bench_examine(const gx_selector *selector, const gx_site *site,
                                  gx_candidate *candidate, double best_us, gx_error *err);
gx_status __wrap_gx_bench_examine(const gx_selector *selector, const gx_site *site,
                                  gx_candidate *candidate, double best_us, gx_error *err);
gx_status __wrap_gx_bench_examine(const gx_selector *selector, const gx_site *site,
                                  gx_candidate *candidate, double best_us, gx_error *err)
{
    char *text = examined[n_examined % MOST_EXAMINED];

    snprintf(text, sizeof examined[0], "%s %s", candidate->alternative->name, site->key);
    for (size_t i = 0; i < n_examined && i < MOST_EXAMINED; i++)
        n_again += strcmp(examined[i], text) == 0;
    n_examined++;
    GX_TRY(__real_gx_bench_examine(selector, site, candidate, best_us, err));
    set_loss_us(selector, site, candidate);
    return GX_OK;
}

static int set_up(void **state)
{
    (void)state;
    order_begin();
    step_us[0] = step_us[1] = lane_us[0] = lane_us[1] = 0;
    has_loss_us = false;
    n_examined = n_again = 0;
    return 0;
}

/* --- the faster one --- */

static void what_both_have_in_common_is_measured_once(void **state)
{
    const gx_plan_options options = { .device = 0, .cache_folder = "" };
    gx_graph *graph = order_load();

    (void)state;
    step_us[0] = 100;
    step_us[1] = 50;
    gx_plan *plan = order_plan(graph, &options);
    const gx_plan_info info = gx_plan_info_get(plan);

    assert_int_equal(info.order, GX_ORDER_DATA_FIRST);
    assert_ptr_not_equal(gx_plan_graph(plan), graph);
    assert_int_equal(order_count(plan), ORDER_TOGETHER);
    assert_true(n_examined > 0);
    assert_int_equal(n_again, 0);
    assert_int_equal(info.n_cached, 0); /* all of it was measured now */
    assert_int_equal(info.n_measured, plan->n_units);
    order_close(plan, graph);
}

static void the_faster_order_is_taken_and_remembered(void **state)
{
    static const struct {
        double us[2];
        gx_node_order taken;
    } cases[] = {
        { { 100, 50 }, GX_ORDER_DATA_FIRST },
        { { 50, 100 }, GX_ORDER_DERIVED },
        { { 100, 99.5 }, GX_ORDER_DERIVED }, /* it is not worth the memory */
    };
    gx_graph *graph = order_load();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[16];
        snprintf(name, sizeof name, "order%zu", i);
        char *folder = test_path(name);
        const gx_plan_options options = { .device = 0, .cache_folder = folder };

        memcpy(step_us, cases[i].us, sizeof step_us);
        gx_plan *cold = order_plan(graph, &options);
        step_us[0] = step_us[1] = 1; /* of no account any more */
        gx_plan *warm = order_plan(graph, &options);
        const gx_plan_info a = gx_plan_info_get(cold), b = gx_plan_info_get(warm);

        assert_int_equal(a.order, cases[i].taken);
        assert_int_equal(b.order, cases[i].taken);
        for (int k = 0; k < 2; k++) {
            assert_true(a.order_us[k] >= cases[i].us[k] &&
                        a.order_us[k] <= cases[i].us[k]);
            assert_true(b.order_us[k] >= cases[i].us[k] &&
                        b.order_us[k] <= cases[i].us[k]);
        }
        assert_memory_equal(a.lane_us, b.lane_us, sizeof a.lane_us);
        assert_memory_equal(a.programmatic_us, b.programmatic_us,
                            sizeof a.programmatic_us);
        /* The times of the order that was taken. */
        assert_true(a.lane_us[0] >= cases[i].us[cases[i].taken == GX_ORDER_DATA_FIRST] &&
                    a.lane_us[0] <= cases[i].us[cases[i].taken == GX_ORDER_DATA_FIRST]);
        assert_int_equal(order_count(cold),
                         cases[i].taken == GX_ORDER_DATA_FIRST ? ORDER_TOGETHER : 0);
        assert_int_equal(order_count(warm), order_count(cold));
        assert_int_equal(b.n_measured, 0);
        assert_int_equal(fake_calls("cublasLtCreate"), 0);
        assert_int_equal(fake_calls("cudaLaunchKernelExC"), 0);
        gx_plan_free(warm);
        gx_plan_free(cold);
        free(folder);
    }
    order_close(NULL, graph);
}

/* As if this order had been asked for before: what is known of its step is no answer to
 * which order is the faster. */
static void both_orders_are_timed_in_one_go(void **state)
{
    char *folder = test_path("one_go");
    gx_plan_options options = { .device = 0,
                                .cache_folder = folder,
                                .order = GX_ORDER_DATA_FIRST };
    gx_graph *graph = order_load();

    (void)state;
    step_us[0] = step_us[1] = 80;
    gx_plan_free(order_plan(graph, &options));
    step_us[1] = 20;
    options.order = GX_ORDER_AUTO;
    gx_plan *plan = order_plan(graph, &options);

    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_true(gx_plan_info_get(plan).order_us[1] < 21);
    free(folder);
    order_close(plan, graph);
}

/* With lanes and edges given there is still the order to choose. */
static void an_order_is_chosen_where_nothing_else_is_open(void **state)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .programmatic = GX_ON
    };
    const gx_plan_options three = { .device = 0, .cache_folder = "", .lanes = 3 };
    gx_graph *graph = order_load();

    (void)state;
    step_us[0] = 30;
    step_us[1] = 20;
    gx_plan *plan = order_plan(graph, &options);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_true(plan->programmatic);
    assert_int_equal(plan->n_lanes, 1);
    gx_plan_free(plan);
    plan = order_plan(graph, &three);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_int_equal(plan->n_lanes, 3);
    order_close(plan, graph);
}

static bool has_fused_loss(const gx_plan *plan)
{
    size_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++) {
        const gx_unit *unit = &plan->units[u];

        if (strcmp(unit->alternative->name, "fused") == 0)
            n += strncmp(plan->graph->nodes[unit->first_node].op->name, "mse", 3) == 0;
    }
    return n == 1;
}

/* What one lane would have to do behind the rest another may do beside it. */
static void each_number_of_lanes_has_its_units(void **state)
{
    static const double us[][2] = { { 10, 20 }, { 20, 10 } };
    gx_graph *graph = order_load();

    (void)state;
    has_loss_us = true;
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "lanes%d", i);
        char *folder = test_path(name);
        const gx_plan_options options = { .device = 0,
                                          .cache_folder = folder,
                                          .order = GX_ORDER_DERIVED };

        memcpy(lane_us, us[i], sizeof lane_us);
        gx_plan *cold = order_plan(graph, &options);
        lane_us[0] = lane_us[1] = 1; /* of no account any more */
        gx_plan *warm = order_plan(graph, &options);

        assert_int_equal(cold->n_lanes > 1, i == 1);
        assert_int_equal(has_fused_loss(cold), i == 0);
        assert_int_equal(warm->n_lanes, cold->n_lanes);
        assert_int_equal(has_fused_loss(warm), i == 0);
        assert_int_equal(n_again, 0);
        gx_plan_free(warm);
        gx_plan_free(cold);
        n_examined = 0;
        free(folder);
    }
    order_close(NULL, graph);
}

/* --- when there is nothing to choose --- */

static void check_untried(const gx_graph *graph, const gx_plan_options *options,
                          gx_node_order order)
{
    gx_plan *plan = order_plan(graph, options);
    const gx_plan_info info = gx_plan_info_get(plan);

    assert_int_equal(info.order, order);
    assert_true(info.order_us[0] < 0 && info.order_us[1] < 0);
    gx_plan_free(plan);
}

static void data_first_is_not_tried_where_it_cannot_gain(void **state)
{
    gx_plan_options options = { .device = 0, .cache_folder = "" };
    gx_graph *graph = order_load();

    (void)state;
    order_offer(false);
    check_untried(graph, &options, GX_ORDER_DERIVED);
    order_offer(true);
    order_set_trial(true);
    check_untried(graph, &options, GX_ORDER_DERIVED);
    order_set_trial(false);
    options.unfused = true;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    options.unfused = false;
    options.order = GX_ORDER_DERIVED;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    options.order = GX_ORDER_AUTO;
    options.no_measure = true;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    order_close(NULL, graph);
}

/* What is forced is taken wherever it applies, and so in the order in which it does. */
static void what_is_forced_decides(void **state)
{
    gx_plan_options options = { .device = 0, .cache_folder = "", .force = "together" };
    gx_graph *graph = order_load();

    (void)state;
    step_us[0] = 20;
    step_us[1] = 30;
    order_set_trial(true);
    for (int i = 0; i < 2; i++) {
        options.no_measure = i == 1;
        check_untried(graph, &options, GX_ORDER_DATA_FIRST);
    }
    options.no_measure = false;
    options.force = "together,tile";
    gx_plan *plan = order_plan(graph, &options);
    assert_int_equal(order_count(plan), ORDER_TOGETHER);
    order_close(plan, graph);
}

/* --- failures --- */

static gx_status make_plan(void *user, gx_error *err)
{
    const gx_plan_options options = { .device = 0, .cache_folder = "" };
    gx_plan *plan;

    GX_TRY(gx_plan_create(user, &options, &plan, err));
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    fake_quiet(true);
    gx_plan_free(plan);
    return GX_OK;
}

/* A candidate that cannot be measured is left out, so that some failures are no error. */
static void a_failure_leaves_nothing_behind(void **state)
{
    static const char *const functions[] = { "cudaMalloc", "cudaStreamBeginCapture",
                                             "cudaGraphInstantiate", "cudaGraphLaunch" };
    gx_graph *graph = order_load();
    gx_error err;

    (void)state;
    step_us[0] = 100;
    step_us[1] = 50;
    fake_begin();
    assert_ok(make_plan(graph, &err), &err);
    fake_quiet(false);
    long calls[ARRAY_SIZE(functions)];
    for (size_t f = 0; f < ARRAY_SIZE(functions); f++)
        calls[f] = fake_calls(functions[f]);
    for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
        for (long nth = 1; nth <= calls[f]; nth += 1 + calls[f] / 3) {
            const gx_plan_options options = { .device = 0, .cache_folder = "" };
            gx_plan *plan = NULL;

            fake_begin();
            fake_fail(functions[f], nth, cudaErrorUnknown);
            gx_error_clear(&err);
            if (gx_plan_create(graph, &options, &plan, &err) != GX_OK)
                assert_null(plan);
            gx_plan_free(plan);
            assert_int_equal(fake_live(), 0);
            assert_null(fake_mistake());
        }
    }
    order_close(NULL, graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_both_have_in_common_is_measured_once, set_up),
        cmocka_unit_test_setup(the_faster_order_is_taken_and_remembered, set_up),
        cmocka_unit_test_setup(both_orders_are_timed_in_one_go, set_up),
        cmocka_unit_test_setup(an_order_is_chosen_where_nothing_else_is_open, set_up),
        cmocka_unit_test_setup(each_number_of_lanes_has_its_units, set_up),
        cmocka_unit_test_setup(data_first_is_not_tried_where_it_cannot_gain, set_up),
        cmocka_unit_test_setup(what_is_forced_decides, set_up),
        cmocka_unit_test_setup(a_failure_leaves_nothing_behind, set_up),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_order", tests, NULL, NULL);
}
