/* NVTX ranges as a tool sees them: on the CPU, whose steps have the same ranges. */
#include "support_nvtx.h"

#include <stdlib.h>
#include <string.h>

static const char *const model =
    "gexec: 1\n"
    "name: ranges\n"
    "dims: {batch: 4}\n"
    "precision: f32\n"
    "inputs:\n"
    "  x: {shape: [batch, 3]}\n"
    "  y: {shape: [batch], dtype: i32}\n"
    "params:\n"
    "  w1: {shape: [3, 5], init: he_normal}\n"
    "  b1: {shape: [5]}\n"
    "  w2: {shape: [5, 2], init: he_normal}\n"
    "ops:\n"
    "  - {op: gemm, name: fc1, a: x, b: w1, "
    "epilogue: {bias: b1, act: gelu_tanh}, out: h}\n"
    "  - {op: gemm, name: fc2, a: h, b: w2, out: logits}\n"
    "  - {op: softmax_cross_entropy, name: loss, logits: logits, "
    "labels: y}\n"
    "backward: loss\n"
    "optimizer: {sgd: {lr: 1.0e-2}}\n"
    "outputs: [loss]\n";

static const char *const kinds[] = { "capture",   "gemm", "epilogue", "bwd",
                                     "optimizer", "copy", "replay" };

static gx_graph *graph;
static gx_plan *plan;
static gx_state *state_of_model;
static gx_exec *exec;

static int open_program(void **state)
{
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU };
    float x[12] = { 1, 2, 3 };
    int32_t y[4] = { 0, 1, 0, 1 };
    const gx_tensor host_x = { .dtype = GX_F32, .rank = 2, .dim = { 4, 3 }, .data = x };
    const gx_tensor host_y = { .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = y };
    gx_error err;

    (void)state;
    assert_ok(gx_graph_parse(model, strlen(model), "ranges.yaml", ".", NULL, &graph, NULL,
                             &err),
              &err);
    const gx_graph *graphs[] = { graph };
    assert_ok(gx_plan_create(graph, &plan_options, &plan, &err), &err);
    assert_ok(gx_state_create(graphs, 1, &state_options, &state_of_model, &err), &err);
    assert_ok(gx_exec_create(plan, state_of_model, NULL, &exec, &err), &err);
    assert_ok(gx_exec_write(exec, "x", &host_x, &err), &err);
    assert_ok(gx_exec_write(exec, "y", &host_y, &err), &err);
    return 0;
}

static int close_program(void **state)
{
    (void)state;
    gx_exec_free(exec);
    gx_state_free(state_of_model);
    gx_plan_free(plan);
    gx_graph_free(graph);
    return 0;
}

/* The ranges of `n` steps that run now. */
static nvtx_log *log_steps(int n)
{
    nvtx_log *before = nvtx_log_read(0);
    const size_t first_line = before->n_lines;
    gx_error err;

    free(before);
    assert_ok(gx_exec_run(exec, GX_MODE_CPU, n, &err), &err);
    return nvtx_log_read(first_line);
}

static void the_domain_names_each_kind_once(void **state)
{
    nvtx_log *log = nvtx_log_read(0);

    (void)state;
    assert_int_equal(log->n_domains, 1);
    assert_int_equal(log->n_categories, ARRAY_SIZE(kinds));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        assert_true(nvtx_category(log, kinds[i]) > 0);
    free(log);
}

static void a_step_holds_phases_and_they_hold_the_ops(void **state)
{
    static const char *const phases[] = { "forward", "backward", "optimizer" };
    enum { STEPS = 3 };
    nvtx_log *log = log_steps(STEPS);
    int i = 0;

    (void)state;
    assert_int_equal(log->n_open, 0);
    assert_int_equal(log->n_others, 0);
    assert_int_equal(nvtx_count(log, 0), STEPS);
    for (int step = 0; step < STEPS; step++) {
        const int step_range = i;

        assert_string_equal(log->range[i++].text, "step");
        int phase = -1;
        int phase_range = -1;
        for (size_t unit = 0; unit < gx_plan_unit_count(plan); unit++) {
            const gx_unit_info info = gx_plan_unit(plan, unit);
            const gx_node_info node = gx_graph_node(graph, info.first_node);

            if ((int)info.phase != phase && info.phase != GX_PHASE_STEP) {
                phase_range = i;
                assert_string_equal(log->range[i].text, phases[info.phase]);
                assert_int_equal(log->range[i].parent, step_range);
                assert_int_equal(log->range[i++].payload, -1);
            }
            phase = (int)info.phase;
            assert_string_equal(log->range[i].text, node.name);
            assert_int_equal(log->range[i].payload, info.first_node);
            assert_int_equal(log->range[i++].parent,
                             info.phase == GX_PHASE_STEP ? step_range : phase_range);
        }
        assert_int_equal(phase, GX_PHASE_STEP);
    }
    assert_int_equal(i, log->n_ranges);
    free(log);
}

static const char *expected_kind(const gx_unit_info *unit)
{
    const char *op = gx_op_name(gx_graph_node(graph, unit->first_node).op);

    switch (unit->phase) {
    case GX_PHASE_BACKWARD:
        return "bwd";
    case GX_PHASE_OPTIMIZER:
        return "optimizer";
    case GX_PHASE_STEP:
        return "copy";
    default:
        return strcmp(op, "gemm") == 0 ? "gemm" : "epilogue";
    }
}

static void each_op_has_the_category_and_the_colour_of_its_kind(void **state)
{
    unsigned long colour[NVTX_MAX_CATEGORIES] = { 0 };
    nvtx_log *log = log_steps(1);
    size_t n_ops = 0;

    (void)state;
    for (int i = 0; i < log->n_ranges; i++) {
        const nvtx_range *range = &log->range[i];

        assert_true(range->category < NVTX_MAX_CATEGORIES);
        assert_true(range->colour >> 24 == 0xff);
        if (colour[range->category] == 0)
            colour[range->category] = range->colour;
        assert_int_equal(range->colour, colour[range->category]);
        if (range->payload < 0)
            continue;
        const gx_unit_info unit = gx_plan_unit(plan, n_ops++);
        assert_int_equal(range->category, nvtx_category(log, expected_kind(&unit)));
    }
    assert_int_equal(n_ops, gx_plan_unit_count(plan));
    for (int i = 0; i < NVTX_MAX_CATEGORIES; i++)
        for (int j = 0; j < i; j++)
            assert_true(colour[i] == 0 || colour[i] != colour[j]);
    free(log);
}

static void steps_register_no_strings(void **state)
{
    nvtx_log *before = nvtx_log_read(0);
    nvtx_log *after = log_steps(5);

    (void)state;
    assert_true(before->n_strings > 0);
    assert_int_equal(after->n_strings, before->n_strings);
    free(before);
    free(after);
}

static void a_failed_step_closes_its_ranges(void **state)
{
    gx_error err;

    (void)state;
    nvtx_log *before = nvtx_log_read(0);
    assert_fails(gx_exec_run(exec, GX_MODE_GRAPH, 1, &err), GX_ERR_ARGUMENT, &err,
                 "graph");
    nvtx_log *log = nvtx_log_read(before->n_lines);
    assert_int_equal(log->n_open, 0);
    assert_int_equal(log->n_ranges, 0);
    free(before);
    free(log);
}

static void measured_stands_around_what_is_measured(void **state)
{
    (void)state;
    nvtx_log *before = nvtx_log_read(0);
    gx_measured_begin();
    nvtx_log *within = log_steps(1);
    gx_measured_end();
    nvtx_log *log = nvtx_log_read(before->n_lines);
    assert_int_equal(log->n_open, 0);
    assert_int_equal(nvtx_count(log, 0), 1);
    assert_string_equal(nvtx_at(log, 0, 0)->text, "measured");
    assert_string_equal(nvtx_at(log, 1, 0)->text, "step");
    assert_int_equal(log->n_ranges, within->n_ranges + 1);
    free(before);
    free(within);
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_domain_names_each_kind_once),
        cmocka_unit_test(a_step_holds_phases_and_they_hold_the_ops),
        cmocka_unit_test(each_op_has_the_category_and_the_colour_of_its_kind),
        cmocka_unit_test(steps_register_no_strings),
        cmocka_unit_test(a_failed_step_closes_its_ranges),
        cmocka_unit_test(measured_stands_around_what_is_measured),
    };

    nvtx_start();
    return cmocka_run_group_tests_name("nvtx", tests, open_program, close_program);
}
