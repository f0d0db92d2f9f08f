/* Every sample model: it loads, runs a few steps on the CPU, and on a GPU gives the same
 * bits in eager and in graph mode. Sizes are made small where the CPU would be slow. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "support.h"

#define FOLDER "graphs/examples"

enum { MAX_EXAMPLES = 64, MAX_SETS = 4, STEPS = 4 };

typedef struct sizes {
    const char *name;
    gx_set sets[MAX_SETS]; /* ends with name NULL */
} sizes;

static const sizes small[] = {
    { "digits_mlp", { { "batch", "16" }, { "hidden", "32" } } },
    { "handwritten_backward", { { "batch", "16" }, { "hidden", "24" } } },
    { "mnist_mlp", { { "batch", "8" }, { "pixels", "40" }, { "hidden", "24" } } },
    { "deep_narrow", { { "batch", "4" }, { "width", "16" } } },
    { "wide", { { "batch", "8" }, { "width", "32" } } },
};

typedef struct examples {
    char *name[MAX_EXAMPLES]; /* without folder and ending */
    size_t n;
} examples;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_examples(void **state)
{
    examples *e = calloc(1, sizeof *e);
    DIR *folder = opendir(FOLDER);

    assert_non_null(e);
    assert_non_null(folder);
    for (const struct dirent *file; (file = readdir(folder));) {
        const char *dot = strrchr(file->d_name, '.');

        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        assert_true(e->n < MAX_EXAMPLES);
        e->name[e->n] = calloc(1, strlen(file->d_name) + 1);
        assert_non_null(e->name[e->n]);
        memcpy(e->name[e->n++], file->d_name, (size_t)(dot - file->d_name));
    }
    closedir(folder);
    qsort(e->name, e->n, sizeof *e->name, compare_names);
    *state = e;
    return e->n == 0; /* no sample models is a failure */
}

static int free_examples(void **state)
{
    examples *e = *state;

    for (size_t i = 0; i < e->n; i++)
        free(e->name[i]);
    free(e);
    return 0;
}

static gx_graph *load(const char *name, gx_kind kind)
{
    gx_load_options options = { .kind = kind };
    char path[512];
    gx_graph *graph;
    gx_error err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
        if (strcmp(small[i].name, name) != 0)
            continue;
        options.sets = small[i].sets;
        while (options.n_sets < MAX_SETS && small[i].sets[options.n_sets].name)
            options.n_sets++;
    }
    snprintf(path, sizeof path, FOLDER "/%s.yaml", name);
    assert_ok(gx_graph_load(path, &options, &graph, NULL, &err), &err);
    return graph;
}

typedef struct program {
    gx_plan *plan;
    gx_exec *exec;
} program;

static program start(const gx_graph *graph, gx_state *state, bool measures)
{
    const gx_plan_options options = { .device = gx_state_device(state),
                                      .no_measure = !measures,
                                      .cache_folder = "" };
    program p;
    gx_error err = { 0 };

    assert_ok(gx_plan_create(graph, &options, &p.plan, &err), &err);
    assert_ok(gx_exec_create(p.plan, state, NULL, &p.exec, &err), &err);
    return p;
}

static void stop(program *p)
{
    gx_exec_free(p->exec);
    gx_plan_free(p->plan);
}

/* Bytes of all outputs, parameters and state, as doubles; the caller frees. */
static double *read_all(const gx_graph *graph, program *p, size_t *n)
{
    double *all = NULL;
    gx_error err = { 0 };

    *n = 0;
    assert_ok(gx_exec_sync(p->exec, &err), &err);
    for (size_t i = 0; i < gx_graph_value_count(graph); i++) {
        const gx_value_info value = gx_graph_value(graph, i);
        gx_tensor host = { .dtype = GX_F64, .rank = value.rank };

        if (!value.is_output && value.kind != GX_VALUE_PARAM &&
            value.kind != GX_VALUE_STATE)
            continue;
        memcpy(host.dim, value.dim, sizeof host.dim);
        all = realloc(all, (*n + (size_t)gx_count(&host) + 1) * sizeof *all);
        assert_non_null(all);
        host.data = all + *n;
        assert_ok(gx_exec_read(p->exec, value.name, &host, &err), &err);
        *n += (size_t)gx_count(&host);
    }
    return all;
}

static void assert_all_finite(const char *name, const double *x, size_t n)
{
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            fail_msg("%s: a result is not finite", name);
    }
}

/* What each step logs is there, and an accuracy is a share. */
static void check_log(const gx_graph *graph, program *p)
{
    double rows[STEPS * GX_MAX_LOGGED];
    size_t n_columns = 0;
    gx_error err = { 0 };

    while (gx_graph_logged(graph, n_columns))
        n_columns++;
    if (n_columns == 0)
        return;
    assert_ok(gx_exec_log(p->exec, STEPS, rows, &err), &err);
    for (size_t i = 0; i < STEPS * n_columns; i++) {
        assert_true(isfinite(rows[i]));
        if (strcmp(gx_graph_logged(graph, i % n_columns), "accuracy") == 0)
            assert_true(rows[i] >= 0 && rows[i] <= 1);
    }
}

static void examples_run_on_the_cpu(void **state)
{
    const examples *e = *state;
    const gx_state_options options = { .device = GX_CPU, .seed = test_seed() };

    for (size_t i = 0; i < e->n; i++) {
        gx_graph *train = load(e->name[i], GX_TRAIN);
        gx_graph *eval = load(e->name[i], GX_EVAL);
        const gx_graph *list[] = { train, eval };
        gx_state *model;
        gx_error err = { 0 };

        assert_ok(gx_state_create(list, 2, &options, &model, &err), &err);
        for (int k = 0; k < 2; k++) {
            program p = start(list[k], model, true);
            double *all;
            size_t n;

            assert_ok(gx_exec_run(p.exec, GX_MODE_CPU, STEPS, &err), &err);
            all = read_all(list[k], &p, &n);
            assert_all_finite(e->name[i], all, n);
            check_log(list[k], &p);
            free(all);
            stop(&p);
        }
        gx_state_free(model);
        gx_graph_free(eval);
        gx_graph_free(train);
    }
}

static double *run(const gx_graph *graph, program *p, gx_mode mode, size_t *n)
{
    gx_error err = { 0 };

    assert_ok(gx_exec_run(p->exec, mode, STEPS, &err), &err);
    return read_all(graph, p, n);
}

static void check_both_modes(const char *name, const gx_graph *graph, gx_state *model,
                             bool measures)
{
    program p = start(graph, model, measures);
    gx_snapshot *first;
    double *eager, *captured;
    size_t n, n_captured;
    gx_error err = { 0 };

    assert_ok(gx_state_save(model, &first, &err), &err);
    eager = run(graph, &p, GX_MODE_EAGER, &n);
    assert_ok(gx_state_restore(model, first, &err), &err);
    captured = run(graph, &p, GX_MODE_GRAPH, &n_captured);
    assert_all_finite(name, eager, n);
    assert_int_equal(n, n_captured);
    if (memcmp(eager, captured, n * sizeof *eager) != 0)
        fail_msg("%s: eager and graph mode differ", name);
    check_log(graph, &p);
    gx_snapshot_free(first);
    free(captured);
    free(eager);
    stop(&p);
}

static void examples_give_the_same_bits_in_eager_and_graph_mode(void **state)
{
    const examples *e = *state;
    const gx_state_options options = { .device = 0, .seed = test_seed() };
    int n_devices = 0;
    gx_error err = { 0 };

    if (gx_device_count(&n_devices, &err) != GX_OK || n_devices == 0) {
        print_message("skipped: no CUDA device (%s)\n", err.message);
        if (getenv("GX_REQUIRE_GPU"))
            fail_msg("a GPU is required");
        skip();
    }
    for (size_t i = 0; i < e->n; i++) {
        gx_graph *train = load(e->name[i], GX_TRAIN);
        gx_graph *eval = load(e->name[i], GX_EVAL);
        const gx_graph *list[] = { train, eval };
        gx_state *model;

        /* Under a tool measuring takes minutes: then the first alone is measured. */
        const bool measures = i == 0 || !test_is_short();

        assert_ok(gx_state_create(list, 2, &options, &model, &err), &err);
        check_both_modes(e->name[i], train, model, measures);
        check_both_modes(e->name[i], eval, model, measures);
        gx_state_free(model);
        gx_graph_free(eval);
        gx_graph_free(train);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_run_on_the_cpu),
        cmocka_unit_test(examples_give_the_same_bits_in_eager_and_graph_mode),
    };

    return cmocka_run_group_tests(tests, find_examples, free_examples);
}
