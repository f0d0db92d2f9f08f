/* The keys and words of the format, and how single values are read. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *const gx_keys_model[] = { "gexec",   "name",     "dims",      "precision",
                                      "data",    "inputs",   "params",    "state",
                                      "ops",     "backward", "optimizer", "metrics",
                                      "outputs", NULL };
const char *const gx_keys_expanded[] = { "gexec",     "expanded", "name",   "dims",
                                         "precision", "rate",     "data",   "tensors",
                                         "ops",       "outputs",  "logged", NULL };
const char *const gx_keys_data[] = { "split",     "shuffle", "epochs",
                                     "drop_last", "stream",  NULL };
const char *const gx_keys_column[] = { "file", "scale", "shift", NULL };
const char *const gx_keys_input[] = { "shape", "dtype", "init", "from", NULL };
const char *const gx_keys_param[] = {
    "shape", "dtype", "init", "from", "trainable", NULL
};
const char *const gx_keys_state[] = { "shape", "dtype", "init", "from", NULL };
const char *const gx_keys_tensor[] = { "kind",    "dtype",       "shape",
                                       "init",    "trainable",   "fan_in",
                                       "fan_out", "index_limit", "index_ignored",
                                       NULL };
const char *const gx_keys_op[] = { "op", "name", "phase", NULL };
const char *const gx_keys_repeat[] = { "name", "count", "carry", "params", "ops", NULL };
const char *const gx_keys_optimizer[] = { "schedule", "clip_norm", "accumulate", "groups",
                                          "master",   "moments",   "loss_scale", NULL };
const char *const gx_keys_normal[] = { "mean", "std", NULL };
const char *const gx_keys_fan[] = { "fan_in", NULL };

const char *const gx_words_precision[] = { "f32", "tf32", "bf16", "f16", NULL };
const char *const gx_words_dtype[] = { "f32", "bf16", "f16", "i32", NULL };
const char *const gx_words_phase[] = { "forward", "backward", "optimizer", "step", NULL };
const char *const gx_words_kind[] = { "input", "param", "state", "data", NULL };
const char *const gx_words_expanded[] = { "train", "eval", NULL };

const gx_doc *gx_doc_get(const gx_doc *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->key[i], key) == 0)
            return map->item[i];
    }
    return NULL;
}

bool gx_expect(gx_reader *r, const gx_doc *doc, gx_doc_kind kind, const char *what)
{
    if (doc->kind == kind)
        return true;
    if (doc->kind == GX_DOC_SCALAR && doc->text[0])
        gx_report(r->list, doc->pos, "expected %s, found \"%s\"", what, doc->text);
    else
        gx_report(r->list, doc->pos, "expected %s, found %s", what, gx_doc_what(doc));
    return false;
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

static void put_list(gx_text *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gx_text_format(text, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", words[i]);
}

bool gx_check_keys(gx_reader *r, const gx_doc *map, const char *const *keys,
                   const char *where)
{
    const size_t n = count_words(keys);
    bool good = true;

    for (size_t i = 0; i < map->n; i++) {
        const char *near;
        size_t k = 0;

        while (k < n && strcmp(keys[k], map->key[i]) != 0)
            k++;
        if (k < n)
            continue;
        good = false;
        near = gx_nearest(map->key[i], keys, n);
        if (near) {
            gx_report(r->list, map->key_pos[i],
                      "unknown key \"%s\" in %s; did you mean \"%s\"?", map->key[i],
                      where, near);
        } else {
            gx_text all = { 0 };

            put_list(&all, keys, n);
            gx_report(r->list, map->key_pos[i], "unknown key \"%s\" in %s; expected %s",
                      map->key[i], where, all.failed ? "another" : all.bytes);
            free(all.bytes);
        }
    }
    return good;
}

void gx_report_unknown(gx_reader *r, gx_pos pos, const char *kind, const char *word,
                       const char *const *words, size_t n)
{
    const char *near = gx_nearest(word, words, n);
    gx_text all = { 0 };

    if (near) {
        gx_report(r->list, pos, "there is no %s \"%s\"; did you mean \"%s\"?", kind, word,
                  near);
        return;
    }
    put_list(&all, words, n);
    gx_report(r->list, pos, "there is no %s \"%s\"; expected %s", kind, word,
              all.failed || n == 0 ? "another" : all.bytes);
    free(all.bytes);
}

int gx_read_choice(gx_reader *r, const gx_doc *doc, const char *const *words,
                   const char *what)
{
    if (!gx_read_text_doc(r, doc, what))
        return -1;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], doc->text) == 0)
            return i;
    }
    gx_text all = { 0 };

    put_list(&all, words, count_words(words));
    gx_report(r->list, doc->pos, "%s \"%s\" is not known; expected %s", what, doc->text,
              all.failed ? "another" : all.bytes);
    free(all.bytes);
    return -1;
}

const char *gx_read_text_doc(gx_reader *r, const gx_doc *doc, const char *what)
{
    if (!gx_expect(r, doc, GX_DOC_SCALAR, what))
        return NULL;
    if (doc->text[0])
        return doc->text;
    gx_report(r->list, doc->pos, "expected %s, found nothing", what);
    return NULL;
}

bool gx_read_real_doc(gx_reader *r, const gx_doc *doc, double *value)
{
    if (!gx_expect(r, doc, GX_DOC_SCALAR, "a number"))
        return false;
    if (!gx_read_real(doc->text, value)) {
        gx_report(r->list, doc->pos,
                  "expected a decimal number such as 0.5 or 1e-4, found \"%s\"",
                  doc->text);
        return false;
    }
    if (gx_fits_f32(*value))
        return true;
    gx_report(r->list, doc->pos, "%s is out of f32's range", doc->text);
    return false;
}

bool gx_read_int_doc(gx_reader *r, const gx_doc *doc, int64_t *value)
{
    if (!gx_read_text_doc(r, doc, "an integer"))
        return false;
    return gx_eval_int(r->graph, doc->text, doc->pos, r->list, value);
}

bool gx_read_bool_doc(gx_reader *r, const gx_doc *doc, bool *value)
{
    if (!gx_expect(r, doc, GX_DOC_SCALAR, "true or false"))
        return false;
    if (gx_read_bool(doc->text, value))
        return true;
    gx_report(r->list, doc->pos, "expected true or false, found \"%s\"", doc->text);
    return false;
}

static bool check_elements(gx_reader *r, const gx_doc *doc, int rank, const int64_t *dim)
{
    int64_t count = 1;

    for (int i = 0; i < rank; i++) {
        if (dim[i] > GX_LIMIT_ELEMENTS || __builtin_mul_overflow(count, dim[i], &count) ||
            count > GX_LIMIT_ELEMENTS) {
            gx_report(
                r->list, doc->pos,
                "the shape has more than %lld elements (limit on elements of a tensor)",
                (long long)GX_LIMIT_ELEMENTS);
            return false;
        }
    }
    return true;
}

bool gx_read_shape_doc(gx_reader *r, const gx_doc *doc, int *rank,
                       int64_t dim[GX_MAX_RANK])
{
    bool good = true;

    if (!gx_expect(r, doc, GX_DOC_LIST, "a shape such as [batch, 64]"))
        return false;
    if (doc->n > GX_MAX_RANK) {
        gx_report(r->list, doc->pos, "a shape has at most %d sizes, found %zu",
                  GX_MAX_RANK, doc->n);
        return false;
    }
    *rank = (int)doc->n;
    for (size_t i = 0; i < doc->n; i++) {
        dim[i] = 0;
        if (!gx_read_int_doc(r, doc->item[i], &dim[i])) {
            good = false;
        } else if (dim[i] < 0) {
            gx_report(r->list, doc->item[i]->pos, "a size is 0 or more, \"%s\" is %lld",
                      doc->item[i]->text, (long long)dim[i]);
            good = false;
        }
    }
    return good && check_elements(r, doc, *rank, dim);
}

const char *gx_relative_path(const gx_graph *graph, const char *path)
{
    const size_t n = strlen(graph->folder);

    if (strncmp(path, graph->folder, n) == 0 && path[n] == '/')
        return path + n + 1;
    return path;
}
