/* Loading a graph: read the document, then resolve it against the catalogue. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "builder.h"
#include "need.h"

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

static gx_status check_kind(gx_kind kind, gx_error *err)
{
    if (kind == GX_TRAIN || kind == GX_EVAL)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_ARGUMENT, "kind %d is none of training, evaluation",
                   (int)kind);
}

static gx_status check_options(const gx_load_options *options, gx_error *err)
{
    if (!options)
        return GX_OK;
    GX_TRY(check_kind(options->kind, err));
    if ((unsigned)options->stream > GX_STREAM_OFF)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "stream %d is none of as written, on, off",
                       (int)options->stream);
    if (options->n_sets > 0)
        GX_TRY(gx_need(options->sets, "list of sets", err));
    for (size_t i = 0; i < options->n_sets; i++) {
        GX_TRY(gx_need(options->sets[i].name, "name of a set", err));
        GX_TRY(gx_need(options->sets[i].value, "value of a set", err));
        for (size_t j = 0; j < i; j++)
            if (strcmp(options->sets[j].name, options->sets[i].name) == 0)
                return GX_FAIL(err, GX_ERR_ARGUMENT, "'%s' is set twice",
                               options->sets[i].name);
    }
    if (options->n_keep > 0)
        GX_TRY(gx_need(options->keep, "list of tensors to keep", err));
    for (size_t i = 0; i < options->n_keep; i++)
        GX_TRY(gx_need(options->keep[i], "name of a tensor to keep", err));
    return GX_OK;
}

/* Resolves what was read; the first mistake, or memory that ran out, is the status. */
static gx_status check(gx_graph *graph, gx_diagnostics *list, gx_error *err)
{
    const double start = now();
    const bool empty = graph->n_nodes == 0;

    gx_resolve(graph, list);
    graph->check_s = now() - start;
    /* Of a file the reader has said so. */
    if (empty && gx_diagnostics_count(list) == 0)
        gx_report(list, (gx_pos){ 0 }, "a model of no ops");
    if (gx_arena_failed(graph->arena))
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory while checking the model");
    GX_TRY(gx_diagnostics_status(list, err));
    graph->finished = true;
    return GX_OK;
}

/* What a text is loaded with. */
typedef struct source {
    const char *text;
    size_t length;
    const char *name, *folder;
    const gx_load_options *options; /* NULL: none */
} source;

static gx_status parse(const source *from, gx_graph **graph, gx_diagnostics *list,
                       gx_error *err);

/* True where an output is named; what is kept besides has no place. */
static bool is_output_pos(const gx_graph *graph, gx_pos pos)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (graph->output_pos && graph->output_pos[i].line == pos.line &&
            graph->output_pos[i].column == pos.column)
            return true;
    }
    return pos.line == 0;
}

/* Whether training has what an evaluation is asked for and lacks: the same model is
 * loaded to train, and of its mistakes those in the names of outputs count. */
static gx_status check_outputs(const source *from, const gx_graph *graph,
                               gx_diagnostics *list, gx_error *err)
{
    gx_load_options options =
        from->options ? *from->options : (gx_load_options){ .kind = GX_EVAL };
    source again = *from;
    gx_diagnostics *found;
    gx_graph *trained = NULL;

    if (!graph->asks_of_training)
        return GX_OK;
    found = gx_diagnostics_create();
    if (!found)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    options.kind = GX_TRAIN;
    again.options = &options;
    (void)!parse(&again, &trained, found, NULL);
    for (size_t i = 0; i < gx_diagnostics_count(found); i++) {
        const gx_diagnostic mistake = gx_diagnostics_at(found, i);
        const gx_pos pos = { mistake.line, mistake.column };

        if (is_output_pos(graph, pos))
            gx_report(list, pos, "%s", mistake.message);
    }
    gx_graph_free(trained);
    gx_diagnostics_free(found);
    return gx_diagnostics_status(list, err);
}

static gx_status parse(const source *from, gx_graph **graph, gx_diagnostics *list,
                       gx_error *err)
{
    gx_graph *made = NULL;
    gx_status st;

    gx_diagnostics_source(list, from->name, from->text, from->length);
    st = gx_model_read(from->text, from->length, from->name, from->folder, from->options,
                       &catalogue, &made, list, err);
    /* Also where the reader found mistakes: the resolver may find others. */
    if (st == GX_OK)
        st = check(made, list, err);
    if (st == GX_OK)
        st = check_outputs(from, made, list, err);
    if (st != GX_OK) {
        gx_graph_free(made);
        return st;
    }
    *graph = made;
    return GX_OK;
}

gx_status gx_graph_parse(const char *text, size_t length, const char *name,
                         const char *folder, const gx_load_options *options,
                         gx_graph **graph, gx_diagnostics *diagnostics, gx_error *err)
{
    gx_diagnostics *list;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(graph, "graph", err));
    *graph = NULL;
    GX_TRY(gx_need(text, "text", err));
    GX_TRY(check_options(options, err));
    list = diagnostics ? diagnostics : gx_diagnostics_create();
    if (!list)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = parse(
        &(source){ text, length, name ? name : "model", folder ? folder : ".", options },
        graph, list, err);
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
    char *folder;
    gx_status st;

    gx_error_clear(err);
    GX_TRY(gx_need_place(graph, "graph", err));
    *graph = NULL;
    GX_TRY(gx_need(path, "path", err));
    GX_TRY(check_options(options, err));
    folder = folder_of(path);
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
    GX_TRY(gx_need(graph, "graph", err));
    GX_TRY(check_kind(kind, err));
    if (graph->finished)
        return GX_FAIL(err, GX_ERR_STATE, "the graph is finished already");
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

const char *gx_graph_logged_labels(const gx_graph *graph, size_t i)
{
    const int32_t labels = i < graph->n_logged ? graph->counted[i].labels : -1;

    return labels >= 0 ? graph->values[labels].name : NULL;
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
