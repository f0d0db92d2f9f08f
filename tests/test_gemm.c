/* Products of a batch, their factors and sums, and the epilogue in every order, against
 * plain formulas over every index, on fresh random shapes and numbers. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

enum { DRAWS = 300, TEXT = 2000 };

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

/* --- a product as drawn --- */

typedef struct drawn {
    int n_lead; /* leading dimensions, of both operands unless one is shared */
    int64_t lead[2], n_batches, m, n, k;
    /* elements by which rows are wider than what is used of them; 0: no ld is written */
    int64_t wide_a, wide_b, wide_c, wide_out;
    bool says_sizes; /* also where the operands do */
    bool trans_a, trans_b, shares_a, shares_b, sum, has_c, has_beta;
    double alpha, beta;
    /* the epilogue: steps that are there, in their order */
    int n_steps, step[GX_N_EPILOGUE_STEPS];
    bool has_order;
    const char *act;
    double scale;
} drawn;

static const char *const step_names[] = { "scale", "bias", "residual", "act" };

static int64_t draw_wide(test_random *random)
{
    return test_random_int(random, 0, 2) == 0 ? test_random_int(random, 1, 4) : 0;
}

/* Steps in a random order; in the fixed one where no order is written. */
static void draw_steps(test_random *random, drawn *d)
{
    static const char *const acts[] = { "relu", "tanh", "sigmoid" };

    d->has_order = test_random_int(random, 0, 3) > 0;
    d->act = acts[test_random_int(random, 0, 2)];
    d->scale = test_random_real(random, -2, 2);
    for (int step = 0; step < GX_N_EPILOGUE_STEPS; step++) {
        if (test_random_int(random, 0, 2) > 0)
            d->step[d->n_steps++] = step;
    }
    for (int i = d->n_steps - 1; d->has_order && i > 0; i--) {
        const int other = (int)test_random_int(random, 0, i), kept = d->step[i];

        d->step[i] = d->step[other];
        d->step[other] = kept;
    }
    d->has_order = d->has_order && d->n_steps > 0;
}

static drawn draw(test_random *random)
{
    drawn d = { .n_lead = (int)test_random_int(random, 0, 2), .n_batches = 1 };
    const int64_t share = test_random_int(random, 0, 3);

    for (int i = 0; i < d.n_lead; i++) {
        d.lead[i] = test_random_int(random, test_random_int(random, 0, 9) ? 1 : 0, 3);
        d.n_batches *= d.lead[i];
    }
    d.m = test_random_int(random, 1, 6);
    d.n = test_random_int(random, 1, 6);
    d.k = test_random_int(random, 0, 6);
    d.trans_a = test_random_int(random, 0, 1);
    d.trans_b = test_random_int(random, 0, 1);
    d.shares_a = d.n_lead > 0 && share == 1;
    d.shares_b = d.n_lead > 0 && share == 2;
    d.sum = !d.shares_a && !d.shares_b && test_random_int(random, 0, 2) == 0;
    d.alpha = test_random_int(random, 0, 1) ? test_random_real(random, -2, 2) : 1;
    d.has_c = test_random_int(random, 0, 1);
    d.has_beta = d.has_c && test_random_int(random, 0, 1);
    d.beta = d.has_beta ? test_random_real(random, -2, 2) : 1;
    d.wide_a = draw_wide(random);
    d.wide_b = draw_wide(random);
    d.wide_c = d.has_c ? draw_wide(random) : 0;
    d.wide_out = draw_wide(random);
    d.says_sizes = test_random_int(random, 0, 3) == 0;
    draw_steps(random, &d);
    return d;
}

/* --- as a model --- */

static void put(char *text, const char *format, ...) GX_PRINTF(2, 3);

static void put(char *text, const char *format, ...)
{
    const size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + length, TEXT - length, format, args);
    va_end(args);
    assert_true(strlen(text) + 1 < TEXT);
}

static void put_tensor(char *text, const char *name, const drawn *d, bool has_lead,
                       int64_t rows, int64_t columns)
{
    put(text, "  %s: {shape: [", name);
    for (int i = 0; has_lead && i < d->n_lead; i++)
        put(text, "%lld, ", (long long)d->lead[i]);
    put(text, "%lld, %lld]}\n", (long long)rows, (long long)columns);
}

static void put_steps(char *text, const drawn *d, const char *between)
{
    for (int i = 0; i < d->n_steps; i++) {
        put(text, "%s%s: ", i > 0 ? ", " : between, step_names[d->step[i]]);
        if (d->step[i] == GX_EPILOGUE_STEP_SCALE)
            put(text, "%.17g", d->scale);
        else
            put(text, "%s",
                d->step[i] == GX_EPILOGUE_STEP_BIAS       ? "s"
                : d->step[i] == GX_EPILOGUE_STEP_RESIDUAL ? "r"
                                                          : d->act);
    }
    if (!d->has_order)
        return;
    put(text, ", order: [");
    for (int i = 0; i < d->n_steps; i++)
        put(text, "%s%s", i > 0 ? ", " : "", step_names[d->step[i]]);
    put(text, "]");
}

/* Elements from row to row. */
static int64_t row_of_a(const drawn *d)
{
    return (d->trans_a ? d->m : d->k) + d->wide_a;
}

static int64_t row_of_b(const drawn *d)
{
    return (d->trans_b ? d->k : d->n) + d->wide_b;
}

static void put_inputs(char *text, const drawn *d)
{
    const bool is_batch = !d->sum;

    strcpy(text, HEAD "inputs:\n");
    put_tensor(text, "a", d, !d->shares_a, d->trans_a ? d->k : d->m, row_of_a(d));
    put_tensor(text, "b", d, !d->shares_b, d->trans_b ? d->n : d->k, row_of_b(d));
    put_tensor(text, "c", d, is_batch, d->m, d->n + d->wide_c);
    put_tensor(text, "r", d, is_batch, d->m, d->n);
    put(text, "  s: {shape: [%lld]}\nops:\n", (long long)d->n);
}

static void put_ld(char *text, const char *key, int64_t wide, int64_t row)
{
    if (wide > 0)
        put(text, ", ld.%s: %lld", key, (long long)row);
}

/* The sizes that must be written, or all. */
static void put_sizes(char *text, const drawn *d)
{
    const bool hides_a = d->wide_a > 0 && !d->trans_a;
    const bool hides_b = d->wide_b > 0 && d->trans_b;

    put_ld(text, "a", d->wide_a, row_of_a(d));
    put_ld(text, "b", d->wide_b, row_of_b(d));
    put_ld(text, "c", d->wide_c, d->n + d->wide_c);
    put_ld(text, "out", d->wide_out, d->n + d->wide_out);
    if (d->says_sizes || (d->wide_a > 0 && d->trans_a))
        put(text, ", m: %lld", (long long)d->m);
    if (d->says_sizes || (d->wide_b > 0 && !d->trans_b))
        put(text, ", n: %lld", (long long)d->n);
    if (d->says_sizes || (hides_a && hides_b))
        put(text, ", k: %lld", (long long)d->k);
}

static void put_gemm(char *text, const drawn *d)
{
    put_inputs(text, d);
    put(text, "  - {op: gemm, name: y, a: a, b: b, trans_a: %s, trans_b: %s",
        d->trans_a ? "true" : "false", d->trans_b ? "true" : "false");
    if (d->alpha != 1)
        put(text, ", alpha: %.17g", d->alpha);
    if (d->has_c)
        put(text, ", c: c");
    if (d->has_beta)
        put(text, ", beta: %.17g", d->beta);
    if (d->sum)
        put(text, ", sum_batch: true");
    put_sizes(text, d);
    if (d->n_steps > 0) {
        put(text, ", epilogue: {");
        put_steps(text, d, "");
        put(text, "}");
    }
    put(text, "}\noutputs: [y]\n");
}

/* --- as a formula --- */

static double product_at(const drawn *d, const double *a, const double *b, int64_t batch,
                         int64_t i, int64_t j)
{
    double sum = 0;

    const int64_t lda = row_of_a(d), ldb = row_of_b(d);

    a += d->shares_a ? 0 : batch * (d->trans_a ? d->k : d->m) * lda;
    b += d->shares_b ? 0 : batch * (d->trans_b ? d->n : d->k) * ldb;
    for (int64_t k = 0; k < d->k; k++)
        sum += a[d->trans_a ? k * lda + i : i * lda + k] *
               b[d->trans_b ? j * ldb + k : k * ldb + j];
    return sum;
}

static double activate(const char *act, double x)
{
    return act[0] == 'r' ? fmax(x, 0) : act[0] == 't' ? tanh(x) : 1 / (1 + exp(-x));
}

static double after_steps(const drawn *d, double x, double bias, double residual)
{
    for (int i = 0; i < d->n_steps; i++) {
        switch (d->step[i]) {
        case GX_EPILOGUE_STEP_SCALE:
            x *= d->scale;
            break;
        case GX_EPILOGUE_STEP_BIAS:
            x += bias;
            break;
        case GX_EPILOGUE_STEP_RESIDUAL:
            x += residual;
            break;
        default:
            x = activate(d->act, x);
        }
    }
    return x;
}

static double gemm_at(const test_walk *model, const drawn *d, int64_t at)
{
    const int64_t row = d->n + d->wide_out, line = at / row, j = at % row;
    const int64_t batch = line / d->m, i = line % d->m;
    const double *a = test_walk_tensor(model, "a"), *b = test_walk_tensor(model, "b");
    double x = 0;

    if (j >= d->n)
        return 0;
    if (d->sum) {
        for (int64_t p = 0; p < d->n_batches; p++)
            x += product_at(d, a, b, p, i, j);
    } else {
        x = product_at(d, a, b, batch, i, j);
    }
    x *= d->alpha;
    if (d->has_c)
        x += d->beta * test_walk_tensor(model, "c")[line * (d->n + d->wide_c) + j];
    return after_steps(d, x, test_walk_tensor(model, "s")[j],
                       test_walk_tensor(model, "r")[line * d->n + j]);
}

static void fill(test_random *random, const test_walk *model, const char *name)
{
    double *x = test_walk_tensor(model, name);

    for (int64_t i = 0; i < test_walk_count(model, name); i++)
        x[i] = test_random_real(random, -2, 2);
}

static void assert_near(const char *text, int64_t at, double found, double expected)
{
    if (fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected)))
        return;
    fail_msg("%s\ny[%lld] is %.17g, expected %.17g", text, (long long)at, found,
             expected);
}

static test_walk step_of(test_random *random, const char *text)
{
    static const char *const inputs[] = { "a", "b", "c", "r", "s" };
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    model.exact = true;
    for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
        fill(random, &model, inputs[i]);
    test_walk_step(&model);
    return model;
}

static void gemm_is_its_formula(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draws = 0; draws < DRAWS; draws++) {
        const drawn d = draw(&random);
        const int64_t n = (d.sum ? 1 : d.n_batches) * d.m * (d.n + d.wide_out);
        char text[TEXT];

        put_gemm(text, &d);
        test_walk model = step_of(&random, text);

        assert_int_equal(test_walk_count(&model, "y"), n);
        for (int64_t at = 0; at < n; at++)
            assert_near(text, at, test_walk_tensor(&model, "y")[at],
                        gemm_at(&model, &d, at));
        test_walk_free(&model);
    }
}

static void an_epilogue_of_its_own_is_the_same_steps(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draws = 0; draws < DRAWS; draws++) {
        drawn d = draw(&random);
        char text[TEXT];

        d.wide_c = 0;
        put_inputs(text, &d);
        put(text, "  - {op: epilogue, name: y, x: c");
        put_steps(text, &d, ", ");
        put(text, "}\noutputs: [y]\n");
        test_walk model = step_of(&random, text);

        for (int64_t at = 0; at < test_walk_count(&model, "y"); at++)
            assert_near(text, at, test_walk_tensor(&model, "y")[at],
                        after_steps(&d, test_walk_tensor(&model, "c")[at],
                                    test_walk_tensor(&model, "s")[at % d.n],
                                    test_walk_tensor(&model, "r")[at]));
        test_walk_free(&model);
    }
}

/* --- what the parts are --- */

static char *ops_of(const test_walk *model, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < model->graph->n_nodes; i++)
        put(text, "%s%s", i > 0 ? " " : "", model->graph->nodes[i].op_name);
    return text;
}

#define ALL_INPUTS                                                                \
    HEAD "inputs:\n  a: {shape: [2, 3]}\n  b: {shape: [3, 4]}\n  c: {shape: [2, " \
         "4]}\n  r: {shape: [2, 4]}\n  s: {shape: [4]}\nops:\n"

/* What the product can do stays in it, and as few epilogues follow as there must be. */
static void an_order_becomes_as_few_ops_as_it_can(void **state)
{
    static const struct {
        const char *fields, *ops;
    } cases[] = {
        { "epilogue: {scale: 2}", "gemm" },
        { "epilogue: {residual: r}", "gemm" },
        { "epilogue: {scale: 2, residual: r}", "gemm" },
        { "epilogue: {residual: r, scale: 2, order: [residual, scale]}", "gemm" },
        { "c: c, epilogue: {scale: 2}", "gemm" },
        { "c: c, epilogue: {residual: r}", "gemm epilogue" },
        { "epilogue: {bias: s, residual: r, act: relu}", "gemm epilogue" },
        { "epilogue: {bias: s, residual: r, act: relu, order: [residual, bias, act]}",
          "gemm epilogue" },
        { "epilogue: {bias: s, act: relu, residual: r, order: [bias, act, residual]}",
          "gemm epilogue epilogue" },
        { "epilogue: {bias: s, scale: 2, act: relu, order: [bias, scale, act]}",
          "gemm epilogue epilogue" },
        { "epilogue: {scale: 2, residual: r, act: relu, order: [act, residual, scale]}",
          "gemm epilogue epilogue epilogue" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT] = ALL_INPUTS, ops[TEXT];

        put(text, "  - {op: gemm, name: y, a: a, b: b, %s}\noutputs: [y]\n",
            cases[i].fields);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

        assert_string_equal(ops_of(&model, ops), cases[i].ops);
        test_walk_free(&model);
    }
}

/* Wide rows of operands are nothing of an op; those of the result are zeros behind what
 * an epilogue makes. */
static void wide_rows_need_an_op_behind_an_epilogue_alone(void **state)
{
    static const struct {
        const char *fields, *ops;
    } cases[] = {
        { "ld: {a: 5}", "gemm" },
        { "n: 3, ld: {b: 4}, epilogue: {act: relu}", "gemm epilogue" },
        { "ld: {out: 9}", "gemm" },
        { "ld: {out: 9}, epilogue: {scale: 2, residual: r}", "gemm" },
        { "ld: {out: 9}, epilogue: {bias: s}", "gemm epilogue slice.bwd" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT] = HEAD "inputs:\n  b: {shape: [3, 4]}\n  r: {shape: [2, 4]}\n"
                               "  s: {shape: [4]}\n",
             ops[TEXT];

        put(text, "  a: {shape: [2, %s]}\nops:\n",
            strstr(cases[i].fields, "a: 5") ? "5" : "3");
        put(text, "  - {op: gemm, name: y, a: a, b: b, %s}\noutputs: [y]\n",
            cases[i].fields);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

        assert_string_equal(ops_of(&model, ops), cases[i].ops);
        test_walk_free(&model);
    }
}

/* As torch.addmm: with beta 0 what c holds is of no account. */
static void with_beta_0_c_is_not_read(void **state)
{
    char text[TEXT] = ALL_INPUTS;

    (void)state;
    put(text, "  - {op: gemm, name: y, a: a, b: b, c: c, beta: 0}\noutputs: [y]\n");
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    for (int i = 0; i < 8; i++)
        test_walk_tensor(&model, "c")[i] = NAN;
    test_walk_step(&model);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(test_walk_tensor(&model, "y")[i]) < 1e9);
    test_walk_free(&model);
}

/* --- derivatives; test_backward.c compares those of all samples with differences --- */

/* gemm.bwd makes every gradient that `backward` derives, to the bit. */
static void gemm_bwd_makes_what_is_derived(void **state)
{
    static const char *const pairs[][2] = { { "da", "a.grad" },
                                            { "db", "b.grad" },
                                            { "dc", "c.grad" },
                                            { "dbias", "s.grad" },
                                            { "dresidual", "r.grad" } };
    static const struct {
        const char *a, *b, *c, *out, *sizes;
    } cases[] = {
        { "[2, 3, 5]", "[2, 5, 4]", "4", "4", "" },
        { "[2, 3, 5]", "[5, 4]", "4", "4", "" },
        { "[3, 5]", "[2, 5, 4]", "4", "4", "" },
        { "[2, 3, 6]", "[2, 5, 7]", "6", "4", ", n: 4, ld: {a: 6, b: 7, c: 6}" },
        { "[2, 3, 6]", "[5, 7]", "6", "9", ", n: 4, ld: {a: 6, b: 7, c: 6, out: 9}" },
        { "[3, 5]", "[2, 5, 4]", "4", "5", ", ld: {out: 5}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[TEXT] = HEAD;

        put(text,
            "inputs:\n  t: {shape: [2, 3, %s], init: normal}\nparams:\n"
            "  a: {shape: %s, init: normal}\n  b: {shape: %s, init: normal}\n"
            "  c: {shape: [2, 3, %s], init: normal}\n  r: {shape: [2, 3, 4], init: "
            "normal}\n  s: {shape: [4], init: normal}\nops:\n",
            cases[i].out, cases[i].a, cases[i].b, cases[i].c);
        put(text,
            "  - {op: gemm, name: y, a: a, b: b, alpha: 0.5, c: c, beta: 3%s, "
            "epilogue: {bias: s, residual: r, act: tanh}}\n"
            "  - {op: mse, name: loss, x: y, target: t}\n"
            "  - {op: mse.bwd, name: dy, x: y, target: t}\n"
            "  - {op: gemm.bwd, name: g, a: a, b: b, dy: dy, y: y, alpha: 0.5, "
            "beta: 3%s, epilogue: {act: tanh}, da: da, db: db, dc: dc, dbias: dbias, "
            "dresidual: dresidual}\nbackward: loss\n",
            cases[i].sizes, cases[i].sizes);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_seed());

        test_walk_step(&model);
        for (size_t k = 0; k < ARRAY_SIZE(pairs); k++) {
            const int64_t n = test_walk_count(&model, pairs[k][1]);

            assert_int_equal(test_walk_count(&model, pairs[k][0]), n);
            assert_memory_equal(test_walk_tensor(&model, pairs[k][0]),
                                test_walk_tensor(&model, pairs[k][1]),
                                (size_t)n * sizeof(double));
        }
        test_walk_free(&model);
    }
}

/* What a batch shares gets the sum over the batch, and no op more than that. */
static void the_gradient_of_a_shared_weight_is_one_product(void **state)
{
    char text[TEXT] = HEAD "inputs:\n  x: {shape: [2, 3, 5], init: normal}\n"
                           "  t: {shape: [2, 3, 4], init: normal}\n"
                           "params:\n  w: {shape: [5, 4], init: normal}\nops:\n"
                           "  - {op: gemm, name: y, a: x, b: w}\n"
                           "  - {op: mse, name: loss, x: y, target: t}\n"
                           "backward: loss\n";
    char ops[TEXT];

    (void)state;
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    assert_string_equal(ops_of(&model, ops), "gemm mse.bwd mse gemm step.end");
    assert_true(model.graph->nodes[3].attr[GX_GEMM_SUM_BATCH].i);
    test_walk_free(&model);
}

/* What a product does not use has the gradient 0, what it uses that of the narrow one. */
static void what_is_not_used_has_no_gradient(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  t: {shape: [3, 6], init: normal}\nparams:\n"
             "  a: {shape: [3, 5], init: normal}\n  b: {shape: [4, 7], init: normal}\n"
             "  c: {shape: [3, 8], init: normal}\nops:\n"
             "  - {op: gemm, name: y, a: a, b: b, c: c, n: 2, ld: {a: 5, b: 7, c: 8, "
             "out: 6}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, test_seed());
    static const struct {
        const char *name;
        int64_t rows, row, used;
    } cases[] = { { "a.grad", 3, 5, 4 }, { "b.grad", 4, 7, 2 }, { "c.grad", 3, 8, 2 } };

    test_walk_step(&model);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const double *x = test_walk_tensor(&model, cases[i].name);

        assert_int_equal(test_walk_count(&model, cases[i].name),
                         cases[i].rows * cases[i].row);
        for (int64_t at = 0; at < cases[i].rows * cases[i].row; at++)
            assert_true((x[at] == 0) == (at % cases[i].row >= cases[i].used));
    }
    test_walk_free(&model);
}

/* Costs are of what is used, and of all that is written. */
static void costs_are_of_what_is_used(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  a: {shape: [2, 3, 9]}\n  b: {shape: [2, 5, 8]}\n"
             "  c: {shape: [2, 3, 6]}\nops:\n"
             "  - {op: gemm, name: y, a: a, b: b, c: c, alpha: 2, n: 4, ld: {a: 9, b: 8, "
             "c: 6, out: 7}}\noutputs: [y]\n",
        "f32", GX_TRAIN, 1);
    const gx_node_info info = gx_graph_node(model.graph, 0);

    assert_true(info.flops == 2 * 3 * 4 * (2.0 * 5 + 3));
    assert_true(info.bytes == 4.0 * 2 * (3 * 5 + 5 * 4 + 3 * 4 + 3 * 7));
    test_walk_free(&model);
}

/* A weight whose rows are wider has the fans of what is used. */
static void fans_are_of_what_is_used(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [3, 9]}\n  t: {shape: [3, 4]}\nparams:\n"
             "  w: {shape: [5, 8], init: he_normal}\n  s: {shape: [4]}\nops:\n"
             "  - {op: gemm, name: y, a: x, b: w, n: 4, ld: {a: 9, b: 8}, epilogue: "
             "{bias: s}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, 1);
    const gx_graph *graph = model.graph;
    const gx_value *w = &graph->values[gx_graph_value_id(graph, "w")];
    const gx_value *s = &graph->values[gx_graph_value_id(graph, "s")];

    assert_int_equal(w->fan_in, 5);
    assert_int_equal(w->fan_out, 4);
    assert_int_equal(s->fan_in, 5);
    assert_int_equal(s->fan_out, 4);
    test_walk_free(&model);
}

/* A shared weight's fans are those of the matrix. */
static void fans_are_of_the_last_two_dimensions(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [9, 3, 5]}\n  t: {shape: [9, 3, 4]}\nparams:\n"
             "  w: {shape: [9, 5, 4], init: he_normal}\n  s: {shape: [4]}\nops:\n"
             "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: s}}\n"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, 1);
    const gx_graph *graph = model.graph;
    const gx_value *w = &graph->values[gx_graph_value_id(graph, "w")];
    const gx_value *s = &graph->values[gx_graph_value_id(graph, "s")];

    assert_int_equal(w->fan_in, 5);
    assert_int_equal(w->fan_out, 4);
    assert_int_equal(s->fan_in, 5);
    assert_int_equal(s->fan_out, 4);
    test_walk_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_is_its_formula),
        cmocka_unit_test(an_epilogue_of_its_own_is_the_same_steps),
        cmocka_unit_test(an_order_becomes_as_few_ops_as_it_can),
        cmocka_unit_test(wide_rows_need_an_op_behind_an_epilogue_alone),
        cmocka_unit_test(with_beta_0_c_is_not_read),
        cmocka_unit_test(gemm_bwd_makes_what_is_derived),
        cmocka_unit_test(the_gradient_of_a_shared_weight_is_one_product),
        cmocka_unit_test(what_is_not_used_has_no_gradient),
        cmocka_unit_test(costs_are_of_what_is_used),
        cmocka_unit_test(fans_are_of_what_is_used),
        cmocka_unit_test(fans_are_of_the_last_two_dimensions),
    };

    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
