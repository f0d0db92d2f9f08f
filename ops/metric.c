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

static const gx_field topk_fields[] = {
    { "logits", GX_FIELD_IN, true, NULL, NULL, "[rows, classes]" },
    { "labels", GX_FIELD_IN, true, NULL, NULL, "i32 [rows], from 0 to classes - 1" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { "k", GX_FIELD_INT, false, "5", NULL, "from 1 to classes" },
    { 0 },
};

static const gx_field perplexity_fields[] = {
    { "loss", GX_FIELD_IN, true, NULL, NULL, "f32 scalar: a mean of natural logarithms" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { 0 },
};

/* The operands of accuracy and of topk, which stand at the same places. */
static bool label_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_value *logits = value[GX_ACCURACY_LOGITS];
    gx_value *labels = value[GX_ACCURACY_LABELS];

    if (!gx_expect_float(list, node, "logits", logits) ||
        !gx_expect_rank(list, node, "logits", logits, 2) ||
        !gx_expect_dtype(list, node, "labels", labels, GX_I32) ||
        !gx_expect_like(list, node, "labels", labels, 1, &logits->dim[0]))
        return false;
    if (logits->dim[0] == 0 || logits->dim[1] == 0) {
        gx_misfit(list, node, "logits", "a share of no %s has no value",
                  logits->dim[0] == 0 ? "rows" : "classes");
        return false;
    }
    gx_limit_index(labels, logits->dim[1], node->name);
    return true;
}

static void accuracy_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    (void)graph;
    if (label_operands(node, value, list))
        gx_set_shape(value[GX_ACCURACY_OUT], GX_F32, 0, NULL);
}

static void topk_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const int64_t k = node->attr[GX_TOPK_K].i;

    (void)graph;
    if (!label_operands(node, value, list))
        return;
    if (k < 1 || k > value[GX_TOPK_LOGITS]->dim[1])
        gx_misfit(list, node, "k", "k is %lld: expected 1 to %lld, the number of classes",
                  (long long)k, (long long)value[GX_TOPK_LOGITS]->dim[1]);
    else
        gx_set_shape(value[GX_TOPK_OUT], GX_F32, 0, NULL);
}

static void perplexity_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                             gx_diagnostics *list)
{
    const gx_value *loss = value[GX_PERPLEXITY_LOSS];

    (void)graph;
    if (gx_expect_dtype(list, node, "loss", loss, GX_F32) &&
        gx_expect_rank(list, node, "loss", loss, 0))
        gx_set_shape(value[GX_PERPLEXITY_OUT], GX_F32, 0, NULL);
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

/* Whether fewer than k logits are larger than x[label] or equal and before it. A NaN is
 * not among the largest, and a label whose logit is NaN is not either. */
static bool is_among_largest(const double *x, int64_t n, int64_t label, int64_t k)
{
    int64_t before = 0;

    for (int64_t i = 0; i < n; i++)
        before += x[i] > x[label] || (i < label && !(x[i] < x[label]) && !isnan(x[i]));
    return !isnan(x[label]) && before < k;
}

static gx_status topk_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_TOPK_LOGITS];
    const double *labels = call->arg[GX_TOPK_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    int64_t right = 0;

    for (int64_t i = 0; i < rows; i++) {
        if (!(labels[i] >= 0 && labels[i] < (double)classes))
            return GX_FAIL(err, GX_ERR_DATA,
                           "label %g of row %lld is not between 0 and %lld", labels[i],
                           (long long)i, (long long)classes - 1);
        right += is_among_largest((const double *)logits->data + i * classes, classes,
                                  (int64_t)labels[i], call->attr[GX_TOPK_K].i);
    }
    *(double *)call->arg[GX_TOPK_OUT].data = (double)right / (double)rows;
    return GX_OK;
}

static gx_status perplexity_reference(const gx_call *call, gx_error *err)
{
    const double *loss = call->arg[GX_PERPLEXITY_LOSS].data;

    (void)err;
    *(double *)call->arg[GX_PERPLEXITY_OUT].data = exp(*loss);
    return GX_OK;
}

/* An exponential counts as eight operations. */
static double perplexity_flops(const gx_graph *graph, const gx_node *node)
{
    (void)graph;
    (void)node;
    return 8;
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
        .rows = GX_ROWS_TELL,
        .infer = accuracy_infer,
        .reference = accuracy_reference,
        .flops = accuracy_flops,
        .samples = gx_accuracy_samples,
        /* A count over a count, rounded once: the logits are compared as they are. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    {
        .name = "topk",
        .summary =
            "share of rows whose label is among the k largest logits (of equals the "
            "first ones)",
        .formula = "out = mean over rows of [label is among the k largest of logits]",
        .fields = topk_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_TELL,
        .infer = topk_infer,
        .reference = topk_reference,
        .flops = accuracy_flops,
        .samples = gx_topk_samples,
        /* A count over a count, rounded once: the logits are compared as they are. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    {
        .name = "perplexity",
        .summary = "exp of a mean loss; over several batches exp of the loss of all rows",
        .formula = "out = exp(loss)",
        .fields = perplexity_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = perplexity_infer,
        .reference = perplexity_reference,
        .flops = perplexity_flops,
        .rows = GX_ROWS_EXP,
        .samples = gx_perplexity_samples,
        /* Of a loss in f32, in double, rounded once. */
        .tolerance = { 1e-6, 1e-6, 1e-6, 1e-6 },
    },
    { 0 },
};
