/* Programs on the CPU through the public calls: values in and out, the log, mistakes. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const model = "gexec: 1\n"
                                 "name: exec\n"
                                 "dims: {batch: 4}\n"
                                 "precision: f32\n"
                                 "inputs:\n"
                                 "  x: {shape: [batch, 3]}\n"
                                 "  y: {shape: [batch], dtype: i32}\n"
                                 "  unused: {shape: [2], init: ones}\n"
                                 "params:\n"
                                 "  w: {shape: [3, 2], init: he_normal}\n"
                                 "ops:\n"
                                 "  - {op: gemm, name: fc, a: x, b: w, out: logits}\n"
                                 "  - {op: relu, name: act, x: logits, out: h}\n"
                                 "  - {op: softmax_cross_entropy, name: loss, logits: h, "
                                 "labels: y}\n"
                                 "backward: loss\n"
                                 "optimizer: {sgd: {lr: 1.0e-1}}\n"
                                 "outputs: [loss, logits]\n";

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

static float x_values[12] = { 1, -2, 3, 0.5f, 0.25f, -1, 2, 2, 2, -3, 1, 0 };
static int32_t y_values[4] = { 0, 1, 1, 0 };
static const gx_tensor x_host = {
    .dtype = GX_F32, .rank = 2, .dim = { 4, 3 }, .data = x_values
};
static const gx_tensor y_host = {
    .dtype = GX_I32, .rank = 1, .dim = { 4 }, .data = y_values
};

static int open_program(void **state)
{
    const gx_plan_options plan_options = { .device = GX_CPU };
    const gx_state_options state_options = { .device = GX_CPU, .seed = 3 };
    program *p = calloc(1, sizeof *p);
    gx_error err;

    assert_non_null(p);
    assert_ok(gx_graph_parse(model, strlen(model), "exec.yaml", ".", NULL, &p->graph,
                             NULL, &err),
              &err);
    const gx_graph *graph = p->graph;
    assert_ok(gx_plan_create(graph, &plan_options, &p->plan, &err), &err);
    assert_ok(gx_state_create(&graph, 1, &state_options, &p->state, &err), &err);
    assert_ok(gx_exec_create(p->plan, p->state, NULL, &p->exec, &err), &err);
    *state = p;
    return 0;
}

static int close_program(void **state)
{
    program *p = *state;

    gx_exec_free(p->exec);
    gx_state_free(p->state);
    gx_plan_free(p->plan);
    gx_graph_free(p->graph);
    free(p);
    return 0;
}

static void write_inputs(program *p)
{
    gx_error err;

    assert_ok(gx_exec_write(p->exec, "x", &x_host, &err), &err);
    assert_ok(gx_exec_write(p->exec, "y", &y_host, &err), &err);
}

static double read_loss(program *p)
{
    double loss = NAN;
    gx_tensor host = { .dtype = GX_F64, .rank = 0, .data = &loss };
    gx_error err;

    assert_ok(gx_exec_read(p->exec, "loss", &host, &err), &err);
    return loss;
}

static void an_input_without_values_is_named(void **state)
{
    program *p = *state;
    gx_error err;

    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), GX_ERR_STATE, &err, "'x'");
    assert_ok(gx_exec_write(p->exec, "x", &x_host, &err), &err);
    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), GX_ERR_STATE, &err, "'y'");
    assert_ok(gx_exec_write(p->exec, "y", &y_host, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
}

static void modes_of_a_gpu_are_refused(void **state)
{
    program *p = *state;
    void *graph = p;
    gx_error err;

    write_inputs(p);
    assert_fails(gx_exec_run(p->exec, GX_MODE_EAGER, 1, &err), GX_ERR_ARGUMENT, &err,
                 "eager");
    assert_fails(gx_exec_run(p->exec, GX_MODE_GRAPH, 1, &err), GX_ERR_ARGUMENT, &err,
                 "graph");
    assert_fails(gx_exec_capture(p->exec, &err), GX_ERR_ARGUMENT, &err, "CPU");
    assert_fails(gx_exec_cuda_graph(p->exec, &graph, &err), GX_ERR_ARGUMENT, &err, "CPU");
    assert_null(graph);
    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, -1, &err), GX_ERR_ARGUMENT, &err,
                 "-1 steps");
    assert_fails(gx_exec_run(NULL, GX_MODE_CPU, 1, &err), GX_ERR_ARGUMENT, &err, "NULL");
}

static void a_plan_of_another_device_is_refused(void **state)
{
    program *p = *state;
    gx_exec *exec = (gx_exec *)p;
    gx_error err;

    assert_fails(gx_exec_create(p->plan, NULL, NULL, &exec, &err), GX_ERR_ARGUMENT, &err,
                 "state is NULL");
    assert_null(exec);
    assert_fails(gx_exec_create(NULL, p->state, NULL, &exec, &err), GX_ERR_ARGUMENT, &err,
                 "plan is NULL");
    const gx_exec_options options = { .steps_per_launch = -2 };
    assert_fails(gx_exec_create(p->plan, p->state, &options, &exec, &err),
                 GX_ERR_ARGUMENT, &err, "-2");
}

/* A state that was made for other graphs lacks what this plan needs. */
static void a_state_of_another_model_is_refused(void **state)
{
    static const char *const other = "gexec: 1\nname: other\nprecision: f32\n"
                                     "inputs:\n  x: {shape: [2, 2], init: ones}\n"
                                     "ops:\n  - {op: relu, name: act, x: x, out: h}\n"
                                     "outputs: [h]\n";
    const gx_state_options options = { .device = GX_CPU };
    program *p = *state;
    gx_graph *graph = NULL;
    gx_state *made = NULL;
    gx_exec *exec = NULL;
    gx_error err;

    assert_ok(
        gx_graph_parse(other, strlen(other), "other.yaml", ".", NULL, &graph, NULL, &err),
        &err);
    const gx_graph *graphs[] = { graph };
    assert_ok(gx_state_create(graphs, 1, &options, &made, &err), &err);
    assert_fails(gx_exec_create(p->plan, made, NULL, &exec, &err), GX_ERR_ARGUMENT, &err,
                 "other graphs");
    assert_null(exec);
    gx_state_free(made);
    gx_graph_free(graph);
}

static void wrong_writes_say_what_was_expected(void **state)
{
    program *p = *state;
    gx_tensor wrong = x_host;
    int32_t labels[4] = { 0, 1, 2, 0 };
    gx_tensor bad_labels = y_host;
    gx_error err;

    assert_fails(gx_exec_write(p->exec, "unusde", &x_host, &err), GX_ERR_ARGUMENT, &err,
                 "the nearest is 'unused'");
    assert_fails(gx_exec_write(p->exec, "w", &x_host, &err), GX_ERR_ARGUMENT, &err,
                 "no input");
    assert_fails(gx_exec_write(p->exec, NULL, &x_host, &err), GX_ERR_ARGUMENT, &err,
                 "NULL");
    assert_fails(gx_exec_write(p->exec, "x", NULL, &err), GX_ERR_ARGUMENT, &err, "NULL");
    wrong.dim[1] = 4;
    assert_fails(gx_exec_write(p->exec, "x", &wrong, &err), GX_ERR_SHAPE, &err, "[4, 3]");
    wrong = x_host;
    wrong.dtype = GX_I32;
    assert_fails(gx_exec_write(p->exec, "x", &wrong, &err), GX_ERR_SHAPE, &err,
                 "'x': expected f32 or f64, found i32");
    bad_labels.data = labels;
    assert_fails(gx_exec_write(p->exec, "y", &bad_labels, &err), GX_ERR_DATA, &err,
                 "value 2 is not an integer in [0, 2)");
    /* What was refused counts as not written. */
    assert_ok(gx_exec_write(p->exec, "x", &x_host, &err), &err);
    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), GX_ERR_STATE, &err, "'y'");
}

static void values_are_converted_on_their_way(void **state)
{
    program *p = *state;
    double given[12];
    double back[12];
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 4, 3 }, .data = given };
    gx_error err;

    for (int i = 0; i < 12; i++)
        given[i] = 0.1 * (i + 1);
    assert_ok(gx_exec_write(p->exec, "x", &host, &err), &err);
    host.data = back;
    assert_ok(gx_exec_read(p->exec, "x", &host, &err), &err);
    for (int i = 0; i < 12; i++)
        assert_true(back[i] == (double)(float)given[i]);
}

static void an_input_that_no_op_reads_can_be_written(void **state)
{
    program *p = *state;
    float two[2] = { 5, 6 };
    const gx_tensor host = { .dtype = GX_F32, .rank = 1, .dim = { 2 }, .data = two };
    gx_error err;

    assert_ok(gx_exec_write(p->exec, "unused", &host, &err), &err);
}

static void a_step_sees_the_last_write(void **state)
{
    program *p = *state;
    float zeros[12] = { 0 };
    gx_tensor none = x_host;
    gx_error err;

    write_inputs(p);
    none.data = zeros;
    assert_ok(gx_exec_write(p->exec, "x", &none, &err), &err);
    zeros[0] = 100; /* the memory is ours again */
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_true(fabs(read_loss(p) - log(2)) < 1e-6);
}

static void only_what_is_kept_can_be_read(void **state)
{
    program *p = *state;
    double values[8];
    gx_tensor host = { .dtype = GX_F64, .rank = 2, .dim = { 4, 2 }, .data = values };
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_ok(gx_exec_read(p->exec, "logits", &host, &err), &err);
    assert_fails(gx_exec_read(p->exec, "h", &host, &err), GX_ERR_ARGUMENT, &err,
                 "outputs");
    assert_fails(gx_exec_read(p->exec, "logit", &host, &err), GX_ERR_ARGUMENT, &err,
                 "'logits'");
    assert_fails(gx_exec_fetch(p->exec, "logits", &host, &err), GX_ERR_SHAPE, &err,
                 "f32");
}

static void a_fetch_holds_the_step_that_was_submitted(void **state)
{
    program *p = *state;
    float first = NAN;
    gx_tensor host = { .dtype = GX_F32, .rank = 0, .data = &first };
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    const double loss = read_loss(p);
    assert_ok(gx_exec_fetch(p->exec, "loss", &host, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 3, &err), &err);
    assert_ok(gx_exec_sync(p->exec, &err), &err);
    assert_true((double)first == loss);
    assert_true(read_loss(p) != loss);
}

static void what_a_step_makes_is_not_read_before_one(void **state)
{
    program *p = *state;
    double values[12];
    float loss = 0;
    gx_tensor host = { .dtype = GX_F64, .rank = 0, .data = values };
    gx_tensor fetched = { .dtype = GX_F32, .rank = 0, .data = &loss };
    gx_tensor x = { .dtype = GX_F64, .rank = 2, .dim = { 4, 3 }, .data = values };
    gx_tensor counter = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = values };
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 0, &err), &err);
    assert_fails(gx_exec_read(p->exec, "loss", &host, &err), GX_ERR_STATE, &err,
                 "'loss' has no values yet: this program has run no step");
    assert_fails(gx_exec_fetch(p->exec, "loss", &fetched, &err), GX_ERR_STATE, &err,
                 "'loss' has no values yet");
    assert_ok(gx_exec_read(p->exec, "x", &x, &err), &err);
    assert_ok(gx_exec_read(p->exec, "gexec.step", &counter, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_ok(gx_exec_read(p->exec, "loss", &host, &err), &err);
    assert_ok(gx_exec_fetch(p->exec, "loss", &fetched, &err), &err);
    assert_true(loss > 0);
}

static void write_steps(program *p, int32_t steps)
{
    const gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &steps };
    gx_error err;

    assert_ok(gx_state_write(p->state, "gexec.step", &host, &err), &err);
}

/* As where a saved state is gone on with: the log is not saved. */
static void the_log_has_no_rows_of_steps_that_were_not_run(void **state)
{
    program *p = *state;
    double rows[4];
    gx_snapshot *snapshot;
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 2, &err), &err);
    assert_ok(gx_state_save(p->state, &snapshot, &err), &err);
    write_steps(p, 1000);
    assert_fails(gx_exec_log(p->exec, 1, rows, &err), GX_ERR_STATE, &err,
                 "1 rows of the log after 0 steps: gexec.step was written as 1000");
    assert_ok(gx_exec_log(p->exec, 0, NULL, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 3, &err), &err);
    assert_fails(gx_exec_log(p->exec, 4, rows, &err), GX_ERR_STATE, &err,
                 "4 rows of the log after 3 steps");
    assert_ok(gx_exec_log(p->exec, 3, rows, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_true(rows[i] > 0);
    /* A snapshot has its log with it. */
    assert_ok(gx_state_restore(p->state, snapshot, &err), &err);
    assert_ok(gx_exec_log(p->exec, 2, rows, &err), &err);
    assert_true(rows[0] > 0 && rows[1] > 0);
    assert_fails(gx_exec_log(p->exec, 3, rows, &err), GX_ERR_STATE, &err,
                 "after 2 steps");
    gx_snapshot_free(snapshot);
}

static void steps_that_cannot_be_counted_are_refused(void **state)
{
    program *p = *state;
    gx_timing timing;
    int32_t steps = 0;
    gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &steps };
    gx_error err;

    write_inputs(p);
    write_steps(p, INT32_MAX - 3);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 2, &err), &err);
    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, 2, &err), GX_ERR_LIMIT, &err,
                 "gexec.step is 2147483646, and 2 steps more would take it past "
                 "2147483647");
    assert_fails(gx_exec_time(p->exec, GX_MODE_CPU, 2, &timing, &err), GX_ERR_LIMIT, &err,
                 "gexec.step is 2147483646");
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_fails(gx_exec_run(p->exec, GX_MODE_CPU, INT64_MAX, &err), GX_ERR_LIMIT, &err,
                 "past 2147483647");
    assert_ok(gx_state_read(p->state, "gexec.step", &host, &err), &err);
    assert_int_equal(steps, INT32_MAX);
    write_steps(p, 5);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 2, &err), &err);
}

static void the_log_keeps_the_last_rows_when_it_wraps(void **state)
{
    enum { MORE = 8 };
    program *p = *state;
    double losses[MORE];
    double rows[MORE];
    gx_error err;

    write_inputs(p);
    assert_fails(gx_exec_log(p->exec, 1, rows, &err), GX_ERR_STATE, &err,
                 "after 0 steps");
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, GX_LOG_ROWS - MORE / 2, &err), &err);
    for (int i = 0; i < MORE; i++) {
        assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
        losses[i] = read_loss(p);
    }
    assert_ok(gx_exec_log(p->exec, MORE, rows, &err), &err);
    assert_memory_equal(rows, losses, sizeof rows);
    assert_ok(gx_exec_log(p->exec, 1, rows, &err), &err);
    assert_true(rows[0] == losses[MORE - 1]);
    assert_ok(gx_exec_log(p->exec, 0, NULL, &err), &err);
    assert_fails(gx_exec_log(p->exec, GX_LOG_ROWS + 1, rows, &err), GX_ERR_ARGUMENT, &err,
                 "4097 rows");
}

static void a_bound_input_is_read_where_it_lives(void **state)
{
    program *p = *state;
    double *values = aligned_alloc(256, 256);
    gx_error err;

    assert_non_null(values);
    for (int i = 0; i < 12; i++)
        values[i] = 0;
    write_inputs(p);
    assert_fails(gx_exec_bind(p->exec, "x", values + 1, &err), GX_ERR_ARGUMENT, &err,
                 "256");
    assert_fails(gx_exec_bind(p->exec, "w", values, &err), GX_ERR_ARGUMENT, &err,
                 "no input");
    assert_ok(gx_exec_bind(p->exec, "x", values, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_true(fabs(read_loss(p) - log(2)) < 1e-6);
    values[0] = 7;
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 1, &err), &err);
    assert_true(fabs(read_loss(p) - log(2)) > 1e-4);
    free(values);
}

static void times_are_told_and_nothing_is_claimed_of_launches(void **state)
{
    program *p = *state;
    gx_timing timing;
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_time(p->exec, GX_MODE_CPU, 3, &timing, &err), &err);
    assert_true(timing.host_s > 0 && timing.wall_s >= timing.host_s);
    assert_true(timing.device_s < 0);
    const gx_exec_stats stats = gx_exec_stats_get(p->exec);
    assert_int_equal(stats.launches_per_step, 0);
    assert_int_equal(stats.graph_nodes, 0);
    assert_true(stats.prime_s < 0 && stats.capture_s < 0 && stats.first_launch_s < 0);
    assert_true(stats.device_bytes > 0);
}

static void two_programs_share_a_state(void **state)
{
    program *p = *state;
    gx_exec *second = NULL;
    int32_t steps = -1;
    gx_tensor host = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &steps };
    gx_error err;

    write_inputs(p);
    assert_ok(gx_exec_create(p->plan, p->state, NULL, &second, &err), &err);
    assert_ok(gx_exec_write(second, "x", &x_host, &err), &err);
    assert_ok(gx_exec_write(second, "y", &y_host, &err), &err);
    assert_ok(gx_exec_run(p->exec, GX_MODE_CPU, 2, &err), &err);
    assert_ok(gx_exec_run(second, GX_MODE_CPU, 3, &err), &err);
    assert_ok(gx_exec_read(p->exec, "gexec.step", &host, &err), &err);
    assert_int_equal(steps, 5);
    gx_exec_free(second);
}

static void the_library_tells_its_version(void **state)
{
    char expected[32];

    (void)state;
    snprintf(expected, sizeof expected, "%d.%d.%d", GX_VERSION_MAJOR, GX_VERSION_MINOR,
             GX_VERSION_PATCH);
    assert_string_equal(gx_version(), expected);
}

static void calls_that_need_a_gpu_say_so(void **state)
{
    double seconds = 5;
    gx_error err;

    (void)state;
    gx_error_clear(&err);
    if (gx_has_cuda())
        assert_fails(gx_empty_graph_host(GX_CPU, 3, 3, 0, &seconds, &err),
                     GX_ERR_ARGUMENT, &err, "device -1");
    else
        assert_fails(gx_empty_graph_host(GX_CPU, 3, 3, 0, &seconds, &err),
                     GX_ERR_NO_DEVICE, &err, "without CUDA");
    assert_true(seconds < 0);
}

int main(void)
{
#define WITH_PROGRAM(test) \
    cmocka_unit_test_setup_teardown(test, open_program, close_program)
    const struct CMUnitTest tests[] = {
        WITH_PROGRAM(an_input_without_values_is_named),
        WITH_PROGRAM(modes_of_a_gpu_are_refused),
        WITH_PROGRAM(a_plan_of_another_device_is_refused),
        WITH_PROGRAM(a_state_of_another_model_is_refused),
        WITH_PROGRAM(wrong_writes_say_what_was_expected),
        WITH_PROGRAM(values_are_converted_on_their_way),
        WITH_PROGRAM(an_input_that_no_op_reads_can_be_written),
        WITH_PROGRAM(a_step_sees_the_last_write),
        WITH_PROGRAM(only_what_is_kept_can_be_read),
        WITH_PROGRAM(a_fetch_holds_the_step_that_was_submitted),
        WITH_PROGRAM(what_a_step_makes_is_not_read_before_one),
        WITH_PROGRAM(the_log_has_no_rows_of_steps_that_were_not_run),
        WITH_PROGRAM(steps_that_cannot_be_counted_are_refused),
        WITH_PROGRAM(the_log_keeps_the_last_rows_when_it_wraps),
        WITH_PROGRAM(a_bound_input_is_read_where_it_lives),
        WITH_PROGRAM(times_are_told_and_nothing_is_claimed_of_launches),
        WITH_PROGRAM(two_programs_share_a_state),
        cmocka_unit_test(the_library_tells_its_version),
        cmocka_unit_test(calls_that_need_a_gpu_say_so),
    };

    return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
