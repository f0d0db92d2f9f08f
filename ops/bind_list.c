/* Fields that are lists of integers or of words: "axis: 1" is one field, "axis: [0, 2]"
 * comes as "axis.0" and "axis.1". */
#include <string.h>

#include "builder.h"

static const gx_field_value *find_written(const gx_node *node, const char *key)
{
    for (int f = 0; f < node->n_fields; f++) {
        if (strcmp(node->fields[f].key, key) == 0)
            return &node->fields[f];
    }
    return NULL;
}

/* Item k of the list `key`, or NULL. */
static const gx_field_value *find_item(const gx_node *node, const char *key, int k)
{
    const size_t length = strlen(key);

    for (int f = 0; f < node->n_fields; f++) {
        const char *written = node->fields[f].key;

        if (strncmp(written, key, length) == 0 && written[length] == '.' &&
            written[length + 1] == '0' + k && written[length + 2] == '\0')
            return &node->fields[f];
    }
    return NULL;
}

bool gx_is_list_item(const gx_node *node, const char *key)
{
    for (const gx_field *field = node->op->fields; field->name; field++) {
        if (!gx_is_list_field(field) || find_written(node, field->name))
            continue;
        for (int k = 0; k < GX_MAX_RANK; k++) {
            const gx_field_value *item = find_item(node, field->name, k);

            if (!item)
                break;
            if (strcmp(item->key, key) == 0)
                return true;
        }
    }
    return false;
}

const gx_field *gx_list_of(const gx_op *op, const char *key)
{
    for (const gx_field *field = op->fields; field->name; field++) {
        const size_t length = strlen(field->name);

        if (gx_is_list_field(field) && strncmp(key, field->name, length) == 0 &&
            key[length] == '.')
            return field;
    }
    return NULL;
}

static bool read_item(gx_builder *builder, const gx_field *field,
                      const gx_field_value *item, int64_t *read)
{
    const gx_field word = { .name = field->name,
                            .kind = GX_FIELD_ENUM,
                            .choices = field->choices };
    gx_attr attr = { 0 };

    if (field->kind == GX_FIELD_INTS)
        return gx_eval_int(builder->graph, item->text, item->pos, builder->list, read);
    if (!gx_read_attr(builder, &word, item->text, item->pos, &attr))
        return false;
    *read = attr.i;
    return true;
}

bool gx_read_list(gx_builder *builder, int32_t id, const gx_field *field, gx_attr *attr)
{
    const gx_graph *graph = builder->graph;
    const gx_node *node = &graph->nodes[id];
    const gx_field_value *only = find_written(node, field->name);
    int64_t *list = gx_arena_alloc(graph->arena, GX_MAX_RANK * sizeof *list);
    const gx_field_value *item;

    if (!list)
        return false;
    attr->list = list;
    if (!only && !find_item(node, field->name, 0) && field->fallback) {
        attr->i = 1;
        return gx_eval_int(graph, field->fallback, node->pos, builder->list, list);
    }
    for (int k = 0; k < GX_MAX_RANK; k++) {
        item = only && k == 0 ? only : only ? NULL : find_item(node, field->name, k);
        if (!item)
            break;
        if (!read_item(builder, field, item, &list[k]))
            return false;
        attr->i = k + 1;
        attr->present = true;
    }
    return true;
}

size_t gx_builder_list(gx_builder *builder, const char *key, int n, const int64_t *list,
                       gx_field_text *fields)
{
    gx_arena *arena = builder->graph->arena;

    for (int k = 0; k < n; k++) {
        fields[k].key = gx_arena_format(arena, "%s.%d", key, k);
        fields[k].text = gx_arena_format(arena, "%lld", (long long)list[k]);
        if (!fields[k].key)
            return 0; /* the arena remembers that memory is out */
    }
    return (size_t)n;
}
