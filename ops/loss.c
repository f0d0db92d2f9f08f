/* Cross-entropy of a softmax, as torch.nn.functional.cross_entropy has it for classes by
 * index, and its derivative. */
#include <math.h>
#include <string.h>

#include "infer.h"
#include "loss.h"
#include "resolve.h"
#include "samples.h"

#define SCE_INPUTS                                                  \
    { "logits", GX_FIELD_IN, true, NULL, NULL, "[rows, classes]" }, \
    {                                                               \
        "labels", GX_FIELD_IN, true, NULL, NULL,                    \
            "i32 [rows], from 0 to classes - 1, or ignore_index"    \
    }
#define SCE_ATTRIBUTES                                                                        \
    {                                                                                         \
        "reduction", GX_FIELD_ENUM,      false,                                               \
        "mean",      gx_reduction_names, "mean over the rows that are not ignored, or sum"    \
    },                                                                                        \
        { "ignore_index", GX_FIELD_INT,                                                       \
          false,          NULL,                                                               \
          NULL,           "rows with this label count for nothing; absent: there are none" }, \
    {                                                                                         \
        "label_smoothing", GX_FIELD_REAL, false, "0", NULL,                                   \
            "from 0 to 1: the share of the target that is spread over all classes"            \
    }

static const gx_field sce_fields[] = {
    SCE_INPUTS,
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    SCE_ATTRIBUTES,
    { 0 },
};

static const gx_field sce_bwd_fields[] = {
    SCE_INPUTS, { "dlogits", GX_FIELD_OUT, true, NULL, NULL, "like logits" },
    GX_LOSS_DY, SCE_ATTRIBUTES,
    { 0 },
};

/* --- shapes --- */

static bool sce_attributes(const gx_node *node, gx_value *labels, int64_t classes,
                           gx_diagnostics *list)
{
    const gx_attr ignored = node->attr[GX_SCE_IGNORE_INDEX];
    const double smoothing = node->attr[GX_SCE_LABEL_SMOOTHING].r;

    if (!(smoothing >= 0 && smoothing <= 1)) {
        gx_misfit(list, node, "label_smoothing",
                  "label_smoothing is %g, expected a number from 0 to 1", smoothing);
        return false;
    }
    if (!ignored.present) {
        gx_limit_index(labels, classes, node->name);
    } else if (ignored.i < INT32_MIN || ignored.i > INT32_MAX) {
        gx_misfit(list, node, "ignore_index",
                  "ignore_index is %lld, expected an i32, as the labels are",
                  (long long)ignored.i);
        return false;
    } else {
        gx_limit_index_or(labels, classes, ignored.i, node->name);
    }
    return true;
}

static bool sce_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_value *logits = value[GX_SCE_LOGITS];
    gx_value *labels = value[GX_SCE_LABELS];
    const int64_t reduction = node->attr[GX_SCE_REDUCTION].i;

    if (!gx_expect_float(list, node, "logits", logits) ||
        !gx_expect_rank(list, node, "logits", logits, 2) ||
        !gx_expect_dtype(list, node, "labels", labels, GX_I32) ||
        !gx_expect_like(list, node, "labels", labels, 1, &logits->dim[0]))
        return false;
    if (logits->dim[1] == 0 || (logits->dim[0] == 0 && reduction == GX_REDUCTION_MEAN)) {
        gx_misfit(list, node, "logits", "a %s over no %s has no value",
                  gx_reduction_names[reduction],
                  logits->dim[0] == 0 ? "rows" : "classes");
        return false;
    }
    return sce_attributes(node, labels, logits->dim[1], list);
}

static void sce_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (sce_operands(node, value, list))
        gx_set_shape(value[GX_SCE_OUT], GX_F32, 0, NULL);
}

static void sce_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *logits = value[GX_SCE_BWD_LOGITS];

    (void)graph;
    if (sce_operands(node, value, list) &&
        gx_expect_loss_dy(list, node, value[GX_SCE_BWD_DY]))
        gx_set_shape(value[GX_SCE_BWD_DLOGITS], logits->dtype, 2, logits->dim);
}

/* --- the derivative, for a loss that is the one differentiated --- */

static void sce_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t logits = node->arg[GX_SCE_LOGITS];
    const char *out = gx_builder_wanted_name(builder, logits);
    const gx_field_text fields[] = {
        { "logits", gx_builder_operand(builder, id, GX_SCE_LOGITS) },
        { "labels", gx_builder_operand(builder, id, GX_SCE_LABELS) },
        { "reduction", gx_written(node, "reduction") },
        { "ignore_index", gx_written(node, "ignore_index") },
        { "label_smoothing", gx_written(node, "label_smoothing") },
        { "dlogits", out },
        { "dy", gx_loss_gradient(builder, node->arg[GX_SCE_OUT]) },
    };

    if (!out)
        return;
    gx_builder_node(builder, "softmax_cross_entropy.bwd",
                    gx_builder_name(builder, node->origin, "bwd"), id, fields, 7);
    gx_builder_contribute(builder, logits, out);
}

/* --- references --- */

static bool is_ignored(const gx_call *call, double label)
{
    const gx_attr ignored = call->attr[GX_SCE_IGNORE_INDEX];

    return ignored.present && label == (double)ignored.i;
}

/* What the sum over rows is divided by: 0 for a mean where all are ignored. */
static double divisor(const gx_call *call)
{
    const gx_tensor *labels = &call->arg[GX_SCE_LABELS];
    double rows = 0;

    if (call->attr[GX_SCE_REDUCTION].i == GX_REDUCTION_SUM)
        return 1;
    for (int64_t i = 0; i < labels->dim[0]; i++)
        rows += !is_ignored(call, ((const double *)labels->data)[i]);
    return rows;
}

static gx_status check_label(double label, int64_t row, int64_t classes, gx_error *err)
{
    if (label >= 0 && label < (double)classes)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_DATA, "label %g of row %lld is not between 0 and %lld",
                   label, (long long)row, (long long)classes - 1);
}

static double largest(const double *x, int64_t n)
{
    double most = x[0];

    for (int64_t i = 1; i < n; i++) {
        if (x[i] > most || isnan(x[i]))
            most = x[i];
    }
    return most;
}

/* Sum of exp(x - most): the largest term is 1, so nothing overflows. */
static double sum_exp(const double *x, int64_t n, double most)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return sum;
}

/* A smoothed target gives the label 1 - s + s / n and every other class s / n. */
static double row_loss(const double *x, int64_t n, int64_t label, double smoothing)
{
    const double most = largest(x, n);
    const double log_sum = log(sum_exp(x, n, most));
    double all = 0.0;

    if (smoothing == 0)
        return log_sum - (x[label] - most);
    for (int64_t j = 0; j < n; j++)
        all += x[j] - most;
    return log_sum - (1 - smoothing) * (x[label] - most) - smoothing * all / (double)n;
}

static gx_status sce_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_SCE_LOGITS];
    const double *labels = call->arg[GX_SCE_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    double sum = 0.0;

    for (int64_t i = 0; i < rows; i++) {
        if (is_ignored(call, labels[i]))
            continue;
        GX_TRY(check_label(labels[i], i, classes, err));
        sum += row_loss((const double *)logits->data + i * classes, classes,
                        (int64_t)labels[i], call->attr[GX_SCE_LABEL_SMOOTHING].r);
    }
    *(double *)call->arg[GX_SCE_OUT].data = sum / divisor(call);
    return GX_OK;
}

static void row_gradient(const double *x, double *dx, int64_t n, int64_t label,
                         double smoothing, double scale)
{
    const double most = largest(x, n);
    const double sum = sum_exp(x, n, most);
    const double share = smoothing / (double)n * scale;
    double others = 0.0;

    for (int64_t j = 0; j < n; j++)
        dx[j] = exp(x[j] - most) / sum * scale;

    /* 1 - p cancels where the label is nearly certain: add up the others instead. */
    for (int64_t j = 0; j < n; j++)
        others += j == label ? 0.0 : dx[j];
    dx[label] = isnan(dx[label]) ? dx[label] : 0.0 - others;
    for (int64_t j = 0; smoothing > 0 && j < n; j++)
        dx[j] += j == label ? share * (double)(n - 1) : -share;
}

static gx_status sce_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_SCE_BWD_LOGITS];
    const double *labels = call->arg[GX_SCE_BWD_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    const double scale = gx_loss_dy(call, GX_SCE_BWD_DY) / divisor(call);

    for (int64_t i = 0; i < rows; i++) {
        const double *x = (const double *)logits->data + i * classes;
        double *dx = (double *)call->arg[GX_SCE_BWD_DLOGITS].data + i * classes;

        if (is_ignored(call, labels[i])) {
            memset(dx, 0, (size_t)classes * sizeof *dx);
            continue;
        }
        GX_TRY(check_label(labels[i], i, classes, err));
        row_gradient(x, dx, classes, (int64_t)labels[i],
                     call->attr[GX_SCE_LABEL_SMOOTHING].r, scale);
    }
    return GX_OK;
}

/* --- cost: an exponential counts as eight operations --- */

static double sce_flops(const gx_graph *graph, const gx_node *node)
{
    return 11 * gx_elements(graph, node, GX_SCE_LOGITS);
}

const gx_op gx_loss_ops[] = {
    {
        .name = "softmax_cross_entropy",
        .summary = "cross-entropy of the softmax of logits against labels, mean or sum "
                   "over rows",
        .formula = "out = mean over rows of log(sum exp(logits)) - (1 - s) logits[label] "
                   "- s mean(logits), s = label_smoothing; rows whose label is "
                   "ignore_index are left out of sum and count: a mean of none is nan",
        .fields = sce_fields,
        .phase = GX_PHASE_FORWARD,
        .loss = true,
        .takes_one = true,
        .rows = GX_ROWS_TELL,
        .infer = sce_infer,
        .reference = sce_reference,
        .grad = sce_grad,
        .flops = sce_flops,
        .samples = gx_sce_samples,
        /* f32 inside whatever the type of the logits, and an f32 result: exp and log of a
         * few units in the last place, a sum of some thousand rows. */
        .tolerance = { 1e-5, 1e-5, 1e-5, 1e-5 },
    },
    {
        .name = "softmax_cross_entropy.bwd",
        .summary = "derivative of softmax_cross_entropy",
        .formula =
            "dlogits = dy (softmax(logits) - (1 - s) onehot(labels) - s / classes) / "
            "rows, without the division for a sum; 0 in ignored rows",
        .fields = sce_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = sce_bwd_infer,
        .reference = sce_bwd_reference,
        .flops = sce_flops,
        .samples = gx_sce_bwd_samples,
        /* f32 inside; softmax - 1 may cancel. bf16: the result is rounded to 8 bits,
         * f16: to 11. */
        .tolerance = { 1e-5, 1e-5, 5e-3, 7e-4 },
    },
    { 0 },
};
