/* Layer norm and root-mean-square norm over the last size, and their derivatives. */
#include <float.h>
#include <math.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field layer_norm_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n]" },
    { "weight", GX_FIELD_IN, false, NULL, NULL, "[n]; absent: 1" },
    { "bias", GX_FIELD_IN, false, NULL, NULL, "[n]; absent: 0" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "eps", GX_FIELD_REAL, false, "1e-5", NULL, "added to the variance" },
    { 0 },
};

static const gx_field layer_norm_bwd_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n], layer_norm's x" },
    { "weight", GX_FIELD_IN, false, NULL, NULL, "[n], layer_norm's weight" },
    { "dy", GX_FIELD_IN, true, NULL, NULL, "like x, gradient of layer_norm's out" },
    { "dx", GX_FIELD_OUT, false, NULL, NULL, "like x" },
    { "dweight", GX_FIELD_OUT, false, NULL, NULL, "[n]" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n]" },
    { "eps", GX_FIELD_REAL, false, "1e-5", NULL, "layer_norm's" },
    { 0 },
};

static const gx_field rms_norm_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n]" },
    { "weight", GX_FIELD_IN, false, NULL, NULL, "[n]; absent: 1" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "eps", GX_FIELD_REAL, false, NULL, NULL,
      "added to the mean square; absent: epsilon of x's type, 2^-23 for f32, 2^-7 for "
      "bf16 and 2^-10 for f16" },
    { 0 },
};

static const gx_field rms_norm_bwd_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "[..., n], rms_norm's x" },
    { "weight", GX_FIELD_IN, false, NULL, NULL, "[n], rms_norm's weight" },
    { "dy", GX_FIELD_IN, true, NULL, NULL, "like x, gradient of rms_norm's out" },
    { "dx", GX_FIELD_OUT, false, NULL, NULL, "like x" },
    { "dweight", GX_FIELD_OUT, false, NULL, NULL, "[n]" },
    { "eps", GX_FIELD_REAL, false, NULL, NULL,
      "rms_norm's; absent: epsilon of x's type" },
    { 0 },
};

/* Both rows, forward and backward, by these: an operand that a row does not have is -1.
 */
typedef struct shape {
    bool centred; /* layer_norm */
    int weight, bias, out;
    int bwd_weight, dy, dx, dweight, dbias;
    const char *bwd;
} shape;

static const shape layer_norm = {
    true,
    GX_LAYER_NORM_WEIGHT,
    GX_LAYER_NORM_BIAS,
    GX_LAYER_NORM_OUT,
    GX_LAYER_NORM_BWD_WEIGHT,
    GX_LAYER_NORM_BWD_DY,
    GX_LAYER_NORM_BWD_DX,
    GX_LAYER_NORM_BWD_DWEIGHT,
    GX_LAYER_NORM_BWD_DBIAS,
    "layer_norm.bwd",
};
static const shape rms_norm = {
    false,
    GX_RMS_NORM_WEIGHT,
    -1,
    GX_RMS_NORM_OUT,
    GX_RMS_NORM_BWD_WEIGHT,
    GX_RMS_NORM_BWD_DY,
    GX_RMS_NORM_BWD_DX,
    GX_RMS_NORM_BWD_DWEIGHT,
    -1,
    "rms_norm.bwd",
};

/* --- shapes --- */

static bool expect_x(gx_diagnostics *list, const gx_node *node, const gx_value *x)
{
    const gx_attr eps = node->attr[GX_NORM_EPS];

    if (!gx_expect_float(list, node, "x", x))
        return false;
    if (x->rank == 0) {
        gx_misfit(list, node, "x", "x is a scalar, expected one dimension or more");
        return false;
    }
    if (eps.present && !(eps.r >= 0)) {
        gx_misfit(list, node, "eps", "eps is %g, expected 0 or more", eps.r);
        return false;
    }
    return true;
}

/* Absent, or one number for each of the last size. */
static bool expect_row(gx_diagnostics *list, const gx_node *node, const char *key,
                       const gx_value *value, const gx_value *x)
{
    return !value || (gx_expect_like(list, node, key, value, 1, &x->dim[x->rank - 1]) &&
                      gx_expect_dtype(list, node, key, value, x->dtype));
}

static void infer(const shape *of, const gx_node *node, gx_value **value,
                  gx_diagnostics *list)
{
    const gx_value *x = value[0];

    if (expect_x(list, node, x) &&
        expect_row(list, node, "weight", value[of->weight], x) &&
        (of->bias < 0 || expect_row(list, node, "bias", value[of->bias], x)))
        gx_set_shape(value[of->out], x->dtype, x->rank, x->dim);
}

static void infer_bwd(const shape *of, const gx_node *node, gx_value **value,
                      gx_diagnostics *list)
{
    const gx_value *x = value[0];
    gx_value *dbias = of->dbias < 0 ? NULL : value[of->dbias];

    if (!expect_x(list, node, x) ||
        !expect_row(list, node, "weight", value[of->bwd_weight], x) ||
        !gx_expect_like(list, node, "dy", value[of->dy], x->rank, x->dim) ||
        !gx_expect_dtype(list, node, "dy", value[of->dy], x->dtype))
        return;
    if (!value[of->dx] && !value[of->dweight] && !dbias) {
        gx_misfit(list, node, NULL, "it makes nothing: expected dx%s dweight%s",
                  of->centred ? "," : " or", of->centred ? " or dbias" : "");
        return;
    }
    gx_set_shape(value[of->dx], x->dtype, x->rank, x->dim);
    gx_set_shape(value[of->dweight], x->dtype, 1, &x->dim[x->rank - 1]);
    gx_set_shape(dbias, x->dtype, 1, &x->dim[x->rank - 1]);
}

static void layer_norm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                             gx_diagnostics *list)
{
    (void)graph;
    infer(&layer_norm, node, value, list);
}

static void layer_norm_bwd_infer(const gx_graph *graph, const gx_node *node,
                                 gx_value **value, gx_diagnostics *list)
{
    (void)graph;
    infer_bwd(&layer_norm, node, value, list);
}

static void rms_norm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    (void)graph;
    infer(&rms_norm, node, value, list);
}

static void rms_norm_bwd_infer(const gx_graph *graph, const gx_node *node,
                               gx_value **value, gx_diagnostics *list)
{
    (void)graph;
    infer_bwd(&rms_norm, node, value, list);
}

/* --- derivative --- */

enum { N_WANTED = 3 }; /* x, weight, bias */

static void bwd_node(gx_builder *builder, int32_t id, const shape *of, const char *suffix,
                     const char *const out[N_WANTED])
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const char *dy = gx_builder_gradient(builder, node->arg[of->out]);
    const gx_field_text fields[] = {
        { "x", gx_builder_operand(builder, id, 0) },
        { "weight", gx_builder_operand(builder, id, of->weight) },
        { "dy", dy },
        { "dx", out[0] },
        { "dweight", out[1] },
        { "dbias", out[2] },
        { "eps", gx_written(node, "eps") },
    };

    gx_builder_node(builder, of->bwd, gx_builder_name(builder, node->origin, suffix), id,
                    fields, 7);
}

/* One node for all gradients; where two operands are one tensor a node for each, since
 * the second contribution is named after the first is made. */
static void grad(gx_builder *builder, int32_t id, const shape *of)
{
    static const char *const suffix[] = { "bwd", "bwd.weight", "bwd.bias" };
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand[] = { node->arg[0], node->arg[of->weight],
                                of->bias < 0 ? -1 : node->arg[of->bias] };
    const bool apart = operand[0] == operand[1] || operand[0] == operand[2] ||
                       (operand[1] >= 0 && operand[1] == operand[2]);
    const char *all[N_WANTED] = { NULL, NULL, NULL };
    bool wanted = false;

    for (int i = 0; i < N_WANTED; i++) {
        const char *out =
            operand[i] >= 0 ? gx_builder_wanted_name(builder, operand[i]) : NULL;
        const char *alone[N_WANTED] = { NULL, NULL, NULL };

        all[i] = out;
        wanted = wanted || out;
        if (!out || !apart)
            continue;
        alone[i] = out;
        bwd_node(builder, id, of, suffix[i], alone);
        gx_builder_contribute(builder, operand[i], out);
    }
    if (!wanted || apart)
        return;
    bwd_node(builder, id, of, suffix[0], all);
    for (int i = 0; i < N_WANTED; i++) {
        if (all[i])
            gx_builder_contribute(builder, operand[i], all[i]);
    }
}

static void layer_norm_grad(gx_builder *builder, int32_t id)
{
    grad(builder, id, &layer_norm);
}

static void rms_norm_grad(gx_builder *builder, int32_t id)
{
    grad(builder, id, &rms_norm);
}

/* --- references --- */

static double eps_of(const gx_call *call)
{
    if (call->attr[GX_NORM_EPS].present)
        return call->attr[GX_NORM_EPS].r;
    switch (call->arg[0].dtype) {
    case GX_BF16:
        return 0x1p-7;
    case GX_F16:
        return 0x1p-10;
    case GX_F64:
        return DBL_EPSILON;
    default:
        return 0x1p-23;
    }
}

static const double *data_of(const gx_call *call, int arg)
{
    return arg >= 0 && gx_has(call, arg) ? call->arg[arg].data : NULL;
}

static double *result_of(const gx_call *call, int arg)
{
    return arg >= 0 && gx_has(call, arg) ? call->arg[arg].data : NULL;
}

static void split(const gx_tensor *x, int64_t *rows, int64_t *columns)
{
    *columns = x->dim[x->rank - 1];
    *rows = 1;
    for (int i = 0; i + 1 < x->rank; i++)
        *rows *= x->dim[i];
}

typedef struct statistics {
    double mean; /* 0 where the norm is not centred */
    double scale;
} statistics;

/* In two passes: the mean, then the squares about it. */
static statistics measure(const double *x, int64_t n, bool centred, double eps)
{
    statistics s = { 0, 0 };
    double squares = 0;

    for (int64_t j = 0; centred && j < n; j++)
        s.mean += x[j];
    s.mean /= (double)n;
    for (int64_t j = 0; j < n; j++)
        squares += (x[j] - s.mean) * (x[j] - s.mean);
    s.scale = 1.0 / sqrt(squares / (double)n + eps);
    return s;
}

static gx_status reference(const shape *of, const gx_call *call)
{
    const double *weight = data_of(call, of->weight), *bias = data_of(call, of->bias);
    int64_t rows, columns;

    split(&call->arg[0], &rows, &columns);
    for (int64_t i = 0; i < rows && columns > 0; i++) {
        const double *x = (const double *)call->arg[0].data + i * columns;
        double *out = result_of(call, of->out) + i * columns;
        const statistics s = measure(x, columns, of->centred, eps_of(call));

        for (int64_t j = 0; j < columns; j++)
            out[j] = (x[j] - s.mean) * s.scale * (weight ? weight[j] : 1.0) +
                     (bias ? bias[j] : 0.0);
    }
    return GX_OK;
}

/* With z the normalised row and g = dy weight: dx = scale (g - mean(g) - z mean(g z)),
 * without mean(g) where the norm is not centred. */
static void row_back(const double *x, const double *dy, const double *weight, int64_t n,
                     statistics s, bool centred, double *dx)
{
    double sum = 0, product = 0;

    for (int64_t j = 0; j < n; j++) {
        const double g = dy[j] * (weight ? weight[j] : 1.0);

        sum += centred ? g : 0.0;
        product += g * (x[j] - s.mean) * s.scale;
    }
    for (int64_t j = 0; j < n; j++) {
        const double g = dy[j] * (weight ? weight[j] : 1.0);
        const double z = (x[j] - s.mean) * s.scale;

        dx[j] = s.scale * (g - sum / (double)n - z * (product / (double)n));
    }
}

static gx_status bwd_reference(const shape *of, const gx_call *call)
{
    const double *weight = data_of(call, of->bwd_weight);
    double *dx = result_of(call, of->dx);
    double *dweight = result_of(call, of->dweight), *dbias = result_of(call, of->dbias);
    int64_t rows, columns;

    split(&call->arg[0], &rows, &columns);
    for (int64_t j = 0; j < columns; j++) {
        if (dweight)
            dweight[j] = 0;
        if (dbias)
            dbias[j] = 0;
    }
    for (int64_t i = 0; i < rows && columns > 0; i++) {
        const double *x = (const double *)call->arg[0].data + i * columns;
        const double *dy = (const double *)call->arg[of->dy].data + i * columns;
        const statistics s = measure(x, columns, of->centred, eps_of(call));

        if (dx)
            row_back(x, dy, weight, columns, s, of->centred, dx + i * columns);
        for (int64_t j = 0; j < columns; j++) {
            if (dweight)
                dweight[j] += dy[j] * (x[j] - s.mean) * s.scale;
            if (dbias)
                dbias[j] += dy[j];
        }
    }
    return GX_OK;
}

static gx_status layer_norm_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return reference(&layer_norm, call);
}

static gx_status layer_norm_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return bwd_reference(&layer_norm, call);
}

static gx_status rms_norm_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return reference(&rms_norm, call);
}

static gx_status rms_norm_bwd_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return bwd_reference(&rms_norm, call);
}

/* --- cost --- */

static double layer_norm_flops(const gx_graph *graph, const gx_node *node)
{
    return 8 * gx_elements(graph, node, GX_LAYER_NORM_X);
}

static double rms_norm_flops(const gx_graph *graph, const gx_node *node)
{
    return 4 * gx_elements(graph, node, GX_RMS_NORM_X);
}

static double layer_norm_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return 18 * gx_elements(graph, node, GX_LAYER_NORM_BWD_X);
}

static double rms_norm_bwd_flops(const gx_graph *graph, const gx_node *node)
{
    return 12 * gx_elements(graph, node, GX_RMS_NORM_BWD_X);
}

/* Statistics in f32 about a mean that is exact to the last digit of x: some roundings of
 * 2^-24, more where a row is long. bf16: the result is rounded to 8 bits, 2^-9; f16: to
 * 11, 2^-12. */
#define NORM_TOLERANCE         \
    {                          \
        4e-6, 4e-6, 5e-3, 7e-4 \
    }
/* The gradients of weight and bias sum some thousand rows in f32, dx has differences of
 * means; terms of either sign cancel. */
#define NORM_BWD_TOLERANCE     \
    {                          \
        2e-5, 2e-5, 5e-3, 7e-4 \
    }

const gx_op gx_norm_ops[] = {
    {
        .name = "layer_norm",
        .summary = "layer norm over the last size, as torch.nn.functional.layer_norm",
        .formula = "out = (x - mean) / sqrt(variance + eps) weight + bias; mean and "
                   "variance (over n, not n - 1) of each row",
        .fields = layer_norm_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_ALONG,
        .infer = layer_norm_infer,
        .reference = layer_norm_reference,
        .grad = layer_norm_grad,
        .flops = layer_norm_flops,
        .samples = gx_layer_norm_samples,
        .tolerance = NORM_TOLERANCE,
    },
    {
        .name = "layer_norm.bwd",
        .summary = "derivative of layer_norm",
        .formula = "z = (x - mean) / sqrt(variance + eps), g = dy weight; dx = (g - "
                   "mean(g) - z mean(g z)) / sqrt(variance + eps); dweight = sum of rows "
                   "of dy z; dbias = sum of rows of dy",
        .fields = layer_norm_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = layer_norm_bwd_infer,
        .reference = layer_norm_bwd_reference,
        .flops = layer_norm_bwd_flops,
        .samples = gx_layer_norm_bwd_samples,
        .tolerance = NORM_BWD_TOLERANCE,
    },
    {
        .name = "rms_norm",
        .summary = "root-mean-square norm over the last size, as "
                   "torch.nn.functional.rms_norm",
        .formula = "out = x / sqrt(mean(x^2) + eps) weight; the mean is that of each row",
        .fields = rms_norm_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_ALONG,
        .infer = rms_norm_infer,
        .reference = rms_norm_reference,
        .grad = rms_norm_grad,
        .flops = rms_norm_flops,
        .samples = gx_rms_norm_samples,
        .tolerance = NORM_TOLERANCE,
    },
    {
        .name = "rms_norm.bwd",
        .summary = "derivative of rms_norm",
        .formula = "z = x / sqrt(mean(x^2) + eps), g = dy weight; dx = (g - z mean(g z)) "
                   "/ sqrt(mean(x^2) + eps); dweight = sum of rows of dy z",
        .fields = rms_norm_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = rms_norm_bwd_infer,
        .reference = rms_norm_bwd_reference,
        .flops = rms_norm_bwd_flops,
        .samples = gx_rms_norm_bwd_samples,
        .tolerance = NORM_BWD_TOLERANCE,
    },
    { 0 },
};
