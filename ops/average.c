/* How the scalars of the log, told for each step, become one figure for many rows: what
 * the nodes make of the rows of a batch is followed from the data to the log. */
#include "average.h"

#include "axes.h"
#include "builder.h"
#include "ops.h"
#include "shape.h"

/* What a tensor has of the rows. */
typedef enum of_rows {
    OF_NONE, /* nothing: a parameter, a constant */
    OF_EACH, /* something of each, along an axis */
    OF_MEAN, /* a mean over them, or what was made of one */
    OF_EXP,  /* the exponential of such a mean */
    OF_SUM,  /* a sum over them */
    OF_OTHER /* none of these */
} of_rows;

typedef struct share {
    unsigned char of;
    unsigned char axis; /* OF_EACH: where the rows lie */
} share;

static const share none = { OF_NONE, 0 }, mean = { OF_MEAN, 0 }, other = { OF_OTHER, 0 };

/* A sum or a difference. */
static share joined(share a, share b)
{
    if (a.of == OF_EACH || b.of == OF_EACH)
        return a.of == OF_EACH ? a : b;
    if (a.of == b.of)
        return a;
    return a.of + b.of == OF_NONE + OF_MEAN ? mean : other;
}

/* A product: with what has nothing of the rows, the other stays what it is. */
static share multiplied(share a, share b)
{
    if (a.of == OF_EACH || b.of == OF_EACH)
        return a.of == OF_EACH ? a : b;
    if (a.of == OF_NONE || b.of == OF_NONE)
        return a.of == OF_NONE ? b : a;
    return a.of == OF_MEAN && b.of == OF_MEAN ? mean : other;
}

/* Any other function of several. */
static share mixed(share a, share b)
{
    if (a.of == OF_EACH || b.of == OF_EACH)
        return a.of == OF_EACH ? a : b;
    if (a.of == OF_NONE && b.of == OF_NONE)
        return none;
    return a.of <= OF_MEAN && b.of <= OF_MEAN ? mean : other;
}

/* Operand i, its axis counted in `out`: broadcasting aligns the last ones. */
static share operand(const gx_graph *graph, const gx_node *node, int i,
                     const gx_value *out, const share *shares)
{
    share found = node->arg[i] >= 0 ? shares[node->arg[i]] : none;
    const int by = node->arg[i] >= 0 ? out->rank - graph->values[node->arg[i]].rank : 0;

    if (found.of == OF_EACH && by > 0)
        found.axis = (unsigned char)(found.axis + by);
    return found;
}

/* x summed to a shape that broadcasts to its own. */
static share summed_to(const gx_value *x, share of_x, const gx_value *out)
{
    const int axis = of_x.axis + out->rank - x->rank;

    return axis >= 0 && out->dim[axis] == x->dim[of_x.axis]
               ? (share){ OF_EACH, (unsigned char)axis }
               : (share){ OF_SUM, 0 };
}

/* x without some of its axes; `total`: what it is without that of the rows. */
static share reduced(const gx_node *node, const gx_value *x, share of_x,
                     const gx_value *out, of_rows total)
{
    int axis_field, keepdim_field;
    unsigned mask;
    unsigned before = 0;

    if (of_x.of != OF_EACH)
        return of_x;
    if (!gx_field_find(node->op, "axis", &axis_field) ||
        !gx_field_find(node->op, "keepdim", &keepdim_field))
        return summed_to(x, of_x, out);
    mask = gx_axes_mask(&node->attr[axis_field], x->rank);
    if (mask >> of_x.axis & 1)
        return (share){ (unsigned char)total, 0 };
    for (int i = 0; i < of_x.axis && !node->attr[keepdim_field].i; i++)
        before += mask >> i & 1;
    return (share){ OF_EACH, (unsigned char)(of_x.axis - before) };
}

/* The same values elsewhere. */
static share moved(const gx_node *node, const gx_value *x, share of_x)
{
    int field, perm[GX_MAX_RANK];

    if (of_x.of != OF_EACH || !gx_field_find(node->op, "perm", &field))
        return of_x;
    gx_transpose_perm(x->rank, &node->attr[field], perm);
    for (int i = 0; i < x->rank; i++)
        if (perm[i] == of_x.axis)
            return (share){ OF_EACH, (unsigned char)i };
    return of_x;
}

/* A loss, a metric, or what else there is: of something of each row a scalar is a mean,
 * where the loss is not a sum. */
static share made(const gx_node *node, const gx_value *out, const share *shares)
{
    share all = none;
    int i = 0, field;

    for (const gx_field *at = node->op->fields; at->name; at++)
        if (gx_is_tensor_field(at)) {
            if (at->kind != GX_FIELD_OUT && node->arg[i] >= 0)
                all = mixed(all, shares[node->arg[i]]);
            i++;
        }
    if (node->op->average == GX_AVERAGE_EXP_OF_MEAN_LOG)
        return all.of <= OF_MEAN ? (share){ OF_EXP, 0 } : other;
    if (all.of != OF_EACH || out->rank > 0)
        return all;
    if (gx_field_find(node->op, "reduction", &field) &&
        node->attr[field].i == GX_REDUCTION_SUM)
        return (share){ OF_SUM, 0 };
    return mean;
}

static share share_of(const gx_graph *graph, const gx_node *node, const gx_value *out,
                      const share *shares)
{
    const gx_value *const x = node->arg[0] >= 0 ? &graph->values[node->arg[0]] : out;
    const share a = operand(graph, node, 0, out, shares);

    switch (node->op->rows) {
    case GX_ROWS_JOIN:
        return joined(a, operand(graph, node, 1, out, shares));
    case GX_ROWS_MULTIPLY:
        return multiplied(a, operand(graph, node, 1, out, shares));
    case GX_ROWS_SUM:
        return reduced(node, x, a, out, OF_SUM);
    case GX_ROWS_MEAN:
        return reduced(node, x, a, out, OF_MEAN);
    case GX_ROWS_KEEP:
        return moved(node, x, a);
    case GX_ROWS_MAKE:
        break;
    }
    return made(node, out, shares);
}

static void follow(const gx_graph *graph, share *shares)
{
    const bool has_data = graph->data.n_columns > 0;

    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *const value = &graph->values[i];
        const bool rows = value->kind == GX_VALUE_DATA ||
                          (value->kind == GX_VALUE_INPUT && (value->fed || !has_data));

        shares[i] = rows ? (share){ OF_EACH, 0 } : none;
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const gx_node *const node = &graph->nodes[n];
        int i = 0;

        for (const gx_field *at = node->op->fields; at->name; at++)
            if (gx_is_tensor_field(at)) {
                if (at->kind == GX_FIELD_OUT && node->arg[i] >= 0)
                    shares[node->arg[i]] =
                        share_of(graph, node, &graph->values[node->arg[i]], shares);
                i++;
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
    for (size_t i = 0; i < graph->n_logged; i++)
        graph->average[i] = graph->logged[i] >= 0 ? averages[shares[graph->logged[i]].of]
                                                  : GX_AVERAGE_MEAN;
}
