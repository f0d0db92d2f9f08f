/* A profile with values that are made up. */
#include "support_profile.h"

#include <stdlib.h>
#include <string.h>

static gx_error err;

static const char model[] = "graphs/examples/mnist_mlp.yaml";

/* --- one step, unit by unit --- */

static double unit_flops(const gx_graph *graph, gx_unit_info unit)
{
    double sum = 0;

    for (size_t i = 0; i < unit.n_nodes; i++)
        sum += gx_graph_node(graph, unit.first_node + i).flops;
    return sum;
}

static double unit_bytes(const gx_graph *graph, gx_unit_info unit)
{
    double sum = 0;

    for (size_t i = 0; i < unit.n_nodes; i++)
        sum += gx_graph_node(graph, unit.first_node + i).bytes;
    return sum;
}

static int64_t unit_ns(const made_profile *made, gx_unit_info unit)
{
    const gx_graph *const graph = made->profile.timing.session.graph[GX_PROGRAM_TRAIN];

    return 1100 + (int64_t)(unit_flops(graph, unit) / 60e3) +
           (int64_t)(unit_bytes(graph, unit) / 2e3);
}

static const char *unit_kernel(const made_profile *made, gx_unit_info unit)
{
    const gx_graph *const graph = made->profile.timing.session.graph[GX_PROGRAM_TRAIN];

    if (unit_flops(graph, unit) > 1e7)
        return "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>"
               "(cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4::Params)";
    return unit.phase == GX_PHASE_OPTIMIZER
               ? "adamw_kernel(float*, float*, float*, float const*, long)"
               : "void (anonymous namespace)::elementwise<float, 4>(float*, float "
                 "const*)";
}

/* --- traces --- */

static uint32_t text_of(gx_trace *trace, const char *words)
{
    uint32_t id;

    assert_ok(gx_trace_text(trace, words, strlen(words), &id, &err), &err);
    return id;
}

typedef struct clock_pair {
    int64_t host, device, correlation;
} clock_pair;

static void add_call(gx_trace *trace, clock_pair *now, const char *name, int64_t ns)
{
    const gx_trace_call call = { .start = now->host,
                                 .end = now->host + ns,
                                 .process = 1,
                                 .thread = 10,
                                 .correlation = ++now->correlation,
                                 .name = text_of(trace, name) };

    assert_ok(gx_trace_add_call(trace, &call, &err), &err);
}

static void add_unit(made_profile *made, gx_trace *trace, clock_pair *now, size_t i,
                     bool is_graph)
{
    const gx_plan *const plan = made->profile.timing.session.plan[GX_PROGRAM_TRAIN];
    const gx_unit_info unit = gx_plan_unit(plan, i);
    gx_trace_activity activity = gx_trace_activity_none();

    activity.kind = GX_TRACE_KERNEL;
    activity.name = text_of(trace, unit_kernel(made, unit));
    activity.process = 1;
    activity.stream = 7;
    activity.start = now->device;
    activity.end = now->device + unit_ns(made, unit) + (now->correlation * 37 % 90);
    activity.correlation = now->correlation;
    activity.node = is_graph ? (int64_t)i + 1 : GX_TRACE_NONE;
    activity.grid[0] = 64;
    activity.grid[1] = activity.grid[2] = 1;
    activity.block[0] = 256;
    activity.block[1] = activity.block[2] = 1;
    activity.registers = 40;
    activity.shared_bytes = 4096;
    activity.group = (int32_t)i;
    activity.lane = activity.body = 0;
    assert_ok(gx_trace_add_activity(trace, &activity, &err), &err);
    now->device = activity.end;
}

static void add_step(made_profile *made, gx_trace *trace, clock_pair *now, bool is_graph,
                     size_t n_units)
{
    gx_trace_range range = { .kind = GX_TRACE_PUSH_POP,
                             .name = text_of(trace, "step"),
                             .domain = text_of(trace, "gexec"),
                             .start = now->host,
                             .process = 1,
                             .thread = 10 };

    if (is_graph) {
        add_call(trace, now, "cudaGraphLaunch", 5200);
        now->device =
            now->device + 2900 > now->host + 6900 ? now->device + 2900 : now->host + 6900;
        now->host += 7600;
    }
    for (size_t i = 0; i < n_units; i++) {
        if (!is_graph) {
            add_call(trace, now, "cudaLaunchKernelExC", 2300);
            if (now->device < now->host + 3600)
                now->device = now->host + 3600 + now->correlation * 53 % 800;
            now->host += 4400 + now->correlation * 71 % 1900;
        } else if (i) {
            now->device += 860 + (int64_t)i * 7 % 50;
        }
        add_unit(made, trace, now, i, is_graph);
    }
    now->host += 900;
    range.end = now->host;
    assert_ok(gx_trace_add_range(trace, &range, &err), &err);
}

/* --- figures that follow --- */

static void fill_steps(gx_profile_pass *pass, size_t n_steps, size_t n_units)
{
    size_t n;
    const gx_trace_activity *const activities = gx_trace_activities(pass->trace, &n);

    pass->step = calloc(n_steps, sizeof *pass->step);
    assert_non_null(pass->step);
    pass->n_steps = n_steps;
    for (size_t s = 0; s < n_steps; s++) {
        gx_profile_step *const step = &pass->step[s];
        const gx_gap_class class_of =
            pass->mode == GX_MODE_GRAPH ? GX_GAP_DEVICE : GX_GAP_HOST;

        step->start = activities[s * n_units].start;
        step->end = activities[(s + 1) * n_units - 1].end;
        step->n_kernels = (int64_t)n_units;
        for (size_t i = s * n_units; i < (s + 1) * n_units; i++)
            step->busy += activities[i].end - activities[i].start;
        step->idle = step->end - step->start - step->busy;
        step->gaps[class_of] = (gx_trace_share){ (int64_t)n_units - 1, step->idle };
        step->step_gap =
            s + 1 < n_steps ? activities[(s + 1) * n_units].start - step->end : -1;
    }
}

static void fill_op(made_profile *made, gx_profile_op *op, size_t i, size_t n_steps)
{
    const gx_session *const session = &made->profile.timing.session;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_unit_info unit = gx_plan_unit(session->plan[GX_PROGRAM_TRAIN], i);
    const double s = 1e-9 * (double)unit_ns(made, unit);

    op->name = gx_graph_node(graph, unit.first_node).name;
    op->alternative = unit.alternative;
    op->phase = unit.phase;
    op->unit = i;
    op->calls = (int64_t)n_steps;
    op->median_ns = unit_ns(made, unit) + 40;
    op->p95_ns = op->median_ns + 60;
    op->total_ns = op->median_ns * (int64_t)n_steps;
    op->flops = unit_flops(graph, unit);
    op->bytes = unit_bytes(graph, unit);
    op->flop_rate = op->flops / s;
    op->byte_rate = op->bytes / s;
    op->floor_s = made->profile.has_ceilings ? s * 0.62 : -1;
    op->of_floor = made->profile.has_ceilings ? 0.62 : -1;
    op->bound = !made->profile.has_ceilings ? GX_BOUND_UNKNOWN
                : op->flops > 1e8           ? GX_BOUND_COMPUTE
                : op->bytes > 1e6           ? GX_BOUND_MEMORY
                                            : GX_BOUND_LATENCY;
    op->n_kernels = 1;
    op->kernel = calloc(1, sizeof *op->kernel);
    assert_non_null(op->kernel);
    *op->kernel = (gx_profile_kernel){ .name = unit_kernel(made, unit),
                                       .calls = op->calls,
                                       .total_ns = op->total_ns,
                                       .median_ns = op->median_ns,
                                       .p95_ns = op->p95_ns,
                                       .grid = { 64, 1, 1 },
                                       .block = { 256, 1, 1 },
                                       .registers = 40,
                                       .shared_bytes = 4096 };
}

static void fill_pass(made_profile *made, gx_mode mode, size_t n_steps)
{
    gx_profile_pass *const pass = &made->profile.pass[mode == GX_MODE_GRAPH];
    const size_t n_units =
        gx_plan_unit_count(made->profile.timing.session.plan[GX_PROGRAM_TRAIN]);
    clock_pair now = { .host = 5000000 };
    int64_t total = 0;

    pass->mode = mode;
    pass->lane_overlap_ns = -1;
    pass->trace = gx_trace_create();
    assert_non_null(pass->trace);
    for (size_t i = 0; i < n_steps; i++)
        add_step(made, pass->trace, &now, mode == GX_MODE_GRAPH, n_units);
    assert_ok(gx_trace_finish(pass->trace, &err), &err);
    assert_ok(gx_trace_figures_create(pass->trace, NULL, &pass->figures, &err), &err);
    pass->expected = pass->found = (int64_t)(n_steps * n_units);
    fill_steps(pass, n_steps, n_units);
    pass->op = calloc(n_units, sizeof *pass->op);
    assert_non_null(pass->op);
    pass->n_ops = n_units;
    for (size_t i = 0; i < n_units; i++) {
        fill_op(made, &pass->op[i], i, n_steps);
        total += pass->op[i].total_ns;
    }
    for (size_t i = 0; i < n_units; i++)
        pass->op[i].share = (double)pass->op[i].total_ns / (double)total;
}

/* --- untraced times and the rest --- */

static void fill_series(gx_series *series, double median, size_t n, uint64_t seed)
{
    test_random random = test_random_start(seed);

    for (size_t i = 0; i < n; i++)
        assert_true(
            gx_series_add(series, median * (1 + 0.004 * test_random_real(&random, -1, 1) +
                                            (i % 11 == 10 ? 0.02 : 0))));
}

static void fill_timing(gx_compare *timing)
{
    static const double steady[GX_N_WAYS] = { 158.4e-6, 121.7e-6, 50.2e-6 };

    timing->stats = (gx_exec_stats){ .prime_s = 2.1e-3,
                                     .prepare_s = 11.2e-3,
                                     .capture_s = 0.34e-3,
                                     .instantiate_s = 0.61e-3,
                                     .upload_s = 0.12e-3,
                                     .first_launch_s = 0.09e-3,
                                     .graph_nodes = 21,
                                     .launches_per_step = 21,
                                     .device_bytes = 19922944 };
    timing->block = 80;
    timing->empty_s = 4.9e-6;
    timing->bits_steps = 20;
    timing->n_compared = 27;
    for (int i = 0; i < GX_N_WAYS; i++) {
        gx_way_times *const way = &timing->way[i];

        way->mode = i == GX_WAY_GRAPH ? GX_MODE_GRAPH : GX_MODE_EAGER;
        way->launches = i == GX_WAY_UNFUSED ? 34 : 21;
        fill_series(&way->steady, steady[i], 25, 1 + (uint64_t)i);
        fill_series(&way->host, i == GX_WAY_GRAPH ? 5.3e-6 : steady[i] * 0.9, 25, 4);
        fill_series(&way->wall, steady[i] * 1.2, 25, 5);
        fill_series(&way->queued, i == GX_WAY_GRAPH ? 4.1e-6 : steady[i], 25, 6);
    }
    for (size_t i = 0; i < 25; i++)
        assert_true(gx_series_add(&timing->ratio,
                                  timing->way[GX_WAY_GRAPH].steady.values[i] /
                                      timing->way[GX_WAY_EAGER].steady.values[i]));
    fill_series(&timing->ratio_unfused, 0.317, 25, 8);
    fill_series(&timing->sm_mhz, 1980, 5, 9);
    fill_series(&timing->memory_mhz, 2619, 5, 10);
}

static void fill_session(made_profile *made)
{
    gx_session *const session = &made->profile.timing.session;
    const gx_plan_options options = { .device = GX_CPU,
                                      .no_measure = true,
                                      .cache_folder = "" };

    made->args = (gx_args){ .steps_per_launch = 1, .seed = 1 };
    session->args = &made->args;
    session->steps_per_launch = 1;
    session->state_s = 1.4e-3;
    session->device_info = (gx_device_info){ .name = "A card that is made up",
                                             .cc_major = 9,
                                             .n_sm = 132,
                                             .l2_bytes = INT64_C(50) << 20,
                                             .memory_bytes = INT64_C(80) << 30,
                                             .driver_version = 13000,
                                             .runtime_version = 13000,
                                             .cublaslt_version = 130000 };
    assert_ok(gx_graph_load(model, NULL, &session->graph[GX_PROGRAM_TRAIN], NULL, &err),
              &err);
    assert_ok(gx_plan_create(session->graph[GX_PROGRAM_TRAIN], &options,
                             &session->plan[GX_PROGRAM_TRAIN], &err),
              &err);
}

void profile_make(made_profile *made, int n_steps, bool with_ceilings)
{
    gx_profile *const profile = &made->profile;

    memset(made, 0, sizeof *made);
    fill_session(made);
    fill_timing(&profile->timing);
    profile->has_ceilings = with_ceilings;
    if (with_ceilings)
        profile->ceilings = (gx_ceilings){
            .card = "A card that is made up",
            .date = "2025-11-28T09:30:00Z",
            .flops_per_s = { 51.2e12, 418e12, 712e12, 706e12 },
            .copy = { { 1 << 20, 1.9e12 }, { 16 << 20, 5.4e12 }, { 1 << 30, 3.02e12 } },
            .n_copy = 3,
            .node_s = 1.15e-6,
            .programmatic_node_s = 0.7e-6,
            .step_s = 2.9e-6,
            .launch_s = 2.2e-6,
            .graph_host_s = 4.2e-6
        };
    profile->pattern[0] = (gx_profile_pattern){
        .name = "host-bound launches",
        .found =
            "97.1% of the idle time of eager launches waits for the host: 71.4 us of "
            "a step.",
        .advice = "Replay the step as a graph, which launches it with one call."
    };
    profile->pattern[1] = (gx_profile_pattern){
        .name = "small kernels",
        .found = "17 of 21 kernels take less than 3 us.",
        .advice = "Fuse them, or give a step more rows: --set batch=1024."
    };
    profile->n_patterns = 2;
    made->report.title = gx_graph_name(profile->timing.session.graph[GX_PROGRAM_TRAIN]);
    made->report.profile = profile;
    made->report.n_sides = 2;
    for (int i = 0; i < 2; i++) {
        fill_pass(made, i ? GX_MODE_GRAPH : GX_MODE_EAGER, (size_t)n_steps);
        made->report.side[i] = (gx_report_side){ .title = i ? "graph" : "eager",
                                                 .trace = profile->pass[i].trace,
                                                 .figures = profile->pass[i].figures };
    }
}

void profile_drop(made_profile *made)
{
    gx_compare *const timing = &made->profile.timing;

    for (int i = 0; i < 2; i++) {
        gx_profile_pass *const pass = &made->profile.pass[i];

        for (size_t k = 0; k < pass->n_ops; k++)
            free(pass->op[k].kernel);
        free(pass->op);
        free(pass->step);
        gx_trace_figures_free(pass->figures);
        gx_trace_free(pass->trace);
    }
    for (int i = 0; i < GX_N_WAYS; i++) {
        gx_series_free(&timing->way[i].steady);
        gx_series_free(&timing->way[i].host);
        gx_series_free(&timing->way[i].wall);
        gx_series_free(&timing->way[i].queued);
    }
    gx_series_free(&timing->ratio);
    gx_series_free(&timing->ratio_unfused);
    gx_series_free(&timing->sm_mhz);
    gx_series_free(&timing->memory_mhz);
    gx_plan_free(timing->session.plan[GX_PROGRAM_TRAIN]);
    gx_graph_free(timing->session.graph[GX_PROGRAM_TRAIN]);
}
