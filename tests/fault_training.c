/* Schedules, sums, norms and updates on the simulated CUDA: how many launches all tensors
 * take together, and each call failing once. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <string.h>

/* 21 parameters; three groups. */
static const char model[] =
    "gexec: 1\nname: deep\nprecision: %s\n"
    "inputs: {x: {shape: [4, 8], init: normal}, t: {shape: [4, 8], init: normal}}\n"
    "ops:\n"
    "  - repeat:\n"
    "      name: blk\n      count: 10\n      carry: {h: x}\n"
    "      params: {w: {shape: [8, 8], init: he_normal}, b: {shape: [8]}}\n"
    "      ops: [{op: gemm, name: fc, a: h, b: w, epilogue: {bias: b}, out: h}]\n"
    "  - {op: mse, name: loss, x: h, target: t}\n"
    "backward: loss\n"
    "optimizer:\n  %s: {lr: 0.01}\n"
    "  schedule: {cosine: {steps: 100, warmup: 10}}\n  clip_norm: 1\n  accumulate: 2\n"
    "  groups: [{params: \"*.b\", weight_decay: 0.5, lr: 0.1}, "
    "{params: blk.3.w, lr: 0.2}]\n%s"
    "metrics: {grad_norm: {}}\noutputs: [loss, gexec.rate]\n";

static const char mixed[] = "  master: f32\n  moments: f32\n  loss_scale: dynamic\n";

/* In f32; or in f16 with all that it may want. */
static void open_model(path_program *program, const char *optimizer, bool half)
{
    const gx_plan_options plan_options = {
        .device = 0, .cache_folder = "", .lanes = 1, .no_measure = true, .force = "multi"
    };
    const gx_state_options state_options = { .device = 0, .seed = 7 };
    char text[2000];
    gx_error err;

    snprintf(text, sizeof text, model, half ? "f16" : "f32", optimizer,
             half ? mixed : "");
    *program = (path_program){ NULL, NULL, NULL, NULL };
    assert_ok(gx_graph_parse(text, strlen(text), "deep.yaml", ".", NULL, &program->graph,
                             NULL, &err),
              &err);
    assert_ok(gx_plan_create(program->graph, &plan_options, &program->plan, &err), &err);
    const gx_graph *graph = program->graph;
    assert_ok(gx_state_create(&graph, 1, &state_options, &program->state, &err), &err);
}

/* Launches of all units of an op, which stand together as one. */
static int launches_of(const path_program *program, const char *op, int *n_units)
{
    int n = 0;

    *n_units = 0;
    for (size_t i = 0; i < program->plan->n_units; i++) {
        const gx_node *node = &program->graph->nodes[program->plan->units[i].first_node];

        if (strcmp(node->op_name, op) != 0)
            continue;
        n += program->exec->units[i].prepared.n_launches;
        (*n_units)++;
    }
    return n;
}

static void all_tensors_take_one_launch(void **state)
{
    static const char *const optimizers[] = { "sgd", "momentum", "nesterov", "adam",
                                              "adamw" };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(optimizers); i++) {
        const char *optimizer = optimizers[i / 2];
        const bool half = i % 2;
        path_program program;
        gx_error err;
        int n_units;

        open_model(&program, optimizer, half);
        path_make_exec(&program);
        assert_int_equal(launches_of(&program, optimizer, &n_units), 1);
        assert_int_equal(n_units, 1);
        assert_int_equal(launches_of(&program, "accumulate", &n_units), 1);
        assert_int_equal(n_units, 1);
        assert_int_equal(launches_of(&program, "grad_norm", &n_units), 2);
        assert_int_equal(n_units, 1);
        assert_int_equal(launches_of(&program, "schedule", &n_units), 1);
        assert_int_equal(n_units, 1);
        assert_int_equal(launches_of(&program, "loss_scale", &n_units), half);
        assert_int_equal(n_units, half);
        /* the capture counts what is launched */
        assert_ok(gx_exec_capture(program.exec, &err), &err);
        assert_int_equal(gx_exec_stats_get(program.exec).graph_nodes,
                         gx_exec_stats_get(program.exec).launches_per_step);
        path_close(&program);
    }
    assert_int_equal(fake_live(), 0);
}

static gx_status whole_exec(void *user, gx_error *err)
{
    const path_program *program = user;
    gx_exec *exec = NULL;

    GX_TRY(gx_exec_create(program->plan, program->state, NULL, &exec, err));
    gx_status st = gx_exec_run(exec, GX_MODE_EAGER, 1, err);
    if (st == GX_OK)
        st = gx_exec_run(exec, GX_MODE_GRAPH, 2, err);
    fake_quiet(true);
    gx_exec_free(exec);
    return st;
}

static void a_training_step_takes_every_failure(void **state)
{
    path_program program;

    (void)state;
    for (int half = 0; half < 2; half++) {
        open_model(&program, "adamw", half);
        assert_true(path_fail_each_call(whole_exec, &program) >= 50);
        path_close(&program);
    }
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tensors_take_one_launch),
        cmocka_unit_test(a_training_step_takes_every_failure),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_training", tests, NULL, NULL);
}
