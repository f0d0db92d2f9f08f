/* What a capture must not hold is refused, by name, and leaves nothing behind. */
#include "fake_cuda_paths.h"

#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "exec_cuda.h"
#include "launch.h"

#ifndef FAULT_REAL
#define FAULT_REAL false
#endif

/* --- an op that does what it is told --- */

typedef void evil_fn(const gx_ctx *ctx);

static struct {
    const gx_alternative *good;
    evil_fn *deed;
    bool escapes;      /* launches on the default stream */
    bool late;         /* the deed is done behind the launch */
    cudaError_t error; /* of the deed, where it tells */
    gx_exec *exec;
    gx_state *state;
    void *seen[64]; /* addresses that the op was given */
    size_t n_seen;
    int n_launches, n_steady; /* in all, and with operands that are told to be steady */
    bool armed;
} evil;

static gx_status evil_launch(const gx_group *group, const gx_prepared *prepared,
                             gx_ctx *ctx, gx_error *err)
{
    gx_ctx used = *ctx;

    evil.n_launches++;
    evil.n_steady += group->steady != NULL;
    if (evil.armed && evil.deed && !evil.late)
        evil.deed(ctx);
    if (evil.armed && evil.escapes)
        used.stream = NULL;
    GX_TRY(evil.good->launch(group, prepared, &used, err));
    if (evil.armed && evil.deed && evil.late)
        evil.deed(ctx);
    return gx_check_cuda((int)evil.error, "cudaMemsetAsync", __FILE__, __LINE__, err);
}

static gx_alternative evil_alternative;

static void make_unit_evil(path_program *program, size_t i, evil_fn *deed)
{
    memset(&evil, 0, sizeof evil);
    evil.good = program->plan->units[i].alternative;
    evil.deed = deed;
    evil.exec = program->exec;
    evil.state = program->state;
    evil.armed = true;
    evil_alternative = *evil.good;
    evil_alternative.launch = evil_launch;
    program->plan->units[i].alternative = &evil_alternative;
}

/* The first unit whose launches are all ours. */
static size_t make_evil(path_program *program, evil_fn *deed)
{
    size_t i = 0;

    while (program->exec->units[i].prepared.n_launches <= 0)
        i++;
    make_unit_evil(program, i, deed);
    return i;
}

static void open_evil(path_program *program, evil_fn *deed, size_t *unit)
{
    path_open(program, 1);
    path_make_exec(program);
    path_write_inputs(program);
    *unit = make_evil(program, deed);
}

/* The build fails with both texts and the op's name, and once the op behaves, works. */
static void assert_refused(path_program *program, size_t unit, gx_status status,
                           const char *text)
{
    gx_error err;
    const long live = fake_live();
    const char *name = program->exec->units[unit].name;

    assert_fails(gx_exec_capture(program->exec, &err), status, &err, text);
    assert_has(err.message, name);
    assert_int_equal(fake_live(), live);
    assert_int_equal(gx_exec_stats_get(program->exec).instantiations, 0);
    evil.armed = false;
    const int n_steps = program->exec->steps_per_launch;
    assert_ok(gx_exec_run(program->exec, GX_MODE_GRAPH, 2 * n_steps, &err), &err);
    assert_ok(gx_exec_sync(program->exec, &err), &err);
    const gx_exec_stats stats = gx_exec_stats_get(program->exec);
    enum { LOOP_NODES = 2 };
    assert_int_equal(stats.graph_nodes, program->exec->loops
                                            ? stats.launches_per_step + LOOP_NODES
                                            : n_steps * stats.launches_per_step);
    path_close(program);
    assert_int_equal(fake_live(), 0);
}

static void work_on_the_default_stream_is_refused(void **state)
{
    path_program program;
    size_t unit;

    (void)state;
    open_evil(&program, NULL, &unit);
    evil.escapes = true;
    assert_refused(&program, unit, GX_ERR_CAPTURE, "past the capture");
}

static void allocate_async(const gx_ctx *ctx)
{
    void *memory = NULL;

    (void)cudaMallocAsync(&memory, 64, ctx->stream);
}

static void a_memory_node_is_refused(void **state)
{
    path_program program;
    size_t unit;

    (void)state;
    open_evil(&program, allocate_async, &unit);
    assert_refused(&program, unit, GX_ERR_CAPTURE, "1 memory nodes");
}

/* --- how many nodes a unit adds --- */

static void fill(const gx_ctx *ctx)
{
    (void)cudaMemsetAsync(evil.exec->arena, 0, 4, ctx->stream);
}

/* The second capture asks each unit; the first has nothing but the list of the nodes. */
static void one_node_more_than_promised_is_refused(void **state)
{
    path_program program;
    size_t unit;

    (void)state;
    for (int late = 0; late <= 1; late++) {
        open_evil(&program, fill, &unit);
        evil.late = late;
        fake_begin();
        assert_refused(&program, unit, GX_ERR_CAPTURE,
                       "2 graph nodes were captured, expected 1 (");
        assert_int_equal(fake_calls("cudaStreamBeginCapture"), 3);
    }
}

/* Behind it is one of the library's, which at first promises nothing: what is missing or
 * too much is not taken for its own. */
static void what_one_unit_lacks_another_does_not_make_up_for(void **state)
{
    path_program program;
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, NULL, &unit);
    assert_true(program.exec->units[unit + 1].prepared.n_launches < 0);
    evil.escapes = true;
    assert_refused(&program, unit, GX_ERR_CAPTURE,
                   "0 graph nodes were captured, expected 1: work went past");
    open_evil(&program, fill, &unit);
    evil.armed = false;
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    gx_capture_drop(program.exec);
    evil.armed = true;
    /* The sum is right. */
    program.plan->units[unit + 1].n_launches = program.exec->units[unit + 1].n_seen + 1;
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "2 graph nodes were captured, expected 1 (");
    assert_has(err.message, program.exec->units[unit].name);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* The lanes join behind the last unit, so that what it put on another one is captured,
 * but is not what its own goes on from. */
static void fill_beside(const gx_ctx *ctx)
{
    void *const *lane = evil.exec->device->lane_stream;

    evil.error = cudaMemsetAsync(evil.exec->arena, 0, 4, lane[ctx->stream == lane[0]]);
}

static void a_node_on_another_lane_is_refused(void **state)
{
    path_program program;

    (void)state;
    path_open(&program, 2);
    path_make_exec(&program);
    path_write_inputs(&program);
    const size_t last = program.plan->n_units - 1;
    assert_non_null(program.exec->join_event[1]);
    make_unit_evil(&program, last, fill_beside);
    evil.late = true;
    assert_refused(&program, last, GX_ERR_CAPTURE,
                   "2 graph nodes were captured, expected 1 (");
}

static gx_status capture_and_drop(void *user, gx_error *err)
{
    const path_program *program = user;

    const gx_status st = gx_exec_capture(program->exec, err);
    fake_quiet(true);
    gx_capture_drop(program->exec);
    return st;
}

/* Asked, the unit has kept what it promised: the capture is good, and was made twice. */
static void the_second_capture_takes_every_failure(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 2);
    path_make_exec(&program);
    path_write_inputs(&program);
    const size_t last = program.plan->n_units - 1;
    make_unit_evil(&program, last, fill_beside);
    evil.late = true;
    program.plan->units[last].n_launches =
        program.exec->units[last].prepared.n_launches + 1;
    fake_begin();
    assert_ok(capture_and_drop(&program, &err), &err);
    assert_int_equal(fake_calls("cudaStreamBeginCapture"), 2);
    assert_int_equal(fake_calls("cudaGraphInstantiate"), 1);
    assert_true(path_fail_some_calls(capture_and_drop, &program, 12) >= 60);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void open_steps(path_program *program, const gx_exec_options *options)
{
    gx_error err;

    path_open(program, 1);
    assert_ok(
        gx_exec_create(program->plan, program->state, options, &program->exec, &err),
        &err);
    path_write_inputs(program);
}

/* In the second step of each three alone. */
static void fill_second_step(const gx_ctx *ctx)
{
    if (evil.n_launches % 3 == 2)
        fill(ctx);
}

/* Its nodes are known from its first capture, be that of a step before. */
static void a_library_that_adds_another_number_is_refused(void **state)
{
    const gx_exec_options three = { .steps_per_launch = 3 };
    path_program program;
    size_t unit = 0;
    gx_error err;

    (void)state;
    open_steps(&program, &three);
    while (program.exec->units[unit].prepared.n_launches >= 0)
        unit++;
    make_unit_evil(&program, unit, fill_second_step);
    assert_refused(&program, unit, GX_ERR_CAPTURE, "graph nodes were captured, expected");
    open_steps(&program, &three);
    make_unit_evil(&program, unit, fill); /* in each step */
    evil.armed = false;
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    const int n_seen = program.exec->units[unit].n_seen;
    char text[80];
    assert_true(n_seen > 0);
    gx_capture_drop(program.exec);
    evil.armed = true;
    snprintf(text, sizeof text, "%d graph nodes were captured, expected %d", n_seen + 1,
             n_seen);
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err, text);
    assert_has(err.message, program.exec->units[unit].name);
    assert_int_equal(program.exec->units[unit].n_seen, n_seen);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void nodes_of_later_steps_and_of_loops_are_counted(void **state)
{
    static const gx_exec_options ways[] = {
        { .steps_per_launch = 3 }, { .steps_per_launch = 3, .step_loop = true }
    };
    path_program program;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        if (ways[i].step_loop && !test_has_conditions())
            continue;
        open_steps(&program, &ways[i]);
        size_t unit = make_evil(&program, ways[i].step_loop ? fill : fill_second_step);
        assert_refused(&program, unit, GX_ERR_CAPTURE,
                       "2 graph nodes were captured, expected 1 (");
        open_steps(&program, &ways[i]);
        unit = make_evil(&program, NULL);
        evil.escapes = true;
        assert_refused(&program, unit, GX_ERR_CAPTURE, "past the capture");
    }
}

/* --- what kind they are --- */

/* Where the count is as planned the nodes' types still tell. */
static void a_memory_node_that_was_planned_is_refused(void **state)
{
    path_program program;
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, allocate_async, &unit);
    program.plan->units[unit].n_launches =
        program.exec->units[unit].prepared.n_launches + 1;
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "graph holds 1 memory nodes");
    assert_has(err.message, program.exec->units[unit].name);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void ignore(void *user)
{
    (void)user;
}

static void call_host(const gx_ctx *ctx)
{
    (void)cudaLaunchHostFunc(ctx->stream, ignore, NULL);
}

static void a_host_node_is_refused(void **state)
{
    path_program program;
    size_t unit;

    (void)state;
    open_evil(&program, call_host, &unit);
    assert_refused(&program, unit, GX_ERR_CAPTURE, "1 host nodes");
}

static void copy_from_host(const gx_ctx *ctx)
{
    static int from;

    (void)cudaMemcpyAsync(evil.exec->arena, &from, sizeof from, cudaMemcpyHostToDevice,
                          ctx->stream);
}

static void a_copy_from_host_memory_is_refused(void **state)
{
    path_program program;
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, copy_from_host, &unit);
    program.plan->units[unit].n_launches =
        program.exec->units[unit].prepared.n_launches + 1;
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CAPTURE, &err,
                 "1 copies from or to host memory");
    assert_has(err.message, program.exec->units[unit].name);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

static void wait_in_capture(const gx_ctx *ctx)
{
    (void)cudaStreamSynchronize(ctx->stream);
}

static void a_wait_inside_is_refused(void **state)
{
    path_program program;
    size_t unit;

    (void)state;
    open_evil(&program, wait_in_capture, &unit);
    assert_refused(&program, unit, GX_ERR_CUDA, "cudaErrorStreamCaptureInvalidated");
}

static void fork_without_join(const gx_ctx *ctx)
{
    cudaEvent_t event = evil.exec->time_begin;
    cudaStream_t other = evil.exec->device->lane_stream[1];

    (void)cudaEventRecord(event, ctx->stream);
    (void)cudaStreamWaitEvent(other, event, 0);
    /* Without work of its own the branch would not count as one. */
    (void)cudaMemsetAsync(evil.exec->arena, 0, 4, other);
}

static void a_branch_that_nobody_joins_is_refused(void **state)
{
    path_program program;
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, fork_without_join, &unit);
    const int planned = program.plan->units[unit].n_launches;
    program.plan->units[unit].n_launches =
        program.exec->units[unit].prepared.n_launches + 1;
    const long live = fake_live();
    assert_fails(gx_exec_capture(program.exec, &err), GX_ERR_CUDA, &err,
                 "cudaErrorStreamCaptureUnjoined");
    assert_int_equal(fake_live(), live);
    evil.armed = false;
    program.plan->units[unit].n_launches = planned;
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 1, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* The last unit on a lane of its own: no unit waits for it. */
static void a_branch_that_nobody_reads_is_joined_by_the_walk(void **state)
{
    path_program program;
    gx_error err;

    (void)state;
    path_open(&program, 1);
    const size_t last = program.plan->n_units - 1;
    int32_t before = (int32_t)last - 1;
    gx_unit *unit = &program.plan->units[last];
    assert_int_equal(unit->workspace_bytes, 0);
    unit->lane = 1;
    unit->waits = &before;
    unit->n_waits = 1;
    unit->programmatic_first = false;
    program.plan->units[before].signals = true;
    path_make_exec(&program);
    path_write_inputs(&program);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 2, &err), &err);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    assert_null(fake_mistake());
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

/* Each public call from inside a capture answers from what the library knows. */
static void ask_everything(const gx_ctx *ctx)
{
    float w[15];
    gx_tensor host = { .dtype = GX_F32, .rank = 2, .dim = { 3, 5 }, .data = w };
    gx_snapshot *snapshot = NULL;
    gx_timing timing;
    gx_error err;

    (void)ctx;
    assert_int_equal(gx_exec_stats_get(evil.exec).instantiations, 0);
    assert_int_equal(gx_state_device(evil.state), 0);
    assert_fails(gx_exec_sync(evil.exec, &err), GX_ERR_STATE, &err, "capture");
    assert_fails(gx_exec_run(evil.exec, GX_MODE_EAGER, 1, &err), GX_ERR_STATE, &err,
                 "capture");
    assert_fails(gx_exec_capture(evil.exec, &err), GX_ERR_STATE, &err, "capture");
    assert_fails(gx_exec_time(evil.exec, GX_MODE_EAGER, 1, &timing, &err), GX_ERR_STATE,
                 &err, "capture");
    assert_fails(gx_state_read(evil.state, "w1", &host, &err), GX_ERR_STATE, &err,
                 "capture");
    assert_fails(gx_state_write(evil.state, "w1", &host, &err), GX_ERR_STATE, &err,
                 "capture");
    assert_fails(gx_state_save(evil.state, &snapshot, &err), GX_ERR_STATE, &err,
                 "capture");
}

static void questions_inside_leave_the_capture_valid(void **state)
{
    path_program program;
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, ask_everything, &unit);
    assert_ok(gx_exec_run(program.exec, GX_MODE_GRAPH, 2, &err), &err);
    evil.armed = false;
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
}

/* --- what an op is given --- */

static void note_addresses(const gx_ctx *ctx)
{
    const gx_bound_unit *units = evil.exec->units;
    size_t i = 0;

    while (evil.exec->plan->units[i].alternative != &evil_alternative)
        i++;
    evil.n_seen = 0;
    evil.seen[evil.n_seen++] = ctx->workspace;
    for (int call = 0; call < units[i].group.n_calls; call++)
        for (int arg = 0; arg < GX_MAX_ARGS && evil.n_seen < ARRAY_SIZE(evil.seen); arg++)
            evil.seen[evil.n_seen++] = units[i].group.call[call].arg[arg].data;
}

static void each_step_is_given_the_same_addresses(void **state)
{
    path_program program;
    void *first[ARRAY_SIZE(evil.seen)];
    size_t unit;
    gx_error err;

    (void)state;
    open_evil(&program, note_addresses, &unit);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    memcpy(first, evil.seen, sizeof first);
    assert_true(evil.n_seen > 1);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 1, &err), &err);
    assert_memory_equal(first, evil.seen, sizeof first);
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    assert_memory_equal(first, evil.seen, sizeof first);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
}

/* The steps behind the first read what its optimizer wrote, where no full edge stands
 * between. */
static void only_the_first_step_of_a_launch_may_load_ahead(void **state)
{
    path_program program;
    const gx_exec_options three = { .steps_per_launch = 3 };
    gx_error err;

    (void)state;
    path_open(&program, 1);
    assert_ok(gx_exec_create(program.plan, program.state, &three, &program.exec, &err),
              &err);
    path_write_inputs(&program);
    (void)make_evil(&program, NULL);
    program.plan->programmatic = true;
    for (size_t u = 0; u < program.plan->n_units; u++)
        program.plan->units[u].programmatic_first = u > 0;
    assert_ok(gx_exec_capture(program.exec, &err), &err);
    assert_int_equal(evil.n_launches, 3);
    assert_int_equal(evil.n_steady, 1);
    assert_ok(gx_exec_run(program.exec, GX_MODE_EAGER, 2, &err), &err);
    assert_int_equal(evil.n_launches, 5);
    assert_int_equal(evil.n_steady, 3);
    assert_ok(gx_exec_sync(program.exec, &err), &err);
    path_close(&program);
    assert_int_equal(fake_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_on_the_default_stream_is_refused),
        cmocka_unit_test(a_memory_node_is_refused),
        cmocka_unit_test(one_node_more_than_promised_is_refused),
        cmocka_unit_test(what_one_unit_lacks_another_does_not_make_up_for),
        cmocka_unit_test(a_node_on_another_lane_is_refused),
        cmocka_unit_test(the_second_capture_takes_every_failure),
        cmocka_unit_test(a_library_that_adds_another_number_is_refused),
        cmocka_unit_test(nodes_of_later_steps_and_of_loops_are_counted),
        cmocka_unit_test(a_memory_node_that_was_planned_is_refused),
        cmocka_unit_test(a_host_node_is_refused),
        cmocka_unit_test(a_copy_from_host_memory_is_refused),
        cmocka_unit_test(a_wait_inside_is_refused),
        cmocka_unit_test(a_branch_that_nobody_joins_is_refused),
        cmocka_unit_test(a_branch_that_nobody_reads_is_joined_by_the_walk),
        cmocka_unit_test(questions_inside_leave_the_capture_valid),
        cmocka_unit_test(each_step_is_given_the_same_addresses),
        cmocka_unit_test(only_the_first_step_of_a_launch_may_load_ahead),
    };

    path_start(FAULT_REAL);
    return cmocka_run_group_tests_name("fault_refusal", tests, NULL, NULL);
}
