/* Real exports of Nsight Systems, and what is known of them. */
#include <stdio.h>

#include "support_trace.h"

#if !GX_HAVE_SQLITE

int main(void)
{
    printf("skipped: this build has no SQLite\n");
    return TEST_SKIPPED;
}

#else

static const trace_truth own[] = {
    { "torch_mnist_mlp_tf32_eager.sqlite.gz",
      0,
      156,
      12899235,
      532717,
      12366518,
      155,
      { 894896, 558218, 367815, 359238, 355206 },
      7,
      156,
      51008,
      { { 139, 12052463 }, { 16, 314055 }, { 0, 0 }, { 0, 0 } } },
    { "torch_mnist_mlp_tf32_graph.sqlite.gz",
      0,
      156,
      600650,
      529385,
      71265,
      155,
      { 34144, 5664, 5632, 5632, 5632 },
      7,
      156,
      96,
      { { 0, 0 }, { 1, 34144 }, { 154, 37121 }, { 0, 0 } } },
};

static const trace_truth others[] = {
    { "flameox-2025.5.2-graphmode.sqlite",
      0,
      6,
      186815,
      7808,
      179007,
      5,
      { 84703, 80672, 6144, 4480, 3008 },
      13,
      3,
      4576,
      { { 3, 171519 }, { 2, 7488 }, { 0, 0 }, { 0, 0 } } },
    { "nsysai-2026.1.1-mock.sqlite",
      0,
      3,
      22453059,
      5761,
      22447298,
      2,
      { 18250538, 4196760 },
      7,
      2,
      18250538,
      { { 2, 22447298 }, { 0, 0 }, { 0, 0 }, { 0, 0 } } },
    { "nsysai-2026.2.1-h100x2-1s.sqlite",
      0,
      2184,
      969447605,
      962890247,
      6557358,
      2183,
      { 761862, 509732, 279874, 113313, 43712 },
      7,
      1721,
      1216,
      { { 7, 1781805 }, { 0, 0 }, { 1039, 2278862 }, { 1137, 2496691 } } },
    { "nsysai-2026.2.1-h100x2-1s.sqlite",
      1,
      2184,
      969258578,
      962810705,
      6447873,
      2183,
      { 731904, 454720, 180384, 89568, 44768 },
      15,
      1721,
      1248,
      { { 7, 1568864 }, { 0, 0 }, { 1039, 2327233 }, { 1137, 2551776 } } },
    { "pipit-2022.2.1-saxpy-mpi.sqlite",
      0,
      20,
      1097327843,
      373273080,
      724054763,
      19,
      { 196245801, 178326307, 176723671, 172295404, 63968 },
      7,
      5,
      234586037,
      { { 5, 723650062 }, { 14, 404701 }, { 0, 0 }, { 0, 0 } } },
    { "pipit-2024.5.1-cloverleaf.sqlite",
      0,
      1591,
      342407810,
      303795463,
      38612347,
      1590,
      { 2559289, 1148317, 1107965, 885437, 876638 },
      7,
      1312,
      8352,
      { { 1339, 29832348 }, { 190, 8419016 }, { 61, 360983 }, { 0, 0 } } },
    { "easycuda-2023.4.4.sqlite",
      0,
      73,
      6089529,
      2664923,
      3424606,
      24,
      { 1051711, 558218, 547596, 291123, 279892 },
      7,
      1,
      GX_TRACE_NONE,
      { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 24, 3424606 } } },
};

static void own_exports_have_the_figures_that_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        trace_check(OWN_TRACES, &own[i]);
}

static void other_exports_have_the_figures_that_are_known(void **state)
{
    (void)state;
    trace_skip_unless_shared();
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        trace_check(OTHER_TRACES "/nsys", &others[i]);
}

/* Leave whole replays out, and a trace in graph mode looks idle. */
static void an_export_in_graph_mode_counts_its_replays(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "probe_ten_ops_graph.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_int_equal(file.graph_mode, GX_GRAPH_MODE_WHOLE);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 10);
    assert_int_equal(figures->kind[GX_TRACE_GRAPH].n, 3);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 3);
    assert_int_equal(figures->calls[GX_TRACE_CALL_KERNEL].n, 20);
    assert_int_equal(figures->calls_without_work[GX_TRACE_CALL_KERNEL], 10);
    for (size_t i = 0; i < figures->n_ops; i++)
        if (figures->op[i].kind == GX_TRACE_GRAPH) {
            assert_in_range(figures->op[i].least_ns, 9350, 9650);
            assert_in_range(figures->op[i].most_ns, 9350, 9650);
        }
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void each_captured_op_owns_its_replayed_kernels(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "probe_ten_ops_node.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_string_equal(file.version, "2025.3.2.0");
    assert_string_equal(file.schema, "3.20.3");
    assert_int_equal(file.graph_mode, GX_GRAPH_MODE_NODES);
    assert_int_equal(figures->kind[GX_TRACE_KERNEL].n, 40);
    assert_int_equal(figures->by[GX_TRACE_BY_CAPTURE].n, 30);
    for (int i = 0; i < 10; i++) {
        char name[8];
        const gx_trace_range_sum *sum;

        snprintf(name, sizeof name, "op%d", i);
        sum = trace_range_sum(&file, figures, name);
        assert_non_null(sum);
        assert_int_equal(sum->share.n, 3);
        assert_int_equal(sum->by, GX_TRACE_BY_CAPTURE);
    }
    assert_int_equal(trace_range_sum(&file, figures, "eager")->share.n, 10);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void a_capture_before_the_window_is_said(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_load(OWN_TRACES, "torch_mnist_mlp_tf32_graph.sqlite.gz", &file);
    figures = trace_figures(&file);
    assert_int_equal(figures->nodes_before_window.n, 156);
    assert_int_equal(figures->by[GX_TRACE_BY_REPLAY].n, 156);
    assert_int_equal(figures->n_steps, 6);
    assert_int_equal(figures->calls[GX_TRACE_CALL_GRAPH].n, 6);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_LAUNCH].n, 1);
    assert_int_equal(figures->device[0].step_gaps[GX_GAP_DEVICE].n, 4);
    assert_string_equal(gx_trace_text_at(file.trace, file.gpus[0].name),
                        "NVIDIA H100 80GB HBM3");
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

static void an_export_without_device_work_has_no_kernels(void **state)
{
    gx_trace_file file;
    gx_trace_figures *figures;

    (void)state;
    trace_skip_unless_shared();
    trace_load(OTHER_TRACES "/nsys", "ltgemm-2025.1.3-nokernels.sqlite", &file);
    figures = trace_figures(&file);
    assert_int_equal(figures->n_devices, 0);
    assert_true(file.absent.n > 0);
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_exports_have_the_figures_that_are_known),
        cmocka_unit_test(other_exports_have_the_figures_that_are_known),
        cmocka_unit_test(an_export_in_graph_mode_counts_its_replays),
        cmocka_unit_test(each_captured_op_owns_its_replayed_kernels),
        cmocka_unit_test(a_capture_before_the_window_is_said),
        cmocka_unit_test(an_export_without_device_work_has_no_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
