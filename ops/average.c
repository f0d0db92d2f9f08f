/* How the scalars of the log, told for each step, become one figure for many rows: what
 * the nodes make of the rows of a batch is followed from the data to the log. What is not
 * known to be a mean or a sum over them is OF_OTHER, which no weights make right. */
#include "average.h"

#include "axes.h"
#include "builder.h"
#include "ops.h"
#include "shape.h"

/* What a tensor has of the rows. */
typedef enum of_rows {
    OF_NONE, /* nothing: a parameter, a constant */
    OF_EACH, /* something of each, along an axis */
    OF_MEAN, /* a mean over them, times and plus what has nothing of them */
    OF_EXP,  /* the exponential of such a mean */
    OF_SUM,  /* a sum over them, times what has nothing of them */
    OF_OTHER /* none of these */
} of_rows;

typedef struct share {
    of_rows of;
    int axis;      /* OF_EACH: where the rows lie */
    int64_t outer; /* OF_EACH: how many times all the rows lie along it */
    int64_t rows;  /* OF_EACH: of the batch */
    int32_t input; /* OF_EACH: which input's elements these are, all of them; -1: none */
    gx_counted counted; /* OF_MEAN, OF_EXP: the labels that the mean is over */
} share;

static const share none = { .of = OF_NONE, .input = -1, .counted = { .labels = -1 } };

static share made_of(of_rows of)
{
    share made = none;

    made.of = of;
    return made;
}

static bool counts_the_same(share a, share b)
{
    return a.counted.labels == b.counted.labels &&
           (a.counted.labels < 0 || a.counted.ignored == b.counted.ignored);
}

/* --- functions of several --- */

/* Any function of each row's elements. */
static share each(share a, share b)
{
    const bool a_has = a.of == OF_EACH, b_has = b.of == OF_EACH;
    share made = a_has ? a : b;

    made.input = -1;
    if (a.of == OF_NONE && b.of == OF_NONE)
        return none;
    if ((a_has && b.of == OF_NONE) || (b_has && a.of == OF_NONE))
        return made;
    if (a_has && b_has && a.axis == b.axis && a.outer == b.outer && a.rows == b.rows)
        return made;
    return made_of(OF_OTHER);
}

/* A sum or a difference. */
static share joined(share a, share b)
{
    if (a.of == OF_MEAN && b.of == OF_MEAN)
        return counts_the_same(a, b) ? a : made_of(OF_OTHER);
    if (a.of == OF_MEAN && b.of == OF_NONE)
        return a;
    if (a.of == OF_NONE && b.of == OF_MEAN)
        return b;
    if (a.of == OF_SUM && b.of == OF_SUM)
        return a;
    return each(a, b);
}

/* A product. */
static share multiplied(share a, share b)
{
    if ((a.of == OF_MEAN || a.of == OF_SUM) && b.of == OF_NONE)
        return a;
    if ((b.of == OF_MEAN || b.of == OF_SUM) && a.of == OF_NONE)
        return b;
    return each(a, b);
}

/* Operand i, its axis counted in `out`: broadcasting aligns the last ones. */
static share operand(const gx_graph *graph, const gx_node *node, int i,
                     const gx_value *out, const share *shares)
{
    share found = node->arg[i] >= 0 ? shares[node->arg[i]] : none;

    if (found.of == OF_EACH)
        found.axis += out->rank - graph->values[node->arg[i]].rank;
    return found;
}

/* All operands; `aligned`: as broadcasting aligns them. */
static share all_each(const gx_graph *graph, const gx_node *node, const gx_value *out,
                      const share *shares, bool aligned)
{
    share all = none;
    int i = 0;

    for (const gx_field *at = node->op->fields; at->name; at++)
        if (gx_is_tensor_field(at)) {
            if (at->kind != GX_FIELD_OUT && node->arg[i] >= 0)
                all = each(all, aligned ? operand(graph, node, i, out, shares)
                                        : shares[node->arg[i]]);
            i++;
        }
    return all;
}

/* --- along axes --- */

/* x summed to a shape that broadcasts to its own. */
static share summed_to(const gx_value *x, share of_x, const gx_value *out)
{
    const int axis = of_x.axis + out->rank - x->rank;

    if (axis < 0 || out->dim[axis] != x->dim[of_x.axis])
        return made_of(OF_SUM);
    of_x.axis = axis;
    of_x.input = -1;
    return of_x;
}

/* x without some of its axes; `total`: what it is without that of the rows. */
static share reduced(const gx_node *node, const gx_value *x, share of_x,
                     const gx_value *out, of_rows total)
{
    int axis_field, keepdim_field;
    unsigned mask;
    int before = 0;

    if (of_x.of != OF_EACH)
        return of_x.of == OF_NONE || total != OF_OTHER ? of_x : made_of(OF_OTHER);
    if (!gx_field_find(node->op, "axis", &axis_field) ||
        !gx_field_find(node->op, "keepdim", &keepdim_field))
        return summed_to(x, of_x, out);
    mask = gx_axes_mask(&node->attr[axis_field], x->rank);
    if (mask >> of_x.axis & 1)
        return made_of(total);
    for (int i = 0; i < of_x.axis && !node->attr[keepdim_field].i; i++)
        before += (int)(mask >> i & 1);
    of_x.axis -= before;
    of_x.input = -1;
    return of_x;
}

/* What is made along an axis, or from the last size, of what lies there. */
static share along(const gx_node *node, const gx_value *out, share all)
{
    int field;
    const gx_field *const axis = gx_field_find(node->op, "axis", &field);
    unsigned mask = 1u << (out->rank > 0 ? out->rank - 1 : 0);

    if (all.of != OF_EACH)
        return all;
    if (axis)
        mask = axis->kind == GX_FIELD_INTS
                   ? gx_axes_mask(&node->attr[field], out->rank)
                   : 1u << gx_axis_of(node->attr[field].i, out->rank);
    return mask >> all.axis & 1 ? made_of(OF_OTHER) : all;
}

/* --- the same values elsewhere --- */

static share transposed(const gx_value *x, share of_x, const gx_attr *given)
{
    int perm[GX_MAX_RANK];

    gx_transpose_perm(x->rank, given, perm);
    for (int i = 0; i < x->rank; i++)
        if (perm[i] == of_x.axis) {
            of_x.axis = i;
            return of_x;
        }
    return made_of(OF_OTHER);
}

/* Under another shape the rows still lie apart where one axis has all of them. */
static share reshaped(const gx_value *x, share of_x, const gx_value *out)
{
    int64_t outer = of_x.outer, before = 1;
    share found = made_of(OF_OTHER);

    for (int i = 0; i < of_x.axis; i++)
        outer *= x->dim[i];
    for (int i = 0; i < out->rank; before *= out->dim[i++]) {
        const bool fits = before > 0 && outer > 0 && of_x.rows > 0 &&
                          outer % before == 0 &&
                          out->dim[i] % (outer / before * of_x.rows) == 0;

        if (fits && (found.of != OF_EACH || found.outer > 1)) {
            found = of_x;
            found.axis = i;
            found.outer = outer / before;
        }
    }
    return found;
}

static share moved(const gx_node *node, const gx_value *x, share of_x,
                   const gx_value *out)
{
    int field;

    if (of_x.of == OF_EXP && gx_field_find(node->op, "factor", &field))
        return made_of(OF_OTHER);
    if (of_x.of != OF_EACH)
        return of_x;
    if (gx_field_find(node->op, "perm", &field))
        return transposed(x, of_x, &node->attr[field]);
    if (node->op->view)
        return reshaped(x, of_x, out);
    if (gx_field_find(node->op, "start", &field)) /* a part of each row, or of the rows */
        return along(node, out, each(of_x, none));
    of_x.axis += out->rank - x->rank;
    of_x.input = -1;
    return of_x;
}

/* --- products, losses and metrics --- */

/* A matrix of a product whose rows, if any, become axis `to` of it; `free`: the axis that
 * is not summed over. */
static share factor(const gx_value *value, share of_value, int free, int to,
                    const gx_value *out)
{
    const int axis = of_value.axis;

    if (of_value.of != OF_EACH)
        return of_value;
    if (axis >= value->rank - 2 && axis != free)
        return made_of(OF_OTHER);
    of_value.axis = axis == free ? to : axis + out->rank - value->rank;
    return of_value;
}

static share product(const gx_graph *graph, const gx_node *node, const gx_value *out,
                     const share *shares)
{
    const int32_t a = node->arg[GX_GEMM_A], b = node->arg[GX_GEMM_B];
    const gx_value *const of_a = &graph->values[a], *const of_b = &graph->values[b];
    const int free_a = of_a->rank - (node->attr[GX_GEMM_TRANS_A].i ? 1 : 2);
    const int free_b = of_b->rank - (node->attr[GX_GEMM_TRANS_B].i ? 2 : 1);
    share made = multiplied(factor(of_a, shares[a], free_a, out->rank - 2, out),
                            factor(of_b, shares[b], free_b, out->rank - 1, out));

    if (node->attr[GX_GEMM_SUM_BATCH].i && made.of != OF_NONE)
        return made_of(OF_OTHER);
    for (int i = GX_GEMM_C; i < GX_GEMM_OUT; i++)
        if (node->arg[i] >= 0)
            made = joined(made, operand(graph, node, i, out, shares));
    return made;
}

/* A loss or a metric of each row, its mean or sum. */
static share told(const gx_node *node, const share *shares, share all)
{
    const gx_op *const op = node->op;
    int field, labels;
    const bool by_class = gx_field_find(op, "labels", &labels);
    share made = made_of(OF_MEAN);

    if (all.of != OF_EACH)
        return all;
    if (by_class && all.axis != 0) /* the rows are its classes */
        return made_of(OF_OTHER);
    if (gx_field_find(op, "reduction", &field) && node->attr[field].i == GX_REDUCTION_SUM)
        return made_of(OF_SUM);
    if (!gx_field_find(op, "ignore_index", &field) || !node->attr[field].present)
        return made;

    const share of_labels = shares[node->arg[labels]];
    if (of_labels.of == OF_EACH && of_labels.input < 0) /* how many count is not known */
        return made_of(OF_OTHER);
    if (of_labels.of == OF_EACH)
        made.counted = (gx_counted){ of_labels.input, node->attr[field].i };
    return made;
}

/* --- the walk --- */

static share share_of(const gx_graph *graph, const gx_node *node, const gx_value *out,
                      const share *shares)
{
    const gx_value *const x = node->arg[0] >= 0 ? &graph->values[node->arg[0]] : out;
    const share of_x = node->arg[0] >= 0 ? shares[node->arg[0]] : none;
    const share a = operand(graph, node, 0, out, shares);

    switch (node->op->rows) {
    case GX_ROWS_EACH:
        return all_each(graph, node, out, shares, true);
    case GX_ROWS_ALONG:
        return along(node, out, all_each(graph, node, out, shares, true));
    case GX_ROWS_INDEX:
        return of_x.of == OF_NONE ? each(shares[node->arg[1]], none) : made_of(OF_OTHER);
    case GX_ROWS_KEEP:
        return moved(node, x, of_x, out);
    case GX_ROWS_JOIN:
        return joined(a, operand(graph, node, 1, out, shares));
    case GX_ROWS_MULTIPLY:
        return multiplied(a, operand(graph, node, 1, out, shares));
    case GX_ROWS_PRODUCT:
        return product(graph, node, out, shares);
    case GX_ROWS_SUM:
        return reduced(node, x, of_x, out, OF_SUM);
    case GX_ROWS_MEAN:
        return reduced(node, x, of_x, out, OF_MEAN);
    case GX_ROWS_MOST:
        return reduced(node, x, of_x, out, OF_OTHER);
    case GX_ROWS_TELL:
        return told(node, shares, all_each(graph, node, out, shares, false));
    case GX_ROWS_EXP:
        if (of_x.of != OF_MEAN)
            break;
        share of_mean = of_x;
        of_mean.of = OF_EXP;
        return of_mean;
    case GX_ROWS_OTHER:
        break;
    }
    return all_each(graph, node, out, shares, false).of == OF_NONE ? none
                                                                   : made_of(OF_OTHER);
}

static void follow(const gx_graph *graph, share *shares)
{
    const bool has_data = graph->data.n_columns > 0;

    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *const value = &graph->values[i];

        shares[i] = none;
        if (value->kind == GX_VALUE_INPUT && value->rank > 0 && (value->fed || !has_data))
            shares[i] = (share){ .of = OF_EACH,
                                 .outer = 1,
                                 .rows = value->dim[0],
                                 .input = (int32_t)i,
                                 .counted = none.counted };
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const gx_node *const node = &graph->nodes[n];
        int i = 0;

        for (const gx_field *at = node->op->fields; at->name; at++)
            if (gx_is_tensor_field(at)) {
                const int32_t id = node->arg[i++];

                if (at->kind == GX_FIELD_OUT && id >= 0 &&
                    graph->values[id].kind == GX_VALUE_TEMP)
                    shares[id] = share_of(graph, node, &graph->values[id], shares);
            }
    }
}

void gx_set_averages(gx_graph *graph)
{
    static const gx_average averages[] = {
        [OF_NONE] = GX_AVERAGE_MEAN, [OF_EACH] = GX_AVERAGE_MEAN,
        [OF_MEAN] = GX_AVERAGE_MEAN, [OF_EXP] = GX_AVERAGE_EXP_OF_MEAN_LOG,
        [OF_SUM] = GX_AVERAGE_SUM,   [OF_OTHER] = GX_AVERAGE_STEPS,
    };
    share *shares;

    if (graph->n_logged == 0)
        return;
    shares = gx_arena_alloc(graph->arena, (graph->n_values + 1) * sizeof *shares);
    if (!shares) /* the arena remembers that it failed */
        return;
    follow(graph, shares);
    for (size_t i = 0; i < graph->n_logged; i++) {
        const share found = graph->logged[i] >= 0 ? shares[graph->logged[i]] : none;

        graph->average[i] = averages[found.of];
        graph->counted[i] = found.counted;
    }
}
