/* A real card's ceilings: figures that can be, in the order that cards have them. No
 * absolute figure is held against anything. */
#include "support_gpu.h"

#include <math.h>

static gx_ceilings measured;

static int measure(void **state)
{
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_ceilings_measure(0, &measured, &err), &err);
    return 0;
}

static void assert_figure(double value, const char *what)
{
    print_message("%-24s %.4g\n", what, value);
    if (!(value > 0 && isfinite(value)))
        fail_msg("%s is %g", what, value);
}

static int card_cc(void)
{
    gx_device_info info;
    gx_error err = { 0 };

    assert_ok(gx_device_info_get(0, &info, &err), &err);
    return 10 * info.cc_major + info.cc_minor;
}

/* Under a tool that slows everything down in its own way. */
static void skip_under_a_tool(void)
{
    if (test_is_short())
        skip();
}

static void every_figure_is_above_zero(void **state)
{
    (void)state;
    skip_under_a_tool();
    for (int i = 0; i < GX_RATES; i++)
        assert_figure(measured.flops_per_s[i], gx_rate_name((gx_rate)i));
    assert_int_equal(measured.n_copy, 15);
    for (size_t i = 0; i < measured.n_copy; i++) {
        print_message("%lld bytes: ", (long long)measured.copy[i].bytes);
        assert_figure(measured.copy[i].bytes_per_s, "copy");
    }
    assert_figure(measured.node_s, "node");
    if (card_cc() >= 90)
        assert_figure(measured.programmatic_node_s, "programmatic node");
    else
        assert_true(measured.programmatic_node_s == -1);
    assert_figure(measured.copy_node_s, "copy");
    assert_figure(measured.copy_engine_s, "copy engine");
    print_message("%-24s %.4g\n", "beside", measured.beside_s); /* may be nothing */
    assert_figure(measured.join_s, "join");
    assert_figure(measured.step_s, "step");
    assert_figure(measured.launch_s, "launch, host");
    assert_figure(measured.graph_host_s, "replay, host");
}

static void tensor_cores_are_faster_than_none(void **state)
{
    const double *rate = measured.flops_per_s;

    (void)state;
    skip_under_a_tool();
    assert_true(rate[GX_RATE_TF32] > rate[GX_RATE_F32]);
    assert_true(rate[GX_RATE_BF16] > rate[GX_RATE_TF32]);
    assert_true(rate[GX_RATE_F16] > rate[GX_RATE_TF32]);
}

/* The fastest of the sets that fit into half of L2, and the largest set of all. */
static void l2_is_no_slower_than_memory(void **state)
{
    const double memory = measured.copy[measured.n_copy - 1].bytes_per_s;
    gx_device_info info;
    gx_error err = { 0 };
    double l2 = 0;

    (void)state;
    skip_under_a_tool();
    assert_ok(gx_device_info_get(0, &info, &err), &err);
    for (size_t i = 0; i < measured.n_copy; i++)
        if (measured.copy[i].bytes <= info.l2_bytes / 2)
            l2 = fmax(l2, measured.copy[i].bytes_per_s);
    assert_true(l2 >= memory);
}

/* The device goes on by itself where the host would take a call of the driver. */
static void a_node_costs_less_than_a_launch_or_a_replay(void **state)
{
    (void)state;
    skip_under_a_tool();
    assert_true(measured.node_s < measured.launch_s);
    assert_true(measured.node_s < measured.graph_host_s);
}

static void what_was_measured_is_kept(void **state)
{
    gx_ceilings loaded;
    gx_device_info info;
    gx_error err = { 0 };

    (void)state;
    assert_ok(gx_device_info_get(0, &info, &err), &err);
    assert_ok(gx_ceilings_save(&info, test_folder(), &measured, &err), &err);
    assert_ok(gx_ceilings_load(&info, test_folder(), &loaded, &err), &err);
    assert_true(loaded.flops_per_s[GX_RATE_BF16] == measured.flops_per_s[GX_RATE_BF16]);
    assert_true(loaded.step_s == measured.step_s);
    assert_string_equal(loaded.date, measured.date);
}

/* A second time in one process, beside a program: nothing is left over. A tool takes
 * memory itself. */
static void measuring_leaves_memory_as_it_was(void **state)
{
    gx_ceilings again;
    gx_device_info before, after;
    gx_error err = { 0 };

    (void)state;
    skip_under_a_tool();
    assert_ok(gx_device_info_get(0, &before, &err), &err);
    assert_ok(gx_ceilings_measure(0, &again, &err), &err);
    assert_ok(gx_device_info_get(0, &after, &err), &err);
    assert_true(before.free_bytes - after.free_bytes <= 2 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_is_above_zero),
        cmocka_unit_test(tensor_cores_are_faster_than_none),
        cmocka_unit_test(l2_is_no_slower_than_memory),
        cmocka_unit_test(a_node_costs_less_than_a_launch_or_a_replay),
        cmocka_unit_test(what_was_measured_is_kept),
        cmocka_unit_test(measuring_leaves_memory_as_it_was),
    };

    gpu_start();
    return cmocka_run_group_tests(tests, measure, NULL);
}
