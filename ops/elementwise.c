/* Sums, differences and products of two tensors that broadcast as in PyTorch, and
 * multiples of one. Gradients of what is read twice are made of sums. */
#include <stdio.h>
#include <string.h>

#include "grid.h"
#include "infer.h"
#include "resolve.h"
#include "samples.h"

static const gx_field binary_fields[] = {
    { "a", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "b", GX_FIELD_IN, true, NULL, NULL,
      "a shape that broadcasts with that of a: aligned at the last dimension, sizes are "
      "equal, or 1, or missing in front" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "the larger of each size" },
    { 0 },
};

static const gx_field scale_fields[] = {
    { "x", GX_FIELD_IN, true, NULL, NULL, "any shape" },
    { "out", GX_FIELD_OUT, true, NULL, NULL, "like x" },
    { "factor", GX_FIELD_REAL, true, NULL, NULL, "a number" },
    { 0 },
};

/* --- shapes --- */

static int64_t size_at(const gx_value *value, int rank, int i)
{
    const int at = i - (rank - value->rank);

    return at >= 0 ? value->dim[at] : 1;
}

static bool broadcast(const gx_node *node, const gx_value *a, const gx_value *b,
                      int64_t dim[GX_MAX_RANK], gx_diagnostics *list)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    char of_a[128], of_b[128];
    int64_t n = 1;

    gx_shape_text(a->rank, a->dim, of_a, sizeof of_a);
    gx_shape_text(b->rank, b->dim, of_b, sizeof of_b);
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t x = size_at(a, rank, i), y = size_at(b, rank, i);

        if (x != y && x != 1 && y != 1) {
            gx_misfit(
                list, node, "b",
                "a has shape %s and b has shape %s, which do not broadcast: counted "
                "from the last, dimension %d is %lld in a and %lld in b, expected "
                "equal sizes or a 1",
                of_a, of_b, rank - i, (long long)x, (long long)y);
            return false;
        }
        dim[i] = x == 1 ? y : x;
        if (dim[i] > 0 && n > GX_LIMIT_ELEMENTS / dim[i]) {
            gx_misfit(list, node, "b",
                      "a has shape %s and b has shape %s: broadcast they have more than "
                      "%lld elements",
                      of_a, of_b, (long long)GX_LIMIT_ELEMENTS);
            return false;
        }
        n *= dim[i];
    }
    return true;
}

static void binary_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                         gx_diagnostics *list)
{
    const gx_value *a = value[GX_BINARY_A];
    const gx_value *b = value[GX_BINARY_B];
    int64_t dim[GX_MAX_RANK];

    (void)graph;
    if (gx_expect_float(list, node, "a", a) && broadcast(node, a, b, dim, list) &&
        gx_expect_dtype(list, node, "b", b, a->dtype))
        gx_set_shape(value[GX_BINARY_OUT], a->dtype,
                     a->rank > b->rank ? a->rank : b->rank, dim);
}

static void scale_infer(const gx_graph *graph, const gx_node *node, gx_value **value,
                        gx_diagnostics *list)
{
    const gx_value *x = value[GX_SCALE_X];

    (void)graph;
    if (gx_expect_float(list, node, "x", x))
        gx_set_shape(value[GX_SCALE_OUT], x->dtype, x->rank, x->dim);
}

/* --- references --- */

static void row_of(char op, const double *a, int64_t a_step, const double *b,
                   int64_t b_step, double *out, int64_t n)
{
    switch (op) {
    case '+':
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i * a_step] + b[i * b_step];
        break;
    case '-':
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i * a_step] - b[i * b_step];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i * a_step] * b[i * b_step];
    }
}

static gx_status binary(const gx_call *call, char op)
{
    const gx_tensor *a = &call->arg[GX_BINARY_A], *b = &call->arg[GX_BINARY_B];
    const gx_tensor *out = &call->arg[GX_BINARY_OUT];
    const gx_grid grid = gx_grid_broadcast(out->rank, out->dim, a, b);
    const int64_t columns = gx_grid_columns(&grid), rows = gx_grid_rows(&grid);

    for (int64_t r = 0; r < rows; r++)
        row_of(op, (const double *)a->data + gx_grid_row(&grid, 0, r),
               gx_grid_step(&grid, 0), (const double *)b->data + gx_grid_row(&grid, 1, r),
               gx_grid_step(&grid, 1), (double *)out->data + r * columns, columns);
    return GX_OK;
}

static gx_status add_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return binary(call, '+');
}

static gx_status sub_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return binary(call, '-');
}

static gx_status mul_reference(const gx_call *call, gx_error *err)
{
    (void)err;
    return binary(call, '*');
}

static gx_status scale_reference(const gx_call *call, gx_error *err)
{
    const double *x = call->arg[GX_SCALE_X].data;
    double *out = call->arg[GX_SCALE_OUT].data;
    const int64_t n = gx_count(&call->arg[GX_SCALE_OUT]);

    (void)err;
    for (int64_t i = 0; i < n; i++)
        out[i] = call->attr[GX_SCALE_FACTOR].r * x[i];
    return GX_OK;
}

/* --- derivatives --- */

static bool is_broadcast(const gx_value *value, const gx_value *out)
{
    bool same = value->rank == out->rank;

    for (int i = 0; same && i < out->rank; i++)
        same = value->dim[i] == out->dim[i];
    return !same;
}

static const char *derived_name(gx_builder *builder, int32_t id, int which,
                                const char *what)
{
    char suffix[32];

    snprintf(suffix, sizeof suffix, "bwd.%c%s", "ab"[which], what);
    return gx_builder_name(builder, gx_builder_graph(builder)->nodes[id].origin, suffix);
}

/* A gradient of the shape of out, for an operand: summed over what was broadcast. */
static void contribute(gx_builder *builder, int32_t id, int which, const char *full)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];
    const int32_t operand = node->arg[which];
    const gx_value *value = &graph->values[operand];
    gx_field_text fields[2 + GX_MAX_RANK];

    if (!is_broadcast(value, &graph->values[node->arg[GX_BINARY_OUT]])) {
        gx_builder_contribute(builder, operand, full);
        return;
    }
    const char *sum = gx_builder_gradient_name(builder, operand);

    fields[0] = (gx_field_text){ "x", full };
    fields[1] = (gx_field_text){ "out", sum };
    const size_t n =
        gx_builder_list(builder, "shape", value->rank, value->dim, fields + 2);

    gx_builder_node(builder, "sum_to", derived_name(builder, id, which, ""), id, fields,
                    2 + n);
    gx_builder_contribute(builder, operand, sum);
}

/* Where the gradient of the shape of out is to be made for operand `which`. */
static const char *full_name(gx_builder *builder, int32_t id, int which)
{
    const gx_graph *graph = gx_builder_graph(builder);
    const gx_node *node = &graph->nodes[id];

    if (is_broadcast(&graph->values[node->arg[which]],
                     &graph->values[node->arg[GX_BINARY_OUT]]))
        return derived_name(builder, id, which, ".full");
    return gx_builder_gradient_name(builder, node->arg[which]);
}

static void add_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand[] = { node->arg[GX_BINARY_A], node->arg[GX_BINARY_B] };
    const char *dy = gx_builder_gradient(builder, node->arg[GX_BINARY_OUT]);

    for (int i = 0; i < 2; i++) {
        if (gx_builder_wants(builder, operand[i]))
            contribute(builder, id, i, dy);
    }
}

static void sub_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand[] = { node->arg[GX_BINARY_A], node->arg[GX_BINARY_B] };
    const char *dy = gx_builder_gradient(builder, node->arg[GX_BINARY_OUT]);

    if (gx_builder_wants(builder, operand[0]))
        contribute(builder, id, 0, dy);
    if (!gx_builder_wants(builder, operand[1]))
        return;
    const char *full = full_name(builder, id, 1);
    const gx_field_text fields[] = { { "x", dy }, { "factor", "-1" }, { "out", full } };

    gx_builder_node(builder, "scale", derived_name(builder, id, 1, ".minus"), id, fields,
                    3);
    contribute(builder, id, 1, full);
}

static void mul_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t operand[] = { node->arg[GX_BINARY_A], node->arg[GX_BINARY_B] };
    const char *dy = gx_builder_gradient(builder, node->arg[GX_BINARY_OUT]);

    for (int i = 0; i < 2; i++) {
        if (!gx_builder_wants(builder, operand[i]))
            continue;
        const char *full = full_name(builder, id, i);
        const gx_field_text fields[] = {
            { "a", dy },
            { "b", gx_builder_operand(builder, id, 1 - i) },
            { "out", full },
        };

        gx_builder_node(builder, "mul", derived_name(builder, id, i, ".product"), id,
                        fields, 3);
        contribute(builder, id, i, full);
    }
}

/* The factor as it stands in the file, or as its caller wrote it. */
static const char *factor_text(const gx_node *node)
{
    for (int f = 0; f < node->n_fields; f++) {
        if (strcmp(node->fields[f].key, "factor") == 0)
            return node->fields[f].text;
    }
    return NULL;
}

static void scale_grad(gx_builder *builder, int32_t id)
{
    const gx_node *node = &gx_builder_graph(builder)->nodes[id];
    const int32_t x = node->arg[GX_SCALE_X];
    const char *out = gx_builder_wanted_name(builder, x);
    const gx_field_text fields[] = {
        { "x", gx_builder_gradient(builder, node->arg[GX_SCALE_OUT]) },
        { "factor", factor_text(node) },
        { "out", out },
    };

    if (!out)
        return;
    gx_builder_node(builder, "scale", gx_builder_name(builder, node->origin, "bwd"), id,
                    fields, 3);
    gx_builder_contribute(builder, x, out);
}

static double binary_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_BINARY_OUT);
}

static double scale_flops(const gx_graph *graph, const gx_node *node)
{
    return gx_elements(graph, node, GX_SCALE_OUT);
}

/* One rounding: 2^-24 in f32, 2^-9 in bf16, 2^-12 in f16. */
#define ONE_ROUNDING           \
    {                          \
        1e-6, 1e-6, 4e-3, 5e-4 \
    }

const gx_op gx_elementwise_ops[] = {
    {
        .name = "add",
        .summary = "sum of two tensors, broadcast",
        .formula = "out = a + b; da = dy and db = dy, summed over what was broadcast",
        .fields = binary_fields,
        .phase = GX_PHASE_FORWARD,
        .sum = true,
        .rows = GX_ROWS_JOIN,
        .infer = binary_infer,
        .reference = add_reference,
        .grad = add_grad,
        .flops = binary_flops,
        .samples = gx_add_samples,
        .tolerance = ONE_ROUNDING,
    },
    {
        .name = "sub",
        .summary = "difference of two tensors, broadcast",
        .formula = "out = a - b; da = dy and db = -dy, summed over what was broadcast",
        .fields = binary_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_JOIN,
        .infer = binary_infer,
        .reference = sub_reference,
        .grad = sub_grad,
        .flops = binary_flops,
        .samples = gx_sub_samples,
        .tolerance = ONE_ROUNDING,
    },
    {
        .name = "mul",
        .summary = "product of two tensors, element by element, broadcast",
        .formula = "out = a b; da = dy b and db = dy a, summed over what was broadcast",
        .fields = binary_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_MULTIPLY,
        .infer = binary_infer,
        .reference = mul_reference,
        .grad = mul_grad,
        .flops = binary_flops,
        .samples = gx_mul_samples,
        .tolerance = ONE_ROUNDING,
    },
    {
        .name = "scale",
        .summary = "a tensor times a number",
        .formula = "out = factor x; dx = factor dy",
        .fields = scale_fields,
        .phase = GX_PHASE_FORWARD,
        .rows = GX_ROWS_KEEP,
        .infer = scale_infer,
        .reference = scale_reference,
        .grad = scale_grad,
        .flops = scale_flops,
        .samples = gx_scale_samples,
        /* The factor is rounded too. */
        .tolerance = ONE_ROUNDING,
    },
    { 0 },
};
