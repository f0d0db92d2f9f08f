/* The part of the JSON Schema that is made from the catalogue. */
#include "support_schema.h"

#include <string.h>

#include "ops.h"
#include "schedule.h"
#include "support.h"
#include "text.h"

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

static void put_choices(gx_text *text, const char *const *choices)
{
    gx_text_put(text, "\"enum\": [");
    for (size_t i = 0; choices[i]; i++) {
        gx_text_put(text, i > 0 ? ", " : "");
        put_string(text, choices[i]);
    }
    gx_text_put(text, "]");
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
    case GX_FIELD_INTS:
        gx_text_put(text, "\"$ref\": \"#/$defs/integers\"");
        return;
    case GX_FIELD_ENUM:
        put_choices(text, field->choices);
        return;
    case GX_FIELD_WORDS:
        gx_text_put(text, "\"anyOf\": [{");
        put_choices(text, field->choices);
        gx_text_put(text, "}, {\"type\": \"array\", \"items\": {");
        put_choices(text, field->choices);
        gx_text_put(text, "}}]");
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

static bool is_setting(const gx_field *field)
{
    return field->kind != GX_FIELD_IN && field->kind != GX_FIELD_INOUT &&
           field->kind != GX_FIELD_OUT && strcmp(field->name, "accumulate") != 0;
}

/* A group has the settings of any optimizer; the reader knows of which. */
static void put_group_settings(gx_text *text)
{
    const gx_field *known[64];
    size_t n = 0;
    const gx_op *op;

    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (op->phase != GX_PHASE_OPTIMIZER || gx_op_is_internal(op))
            continue;
        for (const gx_field *field = gx_op_fields(op); field->name; field++) {
            bool stands = !is_setting(field);

            for (size_t k = 0; k < n; k++)
                stands = stands || strcmp(known[k]->name, field->name) == 0;
            if (stands || n == ARRAY_SIZE(known))
                continue;
            known[n++] = field;
            gx_text_format(text, ",\n          \"%s\": {", field->name);
            put_type(text, field);
            gx_text_put(text, "}");
        }
    }
}

/* One kind of schedule: a word where it needs no setting, or a map. */
static void put_schedules(gx_text *text)
{
    const gx_op *op = gx_op_find("schedule");

    gx_text_put(text, "    \"schedule\": {\n      \"oneOf\": [\n"
                      "        {\"enum\": [\"constant\"]},\n"
                      "        {\"type\": \"object\", \"minProperties\": 1, "
                      "\"maxProperties\": 1, \"additionalProperties\": false, "
                      "\"properties\": {");
    for (const gx_schedule_kind *kind = gx_schedule_kinds; kind->name; kind++) {
        const char *between = "";

        gx_text_format(text,
                       "%s\n          \"%s\": {\"type\": \"object\", \"required\": [",
                       kind == gx_schedule_kinds ? "" : ",", kind->name);
        for (const char *const *key = kind->needs; *key; key++) {
            gx_text_format(text, "%s\"%s\"", between, *key);
            between = ", ";
        }
        gx_text_put(text, "], \"additionalProperties\": false, \"properties\": {");
        between = "\n            ";
        for (int may = 0; may < 2; may++) {
            for (const char *const *key = may ? kind->may : kind->needs; *key; key++) {
                for (const gx_field *field = gx_op_fields(op); field->name; field++) {
                    if (strcmp(field->name, *key) != 0 || !is_setting(field))
                        continue;
                    gx_text_put(text, between);
                    put_field(text, field, *key);
                    between = ",\n            ";
                }
            }
        }
        gx_text_put(text, "}}");
    }
    gx_text_put(text, "\n        }}\n      ]\n    },\n    \"group\": {\n"
                      "      \"type\": \"object\",\n      \"required\": [\"params\"],\n"
                      "      \"additionalProperties\": false,\n"
                      "      \"properties\": {\n"
                      "          \"params\": {\"description\": \"Names; * stands for any "
                      "characters, ? for one.\", \"oneOf\": [{\"type\": \"string\"}, "
                      "{\"type\": \"array\", \"minItems\": 1, "
                      "\"items\": {\"type\": \"string\"}}]},\n"
                      "          \"lr\": {\"$ref\": \"#/$defs/real\"}");
    put_group_settings(text);
    gx_text_put(text, "\n      }\n    },\n");
}

/* What stands beside the optimizer's own map; one optimizer is among the others. */
static void put_beside(gx_text *text)
{
    gx_text_put(text,
                "\n        \"schedule\": {\"$ref\": \"#/$defs/schedule\"},\n"
                "        \"clip_norm\": {\"$ref\": \"#/$defs/real\", \"description\": "
                "\"The norm of all gradients is at most this.\"},\n"
                "        \"accumulate\": {\"$ref\": \"#/$defs/integer\", "
                "\"description\": \"Steps that make one update.\"},\n"
                "        \"master\": {\"enum\": [\"f32\", \"param\"], \"description\": "
                "\"The type in which weights are kept and updated.\"},\n"
                "        \"moments\": {\"enum\": [\"f32\", \"param\"], \"description\": "
                "\"The type in which moments are kept.\"},\n"
                "        \"loss_scale\": {\"$ref\": \"#/$defs/loss_scale\"},\n"
                "        \"groups\": {\"type\": \"array\", "
                "\"items\": {\"$ref\": \"#/$defs/group\"}}");
}

/* Its settings are the fields of the op that are no tensors, and the rate. */
static void put_optimizers(gx_text *text)
{
    const char *between = "";
    const gx_op *op;

    gx_text_put(text, "    \"optimizer\": {\n      \"type\": \"object\",\n"
                      "      \"minProperties\": 1,\n      \"oneOf\": [");
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (op->phase != GX_PHASE_OPTIMIZER || gx_op_is_internal(op))
            continue;
        gx_text_format(text, "%s{\"required\": [\"%s\"]}", between, gx_op_name(op));
        between = ", ";
    }
    gx_text_put(text, "],\n      \"additionalProperties\": false,\n"
                      "      \"properties\": {");
    put_beside(text);
    between = ",";
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (op->phase != GX_PHASE_OPTIMIZER || gx_op_is_internal(op))
            continue;
        gx_text_format(text,
                       "%s\n        \"%s\": {\"type\": \"object\", %s"
                       "\"additionalProperties\": false, \"properties\": {\n"
                       "          \"lr\": {\"$ref\": \"#/$defs/real\"}",
                       between, gx_op_name(op),
                       op->default_rate > 0 ? "" : "\"required\": [\"lr\"], ");
        for (const gx_field *field = gx_op_fields(op); field->name; field++) {
            if (!is_setting(field))
                continue;
            gx_text_put(text, ",\n          ");
            put_field(text, field, field->name);
        }
        gx_text_put(text, "}}");
        between = ",";
    }
    gx_text_put(text, "\n      }\n    },\n");
}

/* A number, or dynamic with the row's settings and where it starts. */
static void put_loss_scale(gx_text *text)
{
    static const char *const keys[] = { "growth_interval", "growth", "backoff" };

    gx_text_put(text, "    \"loss_scale\": {\n      \"anyOf\": [\n"
                      "        {\"$ref\": \"#/$defs/real\"},\n"
                      "        {\"const\": \"dynamic\"},\n"
                      "        {\"type\": \"object\", \"required\": [\"dynamic\"], "
                      "\"additionalProperties\": false, \"properties\": {\n"
                      "          \"dynamic\": {\"type\": \"object\", "
                      "\"additionalProperties\": false, \"properties\": {\n"
                      "            \"initial\": {\"$ref\": \"#/$defs/real\", "
                      "\"description\": \"what the scale is at first: 65536\"}");
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const gx_field *field = gx_op_fields(gx_op_find("loss_scale"));

        while (strcmp(field->name, keys[k]) != 0)
            field++;
        gx_text_put(text, ",\n            ");
        put_field(text, field, field->name);
    }
    gx_text_put(text, "}}}}\n      ]\n    },\n");
}

char *test_schema_ops(void)
{
    gx_text text = { 0 };
    const gx_op *op;

    put_op_list(&text);
    put_optimizers(&text);
    put_schedules(&text);
    put_loss_scale(&text);
    for (size_t i = 0; (op = gx_op_at(i)) != NULL; i++) {
        if (!gx_op_is_internal(op))
            put_op(&text, op);
    }
    return gx_text_take(&text);
}
