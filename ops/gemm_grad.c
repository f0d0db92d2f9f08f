/* The derivative of a product, derived and as one op: products again. */
#include "epilogue_order.h"
#include "gemm.h"
#include "resolve.h"

enum { PRODUCT_FIELDS = 7 };

/* A derivative of out = alpha op(a) op(b) is a product of dy and the other operand. */
typedef struct product_bwd {
    const char *a, *b, *dy, *alpha;
    bool trans_a, trans_b;
    bool shares_a, shares_b; /* one for the whole batch: its gradient is a sum over it */
} product_bwd;

/* Whether one operand of a product serves the whole batch of the other. */
static bool is_shared(const gx_graph *graph, int32_t operand, int32_t other)
{
    return graph->values[operand].rank == 2 && graph->values[other].rank > 2;
}

static void product_fields(const product_bwd *of, const char *a, const char *b,
                           bool trans_a, bool trans_b, bool sum_batch,
                           gx_field_text fields[PRODUCT_FIELDS])
{
    fields[0] = (gx_field_text){ "a", a };
    fields[1] = (gx_field_text){ "b", b };
    fields[2] = (gx_field_text){ "trans_a", trans_a ? "true" : NULL };
    fields[3] = (gx_field_text){ "trans_b", trans_b ? "true" : NULL };
    fields[4] = (gx_field_text){ "alpha", of->alpha };
    fields[5] = (gx_field_text){ "sum_batch", sum_batch ? "true" : NULL };
}

/* da = dy op(b)^T, or its transpose where a is stored transposed. */
static void data_fields(const product_bwd *of, const char *out,
                        gx_field_text fields[PRODUCT_FIELDS])
{
    if (of->trans_a)
        product_fields(of, of->b, of->dy, of->trans_b, true, of->shares_a, fields);
    else
        product_fields(of, of->dy, of->b, false, !of->trans_b, of->shares_a, fields);
    fields[6] = (gx_field_text){ "out", out };
}

/* db = op(a)^T dy, or its transpose where b is stored transposed. */
static void weight_fields(const product_bwd *of, const char *out,
                          gx_field_text fields[PRODUCT_FIELDS])
{
    if (of->trans_b)
        product_fields(of, of->dy, of->a, true, of->trans_a, of->shares_b, fields);
    else
        product_fields(of, of->a, of->dy, !of->trans_a, false, of->shares_b, fields);
    fields[6] = (gx_field_text){ "out", out };
}

/* dc = beta dy: the same tensor where that is no change. */
static void contribute_c(gx_builder *builder, int32_t id, const char *dy)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t c = node->arg[GX_GEMM_C];
    const char *factor = gx_factor_text(builder, gx_factor(node, GX_GEMM_BETA));
    const char *dc = dy;

    if (c < 0 || !gx_builder_wants(builder, c))
        return;
    if (factor) {
        dc = gx_builder_gradient_name(builder, c);

        const gx_field_text fields[] = { { "x", dy },
                                         { "factor", factor },
                                         { "out", dc } };

        gx_builder_node(builder, "scale", gx_builder_name(builder, node->origin, "bwd.c"),
                        id, fields, 3);
    }
    gx_builder_contribute(builder, c, dc);
}

/* The parameter's gradient comes first: the data gradient then stands right before what
 * uses it. */
void gx_gemm_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t operand[2] = { node->arg[GX_GEMM_A], node->arg[GX_GEMM_B] };
    const product_bwd of = {
        .a = gx_builder_operand(builder, id, GX_GEMM_A),
        .b = gx_builder_operand(builder, id, GX_GEMM_B),
        .dy = gx_builder_gradient(builder, node->arg[GX_GEMM_OUT]),
        .alpha = gx_factor_text(builder, gx_factor(node, GX_GEMM_ALPHA)),
        .trans_a = node->attr[GX_GEMM_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_TRANS_B].i,
        .shares_a = is_shared(graph, operand[0], operand[1]),
        .shares_b = is_shared(graph, operand[1], operand[0]),
    };
    const bool a_is_weight = graph->values[operand[0]].kind == GX_VALUE_PARAM &&
                             graph->values[operand[1]].kind != GX_VALUE_PARAM;
    const int first = a_is_weight ? 0 : 1;
    const char *origin = node->origin;

    contribute_c(builder, id, of.dy);
    for (int i = 0; i < 2; i++) {
        const int which = i == 0 ? first : 1 - first;
        const char *out = gx_builder_wanted_name(builder, operand[which]);
        gx_field_text fields[PRODUCT_FIELDS];

        if (!out)
            continue;
        if (which == 0)
            data_fields(&of, out, fields);
        else
            weight_fields(&of, out, fields);
        gx_builder_node(
            builder, "gemm",
            gx_builder_name(builder, origin, i == 0 ? "bwd.weight" : "bwd.data"), id,
            fields, PRODUCT_FIELDS);
        gx_builder_contribute(builder, operand[which], out);
    }
}

/* --- gemm.bwd --- */

enum { MAX_PARTS = 5 };

/* One of the nodes that gemm.bwd becomes. */
typedef struct part {
    const char *op, *suffix;
    gx_field_text fields[PRODUCT_FIELDS];
    size_t n_fields;
} part;

/* d = dy act', or the sums of its rows without it. */
static part act_part(gx_builder *builder, int32_t id, const char *d, const char *dbias)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;
    const gx_act_reads reads = gx_act_reads_of[act];
    const char *y = gx_builder_operand(builder, id, GX_GEMM_BWD_Y);
    const char *pre = gx_builder_operand(builder, id, GX_GEMM_BWD_PRE);

    return (part){ "epilogue.bwd",
                   "act",
                   { { "dy", gx_builder_operand(builder, id, GX_GEMM_BWD_DY) },
                     { "y", reads == GX_ACT_READS_Y ? y : NULL },
                     { "pre", reads == GX_ACT_READS_PRE ? pre : NULL },
                     { "act", act != GX_ACT_NONE ? gx_act_names[act] : NULL },
                     { "dx", d },
                     { "dbias", dbias } },
                   6 };
}

/* The sums of the rows of d, which is a tensor of its own. */
static part bias_part(const char *d, const char *dbias)
{
    return (part){ "epilogue.bwd", "bias", { { "dy", d }, { "dbias", dbias } }, 2 };
}

/* dc = beta scale d; a copy where that is no change. */
static part c_part(gx_builder *builder, int32_t id, const char *d, const char *dc)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const char *factor = gx_factor_text(builder, gx_factor(node, GX_GEMM_BWD_BETA) *
                                                     gx_factor(node, GX_GEMM_BWD_SCALE));

    return (part){ "scale",
                   "c",
                   { { "x", d }, { "factor", factor ? factor : "1" }, { "out", dc } },
                   3 };
}

static int bwd_parts(gx_builder *builder, int32_t id, part parts[MAX_PARTS])
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t a = node->arg[GX_GEMM_BWD_A], b = node->arg[GX_GEMM_BWD_B];
    const bool has_act = node->attr[GX_GEMM_BWD_ACT].i != GX_ACT_NONE;
    const char *da = gx_builder_operand(builder, id, GX_GEMM_BWD_DA);
    const char *db = gx_builder_operand(builder, id, GX_GEMM_BWD_DB);
    const char *dc = gx_builder_operand(builder, id, GX_GEMM_BWD_DC);
    const char *dbias = gx_builder_operand(builder, id, GX_GEMM_BWD_DBIAS);
    const char *d = gx_builder_operand(builder, id, GX_GEMM_BWD_DRESIDUAL);
    int n = 0;

    if (!d && has_act && (da || db || dc))
        d = gx_builder_name(builder, node->name, "dx");

    const product_bwd of = {
        .a = gx_builder_operand(builder, id, GX_GEMM_BWD_A),
        .b = gx_builder_operand(builder, id, GX_GEMM_BWD_B),
        .dy = d ? d : gx_builder_operand(builder, id, GX_GEMM_BWD_DY),
        .alpha = gx_factor_text(builder, gx_factor(node, GX_GEMM_BWD_ALPHA) *
                                             gx_factor(node, GX_GEMM_BWD_SCALE)),
        .trans_a = node->attr[GX_GEMM_BWD_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_BWD_TRANS_B].i,
        .shares_a = is_shared(graph, a, b),
        .shares_b = is_shared(graph, b, a),
    };

    if (d)
        parts[n++] = act_part(builder, id, d, NULL);
    if (dbias)
        parts[n++] = d ? bias_part(d, dbias) : act_part(builder, id, NULL, dbias);
    if (dc)
        parts[n++] = c_part(builder, id, of.dy, dc);
    if (db) {
        parts[n] = (part){ .op = "gemm", .suffix = "weight", .n_fields = PRODUCT_FIELDS };
        weight_fields(&of, db, parts[n++].fields);
    }
    if (da) {
        parts[n] = (part){ .op = "gemm", .suffix = "data", .n_fields = PRODUCT_FIELDS };
        data_fields(&of, da, parts[n++].fields);
    }
    return n;
}

bool gx_gemm_bwd_expand(gx_builder *builder, int32_t id)
{
    const char *name = gx_builder_graph(builder)->nodes[id].name;
    part parts[MAX_PARTS];
    const int n = bwd_parts(builder, id, parts);

    for (int i = 0; i + 1 < n; i++)
        gx_builder_node(builder, parts[i].op,
                        gx_builder_name(builder, name, parts[i].suffix), id,
                        parts[i].fields, parts[i].n_fields);
    gx_builder_rewrite(builder, id, parts[n - 1].op, parts[n - 1].fields,
                       parts[n - 1].n_fields);
    return true;
}
