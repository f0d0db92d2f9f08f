/* gexec ops: the catalogue, as text, as JSON, and as the reference page has it. */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "json_out.h"
#include "text_table.h"

static const char *kind_name(gx_field_kind kind)
{
    static const char *const names[] = {
        [GX_FIELD_IN] = "tensor",    [GX_FIELD_INOUT] = "tensor, in place",
        [GX_FIELD_OUT] = "output",   [GX_FIELD_BOOL] = "true or false",
        [GX_FIELD_INT] = "integer",  [GX_FIELD_REAL] = "number",
        [GX_FIELD_ENUM] = "one of",  [GX_FIELD_INTS] = "integers",
        [GX_FIELD_WORDS] = "list of"
    };

    return names[kind];
}

/* A list is fields "x.0", "x.1", ..., of which the first stands for all: how many there
 * are, 0 where the field is no list, -1 for the others. */
static int list_items(const gx_field *field)
{
    const char *dot = strchr(field->name, '.');
    int n = 1;

    if (!dot || dot[1] < '0' || dot[1] > '9')
        return 0;
    if (strcmp(dot, ".0") != 0)
        return -1;
    while (field[n].name &&
           strncmp(field[n].name, field->name, (size_t)(dot - field->name) + 1) == 0)
        n++;
    return n;
}

/* Of a list, what stands before its number. */
static int name_length(const gx_field *field)
{
    return (int)(list_items(field) != 0 ? strcspn(field->name, ".")
                                        : strlen(field->name));
}

/* "one of none, relu", "list of bias, act", "list of tensors, up to 8"; else the kind. */
static void field_kind(const gx_field *field, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", kind_name(field->kind));

    if (list_items(field) > 0)
        snprintf(text, size, "list of %ss, up to %d", kind_name(field->kind),
                 list_items(field));
    if (!field->choices)
        return;
    for (const char *const *choice = field->choices; *choice && length < size; choice++)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   choice == field->choices ? " " : ", ", *choice);
}

static const char *field_default(const gx_field *field)
{
    if (field->required)
        return "required";
    return field->fallback ? field->fallback : "";
}

/* --- text --- */

static void print_catalogue(bool internal, FILE *out)
{
    gx_text_table *table = gx_text_table_create("lll");

    for (size_t i = 0; gx_op_at(i); i++) {
        const gx_op *const op = gx_op_at(i);

        if (gx_op_is_internal(op) && !internal)
            continue;
        gx_text_table_cell(table, "%s", gx_op_name(op));
        gx_text_table_cell(table, "%s",
                           gx_op_is_differentiable(op) ? "differentiable"
                           : gx_op_is_internal(op)     ? "internal"
                                                       : "");
        gx_text_table_cell(table, "%s", gx_op_summary(op));
    }
    gx_text_table_print(table, "", out);
    gx_text_table_free(table);
}

static void print_op(const gx_op *op, FILE *out)
{
    gx_text_table *table = gx_text_table_create("llll");
    char text[160];

    fprintf(out, "%s: %s\n  %s\n", gx_op_name(op), gx_op_summary(op), gx_op_formula(op));
    fprintf(out, "  %s%s\n\n",
            gx_op_is_differentiable(op) ? "differentiable" : "no derivative",
            gx_op_is_internal(op) ? "; put into graphs by gexec alone" : "");
    for (const gx_field *field = gx_op_fields(op); field->name; field++) {
        if (list_items(field) < 0)
            continue;
        field_kind(field, text, sizeof text);
        gx_text_table_cell(table, "%.*s", name_length(field), field->name);
        gx_text_table_cell(table, "%s", text);
        gx_text_table_cell(table, "%s", field_default(field));
        gx_text_table_cell(table, "%s", field->doc ? field->doc : "");
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    for (size_t i = 0;; i++) {
        const char *const name = gx_op_alternative(op, i, text, sizeof text);

        if (!name)
            break;
        fprintf(out, "%s  %-14s covers %s\n", i ? "" : "\nCUDA alternatives\n", name,
                text);
    }
}

/* --- Markdown --- */

/* A bar would end a cell. */
static void put_cell(const char *text, FILE *out)
{
    fputs("| ", out);
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc(' ', out);
}

static void print_markdown_op(const gx_op *op, FILE *out)
{
    fprintf(out, "### `%s`\n\n%s.%s\n\n    %s\n\n", gx_op_name(op), gx_op_summary(op),
            gx_op_is_differentiable(op) ? " Differentiable." : "", gx_op_formula(op));
    fputs("| field | is | default | meaning |\n| --- | --- | --- | --- |\n", out);
    for (const gx_field *field = gx_op_fields(op); field->name; field++) {
        char text[160];

        if (list_items(field) < 0)
            continue;
        field_kind(field, text, sizeof text);
        fprintf(out, "| `%.*s` ", name_length(field), field->name);
        put_cell(text, out);
        put_cell(field_default(field), out);
        put_cell(field->doc ? field->doc : "", out);
        fputs("|\n", out);
    }
}

static void print_markdown(FILE *out)
{
    bool first = true;

    for (size_t i = 0; gx_op_at(i); i++) {
        if (gx_op_is_internal(gx_op_at(i)))
            continue;
        if (!first)
            fputc('\n', out);
        print_markdown_op(gx_op_at(i), out);
        first = false;
    }
}

/* --- JSON --- */

static void put_field(gx_json *json, const gx_field *field)
{
    char name[80];

    snprintf(name, sizeof name, "%.*s", name_length(field), field->name);
    gx_json_object(json, NULL);
    gx_json_text(json, "name", name);
    gx_json_text(json, "kind", kind_name(field->kind));
    gx_json_integer(json, "list_of_up_to", list_items(field));
    gx_json_bool(json, "required", field->required);
    gx_json_text(json, "default", field->fallback);
    gx_json_text(json, "doc", field->doc);
    gx_json_array(json, "choices");
    for (const char *const *choice = field->choices; choice && *choice; choice++)
        gx_json_text(json, NULL, *choice);
    gx_json_end(json);
    gx_json_end(json);
}

static void put_op(gx_json *json, const gx_op *op)
{
    char text[160];

    gx_json_object(json, NULL);
    gx_json_text(json, "name", gx_op_name(op));
    gx_json_text(json, "summary", gx_op_summary(op));
    gx_json_text(json, "formula", gx_op_formula(op));
    gx_json_bool(json, "internal", gx_op_is_internal(op));
    gx_json_bool(json, "differentiable", gx_op_is_differentiable(op));
    gx_json_array(json, "fields");
    for (const gx_field *field = gx_op_fields(op); field->name; field++) {
        if (list_items(field) >= 0)
            put_field(json, field);
    }
    gx_json_end(json);
    gx_json_array(json, "alternatives");
    for (size_t i = 0;; i++) {
        const char *const name = gx_op_alternative(op, i, text, sizeof text);

        if (!name)
            break;
        gx_json_object(json, NULL);
        gx_json_text(json, "name", name);
        gx_json_text(json, "covers", text);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_end(json);
}

static gx_status write_json(const char *path, const gx_op *only, gx_error *err)
{
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_array(json, NULL);
    for (size_t i = 0; gx_op_at(i); i++)
        if (!only || only == gx_op_at(i))
            put_op(json, gx_op_at(i));
    gx_json_end(json);
    st = gx_json_write(json, path, err);
    gx_json_free(json);
    return st;
}

/* --- command --- */

static int say_unknown(const gx_args *args, const char *name)
{
    const char **names = calloc(gx_op_count() + 1, sizeof *names);
    const char *near;
    int exit_status;

    for (size_t i = 0; names && gx_op_at(i); i++)
        names[i] = gx_op_name(gx_op_at(i));
    near = names ? gx_near_name(name, names) : NULL;
    exit_status =
        gx_say_usage(args, "no op '%s'%s%s%s", name, near ? "; did you mean " : "",
                     near ? near : "", near ? "?" : "");
    free(names);
    return exit_status;
}

int gx_cmd_ops(const gx_args *args)
{
    const gx_op *op = NULL;
    gx_error err = { 0 };

    if (args->n_names) {
        op = gx_op_find(args->names[0]);
        if (!op)
            return say_unknown(args, args->names[0]);
    }
    if (!gx_stdout_is_taken(args)) {
        if (args->markdown && op)
            print_markdown_op(op, stdout);
        else if (args->markdown)
            print_markdown(stdout);
        else if (op)
            print_op(op, stdout);
        else
            print_catalogue(args->verbose, stdout);
    }
    if (args->json && write_json(args->json, op, &err) != GX_OK)
        return gx_say_error(args, &err);
    return GX_EXIT_OK;
}
