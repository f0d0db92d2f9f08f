/* Models whose results are known exactly. */
#include "support_numerics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

/* --- gradients that are added --- */

/* p is read by a scale, twice by a product, and directly; s twice by one sum:
 * 2 (3 + 2 p) - 1 with p = 2. w is read by two products and b by two biases; with rows of
 * ones, each product makes of an element 4 times as much: the way through both gives
 * 3 * 4, and 3 for the last bias. */
#define SHARED                                                                      \
    HEAD "inputs:\n  x: {shape: [3, 4], init: ones}\nparams:\n"                     \
         "  p: {shape: [6, 5], init: {constant: 2}}\n"                              \
         "  w: {shape: [4, 4], init: ones}\n  v: {shape: [4, 4], init: ones}\n"     \
         "  b: {shape: [4]}\nops:\n"                                                \
         "  - {op: scale, name: h, x: p, factor: 3}\n"                              \
         "  - {op: mul, name: g, a: p, b: p}\n  - {op: add, name: s, a: h, b: g}\n" \
         "  - {op: add, name: t, a: s, b: s}\n  - {op: sub, name: u, a: t, b: p}\n" \
         "  - {op: sum, name: one, x: u, dtype: f32}\n"                             \
         "  - {op: gemm, name: c, a: x, b: w}\n"                                    \
         "  - {op: gemm, name: d, a: c, b: w, trans_b: true}\n"                     \
         "  - {op: sum, name: two, x: d, dtype: f32}\n"                             \
         "  - {op: gemm, name: e, a: x, b: v, epilogue: {bias: b}}\n"               \
         "  - {op: gemm, name: f, a: e, b: v, epilogue: {bias: b, act: relu}}\n"    \
         "  - {op: sum, name: three, x: f, dtype: f32}\n"                           \
         "  - {op: add, name: both, a: one, b: two}\n"                              \
         "  - {op: add, name: loss, a: both, b: three}\n"                           \
         "backward: loss\noutputs: [p.grad, w.grad, v.grad, b.grad]\n"

static double thirteen(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 13;
}

static double twenty_four(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 24;
}

static double fifteen(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 15;
}

/* --- sums that bf16 cannot keep --- */

/* A third of the rows are 1, the others 2^-8, which is half of what bf16 can add to 1:
 * the sum is 2048 + 16, a bf16, and one that is kept in bf16 stops at 256 or loses the
 * small ones. */
#define SMALL_SUMS                                                                       \
    HEAD                                                                                 \
        "inputs:\n  dy: {shape: [6144, 8]}\n  eye: {shape: [8, 8]}\n"                    \
        "  ones: {shape: [6144, 8], init: ones}\nparams:\n"                              \
        "  b: {shape: [8]}\n  c: {shape: [8]}\nops:\n"                                   \
        "  - {op: epilogue.bwd, name: alone, dy: dy, dbias: alone}\n"                    \
        "  - {op: gemm, name: product, a: dy, b: eye}\n"                                 \
        "  - {op: epilogue.bwd, name: behind, dy: product, y: ones, act: relu, dx: dx, " \
        "dbias: behind}\n"                                                               \
        "  - {op: gemm, name: weight, a: ones, b: dy, trans_a: true}\n"                  \
        "  - {op: sum, name: sum, x: dy, axis: 0}\n"                                     \
        "  - {op: sum_to, name: sum_to, x: dy, shape: 8}\n"                              \
        "outputs: [alone, behind, dx, weight, sum, sum_to]\n"

/* The same through derived gradients. */
#define SMALL_GRADIENTS                                                                  \
    HEAD                                                                                 \
        "inputs:\n  dy: {shape: [6144, 8]}\n  eye: {shape: [8, 8]}\n"                    \
        "  ones: {shape: [6144, 8], init: ones}\nparams:\n"                              \
        "  w: {shape: [8, 8], init: ones}\n  b: {shape: [8]}\n  c: {shape: [8]}\nops:\n" \
        "  - {op: gemm, name: h, a: ones, b: w, epilogue: {bias: b, act: relu}}\n"       \
        "  - {op: gemm, name: y, a: h, b: eye}\n"                                        \
        "  - {op: add, name: z, a: y, b: c}\n  - {op: mul, name: m, a: z, b: dy}\n"      \
        "  - {op: sum, name: loss, x: m, dtype: f32}\n"                                  \
        "backward: loss\noutputs: [w.grad, b.grad, c.grad]\n"

static double one_and_small(int64_t row, int64_t column)
{
    (void)column;
    return row % 3 == 0 ? 1 : 0x1p-8;
}

static double sum_of_small(int64_t row, int64_t column)
{
    (void)row, (void)column;
    return 2064;
}

static double identity(int64_t row, int64_t column)
{
    return row == column;
}

/* --- operands that tf32 cannot hold --- */

/* 1 + j 2^-12 has more bits than tf32, which makes 1 or 1 + 2^-10 of it. The identity
 * leaves it as it is, on either side of a product and through what may be fused. */
#define WIDE                                                                             \
    HEAD "inputs:\n  a: {shape: [64, 64]}\n  eye: {shape: [64, 64]}\n"                   \
         "  ones: {shape: [64, 64], init: ones}\nparams:\n  z: {shape: [64]}\nops:\n"    \
         "  - {op: gemm, name: left, a: a, b: eye}\n"                                    \
         "  - {op: gemm, name: right, a: eye, b: a, trans_a: true, trans_b: true}\n"     \
         "  - {op: gemm, name: bias, a: a, b: eye, epilogue: {bias: z}}\n"               \
         "  - {op: gemm, name: relu, a: eye, b: a, epilogue: {bias: z, act: relu}}\n"    \
         "  - {op: gemm, name: back, a: a, b: eye, trans_b: true}\n"                     \
         "  - {op: epilogue.bwd, name: e, dy: back, y: ones, act: relu, dx: dx, dbias: " \
         "db}\n"                                                                         \
         "outputs: [left, right, bias, relu, dx, db]\n"

static double wide(int64_t row, int64_t column)
{
    return 1 + (double)((row + 3 * column) % 7) * 0x1p-12;
}

static double wide_transposed(int64_t row, int64_t column)
{
    return wide(column, row);
}

static double wide_sum(int64_t column, int64_t unused)
{
    double sum = 0;

    (void)unused;
    for (int64_t row = 0; row < 64; row++)
        sum += wide(row, column);
    return sum;
}

const numerics_model numerics_models[] = {
    { "shared",
      SHARED,
      { "f32", "tf32", "bf16", "f16", NULL },
      { { 0 } },
      { { "p.grad", 2, 6, 5, thirteen },
        { "w.grad", 2, 4, 4, twenty_four },
        { "v.grad", 2, 4, 4, twenty_four },
        { "b.grad", 1, 4, 1, fifteen },
        { 0 } } },
    { "small_sums",
      SMALL_SUMS,
      { "f32", "bf16", "f16", NULL },
      { { "dy", 2, 6144, 8, one_and_small }, { "eye", 2, 8, 8, identity }, { 0 } },
      { { "alone", 1, 8, 1, sum_of_small },
        { "behind", 1, 8, 1, sum_of_small },
        { "dx", 2, 6144, 8, one_and_small },
        { "weight", 2, 8, 8, sum_of_small },
        { "sum", 1, 8, 1, sum_of_small },
        { "sum_to", 1, 8, 1, sum_of_small },
        { 0 } } },
    { "small_gradients",
      SMALL_GRADIENTS,
      { "f32", "bf16", "f16", NULL },
      { { "dy", 2, 6144, 8, one_and_small }, { "eye", 2, 8, 8, identity }, { 0 } },
      { { "w.grad", 2, 8, 8, sum_of_small },
        { "b.grad", 1, 8, 1, sum_of_small },
        { "c.grad", 1, 8, 1, sum_of_small },
        { 0 } } },
    { "wide",
      WIDE,
      { "f32", NULL },
      { { "a", 2, 64, 64, wide }, { "eye", 2, 64, 64, identity }, { 0 } },
      { { "left", 2, 64, 64, wide },
        { "right", 2, 64, 64, wide_transposed },
        { "bias", 2, 64, 64, wide },
        { "relu", 2, 64, 64, wide },
        { "dx", 2, 64, 64, wide },
        { "db", 1, 64, 1, wide_sum },
        { 0 } } },
    { 0 },
};

const numerics_model *numerics_find(const char *name)
{
    for (const numerics_model *model = numerics_models; model->name; model++)
        if (strcmp(model->name, name) == 0)
            return model;
    return NULL;
}

/* --- running --- */

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

/* True when each element is what is expected. */
static gx_status compare(const numerics_tensor *t, gx_exec *exec, bool quiet, bool *same,
                         gx_error *err)
{
    gx_tensor host = host_of(t);
    const double *const x = host.data;
    gx_status st;

    *same = true;
    if (!x)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    st = gx_exec_read(exec, t->name, &host, err);
    for (int64_t i = 0; st == GX_OK && *same && i < gx_count(&host); i++) {
        *same = x[i] == at(t, i);
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

int numerics_mistakes(const numerics_model *model, const char *precision,
                      const gx_plan_options *options, gx_mode mode, bool quiet,
                      gx_plan_info *info)
{
    char *const text = test_walk_text(model->text, precision);
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
