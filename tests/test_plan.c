/* Plans on the CPU, where each op is run by itself. */
#include <string.h>

#include "support.h"

static const char model[] =
    "gexec: 1\nname: m\nprecision: f32\n"
    "inputs: {x: {shape: [4, 8], init: normal}, t: {shape: [4, 3], init: normal}}\n"
    "params: {w: {shape: [8, 3], init: he_normal}, b: {shape: [3], init: zeros}}\n"
    "ops:\n"
    "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu}}\n"
    "  - {op: mse, name: loss, x: y, target: t}\n"
    "backward: loss\noptimizer: {sgd: {lr: 0.1}}\noutputs: [loss]\n";

static gx_graph *parse(void)
{
    gx_graph *graph;
    gx_error err = { 0 };

    assert_ok(
        gx_graph_parse(model, strlen(model), "m.yaml", NULL, NULL, &graph, NULL, &err),
        &err);
    return graph;
}

static void on_the_cpu_each_op_is_a_unit(void **state)
{
    gx_graph *graph = parse();
    const gx_plan_options options = { .device = GX_CPU };
    gx_plan *plan;
    gx_plan_info info;
    gx_error err = { 0 };
    size_t persistent = 0;

    (void)state;
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_int_equal(gx_plan_unit_count(plan), gx_graph_node_count(graph));
    for (size_t i = 0; i < gx_plan_unit_count(plan); i++) {
        const gx_unit_info unit = gx_plan_unit(plan, i);

        assert_int_equal(unit.first_node, i);
        assert_int_equal(unit.n_nodes, 1);
        assert_string_equal(unit.alternative, "reference");
        assert_int_equal(unit.n_rejected, 0);
    }
    info = gx_plan_info_get(plan);
    assert_int_equal(info.device, GX_CPU);
    assert_int_equal(info.n_lanes, 1);
    assert_int_equal(info.order, GX_ORDER_DERIVED);
    assert_true(info.order_us[0] < 0 && info.order_us[1] < 0);
    assert_ptr_equal(gx_plan_graph(plan), graph);
    assert_false(info.programmatic);
    assert_true(info.lane_us[0] < 0 && info.programmatic_us[1] < 0);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        const bool lasts = value.kind == GX_VALUE_PARAM || value.kind == GX_VALUE_STATE;

        assert_int_equal(gx_plan_slot(plan, i).offset < 0, lasts);
        if (lasts)
            persistent += (gx_plan_slot(plan, i).bytes + 255) / 256 * 256;
    }
    assert_int_equal(info.persistent_bytes, persistent);
    assert_int_equal(gx_plan_slot(plan, 1000).offset, -1);
    assert_string_equal(gx_plan_rejected(plan, 0, 0).reason, "");
    gx_plan_free(plan);
    gx_plan_free(NULL);
    gx_graph_free(graph);
}

static void options_that_mean_nothing_here_are_refused(void **state)
{
    static const struct {
        gx_plan_options options;
        const char *message;
    } cases[] = {
        { { .device = GX_CPU, .force = "tile" }, "forcing an alternative" },
        { { .device = GX_CPU, .lanes = 2 }, "more than one lane" },
        { { .device = GX_CPU, .programmatic = GX_ON }, "programmatic launch" },
        { { .device = GX_CPU, .order = GX_ORDER_DATA_FIRST }, "data first" },
        { { .device = 0, .order = (gx_node_order)3 }, "no order 3" },
        { { .device = GX_CPU, .lanes = 4 }, "lanes: 4" },
        { { .device = GX_CPU, .lanes = -1 }, "lanes: -1" },
        { { .device = -2 }, "no device -2" },
        { { .device = 0, .force = "no such thing" }, "no such thing" },
    };
    gx_graph *graph = parse();
    gx_plan *plan;
    gx_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_fails(gx_plan_create(graph, &cases[i].options, &plan, &err),
                     GX_ERR_ARGUMENT, &err, cases[i].message);
        assert_null(plan);
    }
    gx_graph_free(graph);
}

static void a_device_that_is_not_there_is_an_error(void **state)
{
    gx_graph *graph = parse();
    const gx_plan_options options = { .device = 9999, .no_measure = true };
    gx_plan *plan;
    gx_error err = { 0 };
    const gx_status st = gx_plan_create(graph, &options, &plan, &err);

    (void)state;
    assert_true(st == GX_ERR_NO_DEVICE || st == GX_ERR_ARGUMENT ||
                st == GX_ERR_UNSUPPORTED);
    assert_true(err.message[0] != 0);
    assert_null(plan);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_cpu_each_op_is_a_unit),
        cmocka_unit_test(options_that_mean_nothing_here_are_refused),
        cmocka_unit_test(a_device_that_is_not_there_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
