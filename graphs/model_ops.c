/* The section `ops`: unrolled, with qualified names, as flat nodes. */
#include <string.h>

#include "reader.h"
#include "scope.h"

enum { MAX_FIELDS = 64 };

/* An op on its way to be a node. Fields that are too many are reported, not kept. */
typedef struct op_text {
    const char *op;
    gx_field_value fields[MAX_FIELDS];
    int n_fields;
} op_text;

static void read_list(gx_reader *r, gx_scope *scope, const gx_doc *list);

static void report_limit(gx_reader *r, gx_pos pos)
{
    if (!r->stopped)
        gx_report(r->list, pos,
                  "more than %d ops, tensors or turns of a repeat (limit on ops)",
                  GX_LIMIT_OPS);
    r->stopped = true;
}

static bool within_limit(gx_reader *r, gx_pos pos)
{
    if (r->graph->n_nodes <= GX_LIMIT_OPS && r->graph->n_values <= GX_LIMIT_OPS &&
        r->n_turns <= GX_LIMIT_OPS)
        return true;
    report_limit(r, pos);
    return false;
}

/* --- fields --- */

static void add_field(gx_reader *r, op_text *op, const char *key, gx_pos key_pos,
                      const gx_doc *doc)
{
    if (!gx_read_text_doc(r, doc, "a value"))
        return;
    for (int i = 0; i < op->n_fields; i++) {
        if (strcmp(op->fields[i].key, key) == 0) {
            gx_report(r->list, key_pos,
                      "field \"%s\" stands twice, on line %d and on line %d", key,
                      (int)op->fields[i].key_pos.line, (int)key_pos.line);
            return;
        }
    }
    if (op->n_fields == MAX_FIELDS) {
        gx_report(r->list, key_pos, "an op has at most %d fields", MAX_FIELDS);
        return;
    }
    op->fields[op->n_fields++] = (gx_field_value){ key, doc->text, key_pos, doc->pos };
}

/* Maps inside become dotted keys, lists numbered ones. As deep as the document. */
static void add_fields(gx_reader *r, op_text *op, const char *key, gx_pos key_pos,
                       const gx_doc *doc)
{
    for (size_t i = 0; i < doc->n && doc->kind != GX_DOC_SCALAR; i++) {
        const bool is_map = doc->kind == GX_DOC_MAP;
        const char *inner =
            is_map ? gx_arena_format(r->graph->arena, "%s.%s", key, doc->key[i])
                   : gx_arena_format(r->graph->arena, "%s.%zu", key, i);

        if (!inner)
            return;
        add_fields(r, op, inner, is_map ? doc->key_pos[i] : doc->item[i]->pos,
                   doc->item[i]);
    }
    if (doc->kind == GX_DOC_SCALAR)
        add_field(r, op, key, key_pos, doc);
}

static bool is_op_key(const gx_reader *r, const char *key)
{
    for (size_t i = 0; gx_keys_op[i]; i++) {
        if (strcmp(gx_keys_op[i], key) == 0)
            return true;
    }
    return r->graph->expanded && strcmp(key, "origin") == 0;
}

static gx_field_value *find_field(op_text *op, const char *key)
{
    for (int i = 0; i < op->n_fields; i++) {
        if (strcmp(op->fields[i].key, key) == 0)
            return &op->fields[i];
    }
    return NULL;
}

static bool field_kind(const gx_reader *r, const op_text *op, const char *key,
                       gx_field_kind *kind)
{
    return r->catalogue && r->catalogue->field_kind(op->op, key, kind);
}

/* Names of tensors that are read get the meaning that they have here. */
static void resolve_inputs(gx_reader *r, const gx_scope *scope, op_text *op)
{
    for (int i = 0; i < op->n_fields; i++) {
        gx_field_value *field = &op->fields[i];
        gx_field_kind kind;

        if (field_kind(r, op, field->key, &kind) &&
            (kind == GX_FIELD_IN || kind == GX_FIELD_INOUT))
            field->text = gx_scope_find(r, scope, field->text);
    }
}

/* --- one op --- */

/* The op's own name as written: `name`, else what its default output is called. */
static const char *own_name(gx_reader *r, const gx_doc *doc, op_text *op, gx_pos *pos)
{
    const gx_doc *name = gx_doc_get(doc, "name");
    const char *key = r->catalogue ? r->catalogue->default_output(op->op) : NULL;
    const gx_field_value *out = find_field(op, key ? key : "out");

    if (name) {
        *pos = name->pos;
        return gx_read_text_doc(r, name, "a name");
    }
    if (out) {
        *pos = out->pos;
        return out->text;
    }
    gx_report(r->list, doc->pos,
              "op \"%s\" has no name: give it \"name\", or \"%s\" with the name of what "
              "it makes",
              op->op, key ? key : "out");
    return NULL;
}

/* Outputs are claimed and qualified; the default one is written in where it is not. */
static void claim_outputs(gx_reader *r, gx_scope *scope, op_text *op, const char *local,
                          const char *name, gx_pos pos)
{
    const char *key = r->catalogue ? r->catalogue->default_output(op->op) : NULL;

    if (key && !find_field(op, key) && op->n_fields < MAX_FIELDS)
        op->fields[op->n_fields++] = (gx_field_value){ key, local, pos, pos };
    for (int i = 0; i < op->n_fields; i++) {
        gx_field_value *field = &op->fields[i];
        const char *written = field->text;
        gx_field_kind kind;

        if (!field_kind(r, op, field->key, &kind) || kind != GX_FIELD_OUT)
            continue;
        const char *full = strcmp(written, local) == 0
                               ? name
                               : gx_scope_claim(r, scope, written, field->pos);

        if (full) {
            gx_scope_made(scope, written, full);
            field->text = full;
        }
    }
}

/* An expanded model names fed inputs as outputs of what gathers them: they stand already,
 * and everything is qualified. */
static void claim_expanded_outputs(gx_reader *r, op_text *op)
{
    for (int i = 0; i < op->n_fields; i++) {
        const gx_field_value *field = &op->fields[i];
        gx_field_kind kind;

        if (field_kind(r, op, field->key, &kind) && kind == GX_FIELD_OUT &&
            !gx_scope_has(r, r->top, field->text))
            gx_scope_claim(r, r->top, field->text, field->pos);
    }
}

static void append(gx_reader *r, const gx_doc *doc, const op_text *op, const char *name,
                   gx_pos pos)
{
    const gx_doc *phase = gx_doc_get(doc, "phase");
    const gx_doc *origin = r->graph->expanded ? gx_doc_get(doc, "origin") : NULL;
    const int given = phase ? gx_read_choice(r, phase, gx_words_phase, "phase") : -1;
    const int32_t id = gx_graph_append(r->graph, op->op, name,
                                       given >= 0 ? (gx_phase)given : GX_PHASE_FORWARD,
                                       op->fields, op->n_fields, pos, r->list);

    if (id < 0)
        return;
    r->graph->nodes[id].phase_given = given >= 0;
    if (phase)
        r->graph->nodes[id].phase_pos = phase->pos;
    if (origin && gx_read_text_doc(r, origin, "a name"))
        r->graph->nodes[id].origin = gx_arena_text(r->graph->arena, origin->text);
}

static void read_op(gx_reader *r, gx_scope *scope, const gx_doc *doc)
{
    const gx_doc *op_doc = gx_doc_get(doc, "op");
    op_text op = { .n_fields = 0 };
    gx_pos pos = doc->pos;

    if (!op_doc) {
        gx_report(r->list, doc->pos,
                  "expected an op, as in {op: gemm, ...}, or a repeat");
        return;
    }
    op.op = gx_read_text_doc(r, op_doc, "the name of an op");
    if (!op.op)
        return;
    for (size_t i = 0; i < doc->n; i++) {
        if (!is_op_key(r, doc->key[i]))
            add_fields(r, &op, doc->key[i], doc->key_pos[i], doc->item[i]);
    }
    const char *local = own_name(r, doc, &op, &pos);

    if (!local)
        return;
    resolve_inputs(r, scope, &op);

    const char *full = NULL;

    /* In an expanded model an op may have the name of the input that it gathers. */
    if (r->graph->expanded && gx_scope_has(r, r->top, local))
        full = local;
    else
        full = gx_scope_claim(r, scope, local, pos);
    if (!full) /* it stands under another name, so that its readers are not reported too
                */
        full =
            gx_arena_format(r->graph->arena, "line%d.%d", (int)pos.line, (int)pos.column);
    if (!full)
        return;
    if (r->graph->expanded)
        claim_expanded_outputs(r, &op);
    else
        claim_outputs(r, scope, &op, local, full, pos);
    append(r, doc, &op, full, op_doc->pos);
}

/* --- repeat --- */

typedef struct repeat {
    const char *name;
    gx_pos pos;
    int64_t count;
    const gx_doc *carry, *params, *ops;
} repeat;

static bool read_repeat_keys(gx_reader *r, const gx_doc *doc, repeat *rep)
{
    const gx_doc *name = gx_doc_get(doc, "name");
    const gx_doc *count = gx_doc_get(doc, "count");
    bool good = gx_check_keys(r, doc, gx_keys_repeat, "repeat");

    rep->carry = gx_doc_get(doc, "carry");
    rep->params = gx_doc_get(doc, "params");
    rep->ops = gx_doc_get(doc, "ops");
    if (!name || !count || !rep->ops) {
        gx_report(r->list, doc->pos, "a repeat needs \"%s\"",
                  !name    ? "name"
                  : !count ? "count"
                           : "ops");
        return false;
    }
    rep->name = gx_read_text_doc(r, name, "a name");
    rep->pos = name->pos;
    good = rep->name && gx_read_int_doc(r, count, &rep->count) && good;
    if (good && rep->count < 0) {
        gx_report(r->list, count->pos, "count is 0 or more, not %lld",
                  (long long)rep->count);
        good = false;
    }
    if (rep->carry)
        good = gx_expect(r, rep->carry, GX_DOC_MAP, "a map such as {h: x}") && good;
    if (rep->params)
        good = gx_expect(r, rep->params, GX_DOC_MAP, "a map of parameters") && good;
    good = gx_expect(r, rep->ops, GX_DOC_LIST, "a list of ops") && good;
    if (good && rep->ops->n == 0) {
        gx_report(r->list, rep->ops->pos, "a repeat of no ops");
        good = false;
    }
    return good;
}

/* What each carried tensor is before the first turn; into `bindings`. */
static bool start_carry(gx_reader *r, const gx_scope *scope, const repeat *rep,
                        gx_scope *carried)
{
    for (size_t i = 0; rep->carry && i < rep->carry->n; i++) {
        const gx_doc *start = rep->carry->item[i];

        if (!gx_is_name(rep->carry->key[i])) {
            gx_report(r->list, rep->carry->key_pos[i], "\"%s\" is not a name",
                      rep->carry->key[i]);
            return false;
        }
        if (!gx_read_text_doc(r, start,
                              "the name of the tensor that the first turn starts "
                              "from"))
            return false;
        if (!gx_scope_has(r, scope, start->text)) {
            gx_report(r->list, start->pos,
                      "there is no tensor \"%s\" before this repeat for the first turn "
                      "to start "
                      "from",
                      start->text);
            return false;
        }
        if (!gx_scope_bind(carried, rep->carry->key[i],
                           gx_scope_find(r, scope, start->text)))
            return false;
    }
    return true;
}

static void read_params(gx_reader *r, gx_scope *scope, const gx_doc *params)
{
    for (size_t i = 0; params && i < params->n; i++) {
        if (!gx_expect(r, params->item[i], GX_DOC_MAP, "a map such as {shape: [64, 10]}"))
            continue;
        gx_check_keys(r, params->item[i], gx_keys_param, "parameter");
        const char *name = gx_scope_claim(r, scope, params->key[i], params->key_pos[i]);

        if (name)
            gx_read_tensor(r, name, params->key_pos[i], params->item[i], GX_VALUE_PARAM);
    }
}

static void read_turn(gx_reader *r, gx_scope *turn, const repeat *rep)
{
    for (size_t i = 0; i < turn->n_bindings; i++)
        turn->bindings[i].moved = false;
    read_params(r, turn, rep->params);
    read_list(r, turn, rep->ops);
    for (size_t i = 0; i < turn->n_bindings && !r->stopped; i++) {
        const gx_binding *binding = &turn->bindings[i];

        for (size_t k = 0; rep->carry && k < rep->carry->n; k++) {
            if (!binding->moved && strcmp(rep->carry->key[k], binding->name) == 0)
                gx_report(r->list, rep->carry->key_pos[k],
                          "no op of repeat \"%s\" makes the carried tensor \"%s\"",
                          rep->name, binding->name);
        }
    }
    /* what nested repeats bound is this turn's own */
    turn->n_bindings = rep->carry ? rep->carry->n : 0;
}

/* After the repeat a carried name means the last turn's tensor. */
static void end_carry(gx_reader *r, gx_scope *scope, const repeat *rep,
                      const gx_scope *carried)
{
    for (size_t i = 0; rep->carry && i < rep->carry->n; i++) {
        const char *name = rep->carry->key[i];
        /* carried from itself, it goes on; else the name must be free after the repeat */
        const bool same = strcmp(rep->carry->item[i]->text, name) == 0;

        if (!same && !gx_scope_claim(r, scope, name, rep->carry->key_pos[i]))
            continue;
        if (!gx_scope_bind(scope, name, carried->bindings[i].meaning))
            gx_arena_fail(r->graph->arena);
    }
}

static void read_repeat(gx_reader *r, gx_scope *scope, const gx_doc *doc)
{
    gx_scope turn = { .outer = scope };
    repeat rep = { .name = NULL };

    if (!gx_expect(r, doc, GX_DOC_MAP, "a map with name, count and ops") ||
        !read_repeat_keys(r, doc, &rep))
        return;
    if (rep.count > GX_LIMIT_OPS - r->n_turns) { /* known before the first turn */
        report_limit(r, doc->pos);
        return;
    }
    const char *name = gx_scope_claim(r, scope, rep.name, rep.pos);

    if (name && start_carry(r, scope, &rep, &turn)) {
        for (int64_t t = 0; t < rep.count && !r->stopped; t++) {
            r->n_turns++;
            turn.prefix =
                gx_arena_format(r->graph->arena, "%s.%lld.", name, (long long)t);
            if (!turn.prefix || !within_limit(r, doc->pos))
                break;
            read_turn(r, &turn, &rep);
        }
        end_carry(r, scope, &rep, &turn);
    }
    gx_scope_free(&turn);
}

static void read_list(gx_reader *r, gx_scope *scope, const gx_doc *list)
{
    for (size_t i = 0; i < list->n && !r->stopped; i++) {
        const gx_doc *doc = list->item[i];

        if (!within_limit(r, doc->pos) ||
            !gx_expect(r, doc, GX_DOC_MAP, "an op, as in {op: gemm, ...}, or a repeat"))
            continue;
        if (doc->n == 1 && strcmp(doc->key[0], "repeat") == 0)
            read_repeat(r, scope, doc->item[0]);
        else
            read_op(r, scope, doc);
    }
}

void gx_read_ops(gx_reader *r, const gx_doc *doc)
{
    if (!gx_expect(r, doc, GX_DOC_LIST, "a list of ops"))
        return;
    if (doc->n == 0 && !r->graph->expanded)
        gx_report(r->list, doc->pos, "a model of no ops");
    read_list(r, r->top, doc);
}

void gx_read_section(gx_reader *r, const gx_doc *doc, gx_section *section)
{
    gx_arena *arena = r->graph->arena;
    op_text op = { .op = section->op_name };

    section->pos = doc->pos;
    for (size_t i = 0; doc->kind == GX_DOC_MAP && i < doc->n; i++) {
        if (strcmp(doc->key[i], "op") != 0)
            add_fields(r, &op, doc->key[i], doc->key_pos[i], doc->item[i]);
    }
    resolve_inputs(r, r->top, &op);
    section->fields =
        gx_arena_alloc(arena, (size_t)(op.n_fields + 1) * sizeof(gx_field_value));
    for (int i = 0; section->fields && i < op.n_fields; i++) {
        gx_field_value *field = &section->fields[section->n_fields++];

        *field = op.fields[i];
        field->key = gx_arena_text(arena, field->key);
        field->text = gx_arena_text(arena, field->text);
    }
}
