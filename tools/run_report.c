/* What `gexec run` says at its end: as text and as JSON. */
#include "run_report.h"

#include <stdlib.h>

#include "host_tensor.h"
#include "remarks.h"

/* --- text --- */

static void print_columns(FILE *out, size_t n, const char *const *names,
                          const double *values)
{
    for (size_t c = 0; c < n; c++)
        fprintf(out, "%s%s %s", c ? "  " : "", names[c], gx_words_real(values[c]).text);
}

static void print_figures(const char *title, const gx_evaluation *figures,
                          const gx_graph *graph, size_t n, const char *const *names,
                          FILE *out)
{
    fprintf(out, "  %-12s", title);
    for (size_t c = 0; c < n; c++)
        fprintf(out, "%s%s %s%s", c ? "  " : "", names[c],
                gx_words_real(figures->value[c]).text, gx_average_mark(graph, c));
    fprintf(out, "  (%lld rows)\n", (long long)figures->rows);
}

static void print_history(const gx_run *run, FILE *out)
{
    const gx_history *const history = &run->history;
    const int64_t n_columns = (int64_t)history->n_columns;

    if (history->n_columns && history->n_rows) {
        fputs("  first step  ", out);
        print_columns(out, history->n_columns, history->names, history->rows);
        fputs("\n  last step   ", out);
        print_columns(out, history->n_columns, history->names,
                      history->rows + (history->n_rows - 1) * n_columns);
        fputc('\n', out);
    }
    if (history->not_finite_from)
        fprintf(out, "  the loss is not finite from step %lld on\n",
                (long long)history->not_finite_from);
    if (history->n_means)
        print_figures("last epoch", &history->means[history->n_means - 1],
                      run->session.graph[GX_PROGRAM_TRAIN], history->n_columns,
                      history->names, out);
    if (history->n_evaluations)
        print_figures("held out", &history->evaluations[history->n_evaluations - 1],
                      gx_eval_graph(&run->session), history->n_held_columns,
                      history->held_names, out);
}

static gx_status print_output(gx_run *run, const gx_value_info *value, FILE *out,
                              gx_error *err)
{
    gx_tensor tensor;

    GX_TRY(gx_host_tensor_read(run->history.last, value,
                               gx_session_dtype(&run->session, value), &tensor, err));
    const gx_tensor_summary summary = gx_host_tensor_summary(&tensor);
    fprintf(out, "  %s %s %s", value->name, gx_dtype_name(tensor.dtype),
            gx_words_shape(value->rank, value->dim).text);
    if (gx_count(&tensor) == 1)
        fprintf(out, "  %s\n", gx_words_real(gx_host_tensor_at(&tensor, 0)).text);
    else if (gx_count(&tensor) == 0)
        fputs("  empty\n", out);
    else {
        fprintf(out, "  mean %s  least %s  most %s", gx_words_real(summary.mean).text,
                gx_words_real(summary.least).text, gx_words_real(summary.most).text);
        if (summary.n_bad)
            fprintf(out, "  NaN or infinite: %lld", (long long)summary.n_bad);
        fputc('\n', out);
    }
    free(tensor.data);
    return GX_OK;
}

static gx_status print_outputs(gx_run *run, FILE *out, gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->history.last_program];

    for (size_t i = 0; run->history.last && i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (value.kind == GX_VALUE_TEMP && value.is_output)
            GX_TRY(print_output(run, &value, out, err));
    }
    return GX_OK;
}

static void print_launches(const gx_run *run, FILE *out)
{
    const gx_exec_stats stats = gx_exec_stats_get(run->exec);

    fprintf(
        out,
        "  launches    %lld graph launches, %lld eager steps, %lld rebuilds; a step is "
        "%s launches\n",
        (long long)stats.graph_launches, (long long)stats.eager_steps,
        (long long)stats.rebuilds, gx_words_count(stats.launches_per_step).text);
    fprintf(out, "  build       %s; device memory %s; plan %s\n",
            gx_words_seconds(run->build_s).text,
            gx_words_bytes((double)stats.device_bytes).text,
            gx_plan_mark(run->session.plan[run->program]).text);
}

/* What has become of the scale of the loss; false: the model has none. */
static gx_status read_scale(const gx_run *run, bool *has, double *scale, double *skipped,
                            gx_error *err)
{
    gx_tensor of_scale = { .dtype = GX_F64, .data = scale };
    gx_tensor of_skipped = { .dtype = GX_F64, .rank = 1, .dim = { 1 }, .data = skipped };

    *has = gx_graph_find(run->session.graph[GX_PROGRAM_TRAIN], "gexec.skipped") >= 0;
    if (!*has)
        return GX_OK;
    GX_TRY(gx_state_read(run->session.state, "gexec.scale", &of_scale, err));
    return gx_state_read(run->session.state, "gexec.skipped", &of_skipped, err);
}

static gx_status print_scale(const gx_run *run, FILE *out, gx_error *err)
{
    double scale = 0, skipped = 0;
    bool has;

    GX_TRY(read_scale(run, &has, &scale, &skipped, err));
    if (has)
        fprintf(out, "  loss scale  %s; %.0f update%s skipped\n",
                gx_words_real(scale).text, skipped, skipped == 1.0 ? "" : "s");
    return GX_OK;
}

gx_status gx_run_print(gx_run *run, FILE *out, gx_error *err)
{
    const gx_session *const session = &run->session;
    const gx_history *const history = &run->history;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];

    fprintf(out, "%s: ", gx_graph_name(graph));
    if (history->interrupted)
        fprintf(out, "interrupted after %lld of %lld steps", (long long)history->steps,
                (long long)history->n_steps);
    else
        fprintf(out, "%lld step%s", (long long)history->steps,
                history->steps == 1 ? "" : "s");
    if (history->n_epochs)
        fprintf(out, ", %lld epoch%s", (long long)history->epochs,
                history->epochs == 1 ? "" : "s");
    if (session->device == GX_CPU)
        fputs(", on the CPU", out);
    else
        fprintf(out, ", %s on %s", gx_mode_name(session->mode),
                gx_session_place(session).text);
    fprintf(out, ", %s%s, seed %s\n", gx_graph_precision(graph),
            session->needs.exact ? " kept in double" : "",
            gx_words_seed(session->args->seed).text);
    print_history(run, out);
    GX_TRY(print_scale(run, out, err));
    fprintf(out, "  time        %s for the steps",
            gx_words_seconds(history->train_s).text);
    if (history->steps && history->train_s > 0)
        fprintf(out, " (%s a step)",
                gx_words_seconds(history->train_s / (double)history->steps).text);
    if (history->n_evaluations)
        fprintf(out, ", %s for evaluation", gx_words_seconds(history->evaluate_s).text);
    fputc('\n', out);
    if (session->streams)
        fprintf(out, "  data wait   %s a step\n",
                gx_words_seconds(gx_history_wait(history)).text);
    if (session->device != GX_CPU && session->args->verbose)
        print_launches(run, out);
    if (!gx_graph_trains(graph) || session->args->verbose)
        GX_TRY(print_outputs(run, out, err));
    return GX_OK;
}

/* --- JSON --- */

void gx_json_environment(gx_json *json, const char *key, const gx_session *session)
{
    const gx_device_info *const info = &session->device_info;
    const bool gpu = session->device != GX_CPU;

    gx_json_object(json, key);
    gx_json_text(json, "gexec", gx_version());
    gx_json_text(json, "card", gpu ? info->name : NULL);
    gx_json_text(json, "driver_cuda",
                 gpu ? gx_words_cuda_version(info->driver_version).text : NULL);
    gx_json_text(json, "toolkit_cuda",
                 gpu ? gx_words_cuda_version(info->runtime_version).text : NULL);
    if (gpu)
        gx_json_integer(json, "cublaslt", (int64_t)info->cublaslt_version);
    else
        gx_json_text(json, "cublaslt", NULL);
    gx_json_object(json, "variables");
    for (size_t i = 0; gx_cuda_variables[i]; i++)
        if (getenv(gx_cuda_variables[i]))
            gx_json_text(json, gx_cuda_variables[i], getenv(gx_cuda_variables[i]));
    gx_json_end(json);
    gx_json_end(json);
}

static void put_curves(gx_json *json, const gx_history *history)
{
    double *column = malloc((size_t)(history->n_rows + 1) * sizeof *column);

    gx_json_object(json, "curves");
    for (size_t c = 0; c < history->n_columns && column; c++) {
        for (int64_t i = 0; i < history->n_rows; i++)
            column[i] = history->rows[i * (int64_t)history->n_columns + (int64_t)c];
        gx_json_reals(json, history->names[c], column, (size_t)history->n_rows);
    }
    gx_json_end(json);
    free(column);
}

static void put_figures(gx_json *json, const char *key, const gx_evaluation *figures,
                        size_t n, size_t n_columns, const char *const *names)
{
    gx_json_array(json, key);
    for (size_t i = 0; i < n; i++) {
        gx_json_object(json, NULL);
        gx_json_integer(json, "step", figures[i].step);
        gx_json_integer(json, "epoch", figures[i].epoch);
        gx_json_integer(json, "rows", figures[i].rows);
        for (size_t c = 0; c < n_columns; c++)
            gx_json_real(json, names[c], figures[i].value[c]);
        gx_json_end(json);
    }
    gx_json_end(json);
}

/* How the figures of many rows came about, by name. */
static void put_averages(gx_json *json, const gx_graph *graph)
{
    static const char *const words[] = { [GX_AVERAGE_MEAN] = "mean",
                                         [GX_AVERAGE_EXP_OF_MEAN_LOG] = "exp_of_mean_log",
                                         [GX_AVERAGE_SUM] = "sum",
                                         [GX_AVERAGE_STEPS] = "mean_of_steps" };

    gx_json_object(json, "averages");
    for (size_t i = 0; gx_graph_logged(graph, i); i++)
        gx_json_text(json, gx_graph_logged(graph, i),
                     words[gx_graph_logged_average(graph, i)]);
    gx_json_end(json);
}

static gx_status put_outputs(gx_json *json, gx_run *run, gx_error *err)
{
    const gx_graph *const graph = run->session.graph[run->history.last_program];

    gx_json_array(json, "outputs");
    for (size_t i = 0; run->history.last && i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        gx_tensor tensor;

        if (value.kind != GX_VALUE_TEMP || !value.is_output)
            continue;
        GX_TRY(gx_host_tensor_read(run->history.last, &value,
                                   gx_session_dtype(&run->session, &value), &tensor,
                                   err));
        const gx_tensor_summary summary = gx_host_tensor_summary(&tensor);
        gx_json_object(json, NULL);
        gx_json_text(json, "name", value.name);
        gx_json_text(json, "dtype", gx_dtype_name(tensor.dtype));
        gx_json_shape(json, "shape", value.rank, value.dim);
        gx_json_real(json, "mean", summary.mean);
        gx_json_real(json, "least", summary.least);
        gx_json_real(json, "most", summary.most);
        gx_json_integer(json, "not_finite", summary.n_bad);
        gx_json_end(json);
        free(tensor.data);
    }
    gx_json_end(json);
    return GX_OK;
}

static void put_stats(gx_json *json, const gx_run *run)
{
    const gx_exec_stats stats = gx_exec_stats_get(run->exec);
    const gx_history *const history = &run->history;

    gx_json_object(json, "times_s");
    gx_json_figure(json, "state", run->session.state_s);
    gx_json_figure(json, "build", run->build_s);
    gx_json_figure(json, "steps", history->train_s);
    gx_json_figure(json, "evaluation", history->n_evaluations ? history->evaluate_s : -1);
    gx_json_figure(json, "data_wait_per_step", gx_history_wait(history));
    gx_json_end(json);
    if (run->session.device == GX_CPU)
        return;
    gx_json_object(json, "launches");
    gx_json_integer(json, "graph", stats.graph_launches);
    gx_json_integer(json, "eager_steps", stats.eager_steps);
    gx_json_integer(json, "rebuilds", stats.rebuilds);
    gx_json_integer(json, "instantiations", stats.instantiations);
    gx_json_figure(json, "per_step", (double)stats.launches_per_step);
    gx_json_integer(json, "graph_nodes", stats.graph_nodes);
    gx_json_end(json);
}

static gx_status put_scale(gx_json *json, const gx_run *run, gx_error *err)
{
    double scale = 0, skipped = 0;
    bool has;

    GX_TRY(read_scale(run, &has, &scale, &skipped, err));
    if (!has) {
        gx_json_text(json, "loss_scale", NULL);
        return GX_OK;
    }
    gx_json_object(json, "loss_scale");
    gx_json_real(json, "scale", scale);
    gx_json_integer(json, "skipped", (int64_t)skipped);
    gx_json_end(json);
    return GX_OK;
}

gx_status gx_run_write_json(gx_run *run, gx_error *err)
{
    const gx_session *const session = &run->session;
    const gx_history *const history = &run->history;
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "command", "run");
    gx_json_text(json, "model", gx_graph_name(graph));
    gx_json_text(json, "file", session->args->names[0]);
    gx_json_text(json, "mode", gx_mode_name(session->mode));
    gx_json_text(json, "device", gx_session_place(session).text);
    gx_json_text(json, "precision", gx_graph_precision(graph));
    gx_json_bool(json, "exact", session->needs.exact);
    gx_json_text(json, "plan", gx_plan_mark(session->plan[run->program]).text);
    gx_json_text(json, "seed", gx_words_seed(session->args->seed).text);
    gx_json_integer(json, "steps", history->steps);
    gx_json_integer(json, "epochs", history->epochs);
    gx_json_integer(json, "steps_per_launch", session->steps_per_launch);
    gx_json_bool(json, "step_loop", session->step_loop);
    gx_json_bool(json, "streams", session->streams);
    gx_json_bool(json, "interrupted", history->interrupted);
    if (history->not_finite_from)
        gx_json_integer(json, "loss_not_finite_from", history->not_finite_from);
    else
        gx_json_text(json, "loss_not_finite_from", NULL);
    gx_json_environment(json, "environment", session);
    gx_idle_flags_put(json, gx_idle_flags_of(session));
    put_stats(json, run);
    put_averages(json, graph);
    put_figures(json, "epoch_means", history->means, history->n_means, history->n_columns,
                history->names);
    put_figures(json, "held_out", history->evaluations, history->n_evaluations,
                history->n_held_columns, history->held_names);
    st = put_scale(json, run, err);
    st = gx_first(st, put_outputs(json, run, err));
    put_curves(json, history);
    gx_json_end(json);
    if (st == GX_OK)
        st = gx_json_write(json, session->args->json, err);
    gx_json_free(json);
    return st;
}
