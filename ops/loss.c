/* Losses, means over the batch as in PyTorch, and their derivatives. */
#include <math.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"

#define DY                                               \
    {                                                    \
        "dy", GX_FIELD_IN, false, NULL, NULL,            \
            "f32 scalar: the loss's gradient; absent: 1" \
    }

static const gx_field sce_fields[] = {
    { "logits", GX_FIELD_IN, true, NULL, NULL, "[rows, classes]" },
    { "labels", GX_FIELD_IN, true, NULL, NULL, "i32 [rows], from 0 to classes - 1" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { 0 },
};

static const gx_field sce_bwd_fields[] = {
    { "logits", GX_FIELD_IN, true, NULL, NULL, "[rows, classes]" },
    { "labels", GX_FIELD_IN, true, NULL, NULL, "i32 [rows], from 0 to classes - 1" },
    { "dlogits", GX_FIELD_OUT, true, NULL, NULL, "like logits" },
    DY,
    { 0 },
};

static const gx_field mse_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "target", GX_FIELD_IN, true, NULL, NULL, "the shape of x, f32 or the type of x" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "f32 scalar" },
    { 0 },
};

static const gx_field mse_bwd_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "target", GX_FIELD_IN, true, NULL, NULL, "the shape of x, f32 or the type of x" },
    { "dx", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    DY,
    { 0 },
};

static bool sce_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_value *logits = value[GX_SCE_LOGITS];
    gx_value *labels = value[GX_SCE_LABELS];

    if (!gx_expect_float(list, node, "logits", logits) ||
        !gx_expect_rank(list, node, "logits", logits, 2) ||
        !gx_expect_dtype(list, node, "labels", labels, GX_I32) ||
        !gx_expect_like(list, node, "labels", labels, 1, &logits->dim[0]))
        return false;
    if (logits->dim[0] == 0 || logits->dim[1] == 0) {
        gx_misfit(list, node, "logits", "a mean over no %s has no value",
                  logits->dim[0] == 0 ? "rows" : "classes");
        return false;
    }
    gx_limit_index(labels, logits->dim[1]);
    return true;
}

static void sce_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (sce_operands(node, value, list))
        gx_set_shape(value[GX_SCE_OUT], GX_F32, 0, NULL);
}

static bool expect_dy(gx_diagnostics *list, const gx_node *node, const gx_value *dy)
{
    return !dy || (gx_expect_dtype(list, node, "dy", dy, GX_F32) &&
                   gx_expect_rank(list, node, "dy", dy, 0));
}

static void sce_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *logits = value[GX_SCE_BWD_LOGITS];

    (void)graph;
    if (sce_operands(node, value, list) && expect_dy(list, node, value[GX_SCE_BWD_DY]))
        gx_set_shape(value[GX_SCE_BWD_DLOGITS], logits->dtype, 2, logits->dim);
}

static bool mse_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_value *x = value[GX_MSE_X];
    const gx_value *target = value[GX_MSE_TARGET];

    if (!gx_expect_float(list, node, "x", x) ||
        !gx_expect_like(list, node, "target", target, x->rank, x->dim))
        return false;
    if (target->dtype != GX_F32 && target->dtype != x->dtype) {
        gx_misfit(list, node, "target", "target is %s, expected f32 or, like x, %s",
                  gx_dtype_name(target->dtype), gx_dtype_name(x->dtype));
        return false;
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->dim[i] == 0) {
            gx_misfit(list, node, "x", "a mean over no elements has no value");
            return false;
        }
    }
    return true;
}

static void mse_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    (void)graph;
    if (mse_operands(node, value, list))
        gx_set_shape(value[GX_MSE_OUT], GX_F32, 0, NULL);
}

static void mse_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *x = value[GX_MSE_BWD_X];

    (void)graph;
    if (mse_operands(node, value, list) && expect_dy(list, node, value[GX_MSE_BWD_DY]))
        gx_set_shape(value[GX_MSE_BWD_DX], x->dtype, x->rank, x->dim);
}

/* --- derivatives, for a loss that is the one differentiated --- */

/* NULL where it is exactly 1. */
static const char *loss_gradient(gx_builder *builder, int32_t loss)
{
    const char *dy = gx_builder_gradient(builder, loss);

    return gx_builder_is_one(dy) ? NULL : dy;
}

static void sce_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t logits = node->arg[GX_SCE_LOGITS];
    const char *out = gx_builder_wanted_name(builder, logits);
    const gx_field_text fields[] = {
        { "logits", gx_builder_operand(builder, id, GX_SCE_LOGITS) },
        { "labels", gx_builder_operand(builder, id, GX_SCE_LABELS) },
        { "dlogits", out },
        { "dy", loss_gradient(builder, node->arg[GX_SCE_OUT]) },
    };

    if (!out)
        return;
    gx_builder_node(builder, "softmax_cross_entropy.bwd",
                    gx_builder_name(builder, node->origin, "bwd"), id, fields, 4);
    gx_builder_contribute(builder, logits, out);
}

/* The square is symmetric: the target's gradient is that of x with the two exchanged. */
static void mse_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const int32_t operand[] = { graph->nodes[id].arg[GX_MSE_X],
                                graph->nodes[id].arg[GX_MSE_TARGET] };
    const char *name[] = { gx_builder_operand(builder, id, GX_MSE_X),
                           gx_builder_operand(builder, id, GX_MSE_TARGET) };
    const bool one_type =
        graph->values[operand[0]].dtype == graph->values[operand[1]].dtype;
    const char *origin = graph->nodes[id].origin;
    const char *dy = loss_gradient(builder, graph->nodes[id].arg[GX_MSE_OUT]);

    for (int i = 0; i < 2; i++) {
        if (i == 1 && !one_type && gx_builder_wants(builder, operand[1])) {
            gx_builder_report(builder, id,
                              "mse has no gradient for a target of another type than x");
            return;
        }
        const char *out = gx_builder_wanted_name(builder, operand[i]);
        const gx_field_text fields[] = {
            { "x", name[i] }, { "target", name[1 - i] }, { "dx", out }, { "dy", dy }
        };

        if (!out)
            continue;
        gx_builder_node(builder, "mse.bwd",
                        gx_builder_name(builder, origin, i == 0 ? "bwd" : "bwd.target"),
                        id, fields, 4);
        gx_builder_contribute(builder, operand[i], out);
    }
}

/* --- references --- */

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

static gx_status sce_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_SCE_LOGITS];
    const double *labels = call->arg[GX_SCE_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    double sum = 0.0;

    for (int64_t i = 0; i < rows; i++) {
        const double *x = (const double *)logits->data + i * classes;
        const double most = largest(x, classes);

        GX_TRY(check_label(labels[i], i, classes, err));
        sum += log(sum_exp(x, classes, most)) - (x[(int64_t)labels[i]] - most);
    }
    *(double *)call->arg[GX_SCE_OUT].data = sum / (double)rows;
    return GX_OK;
}

static double dy_of(const gx_call *call, int arg)
{
    return gx_has(call, arg) ? *(const double *)call->arg[arg].data : 1;
}

static gx_status sce_bwd_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *logits = &call->arg[GX_SCE_BWD_LOGITS];
    const double *labels = call->arg[GX_SCE_BWD_LABELS].data;
    const int64_t rows = logits->dim[0], classes = logits->dim[1];
    const double dy = dy_of(call, GX_SCE_BWD_DY);

    for (int64_t i = 0; i < rows; i++) {
        const double *x = (const double *)logits->data + i * classes;
        double *dx = (double *)call->arg[GX_SCE_BWD_DLOGITS].data + i * classes;
        const double most = largest(x, classes);
        const double sum = sum_exp(x, classes, most);

        GX_TRY(check_label(labels[i], i, classes, err));
        for (int64_t j = 0; j < classes; j++)
            dx[j] = dy * (exp(x[j] - most) / sum / (double)rows);

        /* 1 - p cancels where the label is nearly certain: add up the others instead. */
        const int64_t label = (int64_t)labels[i];
        double others = 0.0;

        for (int64_t j = 0; j < classes; j++)
            others += j == label ? 0.0 : dx[j];
        dx[label] = isnan(dx[label]) ? dx[label] : 0.0 - others;
    }
    return GX_OK;
}

static gx_status mse_reference(const gx_call *call, gx_error *err)
{
    const double *x = call->arg[GX_MSE_X].data;
    const double *target = call->arg[GX_MSE_TARGET].data;
    const int64_t n = gx_count(&call->arg[GX_MSE_X]);
    double sum = 0.0;

    (void)err;
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - target[i]) * (x[i] - target[i]);
    *(double *)call->arg[GX_MSE_OUT].data = sum / (double)n;
    return GX_OK;
}

static gx_status mse_bwd_reference(const gx_call *call, gx_error *err)
{
    const double *x = call->arg[GX_MSE_BWD_X].data;
    const double *target = call->arg[GX_MSE_BWD_TARGET].data;
    double *dx = call->arg[GX_MSE_BWD_DX].data;
    const int64_t n = gx_count(&call->arg[GX_MSE_BWD_X]);
    const double dy = dy_of(call, GX_MSE_BWD_DY);

    (void)err;
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy * (2.0 * (x[i] - target[i]) / (double)n);
    return GX_OK;
}

/* --- cost: an exponential counts as eight operations --- */

static double sce_flops(const gx_graph *graph, const gx_node *node)
{
    return 11 * gx_elements(graph, node, GX_SCE_LOGITS);
}

static double mse_flops(const gx_graph *graph, const gx_node *node)
{
    return 3 * gx_elements(graph, node, GX_MSE_X);
}

const gx_op gx_loss_ops[] = {
    {
        .name = "softmax_cross_entropy",
        .summary =
            "cross-entropy of the softmax of logits against labels, mean over rows",
        .formula = "out = mean over rows of log(sum exp(logits)) - logits[label]",
        .fields = sce_fields,
        .phase = GX_PHASE_FORWARD,
        .loss = true,
        .takes_one = true,
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
        .formula = "dlogits = dy (softmax(logits) - onehot(labels)) / rows",
        .fields = sce_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = sce_bwd_infer,
        .reference = sce_bwd_reference,
        .flops = sce_flops,
        .samples = gx_sce_bwd_samples,
        /* f32 inside; softmax - 1 may cancel. bf16: the result is rounded to 8 bits. */
        .tolerance = { 1e-5, 1e-5, 5e-3, 7e-4 },
    },
    {
        .name = "mse",
        .summary = "mean squared error over all elements",
        .formula = "out = mean of (x - target)^2",
        .fields = mse_fields,
        .phase = GX_PHASE_FORWARD,
        .loss = true,
        .takes_one = true,
        .infer = mse_infer,
        .reference = mse_reference,
        .grad = mse_grad,
        .flops = mse_flops,
        .samples = gx_mse_samples,
        /* f32 inside and a sum of terms of one sign. */
        .tolerance = { 1e-5, 1e-5, 1e-5, 1e-5 },
    },
    {
        .name = "mse.bwd",
        .summary = "derivative of mse",
        .formula = "dx = dy 2 (x - target) / elements",
        .fields = mse_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = mse_bwd_infer,
        .reference = mse_bwd_reference,
        .flops = mse_flops,
        .samples = gx_mse_bwd_samples,
        /* Two roundings in f32; bf16 rounds the result to 8 bits. */
        .tolerance = { 1e-6, 1e-6, 5e-3, 7e-4 },
    },
    { 0 },
};
