/* The fields of rows: found, counted, and missed. */
#include <string.h>

#include "builder.h"

const gx_field *gx_field_find(const gx_op *op, const char *name, int *index)
{
    int n[2] = { 0, 0 };

    for (const gx_field *field = op->fields; field->name; field++) {
        int *count = &n[gx_is_tensor_field(field)];

        if (strcmp(field->name, name) == 0) {
            *index = *count;
            return field;
        }
        (*count)++;
    }
    return NULL;
}

const char *gx_nearest_field(const gx_op *op, const char *name, bool tensors)
{
    const char *names[GX_MAX_ARGS + GX_MAX_ATTRS] = { NULL };
    size_t n = 0;

    for (const gx_field *field = op->fields; field->name; field++) {
        if (tensors || !gx_is_tensor_field(field))
            names[n++] = field->name;
    }
    return gx_nearest(name, names, n);
}

gx_field_kind gx_arg_kind(const gx_op *op, int arg)
{
    for (const gx_field *field = op->fields; field->name; field++) {
        if (gx_is_tensor_field(field) && arg-- == 0)
            return field->kind;
    }
    return GX_FIELD_IN;
}

int gx_n_args(const gx_op *op)
{
    int n = 0;

    for (const gx_field *field = op->fields; field->name; field++)
        n += gx_is_tensor_field(field);
    return n;
}

/* Bytes of what stands before the number, where the key is an item of a list; else 0. */
static size_t item_stem(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot && dot[1] >= '0' && dot[1] <= '9' ? (size_t)(dot - key) : 0;
}

void gx_report_lack(gx_builder *builder, const gx_node *node, const gx_field *field,
                    const char *kind)
{
    const size_t stem = item_stem(field->name);

    if (stem == 0) {
        gx_report(builder->list, node->pos, "%s \"%s\" lacks the field \"%s\": %s",
                  node->op_name, node->name, field->name, kind);
        return;
    }
    for (int f = 0; f < node->n_fields; f++) {
        const char *key = node->fields[f].key;

        /* Written, but not as a list: that is said already. */
        if (strlen(key) == stem && strncmp(key, field->name, stem) == 0)
            return;
    }
    gx_report(builder->list, node->pos,
              "%s \"%s\" lacks the field \"%.*s\": a list, each item %s", node->op_name,
              node->name, (int)stem, field->name, kind);
}

/* The items of a list are fields "key.0", "key.1", ...: how many of them the row has. */
static int count_items(const gx_op *op, const char *key, size_t length)
{
    int n = 0;

    for (const gx_field *field = op->fields; field->name; field++)
        n += item_stem(field->name) == length && strncmp(field->name, key, length) == 0;
    return n;
}

/* The first field "key.name" of the row: `key` is a map then. NULL: there is none. */
static const char *inner_field(const gx_op *op, const char *key)
{
    const size_t length = strlen(key);

    for (const gx_field *field = op->fields; field->name; field++) {
        if (strncmp(field->name, key, length) == 0 && field->name[length] == '.')
            return field->name + length + 1;
    }
    return NULL;
}

void gx_report_no_field(gx_builder *builder, const gx_node *node,
                        const gx_field_value *written)
{
    const char *key = written->key;
    const size_t stem = item_stem(key);
    const size_t length = stem ? stem : strlen(key);
    const int n_items = count_items(node->op, key, length);
    const char *near = gx_nearest_field(node->op, key, true);
    const char *inner = inner_field(node->op, key);

    if (n_items > 0 && stem)
        gx_report(builder->list, written->pos, "%.*s of %s is a list of up to %d",
                  (int)length, key, node->op_name, n_items);
    else if (n_items > 0)
        gx_report(builder->list, written->pos,
                  "%s of %s is a list, as in {%s: [...]}, of up to %d", key,
                  node->op_name, key, n_items);
    else if (inner)
        gx_report(builder->list, written->pos, "%s of %s is a map, as in {%s: {%s: ...}}",
                  key, node->op_name, key, inner);
    else if (near)
        gx_report(builder->list, written->key_pos,
                  "%s has no field \"%s\"; did you mean \"%s\"?", node->op_name, key,
                  near);
    else
        gx_report(builder->list, written->key_pos, "%s has no field \"%s\"",
                  node->op_name, key);
}
