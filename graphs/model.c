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

/* A control character, also one of two bytes (U+0080 to U+009F): a terminal would obey.
 */
static bool holds_control(const char *text)
{
    for (const char *at = text; *at; at++) {
        const unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];

        if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next < 0xa0))
            return true;
    }
    return false;
}

static void read_name(gx_reader *r, const gx_doc *doc)
{
    const char *name = doc ? gx_read_text_doc(r, doc, "a name") : NULL;

    if (name && holds_control(name))
        gx_report(
            r->list, doc->pos,
            "the name of the model holds a line break or another control character");
    else if (name && gx_check_name_length(r, "the name of the model", name, doc->pos))
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

/* The value of an override; false after a report that names it. */
static bool eval_set(gx_reader *r, const gx_set *set, int64_t *value)
{
    const gx_pos nowhere = { 0 };
    gx_diagnostics *inner = gx_diagnostics_create();
    const bool good = inner && gx_eval_int(r->graph, set->value, nowhere, inner, value);

    if (!inner)
        gx_arena_fail(r->graph->arena);
    else if (!good)
        gx_report(r->list, nowhere,
                  "set %s=%s: %s; an override is a number, or an expression of numbers "
                  "and of the dims above \"%s\"",
                  set->name, set->value, gx_diagnostics_at(inner, 0).message, set->name);
    else if (*value < 0)
        gx_report(r->list, nowhere, "set %s=%s: a dim is 0 or more", set->name,
                  set->value);
    gx_diagnostics_free(inner);
    return good && *value >= 0;
}

static void read_dim(gx_reader *r, const gx_doc *dims, size_t i)
{
    gx_graph *graph = r->graph;
    const gx_set *set = find_set(r, dims->key[i]);
    const gx_doc *doc = dims->item[i];
    gx_dim dim = { .name = copy(r, dims->key[i]), .pos = dims->key_pos[i] };
    bool good;

    if (!gx_check_name_length(r, "dim", dims->key[i], dims->key_pos[i]))
        return;
    if (!gx_is_dim_name(dims->key[i])) {
        gx_report(
            r->list, dims->key_pos[i],
            "\"%s\" is not the name of a dim: expected letters, digits or _, a letter or "
            "_ first",
            dims->key[i]);
        return;
    }
    if (set) {
        good = eval_set(r, set, &dim.value);
    } else {
        good = gx_read_int_doc(r, doc, &dim.value);
        if (good && dim.value < 0) {
            gx_report(r->list, doc->pos, "dim \"%s\" is %lld: 0 or more is expected",
                      dims->key[i], (long long)dim.value);
            good = false;
        }
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

static void report_no_dim(gx_reader *r, const gx_set *set, const char *const *names,
                          size_t n)
{
    gx_reader inner = { .list = gx_diagnostics_create() };

    if (inner.list) {
        gx_report_unknown(&inner, (gx_pos){ 0 }, "dim", set->name, names, n);
        gx_report(r->list, (gx_pos){ 0 }, "set %s=%s: %s", set->name, set->value,
                  gx_diagnostics_at(inner.list, 0).message);
    } else {
        gx_arena_fail(r->graph->arena);
    }
    gx_diagnostics_free(inner.list);
}

static void check_sets(gx_reader *r)
{
    const gx_graph *graph = r->graph;
    const char *names[LIMIT_DIMS];

    for (size_t i = 0; i < graph->n_dims; i++)
        names[i] = graph->dims[i].name;
    for (size_t s = 0; r->options && s < r->options->n_sets; s++) {
        const gx_set *set = &r->options->sets[s];
        size_t i = 0;

        while (i < graph->n_dims && strcmp(names[i], set->name) != 0)
            i++;
        if (graph->expanded)
            gx_report(r->list, (gx_pos){ 0 },
                      "set %s=%s: \"%s\" cannot be overridden: an expanded model has its "
                      "sizes written out",
                      set->name, set->value, set->name);
        else if (i == graph->n_dims)
            report_no_dim(r, set, names, graph->n_dims);
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
        if (gx_check_name_length(r, "name", doc->key[i], doc->key_pos[i]) &&
            !gx_is_name(doc->key[i]))
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
    gx_find_batch_rows(r, gx_doc_get(model, "inputs"), data);
    gx_read_tensors(r, model);
    gx_use_batch_rows(r, true);
    if (data)
        gx_read_data(r, data, gx_doc_get(model, "inputs"));
    gx_use_batch_rows(r, false);
    if (ops)
        gx_read_ops(r, ops);
    else
        gx_report(r->list, model->pos, "the model has no \"ops\"");
    gx_use_batch_rows(r, true);
    read_outputs(r, gx_doc_get(model, "outputs"));
    copy_keep(r);
    if (expanded) {
        read_logged(r, gx_doc_get(model, "logged"));
        if (rate)
            gx_read_real_doc(r, rate, &r->graph->rate);
        return;
    }
    read_backward(r, gx_doc_get(model, "backward"));
    gx_read_optimizer(r, gx_doc_get(model, "optimizer"));
    read_metrics(r, gx_doc_get(model, "metrics"));
}

/* The length of the UTF-8 character that starts here, or 0: none that YAML may have. */
static size_t character(const unsigned char *at)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t n = at[0] < 0x80             ? 1
                     : (at[0] & 0xe0) == 0xc0 ? 2
                     : (at[0] & 0xf0) == 0xe0 ? 3
                     : (at[0] & 0xf8) == 0xf0 ? 4
                                              : 0;
    uint32_t code = n == 1 ? at[0] : n > 1 ? at[0] & (0x7fU >> n) : 0;

    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fU);
    }
    if (n == 1)
        return code >= ' ' && code != 0x7f;
    if (n == 0 || code < smallest[n] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff) || code < 0xa0 || (code & 0xfffe) == 0xfffe ||
        code == 0xfeff)
        return 0;
    return n;
}

/* A model without a name is called as its file, whose name may be any bytes: those that
 * would not stand in a model are replaced, and what is too long is cut. */
static const char *name_of_file(gx_graph *graph, const char *file)
{
    const size_t length = strlen(file);
    char *name = gx_arena_alloc(graph->arena, length + 2);
    size_t n = 0;

    for (size_t i = 0; name && i < length;) {
        const size_t size = character((const unsigned char *)file + i);
        const size_t taken = size > 0 ? size : 1;

        if (n + taken > GX_LIMIT_WRITTEN_NAME)
            break;
        if (size > 0)
            memcpy(name + n, file + i, size);
        else
            name[n] = '?';
        i += taken;
        n += taken;
    }
    if (name && n == 0)
        name[n++] = '?';
    return name;
}

static bool fill_graph(gx_graph *graph, const char *name, const char *folder,
                       const gx_load_options *options)
{
    graph->file = gx_arena_text(graph->arena, name);
    graph->name = graph->file ? name_of_file(graph, graph->file) : NULL;
    graph->folder = gx_arena_text(graph->arena, folder ? folder : ".");
    if (options) {
        graph->kind = options->kind;
        graph->keep_gradients = options->keep_gradients;
    }
    return graph->name && graph->folder;
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
