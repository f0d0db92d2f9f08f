/* What follows the backward pass: rates, sums of gradients, their norm, the updates. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"

/* A parameter that is updated, and by what. */
typedef struct update {
    int32_t param;
    int32_t ready; /* the node that makes the gradient */
    const char *gradient;
    gx_param_group *group; /* NULL where there is no optimizer */
} update;

typedef struct updates {
    update *list;
    size_t n;
    const char *norm, *factor; /* tensors; NULL: not made */
    const char *update;        /* stands for the step of an update; NULL: the step does */
    size_t n_before;           /* diagnostics so far */
} updates;

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

static void find_updates(gx_builder *builder, updates *all)
{
    const gx_graph *graph = builder->graph;
    gx_training *training = &builder->training;

    all->list = gx_arena_alloc(graph->arena, (graph->n_values + 1) * sizeof *all->list);
    all->n_before = gx_diagnostics_count(builder->list);
    for (size_t i = 0; all->list && i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];

        if (value->kind != GX_VALUE_PARAM || value->frozen)
            continue;
        const char *gradient = gradient_of(builder, (int32_t)i);

        if (!gradient)
            continue;
        update *made = &all->list[all->n++];

        const int32_t id = gx_graph_value_id(graph, gradient);

        *made = (update){ .param = (int32_t)i,
                          .ready = id >= 0 ? graph->values[id].producer : -1,
                          .gradient = gradient };
        if (!training->op)
            continue;
        made->group =
            &training->groups[i < training->n_values ? training->group_of[i] : 0];
        made->group->used = true;
    }
}

static int compare_param(const void *a, const void *b)
{
    const update *const x = a, *const y = b;

    return (x->param > y->param) - (x->param < y->param);
}

/* By when the gradient is made; among those of one node as the parameters stand. */
static int compare_ready(const void *a, const void *b)
{
    const update *const x = a, *const y = b;

    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    return compare_param(a, b);
}

static void put_in_order(updates *all, int (*compare)(const void *, const void *))
{
    if (all->n > 1)
        qsort(all->list, all->n, sizeof *all->list, compare);
}

static bool has_failed(const gx_builder *builder, const updates *all)
{
    return gx_diagnostics_count(builder->list) > all->n_before ||
           gx_arena_failed(builder->graph->arena);
}

/* --- state of a parameter --- */

/* "PARAM.FIELD", which nothing is called: gx_check_moment_names. */
static const char *param_state(gx_builder *builder, int32_t param, const char *field,
                               gx_dtype dtype, gx_init init)
{
    gx_graph *graph = builder->graph;
    const gx_value of = graph->values[param];
    const char *name = gx_arena_format(graph->arena, "%s.%s", of.name, field);

    if (name)
        gx_add_state(builder, name, dtype, of.rank, of.dim, init);
    return name;
}

static void check_state_name(gx_builder *builder, const gx_value *value,
                             const char *field)
{
    gx_report_taken_name(
        builder, gx_arena_format(builder->graph->arena, "%s.%s", value->name, field),
        "state that the optimizer keeps", value->name);
}

static const gx_init zeros = { .kind = GX_INIT_ZEROS };

/* A parameter that is f32 is its own master. */
static bool has_master(const gx_builder *builder, const gx_value *param)
{
    return builder->training.master == GX_KEPT_F32 && param->dtype != GX_F32;
}

static bool is_kept(const gx_builder *builder, const gx_field *field,
                    const gx_value *param)
{
    if (field->kind != GX_FIELD_INOUT || strcmp(field->name, "param") == 0)
        return false;
    return strcmp(field->name, "master") != 0 || has_master(builder, param);
}

void gx_check_moment_names(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;
    const gx_op *op = builder->training.op;

    for (size_t i = 0; op && i < graph->n_values; i++) {
        const gx_value *value = &graph->values[i];

        if (value->kind != GX_VALUE_PARAM || value->frozen)
            continue;
        for (const gx_field *field = op->fields; field->name; field++) {
            if (is_kept(builder, field, value))
                check_state_name(builder, value, field->name);
        }
        if (builder->training.accumulate > 1)
            check_state_name(builder, value, "sum");
    }
}

/* --- rates --- */

static const char *numbered(gx_builder *builder, const char *name, size_t number)
{
    return number == 0 ? name
                       : gx_arena_format(builder->graph->arena, "%s.%zu", name, number);
}

static const char *add_schedule(gx_builder *builder, const char *rate, size_t number)
{
    const gx_training *training = &builder->training;
    const gx_pos pos = training->schedule[0].pos;
    const char *name = numbered(builder, GX_RATE, number);
    gx_field_value fields[GX_MAX_ARGS + GX_MAX_ATTRS] = {
        { "lr", rate, pos, pos },
        { "step", GX_STATE_STEP, pos, pos },
        { "out", name, pos, pos },
    };
    int n = 3;

    for (int f = 0; f < training->n_schedule && n < GX_MAX_ATTRS; f++)
        fields[n++] = training->schedule[f];
    if (training->accumulate_field)
        fields[n++] = *training->accumulate_field;
    if (training->scale)
        fields[n++] = (gx_field_value){ "skipped", GX_STATE_SKIPPED, pos, pos };
    if (name)
        gx_builder_append(builder, "schedule", name, -1, fields, n, pos);
    return name;
}

/* Groups without a rate of their own have that of the section. */
static void add_rates(gx_builder *builder, updates *all)
{
    gx_training *training = &builder->training;
    const char *shared = NULL;

    for (size_t i = 0; i < training->n_groups && !has_failed(builder, all); i++) {
        gx_param_group *group = &training->groups[i];
        const bool own = i > 0 && group->has_rate;
        const char *state = own ? numbered(builder, GX_STATE_LR, i) : GX_STATE_LR;

        if (!group->used || !state)
            continue;
        if (own)
            gx_add_state(builder, state, GX_F32, 1, (const int64_t[]){ 1 },
                         (gx_init){ .kind = GX_INIT_CONSTANT, .a = group->rate });
        else if (shared)
            state = shared;
        group->rate_name = state;
        if (training->schedule && state != shared)
            group->rate_name = add_schedule(builder, state, own ? i : 0);
        if (!own)
            shared = group->rate_name;
    }
}

/* --- gradients --- */

static void add_sums(gx_builder *builder, updates *all)
{
    const gx_training *training = &builder->training;

    for (size_t i = 0; i < all->n && !has_failed(builder, all); i++) {
        const char *param = builder->graph->values[all->list[i].param].name;
        const char *sum = param_state(builder, all->list[i].param, "sum", GX_F32, zeros);
        const gx_pos pos = training->accumulate_field->pos;
        const gx_field_value fields[] = {
            { "grad", all->list[i].gradient, pos, pos },
            { "sum", sum, pos, pos },
            { "step", GX_STATE_STEP, pos, pos },
            { "n", training->accumulate_field->text, pos, pos },
        };

        if (!sum)
            return;
        gx_builder_append(builder, "accumulate",
                          gx_builder_name(builder, param, "accumulate"), -1, fields, 4,
                          pos);
        all->list[i].gradient = sum;
    }
}

/* A chain of norms; the last is that of all gradients, and has the factor that clips,
 * unless they are scaled. */
static void add_norm(gx_builder *builder, updates *all)
{
    const gx_field_value *scale = builder->training.scale;
    const gx_field_value *clip = scale ? NULL : builder->training.clip;
    const gx_section *metric = gx_training_metric(builder->graph, GX_METRIC_NORM);
    const gx_pos pos = scale ? scale->pos : clip ? clip->pos : metric->pos;
    const char *name = scale ? GX_SCALED_NORM : metric ? metric->name : GX_GRADIENT_NORM;

    for (size_t i = 0; i < all->n && !has_failed(builder, all); i++) {
        const char *param = builder->graph->values[all->list[i].param].name;
        const bool last = i + 1 == all->n;
        const char *out = last ? name : gx_builder_name(builder, param, "norm");
        gx_field_value fields[6] = { { "grad", all->list[i].gradient, pos, pos },
                                     { "out", out, pos, pos } };
        int n = 2;

        if (!out)
            return;
        if (all->norm)
            fields[n++] = (gx_field_value){ "before", all->norm, pos, pos };
        if (last && clip) {
            fields[n++] = (gx_field_value){ "factor", GX_CLIP, pos, pos };
            fields[n++] = (gx_field_value){ "max_norm", clip->text, pos, pos };
            all->factor = GX_CLIP;
        }
        gx_builder_append(builder, "grad_norm", out, -1, fields, n, pos);
        all->norm = out;
    }
}

/* The scale is taken from the norm, then the gradients are clipped: in one factor. */
static void add_loss_scale(gx_builder *builder, updates *all)
{
    const gx_training *training = &builder->training;
    const gx_graph *graph = builder->graph;
    const gx_section *norm = gx_training_metric(graph, GX_METRIC_NORM);
    const gx_section *scale = gx_training_metric(graph, GX_METRIC_SCALE);
    const gx_section *skipped = gx_training_metric(graph, GX_METRIC_SKIPPED);
    const gx_pos pos = training->scale->pos;
    const gx_field_text made[] = {
        { "norm", all->norm },
        { "step", GX_STATE_STEP },
        { "scale", GX_STATE_SCALE },
        { "skipped", GX_STATE_SKIPPED },
        { "tracker", training->dynamic ? GX_STATE_TRACKER : NULL },
        { "factor", GX_UNSCALE },
        { "update", GX_UPDATE },
        { "out", norm ? norm->name : GX_GRADIENT_NORM },
        { "used", scale ? scale->name : NULL },
        { "count", skipped ? skipped->name : NULL },
        { "max_norm", training->clip ? training->clip->text : NULL },
    };
    gx_field_value fields[GX_MAX_ARGS + GX_MAX_ATTRS];
    int n = 0;

    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (made[i].text)
            fields[n++] = (gx_field_value){ made[i].key, made[i].text, pos, pos };
    }
    for (int i = 0; i < training->n_scaling; i++)
        fields[n++] = training->scaling[i];
    if (training->accumulate_field)
        fields[n++] = *training->accumulate_field;
    gx_builder_append(builder, "loss_scale", GX_UNSCALE, -1, fields, n, pos);
    all->factor = GX_UNSCALE;
    all->update = GX_UPDATE;
}

/* A backward pass that is written by hand has the scale in it, or the updates would take
 * from the gradients what was never in them. */
static bool check_scaled(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    if (graph->backward || gx_graph_value_id(graph, GX_STATE_SCALE) >= 0)
        return true;
    gx_report(builder->list, builder->training.scale->key_pos,
              "loss_scale: no op reads \"" GX_STATE_SCALE
              "\"; a backward pass that is written by hand takes it as the \"dy\" of the "
              "loss's derivative");
    return false;
}

/* --- updates --- */

/* NULL where the field is left out. */
static const char *operand(gx_builder *builder, const updates *all, const update *made,
                           const gx_field *field)
{
    const gx_training *training = &builder->training;
    const gx_value *param = &builder->graph->values[made->param];

    if (strcmp(field->name, "param") == 0)
        return param->name;
    if (strcmp(field->name, "grad") == 0)
        return made->gradient;
    if (strcmp(field->name, "lr") == 0)
        return made->group->rate_name;
    if (strcmp(field->name, "scale") == 0)
        return all->factor;
    if (strcmp(field->name, "step") == 0)
        return all->update                                   ? all->update
               : field->required || training->accumulate > 1 ? GX_STATE_STEP
                                                             : NULL;
    if (strcmp(field->name, "master") == 0)
        return has_master(builder, param)
                   ? param_state(builder, made->param, field->name, GX_F32,
                                 (gx_init){ .kind = GX_INIT_PARAM, .path = param->name })
                   : NULL;
    return param_state(builder, made->param, field->name,
                       gx_moment_type(builder, param->dtype), zeros);
}

static void add_update(gx_builder *builder, const updates *all, const update *made)
{
    const gx_training *training = &builder->training;
    const gx_pos pos = builder->graph->optimizer.pos;
    gx_field_value fields[GX_MAX_ARGS + GX_MAX_ATTRS];
    int n = 0;

    for (const gx_field *field = training->op->fields; field->name; field++) {
        const char *text =
            gx_is_tensor_field(field) ? operand(builder, all, made, field) : NULL;

        if (text)
            fields[n++] = (gx_field_value){ field->name, text, pos, pos };
    }
    for (int f = 0; f < made->group->n_fields; f++)
        fields[n++] = made->group->fields[f];
    if (training->accumulate_field && !all->update)
        fields[n++] = *training->accumulate_field;
    gx_builder_append(builder, training->op->name,
                      gx_builder_name(builder, builder->graph->values[made->param].name,
                                      training->op->name),
                      -1, fields, n, pos);
}

/* A setting out of range would be reported again for each parameter: the first is enough.
 */
static void add_updates(gx_builder *builder, updates *all)
{
    for (size_t i = 0; i < all->n && !has_failed(builder, all); i++)
        add_update(builder, all, &all->list[i]);
}

static void report_no_gradients(gx_builder *builder)
{
    const gx_section *metric = gx_training_metric(builder->graph, GX_METRIC_NORM);

    if (builder->graph->optimizer.op_name)
        gx_report(
            builder->list, builder->graph->optimizer.pos,
            "the optimizer finds no gradients: expected `backward: LOSS`, or ops that "
            "make \"PARAM.grad\"");
    else
        gx_report(builder->list, metric->pos,
                  "metric \"%s\" finds no gradients: expected `backward: LOSS`, or ops "
                  "that make \"PARAM.grad\"",
                  metric->name);
}

void gx_add_training(gx_builder *builder)
{
    const gx_training *training = &builder->training;
    const gx_section *metric = gx_training_metric(builder->graph, GX_METRIC_NORM);
    const bool has_norm = metric || training->clip || training->scale;
    updates all = { .list = NULL };

    if ((!training->op && !has_norm) || (training->scale && !check_scaled(builder)))
        return;
    builder->phase = training->op ? GX_PHASE_OPTIMIZER : GX_PHASE_BACKWARD;
    find_updates(builder, &all);
    if (training->op)
        add_rates(builder, &all);
    /* The norm adds up in the order of the parameters. But the backward pass ends with
     * the first layers: what updates the last ones must not stand behind what waits for
     * those. */
    put_in_order(&all, compare_ready);
    if (training->accumulate > 1)
        add_sums(builder, &all);
    if (has_norm) {
        put_in_order(&all, compare_param);
        add_norm(builder, &all);
        put_in_order(&all, compare_ready);
    }
    if (training->scale && all.norm && !has_failed(builder, &all))
        add_loss_scale(builder, &all);
    if (training->op)
        add_updates(builder, &all);
    if (all.n == 0 && (!builder->graph->backward || metric))
        report_no_gradients(builder);
}
