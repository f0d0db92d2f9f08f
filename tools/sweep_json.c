/* What `gexec sweep` says as JSON: every figure, and every block as it was measured. */
#include "run_report.h"
#include "sweep.h"

static void put_dims(gx_json *json, const gx_sweep *sweep)
{
    gx_json_array(json, "dims");
    for (size_t d = 0; d < sweep->n_dims; d++) {
        gx_json_object(json, NULL);
        gx_json_text(json, "name", sweep->dim[d].name);
        gx_json_array(json, "values");
        for (size_t i = 0; i < sweep->dim[d].n; i++)
            gx_json_text(json, NULL, sweep->dim[d].values[i]);
        gx_json_end(json);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static void put_sizes(gx_json *json, const gx_sweep *sweep, const gx_sweep_point *point)
{
    gx_json_object(json, "sizes");
    for (size_t d = 0; d < sweep->n_dims; d++)
        gx_json_figure(json, sweep->dim[d].name, (double)point->size[d]);
    gx_json_end(json);
    gx_json_object(json, "set");
    for (size_t d = 0; d < sweep->n_dims; d++)
        gx_json_text(json, sweep->dim[d].name, sweep->dim[d].values[point->at[d]]);
    gx_json_end(json);
}

static void put_costs(gx_json *json, const gx_sweep_point *point)
{
    gx_json_object(json, "costs_s");
    gx_json_figure(json, "select", point->select_s);
    gx_json_figure(json, "prepare", point->stats.prepare_s);
    gx_json_figure(json, "prime", point->stats.prime_s);
    gx_json_figure(json, "capture", point->stats.capture_s);
    gx_json_figure(json, "instantiate", point->stats.instantiate_s);
    gx_json_figure(json, "upload", point->stats.upload_s);
    gx_json_figure(json, "first_launch", point->stats.first_launch_s);
    gx_json_end(json);
}

static void put_clocks(gx_json *json, const gx_sweep_point *point)
{
    char text[128];

    gx_json_object(json, "clocks");
    gx_compare_put_series(json, "sm_mhz", &point->sm_mhz);
    gx_compare_put_series(json, "memory_mhz", &point->memory_mhz);
    gx_json_text(json, "throttling",
                 point->sm_mhz.n ? gx_throttle_text(point->throttle, text, sizeof text)
                                 : NULL);
    gx_json_end(json);
}

static void put_figures(gx_json *json, const gx_sweep_point *point)
{
    gx_json_text(json, "plan_mark", point->plan.text);
    gx_idle_flags_put(json, point->idle);
    gx_json_integer(json, "block_steps", point->block);
    gx_json_integer(json, "graph_nodes", point->stats.graph_nodes);
    gx_json_integer(json, "steps_per_launch", point->steps_per_launch);
    gx_json_bool(json, "step_loop", point->step_loop);
    gx_compare_put_ways(json, point->way, point->steps_per_launch);
    gx_compare_put_series(json, "ratio_graph_eager", &point->ratio);
    gx_compare_put_series(json, "ratio_graph_unfused", &point->ratio_unfused);
    gx_json_reals(json, "place_of_graph_in_pair", point->order.values, point->order.n);
    gx_json_figure(json, "empty_graph_host_s", point->empty_s);
    gx_json_figure(json, "pays_back_after_steps", point->pays_after);
    put_costs(json, point);
    put_clocks(json, point);
    gx_compare_put_bits(json, &point->difference, point->bits_steps, point->n_compared);
}

static void put_point(gx_json *json, const gx_sweep *sweep, const gx_sweep_point *point)
{
    const bool failed = point->status != GX_OK;

    gx_json_object(json, NULL);
    put_sizes(json, sweep, point);
    gx_json_text(json, "result",
                 failed               ? "failed"
                 : point->interrupted ? "interrupted"
                                      : "done");
    gx_json_text(json, "status", failed ? gx_status_name(point->status) : NULL);
    gx_json_text(json, "reason", failed ? point->reason : NULL);
    if (!failed)
        put_figures(json, point);
    gx_json_end(json);
}

static const char *text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

gx_status gx_sweep_write_json(const gx_sweep *sweep, const char *path, gx_error *err)
{
    const gx_session session = { .device = sweep->device,
                                 .device_info = sweep->device_info };
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "schema", "gexec-sweep/1");
    gx_json_text(json, "command", "sweep");
    gx_json_text(json, "model", sweep->model);
    gx_json_text(json, "file", sweep->args->names[0]);
    gx_json_text(json, "precision", sweep->precision);
    gx_json_environment(json, "environment", &session);
    gx_json_text(json, "driver", text_or_null(sweep->driver));
    gx_json_text(json, "clocks_lack", text_or_null(sweep->clocks_lack));
    gx_json_text(json, "seed", gx_words_seed(sweep->args->seed).text);
    if (sweep->args->steps_per_launch == GX_STEPS_AUTO)
        gx_json_text(json, "steps_per_launch", "auto");
    else
        gx_json_integer(json, "steps_per_launch", sweep->args->steps_per_launch);
    gx_json_bool(json, "interrupted", sweep->interrupted);
    put_dims(json, sweep);
    gx_json_integer(json, "points_planned", (int64_t)sweep->n_points);
    gx_json_array(json, "points");
    for (size_t i = 0; i < sweep->n_points; i++)
        if (sweep->point[i].begun)
            put_point(json, sweep, &sweep->point[i]);
    gx_json_end(json);
    gx_json_end(json);
    st = gx_json_write(json, path, err);
    gx_json_free(json);
    return st;
}
