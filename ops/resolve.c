/* From the nodes of a file to the program of a step: the order of the passes. */
#include <string.h>

#include "average.h"
#include "builder.h"

static bool reads(const gx_node *node, const char *value)
{
    for (int f = 0; f < node->n_fields; f++) {
        if (strcmp(node->fields[f].text, value) == 0)
            return true;
    }
    return false;
}

/* The written node that makes the loss, or -1. */
static int32_t find_maker(const gx_graph *graph, const char *value)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const gx_op *op = gx_op_find(graph->nodes[i].op_name);

        for (int f = 0; op && op->loss && f < graph->nodes[i].n_fields; f++) {
            const gx_field_value *field = &graph->nodes[i].fields[f];
            int index;

            if (strcmp(field->text, value) == 0 &&
                gx_field_find(op, field->key, &index) &&
                gx_arg_kind(op, index) == GX_FIELD_OUT)
                return (int32_t)i;
        }
    }
    return -1;
}

/* The loss is taken last of the written ops where nothing else reads it, so that its
 * derivative stands beside it. Gives the node to put off, or -1. */
static int32_t put_off(const gx_graph *graph)
{
    const int32_t maker =
        graph->backward && !graph->expanded ? find_maker(graph, graph->backward) : -1;

    for (size_t i = (size_t)(maker + 1); maker >= 0 && i < graph->n_nodes; i++) {
        if (reads(&graph->nodes[i], graph->backward))
            return -1;
    }
    return maker;
}

/* What `backward` derives follows the forward ops: one that says it is of another phase
 * would be left out, and what it trains with it. */
static void check_phase(gx_builder *builder, const gx_node *node, const gx_op *op)
{
    const gx_graph *graph = builder->graph;

    if (!graph->backward || node->phase == op->phase)
        return;
    gx_report(
        builder->list, node->phase_pos,
        "phase is \"%s\", and %s is an op of the phase \"%s\": another phase is for "
        "gradients written by hand, not beside `backward: %s`, which derives them",
        gx_phase_name(node->phase), op->name, gx_phase_name(op->phase), graph->backward);
}

static void place_written(gx_builder *builder, size_t n)
{
    gx_graph *graph = builder->graph;
    const int32_t last = put_off(graph);

    for (size_t i = 0; i < n; i++) {
        gx_node *node = &graph->nodes[i];
        const gx_op *op = gx_op_find(node->op_name);

        if (!node->origin)
            node->origin = node->name;
        if (!op || graph->expanded)
            continue;
        if (node->phase_given)
            check_phase(builder, node, op);
        else
            node->phase = op->phase;
    }
    builder->written = true;
    for (size_t i = 0; i < n; i++) {
        if ((int32_t)i != last)
            gx_builder_place(builder, (int32_t)i);
    }
    if (last >= 0)
        gx_builder_place(builder, last);
    builder->written = false;
}

/* Nodes that gexec adds, while nothing is wrong with those that were written. */
static void derive(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    const bool train = graph->kind == GX_TRAIN;
    const int32_t loss = graph->backward ? gx_find_loss(builder) : -1;

    if (!train)
        gx_drop_training(builder);
    if (train && loss >= 0 && gx_diagnostics_count(builder->list) == 0)
        gx_derive_backward(builder, loss);
    if (train && gx_diagnostics_count(builder->list) == 0)
        gx_add_training(builder);
    gx_add_metrics(builder);
    if (gx_diagnostics_count(builder->list) == 0)
        gx_add_step_end(builder);
}

static void bind_logged(gx_graph *graph)
{
    for (size_t i = 0; i < graph->n_logged; i++)
        graph->logged[i] = gx_graph_value_id(graph, graph->logged_tensor[i]);
}

/* State that starts as a parameter does, as the reader could not know it. */
static void check_param_inits(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];
        const gx_init *init = &value->init;

        if (!value->has_init || init->kind != GX_INIT_PARAM)
            continue;
        const int32_t id = gx_graph_value_id(graph, init->path);
        const gx_value *param = id >= 0 ? &graph->values[id] : NULL;
        char is[120], should[120];

        if (value->kind != GX_VALUE_STATE)
            gx_report(builder->list, init->pos,
                      "initialiser \"param\" is for state: \"%s\" is none", value->name);
        else if (!param || param->kind != GX_VALUE_PARAM)
            gx_report(builder->list, init->pos, "there is no parameter \"%s\"",
                      init->path);
        else if (param->rank != value->rank ||
                 memcmp(param->dim, value->dim,
                        (size_t)param->rank * sizeof param->dim[0]) != 0)
            gx_report(builder->list, init->pos, "\"%s\" has shape %s, \"%s\" has %s",
                      param->name, gx_shape_text(param->rank, param->dim, is, sizeof is),
                      value->name,
                      gx_shape_text(value->rank, value->dim, should, sizeof should));
    }
}

void gx_resolve(gx_graph *graph, gx_diagnostics *list)
{
    const size_t n_written = graph->n_nodes;
    const bool adds = !graph->expanded;
    gx_builder builder;

    gx_builder_init(&builder, graph, list);
    for (size_t i = 0; i < graph->n_values; i++)
        graph->values[i].producer = -1;
    check_param_inits(&builder);
    if (adds && graph->optimizer.op_name)
        gx_check_optimizer(&builder);
    if (adds && graph->data.n_columns > 0) {
        gx_add_data(&builder);
        gx_add_gathers(&builder);
    }
    place_written(&builder, n_written);
    if (adds) {
        gx_check_gradient_names(&builder);
        gx_check_moment_names(&builder);
        derive(&builder);
    }
    gx_mark_outputs(&builder);
    /* Mistakes of the reader count too: after one, a node may stand without its row. */
    if (gx_diagnostics_count(list) > 0 || gx_arena_failed(graph->arena))
        return;
    if (adds)
        gx_prune(&builder);
    if (!gx_graph_reorder(graph, builder.order, builder.n_order))
        return;
    bind_logged(graph);
    gx_set_averages(graph);
    gx_annotate(graph);
}
