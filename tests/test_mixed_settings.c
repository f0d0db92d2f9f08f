/* Mixed precision in the optimizer section: what it refuses, and how code writes it. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "support_walk.h"

static void code_writes_the_same_section(void **state)
{
    static const gx_field_text fields[] = {
        { "lr", "0.1" },
        { "master", "f32" },
        { "moments", "f32" },
        { "loss_scale", "dynamic" },
        { "loss_scale.initial", "8" },
    };
    gx_graph *graph;
    gx_error err;

    (void)state;
    assert_ok(gx_graph_create("m", "f16", &graph, &err), &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_INPUT, "t", GX_F16, 1, (int64_t[]){ 3 },
                                  "normal", &err),
              &err);
    assert_ok(gx_graph_add_tensor(graph, GX_ROLE_PARAM, "w", GX_F16, 1, (int64_t[]){ 3 },
                                  "zeros", &err),
              &err);
    assert_ok(gx_graph_add_op(graph, "mse", "loss",
                              (gx_field_text[]){ { "x", "w" }, { "target", "t" } }, 2,
                              &err),
              &err);
    assert_ok(gx_graph_set_backward(graph, "loss", &err), &err);
    assert_ok(gx_graph_set_optimizer(graph, "adam", fields, ARRAY_SIZE(fields), &err),
              &err);
    assert_ok(gx_graph_finish(graph, GX_TRAIN, NULL, &err), &err);
    for (const char *const *name =
             (const char *const[]){ "w.master", "gexec.scale", "gexec.skipped",
                                    "gexec.growth_tracker", "gexec.grad_norm", NULL };
         *name; name++)
        assert_true(gx_graph_find(graph, *name) >= 0);
    gx_graph_free(graph);
}

static void mistakes_are_named_where_they_stand(void **state)
{
    static const struct {
        const char *section, *message;
    } cases[] = {
        { "sgd: {lr: 1}, master: bf16",
          "7:35: master is \"bf16\", expected f32, or param: of the type of the" },
        { "sgd: {lr: 1}, moments: [f32]", "7:36: expected a value, found a list" },
        { "sgd: {lr: 1}, momens: f32",
          "7:27: unknown key \"momens\" in optimizer; did you mean \"moments\"?" },
        { "sgd: {lr: 1, master: f32}", "7:26: \"master\" stands beside \"sgd\", not in" },
        { "sgd: {lr: 1}, groups: [{params: p, master: f32}]",
          "sgd has no setting \"master\"" },
        { "sgd: {lr: 1}, loss_scale: 0",
          "7:39: loss_scale is \"0\", expected a number above 0, or dynamic" },
        { "sgd: {lr: 1}, loss_scale: -8", "loss_scale is \"-8\", expected a number" },
        { "sgd: {lr: 1}, loss_scale: 1e39", "loss_scale is \"1e39\", expected a number" },
        { "sgd: {lr: 1}, loss_scale: static", "loss_scale is \"static\", expected" },
        { "sgd: {lr: 1}, loss_scale: [1]",
          "7:39: expected a number, or {dynamic: {initial: 65536}}, found a list" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: 8}", "7:49: expected a map such as" },
        { "sgd: {lr: 1}, loss_scale: {1024: {initial: 8}}",
          "\"loss_scale.initial\" is for a loss_scale that is dynamic" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {initial: 0}}",
          "7:59: initial is \"0\", expected a number above 0\n" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {grow: 2}}",
          "7:50: a dynamic loss_scale has no setting \"grow\"; did you mean "
          "\"growth\"?" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {growth: 1}}",
          "7:58: loss_scale \"gexec.unscale\": growth is 1, expected a number above 1" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {backoff: 1}}",
          "backoff is 1, expected more than 0 and less than 1" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {growth_interval: 0}}",
          "growth_interval is 0, expected 1 to" },
        { "sgd: {lr: 1}, loss_scale: {dynamic: {growth_interval: x}}",
          "there is no dim \"x\"" },
        { "sgd: {lr: 1}}\nmetrics: {skipped: {}",
          "metric \"skipped\" is of a loss_scale, which the optimizer section lacks" },
        { "sgd: {lr: 1}, loss_scale: 8}\nmetrics: {loss_scale: {x: p}",
          "loss_scale takes no fields" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[3000];

        snprintf(text, sizeof text,
                 "gexec: 1\nname: m\nparams: {p: {shape: [4]}}\n"
                 "inputs: {t: {shape: [4]}}\n"
                 "ops: [{op: mse, name: loss, x: p, target: t}]\nbackward: loss\n"
                 "optimizer: {%s}\n",
                 cases[i].section);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        assert_has(mistakes, cases[i].message);
        free(mistakes);
    }
}

static void what_a_hand_must_do_is_said(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "params: {p: {shape: [4]}}\ninputs: {t: {shape: [4]}}\n"
          "ops: [{op: mse.bwd, name: b, x: p, target: t, dx: p.grad}]\n"
          "optimizer: {sgd: {lr: 1}, loss_scale: 8}\n",
          "6:27: loss_scale: no op reads \"gexec.scale\"" },
        { "params: {p: {shape: [4]}}\ninputs: {t: {shape: [4]}, s: {shape: [1]}}\n"
          "ops: [{op: mse.bwd, name: b, x: p, target: t, dy: s, dx: p.grad}]\n",
          "5:51: mse.bwd \"b\": dy has shape [1], expected 0 dimensions" },
        { "params: {p: {shape: [4]}}\ninputs: {g: {shape: [4]}, r: {shape: []}}\n"
          "state: {w: {shape: [4]}}\n"
          "ops: [{op: sgd, name: u, param: p, grad: g, lr: r, master: w}]\n",
          "param is f32 already: it has no rounded copy" },
        { "params: {p: {shape: [4], dtype: bf16}}\n"
          "inputs: {g: {shape: [4]}, r: {shape: []}}\n"
          "state: {w: {shape: [4], dtype: bf16}}\n"
          "ops: [{op: sgd, name: u, param: p, grad: g, lr: r, master: w}]\n",
          "master is bf16, expected f32" },
        { "params: {p: {shape: [4]}}\nstate: {w: {shape: [5], init: {param: p}}}\n"
          "ops: [{op: relu, x: p}]\n",
          "4:39: \"p\" has shape [4], \"w\" has [5]" },
        { "params: {p: {shape: [4]}}\nstate: {w: {shape: [4], init: {param: q}}}\n"
          "ops: [{op: relu, x: p}]\n",
          "there is no parameter \"q\"" },
        { "params: {p: {shape: [4], init: {param: p}}}\nops: [{op: relu, x: p}]\n",
          "initialiser \"param\" is for state: \"p\" is none" },
        { "params: {p: {shape: [4]}}\nstate: {w: {shape: [4], init: param}}\n"
          "ops: [{op: relu, x: p}]\n",
          "initialiser \"param\" needs a value" },
        { "params: {p: {shape: [4], dtype: f16}, p.master: {shape: [4]}}\n"
          "inputs: {t: {shape: [4]}}\n"
          "ops: [{op: mse, name: loss, x: p, target: t}]\nbackward: loss\n"
          "optimizer: {sgd: {lr: 1}, master: f32}\n",
          "name \"p.master\" is gexec's own here" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[1000];

        snprintf(text, sizeof text, "gexec: 1\nname: m\n%s", cases[i].text);
        char *mistakes = test_walk_mistakes(text, GX_TRAIN);

        assert_has(mistakes, cases[i].message);
        free(mistakes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_writes_the_same_section),
        cmocka_unit_test(mistakes_are_named_where_they_stand),
        cmocka_unit_test(what_a_hand_must_do_is_said),
    };

    return cmocka_run_group_tests_name("mixed_settings", tests, NULL, NULL);
}
