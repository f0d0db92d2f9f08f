/* What both fuzzers of traces do with the bytes: figures and a prediction, or an error,
 * and never both. */
#ifndef GX_FUZZ_TRACE_H
#define GX_FUZZ_TRACE_H

#include <stdlib.h>

#include <gexec/predict.h>

#include "fuzz_target.h"
#include "trace_file.h"

typedef gx_status gx_trace_reader(const void *bytes, size_t size, const char *name,
                                  gx_trace_file *file, gx_error *err);

static inline int fuzz_trace(gx_trace_reader *read, const uint8_t *data, size_t size,
                             const char *name)
{
    gx_trace_file file;
    gx_trace_figures *figures = NULL;
    gx_error err;
    gx_status st;

    gx_error_clear(&err);
    st = read(data, size, name, &file, &err);
    if (st != err.status)
        abort();
    if (st == GX_OK) {
        st = gx_trace_figures_create(file.trace, NULL, &figures, &err);
        if (st != err.status || (st == GX_OK) != (figures != NULL))
            abort();
    }
    if (st == GX_OK) {
        gx_prediction *prediction = NULL;

        st = gx_prediction_create(file.trace, NULL, NULL, &prediction, &err);
        if (st != err.status || (st == GX_OK) != (prediction != NULL) ||
            (prediction && prediction->by && !(prediction->step_ns > 0)))
            abort();
        gx_prediction_free(prediction);
    }
    for (size_t i = 0; figures && i < figures->n_devices; i++)
        if (figures->device[i].busy < 0 || figures->device[i].idle < 0)
            abort();
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
    return 0;
}

#endif
