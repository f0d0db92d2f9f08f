/* Elementwise ops that broadcast, reductions and softmax against plain formulas over
 * every index, on fresh random shapes and numbers. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

enum { DRAWS = 40, MOST = 4 };

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

typedef struct shape {
    int rank;
    int64_t dim[GX_MAX_RANK];
} shape;

static const char *shape_text(const shape *s, char text[64])
{
    return gx_shape_text(s->rank, s->dim, text, 64);
}

static int64_t count(const shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

static shape draw_shape(test_random *random)
{
    shape s = { .rank = (int)test_random_int(random, 0, MOST) };

    for (int i = 0; i < s.rank; i++)
        s.dim[i] = test_random_int(random, 1, 5);
    return s;
}

/* The same without some dimensions in front, and with sizes of 1 here and there. */
static shape draw_narrower(test_random *random, const shape *of)
{
    shape s = { .rank = (int)test_random_int(random, 0, of->rank) };

    for (int i = 0; i < s.rank; i++)
        s.dim[i] = test_random_int(random, 0, 2) ? of->dim[i + of->rank - s.rank] : 1;
    return s;
}

/* The element of a tensor of shape `s` that stands at element i of a larger shape. */
static int64_t narrowed(const shape *s, const shape *all, int64_t i)
{
    int64_t at = 0, stride = 1;

    for (int d = all->rank - 1; d >= 0; d--) {
        const int own = d - (all->rank - s->rank);
        const int64_t digit = i % all->dim[d];

        i /= all->dim[d];
        if (own < 0)
            continue;
        at += (s->dim[own] == 1 ? 0 : digit) * stride;
        stride *= s->dim[own];
    }
    return at;
}

static void fill(test_random *random, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = test_random_real(random, -3, 3);
}

static void assert_near(const test_walk *model, const char *name, const double *expected,
                        int64_t n)
{
    assert_int_equal(test_walk_count(model, name), n);
    for (int64_t i = 0; i < n; i++) {
        const double found = test_walk_tensor(model, name)[i];

        if (!(fabs(found - expected[i]) <= 1e-12 * fmax(1, fabs(expected[i]))))
            fail_msg("%s[%lld] is %.17g, expected %.17g", name, (long long)i, found,
                     expected[i]);
    }
}

/* --- two operands --- */

static double apply(const char *op, double a, double b)
{
    return op[0] == 'a' ? a + b : op[0] == 's' ? a - b : a * b;
}

static void binary_ops_broadcast(void **state)
{
    static const char *const ops[] = { "add", "sub", "mul" };
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        const shape all = draw_shape(&random);
        const bool a_is_wide = test_random_int(&random, 0, 1);
        const shape narrow = draw_narrower(&random, &all);
        const shape *sa = a_is_wide ? &all : &narrow, *sb = a_is_wide ? &narrow : &all;
        const int64_t n = count(&all);
        char text[600], of_a[64], of_b[64];
        double *expected = calloc((size_t)n + 1, sizeof *expected);

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  a: {shape: %s}\n  b: {shape: %s}\nops:\n"
                      "  - {op: %s, name: y, a: a, b: b}\noutputs: [y]\n",
                 shape_text(sa, of_a), shape_text(sb, of_b), ops[draw % 3]);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
        double *a = test_walk_tensor(&model, "a"), *b = test_walk_tensor(&model, "b");

        model.exact = true;
        fill(&random, a, count(sa));
        fill(&random, b, count(sb));
        for (int64_t i = 0; i < n; i++)
            expected[i] =
                apply(ops[draw % 3], a[narrowed(sa, &all, i)], b[narrowed(sb, &all, i)]);
        test_walk_step(&model);
        assert_near(&model, "y", expected, n);
        test_walk_free(&model);
        free(expected);
    }
}

/* Both operands are narrower than what comes out. */
static void both_operands_may_be_broadcast(void **state)
{
    test_walk model =
        test_walk_parse(HEAD "inputs:\n  a: {shape: [2, 1]}\n  b: {shape: [3]}\nops:\n"
                             "  - {op: sub, name: y, a: a, b: b}\noutputs: [y]\n",
                        "f32", GX_TRAIN, 1);
    static const double expected[] = { 9, 8, 7, 19, 18, 17 };

    (void)state;
    for (int i = 0; i < 2; i++)
        test_walk_tensor(&model, "a")[i] = 10 * (i + 1);
    for (int i = 0; i < 3; i++)
        test_walk_tensor(&model, "b")[i] = i + 1;
    test_walk_step(&model);
    assert_near(&model, "y", expected, 6);
    test_walk_free(&model);
}

/* The bias gradient of 4096 ones is 4096, in bf16 too, whichever op it comes from. */
static void a_broadcast_gradient_does_not_stop_growing(void **state)
{
    test_walk model =
        test_walk_parse(HEAD "inputs:\n  dy: {shape: [4096, 3], init: ones}\nops:\n"
                             "  - {op: sum_to, name: db, x: dy, shape: [3]}\n"
                             "  - {op: sum, name: s, x: dy, axis: 0}\noutputs: [db, s]\n",
                        "bf16", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    for (int i = 0; i < 3; i++) {
        assert_true(test_walk_tensor(&model, "db")[i] == 4096);
        assert_true(test_walk_tensor(&model, "s")[i] == 4096);
    }
    test_walk_free(&model);
}

/* --- reductions --- */

/* A random set of axes, some from the end; as text, and as bits. */
static unsigned draw_axes(test_random *random, const shape *s, char text[64])
{
    unsigned mask = 0;

    text[0] = 0;
    for (int i = 0; i < s->rank; i++) {
        if (test_random_int(random, 0, 1)) {
            const int64_t axis = test_random_int(random, 0, 1) ? i : i - s->rank;

            sprintf(text + strlen(text), "%s%lld", mask ? ", " : "", (long long)axis);
            mask |= 1u << i;
        }
    }
    return mask ? mask : (1u << s->rank) - 1;
}

static shape without(const shape *s, unsigned mask, bool keepdim)
{
    shape out = { .rank = 0 };

    for (int i = 0; i < s->rank; i++) {
        if (!(mask >> i & 1) || keepdim)
            out.dim[out.rank++] = mask >> i & 1 ? 1 : s->dim[i];
    }
    return out;
}

typedef struct reduction {
    shape x, kept, out; /* kept: with sizes of 1, so that it broadcasts to x */
    char axis[64];
    bool keepdim;
    double *sum, *max;
    int64_t n, n_out;
} reduction;

static reduction draw_reduction(test_random *random)
{
    reduction r = { .x = draw_shape(random), .keepdim = test_random_int(random, 0, 1) };
    char list[64];
    const unsigned mask = draw_axes(random, &r.x, list);

    snprintf(r.axis, sizeof r.axis, "%s%.50s%s", list[0] ? ", axis: [" : "", list,
             list[0] ? "]" : "");
    r.kept = without(&r.x, mask, true);
    r.out = without(&r.x, mask, r.keepdim);
    r.n = count(&r.x);
    r.n_out = count(&r.out);
    r.sum = calloc((size_t)r.n_out + 1, sizeof *r.sum);
    r.max = calloc((size_t)r.n_out + 1, sizeof *r.max);
    return r;
}

static void compute(reduction *r, const double *x)
{
    for (int64_t o = 0; o < r->n_out; o++)
        r->sum[o] = 0, r->max[o] = -INFINITY;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t o = narrowed(&r->kept, &r->x, i);

        r->sum[o] += x[i];
        r->max[o] = fmax(r->max[o], x[i]);
    }
}

/* sum, mean, max, and what comes back through each, for a random dy. */
static void check_reduction(test_random *random)
{
    reduction r = draw_reduction(random);
    const char *keep = r.keepdim ? ", keepdim: true" : "";
    const double per = (double)(r.n / r.n_out);
    char text[2000], of_x[64], of_out[64];

    shape_text(&r.x, of_x);
    shape_text(&r.out, of_out);
    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: %s}\n  dy: {shape: %s}\nops:\n"
                  "  - {op: sum, name: s, x: x%s%s}\n"
                  "  - {op: mean, name: m, x: x%s%s}\n"
                  "  - {op: max, name: t, x: x%s%s}\n"
                  "  - {op: sum.bwd, name: ds, dy: dy, shape: %s%s%s}\n"
                  "  - {op: mean.bwd, name: dm, dy: dy, shape: %s%s%s}\n"
                  "  - {op: max.bwd, name: dt, dy: dy, x: x, y: t%s%s}\n"
                  "outputs: [s, m, t, ds, dm, dt]\n",
             of_x, of_out, r.axis, keep, r.axis, keep, r.axis, keep, of_x, r.axis, keep,
             of_x, r.axis, keep, r.axis, keep);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
    double *x = test_walk_tensor(&model, "x"), *dy = test_walk_tensor(&model, "dy");
    double *back = calloc((size_t)r.n + 1, sizeof *back);
    double *equals = calloc((size_t)r.n_out + 1, sizeof *equals);

    model.exact = true;
    for (int64_t i = 0; i < r.n; i++) /* whole numbers: maxima that stand twice */
        x[i] = (double)test_random_int(random, -2, 2);
    fill(random, dy, r.n_out);
    compute(&r, x);
    test_walk_step(&model);
    assert_near(&model, "s", r.sum, r.n_out);
    assert_near(&model, "t", r.max, r.n_out);
    for (int64_t o = 0; o < r.n_out; o++)
        r.sum[o] /= per;
    assert_near(&model, "m", r.sum, r.n_out);

    for (int64_t i = 0; i < r.n; i++) {
        const int64_t o = narrowed(&r.kept, &r.x, i);

        back[i] = dy[o];
        equals[o] += x[i] == r.max[o];
    }
    assert_near(&model, "ds", back, r.n);
    for (int64_t i = 0; i < r.n; i++)
        back[i] /= per;
    assert_near(&model, "dm", back, r.n);
    for (int64_t i = 0; i < r.n; i++) {
        const int64_t o = narrowed(&r.kept, &r.x, i);

        back[i] = x[i] == r.max[o] ? dy[o] / equals[o] : 0;
    }
    assert_near(&model, "dt", back, r.n);
    test_walk_free(&model);
    free(back), free(equals), free(r.sum), free(r.max);
}

static void reductions_go_over_any_axes(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++)
        check_reduction(&random);
}

static void sum_to_and_broadcast_to_are_the_inverse_ways(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        const shape all = draw_shape(&random), narrow = draw_narrower(&random, &all);
        const int64_t n = count(&all), n_narrow = count(&narrow);
        double *sum = calloc((size_t)n_narrow + 1, sizeof *sum);
        double *wide = calloc((size_t)n + 1, sizeof *wide);
        char text[800], of_all[64], of_narrow[64];

        shape_text(&all, of_all);
        shape_text(&narrow, of_narrow);
        snprintf(text, sizeof text,
                 HEAD "inputs:\n  x: {shape: %s}\n  v: {shape: %s}\nops:\n"
                      "  - {op: sum_to, name: s, x: x, shape: %s}\n"
                      "  - {op: broadcast_to, name: w, x: v, shape: %s}\n"
                      "outputs: [s, w]\n",
                 of_all, of_narrow, of_narrow, of_all);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
        double *x = test_walk_tensor(&model, "x"), *v = test_walk_tensor(&model, "v");

        model.exact = true;
        fill(&random, x, n);
        fill(&random, v, n_narrow);
        for (int64_t i = 0; i < n; i++) {
            sum[narrowed(&narrow, &all, i)] += x[i];
            wide[i] = v[narrowed(&narrow, &all, i)];
        }
        test_walk_step(&model);
        assert_near(&model, "s", sum, n_narrow);
        assert_near(&model, "w", wide, n);
        test_walk_free(&model);
        free(sum), free(wide);
    }
}

/* As torch.amax: NaN is the largest, and then nothing equals it. */
static void a_maximum_passes_nan_on(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [2, 3]}\nops:\n"
             "  - {op: max, name: t, x: x, axis: 1}\n"
             "  - {op: max.bwd, name: dx, x: x, y: t, axis: 1}\noutputs: [t, dx]\n",
        "f32", GX_TRAIN, 1);
    static const double x[] = { 1, NAN, 2, -INFINITY, -INFINITY, -INFINITY };

    (void)state;
    memcpy(test_walk_tensor(&model, "x"), x, sizeof x);
    model.exact = true;
    test_walk_step(&model);
    assert_true(isnan(test_walk_tensor(&model, "t")[0]));
    assert_true(isnan(test_walk_tensor(&model, "dx")[0]));
    assert_true(test_walk_tensor(&model, "t")[1] == -INFINITY);
    assert_true(test_walk_tensor(&model, "dx")[5] == 1.0 / 3);
    test_walk_free(&model);
}

static void a_sum_of_nothing_is_zero(void **state)
{
    test_walk model =
        test_walk_parse(HEAD "inputs:\n  x: {shape: [0, 3]}\nops:\n"
                             "  - {op: sum, name: s, x: x, axis: 0}\noutputs: [s]\n",
                        "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    for (int i = 0; i < 3; i++)
        assert_true(test_walk_tensor(&model, "s")[i] == 0);
    test_walk_free(&model);
}

/* bf16 has 256 and 258, not 257; the f32 result has. */
static void a_sum_of_bf16_may_be_f32(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [257], init: ones}\nops:\n"
             "  - {op: sum, name: s, x: x}\n  - {op: sum, name: f, x: x, dtype: f32}\n"
             "outputs: [s, f]\n",
        "bf16", GX_TRAIN, 1);

    (void)state;
    test_walk_step(&model);
    assert_true(*test_walk_tensor(&model, "s") == 256);
    assert_true(*test_walk_tensor(&model, "f") == 257);
    test_walk_free(&model);
}

/* --- softmax --- */

static void check_softmax(test_random *random)
{
    shape s = draw_shape(random);
    int axis;
    char text[800], of_x[64];
    double *sum, *dot, *y, *dx;

    if (s.rank == 0)
        s.dim[s.rank++] = 3;
    axis = (int)test_random_int(random, 0, s.rank - 1);
    const shape kept = without(&s, 1u << axis, true);
    const int64_t n = count(&s), n_lines = count(&kept);
    const int written = test_random_int(random, 0, 1) ? axis : axis - s.rank;

    shape_text(&s, of_x);
    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: %s}\n  dy: {shape: %s}\nops:\n"
                  "  - {op: softmax, name: y, x: x, axis: %d}\n"
                  "  - {op: softmax.bwd, name: dx, dy: dy, y: y, axis: %d}\n"
                  "outputs: [y, dx]\n",
             of_x, of_x, written, written);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);
    double *x = test_walk_tensor(&model, "x"), *dy = test_walk_tensor(&model, "dy");

    sum = calloc((size_t)n_lines, sizeof *sum),
    dot = calloc((size_t)n_lines, sizeof *dot);
    y = calloc((size_t)n, sizeof *y), dx = calloc((size_t)n, sizeof *dx);
    model.exact = true;
    fill(random, x, n);
    fill(random, dy, n);
    for (int64_t i = 0; i < n; i++)
        sum[narrowed(&kept, &s, i)] += exp(x[i]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = exp(x[i]) / sum[narrowed(&kept, &s, i)];
        dot[narrowed(&kept, &s, i)] += y[i] * dy[i];
    }
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - dot[narrowed(&kept, &s, i)]);
    test_walk_step(&model);
    assert_near(&model, "y", y, n);
    assert_near(&model, "dx", dx, n);
    test_walk_free(&model);
    free(sum), free(dot), free(y), free(dx);
}

static void softmax_goes_along_any_axis(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++)
        check_softmax(&random);
}

/* exp(1000) has no double; a difference of 1000 has. */
static void softmax_of_large_numbers_is_finite(void **state)
{
    test_walk model = test_walk_parse(HEAD "inputs:\n  x: {shape: [2]}\nops:\n"
                                           "  - {op: softmax, name: y, x: x}\n"
                                           "outputs: [y]\n",
                                      "f32", GX_TRAIN, 1);

    (void)state;
    test_walk_tensor(&model, "x")[0] = 1000;
    test_walk_tensor(&model, "x")[1] = 2000;
    test_walk_step(&model);
    assert_true(test_walk_tensor(&model, "y")[0] == 0);
    assert_true(test_walk_tensor(&model, "y")[1] == 1);
    test_walk_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary_ops_broadcast),
        cmocka_unit_test(both_operands_may_be_broadcast),
        cmocka_unit_test(a_broadcast_gradient_does_not_stop_growing),
        cmocka_unit_test(reductions_go_over_any_axes),
        cmocka_unit_test(sum_to_and_broadcast_to_are_the_inverse_ways),
        cmocka_unit_test(a_maximum_passes_nan_on),
        cmocka_unit_test(a_sum_of_nothing_is_zero),
        cmocka_unit_test(a_sum_of_bf16_may_be_f32),
        cmocka_unit_test(softmax_goes_along_any_axis),
        cmocka_unit_test(softmax_of_large_numbers_is_finite),
    };

    return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
