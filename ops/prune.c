/* What the program keeps: outputs, and in an evaluation only what leads to them. */
#include <string.h>

#include "builder.h"
#include "gemm.h"
#include "infer.h"

static bool is_training(const gx_node *node)
{
    return node->phase == GX_PHASE_BACKWARD || node->phase == GX_PHASE_OPTIMIZER;
}

/* A value that the order's nodes before this one do not make. */
static bool is_missing(const gx_graph *graph, int32_t id)
{
    return id >= 0 && graph->values[id].kind == GX_VALUE_TEMP &&
           graph->values[id].producer < 0;
}

/* The node is left out: nobody makes its outputs. */
static void disown(gx_graph *graph, const gx_node *node)
{
    for (int i = 0; i < gx_n_args(node->op); i++) {
        if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_OUT)
            graph->values[node->arg[i]].producer = -1;
    }
}

void gx_drop_training(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    size_t n = 0;

    for (size_t k = 0; k < builder->n_order; k++) {
        const gx_node *node = &graph->nodes[builder->order[k]];
        const int n_args = gx_n_args(node->op);
        bool drop = is_training(node);

        for (int i = 0; !drop && i < n_args; i++)
            drop = gx_arg_kind(node->op, i) == GX_FIELD_IN &&
                   is_missing(graph, node->arg[i]);
        if (drop)
            disown(graph, node);
        else
            builder->order[n++] = builder->order[k];
    }
    builder->n_order = n;
}

static bool ends_in_grad(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".grad") == 0;
}

/* What gexec adds to a training step: its rates, the norm of the gradients, their scale.
 */
static bool is_of_training(const gx_graph *graph, const char *name)
{
    return strncmp(name, "gexec.", 6) == 0 || gx_is_training_metric(graph, name);
}

/* "w.m" of a parameter "w": a moment, a sum, a master. */
static bool is_of_param(const gx_graph *graph, const char *name)
{
    const char *const dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < graph->n_values; i++) {
        const gx_value *const value = &graph->values[i];

        if (value->kind == GX_VALUE_PARAM &&
            strlen(value->name) == (size_t)(dot - name) &&
            strncmp(value->name, name, (size_t)(dot - name)) == 0)
            return true;
    }
    return false;
}

/* A name that may be one of those that are derived. */
static bool may_be_derived(const gx_graph *graph, const char *name)
{
    return is_of_training(graph, name) || is_of_param(graph, name) ||
           (graph->backward && ends_in_grad(name));
}

/* `sound`: nothing was found wrong, so that all stands that is derived. */
static void mark_output(gx_builder *builder, const char *name, gx_pos pos, bool sound)
{
    gx_graph *graph = builder->graph;
    const int32_t id = gx_graph_value_id(graph, name);
    const bool is_eval = graph->kind == GX_EVAL;

    if (id >= 0 && !is_missing(graph, id)) {
        graph->values[id].is_output = true;
        return;
    }
    /* In an evaluation what training makes is no mistake, only not there; and where the
     * derivation did not take place, nobody can say. */
    if (is_eval && id >= 0)
        return;
    if ((is_eval || !sound) && may_be_derived(graph, name)) {
        graph->asks_of_training = graph->asks_of_training || is_eval;
        return;
    }

    const char *near = gx_nearest_value(builder, name);

    if (near)
        gx_report(builder->list, pos, "there is no tensor \"%s\"; did you mean \"%s\"?",
                  name, near);
    else
        gx_report(builder->list, pos, "there is no tensor \"%s\"", name);
}

void gx_mark_outputs(gx_builder *builder)
{
    const bool sound = gx_diagnostics_count(builder->list) == 0;
    gx_graph *graph = builder->graph;

    for (size_t i = 0; i < graph->n_outputs; i++)
        mark_output(builder, graph->outputs[i],
                    graph->output_pos ? graph->output_pos[i] : (gx_pos){ 0, 0 }, sound);
    for (size_t i = 0; i < graph->n_keep; i++)
        mark_output(builder, graph->keep[i], (gx_pos){ 0, 0 }, sound);
    if (!graph->keep_gradients)
        return;
    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];
        const char *name = value->kind == GX_VALUE_PARAM && !value->frozen
                               ? gx_arena_format(graph->arena, "%s.grad", value->name)
                               : NULL;
        const int32_t id = name ? gx_graph_value_id(graph, name) : -1;

        if (id >= 0 && !is_missing(graph, id))
            graph->values[id].is_output = true;
    }
}

/* True when something asks for what the node does. */
static bool is_needed(const gx_graph *graph, const gx_node *node, const bool *needed)
{
    for (int i = 0; i < gx_n_args(node->op); i++) {
        const gx_field_kind kind = gx_arg_kind(node->op, i);

        if (node->arg[i] < 0 || kind == GX_FIELD_IN)
            continue;
        if (kind == GX_FIELD_INOUT || needed[node->arg[i]] ||
            graph->values[node->arg[i]].is_output)
            return true;
    }
    return false;
}

static bool asks_for_something(const gx_graph *graph)
{
    bool asks = graph->n_logged > 0;

    for (size_t i = 0; !asks && i < graph->n_values; i++)
        asks = graph->values[i].is_output;
    return asks;
}

void gx_prune(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    bool *needed;
    size_t first = builder->n_order;

    if (graph->kind != GX_EVAL || !asks_for_something(graph))
        return;
    needed = gx_arena_alloc(graph->arena, (graph->n_values + 1) * sizeof *needed);
    if (!needed)
        return;
    for (size_t k = builder->n_order; k-- > 0;) {
        const gx_node *node = &graph->nodes[builder->order[k]];

        if (!is_needed(graph, node, needed)) {
            disown(graph, node);
            continue;
        }
        for (int i = 0; i < gx_n_args(node->op); i++) {
            if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) != GX_FIELD_OUT)
                needed[node->arg[i]] = true;
        }
        builder->order[--first] = builder->order[k];
    }
    builder->n_order -= first;
    memmove(builder->order, builder->order + first,
            builder->n_order * sizeof *builder->order);
}

/* The node is a gemm that multiplies the value and does nothing else with it. */
static bool multiplies(const gx_node *node, int32_t value)
{
    bool only = strcmp(node->op->name, "gemm") == 0;

    for (int i = 0; only && i < gx_n_args(node->op); i++)
        only = node->arg[i] != value || i == GX_GEMM_A || i == GX_GEMM_B;
    return only;
}

static void count_readers(gx_graph *graph, const gx_node *node)
{
    const int n = gx_n_args(node->op);

    for (int i = 0; i < n; i++) {
        bool again = node->arg[i] < 0 || gx_arg_kind(node->op, i) == GX_FIELD_OUT;

        for (int j = 0; !again && j < i; j++)
            again =
                node->arg[j] == node->arg[i] && gx_arg_kind(node->op, j) != GX_FIELD_OUT;
        if (again)
            continue;
        graph->values[node->arg[i]].n_readers++;
        graph->values[node->arg[i]].n_products += multiplies(node, node->arg[i]);
    }
}

static void mark_updates(gx_graph *graph, const gx_node *node)
{
    for (int i = 0; node->phase == GX_PHASE_OPTIMIZER && i < gx_n_args(node->op); i++) {
        if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) != GX_FIELD_IN)
            graph->values[node->arg[i]].updated = true;
    }
}

static void set_fans(gx_value *value, int64_t fan_in, int64_t fan_out)
{
    if (value->kind != GX_VALUE_PARAM || value->fan_in > 0)
        return;
    value->fan_in = fan_in;
    value->fan_out = fan_out;
}

/* A weight's fans come from the product that reads it, whichever way it is stored; those
 * of a bias from the product that it is added to, as in torch.nn.Linear. */
static void find_fans(gx_graph *graph, const gx_node *node)
{
    if (node->phase != GX_PHASE_FORWARD)
        return;
    if (strcmp(node->op->name, "gemm") == 0) {
        gx_value *a = &graph->values[node->arg[GX_GEMM_A]];
        gx_value *b = &graph->values[node->arg[GX_GEMM_B]];
        const gx_product_sizes size = gx_product_sizes_of(graph, node, GX_GEMM_M);

        set_fans(b, size.k, size.n);
        set_fans(a, size.k, size.m);
    } else if (strcmp(node->op->name, "epilogue") == 0 &&
               node->arg[GX_EPILOGUE_BIAS] >= 0) {
        const gx_value *x = &graph->values[node->arg[GX_EPILOGUE_X]];
        const gx_node *maker = x->producer >= 0 ? &graph->nodes[x->producer] : NULL;

        if (maker && strcmp(maker->op->name, "gemm") == 0) {
            const gx_product_sizes size = gx_product_sizes_of(graph, maker, GX_GEMM_M);

            set_fans(&graph->values[node->arg[GX_EPILOGUE_BIAS]], size.k, size.n);
        }
    }
}

/* What must hold of a value must hold of those that it is moved from. */
static void limit_sources(gx_graph *graph, const gx_node *node)
{
    const bool gathers = strcmp(node->op->name, "gather") == 0;
    int out = 0;

    if (!gathers && !node->op->moves)
        return;
    while (gx_arg_kind(node->op, out) != GX_FIELD_OUT)
        out++;
    const gx_value *made = &graph->values[node->arg[out]];

    for (int i = 0; made->index_limit > 0 && i < out; i++) {
        /* Of what a gather reads, the first operand is the data. */
        if (node->arg[i] >= 0 && (i == 0 || !gathers))
            gx_limit_index_or(&graph->values[node->arg[i]], made->index_limit,
                              made->index_ignored, made->index_node);
    }
}

void gx_annotate(gx_graph *graph)
{
    for (size_t i = 0; i < graph->n_values; i++) {
        graph->values[i].n_readers = 0;
        graph->values[i].n_products = 0;
        graph->values[i].updated = false;
    }
    for (size_t k = 0; k < graph->n_nodes; k++) {
        count_readers(graph, &graph->nodes[k]);
        mark_updates(graph, &graph->nodes[k]);
        find_fans(graph, &graph->nodes[k]);
    }
    for (size_t k = graph->n_nodes; k-- > 0;)
        limit_sources(graph, &graph->nodes[k]);
}
