/* Transposes, and the same elements under another shape. */
#include <string.h>

#include "infer.h"
#include "resolve.h"
#include "samples.h"
#include "shape.h"

static const gx_field transpose_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any type" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "axis i is axis perm[i] of x" },
    { "perm", GX_FIELD_INTS, false, NULL, NULL,
      "each axis of x once, a negative one counts from the end; left away: the last two "
      "swap" },
    { 0 },
};

static const gx_field reshape_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any type" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "the elements of x in their order" },
    { "shape", GX_FIELD_INTS, false, NULL, NULL,
      "as many elements as x has; one size may be -1: what is left; [], or left away: a "
      "scalar" },
    { 0 },
};

/* --- shapes --- */

void gx_transpose_perm(int rank, const gx_attr *given, int perm[GX_MAX_RANK])
{
    for (int i = 0; i < rank; i++)
        perm[i] = given->i > 0 ? gx_axis_of(given->list[i], rank) : i;
    if (given->i == 0) {
        perm[rank - 2] = rank - 1;
        perm[rank - 1] = rank - 2;
    }
}

static bool check_perm(gx_diagnostics *list, const gx_node *node, const gx_value *x,
                       const gx_attr *perm)
{
    const int n = (int)perm->i;
    bool seen[GX_MAX_RANK] = { false };
    char key[16], shape[128];

    if (n != x->rank) {
        gx_misfit(list, node, "perm",
                  "perm has %d %s, expected %d, one for each axis of x %s", n,
                  n == 1 ? "axis" : "axes", x->rank,
                  gx_shape_text(x->rank, x->dim, shape, sizeof shape));
        return false;
    }
    for (int i = 0; i < n; i++) {
        gx_item_key(key, "perm", i);
        if (!gx_expect_axis(list, node, key, perm->list[i], "x", x))
            return false;
        const int axis = gx_axis_of(perm->list[i], x->rank);

        if (seen[axis]) {
            gx_misfit(list, node, key, "perm has axis %d twice, expected each once",
                      axis);
            return false;
        }
        seen[axis] = true;
    }
    return true;
}

static void transpose_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                            gx_diagnostics *list)
{
    const gx_value *x = value[GX_TRANSPOSE_X];
    const gx_attr *given = &node->attr[GX_TRANSPOSE_PERM];
    int64_t dim[GX_MAX_RANK];
    int perm[GX_MAX_RANK];

    (void)graph;
    if (given->i == 0 && x->rank < 2) {
        gx_misfit(list, node, "x",
                  "x has %d %s: without perm the last two axes are swapped", x->rank,
                  x->rank == 1 ? "dimension" : "dimensions");
        return;
    }
    if (given->i > 0 && !check_perm(list, node, x, given))
        return;
    gx_transpose_perm(x->rank, given, perm);
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[perm[i]];
    gx_set_shape(value[GX_TRANSPOSE_OUT], x->dtype, x->rank, dim);
}

/* Elements without the size that is left open, which is *open then; -1 after a report. */
static int64_t sizes_product(gx_diagnostics *list, const gx_node *node, int n,
                             const int64_t *dim, int *open)
{
    int64_t product = 1;
    char key[16];

    *open = -1;
    for (int i = 0; i < n; i++) {
        gx_item_key(key, "shape", i);
        if (dim[i] == -1 && *open >= 0) {
            gx_misfit(list, node, key,
                      "shape has -1 twice, and only one size can be "
                      "what is left");
            return -1;
        }
        if (dim[i] < -1) {
            gx_misfit(list, node, key,
                      "shape has the size %lld, expected 0 or more, or "
                      "-1 for what is left",
                      (long long)dim[i]);
            return -1;
        }
        if (dim[i] == -1)
            *open = i;
        else if (__builtin_mul_overflow(product, dim[i], &product) ||
                 product > GX_LIMIT_ELEMENTS) {
            gx_misfit(list, node, key,
                      "shape has more than %lld elements (limit on "
                      "elements)",
                      (long long)GX_LIMIT_ELEMENTS);
            return -1;
        }
    }
    return product;
}

static void reshape_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                          gx_diagnostics *list)
{
    const gx_value *x = value[GX_RESHAPE_X];
    const int64_t count = gx_span_count(x->dim, 0, x->rank);
    const gx_attr *shape = &node->attr[GX_RESHAPE_SHAPE];
    const int n = (int)shape->i;
    int64_t dim[GX_MAX_RANK];
    char have[128], want[128];
    int open;

    (void)graph;
    memcpy(dim, shape->list, sizeof dim);
    const int64_t product = sizes_product(list, node, n, dim, &open);

    if (product < 0)
        return;
    gx_shape_text(x->rank, x->dim, have, sizeof have);
    gx_shape_text(n, dim, want, sizeof want);
    if (open >= 0 && product == 0) {
        gx_misfit(list, node, "shape",
                  "-1 in %s could be any size, since the others make 0 elements", want);
        return;
    }
    if (open >= 0 ? count % product != 0 : count != product) {
        gx_misfit(list, node, "shape", "x %s has %lld elements, which do not fill %s",
                  have, (long long)count, want);
        return;
    }
    if (open >= 0)
        dim[open] = count / product;
    gx_set_shape(value[GX_RESHAPE_OUT], x->dtype, n, dim);
}

/* --- derivatives: again such ops --- */

/* A node "ORIGIN.bwd" that moves dy, with a list of integers. */
static void add_listed(gx_builder *builder, int32_t id, const char *op, const char *dy,
                       const char *out, const char *list, int n, const int64_t *items)
{
    gx_field_text fields[2 + GX_MAX_RANK] = { { "x", dy }, { "out", out } };
    const size_t n_fields = 2 + gx_builder_list(builder, list, n, items, fields + 2);

    gx_builder_node(
        builder, op,
        gx_builder_name(builder, gx_builder_graph(builder)->nodes[id].origin, "bwd"), id,
        fields, n_fields);
}

static void transpose_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t x = node->arg[GX_TRANSPOSE_X];
    const int rank = graph->values[x].rank;
    const char *dy = gx_builder_gradient(builder, node->arg[GX_TRANSPOSE_OUT]);
    const char *out = gx_builder_wanted_name(builder, x);
    int64_t inverse[GX_MAX_RANK];
    int perm[GX_MAX_RANK];

    if (!out)
        return;
    gx_transpose_perm(rank, &node->attr[GX_TRANSPOSE_PERM], perm);
    for (int i = 0; i < rank; i++)
        inverse[perm[i]] = i;
    add_listed(builder, id, "transpose", dy, out, "perm", rank, inverse);
    gx_builder_contribute(builder, x, out);
}

static void reshape_grad(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t x = node->arg[GX_RESHAPE_X];
    const int rank = graph->values[x].rank;
    const char *dy = gx_builder_gradient(builder, node->arg[GX_RESHAPE_OUT]);
    const char *out = gx_builder_wanted_name(builder, x);
    int64_t dim[GX_MAX_RANK];

    if (!out)
        return;
    memcpy(dim, graph->values[x].dim, sizeof dim);
    add_listed(builder, id, "reshape", dy, out, "shape", rank, dim);
    gx_builder_contribute(builder, x, out);
}

/* --- references --- */

/* Moves along out in its order, and in x by the strides that its axes have there. */
static gx_status transpose_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_TRANSPOSE_X], *y = &call->arg[GX_TRANSPOSE_OUT];
    const double *from = x->data;
    double *to = y->data;
    int64_t index[GX_MAX_RANK] = { 0 };
    int64_t stride[GX_MAX_RANK];
    int perm[GX_MAX_RANK];

    (void)err;
    gx_transpose_perm(x->rank, &call->attr[GX_TRANSPOSE_PERM], perm);
    for (int i = 0; i < x->rank; i++)
        stride[i] = gx_span_count(x->dim, perm[i] + 1, x->rank);
    for (int64_t n = gx_count(y), k = 0, at = 0; k < n; k++) {
        to[k] = from[at];
        for (int i = y->rank - 1; i >= 0; i--) {
            at += stride[i];
            if (++index[i] < y->dim[i])
                break;
            at -= stride[i] * y->dim[i];
            index[i] = 0;
        }
    }
    return GX_OK;
}

/* Where layout gave both one place there is nothing to do. */
static gx_status reshape_reference(const gx_call *call, gx_error *err)
{
    const gx_tensor *x = &call->arg[GX_RESHAPE_X], *y = &call->arg[GX_RESHAPE_OUT];
    const int64_t n = gx_count(y);

    (void)err;
    if (n > 0 && y->data != x->data)
        memcpy(y->data, x->data, (size_t)n * sizeof(double));
    return GX_OK;
}

/* Where the result is a view, nothing moves; a copy is the plan's doing, not the op's. */
static double no_bytes(const gx_graph *graph, const gx_node *node)
{
    (void)graph;
    (void)node;
    return 0;
}

const gx_op gx_transpose_ops[] = {
    {
        .name = "transpose",
        .summary = "axes in another order",
        .formula = "out[i_0, i_1, ...] = x[j_0, j_1, ...], j_perm[k] = i_k",
        .fields = transpose_fields,
        .phase = GX_PHASE_FORWARD,
        .moves = true,
        .rows = GX_ROWS_KEEP,
        .infer = transpose_infer,
        .reference = transpose_reference,
        .grad = transpose_grad,
        .samples = gx_transpose_samples,
        .tolerance = { GX_MOVED, GX_MOVED, GX_MOVED, GX_MOVED },
    },
    {
        .name = "reshape",
        .summary =
            "the same elements under another shape: a view, or a copy where x is a "
            "parameter or state, or an input of which out is an output",
        .formula = "out = x",
        .fields = reshape_fields,
        .phase = GX_PHASE_FORWARD,
        .moves = true,
        .view = true,
        .rows = GX_ROWS_KEEP,
        .infer = reshape_infer,
        .reference = reshape_reference,
        .grad = reshape_grad,
        .bytes = no_bytes,
        .samples = gx_reshape_samples,
        .tolerance = { GX_MOVED, GX_MOVED, GX_MOVED, GX_MOVED },
    },
    { 0 },
};
