/* From text to a flat graph: the document, its sections, in the order that they need. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "number.h"
#include "reader.h"
#include "scope.h"

enum { FORMAT_VERSION = 1, LIMIT_DIMS = 4096 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *copy(gx_reader *r, const char *text)
{
    return gx_arena_text(r->graph->arena, text);
}

/* --- head --- */

/* False: another version, whose keys would say nothing to us. */
static bool read_version(gx_reader *r, const gx_doc *model)
{
    const gx_doc *version = gx_doc_get(model, "gexec");

    if (!version) {
        gx_report(r->list, model->pos,
                  "\"gexec: 1\" is missing: the version of the format");
        return true;
    }
    if (!gx_read_text_doc(r, version, "the version of the format, 1"))
        return true;
    if (strcmp(version->text, "1") == 0)
        return true;
    gx_report(r->list, version->pos,
              "version \"%s\" of the format is not known; expected %d", version->text,
              FORMAT_VERSION);
    return false;
}

static void read_expanded(gx_reader *r, const gx_doc *model)
{
    const gx_doc *expanded = gx_doc_get(model, "expanded");
    int kind;

    if (!expanded)
        return;
    r->graph->expanded = true;
    kind = gx_read_choice(r, expanded, gx_words_expanded, "expanded");
    if (kind >= 0)
        r->graph->kind = kind == 0 ? GX_TRAIN : GX_EVAL;
}

static void read_name(gx_reader *r, const gx_doc *doc)
{
    const char *name = doc ? gx_read_text_doc(r, doc, "a name") : NULL;

    if (!name)
        return;
    if (strlen(name) > GX_LIMIT_NAME)
        gx_report(r->list, doc->pos,
                  "the name of the model is longer than %d bytes (limit on "
                  "names)",
                  GX_LIMIT_NAME);
    else
        r->graph->name = copy(r, name);
}

static void read_precision(gx_reader *r, const gx_doc *doc)
{
    const int i = doc ? gx_read_choice(r, doc, gx_words_precision, "precision") : 0;

    if (i >= 0)
        r->graph->precision = (gx_precision)i;
}

/* --- dims --- */

static const gx_set *find_set(const gx_reader *r, const char *name)
{
    const gx_set *found = NULL;

    for (size_t i = 0; r->options && i < r->options->n_sets; i++) {
        if (strcmp(r->options->sets[i].name, name) == 0)
            found = &r->options->sets[i];
    }
    return found;
}

static void read_dim(gx_reader *r, const gx_doc *dims, size_t i)
{
    gx_graph *graph = r->graph;
    const gx_set *set = find_set(r, dims->key[i]);
    const gx_doc *doc = dims->item[i];
    gx_dim dim = { .name = copy(r, dims->key[i]), .pos = dims->key_pos[i] };
    bool good;

    if (!gx_is_dim_name(dims->key[i])) {
        gx_report(
            r->list, dims->key_pos[i],
            "\"%s\" is not the name of a dim: expected letters, digits or _, a letter or "
            "_ first",
            dims->key[i]);
        return;
    }
    if (set)
        good = gx_eval_int(graph, set->value, (gx_pos){ 0 }, r->list, &dim.value);
    else
        good = gx_read_int_doc(r, doc, &dim.value);
    if (good && dim.value < 0) {
        gx_report(r->list, set ? (gx_pos){ 0 } : doc->pos,
                  "dim \"%s\" is %lld: 0 or more is "
                  "expected",
                  dims->key[i], (long long)dim.value);
        good = false;
    }
    if (!good) /* some size, so that its readers are not reported too */
        dim.value = 1;
    graph->dims[graph->n_dims++] = dim;
}

static void read_dims(gx_reader *r, const gx_doc *dims)
{
    gx_graph *graph = r->graph;

    if (!dims || !gx_expect(r, dims, GX_DOC_MAP, "a map such as {batch: 64}"))
        return;
    if (dims->n > LIMIT_DIMS) {
        gx_report(r->list, dims->pos, "more than %d dims (limit on dims)", LIMIT_DIMS);
        return;
    }
    graph->dims = gx_arena_alloc(graph->arena, (dims->n + 1) * sizeof *graph->dims);
    for (size_t i = 0; graph->dims && i < dims->n; i++)
        read_dim(r, dims, i);
}

static void check_sets(gx_reader *r)
{
    const gx_graph *graph = r->graph;
    const char *names[LIMIT_DIMS];

    for (size_t i = 0; i < graph->n_dims; i++)
        names[i] = graph->dims[i].name;
    for (size_t s = 0; r->options && s < r->options->n_sets; s++) {
        const char *name = r->options->sets[s].name;
        size_t i = 0;

        while (i < graph->n_dims && strcmp(names[i], name) != 0)
            i++;
        if (i == graph->n_dims)
            gx_report_unknown(r, (gx_pos){ 0 }, "dim to set", name, names, graph->n_dims);
        else if (graph->expanded)
            gx_report(
                r->list, (gx_pos){ 0 },
                "dim \"%s\" cannot be set: an expanded model has its sizes written out",
                name);
    }
}

/* --- what follows the ops --- */

static const char *read_tensor_name(gx_reader *r, const gx_doc *doc)
{
    const char *name = gx_read_text_doc(r, doc, "the name of a tensor");

    return name ? copy(r, gx_scope_find(r, r->top, name)) : NULL;
}

static void read_backward(gx_reader *r, const gx_doc *doc)
{
    if (!doc)
        return;
    r->graph->backward = read_tensor_name(r, doc);
    r->graph->backward_pos = doc->pos;
}

static void read_optimizer(gx_reader *r, const gx_doc *doc)
{
    gx_section *optimizer = &r->graph->optimizer;

    if (!doc || !gx_expect(r, doc, GX_DOC_MAP, "an optimizer, as in {sgd: {lr: 0.1}}"))
        return;
    if (doc->n != 1) {
        gx_report(r->list, doc->pos,
                  "expected one optimizer, as in {sgd: {lr: 0.1}}, found "
                  "%zu keys",
                  doc->n);
        return;
    }
    if (!gx_expect(r, doc->item[0], GX_DOC_MAP, "a map such as {lr: 0.1}"))
        return;
    optimizer->op_name = copy(r, doc->key[0]);
    optimizer->name = optimizer->op_name;
    gx_read_section(r, doc->item[0], optimizer);
    optimizer->pos = doc->key_pos[0];
}

static void read_metrics(gx_reader *r, const gx_doc *doc)
{
    gx_graph *graph = r->graph;

    if (!doc || !gx_expect(r, doc, GX_DOC_MAP, "a map of metrics by name"))
        return;
    graph->metrics = gx_arena_alloc(graph->arena, (doc->n + 1) * sizeof *graph->metrics);
    for (size_t i = 0; graph->metrics && i < doc->n; i++) {
        const gx_doc *item = doc->item[i];
        const char *op_name = doc->key[i];

        if (!gx_expect(r, item, GX_DOC_MAP, "a map such as {logits: logits, labels: y}"))
            continue;
        const gx_doc *op = gx_doc_get(item, "op");

        if (op && !(op_name = gx_read_text_doc(r, op, "the name of an op")))
            continue;
        gx_section *metric = &graph->metrics[graph->n_metrics++];

        metric->name = copy(r, doc->key[i]);
        metric->op_name = copy(r, op_name);
        gx_read_section(r, item, metric);
        metric->pos = doc->key_pos[i];
        if (!gx_is_name(doc->key[i]))
            gx_report(r->list, doc->key_pos[i], "\"%s\" is not a name", doc->key[i]);
    }
}

static void read_outputs(gx_reader *r, const gx_doc *doc)
{
    gx_graph *graph = r->graph;

    if (!doc || !gx_expect(r, doc, GX_DOC_LIST, "a list of tensors, as in [loss]"))
        return;
    graph->outputs = gx_arena_alloc(graph->arena, (doc->n + 1) * sizeof *graph->outputs);
    graph->output_pos =
        gx_arena_alloc(graph->arena, (doc->n + 1) * sizeof *graph->output_pos);
    for (size_t i = 0; graph->outputs && graph->output_pos && i < doc->n; i++) {
        const char *name = read_tensor_name(r, doc->item[i]);

        if (!name)
            continue;
        graph->outputs[graph->n_outputs] = name;
        graph->output_pos[graph->n_outputs++] = doc->item[i]->pos;
    }
}

static void read_logged(gx_reader *r, const gx_doc *doc)
{
    gx_graph *graph = r->graph;

    if (!doc || !gx_expect(r, doc, GX_DOC_MAP, "a map from logged names to tensors"))
        return;
    if (doc->n > GX_MAX_LOGGED) {
        gx_report(r->list, doc->pos, "at most %d scalars are logged", GX_MAX_LOGGED);
        return;
    }
    for (size_t i = 0; i < doc->n; i++) {
        const char *tensor = read_tensor_name(r, doc->item[i]);

        if (!tensor)
            continue;
        graph->logged_name[graph->n_logged] = copy(r, doc->key[i]);
        graph->logged_tensor[graph->n_logged] = tensor;
        graph->logged[graph->n_logged++] = -1;
    }
}

static void copy_keep(gx_reader *r)
{
    gx_graph *graph = r->graph;
    const gx_load_options *options = r->options;
    const char **keep;

    if (!options || options->n_keep == 0)
        return;
    keep = gx_arena_alloc(graph->arena, options->n_keep * sizeof *keep);
    for (size_t i = 0; keep && i < options->n_keep; i++)
        keep[i] = copy(r, gx_scope_find(r, r->top, options->keep[i]));
    graph->keep = keep;
    graph->n_keep = keep ? options->n_keep : 0;
}

/* --- the whole --- */

static void read_model(gx_reader *r, const gx_doc *model)
{
    const gx_doc *data = gx_doc_get(model, "data");
    const gx_doc *ops = gx_doc_get(model, "ops");
    const gx_doc *rate = gx_doc_get(model, "rate");

    if (!read_version(r, model))
        return;
    read_expanded(r, model);

    const bool expanded = r->graph->expanded;

    gx_check_keys(r, model, expanded ? gx_keys_expanded : gx_keys_model, "the model");
    read_name(r, gx_doc_get(model, "name"));
    read_precision(r, gx_doc_get(model, "precision"));
    read_dims(r, gx_doc_get(model, "dims"));
    check_sets(r);
    gx_read_tensors(r, model);
    if (data)
        gx_read_data(r, data, gx_doc_get(model, "inputs"));
    if (ops)
        gx_read_ops(r, ops);
    else
        gx_report(r->list, model->pos, "the model has no \"ops\"");
    read_outputs(r, gx_doc_get(model, "outputs"));
    copy_keep(r);
    if (expanded) {
        read_logged(r, gx_doc_get(model, "logged"));
        if (rate)
            gx_read_real_doc(r, rate, &r->graph->rate);
        return;
    }
    read_backward(r, gx_doc_get(model, "backward"));
    read_optimizer(r, gx_doc_get(model, "optimizer"));
    read_metrics(r, gx_doc_get(model, "metrics"));
}

static bool fill_graph(gx_graph *graph, const char *name, const char *folder,
                       const gx_load_options *options)
{
    graph->file = gx_arena_text(graph->arena, name);
    graph->name = graph->file;
    graph->folder = gx_arena_text(graph->arena, folder ? folder : ".");
    if (options) {
        graph->kind = options->kind;
        graph->keep_gradients = options->keep_gradients;
    }
    return graph->file && graph->folder;
}

static bool read_document(gx_reader *r, const gx_doc *doc, const char *name,
                          const char *folder)
{
    gx_scope top = { .prefix = "" };

    r->graph = gx_graph_new();
    r->claims = gx_name_map_create();
    r->top = &top;
    const bool good =
        r->graph && r->claims && fill_graph(r->graph, name, folder, r->options);

    if (good)
        read_model(r, doc);
    gx_scope_free(&top);
    gx_name_map_free(r->claims);
    free(r->claim_pos);
    return good && !gx_arena_failed(r->graph->arena);
}

gx_status gx_model_read(const char *text, size_t length, const char *name,
                        const char *folder, const gx_load_options *options,
                        const gx_catalogue *catalogue, gx_graph **graph,
                        gx_diagnostics *list, gx_error *err)
{
    const double start = now();
    gx_reader r = { .list = list, .catalogue = catalogue, .options = options };
    gx_arena *arena = gx_arena_create();
    const gx_doc *doc;
    bool good = false;

    *graph = NULL;
    doc = arena ? gx_document_read(arena, text, length, list) : NULL;
    if (doc && doc->kind != GX_DOC_MAP) {
        gx_report(list, doc->pos,
                  "expected a model, which is a map that starts with \"gexec: "
                  "1\"; found %s",
                  gx_doc_what(doc));
        doc = NULL;
    }
    if (doc)
        good = read_document(&r, doc, name, folder);
    gx_arena_free(arena);
    if (good) {
        *graph = r.graph;
        r.graph->parse_s = now() - start;
        return GX_OK;
    }
    gx_graph_free(r.graph);
    if (!doc && gx_diagnostics_count(list) > 0)
        return gx_diagnostics_status(list, err);
    return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
}
