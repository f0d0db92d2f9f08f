/* Sweeps that tests make up. */
#include "support_sweep.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 12 };

void sweep_make(gx_sweep *sweep, gx_args *args, const char *const *sets, size_t n)
{
    static char program[] = "gexec", command[] = "sweep", model[] = "model.yaml";
    static char flag[] = "--set";
    static char copies[4][256];
    char *words[MOST_WORDS] = { program, command, model };
    int n_words = 3;

    assert_in_range(n, 0, ARRAY_SIZE(copies));
    for (size_t i = 0; i < n; i++) {
        snprintf(copies[i], sizeof copies[i], "%s", sets[i]);
        words[n_words++] = flag;
        words[n_words++] = copies[i];
    }
    assert_true(gx_args_parse(args, n_words, words));
    assert_true(gx_sweep_create(sweep, args));
}

void sweep_drop(gx_sweep *sweep, gx_args *args)
{
    gx_sweep_free(sweep);
    gx_args_free(args);
}

static char *copy(const char *text)
{
    char *const made = malloc(strlen(text) + 1);

    assert_non_null(made);
    return strcpy(made, text);
}

static void add(gx_series *series, double value)
{
    assert_true(gx_series_add(series, value));
}

void sweep_measure(gx_sweep *sweep, size_t i, const int64_t *size, double unfused_us,
                   double eager_us, double graph_us)
{
    const double us[GX_N_WAYS] = { unfused_us, eager_us, graph_us };
    gx_sweep_point *const point = &sweep->point[i];

    if (!sweep->model) {
        sweep->model = copy("made <up> & \"quoted\"");
        sweep->precision = copy("tf32");
        sweep->device = 0;
        snprintf(sweep->device_info.name, sizeof sweep->device_info.name, "a card");
    }
    point->begun = true;
    for (size_t d = 0; d < sweep->n_dims; d++)
        point->size[d] = size[d];
    for (int pair = -2; pair <= 2; pair++) {
        for (int w = 0; w < GX_N_WAYS; w++) {
            const double seconds = us[w] * (1 + 0.01 * pair) * 1e-6;

            add(&point->way[w].steady, seconds);
            add(&point->way[w].queued, seconds);
            add(&point->way[w].host, seconds / 2);
            add(&point->way[w].wall, seconds * 2);
        }
        add(&point->ratio, graph_us / eager_us * (1 + 0.001 * pair));
        add(&point->ratio_unfused, graph_us / unfused_us * (1 + 0.001 * pair));
        add(&point->order, 1);
    }
    point->way[GX_WAY_UNFUSED].launches = 20;
    point->way[GX_WAY_EAGER].launches = 12;
    point->steps_per_launch = 1;
    point->block = 100;
    point->bits_steps = 20;
    point->n_compared = 7;
    point->pays_after = graph_us < eager_us ? 6 : -1;
    point->empty_s = -1;
    snprintf(point->plan.text, sizeof point->plan.text, "0123456789abcdef");
}

void sweep_fail(gx_sweep *sweep, size_t i, gx_status status, const char *reason)
{
    gx_error err = { 0 };

    sweep->point[i].begun = true;
    (void)GX_FAIL(&err, status, "%s", reason);
    gx_sweep_fail(&sweep->point[i], &err);
}

void sweep_differ(gx_sweep *sweep, size_t i, const char *tensor)
{
    gx_difference *const difference = &sweep->point[i].difference;

    difference->found = true;
    snprintf(difference->tensor, sizeof difference->tensor, "%s", tensor);
    snprintf(difference->position.text, sizeof difference->position.text, "[3]");
    difference->eager = 1.5;
    difference->graph = 2.5;
    difference->n_elements = 9;
    difference->n_differ = 2;
}

char *sweep_text(const gx_sweep *sweep, void (*put)(const gx_sweep *sweep, FILE *out))
{
    char *text = NULL;
    size_t n;
    FILE *const out = open_memstream(&text, &n);

    assert_non_null(out);
    put(sweep, out);
    assert_int_equal(fclose(out), 0);
    return text;
}
