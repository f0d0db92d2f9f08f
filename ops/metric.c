/* What is reported beside the loss. */
#include <math.h>

#include "infer.h"
#include "samples.h"

static const gx_field accuracy_fields[] = {
    { "logits", GX_FIELD_IN, true, NULL, NULL, "[rows, classes]" },
    { "labels", GX_FIELD_IN, true, NULL, NULL, "i32 [rows], from 0 to classes - 1" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { 0 },
};

static void accuracy_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const gx_value *logits = value[GX_ACCURACY_LOGITS];
    gx_value *labels = value[GX_ACCURACY_LABELS];

    (void)graph;
    if (!gx_expect_float(list, node, "logits", logits) ||
        !gx_expect_rank(list, node, "logits", logits, 2) ||
        !gx_expect_dtype(list, node, "labels", labels, GX_I32) ||
        !gx_expect_like(list, node, "labels", labels, 1, &logits->dim[0]))
        return;
    if (logits->dim[0] == 0 || logits->dim[1] == 0) {
        gx_misfit(list, node, "logits", "a share of no %s has no value",
                  logits->dim[0] == 0 ? "rows" : "classes");
        return;
    }
    gx_limit_index(labels, logits->dim[1]);
    gx_set_shape(value[GX_ACCURACY_OUT], GX_F32, 0, NULL);
}

/* A NaN is never the largest: a row of NaNs has no answer, and so a wrong one. */
static int64_t first_largest(const double *x, int64_t n)
{
    int64_t best = -1;

    for (int64_t i = 0; i < n; i++) {
        if (!isnan(x[i]) && (best < 0 || x[i] > x[best]))
            best = i;
    }
    return best;
}

static gx_status accuracy_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_ACCURACY_LOGITS];
    const double *labels = call->arg[GX_ACCURACY_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    int64_t right = 0;

    (void)err;
    for (int64_t i = 0; i < rows; i++) {
        const double *x = (const double *)logits->data + i * classes;

        right += (double)first_largest(x, classes) == labels[i];
    }
    *(double *)call->arg[GX_ACCURACY_OUT].data = (double)right / (double)rows;
    return GX_OK;
}

static double accuracy_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_ACCURACY_LOGITS);
}

const gx_op gx_metric_ops[] = {
    {
        .name = "accuracy",
        .summary = "share of rows whose largest logit (the first of equals) is the label",
        .formula = "out = mean over rows of [argmax(logits) = label]",
        .fields = accuracy_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = accuracy_infer,
        .reference = accuracy_reference,
        .flops = accuracy_flops,
        .samples = gx_accuracy_samples,
        /* A count over a count, rounded once: the logits are compared as they are. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    { 0 },
};
