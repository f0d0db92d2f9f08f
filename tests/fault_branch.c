/* Updates in a branch of the graph, on the simulated CUDA: nodes, edges, what a launch
 * runs, and every failure. */
#include "fake_cuda_paths.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "capture.h"
#include "exec_cuda.h"
#include "fake_cuda_parts.h"
#include "resolve.h"

/* The branch itself, and the kernel that decides it. */
enum { BRANCH_NODES = 2, LOOP_NODES = 2 };

static const gx_exec_options one = { .steps_per_launch = 1 };
static const gx_exec_options unrolled = { .steps_per_launch = 3 };
static const gx_exec_options loop = { .steps_per_launch = 5, .step_loop = true };

static void make_exec(path_program *program, const gx_exec_options *options)
{
    gx_error err;

    assert_ok(
        gx_exec_create(program->plan, program->state, options, &program->exec, &err),
        &err);
    path_write_inputs(program);
}

static void open_branch(path_program *program, int lanes, const gx_exec_options *options)
{
    path_open_scaled(program, lanes, GX_ON, false);
    make_exec(program, options);
}

/* Simulated device memory is the host's. */
static int32_t *update_of(const path_program *program)
{
    const int32_t id = gx_graph_value_id(program->graph, GX_UPDATE);

    assert_true(id >= 0);
    return program->exec->value_data[id];
}

static size_t n_skipping(const gx_plan *plan)
{
    size_t n = 0;

    for (size_t u = 0; u < plan->n_units; u++)
        n += plan->units[u].skips;
    return n;
}

/* --- which units --- */

static void updates_alone_are_skipped(void **state)
{
    path_program program;

    (void)state;
    path_open_scaled(&program, 1, GX_ON, false);
    const gx_plan *plan = program.plan;
    assert_true(gx_plan_info_get(plan).skip_if);
    for (size_t u = 0; u < plan->n_units; u++) {
        const char *op = program.graph->nodes[plan->units[u].first_node].op->name;

        assert_int_equal(plan->units[u].skips, strcmp(op, "adamw") == 0);
        assert_int_equal(gx_plan_unit(plan, u).in_if, plan->units[u].skips);
    }
    assert_true(n_skipping(plan) > 0);
    path_close(&program);
    path_open_scaled(&program, 1, GX_OFF, false);
    assert_false(gx_plan_info_get(program.plan).skip_if);
    assert_true(n_skipping(program.plan) > 0);
    for (size_t u = 0; u < program.plan->n_units; u++)
        assert_false(gx_plan_unit(program.plan, u).in_if);
    path_close(&program);
    path_open(&program, 1); /* no scale */
    assert_int_equal(n_skipping(program.plan), 0);
    path_close(&program);
}

/* --- what is captured --- */

static int64_t nodes_with(int lanes, const gx_exec_options *options)
{
    path_program program;
    gx_error err;

    open_branch(&program, lanes, options);
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 15, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_null(fake_mistake());
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_launches, 15 / options->steps_per_launch);
    assert_int_equal(stats.instantiations, 1);
    const int n_branches = options->step_loop ? 1 : options->steps_per_launch;
    assert_int_equal(fake_calls("cudaGraphAddNode"), n_branches + options->step_loop);
    assert_int_equal(fake_calls("cudaStreamUpdateCaptureDependencies"), n_branches);
    assert_int_equal(fake_calls("cudaStreamBeginCaptureToGraph"),
                     n_branches + options->step_loop);
    /* The steps' graph and each body are listed, which is counted and read. */
    assert_int_equal(fake_calls("cudaGraphGetNodes"), 2 * (1 + n_branches));
    const int64_t n_nodes = stats.graph_nodes - n_branches * BRANCH_NODES;
    assert_int_equal(n_nodes % stats.launches_per_step,
                     options->step_loop ? LOOP_NODES : 0);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
    return n_nodes / stats.launches_per_step;
}

static void a_step_has_one_branch(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 2; lanes++) {
        assert_int_equal(nodes_with(lanes, &one), 1);
        assert_int_equal(nodes_with(lanes, &unrolled), 3);
        assert_int_equal(nodes_with(lanes, &loop), 1);
    }
}

static void eager_steps_and_plans_without_have_none(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    fake_begin();
    open_branch(&program, 2, &one);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 3, &err), &err);
    assert_int_equal(fake_calls("cudaGraphConditionalHandleCreate"), 0);
    path_close(&program);
    path_open_scaled(&program, 2, GX_AUTO, false); /* nothing is measured */
    make_exec(&program, &one);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 3, &err), &err);
    assert_int_equal(fake_calls("cudaGraphAddNode"), 0);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    path_close(&program);
    assert_null(fake_mistake());
}

/* --- lanes --- */

static size_t first_skipping(const gx_plan *plan)
{
    size_t unit = 0;

    while (!plan->units[unit].skips)
        unit++;
    return unit;
}

/* `waits`: for that unit, or NULL: for none. */
static void put_on_lane(gx_plan *plan, size_t unit, int lane, int32_t *waits)
{
    plan->units[unit].lane = lane;
    plan->units[unit].waits = waits;
    plan->units[unit].n_waits = waits != NULL;
    if (waits)
        plan->units[*waits].signals = true;
}

/* All gradients are in the norm that a branch stands behind, so layout has nothing on the
 * other lane beside it: by hand what stands before it and behind it is put there. The
 * simulated card notes what is not in order with a branch. */
static void check_lanes(bool waits_for_update)
{
    path_program program;
    gx_error err;

    path_open_scaled(&program, 2, GX_ON, false);
    gx_plan *plan = program.plan;
    const size_t first = first_skipping(plan), last = plan->n_units - 1;
    int32_t norm = (int32_t)first - 2, scale = (int32_t)first - 1,
            update = (int32_t)first;
    assert_false(plan->units[last].skips);
    put_on_lane(plan, (size_t)scale, 1, &norm);
    put_on_lane(plan, first, 0, &scale);
    put_on_lane(plan, last, 1, waits_for_update ? &update : NULL);
    make_exec(&program, &unrolled);
    fake_begin();
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void lanes_meet_before_a_branch_and_part_behind_it(void **state)
{
    (void)state;
    check_lanes(false);
    check_lanes(true);
}

/* --- edges --- */

static int64_t edges_with(int lanes, gx_choice skip_if, const gx_exec_options *options)
{
    path_program program;
    gx_error err;

    fake_begin();
    path_open_scaled(&program, lanes, skip_if, true);
    make_exec(&program, options);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const int64_t edges = gx_exec_stats_get(program.exec).programmatic_edges;
    assert_null(fake_mistake());
    path_close(&program);
    return edges;
}

/* In one lane the kernel that decides follows the chain; the edge to the first update
 * goes, and where a chain went on behind the last that edge too. The simulated card notes
 * an edge that starts or ends at a branch. */
static void programmatic_edges_end_at_a_branch(void **state)
{
    (void)state;
    const int64_t chain = edges_with(1, GX_OFF, &one);
    const int64_t parted = edges_with(1, GX_ON, &one);
    assert_true(chain > 2);
    assert_in_range(parted, chain - 1, chain);
    assert_int_equal(edges_with(1, GX_ON, &unrolled), 3 * parted + 2);
    assert_int_equal(edges_with(1, GX_ON, &loop), parted);
    assert_true(edges_with(2, GX_ON, &one) <= edges_with(2, GX_OFF, &one));
}

/* --- what a launch runs --- */

static size_t n_run;

static void ignore_work(const fake_node *what, const fake_node *node)
{
    (void)what;
    (void)node;
}

static void ignore_clone(const fake_node *node, const fake_node *original)
{
    (void)node;
    (void)original;
}

static void count_run(const fake_node *nodes, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++)
        n_run += !nodes[i].skipped;
}

static size_t run_once(path_program *program, int32_t update)
{
    gx_error err;

    *update_of(program) = update;
    n_run = 0;
    assert_ok(gx_exec_run(program->exec, GX_MODE_GRAPH, 1, &err), &err);
    return n_run;
}

static void a_step_without_an_update_leaves_its_kernels_out(void **state)
{
    static const fake_watcher watcher = { .work = ignore_work,
                                          .cloned = ignore_clone,
                                          .replayed = count_run };
    path_program program;

    (void)state;
    open_branch(&program, 1, &one);
    fake_watch(&watcher);
    const size_t all = run_once(&program, 0);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(all, stats.launches_per_step + 1); /* what decides */
    int launches = 0;
    for (size_t u = 0; u < program.plan->n_units; u++)
        if (program.plan->units[u].skips)
            launches += program.exec->units[u].prepared.n_launches;
    assert_true(launches > 0);
    assert_int_equal(run_once(&program, -1), all - (size_t)launches);
    assert_int_equal(run_once(&program, 1), all);
    fake_watch(NULL);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- handing it out --- */

static bool has_branch(void *graph)
{
    gx_node_counts counts;
    gx_node_list list;
    gx_error err;

    gx_error_clear(&err);
    assert_ok(gx_graph_list(graph, &list, &err), &err);
    assert_ok(gx_graph_look(&list, &counts, &err), &err);
    free(list.node);
    return counts.branches > 0;
}

static void a_graph_for_others_has_no_branch(void **state)
{
    path_program program;
    void *graph = NULL, *again = NULL;
    gx_error err;

    (void)state;
    fake_begin();
    open_branch(&program, 1, &one);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_true(has_branch(program.exec->graph[0]));
    assert_ok(gx_exec_cuda_graph(program.exec, &graph, &err), &err);
    assert_non_null(graph);
    assert_false(has_branch(graph));
    assert_int_equal(gx_exec_stats_get(program.exec).rebuilds, 1);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_cuda_graph(program.exec, &again, &err), &err);
    assert_ptr_equal(graph, again);
    const gx_exec_stats stats = gx_exec_stats_get(program.exec);
    assert_int_equal(stats.graph_nodes, stats.launches_per_step);
    assert_int_equal(stats.rebuilds, 1);
    path_close(&program);
    open_branch(&program, 1, &one); /* before anything was captured */
    assert_ok(gx_exec_cuda_graph(program.exec, &graph, &err), &err);
    assert_false(has_branch(graph));
    assert_int_equal(gx_exec_stats_get(program.exec).rebuilds, 0);
    path_close(&program);
    assert_null(fake_mistake());
    assert_int_equal(fake_live(), 0);
}

/* --- failures --- */

static gx_status run_one(void *user, gx_error *err)
{
    return path_try_replays(&one, user, err);
}

static gx_status run_unrolled(void *user, gx_error *err)
{
    return path_try_replays(&unrolled, user, err);
}

static gx_status run_loop(void *user, gx_error *err)
{
    return path_try_replays(&loop, user, err);
}

static void a_branch_takes_every_failure(void **state)
{
    path_program program;

    (void)state;
    for (int lanes = 1; lanes <= 2; lanes++) {
        path_open_scaled(&program, lanes, GX_ON, false);
        assert_true(path_fail_some_calls(run_one, &program, 12) >= 100);
        assert_true(path_fail_some_calls(run_unrolled, &program, 6) >= 60);
        assert_true(path_fail_some_calls(run_loop, &program, 6) >= 60);
        path_close(&program);
        assert_int_equal(fake_live(), 0);
    }
}

static void a_failed_branch_leaves_both_streams(void **state)
{
    static const char *const functions[] = { "cudaGraphConditionalHandleCreate",
                                             "cudaGraphAddNode",
                                             "cudaStreamUpdateCaptureDependencies",
                                             "cudaStreamBeginCaptureToGraph",
                                             "cudaStreamEndCapture" };
    path_program program;
    gx_error err;

    (void)state;
    open_branch(&program, 2, &one);
    const long live = fake_live();
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        fake_begin();
        fake_fail(functions[i], 1, cudaErrorUnknown);
        assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CUDA, &err,
                     functions[i]);
        assert_null(fake_mistake());
        assert_int_equal(fake_live(), live);
    }
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* --- what the body must not hold --- */

static const gx_alternative *good;

static void ignore(void *user)
{
    (void)user;
}

static gx_status launch_and_call_host(const gx_group *group, const gx_prepared *prepared,
                                      gx_ctx *ctx, gx_error *err)
{
    GX_TRY(good->launch(group, prepared, ctx, err));
    (void)cudaLaunchHostFunc(ctx->stream, ignore, NULL);
    return GX_OK;
}

/* In the last of three steps. */
static gx_status launch_past_the_capture(const gx_group *group,
                                         const gx_prepared *prepared, gx_ctx *ctx,
                                         gx_error *err)
{
    static int n_launches;
    gx_ctx other = *ctx;

    if (++n_launches % 3 == 0)
        other.stream = NULL;
    const gx_status st = good->launch(group, prepared, &other, err);
    ctx->n_launched = other.n_launched;
    return st;
}

static gx_alternative bad;

/* The last of the body, so that no other unit stands behind. */
static void what_a_body_lacks_is_found(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    open_branch(&program, 2, &unrolled);
    size_t unit = first_skipping(program.plan);
    while (unit + 1 < program.plan->n_units && program.plan->units[unit + 1].skips)
        unit++;
    good = program.plan->units[unit].alternative;
    bad = *good;
    bad.launch = launch_past_the_capture;
    program.plan->units[unit].alternative = &bad;
    const long live = fake_live();
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "0 graph nodes were captured, expected 1: work went past");
    assert_has(err.message, program.exec->units[unit].name);
    assert_int_equal(fake_live(), live);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void a_node_in_the_body_is_counted_and_looked_at(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    open_branch(&program, 2, &unrolled);
    const size_t unit = first_skipping(program.plan);
    good = program.plan->units[unit].alternative;
    bad = *good;
    bad.launch = launch_and_call_host;
    program.plan->units[unit].alternative = &bad;
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "2 graph nodes were captured, expected 1");
    assert_has(err.message, "1 host nodes");
    assert_has(err.message, program.exec->units[unit].name);
    program.plan->units[unit].n_launches = 2;
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "graph holds 0 memory nodes, 1 host nodes");
    assert_has(err.message, program.exec->units[unit].name);
    program.plan->units[unit].n_launches = 1;
    program.plan->units[unit].alternative = good;
    fake_begin();
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 3, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_alone_are_skipped),
        cmocka_unit_test(a_step_has_one_branch),
        cmocka_unit_test(eager_steps_and_plans_without_have_none),
        cmocka_unit_test(lanes_meet_before_a_branch_and_part_behind_it),
        cmocka_unit_test(programmatic_edges_end_at_a_branch),
        cmocka_unit_test(a_step_without_an_update_leaves_its_kernels_out),
        cmocka_unit_test(a_graph_for_others_has_no_branch),
        cmocka_unit_test(a_branch_takes_every_failure),
        cmocka_unit_test(a_failed_branch_leaves_both_streams),
        cmocka_unit_test(what_a_body_lacks_is_found),
        cmocka_unit_test(a_node_in_the_body_is_counted_and_looked_at),
    };

    path_start(false);
    return cmocka_run_group_tests_name("fault_branch", tests, NULL, NULL);
}
