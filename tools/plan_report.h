/* The stages of a model, as `gexec plan` shows them. */
#ifndef GX_PLAN_REPORT_H
#define GX_PLAN_REPORT_H

#include <stdio.h>

#include "session.h"

/* The file, line by line, with what each line made. */
gx_status gx_plan_print_document(const gx_session *session, FILE *out,
                                 gx_error *err) GX_MUST_CHECK;
void gx_plan_print_graph(const gx_session *session, FILE *out);
void gx_plan_print_selection(const gx_session *session, FILE *out);
void gx_plan_print_layout(const gx_session *session, FILE *out);
/* Needs the exec; on a GPU captured. */
void gx_plan_print_program(const gx_session *session, const gx_exec *exec, FILE *out);
/* All stages that were made; exec may be NULL. */
gx_status gx_plan_write_json(const gx_session *session, const gx_exec *exec,
                             gx_error *err) GX_MUST_CHECK;

const char *gx_value_kind_name(gx_value_kind kind);
const char *gx_phase_text(gx_phase phase);
/* "fc1 + fc1.epilogue", cut where it is long. */
void gx_unit_text(const gx_graph *graph, const gx_unit_info *unit, char *text,
                  size_t size);
double gx_value_bytes(const gx_value_info *value);

#endif
