/* Whether a data set has room on the device beside the rest of a model. */
#include <gexec/exec.h>

#include "device.h"
#include "need.h"

/* As a real: what no memory holds is large, and not an overflow. */
static double bytes_of(const gx_value *value, int device)
{
    double bytes = device == GX_CPU ? 8 : (double)gx_dtype_bytes(value->dtype);

    for (int i = 0; i < value->rank; i++)
        bytes *= (double)value->dim[i];
    return bytes;
}

gx_status gx_data_fits(const gx_graph *graph, int device, bool *fits, gx_error *err)
{
    gx_device_info info;
    double data = 0;
    double rest = 0;

    gx_error_clear(err);
    GX_TRY(gx_need_place(fits, "answer", err));
    *fits = true;
    GX_TRY(gx_need(graph, "graph", err));
    GX_TRY(gx_device_info_get(device, &info, err));
    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];
        const double bytes = bytes_of(value, device);

        if (value->kind == GX_VALUE_DATA)
            data += bytes;
        else if (value->kind == GX_VALUE_PARAM || value->kind == GX_VALUE_STATE)
            rest += 2 * bytes;
        else
            rest += bytes;
    }
    /* Where even the rest does not fit streaming the data is no help. */
    *fits = data + rest <= (double)info.free_bytes || rest > (double)info.free_bytes ||
            data <= 0;
    return GX_OK;
}
