/* Matrix products: gemm with an optional epilogue, and its derivative in one op. */
#include "infer.h"
#include "product.h"
#include "resolve.h"
#include "samples.h"

static const gx_field gemm_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "[m, k], or [k, m] with trans_a" },
    { "b", GX_FIELD_IN, true, NULL, NULL, "[k, n], or [n, k] with trans_b" },
    { "epilogue.bias", GX_FIELD_IN, false, NULL, NULL, "[n], added to each row" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "[m, n]" },
    { "trans_a", GX_FIELD_BOOL, false, "false", NULL, "a is stored transposed" },
    { "trans_b", GX_FIELD_BOOL, false, "false", NULL, "b is stored transposed" },
    { "epilogue.act", GX_FIELD_ENUM, false, "none", gx_act_names, "applied last" },
    { 0 },
};

static const gx_field gemm_bwd_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "b", GX_FIELD_IN, true, NULL, NULL, "as in the gemm" },
    { "dy", GX_FIELD_IN, true, NULL, NULL, "[m, n], gradient of the gemm's out" },
    { "y", GX_FIELD_IN, false, NULL, NULL,
      "[m, n], the gemm's out; relu, tanh and sigmoid need it" },
    { "pre", GX_FIELD_IN, false, NULL, NULL,
      "[m, n], what the activation was applied to; gelu_tanh, gelu_erf and silu need "
      "it" },
    { "da", GX_FIELD_OUT, false, NULL, NULL, "gradient of a" },
    { "db", GX_FIELD_OUT, false, NULL, NULL, "gradient of b" },
    { "dbias", GX_FIELD_OUT, false, NULL, NULL, "[n], gradient of the bias" },
    { "trans_a", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "trans_b", GX_FIELD_BOOL, false, "false", NULL, "as in the gemm" },
    { "epilogue.act", GX_FIELD_ENUM, false, "none", gx_act_names, "as in the gemm" },
    { 0 },
};

/* Sizes of op(a) op(b). */
typedef struct sizes {
    int64_t m, n, k;
} sizes;

static bool infer_sizes(const gx_node *node, const gx_value *a, const gx_value *b,
                        bool trans_a, bool trans_b, sizes *size, gx_diagnostics *list)
{
    if (!gx_expect_float(list, node, "a", a) || !gx_expect_rank(list, node, "a", a, 2) ||
        !gx_expect_rank(list, node, "b", b, 2) ||
        !gx_expect_dtype(list, node, "b", b, a->dtype))
        return false;
    *size = (sizes){ a->dim[trans_a], b->dim[!trans_b], a->dim[!trans_a] };
    if (size->k != b->dim[trans_b]) {
        gx_misfit(list, node, "b",
                  "a is [%lld, %lld]%s and b is [%lld, %lld]%s: the inner sizes %lld and "
                  "%lld differ",
                  (long long)a->dim[0], (long long)a->dim[1],
                  trans_a ? " transposed" : "", (long long)b->dim[0],
                  (long long)b->dim[1], trans_b ? " transposed" : "", (long long)size->k,
                  (long long)b->dim[trans_b]);
        return false;
    }
    if (size->m > 0 && size->n > GX_LIMIT_ELEMENTS / size->m) {
        gx_misfit(list, node, "a", "the product [%lld, %lld] has more than %lld elements",
                  (long long)size->m, (long long)size->n, (long long)GX_LIMIT_ELEMENTS);
        return false;
    }
    return true;
}

static void gemm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *a = value[GX_GEMM_A];
    const gx_value *bias = value[GX_GEMM_BIAS];
    sizes size;

    (void)graph;
    if (!infer_sizes(node, a, value[GX_GEMM_B], node->attr[GX_GEMM_TRANS_A].i,
                     node->attr[GX_GEMM_TRANS_B].i, &size, list))
        return;
    if (bias && !(gx_expect_like(list, node, "epilogue.bias", bias, 1, &size.n) &&
                  gx_expect_dtype(list, node, "epilogue.bias", bias, a->dtype)))
        return;
    gx_set_shape(value[GX_GEMM_OUT], a->dtype, 2, (const int64_t[]){ size.m, size.n });
}

static bool gemm_expand(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_act act = (gx_act)node->attr[GX_GEMM_ACT].i;
    const char *bias = gx_builder_operand(builder, id, GX_GEMM_BIAS);
    const char *out = gx_builder_operand(builder, id, GX_GEMM_OUT);

    if (act == GX_ACT_NONE && !bias)
        return false;

    const char *product = gx_builder_name(builder, node->name, "product");
    const gx_field_text gemm[] = {
        { "a", gx_builder_operand(builder, id, GX_GEMM_A) },
        { "b", gx_builder_operand(builder, id, GX_GEMM_B) },
        { "trans_a", node->attr[GX_GEMM_TRANS_A].i ? "true" : NULL },
        { "trans_b", node->attr[GX_GEMM_TRANS_B].i ? "true" : NULL },
        { "out", product },
    };
    const gx_field_text epilogue[] = {
        { "x", product },
        { "bias", bias },
        { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
        { "out", out },
    };

    gx_builder_node(builder, "gemm", product, id, gemm, 5);
    gx_builder_rewrite(builder, id, "epilogue", epilogue, 4);
    return true;
}

static gx_status gemm_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *a = &call->arg[GX_GEMM_A];
    const gx_tensor *b = &call->arg[GX_GEMM_B];
    const gx_tensor *out = &call->arg[GX_GEMM_OUT];
    const bool trans_a = call->attr[GX_GEMM_TRANS_A].i;
    const bool trans_b = call->attr[GX_GEMM_TRANS_B].i;
    const gx_matrix left = { a->data, trans_a ? 1 : a->dim[1], trans_a ? a->dim[1] : 1 };
    const gx_matrix right = { b->data, trans_b ? 1 : b->dim[1], trans_b ? b->dim[1] : 1 };

    (void)err;
    gx_product(out->dim[0], out->dim[1], a->dim[!trans_a], left, right, out->data);
    return GX_OK;
}

static double gemm_flops(const gx_graph *graph, const gx_node *node)
{
    const gx_value *a = &graph->values[node->arg[GX_GEMM_A]];

    return 2.0 * gx_elements(graph, node, GX_GEMM_OUT) *
           (double)a->dim[!node->attr[GX_GEMM_TRANS_A].i];
}

/* A derivative of out = op(a) op(b) is a product of dy and the other operand. */
typedef struct product_bwd {
    const char *a, *b, *dy;
    bool trans_a, trans_b;
} product_bwd;

/* da = dy op(b)^T, or its transpose where a is stored transposed. */
static gx_field_text *data_fields(const product_bwd *of, const char *out,
                                  gx_field_text fields[5])
{
    const gx_field_text straight[] = { { "a", of->dy },
                                       { "b", of->b },
                                       { "trans_a", NULL },
                                       { "trans_b", of->trans_b ? NULL : "true" },
                                       { "out", out } };
    const gx_field_text turned[] = { { "a", of->b },
                                     { "b", of->dy },
                                     { "trans_a", of->trans_b ? "true" : NULL },
                                     { "trans_b", "true" },
                                     { "out", out } };

    for (int i = 0; i < 5; i++)
        fields[i] = of->trans_a ? turned[i] : straight[i];
    return fields;
}

/* db = op(a)^T dy, or its transpose where b is stored transposed. */
static gx_field_text *weight_fields(const product_bwd *of, const char *out,
                                    gx_field_text fields[5])
{
    const gx_field_text straight[] = { { "a", of->a },
                                       { "b", of->dy },
                                       { "trans_a", of->trans_a ? NULL : "true" },
                                       { "trans_b", NULL },
                                       { "out", out } };
    const gx_field_text turned[] = { { "a", of->dy },
                                     { "b", of->a },
                                     { "trans_a", "true" },
                                     { "trans_b", of->trans_a ? "true" : NULL },
                                     { "out", out } };

    for (int i = 0; i < 5; i++)
        fields[i] = of->trans_b ? turned[i] : straight[i];
    return fields;
}

/* The parameter's gradient comes first: the data gradient then stands right before what
 * uses it. */
static void gemm_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t operand[2] = { node->arg[GX_GEMM_A], node->arg[GX_GEMM_B] };
    const product_bwd of = {
        .a = gx_builder_operand(builder, id, GX_GEMM_A),
        .b = gx_builder_operand(builder, id, GX_GEMM_B),
        .dy = gx_builder_gradient(builder, node->arg[GX_GEMM_OUT]),
        .trans_a = node->attr[GX_GEMM_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_TRANS_B].i,
    };
    const bool a_is_weight = graph->values[operand[0]].kind == GX_VALUE_PARAM &&
                             graph->values[operand[1]].kind != GX_VALUE_PARAM;
    const int first = a_is_weight ? 0 : 1;
    const char *origin = node->origin;

    for (int i = 0; i < 2; i++) {
        const int which = i == 0 ? first : 1 - first;
        const char *out = gx_builder_wanted_name(builder, operand[which]);
        gx_field_text fields[5];

        if (!out)
            continue;
        gx_builder_node(
            builder, "gemm",
            gx_builder_name(builder, origin, i == 0 ? "bwd.weight" : "bwd.data"), id,
            which == 0 ? data_fields(&of, out, fields) : weight_fields(&of, out, fields),
            5);
        gx_builder_contribute(builder, operand[which], out);
    }
}

static bool bwd_has_operands(const gx_node *node, gx_value **value, gx_diagnostics *list)
{
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;

    if (!gx_expect_act_operand(list, node, "epilogue.act", act, value[GX_GEMM_BWD_Y],
                               value[GX_GEMM_BWD_PRE]))
        return false;
    if (!value[GX_GEMM_BWD_DA] && !value[GX_GEMM_BWD_DB] && !value[GX_GEMM_BWD_DBIAS]) {
        gx_misfit(list, node, NULL, "it makes nothing: expected da, db or dbias");
        return false;
    }
    return true;
}

static void gemm_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                           gx_diagnostics *list)
{
    static const struct {
        const char *key;
        int arg;
    } like_out[] = { { "dy", GX_GEMM_BWD_DY },
                     { "y", GX_GEMM_BWD_Y },
                     { "pre", GX_GEMM_BWD_PRE } };
    const gx_value *a = value[GX_GEMM_BWD_A];
    const gx_value *b = value[GX_GEMM_BWD_B];
    sizes size;

    (void)graph;
    if (!infer_sizes(node, a, b, node->attr[GX_GEMM_BWD_TRANS_A].i,
                     node->attr[GX_GEMM_BWD_TRANS_B].i, &size, list))
        return;
    for (int i = 0; i < 3; i++) {
        const gx_value *at = value[like_out[i].arg];

        if (at && !(gx_expect_like(list, node, like_out[i].key, at, 2,
                                   (const int64_t[]){ size.m, size.n }) &&
                    gx_expect_dtype(list, node, like_out[i].key, at, a->dtype)))
            return;
    }
    if (!bwd_has_operands(node, value, list))
        return;
    gx_set_shape(value[GX_GEMM_BWD_DA], a->dtype, 2, a->dim);
    gx_set_shape(value[GX_GEMM_BWD_DB], b->dtype, 2, b->dim);
    gx_set_shape(value[GX_GEMM_BWD_DBIAS], a->dtype, 1, &size.n);
}

/* One of up to three nodes that gemm.bwd becomes. */
typedef struct part {
    const char *op, *suffix;
    gx_field_text fields[6];
    size_t n_fields;
} part;

static int bwd_parts(gx_builder *builder, int32_t id, part parts[3])
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;
    const char *da = gx_builder_operand(builder, id, GX_GEMM_BWD_DA);
    const char *db = gx_builder_operand(builder, id, GX_GEMM_BWD_DB);
    const char *dbias = gx_builder_operand(builder, id, GX_GEMM_BWD_DBIAS);
    const char *dy = gx_builder_operand(builder, id, GX_GEMM_BWD_DY);
    const char *dx = act != GX_ACT_NONE && (da || db)
                         ? gx_builder_name(builder, node->name, "dx")
                         : NULL;
    const product_bwd of = {
        .a = gx_builder_operand(builder, id, GX_GEMM_BWD_A),
        .b = gx_builder_operand(builder, id, GX_GEMM_BWD_B),
        .dy = dx ? dx : dy,
        .trans_a = node->attr[GX_GEMM_BWD_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_BWD_TRANS_B].i,
    };
    int n = 0;

    if (dx || dbias) {
        const gx_act_reads reads = gx_act_reads_of[act];
        const char *y = gx_builder_operand(builder, id, GX_GEMM_BWD_Y);
        const char *pre = gx_builder_operand(builder, id, GX_GEMM_BWD_PRE);

        parts[n++] = (part){ "epilogue.bwd",
                             "act",
                             { { "dy", dy },
                               { "y", reads == GX_ACT_READS_Y ? y : NULL },
                               { "pre", reads == GX_ACT_READS_PRE ? pre : NULL },
                               { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
                               { "dx", dx },
                               { "dbias", dbias } },
                             6 };
    }
    if (db) {
        parts[n] = (part){ .op = "gemm", .suffix = "weight", .n_fields = 5 };
        weight_fields(&of, db, parts[n++].fields);
    }
    if (da) {
        parts[n] = (part){ .op = "gemm", .suffix = "data", .n_fields = 5 };
        data_fields(&of, da, parts[n++].fields);
    }
    return n;
}

static bool gemm_bwd_expand(gx_builder *builder, int32_t id)
{
    const char *name = gx_builder_graph(builder)->nodes[id].name;
    part parts[3];
    const int n = bwd_parts(builder, id, parts);

    for (int i = 0; i + 1 < n; i++)
        gx_builder_node(builder, parts[i].op,
                        gx_builder_name(builder, name, parts[i].suffix), id,
                        parts[i].fields, parts[i].n_fields);
    gx_builder_rewrite(builder, id, parts[n - 1].op, parts[n - 1].fields,
                       parts[n - 1].n_fields);
    return true;
}

const gx_op gx_gemm_ops[] = {
    {
        .name = "gemm",
        .summary = "matrix product, with an optional bias and activation",
        .formula = "out = act(op(a) op(b) + bias), op(x) = x or its transpose",
        .fields = gemm_fields,
        .phase = GX_PHASE_FORWARD,
        .infer = gemm_infer,
        .expand = gemm_expand,
        .reference = gemm_reference,
        .grad = gemm_grad,
        .flops = gemm_flops,
        .samples = gx_gemm_samples,
        /* f32: sums of up to some thousand rounded terms, about sqrt(k) 2^-24 of the
         * whole. tf32: both operands are rounded to 11 bits, 2^-11 each at most.
         * bf16: the sums are f32, the result is rounded to 8 bits: 2^-9. */
        .tolerance = { 1e-5, 2e-3, 5e-3, 7e-4 },
    },
    {
        .name = "gemm.bwd",
        .summary = "derivative of gemm with its bias and activation",
        .formula =
            "d = dy act'; da = d op(b)^T; db = op(a)^T d; dbias = sum of rows of d",
        .fields = gemm_bwd_fields,
        .phase = GX_PHASE_BACKWARD,
        .infer = gemm_bwd_infer,
        .expand = gemm_bwd_expand,
        .samples = gx_gemm_bwd_samples,
        /* As gemm; d is rounded once more in between. */
        .tolerance = { 1e-5, 2e-3, 1e-2, 1.5e-3 },
    },
    { 0 },
};
