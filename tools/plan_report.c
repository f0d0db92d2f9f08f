/* The stages of a model as text. */
#include "plan_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launches.h"
#include "text_table.h"

const char *gx_value_kind_name(gx_value_kind kind)
{
    static const char *const names[] = { [GX_VALUE_INPUT] = "input",
                                         [GX_VALUE_PARAM] = "parameter",
                                         [GX_VALUE_STATE] = "state",
                                         [GX_VALUE_DATA] = "data",
                                         [GX_VALUE_TEMP] = "temporary" };

    return names[kind];
}

const char *gx_phase_text(gx_phase phase)
{
    static const char *const names[] = { [GX_PHASE_FORWARD] = "forward",
                                         [GX_PHASE_BACKWARD] = "backward",
                                         [GX_PHASE_OPTIMIZER] = "optimizer",
                                         [GX_PHASE_STEP] = "step" };

    return names[phase];
}

static double bytes_of(const gx_value_info *value)
{
    double bytes = (double)gx_dtype_bytes(value->dtype);

    for (int i = 0; i < value->rank; i++)
        bytes *= (double)value->dim[i];
    return bytes;
}

void gx_unit_text(const gx_plan *plan, const gx_unit_info *unit, char *text, size_t size)
{
    const gx_graph *const graph = gx_plan_graph(plan);
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < unit->n_nodes && length < size; i++) {
        const gx_node_info node = gx_graph_node(graph, unit->first_node + i);

        if (i == 2 && unit->n_nodes > 3) {
            snprintf(text + length, size - length, " + %zu more", unit->n_nodes - i);
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " + " : "",
                                   node.name);
    }
}

static void titles(gx_text_table *table, const char *const *texts)
{
    for (; *texts; texts++)
        gx_text_table_cell(table, "%s", *texts);
    gx_text_table_rule(table);
}

/* --- document --- */

/* What a line made: how many values and ops, and the first of them. */
typedef struct made {
    size_t n, first;
    bool is_op;
} made;

static void add_made(made *lines, int n_lines, int line, size_t i, bool is_op)
{
    if (line >= 1 && line <= n_lines && lines[line - 1].n++ == 0) {
        lines[line - 1].first = i;
        lines[line - 1].is_op = is_op;
    }
}

/* By line from 1 on, for the caller to free. NULL: out of memory. */
static made *find_made(const gx_graph *graph, int *n_lines)
{
    const size_t n_values = gx_graph_value_count(graph);
    const size_t n_nodes = gx_graph_node_count(graph);
    int n = 0;
    made *lines;

    for (size_t i = 0; i < n_values; i++)
        n = gx_graph_value(graph, i).line > n ? gx_graph_value(graph, i).line : n;
    for (size_t i = 0; i < n_nodes; i++)
        n = gx_graph_node(graph, i).line > n ? gx_graph_node(graph, i).line : n;
    *n_lines = n;
    lines = calloc((size_t)n + 1, sizeof *lines);
    for (size_t i = 0; lines && i < n_values; i++)
        if (gx_graph_value(graph, i).kind != GX_VALUE_TEMP)
            add_made(lines, n, gx_graph_value(graph, i).line, i, false);
    for (size_t i = 0; lines && i < n_nodes; i++)
        add_made(lines, n, gx_graph_node(graph, i).line, i, true);
    return lines;
}

/* " <- ..." */
static void print_made(const gx_graph *graph, const made *line, FILE *out)
{
    const gx_value_info value = gx_graph_value(graph, line->first);

    if (line->n && line->is_op)
        fprintf(out, "    <- op %s", gx_graph_node(graph, line->first).name);
    else if (line->n)
        fprintf(out, "    <- %s %s %s", gx_value_kind_name(value.kind),
                gx_dtype_name(value.dtype), gx_words_shape(value.rank, value.dim).text);
    if (line->n > 1)
        fprintf(out, ", and %zu more", line->n - 1);
}

gx_status gx_plan_print_document(const gx_session *session, FILE *out, gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_model_text *const text = session->args->model;
    FILE *file = fmemopen(text->bytes, text->length, "r");
    double parse_s, check_s;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int number = 0, n_lines;
    made *lines;

    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, errno, "out of memory");
    lines = find_made(graph, &n_lines);
    if (!lines) {
        fclose(file);
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    }
    gx_graph_times(graph, &parse_s, &check_s);
    fprintf(out, "document  %s, read in %s\n", session->args->names[0],
            gx_words_seconds(parse_s).text);
    while ((length = getline(&line, &capacity, file)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        fprintf(out, "%5d | %s", ++number, line);
        if (number <= n_lines)
            print_made(graph, &lines[number - 1], out);
        fputc('\n', out);
    }
    free(line);
    free(lines);
    fclose(file);
    return GX_OK;
}

/* --- graph --- */

static void print_totals(const gx_graph *graph, FILE *out)
{
    for (int phase = GX_PHASE_FORWARD; phase <= GX_PHASE_STEP; phase++) {
        double flops = 0, bytes = 0;
        size_t n = 0;

        for (size_t i = 0; i < gx_graph_node_count(graph); i++) {
            const gx_node_info node = gx_graph_node(graph, i);

            if ((int)node.phase != phase)
                continue;
            flops += node.flops;
            bytes += node.bytes;
            n++;
        }
        if (n)
            fprintf(out, "  %-10s %5zu ops  %12s  %12s moved\n",
                    gx_phase_text((gx_phase)phase), n,
                    gx_words_scaled(flops, "FLOP").text, gx_words_bytes(bytes).text);
    }
}

static void print_values(const gx_graph *graph, FILE *out)
{
    static const char *const heads[] = {
        "tensor", "kind", "type", "shape", "bytes", NULL
    };
    gx_text_table *table = gx_text_table_create("llllr");

    titles(table, heads);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        gx_text_table_cell(table, "%s", value.name);
        gx_text_table_cell(table, "%s%s", gx_value_kind_name(value.kind),
                           value.is_output ? ", kept" : "");
        gx_text_table_cell(table, "%s", gx_dtype_name(value.dtype));
        gx_text_table_cell(table, "%s", gx_words_shape(value.rank, value.dim).text);
        gx_text_table_cell(table, "%.0f", bytes_of(&value));
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

static void print_nodes(const gx_graph *graph, FILE *out)
{
    static const char *const heads[] = {
        "#", "op", "is", "phase", "FLOPs", "bytes", NULL
    };
    gx_text_table *table = gx_text_table_create("rlllrr");

    titles(table, heads);
    for (size_t i = 0; i < gx_graph_node_count(graph); i++) {
        const gx_node_info node = gx_graph_node(graph, i);

        gx_text_table_cell(table, "%zu", i);
        gx_text_table_cell(table, "%s", node.name);
        gx_text_table_cell(table, "%s", gx_op_name(node.op));
        gx_text_table_cell(table, "%s", gx_phase_text(node.phase));
        gx_text_table_cell(table, "%.0f", node.flops);
        gx_text_table_cell(table, "%.0f", node.bytes);
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

void gx_plan_print_graph(const gx_session *session, FILE *out)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    double parse_s, check_s;

    gx_graph_times(graph, &parse_s, &check_s);
    fprintf(out, "graph  %s, %s: %zu tensors, %zu ops, checked in %s\n",
            gx_graph_name(graph), gx_graph_precision(graph), gx_graph_value_count(graph),
            gx_graph_node_count(graph), gx_words_seconds(check_s).text);
    print_totals(graph, out);
    print_values(graph, out);
    print_nodes(graph, out);
}

/* --- selection --- */

static void print_microseconds(gx_text_table *table, double us)
{
    gx_text_table_cell(table, "%s", gx_words_seconds(us < 0 ? -1 : us * 1e-6).text);
}

static bool has_sustained(const gx_plan *plan)
{
    bool has = false;

    for (size_t i = 0; i < gx_plan_unit_count(plan); i++)
        has |= gx_plan_unit(plan, i).measured_us >= GX_SUSTAINED_US;
    return has;
}

void gx_plan_print_selection(const gx_session *session, FILE *out)
{
    static const char *const heads[] = { "unit", "ops",       "alternative", "lane",
                                         "time", "workspace", "why not",     NULL };
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    const gx_plan_info info = gx_plan_info_get(plan);
    gx_text_table *table = gx_text_table_create("rllrrrl");

    fprintf(
        out,
        "selection  on %s: %zu units in %s, %zu measured now, %zu from the cache or a "
        "file; mark %s\n",
        gx_session_place(session).text, gx_plan_unit_count(plan),
        gx_words_seconds(info.select_s).text, info.n_measured, info.n_cached,
        gx_plan_mark(plan).text);
    if (has_sustained(plan))
        fprintf(out,
                "  times of %d us and more are those of a long run, but for an "
                "alternative that\n  was slower in a burst already\n",
                GX_SUSTAINED_US);
    titles(table, heads);
    for (size_t i = 0; i < gx_plan_unit_count(plan); i++) {
        const gx_unit_info unit = gx_plan_unit(plan, i);
        char text[120];

        gx_unit_text(plan, &unit, text, sizeof text);
        gx_text_table_cell(table, "%zu", i);
        gx_text_table_cell(table, "%s", text);
        gx_text_table_cell(table, "%s",
                           unit.alternative ? unit.alternative : "reference");
        gx_text_table_cell(table, "%d", unit.lane);
        print_microseconds(table, unit.measured_us);
        gx_text_table_cell(table, "%s",
                           gx_words_bytes((double)unit.workspace_bytes).text);
        gx_text_table_cell(table, "%s", "");
        for (size_t r = 0; r < unit.n_rejected; r++) {
            const gx_rejected_info rejected = gx_plan_rejected(plan, i, r);

            gx_text_table_cell(table, "%s", "");
            gx_text_table_cell(table, "%s", "");
            gx_text_table_cell(table, "  not %s", rejected.alternative);
            gx_text_table_cell(table, "%s", "");
            print_microseconds(table, rejected.measured_us);
            gx_text_table_cell(table, "%s", "");
            gx_text_table_cell(table, "%s", rejected.reason ? rejected.reason : "");
        }
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

/* --- layout --- */

void gx_plan_print_layout(const gx_session *session, FILE *out)
{
    static const char *const heads[] = { "tensor",    "offset",  "bytes",
                                         "from unit", "to unit", NULL };
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    const gx_plan_info info = gx_plan_info_get(plan);
    gx_text_table *table = gx_text_table_create("lrrrr");

    size_t n_full = 0;

    for (size_t i = 0; i < gx_plan_unit_count(plan); i++)
        n_full += gx_plan_unit(plan, i).full_edge;
    fprintf(out, "layout  order %s, %d lane%s, programmatic edges %s, in %s\n",
            gx_node_order_name(info.order), info.n_lanes, info.n_lanes == 1 ? "" : "s",
            info.programmatic ? "on" : "off", gx_words_seconds(info.layout_s).text);
    if (n_full > 0)
        fprintf(out, "  %zu edges are full: programmatic, each was measured to cost\n",
                n_full);
    fprintf(out, "  arena %s (%s without reuse), workspaces %s, persistent %s\n",
            gx_words_bytes((double)info.arena_bytes).text,
            gx_words_bytes((double)info.naive_bytes).text,
            gx_words_bytes((double)info.workspace_bytes).text,
            gx_words_bytes((double)info.persistent_bytes).text);
    for (int i = 0; i < GX_MAX_LANES; i++)
        if (info.lane_us[i] >= 0)
            fprintf(out, "  a step with %d lane%s: %s\n", i + 1, i ? "s" : "",
                    gx_words_seconds(info.lane_us[i] * 1e-6).text);
    for (int i = 0; i < 2; i++)
        if (info.programmatic_us[i] >= 0)
            fprintf(out, "  a step with programmatic edges %s: %s\n", i ? "on" : "off",
                    gx_words_seconds(info.programmatic_us[i] * 1e-6).text);
    gx_launches_print(plan, out);
    titles(table, heads);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_slot_info slot = gx_plan_slot(plan, i);

        gx_text_table_cell(table, "%s", gx_graph_value(graph, i).name);
        if (slot.offset >= 0)
            gx_text_table_cell(table, "%lld", (long long)slot.offset);
        else
            gx_text_table_cell(table, "%s",
                               slot.elided                    ? "elided"
                               : gx_graph_value(graph, i).fed ? "streams"
                                                              : "persistent");
        gx_text_table_cell(table, "%zu", slot.bytes);
        gx_text_table_cell(table, "%s",
                           slot.offset < 0 ? "" : gx_words_count(slot.first_unit).text);
        gx_text_table_cell(table, "%s",
                           slot.offset < 0 ? "" : gx_words_count(slot.last_unit).text);
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

/* --- program --- */

void gx_plan_print_program(const gx_session *session, const gx_exec *exec, FILE *out)
{
    const gx_exec_stats stats = gx_exec_stats_get(exec);

    if (session->device == GX_CPU) {
        fprintf(
            out,
            "program  on the CPU\n  a step is %zu ops, one after the other; memory %s\n",
            gx_graph_node_count(session->graph[GX_PROGRAM_TRAIN]),
            gx_words_bytes((double)stats.device_bytes).text);
        return;
    }
    fprintf(out, "program  captured on %s\n", gx_session_place(session).text);
    fprintf(out,
            "  an eager step is %s launches; the graph has %lld nodes, %lld programmatic "
            "edges; %s\n",
            gx_words_count(stats.launches_per_step).text, (long long)stats.graph_nodes,
            (long long)stats.programmatic_edges, gx_launches_words(session).text);
    fprintf(out, "  arena and workspaces %s\n",
            gx_words_bytes((double)stats.device_bytes).text);
    fprintf(out, "  prepare %s, prime %s, capture %s, instantiate %s, upload %s\n",
            gx_words_seconds(stats.prepare_s).text, gx_words_seconds(stats.prime_s).text,
            gx_words_seconds(stats.capture_s).text,
            gx_words_seconds(stats.instantiate_s).text,
            gx_words_seconds(stats.upload_s).text);
    if (stats.graph_nodes > 0)
        fprintf(out, "  capture and instantiate, a node: %s\n",
                gx_words_seconds((stats.capture_s + stats.instantiate_s) /
                                 (double)stats.graph_nodes)
                    .text);
}
