/* Values and nodes of a graph: adding, finding, reordering, reading. */
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "name_map.h"

gx_graph *gx_graph_new(void)
{
    gx_graph *graph = calloc(1, sizeof *graph);

    if (!graph)
        return NULL;
    graph->arena = gx_arena_create();
    graph->value_names = gx_name_map_create();
    graph->node_names = gx_name_map_create();
    graph->name = "model";
    graph->file = "model";
    graph->folder = ".";
    if (!graph->arena || !graph->value_names || !graph->node_names) {
        gx_graph_free(graph);
        return NULL;
    }
    return graph;
}

void gx_graph_free(gx_graph *graph)
{
    if (!graph)
        return;
    free(graph->values);
    free(graph->nodes);
    gx_name_map_free(graph->value_names);
    gx_name_map_free(graph->node_names);
    gx_arena_free(graph->arena);
    free(graph);
}

/* --- adding --- */

static void report_name(const char *name, gx_pos pos, gx_diagnostics *list)
{
    if (strlen(name) > GX_LIMIT_NAME)
        gx_report(list, pos, "name \"%.40s...\" is longer than %d bytes (limit on names)",
                  name, GX_LIMIT_NAME);
    else
        gx_report(
            list, pos,
            "\"%s\" is not a name: expected letters, digits, _ . or -, a letter or _ "
            "first",
            name);
}

static bool is_free(const gx_graph *graph, const char *name, gx_pos pos, bool is_value,
                    gx_diagnostics *list)
{
    const int32_t value = gx_graph_value_id(graph, name);
    const int32_t node = gx_graph_node_id(graph, name);

    if (!gx_is_name(name)) {
        report_name(name, pos, list);
        return false;
    }
    /* An op may have the name of what it makes, so only these two can tell. */
    const bool by_value =
        value >= 0 && (is_value || graph->values[value].kind != GX_VALUE_TEMP);
    const bool by_node = node >= 0 && !is_value;

    if (!by_value && !by_node)
        return true;
    const gx_pos first = by_value ? graph->values[value].pos : graph->nodes[node].pos;

    if (first.line > 0)
        gx_report(list, pos, "name \"%s\" is taken: %s on line %d has it", name,
                  by_value ? "the tensor" : "the op", (int)first.line);
    else
        gx_report(list, pos, "name \"%s\" is taken by %s", name,
                  by_value ? "a tensor" : "an op");
    return false;
}

/* Room for one more in an array that doubles; what was there may move. */
static void *grow(gx_arena *arena, void *array, size_t *capacity, size_t n, size_t size)
{
    enum { FIRST = 64 };
    const size_t more = *capacity ? *capacity * 2 : FIRST;
    void *larger;

    if (n < *capacity)
        return array;
    larger = n < INT32_MAX / 2 ? realloc(array, more * size) : NULL;
    if (larger)
        *capacity = more;
    else
        gx_arena_fail(arena);
    return larger;
}

static bool enter(gx_graph *graph, gx_name_map *names, const char *name, int32_t id)
{
    const bool good = gx_name_map_set(names, name, id);

    if (!good)
        gx_arena_fail(graph->arena);
    return good;
}

int32_t gx_graph_add_value(gx_graph *graph, const char *name, gx_value_kind kind,
                           gx_dtype dtype, int rank, const int64_t *dim, gx_pos pos,
                           gx_diagnostics *list)
{
    if (!is_free(graph, name, pos, true, list))
        return -1;
    gx_value *values = grow(graph->arena, graph->values, &graph->values_capacity,
                            graph->n_values, sizeof *values);
    const int32_t id = (int32_t)graph->n_values;
    const char *copy = gx_arena_text(graph->arena, name);

    if (values)
        graph->values = values;
    if (!values || !copy || !enter(graph, graph->value_names, copy, id))
        return -1;
    gx_value *value = &values[graph->n_values++];

    *value = (gx_value){ .name = copy,
                         .kind = kind,
                         .dtype = dtype,
                         .rank = rank < 0 ? 0 : rank,
                         .has_shape = rank >= 0,
                         .producer = -1,
                         .pos = pos };
    for (int i = 0; i < rank; i++)
        value->dim[i] = dim[i];
    return id;
}

static gx_field_value *copy_fields(gx_graph *graph, const gx_field_value *fields, int n)
{
    gx_field_value *copies =
        gx_arena_alloc(graph->arena, (size_t)(n + 1) * sizeof *copies);

    for (int i = 0; copies && i < n; i++) {
        copies[i] = fields[i];
        copies[i].key = gx_arena_text(graph->arena, fields[i].key);
        copies[i].text = gx_arena_text(graph->arena, fields[i].text);
        if (!copies[i].key || !copies[i].text)
            return NULL;
    }
    return copies;
}

int32_t gx_graph_append(gx_graph *graph, const char *op, const char *name, gx_phase phase,
                        const gx_field_value *fields, int n_fields, gx_pos pos,
                        gx_diagnostics *list)
{
    if (!is_free(graph, name, pos, false, list))
        return -1;
    gx_node *nodes = grow(graph->arena, graph->nodes, &graph->nodes_capacity,
                          graph->n_nodes, sizeof *nodes);
    const int32_t id = (int32_t)graph->n_nodes;
    const char *op_copy = gx_arena_text(graph->arena, op);
    const char *copy = gx_arena_text(graph->arena, name);
    gx_field_value *copies = copy_fields(graph, fields, n_fields);

    if (nodes)
        graph->nodes = nodes;
    if (!nodes || !op_copy || !copy || !copies ||
        !enter(graph, graph->node_names, copy, id))
        return -1;
    nodes[graph->n_nodes++] = (gx_node){ .op_name = op_copy,
                                         .name = copy,
                                         .phase = phase,
                                         .fields = copies,
                                         .n_fields = n_fields,
                                         .pos = pos };
    return id;
}

int32_t gx_graph_value_id(const gx_graph *graph, const char *name)
{
    return gx_name_map_get(graph->value_names, name);
}

int32_t gx_graph_node_id(const gx_graph *graph, const char *name)
{
    return gx_name_map_get(graph->node_names, name);
}

/* --- reordering --- */

/* Numbers of the old ids: -1 for those that go. */
typedef struct renumbering {
    int32_t *node, *value;
} renumbering;

static int n_operands(const gx_node *node)
{
    int n = 0;

    if (!node->op || !node->arg)
        return 0;
    for (const gx_field *field = gx_op_fields(node->op); field->name; field++)
        n += field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
             field->kind == GX_FIELD_OUT;
    return n;
}

/* Gives an old value the next number. */
static void place_value(const gx_graph *graph, const renumbering *to, int32_t id,
                        gx_value *values, int32_t *n)
{
    gx_value value = graph->values[id];

    if (to->value[id] >= 0)
        return;
    value.producer = value.producer >= 0 ? to->node[value.producer] : -1;
    to->value[id] = *n;
    values[(*n)++] = value;
}

/* Tensors that outlive a step first, as they stand in an expanded file; then what the
 * nodes make, node by node. `nodes` are in their new order, operands still by old ids. */
static void order_values(gx_graph *graph, const renumbering *to, const gx_node *nodes,
                         size_t n_nodes, gx_value *values)
{
    int32_t n = 0;

    for (size_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind != GX_VALUE_TEMP)
            place_value(graph, to, (int32_t)i, values, &n);
    }
    for (size_t i = 0; i < n_nodes; i++) {
        const int n_args = n_operands(&nodes[i]);

        for (int a = 0; a < n_args; a++) {
            const int32_t id = nodes[i].arg[a];

            if (id >= 0 && graph->values[id].producer >= 0 &&
                to->node[graph->values[id].producer] == (int32_t)i)
                place_value(graph, to, id, values, &n);
        }
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        const int32_t producer = graph->values[i].producer;

        if (producer >= 0 && to->node[producer] >= 0)
            place_value(graph, to, (int32_t)i, values, &n);
    }
    graph->n_values = (size_t)n;
}

static void renumber(gx_graph *graph, const renumbering *to)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        gx_node *node = &graph->nodes[i];
        const int n = n_operands(node);

        for (int a = 0; a < n; a++)
            node->arg[a] = node->arg[a] >= 0 ? to->value[node->arg[a]] : -1;
    }
    for (size_t i = 0; i < graph->data.n_columns; i++) {
        int32_t *input = &graph->data.columns[i].input;

        *input = *input >= 0 ? to->value[*input] : -1;
    }
    for (size_t i = 0; i < graph->n_logged; i++)
        graph->logged[i] = graph->logged[i] >= 0 ? to->value[graph->logged[i]] : -1;
}

static bool map_names(gx_graph *graph)
{
    gx_name_map *values = gx_name_map_create();
    gx_name_map *nodes = gx_name_map_create();
    bool good = values && nodes;

    for (size_t i = 0; good && i < graph->n_values; i++)
        good = gx_name_map_set(values, graph->values[i].name, (int32_t)i);
    for (size_t i = 0; good && i < graph->n_nodes; i++)
        good = gx_name_map_set(nodes, graph->nodes[i].name, (int32_t)i);
    if (!good) {
        gx_name_map_free(values);
        gx_name_map_free(nodes);
        return false;
    }
    gx_name_map_free(graph->value_names);
    gx_name_map_free(graph->node_names);
    graph->value_names = values;
    graph->node_names = nodes;
    return true;
}

bool gx_graph_reorder(gx_graph *graph, const int32_t *order, size_t n)
{
    gx_node *nodes = calloc(n + 1, sizeof *nodes);
    gx_value *values = calloc(graph->n_values + 1, sizeof *values);
    renumbering to = { calloc(graph->n_nodes + 1, sizeof(int32_t)),
                       calloc(graph->n_values + 1, sizeof(int32_t)) };
    const bool good = nodes && values && to.node && to.value;

    if (good) {
        memset(to.node, 0xff, (graph->n_nodes + 1) * sizeof(int32_t));
        for (size_t i = 0; i < n; i++) {
            nodes[i] = graph->nodes[order[i]];
            to.node[order[i]] = (int32_t)i;
        }
        memset(to.value, 0xff, (graph->n_values + 1) * sizeof(int32_t));
        order_values(graph, &to, nodes, n, values);
        free(graph->nodes);
        free(graph->values);
        graph->nodes = nodes;
        graph->n_nodes = n;
        graph->nodes_capacity = n + 1;
        graph->values_capacity = graph->n_values + 1;
        graph->values = values;
        renumber(graph, &to);
    } else {
        free(nodes);
        free(values);
    }
    free(to.node);
    free(to.value);
    return good && map_names(graph);
}

/* --- reading --- */

bool gx_is_persistent(const gx_value *value)
{
    return value->kind == GX_VALUE_PARAM || value->kind == GX_VALUE_STATE ||
           value->kind == GX_VALUE_DATA;
}

const char *gx_phase_name(gx_phase phase)
{
    static const char *const names[] = {
        [GX_PHASE_FORWARD] = "forward",
        [GX_PHASE_BACKWARD] = "backward",
        [GX_PHASE_OPTIMIZER] = "optimizer",
        [GX_PHASE_STEP] = "step",
    };

    return names[phase];
}

const char *gx_precision_name(gx_precision precision)
{
    static const char *const names[] = {
        [GX_PRECISION_F32] = "f32",
        [GX_PRECISION_TF32] = "tf32",
        [GX_PRECISION_BF16] = "bf16",
        [GX_PRECISION_F16] = "f16",
    };

    return names[precision];
}

const char *gx_graph_name(const gx_graph *graph)
{
    return graph->name;
}

const char *gx_graph_precision(const gx_graph *graph)
{
    return gx_precision_name(graph->precision);
}

int64_t gx_graph_dim(const gx_graph *graph, const char *name)
{
    for (size_t i = 0; name && i < graph->n_dims; i++)
        if (strcmp(graph->dims[i].name, name) == 0)
            return graph->dims[i].value;
    return -1;
}

gx_kind gx_graph_kind(const gx_graph *graph)
{
    return graph->kind;
}

size_t gx_graph_value_count(const gx_graph *graph)
{
    return graph->n_values;
}

gx_value_info gx_graph_value(const gx_graph *graph, size_t i)
{
    gx_value_info info = { .name = NULL };

    if (i >= graph->n_values)
        return info;
    const gx_value *value = &graph->values[i];

    info.name = value->name;
    info.kind = value->kind;
    info.dtype = value->dtype;
    info.rank = value->rank;
    memcpy(info.dim, value->dim, sizeof info.dim);
    info.is_output = value->is_output;
    info.trainable = value->kind == GX_VALUE_PARAM && !value->frozen;
    info.fed = value->fed;
    info.line = value->pos.line;
    return info;
}

bool gx_graph_updates(const gx_graph *graph, size_t i)
{
    return i < graph->n_values && graph->values[i].updated;
}

ptrdiff_t gx_graph_find(const gx_graph *graph, const char *name)
{
    return name ? gx_graph_value_id(graph, name) : -1;
}

size_t gx_graph_node_count(const gx_graph *graph)
{
    return graph->n_nodes;
}

gx_data_info gx_graph_data(const gx_graph *graph)
{
    const gx_data_spec *data = &graph->data;

    return (gx_data_info){ .n_train = data->n_train,
                           .n_held = data->n_held,
                           .batch = data->batch,
                           .epochs = data->epochs,
                           .shuffle = data->shuffle,
                           .drop_last = data->drop_last,
                           .streams = data->streams,
                           .stream_auto = data->stream_auto,
                           .batch_dim = data->batch_dim };
}

size_t gx_graph_file_count(const gx_graph *graph)
{
    return graph->data.n_columns + 1 + graph->n_values;
}

gx_file_info gx_graph_file(const gx_graph *graph, size_t i)
{
    const gx_data_spec *data = &graph->data;

    if (i < data->n_columns)
        return (gx_file_info){ data->columns[i].path, true };
    if (i == data->n_columns)
        return (gx_file_info){ data->split_path, true };
    i -= data->n_columns + 1;
    if (i >= graph->n_values || !graph->values[i].has_init ||
        graph->values[i].init.kind != GX_INIT_FILE)
        return (gx_file_info){ NULL, false };
    return (gx_file_info){ graph->values[i].init.path, false };
}

const char *gx_graph_logged(const gx_graph *graph, size_t i)
{
    return i < graph->n_logged ? graph->logged_name[i] : NULL;
}

double gx_graph_rate(const gx_graph *graph)
{
    return graph->rate;
}

void gx_graph_times(const gx_graph *graph, double *parse_s, double *check_s)
{
    *parse_s = graph->parse_s;
    *check_s = graph->check_s;
}
