/* Matrix products: gemm with an optional epilogue, and its derivative in one op. */
#include "gemm.h"

#include "epilogue_order.h"
#include "infer.h"
#include "product.h"
#include "resolve.h"
#include "samples.h"

static const gx_field gemm_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL,
      "[..., m, k], or [..., k, m] with trans_a; without leading dimensions one for the "
      "whole batch of b" },
    { "b", GX_FIELD_IN, true, NULL, NULL,
      "[..., k, n], or [..., n, k] with trans_b; its leading dimensions are those of a, "
      "or it has none: one for the whole batch" },
    { "c", GX_FIELD_IN, false, NULL, NULL, "like out, added to the product" },
    { "epilogue.bias", GX_FIELD_IN, false, NULL, NULL, "[n], added to each row" },
    { "epilogue.residual", GX_FIELD_IN, false, NULL, NULL, "like out, added" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "[..., m, n]; [m, n] with sum_batch" },
    { "trans_a", GX_FIELD_BOOL, false, "false", NULL, "a is stored transposed" },
    { "trans_b", GX_FIELD_BOOL, false, "false", NULL, "b is stored transposed" },
    { "alpha", GX_FIELD_REAL, false, "1", NULL, "factor of the product" },
    { "beta", GX_FIELD_REAL, false, NULL, NULL,
      "factor of c; absent: 1; with 0 c is not read" },
    { "sum_batch", GX_FIELD_BOOL, false, "false", NULL,
      "the products of the whole batch are added up; a and b both have it" },
    { "epilogue.act", GX_FIELD_ENUM, false, "none", gx_act_names,
      "applied last, unless order says otherwise" },
    { "epilogue.scale", GX_FIELD_REAL, false, NULL, NULL,
      "a factor, applied first, unless order says otherwise" },
    { "epilogue.order", GX_FIELD_WORDS, false, NULL, gx_epilogue_step_names,
      GX_ORDER_DOC },
    { 0 },
};

static const gx_field gemm_bwd_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "b", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "dy", GX_FIELD_IN, true, NULL, NULL, "[..., m, n], gradient of the gemm's out" },
    { "y", GX_FIELD_IN, false, NULL, NULL,
      "like dy, the gemm's out; relu, tanh and sigmoid need it" },
    { "pre", GX_FIELD_IN, false, NULL, NULL,
      "like dy, what the activation was applied to; gelu_tanh, gelu_erf and silu need "
      "it" },
    { "da", GX_FIELD_OUT, false, NULL, NULL, "gradient of a" },
    { "db", GX_FIELD_OUT, false, NULL, NULL, "gradient of b" },
    { "dc", GX_FIELD_OUT, false, NULL, NULL, "like dy, gradient of c" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n], gradient of the bias" },
    { "dresidual", GX_FIELD_OUT, false, NULL, NULL, "like dy, gradient of the residual" },
    { "trans_a", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "trans_b", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "alpha", GX_FIELD_REAL, false, "1", NULL, "as in the gemm" },
    { "beta", GX_FIELD_REAL, false, NULL, NULL, "as in the gemm" },
    { "epilogue.act", GX_FIELD_ENUM, false, "none", gx_act_names, "as in the gemm" },
    { "epilogue.scale", GX_FIELD_REAL, false, NULL, NULL, "as in the gemm" },
    { 0 },
};

/* --- shapes --- */

/* A product: its shape, and the size that is summed over. */
typedef struct product_shape {
    int rank;
    int64_t dim[GX_MAX_RANK], k;
} product_shape;

static bool expect_matrices(gx_diagnostics *list, const gx_node *node, const char *key,
                            const gx_value *value)
{
    if (value->rank >= 2)
        return true;
    return gx_expect_rank(list, node, key, value, 2);
}

static void report_two(gx_diagnostics *list, const gx_node *node, const gx_value *a,
                       const gx_value *b, const char *what)
{
    char of_a[GX_SHAPE_TEXT], of_b[GX_SHAPE_TEXT];

    gx_misfit(list, node, "b", "a has shape %s and b has shape %s: %s",
              gx_shape_text(a->rank, a->dim, of_a, sizeof of_a),
              gx_shape_text(b->rank, b->dim, of_b, sizeof of_b), what);
}

/* The leading dimensions: of both, or of the one that has some. */
static bool infer_batch(const gx_node *node, const gx_value *a, const gx_value *b,
                        product_shape *shape, gx_diagnostics *list)
{
    const gx_value *wide = a->rank > 2 ? a : b;
    bool same = a->rank == b->rank;

    for (int i = 0; same && i < a->rank - 2; i++)
        same = a->dim[i] == b->dim[i];
    if (!same && a->rank > 2 && b->rank > 2) {
        report_two(
            list, node, a, b,
            "the leading dimensions differ, expected the same ones, or none in one "
            "of the two");
        return false;
    }
    shape->rank = wide->rank;
    for (int i = 0; i < wide->rank - 2; i++)
        shape->dim[i] = wide->dim[i];
    return true;
}

static bool within_limit(const gx_node *node, const product_shape *shape,
                         gx_diagnostics *list)
{
    char text[GX_SHAPE_TEXT];
    int64_t n = 1;

    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] > 0 && n > GX_LIMIT_ELEMENTS / shape->dim[i]) {
            gx_misfit(list, node, "a", "the product %s has more than %lld elements",
                      gx_shape_text(shape->rank, shape->dim, text, sizeof text),
                      (long long)GX_LIMIT_ELEMENTS);
            return false;
        }
        n *= shape->dim[i];
        if (n == 0)
            return true;
    }
    return true;
}

static bool infer_product(const gx_node *node, const gx_value *a, const gx_value *b,
                          bool trans_a, bool trans_b, product_shape *shape,
                          gx_diagnostics *list)
{
    if (!gx_expect_float(list, node, "a", a) || !expect_matrices(list, node, "a", a) ||
        !expect_matrices(list, node, "b", b) ||
        !gx_expect_dtype(list, node, "b", b, a->dtype) ||
        !infer_batch(node, a, b, shape, list))
        return false;
    const int64_t *last_a = a->dim + a->rank - 2, *last_b = b->dim + b->rank - 2;

    shape->dim[shape->rank - 2] = last_a[trans_a];
    shape->dim[shape->rank - 1] = last_b[!trans_b];
    shape->k = last_a[!trans_a];
    if (shape->k != last_b[trans_b]) {
        gx_misfit(list, node, "b",
                  "a is [%s%lld, %lld]%s and b is [%s%lld, %lld]%s: the inner sizes %lld "
                  "and %lld differ",
                  a->rank > 2 ? "..., " : "", (long long)last_a[0], (long long)last_a[1],
                  trans_a ? " transposed" : "", b->rank > 2 ? "..., " : "",
                  (long long)last_b[0], (long long)last_b[1],
                  trans_b ? " transposed" : "", (long long)shape->k,
                  (long long)last_b[trans_b]);
        return false;
    }
    return within_limit(node, shape, list);
}

/* The batch is summed over: what is left is one matrix. */
static bool drop_batch(const gx_node *node, const gx_value *a, const gx_value *b,
                       product_shape *shape, gx_diagnostics *list)
{
    if (a->rank != b->rank) {
        report_two(list, node, a, b, "sum_batch expects the same leading dimensions");
        return false;
    }
    shape->dim[0] = shape->dim[shape->rank - 2];
    shape->dim[1] = shape->dim[shape->rank - 1];
    shape->rank = 2;
    return true;
}

static bool expect_of_out(gx_diagnostics *list, const gx_node *node, const char *key,
                          const gx_value *value, const product_shape *shape,
                          gx_dtype dtype)
{
    return !value || (gx_expect_like(list, node, key, value, shape->rank, shape->dim) &&
                      gx_expect_dtype(list, node, key, value, dtype));
}

static gx_epilogue_steps steps_of(const gx_node *node)
{
    return (gx_epilogue_steps){
        .has = { [GX_EPILOGUE_STEP_SCALE] = node->attr[GX_GEMM_SCALE].present,
                 [GX_EPILOGUE_STEP_BIAS] = node->arg[GX_GEMM_BIAS] >= 0,
                 [GX_EPILOGUE_STEP_RESIDUAL] = node->arg[GX_GEMM_RESIDUAL] >= 0,
                 [GX_EPILOGUE_STEP_ACT] = node->attr[GX_GEMM_ACT].i != GX_ACT_NONE },
        .order = &node->attr[GX_GEMM_ORDER],
    };
}

static void gemm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *a = value[GX_GEMM_A], *b = value[GX_GEMM_B];
    const gx_value *bias = value[GX_GEMM_BIAS];
    const gx_epilogue_steps steps = steps_of(node);
    product_shape shape;

    (void)graph;
    if (!infer_product(node, a, b, node->attr[GX_GEMM_TRANS_A].i,
                       node->attr[GX_GEMM_TRANS_B].i, &shape, list) ||
        (node->attr[GX_GEMM_SUM_BATCH].i && !drop_batch(node, a, b, &shape, list)))
        return;
    if (bias && !(gx_expect_like(list, node, "epilogue.bias", bias, 1,
                                 &shape.dim[shape.rank - 1]) &&
                  gx_expect_dtype(list, node, "epilogue.bias", bias, a->dtype)))
        return;
    if (!expect_of_out(list, node, "c", value[GX_GEMM_C], &shape, a->dtype) ||
        !expect_of_out(list, node, "epilogue.residual", value[GX_GEMM_RESIDUAL], &shape,
                       a->dtype))
        return;
    if (node->attr[GX_GEMM_BETA].present && !value[GX_GEMM_C]) {
        gx_misfit(list, node, "beta", "beta is given, and there is no field \"c\"");
        return;
    }
    if (gx_expect_order(list, node, "epilogue.", &steps))
        gx_set_shape(value[GX_GEMM_OUT], a->dtype, shape.rank, shape.dim);
}

/* --- the epilogue: what the product itself can do, and ops for the rest --- */

/* Factors and the tensor that the product adds. */
typedef struct product_sum {
    double alpha, beta;
    const char *c;
} product_sum;

/* Takes the steps that come first into the product: a scale, and a residual where no c
 * stands. */
static void take_into_product(gx_epilogue_chain *chain, double scale,
                              const char *residual, product_sum *sum)
{
    while (chain->n > 0) {
        unsigned *steps = &chain->steps[0];

        if (*steps & 1u << GX_EPILOGUE_STEP_SCALE) {
            sum->alpha *= scale;
            sum->beta *= scale;
            *steps &= ~(1u << GX_EPILOGUE_STEP_SCALE);
        }
        if (*steps & 1u << GX_EPILOGUE_STEP_RESIDUAL && !sum->c) {
            sum->c = residual;
            sum->beta = 1.0;
            *steps &= ~(1u << GX_EPILOGUE_STEP_RESIDUAL);
        }
        if (*steps != 0)
            return;
        chain->n--;
        for (int i = 0; i < chain->n; i++)
            chain->steps[i] = chain->steps[i + 1];
    }
}

static bool gemm_expand(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_epilogue_steps steps = steps_of(node);
    const gx_act act = (gx_act)node->attr[GX_GEMM_ACT].i;
    gx_epilogue_chain chain = gx_epilogue_split(&steps);
    product_sum sum = { gx_factor(node, GX_GEMM_ALPHA), gx_factor(node, GX_GEMM_BETA),
                        gx_builder_operand(builder, id, GX_GEMM_C) };

    if (chain.n == 0)
        return false;
    take_into_product(&chain, gx_factor(node, GX_GEMM_SCALE),
                      gx_builder_operand(builder, id, GX_GEMM_RESIDUAL), &sum);

    const gx_epilogue_operands operands = {
        .x = chain.n > 0 ? gx_builder_name(builder, node->name, "product") : NULL,
        .bias = gx_builder_operand(builder, id, GX_GEMM_BIAS),
        .residual = gx_builder_operand(builder, id, GX_GEMM_RESIDUAL),
        .out = gx_builder_operand(builder, id, GX_GEMM_OUT),
        .act = act != GX_ACT_NONE ? gx_act_names[act] : NULL,
        .scale = gx_factor_text(builder, gx_factor(node, GX_GEMM_SCALE)),
    };
    const gx_field_text gemm[] = {
        { "a", gx_builder_operand(builder, id, GX_GEMM_A) },
        { "b", gx_builder_operand(builder, id, GX_GEMM_B) },
        { "c", sum.c },
        { "trans_a", node->attr[GX_GEMM_TRANS_A].i ? "true" : NULL },
        { "trans_b", node->attr[GX_GEMM_TRANS_B].i ? "true" : NULL },
        { "alpha", gx_factor_text(builder, sum.alpha) },
        { "beta", sum.c ? gx_factor_text(builder, sum.beta) : NULL },
        { "sum_batch", node->attr[GX_GEMM_SUM_BATCH].i ? "true" : NULL },
        { "out", chain.n > 0 ? operands.x : operands.out },
    };
    const size_t n_fields = sizeof gemm / sizeof gemm[0];

    if (chain.n == 0) {
        gx_builder_rewrite(builder, id, "gemm", gemm, n_fields);
        return true;
    }
    gx_builder_node(builder, "gemm", operands.x, id, gemm, n_fields);
    gx_epilogue_build(builder, id, &chain, &operands);
    return true;
}

/* --- reference --- */

static int64_t batch_of(const gx_tensor *tensor)
{
    int64_t n = 1;

    for (int i = 0; i + 2 < tensor->rank; i++)
        n *= tensor->dim[i];
    return n;
}

/* Matrix `i` of a batch, or the one that all share. */
static gx_matrix matrix_at(const gx_tensor *tensor, bool turned, int64_t i)
{
    const int64_t *last = tensor->dim + tensor->rank - 2;
    const double *data = tensor->data;

    return (gx_matrix){ data + (tensor->rank > 2 ? i * last[0] * last[1] : 0),
                        turned ? 1 : last[1], turned ? last[1] : 1 };
}

/* out = alpha out + beta c; c is not read where its factor is 0. */
static void finish_product(const gx_call *call, double *out, int64_t n)
{
    const double alpha = gx_call_factor(call, GX_GEMM_ALPHA);
    const double beta = gx_call_factor(call, GX_GEMM_BETA);
    const double *c =
        gx_has(call, GX_GEMM_C) && beta != 0.0 ? call->arg[GX_GEMM_C].data : NULL;

    for (int64_t i = 0; (c || alpha != 1.0) && i < n; i++)
        out[i] = c ? alpha * out[i] + beta * c[i] : alpha * out[i];
}

static gx_status gemm_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *a = &call->arg[GX_GEMM_A], *b = &call->arg[GX_GEMM_B];
    const gx_tensor *out = &call->arg[GX_GEMM_OUT];
    const bool trans_a = call->attr[GX_GEMM_TRANS_A].i;
    const bool trans_b = call->attr[GX_GEMM_TRANS_B].i;
    const bool sum_batch = call->attr[GX_GEMM_SUM_BATCH].i;
    const int64_t m = out->dim[out->rank - 2], n = out->dim[out->rank - 1];
    const int64_t k = a->dim[a->rank - 2 + !trans_a];
    const int64_t n_batches = batch_of(a->rank > 2 ? a : b);
    double *to = out->data;

    (void)err;
    if (sum_batch && n_batches == 0)
        gx_product(m, n, 0, matrix_at(a, trans_a, 0), matrix_at(b, trans_b, 0), to);
    for (int64_t i = 0; i < n_batches; i++) {
        const gx_matrix left = matrix_at(a, trans_a, i), right = matrix_at(b, trans_b, i);

        if (sum_batch && i > 0)
            gx_product_add(m, n, k, left, right, to);
        else
            gx_product(m, n, k, left, right, sum_batch ? to : to + i * m * n);
    }
    finish_product(call, to, gx_count(out));
    return GX_OK;
}

/* A product and a sum for each term; alpha and c count as one operation each. */
static double gemm_flops(const gx_graph *graph, const gx_node *node)
{
    const gx_value *a = &graph->values[node->arg[GX_GEMM_A]];
    const gx_value *b = &graph->values[node->arg[GX_GEMM_B]];
    const double out = gx_elements(graph, node, GX_GEMM_OUT);
    double terms = (double)a->dim[a->rank - 2 + !node->attr[GX_GEMM_TRANS_A].i];

    for (int i = 0; node->attr[GX_GEMM_SUM_BATCH].i && i + 2 < b->rank; i++)
        terms *= (double)b->dim[i];
    return out * (2.0 * terms + (gx_factor(node, GX_GEMM_ALPHA) != 1.0) +
                  2.0 * (node->arg[GX_GEMM_C] >= 0));
}

/* --- gemm.bwd --- */

static bool bwd_has_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;
    bool makes = false;

    for (int arg = GX_GEMM_BWD_DA; arg <= GX_GEMM_BWD_DRESIDUAL; arg++)
        makes = makes || value[arg];
    if (!gx_expect_act_operand(list, node, "epilogue.act", act, value[GX_GEMM_BWD_Y],
                               value[GX_GEMM_BWD_PRE]))
        return false;
    if (!makes)
        gx_misfit(list, node, NULL,
                  "it makes nothing: expected da, db, dc, dbias or dresidual");
    else if (node->attr[GX_GEMM_BWD_BETA].present && !value[GX_GEMM_BWD_DC])
        gx_misfit(list, node, "beta", "beta is given, and there is no field \"dc\"");
    else
        return true;
    return false;
}

static void gemm_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    const gx_value *a = value[GX_GEMM_BWD_A], *b = value[GX_GEMM_BWD_B];
    product_shape shape;

    (void)graph;
    if (!infer_product(node, a, b, node->attr[GX_GEMM_BWD_TRANS_A].i,
                       node->attr[GX_GEMM_BWD_TRANS_B].i, &shape, list) ||
        !expect_of_out(list, node, "dy", value[GX_GEMM_BWD_DY], &shape, a->dtype) ||
        !expect_of_out(list, node, "y", value[GX_GEMM_BWD_Y], &shape, a->dtype) ||
        !expect_of_out(list, node, "pre", value[GX_GEMM_BWD_PRE], &shape, a->dtype) ||
        !bwd_has_operands(node, value, list))
        return;
    gx_set_shape(value[GX_GEMM_BWD_DA], a->dtype, a->rank, a->dim);
    gx_set_shape(value[GX_GEMM_BWD_DB], b->dtype, b->rank, b->dim);
    gx_set_shape(value[GX_GEMM_BWD_DC], a->dtype, shape.rank, shape.dim);
    gx_set_shape(value[GX_GEMM_BWD_DBIAS], a->dtype, 1, &shape.dim[shape.rank - 1]);
    gx_set_shape(value[GX_GEMM_BWD_DRESIDUAL], a->dtype, shape.rank, shape.dim);
}

const gx_op gx_gemm_ops[] = {
    {
        .name = "gemm",
        .summary = "matrix product, one or a batch, with an optional sum and epilogue",
        .formula = "p = alpha op(a) op(b) + beta c, op(x) = x or its transpose; "
                   "out = act(scale p + bias + residual)",
        .fields = gemm_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = gemm_infer,
        .expand = gemm_expand,
        .reference = gemm_reference,
        .grad = gx_gemm_grad,
        .flops = gemm_flops,
        .samples = gx_gemm_samples,
        /* f32: sums of up to some thousand rounded terms, about sqrt(k) 2^-24 of the
         * whole. tf32: both operands are rounded to 11 bits, 2^-11 each at most.
         * bf16: the sums are f32, the result is rounded to 8 bits: 2^-9;
         * f16: to 11, 2^-12. */
        .tolerance = { 1e-5, 2e-3, 5e-3, 7e-4 },
    },
    {
        .name = "gemm.bwd",
        .summary = "derivative of gemm with its epilogue in the fixed order",
        .formula =
            "d = dy act'; da = alpha scale d op(b)^T; db = alpha scale op(a)^T d; "
            "dc = beta scale d; dbias = sum of rows of d; dresidual = d; what a batch "
            "shares gets the sum over it",
        .fields = gemm_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = gemm_bwd_infer,
        .expand = gx_gemm_bwd_expand,
        .samples = gx_gemm_bwd_samples,
        /* As gemm; d is rounded once more in between. */
        .tolerance = { 1e-5, 2e-3, 1e-2, 1.5e-3 },
    },
    { 0 },
};
