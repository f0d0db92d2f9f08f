/* Graphs made by hand. */
#include "support_plan.h"

#include <stdlib.h>

#include "builder.h"
#include "select.h"

static const gx_field make_fields[] = {
    { .name = "a", .kind = GX_FIELD_IN },
    { .name = "b", .kind = GX_FIELD_IN },
    { .name = "factor", .kind = GX_FIELD_REAL },
    { .name = "c", .kind = GX_FIELD_IN },
    { .name = "p", .kind = GX_FIELD_OUT },
    { .name = "q", .kind = GX_FIELD_OUT },
    { .name = NULL },
};

static const gx_field update_fields[] = {
    { .name = "w", .kind = GX_FIELD_INOUT },
    { .name = "g", .kind = GX_FIELD_IN },
    { .name = NULL },
};

const gx_op test_make = { .name = "make",
                          .fields = make_fields,
                          .tolerance = { 1, 1, 1 } };
const gx_op test_bend = { .name = "bend",
                          .fields = make_fields,
                          .tolerance = { 1, 1, 1 } };
const gx_op test_update = { .name = "update",
                            .fields = update_fields,
                            .tolerance = { 1, 1, 1 } };

static const char *const any[] = { "make", NULL };
const gx_alternative test_storing = { .name = "storing", .pattern = any };
const gx_alternative test_eliding = { .name = "eliding", .pattern = any, .elides = true };

static void *at_end(void **array, size_t *n, size_t *capacity, size_t bytes)
{
    if (*n == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        *array = realloc(*array, *capacity * bytes);
        assert_non_null(*array);
    }
    return (char *)*array + (*n)++ * bytes;
}

test_graph *test_graph_new(void)
{
    test_graph *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->graph.arena = gx_arena_create();
    assert_non_null(t->graph.arena);
    t->graph.name = "by hand";
    t->graph.finished = true;
    return t;
}

void test_graph_free(test_graph *t)
{
    gx_arena_free(t->plan.arena);
    gx_arena_free(t->graph.arena);
    free(t->graph.values);
    free(t->graph.nodes);
    free(t);
}

int32_t test_value(test_graph *t, gx_value_kind kind, int64_t n)
{
    gx_graph *g = &t->graph;
    gx_value *value =
        at_end((void **)&g->values, &g->n_values, &g->values_capacity, sizeof *g->values);

    *value = (gx_value){ .kind = kind,
                         .dtype = GX_F32,
                         .rank = 1,
                         .dim = { n },
                         .has_shape = true,
                         .producer = -1 };
    value->name = gx_arena_format(g->arena, "v%zu", g->n_values - 1);
    return (int32_t)g->n_values - 1;
}

int32_t test_node(test_graph *t, const gx_op *op, gx_phase phase, const int32_t *args)
{
    gx_graph *g = &t->graph;
    gx_node *node =
        at_end((void **)&g->nodes, &g->n_nodes, &g->nodes_capacity, sizeof *g->nodes);

    *node = (gx_node){ .op_name = op->name, .op = op, .phase = phase };
    node->name = gx_arena_format(g->arena, "n%zu", g->n_nodes - 1);
    node->arg = gx_arena_alloc(g->arena, GX_MAX_ARGS * sizeof *node->arg);
    node->attr = gx_arena_alloc(g->arena, GX_MAX_ATTRS * sizeof *node->attr);
    assert_non_null(node->arg);
    assert_non_null(node->attr);
    for (int i = 0; i < GX_MAX_ARGS; i++)
        node->arg[i] = i < gx_n_args(op) ? args[i] : -1;
    return (int32_t)g->n_nodes - 1;
}

void test_graph_finish(test_graph *t)
{
    gx_graph *g = &t->graph;

    for (size_t i = 0; i < g->n_values; i++) {
        g->values[i].producer = -1;
        g->values[i].n_readers = 0;
    }
    for (size_t n = 0; n < g->n_nodes; n++) {
        const gx_node *node = &g->nodes[n];

        for (int i = 0; i < gx_n_args(node->op); i++) {
            const gx_field_kind kind = gx_arg_kind(node->op, i);
            bool again = node->arg[i] < 0;

            for (int j = 0; j < i; j++)
                again |= node->arg[j] == node->arg[i] &&
                         gx_arg_kind(node->op, j) != GX_FIELD_OUT;
            if (node->arg[i] < 0)
                continue;
            if (kind != GX_FIELD_OUT && !again)
                g->values[node->arg[i]].n_readers++;
            if (kind != GX_FIELD_IN && g->values[node->arg[i]].producer < 0)
                g->values[node->arg[i]].producer = (int32_t)n;
        }
    }
    gx_arena_free(t->plan.arena);
    t->plan = (gx_plan){ .graph = g, .arena = gx_arena_create(), .n_lanes = 1 };
    assert_non_null(t->plan.arena);
    t->plan.units =
        gx_arena_alloc(t->plan.arena, (g->n_nodes + 1) * sizeof *t->plan.units);
    assert_non_null(t->plan.units);
}

gx_unit *test_unit(test_graph *t, int32_t n, const gx_alternative *alternative)
{
    gx_plan *plan = &t->plan;
    const gx_unit *last = plan->n_units ? &plan->units[plan->n_units - 1] : NULL;
    const int32_t first = last ? last->first_node + last->n_nodes : 0;
    gx_error err = { 0 };

    assert_ok(
        gx_unit_start(plan, &plan->units[plan->n_units], first, n, alternative, &err),
        &err);
    return &plan->units[plan->n_units++];
}

void test_units(test_graph *t)
{
    for (size_t i = 0; i < t->graph.n_nodes; i++)
        test_unit(t, 1, &test_storing);
}

test_graph *test_small_training(void)
{
    test_graph *t = test_graph_new();
    const int32_t x = test_value(t, GX_VALUE_INPUT, 8);
    const int32_t w1 = test_value(t, GX_VALUE_PARAM, 8);
    const int32_t w2 = test_value(t, GX_VALUE_PARAM, 8);
    int32_t temp[8];

    for (int i = 0; i < 8; i++)
        temp[i] = test_value(t, GX_VALUE_TEMP, 100);
    test_node(t, &test_make, GX_PHASE_FORWARD, (int32_t[]){ x, w1, -1, temp[0], -1 });
    test_node(t, &test_make, GX_PHASE_FORWARD,
              (int32_t[]){ temp[0], w2, -1, temp[1], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[1], -1, -1, temp[2], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, /* dw2 */
              (int32_t[]){ temp[0], temp[2], -1, temp[3], -1 });
    test_node(t, &test_make, GX_PHASE_BACKWARD, /* dh */
              (int32_t[]){ temp[2], w2, -1, temp[4], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[4], -1, -1, temp[5], -1 });
    test_node(t, &test_bend, GX_PHASE_BACKWARD,
              (int32_t[]){ temp[5], -1, -1, temp[6], -1 });
    t->graph.values[temp[6]].is_output = true;
    test_node(t, &test_update, GX_PHASE_OPTIMIZER, (int32_t[]){ w2, temp[3] });
    test_node(t, &test_make, GX_PHASE_STEP, (int32_t[]){ temp[6], -1, -1, temp[7], -1 });
    test_graph_finish(t);
    test_units(t);
    return t;
}
