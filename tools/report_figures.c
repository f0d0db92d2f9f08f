/* What the page tells of a profile beside its traces: times, costs, memory, ceilings. */
#include <stdlib.h>

#include "profile_report.h"
#include "report_page.h"

static const char *const rates[GX_RATES] = { "f32", "tf32", "bf16", "f16" };

static void put_series(gx_json *json, const char *key, const gx_series *series, bool raw)
{
    const gx_summary summary = gx_series_summary(series);

    gx_json_object(json, key);
    gx_json_figure(json, "median", summary.median);
    gx_json_figure(json, "p5", summary.p5);
    gx_json_figure(json, "p95", summary.p95);
    gx_json_integer(json, "n", (int64_t)summary.n);
    if (raw)
        gx_json_reals(json, "raw", series->values, series->n);
    gx_json_end(json);
}

static void put_ways(gx_json *json, const gx_compare *compare)
{
    static const char *const names[GX_N_WAYS] = { "eager, unfused", "eager", "graph" };
    const int64_t unrolled = compare->session.steps_per_launch;

    gx_json_array(json, "ways");
    for (int i = 0; i < GX_N_WAYS; i++) {
        const gx_way_times *const way = &compare->way[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "name", names[i]);
        gx_json_figure(json, "launches",
                       i == GX_WAY_GRAPH ? 1.0 / (double)(unrolled > 1 ? unrolled : 1)
                                         : (double)way->launches);
        put_series(json, "host", &way->host, false);
        put_series(json, "queued", &way->queued, false);
        put_series(json, "wall", &way->wall, false);
        put_series(json, "steady", &way->steady, true);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_ledger(gx_json *json, const gx_compare *compare)
{
    gx_cost costs[GX_MOST_COSTS];
    const size_t n = gx_compare_costs(compare, costs);

    gx_json_array(json, "ledger");
    for (size_t i = 0; i < n; i++) {
        gx_json_object(json, NULL);
        gx_json_text(json, "name", costs[i].name);
        gx_json_figure(json, "s", costs[i].seconds);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_figure(json, "pays_after", gx_compare_pays_after(compare));
    gx_json_integer(json, "graph_nodes", compare->stats.graph_nodes);
}

/* --- passes --- */

typedef int64_t step_value_fn(const gx_profile_pass *pass, size_t i);

static int64_t span_of(const gx_profile_pass *pass, size_t i)
{
    return pass->step[i].end - pass->step[i].start;
}

static int64_t busy_of(const gx_profile_pass *pass, size_t i)
{
    return pass->step[i].busy;
}

static int64_t idle_of(const gx_profile_pass *pass, size_t i)
{
    return pass->step[i].idle;
}

static int64_t step_gap_of(const gx_profile_pass *pass, size_t i)
{
    return pass->step[i].step_gap;
}

static int64_t kernels_of(const gx_profile_pass *pass, size_t i)
{
    return pass->step[i].n_kernels;
}

/* The median over the steps that have the figure; null where none has. */
static void put_median(gx_json *json, const char *key, const gx_profile_pass *pass,
                       step_value_fn *value)
{
    gx_series series = { 0 };

    for (size_t i = 0; i < pass->n_steps; i++)
        if (value(pass, i) >= 0 && !gx_series_add(&series, (double)value(pass, i)))
            break;
    gx_json_figure(json, key, gx_series_summary(&series).median);
    gx_series_free(&series);
}

static void put_overhead_row(gx_json *json, const char *name,
                             const gx_profile_overhead *overhead)
{
    gx_json_array(json, NULL);
    gx_json_text(json, NULL, name);
    gx_json_integer(json, NULL, overhead->inside.n);
    gx_json_integer(json, NULL, overhead->inside.ns);
    gx_json_integer(json, NULL, overhead->before.n);
    gx_json_integer(json, NULL, overhead->before.ns);
    gx_json_end(json);
}

/* Rows of name, records and ns inside, and before; all kinds together first. */
static void put_overhead(gx_json *json, const gx_profile_pass *pass)
{
    const gx_profile_overhead all = gx_profile_overhead_sum(pass);

    if (!pass->trace || !gx_trace_tells_overhead(pass->trace)) {
        gx_json_text(json, "overhead", NULL);
        return;
    }
    gx_json_array(json, "overhead");
    put_overhead_row(json, "", &all);
    for (size_t i = 0; i < pass->n_overheads; i++)
        put_overhead_row(json, pass->overhead[i].name, &pass->overhead[i]);
    gx_json_end(json);
}

static void put_pass(gx_json *json, const gx_profile_pass *pass)
{
    gx_json_object(json, NULL);
    gx_json_text(json, "mode", gx_mode_name(pass->mode));
    gx_json_text(json, "missing", pass->missing[0] ? pass->missing : NULL);
    gx_json_integer(json, "expected", pass->expected);
    gx_json_integer(json, "found", pass->found);
    gx_json_integer(json, "dropped", pass->losses.dropped);
    gx_json_integer(json, "unknown", pass->losses.unknown);
    gx_json_integer(json, "corrupt", pass->losses.corrupt);
    gx_json_integer(json, "n_steps", (int64_t)pass->n_steps);
    put_median(json, "span", pass, span_of);
    put_median(json, "busy", pass, busy_of);
    put_median(json, "idle", pass, idle_of);
    put_median(json, "step_gap", pass, step_gap_of);
    put_median(json, "kernels", pass, kernels_of);
    gx_json_figure(json, "lane_overlap", pass->lane_overlap_ns);
    put_overhead(json, pass);
    gx_json_array(json, "gaps");
    for (int c = 0; c < GX_GAP_CLASSES; c++) {
        int64_t n = 0, ns = 0;

        for (size_t i = 0; i < pass->n_steps; i++) {
            n += pass->step[i].gaps[c].n;
            ns += pass->step[i].gaps[c].ns;
        }
        gx_json_array(json, NULL);
        gx_json_integer(json, NULL, n);
        gx_json_integer(json, NULL, ns);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

/* --- the rest --- */

static void put_memory(gx_json *json, const gx_compare *compare)
{
    const gx_session *const session = &compare->session;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const gx_exec_stats stats = compare->stats;
    const struct {
        const char *name, *what;
        double bytes;
    } rows[] = {
        { "parameters, state, data", "outlive a step", (double)plan.persistent_bytes },
        { "arena", "values of a step, sharing memory", (double)plan.arena_bytes },
        { "without sharing", "what the arena would be", (double)plan.naive_bytes },
        { "workspaces", "of the chosen kernels", (double)plan.workspace_bytes },
        { "exec", "arena and workspaces as allocated", (double)stats.device_bytes },
    };

    gx_json_array(json, "memory");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gx_json_object(json, NULL);
        gx_json_text(json, "name", rows[i].name);
        gx_json_text(json, "what", rows[i].what);
        gx_json_figure(json, "bytes", rows[i].bytes);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_pair(gx_json *json, const char *name, const char *value)
{
    gx_json_array(json, NULL);
    gx_json_text(json, NULL, name);
    gx_json_text(json, NULL, value);
    gx_json_end(json);
}

static void put_clocks(gx_json *json, const gx_compare *compare)
{
    const gx_summary sm = gx_series_summary(&compare->sm_mhz);
    const gx_summary memory = gx_series_summary(&compare->memory_mhz);
    char text[160], throttle[128];

    if (!sm.n) {
        put_pair(json, "clocks", NULL);
        return;
    }
    snprintf(text, sizeof text, "SM %.0f MHz (p5 %.0f, p95 %.0f), memory %.0f MHz",
             sm.median, sm.p5, sm.p95, memory.median);
    put_pair(json, "clocks", text);
    put_pair(json, "throttling",
             gx_throttle_text(compare->throttle, throttle, sizeof throttle));
}

static void put_environment(gx_json *json, const gx_compare *compare)
{
    const gx_session *const session = &compare->session;
    const gx_device_info *const info = &session->device_info;
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    const gx_plan_info plan_info = gx_plan_info_get(plan);
    char text[256];

    gx_json_array(json, "environment");
    put_pair(json, "card", info->name);
    snprintf(text, sizeof text, "%d.%d, %d SMs, L2 %s, memory %s", info->cc_major,
             info->cc_minor, info->n_sm, gx_words_bytes((double)info->l2_bytes).text,
             gx_words_bytes((double)info->memory_bytes).text);
    put_pair(json, "compute capability", text);
    put_clocks(json, compare);
    snprintf(text, sizeof text, "%s (CUDA %s)",
             compare->nvml ? gx_nvml_driver(compare->nvml) : "n/a",
             gx_words_cuda_version(info->driver_version).text);
    put_pair(json, "driver", text);
    put_pair(json, "toolkit", gx_words_cuda_version(info->runtime_version).text);
    snprintf(text, sizeof text, "%zu", info->cublaslt_version);
    put_pair(json, "cuBLASLt", text);
    put_pair(json, "gexec", gx_version());
    snprintf(text, sizeof text, "%s: %zu units, %d lane%s%s%s%s", gx_plan_mark(plan).text,
             gx_plan_unit_count(plan), plan_info.n_lanes,
             plan_info.n_lanes == 1 ? "" : "s",
             plan_info.order == GX_ORDER_DATA_FIRST ? ", data first" : "",
             plan_info.programmatic ? ", programmatic edges" : "",
             plan_info.skip_if ? ", updates in an IF node" : "");
    put_pair(json, "plan", text);
    put_pair(json, "precision", gx_graph_precision(session->graph[GX_PROGRAM_TRAIN]));
    put_pair(json, "seed", gx_words_seed(session->args->seed).text);
    for (size_t i = 0; gx_cuda_variables[i]; i++)
        if (getenv(gx_cuda_variables[i]))
            put_pair(json, gx_cuda_variables[i], getenv(gx_cuda_variables[i]));
    gx_json_end(json);
}

static void put_ceilings(gx_json *json, const gx_profile *profile)
{
    const gx_ceilings *const ceilings = &profile->ceilings;

    gx_json_integer(json, "l2_bytes", profile->timing.session.device_info.l2_bytes);
    if (!profile->has_ceilings) {
        gx_json_text(json, "ceilings", NULL);
        return;
    }
    gx_json_object(json, "ceilings");
    gx_json_text(json, "card", ceilings->card);
    gx_json_text(json, "date", ceilings->date);
    gx_json_object(json, "flops");
    for (int i = 0; i < GX_RATES; i++)
        gx_json_figure(json, rates[i], ceilings->flops_per_s[i]);
    gx_json_end(json);
    gx_json_array(json, "copy");
    for (size_t i = 0; i < ceilings->n_copy; i++) {
        gx_json_array(json, NULL);
        gx_json_integer(json, NULL, ceilings->copy[i].bytes);
        gx_json_figure(json, NULL, ceilings->copy[i].bytes_per_s);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_figure(json, "node", ceilings->node_s);
    gx_json_figure(json, "programmatic_node", ceilings->programmatic_node_s);
    gx_json_figure(json, "step", ceilings->step_s);
    gx_json_figure(json, "launch", ceilings->launch_s);
    gx_json_figure(json, "graph_host", ceilings->graph_host_s);
    gx_json_end(json);
}

void gx_report_put_profile(gx_json *json, const gx_profile *profile)
{
    const gx_compare *const timing = &profile->timing;
    const gx_session *const session = &timing->session;

    gx_json_object(json, "profile");
    gx_json_text(json, "model", gx_graph_name(session->graph[GX_PROGRAM_TRAIN]));
    gx_json_text(json, "place", gx_session_place(session).text);
    gx_json_text(json, "precision", gx_graph_precision(session->graph[GX_PROGRAM_TRAIN]));
    gx_json_integer(json, "block", timing->block);
    gx_json_bool(json, "interrupted", timing->interrupted);
    put_ways(json, timing);
    put_series(json, "ratio", &timing->ratio, false);
    put_series(json, "ratio_unfused", &timing->ratio_unfused, false);
    put_ledger(json, timing);
    gx_json_array(json, "passes");
    for (size_t i = 0; i < 2; i++)
        put_pass(json, &profile->pass[i]);
    gx_json_end(json);
    gx_profile_put_patterns(json, profile);
    put_memory(json, timing);
    put_ceilings(json, profile);
    put_environment(json, timing);
    gx_json_end(json);
}
