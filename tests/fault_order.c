/* Plans in both orders of the backward pass, on a simulated card that has alternatives
 * which take many layers at once, and where steps take what the test says. */
#include "fake_cuda_paths.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "measure.h"
#include "select.h"

/* --- the alternatives --- */

static const char kernel = 'k';
static const char *const chain[] = { "gemm", "epilogue.bwd", NULL };
static const char *const weights[] = { "epilogue.bwd", "gemm", NULL };

/* From the first pattern on, those whose derivative of an epilogue leads further back, or
 * has a bias gradient alone. */
static int takes(const gx_group *run, int at, bool goes_on)
{
    int n = 0;

    while (2 * n < run->n_calls &&
           (run->call[2 * n + at].arg[GX_EPILOGUE_BWD_DX].rank >= 0) == goes_on)
        n++;
    return n;
}

static int takes_chain(const gx_group *run)
{
    return takes(run, 1, true);
}

static int takes_weights(const gx_group *run)
{
    return takes(run, 0, false);
}

static gx_status prepare(const gx_group *group, const gx_ctx *ctx, gx_prepared *prepared,
                         gx_error *err)
{
    (void)group;
    (void)ctx;
    prepared->n_launches = 1;
    prepared->n_algos = 1;
    return gx_load_kernel(&kernel, 0, "together", err);
}

static gx_status launch(const gx_group *group, const gx_prepared *prepared, gx_ctx *ctx,
                        gx_error *err)
{
    const dim3 one = { 1, 1, 1 };

    (void)group;
    (void)prepared;
    return gx_launch(ctx, "together", &kernel, one, one, 0, NULL, err);
}

static gx_alternative together[2] = {
    { .name = "together",
      .pattern = chain,
      .repeat = GX_REPEAT_ALL,
      .takes = takes_chain,
      .prepare = prepare,
      .launch = launch },
    { .name = "together",
      .pattern = weights,
      .repeat = GX_REPEAT_ALL,
      .takes = takes_weights,
      .prepare = prepare,
      .launch = launch },
};
static bool has_together;

/* The table without those that repeat, and with these two, or not. */
const gx_alternative *__real_gx_alternative_at(size_t i);
const gx_alternative *__wrap_gx_alternative_at(size_t i);
const gx_alternative *__wrap_gx_alternative_at(size_t i)
{
    const gx_alternative *at;

    for (size_t k = 0; (at = __real_gx_alternative_at(k)); k++) {
        if (at->repeat != GX_REPEAT_ALL && i-- == 0)
            return at;
    }
    return has_together && i < ARRAY_SIZE(together) ? &together[i] : NULL;
}

/* --- what a step takes, and what is measured twice --- */

static double step_us[2]; /* as derived, data first; 0: as the simulated card has it */

gx_status __real_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err);
gx_status __wrap_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err);
gx_status __wrap_gx_trial_time(gx_trial *trial, const gx_exec_options *options,
                               double *us, gx_error *err)
{
    const double known = step_us[trial->plan->order == GX_ORDER_DATA_FIRST];

    GX_TRY(__real_gx_trial_time(trial, options, us, err));
    if (known > 0)
        *us = known;
    return GX_OK;
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
    return __real_gx_bench_examine(selector, site, candidate, best_us, err);
}

/* --- a model --- */

#define LAYER(name, in, n)                                                      \
    "  - {op: gemm, name: " name ", a: " in ", b: w" n ", epilogue: {bias: b" n \
    ", act: relu}}\n"

static const char model[] =
    "gexec: 1\nname: ordered\nprecision: f32\n"
    "inputs: {x: {shape: [4, 8], init: normal}, t: {shape: [4, 8], init: normal}}\n"
    "params: {w1: {shape: [8, 8], init: he_normal}, b1: {shape: [8]}, "
    "w2: {shape: [8, 8], init: he_normal}, b2: {shape: [8]}, "
    "w3: {shape: [8, 8], init: he_normal}, b3: {shape: [8]}, "
    "w4: {shape: [8, 8], init: he_normal}, b4: {shape: [8]}}\n"
    "ops:\n" LAYER("a", "x", "1") LAYER("b", "a", "2") LAYER("c", "b", "3")
        LAYER("y", "c", "4") "  - {op: mse, name: loss, x: y, target: t}\n"
                             "backward: loss\noutputs: [loss]\n"
                             "optimizer: {adamw: {lr: 0.1}}\n";

static void set_trial(bool trial)
{
    for (size_t i = 0; i < ARRAY_SIZE(together); i++)
        together[i].trial = trial;
}

static int set_up(void **state)
{
    (void)state;
    has_together = true;
    set_trial(false);
    step_us[0] = step_us[1] = 0;
    n_examined = n_again = 0;
    return 0;
}

static gx_graph *load(void)
{
    gx_graph *graph = NULL;
    gx_error err;

    assert_ok(gx_graph_parse(model, strlen(model), "ordered.yaml", ".", NULL, &graph,
                             NULL, &err),
              &err);
    return graph;
}

static gx_plan *plan_of(const gx_graph *graph, const gx_plan_options *options)
{
    gx_plan *plan = NULL;
    gx_error err;

    fake_begin();
    assert_ok(gx_plan_create(graph, options, &plan, &err), &err);
    assert_null(gx_plan_info_get(plan).cache_note);
    return plan;
}

/* The nodes that they cover. */
static size_t count_together(const gx_plan *plan)
{
    size_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++) {
        if (strcmp(plan->units[u].alternative->name, "together") == 0)
            n += (size_t)plan->units[u].n_nodes;
    }
    return n;
}

/* Three data gradients and the ways back through the activations behind them; the bias
 * and weight gradients of four layers. */
enum { TOGETHER = 2 * 3 + 2 * 4 };

static void close_all(gx_plan *plan, gx_graph *graph)
{
    gx_plan_free(plan);
    gx_graph_free(graph);
    assert_int_equal(fake_live(), 0);
    assert_null(fake_mistake());
}

/* --- the faster one --- */

static void what_both_have_in_common_is_measured_once(void **state)
{
    const gx_plan_options options = { .device = 0, .cache_folder = "" };
    gx_graph *graph = load();

    (void)state;
    step_us[0] = 100;
    step_us[1] = 50;
    gx_plan *plan = plan_of(graph, &options);
    const gx_plan_info info = gx_plan_info_get(plan);

    assert_int_equal(info.order, GX_ORDER_DATA_FIRST);
    assert_ptr_not_equal(gx_plan_graph(plan), graph);
    assert_int_equal(count_together(plan), TOGETHER);
    assert_true(n_examined > 0);
    assert_int_equal(n_again, 0);
    assert_int_equal(info.n_cached, 0); /* all of it was measured now */
    assert_int_equal(info.n_measured, plan->n_units);
    close_all(plan, graph);
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
    gx_graph *graph = load();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[16];
        snprintf(name, sizeof name, "order%zu", i);
        char *folder = test_path(name);
        const gx_plan_options options = { .device = 0, .cache_folder = folder };

        memcpy(step_us, cases[i].us, sizeof step_us);
        gx_plan *cold = plan_of(graph, &options);
        step_us[0] = step_us[1] = 1; /* of no account any more */
        gx_plan *warm = plan_of(graph, &options);
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
        assert_int_equal(count_together(cold),
                         cases[i].taken == GX_ORDER_DATA_FIRST ? TOGETHER : 0);
        assert_int_equal(count_together(warm), count_together(cold));
        assert_int_equal(b.n_measured, 0);
        assert_int_equal(fake_calls("cublasLtCreate"), 0);
        assert_int_equal(fake_calls("cudaLaunchKernelExC"), 0);
        gx_plan_free(warm);
        gx_plan_free(cold);
        free(folder);
    }
    close_all(NULL, graph);
}

/* As if this order had been asked for before: what is known of its step is no answer to
 * which order is the faster. */
static void both_orders_are_timed_in_one_go(void **state)
{
    char *folder = test_path("one_go");
    gx_plan_options options = { .device = 0,
                                .cache_folder = folder,
                                .order = GX_ORDER_DATA_FIRST };
    gx_graph *graph = load();

    (void)state;
    step_us[0] = step_us[1] = 80;
    gx_plan_free(plan_of(graph, &options));
    step_us[1] = 20;
    options.order = GX_ORDER_AUTO;
    gx_plan *plan = plan_of(graph, &options);

    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_true(gx_plan_info_get(plan).order_us[1] < 21);
    free(folder);
    close_all(plan, graph);
}

/* With lanes and edges given there is still the order to choose. */
static void an_order_is_chosen_where_nothing_else_is_open(void **state)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .lanes = 1, .programmatic = GX_ON
    };
    const gx_plan_options three = { .device = 0, .cache_folder = "", .lanes = 3 };
    gx_graph *graph = load();

    (void)state;
    step_us[0] = 30;
    step_us[1] = 20;
    gx_plan *plan = plan_of(graph, &options);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_true(plan->programmatic);
    assert_int_equal(plan->n_lanes, 1);
    gx_plan_free(plan);
    plan = plan_of(graph, &three);
    assert_int_equal(gx_plan_info_get(plan).order, GX_ORDER_DATA_FIRST);
    assert_int_equal(plan->n_lanes, 3);
    close_all(plan, graph);
}

/* --- when there is nothing to choose --- */

static void check_untried(const gx_graph *graph, const gx_plan_options *options,
                          gx_node_order order)
{
    gx_plan *plan = plan_of(graph, options);
    const gx_plan_info info = gx_plan_info_get(plan);

    assert_int_equal(info.order, order);
    assert_true(info.order_us[0] < 0 && info.order_us[1] < 0);
    gx_plan_free(plan);
}

static void data_first_is_not_tried_where_it_cannot_gain(void **state)
{
    gx_plan_options options = { .device = 0, .cache_folder = "" };
    gx_graph *graph = load();

    (void)state;
    has_together = false;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    has_together = true;
    set_trial(true);
    check_untried(graph, &options, GX_ORDER_DERIVED);
    set_trial(false);
    options.unfused = true;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    options.unfused = false;
    options.order = GX_ORDER_DERIVED;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    options.order = GX_ORDER_AUTO;
    options.no_measure = true;
    check_untried(graph, &options, GX_ORDER_DERIVED);
    close_all(NULL, graph);
}

/* What is forced is taken wherever it applies, and so in the order in which it does. */
static void what_is_forced_decides(void **state)
{
    gx_plan_options options = { .device = 0, .cache_folder = "", .force = "together" };
    gx_graph *graph = load();

    (void)state;
    step_us[0] = 20;
    step_us[1] = 30;
    set_trial(true);
    for (int i = 0; i < 2; i++) {
        options.no_measure = i == 1;
        check_untried(graph, &options, GX_ORDER_DATA_FIRST);
    }
    options.no_measure = false;
    options.force = "together,tile";
    gx_plan *plan = plan_of(graph, &options);
    assert_int_equal(count_together(plan), TOGETHER);
    close_all(plan, graph);
}

/* --- a plan that is data first --- */

static const gx_plan_options asked = {
    .device = 0, .cache_folder = "", .no_measure = true, .order = GX_ORDER_DATA_FIRST
};

static void check_names(const gx_plan *plan, const gx_exec *exec)
{
    const gx_graph *graph = gx_plan_graph(plan);
    size_t at = 0;

    for (size_t u = 0; u < gx_plan_unit_count(plan); u++) {
        const gx_unit_info unit = gx_plan_unit(plan, u);

        assert_int_equal(unit.first_node, at);
        for (size_t i = 0; i < unit.n_nodes; i++, at++) {
            const char *name = gx_graph_node(graph, at).name;

            assert_string_equal(exec->calls[at].name, name);
            if (i == 0 || i + 1 == unit.n_nodes) /* those between are not always told */
                assert_has(exec->units[u].name, name);
        }
    }
    assert_int_equal(at, gx_graph_node_count(graph));
}

static void run_plan(const gx_graph *graph, const gx_plan *plan)
{
    const gx_state_options options = { .device = 0, .seed = 7 };
    gx_state *state;
    gx_exec *exec;
    gx_error err;

    fake_begin();
    assert_ok(gx_state_create(&graph, 1, &options, &state, &err), &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    check_names(plan, exec);
    assert_ok(gx_exec_run(exec, GX_MODE_EAGER, 2, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_sync(exec, &err), &err);
    const gx_exec_stats stats = gx_exec_stats_get(exec);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    gx_exec_free(exec);
    gx_state_free(state);
    assert_null(fake_mistake());
}

static void a_plan_runs_data_first(void **state)
{
    gx_plan_options options = asked;
    gx_graph *graph = load();

    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        options.lanes = lanes;
        options.force = lanes == 1 ? "together" : "multi";
        gx_plan *plan = plan_of(graph, &options);

        assert_int_equal(plan->n_lanes, lanes);
        assert_int_equal(plan->order, GX_ORDER_DATA_FIRST);
        assert_int_equal(count_together(plan), lanes == 1 ? TOGETHER : 0);
        run_plan(graph, plan);
        gx_plan_free(plan);
    }
    close_all(NULL, graph);
}

static void orders_do_not_share_what_is_remembered(void **state)
{
    gx_plan_options options = asked;
    gx_graph *graph = load();
    gx_plan *plan = plan_of(graph, &options);
    char first[GX_PLAN_HASH_SIZE], derived[GX_PLAN_HASH_SIZE];

    (void)state;
    gx_plan_hash(plan, first);
    plan->order = GX_ORDER_DERIVED; /* the same units, as they may be by chance */
    gx_plan_hash(plan, derived);
    assert_string_not_equal(first, derived);
    close_all(plan, graph);
}

/* --- a plan file --- */

/* The text with one part replaced, as a file. */
static char *write_changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *changed = malloc(strlen(text) + strlen(to) + 1);

    assert_non_null(at);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    char *path = test_write_text("changed.yaml", changed);
    free(changed);
    return path;
}

static void refuse(const gx_graph *graph, const char *path, gx_node_order order,
                   gx_status status, const char *message)
{
    const gx_plan_options options = {
        .device = 0, .cache_folder = "", .pin_file = path, .order = order
    };
    gx_plan *plan;
    gx_error err;

    assert_fails(gx_plan_create(graph, &options, &plan, &err), status, &err, message);
    assert_null(plan);
}

static void a_plan_file_has_the_order(void **state)
{
    char *path = test_path("first.yaml"), *again = test_path("again.yaml");
    gx_plan_options options = asked;
    gx_graph *graph = load();
    gx_error err;
    size_t length;

    (void)state;
    options.force = "together";
    gx_plan *made = plan_of(graph, &options);
    assert_ok(gx_plan_write(made, path, &err), &err);
    options = (gx_plan_options){ .device = 0, .cache_folder = "", .pin_file = path };
    gx_plan *plan = plan_of(graph, &options);
    assert_int_equal(plan->order, GX_ORDER_DATA_FIRST);
    assert_int_equal(count_together(plan), TOGETHER);
    assert_int_equal(plan->n_units, made->n_units);
    for (size_t u = 0; u < plan->n_units; u++) {
        assert_int_equal(plan->units[u].first_node, made->units[u].first_node);
        assert_string_equal(plan->units[u].key, made->units[u].key);
    }
    assert_ok(gx_plan_write(plan, again, &err), &err);
    char *first = test_read(path, &length), *second = test_read(again, &length);
    assert_string_equal(first, second);
    assert_has(first, "\norder: data-first\n");
    run_plan(graph, plan);
    gx_plan_free(plan);
    gx_plan_free(made);

    refuse(graph, path, GX_ORDER_DERIVED, GX_ERR_ARGUMENT, "is asked for as derived");
    char *changed = write_changed(first, "order: data-first", "order: sideways");
    refuse(graph, changed, GX_ORDER_AUTO, GX_ERR_MODEL,
           "order: expected \"derived\" or \"data-first\", found \"sideways\"");
    free(changed);
    changed = write_changed(first, "order: data-first\n", ""); /* which is derived */
    refuse(graph, changed, GX_ORDER_AUTO, GX_ERR_MODEL,
           "does not come next in the graph");
    free(changed);
    free(second);
    free(first);
    free(again);
    free(path);
    close_all(NULL, graph);
}

static void a_plan_file_without_an_order_is_derived(void **state)
{
    char *path = test_path("derived.yaml");
    gx_plan_options options = { .device = 0, .cache_folder = "", .no_measure = true };
    gx_graph *graph = load();
    gx_error err;
    size_t length;

    (void)state;
    gx_plan *plan = plan_of(graph, &options);
    assert_ok(gx_plan_write(plan, path, &err), &err);
    gx_plan_free(plan);
    char *text = test_read(path, &length);
    char *changed = write_changed(text, "order: derived\n", "");

    options = (gx_plan_options){ .device = 0, .cache_folder = "", .pin_file = changed };
    plan = plan_of(graph, &options);
    assert_int_equal(plan->order, GX_ORDER_DERIVED);
    assert_ptr_equal(gx_plan_graph(plan), graph);
    refuse(graph, changed, GX_ORDER_DATA_FIRST, GX_ERR_ARGUMENT,
           "is asked for data first");
    free(changed);
    free(text);
    free(path);
    close_all(plan, graph);
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
    gx_graph *graph = load();
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
    close_all(NULL, graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_both_have_in_common_is_measured_once, set_up),
        cmocka_unit_test_setup(the_faster_order_is_taken_and_remembered, set_up),
        cmocka_unit_test_setup(both_orders_are_timed_in_one_go, set_up),
        cmocka_unit_test_setup(an_order_is_chosen_where_nothing_else_is_open, set_up),
        cmocka_unit_test_setup(data_first_is_not_tried_where_it_cannot_gain, set_up),
        cmocka_unit_test_setup(what_is_forced_decides, set_up),
        cmocka_unit_test_setup(a_plan_runs_data_first, set_up),
        cmocka_unit_test_setup(orders_do_not_share_what_is_remembered, set_up),
        cmocka_unit_test_setup(a_plan_file_has_the_order, set_up),
        cmocka_unit_test_setup(a_plan_file_without_an_order_is_derived, set_up),
        cmocka_unit_test_setup(a_failure_leaves_nothing_behind, set_up),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_order", tests, NULL, NULL);
}
