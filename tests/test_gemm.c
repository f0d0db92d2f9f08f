/* Products of a batch, their factors and sums, and the epilogue in every order, against
 * plain formulas over every index, on fresh random shapes and numbers. */
#include "support.h"

#include <math.h>
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_is_its_formula),
        cmocka_unit_test(an_epilogue_of_its_own_is_the_same_steps),
    };

    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
