/* transpose, reshape, slice, concat and cast: random shapes against formulas of their
 * own, gradients against central differences, and what is said of those that do not fit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\nprecision: $P\n"

enum { DRAWS = 40, TEXT = 3000 };

typedef struct shape {
    int rank;
    int64_t dim[GX_MAX_RANK];
} shape;

static shape random_shape(test_random *random, int least_rank, int most_rank)
{
    shape s = { .rank = (int)test_random_int(random, least_rank, most_rank) };

    for (int i = 0; i < s.rank; i++)
        s.dim[i] = test_random_int(random, test_random_int(random, 0, 9) ? 1 : 0, 5);
    return s;
}

static int64_t count(const shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

static const char *text_of(const shape *s, char *text)
{
    return gx_shape_text(s->rank, s->dim, text, 200);
}

/* The index along each axis of element k. */
static void index_of(const shape *s, int64_t k, int64_t *index)
{
    for (int i = s->rank - 1; i >= 0; i--) {
        index[i] = k % s->dim[i];
        k /= s->dim[i];
    }
}

static int64_t place_of(const shape *s, const int64_t *index)
{
    int64_t k = 0;

    for (int i = 0; i < s->rank; i++)
        k = k * s->dim[i] + index[i];
    return k;
}

static void expect_shape(const test_walk *model, const char *name, const shape *s)
{
    const gx_value *value = &model->graph->values[gx_graph_value_id(model->graph, name)];

    assert_int_equal(value->rank, s->rank);
    for (int i = 0; i < s->rank; i++)
        assert_int_equal(value->dim[i], s->dim[i]);
}

/* A model of one op of x, in a random type; i32 too. */
static test_walk one_op(test_random *random, const shape *x, const char *op)
{
    static const char *const types[] = { "f32", "bf16", "f16", "i32" };
    const char *type = types[test_random_int(random, 0, 3)];
    char text[TEXT], shape_text[200];

    snprintf(text, sizeof text,
             HEAD "inputs:\n  x: {shape: %s, dtype: %s}\nops:\n  - {%s}\noutputs: [y]\n",
             text_of(x, shape_text), type, op);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    for (int64_t k = 0; k < count(x); k++)
        test_walk_tensor(&model, "x")[k] = (double)test_random_int(random, -99, 99);
    test_walk_step(&model);
    return model;
}

/* --- each op against its formula --- */

static void put_list(char *text, size_t size, const int64_t *items, int n)
{
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                 (long long)items[i]);
}

static void shuffle(test_random *random, int64_t *items, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)test_random_int(random, 0, i);
        const int64_t kept = items[i];

        items[i] = items[k];
        items[k] = kept;
    }
}

static void transpose_moves_each_axis(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        const bool usual = draw % 4 == 0;
        const shape x = random_shape(&random, usual ? 2 : 1, GX_MAX_RANK);
        shape y = { .rank = x.rank };
        int64_t perm[GX_MAX_RANK], written[GX_MAX_RANK];
        char op[300], list[100];

        for (int i = 0; i < x.rank; i++)
            perm[i] = i;
        if (usual) {
            perm[x.rank - 1] = x.rank - 2;
            perm[x.rank - 2] = x.rank - 1;
        } else {
            shuffle(&random, perm, x.rank);
        }
        for (int i = 0; i < x.rank; i++) {
            y.dim[i] = x.dim[perm[i]];
            written[i] = perm[i] - (test_random_int(&random, 0, 1) ? x.rank : 0);
        }
        put_list(list, sizeof list, written, x.rank);
        snprintf(op, sizeof op, "op: transpose, name: y, x: x%s%s%s",
                 usual ? "" : ", perm: [", usual ? "" : list, usual ? "" : "]");
        test_walk model = one_op(&random, &x, op);

        expect_shape(&model, "y", &y);
        for (int64_t k = 0; k < count(&y); k++) {
            int64_t there[GX_MAX_RANK], here[GX_MAX_RANK];

            index_of(&y, k, there);
            for (int i = 0; i < x.rank; i++)
                here[perm[i]] = there[i];
            assert_true(test_walk_tensor(&model, "y")[k] ==
                        test_walk_tensor(&model, "x")[place_of(&x, here)]);
        }
        test_walk_free(&model);
    }
}

static void reshape_keeps_the_order(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        shape y = random_shape(&random, 0, GX_MAX_RANK);
        shape x = y, written = y;
        char op[300], list[200];

        /* x has the sizes in another order, and two of them as one */
        shuffle(&random, x.dim, x.rank);
        if (x.rank > 1) {
            x.dim[x.rank - 2] *= x.dim[x.rank - 1];
            x.rank--;
        }
        if (count(&y) > 0 && y.rank > 0 && draw % 2 == 0)
            written.dim[test_random_int(&random, 0, y.rank - 1)] = -1;
        put_list(list, sizeof list, written.dim, written.rank);
        snprintf(op, sizeof op, "op: reshape, name: y, x: x, shape: [%s]", list);
        test_walk model = one_op(&random, &x, op);

        expect_shape(&model, "y", &y);
        for (int64_t k = 0; k < count(&y); k++)
            assert_true(test_walk_tensor(&model, "y")[k] ==
                        test_walk_tensor(&model, "x")[k]);
        test_walk_free(&model);
    }
}

static void slice_takes_every_step_th(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        const shape x = random_shape(&random, 1, 5);
        const int axis = (int)test_random_int(&random, 0, x.rank - 1);
        const int64_t size = x.dim[axis];
        const int64_t start = test_random_int(&random, 0, size);
        const int64_t stop = test_random_int(&random, start, size);
        const int64_t step = test_random_int(&random, 1, 3);
        const bool back = start < size && draw % 3 == 0, open = draw % 5 == 0;
        shape y = x;
        char op[300], end[40] = "";

        if (!open)
            snprintf(end, sizeof end, ", stop: %lld",
                     (long long)(stop < size && draw % 2 ? stop - size : stop));
        y.dim[axis] = 0;
        for (int64_t i = start; i < (open ? size : stop); i += step)
            y.dim[axis]++;
        snprintf(op, sizeof op,
                 "op: slice, name: y, x: x, axis: %d, start: %lld, step: %lld%s",
                 draw % 2 ? axis : axis - x.rank,
                 (long long)(back ? start - size : start), (long long)step, end);
        test_walk model = one_op(&random, &x, op);

        expect_shape(&model, "y", &y);
        for (int64_t k = 0; k < count(&y); k++) {
            int64_t index[GX_MAX_RANK];

            index_of(&y, k, index);
            index[axis] = start + index[axis] * step;
            assert_true(test_walk_tensor(&model, "y")[k] ==
                        test_walk_tensor(&model, "x")[place_of(&x, index)]);
        }
        test_walk_free(&model);
    }
}

static void concat_puts_one_after_the_other(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        const shape first = random_shape(&random, 1, 4);
        const int axis = (int)test_random_int(&random, 0, first.rank - 1);
        const int n = (int)test_random_int(&random, 1, 8);
        char text[TEXT] = HEAD "inputs:\n", name[16], shape_text[200];
        shape y = first, part[8];
        size_t used = strlen(text);

        y.dim[axis] = 0;
        for (int i = 0; i < n; i++) {
            part[i] = first;
            part[i].dim[axis] = test_random_int(&random, 0, 4);
            y.dim[axis] += part[i].dim[axis];
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "  x%d: {shape: %s, dtype: i32}\n", i,
                                     text_of(&part[i], shape_text));
        }
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "ops:\n  - {op: concat, name: y, axis: %d, x: [",
                                 draw % 2 ? axis : axis - first.rank);
        for (int i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%sx%d",
                                     i ? ", " : "", i);
        snprintf(text + used, sizeof text - used, "]}\noutputs: [y]\n");
        test_walk model = test_walk_parse(text, "bf16", GX_TRAIN, 1);

        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "x%d", i);
            for (int64_t k = 0; k < count(&part[i]); k++)
                test_walk_tensor(&model, name)[k] = (double)(1000 * i + k);
        }
        test_walk_step(&model);
        expect_shape(&model, "y", &y);
        for (int64_t k = 0; k < count(&y); k++) {
            int64_t index[GX_MAX_RANK];
            int i = 0;

            index_of(&y, k, index);
            while (index[axis] >= part[i].dim[axis])
                index[axis] -= part[i++].dim[axis];
            assert_true(test_walk_tensor(&model, "y")[k] ==
                        (double)(1000 * i + place_of(&part[i], index)));
        }
        test_walk_free(&model);
    }
}

/* As C casts, and what a cast of C leaves open. */
static void cast_to_integers_cuts_off(void **state)
{
    static const double from[] = { 1.9,      -1.9,      0.5, -0.0, NAN,
                                   INFINITY, -INFINITY, 3e9, -3e9 };
    static const double to[] = {
        1, -1, 0, 0, 0, 2147483647, -2147483648.0, 2147483647, -2147483648.0
    };
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [9]}\n"
             "ops:\n  - {op: cast, name: y, x: x, dtype: i32}\noutputs: [y]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    memcpy(test_walk_tensor(&model, "x"), from, sizeof from);
    test_walk_step(&model);
    for (size_t i = 0; i < ARRAY_SIZE(to); i++)
        assert_true(test_walk_tensor(&model, "y")[i] == to[i]);
    test_walk_free(&model);
}

static void cast_rounds_once(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [2], dtype: i32}\n"
             "ops:\n  - {op: cast, name: y, x: x, dtype: bf16}\n"
             "  - {op: cast, name: z, x: x, dtype: f32}\noutputs: [y, z]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    /* Halfway between two bf16, and one more: by way of f32 it would be the even one. */
    test_walk_tensor(&model, "x")[0] = (1 << 30) + (1 << 22) + 1;
    test_walk_tensor(&model, "x")[1] = (1 << 24) + 1;
    test_walk_step(&model);
    assert_true(test_walk_tensor(&model, "y")[0] == (1 << 30) + (1 << 23));
    assert_true(test_walk_tensor(&model, "z")[1] == 1 << 24);
    test_walk_free(&model);
}

/* To nearest, ties to even; an f16 ends at 65504, and 65520 is halfway past it. */
static void cast_to_f16_rounds_and_overflows(void **state)
{
    static const double from[] = { 2049, 2051, -2051, 65519, 65520, -70000, NAN };
    static const double to[] = { 2048, 2052, -2052, 65504, INFINITY, -INFINITY, NAN };
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [7]}\n  i: {shape: [7], dtype: i32}\n"
             "ops:\n  - {op: cast, name: y, x: x, dtype: f16}\n"
             "  - {op: cast, name: z, x: i, dtype: f16}\n"
             "  - {op: cast, name: back, x: y, dtype: f32}\noutputs: [y, z, back]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
        test_walk_tensor(&model, "x")[i] = from[i];
        test_walk_tensor(&model, "i")[i] = isnan(from[i]) ? 0 : from[i];
    }
    test_walk_step(&model);
    for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
        const double y = test_walk_tensor(&model, "y")[i];

        assert_true(y == to[i] || (isnan(y) && isnan(to[i])));
        assert_true(test_walk_tensor(&model, "back")[i] == y || isnan(y));
        assert_true(test_walk_tensor(&model, "z")[i] == (isnan(to[i]) ? 0 : to[i]));
    }
    test_walk_free(&model);
}

/* --- gradients --- */

/* All ops in a row with random sizes, between a parameter that is read twice and a loss:
 * the derivative against the difference quotient, in double. */
static void gradients_are_difference_quotients(void **state)
{
    test_random random = test_random_start(test_seed());

    (void)state;
    for (int draw = 0; draw < 10; draw++) {
        const long long a = test_random_int(&random, 1, 4);
        const long long b = test_random_int(&random, 2, 5);
        const long long c = test_random_int(&random, 1, 4);
        const long long start = test_random_int(&random, 0, b - 1);
        const long long step = test_random_int(&random, 1, 2);
        const long long taken = (b - start + step - 1) / step;
        char text[TEXT];

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  t: {shape: [%lld, %lld], init: normal}\n"
                      "params:\n  w: {shape: [%lld, %lld, %lld], init: normal}\nops:\n"
                      "  - {op: slice, name: s, x: w, axis: 1, start: %lld, step: %lld}\n"
                      "  - {op: concat, name: j, x: [w, s, w], axis: -2}\n"
                      "  - {op: transpose, name: p, x: j, perm: [1, 2, 0]}\n"
                      "  - {op: cast, name: q, x: p, dtype: bf16}\n"
                      "  - {op: reshape, name: y, x: q, shape: [%lld, -1]}\n"
                      "  - {op: cast, name: z, x: y, dtype: f32}\n"
                      "  - {op: mse, name: loss, x: z, target: t}\nbackward: loss\n",
                 2 * b + taken, a * c, a, b, c, start, step, 2 * b + taken);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, (uint64_t)draw);
        double *w = test_walk_tensor(&model, "w");
        double gradient[4 * 5 * 4];
        const double h = 1e-5;

        model.exact = true;
        test_walk_step(&model);
        memcpy(gradient, test_walk_tensor(&model, "w.grad"),
               (size_t)(a * b * c) * sizeof *gradient);
        for (int64_t k = 0; k < a * b * c; k++) {
            const double x = w[k];
            double loss[2];

            for (int side = 0; side < 2; side++) {
                w[k] = side ? x + h : x - h;
                test_walk_step(&model);
                loss[side] = *test_walk_tensor(&model, "loss");
            }
            w[k] = x;
            assert_true(fabs((loss[1] - loss[0]) / (2 * h) - gradient[k]) < 1e-8);
        }
        test_walk_free(&model);
    }
}

/* --- labels --- */

/* What a loss asks of its labels it asks of the input that they are a part of. */
static void labels_are_checked_where_they_come_in(void **state)
{
    test_walk model = test_walk_parse(
        HEAD
        "inputs:\n  x: {shape: [6, 4], init: normal}\n  a: {shape: [2, 3], dtype: i32}\n"
        "  b: {shape: [5], dtype: i32}\nops:\n"
        "  - {op: transpose, name: s, x: a}\n"
        "  - {op: reshape, name: r, x: s, shape: [6]}\n"
        "  - {op: concat, name: j, x: [r, b]}\n"
        "  - {op: slice, name: y, x: j, start: 3, stop: 9}\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: x, labels: y}\n"
        "outputs: [loss]\n",
        "f32", GX_TRAIN, 1);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const int32_t id = gx_graph_value_id(model.graph, i ? "a" : "b");

        assert_int_equal(model.graph->values[id].index_limit, 4);
    }
    test_walk_free(&model);
}

/* --- mistakes --- */

static void expect_mistake(const char *op, const char *message)
{
    char text[TEXT], *mistakes;

    snprintf(
        text, sizeof text,
        "gexec: 1\nname: m\ndims: {n: 3}\ninputs:\n  x: {shape: [2, n, 4]}\n"
        "  i: {shape: [2, n, 4], dtype: i32}\n  s: {shape: []}\n  z: {shape: [0, n]}\n"
        "ops:\n  - {%s}\n",
        op);
    mistakes = test_walk_mistakes(text, GX_TRAIN);
    assert_has(mistakes, message);
    free(mistakes);
}

static void what_does_not_fit_is_said_with_its_place(void **state)
{
    static const char *const mistakes[][2] = {
        { "op: transpose, name: y, x: x, perm: [0, 1]",
          "model.yaml:10:43: transpose \"y\": perm has 2 axes, expected 3, one for each "
          "axis of x [2, 3, 4]" },
        { "op: transpose, name: y, x: x, perm: [0, 1, 3]",
          "model.yaml:10:49: transpose \"y\": perm.2 is 3, expected one from -3 to 2: x "
          "has shape [2, 3, 4]" },
        { "op: transpose, name: y, x: x, perm: [0, -3, 1]",
          "model.yaml:10:46: transpose \"y\": perm has axis 0 twice, expected each "
          "once" },
        { "op: transpose, name: y, x: s",
          "x has 0 dimensions: without perm the last two" },
        { "op: transpose, name: y, x: x, perm.0: 1, perm.2: 0",
          "model.yaml:10:47: perm is one integer, or a list of up to 8" },
        { "op: transpose, name: y, x: x, perm: 5",
          "model.yaml:10:42: transpose \"y\": perm has 1 axis, expected 3" },
        { "op: transpose, name: y, x: x, perm: [0, a, 1]",
          "model.yaml:10:46: there is no dim \"a\"" },
        { "op: transpose, name: y, x: x, perm: [0, 1.5, 1]",
          "model.yaml:10:46: \"1.5\": expected a whole decimal number" },
        { "op: transpose, name: y, x: x, perm: [0, 1, 2, 3, 4, 5, 6, 7, 8]",
          "model.yaml:10:67: perm is one integer, or a list of up to 8" },
        { "op: reshape, name: y, x: x, shape: [n, -1, 2, -1]",
          "model.yaml:10:52: reshape \"y\": shape has -1 twice" },
        { "op: reshape, name: y, x: x, shape: [5, -1]",
          "model.yaml:10:42: reshape \"y\": x [2, 3, 4] has 24 elements, which do not "
          "fill "
          "[5, -1]" },
        { "op: reshape, name: y, x: x, shape: [2 * n, 5]",
          "x [2, 3, 4] has 24 elements, which do not fill [6, 5]" },
        { "op: reshape, name: y, x: x, shape: [4, -6]",
          "model.yaml:10:45: reshape \"y\": shape has the size -6, expected 0 or more" },
        { "op: reshape, name: y, x: z, shape: [0, -1]",
          "-1 in [0, -1] could be any size" },
        { "op: reshape, name: y, x: x", "24 elements, which do not fill []" },
        { "op: reshape, name: y, x: x, shape: [9223372036854775807, 0]",
          "shape has more than 1099511627776 elements" },
        { "op: reshape, name: y, x: x, shape: [1, 1, 1, 1, 1, 1, 1, 1, 24]",
          "model.yaml:10:66: shape is one integer, or a list of up to 8" },
        { "op: reshape, name: y, x: x, shape: -2",
          "model.yaml:10:41: reshape \"y\": shape has the size -2, expected 0 or more" },
        { "op: reshape, name: y, x: x, shape: [4, [6]]",
          "shape is one integer, or a list of up to 8" },
        { "op: sum, name: y, x: x, axis: [0, 3]",
          "model.yaml:10:40: sum \"y\": axis 3 of shape [2, 3, 4], expected -3 to 2" },
        { "op: sum, name: y, x: x, axis: [1, 0, -2]",
          "model.yaml:10:43: sum \"y\": axis 1 stands twice" },
        { "op: broadcast_to, name: y, x: s, shape: [4, -1]",
          "size 1 is -1, expected 0 or more" },
        { "op: slice, name: y, x: x, axis: 3",
          "model.yaml:10:38: slice \"y\": axis is 3, expected one from -3 to 2: x has "
          "shape "
          "[2, 3, 4]" },
        { "op: slice, name: y, x: s", "x is a scalar, expected one dimension or more" },
        { "op: slice, name: y, x: x, axis: 1, stop: 4",
          "model.yaml:10:47: slice \"y\": stop is 4, expected one from -3 to 3: the axis "
          "has 3 elements" },
        { "op: slice, name: y, x: x, axis: 1, start: -4",
          "start is -4, expected one from" },
        { "op: slice, name: y, x: x, axis: 1, start: 2, stop: 1",
          "stop is 1, which lies before start 2" },
        { "op: slice, name: y, x: x, step: 0", "step is 0, expected 1 or more" },
        { "op: slice.bwd, name: y, dy: x, axis: 1, size: 4, stop: 2",
          "dy has shape [2, 3, 4], expected [2, 2, 4]" },
        { "op: slice.bwd, name: y, dy: x, axis: 1, size: -1", "size is -1, expected" },
        { "op: concat, name: y, x: [x, z]",
          "model.yaml:10:34: concat \"y\": x.1 has shape [0, 3], expected [2, 3, 4]" },
        { "op: concat, name: y, x: [x, i]", "x.1 is i32, expected f32" },
        { "op: concat, name: y, x: [s]", "x.0 is a scalar, expected one dimension" },
        { "op: concat, name: y, x: []",
          "concat \"y\" lacks the field \"x\": a list, each item a tensor" },
        { "op: concat, name: y, x: x",
          "model.yaml:10:30: x of concat is a list, as in {x: [...]}, of up to 8" },
        { "op: concat, name: y, x: [x, x, x, x, x, x, x, x, x]",
          "model.yaml:10:55: x of concat is a list of up to 8" },
        { "op: concat, name: y, x.0: x, x.2: x", "x has an item 2 and no item 1" },
        { "op: concat, name: y, x: [x], axis: -4",
          "model.yaml:10:41: concat \"y\": axis is -4, expected one from -3 to 2" },
        { "op: cast, name: y, x: x, dtype: i64",
          "model.yaml:10:38: dtype is \"i64\", expected one of: f32, bf16, f16, i32" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++)
        expect_mistake(mistakes[i][0], mistakes[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transpose_moves_each_axis),
        cmocka_unit_test(reshape_keeps_the_order),
        cmocka_unit_test(slice_takes_every_step_th),
        cmocka_unit_test(concat_puts_one_after_the_other),
        cmocka_unit_test(cast_to_integers_cuts_off),
        cmocka_unit_test(cast_rounds_once),
        cmocka_unit_test(cast_to_f16_rounds_and_overflows),
        cmocka_unit_test(gradients_are_difference_quotients),
        cmocka_unit_test(labels_are_checked_where_they_come_in),
        cmocka_unit_test(what_does_not_fit_is_said_with_its_place),
    };

    return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
