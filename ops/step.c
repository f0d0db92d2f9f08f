/* What gexec puts around a model's own ops: the batch's gather, counters and the log. */
#include <string.h>

#include "infer.h"
#include "samples.h"
#include "shuffle.h"

static const gx_field gather_fields[] = {
    { "data", GX_FIELD_IN, true, NULL, NULL, "[rows, ...]" },
    { "index", GX_FIELD_IN, true, NULL, NULL, "i32: the rows that take part" },
    { "sample", GX_FIELD_IN, true, NULL, NULL, "i32 [1]: samples of the epoch done" },
    { "epoch", GX_FIELD_IN, true, NULL, NULL, "i32 [1]" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "an input: [batch, ...]" },
    { "shuffle", GX_FIELD_BOOL, false, "false", NULL, "another order in each epoch" },
    { 0 },
};

static const gx_field step_fields[] = {
    { "step", GX_FIELD_INOUT, true, NULL, NULL, "i32 [1], steps done" },
    { "sample", GX_FIELD_INOUT, true, NULL, NULL, "i32 [1], samples of the epoch done" },
    { "epoch", GX_FIELD_INOUT, true, NULL, NULL, "i32 [1]" },
    { "log", GX_FIELD_INOUT, true, NULL, NULL, "f32, one row a step" },
    { "v0", GX_FIELD_IN, false, NULL, NULL, "f32 scalar for column 0 of the log" },
    { "v1", GX_FIELD_IN, false, NULL, NULL, "column 1" },
    { "v2", GX_FIELD_IN, false, NULL, NULL, "column 2" },
    { "v3", GX_FIELD_IN, false, NULL, NULL, "column 3" },
    { "v4", GX_FIELD_IN, false, NULL, NULL, "column 4" },
    { "v5", GX_FIELD_IN, false, NULL, NULL, "column 5" },
    { "batch", GX_FIELD_INT, false, "0", NULL, "samples that a step takes" },
    { "total", GX_FIELD_INT, false, "0", NULL, "samples of an epoch; 0: no data" },
    { "need", GX_FIELD_INT, false, "1", NULL, "samples that a step must find" },
    { 0 },
};

static bool expect_counter(gx_diagnostics *list, const gx_node *node, const char *key,
                           const gx_value *value)
{
    return gx_expect_dtype(list, node, key, value, GX_I32) &&
           gx_expect_like(list, node, key, value, 1, (const int64_t[]){ 1 });
}

static void gather_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                         gx_diagnostics *list)
{
    const gx_value *data = value[GX_GATHER_DATA];
    const gx_value *index = value[GX_GATHER_INDEX];
    gx_value *out = value[GX_GATHER_OUT];

    (void)graph;
    if (!gx_expect_dtype(list, node, "index", index, GX_I32) ||
        !gx_expect_rank(list, node, "index", index, 1) ||
        !expect_counter(list, node, "sample", value[GX_GATHER_SAMPLE]) ||
        !expect_counter(list, node, "epoch", value[GX_GATHER_EPOCH]))
        return;
    if (out->kind != GX_VALUE_INPUT || !out->has_shape || out->rank < 1) {
        gx_misfit(list, node, "out", "expected an input with a batch dimension");
        return;
    }
    int64_t dim[GX_MAX_RANK];

    memcpy(dim, out->dim, sizeof dim);
    dim[0] = data->rank > 0 ? data->dim[0] : 0;
    if (gx_expect_like(list, node, "data", data, out->rank, dim))
        gx_expect_dtype(list, node, "data", data, out->dtype);
}

static void step_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    static const int64_t log_shape[] = { GX_LOG_ROWS, GX_MAX_LOGGED };

    (void)graph;
    expect_counter(list, node, "step", value[GX_STEP_STEP]);
    expect_counter(list, node, "sample", value[GX_STEP_SAMPLE]);
    expect_counter(list, node, "epoch", value[GX_STEP_EPOCH]);
    if (gx_expect_dtype(list, node, "log", value[GX_STEP_LOG], GX_F32))
        gx_expect_like(list, node, "log", value[GX_STEP_LOG], 2, log_shape);
    for (int i = 0; i < GX_MAX_LOGGED; i++) {
        const char key[] = { 'v', (char)('0' + i), 0 };
        const gx_value *logged = value[GX_STEP_V0 + i];

        if (logged && gx_expect_dtype(list, node, key, logged, GX_F32))
            gx_expect_rank(list, node, key, logged, 0);
    }
}

static int64_t cell(const gx_tensor *tensor)
{
    return (int64_t) * (const double *)tensor->data;
}

static gx_status gather_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *data = &call->arg[GX_GATHER_DATA];
    const gx_tensor *out = &call->arg[GX_GATHER_OUT];
    const double *index = call->arg[GX_GATHER_INDEX].data;
    const int64_t n = call->arg[GX_GATHER_INDEX].dim[0];
    const int64_t sample = cell(&call->arg[GX_GATHER_SAMPLE]);
    const uint32_t epoch = (uint32_t)cell(&call->arg[GX_GATHER_EPOCH]);
    const int64_t batch = out->dim[0];
    const int64_t width = batch > 0 ? gx_count(out) / batch : 0;

    for (int64_t j = 0; j < batch; j++) {
        int64_t at = sample + j < n ? sample + j : n - 1;

        if (at < 0)
            return GX_FAIL(err, GX_ERR_DATA, "there are no rows to gather");
        if (call->attr[GX_GATHER_SHUFFLE].i)
            at = gx_shuffle_index((uint32_t)at, (uint32_t)n, call->seed, epoch);

        const int64_t row = (int64_t)index[at];

        if (row < 0 || row >= data->dim[0])
            return GX_FAIL(err, GX_ERR_DATA, "row %lld is not one of %lld",
                           (long long)row, (long long)data->dim[0]);
        memcpy((double *)out->data + j * width, (const double *)data->data + row * width,
               (size_t)width * sizeof(double));
    }
    return GX_OK;
}

static gx_status step_reference(const gx_call *call, gx_error *err)
{
    double *step = call->arg[GX_STEP_STEP].data;
    double *sample = call->arg[GX_STEP_SAMPLE].data;
    double *epoch = call->arg[GX_STEP_EPOCH].data;
    double *log = call->arg[GX_STEP_LOG].data;
    const double total = (double)call->attr[GX_STEP_TOTAL].i;
    double *row = log + ((int64_t)*step % GX_LOG_ROWS) * GX_MAX_LOGGED;

    (void)err;
    for (int i = 0; i < GX_MAX_LOGGED; i++) {
        if (gx_has(call, GX_STEP_V0 + i))
            row[i] = *(const double *)call->arg[GX_STEP_V0 + i].data;
    }
    *step += 1;
    if (total > 0) {
        *sample += (double)call->attr[GX_STEP_BATCH].i;
        if (total - *sample < (double)call->attr[GX_STEP_NEED].i) {
            *sample = 0;
            *epoch += 1;
        }
    }
    return GX_OK;
}

/* Of the data set only the batch is read; of the log one row is written. */
static double gather_bytes(const gx_graph *graph, const gx_node *node)
{
    const gx_value *out = &graph->values[node->arg[GX_GATHER_OUT]];

    return 2 * gx_elements(graph, node, GX_GATHER_OUT) *
               (double)gx_dtype_bytes(out->dtype) +
           4 * (double)out->dim[0];
}

static double step_bytes(const gx_graph *graph, const gx_node *node)
{
    double bytes = 3 * 2 * 4;

    (void)graph;
    for (int i = 0; i < GX_MAX_LOGGED; i++)
        bytes += node->arg[GX_STEP_V0 + i] >= 0 ? 2 * 4 : 0;
    return bytes;
}

const gx_op gx_step_ops[] = {
    {
        .name = "gather",
        .summary = "the rows of this step's batch out of a data set on the device",
        .formula = "out[j] = data[index[order(sample + j)]]",
        .fields = gather_fields,
        .phase = GX_PHASE_FORWARD,
        .internal = true,
        .infer = gather_infer,
        .reference = gather_reference,
        .bytes = gather_bytes,
        .samples = gx_gather_samples,
        .tolerance = { 0, 0, 0, 0 }, /* values are copied */
    },
    {
        .name = "step.end",
        .summary = "writes the log and moves the counters on",
        .formula = "log[step] = v0, v1, ...; step += 1; sample += batch, or a new epoch",
        .fields = step_fields,
        .phase = GX_PHASE_STEP,
        .internal = true,
        .infer = step_infer,
        .reference = step_reference,
        .bytes = step_bytes,
        .samples = gx_step_samples,
        .tolerance = { 0, 0, 0, 0 }, /* values are copied, integers counted */
    },
    { 0 },
};
