/* A step of a model whose results are known exactly. */
#include "support_numerics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

typedef struct program {
    gx_graph *graph;
    gx_plan *plan;
    gx_state *state;
    gx_exec *exec;
} program;

/* Without an exec where an alternative is forced that applies nowhere. */
static gx_status open_program(program *p, const char *text,
                              const gx_plan_options *options, gx_error *err)
{
    const gx_state_options state = { .device = options->device };

    GX_TRY(gx_graph_parse(text, strlen(text), "m.yaml", ".", NULL, &p->graph, NULL, err));
    GX_TRY(gx_plan_create(p->graph, options, &p->plan, err));
    if (options->force && gx_plan_info_get(p->plan).n_forced == 0)
        return GX_OK;
    GX_TRY(gx_state_create((const gx_graph *const[]){ p->graph }, 1, &state, &p->state,
                           err));
    return gx_exec_create(p->plan, p->state, NULL, &p->exec, err);
}

static void close_program(program *p)
{
    gx_exec_free(p->exec);
    gx_state_free(p->state);
    gx_plan_free(p->plan);
    gx_graph_free(p->graph);
}

/* A host tensor of doubles; data NULL where memory is out. */
static gx_tensor host_of(const numerics_tensor *t)
{
    gx_tensor host = { .dtype = GX_F64, .rank = t->rank, .dim = { t->rows, t->columns } };

    host.data = malloc((size_t)gx_count(&host) * sizeof(double));
    return host;
}

static double at(const numerics_tensor *t, int64_t i)
{
    return t->value(i / t->columns, i % t->columns);
}

static gx_status write_inputs(const numerics_model *model, gx_exec *exec, gx_error *err)
{
    for (const numerics_tensor *t = model->inputs; t->name; t++) {
        gx_tensor host = host_of(t);
        double *const x = host.data;
        gx_status st;

        if (!x)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        for (int64_t i = 0; i < gx_count(&host); i++)
            x[i] = at(t, i);
        st = gx_exec_write(exec, t->name, &host, err);
        free(x);
        GX_TRY(st);
    }
    return GX_OK;
}

/* The sum as it comes out when each step of it is rounded to bf16. */
static double narrow_sum(const numerics_tensor *t, int64_t column)
{
    double sum = 0;

    for (int64_t row = 0; row < t->n_addends; row++)
        sum = gx_round_to(GX_BF16, sum + t->addend(row, column));
    return sum;
}

/* True when each element is what is expected. */
static gx_status compare(const numerics_tensor *t, gx_exec *exec, bool quiet, bool *same,
                         gx_error *err)
{
    gx_tensor host = host_of(t);
    double *const x = host.data;
    gx_status st;

    *same = true;
    if (!x)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_exec_read(exec, t->name, &host, err);
    for (int64_t i = 0; st == GX_OK && *same && i < gx_count(&host); i++) {
        if (t->addend && numerics_is_wrong("bf16"))
            x[i] = narrow_sum(t, i);
        *same = fabs(x[i] - at(t, i)) <= t->rounding * fabs(at(t, i));
        if (!*same && !quiet)
            fprintf(stderr, "  %s[%lld] is %.9g, expected %.9g\n", t->name, (long long)i,
                    x[i], at(t, i));
    }
    free(host.data);
    return st;
}

static gx_status run(const numerics_model *model, program *p, gx_mode mode, bool quiet,
                     int *mistakes, gx_error *err)
{
    GX_TRY(write_inputs(model, p->exec, err));
    GX_TRY(gx_exec_run(p->exec, mode, 1, err));
    GX_TRY(gx_exec_sync(p->exec, err));
    for (const numerics_tensor *t = model->expected; t->name; t++) {
        bool same;

        GX_TRY(compare(t, p->exec, quiet, &same, err));
        *mistakes += !same;
    }
    return GX_OK;
}

bool numerics_is_wrong(const char *what)
{
    const char *asked = getenv("GX_TEST_WRONG");

    return asked && strcmp(asked, what) == 0;
}

int numerics_mistakes(const numerics_model *model, const char *precision,
                      const gx_plan_options *options, gx_mode mode, bool quiet,
                      gx_plan_info *info)
{
    const bool rounded = strcmp(precision, "f32") == 0 && numerics_is_wrong("tf32");
    char *const text = test_walk_text(model->text, rounded ? "tf32" : precision);
    program p = { NULL, NULL, NULL, NULL };
    int mistakes = 0;
    gx_error err = { 0 };
    gx_status st = open_program(&p, text, options, &err);

    if (st == GX_OK && p.exec)
        st = run(model, &p, mode, quiet, &mistakes, &err);
    if (p.plan)
        *info = gx_plan_info_get(p.plan);
    if (st != GX_OK || (mistakes && !quiet))
        fprintf(stderr, "%s in %s, %s, %s: %s\n", model->name, precision,
                options->force     ? options->force
                : options->unfused ? "unfused"
                                   : "as planned",
                mode == GX_MODE_GRAPH   ? "graph"
                : mode == GX_MODE_EAGER ? "eager"
                                        : "cpu",
                st != GX_OK ? err.message : "not what is expected");
    close_program(&p);
    free(text);
    return st == GX_OK ? mistakes : -1;
}
