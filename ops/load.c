/* Loading a graph: read the document, then resolve it against the catalogue. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "builder.h"

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- what the reader asks of the catalogue --- */

static bool field_kind(const char *op, const char *key, gx_field_kind *kind)
{
    const gx_op *row = gx_op_find(op);

    for (const gx_field *field = row ? row->fields : NULL; field && field->name;
         field++) {
        if (strcmp(field->name, key) == 0) {
            *kind = field->kind;
            return true;
        }
    }
    return false;
}

/* The one output that must be there, where it is the only one. */
static const char *default_output(const char *op)
{
    const gx_op *row = gx_op_find(op);

    for (const gx_field *field = row ? row->fields : NULL; field && field->name;
         field++) {
        if (field->kind == GX_FIELD_OUT && field->required)
            return field->name;
    }
    return NULL;
}

static const gx_catalogue catalogue = { field_kind, default_output };

/* --- loading --- */

/* Resolves what was read; the first mistake, or memory that ran out, is the status. */
static gx_status check(gx_graph *graph, gx_diagnostics *list, gx_error *err)
{
    const double start = now();

    gx_resolve(graph, list);
    graph->check_s = now() - start;
    if (gx_arena_failed(graph->arena))
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory while checking the model");
    GX_TRY(gx_diagnostics_status(list, err));
    graph->finished = true;
    return GX_OK;
}

static gx_status parse(const char *text, size_t length, const char *name,
                       const char *folder, const gx_load_options *options,
                       gx_graph **graph, gx_diagnostics *list, gx_error *err)
{
    gx_graph *made = NULL;
    gx_status st;

    gx_diagnostics_source(list, name, text, length);
    st = gx_model_read(text, length, name, folder, options, &catalogue, &made, list, err);
    /* Also where the reader found mistakes: the resolver may find others. */
    if (st == GX_OK)
        st = check(made, list, err);
    if (st != GX_OK) {
        gx_graph_free(made);
        return st;
    }
    *graph = made;
    return GX_OK;
}

static gx_status check_kind(gx_kind kind, const char *what, gx_error *err)
{
    if ((unsigned)kind <= GX_EVAL)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_ARGUMENT, "%s is %d: expected GX_TRAIN or GX_EVAL", what,
                   (int)kind);
}

gx_status gx_graph_parse(const char *text, size_t length, const char *name,
                         const char *folder, const gx_load_options *options,
                         gx_graph **graph, gx_diagnostics *diagnostics, gx_error *err)
{
    gx_diagnostics *list;
    gx_status st;

    gx_error_clear(err);
    *graph = NULL;
    if (options)
        GX_TRY(check_kind(options->kind, "gx_load_options.kind", err));
    list = diagnostics ? diagnostics : gx_diagnostics_create();
    if (!list)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = parse(text, length, name ? name : "model", folder ? folder : ".", options, graph,
               list, err);
    if (!diagnostics)
        gx_diagnostics_free(list);
    return st;
}

/* The folder of a path, as text that the caller frees. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t length = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = malloc(length + 1);

    if (!folder)
        return NULL;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = 0;
    return folder;
}

gx_status gx_graph_load(const char *path, const gx_load_options *options,
                        gx_graph **graph, gx_diagnostics *diagnostics, gx_error *err)
{
    char *text = NULL;
    size_t length = 0;
    char *folder = folder_of(path);
    gx_status st;

    gx_error_clear(err);
    *graph = NULL;
    if (!folder)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_read_file(path, &text, &length, err);
    if (st == GX_OK)
        st = gx_graph_parse(text, length, path, folder, options, graph, diagnostics, err);
    free(text);
    free(folder);
    return st;
}

gx_status gx_graph_finish(gx_graph *graph, gx_kind kind, gx_diagnostics *diagnostics,
                          gx_error *err)
{
    gx_diagnostics *list;
    gx_status st;

    gx_error_clear(err);
    if (graph->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the graph is finished already");
    GX_TRY(check_kind(kind, "kind", err));
    list = diagnostics ? diagnostics : gx_diagnostics_create();
    if (!list)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    graph->kind = kind;
    st = check(graph, list, err);
    if (!diagnostics)
        gx_diagnostics_free(list);
    return st;
}

/* --- inspection that needs the rows --- */

static double operand_bytes(const gx_graph *graph, const gx_node *node)
{
    double bytes = 0;
    int i = 0;

    for (const gx_field *field = node->op->fields; field->name; field++) {
        const bool is_tensor = field->kind == GX_FIELD_IN ||
                               field->kind == GX_FIELD_INOUT ||
                               field->kind == GX_FIELD_OUT;

        if (!is_tensor || node->arg[i++] < 0)
            continue;
        const gx_value *value = &graph->values[node->arg[i - 1]];
        double n = (double)gx_dtype_bytes(value->dtype);

        for (int d = 0; d < value->rank; d++)
            n *= (double)value->dim[d];
        bytes += field->kind == GX_FIELD_INOUT ? 2 * n : n;
    }
    return bytes;
}

gx_node_info gx_graph_node(const gx_graph *graph, size_t i)
{
    gx_node_info info = { .name = NULL };

    if (i >= graph->n_nodes)
        return info;
    const gx_node *node = &graph->nodes[i];

    info.name = node->name;
    info.op = node->op;
    info.phase = node->phase;
    info.line = node->pos.line;
    if (node->op) {
        info.flops = node->op->flops ? node->op->flops(graph, node) : 0;
        info.bytes =
            node->op->bytes ? node->op->bytes(graph, node) : operand_bytes(graph, node);
    }
    return info;
}

gx_average gx_graph_logged_average(const gx_graph *graph, size_t i)
{
    return i < graph->n_logged ? graph->average[i] : GX_AVERAGE_MEAN;
}

int64_t gx_graph_accumulate(const gx_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const gx_node *node = &graph->nodes[i];
        int index;

        if (node->op && node->attr && node->phase == GX_PHASE_OPTIMIZER &&
            gx_field_find(node->op, "accumulate", &index))
            return node->attr[index].i;
    }
    return 1;
}
