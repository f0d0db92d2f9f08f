/* Which nodes an alternative may cover, and what lies between them. */
#include <string.h>

#include "builder.h"
#include "plan.h"

static bool is_op(const gx_graph *graph, int32_t node, const char *name)
{
    return strcmp(graph->nodes[node].op->name, name) == 0;
}

bool gx_match_pattern(const gx_graph *graph, const gx_alternative *alternative,
                      int32_t first, int32_t n)
{
    const char *const *name = alternative->pattern;
    int32_t i = 0;

    if (first < 0 || n < 1 || n > (int32_t)graph->n_nodes - first)
        return false;
    for (; *name; name++, i++) {
        if (i == n || !is_op(graph, first + i, *name))
            return false;
    }
    if (i == 0 || (i < n && !alternative->repeat))
        return false;
    for (name--; i < n; i++) {
        if (!is_op(graph, first + i, *name))
            return false;
    }
    return true;
}

int32_t gx_match_length(const gx_graph *graph, const gx_alternative *alternative,
                        int32_t first)
{
    const int32_t n_nodes = (int32_t)graph->n_nodes;
    const char *last;
    int32_t n = 0;

    for (const char *const *name = alternative->pattern; *name; name++)
        n++;
    if (!gx_match_pattern(graph, alternative, first, n))
        return 0;
    if (!alternative->repeat)
        return n;
    last = alternative->pattern[n - 1];
    /* In the middle of a run the same run would match again, shorter. */
    if (n == 1 && first > 0 && is_op(graph, first - 1, last))
        return 0;
    while (first + n < n_nodes && is_op(graph, first + n, last))
        n++;
    return n;
}

static gx_tensor operand(const gx_graph *graph, int32_t id)
{
    gx_tensor tensor = { .rank = -1 };

    if (id < 0)
        return tensor;
    const gx_value *value = &graph->values[id];

    tensor.dtype = value->dtype;
    tensor.rank = value->rank;
    memcpy(tensor.dim, value->dim, sizeof tensor.dim);
    tensor.data = (void *)((uintptr_t)id + 1);
    return tensor;
}

void gx_match_calls(const gx_graph *graph, int32_t first, int32_t n, gx_call *calls)
{
    for (int32_t i = 0; i < n; i++) {
        const gx_node *node = &graph->nodes[first + i];
        gx_call *call = &calls[i];
        int n_args = 0, n_attrs = 0;

        memset(call, 0, sizeof *call);
        call->op = node->op;
        call->name = node->name;
        call->precision = graph->precision;
        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (gx_is_tensor_field(field)) {
                call->arg[n_args] = operand(graph, node->arg[n_args]);
                n_args++;
            } else {
                call->attr[n_attrs] = node->attr[n_attrs];
                n_attrs++;
            }
        }
        for (; n_args < GX_MAX_ARGS; n_args++)
            call->arg[n_args] = operand(graph, -1);
    }
}

/* How many of the nodes read value `id`. */
static int32_t count_readers(const gx_graph *graph, int32_t first, int32_t n, int32_t id)
{
    int32_t n_readers = 0;

    for (int32_t i = first; i < first + n; i++) {
        const gx_node *node = &graph->nodes[i];
        bool reads = false;
        int arg = 0;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (!gx_is_tensor_field(field))
                continue;
            reads |= field->kind != GX_FIELD_OUT && node->arg[arg] == id;
            arg++;
        }
        n_readers += reads;
    }
    return n_readers;
}

void gx_match_elided(const gx_graph *graph, int32_t first, int32_t n, bool *elided)
{
    memset(elided, 0, (size_t)n * GX_MAX_ARGS * sizeof *elided);
    for (int32_t i = 0; i < n; i++) {
        const gx_node *node = &graph->nodes[first + i];
        int arg = -1;

        for (const gx_field *field = node->op->fields; field->name; field++) {
            if (!gx_is_tensor_field(field))
                continue;
            arg++;
            const int32_t id = node->arg[arg];

            if (field->kind != GX_FIELD_OUT || id < 0)
                continue;
            const gx_value *value = &graph->values[id];

            if (value->kind == GX_VALUE_TEMP && !value->is_output &&
                count_readers(graph, first, n, id) == value->n_readers)
                elided[i * GX_MAX_ARGS + arg] = true;
        }
    }
}
