/* Derived and hand-written gradients against central differences, all in double. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resolve.h"
#include "support_walk.h"

/* Parameters and state, as a step finds them. */
typedef struct snapshot {
    double **data;
} snapshot;

static snapshot save(const test_walk *model)
{
    snapshot saved = { calloc(model->graph->n_values + 1, sizeof(double *)) };

    assert_non_null(saved.data);
    for (size_t i = 0; i < model->graph->n_values; i++) {
        const int64_t n = test_walk_count(model, model->graph->values[i].name);

        saved.data[i] = calloc((size_t)n + 1, sizeof(double));
        assert_non_null(saved.data[i]);
        memcpy(saved.data[i], model->data[i], (size_t)n * sizeof(double));
    }
    return saved;
}

static void restore(test_walk *model, const snapshot *saved)
{
    for (size_t i = 0; i < model->graph->n_values; i++) {
        const int64_t n = test_walk_count(model, model->graph->values[i].name);

        memcpy(model->data[i], saved->data[i], (size_t)n * sizeof(double));
    }
}

static void drop(const test_walk *model, snapshot *saved)
{
    for (size_t i = 0; i < model->graph->n_values; i++)
        free(saved->data[i]);
    free(saved->data);
}

static double loss_at(test_walk *model, const snapshot *saved, int32_t value, int64_t k,
                      double x)
{
    restore(model, saved);
    model->data[value][k] = x;
    test_walk_step(model);
    return *test_walk_tensor(model, "loss");
}

/* True when the difference quotient of one of three steps agrees. Its error is 1e-16 / h
 * by rounding and h^2 by curvature; a step that crosses the kink of a relu is off by
 * more, and a smaller one does not cross it. */
static bool agrees(test_walk *model, const snapshot *saved, int32_t value, int64_t k,
                   double gradient, double allowed)
{
    static const double steps[] = { 1e-6, 1e-7, 1e-8 };
    const double x = saved->data[value][k];
    double slope = NAN;

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        const double h = steps[i];

        slope = (loss_at(model, saved, value, k, x + h) -
                 loss_at(model, saved, value, k, x - h)) /
                (2 * h);
        if (fabs(slope - gradient) <= allowed)
            return true;
    }
    print_error("%s[%lld]: gradient %.12g, difference quotient %.12g\n",
                model->graph->values[value].name, (long long)k, gradient, slope);
    return false;
}

/* Some elements of "NAME.grad" against difference quotients. */
static int compare_elements(test_walk *model, const snapshot *saved, int32_t value,
                            const double *gradient, test_random *random)
{
    const int64_t n = test_walk_count(model, model->graph->values[value].name);
    const int64_t tries = n < 16 ? n : 16;
    double largest = 0;

    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs(gradient[k]));
    for (int64_t i = 0; i < tries; i++) {
        const int64_t k = n <= 16 ? i : test_random_int(random, 0, n - 1);

        if (!agrees(model, saved, value, k, gradient[k], 1e-5 * fmax(largest, 1e-4)))
            return 1;
    }
    return 0;
}

/* One seed for the whole run. */
static uint64_t run_seed(void)
{
    static uint64_t seed;

    if (seed == 0)
        seed = test_seed();
    return seed;
}

/* Every value that has a gradient, by name: parameters, and inputs where asked for. */
static void check_gradients(const char *text, int n_expected)
{
    const uint64_t seed = run_seed();
    test_random random = test_random_start(seed);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, seed);
    snapshot saved = save(&model);
    int n = 0, wrong = 0;

    const int32_t scaled = gx_graph_value_id(model.graph, GX_STATE_SCALE);
    const double scale = scaled >= 0 ? model.data[scaled][0] : 1;

    model.exact = true;
    test_walk_step(&model);
    snapshot after = save(&model);

    for (size_t i = 0; i < model.graph->n_values; i++) {
        const gx_value *value = &model.graph->values[i];
        char name[300];

        if (value->kind != GX_VALUE_PARAM && value->kind != GX_VALUE_INPUT)
            continue;
        snprintf(name, sizeof name, "%s.grad", value->name);
        const int32_t gradient = gx_graph_value_id(model.graph, name);

        if (gradient < 0)
            continue;
        assert_int_equal(model.graph->values[gradient].rank, value->rank);
        /* of the loss as it is, not scaled */
        for (int64_t k = 0; k < test_walk_count(&model, value->name); k++)
            after.data[gradient][k] /= scale;
        wrong +=
            compare_elements(&model, &saved, (int32_t)i, after.data[gradient], &random);
        n++;
    }
    if (wrong)
        print_error("%s\n", text);
    assert_int_equal(wrong, 0);
    if (n_expected >= 0)
        assert_int_equal(n, n_expected);
    else
        assert_true(n > 0);
    drop(&model, &after);
    drop(&model, &saved);
    test_walk_free(&model);
}

#define HEAD "gexec: 1\nname: m\n"

static void every_sample_with_a_backward_pass_is_right(void **state)
{
    int n = 0;

    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        for (const char *const *text = gx_op_at(i)->samples; *text; text++) {
            if (!strstr(*text, "backward:"))
                continue;
            check_gradients(*text, -1);
            n++;
        }
    }
    assert_true(n >= 15);
}

/* y1 is read by the next layer, and again further on, as in a residual net of 8 layers.
 */
static void values_read_twice_get_both_gradients(void **state)
{
    (void)state;
    check_gradients(
        HEAD
        "inputs:\n  x: {shape: [5, 6], init: normal}\n  t: {shape: [5, 6], init: "
        "normal}\n"
        "params:\n  w0: {shape: [6, 6], init: he_normal}\n  w1: {shape: [6, 6], init: "
        "he_normal}\n"
        "  w2: {shape: [6, 6], init: he_normal}\n  b: {shape: [6], init: normal}\n"
        "ops:\n"
        "  - {op: gemm, name: h1, a: x, b: w0, epilogue: {bias: b, act: gelu_tanh}}\n"
        "  - {op: gemm, name: g2, a: h1, b: w1, epilogue: {bias: b, act: gelu_tanh}}\n"
        "  - {op: add, name: h2, a: h1, b: g2}\n"
        "  - {op: gemm, name: g3, a: h2, b: w2, epilogue: {act: gelu_tanh}}\n"
        "  - {op: add, name: h3, a: h2, b: g3}\n"
        "  - {op: gemm, name: g4, a: h3, b: w1, trans_b: true}\n"
        "  - {op: add, name: h4, a: h1, b: g4}\n"
        "  - {op: add, name: h5, a: h4, b: h4}\n"
        "  - {op: relu, name: y, x: h5}\n"
        "  - {op: mse, name: loss, x: y, target: t}\n"
        "backward: loss\n",
        4);
}

static void a_product_of_a_parameter_with_itself_is_right(void **state)
{
    (void)state;
    check_gradients(HEAD "inputs:\n  t: {shape: [4, 4], init: normal}\n"
                         "params:\n  w: {shape: [4, 4], init: normal}\n"
                         "ops:\n  - {op: gemm, name: y, a: w, b: w, trans_a: true}\n"
                         "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n",
                    1);
}

/* All four pairs of transposes, the weight on either side, sizes all different (G11). */
static void every_pair_of_transposes_is_right(void **state)
{
    (void)state;
    for (int flags = 0; flags < 8; flags++) {
        const bool ta = flags & 1, tb = flags & 2, left = flags & 4;
        char text[1000];

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  x: {shape: %s, init: normal}\n  t: {shape: [3, 5], "
                      "init: normal}\n"
                      "params:\n  w: {shape: %s, init: normal}\nops:\n"
                      "  - {op: gemm, name: y, a: %s, b: %s, trans_a: %s, trans_b: %s}\n"
                      "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
                      "outputs: [x.grad]\n",
                 left ? (tb ? "[5, 7]" : "[7, 5]") : (ta ? "[7, 3]" : "[3, 7]"),
                 left ? (ta ? "[7, 3]" : "[3, 7]") : (tb ? "[5, 7]" : "[7, 5]"),
                 left ? "w" : "x", left ? "x" : "w", ta ? "true" : "false",
                 tb ? "true" : "false");
        check_gradients(text, 2);
    }
}

static void a_sum_of_losses_and_a_trained_target_are_right(void **state)
{
    (void)state;
    check_gradients(
        HEAD "inputs:\n  x: {shape: [4, 3], init: normal}\n"
             "  y: {shape: [4], dtype: i32, init: {integers: [0, 3]}}\n"
             "params:\n  p: {shape: [4, 3], init: normal}\n"
             "  q: {shape: [4, 3], init: normal}\n"
             "ops:\n  - {op: softmax_cross_entropy, name: one, logits: p, labels: y}\n"
             "  - {op: mse, name: two, x: p, target: q}\n"
             "  - {op: add, name: loss, a: one, b: two}\nbackward: loss\n",
        2);
}

/* `pre` is read by the model itself, beside what the derivative needs of it. */
static void a_gradient_through_pre_is_right(void **state)
{
    static const char *const act[] = { "none", "relu", "gelu_tanh" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int both = 0; both < 2; both++) {
            char text[1000];

            snprintf(text, sizeof text,
                     HEAD "inputs:\n  t: {shape: [4, 3], init: normal}\n"
                          "params:\n  x: {shape: [4, 3], init: normal}\n  b: {shape: "
                          "[3], init: normal}\n"
                          "ops:\n  - {op: epilogue, name: e, x: x, bias: b, act: %s, "
                          "pre: p, out: y}\n"
                          "  - {op: add, name: s, a: p, b: %s}\n"
                          "  - {op: mse, name: loss, x: s, target: t}\nbackward: loss\n",
                     act[i], both ? "y" : "p");
            check_gradients(text, 2);
        }
    }
}

static size_t n_nodes_of(const gx_graph *graph, const char *op)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_nodes; i++)
        n += strcmp(graph->nodes[i].op_name, op) == 0;
    return n;
}

static const char two_layers[] = HEAD
    "inputs:\n  x: {shape: [6, 4], init: normal}\n"
    "  y: {shape: [6], dtype: i32, init: {integers: [0, 3]}}\n"
    "params:\n  w1: {shape: [4, 5], init: normal}\n  b1: {shape: [5], init: normal}\n"
    "  w2: {shape: [5, 3], init: normal}\n  b2: {shape: [3], init: normal}\n"
    "ops:\n"
    "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, act: gelu_tanh}, out: "
    "h}\n"
    "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, out: logits}\n"
    "  - {op: softmax_cross_entropy, name: loss, logits: logits, labels: y}\n";

/* Groups are consecutive nodes: what may be fused stands together. */
static void derived_nodes_stand_in_the_order_of_groups(void **state)
{
    static const char *const expected[] = {
        "fc1.product",  "fc1",         "fc2.product",  "fc2",
        "loss.bwd",     "loss",        "fc2.bwd.bias", "fc2.bwd.weight",
        "fc2.bwd.data", "fc1.bwd.act", "fc1.bwd.bias", "fc1.bwd.weight",
        "b1.adamw",
    };
    char text[1500];

    (void)state;
    snprintf(text, sizeof text, "%sbackward: loss\noptimizer: {adamw: {}}\n", two_layers);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, 1);

    for (size_t i = 0; i + 1 < ARRAY_SIZE(expected); i++)
        assert_string_equal(model.graph->nodes[i].name, expected[i]);
    assert_int_equal(n_nodes_of(model.graph, "adamw"), 4);
    assert_int_equal(n_nodes_of(model.graph, "add"), 0);
    for (size_t i = 0; i < model.graph->n_nodes; i++) {
        const gx_node *node = &model.graph->nodes[i];

        assert_int_equal(node->phase, i < 4    ? GX_PHASE_FORWARD
                                      : i < 12 ? GX_PHASE_BACKWARD
                                      : i < 16 ? GX_PHASE_OPTIMIZER
                                               : GX_PHASE_STEP);
    }
    assert_string_equal(model.graph->nodes[model.graph->n_nodes - 1].name, "step.end");
    assert_string_equal(model.graph->nodes[7].origin, "fc2");
    test_walk_free(&model);
}

/* The value of the loss is behind its derivative, as a part of the backward pass, where
 * nothing of the passes reads it. What is only shown, and the update, may read it. */
static void the_value_of_a_loss_stands_behind_its_derivative(void **state)
{
    static const struct {
        const char *more, *loss, *end;
        const char *nodes;
        bool behind;
    } cases[] = {
        { "", "loss", "", "y loss.bwd loss y.bwd.weight step.end", true },
        { "", "loss", "optimizer: {sgd: {lr: 0.1}, loss_scale: 8}\n",
          "y loss.bwd loss y.bwd.weight", true },
        { "", "loss", "metrics: {perplexity: {loss: loss}}\n",
          "y loss.bwd loss y.bwd.weight perplexity step.end", true },
        /* read by an op of the model */
        { "  - {op: scale, name: twice, x: loss, factor: 2}\n", "loss",
          "outputs: [twice]\n", "y loss twice loss.bwd y.bwd.weight step.end", false },
        /* a term of a sum that is the loss */
        { "  - {op: l1, name: other, x: y, target: t}\n"
          "  - {op: add, name: both, a: loss, b: other}\n",
          "both", "", "y loss other both other.bwd loss.bwd", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[1500], names[300] = "";

        snprintf(text, sizeof text,
                 HEAD "inputs:\n  x: {shape: [6, 4], init: normal}\n"
                      "  t: {shape: [6, 5], init: normal}\nparams:\n"
                      "  w: {shape: [4, 5], init: normal}\nops:\n"
                      "  - {op: gemm, name: y, a: x, b: w}\n"
                      "  - {op: mse, name: loss, x: y, target: t}\n%sbackward: %s\n%s",
                 cases[i].more, cases[i].loss, cases[i].end);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, run_seed());
        const int32_t loss = gx_graph_node_id(model.graph, "loss");

        for (size_t k = 0; k < model.graph->n_nodes; k++) {
            strcat(names, k > 0 ? " " : "");
            strcat(names, model.graph->nodes[k].name);
        }
        if (strncmp(names, cases[i].nodes, strlen(cases[i].nodes)) != 0)
            fail_msg("%s: not %s", names, cases[i].nodes);
        assert_int_equal(model.graph->nodes[loss].phase,
                         cases[i].behind ? GX_PHASE_BACKWARD : GX_PHASE_FORWARD);
        test_walk_free(&model);
    }
}

/* A gradient of the target comes behind the value, which stays beside the first. */
static void of_two_derivatives_the_value_follows_the_first(void **state)
{
    test_walk model = test_walk_parse(
        HEAD "params:\n  x: {shape: [6, 5], init: normal}\n"
             "  t: {shape: [6, 5], init: normal}\nops:\n"
             "  - {op: mse, name: loss, x: x, target: t}\nbackward: loss\n",
        "f32", GX_TRAIN, run_seed());

    (void)state;
    assert_string_equal(model.graph->nodes[0].name, "loss.bwd");
    assert_string_equal(model.graph->nodes[1].name, "loss");
    assert_string_equal(model.graph->nodes[2].name, "loss.bwd.target");
    test_walk_free(&model);
}

/* The backward pass of `ops` as the names of its nodes, each behind a blank. */
static void backward_nodes(const char *ops, const char *outputs, char *names, size_t size)
{
    char text[1500];
    size_t used = 0;

    snprintf(text, sizeof text,
             HEAD
             "inputs:\n  x: {shape: [6, 4], init: normal}\n"
             "  t: {shape: [6, 5], init: normal}\n"
             "  r: {shape: [6, 5], init: normal}\nparams:\n"
             "  w: {shape: [4, 5], init: normal}\n  v: {shape: [5, 5], init: normal}\n"
             "  still: {shape: [4, 5], init: normal, trainable: false}\n"
             "  b: {shape: [5], init: normal}\n"
             "  fixed: {shape: [5], init: normal, trainable: false}\nops:\n%s"
             "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
             "outputs: [loss%s]\n",
             ops, outputs);
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, run_seed());

    names[0] = 0;
    for (size_t i = 0; i < model.graph->n_nodes; i++) {
        if (model.graph->nodes[i].phase == GX_PHASE_BACKWARD)
            used += (size_t)snprintf(names + used, size - used, " %s",
                                     model.graph->nodes[i].name);
    }
    test_walk_free(&model);
    check_gradients(text, -1);
}

/* By itself, between the way back through the activation and the product that makes the
 * weight's gradient; with the way back where nothing else wants what that makes. */
static void the_gradient_of_a_bias_stands_before_that_of_its_weight(void **state)
{
    static const struct {
        const char *ops, *outputs, *nodes;
    } cases[] = {
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu}}\n", "",
          " loss.bwd loss y.bwd.act y.bwd.bias y.bwd.weight" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b}}\n", "",
          " loss.bwd loss y.bwd.bias y.bwd.weight" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu}}\n",
          ", x.grad", " loss.bwd loss y.bwd.act y.bwd.bias y.bwd.weight y.bwd.data" },
        { "  - {op: gemm, name: y, a: x, b: still, epilogue: {bias: b, act: relu}}\n", "",
          " loss.bwd loss y.bwd.act" },
        { "  - {op: gemm, name: y, a: x, b: still, epilogue: {bias: b}}\n", "",
          " loss.bwd loss y.bwd.bias" },
        { "  - {op: gemm, name: y, a: x, b: still, epilogue: {bias: b, act: relu}}\n",
          ", x.grad", " loss.bwd loss y.bwd.act y.bwd.bias y.bwd.data" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: fixed, act: relu}}\n", "",
          " loss.bwd loss y.bwd.act y.bwd.weight" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {act: relu}}\n", "",
          " loss.bwd loss y.bwd.act y.bwd.weight" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu, scale: 2, "
          "residual: r}}\n",
          ", r.grad", " loss.bwd loss y.bwd.act y.bwd.bias y.bwd.weight r.grad.copy" },
        { "  - {op: gemm, name: h, a: x, b: w, epilogue: {bias: b, act: relu}}\n"
          "  - {op: gemm, name: y, a: h, b: v, epilogue: {bias: b}}\n",
          "",
          " loss.bwd loss y.bwd.bias y.bwd.weight y.bwd.data h.bwd.act h.bwd.bias "
          "b.grad.add1 "
          "h.bwd.weight" },
        { "  - {op: gemm, name: y, a: x, b: w, epilogue: {bias: b, act: relu, order: "
          "[act, "
          "bias]}}\n",
          "", " loss.bwd loss y.bwd.bias y.bwd.act y.bwd.weight" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char names[300];

        backward_nodes(cases[i].ops, cases[i].outputs, names, sizeof names);
        assert_string_equal(names, cases[i].nodes);
    }
}

static void a_frozen_parameter_has_no_gradient(void **state)
{
    (void)state;
    test_walk model = test_walk_parse(
        HEAD "inputs:\n  x: {shape: [6, 4], init: normal}\n  t: {shape: [6, 3], init: "
             "normal}\n"
             "params:\n  w1: {shape: [4, 5], init: normal, trainable: false}\n"
             "  w2: {shape: [5, 3], init: normal}\nops:\n"
             "  - {op: gemm, name: h, a: x, b: w1, epilogue: {act: relu}}\n"
             "  - {op: gemm, name: y, a: h, b: w2}\n"
             "  - {op: mse, name: loss, x: y, target: t}\n"
             "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n",
        "f32", GX_TRAIN, 1);

    assert_true(gx_graph_value_id(model.graph, "w1.grad") < 0);
    assert_true(gx_graph_value_id(model.graph, "h.grad") < 0);
    assert_true(gx_graph_value_id(model.graph, "w2.grad") >= 0);
    assert_int_equal(n_nodes_of(model.graph, "sgd"), 1);
    assert_int_equal(n_nodes_of(model.graph, "gemm"), 3);
    test_walk_free(&model);
}

/* The same step with its backward pass written out by the user: equal to the bit. */
static void a_hand_written_backward_pass_equals_the_derived_one(void **state)
{
    static const char *const gradients[] = { "w1.grad", "b1.grad", "w2.grad", "b2.grad" };
    char derived_text[1500], written_text[2500];
    const uint64_t seed = run_seed();

    (void)state;
    snprintf(derived_text, sizeof derived_text,
             "%sbackward: loss\noptimizer: {adamw: {}}\n", two_layers);
    snprintf(
        written_text, sizeof written_text, "%s%s", HEAD,
        "inputs:\n  x: {shape: [6, 4], init: normal}\n"
        "  y: {shape: [6], dtype: i32, init: {integers: [0, 3]}}\n"
        "params:\n  w1: {shape: [4, 5], init: normal}\n  b1: {shape: [5], init: normal}\n"
        "  w2: {shape: [5, 3], init: normal}\n  b2: {shape: [3], init: normal}\n"
        "ops:\n"
        "  - {op: gemm, name: p1, a: x, b: w1}\n"
        "  - {op: epilogue, name: fc1, x: p1, bias: b1, act: gelu_tanh, pre: pre1, out: "
        "h}\n"
        "  - {op: gemm, name: fc2, a: h, b: w2, epilogue: {bias: b2}, out: logits}\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: logits, labels: y}\n"
        "  - {op: softmax_cross_entropy.bwd, name: dlogits, logits: logits, labels: y}\n"
        "  - {op: gemm.bwd, name: g2, a: h, b: w2, dy: dlogits, da: dh, db: w2.grad, "
        "dbias: b2.grad}\n"
        "  - {op: gemm.bwd, name: g1, a: x, b: w1, dy: dh, pre: pre1, "
        "epilogue: {act: gelu_tanh}, db: w1.grad, dbias: b1.grad}\n"
        "optimizer: {adamw: {}}\noutputs: [loss]\n");
    test_walk derived = test_walk_parse(derived_text, "bf16", GX_TRAIN, seed);
    test_walk written = test_walk_parse(written_text, "bf16", GX_TRAIN, seed);

    for (int step = 0; step < 3; step++) {
        test_walk_step(&derived);
        test_walk_step(&written);
        for (size_t i = 0; i < ARRAY_SIZE(gradients); i++) {
            const int64_t n = test_walk_count(&derived, gradients[i]);

            assert_memory_equal(test_walk_tensor(&derived, gradients[i]),
                                test_walk_tensor(&written, gradients[i]),
                                (size_t)n * sizeof(double));
        }
        assert_memory_equal(test_walk_tensor(&derived, "w1"),
                            test_walk_tensor(&written, "w1"), 20 * sizeof(double));
    }
    test_walk_free(&derived);
    test_walk_free(&written);
}

/* gemm.bwd with every transpose and activation against the derivative of gemm. */
static void gemm_bwd_equals_the_derivative_of_gemm(void **state)
{
    static const struct {
        const char *act, *kept;
    } acts[] = { { "none", "" }, { "relu", ", y: y" }, { "gelu_tanh", ", pre: p" } };
    const uint64_t seed = run_seed();

    (void)state;
    for (int flags = 0; flags < 12; flags++) {
        const bool ta = flags & 1, tb = flags & 2;
        const int act = flags / 4;
        const char *ta_text = ta ? "true" : "false", *tb_text = tb ? "true" : "false";
        char text[2000];

        snprintf(
            text, sizeof text,
            HEAD
            "inputs:\n  t: {shape: [3, 5], init: normal}\n"
            "params:\n  a: {shape: %s, init: normal}\n  w: {shape: %s, init: normal}\n"
            "  b: {shape: [5], init: normal}\nops:\n"
            "  - {op: gemm, name: q, a: a, b: w, trans_a: %s, trans_b: %s}\n"
            "  - {op: epilogue, name: y, x: q, bias: b, act: %s, pre: p}\n"
            "  - {op: mse, name: loss, x: y, target: t}\n"
            "  - {op: mse.bwd, name: dy, x: y, target: t}\n"
            "  - {op: gemm.bwd, name: g, a: a, b: w, dy: dy%s, trans_a: %s, trans_b: %s, "
            "epilogue: {act: %s}, da: da, db: db, dbias: dbias}\n"
            "backward: loss\n",
            ta ? "[7, 3]" : "[3, 7]", tb ? "[5, 7]" : "[7, 5]", ta_text, tb_text,
            acts[act].act, acts[act].kept, ta_text, tb_text, acts[act].act);
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, seed);

        test_walk_step(&model);
        assert_memory_equal(test_walk_tensor(&model, "da"),
                            test_walk_tensor(&model, "a.grad"), 21 * sizeof(double));
        assert_memory_equal(test_walk_tensor(&model, "db"),
                            test_walk_tensor(&model, "w.grad"), 35 * sizeof(double));
        assert_memory_equal(test_walk_tensor(&model, "dbias"),
                            test_walk_tensor(&model, "b.grad"), 5 * sizeof(double));
        test_walk_free(&model);
    }
}

/* A gradient that is another tensor's still has a tensor of its own name. */
static void a_parameter_that_is_only_added_has_a_gradient_by_name(void **state)
{
    (void)state;
    check_gradients(HEAD "inputs:\n  x: {shape: [3, 2], init: normal}\n"
                         "  t: {shape: [3, 2], init: normal}\n"
                         "params:\n  p: {shape: [3, 2], init: normal}\n"
                         "ops:\n  - {op: add, name: y, a: x, b: p}\n"
                         "  - {op: mse, name: loss, x: y, target: t}\nbackward: loss\n"
                         "outputs: [p.grad, x.grad]\n",
                    2);
}

static void a_scalar_that_is_only_added_has_a_gradient_by_name(void **state)
{
    (void)state;
    check_gradients(HEAD "inputs:\n  g: {shape: [], init: normal}\n"
                         "params:\n  p: {shape: [], init: normal}\n"
                         "  q: {shape: [], init: normal}\n"
                         "ops:\n  - {op: add, name: y, a: p, b: q}\n"
                         "  - {op: mul, name: z, a: y, b: g}\n"
                         "  - {op: mul, name: s, a: z, b: z}\n"
                         "  - {op: sum, name: loss, x: s}\nbackward: loss\n",
                    2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_with_a_backward_pass_is_right),
        cmocka_unit_test(values_read_twice_get_both_gradients),
        cmocka_unit_test(a_product_of_a_parameter_with_itself_is_right),
        cmocka_unit_test(every_pair_of_transposes_is_right),
        cmocka_unit_test(a_sum_of_losses_and_a_trained_target_are_right),
        cmocka_unit_test(a_gradient_through_pre_is_right),
        cmocka_unit_test(derived_nodes_stand_in_the_order_of_groups),
        cmocka_unit_test(the_value_of_a_loss_stands_behind_its_derivative),
        cmocka_unit_test(of_two_derivatives_the_value_follows_the_first),
        cmocka_unit_test(the_gradient_of_a_bias_stands_before_that_of_its_weight),
        cmocka_unit_test(a_frozen_parameter_has_no_gradient),
        cmocka_unit_test(a_hand_written_backward_pass_equals_the_derived_one),
        cmocka_unit_test(gemm_bwd_equals_the_derivative_of_gemm),
        cmocka_unit_test(a_parameter_that_is_only_added_has_a_gradient_by_name),
        cmocka_unit_test(a_scalar_that_is_only_added_has_a_gradient_by_name),
    };

    return cmocka_run_group_tests_name("backward", tests, NULL, NULL);
}
