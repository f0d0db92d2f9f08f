/* Where updates stand: beside the weight gradient, not behind the whole backward pass.
 *
 * The chain of data gradients is what a step waits for. A weight gradient and the update
 * that it is for hang on it by one end only, so they may run beside it: the update as
 * soon as everything has read the parameter, the weight gradient right before it, where
 * one kernel can do both and the gradient need not be stored. Updates whose gradient is
 * read elsewhere too (norms, sums over steps), or is none of a product, stay where they
 * are. */
#include <string.h>

#include "builder.h"

enum { NONE = -1 };

/* Arrays by place in the order so far, or by value id. */
typedef struct places {
    gx_builder *builder;
    int32_t n;
    int32_t *last_read, *last_written; /* by value: the latest place so far */
    int32_t *maker;                    /* by value: the place that makes it */
    int32_t *n_reads;                  /* by value */
    int32_t *bias_update; /* by value: the update of the bias that was added to it */
    int32_t *anchor;      /* of an update: the place that it must follow; NONE: none */
    int32_t *first_after, *last_after, *next; /* those that now follow a place */
    bool *moved;
} places;

static const gx_node *node_at(const places *p, int32_t place)
{
    return &p->builder->graph->nodes[p->builder->order[place]];
}

static bool is_op(const places *p, int32_t place, const char *name)
{
    return strcmp(node_at(p, place)->op->name, name) == 0;
}

/* The gradient that an update reads; NONE: the node is no update. */
static int32_t gradient_of(const gx_node *node)
{
    int index = NONE;
    const gx_field *first = node->op->fields;

    if (node->phase != GX_PHASE_OPTIMIZER || first->kind != GX_FIELD_INOUT ||
        strcmp(first->name, "param") != 0 || !gx_field_find(node->op, "grad", &index))
        return NONE;
    return node->arg[index];
}

/* A rate of what is known when the step begins: it can be made first. */
static bool is_rate(const places *p, int32_t place)
{
    return is_op(p, place, "schedule");
}

static void note_accesses(places *p, int32_t place)
{
    const gx_node *node = node_at(p, place);

    for (int i = 0; i < gx_n_args(node->op); i++) {
        const int32_t id = node->arg[i];
        const gx_field_kind kind = gx_arg_kind(node->op, i);

        if (id < 0)
            continue;
        if (kind != GX_FIELD_OUT) {
            p->last_read[id] = place;
            p->n_reads[id]++;
        }
        if (kind != GX_FIELD_IN)
            p->last_written[id] = place;
        if (kind == GX_FIELD_OUT && p->maker[id] == NONE)
            p->maker[id] = place;
    }
}

/* The last place that an update must follow, but for the maker of its gradient. */
static int32_t must_follow(const places *p, int32_t place, int32_t gradient)
{
    const gx_node *node = node_at(p, place);
    int32_t after = 0;

    for (int i = 0; i < gx_n_args(node->op); i++) {
        const int32_t id = node->arg[i];

        if (id < 0 || id == gradient)
            continue;
        if (p->last_written[id] > after)
            after = p->last_written[id];
        if (gx_arg_kind(node->op, i) != GX_FIELD_IN && p->last_read[id] > after)
            after = p->last_read[id];
    }
    return after;
}

static void look_at(places *p, int32_t place)
{
    const gx_node *node = node_at(p, place);
    const int32_t gradient = gradient_of(node);
    const int32_t maker = gradient >= 0 ? p->maker[gradient] : NONE;

    if (is_rate(p, place))
        return;
    if (maker >= 0) {
        p->anchor[place] = must_follow(p, place, gradient);
        if (is_op(p, maker, "epilogue.bwd")) {
            const int32_t *arg = node_at(p, maker)->arg;
            const int32_t dx = arg[GX_EPILOGUE_BWD_DX], dy = arg[GX_EPILOGUE_BWD_DY];

            p->bias_update[dx >= 0 ? dx : dy] = place;
        }
    }
    note_accesses(p, place);
}

/* A product of values that no later node writes, made for this reader alone. */
static bool may_sink(const places *p, int32_t maker, int32_t gradient)
{
    const gx_graph *graph = p->builder->graph;
    const gx_node *node = node_at(p, maker);

    if (!is_op(p, maker, "gemm") || graph->values[gradient].kind != GX_VALUE_TEMP ||
        p->n_reads[gradient] != 1)
        return false;
    for (int i = 0; i < gx_n_args(node->op); i++) {
        const int32_t id = node->arg[i];

        if (id >= 0 && id != gradient && graph->values[id].kind != GX_VALUE_TEMP &&
            graph->values[id].kind != GX_VALUE_INPUT)
            return false;
    }
    return true;
}

static void put_after(places *p, int32_t anchor, int32_t place)
{
    p->moved[place] = true;
    p->next[place] = NONE;
    if (p->first_after[anchor] == NONE)
        p->first_after[anchor] = place;
    else
        p->next[p->last_after[anchor]] = place;
    p->last_after[anchor] = place;
}

/* What goes back through an activation stays with the product before it. */
static int32_t past_partner(const places *p, int32_t place)
{
    if (place + 1 < p->n && is_op(p, place, "gemm") &&
        is_op(p, place + 1, "epilogue.bwd") &&
        node_at(p, place + 1)->arg[GX_EPILOGUE_BWD_DY] ==
            node_at(p, place)->arg[GX_GEMM_OUT])
        return place + 1;
    return place;
}

/* The update at `place`, its weight gradient, and the update of the bias beside it. */
static void move_update(places *p, int32_t place)
{
    const int32_t gradient = gradient_of(node_at(p, place));
    const int32_t maker = p->maker[gradient];
    int32_t anchor = p->anchor[place];

    if (!may_sink(p, maker, gradient) || node_at(p, anchor)->phase == GX_PHASE_OPTIMIZER)
        return;
    if (anchor > maker) {
        anchor = past_partner(p, anchor);
        put_after(p, anchor, maker);
    } else {
        anchor = maker;
    }
    put_after(p, anchor, place);

    const int32_t d = node_at(p, maker)->arg[GX_GEMM_B];
    const int32_t bias = d >= 0 ? p->bias_update[d] : NONE;

    if (bias >= 0 && !p->moved[bias] && p->anchor[bias] <= anchor)
        put_after(p, anchor, bias);
}

static bool reserve(places *p)
{
    gx_graph *graph = p->builder->graph;
    const size_t n = p->builder->n_order, n_values = graph->n_values;
    int32_t **by_value[] = { &p->last_read, &p->last_written, &p->maker,
                             &p->bias_update };
    int32_t **by_place[] = { &p->anchor, &p->first_after, &p->last_after, &p->next };

    for (size_t i = 0; i < 4; i++) {
        *by_value[i] = gx_arena_alloc(graph->arena, (n_values + 1) * sizeof(int32_t));
        *by_place[i] = gx_arena_alloc(graph->arena, (n + 1) * sizeof(int32_t));
        if (!*by_value[i] || !*by_place[i])
            return false;
        memset(*by_value[i], 0xff, (n_values + 1) * sizeof(int32_t));
        memset(*by_place[i], 0xff, (n + 1) * sizeof(int32_t));
    }
    p->n_reads = gx_arena_alloc(graph->arena, (n_values + 1) * sizeof(int32_t));
    p->moved = gx_arena_alloc(graph->arena, (n + 1) * sizeof(bool));
    if (!p->n_reads || !p->moved)
        return false;
    memset(p->n_reads, 0, (n_values + 1) * sizeof(int32_t));
    memset(p->moved, 0, (n + 1) * sizeof(bool));
    return true;
}

void gx_order_updates(gx_builder *builder)
{
    places p = { .builder = builder, .n = (int32_t)builder->n_order };
    int32_t *order =
        gx_arena_alloc(builder->graph->arena, (builder->n_order + 1) * sizeof *order);
    size_t n = 0;

    if (!order || !reserve(&p))
        return; /* the arena remembers */
    for (int32_t k = 0; k < p.n; k++)
        look_at(&p, k);
    for (int32_t k = 0; k < p.n; k++) {
        if (p.anchor[k] >= 0)
            move_update(&p, k);
        if (is_rate(&p, k)) {
            order[n++] = builder->order[k];
            p.moved[k] = true;
        }
    }
    for (int32_t k = 0; k < p.n; k++) {
        if (!p.moved[k])
            order[n++] = builder->order[k];
        for (int32_t i = p.first_after[k]; i >= 0; i = p.next[i])
            order[n++] = builder->order[i];
    }
    builder->order = order;
}
