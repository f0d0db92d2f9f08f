/* Data that stream, on the simulated CUDA: each call fails once; copies and steps run in
 * every order that is allowed, and each step has its own batch. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "feed.h"
#include "support_stream.h"

enum { BATCH = 8, MOST_STEPS = 60, N_SEEDS = 300 };

static path_program open_program(int lanes)
{
    const gx_plan_options plan_options = {
        .device = 0, .cache_folder = "", .lanes = lanes, .no_measure = true
    };
    const gx_state_options state_options = { .device = 0, .seed = 7 };
    path_program program = { NULL, NULL, NULL, NULL };
    gx_error err;

    test_rows_write();
    program.graph = test_rows_load(GX_TRAIN, GX_STREAM_ON, 0, "f32", "");
    assert_ok(gx_plan_create(program.graph, &plan_options, &program.plan, &err), &err);
    const gx_graph *graph = program.graph;
    assert_ok(gx_state_create(&graph, 1, &state_options, &program.state, &err), &err);
    return program;
}

static gx_exec *make_exec(const path_program *program, int steps_per_launch)
{
    const gx_exec_options options = { .steps_per_launch = steps_per_launch };
    gx_exec *exec;
    gx_error err;

    assert_ok(gx_exec_create(program->plan, program->state, &options, &exec, &err), &err);
    return exec;
}

/* --- each call fails --- */

static gx_status use_exec(gx_exec *exec, gx_error *err)
{
    float x[BATCH * TEST_WIDTH];
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { BATCH, 3 }, .data = x };
    gx_timing timing;

    GX_TRY(gx_exec_run(exec, GX_MODE_EAGER, 2, err));
    GX_TRY(gx_exec_run(exec, GX_MODE_GRAPH, 3, err));
    GX_TRY(gx_exec_fetch(exec, "x", &host, err));
    GX_TRY(gx_exec_sync(exec, err));
    GX_TRY(gx_exec_read(exec, "x", &host, err));
    return gx_exec_time(exec, GX_MODE_GRAPH, 2, &timing, err);
}

static gx_status whole_exec(void *user, gx_error *err)
{
    const path_program *program = user;
    gx_exec *exec = NULL;

    /* each time the same calls: the counters are read */
    program->state->at[GX_PART_TRAIN].known = false;
    GX_TRY(gx_exec_create(program->plan, program->state, NULL, &exec, err));
    const gx_status st = use_exec(exec, err);
    fake_quiet(true);
    gx_exec_free(exec);
    return st;
}

static void a_program_that_is_fed_takes_every_failure(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        path_program program = open_program(lanes);

        assert_true(path_fail_some_calls(whole_exec, &program, 40) >= 200);
        path_close(&program);
        assert_int_equal(fake_live(), 0);
    }
}

/* --- each step has its own batch --- */

/* The batches of the first steps, by the program that gathers on the CPU. */
static void read_batches(float (*x)[BATCH * TEST_WIDTH])
{
    const gx_state_options options = { .device = GX_CPU, .seed = 7 };
    gx_graph *graph = test_rows_load(GX_TRAIN, GX_STREAM_OFF, 0, "f32", "");
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
    gx_error err;

    assert_ok(gx_plan_create(graph, &(gx_plan_options){ .device = GX_CPU }, &plan, &err),
              &err);
    assert_ok(gx_state_create((const gx_graph *const *)&graph, 1, &options, &state, &err),
              &err);
    assert_ok(gx_exec_create(plan, state, NULL, &exec, &err), &err);
    for (int i = 0; i < MOST_STEPS; i++) {
        gx_tensor host = {
            .dtype = GX_F32, .rank = 2, .dim = { BATCH, 3 }, .data = x[i]
        };

        assert_ok(gx_exec_run(exec, GX_MODE_CPU, 1, &err), &err);
        assert_ok(gx_exec_read(exec, "x", &host, &err), &err);
    }
    gx_exec_free(exec);
    gx_state_free(state);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

/* Runs of some steps each, in either mode, with fetches of the last batch between; what
 * was fetched is compared when all has run. */
static void run_in_some_order(path_program *program, uint64_t seed, int k,
                              float (*expected)[BATCH * TEST_WIDTH])
{
    static float found[MOST_STEPS][BATCH * TEST_WIDTH];
    int step_of[MOST_STEPS], n_found = 0;
    test_random random = test_random_start(seed);
    gx_snapshot *start;
    gx_error err;
    int step = 0;

    fake_order_begin(seed);
    gx_exec *exec = make_exec(program, k);
    assert_ok(gx_state_save(program->state, &start, &err), &err);
    while (step + 4 * k < MOST_STEPS) {
        const bool graph = test_random_int(&random, 0, 1);
        const int n = (int)test_random_int(&random, 1, 3) * (graph ? k : 1);
        gx_tensor host = {
            .dtype = GX_F32, .rank = 2, .dim = { BATCH, 3 }, .data = found[n_found]
        };

        assert_ok(gx_exec_run(exec, graph ? GX_MODE_GRAPH : GX_MODE_EAGER, n, &err),
                  &err);
        step += n;
        if (test_random_int(&random, 0, 3) > 0) {
            assert_ok(gx_exec_fetch(exec, "x", &host, &err), &err);
            step_of[n_found++] = step - 1;
        }
        if (test_random_int(&random, 0, 7) == 0)
            assert_ok(gx_exec_sync(exec, &err), &err);
    }
    assert_ok(gx_exec_sync(exec, &err), &err);
    assert_int_equal(gx_exec_stats_get(exec).data_steps, step);
    for (int i = 0; i < n_found; i++)
        if (memcmp(found[i], expected[step_of[i]], sizeof found[i]) != 0)
            fail_msg("seed %llu, %d steps a launch: step %d had another batch",
                     (unsigned long long)seed, k, step_of[i]);
    /* kernels do nothing here: the counters on the device stand where they stood */
    assert_ok(gx_state_restore(program->state, start, &err), &err);
    gx_snapshot_free(start);
    gx_exec_free(exec);
    fake_order_end();
    assert_null(fake_mistake());
}

static void no_copy_overtakes_a_step(void **state)
{
    static float expected[MOST_STEPS][BATCH * TEST_WIDTH];
    const uint64_t seed = test_seed();
    path_program program = open_program(2);

    (void)state;
    fake_begin();
    read_batches(expected);
    for (uint64_t i = 0; i < N_SEEDS; i++)
        run_in_some_order(&program, seed + i, i % 3 == 0 ? 3 : 1, expected);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* With the steps before done, whatever the step under way does. */
static void the_next_batch_is_copied_beside_a_step(void **state)
{
    path_program program = open_program(1);
    const uint64_t seed = test_seed();
    gx_error err;

    (void)state;
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    fake_order_begin(seed);
    for (int i = 0; i < N_SEEDS; i++) {
        const gx_mode mode = i % 2 ? GX_MODE_EAGER : GX_MODE_GRAPH;

        assert_ok(gx_exec_sync(program.exec, &err), &err);
        assert_ok(gx_exec_run(program.exec, mode, 1, &err), &err);
        assert_true(fake_order_runs_alone(program.exec->feed->stream));
    }
    fake_order_end();
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- what a program is made of --- */

static void each_slot_has_a_graph(void **state)
{
    path_program program = open_program(1);
    gx_exec_stats stats;
    void *graph;
    gx_error err;

    (void)state;
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.instantiations, GX_FEED_SLOTS);
    assert_int_equal(stats.rebuilds, 0);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    for (int slot = 0; slot < GX_FEED_SLOTS; slot++)
        assert_non_null(program.exec->graph_exec[slot]);
    assert_true(stats.device_bytes >= gx_feed_bytes(program.exec));
    assert_true(gx_feed_bytes(program.exec) > 0);
    assert_fails(gx_exec_cuda_graph(program.exec, &graph, &err), GX_ERR_STATE, &err,
                 "the data stream");
    assert_null(graph);
    path_close(&program);
}

/* The batch of a step is copied once, while the step before is under way. */
static void a_step_takes_one_copy(void **state)
{
    path_program program = open_program(1);
    gx_error err;

    (void)state;
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 5, &err), &err);
    assert_int_equal(fake_calls("cudaMemcpyAsync"), 5);
    assert_int_equal(fake_calls("cudaGraphLaunch"), 5);
    assert_int_equal(fake_calls("cudaStreamSynchronize"), 0);
    assert_int_equal(fake_calls("cudaMallocHost") + fake_calls("cudaMalloc"), 0);
    path_close(&program);
}

/* A batch that was gathered ahead is dropped where the program goes on elsewhere. */
static void a_batch_made_ahead_is_dropped_after_a_restore(void **state)
{
    path_program program = open_program(1);
    gx_snapshot *start;
    float first[BATCH * TEST_WIDTH], again[BATCH * TEST_WIDTH];
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { BATCH, 3 }, .data = first };
    gx_error err;

    (void)state;
    path_make_exec(&program);
    assert_ok(gx_state_save(program.state, &start, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    assert_ok(gx_exec_read(program.exec, "x", &host, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_state_restore(program.state, start, &err), &err);
    host.data = again;
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
    assert_ok(gx_exec_read(program.exec, "x", &host, &err), &err);
    assert_memory_equal(first, again, sizeof first);
    gx_snapshot_free(start);
    path_close(&program);
}

/* After a copy that failed the program finds out anew where it stands. */
static void the_next_run_is_whole_after_a_failure(void **state)
{
    static const char *const functions[] = { "cudaMemcpyAsync", "cudaEventRecord",
                                             "cudaStreamWaitEvent", "cudaGraphLaunch",
                                             "cudaEventSynchronize" };
    static float expected[MOST_STEPS][BATCH * TEST_WIDTH];
    path_program program = open_program(1);
    gx_error err;

    (void)state;
    read_batches(expected);
    path_make_exec(&program);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    for (size_t f = 0; f < ARRAY_SIZE(functions); f++) {
        for (long nth = 1; nth <= 4; nth++) {
            float x[BATCH * TEST_WIDTH];
            gx_tensor host = {
                .dtype = GX_F32, .rank = 2, .dim = { BATCH, 3 }, .data = x
            };

            fake_begin();
            fake_fail(functions[f], nth, cudaErrorUnknown);
            assert_fails(gx_exec_run(program.exec, GX_MODE_GRAPH, 9, &err), GX_ERR_CUDA,
                         &err, functions[f]);
            fake_begin();
            assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
            assert_ok(gx_exec_read(program.exec, "x", &host, &err), &err);
            /* the simulated device has counted nothing */
            assert_memory_equal(x, expected[0], sizeof x);
            program.state->at[GX_PART_TRAIN].known = false;
        }
    }
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* A plan is timed without its data: it has no rows that could be read. */
static void timing_a_plan_needs_no_files(void **state)
{
    path_program program = open_program(1);
    gx_state *unfed;
    char *path = test_path("x.npy");
    gx_error err;

    (void)state;
    assert_int_equal(remove(path), 0);
    assert_ok(gx_state_create_unfed(program.graph, 0, &unfed, &err), &err);
    gx_exec *exec;
    assert_ok(gx_exec_create(program.plan, unfed, NULL, &exec, &err), &err);
    assert_ok(gx_exec_run(exec, GX_MODE_GRAPH, 3, &err), &err);
    assert_true(gx_exec_stats_get(exec).data_wait_s < 0);
    gx_exec_free(exec);
    gx_state_free(unfed);
    free(path);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* As on the CPU, whichever side has the data set. */
static void labels_are_counted_on_a_device_too(void **state)
{
    (void)state;
    test_rows_write();
    for (int k = 0; k < 2; k++) {
        gx_graph *graph =
            test_rows_load_ignoring(GX_TRAIN, k ? GX_STREAM_ON : GX_STREAM_OFF, 0);
        int64_t counts[2][9];
        gx_error err;

        for (int device = GX_CPU; device <= 0; device++) {
            const gx_state_options options = { .device = device, .seed = 3 };
            gx_state *made;

            assert_ok(gx_state_create((const gx_graph *const *)&graph, 1, &options, &made,
                                      &err),
                      &err);
            assert_ok(gx_state_count_labels(made, graph, 0, 16, 1, 9, counts[device == 0],
                                            &err),
                      &err);
            gx_state_free(made);
        }
        assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
        gx_graph_free(graph);
    }
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_is_fed_takes_every_failure),
        cmocka_unit_test(no_copy_overtakes_a_step),
        cmocka_unit_test(the_next_batch_is_copied_beside_a_step),
        cmocka_unit_test(each_slot_has_a_graph),
        cmocka_unit_test(a_step_takes_one_copy),
        cmocka_unit_test(a_batch_made_ahead_is_dropped_after_a_restore),
        cmocka_unit_test(the_next_run_is_whole_after_a_failure),
        cmocka_unit_test(timing_a_plan_needs_no_files),
        cmocka_unit_test(labels_are_counted_on_a_device_too),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_feed", tests, NULL, NULL);
}
