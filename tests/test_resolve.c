/* From written nodes to a checked program: mistakes with their places, what is added,
 * what an evaluation leaves out. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_walk.h"

typedef struct bad_model {
    const char *ops;
    const char *message; /* "model.yaml:LINE:COLUMN: ..." */
} bad_model;

/* Lines 1 to 7; the ops of a case start on line 8. */
static const char head[] =
    "gexec: 1\n"
    "name: m\n"
    "inputs:\n"
    "  x: {shape: [4, 8]}\n"
    "  y: {shape: [4], dtype: i32}\n"
    "params: {w: {shape: [8, 3], init: he_normal}, b: {shape: [3]}, c: {shape: [4]}}\n"
    "ops:\n";

#define LOSS /* line 9 */ \
    "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
#define FC "  - {op: gemm, name: fc, a: x, b: w, out: h}\n" /* line 8 */

static const bad_model bad_models[] = {
    { "  - {op: gem, name: fc, a: x, b: w, out: h}\n",
      "model.yaml:8:10: there is no op \"gem\"; did you mean \"gemm\"?" },
    { "  - {op: qqqqqqqqq, name: fc, a: x, b: w, out: h}\n",
      "model.yaml:8:10: there is no op \"qqqqqqqqq\"; `gexec ops` lists them" },
    { "  - {op: step.end, name: e}\n", "model.yaml:8:10: op \"step.end\" is gexec's own "
                                       "and stands only in an expanded graph" },
    { "  - {op: gemm, name: fc, a: x, b: w, transa: true}\n",
      "gemm has no field \"transa\"; did you mean \"trans_a\"?" },
    { "  - {op: gemm, name: fc, a: x, b: w, epilog: {bias: b}}\n",
      "model.yaml:8:47: gemm has no field \"epilog.bias\"; did you mean "
      "\"epilogue.bias\"?" },
    { "  - {op: gemm, name: fc, a: x}\n",
      "gemm \"fc\" lacks the field \"b\": a tensor that it reads" },
    { "  - {op: gemm, name: fc, a: x, b: ww}\n",
      "model.yaml:8:35: there is no tensor \"ww\"" },
    { "  - {op: gemm, name: fc, a: x, b: [w, w]}\n", "gemm has no field \"b.0\"" },
    { "  - {op: relu, name: r, x: h}\n" FC,
      "model.yaml:8:28: tensor \"h\" is used before op \"fc\" makes it (line 9)" },
    { "  - {op: relu, name: r, x: r}\n",
      "model.yaml:8:28: op \"r\" reads \"r\", which it makes itself" },
    { FC "  - {op: relu, name: r, x: h, out: fc}\n",
      "model.yaml:9:36: name \"fc\" is taken" },
    { "  - {op: gemm, name: fc, a: x, b: w, trans_a: maybe}\n",
      "model.yaml:8:47: trans_a is \"maybe\", expected true or false" },
    { "  - {op: gemm, name: fc, a: x, b: w, epilogue: {act: gelu}}\n",
      "epilogue.act is \"gelu\", expected one of: none, relu, gelu_tanh, gelu_erf, silu, "
      "tanh, sigmoid; did you mean \"gelu_erf\"?" },
    { "  - {op: sgd, name: u, param: x, grad: x, lr: b}\n",
      "model.yaml:8:31: param of sgd is updated in place: expected a parameter or state, "
      "\"x\" is neither" },
    { "  - {op: gemm, name: fc, a: x, b: x}\n",
      "model.yaml:8:35: gemm \"fc\": a is [4, 8] and b is [4, 8]: the inner sizes 8 and "
      "4 "
      "differ" },
    { "  - {op: gemm, name: fc, a: x, b: w, trans_a: true}\n",
      "gemm \"fc\": a is [4, 8] transposed and b is [8, 3]: the inner sizes 4 and 8 "
      "differ" },
    { "  - {op: gemm, name: fc, a: y, b: w}\n",
      "model.yaml:8:29: gemm \"fc\": a is i32, expected f32, bf16 or f16" },
    { "  - {op: gemm, name: fc, a: x, b: b}\n",
      "model.yaml:8:35: gemm \"fc\": b has shape [3], expected 2 dimensions" },
    { "  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: c}}\n",
      "model.yaml:8:55: gemm \"fc\": epilogue.bias has shape [4], expected [3]" },
    { FC "  - {op: softmax_cross_entropy, name: l, logits: h, labels: b}\n",
      "model.yaml:9:61: softmax_cross_entropy \"l\": labels is f32, expected i32" },
    { FC "  - {op: add, name: l, a: h, b: x}\n",
      "model.yaml:9:33: add \"l\": a has shape [4, 3] and b has shape [4, 8], which do "
      "not "
      "broadcast" },
    { FC "  - {op: epilogue.bwd, name: e, dy: h, act: relu, dx: d}\n",
      "model.yaml:9:45: epilogue.bwd \"e\": the derivative of relu needs the field "
      "\"y\"" },
    { FC "  - {op: epilogue.bwd, name: e, dy: h}\n",
      "it makes nothing: expected dx, dbias or dresidual" },
    { "  - {op: gemm.bwd, name: g, a: x, b: w, dy: x, db: d}\n",
      "model.yaml:8:45: gemm.bwd \"g\": dy has shape [4, 8], expected [4, 3]" },
    { FC "backward: fc\n", "backward: there is no tensor \"fc\"" },
    { FC "backward: h\n", "model.yaml:9:11: backward: \"h\" is f32 [4, 3], expected the "
                          "f32 scalar of a loss" },
    { FC "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\nbackward: "
         "los\n",
      "model.yaml:10:11: backward: there is no tensor \"los\"" },
    { FC "  - {op: accuracy, name: loss, logits: h, labels: y}\nbackward: loss\n",
      "\"loss\" stands between a parameter and the loss, and accuracy has no "
      "derivative" },
    { FC "  - {op: softmax_cross_entropy, name: one, logits: h, labels: y}\n"
         "  - {op: add, name: loss, a: one, b: one}\nbackward: loss\n",
      "\"one\" counts more than once in the loss: not supported" },
    { "  - {op: mse, name: loss, x: x, target: x}\nbackward: loss\n",
      "model.yaml:9:11: backward: no trained parameter leads to \"loss\"" },
    { FC "outputs: [fc2]\n", "there is no tensor \"fc2\"" },
    { FC "metrics: {accuracyy: {logits: h, labels: y}}\n",
      "there is no metric \"accuracyy\"; did you mean \"accuracy\"?" },
    { FC "metrics: {share: {logits: h, labels: y}}\n",
      "there is no metric \"share\": name it after its op" },
    { FC "metrics: {r: {op: relu, x: h}}\n", "metric \"r\" is not a scalar" },
    { FC "metrics: {accuracy: {logit: h, labels: y}}\n",
      "accuracy has no field \"logit\"; did you mean \"logits\"?" },
    { FC LOSS "  - {op: relu, name: w.grad, x: h}\nbackward: loss\n",
      "model.yaml:10:22: name \"w.grad\" is gexec's own here: the gradient that "
      "`backward` "
      "derives of \"w\" has it" },
    { FC LOSS "  - {op: relu, name: r, x: h, out: h.grad}\nbackward: loss\n",
      "model.yaml:10:36: name \"h.grad\" is gexec's own here" },
    { FC LOSS "  - {op: relu, name: w.m, x: h, out: r}\nbackward: loss\n"
              "optimizer: {adamw: {lr: 0.1}}\n",
      "name \"w.m\" is gexec's own here: state that the optimizer keeps of \"w\" has "
      "it" },
    { FC LOSS "backward: loss\noptimizer: {adamw: {lr: 0.1}}\n"
              "state: {b.v: {shape: [3]}}\n",
      "model.yaml:12:9: name \"b.v\" is gexec's own here" },
    { FC LOSS "backward: loss\noptimizer: {sgd: {lr: 1e39}}\n",
      "model.yaml:11:23: lr is 1e39, which is out of f32's range" },
    { FC LOSS "backward: loss\noptimizer: {adamw: {lr: 1, eps: 1e-60}}\n",
      "model.yaml:11:33: eps is 1e-60, which is out of f32's range" },
    { "  - {op: gemm, name: fc, phase: backward, a: x, b: w, out: h}\n" LOSS
      "backward: loss\n",
      "model.yaml:8:33: phase is \"backward\", and gemm is an op of the phase "
      "\"forward\": "
      "another phase is for gradients written by hand, not beside `backward: loss`" },
};

static void mistakes_are_named_with_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_models); i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s", head, bad_models[i].ops);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        if (!strstr(mistakes, bad_models[i].message))
            print_error("%s", text);
        assert_has(mistakes, bad_models[i].message);
        free(mistakes);
    }
}

static size_t count_lines(const char *text, const char *start)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, start)); at++)
        n++;
    return n;
}

/* Three mistakes, three diagnostics: what reads from them is not reported too. */
static void one_pass_finds_every_mistake_and_no_echo(void **state)
{
    char text[2000];

    (void)state;
    snprintf(
        text, sizeof text, "%s%s", head,
        "  - {op: gemmm, name: fc1, a: x, b: w, out: h}\n"
        "  - {op: relu, name: r1, x: h}\n"
        "  - {op: gemm, name: fc2, a: r1, b: w, ouut: h2}\n"
        "  - {op: relu, name: r2, x: h2}\n"
        "  - {op: gemm, name: fc3, a: x, b: x, epilogue: {bias: b, act: relu}, out: h3}\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: h3, labels: y}\n"
        "backward: loss\noptimizer: {adamw: {}}\nmetrics: {accuracy: {logits: h3, "
        "labels: y}}\n"
        "outputs: [loss, h3, w.grad]\n");
    char *mistakes = test_walk_mistakes(text, GX_TRAIN);

    assert_has(mistakes, ":8:10: there is no op \"gemmm\"");
    assert_has(mistakes, "gemm has no field \"ouut\"; did you mean \"out\"?");
    assert_has(mistakes, "gemm \"fc3\": a is [4, 8] and b is [4, 8]");
    assert_int_equal(count_lines(mistakes, "model.yaml:"), 3);
    free(mistakes);
}

/* What leads to an op without its derivative lacks a gradient, and that is no mistake of
 * its own. */
static void a_derivative_that_lacks_is_reported_alone(void **state)
{
    char text[2000];

    (void)state;
    snprintf(text, sizeof text, "%s%s", head,
             FC "  - {op: bce_with_logits, name: loss, x: h, target: h}\n"
                "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n");
    char *mistakes = test_walk_mistakes(text, GX_TRAIN);

    assert_has(mistakes, "model.yaml:9:10: bce_with_logits has no gradient for its "
                         "target");
    assert_int_equal(count_lines(mistakes, "model.yaml:"), 1);
    free(mistakes);
}

/* The graph that a text gives, evaluated or trained. */
static gx_graph *load(const char *text, gx_kind kind, const gx_load_options *more)
{
    gx_load_options options = more ? *more : (gx_load_options){ 0 };
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    options.kind = kind;
    assert_ok(gx_graph_parse(text, strlen(text), "model.yaml", ".", &options, &graph,
                             NULL, &err),
              &err);
    return graph;
}

static const char trained[] =
    "gexec: 1\nname: m\ninputs: {x: {shape: [4, 8]}, y: {shape: [4], dtype: i32}}\n"
    "params: {w: {shape: [8, 3], init: he_normal}, b: {shape: [3]}, u: {shape: [3, 8], "
    "init: ones}}\n"
    "ops:\n"
    "  - {op: gemm, name: fc, a: x, b: w, epilogue: {bias: b}, out: h}\n"
    "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
    "  - {op: gemm, name: side, a: h, b: u}\n"
    "backward: loss\noptimizer: {adamw: {}}\n"
    "metrics: {accuracy: {logits: h, labels: y}, other: {op: mse, x: h, target: h}}\n"
    "outputs: [h]\n";

static void the_log_has_loss_outputs_and_metrics(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        gx_graph *graph = load(trained, kind ? GX_EVAL : GX_TRAIN, NULL);

        assert_string_equal(gx_graph_logged(graph, 0), "loss");
        assert_string_equal(gx_graph_logged(graph, 1), "accuracy");
        assert_string_equal(gx_graph_logged(graph, 2), "other");
        assert_null(gx_graph_logged(graph, 3));
        assert_true(graph->values[graph->logged[0]].producer >= 0);
        gx_graph_free(graph);
    }
}

static void a_log_that_is_full_is_reported(void **state)
{
    char text[2000] = "";

    (void)state;
    snprintf(text, sizeof text, "%s%smetrics: {", head, FC);
    for (int i = 0; i < 7; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "m%d: {op: accuracy, logits: h, labels: y}, ", i);
    strcat(text, "}\n");
    char *mistakes = test_walk_mistakes(text, GX_TRAIN);

    assert_has(mistakes, "the log has 6 columns: no room for \"m6\"");
    free(mistakes);
}

/* The loss is last of the forward ops though another is written after it; where gradients
 * are derived it changes places with its derivative. */
static void a_loss_follows_its_derivative(void **state)
{
    gx_graph *graph = load(trained, GX_TRAIN, NULL);
    const int32_t loss = gx_graph_node_id(graph, "loss");

    (void)state;
    assert_true(gx_graph_node_id(graph, "side") < loss);
    assert_string_equal(graph->nodes[loss - 1].name, "loss.bwd");
    assert_string_equal(graph->nodes[graph->n_nodes - 1].op_name, "step.end");
    gx_graph_free(graph);
}

static void an_evaluation_has_what_is_asked_for_alone(void **state)
{
    static const char *const expected[] = { "fc.product", "fc",    "loss",
                                            "accuracy",   "other", "step.end" };
    gx_graph *graph = load(trained, GX_EVAL, NULL);

    (void)state;
    assert_int_equal(graph->nodes[gx_graph_node_id(graph, "loss")].phase,
                     GX_PHASE_FORWARD);
    assert_int_equal(graph->n_nodes, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_string_equal(graph->nodes[i].name, expected[i]);
    for (size_t i = 0; i < graph->n_values; i++)
        assert_true(graph->values[i].kind != GX_VALUE_TEMP ||
                    graph->values[i].producer >= 0);
    gx_graph_free(graph);
}

/* By hand: what has a phase of training, by its row or by its own word, and what reads
 * it. */
static void an_evaluation_drops_hand_written_training(void **state)
{
    gx_graph *graph = load(
        "gexec: 1\nname: m\ninputs: {x: {shape: [4, 3]}, t: {shape: [4, 3]}}\n"
        "params: {w: {shape: [3, 3], init: ones}, r: {shape: [1], init: ones}}\nops:\n"
        "  - {op: gemm, name: h, a: x, b: w}\n"
        "  - {op: mse, name: loss, x: h, target: t}\n"
        "  - {op: mse.bwd, name: dh, x: h, target: t}\n"
        "  - {op: gemm, name: dw, phase: backward, a: x, b: dh, trans_a: true}\n"
        "  - {op: add, name: norm, a: dw, b: dw}\n"
        "  - {op: sgd, name: u, param: w, grad: dw, lr: r}\noutputs: [loss, norm, dw]\n",
        GX_EVAL, NULL);

    (void)state;
    assert_int_equal(graph->n_nodes, 3);
    assert_string_equal(graph->nodes[0].name, "h");
    assert_string_equal(graph->nodes[1].name, "loss");
    assert_string_equal(graph->nodes[2].name, "step.end");
    assert_true(gx_graph_value_id(graph, "dw") < 0);
    assert_true(gx_graph_value_id(graph, "norm") < 0);
    gx_graph_free(graph);
}

/* What nobody derives is free to be called so, and the row's own phase may be written. */
static void names_are_reserved_where_they_are_derived(void **state)
{
    static const char *const good[] = {
        FC LOSS "  - {op: relu, name: w.grad, x: h}\n  - {op: relu, name: w.m, x: h}\n",
        FC LOSS "  - {op: relu, name: x.grad, x: x}\n  - {op: relu, name: w.m, x: h}\n"
                "backward: loss\noptimizer: {sgd: {lr: 0.1}}\n",
        "  - {op: gemm, name: fc, phase: forward, a: x, b: w, out: h}\n" LOSS
        "backward: loss\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        char text[2000];

        snprintf(text, sizeof text, "%s%s", head, good[i]);
        gx_graph_free(load(text, GX_TRAIN, NULL));
    }
}

static void kept_tensors_are_outputs(void **state)
{
    static const char *const keep[] = { "fc.product", "w" };
    const gx_load_options options = { .keep = keep, .n_keep = 2, .keep_gradients = true };
    gx_graph *graph = load(trained, GX_TRAIN, &options);

    (void)state;
    for (const char *const *name =
             (const char *const[]){ "fc.product", "w", "w.grad", "b.grad", "h", NULL };
         *name; name++)
        assert_true(graph->values[gx_graph_value_id(graph, *name)].is_output);
    assert_false(graph->values[gx_graph_value_id(graph, "h.grad")].is_output);
    assert_true(gx_graph_value_id(graph, "u.grad") <
                0); /* it does not lead to the loss */
    gx_graph_free(graph);
}

static void an_unknown_kept_tensor_is_reported(void **state)
{
    static const char *const keep[] = { "fc.produkt" };
    const gx_load_options options = { .keep = keep, .n_keep = 1 };
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    (void)state;
    assert_fails(
        gx_graph_parse(trained, strlen(trained), "m", ".", &options, &graph, NULL, &err),
        GX_ERR_MODEL, &err,
        "there is no tensor \"fc.produkt\"; did you mean \"fc.product\"?");
    assert_null(graph);
}

/* Fans follow the product that reads a weight, however it is stored; a bias has those of
 * its product; labels get the range of their classes. */
static void values_learn_from_their_readers(void **state)
{
    gx_graph *graph = load(
        "gexec: 1\nname: m\n"
        "inputs: {x: {shape: [4, 8]}, y: {shape: [4], dtype: i32}, z: {shape: [5, 4]}}\n"
        "params: {w: {shape: [3, 8], init: ones}, b: {shape: [3]}, v: {shape: [7, 5], "
        "init: ones}}\n"
        "ops:\n"
        "  - {op: gemm, name: h, a: x, b: w, trans_b: true, epilogue: {bias: b, act: "
        "relu}}\n"
        "  - {op: gemm, name: q, a: v, b: z}\n"
        "  - {op: softmax_cross_entropy, name: loss, logits: h, labels: y}\n"
        "  - {op: add, name: hh, a: h, b: h}\noutputs: [loss, hh, q]\n",
        GX_TRAIN, NULL);
    const gx_value *w = &graph->values[gx_graph_value_id(graph, "w")];
    const gx_value *b = &graph->values[gx_graph_value_id(graph, "b")];
    const gx_value *v = &graph->values[gx_graph_value_id(graph, "v")];

    (void)state;
    assert_int_equal(w->fan_in, 8);
    assert_int_equal(w->fan_out, 3);
    assert_int_equal(b->fan_in, 8);
    assert_int_equal(v->fan_in, 5);
    assert_int_equal(v->fan_out, 7);
    assert_int_equal(graph->values[gx_graph_value_id(graph, "y")].index_limit, 3);
    assert_int_equal(graph->values[gx_graph_value_id(graph, "h")].n_readers, 2);
    assert_int_equal(graph->values[gx_graph_value_id(graph, "x")].n_readers, 1);
    gx_graph_free(graph);
}

static void node_costs_are_counted(void **state)
{
    gx_graph *graph = load(trained, GX_TRAIN, NULL);
    const gx_node_info product =
        gx_graph_node(graph, (size_t)gx_graph_node_id(graph, "fc.product"));
    const gx_node_info update =
        gx_graph_node(graph, (size_t)gx_graph_node_id(graph, "w.adamw"));

    (void)state;
    assert_true(product.flops == 2.0 * 4 * 8 * 3);
    assert_true(product.bytes == 4.0 * (4 * 8 + 8 * 3 + 4 * 3));
    /* 28 bytes an element, and two cells */
    assert_true(update.bytes == 28.0 * 24 + 8);
    assert_null(gx_graph_node(graph, graph->n_nodes).name);
    gx_graph_free(graph);
}

/* Everything that was derived, written out, is the same graph again. */
static void an_expanded_graph_loads_to_itself(void **state)
{
    int n = 0;

    (void)state;
    for (size_t i = 0; i < gx_op_count(); i++) {
        for (const char *const *sample = gx_op_at(i)->samples; *sample; sample++, n++) {
            char *text = test_walk_text(*sample, "bf16");

            for (int kind = 0; kind < 2; kind++) {
                gx_graph *graph = load(text, kind ? GX_EVAL : GX_TRAIN, NULL);

                if (graph->n_nodes == 0) { /* derivatives alone, and an evaluation */
                    gx_graph_free(graph);
                    continue;
                }
                char *yaml = gx_graph_yaml(graph);
                gx_graph *again = load(yaml, kind ? GX_EVAL : GX_TRAIN, NULL);
                char *yaml_again = gx_graph_yaml(again);

                assert_string_equal(yaml, yaml_again);
                assert_int_equal(graph->n_nodes, again->n_nodes);
                assert_int_equal(graph->n_values, again->n_values);
                assert_int_equal(graph->n_logged, again->n_logged);
                for (size_t k = 0; k < graph->n_nodes; k++) {
                    assert_ptr_equal(graph->nodes[k].op, again->nodes[k].op);
                    assert_int_equal(graph->nodes[k].phase, again->nodes[k].phase);
                    assert_string_equal(graph->nodes[k].origin, again->nodes[k].origin);
                }
                free(yaml);
                free(yaml_again);
                gx_graph_free(graph);
                gx_graph_free(again);
            }
            free(text);
        }
    }
    assert_true(n > 80);
}

static void a_graph_built_in_code_is_that_of_its_text(void **state)
{
    static const gx_field_text fc[] = {
        { "a", "x" }, { "b", "w" }, { "epilogue.act", "relu" }, { "out", "h" }
    };
    static const gx_field_text bad[] = { { "a", "x" }, { "b", "ww" } };
    static const int64_t x[] = { 4, 8 }, w[] = { 8, 3 };
    gx_graph *graph = NULL;
    gx_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
        assert_ok(
            gx_graph_add_tensor(graph, GX_ROLE_INPUT, "x", GX_F32, 2, x, NULL, &err),
            &err);
        assert_ok(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F32, 2, w,
                                      "he_normal", &err),
                  &err);
        assert_ok(gx_graph_add_op(graph, "gemm", "fc", i ? bad : fc, i ? 2 : 4, &err),
                  &err);
        if (i == 0) {
            assert_ok(gx_graph_add_output(graph, "h", &err), &err);
            assert_ok(gx_graph_finish(graph, GX_TRAIN, NULL, &err), &err);
            assert_int_equal(graph->n_nodes, 2);
            assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_STATE, &err,
                         "finished already");
        } else {
            assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_MODEL, &err,
                         "there is no tensor \"ww\"");
        }
        gx_graph_free(graph);
    }
}

/* Built in code, where no reader has looked at the names before. */
static void what_stands_already_is_not_made_again(void **state)
{
    static const struct {
        const char *op, *name, *out, *pre, *message;
    } cases[] = {
        { "epilogue", "e", "h", NULL, "tensor \"h\" is made by op \"r\" already" },
        { "epilogue", "e", "p", "p", "op \"e\" makes \"p\" twice" },
        { "epilogue", "e", "x", NULL, "op \"e\" cannot make \"x\": that is an input" },
        { "epilogue", "e", "r", NULL, "\"r\" is the name of an op already" },
        { "epilogue", "e", "1h", NULL,
          "out is \"1h\", expected a name for what it makes" },
    };
    static const gx_field_text relu[] = { { "x", "x" }, { "out", "h" } };
    static const int64_t dim[] = { 4 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const gx_field_text fields[] = { { "x", "x" },
                                         { "out", cases[i].out },
                                         { "pre", cases[i].pre } };
        gx_graph *graph = NULL;
        gx_error err = { 0 };

        assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
        assert_ok(
            gx_graph_add_tensor(graph, GX_ROLE_INPUT, "x", GX_F32, 1, dim, NULL, &err),
            &err);
        assert_ok(gx_graph_add_op(graph, "relu", "r", relu, 2, &err), &err);
        assert_ok(gx_graph_add_op(graph, cases[i].op, cases[i].name, fields,
                                  cases[i].pre ? 3 : 2, &err),
                  &err);
        assert_fails(gx_graph_finish(graph, GX_TRAIN, NULL, &err), GX_ERR_MODEL, &err,
                     cases[i].message);
        gx_graph_free(graph);
    }
}

static void a_kind_that_is_none_is_named(void **state)
{
    static const char text[] =
        "gexec: 1\ninputs: {x: {shape: [2]}}\nops:\n  - {op: relu, name: y, x: x}\n"
        "outputs: [y, gexec.rate]\n";
    const gx_load_options options = { .kind = (gx_kind)9 };
    gx_graph *graph;
    gx_error err;

    (void)state;
    assert_fails(
        gx_graph_parse(text, strlen(text), "m", ".", &options, &graph, NULL, &err),
        GX_ERR_ARGUMENT, &err, "kind 9 is none of");
    assert_null(graph);
    assert_ok(gx_graph_create("m", "f32", &graph, &err), &err);
    assert_fails(gx_graph_finish(graph, (gx_kind)9, NULL, &err), GX_ERR_ARGUMENT, &err,
                 "kind 9 is none of");
    gx_graph_free(graph);
}

/* 40000 ops that read one parameter: a search that is quadratic in them would not end. */
static void large_graphs_resolve(void **state)
{
    enum { N = 40000 };
    char *text = malloc(N * 60 + 1000), *at = text;
    gx_graph *graph;

    (void)state;
    assert_non_null(text);
    at += sprintf(at, "gexec: 1\nname: m\ninputs: {x: {shape: [2]}}\n"
                      "params: {p: {shape: [2], init: ones}}\nops:\n");
    for (int i = 0; i < N; i++) {
        if (i == 0)
            at += sprintf(at, "  - {op: add, name: h0, a: x, b: p}\n");
        else
            at += sprintf(at, "  - {op: add, name: h%d, a: h%d, b: p}\n", i, i - 1);
    }
    sprintf(at, "  - {op: mse, name: loss, x: h%d, target: x}\nbackward: loss\n", N - 1);
    graph = load(text, GX_TRAIN, NULL);
    /* adds, the loss, its derivative, the sums of p's gradient, the end */
    assert_int_equal(graph->n_nodes, N + 1 + 1 + (N - 1) + 1);
    gx_graph_free(graph);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named_with_their_place),
        cmocka_unit_test(one_pass_finds_every_mistake_and_no_echo),
        cmocka_unit_test(a_derivative_that_lacks_is_reported_alone),
        cmocka_unit_test(the_log_has_loss_outputs_and_metrics),
        cmocka_unit_test(a_log_that_is_full_is_reported),
        cmocka_unit_test(a_loss_follows_its_derivative),
        cmocka_unit_test(an_evaluation_has_what_is_asked_for_alone),
        cmocka_unit_test(an_evaluation_drops_hand_written_training),
        cmocka_unit_test(names_are_reserved_where_they_are_derived),
        cmocka_unit_test(kept_tensors_are_outputs),
        cmocka_unit_test(an_unknown_kept_tensor_is_reported),
        cmocka_unit_test(values_learn_from_their_readers),
        cmocka_unit_test(node_costs_are_counted),
        cmocka_unit_test(an_expanded_graph_loads_to_itself),
        cmocka_unit_test(a_graph_built_in_code_is_that_of_its_text),
        cmocka_unit_test(what_stands_already_is_not_made_again),
        cmocka_unit_test(a_kind_that_is_none_is_named),
        cmocka_unit_test(large_graphs_resolve),
    };

    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
