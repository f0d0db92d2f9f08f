/* The tables of `gexec profile`. */
#ifndef GX_PROFILE_REPORT_H
#define GX_PROFILE_REPORT_H

#include <stdio.h>

#include "json_out.h"
#include "profile_parts.h"

/* "kernel", "copy", "fill", "graph". */
const char *gx_profile_kind_name(gx_trace_kind kind);
/* "no unit" for work that none claims. */
const char *gx_profile_op_label(const gx_profile_op *op);
gx_words gx_profile_ns_words(double ns); /* "n/a" below 0 */
/* The class that has most of a sum of gaps. */
gx_gap_class gx_profile_main_class(const gx_trace_share *gaps);

void gx_profile_print_ops(const gx_profile *profile, const gx_profile_pass *pass,
                          FILE *out);
void gx_profile_print_kernels(const gx_profile *profile, const gx_profile_pass *pass,
                              FILE *out);
void gx_profile_print_pairs(const gx_profile *profile, const gx_profile_pass *pass,
                            FILE *out);
/* Of a pass that has a trace. */
void gx_profile_print_overhead(const gx_profile_pass *pass, FILE *out);
void gx_profile_print_floor(const gx_profile *profile, FILE *out);
void gx_profile_print_memory(const gx_profile *profile, FILE *out);
/* "patterns": [...] */
void gx_profile_put_patterns(gx_json *json, const gx_profile *profile);

#endif
