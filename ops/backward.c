/* The reverse walk: from the loss to every trained parameter that leads to it. */
#include <string.h>

#include "builder.h"

/* The name of a gradient that is exactly 1, that of the loss itself: it is no tensor. */
static const char one[] = "1";

/* Gradients are kept for the values that stood when the walk began; the walk's own have
 * none. */
static gx_gradient *gradient_of(gx_builder *builder, int32_t id)
{
    return id >= 0 && (size_t)id < builder->n_gradients ? &builder->gradients[id] : NULL;
}

const char *gx_builder_gradient(gx_builder *builder, int32_t id)
{
    const gx_gradient *gradient = gradient_of(builder, id);

    return gradient ? gradient->sum : NULL;
}

bool gx_builder_is_one(const char *gradient)
{
    return gradient == one;
}

/* The gradient of the loss itself: 1, or the scale of the loss. */
static bool is_seed(const char *gradient)
{
    return gradient && (gradient == one || strcmp(gradient, GX_STATE_SCALE) == 0);
}

bool gx_builder_wants(gx_builder *builder, int32_t id)
{
    const gx_gradient *gradient = gradient_of(builder, id);

    return gradient && gradient->wanted && gradient->n_expected > 0;
}

/* Parts and sums are numbered by how many came before: a parameter may have thousands. */
static const char *part_name(gx_builder *builder, int32_t id, const char *what)
{
    gx_arena *arena = builder->graph->arena;
    const char *suffix =
        gx_arena_format(arena, "grad.%s%d", what, builder->gradients[id].n_given);

    return suffix ? gx_builder_name(builder, builder->graph->values[id].name, suffix)
                  : NULL;
}

const char *gx_builder_gradient_name(gx_builder *builder, int32_t id)
{
    const gx_gradient *gradient = gradient_of(builder, id);

    if (gradient && gradient->n_expected > 1)
        return part_name(builder, id, "part");
    return gx_builder_name(builder, builder->graph->values[id].name, "grad");
}

const char *gx_builder_wanted_name(gx_builder *builder, int32_t id)
{
    return gx_builder_wants(builder, id) ? gx_builder_gradient_name(builder, id) : NULL;
}

static void add_up(gx_builder *builder, int32_t id, gx_gradient *gradient,
                   const char *more)
{
    const bool last = gradient->n_given + 1 == gradient->n_expected;
    const char *sum =
        last ? gx_builder_name(builder, builder->graph->values[id].name, "grad")
             : part_name(builder, id, "sum");
    const gx_field_text fields[] = { { "a", gradient->sum },
                                     { "b", more },
                                     { "out", sum } };

    gx_builder_node(builder, "add", part_name(builder, id, "add"), builder->walked,
                    fields, 3);
    gradient->sum = sum;
}

void gx_builder_contribute(gx_builder *builder, int32_t id, const char *name)
{
    gx_gradient *gradient = gradient_of(builder, id);

    if (!gradient || !name)
        return;
    if (gradient->n_given == 0) {
        gradient->sum = name;
        gradient->is_seed = is_seed(name);
    } else if (is_seed(name) || gradient->is_seed) {
        gx_builder_report(builder, builder->walked,
                          "\"%s\" counts more than once in the loss: not supported",
                          builder->graph->values[id].name);
    } else {
        add_up(builder, id, gradient, name);
    }
    gradient->n_given++;
}

/* True where `list` names the gradient of `value`: "NAME.grad". */
static bool is_asked_for(const char *const *list, size_t n, const char *value)
{
    const size_t length = strlen(value);

    for (size_t i = 0; i < n; i++) {
        if (strncmp(list[i], value, length) == 0 &&
            strcmp(list[i] + length, ".grad") == 0)
            return true;
    }
    return false;
}

static bool gradient_is_asked_for(const gx_graph *graph, const gx_value *value)
{
    return is_asked_for((const char *const *)graph->outputs, graph->n_outputs,
                        value->name) ||
           is_asked_for(graph->keep, graph->n_keep, value->name);
}

/* Forward: a value is wanted when it is a trained parameter, or an input whose gradient
 * is an output, or made from such. */
static void mark_wanted(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    for (size_t i = 0; i < builder->n_gradients; i++) {
        const gx_value *value = &graph->values[i];

        builder->gradients[i].wanted =
            gx_is_float(value->dtype) &&
            ((value->kind == GX_VALUE_PARAM && !value->frozen) ||
             (value->kind == GX_VALUE_INPUT && gradient_is_asked_for(graph, value)));
    }
    for (size_t k = 0; k < builder->n_order; k++) {
        const gx_node *node = &graph->nodes[builder->order[k]];
        const int n = gx_n_args(node->op);
        bool wanted = false;

        for (int i = 0; i < n; i++) {
            wanted =
                wanted || (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_IN &&
                           builder->gradients[node->arg[i]].wanted);
        }
        for (int i = 0; wanted && i < n; i++) {
            if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_OUT &&
                gx_is_float(graph->values[node->arg[i]].dtype))
                builder->gradients[node->arg[i]].wanted = true;
        }
    }
}

/* True when the gradient of an output of this node reaches the loss. */
static bool is_reached(const gx_builder *builder, const gx_node *node)
{
    for (int i = 0; i < gx_n_args(node->op); i++) {
        if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_OUT &&
            builder->gradients[node->arg[i]].n_expected > 0 &&
            builder->gradients[node->arg[i]].wanted)
            return true;
    }
    return false;
}

/* Backward: how many contributions each wanted value will get. */
static void count_contributions(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    for (size_t k = builder->n_order; k-- > 0;) {
        const gx_node *node = &graph->nodes[builder->order[k]];

        if (node->phase != GX_PHASE_FORWARD || !is_reached(builder, node))
            continue;
        for (int i = 0; i < gx_n_args(node->op); i++) {
            if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_IN &&
                builder->gradients[node->arg[i]].wanted)
                builder->gradients[node->arg[i]].n_expected++;
        }
    }
}

static bool gradient_is_seed(gx_builder *builder, const gx_node *node)
{
    for (int i = 0; i < gx_n_args(node->op); i++) {
        if (node->arg[i] >= 0 && gx_arg_kind(node->op, i) == GX_FIELD_OUT &&
            is_seed(gx_builder_gradient(builder, node->arg[i])))
            return true;
    }
    return false;
}

static void check_gradient_name(gx_builder *builder, int32_t id)
{
    const gx_graph *graph = builder->graph;
    const char *name = graph->values[id].name;

    gx_report_taken_name(builder, gx_arena_format(graph->arena, "%s.grad", name),
                         "the gradient that `backward` derives", name);
}

void gx_check_gradient_names(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    for (size_t i = 0; graph->backward && i < graph->n_values; i++) {
        if (graph->values[i].kind == GX_VALUE_PARAM)
            check_gradient_name(builder, (int32_t)i);
    }
}

/* The same of tensors that a gradient reaches; known once contributions are counted. */
static void check_reached_names(gx_builder *builder)
{
    for (size_t i = 0; i < builder->n_gradients; i++) {
        if (builder->graph->values[i].kind != GX_VALUE_PARAM &&
            gx_builder_wants(builder, (int32_t)i))
            check_gradient_name(builder, (int32_t)i);
    }
}

/* Losses know the gradient of the loss itself and no other; other ops need another,
 * except a sum, which hands on what it gets. */
static bool may_derive(gx_builder *builder, int32_t id)
{
    const gx_node *node = &builder->graph->nodes[id];
    const bool seed = gradient_is_seed(builder, node);

    if (!node->op->grad) {
        gx_builder_report(builder, id,
                          "\"%s\" stands between a parameter and the loss, and %s has no "
                          "derivative",
                          node->origin, node->op_name);
    } else if (node->op->loss && !seed) {
        gx_builder_report(builder, id,
                          "\"%s\" is used in a further computation; the derivative of %s "
                          "is for a loss, or one of the terms of a sum that is the loss",
                          node->origin, node->op_name);
    } else if (node->op->loss && builder->training.scale && !node->op->takes_one) {
        gx_builder_report(builder, id,
                          "the derivative of %s takes no scaled gradient: the model "
                          "cannot have a loss_scale",
                          node->op_name);
    } else if (!node->op->loss && seed && !node->op->sum && !node->op->takes_one) {
        gx_report(builder->list, builder->graph->backward_pos,
                  "backward: \"%s\" is made by %s, expected a loss such as "
                  "softmax_cross_entropy or mse, or a sum of them",
                  builder->graph->backward, node->op_name);
    } else {
        return true;
    }
    return false;
}

/* Stops at the first mistake: what leads to it would only lack its gradient. */
static void walk(gx_builder *builder)
{
    const size_t before = gx_diagnostics_count(builder->list);

    for (size_t k = builder->n_order; k-- > 0;) {
        const int32_t id = builder->order[k];
        const gx_node *node = &builder->graph->nodes[id];

        if (node->phase != GX_PHASE_FORWARD || !is_reached(builder, node))
            continue;
        builder->walked = id;
        if (!may_derive(builder, id))
            return;
        node->op->grad(builder, id);
        if (gx_diagnostics_count(builder->list) > before)
            return;
    }
}

/* A gradient that another value's stands for gets a tensor of its own where someone goes
 * by its name: an epilogue that does nothing copies, and of a scalar, which has no rows
 * for one, a scale by 1. */
static void name_gradient(gx_builder *builder, int32_t id, gx_gradient *gradient)
{
    const gx_value *value = &builder->graph->values[id];
    const char *suffix = strrchr(gradient->sum, '.');
    const size_t length = strlen(value->name);

    if (is_seed(gradient->sum)) {
        gx_report(
            builder->list, builder->graph->backward_pos,
            "backward: \"%s\" is a term of the loss itself, expected a loss such as "
            "softmax_cross_entropy or mse",
            value->name);
        return;
    }
    if (suffix && (size_t)(suffix - gradient->sum) == length &&
        strncmp(gradient->sum, value->name, length) == 0 && strcmp(suffix, ".grad") == 0)
        return;

    const char *name = gx_builder_name(builder, value->name, "grad");
    const gx_field_text fields[] = { { "x", gradient->sum },
                                     { "out", name },
                                     { "factor", "1" } };
    const bool scalar = value->rank == 0;

    gx_builder_node(builder, scalar ? "scale" : "epilogue",
                    gx_builder_name(builder, value->name, "grad.copy"), builder->walked,
                    fields, scalar ? 3 : 2);
    gradient->sum = name;
}

static void name_gradients(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;
    bool trained = false;

    for (size_t i = 0; i < builder->n_gradients; i++) {
        gx_gradient *gradient = &builder->gradients[i];
        const gx_value *value = &graph->values[i];

        if (!gradient->sum || !gradient->wanted)
            continue;
        trained = trained || value->kind != GX_VALUE_TEMP;
        if (value->kind == GX_VALUE_PARAM ||
            (!is_seed(gradient->sum) && gradient_is_asked_for(graph, value)))
            name_gradient(builder, (int32_t)i, gradient);
    }
    if (!trained)
        gx_report(builder->list, graph->backward_pos,
                  "backward: no trained parameter leads to \"%s\"", graph->backward);
}

/* Where the loss is the last of the forward ops no op of the passes reads its value: only
 * the log does. It then stands behind its derivative, the order's item `behind`, and
 * counts as backward, so that the pass need not wait for it. */
static void put_behind(gx_builder *builder, int32_t loss, size_t behind)
{
    gx_graph *graph = builder->graph;
    const int32_t maker = graph->values[loss].producer;

    if (maker < 0 || !graph->nodes[maker].op->loss || behind == 0 ||
        behind >= builder->n_order || builder->order[behind - 1] != maker)
        return;
    builder->order[behind - 1] = builder->order[behind];
    builder->order[behind] = maker;
    graph->nodes[maker].phase = GX_PHASE_BACKWARD;
}

int32_t gx_find_loss(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;
    const int32_t loss = gx_graph_value_id(graph, graph->backward);

    if (loss < 0 ||
        (graph->values[loss].kind == GX_VALUE_TEMP && graph->values[loss].producer < 0)) {
        const char *near = gx_nearest_value(builder, graph->backward);

        if (near)
            gx_report(builder->list, graph->backward_pos,
                      "backward: there is no tensor \"%s\"; did you mean \"%s\"?",
                      graph->backward, near);
        else
            gx_report(builder->list, graph->backward_pos,
                      "backward: there is no tensor \"%s\"", graph->backward);
        return -1;
    }
    const gx_value *value = &graph->values[loss];

    if (value->has_shape && (value->rank != 0 || value->dtype != GX_F32)) {
        char shape[128];

        gx_report(builder->list, graph->backward_pos,
                  "backward: \"%s\" is %s %s, expected the f32 scalar of a loss",
                  graph->backward, gx_dtype_name(value->dtype),
                  gx_shape_text(value->rank, value->dim, shape, sizeof shape));
        return -1;
    }
    return loss;
}

void gx_derive_backward(gx_builder *builder, int32_t loss)
{
    const gx_graph *graph = builder->graph;

    if (builder->training.scale)
        gx_ensure_state(builder, GX_STATE_SCALE);
    builder->n_gradients = graph->n_values;
    builder->gradients =
        gx_arena_alloc(graph->arena, (graph->n_values + 1) * sizeof *builder->gradients);
    if (!builder->gradients) {
        builder->n_gradients = 0;
        return;
    }
    mark_wanted(builder);

    gx_gradient *root = &builder->gradients[loss];

    *root = (gx_gradient){ .sum = builder->training.scale ? GX_STATE_SCALE : one,
                           .n_expected = 1,
                           .n_given = 1,
                           .wanted = root->wanted,
                           .is_seed = true };
    count_contributions(builder);
    check_reached_names(builder);
    if (gx_diagnostics_count(builder->list) > 0)
        return;

    const size_t before = gx_diagnostics_count(builder->list);
    const size_t n_forward = builder->n_order;

    builder->phase = GX_PHASE_BACKWARD;
    walk(builder);
    if (gx_diagnostics_count(builder->list) == before)
        name_gradients(builder);
    if (gx_diagnostics_count(builder->list) == before)
        put_behind(builder, loss, n_forward);
}
