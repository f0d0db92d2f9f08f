/* The stages of a model as JSON. */
#include "launches.h"
#include "plan_report.h"
#include "remarks.h"
#include "run_report.h"

static void put_graph(gx_json *json, const gx_graph *graph)
{
    double parse_s, check_s;

    gx_graph_times(graph, &parse_s, &check_s);
    gx_json_object(json, "graph");
    gx_json_figure(json, "parse_s", parse_s);
    gx_json_figure(json, "check_s", check_s);
    gx_json_array(json, "tensors");
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        gx_json_object(json, NULL);
        gx_json_text(json, "name", value.name);
        gx_json_text(json, "kind", gx_value_kind_name(value.kind));
        gx_json_text(json, "dtype", gx_dtype_name(value.dtype));
        gx_json_shape(json, "shape", value.rank, value.dim);
        gx_json_bool(json, "kept", value.is_output);
        gx_json_integer(json, "line", value.line);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_array(json, "ops");
    for (size_t i = 0; i < gx_graph_node_count(graph); i++) {
        const gx_node_info node = gx_graph_node(graph, i);

        gx_json_object(json, NULL);
        gx_json_text(json, "name", node.name);
        gx_json_text(json, "op", gx_op_name(node.op));
        gx_json_text(json, "phase", gx_phase_text(node.phase));
        gx_json_real(json, "flops", node.flops);
        gx_json_real(json, "bytes", node.bytes);
        gx_json_integer(json, "line", node.line);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

static void put_rejected(gx_json *json, const gx_plan *plan, size_t unit, size_t n)
{
    gx_json_array(json, "rejected");
    for (size_t r = 0; r < n; r++) {
        const gx_rejected_info rejected = gx_plan_rejected(plan, unit, r);

        gx_json_object(json, NULL);
        gx_json_text(json, "alternative", rejected.alternative);
        gx_json_figure(json, "measured_us", rejected.measured_us);
        gx_json_text(json, "reason", rejected.reason);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_selection(gx_json *json, const gx_plan *plan)
{
    const gx_graph *const graph = gx_plan_graph(plan);
    const gx_plan_info info = gx_plan_info_get(plan);

    gx_json_object(json, "selection");
    gx_json_figure(json, "select_s", info.select_s);
    gx_json_integer(json, "measured", (int64_t)info.n_measured);
    gx_json_integer(json, "cached", (int64_t)info.n_cached);
    gx_json_array(json, "units");
    for (size_t i = 0; i < gx_plan_unit_count(plan); i++) {
        const gx_unit_info unit = gx_plan_unit(plan, i);

        gx_json_object(json, NULL);
        gx_json_text(json, "alternative", unit.alternative);
        gx_json_integer(json, "lane", unit.lane);
        gx_json_bool(json, "programmatic", unit.programmatic);
        gx_json_bool(json, "in_if", unit.in_if);
        gx_json_figure(json, "measured_us", unit.measured_us);
        gx_json_integer(json, "workspace_bytes", (int64_t)unit.workspace_bytes);
        gx_json_array(json, "ops");
        for (size_t n = 0; n < unit.n_nodes; n++)
            gx_json_text(json, NULL, gx_graph_node(graph, unit.first_node + n).name);
        gx_json_end(json);
        put_rejected(json, plan, i, unit.n_rejected);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

static void put_layout(gx_json *json, const gx_graph *graph, const gx_plan *plan)
{
    const gx_plan_info info = gx_plan_info_get(plan);

    gx_json_object(json, "layout");
    gx_json_figure(json, "layout_s", info.layout_s);
    gx_json_integer(json, "lanes", info.n_lanes);
    gx_json_bool(json, "programmatic", info.programmatic);
    gx_launches_put(json, plan);
    gx_json_integer(json, "arena_bytes", (int64_t)info.arena_bytes);
    gx_json_integer(json, "arena_bytes_without_reuse", (int64_t)info.naive_bytes);
    gx_json_integer(json, "workspace_bytes", (int64_t)info.workspace_bytes);
    gx_json_integer(json, "persistent_bytes", (int64_t)info.persistent_bytes);
    gx_json_array(json, "slots");
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_slot_info slot = gx_plan_slot(plan, i);

        gx_json_object(json, NULL);
        gx_json_text(json, "tensor", gx_graph_value(graph, i).name);
        gx_json_figure(json, "offset", (double)slot.offset);
        gx_json_integer(json, "bytes", (int64_t)slot.bytes);
        gx_json_integer(json, "first_unit", slot.first_unit);
        gx_json_integer(json, "last_unit", slot.last_unit);
        gx_json_bool(json, "elided", slot.elided);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

static void put_program(gx_json *json, const gx_session *session, const gx_exec *exec)
{
    const gx_exec_stats stats = gx_exec_stats_get(exec);

    gx_json_object(json, "program");
    gx_json_text(json, "mode", gx_mode_name(session->mode));
    gx_json_integer(json, "device_bytes", (int64_t)stats.device_bytes);
    if (session->device != GX_CPU) {
        gx_json_figure(json, "launches_per_step", (double)stats.launches_per_step);
        gx_json_integer(json, "steps_per_launch", session->steps_per_launch);
        gx_json_bool(json, "step_loop", session->step_loop);
        gx_json_integer(json, "graph_nodes", stats.graph_nodes);
        gx_json_integer(json, "programmatic_edges", stats.programmatic_edges);
        gx_json_figure(json, "prepare_s", stats.prepare_s);
        gx_json_figure(json, "prime_s", stats.prime_s);
        gx_json_figure(json, "capture_s", stats.capture_s);
        gx_json_figure(json, "instantiate_s", stats.instantiate_s);
        gx_json_figure(json, "upload_s", stats.upload_s);
    }
    gx_json_end(json);
}

gx_status gx_plan_write_json(const gx_session *session, const gx_exec *exec,
                             const gx_edge_report *edges, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "command", "plan");
    gx_json_text(json, "model", gx_graph_name(graph));
    gx_json_text(json, "file", session->args->names[0]);
    gx_json_text(json, "precision", gx_graph_precision(graph));
    gx_json_environment(json, "environment", session);
    gx_idle_flags_put(json, gx_idle_flags_of(session));
    put_graph(json, graph);
    if (plan) {
        gx_json_text(json, "mark", gx_plan_mark(plan).text);
        put_selection(json, plan);
        put_layout(json, graph, plan);
    }
    if (exec)
        put_program(json, session, exec);
    if (edges)
        gx_plan_put_edges(json, session, edges);
    gx_json_end(json);
    st = gx_json_write(json, session->args->json, err);
    gx_json_free(json);
    return st;
}
