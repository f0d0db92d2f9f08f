/* The op table, floors, and the longest path. */
#include "profile_made.h"

static const gx_profile_schedule ten = { .active = 10, .repeat = 1 };

static bool near(double a, double b)
{
    return a - b < 1e-9 * b && b - a < 1e-9 * b;
}

static void an_op_has_all_its_kernels(void **state)
{
    static const gx_profile_unit units[2] = {
        { .name = "fc1",
          .alternative = "split",
          .lane = 0,
          .flops = 4e6,
          .bytes = 3e5,
          .floor_s = -1 },
        { .name = "fc2", .alternative = "lt", .flops = 1e6, .bytes = 1e5, .floor_s = -1 }
    };
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);
    gx_trace *const trace = pass.trace;
    gx_trace_activity *activity;

    (void)state;
    for (int64_t i = 0; i < 2; i++) {
        const int64_t at = 10000 * (i + 1);

        add_range(trace, "step", at - 500, at + 5000);
        add_call(trace, "cudaLaunchKernel", at - 400, at - 300, 10 * i + 1);
        activity = made_activity(trace, "product", at, at + 300 + 100 * i, 0, 10 * i + 1);
        activity->grid[0] = 8;
        activity->grid[1] = activity->grid[2] = 1;
        activity->block[0] = 128;
        activity->block[1] = activity->block[2] = 1;
        activity->registers = 64;
        activity->shared_bytes = 2048;
        add(trace, activity);
        activity = made_activity(trace, "product", at + 400, at + 500, 0, 10 * i + 1);
        activity->grid[0] = 4; /* of another shape */
        activity->grid[1] = activity->grid[2] = 1;
        activity->block[0] = 128;
        activity->block[1] = activity->block[2] = 1;
        add(trace, activity);
        add(trace, made_activity(trace, "sum", at + 600, at + 700, 0, 10 * i + 1));
        add(trace, made_activity(trace, "other", at + 800, at + 1000, GX_TRACE_NONE,
                                 10 * i + 1));
        add(trace, made_activity(trace, "other", at + 1000, at + 1001, 7, 10 * i + 1));
    }
    finish_pass(&pass, &ten);
    assert_ok(gx_profile_ops(&pass, units, 2, &err), &err);
    assert_int_equal(pass.n_ops, 3);
    const gx_profile_op *const op = &pass.op[0];
    assert_string_equal(op->name, "fc1");
    assert_string_equal(op->alternative, "split");
    assert_int_equal(op->calls, 6);
    assert_int_equal(op->total_ns, 300 + 400 + 4 * 100);
    assert_int_equal(op->median_ns, 550); /* of 500 and 600 a step */
    assert_int_equal(op->n_kernels, 3);
    assert_string_equal(op->kernel[0].name, "product");
    assert_int_equal(op->kernel[0].calls, 2);
    assert_int_equal(op->kernel[0].median_ns, 350);
    assert_int_equal(op->kernel[0].grid[0], 8);
    assert_int_equal(op->kernel[0].block[0], 128);
    assert_int_equal(op->kernel[0].registers, 64);
    assert_int_equal(op->kernel[0].shared_bytes, 2048);
    assert_int_equal(op->kernel[1].registers, GX_TRACE_NONE);
    assert_true(near(op->flop_rate, 4e6 / 550e-9));
    assert_true(near(op->byte_rate, 3e5 / 550e-9));
    assert_true(op->floor_s < 0 && op->of_floor < 0);
    /* Nothing of fc2 was seen: no rate, rather than an infinite one. */
    assert_int_equal(pass.op[1].calls, 0);
    assert_true(pass.op[1].flop_rate < 0 && pass.op[1].share == 0);
    /* What no unit claims, by a number beyond the plan's too. */
    assert_string_equal(pass.op[2].name, "");
    assert_true(pass.op[2].unit == SIZE_MAX);
    assert_int_equal(pass.op[2].calls, 4);
    assert_true(pass.op[2].flops < 0 && pass.op[2].flop_rate < 0);
    assert_true(near(pass.op[0].share + pass.op[2].share, 1));
    drop_pass(&pass);
}

static void every_kernel_of_a_plan_is_claimed(void **state)
{
    static const gx_profile_unit units[2] = { { .name = "a" }, { .name = "b" } };
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);

    (void)state;
    add_plain_steps(pass.trace, 3, 50, false);
    finish_pass(&pass, &ten);
    assert_ok(gx_profile_ops(&pass, units, 2, &err), &err);
    assert_int_equal(pass.n_ops, 2); /* no row for unclaimed work */
    assert_true(near(pass.op[0].share, 0.5));
    drop_pass(&pass);
}

/* --- floors --- */

static void floors_follow_the_rate_of_the_op(void **state)
{
    gx_profile_unit units[] = {
        { .flops = 1e9, .bytes = 1e6, .rate = GX_RATE_F32 },  /* 1 ms against 1 us */
        { .flops = 1e9, .bytes = 1e6, .rate = GX_RATE_TF32 }, /* 100 us */
        { .flops = 1e3, .bytes = 5e6, .rate = GX_RATE_F32 },  /* 5 us */
        { .flops = 1e3, .bytes = 1e3, .rate = GX_RATE_F32 },  /* 1 ns */
    };
    const gx_ceilings ceilings = made_ceilings();

    (void)state;
    gx_profile_unit_floors(units, 4, &ceilings);
    assert_true(near(units[0].floor_s, 1e-3));
    assert_int_equal(units[0].bound, GX_BOUND_COMPUTE);
    assert_true(near(units[1].floor_s, 1e-4));
    assert_true(near(units[2].floor_s, 5e-6));
    assert_int_equal(units[2].bound, GX_BOUND_MEMORY);
    assert_int_equal(units[3].bound, GX_BOUND_LATENCY);
    gx_profile_unit_floors(units, 4, NULL);
    assert_true(units[0].floor_s < 0);
    assert_int_equal(units[0].bound, GX_BOUND_UNKNOWN);
}

static void the_share_of_the_floor_is_of_the_median(void **state)
{
    gx_profile_unit units[2] = {
        { .name = "a", .flops = 1e3, .bytes = 5e4, .rate = GX_RATE_F32 }, { .name = "b" }
    };
    const gx_ceilings ceilings = made_ceilings();
    gx_profile_pass pass = start_pass(GX_MODE_EAGER);

    (void)state;
    add_plain_steps(pass.trace, 3, 50, false);
    finish_pass(&pass, &ten);
    gx_profile_unit_floors(units, 2, &ceilings);
    assert_ok(gx_profile_ops(&pass, units, 2, &err), &err);
    assert_true(near(pass.op[0].floor_s, 50e-9));
    assert_true(near(pass.op[0].of_floor, 0.5));
    drop_pass(&pass);
}

static void the_path_goes_over_the_lane_that_ends_last(void **state)
{
    static const int32_t after_0[] = { 0 }, after_2[] = { 2 };
    /* Lane 0: 0 (10), 1 (5), 4 (1); lane 1: 2 (20) behind 0, 3 (2); 4 waits for 2. */
    gx_profile_unit units[] = {
        { .floor_s = 10e-6 },
        { .floor_s = 5e-6 },
        { .floor_s = 20e-6, .lane = 1, .waits = after_0, .n_waits = 1 },
        { .floor_s = 2e-6, .lane = 1 },
        { .floor_s = 1e-6, .waits = after_2, .n_waits = 1 },
    };
    gx_profile_op ops[5];
    const gx_profile_pass pass = {
        .mode = GX_MODE_GRAPH, .n_steps = 2, .op = ops, .n_ops = 5
    };
    gx_ceilings ceilings = made_ceilings();
    gx_profile_floor floor;

    (void)state;
    for (size_t i = 0; i < 5; i++)
        ops[i] = (gx_profile_op){ .unit = i, .calls = 2 * (int64_t)(i + 1) };
    assert_ok(gx_profile_path(units, 5, &pass, &ceilings, &floor, &err), &err);
    assert_true(near(floor.path_s, 32e-6)); /* 0, 2, 3 */
    assert_int_equal(floor.n_units, 3);
    assert_int_equal(floor.n_nodes, 1 + 3 + 4);
    assert_true(near(floor.latency_s, 8e-6));

    units[3].floor_s = 0.5e-6; /* now 0, 2, 4 ends last */
    assert_ok(gx_profile_path(units, 5, &pass, &ceilings, &floor, &err), &err);
    assert_true(near(floor.path_s, 31e-6));
    assert_int_equal(floor.n_nodes, 1 + 3 + 5);

    units[3].lane = 2; /* which 2 does not stand before */
    units[3].floor_s = 40e-6;
    assert_ok(gx_profile_path(units, 5, &pass, &ceilings, &floor, &err), &err);
    assert_true(near(floor.path_s, 40e-6));
    assert_int_equal(floor.n_units, 1);
    units[3].floor_s = 0.5e-6;

    for (size_t i = 0; i < 5; i++)
        units[i].lane = 0;
    assert_ok(gx_profile_path(units, 5, NULL, &ceilings, &floor, &err), &err);
    assert_true(near(floor.path_s, 36.5e-6)); /* one after the other */
    assert_int_equal(floor.n_units, 5);
    assert_int_equal(floor.n_nodes, -1);

    units[1].floor_s = -1;
    assert_ok(gx_profile_path(units, 5, &pass, &ceilings, &floor, &err), &err);
    assert_true(floor.path_s < 0);
    assert_ok(gx_profile_path(units, 5, &pass, NULL, &floor, &err), &err);
    assert_true(floor.path_s < 0 && floor.latency_s < 0);
}

static void programmatic_edges_have_a_latency_of_their_own(void **state)
{
    gx_profile_unit units[] = { { .floor_s = 1e-6 }, { .floor_s = 1e-6 } };
    gx_profile_op ops[] = { { .unit = 0, .calls = 4 }, { .unit = 1, .calls = 6 } };
    gx_profile_pass pass = { .mode = GX_MODE_GRAPH, .n_steps = 2, .op = ops, .n_ops = 2 };
    gx_ceilings ceilings = made_ceilings();
    gx_profile_floor floor;

    (void)state;
    pass.stats.programmatic_edges = 3;
    ceilings.programmatic_node_s = 0.5e-6;
    assert_ok(gx_profile_path(units, 2, &pass, &ceilings, &floor, &err), &err);
    assert_int_equal(floor.n_nodes, 5);
    assert_true(near(floor.latency_s, 2e-6 + 1.5e-6));
}

/* --- units of a plan --- */

static void units_have_the_work_of_their_nodes(void **state)
{
    static const char model[] = "gexec: 1\n"
                                "name: small\n"
                                "precision: tf32\n"
                                "inputs:\n"
                                "  x: {shape: [4, 8]}\n"
                                "params:\n"
                                "  w: {shape: [8, 2], init: zeros}\n"
                                "ops:\n"
                                "  - {op: gemm, name: fc, a: x, b: w, out: h}\n"
                                "  - {op: relu, name: bend, x: h, out: y}\n"
                                "outputs: [y]\n";
    const gx_plan_options options = { .device = GX_CPU };
    gx_graph *graph;
    gx_plan *plan;
    gx_profile_unit *units;
    size_t n;

    (void)state;
    assert_ok(
        gx_graph_parse(model, sizeof model - 1, "m", NULL, NULL, &graph, NULL, &err),
        &err);
    assert_ok(gx_plan_create(graph, &options, &plan, &err), &err);
    assert_ok(gx_profile_units(plan, &units, &n, &err), &err);
    assert_true(n >= 2);
    assert_string_equal(units[0].name, "fc");
    assert_true(units[0].flops == 2 * 4 * 8 * 2);
    assert_true(units[0].bytes == 4 * (4 * 8 + 8 * 2 + 4 * 2));
    assert_int_equal(units[0].rate, GX_RATE_TF32);
    assert_string_equal(units[1].name, "bend");
    assert_true(units[1].bytes == 4 * 2 * 8);
    assert_int_equal(units[1].rate, GX_RATE_F32);
    free(units);
    gx_plan_free(plan);
    gx_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_has_all_its_kernels),
        cmocka_unit_test(every_kernel_of_a_plan_is_claimed),
        cmocka_unit_test(floors_follow_the_rate_of_the_op),
        cmocka_unit_test(the_share_of_the_floor_is_of_the_median),
        cmocka_unit_test(the_path_goes_over_the_lane_that_ends_last),
        cmocka_unit_test(programmatic_edges_have_a_latency_of_their_own),
        cmocka_unit_test(units_have_the_work_of_their_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
