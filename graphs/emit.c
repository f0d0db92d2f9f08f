/* The graph as YAML, everything written out; it loads again to the same graph. */
#include "emit.h"

#include <string.h>

#include "number.h"
#include "reader.h"

/* --- scalars --- */

/* Words that readers of YAML 1.1 take for truth values and null. */
static bool is_odd_word(const char *text)
{
    static const char *const words[] = { "y",    "n",    "yes",   "no",   "on",   "off",
                                         "null", "Y",    "N",     "Yes",  "No",   "On",
                                         "Off",  "Null", "YES",   "NO",   "ON",   "OFF",
                                         "NULL", "True", "False", "TRUE", "FALSE" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], text) == 0)
            return true;
    }
    return false;
}

static bool is_plain(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_./+-";

    /* "-", "---" and "..." mean something at the start */
    if (text[0] == '\0' || text[strspn(text, safe)] != '\0' || is_odd_word(text))
        return false;
    return text[strspn(text, ".-")] != '\0';
}

void gx_put_scalar(gx_text *text, const char *scalar)
{
    if (is_plain(scalar)) {
        gx_text_put(text, scalar);
        return;
    }
    gx_text_put(text, "\"");
    for (const char *c = scalar; *c; c++) {
        if (*c == '"' || *c == '\\')
            gx_text_format(text, "\\%c", *c);
        else if (*c == '\n')
            gx_text_put(text, "\\n");
        else if (*c == '\t')
            gx_text_put(text, "\\t");
        else if ((unsigned char)*c < ' ' || *c == 0x7f)
            gx_text_format(text, "\\x%02X", (unsigned)(unsigned char)*c);
        else
            gx_text_add(text, c, 1);
    }
    gx_text_put(text, "\"");
}

static void put_pair(gx_text *text, const char *key, const char *value)
{
    gx_put_scalar(text, key);
    gx_text_put(text, ": ");
    gx_put_scalar(text, value);
}

static void put_real(gx_text *text, const char *key, double value)
{
    char number[GX_REAL_TEXT];

    gx_text_format(text, "%s: %s", key, gx_real_text(value, number));
}

/* --- sections --- */

static void put_head(gx_text *text, const gx_graph *graph)
{
    gx_text_format(text, "gexec: 1\nexpanded: %s\nname: ",
                   graph->kind == GX_TRAIN ? "train" : "eval");
    gx_put_scalar(text, graph->name);
    gx_text_format(text, "\nprecision: %s\n", gx_precision_name(graph->precision));
    if (graph->rate != 0) {
        put_real(text, "rate", graph->rate);
        gx_text_put(text, "\n");
    }
    if (graph->n_dims == 0)
        return;
    gx_text_put(text, "dims: {");
    for (size_t i = 0; i < graph->n_dims; i++) {
        gx_text_put(text, i > 0 ? ", " : "");
        gx_put_scalar(text, graph->dims[i].name);
        gx_text_format(text, ": %lld", (long long)graph->dims[i].value);
    }
    gx_text_put(text, "}\n");
}

static void put_data(gx_text *text, const gx_graph *graph)
{
    const gx_data_spec *data = &graph->data;

    if (data->n_columns == 0)
        return;
    gx_text_put(text, "data:\n");
    for (size_t i = 0; i < data->n_columns; i++) {
        const gx_data_column *column = &data->columns[i];

        gx_text_put(text, "  ");
        gx_put_scalar(text, graph->values[column->input].name);
        gx_text_put(text, ": {");
        put_pair(text, "file", gx_relative_path(graph, column->path));
        gx_text_put(text, ", ");
        put_real(text, "scale", column->scale);
        gx_text_put(text, ", ");
        put_real(text, "shift", column->shift);
        gx_text_put(text, "}\n");
    }
    if (data->split_path) {
        gx_text_put(text, "  ");
        put_pair(text, "split", gx_relative_path(graph, data->split_path));
        gx_text_put(text, "\n");
    }
    gx_text_format(text, "  shuffle: %s\n  drop_last: %s\n",
                   data->shuffle ? "true" : "false", data->drop_last ? "true" : "false");
    gx_text_format(text, "  stream: %s\n", data->streams ? "true" : "false");
    if (data->epochs > 0)
        gx_text_format(text, "  epochs: %d\n", data->epochs);
    if (data->batch_dim)
        gx_text_format(text, "  batch_dim: %s\n", data->batch_dim);
}

static void put_tensor(gx_text *text, const gx_graph *graph, const gx_value *value)
{
    char shape[GX_MAX_RANK * 24];

    gx_text_put(text, "  ");
    gx_put_scalar(text, value->name);
    gx_text_format(text, ": {kind: %s, dtype: %s, shape: %s", gx_words_kind[value->kind],
                   gx_dtype_name(value->dtype),
                   gx_shape_text(value->rank, value->dim, shape, sizeof shape));
    if (value->has_init) {
        gx_text_put(text, ", init: ");
        gx_put_init(text, graph, &value->init);
    }
    if (value->frozen)
        gx_text_put(text, ", trainable: false");
    if (value->fan_in > 0)
        gx_text_format(text, ", fan_in: %lld, fan_out: %lld", (long long)value->fan_in,
                       (long long)value->fan_out);
    if (value->index_limit > 0)
        gx_text_format(text, ", index_limit: %lld", (long long)value->index_limit);
    if (value->index_ignored != 0)
        gx_text_format(text, ", index_ignored: %lld", (long long)value->index_ignored);
    gx_text_put(text, "}\n");
}

static void put_tensors(gx_text *text, const gx_graph *graph)
{
    bool any = false;

    for (size_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == GX_VALUE_TEMP)
            continue;
        if (!any)
            gx_text_put(text, "tensors:\n");
        any = true;
        put_tensor(text, graph, &graph->values[i]);
    }
}

static void put_ops(gx_text *text, const gx_graph *graph)
{
    gx_text_put(text, graph->n_nodes > 0 ? "ops:\n" : "ops: []\n");
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];

        gx_text_put(text, "  - {");
        put_pair(text, "op", node->op_name);
        gx_text_put(text, ", ");
        put_pair(text, "name", node->name);
        gx_text_format(text, ", phase: %s", gx_phase_name(node->phase));
        if (node->origin && strcmp(node->origin, node->name) != 0) {
            gx_text_put(text, ", ");
            put_pair(text, "origin", node->origin);
        }
        for (int f = 0; f < node->n_fields; f++) {
            gx_text_put(text, ", ");
            put_pair(text, node->fields[f].key, node->fields[f].text);
        }
        gx_text_put(text, "}\n");
    }
}

static bool is_named_output(const gx_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (strcmp(graph->outputs[i], name) == 0)
            return true;
    }
    return false;
}

/* An evaluation has not what training alone makes, named or not. */
static bool is_made(const gx_graph *graph, const char *name)
{
    const int32_t id = gx_graph_value_id(graph, name);

    return id >= 0 && graph->values[id].is_output;
}

/* What the model names, then what the caller asked to keep. */
static void put_outputs(gx_text *text, const gx_graph *graph)
{
    const char *between = "";

    gx_text_put(text, "outputs: [");
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (!is_made(graph, graph->outputs[i]))
            continue;
        gx_text_put(text, between);
        gx_put_scalar(text, graph->outputs[i]);
        between = ", ";
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        if (!graph->values[i].is_output || is_named_output(graph, graph->values[i].name))
            continue;
        gx_text_put(text, between);
        gx_put_scalar(text, graph->values[i].name);
        between = ", ";
    }
    gx_text_put(text, "]\n");
}

static void put_logged(gx_text *text, const gx_graph *graph)
{
    if (graph->n_logged == 0)
        return;
    gx_text_put(text, "logged: {");
    for (size_t i = 0; i < graph->n_logged; i++) {
        const int32_t id = graph->logged[i];

        gx_text_put(text, i > 0 ? ", " : "");
        put_pair(text, graph->logged_name[i],
                 id >= 0 ? graph->values[id].name : graph->logged_tensor[i]);
    }
    gx_text_put(text, "}\n");
}

char *gx_graph_yaml(const gx_graph *graph)
{
    gx_text text = { 0 };

    put_head(&text, graph);
    put_data(&text, graph);
    put_tensors(&text, graph);
    put_ops(&text, graph);
    put_outputs(&text, graph);
    put_logged(&text, graph);
    return gx_text_take(&text);
}
