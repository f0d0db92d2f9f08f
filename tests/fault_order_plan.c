/* Plans whose backward pass is data first: run, written and read, on a simulated card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order_made.h"
#include "select.h"

static int set_up(void **state)
{
    (void)state;
    order_begin();
    return 0;
}

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
    gx_graph *graph = order_load();

    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        options.lanes = lanes;
        options.force = lanes == 1 ? "together" : "multi";
        gx_plan *plan = order_plan(graph, &options);

        assert_int_equal(plan->n_lanes, lanes);
        assert_int_equal(plan->order, GX_ORDER_DATA_FIRST);
        assert_int_equal(order_count(plan), lanes == 1 ? ORDER_TOGETHER : 0);
        run_plan(graph, plan);
        gx_plan_free(plan);
    }
    order_close(NULL, graph);
}

static void orders_do_not_share_what_is_remembered(void **state)
{
    gx_plan_options options = asked;
    gx_graph *graph = order_load();
    gx_plan *plan = order_plan(graph, &options);
    char first[GX_PLAN_HASH_SIZE], derived[GX_PLAN_HASH_SIZE];

    (void)state;
    gx_plan_hash(plan, first);
    plan->order = GX_ORDER_DERIVED; /* the same units, as they may be by chance */
    gx_plan_hash(plan, derived);
    assert_string_not_equal(first, derived);
    order_close(plan, graph);
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
    gx_graph *graph = order_load();
    gx_error err;
    size_t length;

    (void)state;
    options.force = "together";
    gx_plan *made = order_plan(graph, &options);
    assert_ok(gx_plan_write(made, path, &err), &err);
    options = (gx_plan_options){ .device = 0, .cache_folder = "", .pin_file = path };
    gx_plan *plan = order_plan(graph, &options);
    assert_int_equal(plan->order, GX_ORDER_DATA_FIRST);
    assert_int_equal(order_count(plan), ORDER_TOGETHER);
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
    order_close(NULL, graph);
}

static void a_plan_file_without_an_order_is_derived(void **state)
{
    char *path = test_path("derived.yaml");
    gx_plan_options options = { .device = 0, .cache_folder = "", .no_measure = true };
    gx_graph *graph = order_load();
    gx_error err;
    size_t length;

    (void)state;
    gx_plan *plan = order_plan(graph, &options);
    assert_ok(gx_plan_write(plan, path, &err), &err);
    gx_plan_free(plan);
    char *text = test_read(path, &length);
    char *changed = write_changed(text, "order: derived\n", "");

    options = (gx_plan_options){ .device = 0, .cache_folder = "", .pin_file = changed };
    plan = order_plan(graph, &options);
    assert_int_equal(plan->order, GX_ORDER_DERIVED);
    assert_ptr_equal(gx_plan_graph(plan), graph);
    refuse(graph, changed, GX_ORDER_DATA_FIRST, GX_ERR_ARGUMENT,
           "is asked for data first");
    free(changed);
    free(text);
    free(path);
    order_close(plan, graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_plan_runs_data_first, set_up),
        cmocka_unit_test_setup(orders_do_not_share_what_is_remembered, set_up),
        cmocka_unit_test_setup(a_plan_file_has_the_order, set_up),
        cmocka_unit_test_setup(a_plan_file_without_an_order_is_derived, set_up),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_order_plan", tests, NULL, NULL);
}
