/* The JSON Schema of models says what the reader reads and what the catalogue has.
 *
 * Its part between "ops:begin" and "ops:end" is made from the catalogue:
 * `test_schema --write` writes it again. JSON is read as the YAML that it also is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "init.h"
#include "ops.h"
#include "reader.h"
#include "support.h"
#include "text.h"

#define SCHEMA "graphs/model.schema.json"

static const char begin[] = "    \"ops:begin\": true,\n";
static const char end[] = "    \"ops:end\": true\n";

/* --- the part made from the catalogue --- */

static void put_string(gx_text *text, const char *words)
{
    gx_text_put(text, "\"");
    for (; *words; words++) {
        if (*words == '"' || *words == '\\')
            gx_text_put(text, "\\");
        gx_text_add(text, words, 1);
    }
    gx_text_put(text, "\"");
}

static void put_type(gx_text *text, const gx_field *field)
{
    switch (field->kind) {
    case GX_FIELD_BOOL:
        gx_text_put(text, "\"type\": \"boolean\"");
        return;
    case GX_FIELD_INT:
        gx_text_put(text, "\"$ref\": \"#/$defs/integer\"");
        return;
    case GX_FIELD_REAL:
        gx_text_put(text, "\"$ref\": \"#/$defs/real\"");
        return;
    case GX_FIELD_ENUM:
        gx_text_put(text, "\"enum\": [");
        for (size_t i = 0; field->choices[i]; i++) {
            gx_text_put(text, i > 0 ? ", " : "");
            put_string(text, field->choices[i]);
        }
        gx_text_put(text, "]");
        return;
    default:
        gx_text_put(text, "\"$ref\": \"#/$defs/tensor\"");
    }
}

static void put_field(gx_text *text, const gx_field *field, const char *name)
{
    put_string(text, name);
    gx_text_put(text, ": {");
    put_type(text, field);
    if (field->doc && field->doc[0]) {
        gx_text_put(text, ", \"description\": ");
        put_string(text, field->doc);
    }
    gx_text_put(text, "}");
}

/* A field whose key ends in a number is an item of a list. */
static bool is_item(const gx_field *field)
{
    const char *dot = strchr(field->name, '.');

    return dot && dot[1] >= '0' && dot[1] <= '9';
}

/* All items of the list that `first` begins. */
static void put_items(gx_text *text, const gx_field *first)
{
    const size_t n = strcspn(first->name, ".") + 1;
    int most = 0;

    for (const gx_field *field = first; field->name; field++)
        most += strncmp(field->name, first->name, n) == 0;
    gx_text_format(text, "\"%.*s\": {\"type\": \"array\", \"minItems\": %d, ", (int)n - 1,
                   first->name, first->required);
    gx_text_format(text, "\"maxItems\": %d, \"items\": {", most);
    put_type(text, first);
    gx_text_put(text, "}, \"description\": ");
    put_string(text, first->doc);
    gx_text_put(text, "}");
}

/* All fields that start with the same "word." as `first`, as one object. */
static void put_group(gx_text *text, const gx_field *first)
{
    const size_t n = strcspn(first->name, ".") + 1;

    gx_text_format(text,
                   "\"%.*s\": {\"type\": \"object\", \"additionalProperties\": false, "
                   "\"properties\": {",
                   (int)n - 1, first->name);
    for (const gx_field *field = first; field->name; field++) {
        if (strncmp(field->name, first->name, n) != 0)
            continue;
        gx_text_put(text, field == first ? "\n          " : ",\n          ");
        put_field(text, field, field->name + n);
    }
    gx_text_put(text, "}}");
}

/* True when an earlier field opened the group of this one. */
static bool is_grouped(const gx_field *fields, const gx_field *field)
{
    const size_t n = strcspn(field->name, ".") + 1;

    for (; fields != field; fields++) {
        if (strncmp(fields->name, field->name, n) == 0)
            return true;
    }
    return false;
}

static void put_required(gx_text *text, const gx_op *op)
{
    gx_text_put(text, "      \"required\": [\"op\"");
    for (const gx_field *field = gx_op_fields(op); field->name; field++) {
        if (!field->required || field->kind == GX_FIELD_OUT ||
            (strchr(field->name, '.') && !is_item(field)))
            continue;
        gx_text_format(text, ", \"%.*s\"", (int)strcspn(field->name, "."), field->name);
    }
    gx_text_put(text, "],\n");
}

static void put_op(gx_text *text, const gx_op *op)
{
    gx_text_format(text, "    \"op.%s\": {\n      \"description\": ", gx_op_name(op));
    put_string(text, gx_op_summary(op));
    gx_text_put(text, ",\n");
    put_required(text, op);
    gx_text_put(text, "      \"additionalProperties\": false,\n      \"properties\": {\n"
                      "        \"op\": true,\n        \"name\": true,\n"
                      "        \"phase\": true");
    for (const gx_field *field = gx_op_fields(op); field->name; field++) {
        const bool is_dotted = strchr(field->name, '.') != NULL;

        if (is_dotted && is_grouped(gx_op_fields(op), field))
            continue;
        gx_text_put(text, ",\n        ");
        if (is_item(field))
            put_items(text, field);
        else if (is_dotted)
            put_group(text, field);
        else
            put_field(text, field, field->name);
    }
    gx_text_put(text, "\n      }\n    },\n");
}

static void put_op_list(gx_text *text)
{
    const char *between = "";
    const gx_op *op;

    gx_text_put(text, "    \"op\": {\n      \"type\": \"object\",\n"
                      "      \"required\": [\"op\"],\n      \"properties\": {\n"
                      "        \"op\": {\"enum\": [");
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (gx_op_is_internal(op))
            continue;
        gx_text_put(text, between);
        put_string(text, gx_op_name(op));
        between = ", ";
    }
    gx_text_put(text, "]},\n        \"name\": {\"type\": \"string\"},\n"
                      "        \"phase\": {\"$ref\": \"#/$defs/phase\"}\n      },\n"
                      "      \"allOf\": [");
    between = "\n";
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (gx_op_is_internal(op))
            continue;
        gx_text_format(
            text,
            "%s        {\"if\": {\"properties\": {\"op\": {\"const\": \"%s\"}}}, "
            "\"then\": {\"$ref\": \"#/$defs/op.%s\"}}",
            between, gx_op_name(op), gx_op_name(op));
        between = ",\n";
    }
    gx_text_put(text, "\n      ]\n    },\n");
}

/* Its settings are the fields of the op that are no tensors, and the rate. */
static void put_optimizers(gx_text *text)
{
    const char *between = "";
    const gx_op *op;

    gx_text_put(text, "    \"optimizer\": {\n      \"type\": \"object\",\n"
                      "      \"minProperties\": 1,\n      \"maxProperties\": 1,\n"
                      "      \"additionalProperties\": false,\n      \"properties\": {");
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (op->phase != GX_PHASE_OPTIMIZER || gx_op_is_internal(op))
            continue;
        gx_text_format(
            text,
            "%s\n        \"%s\": {\"type\": \"object\", \"required\": [\"lr\"], "
            "\"additionalProperties\": false, \"properties\": {\n"
            "          \"lr\": {\"$ref\": \"#/$defs/real\"}",
            between, gx_op_name(op));
        for (const gx_field *field = gx_op_fields(op); field->name; field++) {
            if (field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
                field->kind == GX_FIELD_OUT)
                continue;
            gx_text_put(text, ",\n          ");
            put_field(text, field, field->name);
        }
        gx_text_put(text, "}}");
        between = ",";
    }
    gx_text_put(text, "\n      }\n    },\n");
}

static char *make_ops(void)
{
    gx_text text = { 0 };
    const gx_op *op;

    put_op_list(&text);
    put_optimizers(&text);
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (!gx_op_is_internal(op))
            put_op(&text, op);
    }
    return gx_text_take(&text);
}

/* Where the made part of the schema starts and ends. */
static void find_made(char *schema, char **from, char **to)
{
    *from = strstr(schema, begin);
    *to = strstr(schema, end);
    assert_non_null(*from);
    assert_non_null(*to);
    *from += strlen(begin);
    assert_true(*from <= *to);
}

static void the_ops_are_those_of_the_catalogue(void **state)
{
    char *schema = test_read(SCHEMA, NULL);
    char *made = make_ops();
    char *from, *to;

    (void)state;
    find_made(schema, &from, &to);
    if (strlen(made) != (size_t)(to - from) || strncmp(made, from, strlen(made)) != 0)
        fail_msg("%s is not what the catalogue has; run test_schema --write", SCHEMA);
    free(made);
    free(schema);
}

static int write_schema(void)
{
    char *schema = test_read(SCHEMA, NULL);
    char *made = make_ops();
    char *from, *to;
    FILE *file;

    find_made(schema, &from, &to);
    file = fopen(SCHEMA, "wb");
    if (!file)
        return 1;
    fprintf(file, "%.*s%s%s", (int)(from - schema), schema, made, to);
    fclose(file);
    free(made);
    free(schema);
    return 0;
}

/* --- the part written by hand --- */

typedef struct schema {
    gx_arena *arena;
    const gx_doc *root;
} schema;

static int set_up(void **state)
{
    static schema s;
    gx_diagnostics *list = gx_diagnostics_create();
    size_t length;
    char *text = test_read(SCHEMA, &length);

    gx_diagnostics_source(list, SCHEMA, text, length);
    s.arena = gx_arena_create();
    s.root = gx_document_read(s.arena, text, length, list);
    if (!s.root || gx_diagnostics_count(list) > 0) {
        char *all = gx_diagnostics_text(list);

        print_error("%s", all);
        free(all);
        return -1;
    }
    gx_diagnostics_free(list);
    free(text);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    gx_arena_free(((schema *)*state)->arena);
    return 0;
}

/* The node at a path of keys that ends with NULL. */
static const gx_doc *at(const gx_doc *doc, ...)
{
    va_list keys;
    const char *key;

    va_start(keys, doc);
    while ((key = va_arg(keys, const char *)) != NULL) {
        const gx_doc *inner = gx_doc_get(doc, key);

        if (!inner)
            fail_msg("the schema has no \"%s\"", key);
        doc = inner;
    }
    va_end(keys);
    return doc;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

static void compare_keys(const gx_doc *properties, const char *const *keys)
{
    for (size_t i = 0; keys[i]; i++)
        assert_non_null(at(properties, keys[i], NULL));
    for (size_t i = 0; i < properties->n; i++) {
        if (!is_one_of(properties->key[i], keys))
            fail_msg("the reader does not know the key \"%s\" of the schema",
                     properties->key[i]);
    }
}

static void the_keys_are_those_of_the_reader(void **state)
{
    const struct {
        const char *definition;
        const char *const *keys;
    } levels[] = {
        { "model", gx_keys_model },   { "expanded", gx_keys_expanded },
        { "data", gx_keys_data },     { "column", gx_keys_column },
        { "input", gx_keys_input },   { "param", gx_keys_param },
        { "state", gx_keys_state },   { "declared", gx_keys_tensor },
        { "repeat", gx_keys_repeat }, { "init.normal", gx_keys_normal },
        { "init.fan", gx_keys_fan },  { "op", gx_keys_op },
    };
    const gx_doc *root = ((schema *)*state)->root;

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        compare_keys(at(root, "$defs", levels[i].definition, "properties", NULL),
                     levels[i].keys);
}

static void compare_words(const gx_doc *list, const char *const *words)
{
    size_t n = 0;

    assert_int_equal(list->kind, GX_DOC_LIST);
    while (words[n])
        n++;
    assert_int_equal(list->n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(list->item[i]->text, words[i]);
}

static void the_words_are_those_of_the_reader(void **state)
{
    const gx_doc *defs = at(((schema *)*state)->root, "$defs", NULL);

    compare_words(at(defs, "precision", "enum", NULL), gx_words_precision);
    compare_words(at(defs, "dtype", "enum", NULL), gx_words_dtype);
    compare_words(at(defs, "phase", "enum", NULL), gx_words_phase);
    compare_words(at(defs, "declared", "properties", "kind", "enum", NULL),
                  gx_words_kind);
    compare_words(at(defs, "expanded", "properties", "expanded", "enum", NULL),
                  gx_words_expanded);
}

/* Each initialiser is read in the forms, word or map, in which the schema has it. */
static void the_initialisers_are_those_of_the_reader(void **state)
{
    static const char *const values[][2] = {
        { "constant", "1" },
        { "normal", "{std: 1}" },
        { "uniform", "[0, 1]" },
        { "torch_linear", "{fan_in: 1}" },
        { "integers", "[0, 1]" },
        { "file", "w.npy" },
        { NULL, "1" },
    };
    const gx_doc *defs = at(((schema *)*state)->root, "$defs", NULL);
    const gx_doc *maps = at(defs, "init.map", "properties", NULL);
    const gx_doc *enumerated = at(defs, "init.word", "enum", NULL);

    for (size_t i = 0; gx_init_word(i); i++) {
        const char *word = gx_init_word(i);
        gx_graph *graph = gx_graph_new();
        bool is_word = false;
        char text[64];
        size_t v = 0;
        gx_init init;

        for (size_t k = 0; k < enumerated->n; k++)
            is_word = is_word || strcmp(enumerated->item[k]->text, word) == 0;
        while (values[v][0] && strcmp(values[v][0], word) != 0)
            v++;
        snprintf(text, sizeof text, "{%s: %s}", word, values[v][1]);
        assert_int_equal(is_word,
                         gx_read_init_text(graph, word, &init, NULL, (gx_pos){ 0 }));
        assert_int_equal(gx_doc_get(maps, word) != NULL,
                         gx_read_init_text(graph, text, &init, NULL, (gx_pos){ 0 }));
        gx_graph_free(graph);
    }
    for (size_t k = 0; k < enumerated->n + maps->n; k++) {
        const char *word =
            k < enumerated->n ? enumerated->item[k]->text : maps->key[k - enumerated->n];
        bool known = false;

        for (size_t i = 0; gx_init_word(i); i++)
            known = known || strcmp(gx_init_word(i), word) == 0;
        assert_true(known);
    }
}

/* Every "#/$defs/..." is there. */
static void check_references(const gx_doc *doc, const gx_doc *defs)
{
    static const char start[] = "#/$defs/";

    for (size_t i = 0; doc->kind != GX_DOC_SCALAR && i < doc->n; i++)
        check_references(doc->item[i], defs);
    if (doc->kind == GX_DOC_SCALAR && strncmp(doc->text, start, strlen(start)) == 0)
        at(defs, doc->text + strlen(start), NULL);
}

static void every_reference_leads_somewhere(void **state)
{
    const gx_doc *root = ((schema *)*state)->root;

    check_references(root, at(root, "$defs", NULL));
}

/* What YAML allows and JSON does not: words without quotes, a comma before a bracket. */
static void check_json(const gx_doc *doc)
{
    double number;

    for (size_t i = 0; doc->kind != GX_DOC_SCALAR && i < doc->n; i++)
        check_json(doc->item[i]);
    if (doc->kind == GX_DOC_SCALAR && !doc->quoted && strcmp(doc->text, "true") != 0 &&
        strcmp(doc->text, "false") != 0 && !gx_read_real(doc->text, &number))
        fail_msg("%s:%d: \"%s\" is no JSON", SCHEMA, (int)doc->pos.line, doc->text);
}

static void the_schema_is_json(void **state)
{
    char *text = test_read(SCHEMA, NULL);
    char last = ' ';
    bool inside = false;

    check_json(((schema *)*state)->root);
    for (const char *c = text; *c; c++) {
        if (*c == '"' && c[-1] != '\\')
            inside = !inside;
        if (!inside && (*c == '}' || *c == ']'))
            assert_int_not_equal(last, ',');
        if (!inside)
            assert_true(*c != '\'' && *c != '#');
        if (*c != ' ' && *c != '\n')
            last = *c;
    }
    free(text);
}

int main(int n_args, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ops_are_those_of_the_catalogue),
        cmocka_unit_test(the_keys_are_those_of_the_reader),
        cmocka_unit_test(the_words_are_those_of_the_reader),
        cmocka_unit_test(the_initialisers_are_those_of_the_reader),
        cmocka_unit_test(every_reference_leads_somewhere),
        cmocka_unit_test(the_schema_is_json),
    };

    if (n_args == 2 && strcmp(args[1], "--write") == 0)
        return write_schema();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
