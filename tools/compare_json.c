/* What `gexec compare` says as JSON: every figure, and every block as it was measured. */
#include "compare.h"
#include "launches.h"
#include "remarks.h"
#include "run_report.h"

static const char *const way_names[] = { "eager_unfused", "eager", "graph" };

void gx_compare_put_series(gx_json *json, const char *key, const gx_series *series)
{
    const gx_summary summary = gx_series_summary(series);

    gx_json_object(json, key);
    gx_json_figure(json, "median", summary.median);
    gx_json_figure(json, "p5", summary.p5);
    gx_json_figure(json, "p95", summary.p95);
    gx_json_integer(json, "count", (int64_t)summary.n);
    gx_json_reals(json, "raw", series->values, series->n);
    gx_json_end(json);
}

void gx_compare_put_ways(gx_json *json, const gx_way_times *ways,
                         int64_t steps_per_launch)
{
    gx_json_object(json, "ways");
    for (int i = 0; i < GX_N_WAYS; i++) {
        const gx_way_times *const way = &ways[i];

        gx_json_object(json, way_names[i]);
        gx_json_figure(json, "launches_per_step",
                       i == GX_WAY_GRAPH ? 1.0 / (double)steps_per_launch
                                         : (double)way->launches);
        gx_compare_put_series(json, "host_s", &way->host);
        gx_compare_put_series(json, "host_queued_s", &way->queued);
        gx_compare_put_series(json, "wall_s", &way->wall);
        gx_compare_put_series(json, "steady_s", &way->steady);
        gx_compare_put_series(json, "data_wait_s", &way->wait);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_costs(gx_json *json, const gx_compare *compare)
{
    const gx_session *const session = &compare->session;
    const gx_plan_info plan = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const gx_exec_stats stats = compare->stats;
    double parse_s, check_s;

    gx_graph_times(session->graph[GX_PROGRAM_TRAIN], &parse_s, &check_s);
    gx_json_object(json, "costs_s");
    gx_json_figure(json, "parse", parse_s);
    gx_json_figure(json, "check", check_s);
    gx_json_figure(json, "select", plan.select_s);
    gx_json_figure(json, "layout", plan.layout_s);
    gx_json_figure(json, "state", session->state_s);
    gx_json_figure(json, "prepare", stats.prepare_s);
    gx_json_figure(json, "prime", stats.prime_s);
    gx_json_figure(json, "capture", stats.capture_s);
    gx_json_figure(json, "instantiate", stats.instantiate_s);
    gx_json_figure(json, "upload", stats.upload_s);
    gx_json_figure(json, "first_launch", stats.first_launch_s);
    gx_json_figure(json, "build_a_node", gx_compare_build_a_node(compare));
    gx_json_end(json);
}

void gx_compare_put_bits(gx_json *json, const gx_difference *difference, int64_t steps,
                         int64_t n_compared)
{
    gx_json_object(json, "bits");
    gx_json_bool(json, "equal", !difference->found);
    gx_json_integer(json, "steps", steps);
    gx_json_integer(json, "tensors", n_compared);
    if (difference->found) {
        gx_json_text(json, "tensor", difference->tensor);
        gx_json_text(json, "element", difference->position.text);
        gx_json_real(json, "eager", difference->eager);
        gx_json_real(json, "graph", difference->graph);
        gx_json_integer(json, "elements_that_differ", difference->n_differ);
    }
    gx_json_end(json);
}

static void put_clocks(gx_json *json, const gx_compare *compare)
{
    char text[128];

    gx_json_object(json, "clocks");
    gx_json_text(json, "driver", gx_nvml_driver(compare->nvml));
    gx_json_text(json, "lack", gx_nvml_lack(compare->nvml));
    gx_compare_put_series(json, "sm_mhz", &compare->sm_mhz);
    gx_compare_put_series(json, "memory_mhz", &compare->memory_mhz);
    gx_json_text(json, "throttling",
                 compare->sm_mhz.n
                     ? gx_throttle_text(compare->throttle, text, sizeof text)
                     : NULL);
    gx_json_end(json);
}

static void put_plan(gx_json *json, const gx_compare *compare)
{
    const gx_plan *const plan = compare->session.plan[GX_PROGRAM_TRAIN];
    const gx_plan_info info = gx_plan_info_get(plan);

    gx_json_object(json, "plan");
    gx_json_text(json, "mark", gx_plan_mark(plan).text);
    gx_json_integer(json, "units", (int64_t)gx_plan_unit_count(plan));
    gx_json_integer(json, "measured", (int64_t)info.n_measured);
    gx_json_integer(json, "cached", (int64_t)info.n_cached);
    gx_json_integer(json, "lanes", info.n_lanes);
    gx_json_bool(json, "programmatic", info.programmatic);
    gx_launches_put(json, plan);
    gx_json_end(json);
}

static void put_header(gx_json *json, const gx_compare *compare)
{
    const gx_session *const session = &compare->session;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_exec_stats stats = compare->stats;

    gx_json_text(json, "model", gx_graph_name(graph));
    gx_json_text(json, "file", session->args->names[0]);
    gx_json_text(json, "precision", gx_graph_precision(graph));
    gx_json_text(json, "seed", gx_words_seed(session->args->seed).text);
    gx_json_integer(json, "block_steps", compare->block);
    gx_json_integer(json, "steps_per_launch", session->steps_per_launch);
    gx_json_bool(json, "step_loop", session->step_loop);
    gx_json_integer(json, "graph_nodes", stats.graph_nodes);
    gx_json_bool(json, "streams", session->streams);
    gx_json_bool(json, "interrupted", compare->interrupted);
}

void gx_compare_put(gx_json *json, const gx_compare *compare)
{
    const gx_session *const session = &compare->session;

    put_header(json, compare);
    gx_json_environment(json, "environment", session);
    gx_idle_flags_put(json, gx_idle_flags_of(session));
    put_plan(json, compare);
    put_clocks(json, compare);
    gx_compare_put_ways(json, compare->way, session->steps_per_launch);
    gx_compare_put_series(json, "ratio_graph_eager", &compare->ratio);
    gx_compare_put_series(json, "ratio_graph_unfused", &compare->ratio_unfused);
    gx_json_reals(json, "place_of_graph_in_pair", compare->order.values,
                  compare->order.n);
    gx_json_figure(json, "launch_host_s", gx_compare_launch_host(compare));
    gx_json_figure(json, "empty_graph_host_s", compare->empty_s);
    gx_json_figure(json, "pays_back_after_steps", gx_compare_pays_after(compare));
    put_costs(json, compare);
    gx_compare_put_bits(json, &compare->difference, compare->bits_steps,
                        compare->n_compared);
}

gx_status gx_compare_write_json(const gx_compare *compare, gx_error *err)
{
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "command", "compare");
    gx_compare_put(json, compare);
    gx_json_end(json);
    st = gx_json_write(json, compare->session.args->json, err);
    gx_json_free(json);
    return st;
}
