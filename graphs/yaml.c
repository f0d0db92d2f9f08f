/* From libyaml's events to a document tree: the only file that knows libyaml. */
#include <yaml.h>

#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "graph_model.h"
#include "name_map.h"

/* A list or map that is not closed yet. */
typedef struct level {
    gx_doc *doc;
    size_t first; /* of its children on the pile */
} level;

/* A child that waits on the pile until its list or map is closed. */
typedef struct child {
    const char *key; /* NULL in a list */
    gx_pos key_pos;
    gx_doc *doc;
} child;

typedef struct reader {
    yaml_parser_t parser;
    gx_arena *arena;
    gx_diagnostics *list;
    const char *text;
    size_t length;
    level levels[GX_LIMIT_DEPTH];
    int depth;
    child *pile;
    size_t n_pile, pile_capacity;
    gx_name_map *anchors; /* name -> index in `anchored` */
    gx_doc **anchored;
    size_t n_anchored, anchored_capacity;
    int64_t n_nodes;
    gx_doc *root;
    /* the key that waits for its value, by level */
    const char *key[GX_LIMIT_DEPTH];
    gx_pos key_pos[GX_LIMIT_DEPTH];
} reader;

typedef enum outcome { GOING_ON, DONE, FAILED } outcome;

static gx_pos pos_of(yaml_mark_t mark)
{
    return (gx_pos){ (int32_t)mark.line + 1, (int32_t)mark.column + 1 };
}

const char *gx_doc_what(const gx_doc *doc)
{
    switch (doc->kind) {
    case GX_DOC_LIST:
        return "a list";
    case GX_DOC_MAP:
        return "a map";
    default:
        return doc->text[0] || doc->quoted ? "text" : "nothing";
    }
}

/* --- mistakes --- */

static outcome report(reader *r, gx_pos pos, const char *message)
{
    gx_report(r->list, pos, "%s", message);
    return FAILED;
}

/* True when the line has a tab among the blanks that it starts with. */
static bool has_tab_indent(const reader *r, size_t line)
{
    const char *c = r->text;
    const char *end = r->text + r->length;

    while (line-- > 0) {
        c = memchr(c, '\n', (size_t)(end - c));
        if (!c)
            return false;
        c++;
    }
    for (; c < end && (*c == ' ' || *c == '\t'); c++) {
        if (*c == '\t')
            return true;
    }
    return false;
}

/* Where a byte stands; for mistakes that libyaml places by offset alone. */
static gx_pos pos_of_offset(const reader *r, size_t offset)
{
    gx_pos pos = { 1, 1 };

    for (size_t i = 0; i < offset && i < r->length; i++) {
        if (r->text[i] == '\n')
            pos = (gx_pos){ pos.line + 1, 1 };
        else if (((unsigned char)r->text[i] & 0xc0) != 0x80)
            pos.column++;
    }
    return pos;
}

static outcome report_syntax(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    const gx_pos pos = pos_of(p->problem_mark);

    if (p->error == YAML_MEMORY_ERROR)
        return FAILED;
    if (p->error == YAML_READER_ERROR)
        gx_report(r->list, pos_of_offset(r, p->problem_offset),
                  "not YAML: %s (byte %zu of the file)", problem, p->problem_offset);
    else if (has_tab_indent(r, p->problem_mark.line))
        gx_report(r->list, pos, "tab used as indentation: YAML allows only spaces there");
    else if (p->context && p->context_mark.line != p->problem_mark.line)
        gx_report(r->list, pos, "not YAML: %s %s, which starts on line %zu", problem,
                  p->context, p->context_mark.line + 1);
    else
        gx_report(r->list, pos, "not YAML: %s%s%s", problem, p->context ? " " : "",
                  p->context ? p->context : "");
    return FAILED;
}

static outcome report_too_deep(reader *r, gx_pos pos)
{
    gx_report(r->list, pos, "nested deeper than %d levels (limit on depth)",
              GX_LIMIT_DEPTH);
    return FAILED;
}

/* --- the tree --- */

static gx_doc *new_doc(reader *r, gx_doc_kind kind, yaml_mark_t mark)
{
    gx_doc *doc = gx_arena_alloc(r->arena, sizeof *doc);

    if (doc) {
        doc->kind = kind;
        doc->pos = pos_of(mark);
        doc->expanded = 1;
    }
    return doc;
}

static void *grow(void *array, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity)
        return array;
    const size_t more = *capacity ? *capacity * 2 : 64;
    void *larger = realloc(array, more * size);

    if (larger)
        *capacity = more;
    return larger;
}

static bool push_child(reader *r, child c)
{
    child *pile = grow(r->pile, &r->pile_capacity, r->n_pile, sizeof *pile);

    if (!pile)
        return false;
    r->pile = pile;
    pile[r->n_pile++] = c;
    return true;
}

static outcome take_key(reader *r, const gx_doc *doc)
{
    if (doc->kind != GX_DOC_SCALAR)
        return report(r, doc->pos, "a key must be a word, not a list or a map");
    if (!doc->quoted && strcmp(doc->text, "<<") == 0)
        return report(r, doc->pos,
                      "merge keys (<<) are not part of this format: write the "
                      "keys out");
    if (doc->text[0] == '\0')
        return report(r, doc->pos, "a key is missing");
    r->key[r->depth - 1] = doc->text;
    r->key_pos[r->depth - 1] = doc->pos;
    return GOING_ON;
}

/* Puts a whole node where it belongs: the root, a key, a value, an item. */
static outcome attach(reader *r, gx_doc *doc)
{
    child c = { .doc = doc };

    if (r->depth == 0) {
        r->root = doc;
        return GOING_ON;
    }
    level *top = &r->levels[r->depth - 1];

    if (top->doc->kind == GX_DOC_MAP) {
        if (!r->key[r->depth - 1])
            return take_key(r, doc);
        c.key = r->key[r->depth - 1];
        c.key_pos = r->key_pos[r->depth - 1];
        r->key[r->depth - 1] = NULL;
    }
    top->doc->expanded += doc->expanded;
    if (top->doc->height < doc->height + 1)
        top->doc->height = doc->height + 1;
    return push_child(r, c) ? GOING_ON : FAILED;
}

/* An anchor names its node once that is whole: an alias inside it would be a cycle. */
static outcome anchor(reader *r, const yaml_char_t *name, gx_doc *doc)
{
    if (!name)
        return GOING_ON;
    const char *copy = gx_arena_text(r->arena, (const char *)name);
    gx_doc **anchored =
        grow(r->anchored, &r->anchored_capacity, r->n_anchored, sizeof *anchored);

    if (anchored)
        r->anchored = anchored;
    if (!copy || !anchored || !gx_name_map_set(r->anchors, copy, (int32_t)r->n_anchored))
        return FAILED;
    r->anchored[r->n_anchored++] = doc;
    return GOING_ON;
}

static outcome count(reader *r, int64_t nodes, gx_pos pos)
{
    r->n_nodes += nodes;
    if (r->n_nodes <= GX_LIMIT_DOCUMENT_NODES)
        return GOING_ON;
    gx_report(r->list, pos,
              "too many nodes after alias expansion: more than %d (limit on "
              "document nodes)",
              GX_LIMIT_DOCUMENT_NODES);
    return FAILED;
}

/* --- events --- */

static bool has_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static outcome on_scalar(reader *r, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    gx_doc *doc = new_doc(r, GX_DOC_SCALAR, event->start_mark);

    if (!doc)
        return FAILED;
    if (strlen(value) != event->data.scalar.length)
        return report(r, doc->pos, "a text must not hold the character NUL");
    doc->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    doc->text = gx_arena_text(r->arena, value);
    if (!doc->text || anchor(r, event->data.scalar.anchor, doc) == FAILED)
        return FAILED;
    if (count(r, 1, doc->pos) == FAILED)
        return FAILED;
    return attach(r, doc);
}

static outcome on_alias(reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const gx_pos pos = pos_of(event->start_mark);
    const int32_t index = gx_name_map_get(r->anchors, name);

    if (index < 0) {
        gx_report(r->list, pos, "alias *%s: no anchor &%s stands, complete, before it",
                  name, name);
        return FAILED;
    }
    gx_doc *doc = r->anchored[index];

    if (r->depth + doc->height > GX_LIMIT_DEPTH)
        return report_too_deep(r, pos);
    if (count(r, doc->expanded, pos) == FAILED)
        return FAILED;
    return attach(r, doc);
}

static outcome on_start(reader *r, const yaml_event_t *event, gx_doc_kind kind)
{
    const gx_pos pos = pos_of(event->start_mark);

    if (r->depth == GX_LIMIT_DEPTH)
        return report_too_deep(r, pos);
    if (count(r, 1, pos) == FAILED)
        return FAILED;
    /* As a key it would be refused at its end; its children must not take its place. */
    if (r->depth > 0 && r->levels[r->depth - 1].doc->kind == GX_DOC_MAP &&
        !r->key[r->depth - 1])
        return report(r, pos, "a key must be a word, not a list or a map");
    gx_doc *doc = new_doc(r, kind, event->start_mark);

    if (!doc)
        return FAILED;
    const yaml_char_t *name = kind == GX_DOC_LIST ? event->data.sequence_start.anchor
                                                  : event->data.mapping_start.anchor;

    /* The name is kept in `text` until the end, where the anchor becomes known. */
    if (name && !(doc->text = gx_arena_text(r->arena, (const char *)name)))
        return FAILED;
    doc->height = 1;
    r->levels[r->depth] = (level){ doc, r->n_pile };
    r->key[r->depth] = NULL;
    r->depth++;
    return GOING_ON;
}

static outcome check_keys(reader *r, const gx_doc *map)
{
    enum { FEW = 16 };
    gx_name_map *seen = NULL;
    outcome out = GOING_ON;

    if (map->n > FEW && !(seen = gx_name_map_create()))
        return FAILED;
    for (size_t i = 0; i < map->n && out == GOING_ON; i++) {
        int32_t first = -1;

        if (seen) {
            first = gx_name_map_get(seen, map->key[i]);
            if (first < 0 && !gx_name_map_set(seen, map->key[i], (int32_t)i))
                out = FAILED;
        } else {
            for (size_t j = 0; j < i && first < 0; j++) {
                if (strcmp(map->key[j], map->key[i]) == 0)
                    first = (int32_t)j;
            }
        }
        if (first >= 0)
            gx_report(r->list, map->key_pos[i],
                      "key \"%s\" stands twice, on line %d and on line %d", map->key[i],
                      (int)map->key_pos[first].line, (int)map->key_pos[i].line);
    }
    gx_name_map_free(seen);
    return out;
}

static outcome on_end(reader *r)
{
    const level top = r->levels[--r->depth];
    gx_doc *doc = top.doc;
    const char *name = doc->text;
    const bool is_map = doc->kind == GX_DOC_MAP;

    doc->text = NULL;
    doc->n = r->n_pile - top.first;
    doc->item = gx_arena_alloc(r->arena, (doc->n + 1) * sizeof *doc->item);
    if (is_map) {
        doc->key = gx_arena_alloc(r->arena, (doc->n + 1) * sizeof *doc->key);
        doc->key_pos = gx_arena_alloc(r->arena, (doc->n + 1) * sizeof *doc->key_pos);
    }
    if (gx_arena_failed(r->arena))
        return FAILED;
    for (size_t i = 0; i < doc->n; i++) {
        const child *c = &r->pile[top.first + i];

        doc->item[i] = c->doc;
        if (is_map) {
            doc->key[i] = c->key;
            doc->key_pos[i] = c->key_pos;
        }
    }
    r->n_pile = top.first;
    if (is_map && check_keys(r, doc) == FAILED)
        return FAILED;
    if (anchor(r, (const yaml_char_t *)name, doc) == FAILED)
        return FAILED;
    return attach(r, doc);
}

static outcome on_event(reader *r, const yaml_event_t *event)
{
    if (has_tag(event))
        return report(r, pos_of(event->start_mark),
                      "tags (!) are not part of this format");
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->root)
            return report(r, pos_of(event->start_mark),
                          "a second document starts here: one is expected");
        return GOING_ON;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_ALIAS_EVENT:
        return on_alias(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(r, event, GX_DOC_LIST);
    case YAML_MAPPING_START_EVENT:
        return on_start(r, event, GX_DOC_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(r);
    case YAML_STREAM_END_EVENT:
        return DONE;
    default:
        return GOING_ON;
    }
}

static outcome read_events(reader *r)
{
    outcome out = GOING_ON;

    while (out == GOING_ON) {
        yaml_event_t event;

        if (!yaml_parser_parse(&r->parser, &event))
            return report_syntax(r);
        out = on_event(r, &event);
        yaml_event_delete(&event);
    }
    return out;
}

const gx_doc *gx_document_read_as(gx_arena *arena, const char *text, size_t length,
                                  const char *expected, gx_diagnostics *list)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors start a file so */
    reader r = { .arena = arena, .list = list };
    outcome out = FAILED;

    if (length >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0) {
        text += sizeof mark - 1;
        length -= sizeof mark - 1;
    }
    r.text = text;
    r.length = length;
    if (length > GX_LIMIT_FILE_BYTES) {
        gx_report(list, (gx_pos){ 0 }, "longer than %d MiB (limit on file size)",
                  GX_LIMIT_FILE_BYTES >> 20);
        return NULL;
    }
    r.anchors = gx_name_map_create();
    if (r.anchors && yaml_parser_initialize(&r.parser)) {
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
        out = read_events(&r);
        yaml_parser_delete(&r.parser);
    }
    gx_name_map_free(r.anchors);
    free(r.anchored);
    free(r.pile);
    if (out == DONE && !r.root)
        gx_report(list, (gx_pos){ 1, 1 }, "the file is empty: expected %s", expected);
    return out == DONE ? r.root : NULL;
}

const gx_doc *gx_document_read(gx_arena *arena, const char *text, size_t length,
                               gx_diagnostics *list)
{
    return gx_document_read_as(arena, text, length,
                               "a model, which starts with \"gexec: 1\"", list);
}
