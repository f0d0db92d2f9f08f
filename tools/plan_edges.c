/* What each programmatic edge of a plan gains. */
#include <stdlib.h>

#include "plan_report.h"
#include "text_table.h"

enum { OLDEST_CC = 90 };

void gx_edge_report_free(gx_edge_report *report)
{
    free(report->edges);
    *report = (gx_edge_report){ .edges = NULL };
}

/* Why a plan that could be measured has no such edge. */
static void say_why_none(const gx_session *session, gx_edge_report *report)
{
    const gx_plan_info info = gx_plan_info_get(session->plan[GX_PROGRAM_TRAIN]);
    const int cc = 10 * session->device_info.cc_major + session->device_info.cc_minor;
    char *why = report->reason;
    const size_t size = sizeof report->reason;

    if (cc < OLDEST_CC) {
        report->is_lack = true;
        snprintf(why, size, "programmatic launch needs sm_%d, and this card is sm_%d",
                 (int)OLDEST_CC, cc);
    } else if (info.programmatic) {
        snprintf(why, size, "no kernel of gexec's follows another directly");
    } else if (info.programmatic_us[0] >= 0 && info.programmatic_us[1] >= 0) {
        snprintf(why, size,
                 "the plan has no programmatic edges: a step took %.2f us with them and "
                 "%.2f us without",
                 info.programmatic_us[1], info.programmatic_us[0]);
    } else {
        snprintf(why, size, "the plan has no programmatic edges: %s",
                 session->args->programmatic == GX_OFF ? "--pdl off"
                                                       : "its file switches them off");
    }
}

gx_status gx_edge_report_make(const gx_session *session, gx_edge_report *report,
                              gx_error *err)
{
    gx_plan *plan = session->plan[GX_PROGRAM_TRAIN];
    gx_error own = { 0 };

    *report = (gx_edge_report){ .n_edges = 0 };
    report->edges = calloc(gx_plan_unit_count(plan) + 1, sizeof *report->edges);
    if (!report->edges)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    const gx_status st =
        gx_plan_measure_edges(plan, report->edges, &report->n_edges, &own);
    if (st == GX_ERR_NO_DEVICE) {
        report->is_lack = true;
        snprintf(report->reason, sizeof report->reason, "%s", own.message);
        return GX_OK;
    }
    if (st != GX_OK) {
        *err = own;
        return st;
    }
    if (report->n_edges == 0)
        say_why_none(session, report);
    return GX_OK;
}

/* --- as text --- */

static void print_total(const gx_edge_report *report, FILE *out)
{
    double gain_us = 0;
    size_t n_on = 0;

    for (size_t i = 0; i < report->n_edges; i++) {
        n_on += report->edges[i].programmatic;
        gain_us += report->edges[i].programmatic ? report->edges[i].gain_us : 0;
    }
    fprintf(out,
            "edges  %zu may be programmatic, %zu are; each of these against itself full, "
            "added up: %.2f us a step\n",
            report->n_edges, n_on, gain_us);
}

void gx_plan_print_edges(const gx_session *session, const gx_edge_report *report,
                         FILE *out)
{
    static const char *const heads[] = { "before", "ops",      "unit", "ops", "gain",
                                         "spread", "as equal", "is",   NULL };
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];

    if (report->n_edges == 0) {
        fprintf(out, "edges  n/a: %s\n", report->reason);
        return;
    }
    print_total(report, out);
    gx_text_table *table = gx_text_table_create("rlrlrrrl");
    for (const char *const *head = heads; *head; head++)
        gx_text_table_cell(table, "%s", *head);
    gx_text_table_rule(table);
    for (size_t i = 0; i < report->n_edges; i++) {
        const gx_edge_info *edge = &report->edges[i];
        const size_t ends[2] = { edge->before, edge->unit };

        for (int end = 0; end < 2; end++) {
            const gx_unit_info unit = gx_plan_unit(plan, ends[end]);
            char text[80];

            gx_unit_text(plan, &unit, text, sizeof text);
            gx_text_table_cell(table, "%zu", ends[end]);
            gx_text_table_cell(table, "%s", text);
        }
        gx_text_table_cell(table, "%.2f us", edge->gain_us);
        gx_text_table_cell(table, "%.2f us", edge->spread_us);
        gx_text_table_cell(table, "%zu", edge->n_equal);
        gx_text_table_cell(table, "%s", edge->programmatic ? "programmatic" : "full");
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

/* --- as JSON --- */

static void put_ops(gx_json *json, const gx_session *session, const char *key, size_t at)
{
    const gx_plan *const plan = session->plan[GX_PROGRAM_TRAIN];
    const gx_unit_info unit = gx_plan_unit(plan, at);

    gx_json_array(json, key);
    for (size_t n = 0; n < unit.n_nodes; n++)
        gx_json_text(json, NULL,
                     gx_graph_node(gx_plan_graph(plan), unit.first_node + n).name);
    gx_json_end(json);
}

void gx_plan_put_edges(gx_json *json, const gx_session *session,
                       const gx_edge_report *report)
{
    gx_json_object(json, "edges");
    gx_json_bool(json, "measured", report->n_edges > 0);
    gx_json_text(json, "reason", report->n_edges > 0 ? NULL : report->reason);
    gx_json_array(json, "list");
    for (size_t i = 0; i < report->n_edges; i++) {
        const gx_edge_info *edge = &report->edges[i];

        gx_json_object(json, NULL);
        gx_json_integer(json, "before", (int64_t)edge->before);
        put_ops(json, session, "before_ops", edge->before);
        gx_json_integer(json, "unit", (int64_t)edge->unit);
        put_ops(json, session, "ops", edge->unit);
        gx_json_real(json, "gain_us", edge->gain_us);
        gx_json_real(json, "spread_us", edge->spread_us);
        gx_json_integer(json, "equal", (int64_t)edge->n_equal);
        gx_json_bool(json, "programmatic", edge->programmatic);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}
