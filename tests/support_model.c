/* Reading a model without the ops layer. */
#include "support_model.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *op, *key;
    gx_field_kind kind;
} fields[] = {
    { "gemm", "a", GX_FIELD_IN },
    { "gemm", "b", GX_FIELD_IN },
    { "gemm", "epilogue.bias", GX_FIELD_IN },
    { "gemm", "epilogue.act", GX_FIELD_ENUM },
    { "gemm", "out", GX_FIELD_OUT },
    { "relu", "x", GX_FIELD_IN },
    { "relu", "out", GX_FIELD_OUT },
    { "add", "a", GX_FIELD_IN },
    { "add", "b", GX_FIELD_IN },
    { "add", "out", GX_FIELD_OUT },
    { "loss", "x", GX_FIELD_IN },
    { "loss", "out", GX_FIELD_OUT },
    { "sgd", "param", GX_FIELD_INOUT },
    { "sgd", "grad", GX_FIELD_IN },
    { "gather", "data", GX_FIELD_IN },
    { "gather", "out", GX_FIELD_OUT },
};

static bool field_kind(const char *op, const char *key, gx_field_kind *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (strcmp(fields[i].op, op) == 0 && strcmp(fields[i].key, key) == 0) {
            *kind = fields[i].kind;
            return true;
        }
    }
    return false;
}

static const char *default_output(const char *op)
{
    gx_field_kind kind;

    return field_kind(op, "out", &kind) ? "out" : NULL;
}

test_model test_model_read(const char *text, const char *folder,
                           const gx_load_options *options)
{
    static const gx_catalogue catalogue = { field_kind, default_output };
    gx_diagnostics *list = gx_diagnostics_create();
    test_model model = { 0 };
    gx_error err;

    assert_non_null(list);
    gx_error_clear(&err);
    gx_diagnostics_source(list, "model.yaml", text, strlen(text));
    model.status = gx_model_read(text, strlen(text), "model.yaml", folder, options,
                                 &catalogue, &model.graph, list, &err);
    model.n_mistakes = gx_diagnostics_count(list);
    model.mistakes = gx_diagnostics_text(list);
    assert_non_null(model.mistakes);
    gx_diagnostics_free(list);
    return model;
}

void test_model_free(test_model *model)
{
    gx_graph_free(model->graph);
    free(model->mistakes);
    *model = (test_model){ 0 };
}

gx_graph *test_model_good(const char *text)
{
    test_model model = test_model_read(text, NULL, NULL);

    assert_string_equal(model.mistakes, "");
    assert_int_equal(model.status, GX_OK);
    assert_non_null(model.graph);
    free(model.mistakes);
    return model.graph;
}

void test_model_mistake(const char *text, const char *message, const char *file, int line)
{
    test_model model = test_model_read(text, NULL, NULL);

    test_has(model.mistakes, message, file, line);
    test_model_free(&model);
}

const char *test_field(const gx_graph *graph, const char *node, const char *key)
{
    const int32_t id = gx_graph_node_id(graph, node);

    for (int i = 0; id >= 0 && i < graph->nodes[id].n_fields; i++) {
        if (strcmp(graph->nodes[id].fields[i].key, key) == 0)
            return graph->nodes[id].fields[i].text;
    }
    return NULL;
}
