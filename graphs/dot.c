/* The graph as a DOT digraph: ops as boxes coloured by phase, tensors as edges. */
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "text.h"

static const char *const colours[] = {
    [GX_PHASE_FORWARD] = "#cfe2ff",
    [GX_PHASE_BACKWARD] = "#ffe0cc",
    [GX_PHASE_OPTIMIZER] = "#d8f0d0",
    [GX_PHASE_STEP] = "#eeeeee",
};

/* The inside of a quoted DOT string. */
static void put_quoted(gx_text *text, const char *words)
{
    for (; *words; words++) {
        if (*words == '"' || *words == '\\')
            gx_text_add(text, "\\", 1);
        if (*words == '\n')
            gx_text_put(text, "\\n");
        else
            gx_text_add(text, words, 1);
    }
}

static void put_shape(gx_text *text, const gx_value *value)
{
    char shape[GX_MAX_RANK * 24];

    gx_text_format(text, "%s %s", gx_dtype_name(value->dtype),
                   gx_shape_text(value->rank, value->dim, shape, sizeof shape));
}

static void put_node(gx_text *text, const gx_node *node, size_t i)
{
    gx_text_format(text, "  op%zu [shape=box, style=filled, fillcolor=\"%s\", label=\"",
                   i, colours[node->phase]);
    put_quoted(text, node->name);
    gx_text_put(text, "\\n");
    put_quoted(text, node->op_name);
    gx_text_put(text, "\"];\n");
}

static void put_value(gx_text *text, const gx_value *value, size_t id)
{
    const bool data = value->kind == GX_VALUE_DATA || value->kind == GX_VALUE_INPUT;

    gx_text_format(text, "  value%zu [shape=%s, label=\"", id,
                   data ? "parallelogram" : "oval");
    put_quoted(text, value->name);
    gx_text_put(text, "\\n");
    put_shape(text, value);
    gx_text_put(text, "\"];\n");
}

static void put_edge(gx_text *text, const gx_graph *graph, size_t value, size_t from_op,
                     size_t to_op)
{
    gx_text_format(text, "  op%zu -> op%zu [label=\"", from_op, to_op);
    put_quoted(text, graph->values[value].name);
    gx_text_put(text, "\\n");
    put_shape(text, &graph->values[value]);
    gx_text_put(text, "\"];\n");
}

/* Who wrote a value last, node by node; -1: nobody, it is there from the start. */
static void put_operand(gx_text *text, const gx_graph *graph, size_t node,
                        gx_field_kind kind, int32_t id, int32_t *writer)
{
    const bool reads = kind == GX_FIELD_IN || kind == GX_FIELD_INOUT;
    const bool lives_on = graph->values[id].kind != GX_VALUE_TEMP;

    if (reads && writer[id] >= 0)
        put_edge(text, graph, (size_t)id, (size_t)writer[id], node);
    else if (reads)
        gx_text_format(text, "  value%zu -> op%zu;\n", (size_t)id, node);
    if (kind == GX_FIELD_IN)
        return;
    if (lives_on)
        gx_text_format(text, "  op%zu -> value%zu [style=dashed, constraint=false];\n",
                       node, (size_t)id);
    else
        writer[id] = (int32_t)node;
}

static void put_operands(gx_text *text, const gx_graph *graph, size_t i, int32_t *writer)
{
    const gx_node *node = &graph->nodes[i];
    int arg = 0;

    if (!node->op || !node->arg)
        return;
    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (field->kind != GX_FIELD_IN && field->kind != GX_FIELD_INOUT &&
            field->kind != GX_FIELD_OUT)
            continue;
        const int32_t id = node->arg[arg++];

        if (id >= 0)
            put_operand(text, graph, i, field->kind, id, writer);
    }
}

char *gx_graph_dot(const gx_graph *graph)
{
    int32_t *writer = malloc((graph->n_values + 1) * sizeof *writer);
    gx_text text = { 0 };

    if (!writer)
        return NULL;
    memset(writer, 0xff, (graph->n_values + 1) * sizeof *writer);
    gx_text_put(&text, "digraph \"");
    put_quoted(&text, graph->name);
    gx_text_put(&text, "\" {\n  node [fontname=\"sans-serif\", fontsize=10];\n"
                       "  edge [fontname=\"sans-serif\", fontsize=8];\n");
    for (size_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind != GX_VALUE_TEMP)
            put_value(&text, &graph->values[i], i);
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        put_node(&text, &graph->nodes[i], i);
    for (size_t i = 0; i < graph->n_nodes; i++)
        put_operands(&text, graph, i, writer);
    gx_text_put(&text, "}\n");
    free(writer);
    return gx_text_take(&text);
}
