/* What `gexec compare` says as text. */
#include "compare.h"
#include "launches.h"
#include "text_table.h"

static void print_verdict(const gx_compare *compare, FILE *out)
{
    const gx_summary eager = gx_series_summary(&compare->way[GX_WAY_EAGER].steady);
    const gx_summary graph = gx_series_summary(&compare->way[GX_WAY_GRAPH].steady);
    const gx_summary ratio = gx_series_summary(&compare->ratio);
    const double pays = gx_compare_pays_after(compare);

    if (compare->difference.found)
        fprintf(out, "THE BITS DIFFER in '%s'. ", compare->difference.tensor);
    if (!ratio.n)
        fputs("Interrupted before a pair of blocks was measured.", out);
    else if (ratio.p95 < 1)
        fprintf(out,
                "The graph is %.2f times as fast as eager launches: %s against %s a step",
                1 / ratio.median, gx_words_seconds(graph.median).text,
                gx_words_seconds(eager.median).text);
    else if (ratio.p5 > 1)
        fprintf(out,
                "Eager launches are faster here: the graph takes %.2f times as long, %s "
                "against %s a step",
                ratio.median, gx_words_seconds(graph.median).text,
                gx_words_seconds(eager.median).text);
    else
        fprintf(
            out,
            "No clear difference: the graph takes %s and eager launches %s a step, and "
            "the pairs disagree on which is faster",
            gx_words_seconds(graph.median).text, gx_words_seconds(eager.median).text);
    if (ratio.n && pays >= 0)
        fprintf(out, "; it pays back after %.0f steps", pays);
    else if (ratio.n)
        fputs("; it never pays back", out);
    if (!compare->difference.found)
        fprintf(out, "%s bits are equal after %lld steps", ratio.n ? ";" : " The",
                (long long)compare->bits_steps);
    fputs(".\n\n", out);
}

/* --- the table --- */

typedef const gx_series *series_of_fn(const gx_way_times *way);

static const gx_series *host_of(const gx_way_times *way)
{
    return &way->host;
}

static const gx_series *queued_of(const gx_way_times *way)
{
    return &way->queued;
}

static const gx_series *wall_of(const gx_way_times *way)
{
    return &way->wall;
}

static const gx_series *steady_of(const gx_way_times *way)
{
    return &way->steady;
}

static const gx_series *wait_of(const gx_way_times *way)
{
    return &way->wait;
}

static void add_figure(gx_text_table *table, const gx_compare *compare, const char *name,
                       series_of_fn *series_of)
{
    gx_summary summary[GX_N_WAYS];

    gx_text_table_cell(table, "%s", name);
    for (int i = 0; i < GX_N_WAYS; i++) {
        summary[i] = gx_series_summary(series_of(&compare->way[i]));
        gx_text_table_cell(table, "%s", gx_words_seconds(summary[i].median).text);
    }
    gx_text_table_cell(table, "%zu", summary[GX_WAY_GRAPH].n);
    gx_text_table_cell(table, "  p5 to p95");
    for (int i = 0; i < GX_N_WAYS; i++)
        gx_text_table_cell(table, "%s to %s", gx_words_seconds(summary[i].p5).text,
                           gx_words_seconds(summary[i].p95).text);
    gx_text_table_cell(table, "%s", "");
}

static void print_table(const gx_compare *compare, FILE *out)
{
    const int64_t k = compare->session.steps_per_launch;
    gx_text_table *table = gx_text_table_create("lrrrr");
    static const char *const titles[] = { "a step", "eager, unfused", "eager", "graph",
                                          "count" };

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        gx_text_table_cell(table, "%s", titles[i]);
    gx_text_table_rule(table);
    gx_text_table_cell(table, "launches");
    gx_text_table_cell(table, "%s",
                       gx_words_count(compare->way[GX_WAY_UNFUSED].launches).text);
    gx_text_table_cell(table, "%s",
                       gx_words_count(compare->way[GX_WAY_EAGER].launches).text);
    if (k > 1)
        gx_text_table_cell(table, "1/%lld", (long long)k);
    else
        gx_text_table_cell(table, "1");
    gx_text_table_cell(table, "%s", "");
    add_figure(table, compare, "host", host_of);
    add_figure(table, compare, "host queued", queued_of);
    add_figure(table, compare, "wall", wall_of);
    add_figure(table, compare, "steady", steady_of);
    if (compare->session.streams)
        add_figure(table, compare, "data wait", wait_of);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    fputs("  host: submitting to an idle device; host queued: to a busy one; wall: idle "
          "to\n"
          "  synchronized; steady: device time, steps back to back\n",
          out);
    if (compare->session.streams)
        fputs("  data wait: of the steady time, from the end of the step before to when "
              "the batch\n  was there, by events; the host times include gathering the "
              "next batch\n",
              out);
    fputc('\n', out);
}

static void print_ratio(const char *name, const gx_series *series, FILE *out)
{
    const gx_summary ratio = gx_series_summary(series);

    if (ratio.n)
        fprintf(out, "  %-28s %.3f  (p5 %.3f, p95 %.3f, %zu pairs)\n", name, ratio.median,
                ratio.p5, ratio.p95, ratio.n);
    else
        fprintf(out, "  %-28s n/a\n", name);
}

static void print_launch(const gx_compare *compare, FILE *out)
{
    if (compare->session.steps_per_launch > 1)
        fprintf(out, "  %-28s %s  (%s)\n", "host of a launch",
                gx_words_seconds(gx_compare_launch_host(compare)).text,
                gx_launches_words(&compare->session).text);
}

static void print_replay(const gx_compare *compare, FILE *out)
{
    const gx_exec_stats stats = compare->stats;
    const gx_summary host = gx_series_summary(&compare->way[GX_WAY_GRAPH].host);

    fprintf(out, "  %-28s ", "replay / empty kernels, host");
    if (compare->empty_s > 0 && host.n)
        fprintf(out, "%.3f  (%s; a graph of %lld empty kernels %s)\n",
                host.median / compare->empty_s, gx_words_seconds(host.median).text,
                (long long)stats.graph_nodes, gx_words_seconds(compare->empty_s).text);
    else
        fputs("n/a\n", out);
}

size_t gx_compare_costs(const gx_compare *compare, gx_cost costs[GX_MOST_COSTS])
{
    const gx_session *const session = &compare->session;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const gx_exec_stats stats = compare->stats;
    double parse_s, check_s;
    size_t n = 0;

    gx_graph_times(session->graph[GX_PROGRAM_TRAIN], &parse_s, &check_s);
    costs[n++] = (gx_cost){ "parse", parse_s };
    costs[n++] = (gx_cost){ "check", check_s };
    costs[n++] = (gx_cost){ "select", plan.select_s };
    costs[n++] = (gx_cost){ "layout", plan.layout_s };
    costs[n++] = (gx_cost){ "state", session->state_s };
    costs[n++] = (gx_cost){ "prepare", stats.prepare_s };
    costs[n++] = (gx_cost){ "prime", stats.prime_s };
    costs[n++] = (gx_cost){ "capture", stats.capture_s };
    costs[n++] = (gx_cost){ "instantiate", stats.instantiate_s };
    costs[n++] = (gx_cost){ "upload", stats.upload_s };
    costs[n++] = (gx_cost){ "first launch", stats.first_launch_s };
    return n;
}

void gx_compare_print_costs(const gx_compare *compare, FILE *out)
{
    const gx_summary steady = gx_series_summary(&compare->way[GX_WAY_GRAPH].steady);
    gx_text_table *table = gx_text_table_create("lr");
    gx_cost costs[GX_MOST_COSTS + 2];
    size_t n = gx_compare_costs(compare, costs);

    costs[n++] =
        (gx_cost){ "capture and instantiate, a node", gx_compare_build_a_node(compare) };
    costs[n++] = (gx_cost){ "steady, a step", steady.median };
    for (size_t i = 0; i < n; i++) {
        gx_text_table_cell(table, "%s", costs[i].name);
        gx_text_table_cell(table, "%s", gx_words_seconds(costs[i].seconds).text);
    }
    fputs("\n  costs of the graph, once each\n", out);
    gx_text_table_print(table, "    ", out);
    gx_text_table_free(table);
}

void gx_compare_print_environment(const gx_compare *compare, FILE *out)
{
    const gx_session *const session = &compare->session;
    const gx_device_info *const info = &session->device_info;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const gx_summary sm = gx_series_summary(&compare->sm_mhz);
    const gx_summary memory = gx_series_summary(&compare->memory_mhz);
    char throttle[128];

    if (sm.n)
        fprintf(out,
                "  clocks: SM %.0f MHz (p5 %.0f, p95 %.0f), memory %.0f MHz; throttling: "
                "%s\n",
                sm.median, sm.p5, sm.p95, memory.median,
                gx_throttle_text(compare->throttle, throttle, sizeof throttle));
    else
        fprintf(out, "  clocks: n/a (%s)\n",
                gx_nvml_lack(compare->nvml) ? gx_nvml_lack(compare->nvml)
                                            : "NVML gives none for this card");
    fprintf(out, "  %s; driver %s (CUDA %s), toolkit %s, cuBLASLt %zu; gexec %s\n",
            info->name, gx_nvml_driver(compare->nvml),
            gx_words_cuda_version(info->driver_version).text,
            gx_words_cuda_version(info->runtime_version).text, info->cublaslt_version,
            gx_version());
    fprintf(out,
            "  plan %s: %zu units, %zu measured now, %zu from the cache or a file; %d "
            "lane%s%s%s%s\n",
            gx_plan_mark(session->plan[GX_PROGRAM_TRAIN]).text,
            gx_plan_unit_count(session->plan[GX_PROGRAM_TRAIN]), plan.n_measured,
            plan.n_cached, plan.n_lanes, plan.n_lanes == 1 ? "" : "s",
            plan.order == GX_ORDER_DATA_FIRST ? ", data first" : "",
            plan.programmatic ? ", programmatic edges" : "",
            plan.skip_if ? ", updates in an IF node" : "");
    gx_launches_print(session->plan[GX_PROGRAM_TRAIN], out);
}

void gx_compare_print_bits(const gx_compare *compare, FILE *out)
{
    const gx_difference *const difference = &compare->difference;

    if (!difference->found) {
        fprintf(
            out,
            "  bits: equal in all %lld outputs, parameters and states after %lld steps\n",
            (long long)compare->n_compared, (long long)compare->bits_steps);
        return;
    }
    fprintf(out,
            "  bits: '%s' differs first at %s after %lld steps: eager %.17g, graph %.17g "
            "(%lld of its %lld elements differ)\n",
            difference->tensor, difference->position.text, (long long)compare->bits_steps,
            gx_plain_nan(difference->eager), gx_plain_nan(difference->graph),
            (long long)difference->n_differ, (long long)difference->n_elements);
}

void gx_compare_print(const gx_compare *compare, FILE *out)
{
    const gx_session *const session = &compare->session;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const double pays = gx_compare_pays_after(compare);

    print_verdict(compare, out);
    fprintf(out, "%s, %s, on %s: pairs of blocks of %lld steps\n\n", gx_graph_name(graph),
            gx_graph_precision(graph), gx_session_place(session).text,
            (long long)compare->block);
    print_table(compare, out);
    print_ratio("graph / eager, steady", &compare->ratio, out);
    print_ratio("graph / unfused, steady", &compare->ratio_unfused, out);
    print_launch(compare, out);
    print_replay(compare, out);
    if (pays >= 0)
        fprintf(out, "  %-28s %.0f steps\n", "pays back after", pays);
    else
        fprintf(out, "  %-28s %s\n", "pays back after",
                compare->ratio.n ? "never" : "n/a");
    gx_compare_print_bits(compare, out);
    gx_compare_print_costs(compare, out);
    fputc('\n', out);
    gx_compare_print_environment(compare, out);
}
