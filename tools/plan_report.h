/* The stages of a model, as `gexec plan` shows them. */
#ifndef GX_PLAN_REPORT_H
#define GX_PLAN_REPORT_H

#include <stdio.h>

#include "json_out.h"
#include "session.h"

/* The file, line by line, with what each line made. */
gx_status gx_plan_print_document(const gx_session *session, FILE *out,
                                 gx_error *err) GX_MUST_CHECK;
void gx_plan_print_graph(const gx_session *session, FILE *out);
void gx_plan_print_selection(const gx_session *session, FILE *out);
void gx_plan_print_layout(const gx_session *session, FILE *out);
/* Needs the exec; on a GPU captured. */
void gx_plan_print_program(const gx_session *session, const gx_exec *exec, FILE *out);
/* plan_edges.c: what the programmatic edges gain, or why that is not known. */
typedef struct gx_edge_report {
    gx_edge_info *edges;
    size_t n_edges;
    char reason[1024]; /* where there are none */
    bool is_lack;      /* this machine or this plan could not have any */
} gx_edge_report;
gx_status gx_edge_report_make(const gx_session *session, gx_edge_report *report,
                              gx_error *err) GX_MUST_CHECK;
void gx_edge_report_free(gx_edge_report *report);
void gx_plan_print_edges(const gx_session *session, const gx_edge_report *report,
                         FILE *out);
void gx_plan_put_edges(gx_json *json, const gx_session *session,
                       const gx_edge_report *report);

/* All stages that were made; exec and edges may be NULL. */
gx_status gx_plan_write_json(const gx_session *session, const gx_exec *exec,
                             const gx_edge_report *edges, gx_error *err) GX_MUST_CHECK;

const char *gx_value_kind_name(gx_value_kind kind);
const char *gx_phase_text(gx_phase phase);
/* "fc1 + fc1.epilogue", cut where it is long. */
void gx_unit_text(const gx_plan *plan, const gx_unit_info *unit, char *text, size_t size);

#endif
