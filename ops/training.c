/* The optimizer section: its settings, and one update for each trained parameter. */
#include <string.h>

#include "builder.h"

static const gx_op *find_optimizer(gx_builder *builder)
{
    const gx_section *section = &builder->graph->optimizer;
    const gx_op *op = gx_op_find(section->op_name);
    const char *names[64];
    size_t n = 0;

    if (op && op->phase == GX_PHASE_OPTIMIZER)
        return op;
    for (size_t i = 0; (op = gx_op_at(i)); i++) {
        if (op->phase == GX_PHASE_OPTIMIZER && n < 64)
            names[n++] = op->name;
    }
    const char *near = gx_nearest(section->op_name, names, n);

    if (near)
        gx_report(builder->list, section->pos,
                  "there is no optimizer \"%s\"; did you mean \"%s\"?", section->op_name,
                  near);
    else
        gx_report(builder->list, section->pos,
                  "there is no optimizer \"%s\"; there are sgd and adamw",
                  section->op_name);
    return NULL;
}

static void check_rate(gx_builder *builder, const gx_field_value *field)
{
    if (!gx_read_real(field->text, &builder->rate) || !(builder->rate >= 0)) {
        gx_report(builder->list, field->pos, "lr is \"%s\", expected a number, 0 or more",
                  field->text);
        return;
    }
    if (!gx_fits_f32(builder->rate)) {
        gx_report(builder->list, field->pos, "lr is %s, which is out of f32's range",
                  field->text);
        return;
    }
    builder->has_rate = true;
}

static void check_setting(gx_builder *builder, const gx_op *op,
                          const gx_field_value *written)
{
    int index;
    gx_attr attr = { 0 };
    const gx_field *field = gx_field_find(op, written->key, &index);

    if (field && !gx_is_tensor_field(field)) {
        gx_read_attr(builder, field, written->text, written->pos, &attr);
        return;
    }
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
}

void gx_check_optimizer(gx_builder *builder)
{
    const gx_section *section = &builder->graph->optimizer;
    const gx_op *op = find_optimizer(builder);
    bool given = false;

    if (!op)
        return;
    for (int f = 0; f < section->n_fields; f++) {
        if (strcmp(section->fields[f].key, "lr") == 0) {
            given = true;
            check_rate(builder, &section->fields[f]);
        } else {
            check_setting(builder, op, &section->fields[f]);
        }
    }
    if (!given && op->default_rate > 0) {
        builder->rate = op->default_rate;
        builder->has_rate = true;
    } else if (!given) {
        gx_report(builder->list, section->pos, "%s lacks the setting \"lr\": a number",
                  op->name);
    }
    builder->graph->rate = builder->rate;
}

/* A parameter's gradient: derived, or made by the model under the name "PARAM.grad". */
static const char *gradient_of(gx_builder *builder, int32_t param)
{
    const gx_graph *graph = builder->graph;

    if (graph->backward)
        return gx_builder_gradient(builder, param);

    const char *name =
        gx_arena_format(graph->arena, "%s.grad", graph->values[param].name);
    const int32_t id = name ? gx_graph_value_id(graph, name) : -1;

    return id >= 0 && graph->values[id].producer >= 0 ? name : NULL;
}

/* What the row updates besides the parameter is state of that parameter: "PARAM.m". */
static const char *moment(gx_builder *builder, int32_t param, const char *field)
{
    gx_graph *graph = builder->graph;
    const gx_value of = graph->values[param];
    const char *name = gx_arena_format(graph->arena, "%s.%s", of.name, field);

    if (name) /* nothing is called so: gx_check_moment_names */
        gx_add_state(builder, name, of.dtype, of.rank, of.dim,
                     (gx_init){ .kind = GX_INIT_ZEROS });
    return name;
}

void gx_check_moment_names(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;
    const gx_op *op =
        graph->optimizer.op_name ? gx_op_find(graph->optimizer.op_name) : NULL;

    if (!op || op->phase != GX_PHASE_OPTIMIZER)
        return;
    for (size_t i = 0; i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];

        for (const gx_field *field = op->fields; field->name; field++) {
            if (value->kind == GX_VALUE_PARAM && !value->frozen &&
                field->kind == GX_FIELD_INOUT && strcmp(field->name, "param") != 0)
                gx_report_taken_name(
                    builder,
                    gx_arena_format(graph->arena, "%s.%s", value->name, field->name),
                    "state that the optimizer keeps", value->name);
        }
    }
}

static const char *operand(gx_builder *builder, int32_t param, const gx_field *field,
                           const char *gradient)
{
    if (strcmp(field->name, "param") == 0)
        return builder->graph->values[param].name;
    if (strcmp(field->name, "grad") == 0)
        return gradient;
    if (field->kind == GX_FIELD_INOUT)
        return moment(builder, param, field->name);
    return strcmp(field->name, "lr") == 0 ? GX_STATE_LR : GX_STATE_STEP;
}

static void add_update(gx_builder *builder, const gx_op *op, int32_t param,
                       const char *gradient)
{
    gx_graph *graph = builder->graph;
    const gx_section *section = &graph->optimizer;
    gx_field_value fields[GX_MAX_ARGS + GX_MAX_ATTRS];
    int n = 0;

    for (const gx_field *field = op->fields; field->name; field++) {
        if (gx_is_tensor_field(field))
            fields[n++] =
                (gx_field_value){ field->name, operand(builder, param, field, gradient),
                                  section->pos, section->pos };
    }
    for (int f = 0; f < section->n_fields; f++) {
        if (strcmp(section->fields[f].key, "lr") != 0)
            fields[n++] = section->fields[f];
    }
    for (int f = 0; f < n; f++) {
        if (!fields[f].text)
            return;
    }
    gx_builder_append(builder, op->name,
                      gx_builder_name(builder, graph->values[param].name, op->name), -1,
                      fields, n, section->pos);
}

void gx_add_optimizer(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;
    const gx_op *op = gx_op_find(graph->optimizer.op_name);
    const size_t n_values = graph->n_values;
    const size_t before = gx_diagnostics_count(builder->list);
    size_t n_updates = 0;

    builder->phase = GX_PHASE_OPTIMIZER;
    for (size_t i = 0; i < n_values; i++) {
        const gx_value *value = &graph->values[i];

        if (value->kind != GX_VALUE_PARAM || value->frozen)
            continue;
        const char *gradient = gradient_of(builder, (int32_t)i);

        if (!gradient)
            continue;
        add_update(builder, op, (int32_t)i, gradient);
        n_updates++;
        /* A setting out of range would be reported again for each parameter. */
        if (gx_diagnostics_count(builder->list) > before)
            return;
    }
    if (n_updates == 0 && !graph->backward)
        gx_report(
            builder->list, graph->optimizer.pos,
            "the optimizer finds no gradients: expected `backward: LOSS`, or ops that "
            "make \"PARAM.grad\"");
}
