/* What graphs would buy, as `gexec nsys` says it. */
#ifndef GX_NSYS_PREDICT_H
#define GX_NSYS_PREDICT_H

#include <stdio.h>

#include <gexec/predict.h>

#include "json_out.h"
#include "trace_file.h"

/* Where the costs of a prediction came from. */
typedef enum gx_costs_from {
    GX_COSTS_DEFAULT, /* constants, measured on an H100 */
    GX_COSTS_KEPT, /* what `gexec doctor --measure` found here, on a card of the trace */
    GX_COSTS_FILE  /* --costs */
} gx_costs_from;

/* A prediction, and what it was made with. */
typedef struct gx_nsys_predicted {
    gx_prediction *prediction;
    gx_predict_costs costs;
    gx_costs_from from;
    const char *costs_path; /* of a file */
    char date[32];          /* when they were measured, of what was kept */
} gx_nsys_predicted;

/* From a file of lines "name number", with `#` before what is no more than a remark;
 * NULL: the constants. What the file does not name stays a constant. */
gx_status gx_predict_costs_read(const char *path, gx_predict_costs *costs,
                                gx_error *err) GX_MUST_CHECK;

/* The costs of a prediction that is to be made, from --costs or NULL. */
gx_status gx_nsys_costs(const char *path, gx_nsys_predicted *predicted,
                        gx_error *err) GX_MUST_CHECK;
/* With these costs or, where they are the constants, with what was measured here on a
 * card like that of the trace, if anything was. The caller frees with gx_prediction_free.
 */
gx_status gx_nsys_predict(const gx_trace_file *file, const gx_trace_options *options,
                          gx_nsys_predicted *predicted, gx_error *err) GX_MUST_CHECK;

void gx_nsys_print_prediction(const gx_nsys_predicted *predicted,
                              const gx_trace_file *file, FILE *out);
void gx_nsys_put_prediction(gx_json *json, const gx_nsys_predicted *predicted,
                            const gx_trace_file *file);

#endif
