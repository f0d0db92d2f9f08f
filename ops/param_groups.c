/* Groups of parameters with settings of their own: which pattern names which. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"

static bool is_trained(const gx_value *value)
{
    return value->kind == GX_VALUE_PARAM && !value->frozen;
}

/* `*` stands for any characters, points too, `?` for one. */
static bool matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static bool is_glob(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

static void report_no_match(gx_builder *builder, const gx_field_value *pattern)
{
    if (is_glob(pattern->text)) {
        gx_report(builder->list, pattern->pos, "no parameter that is trained fits \"%s\"",
                  pattern->text);
        return;
    }

    const gx_graph *graph = builder->graph;
    const int32_t id = gx_graph_value_id(graph, pattern->text);
    const char **names = malloc((graph->n_values + 1) * sizeof *names);
    size_t n = 0;

    for (size_t i = 0; names && i < graph->n_values; i++) {
        if (is_trained(&graph->values[i]))
            names[n++] = graph->values[i].name;
    }
    const char *near = names ? gx_nearest(pattern->text, names, n) : NULL;

    if (!names)
        gx_arena_fail(graph->arena);
    if (id >= 0 && graph->values[id].kind == GX_VALUE_PARAM)
        gx_report(builder->list, pattern->pos,
                  "parameter \"%s\" is not trained, so no group has it", pattern->text);
    else if (near)
        gx_report(builder->list, pattern->pos,
                  "no parameter is called \"%s\"; did you mean \"%s\"?", pattern->text,
                  near);
    else
        gx_report(builder->list, pattern->pos,
                  "no parameter that is trained is called \"%s\"", pattern->text);
    free(names);
}

/* False after a report: a parameter has the settings of one group. */
static bool take(gx_builder *builder, int32_t id, size_t group,
                 const gx_field_value *pattern)
{
    gx_training *training = &builder->training;
    const int32_t other = training->group_of[id];

    if (other == 0 || (size_t)other == group) {
        training->group_of[id] = (int32_t)group;
        return true;
    }
    gx_report(builder->list, pattern->pos,
              "parameter \"%s\" is in two groups: in this one, and in that of line %d",
              builder->graph->values[id].name, (int)training->groups[other].pos.line);
    return false;
}

static void match_pattern(gx_builder *builder, size_t group,
                          const gx_field_value *pattern)
{
    const gx_graph *graph = builder->graph;
    const bool glob = is_glob(pattern->text);
    const int32_t id = glob ? -1 : gx_graph_value_id(graph, pattern->text);
    bool found = id >= 0 && is_trained(&graph->values[id]);

    if (found)
        take(builder, id, group, pattern);
    for (size_t i = 0; glob && i < graph->n_values; i++) {
        if (!is_trained(&graph->values[i]) ||
            !matches(pattern->text, graph->values[i].name))
            continue;
        found = true;
        if (!take(builder, (int32_t)i, group, pattern))
            return;
    }
    if (!found)
        report_no_match(builder, pattern);
}

/* Splits "groups.N.REST"; NULL where the key is not like that. */
static const char *split_key(const char *key, size_t *number)
{
    const char *at = key + strlen("groups.");
    size_t n = 0;

    if (*at < '0' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9' && n < GX_LIMIT_OPS; at++)
        n = 10 * n + (size_t)(*at - '0');
    *number = n;
    return at[0] == '.' && at[1] ? at + 1 : NULL;
}

/* A group starts from the section's settings and has its own in their place. */
static void set_field(gx_param_group *group, const gx_field_value *field)
{
    for (int f = 0; f < group->n_fields; f++) {
        if (strcmp(group->fields[f].key, field->key) == 0) {
            group->fields[f] = *field;
            return;
        }
    }
    group->fields[group->n_fields++] = *field;
}

static bool add_group(gx_builder *builder, gx_pos pos)
{
    gx_training *training = &builder->training;
    gx_param_group *group = &training->groups[training->n_groups];
    const gx_param_group *base = &training->groups[0];
    const int most = GX_MAX_ATTRS + base->n_fields;

    *group = (gx_param_group){ .pos = pos };
    group->fields =
        gx_arena_alloc(builder->graph->arena, (size_t)(most + 1) * sizeof *group->fields);
    if (!group->fields)
        return false;
    memcpy(group->fields, base->fields, (size_t)base->n_fields * sizeof *group->fields);
    group->n_fields = base->n_fields;
    training->n_groups++;
    return true;
}

static bool is_pattern(const char *key)
{
    return strcmp(key, "params") == 0 || strncmp(key, "params.", 7) == 0;
}

/* One field of group `number`, from 1. */
static void check_field(gx_builder *builder, size_t number, gx_field_value field)
{
    gx_param_group *group = &builder->training.groups[number];

    group->n_patterns += is_pattern(field.key);
    group->n_settings += !is_pattern(field.key);
    if (is_pattern(field.key))
        match_pattern(builder, number, &field);
    else if (strcmp(field.key, "lr") == 0)
        group->has_rate = gx_check_rate(builder, &field, &group->rate);
    else if (gx_check_setting(builder, builder->training.op, &field))
        set_field(group, &field);
}

/* Both are needed for a group to mean something. That one of a file names no parameters
 * is what its reader has said. */
static void check_whole(gx_builder *builder, const gx_param_group *group)
{
    const bool is_of_file = group->pos.line > 0;

    if (group->n_patterns == 0 && !is_of_file)
        gx_report(builder->list, group->pos, "the group names no parameters");
    else if (group->n_patterns > 0 && group->n_settings == 0)
        gx_report(builder->list, group->pos,
                  "the group sets nothing: expected lr or a setting of %s",
                  builder->training.op->name);
}

void gx_check_groups(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    const gx_section *section = &graph->optimizer;
    gx_training *training = &builder->training;

    training->n_values = graph->n_values;
    training->group_of =
        gx_arena_alloc(graph->arena, (graph->n_values + 1) * sizeof(int32_t));
    for (int f = 0; training->group_of && f < section->n_fields; f++) {
        gx_field_value field = section->fields[f];
        size_t number;

        if (strncmp(field.key, "groups.", 7) != 0)
            continue;
        const char *rest = split_key(field.key, &number);

        if (!rest || number > training->n_groups - 1) {
            gx_report(builder->list, field.key_pos,
                      "\"%s\": expected \"groups.N.SETTING\", with N from 0 on",
                      field.key);
            return;
        }
        if (number == training->n_groups - 1 && !add_group(builder, field.key_pos))
            return;
        field.key = rest;
        check_field(builder, number + 1, field);
    }
    for (size_t i = 1; i < training->n_groups; i++)
        check_whole(builder, &training->groups[i]);
}
