/* Binds a node to its row: fields to operands and attributes, outputs to values. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"

enum {
    MAX_HINTS = 20
}; /* nearest names are searched among every tensor: not endlessly */

static const char *const kind_text[] = {
    [GX_FIELD_IN] = "a tensor that it reads",
    [GX_FIELD_INOUT] = "a parameter or state that it updates",
    [GX_FIELD_OUT] = "a name for what it makes",
    [GX_FIELD_BOOL] = "true or false",
    [GX_FIELD_INT] = "an integer",
    [GX_FIELD_REAL] = "a number",
    [GX_FIELD_ENUM] = "one of its words",
    [GX_FIELD_INTS] = "an integer, or a list of them",
    [GX_FIELD_WORDS] = "a list of its words",
};

const char *gx_nearest_value(gx_builder *builder, const char *name)
{
    const gx_graph *graph = builder->graph;
    const char *nearest = NULL;
    const char **names;
    size_t n = 0;

    if (builder->n_hints++ >= MAX_HINTS)
        return NULL;
    names = malloc((graph->n_values + 1) * sizeof *names);
    if (!names)
        return NULL;
    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];

        if (value->kind != GX_VALUE_TEMP || value->producer >= 0)
            names[n++] = value->name;
    }
    nearest = gx_nearest(name, names, n);
    free(names);
    return nearest;
}

static bool enum_attr(gx_builder *builder, const gx_field *field, const char *text,
                      gx_pos pos, gx_attr *attr)
{
    const char *const *choice = field->choices;
    char all[200] = "";
    size_t n = 0;

    for (; choice[n]; n++) {
        if (strcmp(choice[n], text) == 0) {
            attr->i = (int64_t)n;
            return true;
        }
    }
    for (size_t i = 0; i < n && strlen(all) + strlen(choice[i]) + 3 < sizeof all; i++) {
        strcat(all, i ? ", " : "");
        strcat(all, choice[i]);
    }
    const char *near = gx_nearest(text, choice, n);

    for (size_t i = 0; i < n; i++) {
        if (text[0] && strncmp(choice[i], text, strlen(text)) == 0)
            near = choice[i]; /* a beginning says more than a likeness */
    }
    if (near)
        gx_report(builder->list, pos,
                  "%s is \"%s\", expected one of: %s; did you mean \"%s\"?", field->name,
                  text, all, near);
    else
        gx_report(builder->list, pos, "%s is \"%s\", expected one of: %s", field->name,
                  text, all);
    return false;
}

bool gx_read_attr(gx_builder *builder, const gx_field *field, const char *text,
                  gx_pos pos, gx_attr *attr)
{
    bool yes = false;

    attr->present = true;
    switch (field->kind) {
    case GX_FIELD_BOOL:
        if (!gx_read_bool(text, &yes))
            break;
        attr->i = yes;
        return true;
    case GX_FIELD_INT:
        return gx_eval_int(builder->graph, text, pos, builder->list, &attr->i);
    case GX_FIELD_REAL:
        if (!gx_read_real(text, &attr->r))
            break;
        if (gx_fits_f32(attr->r))
            return true;
        gx_report(builder->list, pos, "%s is %s, which is out of f32's range",
                  field->name, text);
        return false;
    case GX_FIELD_ENUM:
        return enum_attr(builder, field, text, pos, attr);
    default:
        break;
    }
    gx_report(builder->list, pos, "%s is \"%s\", expected %s", field->name, text,
              kind_text[field->kind]);
    return false;
}

/* The node after `id` that will make a tensor of this name, or NULL. */
static const gx_node *later_maker(gx_builder *builder, int32_t id, const char *name)
{
    const gx_graph *graph = builder->graph;

    if (builder->n_hints >= MAX_HINTS)
        return NULL;
    for (size_t i = (size_t)id; i < graph->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];
        const gx_op *op = gx_op_find(node->op_name);

        for (int f = 0; op && f < node->n_fields; f++) {
            int index;
            const gx_field *field = gx_field_find(op, node->fields[f].key, &index);

            if (field && field->kind == GX_FIELD_OUT &&
                strcmp(node->fields[f].text, name) == 0)
                return node;
        }
    }
    return NULL;
}

static void report_no_tensor(gx_builder *builder, int32_t id,
                             const gx_field_value *written)
{
    const gx_node *later = later_maker(builder, id, written->text);

    if (later == &builder->graph->nodes[id]) {
        gx_report(builder->list, written->pos,
                  "op \"%s\" reads \"%s\", which it makes itself", later->name,
                  written->text);
    } else if (later) {
        gx_report(builder->list, written->pos,
                  "tensor \"%s\" is used before op \"%s\" makes it (line %d)",
                  written->text, later->name, (int)later->pos.line);
    } else {
        const char *near = gx_nearest_value(builder, written->text);

        if (near)
            gx_report(builder->list, written->pos,
                      "there is no tensor \"%s\"; did you mean \"%s\"?", written->text,
                      near);
        else
            gx_report(builder->list, written->pos, "there is no tensor \"%s\"",
                      written->text);
    }
}

static bool bind_input(gx_builder *builder, int32_t id, const gx_field *field, int arg,
                       const gx_field_value *written)
{
    gx_graph *graph = builder->graph;
    gx_node *node = &graph->nodes[id];

    gx_ensure_state(builder, written->text);

    const int32_t value = gx_graph_value_id(graph, written->text);

    if (value < 0 || (graph->values[value].kind == GX_VALUE_TEMP &&
                      graph->values[value].producer < 0)) {
        report_no_tensor(builder, id, written);
        return false;
    }
    const gx_value_kind kind = graph->values[value].kind;

    if (field->kind == GX_FIELD_INOUT && kind != GX_VALUE_PARAM &&
        kind != GX_VALUE_STATE) {
        gx_report(
            builder->list, written->pos,
            "%s of %s is updated in place: expected a parameter or state, \"%s\" is "
            "neither",
            field->name, node->op_name, written->text);
        return false;
    }
    node->arg[arg] = value;
    return true;
}

static bool may_claim(const gx_node *node, const gx_value *value)
{
    if (value->producer >= 0)
        return false;
    return value->kind == GX_VALUE_TEMP || (value->kind == GX_VALUE_INPUT && value->fed &&
                                            node->op && node->op->internal);
}

static void report_taken(gx_builder *builder, const gx_node *node,
                         const gx_field_value *written, const gx_value *value)
{
    static const char *const what[] = {
        [GX_VALUE_INPUT] = "an input", [GX_VALUE_PARAM] = "a parameter",
        [GX_VALUE_STATE] = "state",    [GX_VALUE_DATA] = "data",
        [GX_VALUE_TEMP] = "a tensor",
    };

    if (value->producer < 0) {
        gx_report(builder->list, written->pos,
                  "op \"%s\" cannot make \"%s\": that is %s (line %d)", node->name,
                  written->text, what[value->kind], (int)value->pos.line);
        return;
    }
    const gx_node *maker = &builder->graph->nodes[value->producer];

    if (maker == node)
        gx_report(builder->list, written->pos, "op \"%s\" makes \"%s\" twice", node->name,
                  written->text);
    else
        gx_report(builder->list, written->pos,
                  "tensor \"%s\" is made by op \"%s\" already (line %d)", written->text,
                  maker->name, (int)maker->pos.line);
}

/* Makes the value that an output field names; arg may be NULL. */
static bool claim_output(gx_builder *builder, int32_t id, const gx_field_value *written,
                         int32_t *arg)
{
    gx_graph *graph = builder->graph;
    int32_t value = gx_graph_value_id(graph, written->text);

    if (value < 0) {
        const int32_t other = gx_graph_node_id(graph, written->text);

        if (other >= 0 && other != id) {
            gx_report(builder->list, written->pos,
                      "\"%s\" is the name of an op already (line %d)", written->text,
                      (int)graph->nodes[other].pos.line);
            return false;
        }
        value = gx_graph_add_value(graph, written->text, GX_VALUE_TEMP, GX_F32, -1, NULL,
                                   written->pos, builder->list);
        if (value < 0)
            return false;
    } else if (!may_claim(&graph->nodes[id], &graph->values[value])) {
        report_taken(builder, &graph->nodes[id], written, &graph->values[value]);
        return false;
    }
    graph->values[value].producer = id;
    if (arg)
        *arg = value;
    return true;
}

/* A node that is not understood still makes its tensors, without shapes, so that those
 * who read them are not reported too. */
static void claim_unknown(gx_builder *builder, int32_t id, const gx_field_value *written)
{
    gx_graph *graph = builder->graph;

    if (!gx_is_name(written->text) || gx_graph_value_id(graph, written->text) >= 0)
        return;
    const int32_t node = gx_graph_node_id(graph, written->text);

    if (node < 0 || node == id)
        claim_output(builder, id, written, NULL);
}

static bool find_row(gx_builder *builder, int32_t id)
{
    gx_node *node = &builder->graph->nodes[id];
    const char *names[256];
    size_t n = 0;

    node->op = gx_op_find(node->op_name);
    if (node->op &&
        (!node->op->internal || !builder->written || builder->graph->expanded))
        return true;
    if (node->op) {
        gx_report(builder->list, node->pos,
                  "op \"%s\" is gexec's own and stands only in an expanded graph",
                  node->op_name);
    } else {
        const gx_op *op;

        for (size_t i = 0; n < 256 && (op = gx_op_at(i)); i++) {
            if (!op->internal)
                names[n++] = op->name;
        }
        const char *near = gx_nearest(node->op_name, names, n);

        if (near)
            gx_report(builder->list, node->pos,
                      "there is no op \"%s\"; did you mean \"%s\"?", node->op_name, near);
        else
            gx_report(builder->list, node->pos,
                      "there is no op \"%s\"; `gexec ops` lists them", node->op_name);
    }
    return false;
}

static void claim_all_unknown(gx_builder *builder, int32_t id)
{
    const gx_node *node = &builder->graph->nodes[id];
    const gx_field_value own = { .key = "out", .text = node->name, .pos = node->pos };

    for (int f = 0; f < builder->graph->nodes[id].n_fields; f++)
        claim_unknown(builder, id, &builder->graph->nodes[id].fields[f]);
    claim_unknown(builder, id, &own);
}

static const gx_field_value *written_field(const gx_node *node, const char *key)
{
    for (int f = 0; f < node->n_fields; f++) {
        if (strcmp(node->fields[f].key, key) == 0)
            return &node->fields[f];
    }
    return NULL;
}

/* Keys that the row does not have, and keys that stand twice. */
static bool check_keys(gx_builder *builder, int32_t id)
{
    bool good = true;

    for (int f = 0; f < builder->graph->nodes[id].n_fields; f++) {
        const gx_node *node = &builder->graph->nodes[id];
        const gx_field_value *written = &node->fields[f];
        const gx_field_value *first = written_field(node, written->key);
        int index;

        if (first != written) {
            gx_report(builder->list, written->key_pos,
                      "field \"%s\" is given twice, first on line %d", written->key,
                      (int)first->key_pos.line);
            good = false;
        } else if (!gx_field_find(node->op, written->key, &index) &&
                   !gx_is_list_item(node, written->key)) {
            if (gx_list_of(node->op, written->key))
                gx_report(builder->list, written->key_pos,
                          "%s is one %s, or a list of up to %d",
                          gx_list_of(node->op, written->key)->name,
                          gx_list_of(node->op, written->key)->kind == GX_FIELD_INTS
                              ? "integer"
                              : "word",
                          GX_MAX_RANK);
            else
                gx_report_no_field(builder, node, written);
            good = false;
        }
    }
    return good;
}

static bool bind_attr(gx_builder *builder, int32_t id, const gx_field *field, int index,
                      const gx_field_value *written)
{
    gx_attr *attr = &builder->graph->nodes[id].attr[index];
    const gx_pos pos = builder->graph->nodes[id].pos;

    if (gx_is_list_field(field))
        return gx_read_list(builder, id, field, attr);
    if (written)
        return gx_read_attr(builder, field, written->text, written->pos, attr);
    if (field->fallback)
        return gx_read_attr(builder, field, field->fallback, pos, attr);
    if (!field->required)
        return true;
    return false;
}

/* Inputs and attributes in the first pass, outputs in the second: an op does not read
 * what it makes. */
static bool bind_fields(gx_builder *builder, int32_t id, bool outputs)
{
    const gx_op *op = builder->graph->nodes[id].op;
    int n_tensors = 0, n_others = 0;
    bool good = true;

    for (const gx_field *field = op->fields; field->name; field++) {
        const gx_node *node = &builder->graph->nodes[id];
        const gx_field_value *written = written_field(node, field->name);
        const bool is_tensor = gx_is_tensor_field(field);
        const int index = is_tensor ? n_tensors++ : n_others++;

        if ((field->kind == GX_FIELD_OUT) != outputs)
            continue;
        if (!written && field->required && !field->fallback && !outputs) {
            gx_report_lack(builder, node, field, kind_text[field->kind]);
            good = false;
        } else if (!is_tensor) {
            good = bind_attr(builder, id, field, index, written) && good;
        } else if (written && !gx_is_name(written->text)) {
            gx_report(builder->list, written->pos, "%s is \"%s\", expected %s",
                      field->name, written->text, kind_text[field->kind]);
            good = false;
        } else if (outputs) {
            const gx_field_value own = { field->name, node->name, node->pos, node->pos };

            if (written || field->required)
                good = claim_output(builder, id, written ? written : &own,
                                    &node->arg[index]) &&
                       good;
        } else if (written) {
            good = bind_input(builder, id, field, index, written) && good;
        }
    }
    return good;
}

bool gx_bind(gx_builder *builder, int32_t id)
{
    gx_graph *graph = builder->graph;
    size_t n_args = 0, n_attrs = 0;

    if (!find_row(builder, id)) {
        claim_all_unknown(builder, id);
        return false;
    }
    for (const gx_field *field = graph->nodes[id].op->fields; field->name; field++) {
        n_args += gx_is_tensor_field(field);
        n_attrs += !gx_is_tensor_field(field);
    }
    int32_t *arg = gx_arena_alloc(graph->arena, (n_args + 1) * sizeof *arg);
    gx_attr *attr = gx_arena_alloc(graph->arena, (n_attrs + 1) * sizeof *attr);

    if (!arg || !attr)
        return false;
    for (size_t i = 0; i < n_args; i++)
        arg[i] = -1;
    graph->nodes[id].arg = arg;
    graph->nodes[id].attr = attr;

    const bool keys = check_keys(builder, id);
    const bool inputs = bind_fields(builder, id, false);
    const bool outputs = bind_fields(builder, id, true);

    if (!keys)
        claim_all_unknown(builder, id);
    return keys && inputs && outputs;
}

bool gx_infer(gx_builder *builder, int32_t id)
{
    gx_graph *graph = builder->graph;
    const gx_node *node = &graph->nodes[id];
    const int n = gx_n_args(node->op);
    gx_value *value[GX_MAX_ARGS] = { NULL };

    for (int i = 0; i < n; i++) {
        if (node->arg[i] < 0)
            continue;
        value[i] = &graph->values[node->arg[i]];
        if (gx_arg_kind(node->op, i) != GX_FIELD_OUT && !value[i]->has_shape)
            return false;
    }
    node->op->infer(graph, node, value, builder->list);
    for (int i = 0; i < n; i++) {
        if (value[i] && !value[i]->has_shape)
            return false;
    }
    return true;
}
