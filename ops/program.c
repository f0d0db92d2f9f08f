/* What gexec adds around a model's own ops: data, metrics, counters, the log.
 */
#include <string.h>

#include "builder.h"

static const gx_pos nowhere = { 0, 0 };

static bool is_eval(const gx_builder *builder)
{
    return builder->graph->kind == GX_EVAL;
}

/* --- state of gexec's own --- */

typedef struct own_state {
    const char *name;
    gx_dtype dtype;
    int rank;
    int64_t dim[2];
} own_state;

static const own_state own_states[] = {
    { GX_STATE_STEP, GX_I32, 1, { 1 } },
    { GX_STATE_SAMPLE, GX_I32, 1, { 1 } },
    { GX_STATE_EPOCH, GX_I32, 1, { 1 } },
    { GX_STATE_LOG, GX_F32, 2, { GX_LOG_ROWS, GX_MAX_LOGGED } },
    { GX_STATE_LR, GX_F32, 1, { 1 } },
    { GX_STATE_SCALE, GX_F32, 0, { 0 } },
    { GX_STATE_SKIPPED, GX_I32, 1, { 1 } },
    { GX_STATE_TRACKER, GX_I32, 1, { 1 } },
    { GX_EVAL_STEP, GX_I32, 1, { 1 } },
    { GX_EVAL_SAMPLE, GX_I32, 1, { 1 } },
    { GX_EVAL_EPOCH, GX_I32, 1, { 1 } },
    { GX_EVAL_LOG, GX_F32, 2, { GX_LOG_ROWS, GX_MAX_LOGGED } },
};

int32_t gx_add_state(gx_builder *builder, const char *name, gx_dtype dtype, int rank,
                     const int64_t *dim, gx_init init)
{
    gx_graph *graph = builder->graph;
    const int32_t id = gx_graph_add_value(graph, name, GX_VALUE_STATE, dtype, rank, dim,
                                          nowhere, builder->list);

    if (id < 0)
        return -1;
    graph->values[id].has_shape = true;
    graph->values[id].has_init = true;
    graph->values[id].init = init;
    graph->values[id].producer = -1;
    return id;
}

/* False where the model has no such state. */
static bool first_value(const gx_builder *builder, const char *name, gx_init *init)
{
    const gx_training *training = &builder->training;

    *init = (gx_init){ .kind = GX_INIT_ZEROS };
    if (strcmp(name, GX_STATE_LR) == 0) {
        *init = (gx_init){ .kind = GX_INIT_CONSTANT, .a = builder->rate };
        return builder->has_rate;
    }
    if (strcmp(name, GX_STATE_SCALE) == 0)
        *init = (gx_init){ .kind = GX_INIT_CONSTANT, .a = training->first_scale };
    else if (strcmp(name, GX_STATE_SKIPPED) != 0 && strcmp(name, GX_STATE_TRACKER) != 0)
        return true;
    return training->scale != NULL;
}

void gx_ensure_state(gx_builder *builder, const char *name)
{
    gx_graph *graph = builder->graph;

    if (strncmp(name, "gexec.", 6) != 0 || gx_graph_value_id(graph, name) >= 0)
        return;
    for (size_t i = 0; i < sizeof own_states / sizeof own_states[0]; i++) {
        const own_state *state = &own_states[i];
        gx_init init;

        if (strcmp(name, state->name) != 0 || !first_value(builder, name, &init))
            continue;
        gx_add_state(builder, state->name, state->dtype, state->rank, state->dim, init);
    }
}

/* --- data --- */

static const char *row_list(const gx_builder *builder)
{
    return is_eval(builder) ? "data.held" : "data.train";
}

static int64_t n_samples(const gx_builder *builder)
{
    const gx_data_spec *data = &builder->graph->data;

    return is_eval(builder) ? data->n_held : data->n_train;
}

static void add_data_value(gx_builder *builder, const char *name, gx_dtype dtype,
                           int rank, const int64_t *dim, gx_pos pos)
{
    gx_graph *graph = builder->graph;

    if (!name || gx_graph_value_id(graph, name) >= 0)
        return;
    const int32_t id = gx_graph_add_value(graph, name, GX_VALUE_DATA, dtype, rank, dim,
                                          pos, builder->list);

    if (id < 0)
        return;
    graph->values[id].has_shape = true;
    graph->values[id].producer = -1;
}

static void check_samples(gx_builder *builder)
{
    const gx_data_spec *data = &builder->graph->data;
    const gx_pos pos = data->split_path ? data->split_pos : data->columns[0].pos;
    const int64_t n = n_samples(builder);

    if (n == 0 && is_eval(builder))
        gx_report(builder->list, pos, "the data has no held-out rows to evaluate on");
    else if (n == 0)
        gx_report(builder->list, pos, "the data has no rows to train on");
    else if (data->drop_last && !is_eval(builder) && n < data->batch)
        gx_report(builder->list, pos,
                  "there are %lld rows to train on, less than one batch of %lld, and "
                  "drop_last leaves none",
                  (long long)n, (long long)data->batch);
}

void gx_add_data(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    const gx_data_spec *data = &graph->data;
    const int64_t n = n_samples(builder);

    check_samples(builder);
    if (data->streams)
        return;
    for (size_t i = 0; i < data->n_columns; i++) {
        const gx_value *input = &graph->values[data->columns[i].input];
        int64_t dim[GX_MAX_RANK];

        if (!input->has_shape || input->rank < 1)
            continue;
        memcpy(dim, input->dim, sizeof dim);
        dim[0] = data->n_rows;
        add_data_value(builder, gx_arena_format(graph->arena, "data.%s", input->name),
                       input->dtype, input->rank, dim, data->columns[i].pos);
    }
    add_data_value(builder, row_list(builder), GX_I32, 1, &n, nowhere);

    const int32_t rows = gx_graph_value_id(graph, row_list(builder));

    if (rows >= 0)
        graph->values[rows].index_limit = data->n_rows;
}

void gx_add_gathers(gx_builder *builder)
{
    gx_graph *graph = builder->graph;
    const gx_data_spec *data = &graph->data;

    if (data->streams)
        return;
    builder->phase = GX_PHASE_FORWARD;
    for (size_t i = 0; i < data->n_columns; i++) {
        const gx_value *input = &graph->values[data->columns[i].input];
        const gx_pos pos = data->columns[i].pos;

        if (!input->has_shape || input->rank < 1)
            continue;

        const char *name = input->name;
        const char *values = gx_arena_format(graph->arena, "data.%s", name);
        const gx_field_value fields[] = {
            { "data", values, pos, pos },
            { "index", row_list(builder), pos, pos },
            { "sample", is_eval(builder) ? GX_EVAL_SAMPLE : GX_STATE_SAMPLE, pos, pos },
            { "epoch", is_eval(builder) ? GX_EVAL_EPOCH : GX_STATE_EPOCH, pos, pos },
            { "out", name, pos, pos },
            { "shuffle", "true", pos, pos },
        };

        if (values)
            gx_builder_append(builder, "gather", gx_builder_name(builder, name, "gather"),
                              -1, fields, data->shuffle && !is_eval(builder) ? 6 : 5,
                              pos);
    }
}

/* --- metrics --- */

static const char *metric_op(const gx_section *metric)
{
    for (int f = 0; f < metric->n_fields; f++) {
        if (strcmp(metric->fields[f].key, "op") == 0)
            return metric->fields[f].text;
    }
    return metric->op_name ? metric->op_name : metric->name;
}

static const char *const of_training[] = { GX_METRIC_NORM, GX_METRIC_SCALE,
                                           GX_METRIC_SKIPPED };
enum { N_OF_TRAINING = sizeof of_training / sizeof of_training[0] };

static bool is_of_training(const gx_section *metric)
{
    for (int i = 0; i < N_OF_TRAINING; i++) {
        if (strcmp(metric_op(metric), of_training[i]) == 0)
            return true;
    }
    return false;
}

const gx_section *gx_training_metric(const gx_graph *graph, const char *op)
{
    for (size_t i = 0; i < graph->n_metrics; i++) {
        if (strcmp(metric_op(&graph->metrics[i]), op) == 0)
            return &graph->metrics[i];
    }
    return NULL;
}

bool gx_is_training_metric(const gx_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_metrics; i++) {
        if (strcmp(graph->metrics[i].name, name) == 0)
            return is_of_training(&graph->metrics[i]);
    }
    return false;
}

static void check_of_training(gx_builder *builder, const gx_section *metric)
{
    const char *op = metric_op(metric);
    const gx_section *first = gx_training_metric(builder->graph, op);
    const bool is_norm = strcmp(op, GX_METRIC_NORM) == 0;

    if (first != metric)
        gx_report(builder->list, metric->pos,
                  "metric \"%s\" is %s, as \"%s\" is (line %d)", metric->name,
                  is_norm ? "the norm of all gradients" : op, first->name,
                  (int)first->pos.line);
    if (!is_norm && !builder->training.scale)
        gx_report(builder->list, metric->pos,
                  "metric \"%s\" is of a loss_scale, which the optimizer section lacks",
                  metric->name);
    for (int f = 0; f < metric->n_fields; f++) {
        if (strcmp(metric->fields[f].key, "op") != 0)
            gx_report(builder->list, metric->fields[f].key_pos,
                      is_norm ? "%s takes no fields: it is that of all gradients"
                              : "%s takes no fields: it is that of the step",
                      op);
    }
}

/* False after a report. A metric is named after its op, or says which it is. */
static bool is_metric(gx_builder *builder, const gx_section *metric)
{
    const char *name = metric_op(metric);
    const char *near;
    const char *names[64];
    size_t n = 0;
    const gx_op *op = gx_op_find(name);

    if (op && !op->internal)
        return true;
    /* Named as a suggestion: what ends in a scalar. */
    for (int i = 0; i < N_OF_TRAINING; i++)
        names[n++] = of_training[i];
    for (size_t i = 0; n < 64 && (op = gx_op_at(i)); i++) {
        if (!op->internal && op->phase == GX_PHASE_FORWARD && (op->loss || !op->grad))
            names[n++] = op->name;
    }
    near = gx_nearest(name, names, n);
    if (near)
        gx_report(builder->list, metric->pos,
                  "there is no metric \"%s\"; did you mean \"%s\"?", name, near);
    else
        gx_report(
            builder->list, metric->pos,
            "there is no metric \"%s\": name it after its op, or write which that is, "
            "as in {op: accuracy, ...}",
            name);
    return false;
}

void gx_add_metrics(gx_builder *builder)
{
    const gx_graph *graph = builder->graph;

    builder->phase = GX_PHASE_STEP;
    for (size_t i = 0; i < graph->n_metrics; i++) {
        const gx_section *metric = &graph->metrics[i];
        gx_field_value fields[GX_MAX_ARGS + GX_MAX_ATTRS];
        int n = 0;

        if (is_of_training(metric)) {
            check_of_training(builder, metric);
            continue;
        }
        if (!is_metric(builder, metric))
            continue;
        for (int f = 0; f < metric->n_fields && n < GX_MAX_ARGS + GX_MAX_ATTRS; f++) {
            if (strcmp(metric->fields[f].key, "op") != 0)
                fields[n++] = metric->fields[f];
        }
        gx_builder_append(builder, metric_op(metric), metric->name, -1, fields, n,
                          metric->pos);

        const int32_t out = gx_graph_value_id(graph, metric->name);

        if (out >= 0 && graph->values[out].has_shape &&
            (graph->values[out].rank != 0 || graph->values[out].dtype != GX_F32))
            gx_report(builder->list, metric->pos,
                      "metric \"%s\" is not a scalar: %s cannot be one", metric->name,
                      metric_op(metric));
    }
}

/* --- the log and the end of the step --- */

static void log_value(gx_builder *builder, int32_t id, gx_pos pos)
{
    gx_graph *graph = builder->graph;

    for (size_t i = 0; i < graph->n_logged; i++) {
        if (graph->logged[i] == id)
            return;
    }
    if (graph->n_logged == GX_MAX_LOGGED) {
        gx_report(
            builder->list, pos,
            "the log has %d columns: no room for \"%s\" beside loss, scalar outputs "
            "and metrics before it",
            GX_MAX_LOGGED, graph->values[id].name);
        return;
    }
    graph->logged_name[graph->n_logged] = graph->values[id].name;
    graph->logged_tensor[graph->n_logged] = graph->values[id].name;
    graph->logged[graph->n_logged++] = id;
}

static bool is_logged_kind(const gx_value *value)
{
    return value->kind == GX_VALUE_TEMP && value->producer >= 0 && value->has_shape &&
           value->rank == 0 && value->dtype == GX_F32;
}

static void choose_logged(gx_builder *builder)
{
    gx_graph *graph = builder->graph;

    graph->n_logged = 0;
    if (graph->backward) {
        const int32_t loss = gx_graph_value_id(graph, graph->backward);

        if (loss >= 0 && is_logged_kind(&graph->values[loss]))
            log_value(builder, loss, graph->backward_pos);
    }
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int32_t id = gx_graph_value_id(graph, graph->outputs[i]);

        if (id >= 0 && is_logged_kind(&graph->values[id]))
            log_value(builder, id, graph->output_pos ? graph->output_pos[i] : nowhere);
    }
    for (size_t i = 0; i < graph->n_metrics; i++) {
        const int32_t id = gx_graph_value_id(graph, graph->metrics[i].name);

        if (id >= 0 && is_logged_kind(&graph->values[id]))
            log_value(builder, id, graph->metrics[i].pos);
    }
}

static const char *int_text(gx_builder *builder, int64_t value)
{
    return gx_arena_format(builder->graph->arena, "%lld", (long long)value);
}

void gx_add_step_end(gx_builder *builder)
{
    static const char *const column[GX_MAX_LOGGED] = {
        "v0", "v1", "v2", "v3", "v4", "v5"
    };
    const gx_graph *graph = builder->graph;
    const gx_data_spec *data = &graph->data;
    const bool eval = is_eval(builder);
    const bool has_data = data->n_columns > 0;
    gx_field_text fields[4 + GX_MAX_LOGGED + 3] = {
        { "step", eval ? GX_EVAL_STEP : GX_STATE_STEP },
        { "sample", eval ? GX_EVAL_SAMPLE : GX_STATE_SAMPLE },
        { "epoch", eval ? GX_EVAL_EPOCH : GX_STATE_EPOCH },
        { "log", eval ? GX_EVAL_LOG : GX_STATE_LOG },
    };
    size_t n = 4;

    /* What reads the count of steps must see it move on. */
    const bool counts = !eval && gx_graph_value_id(graph, GX_STATE_STEP) >= 0;

    choose_logged(builder);
    if (graph->n_logged == 0 && !has_data && !counts &&
        (eval || !graph->optimizer.op_name))
        return;
    for (size_t i = 0; i < graph->n_logged; i++)
        fields[n++] = (gx_field_text){ column[i], graph->logged_name[i] };
    if (has_data) {
        const int64_t need = data->drop_last && !eval ? data->batch : 1;

        fields[n++] = (gx_field_text){ "batch", int_text(builder, data->batch) };
        fields[n++] = (gx_field_text){ "total", int_text(builder, n_samples(builder)) };
        fields[n++] = (gx_field_text){ "need", int_text(builder, need) };
    }
    builder->phase = GX_PHASE_STEP;
    gx_builder_node(builder, "step.end",
                    gx_graph_node_id(graph, "step.end") < 0
                        ? "step.end"
                        : gx_builder_name(builder, "step", "end"),
                    -1, fields, n);
}
