/* Building a graph in code. */
#include <string.h>

#include "graph_model.h"
#include "need.h"
#include "number.h"
#include "reader.h"

/* Runs what reports into a list, and hands the first report on as an error. */
static gx_status finish(gx_graph *graph, gx_diagnostics *list, gx_error *err)
{
    gx_status st = GX_OK;

    if (!list || gx_arena_failed(graph->arena))
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    else if (gx_diagnostics_count(list) > 0)
        st = GX_FAIL(err, GX_ERR_MODEL, "%s", gx_diagnostics_at(list, 0).message);
    gx_diagnostics_free(list);
    return st;
}

static gx_status check_open(const gx_graph *graph, gx_error *err)
{
    GX_TRY(gx_need(graph, "graph", err));
    if (!graph->finished)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_STATE, "the graph is finished: nothing can be added");
}

static gx_status check_name(const char *name, gx_error *err)
{
    GX_TRY(gx_need(name, "name", err));
    if (strlen(name) > GX_LIMIT_WRITTEN_NAME)
        return GX_FAIL(err, GX_ERR_LIMIT,
                       "name \"%.40s...\" is longer than %d bytes (limit on names)", name,
                       GX_LIMIT_WRITTEN_NAME);
    if (!gx_is_reserved_name(name))
        return GX_OK;
    return GX_FAIL(
        err, GX_ERR_ARGUMENT,
        "\"%s\": names that start with \"gexec.\" or \"data.\" are gexec's own", name);
}

gx_status gx_graph_create(const char *name, const char *precision, gx_graph **graph,
                          gx_error *err)
{
    int i = 0;

    gx_error_clear(err);
    GX_TRY(gx_need_place(graph, "graph", err));
    *graph = NULL;
    GX_TRY(gx_need(name, "name", err));
    GX_TRY(gx_need(precision, "precision", err));
    while (gx_words_precision[i] && strcmp(gx_words_precision[i], precision) != 0)
        i++;
    if (!gx_words_precision[i])
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "precision \"%s\" is not known; expected f32, tf32, bf16 or f16",
                       precision);
    *graph = gx_graph_new();
    if (!*graph)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    (*graph)->name = gx_arena_text((*graph)->arena, name);
    (*graph)->file = (*graph)->name;
    (*graph)->precision = (gx_precision)i;
    if ((*graph)->name)
        return GX_OK;
    gx_graph_free(*graph);
    *graph = NULL;
    return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
}

static gx_status check_shape(const char *name, gx_dtype dtype, int rank,
                             const int64_t *dim, gx_error *err)
{
    int64_t count = 1;

    if (!gx_is_float(dtype) && dtype != GX_I32)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "tensor \"%s\": expected f32, bf16, f16 or i32", name);
    if (rank < 0 || rank > GX_MAX_RANK)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "tensor \"%s\": rank %d, expected 0 to %d",
                       name, rank, GX_MAX_RANK);
    if (rank > 0)
        GX_TRY(gx_need(dim, "list of sizes", err));
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT,
                           "tensor \"%s\": size %lld, expected 0 or more", name,
                           (long long)dim[i]);
        if (dim[i] > GX_LIMIT_ELEMENTS || __builtin_mul_overflow(count, dim[i], &count) ||
            count > GX_LIMIT_ELEMENTS)
            return GX_FAIL(err, GX_ERR_LIMIT,
                           "tensor \"%s\": more than %lld elements (limit on elements)",
                           name, (long long)GX_LIMIT_ELEMENTS);
    }
    return GX_OK;
}

gx_status gx_graph_add_tensor(gx_graph *graph, gx_role role, const char *name,
                              gx_dtype dtype, int rank, const int64_t *dim,
                              const char *init, gx_error *err)
{
    const gx_value_kind kind = role == GX_ROLE_INPUT ? GX_VALUE_INPUT : GX_VALUE_PARAM;
    const gx_pos nowhere = { 0 };

    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(check_name(name, err));
    if (role != GX_ROLE_INPUT && role != GX_ROLE_PARAM)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "tensor \"%s\": role %d is none of input, parameter", name,
                       (int)role);
    GX_TRY(check_shape(name, dtype, rank, dim, err));

    gx_diagnostics *list = gx_diagnostics_create();
    gx_init parsed = { .kind = GX_INIT_ZEROS };
    const bool good =
        list && (!init || gx_read_init_text(graph, init, &parsed, list, nowhere));

    if (good && graph->n_nodes > 0 && gx_graph_node_id(graph, name) >= 0) {
        gx_report(list, nowhere, "name \"%s\" is taken by an op", name);
        return finish(graph, list, err);
    }
    const int32_t id =
        good ? gx_graph_add_value(graph, name, kind, dtype, rank, dim, nowhere, list)
             : -1;

    if (id >= 0) {
        graph->values[id].init = parsed;
        graph->values[id].has_init = init != NULL || kind == GX_VALUE_PARAM;
    }
    return finish(graph, list, err);
}

/* Copies fields into the arena; NULL: out of memory. */
static gx_field_value *copy_fields(gx_graph *graph, const gx_field_text *fields, size_t n)
{
    gx_field_value *copies = gx_arena_alloc(graph->arena, (n + 1) * sizeof *copies);

    for (size_t i = 0; copies && i < n; i++) {
        copies[i] =
            (gx_field_value){ .key = gx_arena_text(graph->arena, fields[i].key),
                              .text = gx_arena_text(graph->arena, fields[i].text) };
    }
    return gx_arena_failed(graph->arena) ? NULL : copies;
}

static gx_status check_fields(const char *what, const gx_field_text *fields, size_t n,
                              gx_error *err)
{
    enum { MOST = 64 };

    if (n > MOST)
        return GX_FAIL(err, GX_ERR_LIMIT, "%s: more than %d fields", what, MOST);
    if (n > 0)
        GX_TRY(gx_need(fields, "list of fields", err));
    for (size_t i = 0; i < n; i++) {
        GX_TRY(gx_need(fields[i].key, "key of a field", err));
        GX_TRY(gx_need(fields[i].text, "text of a field", err));
    }
    return GX_OK;
}

gx_status gx_graph_add_op(gx_graph *graph, const char *op, const char *name,
                          const gx_field_text *fields, size_t n_fields, gx_error *err)
{
    const gx_pos nowhere = { 0 };

    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(check_name(name, err));
    GX_TRY(gx_need(op, "op", err));
    GX_TRY(check_fields(name, fields, n_fields, err));
    if (graph->n_nodes >= GX_LIMIT_OPS)
        return GX_FAIL(err, GX_ERR_LIMIT, "more than %d ops (limit on ops)",
                       GX_LIMIT_OPS);

    gx_diagnostics *list = gx_diagnostics_create();
    const gx_field_value *copies = list ? copy_fields(graph, fields, n_fields) : NULL;

    if (copies &&
        gx_graph_append(graph, op, name, GX_PHASE_FORWARD, copies, (int)n_fields, nowhere,
                        list) < 0 &&
        gx_diagnostics_count(list) == 0)
        gx_arena_fail(graph->arena);
    return finish(graph, list, err);
}

gx_status gx_graph_set_backward(gx_graph *graph, const char *loss, gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(gx_need(loss, "loss", err));
    graph->backward = gx_arena_text(graph->arena, loss);
    if (!graph->backward)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    return GX_OK;
}

static gx_status fill_section(gx_graph *graph, gx_section *section, const char *name,
                              const gx_field_text *fields, size_t n, gx_error *err)
{
    section->fields = copy_fields(graph, fields, n);
    section->n_fields = (int)n;
    section->name = gx_arena_text(graph->arena, name);
    section->op_name = section->name;
    if (!section->fields || !section->name)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    return GX_OK;
}

gx_status gx_graph_set_optimizer(gx_graph *graph, const char *op,
                                 const gx_field_text *fields, size_t n_fields,
                                 gx_error *err)
{
    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(gx_need(op, "op", err));
    GX_TRY(check_fields(op, fields, n_fields, err));
    return fill_section(graph, &graph->optimizer, op, fields, n_fields, err);
}

/* A metric is the op of its name, unless a field "op" names another. */
static void take_op_field(gx_section *metric)
{
    for (int i = 0; i < metric->n_fields; i++) {
        if (strcmp(metric->fields[i].key, "op") != 0)
            continue;
        metric->op_name = metric->fields[i].text;
        memmove(&metric->fields[i], &metric->fields[i + 1],
                (size_t)(metric->n_fields - i - 1) * sizeof metric->fields[0]);
        metric->n_fields--;
        return;
    }
}

gx_status gx_graph_add_metric(gx_graph *graph, const char *name,
                              const gx_field_text *fields, size_t n_fields, gx_error *err)
{
    gx_section *more;

    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(check_name(name, err));
    GX_TRY(check_fields(name, fields, n_fields, err));
    if (!gx_is_name(name))
        return GX_FAIL(err, GX_ERR_ARGUMENT, "\"%s\" is not a name", name);
    for (size_t i = 0; i < graph->n_metrics; i++) {
        if (strcmp(graph->metrics[i].name, name) == 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "metric \"%s\" stands already", name);
    }
    more = gx_arena_alloc(graph->arena, (graph->n_metrics + 1) * sizeof *more);
    if (!more)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    if (graph->n_metrics > 0)
        memcpy(more, graph->metrics, graph->n_metrics * sizeof *more);
    GX_TRY(fill_section(graph, &more[graph->n_metrics], name, fields, n_fields, err));
    take_op_field(&more[graph->n_metrics]);
    graph->metrics = more;
    graph->n_metrics++;
    return GX_OK;
}

gx_status gx_graph_add_output(gx_graph *graph, const char *name, gx_error *err)
{
    const char **outputs;
    gx_pos *pos;

    gx_error_clear(err);
    GX_TRY(check_open(graph, err));
    GX_TRY(gx_need(name, "name", err));

    const size_t n = graph->n_outputs;

    if ((n & (n - 1)) == 0) { /* full: 0, 1, 2, 4, ... stand */
        outputs = gx_arena_alloc(graph->arena, (n + 1) * 2 * sizeof *outputs);
        pos = gx_arena_alloc(graph->arena, (n + 1) * 2 * sizeof *pos);
        if (!outputs || !pos)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
        if (n > 0)
            memcpy(outputs, graph->outputs, n * sizeof *outputs);
        graph->outputs = outputs;
        graph->output_pos = pos;
    }
    graph->outputs[n] = gx_arena_text(graph->arena, name);
    if (!graph->outputs[n])
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    graph->n_outputs++;
    return GX_OK;
}
