/* The shapes of the products: sizes, the rows of operands that are stored wider, and what
 * does not fit. */
#include "gemm.h"

#include "infer.h"

/* The fields of both rows stand in this order from GX_GEMM_M and GX_GEMM_BWD_M on. */
_Static_assert(GX_GEMM_M + GX_PRODUCT_LD_OUT == GX_GEMM_LD_OUT &&
                   GX_GEMM_BWD_M + GX_PRODUCT_LD_OUT == GX_GEMM_BWD_LD_OUT,
               "one order for both");

const char *const gx_product_size_keys[GX_N_PRODUCT_SIZES] = { "m",     "n",    "k",
                                                               "ld.a",  "ld.b", "ld.c",
                                                               "ld.out" };

/* A product: its operands and attributes, its shape, and the size that is summed over. */
typedef struct product_shape {
    const gx_node *node;
    gx_diagnostics *list;
    const gx_attr *size; /* by gx_product_size */
    const gx_value *a, *b;
    bool trans_a, trans_b;
    const char *like_c, *like_out; /* fields whose rows ld.c and ld.out are */
    int rank;
    int64_t dim[GX_MAX_RANK], k;
} product_shape;

static bool expect_matrices(const product_shape *p, const char *key,
                            const gx_value *value)
{
    if (value->rank >= 2)
        return true;
    return gx_expect_rank(p->list, p->node, key, value, 2);
}

static void report_two(const product_shape *p, const char *what)
{
    char of_a[GX_SHAPE_TEXT], of_b[GX_SHAPE_TEXT];

    gx_misfit(p->list, p->node, "b", "a has shape %s and b has shape %s: %s",
              gx_shape_text(p->a->rank, p->a->dim, of_a, sizeof of_a),
              gx_shape_text(p->b->rank, p->b->dim, of_b, sizeof of_b), what);
}

/* The leading dimensions: of both, or of the one that has some. */
static bool infer_batch(product_shape *p)
{
    const gx_value *a = p->a, *b = p->b, *wide = a->rank > 2 ? a : b;
    bool same = a->rank == b->rank;

    for (int i = 0; same && i < a->rank - 2; i++)
        same = a->dim[i] == b->dim[i];
    if (!same && a->rank > 2 && b->rank > 2) {
        report_two(p, "the leading dimensions differ, expected the same ones, or none in "
                      "one of the two");
        return false;
    }
    p->rank = wide->rank;
    for (int i = 0; i < wide->rank - 2; i++)
        p->dim[i] = wide->dim[i];
    return true;
}

static bool within_limit(const product_shape *p, const char *key, int64_t row)
{
    char text[GX_SHAPE_TEXT];
    int64_t dim[GX_MAX_RANK], n = 1;

    memcpy(dim, p->dim, sizeof dim);
    dim[p->rank - 1] = row;
    for (int i = 0; i < p->rank; i++) {
        if (dim[i] > 0 && n > GX_LIMIT_ELEMENTS / dim[i]) {
            gx_misfit(p->list, p->node, key, "the product %s has more than %lld elements",
                      gx_shape_text(p->rank, dim, text, sizeof text),
                      (long long)GX_LIMIT_ELEMENTS);
            return false;
        }
        n *= dim[i];
        if (n == 0)
            return true;
    }
    return true;
}

/* --- rows that are wider than what is used of them --- */

/* Where `ld` is written, the operand is declared with rows of that length. */
static bool expect_row(const product_shape *p, gx_product_size ld, const char *key,
                       const gx_value *value)
{
    const char *field = gx_product_size_keys[ld];

    if (!p->size[ld].present)
        return true;
    if (!value) {
        gx_misfit(p->list, p->node, field, "%s is given, and there is no field \"%s\"",
                  field, key);
        return false;
    }
    if (value->rank < 2)
        return gx_expect_rank(p->list, p->node, key, value, 2);
    const int64_t row = value->dim[value->rank - 1];

    if (p->size[ld].i == row)
        return true;
    gx_misfit(p->list, p->node, field,
              "%s is %lld, expected %lld, the last size of %s: rows lie as far apart as "
              "the tensor is wide",
              field, (long long)p->size[ld].i, (long long)row, key);
    return false;
}

static bool expect_width(const product_shape *p, gx_product_size ld, const char *key,
                         int64_t used)
{
    const char *field = gx_product_size_keys[ld];

    if (!p->size[ld].present || p->size[ld].i >= used)
        return true;
    gx_misfit(p->list, p->node, field,
              "%s is %lld, expected %lld or more: that many columns of %s are used",
              field, (long long)p->size[ld].i, (long long)used, key);
    return false;
}

/* --- m, n and k --- */

/* What an operand says of a size: `last` are its last two, `at` is 0 for the rows, 1 for
 * the columns, which say nothing where the rows are wider. -1: nothing. */
static int64_t size_in(const product_shape *p, const gx_value *value, int at,
                       gx_product_size ld)
{
    return at == 1 && p->size[ld].present ? -1 : value->dim[value->rank - 2 + at];
}

static bool choose_size(const product_shape *p, gx_product_size which, const char *key,
                        int64_t seen, const char *hidden, int64_t *size)
{
    const gx_attr *written = &p->size[which];
    const char *name = gx_product_size_keys[which];

    *size = seen >= 0 ? seen : written->i;
    if (seen < 0 && !written->present) {
        gx_misfit(
            p->list, p->node, hidden,
            "the rows of %s are wider than what is used of them, expected the field "
            "\"%s\" to say how much",
            key, name);
        return false;
    }
    if (written->present && written->i < 0) {
        gx_misfit(p->list, p->node, name, "%s is %lld, expected 0 or more", name,
                  (long long)written->i);
        return false;
    }
    if (written->present && written->i != *size) {
        gx_misfit(p->list, p->node, name, "%s is %lld, expected %lld, as %s has it", name,
                  (long long)written->i, (long long)*size, key);
        return false;
    }
    return true;
}

/* The inner size, which both operands may say. */
static bool infer_k(product_shape *p)
{
    const int64_t of_a = size_in(p, p->a, !p->trans_a, GX_PRODUCT_LD_A);
    const int64_t of_b = size_in(p, p->b, p->trans_b, GX_PRODUCT_LD_B);
    const int64_t *last_a = p->a->dim + p->a->rank - 2;
    const int64_t *last_b = p->b->dim + p->b->rank - 2;

    if (of_a >= 0 && of_b >= 0 && of_a != of_b) {
        gx_misfit(p->list, p->node, "b",
                  "a is [%s%lld, %lld]%s and b is [%s%lld, %lld]%s: the inner sizes %lld "
                  "and %lld differ",
                  p->a->rank > 2 ? "..., " : "", (long long)last_a[0],
                  (long long)last_a[1], p->trans_a ? " transposed" : "",
                  p->b->rank > 2 ? "..., " : "", (long long)last_b[0],
                  (long long)last_b[1], p->trans_b ? " transposed" : "", (long long)of_a,
                  (long long)of_b);
        return false;
    }
    return choose_size(p, GX_PRODUCT_K,
                       of_a < 0 && of_b < 0 ? "both operands"
                       : of_a >= 0          ? "a"
                                            : "b",
                       of_a >= 0 ? of_a : of_b, gx_product_size_keys[GX_PRODUCT_LD_A],
                       &p->k);
}

static bool infer_product(product_shape *p)
{
    if (!gx_expect_float(p->list, p->node, "a", p->a) || !expect_matrices(p, "a", p->a) ||
        !expect_matrices(p, "b", p->b) ||
        !gx_expect_dtype(p->list, p->node, "b", p->b, p->a->dtype) || !infer_batch(p) ||
        !expect_row(p, GX_PRODUCT_LD_A, "a", p->a) ||
        !expect_row(p, GX_PRODUCT_LD_B, "b", p->b))
        return false;
    int64_t *m = &p->dim[p->rank - 2], *n = &p->dim[p->rank - 1];

    return choose_size(p, GX_PRODUCT_M, "a",
                       size_in(p, p->a, p->trans_a, GX_PRODUCT_LD_A),
                       gx_product_size_keys[GX_PRODUCT_LD_A], m) &&
           choose_size(p, GX_PRODUCT_N, "b",
                       size_in(p, p->b, !p->trans_b, GX_PRODUCT_LD_B),
                       gx_product_size_keys[GX_PRODUCT_LD_B], n) &&
           infer_k(p) && expect_width(p, GX_PRODUCT_LD_A, "a", p->trans_a ? *m : p->k) &&
           expect_width(p, GX_PRODUCT_LD_B, "b", p->trans_b ? p->k : *n) &&
           expect_width(p, GX_PRODUCT_LD_C, p->like_c, *n) &&
           expect_width(p, GX_PRODUCT_LD_OUT, p->like_out, *n) &&
           within_limit(p, "a", *n);
}

/* The batch is summed over: what is left is one matrix. */
static bool drop_batch(product_shape *p)
{
    if (p->a->rank != p->b->rank) {
        report_two(p, "sum_batch expects the same leading dimensions");
        return false;
    }
    p->dim[0] = p->dim[p->rank - 2];
    p->dim[1] = p->dim[p->rank - 1];
    p->rank = 2;
    return true;
}

/* The shape of what lies like out, in rows of the length that field `ld` says. */
static void wide_shape(const product_shape *p, gx_product_size ld,
                       int64_t dim[GX_MAX_RANK])
{
    memcpy(dim, p->dim, sizeof p->dim);
    if (p->size[ld].present)
        dim[p->rank - 1] = p->size[ld].i;
}

static bool expect_of_out(const product_shape *p, const char *key, const gx_value *value,
                          const int64_t *dim)
{
    return !value || (gx_expect_like(p->list, p->node, key, value, p->rank, dim) &&
                      gx_expect_dtype(p->list, p->node, key, value, p->a->dtype));
}

_Static_assert((int)GX_GEMM_A == (int)GX_GEMM_BWD_A &&
                   (int)GX_GEMM_B == (int)GX_GEMM_BWD_B &&
                   (int)GX_GEMM_TRANS_A == (int)GX_GEMM_BWD_TRANS_A &&
                   (int)GX_GEMM_TRANS_B == (int)GX_GEMM_BWD_TRANS_B,
               "one reader for both");

gx_product_sizes gx_product_sizes_of(const gx_graph *graph, const gx_node *node,
                                     int first)
{
    const gx_attr *size = &node->attr[first];
    const gx_value *a = &graph->values[node->arg[GX_GEMM_A]];
    const gx_value *b = &graph->values[node->arg[GX_GEMM_B]];
    const int64_t *last_a = a->dim + a->rank - 2, *last_b = b->dim + b->rank - 2;
    const bool trans_a = node->attr[GX_GEMM_TRANS_A].i;
    const bool trans_b = node->attr[GX_GEMM_TRANS_B].i;
    const bool is_hidden_in_a = !trans_a && size[GX_PRODUCT_LD_A].present;

    return (gx_product_sizes){
        .m = size[GX_PRODUCT_M].present ? size[GX_PRODUCT_M].i : last_a[trans_a],
        .n = size[GX_PRODUCT_N].present ? size[GX_PRODUCT_N].i : last_b[!trans_b],
        .k = size[GX_PRODUCT_K].present ? size[GX_PRODUCT_K].i
             : is_hidden_in_a           ? last_b[trans_b]
                                        : last_a[!trans_a],
    };
}

/* --- gemm --- */

void gx_gemm_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                   gx_diagnostics *list)
{
    const gx_value *a = value[GX_GEMM_A], *bias = value[GX_GEMM_BIAS];
    const gx_epilogue_steps steps = gx_gemm_steps(node);
    product_shape p = {
        .node = node,
        .list = list,
        .size = &node->attr[GX_GEMM_M],
        .a = a,
        .b = value[GX_GEMM_B],
        .trans_a = node->attr[GX_GEMM_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_TRANS_B].i,
        .like_c = "c",
        .like_out = "out",
    };
    int64_t of_c[GX_MAX_RANK], of_out[GX_MAX_RANK];

    (void)graph;
    if (!expect_row(&p, GX_PRODUCT_LD_C, "c", value[GX_GEMM_C]) || !infer_product(&p) ||
        (node->attr[GX_GEMM_SUM_BATCH].i && !drop_batch(&p)))
        return;
    wide_shape(&p, GX_PRODUCT_LD_C, of_c);
    wide_shape(&p, GX_PRODUCT_LD_OUT, of_out);
    if (bias &&
        !(gx_expect_like(list, node, "epilogue.bias", bias, 1, &p.dim[p.rank - 1]) &&
          gx_expect_dtype(list, node, "epilogue.bias", bias, a->dtype)))
        return;
    if (!expect_of_out(&p, "c", value[GX_GEMM_C], of_c) ||
        !expect_of_out(&p, "epilogue.residual", value[GX_GEMM_RESIDUAL], p.dim))
        return;
    if (node->attr[GX_GEMM_BETA].present && !value[GX_GEMM_C]) {
        gx_misfit(list, node, "beta", "beta is given, and there is no field \"c\"");
        return;
    }
    if (within_limit(&p, "ld.out", of_out[p.rank - 1]) &&
        gx_expect_order(list, node, "epilogue.", &steps))
        gx_set_shape(value[GX_GEMM_OUT], a->dtype, p.rank, of_out);
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
    else if (node->attr[GX_GEMM_BWD_LD_C].present && !value[GX_GEMM_BWD_DC])
        gx_misfit(list, node, "ld.c", "ld.c is given, and there is no field \"dc\"");
    else
        return true;
    return false;
}

void gx_gemm_bwd_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                       gx_diagnostics *list)
{
    const gx_value *a = value[GX_GEMM_BWD_A], *b = value[GX_GEMM_BWD_B];
    product_shape p = {
        .node = node,
        .list = list,
        .size = &node->attr[GX_GEMM_BWD_M],
        .a = a,
        .b = b,
        .trans_a = node->attr[GX_GEMM_BWD_TRANS_A].i,
        .trans_b = node->attr[GX_GEMM_BWD_TRANS_B].i,
        .like_c = "dc",
        .like_out = "dy",
    };
    int64_t of_c[GX_MAX_RANK], of_out[GX_MAX_RANK];

    (void)graph;
    if (!expect_row(&p, GX_PRODUCT_LD_OUT, "dy", value[GX_GEMM_BWD_DY]) ||
        !infer_product(&p))
        return;
    wide_shape(&p, GX_PRODUCT_LD_C, of_c);
    wide_shape(&p, GX_PRODUCT_LD_OUT, of_out);
    if (!expect_of_out(&p, "dy", value[GX_GEMM_BWD_DY], of_out) ||
        !expect_of_out(&p, "y", value[GX_GEMM_BWD_Y], of_out) ||
        !expect_of_out(&p, "pre", value[GX_GEMM_BWD_PRE], p.dim) ||
        !bwd_has_operands(node, value, list) ||
        !within_limit(&p, "ld.c", of_c[p.rank - 1]))
        return;
    gx_set_shape(value[GX_GEMM_BWD_DA], a->dtype, a->rank, a->dim);
    gx_set_shape(value[GX_GEMM_BWD_DB], b->dtype, b->rank, b->dim);
    gx_set_shape(value[GX_GEMM_BWD_DC], a->dtype, p.rank, of_c);
    gx_set_shape(value[GX_GEMM_BWD_DBIAS], a->dtype, 1, &p.dim[p.rank - 1]);
    gx_set_shape(value[GX_GEMM_BWD_DRESIDUAL], a->dtype, p.rank, p.dim);
}
