/* Appends nodes to a graph and brings each of them into its final form. */
#include <stdio.h>
#include <string.h>

#include "builder.h"

enum { MAX_FIELDS = GX_MAX_ARGS + GX_MAX_ATTRS };

void gx_builder_init(gx_builder *builder, gx_graph *graph, gx_diagnostics *list)
{
    *builder = (gx_builder){ .graph = graph, .list = list };
}

gx_graph *gx_builder_graph(gx_builder *builder)
{
    return builder->graph;
}

/* Nothing is done when memory is out; the arena remembers that. */
static void push_order(gx_builder *builder, int32_t id)
{
    if (builder->n_order == builder->order_capacity) {
        const size_t capacity =
            builder->order_capacity ? 2 * builder->order_capacity : 256;
        int32_t *order = gx_arena_alloc(builder->graph->arena, capacity * sizeof *order);

        if (!order)
            return;
        if (builder->n_order > 0)
            memcpy(order, builder->order, builder->n_order * sizeof *order);
        builder->order = order;
        builder->order_capacity = capacity;
    }
    builder->order[builder->n_order++] = id;
}

/* What a node makes, it makes no more, or makes again. */
static void set_producer(gx_graph *graph, int32_t id, int32_t producer)
{
    const gx_node *node = &graph->nodes[id];

    for (int i = 0; i < gx_n_args(node->op); i++) {
        if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_OUT)
            graph->values[node->arg[i]].producer = producer;
    }
}

static bool try_expand(gx_builder *builder, int32_t id)
{
    gx_graph *graph = builder->graph;
    bool (*expand)(gx_builder *, int32_t) = graph->nodes[id].op->expand;
    const gx_phase phase = builder->phase;
    const bool written = builder->written;

    if (!expand)
        return false;
    builder->phase = graph->nodes[id].phase;
    builder->written = false;
    set_producer(graph, id, -1); /* so that the nodes in its place may make it */
    const bool replaced = expand(builder, id);

    if (!replaced)
        set_producer(graph, id, id);
    builder->phase = phase;
    builder->written = written;
    return replaced;
}

bool gx_builder_place(gx_builder *builder, int32_t id)
{
    if (!gx_bind(builder, id) || !gx_infer(builder, id))
        return false;

    if (!try_expand(builder, id))
        push_order(builder, id);
    return true;
}

/* Fields without text are left out. Returns how many there are. */
static int keep_fields(const gx_field_text *fields, size_t n_fields, gx_pos pos,
                       gx_field_value *kept)
{
    int n = 0;

    for (size_t i = 0; i < n_fields && n < MAX_FIELDS; i++) {
        if (fields[i].text)
            kept[n++] = (gx_field_value){ fields[i].key, fields[i].text, pos, pos };
    }
    return n;
}

int32_t gx_builder_append(gx_builder *builder, const char *op, const char *name,
                          int32_t origin, const gx_field_value *fields, int n_fields,
                          gx_pos pos)
{
    gx_graph *graph = builder->graph;

    if (!name)
        return -1;
    const int32_t id = gx_graph_append(graph, op, name, builder->phase, fields, n_fields,
                                       pos, builder->list);

    if (id < 0)
        return -1;
    graph->nodes[id].origin =
        origin >= 0 ? graph->nodes[origin].origin : graph->nodes[id].name;
    return gx_builder_place(builder, id) ? id : -1;
}

int32_t gx_builder_node(gx_builder *builder, const char *op, const char *name,
                        int32_t origin, const gx_field_text *fields, size_t n_fields)
{
    const gx_graph *graph = builder->graph;
    const gx_pos pos = origin >= 0 ? graph->nodes[origin].pos : (gx_pos){ 0, 0 };
    gx_field_value kept[MAX_FIELDS];
    const int n_kept = keep_fields(fields, n_fields, pos, kept);

    return gx_builder_append(builder, op, name, origin, kept, n_kept, pos);
}

void gx_builder_rewrite(gx_builder *builder, int32_t node, const char *op,
                        const gx_field_text *fields, size_t n_fields)
{
    gx_graph *graph = builder->graph;
    gx_node *at = &graph->nodes[node];
    gx_field_value kept[MAX_FIELDS];
    const int n_kept = keep_fields(fields, n_fields, at->pos, kept);
    gx_field_value *copy =
        gx_arena_alloc(graph->arena, (size_t)(n_kept + 1) * sizeof *copy);

    if (!copy)
        return;
    memcpy(copy, kept, (size_t)n_kept * sizeof *copy);
    at->op_name = op;
    at->fields = copy;
    at->n_fields = n_kept;
    gx_builder_place(builder, node);
}

const char *gx_builder_operand(gx_builder *builder, int32_t node, int arg)
{
    const int32_t value = builder->graph->nodes[node].arg[arg];

    return value < 0 ? NULL : builder->graph->values[value].name;
}

static bool is_free(const gx_graph *graph, const char *name)
{
    return gx_graph_value_id(graph, name) < 0 && gx_graph_node_id(graph, name) < 0;
}

const char *gx_builder_name(gx_builder *builder, const char *stem, const char *suffix)
{
    gx_graph *graph = builder->graph;
    const char *name = gx_arena_format(graph->arena, "%s.%s", stem, suffix);

    for (int i = 2; name && !is_free(graph, name); i++)
        name = gx_arena_format(graph->arena, "%s.%s.%d", stem, suffix, i);
    return name;
}

void gx_builder_report(gx_builder *builder, int32_t node, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gx_report(builder->list, builder->graph->nodes[node].pos, "%s", text);
}

void gx_report_taken_name(gx_builder *builder, const char *name, const char *what,
                          const char *of)
{
    const gx_graph *graph = builder->graph;
    const int32_t value = name ? gx_graph_value_id(graph, name) : -1;
    const int32_t node = name ? gx_graph_node_id(graph, name) : -1;

    if (value < 0 && node < 0)
        return;
    gx_report(builder->list,
              value >= 0 ? graph->values[value].pos : graph->nodes[node].pos,
              "name \"%s\" is gexec's own here: %s of \"%s\" has it", name, what, of);
}

const char *gx_builder_add_output(gx_builder *builder, int32_t node, const char *key,
                                  const char *name)
{
    gx_graph *graph = builder->graph;
    gx_node *at = &graph->nodes[node];
    int arg;

    if (!name || !gx_field_find(at->op, key, &arg))
        return NULL;
    if (at->arg[arg] >= 0)
        return graph->values[at->arg[arg]].name;

    const size_t n = (size_t)at->n_fields;
    gx_field_value *fields = gx_arena_alloc(graph->arena, (n + 1) * sizeof *fields);
    const int32_t value = gx_graph_add_value(graph, name, GX_VALUE_TEMP, GX_F32, -1, NULL,
                                             (gx_pos){ 0, 0 }, builder->list);

    if (!fields || value < 0)
        return NULL;
    memcpy(fields, at->fields, n * sizeof *fields);
    fields[n] = (gx_field_value){ key, graph->values[value].name, at->pos, at->pos };
    at->fields = fields;
    at->n_fields++;
    at->arg[arg] = value;
    graph->values[value].producer = node;
    return gx_infer(builder, node) ? graph->values[value].name : NULL;
}
