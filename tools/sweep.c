/* The points of a sweep: every combination of the sizes given, and what came of each. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

/* --- the lists of --set --- */

static size_t count_values(const char *list)
{
    size_t n = 1;

    for (; *list; list++)
        n += *list == ',';
    return n;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " ")] == '\0';
}

/* Cuts `list` in place. */
static bool cut(gx_sweep *sweep, gx_sweep_dim *dim, char *list)
{
    char *at = list;

    dim->values = calloc(count_values(list), sizeof *dim->values);
    if (!dim->values) {
        gx_say_usage(sweep->args, "out of memory");
        return false;
    }
    while (at) {
        char *const comma = strchr(at, ',');

        if (comma)
            *comma = '\0';
        if (is_blank(at)) {
            gx_say_usage(sweep->args, "--set %s: a size is missing beside a comma",
                         dim->name);
            return false;
        }
        for (size_t i = 0; i < dim->n; i++)
            if (strcmp(dim->values[i], at) == 0) {
                gx_say_usage(sweep->args, "--set %s: %s is in the list twice", dim->name,
                             at);
                return false;
            }
        dim->values[dim->n++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

static bool cut_lists(gx_sweep *sweep)
{
    const gx_pairs *const sets = &sweep->args->sets;
    size_t bytes = 1;
    char *text;

    for (size_t i = 0; i < sets->n; i++)
        bytes += strlen(sets->items[i].value) + 1;
    text = sweep->text = malloc(bytes);
    if (!text) {
        gx_say_usage(sweep->args, "out of memory");
        return false;
    }
    for (size_t i = 0; i < sets->n; i++) {
        if (!strchr(sets->items[i].value, ','))
            continue;
        if (sweep->n_dims == GX_SWEEP_DIMS) {
            gx_say_usage(sweep->args, "more than %d lists", GX_SWEEP_DIMS);
            return false;
        }
        strcpy(text, sets->items[i].value);
        sweep->dim[sweep->n_dims].name = sets->items[i].name;
        if (!cut(sweep, &sweep->dim[sweep->n_dims++], text))
            return false;
        text += strlen(sets->items[i].value) + 1;
    }
    if (sweep->n_dims == 0)
        gx_say_usage(sweep->args,
                     "expected sizes to go over: at least one --set DIM=A,B,...");
    return sweep->n_dims > 0;
}

static bool make_points(gx_sweep *sweep)
{
    size_t n = 1;

    for (size_t d = 0; d < sweep->n_dims; d++) {
        n *= sweep->dim[d].n;
        if (n > GX_SWEEP_POINTS) {
            gx_say_usage(sweep->args, "more than %d combinations of sizes",
                         GX_SWEEP_POINTS);
            return false;
        }
    }
    sweep->point = calloc(n, sizeof *sweep->point);
    if (!sweep->point) {
        gx_say_usage(sweep->args, "out of memory");
        return false;
    }
    sweep->n_points = n;
    for (size_t i = 0; i < n; i++) {
        size_t rest = i;

        for (size_t d = sweep->n_dims; d-- > 0;) {
            sweep->point[i].at[d] = rest % sweep->dim[d].n;
            sweep->point[i].size[d] = -1;
            rest /= sweep->dim[d].n;
        }
    }
    return true;
}

bool gx_sweep_create(gx_sweep *sweep, const gx_args *args)
{
    *sweep = (gx_sweep){ .args = args, .device = GX_CPU };
    return cut_lists(sweep) && make_points(sweep);
}

void gx_sweep_free(gx_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++) {
        gx_sweep_point *const point = &sweep->point[i];

        for (int w = 0; w < GX_N_WAYS; w++) {
            gx_series_free(&point->way[w].host);
            gx_series_free(&point->way[w].wall);
            gx_series_free(&point->way[w].queued);
            gx_series_free(&point->way[w].steady);
            gx_series_free(&point->way[w].wait);
        }
        gx_series_free(&point->order);
        gx_series_free(&point->ratio);
        gx_series_free(&point->ratio_unfused);
        gx_series_free(&point->sm_mhz);
        gx_series_free(&point->memory_mhz);
    }
    free(sweep->point);
    for (size_t d = 0; d < sweep->n_dims; d++)
        free(sweep->dim[d].values);
    free(sweep->text);
    free(sweep->model);
    free(sweep->precision);
    *sweep = (gx_sweep){ 0 };
}

/* --- what came of a point --- */

static gx_series take_series(gx_series *series)
{
    const gx_series taken = *series;

    *series = (gx_series){ 0 };
    return taken;
}

void gx_sweep_take(gx_sweep_point *point, gx_compare *compare)
{
    const gx_plan *const plan = compare->session.plan[GX_PROGRAM_TRAIN];

    for (int w = 0; w < GX_N_WAYS; w++) {
        gx_way_times *const from = &compare->way[w];

        point->way[w] = (gx_way_times){ .mode = from->mode, .launches = from->launches };
        point->way[w].host = take_series(&from->host);
        point->way[w].wall = take_series(&from->wall);
        point->way[w].queued = take_series(&from->queued);
        point->way[w].wait = take_series(&from->wait);
    }
    /* It asks for the steady times. */
    point->pays_after = gx_compare_pays_after(compare);
    for (int w = 0; w < GX_N_WAYS; w++)
        point->way[w].steady = take_series(&compare->way[w].steady);
    point->order = take_series(&compare->order);
    point->ratio = take_series(&compare->ratio);
    point->ratio_unfused = take_series(&compare->ratio_unfused);
    point->sm_mhz = take_series(&compare->sm_mhz);
    point->memory_mhz = take_series(&compare->memory_mhz);
    point->throttle = compare->throttle;
    point->block = compare->block;
    point->bits_steps = compare->bits_steps;
    point->steps_per_launch = compare->session.steps_per_launch;
    point->step_loop = compare->session.step_loop;
    point->n_compared = compare->n_compared;
    point->difference = compare->difference;
    point->empty_s = compare->empty_s;
    point->select_s = gx_plan_info_get(plan).select_s;
    point->stats = gx_exec_stats_get(compare->way[GX_WAY_GRAPH].exec);
    point->plan = gx_plan_mark(plan);
    point->idle = gx_idle_flags_of(&compare->session);
    point->interrupted = compare->interrupted;
}

void gx_sweep_fail(gx_sweep_point *point, const gx_error *err)
{
    point->status = err->status;
    snprintf(point->reason, sizeof point->reason, "%s",
             err->message[0] ? err->message : gx_status_text(err->status));
    for (char *at = point->reason; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

bool gx_sweep_has_figures(const gx_sweep_point *point)
{
    return point->begun && point->status == GX_OK && point->ratio.n > 0;
}

gx_words gx_sweep_size(const gx_sweep *sweep, const gx_sweep_point *point, size_t dim)
{
    gx_words words;

    if (point->size[dim] >= 0)
        return gx_words_count(point->size[dim]);
    snprintf(words.text, sizeof words.text, "%s", sweep->dim[dim].values[point->at[dim]]);
    return words;
}

void gx_sweep_point_text(const gx_sweep *sweep, const gx_sweep_point *point, size_t first,
                         char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t d = first; d < sweep->n_dims && length < size; d++)
        length += (size_t)snprintf(text + length, size - length, "%s%s=%s",
                                   d > first ? ", " : "", sweep->dim[d].name,
                                   gx_sweep_size(sweep, point, d).text);
}

const gx_sweep_point *gx_sweep_common_failure(const gx_sweep *sweep)
{
    const gx_sweep_point *const first = &sweep->point[0];

    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_sweep_point *const point = &sweep->point[i];

        if (!point->begun || point->status == GX_OK || point->status != first->status ||
            strcmp(point->reason, first->reason) != 0)
            return NULL;
    }
    return first;
}

int gx_sweep_exit(const gx_sweep *sweep)
{
    int worst = GX_EXIT_OK;

    if (sweep->interrupted)
        return GX_EXIT_INTERRUPTED;
    for (size_t i = 0; i < sweep->n_points; i++) {
        const gx_sweep_point *const point = &sweep->point[i];

        if (point->difference.found)
            return GX_EXIT_NO;
        if (gx_status_exit(point->status) > worst)
            worst = gx_status_exit(point->status);
    }
    return worst;
}
