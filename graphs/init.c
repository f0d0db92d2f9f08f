/* Initialisers as the model writes them. */
#include "init.h"

#include <math.h>
#include <string.h>

#include "emit.h"
#include "number.h"
#include "reader.h"

/* By gx_init_kind: the word, and what stands behind it. */
typedef enum form {
    FORM_WORD,
    FORM_NUMBER,
    FORM_NORMAL,
    FORM_RANGE,
    FORM_FAN,
    FORM_FILE,
    FORM_NAME
} form;

static const struct {
    const char *word;
    form form;
} forms[] = {
    [GX_INIT_ZEROS] = { "zeros", FORM_WORD },
    [GX_INIT_ONES] = { "ones", FORM_WORD },
    [GX_INIT_CONSTANT] = { "constant", FORM_NUMBER },
    [GX_INIT_NORMAL] = { "normal", FORM_NORMAL },
    [GX_INIT_UNIFORM] = { "uniform", FORM_RANGE },
    [GX_INIT_HE_NORMAL] = { "he_normal", FORM_WORD },
    [GX_INIT_HE_UNIFORM] = { "he_uniform", FORM_WORD },
    [GX_INIT_XAVIER_NORMAL] = { "xavier_normal", FORM_WORD },
    [GX_INIT_XAVIER_UNIFORM] = { "xavier_uniform", FORM_WORD },
    [GX_INIT_TORCH_LINEAR] = { "torch_linear", FORM_FAN },
    [GX_INIT_INTEGERS] = { "integers", FORM_RANGE },
    [GX_INIT_FILE] = { "file", FORM_FILE },
    [GX_INIT_PARAM] = { "param", FORM_NAME },
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

const char *gx_init_word(size_t i)
{
    return i < N_FORMS ? forms[i].word : NULL;
}

/* The kind of that word, or -1 after a report. */
static int find_kind(gx_reader *r, const char *word, gx_pos pos)
{
    const char *words[N_FORMS];

    for (int i = 0; i < N_FORMS; i++) {
        words[i] = forms[i].word;
        if (strcmp(words[i], word) == 0)
            return i;
    }
    gx_report_unknown(r, pos, "initialiser", word, words, N_FORMS);
    return -1;
}

static bool read_word(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    const int kind = find_kind(r, doc->text, doc->pos);

    if (kind < 0)
        return false;
    init->kind = (gx_init_kind)kind;
    if (forms[kind].form == FORM_WORD || forms[kind].form == FORM_FAN)
        return true;
    if (kind == GX_INIT_NORMAL) {
        init->b = 1;
        return true;
    }
    gx_report(
        r->list, doc->pos,
        "initialiser \"%s\" needs a value, as in {constant: 0.5}, {uniform: [-1, 1]}, "
        "{integers: [0, 10]} or {file: w.npy}",
        doc->text);
    return false;
}

static bool read_normal(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    bool good = gx_expect(r, doc, GX_DOC_MAP, "a map such as {mean: 0, std: 0.02}") &&
                gx_check_keys(r, doc, gx_keys_normal, "normal");
    const gx_doc *mean = good ? gx_doc_get(doc, "mean") : NULL;
    const gx_doc *deviation = good ? gx_doc_get(doc, "std") : NULL;

    init->b = 1;
    if (mean)
        good = gx_read_real_doc(r, mean, &init->a);
    if (deviation)
        good = gx_read_real_doc(r, deviation, &init->b) && good;
    if (good && init->b < 0) {
        gx_report(r->list, deviation->pos, "a standard deviation is 0 or more");
        good = false;
    }
    return good;
}

static bool read_range(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    const bool whole = init->kind == GX_INIT_INTEGERS;
    int64_t from = 0, to = 0;

    if (!gx_expect(r, doc, GX_DOC_LIST, "a list of two numbers"))
        return false;
    if (doc->n != 2) {
        gx_report(r->list, doc->pos, "expected two numbers, found %zu", doc->n);
        return false;
    }
    if (!whole) {
        if (!gx_read_real_doc(r, doc->item[0], &init->a) ||
            !gx_read_real_doc(r, doc->item[1], &init->b))
            return false;
    } else {
        if (!gx_read_int_doc(r, doc->item[0], &from) ||
            !gx_read_int_doc(r, doc->item[1], &to))
            return false;
        if (from < INT32_MIN || to > (int64_t)INT32_MAX + 1) {
            gx_report(r->list, doc->pos, "integers [%lld, %lld] do not fit into 32 bits",
                      (long long)from, (long long)to);
            return false;
        }
        init->a = (double)from;
        init->b = (double)to;
    }
    if (whole ? init->a >= init->b : init->a > init->b) {
        gx_report(r->list, doc->pos, "%s: the first number must be below the second",
                  forms[init->kind].word);
        return false;
    }
    return true;
}

static bool read_fan(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    int64_t fan = 0;

    if (!gx_expect(r, doc, GX_DOC_MAP, "a map such as {fan_in: 64}") ||
        !gx_check_keys(r, doc, gx_keys_fan, "torch_linear"))
        return false;
    const gx_doc *fan_in = gx_doc_get(doc, "fan_in");

    if (!fan_in || !gx_read_int_doc(r, fan_in, &fan))
        return fan_in == NULL;
    if (fan < 1 || fan > GX_LIMIT_ELEMENTS) {
        gx_report(r->list, fan_in->pos, "fan_in is 1 or more");
        return false;
    }
    init->a = (double)fan;
    return true;
}

static bool read_path(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    if (!gx_expect(r, doc, GX_DOC_SCALAR, "the path of a .npy file"))
        return false;
    init->kind = GX_INIT_FILE;
    init->pos = doc->pos;
    init->path = gx_confine_path(r->graph, doc->text, doc->pos, r->list);
    return init->path != NULL;
}

static bool read_param(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    const char *name = gx_read_text_doc(r, doc, "the name of a parameter");

    init->pos = doc->pos;
    init->path = name ? gx_arena_text(r->graph->arena, name) : NULL;
    return init->path != NULL;
}

static bool read_pair(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    if (doc->n != 1) {
        gx_report(r->list, doc->pos, "expected one initialiser, found %zu keys", doc->n);
        return false;
    }
    const int kind = find_kind(r, doc->key[0], doc->key_pos[0]);
    const gx_doc *value = doc->item[0];

    if (kind < 0)
        return false;
    init->kind = (gx_init_kind)kind;
    switch (forms[kind].form) {
    case FORM_NUMBER:
        return gx_read_real_doc(r, value, &init->a);
    case FORM_NORMAL:
        return read_normal(r, value, init);
    case FORM_RANGE:
        return read_range(r, value, init);
    case FORM_FAN:
        return read_fan(r, value, init);
    case FORM_FILE:
        return read_path(r, value, init);
    case FORM_NAME:
        return read_param(r, value, init);
    default:
        gx_report(r->list, value->pos, "initialiser \"%s\" takes no value", doc->key[0]);
        return false;
    }
}

bool gx_read_init(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    *init = (gx_init){ .pos = doc->pos };
    if (doc->kind == GX_DOC_SCALAR)
        return read_word(r, doc, init);
    if (!gx_expect(r, doc, GX_DOC_MAP,
                   "an initialiser, such as he_normal or {constant: 0.5}"))
        return false;
    return read_pair(r, doc, init);
}

bool gx_read_init_path(gx_reader *r, const gx_doc *doc, gx_init *init)
{
    *init = (gx_init){ .pos = doc->pos };
    return read_path(r, doc, init);
}

bool gx_read_init_text(gx_graph *graph, const char *text, gx_init *init,
                       gx_diagnostics *list, gx_pos pos)
{
    gx_diagnostics *inner = gx_diagnostics_create();
    gx_reader r = { .graph = graph, .list = inner };
    const gx_doc *doc = inner ? gx_document_read_as(graph->arena, text, strlen(text),
                                                    "an initialiser", inner)
                              : NULL;
    const bool good = doc && gx_read_init(&r, doc, init);

    init->pos = pos;
    /* A place in the text of one initialiser says nothing to the reader of a file. */
    if (!good && inner && gx_diagnostics_count(inner) > 0)
        gx_report(list, pos, "initialiser \"%s\": %s", text,
                  gx_diagnostics_at(inner, 0).message);
    else if (!good)
        gx_report(list, pos, "initialiser \"%s\": out of host memory", text);
    gx_diagnostics_free(inner);
    return good;
}

void gx_put_init(gx_text *text, const gx_graph *graph, const gx_init *init)
{
    char a[GX_REAL_TEXT], b[GX_REAL_TEXT];
    const char *word = forms[init->kind].word;

    gx_real_text(init->a, a);
    gx_real_text(init->b, b);
    switch (forms[init->kind].form) {
    case FORM_NUMBER:
        gx_text_format(text, "{%s: %s}", word, a);
        return;
    case FORM_NORMAL:
        gx_text_format(text, "{%s: {mean: %s, std: %s}}", word, a, b);
        return;
    case FORM_RANGE:
        if (init->kind == GX_INIT_INTEGERS)
            gx_text_format(text, "{%s: [%lld, %lld]}", word, (long long)init->a,
                           (long long)init->b);
        else
            gx_text_format(text, "{%s: [%s, %s]}", word, a, b);
        return;
    case FORM_FAN:
        if (init->a > 0)
            gx_text_format(text, "{%s: {fan_in: %lld}}", word, (long long)init->a);
        else
            gx_text_put(text, word);
        return;
    case FORM_FILE:
        gx_text_put(text, "{file: ");
        gx_put_scalar(text, gx_relative_path(graph, init->path));
        gx_text_put(text, "}");
        return;
    case FORM_NAME:
        gx_text_format(text, "{%s: ", word);
        gx_put_scalar(text, init->path);
        gx_text_put(text, "}");
        return;
    default:
        gx_text_put(text, word);
    }
}
