/* gexec sweep: eager against graph over sizes, one after another in one process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "lines_out.h"
#include "sweep.h"

static gx_status copy_text(const char *text, char **copy, gx_error *err)
{
    *copy = malloc(strlen(text) + 1);
    if (!*copy)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    strcpy(*copy, text);
    return GX_OK;
}

/* --- one point --- */

/* The flags as they are for one point: a size instead of each list. */
static gx_status put_sizes(const gx_sweep *sweep, const gx_sweep_point *point,
                           gx_args *args, gx_error *err)
{
    const gx_pairs *const sets = &sweep->args->sets;
    gx_set *items = malloc((sets->n + 1) * sizeof *items);
    size_t d = 0;

    args->sets.items = items;
    if (!items)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < sets->n; i++) {
        items[i] = sets->items[i];
        if (d < sweep->n_dims && items[i].name == sweep->dim[d].name) {
            items[i].value = sweep->dim[d].values[point->at[d]];
            d++;
        }
    }
    return GX_OK;
}

/* "FILE.batch=8.hidden=128": a plan is for one size. What a name of a file should not
 * hold is written as %2A. */
static gx_status put_plan(const gx_sweep *sweep, const gx_sweep_point *point,
                          gx_args *args, char **file, gx_error *err)
{
    size_t length;
    FILE *out;

    *file = NULL;
    if (!args->plan)
        return GX_OK;
    out = open_memstream(file, &length);
    if (!out)
        return GX_FAIL_NATIVE(err, GX_ERR_MEMORY, errno, "out of memory");
    fputs(args->plan, out);
    for (size_t d = 0; d < sweep->n_dims; d++) {
        fprintf(out, ".%s=", sweep->dim[d].name);
        for (const char *at = sweep->dim[d].values[point->at[d]]; *at; at++)
            fprintf(out, strchr("/%*() ", *at) ? "%%%02X" : "%c", (unsigned char)*at);
    }
    if (fclose(out) != 0)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    args->plan = *file;
    return GX_OK;
}

/* What the model said of itself once it was loaded. */
static gx_status note_model(gx_sweep *sweep, gx_sweep_point *point,
                            const gx_compare *compare, gx_error *err)
{
    const gx_graph *const graph = compare->session.graph[GX_PROGRAM_TRAIN];
    const char *const driver = gx_nvml_driver(compare->nvml);
    const char *const lack = gx_nvml_lack(compare->nvml);

    for (size_t d = 0; d < sweep->n_dims; d++)
        point->size[d] = gx_graph_dim(graph, sweep->dim[d].name);
    if (sweep->model)
        return GX_OK;
    snprintf(sweep->driver, sizeof sweep->driver, "%s", driver ? driver : "");
    snprintf(sweep->clocks_lack, sizeof sweep->clocks_lack, "%s", lack ? lack : "");
    GX_TRY(copy_text(gx_graph_name(graph), &sweep->model, err));
    return copy_text(gx_graph_precision(graph), &sweep->precision, err);
}

static gx_status compare_point(gx_sweep *sweep, gx_sweep_point *point,
                               const gx_args *args, gx_compare *compare, gx_error *err)
{
    GX_TRY(gx_compare_open(compare, args, &(gx_session_needs){ .quiet = true },
                           sweep->device, err));
    GX_TRY(note_model(sweep, point, compare, err));
    GX_TRY(gx_compare_run(compare, err));
    gx_sweep_take(point, compare);
    return GX_OK;
}

/* A failure is the point's alone: the sweep goes on. */
static void measure_point(gx_sweep *sweep, gx_sweep_point *point)
{
    gx_args args = *sweep->args;
    gx_compare compare = { 0 };
    gx_error err = { 0 };
    char *plan = NULL;
    gx_status st = put_sizes(sweep, point, &args, &err);

    point->begun = true;
    if (st == GX_OK)
        st = put_plan(sweep, point, &args, &plan, &err);
    if (st == GX_OK)
        st = compare_point(sweep, point, &args, &compare, &err);
    if (st != GX_OK)
        gx_sweep_fail(point, &err);
    gx_compare_free(&compare);
    free(plan);
    free(args.sets.items);
}

static void measure_all(gx_sweep *sweep)
{
    char text[256];

    for (size_t i = 0; i < sweep->n_points && !gx_interrupted(); i++) {
        gx_sweep_point *const point = &sweep->point[i];

        gx_sweep_point_text(sweep, point, 0, text, sizeof text);
        gx_say(sweep->args, "%zu of %zu: %s", i + 1, sweep->n_points, text);
        measure_point(sweep, point);
    }
    sweep->interrupted = gx_interrupted();
}

/* --- results --- */

typedef void put_fn(const gx_sweep *sweep, FILE *out);

static gx_status write_text(const gx_sweep *sweep, put_fn *put, const char *path,
                            gx_error *err)
{
    gx_lines_out lines;

    GX_TRY(gx_lines_begin(&lines, err));
    put(sweep, lines.out);
    return gx_lines_end(&lines, path, err);
}

/* A file that cannot be written keeps none of the others back. */
static int report(const gx_sweep *sweep)
{
    const gx_args *const args = sweep->args;
    const gx_sweep_point *const failure = gx_sweep_common_failure(sweep);
    gx_error err[3] = { { .native = 0 } };
    int exit_status = gx_sweep_exit(sweep);

    if (failure) {
        gx_error same = { .status = failure->status };

        snprintf(same.message, sizeof same.message, "%s", failure->reason);
        (void)gx_say_error(args, &same);
    } else if (!gx_stdout_is_taken(args)) {
        gx_sweep_print(sweep, stdout);
    }
    if (args->json)
        (void)!gx_sweep_write_json(sweep, args->json, &err[0]);
    if (args->csv)
        (void)!write_text(sweep, gx_sweep_put_csv, args->csv, &err[1]);
    if (args->svg)
        (void)!write_text(sweep, gx_sweep_put_svg, args->svg, &err[2]);
    for (size_t i = 0; i < 3; i++)
        if (err[i].status != GX_OK)
            exit_status = gx_say_error(args, &err[i]);
    return exit_status;
}

/* What is wrong with the model at a size. */
static gx_status try_point(const gx_sweep *sweep, const gx_sweep_point *point, bool quiet,
                           gx_error *err)
{
    gx_args args = *sweep->args;
    gx_status st = put_sizes(sweep, point, &args, err);

    if (st == GX_OK)
        st = gx_session_try(&args, quiet, err);
    free(args.sets.items);
    return st;
}

/* A model that fits no size is wrong on every machine; one that fits some would have been
 * measured at those. */
static bool fits_no_size(const gx_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++) {
        gx_error err = { 0 };

        if (try_point(sweep, &sweep->point[i], true, &err) == GX_OK)
            return false;
    }
    return true;
}

static gx_status choose_device(gx_sweep *sweep, gx_error *err)
{
    gx_mode mode;
    const gx_status st =
        gx_device_choose_bare(sweep->args, true, &sweep->device, &mode, err);

    if (st == GX_OK)
        return gx_device_info_get(sweep->device, &sweep->device_info, err);
    if (!fits_no_size(sweep))
        return st;
    gx_error_clear(err);
    return try_point(sweep, &sweep->point[0], false, err);
}

int gx_cmd_sweep(const gx_args *args)
{
    gx_sweep sweep;
    gx_error err = { 0 };
    int exit_status = GX_EXIT_USAGE;

    if (gx_sweep_create(&sweep, args)) {
        if (choose_device(&sweep, &err) != GX_OK) {
            exit_status = gx_say_error(args, &err);
        } else {
            gx_interrupt_watch();
            measure_all(&sweep);
            exit_status = report(&sweep);
        }
    }
    gx_sweep_free(&sweep);
    return exit_status;
}
