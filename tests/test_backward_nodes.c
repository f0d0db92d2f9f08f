/* The nodes of a derived backward pass: which there are, in which order, and that they
 * make what a user would have written. */
#include <stdio.h>
#include <string.h>

#include "support_gradients.h"
#include "support_walk.h"

#define HEAD "gexec: 1\nname: m\n"

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
        test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_run_seed());
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
        "f32", GX_TRAIN, test_run_seed());

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
    test_walk model = test_walk_parse(text, "f32", GX_TRAIN, test_run_seed());

    names[0] = 0;
    for (size_t i = 0; i < model.graph->n_nodes; i++) {
        if (model.graph->nodes[i].phase == GX_PHASE_BACKWARD)
            used += (size_t)snprintf(names + used, size - used, " %s",
                                     model.graph->nodes[i].name);
    }
    test_walk_free(&model);
    test_gradients(text, -1);
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
    const uint64_t seed = test_run_seed();

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derived_nodes_stand_in_the_order_of_groups),
        cmocka_unit_test(the_value_of_a_loss_stands_behind_its_derivative),
        cmocka_unit_test(of_two_derivatives_the_value_follows_the_first),
        cmocka_unit_test(the_gradient_of_a_bias_stands_before_that_of_its_weight),
        cmocka_unit_test(a_frozen_parameter_has_no_gradient),
        cmocka_unit_test(a_hand_written_backward_pass_equals_the_derived_one),
    };

    return cmocka_run_group_tests_name("backward_nodes", tests, NULL, NULL);
}
