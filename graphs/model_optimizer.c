/* The section `optimizer`: its own map, and what stands beside it, as fields. */
#include <string.h>

#include "reader.h"

typedef struct fields {
    gx_reader *r;
    gx_section *section;
    size_t capacity;
} fields;

static bool is_beside(const char *key)
{
    for (size_t i = 0; gx_keys_optimizer[i]; i++) {
        if (strcmp(gx_keys_optimizer[i], key) == 0)
            return true;
    }
    return false;
}

/* Values in a document, which are as many as fields may come of it. */
static size_t count_values(const gx_doc *doc)
{
    size_t n = 1;

    for (size_t i = 0; doc->kind != GX_DOC_SCALAR && i < doc->n; i++)
        n += count_values(doc->item[i]);
    return n;
}

static void put_text(fields *f, const char *key, gx_pos key_pos, const char *text,
                     gx_pos pos)
{
    gx_arena *arena = f->r->graph->arena;
    gx_section *section = f->section;
    const gx_field_value field = { gx_arena_text(arena, key), gx_arena_text(arena, text),
                                   key_pos, pos };

    if (field.key && field.text && (size_t)section->n_fields < f->capacity)
        section->fields[section->n_fields++] = field;
}

static void put(fields *f, const char *key, gx_pos key_pos, const gx_doc *doc,
                const char *what)
{
    const char *text = gx_read_text_doc(f->r, doc, what);

    if (text && key)
        put_text(f, key, key_pos, text, doc->pos);
}

/* A word, or {WORD: {SETTING: ...}}: fields KEY and KEY.SETTING. */
static void read_choice(fields *f, const char *key, const gx_doc *doc, gx_pos key_pos,
                        const char *like)
{
    gx_reader *r = f->r;

    if (doc->kind == GX_DOC_SCALAR) {
        put(f, key, key_pos, doc, like);
        return;
    }
    if (!gx_expect(r, doc, GX_DOC_MAP, like))
        return;
    if (doc->n != 1) {
        gx_report(r->list, doc->pos, "expected %s, found %zu keys", like, doc->n);
        return;
    }
    put_text(f, key, key_pos, doc->key[0], doc->key_pos[0]);

    const gx_doc *settings = doc->item[0];

    if (!gx_expect(r, settings, GX_DOC_MAP, "a map such as {steps: 1000}"))
        return;
    for (size_t i = 0; i < settings->n; i++)
        put(f, gx_arena_format(r->graph->arena, "%s.%s", key, settings->key[i]),
            settings->key_pos[i], settings->item[i], "a value");
}

static void read_patterns(fields *f, size_t group, const gx_doc *doc, gx_pos key_pos)
{
    gx_arena *arena = f->r->graph->arena;

    if (doc->kind == GX_DOC_SCALAR) {
        put(f, gx_arena_format(arena, "groups.%zu.params.0", group), key_pos, doc,
            "the name of a parameter");
        return;
    }
    if (!gx_expect(f->r, doc, GX_DOC_LIST, "a list of parameters, as in [b1, \"*.b\"]"))
        return;
    if (doc->n == 0)
        gx_report(f->r->list, doc->pos, "a group of no parameters");
    for (size_t i = 0; i < doc->n; i++)
        put(f, gx_arena_format(arena, "groups.%zu.params.%zu", group, i),
            doc->item[i]->pos, doc->item[i], "the name of a parameter");
}

static void read_group(fields *f, size_t group, const gx_doc *doc)
{
    gx_reader *r = f->r;

    if (!gx_expect(r, doc, GX_DOC_MAP, "a map such as {params: [b1], weight_decay: 0}"))
        return;
    if (!gx_doc_get(doc, "params"))
        gx_report(r->list, doc->pos, "the group lacks \"params\": a list of parameters");
    for (size_t i = 0; i < doc->n; i++) {
        if (strcmp(doc->key[i], "params") == 0)
            read_patterns(f, group, doc->item[i], doc->key_pos[i]);
        else
            put(f, gx_arena_format(r->graph->arena, "groups.%zu.%s", group, doc->key[i]),
                doc->key_pos[i], doc->item[i], "a value");
    }
}

static void read_groups(fields *f, const gx_doc *doc)
{
    if (!gx_expect(f->r, doc, GX_DOC_LIST,
                   "a list of groups, as in [{params: [b1], weight_decay: 0}]"))
        return;
    for (size_t i = 0; i < doc->n; i++)
        read_group(f, i, doc->item[i]);
}

static void read_beside(fields *f, const gx_doc *doc)
{
    for (size_t i = 0; i < doc->n; i++) {
        const char *key = doc->key[i];

        if (!is_beside(key))
            continue;
        if (strcmp(key, "schedule") == 0)
            read_choice(f, key, doc->item[i], doc->key_pos[i],
                        "a schedule, as in {cosine: {steps: 1000}}");
        else if (strcmp(key, "loss_scale") == 0)
            read_choice(f, key, doc->item[i], doc->key_pos[i],
                        "a number, or {dynamic: {initial: 65536}}");
        else if (strcmp(key, "groups") == 0)
            read_groups(f, doc->item[i]);
        else
            put(f, key, doc->key_pos[i], doc->item[i], "a value");
    }
}

/* The key that names the optimizer, or -1 after a report. */
static int find_optimizer(gx_reader *r, const gx_doc *doc)
{
    size_t n = 0, n_beside = 0;
    int found = -1;

    while (gx_keys_optimizer[n_beside])
        n_beside++;
    for (size_t i = 0; i < doc->n; i++) {
        if (is_beside(doc->key[i]))
            continue;
        n++;
        found = (int)i;
    }
    if (n == 1)
        return found;
    for (size_t i = 0; n > 1 && i < doc->n; i++) {
        const char *near = gx_nearest(doc->key[i], gx_keys_optimizer, n_beside);

        if (near && !is_beside(doc->key[i])) {
            gx_report(r->list, doc->key_pos[i],
                      "unknown key \"%s\" in optimizer; did you mean \"%s\"?",
                      doc->key[i], near);
            return -1;
        }
    }
    gx_report(r->list, doc->pos,
              "expected one optimizer, as in {sgd: {lr: 0.1}}, found %zu keys", n);
    return -1;
}

static bool check_inside(gx_reader *r, const gx_doc *own, const char *optimizer)
{
    bool good = true;

    for (size_t i = 0; i < own->n; i++) {
        if (!is_beside(own->key[i]))
            continue;
        gx_report(r->list, own->key_pos[i], "\"%s\" stands beside \"%s\", not in it",
                  own->key[i], optimizer);
        good = false;
    }
    return good;
}

void gx_read_optimizer(gx_reader *r, const gx_doc *doc)
{
    gx_section *section = &r->graph->optimizer;
    gx_section own = { .op_name = NULL };

    if (!doc || !gx_expect(r, doc, GX_DOC_MAP, "an optimizer, as in {sgd: {lr: 0.1}}"))
        return;
    const int at = find_optimizer(r, doc);

    if (at < 0 || !gx_expect(r, doc->item[at], GX_DOC_MAP, "a map such as {lr: 0.1}"))
        return;
    if (!check_inside(r, doc->item[at], doc->key[at]))
        return;
    own.op_name = gx_arena_text(r->graph->arena, doc->key[at]);
    gx_read_section(r, doc->item[at], &own);

    fields f = { r, section, (size_t)own.n_fields + count_values(doc) };
    gx_field_value *all = gx_arena_alloc(r->graph->arena, (f.capacity + 1) * sizeof *all);

    if (!all || !own.fields)
        return;
    memcpy(all, own.fields, (size_t)own.n_fields * sizeof *all);
    *section = (gx_section){ .name = own.op_name,
                             .op_name = own.op_name,
                             .fields = all,
                             .n_fields = own.n_fields,
                             .pos = doc->key_pos[at] };
    read_beside(&f, doc);
}
