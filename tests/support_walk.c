/* A small interpreter for tests of the ops layer. */
#include "support_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static int64_t count(const gx_value *value)
{
    int64_t n = 1;

    for (int i = 0; i < value->rank; i++)
        n *= value->dim[i];
    return n;
}

char *test_walk_text(const char *text, const char *precision)
{
    const size_t size = strlen(text) + 64;
    char *made = calloc(1, size);
    const char *mark;

    assert_non_null(made);
    while ((mark = strstr(text, "$P"))) {
        strncat(made, text, (size_t)(mark - text));
        strcat(made, precision);
        text = mark + 2;
    }
    strcat(made, text);
    assert_true(strlen(made) < size);
    return made;
}

test_walk test_walk_of(gx_graph *graph, uint64_t seed)
{
    test_walk walk = { .graph = graph, .seed = seed };
    gx_error err = { 0 };

    walk.data = calloc(graph->n_values + 1, sizeof *walk.data);
    assert_non_null(walk.data);
    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];
        const int64_t n = count(value);

        walk.data[i] = calloc((size_t)n + 1, sizeof(double));
        assert_non_null(walk.data[i]);
        if (value->kind == GX_VALUE_TEMP || value->kind == GX_VALUE_DATA)
            continue;
        assert_ok(gx_init_fill(gx_init_source(graph, value), seed, walk.data[i], n, &err),
                  &err);
        for (int64_t k = 0; k < n; k++)
            walk.data[i][k] = gx_round_to(value->dtype, walk.data[i][k]);
    }
    return walk;
}

test_walk test_walk_parse(const char *text, const char *precision, gx_kind kind,
                          uint64_t seed)
{
    const gx_load_options options = { .kind = kind };
    char *made = test_walk_text(text, precision);
    gx_diagnostics *list = gx_diagnostics_create();
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    if (gx_graph_parse(made, strlen(made), "model.yaml", ".", &options, &graph, list,
                       &err) != GX_OK) {
        char *mistakes = gx_diagnostics_text(list);

        print_error("%s\n%s\n%s\n", made, err.message, mistakes ? mistakes : "");
        free(mistakes);
        fail();
    }
    gx_diagnostics_free(list);
    free(made);
    return test_walk_of(graph, seed);
}

void test_walk_free(test_walk *walk)
{
    for (size_t i = 0; i < walk->graph->n_values; i++)
        free(walk->data[i]);
    free(walk->data);
    gx_graph_free(walk->graph);
}

static bool is_tensor(const gx_field *field)
{
    return field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
           field->kind == GX_FIELD_OUT;
}

static gx_call bind(const test_walk *walk, const gx_node *node)
{
    gx_call call = { .op = node->op,
                     .name = node->name,
                     .precision = walk->graph->precision,
                     .seed = walk->seed };
    int n_args = 0, n_attrs = 0;

    for (int i = 0; i < GX_MAX_ARGS; i++)
        call.arg[i].rank = -1;
    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (!is_tensor(field)) {
            call.attr[n_attrs] = node->attr[n_attrs];
            n_attrs++;
            continue;
        }
        gx_tensor *arg = &call.arg[n_args];
        const int32_t id = node->arg[n_args++];

        if (id < 0)
            continue;
        /* As run.c has it: what is updated in place is of its own type, unless exact. */
        arg->dtype = field->kind == GX_FIELD_INOUT && !walk->exact
                         ? walk->graph->values[id].dtype
                         : GX_F64;
        arg->rank = walk->graph->values[id].rank;
        memcpy(arg->dim, walk->graph->values[id].dim, sizeof arg->dim);
        arg->data = walk->data[id];
    }
    return call;
}

static void round_results(const test_walk *walk, const gx_node *node)
{
    int i = 0;

    for (const gx_field *field = gx_op_fields(node->op); field->name; field++) {
        if (!is_tensor(field))
            continue;
        const int32_t id = node->arg[i++];

        if (field->kind == GX_FIELD_IN || id < 0)
            continue;
        const gx_value *value = &walk->graph->values[id];

        for (int64_t k = 0; k < count(value); k++)
            walk->data[id][k] = gx_round_to(value->dtype, walk->data[id][k]);
    }
}

void test_walk_step(test_walk *walk)
{
    const gx_graph *graph = walk->graph;
    gx_error err = { 0 };

    for (size_t i = 0; i < graph->n_values; i++) {
        const int64_t n =
            graph->values[i].kind == GX_VALUE_TEMP ? count(&graph->values[i]) : 0;

        for (int64_t k = 0; k < n; k++)
            walk->data[i][k] = NAN;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const gx_call call = bind(walk, &graph->nodes[i]);

        assert_ok(call.op->reference(&call, &err), &err);
        if (!walk->exact)
            round_results(walk, &graph->nodes[i]);
    }
}

double *test_walk_tensor(const test_walk *walk, const char *name)
{
    const int32_t id = gx_graph_value_id(walk->graph, name);

    if (id < 0) {
        print_error("there is no tensor \"%s\"\n", name);
        fail();
    }
    return walk->data[id];
}

int64_t test_walk_count(const test_walk *walk, const char *name)
{
    const int32_t id = gx_graph_value_id(walk->graph, name);

    assert_true(id >= 0);
    return count(&walk->graph->values[id]);
}

char *test_walk_mistakes(const char *text, gx_kind kind)
{
    const gx_load_options options = { .kind = kind };
    gx_diagnostics *list = gx_diagnostics_create();
    gx_graph *graph = NULL;
    gx_error err = { 0 };
    char *mistakes;

    assert_non_null(list);
    if (gx_graph_parse(text, strlen(text), "model.yaml", ".", &options, &graph, list,
                       &err) == GX_OK) {
        print_error("this should not load:\n%s\n", text);
        gx_graph_free(graph);
        fail();
    }
    assert_null(graph);
    assert_true(strlen(err.message) > 0);
    mistakes = gx_diagnostics_text(list);
    assert_non_null(mistakes);
    gx_diagnostics_free(list);
    return mistakes;
}
