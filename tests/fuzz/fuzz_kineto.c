/* Any bytes as a Kineto trace: figures, or an error. */
#include <stdlib.h>

#include "fuzz_target.h"
#include "trace_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gx_trace_file file;
    gx_trace_figures *figures = NULL;
    gx_error err;
    gx_status st;

    gx_error_clear(&err);
    st = gx_kineto_read_bytes(data, size, "fuzz.json", &file, &err);
    if (st != err.status)
        abort();
    if (st == GX_OK) {
        st = gx_trace_figures_create(file.trace, NULL, &figures, &err);
        if (st != err.status || (st == GX_OK) != (figures != NULL))
            abort();
    }
    for (size_t i = 0; figures && i < figures->n_devices; i++)
        if (figures->device[i].busy < 0 || figures->device[i].idle < 0)
            abort();
    gx_trace_figures_free(figures);
    gx_trace_file_free(&file);
    return 0;
}
