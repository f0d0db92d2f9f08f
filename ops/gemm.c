/* Matrix products: gemm with an optional epilogue, and its derivative in one op. */
#include "gemm.h"

#include "infer.h"
#include "product.h"
#include "samples.h"
#include "shape.h"

/* Sizes and rows, as both rows of the catalogue have them; `of_c` and `of_out` say whose
 * rows ld.c and ld.out are. */
#define PRODUCT_SIZE_FIELDS(of_c, of_out)                                                     \
    {                                                                                         \
        "m",   GX_FIELD_INT,                                                                  \
        false, NULL,                                                                          \
        NULL,  "rows of the product: expected where a has ld.a and is stored transposed"      \
    },                                                                                        \
        { "n",   GX_FIELD_INT,                                                                \
          false, NULL,                                                                        \
          NULL,  "columns of the product: expected where b has ld.b and is not transposed" }, \
        { "k",   GX_FIELD_INT,                                                                \
          false, NULL,                                                                        \
          NULL,  "the inner size: expected where neither a nor b says it by its rows" },      \
        { "ld.a",                                                                             \
          GX_FIELD_INT,                                                                       \
          false,                                                                              \
          NULL,                                                                               \
          NULL,                                                                               \
          "elements from one row of a to the next, its last size; the product uses the "      \
          "first columns of a alone" },                                                       \
        { "ld.b", GX_FIELD_INT, false, NULL, NULL, "the same of b" },                         \
        { "ld.c", GX_FIELD_INT, false, NULL, NULL, of_c },                                    \
    {                                                                                         \
        "ld.out", GX_FIELD_INT, false, NULL, NULL, of_out                                     \
    }

static const gx_field gemm_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL,
      "[..., m, k], or [..., k, m] with trans_a; without leading dimensions one for the "
      "whole batch of b" },
    { "b", GX_FIELD_IN, true, NULL, NULL,
      "[..., k, n], or [..., n, k] with trans_b; its leading dimensions are those of a, "
      "or it has none: one for the whole batch" },
    { "c", GX_FIELD_IN, false, NULL, NULL, "[..., m, n], added to the product" },
    { "epilogue.bias", GX_FIELD_IN, false, NULL, NULL, "[n], added to each row" },
    { "epilogue.residual", GX_FIELD_IN, false, NULL, NULL, "like the product, added" },
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
    PRODUCT_SIZE_FIELDS("the same of c",
                        "elements from one row of out to the next, which becomes its "
                        "last size; zeros follow the n columns of each row"),
    { 0 },
};

static const gx_field gemm_bwd_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "b", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "dy", GX_FIELD_IN, true, NULL, NULL, "[..., m, n], gradient of the gemm's out" },
    { "y", GX_FIELD_IN, false, NULL, NULL,
      "like dy, the gemm's out; relu, tanh and sigmoid need it" },
    { "pre", GX_FIELD_IN, false, NULL, NULL,
      "[..., m, n], what the activation was applied to; gelu_tanh, gelu_erf and silu "
      "need "
      "it" },
    { "da", GX_FIELD_OUT, false, NULL, NULL, "gradient of a" },
    { "db", GX_FIELD_OUT, false, NULL, NULL, "gradient of b" },
    { "dc", GX_FIELD_OUT, false, NULL, NULL, "[..., m, n], gradient of c" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n], gradient of the bias" },
    { "dresidual", GX_FIELD_OUT, false, NULL, NULL,
      "[..., m, n], gradient of the residual" },
    { "trans_a", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "trans_b", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "alpha", GX_FIELD_REAL, false, "1", NULL, "as in the gemm" },
    { "beta", GX_FIELD_REAL, false, NULL, NULL, "as in the gemm" },
    { "epilogue.act", GX_FIELD_ENUM, false, "none", gx_act_names, "as in the gemm" },
    { "epilogue.scale", GX_FIELD_REAL, false, NULL, NULL, "as in the gemm" },
    PRODUCT_SIZE_FIELDS("of dc: zeros follow its n columns",
                        "of dy and y, of which the first n columns are used"),
    { 0 },
};

gx_epilogue_steps gx_gemm_steps(const gx_node *node)
{
    return (gx_epilogue_steps){
        .has = { [GX_EPILOGUE_STEP_SCALE] = node->attr[GX_GEMM_SCALE].present,
                 [GX_EPILOGUE_STEP_BIAS] = node->arg[GX_GEMM_BIAS] >= 0,
                 [GX_EPILOGUE_STEP_RESIDUAL] = node->arg[GX_GEMM_RESIDUAL] >= 0,
                 [GX_EPILOGUE_STEP_ACT] = node->attr[GX_GEMM_ACT].i != GX_ACT_NONE },
        .order = &node->attr[GX_GEMM_ORDER],
    };
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

/* Every size and every row as text, where rows are wider than what is used. */
static void size_fields(gx_builder *builder, const gx_node *node,
                        gx_field_text fields[GX_N_PRODUCT_SIZES])
{
    const gx_product_sizes sizes =
        gx_product_sizes_of(gx_builder_graph(builder), node, GX_GEMM_M);
    const int64_t by_size[] = { sizes.m, sizes.n, sizes.k };
    const gx_attr *size = &node->attr[GX_GEMM_M];
    const bool is_wide = gx_has_wide_rows(size);

    for (int i = 0; i < GX_N_PRODUCT_SIZES; i++) {
        fields[i] = (gx_field_text){ gx_product_size_keys[i], NULL };
        if (is_wide && i <= GX_PRODUCT_K)
            fields[i].text = gx_int_text(builder, by_size[i]);
        else if (is_wide && size[i].present)
            fields[i].text = gx_int_text(builder, size[i].i);
    }
}

/* Rows of the product are widened last where an op stands behind it: the same gemm with
 * rows of n columns, and zeros behind them. */
static void widen(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_product_sizes sizes =
        gx_product_sizes_of(gx_builder_graph(builder), node, GX_GEMM_M);
    const char *narrow = gx_builder_name(builder, node->name, "narrow");
    gx_field_text fields[GX_MAX_ARGS + GX_MAX_ATTRS + GX_N_EPILOGUE_STEPS];
    const gx_field_text wide[] = {
        { "dy", narrow },
        { "dx", gx_builder_operand(builder, id, GX_GEMM_OUT) },
        { "axis", "-1" },
        { "stop", gx_int_text(builder, sizes.n) },
        { "size", gx_int_text(builder, node->attr[GX_GEMM_LD_OUT].i) },
    };
    size_t n = 0;

    for (int f = 0; f < node->n_fields && n + 1 < sizeof fields / sizeof fields[0]; f++) {
        const gx_field_value *field = &node->fields[f];

        if (strcmp(field->key, "out") != 0 && strcmp(field->key, "ld.out") != 0)
            fields[n++] = (gx_field_text){ field->key, field->text };
    }
    fields[n++] = (gx_field_text){ "out", narrow };
    gx_builder_node(builder, "gemm", narrow, id, fields, n);
    gx_builder_rewrite(builder, id, "slice.bwd", wide, sizeof wide / sizeof wide[0]);
}

/* Nothing stands behind the product, and what is left open is written out. */
static bool is_final(const gx_node *node, const gx_epilogue_chain *chain)
{
    const gx_attr *size = &node->attr[GX_GEMM_M];

    return chain->n == 0 && (!gx_has_wide_rows(size) ||
                             (size[GX_PRODUCT_M].present && size[GX_PRODUCT_N].present &&
                              size[GX_PRODUCT_K].present));
}

static bool gemm_expand(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_epilogue_steps steps = gx_gemm_steps(node);
    const gx_act act = (gx_act)node->attr[GX_GEMM_ACT].i;
    gx_epilogue_chain chain = gx_epilogue_split(&steps);
    product_sum sum = { gx_factor(node, GX_GEMM_ALPHA), gx_factor(node, GX_GEMM_BETA),
                        gx_builder_operand(builder, id, GX_GEMM_C) };

    if (is_final(node, &chain))
        return false;
    take_into_product(&chain, gx_factor(node, GX_GEMM_SCALE),
                      gx_builder_operand(builder, id, GX_GEMM_RESIDUAL), &sum);
    if (chain.n > 0 && node->attr[GX_GEMM_LD_OUT].present) {
        widen(builder, id);
        return true;
    }

    const gx_epilogue_operands operands = {
        .x = chain.n > 0 ? gx_builder_name(builder, node->name, "product") : NULL,
        .bias = gx_builder_operand(builder, id, GX_GEMM_BIAS),
        .residual = gx_builder_operand(builder, id, GX_GEMM_RESIDUAL),
        .out = gx_builder_operand(builder, id, GX_GEMM_OUT),
        .act = act != GX_ACT_NONE ? gx_act_names[act] : NULL,
        .scale = gx_factor_text(builder, gx_factor(node, GX_GEMM_SCALE)),
    };
    enum { OTHERS = 9 };
    gx_field_text gemm[OTHERS + GX_N_PRODUCT_SIZES] = {
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

    size_fields(builder, node, gemm + OTHERS);
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

/* The sizes of a bound product; an expanded gemm has them where its operands do not say
 * them. */
static gx_product_sizes sizes_of(const gx_call *call)
{
    const gx_tensor *a = &call->arg[GX_GEMM_A], *out = &call->arg[GX_GEMM_OUT];
    const gx_attr *size = &call->attr[GX_GEMM_M];

    return (gx_product_sizes){
        .m = out->dim[out->rank - 2],
        .n = size[GX_PRODUCT_N].present ? size[GX_PRODUCT_N].i : out->dim[out->rank - 1],
        .k = size[GX_PRODUCT_K].present
                 ? size[GX_PRODUCT_K].i
                 : a->dim[a->rank - 2 + !call->attr[GX_GEMM_TRANS_A].i],
    };
}

/* out = alpha out + beta c in the first n columns, zeros behind them; c is not read where
 * its factor is 0. */
static void finish_product(const gx_call *call, int64_t n)
{
    const double alpha = gx_call_factor(call, GX_GEMM_ALPHA);
    const double beta = gx_call_factor(call, GX_GEMM_BETA);
    const gx_tensor *of_c = &call->arg[GX_GEMM_C], *out = &call->arg[GX_GEMM_OUT];
    const int64_t out_row = out->dim[out->rank - 1];
    const int64_t c_row = gx_has(call, GX_GEMM_C) ? of_c->dim[of_c->rank - 1] : 0;
    const int64_t n_rows = batch_of(out) * out->dim[out->rank - 2];

    for (int64_t i = 0; i < n_rows; i++) {
        double *to = (double *)out->data + i * out_row;
        const double *c = gx_has(call, GX_GEMM_C) && beta != 0.0
                              ? (const double *)of_c->data + i * c_row
                              : NULL;

        for (int64_t j = 0; (c || alpha != 1.0) && j < n; j++)
            to[j] = c ? alpha * to[j] + beta * c[j] : alpha * to[j];
        for (int64_t j = n; j < out_row; j++)
            to[j] = 0.0;
    }
}

static gx_status gemm_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *a = &call->arg[GX_GEMM_A], *b = &call->arg[GX_GEMM_B];
    const gx_tensor *out = &call->arg[GX_GEMM_OUT];
    const bool trans_a = call->attr[GX_GEMM_TRANS_A].i;
    const bool trans_b = call->attr[GX_GEMM_TRANS_B].i;
    const bool sum_batch = call->attr[GX_GEMM_SUM_BATCH].i;
    const gx_product_sizes size = sizes_of(call);
    const int64_t row = out->dim[out->rank - 1];
    const int64_t n_batches = batch_of(a->rank > 2 ? a : b);
    double *to = out->data;

    (void)err;
    if (sum_batch && n_batches == 0)
        gx_product(size.m, size.n, 0, matrix_at(a, trans_a, 0), matrix_at(b, trans_b, 0),
                   to, row);
    for (int64_t i = 0; i < n_batches; i++) {
        const gx_matrix left = matrix_at(a, trans_a, i), right = matrix_at(b, trans_b, i);

        if (sum_batch && i > 0)
            gx_product_add(size.m, size.n, size.k, left, right, to, row);
        else
            gx_product(size.m, size.n, size.k, left, right,
                       sum_batch ? to : to + i * size.m * row, row);
    }
    finish_product(call, size.n);
    return GX_OK;
}

/* --- cost --- */

/* Elements of the product, without what stands behind its columns. */
static double product_elements(const gx_graph *graph, const gx_node *node)
{
    const gx_value *out = &graph->values[node->arg[GX_GEMM_OUT]];
    double n = (double)gx_product_sizes_of(graph, node, GX_GEMM_M).n;

    for (int i = 0; i + 1 < out->rank; i++)
        n *= (double)out->dim[i];
    return n;
}

/* A product and a sum for each term; alpha and c count as one operation each. */
static double gemm_flops(const gx_graph *graph, const gx_node *node)
{
    const gx_value *b = &graph->values[node->arg[GX_GEMM_B]];
    double terms = (double)gx_product_sizes_of(graph, node, GX_GEMM_M).k;

    for (int i = 0; node->attr[GX_GEMM_SUM_BATCH].i && i + 2 < b->rank; i++)
        terms *= (double)b->dim[i];
    return product_elements(graph, node) *
           (2.0 * terms + (gx_factor(node, GX_GEMM_ALPHA) != 1.0) +
            2.0 * (node->arg[GX_GEMM_C] >= 0));
}

/* Elements of operand `arg` in its first `columns` columns. */
static double used_elements(const gx_graph *graph, const gx_node *node, int arg,
                            int64_t columns)
{
    if (node->arg[arg] < 0)
        return 0;
    const gx_value *value = &graph->values[node->arg[arg]];
    double n = (double)columns;

    for (int i = 0; i + 1 < value->rank; i++)
        n *= (double)value->dim[i];
    return n;
}

/* Of wide rows only what is used is read; out is written whole. */
static double gemm_bytes(const gx_graph *graph, const gx_node *node)
{
    const gx_product_sizes size = gx_product_sizes_of(graph, node, GX_GEMM_M);
    const double n = used_elements(graph, node, GX_GEMM_A,
                                   node->attr[GX_GEMM_TRANS_A].i ? size.m : size.k) +
                     used_elements(graph, node, GX_GEMM_B,
                                   node->attr[GX_GEMM_TRANS_B].i ? size.k : size.n) +
                     used_elements(graph, node, GX_GEMM_C, size.n) +
                     gx_elements(graph, node, GX_GEMM_BIAS) +
                     gx_elements(graph, node, GX_GEMM_RESIDUAL) +
                     gx_elements(graph, node, GX_GEMM_OUT);

    return n * (double)gx_dtype_bytes(graph->values[node->arg[GX_GEMM_OUT]].dtype);
}

const gx_op gx_gemm_ops[] = {
    {
        .name = "gemm",
        .summary = "matrix product, one or a batch, with an optional sum and epilogue",
        .formula = "p = alpha op(a) op(b) + beta c, op(x) = x or its transpose; "
                   "out = act(scale p + bias + residual)",
        .fields = gemm_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_PRODUCT,
        .infer = gx_gemm_infer,
        .expand = gemm_expand,
        .reference = gemm_reference,
        .grad = gx_gemm_grad,
        .flops = gemm_flops,
        .bytes = gemm_bytes,
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
        .infer = gx_gemm_bwd_infer,
        .expand = gx_gemm_bwd_expand,
        .samples = gx_gemm_bwd_samples,
        /* As gemm; d is rounded once more in between. */
        .tolerance = { 1e-5, 2e-3, 1e-2, 1.5e-3 },
    },
    { 0 },
};
