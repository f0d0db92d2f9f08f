/* Arguments that a caller got wrong: each is refused in words, and nothing is touched. */
#include <stdio.h>
#include <string.h>

#include <gexec/gexec.h>

#include "support.h"

static const char model[] = "gexec: 1\n"
                            "dims: {batch: 2}\n"
                            "precision: f32\n"
                            "inputs: {x: {shape: [batch, 3], init: normal}}\n"
                            "params: {w: {shape: [3, 4], init: normal}}\n"
                            "ops:\n"
                            "  - {op: gemm, name: y, a: x, b: w}\n"
                            "  - {op: sum, name: loss, x: y}\n"
                            "backward: loss\n"
                            "optimizer: {sgd: {lr: 0.5}}\n"
                            "outputs: [loss]\n";

#define refuses(call, text) assert_fails((call), GX_ERR_ARGUMENT, &err, (text))

typedef struct program {
    gx_graph *graph;
    gx_state *state;
    gx_plan *plan;
    gx_exec *exec;
} program;

static gx_status parse(const gx_load_options *options, gx_graph **graph, gx_error *err)
{
    return gx_graph_parse(model, strlen(model), NULL, NULL, options, graph, NULL, err);
}

static int open_program(void **state)
{
    static program p;
    gx_error err = { 0 };

    assert_ok(parse(NULL, &p.graph, &err), &err);
    const gx_graph *const graphs[] = { p.graph };

    assert_ok(gx_state_create(graphs, 1, &(gx_state_options){ .device = GX_CPU },
                              &p.state, &err),
              &err);
    assert_ok(
        gx_plan_create(p.graph, &(gx_plan_options){ .device = GX_CPU }, &p.plan, &err),
        &err);
    assert_ok(gx_exec_create(p.plan, p.state, NULL, &p.exec, &err), &err);
    *state = &p;
    return 0;
}

static int close_program(void **state)
{
    program *p = *state;

    gx_exec_free(p->exec);
    gx_plan_free(p->plan);
    gx_state_free(p->state);
    gx_graph_free(p->graph);
    return 0;
}

/* --- loading and building --- */

static void loading_refuses_what_is_null(void **unused)
{
    const gx_set no_value = { "batch", NULL }, no_name = { NULL, "3" };
    const char *const nothing[] = { NULL };
    gx_graph *graph;
    gx_error err;

    (void)unused;
    refuses(gx_graph_load(NULL, NULL, &graph, NULL, &err), "the path is NULL");
    assert_null(graph);
    refuses(gx_graph_load("m.yaml", NULL, NULL, NULL, &err), "place for the graph: NULL");
    refuses(gx_graph_parse(NULL, 0, "a", NULL, NULL, &graph, NULL, &err),
            "the text is NULL");
    refuses(gx_graph_parse(model, strlen(model), NULL, NULL, NULL, NULL, NULL, &err),
            "there is no place for the graph: NULL");
    refuses(parse(&(gx_load_options){ .n_sets = 1 }, &graph, &err),
            "the list of sets is NULL");
    refuses(parse(&(gx_load_options){ .n_sets = 1, .sets = &no_value }, &graph, &err),
            "the value of a set is NULL");
    refuses(parse(&(gx_load_options){ .n_sets = 1, .sets = &no_name }, &graph, &err),
            "the name of a set is NULL");
    refuses(parse(&(gx_load_options){ .n_keep = 1 }, &graph, &err),
            "the list of tensors to keep is NULL");
    refuses(parse(&(gx_load_options){ .n_keep = 1, .keep = nothing }, &graph, &err),
            "the name of a tensor to keep is NULL");
    assert_int_equal(gx_graph_parse(NULL, 0, NULL, NULL, NULL, &graph, NULL, NULL),
                     GX_ERR_ARGUMENT);
}

static void loading_refuses_options_that_there_are_not(void **unused)
{
    gx_graph *graph;
    gx_error err;

    (void)unused;
    refuses(parse(&(gx_load_options){ .stream = (gx_streaming)7 }, &graph, &err),
            "stream 7 is none of as written, on, off");
    const gx_set twice[] = { { "batch", "3" }, { "other", "2" }, { "batch", "4" } };

    refuses(parse(&(gx_load_options){ .sets = twice, .n_sets = 3 }, &graph, &err),
            "'batch' is set twice");
    refuses(parse(&(gx_load_options){ .kind = (gx_kind)9 }, &graph, &err),
            "kind 9 is none of training, evaluation");
}

static void a_name_that_is_null_is_nowhere(void **state)
{
    const program *p = *state;

    assert_int_equal(gx_graph_find(p->graph, NULL), -1);
    assert_int_equal(gx_graph_dim(p->graph, NULL), -1);
}

static void building_refuses_what_is_null(void **unused)
{
    const gx_field_text no_key = { NULL, "w" }, no_text = { "x", NULL };
    const int64_t dim[] = { 2 };
    gx_graph *graph;
    gx_error err = { 0 };

    (void)unused;
    refuses(gx_graph_create(NULL, "f32", &graph, &err), "the name is NULL");
    refuses(gx_graph_create("a", NULL, &graph, &err), "the precision is NULL");
    refuses(gx_graph_create("a", "f32", NULL, &err), "no place for the graph: NULL");
    assert_ok(gx_graph_create("a", "f32", &graph, &err), &err);
    refuses(gx_graph_add_tensor(NULL, GX_ROLE_PARAM, "w", GX_F32, 1, dim, NULL, &err),
            "the graph is NULL");
    refuses(gx_graph_add_tensor(graph, GX_ROLE_PARAM, NULL, GX_F32, 1, dim, NULL, &err),
            "the name is NULL");
    refuses(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F32, 1, NULL, NULL, &err),
            "the list of sizes is NULL");
    refuses(gx_graph_add_tensor(graph, (gx_role)7, "w", GX_F32, 1, dim, NULL, &err),
            "role 7 is none of input, parameter");
    refuses(gx_graph_add_op(graph, NULL, "y", NULL, 0, &err), "the op is NULL");
    refuses(gx_graph_add_op(graph, "relu", NULL, NULL, 0, &err), "the name is NULL");
    refuses(gx_graph_add_op(graph, "relu", "y", NULL, 1, &err),
            "the list of fields is NULL");
    refuses(gx_graph_add_op(graph, "relu", "y", &no_key, 1, &err),
            "the key of a field is NULL");
    refuses(gx_graph_add_op(graph, "relu", "y", &no_text, 1, &err),
            "the text of a field is NULL");
    refuses(gx_graph_set_backward(graph, NULL, &err), "the loss is NULL");
    refuses(gx_graph_set_optimizer(graph, NULL, NULL, 0, &err), "the op is NULL");
    refuses(gx_graph_set_optimizer(graph, "sgd", NULL, 1, &err), "fields is NULL");
    refuses(gx_graph_add_metric(graph, NULL, NULL, 0, &err), "the name is NULL");
    refuses(gx_graph_add_metric(graph, "accuracy", &no_key, 1, &err), "field is NULL");
    refuses(gx_graph_add_output(graph, NULL, &err), "the name is NULL");
    refuses(gx_graph_add_output(NULL, "y", &err), "the graph is NULL");
    refuses(gx_graph_finish(NULL, GX_TRAIN, NULL, &err), "the graph is NULL");
    refuses(gx_graph_finish(graph, (gx_kind)9, NULL, &err), "kind 9 is none of training");
    gx_graph_free(graph);
}

static void a_graph_of_no_ops_is_not_finished(void **unused)
{
    gx_graph *graph;
    gx_error err = { 0 };

    (void)unused;
    assert_ok(gx_graph_create("a", "f32", &graph, &err), &err);
    assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_MODEL, &err,
                 "a model of no ops");
    gx_graph_free(graph);
}

static void beyond_the_end_of_a_list_of_mistakes_is_nothing(void **unused)
{
    gx_diagnostics *list = gx_diagnostics_create();

    (void)unused;
    assert_non_null(list);
    assert_int_equal(gx_diagnostics_count(list), 0);
    assert_string_equal(gx_diagnostics_at(list, 0).message, "");
    assert_string_equal(gx_diagnostics_at(list, 5).message, "");
    assert_string_equal(gx_diagnostics_at(list, 5).source, "");
    gx_diagnostics_free(list);
}

/* --- state --- */

static void a_state_refuses_what_is_null(void **state)
{
    program *p = *state;
    const gx_state_options cpu = { .device = GX_CPU };
    const gx_graph *const graphs[] = { p->graph }, *const nothing[] = { NULL };
    double value = 1;
    gx_tensor host = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = &value };
    gx_snapshot *snapshot;
    gx_state *made;
    gx_error err = { 0 };

    refuses(gx_state_create(NULL, 1, &cpu, &made, &err), "the list of graphs is NULL");
    assert_null(made);
    refuses(gx_state_create(nothing, 1, &cpu, &made, &err), "the graph is NULL");
    refuses(gx_state_create(graphs, 1, &cpu, NULL, &err), "no place for the state: NULL");
    refuses(gx_state_write(NULL, "gexec.lr", &host, &err), "the state is NULL");
    refuses(gx_state_write(p->state, NULL, &host, &err), "the name of a tensor is NULL");
    refuses(gx_state_write(p->state, "gexec.lr", NULL, &err), "tensor of 'gexec.lr'");
    refuses(gx_state_read(NULL, "gexec.lr", &host, &err), "the state is NULL");
    refuses(gx_state_read(p->state, NULL, &host, &err), "the name of a tensor is NULL");
    refuses(gx_state_set_rate(NULL, 1, &err), "the state is NULL");
    refuses(gx_state_save(NULL, &snapshot, &err), "the state is NULL");
    assert_null(snapshot);
    refuses(gx_state_save(p->state, NULL, &err), "no place for the snapshot: NULL");
    refuses(gx_state_restore(p->state, NULL, &err), "the snapshot is NULL");
    assert_ok(gx_state_save(p->state, &snapshot, &err), &err);
    refuses(gx_state_restore(NULL, snapshot, &err), "the state is NULL");
    gx_snapshot_free(snapshot);
}

static void a_rank_that_no_tensor_has_is_a_wrong_shape(void **state)
{
    static const int ranks[] = { 99, GX_MAX_RANK + 1, -1, -3 };
    program *p = *state;
    double values[12] = { 0 };
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        gx_tensor host = { .dtype = GX_F64, .rank = ranks[i], .data = values };
        char text[64];

        snprintf(text, sizeof text, "a rank of %d: 0 to 8 is expected", ranks[i]);
        assert_fails(gx_exec_read(p->exec, "loss", &host, &err), GX_ERR_SHAPE, &err,
                     text);
        assert_has(err.message, "'loss' has shape []");
        assert_fails(gx_exec_fetch(p->exec, "loss", &host, &err), GX_ERR_SHAPE, &err,
                     text);
        assert_fails(gx_exec_write(p->exec, "x", &host, &err), GX_ERR_SHAPE, &err, text);
        assert_fails(gx_state_read(p->state, "w", &host, &err), GX_ERR_SHAPE, &err, text);
        assert_fails(gx_state_write(p->state, "w", &host, &err), GX_ERR_SHAPE, &err,
                     text);
    }
}

/* --- plans and programs --- */

static void a_plan_refuses_what_is_null(void **state)
{
    program *p = *state;
    const gx_plan_options cpu = { .device = GX_CPU };
    gx_edge_info edges[8];
    size_t n_edges;
    bool fits;
    gx_plan *made;
    gx_error err;

    refuses(gx_plan_create(NULL, &cpu, &made, &err), "the graph is NULL");
    assert_null(made);
    refuses(gx_plan_create(p->graph, &cpu, NULL, &err), "no place for the plan: NULL");
    refuses(gx_plan_write(p->plan, NULL, &err), "the path is NULL");
    refuses(gx_plan_write(NULL, "plan.yaml", &err), "the plan is NULL");
    refuses(gx_plan_measure_edges(NULL, edges, &n_edges, &err), "the plan is NULL");
    refuses(gx_plan_measure_edges(p->plan, NULL, &n_edges, &err),
            "there is no place for the edges: NULL");
    refuses(gx_plan_measure_edges(p->plan, edges, NULL, &err),
            "there is no place for the number of edges: NULL");
    refuses(gx_data_fits(NULL, GX_CPU, &fits, &err), "the graph is NULL");
    refuses(gx_data_fits(p->graph, GX_CPU, NULL, &err), "place for the answer: NULL");
}

static void a_plan_refuses_choices_that_there_are_not(void **state)
{
    const program *p = *state;
    const gx_choice five = (gx_choice)5;
    gx_plan *plan;
    gx_error err;

    refuses(gx_plan_create(p->graph,
                           &(gx_plan_options){ .device = GX_CPU, .skip_if = five }, &plan,
                           &err),
            "skip_if: 5 is none of auto, on, off");
    refuses(gx_plan_create(p->graph,
                           &(gx_plan_options){ .device = GX_CPU, .programmatic = five },
                           &plan, &err),
            "programmatic: 5 is none of");
    refuses(gx_plan_create(p->graph,
                           &(gx_plan_options){ .device = GX_CPU, .step_loop = five },
                           &plan, &err),
            "step_loop: 5 is none of");
}

static void a_program_refuses_more_steps_than_a_launch_has(void **state)
{
    const program *p = *state;
    gx_exec_options options = { .steps_per_launch = GX_MAX_STEPS_PER_LAUNCH + 1 };
    gx_exec *exec;
    gx_error err = { 0 };

    refuses(gx_exec_create(p->plan, p->state, &options, &exec, &err),
            "steps per launch: 4097, expected 0 to 4096");
    assert_null(exec);
    options.steps_per_launch = GX_MAX_STEPS_PER_LAUNCH;
    assert_ok(gx_exec_create(p->plan, p->state, &options, &exec, &err), &err);
    gx_exec_free(exec);
}

static void a_log_without_a_place_is_refused(void **state)
{
    program *p = *state;
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 5, &err), &err);
    refuses(gx_exec_log(p->exec, 5, NULL, &err),
            "there is no place for the rows of the log: NULL");
    assert_ok(gx_exec_log(p->exec, 0, NULL, &err), &err);
}

/* --- devices and files --- */

static void a_device_that_there_cannot_be_is_a_bad_argument(void **unused)
{
    gx_device_info info;
    gx_error err;

    (void)unused;
    refuses(gx_device_info_get(-5, &info, &err), "there is no device -5");
    refuses(gx_device_info_get(GX_CPU, NULL, &err), "no place for the device's figures");
    refuses(gx_device_count(NULL, &err), "no place for the number of devices: NULL");
}

static void a_file_of_numbers_refuses_what_is_no_tensor(void **unused)
{
    static const char path[] = "test_arguments.npy";
    float values[4] = { 0 };
    const gx_tensor good = { .dtype = GX_F32, .rank = 1, .dim = { 4 }, .data = values };
    gx_tensor bad = good, read;
    gx_error err = { 0 };

    (void)unused;
    refuses(gx_npy_read(NULL, &read, &err), "the path is NULL");
    refuses(gx_npy_read(path, NULL, &err), "there is no place for the tensor: NULL");
    refuses(gx_npy_write(NULL, &good, &err), "the path is NULL");
    refuses(gx_npy_write(path, NULL, &err), "the tensor is NULL");
    bad.data = NULL;
    refuses(gx_npy_write(path, &bad, &err), "the data of the tensor is NULL");
    bad = good;
    bad.dtype = (gx_dtype)9;
    refuses(gx_npy_write(path, &bad, &err), "there is no type 9 of a tensor");
    bad = good;
    bad.dim[0] = -4;
    refuses(gx_npy_write(path, &bad, &err), "size -4 of a tensor: 0 or more is expected");
    bad.rank = 99;
    refuses(gx_npy_write(path, &bad, &err), "0 to 8 dimensions, not 99");
    bad = good;
    bad.rank = 2;
    bad.dim[0] = bad.dim[1] = INT64_MAX;
    refuses(gx_npy_write(path, &bad, &err), "sizes of a tensor are too large");
    bad.dim[1] = INT64_C(1) << 32; /* the bytes of a file alone are too many */
    bad.dim[0] = INT64_C(1) << 30;
    refuses(gx_npy_write(path, &bad, &err), "sizes of a tensor are too large");
    bad.dim[0] = INT64_MAX;
    bad.dim[1] = 0;
    assert_int_equal(gx_count(&bad), 0);
    assert_fails(gx_npy_read(path, &read, &err), GX_ERR_READ, &err, path);
}

/* --- traces, ceilings, names --- */

static void a_trace_refuses_what_is_null(void **unused)
{
    gx_trace *trace = gx_trace_create();
    gx_trace_figures *figures;
    gx_prediction *prediction;
    uint32_t text;
    gx_error err = { 0 };

    (void)unused;
    assert_non_null(trace);
    refuses(gx_trace_text(NULL, "a", 1, &text, &err), "the trace is NULL");
    refuses(gx_trace_text(trace, NULL, 3, &text, &err), "the text is NULL");
    refuses(gx_trace_text(trace, "a", 1, NULL, &err), "number of the text: NULL");
    assert_ok(gx_trace_text(trace, NULL, 0, &text, &err), &err);
    refuses(gx_trace_add_activity(trace, NULL, &err), "the device work is NULL");
    refuses(gx_trace_add_call(trace, NULL, &err), "the call is NULL");
    refuses(gx_trace_add_range(trace, NULL, &err), "the range is NULL");
    refuses(gx_trace_add_node(trace, NULL, &err), "the graph node is NULL");
    refuses(gx_trace_add_overhead(trace, NULL, &err), "the overhead is NULL");
    refuses(gx_trace_add_call(NULL, &(gx_trace_call){ 0 }, &err), "the trace is NULL");
    refuses(gx_trace_finish(NULL, &err), "the trace is NULL");
    refuses(gx_trace_figures_create(NULL, NULL, &figures, &err), "the trace is NULL");
    refuses(gx_trace_figures_create(trace, NULL, NULL, &err), "the figures: NULL");
    refuses(gx_prediction_create(NULL, NULL, NULL, &prediction, &err),
            "the trace is NULL");
    refuses(gx_prediction_create(trace, NULL, NULL, NULL, &err), "the prediction: NULL");
    gx_trace_free(trace);
}

static void a_trace_refuses_kinds_and_texts_that_there_are_not(void **unused)
{
    gx_trace_activity activity = gx_trace_activity_none();
    gx_trace *trace = gx_trace_create();
    uint32_t text;
    size_t n;
    gx_error err = { 0 };

    (void)unused;
    assert_non_null(trace);
    assert_ok(gx_trace_text(trace, "a", 1, &text, &err), &err);
    activity.name = text + 1;
    refuses(gx_trace_add_activity(trace, &activity, &err),
            "device work of text 2: the trace has 2 texts");
    activity.name = text;
    activity.kind = (gx_trace_kind)99;
    refuses(gx_trace_add_activity(trace, &activity, &err),
            "device work of kind 99, expected 0 to 3");
    activity.kind = GX_TRACE_KERNEL;
    activity.target = (gx_trace_memory)99;
    refuses(gx_trace_add_activity(trace, &activity, &err), "memory written of kind 99");
    activity.target = GX_TRACE_MEMORY_OTHER;
    activity.kind = (gx_trace_kind)-1;
    refuses(gx_trace_add_activity(trace, &activity, &err), "of kind -1");
    refuses(gx_trace_add_call(trace, &(gx_trace_call){ .name = 7 }, &err),
            "a call of text 7");
    refuses(gx_trace_add_range(trace, &(gx_trace_range){ .name = 7 }, &err),
            "a range of text 7");
    refuses(gx_trace_add_range(trace, &(gx_trace_range){ .domain = 7 }, &err),
            "a range in a domain of text 7");
    refuses(gx_trace_add_range(trace, &(gx_trace_range){ .kind = GX_TRACE_RANGE_KINDS },
                               &err),
            "a range of kind 2, expected 0 to 1");
    refuses(gx_trace_add_overhead(trace, &(gx_trace_overhead){ .name = 7 }, &err),
            "overhead of text 7");
    gx_trace_activities(trace, &n);
    assert_int_equal(n, 0);
    activity.kind = GX_TRACE_GRAPH;
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    gx_trace_free(trace);
}

static void what_is_not_there_has_no_name(void **unused)
{
    (void)unused;
    assert_string_equal(gx_bound_name((gx_bound)99), "n/a");
    assert_string_equal(gx_bound_name((gx_bound)-1), "n/a");
    assert_string_equal(gx_rate_name((gx_rate)99), "unknown");
    assert_string_equal(gx_rate_name((gx_rate)-1), "unknown");
    assert_string_equal(gx_gap_class_name((gx_gap_class)99), "?");
    assert_string_equal(gx_obstacle_kind_name((gx_obstacle_kind)99), "?");
    assert_string_equal(gx_dtype_name((gx_dtype)99), "unknown");
    assert_null(gx_node_order_name((gx_node_order)99));
    assert_int_equal(gx_diagnostics_count(NULL), 0);
    assert_string_equal(gx_diagnostics_at(NULL, 0).message, "");
}

static void ceilings_refuse_what_is_null(void **unused)
{
    gx_ceilings ceilings = { .n_copy = 0 };
    gx_device_info info = { .ordinal = 0 };
    gx_bound bound;
    gx_error err = { 0 };

    (void)unused;
    refuses(gx_ceilings_load(NULL, "", &ceilings, &err), "the device is NULL");
    refuses(gx_ceilings_load(&info, "", NULL, &err), "the ceilings: NULL");
    refuses(gx_ceilings_save(NULL, "", &ceilings, &err), "the device is NULL");
    refuses(gx_ceilings_save(&info, "", NULL, &err), "the ceilings is NULL");
    refuses(gx_ceilings_measure(0, NULL, &err), "the ceilings: NULL");
    assert_true(gx_ceilings_floor(&ceilings, (gx_rate)99, 1, 1, &bound) < 0);
    assert_int_equal(bound, GX_BOUND_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_refuses_what_is_null),
        cmocka_unit_test(loading_refuses_options_that_there_are_not),
        cmocka_unit_test(a_name_that_is_null_is_nowhere),
        cmocka_unit_test(building_refuses_what_is_null),
        cmocka_unit_test(a_graph_of_no_ops_is_not_finished),
        cmocka_unit_test(beyond_the_end_of_a_list_of_mistakes_is_nothing),
        cmocka_unit_test(a_state_refuses_what_is_null),
        cmocka_unit_test(a_rank_that_no_tensor_has_is_a_wrong_shape),
        cmocka_unit_test(a_plan_refuses_what_is_null),
        cmocka_unit_test(a_plan_refuses_choices_that_there_are_not),
        cmocka_unit_test(a_program_refuses_more_steps_than_a_launch_has),
        cmocka_unit_test(a_log_without_a_place_is_refused),
        cmocka_unit_test(a_device_that_there_cannot_be_is_a_bad_argument),
        cmocka_unit_test(a_file_of_numbers_refuses_what_is_no_tensor),
        cmocka_unit_test(a_trace_refuses_what_is_null),
        cmocka_unit_test(a_trace_refuses_kinds_and_texts_that_there_are_not),
        cmocka_unit_test(what_is_not_there_has_no_name),
        cmocka_unit_test(ceilings_refuse_what_is_null),
    };

    return cmocka_run_group_tests_name("arguments", tests, open_program, close_program);
}
