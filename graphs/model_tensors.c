/* The sections of a model that declare tensors: inputs, params, state. */
#include <math.h>
#include <string.h>

#include "init.h"
#include "npy.h"
#include "reader.h"
#include "scope.h"

static const struct {
    const char *section;
    const char *what; /* one of them, in messages */
    const char *const *keys;
    gx_value_kind kind;
} sections[] = {
    { "inputs", "input", gx_keys_input, GX_VALUE_INPUT },
    { "params", "parameter", gx_keys_param, GX_VALUE_PARAM },
    { "state", "state", gx_keys_state, GX_VALUE_STATE },
};

static gx_dtype default_dtype(const gx_graph *graph)
{
    return graph->precision == GX_PRECISION_BF16  ? GX_BF16
           : graph->precision == GX_PRECISION_F16 ? GX_F16
                                                  : GX_F32;
}

static bool read_dtype(gx_reader *r, const gx_doc *doc, gx_dtype *dtype)
{
    /* as gx_words_dtype */
    static const gx_dtype types[] = { GX_F32, GX_BF16, GX_F16, GX_I32 };
    const gx_doc *written = gx_doc_get(doc, "dtype");

    *dtype = default_dtype(r->graph);
    if (!written)
        return true;
    const int i = gx_read_choice(r, written, gx_words_dtype, "dtype");

    if (i >= 0)
        *dtype = types[i];
    return i >= 0;
}

static bool needs_two_sizes(gx_init_kind kind)
{
    return kind == GX_INIT_HE_NORMAL || kind == GX_INIT_HE_UNIFORM ||
           kind == GX_INIT_XAVIER_NORMAL || kind == GX_INIT_XAVIER_UNIFORM;
}

static bool makes_integers(const gx_init *init)
{
    switch (init->kind) {
    case GX_INIT_ZEROS:
    case GX_INIT_ONES:
    case GX_INIT_INTEGERS:
    case GX_INIT_FILE:
        return true;
    case GX_INIT_CONSTANT:
        return init->a == nearbyint(init->a) && fabs(init->a) <= INT32_MAX;
    default:
        return false;
    }
}

/* The file is there, and holds what the tensor is declared to be. */
static void check_file(gx_reader *r, const gx_value *value)
{
    const char *written = gx_relative_path(r->graph, value->init.path);
    const gx_pos pos = value->init.pos;
    char is[120], should[120];
    gx_error err;
    gx_npy npy;

    gx_error_clear(&err);
    if (gx_npy_head(value->init.path, &npy, &err) != GX_OK) {
        gx_report(r->list, pos, "%s", err.message);
        return;
    }
    if (npy.rank != value->rank ||
        memcmp(npy.dim, value->dim, (size_t)npy.rank * sizeof npy.dim[0]) != 0)
        gx_report(r->list, pos, "%s has shape %s, \"%s\" has %s", written,
                  gx_shape_text(npy.rank, npy.dim, is, sizeof is), value->name,
                  gx_shape_text(value->rank, value->dim, should, sizeof should));
    else if (npy.type == 'f' && value->dtype == GX_I32)
        gx_report(r->list, pos, "%s holds floats, \"%s\" is i32", written, value->name);
}

static void check_init(gx_reader *r, const gx_value *value)
{
    const gx_init *init = &value->init;

    if (value->dtype == GX_I32 && !makes_integers(init))
        gx_report(r->list, init->pos, "initialiser \"%s\" does not give i32 values",
                  gx_init_word(init->kind));
    else if (needs_two_sizes(init->kind) && value->rank < 2)
        gx_report(
            r->list, init->pos,
            "initialiser \"%s\" is for weights: it needs a shape of two sizes or more",
            gx_init_word(init->kind));
    else if (init->kind == GX_INIT_FILE)
        check_file(r, value);
}

/* False after a report. */
static bool read_init(gx_reader *r, const gx_doc *doc, gx_value *value)
{
    const gx_doc *written = gx_doc_get(doc, "init");
    const gx_doc *from = r->graph->expanded ? NULL : gx_doc_get(doc, "from");

    if (written && from) {
        gx_report(r->list, from->pos,
                  "\"init\" and \"from\" stand both: one file or one "
                  "initialiser is meant");
        return false;
    }
    if (written || from) {
        value->has_init = written ? gx_read_init(r, written, &value->init)
                                  : gx_read_init_path(r, from, &value->init);
        return value->has_init;
    }
    if (value->kind == GX_VALUE_PARAM && value->rank >= 2 && !r->graph->expanded) {
        gx_report(
            r->list, doc->pos,
            "parameter \"%s\" has no \"init\"; one such as he_normal is needed, or zeros "
            "if zeros are meant",
            value->name);
        return false;
    }
    if (value->kind == GX_VALUE_PARAM || value->kind == GX_VALUE_STATE) {
        value->has_init = true;
        value->init = (gx_init){ .kind = GX_INIT_ZEROS, .pos = doc->pos };
    }
    return true;
}

static void read_flag(gx_reader *r, const gx_doc *doc, gx_value *value)
{
    const gx_doc *trainable = gx_doc_get(doc, "trainable");
    bool trained = true;

    if (trainable && gx_read_bool_doc(r, trainable, &trained))
        value->frozen = !trained;
}

/* What an expanded model says beside: found by the ops when it was made. */
static void read_found(gx_reader *r, const gx_doc *doc, gx_value *value)
{
    const struct {
        const char *key;
        int64_t *to;
    } found[] = {
        { "fan_in", &value->fan_in },
        { "fan_out", &value->fan_out },
        { "index_limit", &value->index_limit },
    };

    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        const gx_doc *number = gx_doc_get(doc, found[i].key);

        if (number && gx_read_int_doc(r, number, found[i].to) && *found[i].to < 0)
            gx_report(r->list, number->pos, "%s is 0 or more", found[i].key);
    }
    const gx_doc *ignored = gx_doc_get(doc, "index_ignored");

    if (ignored)
        gx_read_int_doc(r, ignored, &value->index_ignored);
}

int32_t gx_read_tensor(gx_reader *r, const char *name, gx_pos pos, const gx_doc *doc,
                       gx_value_kind kind)
{
    const gx_doc *shape = gx_doc_get(doc, "shape");
    int64_t dim[GX_MAX_RANK] = { 0 };
    gx_dtype dtype;
    int rank = 0;
    bool good = read_dtype(r, doc, &dtype);

    if (!shape)
        gx_report(r->list, doc->pos, "\"%s\" has no \"shape\"", name);
    good = shape && gx_read_shape_doc(r, shape, &rank, dim) && good;
    /* It stands even where its shape is not known, so that its readers are not reported.
     */
    const int32_t id = gx_graph_add_value(r->graph, name, kind, dtype, good ? rank : -1,
                                          dim, pos, r->list);

    if (id < 0)
        return -1;
    gx_value *value = &r->graph->values[id];

    good = read_init(r, doc, value) && good;
    read_flag(r, doc, value);
    if (r->graph->expanded)
        read_found(r, doc, value);
    if (good && value->has_init)
        check_init(r, value);
    return id;
}

static void read_one(gx_reader *r, const gx_doc *map, size_t i, gx_value_kind kind)
{
    const char *name = gx_scope_claim(r, r->top, map->key[i], map->key_pos[i]);

    if (name)
        gx_read_tensor(r, name, map->key_pos[i], map->item[i], kind);
}

static void read_expanded(gx_reader *r, const gx_doc *map)
{
    static const gx_value_kind kinds[] = { GX_VALUE_INPUT, GX_VALUE_PARAM, GX_VALUE_STATE,
                                           GX_VALUE_DATA }; /* as gx_words_kind */

    for (size_t i = 0; i < map->n; i++) {
        const gx_doc *doc = map->item[i];

        if (!gx_expect(r, doc, GX_DOC_MAP, "a map with kind, dtype and shape"))
            continue;
        gx_check_keys(r, doc, gx_keys_tensor, "tensor");
        const gx_doc *written = gx_doc_get(doc, "kind");

        if (!written) {
            gx_report(r->list, doc->pos, "\"%s\" has no \"kind\"", map->key[i]);
            continue;
        }
        const int kind = gx_read_choice(r, written, gx_words_kind, "kind");

        if (kind >= 0)
            read_one(r, map, i, kinds[kind]);
    }
}

void gx_read_tensors(gx_reader *r, const gx_doc *model)
{
    const gx_doc *tensors = gx_doc_get(model, "tensors");

    if (r->graph->expanded) {
        if (tensors && gx_expect(r, tensors, GX_DOC_MAP, "a map of tensors"))
            read_expanded(r, tensors);
        return;
    }
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        const gx_doc *map = gx_doc_get(model, sections[s].section);

        if (!map || !gx_expect(r, map, GX_DOC_MAP, "a map of tensors by name"))
            continue;
        gx_use_batch_rows(r, sections[s].kind == GX_VALUE_INPUT);
        for (size_t i = 0; i < map->n && !r->stopped; i++) {
            if (!gx_expect(r, map->item[i], GX_DOC_MAP,
                           "a map such as {shape: [64, 10]}"))
                continue;
            gx_check_keys(r, map->item[i], sections[s].keys, sections[s].what);
            read_one(r, map, i, sections[s].kind);
        }
    }
}
