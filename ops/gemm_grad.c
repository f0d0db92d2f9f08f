/* The derivative of a product, derived and as one op: products again. */
#include "gemm.h"
#include "shape.h"

enum { PRODUCT_FIELDS = 6 + GX_N_PRODUCT_SIZES };

/* What one product reads or makes. `ld`: elements from row to row, or NULL where that is
 * what is used. */
typedef struct operand {
    const char *name, *ld;
} operand;

/* A derivative of out = alpha op(a) op(b) is a product of dy and the other operand. */
typedef struct product_bwd {
    operand a, b, dy;
    const char *alpha;
    const char *m, *n, *k; /* of the product that is derived */
    bool trans_a, trans_b;
    bool shares_a, shares_b; /* one for the whole batch: its gradient is a sum over it */
} product_bwd;

/* Whether one operand of a product serves the whole batch of the other. */
static bool is_shared(const gx_graph *graph, int32_t one, int32_t other)
{
    return graph->values[one].rank == 2 && graph->values[other].rank > 2;
}

static const char *ld_text(gx_builder *builder, const gx_attr *ld)
{
    return ld->present ? gx_int_text(builder, ld->i) : NULL;
}

/* But for dy: from the attributes of a gemm or gemm.bwd, whose sizes start at `first`. */
static product_bwd product_of(gx_builder *builder, int32_t id, int first)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const gx_attr *size = &node->attr[first];
    const gx_product_sizes sizes = gx_product_sizes_of(graph, node, first);
    const int32_t a = node->arg[GX_GEMM_A], b = node->arg[GX_GEMM_B];

    return (product_bwd){
        .a = { gx_builder_operand(builder, id, GX_GEMM_A),
               ld_text(builder, &size[GX_PRODUCT_LD_A]) },
        .b = { gx_builder_operand(builder, id, GX_GEMM_B),
               ld_text(builder, &size[GX_PRODUCT_LD_B]) },
        .m = gx_int_text(builder, sizes.m),
        .n = gx_int_text(builder, sizes.n),
        .k = gx_int_text(builder, sizes.k),
        .trans_a = node->attr[GX_GEMM_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_TRANS_B].i,
        .shares_a = is_shared(graph, a, b),
        .shares_b = is_shared(graph, b, a),
    };
}

/* One product of the derivative: out = op(left) op(right), m x n over k. Sizes are
 * written where rows are wider than what is used of them. */
typedef struct derived {
    operand left, right, out;
    bool trans_left, trans_right, sum_batch;
    const char *m, *n, *k;
} derived;

static void product_fields(const derived *of, const char *alpha,
                           gx_field_text fields[PRODUCT_FIELDS])
{
    const bool is_wide = of->left.ld || of->right.ld || of->out.ld;
    const gx_field_text all[PRODUCT_FIELDS] = {
        { "a", of->left.name },
        { "b", of->right.name },
        { "trans_a", of->trans_left ? "true" : NULL },
        { "trans_b", of->trans_right ? "true" : NULL },
        { "alpha", alpha },
        { "sum_batch", of->sum_batch ? "true" : NULL },
        { "m", is_wide ? of->m : NULL },
        { "n", is_wide ? of->n : NULL },
        { "k", is_wide ? of->k : NULL },
        { "ld.a", of->left.ld },
        { "ld.b", of->right.ld },
        { "ld.out", of->out.ld },
        { "out", of->out.name },
    };

    memcpy(fields, all, sizeof all);
}

/* da = dy op(b)^T, or its transpose where a is stored transposed; in rows as wide as a's,
 * whose unused columns have the gradient 0. */
static void data_fields(const product_bwd *of, const char *out,
                        gx_field_text fields[PRODUCT_FIELDS])
{
    const operand da = { out, of->a.ld };
    const derived plain = { of->dy,       of->b, da,    false, !of->trans_b,
                            of->shares_a, of->m, of->k, of->n };
    const derived turned = { of->b,        of->dy, da,    of->trans_b, true,
                             of->shares_a, of->k,  of->m, of->n };

    product_fields(of->trans_a ? &turned : &plain, of->alpha, fields);
}

/* db = op(a)^T dy, or its transpose where b is stored transposed. */
static void weight_fields(const product_bwd *of, const char *out,
                          gx_field_text fields[PRODUCT_FIELDS])
{
    const operand db = { out, of->b.ld };
    const derived plain = { of->a,        of->dy, db,    !of->trans_a, false,
                            of->shares_b, of->k,  of->n, of->m };
    const derived turned = { of->dy,       of->a, db,    true, of->trans_a,
                             of->shares_b, of->n, of->k, of->m };

    product_fields(of->trans_b ? &turned : &plain, of->alpha, fields);
}

/* --- what is done with dy and dc where rows are wider --- */

enum { ROW_FIELDS = 5 };

/* out = the first n columns of x. */
static void cut_fields(const char *x, const char *n, const char *out,
                       gx_field_text fields[ROW_FIELDS])
{
    fields[0] = (gx_field_text){ "x", x };
    fields[1] = (gx_field_text){ "out", out };
    fields[2] = (gx_field_text){ "axis", "-1" };
    fields[3] = (gx_field_text){ "stop", n };
}

/* out = the n columns of x, and zeros up to `ld`. */
static void pad_fields(const char *x, const char *n, const char *ld, const char *out,
                       gx_field_text fields[ROW_FIELDS])
{
    fields[0] = (gx_field_text){ "dy", x };
    fields[1] = (gx_field_text){ "dx", out };
    fields[2] = (gx_field_text){ "axis", "-1" };
    fields[3] = (gx_field_text){ "stop", n };
    fields[4] = (gx_field_text){ "size", ld };
}

/* dc = beta dy: the same tensor where that is no change. */
static void contribute_c(gx_builder *builder, int32_t id, const product_bwd *of)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const char *origin = graph->nodes[id].origin;
    const int32_t c = graph->nodes[id].arg[GX_GEMM_C];
    const char *factor =
        gx_factor_text(builder, gx_factor(&graph->nodes[id], GX_GEMM_BETA));
    const char *ld = ld_text(builder, &graph->nodes[id].attr[GX_GEMM_LD_C]);
    const char *dc = of->dy.name, *out;
    gx_field_text fields[ROW_FIELDS];

    if (c < 0 || !gx_builder_wants(builder, c))
        return;
    if (of->dy.ld) {
        out = factor || ld ? gx_builder_name(builder, origin, "bwd.c.used")
                           : gx_builder_gradient_name(builder, c);
        cut_fields(dc, of->n, out, fields);
        gx_builder_node(builder, "slice", gx_builder_name(builder, origin, "bwd.c.cut"),
                        id, fields, ROW_FIELDS - 1);
        dc = out;
    }
    if (factor) {
        out = ld ? gx_builder_name(builder, origin, "bwd.c.scaled")
                 : gx_builder_gradient_name(builder, c);

        const gx_field_text scale[] = { { "x", dc },
                                        { "factor", factor },
                                        { "out", out } };

        gx_builder_node(builder, "scale", gx_builder_name(builder, origin, "bwd.c"), id,
                        scale, 3);
        dc = out;
    }
    if (ld) {
        out = gx_builder_gradient_name(builder, c);
        pad_fields(dc, of->n, ld, out, fields);
        gx_builder_node(builder, "slice.bwd",
                        gx_builder_name(builder, origin, "bwd.c.pad"), id, fields,
                        ROW_FIELDS);
        dc = out;
    }
    gx_builder_contribute(builder, c, dc);
}

/* The parameter's gradient comes first: the data gradient then stands right before what
 * uses it. */
void gx_gemm_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t factor[2] = { node->arg[GX_GEMM_A], node->arg[GX_GEMM_B] };
    product_bwd of = product_of(builder, id, GX_GEMM_M);
    const bool a_is_weight = graph->values[factor[0]].kind == GX_VALUE_PARAM &&
                             graph->values[factor[1]].kind != GX_VALUE_PARAM;
    const int first = a_is_weight ? 0 : 1;
    const char *origin = node->origin;

    of.dy = (operand){ gx_builder_gradient(builder, node->arg[GX_GEMM_OUT]),
                       ld_text(builder, &node->attr[GX_GEMM_LD_OUT]) };
    of.alpha = gx_factor_text(builder, gx_factor(node, GX_GEMM_ALPHA));
    contribute_c(builder, id, &of);
    for (int i = 0; i < 2; i++) {
        const int which = i == 0 ? first : 1 - first;
        const char *out = gx_builder_wanted_name(builder, factor[which]);
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
        gx_builder_contribute(builder, factor[which], out);
    }
}

/* --- gemm.bwd --- */

enum { MAX_PARTS = 8 };

/* One of the nodes that gemm.bwd becomes. */
typedef struct part {
    const char *op, *suffix;
    gx_field_text fields[PRODUCT_FIELDS];
    size_t n_fields;
} part;

/* The gradient of the product as the parts read it, and the y that goes with it. */
typedef struct back {
    operand dy;
    const char *y;
} back;

/* d = dy act', or the sums of its rows without it. */
static part act_part(gx_builder *builder, int32_t id, const back *from, const char *d,
                     const char *dbias)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;
    const gx_act_reads reads = gx_act_reads_of[act];
    const char *pre = gx_builder_operand(builder, id, GX_GEMM_BWD_PRE);

    return (part){ "epilogue.bwd",
                   "act",
                   { { "dy", from->dy.name },
                     { "y", reads == GX_ACT_READS_Y ? from->y : NULL },
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

static part cut_part(const char *suffix, const char *x, const char *n, const char *out)
{
    part cut = { .op = "slice", .suffix = suffix, .n_fields = ROW_FIELDS - 1 };

    cut_fields(x, n, out, cut.fields);
    return cut;
}

/* Of dy and y with wide rows the columns that are used, as tensors of their own. Only
 * products read wide rows as they are. */
static int cut_parts(gx_builder *builder, int32_t id, const char *n, back *from,
                     part parts[MAX_PARTS])
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const gx_act act = (gx_act)node->attr[GX_GEMM_BWD_ACT].i;
    const char *dy = gx_builder_name(builder, node->name, "dy.used");
    int count = 0;

    parts[count++] = cut_part("dy.cut", from->dy.name, n, dy);
    from->dy = (operand){ dy, NULL };
    if (gx_act_reads_of[act] == GX_ACT_READS_Y) {
        const char *y = gx_builder_name(builder, node->name, "y.used");

        parts[count++] = cut_part("y.cut", from->y, n, y);
        from->y = y;
    }
    return count;
}

static int c_parts(gx_builder *builder, int32_t id, const product_bwd *of, const char *dc,
                   part parts[MAX_PARTS])
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const char *ld = ld_text(builder, &node->attr[GX_GEMM_BWD_LD_C]);

    if (!ld) {
        parts[0] = c_part(builder, id, of->dy.name, dc);
        return 1;
    }
    const char *narrow = gx_builder_name(builder, node->name, "dc.used");

    parts[0] = c_part(builder, id, of->dy.name, narrow);
    parts[1] = (part){ .op = "slice.bwd", .suffix = "c.pad", .n_fields = ROW_FIELDS };
    pad_fields(narrow, of->n, ld, dc, parts[1].fields);
    return 2;
}

static int bwd_parts(gx_builder *builder, int32_t id, part parts[MAX_PARTS])
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const bool has_act = node->attr[GX_GEMM_BWD_ACT].i != GX_ACT_NONE;
    const char *da = gx_builder_operand(builder, id, GX_GEMM_BWD_DA);
    const char *db = gx_builder_operand(builder, id, GX_GEMM_BWD_DB);
    const char *dc = gx_builder_operand(builder, id, GX_GEMM_BWD_DC);
    const char *dbias = gx_builder_operand(builder, id, GX_GEMM_BWD_DBIAS);
    const char *d = gx_builder_operand(builder, id, GX_GEMM_BWD_DRESIDUAL);
    product_bwd of = product_of(builder, id, GX_GEMM_BWD_M);
    back from = { { gx_builder_operand(builder, id, GX_GEMM_BWD_DY),
                    ld_text(builder, &node->attr[GX_GEMM_BWD_LD_OUT]) },
                  gx_builder_operand(builder, id, GX_GEMM_BWD_Y) };
    int n = 0;

    if (!d && has_act && (da || db || dc))
        d = gx_builder_name(builder, node->name, "dx");
    if (from.dy.ld && (d || dbias || dc))
        n = cut_parts(builder, id, of.n, &from, parts);
    of.dy = d ? (operand){ d, NULL } : from.dy;
    of.alpha = gx_factor_text(builder, gx_factor(node, GX_GEMM_BWD_ALPHA) *
                                           gx_factor(node, GX_GEMM_BWD_SCALE));

    if (d)
        parts[n++] = act_part(builder, id, &from, d, NULL);
    if (dbias)
        parts[n++] = d ? bias_part(d, dbias) : act_part(builder, id, &from, NULL, dbias);
    if (dc)
        n += c_parts(builder, id, &of, dc, parts + n);
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
