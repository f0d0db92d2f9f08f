/* The optimizer section: which row, its settings, and what stands beside it. */
#include <string.h>

#include "builder.h"
#include "schedule.h"

static const gx_op *find_optimizer(gx_builder *builder)
{
    const gx_section *section = &builder->graph->optimizer;
    const gx_op *op = gx_op_find(section->op_name);
    const char *names[64];
    char all[256] = "";
    size_t n = 0;

    if (op && op->phase == GX_PHASE_OPTIMIZER && !op->internal)
        return op;
    for (size_t i = 0; (op = gx_op_at(i)); i++) {
        if (op->phase != GX_PHASE_OPTIMIZER || op->internal || n == 64)
            continue;
        names[n++] = op->name;
        if (strlen(all) + strlen(op->name) + 3 < sizeof all) {
            strcat(all, n > 1 ? ", " : "");
            strcat(all, op->name);
        }
    }
    const char *near = gx_nearest(section->op_name, names, n);

    if (near)
        gx_report(builder->list, section->pos,
                  "there is no optimizer \"%s\"; did you mean \"%s\"?", section->op_name,
                  near);
    else
        gx_report(builder->list, section->pos,
                  "there is no optimizer \"%s\"; there are %s", section->op_name, all);
    return NULL;
}

bool gx_check_rate(gx_builder *builder, const gx_field_value *field, double *rate)
{
    double read = 0;

    if (!gx_read_real(field->text, &read) || !(read >= 0)) {
        gx_report(builder->list, field->pos, "lr is \"%s\", expected a number, 0 or more",
                  field->text);
        return false;
    }
    if (!gx_fits_f32(read)) {
        gx_report(builder->list, field->pos, "lr is %s, which is out of f32's range",
                  field->text);
        return false;
    }
    *rate = read;
    return true;
}

bool gx_check_setting(gx_builder *builder, const gx_op *op, const gx_field_value *written)
{
    int index;
    gx_attr attr = { 0 };
    const gx_field *field = gx_field_find(op, written->key, &index);

    if (field && !gx_is_tensor_field(field) && strcmp(field->name, "accumulate") != 0)
        return gx_read_attr(builder, field, written->text, written->pos, &attr);

    const char *near = gx_nearest_field(op, written->key, false);
    const char *const rate = "lr";

    if (!near)
        near = gx_nearest(written->key, &rate, 1);
    if (near)
        gx_report(builder->list, written->key_pos,
                  "%s has no setting \"%s\"; did you mean \"%s\"?", op->name,
                  written->key, near);
    else
        gx_report(builder->list, written->key_pos, "%s has no setting \"%s\"", op->name,
                  written->key);
    return false;
}

/* --- the schedule --- */

static bool is_one_of(const char *key, const char *const *keys)
{
    for (; *keys; keys++) {
        if (strcmp(*keys, key) == 0)
            return true;
    }
    return false;
}

static const gx_schedule_kind *find_kind(gx_builder *builder, const gx_field_value *field)
{
    const char *names[16];
    size_t n = 0;

    for (const gx_schedule_kind *kind = gx_schedule_kinds; kind->name; kind++) {
        if (strcmp(kind->name, field->text) == 0)
            return kind;
        if (n < 16)
            names[n++] = kind->name;
    }
    const char *near = gx_nearest(field->text, names, n);

    if (near)
        gx_report(builder->list, field->pos,
                  "there is no schedule \"%s\"; did you mean \"%s\"?", field->text, near);
    else
        gx_report(builder->list, field->pos,
                  "there is no schedule \"%s\"; there are constant, step, cosine and "
                  "linear",
                  field->text);
    return NULL;
}

static void check_schedule_setting(gx_builder *builder, const gx_schedule_kind *kind,
                                   const gx_field_value *written)
{
    const gx_op *op = gx_op_find("schedule");
    const char *names[8];
    gx_attr attr = { 0 };
    size_t n = 0;
    int index;

    if (is_one_of(written->key, kind->needs) || is_one_of(written->key, kind->may)) {
        gx_read_attr(builder, gx_field_find(op, written->key, &index), written->text,
                     written->pos, &attr);
        return;
    }
    for (const char *const *key = kind->needs; *key; key++)
        names[n++] = *key;
    for (const char *const *key = kind->may; *key; key++)
        names[n++] = *key;
    const char *near = gx_nearest(written->key, names, n);

    if (near)
        gx_report(builder->list, written->key_pos,
                  "the schedule %s has no setting \"%s\"; did you mean \"%s\"?",
                  kind->name, written->key, near);
    else
        gx_report(builder->list, written->key_pos,
                  "the schedule %s has no setting \"%s\"", kind->name, written->key);
}

/* `field` names the kind; its settings are "schedule.KEY". */
static void check_schedule(gx_builder *builder, const gx_field_value *field)
{
    const gx_section *section = &builder->graph->optimizer;
    const gx_schedule_kind *kind = find_kind(builder, field);
    gx_training *training = &builder->training;
    gx_field_value *fields = gx_arena_alloc(
        builder->graph->arena, (size_t)(section->n_fields + 2) * sizeof *fields);
    int n = 0;

    if (!kind || !fields)
        return;
    fields[n++] = (gx_field_value){ "kind", kind->name, field->key_pos, field->pos };
    for (int f = 0; f < section->n_fields; f++) {
        if (strncmp(section->fields[f].key, "schedule.", 9) != 0)
            continue;
        fields[n] = section->fields[f];
        fields[n].key += 9;
        check_schedule_setting(builder, kind, &fields[n++]);
    }
    for (const char *const *key = kind->needs; *key; key++) {
        bool given = false;

        for (int f = 0; f < n; f++)
            given = given || strcmp(fields[f].key, *key) == 0;
        if (!given)
            gx_report(builder->list, field->pos,
                      "the schedule %s lacks the setting \"%s\"", kind->name, *key);
    }
    training->schedule = fields;
    training->n_schedule = n;
}

/* --- what stands beside --- */

static void check_accumulate(gx_builder *builder, const gx_field_value *field)
{
    gx_training *training = &builder->training;
    int64_t n;

    if (!gx_eval_int(builder->graph, field->text, field->pos, builder->list, &n))
        return;
    if (n < 1 || n > INT32_MAX) {
        gx_report(builder->list, field->pos, "accumulate is %lld, expected 1 to %d",
                  (long long)n, (int)INT32_MAX);
        return;
    }
    training->accumulate = n;
    training->accumulate_field = n > 1 ? field : NULL;
}

static void check_clip(gx_builder *builder, const gx_field_value *field)
{
    double most;

    if (!gx_read_real(field->text, &most) || !(most > 0) || !gx_fits_f32(most))
        gx_report(builder->list, field->pos,
                  "clip_norm is \"%s\", expected a number above 0", field->text);
    else
        builder->training.clip = field;
}

/* True where the field is none of the row's own. */
static bool check_beside(gx_builder *builder, const gx_field_value *field)
{
    if (strcmp(field->key, "schedule") == 0)
        check_schedule(builder, field);
    else if (strcmp(field->key, "accumulate") == 0)
        check_accumulate(builder, field);
    else if (strcmp(field->key, "clip_norm") == 0)
        check_clip(builder, field);
    else
        return gx_check_mixed(builder, field) ||
               strncmp(field->key, "schedule.", 9) == 0 ||
               strncmp(field->key, "groups.", 7) == 0;
    return true;
}

/* A setting of a schedule that is not named, as code may give it. */
static void check_unnamed_schedule(gx_builder *builder)
{
    const gx_section *section = &builder->graph->optimizer;
    const gx_field_value *setting = NULL;

    for (int f = 0; f < section->n_fields; f++) {
        if (strcmp(section->fields[f].key, "schedule") == 0)
            return;
        if (!setting && strncmp(section->fields[f].key, "schedule.", 9) == 0)
            setting = &section->fields[f];
    }
    if (setting)
        gx_report(builder->list, setting->key_pos,
                  "\"%s\" needs \"schedule\", the name of one", setting->key);
}

static void check_fields(gx_builder *builder, const gx_op *op, gx_param_group *base)
{
    const gx_section *section = &builder->graph->optimizer;

    for (int f = 0; f < section->n_fields; f++) {
        const gx_field_value *field = &section->fields[f];

        if (strcmp(field->key, "lr") == 0) {
            base->has_rate = true;
            builder->has_rate = gx_check_rate(builder, field, &builder->rate);
        } else if (!check_beside(builder, field)) {
            gx_check_setting(builder, op, field);
            base->fields[base->n_fields++] = *field;
        }
    }
    check_unnamed_schedule(builder);
}

void gx_check_optimizer(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    const gx_section *section = &graph->optimizer;
    const gx_op *op = find_optimizer(builder);
    gx_training *training = &builder->training;
    const size_t most = (size_t)section->n_fields + 1;
    gx_param_group *groups = gx_arena_alloc(graph->arena, (most + 1) * sizeof *groups);

    training->accumulate = 1;
    if (!op || !groups)
        return;
    groups[0].fields =
        gx_arena_alloc(graph->arena, (most + 1) * sizeof *groups[0].fields);
    groups[0].pos = section->pos;
    if (!groups[0].fields)
        return;
    training->op = op;
    training->groups = groups;
    training->n_groups = 1;
    check_fields(builder, op, &groups[0]);
    if (!groups[0].has_rate && op->default_rate > 0) {
        builder->rate = op->default_rate;
        builder->has_rate = true;
    } else if (!groups[0].has_rate) {
        gx_report(builder->list, section->pos, "%s lacks the setting \"lr\": a number",
                  op->name);
    }
    graph->rate = builder->rate;
    gx_check_groups(builder);
}
